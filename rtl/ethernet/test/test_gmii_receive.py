# SPDX-License-Identifier: Apache-2.0
"""gmii_receive: frames come without preamble and FCS; damaged ones are marked; what is no frame leaves no trace."""

import random

import cocotb
from gmii import PREAMBLE, Line, fcs, whole
from nacelle_tb.bench import AxisSource as AxisSourcePort
from nacelle_tb.bench import Plain, run
from nacelle_tb.streams import AxisSink, start, wait_cycles


@cocotb.test()
async def frames_come_as_they_are(dut) -> None:
    line, sink = Line(dut, transmit=False), AxisSink(dut, "out")
    await start(dut)
    await line.put(b"", 4)
    frames = [random.randbytes(size) for size in (1, 2, 60, 64, 1514, 2048, *(random.randrange(1, 200) for _ in range(40)))]
    for frame in frames:
        # A receiver may see fewer bytes of the preamble, and a shorter gap (IEEE 802.3, 35.2.3.2.2 and 4.4.2).
        await line.put(whole(frame)[random.randrange(8) :], random.choice((1, 5, 8, 12)))
    await wait_cycles(dut, 10)
    assert list(sink.packets) == [(frame, False) for frame in frames]


@cocotb.test()
async def damaged_frames_are_marked(dut) -> None:
    line, sink = Line(dut, transmit=False), AxisSink(dut, "out")
    await start(dut)
    await line.put(b"", 4)
    expected = []
    for _ in range(100):
        frame = random.randbytes(random.randrange(1, 100))
        data, errors = bytearray(whole(frame)), ()
        bad = random.random() < 0.6
        if bad and random.random() < 0.5:
            data[random.randrange(8, len(data))] ^= 1 << random.randrange(8)
        elif bad:
            errors = (random.randrange(8, len(data)),)
        expected.append((bytes(data[8:-4]), bad))
        await line.put(bytes(data), errors=errors)
    await wait_cycles(dut, 10)
    assert list(sink.packets) == expected


@cocotb.test()
async def what_is_no_frame_leaves_no_trace(dut) -> None:
    line, sink = Line(dut, transmit=False), AxisSink(dut, "out")
    await start(dut)
    await line.put(b"", 4)
    good = random.randbytes(64)
    fragments = [
        PREAMBLE[:-1],  # no delimiter
        PREAMBLE,  # nothing behind it
        PREAMBLE + b"\x01\x02\x03\x04",  # an FCS of nothing
        b"\x12" + whole(good),  # no preamble
        PREAMBLE[:3] + b"\x12" + whole(good),  # noise in it
        bytes(random.randrange(0x55) for _ in range(100)),
    ]
    for fragment in fragments:
        await line.put(fragment)
        await line.put(whole(good))
    await line.put(whole(good), errors=(3,))  # an error in the preamble
    await line.put(whole(good))
    await wait_cycles(dut, 10)
    assert list(sink.packets) == [(good, False)] * (len(fragments) + 1)


@cocotb.test()
async def a_frame_that_began_before_the_reset_is_not_taken(dut) -> None:
    line, sink = Line(dut, transmit=False), AxisSink(dut, "out")
    frame = random.randbytes(100)
    task = cocotb.start_soon(line.put(PREAMBLE + frame + PREAMBLE + frame + fcs(frame)))
    await start(dut, cycles=20)
    await task
    await line.put(whole(frame))
    await wait_cycles(dut, 10)
    assert list(sink.packets) == [(frame, False)]


def test_gmii_receive() -> None:
    signals = {"gmii_rxd": "logic [7:0]", "gmii_rx_dv": "logic", "gmii_rx_er": "logic"}
    run(
        "gmii_receive", __file__, ports={"out": AxisSourcePort(8), **{name: Plain("input", kind) for name, kind in signals.items()}}
    )
