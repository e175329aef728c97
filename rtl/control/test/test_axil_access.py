# SPDX-License-Identifier: Apache-2.0
"""axil_access: one access at a time, one response each, by the rules of AXI4-Lite, whatever the master stalls; none in reset."""

from __future__ import annotations

import os
import random
from collections import deque

import cocotb
import pytest
from cocotb.handle import SimHandleBase
from cocotb.triggers import FallingEdge, RisingEdge
from nacelle_tb.axil import DECERR, OKAY, SLVERR, Monitor
from nacelle_tb.bench import AxilSlave, Plain, run
from nacelle_tb.long import rounds
from nacelle_tb.streams import start, wait_cycles
from nacelle_tb.values import digits

digits()

READ_CYCLES = int(os.environ.get("READ_CYCLES", "1"))
ROUNDS = rounds(300)  # accesses of each direction
PLACES = range(0, 0x40, 4)
READABLE = {at for at in PLACES if at % 12 != 8}
WRITABLE = {at for at in PLACES if at % 20 != 4}
WHOLE = 0xF


class Bench:
    """A block with these registers, and the two sides of its bus."""

    def __init__(self, dut, stall: float) -> None:
        self.dut = dut
        self.stall = stall
        self.words = {at: random.getrandbits(32) for at in PLACES}
        self.asked: dict[str, deque] = {"aw": deque(), "w": deque(), "ar": deque()}
        self.expected: dict[str, deque] = {"b": deque(), "r": deque()}
        self.written: deque[tuple[int, int]] = deque()
        self.done = {"b": 0, "r": 0}
        for signal in ("awvalid", "wvalid", "arvalid", "bready", "rready", "awaddr", "araddr", "wdata", "wstrb"):
            self.bus(signal).value = 0
        for signal in ("readable", "writable", "rdata"):
            getattr(dut, signal).value = 0
        Monitor(dut, "bus")

    def bus(self, signal: str) -> SimHandleBase:
        return getattr(self.dut, f"bus_{signal}")

    def begin(self) -> None:
        for task in (
            self.block(),
            self.watch(),
            *(self.ask(channel) for channel in self.asked),
            *(self.take(c) for c in self.done),
        ):
            cocotb.start_soon(task)

    async def block(self) -> None:
        """Its registers, which are read as from a memory, so many cycles after the address."""
        pipe = deque([0] * READ_CYCLES, maxlen=READ_CYCLES + 1)
        while True:
            await FallingEdge(self.dut.clk)
            if not self.dut.at.value.is_resolvable:
                continue
            at = int(self.dut.at.value)
            pipe.append(self.words.get(at, 0xDEAD))
            self.dut.rdata.value = pipe[0]
            self.dut.readable.value = at in READABLE
            self.dut.writable.value = at in WRITABLE

    async def watch(self) -> None:
        """What is accepted, in order, and what must be answered."""
        cycle, accepted = 0, {}
        while True:
            await RisingEdge(self.dut.clk)
            cycle += 1
            high = {
                name: int(self.bus(name).value)
                for name in ("awvalid", "awready", "wvalid", "wready", "arvalid", "arready", "bvalid", "rvalid")
            }
            assert high["awready"] == high["wready"], "address and data are taken together"
            if int(self.dut.write.value):
                assert self.written.popleft() == (int(self.dut.at.value), int(self.dut.wdata.value))
            took = {"b": high["awvalid"] and high["awready"], "r": high["arvalid"] and high["arready"]}
            assert not (took["b"] and took["r"]) and not (high["bvalid"] and high["rvalid"])
            if any(took.values()):
                assert not any(self.expected.values()), "one access at a time"
            if took["b"]:
                at, data, strobes = (int(self.bus(name).value) for name in ("awaddr", "wdata", "wstrb"))
                whole = strobes == WHOLE
                self.expected["b"].append(DECERR if at not in WRITABLE else OKAY if whole else SLVERR)
                if at in WRITABLE and whole:
                    self.words[at] = data
                    self.written.append((at, data))
                accepted["b"] = cycle
            if took["r"]:
                at = int(self.bus("araddr").value)
                self.expected["r"].append((self.words[at], OKAY) if at in READABLE else (0, DECERR))
                accepted["r"] = cycle
            for channel, cycles in (("b", 2), ("r", 2 + READ_CYCLES)):
                if high[f"{channel}valid"] and channel in accepted:
                    assert cycle - accepted.pop(channel) == cycles

    async def ask(self, channel: str) -> None:
        """Values of one channel, which the others need not wait for."""
        while True:
            await FallingEdge(self.dut.clk)
            if not self.asked[channel] or random.random() < self.stall:
                continue
            for signal, value in self.asked[channel].popleft().items():
                self.bus(signal).value = value
            self.bus(f"{channel}valid").value = 1
            await RisingEdge(self.dut.clk)
            while not int(self.bus(f"{channel}ready").value):
                await RisingEdge(self.dut.clk)
            await FallingEdge(self.dut.clk)
            while self.asked[channel] and random.random() >= self.stall:  # back to back
                for signal, value in self.asked[channel].popleft().items():
                    self.bus(signal).value = value
                await RisingEdge(self.dut.clk)
                while not int(self.bus(f"{channel}ready").value):
                    await RisingEdge(self.dut.clk)
                await FallingEdge(self.dut.clk)
            self.bus(f"{channel}valid").value = 0

    async def take(self, channel: str) -> None:
        while True:
            await FallingEdge(self.dut.clk)
            self.bus(f"{channel}ready").value = random.random() >= self.stall
            await RisingEdge(self.dut.clk)
            if int(self.bus(f"{channel}valid").value) and int(self.bus(f"{channel}ready").value):
                resp = int(self.bus(f"{channel}resp").value)
                found = resp if channel == "b" else (int(self.bus("rdata").value), resp)
                assert found == self.expected[channel].popleft(), channel
                self.done[channel] += 1


@cocotb.test()
async def accesses_in_any_order(dut) -> None:
    """Reads and writes of all kinds at once; without a stall, and with many."""
    bench = Bench(dut, 0)
    await start(dut)
    bench.begin()
    total = 0
    for stall in (0, 0.2, 0.7):
        bench.stall = stall
        total += ROUNDS
        for _ in range(ROUNDS):
            strobes = random.choice((WHOLE, WHOLE, WHOLE, 0, 1, 0xE))
            bench.asked["aw"].append({"awaddr": random.choice(PLACES)})
            bench.asked["w"].append({"wdata": random.getrandbits(32), "wstrb": strobes})
            bench.asked["ar"].append({"araddr": random.choice(PLACES)})
        while bench.done != {"b": total, "r": total}:
            await wait_cycles(dut, 10)
    await wait_cycles(dut, 5)
    assert int(dut.idle.value) and not bench.written


@cocotb.test()
async def nothing_is_accepted_in_reset(dut) -> None:
    bench = Bench(dut, 0)
    await start(dut)
    bench.bus("arvalid").value = 1
    await wait_cycles(dut, 2)
    assert not int(dut.idle.value), "an access is under way"
    await FallingEdge(dut.clk)
    dut.rst.value = 1
    bench.bus("awvalid").value = 1
    bench.bus("wvalid").value = 1
    for _ in range(5):
        await RisingEdge(dut.clk)
        assert not any(int(bench.bus(name).value) for name in ("awready", "wready", "arready"))
    assert not any(int(bench.bus(name).value) for name in ("bvalid", "rvalid")), "the access before the reset is gone"


@pytest.mark.parametrize("read_cycles", [1, 3])
def test_axil_access(read_cycles: int) -> None:
    run(
        "axil_access",
        __file__,
        params={"READ_CYCLES": read_cycles},
        ports={
            "bus": AxilSlave(12),
            "at": Plain("output", "logic [11:0]"),
            "write": Plain("output", "logic"),
            "wdata": Plain("output", "logic [31:0]"),
            "readable": Plain("input", "logic"),
            "writable": Plain("input", "logic"),
            "rdata": Plain("input", "logic [31:0]"),
            "idle": Plain("output", "logic"),
        },
        env={"READ_CYCLES": str(read_cycles)},
        random_state=True,
    )
