# SPDX-License-Identifier: Apache-2.0
"""sysmon_readings (boards/ultrascale): four readings for each round of the chip's monitor, as AMD's formulas have them."""

from __future__ import annotations

import random

import cocotb
from cocotb.triggers import RisingEdge
from nacelle_tb.bench import Plain, Source, run
from nacelle_tb.sources import ROOT
from nacelle_tb.streams import StreamSink, start, wait_cycles
from nacelle_tb.values import digits

digits()

READING = "sensors_pkg::sensor_reading_t"
TEMPERATURE, VCCINT, VCCAUX, VCCBRAM = 0x00, 0x01, 0x02, 0x06  # UG580, status registers
CHANNELS = (TEMPERATURE, VCCINT, VCCAUX, VCCBRAM)


def value(channel: int, code: int) -> float:
    """In degrees Celsius and volts (UG580: reference of the chip)."""
    return code * 509.3140064 / 2**16 - 280.23087870 if channel == TEMPERATURE else code * 3 / 2**16


class Monitor:
    """The DRP of SYSMONE4: answers a read some cycles later, by the results that it has then."""

    def __init__(self, dut) -> None:
        self.dut, self.results, self.reads = dut, dict.fromkeys(CHANNELS, 0), 0
        dut.eos.value = dut.drdy.value = dut.drp_data.value = 0

    async def answers(self) -> None:
        while True:
            await RisingEdge(self.dut.clk)
            if not int(self.dut.den.value) or int(self.dut.rst.value):
                continue
            channel = int(self.dut.daddr.value)
            self.reads += 1
            await wait_cycles(self.dut, random.randrange(1, 8))
            self.dut.drdy.value = 1
            self.dut.drp_data.value = self.results[channel]
            await RisingEdge(self.dut.clk)
            self.dut.drdy.value = 0
            self.dut.drp_data.value = random.randrange(1 << 16)

    async def round(self) -> None:
        self.dut.eos.value = 1
        await RisingEdge(self.dut.clk)
        self.dut.eos.value = 0


@cocotb.test()
async def each_round_gives_four_readings(dut) -> None:
    monitor = Monitor(dut)
    readings = StreamSink(dut, "reading", READING, stall=0.5)
    await start(dut)
    cocotb.start_soon(monitor.answers())
    edges = [(0, 0, 0, 0), (0xFFFF, 0xFFFF, 0xFFFF, 0xFFFF), (0x9CC4, 0x4889, 0x9999, 0x4889)]
    for codes in [*edges, *([random.randrange(1 << 16) for _ in CHANNELS] for _ in range(60))]:
        monitor.results = dict(zip(CHANNELS, codes, strict=True))
        await monitor.round()
        if random.random() < 0.3:
            await wait_cycles(dut, 5)
            await monitor.round()  # passed over
        for number, (channel, code) in enumerate(zip(CHANNELS, codes, strict=True)):
            reading = await readings.recv()
            assert (reading.sensor, reading.known, reading.simulated) == (number, 1, 0)
            signed = reading.value - (reading.value >> 31 << 32)
            assert abs(signed - 1000 * value(channel, code)) <= 1.5, (channel, code, signed)
        await wait_cycles(dut, 5)
    assert monitor.reads == 4 * 63


@cocotb.test()
async def a_monitor_that_stops_gives_nothing(dut) -> None:
    """Neither one that no longer goes round, nor one that does not answer; it goes on with the next round."""
    monitor = Monitor(dut)
    readings = StreamSink(dut, "reading", READING)
    await start(dut)
    await wait_cycles(dut, 500)
    assert not int(dut.reading_valid.value) and not int(dut.den.value)
    await monitor.round()
    await wait_cycles(dut, 500)
    assert not int(dut.reading_valid.value)
    dut.drp_data.value, dut.drdy.value = 0x9CC4, 1
    await RisingEdge(dut.clk)
    dut.drdy.value = 0
    assert (await readings.recv()).sensor == 0


def test_sysmon_readings() -> None:
    run(
        "sysmon_readings",
        __file__,
        ports={
            "eos": Plain("input", "logic"),
            "den": Plain("output", "logic"),
            "daddr": Plain("output", "logic [7:0]"),
            "drdy": Plain("input", "logic"),
            "drp_data": Plain("input", "logic [15:0]"),
            "reading": Source(READING),
        },
        sources=[ROOT / "boards" / "ultrascale" / "sysmon_readings.sv"],
        random_state=True,
    )
