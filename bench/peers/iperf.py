# SPDX-License-Identifier: Apache-2.0
"""iperf3 over TCP and UDP."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import ClassVar

from peers.peer import NotMeasured, Peer, free_port, output, program, server

SECONDS = "1"


@dataclass(frozen=True)
class Iperf(Peer):
    """Bytes that arrive in a second."""

    options: tuple[str, ...]
    name: ClassVar[str] = "iperf3"
    source: ClassVar[str] = "Debian iperf3"

    def version(self) -> str:
        """Of the program."""
        found = re.search(r"iperf (\S+)", output([program("iperf3"), "--version"]))
        return found[1] if found else "?"

    def report(self) -> dict[str, float]:
        """Bytes a second that arrived, and the processor time of both sides in seconds a gigabyte."""
        iperf, port = program("iperf3"), free_port()
        with server([iperf, "-s", "-1", "-p", str(port)], port=port):
            text = output([iperf, "-c", "127.0.0.1", "-p", str(port), "-t", SECONDS, "-J", *self.options], processor=0)
        end = json.loads(text).get("end", {})
        total = end.get("sum_received") or end.get("sum")
        if not total:
            raise NotMeasured("iperf3 reports no sum")
        received = total["bytes"] * (1 - total.get("lost_percent", 0) / 100)
        if received <= 0 or total["seconds"] <= 0:
            raise NotMeasured("iperf3 received nothing")
        load = end["cpu_utilization_percent"]
        processors = (load["host_total"] + load["remote_total"]) / 100
        return {"rate": received / total["seconds"], "cpu_per_gb": processors * total["seconds"] / (received / 1e9)}

    def run(self) -> float:
        """Bytes a second."""
        return self.report()["rate"]


TCP = Iperf("iperf3_tcp", "TCP", ())


def _udp(length: int) -> Iperf:
    return Iperf(f"iperf3_{length}", f"-u -b 0 -l {length}, received", ("-u", "-b", "0", "-l", str(length)))


UDP = (_udp(1400), _udp(65000))
