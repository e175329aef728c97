# SPDX-License-Identifier: Apache-2.0
"""A socket whose kernel may start no RDMA (RDMA 0): each work request is refused, and nothing waits for an engine."""

from __future__ import annotations

import cocotb
from cocotb.triggers import RisingEdge
from nacelle_tb.cci import offset
from nacelle_tb.memory import OKAY
from nacelle_tb.streams import start, wait_cycles
from socket_bench import RDMA_PAGE, RDMA_PAGES, REFUSED, STATUS, TIMEOUT, TIMEOUTS, Bench, run_socket
from test_socket_rdma import BAD_ARGUMENTS, BASE, PROTECTION, SIZE, TRAFFIC, settings


def no_engine(bench: Bench) -> None:
    """Ties the socket's RDMA ports off, as the shell does, and watches them."""
    dut = bench.dut
    bench.wqe.stall = 1.0  # never ready

    async def watch() -> None:
        while True:
            await RisingEdge(dut.clk)
            assert int(dut.rst.value) or not int(dut.wqe_valid.value), "a work request leaves"

    cocotb.start_soon(watch())


@cocotb.test()
async def each_work_request_of_a_job_is_refused(dut) -> None:
    """Inside the window too, and one of length 0, which has no memory; of every kind. The job ends, and the next one is served."""
    bench = Bench(dut)
    no_engine(bench)
    await start(dut)
    bench.window(BASE, SIZE)
    count = 0
    for opcode in ("RDMA_WRITE", "SEND", "RDMA_READ", "RECV", "ATOMIC_CMP_AND_SWP"):
        for length in (64, 0):
            await settings(bench, opcode, BASE, length, count=3)
            bench.call(TRAFFIC, [(BASE, SIZE)], tag=count)
            done = await bench.done.recv()
            assert (done.tag, done.code) == (count, BAD_ARGUMENTS)
            count += 1
            assert await bench.ctrl.read(REFUSED) == (3 * count, OKAY)
            assert await bench.ctrl.read(offset("traffic.FAILURE")) == (PROTECTION, OKAY)
    assert int(dut.idle.value)


@cocotb.test()
async def software_cannot_open_memory_to_it(dut) -> None:
    """RDMA_PAGES can be written as on every socket; without a job its kernel is refused all the same."""
    bench = Bench(dut)
    no_engine(bench)
    await start(dut)
    assert await bench.ctrl.write(RDMA_PAGE, 0) == await bench.ctrl.write(RDMA_PAGES, 4) == OKAY
    for length in (64, 0):
        await settings(bench, "SEND", 0, length, count=3)
        assert await bench.ctrl.write(offset("traffic.CONTROL"), 1) == OKAY
        await wait_cycles(dut, 1300)
        assert await bench.ctrl.read(offset("traffic.STATUS")) == (0, OKAY)
        assert await bench.ctrl.read(offset("traffic.FAILED")) == (3, OKAY)


@cocotb.test()
async def a_cut_waits_for_nothing(dut) -> None:
    """At any moment of a kernel that posts as fast as it can."""
    bench = Bench(dut)
    no_engine(bench)
    await start(dut)
    bench.window(BASE, SIZE)
    await settings(bench, "SEND", BASE, 64, count=100_000, depth=8)
    for round_ in range(12):
        await settings(bench, "SEND", BASE, 64, count=100_000, depth=8)
        dut.kernel_timeout_cycles.value = 1200 + round_
        bench.call(TRAFFIC, [(BASE, SIZE)], tag=round_)
        done = await bench.done.recv()
        assert (done.tag, done.code) == (round_, TIMEOUT)
        assert await bench.ctrl.read(TIMEOUTS) == (round_ + 1, OKAY) and await bench.ctrl.read(STATUS) == (0, OKAY)
    assert (await bench.ctrl.read(REFUSED))[0] > 0


def test_socket_no_rdma() -> None:
    run_socket(__file__, 512, "traffic", rdma=False)
