# SPDX-License-Identifier: Apache-2.0
"""axi_fence: a range of memory is one master's, and everything else passes as it is."""

from __future__ import annotations

import random
from pathlib import Path

import cocotb
from cocotb.triggers import Timer
from nacelle_tb.bench import AxiMaster, AxiSlave, Type, run

BASE, SIZE, OWNER, INDEX_W, ID_W = 0xC000, 0x4000, 5, 3, 7


@cocotb.test()
async def only_its_owner_reaches_it(dut) -> None:
    edges = [BASE - 1, BASE, BASE + SIZE - 1, BASE + SIZE, 0, (1 << 36) + BASE]
    for _ in range(400):
        for way in ("ar", "aw"):
            index = random.randrange(1 << INDEX_W)
            addr = random.choice((random.choice(edges), random.randrange(2 * BASE), random.getrandbits(40)))
            ident = index << ID_W - INDEX_W | random.getrandbits(ID_W - INDEX_W)
            getattr(dut, f"in_{way}addr").value = addr
            getattr(dut, f"in_{way}id").value = ident
            await Timer(1, "ns")
            passed = int(getattr(dut, f"out_{way}addr").value)
            assert int(getattr(dut, f"out_{way}id").value) == ident
            if BASE <= addr < BASE + SIZE and index != OWNER:
                assert passed >> 63, "no memory has it"
            else:
                assert passed == addr


def test_axi_fence() -> None:
    params = {
        "RANGE": Type(f"memory_pkg::memory_range_t'({{64'd{BASE}, 64'd{SIZE}}})"), "OWNER": OWNER, "INDEX_W": INDEX_W, "ID_W": ID_W,
    }  # fmt: skip
    ports = {"in": AxiSlave(64, id_width=ID_W), "out": AxiMaster(64, id_width=ID_W)}
    bench = Path(__file__).with_name("axi_fence_bench.sv")
    run("axi_fence_bench", __file__, sources=[bench], params=params, ports=ports)
