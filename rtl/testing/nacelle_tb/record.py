# SPDX-License-Identifier: Apache-2.0
"""The receive record (frame_pkg::frame_rx_t) of a frame as scapy reads it: what the parser must say, what units behind it get."""

from __future__ import annotations

import ipaddress
import random
from types import SimpleNamespace
from typing import Any

from scapy.layers.inet import IP, TCP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import ARP, Dot1AD, Dot1Q, Ether

from .svtypes import constant, struct

FRAME_RX = "frame_pkg::frame_rx_t"
BTH_AT, EXT_AT = 42, 54
IPV6_MORE = 20  # bytes by which an IPv6 header is longer
ND_OPTIONS_AT = 78
FIRST_END = BTH_AT + 8  # of the first bytes of a UDP payload
BTH_FIELDS = {
    "opcode": 8, "se": 1, "migreq": 1, "padcnt": 2, "tver": 4, "pkey": 16, "fecn": 1, "becn": 1, "resv6a": 6, "destqp": 24,
    "ackreq": 1, "resv7b": 7, "psn": 24,
}  # fmt: skip
# Extension headers by opcode: which, and in which byte of the frame each begins (IBTA 9.2, table 38).
REQUEST, RESPONSE, DATAGRAM, ATOMIC = "request", "response", "datagram", "atomiceth"
EXT = (
    dict.fromkeys((0x06, 0x0A, 0x0B, 0x0C), REQUEST)
    | dict.fromkeys((0x0D, 0x0F, 0x10, 0x11, 0x12), RESPONSE)
    | dict.fromkeys((0x64, 0x65), DATAGRAM)
    | dict.fromkeys((0x13, 0x14), ATOMIC)
)
WORD_AT = dict.fromkeys((0x03, 0x05, 0x09, 0x16, 0x17), EXT_AT) | {0x0B: EXT_AT + 16, 0x65: EXT_AT + 8}


def number(text: str) -> int:
    """A MAC address as the RTL has it."""
    return int(text.replace(":", ""), 16)


def mapped(ip: str) -> int:
    """An IPv4 address as an IPv6 one (RFC 4291, 2.5.5.2)."""
    return 0xFFFF << 32 | int(ipaddress.IPv4Address(ip))


def one_host(mac: str, ip: str) -> bool:
    """Answers may go there (RFC 1122, 3.2.1.3)."""
    address: Any = ipaddress.ip_address(ip)
    if address.version == 6:
        return not number(mac) >> 40 & 1 and not address.is_multicast and int(address) >> 64 != 0
    reserved = address.is_multicast or address.is_reserved or address == ipaddress.IPv4Address("255.255.255.255")
    return not number(mac) >> 40 & 1 and not reserved and int(address) != 0


def split(data: bytes, fields: dict[str, int]) -> dict[str, int]:
    """Fields of so many bits each, the first in the upper bits of the first byte. Bytes that are missing are zero."""
    left = sum(fields.values())
    word, values = int.from_bytes(data.ljust(left // 8, b"\0"), "big"), {}
    for name, bits in fields.items():
        left -= bits
        values[name] = word >> left & ((1 << bits) - 1)
    return values


def _ext(frame: bytes, kind: str, more: int) -> dict[str, Any]:
    """The extension header behind the BTH, as members of ext_t."""
    rest = frame[EXT_AT + more :]
    if kind == REQUEST:
        return {"request": {"reth": split(rest[:16], {"va": 64, "rkey": 32, "dmalen": 32})}}
    if kind == ATOMIC:
        return {"atomiceth": split(rest[:28], {"va": 64, "rkey": 32, "swap_add": 64, "compare": 64})}
    if kind == DATAGRAM:
        return {"datagram": {"deth": split(rest[:8], {"qkey": 32, "resv": 8, "srcqp": 24})}}
    response: dict[str, Any] = {"aeth": split(rest[:4], {"syndrome": 8, "msn": 24})}
    if frame[BTH_AT + more] == 0x12:
        response["atomicacketh"] = int.from_bytes(rest[4:12], "big")
    return {"response": response}


def _l3(read: Ether) -> dict[str, Any]:
    if IPv6 in read:
        ip = read[IPv6]
        return {
            "v6": 1, "src": int(ipaddress.IPv6Address(ip.src)), "dst": int(ipaddress.IPv6Address(ip.dst)), "dscp": ip.tc >> 2,
            "ecn": ip.tc & 3, "total_length": ip.plen, "hop_limit": ip.hlim, "protocol": ip.nh,
        }  # fmt: skip
    ip = read[IP]
    return {
        "v6": 0, "src": mapped(ip.src), "dst": mapped(ip.dst), "dscp": ip.tos >> 2, "ecn": ip.tos & 3,
        "total_length": ip.len, "hop_limit": ip.ttl, "protocol": ip.proto, "header_checksum": ip.chksum,
        "fragment": {
            "identification": ip.id, "offset": ip.frag,
            "reserved": int(ip.flags.evil), "df": int(ip.flags.DF), "mf": int(ip.flags.MF),
        },
    }  # fmt: skip


def headers(cls: str, frame: bytes) -> dict[str, Any]:
    """The fields of headers_t that have a meaning in a frame of this class."""
    read = Ether(frame)
    destination = number(read.dst)
    vlan = {"present": int(cls == "VLAN")}
    if cls == "VLAN":
        tag = read[Dot1AD] if read.type == 0x88A8 else read[Dot1Q]
        vlan |= {"service": int(read.type == 0x88A8), "pcp": tag.prio, "dei": tag.dei, "vid": tag.vlan}
    fields: dict[str, Any] = {
        "l2": {
            "src": number(read.src),
            "group": destination >> 40 & 1,
            "broadcast": int(destination == (1 << 48) - 1),
            "vlan": vlan,
        }
    }
    if cls == "ARP":
        arp = read[ARP]
        spa, tpa = int(ipaddress.IPv4Address(arp.psrc)), int(ipaddress.IPv4Address(arp.pdst))
        return fields | {"l4": {"arp": {"request": int(arp.op == 1), "sha": number(arp.hwsrc), "spa": spa, "tpa": tpa}}}
    if cls not in ("ICMP", "ROCE", "UDP", "TCP", "IP", "ND", "RA"):
        return fields
    more = IPV6_MORE if IPv6 in read else 0
    fields["one_host"] = int(one_host(read.src, read[IPv6 if more else IP].src))
    fields["l3"] = _l3(read)
    at, bth_at = 34 + more, BTH_AT + more
    udp = split(frame[at : at + 8], {"src_port": 16, "dst_port": 16, "length": 16, "checksum": 16})
    if cls == "UDP":
        fields["l4"] = {"udp": {"udp": udp}}
        if len(frame) >= FIRST_END + more:
            fields["l4"]["udp"]["first"] = int.from_bytes(frame[bth_at : bth_at + 8], "big")
    elif cls in ("ICMP", "RA"):
        names = {"icmp_type": 8, "code": 8, "checksum": 16, "identifier": 16, "sequence_number": 16}
        fields["l4"] = {"icmp": {"echo": split(frame[at : at + 8], names)}}
    elif cls == "ND":
        names = {
            "icmp_type": 8,
            "code": 8,
            "checksum": 16,
            "router": 1,
            "solicited": 1,
            "override_": 1,
            "reserved": 29,
            "target": 128,
        }
        fields["l4"] = {"nd": split(frame[at : at + 24], names)}
        if len(frame) >= at + 48:
            fields["l4"]["nd"]["options"] = int.from_bytes(frame[at + 24 : at + 48], "big")
    elif cls == "TCP" and TCP in read:
        tcp = read[TCP]
        flags = {f"flag_{name}": int(getattr(tcp.flags, letter)) for name, letter in
                 zip(("cwr", "ece", "urg", "ack", "psh", "rst", "syn", "fin"), "CEUAPRSF", strict=True)}  # fmt: skip
        fields["l4"] = {"tcp": {"tcp": flags | {
            "src_port": tcp.sport, "dst_port": tcp.dport, "seq": tcp.seq, "ack": tcp.ack, "data_offset": tcp.dataofs,
            "window": tcp.window, "checksum": tcp.chksum, "urgent_pointer": tcp.urgptr,
        }}}  # fmt: skip
    elif cls == "ROCE":
        roce: dict[str, Any] = {"udp": udp, "bth": split(frame[bth_at : bth_at + 12], BTH_FIELDS)}
        opcode = frame[bth_at]
        if opcode in EXT:
            roce["ext"] = _ext(frame, EXT[opcode], more)
        if opcode in WORD_AT:
            word_at = WORD_AT[opcode] + more
            roce["word"] = int.from_bytes(frame[word_at : word_at + 4], "big")
        fields["l4"] = {"roce": roce}
    return fields


def says(got: SimpleNamespace, fields: dict[str, Any]) -> bool:
    """Every one of these fields has this value."""
    return all(
        says(getattr(got, name), value) if isinstance(value, dict) else getattr(got, name) == value
        for name, value in fields.items()
    )


def record(cls: str, frame: bytes, payload_length: int, l3: dict[str, Any] | None = None) -> int:
    """A frame_rx_t of this frame, with these fields of its network layer in place of its. Those without a meaning are random."""
    layout = struct(FRAME_RX)
    word = random.getrandbits(layout.width)
    fields = headers(cls, frame)
    if cls == "ND":  # what is behind the last option has no meaning
        options = frame[ND_OPTIONS_AT : ND_OPTIONS_AT + 24]
        fields["l4"]["nd"]["options"] = int.from_bytes(options + random.randbytes(24 - len(options)), "big")
    if l3:
        fields["l3"] |= l3
    values = {"cls": constant(f"frame_pkg::CLASS_{cls}"), "payload_length": payload_length, "headers": fields}

    def put(kind: Any, at: int, named: dict[str, Any]) -> None:
        nonlocal word
        for name, value in named.items():
            offset, field = kind.fields[name]
            if isinstance(value, dict):
                put(field, at + offset, value)
            else:
                word &= ~(((1 << field.width) - 1) << at + offset)
                word |= field.pack(value) << at + offset

    put(layout, 0, values)
    return word
