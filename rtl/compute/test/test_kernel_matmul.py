# SPDX-License-Identifier: Apache-2.0
"""kernel_matmul against numpy: any shape, both types, bad arguments, memory errors, and how busy the array is.

The device's array at 512 bits, others at other widths. NACELLE_MATMUL_ROWS and _COLS change it.
"""

from __future__ import annotations

import os
import random
import struct as pystruct

import cocotb
import numpy as np
import pytest
from nacelle_tb.bench import run
from nacelle_tb.kernel import kernel_ports
from nacelle_tb.long import LONG, alternately
from nacelle_tb.memory import AxiMemory
from nacelle_tb.registers import AxilDriver
from nacelle_tb.streams import StreamSink, StreamSource, start
from nacelle_tb.svtypes import constant
from nacelle_tb.widths import at_width

SIZE = 1 << 20
MAGIC = 0x4D4D414E
INT32, FLOAT32 = 0, 1
FUNCTION = 16
CELLS = int(os.environ.get("NACELLE_CELLS", "1"))  # of the array of this bench
SUCCESS, BAD_ARGUMENTS, TOO_SMALL, MEMORY_ERROR = (
    constant(f"compute_pkg::RESULT_{name}") for name in ("SUCCESS", "BAD_ARGUMENTS", "REGION_TOO_SMALL", "MEMORY_ERROR")
)


class Bench:
    def __init__(self, dut, stall: float = 0.0, latency: int | tuple[int, int] = 40) -> None:
        self.dut = dut
        self.job = StreamSource(dut, "job", "compute_pkg::job_t")
        self.done = StreamSink(dut, "done", "compute_pkg::done_t")
        self.memory = AxiMemory(dut, "mem", SIZE, latency=latency, stall=stall)
        self.ctrl = AxilDriver(dut, "ctrl")
        for signal in ("rx_tvalid", "tx_tready", "wqe_ready", "cqe_valid", "msg_tx_tready", "msg_rx_tvalid"):
            getattr(dut, signal).value = 0

    def call(self, regions: list[tuple[int, int]], internal: int = 0) -> None:
        count = len(regions)
        for i, (addr, size) in enumerate(regions):
            self.job.send(
                tag=5, function_code=FUNCTION, addr=addr, size=size, last=i == count - 1, input_=1, internal_=i >= count - internal
            )

    async def result(self, timeout_cycles: int = 400_000) -> int:
        return (await self.done.recv(timeout_cycles)).code

    async def multiply(self, a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, int]:
        """C, and the cycles of the job. Nothing but C may change."""
        (m, k), n = a.shape, b.shape[1]
        dtype = FLOAT32 if a.dtype == np.float32 else INT32
        args = pystruct.pack("<6I", MAGIC, dtype, m, n, k, 0).ljust(64, b"\0")
        parts = [args, a.tobytes(), b.tobytes(), bytes(4 * m * n)]
        regions, at = [], 0
        for part in parts:
            regions.append((at, len(part)))
            at += -(-len(part) // 4096) * 4096
        assert at <= SIZE
        content = bytearray(random.randbytes(SIZE))
        for (addr, _), part in zip(regions, parts, strict=True):
            content[addr : addr + len(part)] = part
        self.memory.write(0, content)
        began = self.done.cycle
        self.call(regions)
        assert await self.result(max(400_000, 2 * m * k * n // CELLS)) == SUCCESS
        cycles = self.done.cycle - began
        addr, size = regions[3]
        c = np.frombuffer(self.memory.read(addr, size), dtype=a.dtype).reshape(m, n)
        content[addr : addr + size] = c.tobytes()
        assert self.memory.content == content, "bytes outside of C changed"
        return c, cycles


def model(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    c = np.zeros((a.shape[0], b.shape[1]), dtype=a.dtype)
    with np.errstate(all="ignore"):
        for i in range(a.shape[1]):
            c = c + a[:, i : i + 1] * b[i : i + 1, :]
    return c


def matrices(m: int, k: int, n: int, dtype: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(random.getrandbits(64))
    if dtype == INT32:
        return tuple(rng.integers(-(1 << 31), 1 << 31, shape, dtype=np.int64).astype(np.int32) for shape in ((m, k), (k, n)))
    out = []
    for shape in ((m, k), (k, n)):
        x = rng.standard_normal(shape).astype(np.float32) * np.float32(2.0) ** rng.integers(-30, 30, shape).astype(np.float32)
        special = rng.random(shape)
        x = np.where(special < 0.01, np.float32(np.inf), x)
        x = np.where((special > 0.01) & (special < 0.03), np.float32(1e-40), x)
        x = np.where((special > 0.03) & (special < 0.06), np.float32(-0.0), x)
        out.append(np.ascontiguousarray(x, dtype=np.float32))
    return out[0], out[1]


def check(c: np.ndarray, want: np.ndarray, what: str) -> None:
    got, expect = c.view(np.uint32), want.view(np.uint32).copy()
    if c.dtype == np.float32:
        expect[np.isnan(want)] = 0x7FC00000
    wrong = np.argwhere(got != expect)
    assert not len(wrong), (
        f"{what}: {len(wrong)} wrong, first at {wrong[0]}: {got[tuple(wrong[0])]:08x}, not {expect[tuple(wrong[0])]:08x}"
    )


@cocotb.test()
@cocotb.parametrize(stall=alternately([0.0, 0.3]), dtype=[INT32, FLOAT32])
async def any_shape(dut, stall: float, dtype: int) -> None:
    bench = Bench(dut, stall, latency=(5, 60))
    await start(dut)
    shapes = [(1, 1, 1), (1, 5, 70), (9, 3, 1), (7, 11, 13), (8, 8, 8), (17, 2, 65), (3, 300, 9), (9, 257, 66), (16, 1, 64)]
    for m, k, n in shapes:
        a, b = matrices(m, k, n, dtype)
        c, _ = await bench.multiply(a, b)
        check(c, model(a, b), f"{m}x{k}x{n}")


@cocotb.test()
async def two_panels_two_tiles_both_ways(dut) -> None:
    bench = Bench(dut)
    await start(dut)
    for k in (33, 600):  # B kept, B streamed
        a, b = matrices(11, k, 100, INT32)
        c, _ = await bench.multiply(a, b)
        check(c, model(a, b), f"k {k}")


@cocotb.test()
async def the_array_is_busy(dut) -> None:
    bench = Bench(dut)
    await start(dut)
    sizes = [64, 256] if LONG else [32]
    for size in sizes:
        a, b = matrices(size, size, size, FLOAT32)
        c, cycles = await bench.multiply(a, b)
        check(c, model(a, b), f"{size} cubed")
        busy = size**3 / CELLS / cycles
        dut._log.info("%d cubed: %d cycles, array %.1f %% busy", size, cycles, 100 * busy)
        assert busy > 0.8


@cocotb.test()
async def bad_arguments(dut) -> None:
    bench = Bench(dut)
    await start(dut)
    good = [(0, 64), (4096, 64), (8192, 64), (12288, 64)]  # 4 x 4 each

    def put(magic: int = MAGIC, dtype: int = 0, m: int = 4, n: int = 4, k: int = 4, flags: int = 0, reserved: int = 0) -> None:
        bench.memory.write(0, pystruct.pack("<6I", magic, dtype, m, n, k, flags).ljust(64, b"\0"))
        bench.memory.content[24 + random.randrange(40)] = reserved

    async def outcome(regions: list[tuple[int, int]], internal: int = 0) -> int:
        before = bytes(bench.memory.content)
        beats = bench.memory.stats.write_beats
        bench.call(regions, internal)
        code = await bench.result()
        if code != SUCCESS:
            assert bench.memory.content == before and bench.memory.stats.write_beats == beats
        return code

    put()
    assert await outcome(good) == SUCCESS
    assert await outcome([*good, (16384, 64)], internal=1) == SUCCESS
    assert await outcome(good[:3]) == BAD_ARGUMENTS
    assert await outcome(good[:1]) == BAD_ARGUMENTS
    assert await outcome([*good, (16384, 64)]) == BAD_ARGUMENTS
    assert await outcome(good, internal=1) == BAD_ARGUMENTS
    assert await outcome([(0, 63), *good[1:]]) == TOO_SMALL
    for i in (1, 2, 3):
        assert await outcome([(addr, 63 if j == i else 64) for j, (addr, _) in enumerate(good)]) == TOO_SMALL
    for wrong in ({"magic": MAGIC ^ 1}, {"dtype": 2}, {"m": 0}, {"n": 0}, {"k": 0}, {"flags": 1}, {"reserved": 1}):
        put(**wrong)
        assert await outcome(good) == BAD_ARGUMENTS, wrong
    for big in (5, 1 << 16, 1 << 30, 0x40000001, 0xFFFFFFFF):  # some wrap to something small
        for name in ("m", "n", "k"):
            put(**{name: big})
            assert await outcome(good) == TOO_SMALL, (name, big)
    put(m=0x10000, n=0x10000, k=0x10000)
    assert await outcome(good) == TOO_SMALL
    for i in (1, 2, 3):
        assert await outcome([(addr, (1 << 34) - (j == i)) for j, (addr, _) in enumerate(good)]) == TOO_SMALL, i
    put()
    assert await outcome([(addr, 1 << 32) for addr, _ in good]) == SUCCESS
    put()
    assert await outcome(good) == SUCCESS


@cocotb.test()
async def memory_errors(dut) -> None:
    bench = Bench(dut)
    await start(dut)
    bench.memory.write(0, pystruct.pack("<6I", MAGIC, 0, 20, 20, 20, 0).ljust(64, b"\0"))
    regions = [(0, 64), (4096, 1600), (8192, 1600), (12288, 1600)]
    for addr in (0, 4096 + 1599, 8192 + 800, 12288 + 1000):
        bench.memory.errors = [(addr, addr)]
        bench.call(regions)
        assert await bench.result() == MEMORY_ERROR, addr
    bench.memory.errors = []
    bench.call(regions)
    assert await bench.result() == SUCCESS


@pytest.mark.parametrize(("width", "rows", "cols"), [(64, 2, 4), (512, 4, 4)])
def test_kernel_matmul(width: int, rows: int, cols: int) -> None:
    rows = int(os.environ.get("NACELLE_MATMUL_ROWS", rows))
    cols = int(os.environ.get("NACELLE_MATMUL_COLS", cols))
    run(
        "kernel_matmul",
        __file__,
        params={"DATA_W": width, "ROWS": rows, "COLS": cols},
        # A small array takes long.
        env={"NACELLE_CELLS": str(rows * cols), **at_width(width, "^(?!.*(two_panels|stall=0.0))", everything_at=512)},
        ports=kernel_ports(width),
    )
