# SPDX-License-Identifier: Apache-2.0
"""Connections that a kernel opens: each of its slots against a connection manager that the test plays, in any order of events."""

from __future__ import annotations

import random
from typing import Any

import cocotb
import pytest
from cocotb.handle import SimHandleBase
from cocotb.triggers import FallingEdge, RisingEdge
from nacelle_tb.bench import Plain, Sink, Source, run
from nacelle_tb.long import alternately
from nacelle_tb.streams import StreamSink, StreamSource, start, wait_cycles
from nacelle_tb.svtypes import constant, struct

P = "roce_pkg::"
SLOTS = 3
ESTABLISHED, REFUSED, CLOSED = (constant(f"{P}KERNEL_{kind}") for kind in ("ESTABLISHED", "REFUSED", "CLOSED"))
CONN_ESTABLISHED, CONN_REFUSED, CONN_CLOSED = (constant(f"{P}CONN_{kind}") for kind in ("ESTABLISHED", "REFUSED", "CLOSED"))
NOT_PERMITTED, SLOT_IN_USE = constant(f"{P}CONN_NOT_PERMITTED"), constant(f"{P}CONN_SLOT_IN_USE")
NETWORK = 0xFFFF_0A4D_0000  # ::ffff:10.77.0.0
PEER = NETWORK | 9
PORT = 4791


class Bench:
    """The unit, and its connection manager. `connections`: the queue pairs that are open, with their tags."""

    def __init__(self, dut: SimHandleBase, stall: float = 0.0, kernel_stall: float | None = None) -> None:
        self.dut = dut
        kernel = stall if kernel_stall is None else kernel_stall
        self.commands = StreamSource(dut, "kernel_connect", f"{P}kernel_connect_t", stall)
        self.news = StreamSink(dut, "kernel_conn", f"{P}kernel_conn_t", kernel)
        self.connects = StreamSink(dut, "connect", f"{P}connect_t", stall)
        self.events = StreamSource(dut, "conn", f"{P}conn_event_t", stall)
        self.answers = StreamSink(dut, "conn_answer", f"{P}conn_answer_t", stall)
        self.closes = StreamSink(dut, "close", "roce_wire_pkg::qpn_t", stall)
        dut.cut.value = 0
        self.permit(NETWORK, 96 + 16)

    def permit(self, network: int, prefix: int, enable: bool = True) -> None:
        self.dut.peers.value = struct(f"{P}kernel_peers_t").pack(enable=int(enable), prefix=prefix, network=network)

    def open(self, slot: int, ip: int = PEER, private_data: int = 0) -> None:
        self.commands.send(slot=slot, ip=ip, port=PORT, private_data=private_data)

    def close(self, slot: int) -> None:
        self.commands.send(close=1, slot=slot)

    def used(self) -> int:
        return int(self.dut.used.value)

    async def established(self, slot: int, qpn: int, private_data: int = 0) -> None:
        self.events.send(kind=CONN_ESTABLISHED, tag=slot, qpn=qpn, private_data=private_data)
        got = await self.news.recv()
        assert (got.kind, got.slot, got.qpn, got.private_data) == (ESTABLISHED, slot, qpn, private_data)

    async def closed(self, slot: int, qpn: int, reason: int = 0) -> None:
        self.events.send(kind=CONN_CLOSED, qpn=qpn, reason=reason)
        got = await self.news.recv()
        assert (got.kind, got.slot, got.reason) == (CLOSED, slot, reason)
        assert (await self.answers.recv()).qpn == qpn


@cocotb.test()
@cocotb.parametrize(stall=alternately([0.0, 0.4]))
async def a_connection_is_opened_and_closed(dut, stall: float) -> None:
    """By the kernel, by the peer, and refused by the peer; the request carries what the kernel says, and no right on memory."""
    bench = Bench(dut, stall)
    await start(dut)
    data = random.getrandbits(384)
    for slot in range(SLOTS):
        bench.open(slot, PEER + slot, data)
        asked = await bench.connects.recv()
        assert (asked.tag, asked.ip, asked.port, asked.private_data) == (slot, PEER + slot, PORT, data)
        assert not any(vars(asked.access).values()) and asked.initiator_depth == 8 and asked.responder_resources == 0
        await bench.established(slot, 0x100 + slot, data ^ 1)
    assert bench.used() == 0b111
    bench.close(1)
    assert int(await bench.closes.recv()) == 0x101
    await bench.closed(1, 0x101)
    await bench.closed(0, 0x100, reason=10)
    await wait_cycles(dut, 3)
    assert bench.used() == 0b100 and int(dut.idle.value)
    bench.open(0)
    await bench.connects.recv()
    bench.events.send(kind=CONN_REFUSED, tag=0, reason=28, private_data=data)
    got = await bench.news.recv()
    assert (got.kind, got.slot, got.reason, got.private_data) == (REFUSED, 0, 28, data)
    await wait_cycles(dut, 3)
    assert bench.used() == 0b100 and not bench.closes.received and not bench.answers.received


@cocotb.test()
async def only_permitted_peers_are_connected_to(dut) -> None:
    """Nobody after reset; then those of the network, whatever its length. An IPv6 address that ends alike is another."""
    bench = Bench(dut)
    await start(dut)

    async def permitted(ip: int) -> bool:
        bench.open(0, ip)
        await wait_cycles(dut, 6)
        if bench.connects.received:
            bench.connects.received.popleft()
            bench.events.send(kind=CONN_REFUSED, tag=0, reason=28)
            assert (await bench.news.recv()).reason == 28
            return True
        got = await bench.news.recv()
        assert (got.kind, got.reason) == (REFUSED, NOT_PERMITTED)
        return False

    bench.permit(0, 0, enable=False)
    assert not await permitted(PEER)
    for prefix in (0, 1, 80, 95, 96, 112, 127, 128):
        bench.permit(PEER, prefix)
        assert await permitted(PEER)
        if prefix:
            assert not await permitted(PEER ^ 1 << 128 - prefix)
        if prefix < 128:
            assert await permitted(PEER ^ 1 << 127 - prefix)
    bench.permit(NETWORK, 112)
    assert not await permitted(PEER & 0xFFFF_FFFF)


@cocotb.test()
async def a_slot_in_use_is_refused(dut) -> None:
    """While it is opened, open, and until the kernel knows that it has ended; and one that does not exist."""
    bench = Bench(dut, kernel_stall=0.0)
    await start(dut)

    async def in_use(slot: int) -> None:
        bench.open(slot)
        got = await bench.news.recv()
        assert (got.kind, got.slot, got.reason) == (REFUSED, slot, SLOT_IN_USE)

    await in_use(SLOTS)
    bench.open(0)
    await bench.connects.recv()
    await in_use(0)
    await bench.established(0, 5)
    await in_use(0)
    bench.close(0)
    await bench.closes.recv()
    await in_use(0)
    bench.close(0)  # once more: nothing
    bench.close(1)  # one that is not open: nothing
    await bench.closed(0, 5)
    bench.open(0)
    await bench.connects.recv()
    assert not bench.closes.received and not bench.news.received


@cocotb.test()
async def a_kernel_that_is_cut_off_leaves_nothing(dut) -> None:
    """Open connections are closed; one that is being opened is closed once it is there; the next kernel is told of none of them."""
    bench = Bench(dut)
    await start(dut)
    for slot in (0, 1):
        bench.open(slot)
        await bench.connects.recv()
    await bench.established(0, 7)
    await FallingEdge(dut.clk)
    dut.cut.value = 1
    bench.commands.send(slot=2, ip=PEER)  # a kernel in reset may do anything
    assert int(await bench.closes.recv()) == 7
    await wait_cycles(dut, 10)
    await FallingEdge(dut.clk)
    dut.cut.value = 0
    await wait_cycles(dut, 10)
    assert bench.used() == 0b011 and not bench.connects.received
    bench.open(1)
    assert (await bench.news.recv()).reason == SLOT_IN_USE
    bench.events.send(kind=CONN_CLOSED, qpn=7)
    assert (await bench.answers.recv()).qpn == 7
    bench.events.send(kind=CONN_ESTABLISHED, tag=1, qpn=8)
    assert int(await bench.closes.recv()) == 8
    bench.events.send(kind=CONN_CLOSED, qpn=8)
    assert (await bench.answers.recv()).qpn == 8
    await wait_cycles(dut, 3)
    assert bench.used() == 0 and not bench.news.received and int(dut.idle.value)


@cocotb.test()
async def a_kernel_that_takes_no_news_holds_up_nobody(dut) -> None:
    """Events are taken in each cycle, and answered; of a connection that has ended the kernel later gets the end only."""
    bench = Bench(dut, kernel_stall=1.0)
    await start(dut)
    for slot in range(SLOTS):
        bench.open(slot)
        await bench.connects.recv()
    for slot in range(SLOTS):
        bench.events.send(kind=CONN_ESTABLISHED, tag=slot, qpn=0x20 + slot)
    for slot in range(SLOTS):
        bench.events.send(kind=CONN_CLOSED, qpn=0x20 + slot, reason=slot)
    await bench.events.drained(2 * SLOTS + 4)
    assert {(await bench.answers.recv()).qpn for _ in range(SLOTS)} == {0x20 + slot for slot in range(SLOTS)}
    await wait_cycles(dut, 3)
    assert int(dut.idle.value)
    bench.news.stall = 0.0
    for slot in range(SLOTS):
        got = await bench.news.recv()
        assert (got.kind, got.slot, got.reason) == (CLOSED, slot, slot)


@cocotb.test()
@cocotb.parametrize(stall=alternately([0.0, 0.5]))
async def any_order_of_events(dut, stall: float) -> None:
    """Random commands, ends and cuts: each connection of the manager is closed at most once, ends once, and is answered once."""
    bench = Bench(dut, stall)
    await start(dut)
    open_: dict[int, int] = {}  # queue pair -> slot
    opening: set[int] = set()
    ending: set[int] = set()
    closes: dict[int, int] = {}
    seen = {"established": 0, "closed": 0, "cut": 0}
    qpn = 1
    told: dict[int, Any] = {}
    for _ in range(3000):
        await RisingEdge(dut.clk)
        while bench.connects.received:
            tag = bench.connects.received.popleft().tag
            assert tag not in opening and tag not in open_.values()
            opening.add(tag)
        while bench.closes.received:
            number = int(bench.closes.received.popleft())
            assert number in open_ or number in ending
            closes[number] = closes.get(number, 0) + 1
            assert closes[number] == 1
        while bench.answers.received:
            number = bench.answers.received.popleft().qpn
            ending.remove(number)
        while bench.news.received:
            got = bench.news.received.popleft()
            told[got.kind] = told.get(got.kind, 0) + 1
        if random.random() < 0.1:
            bench.open(random.randrange(SLOTS))
        if random.random() < 0.05:
            bench.close(random.randrange(SLOTS))
        if not bench.events.busy and opening and random.random() < 0.2:
            tag = random.choice(sorted(opening))
            opening.remove(tag)
            if random.random() < 0.7:
                open_[qpn] = tag
                bench.events.send(kind=CONN_ESTABLISHED, tag=tag, qpn=qpn)
                qpn += 1
                seen["established"] += 1
            else:
                bench.events.send(kind=CONN_REFUSED, tag=tag, reason=28)
        if not bench.events.busy and open_ and random.random() < 0.1:
            number = random.choice(sorted(open_))
            if number in closes or random.random() < 0.3:
                del open_[number]
                ending.add(number)
                bench.events.send(kind=CONN_CLOSED, qpn=number)
                seen["closed"] += 1
        if random.random() < 0.01:
            await FallingEdge(dut.clk)
            dut.cut.value = 1 - int(dut.cut.value)
            seen["cut"] += 1
    await FallingEdge(dut.clk)
    dut.cut.value = 1
    for _ in range(2000):
        await RisingEdge(dut.clk)
        while bench.connects.received:
            opening.add(bench.connects.received.popleft().tag)
        if bench.events.busy:
            continue
        if opening:
            bench.events.send(kind=CONN_REFUSED, tag=opening.pop(), reason=28)
        elif open_:
            number, _slot = open_.popitem()
            bench.events.send(kind=CONN_CLOSED, qpn=number)
        elif not bench.used():
            break
    await bench.commands.drained()
    await wait_cycles(dut, 3)
    assert not bench.used() and int(dut.idle.value)
    assert min(seen.values()) > 10 and set(told) == {ESTABLISHED, REFUSED, CLOSED}


@pytest.mark.parametrize("slots", [SLOTS])
def test_socket_connections(slots: int) -> None:
    run(
        "socket_connections",
        __file__,
        params={"SLOTS": slots},
        ports={
            "peers": Plain("input", f"{P}kernel_peers_t"),
            "cut": Plain("input", "logic"),
            "kernel_connect": Sink(f"{P}kernel_connect_t"),
            "kernel_conn": Source(f"{P}kernel_conn_t"),
            "connect": Source(f"{P}connect_t"),
            "conn": Sink(f"{P}conn_event_t"),
            "conn_answer": Source(f"{P}conn_answer_t"),
            "close": Source("roce_wire_pkg::qpn_t"),
            "used": Plain("output", f"logic [{P}MAX_KERNEL_CONNECTIONS-1:0]"),
            "refused": Plain("output", "logic"),
            "idle": Plain("output", "logic"),
        },
    )
