# SPDX-License-Identifier: Apache-2.0
"""The kernel of docs/how-to/add-a-kernel.md does what the page says."""

from __future__ import annotations

import random

import cocotb
import pytest
from nacelle_tb.bench import run
from nacelle_tb.device import load
from nacelle_tb.device_rtl import generate
from nacelle_tb.kernel import kernel_ports
from nacelle_tb.long import some
from nacelle_tb.memory import AxiMemory
from nacelle_tb.sources import ROOT
from nacelle_tb.streams import StreamSink, StreamSource, start
from nacelle_tb.svtypes import constant

EXAMPLE = ROOT / "examples" / "kernel_sum"
DEVICE = load(EXAMPLE / "device.toml")


@cocotb.test()
@cocotb.parametrize(stall=[0.0, 0.4])
async def words_are_added(dut, stall: float) -> None:
    job = StreamSource(dut, "job", "compute_pkg::job_t", stall)
    done = StreamSink(dut, "done", "compute_pkg::done_t", stall)
    memory = AxiMemory(dut, "mem", 1 << 16, latency=(1, 30), stall=stall)
    await start(dut)

    async def call(*regions: tuple[int, int]) -> str:
        for i, (addr, size) in enumerate(regions):
            job.send(tag=9, function_code=32, addr=addr, size=size, last=i == len(regions) - 1)
        answer = await done.recv()
        assert answer.tag == 9
        return next(
            name
            for name in ("SUCCESS", "BAD_ARGUMENTS", "REGION_TOO_SMALL", "MEMORY_ERROR")
            if constant(f"compute_pkg::RESULT_{name}") == answer.code
        )

    for count in (0, 1, 3, 16, 17, 1000):
        memory.write(0, random.randbytes(1 << 16))
        addr = random.randrange(100)
        words = [int.from_bytes(memory.read(addr + 4 * i, 4), "little") for i in range(count)]
        assert await call((addr, 4 * count), (0x8000, 8)) == "SUCCESS"
        assert int.from_bytes(memory.read(0x8000, 4), "little") == sum(words) % (1 << 32)
    assert await call((0, 64)) == "BAD_ARGUMENTS"
    assert await call((0, 63), (0x8000, 4)) == "BAD_ARGUMENTS"
    assert await call((0, (1 << 32) + 64), (0x8000, 4)) == "BAD_ARGUMENTS"
    assert await call((0, 64), (0x8000, 1 << 32)) == "SUCCESS"
    assert await call((0, 64), (0x8000, 3)) == "REGION_TOO_SMALL"
    assert await call((0x10000, 64), (0x8000, 4)) == "MEMORY_ERROR"
    assert await call((0, 64), (0x10000, 4)) == "MEMORY_ERROR"
    assert await call((0, 64), (0x8000, 4)) == "SUCCESS"


@pytest.mark.parametrize("width", some([64, 512]))
def test_example_kernel(width: int) -> None:
    run(
        "kernel_sum",
        __file__,
        sources=[generate(DEVICE).folder / "kernel_sum_pkg.sv", EXAMPLE / "kernel_sum.sv"],
        params={"DATA_W": width},
        ports=kernel_ports(width),
    )
