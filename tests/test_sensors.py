# SPDX-License-Identifier: Apache-2.0
"""`nacelle sensors`: what the description of a device names, with values that follow its load, on the wire and over the network."""

from __future__ import annotations

import json
import os
import time
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import ADDRESS, ROOT, Wire
from ipbus_programs import TOKEN
from test_ipbus import Managed

LIBRARIES = ROOT / "build" / "sim"
NAME = "board"
UNITS = {"temperature": "°C", "voltage": "V", "current": "A", "power": "W", "fan": "rpm"}


def described(device: str) -> list[dict[str, Any]]:
    """The sensors of a description."""
    return tomllib.loads((ROOT / "devices" / f"{device}.toml").read_text())["sensors"]


def in_bounds(shown: list[dict[str, Any]], expected: list[dict[str, Any]]) -> None:
    """All sensors are there, each with a value between those of an idle and of a busy device, or with none."""
    assert [(one["name"], one["kind"], one["unit"]) for one in shown] == [
        (one["name"], one["kind"], UNITS[one["kind"]]) for one in expected
    ]
    for one, bounds in zip(shown, expected, strict=True):
        if "simulated" in bounds:
            assert min(bounds["simulated"]) <= one["value"] <= max(bounds["simulated"]), one
            assert one["simulated"] is True and 0 <= one["age_seconds"] < 20, one
        else:
            assert one["value"] is one["simulated"] is one["age_seconds"] is None, one


@pytest.mark.parametrize("device", ["standard", "test"])
def test_every_sensor_is_shown(wire: Wire, device: str) -> None:
    """By its name, also the longest; below zero; and one that nothing gives a value."""
    suffix = "" if device == "standard" else f"_{device}"
    wire.device("--name", NAME, "--library", str(LIBRARIES / f"libnacelle_sim_64{suffix}.so"))
    in_bounds(wire.json("sensors", NAME), described(device))
    lines = wire.run("sensors", ADDRESS).stdout.splitlines()
    assert lines[0].split() == ["NAME", "KIND", "VALUE", "AGE", "SOURCE"] and len(lines) == len(described(device)) + 1
    values = [line.split()[2] for line in lines[1:]]
    assert values.count("-") == sum("simulated" not in one for one in described(device))
    assert all(line.endswith("simulated") for line, value in zip(lines[1:], values, strict=True) if value != "-")


def test_current_and_power_rise_with_the_load(wire: Wire) -> None:
    """And fall when it ends; the voltage does the opposite, as its description says."""
    wire.device("--name", NAME, "--library", str(LIBRARIES / "libnacelle_sim_64.so"))
    idle, busy = ({(one["name"], one["kind"]): one["simulated"][i] for one in described("standard")} for i in (0, 1))

    def parts() -> dict[tuple[str, str], float]:
        """Where each value is between that of an idle and that of a busy device."""
        found = {(one["name"], one["kind"]): one["value"] for one in wire.json("sensors", NAME)}
        return {which: (value - idle[which]) / (busy[which] - idle[which]) for which, value in found.items()}

    def until(condition: Any, what: str) -> None:
        end = time.monotonic() + 60
        while not condition(found := parts()):
            assert time.monotonic() < end, f"{what}: {found}"

    until(lambda now: now["vccint", "current"] < 0.02, "it is idle")
    matrix = np.ones((160, 160), np.int32)
    np.save(wire.folder / "a.npy", matrix)
    call = wire.start("run", "matmul", "--device", ADDRESS, "a.npy", "a.npy", "-o", "c.npy", "--timeout", "600")
    # One of three sockets has a call.
    loaded = [which for which in idle if which[1] != "temperature"]
    until(lambda now: all(0.2 < now[which] < 0.5 for which in loaded), "it works")
    assert call.poll() is None, "the call was too short to be seen"
    assert call.wait(300) == 0
    until(lambda now: all(now[which] < 0.02 for which in loaded), "it is idle again")
    in_bounds(wire.json("sensors", NAME), described("standard"))


def test_a_software_device_has_no_board(wire: Wire) -> None:
    wire.device("--soft", "--name", NAME)
    result = wire.run("sensors", NAME)
    assert result.returncode == 4 and "the device has no sensors" in result.stderr and "\ntry: " in result.stderr, result.stderr


@pytest.mark.skipif(os.geteuid() != 0 or not Path("/dev/net/tun").exists(), reason="needs root and /dev/net/tun")
def test_sensors_by_way_of_the_network(wire: Wire, namespace: list[str]) -> None:
    """For who has the token: how much power a device takes tells what others do with it."""
    device = Managed(wire, namespace, "rtl")
    refused = device.command("sensors", ADDRESS)
    assert refused.returncode == 4 and "without a token" in refused.stderr, refused.stderr
    token = {"NACELLE_TOKEN": "".join(f"{word:08x}" for word in TOKEN)}
    shown = device.command("--json", "sensors", ADDRESS, environment=token)
    assert shown.returncode == 0, shown.stderr
    in_bounds(json.loads(shown.stdout), described("standard"))
    # Nobody can make a device look well: nothing can be written.
    written = device.command("config", "set", ADDRESS, "sensors.VALUE[0]", "1", environment=token)
    assert written.returncode == 2 and "cannot be written" in written.stderr, written.stderr
