# SPDX-License-Identifier: Apache-2.0
"""The widths of the data path, in bits, at which tests run: by default the narrowest and the reference, to save builds.

$NACELLE_WIDTHS names others, separated by spaces. `make test-long` adds 128 and 256.

A unit runs all of its tests at one width. At another it runs those that can find there what they do not find at the first, named
by `at_width`: of beats, their ends and gaps, throughput, latency. What consists of units that are tested at both widths is built at
one, by `nacelle_tb.long.some`; whole devices are tested at both. `make test-long` runs everything at each.
"""

from __future__ import annotations

import os

from .long import only

WIDTHS = [int(width) for width in os.environ.get("NACELLE_WIDTHS", "64 512").split()]


def at_width(width: int, names: str, everything_at: int = 64) -> dict[str, str]:
    """The part of a bench's environment that chooses its tests: at the width `everything_at` all, at another those whose names
    match."""
    return {} if width == everything_at else {"COCOTB_TEST_FILTER": only(names)}
