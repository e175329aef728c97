# SPDX-License-Identifier: Apache-2.0
"""The values of signals as whole integers.

cocotb gives a value as an array of four-valued digits, which costs more than all else that a driver does in a cycle. Verilator
knows two values only, and no driver of ours looks at single digits. Those of cocotbext do: a test with one calls `digits()`.
"""

from __future__ import annotations

from cocotb.handle import LogicArrayObject, LogicObject, PackedObject

_KINDS = (LogicObject, LogicArrayObject, PackedObject)
_OF_COCOTB = [kind.get for kind in _KINDS]


def _whole(signal: LogicObject | LogicArrayObject | PackedObject) -> int:
    return int(signal._handle.get_signal_val_binstr(), 2)


def whole() -> None:
    """Lets `signal.value` be an integer."""
    for kind in _KINDS:
        kind.get = _whole


def digits() -> None:
    """Lets it be what cocotb gives."""
    for kind, get in zip(_KINDS, _OF_COCOTB, strict=True):
        kind.get = get
