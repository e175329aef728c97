# SPDX-License-Identifier: Apache-2.0
"""What only `make test-long` runs, which sets $NACELLE_LONG=1: combinations that take long and seldom find what others do not.
And what `make unit` leaves out, which sets $NACELLE_UNIT=1: all but the first of them."""

from __future__ import annotations

import itertools
import os
import sys
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")

LONG = os.environ.get("NACELLE_LONG") == "1"
UNIT = os.environ.get("NACELLE_UNIT") == "1"


def only(names: str) -> str:
    """For COCOTB_TEST_FILTER, where a build is one of several of a unit: the tests whose names match, or all of them in a long
    test."""
    return "." if LONG else names


def some(values: Sequence[T], count: int = 1) -> list[T]:
    """All values in a long test, the first of them for one unit, else the first `count`."""
    return list(values if LONG else values[: 1 if UNIT else count])


def alternately(values: Sequence[T]) -> list[T]:
    """All values in a long test. Else one: of a file's parameters that have as many values the first has the first of them, the
    second the second, and so on. For what is a property of the bench, such as how often it stalls."""
    if LONG:
        return list(values)
    test_file = sys._getframe(1).f_code.co_filename
    turn = next(_turns.setdefault((test_file, len(values)), itertools.count()))
    return [values[turn % len(values)]]


_turns: dict[tuple[str, int], itertools.count[int]] = {}


def rounds(whole: int) -> int:
    """Of rounds of a random test: all in a long test, else a third."""
    return whole if LONG else -(-whole // 3)
