# SPDX-License-Identifier: Apache-2.0
"""Segmentation: frames of up to 64 KiB become TCP segments, as scapy makes them; headers that are none cost their frame."""

import random
from dataclasses import dataclass

import cocotb
import pytest
from nacelle_tb.bench import run
from nacelle_tb.long import alternately, rounds, some
from nacelle_tb.planes import network_card
from nacelle_tb.streams import wait_cycles
from nacelle_tb.svtypes import constant
from nacelle_tb.virtio import (
    F_CSUM,
    F_EVENT_IDX,
    F_HOST_ECN,
    F_HOST_TSO4,
    F_HOST_TSO6,
    F_HOST_UFO,
    GSO_ECN,
    GSO_TCPV4,
    GSO_TCPV6,
    GSO_UDP,
    NEEDS_CSUM,
    Buffer,
    header,
)
from nacelle_tb.widths import WIDTHS, at_width
from net_bench import MAX_FRAME, NetBench, features, params
from scapy.layers.inet import IP, TCP, UDP, IPOption_NOP
from scapy.layers.inet6 import IPv6, IPv6ExtHdrHopByHop
from scapy.layers.l2 import Dot1AD, Dot1Q, Ether
from scapy.packet import Packet

MIN_SIZE = 8
ALL = features(F_CSUM, F_HOST_TSO4, F_HOST_TSO6, F_HOST_ECN)
FIN, PSH, CWR = 0x01, 0x08, 0x80


@dataclass
class Stream:
    """What a driver hands over as one frame."""

    headers: Packet  # up to TCP
    payload: bytes
    size: int  # gso_size
    ipv6: bool

    @classmethod
    def random(cls, size: int | None = None, length: int | None = None, ipv6: bool | None = None, plain: bool = False) -> "Stream":
        """Any headers; `plain`: without tags and options, as most are."""
        ipv6 = random.random() < 0.4 if ipv6 is None else ipv6
        size = size or random.choice(
            [MIN_SIZE, 64, 536, 1448, 1460, 8948, random.randint(MIN_SIZE, 300), random.randint(MIN_SIZE, 8800)]
        )
        length = length or random.choice(
            [1, size - 1, size, size + 1, 2 * size, random.randint(1, 12 * size), random.randint(1, 5 * size)]
        )
        packet: Packet = Ether(src="02:00:00:00:01:02", dst="02:00:00:00:01:03")
        tags = 0 if plain else random.choice([0, 0, 1, 2])
        if tags == 2:
            packet /= Dot1AD(vlan=7)
        if tags:
            packet /= Dot1Q(vlan=5)
        if ipv6:
            packet /= IPv6(
                src="fd00::1", dst=f"fd00::{random.getrandbits(16):x}", tc=random.getrandbits(8), fl=random.getrandbits(20)
            )
        else:
            options = [] if plain else [IPOption_NOP()] * random.choice([0, 0, 4, 40])
            packet /= IP(
                src="10.0.0.1", dst=f"10.0.{random.getrandbits(8)}.2", options=options, id=random.getrandbits(16),
                flags=random.choice(["", "DF"]), tos=random.getrandbits(8),
            )  # fmt: skip
        words = 3 if plain else random.choice([0, 3, 10])
        options = [("NOP", None), ("NOP", None), ("Timestamp", (random.getrandbits(32), 5))] if words else []
        options += [("NOP", None)] * (4 * words - 12)
        packet /= TCP(
            sport=7, dport=9, seq=random.choice([random.getrandbits(32), 2**32 - 1]), ack=random.getrandbits(32),
            flags=0x10 | random.choice([0, FIN, PSH, CWR, FIN | PSH | CWR, 0x40]), options=options, urgptr=random.getrandbits(16),
        )  # fmt: skip
        size = min(size, MAX_FRAME - len(bytes(packet)))
        return cls(packet, random.randbytes(max(1, min(length, 65536))), size, ipv6)

    @property
    def tcp_at(self) -> int:
        """Byte of the TCP header."""
        return len(bytes(self.headers)) - len(bytes(self.headers[TCP]))

    def frame(self) -> bytes:
        """All of it, with lengths and a checksum that mean nothing: the device has to find its own."""
        headers = bytearray(bytes(self.headers))
        ip = len(headers) - len(bytes(self.headers[IPv6 if self.ipv6 else IP]))
        for at, count in ((self.tcp_at + 16, 2), *(((ip + 4, 2),) if self.ipv6 else ((ip + 2, 2), (ip + 10, 2)))):
            headers[at : at + count] = random.randbytes(count)
        return bytes(headers) + self.payload

    def header(self, **other: int) -> bytes:
        """virtio_net_hdr; hdr_len is but a hint."""
        fields = {
            "flags": NEEDS_CSUM, "gso_type": GSO_TCPV6 if self.ipv6 else GSO_TCPV4, "hdr_len": random.getrandbits(16),
            "gso_size": self.size, "csum_start": self.tcp_at, "csum_offset": 16,
        }  # fmt: skip
        if int(self.headers[TCP].flags) & CWR:
            fields["gso_type"] |= GSO_ECN
        return header(**fields | other)

    def segments(self) -> list[bytes]:
        """The frames that it becomes, with lengths and checksums of scapy."""
        found = []
        count = -(-len(self.payload) // self.size)
        for i in range(count):
            packet = self.headers.copy()
            tcp = packet[TCP]
            tcp.seq = (tcp.seq + i * self.size) & 0xFFFFFFFF
            flags = int(tcp.flags)
            tcp.flags = flags & ~((FIN | PSH) * (i < count - 1) | CWR * (i > 0))
            if not self.ipv6:
                packet[IP].id = (packet[IP].id + i) & 0xFFFF
            frame = bytearray(bytes(packet / self.payload[i * self.size : (i + 1) * self.size]))
            at = self.tcp_at + 16
            if frame[at : at + 2] == b"\0\0":  # the other zero of one's complement, which the device sends
                frame[at : at + 2] = b"\xff\xff"
            found.append(bytes(frame))
        return found

    def give(self, bench: NetBench, number: int = 1, cuts: int = 0, direct: int | None = None) -> None:
        """Makes it available."""
        bench.transmit(self.frame(), number, cuts, direct, self.header())


async def compare(bench: NetBench, stream: Stream, name: object = "") -> None:
    """Takes its segments from the network."""
    data = b""
    for i, expected in enumerate(stream.segments()):
        got = await bench.tx.recv(60_000)
        assert got == expected, f"segment {i} of {name}: {got[:150].hex()}\n{expected[:150].hex()}"
        data += got[len(bytes(stream.headers)) :]
    assert data == stream.payload


@cocotb.test()
@cocotb.parametrize(stall=alternately([0.0, 0.3]))
async def frames_become_segments(dut, stall: float) -> None:
    """Any headers, any lengths, in any buffers; between frames that stay as they are."""
    bench = NetBench(dut, stall=stall, tx_stall=stall, wanted=ALL, scatter=True)
    await bench.begin()
    for round_ in range(8):
        sent: list[Stream | bytes] = []
        for _ in range(6):
            if random.random() < 0.3:
                sent.append(random.randbytes(random.choice([60, 1514, random.randint(14, 200)])))
                bench.transmit(sent[-1], cuts=random.choice([0, 2]))
            else:
                sent.append(Stream.random())
                sent[-1].give(bench, 1, random.choice([0, 1, 2, 8]), random.choice([None, 0]))
        bench.publish(1)
        for i, one in enumerate(sent):
            if isinstance(one, Stream):
                await compare(bench, one, (round_, i, one.headers, one.size, len(one.payload)))
            else:
                assert await bench.tx.recv() == one, f"frame {i} of round {round_}"
        await bench.reap(1, len(sent))
    await wait_cycles(dut, 200)
    assert not bench.tx.packets and await bench.counter("TX_HEADER") == 0


@cocotb.test()
async def every_lane(dut) -> None:
    """Payloads that begin and end in each lane of a beat, sizes of about one and two beats."""
    bench = NetBench(dut, wanted=ALL, latency=(1, 9))
    await bench.begin()
    step = bench.tx.bytes_per_beat
    streams = [Stream.random(size=size, length=4 * size + random.randint(1, size), plain=True)
               for size in range(max(MIN_SIZE, step - 4), max(MIN_SIZE, step - 4) + min(step, 24) + 8)]  # fmt: skip
    for stream in streams:
        stream.give(bench)
        bench.publish(1)
        await compare(bench, stream, stream.size)
        await bench.reap(1)


@cocotb.test()
@cocotb.parametrize(buffers=[1, 200])
async def the_longest_frame(dut, buffers: int) -> None:
    """64 KiB of payload, in one buffer and in as many as a chain can have; nothing of it needs to be stored whole."""
    bench = NetBench(dut, wanted=ALL, size=256)
    await bench.begin()
    for ipv6 in (False, True):
        stream = Stream.random(size=random.choice([1448, 8900]), length=65536 - random.randint(0, 1), ipv6=ipv6)
        stream.give(bench, cuts=buffers - 1)
        bench.publish(1)
        await compare(bench, stream)
        await bench.reap(1)
    Stream(stream.headers, bytes(65536 + 142 - len(bytes(stream.headers)) + 1), 1448, True).give(bench, cuts=2)
    bench.transmit(b"next" * 20)
    bench.publish(1)
    assert await bench.tx.recv() == b"next" * 20
    await bench.reap(1, 2)
    assert await bench.counter("TX_LONG") == 1 and not bench.tx.packets


@cocotb.test()
async def frames_that_are_too_long_are_dropped(dut) -> None:
    """Of those that are not to be cut: more than MAX_FRAME, up to what a frame to be cut may have, and more than that."""
    bench = NetBench(dut, wanted=ALL)
    await bench.begin()
    for length in (MAX_FRAME + 1, MAX_FRAME + 100, 40_000, 65_678, 65_679, 200_000):
        bench.transmit(bytes(length), cuts=random.randint(0, 3))
        frame = random.randbytes(random.choice([MAX_FRAME, 60]))
        bench.transmit(frame)
        bench.publish(1)
        assert await bench.tx.recv(60_000) == frame
        await bench.reap(1, 2)
    assert await bench.counter("TX_LONG") == 6 and await bench.counter("TX") == 6 and not bench.tx.packets


def hostile() -> list[tuple[str, bytes, bytes]]:
    """(what is wrong, header, frame)."""
    found = []

    def of(name: str, stream: Stream, change: dict[int, int] | None = None, cut: int | None = None, **fields: int) -> None:
        frame = bytearray(stream.frame())
        for at, value in (change or {}).items():
            frame[at] = value
        found.append((name, stream.header(**fields), bytes(frame[:cut])))

    def v4() -> Stream:
        return Stream.random(1448, 5000, ipv6=False, plain=True)

    def v6() -> Stream:
        return Stream.random(1448, 5000, ipv6=True, plain=True)

    of("gso_size 0", v4(), gso_size=0)
    of("gso_size below the least", v4(), gso_size=MIN_SIZE - 1)
    of("segments longer than the longest frame", v4(), gso_size=MAX_FRAME - 65)
    of("gso_size 65535", v6(), gso_size=65535)
    of("no checksum asked for", v4(), flags=0)
    of("csum_start 0", v4(), csum_start=0)
    of("csum_start beyond the frame", v4(), csum_start=65535)
    of("csum_start in the options", v4(), csum_start=38)
    of("csum_offset of UDP", v4(), csum_offset=6)
    of("TCPV6 over IPv4", v4(), gso_type=GSO_TCPV6)
    of("TCPV4 over IPv6", v6(), gso_type=GSO_TCPV4)
    of("UDP", v4(), gso_type=GSO_UDP)
    of("a type that there is not", v4(), gso_type=0x41)
    of("ECN alone", v4(), gso_type=GSO_ECN)
    of("version 5", v4(), {14: 0x55})
    of("IPv4 header of 16 bytes", v4(), {14: 0x44})
    of("IPv4 header of 60 bytes, where there is none", v4(), {14: 0x4F})
    of("UDP in IPv4", v4(), {23: 17})
    of("more fragments", v4(), {20: 0x20})
    of("a fragment", v4(), {21: 1})
    of("TCP header of 16 bytes", v4(), {46: 0x40})
    of("TCP header of 0 bytes", v6(), {66: 0})
    of("version 4 in IPv6", v6(), {14: 0x45})
    of("extension header", v6(), {20: 0})
    of("another EtherType", v4(), {12: 0x88, 13: 0xB5})
    of("LLC", v4(), {12: 0, 13: 100})
    tagged = v4()
    ether = bytes(tagged.frame())
    found.append(("three tags", tagged.header(csum_start=46), ether[:12] + bytes.fromhex("810000058100000581000005") + ether[12:]))
    for cut in (14, 20, 34, 40, 53, 60, 65, 66):
        of(f"a frame of {cut} bytes", v4(), cut=cut)
    for cut in (54, 62, 73, 86):
        of(f"an IPv6 frame of {cut} bytes", v6(), cut=cut)
    of("headers of 126 bytes in a frame of 100", v4(), {46: 0xF0, 14: 0x4F}, cut=100)
    packet = Ether() / IPv6(src="fd00::1", dst="fd00::2") / IPv6ExtHdrHopByHop() / TCP() / bytes(3000)
    found.append(("an extension header before TCP", header(NEEDS_CSUM, GSO_TCPV6, 0, 1000, 62, 16), bytes(packet)))
    packet = Ether() / IP() / UDP() / bytes(3000)
    found.append(("UDP", header(NEEDS_CSUM, GSO_TCPV4, 0, 1000, 34, 16), bytes(packet)))
    return found


@cocotb.test()
async def headers_that_cannot_be_cost_their_frame(dut) -> None:
    """It is given back and counted; nothing of it is sent, and both queues go on."""
    bench = NetBench(dut, wanted=ALL, latency=(1, 20))
    await bench.begin()
    for number, (what, head, frame) in enumerate(hostile()):
        bench.transmit(frame, 1, random.choice([0, 3]), head=head)
        good = Stream.random(1000, 2500)
        good.give(bench, 1)
        bench.publish(1)
        await compare(bench, good, f"after {what}")
        other = random.randbytes(200)
        bench.transmit(other, 3)
        bench.publish(3)
        assert await bench.tx.recv() == other, what
        await bench.reap(1, 2)
        await bench.reap(3)
        assert await bench.counter("TX_HEADER") == number + 1, what
    for _ in range(150):  # anything at all
        size = random.choice([random.randbytes(2), b"\x64\0"])
        head = bytes([NEEDS_CSUM, random.choice([1, 4]), *random.randbytes(2), *size, random.choice([34, 54]), 0, 16, 0, 0, 0])
        frame = bytearray(random.randbytes(random.randint(14, 600)))
        if random.random() < 0.8:
            frame[12:15] = random.choice([b"\x08\0\x45", b"\x86\xdd\x60", b"\x81\0\x45"])
        bench.transmit(bytes(frame), 1, head=head)
        bench.publish(1)
        await bench.reap(1)
    await wait_cycles(dut, 500)
    bench.tx.packets.clear()
    bench.tx.spans.clear()
    good = Stream.random(1000, 2500)
    good.give(bench, 1)
    bench.publish(1)
    await compare(bench, good)


@cocotb.test()
async def only_what_was_negotiated(dut) -> None:
    """Each feature by itself; without VIRTIO_NET_F_CSUM there are none (5.1.3.1)."""
    bench = NetBench(dut, wanted=features(F_CSUM, F_HOST_TSO4))
    await bench.begin()
    offered = await bench.pci.offered()
    assert all(offered >> bit & 1 for bit in (F_HOST_TSO4, F_HOST_TSO6, F_HOST_ECN)) and not offered >> F_HOST_UFO & 1
    for wrong in (features(F_HOST_TSO4), features(F_HOST_TSO6), features(F_CSUM, F_HOST_ECN)):
        await bench.pci.reset()
        assert not await bench.pci.negotiate(wrong)
    refused = 0
    for wanted in (features(F_CSUM, F_HOST_TSO4), features(F_CSUM, F_HOST_TSO6), features(F_CSUM, F_HOST_TSO4, F_HOST_ECN)):
        bench.wanted = wanted
        await bench.initialize()
        for ipv6 in (False, True):
            for ecn in (False, True):
                stream = Stream.random(500, 1200, ipv6=ipv6, plain=True)
                stream.headers[TCP].flags = CWR if ecn else 0
                stream.give(bench)
                bench.publish(1)
                if wanted >> (F_HOST_TSO6 if ipv6 else F_HOST_TSO4) & 1 and (not ecn or wanted >> F_HOST_ECN & 1):
                    await compare(bench, stream, (wanted, ipv6, ecn))
                else:
                    refused += 1
                await bench.reap(1)
        assert await bench.counter("TX_HEADER") == refused


@cocotb.test()
async def queues_take_turns_by_chain(dut) -> None:
    """Long frames of one queue, small ones of the other: the first of these waits for few long ones, the others for one each."""
    bench = NetBench(dut, wanted=ALL)
    await bench.begin()
    long_ = [Stream.random(1448, 15_000, ipv6=False, plain=True) for _ in range(12)]
    small = [random.randbytes(random.randint(60, 300)) for _ in range(6)]
    for stream in long_:
        stream.give(bench, 1)
    for frame in small:
        bench.transmit(frame, 3)
    bench.publish(1)
    bench.publish(3)
    expected = [segment for stream in long_ for segment in stream.segments()]
    each = len(expected) // len(long_)
    before, most = 0, 5 * each  # segments since the last small frame: its ring is read behind data that is asked for already
    while expected or small:
        got = await bench.tx.recv()
        if small and got == small[0]:
            small.pop(0)
            before, most = 0, each
        else:
            assert got == expected.pop(0)
            before += 1
            assert before <= most or not small
    await wait_cycles(dut, 20)  # the last one is counted
    assert await bench.counter("TX", 0) == len(long_) * each and await bench.counter("TX", 1) == 6


@cocotb.test()
@cocotb.parametrize(by_function=[False, True])
async def a_reset_in_the_middle(dut, by_function: bool) -> None:
    """The segment that is leaving is finished, and no other one of the frame follows; afterwards all is as new."""
    bench = NetBench(dut, wanted=ALL, latency=(1, 100))
    await bench.begin()
    for round_ in range(rounds(6)):
        stream = Stream.random(random.choice([MIN_SIZE, 100, 1448]), 20_000, ipv6=False, plain=True)
        stream.give(bench, 1, cuts=random.choice([0, 3]))
        bench.publish(1)
        await wait_cycles(dut, random.choice([300, 400, 500, 1000]))
        if by_function:
            await bench.function_reset()
        else:
            await bench.pci.reset()
        await wait_cycles(dut, 20)
        expected = stream.segments()
        count = len(bench.tx.packets)
        assert count < len(expected) or stream.size == 1448
        for i in range(count):
            assert await bench.tx.recv() == expected[i], f"segment {i} of round {round_}"
        await wait_cycles(dut, 300)
        assert not bench.tx.packets
        await bench.initialize()
        stream = Stream.random(700, 3000)
        stream.give(bench)
        bench.publish(1)
        await compare(bench, stream)


@cocotb.test()
async def memory_that_fails_in_the_middle(dut) -> None:
    """What could be read may leave, as whole segments; the queue stops, the other one goes on."""
    bench = NetBench(dut, wanted=ALL, latency=(1, 20))
    await bench.begin()
    stream = Stream.random(1000, 9000, ipv6=False, plain=True)
    data = stream.header() + stream.frame()
    at = bench.heap.take(4000)
    bench.memory.write(at, data[:4000])
    bench.queues[1].add([Buffer(at, 4000), Buffer(1 << 40, len(data) - 4000)])
    bench.publish(1)
    await wait_cycles(dut, 3000)
    assert await bench.fault(1) == constant("virtio_pkg::VIRTQ_MEMORY") and await bench.counter("TX_MEMORY") == 1
    expected = stream.segments()
    assert 0 < len(bench.tx.packets) < 5
    for i in range(len(bench.tx.packets)):
        assert await bench.tx.recv() == expected[i]
    other = Stream.random(300, 1000)
    other.give(bench, 3)
    bench.publish(3)
    await compare(bench, other)
    assert not bench.queues[1].pending


@cocotb.test()
async def a_network_that_stops_loses_no_segment(dut) -> None:
    bench = NetBench(dut, wanted=ALL)
    await bench.begin()
    bench.tx.stall = 1.0
    streams = [Stream.random(1448, 30_000) for _ in range(3)]
    for stream in streams:
        stream.give(bench)
    bench.publish(1)
    await wait_cycles(dut, 4000)
    bench.tx.stall = 0.0
    for stream in streams:
        await compare(bench, stream)


# ---- figures ----


@cocotb.test()
@cocotb.parametrize(size=[88, 536, 1448, 8948], latency=[155])
async def cycles_a_segment(dut, size: int, latency: int) -> None:
    """Frames of about 64 KiB (of small segments 16 KiB), in three buffers each: from segment to segment, over several frames."""
    bench = NetBench(dut, latency=latency, size=256, wanted=ALL | 1 << F_EVENT_IDX)
    await bench.begin()
    stream = Stream.random(size, (16_000 if size < 500 else 65_000) // size * size, ipv6=False, plain=True)
    frames = 4
    for _ in range(frames):
        stream.give(bench, cuts=2, direct=0)
    bench.publish(1)
    count = len(stream.payload) // size
    ends: list[int] = []
    await bench.tx._wait(lambda: len(bench.tx.packets) == frames * count, 100_000)
    ends = [last for _, last in bench.tx.spans]
    inside = (ends[2 * count - 2] - ends[count + 1]) / (count - 3)
    overall = (ends[-1] - ends[count - 1]) / ((frames - 1) * count)
    length = len(bytes(stream.headers)) + size
    beats = -(-length // bench.tx.bytes_per_beat)
    dut._log.info("FIGURE %d bits, %d bytes (%d beats), latency %d: %.2f cycles a segment, with all that a frame costs %.2f",
                  len(dut.tx_tdata), length, beats, latency, inside, overall)  # fmt: skip
    if size >= 536:
        assert inside <= beats + 2.5  # to hold the headers' end, and what a buffer's end costs
    if bench.tx.bytes_per_beat == 64 and size >= 536:
        assert overall <= (length + 24) / 50  # 100 Gbit/s at 250 MHz, with preamble, FCS and gap


@pytest.mark.parametrize("width", some(WIDTHS))
def test_segmentation(width: int) -> None:
    env = at_width(width, "become_segments|every_lane|longest|cycles_a")
    run("virtio_net", __file__, params=params(width), ports=network_card(width), random_state=True, env=env)
