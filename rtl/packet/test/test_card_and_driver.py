# SPDX-License-Identifier: Apache-2.0
"""The network card with its driver: what is on the line is in the driver's buffers as it came, and the other way round, while RoCE
frames pass beside it, whatever the driver does."""

import itertools
import os
import random
from pathlib import Path
from typing import Any

import cocotb
import packet_frames as frames
import pytest
from nacelle_tb.bench import AxilSlave, AxiMaster, Plain, Sink, Source, run
from nacelle_tb.bench import AxisSink as AxisSinkPort
from nacelle_tb.bench import AxisSource as AxisSourcePort
from nacelle_tb.long import some
from nacelle_tb.memory import AxiMemory
from nacelle_tb.net_driver import NetDriver
from nacelle_tb.record import FRAME_RX
from nacelle_tb.registers import AxilDriver
from nacelle_tb.streams import AxisSink, AxisSource, StreamSink, StreamSource, pulses, start, wait_cycles
from nacelle_tb.svtypes import constant, struct
from nacelle_tb.toeplitz import toeplitz
from nacelle_tb.virtio import (
    CTRL_MAC,
    CTRL_MQ,
    CTRL_RX,
    DATA_VALID,
    F_CTRL_MAC_ADDR,
    F_CTRL_RX,
    F_CTRL_VQ,
    F_GUEST_CSUM,
    F_MQ,
    F_MRG_RXBUF,
    F_RSS,
    F_STATUS,
    F_VERSION_1,
    MAC_ADDR_SET,
    MAC_TABLE_SET,
    NEXT,
    PROMISC,
    RSS_CONFIG,
    mac_table,
    receive,
    rss_config,
)
from plane_bench import CARD, EVENTS, LINK, LOCAL, TX
from scapy.layers.inet import ICMP, IP, TCP, UDP, IPOption_NOP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import ARP, Ether

PAIRS = int(os.environ.get("NACELLE_PAIRS", "1"))
SIZE = 1 << 21
MTU = 9000
CARD_MAC = "06:00:00:00:00:01"
FEATURES = 1 << F_VERSION_1 | 1 << F_MRG_RXBUF | 1 << F_GUEST_CSUM | 1 << F_STATUS
MULTI = (1 << F_MQ | 1 << F_RSS | 1 << F_CTRL_VQ) * (PAIRS > 1)
DEVICE_AT = 0x80
BUFFER = 2048
OURS = b"\x88\xb5"
ROCE_PORT = frames.ROCE_PORT.to_bytes(2, "big")


class Bench:
    """The line, RoCE at the side of the device, and the card's driver: of one pair of queues, unless `pairs`."""

    def __init__(
        self, dut: Any, latency: tuple[int, int] = (20, 120), stall: float = 0.0, tx_stall: float = 0.0, pairs: bool = False
    ) -> None:
        self.dut = dut
        self.rx, self.tx = AxisSource(dut, "rx"), AxisSink(dut, "tx", tx_stall)
        self.frame, self.payload = StreamSink(dut, "frame", FRAME_RX), AxisSink(dut, "payload")
        self.roce, self.roce_payload = StreamSource(dut, "roce", TX), AxisSource(dut, "roce_payload")
        self.memory = AxiMemory(dut, "mem", SIZE, latency=latency, stall=stall, reorder=True, noise=True)
        self.driver = NetDriver(
            lambda cycles: wait_cycles(dut, cycles), self.memory, AxilDriver(dut, "bus"), FEATURES | MULTI * pairs, SIZE, PAIRS, 128
        )
        self.interrupt = StreamSink(dut, "interrupt", "logic [15:0]")
        self.counts: dict[str, int] = {}
        self.wrote: list[bytes] = []  # RoCE payloads to the device
        self.sent: list[bytes] = []  # RoCE frames of the device
        dut.open.value = dut.reset.value = 0
        dut.link_up.value = 1
        dut.link.value = struct(LINK).pack(flow={"quanta_per_cycle": 1 << 14})
        self.set_card()

    def set_card(self, **settings: int) -> None:
        """Which card there is; by default one with a MAC address of its own."""
        mac = frames.MAC if settings.get("shared") else CARD_MAC
        self.dut.card.value = struct(CARD).pack({"present": 1, "mac": int.from_bytes(frames.mac_bytes(mac), "big")} | settings)

    async def power_on(self, **local: object) -> None:
        """The device is not enabled yet."""
        self.dut.local_addr.value = struct(LOCAL).pack(frames.local_addr(**local))
        await start(self.dut)
        cocotb.start_soon(self._count())
        await wait_cycles(self.dut, 200)

    async def begin(self, card: dict[str, int] | None = None, buffers: int = 100, **local: object) -> "Bench":
        """Device and driver work; the device's announcement has left."""
        self.set_card(**(card or {}))
        await self.power_on(**local)
        self.dut.open.value = 1
        await self.driver.initialize()
        assert ARP in Ether(await self.tx.recv())
        await self.post(buffers)
        return self

    async def post(self, buffers: int, number: int = 0) -> None:
        """Buffers to receive into."""
        for _ in range(buffers):
            self.driver.post(number, [BUFFER])
        await self.driver.show(number)
        await wait_cycles(self.dut, 1500)

    async def _count(self) -> None:
        events = struct(EVENTS)
        async for word in pulses(self.dut.clk, self.dut.events):
            for name, value in vars(events.unpack(word)).items():
                self.counts[name] = self.counts.get(name, 0) + value

    def write(self, size: int) -> None:
        """A RoCE WRITE to the device, and one that it sends."""
        payload = random.randbytes(size)
        self.rx.send(frames.roce(payload, 0x0A))
        self.wrote.append(payload)
        wire = frames.roce(payload := random.randbytes(size), 0x0A)
        head = wire[: len(wire) - len(payload) - 4]
        self.roce.send(
            hdr_length=len(head), payload_length=len(payload), icrc=1,
            hdr=int.from_bytes(head.ljust(constant("packet_pkg::HDR_BYTES"), b"\0"), "big"),
        )  # fmt: skip
        self.roce_payload.send(payload)
        self.sent.append(wire)

    async def roce_is_whole(self) -> None:
        """Every WRITE came, every one that the device sent is on the line, and nothing was dropped on the way."""
        for _ in range(4000):
            if len(self.payload.packets) == len(self.wrote) and len(self.on_line(b"\x08\0")) >= len(self.sent):
                break
            await wait_cycles(self.dut, 10)
        assert [packet for packet, _ in self.payload.packets] == self.wrote
        roce = [packet for packet in self.on_line(b"\x08\0") if packet[36:38] == ROCE_PORT]
        assert roce == self.sent
        assert not self.counts.get("drop_overflow")

    def on_line(self, ethertype: bytes) -> list[bytes]:
        """Frames of this EtherType that were sent."""
        return [packet for packet, _ in self.tx.packets if packet[12:14] == ethertype]

    def not_roce(self) -> list[bytes]:
        """What was sent beside RoCE."""
        return [packet for packet, _ in self.tx.packets if packet[36:38] != ROCE_PORT]

    async def send(self, frame: bytes) -> None:
        """By the driver."""
        self.driver.transmit(frame, 1, cuts=random.choice([0, 2]))
        await self.driver.show(1)

    async def none_received(self) -> None:
        await wait_cycles(self.dut, 1500)
        assert receive(self.driver.queues[0]) is None


def of_card(size: int, src: str = CARD_MAC) -> bytes:
    return frames.mac_bytes(frames.PEER_MAC) + frames.mac_bytes(src) + OURS + random.randbytes(size - 14)


@cocotb.test()
@cocotb.parametrize(host=[False, True])
async def pings_are_answered_by_one_of_them(dut, host: bool) -> None:
    """Host and device share an address. Where the host answers, the driver gets the questions and its answers are on the line;
    where the device does, the driver knows nothing of them."""
    bench = await Bench(dut).begin({"shared": 1, "answers_arp": int(host), "answers_echo": int(host)})
    for size in (40, 300, 1400):
        bench.write(1024)
        for question in (frames.arp(), frames.ping(random.randbytes(size))):
            bench.rx.send(frames.ethernet_padded(question))
            if host:
                got = await bench.driver.received(0)
                asked = Ether(got.frame)
                assert got.frame[: len(question)] == question
                if ARP in asked:
                    answer = ARP(op=2, hwsrc=frames.MAC, psrc=asked.pdst, hwdst=asked.hwsrc, pdst=asked.psrc)
                else:
                    answer = IP(src=asked[IP].dst, dst=asked[IP].src) / ICMP(type=0, id=7, seq=9) / bytes(asked[ICMP].payload)
                reply = bytes(Ether(src=frames.MAC, dst=frames.PEER_MAC) / answer)
                await bench.send(reply)
                ((_, length, _),) = await bench.driver.reap(1)
                assert length == 0
            await bench.tx._wait(lambda: len(bench.not_roce()) > 0, 5000)
            replies = bench.not_roce()
            assert len(replies) == 1
            if host:
                assert replies == [reply.ljust(60, b"\0")]
            else:
                assert (Ether(replies[0])[ARP].op == 2) if ARP in Ether(question) else (Ether(replies[0])[ICMP].type == 0)
            bench.tx.packets = type(bench.tx.packets)(item for item in bench.tx.packets if item[0] not in replies)
    await bench.none_received()
    await bench.roce_is_whole()


@cocotb.test()
async def all_kinds_of_frames_both_ways_beside_roce(dut) -> None:
    """Segments, tags, IPv6, groups, fragments, unknown types and the longest frames are in the buffers as they came; what the
    driver sends is on the line byte for byte; WRITEs in both directions go on with the right data."""
    bench = await Bench(dut).begin({"shared": 1})
    arrived, sent = [], []
    for turn in range(12):
        data = random.randbytes(random.choice([46, 200, 1400]))
        several = [
            frames.tcp(data),
            frames.tagged(frames.udp(data)),
            frames.ipv6(data),
            frames.to("01:00:5e:01:02:03", frames.udp(data, dst="224.1.2.3")),
            frames.tcp(data, frag=3),
            frames.ethertype(0x88B5, random.randbytes(MTU if turn == 5 else 60)),
            frames.to("ff:ff:ff:ff:ff:ff", frames.arp(pdst="10.0.0.77")),
        ]
        random.shuffle(several)
        for frame in several:
            arrived.append(frames.ethernet_padded(frame))
            bench.rx.send(arrived[-1])
            if random.random() < 0.5:
                bench.write(random.choice([64, 1024, 2048]))
        for size in (14, 60, random.randrange(61, 1514), MTU + 14 if turn == 7 else 100):
            sent.append(of_card(size, frames.MAC))
            await bench.send(sent[-1])
        for frame in arrived[-len(several) :]:
            got = await bench.driver.received(0)
            assert got.frame == frame
            checked = frame[12:14] in (b"\x08\0", b"\x86\xdd") and frame[20:22] != b"\0\3"
            assert bool(got.flags & DATA_VALID) == checked, Ether(frame)
        await bench.driver.reap(1, 4)
        await bench.post(len(several) + 6 * (turn == 5))
    await bench.roce_is_whole()
    assert bench.on_line(OURS) == [frame.ljust(60, b"\0") for frame in sent]
    assert await bench.driver.counter("RX") == len(arrived) == bench.counts["rx_card"]
    assert await bench.driver.counter("TX") == len(sent) == bench.counts["tx_card"]


@cocotb.test()
async def a_driver_without_buffers_costs_only_its_own(dut) -> None:
    """A flood at line rate for a driver that has no buffer: each frame is counted, RoCE loses nothing and no cycle; with buffers
    the next frame is there."""
    bench = await Bench(dut).begin(buffers=0)
    flood = 0
    for _ in range(60):
        for _ in range(4):
            bench.rx.send(frames.to(CARD_MAC, frames.tcp(random.randbytes(random.choice([40, 1400])))))
            flood += 1
        bench.write(512)
    beats, begin = len(bench.rx._queue), bench.tx.cycle
    await bench.rx.drained()
    assert bench.tx.cycle - begin < beats + 20, "the line stopped"
    await bench.roce_is_whole()
    await wait_cycles(dut, 500)
    lost = [await bench.driver.counter(name) for name in ("RX", "RX_NO_BUFFER", "RX_OVERRUN", "RX_BAD", "RX_MEMORY")]
    assert lost == [0, flood, 0, 0, 0] and bench.counts["rx_card"] == flood
    await bench.post(1)
    bench.rx.send(frame := frames.to(CARD_MAC, frames.tcp(b"x" * 50)))
    assert (await bench.driver.received(0)).frame == frame


@cocotb.test()
async def rings_that_stop_cost_only_their_own(dut) -> None:
    """A chain in a loop stops the receive queue, buffers beyond memory the transmit queue: RoCE goes on, and frames for the card
    are counted."""
    bench = await Bench(dut).begin(buffers=0)
    driver = bench.driver
    queue = driver.queues[0]
    queue._describe(queue.desc, 5, driver.heap.take(64), 64, 2 | NEXT, 5)
    queue.offer(5)
    await driver.show(0)
    await wait_cycles(dut, 1000)
    bench.rx.send(frames.to(CARD_MAC, frames.tcp(b"x" * 50)))
    await wait_cycles(dut, 15_000)  # as many reads as the queue is long
    assert await driver.fault(0)
    driver.memory.errors.append((0x70000, 0x70FFF))
    driver.queues[1]._describe(driver.queues[1].desc, 9, 0x70000, 100, 0, 0)
    driver.queues[1].offer(9)
    await driver.show(1)
    await wait_cycles(dut, 1000)
    assert await driver.fault(1)
    for _ in range(40):
        bench.rx.send(frames.to(CARD_MAC, frames.tcp(random.randbytes(300))))
        bench.write(1024)
    await bench.roce_is_whole()
    await wait_cycles(dut, 500)
    assert await driver.counter("RX_NO_BUFFER") == 41
    assert not bench.on_line(OURS)
    # After a reset it works.
    await driver.initialize()
    await bench.post(2)
    bench.rx.send(frame := frames.to(CARD_MAC, frames.tcp(b"x" * 50)))
    assert (await driver.received(0)).frame == frame


@cocotb.test()
@cocotb.parametrize(function=[False, True])
async def resets_cut_nothing_on_the_line(dut, function: bool) -> None:
    """The driver, or the slot, resets the card at any time under load both ways: frames on the line are whole and no bubble is in
    them, RoCE goes on, and nothing is written once the reset is done. Then the card works as before."""
    bench = await Bench(dut).begin()
    driver = bench.driver
    sent: list[bytes] = []
    for _ in range(5):
        for _ in range(25):
            bench.rx.send(frames.to(CARD_MAC, frames.tcp(random.randbytes(random.choice([60, 1400])))))
            sent.append(of_card(random.choice([60, 700, 1514])))
            driver.transmit(sent[-1], 1)
            if random.random() < 0.5:
                bench.write(random.choice([64, 1024]))
        await driver.show(1)
        await wait_cycles(dut, random.randrange(50, 3000))
        if function:
            dut.reset.value = 1
            for _ in range(20_000):
                await wait_cycles(dut, 1)
                if int(dut.reset_done.value):
                    break
            assert int(dut.reset_done.value)
        else:
            await driver.pci.reset()
        assert bench.memory.outstanding() == 0
        before, written = bench.memory.stats.read_bursts, bytes(bench.memory.content)
        await wait_cycles(dut, 2000)
        assert bench.memory.stats.read_bursts == before and bytes(bench.memory.content) == written
        dut.reset.value = 0
        await bench.rx.drained()
        await driver.initialize()
        await bench.post(60)
        bench.rx.send(frame := frames.to(CARD_MAC, frames.tcp(random.randbytes(100))))
        assert (await driver.received(0)).frame == frame
    await bench.roce_is_whole()
    of_them = bench.on_line(OURS)
    assert 0 < len(of_them) <= len(sent)
    rest = iter(sent)
    assert all(frame in rest for frame in of_them), "frames are whole and in order"
    assert all(last - first + 1 == -(-len(packet) // (len(dut.tx_tdata) // 8))
               for (packet, _), (first, last) in zip(bench.tx.packets, list(bench.tx.spans)[-len(bench.tx.packets) :], strict=True)
               if packet[12:14] == OURS)  # fmt: skip


@cocotb.test()
async def floods_both_ways_end(dut) -> None:
    """Line rate in, and as much as the driver and RoCE can send out: nothing stands still, each has its share, all that was
    accepted is on the line."""
    bench = await Bench(dut).begin()
    sent = []
    for _ in range(100):
        sent.append(of_card(1514))
        bench.driver.transmit(sent[-1], 1)
        bench.write(1024)
        bench.rx.send(frames.to(CARD_MAC, frames.tcp(random.randbytes(1400))))
    await bench.driver.show(1)
    await bench.driver.reap(1, 100, cycles=200_000)
    await bench.roce_is_whole()
    for _ in range(1000):
        if len(bench.on_line(OURS)) == 100:
            break
        await wait_cycles(dut, 50)
    assert bench.on_line(OURS) == sent
    order = ["card" if packet[12:14] == OURS else "roce" for packet, _ in bench.tx.packets]
    first = max(order.index(kind) for kind in ("card", "roce"))  # the card begins later: its buffers must be read
    last = min(len(order) - order[::-1].index(kind) for kind in ("card", "roce"))
    longest = max(len(list(run)) for _, run in itertools.groupby(order[first:last]))
    assert longest <= 16, f"one had {longest} frames in a row"
    kept = await bench.driver.counter("RX")
    lost = sum([await bench.driver.counter(name) for name in ("RX_NO_BUFFER", "RX_OVERRUN")])
    assert kept + lost == 100


@cocotb.test()
async def a_device_that_is_not_enabled_has_no_link(dut) -> None:
    """The driver may begin before the device is enabled: it sees that there is no link, what it sends is gone, it can reset; when
    the device is enabled, or the line goes, it is told."""
    bench = Bench(dut)
    driver = bench.driver
    await bench.power_on()
    await driver.initialize()
    assert await driver.pci.load(DEVICE_AT, 6) == int.from_bytes(frames.mac_bytes(CARD_MAC), "little")
    assert await driver.pci.load(DEVICE_AT + 6, 2) == 0
    await driver.pci.set("config_msix_vector", 0)
    for size in (60, 1514, 9014):
        await bench.send(of_card(size))
    await driver.reap(1, 3)
    await wait_cycles(dut, 3000)
    assert not bench.tx.packets
    await bench.send(of_card(9014))
    await driver.pci.reset()
    await driver.initialize()
    await driver.pci.set("config_msix_vector", 0)
    bench.rx.send(frames.to(CARD_MAC, frames.tcp(b"x" * 50)))
    await bench.rx.drained()
    bench.interrupt.received.clear()
    dut.open.value = 1
    assert await bench.interrupt.recv() == 0
    assert await driver.pci.load(DEVICE_AT + 6, 2) == 1
    assert ARP in Ether(await bench.tx.recv())
    await bench.send(frame := of_card(100))
    assert await bench.tx.recv() == frame
    await driver.reap(1)
    bench.interrupt.received.clear()
    dut.link_up.value = 0
    assert await bench.interrupt.recv() == 0
    assert await driver.pci.load(DEVICE_AT + 6, 2) == 0
    await bench.none_received()


@cocotb.test(skip=PAIRS == 1)
async def flows_keep_to_their_pair(dut) -> None:
    """Segments and datagrams are dealt out by address and port: those of one connection are in one queue, in order, and many
    connections use all queues. What has no ports goes to the first."""
    bench = await Bench(dut, pairs=True).begin(buffers=0)
    for number in range(PAIRS):
        await bench.post(100, 2 * number)
    flows = {number: Ether(frames.tcp(b"", src=f"10.0.0.{20 + number}")) for number in range(16)}
    sent: dict[int, list[bytes]] = {number: [] for number in flows}
    for count in range(6):
        for number, head in flows.items():
            frame = head.copy()
            frame[IP].id = count
            del frame[IP].chksum, frame[IP].len, frame[IP].payload.chksum
            wire = frames.ethernet_padded(frames.to(CARD_MAC, bytes(frame / random.randbytes(30))))
            sent[number].append(wire)
            bench.rx.send(wire)
    bench.rx.send(other := frames.to(CARD_MAC, frames.ethertype(0x88B5, bytes(60))))
    await bench.rx.drained()
    await wait_cycles(dut, 4000)
    got: dict[int, list[bytes]] = {}
    for number in range(PAIRS):
        got[number] = []
        while (frame := receive(bench.driver.queues[2 * number])) is not None:
            got[number].append(frame.frame)
    assert all(got.values()), "a pair is not used"
    assert other in got[0] and sum(map(len, got.values())) == 97
    for wires in sent.values():
        (where,) = [number for number in got if wires[0] in got[number]]
        assert [frame for frame in got[where] if frame in wires] == wires


# VIRTIO_NET_HASH_TYPE_*, in their order.
IP4, TCP4, UDP4, IP6, TCP6, UDP6 = (1 << i for i in range(6))


def hashed(types: int, key: bytes, packet: Ether) -> int | None:
    """5.1.6.4.3: over what the driver wants, of what the packet has."""
    ip = packet.getlayer(IP) or packet.getlayer(IPv6)
    if ip is None:
        return None
    wire = bytes(ip)
    addresses = wire[8:40] if ip.version == 6 else wire[12:20]
    plain = ip.version == 6 or (ip.ihl == 5 and not ip.frag and not ip.flags.MF)
    top = (6 if TCP in ip else 17 if UDP in ip else 0) if plain else 0
    wanted = {(4, 6): TCP4, (4, 17): UDP4, (6, 6): TCP6, (6, 17): UDP6}.get((ip.version, top), 0)
    if types & wanted:
        at = 40 if ip.version == 6 else 20
        return toeplitz(key, addresses + wire[at : at + 4])
    return toeplitz(key, addresses) if types & (IP6 if ip.version == 6 else IP4) else None


def some_packet() -> bytes:
    """To the card: of any kind that has a hash, or has none."""
    ports = {"sport": random.getrandbits(16), "dport": random.getrandbits(16)}
    src, dst = random.getrandbits(32) | 1, random.getrandbits(32) | 1
    v4 = IP(src=f"10.{src >> 16 & 255}.{src >> 8 & 255}.{src & 255}", dst=f"10.{dst >> 16 & 255}.9.{dst & 255}")
    v6 = IPv6(src=f"fd00::{src & 0xFFFF:x}:1", dst=f"fd00:9::{dst & 0xFFFF:x}")
    top = random.choice([TCP(**ports), UDP(**ports), ICMP()])
    match random.randrange(8):
        case 0:
            return frames.to(CARD_MAC, frames.ethertype(0x88B5, random.randbytes(60)))
        case 1:
            return frames.to(CARD_MAC, frames.arp())
        case 2:
            v4.frag = 3
        case 3:
            v4.options = [IPOption_NOP()] * 4
    ip = v6 if random.random() < 0.4 and not isinstance(top, ICMP) else v4
    return frames.ethernet_padded(
        bytes(Ether(src=frames.PEER_MAC, dst=CARD_MAC) / ip / top / random.randbytes(random.choice([20, 300])))
    )


@cocotb.test(skip=PAIRS == 1)
async def packets_go_where_the_driver_says(dut) -> None:
    """RSS with any key, types and table: each packet of scapy's is in the queue that the hash says, also of frames close
    together."""
    bench = await Bench(dut, pairs=True).begin(buffers=0)
    for number in range(PAIRS):
        await bench.post(100, 2 * number)
    for turn in range(4):
        types = 0x3F if turn == 0 else random.getrandbits(6)
        key, table, unclassified = random.randbytes(40), [random.randrange(PAIRS) for _ in range(128)], turn % PAIRS
        config = rss_config(types, table, key, unclassified)
        assert await bench.driver.command(bytes([CTRL_MQ, RSS_CONFIG]) + config) == 0
        wires = [some_packet() for _ in range(40)]
        expected: dict[int, list[bytes]] = {number: [] for number in range(PAIRS)}
        for wire in wires:
            hash = hashed(types, key, Ether(wire))
            expected[unclassified if hash is None else table[hash % 128]].append(wire)
            bench.rx.send(wire)
        for number in range(PAIRS):
            for wire in expected[number]:
                assert (await bench.driver.received(2 * number)).frame == wire, Ether(wire)
        for number in range(PAIRS):
            assert receive(bench.driver.queues[2 * number]) is None
            await bench.post(len(expected[number]), 2 * number)


@cocotb.test()
async def a_driver_gets_no_more_than_the_operator_allows(dut) -> None:
    """Its own promiscuous mode and its table of addresses choose from what the card gets: frames for other stations come only
    where the operator has made the card promiscuous, and then only if the driver asks for them."""
    bench = Bench(dut)
    bench.driver.wanted |= 1 << F_CTRL_VQ | 1 << F_CTRL_RX
    await bench.begin()
    driver = bench.driver
    stranger, ours = frames.to("02:00:00:00:07:07", frames.tcp(b"x" * 50)), frames.to(CARD_MAC, frames.tcp(b"y" * 50))
    table = bytes([CTRL_MAC, MAC_TABLE_SET]) + mac_table([stranger[:6]], [])
    for operator in (0, 1):
        bench.set_card(promiscuous=operator)
        for command, asks in (
            (bytes([CTRL_RX, PROMISC, 0]), False),
            (bytes([CTRL_RX, PROMISC, 1]), True),
            (bytes([CTRL_RX, PROMISC, 0]), False),
            (table, True),
            (bytes([CTRL_MAC, MAC_TABLE_SET]) + mac_table([], []), False),
        ):
            assert await driver.command(command) == 0
            bench.rx.send(stranger)
            bench.rx.send(ours)
            for frame in [stranger] * (asks and operator) + [ours]:
                assert (await driver.received(0)).frame == frame
    await bench.none_received()


@cocotb.test()
async def a_driver_takes_no_address_that_is_not_free(dut) -> None:
    """An attack: it asks for the device's address and for another station's, and sends from them. Without `any_source` none of it
    works; with it the device's address stays the device's, also where the driver had another one before."""
    bench = Bench(dut)
    bench.driver.wanted |= 1 << F_CTRL_VQ | 1 << F_CTRL_RX | 1 << F_CTRL_MAC_ADDR
    await bench.begin()
    driver = bench.driver

    async def takes(mac: str) -> bool:
        return await driver.command(bytes([CTRL_MAC, MAC_ADDR_SET]) + frames.mac_bytes(mac)) == 0

    async def leaves(mac: str) -> bool:
        before = len(bench.on_line(OURS))
        await bench.send(of_card(60, mac))
        await driver.reap(1)
        await wait_cycles(dut, 200)
        return len(bench.on_line(OURS)) > before

    free = "02:00:00:00:07:07"
    for mac in (frames.MAC, free):
        assert not await takes(mac) and not await leaves(mac)
    assert await takes(CARD_MAC) and await leaves(CARD_MAC)
    bench.set_card(any_source=1)
    assert not await takes(frames.MAC) and not await leaves(frames.MAC)
    assert await takes(free) and await leaves(free)
    bench.rx.send(mine := frames.to(free, frames.tcp(b"x" * 50)))
    assert (await driver.received(0)).frame == mine
    bench.set_card()
    await wait_cycles(dut, 10)
    assert not await leaves(free) and await leaves(CARD_MAC)
    bench.rx.send(mine)
    await bench.none_received()
    bench.write(500)
    await bench.roce_is_whole()


def ports(width: int) -> dict[str, Any]:
    return {
        "open": Plain("input", "logic"),
        "local_addr": Plain("input", LOCAL),
        "link": Plain("input", LINK),
        "card": Plain("input", CARD),
        "link_up": Plain("input", "logic"),
        "rx": AxisSinkPort(width),
        "tx": AxisSourcePort(width),
        "frame": Source(FRAME_RX),
        "payload": AxisSourcePort(width),
        "roce": Sink(TX),
        "roce_payload": AxisSinkPort(width),
        "bus": AxilSlave(12),
        "mem": AxiMaster(width, id_width=5),
        "interrupt": Source("logic [15:0]"),
        "reset": Plain("input", "logic"),
        "reset_done": Plain("output", "logic"),
        "events": Plain("output", EVENTS),
        "idle": Plain("output", "logic"),
    }


@pytest.mark.parametrize("width, pairs", some([(64, 2), (512, 1)]))
def test_card_and_driver(width: int, pairs: int) -> None:
    run(
        "card_bench",
        __file__,
        params={"DATA_W": width, "PAIRS": pairs, "MTU": MTU},
        sources=[Path(__file__).parent / "card_bench.sv"],
        ports=ports(width),
        env={"WIDTH": str(width), "NACELLE_PAIRS": str(pairs)},
    )
