# SPDX-License-Identifier: Apache-2.0
"""axil_demux: one response for each access, the rules of AXI4-Lite on every port, and slaves that stop anywhere for any time."""

from __future__ import annotations

import random
from collections.abc import Callable

import cocotb
from cocotb.triggers import FallingEdge, RisingEdge
from cocotb.utils import get_sim_time
from nacelle_tb.axil import CHANNELS, DECERR, OKAY, SLVERR, Monitor, Slave
from nacelle_tb.bench import AxilMaster, AxilSlave, Plain, Several, Type, run
from nacelle_tb.long import rounds
from nacelle_tb.registers import AxilDriver
from nacelle_tb.streams import CLOCK_NS, start, wait_cycles

SLAVES = 3
PAGES = (0x00, 0x12, 0xFF)
TIMEOUT = 40
AT_ONCE = 12  # cycles: an answer that needs no slave


class Bench:
    """The demux between a master and its slaves, every port watched."""

    def __init__(self, dut, delay: Callable[[str], int] = lambda channel: 0) -> None:
        self.dut = dut
        self.master = AxilDriver(dut, "in")
        self.slaves = [Slave(dut, f"out{i}", delay) for i in range(SLAVES)]
        self.monitor = Monitor(dut, "in")
        self.behind = [Monitor(dut, f"out{i}") for i in range(SLAVES)]

    async def timed_write(self, addr: int, value: int, strobes: int = 15) -> tuple[int, int]:
        """(response, cycles)."""
        begin = get_sim_time("ns")
        resp = await self.master.write(addr, value, strobes)
        return resp, int(get_sim_time("ns") - begin) // CLOCK_NS

    async def timed_read(self, addr: int) -> tuple[tuple[int, ...], int]:
        """((data, response), cycles)."""
        begin = get_sim_time("ns")
        answer = await self.master.read(addr)
        return answer, int(get_sim_time("ns") - begin) // CLOCK_NS

    async def others_are_served(self, broken: int) -> None:
        """By word and by response, in both directions, fast."""
        for i in range(SLAVES):
            if i != broken:
                addr, value = at(i, 0x40), random.getrandbits(32)
                resp, cycles = await self.timed_write(addr, value)
                assert resp == OKAY and cycles <= AT_ONCE, f"slave {i}: {resp}, {cycles} cycles"
                answer, cycles = await self.timed_read(addr)
                assert answer == (value, OKAY) and cycles <= AT_ONCE, f"slave {i}: {answer}, {cycles} cycles"


def at(slave: int, offset: int) -> int:
    return PAGES[slave] << 12 | offset


@cocotb.test()
@cocotb.parametrize(slowest=[0, 9])
async def accesses_reach_their_page(dut, slowest: int) -> None:
    """Reads and writes at once, against a model; addresses without a slave between them."""
    rng = random.Random(slowest)
    bench = Bench(dut, lambda channel: rng.randrange(slowest + 1))
    await start(dut)
    count = rounds(300)

    def anywhere() -> tuple[int | None, int]:
        slave, offset = rng.randrange(SLAVES + 1), 4 * rng.randrange(1024)
        if slave < SLAVES:
            return slave, at(slave, offset)
        return None, rng.choice([page for page in range(256) if page not in PAGES]) << 12 | offset

    model: dict[int, int] = {}

    async def writes() -> None:
        for _ in range(count):
            slave, addr = anywhere()
            value, strobes = rng.getrandbits(32), rng.getrandbits(4)
            assert await bench.master.write(addr, value, strobes) == (DECERR if slave is None else OKAY)
            if slave is not None:
                mask = sum(0xFF << 8 * i for i in range(4) if strobes >> i & 1)
                model[addr] = model.get(addr, 0) & ~mask | value & mask

    async def reads() -> None:
        for _ in range(count):
            slave, addr = anywhere()
            before = model.get(addr, 0)
            answer = await bench.master.read(addr)
            assert answer[1] == (DECERR if slave is None else OKAY)
            assert slave is None or answer[0] in (before, bench.slaves[slave].words.get(addr & 0xFFF, 0))
            assert slave is not None or answer[0] == 0

    tasks = [cocotb.start_soon(writes()), cocotb.start_soon(reads())]
    for task in tasks:
        await task
    seen = {at(i, offset): word for i, slave in enumerate(bench.slaves) for offset, word in slave.words.items()}
    assert seen == model
    for addr, value in model.items():
        assert await bench.master.read(addr) == (value, OKAY)
    assert set(bench.monitor.taken.values()) == {count, count + len(model)}
    await FallingEdge(dut.clk)
    assert int(dut.idle.value)


@cocotb.test()
async def responses_are_the_slaves_own(dut) -> None:
    bench = Bench(dut)
    await start(dut)
    for resp in (SLVERR, DECERR, OKAY):
        bench.slaves[1].resp = resp
        assert await bench.master.write(at(1, 8), 5) == resp
        assert await bench.master.read(at(1, 8)) == (5, resp)


@cocotb.test()
async def address_and_data_may_come_apart(dut) -> None:
    """A master may show either first; the answer stays until the master takes it."""
    bench = Bench(dut)
    await start(dut)
    for first, second in (("aw", "w"), ("w", "aw")):
        await FallingEdge(dut.clk)
        dut.in_awaddr.value, dut.in_wdata.value, dut.in_wstrb.value = at(2, 4), 0x1234, 15
        getattr(dut, f"in_{first}valid").value = 1
        await wait_cycles(dut, 2 * TIMEOUT)
        assert not bench.behind[2].taken["b"] or first == "w"
        await FallingEdge(dut.clk)
        getattr(dut, f"in_{second}valid").value = 1
        await RisingEdge(dut.clk)
        assert int(dut.in_awready.value) and int(dut.in_wready.value)
        await FallingEdge(dut.clk)
        dut.in_awvalid.value = dut.in_wvalid.value = 0
        await wait_cycles(dut, 2 * TIMEOUT)
        assert int(dut.in_bvalid.value) and int(dut.in_bresp.value) == OKAY
        dut.in_bready.value = 1
        await RisingEdge(dut.clk)
        await FallingEdge(dut.clk)
        dut.in_bready.value = 0
        assert not int(dut.in_bvalid.value)
    assert bench.behind[2].taken == {"aw": 2, "w": 2, "b": 2, "ar": 0, "r": 0}


@cocotb.test()
@cocotb.parametrize(held=[("aw", "w"), ("aw",), ("w",), ("b",), ("ar",), ("r",)])
async def a_slave_that_stops_costs_its_own_page_until_it_goes_on(dut, held: tuple[str, ...]) -> None:
    """At any hand-shake: SLVERR in time, then at once; others are served; the late answer is dropped; then all is as before."""
    bench = Bench(dut)
    await start(dut)
    slave = bench.slaves[1]
    writing = bool(set(held) & {"aw", "w", "b"})
    for _ in range(2):
        slave.words[0x10] = 0x01D
        slave.held |= set(held)

        async def access(value: int) -> tuple[int, int]:
            if writing:
                return await bench.timed_write(at(1, 0x10), value)
            (_, resp), cycles = await bench.timed_read(at(1, 0x10))
            return resp, cycles

        resp, cycles = await access(0xA)
        assert resp == SLVERR and TIMEOUT <= cycles <= TIMEOUT + AT_ONCE
        for _ in range(3):
            resp, cycles = await access(0xB)
            assert resp == SLVERR and cycles <= AT_ONCE
            await bench.others_are_served(1)
        # Its other direction goes on, too.
        if writing:
            assert (await bench.timed_read(at(1, 0x20)))[0] == (slave.words.get(0x20, 0), OKAY)
        else:
            assert (await bench.timed_write(at(1, 0x20), 6))[0] == OKAY
        await wait_cycles(dut, 5 * TIMEOUT)
        slave.held.clear()
        await wait_cycles(dut, 20)
        # It has executed the first request, and nothing else.
        assert slave.words[0x10] == (0xA if writing else 0x01D)
        assert await bench.master.write(at(1, 0x10), 0xC) == OKAY
        assert await bench.master.read(at(1, 0x10)) == (0xC, OKAY)
        taken = bench.behind[1].taken
        assert taken["aw"] == taken["w"] == taken["b"] and taken["ar"] == taken["r"]


@cocotb.test()
async def a_slave_that_answers_at_the_last_moment(dut) -> None:
    """Every delay about the limit, of each hand-shake: its answer or SLVERR, once, in time; the next access is right."""
    delays = dict.fromkeys(CHANNELS, 0)
    bench = Bench(dut, lambda channel: delays[channel])
    await start(dut)
    met = set()
    for channel in CHANNELS:
        for delay in range(TIMEOUT - 8, TIMEOUT + 4):
            delays[channel] = delay
            value = random.getrandbits(32)
            resp, cycles = await bench.timed_write(at(0, 0), value)
            assert resp in (OKAY, SLVERR) and cycles <= TIMEOUT + AT_ONCE
            met.add((channel in ("aw", "w", "b"), resp))
            await wait_cycles(dut, 2 * TIMEOUT)
            (data, resp), cycles = await bench.timed_read(at(0, 0))
            assert (data, resp) in ((value, OKAY), (0, SLVERR)) and cycles <= TIMEOUT + AT_ONCE
            met.add((channel in ("aw", "w", "b"), resp))
            await wait_cycles(dut, 2 * TIMEOUT)
        delays[channel] = 0
    assert met == {(True, OKAY), (True, SLVERR), (False, OKAY), (False, SLVERR)}
    assert await bench.master.write(at(0, 0), 9) == OKAY and await bench.master.read(at(0, 0)) == (9, OKAY)


@cocotb.test()
async def reset_forgets_what_a_slave_owes(dut) -> None:
    """With accesses in both directions under way: no VALID behind the reset, and every page answers."""
    bench = Bench(dut)
    await start(dut)
    bench.slaves[1].held |= {"aw", "ar"}
    assert await bench.master.write(at(1, 0), 1) == SLVERR
    assert (await bench.master.read(at(1, 0)))[1] == SLVERR
    await FallingEdge(dut.clk)
    dut.rst.value = 1
    await wait_cycles(dut, 2)
    await FallingEdge(dut.clk)
    assert not int(dut.in_bvalid.value) and not int(dut.in_rvalid.value)
    for i in range(SLAVES):
        assert not any(int(getattr(dut, f"out{i}_{channel}valid").value) for channel in ("aw", "w", "ar"))
    for queue in bench.slaves[1].queues.values():
        queue.clear()
    bench.slaves[1].held.clear()
    await wait_cycles(dut, 4)
    await FallingEdge(dut.clk)
    dut.rst.value = 0
    await bench.others_are_served(SLAVES)


def test_axil_demux() -> None:
    run(
        "axil_demux",
        __file__,
        params={
            "N": SLAVES, "IN_ADDR_W": 20, "PAGE_W": 12, "TIMEOUT": TIMEOUT,
            "PAGES": Type("24'h" + "".join(f"{page:02x}" for page in reversed(PAGES))),
        },
        ports={"in": AxilSlave(20), "out": Several(AxilMaster(12), SLAVES), "idle": Plain("output", "logic")},
    )  # fmt: skip
