# SPDX-License-Identifier: Apache-2.0
"""RDMA that a kernel starts: only within its window, and a job is over only when all of it is. With the traffic kernel."""

from __future__ import annotations

import cocotb
import pytest
from cocotb.triggers import FallingEdge
from nacelle_tb.cci import offset
from nacelle_tb.long import alternately
from nacelle_tb.memory import OKAY
from nacelle_tb.streams import start, wait_cycles
from nacelle_tb.svtypes import constant
from socket_bench import CANCELLED, RDMA_PAGE, RDMA_PAGES, REFUSED, STATUS, SUCCESS, TIMEOUT, TIMEOUTS, Bench, run_socket

TRAFFIC = 2
SETTINGS = "opcode length qpn qps depth count local_lo local_hi remote_lo remote_hi rkey stride wrap".split()
BASE, SIZE = 0x4000, 0x2000
BAD_ARGUMENTS = constant("compute_pkg::RESULT_BAD_ARGUMENTS")
PROTECTION = constant("roce_pkg::WC_LOC_PROT_ERR")
END_OF_MEMORY = 1 << 64


async def settings(bench: Bench, opcode: str, addr: int, length: int, count: int = 1, depth: int = 4) -> None:
    values = {
        "opcode": constant(f"roce_pkg::WR_{opcode}"), "length": length, "qpn": 5, "qps": 1, "depth": depth, "count": count,
        "local_lo": addr & 0xFFFF_FFFF, "local_hi": addr >> 32, "wrap": 1,
    }  # fmt: skip
    for name, value in values.items():
        assert await bench.ctrl.write(offset(f"traffic.{name.upper()}"), value) == OKAY


@cocotb.test()
@cocotb.parametrize(
    case=[
        (BASE, SIZE, True), (BASE + SIZE - 1, 1, True), (BASE + 5, 100, True), (0, 0, True),
        (BASE - 1, 1, False), (BASE - 1, 2, False), (BASE + SIZE, 1, False), (BASE + SIZE - 1, 2, False), (0, SIZE, False),
        (BASE, SIZE + 1, False), (BASE, 0xFFFF_FFFF, False), (END_OF_MEMORY - 1, 1, False), (END_OF_MEMORY - 1, BASE + 2, False),
    ]
)  # fmt: skip
async def local_memory_is_that_of_the_window(dut, case: tuple[int, int, bool]) -> None:
    addr, length, good = case
    bench = Bench(dut)
    await start(dut)
    bench.window(BASE, SIZE)
    for count, opcode in enumerate(("RDMA_WRITE", "SEND", "RDMA_READ", "SEND_WITH_IMM"), 1):
        bench.posted.clear()
        await settings(bench, opcode, addr, length)
        bench.call(TRAFFIC, [(BASE, SIZE)], tag=count)
        done = await bench.done.recv()
        assert (done.tag, done.code) == (count, SUCCESS if good else BAD_ARGUMENTS)
        assert len(bench.posted) == good
        assert (await bench.ctrl.read(offset("traffic.FAILURE")))[0] == (0 if good else PROTECTION)
        assert (await bench.ctrl.read(REFUSED))[0] == (0 if good else count)


@cocotb.test()
async def receives_and_atomics_are_checked_too(dut) -> None:
    bench = Bench(dut)
    await start(dut)
    bench.window(BASE, SIZE)
    for opcode, addr, length, good in (
        ("RECV", BASE - 4096, 64, False),
        ("ATOMIC_FETCH_AND_ADD", BASE + SIZE - 8, 0, True),
        ("ATOMIC_FETCH_AND_ADD", BASE + SIZE - 7, 0, False),
        ("ATOMIC_CMP_AND_SWP", BASE, 0xFFFF_FFFF, True),
        ("ATOMIC_CMP_AND_SWP", BASE - 8, 0, False),
    ):
        bench.posted.clear()
        await settings(bench, opcode, addr, length)
        bench.call(TRAFFIC, [(BASE, SIZE)])
        assert (await bench.done.recv()).code == (SUCCESS if good else BAD_ARGUMENTS)
        assert len(bench.posted) == good


@cocotb.test()
async def without_a_job_memory_is_what_software_gives(dut) -> None:
    """None after reset; then the pages of the registers; a job has its own window, whatever they say."""
    bench = Bench(dut)
    await start(dut)
    bench.window(BASE, SIZE)

    async def refused(addr: int) -> int:
        await settings(bench, "SEND", addr, 64, count=3)
        assert await bench.ctrl.write(offset("traffic.CONTROL"), 1) == OKAY
        await wait_cycles(dut, 1300)
        assert await bench.ctrl.read(offset("traffic.STATUS")) == (0, OKAY)
        return (await bench.ctrl.read(offset("traffic.FAILED")))[0]

    assert await refused(BASE) == 3 and not bench.posted
    assert await bench.ctrl.write(RDMA_PAGE, 0x20) == await bench.ctrl.write(RDMA_PAGES, 1) == OKAY
    assert await bench.ctrl.read(RDMA_PAGE) == (0x20, OKAY) and await bench.ctrl.read(RDMA_PAGES) == (1, OKAY)
    assert await refused(0x20FC0) == 0 and len(bench.posted) == 3
    assert await refused(0x20FC1) == await refused(BASE) == 3
    await settings(bench, "SEND", 0x20000, 64)
    bench.call(TRAFFIC, [(BASE, SIZE)])
    assert (await bench.done.recv()).code == BAD_ARGUMENTS
    assert len(bench.posted) == 3


@cocotb.test()
@cocotb.parametrize(stall=alternately([0.0, 0.4]))
async def a_cut_waits_for_what_is_outstanding(dut, stall: float) -> None:
    """The kernel is cut off with work requests under way: its job ends when they do; the next one gets no completion of them."""
    bench = Bench(dut, stall)
    await start(dut)
    for round_ in range(3):
        bench.completing = False
        bench.posted.clear()
        await settings(bench, "SEND", BASE, 64, count=20, depth=8)
        dut.kernel_timeout_cycles.value = 1500
        bench.call(TRAFFIC, [(BASE, SIZE)], tag=7)
        await wait_cycles(dut, 3000)
        assert len(bench.posted) == 8 and len(bench.done.received) == 0
        assert (await bench.ctrl.read(STATUS))[0] == 0b111
        assert not int(dut.wqe_valid.value) and int(dut.abandon.value)
        bench.completing = True
        done = await bench.done.recv()
        assert not int(dut.abandon.value)
        assert (done.tag, done.code) == (7, TIMEOUT) and not bench.open
        assert await bench.ctrl.read(TIMEOUTS) == (round_ + 1, OKAY)
        dut.kernel_timeout_cycles.value = 0
        bench.posted.clear()
        await settings(bench, "SEND", BASE, 64, count=20, depth=8)
        bench.call(TRAFFIC, [(BASE, SIZE)], tag=8)
        done = await bench.done.recv()
        assert (done.tag, done.code) == (8, SUCCESS) and len(bench.posted) == 20
        assert [(await bench.ctrl.read(offset("traffic.POSTED") + 4 * i))[0] for i in range(3)] == [20, 20, 0]


@cocotb.test()
async def a_reset_of_the_queue_pairs_ends_a_cut(dut) -> None:
    """What is outstanding never completes, though it is given up; then nothing is outstanding any more."""
    bench = Bench(dut)
    await start(dut)
    bench.completing = False
    await settings(bench, "RECV", BASE, 64, count=3)
    bench.call(TRAFFIC, [(BASE, SIZE)], tag=7)
    await wait_cycles(dut, 1300)
    assert not int(dut.abandon.value)
    dut.cancel.value = 1
    await wait_cycles(dut, 500)
    assert not bench.done.received and (await bench.ctrl.read(STATUS))[0] == 0b111
    assert int(dut.abandon.value)
    bench.open.clear()
    done = await bench.done.recv()
    dut.cancel.value = 0
    assert (done.tag, done.code) == (7, CANCELLED)
    assert await bench.ctrl.read(TIMEOUTS) == (0, OKAY)
    await FallingEdge(dut.clk)
    assert int(dut.idle.value)


@pytest.mark.parametrize("width", [512])
def test_socket_rdma(width: int) -> None:
    run_socket(__file__, width, "traffic")
