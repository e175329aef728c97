# SPDX-License-Identifier: Apache-2.0
"""roce_requester: every frame is checked against scapy, its payload against memory, its sequence by a model of the peer."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
from collections import deque
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import cocotb
import pytest
from cocotb.triggers import FallingEdge
from nacelle_tb.bench import AxisSink as AxisIn
from nacelle_tb.bench import AxisSource as AxisOut
from nacelle_tb.bench import Plain, Sink, Source, run, wrapper
from nacelle_tb.roce import op, reth
from nacelle_tb.sources import module_dirs, packages
from nacelle_tb.streams import AxisSink, AxisSource, StreamSink, StreamSource, start, wait_cycles
from nacelle_tb.svtypes import struct
from scapy.contrib.roce import BTH
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether

QPS = 16
SQ_DEPTH = 32
WINDOW = 64
CLOCK_HZ = 2_000_000  # slow, so that the times of the standard pass quickly
ACK_UNIT = 9  # 4.096 us, rounded up
RNR_UNIT = 20  # 10 us
PSNS = 1 << 24
MEMORY = random.Random(7).randbytes(1 << 20)
LOCAL = {"enable": 1, "mac": 0x020000000001, "ip": 0x0A000001, "prefix_length": 24, "gateway": 0}

WRITE, WRITE_IMM, SEND, SEND_IMM = (op(f"WR_{n}") for n in ("RDMA_WRITE", "RDMA_WRITE_WITH_IMM", "SEND", "SEND_WITH_IMM"))
ACK, RNR, NAK_SEQ = 0x1F, 0x20, 0x60


def memory(address: int, length: int) -> bytes:
    """Content of device memory, which repeats every MiB."""
    out = bytearray()
    while len(out) < length:
        offset = (address + len(out)) % len(MEMORY)
        out += MEMORY[offset : offset + length - len(out)]
    return bytes(out)


@dataclass
class Request:
    """A work request, as posted."""

    qpn: int
    opcode: int
    length: int
    local_addr: int
    remote_addr: int
    rkey: int
    imm_data: int
    solicited: bool
    signaled: bool
    wr_id: int

    @property
    def write(self) -> bool:
        return self.opcode in (WRITE, WRITE_IMM)

    @property
    def with_imm(self) -> bool:
        return self.opcode in (WRITE_IMM, SEND_IMM)

    def packets(self, mtu: int) -> int:
        return max(1, -(-self.length // mtu))


@dataclass
class Sent:
    """A frame that left, taken apart."""

    opcode: int
    psn: int
    dqpn: int
    se: bool
    ackreq: bool
    ext: bytes
    payload: bytes
    cycle: int


@dataclass
class Peer:
    """The far end of a QP: takes packets in order, as the standard's responder does, and acknowledges."""

    bench: Bench
    qpn: int
    dest: int
    psn: int
    mtu: int
    mac: int
    ip: int
    loss: float = 0.0
    ack_loss: float = 0.0
    not_ready: float = 0.0  # how often it has no receive posted for a SEND
    deaf: bool = False  # takes nothing
    mute: bool = False  # acknowledges nothing by itself
    drop: set[int] = field(default_factory=set)  # PSNs to lose once
    expected: deque[Request] = field(default_factory=deque)
    offset: int = 0  # in the message that is coming
    nak_sent: bool = False
    msn: int = 0
    seen: list[Sent] = field(default_factory=list)
    keepalives: int = 0

    def answer(self, syndrome: int, psn: int) -> None:
        if self.bench.rng.random() >= self.ack_loss:
            self.bench.ack_rx.send(qpn=self.qpn, psn=psn % PSNS, aeth={"syndrome": syndrome, "msn": self.msn})

    def take(self, f: Sent) -> None:
        self.seen.append(f)
        if self.deaf or self.bench.rng.random() < self.loss:
            return
        if f.psn in self.drop:
            self.drop.remove(f.psn)
            return
        ahead = (f.psn - self.psn) % PSNS
        if ahead >= PSNS // 2:
            if not self.mute:
                self.answer(ACK, self.psn - 1)
            return
        if ahead:
            if not self.nak_sent and not self.mute:
                self.answer(NAK_SEQ, self.psn)
            self.nak_sent = True
            return
        if f.opcode < 6 and self.bench.rng.random() < self.not_ready:
            self.answer(RNR | 1, self.psn)
            self.nak_sent = True
            return
        self.execute(f)
        self.nak_sent = False
        self.psn = (self.psn + 1) % PSNS
        if f.ackreq and not self.mute:
            self.answer(ACK, f.psn)

    def execute(self, f: Sent) -> None:
        if not self.expected or (self.offset == 0 and f.ext == bytes(16)):
            assert f.opcode == op("RC_RDMA_WRITE_ONLY") and f.ext == bytes(16) and not f.payload and f.ackreq
            self.keepalives += 1
            return
        request = self.expected[0]
        first = self.offset == 0
        length = min(self.mtu, request.length - self.offset)
        last = self.offset + length == request.length
        name = "RC_RDMA_WRITE_" if request.write else "RC_SEND_"
        name += "ONLY" if first and last else "FIRST" if first else "LAST" if last else "MIDDLE"
        name += "_WITH_IMM" if last and request.with_imm else ""
        assert f.opcode == op(name), f"opcode {f.opcode:#x}, not {name}"
        ext = reth(request.remote_addr, request.rkey, request.length) if first and request.write else b""
        ext += request.imm_data.to_bytes(4, "big") if last and request.with_imm else b""
        assert f.ext == ext
        assert f.payload == memory(request.local_addr + self.offset, length)
        assert f.se == (last and request.solicited)
        assert f.ackreq or not last
        self.offset += length
        if last:
            self.expected.popleft()
            self.offset = 0
            self.msn = (self.msn + 1) % PSNS


class Bench:
    """Everything around the module: its memory, the far ends, and the clock."""

    def __init__(self, dut, stall: float = 0.0, latency: int = 20) -> None:
        self.dut = dut
        self.rng = random.Random(random.getrandbits(64))
        self.latency = latency
        self.now = 0
        self.cycle = 0
        self.bad_from: int | None = None  # reads from this address on fail
        self.peers: dict[int, Peer] = {}  # by our QP number
        self.by_dest: dict[int, Peer] = {}
        self.acks: list[Sent] = []
        self.spoiled: list[Sent] = []
        self.order: list[Sent] = []
        self.wr_ids = iter(range(1 << 30))
        self.posted: dict[int, deque[Request]] = {}
        self.events: dict[str, int] = {}
        self.identification = 0

        def source(name: str, kind: str) -> StreamSource:
            return StreamSource(dut, name, f"roce_pkg::{kind}", stall)

        self.cmd, self.wqe = source("cmd", "qp_cmd_t"), source("wqe", "rdma_wqe_t")
        self.ack_rx, self.ack_tx = source("ack_rx", "ack_rx_t"), source("ack_tx", "ack_tx_t")
        self.answer = StreamSink(dut, "answer", "logic", stall)
        self.cqe = StreamSink(dut, "cqe", "roce_pkg::rdma_cqe_t", stall)
        self.qp_event = StreamSink(dut, "qp_event", "roce_pkg::qp_event_t", stall)
        self.read = StreamSink(dut, "read", "memory_pkg::dma_cmd_t", stall)
        self.tx = StreamSink(dut, "tx", "packet_pkg::frame_tx_t", stall)
        self.tx_payload = AxisSink(dut, "tx_payload", stall)
        self.data = AxisSource(dut, "data", stall)
        self._events = struct("roce_pkg::roce_tx_events_t"), struct("roce_pkg::roce_rx_events_t")
        self._bth = struct("roce_pkg::bth_t")
        dut.local_addr.value = struct("packet_pkg::local_addr_t").pack(LOCAL)
        dut.now.value = 0
        dut.keepalive_cycles.value = 0
        dut.active.value = 0
        dut.active_qpn.value = 0
        self._heads: deque[tuple[SimpleNamespace, int]] = deque()
        self._reads: deque[tuple[int, int, int]] = deque()

    async def start(self) -> None:
        await start(self.dut)
        cocotb.start_soon(self._tick())

    async def _tick(self) -> None:
        while True:
            await FallingEdge(self.dut.clk)
            self.now += 1
            self.cycle += 1
            self.dut.now.value = self.now
            while self.read.received:
                command = self.read.received.popleft()
                self.read.cycles.popleft()
                assert command.length > 0
                self._reads.append((self.cycle + self.latency, command.addr, command.length))
            while self._reads and self._reads[0][0] <= self.cycle:
                _, address, length = self._reads.popleft()
                bad = self.bad_from is not None and address + length > self.bad_from
                self.data.send(memory(address, length), bad)
            for kind, value in zip(self._events, (self.dut.events.value, self.dut.rx_events.value), strict=True):
                if int(value):
                    for name, bit in vars(kind.unpack(int(value))).items():
                        if bit:
                            self.events[name] = self.events.get(name, 0) + 1
            while self.tx.received:
                self._heads.append((self.tx.received.popleft(), self.tx.cycles.popleft()))
            while self._heads and (not self._heads[0][0].payload_length or self.tx_payload.packets):
                head, cycle = self._heads.popleft()
                payload, bad = self.tx_payload.packets.popleft() if head.payload_length else (b"", 0)
                if head.payload_length:
                    self.tx_payload.spans.popleft()
                self._frame(head, payload, bad, cycle)

    def _frame(self, head: SimpleNamespace, payload: bytes, bad: int, cycle: int) -> None:
        assert len(payload) == head.payload_length
        assert head.pad == -len(payload) % 4
        assert head.icrc
        headers = head.hdr.to_bytes(88, "big")[: head.hdr_length]
        ext = headers[54:]
        bth = self._bth.unpack(int.from_bytes(headers[42:54], "big"))
        peer = self.by_dest[bth.destqp]
        qpn = peer.qpn
        expected = Ether(src="02:00:00:00:00:01", dst=peer.mac.to_bytes(6, "big").hex(":"))
        expected /= IP(src="10.0.0.1", dst=".".join(map(str, peer.ip.to_bytes(4, "big"))), flags="DF", id=self.identification)
        expected /= UDP(sport=0xC000 | ((qpn & 0x3FFF) ^ (qpn >> 14)), dport=4791, chksum=0)
        expected /= BTH(
            opcode=bth.opcode, solicited=bth.se, migreq=1, padcount=head.pad, dqpn=peer.dest,
            ackreq=bth.ackreq, psn=bth.psn,
        )  # fmt: skip
        expected /= ext + payload + bytes(head.pad)
        assert bytes(expected)[:-4] == headers + payload + bytes(head.pad)
        self.identification = (self.identification + 1) % (1 << 16)
        sent = Sent(bth.opcode, bth.psn, bth.destqp, bool(bth.se), bool(bth.ackreq), ext, payload, cycle)
        self.order.append(sent)
        if bth.opcode == op("RC_ACKNOWLEDGE"):
            self.acks.append(sent)
        elif bad:
            self.spoiled.append(sent)
        else:
            peer.take(sent)

    async def setup(
        self, qpn: int, psn: int = 0, mtu: int = 3, timeout: int = 0, retry: int = 7, rnr: int = 7, **more: Any
    ) -> Peer:
        """Sets a QP up, with its far end."""
        dest = more.pop("dest", 0x10000 + qpn * 3)
        peer = Peer(self, qpn, dest, psn, 128 << mtu, 0x020000010000 + qpn, 0x0A000100 + qpn, **more)
        self.cmd.send(
            op=op("QP_SETUP"), qpn=qpn,
            attr={
                "dst_mac": peer.mac, "dst_ip": peer.ip, "dest_qp_num": dest, "sq_psn": psn, "path_mtu": mtu,
                "timeout": timeout, "retry_cnt": retry, "rnr_retry": rnr,
            },
        )  # fmt: skip
        assert await self.answer.recv() == 1
        self.peers[qpn] = self.by_dest[dest] = peer
        self.posted[qpn] = deque()
        return peer

    async def reset(self, qpn: int, answer: int = 1) -> None:
        self.cmd.send(op=op("QP_RESET"), qpn=qpn)
        assert await self.answer.recv() == answer

    def post(self, qpn: int, opcode: int = WRITE, length: int = 64, *, known: bool = True, **more: Any) -> Request:
        """Posts a work request with random content; the far end expects it."""
        request = Request(
            qpn, opcode, length,
            local_addr=more.pop("local_addr", self.rng.randrange(1 << 30)),
            remote_addr=self.rng.getrandbits(64), rkey=self.rng.getrandbits(32), imm_data=self.rng.getrandbits(32),
            solicited=more.pop("solicited", self.rng.random() < 0.5), signaled=more.pop("signaled", True),
            wr_id=next(self.wr_ids) & 0xFFFF,
        )  # fmt: skip
        assert not more
        self.wqe.send(**vars(request))
        if known:
            self.peers[qpn].expected.append(request)
            self.posted[qpn].append(request)
        return request

    async def complete(self, count: int, status: str = "WC_SUCCESS", timeout: int = 50_000) -> list[SimpleNamespace]:
        """Takes `count` completions, which must come in the order posted on each QP."""
        got = []
        for _ in range(count):
            cqe = await self.cqe.recv(timeout)
            while not self.posted[cqe.qpn][0].signaled and cqe.wr_id != self.posted[cqe.qpn][0].wr_id:
                self.posted[cqe.qpn].popleft()
            request = self.posted[cqe.qpn].popleft()
            assert (cqe.wr_id, cqe.status) == (request.wr_id, op(status)), f"{cqe}, expected {request}"
            assert cqe.opcode == (op("WC_RDMA_WRITE") if request.write else op("WC_SEND"))
            assert cqe.with_imm == request.with_imm
            got.append(cqe)
        return got

    async def quiet(self, timeout: int = 20_000) -> None:
        """Waits until the module says that it is idle."""
        calm = 0
        for _ in range(timeout):
            await FallingEdge(self.dut.clk)
            calm = calm + 1 if int(self.dut.idle.value) and not self._reads else 0
            if calm == 3:
                return
        raise AssertionError("not idle")


@cocotb.test()
@cocotb.parametrize(opcode=[WRITE, WRITE_IMM, SEND, SEND_IMM])
async def one_packet_and_its_completion(dut, opcode: int) -> None:
    bench = Bench(dut)
    await bench.start()
    peer = await bench.setup(5, psn=0x123456)
    bench.post(5, opcode, 64)
    await bench.complete(1)
    assert [f.psn for f in peer.seen] == [0x123456]
    await bench.quiet()


def opcodes(peer: Peer) -> list[int]:
    return [f.opcode for f in peer.seen]


@cocotb.test()
@cocotb.parametrize(mtu=[1, 2, 3, 4, 5], stall=[0.0, 0.3])
async def every_length_around_a_packet(dut, mtu: int, stall: float) -> None:
    bench = Bench(dut, stall)
    await bench.start()
    peer = await bench.setup(2, psn=PSNS - 7, mtu=mtu)
    size = 128 << mtu
    lengths = [0, 1, 2, 3, 4, 63, 64, 65, size - 1, size, size + 1, 2 * size - 3, 2 * size, 2 * size + 1, 5 * size - 2]
    for opcode in (WRITE, WRITE_IMM, SEND, SEND_IMM):
        for length in lengths if opcode in (WRITE, SEND_IMM) else [0, size, 3 * size + 1]:
            bench.post(2, opcode, length, signaled=bench.rng.random() < 0.7)
            if len(bench.posted[2]) == SQ_DEPTH - 1:
                bench.post(2, opcode, length)
                await bench.complete(sum(r.signaled for r in bench.posted[2]))
    bench.post(2)
    await bench.complete(sum(r.signaled for r in bench.posted[2]))
    assert not peer.expected
    psns = [f.psn for f in peer.seen]
    assert psns == [(PSNS - 7 + i) % PSNS for i in range(len(psns))], "each PSN once, in order"
    await bench.quiet()
    assert bench.events["sent_packet"] == len(psns)
    assert bench.events["sent_write"] + bench.events["sent_send"] == next(bench.wr_ids)


@cocotb.test()
async def long_messages_ask_for_acknowledgements_on_the_way(dut) -> None:
    bench = Bench(dut)
    await bench.start()
    peer = await bench.setup(3, psn=100, mtu=1)
    bench.post(3, WRITE, 100 * 256 + 7)
    await bench.complete(1)
    asked = [i for i, f in enumerate(peer.seen) if f.ackreq]
    assert asked[-1] == 100
    assert all(b - a <= 16 for a, b in pairwise([-1, *asked]))


@cocotb.test()
@cocotb.parametrize(lost=list(range(9)))
async def a_nak_at_every_position(dut, lost: int) -> None:
    bench = Bench(dut, stall=0.1)
    await bench.start()
    peer = await bench.setup(4, psn=PSNS - 4, mtu=1)
    peer.drop = {(PSNS - 4 + lost) % PSNS}
    bench.post(4, SEND, 256 * 2)
    bench.post(4, WRITE_IMM, 256 * 4 + 1)
    bench.post(4, WRITE, 200)
    bench.post(4, SEND_IMM, 0)
    bench.post(4, SEND, 1)
    await bench.complete(5)
    assert not peer.expected
    await bench.quiet()
    assert bench.events["packet_seq_err"] == 1 and bench.events["packet_retransmit"] >= 1


@cocotb.test()
async def cumulative_and_ghost_acknowledgements(dut) -> None:
    bench = Bench(dut)
    await bench.start()
    peer = await bench.setup(6, psn=PSNS - 3, mtu=1, mute=True)
    for _ in range(6):
        bench.post(6, WRITE, 300)  # 2 packets each
    await wait_cycles(dut, 200)
    assert len(peer.seen) == 12
    for psn in (PSNS - 4, PSNS - 100, 9, 500, PSNS // 2):  # before, and beyond what was sent
        peer.answer(ACK, psn)
        peer.answer(NAK_SEQ, psn)
        peer.answer(0x62, psn)
    peer.answer(0x7F, PSNS - 3)  # reserved syndrome
    await wait_cycles(dut, 100)
    assert not bench.cqe.received and len(peer.seen) == 12
    assert bench.events["drop_ghost_ack"] == 16
    peer.answer(ACK, PSNS - 3)  # first half of the first
    await wait_cycles(dut, 100)
    assert not bench.cqe.received
    peer.answer(0x00, 3)  # three and a half; an ACK that counts credits
    await bench.complete(3)
    await wait_cycles(dut, 100)
    assert not bench.cqe.received
    peer.answer(ACK, 8)
    await bench.complete(3)
    await bench.quiet()


@cocotb.test()
async def the_window_stops_a_queue_pair_and_an_acknowledgement_opens_it(dut) -> None:
    bench = Bench(dut)
    await bench.start()
    peer = await bench.setup(3, psn=PSNS - 30, mtu=1, mute=True)
    bench.post(3, WRITE, 256 * 200)
    acknowledged = 0
    for step in (1, 20, WINDOW, 1, 1):
        await bench.quiet()
        assert acknowledged + WINDOW <= len(peer.seen) <= acknowledged + WINDOW + 16
        acknowledged += step
        peer.answer(ACK, PSNS - 30 + acknowledged - 1)
        await wait_cycles(dut, 50)
    await bench.quiet()
    peer.answer(ACK, PSNS - 30 + len(peer.seen) - 1)
    await bench.quiet()
    peer.answer(ACK, PSNS - 30 + 199)
    await bench.complete(1)


@cocotb.test()
async def a_queue_may_span_more_than_all_psns(dut) -> None:
    bench = Bench(dut)
    await bench.start()
    peer = await bench.setup(3, psn=77, mtu=1)
    for _ in range(4):
        bench.post(3, WRITE, 1 << 31)  # 2^23 PSNs each
    while len(peer.seen) < 300:
        await wait_cycles(dut, 10)
    peer.drop = {(peer.seen[-1].psn + 20) % PSNS}
    while len(peer.seen) < 400:
        await wait_cycles(dut, 10)
    assert bench.events["packet_seq_err"] == 1
    await bench.reset(3)
    await bench.quiet()


@cocotb.test()
async def acknowledgements_are_taken_one_a_cycle(dut) -> None:
    bench = Bench(dut)
    await bench.start()
    peers = [await bench.setup(q, mute=True) for q in range(2, 2 + QPS)]
    for i in range(30 * QPS):
        bench.post(2 + i % QPS, WRITE, 0, signaled=i >= 29 * QPS)
    while sum(len(p.seen) for p in peers) < 30 * QPS:
        await wait_cycles(dut, 10)
    for i in range(30 * QPS):
        peers[i % QPS].answer(ACK, i // QPS)
    begin = bench.cycle
    while bench.ack_rx.sent < 30 * QPS:
        await FallingEdge(dut.clk)
    assert bench.cycle - begin <= 30 * QPS + 8
    await bench.complete(QPS)


@cocotb.test()
@cocotb.parametrize((("syndrome", "status"), [(0x61, "WC_REM_INV_REQ_ERR"), (0x62, "WC_REM_ACCESS_ERR"), (0x63, "WC_REM_OP_ERR")]))
async def a_fatal_nak_ends_the_queue_pair(dut, syndrome: int, status: str) -> None:
    bench = Bench(dut, stall=0.2)
    await bench.start()
    peer = await bench.setup(7, mtu=1, mute=True)
    other = await bench.setup(8)
    for i in range(5):
        bench.post(7, WRITE, 300, signaled=i == 1)
    while len(peer.seen) < 10:
        await wait_cycles(dut, 10)
    peer.answer(syndrome, 4)  # of the third; acknowledges two
    await bench.complete(1)  # only the second wants to be told
    await bench.complete(1, status)
    await bench.complete(2, "WC_WR_FLUSH_ERR")
    event = await bench.qp_event.recv()
    assert (event.qpn, event.status) == (7, op(status))
    bench.post(7, SEND, 10)
    await bench.complete(1, "WC_WR_FLUSH_ERR")
    peer.answer(ACK, 9)
    bench.post(8)
    await bench.complete(1)
    await bench.quiet()
    assert len(peer.seen) == 10 and not other.expected and not bench.qp_event.received
    assert bench.events["qp_error"] == 1


@cocotb.test()
@cocotb.parametrize(code=[1, 2, 3, 5, 8])
async def rnr_nak_waits_its_time(dut, code: int) -> None:
    units = {1: 1, 2: 2, 3: 3, 5: 6, 8: 16}[code]
    bench = Bench(dut)
    await bench.start()
    peer = await bench.setup(9, rnr=2, mute=True)
    bench.post(9, SEND, 100)
    bench.post(9, SEND, 100)
    for attempt in range(1, 4):
        while len(peer.seen) < 2 * attempt:
            await wait_cycles(dut, 1)
        await wait_cycles(dut, 20)
        begin = bench.cycle
        peer.answer(RNR | code, 0)
        peer.answer(NAK_SEQ, 0)  # for the second; does not end the wait
        if attempt == 3:
            break
        while len(peer.seen) < 2 * attempt + 1:
            await wait_cycles(dut, 1)
        waited = bench.cycle - begin
        assert units * RNR_UNIT <= waited <= units * RNR_UNIT + 2 * 5 * QPS + 40, waited
    await bench.complete(1, "WC_RNR_RETRY_EXC_ERR")
    await bench.complete(1, "WC_WR_FLUSH_ERR")
    assert (await bench.qp_event.recv()).status == op("WC_RNR_RETRY_EXC_ERR")
    await bench.quiet()
    assert bench.events["rnr_nak_retry"] == 2 and bench.events["rnr_retry_exceeded"] == 1


@cocotb.test()
async def rnr_retry_7_is_without_limit(dut) -> None:
    bench = Bench(dut)
    await bench.start()
    peer = await bench.setup(9, rnr=7, mute=True)
    bench.post(9, SEND, 100)
    for attempt in range(1, 13):
        while len(peer.seen) < attempt:
            await wait_cycles(dut, 1)
        peer.answer(RNR | 1 if attempt < 12 else ACK, 0)
    await bench.complete(1)


@cocotb.test()
@cocotb.parametrize(timeout=[1, 3], retry=[0, 7])
async def timeouts_back_off_and_give_up(dut, timeout: int, retry: int) -> None:
    bench = Bench(dut)
    await bench.start()
    peer = await bench.setup(10, timeout=timeout, retry=retry, mtu=1, deaf=True)
    bench.post(10, WRITE, 700)
    bench.post(10, WRITE, 1, signaled=False)
    cqe = await bench.complete(1, "WC_RETRY_EXC_ERR", timeout=200_000)
    assert cqe[0].qpn == 10
    await bench.complete(1, "WC_WR_FLUSH_ERR")
    event = await bench.qp_event.recv()
    assert (event.qpn, event.status) == (10, op("WC_RETRY_EXC_ERR"))
    assert len(peer.seen) == 4 * (1 + retry), "all of it, each time"
    starts = [f.cycle for f in peer.seen[::4]]
    for attempt, (a, b) in enumerate(pairwise(starts)):
        time = ACK_UNIT << (timeout + min(attempt, 4))
        assert time <= b - a <= time + 2 * 5 * QPS + 60, (attempt, b - a)
    await bench.quiet()
    assert bench.events["local_ack_timeout"] == 1 + retry and bench.events["retry_exceeded"] == 1


@cocotb.test()
async def progress_restores_the_retries(dut) -> None:
    bench = Bench(dut)
    await bench.start()
    peer = await bench.setup(10, timeout=2, retry=2, mtu=1, mute=True)
    bench.post(10, WRITE, 256 * 4)
    for psn in range(4):  # two timeouts at each packet
        timeouts = bench.events.get("local_ack_timeout", 0)
        while bench.events.get("local_ack_timeout", 0) < timeouts + 2:
            await wait_cycles(dut, 1)
        await wait_cycles(dut, 30)
        assert peer.seen[-4 + psn].psn == psn, "begins again with the oldest that is not acknowledged"
        assert [f.opcode for f in peer.seen if f.psn == 1][-1] == op("RC_RDMA_WRITE_MIDDLE")
        peer.answer(ACK, psn)
    await bench.complete(1)


@cocotb.test()
async def time_may_jump(dut) -> None:
    bench = Bench(dut)
    await bench.start()
    peer = await bench.setup(10, timeout=31, mute=True)
    bench.post(10)
    await bench.quiet()
    assert len(peer.seen) == 1
    bench.now += ACK_UNIT << 31
    await wait_cycles(dut, 5 * QPS + 60)
    assert len(peer.seen) == 2
    bench.now += (ACK_UNIT << 32) - 1000
    await wait_cycles(dut, 500)
    assert len(peer.seen) == 2, "the second wait is longer"


@cocotb.test()
async def keepalive_finds_a_lost_peer(dut) -> None:
    bench = Bench(dut)
    await bench.start()
    idle_for = 600
    dut.keepalive_cycles.value = idle_for
    peer = await bench.setup(11, psn=PSNS - 2, timeout=3, retry=1)
    await bench.setup(12, mute=True, timeout=0)
    bench.post(11, SEND, 10)
    await bench.complete(1)
    begin = peer.seen[-1].cycle
    while peer.keepalives < 3:
        await wait_cycles(dut, 1)
    gaps = [b.cycle - a.cycle for a, b in pairwise(peer.seen)]
    assert all(idle_for <= gap <= idle_for + 10 * QPS + 100 for gap in gaps), (begin, gaps)
    # Traffic from the peer says that it lives.
    for _ in range(30):
        await FallingEdge(dut.clk)
        dut.active.value, dut.active_qpn.value = 1, 11
        await FallingEdge(dut.clk)
        dut.active.value = 0
        await wait_cycles(dut, 100)
    assert peer.keepalives == 3
    # Requests around a keep-alive that is lost: it comes first again.
    peer.drop = {(PSNS - 2 + 4) % PSNS}
    while len(peer.seen) < 5:
        await wait_cycles(dut, 1)
    for _ in range(SQ_DEPTH):
        bench.post(11, SEND, 10)
    await bench.complete(SQ_DEPTH)
    assert peer.keepalives == 4
    # Nobody there: a failure without a work request.
    peer.deaf = True
    event = await bench.qp_event.recv()
    assert (event.qpn, event.status) == (11, op("WC_RETRY_EXC_ERR"))
    bench.post(11, SEND, 10)
    await bench.complete(1, "WC_WR_FLUSH_ERR")


@cocotb.test()
async def refused_work_requests_change_nothing(dut) -> None:
    bench = Bench(dut, stall=0.2)
    await bench.start()
    peer = await bench.setup(2, mute=True)

    async def refused(status: str, qpn: int, opcode: int = WRITE, length: int = 1) -> None:
        request = bench.post(qpn, opcode, length, known=False, signaled=False)
        cqe = await bench.cqe.recv()
        assert (cqe.wr_id, cqe.qpn, cqe.status) == (request.wr_id, qpn, op(status))

    for qpn in (0, 1, 3, QPS + 1, QPS + 2, 0xFFFFFF):
        await refused("WC_WR_FLUSH_ERR", qpn)
    for name in ("RDMA_READ", "ATOMIC_CMP_AND_SWP", "ATOMIC_FETCH_AND_ADD", "RECV"):
        await refused("WC_LOC_QP_OP_ERR", 2, op(f"WR_{name}"))
    await refused("WC_LOC_LEN_ERR", 2, WRITE, (1 << 31) + 1)
    for _ in range(SQ_DEPTH):
        bench.post(2)
    for _ in range(2):
        await refused("WC_GENERAL_ERR", 2)
    while len(peer.seen) < SQ_DEPTH:
        await wait_cycles(dut, 1)
    peer.answer(ACK, 0)
    await bench.complete(1)
    bench.post(2)
    await refused("WC_GENERAL_ERR", 2)
    while len(peer.seen) < SQ_DEPTH + 1:
        await wait_cycles(dut, 1)
    peer.answer(ACK, SQ_DEPTH)
    await bench.complete(SQ_DEPTH)
    await bench.quiet()
    bench.cmd.send(op=op("QP_SETUP"), qpn=QPS + 2, attr={})
    assert await bench.answer.recv() == 0
    await bench.reset(1, answer=0)
    await bench.reset(9, answer=1)  # was never set up: nothing to forget


@cocotb.test()
async def payload_that_cannot_be_read_never_leaves_as_good(dut) -> None:
    bench = Bench(dut, stall=0.2)
    await bench.start()
    peer = await bench.setup(13, mtu=1)
    bench.bad_from = 0x10000
    bench.post(13, WRITE, 512, local_addr=0x1000)
    bench.post(13, WRITE, 1000, local_addr=0x10000 - 600)
    bench.post(13, WRITE, 100, local_addr=0x2000)
    await bench.complete(1)
    await bench.complete(1, "WC_LOC_PROT_ERR")
    await bench.complete(1, "WC_WR_FLUSH_ERR")
    event = await bench.qp_event.recv()
    assert (event.qpn, event.status) == (13, op("WC_LOC_PROT_ERR"))
    await bench.quiet()
    assert [f.psn for f in bench.spoiled] == [4, 5]
    assert len(peer.expected) == 2


@cocotb.test()
@cocotb.parametrize(stall=[0.0, 0.4])
async def reset_in_the_middle_leaves_nothing(dut, stall: float) -> None:
    bench = Bench(dut, stall, latency=60)
    await bench.start()
    for round_ in range(6):
        peer = await bench.setup(14, psn=1000 * round_, mtu=2, timeout=6, loss=0.05, dest=100 + round_)
        other = bench.peers[15] if 15 in bench.peers else await bench.setup(15, mtu=2)
        for _ in range(20):
            bench.post(14, WRITE, bench.rng.randrange(4000))
        for _ in range(5):
            bench.post(15, SEND, bench.rng.randrange(2000))
        while len(peer.seen) < 8 * round_:
            await wait_cycles(dut, 1)
        await bench.wqe.drained()
        await bench.reset(14)
        seen, reads = len(peer.seen), bench.cycle
        mine = [c for c in bench.cqe.received if c.qpn == 14]
        peer.answer(ACK, peer.psn)
        bench.ack_tx.send(qpn=14, psn=0, aeth={"syndrome": ACK})
        await wait_cycles(dut, 600)
        assert len(peer.seen) - seen <= 1, reads  # a frame that the bench had not joined to its payload yet
        assert [c for c in bench.cqe.received if c.qpn == 14] == mine
        assert not bench.acks, "no acknowledgement of a QP that is gone"
        done = [c for c in bench.cqe.received if c.qpn == 15]
        while other.expected or len(done) < 5 * (round_ + 1):
            await wait_cycles(dut, 10)
            done = [c for c in bench.cqe.received if c.qpn == 15]
        assert all(c.status == 0 for c in bench.cqe.received)
    bench.posted[14].clear()
    bench.cqe.received.clear()
    bench.cqe.cycles.clear()
    bench.post(14, known=False)
    assert (await bench.cqe.recv()).status == op("WC_WR_FLUSH_ERR")
    await bench.quiet()


@cocotb.test()
async def acknowledgements_leave_before_later_requests(dut) -> None:
    bench = Bench(dut, latency=5)
    await bench.start()
    for qpn in (2, 3, 4):
        await bench.setup(qpn, mtu=5, mute=True)
    for round_ in range(12):
        syndrome = (ACK, RNR | 4, NAK_SEQ, 0x62)[round_ % 4]
        bench.tx.stall = bench.tx_payload.stall = 0.9 if round_ % 3 else 0.0
        for _ in range(round_ % 4):
            bench.post(3, WRITE, 4096 if round_ % 2 else 64)
        await wait_cycles(dut, bench.rng.randrange(30))
        for i in range(round_ + 1):
            bench.ack_tx.send(qpn=2 + i % 2, psn=round_ * 100 + i, aeth={"syndrome": syndrome, "msn": round_})
        await bench.ack_tx.drained()
        bench.post(4, SEND, 100 * (round_ % 2))
        while not any(f.dqpn == bench.peers[4].dest and f.psn == round_ for f in bench.order):
            await wait_cycles(dut, 5)
        before = next(f for f in bench.order if f.dqpn == bench.peers[4].dest and f.psn == round_)
        acks = [f for f in bench.order[: bench.order.index(before)] if f.opcode == op("RC_ACKNOWLEDGE")]
        expected = [
            (bench.peers[2 + i % 2].dest, r * 100 + i, bytes([(ACK, RNR | 4, NAK_SEQ, 0x62)[r % 4]]) + r.to_bytes(3, "big"))
            for r in range(round_ + 1)
            for i in range(r + 1)
        ]
        assert [(f.dqpn, f.psn, f.ext) for f in acks] == expected
        assert not any(f.payload or f.se or f.ackreq for f in acks)


@cocotb.test()
@cocotb.parametrize(loss=[0.0, 0.02, 0.1], stall=[0.0, 0.3])
async def many_queue_pairs_at_random(dut, loss: float, stall: float) -> None:
    bench = Bench(dut, stall, latency=40)
    await bench.start()
    qpns = range(2, 2 + QPS)
    for qpn in qpns:
        await bench.setup(
            qpn, psn=bench.rng.choice([0, PSNS - 5, PSNS // 2 - 3, bench.rng.randrange(PSNS)]), mtu=bench.rng.choice([1, 1, 2, 3]),
            timeout=9, loss=loss, ack_loss=loss, not_ready=loss / 4,
        )  # fmt: skip
    total = left = 120 if loss else 250
    outstanding = dict.fromkeys(qpns, 0)
    done = 0
    while done < total:
        for qpn in qpns:
            if left and outstanding[qpn] < SQ_DEPTH and bench.rng.random() < 0.05:
                length = bench.rng.choice([0, 1, 64, 255, 256, 257, bench.rng.randrange(5000)])
                bench.post(qpn, bench.rng.choice([WRITE, WRITE_IMM, SEND, SEND_IMM]), length)
                outstanding[qpn] += 1
                left -= 1
        await wait_cycles(dut, 3)
        while bench.cqe.received:
            qpn = (await bench.complete(1))[0].qpn
            outstanding[qpn] -= 1
            done += 1
        assert bench.cycle < 150_000
    assert not any(p.expected for p in bench.peers.values())
    await bench.quiet()


@cocotb.test()
async def no_queue_pair_starves(dut) -> None:
    bench = Bench(dut)
    await bench.start()
    peers = [await bench.setup(q, mtu=4 if q < 6 else 1) for q in range(2, 10)]
    for peer in peers:
        for _ in range(20):
            bench.post(peer.qpn, WRITE, 50_000 if peer.qpn < 6 else 64, signaled=False)
    while len(bench.order) < 300:
        await wait_cycles(dut, 10)
    for peer in peers[:4]:
        # Between two services of a long message the other three long ones have one quantum each, and so have the short ones.
        mine = [i for i, f in enumerate(bench.order) if f.dqpn == peer.dest]
        assert max(b - a for a, b in pairwise(mine)) <= 3 * 2 + 4 * 16 + 1
    for peer in peers[4:]:
        assert len(peer.seen) == 20
        assert bench.order.index(peer.seen[-1]) < 200, "80 short messages are through while 1200 long packets wait"


# ---- rates ----


async def rate(bench: Bench, count: int) -> float:
    """Cycles a frame, from the 20th frame on."""
    while len(bench.order) < count:
        await wait_cycles(bench.dut, 1)
    return (bench.order[count - 1].cycle - bench.order[20].cycle) / (count - 21)


@cocotb.test()
@cocotb.parametrize(opcode=[WRITE, SEND])
async def one_queue_pair_sends_small_messages_at_full_rate(dut, opcode: int) -> None:
    bench = Bench(dut, latency=70)
    await bench.start()
    await bench.setup(2)
    bench.peers[2].mute = False
    posted = 0
    while len(bench.order) < 300:
        while posted < 300 and len(bench.posted[2]) < SQ_DEPTH:
            bench.post(2, opcode, 64)
            posted += 1
        await FallingEdge(dut.clk)
        while bench.cqe.received:
            await bench.complete(1)
    beats = -(-64 // bench.data.bytes_per_beat)
    assert await rate(bench, 300) <= max(3, beats + 1)


@cocotb.test()
async def queue_pairs_in_turn_send_small_messages_at_full_rate(dut) -> None:
    bench = Bench(dut, latency=70)
    await bench.start()
    for qpn in range(2, 2 + QPS):
        await bench.setup(qpn)
    for i in range(QPS * 20):
        bench.post(2 + i % QPS, WRITE, 64)
    beats = -(-64 // bench.data.bytes_per_beat)
    assert await rate(bench, QPS * 20) <= max(4, beats + 1)


@cocotb.test()
@cocotb.parametrize(qps=[1, 4])
async def large_messages_take_every_beat(dut, qps: int) -> None:
    bench = Bench(dut, latency=70)
    await bench.start()
    for qpn in range(2, 2 + qps):
        await bench.setup(qpn, mtu=5)
        bench.post(qpn, WRITE, 4096 * 40 // qps)
    await rate(bench, 40)
    first, last = bench.order[20].cycle, bench.order[39].cycle
    beats = 4096 // bench.data.bytes_per_beat
    assert (last - first) / 19 <= beats * 1.01


@cocotb.test()
async def latency(dut) -> None:
    bench = Bench(dut)
    await bench.start()
    await bench.setup(2)
    await bench.quiet()
    await FallingEdge(dut.clk)
    bench.post(2)
    begin = None
    for cycle in range(40):
        await FallingEdge(dut.clk)
        if begin is None and bench.wqe.sent:
            begin = cycle
        if int(dut.read_valid.value):
            break
    assert cycle - begin <= 12
    dut._log.info("wqe to read: %d cycles", cycle - begin)


# ---- building ----


def _ports(width: int) -> dict:
    return {
        "local_addr": Plain("input", "packet_pkg::local_addr_t"),
        "now": Plain("input", "logic [47:0]"),
        "keepalive_cycles": Plain("input", "logic [47:0]"),
        "cmd": Sink("roce_pkg::qp_cmd_t"),
        "answer": Source("logic"),
        "wqe": Sink("roce_pkg::rdma_wqe_t"),
        "cqe": Source("roce_pkg::rdma_cqe_t"),
        "qp_event": Source("roce_pkg::qp_event_t"),
        "ack_rx": Sink("roce_pkg::ack_rx_t"),
        "ack_tx": Sink("roce_pkg::ack_tx_t"),
        "active": Plain("input", "logic"),
        "active_qpn": Plain("input", "roce_pkg::qpn_t"),
        "read": Source("memory_pkg::dma_cmd_t"),
        "data": AxisIn(width),
        "tx": Source("packet_pkg::frame_tx_t"),
        "tx_payload": AxisOut(width),
        "rx_events": Plain("output", "roce_pkg::roce_rx_events_t"),
        "events": Plain("output", "roce_pkg::roce_tx_events_t"),
        "idle": Plain("output", "logic"),
    }


def _elaborate(**params: int) -> subprocess.CompletedProcess:
    """Verilator's verdict on the module with these parameters."""
    with tempfile.TemporaryDirectory() as folder:
        top = Path(folder) / "tb.sv"
        top.write_text(wrapper("roce_requester", params, _ports(512)))
        search = [arg for path in module_dirs() for arg in ("-y", str(path))]
        verilator = Path(sys.executable).parent / "verilator"
        return subprocess.run(
            [verilator, "--lint-only", "-Wno-lint", "-Wno-style", "--top-module", "tb_roce_requester", *search, *packages(), top],
            capture_output=True, text=True, env={**os.environ, "PATH": f"{verilator.parent}:{os.environ['PATH']}"},
        )  # fmt: skip


@pytest.mark.parametrize(
    "params", [{"QPS": 8}, {"QPS": 256}, {"QPS": 1024, "SQ_DEPTH": 128}, {"SQ_DEPTH": 4, "WINDOW": 32}], ids=str
)
def test_sizes_elaborate(params: dict[str, int]) -> None:
    result = _elaborate(**params)
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("params", [{"QPS": 12}, {"QPS": 2048}, {"SQ_DEPTH": 2}, {"WINDOW": 16}, {"ACK_EVERY": 3}], ids=str)
def test_bad_sizes_stop_elaboration(params: dict[str, int]) -> None:
    result = _elaborate(**params)
    assert result.returncode and f"roce_requester: {next(iter(params))} must be" in result.stderr


# Nothing but payload passing through depends on the width.
_BY_WIDTH = {64: "every_length.*mtu=[13]|cannot_be_read|reset|at_random/loss=0.02|full_rate|every_beat", 512: "."}


@pytest.mark.parametrize("width", _BY_WIDTH)
def test_roce_requester(width: int) -> None:
    run(
        "roce_requester",
        __file__,
        params={"QPS": QPS, "SQ_DEPTH": SQ_DEPTH, "CLOCK_HZ": CLOCK_HZ, "WINDOW": WINDOW},
        ports=_ports(width),
        env={"COCOTB_TEST_FILTER": _BY_WIDTH[width]},
    )
