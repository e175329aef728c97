# SPDX-License-Identifier: Apache-2.0
"""The simulated RTL as the network card of this machine's own kernel: `nacelle nic --tap`, with the driver in that process. The
other party is the kernel's ping and TCP. In a namespace, so that the machine's network is not touched."""

from __future__ import annotations

import json
import os
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT, Wire, tshark

LIBRARY = ROOT / "build/sim/libnacelle_sim_64_nic.so"
PEER = "10.77.0.9"
NAME = "nacelle-own"

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0 or not Path("/dev/net/tun").exists(), reason="needs root and /dev/net/tun"),
    pytest.mark.skipif(not LIBRARY.exists(), reason=f"needs {LIBRARY.name}: run `python sim/build.py --device nic --data-w 64`"),
]


class Own:
    """A device whose card is the kernel's, in a namespace."""

    def __init__(self, wire: Wire, namespace: list[str], name: str, interface: str, address: str, library: Path = LIBRARY) -> None:
        self.namespace, self.interface = namespace, interface
        self.log = (wire.folder / f"{name}.log").open("w+")
        arguments = ("--json", "nic", "--name", name, "--library", str(library), "--tap", interface)
        self.child = wire.start(*arguments, before=namespace, stderr=self.log)
        assert self.child.stdout
        line = self.child.stdout.readline()
        assert line, Path(self.log.name).read_text()
        self.said: dict[str, Any] = json.loads(line)
        self.run("ip", "address", "add", address, "dev", interface)

    def run(self, *command: str, timeout: float = 120) -> str:
        """What a command prints in the namespace; it must succeed."""
        ran = subprocess.run([*self.namespace, *command], capture_output=True, text=True, timeout=timeout)
        assert ran.returncode == 0, ran.stdout + ran.stderr + Path(self.log.name).read_text()
        return ran.stdout

    def reach(self, address: str) -> None:
        """Waits until a host answers: drivers begin when their devices do."""
        ping = [*self.namespace, "ping", "-c", "1", "-W", "10", address]
        end = time.monotonic() + 120
        while subprocess.run(ping, capture_output=True).returncode != 0:
            assert time.monotonic() < end, Path(self.log.name).read_text()


def test_the_kernel_pings_by_the_card(wire: Wire, namespace: list[str]) -> None:
    """Frames of any length; a call to the device itself goes beside them."""
    wire.start("device", "--soft", "--name", "peer", "--ip", f"{PEER}/16")
    capture = wire.folder / "wire.pcapng"
    own = Own(wire, namespace, "card", NAME, "10.77.1.2/16")
    assert own.said["interface"] == NAME and own.said["mac"] == "06:4e:41:4d:00:02"
    own.reach(PEER)
    watch = wire.start("capture", "-o", str(capture))
    link = json.loads(own.run("ip", "-j", "link", "show", NAME))[0]
    assert (link["address"], link["mtu"]) == (own.said["mac"], 1500)
    for size in (16, 56, 1472, 4000):
        if size > 1472:
            own.run("ip", "link", "set", NAME, "mtu", "9000")
        assert " 0% packet loss" in own.run("ping", "-c", "3", "-i", "0.2", "-W", "30", "-s", str(size), PEER)
    (wire.folder / "in").write_bytes(bytes(3000))
    called = wire.run("run", "increment", "--device", own.said["device"]["ip"], "in", "-o", "out", "--ack-timeout", "2000")
    assert called.returncode == 0, called.stderr
    watch.terminate()
    watch.wait(30)
    sources = {row[0] for row in tshark(capture, f"icmp.type == 8 && ip.dst == {PEER}", "eth.src")}
    assert sources == {own.said["mac"]}, "the card sends them, not the kernel"
    counters = wire.control("card", "stats")["counters"]
    assert counters["slot.violations"] == counters["slot.iommu_faults"] == 0
    assert counters["packet_drop_card_source"] == 0, "the kernel sends from the card's address from the first frame on"


def test_the_kernels_tcp_by_two_cards(wire: Wire, namespace: list[str]) -> None:
    """A file by TCP from one namespace to another: each has a card of its own."""
    other = f"{namespace[-1]}-b"
    subprocess.run(["ip", "netns", "add", other], check=True)
    try:
        left = Own(wire, namespace, "left", "nacelle-left", "10.77.1.2/16")
        right = Own(wire, ["ip", "netns", "exec", other], "right", "nacelle-right", "10.77.1.3/16")
        left.reach("10.77.1.3")
        data = os.urandom(40_000)
        source, target = wire.folder / "data", wire.folder / "got"
        source.write_bytes(data)
        receive = "import socket, sys\ns = socket.create_server(('10.77.1.3', 5000))\nprint('ready', flush=True)\n"
        receive += "c = s.accept()[0]\nf = open(sys.argv[1], 'wb')\nwhile part := c.recv(65536): f.write(part)"
        server = subprocess.Popen([*right.namespace, "python3", "-c", receive, target], stdout=subprocess.PIPE, text=True)
        assert server.stdout and server.stdout.readline() == "ready\n"
        send = "import socket,sys; c = socket.create_connection(('10.77.1.3', 5000), 60); c.sendall(open(sys.argv[1], 'rb').read())"
        left.run("python3", "-c", send, str(source), timeout=240)
        assert server.wait(240) == 0
        assert target.read_bytes() == data
    finally:
        subprocess.run(["ip", "netns", "del", other], check=True)


def test_a_card_has_one_driver(wire: Wire) -> None:
    ran = wire.run("nic", "--library", str(LIBRARY), "--tap", NAME, "--vhost-user", str(wire.folder / "vhost"))
    assert ran.returncode == 2 and "one driver" in ran.stderr, ran.stderr
