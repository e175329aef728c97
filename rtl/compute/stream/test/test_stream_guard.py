# SPDX-License-Identifier: Apache-2.0
"""stream_guard with kernels that keep the rules and kernels that do not: the test is the kernel. Whatever it does, each frame
leaves once, as the kernel gave it or round it, or is counted as lost, and the frames behind it pass."""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

import cocotb
import pytest
from nacelle_tb.bench import AxisSink as AxisSinkPort
from nacelle_tb.bench import AxisSource as AxisSourcePort
from nacelle_tb.bench import Plain, run
from nacelle_tb.streams import AxisSink, AxisSource, pulses, start, wait_cycles
from nacelle_tb.svtypes import constant, struct
from nacelle_tb.widths import WIDTHS, at_width

BYTES = int(os.environ.get("WIDTH", "64")) // 8
MAX_FRAME = 300
MIN_FRAME = 14
LIMIT = 400
CAUSES = {name: constant(f"stream_pkg::CUT_{name}") for name in ("LATE", "EXTRA", "LONG", "MALFORMED")}


class Bench:
    """The frames on both sides, and what the kernel has got."""

    def __init__(self, dut: Any, stall: float = 0.0) -> None:
        self.dut = dut
        self.source, self.sink = AxisSource(dut, "in", stall), AxisSink(dut, "out", stall)
        self.to, self.back = AxisSink(dut, "to", stall), AxisSource(dut, "from", stall)
        self.counts: dict[str, int] = {"given": 0, "round": 0, "dropped": 0, "lost": 0}
        self.sent: list[bytes] = []
        dut.through.value, dut.restart.value, dut.limit.value = 1, 0, LIMIT

    async def begin(self) -> Bench:
        await start(self.dut)
        cocotb.start_soon(self._count())
        return self

    async def _count(self) -> None:
        events = struct("stream_pkg::guard_events_t")
        async for word in pulses(self.dut.clk, self.dut.events):
            for name, value in vars(events.unpack(word)).items():
                self.counts[name] += value

    def send(self, length: int) -> bytes:
        """A frame with its number."""
        frame = len(self.sent).to_bytes(2, "little") + random.randbytes(length - 2)
        self.sent.append(frame)
        self.source.send(frame)
        return frame

    async def kernel(self, number: int, change: Any = lambda frame: frame) -> None:
        """A kernel that keeps the rules, for so many frames."""
        for _ in range(number):
            self.back.send(change(await self.to.recv()))

    def left(self) -> list[tuple[bytes, bool]]:
        """Every frame on `out`, and whether it is marked bad."""
        return [(bytes(packet), bool(user)) for packet, user in self.sink.packets]

    async def settle(self, cycles: int = 3000) -> None:
        await self.source.drained()
        await wait_cycles(self.dut, cycles)

    def check_cut(self, cause: str, passed: int, bad: int) -> None:
        """The kernel was cut off for this. `passed` frames had left it; then there was one that is marked bad, if `bad`; all others
        went round it, in order, but for those that are counted as lost."""
        assert int(self.dut.cut.value) and int(self.dut.cause.value) == CAUSES[cause]
        left = self.left()
        assert [user for _, user in left] == [False] * passed + [True] * bad + [False] * (len(left) - passed - bad)
        good = [frame for frame, user in left if not user]
        lost = self.counts["lost"]
        assert good == self.sent[:passed] + self.sent[passed + lost :]
        assert lost > 0 or cause == "EXTRA"
        assert self.counts["given"] == passed + lost
        assert self.counts["round"] == len(good) - passed
        assert int(self.dut.idle.value)


@cocotb.test()
@cocotb.parametrize(stall=[0.0, 0.4])
async def what_the_kernel_makes_of_a_frame_leaves(dut, stall: float) -> None:
    bench = await Bench(dut, stall).begin()
    dut.limit.value = 0
    lengths = [MIN_FRAME, MAX_FRAME, *(random.randint(MIN_FRAME, MAX_FRAME) for _ in range(80))]
    for length in lengths:
        bench.send(length)

    def change(frame: bytes) -> bytes:
        return frame[:2] + bytes(byte ^ 0x5A for byte in frame[2:]) + bytes(min(5, MAX_FRAME - len(frame)))

    cocotb.start_soon(bench.kernel(len(lengths), change))
    for frame in bench.sent:
        assert await bench.sink.recv() == change(frame)
    assert bench.counts == {"given": len(lengths), "round": 0, "dropped": 0, "lost": 0}


@cocotb.test()
async def a_fast_kernel_has_line_rate(dut) -> None:
    """One beat a cycle. The frames that the kernel has inside are what Python needs to turn them round."""
    bench = await Bench(dut).begin()
    dut.limit.value = 0
    for length in (60, 60, 300, 14) * 50:
        bench.send(length)
    cocotb.start_soon(bench.kernel(200))
    await bench.sink._wait(lambda: len(bench.sink.packets) == 200, 50_000)
    spans = list(bench.sink.spans)
    beats = sum(-(-len(frame) // BYTES) for frame in bench.sent)
    assert spans[-1][1] - spans[0][0] + 1 <= beats + 40


@cocotb.test()
async def frames_that_go_round_stay_in_order(dut) -> None:
    bench = await Bench(dut, 0.2).begin()
    dut.limit.value = 0
    random_ = random.Random(1)

    async def switch() -> None:
        while True:
            dut.through.value = random_.getrandbits(1)
            await wait_cycles(dut, random_.randint(1, 60))

    async def kernel() -> None:
        while True:
            bench.back.send(await bench.to.recv(100_000))

    cocotb.start_soon(switch())
    cocotb.start_soon(kernel())
    for _ in range(150):
        bench.send(random_.randint(MIN_FRAME, MAX_FRAME))
    for frame in bench.sent:
        assert await bench.sink.recv() == frame
    assert bench.counts["given"] + bench.counts["round"] == 150
    assert min(bench.counts["given"], bench.counts["round"]) > 20


@cocotb.test()
async def a_kernel_drops_frames(dut) -> None:
    bench = await Bench(dut).begin()
    for _ in range(20):
        bench.send(100)
    for number in range(20):
        bench.back.send(await bench.to.recv(), bad=number % 3 == 0)
    await bench.settle()
    assert [user for _, user in bench.left()] == [number % 3 == 0 for number in range(20)]
    assert bench.counts["dropped"] == 7 and not int(dut.cut.value)


@cocotb.test()
@cocotb.parametrize(taken=[0, 1, 5])
async def a_kernel_that_stops(dut, taken: int) -> None:
    """It takes some frames and gives nothing, or takes nothing."""
    bench = await Bench(dut).begin()
    bench.to.stall = 0.0
    if not taken:
        bench.to.stall = 1.0
        await wait_cycles(dut, 20)
    for _ in range(30):
        bench.send(random.randint(MIN_FRAME, MAX_FRAME))
    if taken:
        await bench.kernel(taken)
    await bench.settle()
    if taken:
        bench.check_cut("LATE", taken, 0)
    else:
        assert int(dut.cut.value) and int(dut.cause.value) == CAUSES["LATE"]
        assert bench.left() == [(frame, False) for frame in bench.sent]  # nothing was given to it
        assert bench.counts == {"given": 0, "round": 30, "dropped": 0, "lost": 0}


@cocotb.test()
@cocotb.parametrize(beats=[1, 2])
async def a_kernel_that_stops_in_a_frame(dut, beats: int) -> None:
    """It gives the begin of a frame, and no more."""
    bench = await Bench(dut).begin()
    for _ in range(10):
        bench.send(MAX_FRAME)
    await bench.kernel(3)
    begin = await bench.to.recv()
    for beat in range(beats):
        piece = begin[beat * BYTES : (beat + 1) * BYTES]
        bench.back._enqueue((int.from_bytes(piece, "little"), (1 << BYTES) - 1, 0, 0))
    await bench.settle()
    bench.check_cut("LATE", 3, 1)


@cocotb.test()
async def a_kernel_that_trickles(dut) -> None:
    """A beat now and then is no progress: each frame must leave within the limit."""
    if BYTES > 8:
        return
    bench = await Bench(dut).begin()
    dut.limit.value = 100
    for _ in range(10):
        bench.send(MAX_FRAME)
    frame = await bench.to.recv()
    for at in range(0, len(frame) - BYTES, BYTES):
        bench.back._enqueue((int.from_bytes(frame[at : at + BYTES], "little"), (1 << BYTES) - 1, 0, 0))
        await wait_cycles(dut, 30)
        if int(dut.cut.value):
            break
    bench.back._queue.clear()
    await bench.settle()
    bench.check_cut("LATE", 0, 1)


@cocotb.test()
async def a_frame_that_never_ends(dut) -> None:
    bench = await Bench(dut).begin()
    for _ in range(10):
        bench.send(100)
    await bench.kernel(2)
    word = int.from_bytes((await bench.to.recv())[:BYTES], "little")
    for _ in range(200):
        bench.back._enqueue((word, (1 << BYTES) - 1, 0, 0))
    await bench.settle()
    bench.check_cut("LONG", 2, 1)
    bad = next(frame for frame, user in bench.left() if user)
    assert len(bad) <= MAX_FRAME + BYTES


@cocotb.test()
async def a_frame_that_is_too_long_by_a_byte(dut) -> None:
    bench = await Bench(dut).begin()
    for _ in range(6):
        bench.send(200)
    first = await bench.to.recv()
    bench.back.send(first + bytes(MAX_FRAME - len(first)))
    bench.back.send((await bench.to.recv()).ljust(MAX_FRAME + 1, b"\0"))
    await bench.settle()
    assert int(dut.cause.value) == CAUSES["LONG"]
    left = bench.left()
    assert left[0] == (bench.sent[0].ljust(MAX_FRAME, b"\0"), False) and left[1][1]
    assert [frame for frame, user in left[2:]] == bench.sent[1 + bench.counts["lost"] :]


@cocotb.test()
@cocotb.parametrize(more=[1, 3])
async def frames_that_nobody_gave_it(dut, more: int) -> None:
    """A flood: frames out of nothing."""
    bench = await Bench(dut).begin()
    for _ in range(5):
        bench.send(60)
    await bench.kernel(5)
    await bench.settle(200)
    for _ in range(more):
        bench.back.send(bytes(60))
    await bench.settle(200)
    for _ in range(5):
        bench.send(60)
    await bench.settle()
    bench.check_cut("EXTRA", 5, 0)


@cocotb.test()
async def frames_without_an_end_between_them(dut) -> None:
    """Two frames as one: that is one frame that is too long, or then a frame that never leaves."""
    bench = await Bench(dut).begin()
    for _ in range(8):
        bench.send(100)
    bench.back.send(await bench.to.recv() + await bench.to.recv())
    await bench.settle()
    assert int(dut.cut.value) and int(dut.cause.value) == CAUSES["LATE"]
    left = bench.left()
    assert [frame for frame, _ in left[1:]] == bench.sent[1 + bench.counts["lost"] :]
    assert bench.counts["given"] == 1 + bench.counts["lost"]


@cocotb.test()
@cocotb.parametrize(kind=["empty", "hole", "gap", "short"])
async def malformed_beats(dut, kind: str) -> None:
    bench = await Bench(dut).begin()
    for _ in range(5):
        bench.send(100)
    frame = await bench.to.recv()
    word, full = int.from_bytes(frame[:BYTES], "little"), (1 << BYTES) - 1
    keep, last = {"empty": (0, 1), "hole": (full ^ 2, 0), "gap": (full >> 1, 0), "short": (full >> 1 if BYTES < 14 else 0x1FFF, 1)}[
        kind
    ]
    bench.back._enqueue((word, keep, last, 0))
    await bench.settle()
    bench.check_cut("MALFORMED", 0, 0)


@cocotb.test()
async def a_restart_brings_the_kernel_back(dut) -> None:
    """Also while a frame is under way to a kernel that was cut off, and with a bad end that cannot leave yet."""
    bench = await Bench(dut).begin()
    for round_ in range(6):
        begin = len(bench.left())
        for _ in range(4):
            bench.send(MAX_FRAME)
        frame = await bench.to.recv()
        for _ in range(2):
            bench.back._enqueue((int.from_bytes(frame[:BYTES], "little"), (1 << BYTES) - 1, 0, 0))
        await bench.settle()
        assert int(dut.cut.value)
        if round_ % 2:
            bench.sink.stall = 1.0
            bench.send(MAX_FRAME)
            await wait_cycles(dut, 30)
        for inside in (bench.to.packets, bench.to.spans, bench.to._partial):
            inside.clear()
        dut.restart.value = 1
        await wait_cycles(dut, 2)
        dut.restart.value = 0
        bench.sink.stall = 0.0
        more = [bench.send(80) for _ in range(5)]
        await bench.kernel(len(bench.sent) - bench.counts["lost"] - len([frame for frame, user in bench.left() if not user]))
        await bench.settle()
        assert not int(dut.cut.value)
        assert [frame for frame, user in bench.left()[begin:] if not user][-5:] == more


@cocotb.test()
async def a_sink_that_waits_is_not_the_kernels_fault(dut) -> None:
    bench = await Bench(dut).begin()
    for _ in range(5):
        bench.send(100)
    bench.sink.stall = 1.0
    await wait_cycles(dut, 2)
    cocotb.start_soon(bench.kernel(5))
    await wait_cycles(dut, 5 * LIMIT)
    bench.sink.stall = 0.0
    await bench.settle()
    assert bench.left() == [(frame, False) for frame in bench.sent] and not int(dut.cut.value)


@pytest.mark.parametrize("width", WIDTHS)
def test_stream_guard(width: int) -> None:
    run(
        "stream_guard_bench",
        __file__,
        params={"DATA_W": width, "MAX_FRAME": MAX_FRAME},
        sources=[Path(__file__).parent / "stream_guard_bench.sv"],
        ports={
            "through": Plain("input", "logic"),
            "restart": Plain("input", "logic"),
            "limit": Plain("input", "logic [15:0]"),
            "in": AxisSinkPort(width),
            "out": AxisSourcePort(width),
            "to": AxisSourcePort(width),
            "from": AxisSinkPort(width),
            "cut": Plain("output", "logic"),
            "cause": Plain("output", "stream_pkg::cut_e"),
            "events": Plain("output", "stream_pkg::guard_events_t"),
            "out_through": Plain("output", "logic"),
            "idle": Plain("output", "logic"),
        },
        env={"WIDTH": str(width), **at_width(width, "line_rate|leaves|stops|never_ends|by_a_byte|malformed|order")},
    )
