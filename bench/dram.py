# SPDX-License-Identifier: Apache-2.0
"""What the model of DRAM gives, as a share of what its data lines can carry: the model alone, at a port of 512 bits with the clock
of its controller, as the authors of NAA measured their memory (266.6 MHz: a beat a cycle is all that DDR4-2133 can carry)."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

from nacelle_tb.device import DRAMS, load_dram
from result import Result

ROOT = Path(__file__).resolve().parents[1]
SOURCE, PROGRAM = ROOT / "bench" / "dram.cpp", ROOT / "build" / "bench" / "dram"
HEADERS = [ROOT / "sim" / name for name in ("dram.h", "ddr.h", "ecc.h", "nacelle_sim.h")]
HOW = "make bench AREA=rtl"
NAME = "ddr4-2133"
CLOCK_HZ = 266_666_666
GOAL = 93.8  # 16 of 17.06 GB/s
SOURCE_OF_GOAL = "NAA's authors, their DDR4"
WAYS = ("read", "write", "both")
PATTERNS = ("sequential", "random")


def shares(name: str = NAME, clock_hz: int = CLOCK_HZ) -> dict[tuple[str, str], float]:
    """In percent, of each way and pattern."""
    if not PROGRAM.exists() or any(PROGRAM.stat().st_mtime < path.stat().st_mtime for path in [SOURCE, *HEADERS]):
        PROGRAM.parent.mkdir(parents=True, exist_ok=True)
        partial = PROGRAM.with_suffix(".partial")
        command = ["g++", "-std=gnu++20", "-O2", f"-I{ROOT / 'sim'}", "-o", str(partial), str(SOURCE)]
        subprocess.run(command, check=True)
        partial.rename(PROGRAM)
    values = dict(load_dram(DRAMS / f"{name}.toml").values)
    peak = values["burst_bytes"] / values["burst"] * 1e12
    found = {}
    for way in WAYS:
        for pattern in PATTERNS:
            command = [str(PROGRAM), str(clock_hz), way, pattern, *map(str, values.values())]
            result = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
            found[way, pattern] = 100 * float(result.stdout) / peak
    return found


def measure() -> Iterator[Result]:
    """All of them."""
    for (way, pattern), share in shares().items():
        goal = GOAL if pattern == "sequential" and way != "both" else None
        yield Result(f"rtl.dram.{pattern}.{way}.share", share, "% of peak", goal, "higher", SOURCE_OF_GOAL, HOW)
