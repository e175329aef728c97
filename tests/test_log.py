# SPDX-License-Identifier: Apache-2.0
"""The event log of both devices, as `nacelle log` shows it: each event once, with what it is about."""

from __future__ import annotations

import json
import time
from typing import Any

import numpy as np
import pytest
from conftest import ADDRESS, Wire

# Arguments, and of matrices that take longer than a kernel may the size. The time of the RTL is that of the device.
KINDS = {"rtl": (("--kernel-time", "1"), 256), "soft": (("--soft", "--kernel-time", "500"), 1500)}
PEER, PORT = "10.77.0.9", "12345"
RING = 32


@pytest.fixture(params=list(KINDS))
def size(request: pytest.FixtureRequest, wire: Wire) -> int:
    """A device of each kind, and one beside it that connects to it."""
    arguments, size = KINDS[request.param]
    wire.device("--name", "own", *arguments)
    wire.start("device", "--soft", "--name", "peer", "--ip", f"{PEER}/16")
    for _ in range(200):
        if wire.run("stats", "peer").returncode == 0:
            return size
        time.sleep(0.1)
    pytest.fail("the other device does not answer")


def entries(wire: Wire, *kinds: str, address: str | None = None) -> list[dict[str, Any]]:
    """Those of these kinds."""
    found = wire.json("log", "own")["entries"]
    return [entry for entry in found if entry["kind"] in kinds and address in (None, entry.get("address"))]


def comes(wire: Wire, count: int, *kinds: str, address: str | None = None) -> list[dict[str, Any]]:
    """So many of these kinds, once they are there."""
    for _ in range(300):
        if len(found := entries(wire, *kinds, address=address)) >= count:
            break
        time.sleep(0.1)
    assert len(found) == count, found
    return found


def connect(wire: Wire) -> int:
    """Opens a connection to the device and closes it; returns the exit code."""
    return wire.run("connect", "peer", ADDRESS, PORT).returncode


@pytest.mark.usefixtures("size")
def test_a_connection_is_logged_once(wire: Wire) -> None:
    [enabled] = entries(wire, "enabled")
    assert enabled["address"] == ADDRESS
    assert connect(wire) == 0
    [closed] = comes(wire, 1, "closed", address=PEER)
    [opened] = entries(wire, "opened", address=PEER)
    assert opened["qpn"] == closed["qpn"]
    assert "entry" not in opened and closed["reason"] == "by its peer"
    assert enabled["seconds"] <= opened["seconds"] <= closed["seconds"]
    assert wire.json("log", "own")["lost"] == 0

    assert wire.run("connect", "peer", ADDRESS, "999").returncode != 0
    assert len(entries(wire, "opened", address=PEER)) == 1


def test_a_kernel_that_takes_too_long_is_logged_once(wire: Wire, size: int) -> None:
    for name in ("a", "b"):
        np.save(wire.folder / f"{name}.npy", np.zeros((size, size), np.float32))
    result = wire.run("run", "matmul", "--device", ADDRESS, "a.npy", "b.npy", "-o", "c.npy")
    assert result.returncode == 6 and "time limit" in result.stderr, result.stderr
    assert comes(wire, 1, "kernel-timeout")[0]["ring"] == 1


@pytest.mark.usefixtures("size")
def test_a_failure_is_logged_once(wire: Wire) -> None:
    """A READ with a key that is not there."""
    assert wire.run("connect", "peer", ADDRESS, PORT, "--read", "16", "--from", "0x1000", "--rkey", "0xbad").returncode != 0
    [failed] = comes(wire, 1, "qp-failed")
    [closed] = comes(wire, 1, "closed", address=PEER)
    assert failed["qpn"] == closed["qpn"]


@pytest.mark.usefixtures("size")
def test_admission_is_logged(wire: Wire) -> None:
    assert wire.run("admission", "on", "own").returncode == 0
    assert connect(wire) != 0
    [refused] = comes(wire, 1, "refused", address=PEER)
    assert "token" in refused["reason"]
    assert wire.run("admission", "add", "own", "--network", f"{PEER}/32").returncode == 0
    child = wire.start("--json", "connect", "peer", ADDRESS, PORT, "--stay")
    [opened] = comes(wire, 1, "opened", address=PEER)
    assert opened["entry"] == 0
    assert wire.run("admission", "remove", "own", "0").returncode == 0
    child.wait(60)
    [closed] = comes(wire, 1, "closed", address=PEER)
    assert (closed["qpn"], closed["reason"]) == (opened["qpn"], "its admission was revoked")
    names = ["entry-added", "entry-revoked", "entry-freed"]
    assert [(entry["kind"], entry["entry"]) for entry in comes(wire, 3, *names)] == [(name, 0) for name in names]


@pytest.mark.usefixtures("size")
def test_strangers_push_out_only_themselves(wire: Wire) -> None:
    wire.run("admission", "on", "own")
    wire.run("admission", "add", "own", "--network", "192.0.2.0/24")
    before = entries(wire, "enabled", "entry-added")
    assert len(before) == 2
    for _ in range(RING + 4):
        assert connect(wire) != 0
    log = wire.json("log", "own")
    assert [(entry["kind"], entry["number"]) for entry in log["entries"] if entry["ring"] == 0] == [
        (entry["kind"], entry["number"]) for entry in before
    ]
    assert log["missed"][:2] == [0, 0] and log["missed"][3] >= 4
    refused = [entry for entry in log["entries"] if entry["kind"] == "refused" and entry["address"] == PEER]
    assert RING - 8 <= len(refused) <= RING


def test_the_log_is_read_by_people(wire: Wire) -> None:
    result = wire.run("log")
    assert result.returncode == 3 and "no device" in result.stderr, result.stderr
    wire.device("--name", "own", "--soft")
    follow = wire.start("--json", "log", "--follow")
    assert follow.stdout
    assert json.loads(follow.stdout.readline())["kind"] == "enabled"
    wire.start("device", "--soft", "--name", "peer", "--ip", f"{PEER}/16")
    while wire.run("stats", "peer").returncode != 0:
        time.sleep(0.1)
    assert connect(wire) == 0
    while (entry := json.loads(follow.stdout.readline()))["kind"] != "closed" or entry["address"] != PEER:
        assert entry["kind"] in ("opened", "closed")
    shown = wire.run("log", "own")
    assert shown.returncode == 0 and f"device enabled at {ADDRESS}" in shown.stdout.splitlines()[0]
    assert "name one" in wire.run("log").stderr
