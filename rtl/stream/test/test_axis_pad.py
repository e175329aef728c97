# SPDX-License-Identifier: Apache-2.0
"""axis_pad: packets leave as they are, filled up with zeros to the least length."""

from __future__ import annotations

import os
import random

import cocotb
import pytest
from nacelle_tb.bench import AxisSink as AxisSinkPort
from nacelle_tb.bench import AxisSource as AxisSourcePort
from nacelle_tb.bench import run
from nacelle_tb.long import alternately
from nacelle_tb.streams import AxisSink, AxisSource, start
from nacelle_tb.widths import WIDTHS

BYTES = int(os.environ.get("WIDTH", "64")) // 8
MINIMUM = 60


class Dirty(AxisSource):
    """Bytes behind the end of a packet are not zero."""

    def _present(self, item: tuple[int, int, int, int]) -> None:
        data, keep, last, user = item
        junk = sum(0xEE << 8 * i for i in range(BYTES) if not keep >> i & 1)
        super()._present((data | junk, keep, last, user))


@cocotb.test()
@cocotb.parametrize(stall=alternately([0.0, 0.5]))
async def every_length_is_filled_up(dut, stall: float) -> None:
    source, sink = Dirty(dut, "in", stall), AxisSink(dut, "out", stall)
    await start(dut)
    lengths = [*range(1, MINIMUM + 2 * BYTES + 2), *(random.randrange(1, 300) for _ in range(100))]
    random.shuffle(lengths)
    packets = [random.randbytes(length) for length in lengths]
    for packet in packets:
        source.send(packet)
    for packet in packets:
        assert await sink.recv() == packet.ljust(MINIMUM, b"\0")
    if not stall:
        assert sink.cycle - sink.beats < 60, "bubbles"


@pytest.mark.parametrize("width", WIDTHS)
def test_axis_pad(width: int) -> None:
    run(
        "axis_pad",
        __file__,
        params={"DATA_W": width, "MINIMUM": MINIMUM},
        ports={"in": AxisSinkPort(width), "out": AxisSourcePort(width)},
        env={"WIDTH": str(width)},
    )
