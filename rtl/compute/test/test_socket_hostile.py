# SPDX-License-Identifier: Apache-2.0
"""A kernel that does what a kernel must not do: its job ends at its time limit, memory and engine never wait for it, and the next
job finds a socket as good as new."""

from __future__ import annotations

from pathlib import Path

import cocotb
import pytest
from cocotb.triggers import RisingEdge
from nacelle_tb.long import alternately, some
from nacelle_tb.streams import start, wait_cycles
from nacelle_tb.svtypes import constant
from socket_bench import REFUSED, SUCCESS, TIMEOUT, TIMEOUTS, Bench, kernels_of_tests, run_socket

HERE = Path(__file__).parent
FUNCTION = 2
READS, WRITES, LONG, WITHHOLDS, DEAF, POSTS, OUTSIDE, EARLY = (1 << i for i in range(8))
BASE, SIZE, LIMIT = 0x4000, 0x4000, 1500
MEMORY_ERROR = constant("compute_pkg::RESULT_MEMORY_ERROR")
PROTECTION = constant("roce_pkg::WC_LOC_PROT_ERR")
MODES = {
    "hangs": 0,
    "takes no data": READS | LONG | DEAF,
    "takes no responses": WRITES | DEAF,
    "promises data": WRITES | LONG | WITHHOLDS,
    "withholds data, takes nothing": READS | WRITES | WITHHOLDS | DEAF,
    "floods": READS | WRITES,
    "floods by pages": READS | WRITES | LONG,
    "is outside": READS | WRITES | LONG | OUTSIDE,
    "posts": POSTS,
    "posts and takes nothing": POSTS | DEAF,
    "posts from outside": POSTS | OUTSIDE,
    "posts from outside and takes nothing": POSTS | OUTSIDE | DEAF,
    "all at once": READS | WRITES | LONG | POSTS,
}


@cocotb.test()
@cocotb.parametrize(what=list(MODES), early=[False, True], stall=alternately([0.0, 0.3]))
async def it_costs_its_time_limit(dut, what: str, early: bool, stall: float) -> None:
    bench = Bench(dut, stall, latency=(1, 20))
    mode = MODES[what] | EARLY * early
    refused = {"r": 0, "b": 0}

    async def watch() -> None:
        while True:
            await RisingEdge(dut.clk)
            for channel in refused:
                if int(getattr(dut, f"mem_{channel}valid").value) and not int(getattr(dut, f"mem_{channel}ready").value):
                    refused[channel] += 1

    cocotb.start_soon(watch())
    await start(dut)
    bench.window(BASE, SIZE)
    dut.kernel_timeout_cycles.value = LIMIT
    before = bytes(bench.memory.content)
    bench.call(FUNCTION, [(BASE, SIZE)], tag=3, user=mode)
    begin = bench.done.cycle
    if mode & POSTS and mode & OUTSIDE and not early:
        await wait_cycles(dut, LIMIT // 2)
        if not mode & DEAF:
            assert await bench.ctrl.read(0x114) == (PROTECTION, 0)
    done = await bench.done.recv(LIMIT + (10_000 if mode & POSTS else 1000))  # what was posted completes
    done_after = bench.done.cycle - begin
    # One that answers and has nothing under way has done its job. One that writes outside of its window is cut off at once; so is
    # one that writes when it has answered: its window is closed.
    writes_outside = mode & WRITES and mode & (OUTSIDE | EARLY)
    assert (done.tag, done.code) == (3, MEMORY_ERROR if writes_outside else SUCCESS if early and not MODES[what] else TIMEOUT)
    if writes_outside:
        assert (await bench.ctrl.read(TIMEOUTS))[0] == 0 and done_after < LIMIT
    assert refused["r"] == refused["b"] == 0
    await wait_cycles(dut, 4)
    assert bench.memory.outstanding() == 0 and not bench.open and not bench.cqe.busy
    assert bench.memory.content[:BASE] == before[:BASE] and bench.memory.content[BASE + SIZE :] == before[BASE + SIZE :]
    if mode & (OUTSIDE | WITHHOLDS):
        assert bench.memory.content == before and not bench.posted
    if mode & OUTSIDE:
        assert (await bench.ctrl.read(REFUSED))[0] > 0
    count = len(bench.posted)
    bench.call(FUNCTION, [(BASE, SIZE)], tag=4, user=EARLY)
    done = await bench.done.recv(100)
    assert (done.tag, done.code) == (4, SUCCESS)
    assert len(bench.posted) == count


@pytest.mark.parametrize("width", some([64, 512]))
def test_socket_hostile(width: int) -> None:
    run_socket(__file__, width, "hostile", [*kernels_of_tests(), HERE / "kernel_hostile.sv"])
