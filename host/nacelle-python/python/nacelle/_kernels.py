# SPDX-License-Identifier: Apache-2.0
"""Kernels in Python, and a software device in this process that offers them."""

from __future__ import annotations

import inspect
import json
import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from . import _native
from ._closing import Closing
from ._description import RegionInfo
from ._errors import ClosedHandle, InvalidArgument, KernelCancelled, KernelFailure
from ._exit import close_at_exit

SUCCESS = 0
CANCELLED = 0x02
WRONG_REGIONS = 0x10
RAISED = 0x7F
# How long a function has for its end when its device is closed, before an exception is raised in it; and then.
ASK_WITHIN = 0.2
END_WITHIN = 2.0


class KernelFunction:
    """A function in Python that devices offer; made by `kernel`. Calling it calls the function itself."""

    def __init__(
        self,
        function: Callable[..., object],
        code: int,
        name: str,
        doc: str,
        regions: Sequence[RegionInfo],
        errors: Mapping[int, str],
        version: tuple[int, int],
    ) -> None:
        self.function = function
        self.code = code
        self.name = name
        self.doc = doc
        self.regions = tuple(regions)
        self.errors = {WRONG_REGIONS: "the number of regions is wrong", RAISED: "its function raised an exception", **errors}
        self.version = version
        parameters = inspect.signature(function).parameters
        self._extra = [extra for extra in ("call", "internal") if extra in parameters]

    def __call__(self, *arguments: Any, **named: Any) -> object:
        return self.function(*arguments, **named)

    def description(self) -> str:
        """Its kernel file (docs/reference/device-description.md)."""
        text = json.dumps  # its escapes are TOML's, for the ASCII that a description has
        regions = ", ".join(
            f"{{ name = {text(r.name)}, access = {text(r.access)}, doc = {text(r.doc)}"
            f"{', repeated = true' if r.repeated else ''} }}"
            for r in self.regions
        )
        errors = "\n".join(f"{code} = {text(meaning)}" for code, meaning in self.errors.items())
        major, minor = self.version
        return (
            f'name = {text(self.name)}\nversion = "{major}.{minor}"\n\n[[functions]]\ncode = {self.code}\n'
            f"name = {text(self.name)}\ndoc = {text(self.doc)}\nregions = [{regions}]\n\n[errors]\n{errors}\n"
        )


def kernel(
    *,
    code: int,
    regions: Iterable[RegionInfo | tuple[str, str] | tuple[str, str, str]] = (),
    name: str | None = None,
    doc: str | None = None,
    errors: Mapping[int, str] | None = None,
    version: tuple[int, int] = (1, 0),
) -> Callable[[Callable[..., object]], KernelFunction]:
    """Makes a function a kernel: it gets a memoryview for each of its regions, valid until it returns.

    `regions` are (name, access) or (name, access, doc), or `RegionInfo`. The function may have the parameters `call`, with `user`,
    `cancelled` and `check()`, and `internal`, the list of the scratch regions. It fails by raising `KernelFailure`.
    """
    infos = [region if isinstance(region, RegionInfo) else RegionInfo(*region) for region in regions]
    if sum(info.repeated for info in infos) > 1 or any(info.access not in ("in", "out", "inout", "internal") for info in infos):
        raise InvalidArgument(
            f"the regions of kernel {code} cannot be", "access is in, out, inout or internal, and one region at most is repeated"
        )

    def decorate(function: Callable[..., object]) -> KernelFunction:
        first_line = (inspect.getdoc(function) or "").partition("\n")[0]
        said = doc if doc is not None else first_line
        return KernelFunction(function, code, name or function.__name__, said, infos, errors or {}, version)

    return decorate


class _Runner:
    """What the software device calls, in threads of its own."""

    def __init__(self, kernel: KernelFunction) -> None:
        self._kernel = kernel
        self._fixed = [info for info in kernel.regions if info.access != "internal"]
        # Threads in the function.
        self.threads: set[int] = set()

    def __call__(self, parameters: list[_native.Lent], internal: list[_native.Lent], call: _native.KernelCall) -> int:
        views: list[memoryview] = []
        try:
            self.threads.add(threading.get_ident())
            arguments, scratch = self._views(parameters, views), [memoryview(lent) for lent in internal]  # type: ignore[arg-type]
            views += scratch
            if arguments is None:
                return WRONG_REGIONS
            extra = {name: value for name, value in (("call", call), ("internal", scratch)) if name in self._kernel._extra}
            self._kernel.function(*arguments, **extra)
            return SUCCESS
        except KernelFailure as failure:
            return failure.result
        except KernelCancelled:
            return CANCELLED
        except Exception as error:
            self._report(error)
            return RAISED
        finally:
            self.threads.discard(threading.get_ident())
            for view in views:
                try:
                    view.release()
                except BufferError:
                    pass  # something was made of it: kept_views says so if it is still there when this has returned

    def _views(self, lent: list[_native.Lent], views: list[memoryview]) -> list[memoryview] | None:
        """A view for each region, read-only of those that only come; None if there are too many or too few."""
        repeated = next((info for info in self._fixed if info.repeated), None)
        if len(lent) < len(self._fixed) - (repeated is not None) or (repeated is None and len(lent) > len(self._fixed)):
            return None
        access: list[str] = []
        for info in self._fixed:
            access += [info.access] * (len(lent) - len(self._fixed) + 1 if info.repeated else 1)
        arguments = []
        for memory, kind in zip(lent, access, strict=True):
            view = memoryview(memory)  # type: ignore[arg-type]
            views.append(view)
            if kind == "in":
                view = view.toreadonly()
                views.append(view)
            arguments.append(view)
        return arguments

    def _report(self, error: Exception) -> None:
        log_exception(f"the kernel {self._kernel.name} (function {self._kernel.code})", error)

    def kept_views(self) -> None:
        """The function has returned, and something it has made of a region is still there."""
        log_kept_views(f"the kernel {self._kernel.name} (function {self._kernel.code})")


def log_exception(who: str, error: Exception) -> None:
    """Logs an exception as text: what keeps the exception itself would keep the memory of the call, by its frames."""
    import traceback

    text = "".join(traceback.format_exception(error)).rstrip()
    _log().error("%s raised an exception\n%s", who, text)
    traceback.clear_frames(error.__traceback__)


def log_kept_views(who: str) -> None:
    """Logs that a function of Python has kept memory that was lent to it."""
    _log().error("%s has kept a view of its memory: its caller waits until it is gone; copy what is to be kept", who)


def _log() -> Any:
    import logging

    return logging.getLogger("nacelle")


@dataclass(frozen=True)
class _Settings:
    """As the software device takes them."""

    wire: str | None
    name: str | None
    address: str | None
    udp: bool
    standard_kernels: bool
    memory: int | None
    workers: int | None
    kernel_time: float | None


class SoftDevice(Closing):
    """A software device in this process: between `start` and `close`, in a `with` block, or for as long as `serve` runs."""

    def __init__(
        self,
        kernels: Iterable[KernelFunction] = (),
        *,
        wire: str | os.PathLike[str] | None = None,
        name: str | None = None,
        address: str | None = None,
        udp: bool = False,
        standard_kernels: bool = True,
        memory: int | None = None,
        workers: int | None = None,
        kernel_time: float | None = None,
    ) -> None:
        """On the wire at `address` ("10.77.0.2/16"; else a free one), or by UDP at an address of this machine."""
        self._kernels = tuple(kernels)
        self._runners = [_Runner(kernel) for kernel in self._kernels]
        path = None if wire is None else os.fspath(wire)
        self._settings = _Settings(path, name, address, udp, standard_kernels, memory, workers, kernel_time)
        self._native: _native.SoftDevice | None = None

    def start(self) -> Self:
        """Starts it, and returns when it can be called."""
        if self._native is not None:
            raise InvalidArgument("the device runs already", "close it first, or make another")
        described = [
            (kernel.description(), kernel.code, runner) for kernel, runner in zip(self._kernels, self._runners, strict=True)
        ]
        self._native = _native.SoftDevice(described, self._settings)
        close_at_exit(self)
        return self

    def _running(self) -> _native.SoftDevice:
        if self._native is None:
            raise ClosedHandle("the device does not run", "start it, or use it in a with block")
        return self._native

    @property
    def name(self) -> str:
        """Its name on the wire."""
        return self._running().name

    @property
    def address(self) -> str:
        """Its address, for `connect`."""
        return self._running().address

    def wait(self, timeout: float | None = None) -> bool:
        """Waits for its end, which a client may ask for, for so many seconds at most. Returns whether it has come."""
        return self._running().wait(timeout)

    def serve(self) -> None:
        """Runs it until Ctrl-C, or until a client asks for its end."""
        try:
            with self:
                self.wait()
        except KeyboardInterrupt:
            # It may have come while the device was being started: then nothing has closed it yet.
            self.close()

    def close(self) -> None:
        """Ends it. Kernels that run are cancelled: `KernelCancelled` is raised in one that does not return. May be repeated."""
        native, self._native = self._native, None
        if native is None:
            return
        native.close()
        begin = time.monotonic()
        asked: set[int] = set()
        while (running := {thread for runner in self._runners for thread in runner.threads}) and (
            time.monotonic() < begin + END_WITHIN
        ):
            if time.monotonic() > begin + ASK_WITHIN:
                for thread in running - asked:
                    _raise_in(thread)
                asked |= running
            time.sleep(0.01)

    def __enter__(self) -> Self:
        return self.start()


def _raise_in(thread: int) -> None:
    """Raises KernelCancelled in a thread that runs Python."""
    import ctypes

    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(KernelCancelled))
