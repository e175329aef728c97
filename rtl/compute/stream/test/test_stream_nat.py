# SPDX-License-Identifier: Apache-2.0
"""The stream kernel `nat`, judged by scapy: what leaves is the frame that scapy makes with the other address and port, its
checksums computed from nothing."""

from __future__ import annotations

import ipaddress
import os
import random
from dataclasses import dataclass
from typing import Any

import cocotb
import pytest
from nacelle_tb.long import some
from nacelle_tb.streams import cycles, wait_cycles
from nacelle_tb.widths import WIDTHS, at_width
from scapy.layers.inet import ICMP, IP, TCP, UDP, IPOption_NOP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import ARP, Dot1Q, Ether
from scapy.packet import Packet, Raw
from stream_bench import Kernel, run_kernel

BYTES = int(os.environ.get("WIDTH", "64")) // 8
OUTSIDE, HOST, PEER = "203.0.113.7", "10.0.0.2", "198.51.100.9"
PROTOCOLS = {TCP: 6, UDP: 17, ICMP: 1}
ENTRIES = 32
LATENCY = 10  # cycles, from the beat with byte 53
ENABLE, DROP_RX, DROP_TX = 1, 2, 4


@dataclass(frozen=True)
class Entry:
    """A connection of the table."""

    layer: type[Packet]
    inside: str
    inside_port: int
    outside_port: int


def number(ip: str) -> int:
    return int(ipaddress.IPv4Address(ip))


async def put(kernel: Kernel, at: int, entry: Entry) -> None:
    await kernel.write(
        ENTRY=at, INSIDE=number(entry.inside), PORTS=entry.inside_port << 16 | entry.outside_port, PROTOCOL=PROTOCOLS[entry.layer]
    )


async def begin(dut: Any, stall: float = 0.0, control: int = ENABLE) -> tuple[Kernel, list[Entry]]:
    """A kernel with a full table."""
    kernel = await Kernel(dut, "nat", stall).begin()
    outside = random.sample(range(1, 65536), ENTRIES)
    entries = [
        Entry(random.choice([TCP, UDP, ICMP]), f"10.0.{at % 4}.{at}", random.randrange(65536), outside[at]) for at in range(ENTRIES)
    ]
    for at, entry in enumerate(entries):
        await put(kernel, at, entry)
    await kernel.write(OUTSIDE=number(OUTSIDE), HOST=number(HOST), CONTROL=control)
    return kernel, entries


def packet(layer: type[Packet], src: str, sport: int, dst: str, dport: int, payload: bytes, **more: Any) -> bytes:
    """A frame of a connection. Of ICMP the identifier is the port of the side that is asked about."""
    if layer is ICMP:
        inner: Packet = ICMP(type=random.choice([0, 8]), id=sport if sport else dport, seq=random.randrange(65536))
    elif layer is TCP:
        options = random.choice([[], [("MSS", 1460), ("NOP", None), ("WScale", 7)]])
        inner = TCP(
            sport=sport, dport=dport, seq=random.getrandbits(32), flags=random.choice(["S", "PA", "A", "F"]), options=options
        )
    else:
        inner = UDP(sport=sport, dport=dport, **more)
    ip = IP(src=src, dst=dst, ttl=random.randint(1, 255), id=random.randrange(65536), tos=random.randrange(256))
    return bytes(Ether(src="06:00:00:00:00:01", dst="02:00:00:00:00:02") / ip / inner / Raw(payload))


def translated(frame: bytes, **changes: Any) -> bytes:
    """By scapy: with other addresses and ports, and checksums that it computes. Padding stays."""
    ether = Ether(frame)
    ip = ether[IP]
    length = 14 + ip.len
    for name, value in changes.items():
        if name in ("src", "dst"):
            setattr(ip, name, value)
        elif ICMP in ip:
            ip[ICMP].id = value
        else:
            setattr(ip.payload, name, value)
    zero = UDP in ip and ip[UDP].chksum == 0
    del ip.chksum
    del ip.payload.chksum
    if zero:
        ip[UDP].chksum = 0
    return bytes(ether)[:length] + frame[length:]


def from_inside(entry: Entry, payload: bytes, **more: Any) -> tuple[bytes, bytes]:
    frame = packet(entry.layer, entry.inside, entry.inside_port, PEER, 443, payload, **more)
    return frame, translated(frame, src=OUTSIDE, sport=entry.outside_port)


def from_outside(entry: Entry, payload: bytes, **more: Any) -> tuple[bytes, bytes]:
    frame = packet(entry.layer, PEER, 0 if entry.layer is ICMP else 443, OUTSIDE, entry.outside_port, payload, **more)
    return frame, translated(frame, dst=entry.inside, dport=entry.inside_port)


def payload() -> bytes:
    return random.randbytes(random.choice([0, 1, 2, 7, 18, 100, random.randrange(1400)]))


def others() -> list[bytes]:
    """Frames that are nobody's connection, or not translated."""
    ether = Ether(src="06:00:00:00:00:01", dst="02:00:00:00:00:02")
    entry_like = {"src": "10.0.0.0", "dst": OUTSIDE}
    whole = IP(**entry_like) / UDP(sport=1, dport=2) / Raw(bytes(100))
    return [
        bytes(ether / IPv6() / UDP() / Raw(bytes(20))),
        bytes(ether / Dot1Q(vlan=5) / whole),
        bytes(ether / IP(**entry_like, options=[IPOption_NOP()] * 4) / UDP() / Raw(bytes(20))),
        bytes(ether / IP(**entry_like, flags="MF") / UDP() / Raw(bytes(20))),
        bytes(ether / IP(**entry_like, frag=3) / Raw(bytes(40))),
        bytes(ether / IP(**entry_like) / ICMP(type=3, code=1) / Raw(bytes(40))),
        bytes(ether / IP(**entry_like, proto=47) / Raw(bytes(40))),
        bytes(ether / IP(**entry_like) / TCP())[:50],
        bytes(ether / Raw(bytes(46))),
        bytes(14),
    ]


@cocotb.test()
@cocotb.parametrize(stall=[0.0, 0.4])
async def connections_are_translated_both_ways(dut, stall: float) -> None:
    kernel, entries = await begin(dut, stall)
    rx, tx = [], []
    for _ in range(250):
        sent, wanted = from_inside(random.choice(entries), payload())
        kernel.tx_in.send(sent)
        tx.append(wanted)
        sent, wanted = from_outside(random.choice(entries), payload())
        kernel.rx_in.send(sent)
        rx.append(wanted)
    for wanted in tx:
        assert (await kernel.tx_out.recv()).hex() == wanted.hex()
    for wanted in rx:
        assert (await kernel.rx_out.recv()).hex() == wanted.hex()
    await wait_cycles(dut, 20)
    assert await kernel.read("TRANSLATED_TX") == await kernel.read("TRANSLATED_RX") == 250
    assert await kernel.read("UNKNOWN_TX") == await kernel.read("UNKNOWN_RX") == 0


@cocotb.test()
async def checksums_at_their_limits(dut) -> None:
    """UDP without a checksum has none afterwards, one that becomes 0 is sent as 0xffff; wrong ones stay wrong by as much."""
    kernel, _ = await begin(dut)
    entry = Entry(UDP, HOST, 1000, 0xFFFF)
    await put(kernel, 0, entry)
    for round_ in range(400):
        sent, wanted = (from_inside, from_outside)[round_ % 2](entry, round_.to_bytes(2, "big"))
        source, sink = ((kernel.tx_in, kernel.tx_out), (kernel.rx_in, kernel.rx_out))[round_ % 2]
        if round_ < 200:
            source.send(sent)
            assert await sink.recv() == wanted
            continue
        # The payload's word makes the checksum 0xffff or what is next to it.
        ether = Ether(wanted)
        word = (int.from_bytes(bytes(ether[UDP].payload), "big") + ether[UDP].chksum + round_ % 5 - 2) % 0xFFFF
        sent, wanted = (from_inside, from_outside)[round_ % 2](entry, word.to_bytes(2, "big"))
        ttl_of = Ether(wanted)[IP].chksum
        assert ttl_of
        source.send(sent)
        assert await sink.recv() == wanted
    sent, wanted = from_inside(entry, bytes(30), chksum=0)
    kernel.tx_in.send(sent)
    got = await kernel.tx_out.recv()
    assert got == wanted and Ether(got)[UDP].chksum == 0
    sent, wanted = from_inside(entry, bytes(30))
    wrong = bytearray(sent)
    wrong[60] ^= 0x40  # of the payload
    kernel.tx_in.send(bytes(wrong))
    got = await kernel.tx_out.recv()
    fresh = Ether(got)
    del fresh[UDP].chksum
    assert Ether(got)[UDP].chksum != Ether(bytes(fresh))[UDP].chksum, "a wrong checksum must not become right"


@cocotb.test()
async def arp_of_one_host(dut) -> None:
    kernel, _ = await begin(dut)
    ether = Ether(src="06:00:00:00:00:01", dst="ff:ff:ff:ff:ff:ff")
    for op in (1, 2):
        asked = ether / ARP(op=op, psrc=HOST, pdst=PEER, hwsrc="06:00:00:00:00:01") / Raw(bytes(18))
        kernel.tx_in.send(bytes(asked))
        asked[ARP].psrc = OUTSIDE
        assert await kernel.tx_out.recv() == bytes(asked)
        answer = ether / ARP(op=op, psrc=PEER, pdst=OUTSIDE)
        kernel.rx_in.send(bytes(answer))
        answer[ARP].pdst = HOST
        assert await kernel.rx_out.recv() == bytes(answer)
    other = bytes(ether / ARP(op=1, psrc="10.9.9.9", pdst=PEER))
    kernel.tx_in.send(other)
    assert await kernel.tx_out.recv() == other
    other = bytes(ether / ARP(op=1, psrc=PEER, pdst="203.0.113.8"))
    kernel.rx_in.send(other)
    assert await kernel.rx_out.recv() == other


@cocotb.test()
@cocotb.parametrize(drop=[False, True])
async def what_it_does_not_know(dut, drop: bool) -> None:
    """It passes unchanged, or is dropped, whichever the operator wants; connections pass in between."""
    kernel, entries = await begin(dut, 0.2, ENABLE | (DROP_RX | DROP_TX) * drop)
    strangers = [Entry(entry.layer, "10.0.9.9", entry.inside_port, 0) for entry in entries[:5]]
    strangers += [
        Entry(UDP if entry.layer is TCP else TCP, entry.inside, entry.inside_port, entry.outside_port) for entry in entries
    ]
    known = {(entry.layer, entry.inside, entry.inside_port) for entry in entries}
    frames = others() + [
        packet(entry.layer, entry.inside, entry.inside_port, PEER, 443, payload())
        for entry in strangers
        if (entry.layer, entry.inside, entry.inside_port) not in known
    ]
    wanted = []
    for frame in frames:
        kernel.tx_in.send(frame)
        wanted.append((frame, drop))
        sent, changed = from_inside(random.choice(entries), payload())
        kernel.tx_in.send(sent)
        wanted.append((changed, False))
        kernel.rx_in.send(frame)
    await kernel.tx_in.drained()
    await kernel.rx_in.drained()
    await wait_cycles(dut, 400)
    assert [(bytes(frame), bool(user)) for frame, user in kernel.tx_out.packets] == wanted
    assert [(bytes(frame), bool(user)) for frame, user in kernel.rx_out.packets] == [(frame, drop) for frame in frames]
    assert await kernel.read("UNKNOWN_TX") == await kernel.read("UNKNOWN_RX") == len(frames)


@cocotb.test()
async def off_it_changes_nothing(dut) -> None:
    kernel, entries = await begin(dut, control=0)
    frames = [*others(), *(from_inside(entry, payload())[0] for entry in entries)]
    for frame in frames:
        kernel.tx_in.send(frame)
    for frame in frames:
        assert await kernel.tx_out.recv() == frame
    assert await kernel.read("UNKNOWN_TX") == await kernel.read("TRANSLATED_TX") == 0


@cocotb.test()
async def an_entry_changes_at_once(dut) -> None:
    """While frames of it pass without a gap: each is translated as before, as after, or is unknown. Of two entries that say
    something about a frame the first one counts."""
    kernel, _ = await begin(dut)
    old = Entry(UDP, HOST, 77, 4001)
    new = Entry(UDP, HOST, 77, 4002)
    sent, before = from_inside(old, bytes(20))
    after = translated(sent, src=OUTSIDE, sport=4002)
    allowed = {before, after, sent}
    await put(kernel, 0, old)

    async def flood() -> None:
        for _ in range(600):
            kernel.tx_in.send(sent)
        await kernel.tx_in.drained()

    task = cocotb.start_soon(flood())
    for at in range(40):
        await put(kernel, 0, (new, old)[at % 2])
    await task
    await wait_cycles(dut, 100)
    seen = {bytes(frame) for frame, _ in kernel.tx_out.packets}
    assert {before, after} <= seen <= allowed
    kernel.tx_out.packets.clear()
    await put(kernel, 0, old)
    await put(kernel, 5, new)
    kernel.tx_in.send(sent)
    assert await kernel.tx_out.recv() == before
    await kernel.write(ENTRY=0, PROTOCOL=0)
    await wait_cycles(dut, 10)
    kernel.tx_in.send(sent)
    assert await kernel.tx_out.recv() == after


@cocotb.test()
async def registers(dut) -> None:
    """What is written is read; an entry that there is not reads as 0; a protocol that is not translated is none."""
    kernel, entries = await begin(dut)
    assert await kernel.read("ENTRIES") == ENTRIES
    for at, entry in enumerate(entries):
        await kernel.write(ENTRY=at)
        found = [await kernel.read(name) for name in ("INSIDE", "PORTS", "PROTOCOL")]
        assert found == [number(entry.inside), entry.inside_port << 16 | entry.outside_port, PROTOCOLS[entry.layer]]
    await kernel.write(ENTRY=3, PROTOCOL=47)
    assert await kernel.read("PROTOCOL") == 0 and await kernel.read("INSIDE") == number(entries[3].inside)
    await kernel.write(ENTRY=3)
    assert [await kernel.read(name) for name in ("INSIDE", "PORTS", "PROTOCOL")] == [0, 0, 0]
    assert (await kernel.ctrl.read(0x180))[1] and await kernel.ctrl.write(0x11C, 1)


@cocotb.test()
async def line_rate(dut) -> None:
    """No gap between frames, for frames of one beat and of many, and the latency that nat_path says."""
    kernel, entries = await begin(dut)
    first = cocotb.start_soon(cycles(dut, ("tx_in_tvalid", "tx_in_tready"), "tx_out_tvalid"))
    kernel.tx_in.send(bytes(60))
    assert await first == -(-54 // BYTES) - 1 + LATENCY
    await kernel.tx_out.recv()
    lengths = [60] * 100 + [1500] * 10 + [60, 1500] * 10
    frames = []
    for length in lengths:
        entry = random.choice([entry for entry in entries if entry.layer is UDP])
        frame, _ = from_inside(entry, bytes(length - 42))
        frames.append(frame)
        kernel.tx_in.send(frame)
    await kernel.tx_out._wait(lambda: len(kernel.tx_out.packets) == len(frames), 20_000)
    spans = list(kernel.tx_out.spans)
    beats = sum(-(-len(frame) // BYTES) for frame in frames)
    assert spans[-1][1] - spans[0][0] + 1 == beats


@pytest.mark.parametrize("width", some(WIDTHS))
def test_stream_nat(width: int) -> None:
    run_kernel("nat", __file__, width, at_width(width, "both_ways|line_rate|does_not_know|arp"))
