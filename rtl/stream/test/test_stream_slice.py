# SPDX-License-Identifier: Apache-2.0
"""stream_slice and stream_skid: nothing lost, nothing reordered, one value a cycle."""

import random

import cocotb
import pytest
from nacelle_tb.bench import Sink, Source, Type, run
from nacelle_tb.streams import StreamSink, StreamSource, start

WORD = "logic [31:0]"


@cocotb.test()
@cocotb.parametrize(stall_in=[0.0, 0.4], stall_out=[0.0, 0.6])
async def order_is_kept(dut, stall_in: float, stall_out: float) -> None:
    source = StreamSource(dut, "in", WORD, stall_in)
    sink = StreamSink(dut, "out", WORD, stall_out)
    await start(dut)
    values = [random.getrandbits(32) for _ in range(300)]
    for value in values:
        source.send(value)
    assert [await sink.recv() for _ in values] == values


@cocotb.test()
async def one_value_a_cycle(dut) -> None:
    source = StreamSource(dut, "in", WORD)
    sink = StreamSink(dut, "out", WORD)
    await start(dut)
    for value in range(100):
        source.send(value)
    await source.drained()
    await sink._wait(lambda: len(sink.received) == 100, 200)
    assert sink.cycles[-1] - sink.cycles[0] == 99


@pytest.mark.parametrize("skid", [0, 1])
def test_stream_slice(skid: int) -> None:
    run("stream_slice", __file__, params={"T": Type(WORD), "SKID": skid}, ports={"in": Sink(WORD), "out": Source(WORD)})


def test_stream_skid() -> None:
    run("stream_skid", __file__, params={"T": Type(WORD)}, ports={"in": Sink(WORD), "out": Source(WORD)})
