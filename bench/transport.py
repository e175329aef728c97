# SPDX-License-Identifier: Apache-2.0
"""The transport from device to device: throughput, latency, rates, and goodput over loss. Cycles at 512 bits; Gb/s at 250 MHz."""

from __future__ import annotations

from collections.abc import Iterator

from nacelle_tb.pair import CLOCK_HZ, LINE_RATE_MBPS, Pair, Traffic, cycles
from result import Result
from sizes import size_name

HOW = "make bench AREA=rtl"
GOALS = "goals 1"
VERBS = {"write": "WR_RDMA_WRITE", "read": "WR_RDMA_READ", "send": "WR_SEND"}
SIZES = (64, 256, 1024, 4096, 16384, 65536, 1 << 20, 16 << 20)
MTUS = (1024, 4096)
LOSSES = (0.01, 0.1, 0.3, 1.0, 3.0, 5.0)  # per cent
GOODPUT_GOALS = {0.1: 95.0, 1.0: 80.0}
ROUND_TRIP_S = 10e-6
# Ethernet, IPv4, UDP, BTH, ICRC, FCS, preamble, gap.
PACKET_OVERHEAD = 14 + 20 + 8 + 12 + 4 + 4 + 8 + 12
BUS_GBPS = 512 * CLOCK_HZ / 1e9


def ceiling(mtu: int) -> float:
    """Payload that 100G Ethernet can carry, in Gb/s."""
    return LINE_RATE_MBPS / 1000 * mtu / (mtu + PACKET_OVERHEAD)


def throughput() -> Iterator[Result]:
    """By verb, MTU and size: one queue pair, one direction, 100G line."""
    for verb, opcode in VERBS.items():
        for mtu in MTUS:
            for size in SIZES:
                with Pair(mtu=mtu) as pair:
                    gbps = pair.gbps(Traffic(opcode, size))
                goal = 0.999 * ceiling(mtu) if size >= 65536 else None
                yield Result(f"rtl.{verb}.bandwidth.mtu{mtu}.{size_name(size)}", gbps, "Gb/s", goal, "higher", GOALS, HOW)


def both_directions() -> Iterator[Result]:
    """Share of the ceiling when both devices work. A traffic kernel receives or sends: no SENDs here."""
    for verb in ("write", "read"):
        for mtu in MTUS:
            with Pair(mtu=mtu) as pair:
                share = 100 * pair.gbps(Traffic(VERBS[verb], 1 << 20), both=True) / ceiling(mtu)
            yield Result(f"rtl.{verb}.both_directions.mtu{mtu}", share, "% of ceiling", 99.9, "higher", GOALS, HOW)


def queue_pairs() -> Iterator[Result]:
    """WRITEs of 64 KiB over 1 to 256 queue pairs."""
    for qps in (1, 4, 16, 64, 256):
        with Pair(qps) as pair:
            share = 100 * pair.gbps(Traffic("WR_RDMA_WRITE", 65536, qps=qps, depth=4)) / ceiling(4096)
        yield Result(f"rtl.write.qps{qps}", share, "% of ceiling", 99.9, "higher", GOALS, HOW)


def without_line() -> Iterator[Result]:
    """Share of the bus that carries payload when the line sets no limit."""
    for verb, opcode in VERBS.items():
        with Pair(unlimited=True) as pair:
            share = 100 * pair.gbps(Traffic(opcode, 1 << 20)) / BUS_GBPS
        yield Result(f"rtl.{verb}.unlimited.mtu4096", share, "% of bus", 97.0, "higher", GOALS, HOW)


def latency() -> Iterator[Result]:
    """One request of 64 bytes: from the work request to the first data at the memory port, without line limit or delay."""
    for verb, far, goal in (("write", 1, 95), ("read", 0, 180)):
        with Pair(unlimited=True) as pair:
            # The kernel clears its tables first and then offers its request two cycles after.
            clear = 1024 + 2
            pair.start(0, Traffic(VERBS[verb], 64))
            begin = pair.devices[0].stats.cycles + clear
            pair.line.step(3000)
            arrived = pair.devices[far].stats.dram_last_write
        yield Result(f"rtl.{verb}.latency", arrived - begin, "cycles", goal, "lower", GOALS, HOW)


def rates() -> Iterator[Result]:
    """64-byte WRITEs over many queue pairs: cycles a message each way once the run is steady, acknowledgements included."""
    for name, both in (("", False), (".both_directions", True)):
        with Pair(64, unlimited=True) as pair:
            gbps = pair.gbps(Traffic("WR_RDMA_WRITE", 64, qps=64), both=both)
        each = round(64 * 8 * CLOCK_HZ / 1e9 / gbps, 3)  # the window may cut a message at each end
        yield Result(f"rtl.write.message{name}.cycles", each, "cycles", 4, "lower", GOALS, HOW)


def loss() -> Iterator[Result]:
    """Goodput with random loss, 10 us round trip, MTU 4096: share of what comes through without loss."""
    one_way = cycles(ROUND_TRIP_S / 2)
    traffic = Traffic("WR_RDMA_WRITE", 65536)
    for name, selective in (("selective_repeat", True), ("go_back_n", False)):
        with Pair(delay_cycles=one_way, selective_repeat=selective) as pair:
            clean = pair.gbps(traffic)
        for percent in LOSSES:
            with Pair(
                delay_cycles=one_way, selective_repeat=selective, timeout=5, loss_ppm=int(percent * 10_000), random_seed=7
            ) as pair:
                share = 100 * pair.gbps(traffic, window=600_000) / clean
            goal = GOODPUT_GOALS.get(percent) if selective else None
            yield Result(f"rtl.goodput.{name}.loss{percent:g}", share, "% of lossless", goal, "higher", GOALS, HOW)


def measure() -> Iterator[Result]:
    """All of them."""
    for part in (latency, rates, without_line, both_directions, queue_pairs, throughput, loss):
        yield from part()
