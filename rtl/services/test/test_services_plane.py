# SPDX-License-Identifier: Apache-2.0
"""services_plane: management by IPbus, from frames to frames, against a model; what strangers can and cannot do."""

from __future__ import annotations

import os
import random
from collections import deque
from functools import cache

import cocotb
import dhcp_model
import mdns_model
import pytest
from cocotb.triggers import Event, FallingEdge, RisingEdge
from ipbus_model import ID, IN_USE, LOGIN, LOGOUT, VERSION, Address, Model
from nacelle_tb import ipbus
from nacelle_tb.bench import AxilMaster, Clock, Plain, Sink, Source, run
from nacelle_tb.bench import AxisSink as AxisSinkPort
from nacelle_tb.bench import AxisSource as AxisSourcePort
from nacelle_tb.ipbus import answers, control, read, read_config, rmw_bits, rmw_sum, write
from nacelle_tb.long import alternately, rounds, some
from nacelle_tb.record import FRAME_RX, record
from nacelle_tb.streams import AxisSink, AxisSource, StreamSink, StreamSource, pulses, start, wait_cycles
from nacelle_tb.svtypes import constant, struct
from scapy.layers.dhcp import BOOTP, DHCP
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import Raw

WIDTH = int(os.environ.get("WIDTH", "512"))
WINDOW = constant("packet_pkg::HDR_BYTES")
TX, EVENTS, SETTINGS, LOCAL = (
    "packet_pkg::frame_tx_t", "services_pkg::service_events_t", "cci_pkg::cci_settings_t", "packet_pkg::local_addr_t",
)  # fmt: skip
UNWANTED = "packet_pkg::unwanted_t"
ADDRESS, DISCOVERY = "address_pkg::address_settings_t", "services_pkg::discovery_settings_t"
CLOCK_HZ = 1_000_000  # short times
MAC, DEVICE_IP, PORT = "02:00:00:00:00:01", "10.0.0.1", 50001
TOKEN = [0x12345678, 0x9ABCDEF0, 0x0F1E2D3C, 0x4B5A6978]
SESSION = 10_000_000
CLIENTS: list[Address] = [("10.0.0.2", 4000), ("10.0.0.2", 4001), ("10.0.0.3", 4000), ("10.0.1.4", 50001)]
REGISTERS = {address: (address * 0x9E3779B1) & 0xFFFFFFFF for address in range(0, 0x2000, 4)}
NOBODY, SILENT = {0x70, 0x204, 0x1004, 0x80000}, {0x1008, 0x1FFC}
PAUSE, BURST = 16384, 8
MDNS_SAYS = 12345
AHEAD = 8


def number(ip: str) -> int:
    return int.from_bytes(bytes(map(int, ip.split("."))), "big")


def mac_of(client: Address) -> str:
    return f"02:00:00:{client[1] >> 8:02x}:{client[1] & 255:02x}:{number(client[0]) & 255:02x}"


class Registers:
    """The register bus: one access at a time, answered after some cycles."""

    def __init__(self, dut, model: Model) -> None:
        self.dut, self.model = dut, model
        self.words = dict(model.registers)
        self.writes: list[tuple[int, int]] = []
        self.delay = 3
        for name in ("awready", "wready", "bvalid", "arready", "rvalid"):
            getattr(dut, f"bus_{name}").value = 0
        cocotb.start_soon(self._reads())
        cocotb.start_soon(self._writes())

    def _response(self, address: int) -> int:
        return 3 if address in self.model.nobody else 2 if address in self.model.silent else 0

    async def _pass(self, valid: str, ready: str) -> None:
        for _ in range(random.randint(0, self.delay)):
            await FallingEdge(self.dut.clk)
        getattr(self.dut, f"bus_{ready}").value = 1
        while True:
            await RisingEdge(self.dut.clk)
            if int(getattr(self.dut, f"bus_{valid}").value):
                break
        await FallingEdge(self.dut.clk)
        getattr(self.dut, f"bus_{ready}").value = 0

    async def _tell(self, valid: str, ready: str) -> None:
        getattr(self.dut, f"bus_{valid}").value = 1
        while True:
            await RisingEdge(self.dut.clk)
            if int(getattr(self.dut, f"bus_{ready}").value):
                break
        await FallingEdge(self.dut.clk)
        getattr(self.dut, f"bus_{valid}").value = 0

    async def _reads(self) -> None:
        while True:
            await RisingEdge(self.dut.bus_arvalid)
            address = int(self.dut.bus_araddr.value)
            await FallingEdge(self.dut.clk)
            await self._pass("arvalid", "arready")
            self.dut.bus_rdata.value = self.words.get(address, 0)
            self.dut.bus_rresp.value = self._response(address)
            await self._tell("rvalid", "rready")

    async def _writes(self) -> None:
        while True:
            await RisingEdge(self.dut.bus_awvalid)
            address, value = int(self.dut.bus_awaddr.value), int(self.dut.bus_wdata.value)
            await FallingEdge(self.dut.clk)
            if random.random() < 0.5:
                await self._pass("awvalid", "awready")
                await self._pass("wvalid", "wready")
            else:
                await self._pass("wvalid", "wready")
                await self._pass("awvalid", "awready")
            response = self._response(address)
            if response == 0:
                self.words[address] = value
                self.writes.append((address, value))
            self.dut.bus_bresp.value = response
            await self._tell("bvalid", "bready")


class Bench:
    """The plane between frames and registers, and the model beside it."""

    def __init__(self, dut, stall: float = 0.0, token: list[int] = TOKEN, mode: int = 0, mdns: bool = False) -> None:
        self.dut = dut
        self.model = Model(dict(REGISTERS), NOBODY, SILENT, token)
        self.registers = Registers(dut, self.model)
        self.frame = StreamSource(dut, "frame", FRAME_RX, noise=True)
        self.payload = AxisSource(dut, "payload", stall, noise=True)
        self.tx = StreamSink(dut, "tx", TX, stall)
        self.tx_payload = AxisSink(dut, "tx_payload", stall)
        self.settings = {"port": PORT, "source": 0, "source_prefix": 0, "session_cycles": SESSION}
        self.settings["token"] = sum(word << 32 * i for i, word in enumerate(token))
        self.mode = mode  # of the device's address
        self.mdns = mdns
        self.counts: dict[str, int] = {}
        self.waiting: deque[tuple[int, bytes]] = deque()
        self.queued = Event()
        self.skipped = 0
        self.rate_free = True  # time passes until a stranger's packet is taken again; else strangers may be answered in between
        dut.now.value = 0

    async def start(self) -> Bench:
        self.set()
        for name in ("claim_ready", "conflict", "nd_conflict", "closed", "abandoned"):
            getattr(self.dut, name).value = 0
        self.dut.enable.value = 1
        self.dut.icmp_errors.value = 1
        self.dut.unwanted_valid.value = 0
        self.dut.discovery.value = struct(DISCOVERY).pack(mdns=int(self.mdns), port=MDNS_SAYS)
        self.dut.mac.value = int(MAC.replace(":", ""), 16)
        self.dut.address_settings.value = struct(ADDRESS).pack(fixed={"ip": number(DEVICE_IP), "prefix_length": 24}, mode=self.mode)
        await start(self.dut)
        cocotb.start_soon(self._count())
        cocotb.start_soon(self._feed())
        await self.skip(10 * BURST * PAUSE)
        return self

    def set(self, **values: int) -> None:
        self.settings |= values
        self.dut.settings.value = struct(SETTINGS).pack(self.settings)

    async def _count(self) -> None:
        events = struct(EVENTS)
        async for word in pulses(self.dut.clk, self.dut.events):
            for name, value in vars(events.unpack(word)).items():
                self.counts[name] = self.counts.get(name, 0) + value

    async def skip(self, cycles: int) -> None:
        """Time passes."""
        self.skipped += cycles
        await FallingEdge(self.dut.clk)
        self.dut.now.value = self.skipped % (1 << 48)
        await wait_cycles(self.dut, 8)

    def send(self, client: Address, packet: bytes) -> None:
        """A frame to the plane."""
        frame = bytes(Ether(dst=MAC, src=mac_of(client)) / IP(src=client[0], dst=DEVICE_IP)
                      / UDP(sport=client[1], dport=self.settings["port"]) / Raw(packet))  # fmt: skip
        self.last = packet
        self.waiting.append((record("UDP", frame, len(packet)), packet))
        self.queued.set()

    async def _feed(self) -> None:
        """Records come with their payloads, AHEAD in front of them at most, as in the packet plane."""
        beats, ends = 0, deque()
        while True:
            while not self.waiting:
                self.queued.clear()
                await self.queued.wait()
            word, packet = self.waiting[0]
            while ends and ends[0] <= self.payload.sent:
                ends.popleft()
            if len(ends) >= AHEAD:
                await RisingEdge(self.dut.clk)
                continue
            self.frame.send(word)
            if packet:
                self.payload.send(packet)
                beats += -(-len(packet) // (WIDTH // 8))
                ends.append(beats)
            self.waiting.popleft()

    async def drained(self) -> None:
        """Everything was taken."""
        while self.waiting:
            await wait_cycles(self.dut, 4)
        await self.frame.drained()
        await self.payload.drained()

    async def quiet(self, cycles: int = 30_000) -> None:
        """Everything is done."""
        await self.drained()
        await wait_cycles(self.dut, 6)
        for _ in range(cycles // 8):
            if int(self.dut.idle.value):
                break
            await wait_cycles(self.dut, 8)
        await wait_cycles(self.dut, 2)
        assert int(self.dut.idle.value), f"the plane does not come to rest after {self.last.hex(' ', 4)}"

    async def received(self) -> tuple[Address, bytes] | None:
        """The next answer, taken apart by scapy."""
        if not self.tx.received:
            return None
        tx = await self.tx.recv()
        assert (tx.hdr_length, tx.pad, tx.icrc) == (42, 0, 0)
        payload = await self.tx_payload.recv()
        assert len(payload) == tx.payload_length
        frame = tx.hdr.to_bytes(WINDOW, "big")[:42] + payload
        parsed = Ether(frame)
        fresh = Ether(frame)
        del fresh[IP].chksum
        assert bytes(fresh) == frame, "the checksum of the header"
        assert (parsed.src, parsed[IP].src, parsed[UDP].sport) == (MAC, DEVICE_IP, self.settings["port"])
        assert parsed[IP].flags == "DF" and parsed[IP].ttl == 64 and parsed[UDP].chksum == 0
        assert parsed[IP].len == len(frame) - 14 and parsed[UDP].len == len(payload) + 8
        client = (parsed[IP].dst, parsed[UDP].dport)
        assert parsed.dst == mac_of(client)
        return client, payload

    async def ask(self, client: Address, packet: bytes) -> bytes | None:
        """One packet and its answer, which must be the model's."""
        if self.rate_free and not self.model.authorised(client):
            await self.skip(PAUSE)
        was_authorised = self.model.authorised(client)
        self.model.now = self.skipped + self.tx.cycle
        expected = self.model.receive(client, packet)
        self.send(client, packet)
        await self.quiet()
        got = await self.received()
        while got and got[0] != client and not self.rate_free:
            got = await self.received()
        assert got == (None if expected is None else (client, expected)), (
            f"{client} {packet.hex(' ', 4)}:\n got {got and got[1].hex(' ', 4)}\n not {expected and expected.hex(' ', 4)}"
        )
        assert self.registers.writes == self.model.writes
        if expected and not was_authorised and not self.model.authorised(client) and packet[3] & 15 != ipbus.RESEND:
            assert len(expected) <= len(packet), "amplified"
        return expected

    async def login(self, client: Address) -> None:
        response = await self.ask(client, control(write(LOGIN // 4, self.model.token)))
        assert response and answers(response)[0].info == 0
        assert self.model.authorised(client)


@cocotb.test()
@cocotb.parametrize(stall=alternately([0.0, 0.4]))
async def transactions_of_every_kind(dut, stall: float) -> None:
    bench = await Bench(dut, stall).start()
    client = CLIENTS[0]
    for little in (False, True):
        bench.model.contexts.clear()
        await bench.ask(client, control(read(0), little=little))
        await bench.ask(client, control(*[read(i) for i in range(8)], little=little))
        await bench.login(client)
        for packet in (
            control(read(0x280, 255), read(0x300, 110), little=little),
            control(write(0x280, [random.getrandbits(32) for _ in range(255)]), little=little),
            control(write(0x240, [1, 2, 3]), read(0x240, 3), read(0x240, 5, same=True), little=little),
            control(write(0x248, [7, 8, 9], same=True), read(0x248, 2), little=little),
            control(rmw_bits(0x240, 0xFFFF0000, 0x1234), read(0x240), rmw_sum(0x241, -5), rmw_sum(0x241, 7), little=little),
            control(read(0x240, 2), little=little),
            control(read_config(0, 4), read_config(2), little=little),
            control(read(0x240, 0), write(0x240, []), read_config(0, 0), read(0x241), little=little),
            control(little=little),
            control(*[read(0x240 + i, ident=i) for i in range(183)], little=little),
        ):
            await bench.ask(client, packet)
        await bench.ask(client, control(write(LOGOUT // 4, [0]), little=little))
    response = await bench.ask(client, control(read_config(0), read_config(1), read_config(3)))
    assert [answer.data[0] for answer in answers(response or b"")] == [ID, VERSION, 0]


@cocotb.test()
async def errors_end_a_packet_and_say_how_far_it_came(dut) -> None:
    bench = await Bench(dut).start()
    client = CLIENTS[0]
    await bench.login(client)
    one = read(0x240, ident=5)
    header = ipbus.transaction_header
    for packet in (
        control(one, read(0x1000 // 4, 4), one),  # the second word has no owner
        control(one, write(0x1000 // 4, [1, 2, 3]), one),
        control(read(0x1FF8 // 4, 3), one),  # silent
        control(write(0x1FF8 // 4, [1, 2, 3])),
        control(rmw_bits(0x204 // 4, 1, 2), one),
        control(rmw_sum(0x1008 // 4, 2), one),
        control(read(1 << 18), one), control(write(1 << 18, [1])), control(read(0xFFFFFFFF)), control(rmw_sum(1 << 30, 1)),
        control(read((1 << 18) - 1, 2)), control(write((1 << 18) - 2, [1, 2, 3])),
        control([header(1, 1, ipbus.READ, version=1), 0x240], one), control([header(1, 1, ipbus.READ, info=0), 0x240], one),
        *[control(one, [header(1, 1, kind), 0x240, 1, 2], one) for kind in range(8, 16)],
        control([header(1, 2, ipbus.RMW_BITS), 0x240, 1, 2, 3, 4], one), control([header(1, 0, ipbus.RMW_SUM), 0x240, 1], one),
        control(one, [header(3, 1, ipbus.READ)]),  # ends behind the header,
        control(one, [header(3, 4, ipbus.WRITE), 0x240, 1, 2, 3]),  # in the data
        control([header(3, 1, ipbus.RMW_BITS), 0x240, 1]), control([header(3, 1, ipbus.RMW_SUM), 0x240]),
        control(read(0x240, 255), read(0x240, 111), one),  # does not fit
        control(read(0x240, 255), read(0x240, 109), read(0x241), one),  # the last word is for a header,
        control(read(0x240, 255), read(0x240, 110), one, one),  # and here is none
        control(read(0x240, 255), read(0x240, 110), one),
        control([header(1, 1, ipbus.WRITE_CONFIG), 0, 7], one), control(read_config(3, 2)), control(read_config(4)),
        control(read_config(1 << 31)),
    ):  # fmt: skip
        await bench.ask(client, packet)
    assert bench.counts["bus_error"] >= 10


@cocotb.test()
async def malformed_packets_change_nothing_but_a_counter(dut) -> None:
    bench = await Bench(dut).start()
    client = CLIENTS[0]
    await bench.login(client)
    good = control(read(0x240))
    bad = [good[:n] for n in (1, 2, 3, 5, 7, 11)] + [good + b"\0"]
    for word in (0x100000F0, 0x300000F0, 0x210000F0, 0x200000E0, 0x200000F3, 0x200000FF, 0, 0xFFFFFFFF, 0xF0010020 | 1 << 4):
        bad += [ipbus.packed([word]), ipbus.packed([word, *read(0x240)])]
    bad += [ipbus.status()[:60], ipbus.status() + bytes(4), ipbus.packed([ipbus.packet_header(1, ipbus.STATUS), *[0] * 15])]
    bad += [ipbus.packed([ipbus.packet_header(0, ipbus.RESEND)]), ipbus.packed([ipbus.packet_header(1, ipbus.RESEND), 0])]
    for packet in bad:
        before = bench.counts.get("drop_malformed", 0)
        assert await bench.ask(client, packet) is None, packet.hex()
        assert bench.counts["drop_malformed"] == before + 1, packet.hex()
    for length in (1473, 1476, 4000):
        bench.send(client, random.randbytes(length))
    bench.send(client, b"")
    await bench.ask(client, good)
    assert bench.counts["drop_length"] == 4
    assert bench.counts["rx_message"] == len(bad) + 2


@cocotb.test()
async def each_packet_is_executed_exactly_once(dut) -> None:
    """Reliable mode over a line that loses, doubles and delays packets in both directions."""
    bench = await Bench(dut).start()
    client = CLIENTS[0]
    await bench.login(client)
    rng = random.Random(7)
    sent = []
    ident = 1
    await bench.ask(client, control(write(0x240, [0]), ident=ident))
    for _ in range(60):
        ident += 1
        packet = control(rmw_sum(0x240, 1), ident=ident)
        sent.append(packet)
        for _ in range(rng.randrange(1, 4)):
            await bench.ask(client, packet)  # the first is executed, the model says so; the others are silence
        if rng.random() < 0.5:
            await bench.ask(client, ipbus.resend(ident))
        if rng.random() < 0.3:
            await bench.ask(client, ipbus.resend(ident - 1))
        if rng.random() < 0.3:
            await bench.ask(client, ipbus.resend(max(1, ident - 2)))  # kept no longer
        if rng.random() < 0.3:
            await bench.ask(client, rng.choice(sent))
        if rng.random() < 0.3:
            await bench.ask(client, control(rmw_sum(0x240, 1), ident=ident + rng.randrange(2, 5)))  # one is missing
        if rng.random() < 0.3:
            await bench.ask(client, ipbus.status())
    assert bench.registers.words[4 * 0x240] == 60
    assert bench.counts["resent"] > 10 and bench.counts["resend_unknown"] > 3 and bench.counts["drop_id"] > 30


@cocotb.test()
async def clients_do_not_disturb_each_other(dut) -> None:
    """Four at once, each with identifiers of its own; two of them on one host."""
    bench = await Bench(dut).start()
    for client in CLIENTS:
        await bench.login(client)
    ident = dict.fromkeys(CLIENTS, 0)
    for _ in range(60):
        client = random.choice(CLIENTS)
        kind = random.randrange(6)
        if kind == 0:
            await bench.ask(client, ipbus.status())
        elif kind == 1:
            await bench.ask(client, ipbus.resend(max(1, ident[client])))
        elif kind == 2:
            await bench.ask(client, control(rmw_sum(0x250, 1), read(0x250), little=True))
        else:
            ident[client] += 1
            await bench.ask(client, control(rmw_sum(0x251, ident[client]), ident=ident[client]))


@cocotb.test()
async def strangers_cannot_throw_out_an_authorised_client(dut) -> None:
    bench = await Bench(dut).start()
    working = CLIENTS[0]
    await bench.login(working)
    await bench.ask(working, control(write(0x240, [1]), ident=1))
    strangers = [(f"10.9.{i}.1", 1000 + i) for i in range(12)]
    for stranger in strangers:
        await bench.ask(stranger, control(read(0), ident=1))
    # Three contexts are left to them: the three that came last.
    for stranger in strangers[-3:]:
        assert await bench.ask(stranger, control(read(0), ident=2))
    assert await bench.ask(strangers[0], control(read(0), ident=2)) is None
    assert await bench.ask(working, control(write(0x240, [2]), ident=2))
    # They keep nobody from logging in, with a packet of a sequence or without.
    await bench.login(CLIENTS[1])
    assert await bench.ask(CLIENTS[2], control(write(LOGIN // 4, TOKEN), ident=1))
    await bench.login(CLIENTS[3])
    assert all(map(bench.model.authorised, CLIENTS))
    # Now all contexts belong to authorised clients.
    before = bench.counts.get("drop_context", 0)
    assert await bench.ask(strangers[0], control(read(0), ident=1)) is None
    assert bench.counts["drop_context"] == before + 1
    assert await bench.ask(strangers[0], control(read(0)))  # needs none
    response = await bench.ask(strangers[0], control(write(LOGIN // 4, TOKEN)))
    assert answers(response or b"")[0].info == ipbus.WRITE_ERROR and bench.counts["login_refused"] == 1
    await bench.ask(CLIENTS[2], control(write(LOGOUT // 4, [1])))
    await bench.login(strangers[0])


@cocotb.test()
async def clients_that_went_without_a_logout_keep_nobody_out_for_long(dut) -> None:
    """Whoever has the token gets the context that was silent for the longest time; not one that is in use."""
    bench = await Bench(dut).start()
    for client in CLIENTS:
        await bench.login(client)
    newcomers = [("10.0.2.2", 5000 + i) for i in range(4)]
    await bench.skip(IN_USE // 2)
    for client in CLIENTS[2:]:
        await bench.ask(client, control(write(0x240, [1])))
    response = await bench.ask(newcomers[0], control(write(LOGIN // 4, TOKEN)))
    assert answers(response or b"")[0].info == ipbus.WRITE_ERROR
    await bench.skip(IN_USE // 2)
    for stranger in newcomers[:2]:  # without the token: nothing
        assert await bench.ask(stranger, control(read(0), ident=1)) is None
    for client in newcomers[:2]:
        await bench.login(client)
    assert not any(map(bench.model.authorised, CLIENTS[:2])) and all(map(bench.model.authorised, CLIENTS[2:]))
    response = await bench.ask(newcomers[2], control(write(LOGIN // 4, TOKEN)))
    assert answers(response or b"")[0].info == ipbus.WRITE_ERROR
    for client in (*CLIENTS, *newcomers):
        await bench.ask(client, control(write(0x240, [2])))


@cocotb.test()
async def without_the_token_nothing_is_written_and_little_is_read(dut) -> None:
    bench = await Bench(dut).start()
    client, other_port, other_host = CLIENTS[:3]
    for address in (0x0, 0x1C, 0x20, 0x34, 0x38, 0x60, 0x6C, 0xD0, 0xE0, 0xF0, 0x100, 0x400, 0x1000, 0x10000):
        at = address // 4
        for transaction in (read(at), write(at, [1]), rmw_bits(at, 0, 1), rmw_sum(at, 1), read(at, 2), read(at, 2, same=True)):
            await bench.ask(client, control(transaction))
    assert not bench.registers.writes
    await bench.login(client)
    await bench.ask(client, control(write(0x240, [1])))
    for stranger in (other_port, other_host):
        await bench.ask(stranger, control(write(0x240, [2])))
        await bench.ask(stranger, control(read(0x240)))
    for address in (0x34, 0xD0, 0xDC, 0xE0, 0xEC, 0xF4):  # local, whoever asks
        await bench.ask(client, control(read(address // 4)))
        await bench.ask(client, control(write(address // 4, [1])))
    await bench.ask(client, control(write(LOGOUT // 4, [1]), write(0x240, [3])))
    await bench.ask(client, control(write(0x240, [3])))
    assert bench.registers.writes == [(4 * 0x240, 1)]
    assert bench.counts["refused"] > 20


@cocotb.test()
async def logins_of_every_form(dut) -> None:
    bench = await Bench(dut).start()
    client = CLIENTS[0]

    async def attempt(*words: list[int]) -> bool:
        await bench.ask(client, control(*words))
        worked = bench.model.authorised(client)
        if worked:
            await bench.ask(client, control(write(LOGOUT // 4, [0])))
        return worked

    at = LOGIN // 4
    assert await attempt(write(at, TOKEN))
    assert await attempt(write(at, TOKEN, same=True))
    assert await attempt(read(0), write(at, TOKEN), write(0x240, [7]))  # and goes on in the same packet
    for wrong in range(4):
        assert not await attempt(write(at, [word ^ (i == wrong) << random.randrange(32) for i, word in enumerate(TOKEN)]))
        assert not await attempt(write(at, TOKEN[:wrong]))
        if wrong:
            assert not await attempt(write(at + wrong, TOKEN))
            assert not await attempt(write(at - wrong, [*[0] * wrong, *TOKEN]))
    assert not await attempt(write(at, [*TOKEN, 0]))
    assert not await attempt(*[write(at + i, [word]) for i, word in enumerate(TOKEN)])
    assert not await attempt(write(at, [0] * 4))
    assert not await attempt(write(at, TOKEN[:2]), write(at + 2, TOKEN[2:]))
    # A wrong one closes nothing.
    assert not await attempt(write(at, [0] * 4))
    assert await attempt(write(at, TOKEN))
    assert bench.counts["login_wrong"] == 6 and bench.counts["login"] == 4


@cocotb.test()
async def no_token_no_login(dut) -> None:
    """A device that was not given a token takes none, least of all zeros."""
    bench = await Bench(dut, token=[0, 0, 0, 0]).start()
    response = await bench.ask(CLIENTS[0], control(write(LOGIN // 4, [0] * 4), write(0x240, [1])))
    assert answers(response or b"")[0].info == ipbus.WRITE_ERROR
    assert not bench.registers.writes


@cocotb.test()
async def a_session_ends_by_itself(dut) -> None:
    bench = await Bench(dut).start()
    first, second = CLIENTS[:2]
    await bench.login(first)
    await bench.login(second)
    await bench.skip(SESSION - 20_000)
    await bench.ask(first, control(write(0x240, [1])))  # keeps it
    await bench.skip(SESSION - 20_000)
    await wait_cycles(dut, 20)
    bench.model.contexts[second].authorised = False
    assert bench.counts["session_expired"] == 1
    await bench.ask(second, control(write(0x240, [2])))
    await bench.ask(first, control(write(0x240, [3])))
    # However far the time jumps, it stays ended.
    for _ in range(4):
        await bench.skip(1 << 46)
    bench.model.contexts[first].authorised = False
    await bench.ask(first, control(write(0x240, [4])))
    assert bench.counts["session_expired"] == 2


@cocotb.test()
async def the_source_filter(dut) -> None:
    bench = await Bench(dut).start()
    bench.set(source=number("10.0.0.0"), source_prefix=24)
    await wait_cycles(dut, 4)
    dropped = 0
    for host in ("10.0.0.9", "10.0.1.9", "11.0.0.9", "10.0.0.255", "138.0.0.1"):
        await bench.skip(PAUSE)
        bench.send((host, 99), control(read(0)))
        await bench.quiet()
        got = await bench.received()
        assert (got is not None) == host.startswith("10.0.0."), host
        dropped += got is None
    assert bench.counts["drop_source"] == dropped == 3
    bench.set(source=number("10.0.0.7"), source_prefix=32)
    await wait_cycles(dut, 4)
    for host in ("10.0.0.7", "10.0.0.6"):
        bench.send((host, 99), control(read(0)))
        await bench.quiet()
        assert (await bench.received() is not None) == (host == "10.0.0.7")


@cocotb.test()
async def a_flood_costs_strangers_only(dut) -> None:
    """Packets back to back from everywhere: the line never stops, few are answered, and an authorised client works on."""
    bench = await Bench(dut).start()
    bench.set(session_cycles=1 << 40)
    client = CLIENTS[0]
    await bench.login(client)
    many, wrong = control(*[read(i % 8) for i in range(180)]), control(write(LOGIN // 4, TOKEN[::-1]))
    for packet in (control(read(0)), many, random.randbytes(1472), wrong):
        await bench.skip(10 * BURST * PAUSE)
        before = dict(bench.counts)
        for i in range(120):
            bench.send((f"10.7.{i}.1", 7000 + i), packet)
        begin, beats = bench.tx.cycle, 120 * (-(-len(packet) // (WIDTH // 8)))
        await bench.drained()
        assert bench.tx.cycle - begin < beats + 2 * 120 + 30, "the line stopped"
        await bench.quiet(200_000)
        taken = bench.counts["rx_message"] - before.get("rx_message", 0)
        assert 1 <= taken <= BURST + 4
        refused = sum(bench.counts.get(name, 0) - before.get(name, 0) for name in ("drop_rate", "drop_room"))
        assert taken + refused == 120
        while await bench.received():
            pass
        bench.rate_free = False
        for i in range(rounds(20)):
            for j in range(10):
                bench.send((f"10.8.{j}.1", 8000 + j), packet)
            await bench.ask(client, control(write(0x240, [i]), read(0x240)))
        bench.rate_free = True
        await bench.quiet()


@cocotb.test()
async def strangers_have_half_of_the_store(dut) -> None:
    """As many long packets as their budget has, each of them slow to execute: the next one of an authorised client finds room."""
    bench = await Bench(dut).start()
    client = CLIENTS[0]
    await bench.login(client)
    await bench.skip(10 * BURST * PAUSE)
    many = control(*[read(i % 8) for i in range(180)])
    for i in range(BURST):
        bench.send((f"10.7.{i}.1", 7000 + i), many)
    bench.send(client, many)
    await bench.quiet(1_000_000)
    answered = []
    while (response := await bench.received()) is not None:
        answered.append(response[0])
    assert client in answered
    assert bench.counts["drop_room"] > 0, "the packets of strangers are too few to fill their half"


@cocotb.test()
async def an_authorised_flood_loses_whole_packets(dut) -> None:
    """More than the store holds at once: what is taken is answered, in order; what is not is counted; nothing is half."""
    bench = await Bench(dut).start()
    client = CLIENTS[0]
    await bench.login(client)
    packets = [control(*[write(0x240 + k, [n * 1000 + k]) for k in range(random.randrange(1, 120))]) for n in range(60)]
    for packet in packets:
        bench.send(client, packet)
    before = bench.counts.get("rx_message", 0)
    await bench.quiet(1_000_000)
    taken = bench.counts["rx_message"] - before
    assert taken + bench.counts["drop_room"] == len(packets) and bench.counts["drop_room"] > 10
    got = []
    while (response := await bench.received()) is not None:
        got.append(response[1])
    assert len(got) == taken
    blocks = [packet for packet in packets if any(ipbus.words_of(packet)[3] == value for _, value in bench.registers.writes)]
    assert len(blocks) == taken
    bench.model.writes[:] = []
    for packet, response in zip(blocks, got, strict=True):
        assert bench.model.receive(client, packet) == response
    assert bench.registers.writes == bench.model.writes


def mangled(rng: random.Random) -> bytes:
    """A packet that is nearly right, or not at all."""
    if rng.random() < 0.2:
        return rng.randbytes(4 * rng.randrange(1, 60) + (rng.random() < 0.3))
    transactions = []
    for _ in range(rng.randrange(6)):
        kind = rng.choice([0, 0, 1, 1, 2, 3, 4, 5, 6, 7, rng.randrange(16)])
        count = rng.choice([1, 1, 1, 2, 3, 4, rng.randrange(9), rng.randrange(256)])
        anywhere = [rng.randrange(0x248), LOGIN // 4, 0x400, 0x7FE, rng.getrandbits(18), rng.getrandbits(32), LOGOUT // 4]
        address = rng.choice(anywhere)
        size = {1: count, 3: count, 4: 2, 5: 1, 7: count}.get(kind, 0)
        if rng.random() < 0.1:
            size = rng.randrange(6)
        data = TOKEN if size == 4 and rng.random() < 0.5 else [rng.getrandbits(32) for _ in range(size)]
        info, version = (15, 2) if rng.random() < 0.95 else (rng.randrange(16), rng.randrange(16))
        transactions.append([ipbus.transaction_header(rng.getrandbits(12), count, kind, info, version), address, *data])
    packet = bytearray(control(*transactions, ident=rng.choice([0, 0, 0, 1, 2, 3]), little=rng.random() < 0.3))[:1472]
    if rng.random() < 0.1:
        packet[rng.randrange(len(packet))] ^= 1 << rng.randrange(8)
    return bytes(packet)


@cocotb.test()
@cocotb.parametrize(stall=alternately([0.0, 0.3]))
async def dhcp_beside_registers(dut, stall: float) -> None:
    """The device gets its address while registers are read, and neither takes what is the other's: strangers fill their half of
    the store, and answers of servers that are not expected take no room."""
    bench = await Bench(dut, stall, mode=1).start()
    dut.claim_ready.value = 1
    dut.closed.value = 1

    async def frame() -> Ether:
        tx = await bench.tx.recv()
        return Ether(tx.hdr.to_bytes(WINDOW, "big")[:42] + await bench.tx_payload.recv())

    def answer(kind: str, xid: int, dport: int = 68) -> None:
        packet = dhcp_model.message(kind, xid, yiaddr=DEVICE_IP, mac=MAC)
        wire = Ether(dst="ff:ff:ff:ff:ff:ff", src="02:00:00:00:00:01") / IP(src="10.0.0.1", dst="255.255.255.255")
        wire = bytes(wire / UDP(sport=67, dport=dport) / Raw(packet))
        bench.waiting.append((record("UDP", wire, len(packet)), packet))
        bench.queued.set()

    async def pass_time(seconds: int) -> None:
        for _ in range(seconds * 16):
            await bench.skip(CLOCK_HZ // 16)

    assert struct(LOCAL).unpack(int(dut.local_addr.value)).ip == 0
    while not bench.tx.received:
        await bench.skip(CLOCK_HZ // 16)
    discover = await frame()
    assert (discover.src, discover.dst) == (MAC, "ff:ff:ff:ff:ff:ff")
    assert (discover[IP].src, discover[IP].dst) == ("0.0.0.0", "255.255.255.255")
    assert (discover[UDP].sport, discover[UDP].dport) == (68, 67) and DHCP in discover
    xid = discover[BOOTP].xid
    for n in range(30):  # more than the store has room for
        bench.send((f"10.0.9.{n}", 9), control(read(0), *[read(4)] * 100))
        answer("offer", xid ^ 1)
    answer("offer", xid)
    await bench.quiet()
    frames = [await frame() for _ in range(len(bench.tx.received))]
    (request,) = [got for got in frames if DHCP in got]
    assert ("requested_addr", DEVICE_IP) in request[DHCP].options
    assert bench.counts["drop_rate"] > 0 and bench.counts["rx_message"] == len(frames)
    answer("ack", xid)
    await bench.quiet()
    await pass_time(10)
    assert struct(LOCAL).unpack(int(dut.local_addr.value)).ip == number(DEVICE_IP)
    await bench.login(CLIENTS[0])
    assert await bench.ask(CLIENTS[0], control(read(0x20)))


@cocotb.test()
@cocotb.parametrize(stall=alternately([0.0, 0.3]))
async def mdns_beside_registers_and_dhcp(dut, stall: float) -> None:
    """The device answers by mDNS once it has an address; a flood of queries, each as long to read as it can be, keeps neither an
    authorised client from its registers nor the device from its lease."""
    bench = await Bench(dut, stall, mode=1, mdns=True).start()
    dut.claim_ready.value = 1
    dut.closed.value = 1
    group = Ether(dst="01:00:5e:00:00:fb", src="02:00:00:00:00:09") / IP(src="10.0.0.9", dst="224.0.0.251", ttl=255)

    @cache  # scapy takes a query of 200 questions apart
    def described(packet: bytes) -> int:
        return record("UDP", bytes(group / UDP(sport=5353, dport=5353) / Raw(packet)), len(packet))

    def ask(packet: bytes) -> None:
        bench.waiting.append((described(packet), packet))
        bench.queued.set()

    def tell(kind: str, xid: int) -> None:
        packet = dhcp_model.message(kind, xid, yiaddr=DEVICE_IP, mac=MAC)
        wire = Ether(dst="ff:ff:ff:ff:ff:ff", src="02:00:00:00:00:01") / IP(src="10.0.0.1", dst="255.255.255.255")
        bench.waiting.append((record("UDP", bytes(wire / UDP(sport=67, dport=68) / Raw(packet)), len(packet)), packet))
        bench.queued.set()

    async def frame() -> Ether:
        tx = await bench.tx.recv()
        parsed = Ether(tx.hdr.to_bytes(WINDOW, "big")[:42] + await bench.tx_payload.recv())
        if parsed[UDP].sport == 5353:
            assert (parsed.src, parsed.dst, parsed[IP].src, parsed[IP].dst) == (MAC, "01:00:5e:00:00:fb", DEVICE_IP, "224.0.0.251")
            assert parsed[IP].ttl == 255 and parsed[UDP].dport == 5353
            checked = parsed.copy()
            del checked[IP].chksum
            assert bytes(checked) == bytes(parsed), "the checksum of the header"
            message = bytes(parsed)[42:]
            assert mdns_model.records(message) == mdns_model.expected(DEVICE_IP, MDNS_SAYS, MAC)
        return parsed

    async def pass_time(sixteenths: int) -> None:
        for _ in range(sixteenths):
            await bench.skip(CLOCK_HZ // 16)

    assert struct(LOCAL).unpack(int(dut.local_addr.value)).mdns == 0, "there is no address"
    while not bench.tx.received:
        await bench.skip(CLOCK_HZ // 16)
    xid = (await frame())[BOOTP].xid
    tell("offer", xid)
    await bench.quiet()
    assert ("requested_addr", DEVICE_IP) in (await frame())[DHCP].options
    tell("ack", xid)
    await bench.quiet()
    await pass_time(160)
    assert struct(LOCAL).unpack(int(dut.local_addr.value)).mdns == 1
    said = [(await frame())[UDP].sport for _ in range(len(bench.tx.received))]
    assert said == [5353, 5353], "announced twice"
    ask(mdns_model.query(mdns_model.question(mdns_model.host(MAC), mdns_model.A)))
    await bench.quiet()
    await pass_time(3)
    assert (await frame())[UDP].sport == 5353 and not bench.tx.received
    await bench.login(CLIENTS[0])
    # Names of 254 bytes, again and again.
    label = bytes([63]) + b"a" * 63
    longest = mdns_model.question(label * 3 + bytes([56]) + b"b" * 56 + bytes(1))
    heavy = mdns_model.query(longest, *[mdns_model.question(bytes([0xC0, 12]))] * 200)
    for i in range(rounds(30)):
        for _ in range(10):
            ask(heavy)
        bench.send(CLIENTS[0], control(write(0x240, [i]), ident=0))
        await bench.drained()
        begin = bench.tx.cycle
        while not bench.tx.received:
            await wait_cycles(dut, 20)
        assert bench.tx.cycle - begin < 2000, "as long as words take that stand before it, not as a query takes to be read"
        client, answer = await bench.received() or (None, b"")
        assert client == CLIENTS[0] and answers(answer)[0].info == 0
    assert bench.counts["mdns_busy"] > 8 * rounds(30) and bench.counts.get("drop_mdns", 0) == 0
    # The lease is renewed beside it: the request comes, and its answer is taken.
    await bench.quiet(200_000)
    while not bench.tx.received:
        ask(heavy)
        await bench.skip(10 * CLOCK_HZ)
        await wait_cycles(dut, 200)
    renewal = await frame()
    for _ in range(20):
        ask(heavy)
    tell("ack", renewal[BOOTP].xid)
    await bench.quiet(200_000)
    status = struct("address_pkg::address_status_t").unpack(int(dut.address_status.value))
    assert 3500 < status.lease_left <= 3600 and bench.counts.get("drop_room", 0) == 0


@cocotb.test()
@cocotb.parametrize(seed=[1, 2, 3])
async def random_packets(dut, seed: int) -> None:
    """Whatever comes: the answer is the model's, and so are the registers."""
    bench = await Bench(dut, stall=0.2).start()
    rng = random.Random(seed)
    for _ in range(150):
        client = rng.choice([*CLIENTS, (f"10.5.5.{rng.randrange(4)}", 5)])
        packet = rng.choice([mangled(rng), mangled(rng), mangled(rng), ipbus.status(), ipbus.resend(rng.randrange(1, 5))])
        await bench.ask(client, packet)
        if rng.random() < 0.1:
            await bench.skip(SESSION + 1000)
            for context in bench.model.contexts.values():
                context.authorised = False
        if rng.random() < 0.1 and not bench.model.authorised(client):
            await bench.login(client)


@cocotb.test()
async def how_long_one_read_takes(dut) -> None:
    """From the record of the request to the frame of the response, with a register that answers at once."""
    bench = await Bench(dut).start()
    bench.registers.delay = 0
    await bench.skip(PAUSE)
    bench.send(CLIENTS[0], control(read(0)))
    await RisingEdge(dut.frame_valid)
    begin = bench.tx.cycle
    await bench.quiet()
    took = bench.tx.cycles[0] - begin
    dut._log.info(f"one read takes {took} cycles")
    assert took <= 50
    assert await bench.received()


@pytest.mark.parametrize("width", some([64, 512]))
def test_services_plane(width: int) -> None:
    run(
        "services_plane",
        __file__,
        params={"DATA_W": width, "CLOCK_HZ": CLOCK_HZ},
        ports={
            "now": Clock(),
            "enable": Plain("input", "logic"),
            "mac": Plain("input", "packet_pkg::mac_t"),
            "local_addr": Plain("output", LOCAL),
            "address_settings": Plain("input", ADDRESS),
            "address_status": Plain("output", "address_pkg::address_status_t"),
            "discovery": Plain("input", DISCOVERY),
            "icmp_errors": Plain("input", "logic"),
            "unwanted_valid": Plain("input", "logic"),
            "unwanted": Plain("input", UNWANTED),
            "settings": Plain("input", SETTINGS),
            "ports": Plain("output", "services_pkg::service_ports_t"),
            "frame": Sink(FRAME_RX),
            "payload": AxisSinkPort(width),
            "tx": Source(TX),
            "tx_payload": AxisSourcePort(width),
            "bus": AxilMaster(20),
            "claim": Source("packet_pkg::arp_claim_t"),
            "watch": Plain("output", "packet_pkg::arp_watch_t"),
            "conflict": Plain("input", "logic"),
            "nd_watch": Plain("output", "packet_pkg::nd_watch_t"),
            "nd_conflict": Plain("input", "logic"),
            "withdrawal": Plain("output", "address_pkg::withdrawal_t"),
            "closed": Plain("input", "logic"),
            "abandoned": Plain("input", "logic"),
            "events": Plain("output", EVENTS),
            "address_events": Plain("output", "address_pkg::address_events_t"),
            "client": Plain("output", "packet_pkg::ipv4_addr_t"),
            "idle": Plain("output", "logic"),
        },
        env={"WIDTH": str(width)},
    )
