# SPDX-License-Identifier: Apache-2.0
"""roce_qp_rx: read, change, write back, one operation every 2 cycles, also on the same QP; against a dictionary."""

from __future__ import annotations

import os
import random

import cocotb
import pytest
from cocotb.triggers import FallingEdge, RisingEdge, Timer
from nacelle_tb.bench import Plain, run
from nacelle_tb.streams import start
from nacelle_tb.svtypes import constant, struct

STATE = "roce_rx_pkg::qp_rx_t"
VIEW = "roce_rx_pkg::qp_rx_view_t"
ATTR = "roce_rx_pkg::qp_rx_attr_t"
SLOT = "roce_pkg::qp_index_t"


def in_error(word: int) -> int:
    """The state `word`, but for its QP being in error."""
    fields = vars(struct(STATE).unpack(word))
    return struct(STATE).pack(**{**fields, "state": constant("roce_pkg::QPS_ERR")})


async def ready(dut) -> int:
    """Resets; how many cycles until the table is ready."""
    dut.write.value = 0
    dut.fails.value = 0
    dut.read_slot.value = 0
    dut.view_slot.value = 0
    dut.attr_slot.value = 0
    dut.attr_write.value = 0
    await start(dut)
    cycles = 0
    while not int(dut.ready.value):
        await RisingEdge(dut.clk)
        cycles += 1
    return cycles


@cocotb.test()
async def every_read_sees_the_newest_write(dut) -> None:
    qps = int(os.environ["NACELLE_QPS"])
    assert qps <= await ready(dut) <= qps + 2
    width = struct(STATE).width
    table = dict.fromkeys(range(qps), 0)
    slots = [0, 1, qps // 2, qps - 1]
    cycle, reads, writes, state = 0, {}, {}, {}
    next_read, written = 0, None
    for cycle in range(4000):
        await FallingEdge(dut.clk)
        # It is in error after all: seen by a read of the cycle in which it was written, and by every later one.
        dut.fails.value = int(fails := written is not None and random.random() < 0.3)
        if fails:
            table[written] = in_error(table[written])
        await Timer(1, "ps")
        if cycle - 1 in reads:
            slot = reads.pop(cycle - 1)
            state[slot] = int(dut.state.value)
            assert state[slot] == table[slot], f"QP {slot} in cycle {cycle}"
            writes[cycle + 1] = slot
        written = slot = writes.pop(cycle, None)
        dut.write.value = int(slot is not None)
        dut.write_slot.value, dut.write_state.value = (
            random.choice(slots),
            random.getrandbits(width),
        )
        if slot is not None:
            table[slot] = random.getrandbits(width)
            dut.write_slot.value = slot
            dut.write_state.value = table[slot]
        dut.read_slot.value = random.randrange(qps)
        if cycle >= next_read:
            reads[cycle] = random.choice(slots)
            dut.read_slot.value = reads[cycle]
            next_read = cycle + random.choice((2, 2, 2, 3, 4, 5))


@cocotb.test()
async def a_reset_forgets(dut) -> None:
    """Also what was written last, which is forwarded."""
    await ready(dut)
    await FallingEdge(dut.clk)
    dut.write.value, dut.write_slot.value, dut.write_state.value = 1, 1, (1 << struct(STATE).width) - 1
    await FallingEdge(dut.clk)
    dut.write.value, dut.read_slot.value, dut.view_slot.value = 0, 1, 1
    for _ in range(5):
        await FallingEdge(dut.clk)
    dut.rst.value = 1
    for _ in range(3):
        await FallingEdge(dut.clk)
    dut.rst.value = 0
    while not int(dut.ready.value):
        await FallingEdge(dut.clk)
    for _ in range(5):
        await FallingEdge(dut.clk)
        assert int(dut.state.value) == int(dut.view.value) == 0


@cocotb.test()
async def the_view_follows(dut) -> None:
    await ready(dut)
    for _ in range(50):
        value = random.getrandbits(struct(STATE).width)
        await FallingEdge(dut.clk)
        dut.write.value, dut.write_slot.value, dut.write_state.value = 1, 1, value
        await FallingEdge(dut.clk)
        dut.write.value, dut.view_slot.value = 0, 1
        await FallingEdge(dut.clk)
        view, state = struct(VIEW).unpack(int(dut.view.value)), struct(STATE).unpack(value)
        assert (view.state, view.rq_head) == (state.state, state.rq_head)


@cocotb.test()
async def attributes_stay_until_they_are_written_again(dut) -> None:
    qps = int(os.environ["NACELLE_QPS"])
    await ready(dut)
    table: dict[int, int] = {}
    asked = None
    for _ in range(500):
        await FallingEdge(dut.clk)
        if asked is not None:
            assert int(dut.attr.value) == table[asked]
        writes = random.random() < 0.3
        dut.attr_write.value = int(writes)
        slot, value = random.randrange(qps), random.getrandbits(struct(ATTR).width)
        dut.attr_write_slot.value, dut.attr_new.value = slot, value
        asked = random.choice(list(table)) if table else None
        if writes:
            asked = None if asked == slot else asked  # the result in the cycle of the write itself is undefined
            table[slot] = value
        if asked is not None:
            dut.attr_slot.value = asked


@pytest.mark.parametrize("qps", [2, 16])
def test_roce_qp_rx(qps: int) -> None:
    run(
        "roce_qp_rx",
        __file__,
        params={"QPS": qps},
        ports={
            "ready": Plain("output", "logic"), "read_slot": Plain("input", SLOT), "state": Plain("output", STATE),
            "write": Plain("input", "logic"), "write_slot": Plain("input", SLOT), "write_state": Plain("input", STATE),
            "fails": Plain("input", "logic"),
            "view_slot": Plain("input", SLOT), "view": Plain("output", VIEW),
            "attr_slot": Plain("input", SLOT), "attr": Plain("output", ATTR), "attr_write": Plain("input", "logic"),
            "attr_write_slot": Plain("input", SLOT), "attr_new": Plain("input", ATTR),
        },
        env={"NACELLE_QPS": str(qps)},
        random_state=True,
    )  # fmt: skip
