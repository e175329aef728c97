# SPDX-License-Identifier: Apache-2.0
"""kernel_increment alone, with regions that are longer than a transfer: here one has at most 2^MOVE_W bytes."""

from __future__ import annotations

import random

import cocotb
import pytest
from nacelle_tb.bench import run
from nacelle_tb.kernel import kernel_ports
from nacelle_tb.long import alternately, some
from nacelle_tb.memory import AxiMemory
from nacelle_tb.streams import StreamSink, StreamSource, start
from nacelle_tb.svtypes import constant

MOVE_W = 7
MOST = 1 << MOVE_W
SUCCESS, MEMORY_ERROR = (constant(f"compute_pkg::RESULT_{name}") for name in ("SUCCESS", "MEMORY_ERROR"))


@cocotb.test()
@cocotb.parametrize(stall=alternately([0.0, 0.4]))
async def every_byte_of_every_region(dut, stall: float) -> None:
    """Of sizes around those of one, two and more transfers, at any address; no byte beside them. Errors of any transfer."""
    job = StreamSource(dut, "job", "compute_pkg::job_t", stall)
    done = StreamSink(dut, "done", "compute_pkg::done_t", stall)
    memory = AxiMemory(dut, "mem", 1 << 16, latency=(1, 30), stall=stall)
    await start(dut)

    async def call(*regions: tuple[int, int]) -> int:
        tag = random.randrange(256)
        for i, (addr, size) in enumerate(regions):
            job.send(tag=tag, function_code=1, addr=addr, size=size, last=i == len(regions) - 1)
        answer = await done.recv()
        assert answer.tag == tag
        return answer.code

    around = [n * MOST + d for n in (1, 2, 5) for d in (-1, 0, 1)]
    for sizes in ([0], [1], *([size] for size in around), around, [0, *around, 0, 1], [300 * MOST], [3, 40 * MOST + 3, 1]):
        memory.write(0, random.randbytes(1 << 16))
        expected = bytearray(memory.read(0, 1 << 16))
        regions, at = [], random.randrange(100)
        for size in sizes:
            regions.append((at, size))
            expected[at : at + size] = bytes((byte + 1) % 256 for byte in expected[at : at + size])
            at += size + random.randrange(70)
        assert await call(*regions) == SUCCESS
        assert memory.read(0, 1 << 16) == expected
    for part in range(3):
        memory.errors.append((4096 + part * MOST + 5,) * 2)
        assert await call((0, 9), (4096, 2 * MOST + 9), (9000, 1)) == MEMORY_ERROR
        memory.errors.clear()
        assert await call((4096, 3 * MOST)) == SUCCESS


@pytest.mark.parametrize("width", some([64, 512]))
def test_kernel_increment(width: int) -> None:
    run(
        "kernel_increment",
        __file__,
        params={"DATA_W": width, "MOVE_W": MOVE_W},
        ports=kernel_ports(width),
        random_state=True,
    )  # fmt: skip
