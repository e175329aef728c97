# SPDX-License-Identifier: Apache-2.0
"""kernel_traffic: which work requests it posts, how many at once, and what it counts."""

from __future__ import annotations

import random
from collections import Counter

import cocotb
import pytest
from cocotb.triggers import FallingEdge
from nacelle_tb.bench import run
from nacelle_tb.cci import offset
from nacelle_tb.kernel import kernel_ports
from nacelle_tb.long import alternately
from nacelle_tb.registers import AxilDriver
from nacelle_tb.streams import StreamSink, StreamSource, start, wait_cycles
from nacelle_tb.svtypes import constant

SETTINGS = (
    "opcode length qpn qps depth count local_lo local_hi remote_lo remote_hi rkey stride wrap"
).split()  # one register each, from 0x108 on
WRITE, READ = constant("roce_pkg::WR_RDMA_WRITE"), constant("roce_pkg::WR_RDMA_READ")
RETRY = constant("roce_pkg::WC_RETRY_EXC_ERR")
OKAY, SLVERR, DECERR = 0, 2, 3


class Bench:
    """The kernel, and an engine that completes its requests in a random order of QPs."""

    def __init__(self, dut, stall: float = 0.0) -> None:
        self.dut = dut
        self.stall = stall
        self.job = StreamSource(dut, "job", "compute_pkg::job_t")
        self.done = StreamSink(dut, "done", "compute_pkg::done_t")
        self.wqe = StreamSink(dut, "wqe", "roce_pkg::rdma_wqe_t", stall)
        self.cqe = StreamSource(dut, "cqe", "roce_pkg::rdma_cqe_t", stall)
        self.ctrl = AxilDriver(dut, "ctrl")
        self.posted: list = []
        self.most: Counter[int] = Counter()

    async def setting(self, **values: int) -> None:
        for name, value in values.items():
            assert await self.ctrl.write(offset(f"traffic.{name.upper()}"), value) == OKAY, name

    async def engine(self, fails: int | None = None) -> None:
        """Completes everything, the request with the number `fails` badly."""
        open_: dict[int, list] = {}
        while True:
            await FallingEdge(self.dut.clk)
            while self.wqe.received:
                request = self.wqe.received.popleft()
                self.posted.append(request)
                open_.setdefault(int(request.qpn), []).append(request)
                self.most[int(request.qpn)] = max(self.most[int(request.qpn)], len(open_[int(request.qpn)]))
            waiting = [qpn for qpn, requests in open_.items() if requests]
            if waiting and random.random() < 0.3:
                request = open_[random.choice(waiting)].pop(0)
                status = RETRY if int(request.imm_data) == fails else 0
                self.cqe.send(status=status, opcode=1, qpn=request.qpn, wr_id=request.wr_id)

    async def finished(self) -> None:
        for _ in range(2000):
            if (await self.ctrl.read(offset("traffic.STATUS")))[0] == 0:
                return
            await wait_cycles(self.dut, 20)
        raise TimeoutError("the run does not end")

    async def result(self) -> dict[str, int]:
        names = ("posted", "completed", "failed", "failure", "cycles", "first")
        return {name: (await self.ctrl.read(offset(f"traffic.{name.upper()}")))[0] for name in names}


@cocotb.test()
@cocotb.parametrize(stall=alternately([0.0, 0.4]), qps=[1, 5])
async def posts_what_the_registers_say(dut, stall: float, qps: int) -> None:
    bench = Bench(dut, stall)
    await start(dut)
    cocotb.start_soon(bench.engine())
    for count in (1, 60):
        bench.posted.clear()
        await bench.setting(
            opcode=WRITE, length=1000, qpn=7, qps=qps, depth=3, count=count, local_lo=0x4000, local_hi=1,
            remote_lo=0x80, remote_hi=2, rkey=0xABCD, stride=4096, wrap=4,
        )  # fmt: skip
        assert await bench.ctrl.write(offset("traffic.CONTROL"), 1) == OKAY
        await bench.finished()
        result = await bench.result()
        assert (result["posted"], result["completed"], result["failed"]) == (count, count, 0)
        assert 0 < result["first"] <= result["cycles"]
        assert len(bench.posted) == count and all(request.signaled for request in bench.posted)
        for i, request in enumerate(bench.posted):
            place = i % 4 * 4096
            assert (request.opcode, request.length, request.rkey) == (WRITE, 1000, 0xABCD)
            assert (request.local_addr, request.remote_addr) == ((1 << 32) + 0x4000 + place, (2 << 32) + 0x80 + place)
        assert {int(request.qpn) for request in bench.posted} == set(range(7, 7 + min(qps, count)))
        assert max(bench.most.values()) <= 3


@cocotb.test()
async def posts_every_third_cycle(dut) -> None:
    bench = Bench(dut)
    await start(dut)
    await bench.setting(opcode=READ, length=64, qpn=2, qps=16, depth=255, count=100, wrap=1)
    await bench.ctrl.write(offset("traffic.CONTROL"), 1)
    cycles = []
    while len(cycles) < 100:
        await bench.wqe.recv()
        cycles.append(bench.wqe.cycle)
    assert cycles[-1] - cycles[0] == 99 * 3


@cocotb.test()
async def failures_are_counted_and_the_first_is_told(dut) -> None:
    bench = Bench(dut)
    await start(dut)
    cocotb.start_soon(bench.engine(fails=5))
    await bench.setting(opcode=WRITE, length=1, qpn=2, qps=2, depth=4, count=20, wrap=1)
    bench.job.send(tag=9, function_code=2, last=1)
    done = await bench.done.recv()
    assert (done.tag, done.code) == (9, constant("compute_pkg::RESULT_BAD_ARGUMENTS"))
    result = await bench.result()
    assert (result["completed"], result["failed"], result["failure"]) == (20, 1, RETRY)
    bench.job.send(tag=10, function_code=2, last=1)
    assert (await bench.done.recv()).tag == 10


@cocotb.test()
async def it_can_be_stopped_and_not_disturbed(dut) -> None:
    bench = Bench(dut)
    await start(dut)
    cocotb.start_soon(bench.engine())
    await bench.setting(opcode=WRITE, length=1, qpn=2, qps=1, depth=4, count=0xFFFF_FFFF, wrap=1)
    await bench.ctrl.write(offset("traffic.CONTROL"), 1)
    await wait_cycles(dut, 1500)
    assert await bench.ctrl.write(offset("traffic.CONTROL"), 1) == SLVERR
    assert await bench.ctrl.write(offset("traffic.LENGTH"), 5) == SLVERR
    assert await bench.ctrl.write(offset("traffic.CONTROL"), 2) == OKAY
    await bench.finished()
    result = await bench.result()
    assert result["posted"] == result["completed"] == len(bench.posted) > 50
    assert all(request.length == 1 for request in bench.posted)
    # What is in no register: all but these; the socket answers up to 0x10f.
    readable = {0x114, *range(0x150, 0x168, 4)}
    writable = {0x110, *range(0x118, 0x14C, 4)}
    for address in range(0x110, 0x1000, 4):
        assert (await bench.ctrl.read(address))[1] == (OKAY if address in readable else DECERR), f"{address:#x}"
        if address not in writable:
            assert await bench.ctrl.write(address, 0) == DECERR, f"{address:#x}"


@pytest.mark.parametrize("width", [512])
def test_kernel_traffic(width: int) -> None:
    run(
        "kernel_traffic",
        __file__,
        params={"DATA_W": width},
        ports=kernel_ports(width),
    )
