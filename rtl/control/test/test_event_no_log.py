# SPDX-License-Identifier: Apache-2.0
"""event_no_log: the way to the next block of registers, and nothing else."""

from __future__ import annotations

import cocotb
from cocotb.triggers import with_timeout
from cocotbext.axi import AxiLiteBus, AxiLiteMaster, AxiResp
from nacelle_tb.bench import AxilSlave, Plain, run
from nacelle_tb.cci import offset
from nacelle_tb.streams import CLOCK_NS, start, wait_cycles
from nacelle_tb.values import digits

digits()

NEXT = 0x4000
KNOWN = {offset("event_log.TYPE"): 0, offset("event_log.VERSION"): 0, offset("event_log.NEXT"): NEXT}
OTHER = [offset("event_log.TICKS_HZ"), offset("event_log.HEAD"), 0x1C, 0x400, 0x800, 0xFFC]


@cocotb.test()
async def it_leads_to_the_next_block_only(dut) -> None:
    master = AxiLiteMaster(AxiLiteBus.from_prefix(dut, "bus"), dut.clk, dut.rst)
    await start(dut)
    for _ in range(2):
        for address, value in KNOWN.items():
            answer = await with_timeout(master.read(address, 4), 100 * CLOCK_NS, "ns")
            assert (answer.resp, int.from_bytes(answer.data, "little")) == (AxiResp.OKAY, value), f"{address:#x}"
        for address in OTHER:
            answer = await with_timeout(master.read(address, 4), 100 * CLOCK_NS, "ns")
            assert (answer.resp, answer.data) == (AxiResp.DECERR, bytes(4)), f"{address:#x}"
        for address in [*KNOWN, *OTHER]:
            written = await with_timeout(master.write(address, b"abcd"), 100 * CLOCK_NS, "ns")
            assert written.resp == AxiResp.DECERR, f"{address:#x}"
    await wait_cycles(dut, 4)
    assert int(dut.idle.value)


def test_event_no_log() -> None:
    run(
        "event_no_log",
        __file__,
        params={"NEXT": NEXT},
        ports={"bus": AxilSlave(12), "idle": Plain("output", "logic")},
        random_state=True,
    )
