# SPDX-License-Identifier: Apache-2.0
"""axis_slice and axis_fifo: packets pass as they are. The stream cells inside are proved in ../formal."""

import random

import cocotb
from nacelle_tb.bench import AxisSink as AxisSinkPort
from nacelle_tb.bench import AxisSource as AxisSourcePort
from nacelle_tb.bench import Plain, run
from nacelle_tb.streams import AxisSink, AxisSource, start


@cocotb.test()
@cocotb.parametrize(stall_in=[0.0, 0.4], stall_out=[0.0, 0.6])
async def packets_pass(dut, stall_in: float, stall_out: float) -> None:
    source = AxisSource(dut, "in", stall_in)
    sink = AxisSink(dut, "out", stall_out)
    await start(dut)
    packets = [(random.randbytes(random.randrange(1, 50)), random.random() < 0.2) for _ in range(100)]
    for packet, bad in packets:
        source.send(packet, bad)
    await sink._wait(lambda: len(sink.packets) == len(packets), 10_000)
    assert list(sink.packets) == packets


IN, OUT = AxisSinkPort(64), AxisSourcePort(64)


def test_axis_slice() -> None:
    run("axis_slice", __file__, params={"DATA_W": 64}, ports={"in": IN, "out": OUT})


def test_axis_fifo() -> None:
    ports = {"in": IN, "out": OUT, "empty": Plain("output", "logic")}
    run("axis_fifo", __file__, params={"DATA_W": 64, "DEPTH": 4}, ports=ports)
