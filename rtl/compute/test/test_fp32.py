# SPDX-License-Identifier: Apache-2.0
"""fp32_mul and fp32_add against numpy: random, special and near-special values, bit by bit."""

from __future__ import annotations

import os
import random

import cocotb
import numpy as np
import pytest
from cocotb.triggers import FallingEdge, RisingEdge
from nacelle_tb.bench import Plain, run
from nacelle_tb.streams import start

COUNT = int(os.environ.get("NACELLE_FP32_COUNT", "20000"))
LATENCY = 7
QUIET_NAN = 0x7FC00000
SPECIAL = [
    0x00000000, 0x00000001, 0x00000002, 0x007FFFFE, 0x007FFFFF, 0x00800000, 0x00800001, 0x00FFFFFF, 0x01000000, 0x33800000,
    0x34000000, 0x3F000000, 0x3F7FFFFF, 0x3F800000, 0x3F800001, 0x40000000, 0x4B7FFFFF, 0x4B800000, 0x5F000000, 0x7E800000,
    0x7F000000, 0x7F7FFFFE, 0x7F7FFFFF, 0x7F800000, 0x7F800001, 0x7FC00000, 0x7FFFFFFF,
]  # fmt: skip


def operands() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(random.getrandbits(64))
    special = np.array(SPECIAL + [value | 0x80000000 for value in SPECIAL], dtype=np.uint32)
    a, b = np.meshgrid(special, special)
    pairs = [(a.ravel(), b.ravel())]
    quarter = max(COUNT // 4, 1)
    any_bits = [rng.integers(0, 1 << 32, quarter, dtype=np.uint32) for _ in range(2)]
    pairs.append((any_bits[0], any_bits[1]))
    # near one another in size: cancellation, ties
    exponent = rng.integers(1, 254, quarter, dtype=np.uint32)
    near = np.clip(exponent.astype(np.int64) + rng.integers(-26, 27, quarter), 0, 254).astype(np.uint32)
    short = rng.integers(0, 1 << 23, (2, quarter), dtype=np.uint32) & (0xFFFFFFFF << rng.integers(0, 23, (2, quarter))).astype(
        np.uint32
    )
    sign = rng.integers(0, 2, (2, quarter), dtype=np.uint32) << 31
    pairs.append((sign[0] | exponent << 23 | short[0], sign[1] | near << 23 | short[1]))
    # products at the edge of the subnormal range
    other = np.clip(127 - exponent.astype(np.int64) + rng.integers(-24, 4, quarter), 0, 254).astype(np.uint32)
    pairs.append((sign[1] | exponent << 23 | short[1], sign[0] | other << 23 | short[0]))
    # subnormals with anything
    pairs.append((rng.integers(0, 1 << 23, quarter, dtype=np.uint32) | sign[0], any_bits[0]))
    return np.concatenate([p[0] for p in pairs]), np.concatenate([p[1] for p in pairs])


def expected(module: str, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        x, y = a.view(np.float32), b.view(np.float32)
        result = x * y if module == "fp32_mul" else x + y
    bits = result.view(np.uint32).copy()
    bits[np.isnan(result)] = QUIET_NAN
    return bits


@cocotb.test()
async def bit_by_bit(dut) -> None:
    module = os.environ["NACELLE_MODULE"]
    dut.valid.value = 0
    await start(dut)
    a, b = operands()
    want = expected(module, a, b).tolist()
    got: list[int] = []

    async def collect() -> None:
        while len(got) < len(want):
            await RisingEdge(dut.clk)
            if int(dut.result_valid.value):
                got.append(int(dut.result.value))

    task = cocotb.start_soon(collect())
    for i, (x, y) in enumerate(zip(a.tolist(), b.tolist(), strict=True)):
        await FallingEdge(dut.clk)
        dut.a.value, dut.b.value, dut.valid.value = x, y, 1
        if i % 997 == 0:  # a pause now and then
            await FallingEdge(dut.clk)
            dut.valid.value = 0
    await FallingEdge(dut.clk)
    dut.valid.value = 0
    for _ in range(LATENCY + 1):
        await RisingEdge(dut.clk)
    await task
    wrong = [i for i, (w, g) in enumerate(zip(want, got, strict=True)) if w != g]
    detail = [f"{a[i]:08x} {b[i]:08x}: {got[i]:08x}, not {want[i]:08x}" for i in wrong[:5]]
    assert not wrong, f"{len(wrong)} of {len(want)} wrong: {detail}"


@cocotb.test()
async def latency_in_cycles(dut) -> None:
    dut.valid.value = 0
    await start(dut)
    await FallingEdge(dut.clk)
    dut.a.value, dut.b.value, dut.valid.value = 0x3F800000, 0x3F800000, 1
    await RisingEdge(dut.clk)
    await FallingEdge(dut.clk)
    dut.valid.value = 0
    for cycle in range(1, 10):
        if int(dut.result_valid.value):
            assert cycle == LATENCY
            return
        await FallingEdge(dut.clk)
    raise AssertionError("no result")


@pytest.mark.parametrize("module", ["fp32_mul", "fp32_add"])
def test_fp32(module: str) -> None:
    word = "logic [31:0]"
    run(
        module,
        __file__,
        ports={
            "valid": Plain("input", "logic"),
            "a": Plain("input", word),
            "b": Plain("input", word),
            "result_valid": Plain("output", "logic"),
            "result": Plain("output", word),
        },
        env={"NACELLE_MODULE": module},
    )
