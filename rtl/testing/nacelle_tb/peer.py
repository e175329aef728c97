# SPDX-License-Identifier: Apache-2.0
"""A caller for tests of the whole device: builds and reads RoCEv2 frames, connects, sets regions up and calls, step by step.

It keeps every frame visible and can be made to misbehave, which the real host software never does. The ICRC is computed here with
zlib, and compared with scapy's in the tests.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field

from . import cm

SEND_FIRST, SEND_MIDDLE, SEND_LAST, SEND_LAST_IMM, SEND_ONLY, SEND_ONLY_IMM = 0x00, 0x01, 0x02, 0x03, 0x04, 0x05
WRITE_FIRST, WRITE_MIDDLE, WRITE_LAST, WRITE_LAST_IMM, WRITE_ONLY, WRITE_ONLY_IMM = 0x06, 0x07, 0x08, 0x09, 0x0A, 0x0B
READ_REQUEST, READ_FIRST, READ_MIDDLE, READ_LAST, READ_ONLY = 0x0C, 0x0D, 0x0E, 0x0F, 0x10
ACKNOWLEDGE = 0x11
UD_SEND_ONLY = 0x64
INTERNAL, SINGLE_SEND, INPUT, OUTPUT = 1, 2, 4, 8
NAAICE_PORT = 12345


def ip_bytes(address: str) -> bytes:
    """Dotted quad to 4 bytes."""
    return bytes(map(int, address.split(".")))


def mac_bytes(address: str) -> bytes:
    """Colon-separated to 6 bytes."""
    return bytes.fromhex(address.replace(":", ""))


def internet_checksum(data: bytes) -> int:
    """RFC 1071."""
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def icrc(ip_packet: bytes) -> bytes:
    """ICRC of an IPv4 packet that ends where the ICRC goes (IBTA annex A17.3)."""
    masked = bytearray(ip_packet)
    masked[1] = masked[8] = 0xFF
    masked[10:12] = masked[26:28] = b"\xff\xff"
    masked[32] = 0xFF
    return struct.pack("<I", zlib.crc32(b"\xff" * 8 + masked))


@dataclass
class Packet:
    """A RoCE packet taken apart."""

    opcode: int
    solicited: bool
    dest_qp: int
    ack_request: bool
    psn: int
    headers: bytes  # extension headers
    payload: bytes
    source_ip: str

    @property
    def reth(self) -> tuple[int, int, int]:
        """va, rkey, dmalen"""
        return struct.unpack("!QII", self.headers[:16])

    @property
    def immediate(self) -> int:
        """ImmDt: the last extension header."""
        return struct.unpack("!I", self.headers[-4:])[0]

    @property
    def syndrome(self) -> int:
        """Of an acknowledgement."""
        return self.headers[0]


_EXTENSION = {
    WRITE_FIRST: 16,
    WRITE_ONLY: 16,
    WRITE_ONLY_IMM: 20,
    WRITE_LAST_IMM: 4,
    SEND_LAST_IMM: 4,
    SEND_ONLY_IMM: 4,
    READ_REQUEST: 16,
    READ_FIRST: 4,
    READ_LAST: 4,
    READ_ONLY: 4,
    ACKNOWLEDGE: 4,
    UD_SEND_ONLY: 8,
}


def parse(frame: bytes) -> Packet | None:
    """A RoCE packet, or None for anything else. A wrong ICRC is an error."""
    if frame[12:14] != b"\x08\x00" or frame[23] != 17 or frame[36:38] != struct.pack("!H", 4791):
        return None
    ip = frame[14 : 14 + struct.unpack("!H", frame[16:18])[0]]
    assert internet_checksum(ip[:20]) == 0, "IPv4 header checksum"
    assert ip[-4:] == icrc(ip[:-4]), f"ICRC is {ip[-4:].hex()}, should be {icrc(ip[:-4]).hex()}"
    bth = ip[28:40]
    extension = _EXTENSION.get(bth[0], 0)
    pad = bth[1] >> 4 & 3
    body = ip[40:-4]
    return Packet(
        opcode=bth[0],
        solicited=bool(bth[1] & 0x80),
        dest_qp=int.from_bytes(bth[5:8], "big"),
        ack_request=bool(bth[8] & 0x80),
        psn=int.from_bytes(bth[9:12], "big"),
        headers=body[:extension],
        payload=body[extension : len(body) - pad],
        source_ip=".".join(map(str, ip[12:16])),
    )


@dataclass
class Region:
    """A region as the caller sees it, and what the device answered for it."""

    flags: int
    data: bytearray
    host_addr: int = 0
    host_rkey: int = 0
    device_addr: int = 0
    device_rkey: int = 0


def advertise(regions: Sequence[Region], context: int = 0) -> bytes:
    """The AAR message; gives each region a host address and key, which no other context has."""
    message = struct.pack("!BBH", 1, len(regions), 0)
    for index, region in enumerate(regions):
        if not region.flags & INTERNAL:
            number = context << 5 | index
            region.host_addr, region.host_rkey = 0x7F00_0000_0000 + number * 0x1000_0000, 0x1000 + number
        message += struct.pack("!QQII", region.flags << 56, region.host_addr, region.host_rkey, len(region.data))
    return message


def take_advert(regions: Sequence[Region], message: bytes) -> None:
    """Takes the device's regions from its A message."""
    kind, count, _ = struct.unpack("!BBH", message[:4])
    visible = [region for region in regions if not region.flags & INTERNAL]
    assert kind == 2, f"not an A message: {message.hex()}"
    assert count == len(visible) and len(message) == 4 + 16 * count
    for index, region in enumerate(visible):
        region.device_addr, region.device_rkey, size = struct.unpack_from("!QII", message, 4 + 16 * index)
        assert size == len(region.data)


@dataclass
class Context:
    """One of the contexts of a connection (docs/reference/calls.md)."""

    peer: Peer
    number: int
    regions: list[Region] = field(default_factory=list)

    def set_up(self, regions: Sequence[Region]) -> list[bytes]:
        """Frames of the message that requests regions."""
        self.regions = list(regions)
        return self.peer.send_message(advertise(regions, self.number), self.number << 24 | 1)

    def call(self, function: int, user: int = 0) -> list[bytes]:
        """Frames that write every input region and start the function."""
        return self.peer.start(self.regions, self.number << 24 | user << 8 | 0x80 | function)

    def cancel(self) -> list[bytes]:
        """Frame that cancels the call."""
        return self.peer.send_message(b"", self.number << 24 | 2)


@dataclass
class Peer:
    """One caller with one connection. `mtu` is the path MTU in bytes."""

    ip: str = "10.77.0.9"
    mac: str = "02:00:00:00:00:09"
    device_ip: str = "10.77.0.2"
    device_mac: str = "02:4e:41:43:4c:02"
    qpn: int = 0x123456
    send_psn: int = 0xFFFFFE
    recv_psn: int = 0x000100
    mtu: int = 1024
    comm_id: int = 0x0BADCAFE
    tid: int = 0x1122334455667788
    port: int = NAAICE_PORT
    depth: int = 1  # READs and atomics at once
    device_qpn: int = 0
    device_comm_id: int = 0
    regions: list[Region] = field(default_factory=list)
    asks: int = 0  # for so many contexts
    contexts: list[Context] = field(default_factory=list)  # those that it got
    traffic_class: int = 0  # of the path in its REQ

    # ---- frames ----

    def ethernet(self, ethertype: int, payload: bytes, destination: str | None = None) -> bytes:
        """A frame to the device."""
        return mac_bytes(destination or self.device_mac) + mac_bytes(self.mac) + struct.pack("!H", ethertype) + payload

    def ipv4(self, protocol: int, payload: bytes) -> bytes:
        """An IPv4 packet to the device, DF, TTL 64."""
        head = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(payload), 0, 0x4000, 64, protocol, 0)
        head += ip_bytes(self.ip) + ip_bytes(self.device_ip)
        return head[:10] + struct.pack("!H", internet_checksum(head)) + head[12:] + payload

    def roce(
        self,
        opcode: int,
        dest_qp: int,
        psn: int,
        extension: bytes,
        payload: bytes,
        *,
        ack: bool = False,
        solicited: bool = False,
    ) -> bytes:
        """A whole RoCE frame, padded, with ICRC."""
        pad = -len(payload) % 4
        bth = struct.pack(
            "!BBHII",
            opcode,
            (0x80 if solicited else 0) | 0x40 | pad << 4,
            0xFFFF,
            dest_qp,
            (0x80000000 if ack else 0) | psn & 0xFFFFFF,
        )
        body = bth + extension + payload + bytes(pad)
        udp = struct.pack("!HHHH", 0xC000, 4791, 8 + len(body) + 4, 0)
        packet = self.ipv4(17, udp + body + bytes(4))
        return self.ethernet(0x0800, packet[:-4] + icrc(packet[:-4]))

    def arp_request(self) -> bytes:
        """Requests the device's MAC address."""
        body = (
            struct.pack("!HHBBH", 1, 0x0800, 6, 4, 1)
            + mac_bytes(self.mac)
            + ip_bytes(self.ip)
            + bytes(6)
            + ip_bytes(self.device_ip)
        )
        return self.ethernet(0x0806, body, "ff:ff:ff:ff:ff:ff").ljust(60, b"\0")

    def arp_reply(self) -> bytes:
        """I have mine."""
        body = (
            struct.pack("!HHBBH", 1, 0x0800, 6, 4, 2)
            + mac_bytes(self.mac)
            + ip_bytes(self.ip)
            + mac_bytes(self.device_mac)
            + ip_bytes(self.device_ip)
        )
        return self.ethernet(0x0806, body).ljust(60, b"\0")

    def mad(self, attribute: int, data: bytes) -> bytes:
        """A CM message to QP1."""
        return self.roce(UD_SEND_ONLY, 1, 0, struct.pack("!II", 0x80010000, 1), cm.mad(attribute, self.tid, data), ack=True)

    def req(self) -> bytes:
        """Connection request, as Linux rdma_cm sends it."""
        request = cm.Request(
            local_id=self.comm_id, qpn=self.qpn, psn=self.recv_psn, ip=self.ip, called=self.device_ip, port=self.port,
            mtu=self.mtu.bit_length() - 8, guid=cm.guid(self.mac), resources=self.depth, depth=self.depth,
            extensions=cm.extensions(2, contexts=self.asks) if self.asks else b"", traffic_class=self.traffic_class,
        )  # fmt: skip
        return self.mad(cm.REQ, request.data())

    def take_rep(self, packet: Packet) -> None:
        """Takes the device's parameters from its REP."""
        rep = cm.Message(self.ip, self.mac, packet.payload)
        assert rep.attr == cm.REP, f"not a REP: {packet.payload[:64].hex()}"
        assert rep.remote_id == self.comm_id
        self.device_comm_id, self.device_qpn, self.send_psn = rep.local_id, rep.qpn, rep.psn
        record = rep.extensions
        count = record[6] if record[:5] == b"NACL\1" and record[5] & 2 else 0
        self.contexts = [Context(self, number) for number in range(count)]

    def rtu(self) -> bytes:
        """Ready to use."""
        return self.mad(cm.RTU, cm.ids(self.comm_id, self.device_comm_id))

    def dreq(self) -> bytes:
        """Disconnect."""
        return self.mad(cm.DREQ, cm.dreq(self.comm_id, self.device_comm_id, self.device_qpn))

    def ack(self, psn: int, syndrome: int = 0x1F, msn: int = 0) -> bytes:
        """Acknowledges the device's packets up to psn."""
        return self.roce(ACKNOWLEDGE, self.device_qpn, psn, struct.pack("!I", syndrome << 24 | msn), b"")

    def _packets(
        self, opcodes: tuple[int, int, int, int], first: bytes, last: bytes, payload: bytes, solicited: bool
    ) -> list[bytes]:
        """Cuts a message into packets at the path MTU; opcodes are (first, middle, last, only)."""
        chunks = [payload[i : i + self.mtu] for i in range(0, len(payload), self.mtu)] or [b""]
        frames = []
        for index, chunk in enumerate(chunks):
            is_first, is_last = index == 0, index == len(chunks) - 1
            opcode = opcodes[3 if is_first and is_last else 0 if is_first else 2 if is_last else 1]
            extension = (first if is_first else b"") + (last if is_last else b"")
            frames.append(
                self.roce(
                    opcode,
                    self.device_qpn,
                    self.send_psn,
                    extension,
                    chunk,
                    ack=is_last,
                    solicited=is_last and solicited,
                )
            )
            self.send_psn = self.send_psn + 1 & 0xFFFFFF
        return frames

    def send_message(self, payload: bytes, immediate: int | None = None) -> list[bytes]:
        """Frames of a SEND."""
        if immediate is None:
            return self._packets((SEND_FIRST, SEND_MIDDLE, SEND_LAST, SEND_ONLY), b"", b"", payload, True)
        codes = (SEND_FIRST, SEND_MIDDLE, SEND_LAST_IMM, SEND_ONLY_IMM)
        return self._packets(codes, b"", struct.pack("!I", immediate), payload, True)

    def write_message(self, addr: int, rkey: int, payload: bytes, immediate: int | None = None) -> list[bytes]:
        """Frames of an RDMA WRITE."""
        reth = struct.pack("!QII", addr, rkey, len(payload))
        if immediate is None:
            return self._packets((WRITE_FIRST, WRITE_MIDDLE, WRITE_LAST, WRITE_ONLY), reth, b"", payload, False)
        codes = (WRITE_FIRST, WRITE_MIDDLE, WRITE_LAST_IMM, WRITE_ONLY_IMM)
        return self._packets(codes, reth, struct.pack("!I", immediate), payload, True)

    def read_request(self, addr: int, rkey: int, length: int) -> bytes:
        """An RDMA READ. Each packet of its response takes a PSN."""
        frame = self.roce(READ_REQUEST, self.device_qpn, self.send_psn, struct.pack("!QII", addr, rkey, length), b"")
        self.send_psn = self.send_psn + max(1, -(-length // self.mtu)) & 0xFFFFFF
        return frame

    # ---- region set-up and calls ----

    def advertise(self, regions: Sequence[Region]) -> bytes:
        """The AAR message; gives each region a host address and key."""
        self.regions = list(regions)
        return advertise(regions)

    def take_advert(self, message: bytes) -> None:
        """Takes the device's regions from its A message."""
        take_advert(self.regions, message)

    def call(self, function: int, user: int = 0) -> list[bytes]:
        """Frames that write every input region and start the function."""
        return self.start(self.regions, user << 8 | 0x80 | function)

    def start(self, regions: Sequence[Region], immediate: int) -> list[bytes]:
        """Frames that write every input region, the last with this immediate."""
        inputs = [region for region in regions if region.flags & INPUT]
        frames = []
        for index, region in enumerate(inputs):
            last = immediate if index == len(inputs) - 1 else None
            frames += self.write_message(region.device_addr, region.device_rkey, bytes(region.data), last)
        return frames

    @property
    def all_regions(self) -> list[Region]:
        """Those of all contexts."""
        return self.regions + [region for context in self.contexts for region in context.regions]

    def place(self, packet: Packet, state: dict[str, int]) -> None:
        """Puts a WRITE of the device into the region it belongs to; `state` carries the address over FIRST/MIDDLE/LAST."""
        if packet.opcode in (WRITE_FIRST, WRITE_ONLY, WRITE_ONLY_IMM):
            state["va"], state["rkey"], state["left"] = packet.reth
        if packet.payload:
            region = next(r for r in self.all_regions if r.host_rkey == state["rkey"])
            offset = state["va"] - region.host_addr
            assert 0 <= offset and offset + len(packet.payload) <= len(region.data), "write outside of the region"
            region.data[offset : offset + len(packet.payload)] = packet.payload
            state["va"] += len(packet.payload)
            state["left"] -= len(packet.payload)
