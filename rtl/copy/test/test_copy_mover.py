# SPDX-License-Identifier: Apache-2.0
"""copy_mover and copy_cutter: bytes go where they belong and nowhere else; a failed read writes nothing; outcomes in order; data
never has a gap behind its address; reads of descriptors and completions pass between the pieces."""

import random
from pathlib import Path

import cocotb
import pytest
from cocotb.triggers import FallingEdge, RisingEdge
from nacelle_tb.bench import AxiMaster, AxisSource, Plain, Sink, Source, run
from nacelle_tb.long import alternately
from nacelle_tb.memory import AxiMemory
from nacelle_tb.streams import AxisSink, StreamSink, StreamSource, start, wait_cycles
from nacelle_tb.svtypes import constant, struct
from nacelle_tb.widths import WIDTHS, at_width

SIZE = 1 << 18
SOURCES, DESTINATIONS, DESCRIPTORS, COMPLETIONS = 0, 1 << 16, 1 << 17, 3 << 16
"""Areas of 64 KiB; the last one has completions only"""
OK, SOURCE, DESTINATION, BAD = (constant(f"copy_pkg::COPY_{name}") for name in ("OK", "SOURCE", "DESTINATION", "DESCRIPTOR"))


class Bench:
    def __init__(self, dut, stall: float = 0.0, latency: int | tuple[int, int] = (1, 30)) -> None:
        self.dut = dut
        self.copies = StreamSource(dut, "copy", "copy_pkg::copy_t", stall, noise=True)
        self.fetches = StreamSource(dut, "fetch", "copy_pkg::copy_read_t", stall, noise=True)
        self.reports = StreamSource(dut, "report", "copy_pkg::copy_report_t", stall, noise=True)
        self.fetched = AxisSink(dut, "fetched", stall)
        self.outcomes = StreamSink(dut, "outcome", "copy_pkg::copy_outcome_t", stall)
        self.memory = AxiMemory(dut, "mem", SIZE, latency=latency, stall=stall, noise=True)
        self.memory.write(0, random.randbytes(SIZE))
        self.expected = bytearray(self.memory.content)
        self.reported: list[tuple[int, bool]] = []
        self.failed_fetches = self.copied = self.failed = self.bytes = 0
        dut.start.value = dut.give_up.value = 0
        cocotb.start_soon(self._pulses())
        cocotb.start_soon(self._gaps())

    async def _pulses(self) -> None:
        events, outcome = struct("copy_pkg::copy_events_t"), struct("copy_pkg::copy_outcome_t")
        while True:
            await RisingEdge(self.dut.clk)
            if int(self.dut.rst.value):
                continue
            self.failed_fetches += int(self.dut.fetch_failed.value)
            seen = events.unpack(int(self.dut.events.value))
            self.copied += seen.copied
            self.failed += seen.copied and seen.failed
            self.bytes += seen.bytes
            for signal, good in (("reported", True), ("report_failed", False)):
                if int(getattr(self.dut, signal).value):
                    self.reported.append((outcome.unpack(int(self.dut.of_report.value)).tag, good))

    async def _gaps(self) -> None:
        """The rule of axi_mux: an address says that the data is there. The write engine has W two cycles behind AW; a
        piece that is not aligned may pause once."""
        owed, silent = 0, 0
        while True:
            await RisingEdge(self.dut.clk)
            if int(self.dut.rst.value):
                continue
            valid = int(self.dut.mem_wvalid.value)
            silent = 0 if valid or owed <= 0 else silent + 1  # less than 0: memory has taken the data before the address
            assert silent <= 3, "data that an address has announced is not there"
            owed += int(self.dut.mem_awvalid.value) and int(self.dut.mem_awready.value)
            owed -= valid and int(self.dut.mem_wready.value) and int(self.dut.mem_wlast.value)

    def copy(self, source: int, destination: int, length: int, **fields: int) -> None:
        """A copy that works."""
        self.copies.send(source=source, destination=destination, length=length, **fields)
        self.expected[destination : destination + length] = self.memory.read(source, length)

    def report(self, place: int, tag: int, status: int = OK, generation: int = 1) -> None:
        address = COMPLETIONS + 16 * place
        self.reports.send(address=address, generation=generation, outcome={"tag": tag, "status": status})
        words = tag | generation << 127 | status << 96
        self.expected[address : address + 16] = words.to_bytes(16, "little")

    async def settled(self) -> None:
        for _ in range(20_000):
            await wait_cycles(self.dut, 10)
            if int(self.dut.idle.value) and not self.copies.busy and not self.fetches.busy and not self.reports.busy:
                return
        raise AssertionError("it never ends")


def lengths(step: int) -> list[int]:
    return [0, 1, step - 1, step, step + 1, random.randint(1, 4 * step), random.randint(1, 300), random.randint(1, 9000)]


@cocotb.test()
@cocotb.parametrize(stall=alternately([0.0, 0.4]), latency=[1, (1, 60)])
async def bytes_go_where_they_belong(dut, stall: float, latency: int | tuple[int, int]) -> None:
    """Any alignment of both sides, beside reads of descriptors and completions."""
    bench = Bench(dut, stall, latency)
    await start(dut)
    expected, at, fetches, places = [], DESTINATIONS, [], 0
    for i in range(60):
        length = random.choice(lengths(bench.memory.bytes_per_beat))
        at += random.randrange(130)
        if at + length > DESCRIPTORS:
            break
        report = random.random() < 0.5
        bench.copy(random.randrange(DESTINATIONS - length), at, length, tag=i, report=report)
        at += length
        if report:
            expected.append(i)
        if random.random() < 0.4:
            count = random.randint(1, 32)
            where = DESCRIPTORS + 1024 * random.randrange(64) + 32 * random.randrange(33 - count)
            bench.fetches.send(address=where, length=32 * count)
            fetches.append(bench.memory.read(where, 32 * count))
        if random.random() < 0.3:
            bench.report(places, random.getrandbits(32), random.choice([OK, SOURCE]), random.getrandbits(1))
            places += 1
        await wait_cycles(dut, random.choice([0, 0, 50]))
    found = [await bench.outcomes.recv() for _ in expected]
    await bench.settled()
    assert [outcome.tag for outcome in found] == expected and all(outcome.status == OK for outcome in found)
    assert [packet for packet, _ in bench.fetched.packets] == fetches
    assert len(bench.reported) == places and all(good for _, good in bench.reported)
    assert bench.memory.content == bench.expected
    assert bench.failed == bench.failed_fetches == 0


@cocotb.test()
@cocotb.parametrize(stall=alternately([0.0, 0.3]))
async def a_failed_read_writes_nothing_of_its_piece(dut, stall: float) -> None:
    """The list ends with its first error, the next list has none of it."""
    bench = Bench(dut, stall)
    await start(dut)
    bench.memory.errors += [
        (8192, 8192 + 1),
        (DESTINATIONS + 32768, DESTINATIONS + 32768),
        (DESCRIPTORS + 1024, DESCRIPTORS + 1024),
    ]
    block = min(4096, 128 * bench.memory.bytes_per_beat)
    wrong = [(8192, DESTINATIONS, 100), (8000, DESTINATIONS + 256, 2 * block)]
    bench.copies.send(source=wrong[0][0], destination=wrong[0][1], length=wrong[0][2], tag=1, report=1)
    bench.copy(0, DESTINATIONS + 20000, 64, tag=2, report=1)
    source, destination, length = wrong[1]
    bench.copies.send(source=source, destination=destination, length=length, tag=3, report=1)
    for first, end in ((source, 8192), (8192 + block, source + length)):  # the pieces before and behind are copied
        where = destination + first - source
        bench.expected[where : where + end - first] = bench.memory.read(first, end - first)
    bench.fetches.send(address=DESCRIPTORS + 1024, length=64)
    bench.fetches.send(address=DESCRIPTORS, length=64)
    bench.copies.send(source=64, destination=DESTINATIONS + 32768, length=8, tag=4)
    bench.copies.send(source=8192, destination=DESTINATIONS, length=1, tag=5)
    bench.copies.send(source=8192, destination=DESTINATIONS, length=0, tag=6, report=1, interrupts=1)
    bench.copies.send(source=0, destination=DESTINATIONS, length=0, tag=7, report=1)
    bench.copies.send(source=SIZE, destination=DESTINATIONS, length=7, tag=8, report=1)
    bench.copies.send(source=0, destination=1 << 63, length=7, tag=9, report=1)
    bench.copies.send(source=1 << 63, destination=1 << 63, length=3 * block, tag=10, report=1)
    found = [await bench.outcomes.recv() for _ in range(8)]
    assert [(o.tag, o.status, o.interrupts) for o in found] == [
        (1, SOURCE, 0), (2, OK, 0), (3, SOURCE, 0), (6, DESTINATION, 1),
        (7, OK, 0), (8, SOURCE, 0), (9, DESTINATION, 0), (10, SOURCE, 0),
    ]  # fmt: skip
    await bench.settled()
    assert bench.memory.content == bench.expected
    assert (bench.copied, bench.failed, bench.failed_fetches) == (10, 7, 1)
    assert [packet for packet, _ in bench.fetched.packets] == [bench.memory.read(DESCRIPTORS, 64)]


@cocotb.test()
async def a_bad_copy_ends_in_its_turn_and_nothing_follows(dut) -> None:
    """Until `give_up`, which forgets what waits."""
    bench = Bench(dut)
    await start(dut)
    bench.copy(5, DESTINATIONS, 1000, tag=1, report=1)
    bench.copies.send(source=0, destination=DESTINATIONS + 4096, length=100, bad=1, tag=2)
    bench.copies.send(source=0, destination=DESTINATIONS + 4096, length=100, tag=3, report=1)
    found = [await bench.outcomes.recv() for _ in range(2)]
    assert [(o.tag, o.status) for o in found] == [(1, OK), (2, BAD)]
    await wait_cycles(dut, 300)
    assert bench.copies.busy and not bench.outcomes.received
    dut.give_up.value = 1
    await bench.settled()
    dut.give_up.value = 0
    bench.copy(9, DESTINATIONS + 5000, 100, tag=4, report=1)
    assert (await bench.outcomes.recv()).tag == 4
    await bench.settled()
    assert bench.memory.content == bench.expected


@cocotb.test()
async def giving_up_ends_it_soon(dut) -> None:
    """A copy of 4 GiB less one; what comes next has nothing of it."""
    bench = Bench(dut, latency=20)
    await start(dut)
    bench.copies.send(source=0, destination=DESTINATIONS, length=(1 << 32) - 1, tag=1, report=1)
    await wait_cycles(dut, 200)
    dut.give_up.value = 1
    began = bench.memory.cycle
    await bench.settled()
    assert bench.memory.cycle - began < 70 * 4096 // bench.memory.bytes_per_beat
    written = bench.memory.stats.write_beats
    dut.give_up.value = 0
    dut.start.value = 1
    await FallingEdge(dut.clk)
    await FallingEdge(dut.clk)
    dut.start.value = 0
    assert not bench.outcomes.received
    bench.expected[:] = bench.memory.content
    bench.copy(64, DESTINATIONS + 4096, 64, tag=2, report=1)
    assert (await bench.outcomes.recv()).status == OK
    await bench.settled()
    assert bench.memory.stats.write_beats == written + 64 // bench.memory.bytes_per_beat
    assert bench.memory.content == bench.expected


@cocotb.test()
async def outcomes_that_nobody_takes_stop_nothing_but_pieces_that_report(dut) -> None:
    """32 wait; completions pass them."""
    bench = Bench(dut)
    bench.outcomes.stall = 1.0
    await start(dut)
    for i in range(50):
        bench.copy(64 * i, DESTINATIONS + 64 * i, 64, tag=i, report=1)
    await wait_cycles(dut, 2000)
    assert bench.copied == 32
    for i in range(40):
        bench.report(i, i)
    bench.fetches.send(address=DESCRIPTORS, length=64)
    while len(bench.reported) < 40:
        await wait_cycles(dut, 10)
    bench.outcomes.stall = 0.0
    assert [(await bench.outcomes.recv()).tag for _ in range(50)] == list(range(50))
    await bench.settled()
    assert bench.memory.content == bench.expected and len(bench.fetched.packets) == 1


@cocotb.test()
async def one_beat_a_cycle(dut) -> None:
    """Long copies under a latency of 100 cycles, and between them completions and descriptors."""
    bench = Bench(dut, latency=100)
    await start(dut)
    for i in range(3):
        bench.copy(0, DESTINATIONS + 16384 * i, 16384, tag=i, report=1)
    for _ in range(3):
        bench.report(0, (await bench.outcomes.recv()).tag)
    await bench.settled()
    cycles = bench.memory.stats.write_beat_cycles
    data = 3 * 16384 // bench.memory.bytes_per_beat
    print(f"{data} beats in {cycles[data - 1] - cycles[0] + 1} cycles")
    assert cycles[data - 1] - cycles[0] + 1 < 1.03 * data + 8


@cocotb.test()
async def latency_in_cycles(dut) -> None:
    bench = Bench(dut, latency=10)
    await start(dut)
    for shift in (0, 5):
        bench.copy(64 + shift, DESTINATIONS + shift, 1, tag=1, report=1)
        await bench.copies.drained()
        asked = bench.memory.cycle
        await bench.outcomes.recv()
        read, written = bench.memory.stats.read_beat_cycles[0], bench.memory.stats.write_beat_cycles[0]
        print(f"copy to R {read - asked} with 10 of memory, R to W {written - read}")
        assert (read - asked - 10, written - read) == (4, 6)
        bench.memory.stats.read_beat_cycles.clear()
        bench.memory.stats.write_beat_cycles.clear()
        await bench.settled()


@pytest.mark.parametrize("width", WIDTHS)
def test_copy_mover(width: int) -> None:
    run(
        "copy_mover_bench",
        __file__,
        sources=[Path(__file__).with_name("copy_mover_bench.sv")],
        params={"DATA_W": width},
        ports={
            "start": Plain("input", "logic"),
            "give_up": Plain("input", "logic"),
            "fetch": Sink("copy_pkg::copy_read_t"),
            "copy": Sink("copy_pkg::copy_t"),
            "fetched": AxisSource(width),
            "fetch_failed": Plain("output", "logic"),
            "outcome": Source("copy_pkg::copy_outcome_t"),
            "report": Sink("copy_pkg::copy_report_t"),
            "reported": Plain("output", "logic"),
            "report_failed": Plain("output", "logic"),
            "of_report": Plain("output", "copy_pkg::copy_outcome_t"),
            "mem": AxiMaster(width),
            "events": Plain("output", "copy_pkg::copy_events_t"),
            "idle": Plain("output", "logic"),
        },
        env=at_width(width, "bytes_go|failed_read|one_beat|latency"),
        random_state=True,
    )
