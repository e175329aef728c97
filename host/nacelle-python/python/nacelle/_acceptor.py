# SPDX-License-Identifier: Apache-2.0
"""A host that accepts what others write, and gives what others read."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from . import _native
from ._closing import Closing
from ._errors import InvalidArgument, KernelFailure
from ._exit import close_at_exit
from ._kernels import RAISED, SUCCESS, log_exception, log_kept_views

if TYPE_CHECKING:
    from ._regions import BufferLike

# A peer is told this if its window was closed.
UNAVAILABLE = 0x01


@dataclass(frozen=True)
class Incoming:
    """What a peer has written, or says that it has read."""

    peer: str
    window: int
    label: int
    # The writer's memory in the window, until the callback returns; the writer can read what it is changed to. None of a reader.
    data: memoryview | None


Callback = Callable[[Incoming], object]


class _Teller:
    """What the acceptor calls, in threads of its own, until it is closed."""

    def __init__(self, callback: Callback, name: str) -> None:
        self._callback = callback
        self._name = name
        self._idle = threading.Condition()
        self._closed = False
        self._running: list[int] = []

    def __call__(self, lent: _native.Lent | None, peer: str, window: int, label: int) -> int:
        with self._idle:
            if self._closed:
                return UNAVAILABLE
            self._running.append(threading.get_ident())
        try:
            return self._run(lent, peer, window, label)
        finally:
            with self._idle:
                self._running.remove(threading.get_ident())
                self._idle.notify_all()

    def _run(self, lent: _native.Lent | None, peer: str, window: int, label: int) -> int:
        view = None if lent is None else memoryview(lent)  # type: ignore[arg-type]
        try:
            self._callback(Incoming(peer, window, label, view))
            return SUCCESS
        except KernelFailure as failure:
            return failure.result
        except Exception as error:
            log_exception(self._name, error)
            return RAISED
        finally:
            if view is not None:
                try:
                    view.release()
                except BufferError:
                    pass  # something was made of it: kept_views says so if it is still there when this has returned

    def close(self) -> None:
        """Waits for the other threads that run the callback; none runs it any more after this."""
        own = threading.get_ident()
        with self._idle:
            self._closed = True
            self._idle.wait_for(lambda: all(thread == own for thread in self._running))

    def kept_views(self) -> None:
        """The callback has returned, and something it has made of the bytes is still there."""
        log_kept_views(self._name)


class Window(Closing):
    """Memory that peers write or read under a number, until this is closed. Made by an `Acceptor`, which closes it, too."""

    def __init__(self, native: _native.Window, teller: _Teller) -> None:
        self._native = native
        self._teller = teller

    def close(self) -> None:
        """Closes it, and waits for its callbacks that run. May be repeated."""
        self._native.close()
        self._teller.close()


@dataclass(frozen=True)
class _Settings:
    """As the acceptor takes them."""

    address: str | None
    wire: str | None
    name: str | None
    memory: int | None
    memory_per_peer: int | None
    connections: int | None
    connections_per_peer: int | None
    callbacks: int | None
    callback_time: float | None


def _nothing(incoming: Incoming) -> None:
    pass


class Acceptor(Closing):
    """A host that peers `connect` to, to write and read its windows."""

    def __init__(
        self,
        address: str | None = None,
        *,
        wire: str | os.PathLike[str] | None = None,
        name: str | None = None,
        memory: int | None = None,
        memory_per_peer: int | None = None,
        connections: int | None = None,
        connections_per_peer: int | None = None,
        callbacks: int | None = None,
        callback_time: float | None = None,
        listen: bool = True,
    ) -> None:
        """At an address of this machine; or on the wire at "10.77.0.9/16", without an address at the first free one there.

        With `listen=False` peers cannot connect before `listen`: windows are opened first, so that the first peer finds them.
        """
        path = None if wire is None else os.fspath(wire)
        bounds = (memory, memory_per_peer, connections, connections_per_peer, callbacks, callback_time)
        self._native = _native.Acceptor(_Settings(address, path, name, *bounds))
        # Windows are open until they are closed, whether the program keeps them or not.
        self._windows: list[Window] = []
        if listen:
            self.listen()
        close_at_exit(self)

    def listen(self) -> None:
        """Lets peers connect. Until then it has no address and no name."""
        self._native.listen()

    @property
    def address(self) -> str:
        """The address that peers connect to."""
        return self._native.address

    @property
    def name(self) -> str:
        """The name that peers on this machine may use."""
        return self._native.name

    def accept_incoming_write(self, number: int, longest: int, callback: Callback) -> Window:
        """Lets peers write up to `longest` bytes under a number.

        Each gets memory of its own. `callback` is called with an `Incoming`, in a thread of the acceptor, for each write that a
        peer says is complete. `KernelFailure` raised in it is the peer's result.
        """
        teller = _Teller(callback, f"the callback of window {number}")
        return self._opened(Window(self._native.accept_incoming_write(number, longest, teller), teller))

    def accept_incoming_read(self, number: int, buffer: BufferLike, callback: Callback = _nothing) -> Window:
        """Lets peers read a buffer under a number, as it is at that moment; `callback` is called when one says that it has."""
        teller = _Teller(callback, f"the callback of window {number}")
        return self._opened(Window(self._native.accept_incoming_read(number, buffer, teller), teller))

    def _opened(self, window: Window) -> Window:
        self._windows.append(window)
        return window

    def close(self) -> None:
        """Ends it, and closes its windows. May be repeated."""
        windows, self._windows = self._windows, []
        for window in windows:
            window.close()
        self._native.close()

    def __repr__(self) -> str:
        try:
            return f"<acceptor {self.name} at {self.address}>"
        except InvalidArgument:
            return "<acceptor that does not listen yet>"
