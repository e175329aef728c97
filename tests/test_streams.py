# SPDX-License-Identifier: Apache-2.0
"""This machine's own kernel behind a kernel on the path of its network card: addresses are translated by the RTL, as the commands
of the page set it up, and its ping reaches a peer that sees the other address."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest
from conftest import ROOT, Wire, tshark
from test_own_card import Own

LIBRARY = ROOT / "build/sim/libnacelle_sim_64_nic.so"
PAGE = ROOT / "docs/reference/stream-sockets.md"
PEER, INSIDE, OUTSIDE = "10.77.0.9", "192.168.7.2", "10.77.1.50"
IDENTIFIER, TRANSLATED = 5000, 40000
NAME = "nacelle-stream"

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0 or not Path("/dev/net/tun").exists(), reason="needs root and /dev/net/tun"),
    pytest.mark.skipif(not LIBRARY.exists(), reason=f"needs {LIBRARY.name}: run `python sim/build.py --device nic --data-w 64`"),
]


def config(wire: Wire, *arguments: str) -> str:
    done = wire.run("config", *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


def value(wire: Wire, name: str) -> int:
    return int(config(wire, "get", "card", name).split()[-1])


def test_the_kernel_is_behind_another_address(wire: Wire, namespace: list[str]) -> None:
    wire.start("device", "--soft", "--name", "peer", "--ip", f"{PEER}/16")
    own = Own(wire, namespace, "card", NAME, f"{INSIDE}/24", LIBRARY)
    own.run("ip", "route", "add", "10.77.0.0/16", "dev", NAME)
    commands = re.findall(r"^\$ nacelle config (.*)$", PAGE.read_text(), re.MULTILINE)
    assert len(commands) > 7
    for command in commands:
        words = command.split()
        assert words[1] == "rtl0"
        assert config(wire, words[0], "card", *words[2:]) or words[0] == "set"
    for name, word in (("ENTRY", 1), ("INSIDE", 0xC0A80702), ("PORTS", IDENTIFIER << 16 | TRANSLATED), ("PROTOCOL", 1)):
        config(wire, "set", "card", f"nat.{name}", str(word))
    capture = wire.folder / "wire.pcapng"
    watch = wire.start("capture", "-o", str(capture))
    ping = ("ping", "-e", str(IDENTIFIER), "-c", "3", "-i", "0.5", "-W", "60")
    for size in ("0", "56", "1400"):
        assert " 0% packet loss" in own.run(*ping, "-s", size, PEER)
    watch.terminate()
    watch.wait(30)
    seen = tshark(capture, f"ip.addr == {PEER} && icmp", "ip.src", "ip.dst", "icmp.ident")
    assert {tuple(row[:2]) for row in seen} == {(OUTSIDE, PEER), (PEER, OUTSIDE)}
    assert {row[2].split(",")[0] for row in seen} == {str(TRANSLATED)}
    assert not tshark(capture, f"ip.addr == {INSIDE} || arp.src.proto_ipv4 == {INSIDE}", "frame.number")
    assert value(wire, "nat.TRANSLATED_TX") >= 10 and value(wire, "nat.TRANSLATED_RX") >= 10
    assert not value(wire, "stream.CUTS")

    # A rule by which echo replies go round the kernel: they reach nobody.
    assert wire.run("filter", "add", "card", "protocol", "1", "default", "around").returncode == 0
    rounds = value(wire, "stream.RX_ROUND")
    assert "100% packet loss" in own.run("bash", "-c", f"ping -e {IDENTIFIER} -c 1 -W 2 {PEER} || true")
    assert value(wire, "stream.RX_ROUND") > rounds
    (rule,) = wire.json("filter", "list", "card")["rules"]
    assert wire.run("filter", "delete", "card", str(rule["position"])).returncode == 0
    assert " 0% packet loss" in own.run(*ping, PEER)

    # A limit that no frame keeps: the kernel is cut off, and the log says so. Restarted it has forgotten its settings.
    config(wire, "set", "card", "stream.LIMIT", "1")
    own.run("bash", "-c", f"ping -c 1 -W 1 {PEER} || true")
    assert value(wire, "stream.STATUS.cut") == 1
    entries = json.loads(wire.run("--json", "log", "card").stdout)["entries"]
    assert [entry["reason"] for entry in entries if entry["kind"] == "stream-cut"] == ["a sent frame was late"]
    config(wire, "set", "card", "stream.LIMIT", "4096")
    config(wire, "set", "card", "stream.COMMAND", "1")
    assert value(wire, "stream.STATUS.cut") == 0 and value(wire, "nat.CONTROL.enable") == 0
