# SPDX-License-Identifier: Apache-2.0
"""event_counters: no pulse is lost and each read is answered in time, however often and whatever is read."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator

import cocotb
import pytest
from cocotb.triggers import FallingEdge
from nacelle_tb.bench import Plain, run
from nacelle_tb.cci import counters
from nacelle_tb.streams import start, wait_cycles
from nacelle_tb.svtypes import struct

COUNTERS = len(counters())
LATENCY = 10
"""SPACING + 2"""
ABSENT = int(os.environ.get("ABSENT", "0"))


class Bench:
    """The module, with every event in every cycle while `on`."""

    def __init__(self, dut) -> None:
        self.dut = dut
        self.pulses = 0
        self.on = False
        dut.read.value = dut.read_index.value = dut.events.value = 0

    async def start(self) -> None:
        await start(self.dut)
        cocotb.start_soon(self._pulse())
        await self.round()

    async def round(self) -> None:
        """All that has pulsed is counted; the reads begin at the falling edge."""
        await wait_cycles(self.dut, COUNTERS + 4)
        await FallingEdge(self.dut.clk)

    async def _pulse(self) -> None:
        while True:
            await FallingEdge(self.dut.clk)
            self.dut.events.value = (1 << COUNTERS) - 1 if self.on else 0
            self.pulses += self.on

    async def read(self, index: int) -> int:
        """A count; it takes LATENCY cycles at most."""
        self.dut.read.value = 1
        self.dut.read_index.value = index
        await FallingEdge(self.dut.clk)
        self.dut.read.value = 0
        for _ in range(LATENCY):
            if int(self.dut.read_done.value):
                return int(self.dut.read_data.value)
            await FallingEdge(self.dut.clk)
        raise AssertionError(f"counter {index} is not read within {LATENCY} cycles")


def one_again_and_again() -> Iterator[int]:
    index = random.randrange(COUNTERS)
    while True:
        yield index


def in_their_order() -> Iterator[int]:
    while True:
        yield from range(COUNTERS)


def any_of_them() -> Iterator[int]:
    while True:
        yield random.randrange(COUNTERS)


READERS = {"one": one_again_and_again, "in order": in_their_order, "any": any_of_them}


@cocotb.test()
@cocotb.parametrize(reader=list(READERS), pause=[0, 12])
async def no_pulse_is_lost(dut, reader: str, pause: int) -> None:
    """`pause`: cycles at most between two reads; without one nothing can be read more often."""
    bench = Bench(dut)
    await bench.start()
    bench.on = True
    last: dict[int, int] = {}
    for index in READERS[reader]():
        seen = await bench.read(index)
        assert last.get(index, 0) <= seen <= bench.pulses
        last[index] = seen
        if bench.pulses > 8000:
            break
        for _ in range(random.randint(0, pause)):
            await FallingEdge(dut.clk)
    bench.on = False
    await bench.round()
    present = COUNTERS - ABSENT
    counts = [await bench.read(index) for index in range(COUNTERS)]
    assert counts == [bench.pulses] * present + [0] * (COUNTERS - present)
    assert await bench.read(255) == 0


@pytest.mark.parametrize("absent", [0, struct("pcie_pkg::pcie_events_t").width], ids=["all", "without PCIe"])
def test_event_counters(absent: int) -> None:
    run(
        "event_counters",
        __file__,
        params={"ABSENT": absent},
        ports={
            "events": Plain("input", "counters_pkg::events_t"),
            "read": Plain("input", "logic"),
            "read_index": Plain("input", "logic [7:0]"),
            "read_done": Plain("output", "logic"),
            "read_data": Plain("output", "logic [31:0]"),
            "to_log": Plain("output", "event_log_pkg::log_event_t"),
        },
        env={"ABSENT": str(absent)},
        random_state=True,
    )
