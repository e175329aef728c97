# SPDX-License-Identifier: Apache-2.0
"""Communication management datagrams by byte offsets (IBTA 12.6, annex A11): the one place where the tests build and read them.

Written apart from the RTL's structs so that the two check each other; held against frames of Linux in rtl/roce/test.
A datagram is the 256 bytes of a MAD; what follows its header is called its data.
"""

from __future__ import annotations

import ipaddress
import struct
from dataclasses import dataclass, field

REQ, MRA, REJ, REP, RTU, DREQ, DREP = range(0x10, 0x17)
NAMES = {REQ: "REQ", MRA: "MRA", REJ: "REJ", REP: "REP", RTU: "RTU", DREQ: "DREQ", DREP: "DREP"}
ABOUT_REQ, ABOUT_REP, ABOUT_OTHER = 0, 1, 2
HEADER_BYTES, MAD_BYTES = 24, 256
DATA_BYTES = MAD_BYTES - HEADER_BYTES
PRIVATE_BYTES = 48  # of the application, in a REQ or REP
EXTENSIONS_AT = 224  # in the data of both
PRIVATE_AT = {REQ: 176, REP: 36, REJ: 84}


def gid(address: str) -> bytes:
    """The 16 bytes of an IP address, that of IPv4 in mapped form (RFC 4291, 2.5.5.2)."""
    return ipaddress.ip_address(address if ":" in address else f"::ffff:{address}").packed


def _cma(address: str) -> bytes:
    """An address in the header of the RDMA IP CM service: one of IPv4 in its last 4 bytes, behind zeros (IBTA A11.3)."""
    return ipaddress.ip_address(address).packed.rjust(16, b"\0")


def mad(attr: int, tid: int, data: bytes) -> bytes:
    """A datagram."""
    return struct.pack(">BBBBHHQHHI", 1, 7, 2, 3, 0, 0, tid, attr, 0, 0) + data.ljust(DATA_BYTES, b"\0")


def guid(mac: str) -> bytes:
    """EUI-64 of a MAC address (RFC 4291 appendix A)."""
    octets = bytes.fromhex(mac.replace(":", ""))
    return bytes([octets[0] ^ 2]) + octets[1:3] + b"\xff\xfe" + octets[3:]


def extensions(bits: int, version: int = 1, magic: bytes = b"NACL", contexts: int = 0) -> bytes:
    """The record at the end of the private data (docs/reference/extensions.md): selective repeat, contexts, long set-up."""
    return magic + bytes([version, bits, contexts, 0])


@dataclass
class Request:
    """A REQ of the RDMA IP CM service. The values are those of a NAAICE client on Linux."""

    local_id: int = 0x257470F2
    qpn: int = 0x20
    psn: int = 0xAC999F
    ip: str = "10.99.0.2"
    called: str = "10.99.0.1"
    port: int = 12345
    port_space: int = 0x0106
    transport: int = 0
    mtu: int = 3  # code: 128 bytes << mtu
    resources: int = 1
    depth: int = 1
    response_timeout: int = 20  # for the answer
    cm_timeout: int = 20  # for what follows the answer
    retries: int = 15
    ack_timeout: int = 19
    retry: int = 7
    rnr_retry: int = 6
    cma_version: int = 0
    ip_version: int = 0  # 0: that of its address
    source_port: int = 0x8000
    guid: bytes = bytes(8)
    flow_label: int = 0
    traffic_class: int = 0
    private: bytes = b""
    extensions: bytes = b""

    def data(self) -> bytes:
        """What follows the MAD header."""
        version = self.ip_version or (6 if ":" in self.ip else 4)
        body = bytearray(DATA_BYTES)
        struct.pack_into(">I", body, 0, self.local_id)
        struct.pack_into(">IHH", body, 8, 0, self.port_space, self.port)
        body[16:24] = self.guid
        body[32:36] = self.qpn.to_bytes(3, "big") + bytes([self.resources])
        body[39] = self.depth
        body[43] = self.response_timeout << 3 | self.transport << 1
        body[44:48] = self.psn.to_bytes(3, "big") + bytes([self.cm_timeout << 3 | self.retry])
        body[48:52] = bytes([0xFF, 0xFF, self.mtu << 4 | self.rnr_retry, self.retries << 4])
        body[52:56] = b"\xff\xff\xff\xff"
        body[56:88] = gid(self.ip) + gid(self.called)
        body[88:92] = (self.flow_label << 12).to_bytes(4, "big")
        body[92:96] = bytes([self.traffic_class, 0x40, 0, self.ack_timeout << 3])
        struct.pack_into(">BBH", body, 140, self.cma_version, version << 4, self.source_port)
        body[144:176] = _cma(self.ip) + _cma(self.called)
        body[176 : 176 + len(self.private)] = self.private
        body[EXTENSIONS_AT : EXTENSIONS_AT + len(self.extensions)] = self.extensions
        return bytes(body)


def ids(local_id: int, remote_id: int) -> bytes:
    """What every message but a REQ begins with: the sender's id, the receiver's. An RTU or DREP is nothing else."""
    return struct.pack(">II", local_id, remote_id)


def rep(
    local_id: int,
    remote_id: int,
    qpn: int,
    psn: int,
    *,
    resources: int = 1,
    depth: int = 1,
    rnr_retry: int = 6,
    private: bytes = b"",
    extensions: bytes = b"",
    guid: bytes = bytes(8),
) -> bytes:
    """Data of a REP."""
    body = bytearray(DATA_BYTES)
    body[0:8] = ids(local_id, remote_id)
    body[12:15], body[20:23] = qpn.to_bytes(3, "big"), psn.to_bytes(3, "big")
    body[24:28] = bytes([resources, depth, 15 << 3, rnr_retry << 5])
    body[28:36] = guid
    body[36 : 36 + len(private)] = private
    body[EXTENSIONS_AT : EXTENSIONS_AT + len(extensions)] = extensions
    return bytes(body)


def rej(local_id: int, remote_id: int, about: int, reason: int, info: bytes = b"", private: bytes = b"") -> bytes:
    """Data of a REJ."""
    head = ids(local_id, remote_id) + struct.pack(">BBH", about << 6, len(info) << 1, reason)
    return head + info.ljust(72, b"\0") + private


def mra(local_id: int, remote_id: int, about: int, timeout: int) -> bytes:
    """Data of an MRA."""
    return ids(local_id, remote_id) + bytes([about << 6, timeout << 3])


def dreq(local_id: int, remote_id: int, qpn: int) -> bytes:
    """Data of a DREQ; `qpn` is the receiver's."""
    return ids(local_id, remote_id) + qpn.to_bytes(3, "big")


@dataclass
class Message:
    """The fields of a datagram. Those that its kind does not have are undefined."""

    dst_ip: str
    dst_mac: str
    mad: bytes
    tos: int = 0  # of its IP packet
    attr: int = field(init=False)
    tid: int = field(init=False)
    local_id: int = field(init=False)
    remote_id: int = field(init=False)

    def __post_init__(self) -> None:
        assert len(self.mad) == MAD_BYTES
        assert self.mad[:8] == bytes([1, 7, 2, 3, 0, 0, 0, 0]), self.mad[:8].hex()
        self.tid = int.from_bytes(self.mad[8:16], "big")
        self.attr = int.from_bytes(self.mad[16:18], "big")
        assert self.mad[18:24] == bytes(6)
        self.local_id, self.remote_id = struct.unpack(">II", self.mad[24:32])
        if self.attr == REQ:
            self.remote_id = 0

    def at(self, offset: int, length: int) -> int:
        """Integer at an offset of the data."""
        return int.from_bytes(self.mad[HEADER_BYTES + offset : HEADER_BYTES + offset + length], "big")

    @property
    def qpn(self) -> int:
        """REQ, REP: of its sender. DREQ: of its receiver."""
        return self.at({REQ: 32, REP: 12}.get(self.attr, 8), 3)

    @property
    def psn(self) -> int:
        return self.at(44 if self.attr == REQ else 20, 3)

    @property
    def resources(self) -> int:
        return self.at(35 if self.attr == REQ else 24, 1)

    @property
    def depth(self) -> int:
        return self.at(39 if self.attr == REQ else 25, 1)

    @property
    def traffic_class(self) -> int:
        """REQ: of the path."""
        return self.at(92, 1)

    @property
    def private(self) -> bytes:
        """The application's part."""
        at = HEADER_BYTES + PRIVATE_AT[self.attr]
        return self.mad[at : at + PRIVATE_BYTES]

    @property
    def extensions(self) -> bytes:
        return self.mad[HEADER_BYTES + EXTENSIONS_AT :]

    @property
    def reason(self) -> int:
        return self.at(10, 2)

    @property
    def about(self) -> int:
        """Which message a REJ or MRA is about."""
        return self.at(8, 1) >> 6

    @property
    def service_timeout(self) -> int:
        """Of an MRA."""
        return self.at(9, 1) >> 3

    def __str__(self) -> str:
        return f"{NAMES[self.attr]} {self.local_id:#x}->{self.remote_id:#x}"
