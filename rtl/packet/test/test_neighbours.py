# SPDX-License-Identifier: Apache-2.0
"""neighbours: replies, requests, and the life of cache entries; every query is answered at once, in order, whatever frames
arrive. Frames by scapy."""

import itertools
import random

import cocotb
import packet_frames as frames
from nacelle_tb.bench import Plain, Sink, Source, run
from nacelle_tb.long import alternately
from nacelle_tb.record import FRAME_RX, record
from nacelle_tb.streams import StreamSink, StreamSource, start, wait_cycles
from nacelle_tb.svtypes import constant, struct
from scapy.layers.inet6 import ICMPv6ND_NA, ICMPv6ND_NS, ICMPv6ND_RS, ICMPv6NDOptDstLLAddr, ICMPv6NDOptSrcLLAddr, IPv6
from scapy.layers.l2 import ARP, Ether

RX, TX = FRAME_RX, "packet_pkg::frame_tx_t"
CLAIM, WATCH, ND_WATCH = "packet_pkg::arp_claim_t", "packet_pkg::arp_watch_t", "packet_pkg::nd_watch_t"
QUERY, ANSWER = "packet_pkg::ip_addr_t", "packet_pkg::arp_answer_t"
LOCAL = "packet_pkg::local_addr_t"
ENTRIES, QUEUE, REQUEST_CYCLES, EXPIRY_CYCLES = 8, 16, 1000, 50_000
AT_ONCE = 4 * ENTRIES + 10  # cycles from a question to its answer
START = 2**48 - 500  # the time wraps during every test
HEADER = constant("packet_pkg::HDR_BYTES")


def host(n: int) -> tuple[str, str]:
    return f"02:00:00:00:01:{n:02x}", f"10.0.0.{n}"


class Bench:
    """The module, and a network whose frames the test sends. `now` runs with the clock, or jumps on request."""

    def __init__(self, dut, stall: float = 0.0) -> None:
        self.dut = dut
        self.rx = StreamSource(dut, "rx", RX, stall)
        self.tx = StreamSink(dut, "tx", TX, stall)
        self.query = StreamSource(dut, "query", QUERY, stall)
        self.answer = StreamSink(dut, "answer", ANSWER, stall)
        self.claim = StreamSource(dut, "claim", CLAIM, stall)
        dut.watch.value = dut.nd_watch.value = 0
        dut.answers.value = 1
        self.drops = self.conflicts = self.nd_conflicts = self.malformed = 0
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
            self.drops += int(self.dut.drop_overflow.value)
            self.conflicts += int(self.dut.conflict.value)
            self.nd_conflicts += int(self.dut.nd_conflict.value)
            self.malformed += int(self.dut.drop_malformed.value)

    def set(self, **local: object) -> None:
        """The device's address changes."""
        self.local = frames.local_addr(**local)
        self.dut.local_addr.value = struct(LOCAL).pack(self.local)

    def jump(self, cycles: int) -> None:
        self.now = (self.now + cycles) % 2**48

    def receive(self, frame: bytes) -> None:
        self.rx.send(record("ARP" if frame[12:14] == b"\x08\x06" else "ND", frame, 0))

    async def sent6(self) -> Ether:
        """A message of neighbour discovery; its checksum is checked."""
        got = await self.tx.recv()
        assert (got.payload_length, got.pad, got.icrc) == (0, 0, 0)
        frame = Ether(got.hdr.to_bytes(HEADER, "big")[: got.hdr_length])
        assert frame.src == frames.MAC and (frame[IPv6].hlim, frame[IPv6].nh, frame[IPv6].tc, frame[IPv6].fl) == (255, 58, 0, 0)
        assert got.hdr_length == 54 + frame[IPv6].plen
        pseudo = (
            frames.ip6_bytes(frame[IPv6].src) + frames.ip6_bytes(frame[IPv6].dst) + bytes([0, 0, 0, frame[IPv6].plen, 0, 0, 0, 58])
        )
        assert frames.ones_sum(pseudo + bytes(frame)[54:]) == 0xFFFF
        group = frame[IPv6].dst.startswith("ff")
        assert not group or frame.dst == frames.mac_of_group(frame[IPv6].dst)
        return frame

    async def sent(self) -> Ether:
        got = await self.tx.recv()
        assert (got.hdr_length, got.payload_length, got.pad, got.icrc) == (42, 0, 0, 0)
        frame = Ether(got.hdr.to_bytes(HEADER, "big")[:42])
        assert frame.src == frames.MAC
        return frame

    def ask(self, ip: str) -> None:
        self.query.send(frames.ip_number(ip))

    async def answered(self, cycles: int = 20_000) -> str | None:
        got = await self.answer.recv(cycles)
        return got.mac.to_bytes(6, "big").hex(":") if got.found else None

    async def resolve(self, ip: str) -> str | None:
        self.ask(ip)
        return await self.answered()

    async def quiet(self) -> None:
        await self.rx.drained()
        for _ in range(QUEUE + 2):
            await wait_cycles(self.dut, AT_ONCE)
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
@cocotb.parametrize(stall=alternately([0.0, 0.5]))
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
async def a_host_that_answers_is_left_to_it(dut) -> None:
    """Where the host of the network card answers, the device does not; it learns all the same, and asks for itself."""
    bench = await Bench(dut).start(ipv6=True)
    dut.answers.value = 0
    mac, ip = host(7)
    bench.receive(frames.arp(hwsrc=mac, psrc=ip))
    bench.receive(frames.solicitation(frames.GLOBAL, src=frames.PEER_GLOBAL))
    await wait_cycles(dut, 4 * AT_ONCE)
    assert await bench.resolve(ip) == mac
    assert await bench.resolve(frames.PEER_GLOBAL) == frames.PEER_MAC
    await bench.quiet()
    _, other = host(8)
    assert await bench.resolve(other) is None
    assert is_request_for(await bench.sent(), other)


@cocotb.test()
async def asks_and_takes_the_reply(dut) -> None:
    bench = await Bench(dut).start()
    mac, ip = host(9)
    assert await bench.resolve(ip) is None
    assert is_request_for(await bench.sent(), ip)
    await bench.quiet()  # idle while the network has not answered
    bench.receive(frames.arp(op=2, hwsrc=mac, psrc=ip, dst=frames.MAC))
    await bench.quiet()
    assert await bench.resolve(ip) == mac
    await bench.quiet()


@cocotb.test()
async def a_target_is_requested_now_and_then(dut) -> None:
    """However often it is queried; and each query is answered at once."""
    bench = await Bench(dut).start()
    _, ip = host(9)
    requested = []
    begin = bench.now
    while (bench.now - begin) % 2**48 < 5 * REQUEST_CYCLES:
        bench.ask(ip)
        assert await bench.answered(AT_ONCE) is None
        await wait_cycles(dut, 60)
        while bench.tx.received:
            assert is_request_for(await bench.sent(), ip)
            requested.append(bench.now)
    gaps = [(b - a) % 2**48 for a, b in itertools.pairwise(requested)]
    assert len(requested) == 5 and all(REQUEST_CYCLES - 100 < gap < REQUEST_CYCLES + 200 for gap in gaps)
    await bench.quiet()


@cocotb.test()
@cocotb.parametrize(stall=alternately([0.0, 0.3]))
async def targets_are_resolved_side_by_side(dut, stall: float) -> None:
    """Unresolvable addresses do not delay others; queries are answered in order, ARP replies come in any order."""
    bench = await Bench(dut, stall).start()
    numbers = range(11, 11 + ENTRIES)
    for n in numbers:
        bench.ask(host(n)[1])
    for n in numbers:
        assert await bench.answered() is None
        assert is_request_for(await bench.sent(), host(n)[1])
    alive = random.sample(numbers, ENTRIES // 2)
    for n in alive:
        mac, ip = host(n)
        bench.receive(frames.arp(op=2, hwsrc=mac, psrc=ip, dst=frames.MAC))
    await bench.quiet()
    for n in numbers:
        bench.ask(host(n)[1])
    for n in numbers:
        assert await bench.answered() == (host(n)[0] if n in alive else None)
    await bench.quiet()


@cocotb.test()
async def more_targets_than_entries(dut) -> None:
    """A new request replaces the oldest; other hosts' entries do not evict requested ones, nor the reverse."""
    bench = await Bench(dut).start()
    for n in range(ENTRIES):
        bench.receive(frames.arp(hwsrc=host(200 + n)[0], psrc=host(200 + n)[1]))
        await bench.sent()
    for n in range(3 * ENTRIES):
        assert await bench.resolve(host(20 + n)[1]) is None
        assert is_request_for(await bench.sent(), host(20 + n)[1])
    mac, ip = host(20 + 3 * ENTRIES - 1)
    bench.receive(frames.arp(op=2, hwsrc=mac, psrc=ip, dst=frames.MAC))
    for n in range(ENTRIES):
        assert await bench.resolve(host(200 + n)[1]) == host(200 + n)[0]
    for n in range(3 * ENTRIES):
        bench.receive(frames.arp(hwsrc=host(100 + n)[0], psrc=host(100 + n)[1]))
        await bench.sent()
    assert await bench.resolve(ip) == mac
    await bench.quiet()


@cocotb.test()
async def others_do_not_keep_out_frames_for_us(dut) -> None:
    """However many frames between others come, requests for our address among them are answered."""
    bench = await Bench(dut).start()
    for n in range(20 * QUEUE):
        sender = "0.0.0.0" if n % 3 == 0 else host(n % 200)[1]
        bench.receive(frames.arp(hwsrc=host(n % 200)[0], psrc=sender, pdst="10.0.0.99"))
        if n % 20 == 19:
            bench.receive(frames.arp(hwsrc=host(n % 200)[0], psrc=host(n % 200)[1]))
    await bench.rx.drained()
    for n in range(19, 20 * QUEUE, 20):
        assert (await bench.sent())[ARP].pdst == host(n % 200)[1]
    assert bench.drops > 5 * QUEUE
    await bench.quiet()


@cocotb.test()
async def a_flood_holds_up_nobody(dut) -> None:
    """Frames that come faster than they can be dealt with, for us and of others: none waits outside, what is too much is counted,
    and questions are answered at once."""
    bench = await Bench(dut).start()
    mac, ip = host(9)
    assert await bench.resolve(ip) is None
    await bench.sent()
    bench.receive(frames.arp(op=2, hwsrc=mac, psrc=ip, dst=frames.MAC))
    await bench.quiet()
    flood = 500
    for n in range(flood):
        target = random.choice(["10.0.0.99", frames.IP_ADDRESS])
        bench.receive(frames.arp(hwsrc=host(n % 100)[0], psrc=f"10.0.1.{n % 256}", pdst=target))
    begin = bench.now
    while bench.rx.busy:
        bench.ask(ip)
        assert await bench.answered(AT_ONCE) == mac
        await wait_cycles(dut, 5)
    assert (bench.now - begin) % 2**48 < flood + 2 * AT_ONCE, "one each cycle is taken"
    await wait_cycles(dut, QUEUE * AT_ONCE)
    assert 0 < flood - bench.drops < flood // 4 and len(bench.tx.received) <= flood - bench.drops
    bench.tx.received.clear()
    await bench.quiet()


@cocotb.test()
async def the_gateway_reaches_other_networks(dut) -> None:
    bench = await Bench(dut).start(gateway="10.0.0.254")
    mac, gateway = host(254)
    assert await bench.resolve("8.8.8.8") is None
    assert is_request_for(await bench.sent(), gateway)
    bench.receive(frames.arp(op=2, hwsrc=mac, psrc=gateway, dst=frames.MAC))
    await bench.quiet()
    assert await bench.resolve("8.8.8.8") == mac
    assert await bench.resolve("10.0.1.1") == mac
    await bench.quiet()


@cocotb.test()
async def without_a_gateway_other_networks_are_not_found(dut) -> None:
    bench = await Bench(dut).start()
    assert await bench.resolve("10.0.1.1") is None
    await bench.quiet()


@cocotb.test()
@cocotb.parametrize(asked=[False, True])
async def entries_expire(dut, asked: bool) -> None:
    bench = await Bench(dut).start()
    mac, ip = host(5)
    if asked:
        assert await bench.resolve(ip) is None
        assert is_request_for(await bench.sent(), ip)
    bench.receive(frames.arp(op=2, hwsrc=mac, psrc=ip))
    await wait_cycles(dut, 2 * AT_ONCE)
    bench.jump(EXPIRY_CYCLES - 500)
    assert await bench.resolve(ip) == mac
    bench.jump(1000)
    assert await bench.resolve(ip) is None
    assert is_request_for(await bench.sent(), ip)


@cocotb.test()
@cocotb.parametrize(later=[2**47 - 1000, 2**47, 2**47 + 2 * EXPIRY_CYCLES, 2**48 - 10 * EXPIRY_CYCLES])
async def expired_entries_never_come_back(dut, later: int) -> None:
    """Not even when more than half of the time's range has passed since, or all of it."""
    bench = await Bench(dut).start()
    mac, ip = host(5)
    bench.receive(frames.arp(hwsrc=mac, psrc=ip))
    await bench.sent()
    bench.jump(later)
    await wait_cycles(dut, 2)
    assert await bench.resolve(ip) is None
    assert is_request_for(await bench.sent(), ip)
    await wait_cycles(dut, 2 * ENTRIES)
    bench.receive(frames.arp(hwsrc=mac, psrc=ip))
    await bench.sent()
    assert await bench.resolve(ip) == mac
    bench.jump(2 * EXPIRY_CYCLES)
    await wait_cycles(dut, 2 * ENTRIES + 2)
    bench.jump(-2 * EXPIRY_CYCLES)  # as if all of the range had passed
    assert await bench.resolve(ip) is None


@cocotb.test()
async def learns_only_what_it_should(dut) -> None:
    bench = await Bench(dut).start()
    mac, ip = host(5)
    other = host(77)[0]
    bench.receive(frames.arp(hwsrc=mac, psrc=ip, pdst="10.0.0.99"))  # between others: not learned
    bench.receive(frames.arp(hwsrc=mac, psrc="0.0.0.0", pdst="10.0.0.99"))
    bench.receive(frames.arp(op=2, hwsrc=other, psrc=frames.IP_ADDRESS))  # another host claims our address
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


@cocotb.test()
async def another_address_is_announced_and_the_rest_forgotten(dut) -> None:
    bench = await Bench(dut).start()
    mac, ip = host(5)
    bench.receive(frames.arp(hwsrc=mac, psrc=ip))
    await bench.sent()
    assert await bench.resolve(ip) == mac
    bench.set(ip="10.0.0.44")
    announcement = await bench.sent()
    assert (announcement[ARP].psrc, announcement[ARP].pdst, announcement[ARP].op) == ("10.0.0.44", "10.0.0.44", 1)
    assert await bench.resolve(ip) is None
    assert (await bench.sent())[ARP].psrc == "10.0.0.44"
    bench.receive(frames.arp(hwsrc=mac, psrc=ip))  # asks for the old address
    await bench.quiet()
    bench.receive(frames.arp(hwsrc=mac, psrc=ip, pdst="10.0.0.44"))
    assert (await bench.sent())[ARP].psrc == "10.0.0.44"
    await bench.quiet()


@cocotb.test()
async def without_an_address_it_is_silent(dut) -> None:
    """Nothing is asked or answered; every query is, that nobody was found."""
    bench = await Bench(dut).start(announced=False, ip="0.0.0.0", gateway="10.0.0.254")
    for pdst in ("0.0.0.0", frames.IP_ADDRESS):
        bench.receive(frames.arp(pdst=pdst))
        bench.receive(frames.arp(psrc="0.0.0.0", pdst=pdst))
    for ip in (frames.PEER_IP, "8.8.8.8"):
        assert await bench.resolve(ip) is None
    await bench.quiet()
    bench.set()
    await bench.sent()
    bench.set(ip="0.0.0.0")
    await bench.quiet()
    bench.set()
    assert is_request_for(await bench.sent(), frames.IP_ADDRESS)


@cocotb.test()
@cocotb.parametrize(stall=alternately([0.0, 0.5]))
async def probes_and_announcements(dut, stall: float) -> None:
    """RFC 5227, 2.1.1 and 2.3: of a claim, also without an address."""
    bench = await Bench(dut, stall).start(announced=False, ip="0.0.0.0")
    for ip in ("0.0.0.0", frames.IP_ADDRESS):
        bench.set(ip=ip)
        if ip != "0.0.0.0":
            await bench.sent()
        for n in range(5):
            bench.claim.send(probe=1, ip=frames.ip_number(f"10.0.1.{n}"))
            probe = await bench.sent()
            assert probe.dst == "ff:ff:ff:ff:ff:ff"
            assert (probe[ARP].op, probe[ARP].psrc, probe[ARP].pdst) == (1, "0.0.0.0", f"10.0.1.{n}")
            assert (probe[ARP].hwsrc, probe[ARP].hwdst) == (frames.MAC, "00:00:00:00:00:00")
    bench.claim.send(probe=0, ip=frames.ip_number(frames.IP_ADDRESS))
    assert is_request_for(await bench.sent(), frames.IP_ADDRESS)
    await bench.quiet()


@cocotb.test()
async def conflicts_are_reported(dut) -> None:
    """RFC 5227, 2.1.1 and 2.4: whatever has the address as its sender; while the device probes for it, probes of others, too."""
    watched, other = "10.0.0.50", host(9)[0]
    number = int.from_bytes(frames.ip_bytes(watched), "big")
    bench = await Bench(dut).start()
    cases = [
        (frames.arp(hwsrc=other, psrc=watched, pdst="10.0.0.99"), True, True),
        (frames.arp(hwsrc=other, psrc=watched, pdst=watched), True, True),
        (frames.arp(op=2, hwsrc=other, psrc=watched, dst=frames.MAC), True, True),
        (frames.arp(hwsrc=other, psrc="0.0.0.0", pdst=watched), True, False),
        (frames.arp(op=2, hwsrc=other, psrc="0.0.0.0", pdst=watched), False, False),
        (frames.arp(hwsrc=other, psrc="10.0.0.51", pdst=watched), False, False),
        (frames.arp(hwsrc=other, psrc="0.0.0.0", pdst="10.0.0.51"), False, False),
        (frames.arp(hwsrc=frames.MAC, psrc=watched, pdst=watched), False, False),  # the device's own, which has come back
        (frames.arp(hwsrc=frames.MAC, psrc="0.0.0.0", pdst=watched), False, False),
    ]
    for probing in (True, False):
        for valid in (True, False):
            dut.watch.value = struct(WATCH).pack(valid=int(valid), probing=int(probing), ip=number)
            for frame, while_probing, in_use in cases:
                bench.conflicts = 0
                bench.receive(frame)
                await bench.rx.drained()
                await wait_cycles(dut, 2 * AT_ONCE)
                assert bench.conflicts == int(valid and (while_probing if probing else in_use)), (probing, valid, Ether(frame))
    # Not even a flood hides one.
    dut.watch.value = struct(WATCH).pack(valid=1, probing=0, ip=number)
    bench.conflicts = 0
    for n in range(10 * QUEUE):
        bench.receive(frames.arp(hwsrc=other, psrc=f"10.0.1.{n}", pdst="10.0.0.99"))
    bench.receive(frames.arp(hwsrc=other, psrc=watched, pdst="10.0.0.99"))
    await bench.rx.drained()
    await wait_cycles(dut, 4)
    assert bench.conflicts == 1 and bench.drops > QUEUE


def host6(n: int) -> tuple[str, str]:
    return f"02:00:00:00:02:{n:02x}", f"2001:db8::1:{n:x}"


@cocotb.test()
@cocotb.parametrize(stall=alternately([0.0, 0.5]))
async def solicitations_are_answered(dut, stall: float) -> None:
    bench = await Bench(dut, stall).start(ipv6=True)
    asked = [
        (target, dict(src=src, **more))
        for target in (frames.GLOBAL, frames.LINK_LOCAL)
        for src in (frames.PEER_GLOBAL, frames.PEER_LINK_LOCAL)
        for more in ({}, {"dst": target}, {"lla": None}, {"options": bytes.fromhex("0e01010203040506")})
    ]
    for target, fields in asked:
        bench.receive(frames.solicitation(target, **fields))
        frame = await bench.sent6()
        answer = frame[ICMPv6ND_NA]
        assert (frame.dst, frame[IPv6].src, frame[IPv6].dst) == (frames.PEER_MAC, target, fields["src"])
        assert (answer.tgt, answer.R, answer.S, answer.O) == (target, 0, 1, 1)
        assert frame[ICMPv6NDOptDstLLAddr].lladdr == frames.MAC
    # Who probes for one of them has no address: the answer is to all (RFC 4861, 7.2.4).
    bench.receive(frames.solicitation(frames.LINK_LOCAL, lla=None, src="::"))
    frame = await bench.sent6()
    assert (frame[IPv6].dst, frame[ICMPv6ND_NA].S, frame[ICMPv6ND_NA].tgt) == (frames.ALL_NODES, 0, frames.LINK_LOCAL)
    # The link-layer address behind another option, and behind two.
    nonce = bytes.fromhex("0e01010203040506")
    for count in (1, 2, 3):
        options = nonce * count + bytes.fromhex("01010200000000aa")
        bench.receive(frames.solicitation(lla=None, options=options))
        assert (await bench.sent6()).dst == ("02:00:00:00:00:aa" if count < 3 else frames.PEER_MAC)
    await wait_cycles(dut, 200)
    assert not bench.tx.received and bench.malformed == 0


@cocotb.test()
async def malformed_messages_have_no_effect(dut) -> None:
    """RFC 4861, 7.1.1 and 7.1.2."""
    bench = await Bench(dut).start(ipv6=True)
    bad = [
        frames.solicitation(lla=None, options=bytes(8)),
        frames.solicitation(options=bytes(8)),
        frames.solicitation(lla="33:33:00:00:00:01"),
        frames.solicitation(src="::"),
        frames.advertisement(dst=frames.ALL_NODES),
        frames.advertisement(options=bytes(8)),
        frames.advertisement(lla="01:00:5e:00:00:01"),
        frames.advertisement(src="::"),
    ]
    dut.nd_watch.value = struct(ND_WATCH).pack(valid=1, ip=frames.ip_number(frames.GLOBAL))
    for frame in bad:
        bench.receive(frame)
    # Not about this device, or without the one thing that an advertisement has to tell.
    bench.receive(frames.solicitation("2001:db8::a:b:d"))
    bench.receive(frames.advertisement("::ffff:10.0.0.2", src=frames.PEER_GLOBAL))
    bench.receive(frames.advertisement(lla=None))
    await wait_cycles(dut, 500)
    assert bench.malformed == len(bad) and not bench.tx.received and bench.nd_conflicts == 0
    bench.ask(frames.PEER_IP)
    assert await bench.answered() is None


@cocotb.test()
async def neighbours_are_asked_for(dut) -> None:
    """A solicitation for each address that is not known, at most one each REQUEST_CYCLES; the advertisement makes it known."""
    bench = await Bench(dut).start(ipv6=True)
    for target, source in ((frames.PEER_GLOBAL, frames.GLOBAL), (frames.PEER_LINK_LOCAL, frames.LINK_LOCAL)):
        bench.ask(target)
        assert await bench.answered() is None
        frame = await bench.sent6()
        assert (frame[IPv6].src, frame[IPv6].dst) == (source, frames.solicited_node(target))
        assert frame[ICMPv6ND_NS].tgt == target and frame[ICMPv6NDOptSrcLLAddr].lladdr == frames.MAC
        bench.ask(target)
        assert await bench.answered() is None
        bench.jump(REQUEST_CYCLES + 1)
        await wait_cycles(dut, 2 * ENTRIES + 2)
        bench.ask(target)
        assert await bench.answered() is None
        await bench.sent6()
        # Without the override flag it tells what was not known yet, and changes nothing that is.
        bench.receive(frames.advertisement(target, lla="02:00:00:00:00:77", override=0))
        await wait_cycles(dut, 60)
        bench.ask(target)
        assert await bench.answered() == "02:00:00:00:00:77"
        bench.receive(frames.advertisement(target, lla="02:00:00:00:00:78", override=0))
        await wait_cycles(dut, 60)
        bench.ask(target)
        assert await bench.answered() == "02:00:00:00:00:77"
        bench.receive(frames.advertisement(target, lla="02:00:00:00:00:79", solicited=0, dst=frames.ALL_NODES))
        await wait_cycles(dut, 60)
        bench.ask(target)
        assert await bench.answered() == "02:00:00:00:00:79"
    # IPv4 is another neighbour.
    bench.ask(frames.PEER_IP)
    assert await bench.answered() is None
    assert (await bench.sent())[ARP].pdst == frames.PEER_IP
    bench.jump(EXPIRY_CYCLES)
    await wait_cycles(dut, 2 * ENTRIES + 2)
    bench.ask(frames.PEER_GLOBAL)
    assert await bench.answered() is None
    assert (await bench.sent6())[ICMPv6ND_NS].tgt == frames.PEER_GLOBAL


@cocotb.test()
async def advertisements_that_nobody_asked_for_make_no_entry(dut) -> None:
    bench = await Bench(dut).start(ipv6=True)
    for n in range(QUEUE):
        mac, ip = host6(n)
        bench.receive(frames.advertisement(ip, lla=mac))
        await wait_cycles(dut, 60)
    for n in range(QUEUE):
        bench.ask(host6(n)[1])
        assert await bench.answered() is None
        await bench.sent6()


@cocotb.test()
async def strangers_do_not_push_out_what_was_asked_for(dut) -> None:
    """A flood of solicitations, of other hosts each, fills the part of those that were heard only."""
    bench = await Bench(dut).start(ipv6=True)
    mine = [host6(n) for n in range(ENTRIES)]
    for mac, ip in mine:
        bench.ask(ip)
        assert await bench.answered() is None
        await bench.sent6()
        bench.receive(frames.advertisement(ip, lla=mac))
        await wait_cycles(dut, 60)
    for n in range(5 * ENTRIES):
        bench.receive(frames.solicitation(src=f"2001:db8::2:{n:x}", lla=f"02:00:00:00:03:{n:02x}"))
        await bench.sent6()
    for mac, ip in mine:
        bench.ask(ip)
        assert await bench.answered() == mac
    # What the flood has left is known as well, the latest of it.
    bench.ask(f"2001:db8::2:{5 * ENTRIES - 1:x}")
    assert await bench.answered() == f"02:00:00:00:03:{5 * ENTRIES - 1:02x}"


@cocotb.test()
async def the_way_to_other_networks_over_ipv6(dut) -> None:
    far, router = "2001:db8:1::5", "fe80::99"
    for local, asked in (
        ({}, None),
        ({"router": router}, router),
        ({"on_link": False, "router": router, "far": frames.PEER_GLOBAL}, router),
        ({"on_link": False, "far": frames.PEER_GLOBAL}, None),
        ({"global_": "::", "router": router}, None),
        ({"router": router, "far": "ff02::5"}, None),
        ({"link_local": "::", "far": frames.PEER_LINK_LOCAL}, None),
        ({"far": frames.PEER_GLOBAL}, frames.PEER_GLOBAL),
    ):
        target = str(local.pop("far", far))
        bench = await Bench(dut).start(ipv6=True, **local)
        bench.ask(target)
        assert await bench.answered() is None
        if asked:
            assert (await bench.sent6())[ICMPv6ND_NS].tgt == asked
            bench.receive(frames.advertisement(asked))
            await wait_cycles(dut, 60)
            bench.ask(target)
            assert await bench.answered() == frames.PEER_MAC
        await wait_cycles(dut, 100)
        assert not bench.tx.received


@cocotb.test()
async def ipv6_claims_and_conflicts(dut) -> None:
    """A probe has no address, an announcement goes to all; a router is asked for. Whoever has or wants the watched address is a
    conflict, but not the device itself."""
    bench = await Bench(dut).start(ipv6=True)
    bench.claim.send(probe=1, ip=frames.ip_number(frames.LINK_LOCAL))
    frame = await bench.sent6()
    assert (frame[IPv6].src, frame[IPv6].dst) == ("::", frames.solicited_node(frames.LINK_LOCAL))
    assert frame[ICMPv6ND_NS].tgt == frames.LINK_LOCAL and ICMPv6NDOptSrcLLAddr not in frame
    for own in (frames.LINK_LOCAL, frames.GLOBAL):
        bench.claim.send(probe=0, ip=frames.ip_number(own))
        frame = await bench.sent6()
        told = frame[ICMPv6ND_NA]
        assert (frame[IPv6].src, frame[IPv6].dst, told.tgt, told.S, told.O) == (own, frames.ALL_NODES, own, 0, 1)
    bench.claim.send(probe=0, ip=frames.ip_number("ff02::2"))
    frame = await bench.sent6()
    assert (frame[IPv6].src, frame[IPv6].dst) == (frames.LINK_LOCAL, "ff02::2")
    assert ICMPv6ND_RS in frame and frame[ICMPv6NDOptSrcLLAddr].lladdr == frames.MAC

    watched = "2001:db8::5"
    both = [frames.solicitation(watched, lla=None, src="::"), frames.advertisement(watched, dst=frames.ALL_NODES, solicited=0)]
    neither = [
        frames.solicitation(watched),
        frames.advertisement("2001:db8::6"),
        frames.solicitation("2001:db8::6", lla=None, src="::"),
    ]
    own_mac = frames.mac_bytes(frames.MAC)
    neither += [frame[:6] + own_mac + frame[12:] for frame in both]
    for frame in both:
        bench.receive(frame)
    await wait_cycles(dut, 100)
    assert bench.nd_conflicts == 0
    dut.nd_watch.value = struct(ND_WATCH).pack(valid=1, ip=frames.ip_number(watched))
    for frame in neither:
        bench.receive(frame)
    await wait_cycles(dut, 100)
    assert bench.nd_conflicts == 0
    for n, frame in enumerate(both):
        bench.receive(frame)
        await wait_cycles(dut, 100)
        assert bench.nd_conflicts == n + 1 and bench.conflicts == 0


def test_neighbours() -> None:
    run(
        "neighbours",
        __file__,
        params={"ENTRIES": ENTRIES, "QUEUE": QUEUE, "REQUEST_CYCLES": REQUEST_CYCLES, "EXPIRY_CYCLES": EXPIRY_CYCLES},
        ports={
            "now": Plain("input", "logic [47:0]"),
            "local_addr": Plain("input", LOCAL),
            "answers": Plain("input", "logic"),
            "rx": Sink(RX),
            "tx": Source(TX),
            "query": Sink(QUERY),
            "answer": Source(ANSWER),
            "claim": Sink(CLAIM),
            "watch": Plain("input", WATCH),
            "nd_watch": Plain("input", ND_WATCH),
            "conflict": Plain("output", "logic"),
            "nd_conflict": Plain("output", "logic"),
            "drop_overflow": Plain("output", "logic"),
            "drop_malformed": Plain("output", "logic"),
            "idle": Plain("output", "logic"),
        },
    )
