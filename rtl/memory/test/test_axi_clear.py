# SPDX-License-Identifier: Apache-2.0
"""axi_clear: zeros where they belong and nowhere else; one beat a cycle; it gives way to others, and not for ever."""

import random

import cocotb
import pytest
from cocotb.triggers import FallingEdge, RisingEdge
from nacelle_tb.bench import AxiMaster, Plain, Sink, Source, run
from nacelle_tb.long import alternately
from nacelle_tb.memory import AxiMemory
from nacelle_tb.streams import StreamSink, StreamSource, start, wait_cycles
from nacelle_tb.widths import WIDTHS

SIZE = 1 << 17
PAGE = 4096
BURST_BEATS, PATIENCE = 16, 256  # the defaults


class Bench:
    def __init__(self, dut, stall: float = 0.0, latency: int | tuple[int, int] = (1, 60)) -> None:
        self.dut = dut
        self.cmd = StreamSource(dut, "cmd", "memory_pkg::dma_cmd_t", stall, noise=True)
        self.memory = AxiMemory(dut, "mem", SIZE, latency=latency, stall=stall, noise=True)
        self.memory.content[:] = random.randbytes(SIZE)
        self.done = StreamSink(dut, "done", "memory_pkg::dma_done_t")
        self.expected = bytearray(self.memory.content)
        dut.others_write.value = 0

    def clear(self, page: int, pages: int) -> None:
        self.cmd.send(addr=page * PAGE, length=pages * PAGE)
        self.expected[page * PAGE : (page + pages) * PAGE] = bytes(pages * PAGE)


@cocotb.test()
@cocotb.parametrize(stall=alternately([0.0, 0.4]))
async def clears_what_it_should(dut, stall: float) -> None:
    bench = Bench(dut, stall)
    await start(dut)
    for _ in range(8):
        bench.clear(random.randrange(SIZE // PAGE - 3), random.randint(1, 3))
        if random.random() < 0.5:
            dut.others_write.value = random.randrange(2)
    for _ in range(8):
        assert not (await bench.done.recv(100_000)).error
    assert bench.memory.content == bench.expected
    assert not bench.memory.outstanding()
    await wait_cycles(dut, 2)
    assert int(dut.idle.value)


@cocotb.test()
async def done_says_that_all_is_there(dut) -> None:
    bench = Bench(dut, latency=50)
    await start(dut)
    for page in (3, 7):
        bench.clear(page, 1)
        assert not (await bench.done.recv()).error
        assert bench.memory.content == bench.expected and not bench.memory.outstanding()


@cocotb.test()
async def error_belongs_to_its_command(dut) -> None:
    bench = Bench(dut)
    await start(dut)
    bench.memory.errors += [(PAGE, PAGE), (5 * PAGE - 1, 5 * PAGE - 1), (9 * PAGE + 2048, 9 * PAGE + 2048)]
    spans = [(0, 1), (1, 1), (2, 1), (3, 2), (5, 4), (8, 3), (11, 1)]
    for page, pages in spans:
        bench.clear(page, pages)
    bench.cmd.send(addr=SIZE, length=PAGE)  # outside of memory
    assert [(await bench.done.recv()).error for _ in range(8)] == [0, 1, 0, 1, 0, 1, 0, 1]


@cocotb.test()
async def one_beat_a_cycle(dut) -> None:
    """Across commands too, and at a latency that the bursts under way cover."""
    bench = Bench(dut, latency=200)
    await start(dut)
    pages = [1, 2, 1, 1]
    for page, count in enumerate(pages):
        bench.clear(4 * page, count)
    for _ in pages:
        await bench.done.recv()
    cycles = bench.memory.stats.write_beat_cycles
    assert len(cycles) == sum(pages) * PAGE // bench.memory.bytes_per_beat
    assert cycles[-1] - cycles[0] == len(cycles) - 1


@cocotb.test()
async def gives_way_to_others(dut) -> None:
    """When others begin, at most one and a half bursts are in flight; then it gets one burst in about PATIENCE cycles, no more
    and no less."""
    bench = Bench(dut, latency=20)
    await start(dut)
    bench.clear(0, 24)
    cycles = bench.memory.stats.write_beat_cycles
    for wait in (2, 7, 11, 17, 30):
        await wait_cycles(dut, 100 + wait)
        dut.others_write.value = 1
        await RisingEdge(dut.clk)
        before = len(cycles)
        await wait_cycles(dut, PATIENCE - 10)
        assert len(cycles) - before <= BURST_BEATS * 3 // 2
        dut.others_write.value = 0
    dut.others_write.value = 1
    await wait_cycles(dut, PATIENCE)
    before = len(cycles)
    await wait_cycles(dut, 10 * (PATIENCE + BURST_BEATS))
    assert 9 * BURST_BEATS <= len(cycles) - before <= 11 * BURST_BEATS
    dut.others_write.value = 0
    assert not (await bench.done.recv()).error
    assert bench.memory.content == bench.expected


@cocotb.test()
async def waits_from_when_it_has_work(dut) -> None:
    """Others have written since reset: what comes late waits as long as what comes early."""
    bench = Bench(dut)
    dut.others_write.value = 1
    await start(dut)
    for before in (0, 3 * PATIENCE):
        await wait_cycles(dut, before + 1)
        count = len(bench.memory.stats.write_beat_cycles)
        bench.clear(1, 1)
        await bench.cmd.drained()
        began = bench.memory.cycle
        await bench.done.recv(100_000)
        assert PATIENCE <= bench.memory.stats.write_beat_cycles[count] - began <= PATIENCE + 4


@cocotb.test()
async def an_address_waits_for_memory(dut) -> None:
    """Memory takes data and no address: the address stays, and no burst is lost."""
    bench = Bench(dut)
    await start(dut)
    bench.memory._task.cancel()
    dut.mem_awready.value, dut.mem_wready.value, dut.mem_bvalid.value = 0, 1, 0
    bench.clear(1, 1)
    for _ in range(20):
        await FallingEdge(dut.clk)
    assert int(dut.mem_awvalid.value) and int(dut.mem_awaddr.value) == PAGE
    for _ in range(60):
        await FallingEdge(dut.clk)
        assert int(dut.mem_awvalid.value) and int(dut.mem_awaddr.value) == PAGE
    dut.mem_awready.value = 1
    addresses = []
    for _ in range(700):
        await RisingEdge(dut.clk)
        if int(dut.mem_awvalid.value):
            addresses.append(int(dut.mem_awaddr.value))
    burst = BURST_BEATS * bench.memory.bytes_per_beat
    assert addresses == list(range(PAGE, 2 * PAGE, burst))


@cocotb.test()
async def latency_in_cycles(dut) -> None:
    bench = Bench(dut, latency=10)
    await start(dut)
    bench.clear(1, 1)
    await bench.cmd.drained()
    began = bench.memory.cycle
    await bench.done.recv()
    assert bench.memory.stats.write_beat_cycles[0] - began == 2
    assert bench.memory.cycle - began <= PAGE // bench.memory.bytes_per_beat + 10 + 3


@pytest.mark.parametrize("width", WIDTHS)
def test_axi_clear(width: int) -> None:
    run(
        "axi_clear",
        __file__,
        params={"DATA_W": width},
        ports={
            "cmd": Sink("memory_pkg::dma_cmd_t"),
            "others_write": Plain("input", "logic"),
            "mem": AxiMaster(width),
            "done": Source("memory_pkg::dma_done_t"),
            "idle": Plain("output", "logic"),
        },
        random_state=True,
    )
