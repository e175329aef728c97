# SPDX-License-Identifier: Apache-2.0
"""roce_cc: rates after the paper, pacing, CNPs, and a clock that jumps.

The arithmetic is checked bit by bit in test_roce_cc_step.py. Here the whole unit runs: trajectories against the paper's equations
in floating point and against the integer model; pacing is in test_roce_cc_pacing.py.
"""

from __future__ import annotations

import os
import random
from types import SimpleNamespace

import cocotb
import pytest
from cc_model import CYCLES_PER_US, DEFAULTS, LINE_MBPS, IntegerModel, PaperModel
from cocotb.triggers import FallingEdge, RisingEdge
from nacelle_tb.bench import Plain, Sink, Source, run
from nacelle_tb.long import rounds
from nacelle_tb.streams import StreamSink, StreamSource, start, wait_cycles
from nacelle_tb.svtypes import struct

QPS = int(os.environ.get("QPS", 16))
TIMES = 1 << 48  # the device's clock wraps
INDEX, CONFIG, VIEW = "roce_pkg::qp_index_t", "roce_cc_pkg::cc_config_t", "roce_cc_pkg::cc_view_t"
FIRST_QPN = 2


def ports(qps: int) -> dict:
    return {
        "now": Plain("input", "logic [47:0]"),
        "cfg": Plain("input", CONFIG),
        "cnp": Plain("input", "logic"),
        "cnp_qpn": Plain("input", "roce_wire_pkg::qpn_t"),
        "ecn_marked": Plain("input", "logic"),
        "ecn_marked_qpn": Plain("input", "roce_wire_pkg::qpn_t"),
        "cnp_tx": Source("roce_pkg::ack_tx_t"),
        "sent": Plain("input", "logic"),
        "sent_index": Plain("input", INDEX),
        "sent_bytes": Plain("input", "logic [13:0]"),
        "blocked": Plain("output", f"logic [{qps - 1}:0]"),
        "parked": Sink(INDEX),
        "resume": Source(INDEX),
        "forget": Sink(INDEX),
        "view": Sink(INDEX),
        "viewed": Source(VIEW),
        "events": Plain("output", "roce_cc_pkg::cc_events_t"),
        "idle": Plain("output", "logic"),
    }


PARAMS, PORTS = {"QPS": QPS}, ports(QPS)


class Bench:
    """The clock `now`, pulses, and the answers."""

    def __init__(self, dut, stall: float = 0.0, now: int | None = None, **cfg: int) -> None:
        self.dut = dut
        self.cfg = {**DEFAULTS, **cfg}
        for name in ("now", "cnp", "cnp_qpn", "ecn_marked", "ecn_marked_qpn", "sent", "sent_index", "sent_bytes"):
            getattr(dut, name).value = 0
        self.configure()
        self.cnp_tx = StreamSink(dut, "cnp_tx", "roce_pkg::ack_tx_t", stall)
        self.resume = StreamSink(dut, "resume", INDEX, stall)
        self.viewed = StreamSink(dut, "viewed", VIEW, stall)
        self.parked = StreamSource(dut, "parked", INDEX, stall)
        self.forget = StreamSource(dut, "forget", INDEX, stall)
        self.view = StreamSource(dut, "view", INDEX, stall)
        self.now = random.getrandbits(30) if now is None else now  # does not wrap; the device's clock does
        dut.now.value = self.now
        self.jump = 0
        self.events = dict.fromkeys(struct("roce_cc_pkg::cc_events_t").fields, 0)

    def configure(self, **cfg: int) -> None:
        self.cfg |= cfg
        self.dut.cfg.value = struct(CONFIG).pack(**self.cfg)

    async def start(self) -> None:
        await start(self.dut)
        cocotb.start_soon(self._clock())
        await wait_cycles(self.dut, QPS + 20)

    async def _clock(self) -> None:
        events = struct("roce_cc_pkg::cc_events_t")
        while True:
            await FallingEdge(self.dut.clk)
            self.now += 1 + self.jump
            self.jump = 0
            self.dut.now.value = self.now % TIMES
            word = int(self.dut.events.value)
            if word:
                for name, bit in vars(events.unpack(word)).items():
                    self.events[name] += bit

    async def pulse(self, name: str, **values: int) -> None:
        await FallingEdge(self.dut.clk)
        for signal, value in values.items():
            getattr(self.dut, signal).value = value
        getattr(self.dut, name).value = 1
        await FallingEdge(self.dut.clk)
        getattr(self.dut, name).value = 0
        for signal in values:  # means nothing now
            getattr(self.dut, signal).value = random.getrandbits(len(getattr(self.dut, signal)))

    async def cnp(self, index: int) -> None:
        await self.pulse("cnp", cnp_qpn=index + FIRST_QPN)

    async def mark(self, index: int) -> None:
        await self.pulse("ecn_marked", ecn_marked_qpn=index + FIRST_QPN)

    async def send(self, index: int, count: int) -> None:
        await self.pulse("sent", sent_index=index, sent_bytes=count)

    async def look(self, index: int) -> SimpleNamespace:
        self.view.send(index)
        return await self.viewed.recv(1000)

    async def settle(self, limit: int = 200_000) -> int:
        """Waits for idle; how many cycles that took."""
        for cycle in range(limit):
            await RisingEdge(self.dut.clk)
            if cycle > 4 and int(self.dut.idle.value):
                return cycle
        raise AssertionError("never idle")

    async def skip(self, cycles: int) -> None:
        """Time passes at once, as in the simulator, and only where the unit is idle."""
        await self.settle()
        self.jump = cycles
        await wait_cycles(self.dut, 2)
        await self.settle()


@cocotb.test()
async def nothing_is_limited_without_cnp(dut) -> None:
    """Packets sent cost nothing, a QP is not blocked, and the unit is idle at once."""
    bench = Bench(dut)
    await bench.start()
    for _ in range(200):
        await bench.send(random.randrange(QPS), 4096)
        assert int(dut.blocked.value) == 0
    assert await bench.settle(20) < 20
    assert vars(await bench.look(3)) == {"limited": 0, "rate": 0, "target": 0, "alpha": 0}
    bench.parked.send(5)  # found blocked when it was no longer
    assert await bench.resume.recv(2 * QPS + 50) == 5


@cocotb.test()
async def off_means_off(dut) -> None:
    """Switched off, CNPs are ignored and counted; switched off while QPs are limited and parked, all may go on."""
    bench = Bench(dut, rp_enable=0)
    await bench.start()
    for index in range(5):
        await bench.cnp(index)
        await bench.send(index, 8000)
    await wait_cycles(dut, 3 * QPS)
    assert int(dut.blocked.value) == 0
    assert bench.events["rp_cnp_ignored"] == 5 and bench.events["rp_cnp_handled"] == 0
    bench.configure(rp_enable=1, rate_to_set_on_first_cnp=10)
    await wait_cycles(dut, 10)
    waiting = {1, 4, QPS - 1}
    for index in waiting:
        await bench.cnp(index)
    await wait_cycles(dut, 2 * QPS + 120)
    for index in waiting:
        await bench.send(index, 8000)
    await wait_cycles(dut, 120)
    assert int(dut.blocked.value) == sum(1 << index for index in waiting)
    for index in waiting:
        bench.parked.send(index)
    await wait_cycles(dut, 4 * QPS)
    assert not bench.resume.received
    bench.configure(rp_enable=0)
    await wait_cycles(dut, 8)
    assert int(dut.blocked.value) == 0
    assert {await bench.resume.recv(4 * QPS) for _ in waiting} == waiting
    assert bench.events["rp_cnp_handled"] == 3
    bench.configure(rp_enable=1)
    await wait_cycles(dut, 10)
    assert not (await bench.look(1)).limited
    assert int(dut.blocked.value) == 0


@cocotb.test()
async def a_new_qp_knows_nothing_of_the_old_one(dut) -> None:
    bench = Bench(dut, rate_to_set_on_first_cnp=10)
    await bench.start()
    await bench.cnp(7)
    await wait_cycles(dut, 2 * QPS + 60)
    await bench.send(7, 8000)
    await wait_cycles(dut, 60)
    assert int(dut.blocked.value) == 1 << 7
    bench.parked.send(7)
    await bench.parked.drained()
    await bench.cnp(7)
    bench.forget.send(7)
    await bench.forget.drained(60)
    await wait_cycles(dut, 40)
    assert int(dut.blocked.value) == 0
    assert not (await bench.look(7)).limited
    await wait_cycles(dut, 4 * QPS)
    assert not bench.resume.received


def near(value: float, want: float, tolerance: float) -> bool:
    return abs(value - want) <= tolerance * want


@cocotb.test()
async def trajectory_is_that_of_the_paper(dut) -> None:
    """Cuts, fast recovery, additive and hyper increase by timer and byte counter: rates within 0.5 % of the paper's equations,
    alpha within 0.01, and both the same as those of the integer model, at every microsecond that is looked at."""
    rng = random.Random(random.getrandbits(64))
    bench = Bench(dut, rpg_byte_reset=150_000)
    await bench.start()
    paper = PaperModel(byte_counter=150_000)
    exact = IntegerModel(bench.cfg)
    origin = bench.now
    chunk = 8_000
    looked = 0
    seen_hyper = False
    # Quiet stretches and bursts of CNPs. Everything happens at moments that are well away from the timers' multiples of 55 us.
    for stretch, gap in enumerate((900, 55 * 3, 55 * 12, 55 * 2, 55 * 60)):
        await bench.cnp(2)
        exact.cnp = True
        paper.until((bench.now - origin) / CYCLES_PER_US)
        paper.cnp()
        await bench.settle()
        exact.catch_up(bench.now)
        begin = bench.now
        for part in range(1, gap // 55 + 1):
            for _ in range(rng.randint(0, 40)):
                await bench.send(2, chunk)
                paper.send(chunk)
                exact.bytes += chunk  # the integer model steps after each packet too
                exact.catch_up(bench.now)
                await wait_cycles(dut, 2 * QPS + 30)
            await bench.skip(max(0, begin + (part * 55 + 20) * CYCLES_PER_US - bench.now))
            paper.until((bench.now - origin) / CYCLES_PER_US)
            exact.catch_up(bench.now)
            shown = await bench.look(2)
            assert exact.limited == bool(shown.limited)
            if not shown.limited:
                paper.alpha, paper.rc, paper.rt = 1.0, LINE_MBPS, LINE_MBPS  # the next CNP is a first one
                break
            assert (shown.rate, shown.target, shown.alpha) == (exact.rate, exact.target, exact.alpha), (stretch, part)
            assert near(shown.rate / 16, paper.rc, 0.005), (stretch, part, shown.rate / 16, paper.rc)
            assert near(shown.target / 16, paper.rt, 0.005)
            assert abs(shown.alpha / 65536 - paper.alpha) < 0.01
            seen_hyper |= min(paper.t, paper.bc) > paper.f
            looked += 1
    assert looked > 30 and seen_hyper


@cocotb.test()
async def a_jump_is_made_up_for(dut) -> None:
    """However far the clock jumps, the state is that of time having passed; a QP that has grown to line rate is free again."""
    bench = Bench(dut, rpg_byte_reset=0, rpg_ai_rate=5, rpg_hai_rate=50, rpg_time_reset=300, dce_tcp_rtt=7, rpg_threshold=1)
    await bench.start()
    for jump in (10, 1_000, 50_000, 300_000):
        index = random.randrange(QPS)
        bench.forget.send(index)
        await bench.forget.drained(60)
        exact = IntegerModel(bench.cfg)
        for _ in range(6):
            await bench.cnp(index)
            exact.cnp = True
            await bench.settle()
            exact.catch_up(bench.now)
            await bench.skip(150 * CYCLES_PER_US)
            exact.catch_up(bench.now)
        await bench.skip(jump * CYCLES_PER_US)
        exact.catch_up(bench.now)
        shown = await bench.look(index)
        assert bool(shown.limited) == exact.limited
        if exact.limited:
            assert (shown.rate, shown.target) == (exact.rate, exact.target), jump
        else:
            assert jump >= 50_000
        assert not int(dut.blocked.value) >> index & 1
    assert not exact.limited


@cocotb.test()
async def the_clock_may_wrap(dut) -> None:
    """A QP with a limit, across the wrap: rates and alpha are those of a model whose clock does not wrap."""
    bench = Bench(dut, now=TIMES - 300 * CYCLES_PER_US, rpg_byte_reset=0)
    await bench.start()
    exact = IntegerModel(bench.cfg)
    for part in range(12):
        if part in (0, 3, 6):  # the second one comes before the wrap, the third behind it
            await bench.cnp(2)
            exact.cnp = True
        await bench.settle()
        exact.catch_up(bench.now)
        await bench.skip(50 * CYCLES_PER_US)
        exact.catch_up(bench.now)
        shown = await bench.look(2)
        assert shown.limited and (shown.rate, shown.target, shown.alpha) == (exact.rate, exact.target, exact.alpha), part
    assert bench.now > TIMES


@cocotb.test()
@cocotb.parametrize(eighths=[1, 5, 7, 8, 9])
async def a_limit_may_stand_for_weeks(dut, eighths: int) -> None:
    """So many eighths of the range of the clock after the last cut the next CNP cuts at once, and timers that were off
    begin at once."""
    off = {"rpg_time_reset": 0, "rpg_byte_reset": 0, "dce_tcp_rtt": 0}
    bench = Bench(dut, now=TIMES // 2, **off)
    await bench.start()
    for index in (3, 4):
        await bench.cnp(index)
    await bench.settle()
    before = await bench.look(3)
    assert before.limited
    for _ in range(eighths):
        await bench.skip(TIMES // 8)
    assert vars(await bench.look(3)) == vars(before)
    await bench.cnp(3)
    await bench.settle()
    assert (await bench.look(3)).rate < before.rate
    bench.configure(rpg_time_reset=55, dce_tcp_rtt=55)
    await wait_cycles(dut, 10)
    for passed in range(3):
        exact = await bench.look(4)
        await bench.skip(55 * CYCLES_PER_US)
        shown = await bench.look(4)
        assert shown.limited and shown.rate > exact.rate and shown.alpha < exact.alpha, passed


@cocotb.test()
@cocotb.parametrize(eighths=[1, 5, 7, 8, 9])
async def a_qp_without_marks_for_weeks_gets_its_cnp(dut, eighths: int) -> None:
    """So many eighths of the range of the clock after its last CNP; and two marks around the wrap are one CNP."""
    bench = Bench(dut, now=TIMES - 3000, min_time_between_cnps=50)
    await bench.start()
    await bench.mark(5)
    assert (await bench.cnp_tx.recv(20)).qpn == 5 + FIRST_QPN
    await bench.mark(5)
    await wait_cycles(dut, 3000)
    await bench.mark(5)
    await wait_cycles(dut, 20)
    assert bench.now > TIMES and not bench.cnp_tx.received
    for _ in range(eighths):
        await bench.skip(TIMES // 8)
        await wait_cycles(dut, 2 * QPS)
    await bench.mark(5)
    assert (await bench.cnp_tx.recv(20)).qpn == 5 + FIRST_QPN


@cocotb.test()
async def a_rate_is_never_zero(dut) -> None:
    """Not even when the parameters ask for it: such a QP would wait for ever."""
    bench = Bench(dut, rpg_min_rate=0, rpg_min_dec_fac=0, rpg_gd=10, rate_reduce_monitor_period=0)
    await bench.start()
    for _ in range(4):
        await bench.cnp(1)
        await wait_cycles(dut, 3 * QPS)
    assert (await bench.look(1)).rate == 16


@cocotb.test()
async def the_first_rate_is_no_less_than_the_least(dut) -> None:
    bench = Bench(dut, rate_to_set_on_first_cnp=10, rpg_min_rate=100)
    await bench.start()
    await bench.cnp(1)
    await wait_cycles(dut, 3 * QPS)
    assert (await bench.look(1)).rate == 100 * 16


@cocotb.test()
async def notifies_peers(dut) -> None:
    """A CNP for the first mark of a QP, then at most one in min_time_between_cnps; against a model with the same times."""
    rng = random.Random(random.getrandbits(64))
    bench = Bench(dut, min_time_between_cnps=4)
    await bench.start()
    last: dict[int, int] = {}
    marks = sent = 0
    for _ in range(rounds(1500)):
        index = rng.randrange(QPS)
        before = bench.now
        await bench.mark(index)
        marks += 1
        want = index not in last or before - last[index] > 4 * CYCLES_PER_US + 8
        clear = index not in last or not 4 * CYCLES_PER_US - 8 <= before - last[index] <= 4 * CYCLES_PER_US + 8
        await wait_cycles(dut, rng.choice((0, 1, 5, 60, 300)) + 6)
        got = list(bench.cnp_tx.received)
        bench.cnp_tx.received.clear()
        bench.cnp_tx.cycles.clear()
        if clear:
            assert bool(got) == want
        if got:
            sent += 1
            assert [vars(item)["qpn"] for item in got] == [index + FIRST_QPN] and got[0].cnp == 1
            last[index] = before
    await wait_cycles(dut, 4)
    assert 16 < sent < marks
    assert bench.events["np_ecn_marked_roce_packets"] == marks and bench.events["np_cnp_sent"] == sent
    bench.configure(np_enable=0)
    await wait_cycles(dut, 2000)
    await bench.mark(0)
    await wait_cycles(dut, 20)
    assert not bench.cnp_tx.received


@cocotb.test()
@cocotb.parametrize(apart=[1, 2, 3, 4])
async def two_marks_at_once_get_one_cnp(dut, apart: int) -> None:
    bench = Bench(dut)
    await bench.start()
    for index in range(QPS):
        await FallingEdge(dut.clk)
        dut.ecn_marked_qpn.value = index + FIRST_QPN
        for cycle in range(apart + 1):
            dut.ecn_marked.value = int(cycle in (0, apart))
            await FallingEdge(dut.clk)
        dut.ecn_marked.value = 0
        await wait_cycles(dut, 12)
        assert [item.qpn for item in bench.cnp_tx.received] == [index + FIRST_QPN]
        bench.cnp_tx.received.clear()


@cocotb.test()
async def a_cnp_that_finds_no_room_comes_with_the_next_mark(dut) -> None:
    """The queue of CNPs is stopped: marks beyond it are ignored, and do not start the interval of their QPs."""
    bench = Bench(dut)
    await bench.start()
    bench.cnp_tx.stall = 1.0
    await wait_cycles(dut, 4)
    for _ in range(3):
        for index in range(QPS):
            await bench.mark(index)
    await wait_cycles(dut, 20)
    assert not int(dut.idle.value)
    bench.cnp_tx.stall = 0.0
    await wait_cycles(dut, 100)
    first = {item.qpn - FIRST_QPN for item in bench.cnp_tx.received}
    assert len(first) == len(bench.cnp_tx.received) == min(QPS, 17)
    bench.cnp_tx.received.clear()
    for index in range(QPS):
        await bench.mark(index)
    await wait_cycles(dut, 100)
    assert {item.qpn - FIRST_QPN for item in bench.cnp_tx.received} >= set(range(QPS)) - first - set(range(33, QPS))


LARGE = ("nothing_is_limited_without_cnp", "off_means_off")


@pytest.mark.parametrize("qps", [16, 256])
def test_roce_cc(qps: int) -> None:
    run(
        "roce_cc",
        __file__,
        params={"QPS": qps},
        ports=ports(qps),
        env={"QPS": str(qps)},
        testcase=",".join(LARGE) if qps > 16 else None,
    )
