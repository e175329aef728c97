# SPDX-License-Identifier: Apache-2.0
"""Frames of QP1 with communication management datagrams, a peer that sends them, and what Linux sent.

Hosts are named by IPv4 addresses: see nacelle_tb.family."""

from __future__ import annotations

import struct
from dataclasses import dataclass, replace
from pathlib import Path

from nacelle_tb import cm
from nacelle_tb.cm import DREP, DREQ, MRA, REJ, REP, REQ, RTU, Message
from nacelle_tb.family import address
from scapy.contrib.roce import BTH
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Ether
from scapy.packet import Raw
from scapy.utils import rdpcap

PORT = 12345
DEVICE_MAC, DEVICE_IP = "52:54:00:63:00:01", "10.99.0.1"


def frame(payload: bytes, src_ip: str, src_mac: str, dst_ip: str = DEVICE_IP, **changes: int) -> bytes:
    """An Ethernet frame of QP1 as it comes to the device, without ICRC. Changes: opcode, qkey, srcqp, pkey."""
    deth = struct.pack(">II", changes.get("qkey", 0x80010000), changes.get("srcqp", 1))
    bth = BTH(opcode=changes.get("opcode", 0x64), migreq=0, pkey=changes.get("pkey", 0xFFFF), dqpn=1, psn=5)
    ip = IPv6(src=src_ip, dst=dst_ip, hlim=64) if ":" in src_ip else IP(src=src_ip, dst=dst_ip, flags="DF", ttl=64)
    packet = (
        Ether(src=src_mac, dst=DEVICE_MAC) / ip / UDP(sport=55410, dport=4791, chksum=0) / Raw(bytes(bth)[:12] + deth + payload)
    )
    return bytes(packet)


@dataclass
class Caller(cm.Request):
    """A peer of the device, in either role. Its methods give frames; `to` is the device's message that is answered."""

    mac: str = "52:54:00:63:00:02"
    tid: int = 0x2F2707425

    def data(self) -> bytes:
        """With the addresses that these hosts have."""
        return cm.Request.data(replace(self, ip=address(self.ip), called=address(self.called)))

    def frame(self, attr: int, data: bytes, tid: int | None = None) -> bytes:
        mad = cm.mad(attr, self.tid if tid is None else tid, data)
        return frame(mad, self.ip, self.mac, self.called if ":" in self.ip else DEVICE_IP)

    def req(self) -> bytes:
        return self.frame(REQ, self.data())

    def rep(self, to: Message, **fields: int | bytes) -> bytes:
        return self.frame(REP, cm.rep(self.local_id, to.local_id, self.qpn, self.psn, **fields), to.tid)

    def rtu(self, to: Message) -> bytes:
        return self.frame(RTU, cm.ids(self.local_id, to.local_id))

    def mra(self, to: Message, timeout: int) -> bytes:
        about = cm.ABOUT_REQ if to.attr == REQ else cm.ABOUT_REP
        return self.frame(MRA, cm.mra(self.local_id, to.local_id, about, timeout), to.tid)

    def rej(self, to: Message, reason: int = 28, private: bytes = b"") -> bytes:
        about = cm.ABOUT_REQ if to.attr == REQ else cm.ABOUT_REP
        local_id = 0 if to.attr == REQ else self.local_id
        return self.frame(REJ, cm.rej(local_id, to.local_id, about, reason, private=private), to.tid)

    def dreq(self, to: Message, qpn: int | None = None) -> bytes:
        return self.frame(DREQ, cm.dreq(self.local_id, to.local_id, to.qpn if qpn is None else qpn))

    def drep(self, to: Message) -> bytes:
        return self.frame(DREP, cm.ids(self.local_id, to.local_id), to.tid)


def linux_caller() -> Caller:
    """The caller of the captured connection."""
    return Caller(guid=bytes.fromhex("505400fffe630002"), flow_label=0x21533, source_port=0x93C6)


def linux_frames() -> dict[str, bytes]:
    """CM frames that Linux 6.1 soft-RoCE sent: a connection of the NAAICE client, and a REQ refused for lack of a listener."""
    names = ["req", "rep", "rtu", "dreq", "drep", "unheard_req", "rej"]
    frames = rdpcap(str(Path(__file__).parent / "data" / "linux_cm.pcap"))
    return {name: bytes(item) for name, item in zip(names, frames, strict=True)}
