# SPDX-License-Identifier: Apache-2.0
"""mdns_responder: what it says when, whom it answers, and how little can be made of it by whoever asks for more."""

from __future__ import annotations

import random

import cocotb
import mdns_model as model
from cocotb.triggers import FallingEdge
from mdns_model import IN, MAC, QU, SERVICE, A, host, known, query, question
from nacelle_tb.bench import Plain, Sink, Source, run
from nacelle_tb.long import alternately
from nacelle_tb.streams import StreamSink, StreamSource, pulses, start, wait_cycles
from nacelle_tb.svtypes import struct

RX, TX, WORD = "services_pkg::service_rx_t", "services_pkg::service_tx_t", "services_pkg::service_word_t"
LOCAL, EVENTS = "packet_pkg::local_addr_t", "mdns_pkg::mdns_events_t"
IP, NEXT_IP, ASKER, ASKER_MAC = "10.0.0.2", "10.0.0.77", "10.0.0.9", 0x020000000009
GROUP, GROUP_MAC = "224.0.0.251", 0x01005E0000FB
PORT, TICKS = 12345, 16
ANSWER_BYTES = 205


def number(ip: str) -> int:
    return int.from_bytes(bytes(map(int, ip.split("."))), "big")


class Bench:
    """The module, with a clock of its own, and everything that it sends."""

    def __init__(self, dut, stall: float = 0.0) -> None:
        self.dut = dut
        self.message = StreamSource(dut, "message", RX, stall)
        self.words = StreamSource(dut, "words", WORD, stall)
        self.response = StreamSink(dut, "response", TX, stall)
        self.response_words = StreamSink(dut, "response_words", WORD, stall)
        self.counts = dict.fromkeys(struct(EVENTS).fields, 0)

    async def start(self, ip: str = IP) -> Bench:
        for name in ("tick", "leaving", "offered_valid", "offered", "offered_first"):
            getattr(self.dut, name).value = 0
        self.dut.enable.value = 1
        self.dut.port.value = PORT
        self._address(ip)
        await start(self.dut)
        cocotb.start_soon(self._count())
        await self.settled()
        return self

    def _address(self, ip: str, enable: bool = True) -> None:
        local = {"enable": int(enable), "mac": int(MAC.replace(":", ""), 16), "ip": number(ip), "prefix_length": 24, "mdns": 1}
        self.dut.local_addr.value = struct(LOCAL).pack(local)

    async def _count(self) -> None:
        events = struct(EVENTS)
        async for word in pulses(self.dut.clk, self.dut.events):
            for name, value in vars(events.unpack(word)).items():
                self.counts[name] += value

    async def address(self, ip: str) -> None:
        await FallingEdge(self.dut.clk)
        self._address(ip)
        await self.settled()

    async def set(self, name: str, value: int) -> None:
        await FallingEdge(self.dut.clk)
        getattr(self.dut, name).value = value
        await self.settled()

    async def settled(self) -> None:
        await wait_cycles(self.dut, 6)
        while not int(self.dut.idle.value):
            await wait_cycles(self.dut, 4)
        await wait_cycles(self.dut, 4)

    async def ticks(self, count: int) -> None:
        """Time passes, in sixteenths of a second."""
        for _ in range(count):
            await FallingEdge(self.dut.clk)
            self.dut.tick.value = 1
            await FallingEdge(self.dut.clk)
            self.dut.tick.value = 0
            await self.settled()

    async def offer(self, packet: bytes, ip: str = ASKER, port: int = 5353) -> bool:
        """Whether a message would be taken."""
        await FallingEdge(self.dut.clk)
        record = {"service": 2, "mac": ASKER_MAC, "ip": number(ip), "port": port, "length": len(packet)}
        self.dut.offered.value = struct(RX).pack(record)
        self.dut.offered_first.value = int.from_bytes(packet[:8].ljust(8, b"\0"), "big")
        self.dut.offered_valid.value = 1
        await FallingEdge(self.dut.clk)
        self.dut.offered_valid.value = 0
        admitted = bool(int(self.dut.admitted.value))
        if admitted:
            self.message.send(**record)
            padded = packet + bytes(-len(packet) % 4)
            for at in range(0, len(padded), 4):
                self.words.send(last=at + 4 == len(padded), data=int.from_bytes(padded[at : at + 4], "big"))
        return admitted

    async def ask(self, *questions: bytes, **options: object) -> bool:
        taken = await self.offer(query(*questions), **options)
        await self.words.drained()
        await self.settled()
        return taken

    async def said(self, ip: str = IP, goodbye: bool = False) -> list[str]:
        """To whom it has spoken, since the last time."""
        found = []
        while self.response.received:
            record = await self.response.recv()
            assert (record.from_ip, record.from_port, record.port, record.ttl) == (number(ip), 5353, 5353, 255)
            assert record.length == ANSWER_BYTES
            data = b""
            while True:
                word = await self.response_words.recv()
                data += word.data.to_bytes(4, "big")
                if word.last:
                    break
            assert len(data) == -(-ANSWER_BYTES // 4) * 4
            assert model.records(data[:ANSWER_BYTES]) == model.expected(ip, PORT, goodbye=goodbye)
            to = {(GROUP_MAC, number(GROUP)): "group", (ASKER_MAC, number(ASKER)): "asker"}
            found.append(to[record.mac, record.ip])
        assert not self.response_words.received
        return found

    async def rest(self) -> None:
        """The announcements are over, and a message to the group is permitted."""
        await self.ticks(4 * TICKS)
        await self.said()


BROWSE, BROWSE_QU = question(SERVICE), question(SERVICE, qclass=IN | QU)


@cocotb.test()
@cocotb.parametrize(stall=alternately([0.0, 0.4]))
async def two_announcements_a_second_apart(dut, stall: float) -> None:
    bench = await Bench(dut, stall).start()
    assert await bench.said() == ["group"]
    await bench.ticks(TICKS)
    assert await bench.said() == [], "a second has to pass, and the first tick may have come at once"
    await bench.ticks(1)
    assert await bench.said() == ["group"]
    await bench.ticks(200 * TICKS)
    assert await bench.said() == []
    assert bench.counts["mdns_sent"] == 2


@cocotb.test()
async def a_new_address_is_announced(dut) -> None:
    """Twice, and at once if the last message is a second old; without one nothing is said."""
    bench = await Bench(dut).start("0.0.0.0")
    await bench.ask(BROWSE, ip="0.0.0.9")
    await bench.ticks(40)
    assert await bench.said() == []
    await bench.address(IP)
    assert await bench.said() == ["group"]
    await bench.ticks(TICKS + 1)
    assert await bench.said() == ["group"]
    await bench.ticks(TICKS + 1)
    await bench.address(NEXT_IP)
    assert await bench.said(NEXT_IP) == ["group"]
    await bench.ticks(TICKS + 1)
    assert await bench.said(NEXT_IP) == ["group"]
    await bench.ticks(100)
    assert await bench.said(NEXT_IP) == []


@cocotb.test()
async def goodbye(dut) -> None:
    """When the address is about to go, or the register says so; nothing more is said until it comes back."""
    for name, gone, back in (("leaving", 1, 0), ("enable", 0, 1)):
        bench = await Bench(dut).start()
        await bench.rest()
        await bench.set(name, gone)
        assert await bench.said(goodbye=True) == ["group"]
        await bench.ask(BROWSE)
        await bench.ticks(50)
        assert await bench.said() == []
        await bench.set(name, back)
        assert await bench.said() == ["group"]
        await bench.ticks(50)
        assert await bench.said() == ["group"]
    # So it is when the device is switched off.
    bench._address(IP, enable=False)
    await bench.settled()
    assert await bench.said(goodbye=True) == ["group"]
    await bench.address(IP)
    assert await bench.said() == ["group"]
    # A change: first a goodbye to the old address, and no wait before the new one.
    await bench.rest()
    await bench.set("leaving", 1)
    assert await bench.said(goodbye=True) == ["group"]
    bench._address(NEXT_IP)
    await bench.set("leaving", 0)
    assert await bench.said(NEXT_IP) == ["group"]


@cocotb.test()
@cocotb.parametrize(stall=alternately([0.0, 0.4]))
async def answers_to_the_group(dut, stall: float) -> None:
    """After 62 to 125 ms, and not more than one a second, however many ask."""
    bench = await Bench(dut, stall).start()
    await bench.rest()
    assert await bench.ask(BROWSE)
    assert await bench.said() == []
    await bench.ticks(1)
    assert await bench.said() == []
    await bench.ticks(1)
    assert await bench.said() == ["group"]
    assert await bench.ask(question(host(), A))
    await bench.ticks(TICKS)
    assert await bench.said() == []
    await bench.ticks(1)
    assert await bench.said() == ["group"]
    for _ in range(4 * TICKS):
        assert await bench.ask(BROWSE)
        await bench.ticks(1)
    assert len(await bench.said()) in (3, 4)
    await bench.rest()
    assert await bench.offer(query(BROWSE, answers=(known(),)))
    await bench.ticks(2 * TICKS)
    assert await bench.said() == []


@cocotb.test()
async def answers_to_one_host(dut) -> None:
    bench = await Bench(dut).start()
    await bench.rest()
    assert await bench.ask(BROWSE_QU)
    assert await bench.said() == ["asker"]
    # No two in a tick: the group hears the second, which serves all that ask.
    for _ in range(20):
        assert await bench.ask(BROWSE_QU)
    assert await bench.said() == []
    await bench.ticks(2)
    assert await bench.said() == ["group"]
    for _ in range(10):
        await bench.ticks(1)
        assert await bench.ask(BROWSE_QU)
    assert await bench.said() == ["asker"] * 10
    # What the group has not heard for 30 s it is told.
    await bench.ticks(30 * TICKS)
    assert await bench.ask(BROWSE_QU)
    assert await bench.said() == []
    await bench.ticks(2)
    assert await bench.said() == ["group"]
    await bench.ticks(30 * TICKS - 1)
    assert await bench.ask(BROWSE_QU)
    assert await bench.said() == ["asker"]
    # Nor is it forgotten how long ago that is.
    await bench.ticks(10 * TICKS)
    assert await bench.ask(BROWSE_QU)
    assert await bench.said() == []
    await bench.ticks(2)
    assert await bench.said() == ["group"]


@cocotb.test()
async def what_is_ignored(dut) -> None:
    bench = await Bench(dut).start()
    await bench.rest()
    good = query(BROWSE)
    for packet, options in (
        (good, {"ip": "10.0.1.9"}),  # another network
        (good, {"ip": "192.168.0.9"}),
        (good, {"port": 5354}),
        (good, {"port": 53}),
        (query(BROWSE, flags=0x8400), {}),  # an answer
        (query(BROWSE, flags=0x2800), {}),  # an update
        (query(answers=(known(),)), {}),  # no question
    ):
        before = bench.counts["mdns_other"]
        assert not await bench.offer(packet, **options)
        await wait_cycles(dut, 4)
        assert bench.counts["mdns_other"] == before + 1
    assert await bench.ask(question("_ipp._tcp.local"))
    before = bench.counts["drop_mdns"]
    assert await bench.offer(good[:-1])
    await bench.words.drained()
    await bench.settled()
    assert bench.counts["drop_mdns"] == before + 1
    await bench.ticks(4 * TICKS)
    assert await bench.said() == [] and bench.counts["mdns_query"] == 0


@cocotb.test()
async def one_query_at_a_time(dut) -> None:
    """The next one when this one was read, or some time later if it never came."""
    bench = await Bench(dut).start()
    await bench.rest()
    assert await bench.offer(query(BROWSE))
    for _ in range(5):
        assert not await bench.offer(query(BROWSE))
    await bench.words.drained()
    await bench.settled()
    assert bench.counts["mdns_busy"] == 5
    assert await bench.ask(BROWSE)
    bench.message.send = lambda **_: None  # dropped on its way
    bench.words.send = lambda **_: None
    assert await bench.offer(query(BROWSE))
    await wait_cycles(dut, 4000)
    assert not await bench.offer(query(BROWSE))
    await wait_cycles(dut, 200)
    assert await bench.offer(query(BROWSE))


@cocotb.test()
async def how_much_can_be_made_of_it(dut) -> None:
    """Queries without end, of every kind: 16 answers a second to hosts and one to the group are all that is sent; a query gives one
    answer, six times as long as itself at most."""
    bench = await Bench(dut).start()
    await bench.rest()
    seconds, shortest = 4, query(question(SERVICE, qclass=IN | QU))
    assert ANSWER_BYTES <= 6 * len(shortest)
    for _ in range(seconds * TICKS):
        for _ in range(20):
            await bench.offer(random.choice([shortest, query(BROWSE), query(question(host(), A)), random.randbytes(50)]))
            await bench.words.drained()
            await bench.settled()
        await bench.ticks(1)
    said = await bench.said()
    assert said.count("asker") <= seconds * TICKS and said.count("group") <= seconds
    assert said.count("asker") >= seconds * TICKS - 4, "they are bounded, not gone"


def test_mdns_responder() -> None:
    run(
        "mdns_responder",
        __file__,
        ports={
            "tick": Plain("input", "logic"),
            "enable": Plain("input", "logic"),
            "local_addr": Plain("input", LOCAL),
            "leaving": Plain("input", "logic"),
            "port": Plain("input", "logic [15:0]"),
            "offered_valid": Plain("input", "logic"),
            "offered": Plain("input", RX),
            "offered_first": Plain("input", "logic [63:0]"),
            "admitted": Plain("output", "logic"),
            "message": Sink(RX),
            "words": Sink(WORD),
            "response": Source(TX),
            "response_words": Source(WORD),
            "events": Plain("output", EVENTS),
            "idle": Plain("output", "logic"),
        },
    )
