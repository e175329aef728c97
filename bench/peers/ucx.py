# SPDX-License-Identifier: Apache-2.0
"""UCX over TCP, by its ucx_perftest."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar

from peers.peer import NotMeasured, Peer, free_port, output, program, server

# Of the loopback interface.
TCP = {"UCX_TLS": "tcp", "UCX_NET_DEVICES": "lo"}
MEBIBYTE = 1 << 20


@dataclass(frozen=True)
class Ucx(Peer):
    """One test of ucx_perftest."""

    test: str
    size: int
    count: int
    name: ClassVar[str] = "UCX"
    source: ClassVar[str] = "Debian ucx-utils"

    def version(self) -> str:
        """Of the library."""
        found = re.search(r"Version (\S+)", output([program("ucx_info"), "-v"]))
        return found[1] if found else "?"

    def run(self) -> float:
        """A round trip of a test of latency, the bandwidth of any other."""
        perftest, port = program("ucx_perftest"), free_port()
        with server([perftest, "-p", str(port)], TCP, port):
            test = ["-t", self.test, "-s", str(self.size), "-n", str(self.count), "-w", str(self.count // 10), "-f"]
            text = output([perftest, "127.0.0.1", "-p", str(port), *test], TCP, 0)
        # Count, latency (median, average, overall), bandwidth (average, overall), messages a second (both).
        numbers = text.strip().splitlines()[-1].split()
        if len(numbers) != 8:
            raise NotMeasured(f"ucx_perftest has another output than expected: {' '.join(numbers)}")
        # It counts one way of a round trip.
        return 2e-6 * float(numbers[1]) if self.test.endswith("_lat") else float(numbers[5]) * MEBIBYTE


CALL = Ucx("ucx_am_tcp", "active messages of 8 bytes over TCP", "ucp_am_lat", 8, 10_000)
PUT = Ucx("ucx_put_tcp", "put of 1 MiB over TCP", "ucp_put_bw", MEBIBYTE, 300)
GET = Ucx("ucx_get_tcp", "get of 1 MiB over TCP", "ucp_get", MEBIBYTE, 200)
