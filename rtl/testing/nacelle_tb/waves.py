# SPDX-License-Identifier: Apache-2.0
"""The waveform of a failed test: where it is, at which cycle the test ended, and a viewer that opens there."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass
from pathlib import Path

PS = {"fs": 0.001, "ps": 1.0, "ns": 1000.0, "us": 1e6, "ms": 1e9, "s": 1e12}
VIEWED_CYCLES = 60  # before the failure


@dataclass(frozen=True)
class Failure:
    """A test of a simulation that failed, and the simulated time when it ended."""

    test: str
    ps: int


def first_failure(results: Path) -> Failure | None:
    """The first test that failed, from cocotb's results file."""
    for case in ElementTree.parse(results).getroot().iter("testcase"):
        if case.find("failure") is None and case.find("error") is None:
            continue
        found = {item.get("name"): item.get("value") for item in case.iter("property")}
        return Failure(case.get("name", ""), round(float(found["sim_time_stop"]) * PS[found["sim_time_unit"]]))
    return None


def viewers(dump: Path, failure: Failure, clock_ps: int, top: str) -> dict[str, list[str]]:
    """Leaves beside `dump` what opens it at the failure, with the ports of `top` shown; the command of each viewer."""
    save, script, commands = (dump.with_suffix(suffix) for suffix in (".gtkw", ".tcl", ".sucl"))
    start = max(0, failure.ps - VIEWED_CYCLES * clock_ps)
    marks = f"*-13.0 {failure.ps} {' '.join(['-1'] * 26)}"
    save.write_text(f'[dumpfile] "{dump}"\n[timestart] {start}\n{marks}\n[treeopen] {top}.\n')
    # A saved signal is named with its range, which only the dump has.
    script.write_text(
        "set ports [list]\n"
        "for {set i 0} {$i < [gtkwave::getNumFacs]} {incr i} {\n"
        f"  if {{[regexp {{^{top}\\.[^.]+$}} [gtkwave::getFacName $i]]}} {{ lappend ports [gtkwave::getFacName $i] }}\n"
        "}\n"
        "gtkwave::addSignalsFromList $ports\n"
    )
    commands.write_text(f"scope_add {top}\ncursor_set {failure.ps}\ngoto_cursor\n")
    return {
        "gtkwave": ["gtkwave", "-a", str(save), "-S", str(script), str(dump)],
        "surfer": ["surfer", "-c", str(commands), str(dump)],
    }


def show_failure(results: Path, dump: Path, clock_ns: float, top: str) -> None:
    """Says where the waveform is and when the test failed, on stderr; opens a viewer if there is a display and one is installed."""
    failure = first_failure(results)
    if failure is None or not dump.exists():
        return
    clock_ps = round(clock_ns * 1000)
    print(f"{failure.test} failed at {failure.ps / 1000:.2f} ns, cycle {failure.ps // clock_ps}", file=sys.stderr)
    print(f"waveform: {dump}", file=sys.stderr)
    commands = viewers(dump, failure, clock_ps, top)
    for viewer, command in commands.items():
        print(f"   {' '.join(command)}", file=sys.stderr)
        if shutil.which(viewer) and (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
            subprocess.Popen(command, start_new_session=True)
            return
