# SPDX-License-Identifier: Apache-2.0
"""Communication management datagrams by byte offsets (IBTA 12.6), written apart from the RTL's structs so that the two check
each other, and a caller that speaks them."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from pathlib import Path

from scapy.contrib.roce import BTH
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import Raw
from scapy.utils import rdpcap

REQ, MRA, REJ, REP, RTU, DREQ, DREP = range(0x10, 0x17)
PORT = 12345
DEVICE_MAC, DEVICE_IP = "52:54:00:63:00:01", "10.99.0.1"


def mad(attr: int, tid: int, data: bytes) -> bytes:
    """A datagram of 256 bytes."""
    return (bytes([1, 7, 2, 3]) + bytes(4) + tid.to_bytes(8, "big") + struct.pack(">HHI", attr, 0, 0) + data).ljust(256, b"\0")


def frame(payload: bytes, src_ip: str, src_mac: str, **changes: int) -> bytes:
    """An Ethernet frame of QP1 as it comes to the device, without ICRC. Changes: opcode, qkey, srcqp, pkey."""
    deth = struct.pack(">II", changes.get("qkey", 0x80010000), changes.get("srcqp", 1))
    bth = BTH(opcode=changes.get("opcode", 0x64), migreq=0, pkey=changes.get("pkey", 0xFFFF), dqpn=1, psn=5)
    packet = (
        Ether(src=src_mac, dst=DEVICE_MAC)
        / IP(src=src_ip, dst=DEVICE_IP, flags="DF", ttl=64)
        / UDP(sport=55410, dport=4791, chksum=0)
        / Raw(bytes(bth)[:12] + deth + payload)
    )
    return bytes(packet)


@dataclass
class Message:
    """A datagram that the device sent, taken apart."""

    dst_ip: str
    dst_mac: str
    mad: bytes
    attr: int = field(init=False)
    tid: int = field(init=False)
    local_id: int = field(init=False)
    remote_id: int = field(init=False)

    def __post_init__(self) -> None:
        assert self.mad[:8] == bytes([1, 7, 2, 3, 0, 0, 0, 0]), self.mad[:8].hex()
        self.tid = int.from_bytes(self.mad[8:16], "big")
        self.attr = int.from_bytes(self.mad[16:18], "big")
        assert self.mad[18:24] == bytes(6)
        self.local_id, self.remote_id = struct.unpack(">II", self.mad[24:32])

    def at(self, offset: int, length: int) -> int:
        """Integer at an offset from the end of the MAD header."""
        return int.from_bytes(self.mad[24 + offset : 24 + offset + length], "big")

    @property
    def qpn(self) -> int:
        return self.at(12, 3) if self.attr == REP else self.at(8, 3)

    @property
    def psn(self) -> int:
        return self.at(20, 3)

    @property
    def reason(self) -> int:
        return self.at(10, 2)

    @property
    def rejected(self) -> int:
        """What a REJ is about: 0 REQ, 1 REP, 2 other."""
        return self.at(8, 1) >> 6


@dataclass
class Caller:
    """The active side. Its methods give frames."""

    ip: str = "10.99.0.2"
    mac: str = "52:54:00:63:00:02"
    local_id: int = 0x257470F2
    tid: int = 0x2F2707425
    qpn: int = 0x20
    psn: int = 0xAC999F
    port: int = PORT
    port_space: int = 0x0106
    transport: int = 0
    mtu: int = 3
    resources: int = 1
    depth: int = 1
    cm_timeout: int = 20
    retries: int = 15
    ack_timeout: int = 19
    retry: int = 7
    rnr_retry: int = 6
    cma_version: int = 0
    ip_version: int = 4
    called: str = DEVICE_IP

    def req(self) -> bytes:
        ip = bytes(int(x) for x in self.ip.split("."))
        to = bytes(int(x) for x in self.called.split("."))
        mapped = bytes(10) + b"\xff\xff"
        body = bytearray(232)
        struct.pack_into(">I", body, 0, self.local_id)
        struct.pack_into(">IHH", body, 8, 0, self.port_space, self.port)
        body[16:24] = bytes.fromhex("505400fffe630002")
        body[32:36] = self.qpn.to_bytes(3, "big") + bytes([self.resources])
        body[39] = self.depth
        body[43] = self.cm_timeout << 3 | self.transport << 1
        body[44:48] = self.psn.to_bytes(3, "big") + bytes([self.cm_timeout << 3 | self.retry])
        body[48:52] = bytes([0xFF, 0xFF, self.mtu << 4 | self.rnr_retry, self.retries << 4])
        body[52:56] = b"\xff\xff\xff\xff"
        body[56:88] = mapped + ip + mapped + to
        body[88:92] = (0x21533 << 12).to_bytes(4, "big")  # flow label
        body[93:96] = bytes([0x40, 0, self.ack_timeout << 3])
        body[140:144] = bytes([self.cma_version, self.ip_version << 4, 0x93, 0xC6])
        body[156:160], body[172:176] = ip, to
        return self.frame(REQ, bytes(body))

    def frame(self, attr: int, body: bytes, tid: int | None = None) -> bytes:
        return frame(mad(attr, self.tid if tid is None else tid, body), self.ip, self.mac)

    def _ids(self, peer_id: int) -> bytes:
        return struct.pack(">II", self.local_id, peer_id)

    def rtu(self, rep: Message) -> bytes:
        return self.frame(RTU, self._ids(rep.local_id))

    def mra(self, rep: Message, timeout: int) -> bytes:
        return self.frame(MRA, self._ids(rep.local_id) + bytes([1 << 6, timeout << 3]))

    def rej(self, rep: Message, reason: int = 28) -> bytes:
        return self.frame(REJ, self._ids(rep.local_id) + struct.pack(">BBH", 1 << 6, 0, reason))

    def dreq(self, rep: Message, qpn: int | None = None) -> bytes:
        return self.frame(DREQ, self._ids(rep.local_id) + (rep.qpn if qpn is None else qpn).to_bytes(3, "big"))

    def drep(self, dreq: Message) -> bytes:
        return self.frame(DREP, self._ids(dreq.local_id), dreq.tid)


def linux_frames() -> dict[str, bytes]:
    """CM frames that Linux 6.1 soft-RoCE sent: a connection of the NAAICE client, and a REQ refused for want of a listener."""
    names = ["req", "rep", "rtu", "dreq", "drep", "unheard_req", "rej"]
    frames = rdpcap(str(Path(__file__).parent / "data" / "linux_cm.pcap"))
    return {name: bytes(item) for name, item in zip(names, frames, strict=True)}
