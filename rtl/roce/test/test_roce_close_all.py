# SPDX-License-Identifier: Apache-2.0
"""roce_close_all: each connection is told when addresses go, and once more when there is no more time; then queue pairs that use
one get a command."""

from __future__ import annotations

import cocotb
from nacelle_tb.bench import Plain, Sink, Source, run
from nacelle_tb.long import alternately
from nacelle_tb.streams import StreamSink, StreamSource, start, wait_cycles
from nacelle_tb.svtypes import constant, struct

QPS, FIRST = 8, 2
CLOSE, CMD = "roce_pkg::close_t", "roce_pkg::qp_cmd_t"
EVERY = list(range(FIRST, FIRST + QPS))


class Bench:
    """The module; each command is answered."""

    def __init__(self, dut, stall: float) -> None:
        self.dut = dut
        self.closing = StreamSink(dut, "closing", CLOSE, stall)
        self.command = StreamSink(dut, "command", CMD, stall)
        self.answer = StreamSource(dut, "answer", "logic", stall)
        dut.leaving.value = dut.abandon.value = dut.made.value = 0

    async def start(self, kinds: list[int]) -> None:
        """With a queue pair of each of these addresses (own_address_e)."""
        await start(self.dut)
        for qpn, own in zip(EVERY, kinds, strict=True):
            self.dut.changed.value = struct(CMD).pack(qpn=qpn, attr={"own": own})
            self.dut.made.value = 1
            await wait_cycles(self.dut, 1)
        self.dut.made.value = 0
        self.dut.changed.value = struct(CMD).pack(qpn=FIRST, attr={"own": 3 - kinds[0]})  # without `made`: nothing

    async def settle(self) -> tuple[list[int], list[int]]:
        """What was closed, and what was commanded."""
        commanded = []
        for _ in range(4000):
            await wait_cycles(self.dut, 1)
            while self.command.received:
                got = await self.command.recv()
                assert (got.op, got.state) == (constant("roce_pkg::QP_MODIFY"), constant("roce_pkg::QPS_ERR"))
                commanded.append(got.qpn)
                self.answer.send(len(commanded) % 2)  # whether it is done or refused
            if int(self.dut.idle.value) and not self.answer.busy:
                break
        assert all(item.lost for item in self.closing.received)
        closed = [item.qpn for item in self.closing.received]
        self.closing.received.clear()
        return closed, commanded


@cocotb.test()
@cocotb.parametrize(stall=alternately([0.0, 0.6]))
async def two_rounds(dut, stall: float) -> None:
    bench = Bench(dut, stall)
    kinds = [0, 2, 1, 1, 0, 2, 1, 0]
    await bench.start(kinds)
    for leaving in range(1, 8):
        assert await bench.settle() == ([], [])
        dut.leaving.value = leaving
        assert await bench.settle() == (EVERY, [])
        assert await bench.settle() == ([], []) and not int(dut.abandoned.value)
        dut.abandon.value = 1
        assert await bench.settle() == (EVERY, [qpn for qpn, own in zip(EVERY, kinds, strict=True) if leaving >> own & 1])
        assert int(dut.abandoned.value)
        dut.leaving.value = dut.abandon.value = 0
        await wait_cycles(dut, 3)
        assert not int(dut.abandoned.value)


@cocotb.test()
async def no_time_at_all(dut) -> None:
    """`abandon` comes with `close`, or during the first round: the second one is complete all the same."""
    bench = Bench(dut, 0.0)
    await bench.start([0] * QPS)
    dut.leaving.value = dut.abandon.value = 1
    assert await bench.settle() == (EVERY, EVERY)
    dut.leaving.value = dut.abandon.value = 0
    assert await bench.settle() == ([], [])
    dut.leaving.value = 1
    await wait_cycles(dut, 4)
    dut.abandon.value = 1
    closed, commanded = await bench.settle()
    assert closed == EVERY * 2 and commanded == EVERY and int(dut.abandoned.value)


def test_roce_close_all() -> None:
    run(
        "roce_close_all",
        __file__,
        params={"QPS": QPS},
        ports={
            "leaving": Plain("input", "packet_pkg::own_set_t"),
            "abandon": Plain("input", "logic"),
            "abandoned": Plain("output", "logic"),
            "made": Plain("input", "logic"),
            "changed": Plain("input", CMD),
            "closing": Source(CLOSE),
            "command": Source(CMD),
            "answer": Sink("logic"),
            "idle": Plain("output", "logic"),
        },
    )
