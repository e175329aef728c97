# SPDX-License-Identifier: Apache-2.0
"""vlan_remove: tags as scapy writes them; what belongs to the device's VLAN comes without, all else as it was."""

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
from nacelle_tb.widths import WIDTHS, at_width

SETTINGS, TAG = "link_pkg::vlan_settings_t", "frame_pkg::vlan_t"
WIDTH = int(os.environ.get("WIDTH", "512"))
VID = 0x7A5
TAG_END = 16  # of a tag in a frame


def some_frame() -> bytes:
    """Of any length, from what is too short to parse on."""
    size = random.choice([60, 60, 61, 64, random.randrange(17, 70), random.randrange(60, 300), 1000])
    return frames.ethernet_padded(frames.roce(random.randbytes(500)))[:size].ljust(size, b"\x5a")


class Bench:
    """The module with drivers. `verdicts`: foreign and the tag with the last beat of each frame."""

    def __init__(self, dut: Any, stall: float = 0.0) -> None:
        self.dut = dut
        self.rx = AxisSource(dut, "in", stall, noise=True)
        self.out = AxisSink(dut, "out")
        self.verdicts: list[tuple[int, Any]] = []

    async def start(self, **settings: int) -> Bench:
        self.set(**settings)
        await start(self.dut)
        cocotb.start_soon(self._watch())
        await wait_cycles(self.dut, 3)
        return self

    def set(self, **settings: int) -> None:
        self.dut.settings.value = struct(SETTINGS).pack({"enable": 1, "untagged": 0, "vid": VID} | settings)

    async def _watch(self) -> None:
        while True:
            await RisingEdge(self.dut.clk)
            if int(self.dut.out_tvalid.value) and int(self.dut.out_tlast.value):
                self.verdicts.append((int(self.dut.foreign.value), struct(TAG).unpack(int(self.dut.tag.value))))

    async def expect(self, wanted: list[tuple[bytes, int, int, tuple[int, int, int] | None]]) -> None:
        """Frame, whether it is bad, whether it is foreign, and the PCP, DEI and VID of a tag that was removed."""
        await self.rx.drained()
        await wait_cycles(self.dut, 4)
        assert int(self.dut.idle.value)
        assert list(self.out.packets) == [(frame, bad) for frame, bad, _, _ in wanted]
        for (frame, _, foreign, tag), (got, got_tag) in zip(wanted, self.verdicts, strict=True):
            if len(frame) >= TAG_END:
                assert got == foreign, frame.hex()
                assert got_tag.present == (tag is not None)
                if tag:
                    assert (got_tag.pcp, got_tag.dei, got_tag.vid, got_tag.service) == (*tag, 0)
        self.out.packets.clear()
        self.verdicts.clear()


@cocotb.test()
@cocotb.parametrize(stall=alternately([0.0, 0.5]), untagged=[0, 1])
async def frames_of_the_vlan_come_without_their_tag(dut, stall: float, untagged: int) -> None:
    bench = await Bench(dut, stall).start(untagged=untagged)
    wanted = []
    for _ in range(300):
        frame, bad, pcp, dei = some_frame(), int(random.random() < 0.2), random.randrange(8), random.randrange(2)
        kind = random.choice(["own", "own", "own", "other", "priority", "none", "service", "twice", "twice other"])
        if kind == "none":
            sent, left = frame, (frame, bad, int(not untagged), None)
        elif kind == "service":
            sent = frames.with_tag(frame, VID, pcp, service=True)
            left = (sent, bad, 1, None)
        elif kind == "other":
            sent = frames.with_tag(frame, random.choice([VID ^ 1 << random.randrange(12), 1, 0xFFF]), pcp, dei=dei)
            left = (sent, bad, 1, None)
        elif kind == "priority":
            sent = frames.with_tag(frame, 0, pcp, dei=dei)
            left = (frame, bad, 0, (pcp, dei, 0)) if untagged else (sent, bad, 1, None)
        else:
            inner = {"own": frame, "twice": frames.with_tag(frame, VID), "twice other": frames.with_tag(frame, 5)}[kind]
            sent = frames.with_tag(inner, VID, pcp, dei=dei)
            left = (inner, bad, 0, (pcp, dei, VID))
        bench.rx.send(sent, bool(bad))
        wanted.append(left)
    await bench.expect(wanted)


@cocotb.test()
async def every_length_comes_out_whole(dut) -> None:
    """Around each multiple of a beat, with and without a tag, back to back."""
    bench = await Bench(dut).start(untagged=1)
    wanted = []
    for size in range(17, 60 + 3 * WIDTH // 8):
        frame = random.randbytes(12) + b"\x08\x00" + random.randbytes(size - 14)
        for sent, tag in ((frames.with_tag(frame, VID, 5), (5, 0, VID)), (frame, None)):
            bench.rx.send(sent)
            wanted.append((frame, 0, 0, tag))
    beats = len(bench.rx._queue)
    begin = bench.out.cycle
    await bench.rx.drained()
    assert bench.out.cycle - begin <= beats + 4, "the line stopped"
    await bench.expect(wanted)


@cocotb.test()
async def without_a_vlan_nothing_changes_and_nothing_waits(dut) -> None:
    bench = await Bench(dut).start(enable=0)
    wanted = []
    for n in range(100):
        frame = some_frame()
        sent = frame if n % 2 else frames.with_tag(frame, VID)
        bench.rx.send(sent)
        wanted.append((sent, 0, 0, None))
    for _ in range(50):
        await RisingEdge(dut.clk)
        assert int(dut.out_tvalid.value) == int(dut.in_tvalid.value)
    await bench.expect(wanted)


@cocotb.test()
async def it_is_switched_between_frames(dut) -> None:
    """At any time: each frame comes as it should with the setting of before or of after."""
    bench = await Bench(dut, 0.3).start()
    enable, sent = 1, []
    for _ in range(150):
        frame = some_frame()
        sent.append((frames.with_tag(frame, VID), frame))
        bench.rx.send(sent[-1][0])
        if random.random() < 0.3:
            enable ^= 1
            await wait_cycles(dut, random.randrange(20))
            bench.set(enable=enable)
    await bench.rx.drained()
    await wait_cycles(dut, 4)
    assert len(bench.out.packets) == len(sent)
    kinds = [both.index(got) for both, (got, _) in zip(sent, bench.out.packets, strict=True)]
    assert 0 < sum(kinds) < len(kinds)


@pytest.mark.parametrize("width", WIDTHS)
def test_vlan_remove(width: int) -> None:
    run(
        "vlan_remove",
        __file__,
        params={"DATA_W": width},
        ports={
            "settings": Plain("input", SETTINGS),
            "in": AxisSinkPort(width),
            "out": AxisSourcePort(width),
            "foreign": Plain("output", "logic"),
            "tag": Plain("output", TAG),
            "idle": Plain("output", "logic"),
        },
        env={"WIDTH": str(width), **at_width(width, "untagged=0|switched|nothing_waits|every_length")},
    )
