# SPDX-License-Identifier: Apache-2.0
"""axis_widen and axis_narrow: the same packets by beats of another width, at one word a cycle."""

import random

import cocotb
import pytest
from cocotb.simtime import get_sim_time
from nacelle_tb.bench import AxisSink as AxisSinkPort
from nacelle_tb.bench import AxisSource as AxisSourcePort
from nacelle_tb.bench import run
from nacelle_tb.streams import CLOCK_NS, AxisSink, AxisSource, start


async def passed(dut, stall_in: float, stall_out: float) -> tuple[int, int]:
    """Sends packets through; how many words, and in how many cycles."""
    source, sink = AxisSource(dut, "in", stall_in), AxisSink(dut, "out", stall_out)
    await start(dut)
    word = min(source.bytes_per_beat, sink.bytes_per_beat)
    packets = [
        (random.randbytes(word * random.choice((1, 7, 8, 9, 63, 64, 65, random.randrange(1, 200)))), random.random() < 0.2)
        for _ in range(100)
    ]
    begin = get_sim_time("ns")
    for packet, bad in packets:
        source.send(packet, bad)
    await sink._wait(lambda: len(sink.packets) == len(packets), 200_000)
    assert list(sink.packets) == packets
    return sum(len(packet) for packet, _ in packets) // word, int((get_sim_time("ns") - begin) / CLOCK_NS)


@cocotb.test()
@cocotb.parametrize(stall_in=[0.0, 0.4], stall_out=[0.0, 0.6])
async def packets_pass(dut, stall_in: float, stall_out: float) -> None:
    await passed(dut, stall_in, stall_out)


@cocotb.test()
async def a_word_passes_in_each_cycle(dut) -> None:
    size, cycles = await passed(dut, 0.0, 0.0)
    assert cycles < size + 20


@pytest.mark.parametrize(("data_w", "word_w"), [(16, 8), (64, 8), (512, 8), (64, 32), (512, 32)])
def test_axis_widen(data_w: int, word_w: int) -> None:
    ports = {"in": AxisSinkPort(word_w), "out": AxisSourcePort(data_w)}
    run("axis_widen", __file__, params={"DATA_W": data_w, "WORD_W": word_w}, ports=ports)


@pytest.mark.parametrize("data_w", [16, 64, 512])
def test_axis_narrow(data_w: int) -> None:
    run("axis_narrow", __file__, params={"DATA_W": data_w}, ports={"in": AxisSinkPort(data_w), "out": AxisSourcePort(8)})
