# SPDX-License-Identifier: Apache-2.0
"""stream_fifo: nothing lost, nothing reordered, one value a cycle, the latency and the room it promises."""

import os
import random

import cocotb
import pytest
from nacelle_tb.bench import Plain, Sink, Source, Type, run
from nacelle_tb.streams import StreamSink, StreamSource, start, wait_cycles

WORD = "logic [31:0]"
DEPTH = int(os.environ.get("DEPTH", "0"))


@cocotb.test()
@cocotb.parametrize(stall_in=[0.0, 0.5], stall_out=[0.0, 0.7])
async def order_is_kept(dut, stall_in: float, stall_out: float) -> None:
    source = StreamSource(dut, "in", WORD, stall_in)
    sink = StreamSink(dut, "out", WORD, stall_out)
    await start(dut)
    values = [random.getrandbits(32) for _ in range(4 * DEPTH + 100)]
    for value in values:
        source.send(value)
    assert [await sink.recv() for _ in values] == values
    await wait_cycles(dut, 2)
    assert int(dut.empty.value) == 1


@cocotb.test()
async def one_value_a_cycle(dut) -> None:
    source = StreamSource(dut, "in", WORD)
    sink = StreamSink(dut, "out", WORD)
    await start(dut)
    for value in range(3 * DEPTH):
        source.send(value)
    await source.drained()
    await sink._wait(lambda: len(sink.received) == 3 * DEPTH, 200)
    assert sink.cycles[-1] - sink.cycles[0] == 3 * DEPTH - 1


@cocotb.test()
async def latency_is_as_documented(dut) -> None:
    StreamSink(dut, "out", WORD, 1.0)
    source = StreamSource(dut, "in", WORD)
    await start(dut)
    await wait_cycles(dut, 2)
    source.send(1)
    await source.drained()  # the edge that took it
    cycles = 0
    while not int(dut.out_valid.value):
        await wait_cycles(dut, 1)
        cycles += 1
        assert cycles < 5
    assert cycles == (2 if DEPTH > 64 else 1)


@cocotb.test()
async def holds_depth_and_one(dut) -> None:
    StreamSink(dut, "out", WORD, 1.0)
    source = StreamSource(dut, "in", WORD)
    await start(dut)
    for value in range(DEPTH + 10):
        source.send(value)
    await wait_cycles(dut, DEPTH + 30)
    assert source.sent == DEPTH + 1
    assert int(dut.empty.value) == 0


@pytest.mark.parametrize("depth", [2, 16, 128])
def test_stream_fifo(depth: int) -> None:
    run(
        "stream_fifo",
        __file__,
        params={"T": Type(WORD), "DEPTH": depth},
        ports={"in": Sink(WORD), "out": Source(WORD), "empty": Plain("output", "logic")},
        env={"DEPTH": str(depth)},
    )
