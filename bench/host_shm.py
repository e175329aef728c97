# SPDX-License-Identifier: Apache-2.0
"""Figures of calls and WRITEs by shared memory, between two processes that poll, beside UCX over shared memory.

`host/nacelle-device/examples/bench_shm.rs` takes our samples and UCX's `ucx_perftest` (Debian: ucx-utils) the peer's, in turn, each
between two processes, one on each of two processors.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from statistics import median

from program import samples
from result import Result

HOW = "make bench AREA=host"
ROUNDS = 3
SECONDS = 60
MIB = 1 << 20
UCX = {**os.environ, "UCX_TLS": "posix,self", "UCX_WARN_UNUSED_ENV_VARS": "n"}


def ucx(test: str, size: int, count: int) -> tuple[float, float]:
    """What one run of ucx_perftest says: the median time in seconds, one way, and the bandwidth in bytes a second."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    pin = [["taskset", "-c", str(cpu)] if (os.cpu_count() or 1) > 1 else [] for cpu in (0, 1)]
    server = [*pin[1], "ucx_perftest", "-p", port]
    with subprocess.Popen(server, env=UCX, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as peer:
        time.sleep(0.5)
        client = [*pin[0], "ucx_perftest", "127.0.0.1", "-p", port, "-t", test, "-s", str(size), "-n", str(count), "-f"]
        done = subprocess.run(client, env=UCX, capture_output=True, text=True, timeout=SECONDS, check=True)
        peer.wait(SECONDS)
    figures = done.stdout.strip().splitlines()[-1].split()
    return float(figures[1]) / 1e6, float(figures[5]) * MIB


def version() -> str | None:
    """UCX's version; None if it is not installed."""
    if shutil.which("ucx_perftest") is None or shutil.which("ucx_info") is None:
        return None
    said = subprocess.run(["ucx_info", "-v"], capture_output=True, text=True, check=True).stdout
    found = re.search(r"(\d+\.\d+\.\d+)", said)
    return f"UCX {found[1] if found else '?'} posix"


def measure() -> Iterator[Result]:
    """All of them."""
    peer = version()
    rpc, ours_rate, rpc_ratios, rate_ratios, peer_rtts, peer_rates = [], [], [], [], [], []
    for _ in range(ROUNDS if peer else 1):
        found = samples("bench_shm")
        times = found["rpc"]
        rate = found["bytes"] / median(found["write"])
        rpc.append(median(times))
        ours_rate.append(rate)
        if peer:
            rtt = 2 * ucx("ucp_am_lat", 8, 100_000)[0]
            put = ucx("ucp_put_bw", found["bytes"], 40)[1]
            peer_rtts.append(rtt)
            peer_rates.append(put)
            rpc_ratios.append(median(times) / rtt)
            rate_ratios.append(rate / put)
    beside = (f"{peer} active message there and back", median(peer_rtts) * 1e6) if peer else None
    yield Result("host.shm.rpc.p50", median(rpc) * 1e6, "us", None, "lower", "none is set", HOW, beside)
    beside = (f"{peer} put of as many bytes", median(peer_rates) / 1e9) if peer else None
    yield Result("host.shm.write.bandwidth", median(ours_rate) / 1e9, "GB/s", None, "higher", "none is set", HOW, beside)
    if peer:
        goal = "goals: links"
        yield Result("host.shm.rpc.p50.ratio.ucx", median(rpc_ratios), "x", 1.2, "lower", goal, HOW)
        yield Result("host.shm.write.bandwidth.ratio.ucx", median(rate_ratios), "x", 1 / 1.2, "higher", goal, HOW)
