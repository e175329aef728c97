# SPDX-License-Identifier: Apache-2.0
"""Figures of calls and WRITEs over loopback UDP, between two processes that poll, beside raw UDP and iperf3.

`host/nacelle-device/examples/bench_udp.rs` takes the samples: ours and those of a raw UDP ping-pong in turn, each between two
processes, one on each of two processors.
"""

from __future__ import annotations

import json
import platform
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from statistics import median, quantiles
from typing import Any

from program import samples
from result import Result

HOW = "make bench AREA=host"
# Ten times what UCX puts over TCP.
WRITE_GOAL = 3.0
SECONDS = 2


def iperf3(length: int) -> tuple[str, float] | None:
    """What iperf3 receives over loopback UDP, in GB/s, with its version; None if it is not installed."""
    program = shutil.which("iperf3")
    if program is None:
        return None
    version = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    with subprocess.Popen([program, "-s", "-1", "-p", port], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        time.sleep(0.5)
        command = [program, "-c", "127.0.0.1", "-p", port, "-u", "-b", "0", "-l", str(length), "-t", str(SECONDS), "-J"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        server.terminate()
    report: dict[str, Any] = json.loads(done.stdout)
    total = report["end"]["sum"]
    received = total["bytes"] * (1 - total["lost_percent"] / 100) / total["seconds"] / 1e9
    number = re.search(r"iperf (\S+)", version)
    return f"iperf3 {number[1] if number else '?'} -u -b 0 -l {length}, received", received


def measure() -> Iterator[Result]:
    """All of them."""
    found = samples("bench_udp")
    rpc = found["rpc"]
    ours, peer = ([sample for block in rpc for sample in block[side]] for side in ("ours", "peer"))
    raw = f"raw UDP ping-pong of 44 bytes, Linux {platform.release()}"
    ratio = median(median(block["ours"]) / median(block["peer"]) for block in rpc)
    goal = "goals 4"
    yield Result("host.udp.rpc.p50.ratio.raw_udp", ratio, "x", 1.5, "lower", goal, HOW, (raw, 1.0))
    for percent in (50, 99):
        at, peer_at = (quantiles(times, n=100)[percent - 1] * 1e6 for times in (ours, peer))
        yield Result(f"host.udp.rpc.p{percent}", at, "us", None, "lower", "none is set", HOW, (raw, peer_at))
    write = found["bytes"] / median(sample for block in found["write"] for sample in block["ours"]) / 1e9
    yield Result("host.udp.write.bandwidth", write, "GB/s", WRITE_GOAL, "higher", goal, HOW)
    for length in (1400, 65000):
        if (other := iperf3(length)) is not None:
            name = f"host.udp.write.bandwidth.ratio.iperf3_{length}"
            bound = 1.0 if length == 1400 else None
            yield Result(name, write / other[1], "x", bound, "higher", goal, HOW, other)
