# SPDX-License-Identifier: Apache-2.0
"""The simulated RTL gets its address from dnsmasq, keeps it and loses it: both behind a TAP in a namespace. The device's
time passes faster than that of the network while it has nothing to do, so that a lease of 120 s is renewed after few seconds."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT, Wire, tshark
from nacelle_tb.long import LONG

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0 or not Path("/dev/net/tun").exists(), reason="needs root and /dev/net/tun"),
    pytest.mark.skipif(not shutil.which("dnsmasq"), reason="needs dnsmasq"),
    pytest.mark.xdist_group("dhcp"),
]
LIBRARY = ROOT / "build" / "sim" / "libnacelle_sim_64.so"
SERVER, STATIC, MAC = "10.77.0.1", "10.77.0.2", "02:4e:41:4d:00:02"
SPEED = 30
GENTLE = 10  # as fast as connections bear on a busy machine
PEER, PORT = "10.77.0.3", "12345"
BOUND = 5


def until(what: Callable[[], Any], seconds: float = 40) -> Any:
    """What it gives as soon as that is something."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if found := what():
            return found
        time.sleep(0.1)
    raise AssertionError("it has not come to that")


class Network:
    """A namespace with the TAP of a wire in it, a device on the wire that asks for its address, and a DHCP server."""

    def __init__(self, wire: Wire, namespace: list[str]) -> None:
        self.wire, self.namespace = wire, namespace
        self.capture = wire.folder / "capture.pcapng"
        self.leases = wire.folder / "leases"
        self.server: subprocess.Popen[str] | None = None

    def device(self, address: str, speed: int = SPEED) -> None:
        """Starts the device, and the network that it is on."""
        options = ["--address", address, "--idle-speed", str(speed), "--capture", str(self.capture)]
        self.wire.device("--name", "own", "--tap", "nacelle0", "--library", str(LIBRARY), *options, before=self.namespace)
        subprocess.run([*self.namespace, "ip", "address", "add", f"{SERVER}/16", "dev", "nacelle0"], check=True)
        subprocess.run([*self.namespace, "ip", "link", "set", "nacelle0", "up"], check=True)

    def serve(self, third: int, *options: str) -> None:
        """Starts dnsmasq for 10.77.<third>.10 to .20."""
        self.silence()
        command = [
            *self.namespace, "dnsmasq", "--no-daemon", "--conf-file=/dev/null", "--port=0",
            "--interface=nacelle0", "--bind-interfaces",
            f"--dhcp-range=10.77.{third}.10,10.77.{third}.20,255.255.0.0,120", f"--dhcp-leasefile={self.leases}", "--no-ping",
            "--dhcp-authoritative", "--user=root", "--pid-file", "--log-dhcp", *options,
        ]  # fmt: skip
        log = (self.wire.folder / "dnsmasq.log").open("a")
        self.server = subprocess.Popen(command, stdout=log, stderr=log, text=True)

    def silence(self) -> None:
        """Ends the server. It forgets its leases."""
        if self.server:
            self.server.send_signal(signal.SIGTERM)
            self.server.wait(10)
            self.server = None
            self.leases.unlink(missing_ok=True)

    def register(self, name: str) -> int:
        """The value of one of the device's."""
        return self.wire.json("config", "get", "own", name)[0]["value"]

    def set(self, name: str, value: int) -> None:
        """Writes one of the device's registers."""
        result = self.wire.run("config", "set", "own", name, str(value))
        assert result.returncode == 0, result.stderr

    def published(self) -> str | None:
        """The device's address as it publishes it on the wire, if it has one."""
        ip = json.loads((self.wire.folder / "wire" / "own.device.json").read_text())["ip"]
        return ip if ip != "0.0.0.0" else None

    def bound(self, third: int) -> str:
        """The address of a lease in use, from that server."""
        ip = until(lambda: (ip := self.published()) and ip.startswith(f"10.77.{third}.") and ip)
        assert self.register("device.ADDRESS_STATE.dhcp") == BOUND
        return ip

    def counter(self, name: str) -> int:
        """One of the device's counters."""
        return self.wire.json("stats", "own")["counters"][f"address_{name}"]

    def answers(self, ip: str, caller: bool = False) -> None:
        """The kernel reaches it; so does a caller."""
        for command in (["ping", "-c", "3", "-i", "0.2", "-W", "5", ip], ["arping", "-c", "1", "-w", "10", "-I", "nacelle0", ip]):
            if shutil.which(command[0]):
                result = subprocess.run([*self.namespace, *command], capture_output=True, text=True, timeout=60)
                assert result.returncode == 0, result.stdout + result.stderr
        if caller:
            assert self.wire.json("describe", ip)["description"]["functions"]

    def is_silent(self, ip: str) -> None:
        """Nobody has that address."""
        command = [*self.namespace, "ping", "-c", "1", "-W", "1", ip]
        assert subprocess.run(command, capture_output=True, timeout=30).returncode != 0

    def shown(self, *fields: str) -> list[list[str]]:
        """What tshark reads in the device's capture, a row for each DHCP message and each ARP frame."""
        return tshark(self.capture, "dhcp || arp", *fields)


@pytest.fixture
def network(wire: Wire, namespace: list[str]) -> Iterator[Network]:
    """The network, with its server stopped in the end."""
    network = Network(wire, namespace)
    yield network
    network.silence()


def test_a_lease_is_obtained_renewed_and_lost(network: Network) -> None:
    """By another range: the server says NAK; all connections are closed, and the next address serves."""
    wire = network.wire
    network.device("dhcp", GENTLE)
    wire.start("device", "--soft", "--name", "peer", "--ip", f"{PEER}/16")
    network.is_silent(STATIC)
    assert network.published() is None
    network.serve(1)
    first = network.bound(1)
    assert network.leases.read_text().split()[1:4] == [MAC, first, f"nacelle-{MAC[9:].replace(':', '')}"]
    network.answers(first, caller=True)
    network.is_silent(STATIC)
    described = wire.json("describe", "own")["address"]
    assert (described["origin"], described["dhcp"], described["server"]) == ("dhcp", "bound", SERVER)
    assert (described["ip"], described["prefix_len"], described["gateway"]) == (first, 16, SERVER)
    assert 0 < described["lease_left"] <= 120
    # A connection survives renewals.
    stay = wire.start("--json", "connect", "own", PEER, PORT, "--stay")
    until(lambda: network.counter("lease") >= 2)
    assert network.published() == first and stay.poll() is None and network.counter("lost") == 0
    # And not the loss of the address.
    network.serve(2)
    second = network.bound(2)
    said = stay.communicate(timeout=30)[0]
    assert json.loads(said[said.index("{") : said.rindex("}") + 1])["closed_by"] == "change of the device's address"
    assert until(lambda: not wire.json("qp", "list", "peer")) is True
    network.answers(second, caller=True)
    network.is_silent(first)
    again = wire.run("connect", "own", PEER, PORT, "--send", "hello")
    assert again.returncode == 0, again.stderr
    counts = {name: network.counter(name) for name in ("lost", "nak", "lease_lost", "conflict", "drop_malformed")}
    assert counts == {"lost": 1, "nak": 1, "lease_lost": 1, "conflict": 0, "drop_malformed": 0}
    # On the wire.
    names = ("dhcp.option.dhcp", "ip.dst", "dhcp.ip.client", "arp.isprobe", "arp.isannouncement", "arp.dst.proto_ipv4")
    rows = network.shown(*names, "_ws.malformed", "_ws.expert.severity")
    assert {row[0] for row in rows} - {""} == {"1", "2", "3", "5", "6"}
    assert ["3", SERVER, first] in [row[:3] for row in rows], "renewed by unicast"
    assert [probe for _, _, _, probe, _, ip, *_ in rows if ip == first].count("1") == 3
    assert [announced for _, _, _, _, announced, ip, *_ in rows if ip == second].count("1") >= 1
    warning = 0x600000
    assert not [row for row in rows if row[6] or any(int(value) >= warning for value in row[7].split(",") if value)]


def test_a_release_gives_the_address_back(network: Network) -> None:
    network.device("dhcp")
    network.serve(1)
    first = network.bound(1)
    network.set("device.DHCP_COMMAND", 2)
    until(lambda: network.published() is None)
    until(lambda: network.leases.read_text() == "", 10)
    network.is_silent(first)
    network.set("device.DHCP_COMMAND", 1)
    network.answers(network.bound(1))
    # Back to the static address: the lease is released as well.
    network.set("device.ADDRESS_MODE", 0)
    until(lambda: network.published() == STATIC)
    network.answers(STATIC)
    until(lambda: network.leases.read_text() == "", 10)


def test_an_address_that_another_host_has_is_declined(network: Network) -> None:
    """The server's first choice is that of a host that it does not know: the device notices, and gets another one."""
    network.device("dhcp")
    namespace = network.namespace
    for last in range(10, 20):
        subprocess.run([*namespace, "ip", "address", "add", f"10.77.1.{last}/16", "dev", "nacelle0"], check=True)
    network.serve(1)
    until(lambda: network.counter("conflict") >= 1)
    for last in range(10, 20):
        subprocess.run([*namespace, "ip", "address", "del", f"10.77.1.{last}/16", "dev", "nacelle0"], check=True)
    network.answers(network.bound(1))
    assert "4" in {kind for (kind,) in network.shown("dhcp.option.dhcp")}


@pytest.mark.parametrize(("mode", "start"), [("dhcp-or-static", STATIC), ("dhcp-or-link-local", "169.254.")])
def test_without_a_server_there_is_another_address(network: Network, mode: str, start: str) -> None:
    """Until a server comes."""
    network.device(mode)
    found = until(lambda: network.published())
    assert found.startswith(start)
    if mode == "dhcp-or-link-local":
        subprocess.run([*network.namespace, "ip", "route", "add", "169.254.0.0/16", "dev", "nacelle0"], check=True)
        ping = [*network.namespace, "ping", "-c", "2", "-W", "5", found]
        assert subprocess.run(ping, capture_output=True, timeout=60).returncode == 0
    else:
        network.answers(found)
    network.serve(1)
    network.answers(network.bound(1))


@pytest.mark.skipif(not LONG, reason="takes minutes: make test-long")
def test_a_server_that_vanishes_takes_the_address_with_it(network: Network) -> None:
    """The lease ends; when the server comes back, there is another one."""
    network.device("dhcp")
    network.serve(1)
    first = network.bound(1)
    for _ in range(5):
        network.silence()
        until(lambda: network.published() is None, 60)
        network.is_silent(first)
        network.serve(1)
        network.answers(network.bound(1))
    assert network.counter("lease_lost") == 5
