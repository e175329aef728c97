# SPDX-License-Identifier: Apache-2.0
"""axi_window: nothing outside of the window is touched; refusals keep the order; cutting off leaves nothing behind."""

import random

import cocotb
import pytest
from cocotb.triggers import FallingEdge, RisingEdge
from nacelle_tb.bench import AxiMaster, AxiSlave, Plain, run
from nacelle_tb.long import alternately, some
from nacelle_tb.memory import SLVERR, AxiDriver, AxiMemory
from nacelle_tb.streams import start, wait_cycles
from nacelle_tb.svtypes import struct

SIZE = 1 << 16
BASE, END = 0x3000, 0x6000


class Bench:
    def __init__(self, dut, stall: float = 0.0, latency: int | tuple[int, int] = (1, 30)) -> None:
        self.dut = dut
        self.memory = AxiMemory(dut, "mem", SIZE, latency=latency, stall=stall, noise=True)
        self.memory.write(0, random.randbytes(SIZE))
        self.socket = AxiDriver(dut, "socket", stall)
        dut.decouple.value = 0
        dut.window.value = struct("compute_pkg::window_t").pack(base=BASE, size=END - BASE)
        self.violations = [0, 0]
        cocotb.start_soon(self._count())

    async def _count(self) -> None:
        while True:
            await RisingEdge(self.dut.clk)
            if int(self.dut.rst.value):
                continue
            self.violations[0] += int(self.dut.read_violation.value)
            self.violations[1] += int(self.dut.write_violation.value)


@cocotb.test()
@cocotb.parametrize(stall=alternately([0.0, 0.4]))
async def only_the_window_is_reached(dut, stall: float) -> None:
    bench = Bench(dut, stall)
    await start(dut)
    step = bench.memory.bytes_per_beat
    expected = bytearray(bench.memory.content)
    want_reads, refused = [], [0, 0]
    for _ in range(120):
        addr = random.choice([BASE, END, BASE + 4096, 0, random.randrange(0, SIZE, step)]) + random.choice([0, -step])
        addr = max(addr, 0)
        beats = random.randint(1, min(8, (4096 - addr % 4096) // step))
        good = BASE <= addr and addr + beats * step <= END
        ident = random.randrange(4)
        if random.random() < 0.4:
            assert [await bench.socket.read_result() for _ in want_reads] == want_reads
            want_reads.clear()
            data = random.randbytes(beats * step)
            bench.socket.write(addr, data, ident)
            if good:
                expected[addr : addr + len(data)] = data
            refused[1] += not good
            await bench.socket.writes_answered()
            assert bench.socket.write_errors == refused[1]
        else:
            bench.socket.read(addr, beats, ident)
            refused[0] += not good
            data = bytes(expected[addr : addr + beats * step]) if good else b"\xff" * beats * step
            want_reads.append((ident, data, 0 if good else SLVERR))
    assert [await bench.socket.read_result() for _ in want_reads] == want_reads
    assert bench.memory.content == expected
    await wait_cycles(dut, 3)
    assert bench.violations == refused
    assert int(dut.idle.value)


@cocotb.test()
async def refused_writes_keep_their_place(dut) -> None:
    bench = Bench(dut)
    await start(dut)
    step = bench.memory.bytes_per_beat
    before = bytes(bench.memory.content)
    for addr in (BASE, 0, BASE + step, END - step, END, SIZE):
        bench.socket.write(addr, bytes(2 * step) if addr < END - step else bytes(step))
    await bench.socket.writes_answered()
    assert bench.socket.write_errors == 3
    assert bench.memory.content[:BASE] == before[:BASE] and bench.memory.content[END:] == before[END:]
    bench.socket.write(END - step, bytes(2 * step))  # begins inside, crosses the page
    bench.socket.read(BASE - step, 2)
    await bench.socket.writes_answered()
    assert (await bench.socket.read_result())[2] == SLVERR
    assert bench.socket.write_errors == 4
    assert bench.memory.content[END:] == before[END:]


@cocotb.test()
async def closed_window_lets_nothing_through(dut) -> None:
    bench = Bench(dut)
    dut.window.value = 0
    await start(dut)
    bench.socket.read(0, 1)
    bench.socket.write(0, bytes(bench.memory.bytes_per_beat))
    await bench.socket.writes_answered()
    assert (await bench.socket.read_result())[2] == SLVERR
    assert bench.memory.stats.read_beats == bench.memory.stats.write_beats == 0


@cocotb.test()
async def one_beat_a_cycle(dut) -> None:
    bench = Bench(dut, latency=20)
    await start(dut)
    step = bench.memory.bytes_per_beat
    for i in range(0, 40, 2):
        bench.socket.write(BASE + i * step, bytes(2 * step))
        bench.socket.read(BASE + i * step, 2)
    await bench.socket.writes_answered()
    for _ in range(20):
        await bench.socket.read_result()
    for cycles in (bench.memory.stats.write_beat_cycles, bench.memory.stats.read_beat_cycles):
        assert cycles[-1] - cycles[0] == len(cycles) - 1 == 39


@cocotb.test()
@cocotb.parametrize(cut=range(3, 40, 4))
async def cut_off_in_the_middle(dut, cut: int) -> None:
    bench = Bench(dut, stall=0.3, latency=(1, 20))
    await start(dut)
    step = bench.memory.bytes_per_beat
    before = bytes(bench.memory.content)
    for i in range(8):
        bench.socket.write(BASE + 4 * i * step, bytes(4 * step))
        bench.socket.read(BASE + 4 * i * step, 4)
        bench.socket.read(0, 2)
    await wait_cycles(dut, cut)
    await FallingEdge(dut.clk)
    dut.decouple.value = 1
    for driver in (bench.socket._aw, bench.socket._w, bench.socket._ar):  # the kernel dies
        driver._queue.clear()
        driver.stall = 1.0
    bench.socket._b.stall = bench.socket._r.stall = 1.0
    for _ in range(400):
        await RisingEdge(dut.clk)
        assert not any(int(getattr(dut, f"socket_{name}").value) for name in ("awready", "wready", "arready", "bvalid", "rvalid"))
        if int(dut.idle.value):
            break
    assert int(dut.idle.value), "still something under way"
    assert bench.memory.outstanding() == 0 and not bench.memory._early
    assert bench.memory.content[:BASE] == before[:BASE] and bench.memory.content[END:] == before[END:]
    for i in range(8 * 4):  # each beat whole or untouched
        at = BASE + i * step
        assert bench.memory.read(at, step) in (bytes(step), before[at : at + step])


class Watch:
    """The effect on other masters: responses of memory not taken at once, and cycles in which write data was due and not valid."""

    def __init__(self, dut) -> None:
        self.dut = dut
        self.refused = {"r": 0, "b": 0}
        self.addresses = 0  # writes whose address memory has
        self.owed = 0  # beats of those that it does not have
        self.late = 0
        cocotb.start_soon(self._run())

    async def _run(self) -> None:
        dut = self.dut
        while True:
            await RisingEdge(dut.clk)
            for channel in self.refused:
                waits = int(getattr(dut, f"mem_{channel}valid").value) and not int(getattr(dut, f"mem_{channel}ready").value)
                self.refused[channel] += waits
            self.late += self.owed > 0 and not int(dut.mem_wvalid.value)
            if int(dut.mem_wvalid.value) and int(dut.mem_wready.value):
                self.owed -= 1
            if int(dut.mem_awvalid.value) and int(dut.mem_awready.value):
                self.owed += int(dut.mem_awlen.value) + 1
                self.addresses += 1


@cocotb.test()
@cocotb.parametrize(refused=[False, True])
async def a_kernel_that_takes_nothing_holds_up_nobody(dut, refused: bool) -> None:
    """More reads and writes than there is room for; memory's responses are taken all the same, in the cycle in which they come."""
    bench = Bench(dut, latency=3)
    watch = Watch(dut)
    await start(dut)
    step = bench.memory.bytes_per_beat
    bench.socket._r.stall = bench.socket._b.stall = 1.0
    for i in range(200):
        bench.socket.read(0 if refused and i % 50 == 7 else BASE + i % 3 * 8 * step, 8)
        bench.socket.write(BASE + 0x1000 + i * step, bytes([i]) * step)
    await wait_cycles(dut, 4000)
    assert bench.memory.outstanding() == 0
    assert bench.memory.stats.read_beats > 0 and bench.memory.stats.write_beats > 0
    bench.socket._r.stall = bench.socket._b.stall = 0.0
    for i in range(200):
        _, data, status = await bench.socket.read_result()
        if not (refused and i % 50 == 7):
            assert (data, status) == (bench.memory.read(BASE + i % 3 * 8 * step, 8 * step), 0)
    await bench.socket.writes_answered()
    assert watch.refused == {"r": 0, "b": 0}
    await wait_cycles(dut, 3)
    assert int(dut.idle.value)


@cocotb.test()
async def a_refusal_may_be_longer_than_the_room(dut) -> None:
    bench = Bench(dut)
    await start(dut)
    bench.socket._r.stall = 1.0
    for _ in range(3):
        bench.socket.read(END, 200)
    await wait_cycles(dut, 1000)
    bench.socket._r.stall = 0.5
    for _ in range(3):
        _, data, status = await bench.socket.read_result()
        assert (len(data), status) == (200 * bench.memory.bytes_per_beat, SLVERR)
    await wait_cycles(dut, 3)
    assert int(dut.idle.value)


@cocotb.test()
async def data_is_there_before_its_address_goes(dut) -> None:
    bench = Bench(dut)
    watch = Watch(dut)
    await start(dut)
    step = bench.memory.bytes_per_beat
    bench.socket._w.stall = 0.9
    want = bytearray(bench.memory.content)
    at = BASE
    for beats in (8, 1, 5, 16, 2, 7):
        data = random.randbytes(beats * step)
        want[at : at + len(data)] = data
        bench.socket.write(at, data)
        at += len(data)
    await bench.socket.writes_answered()
    assert bench.memory.content == want
    assert watch.late <= 2 * watch.addresses == 12


@cocotb.test()
async def a_write_without_data_never_leaves(dut) -> None:
    """Bursts are promised and never delivered: reads go on, and after the cut nothing is left of them."""
    bench = Bench(dut)
    watch = Watch(dut)
    await start(dut)
    step = bench.memory.bytes_per_beat
    bench.socket.write(BASE, bytes(step))
    await bench.socket.writes_answered()
    before = bytes(bench.memory.content)
    for _ in range(40):
        bench.socket._aw.send(BASE + 0x1000, 0, 7)
    bench.socket._w.send(0, (1 << step) - 1, 0)  # of the first, one beat
    await wait_cycles(dut, 500)
    bench.socket.read(BASE, 4)
    assert (await bench.socket.read_result())[1] == before[BASE : BASE + 4 * step]
    assert watch.addresses == 1 and not int(dut.idle.value)
    await FallingEdge(dut.clk)
    dut.decouple.value = 1
    bench.socket._aw._queue.clear()
    bench.socket._aw.stall = 1.0
    await wait_cycles(dut, 40)
    assert int(dut.idle.value) and bench.memory.content == before
    assert watch.addresses == 1


@cocotb.test()
async def many_short_bursts_are_counted(dut) -> None:
    """As many as memory will have: all of them come back, and one that is refused keeps its place among them."""
    bench = Bench(dut, latency=700)
    await start(dut)
    step = bench.memory.bytes_per_beat
    count = 400
    for i in range(count):
        bench.socket.read(BASE + i % 60 * step, 1)
    bench.socket.read(0, 1)
    for i in range(count):
        assert (await bench.socket.read_result())[1:] == (bench.memory.read(BASE + i % 60 * step, step), 0)
    assert (await bench.socket.read_result())[2] == SLVERR
    await wait_cycles(dut, 3)
    assert int(dut.idle.value)


@pytest.mark.parametrize("width", some([64, 512]))
def test_axi_window(width: int) -> None:
    run(
        "axi_window",
        __file__,
        params={"DATA_W": width},
        ports={
            "window": Plain("input", "compute_pkg::window_t"),
            "decouple": Plain("input", "logic"),
            "socket": AxiSlave(width),
            "mem": AxiMaster(width),
            "read_violation": Plain("output", "logic"),
            "write_violation": Plain("output", "logic"),
            "idle": Plain("output", "logic"),
        },
        random_state=True,
    )
