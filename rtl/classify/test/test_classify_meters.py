# SPDX-License-Identifier: Apache-2.0
"""Meters of the classifier: what passes is the burst and the rate; refused frames are counted; what is bad takes nothing."""

from __future__ import annotations

import random
from typing import Any

import cocotb
import pytest
from classify_bench import Bench, at, run_plane
from nacelle_tb.classifier import DEVICE, DROP, HOST, MIRROR, Rule, meter
from nacelle_tb.long import some
from nacelle_tb.streams import wait_cycles
from nacelle_tb.svtypes import struct
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import Raw

PUT, REMOVE = 1, 2
FRAMES, TO_HOST = 1, 2
VISIT, PART = 16, 1 << 20


async def begin(dut: Any) -> Bench:
    random.seed(cocotb.RANDOM_SEED)
    return await Bench(dut).start()


def frame(port: int, length: int) -> bytes:
    ether = Ether(src="02:00:00:00:00:02", dst="02:00:00:00:00:01")
    return bytes(ether / IP(src="10.0.0.1", dst="10.0.0.2") / UDP(sport=1, dport=port) / Raw(bytes(length - 42)))


async def put(bench: Bench, number: int, rate: float, burst: int, mode: int = 0) -> None:
    """Sets a meter: `rate` in tokens a cycle."""
    for name, value in (
        ("METER", number),
        ("METER_RATE", round(rate * VISIT * PART)),
        ("METER_BURST", burst),
        ("METER_MODE", mode),
    ):
        await bench.write(at(name), value)
    await bench.write(at("METER_COMMAND"), PUT)
    await wait_cycles(bench.dut, VISIT + 4)


async def overs(bench: Bench, number: int) -> int:
    await bench.write(at("METER"), number)
    return await bench.read(at("METER_OVER"))


def decision(verdict: Any) -> int:
    return struct("classify_pkg::decision_t").pack(vars(verdict.decision))


@cocotb.test()
async def the_rate_is_what_passes(dut) -> None:
    """Frames of any length, far more than the rate: what passes is the burst and the rate times the cycles, to a frame."""
    bench = await begin(dut)
    await bench.install({3: Rule(HOST | meter(5), destination_port=9), 4: Rule(MIRROR)})
    for rate, burst, mode in ((0.9, 3000, 0), (1.7, 1600, 0), (0.004, 3, FRAMES)):
        await put(bench, 5, rate, burst, mode)
        frames = [frame(random.choice([9, 9, 9, 10]), random.choice([60, 61, 400, 1500])) for _ in range(150)]
        began = bench.cycle
        said = await bench.pass_(frames)
        cycles = bench.cycle - began
        passed = refused = 0
        for sent, verdict in zip(frames, said, strict=True):
            if sent[37] != 9:
                assert not verdict.over and decision(verdict) == MIRROR
                continue
            assert verdict.hit and verdict.position == 3
            if verdict.over:
                assert decision(verdict) & 7 == DROP
                refused += 1
            else:
                assert decision(verdict) == HOST | meter(5)
                passed += 1 if mode & FRAMES else len(sent)
        size = 1 if mode & FRAMES else 1500
        # No more than the bucket and what came in; and no less, but for a frame for which it was not enough.
        assert burst + rate * cycles - size - rate * 2 * VISIT - 1 <= passed <= burst + rate * (cycles + VISIT), (passed, cycles)
        assert refused > 10
        assert await overs(bench, 5) == refused
    # A rule counts what its meter refuses as well.
    assert (await bench.counts(3))[0] + (await bench.counts(4))[0] == 450


@cocotb.test()
async def a_bucket_is_taken_to_its_last_token(dut) -> None:
    """Without a rate: exactly the burst, in bytes or frames, by the first frames that fit, by all rules that name it together."""
    bench = await begin(dut)
    await bench.install({3: Rule(DEVICE | meter(15), destination_port=9), 4: Rule(HOST | meter(15), destination_port=10)})
    for mode in (0, TO_HOST, FRAMES, FRAMES | TO_HOST):
        frames = [frame(random.choice([9, 10]), random.choice([60, 64, 80, 500])) for _ in range(40)]
        burst = 7 if mode & FRAMES else sum(map(len, frames)) // 2
        await put(bench, 15, 0, burst, mode)
        said = await bench.pass_(frames)
        left, refused = burst, 0
        for sent, verdict in zip(frames, said, strict=True):
            cost = 1 if mode & FRAMES else len(sent)
            assert bool(verdict.over) == (cost > left)
            if verdict.over:
                refused += 1
                assert decision(verdict) & 7 == (HOST if mode & TO_HOST else DROP)
            else:
                left -= cost
        assert refused and await overs(bench, 15) == refused
        assert await bench.read(at("METER_BURST")) == burst and await bench.read(at("METER_MODE")) == mode


@cocotb.test()
async def frames_in_a_row_share_a_bucket(dut) -> None:
    """Frames of one beat, one a cycle if they are that short: each sees what those before it have taken."""
    bench = await begin(dut)
    await bench.install({3: Rule(HOST | meter(0))})
    for burst in (1, 2, 17):
        await put(bench, 0, 0, burst, FRAMES)
        said = await bench.pass_([frame(9, 60)] * 30)
        assert [bool(verdict.over) for verdict in said] == [n >= burst for n in range(30)]


@cocotb.test()
async def what_is_bad_takes_nothing(dut) -> None:
    """Frames with a wrong FCS and those that are too short; and no counter moves for what is not applied."""
    bench = await begin(dut)
    await bench.install({3: Rule(HOST | meter(1))})
    await put(bench, 1, 0, 2, FRAMES)
    bench.applies = False
    for _ in range(20):
        bench.line.send(frame(9, 60), bad=True)
    await bench.line.drained()
    await wait_cycles(dut, 20)
    await bench.pass_([frame(9, 60)[:41]] * 5)
    bench.applies = True
    said = await bench.pass_([frame(9, 60)] * 3)
    assert [bool(verdict.over) for verdict in said] == [False, False, True]
    bench.applies = False
    assert (await bench.pass_([frame(9, 60)]))[0].over
    assert await overs(bench, 1) == 1


@cocotb.test()
async def a_meter_without_settings_limits_nothing(dut) -> None:
    bench = await begin(dut)
    await bench.install({3: Rule(HOST | meter(2))})
    assert await bench.read(at("METER_PRESENT")) == 0
    assert not any(verdict.over for verdict in await bench.pass_([frame(9, 1500)] * 20))
    await put(bench, 2, 0, 0)
    await put(bench, 9, 0, 0)
    assert await bench.read(at("METER_PRESENT")) == 1 << 2 | 1 << 9
    assert all(verdict.over for verdict in await bench.pass_([frame(9, 60)] * 5))
    # New settings begin with a full bucket and a counter of 0.
    await put(bench, 2, 0, 3, FRAMES)
    assert await overs(bench, 2) == 0
    assert [bool(verdict.over) for verdict in await bench.pass_([frame(9, 60)] * 4)] == [False, False, False, True]
    await bench.write(at("METER"), 2)
    await bench.write(at("METER_COMMAND"), REMOVE)
    await wait_cycles(dut, 4)
    assert await bench.read(at("METER_PRESENT")) == 1 << 9
    assert not any(verdict.over for verdict in await bench.pass_([frame(9, 1500)] * 20))


@pytest.mark.parametrize("width", some([64, 512]))
def test_classify_meters(width: int) -> None:
    run_plane(__file__, width)
