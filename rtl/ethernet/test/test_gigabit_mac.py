# SPDX-License-Identifier: Apache-2.0
"""gigabit_mac: frames of a device to the line and back, in clocks that have nothing to do with each other."""

import random

import cocotb
import pytest
from cocotb.clock import Clock
from gmii import GAP, LEAST, PREAMBLE, Line, fcs, whole
from nacelle_tb.bench import AxisSink as AxisSinkPort
from nacelle_tb.bench import AxisSource as AxisSourcePort
from nacelle_tb.bench import Plain, run
from nacelle_tb.long import alternately
from nacelle_tb.streams import AxisSink, AxisSource, start, wait_cycles

GMII_NS = 8


async def begun(dut, stall: float = 0.0) -> tuple[Line, AxisSource, AxisSink]:
    """A MAC out of reset, and its drivers."""
    line, source, sink = Line(dut), AxisSource(dut, "tx", stall), AxisSink(dut, "rx")
    dut.gmii_rx_rst.value = dut.gmii_tx_rst.value = 1
    # As far from the nominal frequency as two stations may be: 100 ppm each (IEEE 802.3, 35.2.2.1), and more.
    cocotb.start_soon(Clock(dut.gmii_rx_clk, GMII_NS * 1000 - 2, unit="ps").start())
    cocotb.start_soon(Clock(dut.gmii_tx_clk, GMII_NS * 1000 + 2, unit="ps").start())
    await start(dut, cycles=20)
    dut.gmii_rx_rst.value = dut.gmii_tx_rst.value = 0
    await line.put(b"", 4)
    return line, source, sink


@cocotb.test()
@cocotb.parametrize(stall=alternately([0.0, 0.9]))
async def frames_pass_both_ways(dut, stall: float) -> None:
    line, source, sink = await begun(dut, stall)
    sizes = [60, 61, 1514, 2048, *(random.randrange(60, 300) for _ in range(30))]
    out = [random.randbytes(size) for size in sizes]
    back = [random.randbytes(size) for size in sizes]
    for frame in out:
        source.send(frame)
    for frame in back:
        await line.put(whole(frame))
    bursts = await line.bursts(len(out))
    assert [burst.data for burst in bursts] == [PREAMBLE + frame + fcs(frame) for frame in out]
    assert not any(burst.error for burst in bursts)
    assert all(burst.gap >= GAP for burst in bursts[1:])
    await wait_cycles(dut, 40)
    assert list(sink.packets) == [(frame, False) for frame in back]


@cocotb.test()
async def the_line_is_full(dut) -> None:
    line, source, _ = await begun(dut)
    for _ in range(10):
        source.send(random.randbytes(1514))
    bursts = await line.bursts(10)
    assert {burst.gap for burst in bursts[2:]} == {GAP}


@cocotb.test()
async def bad_frames_do_not_leave(dut) -> None:
    line, source, _ = await begun(dut)
    good = []
    for _ in range(60):
        frame, bad = random.randbytes(random.randrange(1, 200)), random.random() < 0.5
        source.send(frame, bad)
        good += [] if bad else [frame.ljust(LEAST, b"\0")]
    bursts = await line.bursts(len(good))
    assert [burst.data[8:-4] for burst in bursts] == good


@cocotb.test()
async def damage_is_told(dut) -> None:
    line, _, sink = await begun(dut)
    expected = []
    for _ in range(60):
        frame, bad = random.randbytes(random.randrange(1, 200)), random.random() < 0.5
        await line.put(whole(frame), errors=(random.randrange(8, 8 + len(frame)),) if bad else ())
        expected.append((frame, bad))
    await wait_cycles(dut, 40)
    assert list(sink.packets) == expected


@pytest.mark.parametrize("data_w", [64, 512])
def test_gigabit_mac(data_w: int) -> None:
    inputs = {"clk": "logic", "rst": "logic", "d": "logic [7:0]", "_dv": "logic", "_er": "logic"}
    plain = {f"gmii_rx{'_' * (name in ('clk', 'rst'))}{name}": Plain("input", kind) for name, kind in inputs.items()}
    plain |= {f"gmii_tx_{name}": Plain("input", "logic") for name in ("clk", "rst")}
    plain |= {
        "gmii_txd": Plain("output", "logic [7:0]"),
        "gmii_tx_en": Plain("output", "logic"),
        "gmii_tx_er": Plain("output", "logic"),
    }
    ports = {"rx": AxisSourcePort(data_w), "tx": AxisSinkPort(data_w), **plain}
    run("gigabit_mac", __file__, params={"DATA_W": data_w}, ports=ports)
