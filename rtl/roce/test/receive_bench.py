# SPDX-License-Identifier: Apache-2.0
"""Everything around the receive side: the packet plane, memory, the owner of queue pairs and regions; and the model beside it."""

from __future__ import annotations

import random
from collections import Counter
from types import SimpleNamespace

import cocotb
from cocotb.handle import SimHandleBase
from cocotb.triggers import FallingEdge, RisingEdge
from nacelle_tb.roce import Frame, op
from nacelle_tb.streams import AxisSink, AxisSource, StreamSink, StreamSource, start, wait_cycles
from nacelle_tb.svtypes import struct
from receive_model import Model, Qp, Region

PKG = "roce_pkg::"
PEER = "10.0.0.2"
QPS = 16
RQ_DEPTH = 4


def ip(text: str) -> int:
    return int.from_bytes(bytes(map(int, text.split("."))), "big")


class Bench:
    """Everything around the receive side: memory that writes and confirms, and one stream a port."""

    def __init__(self, dut: SimHandleBase, stall: float = 0.0) -> None:
        self.dut = dut
        dut.seed.value = random.getrandbits(64)
        self.frame = StreamSource(dut, "frame", "packet_pkg::frame_rx_t", stall)
        self.payload = AxisSource(dut, "payload", stall)
        self.cm = StreamSink(dut, "cm", "packet_pkg::frame_rx_t", stall)
        self.cm_payload = AxisSink(dut, "cm_payload", stall)
        self.ack_tx = StreamSink(dut, "ack_tx", PKG + "ack_tx_t", stall)
        self.ack_rx = StreamSink(dut, "ack_rx", PKG + "ack_rx_t", stall)
        self.write = StreamSink(dut, "write", "memory_pkg::dma_cmd_t", stall)
        self.data = AxisSink(dut, "data", stall)
        self.done = StreamSource(dut, "done", "memory_pkg::dma_done_t", stall)
        self.post = StreamSource(dut, "post", PKG + "rdma_wqe_t", stall)
        self.completion = StreamSink(dut, "completion", PKG + "rdma_cqe_t", stall)
        self.qp_cmd = StreamSource(dut, "qp_cmd", PKG + "qp_cmd_t", stall)
        self.qp_answer = StreamSink(dut, "qp_answer", "logic", stall)
        self.qp_event = StreamSink(dut, "qp_event", PKG + "qp_event_t", stall)
        self.mr_cmd = StreamSource(dut, "mr_cmd", PKG + "mr_cmd_t", stall)
        self.mr_rsp = StreamSink(dut, "mr_rsp", PKG + "mr_rsp_t", stall)
        self.memory: dict[int, int] = {}  # byte address -> byte
        self.refuse: set[int] = set()  # addresses whose write fails
        self.memory_delay = 0  # cycles that a write takes, at most 40 at random if negative
        self.counts: Counter[str] = Counter()
        self.active = 0
        self.model = Model(QPS)

    async def start(self) -> None:
        await start(self.dut)
        cocotb.start_soon(self._memory())
        cocotb.start_soon(self._events())
        while not int(self.dut.idle.value):
            await RisingEdge(self.dut.clk)

    async def _memory(self) -> None:
        while True:
            cmd = await self.write.recv(10**9)
            packet = await self.data.recv()
            assert len(packet) == cmd.length, f"{len(packet)} bytes for a transfer of {cmd.length}"
            refused = cmd.addr in self.refuse
            if not refused:
                self.memory.update(zip(range(cmd.addr, cmd.addr + cmd.length), packet, strict=True))
            await wait_cycles(self.dut, self.memory_delay if self.memory_delay >= 0 else random.randrange(40))
            self.done.send(error=int(refused))

    async def _events(self) -> None:
        layout = struct(PKG + "roce_rx_events_t")
        while True:
            await FallingEdge(self.dut.clk)
            word = int(self.dut.events.value)
            if word:
                self.counts += Counter(vars(layout.unpack(word)))
            if int(self.dut.active.value):
                assert int(self.dut.active_qpn.value) in self.model.qps
                self.active += 1

    async def setup(self, qpn: int, psn: int = 0, mtu: int = 3, peer: str = PEER, timer: int = 12) -> None:
        """QP_SETUP, answered."""
        attr = {"dst_ip": ip(peer), "dest_qp_num": qpn + 100, "rq_psn": psn, "path_mtu": mtu, "min_rnr_timer": timer}
        self.qp_cmd.send(op=op("QP_SETUP"), qpn=qpn, attr=attr)
        assert await self.qp_answer.recv() == 1
        self.model.qps[qpn] = Qp(psn, 128 << mtu, peer, timer)

    async def reset(self, qpn: int) -> None:
        """QP_RESET, answered."""
        self.qp_cmd.send(op=op("QP_RESET"), qpn=qpn)
        assert await self.qp_answer.recv() == 1
        self.model.qps.pop(qpn, None)

    async def register(self, qpn: int, addr: int, length: int, write: bool = True) -> int:
        """MR_REGISTER: the key."""
        self.mr_cmd.send(op=op("MR_REGISTER"), qpn=qpn, addr=addr, length=length, access={"remote_write": int(write)})
        answer = await self.mr_rsp.recv()
        assert answer.ok
        self.model.regions[answer.rkey] = Region(qpn, addr, length, write)
        return answer.rkey

    async def deregister(self, rkey: int) -> None:
        """MR_DEREGISTER, answered."""
        self.mr_cmd.send(op=op("MR_DEREGISTER"), rkey=rkey)
        assert (await self.mr_rsp.recv()).ok
        del self.model.regions[rkey]

    async def receive(self, qpn: int, addr: int, length: int, wr_id: int) -> None:
        """Posts a receive and waits until packets can use it."""
        self.post.send(opcode=op("WR_RECV"), qpn=qpn, local_addr=addr, length=length, wr_id=wr_id)
        await self.post.drained()
        await wait_cycles(self.dut, 4)
        self.model.qps[qpn].receives.append((addr, length, wr_id))

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
            calm = calm + 1 if int(self.dut.idle.value) and not any(d.busy for d in (self.frame, self.payload, self.done)) else 0
            if calm > 8:
                return
        raise AssertionError("never idle")

    async def compare(self) -> None:
        """Everything that came out since the last call is what the model says, in its order."""
        await self.quiet()
        model = self.model
        assert _take(self.ack_tx) == model.acks
        assert _take(self.ack_rx) == model.ack_rx
        assert [(e.qpn, e.status) for e in _take(self.qp_event)] == model.events
        got = [_completion(c) for c in _take(self.completion)]
        assert [g[: len(m)] for g, m in zip(got, model.completions, strict=True)] == model.completions
        assert self.memory == model.memory
        assert +self.counts == +model.counts
        assert self.active == model.counts["rx_packet"]
        assert not _take(self.cm) and not self.cm_payload.packets
        for log in (model.acks, model.ack_rx, model.events, model.completions):
            log.clear()


def _take(sink: StreamSink) -> list[SimpleNamespace]:
    taken = list(sink.received)
    sink.received.clear()
    sink.cycles.clear()
    return taken


def _completion(c: SimpleNamespace) -> tuple[int | None, ...]:
    return (c.status, c.opcode, c.qpn, c.wr_id, c.byte_len, c.solicited, c.imm_data if c.with_imm else None)
