# SPDX-License-Identifier: Apache-2.0
"""Figures of calls, WRITEs and READs over loopback UDP, between two processes that poll, beside other software that does the same.

The peers are in `peers/`, each behind one interface. Each ratio is of runs in turn: ours, the peer's, ours. A raw UDP ping-pong,
the least that a call can cost, takes turns of milliseconds; other programs take a second each.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from statistics import median, quantiles

import host_costs
import host_sizes
from peers import grpc_python, iperf, libfabric, mpi, rust, ucx
from peers.compare import compare
from peers.peer import NotMeasured, Peer
from result import Result
from sampler import Sampler

HOW = "make bench AREA=host"
GOALS = "goals 4"
UNSET = "none is set"
# Bytes of the UDP datagram of a call of 8 bytes: RDMA WRITE Only with immediate, BTH, RETH, ImmDt, payload, ICRC.
CALL_DATAGRAM = 12 + 16 + 4 + 8 + 4
# Turns beside the raw ping-pong, and calls of each.
BLOCKS = 31
CALLS = 400
# Calls of a turn beside another program.
MANY = 10_000
LARGE = 32 << 20
LARGE_CALLS = 16
# One-sided messages: bytes, outstanding at most, and how many.
MESSAGE = 1 << 20
DEPTH = 16
MESSAGES = 400


@dataclass(frozen=True)
class Beside:
    """A peer, and the goal for our ratio to it."""

    peer: Peer
    goal: float | None = None


# Round trips: ours over theirs, so less is better. Shared memory is another way, shown for what it is.
CALL_PEERS = [
    Beside(ucx.CALL, 1.0),
    Beside(libfabric.CALL),
    Beside(mpi.TCP),
    Beside(mpi.SHARED_MEMORY),
    Beside(rust.CALL),
    Beside(grpc_python.CALL),
]
# Bandwidths: more is better.
WRITE_PEERS = [Beside(ucx.PUT, 10.0), Beside(rust.QUIC)]
READ_PEERS = [Beside(ucx.GET)]
STREAM_PEERS = [Beside(iperf.TCP), Beside(iperf.UDP[0], 1.0), Beside(iperf.UDP[1])]


def times(ours: Callable[[], float], figure: str, peers: list[Beside]) -> Iterator[Result]:
    """The ratio of our round trips to each peer's."""
    return _beside(ours, figure, peers, "lower", "us", 1e6)


def rates(ours: Callable[[], float], figure: str, peers: list[Beside]) -> Iterator[Result]:
    """The ratio of our bandwidth to each peer's."""
    return _beside(ours, figure, peers, "higher", "GB/s", 1e-9)


def _beside(ours: Callable[[], float], figure: str, peers: list[Beside], better: str, unit: str, scale: float) -> Iterator[Result]:
    for other in peers:
        name = f"{figure}.ratio.{other.peer.key}"
        source = UNSET if other.goal is None else GOALS
        try:
            found = compare(ours, other.peer)
        except NotMeasured as error:
            yield Result(name, None, "x", other.goal, better, source, HOW, reason=str(error))
        else:
            yield Result(name, found.ratio, "x", other.goal, better, source, HOW, (f"{found.title}, {unit}", found.peer * scale))


def calls(sampler: Sampler) -> Iterator[Result]:
    """Calls of 8 bytes in and out."""
    ours, raw, ratios = [], [], []
    for _ in range(BLOCKS):
        here, there = sampler.seconds(f"echo 8 {CALLS}"), sampler.seconds(f"ping {CALL_DATAGRAM} {CALLS}")
        ratios.append(median(here) / median(there))
        ours += here
        raw += there
    title = f"UDP ping-pong of {CALL_DATAGRAM} bytes, Linux {platform.release()}, us"
    yield Result("host.udp.rpc.p50.ratio.raw_udp", median(ratios), "x", 1.5, "lower", GOALS, HOW, (title, median(raw) * 1e6))
    for percent in (50, 99):
        at, peer_at = (quantiles(times, n=100)[percent - 1] * 1e6 for times in (ours, raw))
        yield Result(f"host.udp.rpc.p{percent}", at, "us", None, "lower", UNSET, HOW, (title, peer_at))
    yield from times(lambda: median(sampler.seconds(f"echo 8 {MANY}")), "host.udp.rpc.p50", CALL_PEERS)


def transfers(sampler: Sampler) -> Iterator[Result]:
    """Long inputs of calls, and one-sided messages."""

    def large() -> float:
        return LARGE / median(sampler.seconds(f"call {LARGE} {LARGE_CALLS}"))

    def one_sided(verb: str) -> Callable[[], float]:
        return lambda: MESSAGE * MESSAGES / sampler.seconds(f"{verb} {MESSAGE} {DEPTH} {MESSAGES}")[0]

    large()
    rate = median(large() for _ in range(5)) / 1e9
    yield Result("host.udp.write.bandwidth", rate, "GB/s", 3.0, "higher", GOALS, HOW)
    yield from rates(large, "host.udp.write.bandwidth", STREAM_PEERS)
    sampler.command("forget")
    for verb, peers in (("write", WRITE_PEERS), ("read", READ_PEERS)):
        figure, ours = f"host.udp.verbs.{verb}.bandwidth", one_sided(verb)
        ours()
        yield Result(figure, median(ours() for _ in range(5)) / 1e9, "GB/s", None, "higher", UNSET, HOW)
        yield from rates(ours, figure, peers)


def measure() -> Iterator[Result]:
    """All of them."""
    with Sampler() as sampler:
        yield from calls(sampler)
        yield from transfers(sampler)
        sampler.command("forget")
        yield from host_sizes.measure(sampler)
        yield from host_costs.measure(sampler)
