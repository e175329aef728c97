# SPDX-License-Identifier: Apache-2.0
"""The split-virtqueue engine against a driver: every chain arrives as it was made and comes back once, in order, with its length;
what breaks the rules stops its queue alone."""

import random
import struct
from collections import deque
from pathlib import Path

import cocotb
import pytest
from cocotb.triggers import FallingEdge, RisingEdge
from nacelle_tb.bench import AxiMaster, Plain, Several, Sink, Source, run
from nacelle_tb.long import LONG, alternately, some
from nacelle_tb.memory import AxiMemory
from nacelle_tb.streams import StreamSink, StreamSource, start, wait_cycles
from nacelle_tb.svtypes import constant
from nacelle_tb.svtypes import struct as sv_struct
from nacelle_tb.virtio import INDIRECT, NEXT, WRITE, Buffer, Heap, Virtqueue
from nacelle_tb.widths import WIDTHS, at_width

QUEUES = 4
SIZE = 1 << 20
SETUP = "virtio_pkg::virtq_setup_t"


class Bench:
    """The engine, its memory, a driver for each queue, and clients that take chains as they come and give them back."""

    def __init__(self, dut, latency=(1, 60), stall: float = 0.0, event_idx: bool = False, indirect: bool = True, size: int = 64,
                 scatter: bool = False, auto: bool = True) -> None:  # fmt: skip
        self.dut = dut
        self.memory = AxiMemory(dut, "mem", SIZE, latency=latency, stall=stall, noise=True)
        self.notify = StreamSource(dut, "notify", "virtio_pkg::queue_t", stall)
        self.pulls = [StreamSource(dut, f"pull{i}", "virtio_pkg::queue_t") for i in range(2)]
        self.segments = [StreamSink(dut, f"segment{i}", "virtio_pkg::virtq_segment_t", stall) for i in range(2)]
        self.used = [StreamSource(dut, f"used{i}", "virtio_pkg::virtq_used_t", stall) for i in range(2)]
        self.interrupt = StreamSink(dut, "interrupt", "logic [15:0]", stall)
        self.heap = Heap(0x50000, SIZE - 0x50000)
        rings = Heap(0x1000, 0x40000)
        self.queues = [Virtqueue(self.memory, rings, size, event_idx, scatter) for _ in range(QUEUES)]
        for name, value in (
            ("setup", 0),
            ("enable", 0),
            ("event_idx", event_idx),
            ("indirect", indirect),
            ("halt", 0),
            ("rewind", 0),
        ):
            getattr(dut, name).value = int(value)
        self.faults: list[tuple[int, int]] = []
        self.chains: list[list] = [[] for _ in range(QUEUES)]  # chains as they were given out: lists of segments
        self.auto = auto

    async def begin(self) -> None:
        await start(self.dut)
        await wait_cycles(self.dut, 140)
        setup = sv_struct(SETUP)
        for number, queue in enumerate(self.queues):
            await FallingEdge(self.dut.clk)
            values = {"size": queue.size, "vector": number + 10, "desc": queue.desc, "avail": queue.avail, "used": queue.used}
            self.dut.setup.value = setup.pack(valid=1, vq=number, values=values)
        await FallingEdge(self.dut.clk)
        self.dut.setup.value = 0
        self.dut.enable.value = (1 << QUEUES) - 1
        for client in range(2):
            cocotb.start_soon(self._client(client))
            cocotb.start_soon(self._collect(client))
        cocotb.start_soon(self._watch())

    async def _watch(self) -> None:
        fault = sv_struct("virtio_pkg::virtq_fail_t")
        while True:
            await RisingEdge(self.dut.clk)
            value = fault.unpack(int(self.dut.fault.value))
            if value.valid:
                self.faults.append((value.vq, value.code))

    async def _client(self, client: int) -> None:
        """Pulls whatever is ready, one chain at a time."""
        turn = client
        while True:
            await FallingEdge(self.dut.clk)
            ready = int(self.dut.ready.value)
            if self.pulls[client].busy:
                continue
            for _ in range(QUEUES // 2):
                turn = (turn + 2) % QUEUES
                if ready >> turn & 1:
                    self.pulls[client].send(turn)
                    break
            await RisingEdge(self.dut.clk)

    async def _collect(self, client: int) -> None:
        chain: list = []
        while True:
            segment = await self.segments[client].recv(10_000_000)
            if segment.error:
                chain = []
                continue
            chain.append(segment)
            if segment.last:
                self.chains[segment.vq].append(chain)
                if self.auto:
                    self.give_back(chain)
                chain = []

    def give_back(self, chain: list) -> None:
        written = sum(segment.len for segment in chain) if chain[0].writable else 0
        self.used[chain[0].vq % 2].send(vq=chain[0].vq, head=chain[0].head, len=written & 0xFFFFFFFF, last=1)

    def publish(self, number: int) -> None:
        if self.queues[number].publish():
            self.notify.send(number)

    async def reap(self, number: int, cycles: int = 20_000) -> tuple[int, int, object]:
        """The next used chain of a queue, by polling."""
        for _ in range(cycles // 10):
            if (taken := self.queues[number].take()) is not None:
                return taken
            await wait_cycles(self.dut, 10)
        raise AssertionError(f"queue {number}: nothing came back")


def random_chain(bench: Bench, number: int, longest: int) -> list[Buffer]:
    """Buffers of the direction of a queue, of any length, anywhere."""
    count = random.choice([1, 1, 2, 3, random.randint(1, longest)])
    writable = number % 2 == 0
    return [
        Buffer(random.getrandbits(48), random.choice([1, 64, 1500, random.randint(1, 1 << 20)]), writable) for _ in range(count)
    ]


def as_buffers(chain: list) -> list[Buffer]:
    return [Buffer(segment.addr, segment.len, bool(segment.writable)) for segment in chain]


@cocotb.test()
@cocotb.parametrize(scatter=[False, True], event_idx=[False, True], stall=alternately([0.0, 0.3]))
async def chains_arrive_as_they_were_made(dut, scatter: bool, event_idx: bool, stall: float) -> None:
    bench = Bench(dut, scatter=scatter, event_idx=event_idx, stall=stall)
    await bench.begin()
    expected: list[deque] = [deque() for _ in range(QUEUES)]
    todo = [25] * QUEUES
    checked = [0] * QUEUES
    while any(todo) or any(expected):
        for number, queue in enumerate(bench.queues):
            added = 0
            while todo[number] and len(queue.free) >= 12 and random.random() < 0.7:
                buffers = random_chain(bench, number, 12)
                direct = random.choice([None, 0, random.randint(0, len(buffers))])
                head = queue.add(buffers, direct=direct)
                expected[number].append((head, buffers))
                todo[number] -= 1
                added += 1
            if added:
                bench.publish(number)
            while (taken := queue.take()) is not None:
                head, buffers = expected[number].popleft()
                assert taken[0] == head, "chains come back in the order in which they were given"
                assert taken[1] == (sum(b.length for b in buffers) if number % 2 == 0 else 0)
                assert as_buffers(bench.chains[number][checked[number]]) == buffers
                checked[number] += 1
        await wait_cycles(dut, random.choice([3, 30, 300]))
        assert bench.memory.cycle < 400_000, f"chains are missing: {todo}, {[len(e) for e in expected]}"
    assert not bench.faults
    await wait_cycles(dut, 1000)
    assert int(dut.idle.value)


@cocotb.test(skip=not LONG)
async def indices_wrap(dut) -> None:
    """More than 65,536 chains through a queue."""
    bench = Bench(dut, latency=(1, 4), event_idx=True, size=256)
    await bench.begin()
    # The entries are all alike, so the driver writes only its index.
    queue = bench.queues[1]
    for i in range(queue.size):
        bench.memory.write(queue.desc + 16 * i, struct.pack("<QIHH", 0x60000 + i, 60, 0, 0))
        bench.memory.write(queue.avail + 4 + 2 * i, struct.pack("<H", i))
    index = 0
    for _ in range(65_536 // queue.size + 3):
        index = (index + queue.size) & 0xFFFF
        bench.memory.write(queue.avail + 2, struct.pack("<H", index))
        bench.notify.send(1)
        for _ in range(4000):
            if bench.memory.read(queue.used + 2, 2) == struct.pack("<H", index):
                break
            await wait_cycles(dut, 16)
        assert bench.memory.read(queue.used + 2, 2) == struct.pack("<H", index)
    heads = [struct.unpack("<II", bench.memory.read(queue.used + 4 + 8 * i, 8)) for i in range(queue.size)]
    assert heads == [(i, 0) for i in range(queue.size)]
    assert len(bench.chains[1]) == 65_536 + 3 * queue.size
    assert not bench.faults


@cocotb.test()
@cocotb.parametrize(event_idx=[False, True], latency=some([(1, 300), 155, 1], 2))
async def no_wake_up_is_lost(dut, event_idx: bool, latency) -> None:
    """A driver that sleeps until an interrupt, and notifies only when the device wants it."""
    bench = Bench(dut, latency=latency, event_idx=event_idx)
    await bench.begin()
    queue = bench.queues[1]
    bench_notified = 0
    rounds = 40
    for i in range(rounds):
        for _ in range(random.randint(1, 4)):
            queue.add([Buffer(0x60000, 64)])
        await wait_cycles(dut, random.choice([1, 5, 50, 150, 155, 160, 310, 320]))
        if queue.publish():
            bench_notified += 1
            bench.notify.send(1)
        if not queue.want_interrupt():
            while not queue.pending:
                try:
                    await bench.interrupt.recv(5_000)
                except Exception as error:
                    raise AssertionError(f"round {i}: the driver sleeps for ever") from error
        while queue.chains:
            if queue.take() is None:
                if not queue.want_interrupt():
                    await bench.interrupt.recv(5_000)
    assert not bench.faults
    if event_idx:
        assert bench_notified <= rounds


@cocotb.test()
@cocotb.parametrize(event_idx=[False, True])
async def interrupts_are_suppressed(dut, event_idx: bool) -> None:
    """None comes while the driver wants none, by flag or by used_event; one as soon as it does."""
    bench = Bench(dut, event_idx=event_idx)
    await bench.begin()
    queue = bench.queues[1]
    queue.want_interrupt(False)
    for _ in range(20):
        queue.add([Buffer(0x60000, 64)])
    bench.publish(1)
    for _ in range(20):
        await bench.reap(1)
    await wait_cycles(dut, 500)
    assert not bench.interrupt.received
    queue.want_interrupt()
    queue.add([Buffer(0x60000, 64)])
    bench.publish(1)
    assert await bench.interrupt.recv() == 11


@cocotb.test()
@cocotb.parametrize(chains=[0, 1])
async def idle_is_believed_at_once(dut, chains: int) -> None:
    """From a notification to the last read that follows from it there is no cycle in which nothing seems to be under way."""
    bench = Bench(dut, latency=20, auto=False)
    await bench.begin()
    await wait_cycles(dut, 100)
    queue = bench.queues[1]
    for _ in range(chains):
        queue.add([Buffer(0x60000, 64)])
    queue.publish()
    bench.notify.send(1)
    await bench.notify.drained()
    reads = 0
    # A chain: its entry, its descriptors, and the index once more.
    while reads < 1 + 3 * chains:
        await FallingEdge(dut.clk)
        assert not int(dut.idle.value), f"idle before read {reads}"
        reads += int(dut.mem_arvalid.value) and int(dut.mem_arready.value)
    for _ in range(1000):
        if int(dut.idle.value):
            return
        await FallingEdge(dut.clk)
    raise AssertionError("never idle again")


@cocotb.test()
async def latency_in_cycles(dut) -> None:
    """From a notification to the first segment, and from a chain given back to the interrupt: three latencies of memory each."""
    latency = 155
    bench = Bench(dut, latency=latency, auto=False)
    await bench.begin()
    bench.queues[1].add([Buffer(0x60000, 64)])
    bench.publish(1)
    await bench.notify.drained()
    begun = bench.segments[1].cycle
    while not bench.chains[1]:
        await RisingEdge(dut.clk)
    there = bench.segments[1].cycle - begun
    bench.give_back(bench.chains[1][0])
    await bench.used[1].drained()
    begun = bench.segments[1].cycle
    await bench.interrupt.recv()
    back = bench.segments[1].cycle - begun
    dut._log.info("FIGURE %d and %d cycles more than three latencies", there - 3 * latency, back - 3 * latency)
    assert there <= 3 * latency + 60 and back <= 3 * latency + 60


async def others_go_on(bench: Bench, broken: int) -> None:
    """Every other queue takes chains and gives them back; the broken one does neither."""
    for number in range(QUEUES):
        if number != broken:
            for _ in range(20):
                bench.queues[number].add([Buffer(0x70000, 100, number % 2 == 0)])
            bench.publish(number)
    for number in range(QUEUES):
        if number != broken:
            for _ in range(20):
                await bench.reap(number)
    assert int(bench.dut.broken.value) == 1 << broken
    before = len(bench.chains[broken])
    bench.notify.send(broken)
    await wait_cycles(bench.dut, 1000)
    assert len(bench.chains[broken]) == before
    assert int(bench.dut.idle.value)


def write_desc(bench: Bench, number: int, index: int, addr: int, length: int, flags: int, following: int = 0) -> None:
    flags ^= WRITE * (number % 2 == 0)
    bench.memory.write(bench.queues[number].desc + 16 * index, struct.pack("<QIHH", addr, length, flags, following))


def avail_jump(bench: Bench, n: int) -> None:
    queue = bench.queues[n]
    bench.memory.write(queue.avail + 2, struct.pack("<H", queue.size + 1))


def head_range(bench: Bench, n: int) -> None:
    write_desc(bench, n, 0, 0x60000, 64, 0)
    bench.queues[n].offer(0)
    bench.queues[n].offer(bench.queues[n].size)


def next_range(bench: Bench, n: int) -> None:
    write_desc(bench, n, 0, 0x60000, 64, NEXT, bench.queues[n].size)
    bench.queues[n].offer(0)


def loop(bench: Bench, n: int) -> None:
    write_desc(bench, n, 0, 0x60000, 64, NEXT, 1)
    write_desc(bench, n, 1, 0x60000, 64, NEXT, 0)
    bench.queues[n].offer(0)


def loop_of_one(bench: Bench, n: int) -> None:
    write_desc(bench, n, 5, 0x60000, 64, NEXT, 5)
    bench.queues[n].offer(5)


def table(bench: Bench, n: int, descriptors: list[tuple[int, int, int, int]]) -> int:
    at = bench.heap.take(16 * len(descriptors), 16)
    for i, (addr, length, flags, following) in enumerate(descriptors):
        bench.memory.write(at + 16 * i, struct.pack("<QIHH", addr, length, flags ^ WRITE * (n % 2 == 0), following))
    return at


def long_table(bench: Bench, n: int) -> None:
    """A chain in a table that is longer than the queue."""
    count = bench.queues[n].size + 1
    at = table(bench, n, [(0x60000, 64, NEXT * (i + 1 < count), i + 1) for i in range(count)])
    write_desc(bench, n, 0, at, 16 * count, INDIRECT)
    bench.queues[n].offer(0)


def nested(bench: Bench, n: int) -> None:
    inner = table(bench, n, [(0x60000, 64, 0, 0)])
    write_desc(bench, n, 0, table(bench, n, [(inner, 16, INDIRECT, 0)]), 16, INDIRECT)
    bench.queues[n].offer(0)


def nested_later(bench: Bench, n: int) -> None:
    inner = table(bench, n, [(0x60000, 64, 0, 0)])
    write_desc(bench, n, 0, 0x60000, 64, NEXT, 9)
    write_desc(bench, n, 9, table(bench, n, [(0x60000, 64, NEXT, 1), (inner, 16, INDIRECT, 0)]), 32, INDIRECT)
    bench.queues[n].offer(0)


def indirect_next(bench: Bench, n: int) -> None:
    write_desc(bench, n, 0, table(bench, n, [(0x60000, 64, 0, 0)]), 16, INDIRECT | NEXT, 1)
    bench.queues[n].offer(0)


def indirect_next_later(bench: Bench, n: int) -> None:
    write_desc(bench, n, 0, 0x60000, 64, NEXT, 1)
    write_desc(bench, n, 1, table(bench, n, [(0x60000, 64, 0, 0)]), 16, INDIRECT | NEXT, 2)
    bench.queues[n].offer(0)


def indirect_odd(bench: Bench, n: int) -> None:
    write_desc(bench, n, 0, 0x60000, 40, INDIRECT)
    bench.queues[n].offer(0)


def indirect_empty(bench: Bench, n: int) -> None:
    write_desc(bench, n, 0, 0x60000, 0, INDIRECT)
    bench.queues[n].offer(0)


def indirect_range(bench: Bench, n: int) -> None:
    write_desc(bench, n, 0, table(bench, n, [(0x60000, 64, NEXT, 1)]), 16, INDIRECT)
    bench.queues[n].offer(0)


def zero_length(bench: Bench, n: int) -> None:
    write_desc(bench, n, 0, 0x60000, 64, NEXT, 1)
    write_desc(bench, n, 1, 0x60000, 0, 0)
    bench.queues[n].offer(0)


def direction(bench: Bench, n: int) -> None:
    write_desc(bench, n, 0, 0x60000, 64, NEXT, 1)
    write_desc(bench, n, 1, 0x60000, 64, WRITE)
    bench.queues[n].offer(0)


def index_unmapped(bench: Bench, n: int) -> None:
    at = bench.queues[n].avail
    bench.memory.errors.append((at, at + 3))


def descriptor_unmapped(bench: Bench, n: int) -> None:
    at = bench.queues[n].desc
    bench.memory.errors.append((at, at + 15))
    bench.queues[n].offer(0)


def table_unmapped(bench: Bench, n: int) -> None:
    write_desc(bench, n, 0, SIZE, 16, INDIRECT)
    bench.queues[n].offer(0)


def later_table_unmapped(bench: Bench, n: int) -> None:
    write_desc(bench, n, 0, 0x60000, 64, NEXT, 1)
    write_desc(bench, n, 1, 1 << 50, 16, INDIRECT)
    bench.queues[n].offer(0)


ATTACKS = {
    avail_jump: "AVAIL_JUMP", head_range: "HEAD_RANGE", next_range: "NEXT_RANGE", loop: "CHAIN_LENGTH", loop_of_one: "CHAIN_LENGTH",
    long_table: "CHAIN_LENGTH", nested: "INDIRECT_NESTED", nested_later: "INDIRECT_NESTED", indirect_next: "INDIRECT_NEXT",
    indirect_next_later: "INDIRECT_NEXT", indirect_odd: "INDIRECT_LENGTH", indirect_empty: "INDIRECT_LENGTH",
    indirect_range: "NEXT_RANGE", zero_length: "ZERO_LENGTH", direction: "DIRECTION", index_unmapped: "MEMORY",
    descriptor_unmapped: "MEMORY", table_unmapped: "MEMORY", later_table_unmapped: "MEMORY",
}  # fmt: skip


@cocotb.test()
@cocotb.parametrize(attack=list(ATTACKS), number=[0, 1])
async def bad_input_costs_its_queue(dut, attack, number: int) -> None:
    bench = Bench(dut, latency=(1, 20))
    await bench.begin()
    attack(bench, number)
    if bench.queues[number].avail_idx:
        bench.queues[number].publish()
    bench.notify.send(number)
    for _ in range(300):
        if bench.faults:
            break
        await wait_cycles(dut, 10)
    assert bench.faults == [(number, constant(f"virtio_pkg::VIRTQ_{ATTACKS[attack]}"))]
    await others_go_on(bench, number)


@cocotb.test()
async def indirect_descriptors_need_their_feature(dut) -> None:
    bench = Bench(dut, latency=3, indirect=False)
    await bench.begin()
    bench.queues[1].add([Buffer(0x60000, 64)], direct=0)
    bench.publish(1)
    await wait_cycles(dut, 300)
    assert bench.faults == [(1, constant("virtio_pkg::VIRTQ_INDIRECT_UNASKED"))]
    await others_go_on(bench, 1)


@cocotb.test()
async def used_ring_unmapped_costs_its_queue(dut) -> None:
    bench = Bench(dut, latency=3)
    await bench.begin()
    at = bench.queues[2].used + 64  # not where another queue has its rings
    bench.memory.errors.append((at, at + 8 * bench.queues[2].size - 128))
    for _ in range(20):
        bench.queues[2].add([Buffer(0x60000, 64, True)])
    bench.publish(2)
    for _ in range(100):
        await wait_cycles(dut, 10)
    assert bench.faults == [(2, constant("virtio_pkg::VIRTQ_MEMORY"))]
    await others_go_on(bench, 2)


@cocotb.test()
async def what_is_not_kept_comes_again(dut) -> None:
    """A client that pulls chains, finds that it cannot use them, and pulls them again."""
    bench = Bench(dut, auto=False)
    await bench.begin()
    settle = sv_struct("virtio_pkg::virtq_settle_t")
    await FallingEdge(dut.clk)
    dut.rewind.value = settle.pack(keep=1)  # the bench keeps nothing by itself
    heads = [bench.queues[1].add([Buffer(0x60000, 64 + i)]) for i in range(5)]
    bench.publish(1)
    await wait_cycles(dut, 600)
    assert [chain[0].head for chain in bench.chains[1]] == heads
    await FallingEdge(dut.clk)
    dut.rewind.value = settle.pack(valid=1, vq=1, keep=0)
    await FallingEdge(dut.clk)
    dut.rewind.value = 0
    await wait_cycles(dut, 600)
    assert [chain[0].head for chain in bench.chains[1]] == heads * 2


@cocotb.test()
@cocotb.parametrize(direct=[None, 0])
async def cycles_a_chain(dut, direct) -> None:
    """One queue of one client at 155 cycles of latency, both ways."""
    bench = Bench(dut, latency=155, size=256)
    await bench.begin()
    total = 600
    for number in (0, 1):
        queue = bench.queues[number]
        for _ in range(queue.size):
            queue.add([Buffer(0x60000, 64, number == 0)], direct=direct)
        bench.publish(number)
    begun = bench.memory.cycle
    done = [0, 0]
    marks = [0, 0]  # the cycles of the first chain and of the hundredth
    while min(done) < total:
        for number in (0, 1):
            queue = bench.queues[number]
            fresh = 0
            while queue.take() is not None:
                done[number] += 1
                queue.add([Buffer(0x60000, 64, number == 0)], direct=direct)
                fresh += 1
            if fresh:
                bench.publish(number)
        for i, count in enumerate((1, 100)):
            if min(done) >= count and not marks[i]:
                marks[i] = bench.memory.cycle
        await wait_cycles(dut, 20)
        assert bench.memory.cycle < 100_000
    cycles = (bench.memory.cycle - marks[1]) / (total - 100)
    dut._log.info("FIGURE %d cycles to the first, %.1f cycles a chain of each of two queues", marks[0] - begun, cycles)
    assert cycles <= (8 if len(dut.mem_wdata) == 512 else 14)  # a narrow bus takes 8 beats for what is read of a chain


@pytest.mark.parametrize("width", WIDTHS)
def test_virtq_engine(width: int) -> None:
    run(
        "virtq_bench",
        __file__,
        params={"DATA_W": width, "QUEUES": QUEUES},
        sources=[Path(__file__).parent / "virtq_bench.sv"],
        ports={
            "setup": Plain("input", SETUP),
            "enable": Plain("input", f"logic [{QUEUES - 1}:0]"),
            "event_idx": Plain("input", "logic"),
            "indirect": Plain("input", "logic"),
            "halt": Plain("input", "logic"),
            "notify": Sink("virtio_pkg::queue_t"),
            "pull": Several(Sink("virtio_pkg::queue_t"), 2),
            "segment": Several(Source("virtio_pkg::virtq_segment_t"), 2),
            "rewind": Plain("input", "virtio_pkg::virtq_settle_t"),
            "ready": Plain("output", f"logic [{QUEUES - 1}:0]"),
            "more": Plain("output", f"logic [{QUEUES - 1}:0]"),
            "used": Several(Sink("virtio_pkg::virtq_used_t"), 2),
            "mem": AxiMaster(width),
            "interrupt": Source("logic [15:0]"),
            "fault": Plain("output", "virtio_pkg::virtq_fail_t"),
            "broken": Plain("output", f"logic [{QUEUES - 1}:0]"),
            "idle": Plain("output", "logic"),
        },
        random_state=True,
        env=at_width(width, "as_they_were_made.*stall=0.3|loop|table|latency|cycles|range|not_kept"),
    )
