# SPDX-License-Identifier: Apache-2.0
"""The IP version of a test's peers.

Tests name hosts by IPv4 addresses; with NACELLE_FAMILY=6 each stands for an IPv6 one, so the same test runs over both. Units behind
the parser see no difference but the addresses.
"""

from __future__ import annotations

import ipaddress
import os
from typing import Any

from scapy.layers.inet import IP

from .record import mapped, record

FAMILY = int(os.environ.get("NACELLE_FAMILY", "4"))
OWN = {4: 0, 6: 1}[FAMILY]
"""own_address_e of the device's address in these tests"""


def ipv6_of(ip: str) -> str:
    """The IPv6 address that stands for an IPv4 address. Hosts of a network differ in its upper half alone."""
    number = int(ipaddress.IPv4Address(ip))
    return str(ipaddress.IPv6Address(0x20010DB8 << 96 | (number & 0xFFFF) << 64 | number >> 16))


def ipv4_of(ip: str) -> str:
    """The IPv4 address that it stands for."""
    number = int(ipaddress.IPv6Address(ip))
    return str(ipaddress.IPv4Address((number & 0xFFFF) << 16 | number >> 64 & 0xFFFF))


def address(ip: str) -> str:
    """The address of this host."""
    return ipv6_of(ip) if FAMILY == 6 and ":" not in ip else ip


def ip_number(ip: str) -> int:
    """Its address as ip_addr_t."""
    ip = address(ip)
    return int(ipaddress.IPv6Address(ip)) if ":" in ip else mapped(ip)


def own(ip: str) -> dict[str, int]:
    """The members of local_addr_t of a device with this address."""
    return {"global_": ip_number(ip)} if FAMILY == 6 else {"ip": int(ipaddress.IPv4Address(ip)), "prefix_length": 24}


def is_ipv6(frame: bytes) -> bool:
    return frame[12:14] == b"\x86\xdd"


def roce_record(frame: bytes, payload_length: int) -> int:
    """The frame_rx_t of the headers of a RoCE frame: over IPv6 as they are, over IPv4 between the hosts that they stand for."""
    if is_ipv6(frame):
        src, dst = (str(ipaddress.IPv6Address(frame[at : at + 16])) for at in (22, 38))
        traffic_class = int.from_bytes(frame[14:16], "big") >> 4 & 0xFF
        like = IP(src="10.0.0.2", dst="10.0.0.1", tos=traffic_class, flags="DF", proto=17, len=20 + len(frame) - 54)
        frame = frame[:12] + b"\x08\x00" + bytes(like) + frame[54:]
    else:
        src, dst = (address(str(ipaddress.IPv4Address(frame[at : at + 4]))) for at in (26, 30))
    l3: dict[str, Any] = {"v6": int(":" in src), "src": ip_number(src), "dst": ip_number(dst)}
    return record("ROCE", frame, payload_length, l3)
