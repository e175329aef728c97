# SPDX-License-Identifier: Apache-2.0
"""event_log: entries in order with their times, rings that do not touch each other, what is lost is counted."""

from __future__ import annotations

import random
import re
from dataclasses import dataclass

import cocotb
from cocotb.triggers import FallingEdge, with_timeout
from cocotbext.axi import AxiLiteBus, AxiLiteMaster, AxiResp
from nacelle_tb.bench import AxilSlave, Plain, run
from nacelle_tb.cci import offset
from nacelle_tb.sources import ROOT, RTL
from nacelle_tb.streams import CLOCK_NS, start, wait_cycles
from nacelle_tb.svtypes import struct
from nacelle_tb.values import digits

digits()

SOURCES, DEPTH, RINGS, PLACES = 5, 16, 4, 32
TICKS_HZ = 200_000_000
EVENT = "event_log_pkg::log_event_t"
DEVICE, FAULTS, CONNECTIONS, STRANGERS = range(RINGS)


@dataclass(frozen=True)
class Entry:
    """What is read of one."""

    time: int
    kind: int
    a: int
    b: int


class Bench:
    def __init__(self, dut) -> None:
        self.dut = dut
        self.master = AxiLiteMaster(AxiLiteBus.from_prefix(dut, "bus"), dut.clk, dut.rst)
        self.now = 2**48 - 300  # it wraps
        dut.events.value = 0
        dut.now.value = self.now

    async def time(self) -> None:
        while True:
            await FallingEdge(self.dut.clk)
            self.now = (self.now + 1) % 2**48
            self.dut.now.value = self.now

    async def tell(self, events: dict[int, tuple[int, int, int]]) -> None:
        """Events of one cycle: kind and details, by source."""
        layout = struct(EVENT)
        await FallingEdge(self.dut.clk)
        word = 0
        for source, (kind, a, b) in events.items():
            word |= (1 << layout.width - 1 | kind << 64 | a << 32 | b) << source * layout.width
        self.dut.events.value = word

    async def silence(self, cycles: int = 1) -> None:
        for _ in range(cycles):
            await self.tell({})

    async def read(self, address: int) -> int:
        answer = await with_timeout(self.master.read(address, 4), 100 * CLOCK_NS, "ns")
        assert answer.resp == AxiResp.OKAY, f"{address:#x}"
        return int.from_bytes(answer.data, "little")

    async def head(self, ring: int) -> int:
        return await self.read(offset("event_log.HEAD") + 4 * ring)

    async def entry(self, ring: int, number: int) -> Entry:
        at = offset("event_log.WORDS") + 16 * (ring * PLACES + number % PLACES)
        low, middle, a, b = [await self.read(at + 4 * i) for i in range(4)]
        assert middle >> 16 & 0xFF == 0
        return Entry((middle & 0xFFFF) << 32 | low, middle >> 24, a, b)

    async def entries(self, ring: int) -> list[Entry]:
        head = await self.head(ring)
        return [await self.entry(ring, number) for number in range(max(0, head - PLACES), head)]

    async def lost(self) -> int:
        return await self.read(offset("event_log.LOST"))


async def begin(dut) -> Bench:
    bench = Bench(dut)
    await start(dut)
    cocotb.start_soon(bench.time())
    return bench


def kind(ring: int, number: int = 0) -> int:
    return ring << 6 | number


@cocotb.test()
async def entries_in_order(dut) -> None:
    """What is told is read, in its ring, with the time at which it was told, for longer than a ring is."""
    bench = await begin(dut)
    told: list[list[Entry]] = [[] for _ in range(RINGS)]
    for _ in range(200):
        ring = random.randrange(RINGS)
        event = kind(ring, random.randrange(64)), random.getrandbits(32), random.getrandbits(32)
        await bench.tell({random.randrange(SOURCES): event})
        told[ring].append(Entry(bench.now, *event))
        await bench.silence(random.randrange(5, 12))
    await bench.silence(20)
    for ring, expected in enumerate(told):
        assert len(expected) > PLACES
        assert await bench.head(ring) == len(expected)
        read = await bench.entries(ring)
        assert [(entry.kind, entry.a, entry.b) for entry in read] == [(e.kind, e.a, e.b) for e in expected[-PLACES:]]
        late = [(entry.time - e.time) % 2**48 for entry, e in zip(read, expected[-PLACES:], strict=True)]
        assert all(1 <= cycles <= 12 for cycles in late), late
    assert await bench.lost() == 0
    await wait_cycles(dut, 2)
    assert int(dut.idle.value)


@cocotb.test()
async def all_sources_at_once(dut) -> None:
    """Each is taken down, the first source first; twice in a row costs the second one of those that wait."""
    bench = await begin(dut)
    await bench.tell({source: (kind(CONNECTIONS), source, 1) for source in range(SOURCES)})
    await bench.tell({source: (kind(CONNECTIONS), source, 2) for source in range(SOURCES)})
    await bench.silence(60)
    entries = [(entry.a, entry.b) for entry in await bench.entries(CONNECTIONS)]
    assert sorted(entries) == sorted([(source, 1) for source in range(SOURCES)] + [(0, 2)])
    assert [entry for entry in entries if entry != (0, 2)] == [(source, 1) for source in range(SOURCES)]
    assert await bench.lost() == SOURCES - 1


@cocotb.test()
async def strangers_push_nobody_out(dut) -> None:
    """However fast they are: entries of other rings stay, and new ones are taken down meanwhile, whole."""
    bench = await begin(dut)
    for number in range(8):
        await bench.tell({0: (kind(DEVICE, number), number, 0)})
        await bench.silence(6)
    told = 0
    for cycle in range(2000):
        flood = {source: (kind(STRANGERS), cycle, source) for source in range(1, SOURCES)}
        if cycle % 100 == 50:
            await bench.tell({**flood, 0: (kind(FAULTS, 1), told, cycle)})
            told += 1
        else:
            await bench.tell(flood)
    await bench.silence(100)
    assert [(e.kind, e.a) for e in await bench.entries(DEVICE)] == [(kind(DEVICE, n), n) for n in range(8)]
    assert [(e.a, e.b) for e in await bench.entries(FAULTS)] == [(n, 100 * n + 50) for n in range(told)]
    taken = await bench.head(STRANGERS)
    assert taken + await bench.lost() == 2000 * (SOURCES - 1)
    assert taken > 400
    assert all(entry.kind == kind(STRANGERS) for entry in await bench.entries(STRANGERS))


@cocotb.test()
async def half_of_the_queue_is_kept(dut) -> None:
    """A burst of as many events of the device as there is room for, in the middle of a flood."""
    bench = await begin(dut)
    flood = {source: (kind(STRANGERS), 0, source) for source in range(1, SOURCES)}
    for _ in range(50):
        await bench.tell(flood)
    for n in range(DEPTH // 2):
        await bench.tell({**flood, 0: (kind(DEVICE, n), n, 0)})
    await bench.silence(100)
    assert [entry.a for entry in await bench.entries(DEVICE)] == list(range(DEPTH // 2))


@cocotb.test()
async def it_is_read_only(dut) -> None:
    bench = await begin(dut)
    assert await bench.read(0) == int.from_bytes(b"ELOG", "big")
    assert await bench.read(offset("event_log.NEXT")) == 0x10000
    assert await bench.read(offset("event_log.TICKS_HZ")) == TICKS_HZ
    low = await bench.read(offset("event_log.NOW_LO"))
    high = await bench.read(offset("event_log.NOW_HI"))
    assert 0 < (bench.now - (high << 32 | low)) % 2**48 < 40
    for address in (0, offset("event_log.LOST"), offset("event_log.HEAD"), 0x800, 0xFFC):
        assert (await bench.master.write(address, b"abcd")).resp == AxiResp.DECERR
    for address in (0x1C, 0x30, 0x7FC):
        answer = await bench.master.read(address, 4)
        assert (answer.data, answer.resp) == (bytes(4), AxiResp.DECERR), f"{address:#x}"
    assert await bench.head(0) == 0


@cocotb.test()
async def a_reset_begins_anew(dut) -> None:
    bench = await begin(dut)
    for _ in range(3):
        await bench.tell({source: (kind(DEVICE), 0, 0) for source in range(SOURCES)})
    await bench.silence()
    dut.rst.value = 1
    await wait_cycles(dut, 4)
    await FallingEdge(dut.clk)
    dut.rst.value = 0
    await bench.silence(40)
    assert [await bench.head(ring) for ring in range(RINGS)] == [0] * RINGS
    assert await bench.lost() == 0
    await bench.tell({1: (kind(DEVICE), 5, 6)})
    await bench.silence(10)
    assert [(entry.a, entry.b) for entry in await bench.entries(DEVICE)] == [(5, 6)]


def test_host_and_device_agree() -> None:
    """On the numbers of kinds."""
    pattern = r"LOG_(\w+)\s*=\s*\{RING_(\w+), 6'd(\d+)\};"
    rings = {name: i for i, name in enumerate(["DEVICE", "FAULTS", "CONNECTIONS", "STRANGERS"])}
    found = re.findall(pattern, (RTL / "control" / "event_log_pkg.sv").read_text())
    rtl = {name: kind(rings[ring], int(number)) for name, ring, number in found}
    source = (ROOT / "host" / "nacelle-manage" / "src" / "event_log.rs").read_text()
    host = {name: int(number, 16) for name, number in re.findall(r"const (\w+): Self = Self\(0x(\w\w)\);", source)}
    assert len(rtl) == 23
    assert rtl == host


def test_event_log() -> None:
    run(
        "event_log",
        __file__,
        params={"SOURCES": SOURCES, "DEPTH": DEPTH, "TICKS_HZ": TICKS_HZ},
        ports={
            "now": Plain("input", "logic [47:0]"),
            "events": Plain("input", f"{EVENT} [{SOURCES - 1}:0]"),
            "bus": AxilSlave(12),
            "idle": Plain("output", "logic"),
        },
        random_state=True,
    )
