# SPDX-License-Identifier: Apache-2.0
"""Measures Nacelle and prints each figure beside its goal and its peer; writes bench/results.json.

    python bench/bench.py [rtl] [host] [synth]

RTL figures are device cycles, exact and repeatable. Host figures are ratios against a peer measured in the same run.
A peer that is not installed (make setup-bench) is said to be not measured.
"""

from __future__ import annotations

import datetime
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / folder) for folder in ("rtl/testing", "bench", "tools", "sim")]

import synthesis  # noqa: E402
from result import Result  # noqa: E402

import host  # noqa: E402
import rtl  # noqa: E402

AREAS: dict[str, Callable[[], Iterator[Result]]] = {"rtl": rtl.measure, "host": host.measure, "synth": synthesis.measure}


def moment() -> str:
    """The date, and what is measured."""
    command = ["git", "describe", "--always", "--dirty", "--exclude", "*"]
    commit = subprocess.run(command, cwd=ROOT, capture_output=True, text=True).stdout.strip() or "of no commit"
    return f"{datetime.date.today()} at commit {commit}"


def main() -> None:
    """Command line."""
    areas = sys.argv[1:] or list(AREAS)
    unknown = [area for area in areas if area not in AREAS]
    if unknown:
        sys.exit(f"no such area: {', '.join(unknown)}; there are {', '.join(AREAS)}")
    results = []
    print(f"{'figure':44}{'value':>12} {'unit':14}{'goal':>12}  met  peer")
    for area in areas:
        for result in AREAS[area]():
            print(result.line(), flush=True)
            results.append(result)
    path = ROOT / "bench" / "results.json"
    # Areas that are not measured now keep their figures.
    kept = [record for record in json.loads(path.read_text()) if record["area"] not in areas] if path.exists() else []
    measured = {"measured": moment()}
    path.write_text(json.dumps([*kept, *(result.record() | measured for result in results)], indent=1) + "\n")
    missed = [result.name for result in results if result.met is False]
    absent = sum(result.value is None for result in results)
    print(f"\n{len(results)} figures written to {path.relative_to(ROOT)}; {len(missed)} miss their goal, {absent} are not measured")
    for name in missed:
        print(f"  {name}")


if __name__ == "__main__":
    main()
