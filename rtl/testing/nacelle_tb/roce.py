# SPDX-License-Identifier: Apache-2.0
"""RoCEv2 frames as they pass between the packet plane and the RoCE plane.

scapy builds the same headers (rtl/shell/test/test_peer.py compares), but takes too long to do so for each packet of a random test.
"""

from __future__ import annotations

import functools
import ipaddress
import struct
from dataclasses import dataclass

from .family import roce_record
from .peer import internet_checksum, ip_bytes, mac_bytes
from .svtypes import constant

DEVICE_IP = "10.0.0.1"
BTH_BYTES, ICRC_BYTES = 12, 4


_WIRE = ("RC_", "UD_", "CNP", "SYNDROME_", "QPN_", "QKEY_", "PKEY_")
"""How the names of the wire format's constants begin"""


@functools.cache
def op(name: str) -> int:
    """An opcode or any other constant of roce_wire_pkg or roce_pkg, by its name there."""
    return constant(f"{'roce_wire_pkg' if name.startswith(_WIRE) else 'roce_pkg'}::{name}")


def reth(va: int, rkey: int, dmalen: int) -> bytes:
    """RDMA extended transport header (IBTA 9.2.5)."""
    return struct.pack("!QII", va, rkey, dmalen)


def aeth(syndrome: int, msn: int) -> bytes:
    """ACK extended transport header (IBTA 9.2.5)."""
    return struct.pack("!I", syndrome << 24 | msn)


def atomiceth(va: int, rkey: int, swap_add: int, compare: int) -> bytes:
    """Atomic extended transport header (IBTA 9.2.6)."""
    return struct.pack("!QIQQ", va, rkey, swap_add, compare)


@dataclass(frozen=True)
class Headers:
    """The Ethernet, IPv4 or IPv6, UDP and base transport headers of a RoCEv2 frame (IBTA 9.2.1, annex A17.3)."""

    src_mac: str
    dst_mac: str
    src_ip: str
    dst_ip: str
    sport: int
    opcode: int
    dqpn: int
    psn: int
    length: int = 0
    """Bytes between the BTH and the ICRC: extension headers, payload, padding"""
    padcount: int = 0
    solicited: bool = False
    migreq: bool = False
    ackreq: bool = False
    becn: bool = False
    version: int = 0
    pkey: int = 0xFFFF
    tos: int = 0
    identification: int = 1

    def __bytes__(self) -> bytes:
        udp_length = 8 + BTH_BYTES + self.length + ICRC_BYTES
        if ":" in self.src_ip:
            ethertype = 0x86DD
            ip = struct.pack("!IHBB", 6 << 28 | self.tos << 20 | self.sport, udp_length, 17, 64)
            ip += b"".join(ipaddress.IPv6Address(address).packed for address in (self.src_ip, self.dst_ip))
        else:
            ethertype = 0x0800
            ip = struct.pack("!BBHHHBBH", 0x45, self.tos, 20 + udp_length, self.identification, 0x4000, 64, 17, 0)
            ip += ip_bytes(self.src_ip) + ip_bytes(self.dst_ip)
            ip = ip[:10] + struct.pack("!H", internet_checksum(ip)) + ip[12:]
        bth = struct.pack(
            "!BBHII",
            self.opcode,
            self.solicited << 7 | self.migreq << 6 | self.padcount << 4 | self.version,
            self.pkey,
            self.becn << 30 | self.dqpn,
            self.ackreq << 31 | self.psn,
        )
        return (
            mac_bytes(self.dst_mac) + mac_bytes(self.src_mac) + struct.pack("!H", ethertype) + ip
            + struct.pack("!HHHH", self.sport, 4791, udp_length, 0) + bth
        )  # fmt: skip


@dataclass(frozen=True)
class Frame:
    """A received RoCE frame: extension headers in `ext`."""

    opcode: int
    qpn: int
    psn: int
    payload: bytes = b""
    ext: bytes = b""
    ackreq: bool = False
    solicited: bool = False
    migreq: bool = False
    src: str = "10.0.0.2"
    pkey: int = 0xFFFF
    tver: int = 0
    ecn: int = 0

    def headers(self) -> bytes:
        """All headers, from the Ethernet header on."""
        padcount = -len(self.payload) % 4
        headers = Headers(
            "02:00:00:00:00:02", "02:00:00:00:00:01", self.src, DEVICE_IP, 49152, self.opcode, self.qpn, self.psn & 0xFFFFFF,
            len(self.ext) + len(self.payload) + padcount, padcount, self.solicited, self.migreq, self.ackreq,
            version=self.tver, pkey=self.pkey, tos=self.ecn,
        )  # fmt: skip
        return bytes(headers) + self.ext

    def rx(self) -> int:
        """As frame_rx_t."""
        return roce_record(self.headers(), len(self.payload))
