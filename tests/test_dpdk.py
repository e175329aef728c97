# SPDX-License-Identifier: Apache-2.0
"""The simulated RTL as a port of DPDK: testpmd drives the network card by net_virtio_user, over vhost-user. Frames that it makes
reach a station on the wire, all of them and as they should be; frames of the station come back with their addresses swapped."""

from __future__ import annotations

import os
import pty
import random
import re
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from conftest import ROOT, Wire
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether

sys.path.insert(0, str(ROOT / "interop"))
import dpdk
import image

LIBRARY = ROOT / "build/sim/libnacelle_sim_64_nic.so"
CARD = "06:4e:41:4d:00:02"
STATION = "02:00:5a:00:00:01"
NOBODY = "02:00:5a:00:00:03"
# testpmd's own, unless it is told others.
SOURCE, DESTINATION = "198.18.0.1", "198.18.0.2"
BURST, BURSTS = 16, 4
FORWARDED = 40
PATIENCE_S = 120
PROMPT = "testpmd> "

pytestmark = pytest.mark.xdist_group("guest")


@pytest.fixture(scope="module")
def testpmd() -> dpdk.Dpdk:
    """DPDK."""
    missing = [tool for tool in ("apt-get", "dpkg-deb") if not shutil.which(tool)]
    if missing:
        pytest.skip(f"needs {', '.join(missing)}: run `sh tools/setup.sh interop`")
    if not LIBRARY.exists():
        pytest.skip(f"needs {LIBRARY.name}: run `python sim/build.py --device nic --data-w 64`")
    try:
        return dpdk.build()
    except image.ImageError as error:
        pytest.skip(f"DPDK cannot be fetched: {error}")


class Station:
    """A party of the wire that knows its switch alone: one datagram, one frame."""

    def __init__(self, wire: Path) -> None:
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(str(wire / "station.sock"))
        self.switch = str(wire / "switch.sock")
        self.socket.settimeout(0.2)
        # The switch learns of a party by its first frame, which here is for nobody.
        self.send(bytes.fromhex((NOBODY + STATION).replace(":", "")) + b"\x88\xb5" + bytes(46))

    def send(self, frame: bytes) -> None:
        """Sends a frame."""
        self.socket.sendto(frame, self.switch)

    def frames(self, enough: Callable[[list[bytes]], bool]) -> list[bytes]:
        """What comes from the card until that is enough."""
        found: list[bytes] = []
        end = time.monotonic() + PATIENCE_S
        while not enough(found):
            assert time.monotonic() < end, f"{len(found)} frames have come"
            try:
                frame = self.socket.recv(10_000)
            except TimeoutError:
                continue
            if frame[6:12] == bytes.fromhex(CARD.replace(":", "")):
                found.append(frame)
        return found


class Testpmd:
    """dpdk-testpmd with the card as its only port, told what to do line by line."""

    __test__ = False

    def __init__(self, program: dpdk.Dpdk, path: Path, device: str, *options: str) -> None:
        processors = ",".join(map(str, sorted(os.sched_getaffinity(0))))
        port = f"net_virtio_user0,path={path},queues=1,queue_size=256,mac={CARD},{device}"
        own = ("--lcores", f"0@({processors}),1@({processors})", "--file-prefix", path.parent.name, "--vdev", port)
        command = [*program.testpmd(*own), "--", "-i", "--nb-cores=1", "--total-num-mbufs=4096", f"--burst={BURST}", *options]
        # To anything but a terminal it says what it says late. It polls all the time: the device goes first.
        self.terminal, its_end = pty.openpty()
        self.child = subprocess.Popen(
            ["nice", "-n", "10", *command], stdin=subprocess.PIPE, stdout=its_end, stderr=subprocess.STDOUT
        )
        os.close(its_end)
        self.said = ""
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()
        self.wait(PROMPT, 0)

    def read(self) -> None:
        """Collects what it says."""
        # It has no end: reading fails when the other side is closed.
        with suppress(OSError):
            while data := os.read(self.terminal, 4096):
                self.said += data.decode(errors="replace")

    def wait(self, words: str, start: int) -> str:
        """What it says from `start` on until it has said this."""
        end = time.monotonic() + PATIENCE_S
        while words not in self.said[start:]:
            assert self.child.poll() is None and time.monotonic() < end, self.said
            time.sleep(0.02)
        return self.said[start:]

    def do(self, line: str, last: str) -> str:
        """What it answers to a line, up to these words."""
        assert self.child.stdin
        start = len(self.said)
        self.child.stdin.write(f"{line}\n".encode())
        self.child.stdin.flush()
        return self.wait(last, start)

    def port(self) -> dict[str, int]:
        """What its port has counted."""
        return {name: int(value) for name, value in re.findall(r"(\S+): +(\d+)", self.do("show port stats 0", "Tx-bps"))}

    def close(self) -> None:
        """Ends it."""
        if self.child.poll() is None:
            assert self.child.stdin
            self.child.stdin.write(b"stop\nquit\n")
            self.child.stdin.flush()
        try:
            self.child.wait(30)
        finally:
            self.child.kill()
            self.reader.join(5)
            os.close(self.terminal)


@pytest.fixture(params=["mrg_rxbuf=0", "mrg_rxbuf=1", "mrg_rxbuf=1 --txpkts=60,64,300"], ids=["split", "mergeable", "indirect"])
def port(request: pytest.FixtureRequest, wire: Wire, testpmd: dpdk.Dpdk) -> Iterator[Testpmd]:
    """The card of a device, driven by testpmd in one of its forms; with several segments a frame has an indirect table."""
    card = wire.folder / "card"
    wire.device("--name", "nic0", "--library", str(LIBRARY), "--vhost-user", str(card))
    device, *options = request.param.split()
    port = Testpmd(testpmd, card, f"packed_vq=0,in_order=0,{device}", f"--eth-peer=0,{STATION}", *options)
    yield port
    port.close()


def test_frames_of_testpmd_and_back(wire: Wire, port: Testpmd, request: pytest.FixtureRequest) -> None:
    station = Station(wire.folder / "wire")
    before = wire.control("nic0", "stats")["counters"]
    lengths = [60, 64, 300] if "indirect" in request.node.name else [64]

    # Frames that testpmd makes, so many and no more; then it swaps the addresses of what comes.
    port.do("set fwd macswap", "Set macswap packet forwarding mode")
    port.do(f"start tx_first {BURSTS}", "packet forwarding - ports=1")
    made = station.frames(lambda found: len(found) >= BURST * BURSTS)
    assert len(made) == BURST * BURSTS
    for frame in made:
        assert len(frame) == sum(lengths)
        parsed = Ether(frame)
        assert (parsed.src, parsed.dst, parsed[IP].src, parsed[IP].dst) == (CARD, STATION, SOURCE, DESTINATION)
        # Checksums by who has not seen testpmd's.
        again = IP(bytes(parsed[IP]))
        del again.chksum
        assert IP(bytes(again)).chksum == parsed[IP].chksum and parsed[UDP].len == sum(lengths) - 34
    # Frames of the station, of any length.
    rng = random.Random(1)
    expected: Counter[bytes] = Counter()
    for number in range(FORWARDED):
        body = b"\x88\xb5" + number.to_bytes(2, "big") + rng.randbytes(rng.choice([46, 47, 200, 1000, 1496]))
        station.send(bytes.fromhex((CARD + STATION).replace(":", "")) + body)
        expected[bytes.fromhex((STATION + CARD).replace(":", "")) + body] += 1
        if number % 8 == 7:
            station_frames = station.frames(lambda found: len(found) >= 8)
            expected.subtract(station_frames)
            assert not any(expected.values()), "each frame comes back once, as it was"
    # Both sides have counted the same.
    stats = port.port()
    assert (stats["RX-packets"], stats["TX-packets"]) == (FORWARDED, BURST * BURSTS + FORWARDED), stats
    assert stats["RX-missed"] == stats["RX-errors"] == stats["TX-errors"] == 0
    after = wire.control("nic0", "stats")["counters"]
    assert after["packet_rx_card"] - before["packet_rx_card"] >= FORWARDED
    for name in ("packet_drop_card_source", "vhost.rings_lost", "vhost.requests_refused", "slot.iommu_faults", "slot.violations"):
        assert after[name] == 0, name
