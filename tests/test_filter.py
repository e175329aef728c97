# SPDX-License-Identifier: Apache-2.0
"""`nacelle filter`: rules of the simulated RTL decide about frames that others send it, and are as they were given."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from conftest import ADDRESS, ROOT, Wire

LIBRARY = ROOT / "build" / "sim" / "libnacelle_sim_64_nic.so"
RULES = ["priority 10 src 10.77.0.0/16 protocol 1 drop", "priority 20 udp dst-port 9 mirror queue 0"]


@pytest.fixture
def nic(wire: Wire) -> Wire:
    """A device with a classifier and a network card that has no driver."""
    if not LIBRARY.exists():
        pytest.skip(f"needs {LIBRARY.name}: run `python sim/build.py --device nic --data-w 64`")
    wire.device("--name", "own", "--library", str(LIBRARY))
    return wire


def refused(wire: Wire, code: int, *arguments: str) -> str:
    """What a command says that must fail."""
    done = wire.run("filter", *arguments)
    assert done.returncode == code, done.stderr
    return done.stderr


def change(wire: Wire, *arguments: str) -> None:
    done = wire.run("filter", *arguments)
    assert done.returncode == 0, done.stderr


def rules(wire: Wire) -> list[dict[str, Any]]:
    return wire.json("filter", "list", "own")["rules"]


def answers(wire: Wire) -> bool:
    """Whether the device answers an echo request."""
    return wire.run("ping", "--count", "1", "--timeout", "3", ADDRESS).returncode == 0


def test_rules_decide(nic: Wire) -> None:
    assert rules(nic) == [] and answers(nic)
    for rule in reversed(RULES):
        change(nic, "add", "own", *rule.split())
    assert [rule["rule"] for rule in rules(nic)] == RULES
    assert not answers(nic)
    first, second = rules(nic)
    assert first["frames"] >= 1 and first["bytes"] >= 42 * first["frames"]
    assert second["frames"] == 0
    change(nic, "delete", "own", str(first["position"]))
    assert [rule["rule"] for rule in rules(nic)] == RULES[1:]
    assert answers(nic)


def test_a_file_of_rules(nic: Wire, tmp_path: Path) -> None:
    file = tmp_path / "rules"
    file.write_text("# who may ping\noffset 14\n" + "\n".join(reversed(RULES)) + f"\npriority 5 src {ADDRESS} device\n")
    change(nic, "set", "own", str(file))
    assert [rule["rule"] for rule in rules(nic)] == [f"priority 5 src {ADDRESS} device", *RULES]
    assert nic.json("filter", "list", "own")["offset"] == 14
    assert RULES[0] in nic.run("filter", "list", "own").stdout
    before = rules(nic)
    for text, says in (("udp drop\ntcp dorp", 'line 2: "dorp"'), ("udp host queue 4", "up to 3"), ("offset 200", "112")):
        file.write_text(text + "\n")
        assert says in refused(nic, 2, "set", "own", str(file))
    assert "no rule at position 99" in refused(nic, 2, "delete", "own", "99")
    assert rules(nic) == before
    change(nic, "set", "own", "/dev/null")
    assert rules(nic) == [] and answers(nic)


def test_the_rules_of_the_page(nic: Wire, tmp_path: Path) -> None:
    """docs/reference/classifier.md shows some."""
    text = (ROOT / "docs" / "reference" / "classifier.md").read_text()
    shown = next(block for block in text.split("```") if block.startswith("\npriority"))
    (tmp_path / "rules.txt").write_text(shown)
    change(nic, "set", "own", str(tmp_path / "rules.txt"))
    assert [flow["flow"] for flow in flows(nic)] == ["src 10.0.0.1 dst 10.0.0.2 tcp src-port 80 dst-port 5000"]
    given = [line for line in shown.splitlines() if line.startswith("priority")]
    assert [rule["rule"].split()[1] for rule in rules(nic)] == [line.split()[1] for line in given]


def flows(wire: Wire) -> list[dict[str, Any]]:
    return wire.json("filter", "list", "own")["flows"]


def ping(wire: Wire, source: str) -> bool:
    """Whether the device answers echo requests from this address."""
    return wire.run("ping", "--count", "1", "--timeout", "3", "--source", f"{source}/16", ADDRESS).returncode == 0


def test_flows_decide(nic: Wire) -> None:
    """A flow goes before all rules, and is of exactly one source."""
    one = f"src 10.77.0.9 dst {ADDRESS} protocol 1"
    change(nic, "add", "own", *f"priority 1 dst {ADDRESS} protocol 1 drop".split())
    change(nic, "add", "own", "flow", *one.split(), "device")
    assert ping(nic, "10.77.0.9") and not ping(nic, "10.77.0.8")
    (flow,) = flows(nic)
    assert (flow["flow"], flow["action"]) == (one, "device") and flow["frames"] >= 1 and flow["bytes"] >= 42 * flow["frames"]
    assert f"{one} device" in nic.run("filter", "list", "own").stdout
    change(nic, "add", "own", "flow", *one.split(), "drop")
    change(nic, "set", "own", "/dev/null")
    assert flows(nic) == [] and ping(nic, "10.77.0.9")
    assert "there is no flow" in refused(nic, 2, "delete", "own", "flow", *one.split())
    assert "src-port and dst-port" in refused(nic, 2, "add", "own", "flow", *f"src 10.77.0.9 dst {ADDRESS} tcp drop".split())


def test_a_file_of_thousands_of_flows(nic: Wire, tmp_path: Path) -> None:
    """4096 and a rule, of which one lets the device answer; others change by a second file."""
    lines = [f"flow src 10.0.{n >> 8}.{n & 255} dst {ADDRESS} tcp src-port {n} dst-port 80 drop" for n in range(4095)]
    lines.append(f"flow src 10.77.0.9 dst {ADDRESS} protocol 1 device")
    file = tmp_path / "flows"
    file.write_text("\n".join([f"priority 1 dst {ADDRESS} protocol 1 drop", *lines]) + "\n")
    change(nic, "set", "own", str(file))
    assert ping(nic, "10.77.0.9") and not ping(nic, "10.77.0.8")
    file.write_text("\n".join(lines[-40:]) + "\n")
    change(nic, "set", "own", str(file))
    assert {f"flow {flow['flow']} {flow['action']}" for flow in flows(nic)} == set(lines[-40:])
    assert ping(nic, "10.77.0.8")
    file.write_text("\n".join([*lines, lines[7]]) + "\n")
    assert "line 4097: there is the same flow" in refused(nic, 2, "set", "own", str(file))


def test_meters_limit(nic: Wire, tmp_path: Path) -> None:
    """A bucket that is not filled again lets as many echo requests through as it holds; they are counted apart from those above."""
    change(nic, "add", "own", *f"priority 1 dst {ADDRESS} protocol 1 default meter 3".split())
    assert answers(nic), "a meter without settings limits nothing"
    change(nic, "add", "own", *"meter 3 rate 0 burst 2 frames".split())
    assert answers(nic) and answers(nic) and not answers(nic)
    (meter,) = nic.json("filter", "list", "own")["meters"]
    assert meter["over"] >= 1 and (meter["meter"], meter["burst"], meter["frames"], meter["to_host"]) == (3, 2, True, False)
    assert rules(nic)[0]["frames"] >= 4
    assert "meter 3 rate 0 burst 2 frames" in nic.run("filter", "list", "own").stdout
    change(nic, "delete", "own", "meter", "3")
    assert answers(nic)
    assert "meter 3 has no settings" in refused(nic, 2, "delete", "own", "meter", "3")
    assert "meter 40 has no settings" in refused(nic, 2, "delete", "own", "meter", "40")
    file = tmp_path / "meters"
    file.write_text("meter 3 rate 1000000 burst 2000\nmeter 5 rate 5000 burst 10 frames host\n")
    change(nic, "set", "own", str(file))
    found = [(meter["meter"], meter["to_host"]) for meter in nic.json("filter", "list", "own")["meters"]]
    assert found == [(3, False), (5, True)] and rules(nic) == []
    change(nic, "set", "own", "/dev/null")
    assert nic.json("filter", "list", "own")["meters"] == []


def test_a_device_without_a_classifier(wire: Wire) -> None:
    wire.device("--soft", "--name", "own")
    assert "this device has no classifier" in refused(wire, 4, "list", "own")
