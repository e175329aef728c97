# SPDX-License-Identifier: Apache-2.0
"""dma_write_lanes: packets reach their memories, each user gets its completions in order, a stopped memory stops no other."""

import random
from collections import deque

import cocotb
import pytest
from cocotb.triggers import FallingEdge
from nacelle_tb.bench import AxiMaster, AxisSink, Plain, Several, Sink, Source, run
from nacelle_tb.long import alternately
from nacelle_tb.memory import AxiMemory
from nacelle_tb.streams import AxisSource, StreamSink, StreamSource, start, wait_cycles
from nacelle_tb.svtypes import struct

USERS, LANES = 2, 2
SIZE = 1 << 16
BASES = [0, 1 << 40]


class Bench:
    def __init__(self, dut, stall: float, far: dict) -> None:
        self.dut = dut
        self.memory = [
            AxiMemory(dut, "mem0", SIZE, BASES[0], latency=10, stall=stall, noise=True),
            AxiMemory(dut, "mem1", SIZE, BASES[1], noise=True, **far),
        ]
        self.cmd = [StreamSource(dut, f"cmd{u}", "memory_pkg::dma_cmd_t", noise=True) for u in range(USERS)]
        self.data = [AxisSource(dut, f"data{u}") for u in range(USERS)]
        self.done = [StreamSink(dut, f"done{i}", "memory_pkg::dma_done_t", stall) for i in range(USERS * LANES)]
        self.expected = [bytearray(SIZE) for _ in range(LANES)]
        self.asked = [0] * (USERS * LANES)
        self.waiting: list[deque[tuple[int, int, bytes]]] = [deque() for _ in range(USERS)]
        self.errors: list[list[int]] = [[] for _ in range(USERS * LANES)]
        dut.reserve.value = dut.reserve_size.value = 0

    async def start(self) -> None:
        await start(self.dut)
        cocotb.start_soon(self._offer())

    def write(self, user: int, lane: int, offset: int, data: bytes, refused: bool = False) -> None:
        """A packet, offered when there is room for it."""
        if not refused:
            self.expected[lane][offset : offset + len(data)] = data
        self.errors[user * LANES + lane].append(int(refused))
        self.waiting[user].append((lane, BASES[lane] + offset, data))

    async def _offer(self) -> None:
        """Each user: one packet at a time, reserved for in the cycle before it is offered. It never waits in front of another's."""
        layout = struct("memory_pkg::write_size_t")
        while True:
            await FallingEdge(self.dut.clk)
            pulses = sizes = 0
            for u in range(USERS):
                room = int(self.dut.room.value) >> 4 * u
                if self.waiting[u] and room >> self.waiting[u][0][0] & 1 and not self.cmd[u].busy:
                    lane, addr, data = self.waiting[u].popleft()
                    pulses |= 1 << u
                    sizes |= layout.pack(target=lane, units=-(-len(data) // 256)) << layout.width * u
                    self.asked[u * LANES + lane] += 1
                    self.cmd[u].send(addr=addr, target=lane, length=len(data))
                    self.data[u].send(data)
            self.dut.reserve.value, self.dut.reserve_size.value = pulses, sizes

    async def finish(self, cycles: int = 100_000) -> None:
        for _ in range(cycles):
            if not any(self.waiting) and all(len(d.received) == len(e) for d, e in zip(self.done, self.errors, strict=True)):
                break
            await wait_cycles(self.dut, 1)
        for done, errors in zip(self.done, self.errors, strict=True):
            assert [d.error for d in done.received] == errors
        assert [memory.content for memory in self.memory] == self.expected


@cocotb.test()
@cocotb.parametrize(stall=alternately([0.0, 0.3]))
async def random_packets(dut, stall: float) -> None:
    bench = Bench(dut, stall, {"latency": (1, 300), "stall": 0.5})
    bench.memory[0].errors = [(BASES[0] + 0xF000, BASES[0] + 0xFFFF)]
    await bench.start()
    for _ in range(120):
        user, lane = random.randrange(USERS), random.randrange(LANES)
        offset = user * 0x4000 + random.randrange(0x4000 - 4096)
        if lane == 0 and random.random() < 0.1:
            bench.write(user, 0, 0xF000 + random.randrange(0x800), random.randbytes(100), refused=True)
        else:
            bench.write(user, lane, offset, random.randbytes(random.choice((1, 8, 64, 300, 1024, 4096))))
    await bench.finish()


@cocotb.test()
async def a_stopped_memory_stops_nobody_else(dut) -> None:
    """Both users fill the lane of a memory that takes nothing, then write to the other one, packet by packet without a pause."""
    bench = Bench(dut, 0.0, {"latency": 5, "stall": 1.0})
    await bench.start()
    for i in range(8):
        for user in range(USERS):
            bench.write(user, 1, user * 0x8000 + i * 4096, random.randbytes(4096))
    await wait_cycles(dut, 18 * 4096 // bench.memory[0].bytes_per_beat)
    taken = sum(bench.asked)
    assert 6 <= taken < 16, "as much as there is room for"
    for user in range(USERS):
        held, bench.waiting[user] = bench.waiting[user], deque()
        for i in range(4):
            bench.write(user, 0, user * 0x8000 + i * 4096, random.randbytes(4096))
        bench.waiting[user] += held
    await wait_cycles(dut, 9 * 4096 // bench.memory[0].bytes_per_beat + 200)
    assert [len(bench.done[u * LANES].received) for u in range(USERS)] == [4, 4]
    bench.memory[1].stall = 0.0
    await bench.finish()


@pytest.mark.parametrize("width", [64, 512])
def test_dma_write_lanes(width: int) -> None:
    run(
        "dma_write_lanes",
        __file__,
        params={"DATA_W": width, "USERS": USERS, "LANES": LANES},
        ports={
            "cmd": Several(Sink("memory_pkg::dma_cmd_t"), USERS),
            "data": Several(AxisSink(width), USERS),
            "done": Several(Source("memory_pkg::dma_done_t"), USERS * LANES),
            "reserve": Plain("input", "logic [1:0]"),
            "reserve_size": Plain("input", "memory_pkg::write_size_t [1:0]"),
            "room": Plain("output", "memory_pkg::targets_t [1:0]"),
            "mem": Several(AxiMaster(width), LANES),
            "idle": Plain("output", "logic"),
        },
        random_state=True,
    )
