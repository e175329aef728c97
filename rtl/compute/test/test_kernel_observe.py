# SPDX-License-Identifier: Apache-2.0
"""The kernel `observe`: for each address the value and the response of the register, in order; and it writes nothing."""

from __future__ import annotations

import random
from itertools import pairwise

import cocotb
import pytest
from cocotb.handle import SimHandleBase
from cocotb.triggers import RisingEdge
from nacelle_tb.axil import DECERR, OKAY, SLVERR, Monitor, Slave
from nacelle_tb.bench import run
from nacelle_tb.device import DEVICES, load
from nacelle_tb.device_rtl import generate
from nacelle_tb.kernel import kernel_ports
from nacelle_tb.long import alternately, some
from nacelle_tb.memory import AxiMemory
from nacelle_tb.streams import StreamSink, StreamSource, start
from nacelle_tb.svtypes import constant

SIZE = 1 << 16
OBSERVE = 8
FROM, TO = 0x1003, 0x8005
RESULTS = {
    constant(f"compute_pkg::RESULT_{name}"): name for name in ("SUCCESS", "BAD_ARGUMENTS", "REGION_TOO_SMALL", "MEMORY_ERROR")
}


class Bench:
    """The kernel, memory, and a bus."""

    def __init__(self, dut: SimHandleBase, stall: float, slowest: int) -> None:
        self.dut = dut
        rng = random.Random(slowest)
        self.job = StreamSource(dut, "job", "compute_pkg::job_t", stall)
        self.done = StreamSink(dut, "done", "compute_pkg::done_t", stall)
        self.memory = AxiMemory(dut, "mem", SIZE, latency=(1, 30), stall=stall)
        self.bus = Slave(dut, "bus", lambda channel: rng.randrange(slowest + 1))
        self.monitor = Monitor(dut, "bus")

    async def call(self, *regions: tuple[int, int]) -> str:
        for i, (addr, size) in enumerate(regions):
            self.job.send(tag=9, function_code=OBSERVE, addr=addr, size=size, last=i == len(regions) - 1)
        answer = await self.done.recv()
        assert answer.tag == 9
        return RESULTS[answer.code]

    async def observe(self, addresses: list[int]) -> tuple[str, list[tuple[int, int]]]:
        """The result, and value and response of each."""
        self.memory.write(FROM, b"".join(at.to_bytes(4, "little") for at in addresses))
        result = await self.call((FROM, 4 * len(addresses)), (TO, 8 * len(addresses) + 5))
        answers = self.memory.read(TO, 8 * len(addresses))
        words = [int.from_bytes(answers[i : i + 4], "little") for i in range(0, len(answers), 4)]
        return result, list(zip(words[::2], words[1::2], strict=True))


@cocotb.test()
@cocotb.parametrize(stall=alternately([0.0, 0.4]), slowest=[0, 5])
async def each_address_is_answered_in_its_place(dut, stall: float, slowest: int) -> None:
    bench = Bench(dut, stall, slowest)
    await start(dut)
    for count in (1, 2, 3, 15, 16, 17, 100, 0):
        bench.memory.write(0, random.randbytes(SIZE))
        before = bytes(bench.memory.content)
        bench.bus.words = {4 * i: random.getrandbits(32) for i in range(1 << 10)}
        none = [1 << 20, 0x401, 0x402, 0xFFFF_FFFC]
        addresses = [random.choice([*none, 4 * random.randrange(1 << 10)]) for _ in range(count)]
        asked = bench.monitor.taken["ar"]
        result, answers = await bench.observe(addresses)
        assert result == "SUCCESS"
        assert answers == [(0, DECERR) if at in none else (bench.bus.words[at], OKAY) for at in addresses]
        assert bench.monitor.taken["ar"] - asked == sum(at not in none for at in addresses)
        assert bench.memory.content[TO + 8 * count :] == before[TO + 8 * count :]
    assert bench.monitor.taken["aw"] == 0


@cocotb.test()
async def responses_are_told(dut) -> None:
    bench = Bench(dut, 0.0, 0)
    await start(dut)
    bench.bus.words = {4: 7}
    for response in (SLVERR, DECERR, OKAY):
        bench.bus.resp = response
        assert await bench.observe([4, 4]) == ("SUCCESS", [(7, response)] * 2)


@cocotb.test()
async def a_register_takes_three_cycles_more_than_its_access(dut) -> None:
    """Which is answered here in the cycle after the one in which it is taken at once."""
    bench = Bench(dut, 0.0, 0)
    await start(dut)
    bench.bus.held.update(("ar", "r"))  # this test answers
    dut.bus_arready.value = 1
    cycles: list[int] = []

    async def answer() -> None:
        cycle = 0
        while True:
            await RisingEdge(dut.clk)
            cycle += 1
            taken = int(dut.bus_arvalid.value)
            if taken:
                cycles.append(cycle)
            dut.bus_rvalid.value = taken

    cocotb.start_soon(answer())
    assert (await bench.observe([4 * i for i in range(40)]))[0] == "SUCCESS"
    between = [later - earlier for earlier, later in pairwise(cycles)]
    # The first one waits for the command to memory; beats go at the end of a packet's words.
    assert len(between) == 39 and sorted(between)[len(between) // 2] == 4


@cocotb.test()
async def what_cannot_be_answered_is_refused_before_a_register_is_read(dut) -> None:
    bench = Bench(dut, 0.0, 0)
    await start(dut)
    before = bytes(bench.memory.content)
    for regions, wrong in (
        ([(FROM, 8)], "BAD_ARGUMENTS"),
        ([(FROM, 8), (TO, 16), (TO, 16)], "BAD_ARGUMENTS"),
        ([(FROM, 7), (TO, 16)], "BAD_ARGUMENTS"),
        ([(FROM, 1 << 31), (TO, 1 << 32)], "BAD_ARGUMENTS"),
        ([(FROM, (1 << 32) + 8), (TO, 1 << 39)], "BAD_ARGUMENTS"),
        ([(FROM, 8), (TO, 15)], "REGION_TOO_SMALL"),
        ([(FROM, 8), (TO, 0)], "REGION_TOO_SMALL"),
        ([(FROM, 0), (TO, 0)], "SUCCESS"),
    ):
        assert await bench.call(*regions) == wrong, regions
    assert bench.monitor.taken["ar"] == 0 and bench.memory.content == before
    bench.bus.words[0] = 1
    assert await bench.call((SIZE, 8), (TO, 16)) == "MEMORY_ERROR"
    bench.memory.write(FROM, bytes(8))
    assert await bench.call((FROM, 8), (SIZE, 16)) == "MEMORY_ERROR"
    assert await bench.observe([0]) == ("SUCCESS", [(1, OKAY)])


@pytest.mark.parametrize("width", some([64, 512]))
def test_kernel_observe(width: int) -> None:
    run(
        "kernel_observe",
        __file__,
        sources=[generate(load(DEVICES / "test.toml")).folder / "kernel_observe_pkg.sv"],
        params={"DATA_W": width},
        ports=kernel_ports(width),
    )
