# SPDX-License-Identifier: Apache-2.0
"""Drivers and monitors for the streams of a module under test, with random stalls from the simulator's seed.

A driver handles whole integers a cycle (fast enough at 512 bits) and owns no simulated time beyond its clock.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import cocotb
from cocotb.clock import Clock
from cocotb.handle import SimHandleBase
from cocotb.triggers import Event, FallingEdge, RisingEdge, with_timeout

from .svtypes import Struct, struct

CLOCK_NS = 4


async def start(dut: SimHandleBase, cycles: int = 3) -> None:
    """Starts the 250 MHz clock and resets. Drivers must exist already: they hold their signals quiet in reset."""
    dut.rst.value = 1
    cocotb.start_soon(Clock(dut.clk, CLOCK_NS, unit="ns").start())
    for _ in range(cycles):
        await RisingEdge(dut.clk)
    await FallingEdge(dut.clk)
    dut.rst.value = 0


async def wait_cycles(dut: SimHandleBase, cycles: int) -> None:
    """Lets `cycles` rising edges pass."""
    for _ in range(cycles):
        await RisingEdge(dut.clk)


def stalls(probability: float, rng: random.Random | None = None) -> Iterator[bool]:
    """True with `probability` in each cycle: "stall now"."""
    rng = rng or random.Random(random.getrandbits(64))
    while True:
        yield rng.random() < probability


class _Driver:
    """Presents items one after another on valid/ready, stalling at will. Signals change just after the falling edge."""

    def __init__(self, dut: SimHandleBase, valid: str, ready: str, stall: float) -> None:
        self.clk = dut.clk
        self._rst = dut.rst
        self._valid = getattr(dut, valid)
        self._ready = getattr(dut, ready)
        self._valid.value = 0
        self.stall = stall
        self._queue: deque[Any] = deque()
        self._idle = Event()
        self._idle.set()
        self.sent = 0
        cocotb.start_soon(self._run())

    def _present(self, item: Any) -> None:
        raise NotImplementedError

    async def _run(self) -> None:
        rng = random.Random(random.getrandbits(64))
        pending = False
        while True:
            await FallingEdge(self.clk)
            if not pending and self._queue and not int(self._rst.value) and rng.random() >= self.stall:
                self._present(self._queue[0])
                self._valid.value = 1
                pending = True
            elif not pending:
                self._valid.value = 0
            await RisingEdge(self.clk)
            if pending and int(self._ready.value):
                self._queue.popleft()
                self.sent += 1
                pending = False
                if not self._queue:
                    self._idle.set()

    def _enqueue(self, item: Any) -> None:
        self._queue.append(item)
        self._idle.clear()

    @property
    def busy(self) -> bool:
        """Something sent was not taken yet."""
        return bool(self._queue)

    async def drained(self, timeout_cycles: int = 100_000) -> None:
        """Waits until everything sent was taken."""
        if self._queue:
            await with_timeout(self._idle.wait(), timeout_cycles * CLOCK_NS, "ns")


class _Monitor:
    """Takes items with random back-pressure."""

    def __init__(self, dut: SimHandleBase, valid: str, ready: str, stall: float) -> None:
        self.clk = dut.clk
        self._rst = dut.rst
        self._valid = getattr(dut, valid)
        self._ready = getattr(dut, ready)
        self._ready.value = 0
        self.stall = stall
        self.cycle = 0
        self._arrived = Event()
        cocotb.start_soon(self._run())

    def _take(self) -> None:
        raise NotImplementedError

    async def _run(self) -> None:
        rng = random.Random(random.getrandbits(64))
        while True:
            await FallingEdge(self.clk)
            ready = not int(self._rst.value) and rng.random() >= self.stall
            self._ready.value = int(ready)
            await RisingEdge(self.clk)
            self.cycle += 1
            if ready and int(self._valid.value):
                self._take()
                self._arrived.set()

    async def _wait(self, satisfied: Callable[[], bool], timeout_cycles: int) -> None:
        async def poll() -> None:
            while not satisfied():
                self._arrived.clear()
                await self._arrived.wait()

        await with_timeout(poll(), timeout_cycles * CLOCK_NS, "ns")


class StreamSource(_Driver):
    """Drives a `stream_if.sink` port. `type` names the struct; values are packed by field name."""

    def __init__(self, dut: SimHandleBase, name: str, type: str, stall: float = 0.0) -> None:
        self.struct: Struct = struct(type)
        self._data = getattr(dut, f"{name}_data")
        super().__init__(dut, f"{name}_valid", f"{name}_ready", stall)

    def _present(self, item: int) -> None:
        self._data.value = item

    def send(self, value: Any = None, **fields: Any) -> None:
        """Queues one value: an integer, or fields by name."""
        self._enqueue(self.struct.pack(value, **fields))


class StreamSink(_Monitor):
    """Takes from a `stream_if.source` port into `received` (unpacked), with the cycle of each in `cycles`."""

    def __init__(self, dut: SimHandleBase, name: str, type: str, stall: float = 0.0) -> None:
        self.struct: Struct = struct(type)
        self._data = getattr(dut, f"{name}_data")
        self.received: deque[Any] = deque()
        self.cycles: deque[int] = deque()
        super().__init__(dut, f"{name}_valid", f"{name}_ready", stall)

    def _take(self) -> None:
        self.received.append(self.struct.unpack(int(self._data.value)))
        self.cycles.append(self.cycle)

    async def recv(self, timeout_cycles: int = 20_000) -> Any:
        """The next value; fails after `timeout_cycles`."""
        await self._wait(lambda: bool(self.received), timeout_cycles)
        self.cycles.popleft()
        return self.received.popleft()


class AxisSource(_Driver):
    """Drives packets into an `axis_if.sink` port, one beat a cycle."""

    def __init__(self, dut: SimHandleBase, name: str, stall: float = 0.0) -> None:
        self._signals = [getattr(dut, f"{name}_{s}") for s in ("tdata", "tkeep", "tlast", "tuser")]
        self.bytes_per_beat = len(self._signals[0]) // 8
        super().__init__(dut, f"{name}_tvalid", f"{name}_tready", stall)

    def _present(self, item: tuple[int, int, int, int]) -> None:
        for signal, value in zip(self._signals, item, strict=True):
            signal.value = value

    def send(self, packet: bytes, bad: bool = False) -> None:
        """Queues one packet; `bad` sets tuser in its last beat."""
        if not packet:
            raise ValueError("a packet has at least one byte")
        step = self.bytes_per_beat
        for start_ in range(0, len(packet), step):
            chunk = packet[start_ : start_ + step]
            last = start_ + step >= len(packet)
            self._enqueue((int.from_bytes(chunk, "little"), (1 << len(chunk)) - 1, int(last), int(bad and last)))


class AxisSink(_Monitor):
    """Collects packets from an `axis_if.source` port: `packets` holds (bytes, tuser); checks tkeep as it goes.

    `beats` counts the beats taken, `spans` the (first, last) beat's cycle of each packet.
    """

    def __init__(self, dut: SimHandleBase, name: str, stall: float = 0.0) -> None:
        self._signals = [getattr(dut, f"{name}_{s}") for s in ("tdata", "tkeep", "tlast", "tuser")]
        self.bytes_per_beat = len(self._signals[0]) // 8
        self.packets: deque[tuple[bytes, int]] = deque()
        self.spans: deque[tuple[int, int]] = deque()
        self.beats = 0
        self._partial = bytearray()
        self._first = 0
        super().__init__(dut, f"{name}_tvalid", f"{name}_tready", stall)

    def _take(self) -> None:
        data, keep, last, user = (int(signal.value) for signal in self._signals)
        count = keep.bit_count()
        assert keep == (1 << count) - 1, f"tkeep {keep:#x} is not contiguous from bit 0"
        assert count > 0, "a beat without a byte"
        assert last or count == self.bytes_per_beat, f"tkeep {keep:#x} is not full before the last beat"
        if not self._partial:
            self._first = self.cycle
        self._partial += data.to_bytes(self.bytes_per_beat, "little")[:count]
        self.beats += 1
        if last:
            self.packets.append((bytes(self._partial), user))
            self.spans.append((self._first, self.cycle))
            self._partial.clear()

    async def recv(self, timeout_cycles: int = 20_000) -> bytes:
        """The next good packet; fails after `timeout_cycles` or if the packet is marked bad."""
        await self._wait(lambda: bool(self.packets), timeout_cycles)
        self.spans.popleft()
        packet, user = self.packets.popleft()
        assert not user, "packet marked bad"
        return packet
