# SPDX-License-Identifier: Apache-2.0
"""axis_share: nothing is lost or mixed, each has its half, and who was silent has no claim to more than the longest packet."""

from __future__ import annotations

import random

import cocotb
from nacelle_tb.bench import AxisSink as AxisSinkPort
from nacelle_tb.bench import AxisSource as AxisSourcePort
from nacelle_tb.bench import Several, run
from nacelle_tb.long import alternately
from nacelle_tb.streams import AxisSink, AxisSource, start, wait_cycles

LONGEST = 1600
BEATS = LONGEST // 8


def packet(side: int, beats: int) -> bytes:
    return bytes([side]) + random.randbytes(8 * beats - 1)


def shares(sink: AxisSink) -> list[int]:
    return [sum(len(data) // 8 for data, _ in sink.packets if data[0] == side) for side in (0, 1)]


@cocotb.test()
@cocotb.parametrize(stall=alternately([0.0, 0.3]), pause=[0.0, 0.3])
async def nothing_is_lost_or_mixed(dut, stall: float, pause: float) -> None:
    sources, sink = [AxisSource(dut, f"in{i}", pause) for i in (0, 1)], AxisSink(dut, "out", stall)
    await start(dut)
    wanted: list[list[tuple[bytes, int]]] = [[], []]
    for _ in range(200):
        side, bad = random.randrange(2), random.random() < 0.2
        data = bytes([side]) + random.randbytes(random.randrange(200))
        wanted[side].append((data, int(bad)))
        sources[side].send(data, bad)
        if random.random() < 0.1:
            await wait_cycles(dut, random.randrange(100))
    for _ in range(300):
        await wait_cycles(dut, 50)
        if len(sink.packets) == 200:
            break
    for side in (0, 1):
        assert [item for item in sink.packets if item[0][0] == side] == wanted[side]


@cocotb.test()
@cocotb.parametrize(first=[1, 7, BEATS], second=[1, 20, BEATS], pause=[0.0, 0.2])
async def each_has_half(dut, first: int, second: int, pause: float) -> None:
    """Packets of these many beats, without an end; gaps of a cycle or so are no reason to lose the turn."""
    sources, sink = [AxisSource(dut, f"in{i}") for i in (0, 1)], AxisSink(dut, "out")
    await start(dut)
    total = 20 * BEATS
    for side, beats in ((0, first), (1, second)):
        for _ in range(total // beats):
            sources[side].send(packet(side, beats))
    sources[0].stall = pause
    await wait_cycles(dut, total)
    mine, theirs = shares(sink)
    if not pause:
        assert abs(mine - theirs) <= 2 * BEATS
    else:  # it cannot fill half of the line with gaps in its packets, which cost the other as much
        assert mine > 0.3 * (mine + theirs) and theirs > 0.3 * (mine + theirs)


@cocotb.test()
async def a_stream_alone_has_the_line(dut) -> None:
    """No bubble, whatever it has had before."""
    sources, sink = [AxisSource(dut, f"in{i}") for i in (0, 1)], AxisSink(dut, "out")
    await start(dut)
    for side in (0, 1, 0):
        sink.spans.clear()
        for _ in range(60):
            sources[side].send(packet(side, random.randrange(1, 30)))
        beats = sink.beats
        await sources[side].drained()
        await wait_cycles(dut, 5)
        assert sink.spans[-1][1] - sink.spans[0][0] + 1 == sink.beats - beats


@cocotb.test()
@cocotb.parametrize(silent=[0, 1])
async def who_was_silent_has_no_claim_to_more(dut, silent: int) -> None:
    sources, sink = [AxisSource(dut, f"in{i}") for i in (0, 1)], AxisSink(dut, "out")
    await start(dut)
    for _ in range(200):
        sources[1 - silent].send(packet(1 - silent, 20))
    await wait_cycles(dut, 10 * BEATS)
    sink.packets.clear()
    for _ in range(100):
        sources[silent].send(packet(silent, 20))
    await wait_cycles(dut, 4 * BEATS)
    got = shares(sink)
    assert BEATS - 40 <= got[silent] - got[1 - silent] <= BEATS + 40, got


def test_axis_share() -> None:
    run(
        "axis_share",
        __file__,
        params={"DATA_W": 64, "LONGEST": LONGEST},
        ports={"in": Several(AxisSinkPort(64), 2), "out": AxisSourcePort(64)},
    )
