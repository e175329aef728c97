# SPDX-License-Identifier: Apache-2.0
"""Drivers and monitors for the streams of a module under test, with random stalls from the simulator's seed.

A driver handles whole integers a cycle (fast enough at 512 bits) and owns no simulated time beyond its clock. Python costs more
than the simulated module: a driver sleeps while it has nothing to send, a monitor when nothing came for QUIET cycles.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import Any

import cocotb
from cocotb.clock import Clock
from cocotb.handle import SimHandleBase
from cocotb.simtime import get_sim_time
from cocotb.triggers import Event, FallingEdge, RisingEdge, Timer, ValueChange, with_timeout
from cocotb.utils import get_sim_steps

from .svtypes import Struct, struct
from .values import whole

CLOCK_NS = 4
QUIET = 16
whole()


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
    if cycles > 2:
        await RisingEdge(dut.clk)
        await Timer((cycles - 2) * CLOCK_NS + CLOCK_NS // 2, "ns")
        cycles = 1
    for _ in range(cycles):
        await RisingEdge(dut.clk)


async def pulses(clk: SimHandleBase, signal: SimHandleBase) -> AsyncIterator[int]:
    """The values of a signal at rising edges, without zeros: it sleeps while the signal is 0."""
    while True:
        if not int(signal.value):
            await ValueChange(signal)
        await RisingEdge(clk)
        if word := int(signal.value):
            yield word


async def cycles(dut: SimHandleBase, begin: Sequence[str], end: str) -> int:
    """Cycles from the one in which all of `begin` are high, a hand-shake, to the first after it in which `end` is."""
    await RisingEdge(dut.clk)
    while not all(int(getattr(dut, name).value) for name in begin):
        await RisingEdge(dut.clk)
    count = 0
    while count == 0 or not int(getattr(dut, end).value):
        await RisingEdge(dut.clk)
        count += 1
    return count


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
        self._work = Event()
        self._idle = Event()
        self._idle.set()
        self.sent = 0
        cocotb.start_soon(self._run())

    def _present(self, item: Any) -> None:
        raise NotImplementedError

    def _withdraw(self, rng: random.Random) -> None:
        """Nothing is presented in this cycle."""
        self._valid.value = 0

    async def _run(self) -> None:
        rng = random.Random(random.getrandbits(64))
        while True:
            await FallingEdge(self.clk)
            if not self._queue:
                self._withdraw(rng)
                self._work.clear()
                await self._work.wait()
                continue
            if int(self._rst.value) or rng.random() < self.stall:
                self._withdraw(rng)
                continue
            self._present(self._queue[0])
            self._valid.value = 1
            await RisingEdge(self.clk)
            while not int(self._ready.value):
                await RisingEdge(self._ready)
                await RisingEdge(self.clk)
            self._queue.popleft()
            self.sent += 1
            if not self._queue:
                self._idle.set()

    def _enqueue(self, item: Any) -> None:
        self._queue.append(item)
        self._idle.clear()
        self._work.set()

    @property
    def busy(self) -> bool:
        """Something sent was not taken yet."""
        return bool(self._queue)

    async def drained(self, timeout_cycles: int = 100_000) -> None:
        """Waits until everything sent was taken."""
        if self._queue:
            await with_timeout(self._idle.wait(), timeout_cycles * CLOCK_NS, "ns")


class Cycles:
    """Counts rising edges by the time that has passed, so that a sleeper counts too. `begin` belongs after the first edge."""

    def __init__(self) -> None:
        self._first: int | None = None  # in steps of the simulator, as the rest
        self._period = get_sim_steps(CLOCK_NS, "ns")

    def begin(self) -> None:
        """This edge is number 1, unless an earlier one was."""
        if self._first is None:
            self._first = get_sim_time()

    @property
    def now(self) -> int:
        """Edges so far."""
        return 0 if self._first is None else (get_sim_time() - self._first) // self._period + 1


class _Monitor:
    """Takes items with random back-pressure."""

    def __init__(self, dut: SimHandleBase, valid: str, ready: str, stall: float) -> None:
        self.clk = dut.clk
        self._rst = dut.rst
        self._valid = getattr(dut, valid)
        self._ready = getattr(dut, ready)
        self._ready.value = 0
        self._stall = stall
        self._rng = random.Random(random.getrandbits(64))
        self._cycles = Cycles()
        self._asleep = False
        self._arrived = Event()
        self._task = cocotb.start_soon(self._run())

    @property
    def stall(self) -> float:
        """Probability of back-pressure in a cycle; takes effect from the next cycle on."""
        return self._stall

    @stall.setter
    def stall(self, probability: float) -> None:
        self._stall = probability
        if self._asleep:
            self._task.cancel()
            self._task = cocotb.start_soon(self._run())

    @property
    def cycle(self) -> int:
        """Rising edges since the clock began."""
        return self._cycles.now

    def _take(self) -> None:
        raise NotImplementedError

    async def _run(self) -> None:
        quiet, shown = 0, None
        while True:
            self._asleep = False
            await FallingEdge(self.clk)
            ready = not int(self._rst.value) and self._rng.random() >= self._stall
            if ready != shown:
                self._ready.value = int(ready)
                shown = ready
            if quiet > QUIET and not int(self._valid.value):
                self._asleep = True
                await RisingEdge(self._valid)
                quiet = 0
                if int(self.clk.value):  # it rose with the clock: there is a new choice before it can be taken
                    continue
            await RisingEdge(self.clk)
            self._cycles.begin()
            valid = int(self._valid.value)
            quiet = 0 if valid else quiet + 1
            if ready and valid:
                self._take()
                self._arrived.set()

    async def _wait(self, satisfied: Callable[[], bool], timeout_cycles: int) -> None:
        if satisfied():
            return

        async def poll() -> None:
            while not satisfied():
                self._arrived.clear()
                await self._arrived.wait()

        await with_timeout(poll(), timeout_cycles * CLOCK_NS, "ns")


class StreamSource(_Driver):
    """Drives a `stream_if.sink` port. `type` names the struct; values are packed by field name. With `noise` the data is random
    while it is not valid: it must mean nothing."""

    def __init__(self, dut: SimHandleBase, name: str, type: str, stall: float = 0.0, noise: bool = False) -> None:
        self.struct: Struct = struct(type)
        self._noise = noise
        self._data = getattr(dut, f"{name}_data")
        super().__init__(dut, f"{name}_valid", f"{name}_ready", stall)

    def _present(self, item: int) -> None:
        self._data.value = item

    def _withdraw(self, rng: random.Random) -> None:
        super()._withdraw(rng)
        if self._noise:
            self._data.value = rng.getrandbits(len(self._data))

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
    """Drives packets into an `axis_if.sink` port, one beat a cycle. `noise`: see StreamSource."""

    def __init__(self, dut: SimHandleBase, name: str, stall: float = 0.0, noise: bool = False) -> None:
        self._noise = noise
        self._signals = [getattr(dut, f"{name}_{s}") for s in ("tdata", "tkeep", "tlast", "tuser")]
        self.bytes_per_beat = len(self._signals[0]) // 8
        super().__init__(dut, f"{name}_tvalid", f"{name}_tready", stall)

    def _present(self, item: tuple[int, int, int, int]) -> None:
        for signal, value in zip(self._signals, item, strict=True):
            signal.value = value

    def _withdraw(self, rng: random.Random) -> None:
        super()._withdraw(rng)
        if self._noise:
            for signal in self._signals:
                signal.value = rng.getrandbits(len(signal))

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
