# SPDX-License-Identifier: Apache-2.0
"""The stream kernel `pass`, and that each stream kernel of the project has line rate in both directions at once, whatever the
frames are, and answers for its registers."""

from __future__ import annotations

import os
import random

import cocotb
import pytest
from nacelle_tb.long import some
from nacelle_tb.streams import wait_cycles
from nacelle_tb.widths import WIDTHS
from stream_bench import Kernel, run_kernel

BYTES = int(os.environ.get("WIDTH", "64")) // 8
BLOCK = os.environ.get("KERNEL", "pass")


@cocotb.test()
@cocotb.parametrize(stall=[0.0, 0.4])
async def frames_pass_as_they_are(dut, stall: float) -> None:
    """One beat a cycle in both directions."""
    kernel = await Kernel(dut, BLOCK, stall).begin()
    frames = [random.randbytes(length) for length in [14, 60, 64, 65, 1514, *(random.randint(14, 300) for _ in range(150))]]
    for frame in frames:
        kernel.rx_in.send(frame)
        kernel.tx_in.send(frame[::-1])
    for frame in frames:
        assert await kernel.rx_out.recv() == frame
        assert await kernel.tx_out.recv() == frame[::-1]
    beats = sum(-(-len(frame) // BYTES) for frame in frames)
    for sink in (kernel.rx_out, kernel.tx_out):
        assert sink.beats == beats
        if not stall:
            assert sink.cycle - beats < 100


@cocotb.test(skip=BLOCK != "pass")
async def it_stops_and_goes_on(dut) -> None:
    kernel = await Kernel(dut, BLOCK).begin()
    for hold, stopped, flows in ((1, "rx", "tx"), (2, "tx", "rx")):
        await kernel.write(HOLD=hold)
        assert await kernel.read("HOLD") == hold
        kernel.rx_in.send(b"r" * 60)
        kernel.tx_in.send(b"t" * 60)
        assert await getattr(kernel, f"{flows}_out").recv()
        await wait_cycles(dut, 100)
        assert not getattr(kernel, f"{stopped}_out").packets
        await kernel.write(HOLD=0)
        assert await getattr(kernel, f"{stopped}_out").recv()


@pytest.mark.parametrize("name", ["pass", "nat", "telemetry"])
@pytest.mark.parametrize("width", some(WIDTHS))
def test_stream_kernels(width: int, name: str) -> None:
    run_kernel(name, __file__, width, {"KERNEL": name})
