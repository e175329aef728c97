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
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import ARP, Dot1AD, Dot1Q, Ether
from scapy.packet import Raw
from scapy.utils import rdpcap

MAC, IP_ADDRESS = "02:00:00:00:00:01", "10.0.0.1"
PEER_MAC, PEER_IP = "02:00:00:00:00:02", "10.0.0.2"
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
    mac: str = MAC, ip: str = IP_ADDRESS, prefix_length: int = 24, gateway: str = "0.0.0.0", dhcp: bool = False, mdns: bool = False
) -> dict[str, int]:
    """The device's own addresses, as fields of packet_pkg::local_addr_t."""
    return {
        "enable": 1,
        "mac": int.from_bytes(mac_bytes(mac), "big"),
        "ip": int.from_bytes(ip_bytes(ip), "big"),
        "prefix_length": prefix_length,
        "gateway": int.from_bytes(ip_bytes(gateway), "big"),
        "dhcp": int(dhcp),
        "mdns": int(mdns),
    }


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
    for offset in (15, 22, 24, 25, 40, 41, 46):
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
        return self.frame[: 54 + EXTENSION[self.frame[42]] if self.cls == "ROCE" else 42]


def judge(
    frame: bytes,
    bad: bool = False,
    mac: str = MAC,
    ip: str = IP_ADDRESS,
    max_frame: int = 4224,
    dhcp: bool = False,
    mdns: bool = False,
) -> Judgement:
    """The model of packet_rx: one frame, one outcome. `dhcp`: answers to all hosts are expected; `mdns`: so are messages to its
    group."""
    if bad:
        return Judgement("drop_fcs")
    if len(frame) > max_frame:
        return Judgement("drop_oversize")
    if len(frame) < 42:
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
