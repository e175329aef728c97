# SPDX-License-Identifier: Apache-2.0
"""Exceptions: one class for each code of docs/reference/errors.md, under the same name, and those of the edge to Python."""

from __future__ import annotations

from typing import ClassVar


class Error(Exception):
    """Why something failed. `code` never changes its meaning; `hint` says in one line what to try."""

    code: ClassVar[int] = 0
    hint: str

    def __init__(self, text: str, hint: str) -> None:
        super().__init__(text)
        self.hint = hint
        # Shown below the message when nobody catches it.
        self.add_note(f"try: {hint}")

    def __reduce__(self) -> tuple[type[Error], tuple[str, str], dict[str, object]]:
        return type(self), (str(self), self.hint), {key: value for key, value in vars(self).items() if key != "__notes__"}


class InvalidArgument(Error, ValueError):
    """The caller asked for something that cannot be."""

    code = 1


class Link(Error, OSError):
    """The wire, TAP device or socket cannot be used."""

    code = 2


class AddressTaken(Error):
    """The address that was asked for belongs to another host, or the name to another device."""

    code = 3


class NoFreeAddress(Error):
    """All source addresses that were tried are used."""

    code = 4


class Unreachable(Error, ConnectionError):
    """No host has the address, or none answers there."""

    code = 5


class Refused(Error, ConnectionError):
    """The device refused the connection."""

    code = 6


class RegionsRefused(Error):
    """The device refused the regions."""

    code = 7


class Timeout(Error, TimeoutError):
    """Nothing moved for the timeout of the device. A call still runs."""

    code = 8


class Lost(Error, ConnectionError):
    """The device no longer acknowledges, or has closed the connection."""

    code = 9


class Transport(Error, ConnectionError):
    """The device refused a request of the transport."""

    code = 10


class Protocol(Error, ConnectionError):
    """The device answered what no device may answer."""

    code = 11


class SocketUnavailable(Error):
    """No kernel for the function is free or present."""

    code = 12


class KernelTimeout(Error):
    """The kernel ran into the device's own time limit."""

    code = 13


class UnknownFunction(Error):
    """The device does not have the function."""

    code = 14


class Kernel(Error):
    """The kernel itself failed: `result` is its code."""

    code = 15
    result: int = 0


class NoSuchDevice(Error, ConnectionError):
    """No device has this name on the wire, and no host has it."""

    code = 16


class Management(Error):
    """A device could not be managed."""

    code = 17


class Cancelled(Error):
    """The caller has cancelled the call."""

    code = 18


class DeadlineExceeded(Error, TimeoutError):
    """The call did not end by its deadline, and was ended."""

    code = 19


class NoFreeContext(Error):
    """All contexts of the connection have calls."""

    code = 20


class Unsupported(Error):
    """The connection has not agreed to what is asked for."""

    code = 21


class Closed(Error, ConnectionError):
    """This side has ended the connection."""

    code = 22


class NoTarget(Error, ConnectionError):
    """None of several targets can be reached: `tried` has each, with its error."""

    code = 23
    tried: list[tuple[str, Error]] = []  # noqa: RUF012 (set for each exception)


class WindowOpen(InvalidArgument):
    """A window of this number and direction is open already."""

    code = 24


class KernelRefused(InvalidArgument):
    """The software device does not take the kernel."""

    code = 25


class SimulatedDevice(Error):
    """The simulated device cannot be made."""

    code = 26


class NotAdmitted(Error, ConnectionError):
    """The device admits callers by entries, and none is for this one."""

    code = 27


class AdmissionEnded(Error, ConnectionError):
    """The device has closed the connection because it admits this caller no longer."""

    code = 28


class Slot(Error, ConnectionError):
    """The device in a slot cannot be used, or has gone."""

    code = 29


class DeviceMemory(Error):
    """So much of the device's memory is not free, or not there."""

    code = 30


class CopyFailed(Error):
    """A copy between host and device memory failed."""

    code = 31


class CopiesFull(Error):
    """So many copies are under way that there is no room for more."""

    code = 32


class ClosedHandle(Error):
    """The device, connection or call was closed before."""

    code = 1003


class Busy(Error):
    """Another thread uses the call."""

    code = 1004


class Forked(Error):
    """It belongs to the process that forked this one."""

    code = 1005


class KernelFailure(Exception):
    """Raised by a kernel: it fails with this result code, 0x10 to 0x7f."""

    def __init__(self, result: int) -> None:
        if not 0x10 <= result <= 0x7F:
            raise ValueError(f"{result:#x} is no result code of a kernel: they are 0x10 to 0x7f")
        super().__init__(f"result {result:#04x}")
        self.result = result


class KernelCancelled(Exception):
    """Raised in a kernel whose result is no longer needed: let it pass."""
