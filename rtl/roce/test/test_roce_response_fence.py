# SPDX-License-Identifier: Apache-2.0
"""roce_response_fence: a fence is through when what was under way is over, and not long after, whatever comes meanwhile."""

from __future__ import annotations

import random
from collections import deque

import cocotb
from cocotb.triggers import FallingEdge
from nacelle_tb.bench import Plain, run
from nacelle_tb.streams import start

IN_FLIGHT = 32  # packets that roce_tx takes
VISIT, ATOMIC = 20, 300  # cycles that one lasts, at most
FENCES = 256


class Traffic:
    """READs that are visited and whose payload passes in order, and atomics, one after another; each thing has a number."""

    def __init__(self, dut) -> None:
        self.dut = dut
        self.things = 0
        self.visit: int | None = None
        self.atomic: int | None = None
        self.payloads: deque[int] = deque()  # the visits that each belongs to
        self.other: int | None = None  # something in the requester
        self.waits: int | None = None  # ... that was under way when the fence began
        self.fencing = False
        self.drive(reads=False, passed=False, ask=False)

    def drive(self, reads: bool, passed: bool, ask: bool) -> None:
        self.dut.visiting.value = self.visit is not None
        self.dut.executing.value = self.atomic is not None
        self.dut.reads.value = reads
        self.dut.passed.value = passed
        self.dut.ask.value = ask
        fencing = bool(self.dut.fencing.value)
        if fencing and not self.fencing:
            self.waits = self.other
        self.fencing = fencing
        self.dut.others_over.value = fencing and self.waits in (None, *({self.waits} - {self.other}))

    async def cycle(
        self,
        visits: float = 0.5,
        reads: float = 0.5,
        passes: float = 0.5,
        atomic: bool = False,
        ask: bool = False,
        other: float = 0.0,
    ) -> None:
        """The chances that a visit is under way, that it requests a payload, and that one passes."""
        passed = bool(self.payloads) and random.random() < passes
        if passed:
            self.payloads.popleft()
        if self.visit is None and random.random() < visits:
            self.things += 1
            self.visit = self.things
        elif self.visit is not None and random.random() < 1 / VISIT:
            self.visit = None
        asks = self.visit is not None and len(self.payloads) < IN_FLIGHT and random.random() < reads
        if asks:
            self.payloads.append(self.visit)
        if self.other is None and random.random() < other:
            self.things += 1
            self.other = self.things
        elif self.other is not None and random.random() < 1 / VISIT:
            self.other = None
        if atomic and self.atomic is None:
            self.things += 1
            self.atomic = self.things
        elif not atomic:
            self.atomic = None
        self.drive(asks, passed, ask)
        await FallingEdge(self.dut.clk)

    def under_way(self) -> set[int]:
        return {thing for thing in (self.visit, self.atomic, self.other, *self.payloads) if thing is not None}

    def through(self, number: int) -> bool:
        return (int(self.dut.through.value) - number) % FENCES < FENCES // 2


async def begin(dut) -> Traffic:
    traffic = Traffic(dut)
    await start(dut)
    for _ in range(3):
        await FallingEdge(dut.clk)
        assert dut.idle.value, "a fence is under way that was not requested"
    return traffic


@cocotb.test()
async def an_atomic_that_takes_long_is_waited_for_while_reads_pass(dut) -> None:
    """More payloads pass meanwhile than the unit can count."""
    traffic = await begin(dut)
    for passing in (0, 1, 5, 100, 127, 128, 129, 300):
        for _ in range(10):
            await traffic.cycle(atomic=True)
        number = int(dut.number.value)
        await traffic.cycle(atomic=True, ask=True)
        for _ in range(2 * passing):
            await traffic.cycle(visits=0.9, atomic=True)
            assert not traffic.through(number), "the atomic is under way"
        for _ in range(VISIT * 10 + 2 * IN_FLIGHT):
            await traffic.cycle(visits=0, passes=0.9)
        assert traffic.through(number), f"{passing} payloads passed"


@cocotb.test()
@cocotb.parametrize(visits=[0.0, 0.1, 0.9], passes=[0.2, 1.0])
async def what_was_under_way_is_over(dut, visits: float, passes: float) -> None:
    traffic = await begin(dut)
    atomic, limit = 0, 4 * (ATOMIC + 20 * VISIT + 10 * IN_FLIGHT)
    asked: dict[int, tuple[set[int], int]] = {}  # fence -> what was under way, and until when it is through
    for now in range(20_000):
        ask = random.random() < 0.01
        number = int(dut.number.value)
        atomic = atomic - 1 if atomic else random.randrange(ATOMIC) if random.random() < 0.05 else 0
        await traffic.cycle(visits=visits, passes=passes, atomic=atomic > 0, ask=ask, other=visits)
        if ask and number not in asked:
            asked[number] = (traffic.under_way(), now + limit)
        elif ask:
            asked[number] = (asked[number][0] | traffic.under_way(), asked[number][1])
        for number, (things, until) in list(asked.items()):
            if traffic.through(number):
                assert not things & traffic.under_way(), "what the fence is for touches memory still"
                del asked[number]
            else:
                assert now < until, "a fence is through in bounded time"
    assert len(asked) <= 2


def test_roce_response_fence() -> None:
    run(
        "roce_response_fence",
        __file__,
        ports={
            "ask": Plain("input", "logic"),
            "number": Plain("output", "roce_pkg::fence_t"),
            "through": Plain("output", "roce_pkg::fence_t"),
            "visiting": Plain("input", "logic"),
            "reads": Plain("input", "memory_pkg::targets_t"),
            "passed": Plain("input", "memory_pkg::targets_t"),
            "executing": Plain("input", "logic"),
            "fencing": Plain("output", "logic"),
            "others_over": Plain("input", "logic"),
            "idle": Plain("output", "logic"),
        },
        random_state=True,
    )
