# SPDX-License-Identifier: Apache-2.0
"""roce_responder_window: which packets ahead have arrived, and the first missing one; an operation every 2 cycles. Against sets."""

from __future__ import annotations

import random
from collections import deque

import cocotb
from cocotb.triggers import FallingEdge
from nacelle_tb.bench import Plain, run
from nacelle_tb.streams import start

QPS, WINDOW, MAX_PSN = 4, 128, 1 << 24
SLOT, PSN = "roce_pkg::qp_index_t", "roce_wire_pkg::psn_t"


@cocotb.test()
async def the_window_moves_on_past_what_is_remembered(dut) -> None:
    for name in ("read_slot", "psn", "next", "write", "write_slot", "clear", "remember", "advance"):
        getattr(dut, name).value = 0
    await start(dut)
    expected: list[int | None] = [None] * QPS  # by QP: the PSN expected; None: not cleared yet
    kept: list[set[int]] = [set() for _ in range(QPS)]
    pending: deque[tuple[int, int, int, int] | None] = deque([None, None])  # slot, psn, next, what to do
    runs, odd = [], 0
    for cycle in range(12_000):
        await FallingEdge(dut.clk)
        dut.write.value = 0
        now = pending.popleft()
        if now is not None:
            slot, psn, after, _ = now
            dut.write.value, dut.write_slot.value = 1, slot
            dut.clear.value = dut.remember.value = dut.advance.value = 0
            if expected[slot] is None or random.random() < 0.005:
                expected[slot], kept[slot] = random.choice((random.getrandbits(24), 0xFFFFF0)), set()
                dut.clear.value = 1
            elif psn == expected[slot]:
                want = after
                while want in kept[slot]:
                    want = (want + 1) % MAX_PSN
                left = {p for p in kept[slot] if (p - want) % MAX_PSN < WINDOW}
                assert int(dut.expected.value) == want, f"{int(dut.expected.value):#x} is not {want:#x}"
                assert bool(int(dut.left.value)) == bool(left)
                runs.append((want - after) % MAX_PSN)
                dut.advance.value = 1
                expected[slot], kept[slot] = want, left
            elif 0 < (psn - expected[slot]) % MAX_PSN < WINDOW:
                assert bool(int(dut.present.value)) == (psn in kept[slot])
                if random.random() < 0.9:
                    dut.remember.value = 1
                    kept[slot].add(psn)
        odd ^= 1
        if odd or random.random() < 0.2:  # an operation at most every second cycle
            pending.append(None)
            odd = 1 if not odd else odd
            continue
        slot = random.randrange(QPS) if random.random() < 0.5 else 0
        base = expected[slot] or 0
        missing = next(a for a in range(1, WINDOW + 1) if (base + a) % MAX_PSN not in kept[slot]) % WINDOW
        ahead = random.choice((1, 2, missing, missing, random.randrange(WINDOW), 127))
        if random.random() < (0.2, 0.01)[cycle // 1000 % 2]:  # few gaps are closed: long runs
            ahead = 0
        psn = (base + ahead) % MAX_PSN
        # A READ takes more than one PSN; the stored packets are behind its last.
        span = random.choice((1, 1, 1, 2, 100, 128, 5000))
        if any((p - base) % MAX_PSN < span for p in kept[slot]) or len([p for p in pending if p]) > 0:
            span = 1
        dut.read_slot.value, dut.psn.value, dut.next.value = slot, psn, (psn + span) % MAX_PSN
        pending.append((slot, psn, (psn + span) % MAX_PSN, 0))
    assert len(runs) > 300 and max(runs) > 20


def test_roce_receive_window() -> None:
    run(
        "roce_responder_window",
        __file__,
        params={"QPS": QPS},
        ports={
            "read_slot": Plain("input", SLOT), "psn": Plain("input", PSN), "next": Plain("input", PSN),
            "present": Plain("output", "logic"), "expected": Plain("output", PSN), "left": Plain("output", "logic"),
            "write": Plain("input", "logic"), "write_slot": Plain("input", SLOT), "clear": Plain("input", "logic"),
            "remember": Plain("input", "logic"), "advance": Plain("input", "logic"),
        },
    )  # fmt: skip
