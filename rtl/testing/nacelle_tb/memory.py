# SPDX-License-Identifier: Apache-2.0
"""A memory behind an `axi_if.master` port: content as bytes, with latency, stalls, errors and reordering between IDs.

It holds the module to the rules of AXI4 (AMBA IHI 0022) as it goes: payload stable while waiting, no burst over 4 KiB,
WLAST where the address said, no byte written outside of the burst.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

import cocotb
from cocotb.handle import SimHandleBase
from cocotb.triggers import FallingEdge, First, RisingEdge

from .streams import QUIET, Cycles, _Driver, _Monitor

OKAY, SLVERR, DECERR = 0, 2, 3


@dataclass
class Burst:
    """One burst: `addr` of its first byte, `length` in beats."""

    addr: int
    ident: int
    length: int
    due: int = 0  # cycle of its first response
    beat: int = 0
    error: int = OKAY


@dataclass
class MemoryStats:
    """What passed so far. `cycles` are those of the memory's own count."""

    read_bursts: int = 0
    write_bursts: int = 0
    read_beats: int = 0
    write_beats: int = 0
    most_reads: int = 0  # read bursts outstanding at once
    most_writes: int = 0
    write_beat_cycles: list[int] = field(default_factory=list)
    read_beat_cycles: list[int] = field(default_factory=list)


class AxiMemory:
    """Memory of `size` bytes at address `base`; anything else answers DECERR. `content` is its bytes.

    latency: cycles from an address (for a write: from WLAST) to its first response, at least 1, a number or (least, most).
    stall: probability that a channel pauses in a cycle. reorder: bursts of different IDs may overtake each other,
    their read beats interleave.
    errors: list of (first, last) addresses that answer SLVERR; reads there return ones, writes there do nothing.
    noise: responses are random while they are not valid: they must mean nothing.
    on_write: called with the address and the bytes of each whole beat that is written.
    """

    def __init__(
        self,
        dut: SimHandleBase,
        name: str,
        size: int = 1 << 20,
        base: int = 0,
        latency: int | tuple[int, int] = 1,
        stall: float = 0.0,
        reorder: bool = False,
        noise: bool = False,
    ) -> None:
        self.clk, self._rst = dut.clk, dut.rst
        self.base = base
        self.content = bytearray(size)
        self.errors: list[tuple[int, int]] = []
        self.on_write: Callable[[int, bytes], None] = lambda addr, data: None
        self.latency = (latency, latency) if isinstance(latency, int) else latency
        self.stall = stall
        self.reorder = reorder
        self.noise = noise
        self.stats = MemoryStats()
        self._cycles = Cycles()
        for channel, signals in {
            "aw": ("awaddr", "awid", "awlen", "awvalid", "awready"),
            "w": ("wdata", "wstrb", "wlast", "wvalid", "wready"),
            "b": ("bid", "bresp", "bvalid", "bready"),
            "ar": ("araddr", "arid", "arlen", "arvalid", "arready"),
            "r": ("rdata", "rid", "rresp", "rlast", "rvalid", "rready"),
        }.items():
            setattr(self, f"_{channel}", [getattr(dut, f"{name}_{signal}") for signal in signals])
        self.bytes_per_beat = len(self._w[1])
        self._reads: deque[Burst] = deque()
        self._writes: deque[Burst] = deque()  # addresses whose data is not in yet
        self._early: deque[tuple[int, int, int]] = deque()  # data that came before its address
        self._acks: deque[Burst] = deque()
        self._waiting: dict[str, tuple[int, ...]] = {}
        for signal in (self._aw[-1], self._w[-1], self._b[-2], self._ar[-1], self._r[-2]):
            signal.value = 0
        self._task = cocotb.start_soon(self._run())

    @property
    def cycle(self) -> int:
        """Rising edges since the clock began."""
        return self._cycles.now

    def read(self, addr: int, length: int) -> bytes:
        """`length` bytes at `addr`."""
        return bytes(self.content[addr - self.base : addr - self.base + length])

    def write(self, addr: int, data: bytes) -> None:
        """Puts `data` at `addr`."""
        assert self.base <= addr and addr + len(data) <= self.base + len(self.content)
        self.content[addr - self.base : addr - self.base + len(data)] = data

    def outstanding(self) -> int:
        """Bursts not answered yet."""
        return len(self._reads) + len(self._writes) + len(self._acks)

    # ---- the rules ----

    def _stable(self, channel: str, valid: bool, ready: bool, payload: tuple[int, ...]) -> None:
        before = self._waiting.pop(channel, None)
        if before is not None:
            assert valid, f"{channel}: valid was withdrawn"
            assert payload == before, f"{channel}: payload changed while waiting"
        if valid and not ready:
            self._waiting[channel] = payload

    def _burst(self, addr: int, ident: int, length: int) -> Burst:
        step = self.bytes_per_beat
        end = addr // step * step + (length + 1) * step
        assert addr // 4096 == (end - 1) // 4096, f"burst at {addr:#x} of {length + 1} beats crosses 4 KiB"
        return Burst(addr, ident, length + 1, self.cycle + random.randint(*self.latency))

    def _status(self, addr: int) -> int:
        if not self.base <= addr < self.base + len(self.content):
            return DECERR
        if self.errors and any(first < addr + self.bytes_per_beat and addr <= last for first, last in self.errors):
            return SLVERR
        return OKAY

    # ---- effects ----

    def _store(self, burst: Burst, data: int, strb: int, last: int) -> None:
        step = self.bytes_per_beat
        lane = burst.addr % step if burst.beat == 0 else 0
        at = burst.addr // step * step + burst.beat * step
        burst.beat += 1
        assert last == (burst.beat == burst.length), f"WLAST at beat {burst.beat} of {burst.length}"
        assert strb & ((1 << lane) - 1) == 0, f"write at {burst.addr:#x} strobes bytes below its address"
        status = self._status(at)
        burst.error = max(burst.error, status)
        if status == OKAY:
            raw = data.to_bytes(step, "little")
            offset = at - self.base
            if strb == (1 << step) - 1:
                self.content[offset : offset + step] = raw
                self.on_write(at, raw)
            else:
                for i in range(step):
                    if strb >> i & 1:
                        self.content[offset + i] = raw[i]
        if last:
            self._writes.popleft()
            burst.due = self.cycle + random.randint(*self.latency)
            self._acks.append(burst)
            self.stats.write_bursts += 1

    def _next(self, queue: deque[Burst]) -> Burst | None:
        """A burst whose time has come: the oldest, or with `reorder` the oldest of any ID."""
        if not queue:
            return None
        if not self.reorder:
            return queue[0] if queue[0].due <= self.cycle + 1 else None
        oldest: dict[int, Burst] = {}
        for burst in queue:
            oldest.setdefault(burst.ident, burst)
        due = [burst for burst in oldest.values() if burst.due <= self.cycle + 1]
        return random.choice(due) if due else None

    def _load(self, burst: Burst) -> tuple[int, int, int, int]:
        step = self.bytes_per_beat
        at = burst.addr // step * step + burst.beat * step
        status = self._status(at)
        offset = at - self.base
        data = int.from_bytes(self.content[offset : offset + step], "little") if status == OKAY else (1 << 8 * step) - 1
        return data, burst.ident, status, int(burst.beat + 1 == burst.length)

    async def _run(self) -> None:
        rng = random.Random(random.getrandbits(64))
        ack: Burst | None = None
        beat: Burst | None = None
        quiet = 0
        asking = self._aw[3], self._w[3], self._ar[3]
        controls = self._aw[-1], self._w[-1], self._ar[-1], self._b[2], self._r[4]
        shown = [0] * len(controls)
        while True:
            await FallingEdge(self.clk)
            reset = int(self._rst.value)
            ready = [0, 0, 0] if reset else [int(rng.random() >= self.stall) for _ in range(3)]
            if ack is None and (self.stall == 0 or rng.random() >= self.stall) and (ack := self._next(self._acks)):
                self._b[0].value, self._b[1].value = ack.ident, ack.error
            if beat is None and (self.stall == 0 or rng.random() >= self.stall):
                beat = self._next(self._reads)
                if beat is not None:
                    for signal, value in zip(self._r[:4], self._load(beat), strict=True):
                        signal.value = value
            values = [*ready, int(ack is not None), int(beat is not None)]
            if self.noise:
                for signals, now, before in ((self._b[:2], values[3], shown[3]), (self._r[:4], values[4], shown[4])):
                    for signal in signals if before and not now else ():
                        signal.value = rng.getrandbits(len(signal))
            if values != shown:
                for signal, value, before in zip(controls, values, shown, strict=True):
                    if value != before:
                        signal.value = value
                shown = values
            if quiet > QUIET and not any(int(valid.value) for valid in asking):
                await First(*(RisingEdge(valid) for valid in asking))
                quiet = 0
                if int(self.clk.value):  # called at the clock edge: there is a new choice before it can be taken
                    continue

            await RisingEdge(self.clk)
            self._cycles.begin()
            valids = [int(valid.value) for valid in asking]
            asked = any(valids)
            quiet = 0 if asked or self._early or self.outstanding() else quiet + 1
            if reset:
                continue
            if asked or self._waiting:
                self._rise(valids, ready)
            if ack is not None and int(self._b[3].value):
                self._acks.remove(ack)
                ack = None
            if beat is not None and int(self._r[5].value):
                beat.beat += 1
                self.stats.read_beats += 1
                self.stats.read_beat_cycles.append(self.cycle)
                if beat.beat == beat.length:
                    self._reads.remove(beat)
                    self.stats.read_bursts += 1
                beat = None

    def _rise(self, valids: list[int], ready: list[int]) -> None:
        if valids[0]:
            addr, ident, length = (int(signal.value) for signal in self._aw[:3])
            self._stable("AW", True, bool(ready[0]), (addr, ident, length))
            if ready[0]:
                self._writes.append(self._burst(addr, ident, length))
                self.stats.most_writes = max(self.stats.most_writes, len(self._writes) + len(self._acks))
        elif "AW" in self._waiting:
            self._stable("AW", False, bool(ready[0]), ())
        if valids[1]:
            payload = tuple(int(signal.value) for signal in self._w[:3])
            self._stable("W", True, bool(ready[1]), payload)
            if ready[1]:
                self._early.append(payload)
                self.stats.write_beats += 1
                self.stats.write_beat_cycles.append(self.cycle)
        elif "W" in self._waiting:
            self._stable("W", False, bool(ready[1]), ())
        while self._early and self._writes:
            self._store(self._writes[0], *self._early.popleft())
        if valids[2]:
            addr, ident, length = (int(signal.value) for signal in self._ar[:3])
            self._stable("AR", True, bool(ready[2]), (addr, ident, length))
            if ready[2]:
                self._reads.append(self._burst(addr, ident, length))
                self.stats.most_reads = max(self.stats.most_reads, len(self._reads))
        elif "AR" in self._waiting:
            self._stable("AR", False, bool(ready[2]), ())


class AxiDriver:
    """Drives an `axi_if.slave` port with bursts of full beats; takes its responses, with random stalls."""

    def __init__(self, dut: SimHandleBase, name: str, stall: float = 0.0) -> None:
        self.stall = stall
        self.bytes_per_beat = len(getattr(dut, f"{name}_wdata")) // 8
        self._aw = _Channel(dut, name, ("awaddr", "awid", "awlen"), "aw", stall)
        self._w = _Channel(dut, name, ("wdata", "wstrb", "wlast"), "w", stall)
        self._ar = _Channel(dut, name, ("araddr", "arid", "arlen"), "ar", stall)
        self._b = _Taker(dut, name, ("bid", "bresp"), "b", stall, self._answered)
        self._r = _Taker(dut, name, ("rid", "rdata", "rresp", "rlast"), "r", stall, self._beat)
        self.results: deque[tuple[int, bytes, int]] = deque()
        self.answers = 0
        self.write_errors = 0
        self.asked_writes = 0
        self._partial: dict[int, tuple[bytearray, int]] = {}
        self._reads: dict[int, deque[int]] = {}

    def write(self, addr: int, data: bytes, ident: int = 0, strobes: int | None = None) -> None:
        """One burst of whole beats. `strobes`: of all its bytes, the first the lowest."""
        step = self.bytes_per_beat
        beats = len(data) // step
        whole = (1 << step) - 1
        self._aw.send(addr, ident, beats - 1)
        for i in range(beats):
            chunk = int.from_bytes(data[i * step : (i + 1) * step], "little")
            self._w.send(chunk, whole if strobes is None else strobes >> i * step & whole, int(i == beats - 1))
        self.asked_writes += 1

    def read(self, addr: int, beats: int, ident: int = 0) -> None:
        """Issues one burst."""
        self._reads.setdefault(ident, deque()).append(beats)
        self._ar.send(addr, ident, beats - 1)

    async def read_result(self, timeout_cycles: int = 20_000) -> tuple[int, bytes, int]:
        """The next burst that came back: (ID, data, worst response)."""
        await self._r.wait(lambda: bool(self.results), timeout_cycles)
        return self.results.popleft()

    async def writes_answered(self, timeout_cycles: int = 20_000) -> None:
        """Waits for the response of every write so far."""
        await self._b.wait(lambda: self.answers == self.asked_writes, timeout_cycles)

    def _answered(self, ident: int, resp: int) -> None:
        self.answers += 1
        self.write_errors += int(resp != OKAY)

    def _beat(self, ident: int, data: int, resp: int, last: int) -> None:
        got, worst = self._partial.setdefault(ident, (bytearray(), OKAY))
        got += data.to_bytes(self.bytes_per_beat, "little")
        self._partial[ident] = (got, max(worst, resp))
        wanted = self._reads[ident][0]
        assert last == (len(got) == wanted * self.bytes_per_beat), "RLAST is not where ARLEN says"
        if last:
            self._reads[ident].popleft()
            got, worst = self._partial.pop(ident)
            self.results.append((ident, bytes(got), worst))


class _Channel(_Driver):
    def __init__(self, dut: SimHandleBase, name: str, signals: tuple[str, ...], prefix: str, stall: float) -> None:
        self._signals = [getattr(dut, f"{name}_{signal}") for signal in signals]
        super().__init__(dut, f"{name}_{prefix}valid", f"{name}_{prefix}ready", stall)

    def _present(self, item: tuple[int, ...]) -> None:
        for signal, value in zip(self._signals, item, strict=True):
            signal.value = value

    def send(self, *values: int) -> None:
        self._enqueue(values)


class _Taker(_Monitor):
    def __init__(
        self, dut: SimHandleBase, name: str, signals: tuple[str, ...], prefix: str, stall: float, take: Callable[..., None]
    ) -> None:
        self._signals = [getattr(dut, f"{name}_{signal}") for signal in signals]
        self._handler = take
        super().__init__(dut, f"{name}_{prefix}valid", f"{name}_{prefix}ready", stall)

    def _take(self) -> None:
        self._handler(*(int(signal.value) for signal in self._signals))

    async def wait(self, satisfied: Callable[[], bool], timeout_cycles: int) -> None:
        await self._wait(satisfied, timeout_cycles)
