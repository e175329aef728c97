# SPDX-License-Identifier: Apache-2.0
"""The tcp provider of libfabric, by its fi_pingpong. Debian has no fabtests."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar

from peers.peer import NotMeasured, Peer, free_port, output, program, server

COUNT = 4000


@dataclass(frozen=True)
class PingPong(Peer):
    """Messages of 8 bytes between reliable datagram endpoints."""

    name: ClassVar[str] = "libfabric"
    source: ClassVar[str] = "Debian libfabric-bin"

    def version(self) -> str:
        """Of the library."""
        found = re.search(r"libfabric: (\S+)", output([program("fi_info"), "--version"]))
        return found[1] if found else "?"

    def run(self) -> float:
        """A round trip: the average, as it gives no median."""
        pingpong, port = program("fi_pingpong"), free_port()
        test = [pingpong, "-p", "tcp", "-e", "rdm", "-I", str(COUNT), "-S", "8"]
        with server([*test, "-B", str(port)], port=port):
            text = output([*test, "-P", str(port), "127.0.0.1"], processor=0)
        # Bytes, sent, acknowledged, total, time, MB/s, microseconds one way, million transfers a second.
        numbers = text.strip().splitlines()[-1].split()
        if len(numbers) != 8:
            raise NotMeasured(f"fi_pingpong has another output than expected: {' '.join(numbers)}")
        return 2e-6 * float(numbers[6])


CALL = PingPong("libfabric_tcp", "fi_pingpong of 8 bytes, provider tcp, rdm, average")
