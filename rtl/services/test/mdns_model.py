# SPDX-License-Identifier: Apache-2.0
"""What an mDNS responder makes of a query, by RFC 1035 and 6762, and queries as scapy makes them."""

from __future__ import annotations

from dataclasses import dataclass

from scapy.layers.dns import DNS

MAC = "02:4e:41:0a:be:9f"
HALF_TTL = 2250
A, PTR, TXT, AAAA, SRV, ANY = 1, 12, 16, 28, 33, 255
IN, QU, FLUSH = 1, 0x8000, 0x8000
SERVICE, TYPES = "_nacelle._udp.local", "_services._dns-sd._udp.local"
LONGEST_NAME = 255


def host(mac: str = MAC) -> str:
    return f"nacelle-{mac.replace(':', '')}.local"


def instance(mac: str = MAC) -> str:
    return f"nacelle-{mac.replace(':', '')}.{SERVICE}"


def encoded(name: str) -> bytes:
    """A name without pointers."""
    labels = [label.encode() for label in name.rstrip(".").split(".") if label]
    return b"".join(bytes([len(label)]) + label for label in labels) + b"\0"


def question(name: str | bytes, kind: int = PTR, qclass: int = IN) -> bytes:
    return (encoded(name) if isinstance(name, str) else name) + kind.to_bytes(2, "big") + qclass.to_bytes(2, "big")


def known(
    name: str | bytes = SERVICE, data: str | bytes | None = None, ttl: int = 4500, kind: int = PTR, size: int | None = None
) -> bytes:
    """A known answer."""
    data = instance() if data is None else data
    data = encoded(data) if isinstance(data, str) else data
    size = len(data) if size is None else size
    return question(name, kind) + ttl.to_bytes(4, "big") + size.to_bytes(2, "big") + data


def query(*questions: bytes, answers: tuple[bytes, ...] = (), flags: int = 0, ident: int = 0, more: bytes = b"") -> bytes:
    """A message; `more` is what stands behind its known answers."""
    numbers = (ident, flags, len(questions), len(answers), 0, int(bool(more)))
    return b"".join([*(number.to_bytes(2, "big") for number in numbers), *questions, *answers, more])


@dataclass
class Asked:
    """A query for a record of the device, which it does not know."""

    unicast: bool


class MalformedError(Exception):
    """The message is no query."""


def name_at(packet: bytes, at: int) -> tuple[bytes, int]:
    """The name there, in lower case with the lengths of its labels, and where it ends."""
    found, start, end, visited = b"", at, None, 0
    while True:
        if visited >= LONGEST_NAME or at >= len(packet):
            raise MalformedError
        length = packet[at]
        if length == 0:
            return found + b"\0", at + 1 if end is None else end
        if length >> 6 == 3:
            if at + 1 >= len(packet) or visited + 1 >= LONGEST_NAME:
                raise MalformedError
            target = (length & 63) << 8 | packet[at + 1]
            if not 12 <= target < start:
                raise MalformedError
            end = at + 2 if end is None else end
            at = start = target
            visited += 2
        elif length >> 6 == 0:
            if at + 1 + length > len(packet) or visited + 1 + length > LONGEST_NAME:
                raise MalformedError
            found += packet[at : at + 1 + length].lower()
            at += 1 + length
            visited += 1 + length
        else:
            raise MalformedError


def number(packet: bytes, at: int, size: int) -> int:
    if at + size > len(packet):
        raise MalformedError
    return int.from_bytes(packet[at : at + size], "big")


def understood(packet: bytes, mac: str = MAC) -> Asked | None:
    """What the responder is asked for, None if for nothing. MalformedError: the message is dropped."""
    if len(packet) < 12:
        raise MalformedError
    ours = {
        encoded(TYPES): {PTR, ANY},
        encoded(SERVICE): {PTR, ANY},
        encoded(instance(mac)): {SRV, TXT, ANY},
        encoded(host(mac)): {A, ANY},
    }
    at, names, unicast, suppressed = 12, set(), True, False
    for _ in range(number(packet, 4, 2)):
        name, at = name_at(packet, at)
        kind, qclass = number(packet, at, 2), number(packet, at + 2, 2)
        at += 4
        if kind in ours.get(name, ()) and qclass & 0x7FFF in (IN, ANY):
            names.add(name)
            unicast &= bool(qclass & QU)
    for _ in range(number(packet, 6, 2)):
        name, at = name_at(packet, at)
        kind, rclass, ttl, size = (
            number(packet, at, 2),
            number(packet, at + 2, 2),
            number(packet, at + 4, 4),
            number(packet, at + 8, 2),
        )
        at += 10
        if size >= 2048:
            raise MalformedError
        if name == encoded(SERVICE) and kind == PTR and rclass & 0x7FFF in (IN, ANY) and ttl >= HALF_TTL:
            data, end = name_at(packet, at)
            if end != at + size:
                raise MalformedError
            suppressed |= data == encoded(instance(mac))
        at += size
        if at > len(packet):
            raise MalformedError
    if not names or (names == {encoded(SERVICE)} and suppressed):
        return None
    return Asked(unicast)


def records(message: bytes) -> dict[tuple[str, int], tuple[object, int, bool]]:
    """The records of an answer as scapy reads them: their data, time to live, and whether caches are flushed, by name and type."""
    dns = DNS(message)
    assert (dns.id, dns.qr, dns.aa, dns.opcode, dns.rcode) == (0, 1, 1, 0, 0)
    assert (dns.qdcount, dns.ancount, dns.nscount, dns.arcount) == (0, len(dns.an), 0, 0)
    assert bytes(DNS(message)) == message
    found = {}
    for record in dns.an:
        text = record.rrname.decode().rstrip(".")
        flush = bool(record.cacheflush if hasattr(record, "cacheflush") else record.rclass & FLUSH)
        data: object
        if record.type == SRV:
            data = (record.priority, record.weight, record.port, record.target.decode().rstrip("."))
        elif record.type == PTR:
            data = record.rdata.decode().rstrip(".")
        else:
            data = record.rdata
        found[text, record.type] = (data, record.ttl, flush)
    return found


def expected(ip: str, port: int, mac: str = MAC, goodbye: bool = False) -> dict[tuple[str, int], tuple[object, int, bool]]:
    """The records of the device."""
    long, short = (0, 0) if goodbye else (4500, 120)
    return {
        (SERVICE, PTR): (instance(mac), long, False),
        (TYPES, PTR): (SERVICE, long, False),
        (instance(mac), SRV): ((0, 0, port, host(mac)), short, True),
        (instance(mac), TXT): ([b"txtvers=1", b"device=nacelle", b"contract=0.1"], long, True),
        (host(mac), A): (ip, short, True),
    }
