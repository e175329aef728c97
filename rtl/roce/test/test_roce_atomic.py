# SPDX-License-Identifier: Apache-2.0
"""roce_atomic against a memory: results, what is written, errors, order."""

from __future__ import annotations

import random
from typing import Any

import cocotb
import pytest
from cocotb.triggers import FallingEdge
from nacelle_tb.bench import AxiMaster, Plain, Port, Sink, Source, run
from nacelle_tb.long import alternately, some
from nacelle_tb.memory import AxiMemory
from nacelle_tb.streams import StreamSink, StreamSource, start, wait_cycles

SIZE = 1 << 12
MASK = (1 << 64) - 1


@cocotb.test()
@cocotb.parametrize(stall=alternately([0.0, 0.4]), seed=some([1, 2]))
async def a_model_agrees(dut: Any, stall: float, seed: int) -> None:
    del seed  # another run
    rng = random.Random(random.getrandbits(64))
    op = StreamSource(dut, "op", "roce_response_pkg::atomic_op_t", stall)
    done = StreamSink(dut, "done", "roce_response_pkg::rsp_result_t", stall)
    memory = AxiMemory(dut, "mem", SIZE, latency=(1, 20), stall=stall)
    model = rng.randbytes(SIZE)
    memory.write(0, model)
    content = bytearray(model)
    memory.errors = [(SIZE - 512, SIZE - 257)]
    await start(dut)
    expected = []
    for number in range(400):
        if rng.random() < 0.1:
            op.send(denied=1, operation={"psn": number, "addr": 8 * rng.randrange(8), "swap_add": 1})
            expected.append((number, True, None))
            continue
        addr = 8 * rng.randrange(SIZE // 8 + 16) if rng.random() < 0.3 else 8 * rng.randrange(8)
        here = int.from_bytes(content[addr : addr + 8], "little")
        compare_swap = rng.randrange(2)
        compare = rng.choice([here, here ^ 1, int.from_bytes(here.to_bytes(8, "little"), "big"), rng.getrandbits(64)])
        swap_add = rng.choice([0, 1, MASK, rng.getrandbits(64)])
        op.send(operation={"psn": number, "addr": addr, "compare_swap": compare_swap, "compare": compare, "swap_add": swap_add})
        error = addr >= SIZE - 512 and (addr < SIZE - 256 or addr >= SIZE)
        expected.append((number, False, None if error else here))
        if not error and (not compare_swap or here == compare):
            after = swap_add if compare_swap else here + swap_add & MASK
            content[addr : addr + 8] = after.to_bytes(8, "little")
    for psn, denied, original in expected:
        got = await done.recv()
        assert (got.psn, got.denied, got.error) == (psn, denied, not denied and original is None)
        assert original is None or got.original == original
    assert memory.content == content
    await wait_cycles(dut, 5)
    assert int(dut.idle.value) and not memory.outstanding()


@cocotb.test()
async def a_failed_write_is_an_error(dut: Any) -> None:
    op = StreamSource(dut, "op", "roce_response_pkg::atomic_op_t")
    done = StreamSink(dut, "done", "roce_response_pkg::rsp_result_t")
    memory = AxiMemory(dut, "mem", SIZE)
    await start(dut)
    op.send(operation={"addr": 64, "swap_add": 5})
    while not int(dut.mem_awvalid.value):
        await FallingEdge(dut.clk)
    memory.errors = [(64, 71)]
    assert (await done.recv()).error == 1
    memory.errors = []
    op.send(operation={"addr": 64, "swap_add": 5})
    got = await done.recv()
    assert (got.error, got.original) == (0, 0)


@cocotb.test()
async def latency(dut: Any) -> None:
    """6 cycles around the memory's own."""
    op = StreamSource(dut, "op", "roce_response_pkg::atomic_op_t")
    done = StreamSink(dut, "done", "roce_response_pkg::rsp_result_t")
    AxiMemory(dut, "mem", SIZE)
    await start(dut)
    await FallingEdge(dut.clk)
    op.send(operation={"addr": 8, "swap_add": 1})
    while not op.sent:
        await FallingEdge(dut.clk)
    taken = done.cycle
    await done._wait(lambda: bool(done.received), 100)
    assert done.cycles[0] - taken <= 6 + 2


def builds() -> list[tuple[dict[str, Any], dict[str, Port]]]:
    """Parameters and ports of the builds under test."""
    return [
        (
            {"DATA_W": width},
            {
                "op": Sink("roce_response_pkg::atomic_op_t"),
                "done": Source("roce_response_pkg::rsp_result_t"),
                "mem": AxiMaster(width),
                "idle": Plain("output", "logic"),
            },
        )
        for width in (64, 512)
    ]


@pytest.mark.parametrize(("params", "ports"), builds(), ids=["64 bits", "512 bits"])
def test_roce_atomic(params: dict[str, Any], ports: dict[str, Port]) -> None:
    run("roce_atomic", __file__, params=params, ports=ports)
