# SPDX-License-Identifier: Apache-2.0
"""Calls in asyncio's event loop: it polls the device's descriptor, so no thread of the library is needed."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from ._errors import Cancelled, Error

if TYPE_CHECKING:
    from ._device import Call, Device
    from ._transfers import Transfer

T = TypeVar("T")


async def in_thread(work: Callable[[], T], discard: Callable[[T], None]) -> T:
    """Does what blocks in a thread of the loop's. When the task is cancelled meanwhile, the result is discarded."""
    future = asyncio.get_running_loop().run_in_executor(None, work)

    def drop(done: asyncio.Future[T]) -> None:
        if not done.cancelled() and done.exception() is None:
            discard(done.result())

    try:
        return await asyncio.shield(future)
    except asyncio.CancelledError:
        future.add_done_callback(drop)
        raise


def progress_of(device: Device) -> Progress:
    """The device's part in the loop that runs."""
    loop = asyncio.get_running_loop()
    for other in [other for other in device._loops if other.is_closed()]:
        del device._loops[other]
    if loop not in device._loops:
        device._loops[loop] = Progress(device, loop)
    return device._loops[loop]


class Progress:
    """Makes progress for the calls of a device that tasks of a loop wait for."""

    def __init__(self, device: Device, loop: asyncio.AbstractEventLoop) -> None:
        self._device = device
        self._loop = loop
        self._fd: int | None = None
        self._waiting: dict[Call | Transfer, asyncio.Future[None]] = {}

    async def finished(self, call: Call) -> None:
        """Waits for the end of a call."""
        try:
            await self._end(call)
        except asyncio.CancelledError:
            call.cancel()
            # Its buffers are in use until it has ended, which the library sees to.
            with contextlib.suppress(Error):
                await self._end(call)
            raise

    async def ended(self, transfer: Transfer) -> None:
        """Waits for the end of a transfer, which nothing can take back."""
        await self._end(transfer)

    async def _end(self, call: Call | Transfer) -> None:
        # From here on the descriptor tells of the end of each call.
        fd = self._device.fileno()
        if call.test():
            return
        if call in self._waiting:
            await asyncio.shield(self._waiting[call])
            return
        future: asyncio.Future[None] = self._loop.create_future()
        if self._fd is None:
            self._fd = fd
            self._loop.add_reader(fd, self._ready)
        self._waiting[call] = future
        try:
            # What was sent by now may have moved the next deadline.
            self._ready()
            await future
        finally:
            self._waiting.pop(call, None)
            self._rest()

    def _rest(self) -> None:
        if self._fd is not None and not self._waiting:
            self._loop.remove_reader(self._fd)
            self._fd = None

    def _ready(self) -> None:
        try:
            self._device.progress()
        except Error as error:
            for future in self._waiting.values():
                if not future.done():
                    future.set_exception(error)
            return
        for call, future in list(self._waiting.items()):
            if not future.done() and call._native.take_news():
                try:
                    if call.test():
                        future.set_result(None)
                except Error as error:
                    future.set_exception(error)

    def close(self) -> None:
        """The device is closed."""

        def end() -> None:
            for future in list(self._waiting.values()):
                if not future.done():
                    future.set_exception(Cancelled("the device was closed", "close it when its calls have ended"))
            if self._fd is not None:
                self._loop.remove_reader(self._fd)
                self._fd = None

        if self._loop.is_closed():
            return
        try:
            same = asyncio.get_running_loop() is self._loop
        except RuntimeError:
            same = not self._loop.is_running()
        if same:
            end()
        else:
            self._loop.call_soon_threadsafe(end)
