# SPDX-License-Identifier: Apache-2.0
"""The code of rtl/memory/ecc_pkg.sv, and a memory that stores it."""

from __future__ import annotations

import random
from collections import deque
from dataclasses import dataclass

from cocotb.handle import SimHandleBase

from .memory import OKAY, AxiMemory, Burst

WORD = 8  # bytes, with a byte of check bits
COLUMNS = [value for value in range(256) if value.bit_count() == 3] + [0x1F1F >> turn & 0xFF for turn in range(8)]


def encode(word: bytes) -> int:
    """The check bits of 8 bytes."""
    check, value = 0, int.from_bytes(word, "little")
    for i, column in enumerate(COLUMNS):
        if value >> i & 1:
            check ^= column
    return check


@dataclass
class _Write:
    burst: Burst
    line: int
    data: bytes
    strobes: int


class EccMemory(AxiMemory):
    """A memory behind an `axi_ecc`: `content` and, a byte for each word of it, `checks`. All zeros at first.

    It is as late as AXI allows: a write is seen from its response on, and a read gives what was there when it was requested.
    """

    def __init__(self, dut: SimHandleBase, name: str, size: int, **timing: object) -> None:
        super().__init__(dut, name, size, **timing)
        self.beat_w = len(self._w[0])
        self.bytes_per_beat = self.beat_w // (8 * (WORD + 1)) * WORD
        self.checks = bytearray(size // WORD)
        self._unseen: deque[_Write] = deque()
        self._given: dict[int, list[tuple[bytes, bytes]]] = {}

    def write(self, addr: int, data: bytes) -> None:
        super().write(addr, data)
        for at in range(addr // WORD * WORD, addr + len(data), WORD):
            self.checks[at // WORD] = encode(self.read(at, WORD))

    def flip(self, addr: int, bits: int) -> None:
        """Flips bits of the word at `addr`: 0 to 63 its data, 64 to 71 its check bits."""
        word = int.from_bytes(self.read(addr, WORD), "little") ^ bits & (1 << 64) - 1
        self.content[addr : addr + WORD] = word.to_bytes(WORD, "little")
        self.checks[addr // WORD] ^= bits >> 64

    def sound(self) -> bool:
        """Each word has its check bits."""
        return all(self.checks[at // WORD] == encode(self.read(at, WORD)) for at in range(0, len(self.content), WORD))

    def _burst(self, addr: int, ident: int, length: int) -> Burst:
        burst = super()._burst(addr, ident, length)
        step, line = self.bytes_per_beat, addr // self.bytes_per_beat * self.bytes_per_beat
        content = bytes(self.content[line : line + burst.length * step])
        checks = bytes(self.checks[line // WORD : (line + burst.length * step) // WORD])
        words = step // WORD
        self._given[id(burst)] = [
            (content[i * step : (i + 1) * step], checks[i * words : (i + 1) * words]) for i in range(burst.length)
        ]
        return burst

    def _store(self, burst: Burst, data: int, strb: int, last: int) -> None:
        step = self.bytes_per_beat
        line = burst.addr // step * step + burst.beat * step
        burst.beat += 1
        assert last == (burst.beat == burst.length), f"WLAST at beat {burst.beat} of {burst.length}"
        burst.error = max(burst.error, self._status(line))
        for i in range(step // WORD):
            strobes = strb >> i * WORD & 0xFF, strb >> step + i & 1
            assert strobes in ((0, 0), (0xFF, 1)), f"word {i}: strobes {strobes}"
        self._unseen.append(_Write(burst, line, data.to_bytes(self.beat_w // 8, "little"), strb))
        if last:
            self._writes.popleft()
            self._given.pop(id(burst))
            burst.due = self.cycle + random.randint(*self.latency)
            self._acks.append(burst)
            self.stats.write_bursts += 1

    def _next(self, queue: deque[Burst]) -> Burst | None:
        burst = super()._next(queue)
        while queue is self._acks and burst and self._unseen and self._unseen[0].burst is burst:
            write, step = self._unseen.popleft(), self.bytes_per_beat
            for i in range(step // WORD if self._status(write.line) == OKAY else 0):
                if write.strobes >> step + i & 1:
                    at = write.line + i * WORD
                    self.content[at : at + WORD] = write.data[i * WORD : (i + 1) * WORD]
                    self.checks[at // WORD] = write.data[step + i]
        return burst

    def _load(self, burst: Burst) -> tuple[int, int, int, int]:
        line = burst.addr // self.bytes_per_beat * self.bytes_per_beat + burst.beat * self.bytes_per_beat
        status, last = self._status(line), int(burst.beat + 1 == burst.length)
        content, checks = self._given[id(burst)][burst.beat] if status == OKAY else (b"\xff" * (self.beat_w // 8), b"")
        if last:
            self._given.pop(id(burst))
        return int.from_bytes(content + checks, "little"), burst.ident, status, last
