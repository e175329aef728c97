# SPDX-License-Identifier: Apache-2.0
"""Draws the transport's figures from the results: one SVG a subject, for the page of measurements."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt
from sizes import size_name
from transport import LOSSES, MTUS, SIZES, VERBS, ceiling

# The same results make the same files.
matplotlib.rcParams.update({"svg.hashsalt": "nacelle", "font.size": 9, "axes.grid": True, "grid.alpha": 0.3})
METADATA = {"Date": None, "Creator": None}
STYLES = {1024: "--", 4096: "-"}


def bandwidth(values: dict[str, float], axes: Any) -> None:
    """Throughput over message size."""
    for verb in VERBS:
        colour = None
        for mtu in MTUS:
            points = [(size, values.get(f"rtl.{verb}.bandwidth.mtu{mtu}.{size_name(size)}")) for size in SIZES]
            sizes, rates = zip(*[(size, rate) for size, rate in points if rate is not None], strict=True)
            (line,) = axes.plot(sizes, rates, STYLES[mtu], marker=".", color=colour, label=f"{verb.upper()}, MTU {mtu}")
            colour = line.get_color()
    for mtu in MTUS:
        axes.axhline(ceiling(mtu), color="grey", linewidth=0.7, linestyle=STYLES[mtu], label=f"ceiling of the line, MTU {mtu}")
    axes.set_xscale("log", base=2)
    axes.set_xticks(SIZES, [size_name(size) for size in SIZES])
    axes.set(xlabel="message", ylabel="payload, Gb/s", title="Device to device, one queue pair, 100G Ethernet")


def queue_pairs(values: dict[str, float], axes: Any) -> None:
    """Throughput over the number of queue pairs."""
    points = sorted(
        (int(match[1]), value) for name, value in values.items() if (match := re.fullmatch(r"rtl\.write\.qps(\d+)", name))
    )
    axes.plot(*zip(*points, strict=True), marker=".", label="WRITE, 64 KiB, MTU 4096")
    axes.set_xscale("log", base=2)
    axes.set(xlabel="queue pairs", ylabel="share of the ceiling, %", ylim=(90, 101), title="Sharing the line")


def goodput(values: dict[str, float], axes: Any) -> None:
    """Goodput over loss."""
    for name, label in (("selective_repeat", "selective repeat"), ("go_back_n", "go-back-N")):
        axes.plot(LOSSES, [values[f"rtl.goodput.{name}.loss{loss:g}"] for loss in LOSSES], marker=".", label=label)
    axes.set_xscale("log")
    axes.set_xticks(LOSSES, [f"{loss:g}" for loss in LOSSES])
    axes.set(
        xlabel="frames lost, %", ylabel="goodput, % of lossless", ylim=(0, 103), title="WRITE over loss, round trip 10 µs, MTU 4096"
    )


PLOTS = {"bandwidth": bandwidth, "queue-pairs": queue_pairs, "goodput": goodput}


def draw(results: dict[str, dict[str, Any]], folder: Path) -> list[str]:
    """Writes every plot whose figures are all there and returns the names of the files."""
    values = {name: result["value"] for name, result in results.items()}
    folder.mkdir(parents=True, exist_ok=True)
    files = []
    for name, plot in PLOTS.items():
        figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
        try:
            plot(values, axes)
        except (KeyError, ValueError, TypeError):
            plt.close(figure)
            continue
        axes.legend(fontsize=7)
        figure.savefig(folder / f"{name}.svg", metadata=METADATA)
        plt.close(figure)
        files.append(f"{name}.svg")
    return files
