# SPDX-License-Identifier: Apache-2.0
"""Draws the transport's figures from the results: one SVG a subject, for the page of measurements."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt
from copies import LONGEST_ALONE
from copies import SIZES as COPIES
from host_sizes import TRANSFERS
from sizes import size_name
from source_table import CLOCK_MHZ
from transport import LOSSES, MTUS, SIZES, VERBS, ceiling

# The same results make the same files.
matplotlib.rcParams.update({"svg.hashsalt": "nacelle", "font.size": 9, "axes.grid": True, "grid.alpha": 0.3})
PEERS = {
    "raw_udp": "raw UDP ping-pong",
    "ucx_am_tcp": "UCX over TCP",
    "ucx_put_tcp": "UCX put over TCP",
    "ucx_get_tcp": "UCX get over TCP",
    "libfabric_tcp": "libfabric over TCP",
    "mpi_tcp": "Open MPI over TCP",
    "mpi_shared_memory": "Open MPI, shared memory",
    "tonic": "tonic (gRPC)",
    "grpc_python": "gRPC for Python",
    "quinn": "quinn (QUIC)",
}
TRANSFER_WAYS = {"call": "call", "with_set_up": "with region set-up", "with_connection": "with connection and region set-up"}
HOST_LOSSES = ("0.1", "1", "5")
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


def peers(values: dict[str, float], axes: Any) -> None:
    """Our calls and one-sided transfers over each peer's."""
    call, write, read = "host.udp.rpc.p50.ratio.", "host.udp.verbs.write.bandwidth.ratio.", "host.udp.verbs.read.bandwidth.ratio."
    # A call's ratio is one of times: turned round, more is better in every bar.
    bars = [(f"call, {PEERS[key]}", 1 / values[call + key]) for key in PEERS if call + key in values]
    for verb, prefix in (("WRITE", write), ("READ", read)):
        bars += [(f"{verb}, {PEERS[key]}", values[prefix + key]) for key in PEERS if prefix + key in values]
    if not bars:
        raise KeyError(call)
    names, ratios = zip(*reversed(bars), strict=True)
    axes.barh(names, ratios, height=0.6)
    axes.axvline(1, color="grey", linewidth=0.7, label="as fast")
    for position, ratio in enumerate(ratios):
        axes.text(ratio, position, f" {ratio:.2g}", va="center", fontsize=8)
    axes.set_xscale("log")
    axes.grid(visible=False, axis="y")
    axes.set(xlabel="times as fast, in turns on the same machine", title="Software device over loopback UDP, beside other software")


def transfers(values: dict[str, float], axes: Any) -> None:
    """Throughput of calls over the size of their input."""
    for way, label in TRANSFER_WAYS.items():
        points = [(size, values.get(f"host.udp.transfer.{way}.{size_name(size)}")) for size in TRANSFERS]
        sizes, rates = zip(*[(size, rate) for size, rate in points if rate is not None], strict=True)
        axes.plot(sizes, rates, marker=".", label=label)
    axes.set_xscale("log", base=2)
    axes.set_xticks(TRANSFERS, [size_name(size) for size in TRANSFERS])
    axes.set(xlabel="input of the call", ylabel="payload, Gb/s", title="Software device over loopback UDP")


def host_loss(values: dict[str, float], axes: Any) -> None:
    """What is left of the bandwidth over loss, ours and soft-RoCE's."""
    share, ratio = "host.udp.goodput.share.loss", "host.udp.goodput.share.ratio.soft_roce.loss"
    ours = {loss: values[f"{share}{loss}"] for loss in HOST_LOSSES}
    theirs = {loss: ours[loss] / values[f"{ratio}{loss}"] for loss in HOST_LOSSES if f"{ratio}{loss}" in values}
    axes.plot(range(len(ours)), ours.values(), marker=".", label="user-space endpoint, selective repeat")
    if theirs:
        places = [HOST_LOSSES.index(loss) for loss in theirs]
        axes.plot(places, theirs.values(), marker=".", label="soft-RoCE in QEMU guests, go-back-N")
    axes.set_xticks(range(len(HOST_LOSSES)), HOST_LOSSES)
    axes.set(xlabel="frames lost, %", ylabel="goodput, % of each one's own without loss", ylim=(0, 110), title="Software over loss")


# Of RecoNIC (U250, Gen3 x16), as published: what its copies reach from 512 KiB on, and what a small one takes.
RECONIC_GBS, RECONIC_GBS_FROM, RECONIC_SMALL_US = 13, 512 << 10, 22
COPY_WAYS = {"to_device": "host to device", "to_host": "device to host"}


def copy_rates(values: dict[str, float], axes: Any) -> None:
    """Throughput of copies between host and device memory over their size."""
    for way, label in COPY_WAYS.items():
        axes.plot(COPIES, [values[f"rtl.copy.{way}.{size_name(size)}.rate"] for size in COPIES], marker=".", label=label)
    theirs = [size for size in COPIES if size >= RECONIC_GBS_FROM]
    axes.plot(theirs, [RECONIC_GBS] * len(theirs), "k--", linewidth=1, label="RecoNIC, host to device, as published")
    axes.set_xscale("log", base=2)
    axes.set_xticks(COPIES, [size_name(size) for size in COPIES])
    axes.set(xlabel="bytes of a copy", ylabel="GB/s", title="Many copies, slot of Gen3 x16 at 512 bits", ylim=(0, 15))


def copy_times(values: dict[str, float], axes: Any) -> None:
    """Time of one copy over its size."""
    sizes = [size for size in COPIES if size <= LONGEST_ALONE]
    for way, label in COPY_WAYS.items():
        times = [values[f"rtl.copy.{way}.{size_name(size)}.cycles"] / CLOCK_MHZ for size in sizes]
        axes.plot(sizes, times, marker=".", label=f"{label}: doorbell to completion seen")
    axes.axhline(RECONIC_SMALL_US, color="k", linestyle="--", linewidth=1, label="RecoNIC, small messages, as published")
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xticks(sizes, [size_name(size) for size in sizes])
    axes.set(xlabel="bytes of a copy", ylabel="us", title="One copy, slot of Gen3 x16 at 512 bits, host in lock-step")


PLOTS = {
    "bandwidth": bandwidth,
    "queue-pairs": queue_pairs,
    "goodput": goodput,
    "peers": peers,
    "transfers": transfers,
    "loss": host_loss,
    "copy-rates": copy_rates,
    "copy-times": copy_times,
}


def draw(results: dict[str, dict[str, Any]], folder: Path) -> list[str]:
    """Writes every plot whose figures are all there and returns the names of the files."""
    values = {name: result["value"] for name, result in results.items() if result["value"] is not None}
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
