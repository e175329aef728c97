# SPDX-License-Identifier: Apache-2.0
"""Devices, connections and calls."""

from __future__ import annotations

import json
import os
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from . import _arrays, _native
from ._closing import Closing
from ._description import Description, FunctionInfo, Load, bind, parse, signature_text
from ._errors import Busy, ClosedHandle, Error, Forked, UnknownFunction
from ._exit import close_at_exit
from ._regions import Region, results
from ._transfers import Remote, room

if TYPE_CHECKING:
    from ipaddress import IPv4Address, IPv6Address

    from ._asyncio import Progress
    from ._regions import BufferLike

    Target = str | IPv4Address | IPv6Address

Finish = Callable[[Sequence[Region]], Any]


@dataclass(frozen=True)
class _Options:
    """As the library takes them."""

    wire: str | None
    link: str
    source: str | None
    port: int | None
    mtu: int | None
    timeout: float | None
    resolve_timeout: float | None
    acknowledge_timeout: float | None
    spin: float | None
    capture: str | None
    trace: bool
    progress_thread: bool
    reconnect: bool


def connect(
    target: Target | Iterable[Target],
    *,
    wire: str | os.PathLike[str] | None = None,
    link: str = "auto",
    source: str | None = None,
    port: int | None = None,
    mtu: int | None = None,
    timeout: float | None = None,
    resolve_timeout: float | None = None,
    acknowledge_timeout: float | None = None,
    spin: float | None = None,
    capture: str | os.PathLike[str] | None = None,
    trace: bool = False,
    progress_thread: bool = False,
    reconnect: bool = False,
) -> Device:
    """Reaches a device: at an address, by the name that it has on this machine or in the name service, or the first of several.

    Times are in seconds. docs/reference/python-api.md describes the options.
    """
    targets = [target] if isinstance(target, str) or not isinstance(target, Iterable) else list(target)
    for one in targets:
        if not isinstance(one, str) and not hasattr(one, "packed"):
            raise TypeError(f"a target is a text or an address of ipaddress, not {type(one).__name__}")
    names = [name.strip() for one in targets for name in str(one).split(",")]
    options = _Options(
        wire=None if wire is None else os.fspath(wire),
        link=link,
        source=source,
        port=port,
        mtu=mtu,
        timeout=timeout,
        resolve_timeout=resolve_timeout,
        acknowledge_timeout=acknowledge_timeout,
        spin=spin,
        capture=None if capture is None else os.fspath(capture),
        trace=trace,
        progress_thread=progress_thread,
        reconnect=reconnect,
    )
    return Device(_native.connect(names, options))


class Call(Closing):
    """Calls on a set of regions. Its buffers stay in use until it is closed; leave them alone while it runs."""

    def __init__(self, device: Device, native: _native.Call, regions: Sequence[Region], finish: Finish) -> None:
        self._device = device
        self._native = native
        self._regions = tuple(regions)
        self._finish = finish
        device._calls.add(self)

    @property
    def result(self) -> Any:
        """What comes back of the last call: one buffer, a tuple of several, or None; of `matmul` and the like, the array."""
        return self._finish(self._regions)

    @property
    def running(self) -> bool:
        """Whether it was invoked, and its end was not seen by `test`, `wait` or `finished`."""
        return self._native.running

    def invoke(self, immediate: int = 0) -> None:
        """Starts the function and returns at once. The 24 bits of `immediate` go to the function."""
        self._native.invoke(immediate)

    def test(self) -> bool:
        """Whether the call has ended; raises its error."""
        return self._native.test()

    def wait(self, timeout: float | None = None) -> bool:
        """Waits for the end, for so many seconds at most. Returns whether it has come; raises the error of the call."""
        return self._native.wait(timeout)

    async def finished(self) -> None:
        """Waits for the end in asyncio's event loop. When the task is cancelled, so is the call."""
        await self._device._progress().finished(self)

    def cancel(self) -> None:
        """Makes the call end that runs; any thread may do that. It ends with `Cancelled`, unless its end was under way."""
        self._native.cancel()

    def set_function(self, function: int | str) -> None:
        """Has another function run on the same regions from the next start on."""
        self._native.set_function(self._device._code(function))

    def report(self) -> Any:
        """What the steps of the set-up and of the last call cost: time, traffic, cycles of the device."""
        return json.loads(self._native.report())

    def close(self) -> None:
        """Ends the call. After this nothing uses its buffers. May be repeated."""
        self._native.close()

    def _leave(self) -> None:
        """As `close`, without waiting."""
        self._native.abandon()

    def _end(self) -> None:
        """Ends it for the device that is closed; a thread that waits for it gets its end."""
        try:
            self._native.cancel()
            self._native.close()
        except (ClosedHandle, Busy, Forked):
            pass


class Method:
    """A function of a device, as a method: called with buffers, or for `matmul` and the like with arrays."""

    def __init__(self, target: _Target, info: FunctionInfo, prepare: Callable[..., _arrays.Prepared] | None) -> None:
        self._target = target
        self._prepare = prepare
        self.info = info
        self.__name__ = info.python_name
        doc = prepare.__doc__ if prepare else None
        self.__doc__ = doc or "\n\n".join(
            (
                signature_text(info),
                info.doc,
                "\n".join(f"{region.name} ({region.access}): {region.doc}" for region in info.regions),
            )
        )

    def __repr__(self) -> str:
        return f"<function {signature_text(self.info)} of {self._target!r}>"

    def _prepared(self, buffers: tuple[Any, ...], named: dict[str, Any]) -> _arrays.Prepared:
        if self._prepare is not None:
            return self._prepare(*buffers, **named)
        out, scratch = named.pop("out", None), named.pop("internal", ())
        return bind(self.info, buffers, named, out, scratch), results

    def __call__(self, *buffers: Any, immediate: int = 0, timeout: float | None = None, **named: Any) -> Any:
        """Calls the function and waits for its end."""
        return self._target._run(self.info.code, lambda: self._prepared(buffers, named), immediate, timeout)

    async def call_async(self, *buffers: Any, immediate: int = 0, timeout: float | None = None, **named: Any) -> Any:
        """The same in asyncio's event loop."""
        return await self._target._run_async(self.info.code, lambda: self._prepared(buffers, named), immediate, timeout)

    def create(self, *buffers: Any, timeout: float | None = None, **named: Any) -> Call:
        """A call on these buffers, to be invoked as often as you like."""
        return self._target._create(self.info.code, self._prepared(buffers, named), timeout)


class Functions(Mapping[str, Method]):
    """The functions of a device by their names, each called with a buffer for each region."""

    def __init__(self, target: _Target, infos: Sequence[FunctionInfo]) -> None:
        self._methods = {info.name: Method(target, info, None) for info in infos}

    def __getitem__(self, name: str) -> Method:
        return self._methods[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._methods)

    def __len__(self) -> int:
        return len(self._methods)

    def __repr__(self) -> str:
        return f"<functions {', '.join(signature_text(method.info) for method in self._methods.values())}>"


class _Target:
    """What devices and connections share: calls, by functions that the device describes."""

    def _owner(self) -> Device:
        raise NotImplementedError

    def _native_create(self, code: int, regions: Sequence[Region], deadline: float | None) -> _native.Call:
        raise NotImplementedError

    def call(
        self,
        function: int | str,
        *buffers: Any,
        out: Any = None,
        internal: int | Sequence[int] = (),
        immediate: int = 0,
        timeout: float | None = None,
    ) -> Any:
        """Calls a function, by name or code, and waits for its end; returns what comes back.

        A buffer for each region that is sent, in the order of the description, and `out=` for each that only comes back: a
        buffer, or a size in bytes. Or a `Region` for each region, which needs no description. After `timeout` seconds the call is
        ended with `DeadlineExceeded`.
        """
        prepare = lambda: self._bind(function, buffers, out, internal)  # noqa: E731
        return self._run(self._owner()._code(function), prepare, immediate, timeout)

    async def call_async(
        self,
        function: int | str,
        *buffers: Any,
        out: Any = None,
        internal: int | Sequence[int] = (),
        immediate: int = 0,
        timeout: float | None = None,
    ) -> Any:
        """As `call`, in asyncio's event loop. When the task is cancelled, so is the call."""
        prepare = lambda: self._bind(function, buffers, out, internal)  # noqa: E731
        return await self._run_async(lambda: self._owner()._code(function), prepare, immediate, timeout)

    def create(
        self,
        function: int | str,
        *buffers: Any,
        out: Any = None,
        internal: int | Sequence[int] = (),
        timeout: float | None = None,
    ) -> Call:
        """A call on these buffers, to be invoked as often as you like."""
        code = self._owner()._code(function)
        return self._create(code, self._bind(function, buffers, out, internal), timeout)

    @property
    def functions(self) -> Functions:
        """What the device can be called for."""
        return Functions(self, self._owner()._infos())

    def __getattr__(self, name: str) -> Method:
        if not name.startswith("_"):
            for info in self._owner()._infos():
                if info.python_name == name:
                    return Method(self, info, _arrays.helper(info))
        raise AttributeError(
            f"{type(self).__name__} has no attribute {name!r}, and the device no function of this name", name=name, obj=self
        )

    def __dir__(self) -> list[str]:
        try:
            names = [info.python_name for info in self._owner()._infos()]
        except Error:
            names = []
        return [*super().__dir__(), *names]

    def _bind(self, function: int | str, buffers: tuple[Any, ...], out: Any, scratch: int | Sequence[int]) -> _arrays.Prepared:
        if buffers and all(isinstance(buffer, Region) for buffer in buffers):
            info = FunctionInfo(code=0, name=str(function))
        else:
            info = self._owner()._info(function)
        return bind(info, buffers, {}, out, scratch), results

    def _create(self, code: int, prepared: _arrays.Prepared, timeout: float | None) -> Call:
        regions, finish = prepared
        return Call(self._owner(), self._native_create(code, regions, timeout), regions, finish)

    def _run(self, code: int, prepare: Callable[[], _arrays.Prepared], immediate: int, timeout: float | None) -> Any:
        with self._create(code, prepare(), timeout) as call:
            call.invoke(immediate)
            call.wait()
            return call.result

    async def _run_async(
        self, code: int | Callable[[], int], prepare: Callable[[], _arrays.Prepared], immediate: int, timeout: float | None
    ) -> Any:
        from ._asyncio import in_thread

        def create() -> Call:
            return self._create(code() if callable(code) else code, prepare(), timeout)

        # Whatever waits for the network but a call: asyncio's own threads are for that.
        call = await in_thread(create, Call._leave)
        try:
            call.invoke(immediate)
            await call.finished()
            return call.result
        finally:
            call._leave()


class Connection(_Target, Closing):
    """A connection on which several calls run side by side, each in a context."""

    def __init__(self, device: Device, native: _native.Connection) -> None:
        self._device = device
        self._native = native
        device._connections.add(self)

    def _owner(self) -> Device:
        return self._device

    def _native_create(self, code: int, regions: Sequence[Region], deadline: float | None) -> _native.Call:
        return self._native.create(code, regions, deadline)

    @property
    def contexts(self) -> int:
        """How many calls it can have at a time."""
        return self._native.contexts

    @property
    def free_contexts(self) -> int:
        """How many more it can have now."""
        return self._native.free_contexts

    @property
    def can_cancel(self) -> bool:
        """Whether calls are cancelled one by one; else that ends the connection."""
        return self._native.can_cancel

    @property
    def has_chains(self) -> bool:
        """Whether the device runs chains, takes regions of 4 GiB and more, and keeps deadlines itself."""
        return self._native.has_long_set_up

    def chain(self, steps: Sequence[tuple[int | str, range | slice, int]], *regions: Region, timeout: float | None = None) -> Call:
        """A call in which the device runs one function after the other: of each, the regions that it gets, and its immediate."""
        numbers = [range(len(regions))[taken] if isinstance(taken, slice) else taken for _, taken, _ in steps]
        native = [
            (self._device._code(function), taken.start, len(taken), immediate)
            for (function, _, immediate), taken in zip(steps, numbers, strict=True)
        ]
        return Call(self._device, self._native.create_chain(native, regions, timeout), regions, results)

    def write(self, window: int, data: BufferLike, label: int = 0) -> None:
        """Writes a buffer to a window of the peer, with a label of 16 bits, and waits until its owner's callback has returned."""
        self._native.write(window, data, label)

    async def write_async(self, window: int, data: BufferLike, label: int = 0) -> None:
        """As `write`, in asyncio's event loop."""
        with await self._opened(lambda: self.window_to_write(window, _native.Buffer(data).nbytes)) as remote:
            await remote.write_and_notify(0, data, label)

    def read(self, window: int, buffer: BufferLike | int) -> Any:
        """Reads the first bytes of a window of the peer into all of a buffer, or a new bytearray of so many bytes; returns it."""
        into = room(buffer)
        self._native.read(window, into)
        return into

    async def read_async(self, window: int, buffer: BufferLike | int) -> Any:
        """As `read`, in asyncio's event loop."""
        into = room(buffer)
        with await self._opened(lambda: self.window_to_read(window, _native.Buffer(into).nbytes)) as remote:
            return await remote.read(0, into)

    async def _opened(self, make: Callable[[], Remote]) -> Remote:
        from ._asyncio import in_thread

        return await in_thread(make, Remote.close)

    def remote(self, size: int) -> Remote:
        """So many bytes of the peer's memory for this alone, all zero: in a device without calling a function."""
        return Remote(self._device, self._native.remote(size))

    def window_to_write(self, window: int, size: int) -> Remote:
        """The first bytes of a window of the peer to be written: memory that the peer has for this alone, all zero."""
        return Remote(self._device, self._native.window_to_write(window, size))

    def window_to_read(self, window: int, size: int) -> Remote:
        """The first bytes of a window of the peer to be read: its program's memory."""
        return Remote(self._device, self._native.window_to_read(window, size))

    def close(self) -> None:
        """Ends the connection; calls that run on it end with `Closed`. May be repeated."""
        self._native.close()

    def __repr__(self) -> str:
        return f"<connection to {self._device.address}>"


class Device(_Target, Closing):
    """A device that was reached; made by `connect`. Its functions are its methods."""

    def __init__(self, native: _native.Device) -> None:
        self._native = native
        self._calls: weakref.WeakSet[Call] = weakref.WeakSet()
        self._connections: weakref.WeakSet[Connection] = weakref.WeakSet()
        self._loops: dict[Any, Progress] = {}
        self._described: tuple[Description | None] | None = None
        close_at_exit(self)

    def _owner(self) -> Device:
        return self

    def _native_create(self, code: int, regions: Sequence[Region], deadline: float | None) -> _native.Call:
        return self._native.create(code, regions, deadline)

    @property
    def address(self) -> str:
        """Its address."""
        return self._native.address

    @property
    def name(self) -> str | None:
        """The name that it publishes on this machine, if it does."""
        return self._native.name

    @property
    def by_udp(self) -> bool:
        """Whether it is reached by datagrams, of a UDP socket or by shared memory; else by frames, as on the virtual wire."""
        return self._native.by_udp

    def describe(self) -> Description | None:
        """What the device says of itself, read once; None if it says nothing."""
        if self._described is None:
            text = self._native.describe()
            self._described = (None if text is None else parse(text),)
        return self._described[0]

    def load(self) -> Load | None:
        """How busy the device is at this moment, asked on a connection of its own; None if it does not say."""
        load = self._native.load()
        return None if load is None else Load(**load)

    def open(self, contexts: int = 4) -> Connection:
        """Opens a connection for several calls at a time; the device may give fewer contexts than are asked for."""
        return Connection(self, self._native.open(contexts))

    def ping(self, timeout: float = 3.0) -> float:
        """Seconds until the device has answered a packet."""
        return self._native.ping(timeout)

    def fileno(self) -> int:
        """A descriptor for an event loop: when it is readable, call `progress`, then `test` of the calls."""
        return self._native.fd()

    def progress(self) -> None:
        """Moves what can be moved at once, for all calls. Never waits."""
        self._native.progress()

    def close(self) -> None:
        """Ends its calls and connections, and waits up to a second until the device has confirmed that. May be repeated."""
        for progress in list(self._loops.values()):
            progress.close()
        for call in list(self._calls):
            call._end()
        for connection in list(self._connections):
            connection.close()
        self._native.close()

    def __repr__(self) -> str:
        return f"<device {self.name or ''} at {self.address}>".replace("  ", " ")

    def _infos(self) -> tuple[FunctionInfo, ...]:
        description = self.describe()
        return description.functions if description else ()

    def _info(self, function: int | str) -> FunctionInfo:
        for info in self._infos():
            if function in (info.code, info.name, info.python_name):
                return info
        known = ", ".join(f"{info.name} ({info.code})" for info in self._infos()) or "none"
        raise UnknownFunction(
            f"the device at {self.address} describes no function {function!r}",
            f"it describes {known}; others are called by code, with nacelle.input(...) and the like for each region",
        )

    def _code(self, function: int | str) -> int:
        return function if isinstance(function, int) else self._info(function).code

    def _progress(self) -> Progress:
        from ._asyncio import progress_of

        return progress_of(self)
