# SPDX-License-Identifier: Apache-2.0
"""stream_store: what is committed comes out in order, what is rolled back never does."""

import random

import cocotb
from cocotb.triggers import FallingEdge, RisingEdge
from nacelle_tb.bench import Plain, Sink, Source, Type, run
from nacelle_tb.long import alternately
from nacelle_tb.streams import StreamSink, StreamSource, start, wait_cycles

WORD = "logic [31:0]"
DEPTH = 16


@cocotb.test()
@cocotb.parametrize(stall=alternately([0.0, 0.6]))
async def verdicts_are_kept(dut, stall: float) -> None:
    """Also verdicts in the cycle in which a value is taken, and with nothing to judge."""
    source = StreamSource(dut, "in", WORD, 0.4)
    sink = StreamSink(dut, "out", WORD, stall)
    dut.commit.value = dut.rollback.value = 0
    await start(dut)
    expected: list[int] = []
    pending: list[int] = []
    count = 0
    for _ in range(1500):
        await FallingEdge(dut.clk)
        if not source.busy and len(pending) < DEPTH:
            source.send(count)
            count += 1
        verdict = random.choice(["", "", "", "commit", "rollback"]) if len(pending) < DEPTH else "rollback"
        dut.commit.value = verdict == "commit"
        dut.rollback.value = verdict == "rollback"
        await RisingEdge(dut.clk)
        if int(dut.in_valid.value) and int(dut.in_ready.value):
            pending.append(int(dut.in_data.value))
        if verdict == "commit":
            expected += pending
        if verdict:
            pending.clear()
    await FallingEdge(dut.clk)
    dut.commit.value = dut.rollback.value = 0
    await wait_cycles(dut, 300)
    assert list(sink.received) == expected and len(expected) > 100
    assert int(dut.none.value)


@cocotb.test()
async def holds_depth_then_waits(dut) -> None:
    source = StreamSource(dut, "in", WORD)
    StreamSink(dut, "out", WORD, 1.0)
    dut.commit.value = dut.rollback.value = 0
    await start(dut)
    for value in range(DEPTH + 5):
        source.send(value)
    await wait_cycles(dut, 100)
    assert source.sent == DEPTH and not int(dut.in_ready.value) and not int(dut.out_valid.value)


def test_stream_store() -> None:
    run(
        "stream_store",
        __file__,
        params={"T": Type(WORD), "DEPTH": DEPTH},
        ports={
            "in": Sink(WORD),
            "commit": Plain("input", "logic"),
            "rollback": Plain("input", "logic"),
            "out": Source(WORD),
            "none": Plain("output", "logic"),
        },
        random_state=True,
    )
