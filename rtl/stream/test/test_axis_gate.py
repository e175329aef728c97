# SPDX-License-Identifier: Apache-2.0
"""axis_gate: nothing is lost, a packet that was offered goes on, and none begins while it is stopped."""

from __future__ import annotations

import random

import cocotb
from cocotb.triggers import RisingEdge
from nacelle_tb.bench import AxisSink as AxisSinkPort
from nacelle_tb.bench import AxisSource as AxisSourcePort
from nacelle_tb.bench import Plain, run
from nacelle_tb.long import alternately
from nacelle_tb.streams import AxisSink, AxisSource, start, wait_cycles


@cocotb.test()
@cocotb.parametrize(stall=alternately([0.0, 0.5]))
async def packets_begin_only_while_it_is_open(dut, stall: float) -> None:
    source, sink = AxisSource(dut, "in", stall), AxisSink(dut, "out", stall)
    dut.stop.value = 0
    await start(dut)
    wanted = [(random.randbytes(random.randrange(1, 60)), int(random.random() < 0.2)) for _ in range(200)]
    for packet, bad in wanted:
        source.send(packet, bool(bad))
    begun, stopped = False, 0
    while len(sink.packets) < len(wanted):
        dut.stop.value = int(random.random() < 0.5)
        await RisingEdge(dut.clk)
        valid, stop = int(dut.out_tvalid.value), int(dut.stop.value)
        assert valid == int(dut.in_tvalid.value) * (begun or not stop), (
            "a packet begins while it is stopped, or one that has begun stops"
        )
        stopped += stop and not valid
        if valid:
            begun = not (int(dut.out_tready.value) and int(dut.out_tlast.value))
    assert stopped and list(sink.packets) == wanted


@cocotb.test()
async def stopped_for_ever_nothing_leaves(dut) -> None:
    source, sink = AxisSource(dut, "in"), AxisSink(dut, "out")
    dut.stop.value = 1
    await start(dut)
    source.send(b"a" * 40)
    await wait_cycles(dut, 100)
    assert sink.beats == 0
    dut.stop.value = 0
    assert await sink.recv() == b"a" * 40


def test_axis_gate() -> None:
    run(
        "axis_gate",
        __file__,
        ports={"stop": Plain("input", "logic"), "in": AxisSinkPort(64), "out": AxisSourcePort(64)},
    )
