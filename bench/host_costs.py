# SPDX-License-Identifier: Apache-2.0
"""What calls cost beside time: processor, memory, connections; and what is left of the bandwidth when frames are lost."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from statistics import median

import soft_roce
from peers import iperf
from peers.peer import NotMeasured
from result import Result
from sampler import Sampler

HOW = "make bench AREA=host"
UNSET = "none is set"
CALLS = 20_000
LARGE = 32 << 20
LARGE_CALLS = 16
CONNECTIONS = 1000
CALL_ROUNDS = 5
IDLE_CALLS = 5_000
# As good as no loss, on the same link.
NONE = 1e-12
# Shares of frames that are lost, and messages of 64 KiB that soft-RoCE sends meanwhile, and without loss.
LOSSES = {0.001: 800, 0.01: 400, 0.05: 100}
MESSAGES = 400
LOSSY_BYTES = 8 << 20
LOSSY_CALLS = 4
ROUNDS = 7
PEER_ROUNDS = 3
# Of the share that is left.
RATIO_GOALS = {0.01: 2.0}


def processor(sampler: Sampler) -> Iterator[Result]:
    """Processor time of both sides. Both poll while they wait for each other, as iperf3 does not."""
    for command, name, unit, work in (
        (f"echo 8 {CALLS}", "host.udp.cpu_per_call", "us", CALLS / 1e6),
        (f"call {LARGE} {LARGE_CALLS}", "host.udp.cpu_per_gigabyte", "s/GB", LARGE * LARGE_CALLS / 1e9),
    ):
        sampler.seconds(command)
        before = sampler.cpu_seconds()
        sampler.seconds(command)
        used = (sampler.cpu_seconds() - before) / work
        peer = None
        if unit == "s/GB":
            try:
                peer = (f"{iperf.TCP.title()}, s/GB", iperf.TCP.report()["cpu_per_gb"])
            except NotMeasured:
                peer = None
        yield Result(name, used, unit, None, "lower", UNSET, HOW, peer)
    sampler.command("forget")


def connections() -> Iterator[Result]:
    """Many connections to one device: all but one idle, and then each with a call under way at the same time."""
    with Sampler() as fresh:
        beside_idle = fresh.seconds(f"beside-idle {CONNECTIONS} {IDLE_CALLS}")
        found = fresh.command(f"connections {CONNECTIONS} {CALL_ROUNDS}")
    yield Result(f"host.udp.idle{CONNECTIONS}.call", median(beside_idle) * 1e6, "us", None, "lower", UNSET, HOW)
    opened, *rounds = found["seconds"]
    name = f"host.udp.connections{CONNECTIONS}"
    yield Result(f"{name}.open", opened / CONNECTIONS * 1e6, "us each", None, "lower", UNSET, HOW)
    yield Result(f"{name}.call", median(rounds) / CONNECTIONS * 1e6, "us each", None, "lower", UNSET, HOW)
    for side, (before, after) in zip(("caller", "device"), found["memory"], strict=True):
        memory = (after - before) / CONNECTIONS / 1024
        yield Result(f"{name}.memory.{side}", memory, "KiB each", None, "lower", UNSET, HOW)


def _loss_name(rate: float) -> str:
    return f"loss{rate * 100:g}"


def loss(sampler: Sampler) -> Iterator[Result]:
    """Bandwidth of long inputs while frames are lost in both directions, its share of that without loss, and soft-RoCE's share."""

    def bandwidth(rate: float) -> float:
        # Not the median of the calls: a timeout now and then is what loss costs.
        return LOSSY_BYTES * LOSSY_CALLS / sum(sampler.seconds(f"lossy {rate:.12f} {LOSSY_BYTES} {LOSSY_CALLS}"))

    rounds = [{rate: bandwidth(rate) for rate in (NONE, *LOSSES)} for _ in range(ROUNDS)]
    sampler.command("forget")
    # The best of each: what else the machine does only makes a round slower, and each loses frames enough.
    best = {rate: max(found[rate] for found in rounds) for rate in (NONE, *LOSSES)}
    shares = {rate: 100 * best[rate] / best[NONE] for rate in LOSSES}
    for rate, share in shares.items():
        name = _loss_name(rate)
        yield Result(f"host.udp.goodput.{name}", best[rate] / 1e9, "GB/s", None, "higher", UNSET, HOW)
        yield Result(f"host.udp.goodput.share.{name}", share, "% of lossless", None, "higher", UNSET, HOW)
    try:
        with soft_roce.SoftRoce() as peer:
            for rate, share in shares.items():
                yield _beside_soft_roce(peer, rate, share)
    except NotMeasured as error:
        for rate in shares:
            yield _missing(rate, str(error))


def _missing(rate: float, reason: str) -> Result:
    name = f"host.udp.goodput.share.ratio.soft_roce.{_loss_name(rate)}"
    return Result(name, None, "x", RATIO_GOALS.get(rate), "higher", "goals 4", HOW, reason=reason)


def _beside_soft_roce(peer: soft_roce.SoftRoce, rate: float, share: float) -> Result:
    """Our share over that of soft-RoCE, which is measured without loss and with it in turn."""
    try:
        pairs = [(peer.bandwidth(0.0, MESSAGES), peer.bandwidth(rate, LOSSES[rate])) for _ in range(PEER_ROUNDS)]
    except NotMeasured as error:
        return _missing(rate, str(error))
    lossless, lossy = (max(runs) for runs in zip(*pairs, strict=True))
    theirs = 100 * lossy / lossless
    return replace(_missing(rate, ""), value=share / theirs, peer=(f"{peer.title}, % of lossless", theirs), reason=None)


def measure(sampler: Sampler) -> Iterator[Result]:
    """All of them."""
    yield from processor(sampler)
    yield from connections()
    yield from loss(sampler)
