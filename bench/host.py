# SPDX-License-Identifier: Apache-2.0
"""Figures of the host software on the virtual wire, each beside the least that the same work can cost there.

`host/nacelle-device/examples/bench_host.rs` takes the samples: times in seconds, in blocks of ours and of the peer's in turn.
"""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median, quantiles

import host_shm
import host_udp
from program import samples
from result import Result

HOW = "make bench AREA=host"
UNSET = "none: goals 4 is set for the UDP link; this is the virtual wire (AF_UNIX datagrams)"

Blocks = list[dict[str, list[float]]]  # "ours" and "peer"


def ratio(blocks: Blocks) -> float:
    """Our time over the peer's: the median over all blocks of the ratio of their medians."""
    return median(median(block["ours"]) / median(block["peer"]) for block in blocks)


def pooled(blocks: Blocks, side: str) -> list[float]:
    """All samples of one side."""
    return [sample for block in blocks for sample in block[side]]


def measure() -> Iterator[Result]:
    """All of them."""
    found = samples("bench_host")
    rpc, write, icrc = found["rpc"], found["write"], found["icrc"]
    ours, peer = pooled(rpc, "ours"), pooled(rpc, "peer")

    yield Result("host.rpc.p50.ratio.unix_dgram", ratio(rpc), "x", None, "lower", UNSET, HOW)
    for percent in (50, 99):
        at, peer_at = (quantiles(times, n=100)[percent - 1] * 1e6 for times in (ours, peer))
        name = f"AF_UNIX ping-pong, {len(peer)} samples"
        yield Result(f"host.rpc.p{percent}", at, "us", None, "lower", UNSET, HOW, (name, peer_at))

    def rate(blocks: Blocks, side: str) -> float:
        return found["bytes"] / median(pooled(blocks, side)) / 1e9

    yield Result("host.write.bandwidth.ratio.unix_dgram", 1 / ratio(write), "x", None, "higher", UNSET, HOW)
    stream = ("AF_UNIX stream of frames", rate(write, "peer"))
    yield Result("host.write.bandwidth", rate(write, "ours"), "GB/s", None, "higher", UNSET, HOW, stream)
    crc = ("crc32fast of the payload", rate(icrc, "peer"))
    yield Result("host.icrc.bandwidth", rate(icrc, "ours"), "GB/s", None, "higher", "none is set", HOW, crc)
    for layer in ("rpc", "transport"):
        count = found[f"{layer}_allocations"]
        yield Result(f"host.{layer}.allocations_per_call", count, "allocations", 0, "lower", "goals 4", HOW)
    yield from host_udp.measure()
    yield from host_shm.measure()
