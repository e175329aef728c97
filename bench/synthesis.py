# SPDX-License-Identifier: Apache-2.0
"""Size and logic depth by open synthesis, as `make synth` finds them."""

from __future__ import annotations

from collections.abc import Iterator

import synth
from result import Result

HOW = "make bench AREA=synth"


def measure() -> Iterator[Result]:
    """LUT, FF, BRAM36, UltraRAM and levels of every plane, and of the engine as a whole."""
    rows = {}
    for plane in synth.PLANES:
        row = rows[plane] = synth.synthesise_apart(plane, 512)
        goal = synth.PLANES[plane][1]
        for key in ("lut", "ff", "bram36", "uram", "levels"):
            yield Result(f"synth.{plane}.{key}", row[key], key, getattr(goal, key, None), "lower", "goals 2", HOW)
    for key in ("lut", "ff", "bram36", "uram"):
        total = sum(rows[plane][key] for plane in synth.ENGINE)
        yield Result(f"synth.engine.{key}", total, key, getattr(synth.ENGINE_GOAL, key, None), "lower", "goals 2", HOW)
