# SPDX-License-Identifier: Apache-2.0
"""Puts the figures of bench/results.json into the documents, with date and commit.

python bench/report.py
"""

from __future__ import annotations

import datetime
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / folder) for folder in ("bench", "rtl/testing", "sim", "tools")]

import page  # noqa: E402
from plots import draw  # noqa: E402

PLOTS = ROOT / "docs" / "explanation" / "plots"

# What the README shows: name, words.
HEADLINES = {
    "rtl.setup.3_regions.cycles": "region set-up, three regions: request in to answer out",
    "rtl.rpc.empty_64B.cycles": "call of an empty kernel, 64 bytes in and out, wire to wire",
    "rtl.write.bandwidth.mtu4096.64KiB": "WRITE, device to device, 64 KiB, MTU 4096, 100G Ethernet",
    "rtl.read.bandwidth.mtu4096.64KiB": "READ, the same",
    "rtl.write.latency": "WRITE: work request to first data at the far memory",
    "rtl.read.latency": "READ: work request to first data at the near memory",
    "rtl.write.message.cycles": "64-byte WRITEs over many queue pairs, each",
    "rtl.goodput.selective_repeat.loss1": "goodput at 1 % loss, selective repeat, 10 µs round trip",
    "rtl.simulation.busy": "speed of the simulation, busy",
    "rtl.simulation.busy.ratio": "the same beside a fixed program",
}


def number(value: float) -> str:
    """With thousands apart."""
    return f"{value:,.0f}" if abs(value) >= 1000 or value == int(value) else f"{value:.3g}"


def row(words: str, result: dict[str, Any]) -> str:
    """One line of a table."""
    goal = "" if result["goal"] is None else f"{'≥' if result['better'] == 'higher' else '≤'} {number(result['goal'])}"
    missed = " **missed**" if result["met"] is False else ""
    return f"| {words} | {number(result['value'])} {result['unit']} | {goal}{missed} |"


def main() -> None:
    """Command line."""
    file = ROOT / "bench" / "results.json"
    if not file.exists():
        sys.exit("bench/results.json is missing: run `make bench` first")
    results = {result["name"]: result for result in json.loads(file.read_text())}
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.strip()
    when = f"Measured on {datetime.date.today()} at commit {commit}."
    head = ["| figure | measured | goal |", "| --- | --- | --- |"]
    headlines = [row(words, results[name]) for name, words in HEADLINES.items() if name in results]
    page.replace(ROOT / "README.md", "figures", "\n".join([*head, *headlines, "", when]))
    areas = []
    for area in sorted({result["area"] for result in results.values()}):
        lines = [row(f"`{name}`", result) for name, result in results.items() if result["area"] == area]
        areas += [f"## {area}", "", *head, *lines, ""]
    pictures = [f"![{Path(file).stem}](plots/{file})\n" for file in draw(results, PLOTS)]
    page.replace(ROOT / "docs" / "explanation" / "measurements.md", "figures", "\n".join([when, "", *pictures, *areas]))


if __name__ == "__main__":
    main()
