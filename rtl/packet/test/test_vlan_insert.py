# SPDX-License-Identifier: Apache-2.0
"""vlan_insert: every frame gets the tag that scapy would give it, but for those to the next station."""

from __future__ import annotations

import os
import random
from typing import Any

import cocotb
import packet_frames as frames
import pytest
from cocotb.triggers import RisingEdge
from nacelle_tb.bench import AxisSink as AxisSinkPort
from nacelle_tb.bench import AxisSource as AxisSourcePort
from nacelle_tb.bench import Plain, run
from nacelle_tb.long import alternately
from nacelle_tb.streams import AxisSink, AxisSource, start, wait_cycles
from nacelle_tb.svtypes import struct
from nacelle_tb.widths import WIDTHS

SETTINGS, PRIORITIES = "link_pkg::vlan_settings_t", "link_pkg::priorities_t"
WIDTH = int(os.environ.get("WIDTH", "512"))
BYTES = WIDTH // 8
VID, ROCE_PCP, OTHER_PCP = 0x5C3, 6, 1
NEXT_STATION = ("01:80:c2:00:00:0e", "01:80:c2:00:00:00")


class Bench:
    """The module with drivers; `roce` follows the frames that are sent."""

    def __init__(self, dut: Any, stall: float = 0.0) -> None:
        self.dut = dut
        self.source = AxisSource(dut, "in", stall)
        self.out = AxisSink(dut, "out", stall)
        self.roce: list[int] = []

    async def start(self, **settings: int) -> Bench:
        self.set(**settings)
        self.dut.priorities.value = struct(PRIORITIES).pack(roce=ROCE_PCP, other=OTHER_PCP)
        self.dut.roce.value = 0
        await start(self.dut)
        cocotb.start_soon(self._class())
        await wait_cycles(self.dut, 3)
        return self

    def set(self, **settings: int) -> None:
        self.dut.settings.value = struct(SETTINGS).pack({"enable": 1, "untagged": 0, "vid": VID} | settings)

    def send(self, frame: bytes, roce: int = 0, bad: bool = False) -> None:
        if not self.roce:  # nothing is offered yet
            self.dut.roce.value = roce
        self.roce.append(roce)
        self.source.send(frame, bad)

    async def _class(self) -> None:
        """The class of the frame that is offered."""
        passed = 0
        while True:
            await RisingEdge(self.dut.clk)
            passed += int(self.dut.in_tvalid.value) & int(self.dut.in_tlast.value) & int(self.dut.in_tready.value)
            if passed < len(self.roce):
                self.dut.roce.value = self.roce[passed]


def frame_of(size: int, destination: str = frames.PEER_MAC) -> bytes:
    return frames.mac_bytes(destination) + frames.mac_bytes(frames.MAC) + b"\x08\x00" + random.randbytes(size - 14)


@cocotb.test()
@cocotb.parametrize(stall=alternately([0.0, 0.5]))
async def every_frame_is_tagged(dut, stall: float) -> None:
    bench = await Bench(dut, stall).start()
    wanted = []
    for size in [*range(60, 60 + 2 * BYTES + 8), *(random.randrange(60, 500) for _ in range(100))]:
        frame, roce, bad = frame_of(size), random.randrange(2), random.random() < 0.1
        bench.send(frame, roce, bad)
        wanted.append((frames.with_tag(frame, VID, ROCE_PCP if roce else OTHER_PCP), int(bad)))
        if random.random() < 0.1:
            link = frame_of(random.randrange(60, 200), random.choice(NEXT_STATION))
            bench.send(link)
            wanted.append((link, 0))
    await bench.out._wait(lambda: len(bench.out.packets) == len(wanted), 50_000)
    assert list(bench.out.packets) == wanted


@cocotb.test()
async def no_bubble(dut) -> None:
    """A beat in every cycle, and one more than came only where four bytes need it."""
    bench = await Bench(dut).start()
    sizes = [random.randrange(60, 400) for _ in range(60)]
    for size in sizes:
        bench.send(frame_of(size))
    await bench.out._wait(lambda: len(bench.out.packets) == len(sizes), 50_000)
    assert bench.out.spans[-1][1] - bench.out.spans[0][0] + 1 == sum(-(-(size + 4) // BYTES) for size in sizes)


@cocotb.test()
async def without_a_vlan_nothing_changes(dut) -> None:
    bench = await Bench(dut, 0.3).start(enable=0)
    sent = [frame_of(random.randrange(60, 300)) for _ in range(80)]
    for frame in sent:
        bench.send(frame)
    await bench.out._wait(lambda: len(bench.out.packets) == len(sent), 50_000)
    assert [frame for frame, _ in bench.out.packets] == sent


@cocotb.test()
async def it_is_switched_between_frames(dut) -> None:
    bench = await Bench(dut, 0.3).start()
    enable, sent = 1, []
    for _ in range(150):
        frame = frame_of(random.randrange(60, 300))
        sent.append((frame, frames.with_tag(frame, VID, OTHER_PCP)))
        bench.send(frame)
        if random.random() < 0.3:
            enable ^= 1
            await wait_cycles(dut, random.randrange(20))
            bench.set(enable=enable)
    await bench.out._wait(lambda: len(bench.out.packets) == len(sent), 50_000)
    kinds = [both.index(got) for both, (got, _) in zip(sent, bench.out.packets, strict=True)]
    assert 0 < sum(kinds) < len(kinds)


@pytest.mark.parametrize("width", WIDTHS)
def test_vlan_insert(width: int) -> None:
    run(
        "vlan_insert",
        __file__,
        params={"DATA_W": width},
        ports={
            "settings": Plain("input", SETTINGS),
            "priorities": Plain("input", PRIORITIES),
            "roce": Plain("input", "logic"),
            "in": AxisSinkPort(width),
            "out": AxisSourcePort(width),
        },
        env={"WIDTH": str(width)},
    )
