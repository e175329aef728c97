# SPDX-License-Identifier: Apache-2.0
"""mac_crossing: frames of a device to a MAC in a faster clock, in one piece each, and back."""

import random

import cocotb
import pytest
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge, RisingEdge
from nacelle_tb.bench import AxisSink as AxisSinkPort
from nacelle_tb.bench import AxisSource as AxisSourcePort
from nacelle_tb.bench import Plain, run
from nacelle_tb.long import alternately
from nacelle_tb.streams import AxisSink, AxisSource, start, wait_cycles

MAC_PS = 3104  # 322 MHz; the device has 250


class Mac:
    """The MAC's side: puts frames in, and takes those that are sent, in pieces if it is made to."""

    def __init__(self, dut) -> None:
        self.dut, self.width = dut, len(dut.mac_tx_tdata) // 8
        self.sent: list[tuple[bytes, bool]] = []
        self.stall = 0.0
        self.lost = 0
        dut.mac_rx_tvalid.value = dut.mac_tx_tready.value = dut.mac_rx_broken.value = 0
        cocotb.start_soon(self._take())

    async def put(self, frame: bytes, bad: bool = False) -> None:
        dut = self.dut
        for at in range(0, len(frame), self.width):
            part = frame[at : at + self.width]
            await FallingEdge(dut.mac_clk)
            dut.mac_rx_tvalid.value = 1
            dut.mac_rx_tdata.value = int.from_bytes(part, "little")
            dut.mac_rx_tkeep.value = (1 << len(part)) - 1
            dut.mac_rx_tlast.value = int(at + self.width >= len(frame))
            dut.mac_rx_tuser.value = int(bad)
        await FallingEdge(dut.mac_clk)
        dut.mac_rx_tvalid.value = 0

    async def _take(self) -> None:
        dut, data = self.dut, bytearray()
        while True:
            await FallingEdge(dut.mac_clk)
            dut.mac_tx_tready.value = int(random.random() >= self.stall)
            await RisingEdge(dut.mac_clk)
            self.lost += int(dut.rx_lost.value)
            if not int(dut.mac_tx_tready.value):
                continue
            if not int(dut.mac_tx_tvalid.value):
                assert not data, "a frame has a gap"
                continue
            kept = int(dut.mac_tx_tkeep.value).bit_length()
            data += int(dut.mac_tx_tdata.value).to_bytes(self.width, "little")[:kept]
            if int(dut.mac_tx_tlast.value):
                self.sent.append((bytes(data), bool(int(dut.mac_tx_tuser.value))))
                data = bytearray()


async def begun(dut, stall: float = 0.0) -> tuple[Mac, AxisSource, AxisSink]:
    mac, source, sink = Mac(dut), AxisSource(dut, "tx", stall), AxisSink(dut, "rx")
    dut.mac_rst.value = 1
    cocotb.start_soon(Clock(dut.mac_clk, MAC_PS, unit="ps").start())
    await start(dut, cycles=20)
    dut.mac_rst.value = 0
    await wait_cycles(dut, 8)
    return mac, source, sink


@cocotb.test()
@cocotb.parametrize(stall=alternately([0.0, 0.5]))
async def frames_leave_whole(dut, stall: float) -> None:
    mac, source, _ = await begun(dut, stall)
    mac.stall = stall
    good = []
    for size in [4224, 4223, *(random.randrange(1, 700) for _ in range(60))]:
        frame, bad = random.randbytes(size), random.random() < 0.3
        source.send(frame, bad)
        good += [] if bad else [(frame, False)]
    await source.drained()
    await wait_cycles(dut, 3000)
    assert mac.sent == good


@cocotb.test()
async def frames_come_at_the_rate_of_the_line(dut) -> None:
    mac, _, sink = await begun(dut)
    sent = []
    for _ in range(80):
        frame, bad = random.randbytes(random.randrange(60, 1500)), random.random() < 0.3
        await mac.put(frame, bad)
        # A line that brings 100 of the 165 that its clock could.
        for _ in range(len(frame) * 2 // 3 // mac.width):
            await RisingEdge(dut.mac_clk)
        sent.append((frame, bad))
    await wait_cycles(dut, 100)
    assert list(sink.packets) == sent and mac.lost == 0


@cocotb.test()
async def a_device_that_stands_still_loses_frames_and_no_more(dut) -> None:
    mac, _, sink = await begun(dut)
    sink.stall = 1.0
    sent = [random.randbytes(random.randrange(60, 300)) for _ in range(60)]
    for frame in sent:
        await mac.put(frame)
    assert mac.lost > 0
    sink.stall = 0.0
    await wait_cycles(dut, 300)
    *whole, (cut, bad) = sink.packets
    kept = len(whole)
    assert whole == [(frame, False) for frame in sent[:kept]]
    assert kept + mac.lost == len(sent)
    assert (cut, bad) == (sent[kept], False) or (bad and sent[kept].startswith(cut[:-1]))
    await mac.put(sent[0])
    await wait_cycles(dut, 60)
    assert sink.packets[-1] == (sent[0], False)


@pytest.mark.parametrize("data_w", [64])
def test_mac_crossing(data_w: int) -> None:
    plain = {name: Plain("input", "logic") for name in ("mac_clk", "mac_rst", "mac_rx_broken")}
    ports = {
        "rx": AxisSourcePort(data_w),
        "tx": AxisSinkPort(data_w),
        "mac_rx": AxisSinkPort(data_w),
        "mac_tx": AxisSourcePort(data_w),
        "rx_lost": Plain("output", "logic"),
        **plain,
    }
    run("mac_crossing", __file__, params={"DATA_W": data_w}, ports=ports)
