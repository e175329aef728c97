# SPDX-License-Identifier: Apache-2.0
"""arp: answers, asks, learns, forgets; every question is answered, in order and in bounded time. Frames by scapy."""

import itertools
import random

import cocotb
import packet_frames as frames
from nacelle_tb.bench import Plain, Sink, Source, run
from nacelle_tb.streams import StreamSink, StreamSource, start, wait_cycles
from nacelle_tb.svtypes import constant, struct
from scapy.layers.l2 import ARP, Ether

RX, TX = "packet_pkg::frame_rx_t", "packet_pkg::frame_tx_t"
QUERY, ANSWER = "packet_pkg::ipv4_addr_t", "packet_pkg::arp_answer_t"
LOCAL = "packet_pkg::local_addr_t"
ENTRIES, TRIES, TRY_CYCLES, EXPIRY_CYCLES = 8, 3, 1000, 50_000
START = 2**48 - 500  # the time wraps during every test
HEADER = constant("packet_pkg::HDR_BYTES")


def host(n: int) -> tuple[str, str]:
    return f"02:00:00:00:01:{n:02x}", f"10.0.0.{n}"


class Bench:
    """The module, and a network that a test plays by hand. `now` runs with the clock, or jumps when told."""

    def __init__(self, dut, stall: float = 0.0) -> None:
        self.dut = dut
        self.rx = StreamSource(dut, "rx", RX, stall)
        self.tx = StreamSink(dut, "tx", TX, stall)
        self.query = StreamSource(dut, "query", QUERY, stall)
        self.answer = StreamSink(dut, "answer", ANSWER, stall)
        self.now = START
        dut.now.value = START

    async def start(self, announced: bool = True, **local: object) -> "Bench":
        self.local = frames.local_addr(**local)
        self.dut.local_addr.value = struct(LOCAL).pack(self.local)
        await start(self.dut)
        cocotb.start_soon(self._tick())
        if announced:
            await self.sent()
        return self

    async def _tick(self) -> None:
        while True:
            await wait_cycles(self.dut, 1)
            self.now = (self.now + 1) % 2**48
            self.dut.now.value = self.now

    def receive(self, frame: bytes) -> None:
        self.rx.send(cls=constant("packet_pkg::CLASS_ARP"), hdr=int.from_bytes(frame[:42].ljust(HEADER, b"\xaa"), "big"))

    async def sent(self) -> Ether:
        got = await self.tx.recv()
        assert (got.hdr_length, got.payload_length, got.pad, got.icrc) == (42, 0, 0, 0)
        frame = Ether(got.hdr.to_bytes(HEADER, "big")[:42])
        assert frame.src == frames.MAC
        return frame

    def ask(self, ip: str) -> None:
        self.query.send(int.from_bytes(frames.ip_bytes(ip), "big"))

    async def answered(self) -> str | None:
        got = await self.answer.recv()
        return got.mac.to_bytes(6, "big").hex(":") if got.found else None

    async def resolve(self, ip: str) -> str | None:
        self.ask(ip)
        return await self.answered()

    async def quiet(self) -> None:
        await self.rx.drained()
        await wait_cycles(self.dut, 2 * ENTRIES + 20)
        assert not self.tx.received
        assert int(self.dut.idle.value) == 1


def is_request_for(frame: Ether, ip: str) -> bool:
    return (
        frame.dst == "ff:ff:ff:ff:ff:ff" and frame[ARP].op == 1 and frame[ARP].pdst == ip and frame[ARP].psrc == frames.IP_ADDRESS
    )


@cocotb.test()
async def announces_itself(dut) -> None:
    bench = await Bench(dut).start(announced=False)
    assert is_request_for(await bench.sent(), frames.IP_ADDRESS)
    await bench.quiet()


@cocotb.test()
@cocotb.parametrize(stall=[0.0, 0.5])
async def answers_a_request_and_learns_from_it(dut, stall: float) -> None:
    bench = await Bench(dut, stall).start()
    mac, ip = host(7)
    bench.receive(frames.arp(hwsrc=mac, psrc=ip))
    reply = await bench.sent()
    assert bytes(reply) == bytes(
        Ether(dst=mac, src=frames.MAC) / ARP(op=2, hwsrc=frames.MAC, psrc=frames.IP_ADDRESS, hwdst=mac, pdst=ip)
    )
    assert await bench.resolve(ip) == mac
    await bench.quiet()


@cocotb.test()
async def asks_and_takes_the_reply(dut) -> None:
    bench = await Bench(dut).start()
    mac, ip = host(9)
    bench.ask(ip)
    assert is_request_for(await bench.sent(), ip)
    await bench.quiet()  # idle while it waits
    bench.receive(frames.arp(op=2, hwsrc=mac, psrc=ip, dst=frames.MAC))
    assert await bench.answered() == mac
    assert await bench.resolve(ip) == mac
    await bench.quiet()


@cocotb.test()
async def gives_up_after_three_tries(dut) -> None:
    bench = await Bench(dut).start()
    _, ip = host(9)
    bench.ask(ip)
    times = []
    for _ in range(TRIES):
        assert is_request_for(await bench.sent(), ip)
        times.append(bench.now)
        # Other traffic goes on meanwhile.
        bench.receive(frames.arp(hwsrc=host(3)[0], psrc=host(3)[1]))
        assert (await bench.sent())[ARP].op == 2
    assert await bench.answered() is None
    assert (bench.now - times[0]) % 2**48 < TRIES * TRY_CYCLES + 100
    assert all(abs((b - a) % 2**48 - TRY_CYCLES) < 20 for a, b in itertools.pairwise(times))
    await bench.quiet()


@cocotb.test()
async def time_may_jump(dut) -> None:
    bench = await Bench(dut).start()
    bench.ask(host(9)[1])
    for _ in range(TRIES):
        await bench.sent()
        bench.now = (bench.now + 10 * TRY_CYCLES) % 2**48
    assert await bench.answered() is None
    await bench.quiet()


@cocotb.test()
async def questions_are_answered_in_order(dut) -> None:
    bench = await Bench(dut, 0.3).start()
    for n in (1 + 10, 2 + 10, 3 + 10):
        bench.ask(host(n)[1])
    for n in (1 + 10, 2 + 10, 3 + 10):
        mac, ip = host(n)
        assert is_request_for(await bench.sent(), ip)
        if n != 12:
            bench.receive(frames.arp(op=2, hwsrc=mac, psrc=ip, dst=frames.MAC))
        else:
            for _ in range(TRIES - 1):
                await bench.sent()
        assert await bench.answered() == (None if n == 12 else mac)
    await bench.quiet()


@cocotb.test()
async def the_gateway_reaches_other_networks(dut) -> None:
    bench = await Bench(dut).start(gateway="10.0.0.254")
    mac, gateway = host(254)
    bench.ask("8.8.8.8")
    assert is_request_for(await bench.sent(), gateway)
    bench.receive(frames.arp(op=2, hwsrc=mac, psrc=gateway, dst=frames.MAC))
    assert await bench.answered() == mac
    assert await bench.resolve("10.0.1.1") == mac
    await bench.quiet()


@cocotb.test()
async def without_a_gateway_other_networks_are_not_found(dut) -> None:
    bench = await Bench(dut).start()
    assert await bench.resolve("10.0.1.1") is None
    await bench.quiet()


@cocotb.test()
async def entries_expire(dut) -> None:
    bench = await Bench(dut).start()
    mac, ip = host(5)
    bench.receive(frames.arp(hwsrc=mac, psrc=ip))
    await bench.sent()
    bench.now = (bench.now + EXPIRY_CYCLES - 500) % 2**48
    assert await bench.resolve(ip) == mac
    bench.now = (bench.now + 1000) % 2**48
    bench.ask(ip)
    assert is_request_for(await bench.sent(), ip)


@cocotb.test()
async def learns_only_what_it_should(dut) -> None:
    bench = await Bench(dut).start()
    mac, ip = host(5)
    other = host(77)[0]
    bench.receive(frames.arp(hwsrc=mac, psrc=ip, pdst="10.0.0.99"))  # between others: not learned
    bench.receive(frames.arp(hwsrc=mac, psrc="0.0.0.0", pdst="10.0.0.99"))
    bench.receive(frames.arp(op=2, hwsrc=other, psrc=frames.IP_ADDRESS))  # somebody claims our address
    await bench.quiet()
    bench.receive(frames.arp(hwsrc=mac, psrc=ip))
    await bench.sent()
    bench.receive(frames.arp(hwsrc=other, psrc=ip, pdst=ip))  # known host moves: learned from its announcement
    await bench.quiet()
    assert await bench.resolve(ip) == other
    # A probe for our address is answered (RFC 5227), and not learned.
    bench.receive(frames.arp(hwsrc=mac, psrc="0.0.0.0"))
    assert (await bench.sent())[ARP].hwdst == mac
    await bench.quiet()


@cocotb.test()
async def a_full_cache_makes_room(dut) -> None:
    bench = await Bench(dut).start()
    for n in range(1, 3 * ENTRIES):
        mac, ip = host(n + 20)
        bench.receive(frames.arp(hwsrc=mac, psrc=ip))
        await bench.sent()
        assert await bench.resolve(ip) == mac
    kept = random.sample(range(2 * ENTRIES, 3 * ENTRIES), ENTRIES // 2)
    for n in kept:
        mac, ip = host(n + 20)
        assert await bench.resolve(ip) == mac
    await bench.quiet()


def test_arp() -> None:
    run(
        "arp",
        __file__,
        params={"ENTRIES": ENTRIES, "TRIES": TRIES, "TRY_CYCLES": TRY_CYCLES, "EXPIRY_CYCLES": EXPIRY_CYCLES},
        ports={
            "now": Plain("input", "logic [47:0]"),
            "local_addr": Plain("input", LOCAL),
            "rx": Sink(RX),
            "tx": Source(TX),
            "query": Sink(QUERY),
            "answer": Source(ANSWER),
            "idle": Plain("output", "logic"),
        },
    )
