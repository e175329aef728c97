# SPDX-License-Identifier: Apache-2.0
"""pause_control: for how long MAC control frames stop each class, what has no effect, and what lasts too long."""

from __future__ import annotations

import os
import random
import struct as bytes_of
from typing import Any

import cocotb
import packet_frames as frames
import pytest
from cocotb.triggers import RisingEdge
from nacelle_tb.bench import Plain, run
from nacelle_tb.long import some
from nacelle_tb.streams import start, wait_cycles
from nacelle_tb.svtypes import struct
from nacelle_tb.widths import WIDTHS
from scapy.contrib.mac_control import MACControlClassBasedFlowControl, MACControlPause
from scapy.layers.l2 import Ether

FLOW, PRIORITIES = "link_pkg::flow_settings_t", "link_pkg::priorities_t"
WIDTH = int(os.environ.get("WIDTH", "512"))
BYTES = WIDTH // 8
GROUP = "01:80:c2:00:00:01"
ROCE, OTHER = 3, 5
CLOCK_HZ = 1_000_000  # a millisecond has 1000 cycles
QUANTUM = 8  # cycles
DELAY = 4  # from the last beat of a frame


def pause(quanta: int, destination: str = GROUP) -> bytes:
    """A PAUSE frame."""
    return bytes(Ether(dst=destination, src="02:00:00:00:00:99") / MACControlPause(pause_time=quanta)).ljust(60, b"\0")


def pfc(times: dict[int, int], destination: str = GROUP, enabled: int | None = None) -> bytes:
    """A PFC frame for some priorities; `enabled`: those that it says it is about."""
    fields: dict[str, int] = {f"c{n}_pause_time": time for n, time in times.items()}
    fields |= {f"c{n}_enabled": 1 for n in times if enabled is None or enabled >> n & 1}
    return bytes(Ether(dst=destination, src="02:00:00:00:00:99") / MACControlClassBasedFlowControl(**fields)).ljust(60, b"\0")


class Bench:
    """The module, fed beat by beat; counts its pulses, and the cycles in which each class is stopped."""

    def __init__(self, dut: Any) -> None:
        self.dut = dut
        self.counts = dict.fromkeys(("stop_roce", "stop_other", "rx_pause", "rx_pfc", "ignored"), 0)

    async def start(self, **settings: int) -> Bench:
        dut = self.dut
        dut.in_valid.value = 0
        self.set(**settings)
        dut.priorities.value = struct(PRIORITIES).pack(roce=ROCE, other=OTHER)
        await start(dut)
        cocotb.start_soon(self._count())
        return self

    def set(self, **settings: int) -> None:
        values = {"pause": 1, "pfc": 1, "quanta_per_cycle": 65536 // QUANTUM, "limit_ms": 0}
        self.dut.settings.value = struct(FLOW).pack(values | settings)

    async def _count(self) -> None:
        while True:
            await RisingEdge(self.dut.clk)
            for name in self.counts:
                self.counts[name] += int(getattr(self.dut, name).value)

    async def send(self, frame: bytes, bad: bool = False, gaps: bool = True) -> None:
        """One frame, with gaps between its beats. Returns after its last beat."""
        dut = self.dut
        for at in range(0, len(frame), BYTES):
            beat = frame[at : at + BYTES]
            while gaps and random.random() < 0.3:
                dut.in_valid.value = 0
                dut.in_data.value, dut.in_last.value = random.getrandbits(WIDTH), random.randrange(2)
                await wait_cycles(dut, 1)
            last = at + BYTES >= len(frame)
            dut.in_valid.value, dut.in_last.value, dut.in_bad.value = 1, int(last), int(bad and last)
            dut.in_keep.value = (1 << len(beat)) - 1
            dut.in_data.value = int.from_bytes(beat, "little")
            await wait_cycles(dut, 1)
        dut.in_valid.value = 0

    async def rest(self) -> dict[str, int]:
        """What has been counted since, when no timer runs any more."""
        await wait_cycles(self.dut, DELAY + 2)
        for _ in range(5000):
            if int(self.dut.idle.value):
                break
            await wait_cycles(self.dut, 10)
        await wait_cycles(self.dut, 3)
        assert int(self.dut.idle.value) and not int(self.dut.stop_roce.value) and not int(self.dut.stop_other.value)
        found = {name: count for name, count in self.counts.items() if count}
        self.counts = dict.fromkeys(self.counts, 0)
        return found


def about(quanta: int) -> range:
    """Cycles that a pause may take: no less than a quantum less."""
    return range((quanta - 1) * QUANTUM, quanta * QUANTUM + 2)


@cocotb.test()
async def pause_stops_all_for_its_time(dut) -> None:
    bench = await Bench(dut).start()
    for quanta in (1, 2, 10, 300):
        await bench.send(pause(quanta))
        found = await bench.rest()
        assert found.pop("rx_pause") == 1
        assert set(found) == {"stop_roce", "stop_other"} and found["stop_roce"] == found["stop_other"]
        assert found["stop_roce"] in about(quanta), (found, quanta)


@cocotb.test()
async def pfc_stops_the_priorities_that_it_names(dut) -> None:
    bench = await Bench(dut).start()
    for _ in range(40):
        times = {n: random.randrange(1, 60) for n in range(8) if random.random() < 0.6}
        enabled = random.choice([0xFF, random.getrandbits(8)])
        await bench.send(pfc(times, enabled=enabled))
        found = await bench.rest()
        assert found.pop("rx_pfc") == 1
        for name, n in (("stop_roce", ROCE), ("stop_other", OTHER)):
            wanted = times[n] if n in times and enabled >> n & 1 else 0
            assert found.pop(name, 0) in (about(wanted) if wanted else [0]), (name, times, enabled)
        assert not found


@cocotb.test()
async def a_new_time_takes_the_place_of_the_old_one(dut) -> None:
    """Zero ends a pause, and more extends it."""
    bench = await Bench(dut).start()
    await bench.send(pause(0xFFFF))
    await wait_cycles(dut, 100)
    assert int(dut.stop_roce.value) and int(dut.stop_other.value)
    await bench.send(pfc({ROCE: 0}), gaps=False)
    await wait_cycles(dut, DELAY)
    assert not int(dut.stop_roce.value) and int(dut.stop_other.value)
    await bench.send(pause(0), gaps=False)
    await wait_cycles(dut, DELAY)
    assert not int(dut.stop_other.value)
    await bench.rest()
    await bench.send(pfc({ROCE: 20}))
    await wait_cycles(dut, 10 * QUANTUM)
    await bench.send(pfc({ROCE: 50}))
    assert (await bench.rest())["stop_roce"] in range(58 * QUANTUM, 62 * QUANTUM + 20)


@cocotb.test()
async def what_is_no_such_frame_has_no_effect(dut) -> None:
    bench = await Bench(dut).start()
    good = pause(1000)
    for at in [*range(6), 12, 13, 14, 15]:
        for bit in (1, 0x80):
            wrong = bytearray(good)
            wrong[at] ^= bit
            if wrong[14:16] == b"\x01\x01":  # that would be PFC
                continue
            await bench.send(bytes(wrong))
    await bench.send(pause(1000, frames.MAC))  # could come from anywhere
    await bench.send(pfc({ROCE: 1000}, "ff:ff:ff:ff:ff:ff"))
    await bench.send(good, bad=True)
    await bench.send(good[:33])
    await bench.send(frames.roce(random.randbytes(200)) + good)
    await bench.send(good[:18] if WIDTH > 128 else good[: BYTES * 2])
    await bench.send(frames.roce(b"x" * 64))
    assert await bench.rest() == {}
    bench.set(pause=0)
    await bench.send(good)
    assert await bench.rest() == {"rx_pause": 1}
    await bench.send(pfc({ROCE: 2}))
    assert set(await bench.rest()) == {"rx_pfc", "stop_roce"}
    bench.set(pfc=0)
    await bench.send(pfc({ROCE: 2, OTHER: 9}))
    assert await bench.rest() == {"rx_pfc": 1}
    await bench.send(pause(5))
    assert set(await bench.rest()) == {"rx_pause", "stop_roce", "stop_other"}


@cocotb.test()
async def what_lasts_too_long_is_ignored_until_it_ends(dut) -> None:
    """A neighbour that repeats its pause is obeyed for the limit; another class is not touched; and later it is obeyed again."""
    bench = await Bench(dut).start(limit_ms=3)
    for _ in range(40):
        await bench.send(pfc({ROCE: 100}))
        await wait_cycles(dut, 50 * QUANTUM)
    assert not int(dut.stop_roce.value) and not int(dut.idle.value)
    await bench.send(pfc({OTHER: 30}))
    found = await bench.rest()
    assert 3000 <= found["stop_roce"] <= 4100 and found["ignored"] == 1 and found["stop_other"] in about(30)
    await bench.send(pfc({ROCE: 100}))
    found = await bench.rest()
    assert found["stop_roce"] in about(100) and "ignored" not in found
    bench.set(limit_ms=0)
    for _ in range(20):
        await bench.send(pfc({ROCE: 100}))
        await wait_cycles(dut, 50 * QUANTUM)
    found = await bench.rest()
    assert found["stop_roce"] >= 20 * 50 * QUANTUM and "ignored" not in found


@cocotb.test()
async def quanta_of_a_fast_line(dut) -> None:
    """More than one in a cycle: 400 Gb/s at 250 MHz."""
    bench = await Bench(dut).start(quanta_per_cycle=204800)
    for quanta in (1, 50, 1000, 0xFFFF):
        await bench.send(pause(quanta))
        assert abs((await bench.rest())["stop_roce"] - quanta / 3.125) <= 2


def test_the_frames_are_as_the_standard_draws_them() -> None:
    """Scapy's against bytes written by hand."""
    head = bytes.fromhex("0180c2000001 020000000099 8808")
    assert pause(0x1234) == (head + bytes.fromhex("0001 1234")).ljust(60, b"\0")
    times = bytes_of.pack("!8H", 0, 0, 0, 0x1111, 0, 0x2222, 0, 0)
    assert pfc({3: 0x1111, 5: 0x2222}) == (head + bytes.fromhex("0101 0028") + times).ljust(60, b"\0")


@pytest.mark.parametrize("width", some(WIDTHS))
def test_pause_control(width: int) -> None:
    run(
        "pause_control",
        __file__,
        params={"DATA_W": width, "CLOCK_HZ": CLOCK_HZ},
        ports={
            "settings": Plain("input", FLOW),
            "priorities": Plain("input", PRIORITIES),
            "in_valid": Plain("input", "logic"),
            "in_last": Plain("input", "logic"),
            "in_bad": Plain("input", "logic"),
            "in_keep": Plain("input", f"logic [{width // 8 - 1}:0]"),
            "in_data": Plain("input", f"logic [{width - 1}:0]"),
            **{name: Plain("output", "logic") for name in ("stop_roce", "stop_other", "rx_pause", "rx_pfc", "ignored", "idle")},
        },
        env={"WIDTH": str(width)},
    )
