# SPDX-License-Identifier: Apache-2.0
"""stream_arbiter and axis_arbiter: every packet whole, in order of its input; fair; one value a cycle."""

import os
import random

import cocotb
from nacelle_tb.bench import AxisSink as AxisSinkPort
from nacelle_tb.bench import AxisSource as AxisSourcePort
from nacelle_tb.bench import Several, run
from nacelle_tb.streams import AxisSink, AxisSource, start

N = 3


def packets_of(source: int, count: int, size: int | None = None) -> list[bytes]:
    """Packets with their source in every byte."""
    return [bytes([source]) * (size or random.randrange(1, 40)) + bytes([i]) for i in range(count)]


@cocotb.test()
@cocotb.parametrize(stall_in=[0.0, 0.5], stall_out=[0.0, 0.5])
async def packets_stay_whole_and_in_order(dut, stall_in: float, stall_out: float) -> None:
    sources = [AxisSource(dut, f"in{i}", stall_in) for i in range(N)]
    sink = AxisSink(dut, "out", stall_out)
    await start(dut)
    expected = [packets_of(i, 40) for i in range(N)]
    for source, packets in zip(sources, expected, strict=True):
        for packet in packets:
            source.send(packet)
    for _ in range(40 * N):
        packet = await sink.recv()
        assert packet == expected[packet[0]].pop(0)
    assert not any(expected)


@cocotb.test()
async def fair_and_without_bubbles(dut) -> None:
    sources = [AxisSource(dut, f"in{i}") for i in range(N)]
    sink = AxisSink(dut, "out")
    await start(dut)
    for i, source in enumerate(sources):
        for packet in packets_of(i, 30, size=15):
            source.send(packet)
    await sink._wait(lambda: len(sink.packets) == 30 * N, 2000)
    order = [packet[0] for packet, _ in sink.packets]
    assert all(set(order[k : k + N]) == set(range(N)) for k in range(0, len(order), N)), order
    assert sink.spans[-1][1] - sink.spans[0][0] + 1 == sink.beats


@cocotb.test()
async def a_lone_input_gets_everything(dut) -> None:
    sources = [AxisSource(dut, f"in{i}") for i in range(N)]
    sink = AxisSink(dut, "out")
    await start(dut)
    for packet in packets_of(1, 50, size=7):
        sources[1].send(packet)
    await sink._wait(lambda: len(sink.packets) == 50, 500)
    assert sink.spans[-1][1] - sink.spans[0][0] + 1 == sink.beats


def test_axis_arbiter() -> None:
    run(
        "axis_arbiter",
        __file__,
        params={"DATA_W": 64, "N": N},
        ports={"in": Several(AxisSinkPort(64), N), "out": AxisSourcePort(64)},
        env=dict(os.environ),
    )
