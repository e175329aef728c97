# SPDX-License-Identifier: Apache-2.0
"""socket_bus: what a kernel may access gets to the bus as it is, and nothing else; and whatever a kernel does, the bus keeps its
rules and is never held."""

from __future__ import annotations

import random

import cocotb
from cocotb.handle import SimHandleBase
from cocotb.triggers import FallingEdge, RisingEdge
from cocotb.utils import get_sim_time
from nacelle_tb.axil import DECERR, OKAY, SLVERR, Monitor, Slave
from nacelle_tb.bench import AxilMaster, AxilSlave, Plain, run
from nacelle_tb.cci import address
from nacelle_tb.registers import AxilDriver
from nacelle_tb.streams import CLOCK_NS, start, wait_cycles

PUBLIC, PERMITTED, WRITTEN = address("QPS"), address("KERNEL_TIMEOUT_MS"), address("RPG_AI_RATE")
SECRET = ("RANDOM_SEED", "CCI_PORT", "CCI_TOKEN_0", "admission.TOKEN_0", "trace.COMMAND", "management.COMMAND")
FREEING = ("CTRL", "KERNEL_TIMEOUT_MS", "socket.BUS", "socket.PEERS", "socket.RDMA_PAGE", "socket.IMAGE_COMMAND")
NEVER = [*map(address, SECRET), 0x10110, 0x20000, 0xFFFFC]
CONFINING = [*map(address, FREEING)]


class Bench:
    """A kernel, the unit, a bus. `refused`: pulses."""

    def __init__(self, dut: SimHandleBase, slowest: int = 0, seed: int = 0) -> None:
        self.dut, self.refused = dut, 0
        rng = random.Random(seed)
        self.kernel = AxilDriver(dut, "kernel")
        self.slave = Slave(dut, "bus", lambda channel: rng.randrange(slowest + 1))
        self.port, self.bus = Monitor(dut, "kernel", ("rst", "kernel_rst", "off")), Monitor(dut, "bus")
        dut.kernel_rst.value = dut.off.value = dut.may_read.value = dut.may_write.value = 0
        cocotb.start_soon(self._watch())

    async def _watch(self) -> None:
        while True:
            await RisingEdge(self.dut.clk)
            self.refused += int(self.dut.refused.value)

    def permit(self, read: bool, write: bool) -> None:
        self.dut.may_read.value, self.dut.may_write.value = int(read), int(write)

    def taken(self) -> int:
        """Accesses that the bus has seen."""
        return self.bus.taken["aw"] + self.bus.taken["ar"]


@cocotb.test()
@cocotb.parametrize(read=[False, True], write=[False, True], slowest=[0, 7])
async def what_is_permitted_reaches_the_bus_and_nothing_else(dut, read: bool, write: bool, slowest: int) -> None:
    bench = Bench(dut, slowest)
    await start(dut)
    bench.permit(read, write)
    refused, reached = 0, 0
    for at, value in ((PUBLIC, 256), (PERMITTED, 60_000), (WRITTEN, 40)):
        bench.slave.words[at] = value
    for _ in range(3):
        for at, may in ((PUBLIC, True), (PERMITTED, read), (WRITTEN, read), *((at, False) for at in NEVER)):
            assert await bench.kernel.read(at) == ((bench.slave.words[at], OKAY) if may else (0, SLVERR))
            refused, reached = refused + (not may), reached + may
        before = dict(bench.slave.words)
        for at in (*NEVER, *CONFINING, PUBLIC):
            assert await bench.kernel.write(at, 0xFFFF_FFFF) == SLVERR
            refused += 1
        value, strobes = random.getrandbits(32), random.getrandbits(4)
        assert await bench.kernel.write(WRITTEN, value, strobes) == (OKAY if write else SLVERR)
        refused, reached = refused + (not write), reached + write
        if write:
            mask = sum(0xFF << 8 * byte for byte in range(4) if strobes >> byte & 1)
            before[WRITTEN] = before[WRITTEN] & ~mask | value & mask
        assert bench.slave.words == before
        assert (bench.refused, bench.taken()) == (refused, reached)
    await wait_cycles(dut, 2)
    assert int(dut.idle.value) and int(dut.settled.value)


@cocotb.test()
async def answers_are_those_of_the_bus(dut) -> None:
    bench = Bench(dut)
    await start(dut)
    bench.permit(True, True)
    for response in (SLVERR, DECERR, OKAY):
        bench.slave.resp = response
        assert (await bench.kernel.read(PUBLIC))[1] == response
        assert await bench.kernel.write(WRITTEN, 1) == response
    assert bench.refused == 0
    # Bits of an address below a word are none.
    assert await bench.kernel.write(WRITTEN + 3, 77) == OKAY
    assert await bench.kernel.read(WRITTEN + 1) == (77, OKAY) and bench.slave.words[WRITTEN] == 77


@cocotb.test()
async def a_refused_access_takes_two_cycles_and_another_three_more_than_the_bus(dut) -> None:
    """From the access offered to its answer offered; the bus takes it at once and answers in the next cycle."""
    bench = Bench(dut)
    await start(dut)
    dut.bus_arready.value = 1

    async def cycles(at: int) -> int:
        await FallingEdge(dut.clk)
        dut.kernel_araddr.value, dut.kernel_arvalid.value, dut.kernel_rready.value = at, 1, 1
        count = 0
        while True:
            await RisingEdge(dut.clk)
            if int(dut.kernel_rvalid.value):
                break
            count += 1
            arrived = int(dut.bus_arvalid.value) and int(dut.bus_arready.value)
            await FallingEdge(dut.clk)
            dut.kernel_arvalid.value = 0
            dut.bus_rvalid.value = int(arrived)
        await FallingEdge(dut.clk)
        dut.kernel_rready.value = 0
        return count

    bench.slave.held.update(("ar", "r"))  # this test answers
    assert [await cycles(NEVER[0]), await cycles(PUBLIC)] == [2, 4]


@cocotb.test()
@cocotb.parametrize(write=[False, True])
async def a_kernel_that_takes_no_answer_holds_up_itself(dut, write: bool) -> None:
    """The bus is free again as soon as it has answered; the kernel gets its answer when it wants it."""
    bench = Bench(dut)
    await start(dut)
    bench.permit(True, True)
    bench.slave.words[WRITTEN] = 5
    channel, ready, valid = ("aw", "bready", "bvalid") if write else ("ar", "rready", "rvalid")
    await FallingEdge(dut.clk)
    for name in ("aw", "w") if write else ("ar",):
        getattr(dut, f"kernel_{name}valid").value = 1
    dut.kernel_awaddr.value = dut.kernel_araddr.value = WRITTEN
    dut.kernel_wdata.value, dut.kernel_wstrb.value = 6, 15
    await RisingEdge(dut.clk)
    assert int(getattr(dut, f"kernel_{channel}ready").value)
    await RisingEdge(dut.clk)
    for _ in range(300):  # it asks on and on
        await RisingEdge(dut.clk)
        assert not int(getattr(dut, f"kernel_{channel}ready").value)
    assert bench.taken() == 1 and int(dut.settled.value) and not int(dut.bus_awvalid.value) and not int(dut.bus_arvalid.value)
    assert int(getattr(dut, f"kernel_{valid}").value)
    await FallingEdge(dut.clk)
    getattr(dut, f"kernel_{ready}").value = 1
    await RisingEdge(dut.clk)
    await RisingEdge(dut.clk)
    assert int(getattr(dut, f"kernel_{channel}ready").value)
    await FallingEdge(dut.clk)
    for name in ("aw", "w", "ar"):
        getattr(dut, f"kernel_{name}valid").value = 0
    while not int(getattr(dut, f"kernel_{valid}").value):
        await RisingEdge(dut.clk)
    await RisingEdge(dut.clk)
    await FallingEdge(dut.clk)
    getattr(dut, f"kernel_{ready}").value = 0
    assert await bench.kernel.read(WRITTEN) == (6 if write else 5, OKAY)


@cocotb.test()
async def an_access_that_has_begun_is_ended_whatever_becomes_of_the_kernel(dut) -> None:
    """The kernel is reset in each cycle of an access, for a cycle or for long, and what is in its place asks at once: it gets the
    answer to what it has asked itself. The monitor sees that nothing is withdrawn from the bus."""
    bench = Bench(dut, slowest=6, seed=3)
    await start(dut)
    bench.permit(True, True)
    bench.slave.words.update({PUBLIC: 0x1111, PERMITTED: 0x2222})
    ended = 0
    for cycle in range(30):
        for length in (1, 2, 40):
            for write in (False, True):
                await FallingEdge(dut.clk)
                for name in ("aw", "w") if write else ("ar",):
                    getattr(dut, f"kernel_{name}valid").value = 1
                dut.kernel_awaddr.value, dut.kernel_wdata.value, dut.kernel_wstrb.value = WRITTEN, cycle, 15
                dut.kernel_araddr.value = PUBLIC
                await wait_cycles(dut, cycle + 1)
                await FallingEdge(dut.clk)
                dut.kernel_rst.value = 1
                for name in ("aw", "w", "ar"):
                    getattr(dut, f"kernel_{name}valid").value = 0
                ended += not int(dut.settled.value)
                await wait_cycles(dut, length)
                await FallingEdge(dut.clk)
                dut.kernel_rst.value = 0
                assert await bench.kernel.read(PERMITTED) == (0x2222, OKAY)
                assert await bench.kernel.write(WRITTEN, 0x3333) == OKAY
                assert bench.slave.words[WRITTEN] == 0x3333
    assert ended > 20
    for channel, other in (("aw", "b"), ("w", "b"), ("ar", "r")):
        assert bench.bus.taken[channel] == bench.bus.taken[other]
    assert bench.refused == 0


@cocotb.test()
async def a_kernel_in_reset_or_without_a_name_begins_nothing(dut) -> None:
    bench = Bench(dut)
    await start(dut)
    bench.permit(True, True)
    for signal in (dut.kernel_rst, dut.off):
        await FallingEdge(dut.clk)
        signal.value = 1
        for valid in (dut.kernel_awvalid, dut.kernel_wvalid, dut.kernel_arvalid):
            valid.value = 1
        dut.kernel_awaddr.value, dut.kernel_araddr.value = WRITTEN, PUBLIC
        await wait_cycles(dut, 50)
        assert bench.taken() == 0 and bench.refused == 0
        await FallingEdge(dut.clk)
        for valid in (dut.kernel_awvalid, dut.kernel_wvalid, dut.kernel_arvalid):
            valid.value = 0
        await FallingEdge(dut.clk)
        signal.value = 0


@cocotb.test()
async def half_a_write_begins_nothing_and_does_not_stop_a_read(dut) -> None:
    bench = Bench(dut)
    await start(dut)
    bench.permit(True, True)
    for half, other in (("aw", "w"), ("w", "aw")):
        written = bench.bus.taken["aw"]
        await FallingEdge(dut.clk)
        dut.kernel_awaddr.value, dut.kernel_wdata.value, dut.kernel_wstrb.value = WRITTEN, 9, 15
        getattr(dut, f"kernel_{half}valid").value = 1
        begin = get_sim_time("ns")
        assert (await bench.kernel.read(PUBLIC))[1] == OKAY
        assert get_sim_time("ns") - begin < 40 * CLOCK_NS and bench.bus.taken["aw"] == written
        getattr(dut, f"kernel_{other}valid").value = 1
        await RisingEdge(dut.clk)
        await FallingEdge(dut.clk)
        dut.kernel_awvalid.value = dut.kernel_wvalid.value = 0
        dut.kernel_bready.value = 1
        while not int(dut.kernel_bvalid.value):
            await RisingEdge(dut.clk)
        await FallingEdge(dut.clk)
        dut.kernel_bready.value = 0
        assert bench.slave.words.pop(WRITTEN) == 9


def test_socket_bus() -> None:
    run(
        "socket_bus",
        __file__,
        ports={
            "kernel_rst": Plain("input", "logic"),
            "off": Plain("input", "logic"),
            "may_read": Plain("input", "logic"),
            "may_write": Plain("input", "logic"),
            "kernel": AxilSlave(20),
            "bus": AxilMaster(20),
            "refused": Plain("output", "logic"),
            "settled": Plain("output", "logic"),
            "idle": Plain("output", "logic"),
        },
    )
