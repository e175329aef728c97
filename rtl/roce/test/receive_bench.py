# SPDX-License-Identifier: Apache-2.0
"""Everything around the receive side: the packet plane, memory, the owner of queue pairs and regions; and the model beside it."""

from __future__ import annotations

import os
import random
from collections import Counter, deque
from collections.abc import Iterator
from types import SimpleNamespace

import cocotb
from cocotb.handle import SimHandleBase
from cocotb.triggers import FallingEdge, RisingEdge
from nacelle_tb.bench import AxisSink as AxisIn
from nacelle_tb.bench import AxisSource as AxisOut
from nacelle_tb.bench import Clock, Plain, Several, Sink, Source, run
from nacelle_tb.family import ip_number
from nacelle_tb.record import FRAME_RX
from nacelle_tb.roce import Frame, op, reth
from nacelle_tb.streams import AxisSink, AxisSource, StreamSink, StreamSource, start, wait_cycles
from nacelle_tb.svtypes import constant, struct
from receive_model import ALL, Model, Qp, Region, Respond

PKG = "roce_pkg::"
PEER = "10.0.0.2"
QPS = int(os.environ.get("NACELLE_QPS", "16"))
LANES = int(os.environ.get("NACELLE_LANES", "1"))
"""Memories: the second one from FAR on"""
FAR = 1 << 40
RQ_DEPTH = 4
TRUSTED = 0  # the client that may use LOCAL_DMA_LKEY
BASE = 0x10_0000


def access(rights: frozenset[str]) -> dict[str, int]:
    """As access_t."""
    return dict.fromkeys(rights, 1)


def respond(r: SimpleNamespace) -> Respond:
    """A respond_t as the model writes it: what has a meaning in its kind."""
    aeth = (r.aeth.syndrome, r.aeth.msn)
    if r.kind == op("RESPOND_ACK"):
        return ("ACK", r.qpn, r.psn, *aeth)
    head = (r.duplicate, r.qpn, r.psn, *aeth, r.addr, r.rkey)
    if r.kind == op("RESPOND_READ"):
        return ("READ", *head, 128 << r.path_mtu, r.length)
    return ("ATOMIC", *head, r.compare_swap, r.swap_add, r.compare)


class Bench:
    """Everything around the receive side: memory that writes and confirms, and one stream a port."""

    def __init__(self, dut: SimHandleBase, stall: float = 0.0) -> None:
        self.dut = dut
        dut.seed.value = random.getrandbits(64)
        self.frame = StreamSource(dut, "frame", FRAME_RX, stall)
        self.payload = AxisSource(dut, "payload", stall)
        self.cm = StreamSink(dut, "cm", FRAME_RX, stall)
        self.cm_payload = AxisSink(dut, "cm_payload", stall)
        self.response = StreamSink(dut, "response", PKG + "rc_response_t", stall)
        self.response_payload = AxisSink(dut, "response_payload", stall)
        self.respond = StreamSink(dut, "respond", PKG + "respond_t", stall)
        self.write = StreamSink(dut, "write", "memory_pkg::dma_cmd_t", stall)
        self.data = AxisSink(dut, "data", stall)
        self.done = [StreamSource(dut, f"done{i}", "memory_pkg::dma_done_t", stall) for i in range(LANES)]
        self.post = StreamSource(dut, "wqe", PKG + "rdma_wqe_t", stall)
        self.sends = StreamSink(dut, "send", PKG + "rdma_wqe_t", stall)
        self.access = StreamSink(dut, "send_access", PKG + "local_access_t", stall)
        self.completion = StreamSink(dut, "completion", PKG + "rdma_cqe_t", stall)
        self.qp_cmd = StreamSource(dut, "qp_cmd", PKG + "qp_cmd_t", stall)
        self.qp_answer = StreamSink(dut, "qp_answer", "logic", stall)
        self.qp_event = StreamSink(dut, "qp_event", PKG + "qp_event_t", stall)
        self.failed = StreamSource(dut, "failed", PKG + "qp_failed_t", stall)
        self.mr_cmd = StreamSource(dut, "mr_cmd", PKG + "mr_cmd_t", stall)
        self.mr_rsp = StreamSink(dut, "mr_rsp", PKG + "mr_rsp_t", stall)
        self.memory: dict[int, int] = {}  # byte address -> byte
        self.refuse: set[int] = set()  # addresses whose write fails
        self.memory_delay = 0  # cycles that a write takes, at most 40 at random if negative
        self.far: deque[tuple[int, bytes]] = deque()  # writes that wait for the second memory
        self.far_delay = 0  # likewise, for each of them; they wait for ever while it is
        self.far_stopped = False
        self.far_room = 1 << 30  # units of what the second memory has room for
        self.counts: Counter[str] = Counter()
        self.pulses: Counter[str] = Counter()
        self.answered: Counter[int] = Counter()  # by QP: READs and atomics that the response unit has answered
        self.written: list[tuple[int, int, int]] = []  # address, length, cycle in which it was confirmed
        self.clients: dict[int, int] = {}  # by QP
        self.fence_delay = 0  # cycles that a fence of the response unit takes
        dut.rd_done.value = dut.watch.value = 0
        dut.write_room.value = (1 << constant("memory_pkg::MAX_TARGETS")) - 1
        dut.key.value = dut.fence_number.value = dut.fences_through.value = 0
        self.model = Model(QPS)

    async def start(self) -> None:
        await start(self.dut)
        cocotb.start_soon(self._memory())
        if LANES > 1:
            cocotb.start_soon(self._far_memory())
            cocotb.start_soon(self._room())
        cocotb.start_soon(self._fences())
        cocotb.start_soon(self._events())
        while not int(self.dut.idle.value):
            await RisingEdge(self.dut.clk)

    async def _memory(self) -> None:
        while True:
            cmd = await self.write.recv(10**9)
            packet = await self.data.recv()
            assert len(packet) == cmd.length, f"{len(packet)} bytes for a transfer of {cmd.length}"
            if LANES > 1 and cmd.addr >= FAR:
                self.far.append((cmd.addr, packet))
            else:
                await self._confirm(self.done[0], self.memory_delay, cmd.addr, packet)

    async def _far_memory(self) -> None:
        while True:
            await RisingEdge(self.dut.clk)
            if self.far and not self.far_stopped:
                addr, packet = self.far.popleft()
                self.far_room += -(-len(packet) // 256)
                await self._confirm(self.done[1], self.far_delay, addr, packet)

    async def _room(self) -> None:
        """As dma_write_lanes reports it."""
        layout = struct("memory_pkg::write_size_t")
        while True:
            await FallingEdge(self.dut.clk)
            if int(self.dut.reserve.value):
                size = layout.unpack(int(self.dut.reserve_size.value))
                self.far_room -= size.units if size.target == 1 else 0
                assert self.far_room >= 0
            await RisingEdge(self.dut.clk)
            self.dut.write_room.value = 0b01 | (self.far_room >= 32) << 1

    async def _confirm(self, done: StreamSource, delay: int, addr: int, packet: bytes) -> None:
        refused = addr in self.refuse
        if not refused:
            self.memory.update(zip(range(addr, addr + len(packet)), packet, strict=True))
        await wait_cycles(self.dut, delay if delay >= 0 else random.randrange(40))
        done.send(error=int(refused))
        self.written.append((addr, len(packet), self.write.cycle))

    async def _fences(self) -> None:
        """The response unit's: one at a time, and one for all requests that come meanwhile."""
        through, wanted, left, shown = 0, 0, -1, None
        clk, fence, fence_number, fences_through = (
            getattr(self.dut, name) for name in ("clk", "fence", "fence_number", "fences_through")
        )
        while True:
            await FallingEdge(clk)
            if left == 0:
                through += 1
            left = max(left - 1, -1)
            number = through + (2 if left >= 0 else 1)
            if shown != (number, through):
                fence_number.value, fences_through.value = number % 256, through % 256
                shown = number, through
            await RisingEdge(clk)
            if int(fence.value):
                wanted = number
            if left < 0 and wanted != through:
                left = self.fence_delay

    async def _events(self) -> None:
        layout, shown = struct("roce_events_pkg::roce_rx_events_t"), None
        names = ("clk", "rd_done", "rd_done_slot", "events", "active", "active_qpn", "ecn_marked", "cnp")
        clk, rd_done, rd_done_slot, events, active, active_qpn, ecn_marked, cnp = (getattr(self.dut, name) for name in names)
        while True:
            await FallingEdge(clk)
            answered = self.answered[int(rd_done_slot.value) + 2] % 256
            if shown != answered:
                rd_done.value = shown = answered
            word = int(events.value)
            if word:
                self.counts += Counter(vars(layout.unpack(word)))
            marked, notified = int(ecn_marked.value), int(cnp.value)
            if int(active.value):
                assert int(active_qpn.value) in self.model.qps
                self.pulses += Counter(active=1, ecn_marked=marked, cnp=notified)
            else:
                assert not marked and not notified

    async def command(self, name: str, qpn: int, state: str = "RESET", **attr: object) -> int:
        """A QP command's answer."""
        self.qp_cmd.send(op=op(name), qpn=qpn, state=op(f"QPS_{state}"), attr=attr)
        return await self.qp_answer.recv(100_000)

    async def setup(
        self, qpn: int, psn: int = 0, mtu: int = 3, peer: str = PEER, timer: int = 12, state: str = "RTS", pd: int = 1,
        rights: frozenset[str] = ALL, selective: bool = False, max_rd: int = 8, client: int = TRUSTED,
    ) -> None:  # fmt: skip
        """QP_RESET if needed, QP_SETUP, answered."""
        if qpn in self.model.qps:
            await self.reset(qpn)
        answer = await self.command(
            "QP_SETUP", qpn, state, dst_ip=ip_number(peer), dest_qp_num=qpn + 100, rq_psn=psn, path_mtu=mtu, min_rnr_timer=timer,
            pd=pd, access=access(rights), selective_repeat=int(selective), max_dest_rd_atomic=max_rd, client=client,
        )  # fmt: skip
        assert answer == 1
        self.clients[qpn] = client
        self.model.qps[qpn] = Qp(psn, 128 << mtu, peer, timer, state, pd, rights, selective, max_rd)

    async def modify(self, qpn: int, state: str) -> None:
        """QP_MODIFY, answered as the model says."""
        allowed = self.model.modify(qpn, state)
        assert await self.command("QP_MODIFY", qpn, state) == allowed

    async def reset(self, qpn: int) -> None:
        """QP_RESET, answered."""
        assert await self.command("QP_RESET", qpn) == 1
        self.model.qps.pop(qpn, None)

    def answer_reads(self, qpn: int) -> None:
        """The response unit has answered all READs and atomics of the QP."""
        qp = self.model.qps[qpn]
        self.answered[qpn] += qp.outstanding
        qp.outstanding = 0

    async def register(self, qpn: int, addr: int, length: int, rights: frozenset[str] = ALL, pd: int = 1) -> int:
        """MR_REGISTER: the key."""
        mr = {"pd": pd, "qpn": qpn, "addr": addr, "length": length, "access": access(rights)}
        self.mr_cmd.send(op=op("MR_REGISTER"), mr=mr)
        answer = await self.mr_rsp.recv()
        assert answer.ok
        self.model.regions[answer.rkey] = Region(pd, qpn, addr, length, rights)
        return answer.rkey

    async def deregister(self, rkey: int, how: str = "MR_DEREGISTER") -> None:
        """The key alone, or all of its QP or domain, answered."""
        region = self.model.regions[rkey]
        self.mr_cmd.send(op=op(how), rkey=rkey, mr={"qpn": region.qpn, "pd": region.pd})
        assert (await self.mr_rsp.recv(100_000)).ok
        same = {"MR_DEREGISTER": lambda r: r is region, "MR_DEREGISTER_QP": lambda r: r.qpn == region.qpn}
        gone = same.get(how, lambda r: r.pd == region.pd)
        self.model.regions = {key: r for key, r in self.model.regions.items() if not gone(r)}

    async def deregister_all(self) -> None:
        """All that is left."""
        for rkey in list(self.model.regions):
            await self.deregister(rkey)

    async def receive(self, qpn: int, addr: int, length: int, wr_id: int, lkey: int = 0) -> None:
        """Posts a receive and waits until packets can use it; if the QP is in error, it comes back."""
        self.post.send(opcode=op("WR_RECV"), qpn=qpn, local_addr=addr, length=length, wr_id=wr_id, lkey=lkey)
        await self.post.drained()
        await wait_cycles(self.dut, 10)
        self.model.post(qpn, (addr, length, wr_id))

    def send(self, *frames: Frame) -> None:
        """Frames to the device and to the model."""
        for frame in frames:
            self.model.packet(frame)
            self.frame.send(frame.rx())
            if frame.payload:
                self.payload.send(frame.payload)

    def content(self, addr: int, length: int) -> bytes:
        """What was written there; fails if some of it was not."""
        return bytes(self.memory[a] for a in range(addr, addr + length))

    async def quiet(self, timeout: int = 100_000) -> None:
        """Waits until nothing is under way."""
        calm = 0
        for _ in range(timeout):
            await RisingEdge(self.dut.clk)
            busy = any(driver.busy for driver in (self.frame, self.payload, *self.done, self.failed))
            calm = calm + 1 if int(self.dut.idle.value) and not busy else 0
            if calm > 8:
                return
        raise AssertionError("never idle")

    async def compare(self) -> None:
        """Everything that came out since the last call is what the model says, in its order."""
        await self.quiet()
        model = self.model
        assert by_order([respond(r) for r in _take(self.respond)]) == by_order(model.responds)
        self._compare_responses()
        assert [(e.kind, e.qpn, e.status) for e in _take(self.qp_event)] == model.events
        by_qp: dict[int, list[tuple[int | None, ...]]] = {}
        for c in _take(self.completion):
            by_qp.setdefault(c.qpn, []).append(_completion(c))
        assert by_qp.keys() == {qpn for qpn, log in model.completions.items() if log}
        for qpn, got in by_qp.items():
            want = model.completions[qpn]
            assert [g[: len(w)] for g, w in zip(got, want, strict=True)] == want, f"QP {qpn}: {got} is not {want}"
        assert self.memory == model.memory
        assert +self.counts == +model.counts
        assert +self.pulses == +model.pulses
        assert not _take(self.cm) and not self.cm_payload.packets
        for log in (model.responds, model.responses, model.events, model.completions):
            log.clear()

    def _compare_responses(self) -> None:
        """What went to the requester is what came."""
        got = _take(self.response)
        assert len(got) == len(self.model.responses)
        for r, frame in zip(got, self.model.responses, strict=True):
            assert (r.qpn, r.src_ip, r.opcode, r.psn) == (frame.qpn, ip_number(frame.src), frame.opcode, frame.psn)
            assert r.payload_length == len(frame.payload)
            if frame.opcode != op("RC_RDMA_READ_RESPONSE_MIDDLE"):
                assert (r.aeth.syndrome, r.aeth.msn) == (frame.ext[0], int.from_bytes(frame.ext[1:4], "big"))
            if frame.opcode == op("RC_ATOMIC_ACKNOWLEDGE"):
                assert r.original == int.from_bytes(frame.ext[4:12], "big")
            if frame.payload:
                assert self.response_payload.packets.popleft()[0] == frame.payload
        assert not self.response_payload.packets


def by_order(responds: list[Respond]) -> list[Respond]:
    """Those of each queue pair in their order; with several memories there is no order among queue pairs."""
    return responds if LANES == 1 else sorted(responds, key=lambda r: r[1] if r[0] == "ACK" else r[2])


def _take(sink: StreamSink) -> list[SimpleNamespace]:
    taken = list(sink.received)
    sink.received.clear()
    sink.cycles.clear()
    return taken


def _completion(c: SimpleNamespace) -> tuple[int | None, ...]:
    data = c.imm_data if c.with_imm or c.with_inv else None
    return (c.status, c.opcode, c.qpn, c.wr_id, c.byte_len, c.solicited, c.with_imm, c.with_inv, data)


# ---- messages ----


def write(qpn: int, psn: int, mtu: int, va: int, rkey: int, data: bytes, imm: int | None = None, **more: object) -> Iterator[Frame]:
    """The packets of one RDMA WRITE; AckReq in the last."""
    yield from _message("RC_RDMA_WRITE", qpn, psn, mtu, data, imm, reth(va, rkey, len(data)), **more)


def send(qpn: int, psn: int, mtu: int, data: bytes, imm: int | None = None, **more: object) -> Iterator[Frame]:
    """The packets of one SEND; AckReq in the last."""
    yield from _message("RC_SEND", qpn, psn, mtu, data, imm, b"", **more)


def _message(
    name: str, qpn: int, psn: int, mtu: int, data: bytes, imm: int | None, first_ext: bytes, **more: object
) -> Iterator[Frame]:
    chunks = [data[at : at + mtu] for at in range(0, len(data), mtu)] or [b""]
    for i, chunk in enumerate(chunks):
        first, last = i == 0, i == len(chunks) - 1
        form = "ONLY" if first and last else "FIRST" if first else "LAST" if last else "MIDDLE"
        ext = first_ext if first else b""
        if last and imm is not None:
            form += "_WITH_IMM"
            ext += imm.to_bytes(4, "big")
        yield Frame(op(f"{name}_{form}"), qpn, psn + i, chunk, ext, ackreq=last, **more)


async def one_qp(dut: SimHandleBase, stall: float = 0.0, psn: int = 100, mtu: int = 1) -> tuple[Bench, int]:
    """A bench with QP 2 up and 64 KiB for it at BASE; the region's key."""
    bench = Bench(dut, stall)
    await bench.start()
    await bench.setup(2, psn, mtu)
    return bench, await bench.register(2, BASE, 0x10000)


async def refused(bench: Bench, frames: list[Frame], syndrome: str, qpn: int = 2) -> None:
    """The last frame ends the QP with this NAK; what comes later is dropped. The QP is up again after that."""
    psn, mtu = bench.model.qps[qpn].epsn, {256: 1, 512: 2, 1024: 3}[bench.model.qps[qpn].mtu]
    bench.send(*frames)
    assert bench.model.responds[-1][3] == op(syndrome), hex(bench.model.responds[-1][3])
    assert bench.model.events[-1][0] == op("EVENT_QP_FATAL")
    bench.send(Frame(op("RC_RDMA_WRITE_ONLY"), qpn, frames[-1].psn + 1, b"", reth(0, 0, 0), ackreq=True))
    await bench.compare()
    await bench.reset(qpn)
    await bench.setup(qpn, psn, mtu)


PORTS = {
    "seed": Plain("input", "logic [63:0]"),
    "frame": Sink(FRAME_RX),
    "cm": Source(FRAME_RX),
    "response": Source(PKG + "rc_response_t"),
    "respond": Source(PKG + "respond_t"),
    "rd_done_slot": Plain("output", "roce_pkg::qp_index_t"),
    "rd_done": Plain("input", "roce_rx_pkg::rd_count_t"),
    "now": Clock(),
    "write": Source("memory_pkg::dma_cmd_t"),
    "write_room": Plain("input", "memory_pkg::targets_t"),
    "reserve": Plain("output", "logic"),
    "reserve_size": Plain("output", "memory_pkg::write_size_t"),
    "wqe": Sink(PKG + "rdma_wqe_t"),
    "send": Source(PKG + "rdma_wqe_t"),
    "send_access": Source(PKG + "local_access_t"),
    "watch": Plain("input", PKG + "qp_index_t"),
    "engaged": Plain("output", "logic"),
    "completion": Source(PKG + "rdma_cqe_t"),
    "qp_cmd": Sink(PKG + "qp_cmd_t"),
    "qp_answer": Source("logic"),
    "qp_event": Source(PKG + "qp_event_t"),
    "failed": Sink(PKG + "qp_failed_t"),
    "key": Plain("input", "logic [3:0][31:0]"),
    "key_live": Plain("output", "logic [3:0]"),
    "fence": Plain("output", "logic"),
    "fence_number": Plain("input", PKG + "fence_t"),
    "fences_through": Plain("input", PKG + "fence_t"),
    "mr_cmd": Sink(PKG + "mr_cmd_t"),
    "mr_rsp": Source(PKG + "mr_rsp_t"),
    "active": Plain("output", "logic"),
    "ecn_marked": Plain("output", "logic"),
    "cnp": Plain("output", "logic"),
    "active_qpn": Plain("output", "roce_wire_pkg::qpn_t"),
    "active_bytes": Plain("output", "logic [15:0]"),
    "events": Plain("output", "roce_events_pkg::roce_rx_events_t"),
    "idle": Plain("output", "logic"),
}


def build_and_run(
    test_file: str, width: int = 64, testcase: str | None = None, qps: int = QPS, lanes: int = 1, family: int = 4,
    chosen: str = "",
) -> None:  # fmt: skip
    """The cocotb tests of a file, or those chosen by a regular expression, on the receive side of this width and size."""
    payloads = {"payload": AxisIn(width), "cm_payload": AxisOut(width), "response_payload": AxisOut(width), "data": AxisOut(width)}
    params = {"DATA_W": width, "QPS": qps, "RQ_DEPTH": RQ_DEPTH, "TRUSTED": 1 << TRUSTED}
    if lanes > 1:
        params |= {"LANES": lanes, "MAP": f"{{256'h0, 64'h{FAR:x}, 64'h{FAR:x}, 64'h0, 64'h{FAR:x}}}"}
    ports = PORTS | payloads | {"done": Several(Sink("memory_pkg::dma_done_t"), lanes)}
    env = {"NACELLE_QPS": str(qps), "NACELLE_LANES": str(lanes), "NACELLE_FAMILY": str(family)}
    if chosen:
        env["COCOTB_TEST_FILTER"] = chosen
    run("roce_receive", test_file, params=params, ports=ports, testcase=testcase, env=env)
