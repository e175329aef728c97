# SPDX-License-Identifier: Apache-2.0
"""Proves the assertions of a small module for all time, whatever its inputs do.

The module (a harness around a cell, with immediate assertions and assumptions) goes through slang and yosys into an AIGER circuit,
and ABC's property-directed reachability decides. A harness has a parameter REACH: set, it asserts that something worth
reaching never happens, and that must fail, or else the assumptions forbid too much and the proof says nothing.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pyosys

from .sources import ROOT, module_dirs

_ABC = Path(pyosys.__file__).parent / "yosys-abc"
_RUN = "import sys; from pyosys import libyosys as ys; d = ys.Design(); [ys.run_pass(c, d) for c in sys.argv[1:]]"
_STEPS = (
    "prep -flatten",
    "async2sync",  # or, of several clocks, clk2fflogic
    "chformal -lower",
    "delete -output",
    "memory_map -formal",
    "setundef -undriven -anyseq",
    "opt -full",
    "techmap",
    "dffunmap",
    "setundef -anyseq",
    "aigmap",
    "opt_clean",
)


def _decide(harness: Path, params: Mapping[str, int], cut: str, clocks: int, how: str) -> bool:
    """True: no assertion of `harness` can fail, as ABC finds by the command `how`. False: one can."""
    build = ROOT / "build" / "formal"
    build.mkdir(parents=True, exist_ok=True)
    circuit = build / ("_".join([harness.stem, *(f"{name}{value}" for name, value in params.items())]) + ".aig")
    read = ["read_slang", "--top", harness.stem, *(f"-G {name}={value}" for name, value in params.items())]
    read += [f"-y {path}" for path in [harness.parent, *module_dirs()]] + [str(harness)]
    prepare, *steps = ("clk2fflogic" if clocks > 1 and step == "async2sync" else step for step in _STEPS)
    commands = [" ".join(read), prepare, *([f"cutpoint {cut}"] if cut else []), *steps, f"write_aiger -zinit {circuit}"]
    yosys = subprocess.run([sys.executable, "-c", _RUN, *commands], capture_output=True, text=True, check=False)
    assert yosys.returncode == 0, yosys.stdout[-3000:] + yosys.stderr[-3000:]
    script = f"read_aiger {circuit}; fold; strash; {how}"
    abc = subprocess.run([_ABC, "-c", script], capture_output=True, text=True, check=True)
    bounded = re.search(r"No output asserted in (\d+) frames", abc.stdout)
    if re.search(r"Property proved|property proved", abc.stdout) or (bounded and f"-F {bounded[1]} " in how):
        return True
    assert "was asserted in frame" in abc.stdout, f"no decision by {how}:\n{abc.stdout[-2000:]}"
    return False


def prove(
    harness: Path, params: Mapping[str, int] | None = None, cut: str = "", clocks: int = 1, seconds: int = 500, frames: int = 0
) -> None:
    """Fails if an assertion of the module in `harness` can fail, or if what REACH names cannot be reached.

    With `frames` the proof is bounded: no assertion can fail in that many cycles after reset. For what does not converge otherwise.
    `cut` is a selection of yosys: these cells may give anything. What is proved then holds all the more. With several `clocks` each
    is an input that rises at any time.
    """
    params = dict(params or {})
    can_be_reached = not _decide(harness, {**params, "REACH": 1}, cut, clocks, f"bmc3 -T {seconds}")
    assert can_be_reached, f"{harness.stem}: what REACH names cannot happen"
    how = f"bmc3 -F {frames} -T {seconds}" if frames else f"pdr -T {seconds}"
    assert _decide(harness, {**params, "REACH": 0}, cut, clocks, how), f"{harness.stem}: an assertion can fail"
