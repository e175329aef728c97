# SPDX-License-Identifier: Apache-2.0
"""AXI4-Lite ports in tests: a monitor of the rules, and a slave that stops anywhere for any time."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

import cocotb
from cocotb.handle import SimHandleBase
from cocotb.triggers import FallingEdge, RisingEdge

from .streams import wait_cycles

OKAY, SLVERR, DECERR = 0, 2, 3
CHANNELS = {
    "aw": ("awvalid", "awready", ("awaddr",)), "w": ("wvalid", "wready", ("wdata", "wstrb")), "b": ("bvalid", "bready", ("bresp",)),
    "ar": ("arvalid", "arready", ("araddr",)), "r": ("rvalid", "rready", ("rdata", "rresp")),
}  # fmt: skip


class Monitor:
    """Holds a port to IHI 0022 A3.2.1: what is VALID stays, unchanged, until it is taken; and counts what is taken. Not while one
    of `resets` is high."""

    def __init__(self, dut: SimHandleBase, name: str, resets: Sequence[str] = ("rst",)) -> None:
        self.dut = dut
        self.resets = [getattr(dut, reset) for reset in resets]
        self.name = name
        self.taken = dict.fromkeys(CHANNELS, 0)
        cocotb.start_soon(self._watch())

    def _get(self, signal: str) -> int:
        return int(getattr(self.dut, f"{self.name}_{signal}").value)

    async def _watch(self) -> None:
        waiting: dict[str, tuple[int, ...]] = {}
        while True:
            await RisingEdge(self.dut.clk)
            if any(int(reset.value) for reset in self.resets):
                waiting.clear()
                continue
            for channel, (valid, ready, payload) in CHANNELS.items():
                now = tuple(self._get(signal) for signal in payload) if self._get(valid) else None
                if channel in waiting:
                    assert now == waiting.pop(channel), f"{self.name}: {channel} changed before it was taken"
                if now is None:
                    continue
                if self._get(ready):
                    self.taken[channel] += 1
                else:
                    waiting[channel] = now
            assert self.taken["b"] <= min(self.taken["aw"], self.taken["w"]), f"{self.name}: a response to nothing"
            assert self.taken["r"] <= self.taken["ar"], f"{self.name}: data without a request"


class Slave:
    """Words of a page; `delay` says how many cycles each hand-shake waits, and a channel in `held` waits until it is released."""

    def __init__(self, dut: SimHandleBase, name: str, delay: Callable[[str], int] = lambda channel: 0) -> None:
        self.dut = dut
        self.name = name
        self.delay = delay
        self.held: set[str] = set()
        self.words: dict[int, int] = {}
        self.resp = OKAY
        self.queues: dict[str, deque] = {channel: deque() for channel in ("aw", "w", "ar")}
        for channel, (valid, ready, _) in CHANNELS.items():
            self._port(valid if channel in "br" else ready).value = 0
        for channel in self.queues:
            cocotb.start_soon(self._take(channel))
        cocotb.start_soon(self._answer_writes())
        cocotb.start_soon(self._answer_reads())

    def _port(self, signal: str) -> SimHandleBase:
        return getattr(self.dut, f"{self.name}_{signal}")

    async def _pause(self, channel: str) -> None:
        await wait_cycles(self.dut, self.delay(channel))
        while channel in self.held:
            await RisingEdge(self.dut.clk)
        await FallingEdge(self.dut.clk)

    async def _take(self, channel: str) -> None:
        valid, ready, payload = CHANNELS[channel]
        while True:
            await FallingEdge(self.dut.clk)
            if not int(self._port(valid).value):
                continue
            await self._pause(channel)
            self._port(ready).value = 1
            await RisingEdge(self.dut.clk)
            if int(self._port(valid).value):
                self.queues[channel].append(tuple(int(self._port(signal).value) for signal in payload))
            await FallingEdge(self.dut.clk)
            self._port(ready).value = 0

    async def _answer(self, channel: str, values: tuple[int, ...]) -> None:
        valid, ready, payload = CHANNELS[channel]
        await self._pause(channel)
        for signal, value in zip(payload, values, strict=True):
            self._port(signal).value = value
        self._port(valid).value = 1
        await RisingEdge(self.dut.clk)
        while not int(self._port(ready).value):
            await RisingEdge(self.dut.clk)
        await FallingEdge(self.dut.clk)
        self._port(valid).value = 0

    async def _answer_writes(self) -> None:
        while True:
            await RisingEdge(self.dut.clk)
            if self.queues["aw"] and self.queues["w"]:
                (addr,), (data, strobes) = self.queues["aw"].popleft(), self.queues["w"].popleft()
                mask = sum(0xFF << 8 * i for i in range(4) if strobes >> i & 1)
                self.words[addr] = self.words.get(addr, 0) & ~mask | data & mask
                await self._answer("b", (self.resp,))

    async def _answer_reads(self) -> None:
        while True:
            await RisingEdge(self.dut.clk)
            if self.queues["ar"]:
                (addr,) = self.queues["ar"].popleft()
                await self._answer("r", (self.words.get(addr, 0), self.resp))
