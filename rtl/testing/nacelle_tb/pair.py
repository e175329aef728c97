# SPDX-License-Identifier: Apache-2.0
"""Two simulated devices on a line, with queue pairs between them, each driven by its traffic kernel: perftest in gateware."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Any

from .cci import address
from .device import standard
from .management import Manager, QpAttributes
from .peer import ip_bytes, mac_bytes
from .session import configure
from .sources import ROOT
from .svtypes import constant

sys.path.insert(0, str(ROOT / "sim"))
from nacelle_sim import NO_RATE_LIMIT, Line, SimDevice

CLOCK_HZ = 250_000_000
LINE_RATE_MBPS = 100_000
IP = ("10.77.0.2", "10.77.0.3")
MAC = ("02:4e:41:43:4c:02", "02:4e:41:43:4c:03")
MTU_CODE = {256: 1, 512: 2, 1024: 3, 2048: 4, 4096: 5}
FIRST_QPN = 2
FIRST_PSN = 0xFFFF00  # so that every longer run passes the wrap

DEVICE = standard()
TRAFFIC_CLIENT = DEVICE.client_of("traffic")
RQ_DEPTH = DEVICE.receive_queue_depth
TRAFFIC_SOCKET = DEVICE.socket_of("traffic")
RESULTS = ("posted completed failed failure cycles first").split()

LOCAL, REMOTE, REGION_BYTES = 0x1000_0000, 0x2000_0000, 0x1000_0000


def _traffic(name: str) -> int:
    """Address of a register of the traffic kernel."""
    return address(f"traffic.{name.upper()}", TRAFFIC_SOCKET)


def cycles(seconds: float) -> int:
    """Of the device's clock."""
    return math.ceil(seconds * CLOCK_HZ)


@dataclass
class Traffic:
    """What a traffic kernel is to do."""

    opcode: str
    """WR_... of roce_pkg"""
    length: int
    count: int = 1
    qps: int = 1
    depth: int = 16


@dataclass
class Outcome:
    """What a traffic kernel counted."""

    traffic: Traffic
    counted: dict[str, int] = field(default_factory=dict)

    @property
    def cycles_each(self) -> float:
        """Cycles between completions."""
        return (self.counted["cycles"] - self.counted["first"]) / max(self.traffic.count - 1, 1)


def prepare(device: SimDevice) -> tuple[Manager, int]:
    """Lets the traffic kernel use its memory, and registers what others may write and read: who manages the device, and the key."""
    device.write(address("socket.RDMA_PAGE", TRAFFIC_SOCKET), LOCAL >> 12)
    device.write(address("socket.RDMA_PAGES", TRAFFIC_SOCKET), REGION_BYTES >> 12)
    manager = Manager(device)
    return manager, manager.register(REMOTE, REGION_BYTES, pd=TRAFFIC_CLIENT)


def attributes(ip: str, mac: str, qpn: int, **others: Any) -> QpAttributes:
    """Of a queue pair for traffic kernels whose other end is there."""
    return QpAttributes(
        dst_mac=int.from_bytes(mac_bytes(mac), "big"),
        dst_ip=int.from_bytes(ip_bytes(ip), "big"),
        dest_qp_num=qpn,
        pd=TRAFFIC_CLIENT,
        client=TRAFFIC_CLIENT,
        rq_psn=FIRST_PSN,
        sq_psn=FIRST_PSN,
        **others,
    )


def start_traffic(device: SimDevice, traffic: Traffic, rkey: int, qpn: int = FIRST_QPN) -> None:
    """Lets the traffic kernel of a device begin, with this queue pair and those behind it."""
    wrap = max(1, min(1 << 16, REGION_BYTES // max(traffic.length, 1)))
    values = {
        "opcode": constant(f"roce_pkg::{traffic.opcode}"),
        "length": traffic.length,
        "qpn": qpn,
        "qps": traffic.qps,
        "depth": traffic.depth,
        "count": traffic.count,
        "local_lo": LOCAL,
        "local_hi": 0,
        "remote_lo": REMOTE,
        "remote_hi": 0,
        "rkey": rkey,
        "stride": max(traffic.length, 64),
        "wrap": wrap if traffic.length <= REGION_BYTES else 1,
    }
    for name, value in values.items():
        device.write(_traffic(name), value)
    device.write(_traffic("control"), 1)


def works(device: SimDevice) -> bool:
    """Its traffic kernel is not done yet."""
    return bool(device.read(_traffic("status")) & 1)


def counted(device: SimDevice) -> dict[str, int]:
    """What its traffic kernel has counted."""
    return {name: device.read(_traffic(name)) for name in RESULTS}


class Pair:
    """Two devices with `qps` queue pairs between them, in RTS on both sides. Keywords of `line` as in nacelle_sim_line_config.

    `make_line` is Line, or what stands in for it.
    """

    def __init__(
        self,
        qps: int = 1,
        mtu: int = 4096,
        *,
        unlimited: bool = False,
        selective_repeat: bool = False,
        timeout: int = 8,
        device: str = "standard",
        make_line: Callable[..., Any] = Line,
        **line: int,
    ) -> None:
        rate = NO_RATE_LIMIT if unlimited else LINE_RATE_MBPS
        self.devices = [SimDevice(512, line_rate_mbps=rate, device=device) for _ in range(2)]
        for device, ip, mac in zip(self.devices, IP, MAC, strict=True):
            configure(device, ip=ip, mac=mac)
        self.line = make_line(*self.devices, **line)
        self.line.step(1000)
        self.managers, self.keys = zip(*map(prepare, self.devices), strict=True)
        self._attributes = {"path_mtu": MTU_CODE[mtu], "selective_repeat": selective_repeat, "timeout": timeout}
        for i in range(qps):
            self.make(FIRST_QPN + i)

    def __enter__(self) -> Pair:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.line.close()
        for device in self.devices:
            device.close()

    def make(self, qpn: int) -> None:
        """Sets up a queue pair at both devices, with the same number. Raises ManagerError if a device has it already."""
        for me, manager in enumerate(self.managers):
            manager.set_up(qpn, attributes(IP[1 - me], MAC[1 - me], qpn, **self._attributes))

    def start(self, me: int, traffic: Traffic) -> None:
        """Lets one device begin."""
        start_traffic(self.devices[me], traffic, self.keys[1 - me])

    def finish(self, me: int, traffic: Traffic, limit: int = 200_000_000, skip: bool = False) -> Outcome:
        """Runs until one device is done and returns what it counted. Raises TimeoutError if that takes too long. With `skip`, time
        in which nothing happens costs nothing; it passes in steps of 500 cycles, which is what the times are worth then."""
        begin = self.devices[me].stats.cycles
        while works(self.devices[me]):
            self.line.step(500, skip)
            if self.devices[me].stats.cycles - begin > limit:
                raise TimeoutError(f"{traffic} is not done after {limit} cycles")
        outcome = Outcome(traffic, counted(self.devices[me]))
        if outcome.counted["failed"] or outcome.counted["completed"] != traffic.count:
            raise RuntimeError(f"{traffic} failed: {outcome.counted}")
        return outcome

    def run(self, traffic: Traffic, skip: bool = False) -> Outcome:
        """The first device works. `skip` as in finish()."""
        self.start(0, traffic)
        return self.finish(0, traffic, skip=skip)

    def gbps(self, traffic: Traffic, both: bool = False, settle: int = 30_000, window: int = 60_000) -> float:
        """Payload that arrives in memory once the run is steady, in Gb/s of each direction; the run does not end."""
        endless = replace(traffic, count=0xFFFF_FFFF)
        if traffic.opcode == "WR_SEND":
            for me in range(1 + both):
                self.start(1 - me, replace(endless, opcode="WR_RECV", depth=RQ_DEPTH))
        for me in range(1 + both):
            self.start(me, endless)
        self.line.step(settle)
        before = self.arrived()
        self.line.step(window)
        return (self.arrived() - before) * 8 / window * CLOCK_HZ / 1e9 / (1 + both)

    def arrived(self) -> int:
        """Bytes that were written to both devices' memory so far."""
        return sum(device.stats.dram_write_bytes for device in self.devices)
