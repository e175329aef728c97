# SPDX-License-Identifier: Apache-2.0
"""rpc_extents against a list: the lowest place that fits, no overlap, everything back in the end."""

import random

import cocotb
import pytest
from nacelle_tb.bench import Sink, Source, Type, run
from nacelle_tb.streams import StreamSink, StreamSource, start

QPS, FIRST, PAGES = 8, 5, 40


class Model:
    """Extents in use, by slot."""

    def __init__(self) -> None:
        self.used: dict[int, tuple[int, int]] = {}

    def allocate(self, slot: int, pages: int) -> int | None:
        at = FIRST
        for base, size in sorted(self.used.values()):
            if base - at >= pages:
                break
            at = base + size
        if at + pages > FIRST + PAGES:
            return None
        self.used[slot] = (at, pages)
        return at


class Bench:
    def __init__(self, dut, stall: float) -> None:
        self.cmd = StreamSource(dut, "cmd", "rpc_pkg::extent_cmd_t", stall)
        self.rsp = StreamSink(dut, "rsp", "rpc_pkg::extent_rsp_t", stall)
        self.model = Model()

    async def allocate(self, slot: int, pages: int) -> None:
        expected = self.model.allocate(slot, pages)
        self.cmd.send(free=0, slot=slot, pages=pages)
        answer = await self.rsp.recv(100)
        assert answer.ok == int(expected is not None)
        if expected is not None:
            assert answer.base == expected

    async def free(self, slot: int) -> None:
        expected = self.model.used.pop(slot, None) is not None
        self.cmd.send(free=1, slot=slot)
        assert (await self.rsp.recv(100)).ok == int(expected)


@cocotb.test()
@cocotb.parametrize(stall=[0.0, 0.4])
async def random_sizes(dut, stall: float) -> None:
    bench = Bench(dut, stall)
    await start(dut)
    for most in (2, 6, 12, PAGES + 2):
        for _ in range(400):
            slot = random.randrange(QPS)
            if slot in bench.model.used or random.random() < 0.05:
                await bench.free(slot)
            else:
                await bench.allocate(slot, random.randint(1, most))
        for slot in list(bench.model.used):
            await bench.free(slot)
        await bench.allocate(0, PAGES)
        await bench.allocate(1, 1)
        await bench.free(0)


@cocotb.test()
async def every_gap(dut) -> None:
    """Fills memory, frees every set of extents, and fits an extent of every size."""
    bench = Bench(dut, 0.0)
    await start(dut)
    sizes = [5, 9, 1, 12, 13]  # all of it
    for holes in range(1 << len(sizes)):
        for pages in range(1, PAGES + 2, 3):
            for slot, size in enumerate(sizes):
                await bench.allocate(slot, size)
            for slot in range(len(sizes)):
                if holes >> slot & 1:
                    await bench.free(slot)
            await bench.allocate(7, pages)
            for slot in list(bench.model.used):
                await bench.free(slot)


@cocotb.test()
async def larger_than_any_memory(dut) -> None:
    bench = Bench(dut, 0.0)
    await start(dut)
    for pages in (PAGES + 1, 1 << 20, (1 << 28) - 1, (1 << 28) - FIRST):
        await bench.allocate(0, pages)
    await bench.allocate(0, PAGES)


@pytest.mark.parametrize("qps", [QPS])
def test_rpc_extents(qps: int) -> None:
    run(
        "rpc_extents",
        __file__,
        params={"QPS": qps, "FIRST_PAGE": Type(f"28'd{FIRST}"), "PAGES": Type(f"28'd{PAGES}")},
        ports={"cmd": Sink("rpc_pkg::extent_cmd_t"), "rsp": Source("rpc_pkg::extent_rsp_t")},
    )
