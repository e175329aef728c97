# SPDX-License-Identifier: Apache-2.0
"""roce_cm: compatible with Linux rdma_cm, under loss and against any messages; every connection is freed in the end."""

from __future__ import annotations

import ipaddress
import itertools
import os
import random
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import cocotb
import pytest
from cm_messages import (
    DEVICE_IP,
    DEVICE_MAC,
    DREP,
    DREQ,
    MRA,
    PORT,
    REJ,
    REP,
    REQ,
    RTU,
    Caller,
    Message,
    frame,
    linux_caller,
    linux_frames,
)  # fmt: skip
from cm_peer import GONE, OPEN, Lossy, PeerCm
from cm_peer import REFUSED as REFUSED_BY_PEER
from cocotb.handle import SimHandleBase
from cocotb.triggers import Event, FallingEdge, First, RisingEdge, ValueChange
from nacelle_tb import cm
from nacelle_tb.bench import AxisSink as AxisSinkPort
from nacelle_tb.bench import AxisSource as AxisSourcePort
from nacelle_tb.bench import Clock, Plain, Several, Sink, Source, Type, run
from nacelle_tb.family import FAMILY, OWN, address, ip_number, ipv4_of, is_ipv6, own, roce_record
from nacelle_tb.long import LONG, alternately, only, some
from nacelle_tb.record import FRAME_RX
from nacelle_tb.streams import AxisSink, AxisSource, StreamSink, StreamSource, start, wait_cycles
from nacelle_tb.svtypes import constant, struct
from scapy.layers.inet import IP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Ether

QPS = int(os.environ.get("CM_QPS", "8"))
CLIENTS = 2
WINDOW = constant("packet_pkg::HDR_BYTES")
RD_DEPTH = 8
TICK = 1024  # cycles of 4.096 us at 250 MHz
MAX_RETRIES = 3
REQ_RETRIES, CM_TIMEOUT, MRA_TIMEOUT, MRAS = 15, 20, 22, 3
QPN_FIRST = 2
OPENED, ESTABLISHED, REFUSED, CLOSED = 0, 1, 2, 3
UNREACHABLE = 0xFFFF
FATAL, COMM_EST, DRAINED = 1, 4, 5
SETUP, RESET = 0, 2
RTS = 3
HEADERS = 62
DSCP = "roce_pkg::dscp_settings_t"
ADDRESS_LOST = 0xFFFE
LEAVING = 1 << OWN  # own_set_t: the address that the tests' connections use


def mac_number(mac: str) -> int:
    return int(mac.replace(":", ""), 16)


class Device:
    """The connection manager with everything around it: address resolution, queue pairs, owners, time. In a bench with several
    `index` says which; `mac` and `ip` are its own."""

    def __init__(self, dut, stall: float = 0.0, index: str = "", mac: str = DEVICE_MAC, ip: str = DEVICE_IP) -> None:
        self.dut, self.index, self.mac, self.ip = dut, index, mac, ip
        local = dict(enable=1, mac=mac_number(mac)) | own(ip)
        self.signal("local_addr").value = struct("packet_pkg::local_addr_t").pack(local)
        self.signal("guid").value = int.from_bytes(cm.guid(mac), "big")
        self.listen(PORT)
        self.signal("max_mtu").value = 5
        self.signal("min_rnr_timer").value = 1
        self.mark(0)
        self.signal("extensions").value = 0
        self.signal("by_hand").value = 0
        self.signal("seed").value = 0x1234ABCD ^ mac_number(mac) & 0xFFFFFFFF
        self.frames = self.source("rx", FRAME_RX, stall)
        self.payloads = AxisSource(dut, f"rx_payload{index}", stall)
        self.headers = self.sink("tx", "packet_pkg::frame_tx_t", stall)
        self.datagrams = AxisSink(dut, f"tx_payload{index}", stall)
        self.queries = self.sink("arp_query", "packet_pkg::ip_addr_t", stall)
        self.addresses = self.source("arp_answer", "packet_pkg::arp_answer_t", stall)
        self.commands = self.sink("qp_cmd", "roce_pkg::qp_cmd_t", stall)
        self.done = self.source("qp_done", "logic", stall)
        self.qp_events = self.source("qp_event", "roce_pkg::qp_event_t", stall)
        self.closes = self.source("close", "roce_pkg::close_t", stall)
        self.connects = self.source("connect", "roce_pkg::connect_t", stall)
        self.conns = self.sink("conn", "roce_pkg::conn_event_t", stall)
        self.answers = self.source("conn_answer", "roce_pkg::conn_answer_t", stall)
        self.signal("limits").value = 0
        self.signal("judged").value = 1
        self.signal("verdict").value = self.signal("ended").value = self.signal("sweep").value = 0
        self.signal("leaving").value = 0
        self.signal("abandon").value = 0
        self._now = 2**48 - 20_000  # the time wraps in nearly every test
        self._jump = Event()
        self.counts: Counter[str] = Counter()
        self.known: dict[int, str] = {}  # ip -> mac that ARP finds
        self.asked: Counter[int] = Counter()  # how often, by ip
        self.qp_log: deque = deque()  # commands, as they came
        self.setup_ok = True
        self.refused: set[int] = set()  # numbers that the queue pairs refuse
        self.by_hand = 0  # numbers of QPs made by software, a bit each
        self.live: dict[int, object] = {}  # qpn -> attributes of QPs that are set up
        self.events: deque = deque()  # events for the owners
        self.owner_log: deque = deque()  # (kind, qpn) of it
        self.reasons: list[int] = []  # ... and why
        self.owned: set[int] = set()  # between CONN_OPENED or CONN_ESTABLISHED and the answer to CONN_CLOSED
        self.owner_accepts: Callable[[int], bool | None] = lambda qpn: True  # None: no answer
        self.owner_frees = True  # answers CONN_CLOSED
        self.owner_private = b""  # in its answers
        self.owner_cycles = lambda: 0  # before it answers
        self.wants: dict[int, dict] = {}  # connects without an answer, by tag
        self.psn = -1  # of the last datagram
        self.others: set[str] = set()  # more addresses of its own
        self.source_ip = ""  # of the last datagram
        self.judge: Callable[[object], tuple[int, int | None]] | None = None  # why not, and by which entry; None: admission is off
        self.by_entry: Counter[int] = Counter()  # connections

    def limit(self, **limits: int) -> None:
        """What peers may open at once: per_peer, half_open, half_open_per_peer."""
        values = {"per_peer": 0, "half_open": 0, "half_open_per_peer": 0} | limits
        self.signal("limits").value = struct("roce_pkg::cm_limits_t").pack(values)

    def signal(self, name: str) -> SimHandleBase:
        return getattr(self.dut, f"{name}{self.index}")

    def source(self, name: str, kind: str, stall: float) -> StreamSource:
        return StreamSource(self.dut, f"{name}{self.index}", kind, stall)

    def sink(self, name: str, kind: str, stall: float) -> StreamSink:
        return StreamSink(self.dut, f"{name}{self.index}", kind, stall)

    def listen(self, *ports: int) -> None:
        """Each client on its port."""
        self.signal("port").value = sum(port << 16 * i for i, port in enumerate(ports))

    def fail(self, qpn: int, kind: int = FATAL) -> None:
        """An event of a QP."""
        self.qp_events.send(kind=kind, qpn=qpn, status=constant("roce_pkg::WC_RETRY_EXC_ERR"))

    def shut(self, *qpns: int, lost: bool = False) -> None:
        """An owner closes these, or, if `lost`, those of them whose address goes."""
        for qpn in qpns:
            self.closes.send(qpn=qpn, lost=int(lost))

    def answer(self, qpn: int, accept: bool = True, private: bytes | None = None) -> None:
        """The owner answers an event."""
        private = self.owner_private if private is None else private
        self.answers.send(qpn=qpn, accept=int(accept), private_data=int.from_bytes(private.ljust(48, b"\0"), "big"))

    def connect(self, ip: str, tag: int, private: bytes = b"", **fields: int) -> dict:
        """A client opens a connection."""
        wanted = dict(
            client=1, tag=tag, ip=ip_number(ip), port=PORT, pd=7, access=5, path_mtu=3, timeout=14, retry_cnt=7, rnr_retry=6,
            responder_resources=4, initiator_depth=2, private_data=int.from_bytes(private.ljust(48, b"\0"), "big"),
        )  # fmt: skip
        wanted.update(fields)
        assert tag not in self.wants
        self.wants[tag] = wanted
        self.connects.send(**wanted)
        return wanted

    async def start(self) -> None:
        self.begin()
        await start(self.dut)
        self.counts.clear()
        await wait_cycles(self.dut, QPS + 4)

    def begin(self) -> None:
        """Lets the surroundings turn."""
        self.signal("now").value = self.now
        for task in (self._time(), self._count(), self._arp(), self._qps(), self._owner(), self._admission(), self._entries()):
            cocotb.start_soon(task)

    @property
    def now(self) -> int:
        """The time without the cycles that passed: what is added is a jump, at the next falling edge."""
        return self._now

    @now.setter
    def now(self, now: int) -> None:
        self._now = now
        self._jump.set()

    async def _time(self) -> None:
        while True:
            await self._jump.wait()
            self._jump.clear()
            await FallingEdge(self.dut.clk)
            self.signal("now").value = self._now % 2**48

    async def _count(self) -> None:
        layout = struct("roce_events_pkg::cm_events_t")
        events = self.signal("events")
        while True:
            if not int(events.value):
                await ValueChange(events)
            await FallingEdge(self.dut.clk)
            if pulses := int(events.value):
                for name, value in vars(layout.unpack(pulses)).items():
                    self.counts[name] += value

    async def _admission(self) -> None:
        layout, verdict, by = (struct(f"roce_pkg::{name}") for name in ("admission_ask_t", "admission_verdict_t", "admitted_t"))
        asks, judged = self.signal("asks"), self.signal("judged")
        while True:
            await ValueChange(asks)
            if self.judge is None:
                continue
            judged.value = 0
            await RisingEdge(self.dut.clk)
            if not int(asks.value):
                continue
            asked = int(self.signal("ask").value)
            why, entry = self.judge(layout.unpack(asked))
            await wait_cycles(self.dut, random.choice([0, 1, 5, 40, 200]))
            assert int(asks.value) and int(self.signal("ask").value) == asked
            admitted = by.pack(valid=int(entry is not None), entry=entry or 0)
            self.signal("verdict").value = verdict.pack(why=why, by=admitted)
            judged.value = 1

    async def _entries(self) -> None:
        admits, leaves, entry = (self.signal(name) for name in ("admits", "leaves", "admitted"))
        while True:
            if not int(admits.value) and not int(leaves.value):
                await First(ValueChange(admits), ValueChange(leaves))
            await RisingEdge(self.dut.clk)
            if change := int(admits.value) - int(leaves.value):
                self.by_entry[int(entry.value)] += change
                assert self.by_entry[int(entry.value)] >= 0

    async def end(self, **ended: int) -> None:
        """These entries have ended: `revoked` and `time_over`, a bit each."""
        self.signal("ended").value = struct("roce_pkg::admission_ended_t").pack(**{"revoked": 0, "time_over": 0} | ended)
        self.signal("sweep").value = 1
        await RisingEdge(self.dut.clk)
        self.signal("sweep").value = 0

    async def _arp(self) -> None:
        while True:
            ip = await self.queries.recv(10**9)
            self.asked[ip] += 1
            mac = self.known.get(ip)
            await wait_cycles(self.dut, random.randrange(4))
            self.addresses.send(found=int(mac is not None), mac=mac_number(mac) if mac else 0xBAD)

    async def _qps(self) -> None:
        while True:
            command = await self.commands.recv(10**9)
            self.qp_log.append(command)
            assert QPN_FIRST <= command.qpn < QPN_FIRST + QPS
            ok = self.setup_ok and command.qpn not in self.refused
            if command.op == SETUP and ok:
                assert not self.by_hand >> command.qpn - QPN_FIRST & 1, "it is made by software"
                assert command.state == RTS
                assert command.qpn not in self.live, "set up twice"
                assert command.qpn not in self.owned, "set up before its last owner has released it"
                self.live[command.qpn] = command.attr
            elif command.op == RESET:
                assert command.qpn in self.live, "reset of a QP that is not set up"
                del self.live[command.qpn]
            await wait_cycles(self.dut, random.randrange(6))
            self.done.send(int(command.op == RESET or ok))

    async def _owner(self) -> None:
        while True:
            event = await self.conns.recv(10**9)
            self.events.append(event)
            self.owner_log.append((event.kind, event.qpn))
            self.reasons.append(event.reason)
            if event.kind in (ESTABLISHED, REFUSED):
                wanted = self.wants.pop(event.tag)
                assert (event.client, event.ip) == (wanted["client"], wanted["ip"])
                if event.kind == ESTABLISHED:
                    assert event.qpn not in self.owned
                    self.owned.add(event.qpn)
                else:
                    assert event.reason
            else:
                cocotb.start_soon(self._think(event, self.owner_cycles()))

    async def _think(self, event, cycles: int) -> None:
        if event.kind == OPENED:
            assert event.qpn not in self.owned
            self.owned.add(event.qpn)
            answer = self.owner_accepts(event.qpn)
            if answer is False:
                self.owned.discard(event.qpn)
        else:
            assert event.qpn in self.owned
            assert event.qpn not in self.live, "closed before its reset"
            assert event.private_data == 0
            answer = True if self.owner_frees else None
            if answer:
                self.owned.discard(event.qpn)
        if cycles:
            await wait_cycles(self.dut, cycles)
        if answer is not None:
            self.answer(event.qpn, answer)

    def knows(self, *callers: Caller) -> None:
        for caller in callers:
            self.known[ip_number(caller.ip)] = caller.mac

    def receive(self, data: bytes, payload: bytes | None = None, bad: bool = False) -> None:
        """A frame comes in, from Ethernet header to the end of the MAD."""
        at = HEADERS + (20 if is_ipv6(data) else 0)
        payload = data[at : at + 256] if payload is None else payload
        self.frames.send(roce_record(data[:at], len(payload)))
        if payload:
            self.payloads.send(payload, bad)

    async def sent(self, timeout_cycles: int = 2000) -> Message:
        """The next message that the device sends; its headers are checked."""
        head = await self.headers.recv(timeout_cycles)
        datagram = await self.datagrams.recv(timeout_cycles)
        at = head.hdr_length
        assert (head.payload_length, head.pad, head.icrc) == (256, 0, 1)
        data = head.hdr.to_bytes(WINDOW, "big")[:at]
        assert head.hdr & ((1 << (WINDOW - at) * 8) - 1) == 0
        packet = Ether(data + datagram + bytes(4))
        assert packet.src == self.mac
        if IPv6 in packet:
            ip = packet[IPv6]
            assert (at, ip.hlim, ip.plen, ip.nh, ip.fl) == (HEADERS + 20, 64, 288, 17, packet["UDP"].sport)
            to, tos, source = ip.dst, ip.tc, ip.src
            if FAMILY == 6 and to == address(ipv4_of(to)):
                to = ipv4_of(to)
        else:
            ip = packet[IP]
            assert (at, ip.ttl, ip.len, str(ip.flags)) == (HEADERS, 64, 308, "DF")
            given = ip.chksum
            del ip.chksum
            assert IP(bytes(ip)).chksum == given
            to, tos, source = ip.dst, ip.tos, ip.src
        assert source == address(self.ip) or source in self.others
        self.source_ip = source
        assert (packet["UDP"].dport, packet["UDP"].len, packet["UDP"].chksum) == (4791, 288, 0)
        assert data[at - 20 : at - 12] == bytes.fromhex("6400ffff00000001")
        psn = int.from_bytes(data[at - 11 : at - 8], "big")
        assert (psn - self.psn) % 2**24 in range(1, 1 << 23), "the PSNs of datagrams count up"
        self.psn = psn
        assert data[at - 8 :] == bytes.fromhex("8001000000000001")
        return Message(to, packet.dst, datagram, tos)

    def mark(self, roce: int, of_caller: bool = False) -> None:
        """The DSCP of what follows."""
        self.signal("dscp").value = struct(DSCP).pack(roce=roce, cnp=48, of_caller=int(of_caller))

    async def settle(self, limit: int = 5000 * QPS // 8) -> None:
        """Until nothing is under way."""
        quiet = 0
        sources = (self.frames, self.payloads, self.answers, self.done, self.addresses, self.connects, self.qp_events, self.closes)
        for _ in range(limit):
            await RisingEdge(self.dut.clk)
            busy = any(source._queue for source in sources) or not int(self.signal("idle").value)
            quiet = 0 if busy else quiet + 1
            if quiet > 12:
                return
        raise AssertionError("still busy")

    def silent(self) -> bool:
        return not self.headers.received and not self.datagrams.packets

    async def pass_time(self, exponent: int) -> None:
        """4.096 us * 2^exponent go by in a jump. When the device is idle again, every timer has been looked at."""
        await self.settle()
        self.now += TICK << exponent
        await wait_cycles(self.dut, 2)
        await self.settle()

    async def open(self, caller: Caller, rtu: bool = True) -> Message:
        self.knows(caller)
        self.receive(caller.req())
        rep = await self.sent()
        assert rep.attr == REP, f"attribute {rep.attr:#x}, reason {rep.reason}"
        if rtu:
            self.receive(caller.rtu(rep))
            await self.settle()
        return rep

    async def close(self, caller: Caller, rep: Message) -> None:
        self.receive(caller.dreq(rep))
        assert (await self.sent()).attr == DREP
        await self.settle()


def callers(count: int, **same: int) -> list[Caller]:
    return [
        Caller(ip=f"10.99.{10 + i >> 8}.{10 + i & 255}", mac=f"02:00:00:00:{i >> 8:02x}:{i & 255:02x}", local_id=0x1000 + i,
               tid=0x77000 + i, qpn=0x100 + i, psn=0x4000 + i, **same)
        for i in range(count)
    ]  # fmt: skip


async def device(dut, stall: float = 0.0) -> Device:
    it = Device(dut, stall)
    await it.start()
    return it


# ---- a connection from begin to end ----


@cocotb.test()
@cocotb.parametrize(stall=alternately([0.0, 0.5]))
async def linux_session(dut, stall: float) -> None:
    """What Linux sent is taken, and what it gets differs from a Linux device's answers in nothing but the numbers we choose."""
    dev = await device(dut, stall)
    linux = linux_frames()
    dev.knows(Caller())
    assert linux_caller().req()[HEADERS:318] == linux["req"][HEADERS:318]  # our own builder makes the same bytes as Linux

    dev.receive(linux["req"])
    rep = await dev.sent()
    theirs = Message("10.99.0.2", "52:54:00:63:00:02", linux["rep"][HEADERS:318])
    assert (rep.dst_ip, rep.dst_mac) == (theirs.dst_ip, theirs.dst_mac)
    chosen = [(24, 28), (36, 39), (44, 47)]  # our id, QPN, PSN
    mine, other = bytearray(rep.mad), bytearray(theirs.mad)
    for begin, end in chosen:
        mine[begin:end] = other[begin:end] = bytes(end - begin)
    assert mine == other
    assert rep.local_id != 0 and rep.qpn in range(QPN_FIRST, QPN_FIRST + QPS)

    command = dev.qp_log[0]
    assert (command.op, command.qpn) == (SETUP, rep.qpn)
    attr = command.attr
    assert (attr.dst_mac, attr.dst_ip) == (mac_number("52:54:00:63:00:02"), ip_number("10.99.0.2"))
    assert (attr.dest_qp_num, attr.sq_psn, attr.rq_psn) == (0x20, 0xAC999F, rep.psn)
    assert (attr.path_mtu, attr.timeout, attr.retry_cnt, attr.rnr_retry, attr.min_rnr_timer) == (3, 19, 7, 6, 1)
    assert list(dev.owner_log) == [(OPENED, rep.qpn)]

    # The capture's RTU and DREQ name the device of the capture; this one chose other ids.
    def ours(data: bytes, qpn: bool) -> bytes:
        changed = bytearray(data)
        changed[HEADERS + 28 : HEADERS + 32] = rep.mad[24:28]
        if qpn:
            changed[HEADERS + 32 : HEADERS + 35] = rep.mad[36:39]
        return bytes(changed)

    dev.receive(ours(linux["rtu"], qpn=False))
    await dev.settle()
    assert dev.counts["rtu_received"] == 1 and dev.silent()

    dev.receive(ours(linux["dreq"], qpn=True))
    drep = await dev.sent()
    assert drep.mad[:24] == linux["drep"][HEADERS : HEADERS + 24]
    assert (drep.local_id, drep.remote_id) == (rep.local_id, rep.remote_id)
    assert drep.mad[32:] == linux["drep"][HEADERS + 32 : 318]
    await dev.settle()
    assert [c.op for c in dev.qp_log] == [SETUP, RESET]
    assert list(dev.owner_log) == [(OPENED, rep.qpn), (CLOSED, rep.qpn)]
    assert dev.counts == Counter(req_received=1, rep_sent=1, rtu_received=1, dreq_received=1, drep_sent=1,
                                 connection_opened=1, connection_closed=1)  # fmt: skip


@cocotb.test()
async def linux_rejects_alike(dut) -> None:
    """A REQ for another port gets the REJ that Linux gives, byte for byte."""
    dev = await device(dut)
    linux = linux_frames()
    dev.knows(Caller())
    dev.listen(PORT + 1, PORT + 2)
    dev.receive(linux["unheard_req"])
    assert (await dev.sent()).mad == linux["rej"][HEADERS:318]


# ---- refusals ----


@cocotb.test()
async def reasons(dut) -> None:
    """Each REQ that cannot be served is refused with the standard's reason, and leaves nothing behind."""
    dev = await device(dut, 0.2)
    dev.dut.max_mtu.value = 3
    for i, (change, reason) in enumerate(
        [
            ({"port": PORT + 1}, 8),
            ({"port_space": 0x0111}, 8),
            ({"transport": 1}, 9),
            ({"transport": 3}, 9),
            ({"cma_version": 1}, 5),
            ({"ip_version": 10 - FAMILY}, 5),
            ({"called": "10.99.0.9"}, 12),
            ({"mtu": 0}, 26),
            ({"mtu": 4}, 26),
            ({"mtu": 9}, 26),
        ]
    ):
        caller = Caller(local_id=0x500 + i, **change)
        dev.knows(caller)
        dev.receive(caller.req())
        rej = await dev.sent()
        assert (rej.attr, rej.reason, rej.about) == (REJ, reason, 0), change
        assert (rej.local_id, rej.remote_id, rej.tid) == (0, caller.local_id, caller.tid)
        assert (rej.at(9, 1), rej.at(12, 1)) == ((1 << 1, 3) if reason == 26 else (0, 0))  # the largest MTU instead
    await dev.settle()
    assert not dev.qp_log and not dev.owner_log
    assert dev.counts["rej_sent"] == 10 and dev.counts["connection_opened"] == 0


@cocotb.test()
async def path_mtu_is_the_callers(dut) -> None:
    dev = await device(dut)
    for caller, mtu in zip(callers(5), range(1, 6), strict=True):
        caller.mtu = mtu
        await dev.open(caller)
        assert dev.qp_log[-1].attr.path_mtu == mtu


@cocotb.test()
async def resources_are_the_lesser(dut) -> None:
    """READs and atomics at once: the caller's numbers, at most the device's, each way; the QP gets the same."""
    dev = await device(dut)
    cases = [(0, 0, 0, 0), (1, 0, 0, 1), (0, 1, 1, 0), (3, 7, 7, 3), (8, 9, 8, 8), (128, 255, 8, 8)]
    for caller, (resources, depth, given_resources, given_depth) in zip(callers(6), cases, strict=True):
        caller.resources, caller.depth = resources, depth
        rep = await dev.open(caller)
        assert (rep.resources, rep.depth) == (given_resources, given_depth)
        attr = dev.qp_log[-1].attr
        assert (attr.max_dest_rd_atomic, attr.max_rd_atomic) == (given_resources, given_depth)


@cocotb.test()
async def full_table(dut) -> None:
    """As many connections as QPs, no QP twice; the next is refused with NO_QP; a place becomes free when one closes."""
    dev = await device(dut, 0.2)
    all_ = callers(QPS + 1)
    reps = [await dev.open(caller) for caller in all_[:QPS]]
    assert {rep.qpn for rep in reps} == set(range(QPN_FIRST, QPN_FIRST + QPS))
    assert len({rep.local_id for rep in reps}) == len({rep.psn for rep in reps}) == QPS
    dev.knows(all_[QPS])
    dev.receive(all_[QPS].req())
    rej = await dev.sent()
    assert (rej.attr, rej.reason) == (REJ, 1)
    await dev.close(all_[3], reps[3])
    again = await dev.open(all_[QPS])
    assert again.qpn == reps[3].qpn and again.local_id != reps[3].local_id
    assert dev.counts["connection_opened"] - dev.counts["connection_closed"] == QPS == len(dev.live) == len(dev.owned)


@cocotb.test()
async def owner_refuses(dut) -> None:
    """Consumer reject; the QP is reset and free again without CONN_CLOSED."""
    dev = await device(dut, 0.2)
    caller = callers(1)[0]
    dev.knows(caller)
    dev.owner_accepts = lambda qpn: False
    dev.receive(caller.req())
    rej = await dev.sent()
    assert (rej.attr, rej.reason, rej.about, rej.local_id) == (REJ, 28, 0, 0)
    await dev.settle()
    assert not dev.live and list(dev.owner_log) == [(OPENED, dev.qp_log[0].qpn)]
    assert dev.counts["connection_closed"] == 1
    dev.owner_accepts = lambda qpn: True
    for other in callers(QPS):
        await dev.open(other)


@cocotb.test()
async def owner_is_silent(dut) -> None:
    """The caller gets an MRA when half of its timeout has passed, and again, a few times; then REJ (no resources). The owner's late
    answer has no effect, and the QP is not reused before it has answered CONN_CLOSED too."""
    dev = await device(dut)
    caller = callers(1, response_timeout=12)[0]
    dev.knows(caller)
    dev.owner_accepts = lambda qpn: None
    dev.receive(caller.req())
    await dev.settle()
    dev.receive(caller.req())  # repeated meanwhile: it has no answer yet
    await dev.pass_time(10)
    assert dev.silent() and dev.counts["duplicate_req"] == 1
    local_id = 0
    for _ in range(MRAS):
        await dev.pass_time(11 if not local_id else MRA_TIMEOUT - 1)
        for repeated in range(2):
            mra = await dev.sent()
            assert (mra.attr, mra.about, mra.service_timeout, mra.tid) == (MRA, 0, MRA_TIMEOUT, caller.tid)
            assert mra.remote_id == caller.local_id and mra.local_id in (local_id or mra.local_id,)
            local_id = mra.local_id
            if not repeated:
                dev.receive(caller.req())
        await dev.pass_time(MRA_TIMEOUT - 2)
        assert dev.silent()
    await dev.pass_time(MRA_TIMEOUT - 1)
    rej = await dev.sent()
    assert (rej.attr, rej.reason, rej.about, rej.local_id) == (REJ, 3, 0, local_id)
    await dev.settle()
    assert not dev.live and len(dev.owner_log) == 1 and dev.counts["mra_sent"] == 2 * MRAS
    dev.owner_frees = False
    dev.answer(dev.qp_log[0].qpn)  # to CONN_OPENED, late
    await dev.settle()
    assert dev.silent() and dev.owner_log[-1] == (CLOSED, dev.qp_log[0].qpn)
    dev.owner_accepts = lambda qpn: True
    others = callers(QPS + 1)[1:]
    for other in others[:-1]:  # they get other QPs
        assert (await dev.open(other)).qpn != dev.qp_log[0].qpn
    dev.knows(others[-1])
    dev.receive(others[-1].req())
    assert (await dev.sent()).reason == 1
    dev.owned.discard(dev.qp_log[0].qpn)
    dev.answer(dev.qp_log[0].qpn)  # to CONN_CLOSED
    await dev.settle()
    assert (await dev.open(others[-1])).qpn == dev.qp_log[0].qpn
    assert len(dev.live) == QPS


@cocotb.test()
async def slow_owner_accepts(dut) -> None:
    """An MRA, then the REP with the same id."""
    dev = await device(dut, 0.3)
    caller = callers(1, response_timeout=9)[0]
    dev.knows(caller)
    dev.owner_accepts = lambda qpn: None
    dev.receive(caller.req())
    await dev.settle()
    await dev.pass_time(8)
    mra = await dev.sent()
    assert mra.attr == MRA
    dev.answer(dev.qp_log[0].qpn)
    rep = await dev.sent()
    assert (rep.attr, rep.local_id, rep.tid) == (REP, mra.local_id, caller.tid)
    dev.receive(caller.rtu(rep))
    await dev.close(caller, rep)


@cocotb.test()
async def queue_pairs_refuse(dut) -> None:
    dev = await device(dut)
    dev.setup_ok = False
    caller = callers(1)[0]
    dev.knows(caller)
    dev.receive(caller.req())
    rej = await dev.sent()
    assert (rej.attr, rej.reason, rej.about) == (REJ, 1, 0)
    await dev.settle()
    assert not dev.owner_log and not int(dut.mine.value)
    assert len({command.qpn for command in dev.qp_log}) == len(dev.qp_log) == QPS, "each number is tried once"
    assert dev.counts["req_received"] == dev.counts["rej_sent"] == 1
    dev.setup_ok = True
    await dev.open(caller)


@cocotb.test()
async def another_number_is_tried(dut) -> None:
    """When the queue pairs refuse some."""
    dev = await device(dut, 0.2)
    all_ = callers(3)
    free = random.sample(range(QPN_FIRST, QPN_FIRST + QPS), 2)
    dev.refused = set(range(QPN_FIRST, QPN_FIRST + QPS)) - set(free)
    reps = [await dev.open(caller) for caller in all_[:2]]
    assert {rep.qpn for rep in reps} == set(free) == set(dev.live)
    assert dev.counts["req_received"] == dev.counts["rep_sent"] == 2
    dev.knows(all_[2])
    dev.receive(all_[2].req())
    rej = await dev.sent()
    assert (rej.attr, rej.reason) == (REJ, 1)
    for caller, rep in zip(all_, reps, strict=False):
        await dev.close(caller, rep)
    await dev.open(all_[2])


@cocotb.test()
async def numbers_made_by_hand_stay_out(dut) -> None:
    """Callers and calls get the others, and none when there are none."""
    dev = await device(dut, 0.2)
    all_ = callers(4)
    free = random.sample(range(QPN_FIRST, QPN_FIRST + QPS), 2)
    dev.by_hand = sum(1 << i for i in range(QPS) if i + QPN_FIRST not in free)
    dut.by_hand.value = dev.by_hand
    rep = await dev.open(all_[0])
    req, _ = await establish(dev, all_[1], tag=1)
    await dev.settle()
    assert {rep.qpn, req.qpn} == set(free) == set(dev.live)
    assert int(dut.mine.value) == ~dev.by_hand & (1 << QPS) - 1
    dev.knows(*all_)
    dev.receive(all_[2].req())
    rej = await dev.sent()
    assert (rej.attr, rej.reason) == (REJ, 1)
    dev.connect(all_[3].ip, 2)
    await dev.settle()
    assert (dev.events[-1].kind, dev.events[-1].tag, dev.events[-1].reason) == (REFUSED, 2, 1)
    assert len(dev.qp_log) == 2, "no other was tried"
    await dev.close(all_[0], rep)
    assert int(dut.mine.value) == 1 << req.qpn - QPN_FIRST


@cocotb.test()
async def hands_at_any_moment(dut) -> None:
    """Software takes and releases numbers in any cycle, by the rule of roce_qp_direct; no number ever has two owners."""
    dev = await device(dut)
    all_ = callers(60)
    dev.knows(*all_)

    async def hands() -> None:
        while True:
            await FallingEdge(dut.clk)
            bit = 1 << random.randrange(QPS)
            if dev.by_hand & bit:
                dev.by_hand ^= bit
            elif not int(dut.mine.value) & bit and dev.by_hand.bit_count() < 2:
                dev.by_hand |= bit
            await RisingEdge(dut.clk)  # registered
            dut.by_hand.value = dev.by_hand

    task = cocotb.start_soon(hands())
    refused = 0
    for i, peer in enumerate(all_):
        if i % 2:
            dev.receive(peer.req())
            rep = await dev.sent()
            refused += rep.attr == REJ
            if rep.attr == REP:
                dev.receive(peer.rtu(rep))
                await dev.settle()
                await dev.close(peer, rep)
        else:
            _, rep = await establish(dev, peer, tag=i)
            await dev.settle()
            assert len(dev.live) == 1
            dev.shut(*dev.live)
            dreq = await dev.sent()
            assert dreq.attr == DREQ
            dev.receive(peer.drep(dreq))
            await dev.settle()
        assert not dev.live
    task.cancel()
    assert not refused


# ---- repeated, late, crossed ----


@cocotb.test()
async def repeated_req(dut) -> None:
    """The same REQ gets the same REP, before and after the RTU; the same id from another host is another connection."""
    dev = await device(dut, 0.3)
    a, b = callers(2)
    b.local_id, b.tid = a.local_id, a.tid
    first = await dev.open(a, rtu=False)
    dev.receive(a.req())
    assert (await dev.sent()).mad == first.mad
    dev.receive(a.rtu(first))
    dev.receive(a.req())
    assert (await dev.sent()).mad == first.mad
    dev.receive(a.rtu(first))
    other = await dev.open(b)
    assert other.qpn != first.qpn
    assert len(dev.qp_log) == 2 and dev.counts["duplicate_req"] == 2
    await dev.close(a, first)
    await dev.close(b, other)


@cocotb.test()
async def lost_rtu(dut) -> None:
    """The REP is repeated when its time is over, and no earlier; after the last one the connection is given up."""
    dev = await device(dut)
    caller = callers(1, cm_timeout=14)[0]
    first = await dev.open(caller, rtu=False)
    for _ in range(MAX_RETRIES):
        await dev.pass_time(13)
        await dev.settle()
        assert dev.silent()
        await dev.pass_time(13)
        assert (await dev.sent()).mad == first.mad
    await dev.pass_time(14)
    rej = await dev.sent()
    assert (rej.attr, rej.reason, rej.about, rej.local_id) == (REJ, 4, 2, first.local_id)
    await dev.settle()
    assert not dev.live and not dev.owned
    assert dev.counts["rep_timeout"] == MAX_RETRIES + 1
    dev.receive(caller.rtu(first))  # too late
    await dev.settle()
    assert dev.counts["drop_no_connection"] == 1
    for other in callers(QPS):
        await dev.open(other)


@cocotb.test()
async def a_timer_is_no_work(dut) -> None:
    """A device that only waits for a peer is idle until the time is over, to the cycle."""
    dev = await device(dut)
    await dev.open(callers(1, cm_timeout=10)[0], rtu=False)
    await dev.settle()
    idle = 0
    while int(dev.signal("idle").value):
        await RisingEdge(dut.clk)
        idle += 1
        if idle == 10_000:
            dev.now += (TICK << 10) - 12_000  # the REP left less than 2000 cycles ago
        assert idle < 12_000
    assert idle > 10_000
    assert (await dev.sent()).attr == REP


@cocotb.test()
async def idle_means_that_every_timer_was_looked_at(dut) -> None:
    """The time of many connections is over at once: there is no idle cycle before the last of them has repeated its REP."""
    dev = await device(dut)
    for caller in callers(QPS, cm_timeout=14):
        await dev.open(caller, rtu=False)
    await dev.settle()
    dev.now += TICK << 14
    await wait_cycles(dut, 3)
    while not int(dev.signal("idle").value):
        await RisingEdge(dut.clk)
    for _ in range(100):
        await RisingEdge(dut.clk)
        assert int(dev.signal("idle").value)
    assert [(await dev.sent()).attr for _ in range(QPS)] == [REP] * QPS and dev.silent()


@cocotb.test()
async def a_reset_forgets_a_frame_without_its_message(dut) -> None:
    dev = await device(dut)
    caller, other = callers(2)
    dev.frames.send(roce_record(other.req()[:HEADERS], 256))
    await dev.frames.drained()
    await wait_cycles(dut, 5)
    await FallingEdge(dut.clk)
    dut.rst.value = 1
    await wait_cycles(dut, 3)
    await FallingEdge(dut.clk)
    dut.rst.value = 0
    await wait_cycles(dut, QPS + 4)
    dev.psn = -1
    assert (await dev.open(caller)).dst_ip == caller.ip


@cocotb.test()
async def rtu_ends_the_timer(dut) -> None:
    dev = await device(dut)
    await dev.open(callers(1, cm_timeout=10)[0])
    await dev.pass_time(22)
    await dev.settle()
    assert dev.silent() and len(dev.live) == 1


@cocotb.test()
async def rtu_of_others_changes_nothing(dut) -> None:
    """An RTU from another address, or under another ID, is none of this connection's: its REP is repeated all the same."""
    dev = await device(dut)
    caller, stranger = callers(2, cm_timeout=14)
    rep = await dev.open(caller, rtu=False)
    dev.receive(stranger.rtu(rep))
    dev.receive(replace(caller, local_id=caller.local_id + 1).rtu(rep))
    await dev.settle()
    assert dev.counts["drop_no_connection"] == 2 and not dev.counts["rtu_received"]
    for _ in range(2):
        await dev.pass_time(13)
    assert (await dev.sent()).mad == rep.mad


@cocotb.test()
async def retries_and_times_are_bounded(dut) -> None:
    """Fewer retries if the REQ allows fewer; no longer wait than 17 s whatever the timeout in the REQ."""
    dev = await device(dut)
    caller = callers(1, cm_timeout=31, retries=1)[0]
    await dev.open(caller, rtu=False)
    await dev.pass_time(22)
    assert (await dev.sent()).attr == REP
    await dev.pass_time(22)
    assert (await dev.sent()).reason == 4


@cocotb.test()
async def mra(dut) -> None:
    """The caller sends MRAs: the REP's timer restarts with their timeout, a limited number of times."""
    dev = await device(dut)
    caller = callers(1, cm_timeout=10)[0]
    rep = await dev.open(caller, rtu=False)
    for _ in range(MAX_RETRIES):
        dev.receive(caller.mra(rep, 16))
        await dev.settle()
        await dev.pass_time(15)
        await dev.settle()
        assert dev.silent()
    dev.receive(caller.mra(rep, 20))
    await dev.settle()
    await dev.pass_time(16)
    assert (await dev.sent()).reason == 4


@cocotb.test()
async def rejected_by_the_caller(dut) -> None:
    dev = await device(dut)
    a, b = callers(2)
    first = await dev.open(a, rtu=False)
    second = await dev.open(b)
    dev.receive(a.rej(first))
    dev.receive(b.rej(second))
    await dev.settle()
    assert dev.silent() and not dev.live and not dev.owned
    assert dev.counts["rej_received"] == 2


@cocotb.test()
async def stale_connection(dut) -> None:
    """A REQ with the QP of an old connection makes that one stale: REJ 10, and the old one is closed."""
    dev = await device(dut)
    caller = callers(1)[0]
    old = await dev.open(caller)
    forgetful = Caller(**{**vars(caller), "local_id": 0xABCD, "tid": 0xABCD})
    dev.receive(forgetful.req())
    rej = await dev.sent()
    assert (rej.attr, rej.reason, rej.remote_id) == (REJ, 10, 0xABCD)
    dreq = await dev.sent()
    assert (dreq.attr, dreq.local_id, dreq.remote_id, dreq.qpn) == (DREQ, old.local_id, caller.local_id, caller.qpn)
    await dev.settle()
    assert not dev.live and not dev.owned
    rep = await dev.open(forgetful)  # repeated: it is accepted, though the DREQ has not been answered
    assert rep.qpn != old.qpn


@cocotb.test()
async def dreq_repeated_unknown_or_wrong(dut) -> None:
    """A DREQ is always answered, except for another QP than the connection's."""
    dev = await device(dut, 0.2)
    caller = callers(1)[0]
    rep = await dev.open(caller)
    dev.receive(caller.dreq(rep, qpn=rep.qpn + 1))
    await dev.settle()
    assert dev.silent() and dev.live and dev.counts["drop_malformed"] == 1
    stranger = callers(2)[1]
    dev.knows(stranger)
    dev.receive(stranger.dreq(rep))  # right id of ours, wrong peer
    drep = await dev.sent()
    assert (drep.attr, drep.dst_ip, drep.remote_id) == (DREP, stranger.ip, stranger.local_id)
    assert dev.live
    for _ in range(3):
        dev.receive(caller.dreq(rep))
        drep = await dev.sent()
        assert (drep.attr, drep.local_id, drep.remote_id, drep.tid) == (DREP, rep.local_id, caller.local_id, caller.tid)
    await dev.settle()
    assert not dev.live and dev.counts["connection_closed"] == 1


@cocotb.test()
async def rep_to_a_device_that_asked_nobody(dut) -> None:
    dev = await device(dut)
    caller = callers(1)[0]
    dev.knows(caller)
    dev.receive(caller.frame(REP, (7).to_bytes(4, "big") + (9).to_bytes(4, "big")))
    rej = await dev.sent()
    assert (rej.attr, rej.reason, rej.about, rej.local_id, rej.remote_id) == (REJ, 6, 1, 9, 7)


@cocotb.test()
@cocotb.parametrize(rtu=[True, False])
async def rep_for_a_connection_that_the_peer_opened(dut, rtu: bool) -> None:
    """It names a connection of the device, but none that waits for a REP: refused, and the connection stays."""
    dev = await device(dut, 0.2)
    caller = callers(1)[0]
    rep = await dev.open(caller, rtu)
    for _ in range(2):
        dev.receive(caller.frame(REP, cm.rep(caller.local_id, rep.local_id, 5, 6)))
        rej = await dev.sent()
        assert (rej.attr, rej.reason, rej.about) == (REJ, 6, 1)
        assert (rej.local_id, rej.remote_id) == (rep.local_id, caller.local_id)
    await dev.settle()
    assert dev.counts["drop_no_connection"] == 2 and rep.qpn in dev.live and dev.silent()
    await dev.close(caller, rep)


# ---- the device closes ----


@cocotb.test()
@cocotb.parametrize(cause=["failure", "owner"], rtu=[True, False])
async def device_closes(dut, cause: str, rtu: bool) -> None:
    """QP reset, then DREQ, event for the owner, DREQ repeated until the DREP, a few times at most. A second event has no effect."""
    dev = await device(dut, 0.2)
    a, b = callers(2, cm_timeout=12)
    for caller, answers in ((a, True), (b, False)):
        rep = await dev.open(caller, rtu)
        respond, held = dev.done.send, []
        dev.done.send = held.append
        for _ in range(2):
            if cause == "failure":
                dev.fail(rep.qpn)
            else:
                dev.shut(rep.qpn)
        await wait_cycles(dut, 200)
        assert dev.qp_log[-1].op == RESET and dev.silent(), "the DREQ comes behind the queue pair's last packet"
        dev.done.send = respond
        respond(held[0])
        dreq = await dev.sent()
        assert (dreq.attr, dreq.local_id, dreq.remote_id) == (DREQ, rep.local_id, caller.local_id)
        assert dreq.qpn == caller.qpn
        await dev.settle()
        assert not dev.live and not dev.owned and dev.owner_log[-1] == (CLOSED, rep.qpn)
        repeats = 1 if answers else MAX_RETRIES
        for _ in range(repeats):
            await dev.pass_time(12)
            assert (await dev.sent()).mad == dreq.mad
        if answers:
            dev.receive(caller.drep(dreq))
            await dev.settle()
        for _ in range(3):
            await dev.pass_time(12)
            await dev.settle()
        assert dev.silent()
    assert dev.counts["dreq_sent"] == 2 + 1 + MAX_RETRIES
    dev.fail(QPN_FIRST + QPS)  # none of ours
    dev.shut(1)
    await dev.settle()
    assert dev.silent()


@cocotb.test()
async def failures_are_taken_at_any_time(dut) -> None:
    """Both sides of every QP fail while the connection manager waits for a reset, and the reset waits for that."""
    dev = await device(dut)
    all_ = callers(QPS)
    reps = [await dev.open(caller) for caller in all_]
    respond, held = dev.done.send, []
    dev.done.send = held.append
    dev.receive(all_[0].dreq(reps[0]))
    await wait_cycles(dut, 200)
    assert dev.qp_log[-1].op == RESET and dev.silent(), "the queue pair is reset before its peer gets the message"
    for _ in range(2):
        for rep in reps:
            dev.fail(rep.qpn)
    await dev.qp_events.drained(200)
    dev.done.send = respond
    respond(held[0])
    assert (await dev.sent()).attr == DREP
    assert {(await dev.sent()).dst_ip for _ in all_[1:]} == {caller.ip for caller in all_[1:]}
    await dev.settle()
    assert dev.silent() and not dev.live and not dev.owned


@cocotb.test()
async def crossed_dreqs(dut) -> None:
    """Both sides disconnect at once: each answers the other, and that is the end."""
    dev = await device(dut)
    caller = callers(1)[0]
    rep = await dev.open(caller)
    dev.shut(rep.qpn)
    assert (await dev.sent()).attr == DREQ
    await dev.settle()
    await dev.close(caller, rep)
    await dev.pass_time(22)
    await dev.settle()
    assert dev.silent() and dev.counts["connection_closed"] == 1


@cocotb.test()
async def closed_while_the_owner_thinks(dut) -> None:
    dev = await device(dut)
    caller = callers(1)[0]
    dev.knows(caller)
    dev.owner_accepts = lambda qpn: None
    dev.receive(caller.req())
    await dev.settle()
    qpn = dev.qp_log[0].qpn
    dev.fail(qpn)
    rej = await dev.sent()
    assert (rej.attr, rej.reason) == (REJ, 28)
    dev.answer(qpn)
    await dev.settle()
    assert list(dev.owner_log) == [(OPENED, qpn), (CLOSED, qpn)]
    assert dev.silent() and not dev.live and not dev.owned


@cocotb.test()
async def the_address_goes(dut) -> None:
    """Connections in every state are closed, with that as the reason; none is accepted; what waits for its peer is given up in
    the end, and then nothing is sent any more."""
    dev = await device(dut, 0.2)
    all_ = callers(4, cm_timeout=12)
    used = [await dev.open(caller) for caller in all_[:2]]
    half = await dev.open(all_[2], False)
    dev.signal("leaving").value = LEAVING
    dev.knows(all_[3])
    dev.receive(all_[3].req())
    refused = await dev.sent()
    assert (refused.attr, refused.reason) == (REJ, 8)
    dreqs = []
    for rep in (*used, half):
        dev.shut(rep.qpn, lost=True)
        dreqs.append(await dev.sent())
        assert (dreqs[-1].attr, dreqs[-1].local_id) == (DREQ, rep.local_id)
    await dev.settle()
    assert not dev.live and not dev.owned and dev.reasons[-3:] == [ADDRESS_LOST] * 3
    dev.receive(all_[0].drep(dreqs[0]))
    await dev.settle()
    await dev.pass_time(12)
    for _ in range(2):  # all that have no DREP repeat the DREQ
        assert (await dev.sent()).attr == DREQ
    dev.signal("abandon").value = 1
    for rep in (*used, half):
        dev.shut(rep.qpn, lost=True)
    await dev.settle()
    for _ in range(4):
        await dev.pass_time(14)
        await dev.settle()
    assert dev.silent() and int(dut.mine.value) == 0
    # The next address: as before.
    dev.signal("leaving").value = dev.signal("abandon").value = 0
    caller = callers(5)[4]
    await dev.close(caller, await dev.open(caller))


@cocotb.test()
async def the_address_goes_while_the_device_calls(dut) -> None:
    """The client hears why; a connection that is set up too late gets its DREQ, and is gone."""
    dev = await device(dut)
    (peer, late) = callers(2)
    req = await call(dev, peer, 7)
    rep = await dev.open(late)
    dev.signal("leaving").value, dev.signal("abandon").value = LEAVING, 1
    dev.shut(QPN_FIRST, lost=True)
    dev.shut(QPN_FIRST + 1, lost=True)
    messages = {(await dev.sent()).attr for _ in range(2)}
    assert messages == {REJ, DREQ} and req.attr == REQ
    await dev.settle()
    assert dev.reasons[-2:] == [ADDRESS_LOST] * 2 and rep.qpn not in dev.live
    for _ in range(4):
        await dev.pass_time(20)
        await dev.settle()
    assert dev.silent() and int(dut.mine.value) == 0


# ---- several addresses ----

GLOBAL, LINK_LOCAL = "2001:db8:77::1", "fe80::5054:ff:fe63:1"
OWN_IPV4, OWN_GLOBAL, OWN_LINK_LOCAL = range(3)


async def device_of_all(dut, stall: float = 0.0) -> Device:
    """It has an address of each kind."""
    it = Device(dut, stall)
    mine = dict(enable=1, mac=mac_number(DEVICE_MAC), ip=int(ipaddress.IPv4Address(DEVICE_IP)), prefix_length=24)
    mine |= dict(global_=ip_number(GLOBAL), link_local=ip_number(LINK_LOCAL))
    it.signal("local_addr").value = struct("packet_pkg::local_addr_t").pack(mine)
    it.others = {DEVICE_IP, GLOBAL, LINK_LOCAL}
    await it.start()
    return it


def one_of_each() -> list[tuple[Caller, int]]:
    """Callers of each address, from wherever, and the address that each connection uses. Over IPv6 there is none of IPv4."""
    hosts = [
        ("2001:db8:77::2", GLOBAL, OWN_GLOBAL),
        ("fe80::2", LINK_LOCAL, OWN_LINK_LOCAL),
        ("fe80::3", GLOBAL, OWN_GLOBAL),  # not what this device would choose, but what it is called by
        ("2001:db8:78::2", LINK_LOCAL, OWN_LINK_LOCAL),
    ]
    if FAMILY == 4:
        hosts.append(("10.99.0.7", DEVICE_IP, OWN_IPV4))
    blank = callers(len(hosts))
    return [(replace(c, ip=ip, called=to), kind) for c, (ip, to, kind) in zip(blank, hosts, strict=True)]


@cocotb.test()
@cocotb.parametrize(stall=alternately([0.0, 0.4]))
async def answers_come_from_the_address_that_was_called(dut, stall: float) -> None:
    dev = await device_of_all(dut, stall)
    for caller, kind in one_of_each():
        rep = await dev.open(caller)
        attr = dev.live[rep.qpn]
        assert (dev.source_ip, rep.dst_ip, rep.dst_mac) == (caller.called, caller.ip, caller.mac)
        assert (attr.dst_ip, attr.own, dev.events[-1].ip) == (ip_number(caller.ip), kind, ip_number(caller.ip))
        again = replace(caller, local_id=caller.local_id + 0x100, qpn=caller.qpn + 0x100)
        kinds = {DEVICE_IP, GLOBAL, LINK_LOCAL} if kind != OWN_IPV4 else {"10.99.0.8"}
        wrong = next(ip for ip in sorted(kinds) if ip != caller.called and (":" in ip) == (":" in caller.ip))
        for change, reason in (({"called": wrong}, 12), ({"ip_version": 4 if kind != OWN_IPV4 else 6}, 5)):
            # The address in the message is not that of its packet.
            dev.receive(frame(cm.mad(REQ, 5, replace(again, **change).data()), caller.ip, caller.mac, caller.called))
            rej = await dev.sent()
            assert (rej.attr, rej.reason, dev.source_ip) == (REJ, reason, caller.called)
        await dev.close(caller, rep)
        assert dev.source_ip == caller.called


@cocotb.test()
@cocotb.parametrize(stall=alternately([0.0, 0.4]))
async def calls_from_the_address_of_the_peers_kind(dut, stall: float) -> None:
    dev = await device_of_all(dut, stall)
    for tag, (peer, kind) in enumerate(one_of_each()):
        own = {OWN_IPV4: DEVICE_IP, OWN_GLOBAL: GLOBAL, OWN_LINK_LOCAL: LINK_LOCAL}
        kind = OWN_LINK_LOCAL if peer.ip.startswith("fe80") else OWN_GLOBAL if ":" in peer.ip else kind
        peer = replace(peer, called=own[kind])
        req = await call(dev, peer, tag)
        assert dev.asked[ip_number(peer.ip)] == 1 and dev.source_ip == own[kind]
        data = req.mad[cm.HEADER_BYTES :]
        assert data[56:88] == cm.gid(own[kind]) + cm.gid(peer.ip)
        assert data[141] == (4 if kind == OWN_IPV4 else 6) << 4
        assert data[144:176] == b"".join(ipaddress.ip_address(ip).packed.rjust(16, b"\0") for ip in (own[kind], peer.ip))
        dev.receive(peer.rep(req))
        assert (await dev.sent()).attr == RTU
        await dev.settle()
        assert (dev.live[req.qpn].dst_ip, dev.live[req.qpn].own) == (ip_number(peer.ip), kind)


@cocotb.test()
@cocotb.parametrize(goes=[OWN_IPV4, OWN_GLOBAL, OWN_LINK_LOCAL])
async def one_address_goes(dut, goes: int) -> None:
    """Connections that use it end, with that as the reason, and none is accepted on it; the others go on."""
    dev = await device_of_all(dut, 0.2)
    all_ = [(caller, kind, await dev.open(caller)) for caller, kind in one_of_each()]
    dut.leaving.value = 1 << goes
    dev.shut(*(rep.qpn for _, _, rep in all_), lost=True)
    await dev.settle()
    ended = [rep for _, kind, rep in all_ if kind == goes]
    assert [(await dev.sent()).local_id for _ in ended] == [rep.local_id for rep in ended] and dev.silent()
    assert dev.live.keys() == {rep.qpn for _, kind, rep in all_ if kind != goes}
    assert dev.reasons[len(all_) :] == [ADDRESS_LOST] * len(ended)
    for caller, kind in one_of_each():
        again = replace(caller, local_id=caller.local_id + 0x100, qpn=caller.qpn + 0x100)
        dev.receive(again.req())
        answer = await dev.sent()
        assert (answer.attr, answer.reason) == (REJ, 8) if kind == goes else answer.attr == REP
        if answer.attr == REP:
            await dev.close(again, answer)
    dut.abandon.value = 1
    dev.shut(*(rep.qpn for _, _, rep in all_), lost=True)
    await dev.settle()
    assert dev.silent()
    for _, kind, rep in all_:
        if kind != goes:
            dev.shut(rep.qpn)
    await dev.settle()
    assert not any(rep.qpn in dev.live for _, _, rep in all_)
    assert dev.reasons[-1] == 0


@cocotb.test()
async def an_address_is_compared_as_a_whole(dut) -> None:
    """Messages with the ids of a connection, but from elsewhere: every bit of the address counts, and the order of its words.
    An IPv6 host cannot pass for the one of IPv4 whose address it has at the end of its own."""
    dev = await device_of_all(dut)
    caller = replace(callers(1)[0], ip="2001:db8:1:2:3:4:5:6", called=GLOBAL)
    rep = await dev.open(caller)
    number = int(ipaddress.IPv6Address(caller.ip))
    words = [number >> 32 * i & 0xFFFFFFFF for i in range(4)]
    others = [number ^ 1 << bit for bit in range(125)]  # the rest is multicast
    others += [sum(words[(i + turn) % 4] << 32 * i for i in range(4)) for turn in (1, 2, 3)]
    for other in others:
        stranger = replace(caller, ip=str(ipaddress.IPv6Address(other)))
        dev.receive(stranger.dreq(rep))
        assert (await dev.sent()).dst_ip == stranger.ip  # answered as one for no connection
        await dev.settle()
        assert rep.qpn in dev.live
    await dev.close(caller, rep)
    if FAMILY == 4:
        victim = callers(2)[1]
        rep = await dev.open(victim)
        for top in ("::", "::ffff:0:", "64:ff9b::", "2001:db8::", "fe80::"):
            dev.receive(replace(victim, ip=f"{top}{victim.ip}", called=GLOBAL).dreq(rep))
            await dev.sent()
        await dev.settle()
        assert rep.qpn in dev.live


# ---- the device calls ----


async def call(dev: Device, peer: Caller, tag: int = 1, private: bytes = b"", **fields: int) -> Message:
    """The REQ for a `connect` of a client."""
    dev.knows(peer)
    dev.connect(peer.ip, tag, private, **fields)
    req = await dev.sent()
    assert req.attr == REQ, str(req)
    return req


async def establish(dev: Device, peer: Caller, tag: int = 1, **fields: int) -> tuple[Message, Message]:
    """REQ, REP, RTU; returns REQ and RTU."""
    req = await call(dev, peer, tag, **fields)
    dev.receive(peer.rep(req))
    rtu = await dev.sent()
    assert rtu.attr == RTU, str(rtu)
    await dev.settle()
    assert dev.events[-1].kind == ESTABLISHED and dev.events[-1].qpn == req.qpn
    return req, rtu


@cocotb.test()
@cocotb.parametrize(stall=alternately([0.0, 0.5]))
async def calls_as_linux_does(dut, stall: float) -> None:
    """In the place of Linux: its REQ, RTU and DREQ but for the numbers that each side chooses; and what Linux answers is taken."""
    dev = Device(dut, stall, mac="52:54:00:63:00:02", ip="10.99.0.2")
    await dev.start()
    linux = linux_frames()
    theirs = Message(DEVICE_IP, DEVICE_MAC, linux["req"][HEADERS:318])
    dev.known[ip_number(DEVICE_IP)] = DEVICE_MAC
    dev.connect(DEVICE_IP, 77, path_mtu=3, timeout=19, retry_cnt=7, rnr_retry=6, responder_resources=1, initiator_depth=1)
    req = await dev.sent()
    assert (req.dst_ip, req.dst_mac) == (theirs.dst_ip, theirs.dst_mac)
    # Transaction id, our id, QPN, PSN, flow label, source port.
    chosen = [(8, 16), (24, 28), (56, 59), (68, 71), (112, 115), (166, 168)]
    mine, other = bytearray(req.mad), bytearray(theirs.mad)
    for begin, end in chosen:
        mine[begin:end] = other[begin:end] = bytes(end - begin)
    assert mine == other
    assert req.at(142, 2) >= 0xC000 and req.qpn in range(QPN_FIRST, QPN_FIRST + QPS)
    assert not dev.qp_log, "the QP is set up when the REP is there"

    def ours(data: bytes) -> bytes:
        changed = bytearray(data)
        changed[HEADERS + 8 : HEADERS + 16] = req.mad[8:16]
        changed[HEADERS + 28 : HEADERS + 32] = req.mad[24:28]
        return bytes(changed)

    dev.receive(ours(linux["rep"]))
    rep = Message(dev.ip, dev.mac, linux["rep"][HEADERS:318])
    rtu = await dev.sent()
    assert rtu.attr == RTU and (rtu.tid, rtu.local_id, rtu.remote_id) == (req.tid, req.local_id, rep.local_id)
    assert rtu.mad[32:] == linux["rtu"][HEADERS + 32 : 318]
    await dev.settle()
    event = dev.events[-1]
    assert (event.kind, event.client, event.qpn, event.tag, event.reason) == (ESTABLISHED, 1, req.qpn, 77, 0)
    assert event.private_data == int.from_bytes(rep.private, "big")
    (command,) = dev.qp_log
    attr = command.attr
    assert (command.op, command.qpn, command.state) == (SETUP, req.qpn, RTS)
    assert (attr.dst_mac, attr.dst_ip, attr.dest_qp_num) == (mac_number(DEVICE_MAC), ip_number(DEVICE_IP), rep.qpn)
    assert (attr.rq_psn, attr.sq_psn) == (req.psn, rep.psn)
    assert (attr.path_mtu, attr.timeout, attr.retry_cnt, attr.rnr_retry, attr.min_rnr_timer) == (3, 19, 7, 6, 1)
    assert (attr.pd, attr.client, attr.max_rd_atomic, attr.max_dest_rd_atomic, attr.selective_repeat) == (7, 1, 1, 1, 0)
    access = attr.access
    assert (access.remote_invalidate, access.remote_atomic, access.remote_read, access.remote_write) == (0, 1, 0, 1)

    dev.shut(req.qpn)
    dreq = await dev.sent()
    assert (dreq.attr, dreq.local_id, dreq.remote_id, dreq.qpn) == (DREQ, req.local_id, rep.local_id, rep.qpn)
    assert dreq.mad[35:] == linux["dreq"][HEADERS + 35 : 318]
    peer = Caller(ip=DEVICE_IP, mac=DEVICE_MAC, local_id=rep.local_id)
    dev.receive(peer.drep(dreq))
    await dev.settle()
    assert list(dev.owner_log) == [(ESTABLISHED, req.qpn), (CLOSED, req.qpn)] and not dev.live
    await dev.pass_time(22)
    assert dev.silent()
    assert dev.counts == Counter(req_sent=1, rep_received=1, rtu_sent=1, dreq_sent=1, drep_received=1, connection_opened=1,
                                 connection_closed=1)  # fmt: skip


@cocotb.test()
async def call_is_refused(dut) -> None:
    """The peer's reason and private data come to the owner; the QP number is free again."""
    dev = await device(dut, 0.3)
    words = bytes(range(100, 148))
    for i, peer in enumerate(callers(2 * QPS)):
        req = await call(dev, peer, tag=i)
        dev.receive(peer.rej(req, 28 if i % 2 else 8, words + b"more"))
        await dev.settle()
        event = dev.events[-1]
        assert (event.kind, event.tag, event.reason, event.qpn) == (REFUSED, i, 28 if i % 2 else 8, req.qpn)
        assert event.private_data == int.from_bytes(words, "big")
    assert not dev.qp_log and dev.silent() and dev.counts["rej_received"] == 2 * QPS
    await dev.pass_time(CM_TIMEOUT)
    assert dev.silent()


@cocotb.test()
async def nobody_answers(dut) -> None:
    """The REQ is repeated, the same each time; at last REJ (timeout) with the device's GUID, and CONN_REFUSED for the owner."""
    dev = await device(dut)
    peer = callers(1)[0]
    req = await call(dev, peer, private=b"anybody there?")
    assert req.private.rstrip(b"\0") == b"anybody there?"
    for _ in range(REQ_RETRIES):
        await dev.pass_time(CM_TIMEOUT - 1)
        assert dev.silent()
        await dev.pass_time(CM_TIMEOUT - 1)
        assert (await dev.sent()).mad == req.mad
    await dev.pass_time(CM_TIMEOUT)
    rej = await dev.sent()
    assert (rej.attr, rej.reason, rej.about, rej.local_id, rej.remote_id) == (REJ, 4, 2, req.local_id, 0)
    assert rej.at(9, 1) == 8 << 1 and rej.mad[36:44] == cm.guid(DEVICE_MAC)
    await dev.settle()
    event = dev.events[-1]
    assert (event.kind, event.reason, event.private_data) == (REFUSED, UNREACHABLE, 0)
    assert dev.counts["req_timeout"] == REQ_RETRIES + 1
    dev.receive(peer.rep(req))  # too late
    rej = await dev.sent()
    assert (rej.attr, rej.reason, rej.about, rej.local_id, rej.remote_id) == (REJ, 6, 1, req.local_id, peer.local_id)
    for i, other in enumerate(callers(QPS)):
        await establish(dev, other, tag=i)


@cocotb.test()
async def nobody_has_the_address(dut) -> None:
    """The look-up is repeated at growing intervals for about 0.3 s, in which the device is idle; then the owner gets
    CONN_UNREACHABLE. Once the REQ has left, nothing more is looked up."""
    dev = await device(dut)
    peer = callers(1)[0]
    dev.connect(peer.ip, 3, b"x")
    passed = 0  # in ticks
    while not dev.events:
        await dev.settle()
        dev.now += TICK << 8  # 1 ms
        passed += 1 << 8
        await wait_cycles(dut, 3)
    assert 0.25 < passed * 4.096e-6 < 0.3
    event = dev.events[-1]
    assert (event.kind, event.tag, event.reason, event.private_data) == (REFUSED, 3, UNREACHABLE, 0)
    assert dev.silent() and dev.counts == Counter(drop_unresolved=1) and sum(dev.asked.values()) < 16
    req = await call(dev, peer)
    dev.known.clear()
    dev.asked.clear()
    await dev.pass_time(CM_TIMEOUT)
    assert (await dev.sent()).mad == req.mad
    dev.receive(peer.rep(req))
    assert (await dev.sent()).attr == RTU
    await dev.settle()
    assert dev.events[-1].kind == ESTABLISHED and not dev.asked


@cocotb.test()
async def no_queue_pair_for_a_call(dut) -> None:
    """None free: refused at once. The queue pairs refuse: so is the peer."""
    dev = await device(dut, 0.2)
    all_ = callers(QPS + 1)
    for i, peer in enumerate(all_[:QPS]):
        if i % 2:
            await dev.open(peer)
        else:
            await establish(dev, peer, tag=i)
    for tag in (100, 101):
        dev.connect(all_[QPS].ip, tag)
        await dev.settle()
        event = dev.events[-1]
        assert (event.kind, event.tag, event.reason, event.client) == (REFUSED, tag, 1, 1)
    assert dev.silent()
    dev.shut(QPN_FIRST)
    assert (await dev.sent()).attr == DREQ
    await dev.settle()
    await dev.pass_time(22)
    for _ in range(MAX_RETRIES):
        assert (await dev.sent()).attr == DREQ
        await dev.pass_time(22)
    dev.setup_ok = False
    peer = all_[QPS]
    req = await call(dev, peer, tag=102)
    dev.receive(peer.rep(req, private=b"welcome"))
    rej = await dev.sent()
    assert (rej.attr, rej.reason, rej.about, rej.remote_id) == (REJ, 1, 1, peer.local_id)
    await dev.settle()
    event = dev.events[-1]
    assert (event.kind, event.tag, event.reason, event.private_data) == (REFUSED, 102, 1, 0)
    dev.setup_ok = True
    await establish(dev, peer, tag=103)


@cocotb.test()
async def rep_again_and_of_others(dut) -> None:
    """A repeated REP gets the RTU again; a REP of another host, for another id or from another id is refused, without effect."""
    dev = await device(dut, 0.2)
    peer, stranger = callers(2)
    dev.knows(stranger)
    req = await call(dev, peer)
    dev.receive(stranger.rep(req))
    rej = await dev.sent()
    assert (rej.attr, rej.reason, rej.about, rej.remote_id) == (REJ, 6, 1, stranger.local_id)
    dev.receive(peer.rep(Message(dev.ip, dev.mac, cm.mad(REQ, 1, cm.Request(local_id=req.local_id ^ 0x100).data()))))
    assert (await dev.sent()).reason == 6
    assert not dev.qp_log
    dev.receive(peer.rep(req))
    rtu = await dev.sent()
    for _ in range(3):
        dev.receive(peer.rep(req))
        assert (await dev.sent()).mad == rtu.mad
    twin = Caller(**{**vars(peer), "local_id": peer.local_id + 1})
    dev.receive(twin.rep(req))
    assert (await dev.sent()).reason == 6
    await dev.settle()
    assert len(dev.qp_log) == 1 and [event.kind for event in dev.events] == [ESTABLISHED]
    # A late refusal without the device's peer's id is nothing; one from the peer closes.
    dev.receive(peer.rej(req, 8))
    await dev.settle()
    assert dev.live
    dev.receive(peer.frame(REJ, cm.rej(peer.local_id, req.local_id, cm.ABOUT_OTHER, 28)))
    await dev.settle()
    assert dev.events[-1].kind == CLOSED and dev.events[-1].reason == 28 and not dev.live and dev.silent()


@cocotb.test()
async def peer_asks_for_time(dut) -> None:
    """MRA for our REQ: wait that long, then ask again; not for ever. One about another message is none."""
    dev = await device(dut)
    peer = callers(1)[0]
    req = await call(dev, peer)
    dev.receive(peer.frame(MRA, cm.mra(peer.local_id, req.local_id, cm.ABOUT_REP, 10)))
    await dev.settle()
    assert dev.counts["drop_no_connection"] == 1
    for _ in range(REQ_RETRIES):
        dev.receive(peer.mra(req, 22))
        await dev.settle()
        await dev.pass_time(21)
        assert dev.silent()
    await dev.pass_time(21)
    assert (await dev.sent()).reason == 4
    await dev.settle()
    assert dev.events[-1].reason == UNREACHABLE
    req = await call(dev, peer)
    dev.receive(peer.mra(req, 22))
    await dev.settle()
    await dev.pass_time(22)
    assert (await dev.sent()).mad == req.mad
    dev.receive(peer.rep(req))
    assert (await dev.sent()).attr == RTU


@cocotb.test()
async def attributes_are_negotiated(dut) -> None:
    """The REQ has the client's numbers, at most the device's; the QP gets at most the REP's."""
    dev = await device(dut)
    dev.dut.max_mtu.value = 4
    cases = [  # wanted resources, depth; REQ's; REP's; the QP's max_dest_rd_atomic, max_rd_atomic
        ((0, 0), (0, 0), (9, 9), (0, 0)),
        ((8, 8), (8, 8), (3, 5), (5, 3)),
        ((255, 16), (8, 8), (16, 16), (8, 8)),
        ((2, 4), (2, 4), (1, 0), (0, 1)),
    ]
    mtus = [(0, 4), (2, 2), (5, 4), (4, 4)]
    for peer, (wanted, asked, answered, got), (mtu, sent) in zip(callers(4), cases, mtus, strict=True):
        fields = dict(responder_resources=wanted[0], initiator_depth=wanted[1], path_mtu=mtu, timeout=9, retry_cnt=2, rnr_retry=5)
        req = await call(dev, peer, **fields)
        assert (req.resources, req.depth) == asked
        assert (req.at(50, 1), req.at(95, 1), req.at(47, 1)) == (sent << 4 | 5, 9 << 3, CM_TIMEOUT << 3 | 2)
        dev.receive(peer.rep(req, resources=answered[0], depth=answered[1], rnr_retry=3))
        assert (await dev.sent()).attr == RTU
        attr = dev.qp_log[-1].attr
        assert (attr.max_dest_rd_atomic, attr.max_rd_atomic) == got
        assert (attr.path_mtu, attr.timeout, attr.retry_cnt, attr.rnr_retry) == (sent, 9, 2, 3)
        await dev.settle()


@cocotb.test()
async def stale_answer(dut) -> None:
    """A REP that names the QP of another connection makes that one stale. Both end, with the reason for their owners."""
    dev = await device(dut)
    peer = callers(1)[0]
    old, _ = await establish(dev, peer)
    forgetful = Caller(**{**vars(peer), "local_id": 0xABCD, "tid": 0xABCD})
    req = await call(dev, forgetful, tag=2)
    dev.receive(forgetful.rep(req))
    rej = await dev.sent()
    assert (rej.attr, rej.reason, rej.about, rej.remote_id) == (REJ, 10, 1, 0xABCD)
    dreq = await dev.sent()
    assert (dreq.attr, dreq.local_id) == (DREQ, old.local_id)
    await dev.settle()
    assert [(event.kind, event.qpn, event.reason) for event in list(dev.events)[1:]] == [
        (REFUSED, req.qpn, 10),
        (CLOSED, old.qpn, 10),
    ]
    await establish(dev, forgetful, tag=3)


@cocotb.test()
@cocotb.parametrize(mine=[0, 1], passive=[False, True])
async def selective_repeat_is_agreed(dut, mine: int, passive: bool) -> None:
    """Only if both sides offer it, by a record of a version that both support; a repeated REP has the same record."""
    dev = await device(dut)
    dev.dut.extensions.value = mine
    records = [(b"", 0), (cm.extensions(1), 1), (cm.extensions(0xFF), 1), (cm.extensions(0), 0), (cm.extensions(2), 0),
               (cm.extensions(1, version=2), 0), (cm.extensions(1, magic=b"NACM"), 0)]  # fmt: skip
    for peer, (record, theirs) in zip(callers(7), records, strict=True):
        agreed = mine & theirs
        if passive:
            peer.extensions = record
            rep = await dev.open(peer, rtu=False)
            assert rep.extensions == (cm.extensions(1) if agreed else bytes(8))
            dev.dut.extensions.value = 0
            dev.receive(peer.req())
            assert (await dev.sent()).mad == rep.mad
            dev.dut.extensions.value = mine
        else:
            req = await call(dev, peer)
            assert req.extensions == (cm.extensions(1) if mine else bytes(8))
            dev.receive(peer.rep(req, extensions=record))
            assert (await dev.sent()).attr == RTU
            await dev.settle()
        assert dev.qp_log[-1].attr.selective_repeat == agreed


@cocotb.test()
@cocotb.parametrize(of_caller=[False, True])
async def packets_have_a_traffic_class(dut, of_caller: bool) -> None:
    """That of the device, or of the caller's REQ where the device follows it; a connection keeps it, in all of its messages."""
    dev = await device(dut)
    asked, default, called = callers(3)
    asked.traffic_class = 0xB7  # the lower two bits are ECN's
    dev.mark(26, of_caller)
    for caller, dscp in ((asked, 0xB7 >> 2 if of_caller else 26), (default, 0 if of_caller else 26)):
        rep = await dev.open(caller)
        assert rep.tos == dscp << 2 and dev.qp_log[-1].attr.traffic_class == dscp << 2
        dev.mark(11, of_caller)
        dev.receive(caller.req())
        dev.receive(caller.dreq(rep))
        assert (await dev.sent()).tos == dscp << 2
        await dev.settle()
        dev.headers.received.clear()
        dev.datagrams.packets.clear()
        dev.mark(26, of_caller)
    req, rtu = await establish(dev, called)
    assert req.traffic_class == req.tos == rtu.tos == 26 << 2 == dev.qp_log[-1].attr.traffic_class


@cocotb.test()
@cocotb.parametrize(mine=[0, 1])
async def contexts_are_agreed(dut, mine: int) -> None:
    """As many as both have, rounded down to 1, 2 or 4, if the client of the port has them; long set-ups; a REP that is repeated."""
    dev = await device(dut)
    dev.listen(PORT, PORT + 1)
    asks = [(0, 0), (1, 1), (2, 2), (3, 2), (4, 4), (5, 4), (255, 4)]
    cases = [
        (cm.extensions(bits, contexts=asked), bits & 1, agreed if bits & 2 else 0, PORT)
        for bits in (0, 1, 2, 3, 4, 6, 7)
        for asked, agreed in asks
    ]
    cases += [(cm.extensions(3, contexts=4, version=2), 0, 0, PORT), (cm.extensions(3, contexts=4), 1, 0, PORT + 1)]
    for at in range(0, len(cases), QPS):
        for peer, (record, repeat, contexts, port) in zip(callers(QPS), cases[at : at + QPS], strict=False):
            dev.dut.extensions.value = mine
            peer.extensions, peer.port = record, port
            rep = await dev.open(peer, rtu=False)
            long = mine and contexts and record[5] & 4  # long set-ups, which need contexts
            bits = mine & repeat | (mine and contexts and 2) | long
            assert rep.extensions == (cm.extensions(bits, contexts=mine * contexts) if bits else bytes(8))
            assert dev.events[-1].long_set_up == bool(long)
            assert dev.events[-1].contexts == mine * contexts and dev.qp_log[-1].attr.selective_repeat == mine & repeat
            dev.dut.extensions.value = 0
            dev.receive(peer.req())
            assert (await dev.sent()).mad == rep.mad
            dev.receive(peer.dreq(rep))
            await dev.sent()
            await dev.settle()


@cocotb.test()
async def both_call_each_other(dut) -> None:
    """Two connections, each with its own QPs."""
    dev = await device(dut, 0.3)
    peer = callers(1)[0]
    other = Caller(**{**vars(peer), "local_id": 0x2222, "tid": 0x2222, "qpn": 0x300})
    dev.knows(peer)
    dev.connect(peer.ip, 1)
    dev.receive(other.req())
    messages = [await dev.sent(), await dev.sent()]
    req = next(m for m in messages if m.attr == REQ)
    rep = next(m for m in messages if m.attr == REP)
    dev.receive(peer.rep(req))
    dev.receive(other.rtu(rep))
    assert (await dev.sent()).attr == RTU
    await dev.settle()
    assert dev.live.keys() == {req.qpn, rep.qpn} and req.qpn != rep.qpn
    dev.receive(peer.dreq(req))
    assert (await dev.sent()).attr == DREP
    await dev.settle()
    assert dev.live.keys() == {rep.qpn}
    await dev.close(other, rep)


@cocotb.test()
async def active_dreqs(dut) -> None:
    """Either side ends a connection that the device opened; both at once is one end."""
    dev = await device(dut)
    for tag, peer in enumerate(callers(3)):
        req, _ = await establish(dev, peer, tag=tag)
        if tag == 0:
            dev.receive(peer.dreq(req))
            assert (await dev.sent()).attr == DREP
        else:
            dev.fail(req.qpn) if tag == 1 else dev.shut(req.qpn)
            dreq = await dev.sent()
            assert dreq.attr == DREQ
            if tag == 1:
                dev.receive(peer.drep(dreq))
            else:
                dev.receive(peer.dreq(req))
                assert (await dev.sent()).attr == DREP
        await dev.settle()
        assert dev.events[-1].kind == CLOSED and not dev.live
    await dev.pass_time(22)
    assert dev.silent()


@cocotb.test()
async def a_call_is_given_up(dut) -> None:
    """`close` aborts a REQ that is not answered yet: CONN_REFUSED for the owner, REJ for the peer; a late REP is refused."""
    dev = await device(dut, 0.2)
    peer = callers(1)[0]
    for tag in range(QPS + 2):
        req = await call(dev, peer, tag=tag, private=b"hello")
        dev.shut(req.qpn)
        rej = await dev.sent()
        assert (rej.attr, rej.reason, rej.local_id, rej.remote_id) == (REJ, 4, req.local_id, 0)
        await dev.settle()
        event = dev.events[-1]
        assert (event.kind, event.tag, event.reason, event.private_data) == (REFUSED, tag, 28, 0)
    dev.receive(peer.rep(req))
    late = await dev.sent()
    assert (late.attr, late.reason, late.about) == (REJ, 6, 1)
    await dev.pass_time(22)
    assert dev.silent() and not dev.live and not dev.qp_log
    await establish(dev, peer, tag=QPS + 2)


# ---- owners ----


@cocotb.test()
async def private_data_passes(dut) -> None:
    """Of the REQ to the owner, of its answer into REP or REJ; a repeated REP has it too."""
    dev = await device(dut, 0.3)
    for i, peer in enumerate(callers(6)):
        peer.private = random.randbytes(48)
        dev.owner_private = random.randbytes(48)
        dev.owner_accepts = lambda qpn, i=i: i % 3 != 2
        dev.knows(peer)
        dev.receive(peer.req())
        answer = await dev.sent()
        assert dev.events[-1].private_data == int.from_bytes(peer.private, "big") and dev.events[-1].ip == ip_number(peer.ip)
        assert answer.attr == (REJ if i % 3 == 2 else REP) and answer.private == dev.owner_private
        if answer.attr == REP:
            dev.receive(peer.req())
            assert (await dev.sent()).mad == answer.mad
            await dev.pass_time(20)
            assert (await dev.sent()).mad == answer.mad
            dev.receive(peer.rtu(answer))
    await dev.settle()
    assert len(dev.live) == 4
    req = await call(dev, callers(7)[6], private=b"q" * 48)
    assert req.private == b"q" * 48
    dev.receive(callers(7)[6].rep(req, private=b"p" * 48))
    assert (await dev.sent()).attr == RTU
    await dev.settle()
    assert dev.events[-1].private_data == int.from_bytes(b"p" * 48, "big")


@cocotb.test()
async def a_port_each(dut) -> None:
    """Each client listens on its own port; on port 0 none does."""
    dev = await device(dut)
    dev.listen(PORT, PORT + 9)
    a, b, c = callers(3)
    b.port = PORT + 9
    for client, caller in enumerate((a, b)):
        await dev.open(caller)
        attr = dev.qp_log[-1].attr
        assert (dev.events[-1].client, attr.client, attr.pd) == (client, client, client)
        access = attr.access
        assert all((access.remote_write, access.remote_read, access.remote_atomic, access.remote_invalidate))
    dev.listen(0, PORT + 9)
    for port in (0, PORT):
        c.port, c.local_id = port, c.local_id + 1
        dev.knows(c)
        dev.receive(c.req())
        assert (await dev.sent()).reason == 8


@cocotb.test()
async def answers_in_any_order(dut) -> None:
    """An owner that is slow with one connection holds up no other; answers to nothing are nothing."""
    dev = await device(dut)
    all_ = callers(QPS)
    dev.knows(*all_)
    dev.owner_accepts = lambda qpn: None
    for caller in all_:
        dev.receive(caller.req())
    await dev.settle()
    assert len(dev.events) == QPS
    order = [event.qpn for event in dev.events]
    random.shuffle(order)
    reps = {}
    for i, qpn in enumerate(order):
        dev.answer(qpn, i % 4 != 0, bytes([i] * 48))
        message = await dev.sent()
        assert message.attr == (REP if i % 4 else REJ) and message.private == bytes([i] * 48)
        if i % 4:
            reps[qpn] = (message, next(c for c in all_ if c.ip == message.dst_ip))
        else:
            dev.owned.discard(qpn)
    for qpn in (*order, 0, 1, QPN_FIRST + QPS, 0xFFFFFF):
        dev.answer(qpn)
    await dev.settle()
    assert dev.silent() and len(dev.live) == len(reps)
    # Closed in any order, too.
    dev.owner_frees = False
    for rep, caller in reps.values():
        dev.receive(caller.dreq(rep))
        assert (await dev.sent()).attr == DREP
    await dev.settle()
    assert sum(event.kind == CLOSED for event in dev.events) == len(reps)
    for qpn in random.sample(sorted(reps), len(reps)):
        dev.owned.discard(qpn)
        dev.answer(qpn)
    await dev.settle()
    dev.owner_accepts, dev.owner_frees = (lambda qpn: True), True
    for caller in all_:
        await dev.open(caller)


@cocotb.test()
async def events_wait_for_their_owner(dut) -> None:
    """`conn` is stopped: connections come, are established and end meanwhile; then all events come, in order."""
    dev = await device(dut)
    peers = callers(QPS)
    dev.conns.stall = 1.0
    reqs = []
    for tag, peer in enumerate(peers):
        req = await call(dev, peer, tag=tag)
        reqs.append(req)
        dev.receive(peer.rep(req, private=bytes([tag] * 48)))
        assert (await dev.sent()).attr == RTU
        dev.receive(peer.dreq(req))
        assert (await dev.sent()).attr == DREP
    assert not dev.events
    dev.conns.stall = 0.0
    await dev.settle()
    for tag, req in enumerate(reqs):
        mine = [event for event in dev.events if event.qpn == req.qpn]
        assert [event.kind for event in mine] == [ESTABLISHED, CLOSED]
        assert mine[0].tag == tag and mine[0].private_data == int.from_bytes(bytes([tag] * 48), "big")


@cocotb.test()
async def used_is_ready_to_use(dut) -> None:
    """The RTU is lost, but the peer's first request comes: no REP is repeated. Other news of a QP changes nothing."""
    dev = await device(dut)
    caller = callers(1)[0]
    rep = await dev.open(caller, rtu=False)
    dev.fail(rep.qpn, DRAINED)
    dev.fail(rep.qpn, COMM_EST)
    await dev.settle()
    for _ in range(3):
        await dev.pass_time(20)
        assert dev.silent()
    dev.fail(rep.qpn, COMM_EST)
    await dev.close(caller, rep)
    for qpn in range(QPN_FIRST, QPN_FIRST + QPS):
        dev.fail(qpn, COMM_EST)
    await dev.settle()
    assert dev.silent() and not dev.live


@cocotb.test()
async def caller_gives_up(dut) -> None:
    """A REJ (timeout) of a caller that has had no answer: it names its own id alone."""
    dev = await device(dut)
    a, b = callers(2)
    dev.knows(a, b)
    dev.owner_accepts = lambda qpn: None
    dev.receive(a.req())
    await dev.settle()
    give_up = cm.rej(a.local_id, 0, cm.ABOUT_OTHER, 4, a.guid)
    dev.receive(b.frame(REJ, give_up))  # another connection's
    await dev.settle()
    assert len(dev.live) == 1 and dev.counts["drop_no_connection"] == 1
    dev.receive(a.frame(REJ, give_up))
    await dev.settle()
    assert dev.silent() and not dev.live
    dev.answer(dev.qp_log[0].qpn)
    await dev.settle()
    assert [event.kind for event in dev.events] == [OPENED, CLOSED] and not dev.owned


# ---- nonsense and pressure ----


@cocotb.test()
async def malformed(dut) -> None:
    """Dropped and counted; nothing else happens."""
    dev = await device(dut, 0.3)
    caller = callers(1)[0]
    dev.knows(caller)
    good = caller.req()

    def with_bytes(offset: int, value: bytes) -> bytes:
        return good[: HEADERS + offset] + value + good[HEADERS + offset + len(value) :]

    bad = [
        frame(good[HEADERS:], caller.ip, caller.mac, opcode=0x65),
        frame(good[HEADERS:], caller.ip, caller.mac, opcode=0x04),
        frame(good[HEADERS:], caller.ip, caller.mac, qkey=0x80010001),
        frame(good[HEADERS:], caller.ip, caller.mac, srcqp=2),
        frame(good[HEADERS:], caller.ip, caller.mac, pkey=0x8001),
        frame(good[HEADERS:], caller.ip, "ff:ff:ff:ff:ff:ff"),  # no single host: an answer would go to many
        frame(good[HEADERS:], caller.ip, "01:00:5e:00:00:01"),
        *(frame(good[HEADERS:], ip, caller.mac) for ip in ("0.0.0.0", "224.0.0.1", "255.255.255.255")),
        with_bytes(0, b"\x02"),      # base version
        with_bytes(1, b"\x03"),      # class
        with_bytes(2, b"\x01"),      # class version
        with_bytes(3, b"\x81"),      # method
        with_bytes(16, b"\x00\x01"),  # attributes
        with_bytes(16, b"\x00\x17"),
        with_bytes(16, b"\x01\x10"),
    ]  # fmt: skip
    for item in bad:
        dev.receive(item)
    lengths = [0, 1, 24, 255, 257, 320, 1024, 4096]
    for length in lengths:
        dev.receive(good, random.randbytes(length))
    dev.receive(good, good[HEADERS:], bad=True)
    await dev.settle(20000)
    assert dev.counts == Counter(drop_malformed=len(bad) + len(lengths) + 1)
    assert dev.silent() and not dev.qp_log
    rep = await dev.open(caller)
    await dev.close(caller, rep)


@cocotb.test()
async def messages_go_where_they_came_from(dut) -> None:
    """Without address resolution: a message about a connection goes to the source of its REQ or REP, another one to the source of
    the message that it answers."""
    dev = await device(dut, 0.2)
    here, there = "02:00:00:00:aa:01", "02:00:00:00:aa:02"
    a = callers(1, cm_timeout=10)[0]
    elsewhere = Caller(**{**vars(a), "mac": there})
    a.mac = here
    dev.receive(a.req())
    rep = await dev.sent()
    assert (rep.attr, rep.dst_mac, dev.qp_log[-1].attr.dst_mac) == (REP, here, mac_number(here))
    dev.receive(elsewhere.req())  # another host sends the caller's REQ
    assert await dev.sent() == rep
    await dev.pass_time(10)
    assert await dev.sent() == rep
    dev.receive(a.rtu(rep))
    dev.receive(elsewhere.dreq(Message("", "", cm.mad(REP, 0, cm.rep(rep.local_id ^ 0x100, a.local_id, rep.qpn, 0)))))
    drep = await dev.sent()
    assert (drep.attr, drep.dst_mac) == (DREP, there)
    dev.receive(elsewhere.frame(REP, cm.rep(1, 2, 3, 4)))
    rej = await dev.sent()
    assert (rej.attr, rej.reason, rej.dst_mac) == (REJ, 6, there)
    wrong = Caller(**{**vars(elsewhere), "port": PORT + 1, "local_id": 0x999})
    dev.receive(wrong.req())
    rej = await dev.sent()
    assert (rej.attr, rej.reason, rej.dst_mac) == (REJ, 8, there)
    await dev.settle()
    assert dev.live
    dev.shut(rep.qpn)
    for _ in range(1 + MAX_RETRIES):
        dreq = await dev.sent()
        assert (dreq.attr, dreq.dst_mac) == (DREQ, here)
        await dev.pass_time(10)
    assert not dev.asked and not dev.live
    # A peer that is called is looked up; from its REP on it is where that came from.
    peer = callers(2)[1]
    req = await call(dev, peer)
    assert req.dst_mac == peer.mac
    peer.mac = there
    dev.receive(peer.rep(req))
    rtu = await dev.sent()
    assert (rtu.attr, rtu.dst_mac, dev.qp_log[-1].attr.dst_mac) == (RTU, there, mac_number(there))


@cocotb.test()
async def calls_are_resolved_side_by_side(dut) -> None:
    """Unresolvable addresses delay no other, and each REQ is sent when its address is known, at the next look-up at the latest."""
    dev = await device(dut)
    *dead, late, live = callers(QPS)
    begin = dev.headers.cycle
    for tag, peer in enumerate((*dead, late)):
        dev.connect(peer.ip, tag, private=bytes([tag + 1]))
    await call(dev, live, tag=99)
    assert dev.headers.cycle - begin < QPS * (QPS + 60)
    await dev.settle()
    assert dev.silent() and not dev.events and len(dev.wants) == QPS
    for _ in range(6):
        await dev.pass_time(10)
    assert dev.silent()
    dev.knows(late)
    passed = 6 << 10
    while dev.silent():
        await dev.pass_time(8)
        passed += 1 << 8
    assert passed < 2 * (6 << 10) + (2 << 8), "twice the time that it took"
    req = await dev.sent()
    assert (req.attr, req.dst_ip, req.dst_mac) == (REQ, late.ip, late.mac)
    assert req.private[0] == len(dead) + 1
    await dev.settle()
    dev.shut(next(qpn for qpn in range(QPN_FIRST, QPN_FIRST + QPS) if qpn != req.qpn))  # the first unreachable one is closed
    await dev.settle()
    assert dev.silent(), "no REJ without a REQ"
    (event,) = dev.events
    assert (event.kind, event.reason, event.private_data) == (REFUSED, 28, 0)
    for _ in range(14):  # looks
        await dev.pass_time(15)
    assert dev.silent() and sum(event.reason == UNREACHABLE for event in dev.events) == len(dead) - 1
    assert len(dev.wants) == 2 and dev.counts["drop_unresolved"] == len(dead) - 1


# ---- unreachable and hostile peers ----


@cocotb.test()
async def dead_peers_hold_up_nobody(dut) -> None:
    """Hundreds of peers at as many addresses connect and vanish, all but one place of the device at once. Another peer connects
    meanwhile without delay, and all is free again when the last DREQ is not answered. None of their addresses can be resolved."""
    dev = await device(dut)
    rounds = 300 // (QPS - 1)
    peers = callers(rounds * QPS, cm_timeout=8)
    for _ in range(rounds):
        *dead, fresh = (peers.pop() for _ in range(QPS))
        reps = []
        for caller in dead:
            dev.receive(caller.req())
            reps.append(await dev.sent())
            dev.receive(caller.rtu(reps[-1]))
        await dev.settle()
        for rep in reps:
            dev.fail(rep.qpn)
        dev.receive(fresh.req())
        begin = dev.headers.cycle
        for _ in range(QPS + 1):
            rep = await dev.sent()
            if rep.attr == REP:
                break
        assert rep.dst_ip == fresh.ip and dev.headers.cycle - begin < QPS * (2048 // len(dut.rx_payload_tdata) + 50) + 200
        dev.receive(fresh.rtu(rep))
        await dev.settle()
        assert len(dev.live) == 1
        for _ in range(MAX_RETRIES + 1):
            await dev.pass_time(8)
        dev.headers.received.clear()
        dev.datagrams.packets.clear()
        await dev.close(fresh, rep)
        assert not dev.live and not dev.owned and not int(dut.mine.value)
    assert not dev.asked


@cocotb.test()
async def connections_per_peer(dut) -> None:
    """At most the limit with one address, those that end included until their owner has released them; others are served;
    connections that the device opens do not count."""
    dev = await device(dut, 0.2)
    dev.limit(per_peer=2)
    peer, other = callers(2)
    mine = [Caller(**{**vars(peer), "local_id": 0x900 + i, "qpn": 0x900 + i}) for i in range(5)]
    req = await call(dev, peer)
    dev.receive(peer.rep(req))
    assert (await dev.sent()).attr == RTU
    reps = [await dev.open(caller) for caller in mine[:2]]
    for caller in mine[2:4]:
        dev.receive(caller.req())
        rej = await dev.sent()
        assert (rej.attr, rej.reason, rej.about, rej.remote_id) == (REJ, 3, 0, caller.local_id)
    await dev.open(other)
    await dev.settle()
    assert dev.counts["refused_per_peer"] == 2 and len(dev.live) == 4
    dev.owner_frees = False
    dev.receive(mine[0].dreq(reps[0]))
    assert (await dev.sent()).attr == DREP
    await dev.settle()
    dev.receive(mine[2].req())
    assert (await dev.sent()).reason == 3, "its owner has not released it"
    dev.owned.discard(reps[0].qpn)
    dev.answer(reps[0].qpn)
    await dev.settle()
    await dev.open(mine[2])
    dev.limit(per_peer=0)
    await dev.open(mine[3])
    forgetful = Caller(**{**vars(mine[1]), "local_id": 0xABCD})  # its old connection is closed first, limit or not
    dev.limit(per_peer=2)
    dev.receive(forgetful.req())
    assert (await dev.sent()).reason == 10
    assert dev.counts["refused_half_open"] == dev.counts["refused_half_open_per_peer"] == 0


TOKEN = bytes(range(0xA0, 0xB0))
WHY_REVOKED, WHY_TIME_OVER, NO_TOKEN, UNKNOWN_TOKEN, ENTRY_FULL = range(1, 6)


def note(why: int) -> bytes:
    """What admission says in the private data of a REJ or DREQ."""
    return b"NACL" + bytes([1, why, 0, 0])


@cocotb.test()
async def admission_decides(dut) -> None:
    """A caller that is not admitted gets the reason, changes nothing, and is not told what was wrong with its token; one that is
    has its token taken out of its private data."""
    dev = await device(dut, 0.2)
    peer, other = callers(2)
    asked = []

    def judge(ask: object) -> tuple[int, int | None]:
        asked.append(ask)
        return verdicts.pop(0)

    dev.judge = judge
    secret = Caller(**{**vars(peer), "private": b"p" * 32 + TOKEN, "extensions": cm.extensions(0x20)})
    reasons = {WHY_REVOKED: 28, WHY_TIME_OVER: 28, NO_TOKEN: 28, UNKNOWN_TOKEN: 28, ENTRY_FULL: 3}
    verdicts = [(why, None) for why in reasons]
    for why, reason in reasons.items():
        dev.receive(secret.req())
        rej = await dev.sent()
        assert (rej.attr, rej.reason, rej.about, rej.remote_id) == (REJ, reason, 0, secret.local_id)
        assert rej.private == note(why).ljust(48, b"\0") and TOKEN[:4] not in rej.mad
    await dev.settle()
    assert not dev.events and not dev.live and not dev.by_entry
    assert [dev.counts[f"refused_{name}"] for name in ("no_token", "token", "per_entry")] == [1, 3, 1]
    assert all((ask.has_token, ask.token, ask.ip) == (1, int.from_bytes(TOKEN, "big"), ip_number(peer.ip)) for ask in asked)

    verdicts = [(0, 7), (0, 9), (UNKNOWN_TOKEN, None), (UNKNOWN_TOKEN, None)]
    await dev.open(secret)
    # What looks like a token but is not said to be one is the application's.
    plain = Caller(**{**vars(other), "private": b"q" * 32 + TOKEN})
    rep = await dev.open(plain)
    assert not asked[-1].has_token
    private = [event.private_data.to_bytes(48, "big") for event in dev.events]
    assert private == [b"p" * 32 + bytes(16), b"q" * 32 + TOKEN]
    assert [(event.by.valid, event.by.entry) for event in dev.events] == [(1, 7), (1, 9)]
    assert dev.by_entry == {7: 1, 9: 1}
    # A REQ for the same QP makes a connection stale only if its sender is admitted.
    forged = Caller(**{**vars(other), "local_id": 0xBAD, "private": b""})
    dev.receive(forged.req())
    assert (await dev.sent()).reason == 28
    await dev.settle()
    assert len(dev.live) == 2
    # The same REQ again is nobody new.
    dev.receive(plain.req())
    assert (await dev.sent()).attr == REP
    await dev.close(plain, rep)
    assert dev.by_entry == {7: 1, 9: 0}


@cocotb.test()
@cocotb.parametrize(time_over=[False, True])
async def an_entry_ends(dut, time_over: bool) -> None:
    """All its connections are closed, in whatever state, with the reason, also when that is repeated; no other is touched."""
    dev = await device(dut, 0.1)
    all_ = callers(5, cm_timeout=8, response_timeout=12)
    established, accepted, waiting, other, late = all_
    entries = {ip_number(caller.ip): 5 for caller in all_} | {ip_number(other.ip): 6}
    dev.judge = lambda ask: (0, entries[ask.ip])
    reps = {id(caller): await dev.open(caller, rtu=caller is not accepted) for caller in (established, accepted, other)}
    dev.owner_accepts = lambda qpn: None
    dev.receive(waiting.req())
    await dev.settle()
    dev.owner_accepts = lambda qpn: True
    assert dev.by_entry == {5: 3, 6: 1} and dev.silent()
    why = WHY_TIME_OVER if time_over else WHY_REVOKED
    await dev.end(**{"time_over" if time_over else "revoked": 1 << 5})
    seen = [await dev.sent() for _ in range(3)]
    ended = {message.remote_id: message for message in seen}
    for caller in (established, accepted):
        dreq = ended[caller.local_id]
        assert (dreq.attr, dreq.qpn) == (DREQ, caller.qpn) and dreq.mad[36:44] == note(why) and not any(dreq.mad[44:])
    rej = ended[waiting.local_id]
    assert (rej.attr, rej.reason, rej.about) == (REJ, 28, 0) and rej.private[:8] == note(why)
    await dev.settle()
    assert dev.silent() and len(dev.live) == 1 and dev.counts["admission_ended"] == 3
    dev.receive(established.drep(ended[established.local_id]))
    await dev.pass_time(9)
    repeated = await dev.sent()
    assert repeated.mad == ended[accepted.local_id].mad
    dev.receive(accepted.drep(repeated))
    await dev.settle()
    # Another sweep finds nothing more; the place of a caller that is still there stays counted until its owner has answered.
    await dev.end(**{"time_over" if time_over else "revoked": 1 << 5})
    await dev.settle()
    assert dev.silent()
    dev.answer(max(qpn for kind, qpn in dev.owner_log if kind == OPENED and qpn in dev.owned and qpn != reps[id(other)].qpn), False)
    await dev.settle()
    assert dev.by_entry == {5: 0, 6: 1}
    await dev.close(other, reps[id(other)])
    # A REQ that was judged before the end is closed by the sweep that follows it.
    dev.owned.clear()
    await dev.end()
    dev.receive(late.req())
    assert (await dev.sent()).attr == REP
    await dev.end(revoked=1 << 5)
    assert (await dev.sent()).mad[36:44] == note(WHY_REVOKED)


@cocotb.test()
async def an_end_during_a_flood(dut) -> None:
    """REQs that are refused do not keep connections open whose entry has ended."""
    dev = await device(dut)
    victim, *flood = callers(40)
    dev.judge = lambda ask: (0, 3) if ask.ip == ip_number(victim.ip) else (UNKNOWN_TOKEN, None)
    await dev.open(victim)
    for caller in flood:
        dev.receive(caller.req())
    await dev.end(revoked=1 << 3)
    before = 0
    while (message := await dev.sent(6000)).attr != DREQ:
        assert message.reason == 28
        before += 1
    assert before < len(flood) - 4 and message.mad[36:44] == note(WHY_REVOKED)


@cocotb.test()
@cocotb.parametrize(per_peer=[False, True], silent_owner=[False, True])
async def half_open_connections(dut, per_peer: bool, silent_owner: bool) -> None:
    """No more than the limit says, of all or of one address; an RTU or a request makes room, as does the end of the waiting."""
    dev = await device(dut, 0.2)
    dev.limit(**{"half_open_per_peer" if per_peer else "half_open": 3})
    all_ = callers(QPS, cm_timeout=8, response_timeout=8)
    if per_peer:
        for caller in all_:
            caller.ip, caller.mac = all_[0].ip, all_[0].mac
    dev.owner_accepts = lambda qpn: None if silent_owner else True
    reps = []
    for caller in all_[:3]:
        dev.receive(caller.req())
        if not silent_owner:
            reps.append(await dev.sent())
    for caller in (all_[3], all_[3]):
        dev.receive(caller.req())
        rej = await dev.sent()
        assert (rej.attr, rej.reason, rej.about) == (REJ, 3, 0)
    assert dev.counts["refused_half_open_per_peer" if per_peer else "refused_half_open"] == 2
    if per_peer:
        stranger = Caller(ip="10.99.7.7", local_id=0x77, qpn=0x77)
        dev.receive(stranger.req())
        if not silent_owner:
            reps.append(await dev.sent())
            dev.receive(stranger.rtu(reps[-1]))
    dev.receive(all_[0].req())  # the same REQ again is none more
    if silent_owner:
        await dev.settle()
        for event in dev.events:
            dev.answer(event.qpn)
            reps.append(await dev.sent())
        dev.owner_accepts = lambda qpn: True
    else:
        assert (await dev.sent()).mad == reps[0].mad
    dev.receive(all_[0].rtu(reps[0]))
    await dev.open(all_[3], rtu=False)
    dev.receive(all_[4].req())
    assert (await dev.sent()).reason == 3
    dev.fail(reps[1].qpn, COMM_EST)
    await dev.settle()
    await dev.open(all_[4], rtu=False)
    for _ in range(MAX_RETRIES + 1):
        await dev.pass_time(8)
    dev.headers.received.clear()
    dev.datagrams.packets.clear()
    for caller in all_[5:8]:
        await dev.open(caller, rtu=False)


@cocotb.test()
@cocotb.parametrize(kind=["REQ", "DREQ", "REP", "mixed"])
async def strangers_flood(dut, kind: str) -> None:
    """Messages from everywhere, as fast as they come: established connections are served as if nothing were, half-open ones stay
    within their bound, and when it is over so is all that it caused."""
    dev = await device(dut)
    dev.limit(half_open=QPS // 2, half_open_per_peer=2)
    mine = callers(QPS // 2)
    reps = [await dev.open(caller) for caller in mine]
    strangers = itertools.cycle(callers(2000)[QPS:])
    flooding, worst = True, 0

    async def flood() -> None:
        while flooding:
            stranger = next(strangers)
            stranger.cm_timeout = 8
            what = random.choice(["REQ", "DREQ", "REP"]) if kind == "mixed" else kind
            unasked = stranger.frame(REP, cm.rep(3, reps[0].local_id, 5, 6))
            dev.receive({"REQ": stranger.req(), "DREQ": stranger.dreq(reps[0]), "REP": unasked}[what])
            while len(dev.frames._queue) > 1:
                await wait_cycles(dut, 1)

    async def drain() -> None:
        nonlocal worst
        while True:
            message = await dev.sent(10**9)
            if message.attr == DREP and message.dst_ip in waiting:
                worst = max(worst, dev.headers.cycle - waiting.pop(message.dst_ip))

    waiting: dict[str, int] = {}
    cocotb.start_soon(flood())
    cocotb.start_soon(drain())
    beats = 2048 // len(dut.rx_payload_tdata)
    for _ in range(100):
        await wait_cycles(dut, 10 * beats)
        if dev.counts["drop_overflow"] > 10:
            break
    assert dev.counts["drop_overflow"] > 10
    for caller, rep in zip(mine, reps, strict=True):
        waiting[caller.ip] = dev.headers.cycle
        dev.receive(caller.dreq(rep))
        await wait_cycles(dut, 4 * (beats + QPS + 120))
    assert not waiting and worst < 3 * beats + 3 * (beats + QPS + 100), f"{worst} cycles"
    assert len(dev.live) <= QPS // 2
    assert (dev.counts["refused_half_open"] > 10) == (kind in ("REQ", "mixed"))
    flooding = False
    await dev.settle(20_000)
    for _ in range(MAX_RETRIES + 1):
        await dev.pass_time(8)
    assert not dev.live and not int(dut.mine.value) and not dev.asked


# ---- time ----


@cocotb.test()
@cocotb.parametrize(before=[1, TICK << 9, TICK << 14], rtu=[False, True])
async def time_wraps(dut, before: int, rtu: bool) -> None:
    """So many cycles after the REP: timers end when they should, not before, and nothing else happens."""
    dev = await device(dut)
    caller = callers(1, cm_timeout=14)[0]
    dev.now = 2**48 - before - dev.headers.cycle
    await wait_cycles(dut, 3)
    rep = await dev.open(caller, rtu)
    for _ in range(MAX_RETRIES):
        for _ in range(3):
            await dev.pass_time(12)
            assert dev.silent()
        await dev.pass_time(12)
        if not rtu:
            assert (await dev.sent()).mad == rep.mad
    await dev.pass_time(14)
    assert dev.silent() == rtu and len(dev.live) == int(rtu)


@cocotb.test()
@cocotb.parametrize(by=[2**47 - 10**6, 2**47, 2**47 + 10**6, 2**48 - (1 << 40)])
async def time_jumps(dut, by: int) -> None:
    """Over half of its range and more: what was to happen meanwhile happens now, and later timers run as ever."""
    dev = await device(dut)
    a, b = callers(2, cm_timeout=14)
    first = await dev.open(a, rtu=False)
    await dev.settle()
    dev.now += by
    assert (await dev.sent()).mad == first.mad
    await dev.settle()
    dev.receive(a.rtu(first))
    await dev.settle()
    dev.now += by
    await wait_cycles(dut, 100)
    assert dev.silent() and dev.live
    second = await dev.open(b, rtu=False)
    await dev.pass_time(13)
    assert dev.silent()
    await dev.pass_time(13)
    assert (await dev.sent()).mad == second.mad


@cocotb.test()
async def storm(dut) -> None:
    """More messages than can wait, while the queue pairs hang: the frames go on flowing, what is too much is counted."""
    dev = Device(dut)
    done = StreamSource.send
    held: list[int] = []
    dev.done.send = held.append
    await dev.start()
    caller = callers(1)[0]
    dev.knows(caller)
    for _ in range(60):
        dev.receive(caller.req())
    await dev.payloads.drained(60 * (2048 // len(dev.dut.rx_payload_tdata) + 10))
    await wait_cycles(dut, 10)
    assert dev.counts["drop_overflow"] in range(25, 29)  # 32 wait, one is worked on, one on its way
    del dev.done.send
    done(dev.done, held[0])
    await dev.settle(20000)
    taken = 60 - dev.counts["drop_overflow"]
    assert dev.counts["req_received"] == taken and dev.counts["duplicate_req"] == taken - 1
    assert len({datagram for datagram, _ in dev.datagrams.packets}) == 1
    assert taken - 2 <= len(dev.datagrams.packets) <= taken  # those before the owner's answer get none


@cocotb.test()
async def answers_within_bounds(dut) -> None:
    """From the last beat of a REQ to the first of its REP: what the module's comment says, plus the world's own time."""
    dev = await device(dut)
    caller = callers(1)[0]
    dev.knows(caller)
    beats = 2048 // len(dev.dut.rx_payload_tdata)
    dev.receive(caller.req())
    begin = dev.datagrams.cycle
    await dev.sent()
    assert dev.datagrams.cycle - begin <= 2 * beats + QPS + 80


@cocotb.test()
@cocotb.parametrize(seed=[1, 2])
async def fuzz(dut, seed: int) -> None:
    """Callers that do anything at any time, with bytes changed at random, losses, failures and jumps of time. Nothing ever hangs,
    no QP is used twice (Device checks), and when all is quiet everything is free again."""
    rng = random.Random(seed)
    dev = await device(dut, 0.1)
    them = callers(12, cm_timeout=8)
    dev.knows(*them[:10])
    last: dict[int, Message] = {}  # the newest REQ or REP to each

    def answer(message: Message) -> None:
        caller = next((c for c in them if c.ip == message.dst_ip), None)
        assert caller is not None
        if message.attr in (REQ, REP):
            last[them.index(caller)] = message
        if message.attr == REQ and rng.random() < 0.6:
            dev.receive(caller.rep(message))
        elif message.attr == REP and rng.random() < 0.6:
            dev.receive(caller.rtu(message))
        elif message.attr == DREQ and rng.random() < 0.5:
            dev.receive(caller.drep(message))

    async def listen() -> None:
        while True:
            answer(await dev.sent(10**9))

    listener = cocotb.start_soon(listen())
    dev.owner_accepts = lambda qpn: rng.random() < 0.9
    for tag in range(400):
        i = rng.randrange(len(them))
        caller, to = them[i], last.get(i)
        choice = rng.random()
        if choice < 0.4 or to is None:
            if rng.random() < 0.3:
                caller.local_id, caller.tid = rng.getrandbits(32), rng.getrandbits(64)
            data = caller.req()
        else:
            mra = caller.mra(to, rng.randrange(12))
            data = rng.choice([caller.dreq(to), caller.rej(to), caller.rtu(to), mra, caller.drep(to), caller.rep(to)])
        if rng.random() < 0.25:
            changed = bytearray(data)
            for _ in range(rng.randrange(1, 4)):
                changed[rng.randrange(42, len(changed))] = rng.getrandbits(8)
            data = bytes(changed)
        dev.receive(data)
        if rng.random() < 0.3:
            dev.connect(caller.ip, tag)
        if rng.random() < 0.1:
            dev.fail(rng.randrange(QPN_FIRST, QPN_FIRST + QPS), rng.choice([FATAL, COMM_EST, DRAINED]))
        if rng.random() < 0.1:
            dev.shut(rng.randrange(QPN_FIRST, QPN_FIRST + QPS))
        if rng.random() < 0.1:
            dev.now += TICK << rng.randrange(6, 10)
        await wait_cycles(dut, rng.randrange(60))
    await dev.settle(60000)
    for qpn in range(QPN_FIRST, QPN_FIRST + QPS):
        dev.shut(qpn)
    await dev.settle(20000)
    for _ in range(REQ_RETRIES + 3):  # every REQ of the device's has its end
        await dev.pass_time(22)
        await dev.settle(20000)
    assert not dev.wants
    for qpn in range(QPN_FIRST, QPN_FIRST + QPS):  # and what these still opened
        dev.shut(qpn)
    for _ in range(MAX_RETRIES + 2):
        await dev.settle(20000)
        await dev.pass_time(22)
    assert not dev.live and not dev.owned
    assert dev.counts["connection_opened"] == dev.counts["connection_closed"] > 10
    listener.cancel()
    dev.owner_accepts = lambda qpn: True
    await dev.settle()
    for caller in callers(QPS):
        await dev.open(caller)


@cocotb.test()
@cocotb.parametrize(seed=[1, 2, 3])
async def model(dut, seed: int) -> None:
    """Peers in both roles that keep to the standard, over a network that loses, repeats and reorders, with owners and peers that
    open and close at any time. When the network is good again, both sides agree on every connection that lives and on all that was
    negotiated; nothing waits; and when all is closed everything is free."""
    rng = random.Random(seed)
    dev = await device(dut, 0.1)
    dev.dut.extensions.value = 1
    dev.listen(PORT, PORT + 1)
    dev.owner_private = rng.randbytes(48)
    peers = [PeerCm(f"10.99.1.{i}", f"02:00:00:00:01:{i:02x}", 0x100000 * (i + 1), rng) for i in range(3)]
    dev.knows(*(peer.caller() for peer in peers))
    dev.owner_accepts = lambda qpn: rng.random() < 0.9
    dev.owner_cycles = lambda: rng.choice([0, 5, 300, 3000])
    net = Lossy(dut, rng)

    def to_device(data: bytes) -> None:
        net.carry(partial(dev.receive, data))

    def to_peer(peer: PeerCm, message: Message) -> None:
        for data in peer.take(message):
            to_device(data)

    async def listen() -> None:
        while True:
            message = await dev.sent(10**9)
            peer = next(peer for peer in peers if peer.ip == message.dst_ip)
            net.carry(partial(to_peer, peer, message))

    listener = cocotb.start_soon(listen())
    steps = 60 * QPS if QPS <= 8 else 3 * QPS
    for tag in range(steps):
        peer = rng.choice(peers)
        for data in peer.act():
            to_device(data)
        if rng.random() < 0.25:
            fields = dict(responder_resources=rng.randrange(12), initiator_depth=rng.randrange(12), client=rng.randrange(2))
            dev.connect(peer.ip, tag, peer.words, **fields)
        if dev.live and rng.random() < (0.15 if QPS <= 8 else 0.02):
            victim = rng.choice(sorted(dev.live))
            dev.shut(victim) if rng.random() < 0.5 else dev.fail(victim)
        if rng.random() < 0.1:
            dev.now += TICK << rng.randrange(6, 11)
        if rng.random() < 0.01:
            dev.now += TICK << CM_TIMEOUT
        await wait_cycles(dut, rng.randrange(2 * (40 + QPS)))
    net.good = True
    for _ in range(REQ_RETRIES + 4):
        for peer in peers:
            for data in peer.repeat_all():
                to_device(data)
        await wait_cycles(dut, 3500)
        await dev.settle(40 * QPS * (QPS + 100))
        await dev.pass_time(CM_TIMEOUT)
    links = [link for peer in peers for link in peer.links.values()]
    assert not dev.wants, f"seed {seed}: connects without an end"
    assert {link.state for link in links} <= {OPEN, REFUSED_BY_PEER, GONE}, f"seed {seed}: {Counter(link.state for link in links)}"
    for qpn, attr in dev.live.items():
        (link,) = [link for link in links if link.state == OPEN and link.theirs.qpn == qpn and link.caller.qpn == attr.dest_qp_num]
        theirs = link.theirs  # the device's REQ or REP
        assert (attr.rq_psn, attr.sq_psn) == (theirs.psn, link.caller.psn)
        asked, given = ((link.caller.resources, link.caller.depth), (theirs.resources, theirs.depth))
        if link.active:
            assert given == (min(asked[1], RD_DEPTH), min(asked[0], RD_DEPTH))
            assert theirs.private == dev.owner_private
        limits = (min(given[0], asked[1]), min(given[1], asked[0]))
        assert (attr.max_dest_rd_atomic, attr.max_rd_atomic) == limits
        assert attr.selective_repeat == int(link.caller.extensions != b"")
        event = [event for event in dev.events if event.qpn == qpn and event.kind in (OPENED, ESTABLISHED)][-1]
        assert event.private_data == int.from_bytes(link.caller.private.ljust(48, b"\0"), "big")
    opened = dev.counts["connection_opened"]
    assert dev.live.keys() == dev.owned and opened - dev.counts["connection_closed"] == len(dev.live)
    assert opened > 20 and sum(event.kind == ESTABLISHED for event in dev.events) > 5
    for _ in range(MAX_RETRIES + 2):
        for qpn in list(dev.live):
            dev.shut(qpn)
        await dev.settle(40 * QPS * (QPS + 100))
        await wait_cycles(dut, 3500)
        await dev.pass_time(CM_TIMEOUT)
    assert not dev.live and not dev.owned
    listener.cancel()
    dev.owner_accepts, dev.owner_cycles = (lambda qpn: True), (lambda: 0)
    dev.headers.received.clear()
    dev.datagrams.packets.clear()
    for caller in callers(QPS):
        await dev.open(caller)


async def pair(dut, rng: random.Random, stall: float = 0.0) -> tuple[list[Device], Lossy]:
    """Two connection managers on one network."""
    devs = [
        Device(dut, stall, index="0"),
        Device(dut, stall, index="1", mac="52:54:00:63:00:02", ip="10.99.0.2"),
    ]
    for dev, other in zip(devs, reversed(devs), strict=True):
        dev.known[ip_number(other.ip)] = other.mac
        dev.begin()
    await start(dut)
    for dev in devs:
        dev.counts.clear()
    await wait_cycles(dut, QPS + 4)
    net = Lossy(dut, rng)

    async def carry(dev: Device, other: Device) -> None:
        while True:
            message = await dev.sent(10**9)
            assert message.dst_ip == other.ip
            net.carry(partial(other.receive, frame(message.mad, dev.ip, dev.mac, other.ip)))

    cocotb.start_soon(carry(*devs))
    cocotb.start_soon(carry(*reversed(devs)))
    return devs, net


async def quiet(devs: list[Device], rounds: int) -> None:
    """Time passes on both sides."""
    for _ in range(rounds):
        for dev in devs:
            await dev.settle(100_000)
            dev.now += TICK << CM_TIMEOUT
        await wait_cycles(devs[0].dut, 3000)


@cocotb.test()
@cocotb.parametrize(seed=some([1, 2]))
async def two_of_them(dut, seed: int) -> None:
    """Each calls the other at any time, over a bad network; owners close, refuse and are slow. Then both hold the same connections,
    with attributes that fit, and none is left when all are closed."""
    rng = random.Random(seed)
    devs, net = await pair(dut, rng, 0.1)
    for dev, extensions in zip(devs, (1, rng.randrange(2)), strict=True):
        dev.signal("extensions").value = extensions
        dev.owner_accepts = lambda qpn: rng.random() < 0.9
        dev.owner_cycles = lambda: rng.choice([0, 5, 300, 3000])
    for tag in range(150):
        dev, other = rng.sample(devs, 2)
        if rng.random() < 0.5:
            fields = dict(responder_resources=rng.randrange(12), initiator_depth=rng.randrange(12), rnr_retry=rng.randrange(8))
            dev.connect(other.ip, tag, path_mtu=rng.randrange(6), retry_cnt=rng.randrange(8), timeout=rng.randrange(32), **fields)
        if dev.live and rng.random() < 0.3:
            dev.shut(rng.choice(sorted(dev.live)))
        if rng.random() < 0.1:
            dev.now += TICK << CM_TIMEOUT
        await wait_cycles(dut, rng.randrange(1500))
    net.good = True
    await quiet(devs, REQ_RETRIES + 4)
    half_open = 0
    for dev, other in (devs, devs[::-1]):
        for qpn, attr in list(dev.live.items()):
            theirs = other.live.get(attr.dest_qp_num)
            if theirs is None or theirs.dest_qp_num != qpn or theirs.sq_psn != attr.rq_psn:
                half_open += 1  # every DREQ was lost: the keep-alive finds it
                dev.fail(qpn)
                continue
            for mine, its in (("sq_psn", "rq_psn"), ("max_rd_atomic", "max_dest_rd_atomic")):
                assert getattr(attr, mine) == getattr(theirs, its), (mine, seed)
            for same in ("path_mtu", "timeout", "retry_cnt", "selective_repeat"):
                assert getattr(attr, same) == getattr(theirs, same), (same, seed)
    await quiet(devs, 2)
    assert len(devs[0].live) == len(devs[1].live) > 0 and half_open < 4, f"seed {seed}"
    for dev in devs:
        assert not dev.wants and dev.live.keys() == dev.owned
        assert dev.counts["connection_opened"] > 10
    assert sum(dev.counts["duplicate_req"] for dev in devs) > 0
    for qpn in list(devs[0].live):
        devs[0].shut(qpn)
    await quiet(devs, 3)
    assert not any(dev.live or dev.owned for dev in devs)


@cocotb.test()
async def fill_each_other(dut) -> None:
    """Both open more connections than there are places: all places are used, the rest is refused, none hangs."""
    rng = random.Random(7)
    devs, net = await pair(dut, rng)
    net.good = True
    for tag in range(QPS):
        for dev, other in (devs, devs[::-1]):
            dev.connect(other.ip, tag)
    await quiet(devs, 3)
    assert len(devs[0].live) == len(devs[1].live) >= QPS // 2
    for dev in devs:
        kinds = Counter(event.kind for event in dev.events)
        assert kinds[ESTABLISHED] + kinds[REFUSED] == QPS and kinds[ESTABLISHED] + kinds[OPENED] >= len(dev.live)
        assert all(event.reason == 1 for event in dev.events if event.kind == REFUSED)


PAIRED = ["two_of_them", "fill_each_other"]
OF_IPV4 = ["linux_", "as_linux", "goes=0"]  # with frames that were captured; of a device with both


def ports(width: int, qps: int) -> dict:
    """Of one connection manager."""
    return {
        "local_addr": Plain("input", "packet_pkg::local_addr_t"),
        "guid": Plain("input", "logic [63:0]"),
        "port": Plain("input", f"logic [{16 * CLIENTS - 1}:0]"),
        "max_mtu": Plain("input", "roce_wire_pkg::mtu_code_t"),
        "min_rnr_timer": Plain("input", "logic [4:0]"),
        "dscp": Plain("input", DSCP),
        "extensions": Plain("input", "logic"),
        "seed": Plain("input", "logic [31:0]"),
        "now": Clock(),
        "limits": Plain("input", "roce_pkg::cm_limits_t"),
        "asks": Plain("output", "logic"),
        "ask": Plain("output", "roce_pkg::admission_ask_t"),
        "judged": Plain("input", "logic"),
        "verdict": Plain("input", "roce_pkg::admission_verdict_t"),
        "admits": Plain("output", "logic"),
        "leaves": Plain("output", "logic"),
        "admitted": Plain("output", "roce_pkg::admission_entry_t"),
        "ended": Plain("input", "roce_pkg::admission_ended_t"),
        "sweep": Plain("input", "logic"),
        "leaving": Plain("input", "packet_pkg::own_set_t"),
        "abandon": Plain("input", "logic"),
        "rx": Sink(FRAME_RX),
        "rx_payload": AxisSinkPort(width),
        "tx": Source("packet_pkg::frame_tx_t"),
        "tx_payload": AxisSourcePort(width),
        "arp_query": Source("packet_pkg::ip_addr_t"),
        "arp_answer": Sink("packet_pkg::arp_answer_t"),
        "qp_cmd": Source("roce_pkg::qp_cmd_t"),
        "qp_done": Sink("logic"),
        "qp_event": Sink("roce_pkg::qp_event_t"),
        "close": Sink("roce_pkg::close_t"),
        "by_hand": Plain("input", f"logic [{qps - 1}:0]"),
        "mine": Plain("output", f"logic [{qps - 1}:0]"),
        "connect": Sink("roce_pkg::connect_t"),
        "conn": Source("roce_pkg::conn_event_t"),
        "conn_answer": Sink("roce_pkg::conn_answer_t"),
        "events": Plain("output", "roce_events_pkg::cm_events_t"),
        "to_log": Plain("output", "event_log_pkg::log_event_t"),
        "idle": Plain("output", "logic"),
    }


# All tests at two widths; and those about many connections with many.
BUILDS = {
    (64, 8): ".",
    (512, 256): "linux_session|full_table|hands_at" + ("|fuzz/seed=1|model/seed=1" if LONG else ""),
    (512, 8): only("linux_session|fuzz/seed=1|model/seed=1"),
    (128, 8): "linux_session",
    (256, 8): "linux_session",
}


# Over IPv6 what depends on addresses, unless there is time for all.
BY_ADDRESS = (
    "reasons|queue_pairs_refuse|repeated_req|stale|rep_for|address|nobody|attributes|both_call|active_dreqs|private_data|malformed"
    "|messages_go|side_by_side|per_peer|admission|an_entry_ends|flood|fuzz/seed=1|model/seed=1"
)


@pytest.mark.parametrize("family", [4, 6])
@pytest.mark.parametrize(("width", "qps"), some(list(BUILDS), 2))
def test_roce_cm(width: int, qps: int, family: int) -> None:
    params = {"DATA_W": width, "QPS": qps, "CLIENTS": CLIENTS, "RD_DEPTH": RD_DEPTH, "PASSIVE_CONTEXTS": Type("12'd4"),
              "PASSIVE_LONG_SET_UP": Type("4'd1")}  # fmt: skip
    if family == 6 and BUILDS[width, qps] == "linux_session":
        pytest.skip("this build runs a captured session over IPv4 alone")
    apart = PAIRED + ([] if family == 4 else OF_IPV4)
    wanted = BY_ADDRESS if family == 6 and BUILDS[width, qps] == "." and not LONG else BUILDS[width, qps]
    chosen = f"^(?!.*({'|'.join(apart)})).*({wanted})"
    env = {"COCOTB_TEST_FILTER": chosen, "CM_QPS": str(qps), "NACELLE_FAMILY": str(family)}
    run("roce_cm", __file__, params=params, ports=ports(width, qps), env=env, random_state=True)


def test_roce_cm_pair() -> None:
    several, plain = {}, {}
    for name, port in ports(64, QPS).items():
        if isinstance(port, Plain):
            plain |= {f"{name}{i}": port for i in range(2)}
        else:
            several[name] = Several(port, 2)
    run("roce_cm_pair", __file__, params={"DATA_W": 64, "QPS": QPS, "CLIENTS": CLIENTS, "RD_DEPTH": RD_DEPTH},
        ports={**plain, **several}, sources=[Path(__file__).parent / "roce_cm_pair.sv"],
        env={"COCOTB_TEST_FILTER": "|".join(PAIRED), "CM_QPS": str(QPS)})  # fmt: skip
