# SPDX-License-Identifier: Apache-2.0
"""Linux over the network card, in device time: two guests on two devices that a line joins (docs/reference/guest-time.md).

What is measured is the card, the slot, the line and Linux' TCP: a guest's processor costs no time. Figures are exact, and
the same in each run.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "interop"))

import guest_kernel  # noqa: E402
import image  # noqa: E402
import uml  # noqa: E402
from result import Result  # noqa: E402

HOW = "make setup-guest-time; make bench AREA=rtl"
UNSET = "none is set"
NACELLE = Path(os.environ.get("NACELLE_PROGRAMS", ROOT / "host" / "target" / "release")) / "nacelle"
WIDTH = int(os.environ.get("NACELLE_GUEST_TIME_WIDTH", "512"))
LIBRARY = ROOT / "build" / "sim" / f"libnacelle_sim_{WIDTH}_nic.so"
CLOCK_HZ = 250_000_000
LINE_MBPS = 100_000
DELAY_NS = 1000
FAR = "10.77.1.3"
# Each cycle of the wide device is simulated: a transfer is as long as TCP needs to reach its rate.
TRANSFER = os.environ.get("NACELLE_GUEST_TIME_BYTES", "4M")
CONNECTIONS = 50
MTUS = (1500, 9000)
TCP = (("rate", "Gbit/s", "higher"), ("share", "% of the line", "higher"), ("retransmissions", "segments", "lower"))
NAMES = (
    ("ping", "us", "lower"),
    *((f"tcp.{mtu}.{what}", unit, better) for mtu in MTUS for what, unit, better in TCP),
    ("connections", "1/s", "higher"),
    ("repeat.differences", "counters", "lower"),
)

# One connection after the other: each is opened, carries a byte each way, and is closed.
SERVE = """
import socket
server = socket.create_server(("", 7))
for _ in range({count}):
    one, _ = server.accept()
    one.sendall(one.recv(1))
    one.close()
"""
CONNECT = """
import socket, time
begin = time.monotonic()
for _ in range({count}):
    one = socket.create_connection(("{far}", 7))
    one.sendall(b"x")
    assert one.recv(1) == b"x"
    one.close()
print("connections a second:", {count} / (time.monotonic() - begin))
"""


def run(linux: uml.UserModeLinux, mtu: int, near: list[str], far: list[str]) -> dict[str, Any]:
    """Runs two guests; what `nacelle guest-time` says."""
    with tempfile.TemporaryDirectory() as name:
        scripts = []
        for number, lines in enumerate((near, far)):
            scripts.append(Path(name) / f"script{number}")
            scripts[-1].write_text(linux.script("set -e", *lines))
        command = [NACELLE, "--json", "guest-time", "--library", LIBRARY, "--linux", guest_kernel.KERNEL, "--delay", str(DELAY_NS)]
        command += ["--line-rate", str(LINE_MBPS), "--mtu", str(mtu), "--patience", "600", *scripts]
        done = subprocess.run([*map(str, command)], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"nacelle guest-time: {done.stderr}")
    return json.loads(done.stdout)


def found(pattern: str, said: dict[str, Any]) -> float:
    """A number that the first guest has written."""
    console = said["guests"][0]["console"]
    match = re.search(pattern, console, re.MULTILINE)
    if not match:
        raise RuntimeError(f"no {pattern!r} in:\n{console}")
    return float(match[1])


def ping(linux: uml.UserModeLinux) -> dict[str, Any]:
    """Eleven echo requests, of which the first finds the neighbour."""
    return run(linux, 1500, [f"ping -c 1 {FAR} >/dev/null", f"ping -c 10 -i 0.01 {FAR}"], ["sleep 0.3"])


def tcp(linux: uml.UserModeLinux, mtu: int) -> dict[str, Any]:
    """One stream of iperf3."""
    near = ["sleep 0.05", f"iperf3 -J -c {FAR} -n {TRANSFER}"]
    return run(linux, mtu, near, ["iperf3 -s -1 >/dev/null"])


def connections(linux: uml.UserModeLinux) -> dict[str, Any]:
    """Connections one after the other."""
    python = f"{sys.executable} -I -S -c"
    near = ["sleep 0.05", f"{python} '{CONNECT.format(count=CONNECTIONS, far=FAR)}'"]
    return run(linux, 1500, near, [f"{python} '{SERVE.format(count=CONNECTIONS)}'"])


def differences(one: dict[str, Any], other: dict[str, Any]) -> int:
    """Of the counters of two runs, how many are not the same."""
    pairs = [(one[name], other[name]) for name in ("time_ns", "runs", "messages")]
    pairs += [(a[name], b[name]) for a, b in zip(one["devices"], other["devices"], strict=True) for name in a]
    return sum(a != b for a, b in pairs)


def values(linux: uml.UserModeLinux) -> dict[str, float]:
    """All figures."""
    first, again = ping(linux), ping(linux)
    all_values = {"ping": found(r"= ([\d.]+)/", first) * 1000, "repeat.differences": float(differences(first, again))}
    line = min(LINE_MBPS * 1e6, WIDTH * CLOCK_HZ)
    for mtu in MTUS:
        said = tcp(linux, mtu)
        console = said["guests"][0]["console"]
        ended = json.loads(console[console.index("{\n") : console.rindex("}") + 1])["end"]
        rate = ended["sum_received"]["bits_per_second"]
        all_values[f"tcp.{mtu}.rate"] = rate / 1e9
        all_values[f"tcp.{mtu}.share"] = 100 * rate / line
        all_values[f"tcp.{mtu}.retransmissions"] = float(ended["sum_sent"]["retransmits"])
    all_values["connections"] = found(r"connections a second: ([\d.]+)", connections(linux))
    return all_values


def measure() -> Iterator[Result]:
    """The figures, or why there are none."""
    how = f"{HOW}; {WIDTH} bits, line {LINE_MBPS} Mbit/s, {DELAY_NS} ns, {TRANSFER} of TCP"
    reason, measured = None, dict[str, float]()
    if not guest_kernel.ready():
        reason = "needs a kernel of its own: make setup-guest-time"
    elif not LIBRARY.exists():
        reason = f"needs {LIBRARY.name}: python sim/build.py --device nic --data-w {WIDTH}"
    else:
        try:
            measured = values(uml.build())
        except (image.ImageError, RuntimeError) as error:
            reason = str(error).strip().splitlines()[0]
    for name, unit, better in NAMES:
        goal = 0.0 if name == "repeat.differences" else None
        source = "the same in each run" if goal is not None else UNSET
        yield Result(f"rtl.guest_time.{name}", measured.get(name), unit, goal, better, source, how, reason=reason)


if __name__ == "__main__":
    for result in measure():
        print(result.line())
