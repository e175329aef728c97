# SPDX-License-Identifier: Apache-2.0
"""A line between two simulated devices that shows every RoCE packet and drops exactly those that a test selects."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from .peer import ACKNOWLEDGE, Packet, parse
from .session import SimDevice

STEP = 8  # cycles: how late a frame may be handed on


@dataclass(frozen=True)
class Passed:
    """A packet on its way."""

    sender: int
    """0 or 1"""
    packet: Packet
    first_beat: int
    arrives: int
    """when its last beat is at the other device; also of a lost one"""
    lost: bool

    @property
    def request(self) -> bool:
        """No acknowledgement."""
        return self.packet.opcode != ACKNOWLEDGE

    @property
    def nak(self) -> bool:
        """A PSN sequence error."""
        return not self.request and self.packet.syndrome >> 5 == 3


class Tap:
    """Stands in for nacelle_sim.Line in a Pair. `lose` says of each packet whether it is lost; `passed` has all that were sent."""

    def __init__(self, a: SimDevice, b: SimDevice, *, delay_cycles: int = 0) -> None:
        self.lose: Callable[[int, Packet], bool] = lambda sender, packet: False
        self.passed: list[Passed] = []
        self._ends = (a, b)
        self._delay = delay_cycles
        self._under_way: tuple[deque[tuple[int, bytes]], ...] = (deque(), deque())  # by receiver

    def close(self) -> None:
        """Nothing to release."""

    def step(self, cycles: int) -> None:
        """Runs both devices."""
        while cycles > 0:
            for end in self._ends:
                end.step(min(STEP, cycles))
            cycles -= STEP
            for sender, end in enumerate(self._ends):
                while (sent := end.pull()) is not None:
                    arrives = sent.last_beat + self._delay
                    packet = parse(sent.frame)
                    lost = packet is not None and self.lose(sender, packet)
                    if packet is not None:
                        self.passed.append(Passed(sender, packet, sent.first_beat, arrives, lost))
                    if not lost:
                        self._under_way[1 - sender].append((arrives, sent.frame))
            for end, frames in zip(self._ends, self._under_way, strict=True):
                while frames and frames[0][0] <= end.stats.cycles:
                    end.send(frames.popleft()[1])
