# SPDX-License-Identifier: Apache-2.0
"""Linux guests whose only network card is the simulated RTL: `nacelle nic`, and User-mode Linux as it says."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import pytest
from conftest import ROOT, Wire, tshark

sys.path.insert(0, str(ROOT / "interop"))
import image
import uml
from nacelle_tb.long import LONG

LIBRARY = ROOT / "build/sim/libnacelle_sim_64_nic.so"
PEER = "10.77.0.9"
# Booting is a matter of seconds, and of more on a busy machine; frames are simulated.
PATIENCE_S = 300
# What Linux writes about a driver or a device that does not do what it should.
COMPLAINTS = re.compile(r"\bBUG:|WARNING:|Oops|Call Trace|NETDEV WATCHDOG|\b(?:virtio|eth0).*(?:fail|error|bad|bogus)")

# One worker runs them: they boot guests.
pytestmark = pytest.mark.xdist_group("uml")


@pytest.fixture(scope="module")
def linux() -> uml.UserModeLinux:
    """User-mode Linux."""
    missing = [tool for tool in ("apt-get", "dpkg-deb", "ip", "ping", "setsid") if not shutil.which(tool)]
    if missing:
        pytest.skip(f"needs {', '.join(missing)}: run `sh tools/setup.sh interop` and `sh tools/setup.sh test`")
    if not LIBRARY.exists():
        pytest.skip(f"needs {LIBRARY.name}: run `python sim/build.py --device nic --data-w 64`")
    try:
        return uml.build()
    except image.ImageError as error:
        pytest.skip(f"User-mode Linux cannot be fetched: {error}")


@dataclass
class Ran:
    """What a guest wrote, and how its script ended."""

    console: str
    status: int | None

    @property
    def complaints(self) -> list[str]:
        """Lines of the kernel that say that something is wrong."""
        return [line for line in self.console.splitlines() if COMPLAINTS.search(line)]


class Card:
    """A device whose network card is a guest's, as `nacelle nic` starts it, and what it has said."""

    def __init__(self, wire: Wire, linux: uml.UserModeLinux, name: str, *options: str, before: Sequence[str] = ()) -> None:
        self.wire, self.linux, self.name = wire, linux, name
        self.guests: list[subprocess.Popen[str]] = []
        log = (wire.folder / f"{name}.log").open("w")
        self.log = Path(log.name)
        arguments = ("--json", "nic", "--name", name, "--library", str(LIBRARY), "--linux", str(linux.kernel))
        with log:
            self.child = wire.start(*arguments, *options, before=before, stderr=log)
        assert self.child.stdout
        line = self.child.stdout.readline()
        assert line, self.log.read_text()
        self.said: dict[str, Any] = json.loads(line)

    def start(self, *lines: str) -> subprocess.Popen[str]:
        """Starts a guest that runs a script, by the line that was printed."""
        script = self.wire.folder / f"{self.name}.sh"
        script.write_text(self.linux.script(*lines))
        # No terminal: its console goes to a file.
        line = self.said["user_mode_linux"].replace("con0=fd:0,fd:1", "con0=null,fd:1")
        console = (self.wire.folder / f"{self.name}.console").open("w")
        with console:
            # It is several processes, and each of them keeps the card.
            guest = subprocess.Popen(
                [*shlex.split(line), f"NIC_RUN={script}"],
                stdin=subprocess.DEVNULL,
                stdout=console,
                stderr=subprocess.STDOUT,
                text=True,
                start_new_session=True,
            )
        self.guests.append(guest)
        return guest

    def kill(self, guest: subprocess.Popen[str]) -> None:
        """Kills a guest, in whatever it is doing."""
        with suppress(ProcessLookupError):
            os.killpg(guest.pid, signal.SIGKILL)
        guest.wait()

    def console(self) -> str:
        """What the guest has written so far."""
        return (self.wire.folder / f"{self.name}.console").read_text(errors="replace")

    def wait_for(self, text: str, guest: subprocess.Popen[str]) -> None:
        """Waits until a guest has written that."""
        end = time.monotonic() + PATIENCE_S
        while text not in self.console():
            assert guest.poll() is None and time.monotonic() < end, self.console() + self.log.read_text()
            time.sleep(0.1)

    def end(self, guest: subprocess.Popen[str]) -> Ran:
        """Waits until a guest has ended."""
        try:
            guest.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self.kill(guest)
        console = self.console()
        status = re.search(r"^guest: status (\d+)", console, re.MULTILINE)
        return Ran(console, int(status[1]) if status else None)

    def run(self, *lines: str) -> Ran:
        """Runs a script in a guest; it must succeed, and Linux must find nothing wrong."""
        ran = self.end(self.start("set -e", *lines))
        assert ran.status == 0, ran.console + self.log.read_text()
        assert not ran.complaints, ran.console
        return ran

    def counters(self) -> dict[str, int]:
        """What the device and its back end have counted."""
        return self.wire.control(self.name, "stats")["counters"]


class Cards(Protocol):
    """Starts a device by its name, with further options of `nacelle nic`, behind another command."""

    def __call__(self, name: str, *options: str, before: Sequence[str] = ()) -> Card: ...


@pytest.fixture
def cards(wire: Wire, linux: uml.UserModeLinux) -> Iterator[Cards]:
    """Starts devices by their names; their guests end with the test."""
    started: list[Card] = []

    def start(name: str, *options: str, before: Sequence[str] = ()) -> Card:
        started.append(Card(wire, linux, name, *options, before=before))
        return started[-1]

    yield start
    for card in started:
        for guest in card.guests:
            card.kill(guest)


def received(console: str) -> int:
    """How many answers ping says it got."""
    found = re.search(r"(\d+) received", console)
    assert found, console
    return int(found[1])


def test_a_guest_boots_with_the_card_and_pings(wire: Wire, cards: Cards) -> None:
    """Twice: the card is as new for the second guest."""
    wire.start("device", "--soft", "--name", "peer", "--ip", f"{PEER}/16")
    card = cards("card")
    assert card.said["guest_ip"] == "10.77.1.2/16" and card.said["device"]["ip"] == "10.77.0.2"
    for boot in (1, 2):
        ran = card.run(
            "echo driver=$(ethtool -i eth0 | sed -n 's/^driver: //p') mac=$(cat /sys/class/net/eth0/address)",
            "ethtool -k eth0 | grep -E '^(rx|tx)-checksumming|^tcp-segmentation'",
            f"ping -c 5 -i 0.2 -W 20 {PEER}",
            # A frame of the largest size, and one that is cut into fragments.
            f"ping -c 2 -W 20 -s 1472 {PEER}",
            "ethtool -S eth0 | grep -E 'rx_queue_0_packets|tx_queue_0_packets'",
            # The driver lets the card go, and takes it again.
            "ip link set eth0 down; ip link set eth0 up",
            f"ping -c 2 -W 20 {PEER}",
            "dmesg",
        )
        assert "driver=virtio_net mac=06:4e:41:4d:00:02" in ran.console
        assert ran.console.count(" 0% packet loss") == 3, ran.console
        assert "tcp-segmentation-offload: on" in ran.console
        counters = card.counters()
        assert (counters["vhost.front_ends"], counters["vhost.starts"]) == (boot, boot)
        assert counters["vhost.requests_refused"] == counters["vhost.front_ends_thrown_out"] == 0
        assert counters["slot.violations"] == counters["slot.iommu_faults"] == counters["vhost.rings_lost"] == 0


# Says the digest of what it is sent by the first connection.
SERVER = """
import hashlib, socket, sys
with socket.create_server(("", 5000)) as server:
    print("listening", flush=True)
    connection, _ = server.accept()
    with connection:
        print(hashlib.file_digest(connection.makefile("rb"), "sha256").hexdigest(), flush=True)
"""


@pytest.mark.skipif(os.geteuid() != 0 or not Path("/dev/net/tun").exists(), reason="needs root and /dev/net/tun")
def test_a_guest_sends_by_tcp_in_segments(wire: Wire, cards: Cards, namespace: list[str]) -> None:
    """To the kernel of this machine, which checks every checksum: more frames than the guest gives, none longer than the MTU."""
    capture = wire.folder / "capture.pcapng"
    switch = wire.start("--json", "wire", "--tap", "nacelle0", before=namespace)
    assert switch.stdout and switch.stdout.readline()
    card = cards("card", "--capture", str(capture))
    for command in (f"address add {PEER}/16 dev nacelle0", "link set nacelle0 up"):
        subprocess.run([*namespace, "ip", *command.split()], check=True)
    data = os.urandom(100_000)
    (wire.folder / "data").write_bytes(data)
    with subprocess.Popen([*namespace, sys.executable, "-c", SERVER], stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout and server.stdout.readline() == "listening\n"
        try:
            ran = card.run(
                "ethtool -k eth0 | grep -E '^tcp-segmentation|tx-tcp|tx-tcp6'",
                f"busybox nc {PEER} 5000 <{wire.folder / 'data'}",
                "ethtool -S eth0 | grep -E 'tx_queue_0_(packets|bytes)'",
                "dmesg",
            )
            assert server.stdout.readline().strip() == hashlib.sha256(data).hexdigest()
        finally:
            server.kill()
    for feature in ("tcp-segmentation-offload", "tx-tcp-segmentation", "tx-tcp6-segmentation", "tx-tcp-ecn-segmentation"):
        assert f"{feature}: on" in ran.console, ran.console
    given = int(re.findall(r"tx_queue_0_packets: (\d+)", ran.console)[0])
    card.wire.control(card.name, "capture-stop")
    frames = tshark(capture, "eth.src == 06:4e:41:4d:00:02", "frame.len", "tcp.len", "tcp.checksum.status",
                    options=["-o", "tcp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE"])  # fmt: skip
    with_data = [int(length) for _, length, _ in frames if length and int(length) > 0]
    print(f"{given} chains became {len(frames)} frames, {len(with_data)} of them with {sum(with_data)} bytes by TCP")
    assert all(int(length) <= 1514 for length, *_ in frames) and sum(with_data) >= len(data)
    assert all(status == "1" for _, length, status in frames if length), "a checksum is wrong"
    assert given < len(frames) - len(with_data) // 4


@pytest.mark.skipif(not LONG, reason="make test-long has the time")
def test_a_guest_sets_filters_and_queues(wire: Wire, cards: Cards, linux: uml.UserModeLinux) -> None:
    """Linux's driver tells the card by commands what it wants: each is taken, or refused with a reason, and frames go on."""
    wire.start("device", "--soft", "--name", "peer", "--ip", f"{PEER}/16")
    card = cards("card")
    (modules,) = linux.root.glob("usr/lib/uml/modules/*/kernel/net")
    vlans = " ".join(f"{modules}/{name}.ko" for name in ("llc/llc", "802/stp", "802/garp", "802/mrp", "8021q/8021q"))
    ping = f"ping -c 2 -i 0.2 -W 20 {PEER}"
    ran = card.run(
        ping,
        "for mode in promisc allmulticast; do ip link set eth0 $mode on; ip link set eth0 $mode off; done",
        "for i in $(seq 10 40); do ip maddr add 33:33:00:00:00:$i dev eth0; done; ip maddr show dev eth0 | grep -c 33:33:00:00:00",
        f"for module in {vlans}; do busybox insmod $module; done",
        "ip link add link eth0 name eth0.5 type vlan id 5; ip link set eth0.5 up; ip link del eth0.5",
        # The address is the card's, unless its operator says otherwise.
        "ip link set eth0 down; ip link set eth0 address 06:00:00:00:00:77 && echo taken || echo refused; ip link set eth0 up",
        "ethtool -l eth0; ethtool -x eth0 | head -3",
        ping,
        "ethtool -L eth0 combined 4; ethtool -l eth0 | tail -2",
        "ethtool -X eth0 equal 4; ethtool -x eth0 | sed -n 3,4p",
        # Connections of several addresses.
        "for i in $(seq 20 29); do ip addr add 10.77.1.$i/16 dev eth0; ping -c 1 -W 20 -I 10.77.1.$i " + PEER + "; done",
        "ethtool -S eth0 | grep -E 'rx_queue_[0-9]_packets'",
        "ethtool -X eth0 equal 1; ethtool -L eth0 combined 1",
        ping,
        "dmesg",
    )
    assert ran.console.count(" 0% packet loss") == 13, ran.console
    assert "refused" in ran.console and "taken" not in ran.console
    assert re.search(r"Combined:\s+4\s.*Combined:\s+1\s.*Combined:\s+4\s", ran.console, re.DOTALL), ran.console
    assert re.search(r"^\s+8:\s+0\s+1\s+2\s+3\s+0\s+1\s+2\s+3", ran.console, re.MULTILINE), ran.console
    used = re.findall(r"rx_queue_\d_packets: (\d+)", ran.console)
    assert len(used) == 4 and sum(int(packets) > 0 for packets in used) >= 2, used
    counters = card.counters()
    assert counters["vhost.requests_refused"] == counters["vhost.rings_lost"] == counters["slot.violations"] == 0


@pytest.mark.skipif(not LONG, reason="takes minutes, and both processors: make test-long")
def test_two_guests_on_two_devices(wire: Wire, cards: Cards) -> None:
    """ping, a file by TCP, and iperf3: every segment goes through both devices."""
    left, right = cards("left"), cards("right")
    data = os.urandom(60_000)
    (wire.folder / "data").write_bytes(data)
    server = right.start(
        # What is read of it ends with the connection only.
        "mkfifo /mnt/open; sleep 1000 >/mnt/open &",
        "echo waiting",
        "busybox nc -l -p 5000 </mnt/open >/mnt/got",
        "sha256sum </mnt/got",
        "timeout 200 iperf3 -s -1 >/mnt/iperf3.log; cat /mnt/iperf3.log",
        "dmesg",
    )
    right.wait_for("waiting", server)
    address = right.said["guest_ip"].split("/")[0]
    # A small window, as iperf3 ends when all is in the sender's, and says how much the other end has by then.
    iperf3 = f"iperf3 -c {address} -n 48K -w 16K --connect-timeout 60000"
    ran = left.run(
        f"ping -c 5 -i 0.2 -W 20 {address}",
        f"busybox nc {address} 5000 <{wire.folder / 'data'}",
        f"timeout 200 sh -c 'until {iperf3}; do sleep 2; done'",
        "dmesg",
    )
    assert received(ran.console) == 5
    assert re.search(r"KBytes .* receiver", ran.console), ran.console
    other = right.end(server)
    assert hashlib.sha256(data).hexdigest() in other.console, other.console
    assert other.status == 0 and not other.complaints, other.console
    for card in (left, right):
        counters = card.counters()
        assert counters["slot.violations"] == counters["vhost.rings_lost"] == counters["vhost.requests_refused"] == 0


@pytest.mark.skipif(not LONG, reason="takes minutes, and both processors: make test-long")
def test_a_guest_that_is_killed_costs_nobody_else_anything(wire: Wire, cards: Cards) -> None:
    """While it sends as fast as it can, and a peer calls the device."""
    wire.start("device", "--soft", "--name", "peer", "--ip", f"{PEER}/16")
    card = cards("card")
    (wire.folder / "in").write_bytes(bytes(3000))
    for _ in range(2):
        guest = card.start(f"ping -c 1 -W 20 {PEER} && echo reached", f"ping -f -q {PEER}")
        card.wait_for("reached", guest)
        called = wire.run("run", "increment", "--device", "10.77.0.2", "in", "-o", "out", "--ack-timeout", "2000")
        assert called.returncode == 0, called.stderr
        assert (wire.folder / "out").read_bytes() == bytes([1] * 3000)
        card.kill(guest)
        called = wire.run("run", "increment", "--device", "10.77.0.2", "in", "-o", "out", "--ack-timeout", "2000")
        assert called.returncode == 0, called.stderr
    assert card.run(f"ping -c 2 -W 20 {PEER}").console.count(" 0% packet loss") == 1
    counters = card.counters()
    assert counters["vhost.front_ends"] == 3 and counters["slot.violations"] == 0
