# SPDX-License-Identifier: Apache-2.0
"""roce_cc keeps every QP to its rate, alone or all at once, within 2 % over 1 ms (2 ms of 256). The sender is in cc_bench.sv."""

from __future__ import annotations

import os
import random
from pathlib import Path

import cocotb
import pytest
from cc_model import CYCLES_PER_US, DEFAULTS, LINE_MBPS
from cocotb.triggers import FallingEdge, Timer
from nacelle_tb.bench import Plain, run
from nacelle_tb.long import some
from nacelle_tb.streams import CLOCK_NS, start
from nacelle_tb.svtypes import struct

BENCH = Path(__file__).parent / "cc_bench.sv"
QPS = int(os.environ.get("QPS", 16))
INDEX, CONFIG = "roce_pkg::qp_index_t", "roce_cc_pkg::cc_config_t"
FIXED = {**DEFAULTS, "rpg_time_reset": 0, "rpg_byte_reset": 0, "dce_tcp_rtt": 0}  # nothing raises a rate
WARM_UP_US, MEASURED_US = 400, 1000 if QPS <= 16 else 2000  # at first every QP catches up what it may be behind


def ports(qps: int) -> dict:
    return {
        "cfg": Plain("input", CONFIG),
        "cnp": Plain("input", "logic"),
        "cnp_qpn": Plain("input", "roce_wire_pkg::qpn_t"),
        "begin_": Plain("input", "logic"),
        "members": Plain("input", f"logic [{qps - 1}:0]"),
        "packet": Plain("input", "logic [12:0]"),
        "quantum": Plain("input", "logic [12:0]"),
        "measure_from": Plain("input", "logic [47:0]"),
        "shown": Plain("input", INDEX),
        "cycles": Plain("output", "logic [47:0]"),
        "bytes": Plain("output", "logic [47:0]"),
    }


async def cycles(count: int) -> None:
    await Timer(count * CLOCK_NS, "ns")


async def begin(dut) -> None:
    for name in ("cfg", "cnp", "cnp_qpn", "begin_", "members", "packet", "quantum", "shown"):
        getattr(dut, name).value = 0
    dut.measure_from.value = WARM_UP_US * CYCLES_PER_US
    await start(dut)
    await cycles(QPS + 8)  # until its tables are clear


async def check(dut, rates: dict[int, int], packet: int, quantum: int) -> None:
    """Limits these QPs to these rates (Mb/s) for good, lets them send, and compares."""
    for index, rate in rates.items():
        dut.cfg.value = struct(CONFIG).pack(FIXED, rate_to_set_on_first_cnp=rate)
        await cycles(8)
        await FallingEdge(dut.clk)
        dut.cnp_qpn.value = index + 2
        dut.cnp.value = 1
        await FallingEdge(dut.clk)
        dut.cnp.value = 0
        await cycles(3 * QPS + 40)
    await FallingEdge(dut.clk)
    dut.members.value = sum(1 << index for index in rates)
    dut.packet.value, dut.quantum.value = packet, quantum
    dut.begin_.value = 1
    await FallingEdge(dut.clk)
    dut.begin_.value = 0
    await cycles((WARM_UP_US + MEASURED_US) * CYCLES_PER_US)
    for index, rate in rates.items():
        dut.shown.value = index
        await FallingEdge(dut.clk)
        await FallingEdge(dut.clk)
        assert int(dut.cycles.value) > 0.7 * MEASURED_US * CYCLES_PER_US, f"QP {index} stopped"
        got = int(dut.bytes.value) * 8 / (int(dut.cycles.value) / CYCLES_PER_US)
        assert abs(got - rate) <= 0.02 * rate, f"QP {index}, {rate} Mb/s: {got:.1f}"


@cocotb.test(skip=QPS > 16)
@cocotb.parametrize(rate=some([300, 25_000, 99_000, 7_000, 60_000], 3))
async def alone(dut, rate: int) -> None:
    """One QP, in quanta of 4 KiB as the requester sends."""
    await begin(dut)
    await check(dut, {5: rate}, 1104 if rate > 1000 else 330, 4096 if rate > 1000 else 330)


@cocotb.test()
async def slow_beside_fast(dut) -> None:
    """10 Mb/s, in packets that are small enough to measure it, beside much faster QPs."""
    await begin(dut)
    await check(dut, {3: 10, 4: 300, 9: 7_000, 11: 25_000}, 98, 98)


@cocotb.test()
async def all_at_once(dut) -> None:
    """Every QP, together at 90 % of the line."""
    await begin(dut)
    weights = {index: random.uniform(0.5, 2.0) for index in range(QPS)}
    share = 0.9 * LINE_MBPS / sum(weights.values())
    await check(dut, {index: int(weight * share) for index, weight in weights.items()}, 1104, 4096 if QPS <= 64 else 1104)


@pytest.mark.parametrize("qps", [16, 256])
def test_roce_cc_pacing(qps: int) -> None:
    run("cc_bench", __file__, params={"QPS": qps}, ports=ports(qps), env={"QPS": str(qps)}, sources=[BENCH])
