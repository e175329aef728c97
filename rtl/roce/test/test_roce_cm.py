# SPDX-License-Identifier: Apache-2.0
"""roce_cm: answers callers as Linux rdma_cm expects it, whatever they send and lose, and never keeps what nobody wants."""

from __future__ import annotations

import random
from collections import Counter, deque
from collections.abc import Callable

import cocotb
import pytest
from cm_messages import DEVICE_IP, DEVICE_MAC, DREP, DREQ, PORT, REJ, REP, Caller, Message, frame, linux_frames
from cocotb.triggers import FallingEdge, RisingEdge
from nacelle_tb.bench import AxisSink as AxisSinkPort
from nacelle_tb.bench import AxisSource as AxisSourcePort
from nacelle_tb.bench import Plain, Sink, Source, run
from nacelle_tb.streams import AxisSink, AxisSource, StreamSink, StreamSource, start, wait_cycles
from nacelle_tb.svtypes import constant, struct
from scapy.layers.inet import IP
from scapy.layers.l2 import Ether

QPS = 8
TICK = 1024  # cycles of 4.096 us at 250 MHz
MAX_RETRIES = 3
QPN_FIRST = 2
OPENED, CLOSED = 0, 1
SETUP, RESET = 0, 1
HEADERS = 62


def number(ip: str) -> int:
    return int.from_bytes(bytes(int(x) for x in ip.split(".")), "big")


def mac_number(mac: str) -> int:
    return int(mac.replace(":", ""), 16)


class Device:
    """The connection manager with everything around it: address resolution, queue pairs, owner, time."""

    def __init__(self, dut, stall: float = 0.0) -> None:
        self.dut = dut
        local = dict(enable=1, mac=mac_number(DEVICE_MAC), ip=number(DEVICE_IP), prefix_length=24, gateway=0)
        dut.local_addr.value = struct("packet_pkg::local_addr_t").pack(local)
        dut.port.value = PORT
        dut.max_mtu.value = 5
        dut.min_rnr_timer.value = 1
        dut.seed.value = 0x1234ABCD
        self.frames = StreamSource(dut, "rx", "packet_pkg::frame_rx_t", stall)
        self.payloads = AxisSource(dut, "rx_payload", stall)
        self.headers = StreamSink(dut, "tx", "packet_pkg::frame_tx_t", stall)
        self.datagrams = AxisSink(dut, "tx_payload", stall)
        self.queries = StreamSink(dut, "arp_query", "packet_pkg::ipv4_addr_t", stall)
        self.addresses = StreamSource(dut, "arp_answer", "packet_pkg::arp_answer_t", stall)
        self.commands = StreamSink(dut, "qp_cmd", "roce_pkg::qp_cmd_t", stall)
        self.done = StreamSource(dut, "qp_done", "logic", stall)
        self.failures = StreamSource(dut, "qp_event", "roce_pkg::qp_event_t", stall)
        self.closes = StreamSource(dut, "close", "roce_pkg::qpn_t", stall)
        self.conns = StreamSink(dut, "conn", "roce_pkg::conn_event_t", stall)
        self.answers = StreamSource(dut, "conn_answer", "logic", stall)
        self.now = 10**6
        self.counts: Counter[str] = Counter()
        self.known: dict[int, str] = {}  # ip -> mac that ARP finds
        self.qp_log: deque = deque()  # commands, as they came
        self.setup_ok = True
        self.live: dict[int, object] = {}  # qpn -> attributes of QPs that are set up
        self.owner_log: deque = deque()  # (event, qpn)
        self.owned: set[int] = set()  # between CONN_OPENED and the answer to CONN_CLOSED
        self.owner_accepts: Callable[[int], bool | None] = lambda qpn: True  # None: no answer
        self.owner_frees = True  # answers CONN_CLOSED
        self.unanswered: deque[int] = deque()

    async def start(self) -> None:
        self.dut.now.value = self.now
        await start(self.dut)
        for task in (self._time(), self._arp(), self._qps(), self._owner()):
            cocotb.start_soon(task)
        await wait_cycles(self.dut, QPS + 4)

    async def _time(self) -> None:
        layout = struct("roce_pkg::cm_events_t")
        while True:
            await FallingEdge(self.dut.clk)
            self.now += 1
            self.dut.now.value = self.now
            pulses = int(self.dut.events.value)
            if pulses:
                for name, value in vars(layout.unpack(pulses)).items():
                    self.counts[name] += value

    async def _arp(self) -> None:
        while True:
            ip = await self.queries.recv(10**9)
            mac = self.known.get(ip)
            await wait_cycles(self.dut, random.randrange(4))
            self.addresses.send(found=int(mac is not None), mac=mac_number(mac) if mac else 0xBAD)

    async def _qps(self) -> None:
        while True:
            command = await self.commands.recv(10**9)
            self.qp_log.append(command)
            assert QPN_FIRST <= command.qpn < QPN_FIRST + QPS
            if command.op == SETUP and self.setup_ok:
                assert command.qpn not in self.live, "set up twice"
                assert command.qpn not in self.owned, "set up before its last owner has let go"
                self.live[command.qpn] = command.attr
            elif command.op == RESET:
                assert command.qpn in self.live, "reset of a QP that is not set up"
                del self.live[command.qpn]
            await wait_cycles(self.dut, random.randrange(6))
            self.done.send(int(command.op == RESET or self.setup_ok))

    async def _owner(self) -> None:
        while True:
            event = await self.conns.recv(10**9)
            self.owner_log.append((event.event_, event.qpn))
            if event.event_ == OPENED:
                assert event.qpn not in self.owned
                self.owned.add(event.qpn)
                answer = self.owner_accepts(event.qpn)
                if answer is False:
                    self.owned.discard(event.qpn)
            else:
                assert event.qpn in self.owned
                assert event.qpn not in self.live, "closed before its reset"
                answer = True if self.owner_frees else None
                if answer:
                    self.owned.discard(event.qpn)
            if answer is None:
                self.unanswered.append(event.qpn)
            else:
                self.answers.send(int(answer))

    def knows(self, *callers: Caller) -> None:
        for caller in callers:
            self.known[number(caller.ip)] = caller.mac

    def receive(self, data: bytes, payload: bytes | None = None, bad: bool = False) -> None:
        """A frame comes in, from Ethernet header to the end of the MAD."""
        payload = data[HEADERS : HEADERS + 256] if payload is None else payload
        header = int.from_bytes(data[:88].ljust(88, b"\0"), "big")
        self.frames.send(cls=constant("packet_pkg::CLASS_ROCE"), payload_length=len(payload), hdr=header)
        if payload:
            self.payloads.send(payload, bad)

    async def sent(self, timeout_cycles: int = 2000) -> Message:
        """The next message that the device sends; its headers are checked."""
        head = await self.headers.recv(timeout_cycles)
        datagram = await self.datagrams.recv(timeout_cycles)
        assert (head.hdr_length, head.payload_length, head.pad, head.icrc) == (HEADERS, 256, 0, 1)
        data = head.hdr.to_bytes(88, "big")[:HEADERS]
        assert head.hdr & ((1 << (88 - HEADERS) * 8) - 1) == 0
        packet = Ether(data + datagram + bytes(4))
        assert packet.src == DEVICE_MAC
        ip = packet[IP]
        assert (ip.src, ip.ttl, ip.len, str(ip.flags)) == (DEVICE_IP, 64, 308, "DF")
        given = ip.chksum
        del ip.chksum
        assert IP(bytes(ip)).chksum == given
        assert (packet["UDP"].dport, packet["UDP"].len, packet["UDP"].chksum) == (4791, 288, 0)
        assert data[42:46] == bytes.fromhex("6400ffff") and data[46:50] == bytes.fromhex("00000001")
        assert data[54:62] == bytes.fromhex("8001000000000001")
        return Message(ip.dst, packet.dst, datagram)

    async def settle(self, limit: int = 5000) -> None:
        """Until nothing is under way."""
        quiet = 0
        for _ in range(limit):
            await RisingEdge(self.dut.clk)
            busy = self.frames._queue or self.payloads._queue or self.answers._queue or self.done._queue or self.addresses._queue
            quiet = 0 if busy or not int(self.dut.idle.value) else quiet + 1
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
        Caller(ip=f"10.99.0.{10 + i}", mac=f"02:00:00:00:00:{i:02x}", local_id=0x1000 + i, tid=0x77000 + i, qpn=0x100 + i,
               psn=0x4000 + i, **same)
        for i in range(count)
    ]  # fmt: skip


async def device(dut, stall: float = 0.0) -> Device:
    it = Device(dut, stall)
    await it.start()
    return it


# ---- a connection from begin to end ----


@cocotb.test()
@cocotb.parametrize(stall=[0.0, 0.5])
async def linux_session(dut, stall: float) -> None:
    """What Linux sent is taken, and what it gets differs from a Linux device's answers in nothing but the numbers we choose."""
    dev = await device(dut, stall)
    linux = linux_frames()
    dev.knows(Caller())
    assert Caller().req()[HEADERS:318] == linux["req"][HEADERS:318]  # our own builder speaks as Linux does

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
    assert (attr.dst_mac, attr.dst_ip) == (mac_number("52:54:00:63:00:02"), number("10.99.0.2"))
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
    dev.dut.port.value = PORT + 1
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
            ({"ip_version": 6}, 5),
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
        assert (rej.attr, rej.reason, rej.rejected) == (REJ, reason, 0), change
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
    """Of READs and atomics: what the caller asks for, at most one each way."""
    dev = await device(dut)
    cases = [(0, 0, 0, 0), (1, 0, 0, 1), (0, 1, 1, 0), (128, 16, 1, 1)]  # asked resources, depth; given resources, depth
    for caller, (resources, depth, given_resources, given_depth) in zip(callers(4), cases, strict=True):
        caller.resources, caller.depth = resources, depth
        rep = await dev.open(caller)
        assert (rep.at(24, 1), rep.at(25, 1)) == (given_resources, given_depth)


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
    assert (rej.attr, rej.reason, rej.rejected, rej.local_id) == (REJ, 28, 0, 0)
    await dev.settle()
    assert not dev.live and list(dev.owner_log) == [(OPENED, dev.qp_log[0].qpn)]
    assert dev.counts["connection_closed"] == 1
    dev.owner_accepts = lambda qpn: True
    for other in callers(QPS):
        await dev.open(other)


@cocotb.test()
async def owner_is_silent(dut) -> None:
    """An owner that does not answer in the caller's time: REJ (no resources). Its late answer opens nothing, and the QP is not
    used again before it has answered CONN_CLOSED too."""
    dev = await device(dut)
    caller = callers(1)[0]
    dev.knows(caller)
    dev.owner_accepts = lambda qpn: None
    dev.receive(caller.req())
    await dev.settle()
    dev.receive(caller.req())  # repeated meanwhile: it has no answer yet
    await dev.settle()
    assert dev.silent() and dev.counts["duplicate_req"] == 1
    await dev.pass_time(20)
    rej = await dev.sent()
    assert (rej.attr, rej.reason) == (REJ, 3)
    await dev.settle()
    assert not dev.live and len(dev.owner_log) == 1
    dev.owner_frees = False
    dev.answers.send(1)  # to CONN_OPENED, late
    await dev.settle()
    assert dev.silent() and dev.owner_log[-1] == (CLOSED, dev.qp_log[0].qpn)
    dev.owner_accepts = lambda qpn: True
    other = callers(2)[1]
    dev.knows(other)
    dev.receive(other.req())  # gets another QP; its owner is asked in turn
    await dev.settle()
    assert dev.silent() and dev.qp_log[-1].qpn != dev.qp_log[0].qpn
    dev.owned.discard(dev.qp_log[0].qpn)
    dev.answers.send(1)  # to CONN_CLOSED
    assert (await dev.sent()).attr == REP
    for more in callers(QPS + 1)[2:]:
        await dev.open(more)
    assert len(dev.live) == QPS


@cocotb.test()
async def queue_pairs_refuse(dut) -> None:
    dev = await device(dut)
    dev.setup_ok = False
    caller = callers(1)[0]
    dev.knows(caller)
    dev.receive(caller.req())
    rej = await dev.sent()
    assert (rej.attr, rej.reason, rej.rejected) == (REJ, 1, 0)
    await dev.settle()
    assert not dev.owner_log
    dev.setup_ok = True
    await dev.open(caller)


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
    assert (rej.attr, rej.reason, rej.rejected, rej.local_id) == (REJ, 4, 2, first.local_id)
    await dev.settle()
    assert not dev.live and not dev.owned
    assert dev.counts["rep_timeout"] == MAX_RETRIES + 1
    dev.receive(caller.rtu(first))  # too late
    await dev.settle()
    assert dev.counts["drop_no_connection"] == 1
    for other in callers(QPS):
        await dev.open(other)


@cocotb.test()
async def rtu_ends_the_timer(dut) -> None:
    dev = await device(dut)
    await dev.open(callers(1, cm_timeout=10)[0])
    await dev.pass_time(22)
    await dev.settle()
    assert dev.silent() and len(dev.live) == 1


@cocotb.test()
async def retries_and_times_are_bounded(dut) -> None:
    """Fewer retries if the REQ allows fewer; no longer wait than 17 s whatever it asks for."""
    dev = await device(dut)
    caller = callers(1, cm_timeout=31, retries=1)[0]
    await dev.open(caller, rtu=False)
    await dev.pass_time(22)
    assert (await dev.sent()).attr == REP
    await dev.pass_time(22)
    assert (await dev.sent()).reason == 4


@cocotb.test()
async def mra(dut) -> None:
    """The caller asks for time: the REP waits that long, but not for ever."""
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
    """A caller that comes back with the QP of an old connection has forgotten it: REJ 10, and the old one is closed."""
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
    rep = await dev.open(forgetful)  # repeated: now it is welcome, though nobody has answered the DREQ
    assert rep.qpn != old.qpn


@cocotb.test()
async def dreq_repeated_unknown_or_wrong(dut) -> None:
    """A DREQ is always answered, that for somebody else's QP never."""
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
    assert (rej.attr, rej.reason, rej.rejected, rej.local_id, rej.remote_id) == (REJ, 6, 1, 9, 7)


# ---- the device closes ----


@cocotb.test()
@cocotb.parametrize(cause=["failure", "owner"], rtu=[True, False])
async def device_closes(dut, cause: str, rtu: bool) -> None:
    """QP reset, owner told, DREQ sent and repeated until the DREP, a few times at most. An event that comes again does nothing."""
    dev = await device(dut, 0.2)
    a, b = callers(2, cm_timeout=12)
    for caller, answers in ((a, True), (b, False)):
        rep = await dev.open(caller, rtu)
        for _ in range(2):
            if cause == "failure":
                dev.failures.send(qpn=rep.qpn, status=constant("roce_pkg::WC_RETRY_EXC_ERR"))
            else:
                dev.closes.send(rep.qpn)
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
    dev.failures.send(qpn=QPN_FIRST + QPS, status=12)  # none of ours
    dev.closes.send(1)
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
    assert (await dev.sent()).attr == DREP
    for _ in range(2):
        for rep in reps:
            dev.failures.send(qpn=rep.qpn, status=12)
    await dev.failures.drained(200)
    dev.done.send = respond
    respond(held[0])
    assert {(await dev.sent()).dst_ip for _ in all_[1:]} == {caller.ip for caller in all_[1:]}
    await dev.settle()
    assert dev.silent() and not dev.live and not dev.owned


@cocotb.test()
async def crossed_dreqs(dut) -> None:
    """Both sides disconnect at once: each answers the other, and that is the end."""
    dev = await device(dut)
    caller = callers(1)[0]
    rep = await dev.open(caller)
    dev.closes.send(rep.qpn)
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
    dev.failures.send(qpn=qpn, status=12)
    rej = await dev.sent()
    assert (rej.attr, rej.reason) == (REJ, 28)
    dev.answers.send(1)
    await dev.settle()
    assert list(dev.owner_log) == [(OPENED, qpn), (CLOSED, qpn)]
    assert dev.silent() and not dev.live and not dev.owned


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
async def unresolved_peer(dut) -> None:
    """Nobody answers ARP: nothing is made and nothing sent; what must happen without the peer happens."""
    dev = await device(dut)
    a, b = callers(2, cm_timeout=10)
    dev.receive(a.req())
    await dev.settle()
    assert dev.silent() and not dev.qp_log and not dev.owner_log and dev.counts["drop_unresolved"] == 1
    rep = await dev.open(a)
    other = await dev.open(b)
    dev.known.clear()
    dev.receive(a.dreq(rep))
    dev.closes.send(other.qpn)
    await dev.settle()
    for _ in range(MAX_RETRIES + 1):
        await dev.pass_time(10)
        await dev.settle()
    assert not dev.live and not dev.owned and dev.silent()
    assert dev.counts["drop_unresolved"] == 1 + 1 + 1 + MAX_RETRIES


@cocotb.test()
async def storm(dut) -> None:
    """More messages than can wait, while address resolution hangs: the frames go on flowing, what is too much is counted."""
    dev = Device(dut)
    arp = StreamSource.send
    held: list[dict[str, int]] = []
    dev.addresses.send = lambda **fields: held.append(fields)
    await dev.start()
    caller = callers(1)[0]
    dev.knows(caller)
    for _ in range(60):
        dev.receive(caller.req())
    await dev.payloads.drained(60 * (2048 // len(dev.dut.rx_payload_tdata) + 8))
    await wait_cycles(dut, 10)
    assert dev.counts["drop_overflow"] in range(25, 29)  # 32 wait, one is worked on, one on its way
    del dev.addresses.send
    arp(dev.addresses, **held[0])
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
    reps: dict[int, Message] = {}

    def answer(message: Message) -> None:
        caller = next((c for c in them if c.ip == message.dst_ip), None)
        assert caller is not None
        if message.attr == REP:
            reps[them.index(caller)] = message
            if rng.random() < 0.6:
                dev.receive(caller.rtu(message))
        elif message.attr == DREQ and rng.random() < 0.5:
            dev.receive(caller.drep(message))

    async def listen() -> None:
        while True:
            answer(await dev.sent(10**9))

    listener = cocotb.start_soon(listen())
    dev.owner_accepts = lambda qpn: rng.random() < 0.9
    for _ in range(400):
        i = rng.randrange(len(them))
        caller, rep = them[i], reps.get(i)
        choice = rng.random()
        if choice < 0.4 or rep is None:
            if rng.random() < 0.3:
                caller.local_id, caller.tid = rng.getrandbits(32), rng.getrandbits(64)
            data = caller.req()
        else:
            mra = caller.mra(rep, rng.randrange(12))
            data = rng.choice([caller.dreq(rep), caller.rej(rep), caller.rtu(rep), mra, caller.drep(rep)])
        if rng.random() < 0.25:
            changed = bytearray(data)
            for _ in range(rng.randrange(1, 4)):
                changed[rng.randrange(42, len(changed))] = rng.getrandbits(8)
            data = bytes(changed)
        dev.receive(data)
        if rng.random() < 0.1:
            dev.failures.send(qpn=rng.randrange(QPN_FIRST, QPN_FIRST + QPS), status=12)
        if rng.random() < 0.1:
            dev.closes.send(rng.randrange(QPN_FIRST, QPN_FIRST + QPS))
        if rng.random() < 0.1:
            dev.now += TICK << rng.randrange(6, 10)
        await wait_cycles(dut, rng.randrange(60))
    await dev.settle(60000)
    for qpn in range(QPN_FIRST, QPN_FIRST + QPS):
        dev.closes.send(qpn)
    await dev.settle(20000)
    for _ in range(MAX_RETRIES + 2):
        await dev.pass_time(22)
        await dev.settle(20000)
    assert not dev.live and not dev.owned
    assert dev.counts["connection_opened"] == dev.counts["connection_closed"] > 20
    listener.cancel()
    dev.owner_accepts = lambda qpn: True
    await dev.settle()
    for caller in callers(QPS):
        await dev.open(caller)


PORTS_AT = {
    width: {
        "local_addr": Plain("input", "packet_pkg::local_addr_t"),
        "port": Plain("input", "logic [15:0]"),
        "max_mtu": Plain("input", "roce_pkg::mtu_code_t"),
        "min_rnr_timer": Plain("input", "logic [4:0]"),
        "seed": Plain("input", "logic [31:0]"),
        "now": Plain("input", "logic [47:0]"),
        "rx": Sink("packet_pkg::frame_rx_t"),
        "rx_payload": AxisSinkPort(width),
        "tx": Source("packet_pkg::frame_tx_t"),
        "tx_payload": AxisSourcePort(width),
        "arp_query": Source("packet_pkg::ipv4_addr_t"),
        "arp_answer": Sink("packet_pkg::arp_answer_t"),
        "qp_cmd": Source("roce_pkg::qp_cmd_t"),
        "qp_done": Sink("logic"),
        "qp_event": Sink("roce_pkg::qp_event_t"),
        "close": Sink("roce_pkg::qpn_t"),
        "conn": Source("roce_pkg::conn_event_t"),
        "conn_answer": Sink("logic"),
        "events": Plain("output", "roce_pkg::cm_events_t"),
        "idle": Plain("output", "logic"),
    }
    for width in (64, 128, 256, 512)
}


@pytest.mark.parametrize("width", [64, 128, 256, 512])
def test_roce_cm(width: int) -> None:
    run("roce_cm", __file__, params={"DATA_W": width, "QPS": QPS}, ports=PORTS_AT[width],
        testcase=None if width in (64, 512) else "linux_session/stall=0.5")  # fmt: skip
