# SPDX-License-Identifier: Apache-2.0
"""What a DHCP client makes of a message, by RFC 2131 and 2132, and messages as scapy makes them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from scapy.layers.dhcp import BOOTP, DHCP

MAC = "02:4e:41:0a:be:9f"
SERVER, ROUTER, OFFERED = "10.0.0.1", "10.0.0.254", "10.0.0.77"
MIN_LEASE = 16
COOKIE = bytes([0x63, 0x82, 0x53, 0x63])
KINDS = {"discover": 1, "offer": 2, "request": 3, "decline": 4, "ack": 5, "nak": 6, "release": 7}
LENGTHS = {1: 4, 51: 4, 52: 1, 53: 1, 54: 4, 58: 4, 59: 4}


def octets(ip: str) -> bytes:
    return bytes(map(int, ip.split(".")))


def number(ip: str) -> int:
    return int.from_bytes(octets(ip), "big")


def mac_bytes(mac: str) -> bytes:
    return bytes.fromhex(mac.replace(":", ""))


@dataclass
class Answer:
    """The fields of dhcp_pkg::dhcp_answer_t, but for the MAC address."""

    kind: int
    yiaddr: int
    server: int
    router: int
    prefix_length: int
    lease: int
    t1: int
    t2: int


def message(kind: str, xid: int, yiaddr: str = OFFERED, options: list[Any] | None = None, mac: str = MAC, **bootp: Any) -> bytes:
    """An answer of a server."""
    if options is None:
        options = [("server_id", SERVER)]
        if kind != "nak":
            options += [("lease_time", 3600), ("subnet_mask", "255.255.255.0"), ("router", ROUTER)]
    fields = {"op": 2, "xid": xid, "chaddr": mac_bytes(mac), "yiaddr": "0.0.0.0" if kind == "nak" else yiaddr, **bootp}
    return bytes(BOOTP(**fields) / DHCP(options=[("message-type", kind), *options, "end"]))


def raw(xid: int, options: bytes, yiaddr: str = OFFERED, sname: bytes = b"", file: bytes = b"") -> bytes:
    """A reply with these bytes as options."""
    return bytes(BOOTP(op=2, xid=xid, chaddr=mac_bytes(MAC), yiaddr=yiaddr, sname=sname, file=file))[:236] + COOKIE + options


def option(code: int, value: bytes) -> bytes:
    return bytes([code, len(value)]) + value


def seconds(value: int) -> int:
    """As dhcp_pkg::seconds_t counts them."""
    return value if value < 0xFFFFFE else 0xFFFFFF if value == 0xFFFFFFFF else 0xFFFFFE


def prefix_of(mask: int) -> int | None:
    """The length of a mask, if it has no hole."""
    ones = f"{mask:032b}".rstrip("0")
    return len(ones) if "0" not in ones else None


def understood(packet: bytes, xid: int, mac: str = MAC) -> Answer | None:
    """What the client understands, None if the message is malformed or nothing for it."""
    if len(packet) <= 240 or packet[:3] != bytes([2, 1, 6]) or int.from_bytes(packet[4:8], "big") != xid:
        return None
    if packet[28:34] != mac_bytes(mac) or packet[236:240] != COOKIE:
        return None
    found: dict[int, bytes] = {}
    overload = 0
    regions = [(packet[240:], True)]
    while regions:
        region, first = regions.pop(0)
        at = 0
        while at < len(region) and region[at] != 255:
            if region[at] == 0:
                at += 1
                continue
            code = region[at]
            if at + 1 >= len(region):
                return None
            length = region[at + 1]
            value = region[at + 2 : at + 2 + length]
            if (code in LENGTHS and length != LENGTHS[code]) or (code == 3 and (length == 0 or length % 4)):
                return None
            if len(value) != length:
                return None
            if code == 52:
                overload = value[0] & 3 if first else overload
            else:
                found[code] = value
            at += 2 + length
        if first:
            regions += [(packet[108:236], False)] if overload & 1 else []
            regions += [(packet[44:108], False)] if overload & 2 else []
    whole = {code: int.from_bytes(value[:4], "big") for code, value in found.items()}
    kind, yiaddr = whole.get(53, 0), int.from_bytes(packet[16:20], "big")
    prefix = prefix_of(whole[1]) if 1 in whole else 8 if yiaddr >> 31 == 0 else 16 if yiaddr >> 30 == 2 else 24
    answer = Answer(
        kind, yiaddr, whole.get(54, 0), whole.get(3, 0), prefix or 0, *(seconds(whole.get(code, 0)) for code in (51, 58, 59))
    )
    if kind == 6:
        return answer
    host = yiaddr != 0 and yiaddr >> 29 != 7
    return answer if kind in (2, 5) and host and answer.server and answer.lease >= MIN_LEASE and prefix is not None else None
