# SPDX-License-Identifier: Apache-2.0
"""roce_tx_lanes: packets of each queue pair pass in order with their payload, and those of a fast memory wait for no slow one."""

from __future__ import annotations

import random
from collections import defaultdict, deque
from types import SimpleNamespace
from typing import Any

import cocotb
import pytest
from cocotb.triggers import FallingEdge, RisingEdge
from nacelle_tb.bench import AxiMaster, Plain, Several, Sink, Source, run
from nacelle_tb.bench import AxisSource as AxisOut
from nacelle_tb.long import alternately
from nacelle_tb.memory import AxiMemory
from nacelle_tb.streams import AxisSink, StreamSink, StreamSource, start, wait_cycles

QPS, LANES = 16, 2
PACKETS, QUANTUM = 64, 16
"""Of a lane: what it takes, and what the response unit sends at a visit"""
SIZE = 1 << 16
FAR = 1 << 40


class Bench:
    """Both memories, the two sources, and roce_tx, which reads the payload of its frames, of either source at random."""

    def __init__(self, dut: Any, stall: float, far: dict[str, Any]) -> None:
        self.dut = dut
        self.memory = [AxiMemory(dut, "mem0", SIZE, 0, latency=20, stall=stall), AxiMemory(dut, "mem1", SIZE, FAR, **far)]
        for memory in self.memory:
            memory.write(memory.base, random.randbytes(SIZE))
        self.packet = [StreamSource(dut, f"packet{i}", "roce_pkg::tx_packet_t", stall) for i in range(2)]
        self.frames = [StreamSink(dut, f"frames{i}", "roce_pkg::tx_packet_t", stall) for i in range(2)]
        self.read_cmd = StreamSource(dut, "read_cmd", "memory_pkg::dma_cmd_t")
        self.read_data = AxisSink(dut, "read_data", stall)
        self.given: list[dict[int, deque[int]]] = [defaultdict(deque), defaultdict(deque)]  # by source and QP: PSNs
        self.asks: list[deque[SimpleNamespace]] = [deque(), deque()]
        self.coming: deque[tuple[int, int]] = deque()
        self.passed: list[list[SimpleNamespace]] = [[], []]
        self.read = [[0] * LANES for _ in range(2)]  # payloads, by source
        self.psn = 0
        dut.waits_index.value = dut.read_source.value = dut.passed.value = dut.flush_requests.value = 0

    async def start(self) -> None:
        await start(self.dut)
        await wait_cycles(self.dut, QPS)
        cocotb.start_soon(self._roce_tx())
        cocotb.start_soon(self._count())

    def give(self, source: int, qp: int, addr: int, length: int) -> None:
        """A packet; its PSN is its number."""
        self.psn += 1
        self.given[source][qp].append(self.psn)
        self.packet[source].send(
            qpn=qp + 2, psn=self.psn, addr=addr, target=int(addr >= FAR), length=length, empty=int(length == 0)
        )

    async def _roce_tx(self) -> None:
        dut = self.dut
        while True:
            await FallingEdge(dut.clk)
            dut.passed.value = 0
            for i, sink in enumerate(self.frames):
                while sink.received:
                    frame = sink.received.popleft()
                    assert frame.psn == self.given[i][frame.qpn - 2].popleft(), "order of the queue pair"
                    self.passed[i].append(frame)
                    if not frame.empty:
                        self.asks[i].append(frame)
            ready = [i for i in range(2) if self.asks[i]]
            if ready and not self.read_cmd.busy:
                source = random.choice(ready)
                frame = self.asks[source].popleft()
                dut.read_source.value = source
                self.read_cmd.send(addr=frame.addr, target=frame.target, length=frame.length)
                self.coming.append((source, frame.addr, frame.length))
            if self.read_data.packets:
                data, error = self.read_data.packets.popleft()
                source, addr, length = self.coming.popleft()
                assert data == self.memory[addr >= FAR].read(addr, length) and not error
                dut.passed.value = 1 << source

    async def _count(self) -> None:
        while True:
            await RisingEdge(self.dut.clk)
            word = int(self.dut.was_read.value)
            for source, counts in enumerate(self.read):
                for lane in range(LANES):
                    counts[lane] += word >> 4 * source + lane & 1

    async def quiet(self, cycles: int = 60_000) -> None:
        for _ in range(cycles):
            await RisingEdge(self.dut.clk)
            if not self.coming and not any(self.asks) and not any(queue for given in self.given for queue in given.values()):
                return
        raise AssertionError("packets are left")


def place(base: int) -> tuple[int, int]:
    """Where a payload is, and how long."""
    length = random.choice((1, 64, 200, 1024, 4096))
    return base + random.randrange(SIZE - 4096), length


@cocotb.test()
@cocotb.parametrize(stall=alternately([0.0, 0.3]))
async def random_packets(dut: Any, stall: float) -> None:
    """Queue pairs of either memory and of both, with and without payload."""
    bench = Bench(dut, stall, {"latency": (50, 400), "stall": 0.3})
    await bench.start()
    payloads = [[0, 0], [0, 0]]
    for _ in range(300):
        source, qp = random.randrange(2), random.randrange(QPS)
        base = (0, FAR, random.choice((0, FAR)))[qp % 3]
        addr, length = place(base) if random.random() < 0.8 else (base, 0)
        payloads[source][base == FAR] += length > 0
        bench.give(source, qp, addr, length)
    await bench.quiet()
    await wait_cycles(dut, 4)
    assert bench.read == payloads
    assert int(dut.idle.value) and int(dut.responses_idle.value)


@cocotb.test()
async def a_stopped_memory_stops_nobody_else(dut: Any) -> None:
    """As many packets of it as there is room for, then those of others."""
    bench = Bench(dut, 0.0, {"latency": 5, "stall": 1.0})
    await bench.start()
    for source in range(2):
        far = 0
        while int(dut.room.value) >> 4 * source + 1 & 1:
            bench.give(source, 1, FAR + far * 64, 4096)
            far += 1
            await bench.packet[source].drained()
            await wait_cycles(dut, 3)
        assert far >= 5
    for i in range(10):
        for source in range(2):
            bench.give(source, 0, i * 1024, 512)
    await wait_cycles(dut, 20 * 512 // bench.memory[0].bytes_per_beat + 300)
    assert [len(passed) for passed in bench.passed] == [10, 10]
    dut.waits_index.value = 1 << 10 | 1
    await wait_cycles(dut, 1)
    assert int(dut.waits.value) == 0x22 and not int(dut.responses_idle.value)
    bench.memory[1].stall = 0.0
    await bench.quiet()


@cocotb.test()
async def room_is_for_a_quantum(dut: Any) -> None:
    """All but a quantum of the packets that a lane takes are read ahead, and then it takes the quantum without a wait."""
    bench = Bench(dut, 0.0, {"latency": 5, "stall": 1.0})
    await bench.start()
    for source in range(2):
        far = 0
        while int(dut.room.value) >> 4 * source + 1 & 1:
            bench.give(source, 1, FAR + far * 64, 64)
            far += 1
            await bench.packet[source].drained()
            await wait_cycles(dut, 3)
        assert far == PACKETS - QUANTUM
        for i in range(QUANTUM):
            bench.give(source, 1, FAR + (far + i) * 64, 64)
        bench.give(source, 0, 0, 64)
    await wait_cycles(dut, QUANTUM + 200)
    assert [len(passed) for passed in bench.passed] == [1, 1]
    bench.memory[1].stall = 0.0
    await bench.quiet()


@cocotb.test()
async def a_flush_waits_for_the_requests_that_are_here(dut: Any) -> None:
    """Not for responses, nor for requests that come later."""
    bench = Bench(dut, 0.0, {"latency": 5, "stall": 1.0})
    await bench.start()
    bench.give(1, 3, FAR, 1000)
    bench.give(0, 4, FAR + 5000, 1000)
    await wait_cycles(dut, 50)
    dut.flush_requests.value = 1
    await RisingEdge(dut.clk)
    dut.flush_requests.value = 0
    for _ in range(200):
        await FallingEdge(dut.clk)
        assert not int(dut.flushed.value) and not int(dut.flush_frames.value)
    bench.memory[1].stall = 0.0
    told = 0
    for _ in range(600):
        await FallingEdge(dut.clk)
        if int(dut.flush_frames.value):
            told += 1
            assert len(bench.passed[1]) == 1, "it has been taken by roce_tx"
    assert told == 1 and int(dut.flushed.value)
    await bench.quiet()


@pytest.mark.parametrize("width", [64, 512])
def test_roce_tx_lanes(width: int) -> None:
    run(
        "roce_tx_lanes",
        __file__,
        params={"DATA_W": width, "QPS": QPS, "LANES": LANES},
        ports={
            "packet": Several(Sink("roce_pkg::tx_packet_t"), 2),
            "room": Plain("output", "memory_pkg::targets_t [1:0]"),
            "waits_index": Plain("input", "roce_pkg::qp_index_t [1:0]"),
            "waits": Plain("output", "memory_pkg::targets_t [1:0]"),
            "freed": Plain("output", "logic"),
            "frames": Several(Source("roce_pkg::tx_packet_t"), 2),
            "read_cmd": Sink("memory_pkg::dma_cmd_t"),
            "read_source": Plain("input", "logic"),
            "read_data": AxisOut(width),
            "mem": Several(AxiMaster(width), LANES),
            "passed": Plain("input", "logic [1:0]"),
            "was_read": Plain("output", "memory_pkg::targets_t [1:0]"),
            "flush_requests": Plain("input", "logic"),
            "flush_frames": Plain("output", "logic"),
            "flushed": Plain("output", "logic"),
            "responses_idle": Plain("output", "logic"),
            "idle": Plain("output", "logic"),
        },
    )
