# SPDX-License-Identifier: Apache-2.0
"""One-sided transfers: memory of a peer that this side writes and reads."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any

from . import _native
from ._closing import Closing
from ._errors import Error
from ._regions import size_of

if TYPE_CHECKING:
    from ._device import Device
    from ._regions import BufferLike


def room(buffer: BufferLike | int) -> Any:
    """A buffer to read into: the one that is given, or a new bytearray of so many bytes."""
    return bytearray(size_of(buffer)) if isinstance(buffer, int) else buffer


class Transfer:
    """A transfer that was begun; made by a `Remote`. Leave its buffer alone until it has ended; awaiting it waits for that."""

    def __init__(self, device: Device, native: _native.Transfer, buffer: Any) -> None:
        self._device = device
        self._native = native
        self._buffer = buffer
        self._outcome: Error | bool = False

    @property
    def result(self) -> Any:
        """The buffer that was written from or read into; None for a notice."""
        return self._buffer

    def test(self) -> bool:
        """Whether it has ended; raises its error."""
        return self._look(self._native.test)

    def wait(self, timeout: float | None = None) -> bool:
        """Waits for its end, for so many seconds at most. Returns whether it has come; raises the error of the transfer."""
        return self._look(lambda: self._native.wait(timeout))

    def finish(self) -> Any:
        """Waits for its end, and returns the buffer."""
        self.wait()
        return self._buffer

    def _look(self, look: Callable[[], bool]) -> bool:
        if isinstance(self._outcome, Error):
            raise self._outcome
        if self._outcome:
            return True
        try:
            if not look():
                return False
        except Error as error:
            # Not its end if it has only run into its timeout.
            if self._has_ended():
                self._outcome = error
                self._native.abandon()
            raise
        self._outcome = True
        # Its buffer is free.
        self._native.abandon()
        return True

    def _has_ended(self) -> bool:
        try:
            return self._native.has_ended
        except Error:
            return False

    async def _finished(self) -> Any:
        await self._device._progress().ended(self)
        return self._buffer

    def __await__(self) -> Generator[Any, None, Any]:
        return self._finished().__await__()


class Remote(Closing):
    """Memory of a peer: of a device, or a part of a window; made by a `Connection`. It takes one of the connection's contexts."""

    def __init__(self, device: Device, native: _native.Remote) -> None:
        self._device = device
        self._native = native

    @property
    def size(self) -> int:
        """Its size, in bytes."""
        return self._native.size

    def write(self, offset: int, data: BufferLike) -> Transfer:
        """Begins to write a buffer. The transfer has ended when the bytes are there for every reader."""
        return Transfer(self._device, self._native.write(offset, data), data)

    def write_and_notify(self, offset: int, data: BufferLike, label: int = 0) -> Transfer:
        """The same, and tells the owner of the window. The transfer has ended when its callback has returned: one at a time."""
        return Transfer(self._device, self._native.write_and_notify(offset, data, label), data)

    def read(self, offset: int, buffer: BufferLike | int) -> Transfer:
        """Begins to read into all of a buffer, or into a new bytearray of so many bytes."""
        into = room(buffer)
        return Transfer(self._device, self._native.read(offset, into), into)

    def notify(self, label: int = 0) -> Transfer:
        """Tells the owner of the window alone, after all transfers before."""
        return Transfer(self._device, self._native.notify(label), None)

    def close(self) -> None:
        """Gives the memory back when its transfers have ended. May be repeated."""
        self._native.close()
