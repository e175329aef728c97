# SPDX-License-Identifier: Apache-2.0
"""Avalon-ST in a test (Avalon Interface Specifications, 5): a source without ready, and a sink with ready latency 0."""

import random
from typing import Any

import cocotb
from cocotb.triggers import FallingEdge, RisingEdge

SIGNALS = ("valid", "startofpacket", "endofpacket", "data", "empty", "error")


class Source:
    """Puts beats on `name`_*; signals change at falling edges."""

    def __init__(self, dut: Any, name: str, width: int) -> None:
        self.dut, self.name, self.bytes = dut, name, width // 8
        for signal in SIGNALS:
            getattr(dut, f"{name}_{signal}").value = 0

    async def beat(self, data: bytes, start: bool = False, end: bool = False, error: int = 0) -> None:
        """One beat; the first byte of `data` is its first symbol."""
        await FallingEdge(self.dut.clk)
        values = (1, start, end, int.from_bytes(data.ljust(self.bytes, b"\xee"), "big"), (self.bytes - len(data)) * end, error)
        for signal, value in zip(SIGNALS, values, strict=True):
            getattr(self.dut, f"{self.name}_{signal}").value = int(value)

    async def quiet(self, cycles: int = 1) -> None:
        """No beat; what is on the other signals means nothing."""
        for _ in range(cycles):
            await FallingEdge(self.dut.clk)
            getattr(self.dut, f"{self.name}_valid").value = 0
            for signal in ("startofpacket", "endofpacket", "error"):
                getattr(self.dut, f"{self.name}_{signal}").value = random.randrange(2)

    async def send(self, frame: bytes, error: int = 0, stall: float = 0.0) -> None:
        """A frame in full."""
        for at in range(0, len(frame), self.bytes):
            while random.random() < stall:
                await self.quiet()
            end = at + self.bytes >= len(frame)
            await self.beat(frame[at : at + self.bytes], at == 0, end, error if end else random.randrange(2) if error else 0)


class Sink:
    """Takes frames from `name`_*, and checks the protocol: starts and ends in turn, and no empty symbols but at an end."""

    def __init__(self, dut: Any, name: str, width: int, stall: float = 0.0) -> None:
        self.dut, self.name, self.bytes, self.stall = dut, name, width // 8, stall
        self.frames: list[tuple[bytes, bool]] = []
        self._signal("ready").value = 0
        cocotb.start_soon(self._run())

    def _signal(self, signal: str) -> Any:
        return getattr(self.dut, f"{self.name}_{signal}")

    async def _run(self) -> None:
        data = bytearray()
        while True:
            await FallingEdge(self.dut.clk)
            self._signal("ready").value = int(random.random() >= self.stall)
            await RisingEdge(self.dut.clk)
            if not (int(self._signal("valid").value) and int(self._signal("ready").value)):
                continue
            start, end, empty = (int(self._signal(name).value) for name in ("startofpacket", "endofpacket", "empty"))
            assert bool(start) == (not data)
            assert end or not empty
            data += int(self._signal("data").value).to_bytes(self.bytes, "big")[: self.bytes - empty]
            if end:
                self.frames.append((bytes(data), bool(int(self._signal("error").value))))
                data = bytearray()
