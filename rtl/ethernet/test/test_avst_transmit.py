# SPDX-License-Identifier: Apache-2.0
"""avst_transmit: frames leave as they are, with start, end and empty symbols; a bad one leaves with the error."""

import random

import cocotb
import pytest
from avst import Sink
from nacelle_tb.bench import AxisSink as AxisSinkPort
from nacelle_tb.bench import Plain, run
from nacelle_tb.long import alternately
from nacelle_tb.streams import AxisSource, start


@cocotb.test()
@cocotb.parametrize(stall=alternately([0.0, 0.6]))
async def frames_leave_as_they_are(dut, stall: float) -> None:
    width = len(dut.out_data)
    source, sink = AxisSource(dut, "in", stall), Sink(dut, "out", width, stall)
    await start(dut)
    sent = []
    for size in [*range(1, width // 4 + 1), *(random.randrange(1, 600) for _ in range(40))]:
        frame, bad = random.randbytes(size), random.random() < 0.3
        source.send(frame, bad)
        sent.append((frame, bad))
    await source.drained()
    assert sink.frames == sent


@pytest.mark.parametrize("data_w", [64, 512])
def test_avst_transmit(data_w: int) -> None:
    kinds = {
        "valid": "logic",
        "startofpacket": "logic",
        "endofpacket": "logic",
        "data": f"logic [{data_w - 1}:0]",
        "empty": f"logic [{(data_w // 8).bit_length() - 2}:0]",
        "error": "logic",
    }
    ports = {"in": AxisSinkPort(data_w), "out_ready": Plain("input", "logic")}
    ports |= {f"out_{name}": Plain("output", kind) for name, kind in kinds.items()}
    run("avst_transmit", __file__, params={"DATA_W": data_w}, ports=ports)
