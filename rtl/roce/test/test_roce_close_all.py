# SPDX-License-Identifier: Apache-2.0
"""roce_close_all: each queue pair is closed when the address goes, and once more, with a command, when there is no more time."""

from __future__ import annotations

import cocotb
from nacelle_tb.bench import Plain, Sink, Source, run
from nacelle_tb.streams import StreamSink, StreamSource, start, wait_cycles
from nacelle_tb.svtypes import constant

QPS, FIRST = 8, 2
QPN, CMD = "roce_wire_pkg::qpn_t", "roce_pkg::qp_cmd_t"


class Bench:
    """The module; each command is answered."""

    def __init__(self, dut, stall: float) -> None:
        self.dut = dut
        self.closing = StreamSink(dut, "closing", QPN, stall)
        self.command = StreamSink(dut, "command", CMD, stall)
        self.answer = StreamSource(dut, "answer", "logic", stall)
        dut.close.value = dut.abandon.value = 0

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
        closed = list(self.closing.received)
        self.closing.received.clear()
        return closed, commanded


@cocotb.test()
@cocotb.parametrize(stall=[0.0, 0.6])
async def two_rounds(dut, stall: float) -> None:
    bench = Bench(dut, stall)
    await start(dut)
    every = list(range(FIRST, FIRST + QPS))
    for _ in range(3):
        assert await bench.settle() == ([], [])
        dut.close.value = 1
        assert await bench.settle() == (every, [])
        assert await bench.settle() == ([], []) and not int(dut.abandoned.value)
        dut.abandon.value = 1
        assert await bench.settle() == (every, every)
        assert int(dut.abandoned.value)
        dut.close.value = dut.abandon.value = 0
        await wait_cycles(dut, 3)
        assert not int(dut.abandoned.value)


@cocotb.test()
async def no_time_at_all(dut) -> None:
    """`abandon` comes with `close`, or during the first round: the second one is complete all the same."""
    bench = Bench(dut, 0.0)
    await start(dut)
    every = list(range(FIRST, FIRST + QPS))
    dut.close.value = dut.abandon.value = 1
    assert await bench.settle() == (every, every)
    dut.close.value = dut.abandon.value = 0
    assert await bench.settle() == ([], [])
    dut.close.value = 1
    await wait_cycles(dut, 4)
    dut.abandon.value = 1
    closed, commanded = await bench.settle()
    assert closed == every * 2 and commanded == every and int(dut.abandoned.value)


def test_roce_close_all() -> None:
    run(
        "roce_close_all",
        __file__,
        params={"QPS": QPS},
        ports={
            "close": Plain("input", "logic"),
            "abandon": Plain("input", "logic"),
            "abandoned": Plain("output", "logic"),
            "closing": Source(QPN),
            "command": Source(CMD),
            "answer": Sink("logic"),
            "idle": Plain("output", "logic"),
        },
    )
