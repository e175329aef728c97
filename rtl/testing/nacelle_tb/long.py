# SPDX-License-Identifier: Apache-2.0
"""What only `make test-long` runs, which sets $NACELLE_LONG=1: combinations that take long and seldom find what others do not."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")

LONG = os.environ.get("NACELLE_LONG") == "1"


def some(values: Sequence[T], count: int = 1) -> list[T]:
    """All values in a long test, else the first `count`."""
    return list(values if LONG else values[:count])
