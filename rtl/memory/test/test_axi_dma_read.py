# SPDX-License-Identifier: Apache-2.0
"""axi_dma_read: packets are what memory holds; one beat a cycle under latency; a slow taker never stops memory."""

import os
import random

import cocotb
import pytest
from cocotb.triggers import FallingEdge
from nacelle_tb.bench import AxiMaster, AxisSource, Plain, Sink, run
from nacelle_tb.long import alternately
from nacelle_tb.memory import AxiMemory
from nacelle_tb.streams import AxisSink, StreamSource, start, wait_cycles
from nacelle_tb.widths import WIDTHS

SIZE = 1 << 16
IN_PLACE = "NACELLE_IN_PLACE" in os.environ


class Bench:
    def __init__(self, dut, stall: float = 0.0, latency: int | tuple[int, int] = (1, 30)) -> None:
        self.dut = dut
        self.cmd = StreamSource(dut, "cmd", "memory_pkg::dma_cmd_t", stall, noise=True)
        self.memory = AxiMemory(dut, "mem", SIZE, latency=latency, stall=stall, noise=True)
        self.memory.write(0, random.randbytes(SIZE))
        self.data = AxisSink(dut, "data", stall)

    async def packets(self, count: int) -> list[tuple[bytes, int]]:
        await self.data._wait(lambda: len(self.data.packets) >= count, 100_000)
        return list(self.data.packets)

    def cut(self, packet: bytes, addr: int, length: int) -> bytes:
        """The bytes asked for. In place they lie in the whole beats of memory that the transfer touches."""
        if not IN_PLACE:
            return packet
        step = self.data.bytes_per_beat
        assert len(packet) == (addr % step + length + step - 1) // step * step
        return packet[addr % step :][:length]


@cocotb.test()
@cocotb.parametrize(stall=alternately([0.0, 0.4]))
async def packets_are_what_memory_holds(dut, stall: float) -> None:
    bench = Bench(dut, stall)
    await start(dut)
    step = bench.data.bytes_per_beat
    spans = []
    for _ in range(80):
        length = random.choice([0, 1, 2, step - 1, step, step + 1, 2 * step, random.randint(1, 6 * step), random.randint(1, 5000)])
        addr = random.choice([random.randrange(0, SIZE, 4096), random.randrange(SIZE - step)])
        length = min(length, SIZE - addr)
        bench.cmd.send(addr=addr, length=length)
        if length:
            spans.append((addr, length))
    packets = await bench.packets(len(spans))
    for (packet, bad), (addr, length) in zip(packets, spans, strict=True):
        assert not bad and bench.cut(packet, addr, length) == bench.memory.read(addr, length)
    await wait_cycles(dut, 2)
    assert int(dut.idle.value)


@cocotb.test()
async def error_belongs_to_its_packet(dut) -> None:
    bench = Bench(dut)
    await start(dut)
    bench.memory.errors.append((8192, 8192))
    step = bench.data.bytes_per_beat
    spans = [(0, 100), (8192 - step + 1, 2 * step), (8192 + step, 300), (SIZE - 1, 2), (1, 64), (4096, 4097), (4096, 4096)]
    for addr, length in spans:
        bench.cmd.send(addr=addr, length=length)
    packets = await bench.packets(len(spans))
    assert [len(packet) for packet, _ in packets] == [length for _, length in spans]
    assert [bad for _, bad in packets] == [0, 1, 0, 1, 0, 1, 0]
    for (packet, bad), (addr, length) in zip(packets, spans, strict=True):
        assert bad or packet == bench.memory.read(addr, length)


@cocotb.test()
@cocotb.parametrize(shift=[0, 5])
async def one_beat_a_cycle_at_latency(dut, shift: int) -> None:
    bench = Bench(dut, latency=150)
    await start(dut)
    step = bench.data.bytes_per_beat
    for i in range(300):  # as much memory as packet: nothing more to read than to give
        bench.cmd.send(addr=i * step + shift, length=step - shift)
    for i in range(3):
        bench.cmd.send(addr=i * 8192 + shift, length=8192 - shift)
    await bench.packets(303)
    spans = list(bench.data.spans)
    beats = 300 + 3 * 8192 // step
    assert spans[-1][1] - spans[0][0] + 1 == beats


@cocotb.test()
async def latency_in_cycles(dut) -> None:
    bench = Bench(dut, latency=10)
    await start(dut)
    for addr in (0, 1):
        bench.cmd.send(addr=addr, length=2 * bench.data.bytes_per_beat)
        await bench.cmd.drained()
        asked = bench.memory.cycle
        await bench.packets(addr + 1)
        first, second = bench.memory.stats.read_beat_cycles[:2]
        assert first - asked == 2 + 10
        assert bench.data.spans[addr][0] == (3 + second if addr else 4 + first)
        bench.memory.stats.read_beat_cycles.clear()


@cocotb.test()
async def slow_taker_never_stops_memory(dut) -> None:
    bench = Bench(dut, latency=1)
    bench.data.stall = 1.0
    await start(dut)
    for i in range(32):
        bench.cmd.send(addr=i * 1024, length=3000)
    for _ in range(1500):
        await wait_cycles(dut, 1)
        assert int(dut.mem_rready.value)
    assert bench.memory.stats.read_beats <= 512
    bench.data.stall = 0.0
    packets = await bench.packets(32)
    assert packets == [(bench.memory.read(i * 1024, 3000), 0) for i in range(32)]


@cocotb.test()
async def idle_means_that_nothing_is_inside(dut) -> None:
    """From the command to the packet's last beat, also while all waits for memory."""
    bench = Bench(dut, latency=30)
    await start(dut)
    for length in (1, 4096, 100):
        bench.cmd.send(addr=17, length=length)
        await bench.cmd.drained()
        while not bench.data.packets:
            await FallingEdge(dut.clk)
            assert bench.data.packets or not int(dut.idle.value)
        bench.data.packets.clear()
        await wait_cycles(dut, 3)
        assert int(dut.idle.value)


@cocotb.test()
async def a_transfer_of_nothing_asks_for_nothing(dut) -> None:
    """It passes although memory takes no address; nor is anything ever written."""
    bench = Bench(dut)
    bench.memory.stall = 1.0
    await start(dut)
    bench.cmd.send(addr=64, length=0)
    await wait_cycles(dut, 12)
    assert int(dut.idle.value) and not bench.data.packets
    bench.memory.stall = 0.0
    bench.cmd.send(addr=64, length=1000)
    for _ in range(60):
        await FallingEdge(dut.clk)
        assert not int(dut.mem_awvalid.value) and not int(dut.mem_wvalid.value)
    assert await bench.data.recv() == bench.memory.read(64, 1000)


# Tests that take packets in place as well.
ANY_PLACE = "what_memory_holds|one_beat_a_cycle_at_latency"


@pytest.mark.parametrize("width, in_place", [*((width, 0) for width in WIDTHS), (64, 1)])
def test_axi_dma_read(width: int, in_place: int) -> None:
    run(
        "axi_dma_read",
        __file__,
        params={"DATA_W": width, "IN_PLACE": in_place},
        ports={
            "cmd": Sink("memory_pkg::dma_cmd_t"),
            "mem": AxiMaster(width),
            "data": AxisSource(width),
            "idle": Plain("output", "logic"),
        },
        random_state=True,
        env={"NACELLE_IN_PLACE": "1", "COCOTB_TEST_FILTER": ANY_PLACE} if in_place else {},
    )
