# SPDX-License-Identifier: Apache-2.0
"""gmii_transmit: preamble, padding, FCS and gap; a frame that fails is no frame for anybody."""

import random

import cocotb
from cocotb.triggers import FallingEdge
from gmii import GAP, LEAST, PREAMBLE, Line, fcs
from nacelle_tb.bench import AxisSink as AxisSinkPort
from nacelle_tb.bench import Plain, run
from nacelle_tb.streams import AxisSource, start


@cocotb.test()
async def frames_are_ethernet(dut) -> None:
    line, source = Line(dut, receive=False), AxisSource(dut, "in")
    await start(dut)
    frames = [random.randbytes(size) for size in (1, 59, 60, 61, 64, 1514, 2048, *(random.randrange(1, 200) for _ in range(40)))]
    for frame in frames:
        source.send(frame)
    for frame, burst in zip(frames, await line.bursts(len(frames)), strict=True):
        padded = frame.ljust(LEAST, b"\0")
        assert not burst.error
        assert burst.data == PREAMBLE + padded + fcs(padded)
    assert {burst.gap for burst in line.sent[1 : len(frames)]} == {GAP}


@cocotb.test()
@cocotb.parametrize((("size", "stop"), [(2, 1), *((size, stop) for size in (60, 61, 300) for stop in (1, 40, 58, 59)), (300, 299)]))
async def a_frame_that_stalls_ends_with_an_error(dut, size: int, stop: int) -> None:
    line = Line(dut, receive=False)
    dut.in_tvalid.value = dut.in_tuser.value = 0
    await start(dut)
    frame = random.randbytes(size)
    good = random.randbytes(70)
    for number, data in ((0, frame), (1, good)):
        sent = 0
        while sent < len(data):
            await FallingEdge(dut.clk)
            if number == 0 and sent == stop and not line.sent:
                dut.in_tvalid.value = 0
                continue
            dut.in_tvalid.value = 1
            dut.in_tkeep.value = 1
            dut.in_tdata.value = data[sent]
            dut.in_tlast.value = int(sent == len(data) - 1)
            sent += int(dut.in_tready.value)
    await FallingEdge(dut.clk)
    dut.in_tvalid.value = 0
    broken, whole = await line.bursts(2)
    assert broken.error and fcs(broken.data[8:-4]) != broken.data[-4:]
    assert not whole.error and whole.data == PREAMBLE + good + fcs(good) and whole.gap >= GAP


@cocotb.test()
@cocotb.parametrize(size=[1, 59, 60, 61, 300])
async def a_bad_frame_ends_with_an_error(dut, size: int) -> None:
    line, source = Line(dut, receive=False), AxisSource(dut, "in")
    await start(dut)
    source.send(random.randbytes(size), bad=True)
    source.send(good := random.randbytes(size))
    broken, whole = await line.bursts(2)
    assert broken.error and fcs(broken.data[8:-4]) != broken.data[-4:]
    padded = good.ljust(LEAST, b"\0")
    assert not whole.error and whole.data == PREAMBLE + padded + fcs(padded)


def test_gmii_transmit() -> None:
    signals = {"gmii_txd": "logic [7:0]", "gmii_tx_en": "logic", "gmii_tx_er": "logic"}
    run("gmii_transmit", __file__, ports={"in": AxisSinkPort(8), **{name: Plain("output", kind) for name, kind in signals.items()}})
