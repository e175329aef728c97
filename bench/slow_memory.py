# SPDX-License-Identifier: Apache-2.0
"""What a slow memory costs queue pairs that use the fast one: rate and latency beside queue pairs of the slow memory, as a share
of those beside as many of their own. The slow memory has 400 to 600 cycles of latency and stops for 10 000 cycles at times."""

from __future__ import annotations

from collections.abc import Iterator

from nacelle_tb.load import beside
from result import Result

HOW = "make bench AREA=rtl"
SOURCE = "a slow memory costs others nothing"


def measure() -> Iterator[Result]:
    """All of them."""
    for kind, size in (("write", 256), ("write", 1024), ("read", 256), ("read", 3000)):
        fair, _ = beside(512, "two-memories", kind, size, "near")
        for others in ("far", "both"):
            mine, _ = beside(512, "two-memories", kind, size, others)
            name = f"rtl.slow_memory.{others}.{kind}_{size}B"
            yield Result(f"{name}.rate", 100 * mine.done / fair.done, "%", 98, "higher", SOURCE, HOW)
            yield Result(f"{name}.latency", 100 * mine.mean / fair.mean, "%", 102, "lower", SOURCE, HOW)
            yield Result(f"{name}.latency_p99", 100 * mine.p99 / fair.p99, "%", 110, "lower", SOURCE, HOW)
