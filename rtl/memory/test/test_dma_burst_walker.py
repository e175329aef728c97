# SPDX-License-Identifier: Apache-2.0
"""dma_burst_walker: bursts as AXI allows them, which together are the transfer; against a model in a few lines."""

from __future__ import annotations

import os
import random

import cocotb
import pytest
from cocotb.triggers import FallingEdge
from nacelle_tb.bench import Plain, Sink, Source, run
from nacelle_tb.long import alternately
from nacelle_tb.streams import StreamSink, StreamSource, start, wait_cycles


def bursts(addr: int, length: int, step: int, block: int) -> list[dict[str, int]]:
    """The bursts of a transfer, by fields of dma_burst_t that hold whatever comes after."""
    if length == 0:
        return [{"none": 1, "first": 1, "last": 1}]
    shift, tail = addr % step, (length - 1) % step
    out, at, end = [], addr, addr + length
    while at < end:
        upto = min(end, at - at % block + block)
        out.append(
            {"addr": at, "len": (upto - 1) // step - at // step, "first": at == addr, "last": upto == end, "none": 0,
             "shift": shift, "tail": tail, "lane": (shift + tail) % step, "wraps": (shift + tail) // step}
        )  # fmt: skip
        at = upto
    return out


@cocotb.test()
@cocotb.parametrize(stall=alternately([0.0, 0.4]))
async def bursts_are_the_transfer(dut, stall: float) -> None:
    step = int(os.environ["BYTES"])
    cmd = StreamSource(dut, "cmd", "memory_pkg::dma_cmd_t", stall, noise=True)
    burst = StreamSink(dut, "burst", "memory_pkg::dma_burst_t", stall)
    await start(dut)
    block = min(4096, 256 * step)
    for _ in range(200):
        addr = random.choice([0, block - 1, random.randrange(1 << 39)]) + random.randrange(4)
        length = random.choice([0, 1, step, block, random.randrange(3 * block)])
        cmd.send(addr=addr, length=length)
        for want in bursts(addr, length, step, block):
            got = await burst.recv()
            assert {name: int(getattr(got, name)) for name in want} == want
    await wait_cycles(dut, 3)
    assert int(dut.idle.value)


@cocotb.test()
async def a_burst_a_cycle(dut) -> None:
    cmd = StreamSource(dut, "cmd", "memory_pkg::dma_cmd_t", noise=True)
    burst = StreamSink(dut, "burst", "memory_pkg::dma_burst_t")
    await start(dut)
    for i in range(20):
        cmd.send(addr=i * 64, length=i % 3)
    cycles = []
    for _ in range(20):
        await burst.recv()
        cycles.append(burst.cycle)
    assert cycles[-1] - cycles[0] == 19


@cocotb.test()
async def not_idle_while_a_burst_waits(dut) -> None:
    cmd = StreamSource(dut, "cmd", "memory_pkg::dma_cmd_t", noise=True)
    burst = StreamSink(dut, "burst", "memory_pkg::dma_burst_t", 1.0)
    await start(dut)
    cmd.send(addr=0, length=1)
    await cmd.drained()
    for _ in range(10):
        await FallingEdge(dut.clk)
        assert not int(dut.idle.value)
    burst.stall = 0.0
    await burst.recv()
    await wait_cycles(dut, 3)
    assert int(dut.idle.value)


@pytest.mark.parametrize("width", [64, 512])
def test_dma_burst_walker(width: int) -> None:
    run(
        "dma_burst_walker",
        __file__,
        params={"DATA_W": width},
        env={"BYTES": str(width // 8)},
        ports={
            "cmd": Sink("memory_pkg::dma_cmd_t"),
            "burst": Source("memory_pkg::dma_burst_t"),
            "idle": Plain("output", "logic"),
        },
        random_state=True,
    )
