# SPDX-License-Identifier: Apache-2.0
"""Callers at work on a simulated device: delivers their frames, answers its requests, and records when events happened."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from . import cm
from .cci import address
from .peer import (
    ACKNOWLEDGE,
    OUTPUT,
    READ_FIRST,
    READ_LAST,
    READ_ONLY,
    SEND_FIRST,
    SEND_LAST,
    SEND_LAST_IMM,
    SEND_MIDDLE,
    SEND_ONLY,
    SEND_ONLY_IMM,
    UD_SEND_ONLY,
    WRITE_LAST_IMM,
    WRITE_ONLY_IMM,
    Context,
    Packet,
    Peer,
    Region,
    ip_bytes,
    mac_bytes,
    parse,
    take_advert,
)
from .sources import ROOT

sys.path.insert(0, str(ROOT / "sim"))
from nacelle_sim import Sent, SimDevice


class Timeout(AssertionError):
    """What was waited for did not come in time."""


def configure(
    device: SimDevice, ip: str = "10.77.0.2", mac: str = "02:4e:41:43:4c:02", prefix: int = 16, seed: int = 0x5EED
) -> None:
    """Gives the device its addresses and switches it on; drops its announcement. By mDNS it says nothing: a test of something else
    sees no frames but those that it asks for."""
    number = int.from_bytes(mac_bytes(mac), "big")
    device.write(address("MAC_LO"), number & 0xFFFFFFFF)
    device.write(address("MAC_HI"), number >> 32)
    device.write(address("IP"), int.from_bytes(ip_bytes(ip), "big"))
    device.write(address("PREFIX_LEN"), prefix)
    device.write(address("GATEWAY"), 0)
    device.write(address("RANDOM_SEED"), seed)
    device.write(address("DISCOVERY"), 0)
    device.write(address("CTRL"), 1)
    device.step(200)
    while device.pull():
        pass


@dataclass
class Caller:
    """A peer with its inbox. `auto_ack` acknowledges every request of the device that has AckReq set."""

    peer: Peer
    inbox: deque[tuple[Packet, Sent]] = field(default_factory=deque)
    expected_psn: int = 0
    auto_ack: bool = True
    acked: int = -1
    naks: list[Packet] = field(default_factory=list)
    placing: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.expected_psn = self.peer.recv_psn


class Network:
    """One device and its callers. Frames of the device go to the caller whose address they carry."""

    def __init__(self, device: SimDevice, peers: Sequence[Peer]) -> None:
        self.device = device
        self.callers = {peer.ip: Caller(peer) for peer in peers}
        self.other: deque[Sent] = deque()
        self.lose: Callable[[bytes], bool] = lambda _: False  # applied to the device's frames

    def caller(self, peer: Peer) -> Caller:
        """The caller of a peer."""
        return self.callers[peer.ip]

    def send(self, frames: Sequence[bytes]) -> None:
        """Puts frames on the way to the device, stepping it when its queue is full."""
        for frame in frames:
            while True:
                try:
                    self.device.send(frame)
                    break
                except BufferError:
                    self.step(1000)

    def step(self, cycles: int) -> None:
        """Runs the device until it sends a frame, or for `cycles`; handles all that it sent."""
        self.device.step(cycles, stop_on_frame=True)
        while (sent := self.device.pull()) is not None:
            self._deliver(sent)

    def let_pass(self, cycles: int) -> None:
        """Lets so many cycles pass and handles all that the device sends; those in which it waits cost next to nothing."""
        end = self.device.stats.cycles + cycles
        while self.device.stats.cycles < end:
            self.device.skip(2000)
            self.step(100)

    def _deliver(self, sent: Sent) -> None:
        frame = sent.frame
        if self.lose(frame):
            return
        if frame[12:14] == b"\x08\x06":
            target = ".".join(map(str, frame[38:42]))
            if frame[20:22] == b"\x00\x01" and target in self.callers:
                self.send([self.callers[target].peer.arp_reply()])
            else:
                self.other.append(sent)
            return
        packet = parse(frame)
        caller = self.callers.get(".".join(map(str, frame[30:34])))
        if packet is None or caller is None:
            self.other.append(sent)
            return
        if packet.opcode == ACKNOWLEDGE:
            if packet.syndrome >> 5 == 0:
                caller.acked = packet.psn
            else:
                caller.naks.append(packet)
            caller.inbox.append((packet, sent))
            return
        if packet.opcode != UD_SEND_ONLY and not READ_FIRST <= packet.opcode <= READ_ONLY:
            assert packet.dest_qp == caller.peer.qpn
            behind = (packet.psn - caller.expected_psn) & 0xFFFFFF
            if behind & 0x800000:  # a duplicate
                if packet.ack_request and caller.auto_ack:
                    self.send([caller.peer.ack(caller.expected_psn - 1 & 0xFFFFFF)])
                return
            if behind:
                if caller.auto_ack:
                    self.send([caller.peer.ack(caller.expected_psn, 0x60)])
                return
            caller.expected_psn = caller.expected_psn + 1 & 0xFFFFFF
            if packet.ack_request and caller.auto_ack:
                self.send([caller.peer.ack(packet.psn)])
        caller.inbox.append((packet, sent))

    def wait(self, peer: Peer, wanted: Callable[[Packet], bool], what: str, cycles: int = 200_000) -> tuple[Packet, Sent]:
        """The next packet for `peer` that is wanted; those before it are dropped."""
        caller = self.caller(peer)
        end = self.device.stats.cycles + cycles
        while True:
            while caller.inbox:
                packet, sent = caller.inbox.popleft()
                if wanted(packet):
                    return packet, sent
            if self.device.stats.cycles >= end:
                raise Timeout(f"{peer.ip}: no {what} within {cycles} cycles")
            self.step(min(2000, cycles))

    # ---- what a caller does ----

    def connect(self, peer: Peer) -> None:
        """REQ, REP, RTU."""
        self.send([peer.req()])
        packet, _ = self.wait(peer, _cm(cm.REP, cm.REJ), "REP")
        peer.take_rep(packet)
        self.send([peer.rtu()])

    def set_up(self, peer: Peer, regions: Sequence[Region]) -> tuple[Packet, Sent]:
        """AAR, A. Returns the answer's last packet."""
        message, packet, sent = self.exchange(peer, peer.advertise(regions))
        peer.take_advert(message)
        return packet, sent

    def exchange(self, peer: Peer, message: bytes) -> tuple[bytes, Packet, Sent]:
        """SENDs a message; returns the message that the device SENDs back."""
        self.send(peer.send_message(message))
        answer = b""
        while True:
            packet, sent = self.wait(peer, lambda p: p.opcode in (SEND_FIRST, SEND_MIDDLE, SEND_LAST, SEND_ONLY), "answer by SEND")
            answer += packet.payload
            if packet.opcode in (SEND_LAST, SEND_ONLY):
                return answer, packet, sent

    def call(self, peer: Peer, function: int, user: int = 0, cycles: int = 2_000_000) -> int:
        """Inputs, function, outputs. Returns the result code; the output regions hold the results."""
        self.send(peer.call(function, user))
        return self.answer(peer, cycles)[0]

    def answer(self, peer: Peer, cycles: int = 2_000_000) -> tuple[int, Packet, Sent]:
        """Places the device's WRITEs until the immediate; returns the result code."""
        caller = self.caller(peer)
        while True:
            packet, sent = self.wait(peer, lambda p: p.opcode not in (ACKNOWLEDGE, UD_SEND_ONLY), "WRITE", cycles)
            peer.place(packet, caller.placing)
            if packet.opcode in (WRITE_LAST_IMM, WRITE_ONLY_IMM):
                return packet.immediate >> 8, packet, sent

    def next_answer(self, peer: Peer, cycles: int = 2_000_000) -> tuple[Context, int | None]:
        """The next answer on a connection with contexts: of which, and the result of a call; None is the answer to a message, which
        is taken. WRITEs are placed."""
        message, sends = b"", (SEND_FIRST, SEND_MIDDLE, SEND_LAST_IMM, SEND_ONLY_IMM)
        while True:
            packet, _ = self.wait(peer, lambda p: p.opcode not in (ACKNOWLEDGE, UD_SEND_ONLY), "answer", cycles)
            if packet.opcode in sends:
                message += packet.payload
            else:
                peer.place(packet, self.caller(peer).placing)
            if packet.opcode in (SEND_LAST_IMM, SEND_ONLY_IMM, WRITE_LAST_IMM, WRITE_ONLY_IMM):
                context = peer.contexts[packet.immediate >> 24]
                if packet.opcode in sends:
                    assert packet.immediate & 0xFFFFFF == 0
                    take_advert(context.regions, message)
                    return context, None
                return context, packet.immediate >> 8 & 0xFFFF

    def read(self, peer: Peer, addr: int, rkey: int, length: int) -> bytes:
        """RDMA READ."""
        self.send([peer.read_request(addr, rkey, length)])
        data = b""
        while True:
            packet, _ = self.wait(peer, lambda p: READ_FIRST <= p.opcode <= READ_ONLY, "READ response")
            data += packet.payload
            if packet.opcode in (READ_LAST, READ_ONLY):
                return data

    def disconnect(self, peer: Peer) -> None:
        """DREQ, DREP."""
        self.send([peer.dreq()])
        self.wait(peer, _cm(cm.DREP), "DREP")


def _cm(*attributes: int) -> Callable[[Packet], bool]:
    return lambda p: p.opcode == UD_SEND_ONLY and int.from_bytes(p.payload[16:18], "big") in attributes


def outputs(peer: Peer) -> list[bytes]:
    """Contents of the output regions."""
    return [bytes(region.data) for region in peer.regions if region.flags & OUTPUT]
