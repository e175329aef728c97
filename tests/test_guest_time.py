# SPDX-License-Identifier: Apache-2.0
"""Linux guests in device time: `nacelle guest-time`, with the kernel of `make setup-guest-time`."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import dataclass
from typing import Any

import pytest
from conftest import ROOT, Wire

sys.path.insert(0, str(ROOT / "interop"))
import guest_kernel
import image
import uml
from nacelle_tb.long import LONG

LIBRARY = ROOT / "build/sim/libnacelle_sim_64_nic.so"
GUESTS = ("10.77.1.2", "10.77.1.3")
DEVICES = ("10.77.0.2", "10.77.0.3")
# On a busy machine; a run of these takes seconds to two minutes.
PATIENCE_S = 900
# What Linux writes about a driver or a device that does not do what it should.
COMPLAINTS = re.compile(r"\bBUG:|WARNING:|Oops|Call Trace|NETDEV WATCHDOG|\b(?:virtio|eth0).*(?:fail|error|bad|bogus)")

pytestmark = pytest.mark.xdist_group("uml")
needs_kernel = pytest.mark.skipif(
    not (LONG and guest_kernel.ready()), reason="needs a kernel of its own: make setup-guest-time, then make test-long"
)


@dataclass
class Ran:
    """What a run has said."""

    said: dict[str, Any]

    def console(self, guest: int) -> str:
        """What a guest has written."""
        return self.said["guests"][guest]["console"]

    def counted(self) -> dict[str, Any]:
        """All that is the same in each run: the end, to the nanosecond, and all counters. Not the port numbers that Linux picks."""
        return {name: value for name, value in self.said.items() if name not in ("host_seconds", "guests")}


def run(wire: Wire, *scripts: str, options: tuple[str, ...] = ()) -> Ran:
    """Runs guests; all must succeed, and Linux and the model of the slot must find nothing wrong."""
    files = []
    for number, script in enumerate(scripts):
        files.append(wire.folder / f"script{number}")
        files[-1].write_text(f"set -e\n{script}\n")
    arguments = ("--json", "guest-time", "--library", str(LIBRARY), "--linux", str(guest_kernel.KERNEL), *options)
    result = wire.run(*arguments, *map(str, files), timeout=PATIENCE_S)
    assert result.returncode == 0, result.stderr + result.stdout
    ran = Ran(json.loads(result.stdout))
    for guest in ran.said["guests"]:
        assert not COMPLAINTS.search(guest["console"]), guest["console"]
    for device in ran.said["devices"]:
        assert device["violations"] == device["memory_refused"] == device["rings_lost"] == device["requests_refused"] == 0, device
    return ran


def round_trips(console: str) -> tuple[float, float, float]:
    """The least, mean and longest round trip that ping has measured, in ms."""
    found = re.search(r"= ([\d.]+)/([\d.]+)/([\d.]+)", console)
    assert found, console
    return float(found[1]), float(found[2]), float(found[3])


@needs_kernel
def test_one_guest_pings_the_other_device(wire: Wire) -> None:
    """The same round trip each time, and the delay of the line twice in it."""
    ping = f"ping -c 4 -i 0.01 -W 1 {DEVICES[1]}; dmesg"
    near, far = (round_trips(run(wire, ping, options=("--delay", delay)).console(0)) for delay in ("1000", "101000"))
    assert near[2] < 0.1, near
    # The first one finds the neighbour by ARP.
    assert far[0] - near[0] == pytest.approx(0.2, abs=0.002), (near, far)


@needs_kernel
def test_two_guests_on_two_devices_do_the_same_in_each_run(wire: Wire) -> None:
    """Ping between two guests: all counters and the end of the run, to the nanosecond."""
    first, second = (run(wire, f"ping -c 5 -i 0.01 -W 1 {GUESTS[1]}", "sleep 0.1") for _ in range(2))
    assert re.search(r"5 packets transmitted, 5 received", first.console(0)), first.console(0)
    assert first.counted() == second.counted()


@needs_kernel
def test_tcp_between_two_guests_loses_nothing(wire: Wire) -> None:
    """iperf3, however long its frames take to simulate: no timeout that is not real."""
    try:
        linux = uml.build()
    except image.ImageError as error:
        pytest.skip(f"iperf3 cannot be fetched: {error}")
    serve = linux.script("iperf3 -s -1 >/mnt/log; cat /mnt/log; dmesg")
    call = linux.script("sleep 0.05", f"iperf3 -c {GUESTS[1]} -n 256K", "grep -E '^Tcp' /proc/net/snmp; dmesg")
    ran = run(wire, call, serve)
    assert re.search(r"Bytes +[\d.]+ [MG]bits/sec +0 +sender", ran.console(0)), ran.console(0)
    names, values = (line.split() for line in ran.console(0).splitlines() if line.startswith("Tcp:"))
    assert dict(zip(names, values, strict=True))["RetransSegs"] == "0"


def test_a_missing_kernel_names_the_target(wire: Wire) -> None:
    """And what cannot be a run does not begin."""
    script = wire.folder / "script"
    script.write_text("true\n")
    result = wire.run("guest-time", "--library", str(LIBRARY), "--linux", "/nowhere", str(script))
    assert result.returncode == 2 and "make setup-guest-time" in result.stderr, result.stderr


def needs_library() -> None:
    """Skips a test where there is no device."""
    if not LIBRARY.exists():
        pytest.skip(f"needs {LIBRARY.name}: run `python sim/build.py --device nic --data-w 64`")


def test_what_is_no_guest_ends_the_run_with_what_it_wrote(wire: Wire) -> None:
    """A program that ends at once, and one that never asks for its time."""
    needs_library()
    script = wire.folder / "script"
    script.write_text("true\n")
    fake = wire.folder / "linux"
    for text, patience, said in (
        ("echo so it goes; exit 1", "60", "guest 0 has died"),
        ("echo hm; sleep 60", "0.5", "guest 0 has run for"),
    ):
        fake.write_text(f"#!/bin/sh\n{text}\n")
        fake.chmod(0o755)
        arguments = ("guest-time", "--library", str(LIBRARY), "--linux", str(fake), "--patience", patience, str(script))
        result = wire.run(*arguments)
        assert result.returncode == 5, result.stderr
        assert said in result.stderr and text.split(";")[0].removeprefix("echo ") in result.stderr, result.stderr


@needs_kernel
def test_a_guest_that_dies_is_reported_with_its_console(wire: Wire) -> None:
    """While the other one waits for it."""
    crash, wait = wire.folder / "crash", wire.folder / "wait"
    crash.write_text("echo before; echo c >/proc/sysrq-trigger\n")
    wait.write_text("sleep 30\n")
    arguments = ("guest-time", "--library", str(LIBRARY), "--linux", str(guest_kernel.KERNEL))
    result = wire.run(*arguments, str(wait), str(crash), timeout=PATIENCE_S)
    assert result.returncode == 5 and "guest 1 has died" in result.stderr and "sysrq_handle_crash" in result.stderr, result.stderr


@needs_kernel
def test_a_kernel_of_debian_is_told_from_one_with_time_travel(wire: Wire) -> None:
    """It finds its card, and never asks for its time."""
    try:
        linux = uml.build()
    except image.ImageError as error:
        pytest.skip(f"User-mode Linux cannot be fetched: {error}")
    script = wire.folder / "script"
    script.write_text("true\n")
    arguments = ("guest-time", "--library", str(LIBRARY), "--linux", str(linux.kernel), "--patience", "30", str(script))
    result = wire.run(*arguments)
    assert result.returncode != 0 and "make setup-guest-time" in result.stderr, result.stderr
