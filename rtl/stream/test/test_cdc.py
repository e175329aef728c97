# SPDX-License-Identifier: Apache-2.0
"""cdc_fifo and cdc_reset between clocks of many ratios: nothing lost or reordered, the rate of the slower clock, the latency
promised; a reset that begins at once and ends on an edge."""

import random
from pathlib import Path
from typing import Any

import cocotb
import pytest
from cocotb.clock import Clock
from cocotb.simtime import get_sim_time
from cocotb.triggers import RisingEdge, Timer
from nacelle_tb.bench import Plain, Sink, Source, run
from nacelle_tb.long import alternately
from nacelle_tb.streams import StreamSink, StreamSource

WORD = "logic [31:0]"
RATIOS = [(4000, 4000), (4000, 4100), (4000, 3106), (1000, 7000), (7000, 1000)]  # periods in ps: in, out


class Side:
    """One side of the FIFO as the drivers see a module."""

    def __init__(self, dut: Any, clk: Any, rst: Any) -> None:
        self._dut, self.clk, self.rst = dut, clk, rst

    def __getattr__(self, name: str) -> Any:
        return getattr(self._dut, name)


class Bench:
    """Both sides, each with its driver."""

    def __init__(self, dut: Any, periods: tuple[int, int], stall_in: float = 0.0, stall_out: float = 0.0) -> None:
        self.dut, self.periods = dut, periods
        dut.rst.value = 1
        self.source = StreamSource(Side(dut, dut.clk, dut.in_rst), "in", WORD, stall_in)
        self.sink = StreamSink(Side(dut, dut.out_clk, dut.out_rst), "out", WORD, stall_out)

    async def start(self) -> "Bench":
        for clock, period in zip((self.dut.clk, self.dut.out_clk), self.periods, strict=True):
            await Timer(random.randrange(1, period // 2) * 2, "ps")
            cocotb.start_soon(Clock(clock, period, unit="ps").start())
        await Timer(8 * max(self.periods), "ps")
        self.dut.rst.value = 0
        return self

    async def all(self, count: int) -> list[int]:
        return [await self.sink.recv(100_000) for _ in range(count)]


@cocotb.test()
@cocotb.parametrize(periods=RATIOS, stalls=alternately([(0.0, 0.0), (0.5, 0.2), (0.1, 0.7)]))
async def order_is_kept(dut, periods: tuple[int, int], stalls: tuple[float, float]) -> None:
    bench = await Bench(dut, periods, *stalls).start()
    values = [random.getrandbits(32) for _ in range(300)]
    for value in values:
        bench.source.send(value)
    assert await bench.all(300) == values


@cocotb.test()
@cocotb.parametrize(periods=RATIOS)
async def the_slower_clock_sets_the_rate(dut, periods: tuple[int, int]) -> None:
    bench = await Bench(dut, periods).start()
    for value in range(400):
        bench.source.send(value)
    await bench.all(100)
    begin = get_sim_time("ps")
    await bench.all(200)
    assert get_sim_time("ps") - begin <= 202 * max(periods)


@cocotb.test()
@cocotb.parametrize(periods=RATIOS)
async def latency(dut, periods: tuple[int, int]) -> None:
    bench = await Bench(dut, periods).start()
    await Timer(20 * max(periods), "ps")
    for value in range(20):
        bench.source.send(value)
        await bench.source.drained()
        begin = get_sim_time("ps")  # the edge at which it was taken
        while not int(dut.out_valid.value):
            await RisingEdge(dut.out_clk)
        assert get_sim_time("ps") - begin <= 5 * periods[1] + periods[0]
        assert await bench.sink.recv() == value
        await Timer(random.randrange(10 * max(periods)) // 2 * 2, "ps")


@cocotb.test()
async def reset_begins_at_once_and_ends_on_an_edge(dut) -> None:
    bench = await Bench(dut, (4000, 9000)).start()
    await Timer(100_000, "ps")
    assert int(dut.in_rst.value) == int(dut.out_rst.value) == 0
    for value in range(5):
        bench.source.send(value)
    await bench.source.drained()
    await RisingEdge(dut.out_clk)
    await Timer(1000, "ps")
    dut.rst.value = 1
    await Timer(2, "ps")
    assert int(dut.in_rst.value) == int(dut.out_rst.value) == 1
    await Timer(50_000, "ps")
    dut.rst.value = 0
    for clock, reset in ((dut.clk, dut.in_rst), (dut.out_clk, dut.out_rst)):
        while int(reset.value):
            await RisingEdge(clock)
            await Timer(2, "ps")
    bench.sink.received.clear()
    bench.source.send(77)
    assert await bench.all(1) == [77]  # what was inside is gone


@pytest.mark.parametrize("depth", [8, 16])
def test_cdc(depth: int) -> None:
    here = Path(__file__).parent
    run(
        "cdc_bench",
        __file__,
        params={"DEPTH": depth},
        ports={
            "out_clk": Plain("input", "logic"),
            "in_rst": Plain("output", "logic"),
            "out_rst": Plain("output", "logic"),
            "in": Sink(WORD),
            "out": Source(WORD),
        },
        sources=[here / "cdc_bench.sv"],
    )
