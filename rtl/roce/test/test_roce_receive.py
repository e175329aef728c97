# SPDX-License-Identifier: Apache-2.0
"""roce_receive (roce_rx, roce_responder, roce_mr): frames in; memory, acknowledgements and completions out, against a model."""

from __future__ import annotations

import random
from types import SimpleNamespace

import cocotb
import pytest
from cocotb.triggers import FallingEdge, RisingEdge
from nacelle_tb.bench import AxisSink as AxisIn
from nacelle_tb.bench import AxisSource as AxisOut
from nacelle_tb.bench import Plain, Sink, Source, run
from nacelle_tb.roce import Frame, op, reth
from nacelle_tb.streams import AxisSink, AxisSource, StreamSink, StreamSource, start, wait_cycles
from nacelle_tb.svtypes import struct

PKG = "roce_pkg::"
PEER = "10.0.0.2"
BASE = 0x10_0000


def ip(text: str) -> int:
    return int.from_bytes(bytes(map(int, text.split("."))), "big")


class Bench:
    """Everything around the receive side: memory that writes and confirms, and one stream a port."""

    def __init__(self, dut, stall: float = 0.0) -> None:
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
        self.memory: dict[int, int] = {}     # byte address -> byte
        self.writes: list[tuple[int, int]] = []
        self.refuse: set[int] = set()        # addresses whose write fails
        self.memory_delay = 0                # cycles that a write takes; more than that at random if negative
        self.counts = dict.fromkeys(struct(PKG + "roce_rx_events_t").fields, 0)
        self.active: list[int] = []

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
            self.writes.append((cmd.addr, cmd.length))
            await wait_cycles(self.dut, self.memory_delay if self.memory_delay >= 0 else random.randrange(40))
            self.done.send(error=int(refused))

    async def _events(self) -> None:
        layout = struct(PKG + "roce_rx_events_t")
        while True:
            await FallingEdge(self.dut.clk)
            word = int(self.dut.events.value)
            if word:
                for name, hit in vars(layout.unpack(word)).items():
                    self.counts[name] += hit
            if int(self.dut.active.value):
                self.active.append(int(self.dut.active_qpn.value))

    async def setup(self, qpn: int, psn: int = 0, mtu: int = 3, peer: str = PEER, timer: int = 12) -> int:
        attr = {"dst_ip": ip(peer), "dest_qp_num": qpn + 100, "rq_psn": psn, "path_mtu": mtu, "min_rnr_timer": timer}
        self.qp_cmd.send(op=op("QP_SETUP"), qpn=qpn, attr=attr)
        return await self.qp_answer.recv()

    async def reset(self, qpn: int) -> int:
        self.qp_cmd.send(op=op("QP_RESET"), qpn=qpn)
        return await self.qp_answer.recv()

    async def register(self, qpn: int, addr: int, length: int, write: bool = True) -> int:
        access = {"remote_write": int(write)}
        self.mr_cmd.send(op=op("MR_REGISTER"), qpn=qpn, addr=addr, length=length, access=access)
        answer = await self.mr_rsp.recv()
        assert answer.ok
        return answer.rkey

    def receive(self, qpn: int, addr: int, length: int, wr_id: int) -> None:
        self.post.send(opcode=op("WR_RECV"), qpn=qpn, local_addr=addr, length=length, wr_id=wr_id)

    def send(self, *frames: Frame) -> None:
        for frame in frames:
            self.frame.send(frame.rx())
            if frame.payload:
                self.payload.send(frame.payload)

    async def quiet(self, timeout: int = 50_000) -> None:
        """Waits until nothing is under way."""
        calm = 0
        for _ in range(timeout):
            await RisingEdge(self.dut.clk)
            calm = calm + 1 if int(self.dut.idle.value) and not self.frame._queue and not self.payload._queue else 0
            if calm > 4:
                return
        raise AssertionError("never idle")

    def content(self, addr: int, length: int) -> bytes:
        return bytes(self.memory.get(a, -1) for a in range(addr, addr + length))


def ack(qpn: int, psn: int, msn: int, syndrome: int | None = None) -> SimpleNamespace:
    syndrome = op("SYNDROME_ACK") if syndrome is None else syndrome
    return SimpleNamespace(qpn=qpn, psn=psn & 0xFFFFFF, aeth=SimpleNamespace(syndrome=syndrome, msn=msn))


@cocotb.test()
async def write_only_is_written_and_acknowledged(dut) -> None:
    bench = Bench(dut)
    await bench.start()
    assert await bench.setup(2, psn=100)
    rkey = await bench.register(2, BASE, 4096)
    data = random.randbytes(300)
    bench.send(Frame(op("RC_RDMA_WRITE_ONLY"), 2, 100, data, reth(BASE + 16, rkey, 300), ackreq=True))
    assert await bench.ack_tx.recv(200) == ack(2, 100, 1)
    await bench.quiet()
    assert bench.content(BASE + 16, 300) == data
    assert len(bench.memory) == 300


@cocotb.test()
async def send_only_goes_to_the_posted_receive(dut) -> None:
    bench = Bench(dut)
    await bench.start()
    assert await bench.setup(5, psn=0xFFFFFF)
    bench.receive(5, BASE, 768, 77)
    await wait_cycles(dut, 10)
    data = random.randbytes(76)
    bench.send(Frame(op("RC_SEND_ONLY"), 5, 0xFFFFFF, data, ackreq=True, solicited=True))
    done = await bench.completion.recv(200)
    assert await bench.ack_tx.recv(1) == ack(5, 0xFFFFFF, 1)
    assert (done.status, done.opcode, done.qpn, done.wr_id, done.byte_len) == (op("WC_SUCCESS"), op("WC_RECV"), 5, 77, 76)
    assert done.solicited and not done.with_imm
    assert bench.content(BASE, 76) == data


PORTS = {
    "seed": Plain("input", "logic [63:0]"),
    "frame": Sink("packet_pkg::frame_rx_t"),
    "cm": Source("packet_pkg::frame_rx_t"),
    "ack_tx": Source(PKG + "ack_tx_t"),
    "ack_rx": Source(PKG + "ack_rx_t"),
    "write": Source("memory_pkg::dma_cmd_t"),
    "done": Sink("memory_pkg::dma_done_t"),
    "post": Sink(PKG + "rdma_wqe_t"),
    "completion": Source(PKG + "rdma_cqe_t"),
    "qp_cmd": Sink(PKG + "qp_cmd_t"),
    "qp_answer": Source("logic"),
    "qp_event": Source(PKG + "qp_event_t"),
    "mr_cmd": Sink(PKG + "mr_cmd_t"),
    "mr_rsp": Source(PKG + "mr_rsp_t"),
    "active": Plain("output", "logic"),
    "active_qpn": Plain("output", PKG + "qpn_t"),
    "events": Plain("output", PKG + "roce_rx_events_t"),
    "idle": Plain("output", "logic"),
}


@pytest.mark.parametrize("width", [64, 512])
def test_roce_receive(width: int) -> None:
    payloads = {"payload": AxisIn(width), "cm_payload": AxisOut(width), "data": AxisOut(width)}
    run("roce_receive", __file__, params={"DATA_W": width}, ports={**PORTS, **payloads})
