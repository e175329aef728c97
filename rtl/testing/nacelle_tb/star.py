# SPDX-License-Identifier: Apache-2.0
"""Several simulated devices on one switch, with queue pairs between them, each driven by its traffic kernel.

The switch stores and forwards. Each of its ports has a queue in front of the line to its device: a frame that comes while the queue
has more than `mark_bytes` is marked (ECN, RFC 3168), one that does not fit into `queue_bytes` is dropped. All devices run for
a quantum of cycles in turn; since a frame takes longer than that through the switch, none arrives before it was sent, and the order
and the times at which frames leave the switch are exact. A device takes a frame at the begin of the next quantum: up to a quantum
late.

With `pfc_bytes` the switch loses nothing: it stops the RoCE frames of a device (PFC, IEEE 802.1Q clause 36) while more than that
many bytes from it wait in the switch, until half of them do.
"""

from __future__ import annotations

import heapq
import itertools
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import TracebackType

from .cci import address
from .pair import LINE_RATE_MBPS, MTU_CODE, Traffic, attributes, prepare, start_traffic
from .peer import internet_checksum, mac_bytes
from .session import SimDevice, configure

QUANTUM = 100  # cycles, below LATENCY
LATENCY = 125  # cycles in the switch, 500 ns
LINE_BYTES = 24  # FCS, preamble and gap
BROADCAST = b"\xff" * 6
CE, ECT = 3, (1, 2)
ROCE_PRIORITY = 3
QUANTUM_BITS = 512  # of a pause
LONGEST_PAUSE = 0xFFFF  # quanta
FIRST_QPN = 2
TIMEOUT = 8  # IBTA's code for 1 ms


def marked(frame: bytes) -> bytes | None:
    """An IPv4 frame with congestion experienced; None if its sender does not understand that."""
    if frame[12:14] != b"\x08\x00" or frame[15] & 3 not in ECT:
        return None
    head = bytearray(frame[14:34])
    head[1] |= CE
    head[10:12] = bytes(2)
    head[10:12] = struct.pack("!H", internet_checksum(bytes(head)))
    return frame[:14] + bytes(head) + frame[34:]


def pfc_frame(quanta: int, source: bytes = b"\2\0\0\0\0\xff") -> bytes:
    """Stops RoCE frames for so long, or lets them go on."""
    times = [quanta if priority == ROCE_PRIORITY else 0 for priority in range(8)]
    body = struct.pack("!HHH8H", 0x8808, 0x0101, 1 << ROCE_PRIORITY, *times)
    return (b"\x01\x80\xc2\0\0\x01" + source + body).ljust(60, b"\0")


@dataclass
class Port:
    """Of the switch, towards a device."""

    free_at: float = 0
    dropped: int = 0
    marked: int = 0
    deepest: float = 0  # bytes
    held: int = 0  # bytes from its device that are in the switch
    stopped_at: float | None = None  # its device was told to stop
    stops: int = 0


@dataclass(frozen=True)
class Passage:
    """A frame that leaves a device, or arrives at one: cycles of its first and last beat; both the end of one that arrives."""

    device: int
    leaves: bool
    first: float
    last: float
    frame: bytes


class Star:
    """`count` devices, all with one random seed: so the region of each has the same key, which a traffic kernel needs that writes
    to several. `congestion`: rates are limited (docs/reference/congestion.md). `watch` sees each frame leave
    a device and arrive at one."""

    def __init__(
        self,
        count: int,
        *,
        data_w: int = 512,
        mtu: int = 4096,
        rate_mbps: int = LINE_RATE_MBPS,
        queue_bytes: int = 1 << 20,
        mark_bytes: int = 1 << 17,
        congestion: bool = True,
        selective_repeat: bool = True,
        quantum: int = QUANTUM,
        watch: Callable[[Passage], None] = lambda passage: None,
        pfc_bytes: int | None = None,
    ) -> None:
        self._quantum, self._watch = quantum, watch
        self.ips = [f"10.77.0.{2 + i}" for i in range(count)]
        self.macs = [f"02:4e:41:43:4c:{2 + i:02x}" for i in range(count)]
        self.devices = [SimDevice(data_w, line_rate_mbps=rate_mbps) for _ in range(count)]
        self.ports = [Port() for _ in range(count)]
        self._at = {mac_bytes(mac): i for i, mac in enumerate(self.macs)}
        self._bytes_per_cycle = rate_mbps * 1e6 / 8 / self.devices[0].info.clock_hz
        self._queue_bytes, self._mark_bytes, self._pfc_bytes = queue_bytes, mark_bytes, pfc_bytes
        self._leaving: list[tuple[float, int, int]] = []  # when, from which device, bytes: frames that are in the switch
        self._longest_pause = LONGEST_PAUSE * QUANTUM_BITS / 8 / self._bytes_per_cycle
        self._under_way: list[tuple[float, int, int, bytes]] = []  # when, a number that keeps the order, to which device, what
        self._number = itertools.count()
        self._attributes = {"path_mtu": MTU_CODE[mtu], "selective_repeat": selective_repeat, "timeout": TIMEOUT}
        for device, ip, mac in zip(self.devices, self.ips, self.macs, strict=True):
            configure(device, ip=ip, mac=mac)
            device.write(address("PAUSE_QUANTA"), round(self._bytes_per_cycle * 8 / QUANTUM_BITS * 65536))
            for name in ("RP_ENABLE", "NP_ENABLE"):
                device.write(address(name), int(congestion))
        prepared = [prepare(device) for device in self.devices]
        self.managers = [manager for manager, _ in prepared]
        keys = {key for _, key in prepared}
        assert len(keys) == 1
        self.key = keys.pop()
        self._next_qpn = [FIRST_QPN] * count
        # Registers took them different numbers of cycles.
        self.now = max(device.stats.cycles for device in self.devices)
        for device in self.devices:
            device.step(self.now - device.stats.cycles)

    def __enter__(self) -> Star:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for device in self.devices:
            device.close()

    def join(self, a: int, b: int) -> tuple[int, int]:
        """A queue pair between two devices; its number at each."""
        qpns = self._next_qpn[a], self._next_qpn[b]
        for me, other, mine, its in ((a, b, *qpns), (b, a, *reversed(qpns))):
            self.managers[me].set_up(mine, attributes(self.ips[other], self.macs[other], its, **self._attributes))
            self._next_qpn[me] += 1
        return qpns

    def start(self, device: int, traffic: Traffic, qpn: int = FIRST_QPN) -> None:
        """Its traffic kernel begins."""
        start_traffic(self.devices[device], traffic, self.key, qpn)

    def received(self, device: int, qpns: Sequence[int]) -> list[int]:
        """Bytes of requests that it has received so far, by queue pair."""
        return [self.managers[device].counters(qpn)["rcvd_bytes"] for qpn in qpns]

    def step(self, cycles: int) -> None:
        """Runs all devices, and the switch between them. Register accesses before may have taken a device ahead of the others."""
        end = max(device.stats.cycles for device in self.devices) + cycles
        while self.now < end:
            self._release(self.now)
            self.now += self._quantum
            while self._under_way and self._under_way[0][0] < self.now:
                when, _, to, frame = heapq.heappop(self._under_way)
                self.devices[to].send(frame)
                self._watch(Passage(to, False, when, when, frame))
            sent = []
            for i, device in enumerate(self.devices):
                if (behind := self.now - device.stats.cycles) > 0:
                    device.step(behind)
                while (one := device.pull()) is not None:
                    sent.append((one.last_beat, i, one.frame))
                    self._watch(Passage(i, True, one.first_beat, one.last_beat, one.frame))
            for when, i, frame in sorted(sent):
                self._forward(when, i, frame)

    def _forward(self, when: int, source: int, frame: bytes) -> None:
        to = self._at.get(frame[:6])
        for i in [to] if to is not None else range(len(self.devices)) if frame[:6] == BROADCAST else []:
            if i != source:
                self._queue(when + LATENCY, source, i, frame)

    def _queue(self, when: float, source: int, to: int, frame: bytes) -> None:
        self._release(when)
        port, size = self.ports[to], len(frame) + LINE_BYTES
        waiting = max(0.0, port.free_at - when) * self._bytes_per_cycle
        if waiting + size > self._queue_bytes:
            port.dropped += 1
            return
        if waiting > self._mark_bytes and (changed := marked(frame)) is not None:
            frame = changed
            port.marked += 1
        port.deepest = max(port.deepest, waiting + size)
        port.free_at = max(port.free_at, when) + size / self._bytes_per_cycle
        heapq.heappush(self._under_way, (port.free_at, next(self._number), to, frame))
        if self._pfc_bytes is not None:
            heapq.heappush(self._leaving, (port.free_at, source, size))
            self.ports[source].held += size
            self._flow(when, source)

    def _release(self, now: float) -> None:
        """Frames have left the switch by now."""
        while self._leaving and self._leaving[0][0] <= now:
            when, source, size = heapq.heappop(self._leaving)
            self.ports[source].held -= size
            self._flow(when, source)

    def _flow(self, now: float, source: int) -> None:
        """Stops a device, again before its pause ends, or lets it go on."""
        port = self.ports[source]
        assert self._pfc_bytes is not None
        if port.held > self._pfc_bytes:
            if port.stopped_at is None or now - port.stopped_at > self._longest_pause / 2:
                port.stops += port.stopped_at is None
                port.stopped_at = now
                self._tell(now, source, LONGEST_PAUSE)
        elif port.stopped_at is not None and port.held <= self._pfc_bytes // 2:
            port.stopped_at = None
            self._tell(now, source, 0)

    def _tell(self, now: float, device: int, quanta: int) -> None:
        heapq.heappush(self._under_way, (now, next(self._number), device, pfc_frame(quanta)))


def fairness(shares: Sequence[float]) -> float:
    """Jain's index: 1 if all have the same, 1/n if one has all (Jain, Chiu, Hawe, DEC-TR-301, 1984)."""
    return sum(shares) ** 2 / (len(shares) * sum(share * share for share in shares))
