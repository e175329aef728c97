# SPDX-License-Identifier: Apache-2.0
"""roce_qp_direct: commands pass in order and are answered once; a number of the connection manager's is refused, and one that
software set up is known from before its set-up until it is in RESET."""

from __future__ import annotations

import random

import cocotb
from cocotb.triggers import FallingEdge
from nacelle_tb.bench import Plain, Sink, Source, run
from nacelle_tb.long import alternately
from nacelle_tb.streams import StreamSink, StreamSource, start, wait_cycles
from nacelle_tb.svtypes import constant

QPS = 8
FIRST = 2
PKG = "roce_pkg::"
SETUP, MODIFY, RESET = (constant(PKG + name) for name in ("QP_SETUP", "QP_MODIFY", "QP_RESET"))
PORTS = {
    "command": Sink(PKG + "qp_cmd_t"),
    "answer": Source("logic"),
    "taken": Plain("input", f"logic [{QPS - 1}:0]"),
    "by_hand": Plain("output", f"logic [{QPS - 1}:0]"),
    "passed": Source(PKG + "qp_cmd_t"),
    "done": Sink("logic"),
    "idle": Plain("output", "logic"),
}


@cocotb.test()
@cocotb.parametrize(stall=alternately([0.0, 0.5]))
async def numbers_stay_apart(dut, stall: float) -> None:
    """Random commands against a model: also numbers that do not exist, set-ups of what is set up, and resets of what is not."""
    rng = random.Random(1)
    command = StreamSource(dut, "command", PKG + "qp_cmd_t", stall, noise=True)
    answer = StreamSink(dut, "answer", "logic", stall)
    passed = StreamSink(dut, "passed", PKG + "qp_cmd_t", stall)
    done = StreamSource(dut, "done", "logic", stall, noise=True)
    dut.taken.value = 0
    await start(dut)
    by_hand: set[int] = set()
    refused = claimed = 0
    for _ in range(400):
        qpn = rng.choice((0, 1, FIRST + QPS, 0xFFFFFF, *[rng.randrange(FIRST, FIRST + QPS) for _ in range(20)]))
        exists = FIRST <= qpn < FIRST + QPS
        taken = {n for n in range(FIRST, FIRST + QPS) if n not in by_hand and rng.random() < 0.3}
        op = rng.choice((SETUP, SETUP, MODIFY, RESET))
        await FallingEdge(dut.clk)
        dut.taken.value = sum(1 << n - FIRST for n in taken)
        command.send(op=op, qpn=qpn, state=3)
        if qpn in taken:
            assert await answer.recv(50) == 0
            assert not passed.received
            refused += 1
        else:
            assert (await passed.recv(50)).qpn == qpn
            told = int(dut.by_hand.value)
            before = by_hand | ({qpn} if op == SETUP and exists else set())
            assert told == sum(1 << n - FIRST for n in before), "known before it is set up"
            ok = exists and rng.random() < 0.8 and not (op == SETUP and qpn in by_hand)
            done.send(int(ok))
            assert await answer.recv(50) == ok
            if ok and op == SETUP:
                by_hand.add(qpn)
                claimed += 1
            elif ok and op == RESET:
                by_hand.discard(qpn)
        await wait_cycles(dut, 2)
        assert int(dut.by_hand.value) == sum(1 << n - FIRST for n in by_hand)
        assert int(dut.idle.value)
    assert refused > 20 and claimed > 20


def test_roce_qp_direct() -> None:
    run("roce_qp_direct", __file__, params={"QPS": QPS}, ports=PORTS, random_state=True)
