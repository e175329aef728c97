# SPDX-License-Identifier: Apache-2.0
"""avst_receive: frames come as they are; the MAC's errors are told; what breaks the protocol costs only the frame that it is in."""

import random

import cocotb
import pytest
from avst import Source
from nacelle_tb.bench import AxisSource as AxisSourcePort
from nacelle_tb.bench import Plain, run
from nacelle_tb.long import alternately
from nacelle_tb.streams import AxisSink, start, wait_cycles

FATAL = 0b010111


def width(dut) -> int:
    """Bits of data."""
    return len(dut.in_data)


def sizes(dut, count: int) -> list[int]:
    """Every number of bytes in the last beat, and some more."""
    return [*range(1, width(dut) // 4 + 1), *(random.randrange(1, 600) for _ in range(count))]


@cocotb.test()
@cocotb.parametrize(stall=alternately([0.0, 0.6]))
async def frames_come_as_they_are(dut, stall: float) -> None:
    source, sink = Source(dut, "in", width(dut)), AxisSink(dut, "out")
    await start(dut)
    expected = []
    for size in sizes(dut, 40):
        frame, error = random.randbytes(size), random.choice((0, 0, 1 << random.randrange(6)))
        await source.send(frame, error, stall)
        expected.append((frame, bool(error & FATAL)))
    await source.quiet(5)
    assert list(sink.packets) == expected


@cocotb.test()
async def a_frame_in_a_frame_ends_it(dut) -> None:
    source, sink = Source(dut, "in", width(dut)), AxisSink(dut, "out")
    await start(dut)
    beat = width(dut) // 8
    expected = []
    for _ in range(40):
        cut = random.randbytes(beat * random.randrange(1, 5))
        for at in range(0, len(cut), beat):
            await source.beat(cut[at : at + beat], start=at == 0)
        await source.quiet(random.randrange(3))
        good = random.randbytes(random.randrange(1, 4 * beat))
        await source.send(good)
        expected += [(cut, True), (good, False)]
    await source.quiet(5)
    assert list(sink.packets) == expected


@cocotb.test()
async def beats_of_no_frame_are_left_out(dut) -> None:
    source, sink = Source(dut, "in", width(dut)), AxisSink(dut, "out")
    await start(dut)
    good = [random.randbytes(random.randrange(1, 300)) for _ in range(30)]
    for frame in good:
        for _ in range(random.randrange(3)):
            await source.beat(random.randbytes(width(dut) // 8), end=random.random() < 0.3)
        await source.send(frame)
    await source.quiet(5)
    await wait_cycles(dut, 4)
    assert list(sink.packets) == [(frame, False) for frame in good]


@pytest.mark.parametrize("data_w", [64, 512])
def test_avst_receive(data_w: int) -> None:
    kinds = {
        "valid": "logic",
        "startofpacket": "logic",
        "endofpacket": "logic",
        "data": f"logic [{data_w - 1}:0]",
        "empty": f"logic [{(data_w // 8).bit_length() - 2}:0]",
        "error": "logic [5:0]",
    }
    ports = {**{f"in_{name}": Plain("input", kind) for name, kind in kinds.items()}, "out": AxisSourcePort(data_w)}
    run("avst_receive", __file__, params={"DATA_W": data_w, "FATAL": FATAL}, ports=ports)
