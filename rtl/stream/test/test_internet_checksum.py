# SPDX-License-Identifier: Apache-2.0
"""internet_checksum: the one's complement sum of RFC 1071, against scapy."""

import os
import random

import cocotb
import pytest
from cocotb.triggers import FallingEdge
from nacelle_tb.bench import Plain, run
from nacelle_tb.long import alternately
from nacelle_tb.streams import start
from scapy.utils import checksum

WIDTH = int(os.environ.get("WIDTH", "512"))
BYTES = WIDTH // 8


@cocotb.test()
@cocotb.parametrize(stall=alternately([0.0, 0.5]))
async def same_as_scapy(dut, stall: float) -> None:
    packets = [random.randbytes(random.randrange(1, 9000 if i == 0 else 6 * BYTES)) for i in range(100)] + [b"\xff" * 4096]
    beats = []
    for packet in packets:
        for at in range(0, len(packet), BYTES):
            chunk = packet[at : at + BYTES]
            junk = random.randbytes(BYTES - len(chunk))  # not kept: must not count
            beats.append((at == 0, at + BYTES >= len(packet), chunk + junk, (1 << len(chunk)) - 1))
    dut.in_valid.value = 0
    await start(dut)
    sums = []
    while len(sums) < len(packets):
        await FallingEdge(dut.clk)
        if int(dut.out_valid.value):
            total = int(dut.out_sum.value)
            while total >> 16:
                total = (total & 0xFFFF) + (total >> 16)
            sums.append(total)
        now = bool(beats) and random.random() >= stall
        dut.in_valid.value = int(now)
        if now:
            first, last, data, keep = beats.pop(0)
            dut.in_first.value, dut.in_last.value = int(first), int(last)
            dut.in_data.value, dut.in_keep.value = int.from_bytes(data, "little"), keep
    assert sums == [~checksum(packet) & 0xFFFF for packet in packets]


@pytest.mark.parametrize("width", [64, 512])
def test_internet_checksum(width: int) -> None:
    inputs = {"in_valid": 1, "in_first": 1, "in_last": 1, "in_data": width, "in_keep": width // 8}
    run(
        "internet_checksum",
        __file__,
        params={"DATA_W": width},
        ports={name: Plain("input", f"logic [{bits - 1}:0]") for name, bits in inputs.items()}
        | {"out_valid": Plain("output", "logic"), "out_sum": Plain("output", "logic [31:0]")},
        env={"WIDTH": str(width)},
    )
