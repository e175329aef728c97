# SPDX-License-Identifier: Apache-2.0
"""The simulated RTL on an IPv6 network: the kernel's stack and a router (dnsmasq) behind a TAP in a namespace, tshark as the judge.
The device's time passes faster than that of the network while it has nothing to do."""

from __future__ import annotations

import ipaddress
import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT, Wire, tshark

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0 or not Path("/dev/net/tun").exists(), reason="needs root and /dev/net/tun"),
    pytest.mark.xdist_group("ipv6"),
]
LIBRARY = ROOT / "build" / "sim" / "libnacelle_sim_64_test.so"
MAC = "02:4e:41:4d:00:02"
LINK_LOCAL = "fe80::4e:41ff:fe4d:2"
PREFIX = "2001:db8:77::"
STATIC, ROUTER = f"{PREFIX}2", f"{PREFIX}1"
BY_PREFIX = str(ipaddress.IPv6Address(int(ipaddress.IPv6Address(PREFIX)) | int(ipaddress.IPv6Address(LINK_LOCAL)) % (1 << 64)))
SPEED = 20
GENTLE = 5  # so that a busy machine answers within the second in which a probe waits


def until(what: Callable[[], Any], seconds: float = 40) -> Any:
    """What it gives as soon as that is something."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if found := what():
            return found
        time.sleep(0.1)
    raise AssertionError("it has not come to that")


class Network:
    """A namespace with the TAP of a wire in it, and a device on the wire."""

    def __init__(self, wire: Wire, namespace: list[str]) -> None:
        self.wire, self.namespace = wire, namespace
        self.capture = wire.folder / "capture.pcapng"
        self.router: subprocess.Popen[str] | None = None

    def device(self, ipv6: str | None, *before: str, speed: int = SPEED) -> None:
        """Starts the device, and the network that it is on; `before`: addresses that this has, all without looking for others."""
        options = [*(["--ipv6", ipv6] if ipv6 else []), "--idle-speed", str(speed), "--capture", str(self.capture)]
        self.wire.device("--name", "own", "--tap", "nacelle0", "--library", str(LIBRARY), *options, before=self.namespace)
        for address in before:
            self.run("ip", "-6", "address", "add", address, "dev", "nacelle0", "nodad")
        self.run("ip", "link", "set", "nacelle0", "up")

    def run(self, *command: str) -> str:
        result = subprocess.run([*self.namespace, *command], capture_output=True, text=True, timeout=60)
        assert result.returncode == 0, result.stdout + result.stderr
        return result.stdout

    def advertise(self, *options: str) -> None:
        """Starts a router."""
        command = [
            *self.namespace, "dnsmasq", "--no-daemon", "--conf-file=/dev/null", "--port=0", "--interface=nacelle0",
            "--bind-interfaces",
            "--enable-ra", f"--dhcp-range={PREFIX},ra-only,64,7400", "--user=root", "--pid-file",
            f"--dhcp-leasefile={self.wire.folder / 'leases'}", *options,
        ]  # fmt: skip
        log = (self.wire.folder / "dnsmasq.log").open("a")
        self.router = subprocess.Popen(command, stdout=log, stderr=log, text=True)

    def state(self) -> dict[str, Any]:
        """The addresses as the device tells them: by a connection, during which none of its time is skipped."""
        return self.wire.json("describe", "own")["ipv6"]

    def register(self, name: str) -> int:
        return self.wire.json("config", "get", "own", name)[0]["value"]

    def mode(self, mode: int) -> None:
        """Writes the device's register."""
        assert self.wire.run("config", "set", "own", "device.IPV6_MODE", str(mode)).returncode == 0

    def counter(self, name: str) -> int:
        return self.wire.json("stats", "own")["counters"][name]

    def ping(self, address: str, *options: str, answers: bool = True) -> None:
        if ipaddress.IPv6Address(address).is_link_local:
            address += "%nacelle0"
        command = [*self.namespace, "ping", "-6", "-c", "2", "-i", "0.2", "-W", "5" if answers else "1", *options, address]
        result = subprocess.run(command, capture_output=True, text=True, timeout=60)
        assert (result.returncode == 0) == answers, result.stdout + result.stderr

    def shown(self, what: str, *fields: str) -> list[list[str]]:
        """What tshark reads in the device's capture, a row for each frame."""
        return tshark(self.capture, what, *fields)


@pytest.fixture
def network(wire: Wire, namespace: list[str]) -> Iterator[Network]:
    """The network, with its router stopped in the end."""
    network = Network(wire, namespace)
    yield network
    if network.router:
        network.router.terminate()
        network.router.wait(10)


def test_the_kernel_reaches_the_addresses(network: Network) -> None:
    """The link-local one and a static one, with echo requests of several sizes; each finds the other's MAC address."""
    network.device(STATIC, f"{ROUTER}/64")
    until(lambda: network.register("device.IPV6_STATE.has_local"))
    for address in (LINK_LOCAL, STATIC):
        network.ping(address)
        network.ping(address, "-s", "1400")
        network.ping(address, "-s", "0")
        neighbour = network.run("ip", "-6", "neigh", "show", address, "dev", "nacelle0")
        assert f"lladdr {MAC}" in neighbour and "FAILED" not in neighbour
    network.ping(f"{PREFIX}3", answers=False)
    assert (network.state()["global"], network.state()["link_local"]) == (STATIC, LINK_LOCAL)
    assert f"{STATIC}/64, static; {LINK_LOCAL}/64" in network.wire.run("describe", "own").stdout
    assert network.counter("packet_drop_nd") == 0 and network.counter("packet_drop_icmp") == 0
    # On the wire: a probe, announcements, answers; nothing that tshark finds fault with.
    rows = network.shown(
        f"icmpv6 && eth.src == {MAC}", "icmpv6.type", "ipv6.src", "icmpv6.nd.ns.target_address", "icmpv6.checksum.status",
        "_ws.malformed", "_ws.expert.severity",
    )  # fmt: skip
    assert ["135", "::", LINK_LOCAL] in [row[:3] for row in rows] and {"129", "136"} <= {row[0] for row in rows}
    assert {row[3] for row in rows} == {"1"}, "checksums"
    warning = 0x600000
    assert not [row for row in rows if row[4] or any(int(value) >= warning for value in row[5].split(",") if value)]


@pytest.mark.skipif(not shutil.which("dnsmasq"), reason="needs dnsmasq")
def test_an_address_of_a_routers_prefix(network: Network) -> None:
    network.device("router", f"{ROUTER}/64", "fe80::1/64")
    until(lambda: network.register("device.IPV6_STATE.has_local"))
    assert network.state()["global"] is None
    network.advertise()
    until(lambda: network.register("device.IPV6_STATE.origin"))
    state = network.state()
    assert (
        (state["global"], state["origin"]) == (BY_PREFIX, "router")
        and state["router"].startswith("fe80::")
        and 0 < state["valid_left"] <= 7400
    )
    network.ping(BY_PREFIX)
    assert network.counter("address_router_heard") > 0 and network.counter("address_drop_router") == 0
    # Another one takes it away no faster than in two hours, however short the lifetimes it says.
    network.router.terminate()
    network.router.wait(10)
    network.ping(BY_PREFIX)
    # Switched off, and on again.
    network.mode(0)
    until(lambda: not network.register("device.IPV6_STATE.origin") and not network.register("device.IPV6_STATE.has_local"))
    assert (network.state()["global"], network.state()["link_local"]) == (None, None)
    assert network.counter("address_ipv6_lost") == 1 and network.counter("address_lost") == 0
    network.run("ip", "-6", "neigh", "flush", "dev", "nacelle0")
    network.ping(BY_PREFIX, answers=False)
    network.ping(LINK_LOCAL, answers=False)
    network.mode(1)
    until(lambda: network.register("device.IPV6_STATE.has_local"))
    assert network.state()["link_local"] == LINK_LOCAL
    network.ping(LINK_LOCAL)


def test_an_address_that_another_host_has_is_not_used(network: Network) -> None:
    """The kernel has the device's link-local address; when it has not any longer, the device takes it, a minute later."""
    network.device(None, f"{LINK_LOCAL}/64", speed=GENTLE)
    network.mode(1)
    until(lambda: network.counter("address_ipv6_conflict"))
    assert network.state()["link_local"] is None
    network.run("ip", "-6", "address", "del", f"{LINK_LOCAL}/64", "dev", "nacelle0")
    network.run("ip", "-6", "address", "add", "fe80::1/64", "dev", "nacelle0", "nodad")
    until(lambda: network.register("device.IPV6_STATE.has_local"))
    assert network.state()["link_local"] == LINK_LOCAL
    network.ping(LINK_LOCAL)
    assert json.loads((network.wire.folder / "wire" / "own.device.json").read_text())["ip"] == "10.77.0.2", "IPv4 as ever"
