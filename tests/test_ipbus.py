# SPDX-License-Identifier: Apache-2.0
"""Registers by way of the network: a device behind a TAP, managed by CERN's uhal as it comes from PyPI, and attacked."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ADDRESS, NACELLE, ROOT, Wire
from ipbus_programs import TOKEN

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0 or not Path("/dev/net/tun").exists(), reason="needs root and /dev/net/tun"),
    pytest.mark.xdist_group("ipbus"),
]
CCI_SOURCE, CCI_SOURCE_PREFIX, CCI_TOKEN = 0xD4, 0xD8, 0xE0
LIBRARY = ROOT / "build" / "sim" / "libnacelle_sim_64.so"
PROGRAMS = Path(__file__).with_name("ipbus_programs.py")
LOSS = ("--loss", "5", "--dup", "3", "--reorder", "3")


class Managed:
    """A device with a token, and the namespace from which it is managed."""

    def __init__(
        self, wire: Wire, namespace: list[str], kind: str, *arguments: str, token: bool = True, library: Path = LIBRARY
    ) -> None:
        self.wire, self.namespace, self.kind = wire, namespace, kind
        made_of = ("--soft",) if kind == "soft" else ("--library", str(library))
        wire.device("--name", "managed", "--tap", "nacelle0", *made_of, *arguments, before=namespace)
        subprocess.run([*namespace, "ip", "address", "add", "10.77.0.1/16", "dev", "nacelle0"], check=True)
        subprocess.run([*namespace, "ip", "link", "set", "nacelle0", "up"], check=True)
        if token:
            self.write(*[(CCI_TOKEN + 4 * i, word) for i, word in enumerate(TOKEN)])

    def write(self, *values: tuple[int, int]) -> None:
        """By the local bus."""
        accesses = [{"write": {"address": address, "value": value}} for address, value in values]
        self.wire.control("managed", "registers", accesses=accesses)

    def counters(self) -> dict[str, int]:
        """Of the services plane."""
        counts = self.wire.json("stats", ADDRESS)["counters"]
        prefix = "service." if self.kind == "soft" else "service_"
        return {name.removeprefix(prefix): count for name, count in counts.items() if name.startswith(prefix)}

    def hub(self, *arguments: str) -> None:
        """Starts a hub beside the device, and waits until it listens."""
        hub = self.wire.start("hub", *arguments, before=self.namespace)
        assert hub.stdout is not None
        line = hub.stdout.readline()
        assert "listens at 127.0.0.1:10203" in line, line

    def config(self, *arguments: str, environment: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        """`nacelle config` on a host of the device's network, on whose own wire there is no device."""
        return self.command("config", *arguments, environment=environment)

    def command(self, *arguments: str, environment: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        """The same for any command of `nacelle`."""
        command = [*self.namespace, str(NACELLE), "--wire", str(self.wire.folder / "other"), *arguments]
        env = {**self.wire.environment, **(environment or {})}
        return subprocess.run(command, env=env, capture_output=True, text=True, timeout=60)

    def run(self, program: str) -> str:
        """Runs one of the programs."""
        command = [*self.namespace, sys.executable, str(PROGRAMS), program, self.kind]
        result = subprocess.run(command, capture_output=True, text=True, timeout=170)
        assert result.returncode == 0, result.stdout + result.stderr
        return result.stdout


@pytest.fixture(params=["rtl", "soft"])
def kind(request: pytest.FixtureRequest) -> str:
    """Both kinds of device answer alike."""
    return request.param


def test_uhal_without_a_token_reads_what_is_public(wire: Wire, namespace: list[str], kind: str) -> None:
    pytest.importorskip("uhal")
    device = Managed(wire, namespace, kind, token=False)
    device.run("uhal_public")
    counts = device.counters()
    assert counts["login_wrong"] == 1 and counts["login"] == 0 and counts["refused"] == 4


def test_uhal_works_with_a_login(wire: Wire, namespace: list[str], kind: str) -> None:
    pytest.importorskip("uhal")
    device = Managed(wire, namespace, kind)
    device.run("uhal_work")
    counts = device.counters()
    assert counts["drop_malformed"] == counts["drop_length"] == counts["drop_room"] == 0


def test_uhal_over_a_lossy_network(wire: Wire, namespace: list[str], kind: str) -> None:
    pytest.importorskip("uhal")
    Managed(wire, namespace, kind, *LOSS).run("uhal_lossy")


def test_uhal_by_a_hub_notices_no_loss(wire: Wire, namespace: list[str], kind: str) -> None:
    pytest.importorskip("uhal")
    device = Managed(wire, namespace, kind, "--loss", "5")
    device.hub("--timeout", "0.2")
    device.run("uhal_hub_lossy")
    counts = device.counters()
    # Responses were lost, and asked for again.
    assert counts["resent"] > 0 and counts["login"] == 2


def test_a_hub_disconnects_who_is_silent(wire: Wire, namespace: list[str], kind: str) -> None:
    pytest.importorskip("uhal")
    device = Managed(wire, namespace, kind)
    device.hub("--silence", "1")
    device.run("uhal_hub_silent")


def test_config_by_way_of_the_network(wire: Wire, namespace: list[str], kind: str) -> None:
    device = Managed(wire, namespace, kind)
    token = wire.folder / "token"
    token.write_text("".join(f"{word:08x}" for word in TOKEN) + "\n")
    token.chmod(0o600)
    with_token = ("--token-file", str(token))

    def good(*arguments: str, **more: dict[str, str]) -> str:
        result = device.config(*arguments, **more)
        assert result.returncode == 0, result.stderr
        return result.stdout

    def bad(code: int, words: str, *arguments: str, **more: dict[str, str]) -> None:
        result = device.config(*arguments, **more)
        assert result.returncode == code and words in result.stderr and "\ntry: " in result.stderr, result.stderr

    # Without a token: what is public.
    blocks = good("blocks", ADDRESS)
    names = [line.split()[0] for line in blocks.splitlines()[1:5]]
    assert names == (
        ["device", "admission", "event_log", "histograms"] if kind == "soft" else ["device", "management", "admission", "event_log"]
    )
    assert good("get", f"{ADDRESS}:50001", "QPS").split()[-2:] == ["0x100", "256"]
    bad(4, "register 0x00040 cannot be read without a token", "get", ADDRESS, "KEEPALIVE_MS")
    bad(4, "register 0x05024 cannot be read without a token", "get", ADDRESS, "histograms.RUNNING")
    bad(4, "register 0x00040 cannot be written without a token", "set", ADDRESS, "KEEPALIVE_MS", "5")
    # With it: as by the local bus, but for what is its alone.
    assert good("get", ADDRESS, "KEEPALIVE_MS", *with_token).split()[-1] == ("5000" if kind == "soft" else "30000")
    good("set", ADDRESS, "KEEPALIVE_MS", "7000", *with_token)
    good("set", ADDRESS, "RPG_GD", "10", environment={"NACELLE_TOKEN": token.read_text()})
    local = wire.json("config", "get", "managed", "KEEPALIVE_MS", "RPG_GD")
    assert [row["value"] for row in local] == [7000, 10]
    bad(4, "register 0x000d0 cannot be read over the network", "get", ADDRESS, "CCI_PORT", *with_token)
    listed = device.config("list", ADDRESS, "device", *with_token)
    names = [line.split()[0] for line in listed.stdout.splitlines()]
    assert "KEEPALIVE_MS" in names and "service_login" in names and "CCI_PORT" not in names
    assert "left out" in listed.stderr and " CCI_PORT CCI_SOURCE CCI_SOURCE_PREFIX CCI_SESSION" in listed.stderr
    # Each command logs out: four that did not would take all places of the device.
    for _ in range(6):
        good("get", ADDRESS, "KEEPALIVE_MS", *with_token)
    # What is wrong is said.
    bad(4, "the token is not that of the device", "get", ADDRESS, "KEEPALIVE_MS", environment={"NACELLE_TOKEN": 8 * "0123"})
    bad(2, "$NACELLE_TOKEN has no token", "get", ADDRESS, "QPS", environment={"NACELLE_TOKEN": "secret"})
    bad(3, f"nothing at {ADDRESS}:50002 answers IPbus", "get", f"{ADDRESS}:50002", "QPS", "--timeout", "0.5")
    bad(3, "cannot be reached", "get", "192.0.2.1", "QPS", "--timeout", "0.5")
    token.chmod(0o644)
    bad(2, "other users can read the secret", "get", ADDRESS, "QPS", *with_token)
    counts = device.counters()
    assert counts["login_wrong"] == 1 and counts["login"] == 11, counts
    device.write((CCI_TOKEN, 0), (CCI_TOKEN + 4, 0), (CCI_TOKEN + 8, 0), (CCI_TOKEN + 12, 0))
    token.chmod(0o600)
    bad(4, "a device without a token lets nobody in", "get", ADDRESS, "KEEPALIVE_MS", *with_token)


def test_the_log_by_way_of_the_network(wire: Wire, namespace: list[str], kind: str) -> None:
    """It takes the token, and has who logged in, and who tried."""
    device = Managed(wire, namespace, kind)
    token = "".join(f"{word:08x}" for word in TOKEN)
    result = device.command("log", ADDRESS)
    assert result.returncode == 4 and "without a token" in result.stderr, result.stderr
    result = device.command("log", ADDRESS, environment={"NACELLE_TOKEN": 8 * "0123"})
    assert result.returncode == 4, result.stderr
    result = device.command("--json", "log", ADDRESS, environment={"NACELLE_TOKEN": token})
    assert result.returncode == 0, result.stderr
    # Looking for the device has made connections, too.
    known = ("enabled", "login-wrong", "login")
    entries = [entry for entry in json.loads(result.stdout)["entries"] if entry["kind"] in known]
    assert [entry["kind"] for entry in entries] == list(known)
    enabled, wrong, login = (
        next(entry for entry in entries if entry["kind"] == kind) for kind in ("enabled", "login-wrong", "login")
    )
    assert enabled["address"] == ADDRESS != login["address"] == wrong["address"]


def test_each_packet_is_executed_once_whatever_is_lost(wire: Wire, namespace: list[str], kind: str) -> None:
    device = Managed(wire, namespace, kind, *LOSS)
    device.run("exactly_once")
    assert device.counters()["resent"] > 0


def test_attacks_from_the_network(wire: Wire, namespace: list[str], kind: str) -> None:
    device = Managed(wire, namespace, kind)
    device.run("attacks")
    device.run("malformed")
    counts = device.counters()
    assert counts["login_wrong"] == 1 and counts["resend_unknown"] == 2 and counts["drop_malformed"] > 50, counts


def test_a_flood_beside_an_administrator(wire: Wire, namespace: list[str], kind: str) -> None:
    device = Managed(wire, namespace, kind)
    device.run("flood")
    counts = device.counters()
    # The time of the software device is that of the machine, in which the flood is none for its budget: it answers all of it.
    assert counts["drop_rate"] + (counts["rx_message"] if kind == "soft" else 0) > 500, counts


def test_the_source_filter_keeps_others_out(wire: Wire, namespace: list[str], kind: str) -> None:
    device = Managed(wire, namespace, kind)
    device.write((CCI_SOURCE, 0x0A4D0100), (CCI_SOURCE_PREFIX, 24))
    with pytest.raises(AssertionError, match="AssertionError"):
        device.run("attacks")
    assert device.counters()["drop_source"] > 0 and device.counters()["login"] == 0
    device.write((CCI_SOURCE, 0x0A4D0001), (CCI_SOURCE_PREFIX, 32))
    device.run("attacks")
