# SPDX-License-Identifier: Apache-2.0
"""roce_cm: answers callers as Linux rdma_cm expects it, whatever they send and lose, and never keeps what nobody wants."""

from __future__ import annotations

import random
from collections import Counter, deque
from collections.abc import Callable

import cocotb
import pytest
from cm_messages import (
    DEVICE_IP, DEVICE_MAC, DREP, DREQ, MRA, PORT, REJ, REP, REQ, RTU, Caller, Message, frame, linux_frames, mad,
)  # fmt: skip
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
        self.known: dict[int, str] = {}          # ip -> mac that ARP finds
        self.qp_log: deque = deque()             # commands, as they came
        self.setup_ok = True
        self.live: dict[int, object] = {}        # qpn -> attributes of QPs that are set up
        self.owner_log: deque = deque()          # (event, qpn)
        self.owned: set[int] = set()             # between CONN_OPENED and the answer to CONN_CLOSED
        self.owner_accepts: Callable[[int], bool | None] = lambda qpn: True   # None: no answer
        self.owner_frees = True                  # answers CONN_CLOSED
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
            if quiet > 20:
                return
        raise AssertionError("still busy")

    def silent(self) -> bool:
        return not self.headers.received and not self.datagrams.packets

    async def pass_time(self, exponent: int) -> None:
        """4.096 us * 2^exponent go by in a jump, and everyone's timer is looked at."""
        self.now += TICK << exponent
        await wait_cycles(self.dut, QPS * 4 + 8)

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
        testcase=None if width in (64, 512) else "linux_session")  # fmt: skip
