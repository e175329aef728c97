# SPDX-License-Identifier: Apache-2.0
"""UDP to and from a kernel of a simulated RTL device, by ordinary sockets of Linux on a TAP, and tshark's reading of all frames."""

from __future__ import annotations

import ipaddress
import os
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ADDRESS, ROOT, Wire, tshark
from nacelle_tb.cci import address

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0 or not Path("/dev/net/tun").exists(), reason="needs root and /dev/net/tun"),
    pytest.mark.xdist_group("link_layer"),
]
LIBRARY = ROOT / "build" / "sim" / "libnacelle_sim_64_test.so"
HOST, PORT, SOCKET = "10.77.9.9", 7000, 4  # of devices/test.toml
ENABLE, ANSWERS, NETWORK = 1 << 16, 1 << 24, 2 << 24
LENGTHS = (0, 1, 18, 19, 64, 100, 1000, 1472)
TIMED_OUT, REFUSED = "timeout", "refused"

# Sends datagrams of these lengths, and prints whether each came back as it was.
ASK = """
import os, socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.settimeout(5 if sys.argv[3] == "wait" else 1)
s.connect((sys.argv[1], int(sys.argv[2])))  # takes what comes from there alone
for length in map(int, sys.argv[4:]):
    data = os.urandom(length)
    s.send(data)
    try:
        print("same" if s.recv(5000) == data else "other")
    except TimeoutError:
        print("timeout")
    except ConnectionRefusedError:
        print("refused")
"""
# Prints what comes to a port.
LISTEN = """
import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.settimeout(60)
s.bind(("0.0.0.0", int(sys.argv[1])))
print("ready", flush=True)
for _ in range(int(sys.argv[2])):
    data, (host, port) = s.recvfrom(5000)
    print(host, port, data.hex() or "-", flush=True)
"""


def datagram(payload: bytes, peer: str, port: int) -> bytes:
    """As a region of `send` has it."""
    head = struct.pack(">BBHHHHH4x", 1, 0, len(payload), port, 0, 0, 0)
    head += (0xFFFF << 32 | int(ipaddress.IPv4Address(peer))).to_bytes(16, "big") + bytes(32)
    return (head + payload).ljust(64 + -(-len(payload) // 64) * 64, b"\0")


class Link:
    """The device behind a TAP in a namespace, and everything that passes captured."""

    def __init__(self, wire: Wire, namespace: list[str]) -> None:
        self.wire, self.namespace = wire, namespace
        self.capture = wire.folder / "capture.pcapng"
        options = ["--name", "own", "--tap", "nacelle0", "--library", str(LIBRARY), "--capture", str(self.capture)]
        wire.device(*options, before=namespace)
        for command in (("address", "add", f"{HOST}/16", "dev", "nacelle0"), ("link", "set", "nacelle0", "up")):
            subprocess.run([*namespace, "ip", *command], check=True)

    def set(self, name: str, value: int) -> None:
        result = self.wire.run("config", "set", "own", hex(address(name, SOCKET)), hex(value))
        assert result.returncode == 0, result.stderr

    def get(self, name: str) -> int:
        return self.wire.json("config", "get", "own", hex(address(f"socket.DATAGRAMS_{name}", SOCKET)))[0]["value"]

    def ask(self, *lengths: int, wait: bool = True) -> list[str]:
        command = [*self.namespace, sys.executable, "-c", ASK, ADDRESS, str(PORT), "wait" if wait else "short", *map(str, lengths)]
        return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout.split()

    def call(self, function: int, *regions: str) -> None:
        result = self.wire.run("run", "function", str(function), "--device", "own", *regions)
        assert result.returncode == 0, result.stderr

    def tshark(self, filter_: str, *fields: str) -> list[list[str]]:
        """Fields of the captured frames that pass a filter, with checksums judged."""
        judged = ("-o", "ip.check_checksum:TRUE", "-o", "udp.check_checksum:TRUE")
        return tshark(self.capture, filter_, *fields, options=judged)


@pytest.fixture
def link(wire: Wire, namespace: list[str]) -> Link:
    return Link(wire, namespace)


def test_sockets_of_linux_and_a_kernel_send_datagrams_to_each_other(link: Link) -> None:
    """Off after reset; reflected, and not sent by whoever may send nothing; received into a region and sent from one."""
    link.wire.run("config", "set", "own", "ICMP_ERRORS", "1")
    link.set("reflect.CONTROL", 1)
    assert link.ask(10) == [REFUSED]  # nobody is at the port
    link.set("socket.DATAGRAM_PORT", ENABLE | PORT)
    assert link.ask(10, wait=False) == [TIMED_OUT]  # the kernel may answer nobody, and no error says that it is there
    assert (link.get("RECEIVED"), link.get("REFUSED"), link.get("SENT")) == (1, 1, 0)
    link.set("socket.DATAGRAM_PORT", ANSWERS | ENABLE | PORT)
    assert link.ask(*LENGTHS) == ["same"] * len(LENGTHS)
    assert link.get("SENT") == len(LENGTHS)

    # A kernel that is told to wait for two gets them.
    link.set("reflect.CONTROL", 0)
    folder = link.wire.folder
    assert link.ask(5, 70, wait=False) == [TIMED_OUT] * 2  # they wait for it
    (folder / "count").write_bytes((2).to_bytes(4, "little"))
    link.call(7, "--inout", str(folder / "count"), "--output", "8192", "-o", str(folder / "counted"), "-o", str(folder / "came"))
    assert (folder / "counted").read_bytes() == (2).to_bytes(4, "little")
    came = (folder / "came").read_bytes()
    for at, length in ((0, 5), (128, 70)):
        kind, _, told, _, own = struct.unpack(">BBHHH", came[at : at + 8])
        assert (kind, told, own) == (1, length, PORT)
        assert came[at + 16 : at + 32][-6:] == b"\xff\xff" + ipaddress.IPv4Address(HOST).packed

    # What it sends of itself goes to its network only.
    link.set("socket.DATAGRAM_PORT", NETWORK | ENABLE | PORT)
    link.set("socket.DATAGRAM_NETWORK", int(ipaddress.IPv4Address("10.77.9.0")))
    link.set("socket.DATAGRAM_MASK", 0xFFFFFF00)
    command = [*link.namespace, sys.executable, "-c", LISTEN, "9000", "3"]
    listener = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    link.wire.children.append(listener)
    assert listener.stdout is not None and listener.stdout.readline() == "ready\n"
    sent = [b"first", bytes(range(200)), b""]
    region = b"".join([datagram(sent[0], HOST, 9000), datagram(b"elsewhere", "10.77.8.9", 9000)])
    region += b"".join(datagram(payload, HOST, 9000) for payload in sent[1:])
    (folder / "region").write_bytes(region)
    link.call(6, "--input", str(folder / "region"))
    for payload in sent:
        assert listener.stdout.readline().split() == [ADDRESS, str(PORT), payload.hex() or "-"]
    assert link.get("REFUSED") == 2

    link.wire.run("stop", "own")
    if shutil.which("tshark"):
        frames = link.tshark(
            f"udp.srcport == {PORT} && !icmp", "ip.checksum.status", "udp.checksum.status", "ip.ttl", "ip.flags.df"
        )
        assert len(frames) == len(LENGTHS) + len(sent)
        # 1: good; 3: there is none.
        assert {tuple(frame) for frame in frames} <= {("1", "3", "64", "1"), ("1", "3", "64", "True")}, frames
        assert not link.tshark("_ws.malformed", "frame.number")
