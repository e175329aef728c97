# SPDX-License-Identifier: Apache-2.0
"""hold_budget: CREDIT cycles at once, then one in PAUSE; all comes back, also across the wrap of time and a jump of it."""

from __future__ import annotations

import random
from collections import deque

import cocotb
from cocotb.triggers import FallingEdge
from nacelle_tb.bench import Clock, Plain, run
from nacelle_tb.streams import start

CREDIT, PAUSE = 16, 4
TIME = 1 << 48


class Bench:
    """A model: PAUSE cycles for each one held, less those that have passed."""

    def __init__(self, dut, now: int) -> None:
        self.dut, self.now, self.owed = dut, now, 0
        self.allowed: deque[bool] = deque()

    async def start(self) -> None:
        self.dut.holds.value = 0
        self.dut.now.value = self.now
        await start(self.dut)
        for _ in range(3):
            await FallingEdge(self.dut.clk)

    def jump(self, cycles: int) -> None:
        """Time goes on at once."""
        self.now = (self.now + cycles) % TIME
        self.dut.now.value = self.now
        self.owed = max(0, self.owed - cycles)

    async def cycle(self, holds: bool) -> bool:
        """One cycle; whether more is allowed, as it stands 2 cycles later."""
        self.dut.holds.value = int(holds)
        await FallingEdge(self.dut.clk)
        if self.allowed:
            assert bool(int(self.dut.allowed.value)) == self.allowed.popleft()
        # The debt is compared one cycle after it is made.
        self.owed = max(0, self.owed + PAUSE * holds - 1) if holds or self.owed else 0
        self.allowed.append(self.owed <= CREDIT * PAUSE)
        return self.allowed[-1]


@cocotb.test()
@cocotb.parametrize(now=[0, TIME - 40, TIME // 2 - 40])
async def credit_then_a_share(dut, now: int) -> None:
    bench = Bench(dut, now)
    await bench.start()
    held = 0
    while await bench.cycle(True):
        held += 1
    assert CREDIT <= held <= CREDIT * PAUSE // (PAUSE - 1) + 1
    held = 0
    for _ in range(100 * PAUSE):
        may = bool(int(dut.allowed.value))
        await bench.cycle(may)
        held += may
    assert 95 <= held <= 105, "one in PAUSE cycles"
    for _ in range(CREDIT * PAUSE + PAUSE):
        await bench.cycle(False)
    held = 0
    while await bench.cycle(True):
        held += 1
    assert held >= CREDIT, "all came back"


@cocotb.test()
@cocotb.parametrize(share=[0.1, 0.25, 0.5, 0.9])
async def as_its_account_says(dut, share: float) -> None:
    bench = Bench(dut, TIME - 300)
    await bench.start()
    for _ in range(600):
        await bench.cycle(random.random() < share)
    bench.allowed.clear()
    dut.holds.value = 0
    bench.jump(1 << 20)
    for _ in range(4):
        await FallingEdge(dut.clk)
    assert int(dut.allowed.value)


def test_hold_budget() -> None:
    run(
        "hold_budget",
        __file__,
        params={"CREDIT": CREDIT, "PAUSE": PAUSE},
        ports={"now": Clock(), "holds": Plain("input", "logic"), "allowed": Plain("output", "logic")},
        random_state=True,
    )
