# SPDX-License-Identifier: Apache-2.0
"""axi_dma_write: every byte lands where it belongs and nowhere else; one beat a cycle; outcomes in order."""

import random

import cocotb
import pytest
from nacelle_tb.bench import AxiMaster, AxisSink, Plain, Sink, Source, run
from nacelle_tb.long import alternately
from nacelle_tb.memory import AxiMemory
from nacelle_tb.streams import AxisSource, StreamSink, StreamSource, start, wait_cycles
from nacelle_tb.widths import WIDTHS

SIZE = 1 << 16


class Bench:
    def __init__(self, dut, stall: float = 0.0, latency: int | tuple[int, int] = (1, 30)) -> None:
        self.dut = dut
        self.cmd = StreamSource(dut, "cmd", "memory_pkg::dma_cmd_t", stall, noise=True)
        self.data = AxisSource(dut, "data", stall, noise=True)
        self.memory = AxiMemory(dut, "mem", SIZE, latency=latency, stall=stall, noise=True)
        self.done = StreamSink(dut, "done", "memory_pkg::dma_done_t", stall)
        self.expected = bytearray(SIZE)

    def write(self, addr: int, length: int) -> None:
        packet = random.randbytes(length)
        self.cmd.send(addr=addr, length=length)
        if packet:
            self.data.send(packet)
        self.expected[addr : addr + length] = packet


def lengths(step: int) -> list[int]:
    return [0, 1, 2, step - 1, step, step + 1, 2 * step, random.randint(1, 6 * step), random.randint(1, 9000)]


@cocotb.test()
@cocotb.parametrize(stall=alternately([0.0, 0.4]))
async def bytes_land_where_they_belong(dut, stall: float) -> None:
    bench = Bench(dut, stall)
    await start(dut)
    step = bench.data.bytes_per_beat
    for _ in range(40):
        length = random.choice(lengths(step))
        near_end = random.choice([0, 4096 - length % 4096, 4096 - step, random.randrange(4096)])
        bench.write(random.randrange(0, SIZE - 16384, 4096) + near_end % 4096, length)
    for i in range(40):
        assert not (await bench.done.recv()).error, f"transfer {i}"
    assert bench.memory.content == bench.expected
    await wait_cycles(dut, 2)
    assert int(dut.idle.value)


@cocotb.test()
async def error_belongs_to_its_transfer(dut) -> None:
    bench = Bench(dut)
    await start(dut)
    bench.memory.errors.append((8192, 8192))
    step = bench.data.bytes_per_beat
    spans = [(0, 100), (8192 - step + 1, 2 * step), (8192, 0), (9000, 300), (SIZE - 1, 2), (64, 64), (4096, 4097), (0, 0)]
    for addr, length in spans:
        bench.cmd.send(addr=addr, length=length)
        if length:
            bench.data.send(bytes(length))
    assert [(await bench.done.recv()).error for _ in spans] == [0, 1, 0, 0, 1, 0, 1, 0]


@cocotb.test()
async def error_of_any_burst_is_its_transfers(dut) -> None:
    """Of the first, of one in the middle, of the last; the transfer behind has none of it."""
    bench = Bench(dut)
    await start(dut)
    for block in range(4):
        bench.memory.errors[:] = [(4096 * block, 4096 * block)]
        for addr, length in ((0, 4 * 4096), (5 * 4096, 8)):
            bench.cmd.send(addr=addr, length=length)
            bench.data.send(bytes(length))
        assert [(await bench.done.recv()).error for _ in range(2)] == [1, 0]


@cocotb.test()
async def one_beat_a_cycle(dut) -> None:
    bench = Bench(dut, latency=12)
    await start(dut)
    step = bench.data.bytes_per_beat
    for i in range(100):
        bench.write(i * step, step)
    bench.write(8192, 8192)
    bench.write(16384, 8192)
    for _ in range(102):
        await bench.done.recv()
    cycles = bench.memory.stats.write_beat_cycles
    assert cycles[-1] - cycles[0] == len(cycles) - 1 == 99 + 2 * 8192 // step
    assert bench.memory.content == bench.expected


@cocotb.test()
async def addresses_lead_within_bounds_and_latency_is_hidden(dut) -> None:
    bench = Bench(dut, latency=200)
    await start(dut)
    step = bench.data.bytes_per_beat
    for i in range(40):
        bench.cmd.send(addr=i * step, length=step)
    await wait_cycles(dut, 30)
    assert 1 <= bench.memory.outstanding() <= 6
    for _ in range(40):
        bench.data.send(bytes(step))
    await wait_cycles(dut, 60)
    assert bench.memory.stats.write_beats == 32  # no more than may wait for their response
    for _ in range(40):
        await bench.done.recv()


@cocotb.test()
async def responses_are_taken_whoever_waits(dut) -> None:
    bench = Bench(dut, latency=10)
    bench.done.stall = 1.0
    await start(dut)
    step = bench.data.bytes_per_beat
    for i in range(40):
        bench.write(4096 + i * step, step)
    await wait_cycles(dut, 400)
    assert bench.memory.stats.write_beats == 32 and not bench.done.received
    assert bench.memory.outstanding() <= 6, "all that has its data is answered; only addresses run ahead"
    bench.done.stall = 0.0
    for _ in range(40):
        assert not (await bench.done.recv()).error
    assert bench.memory.content == bench.expected


@cocotb.test()
async def latency_in_cycles(dut) -> None:
    bench = Bench(dut, latency=10)
    await start(dut)
    bench.write(64, 8)
    await bench.cmd.drained()
    began = bench.memory.cycle
    await bench.done.recv()
    assert bench.memory.stats.write_beat_cycles[0] - began == 4


@pytest.mark.parametrize("width", WIDTHS)
def test_axi_dma_write(width: int) -> None:
    run(
        "axi_dma_write",
        __file__,
        params={"DATA_W": width},
        ports={
            "cmd": Sink("memory_pkg::dma_cmd_t"),
            "data": AxisSink(width),
            "mem": AxiMaster(width),
            "done": Source("memory_pkg::dma_done_t"),
            "idle": Plain("output", "logic"),
        },
        random_state=True,
    )
