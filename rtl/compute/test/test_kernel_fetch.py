# SPDX-License-Identifier: Apache-2.0
"""The kernel `fetch` against a host that the test plays: its connection manager, its messages and its memory."""

from __future__ import annotations

import random
from collections.abc import Sequence

import cocotb
import pytest
from cocotb.handle import SimHandleBase
from cocotb.triggers import FallingEdge
from nacelle_tb.bench import run
from nacelle_tb.device import named
from nacelle_tb.device_rtl import generate
from nacelle_tb.kernel import kernel_ports
from nacelle_tb.long import alternately, some
from nacelle_tb.memory import AxiMemory
from nacelle_tb.streams import StreamSink, StreamSource, start
from nacelle_tb.svtypes import constant

P, C = "roce_pkg::", "compute_pkg::"
SIZE = 1 << 16
SUCCESS, BAD_ARGUMENTS, TOO_SMALL, MEMORY_ERROR = (
    constant(f"{C}RESULT_{name}") for name in ("SUCCESS", "BAD_ARGUMENTS", "REGION_TOO_SMALL", "MEMORY_ERROR")
)
NOT_CONNECTED, NO_WINDOW, INTERRUPTED = 0x13, 0x14, 0x15
ESTABLISHED, REFUSED, CLOSED = (constant(f"{P}KERNEL_{kind}") for kind in ("ESTABLISHED", "REFUSED", "CLOSED"))
SLOT_IN_USE = constant(f"{P}CONN_SLOT_IN_USE")
RECV, SEND, READ = (constant(f"{P}WR_{name}") for name in ("RECV", "SEND", "RDMA_READ"))
FLUSHED = constant(f"{P}WC_WR_FLUSH_ERR")
FROM, DATA, SCRATCH = 0x1003, 0x2001, 0x8000
IP, PORT, WINDOW = 0xFFFF_0A4D_0009, 12345, 0x01020304
QPN, REMOTE, RKEY = 0x77, 0x1234_5678_9ABC, 0xCAFE_0001


class Host:
    """What the kernel connects to. `fault`: what it does wrong, once."""

    def __init__(self, dut: SimHandleBase, stall: float = 0.0) -> None:
        self.dut = dut
        self.job = StreamSource(dut, "job", f"{C}job_t", stall)
        self.done = StreamSink(dut, "done", f"{C}done_t", stall)
        self.memory = AxiMemory(dut, "mem", SIZE, latency=(1, 30), stall=stall)
        self.wqe = StreamSink(dut, "wqe", f"{P}rdma_wqe_t", stall)
        self.cqe = StreamSource(dut, "cqe", f"{P}rdma_cqe_t", stall)
        self.connect = StreamSink(dut, "connect", f"{P}kernel_connect_t", stall)
        self.conn = StreamSource(dut, "conn", f"{P}kernel_conn_t", stall)
        self.content = random.randbytes(5000)
        self.private_data = 0
        self.fault = ""
        self.slot = -1
        self.busy_slots: set[int] = set()
        self.asked: list[bytes] = []
        cocotb.start_soon(self._run())

    def _lose(self) -> None:
        """The connection ends; what is outstanding never completes."""
        self.conn.send(kind=CLOSED, slot=self.slot)
        self.slot = -1

    async def _run(self) -> None:
        receive = None
        while True:
            await FallingEdge(self.dut.clk)
            while self.connect.received:
                asked = self.connect.received.popleft()
                if asked.close:
                    if self.slot >= 0:
                        self._lose()
                    continue
                assert (asked.ip, asked.port, asked.private_data) == (IP, PORT, self.private_data) and self.slot < 0
                if asked.slot in self.busy_slots:
                    self.conn.send(kind=REFUSED, slot=asked.slot, reason=SLOT_IN_USE)
                elif self.fault == "refuse":
                    self.conn.send(kind=REFUSED, slot=asked.slot, reason=28)
                else:
                    self.slot = asked.slot
                    self.conn.send(kind=ESTABLISHED, slot=asked.slot, qpn=QPN)
                    if self.fault == "lose at once":
                        self._lose()
            while self.wqe.received:
                request = self.wqe.received.popleft()
                assert request.qpn == QPN and request.signaled
                if self.slot < 0:
                    continue
                opcode = {SEND: "WC_SEND", READ: "WC_RDMA_READ", RECV: "WC_RECV"}[request.opcode]
                opcode = constant(f"{P}{opcode}")
                if request.opcode == RECV:
                    receive = request
                    continue
                stage = "send" if request.opcode == SEND else "read"
                if self.fault == f"lose at {stage}":
                    self._lose()
                    continue
                if self.fault == f"flush at {stage}":
                    self.cqe.send(opcode=opcode, qpn=QPN, status=FLUSHED)
                    continue
                if request.opcode == SEND:
                    assert request.solicited and receive is not None
                    self.asked.append(self.memory.read(request.local_addr, request.length))
                    self.memory.write(receive.local_addr, self._answer())
                    for done in random.sample((opcode, constant(f"{P}WC_RECV")), 2):
                        self.cqe.send(opcode=done, qpn=QPN, byte_len=20)
                else:
                    assert (request.remote_addr, request.rkey) == (REMOTE, RKEY)
                    self.memory.write(request.local_addr, self.content[: request.length])
                    self.cqe.send(opcode=opcode, qpn=QPN)

    def _answer(self) -> bytes:
        if self.fault == "no window":
            return bytes([0, 5, 0, 0]) + bytes(16)
        count = 2 if self.fault == "two regions" else 1
        size = int.from_bytes(self.asked[-1][24:28], "big") - (self.fault == "smaller")
        return bytes([2, count, 0, 0]) + REMOTE.to_bytes(8, "big") + RKEY.to_bytes(4, "big") + size.to_bytes(4, "big")

    def request(self, private_data: int | None = None, at: int = FROM) -> int:
        """Writes region 0; its length."""
        text = IP.to_bytes(16, "big") + PORT.to_bytes(2, "big") + b"xx" + WINDOW.to_bytes(4, "big")
        self.private_data = private_data or 0
        if private_data is not None:
            text += private_data.to_bytes(48, "big")
        self.memory.write(at, text + b"\xee" * 48)
        return len(text)

    def call(self, regions: Sequence[tuple[int, int]], flags: Sequence[str] = ("input_", "output_", "internal_")) -> None:
        for i, (addr, size) in enumerate(regions):
            self.job.send(tag=3, function_code=5, addr=addr, size=size, last=i == len(regions) - 1, **{flags[i]: 1})

    async def fetch(self, size: int, private_data: int | None = None) -> int:
        length = self.request(private_data)
        self.memory.write(SCRATCH, random.randbytes(512))
        self.call([(FROM, length), (DATA, size), (SCRATCH, 512)])
        answer = await self.done.recv()
        assert answer.tag == 3
        return answer.code


@cocotb.test()
@cocotb.parametrize(stall=alternately([0.0, 0.4]))
async def data_of_a_host_is_read(dut, stall: float) -> None:
    """The request of the region set-up is what a host with windows expects; the bytes are the host's, none around them change."""
    host = Host(dut, stall)
    await start(dut)
    for size, private_data in ((1, None), (4096, random.getrandbits(384)), (5000, None), (77, 0)):
        host.memory.write(DATA - 1, random.randbytes(5002))
        before, behind = host.memory.read(DATA - 1, 1), host.memory.read(DATA + size, 1)
        assert await host.fetch(size, private_data) == SUCCESS
        assert host.memory.read(DATA, size) == host.content[:size]
        assert (host.memory.read(DATA - 1, 1), host.memory.read(DATA + size, 1)) == (before, behind)
        asked = host.asked[-1]
        assert asked == bytes([1, 1, 0, 0, 8]) + b"NAW" + WINDOW.to_bytes(4, "big") + bytes(12) + size.to_bytes(4, "big")
        assert host.slot < 0


@cocotb.test()
async def every_fault_of_a_host_ends_the_call(dut) -> None:
    """With its result; the next call is served, and no connection stays."""
    host = Host(dut)
    await start(dut)
    results = {
        "refuse": NOT_CONNECTED, "no window": NO_WINDOW, "two regions": NO_WINDOW, "smaller": NO_WINDOW,
        "lose at once": INTERRUPTED, "lose at send": INTERRUPTED, "flush at send": INTERRUPTED,
        "lose at read": INTERRUPTED, "flush at read": INTERRUPTED,
    }  # fmt: skip
    for fault, result in results.items():
        host.fault = fault
        assert await host.fetch(100) == result, fault
        assert host.slot < 0
        host.fault = ""
        assert await host.fetch(100) == SUCCESS


@cocotb.test()
async def another_slot_is_taken_if_one_is_in_use(dut) -> None:
    host = Host(dut)
    await start(dut)
    for busy, result in ((set(), SUCCESS), ({0}, SUCCESS), ({0, 1, 2}, SUCCESS), ({0, 1, 2, 3}, NOT_CONNECTED), ({1}, SUCCESS)):
        host.busy_slots = busy
        assert await host.fetch(10) == result


@cocotb.test()
async def wrong_regions_are_refused(dut) -> None:
    """Before anybody is connected to."""
    host = Host(dut)
    await start(dut)
    length = host.request()
    good = [(FROM, length), (DATA, 16), (SCRATCH, 512)]
    for regions, flags, result in (
        (good[:2], ("input_", "output_"), BAD_ARGUMENTS),
        ([*good, (0, 16)], ("input_", "output_", "internal_", "internal_"), BAD_ARGUMENTS),
        (good, ("input_", "output_", "output_"), BAD_ARGUMENTS),
        (good, ("input_", "input_", "internal_"), BAD_ARGUMENTS),
        (good, ("output_", "output_", "internal_"), BAD_ARGUMENTS),
        ([(FROM, 23), *good[1:]], None, TOO_SMALL),
        ([good[0], (DATA, 0), good[2]], None, TOO_SMALL),
        ([good[0], (DATA, 1 << 31), good[2]], None, TOO_SMALL),
        ([good[0], (DATA, 1 << 35 | 16), good[2]], None, TOO_SMALL),
        ([*good[:2], (SCRATCH, 511)], None, TOO_SMALL),
        ([(SIZE, length), *good[1:]], None, MEMORY_ERROR),
    ):
        host.call(regions, flags or ("input_", "output_", "internal_"))
        assert (await host.done.recv()).code == result
        assert not host.asked and host.slot < 0
    host.call([*good[:2], (SIZE, 512)])
    assert (await host.done.recv()).code == MEMORY_ERROR and host.slot < 0
    host.call(good)
    assert (await host.done.recv()).code == SUCCESS


@pytest.mark.parametrize("width", some([64, 512]))
def test_kernel_fetch(width: int) -> None:
    run(
        "kernel_fetch",
        __file__,
        sources=[generate(named("test")).folder / "kernel_fetch_pkg.sv"],
        params={"DATA_W": width},
        ports=kernel_ports(width),
    )
