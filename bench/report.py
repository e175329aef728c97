# SPDX-License-Identifier: Apache-2.0
"""Puts the figures of bench/results.json into the documents, with date and commit.

python bench/report.py
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / folder) for folder in ("bench", "rtl/testing", "sim", "tools")]

import page  # noqa: E402
import source_table  # noqa: E402
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


HEAD = ["| figure | measured | goal |", "| --- | --- | --- |"]
# Of an area whose figures stand beside those of other software.
HEAD_WITH_PEERS = ["| figure | measured | goal | beside |", "| --- | --- | --- | --- |"]


def number(value: float) -> str:
    """With thousands apart."""
    return f"{value:,.0f}" if abs(value) >= 1000 or value == int(value) else f"{value:.3g}"


def row(words: str, result: dict[str, Any], with_peer: bool = False) -> str:
    """One line of a table, with what stands beside the figure."""
    goal = "" if result["goal"] is None else f"{'≥' if result['better'] == 'higher' else '≤'} {number(result['goal'])}"
    missed = " **missed**" if result["met"] is False else ""
    value = result["value"]
    shown = f"not measured: {result['reason']}" if value is None else f"{number(value)} {result['unit']}"
    peer = result["peer"]
    beside = f" {peer['name']}: {number(peer['value'])}" if peer else ""
    return f"| {words} | {shown} | {goal}{missed} |{f'{beside} |' if with_peer else ''}"


def when(results: dict[str, dict[str, Any]], area: str) -> str:
    """When the figures of an area were measured."""
    moments = {result.get("measured", "a day that is not recorded"): None for result in results.values() if result["area"] == area}
    return f"Measured on {', and on '.join(moments)}."


def area_table(results: dict[str, dict[str, Any]], area: str) -> list[str]:
    """All figures of an area; with a column for peers if any has one."""
    own = {name: result for name, result in results.items() if result["area"] == area}
    with_peers = any(result["peer"] for result in own.values())
    return [*(HEAD_WITH_PEERS if with_peers else HEAD), *(row(f"`{name}`", result, with_peers) for name, result in own.items())]


def main() -> None:
    """Command line."""
    file = ROOT / "bench" / "results.json"
    if not file.exists():
        sys.exit("bench/results.json is missing: run `make bench` first")
    results = {result["name"]: result for result in json.loads(file.read_text())}
    headlines = [row(words, results[name]) for name, words in HEADLINES.items() if name in results]
    if headlines:
        page.replace(ROOT / "README.md", "figures", "\n".join([*HEAD, *headlines, "", when(results, "rtl")]))
    source = source_table.table({name: result["value"] for name, result in results.items()})
    page.replace(ROOT / "docs" / "explanation" / "measurements.md", "source", "\n".join(source))
    areas = []
    for area in sorted({result["area"] for result in results.values()}):
        areas += [f"## {area}", "", when(results, area), "", *area_table(results, area), ""]
    pictures = [f"![{Path(file).stem}](plots/{file})\n" for file in draw(results, PLOTS)]
    page.replace(ROOT / "docs" / "explanation" / "measurements.md", "figures", "\n".join([*pictures, *areas]))


if __name__ == "__main__":
    main()
