# SPDX-License-Identifier: Apache-2.0
"""copy_engine: copies by descriptors in a ring, completions in another one; what a driver can do wrong stops the queue with its
reason, and after it is begun again it works."""

from __future__ import annotations

import random
from collections.abc import Iterator

import cocotb
import pytest
from cocotb.triggers import FallingEdge, RisingEdge
from nacelle_tb.bench import AxilSlave, AxiMaster, Plain, Reset, Source, run
from nacelle_tb.cci import offset
from nacelle_tb.copy import (
    BAD,
    COMPLETION,
    COMPLETION_BYTES,
    DESCRIPTOR,
    DESCRIPTOR_BYTES,
    DESTINATION,
    FETCH,
    INTERRUPT,
    OK,
    PRODUCER,
    REPORT,
    RESET,
    SETTINGS,
    SOURCE,
    Completion,
    descriptor,
    generation,
)
from nacelle_tb.long import alternately
from nacelle_tb.memory import AxiMemory
from nacelle_tb.registers import AxilDriver
from nacelle_tb.streams import StreamSink, start, wait_cycles
from nacelle_tb.widths import WIDTHS, at_width

SIZE = 1 << 18
SOURCES, DESTINATIONS, RING, DONE = 0, 1 << 16, 1 << 17, 3 << 16
NEXT, VECTORS, LOG = 0x1_0000, 20, 5
NOWHERE = 1 << 40
MEMORY = {"MEMORY_BASE": "64'h1234_5678_9000", "MEMORY_BYTES": "64'h7_0000_a000"}


class Bench:
    def __init__(self, dut, stall: float = 0.0, latency: int | tuple[int, int] = (1, 40)) -> None:
        self.dut = dut
        self.bus = AxilDriver(dut, "bus")
        self.interrupts = StreamSink(dut, "interrupt", f"logic [{(VECTORS - 1).bit_length() - 1}:0]", stall)
        self.memory = AxiMemory(dut, "mem", SIZE, latency=latency, stall=stall, noise=True)
        self.memory.write(0, random.randbytes(SIZE))
        dut.reset.value = 0
        dut.fabric_rst.value = 1
        self.log = self.done_log = LOG
        self.posted = self.seen = 0
        self.stops = 0

    async def start(self) -> None:
        """Resets it."""
        await start(self.dut)
        self.dut.fabric_rst.value = 0
        cocotb.start_soon(self._watch())

    async def _watch(self) -> None:
        """Counts what it tells of stops."""
        while True:
            await FallingEdge(self.dut.clk)
            self.stops += int(self.dut.stops.value)

    async def begin(self, **settings: int) -> None:
        """Ends what runs, and sets it up; `settings` are registers."""
        await self.end()
        self.memory.write(DONE, bytes(COMPLETION_BYTES << self.done_log))
        values = {
            **{"DESCRIPTORS_LO": RING, "DESCRIPTORS_HI": 0, "COMPLETIONS_LO": DONE, "COMPLETIONS_HI": 0},
            **{"SIZES": self.log | self.done_log << 8 | 7 << 16, **settings, "CTRL": 1},
        }
        self.posted = self.seen = self.stops = 0
        self.interrupts.received.clear()
        for name, value in values.items():
            await self.write(name, value)

    async def end(self) -> None:
        """Disables it, and waits until all has ended."""
        await self.write("CTRL", 0)
        for _ in range(2000):
            if not await self.read("STATE") & 1:
                return
        raise AssertionError("it never ends")

    async def read(self, name: str) -> int:
        value, answer = await self.bus.read(offset(f"copy.{name}"))
        assert answer == 0
        return value

    async def write(self, name: str, value: int) -> None:
        assert await self.bus.write(offset(f"copy.{name}"), value) == 0

    def put(self, *descriptors: bytes) -> None:
        """Into the ring; `ring` tells the device."""
        for data in descriptors:
            self.memory.write(RING + self.posted % (1 << self.log) * DESCRIPTOR_BYTES, data)
            self.posted += 1

    async def ring(self) -> None:
        await self.write("PRODUCER", self.posted % (1 << 16))

    def completion(self) -> Completion | None:
        """The next one, if it is there."""
        at = DONE + self.seen % (1 << self.done_log) * COMPLETION_BYTES
        found = Completion.of(self.memory.read(at, COMPLETION_BYTES))
        if found.generation != generation(self.seen, self.done_log):
            return None
        self.seen += 1
        return found

    async def completed(self, cycles: int = 20_000) -> Completion:
        for _ in range(cycles):
            if (found := self.completion()) is not None:
                return found
            await RisingEdge(self.dut.clk)
        raise AssertionError("no completion came")

    async def stopped(self, reason: int) -> None:
        """It has stopped, for this reason, has told so once, nothing is under way, and it can begin again."""
        for _ in range(500):
            if (state := await self.read("STATE")) >> 8:
                break
        assert state == reason << 8 | 1, f"STATE is {state:#x}"
        await self.write("PRODUCER", self.posted + 1 & 0xFFFF)
        await wait_cycles(self.dut, 600)
        outstanding, seen = self.memory.outstanding(), self.memory.stats.write_bursts
        await wait_cycles(self.dut, 200)
        assert not outstanding and seen == self.memory.stats.write_bursts
        assert self.stops == 1
        assert list(self.interrupts.received) == [await self.read("SIZES") >> 16]
        await self.end()
        assert await self.read("STATE") == reason << 8
        await self.works()

    async def works(self) -> None:
        """A copy, after a new begin."""
        await self.begin()
        data = random.randbytes(100)
        self.memory.write(1000, data)
        self.put(descriptor(1000, DESTINATIONS + 3, 100, tag=0x1234_5678))
        await self.ring()
        assert await self.completed() == Completion(0x1234_5678, OK, 1)
        assert self.memory.read(DESTINATIONS + 3, 100) == data
        assert await self.read("STATE") == 1


def copies(count: int, longest: int = 3000) -> Iterator[tuple[int, int, int]]:
    """Source, destination, length; destinations are apart."""
    at = DESTINATIONS
    for _ in range(count):
        length = random.choice([0, 1, 32, 64, random.randint(1, 300), random.randint(1, longest)])
        at += random.randrange(70)
        if at + length > RING:
            at = DESTINATIONS
        yield random.randrange(DESTINATIONS - length), at, length
        at += length


@cocotb.test()
@cocotb.parametrize(stall=alternately([0.0, 0.3]), most=[1, 32])
async def both_rings_go_round(dut, stall: float, most: int) -> None:
    """Lists of descriptors, each with a report; some with an interrupt, which never is before its completion."""
    bench = Bench(dut, stall)
    bench.done_log = LOG + 1
    await bench.start()
    await bench.begin()
    expected = bytearray(bench.memory.content)
    waiting: list[int] = []
    asked = total = ended = 0
    work = list(copies(150 if most > 1 else 40))
    told, interrupts = 0, []
    while ended < len(work):
        places = 32 - (bench.posted - await bench.read("CONSUMER"))
        for _ in range(min(random.randint(1, most), places, len(work) - total)):
            source, destination, length = work[total]
            last = total == len(work) - 1 or random.random() < 0.4 or len(waiting) - ended > 20
            flags = (REPORT if last else 0) | (INTERRUPT if last and random.random() < 0.5 else 0)
            bench.put(descriptor(source, destination, length, flags, tag=total))
            expected[destination : destination + length] = expected[source : source + length]
            total += 1
            if last:
                waiting.append(total)
                interrupts.append(flags >> 1)
        if bench.posted != asked:
            asked = bench.posted
            await bench.ring()
        while told < len(waiting) and (total == len(work) or random.random() < 0.7):
            completion = await bench.completed()
            assert (completion.tag, completion.status) == (waiting[told] - 1, OK)
            ended = waiting[told]
            told += 1
    await wait_cycles(dut, 100)
    assert bench.memory.content[DESTINATIONS:RING] == expected[DESTINATIONS:RING]
    assert await bench.read("COPIES") == len(work) and await bench.read("ERRORS") == 0
    assert await bench.read("BYTES_LO") == sum(length for _, _, length in work) and await bench.read("BYTES_HI") == 0
    assert await bench.read("REPORTED") == len(waiting) and await bench.read("CONSUMER") == len(work)
    assert 0 < len(bench.interrupts.received) <= sum(interrupts) and set(bench.interrupts.received) == {7}
    await bench.end()
    assert await bench.read("STATE") == 0 and int(dut.idle.value)


@cocotb.test()
async def a_completion_waits_for_the_data_and_the_interrupt_for_it(dut) -> None:
    """Memory answers late: the address of the completion goes when all data is answered, the interrupt when the completion is."""
    bench = Bench(dut, latency=100)
    await bench.start()
    await bench.begin()
    bench.put(descriptor(0, DESTINATIONS, 5000, 0), descriptor(5000, DESTINATIONS + 5000, 3, REPORT | INTERRUPT))
    await bench.ring()
    while not (int(dut.mem_awvalid.value) and DONE <= int(dut.mem_awaddr.value) < DONE + 1024):
        assert not bench.interrupts.received
        await RisingEdge(dut.clk)
    assert not bench.memory.outstanding()
    while not bench.interrupts.received:
        await RisingEdge(dut.clk)
    assert not bench.memory.outstanding() and bench.completion() == Completion(0, OK, 1)


@cocotb.test()
async def errors_belong_to_their_list(dut) -> None:
    bench = Bench(dut)
    await bench.start()
    await bench.begin()
    bench.put(
        descriptor(NOWHERE, DESTINATIONS, 100, 0, 1),
        descriptor(0, DESTINATIONS, 64, REPORT, 2),
        descriptor(0, NOWHERE, 64, REPORT, 3),
        descriptor(0, DESTINATIONS, 64, REPORT, 4),
        descriptor((1 << 64) - 8, DESTINATIONS, 8, REPORT, 5),
    )
    await bench.ring()
    found = [await bench.completed() for _ in range(4)]
    assert [(c.tag, c.status) for c in found] == [(2, SOURCE), (3, DESTINATION), (4, OK), (5, SOURCE)]
    assert await bench.read("ERRORS") == 3 and await bench.read("STATE") == 1


@cocotb.test()
async def what_a_driver_does_wrong_stops_the_queue(dut) -> None:
    bench = Bench(dut)
    await bench.start()
    for settings in ({"SIZES": 4 | LOG << 8}, {"SIZES": LOG | 4 << 8}, {"SIZES": 0}):
        await bench.begin(**settings)
        await bench.stopped(SETTINGS)
    for producer in (33, 0x8000, 0xFFFF):
        await bench.begin()
        bench.put(*[descriptor(0, DESTINATIONS, 64)] * 32)
        await bench.write("PRODUCER", producer)
        await bench.stopped(PRODUCER)
        await bench.begin()
        bench.put(*[descriptor(0, DESTINATIONS, 64)] * 2)
        await bench.ring()
        await bench.completed()
        await bench.completed()
        await bench.write("PRODUCER", 1)  # back
        await bench.stopped(PRODUCER)
    for where in ({"DESCRIPTORS_HI": 1}, {"DESCRIPTORS_LO": SIZE - 1024, "SIZES": LOG + 1 | LOG << 8 | 1 << 16}):
        bench.memory.errors = [(SIZE - 1024, SIZE)]
        await bench.begin(**where)
        bench.put(descriptor(0, DESTINATIONS, 64))
        await bench.write("PRODUCER", 40 if len(where) > 1 else 1)
        await bench.stopped(FETCH)
        bench.memory.errors = []
    await bench.begin(COMPLETIONS_HI=1)
    bench.put(*[descriptor(0, DESTINATIONS, 64, REPORT | INTERRUPT)] * 20)
    await bench.ring()
    await bench.stopped(COMPLETION)
    for wrong in ({"flags": 4}, {"flags": 1 << 31 | REPORT}, {"reserved": 1}, {"flags": 4, "length": 0}):
        await bench.begin()
        before = bench.memory.read(DESTINATIONS, 4096)
        bad = {"source": 0, "destination": DESTINATIONS, "length": 64, "tag": 77, **wrong}
        bench.put(descriptor(NOWHERE, DESTINATIONS + 64, 8, 0), descriptor(**bad), *[descriptor(0, DESTINATIONS + 128, 64)] * 10)
        await bench.ring()
        assert await bench.completed() == Completion(77, BAD, 1)
        await wait_cycles(dut, 200)
        assert bench.completion() is None and bench.memory.read(DESTINATIONS, 4096) == before
        await bench.stopped(DESCRIPTOR)


@cocotb.test()
async def it_ends_what_it_has_when_it_is_disabled(dut) -> None:
    """And nothing of it comes in the next run."""
    bench = Bench(dut)
    await bench.start()
    for wait in (0, 20, 60, 150, 400):
        await bench.begin()
        bench.put(*[descriptor(i, DESTINATIONS + 600 * i, 600, tag=i) for i in range(32)])
        await bench.ring()
        await wait_cycles(dut, wait)
        await bench.end()
        taken = await bench.read("CONSUMER")
        found = [completion.tag for completion in iter(bench.completion, None)]
        assert found == list(range(taken))
        assert await bench.read("PRODUCER") == 0 and int(dut.idle.value)
        await bench.works()
        await bench.end()


@cocotb.test()
async def a_reset_of_the_function_under_load(dut) -> None:
    """All is given up; no completion comes any more."""
    bench = Bench(dut, latency=30)
    await bench.start()
    await bench.begin()
    bench.put(*[descriptor(0, DESTINATIONS, 60_000, tag=i) for i in range(32)])
    await bench.ring()
    await bench.completed()
    dut.reset.value = 1
    await wait_cycles(dut, 50)
    while bench.completion():
        pass
    await wait_cycles(dut, 1000)
    assert not bench.memory.outstanding() and bench.completion() is None
    assert await bench.read("STATE") == RESET << 8 | 1 and bench.stops == 1
    await bench.end()
    await bench.write("CTRL", 1)
    assert await bench.read("STATE") == RESET << 8, "it does not begin during a reset"
    await bench.write("CTRL", 0)
    dut.reset.value = 0
    await bench.works()


@cocotb.test()
async def settings_stay_while_it_runs(dut) -> None:
    bench = Bench(dut)
    await bench.start()
    assert [await bench.read(name) for name in ("TYPE", "VERSION", "NEXT")] == [int.from_bytes(b"COPY", "big"), 1 << 16 | 1, NEXT]
    assert [await bench.read(f"MEMORY_{name}") for name in ("LO", "HI", "SIZE_LO", "SIZE_HI")] == [0x5678_9000, 0x1234, 0xA000, 0x7]
    names = ("DESCRIPTORS_LO", "DESCRIPTORS_HI", "COMPLETIONS_LO", "COMPLETIONS_HI", "SIZES")
    numbers = [random.getrandbits(32) for _ in names[:-1]] + [9 | 8 << 8 | 100 << 16]
    for name, value in zip(names, numbers, strict=True):
        await bench.write(name, value)
    assert [await bench.read(name) for name in names] == numbers
    await bench.begin(SIZES=LOG | LOG << 8 | 100 << 16)
    for name in names:
        before = await bench.read(name)
        await bench.write(name, ~before & 0xFFFF_FFFF)
        assert await bench.read(name) == before
    bench.put(descriptor(0, DESTINATIONS, 64, REPORT | INTERRUPT))
    await bench.ring()
    await bench.completed()
    await wait_cycles(dut, 50)
    assert not bench.interrupts.received, "there is no vector 100"


@cocotb.test()
async def memory_comes_later_than_the_registers(dut) -> None:
    bench = Bench(dut)
    await start(dut)
    await bench.begin()
    data = bench.memory.read(0, 64)
    bench.put(descriptor(0, DESTINATIONS, 64))
    await bench.ring()
    assert await bench.read("STATE") == 0
    dut.fabric_rst.value = 0
    assert await bench.completed() == Completion(0, OK, 1)
    assert bench.memory.read(DESTINATIONS, 64) == data


@cocotb.test()
async def latency_in_cycles(dut) -> None:
    """Of the engine alone: memory answers a read after one cycle, and a write."""
    bench = Bench(dut, latency=1)
    await bench.start()
    await bench.begin()
    bench.put(descriptor(0, DESTINATIONS, 8))
    cocotb.start_soon(bench.ring())
    while not int(dut.bus_wvalid.value):
        await FallingEdge(dut.clk)
    began = bench.memory.cycle
    reads: list[int] = []
    while bench.completion() is None:
        await RisingEdge(dut.clk)
    beats = bench.memory.stats
    reads = [cycle - began for cycle in beats.read_beat_cycles]
    writes = [cycle - began for cycle in beats.write_beat_cycles]
    print(f"from the doorbell: reads end at {reads}, writes at {writes}")
    assert writes[-1] <= 42 + (8 if len(reads) > 2 else 0)


@cocotb.test()
async def small_copies_a_second(dut) -> None:
    """Of 64 bytes, each with a report, under a latency of 100 cycles; each needs two writes of the 32 that may be under way."""
    bench = Bench(dut, latency=100)
    bench.log = bench.done_log = 9
    await bench.start()
    await bench.begin()
    bench.put(*[descriptor(64 * i, DESTINATIONS + 64 * i, 64, tag=i) for i in range(500)])
    began = bench.memory.cycle
    await bench.ring()
    for i in range(500):
        assert (await bench.completed()).tag == i
    cycles = bench.memory.cycle - began
    print(f"a copy in {cycles / 500:.1f} cycles")
    assert cycles < 500 * {8: 16, 16: 10}.get(bench.memory.bytes_per_beat, 8)  # a descriptor is 32 bytes
    assert bench.memory.read(DESTINATIONS, 32000) == bench.memory.read(0, 32000)


@pytest.mark.parametrize("width", WIDTHS)
def test_copy_engine(width: int) -> None:
    run(
        "copy_engine",
        __file__,
        params={"DATA_W": width, "VECTORS": VECTORS, **MEMORY, "NEXT": NEXT},
        ports={
            "fabric_rst": Reset(),
            "reset": Plain("input", "logic"),
            "bus": AxilSlave(12),
            "mem": AxiMaster(width),
            "interrupt": Source(f"logic [{(VECTORS - 1).bit_length() - 1}:0]"),
            "stops": Plain("output", "logic"),
            "state": Plain("output", "copy_pkg::copy_state_t"),
            "idle": Plain("output", "logic"),
        },
        env=at_width(width, "both_rings|errors|disabled|latency|small"),
        random_state=True,
    )
