# SPDX-License-Identifier: Apache-2.0
"""Rules of the classifier for tests: which frames they match, as scapy reads these, and their words in the registers."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass

from scapy.contrib.roce import BTH
from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Dot1AD, Dot1Q, Ether
from scapy.packet import Packet

from .svtypes import struct

KEEP_AWAY, CARD_ALWAYS, CARD_NEVER, PAIR_SET = 1, 1 << 1, 2 << 1, 1 << 5
DROP, HOST, MIRROR, DEVICE = KEEP_AWAY | CARD_NEVER, KEEP_AWAY | CARD_ALWAYS, CARD_ALWAYS, CARD_NEVER
THROUGH, AROUND = 1 << 6, 2 << 6
ACTION_WORD, CHUNKS, CHUNK_W, GROUP = 34, 34, 6, 4
WINDOW = 16
TAGS = (Dot1Q, Dot1AD)


def pair(number: int) -> int:
    """The part of an action that chooses the pair of queues."""
    return PAIR_SET | number << 3


def meter(number: int) -> int:
    """The part of an action that names a meter."""
    return 1 << 8 | number << 9


def edit(pcp: int | None = None, dscp: int | None = None) -> int:
    """The part of an action that changes the copy of the host."""
    return (0 if pcp is None else 1 << 13 | pcp << 14) | (0 if dscp is None else 1 << 17 | dscp << 18)


@dataclass(frozen=True)
class Rule:
    """What a frame must have; None: anything."""

    action: int = DROP
    version: int | None = None  # 4, 6, or 0: no IP
    source: str | None = None  # a prefix
    destination: str | None = None
    ethertype: int | None = None  # with version 0
    station: str | None = None  # destination MAC address, with version 0
    tagged: bool | None = None
    outer: int | None = None
    inner: int | None = None
    protocol: int | None = None
    source_port: int | None = None
    destination_port: int | None = None
    opcode: int | None = None
    qpn: int | None = None
    fragment: bool | None = None
    window: bytes | None = None  # with window_mask
    window_mask: bytes = bytes(WINDOW)

    @property
    def wide(self) -> bool:
        """Whether it needs a group of positions."""
        return self.window is not None or (self.version == 6 and (self.source or self.destination) is not None)

    @property
    def conditions(self) -> int:
        """How many it has."""
        some = (
            self.source,
            self.destination,
            self.ethertype,
            self.station,
            self.outer,
            self.inner,
            self.protocol,
            self.source_port,
        )
        return sum(condition is not None for condition in (*some, self.destination_port, self.opcode, self.qpn, self.window))

    def matches(self, frame: bytes, offset: int = 0) -> bool:
        """Whether the frame has it all, as scapy reads it."""
        ether = Ether(frame)
        tags: list[Packet] = []
        behind = ether.payload
        while isinstance(behind, TAGS) and len(tags) < 2:
            tags.append(behind)
            behind = behind.payload
        kind = (tags[-1] if tags else ether).type
        ip = behind if isinstance(behind, IP | IPv6) else None
        first = not (isinstance(ip, IP) and ip.frag)
        l4 = ip.payload if ip and first and isinstance(ip.payload, TCP | UDP) and not getattr(ip, "options", None) else None
        bth = l4.payload if isinstance(l4, UDP) and l4.dport == 4791 and isinstance(l4.payload, BTH) else None
        broken = ip.version == 4 and bool(ip.frag or ip.flags.MF) if ip else False
        if ip and ip.version == 6:
            broken = ip.nh == 44
        window = frame[offset : offset + WINDOW]
        found = {
            "version": ip.version if ip else 0,
            "ethertype": None if ip else kind,
            "station": None if ip else ether.dst,
            "tagged": bool(tags),
            "outer": tags[0].vlan if tags else None,
            "inner": tags[1].vlan if len(tags) > 1 else None,
            "protocol": (ip.proto if ip.version == 4 else ip.nh) if ip else None,
            "source_port": l4.sport if l4 else None,
            "destination_port": l4.dport if l4 else None,
            "opcode": bth.opcode if bth else None,
            "qpn": bth.dqpn if bth else None,
            "fragment": broken,
        }
        if any(wanted != found[name] for name in found if (wanted := getattr(self, name)) is not None):
            return False
        for prefix, address in ((self.source, ip and ip.src), (self.destination, ip and ip.dst)):
            if prefix and not (address and ipaddress.ip_address(address) in ipaddress.ip_network(prefix)):
                return False
        if self.window is None:
            return True
        masked = [byte & mask for byte, mask in zip(window, self.window_mask, strict=False)]
        return len(window) == WINDOW and masked == [b & m for b, m in zip(self.window, self.window_mask, strict=True)]

    def words(self, quarter: int) -> list[int]:
        """Words 0 to 35 of the entry, or of this quarter of a wide one."""
        value: dict[str, int] = {}
        mask: dict[str, int] = {}

        def want(name: str, wanted: int, bits: int = -1) -> None:
            value[name], mask[name] = wanted, bits & (1 << common.fields[name]) - 1

        common = _Widths()
        address, address_mask = self._address(quarter)
        if self.version is not None:
            want("v4", int(self.version == 4))
            want("v6", int(self.version == 6))
        if self.tagged is not None:
            want("one_tag", int(self.tagged))
        if self.outer is not None:
            want("one_tag", 1)
            want("outer_vid", self.outer)
        if self.inner is not None:
            want("two_tags", 1)
            want("inner_vid", self.inner)
        if self.fragment is not None:
            want("fragment", int(self.fragment))
        for name, flag in (
            ("protocol", None),
            ("source_port", "ports"),
            ("destination_port", "ports"),
            ("opcode", "roce"),
            ("qpn", "roce"),
        ):
            if (wanted := getattr(self, name)) is not None:
                want({"source_port": "src_port", "destination_port": "dst_port"}.get(name, name), wanted)
                if flag:
                    want(flag, 1)
        bytes_, bytes_mask = 0, 0
        if self.window is not None:
            want("window", 1)
            part = slice(4 * quarter, 4 * quarter + 4)
            bytes_, bytes_mask = int.from_bytes(self.window[part], "big"), int.from_bytes(self.window_mask[part], "big")

        def key(fields: dict[str, int], address: int, window: int) -> int:
            zero = dict.fromkeys(common.fields, 0)
            return struct("classify_pkg::common_t").pack(zero | fields) << 96 | address << 32 | window

        values, masks = key(value, address, bytes_), key(mask, address_mask, bytes_mask)
        low = (1 << CHUNK_W) - 1
        chunks = [(masks >> CHUNK_W * i & low) << CHUNK_W | values >> CHUNK_W * i & low for i in range(CHUNKS)]
        return [*chunks, self.action & 0xFFF, self.action >> 12]

    def _address(self, quarter: int) -> tuple[int, int]:
        """Value and mask of the address bits of this quarter."""
        if self.version == 0 or self.ethertype is not None or self.station is not None:
            value = (self.ethertype or 0) << 48 | int((self.station or "0").replace(":", ""), 16)
            return value, (0xFFFF << 48 if self.ethertype is not None else 0) | (2**48 - 1 if self.station is not None else 0)
        bits = 32 if self.version == 4 else 128
        value = mask = 0
        for prefix in (self.source, self.destination):
            network = ipaddress.ip_network(prefix) if prefix else None
            value = value << bits | (int(network.network_address) if network else 0)
            mask = mask << bits | (int(network.netmask) if network else 0)
        shift = 0 if self.version == 4 else 64 * (GROUP - 1 - quarter)
        return value >> shift & 2**64 - 1, mask >> shift & 2**64 - 1


@dataclass(frozen=True)
class Flow:
    """What an exact flow is found by."""

    source: str
    destination: str
    protocol: int
    source_port: int = 0
    destination_port: int = 0

    @classmethod
    def of(cls, frame: bytes) -> Flow | None:
        """That of a frame, as scapy reads it. None: it is of no flow."""
        behind = Ether(frame).payload
        for _ in range(2):
            if isinstance(behind, TAGS):
                behind = behind.payload
        ip = behind
        if not isinstance(ip, IP | IPv6):
            return None
        fourth = isinstance(ip, IP)
        protocol = ip.proto if fourth else ip.nh
        if (fourth and (ip.frag or ip.flags.MF)) or (not fourth and protocol == 44):
            return None
        if protocol not in (6, 17):
            return cls(ip.src, ip.dst, protocol)
        l4 = ip.payload
        if (fourth and ip.options) or not isinstance(l4, TCP | UDP):
            return None
        return cls(ip.src, ip.dst, protocol, l4.sport, l4.dport)

    @property
    def v6(self) -> bool:
        """Whether it is of IPv6."""
        return ":" in self.source

    @property
    def key(self) -> int:
        """As the registers have it."""
        source, destination = (int(ipaddress.ip_address(address)) for address in (self.source, self.destination))
        upper = (int(self.v6) << 8 | self.protocol) << 32 | self.source_port << 16 | self.destination_port
        return upper << 256 | source << 128 | destination


class FlowHash:
    """The rows of a flow, one in each bank, for a seed."""

    CHUNKS, ROWS, ROW_W = 50, 64, 10

    def __init__(self, seed: int) -> None:
        whole = (1 << 64) - 1
        self.numbers: list[list[int]] = []
        for _ in range(self.CHUNKS):
            row = []
            for _ in range(self.ROWS):
                seed = seed ^ seed << 13 & whole
                seed ^= seed >> 7
                seed = seed ^ seed << 17 & whole
                row.append(((seed >> 32) + seed & 0xFFFFFFFF) >> 32 - 2 * self.ROW_W)
            self.numbers.append(row)

    def rows(self, flow: Flow) -> tuple[int, int]:
        """Of bank 0 and of bank 1."""
        found = 0
        for chunk, numbers in enumerate(self.numbers):
            found ^= numbers[flow.key >> CHUNK_W * chunk & self.ROWS - 1]
        return found & (1 << self.ROW_W) - 1, found >> self.ROW_W


def edited(frame: bytes, pcp: int | None = None, dscp: int | None = None) -> bytes:
    """The frame with this VLAN priority and DSCP, by scapy. Its IPv4 header checksum is right."""
    ether: Packet = Ether(frame)
    if pcp is not None and isinstance(ether.payload, TAGS):
        ether.payload.prio = pcp
    behind = ether.payload
    for _ in range(2):
        if isinstance(behind, TAGS):
            behind = behind.payload
    if dscp is not None and isinstance(behind, IP):
        behind.tos = dscp << 2 | behind.tos & 3
        del behind.chksum
    if dscp is not None and isinstance(behind, IPv6):
        behind.tc = dscp << 2 | behind.tc & 3
    return bytes(ether)


class _Widths:
    """Bits of each field of classify_pkg::common_t."""

    def __init__(self) -> None:
        self.fields = {
            "zero": 4, "one_tag": 1, "two_tags": 1, "v4": 1, "v6": 1, "ports": 1, "roce": 1, "fragment": 1, "window": 1,
            "outer_vid": 12, "inner_vid": 12, "protocol": 8, "src_port": 16, "dst_port": 16, "opcode": 8, "qpn": 24,
        }  # fmt: skip
