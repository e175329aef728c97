# SPDX-License-Identifier: Apache-2.0
"""RoCEv2 frames as they pass between the packet plane and the RoCE plane. Headers are built with scapy."""

from __future__ import annotations

import functools
import struct
from dataclasses import dataclass

from scapy.contrib.roce import BTH
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether

from . import record
from .svtypes import constant

DEVICE_IP = "10.0.0.1"
ROCE_HDR_BYTES = 54


@functools.cache
def op(name: str) -> int:
    """An opcode or any other constant of roce_pkg, by its name there."""
    return constant(f"roce_pkg::{name}")


def reth(va: int, rkey: int, dmalen: int) -> bytes:
    """RDMA extended transport header (IBTA 9.2.5)."""
    return struct.pack("!QII", va, rkey, dmalen)


def atomiceth(va: int, rkey: int, swap_add: int, compare: int) -> bytes:
    """Atomic extended transport header (IBTA 9.2.6)."""
    return struct.pack("!QIQQ", va, rkey, swap_add, compare)


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
        frame = Ether(src="02:00:00:00:00:02", dst="02:00:00:00:00:01") / IP(src=self.src, dst=DEVICE_IP, flags="DF", tos=self.ecn)
        frame /= UDP(sport=49152, dport=4791) / BTH(
            opcode=self.opcode, solicited=self.solicited, migreq=self.migreq, padcount=-len(self.payload) % 4,
            version=self.tver, pkey=self.pkey, dqpn=self.qpn, ackreq=self.ackreq, psn=self.psn & 0xFFFFFF,
        )  # fmt: skip
        return bytes(frame)[:ROCE_HDR_BYTES] + self.ext

    def rx(self) -> int:
        """As frame_rx_t."""
        return record.record("ROCE", self.headers(), len(self.payload))
