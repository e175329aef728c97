# SPDX-License-Identifier: Apache-2.0
"""axis_store: what was committed comes out whole and in order, what was rolled back never does."""

import random

import cocotb
from cocotb.triggers import FallingEdge, RisingEdge
from nacelle_tb.bench import AxisSink as AxisSinkPort
from nacelle_tb.bench import AxisSource as AxisSourcePort
from nacelle_tb.bench import Plain, run
from nacelle_tb.streams import AxisSink, AxisSource, start, wait_cycles

DEPTH = 16
BYTES = 8


@cocotb.test()
@cocotb.parametrize(stall_in=[0.0, 0.5], stall_out=[0.0, 0.7])
async def only_what_was_committed(dut, stall_in: float, stall_out: float) -> None:
    dut.commit.value = dut.rollback.value = 0
    source = AxisSource(dut, "in", stall_in)
    sink = AxisSink(dut, "out", stall_out)
    await start(dut)
    kept = []
    for _ in range(150):
        packet = random.randbytes(random.randrange(1, DEPTH * BYTES))
        good = random.random() < 0.6
        source.send(packet)
        await source.drained()
        await wait_cycles(dut, random.choice([0, 0, 3]))
        await FallingEdge(dut.clk)
        (dut.commit if good else dut.rollback).value = 1
        await RisingEdge(dut.clk)
        await FallingEdge(dut.clk)
        dut.commit.value = dut.rollback.value = 0
        if good:
            kept.append(packet)
    for packet in kept:
        assert await sink.recv() == packet
    await wait_cycles(dut, 5)
    assert not sink.packets
    assert int(dut.empty.value) == 1
    assert int(dut.room.value) == DEPTH


def test_axis_store() -> None:
    run(
        "axis_store",
        __file__,
        params={"DATA_W": 8 * BYTES, "DEPTH": DEPTH},
        ports={
            "in": AxisSinkPort(8 * BYTES),
            "commit": Plain("input", "logic"),
            "rollback": Plain("input", "logic"),
            "out": AxisSourcePort(8 * BYTES),
            "room": Plain("output", f"logic [{DEPTH.bit_length() - 1}:0]"),
            "empty": Plain("output", "logic"),
        },
    )
