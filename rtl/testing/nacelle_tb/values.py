# SPDX-License-Identifier: Apache-2.0
"""The values of signals as whole integers.

cocotb gives a value as an array of four-valued digits, which costs more than all else that a driver does in a cycle. Verilator
knows two values only, and no test looks at single digits.
"""

from __future__ import annotations

from cocotb.handle import LogicArrayObject, LogicObject, PackedObject


def _whole(signal: LogicObject | LogicArrayObject | PackedObject) -> int:
    return int(signal._handle.get_signal_val_binstr(), 2)


def whole() -> None:
    """Lets `signal.value` be an integer."""
    for kind in (LogicObject, LogicArrayObject, PackedObject):
        kind.get = _whole
