# SPDX-License-Identifier: Apache-2.0
"""Peers that keep a simulated device busy with WRITEs and READs, and measure each: a small requester for each queue pair."""

from __future__ import annotations

import random
import struct
import sys
from collections import deque
from dataclasses import dataclass, field

from .device import MEMORY_STRIDE_W
from .management import Manager, QpAttributes
from .peer import ACKNOWLEDGE, READ_FIRST, READ_ONLY, READ_REQUEST, WRITE_ONLY, Peer, ip_bytes, mac_bytes, parse
from .session import configure
from .sources import ROOT

sys.path.insert(0, str(ROOT / "sim"))
from nacelle_sim import NO_RATE_LIMIT, Sent, SimDevice

MTU = 1024
MTU_CODE = 3
PSNS = 1 << 24
HALF = PSNS // 2
TIMEOUT = 25_000
"""Cycles without progress after which a requester begins again at its oldest request"""
RNR_TIMERS = 100_000
"""So many times is min_rnr_timer 1, 0.01 ms, in a second"""


@dataclass
class Request:
    """One WRITE or READ under way."""

    psn: int
    packets: int
    reads: bool
    frame: bytes
    address: int
    data: bytes
    """Of a WRITE; of a READ what must come"""
    entered: int = -1
    got: bytes = b""


@dataclass
class Flow:
    """A queue pair of the device with the memory that its peer uses, in turn if there are several regions.

    `kind`: "write", "read", or "both" in turn.

    `depth` messages of `size` bytes are under way, at most MTU if they are WRITEs.
    """

    qpn: int
    kind: str
    size: int
    depth: int
    bases: tuple[int, ...]
    region_bytes: int = 1 << 16
    psn: int = 0
    keys: list[int] = field(default_factory=list)
    under_way: deque[Request] = field(default_factory=deque)
    content: dict[int, bytes] = field(default_factory=dict)
    latencies: list[int] = field(default_factory=list)
    done: int = 0
    refused: int = 0
    repeated: int = 0
    turn: int = 0
    paused_until: int = 0
    progress: int = 0


class Load:
    """A device under load: its queue pairs and their peers."""

    def __init__(self, device: SimDevice, flows: list[Flow], seed: int = 1) -> None:
        self.device = device
        self.rnr_cycles = device.info.clock_hz // RNR_TIMERS
        self.peer = Peer()
        self.flows = {flow.qpn: flow for flow in flows}
        self.random = random.Random(seed)
        self._entering: deque[Request | None] = deque()
        self.others: list[Sent] = []
        """Frames of the device that are not RoCE"""
        manager = Manager(device)
        for flow in flows:
            flow.psn = self.random.getrandbits(24)
            for base in flow.bases:
                flow.keys.append(manager.register(base, flow.region_bytes))
                for address in range(base, base + flow.region_bytes, 4096):
                    device.dram_write(address, self.random.randbytes(4096))
            manager.set_up(
                flow.qpn,
                QpAttributes(
                    dst_mac=int.from_bytes(mac_bytes(self.peer.mac), "big"),
                    dst_ip=int.from_bytes(ip_bytes(self.peer.ip), "big"),
                    dest_qp_num=flow.qpn,
                    path_mtu=MTU_CODE,
                    rq_psn=flow.psn,
                ),
            )

    def run(self, cycles: int) -> None:
        """New requests for so long, then until all are answered."""
        self.go(cycles)
        end = self.device.stats.cycles
        while any(flow.under_way for flow in self.flows.values()):
            if self.device.stats.cycles > end + 2_000_000:
                stuck = [flow.qpn for flow in self.flows.values() if flow.under_way]
                raise TimeoutError(f"queue pairs {stuck} are stuck")
            self._step(more=False)

    def go(self, cycles: int) -> None:
        """New requests for so long, whatever is answered then."""
        end = self.device.stats.cycles + cycles
        while self.device.stats.cycles < end:
            self._step(more=True)

    def _step(self, more: bool) -> None:
        for flow in self.flows.values():
            self._fill(flow, self.device.stats.cycles, more)
        self.device.step(100, stop_on_frame=True)
        while (sent := self.device.pull()) is not None:
            self._take(sent)

    def check(self) -> None:
        """Memory holds what was written last."""
        for flow in self.flows.values():
            for address, data in flow.content.items():
                assert self.device.dram_read(address, len(data)) == data, f"queue pair {flow.qpn}, {address:#x}"

    def _fill(self, flow: Flow, now: int, more: bool) -> None:
        if now < flow.paused_until:
            return
        if flow.paused_until or (flow.under_way and now - flow.progress > TIMEOUT):
            flow.paused_until, flow.progress = 0, now
            for request in flow.under_way:
                request.got = b""
                flow.repeated += 1
                self._send(request)
        while more and len(flow.under_way) < flow.depth:
            flow.under_way.append(request := self._next(flow))
            flow.progress = now
            self._send(request)

    def send_other(self, frame: bytes) -> None:
        """A frame that is no request."""
        self.device.send(frame)
        self._entering.append(None)

    def _send(self, request: Request) -> None:
        self.device.send(request.frame)
        self._entering.append(request)

    def _next(self, flow: Flow) -> Request:
        which = flow.turn % len(flow.bases)
        reads = flow.kind == "read" or (flow.kind == "both" and flow.turn % 2 == 0)
        slots = flow.region_bytes // flow.size
        address = flow.bases[which] + flow.turn // len(flow.bases) % slots * flow.size
        flow.turn += 1
        reth = struct.pack("!QII", address, flow.keys[which], flow.size)
        if reads:
            packets = -(-flow.size // MTU)
            frame = self.peer.roce(READ_REQUEST, flow.qpn, flow.psn, reth, b"")
            data = self.device.dram_read(address, flow.size)
        else:
            packets, data = 1, self.random.randbytes(flow.size)
            frame = self.peer.roce(WRITE_ONLY, flow.qpn, flow.psn, reth, data, ack=True)
            flow.content[address] = data
        request = Request(flow.psn, packets, reads, frame, address, data)
        flow.psn = (flow.psn + packets) % PSNS
        return request

    def _take(self, sent: Sent) -> None:
        while (stamp := self.device.rx_stamp()) is not None:
            if (request := self._entering.popleft()) is not None:
                request.entered = stamp.last_beat
        packet = parse(sent.frame)
        if packet is None:
            self.others.append(sent)
            return
        flow = self.flows[packet.dest_qp]
        if packet.opcode == ACKNOWLEDGE:
            syndrome, psn = packet.syndrome, packet.psn
            if syndrome >> 5:
                assert syndrome >> 5 == 1 or syndrome == 0x60, f"queue pair {flow.qpn}: NAK {syndrome:#x}"
                flow.refused += syndrome >> 5 == 1
                flow.paused_until = sent.last_beat + (self.rnr_cycles if syndrome >> 5 == 1 else 1)
                psn -= 1
            self._written(flow, psn, sent)
        elif READ_FIRST <= packet.opcode <= READ_ONLY:
            self._written(flow, packet.psn, sent)
            if not flow.under_way:
                return
            request = flow.under_way[0]
            if (packet.psn - request.psn) % PSNS == len(request.got) // MTU:
                request.got += packet.payload
                if len(request.got) == len(request.data):
                    assert request.got == request.data, f"queue pair {flow.qpn}: READ of {request.address:#x}"
                    self._finish(flow, sent)

    def _written(self, flow: Flow, psn: int, sent: Sent) -> None:
        """An answer with this PSN acknowledges all WRITEs up to it."""
        while flow.under_way and not flow.under_way[0].reads and (psn - flow.under_way[0].psn) % PSNS < HALF:
            self._finish(flow, sent)

    def _finish(self, flow: Flow, sent: Sent) -> None:
        request = flow.under_way.popleft()
        flow.latencies.append(sent.first_beat - request.entered)
        flow.done += 1
        flow.progress = sent.last_beat


@dataclass(frozen=True)
class Figures:
    """What some queue pairs saw together; latencies in cycles, from the request's last beat in to the answer's first beat out."""

    done: int
    mean: float
    p99: int
    most: int

    def __str__(self) -> str:
        return f"{self.done} done, latency {self.mean:.0f} mean, {self.p99} 99th percentile, {self.most} at most"


def figures(flows: list[Flow]) -> Figures:
    """Of these queue pairs together."""
    latencies = sorted(latency for flow in flows for latency in flow.latencies)
    return Figures(len(latencies), sum(latencies) / len(latencies), latencies[len(latencies) * 99 // 100], latencies[-1])


FAR = 1 << MEMORY_STRIDE_W
SLOW = {"latency_cycles": 400, "jitter_cycles": 200, "stall_cycles": 10_000, "stall_every_cycles": 15_000}
"""Host memory over PCIe, at its worst"""


def beside(data_w: int, name: str, kind: str, size: int, others: str, cycles: int = 60_000) -> tuple[Figures, Figures]:
    """Three queue pairs in the fast memory of the device `name`, which has several, beside three others: what each three saw.

    The others use the fast memory as well ("near"), the slow one ("far"), or both in turn ("both"). All data is checked.
    """
    bases = {"near": (0,), "far": (FAR,), "both": (0, FAR)}[others]
    with SimDevice(data_w, device=name, line_rate_mbps=NO_RATE_LIMIT) as device:
        configure(device)
        device.set_memory(1, **SLOW)
        near = [Flow(2 + i, kind, size, 4, (0x1000_0000 + (i << 20),)) for i in range(3)]
        other = [Flow(20 + i, kind, size, 4, tuple(base + 0x2000_0000 + (i << 20) for base in bases)) for i in range(3)]
        load = Load(device, near + other)
        load.run(cycles)
        load.check()
        assert not sum(flow.refused + flow.repeated for flow in near), "a queue pair of the fast memory got an RNR NAK"
        return figures(near), figures(other)
