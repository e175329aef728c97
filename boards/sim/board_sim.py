# SPDX-License-Identifier: Apache-2.0
"""A board's netlist, simulated: frames by its pins. It has what nacelle_tb.session.Network needs of a device."""

from __future__ import annotations

import ctypes as c
from pathlib import Path

from nacelle_sim import Sent, Stats

LONGEST = 9216


class BoardDevice:
    """One board, its clocks running. Nothing happens but in step()."""

    def __init__(self, library: Path, seed: int = 1) -> None:
        self._lib = lib = c.CDLL(str(library))
        lib.board_create.restype = c.c_void_p
        lib.board_step.restype = lib.board_pull.restype = lib.board_bad_frames.restype = c.c_uint64
        self._board = c.c_void_p(lib.board_create(c.c_uint64(seed)))
        self._buffer = c.create_string_buffer(LONGEST)
        self.cycles = 0

    def send(self, frame: bytes) -> None:
        """Queues a frame for the pins."""
        self._lib.board_push(self._board, frame, c.c_size_t(len(frame)))

    def step(self, cycles: int, stop_on_frame: bool = False) -> int:
        """Runs cycles of the device; returns how many."""
        passed = self._lib.board_step(self._board, c.c_uint64(cycles), int(stop_on_frame))
        self.cycles += passed
        return passed

    def pull(self) -> Sent | None:
        """The oldest frame that it sent, if any."""
        length = self._lib.board_pull(self._board, self._buffer, c.c_size_t(LONGEST))
        return Sent(self._buffer.raw[:length], self.cycles, self.cycles) if length else None

    def recv(self, cycles: int) -> Sent | None:
        """The next frame that it sends within `cycles`."""
        self.step(cycles, stop_on_frame=True)
        return self.pull()

    @property
    def stats(self) -> Stats:
        """Only the cycles."""
        return Stats(cycles=self.cycles)

    @property
    def bad_frames(self) -> int:
        """Frames whose preamble or FCS was wrong."""
        return self._lib.board_bad_frames(self._board)
