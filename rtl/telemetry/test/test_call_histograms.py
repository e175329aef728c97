# SPDX-License-Identifier: Apache-2.0
"""call_histograms: every call is in one bin of each histogram and in its sums, whatever else ends, is read or jumps."""

from __future__ import annotations

import random
from collections import Counter, deque

import cocotb
from cocotb.triggers import FallingEdge, with_timeout
from cocotbext.axi import AxiLiteBus, AxiLiteMaster, AxiResp
from nacelle_tb.bench import AxilSlave, Plain, run
from nacelle_tb.cci import offset
from nacelle_tb.streams import CLOCK_NS, start, wait_cycles
from nacelle_tb.svtypes import struct
from nacelle_tb.values import digits

digits()

SOCKETS, QPS, CONTEXTS = 5, 16, 4
PLACES = 16  # of an array, for one bin
CLOCK_HZ, NEXT = 200_000_000, 0x10000
FIRST, TIME_BINS, QUEUE_BINS = 8, 24, 8
PROGRESS = "rpc_pkg::call_progress_t"
TIMES = ("LATENCY", "RUN")


def at(name: str) -> int:
    """Address of a register of the block."""
    return offset(f"histograms.{name}")


def time_bin(cycles: int) -> int:
    return next((b for b in range(TIME_BINS - 1) if cycles < 1 << FIRST + b), TIME_BINS - 1)


def queue_bin(calls: int) -> int:
    return next((b for b in range(QUEUE_BINS - 1) if calls < 1 << b), QUEUE_BINS - 1)


class Bench:
    """rpc_dispatch as telemetry sees it, and what the histograms should have."""

    def __init__(self, dut) -> None:
        self.dut = dut
        self.master = AxiLiteMaster(AxiLiteBus.from_prefix(dut, "bus"), dut.clk, dut.rst)
        self.now = 2**48 - 2000  # it wraps
        self.jumps = 0.0
        self.shortest, self.longest = 20, 400
        self.load = 0.25
        self.gate = False  # calls end only all at once
        self.counts: Counter[tuple[str, int, int]] = Counter()  # array, bin, socket
        self.sums: Counter[tuple[str, int]] = Counter()
        self.waiting: list[deque] = [deque() for _ in range(SOCKETS)]  # context, arrival
        self.running: dict[int, tuple[int, int, int, int]] = {}  # socket: context, arrival, begin, cycle at which it ends
        self.free = [(slot, number) for slot in range(QPS) for number in range(CONTEXTS)]
        self.quiet = True
        dut.progress.value = 0
        dut.running.value = 0
        dut.now.value = self.now

    def depth(self, socket: int) -> int:
        return len(self.waiting[socket]) + (socket in self.running)

    def tell(self, array: str, number: int, socket: int, value: int) -> None:
        self.counts[array, number, socket] += 1
        self.sums[array, socket] += value

    async def calls(self) -> None:
        """One cycle after the other, with the rates that rpc_dispatch has."""
        cycle, came, began, opened = 0, -9, -9, 0
        layout = struct(PROGRESS)
        while True:
            await FallingEdge(self.dut.clk)
            cycle += 1
            self.now += 1
            if random.random() < self.jumps:
                self.now += random.choice((100, 10_000, 1 << 20, 1 << 33))
            event: dict[str, object] = {}
            # What there was before this cycle is what a call finds.
            depth = [self.depth(socket) for socket in range(SOCKETS)]
            ready = [socket for socket, (*_, end) in self.running.items() if end <= cycle]
            if self.gate:
                opened = opened or (SOCKETS if len(ready) == SOCKETS else 0)
                ready = ready if opened else []
            elif self.quiet:
                opened = 0
            if ready:
                socket = random.choice(ready)
                opened = max(0, opened - 1)
                context, arrival, begin, _ = self.running.pop(socket)
                self.free.append(context)
                event |= {"ends": 1, "ends_at": socket}
                for array, cycles in (("LATENCY", self.now - arrival), ("RUN", self.now - begin)):
                    self.tell(array, time_bin(cycles), socket, cycles)
            elif random.random() < 0.02 and any(self.waiting):
                socket = random.choice([socket for socket in range(SOCKETS) if self.waiting[socket]])
                context, _ = self.waiting[socket].popleft()
                self.free.append(context)
                event |= {"leaves": 1, "leaves_at": socket}
            idle = [socket for socket in range(SOCKETS) if self.waiting[socket] and socket not in self.running]
            if idle and cycle - began >= 6 and "leaves" not in event and event.get("ends_at") not in idle:
                socket, began = random.choice(idle), cycle
                context, arrival = self.waiting[socket].popleft()
                self.running[socket] = (context, arrival, self.now, cycle + random.randint(self.shortest, self.longest))
                event |= {"begins": 1, "begins_at": socket, "beginning": dict(zip(("slot", "number"), context, strict=True))}
            if not self.quiet and self.free and cycle - came >= 3 and random.random() < self.load:
                socket, came = random.randrange(SOCKETS), cycle
                context = self.free.pop(random.randrange(len(self.free)))
                self.waiting[socket].append((context, self.now))
                event |= {"arrives": 1, "arrives_at": socket, "arriving": dict(zip(("slot", "number"), context, strict=True))}
                self.tell("QUEUE", queue_bin(depth[socket]), socket, depth[socket])
            self.dut.progress.value = layout.pack(**event)
            self.dut.now.value = self.now % 2**48
            self.dut.running.value = sum(1 << socket for socket in self.running)

    async def read(self, address: int) -> int:
        answer = await with_timeout(self.master.read(address, 4), 100 * CLOCK_NS, "ns")
        assert answer.resp == AxiResp.OKAY, f"{address:#x}"
        return int.from_bytes(answer.data, "little")

    async def clear(self) -> None:
        answer = await with_timeout(self.master.write(at("COMMAND"), (1).to_bytes(4, "little")), 100 * CLOCK_NS, "ns")
        assert answer.resp == AxiResp.OKAY

    async def end(self) -> None:
        """No call any more, all counted."""
        self.quiet = True
        self.gate = False
        while self.running or any(self.waiting):
            await wait_cycles(self.dut, 10)
        while not int(self.dut.idle.value):
            await FallingEdge(self.dut.clk)

    async def compare(self) -> None:
        for array, bins in (("QUEUE", QUEUE_BINS), ("LATENCY", TIME_BINS), ("RUN", TIME_BINS)):
            for socket in range(SOCKETS):
                found = [await self.read(at(array) + 4 * (PLACES * number + socket)) for number in range(bins)]
                assert found == [self.counts[array, number, socket] for number in range(bins)], f"{array} of socket {socket}"
                low, high = [await self.read(at(f"{array}_SUM_{half}") + 4 * socket) for half in ("LO", "HI")]
                assert high << 32 | low == self.sums[array, socket], f"sum of {array} of socket {socket}"


async def begin(dut) -> Bench:
    bench = Bench(dut)
    await start(dut)
    cocotb.start_soon(bench.calls())
    while not int(dut.idle.value):
        await FallingEdge(dut.clk)
    await bench.compare()  # all 0
    return bench


@cocotb.test()
async def calls_are_counted(dut) -> None:
    """Few and many of them, short and long, one by one and all at once, while registers are read."""
    bench = await begin(dut)

    async def reads() -> None:
        while True:
            array, bins = random.choice((("QUEUE", QUEUE_BINS), ("LATENCY", TIME_BINS), ("RUN", TIME_BINS)))
            number, socket = random.randrange(bins), random.randrange(SOCKETS)
            assert await bench.read(at(array) + 4 * (PLACES * number + socket)) <= bench.counts[array, number, socket]

    reader = cocotb.start_soon(reads())
    for load, longest, jumps, gate in (
        (0.02, 400, 0, False),
        (1, 25, 0, False),
        (1, 25, 0, True),
        (0.1, 100, 0.01, False),
        (1, 2000, 0, True),
    ):
        bench.load, bench.longest, bench.jumps, bench.gate, bench.quiet = load, longest, jumps, gate, False
        await wait_cycles(dut, 6000)
        await bench.end()
    reader.cancel()
    await wait_cycles(dut, 20)
    assert max(number for array, number, _ in bench.counts if array == "QUEUE") >= 4
    assert {0, TIME_BINS - 1} <= {number for array, number, _ in bench.counts if array == "LATENCY"}
    await bench.compare()


@cocotb.test()
async def facts_and_a_call_that_runs(dut) -> None:
    bench = await begin(dut)
    for name, value in {
        "TYPE": 0x48495354,
        "NEXT": NEXT,
        "CLOCK_HZ": CLOCK_HZ,
        "SHAPE": FIRST << 16 | SOCKETS << 8 | TIME_BINS,
        "STATUS": 0,
        "RUNNING": 0,
    }.items():
        assert await bench.read(at(name)) == value, name
    bench.longest, bench.load, bench.quiet = 10_000, 1, False
    await wait_cycles(dut, 1000)
    bench.quiet = True
    assert await bench.read(at("RUNNING")) == sum(1 << socket for socket in bench.running) != 0
    for socket, (_, _, begin_at, _) in bench.running.items():
        assert await bench.read(at("SINCE") + 4 * socket) == (begin_at % 2**40) >> 8, socket
    low, high = await bench.read(at("NOW_LO")), await bench.read(at("NOW_HI"))
    assert 0 <= bench.now % 2**48 - (high << 32 | low) < 40
    for address in (0x28, 0x3C):
        answer = await with_timeout(bench.master.read(address, 4), 100 * CLOCK_NS, "ns")
        assert answer.resp == AxiResp.DECERR
    for name in ("LATENCY", "STATUS", "NOW_LO"):
        written = await with_timeout(bench.master.write(at(name), b"abcd"), 100 * CLOCK_NS, "ns")
        assert written.resp == AxiResp.DECERR


@cocotb.test()
async def a_clear_sets_all_to_zero(dut) -> None:
    """And only that: a call that runs, or waits, at the time is counted when it ends."""
    bench = await begin(dut)
    for clears in (1, 2):
        bench.longest, bench.load, bench.quiet = 300, 1, False
        await wait_cycles(dut, 2000)
        bench.quiet = True
        await bench.clear()
        assert await bench.read(at("STATUS")) == clears << 16 | 1
        # What comes or ends meanwhile is in none.
        while await bench.read(at("STATUS")) & 1:
            pass
        waiting = sum(map(len, bench.waiting)) + len(bench.running)
        bench.counts.clear()
        bench.sums.clear()
        await wait_cycles(dut, 100)
        await bench.end()
        assert sum(count for (array, *_), count in bench.counts.items() if array == "RUN") <= waiting
        await bench.compare()


@cocotb.test()
async def what_is_lost_is_said(dut) -> None:
    """Sockets that end a call every few cycles, all at once, while registers are read."""
    bench = await begin(dut)
    bench.shortest, bench.longest, bench.load, bench.gate, bench.quiet = 1, 2, 1, True, False
    for _ in range(400):
        await bench.read(at("SHAPE"))
    await bench.end()
    lost = await bench.read(at("STATUS")) >> 8 & 0xFF
    for array in TIMES:
        ended = sum(count for (name, *_), count in bench.counts.items() if name == array)
        found = sum([await bench.read(at(array) + 4 * word) for word in range(TIME_BINS * PLACES)])
        assert ended - lost <= found <= ended and ended > 100, f"{array}: {found} of {ended}, {lost} lost"
    await wait_cycles(dut, 10)


def test_call_histograms() -> None:
    run(
        "call_histograms",
        __file__,
        params={"SOCKETS": SOCKETS, "QPS": QPS, "CONTEXTS": CONTEXTS, "CLOCK_HZ": CLOCK_HZ, "NEXT": NEXT},
        ports={
            "now": Plain("input", "logic [47:0]"),
            "progress": Plain("input", PROGRESS),
            "running": Plain("input", f"logic [{SOCKETS - 1}:0]"),
            "bus": AxilSlave(12),
            "idle": Plain("output", "logic"),
        },
        random_state=True,
    )
