# SPDX-License-Identifier: Apache-2.0
"""roce_requester: every frame is checked against scapy, its payload against memory, its sequence by a model of the peer."""

from __future__ import annotations

import random
from collections import deque
from dataclasses import dataclass, field
from types import SimpleNamespace

import cocotb
import pytest
from cocotb.triggers import FallingEdge
from nacelle_tb.bench import AxisSink as AxisIn
from nacelle_tb.bench import AxisSource as AxisOut
from nacelle_tb.bench import Plain, Sink, Source, run
from nacelle_tb.roce import op, reth
from nacelle_tb.streams import AxisSink, AxisSource, StreamSink, StreamSource, start, wait_cycles
from nacelle_tb.svtypes import struct
from scapy.contrib.roce import BTH
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether

QPS = 16
SQ_DEPTH = 32
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
    rnr: float = 0.0
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
        if self.rnr and f.opcode < 6 and self.bench.rng.random() < self.rnr:
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

    async def setup(self, qpn: int, psn: int = 0, mtu: int = 3, timeout: int = 0, retry: int = 7, rnr: int = 7, **more) -> Peer:
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

    def post(self, qpn: int, opcode: int = WRITE, length: int = 64, *, known: bool = True, **more) -> Request:
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


@pytest.mark.parametrize("width", [64, 512])
def test_roce_requester(width: int) -> None:
    run(
        "roce_requester",
        __file__,
        params={"QPS": QPS, "SQ_DEPTH": SQ_DEPTH, "CLOCK_HZ": CLOCK_HZ},
        ports=_ports(width),
    )
