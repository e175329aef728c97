# SPDX-License-Identifier: Apache-2.0
"""Figures of the host software on the virtual wire, each beside the least that the same work can cost there.

`host/nacelle-device/examples/bench_host.rs` takes the samples: times in seconds, in blocks of ours and of the peer's in turn.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from result import Result

HOST = Path(__file__).resolve().parents[1] / "host"
HOW = "make bench AREA=host"
PROGRAM = ["--locked", "--release", "--quiet", "-p", "nacelle-device", "--example", "bench_host"]
SECONDS = 300
UNSET = "none: goals 4 is set for the UDP link, which does not exist yet; this is the virtual wire (AF_UNIX datagrams)"

Blocks = list[dict[str, list[float]]]  # "ours" and "peer"


def samples() -> dict[str, Any]:
    """Builds and runs the program."""
    if subprocess.run(["cargo", "build", *PROGRAM], cwd=HOST).returncode:
        sys.exit("the benchmark of the host software could not be built: see above")
    try:
        done = subprocess.run(["cargo", "run", *PROGRAM], cwd=HOST, stdout=subprocess.PIPE, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        sys.exit(f"the benchmark of the host software did not end within {SECONDS} s")
    if done.returncode:
        sys.exit(f"the benchmark of the host software failed with status {done.returncode}: see above")
    return json.loads(done.stdout)


def ratio(blocks: Blocks) -> float:
    """Our time over the peer's: the median over all blocks of the ratio of their medians."""
    return median(median(block["ours"]) / median(block["peer"]) for block in blocks)


def pooled(blocks: Blocks, side: str) -> list[float]:
    """All samples of one side."""
    return [sample for block in blocks for sample in block[side]]


def measure() -> Iterator[Result]:
    """All of them."""
    found = samples()
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
