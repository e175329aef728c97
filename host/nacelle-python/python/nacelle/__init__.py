# SPDX-License-Identifier: Apache-2.0
"""Calls accelerators over the network: RoCEv2 in user space, no RDMA NIC, no kernel module, no root.

    import nacelle

    with nacelle.connect("10.77.0.2") as device:
        c = device.matmul(a, b)

docs/reference/python-api.md describes the package, docs/how-to/use-python.md has examples.
"""

from ._acceptor import Acceptor, Incoming, Window
from ._description import Description, FunctionInfo, Load, RegionInfo
from ._device import Call, Connection, Device, Functions, Method, connect
from ._errors import (
    AddressTaken,
    AdmissionEnded,
    Busy,
    Cancelled,
    Closed,
    ClosedHandle,
    DeadlineExceeded,
    Error,
    Forked,
    InvalidArgument,
    Kernel,
    KernelCancelled,
    KernelFailure,
    KernelRefused,
    KernelTimeout,
    Link,
    Lost,
    Management,
    NoFreeAddress,
    NoFreeContext,
    NoSuchDevice,
    NotAdmitted,
    NoTarget,
    Protocol,
    Refused,
    RegionsRefused,
    SimulatedDevice,
    SocketUnavailable,
    Timeout,
    Transport,
    UnknownFunction,
    Unreachable,
    Unsupported,
    WindowOpen,
)
from ._kernels import KernelFunction, SoftDevice, kernel
from ._native import VERSION as __version__
from ._native import KernelCall
from ._regions import Region, inout, input, internal, output
from ._transfers import Remote, Transfer

__all__ = [
    "Acceptor",
    "AddressTaken",
    "AdmissionEnded",
    "Busy",
    "Call",
    "Cancelled",
    "Closed",
    "ClosedHandle",
    "Connection",
    "DeadlineExceeded",
    "Description",
    "Device",
    "Error",
    "Forked",
    "FunctionInfo",
    "Functions",
    "Incoming",
    "InvalidArgument",
    "Kernel",
    "KernelCall",
    "KernelCancelled",
    "KernelFailure",
    "KernelFunction",
    "KernelRefused",
    "KernelTimeout",
    "Link",
    "Load",
    "Lost",
    "Management",
    "Method",
    "NoFreeAddress",
    "NoFreeContext",
    "NoSuchDevice",
    "NoTarget",
    "NotAdmitted",
    "Protocol",
    "Refused",
    "Region",
    "RegionInfo",
    "RegionsRefused",
    "Remote",
    "SimulatedDevice",
    "SocketUnavailable",
    "SoftDevice",
    "Timeout",
    "Transfer",
    "Transport",
    "UnknownFunction",
    "Unreachable",
    "Unsupported",
    "Window",
    "WindowOpen",
    "__version__",
    "connect",
    "inout",
    "input",
    "internal",
    "kernel",
    "output",
]
