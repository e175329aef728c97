# SPDX-License-Identifier: Apache-2.0
"""histogram_memory: samples of every cycle, of one bin or of many, each once; reads and a clear at any time."""

from __future__ import annotations

import random
from collections import Counter

import cocotb
from cocotb.triggers import FallingEdge, RisingEdge
from nacelle_tb.bench import Plain, Sink, run
from nacelle_tb.streams import StreamSource, start
from nacelle_tb.svtypes import constant, struct

SAMPLE, BIN = "histogram_pkg::sample_t", "histogram_pkg::bin_t"
LATENCY, RUN, QUEUE = range(3)
ROWS = {kind: constant(f"histogram_pkg::{name}_ROW") for kind, name in ((LATENCY, "LATENCY"), (RUN, "RUN"), (QUEUE, "QUEUE"))}
FIRST, SUM_W = constant("histogram_pkg::FIRST"), constant("histogram_pkg::SUM_W")
BINS = {LATENCY: 24, RUN: 24, QUEUE: 8}


def row_of(kind: int, value: int) -> int:
    bits = value.bit_length()
    number = bits if kind == QUEUE else max(0, bits - FIRST)
    return ROWS[kind] + min(number, BINS[kind] - 1)


class Bench:
    def __init__(self, dut) -> None:
        self.dut = dut
        self.source = StreamSource(dut, "sample", SAMPLE)
        self.counts: Counter[tuple[int, int]] = Counter()
        self.sums: Counter[tuple[int, int]] = Counter()
        dut.clear.value = 0
        dut.read.value = 0

    def send(self, kind: int, socket: int, value: int) -> None:
        self.source.send({"histogram": kind, "socket": socket, "value": value})

    async def watch(self) -> None:
        """What is taken counts, but for what is there while all is set to 0."""
        placed = None
        while True:
            await RisingEdge(self.dut.clk)
            clearing = int(self.dut.clearing.value)
            if clearing:
                self.counts.clear()
                self.sums.clear()
            if int(self.dut.sample_ready.value):
                if placed and not clearing:
                    self.counts[row_of(placed.histogram, placed.value), placed.socket] += 1
                    self.sums[placed.histogram, placed.socket] += placed.value
                valid = int(self.dut.sample_valid.value)
                placed = struct(SAMPLE).unpack(int(self.dut.sample_data.value)) if valid else None

    async def settle(self) -> None:
        await self.source.drained()
        await FallingEdge(self.dut.clk)
        while not int(self.dut.idle.value):
            await FallingEdge(self.dut.clk)

    async def read(self, row: int, socket: int, kind: int) -> tuple[int, int]:
        await FallingEdge(self.dut.clk)
        self.dut.read.value = 1
        self.dut.read_bin.value = struct(BIN).pack(row=row, socket=socket)
        self.dut.read_sum.value = kind
        await FallingEdge(self.dut.clk)
        self.dut.read.value = 0
        return int(self.dut.count.value), int(self.dut.sum.value)

    async def compare(self) -> None:
        for kind, first in ROWS.items():
            for socket in range(16):
                for row in range(first, first + BINS[kind]):
                    found = await self.read(row, socket, kind)
                    assert found == (self.counts[row, socket], self.sums[kind, socket]), f"histogram {kind}, {row}, {socket}"


def some_sample(kinds: int, sockets: int) -> tuple[int, int, int]:
    kind = random.randrange(kinds)
    bits = random.randint(0, 13 if kind == QUEUE else 40)
    return kind, random.randrange(sockets), random.getrandbits(bits) if bits else 0


@cocotb.test()
async def samples_of_every_cycle(dut) -> None:
    bench = Bench(dut)
    await start(dut)
    cocotb.start_soon(bench.watch())
    await bench.settle()
    await bench.compare()
    for kinds, sockets in ((1, 1), (2, 1), (3, 2), (3, 16)):
        for _ in range(200):
            bench.send(*some_sample(kinds, sockets))
        for _ in range(20):
            socket = random.randrange(sockets)
            count, _ = await bench.read(ROWS[LATENCY], socket, LATENCY)
            assert count <= bench.counts[ROWS[LATENCY], socket]
        await bench.settle()
    await bench.compare()


@cocotb.test()
async def one_sample_a_cycle(dut) -> None:
    """Of different sockets; of the same socket and histogram one every two cycles."""
    bench = Bench(dut)
    await start(dut)
    cocotb.start_soon(bench.watch())
    await bench.settle()
    for sockets, least in ((2, 0.95), (1, 0.45)):
        for i in range(200):
            bench.send(LATENCY, i % sockets, 1000)
        taken = cycles = 0
        while taken < 200:
            await RisingEdge(dut.clk)
            cycles += taken > 0
            taken += int(dut.sample_valid.value) and int(dut.sample_ready.value)
        assert 200 / cycles > least, f"{sockets} sockets: {cycles} cycles"
    await bench.settle()
    await bench.compare()


@cocotb.test()
async def clear(dut) -> None:
    """While samples come; what comes behind it counts."""
    bench = Bench(dut)
    await start(dut)
    cocotb.start_soon(bench.watch())
    await bench.settle()
    for _ in range(1500):
        bench.send(*some_sample(3, 16))
    for _ in range(100):
        await FallingEdge(dut.clk)
    dut.clear.value = 1
    await FallingEdge(dut.clk)
    dut.clear.value = 0
    await FallingEdge(dut.clk)
    assert int(dut.clearing.value)
    await bench.settle()
    assert 0 < sum(bench.counts.values()) < 1000, "many came meanwhile"
    await bench.compare()


def test_histogram_memory() -> None:
    run(
        "histogram_memory",
        __file__,
        ports={
            "sample": Sink(SAMPLE),
            "clear": Plain("input", "logic"),
            "clearing": Plain("output", "logic"),
            "read": Plain("input", "logic"),
            "read_bin": Plain("input", BIN),
            "read_sum": Plain("input", "histogram_pkg::histogram_e"),
            "count": Plain("output", "logic [31:0]"),
            "sum": Plain("output", "histogram_pkg::sum_t"),
            "idle": Plain("output", "logic"),
        },
        random_state=True,
    )
