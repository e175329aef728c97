# SPDX-License-Identifier: Apache-2.0
"""Two devices on a line: time is one, frames arrive when and as they should, and everything that was lost is counted."""

from __future__ import annotations

import sys

import pytest
from nacelle_tb.session import ROOT, configure

sys.path.insert(0, str(ROOT / "sim"))
from nacelle_sim import Line, SimDevice
from scapy.layers.inet import ICMP, IP
from scapy.layers.l2 import Ether

MAC = ("02:00:00:00:00:01", "02:00:00:00:00:02")
ADDRESS = ("10.0.0.1", "10.0.0.2")


def pair(width: int) -> tuple[SimDevice, SimDevice]:
    """Two devices with their addresses set."""
    devices = SimDevice(width), SimDevice(width)
    for device, ip, mac in zip(devices, ADDRESS, MAC, strict=True):
        configure(device, ip=ip, mac=mac)
    return devices


def ping() -> bytes:
    """An echo request of the first device to the second, which the first is made to answer: it comes from the second's address."""
    return bytes(Ether(dst=MAC[0], src=MAC[1]) / IP(src=ADDRESS[1], dst=ADDRESS[0]) / ICMP() / bytes(100))


def test_answers_cross_the_line_after_its_delay() -> None:
    a, b = pair(64)
    line = Line(a, b, delay_cycles=1000)
    a.send(ping())
    line.step(900)
    assert b.stats.rx_frames == 0 and line.stats(0).sent == 1
    line.step(500)
    assert b.stats.rx_frames == 1
    assert a.stats.cycles == b.stats.cycles
    line.close()
    a.close()
    b.close()


@pytest.mark.parametrize("kind", ["loss_ppm", "duplicate_ppm", "corrupt_ppm"])
def test_chance_strikes_and_is_counted(kind: str) -> None:
    a, b = pair(64)
    line = Line(a, b, random_seed=5, **{kind: 300_000})
    for _ in range(200):
        a.send(ping())
        line.step(200)
    line.step(10_000)
    stats = line.stats(0)
    assert stats.sent == 200
    struck = {"loss_ppm": stats.lost, "duplicate_ppm": stats.duplicated, "corrupt_ppm": stats.corrupted}[kind]
    assert 30 <= struck <= 90
    assert b.stats.rx_frames == 200 - stats.lost + stats.duplicated


def test_a_full_switch_marks_and_drops() -> None:
    a, b = pair(64)
    line = Line(a, b, rate_mbps=1000, queue_bytes=5000, mark_bytes=1000)
    for _ in range(200):
        a.send(ping())
        line.step(100)
    line.step(100_000)
    stats = line.stats(0)
    assert stats.overflowed > 50 and stats.overflowed + b.stats.rx_frames == 200
    assert stats.marked == 0  # echo answers are not capable of ECN


def test_idle_time_costs_nothing() -> None:
    a, b = pair(64)
    line = Line(a, b)
    line.step(50_000_000, skip=True)
    assert a.stats.cycles == b.stats.cycles and a.stats.cycles > 50_000_000
    assert a.stats.cycles_simulated < 500_000


def test_devices_of_different_age_are_refused() -> None:
    a, b = pair(64)
    a.step(10)
    with pytest.raises(RuntimeError, match="same age"):
        Line(a, b)
