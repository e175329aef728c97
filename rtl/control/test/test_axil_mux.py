# SPDX-License-Identifier: Apache-2.0
"""axil_mux: each master sees the bus as if it had it alone, and waits for one access of each other at most."""

from __future__ import annotations

import random

import cocotb
from cocotb.triggers import FallingEdge, RisingEdge
from cocotb.utils import get_sim_time
from nacelle_tb.axil import DECERR, OKAY, SLVERR, Monitor, Slave
from nacelle_tb.bench import AxilMaster, AxilSlave, Plain, Several, run
from nacelle_tb.registers import AxilDriver
from nacelle_tb.streams import CLOCK_NS, start

MASTERS = 3


@cocotb.test()
@cocotb.parametrize(slowest=[0, 9])
async def accesses_of_several_masters(dut, slowest: int) -> None:
    """Reads and writes at once from all, each to words of its own, against a model; every port keeps the rules."""
    rng = random.Random(slowest)
    masters = [AxilDriver(dut, f"in{i}") for i in range(MASTERS)]
    slave = Slave(dut, "out", lambda channel: rng.randrange(slowest + 1))
    monitors = [Monitor(dut, name) for name in (*[f"in{i}" for i in range(MASTERS)], "out")]
    await start(dut)
    count = 150

    async def writes(i: int, model: dict[int, int]) -> None:
        for _ in range(count):
            address, value, strobes = 4 * (MASTERS * rng.randrange(64) + i), rng.getrandbits(32), rng.getrandbits(4)
            assert await masters[i].write(address, value, strobes) == OKAY
            mask = sum(0xFF << 8 * byte for byte in range(4) if strobes >> byte & 1)
            model[address] = model.get(address, 0) & ~mask | value & mask

    async def reads(i: int, model: dict[int, int]) -> None:
        for _ in range(count):
            address = 4 * (MASTERS * rng.randrange(64) + i)
            before = model.get(address, 0)
            value, response = await masters[i].read(address)
            assert response == OKAY and value in (before, slave.words.get(address, 0))

    models: list[dict[int, int]] = [{} for _ in range(MASTERS)]
    tasks = [cocotb.start_soon(work(i, models[i])) for i in range(MASTERS) for work in (writes, reads)]
    for task in tasks:
        await task
    assert slave.words == {address: value for model in models for address, value in model.items()}
    for monitor in monitors[:MASTERS]:
        assert set(monitor.taken.values()) == {count}
    assert set(monitors[MASTERS].taken.values()) == {MASTERS * count}
    await FallingEdge(dut.clk)
    assert int(dut.idle.value)


@cocotb.test()
async def responses_go_to_who_asked(dut) -> None:
    masters = [AxilDriver(dut, f"in{i}") for i in range(MASTERS)]
    slave = Slave(dut, "out")
    await start(dut)
    for i, response in enumerate((SLVERR, DECERR, OKAY)):
        slave.resp = response
        assert await masters[i].write(8, 5 + i) == response
        assert await masters[i].read(8) == (5 + i, response)


@cocotb.test()
async def one_that_asks_on_and_on_leaves_room(dut) -> None:
    """Two masters without a pause: the third waits for an access of each at most, each time."""
    masters = [AxilDriver(dut, f"in{i}") for i in range(MASTERS)]
    Slave(dut, "out")
    await start(dut)

    async def longest(access) -> int:
        times = []
        for _ in range(20):
            begin = get_sim_time("ns")
            await access()
            times.append(int(get_sim_time("ns") - begin) // CLOCK_NS)
        return max(times)

    read, write = (lambda: masters[2].read(4)), (lambda: masters[2].write(4, 1))
    alone = [await longest(read), await longest(write)]
    stop = False

    async def flood(i: int) -> None:
        while not stop:
            await masters[i].read(4 * i)

    async def flood_writes(i: int) -> None:
        while not stop:
            await masters[i].write(4 * i, i)

    tasks = [cocotb.start_soon(work(i)) for i in range(2) for work in (flood, flood_writes)]
    busy = [await longest(read), await longest(write)]
    stop = True
    for task in tasks:
        await task
    assert all(alone[i] < busy[i] <= 3 * alone[i] for i in range(2)), (alone, busy)


@cocotb.test()
async def address_and_data_may_come_apart(dut) -> None:
    """A write that is half there does not hold the bus."""
    master = AxilDriver(dut, "in1")
    AxilDriver(dut, "in2")
    AxilDriver(dut, "in0")
    slave = Slave(dut, "out")
    await start(dut)
    for first, second in (("aw", "w"), ("w", "aw")):
        await FallingEdge(dut.clk)
        dut.in0_awaddr.value, dut.in0_wdata.value, dut.in0_wstrb.value = 16, 0x1234, 15
        getattr(dut, f"in0_{first}valid").value = 1
        assert await master.write(20, 7) == OKAY
        assert await master.read(20) == (7, OKAY)
        await FallingEdge(dut.clk)
        getattr(dut, f"in0_{second}valid").value = 1
        taken: set[str] = set()
        while not int(dut.in0_bvalid.value):
            await RisingEdge(dut.clk)
            now = {channel for channel in ("aw", "w") if int(getattr(dut, f"in0_{channel}ready").value)}
            await FallingEdge(dut.clk)
            for channel in now:
                getattr(dut, f"in0_{channel}valid").value = 0
            taken |= now
        assert taken == {"aw", "w"} and slave.words.pop(16) == 0x1234
        dut.in0_bready.value = 1
        await RisingEdge(dut.clk)
        await FallingEdge(dut.clk)
        dut.in0_bready.value = 0
        assert not int(dut.in0_bvalid.value)


def test_axil_mux() -> None:
    run(
        "axil_mux",
        __file__,
        params={"N": MASTERS, "ADDR_W": 20},
        ports={"in": Several(AxilSlave(20), MASTERS), "out": AxilMaster(20), "idle": Plain("output", "logic")},
    )
