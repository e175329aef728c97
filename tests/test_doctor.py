# SPDX-License-Identifier: Apache-2.0
"""`nacelle doctor` on interfaces of the kernel, in a network of their own: neighbours, states, MTUs."""

from __future__ import annotations

import json
import os
import subprocess
from typing import Any

import pytest
from conftest import ADDRESS, NACELLE, Wire

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root for a network of its own")


def diagnosis(wire: Wire, namespace: list[str], *arguments: str) -> dict[str, Any]:
    """Each step that was tried, by its name."""
    command = [*namespace, str(NACELLE), "doctor", "--json", *arguments]
    result = subprocess.run(command, env=wire.environment, cwd=wire.folder, capture_output=True, text=True, timeout=60)
    said = json.loads(result.stdout)
    assert result.returncode == (0 if said["healthy"] else 1), result.stderr
    return {step["step"]: step for step in said["steps"] if step["outcome"] != "skipped"}


def test_an_interface_is_looked_at(wire: Wire, namespace: list[str]) -> None:
    def ip(*arguments: str) -> None:
        subprocess.run([*namespace, "ip", *arguments], check=True)

    peer = "198.51.100.9"
    assert list(steps := diagnosis(wire, namespace, peer)) == ["address", "link", "route"]
    assert "unreachable" in steps["route"]["found"] and "ip route" in steps["route"]["try"]

    ip("link", "add", "left", "type", "veth", "peer", "name", "right")
    ip("address", "add", "198.51.100.1/24", "dev", "left")
    ip("link", "set", "left", "mtu", "1500", "up")
    last = list((steps := diagnosis(wire, namespace, peer)).values())[-1]
    assert (last["step"], last["outcome"]) == ("interface", "fail"), last
    assert "left" in last["found"] and "ip link set left up" in last["try"]

    ip("link", "set", "right", "up")
    steps = diagnosis(wire, namespace, peer)
    assert "left is up, MTU 1500" in steps["interface"]["found"]
    assert "1024 bytes at most: the route takes IP packets of 1500 bytes" in steps["path MTU"]["found"]
    assert "UDP port 4791 of 198.51.100.1 is free" in steps["local port"]["found"]
    last = list(steps.values())[-1]
    assert last["step"] == "device's host" and "no host answers ARP for 198.51.100.9" in last["found"]


def test_a_device_behind_an_interface_is_healthy(wire: Wire, namespace: list[str]) -> None:
    wire.device("--soft", "--tap", "nacelle0", before=namespace)
    subprocess.run([*namespace, "ip", "address", "add", "10.77.0.1/16", "dev", "nacelle0"], check=True)
    subprocess.run([*namespace, "ip", "link", "set", "nacelle0", "up"], check=True)
    steps = diagnosis(wire, namespace, ADDRESS, "--link", "udp")
    assert {step["outcome"] for step in steps.values()} == {"ok"} and list(steps)[-1] == "round trip", steps
    assert f"{ADDRESS} answers ARP from 02:" in steps["device's host"]["found"]
