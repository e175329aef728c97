# SPDX-License-Identifier: Apache-2.0
"""rpc_extents against a list: the lowest place that fits, no overlap, everything back in the end."""

import os
import random

import cocotb
import pytest
from cocotb.triggers import RisingEdge, ValueChange
from nacelle_tb.bench import Plain, Sink, Source, Type, run
from nacelle_tb.long import alternately, rounds
from nacelle_tb.streams import StreamSink, StreamSource, start
from nacelle_tb.svtypes import struct

HOSTS = [0xC0A80000, 0xC0A80001, 0x40A80000, 0, 1 << 127 | 0xC0A80000, 0xFFFF << 32 | 0xC0A80000]
NODES, FIRST, PAGES = 8, 5, 40
CONTEXTS = int(os.environ.get("EXTENTS_CONTEXTS", "1"))  # of each connection, an extent each


def context(node: int) -> int:
    """The context whose extent has this place in the tables."""
    return struct("rpc_pkg::context_t").pack(slot=node // CONTEXTS, number=node % CONTEXTS)


Caller = tuple[str, int]  # an address, or an entry of admission


class Model:
    """Extents in use, by context; whose the contexts are, and how much one may have."""

    def __init__(self) -> None:
        self.used: dict[int, tuple[int, int]] = {}
        self.callers: dict[int, Caller | None] = dict.fromkeys(range(NODES))
        self.quota: int | None = None  # of each caller,
        self.entries: dict[int, int] = {}  # but of these entries

    def allocate(self, slot: int, pages: int) -> int | None:
        own = sum(size for other, (_, size) in self.used.items() if self.callers[other] == self.callers[slot])
        kind, number = self.callers[slot] or ("", 0)
        quota = self.entries.get(number, self.quota) if kind == "entry" else self.quota
        if quota is not None and own + pages > quota:
            return None
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
        self.dut = dut
        dut.memory_per_caller.value = dut.quota.value = dut.opened.value = 0
        cocotb.start_soon(self._quotas())

    async def _quotas(self) -> None:
        """What admission has of the entry, in the same cycle."""
        while True:
            await ValueChange(self.dut.quota_of)
            pages = self.model.entries.get(int(self.dut.quota_of.value))
            self.dut.quota.value = 0 if pages is None else 4 * pages + 3

    async def open(self, slot: int, caller: Caller) -> None:
        """A connection of `caller`."""
        kind, number = caller
        self.dut.opened.value = 1
        self.dut.opened_slot.value = slot // CONTEXTS
        self.dut.opened_ip.value = number if kind == "ip" else random.choice([5, 0xC0A80000, 0xFFFF << 32 | 5])
        self.dut.opened_by.value = struct("roce_pkg::admitted_t").pack(valid=int(kind == "entry"), entry=number & 15)
        await RisingEdge(self.dut.clk)
        self.dut.opened.value = 0
        for other in range(NODES):
            if other // CONTEXTS == slot // CONTEXTS:
                self.model.callers[other] = caller

    async def limit(self, quota: int | None) -> None:
        """A new quota, between two commands."""
        await RisingEdge(self.dut.clk)
        self.dut.memory_per_caller.value = 0 if quota is None else 4 * quota + 3
        self.model.quota = quota

    async def allocate(self, slot: int, pages: int) -> None:
        expected = self.model.allocate(slot, pages)
        self.cmd.send(free=0, of=context(slot), pages=pages)
        answer = await self.rsp.recv(100)
        assert answer.ok == int(expected is not None)
        self.check_held()
        if expected is not None:
            assert answer.base == expected

    async def free(self, slot: int) -> None:
        expected = self.model.used.pop(slot, None) is not None
        self.cmd.send(free=1, of=context(slot))
        assert (await self.rsp.recv(100)).ok == int(expected)
        self.check_held()

    def check_held(self) -> None:
        """What all have together."""
        assert int(self.dut.held.value) == sum(pages for _, pages in self.model.used.values())


@cocotb.test()
@cocotb.parametrize(stall=alternately([0.0, 0.4]))
async def random_sizes(dut, stall: float) -> None:
    bench = Bench(dut, stall)
    await start(dut)
    for most in (2, 6, 12, PAGES + 2):
        for _ in range(rounds(400)):
            slot = random.randrange(NODES)
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
@cocotb.parametrize(stall=alternately([0.0, 0.4]))
async def quotas(dut, stall: float) -> None:
    """What one caller has on all of its connections counts, and no other caller's."""
    bench = Bench(dut, stall)
    await start(dut)
    for slot in range(NODES):
        await bench.open(slot, ("ip", 0xC0A80000 + slot % 3))
    for quota in (1, 7, 13, PAGES, (1 << 28) - 1, 0, None):
        await bench.limit(quota)
        for _ in range(rounds(200)):
            slot = random.randrange(NODES)
            if slot in bench.model.used:
                await bench.free(slot)
                await bench.open(
                    slot,
                    (
                        "ip",
                        random.choice(HOSTS),
                    ),
                )
            else:
                await bench.allocate(slot, random.choice([1, 2, 3, 6, 12, PAGES, (1 << 28) - 1]))
        for slot in list(bench.model.used):
            await bench.free(slot)


@cocotb.test()
async def quotas_of_entries(dut) -> None:
    """What the connections of one entry have counts for it, whatever their addresses, and for nobody else."""
    bench = Bench(dut, 0.0)
    await start(dut)
    bench.model.entries = {0: 9, 5: 3, 15: PAGES}
    callers = [("entry", 0), ("entry", 5), ("entry", 7), ("entry", 15), ("ip", 0), ("ip", 5), ("ip", 0xFFFF << 32 | 5)]
    for slot in range(NODES):
        await bench.open(slot, random.choice(callers))
    for quota in (None, 7, 0):
        await bench.limit(quota)
        for _ in range(rounds(300)):
            slot = random.randrange(NODES)
            if slot in bench.model.used:
                await bench.free(slot)
                await bench.open(slot, random.choice(callers))
            else:
                await bench.allocate(slot, random.choice([1, 2, 3, 4, 9, 10, PAGES]))
        for slot in list(bench.model.used):
            await bench.free(slot)


@cocotb.test()
@cocotb.parametrize(limited=[False, True])
async def cycles_of_a_walk(dut, limited: bool) -> None:
    """As the module says, with every other slot in use."""
    bench = Bench(dut, 0.0)
    await start(dut)
    for slot in range(NODES):
        await bench.open(slot, ("ip", slot))
    await bench.limit(1 << 20 if limited else None)

    async def cycles(**command: int) -> int:
        bench.cmd.send(**command)
        await bench.cmd.drained()
        count = 0
        while not int(dut.rsp_valid.value):
            await RisingEdge(dut.clk)
            count += 1
        assert (await bench.rsp.recv()).ok
        return count

    for slot in range(NODES):
        assert await cycles(free=0, of=context(slot), pages=1) <= 5 + slot
    for slot in reversed(range(NODES)):
        assert await cycles(free=1, of=context(slot)) <= 5 + slot


@cocotb.test()
async def every_gap(dut) -> None:
    """Fills memory, frees every set of extents, and fits an extent of every size."""
    bench = Bench(dut, 0.0)
    await start(dut)
    sizes = [5, 9, 1, 12, 13]  # all of it
    for holes in random.sample(range(1 << len(sizes)), rounds(1 << len(sizes))):
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


@pytest.mark.parametrize("contexts", [1, 2, 4])
def test_rpc_extents(contexts: int) -> None:
    run(
        "rpc_extents",
        __file__,
        params={"QPS": NODES // contexts, "CONTEXTS": contexts, "FIRST_PAGE": Type(f"28'd{FIRST}"), "PAGES": Type(f"28'd{PAGES}")},
        ports={
            "opened": Plain("input", "logic"), "opened_slot": Plain("input", "rpc_pkg::slot_t"),
            "opened_ip": Plain("input", "packet_pkg::ip_addr_t"),
            "opened_by": Plain("input", "roce_pkg::admitted_t"), "memory_per_caller": Plain("input", "logic [29:0]"),
            "quota_of": Plain("output", "roce_pkg::admission_entry_t"), "quota": Plain("input", "logic [29:0]"),
            "cmd": Sink("rpc_pkg::extent_cmd_t"), "rsp": Source("rpc_pkg::extent_rsp_t"),
            "held": Plain("output", "rpc_pkg::page_t"),
        },
        env={"EXTENTS_CONTEXTS": str(contexts)},
        random_state=True,
    )  # fmt: skip
