# SPDX-License-Identifier: Apache-2.0
"""Frames for the tests of the packet plane, built by scapy, and a model of what becomes of a received frame."""

from __future__ import annotations

import ipaddress
import random
import struct
import zlib
from dataclasses import dataclass
from pathlib import Path

from scapy.contrib.roce import BTH
from scapy.layers.inet import ICMP, IP, TCP, UDP
from scapy.layers.inet6 import (
    ICMPv6EchoRequest,
    ICMPv6ND_NA,
    ICMPv6ND_NS,
    ICMPv6ND_RA,
    ICMPv6NDOptDstLLAddr,
    ICMPv6NDOptPrefixInfo,
    ICMPv6NDOptSrcLLAddr,
    IPv6,
    IPv6ExtHdrDestOpt,
    IPv6ExtHdrFragment,
    IPv6ExtHdrHopByHop,
    IPv6ExtHdrRouting,
)
from scapy.layers.l2 import ARP, Dot1AD, Dot1Q, Ether
from scapy.packet import Raw
from scapy.utils import rdpcap

MAC, IP_ADDRESS = "02:00:00:00:00:01", "10.0.0.1"
PEER_MAC, PEER_IP = "02:00:00:00:00:02", "10.0.0.2"
LINK_LOCAL, GLOBAL = "fe80::ff:fe00:1", "2001:db8::a:b:c"
PEER_LINK_LOCAL, PEER_GLOBAL = "fe80::ff:fe00:2", "2001:db8::2"
ALL_NODES = "ff02::1"
ROCE_PORT = 4791
LINUX_CAPTURE = Path(__file__).parent / "data" / "linux_rxe.pcap"

# Bytes of extension headers behind the BTH (IBTA 9.2, table 38), for the opcodes of RC and UD that the device supports.
EXTENSION = (
    {opcode: 0 for opcode in (0x00, 0x01, 0x02, 0x04, 0x07, 0x08, 0x0E)}
    | {opcode: 4 for opcode in (0x03, 0x05, 0x09, 0x16, 0x17, 0x0D, 0x0F, 0x10, 0x11)}
    | {opcode: 16 for opcode in (0x06, 0x0A, 0x0C)}
    | {0x0B: 20, 0x12: 12, 0x13: 28, 0x14: 28, 0x64: 8, 0x65: 12}
)


def mac_bytes(address: str) -> bytes:
    return bytes.fromhex(address.replace(":", ""))


def ip_bytes(address: str) -> bytes:
    return bytes(map(int, address.split(".")))


def ip_number(address: str) -> int:
    """As packet_pkg::ip_addr_t."""
    ip = ipaddress.ip_address(address)
    return int(ip) if ip.version == 6 else 0xFFFF << 32 | int(ip)


def local_addr(
    mac: str = MAC, ip: str = IP_ADDRESS, prefix_length: int = 24, gateway: str = "0.0.0.0", dhcp: bool = False, mdns: bool = False,
    ipv6: bool = False, link_local: str = LINK_LOCAL, global_: str = GLOBAL, on_link: bool = True, router: str = "::",
) -> dict[str, int]:  # fmt: skip
    """The device's own addresses, as fields of packet_pkg::local_addr_t."""
    return {
        "enable": 1,
        "mac": int.from_bytes(mac_bytes(mac), "big"),
        "ip": int.from_bytes(ip_bytes(ip), "big"),
        "prefix_length": prefix_length,
        "gateway": int.from_bytes(ip_bytes(gateway), "big"),
        "dhcp": int(dhcp),
        "mdns": int(mdns),
        "ipv6": int(ipv6),
        **{name: int(ipaddress.IPv6Address(text)) if ipv6 else 0
           for name, text in (("link_local", link_local), ("global_", global_), ("router", router))},
        "on_link": int(on_link),
    }  # fmt: skip


def ethernet(dst: str = MAC) -> Ether:
    return Ether(dst=dst, src=PEER_MAC)


def roce(payload: bytes, opcode: int = 0x04, extension: bytes | None = None, udp_checksum: bool = False, **ip: object) -> bytes:
    """A RoCE frame with its ICRC by scapy; pads `payload` to a multiple of four."""
    pad = -len(payload) % 4
    if extension is None:
        extension = random.randbytes(EXTENSION[opcode])
    bth = BTH(
        opcode=opcode, padcount=pad, dqpn=random.getrandbits(24), psn=random.getrandbits(24),
        fecn=random.getrandbits(1), resv6=random.getrandbits(6), ackreq=1,
    )  # fmt: skip
    fields = {"src": PEER_IP, "dst": IP_ADDRESS, "tos": random.choice([0, 2])}
    fields |= {"ttl": random.randrange(1, 255), "flags": "DF", "id": random.getrandbits(16)}
    header = IP(**(fields | ip))
    udp = UDP(sport=0xC000 + random.getrandbits(14), dport=ROCE_PORT, **({} if udp_checksum else {"chksum": 0}))
    # bytes() calls build() once a layer: the ICRC is taken before the UDP checksum, over which it does not go.
    return bytes(ethernet() / header / udp / bth / Raw(extension + payload + bytes(pad)))


def roce6(payload: bytes, opcode: int = 0x04, extension: bytes | None = None, **fields: object) -> bytes:
    """The same over IPv6, with a UDP checksum; other headers of IPv6 and UDP by name: `udp={"chksum": 0}` as Linux sends it."""
    pad = -len(payload) % 4
    if extension is None:
        extension = random.randbytes(EXTENSION[opcode])
    bth = BTH(
        opcode=opcode, padcount=pad, dqpn=random.getrandbits(24), psn=random.getrandbits(24),
        fecn=random.getrandbits(1), resv6=random.getrandbits(6), ackreq=1,
    )  # fmt: skip
    values = {"src": PEER_GLOBAL, "dst": GLOBAL, "tc": random.choice([0, 2]), "fl": random.getrandbits(20)}
    values |= {"hlim": random.randrange(1, 255), "udp": {}} | fields
    datagram = UDP(sport=0xC000 + random.getrandbits(14), dport=ROCE_PORT, **values.pop("udp"))
    return bytes(ethernet() / IPv6(**values) / datagram / bth / Raw(extension + payload + bytes(pad)))


def udp6(payload: bytes, dport: int = 5000, udp: dict[str, int] | None = None, **ip: object) -> bytes:
    header = IPv6(**({"src": PEER_GLOBAL, "dst": GLOBAL} | ip))
    return bytes(ethernet() / header / UDP(sport=4000, dport=dport, **(udp or {})) / Raw(payload))


def tcp6(payload: bytes, **ip: object) -> bytes:
    header = IPv6(**({"src": PEER_GLOBAL, "dst": GLOBAL, "fl": random.getrandbits(20)} | ip))
    return bytes(ethernet() / header / TCP(sport=random.getrandbits(16), dport=random.getrandbits(16)) / Raw(payload))


def ping6(payload: bytes, **fields: object) -> bytes:
    names = ("type", "code", "cksum")
    ip = {name: value for name, value in fields.items() if name not in names}
    echo = ICMPv6EchoRequest(id=7, seq=9, data=payload, **{name: fields[name] for name in names if name in fields})
    return bytes(ethernet() / IPv6(**({"src": PEER_GLOBAL, "dst": GLOBAL, "hlim": random.randrange(1, 256)} | ip)) / echo)


def icmp6(kind: int, rest: bytes, code: int = 0, **ip: object) -> bytes:
    """Any ICMPv6 message."""
    values = {"src": PEER_LINK_LOCAL, "dst": LINK_LOCAL, "hlim": 255} | ip
    plain = bytes([kind, code, 0, 0]) + rest
    pseudo = ip6_bytes(str(values["src"])) + ip6_bytes(str(values["dst"])) + struct.pack(">II", len(plain), 58)
    plain = plain[:2] + struct.pack(">H", 0xFFFF ^ ones_sum(pseudo + plain)) + plain[4:]
    return bytes(ethernet() / IPv6(nh=58, **values) / Raw(plain))


def ip6_bytes(address: str) -> bytes:
    return ipaddress.IPv6Address(address).packed


def solicited_node(address: str) -> str:
    return str(ipaddress.IPv6Address(bytes.fromhex("ff0200000000000000000001ff") + ip6_bytes(address)[13:]))


def mac_of_group(address: str) -> str:
    return (b"\x33\x33" + ip6_bytes(address)[12:]).hex(":")


def _nd(message: object, eth: object, ip: dict[str, object]) -> bytes:
    dst = str(ip["dst"])
    if eth is None:
        eth = mac_of_group(dst) if dst.startswith("ff") else MAC
    return bytes(ethernet(str(eth)) / IPv6(**({"hlim": 255} | ip)) / message)


def solicitation(
    target: str = GLOBAL, lla: str | None = PEER_MAC, eth: str | None = None, options: bytes = b"", **ip: object
) -> bytes:
    """A neighbour solicitation; to the group of its target, if nothing else is said."""
    message = ICMPv6ND_NS(tgt=target)
    if lla:
        message = message / ICMPv6NDOptSrcLLAddr(lladdr=lla)
    return _nd(message / Raw(options), eth, {"src": PEER_GLOBAL, "dst": solicited_node(target)} | ip)


def advertisement(
    target: str = PEER_GLOBAL, lla: str | None = PEER_MAC, eth: str | None = None, options: bytes = b"", solicited: int = 1,
    override: int = 1, router: int = 0, **ip: object,
) -> bytes:  # fmt: skip
    """A neighbour advertisement; to the global address, if nothing else is said."""
    message = ICMPv6ND_NA(tgt=target, S=solicited, O=override, R=router)
    if lla:
        message = message / ICMPv6NDOptDstLLAddr(lladdr=lla)
    return _nd(message / Raw(options), eth, {"src": target, "dst": GLOBAL} | ip)


def router_advertisement(
    prefixes: list[tuple[str, int, int]] | tuple[()] = (), lifetime: int = 1800, lla: str | None = PEER_MAC, eth: str | None = None,
    options: bytes = b"", prefix: dict[str, int] | None = None, **ip: object,
) -> bytes:  # fmt: skip
    """A router advertisement with these prefixes: address, valid and preferred lifetime."""
    message = ICMPv6ND_RA(routerlifetime=lifetime)
    if lla:
        message = message / ICMPv6NDOptSrcLLAddr(lladdr=lla)
    for address, valid, preferred in prefixes:
        message = message / ICMPv6NDOptPrefixInfo(
            **({"prefix": address, "prefixlen": 64, "L": 1, "A": 1, "validlifetime": valid, "preferredlifetime": preferred}
               | (prefix or {}))
        )  # fmt: skip
    return _nd(message / Raw(options), eth, {"src": PEER_LINK_LOCAL, "dst": ALL_NODES} | ip)


def with_extension(frame: bytes, header: type) -> bytes:
    """The same frame with an extension header of IPv6."""
    read = Ether(frame)[IPv6]
    extra = header(nh=read.nh) if header is not IPv6ExtHdrHopByHop else IPv6ExtHdrHopByHop(nh=read.nh)
    fields = {"src": read.src, "dst": read.dst, "hlim": read.hlim}
    kind = {IPv6ExtHdrHopByHop: 0, IPv6ExtHdrRouting: 43, IPv6ExtHdrFragment: 44, IPv6ExtHdrDestOpt: 60}[header]
    return bytes(Ether(frame[:14]) / IPv6(nh=kind, **fields) / bytes(extra) / Raw(frame[54:]))


def udp(payload: bytes, checksum: bool = True, dport: int = 5000, **ip: object) -> bytes:
    return bytes(
        ethernet()
        / IP(**({"src": PEER_IP, "dst": IP_ADDRESS} | ip))
        / UDP(sport=4000, dport=dport, **({} if checksum else {"chksum": 0}))
        / Raw(payload)
    )


def dhcp(payload: bytes, **fields: object) -> bytes:
    """An answer of a DHCP server to all hosts; other addresses, ports and protocols by name."""
    values = {"eth": "ff:ff:ff:ff:ff:ff", "dst": "255.255.255.255", "dport": 68, "proto": 17} | fields
    header = IP(src=PEER_IP, dst=values["dst"], proto=values["proto"], flags=values.get("flags", 0))
    return bytes(ethernet(str(values["eth"])) / header / UDP(sport=67, dport=values["dport"]) / Raw(payload))


def mdns(payload: bytes, **fields: object) -> bytes:
    """A message to the group of mDNS; other addresses, ports and protocols by name."""
    values = {"eth": "01:00:5e:00:00:fb", "dst": "224.0.0.251", "dport": 5353, "proto": 17} | fields
    header = IP(src=PEER_IP, dst=values["dst"], proto=values["proto"], flags=values.get("flags", 0), ttl=255)
    return bytes(ethernet(str(values["eth"])) / header / UDP(sport=5353, dport=values["dport"]) / Raw(payload))


def unreachable(code: int, mtu: int = 0) -> bytes:
    """ICMP destination unreachable, about a RoCE packet of the device."""
    about = IP(src=IP_ADDRESS, dst=PEER_IP) / UDP(sport=0xC000, dport=ROCE_PORT) / Raw(bytes(8))
    return bytes(ethernet() / IP(src=PEER_IP, dst=IP_ADDRESS) / ICMP(type=3, code=code, nexthopmtu=mtu) / bytes(about)[:28])


def ping(payload: bytes, type: int = 8, **ip: object) -> bytes:
    header = IP(**({"src": PEER_IP, "dst": IP_ADDRESS} | ip))
    return bytes(ethernet() / header / ICMP(type=type, id=7, seq=9) / Raw(payload))


def tcp(payload: bytes, **ip: object) -> bytes:
    header = IP(**({"src": PEER_IP, "dst": IP_ADDRESS, "id": random.getrandbits(16)} | ip))
    segment = TCP(
        sport=random.getrandbits(16), dport=random.getrandbits(16), seq=random.getrandbits(32), ack=random.getrandbits(32),
        flags=random.getrandbits(8), window=random.getrandbits(16), urgptr=random.getrandbits(16),
        options=random.choice([[], [("MSS", 1460)]]),
    )  # fmt: skip
    return bytes(ethernet() / header / segment / Raw(payload))


def other_ip(payload: bytes, protocol: int = 47) -> bytes:
    return bytes(ethernet() / IP(src=PEER_IP, dst=IP_ADDRESS, proto=protocol) / Raw(payload))


def ipv6(payload: bytes) -> bytes:
    return bytes(ethernet() / IPv6(src="2001:db8::2", dst="2001:db8::1") / UDP(sport=4000, dport=ROCE_PORT) / Raw(payload))


def tagged(frame: bytes, vid: int | None = None, service: bool = False) -> bytes:
    """The same frame with a VLAN tag; with a service tag and a VLAN tag."""
    read = Ether(frame)
    tag = {"prio": random.randrange(8), "dei": random.getrandbits(1), "vlan": random.randrange(4096) if vid is None else vid}
    inner = Dot1Q(vlan=random.randrange(4096), type=read.type) / Raw(frame[14:])
    tags = Dot1AD(**tag, type=0x8100) / inner if service else Dot1Q(**tag, type=read.type) / Raw(frame[14:])
    return bytes(Ether(dst=read.dst, src=read.src) / tags)


def with_tag(frame: bytes, vid: int, pcp: int = 0, dei: int = 0, service: bool = False) -> bytes:
    """The same frame in a VLAN."""
    plain = Ether(frame)
    kind = Dot1AD if service else Dot1Q
    return bytes(Ether(dst=plain.dst, src=plain.src) / kind(vlan=vid, prio=pcp, dei=dei, type=plain.type) / Raw(frame[14:]))


def to(destination: str, frame: bytes) -> bytes:
    """The same frame to another Ethernet address."""
    return mac_bytes(destination) + frame[6:]


def ethertype(number: int, payload: bytes) -> bytes:
    return bytes(ethernet())[:12] + number.to_bytes(2, "big") + payload


def frames_without_route() -> dict[str, list[bytes]]:
    """Frames of each class whose protocol the device does not have, by class; each at least as long as a MAC gives it."""
    data = random.randbytes(random.choice([46, 64, 300, 1500]))
    groups = ("ff:ff:ff:ff:ff:ff", "01:00:5e:00:00:01", "33:33:00:00:00:01")
    inner = (roce(data), ping(data), udp(data), ipv6(data), arp())
    return {
        "TCP": [tcp(data), tcp(b"", flags="DF"), tcp(data[:1], tos=3)],
        "IP": [other_ip(data), other_ip(data, 50), other_ip(data, 2)],
        "IPV6": [ipv6(data), ipv6(b"")],
        "VLAN": [tagged(frame, vid) for frame in inner for vid in (0, 1, None)] + [tagged(frame, service=True) for frame in inner],
        "GROUP": [to(group, frame) for group in groups for frame in inner[:4]] + [arp(dst="01:00:5e:00:00:01")],
        "OTHER": [ethertype(number, data) for number in (0x88CC, 0x8847, 0x0000, 0x05DC, 0xFFFF)],
    }


def arp(op: int = 1, dst: str = "ff:ff:ff:ff:ff:ff", **fields: object) -> bytes:
    values = {"hwsrc": PEER_MAC, "psrc": PEER_IP, "pdst": IP_ADDRESS} | fields
    return bytes(ethernet(dst) / ARP(op=op, **values))


def ethernet_padded(frame: bytes) -> bytes:
    """Filled up to 60 bytes, as a MAC sends it; with junk, which must not matter."""
    return frame + random.randbytes(max(0, 60 - len(frame)))


def linux_frames() -> list[bytes]:
    """Frames that Linux soft-RoCE sent, one or two of each opcode and size."""
    return [bytes(packet) for packet in rdpcap(str(LINUX_CAPTURE))]


def icrc(frame: bytes) -> bytes:
    """The ICRC that the RoCE frame (its own ICRC included) should carry: IBTA annex A17.3.3."""
    view = bytearray(b"\xff" * 8 + frame[14:-4])
    if frame[12:14] == b"\x86\xdd":
        view[8] |= 0x0F
        ones: tuple[int, ...] = (15, 16, 17, 21, 60, 61, 66)
    else:
        ones = (15, 22, 24, 25, 40, 41, 46)
    for offset in ones:
        view[8 + offset - 14] = 0xFF
    return struct.pack("<I", zlib.crc32(view))


def ones_sum(data: bytes) -> int:
    data += bytes(len(data) % 2)
    total = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total


@dataclass(frozen=True)
class Judgement:
    """What becomes of a frame: the event that is counted, or the class and payload with which it is handed on."""

    event: str = ""
    cls: str = ""
    payload: bytes = b""
    frame: bytes = b""

    @property
    def good(self) -> bool:
        return bool(self.cls)

    @property
    def header(self) -> bytes:
        """All headers in front of a payload that is not the whole frame."""
        more = 20 if self.frame[12:14] == b"\x86\xdd" else 0
        return self.frame[: 54 + more + EXTENSION[self.frame[42 + more]] if self.cls == "ROCE" else 42 + more]


def judge(
    frame: bytes,
    bad: bool = False,
    mac: str = MAC,
    ip: str = IP_ADDRESS,
    max_frame: int = 4224,
    dhcp: bool = False,
    mdns: bool = False,
    ipv6: bool = False,
    link_local: str = LINK_LOCAL,
    global_: str = GLOBAL,
) -> Judgement:
    """The model of packet_rx: one frame, one outcome. `dhcp`: answers to all hosts are expected; `mdns`: so are messages to its
    group."""
    if bad:
        return Judgement("drop_fcs")
    if len(frame) > max_frame:
        return Judgement("drop_oversize")
    is_ipv6 = frame[12:14] == b"\x86\xdd"
    if len(frame) < (62 if is_ipv6 else 42):
        return Judgement("drop_runt")
    padded = frame + bytes(64)
    if frame[0:6] != mac_bytes(mac) and not frame[0] & 1:
        return Judgement("drop_not_ours")
    ethertype = frame[12:14]
    if ethertype in (b"\x81\0", b"\x88\xa8"):
        return Judgement(cls="VLAN", payload=frame, frame=frame)
    if ethertype == b"\x08\x06" and frame[0:6] in (mac_bytes(mac), b"\xff" * 6):
        known = frame[14:20] == bytes.fromhex("000108000604") and frame[20:22] in (b"\0\1", b"\0\2")
        if not known or frame[22] & 1:  # a group address is not a host's own
            return Judgement("drop_arp")
        return Judgement("rx_arp", "ARP", frame=frame)
    if is_ipv6 and ipv6:
        return judge_ipv6(frame, mac, link_local, global_)
    to_all = frame[0:6] == b"\xff" * 6 and ethertype == b"\x08\0" and frame[30:34] == b"\xff" * 4
    is_dhcp = dhcp and to_all and frame[23] == 17 and frame[36:38] == b"\0\x44"
    to_group = frame[0:6] == bytes.fromhex("01005e0000fb") and ethertype == b"\x08\0" and frame[30:34] == ip_bytes("224.0.0.251")
    is_mdns = mdns and to_group and frame[23] == 17 and frame[36:38] == (5353).to_bytes(2, "big")
    to_several = is_dhcp or is_mdns
    if frame[0:6] != mac_bytes(mac) and not to_several:  # IPv4 for one host too: RFC 1122, 3.3.6
        return Judgement(cls="GROUP", payload=frame, frame=frame)
    if ethertype != b"\x08\x00":
        return Judgement(cls="IPV6" if ethertype == b"\x86\xdd" else "OTHER", payload=frame, frame=frame)
    total = int.from_bytes(frame[16:18], "big")
    if frame[14] != 0x45 or total < 20:
        return Judgement("drop_ipv4_header")
    if (frame[30:34] != ip_bytes(ip) or ip == "0.0.0.0") and not to_several:
        return Judgement("drop_not_ours")
    if int.from_bytes(frame[20:22], "big") & 0x3FFF:
        return Judgement("drop_ipv4_fragment")
    protocol = frame[23]
    udp_length = int.from_bytes(frame[38:40], "big")
    is_roce = protocol == 17 and int.from_bytes(frame[36:38], "big") == ROCE_PORT
    header, behind = 42, 0
    if protocol == 1:
        if frame[34] == 3:
            return Judgement("drop_icmp_too_big" if frame[35] == 4 else "drop_icmp_unreachable")
        if frame[34:36] != b"\x08\x00":
            return Judgement("drop_icmp")
    elif protocol == 17 and (udp_length + 20 != total or udp_length < 8):
        return Judgement("drop_udp_length")
    elif is_roce:
        if padded[42] not in EXTENSION:
            return Judgement("drop_roce_opcode")
        header = 54 + EXTENSION[padded[42]]
        behind = 4 + (padded[43] >> 4 & 3)
    end = 14 + total
    if (protocol in (1, 17) and header + behind > end) or end > len(frame):
        return Judgement("drop_runt")
    if ones_sum(frame[14:34]) != 0xFFFF:
        return Judgement("drop_ipv4_header")
    if protocol == 1:
        if ones_sum(frame[34:end]) != 0xFFFF:
            return Judgement("drop_icmp")
        return Judgement("rx_icmp", "ICMP", frame[42:end], frame)
    if protocol != 17:
        return Judgement(cls="TCP" if protocol == 6 else "IP", payload=frame, frame=frame)
    pseudo = frame[26:34] + bytes([0, 17]) + frame[38:40]
    if frame[40:42] != b"\0\0" and ones_sum(pseudo + frame[34:end]) != 0xFFFF:
        return Judgement("drop_udp_checksum")
    if not is_roce:
        return Judgement("rx_udp", "UDP", frame[42:end], frame)
    if icrc(frame[:end]) != frame[end - 4 : end]:
        return Judgement("drop_icrc")
    return Judgement("rx_roce", "ROCE", frame[header : end - behind], frame)


def judge_ipv6(frame: bytes, mac: str, link_local: str, global_: str) -> Judgement:
    """The part of the model for a device with IPv6."""
    own = [ip6_bytes(address) for address in (link_local, global_) if address != "::"]
    src, dst, protocol, body = frame[22:38], frame[38:54], frame[20], frame[54:]
    length, end = int.from_bytes(frame[18:20], "big"), 54 + int.from_bytes(frame[18:20], "big")
    nd = protocol == 58 and body[0] in (134, 135, 136)
    groups = [ip6_bytes(ALL_NODES)] + [
        ip6_bytes("ff02::1:ff00:0")[:13] + low for low in (mac_bytes(mac)[3:], ip6_bytes(global_)[13:])
    ]
    to_group = nd and dst in groups and frame[0:6] == b"\x33\x33" + dst[12:]
    if frame[0] & 1 and not to_group:
        return Judgement(cls="GROUP", payload=frame, frame=frame)
    unspecified = src == bytes(16)
    if frame[14] >> 4 != 6 or src[0] == 0xFF or (src[:8] == bytes(8) and not unspecified):
        return Judgement("drop_ipv6_header")
    if dst not in own and not to_group:
        return Judgement("drop_not_ours")
    if protocol == 44:
        return Judgement("drop_ipv6_fragment")
    if protocol in (0, 43, 51, 60, 135, 139, 140):
        return Judgement("drop_ipv6_extension")
    header, behind = 62, 0
    is_roce = protocol == 17 and int.from_bytes(body[2:4], "big") == ROCE_PORT
    if nd:
        target = body[8:24]
        ok = frame[21] == 255 and body[1] == 0
        if body[0] == 134:
            ok = ok and length >= 16 and src[:8] == bytes.fromhex("fe80000000000000")
        else:
            ok = ok and length >= 24 and target[:1] != b"\xff"
        if not ok:
            return Judgement("drop_nd")
    elif unspecified:
        return Judgement("drop_ipv6_header")
    elif protocol == 58:
        if body[0] in (1, 2):
            return Judgement("drop_icmp_too_big" if body[0] == 2 else "drop_icmp_unreachable")
        if body[:2] != b"\x80\0":
            return Judgement("drop_icmp")
    elif protocol == 17:
        if int.from_bytes(body[4:6], "big") != length or length < 8:
            return Judgement("drop_udp_length")
        if body[6:8] == b"\0\0" and not is_roce:
            return Judgement("drop_udp_checksum")
        if is_roce:
            padded = body + bytes(64)
            if padded[8] not in EXTENSION:
                return Judgement("drop_roce_opcode")
            header = 74 + EXTENSION[padded[8]]
            behind = 4 + (padded[9] >> 4 & 3)
    if (protocol in (17, 58) and header + behind > end) or end > len(frame):
        return Judgement("drop_runt")
    if protocol not in (17, 58):
        return Judgement(cls="TCP" if protocol == 6 else "IP", payload=frame, frame=frame)
    unchecked = is_roce and body[6:8] == b"\0\0"
    if not unchecked and ones_sum(src + dst + struct.pack(">II", length, protocol) + frame[54:end]) != 0xFFFF:
        return Judgement("drop_nd" if nd else "drop_icmp" if protocol == 58 else "drop_udp_checksum")
    if nd:
        return Judgement("rx_nd", "RA" if body[0] == 134 else "ND", frame[62:end] if body[0] == 134 else b"", frame)
    if protocol == 58:
        return Judgement("rx_icmp", "ICMP", frame[62:end], frame)
    if not is_roce:
        return Judgement("rx_udp", "UDP", frame[62:end], frame)
    if icrc(frame[:end]) != frame[end - 4 : end]:
        return Judgement("drop_icrc")
    return Judgement("rx_roce", "ROCE", frame[header : end - behind], frame)
