# SPDX-License-Identifier: Apache-2.0
"""rpc_regions: each reader gets the entry of its request, 2 cycles after that was taken, and nothing else."""

from __future__ import annotations

import os
import random
from collections import deque

import cocotb
import pytest
from cocotb.triggers import FallingEdge, RisingEdge
from nacelle_tb.bench import Plain, Several, Sink, run
from nacelle_tb.streams import start
from nacelle_tb.svtypes import struct

QPS, MAX_REGIONS, READERS = 4, 8, 3
CONTEXTS = int(os.environ.get("REGIONS_CONTEXTS", "1"))  # that each connection has
LONG = os.environ.get("REGIONS_LONG", "0") == "1"
OWNERS, EACH = QPS * CONTEXTS, MAX_REGIONS // CONTEXTS  # contexts, regions of each
PAGE = 4096


def region_key(owner: int, index: int) -> int:
    """Where a region of a context is."""
    context = struct("rpc_pkg::context_t").pack(slot=owner // CONTEXTS, number=owner % CONTEXTS)
    return struct("rpc_pkg::region_key_t").pack(of=context, index=index)


class Bench:
    """The tables as they should be, and the outstanding reads of each reader."""

    def __init__(self, dut) -> None:
        self.dut = dut
        self.regions: dict[tuple[int, int], int] = {}
        self.grants: dict[int, int] = {}
        for i in range(READERS):
            getattr(dut, f"read{i}_valid").value = 0
        dut.region_write.value = dut.grant_write.value = 0
        self.served = [0] * READERS

    async def fill(self) -> None:
        """Every region and every grant."""
        dut, rng = self.dut, random.Random(random.getrandbits(64))
        for owner in range(OWNERS):
            for index in range(EACH):
                region = struct("rpc_pkg::region_t").pack(offset=rng.randrange(1 << 20), size=rng.getrandbits(40 if LONG else 32))
                grant = struct("rpc_pkg::grant_t").pack(base=rng.randrange(1 << 20), pages=rng.randrange(1 << 20), last=index)
                dut.write_key.value = region_key(owner, index)
                dut.region.value, dut.grant.value = region, grant
                dut.region_write.value, dut.grant_write.value = 1, index % 2
                self.regions[owner, index] = region
                if index % 2:
                    self.grants[owner] = grant
                await FallingEdge(dut.clk)
        dut.region_write.value = dut.grant_write.value = 0

    def expected(self, key: tuple[int, int]) -> int:
        """The view of one region."""
        region, grant = self.regions[key], self.grants[key[0]]
        page = struct("rpc_pkg::grant_t").unpack(grant).base + struct("rpc_pkg::region_t").unpack(region).offset
        return struct("rpc_pkg::region_view_t").pack(grant=grant, region=region, addr=page * PAGE)

    async def read(self, cycles: int, asks: tuple[float, ...]) -> None:
        """Each reader requests with its probability in each cycle, until the request is taken."""
        dut, rng = self.dut, random.Random(random.getrandbits(64))
        asking: list[tuple[int, int] | None] = [None] * READERS
        owed: deque[list] = deque([[None] * READERS, [None] * READERS])
        for _ in range(cycles):
            for i in range(READERS):
                if asking[i] is None and rng.random() < asks[i]:
                    asking[i] = rng.randrange(OWNERS), rng.randrange(EACH)
                shown = asking[i] or (rng.randrange(OWNERS), rng.randrange(EACH))  # means nothing if it does not ask
                getattr(dut, f"read{i}_valid").value = int(asking[i] is not None)
                getattr(dut, f"read{i}_data").value = region_key(*shown)
            await RisingEdge(dut.clk)
            due = owed.popleft()
            told = int(dut.view_valid.value)
            assert told == sum(1 << i for i in range(READERS) if due[i] is not None)
            for key in due:
                assert key is None or int(dut.view.value) == self.expected(key)
            taken: list[tuple[int, int] | None] = [None] * READERS
            for i in range(READERS):
                if asking[i] is not None and int(getattr(dut, f"read{i}_ready").value):
                    taken[i], asking[i] = asking[i], None
                    self.served[i] += 1
            assert sum(key is not None for key in taken) == int(any(asking) or any(taken)), "one a cycle, if any reader requests"
            owed.append(taken)
            await FallingEdge(dut.clk)


@cocotb.test()
@cocotb.parametrize(asks=[(0.3, 0.3, 0.3), (0.0, 0.2, 0.9), (0.9, 0.0, 0.2), (0.2, 0.9, 0.0)])
async def each_gets_what_it_asked_for(dut, asks: tuple[float, ...]) -> None:
    bench = Bench(dut)
    await start(dut)
    await bench.fill()
    await bench.read(300, asks)


@cocotb.test()
async def all_at_once_take_turns(dut) -> None:
    bench = Bench(dut)
    await start(dut)
    await bench.fill()
    await bench.read(300, (1.0, 1.0, 1.0))
    assert max(bench.served) - min(bench.served) <= 1


@pytest.mark.parametrize(("contexts", "long"), [(1, False), (2, True), (4, True)])
def test_rpc_regions(contexts: int, long: bool) -> None:
    run(
        "rpc_regions",
        __file__,
        params={"QPS": QPS, "CONTEXTS": contexts, "MAX_REGIONS": MAX_REGIONS, "LONG_SET_UP": int(long), "READERS": READERS},
        ports={
            "region_write": Plain("input", "logic"), "grant_write": Plain("input", "logic"),
            "write_key": Plain("input", "rpc_pkg::region_key_t"), "region": Plain("input", "rpc_pkg::region_t"),
            "grant": Plain("input", "rpc_pkg::grant_t"), "read": Several(Sink("rpc_pkg::region_key_t"), READERS),
            "view_valid": Plain("output", f"logic [{READERS - 1}:0]"), "view": Plain("output", "rpc_pkg::region_view_t"),
        },
        env={"REGIONS_CONTEXTS": str(contexts), "REGIONS_LONG": str(int(long))},
        random_state=True,
    )  # fmt: skip
