# SPDX-License-Identifier: Apache-2.0
"""What Linux sees of a simulated RTL device at layers 2 and 3: its ping and arping by a VLAN interface on a TAP, what its sockets
are told by ICMP errors, and tshark's reading of all frames."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from conftest import ADDRESS, ROOT, Wire, tshark

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0 or not Path("/dev/net/tun").exists(), reason="needs root and /dev/net/tun"),
    pytest.mark.xdist_group("link_layer"),
]
LIBRARY = ROOT / "build" / "sim" / "libnacelle_sim_64.so"
HOST, VID = "10.77.9.9", 7
ENABLE = 1 << 31
OTHER_PCP = 5

# Sends datagrams to a port, and prints the error number of each answer and how the error queue describes it: its origin, type and
# code, and who says it.
ASK = """
import errno, socket, struct, sys
address, port, times = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(socket.IPPROTO_IP, 11, 1)  # IP_RECVERR
s.settimeout(2)
s.connect((address, port))
for _ in range(times):
    try:
        s.send(b"is anybody there?")
        s.recv(100)
    except TimeoutError:
        print("timeout")
        continue
    except OSError as error:
        pass
    _, control, _, _ = s.recvmsg(100, 500, socket.MSG_ERRQUEUE)
    number, origin, kind, code = struct.unpack("=IBBB", control[0][2][:7])
    print(errno.errorcode[number], origin, kind, code, socket.inet_ntoa(control[0][2][20:24]))
"""
# A TCP connection that asks for errors, and a flood of datagrams.
CONNECT = "import socket, sys; s = socket.socket(); s.setsockopt(0, 11, 1); s.settimeout(3); print(s.connect_ex((sys.argv[1], 80)))"
FLOOD = "import socket, sys; s = socket.socket(2, 2); [s.sendto(b'x', (sys.argv[1], 9)) for _ in range(3000)]"
# An access port of a switch, for kernels without VLAN interfaces: a TAP whose frames are tagged on an interface, and the reverse.
ACCESS_PORT = """
import fcntl, os, select, socket, struct, sys
interface, name, vid = sys.argv[1], sys.argv[2], int(sys.argv[3])
tap = os.open("/dev/net/tun", os.O_RDWR)
fcntl.ioctl(tap, 0x400454CA, struct.pack("16sH22x", name.encode(), 0x1002))  # TUNSETIFF: IFF_TAP, IFF_NO_PI
trunk = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
trunk.setsockopt(263, 8, 1)  # PACKET_AUXDATA: the kernel tells the tag there
trunk.bind((interface, 0))
print("ready", flush=True)
while True:
    for ready in select.select([tap, trunk], [], [])[0]:
        if ready == tap:
            frame = os.read(tap, 4096)
            trunk.send(frame[:12] + struct.pack("!HH", 0x8100, vid) + frame[12:])
            continue
        frame, control, _, address = trunk.recvmsg(4096, 100)
        status, tag = struct.unpack_from("=I12xH", control[0][2])
        if address[2] != socket.PACKET_OUTGOING and status & 0x10 and tag & 0xFFF == vid:
            os.write(tap, frame)
"""
ICMP_ORIGIN = 2  # SO_EE_ORIGIN_ICMP


class Link:
    """A device behind a TAP in a namespace, and everything that passes captured."""

    def __init__(self, wire: Wire, namespace: list[str]) -> None:
        self.wire, self.namespace = wire, namespace
        self.capture = wire.folder / "capture.pcapng"
        options = ["--name", "own", "--tap", "nacelle0", "--library", str(LIBRARY), "--capture", str(self.capture)]
        wire.device(*options, before=namespace)
        self.ip("address", "add", f"{HOST}/16", "dev", "nacelle0")
        self.ip("link", "set", "nacelle0", "up")

    def join(self, vid: int) -> str:
        """An interface of this VLAN: the kernel's own, if it can make one."""
        name = f"nacelle0.{vid}"
        if self.run("ip", "link", "add", "link", "nacelle0", "name", name, "type", "vlan", "id", str(vid)).returncode != 0:
            command = [*self.namespace, sys.executable, "-c", ACCESS_PORT, "nacelle0", name, str(vid)]
            port = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
            self.wire.children.append(port)
            assert port.stdout is not None and port.stdout.readline() == "ready\n"
        self.ip("link", "set", name, "up")
        return name

    def ip(self, *arguments: str) -> None:
        subprocess.run([*self.namespace, "ip", *arguments], check=True)

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([*self.namespace, *command], capture_output=True, text=True, timeout=60)

    def set(self, register: str, value: int) -> None:
        result = self.wire.run("config", "set", "own", register, hex(value))
        assert result.returncode == 0, result.stderr

    def counter(self, name: str) -> int:
        return self.wire.json("config", "get", "own", name)[0]["value"]

    def pings(self, count: int = 3, *options: str) -> bool:
        """All of these pings are answered; False: none."""
        result = self.run("ping", "-c", str(count), "-W", "1", "-i", "0.2", *options, ADDRESS)
        assert " 0% packet loss" in result.stdout or " 100% packet loss" in result.stdout, result.stdout + result.stderr
        return " 0% packet loss" in result.stdout

    def tshark(self, filter_: str, *fields: str) -> list[list[str]]:
        """Fields of the captured frames that pass a filter."""
        self.wire.run("stop", "own")
        time.sleep(0.5)
        return tshark(self.capture, filter_, *fields)


@pytest.fixture
def link(wire: Wire, namespace: list[str]) -> Link:
    return Link(wire, namespace)


def test_the_kernel_reaches_a_device_in_a_vlan(link: Link) -> None:
    """By an interface of that VLAN; by no other, and not without a tag, unless the device takes that too."""
    assert link.pings()
    link.set("VLAN", ENABLE | VID)
    link.set("PRIORITY", OTHER_PCP << 4 | 3)
    assert not link.pings(2)
    link.ip("address", "del", f"{HOST}/16", "dev", "nacelle0")
    own, other = link.join(VID), link.join(VID + 1)
    link.ip("address", "add", f"{HOST}/16", "dev", own)
    assert link.pings(5, "-s", "1400")
    arping = ["arping", "-c", "2", "-w", "5", "-I", own, ADDRESS]
    if shutil.which("arping"):
        result = link.run(*arping)
        assert result.returncode == 0, result.stdout + result.stderr
    link.ip("address", "del", f"{HOST}/16", "dev", own)
    link.ip("address", "add", f"{HOST}/16", "dev", other)
    before = link.counter("packet_drop_vlan")
    assert not link.pings(2) and link.counter("packet_drop_vlan") > before
    link.set("VLAN", 0)
    link.ip("address", "del", f"{HOST}/16", "dev", other)
    link.ip("address", "add", f"{HOST}/16", "dev", "nacelle0")
    assert link.pings()
    if shutil.which("tshark"):
        replies = link.tshark("icmp.type == 0 && vlan", "vlan.id", "vlan.priority", "icmp.checksum.status", "ip.checksum.status")
        assert len(replies) == 5 and all(reply[:2] == [str(VID), str(OTHER_PCP)] for reply in replies)
        arps = link.tshark(f"arp.opcode == 2 && vlan && arp.src.proto_ipv4 == {ADDRESS}", "vlan.id", "vlan.priority")
        assert arps and all(arp == [str(VID), str(OTHER_PCP)] for arp in arps)
        assert not link.tshark("_ws.malformed", "frame.number")


def test_sockets_are_told_that_a_port_is_unreachable(link: Link) -> None:
    """Connection refused, from the device's address; a protocol that it does not have; and no more than the
    bucket has."""
    ask = [sys.executable, "-c", ASK, ADDRESS]
    assert link.run(*ask, "9", "1").stdout.split() == ["timeout"]
    link.set("ICMP_ERRORS", 1)
    for port in ("9", "33434"):
        told = link.run(*ask, port, "3").stdout.splitlines()
        assert told == [f"ECONNREFUSED {ICMP_ORIGIN} 3 3 {ADDRESS}"] * 3
    # A TCP connection: the kernel reports "protocol not available" to a socket that asks for errors, and gives up at once.
    assert link.run(sys.executable, "-c", CONNECT, ADDRESS).stdout.strip() == str(errno.ENOPROTOOPT)
    before = link.counter("service_unreachable_sent")
    begin = time.monotonic()
    link.run(sys.executable, "-c", FLOOD, ADDRESS)
    assert any(link.pings(1) for _ in range(30))  # what the flood has left in queues on the way comes first
    seconds = time.monotonic() - begin
    sent = link.counter("service_unreachable_sent") - before
    # Device time may pass faster than that of this machine, where nothing happens; not while there are frames.
    assert 0 < sent < 3000 and link.counter("service_unreachable_limited") > 0, (sent, seconds)
    if shutil.which("tshark"):
        errors = link.tshark("icmp.type == 3", "icmp.code", "icmp.checksum.status", "ip.dst", "udp.dstport")
        assert len(errors) >= 7 and {error[0] for error in errors} == {"2", "3"}
        assert not link.tshark("_ws.malformed || icmp.checksum.status == 0 || ip.checksum.status == 0", "frame.number")
