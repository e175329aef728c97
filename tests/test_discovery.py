# SPDX-License-Identifier: Apache-2.0
"""The simulated RTL behind a TAP in a namespace is found by Avahi and lldpd as Debian has them, and tshark reads what it says."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import NACELLE, ROOT, Wire, tshark

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0 or not Path("/dev/net/tun").exists(), reason="needs root and /dev/net/tun"),
    pytest.mark.xdist_group("discovery"),
]
needs_avahi = pytest.mark.skipif(
    not all(map(shutil.which, ("avahi-daemon", "avahi-browse", "dbus-daemon"))), reason="needs Avahi and D-Bus"
)
needs_lldpd = pytest.mark.skipif(not all(map(shutil.which, ("lldpd", "lldpcli"))), reason="needs lldpd")
LIBRARY = ROOT / "build" / "sim" / "libnacelle_sim_64.so"
HOST, IP, MAC = "10.77.0.1", "10.77.0.2", "02:4e:41:4d:00:02"
SOFT = "10.77.0.9"
NAME = f"nacelle-{MAC.replace(':', '')}"
AVAHI = """[server]
host-name=avahi-test
use-ipv4=yes
use-ipv6=no
allow-interfaces=nacelle0
enable-dbus=yes
disallow-other-stacks=no
[publish]
disable-publishing=no
[rlimits]
"""
DBUS = """<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
  <type>system</type>
  <listen>unix:path={socket}</listen>
  <auth>EXTERNAL</auth>
  <policy context="default">
    <allow user="*"/>
    <allow own="*"/>
    <allow send_destination="*"/>
    <allow receive_sender="*"/>
  </policy>
</busconfig>
"""


def until(what: Callable[[], Any], seconds: float = 20) -> Any:
    """What it gives as soon as that is something."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if found := what():
            return found
        time.sleep(0.1)
    raise AssertionError("it has not come to that")


# Where a daemon has /run to itself: its socket and its process number have fixed places there.
OWN_RUN = ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs none /run && mkdir /run/lldpd && exec "$@"', "sh"]


class Network:
    """A device on a wire in a namespace, and daemons beside it, with files of their own."""

    def __init__(self, wire: Wire, namespace: list[str]) -> None:
        self.wire, self.namespace = wire, namespace
        self.capture = wire.folder / "capture.pcapng"
        self.bus = wire.folder / "bus"
        # Its programs have given up their privileges when they look for their socket.
        self.open_folder = tempfile.TemporaryDirectory(prefix="nl", dir="/tmp")
        Path(self.open_folder.name).chmod(0o755)
        self.lldp_socket = Path(self.open_folder.name) / "lldpd"
        self.environment = os.environ | {"DBUS_SYSTEM_BUS_ADDRESS": f"unix:path={self.bus}"}
        self.processes: list[subprocess.Popen[bytes]] = []

    def device(self, *options: str) -> None:
        """Starts the device."""
        arguments = ["--name", "own", "--tap", "nacelle0", "--library", str(LIBRARY), "--capture", str(self.capture), *options]
        self.wire.device(*arguments, before=self.namespace)
        subprocess.run([*self.namespace, "ip", "address", "add", f"{HOST}/16", "dev", "nacelle0"], check=True)
        subprocess.run([*self.namespace, "ip", "link", "set", "nacelle0", "up", "multicast", "on"], check=True)

    def avahi(self) -> None:
        """Starts Avahi's daemon, with a D-Bus."""
        config, dbus = self.wire.folder / "avahi.conf", self.wire.folder / "dbus.conf"
        config.write_text(AVAHI)
        dbus.write_text(DBUS.format(socket=self.bus))
        log = (self.wire.folder / "avahi.log").open("ab")
        start = ["dbus-daemon", f"--config-file={dbus}", "--nofork", "--nopidfile"]
        self.processes.append(subprocess.Popen([*self.namespace, *start], stdout=log, stderr=log))
        until(self.bus.exists)
        options = ["--no-drop-root", "--no-chroot", "--no-rlimits", f"--file={config}"]
        daemon = [*self.namespace, *OWN_RUN, "avahi-daemon", *options]
        self.processes.append(subprocess.Popen(daemon, stdout=log, stderr=log, env=self.environment))
        until(lambda: "avahi-test" in self.ask("avahi-resolve", "-4", "-n", "avahi-test.local"))

    def lldpd(self) -> None:
        """Starts lldpd, which stands for a switch: it listens at the other end of the device's cable."""
        log = (self.wire.folder / "lldpd.log").open("ab")
        daemon = ["lldpd", "-d", "-u", str(self.lldp_socket), "-I", "nacelle0"]
        self.processes.append(subprocess.Popen([*self.namespace, *OWN_RUN, *daemon], stdout=log, stderr=log))
        until(self.lldp_socket.exists)

    def neighbours(self) -> list[dict[str, Any]]:
        """The devices that lldpd knows."""
        text = self.ask("lldpcli", "-u", str(self.lldp_socket), "-f", "json0", "show", "neighbors")
        return [found for ports in json.loads(text or "{}").get("lldp", []) for found in ports.get("interface", [])]

    def ask(self, *command: str) -> str:
        """What a program of a daemon's says."""
        result = subprocess.run(
            [*self.namespace, *command], capture_output=True, text=True, timeout=30, env=self.environment, check=False
        )
        return result.stdout

    def found(self) -> list[list[str]]:
        """Devices that a browser finds and resolves."""
        lines = self.ask("avahi-browse", "-rpt", "_nacelle._udp").splitlines()
        return [line.split(";") for line in lines if line.startswith("=")]

    def send(self, packet: bytes, count: int = 1) -> None:
        """Queries to the group, from port 5353."""
        program = (
            "import socket, sys\n"
            "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
            "s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)\n"
            "s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)\n"
            f"s.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton('{HOST}'))\n"
            "s.bind(('', 5353))\n"
            f"for _ in range({count}):\n"
            f"    s.sendto(bytes.fromhex('{packet.hex()}'), ('224.0.0.251', 5353))\n"
        )
        subprocess.run([*self.namespace, "python3", "-c", program], check=True, timeout=60)

    def counter(self, name: str) -> int:
        """One of the device's counters."""
        return self.wire.json("stats", "own")["counters"][f"service_{name}"]

    def set(self, name: str, value: int) -> None:
        """Writes one of the device's registers."""
        result = self.wire.run("config", "set", "own", name, str(value))
        assert result.returncode == 0, result.stderr

    def shown(self, fields: list[str], which: str) -> list[list[str]]:
        """What tshark reads in the device's capture."""
        return tshark(self.capture, which, *fields)

    def end(self) -> None:
        """Ends what was started here, last first."""
        for process in reversed(self.processes):
            process.terminate()
            process.wait(10)
        self.open_folder.cleanup()


@pytest.fixture
def network(wire: Wire, namespace: list[str]) -> Iterator[Network]:
    """The network, with its programs ended."""
    network = Network(wire, namespace)
    yield network
    network.end()


@needs_avahi
def test_avahi_finds_the_device(network: Network) -> None:
    """All of its records, as a browser resolves them; its goodbye; and nothing of it is malformed."""
    network.device()
    network.avahi()
    (row,) = until(network.found)
    assert row[3:9] == [NAME, "_nacelle._udp", "local", f"{NAME}.local", IP, "12345"]
    assert set(re.findall(r'"([^"]*)"', row[9])) == {"txtvers=1", "device=nacelle", "contract=0.1"}
    assert network.ask("avahi-resolve", "-4", "-n", f"{NAME}.local").split() == [f"{NAME}.local", IP]
    assert "_nacelle._udp" in network.ask("avahi-browse", "-apt")
    assert network.counter("mdns_query") > 0
    # The switch in the register, both ways.
    network.set("device.DISCOVERY", 2)
    until(lambda: not network.found())
    network.set("device.DISCOVERY", 3)
    (row,) = until(network.found)
    assert row[7] == IP
    # On the wire.
    if shutil.which("tshark"):
        fields = ["eth.dst", "ip.dst", "ip.ttl", "dns.count.answers", "dns.resp.ttl", "_ws.malformed", "_ws.expert.severity"]
        rows = network.shown(fields, f"mdns && ip.src == {IP}")
        assert len(rows) >= 5
        assert all(row[:4] == ["01:00:5e:00:00:fb", "224.0.0.251", "255", "5"] and row[5] == "" for row in rows)
        assert {row[4] for row in rows} == {"4500,4500,120,4500,120", "0,0,0,0,0"}
        assert not [row for row in rows if any(int(value) >= 0x600000 for value in row[6].split(",") if value)]


@needs_lldpd
def test_the_switch_knows_the_device(network: Network) -> None:
    """What lldpd makes of its frames, before and after it is switched off; and nothing of them is malformed."""
    network.device()
    network.lldpd()
    # It says so every 30 s, and at once when it begins.
    network.set("device.DISCOVERY", 0)
    network.set("device.DISCOVERY", 2)
    (found,) = until(network.neighbours)
    chassis, port = found["chassis"][0], found["port"][0]
    assert chassis["id"] == [{"type": "mac", "value": MAC}] and port["id"] == [{"type": "mac", "value": MAC}]
    assert chassis["name"] == [{"value": NAME}] and chassis["mgmt-ip"] == [{"value": IP}]
    assert [entry["type"] for entry in chassis["capability"] if entry["enabled"]] == ["Station"]
    assert port["ttl"] == [{"value": "121"}]
    assert network.counter("lldp_sent") > 0
    network.set("device.DISCOVERY", 1)
    until(lambda: not network.neighbours())
    if shutil.which("tshark"):
        rows = network.shown(["eth.dst", "lldp.time_to_live", "_ws.malformed", "_ws.expert.severity"], f"lldp && eth.src == {MAC}")
        assert {row[1] for row in rows} == {"121", "0"}
        assert all(row[0] == "01:80:c2:00:00:0e" and row[2:] == ["", ""] for row in rows)


def test_the_command_lists_the_devices_of_the_network(network: Network) -> None:
    """`nacelle devices`, as on another machine: the RTL and a software device by multicast DNS, one that is only on the list, one
    that is gone; and what is wrong with a list."""
    network.device()
    subprocess.run([*network.namespace, "ip", "address", "add", f"{SOFT}/16", "dev", "nacelle0"], check=True)
    soft = network.wire.start("device", "--soft", "--udp", SOFT, "--name", "beside", "--announce", before=network.namespace)
    listed = network.wire.folder / "devices.txt"
    listed.write_text(f"# of the rack\n{IP}\n10.77.9.9:4000  # gone\n")

    def devices(*options: str) -> list[dict[str, Any]]:
        command = ["--json", "--wire", str(network.wire.folder / "other"), "devices", "--timeout", "10", "--link", "udp", *options]
        return json.loads(network.ask(str(NACELLE), *command) or "[]")

    def found() -> list[dict[str, Any]]:
        rows = devices("--list", str(listed))
        return rows if [row["origin"] for row in rows].count("list") == 1 and len(rows) == 3 else []

    own, beside, gone = until(found, 60)
    assert beside["address"] == f"{SOFT}:12345" and beside["name"] == "nacelle-beside-10-77-0-9" and beside["origin"] == "mdns"
    assert own["address"] == f"{IP}:12345" and own["name"] == NAME and own["origin"] == "both"
    assert [row["answers"] for row in (own, beside, gone)] == [True, True, False]
    assert gone["address"] == "10.77.9.9:4000" and gone["name"] is None and gone["description"] is None
    for row in (beside, own):
        assert "increment" in {function["kernel"] for function in row["description"]["functions"]}
    assert [row["address"] for row in devices("--only-list", "--list", str(listed))] == [f"{IP}:12345", "10.77.9.9:4000"]
    # It says goodbye.
    soft.send_signal(signal.SIGINT)
    soft.wait(30)
    assert [row["name"] for row in devices()] == [NAME]
    listed.write_text("somewhere\n")
    result = network.wire.run("devices", "--list", str(listed))
    assert result.returncode == 2 and ":1: " in result.stderr and "ADDRESS:PORT" in result.stderr


def query(name: str, kind: int, qclass: int = 1) -> bytes:
    """A question."""
    labels = b"".join(bytes([len(label)]) + label.encode() for label in name.split("."))
    return bytes(4) + b"\0\1" + bytes(6) + labels + b"\0" + kind.to_bytes(2, "big") + qclass.to_bytes(2, "big")


def test_a_flood_of_queries_is_no_lever(network: Network) -> None:
    """The group hears little, whatever is asked, and the device is there for others."""
    network.device()
    until(lambda: network.counter("mdns_sent") >= 2)
    before = network.counter("mdns_sent")
    begin = time.monotonic()
    network.send(query("_nacelle._udp.local", 12), 2000)
    network.send(bytes(4) + b"\0\1" + bytes(6) + b"\xc0\x0c\0\1\0\1", 100)
    sent = until(lambda: network.counter("mdns_sent") - before)
    took = time.monotonic() - begin  # the device's time is not faster
    assert 1 <= sent <= 2 + took
    assert network.counter("drop_mdns") + network.counter("mdns_busy") + network.counter("drop_room") > 0
    ping = [*network.namespace, "ping", "-c", "1", "-W", "5", IP]
    assert subprocess.run(ping, capture_output=True, timeout=30, check=False).returncode == 0
    assert network.wire.json("describe", "own")["address"]["ip"] == IP
