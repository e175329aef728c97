# SPDX-License-Identifier: Apache-2.0
"""The plane of datagrams with two sockets: what comes and goes, by scapy; what a kernel may not do; and that a kernel that does not
read, floods, stops in the middle of a packet or is cut off costs nobody else a cycle."""

from __future__ import annotations

import os
import random
import struct as bytes_struct
from collections import deque
from typing import Any

import cocotb
import pytest
from cocotb.triggers import FallingEdge, RisingEdge
from nacelle_tb.bench import AxisSink as AxisSinkPort
from nacelle_tb.bench import AxisSource as AxisSourcePort
from nacelle_tb.bench import Plain, Several, Sink, Source, run
from nacelle_tb.long import alternately, some
from nacelle_tb.record import FRAME_RX, mapped, number, record
from nacelle_tb.streams import AxisSink, AxisSource, StreamSink, StreamSource, start, wait_cycles
from nacelle_tb.svtypes import constant, struct
from nacelle_tb.widths import at_width
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import Raw

WIDTH = int(os.environ.get("WIDTH", "512"))
BYTES = WIDTH // 8
SOCKETS = 2
TX, LOCAL, SETTINGS = "packet_pkg::frame_tx_t", "packet_pkg::local_addr_t", "datagrams_pkg::datagram_settings_t"
HEADER = bytes_struct.Struct(">BBHHHH6s16s16s16s")  # datagrams_pkg::datagram_t
KIND, LONGEST, WAITING, ANSWERS = (
    constant(f"datagrams_pkg::{name}") for name in ("KIND_DATAGRAM", "DATAGRAM_BYTES", "WAITING", "ANSWERS")
)  # fmt: skip
TO_NOBODY, TO_SENDERS, TO_NETWORK = range(3)
COUNTERS = ("received", "drop_room", "drop_length", "discarded", "sent", "malformed", "refused", "unresolved")
MAC, IP_ADDRESS = "02:00:00:00:00:01", "10.0.0.1"
PORTS = (7000, 7001)
CLOCK_HZ = 50_000  # of 500 a try: 100 cycles
RETRY, TRIES = CLOCK_HZ // 500, 64
STORE = 16384  # bytes, of datagram_receive
LENGTHS = [0, 1, 7, 8, 9, 31, 32, 63, 64, 65, 100, 127, 128, 129, 1472, LONGEST - 1, LONGEST]


def peer(i: int) -> tuple[str, str, int]:
    """MAC address, address and port of a host."""
    return f"02:00:00:00:{i >> 8:02x}:{i & 255:02x}", f"10.0.{i >> 8}.{i & 255}", 1024 + i


def address(ip: str) -> bytes:
    """As a header has it."""
    return mapped(ip).to_bytes(16, "big")


def packet(ip: str, port: int, payload: bytes, answers: int = 0, kind: int = KIND, length: int | None = None) -> bytes:
    """As a kernel sends it. What is ignored is random."""
    noise = random.randbytes
    head = HEADER.pack(
        kind, noise(1)[0], len(payload) if length is None else length, port, random.randrange(1 << 16), answers, noise(6),
        address(ip), noise(16), noise(16),
    )  # fmt: skip
    return head + payload


class Bench:
    """The plane, its neighbour, and the kernels."""

    def __init__(self, dut: Any, stall: float = 0.0) -> None:
        self.dut = dut
        self.frame = StreamSource(dut, "frame", FRAME_RX, stall)
        self.payload = AxisSource(dut, "payload", stall)
        self.to_kernel = [AxisSink(dut, f"to_kernel{i}", stall) for i in range(SOCKETS)]
        self.from_kernel = [AxisSource(dut, f"from_kernel{i}", stall, noise=True) for i in range(SOCKETS)]
        self.tx = StreamSink(dut, "tx", TX, stall)
        self.tx_payload = AxisSink(dut, "tx_payload", stall)
        self.query = StreamSink(dut, "query", "packet_pkg::ip_addr_t", stall)
        self.answer = StreamSource(dut, "answer", "packet_pkg::arp_answer_t", stall)
        self.settings: list[dict[str, int]] = [{} for _ in range(SOCKETS)]
        self.known: dict[int, int] = {}  # MAC addresses
        self.asked: list[int] = []
        self.wire: deque[tuple[int, bytes]] = deque()  # records and payloads to come
        self.longest = 0  # cycles that payload waited in a row

    async def start(self, **settings: int) -> Bench:
        self.dut.local_addr.value = struct(LOCAL).pack(
            enable=1, mac=number(MAC), ip=mapped(IP_ADDRESS) & 0xFFFFFFFF, prefix_length=16
        )
        self.dut.off.value, self.dut.elapsed.value, self.dut.counter_at.value = 0, 1, 0
        for i in range(SOCKETS):
            self.set(i, **{"enable": 1, "port": PORTS[i], "to": TO_NETWORK, **settings})
        await start(self.dut, 3)
        cocotb.start_soon(self._come())
        cocotb.start_soon(self._resolve())
        cocotb.start_soon(self._watch())
        await wait_cycles(self.dut, 12)
        return self

    def set(self, socket: int, **settings: int) -> None:
        self.settings[socket] |= settings
        words = [struct(SETTINGS).pack(each) for each in self.settings]
        self.dut.settings.value = sum(word << i * struct(SETTINGS).width for i, word in enumerate(words))

    async def _resolve(self) -> None:
        while True:
            asked = (await self.query.recv(1 << 24)) & 0xFFFF_FFFF
            self.asked.append(asked)
            await wait_cycles(self.dut, random.randrange(1, 40))
            self.answer.send(found=asked in self.known, mac=self.known.get(asked, random.getrandbits(48)))

    async def _watch(self) -> None:
        waits = 0
        while True:
            await RisingEdge(self.dut.clk)
            assert int(self.dut.frame_ready.value)
            waits = waits + 1 if int(self.dut.payload_tvalid.value) and not int(self.dut.payload_tready.value) else 0
            self.longest = max(self.longest, waits)

    def come(self, socket: int, payload: bytes, source: tuple[str, str, int]) -> None:
        """A datagram to a socket's port."""
        mac, ip, port = source
        udp = UDP(sport=port, dport=self.settings[socket]["port"])
        frame = bytes(Ether(src=mac, dst=MAC) / IP(src=ip, dst=IP_ADDRESS) / udp / Raw(payload))
        self.wire.append((record("UDP", frame, len(payload)), payload))

    async def _come(self) -> None:
        """A record comes with its payload, as the packet plane has it: one after another, as fast as beats come."""
        while True:
            await FallingEdge(self.dut.clk)
            if self.wire and len(self.payload._queue) <= 8:
                record_, payload = self.wire.popleft()
                self.frame.send(record_)
                if payload:
                    self.payload.send(payload)
                await wait_cycles(self.dut, max(1, -(-len(payload) // BYTES)))

    async def came(self) -> None:
        """Everything has come."""
        while self.wire or self.frame.busy or self.payload.busy:
            await wait_cycles(self.dut, 1)
        await wait_cycles(self.dut, 5)

    async def got(self, socket: int) -> tuple[tuple[str, int], int, bytes]:
        """The next datagram that a kernel gets: sender, number, payload. Its header is checked."""
        data = await self.to_kernel[socket].recv()
        kind, zero, length, port, own_port, at, zeros, ip, own, more = HEADER.unpack(data[:64])
        assert (kind, own_port, own) == (KIND, self.settings[socket]["port"], address(IP_ADDRESS))
        assert not zero and not any(zeros) and not any(more) and ip[:12] == bytes(10) + b"\xff\xff"
        assert length == len(data) - 64
        return (".".join(map(str, ip[12:])), port), at, data[64:]

    async def sent(self) -> Ether:
        """The next frame."""
        frame = await self.tx.recv()
        assert frame.hdr_length == 42 and not frame.icrc and not frame.pad
        payload = await self.tx_payload.recv() if frame.payload_length else b""
        assert len(payload) == frame.payload_length
        return Ether(frame.hdr.to_bytes(constant("packet_pkg::HDR_BYTES"), "big")[:42] + payload)

    def check(self, frame: Ether, socket: int, mac: str, ip: str, port: int, payload: bytes) -> None:
        """It is what scapy makes."""
        expected = Ether(src=MAC, dst=mac) / IP(src=IP_ADDRESS, dst=ip, flags="DF", id=0, ttl=64)
        expected /= UDP(sport=self.settings[socket]["port"], dport=port, chksum=0) / Raw(payload)
        assert bytes(frame) == bytes(expected), (frame.show(dump=True), expected.show2(dump=True))

    async def counts(self, socket: int) -> dict[str, int]:
        """The counters that are not 0."""
        await wait_cycles(self.dut, 20)
        values = {}
        for i, name in enumerate(COUNTERS):
            self.dut.counter_at.value = i << 3 * socket
            await FallingEdge(self.dut.clk)
            values[name] = int(self.dut.counter.value) >> 32 * socket & 0xFFFFFFFF
        return {name: value for name, value in values.items() if value}

    async def quiet(self, cycles: int = 200) -> None:
        """Nothing more is sent."""
        await wait_cycles(self.dut, cycles)
        assert not self.tx.received and not self.tx_payload.packets

    async def idle(self) -> None:
        for _ in range(5000):
            await wait_cycles(self.dut, 1)
            if int(self.dut.idle.value):
                return
        raise AssertionError("the plane is not idle")


@cocotb.test()
@cocotb.parametrize(stall=alternately([0.0, 0.4]))
async def a_kernel_gets_what_comes_to_its_port(dut, stall: float) -> None:
    bench = await Bench(dut, stall).start()
    for at, length in enumerate(LENGTHS + random.sample(range(LONGEST), 10)):
        for socket in range(SOCKETS):
            source, payload = peer(random.randrange(1, 1 << 15)), random.randbytes(length)
            bench.come(socket, payload, source)
            assert await bench.got(socket) == (source[1:], at, payload)
    await bench.idle()
    for socket in range(SOCKETS):
        assert await bench.counts(socket) == {"received": len(LENGTHS) + 10}


@cocotb.test()
async def datagrams_come_without_a_gap(dut) -> None:
    """At the rate of the wire: small ones, one a few cycles, in both sockets."""
    bench = await Bench(dut).start()
    sent: list[list] = [[], []]
    for i in range(60):
        socket = random.randrange(SOCKETS)
        # A frame has 42 bytes of headers, and the wire 24 bytes between two.
        payload = random.randbytes(random.choice([64 + 2 * BYTES, 200, 256]))
        sent[socket].append((peer(i + 1)[1:], len(sent[socket]), payload))
        bench.come(socket, payload, peer(i + 1))
    for socket in range(SOCKETS):
        for expected in sent[socket]:
            assert await bench.got(socket) == expected
    assert bench.longest <= 3


@cocotb.test()
async def what_is_first_and_how_late(dut) -> None:
    """The latency of each way, in cycles."""
    bench = await Bench(dut).start(to=TO_SENDERS)
    await wait_cycles(dut, 40)
    bench.come(0, bytes(64), peer(5))
    await RisingEdge(dut.frame_valid)
    await RisingEdge(dut.clk)
    cycles = 0
    while not int(dut.to_kernel0_tvalid.value):
        await RisingEdge(dut.clk)
        cycles += 1
    assert cycles == 4, cycles
    await bench.got(0)
    bench.from_kernel[0].send(packet("0.0.0.0", 0, bytes(64)))
    while not (int(dut.from_kernel0_tvalid.value) and int(dut.from_kernel0_tlast.value) and int(dut.from_kernel0_tready.value)):
        await RisingEdge(dut.clk)
    cycles = 0
    while not int(dut.tx_valid.value):
        await RisingEdge(dut.clk)
        cycles += 1
    assert cycles == 11, cycles
    await bench.sent()


@cocotb.test()
@cocotb.parametrize(stall=alternately([0.0, 0.4]))
async def what_a_kernel_sends_is_as_scapy_makes_it(dut, stall: float) -> None:
    bench = await Bench(dut, stall).start()
    for i, length in enumerate(LENGTHS + random.sample(range(LONGEST), 10)):
        mac, ip, port = peer(random.randrange(1, 1 << 15))
        bench.known[mapped(ip) & 0xFFFFFFFF] = number(mac)
        payload = random.randbytes(length)
        bench.from_kernel[i % 2].send(packet(ip, port, payload))
        bench.check(await bench.sent(), i % 2, mac, ip, port, payload)
    await bench.idle()
    total = len(LENGTHS) + 10
    assert await bench.counts(0) == {"sent": (total + 1) // 2} and await bench.counts(1) == {"sent": total // 2}


@cocotb.test()
async def sockets_take_turns(dut) -> None:
    bench = await Bench(dut).start()
    mac, ip, port = peer(9)
    bench.known[mapped(ip) & 0xFFFFFFFF] = number(mac)
    for i in range(20):
        bench.from_kernel[0].send(packet(ip, port, bytes([i])))
        if i < 10:
            bench.from_kernel[1].send(packet(ip, port, bytes([i]) * 2))
    order = [len((await bench.sent())[UDP].payload) for _ in range(30)]
    assert all({1, 2} == set(order[i : i + 2]) for i in range(2, 18, 2)), order


@cocotb.test()
async def only_senders_are_answered_once_and_not_longer_than_three_times(dut) -> None:
    bench = await Bench(dut).start(to=TO_SENDERS)
    refused = 0

    async def refuses(data: bytes) -> None:
        nonlocal refused
        bench.from_kernel[0].send(data)
        await bench.quiet(100)
        refused += 1
        assert (await bench.counts(0)).get("refused", 0) == refused

    await refuses(packet(peer(1)[1], peer(1)[2], b"nobody has sent", 0))
    for at in range(4):
        bench.come(0, bytes(100), peer(at + 1))
        await bench.got(0)
    # Whatever the kernel has as the address: the sender gets it, at the MAC address that it came from.
    for at in (2, 0):
        payload = random.randbytes(100 * 3 + 84)
        bench.from_kernel[0].send(packet("8.8.8.8", 53, payload, at))
        bench.check(await bench.sent(), 0, *peer(at + 1), payload)
        await refuses(packet(*peer(at + 1)[1:], b"again", at))
    await refuses(packet(*peer(2)[1:], bytes(100 * 3 + 85), 1))
    bench.from_kernel[0].send(packet(*peer(2)[1:], b"shorter", 1))
    bench.check(await bench.sent(), 0, *peer(2), b"shorter")
    await refuses(packet(*peer(4)[1:], b"the other socket", 4))
    for at in range(4, 3 + ANSWERS):
        bench.come(0, b"", peer(at + 1))
        await bench.got(0)
    bench.from_kernel[0].send(packet("0.0.0.0", 0, b"the oldest", 3))
    bench.check(await bench.sent(), 0, *peer(4), b"the oldest")
    for at in range(3 + ANSWERS, 5 + ANSWERS):
        bench.come(0, b"", peer(at + 1))
        await bench.got(0)
    await refuses(packet("0.0.0.0", 0, b"", 4))  # its place has another
    await refuses(packet("0.0.0.0", 0, b"", 5 + ANSWERS))
    assert not bench.asked  # nothing is resolved
    # The other socket has its own.
    bench.from_kernel[1].send(packet(*peer(6)[1:], b"", 5))
    await bench.quiet()
    assert await bench.counts(1) == {"refused": 1}


@cocotb.test()
async def a_kernel_sends_to_its_network_only(dut) -> None:
    bench = await Bench(dut).start(network=mapped("10.0.4.0") & 0xFFFFFFFF, mask=0xFFFFFF00)
    mac, ip, port = peer(4 << 8 | 77)
    bench.known[mapped(ip) & 0xFFFFFFFF] = number(mac)
    bench.from_kernel[0].send(packet(ip, port, b"in it"))
    bench.check(await bench.sent(), 0, mac, ip, port, b"in it")
    unmapped = bytearray(packet(ip, port, b""))
    unmapped[16 + random.randrange(12)] ^= 1 << random.randrange(8)
    wrong = [packet("10.0.5.77", port, b""), packet("10.4.4.77", port, b""), packet(ip, 0, b""), bytes(unmapped)]
    for data in wrong:
        bench.from_kernel[0].send(data)
    await bench.quiet()
    assert await bench.counts(0) == {"sent": 1, "refused": len(wrong)}
    bench.set(0, network=0, mask=0)  # anyone, who is one host
    groups = [packet(ip, port, b"") for ip in ("224.0.0.251", "239.1.1.1", "255.255.255.255", "240.0.0.1", "0.0.0.0", "127.0.0.1")]
    for data in groups:
        bench.from_kernel[0].send(data)
    await bench.quiet()
    bench.set(0, to=TO_NOBODY)
    bench.from_kernel[0].send(packet(ip, port, b""))
    await bench.quiet()
    bench.set(0, to=TO_NETWORK, enable=0)
    bench.from_kernel[0].send(packet(ip, port, b""))
    await bench.quiet()
    assert await bench.counts(0) == {"sent": 1, "refused": len(wrong) + len(groups) + 2}
    assert len(bench.asked) == 1


@cocotb.test()
async def a_packet_that_is_no_datagram_is_dropped(dut) -> None:
    bench = await Bench(dut, 0.2).start()
    mac, ip, port = peer(3)
    bench.known[mapped(ip) & 0xFFFFFFFF] = number(mac)
    wrong = [
        packet(ip, port, b"1234", kind=0), packet(ip, port, b"1234", kind=2),
        packet(ip, port, bytes(BYTES), length=0), packet(ip, port, b"", length=1), packet(ip, port, bytes(BYTES), length=BYTES + 1),
        packet(ip, port, bytes(BYTES * 3), length=BYTES * 2), packet(ip, port, bytes(BYTES * 3), length=0xFFFF),
        packet(ip, port, bytes(LONGEST + 1)), packet(ip, port, bytes(2 * LONGEST + 64)),
        packet(ip, port, bytes(64), length=64 + LONGEST),
    ]  # fmt: skip
    if BYTES < 64:
        wrong += [packet(ip, port, b"")[:length] for length in (1, BYTES, 64 - BYTES)]
    for i, data in enumerate(wrong):
        payload = random.randbytes(random.randrange(300))
        bench.from_kernel[0].send(data)
        bench.from_kernel[0].send(packet(ip, port, payload))
        bench.check(await bench.sent(), 0, mac, ip, port, payload)
        assert await bench.counts(0) == {"sent": i + 1, "malformed": i + 1}


@cocotb.test()
async def a_destination_that_is_not_found_is_tried_for_a_while(dut) -> None:
    bench = await Bench(dut).start()
    mac, ip, port = peer(3)
    here = mapped(ip) & 0xFFFFFFFF
    bench.from_kernel[0].send(packet("10.0.9.9", 9, b"nobody"))
    bench.from_kernel[0].send(packet(ip, port, b"behind it"))
    bench.from_kernel[1].send(packet(ip, port, b"of another socket"))
    await wait_cycles(dut, RETRY * 5)
    bench.known[here] = number(mac)
    bench.check(await bench.sent(), 1, mac, ip, port, b"of another socket")
    assert bench.asked.count(here) > 3
    bench.check(await bench.sent(), 0, mac, ip, port, b"behind it")
    assert len(bench.asked) - bench.asked.count(here) == TRIES
    assert await bench.counts(0) == {"sent": 1, "unresolved": 1} and await bench.counts(1) == {"sent": 1}


@cocotb.test()
async def a_kernel_sends_no_faster_than_its_pace(dut) -> None:
    bench = await Bench(dut).start()
    mac, ip, port = peer(3)
    bench.known[mapped(ip) & 0xFFFFFFFF] = number(mac)
    for pace, length, elapsed in ((256, 100, 1), (1000, 640, 1), (6400, 64, 50)):
        bench.set(0, pace=pace)
        dut.elapsed.value = elapsed
        cycles = []
        for _ in range(6):
            bench.from_kernel[0].send(packet(ip, port, bytes(length)))
        for _ in range(6):
            frame = await bench.tx.recv()
            await bench.tx_payload.recv()
            assert frame.payload_length == length
            cycles.append(bench.tx.cycle)
        expected = 5 * (64 + -(-length // BYTES) * BYTES) * pace / 256 / elapsed
        assert expected <= cycles[-1] - cycles[0] + 5 <= expected * 1.2 + 6 * 100, (pace, cycles, expected)


@cocotb.test()
async def a_kernel_that_does_not_read_loses_its_own_datagrams_only(dut) -> None:
    """Full rate to a stalled kernel, and some to the other, for which each beat is counted."""
    bench = await Bench(dut).start()
    bench.to_kernel[0].stall = 1.0
    await wait_cycles(dut, 2)
    expected, flood = [], 0
    for i in range(300):
        if i % 5 == 0:
            expected.append((peer(i + 1)[1:], len(expected), random.randbytes(random.choice([0, 64, 700]))))
            bench.come(1, expected[-1][2], peer(i + 1))
        else:
            flood += 1
            bench.come(0, random.randbytes(random.choice([0, 1, 64, 1472, 4096]) if i < 100 else 2048), peer(i + 1))
    for each in expected:
        assert await bench.got(1) == each
    await bench.came()
    assert bench.longest <= 3 and await bench.counts(1) == {"received": len(expected)}
    counts = await bench.counts(0)
    assert counts["received"] + counts["drop_room"] == flood and 4 <= counts["received"] <= WAITING
    # It sends, and reads what was kept.
    mac, ip, port = peer(3)
    bench.known[mapped(ip) & 0xFFFFFFFF] = number(mac)
    bench.from_kernel[0].send(packet(ip, port, b"alive"))
    bench.check(await bench.sent(), 0, mac, ip, port, b"alive")
    bench.to_kernel[0].stall = 0.0
    for at in range(counts["received"]):
        assert (await bench.got(0))[1] == at
    await bench.idle()


@cocotb.test()
async def the_store_holds_so_many_bytes(dut) -> None:
    bench = await Bench(dut).start()
    bench.to_kernel[0].stall = 1.0
    await wait_cycles(dut, 2)
    for i in range(8):
        bench.come(0, random.randbytes(LONGEST), peer(i + 1))
    bench.come(0, b"", peer(20))  # needs no room
    bench.come(0, bytes(LONGEST + 1), peer(21))
    await bench.came()
    counts = await bench.counts(0)
    assert counts == {"received": STORE // LONGEST + 1, "drop_room": 8 - STORE // LONGEST, "drop_length": 1}, counts


@cocotb.test()
async def a_kernel_that_stops_in_the_middle_of_a_packet_holds_up_nobody(dut) -> None:
    bench = await Bench(dut).start()
    mac, ip, port = peer(3)
    bench.known[mapped(ip) & 0xFFFFFFFF] = number(mac)
    bench.from_kernel[0].send(packet(ip, port, bytes(10 * BYTES)))
    while bench.from_kernel[0].sent < 4:
        await wait_cycles(dut, 1)
    bench.from_kernel[0].stall = 1.0
    for i in range(20):
        bench.from_kernel[1].send(packet(ip, port, bytes([i])))
        bench.check(await bench.sent(), 1, mac, ip, port, bytes([i]))
    await bench.idle()  # whatever the kernel waits for
    bench.from_kernel[0].stall = 0.0
    bench.check(await bench.sent(), 0, mac, ip, port, bytes(10 * BYTES))


@cocotb.test()
async def a_kernel_that_is_cut_off_leaves_no_half_datagram(dut) -> None:
    """Cut off at any time, in both directions: the next kernel gets and sends whole ones, and nothing of before."""
    bench = await Bench(dut).start()
    mac, ip, port = peer(3)
    bench.known[mapped(ip) & 0xFFFFFFFF] = number(mac)
    kernel: deque[tuple[int, int, int, int]] = deque()

    async def sends() -> None:
        while True:
            await FallingEdge(dut.clk)
            dut.from_kernel0_tvalid.value = bool(kernel)
            if kernel:
                dut.from_kernel0_tdata.value, dut.from_kernel0_tkeep.value, dut.from_kernel0_tlast.value, _ = kernel[0]
            await RisingEdge(dut.clk)
            if kernel and int(dut.from_kernel0_tready.value):
                kernel.popleft()

    def send(data: bytes) -> None:
        for at in range(0, len(data), BYTES):
            beat = data[at : at + BYTES]
            kernel.append((int.from_bytes(beat, "little"), (1 << len(beat)) - 1, at + BYTES >= len(data), 0))

    cocotb.start_soon(sends())
    before = None
    for round_ in range(30):
        bench.set(0, to=TO_SENDERS if round_ % 3 == 0 else TO_NETWORK)
        bench.to_kernel[0].stall = random.choice([0.0, 0.9, 1.0])
        for _ in range(3):
            bench.come(0, random.randbytes(random.choice([0, 5, 10 * BYTES])), peer(random.randrange(1, 99)))
        for _ in range(2):
            send(packet(ip, port, b"old" + random.randbytes(random.choice([0, 1, 12 * BYTES]))))
        await wait_cycles(dut, random.randrange(1, 90))
        kernel.clear()  # the socket resets it
        await FallingEdge(dut.clk)
        dut.off.value = 1
        bench.to_kernel[0]._partial.clear()
        await RisingEdge(dut.clk)
        held = random.choice([1, 2, 40])
        for _ in range(held):
            assert not int(dut.to_kernel0_tvalid.value) and not int(dut.from_kernel0_tready.value)
            await RisingEdge(dut.clk)
        await FallingEdge(dut.clk)
        dut.off.value = 0
        await bench.came()
        bench.to_kernel[0].stall = 0.0
        await bench.idle()
        await wait_cycles(dut, 600)
        for sink in (bench.to_kernel[0], bench.tx_payload):
            sink.packets.clear()
            sink.spans.clear()
            assert not sink._partial
        bench.tx.received.clear()
        bench.tx.cycles.clear()
        # The next kernel.
        payload = random.randbytes(77)
        bench.come(0, payload, peer(50))
        source, at, got = await bench.got(0)
        assert (source, got) == (peer(50)[1:], payload)
        bench.set(0, to=TO_SENDERS)
        if before is not None:
            send(packet(ip, port, b"to whom the kernel before could answer", before))
        before = at
        send(packet(ip, port, payload, at))
        bench.check(await bench.sent(), 0, *peer(50), payload)
        await bench.quiet(40)


@pytest.mark.parametrize("width", some([64, 512]))
def test_datagrams_plane(width: int) -> None:
    run(
        "datagrams_plane",
        __file__,
        params={"DATA_W": width, "CLOCK_HZ": CLOCK_HZ, "SOCKETS": SOCKETS},
        ports={
            "elapsed": Plain("input", "logic [32:0]"),
            "local_addr": Plain("input", LOCAL),
            "settings": Plain("input", f"logic [{SOCKETS * struct(SETTINGS).width - 1}:0]"),
            "off": Plain("input", f"logic [{SOCKETS - 1}:0]"),
            "ports": Plain("output", f"logic [{16 * SOCKETS - 1}:0]"),
            "frame": Sink(FRAME_RX),
            "payload": AxisSinkPort(width),
            "to_kernel": Several(AxisSourcePort(width), SOCKETS),
            "from_kernel": Several(AxisSinkPort(width), SOCKETS),
            "tx": Source(TX),
            "tx_payload": AxisSourcePort(width),
            "query": Source("packet_pkg::ip_addr_t"),
            "answer": Sink("packet_pkg::arp_answer_t"),
            "counter_at": Plain("input", f"logic [{3 * SOCKETS - 1}:0]"),
            "counter": Plain("output", f"logic [{32 * SOCKETS - 1}:0]"),
            "idle": Plain("output", "logic"),
        },
        env={
            "WIDTH": str(width),
            **at_width(width, "gets_what|without_a_gap|how_late|as_scapy|take_turns|so_many_bytes|half_datagram"),
        },
    )
