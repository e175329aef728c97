# SPDX-License-Identifier: Apache-2.0
"""address_service: the DHCP client and the address control, with a server and a network in Python. Messages are read by scapy.

The clock is so fast that nothing but the test lets time pass."""

from __future__ import annotations

import ipaddress
import itertools
from typing import Any

import cocotb
import dhcp_model as model
from cocotb.triggers import FallingEdge
from dhcp_model import MAC, OFFERED, ROUTER, SERVER, message, number, octets
from nacelle_tb.bench import Plain, Sink, Source, run
from nacelle_tb.streams import StreamSink, StreamSource, start, wait_cycles
from nacelle_tb.svtypes import struct
from scapy.layers.dhcp import BOOTP

RX, TX, WORD = "services_pkg::service_rx_t", "services_pkg::service_tx_t", "services_pkg::service_word_t"
SETTINGS, STATUS, LOCAL = "address_pkg::address_settings_t", "address_pkg::address_status_t", "packet_pkg::local_addr_t"
EVENTS, CLAIM, WATCH, WITHDRAWAL = (
    "address_pkg::address_events_t", "packet_pkg::arp_claim_t", "packet_pkg::arp_watch_t", "address_pkg::withdrawal_t",
)  # fmt: skip
ND_WATCH = "packet_pkg::nd_watch_t"
CLOCK_HZ = 1_600_000_000
TICK = CLOCK_HZ // 16
STATIC, DHCP, DHCP_OR_STATIC, DHCP_OR_LINK_LOCAL = range(4)
NONE, BY_STATIC, BY_DHCP, BY_LINK_LOCAL = range(4)
OFF, INIT, SELECTING, REQUESTING, CHECKING, BOUND, RENEWING, REBINDING = range(8)
FIXED = "10.0.0.9"
SERVER_MAC = 0x020000000001
EVERYBODY = "255.255.255.255"
PROBING = 10  # seconds, more than the probes of an address take


def dotted(ip: int) -> str:
    return ".".join(map(str, ip.to_bytes(4, "big")))


class Message:
    """What the client has sent, and when."""

    def __init__(self, record: Any, words: bytes, time: float) -> None:
        self.record, self.time = record, time
        bootp = BOOTP(words)
        self.options = {entry[0]: entry[1:] for entry in bootp["DHCP options"].options if isinstance(entry, tuple)}
        self.kind = self.options["message-type"][0]
        self.xid, self.bootp = bootp.xid, bootp
        self.to, self.source = dotted(record.ip), dotted(record.from_ip)
        assert len(words) == record.length == 316 and (record.port, record.from_port) == (67, 68)
        assert (bootp.op, bootp.htype, bootp.hlen, bootp.chaddr[:6]) == (1, 1, 6, model.mac_bytes(MAC))
        assert bootp.flags == 0x8000
        assert self.options["client_id"] == (b"\x01" + model.mac_bytes(MAC),) or self.options["client_id"][-1][
            -6:
        ] == model.mac_bytes(MAC)
        assert dotted(record.from_ip) == bootp.ciaddr
        assert (record.mac == 0xFFFFFFFFFFFF) == (self.to == EVERYBODY)

    def asked(self, name: str) -> Any:
        """The value of an option; None without."""
        return self.options[name][0] if name in self.options else None


class Bench:
    """The module, and all that is around it."""

    def __init__(self, dut) -> None:
        self.dut = dut
        self.message = StreamSource(dut, "message", RX)
        self.words = StreamSource(dut, "words", WORD)
        self.response = StreamSink(dut, "response", TX, 0.3)
        self.response_words = StreamSink(dut, "response_words", WORD, 0.1)
        self.claim = StreamSink(dut, "claim", CLAIM, 0.3)
        self.router_message = StreamSource(dut, "router_message", RX)
        self.router_words = StreamSource(dut, "router_words", WORD)
        self.ticks = 0
        self.sent: list[Message] = []
        self.claims: list[tuple[float, bool, str]] = []
        self.counts: dict[str, int] = {}
        self.withdrawals = 0  # times that addresses began to go
        self.left = 0  # those that went last: own_set_t
        self.still_there = 0  # ... while the address was there, and what came of it
        self.settings = {
            "mode": DHCP,
            "seed": 0x12345678,
            "fixed": {"ip": number(FIXED), "prefix_length": 24, "gateway": number(ROUTER)},
        }

    async def start(self, **settings: Any) -> Bench:
        dut = self.dut
        for name in ("now", "enable", "offered_valid", "offered_first", "conflict", "nd_conflict", "closed", "abandoned"):
            getattr(dut, name).value = 0
        dut.mac.value = int(MAC.replace(":", ""), 16)
        self.set(**settings)
        await start(dut)
        cocotb.start_soon(self._watch())
        dut.enable.value = 1
        await self.settle()
        return self

    def set(self, **settings: Any) -> None:
        self.settings |= settings
        self.dut.settings.value = struct(SETTINGS).pack(self.settings)

    async def command(self, name: str) -> None:
        """A pulse: renew or give_up."""
        await FallingEdge(self.dut.clk)
        self.set(**{name: 1})
        await FallingEdge(self.dut.clk)
        self.set(**{name: 0})
        await self.settle()

    async def _watch(self) -> None:
        events, withdrawal = struct(EVENTS), struct(WITHDRAWAL)
        closing = False
        while True:
            await FallingEdge(self.dut.clk)
            if word := int(self.dut.events.value):
                for name, value in vars(events.unpack(word)).items():
                    self.counts[name] = self.counts.get(name, 0) + value
            now = withdrawal.unpack(int(self.dut.withdrawal.value))
            self.dut.abandoned.value = now.abandon
            if now.leaving and not closing:
                self.withdrawals += 1
                self.left = now.leaving
                assert self.local.ip
            closing = bool(now.leaving)

    @property
    def time(self) -> float:
        return self.ticks / 16

    @property
    def local(self) -> Any:
        return struct(LOCAL).unpack(int(self.dut.local_addr.value))

    @property
    def ip(self) -> str | None:
        return dotted(self.local.ip) if self.local.ip else None

    @property
    def status(self) -> Any:
        return struct(STATUS).unpack(int(self.dut.status.value))

    @property
    def watched(self) -> Any:
        return struct(WATCH).unpack(int(self.dut.watch.value))

    def _busy(self) -> bool:
        return any(source.busy for source in (self.message, self.words, self.router_message, self.router_words))

    async def settle(self) -> None:
        """Nothing but time changes anything any longer."""
        quiet = 0
        for _ in range(4000):
            await wait_cycles(self.dut, 1)
            quiet = quiet + 1 if int(self.dut.idle.value) and not self._busy() else 0
            if quiet == 6:
                break
        else:
            raise AssertionError("never idle")
        while self.response.received:
            record = await self.response.recv()
            words = bytearray()
            while True:
                word = await self.response_words.recv()
                words += word.data.to_bytes(4, "big")
                if word.last:
                    break
            self.sent.append(Message(record, bytes(words), self.time))
        while self.claim.received:
            got = await self.claim.recv()
            address = ipaddress.IPv6Address(got.ip)
            self.claims.append((self.time, bool(got.probe), str(address.ipv4_mapped or address)))

    async def tick(self, count: int = 1) -> None:
        await FallingEdge(self.dut.clk)
        self.ticks += count
        self.dut.now.value = self.ticks * TICK % 2**48
        await wait_cycles(self.dut, count + 2)
        await self.settle()

    async def sleep(self, seconds: float) -> None:
        for _ in range(round(seconds * 16)):
            await self.tick()

    async def leap(self, seconds: int) -> None:
        """A long time in which nothing is due, but perhaps at its end."""
        while seconds:
            step = min(seconds, 2)
            await self.tick(step * 16)
            seconds -= step

    async def next(self, kind: str, within: float = 70) -> Message:
        """The next message that the client sends."""
        for _ in range(round(within * 16)):
            if self.sent:
                break
            await self.tick()
        got = self.sent.pop(0)
        assert got.kind == model.KINDS[kind], f"{got.kind} instead of {kind}"
        return got

    async def offer(self, packet: bytes) -> bool:
        """A packet arrives. Whether it was admitted."""
        await FallingEdge(self.dut.clk)
        self.dut.offered_valid.value = 1
        self.dut.offered_first.value = int.from_bytes(packet[:8], "big")
        await FallingEdge(self.dut.clk)
        self.dut.offered_valid.value = 0
        admitted = bool(int(self.dut.admitted.value))
        if admitted:
            self.message.send(service=1, mac=SERVER_MAC, ip=number(SERVER), port=67, length=len(packet))
            padded = packet + bytes(-len(packet) % 4)
            for at in range(0, len(padded), 4):
                self.words.send(last=at + 4 == len(padded), data=int.from_bytes(padded[at : at + 4], "big"))
        return admitted

    async def reply(self, kind: str, to: Message, **fields: Any) -> bool:
        admitted = await self.offer(message(kind, to.xid, **fields))
        await self.settle()
        return admitted

    async def conflict(self) -> None:
        """Another host has the address that is watched."""
        assert self.watched.valid
        await FallingEdge(self.dut.clk)
        self.dut.conflict.value = 1
        await FallingEdge(self.dut.clk)
        self.dut.conflict.value = 0
        await self.settle()

    async def requested(self, **fields: Any) -> Message:
        """DISCOVER, OFFER, REQUEST."""
        await self.reply("offer", await self.next("discover"), **fields)
        return await self.next("request")

    async def bound(self, **fields: Any) -> Message:
        """The whole way to a lease in use."""
        request = await self.requested(**fields)
        await self.reply("ack", request, **fields)
        await self.sleep(PROBING)
        assert self.status.dhcp == BOUND and self.status.origin == BY_DHCP
        return request

    async def rebinds(self) -> Message:
        """The first request to all servers."""
        while (request := await self.next("request", within=160)).to != EVERYBODY:
            assert self.status.dhcp == RENEWING or self.sent
        assert self.status.dhcp == REBINDING
        return request


def lease(seconds: int, *others: Any) -> list[Any]:
    return [("server_id", SERVER), ("lease_time", seconds), ("subnet_mask", "255.255.255.0"), ("router", ROUTER), *others]


@cocotb.test()
async def a_lease_is_obtained(dut) -> None:
    bench = await Bench(dut).start()
    assert bench.ip is None and not bench.watched.valid
    discover = await bench.next("discover", within=1.1)
    assert (discover.to, discover.source) == (EVERYBODY, "0.0.0.0")
    assert discover.asked("requested_addr") is None and discover.asked("server_id") is None
    assert set(discover.options["param_req_list"][0]) >= {1, 3, 51, 54, 58, 59}
    assert discover.asked("hostname") == b"nacelle-0abe9f" and discover.asked("vendor_class_id") == b"nacelle"
    assert discover.asked("max_dhcp_size") == 1500
    await bench.reply("offer", discover)
    request = await bench.next("request", within=0.1)
    assert (request.xid, request.to, request.source) == (discover.xid, EVERYBODY, "0.0.0.0")
    assert (request.asked("requested_addr"), request.asked("server_id")) == (OFFERED, SERVER)
    await bench.reply("ack", request)
    assert bench.ip is None and bench.status.dhcp == CHECKING
    await bench.sleep(PROBING)
    assert (bench.ip, bench.local.prefix_length, dotted(bench.local.gateway)) == (OFFERED, 24, ROUTER)
    assert (bench.status.dhcp, bench.status.origin, dotted(bench.status.server)) == (BOUND, BY_DHCP, SERVER)
    assert 3580 < bench.status.lease_left < 3595
    # RFC 5227, 2.1.1 and 2.3: three probes, one or two seconds between them; used two seconds after the last; announced 2 s later.
    times = [time for time, probe, ip in bench.claims if probe and ip == OFFERED]
    assert len(times) == 3 and times[0] - request.time <= 1
    assert all(1 <= later - earlier <= 2 for earlier, later in itertools.pairwise(times))
    ((announced, _, ip),) = [claim for claim in bench.claims if not claim[1]]
    assert ip == OFFERED and 4 <= announced - times[-1] <= 4.2
    assert not bench.sent and bench.counts == {"lease": 1} | {name: 0 for name in bench.counts if name != "lease"}


@cocotb.test()
async def messages_are_repeated_later_and_later(dut) -> None:
    """RFC 2131, 4.1: after 4, 8, 16, 32 and then each 64 s, a second more or less."""
    bench = await Bench(dut).start()
    times = [(await bench.next("discover")).time for _ in range(8)]
    gaps = [later - earlier for earlier, later in itertools.pairwise(times)]
    for gap, nominal in zip(gaps, [4, 8, 16, 32, 64, 64, 64], strict=True):
        assert nominal - 1.1 <= gap <= nominal + 1.1
    assert gaps != [round(gap) for gap in gaps], "by chance"
    assert bench.ip is None


@cocotb.test()
async def lost_messages(dut) -> None:
    """An OFFER, a REQUEST that gets no answer: it is repeated, then the client looks for others."""
    bench = await Bench(dut).start()
    await bench.next("discover")
    first = await bench.requested()
    for _ in range(3):
        again = await bench.next("request", within=34)
        assert (again.xid, again.asked("requested_addr")) == (first.xid, OFFERED)
    assert (await bench.next("discover")).xid != first.xid
    assert bench.ip is None


@cocotb.test()
async def only_expected_answers_are_taken(dut) -> None:
    bench = await Bench(dut).start()
    assert not await bench.offer(message("ack", 0))
    discover = await bench.next("discover")
    assert not await bench.offer(message("offer", discover.xid ^ 1))
    assert not await bench.offer(message("offer", discover.xid ^ 0x80000000))
    assert not await bench.offer(message("offer", discover.xid, op=1))
    for kind in ("ack", "nak"):  # of no use now
        await bench.reply(kind, discover)
    assert not bench.sent and bench.status.dhcp == SELECTING
    assert bench.counts["drop_unexpected"] == 6
    await bench.reply("offer", discover)
    request = await bench.next("request")
    await bench.reply("ack", request, options=[("server_id", "10.0.0.2"), ("lease_time", 3600)])  # another server's
    await bench.reply("offer", request)
    assert bench.status.dhcp == REQUESTING and bench.counts["drop_unexpected"] == 8
    await bench.reply("ack", request)
    assert bench.status.dhcp == CHECKING
    assert not await bench.reply("ack", request), "nothing is expected any longer"
    await bench.sleep(PROBING)
    assert not bench.local.dhcp and not await bench.reply("nak", request)
    assert bench.ip == OFFERED


@cocotb.test()
async def a_flood_of_answers_takes_one_place(dut) -> None:
    """Even one that knows the transaction id."""
    bench = await Bench(dut).start()
    discover = await bench.next("discover")
    bad = message("offer", discover.xid, options=[("lease_time", 3600)])
    admitted = [await bench.offer(bad) for _ in range(200)]
    await bench.settle()
    # Those that come while one is read are not taken, and each takes 80 cycles to arrive.
    assert 1 <= sum(admitted) <= 1 + 200 // 80 * 2
    assert bench.counts["drop_malformed"] == sum(admitted) and bench.counts["drop_unexpected"] == 200 - sum(admitted)
    assert await bench.reply("offer", discover)
    await bench.next("request")


@cocotb.test()
async def an_answer_that_gets_lost_inside_blocks_nothing(dut) -> None:
    """Admitted, but then the store had no room."""
    bench = await Bench(dut).start()
    discover = await bench.next("discover")
    await FallingEdge(dut.clk)
    dut.offered_valid.value = 1
    dut.offered_first.value = int.from_bytes(message("offer", discover.xid)[:8], "big")
    await FallingEdge(dut.clk)
    dut.offered_valid.value = 0
    assert int(dut.admitted.value)
    await wait_cycles(dut, 4100)
    assert await bench.reply("offer", discover)
    await bench.next("request")


@cocotb.test()
async def a_malformed_answer_changes_nothing(dut) -> None:
    bench = await Bench(dut).start()
    discover = await bench.next("discover")
    await bench.offer(message("offer", discover.xid)[:250])
    await bench.settle()
    assert bench.counts["drop_malformed"] == 1 and bench.status.dhcp == SELECTING and not bench.sent
    await bench.reply("offer", discover)
    await bench.next("request")


@cocotb.test()
@cocotb.parametrize(times=[(None, None), (100, 200), (200, 100), (300, 301), (0, 250)])
async def a_lease_is_renewed_at_t1(dut, times: tuple[int | None, int | None]) -> None:
    """By unicast to its server. T1 is half of the lease unless the server says T1 < T2 < lease."""
    bench = await Bench(dut).start()
    named = [(name, time) for name, time in zip(("renewal_time", "rebinding_time"), times, strict=True) if time is not None]
    request = await bench.bound(options=lease(300, *named))
    renew = await bench.next("request", within=160)
    assert abs(renew.time - request.time - (100 if times == (100, 200) else 150)) <= 1.1
    assert (renew.to, renew.record.mac, renew.source) == (SERVER, SERVER_MAC, OFFERED)
    assert renew.asked("requested_addr") is None and renew.asked("server_id") is None and renew.xid != request.xid
    await bench.reply("ack", renew, yiaddr="10.0.0.78")  # an answer with another address is none
    assert bench.status.dhcp == RENEWING
    await bench.reply("ack", renew, options=[("server_id", SERVER), ("lease_time", 500), ("subnet_mask", "255.255.0.0")])
    assert bench.status.dhcp == BOUND and bench.status.lease_left == 500
    assert (bench.ip, bench.local.prefix_length, bench.local.gateway) == (OFFERED, 16, 0)
    await bench.sleep(PROBING)
    assert bench.withdrawals == 0 and len([claim for claim in bench.claims if claim[1]]) == 3, "nothing but the lease is new"


@cocotb.test()
async def a_server_that_has_gone(dut) -> None:
    """Asked again after half of the rest, at T2 everybody is; then the address is given up, a second before it ends."""
    bench = await Bench(dut).start()
    request = await bench.bound(options=lease(1000))
    sent = []
    while bench.ip:
        await bench.tick()
        sent += bench.sent
        bench.sent.clear()
    ended = bench.time - request.time
    assert 998 <= ended <= 1000 and bench.withdrawals == 1 and bench.counts["lost"] == 1 and bench.counts["lease_lost"] == 1
    at = [message.time - request.time for message in sent if message.kind == model.KINDS["request"]]
    nominal = [500, 687.5, 781, 841, 875, 937, 997]  # 4.4.5: half of what is left, 60 s at least
    assert len(at) == len(nominal) and all(abs(a - b) < 4 for a, b in zip(at, nominal, strict=True)), at
    assert [message.to for message in sent[:7]] == [SERVER] * 4 + [EVERYBODY] * 3
    assert all(message.source == OFFERED and message.asked("requested_addr") is None for message in sent[:7])
    assert len({message.xid for message in sent}) == len(sent)
    await bench.bound(yiaddr="10.0.0.88")
    assert bench.ip == "10.0.0.88"


@cocotb.test()
async def another_server_takes_the_lease_over(dut) -> None:
    bench = await Bench(dut).start()
    await bench.bound(options=lease(160))
    rebind = await bench.rebinds()
    assert rebind.to == EVERYBODY and rebind.source == OFFERED
    await bench.reply("ack", rebind, options=[("server_id", "10.0.0.2"), ("lease_time", 160), ("subnet_mask", "255.255.255.0")])
    assert bench.status.dhcp == BOUND and dotted(bench.status.server) == "10.0.0.2" and bench.ip == OFFERED
    assert (await bench.next("request", within=100)).to == "10.0.0.2"


@cocotb.test()
async def a_lease_for_ever(dut) -> None:
    bench = await Bench(dut).start()
    await bench.bound(options=lease(0xFFFFFFFF))
    await bench.leap(2000)
    assert bench.status.lease_left == 0xFFFFFF and not bench.sent and bench.status.dhcp == BOUND
    await bench.command("renew")
    renew = await bench.next("request", within=1)
    await bench.reply("ack", renew, options=lease(3600))
    assert bench.status.lease_left == 3600


@cocotb.test()
@cocotb.parametrize(when=["requesting", "renewing", "rebinding"])
async def a_nak_begins_again(dut, when: str) -> None:
    bench = await Bench(dut).start()
    if when == "requesting":
        request = await bench.requested()
    else:
        await bench.bound(options=lease(160))
        request = await bench.next("request", within=100)
        if when == "rebinding":
            request = await bench.rebinds()
    await bench.reply("nak", request)
    assert bench.counts["nak"] == 1
    used = when != "requesting"
    assert bench.withdrawals == used and bench.counts.get("lease_lost", 0) == used
    await bench.sleep(0.75)
    assert bench.ip is None and bench.counts.get("lost", 0) == used
    await bench.bound(yiaddr="10.0.0.99")
    assert bench.ip == "10.0.0.99"


@cocotb.test()
@cocotb.parametrize(probes=[0, 1, 2, 3])
async def an_address_that_somebody_has_is_declined(dut, probes: int) -> None:
    """Whenever it shows, until the address is in use."""
    bench = await Bench(dut).start()
    request = await bench.requested()
    await bench.reply("ack", request)
    while len(bench.claims) < probes:
        await bench.tick()
    if probes == 3:
        await bench.sleep(1.5)
    assert dotted(bench.watched.ip) == OFFERED and bench.watched.probing
    await bench.conflict()
    decline = await bench.next("decline", within=0.1)
    assert (decline.to, decline.source) == (EVERYBODY, "0.0.0.0")
    assert (decline.asked("requested_addr"), decline.asked("server_id")) == (OFFERED, SERVER)
    assert not {"param_req_list", "hostname", "vendor_class_id", "max_dhcp_size"} & set(decline.options)
    assert bench.counts["conflict"] == 1 and bench.ip is None and bench.withdrawals == 0
    discover = await bench.next("discover")
    assert 10 <= discover.time - decline.time <= 11.1  # RFC 2131, 3.1 (5)
    assert len(bench.claims) == probes, "no further probes"
    await bench.reply("offer", discover, yiaddr="10.0.0.79")
    await bench.reply("ack", await bench.next("request"), yiaddr="10.0.0.79")
    await bench.sleep(PROBING)
    assert bench.ip == "10.0.0.79"


@cocotb.test()
async def many_conflicts_slow_it_down(dut) -> None:
    """RFC 5227, 2.1.1: after ten of them one attempt a minute."""
    bench = await Bench(dut).start()
    for conflicts in range(11):
        await bench.reply("ack", await bench.requested())
        before = bench.time
        while not bench.watched.probing:
            await bench.tick()
        assert (bench.time - before > 30) == (conflicts == 11)
        await bench.conflict()
        await bench.next("decline", within=0.1)
    request = await bench.requested()
    asked = bench.time
    await bench.reply("ack", request)
    while bench.ip is None:
        await bench.tick()
    assert bench.time - asked > 40


@cocotb.test()
async def an_address_in_use_is_defended_once(dut) -> None:
    """RFC 5227, 2.4 (b): a second conflict within 10 s takes it away."""
    bench = await Bench(dut).start()
    await bench.bound()
    for _ in range(2):
        bench.claims.clear()
        await bench.conflict()
        assert [claim[1:] for claim in bench.claims] == [(False, OFFERED)] and bench.ip == OFFERED
        await bench.sleep(10.2)
    assert bench.counts["defended"] == 2 and not bench.sent
    await bench.conflict()
    await bench.sleep(9)
    bench.claims.clear()
    await bench.conflict()
    assert not bench.claims and bench.withdrawals == 1
    decline = await bench.next("decline", within=0.1)
    assert decline.asked("requested_addr") == OFFERED
    await bench.sleep(0.75)
    assert bench.ip is None and bench.status.origin == NONE and bench.counts["lost"] == 1


@cocotb.test()
async def connections_get_time_to_close(dut) -> None:
    """Half a second, or less if there are none; the address is there meanwhile."""
    bench = await Bench(dut).start()
    for closes in (False, True):
        dut.closed.value = 0
        await bench.bound()
        await bench.command("renew")
        await bench.reply("nak", await bench.next("request"))
        began = bench.time
        assert bench.ip == OFFERED and struct(WITHDRAWAL).unpack(int(dut.withdrawal.value)).leaving
        await bench.sleep(0.25)
        assert bench.ip == OFFERED
        dut.closed.value = int(closes)
        while bench.ip:
            await bench.tick()
        assert 0.25 <= bench.time - began <= (0.32 if closes else 0.6)


@cocotb.test()
async def a_lease_is_released_on_command(dut) -> None:
    """When the address is no longer in use; then nothing until `renew`."""
    bench = await Bench(dut).start()
    await bench.bound()
    await bench.command("give_up")
    assert not bench.sent and bench.ip == OFFERED and bench.withdrawals == 1
    release = await bench.next("release", within=1)
    assert bench.ip is None and bench.status.dhcp == OFF
    assert (release.to, release.record.mac, release.source) == (SERVER, SERVER_MAC, OFFERED)
    assert release.asked("server_id") == SERVER and release.asked("requested_addr") is None
    assert not {"param_req_list", "hostname", "vendor_class_id", "max_dhcp_size"} & set(release.options)
    await bench.sleep(100)
    assert not bench.sent and bench.ip is None and bench.counts.get("lease_lost", 0) == 0
    await bench.command("renew")
    await bench.bound()
    assert bench.ip == OFFERED


@cocotb.test()
async def without_a_lease_there_is_nothing_to_release(dut) -> None:
    bench = await Bench(dut).start()
    await bench.next("discover")
    await bench.command("give_up")
    await bench.sleep(70)
    assert not bench.sent
    await bench.command("renew")
    await bench.next("discover", within=1.1)


@cocotb.test()
async def a_static_address_is_there_at_once(dut) -> None:
    """Without probes, and without anything to do about it, and it is never given up."""
    bench = await Bench(dut).start(mode=STATIC)
    assert (bench.ip, bench.local.prefix_length, dotted(bench.local.gateway)) == (FIXED, 24, ROUTER)
    assert bench.status.origin == BY_STATIC and bench.status.dhcp == OFF and not bench.local.dhcp
    await bench.sleep(20)
    assert not bench.claims and not bench.sent
    for _ in range(5):
        await bench.conflict()
    assert [claim[1:] for claim in bench.claims] == [(False, FIXED)]
    await bench.sleep(10.2)
    await bench.conflict()
    assert [claim[1:] for claim in bench.claims] == [(False, FIXED)] * 2 and bench.counts["conflict"] == 6
    assert bench.ip == FIXED and bench.withdrawals == 0


@cocotb.test()
async def the_mode_changes(dut) -> None:
    """From a static address to a lease, and back; the lease is released."""
    bench = await Bench(dut).start(mode=STATIC)
    bench.set(mode=DHCP)
    await bench.settle()
    assert bench.withdrawals == 1
    await bench.sleep(0.75)
    assert bench.ip is None
    await bench.bound()
    bench.set(mode=STATIC)
    await bench.settle()
    bench.claims.clear()
    await bench.sleep(PROBING)
    assert bench.ip == FIXED and bench.status.origin == BY_STATIC and bench.withdrawals == 2
    assert [ip for _, probe, ip in bench.claims if probe] == [FIXED] * 3
    assert (await bench.next("release", within=0.1)).source == OFFERED
    await bench.sleep(100)
    assert not bench.sent


@cocotb.test()
async def without_a_server_a_static_address(dut) -> None:
    """After 4 + 8 + 16 s, probed; a lease that comes later takes its place."""
    bench = await Bench(dut).start(mode=DHCP_OR_STATIC)
    for _ in range(4):
        discover = await bench.next("discover")
        assert bench.ip is None
    assert 24 < discover.time < 33
    await bench.sleep(PROBING)
    assert bench.ip == FIXED and bench.status.origin == BY_STATIC
    assert [ip for _, probe, ip in bench.claims if probe] == [FIXED] * 3
    discover = await bench.next("discover")
    assert discover.source == "0.0.0.0"
    await bench.reply("offer", discover)
    await bench.reply("ack", await bench.next("request"))
    assert bench.ip == FIXED and bench.withdrawals == 0, "in use until the new one has been probed"
    await bench.sleep(PROBING)
    assert bench.ip == OFFERED and bench.status.origin == BY_DHCP and bench.status.dhcp == BOUND
    assert bench.withdrawals == 1 and bench.counts["lost"] == 1


@cocotb.test()
async def a_fall_back_that_somebody_has(dut) -> None:
    """Is tried again a minute later."""
    bench = await Bench(dut).start(mode=DHCP_OR_STATIC)
    while not bench.watched.probing:
        await bench.tick()
    await bench.conflict()
    began = bench.time
    bench.claims.clear()
    while bench.ip is None:
        await bench.tick()
    assert 60 <= bench.claims[0][0] - began <= 61.2


@cocotb.test()
async def without_a_server_a_link_local_address(dut) -> None:
    """RFC 3927: from the MAC address at first, another one after a conflict; defended once."""
    bench = await Bench(dut).start(mode=DHCP_OR_LINK_LOCAL)
    seen, began = [], 0.0
    for conflicts in range(4):
        while not bench.watched.probing:
            await bench.tick()
        seen.append(dotted(bench.watched.ip))
        assert not conflicts or bench.time - began <= 0.2, "the next one at once"
        began = bench.time
        if conflicts < 3:
            await bench.conflict()
    assert len(set(seen)) == 4 and all(ip.startswith("169.254.") and 1 <= octets(ip)[2] <= 254 for ip in seen)
    await bench.sleep(PROBING)
    assert bench.ip == seen[-1] and bench.local.prefix_length == 16 and bench.local.gateway == 0
    assert bench.status.origin == BY_LINK_LOCAL
    await bench.conflict()
    assert bench.ip == seen[-1] and bench.counts["defended"] == 1
    await bench.conflict()
    await bench.sleep(0.75)
    assert bench.ip is None and bench.withdrawals == 1
    await bench.sleep(PROBING)
    assert bench.ip is not None and bench.ip.startswith("169.254.") and bench.ip != seen[-1]
    bench.sent.clear()
    await bench.bound()
    assert bench.ip == OFFERED


@cocotb.test()
async def the_first_link_local_address_follows_from_the_mac_address(dut) -> None:
    bench = await Bench(dut).start(mode=DHCP_OR_LINK_LOCAL, seed=0x9ABCDEF0)
    while not bench.watched.probing:
        await bench.tick()
    low = 0xBE9F ^ 0x410A  # of the MAC address; the first and the last of 256 networks are reserved
    third = 128 if low >> 8 in (0, 255) else low >> 8
    assert dotted(bench.watched.ip) == f"169.254.{third}.{low & 255}"


PORTS = {
    "now": Plain("input", "logic [47:0]"),
    "enable": Plain("input", "logic"),
    "mac": Plain("input", "packet_pkg::mac_t"),
    "settings": Plain("input", SETTINGS),
    "local_addr": Plain("output", LOCAL),
    "status": Plain("output", STATUS),
    "tick": Plain("output", "logic"),
    "offered_valid": Plain("input", "logic"),
    "offered_first": Plain("input", "logic [63:0]"),
    "admitted": Plain("output", "logic"),
    "message": Sink(RX),
    "words": Sink(WORD),
    "response": Source(TX),
    "response_words": Source(WORD),
    "admitted_router": Plain("output", "logic"),
    "router_message": Sink(RX),
    "router_words": Sink(WORD),
    "claim": Source(CLAIM),
    "watch": Plain("output", WATCH),
    "conflict": Plain("input", "logic"),
    "nd_watch": Plain("output", ND_WATCH),
    "nd_conflict": Plain("input", "logic"),
    "withdrawal": Plain("output", WITHDRAWAL),
    "leaving": Plain("output", "logic"),
    "closed": Plain("input", "logic"),
    "abandoned": Plain("input", "logic"),
    "events": Plain("output", EVENTS),
    "idle": Plain("output", "logic"),
}


def test_address_service() -> None:
    run("address_service", __file__, params={"CLOCK_HZ": CLOCK_HZ}, ports=PORTS)
