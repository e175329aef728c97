# SPDX-License-Identifier: Apache-2.0
"""roce_qp_flags: one bit a QP, two writers that meet at every QP again and again. Against a list."""

from __future__ import annotations

import random

import cocotb
from cocotb.triggers import FallingEdge
from nacelle_tb.bench import Plain, run
from nacelle_tb.streams import start, wait_cycles

QPS, READERS = 8, 2
INDEX_W = 10


@cocotb.test()
async def the_first_writer_counts_and_the_others_are_seen_at_once(dut) -> None:
    dut.write.value = 0
    dut.write_index.value = dut.write_data.value = dut.read_index.value = 0
    await start(dut)
    await wait_cycles(dut, QPS + 1)
    bits = [0] * QPS
    for _ in range(3000):
        at = [random.randrange(QPS) for _ in range(2)]
        data = [random.randrange(2) for _ in range(2)]
        write = [random.random() < 0.6 for _ in range(2)]
        read = [random.randrange(QPS) for _ in range(READERS)]
        await FallingEdge(dut.clk)
        dut.write.value = write[0] | write[1] << 1
        dut.write_data.value = data[0] | data[1] << 1
        dut.write_index.value = at[0] | at[1] << INDEX_W
        dut.read_index.value = sum(index << (INDEX_W * i) for i, index in enumerate(read))
        await FallingEdge(dut.clk)  # the write has passed; the same write again changes nothing
        for writer in (1, 0):
            if write[writer]:
                bits[at[writer]] = data[writer]
        assert int(dut.read_data.value) == sum(bits[index] << i for i, index in enumerate(read))


def test_roce_qp_flags() -> None:
    index = "roce_pkg::qp_index_t"
    run(
        "roce_qp_flags",
        __file__,
        params={"QPS": QPS, "READERS": READERS},
        ports={
            "write": Plain("input", "logic [1:0]"), "write_index": Plain("input", f"{index} [1:0]"),
            "write_data": Plain("input", "logic [1:0]"), "read_index": Plain("input", f"{index} [{READERS - 1}:0]"),
            "read_data": Plain("output", f"logic [{READERS - 1}:0]"),
        },
        random_state=True,
    )  # fmt: skip
