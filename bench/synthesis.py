# SPDX-License-Identifier: Apache-2.0
"""Size and logic depth by open synthesis, as `make synth` finds them."""

from __future__ import annotations

from collections.abc import Iterator

import synth
from nacelle_tb.device import standard
from result import Result

HOW = "make bench AREA=synth"
FIGURES = ("lut", "ff", "bram36", "uram", "bram36_with_uram", "levels")


def measure() -> Iterator[Result]:
    """Every part of the shell, their sum, and the engine as a whole."""
    shell = synth.Shell(standard())
    rows = []
    for part in shell.parts:
        rows.append(shell.synthesise(part))
        yield from figures(rows[-1])
    yield from figures(synth.total(rows, FIGURES))
    yield from figures(shell.synthesise(synth.ENGINE))


def figures(row: dict[str, float | str]) -> Iterator[Result]:
    """Those of one part; the sum's depth is that of the deepest part, and no goal."""
    part = row["plane"]
    goal = synth.GOALS.get(part, synth.Goal())
    for key in FIGURES:
        limit = None if part == synth.TOTAL else getattr(goal, key, None)
        yield Result(f"synth.{part}.{key}", row[key], key, limit, "lower", "goals 2", HOW)
