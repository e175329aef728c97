# SPDX-License-Identifier: Apache-2.0
"""What is around roce_requester and roce_qp_control in their tests: memory, the wire, the far ends, the units that take commands.

The far end of each QP is a responder as the standard has it (IBTA 9.7.4), in a few lines: it checks every request packet against
what was posted, executes it, and answers. The wire loses, repeats and reorders, both ways.
"""

from __future__ import annotations

import random
from collections import deque
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import cocotb
from cocotb.triggers import FallingEdge
from nacelle_tb.bench import AxisSink as AxisIn
from nacelle_tb.bench import AxisSource as AxisOut
from nacelle_tb.bench import Plain, Port, Sink, Source
from nacelle_tb.roce import op, reth
from nacelle_tb.streams import AxisSink, AxisSource, StreamSink, StreamSource, start
from nacelle_tb.svtypes import constant, struct

PSNS = 1 << 24
TIMES = 1 << 48  # the device's clock wraps
MEMORY = random.Random(7).randbytes(1 << 20)
ACK, RNR, NAK_SEQ = 0x1F, 0x20, 0x60
DENIED = 0xFFFFFFFF  # an L_Key that is wrong

_VERBS = ("RDMA_WRITE", "RDMA_WRITE_WITH_IMM", "SEND", "SEND_WITH_IMM", "SEND_WITH_INV", "RDMA_READ", "ATOMIC_CMP_AND_SWP")
WRITE, WRITE_IMM, SEND, SEND_IMM, SEND_INV, READ, CAS = (op(f"WR_{n}") for n in _VERBS)
FADD = op("WR_ATOMIC_FETCH_AND_ADD")
ALL_VERBS = [WRITE, WRITE_IMM, SEND, SEND_IMM, SEND_INV, READ, CAS, FADD]
ATOMIC_NAMES = {CAS: "RC_COMPARE_SWAP", FADD: "RC_FETCH_ADD"}


def memory(address: int, length: int) -> bytes:
    """Content of device memory before anything was written, which repeats every MiB."""
    out = bytearray()
    while len(out) < length:
        offset = (address + len(out)) % len(MEMORY)
        out += MEMORY[offset : offset + length - len(out)]
    return bytes(out)


def remote(va: int, length: int) -> bytes:
    """Content of the far end's memory."""
    return memory(va + 12345, length)


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
    fence: bool = False
    swap_add: int = 0
    compare: int = 0
    lkey: int = 0

    @property
    def write(self) -> bool:
        return self.opcode in (WRITE, WRITE_IMM)

    @property
    def atomic(self) -> bool:
        return self.opcode in ATOMIC_NAMES

    @property
    def reads(self) -> bool:
        return self.atomic or self.opcode == READ

    @property
    def with_word(self) -> bool:
        return self.opcode in (WRITE_IMM, SEND_IMM, SEND_INV)

    def packets(self, mtu: int) -> int:
        return 1 if self.atomic else max(1, -(-self.length // mtu))

    @property
    def wc_opcode(self) -> int:
        names = {
            READ: "WC_RDMA_READ",
            CAS: "WC_COMP_SWAP",
            FADD: "WC_FETCH_ADD",
            WRITE: "WC_RDMA_WRITE",
            WRITE_IMM: "WC_RDMA_WRITE",
        }
        return op(names.get(self.opcode, "WC_SEND"))


@dataclass
class Sent:
    """A request packet that left."""

    qpn: int
    opcode: int
    psn: int
    se: bool
    ackreq: bool
    ext: bytes
    payload: bytes
    again: bool
    cycle: int


@dataclass
class Answered:
    """A READ or atomic that the peer has executed, in case it is retransmitted."""

    first: int  # PSN
    count: int
    request: Request
    original: int = 0


@dataclass
class Peer:
    """The far end of a QP."""

    bench: Bench
    qpn: int
    dest: int
    psn: int
    mtu: int
    mac: int
    ip: int
    selective: bool = False
    loss: float = 0.0
    ack_loss: float = 0.0
    repeat: float = 0.0
    reorder: float = 0.0
    not_ready: float = 0.0  # how often it has no receive posted for a SEND
    deaf: bool = False  # takes nothing
    mute: bool = False  # acknowledges nothing by itself
    drop: set[int] = field(default_factory=set)  # PSNs of requests to lose once
    drop_answer: set[int] = field(default_factory=set)  # PSNs of READ responses and atomic acknowledges to lose once
    expected: deque[Request] = field(default_factory=deque)
    offset: int = 0  # in the message that is coming
    nak_sent: bool = False
    msn: int = 0
    seen: list[Sent] = field(default_factory=list)
    keepalives: int = 0
    answered: deque[Answered] = field(default_factory=lambda: deque(maxlen=64))
    ahead: dict[int, Sent] = field(default_factory=dict)  # selective repeat: placed already
    words: dict[int, int] = field(default_factory=dict)  # memory that atomics change
    _late: Sent | None = None
    _late_answer: tuple[dict, bytes] | None = None

    # ---- answers ----

    def answer(self, syndrome: int, psn: int, msn: int | None = None) -> None:
        """Sends an acknowledgement."""
        self.respond("RC_ACKNOWLEDGE", psn, syndrome=syndrome, msn=self.msn if msn is None else msn)

    def respond(self, opcode: str, psn: int, payload: bytes = b"", syndrome: int = ACK, msn: int = 0, **more: Any) -> None:
        rng = self.bench.rng
        psn %= PSNS
        if opcode != "RC_ACKNOWLEDGE" and psn in self.drop_answer:
            self.drop_answer.remove(psn)
            return
        if rng.random() < self.ack_loss:
            return
        item = (
            {"qpn": self.qpn, "src_ip": self.ip, "opcode": op(opcode), "psn": psn, "payload_length": len(payload),
             "aeth": {"syndrome": syndrome, "msn": msn % PSNS}, **more}, payload,
        )  # fmt: skip
        if self._late_answer is None and rng.random() < self.reorder:
            self._late_answer = item
            return
        for _ in range(2 if rng.random() < self.repeat else 1):
            self.bench.respond(*item)
        if self._late_answer is not None:
            late, self._late_answer = self._late_answer, None
            self.bench.respond(*late)

    def read_responses(self, request: Request, psn: int, va: int, length: int) -> None:
        count = max(1, -(-length // self.mtu))
        data = remote(va, length)
        for i in range(count):
            name = "ONLY" if count == 1 else "FIRST" if i == 0 else "LAST" if i == count - 1 else "MIDDLE"
            self.respond(f"RC_RDMA_READ_RESPONSE_{name}", psn + i, data[i * self.mtu : (i + 1) * self.mtu])

    # ---- requests ----

    def take(self, f: Sent) -> None:
        """A request packet comes from the wire, which may lose, repeat or delay it."""
        self.seen.append(f)
        rng = self.bench.rng
        if self.deaf or rng.random() < self.loss:
            return
        if f.psn in self.drop:
            self.drop.remove(f.psn)
            return
        if self._late is None and rng.random() < self.reorder:
            self._late = f
            return
        for _ in range(2 if rng.random() < self.repeat else 1):
            self.handle(f)
        if self._late is not None:
            late, self._late = self._late, None
            self.handle(late)

    def handle(self, f: Sent) -> None:
        ahead = (f.psn - self.psn) % PSNS
        if ahead >= PSNS // 2:
            self.duplicate(f)
            return
        if ahead:
            if self.selective:
                if f.opcode in (op("RC_RDMA_WRITE_ONLY"),) and ahead < 128:
                    self.ahead[f.psn] = f
                    self.check_early(f)
                self.answer(NAK_SEQ, self.psn, f.psn)
            elif not self.nak_sent and not self.mute:
                self.answer(NAK_SEQ, self.psn)
            self.nak_sent = True
            return
        if f.opcode < 6 and self.bench.rng.random() < self.not_ready:
            self.answer(RNR | 1, self.psn)
            self.nak_sent = True
            return
        self.nak_sent = False
        self.execute(f)
        jumped = False
        while self.psn in self.ahead:
            self.execute(self.ahead.pop(self.psn))
            jumped = True
        if self.ahead:
            self.answer(NAK_SEQ, self.psn, f.psn)
        elif (jumped or f.ackreq) and not self.mute:
            self.answer(ACK, self.psn - 1)

    def check_early(self, f: Sent) -> None:
        """What is placed before its turn changes no byte that something before it changes (docs/reference/extensions.md)."""
        va, length = int.from_bytes(f.ext[:8], "big"), len(f.payload)
        psn, skip = self.psn, self.offset // self.mtu
        for request in self.expected:
            count = request.packets(self.mtu) - skip
            if (f.psn - psn) % PSNS < count:
                return
            psn, skip = psn + count, 0
            size = 8 if request.atomic else request.length if request.write else 0
            assert va + length <= request.remote_addr or request.remote_addr + size <= va or not length or not size
        raise AssertionError("placed before it was posted")

    def duplicate(self, f: Sent) -> None:
        for a in self.answered:
            at = (f.psn - a.first) % PSNS
            if at < a.count and f.opcode in (op("RC_RDMA_READ_REQUEST"), *map(op, ATOMIC_NAMES.values())):
                if a.request.atomic:
                    self.respond("RC_ATOMIC_ACKNOWLEDGE", f.psn, original=a.original)
                else:
                    skip = at * self.mtu
                    va, length = (a.request.remote_addr + skip) % 2**64, a.request.length - skip
                    assert f.ext == reth(va, a.request.rkey, length)
                    if not self.mute:
                        self.read_responses(a.request, f.psn, va, length)
                return
        if not self.mute:
            self.answer(ACK, self.psn - 1)

    def execute(self, f: Sent) -> None:
        """Takes the packet that is expected: checks it against what was posted."""
        if not self.expected or (self.offset == 0 and f.ext == bytes(16)):
            assert f.opcode == op("RC_RDMA_WRITE_ONLY") and f.ext == bytes(16) and not f.payload and f.ackreq
            self.keepalives += 1
            self.psn = (self.psn + 1) % PSNS
            return
        request = self.expected[0]
        if request.reads:
            self.expected.popleft()
            self.msn = (self.msn + 1) % PSNS
            count = request.packets(self.mtu)
            self.psn = (self.psn + count) % PSNS
            assert not f.payload
            entry = Answered(f.psn, count, request)
            self.answered.append(entry)
            if request.atomic:
                assert f.opcode == op(ATOMIC_NAMES[request.opcode])
                assert f.ext == request.remote_addr.to_bytes(8, "big") + request.rkey.to_bytes(4, "big") + (
                    request.swap_add.to_bytes(8, "big") + request.compare.to_bytes(8, "big")
                )
                entry.original = self.words.get(request.remote_addr, request.remote_addr % 1000)
                if request.opcode == FADD:
                    self.words[request.remote_addr] = (entry.original + request.swap_add) % 2**64
                elif entry.original == request.compare:
                    self.words[request.remote_addr] = request.swap_add
                if not self.mute:
                    self.respond("RC_ATOMIC_ACKNOWLEDGE", f.psn, original=entry.original)
            else:
                assert f.opcode == op("RC_RDMA_READ_REQUEST")
                assert f.ext == reth(request.remote_addr, request.rkey, request.length)
                if not self.mute:
                    self.read_responses(request, f.psn, request.remote_addr, request.length)
            self.bench.answers[id(request)] = entry
            return
        first = self.offset == 0
        length = min(self.mtu, request.length - self.offset)
        last = self.offset + length == request.length
        name = "RC_RDMA_WRITE_" if request.write else "RC_SEND_"
        alone = self.selective and request.write
        name += "ONLY" if (first and last) or alone else "FIRST" if first else "LAST" if last else "MIDDLE"
        if last and request.with_word:
            name += "_WITH_INVALIDATE" if request.opcode == SEND_INV else "_WITH_IMM"
        assert f.opcode == op(name), f"opcode {f.opcode:#x}, not {name}"
        ext = b""
        if alone and not (last and request.opcode == WRITE_IMM):
            ext = reth((request.remote_addr + self.offset) % 2**64, request.rkey, length)
        elif request.write and (first or alone):
            ext = reth(request.remote_addr, request.rkey, request.length)
        ext += request.imm_data.to_bytes(4, "big") if last and request.with_word else b""
        assert f.ext == ext, f"{f.ext.hex()} is not {ext.hex()}"
        assert f.payload == memory(request.local_addr + self.offset, length)
        assert f.se == (last and request.solicited)
        assert f.ackreq or not last
        self.offset += length
        self.psn = (self.psn + 1) % PSNS
        if last:
            self.expected.popleft()
            self.offset = 0
            self.msn = (self.msn + 1) % PSNS


class Bench:
    """Everything around the modules: memory, the far ends, and the clock."""

    def __init__(self, dut: Any, stall: float = 0.0, latency: int = 20, now: int = 0) -> None:
        self.dut = dut
        self.rng = random.Random(random.getrandbits(64))
        self.latency = latency
        self.write_latency = latency
        self.now = now  # does not wrap; the device's clock does
        self.cycle = 0
        self.bad_from: int | None = None  # reads from this address on fail
        self.bad_writes: set[int] = set()  # addresses of writes that fail
        self.peers: dict[int, Peer] = {}  # by our QP number
        self.order: list[Sent] = []
        self.spoiled: list[Sent] = []
        self.wr_ids = iter(range(1 << 30))
        self.posted: dict[int, deque[Request]] = {}
        self.answers: dict[int, Answered] = {}  # by id of the request
        self.placed: dict[int, int] = {}  # bytes that responses wrote and memory confirmed
        self.events: dict[str, int] = {}
        self.commands: list[tuple[str, SimpleNamespace]] = []
        self.refuse_commands: set[str] = set()
        self.parked: list[int] = []
        self.sent_bytes: dict[int, int] = {}

        def source(name: str, kind: str) -> StreamSource:
            return StreamSource(dut, name, kind, stall)

        self.cmd, self.wqe = source("cmd", "roce_pkg::qp_cmd_t"), source("wqe", "roce_pkg::rdma_wqe_t")
        self.response = source("response", "roce_pkg::rc_response_t")
        self.response_payload = AxisSource(dut, "response_payload", stall)
        self.fault = source("fault", "roce_pkg::tx_fault_t")
        self.receive_event = source("receive_event", "roce_pkg::qp_event_t")
        self.resume = source("resume", "roce_pkg::qp_index_t")
        self.write_done = source("write_done", "memory_pkg::dma_done_t")
        self.unit_answer = {n: StreamSource(dut, f"{n}_answer", "logic", stall) for n in ("receive", "response")}
        self.unit_cmd = {n: StreamSink(dut, f"{n}_cmd", "roce_pkg::qp_cmd_t", stall) for n in ("receive", "response")}
        self.answer = StreamSink(dut, "answer", "logic", stall)
        self.cqe = StreamSink(dut, "cqe", "roce_pkg::rdma_cqe_t", stall)
        self.qp_event = StreamSink(dut, "qp_event", "roce_pkg::qp_event_t", stall)
        self.packet = StreamSink(dut, "packet", "roce_pkg::tx_packet_t", stall)
        self.write = StreamSink(dut, "write", "memory_pkg::dma_cmd_t", stall)
        self.write_data = AxisSink(dut, "write_data", stall)
        self.parking = StreamSink(dut, "parked", "roce_pkg::qp_index_t", stall)
        self._events = struct("roce_events_pkg::roce_tx_events_t")
        self._view = struct("roce_requester_pkg::qp_view_t")
        for name in ("keepalive_cycles", "active", "active_qpn", "blocked", "view_qpn"):
            getattr(dut, name).value = 0
        dut.dead.value = dut.fencing.value = dut.passed.value = 0
        dut.now.value = now
        dut.flushed.value = 1
        self._flushing = 0  # packets on the wire that a flush waits for, and one for the end
        self._wire: deque[tuple[int, SimpleNamespace, int]] = deque()
        self._passing = 0  # payloads that were read, and have not been told of
        self._writes: deque[tuple[int, int, int]] = deque()
        self._dones: deque[tuple[int, int, bytes, int]] = deque()

    async def start(self) -> None:
        await start(self.dut)
        cocotb.start_soon(self._tick())

    def respond(self, fields: dict, payload: bytes) -> None:
        """A response reaches the device."""
        self.response.send(**fields)
        if payload:
            self.response_payload.send(payload)

    async def _tick(self) -> None:
        dut = self.dut
        while True:
            await FallingEdge(dut.clk)
            self.now += 1
            self.cycle += 1
            dut.now.value = self.now % TIMES
            while self.packet.received:
                self._wire.append((self.cycle + self.latency, self.packet.received.popleft(), self.packet.cycles.popleft()))
            while self._wire and self._wire[0][0] <= self.cycle:
                _, packet, cycle = self._wire.popleft()
                self._leave(packet, cycle)
                self._flushing = max(self._flushing - 1, min(self._flushing, 1))
            dut.passed.value = int(self._passing > 0)
            self._passing = max(0, self._passing - 1)
            if int(dut.flush_requests.value):
                self._flushing = len(self._wire) + 1
            elif int(dut.flush_acks.value):
                self._flushing = 1
            elif self._flushing == 1:
                self._flushing = 0
            dut.flushed.value = int(not self._flushing)
            while self.write.received:
                command = self.write.received.popleft()
                self.write.cycles.popleft()
                assert command.length > 0
                self._writes.append((command.addr, command.length, command.key))
            while self._writes and self.write_data.packets:
                address, length, key = self._writes.popleft()
                data, _ = self.write_data.packets.popleft()
                self.write_data.spans.popleft()
                assert len(data) == length
                self._dones.append((self.cycle + self.write_latency, address, data, key))
            while self._dones and self._dones[0][0] <= self.cycle:
                _, address, data, _ = self._dones.popleft()
                bad = address in self.bad_writes
                if not bad:
                    self.placed.update(zip(range(address, address + len(data)), data, strict=True))
                self.write_done.send(error=int(bad))
            for name, sink in self.unit_cmd.items():
                while sink.received:
                    self.commands.append((name, sink.received.popleft()))
                    sink.cycles.popleft()
                    self.unit_answer[name].send(int(name not in self.refuse_commands))
            while self.parking.received:
                self.parked.append(self.parking.received.popleft())
                self.parking.cycles.popleft()
            value = int(dut.events.value)
            if value:
                for name, bit in vars(self._events.unpack(value)).items():
                    if bit:
                        self.events[name] = self.events.get(name, 0) + 1
            if int(dut.sent.value):
                index = int(dut.sent_index.value)
                self.sent_bytes[index] = self.sent_bytes.get(index, 0) + int(dut.sent_bytes.value)

    def _leave(self, packet: SimpleNamespace, cycle: int) -> None:
        """A packet goes on the wire, with its payload."""
        assert bool(packet.empty) == (packet.length == 0)
        self._passing += not packet.empty
        ext_bytes = constant(f"roce_wire_pkg::ext_headers({packet.opcode}) & 63")
        ext = packet.ext.to_bytes(28, "big")[:ext_bytes]
        sent = Sent(
            packet.qpn, packet.opcode, packet.psn, bool(packet.se), bool(packet.ackreq), ext,
            memory(packet.addr, packet.length), bool(packet.again), cycle,
        )  # fmt: skip
        self.order.append(sent)
        if self.bad_from is not None and packet.length and packet.addr + packet.length > self.bad_from:
            self.spoiled.append(sent)
            self.fault.send(qpn=packet.qpn, psn=packet.psn)
        else:
            self.peers[packet.qpn].take(sent)

    # ---- keys ----

    async def kill(self, lkey: int) -> None:
        """This L_Key, and no other, is not valid any more."""
        await FallingEdge(self.dut.clk)
        self.dut.dead.value = lkey
        await FallingEdge(self.dut.clk)

    async def fence(self, timeout: int = 20_000) -> int:
        """A fence begins and passes: the cycles it takes."""
        self.dut.fencing.value = 1
        cycles = 0
        while True:
            await FallingEdge(self.dut.clk)
            cycles += 1
            if int(self.dut.fence_over.value):
                break
            assert cycles < timeout, "the fence does not end"
        self.dut.fencing.value = 0
        return cycles

    def touches(self, lkey: int) -> bool:
        """Memory is, or is to be, read or written under this key."""
        waiting = [p for _, p, _ in self._wire] + list(self.packet.received)
        if any(p.key == lkey and not p.empty for p in waiting):
            return True
        return any(key == lkey for *_, key in (*self._writes, *self._dones)) or any(c.key == lkey for c in self.write.received)

    # ---- QPs ----

    def attributes(self, peer: Peer, psn: int, mtu: int, timeout: int, retry: int, rnr: int, max_rd: int) -> dict:
        return {
            "dst_mac": peer.mac, "dst_ip": peer.ip, "dest_qp_num": peer.dest, "sq_psn": psn, "path_mtu": mtu, "timeout": timeout,
            "retry_cnt": retry, "rnr_retry": rnr, "max_rd_atomic": max_rd, "selective_repeat": int(peer.selective),
        }  # fmt: skip

    async def setup(
        self, qpn: int, psn: int = 0, mtu: int = 3, timeout: int = 0, retry: int = 7, rnr: int = 7, max_rd: int = 8,
        state: str = "QPS_RTS", expect: int = 1, **more: Any,
    ) -> Peer:  # fmt: skip
        """Sets a QP up, with its far end."""
        dest = more.pop("dest", (0x10000 + qpn * 3) % PSNS)
        peer = Peer(self, qpn, dest, psn, 128 << mtu, 0x020000010000 + qpn, (0x20010DB8_00000000 + qpn % 4096) << 64 | 1, **more)
        attr = self.attributes(peer, psn, mtu, timeout, retry, rnr, max_rd)
        self.cmd.send(op=op("QP_SETUP"), qpn=qpn, state=op(state), attr=attr)
        assert await self.answer.recv() == expect
        if expect:
            self.peers[qpn] = peer
            self.posted[qpn] = deque()
        return peer

    async def modify(self, qpn: int, state: str, answer: int = 1, attr: dict | None = None) -> None:
        self.cmd.send(op=op("QP_MODIFY"), qpn=qpn, state=op(state), attr=attr or {})
        assert await self.answer.recv() == answer

    async def reset(self, qpn: int, answer: int = 1) -> None:
        self.cmd.send(op=op("QP_RESET"), qpn=qpn)
        assert await self.answer.recv() == answer

    async def look(self, qpn: int) -> SimpleNamespace:
        """The view of a QP."""
        await FallingEdge(self.dut.clk)
        self.dut.view_qpn.value = qpn
        await FallingEdge(self.dut.clk)
        return self._view.unpack(int(self.dut.view.value))

    def post(self, qpn: int, opcode: int = WRITE, length: int = 64, *, known: bool = True, **more: Any) -> Request:
        """Posts a work request with random content; the far end expects it."""
        rng = self.rng
        wr_id = next(self.wr_ids) & 0xFFFF
        # Each READ and atomic has a place of its own, so that data in memory identifies its request.
        address = rng.randrange(1 << 30) if opcode not in (READ, CAS, FADD) else (1 << 34) + (wr_id << 22) + rng.randrange(64)
        remote_addr = (
            rng.getrandbits(64) & ~7 if opcode in (READ, WRITE, WRITE_IMM, SEND, SEND_IMM, SEND_INV) else rng.randrange(8) * 8
        )
        request = Request(
            qpn, opcode, length,
            local_addr=more.pop("local_addr", address),
            remote_addr=more.pop("remote_addr", remote_addr), rkey=rng.getrandbits(32), imm_data=rng.getrandbits(32),
            solicited=more.pop("solicited", rng.random() < 0.5), signaled=more.pop("signaled", True), wr_id=wr_id,
            fence=more.pop("fence", False), lkey=more.pop("lkey", 0), swap_add=rng.getrandbits(64),
            compare=more.pop("compare", rng.getrandbits(64)),
        )  # fmt: skip
        assert not more
        self.wqe.send(**vars(request))
        if known:
            if request.lkey != DENIED:
                self.peers[qpn].expected.append(request)
            self.posted[qpn].append(request)
        return request

    def check_result(self, request: Request) -> None:
        """What a READ or atomic brought is in memory, confirmed."""
        length = 8 if request.atomic else request.length
        got = bytes(self.placed.pop(request.local_addr + i) for i in range(length))
        if request.atomic:
            assert int.from_bytes(got, "little") == self.answers.pop(id(request)).original
        else:
            assert got == remote(request.remote_addr, length)

    async def complete(self, count: int, status: str = "WC_SUCCESS", timeout: int = 50_000) -> list[SimpleNamespace]:
        """Takes `count` completions, which must come in the order posted on each QP."""
        got = []
        for _ in range(count):
            cqe = await self.cqe.recv(timeout)
            while not self.posted[cqe.qpn][0].signaled and cqe.wr_id != self.posted[cqe.qpn][0].wr_id:
                skipped = self.posted[cqe.qpn].popleft()
                if skipped.reads and status == "WC_SUCCESS":
                    self.check_result(skipped)
            request = self.posted[cqe.qpn].popleft()
            assert (cqe.wr_id, cqe.status) == (request.wr_id, op(status)), f"{cqe}, expected {request}"
            assert cqe.opcode == request.wc_opcode
            assert cqe.with_imm == (request.opcode in (WRITE_IMM, SEND_IMM))
            if request.reads and status == "WC_SUCCESS":
                self.check_result(request)
            got.append(cqe)
        return got

    async def quiet(self, timeout: int = 20_000) -> None:
        """Waits until the modules say that they are idle."""
        calm = 0
        for _ in range(timeout):
            await FallingEdge(self.dut.clk)
            busy = self._wire or self._writes or self._dones or self.response.busy or self.response_payload.busy
            calm = calm + 1 if int(self.dut.idle.value) and not busy else 0
            if calm == 3:
                return
        raise AssertionError("not idle")


def ports(width: int, qps: int) -> dict[str, Port]:
    """Of requester_bench."""
    return {
        "now": Plain("input", "logic [47:0]"),
        "keepalive_cycles": Plain("input", "logic [47:0]"),
        "cmd": Sink("roce_pkg::qp_cmd_t"),
        "answer": Source("logic"),
        "receive_cmd": Source("roce_pkg::qp_cmd_t"),
        "receive_answer": Sink("logic"),
        "response_cmd": Source("roce_pkg::qp_cmd_t"),
        "response_answer": Sink("logic"),
        "receive_event": Sink("roce_pkg::qp_event_t"),
        "qp_event": Source("roce_pkg::qp_event_t"),
        "view_qpn": Plain("input", "roce_wire_pkg::qpn_t"),
        "view": Plain("output", "roce_requester_pkg::qp_view_t"),
        "peer_write": Plain("output", "logic"),
        "peer_index": Plain("output", "roce_pkg::qp_index_t"),
        "peer": Plain("output", "roce_requester_pkg::sq_peer_t"),
        "flush_requests": Plain("output", "logic"),
        "flush_acks": Plain("output", "logic"),
        "flushed": Plain("input", "logic"),
        "wqe": Sink("roce_pkg::rdma_wqe_t"),
        "cqe": Source("roce_pkg::rdma_cqe_t"),
        "packet": Source("roce_pkg::tx_packet_t"),
        "fault": Sink("roce_pkg::tx_fault_t"),
        "passed": Plain("input", "logic"),
        "dead": Plain("input", "logic [31:0]"),
        "fencing": Plain("input", "logic"),
        "fence_over": Plain("output", "logic"),
        "response": Sink("roce_pkg::rc_response_t"),
        "response_payload": AxisIn(width),
        "write": Source("memory_pkg::dma_cmd_t"),
        "write_data": AxisOut(width),
        "write_done": Sink("memory_pkg::dma_done_t"),
        "active": Plain("input", "logic"),
        "active_qpn": Plain("input", "roce_wire_pkg::qpn_t"),
        "blocked": Plain("input", f"logic [{qps - 1}:0]"),
        "parked": Source("roce_pkg::qp_index_t"),
        "resume": Sink("roce_pkg::qp_index_t"),
        "sent": Plain("output", "logic"),
        "sent_index": Plain("output", "roce_pkg::qp_index_t"),
        "sent_bytes": Plain("output", "logic [12:0]"),
        "events": Plain("output", "roce_events_pkg::roce_tx_events_t"),
        "idle": Plain("output", "logic"),
    }
