# SPDX-License-Identifier: Apache-2.0
"""What surrounds the RPC engine in its tests: callers on queue pairs, their transport, keys, memory and sockets.

The models hold the engine to its duties as they go: queue depths, receives posted again before an answer leaves, keys of
extents that do not overlap, every page of an extent zero when it is granted, no byte of a region that somebody has changed. What is
granted is dirty again at once, as a caller would leave it.
"""

from __future__ import annotations

import os
import random
import struct as binary
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import cocotb
from cocotb.handle import SimHandleBase
from cocotb.triggers import RisingEdge
from nacelle_tb.bench import AxiMaster, Plain, Several, Sink, Source, run
from nacelle_tb.device import LOAD_BYTES, description, standard
from nacelle_tb.memory import AxiMemory
from nacelle_tb.streams import StreamSink, StreamSource, start, wait_cycles
from nacelle_tb.svtypes import constant, struct

QPS = int(os.environ.get("RPC_QPS", "8"))
CONTEXTS = int(os.environ.get("RPC_CONTEXTS", "1"))  # of a connection at most
LONG = os.environ.get("RPC_LONG", "0") == "1"  # the engine takes long set-ups
LONGEST_W = int(os.environ.get("RPC_LONGEST_W", "31"))  # no WRITE has more than 2^LONGEST_W bytes
READ_BACK = os.environ.get("RPC_READ_BACK", "1") == "1"
PD = int(os.environ.get("RPC_PD", "0"))
SOCKETS = 2
MAX_REGIONS = 32
SQ_DEPTH = 32
CTRL_BASE = 0
CTRL_BYTES = constant("rpc_pkg::CTRL_BYTES")
PAGE = 4096
DESCRIPTION = description(standard())


def heap(qps: int, contexts: int = 1) -> tuple[int, int]:
    """(base, size) of the memory for regions."""
    return description_base(qps, contexts) + 0x8000, max(96 if contexts == 1 else 192, 3 * qps) * PAGE


def description_base(qps: int, contexts: int = 1) -> int:
    """Where the load and the description of the device lie."""
    return CTRL_BASE + qps * contexts * CTRL_BYTES


HEAP_BASE, HEAP_SIZE = heap(QPS, CONTEXTS)
LOAD_BASE = description_base(QPS, CONTEXTS)
DESCRIPTION_BASE = LOAD_BASE + LOAD_BYTES
SHARED = 9
FUNCTIONS = [{1, 2, 7, SHARED}, {3, 4, 5, 6, 8, SHARED}]  # of socket 0, of socket 1

INTERNAL, SINGLE_SEND, INPUT, OUTPUT = 1, 2, 4, 8
CANCELLED = constant("compute_pkg::RESULT_CANCELLED")
DEADLINE = constant("compute_pkg::RESULT_DEADLINE")
TICK_W = constant("rpc_pkg::TICK_W")
CYCLES_PER_MS = 250_000
MESSAGE, CANCEL = 1, 2  # immediates of SENDs on a connection with contexts


def _values(package: str, names: str) -> dict[str, int]:
    return {name: constant(f"{package}::{name}") for name in names.split()}


WR = _values("roce_pkg", "WR_RDMA_WRITE WR_RDMA_WRITE_WITH_IMM WR_SEND WR_SEND_WITH_IMM WR_RECV")
WC = _values("roce_pkg", "WC_SUCCESS WC_WR_FLUSH_ERR WC_RETRY_EXC_ERR WC_SEND WC_RDMA_WRITE WC_RECV WC_RECV_RDMA_WITH_IMM")
MR = _values("roce_pkg", "MR_REGISTER MR_DEREGISTER_GROUP")
CONN = _values("roce_pkg", "CONN_OPENED CONN_CLOSED")


@dataclass
class Region:
    """One region of an AAR."""

    flags: int
    size: int
    host_addr: int = 0
    host_rkey: int = 0
    requested: int = 0

    def record(self) -> bytes:
        head = (self.flags << 56 | self.requested).to_bytes(8, "big")
        return head + binary.pack(">QII", self.host_addr, self.host_rkey, self.size)

    def long_record(self) -> bytes:
        return binary.pack(">B7xQQI4x", self.flags, self.host_addr, self.size, self.host_rkey)

    @property
    def pages(self) -> int:
        return -(-self.size // PAGE)


@dataclass
class Step:
    """A step of a chain."""

    function: int
    first: int
    count: int
    user: int = 0

    def record(self) -> bytes:
        return bytes([self.function, self.first, self.count, 0]) + self.user.to_bytes(4, "big")


def long_set_up(regions: list[Region], steps: Sequence[Step] = (), deadline: int = 0) -> bytes:
    """The message that requests `regions` for calls with a deadline in milliseconds, and a chain."""
    head = binary.pack(">BBBBI", 0x11, len(regions), len(steps), 0, deadline)
    return head + b"".join(step.record() for step in steps) + b"".join(region.long_record() for region in regions)


def number_of(send: Any) -> int:
    """The context that a send is of."""
    return send.wr_id % 4


def writes_of(region: Region, addr: int) -> list[tuple[int, int, int, bool]]:
    """(address at the caller, bytes, address in the device, whether others of it follow) of each WRITE that returns an output."""
    most = 1 << LONGEST_W
    starts = range(0, max(1, region.size), most) if LONG else [0]
    return [(region.host_addr + at, min(most, region.size - at), addr + at, at + most < region.size) for at in starts]


def aar(regions: list[Region], count: int | None = None, kind: int = 1) -> bytes:
    """The message that requests `regions`."""
    return bytes([kind, len(regions) if count is None else count, 0, 0]) + b"".join(r.record() for r in regions)


def regions(rng: random.Random, inputs: int, outputs: int, internal: int = 0, size: int = 300) -> list[Region]:
    """Some regions with random host addresses."""
    flags = [INPUT] * inputs + [OUTPUT] * outputs + [INTERNAL] * internal
    return [
        Region(f, rng.randrange(1, size), *((0, 0) if f & INTERNAL else (rng.getrandbits(64), rng.getrandbits(32)))) for f in flags
    ]


def parse_advert(message: bytes) -> list[tuple[int, int, int]]:
    """(addr, rkey, size) of each region of an A."""
    assert message[:2] == bytes([2, (len(message) - 4) // 16]) and message[2:4] == b"\0\0", message.hex()
    return [binary.unpack_from(">QII", message, at) for at in range(4, len(message), 16)]


def parse_long_advert(message: bytes) -> list[tuple[int, int, int]]:
    """Likewise of the answer to a long set-up."""
    assert message[:4] == bytes([0x12, (len(message) - 4) // 24, 0, 0]), message.hex()
    found = [binary.unpack_from(">QQII", message, at) for at in range(4, len(message), 24)]
    assert not any(reserved for *_, reserved in found)
    return [(addr, rkey, size) for addr, size, rkey, _ in found]


@dataclass
class Qp:
    """A connection as the transport and the caller see it."""

    qpn: int
    receives: deque = field(default_factory=deque)  # wqes posted
    waiting: deque = field(default_factory=deque)  # of the caller, until a receive is posted
    unacknowledged: list = field(default_factory=list)  # sends
    sent: deque = field(default_factory=deque)  # what the caller got: ("send", bytes, wqe), ("write", bytes, wqe)
    keys: dict = field(default_factory=dict)  # rkey -> (addr, length)
    acknowledge: bool = True  # the caller's transport answers
    broken: bool = False
    impatient: bool = False  # sends the next thing before it has the answer: both receives may be in use
    open: bool = False
    granted: list = field(default_factory=list)  # the caller's view: (addr, rkey, size)
    contexts: list = field(default_factory=list)  # agreed; empty: it is a connection without contexts

    @property
    def qp(self) -> Qp:
        return self

    def naming(self, what: bytes | int) -> bytes | int:
        """What the caller sends, as it is."""
        return what

    def immediate(self, value: int) -> int:
        """That of an answer."""
        return value


@dataclass
class Context:
    """One context of a connection: can take the place of a Qp in everything that a caller does."""

    qp: Qp
    number: int
    sent: deque = field(default_factory=deque)
    keys: dict = field(default_factory=dict)
    granted: list = field(default_factory=list)

    @property
    def qpn(self) -> int:
        return self.qp.qpn

    def naming(self, what: bytes | int) -> tuple[bytes, int] | int:
        """What the caller sends, with the number of the context."""
        return (what, self.immediate(MESSAGE)) if isinstance(what, bytes) else self.immediate(what)

    def immediate(self, value: int) -> int:
        """An immediate of this context."""
        return self.number << 24 | value


@dataclass
class Job:
    """One call as a socket got it."""

    socket: int
    beats: list
    window: tuple[int, int]
    cycle: int

    @property
    def tag(self) -> int:
        return self.beats[0].tag


class World:
    """Everything around the engine. `stall` is used on every port, `latency` is the memory's."""

    def __init__(self, dut: SimHandleBase, stall: float = 0.0, latency: Any = (20, 40), keys: int = 1 << 16) -> None:
        self.dut, self.stall = dut, stall
        self.rng = random.Random(random.getrandbits(64))
        self.memory = AxiMemory(dut, "mem", HEAP_BASE + HEAP_SIZE, latency=latency, stall=stall, noise=True)
        self.memory.content[:] = self.rng.randbytes(len(self.memory.content))
        self.clear_memory = AxiMemory(dut, "clear_mem", HEAP_BASE + HEAP_SIZE, latency=latency, stall=stall, noise=True)
        self.clear_memory.content = self.memory.content
        self.clear_memory.errors = self.memory.errors
        self.clear_memory.on_write = self._cleared
        dut.others_write.value = 0
        dut.memory_per_caller.value = dut.quota.value = 0
        dut.now.value = self.now = 0
        self.jumped = -(1 << 20)  # cycle in which time did
        self.heap = bytearray(self.memory.read(HEAP_BASE, HEAP_SIZE))  # what it must hold, but for what the engine clears
        dut.held.value = 0
        dut.paused.value = 0
        dut.functions.value = sum(1 << 128 * i + code for i, codes in enumerate(FUNCTIONS) for code in codes)
        self.conn_event = StreamSource(dut, "conn_event", "roce_pkg::conn_event_t", stall, noise=True)
        self.conn_answer = StreamSink(dut, "conn_answer", "roce_pkg::conn_answer_t", stall)
        self.unanswered: set[int] = set()  # QPs with a connection event
        self.wqe = StreamSink(dut, "wqe", "roce_pkg::rdma_wqe_t", stall)
        self.cqe = StreamSource(dut, "cqe", "roce_pkg::rdma_cqe_t", stall, noise=True)
        self.mr_cmd = StreamSink(dut, "mr_cmd", "roce_pkg::mr_cmd_t", stall)
        self.mr_rsp = StreamSource(dut, "mr_rsp", "roce_pkg::mr_rsp_t", stall, noise=True)
        self.close = StreamSink(dut, "close", "roce_wire_pkg::qpn_t", stall)
        self.job = [StreamSink(dut, f"job{i}", "compute_pkg::job_t", stall) for i in range(SOCKETS)]
        self.done = [StreamSource(dut, f"done{i}", "compute_pkg::done_t", stall, noise=True) for i in range(SOCKETS)]
        self.qps = {qpn: Qp(qpn) for qpn in range(2, 2 + QPS)}
        self.jobs: deque[Job] = deque()
        self.kernel: Callable[[Job], int | None] | None = None  # code of a result at once, None: the test ends it
        self.kernel_cycles = (0, 30)
        self.ack_cycles = (5, 60)
        self.free_keys = keys
        self.description_allowed = True
        self.description_key: int | None = None
        self.events = {name: 0 for name in struct("compute_pkg::rpc_events_t").fields}
        self.cycle = 0
        self.wqe_cycles: deque[int] = deque()

    async def start(self) -> None:
        """Resets the engine, lets the world turn, and waits until the description is published, or cannot be."""
        await start(self.dut)
        for task in (
            self._clock(),
            self._transport(),
            self._protect(),
            self._manager(),
            *(self._socket(i) for i in range(SOCKETS)),
        ):
            cocotb.start_soon(task)
        await self.until(lambda: int(self.dut.idle.value))
        if self.description_key is not None:
            assert self.memory.read(DESCRIPTION_BASE, len(DESCRIPTION)) == DESCRIPTION

    # ---- surroundings ----

    async def _clock(self) -> None:
        kind = struct("compute_pkg::rpc_events_t")
        names = ["conn_answer", "wqe", "mr_cmd", "close", *(f"job{i}" for i in range(SOCKETS))]
        offers = [getattr(self.dut, f"{name}_valid") for name in names] + [self.dut.mem_arvalid, self.dut.mem_awvalid]
        inputs = ["conn_event_valid", "cqe_valid", "mr_rsp_valid", *(f"done{i}_valid" for i in range(SOCKETS))]
        inputs += ["mem_rvalid", "mem_bvalid", "clear_mem_bvalid"]
        comes = [getattr(self.dut, name) for name in inputs]
        idle = came = False
        while True:
            await RisingEdge(self.dut.clk)
            self.cycle += 1
            was, idle = idle, bool(int(self.dut.idle.value))
            if idle:
                assert not any(int(offer.value) for offer in offers), "idle with something to give"
            if idle or was:
                late = self.cycle - self.jumped < 8 * QPS * CONTEXTS  # a deadline is found
                before, came = came, late or any(int(come.value) for come in comes)
                assert idle or before or came, "goes on by itself although it was idle"
            word = int(self.dut.events.value)
            if word:
                for name, value in vars(kind.unpack(word)).items():
                    self.events[name] += value

    async def later(self, cycles: tuple[int, int]) -> None:
        await wait_cycles(self.dut, self.rng.randint(*cycles))

    async def until(self, condition: Callable[[], Any], cycles: int = 20_000) -> None:
        """Waits for `condition`, at most `cycles`."""
        for _ in range(cycles):
            if condition():
                return
            await RisingEdge(self.dut.clk)
        raise AssertionError(f"nothing for {cycles} cycles")

    async def settle(self, cycles: int = 20_000) -> None:
        """Until the engine is idle, and stays so."""
        quiet = 0
        for _ in range(cycles):
            await RisingEdge(self.dut.clk)
            busy = self.memory.outstanding() or self.clear_memory.outstanding()
            quiet = quiet + 1 if int(self.dut.idle.value) and not busy else 0
            if quiet > 100:
                assert self.memory.read(HEAP_BASE, HEAP_SIZE) == self.heap, "the engine wrote into regions"
                if self.description_key is not None and not self.memory.errors:
                    load = self.load()
                    assert load["connections"] == sum(qp.open for qp in self.qps.values())
                    assert load["calls"] == self.events["call_started"]
                return
        raise AssertionError("never idle")

    def load(self) -> dict[str, int]:
        """How busy the device is, as callers read it."""
        record = self.memory.read(LOAD_BASE, LOAD_BYTES)
        names = ("connections", "running", "waiting", "reserved", "memory_held", "calls")
        load = dict(zip(names, binary.unpack_from(">4I2Q", record), strict=True))
        assert not load.pop("reserved") and not any(record[32:])
        return load

    def _cleared(self, addr: int, data: bytes) -> None:
        """The engine clears a beat: part of no region."""
        assert HEAP_BASE <= addr and not data.strip(b"\0")
        for qp in self.qps.values():
            clash = any(at < addr + len(data) and addr < at + length for at, length in qp.keys.values())
            assert not clash, "cleared a region that is in use"
        self.heap[addr - HEAP_BASE : addr - HEAP_BASE + len(data)] = data

    def _dirty(self, addr: int, length: int) -> None:
        """A caller or a kernel writes."""
        data = self.rng.randbytes(length)
        self.memory.write(addr, data)
        self.heap[addr - HEAP_BASE : addr - HEAP_BASE + length] = data

    async def _transport(self) -> None:
        while True:
            wqe = await self.wqe.recv(timeout_cycles=1 << 30)
            self.wqe_cycles.append(self.cycle)
            qp = self.qps[wqe.qpn]
            if not qp.open:
                continue  # the QP is in RESET: dropped
            if wqe.opcode == WR["WR_RECV"]:
                qp.receives.append(wqe)
                assert len(qp.receives) <= 2 * max(1, len(qp.contexts)), "too many receives"
                assert len({receive.local_addr for receive in qp.receives}) == len(qp.receives), "a buffer posted twice"
                assert wqe.length == 1024
                if qp.broken:
                    self._flush(qp)
                else:
                    self._arrive(qp)
                continue
            assert qp.broken or qp.impatient or qp.receives, "answered before a receive was posted again"
            content = self.memory.read(wqe.local_addr, wqe.length)
            kind = "send" if wqe.opcode in (WR["WR_SEND"], WR["WR_SEND_WITH_IMM"]) else "write"
            number = number_of(wqe)
            ours = [other for other in qp.unacknowledged if number_of(other) == number]
            assert not any(other.signaled for other in ours), "goes on before the WRITE that it waits for is acknowledged"
            (qp.contexts[number] if qp.contexts else qp).sent.append((kind, content, wqe))
            qp.unacknowledged.append(wqe)
            assert len(qp.unacknowledged) <= SQ_DEPTH, "send queue overrun"
            if qp.broken:
                self._flush(qp)
            elif qp.acknowledge and wqe.signaled:
                cocotb.start_soon(self._acknowledge_later(qp))

    async def _acknowledge_later(self, qp: Qp) -> None:
        await self.later(self.ack_cycles)
        self.acknowledge(qp)

    def acknowledge(self, qp: Qp) -> None:
        """The caller's transport acknowledges everything."""
        for wqe in qp.unacknowledged:
            if wqe.signaled and qp.open:
                opcode = WC["WC_SEND"] if wqe.opcode in (WR["WR_SEND"], WR["WR_SEND_WITH_IMM"]) else WC["WC_RDMA_WRITE"]
                with_imm = int(wqe.opcode in (WR["WR_SEND_WITH_IMM"], WR["WR_RDMA_WRITE_WITH_IMM"]))
                self.cqe.send(
                    status=WC["WC_SUCCESS"], opcode=opcode, qpn=qp.qpn, wr_id=wqe.wr_id, with_imm=with_imm,
                    imm_data=self.rng.getrandbits(32),  # not a valid field
                )  # fmt: skip
        qp.unacknowledged.clear()

    def break_(self, qp: Qp, status: str = "WC_RETRY_EXC_ERR") -> None:
        """The QP goes to the error state: everything posted comes back."""
        qp.broken = True
        first = WC[status]
        for wqe in qp.unacknowledged:
            self.cqe.send(status=first, opcode=WC["WC_RDMA_WRITE"], qpn=qp.qpn, wr_id=wqe.wr_id)
            first = WC["WC_WR_FLUSH_ERR"]
        qp.unacknowledged.clear()
        self._flush(qp)

    def _flush(self, qp: Qp) -> None:
        for wqe in [*qp.unacknowledged, *qp.receives]:
            opcode = WC["WC_RECV"] if wqe.opcode == WR["WR_RECV"] else WC["WC_RDMA_WRITE"]
            self.cqe.send(status=WC["WC_WR_FLUSH_ERR"], opcode=opcode, qpn=qp.qpn, wr_id=wqe.wr_id)
        qp.unacknowledged.clear()
        qp.receives.clear()

    def _arrive(self, qp: Qp) -> None:
        """The caller's oldest message or immediate consumes a receive."""
        while qp.waiting and qp.receives:
            wqe, what = qp.receives.popleft(), qp.waiting.popleft()
            with_imm = not isinstance(what, bytes)
            if isinstance(what, int):
                opcode, length, imm = WC["WC_RECV_RDMA_WITH_IMM"], self.rng.randrange(1 << 20), what
            else:
                message, imm = what if isinstance(what, tuple) else (what, self.rng.getrandbits(32))  # not a valid field
                self.memory.write(wqe.local_addr, message)
                opcode, length = WC["WC_RECV"], len(message)
            self.cqe.send(
                status=WC["WC_SUCCESS"], opcode=opcode, with_imm=int(with_imm), solicited=1,
                qpn=qp.qpn, wr_id=wqe.wr_id, byte_len=length, imm_data=imm,
            )  # fmt: skip

    async def _manager(self) -> None:
        while True:
            answer = await self.conn_answer.recv(timeout_cycles=1 << 30)
            assert answer.accept and answer.private_data.to_bytes(48, "big") == self.private_data()
            self.unanswered.remove(answer.qpn)  # each event is answered once

    def private_data(self) -> bytes:
        """What every REP must have: where the description is to be read."""
        if self.description_key is None:
            return bytes(48)
        fields = binary.pack(">4sB3xQII", b"NACD", 1, DESCRIPTION_BASE, self.description_key, len(DESCRIPTION))
        return fields.ljust(48, b"\0")

    def _publish(self, mr: Any) -> None:
        """The region that holds the description: of no queue pair, and read-only."""
        access = mr.access
        assert (mr.pd, mr.addr, mr.length) == (PD, LOAD_BASE, LOAD_BYTES + len(DESCRIPTION)) and self.description_key is None
        assert (access.remote_write, access.remote_read, access.remote_atomic, access.remote_invalidate) == (0, 1, 0, 0)
        if self.description_allowed:
            self.description_key = self.rng.getrandbits(32)
            self.mr_rsp.send(ok=1, rkey=self.description_key)
        else:
            self.mr_rsp.send(ok=0)

    async def _protect(self) -> None:
        while True:
            command = await self.mr_cmd.recv(timeout_cycles=1 << 30)
            mr = command.mr
            if command.op == MR["MR_REGISTER"] and mr.qpn == 0:
                self._publish(mr)
                continue
            owner = self.qps[mr.qpn]
            keys = owner.contexts[mr.group].keys if owner.contexts else owner.keys
            assert owner.contexts or not mr.group
            await self.later((1, 6))
            if command.op == MR["MR_DEREGISTER_GROUP"]:
                self.free_keys += len(keys)
                for rkey in list(keys):
                    del owner.keys[rkey]
                keys.clear()
                self.mr_rsp.send(ok=1)
                continue
            assert command.op == MR["MR_REGISTER"]
            access = mr.access
            assert mr.pd == PD
            back = int(READ_BACK)
            assert (access.remote_write, access.remote_read, access.remote_atomic, access.remote_invalidate) == (1, back, back, 0)
            if not self.free_keys:
                self.mr_rsp.send(ok=0)
                continue
            self.free_keys -= 1
            end = mr.addr + mr.length
            assert HEAP_BASE <= mr.addr and end <= HEAP_BASE + HEAP_SIZE, "outside of the heap"
            for qp in self.qps.values():
                for addr, length in qp.keys.values():
                    assert end <= addr or addr + length <= mr.addr, "regions overlap"
            assert not any(self.memory.read(mr.addr, -(-mr.length // PAGE) * PAGE)), "a key to memory that is not clear"
            rkey = self.rng.getrandbits(32)
            keys[rkey] = owner.keys[rkey] = (mr.addr, mr.length)
            self.mr_rsp.send(ok=1, rkey=rkey)

    def window(self, socket: int) -> tuple[int, int]:
        """(base, size) that the socket may touch now."""
        kind = struct("compute_pkg::window_t")
        value = kind.unpack(int(self.dut.window.value) >> (socket * kind.width) & ((1 << kind.width) - 1))
        return value.base, value.size

    async def _socket(self, index: int) -> None:
        while True:
            beats = [await self.job[index].recv(timeout_cycles=1 << 30)]
            cycle = self.cycle
            while not beats[-1].last:
                beats.append(await self.job[index].recv())
            job = Job(index, beats, self.window(index), cycle)
            base, size = job.window
            assert all(base <= b.addr and b.addr + b.size <= base + size for b in beats), "job outside of its window"
            self.jobs.append(job)
            if self.kernel is not None:
                for _ in range(self.rng.randint(*self.kernel_cycles)):
                    await RisingEdge(self.dut.clk)
                    if self.cancels(index):
                        break
                code = CANCELLED if self.cancels(index) else self.kernel(job)
                if code is not None:
                    self.finish(job, code)

    def cancels(self, socket: int) -> bool:
        """The engine cancels the job in this socket."""
        return bool(int(self.dut.cancel.value) >> socket & 1)

    def finish(self, job: Job, code: int = 0) -> None:
        """The kernel ends."""
        self.done[job.socket].send(tag=job.tag, code=code)

    # ---- what a caller does ----

    async def open(self, qpn: int, ip: int | None = None, contexts: int = 0, long: bool = LONG) -> Qp:
        """A new connection, from an address of its own if none is given."""
        qp = self.qps[qpn]
        assert not qp.keys
        self.qps[qpn] = qp = Qp(qpn, open=True)
        qp.contexts = [Context(qp, number) for number in range(contexts)]
        await self._told("CONN_OPENED", qpn, 2000, 0x0A00_0000 + qpn if ip is None else ip, contexts, long)
        await self.until(lambda: len(qp.receives) == 2 * max(1, contexts), 200)
        return qp

    def pass_(self, milliseconds: float) -> None:
        """Time jumps ahead, in whole ticks."""
        self.now += int(milliseconds * CYCLES_PER_MS) >> TICK_W
        self.dut.now.value = self.now
        self.jumped = self.cycle

    async def close_(self, qp: Qp, timeout: int = 20_000) -> None:
        """The caller is gone: the CM has reset the QP."""
        qp.open = False
        qp.waiting.clear()
        await self._told("CONN_CLOSED", qp.qpn, timeout)
        assert not qp.keys, "keys of a closed connection"

    async def _told(self, kind: str, qpn: int, timeout: int, ip: int = 0, contexts: int = 0, long: bool = False) -> None:
        """A connection event, until it is answered."""
        assert qpn not in self.unanswered
        self.unanswered.add(qpn)
        self.conn_event.send(kind=CONN[kind], qpn=qpn, ip=ip, contexts=contexts, long_set_up=int(long))
        await self.until(lambda: qpn not in self.unanswered, timeout)

    def send(self, caller: Qp | Context, what: bytes | int) -> None:
        """The caller SENDs a message, or WRITEs with an immediate."""
        self.send_as_it_is(caller.qp, caller.naming(what))

    def send_as_it_is(self, qp: Qp, what: bytes | tuple[bytes, int] | int) -> None:
        """The caller SENDs a message, without or with an immediate, or WRITEs with an immediate."""
        qp.waiting.append(what)
        self._arrive(qp)

    def cancel(self, context: Context) -> None:
        """The caller cancels the call of a context."""
        self.send_as_it_is(context.qp, (b"", context.immediate(CANCEL)))

    async def reply(self, qp: Qp | Context) -> tuple[str, bytes, Any]:
        """What the caller gets next."""
        await self.until(lambda: qp.sent)
        return qp.sent.popleft()

    async def answer(self, qp: Qp | Context) -> bytes:
        """The answer to a message."""
        kind, content, wqe = await self.reply(qp)
        assert kind == "send" and wqe.signaled and wqe.solicited
        if isinstance(qp, Context):
            assert (wqe.opcode, wqe.imm_data) == (WR["WR_SEND_WITH_IMM"], qp.immediate(0))
        else:
            assert wqe.opcode == WR["WR_SEND"]
        return content

    async def set_up(self, qp: Qp | Context, wanted: list[Region]) -> list[tuple[int, int, int]]:
        """Requests regions, checks the A against the keys that exist, and that all that was granted is clear."""
        return await self._set_up(qp, wanted, aar(wanted), parse_advert)

    async def set_up_long(
        self,
        qp: Qp | Context,
        wanted: list[Region],
        steps: Sequence[Step] = (),
        deadline: int = 0,
    ) -> list[tuple[int, int, int]]:
        """Likewise by a long set-up."""
        return await self._set_up(qp, wanted, long_set_up(wanted, steps, deadline), parse_long_advert)

    async def _set_up(
        self, qp: Qp | Context, wanted: list[Region], message: bytes, parse: Callable[[bytes], list[tuple[int, int, int]]]
    ) -> list[tuple[int, int, int]]:
        self.send(qp, message)
        await self.until(lambda: qp.sent, 20_000 + 2 * HEAP_SIZE // self.memory.bytes_per_beat)  # others are cleared, too
        got = parse(await self.answer(qp))
        extent = got[0][0], max(1, sum(r.pages for r in wanted)) * PAGE
        assert not any(self.memory.read(*extent)), "granted memory is not clear"
        self._dirty(*extent)
        params = [r for r in wanted if not r.flags & INTERNAL]
        assert [size for _, _, size in got] == [r.size for r in params]
        assert {rkey: (addr, size) for addr, rkey, size in got} == qp.keys
        qp.granted = got
        return got

    async def refused(self, qp: Qp | Context, message: bytes, code: int) -> None:
        """Sends a message that must be refused."""
        self.send(qp, message)
        assert await self.answer(qp) == bytes([0, code, 0, 0])

    async def result(self, qp: Qp | Context, wanted: list[Region], got: list[tuple[int, int, int]], code: int = 0) -> None:
        """The answer of a call: every output, whole, in order; the last with the code."""
        outputs = [i for i, r in enumerate(wanted) if r.flags & OUTPUT and not r.flags & INTERNAL]
        if code or not outputs:
            target = wanted[outputs[0] if outputs else 0]
            expected = [(target.host_addr, target.host_rkey, 0, None, False)]
        else:
            expected = [
                (host_addr, wanted[i].host_rkey, size, addr, more)
                for i in outputs for host_addr, size, addr, more in writes_of(wanted[i], got[i][0])
            ]  # fmt: skip
        for n, (host_addr, host_rkey, size, addr, more) in enumerate(expected):
            last = n == len(expected) - 1
            kind, content, wqe = await self.reply(qp)
            assert kind == "write"
            assert (wqe.remote_addr, wqe.rkey, wqe.length) == (host_addr % (1 << 64), host_rkey, size)
            assert wqe.opcode == WR["WR_RDMA_WRITE_WITH_IMM" if last else "WR_RDMA_WRITE"]
            assert (wqe.signaled, wqe.solicited) == (int(last or more), int(last))
            if last:
                assert wqe.imm_data == qp.immediate(code << 8)
            if addr is not None:
                assert wqe.local_addr == addr and content == self.memory.read(addr, size)


def run_engine(
    test: str, data_w: int, qps: int, contexts: int, only: str = ".", pd: int = 0, read_back: bool = True, long: bool = False,
    longest_w: int = 31,
) -> None:  # fmt: skip
    """Builds the engine in these sizes and runs the cocotb tests of `test` whose names match."""
    window = struct("compute_pkg::window_t").width
    base, size = heap(qps, contexts)
    run(
        "rpc_engine",
        test,
        params={
            "DATA_W": data_w, "QPS": qps, "CONTEXTS": contexts, "SOCKETS": SOCKETS, "MAX_REGIONS": MAX_REGIONS,
            "LONG_SET_UP": int(long), "CYCLES_PER_MS": CYCLES_PER_MS, "LONGEST_W": longest_w,
            "PD": pd, "READ_BACK": int(read_back), "SQ_DEPTH": SQ_DEPTH, "CTRL_BASE": CTRL_BASE,
            "DESCRIPTION_BASE": description_base(qps, contexts), "HEAP_BASE": base, "HEAP_SIZE": size,
        },
        ports={
            "conn_event": Sink("roce_pkg::conn_event_t"), "conn_answer": Source("roce_pkg::conn_answer_t"),
            "wqe": Source("roce_pkg::rdma_wqe_t"), "cqe": Sink("roce_pkg::rdma_cqe_t"),
            "mr_cmd": Source("roce_pkg::mr_cmd_t"), "mr_rsp": Sink("roce_pkg::mr_rsp_t"),
            "mem": AxiMaster(data_w), "clear_mem": AxiMaster(data_w), "others_write": Plain("input", "logic"),
            "memory_per_caller": Plain("input", "logic [29:0]"), "quota": Plain("input", "logic [29:0]"),
            "quota_of": Plain("output", "roce_pkg::admission_entry_t"), "now": Plain("input", "rpc_pkg::ticks_t"),
            "job": Several(Source("compute_pkg::job_t"), SOCKETS), "done": Several(Sink("compute_pkg::done_t"), SOCKETS),
            "functions": Plain("input", f"logic [{128 * SOCKETS - 1}:0]"),
            "held": Plain("input", f"compute_pkg::held_t [{SOCKETS - 1}:0]"), "paused": Plain("input", f"logic [{SOCKETS - 1}:0]"),
            "cancel": Plain("output", f"logic [{SOCKETS - 1}:0]"),
            "window": Plain("output", f"logic [{SOCKETS * window - 1}:0]"),
            "close": Source("roce_wire_pkg::qpn_t"),
            "running": Plain("output", f"logic [{SOCKETS - 1}:0]"), "progress": Plain("output", "rpc_pkg::call_progress_t"),
            "events": Plain("output", "compute_pkg::rpc_events_t"), "idle": Plain("output", "logic"),
        },
        env={
            "COCOTB_TEST_FILTER": only, "RPC_QPS": str(qps), "RPC_CONTEXTS": str(contexts), "RPC_LONG": str(int(long)),
            "RPC_LONGEST_W": str(longest_w), "RPC_PD": str(pd), "RPC_READ_BACK": str(int(read_back)),
        },
        random_state=True,
    )  # fmt: skip
