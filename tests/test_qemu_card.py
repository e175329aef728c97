# SPDX-License-Identifier: Apache-2.0
"""The simulated RTL as the only network card of Linux in QEMU: as a PCI function by vfio-user, whose registers the virtio driver
finds by capabilities, and whose interrupts it gets by MSI-X; and by vhost-user with several pairs of queues. Over it ping and
soft-RoCE."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from conftest import ROOT, Wire

sys.path.insert(0, str(ROOT / "interop"))
import checks
import image
import qemu
from guest import Guest
from nacelle_tb.long import LONG
from outcome import markdown_failures

LIBRARY = ROOT / "build/sim/libnacelle_sim_64_nic.so"
MAC = "06:4e:41:4d:00:02"
PEER = "10.77.0.9"
NEEDED = ("gcc", "readelf", "dpkg-deb", "apt-get")
PAIRS = 4
CASES = ["connect", "call-increment-64k", "write-64k", "read-64k", "fetch-add"]
# What Linux writes about a driver or a device that does not do what it should.
COMPLAINTS = re.compile(r"\bBUG:|WARNING:|Oops|Call Trace|NETDEV WATCHDOG|\b(?:virtio|eth0).*(?:fail|error|bad|bogus)")

pytestmark = [
    pytest.mark.skipif(not LONG, reason="fetches a QEMU and boots guests: make test-long"),
    pytest.mark.xdist_group("guest"),
]


@contextmanager
def guest_of(wire: Wire, option: str, *card: str, processors: int = 1) -> Iterator[Guest]:
    """A guest whose card is that of a device, behind a socket; `card`: QEMU's options for it."""
    missing = [tool for tool in NEEDED if not shutil.which(tool)]
    if missing:
        pytest.skip(f"needs {', '.join(missing)}: run `sh tools/setup.sh interop`")
    if not LIBRARY.exists():
        pytest.skip(f"needs {LIBRARY.name}: run `python sim/build.py --device nic --data-w 64`")
    wire.start("device", "--soft", "--name", "peer", "--ip", f"{PEER}/16")
    socket = wire.folder / "card"
    wire.device("--name", "card", "--library", str(LIBRARY), option, str(socket))
    options = [part.replace("SOCKET", str(socket)) for part in card]
    own = {"card": options, "qemu": qemu.build(), "processors": processors}
    with Guest(image.build(), wire.folder, "guest", "10.77.1.2/16", **own) as guest:
        guest.ready()
        yield guest


def works(wire: Wire, guest: Guest) -> None:
    """Frames of all lengths pass, soft-RoCE calls the peer, and neither kernel nor model finds anything wrong."""
    assert guest.run("cat /sys/class/net/eth0/address").output.strip() == MAC
    for size in (16, 56, 1472):
        ping = guest.run(f"ping -c 3 -W 30 -s {size} {PEER}", timeout=120)
        assert "3 packets received" in ping.output, ping.output + guest.console()
    outcomes = list(checks.verbs(guest, PEER, "over our card", 0, CASES))
    assert len(outcomes) == len(CASES) and all(outcome.passed for outcome in outcomes), markdown_failures(outcomes)
    log = guest.run("dmesg").output
    assert not COMPLAINTS.search(log), log
    counters = wire.control("card", "stats")["counters"]
    assert counters["slot.violations"] == counters["slot.iommu_faults"] == 0


def interrupts(guest: Guest) -> dict[str, int]:
    """How often each interrupt of the card's driver has come."""
    lines = guest.run("cat /proc/interrupts").output.splitlines()
    found = [re.match(r"\s*\d+:\s+(\d+) .*(virtio\d+-(?:config|input\.\d|output\.\d|control|virtqueues))", line) for line in lines]
    return {match[2].partition("-")[2]: int(match[1]) for match in found if match}


def test_a_pci_function_by_vfio_user(wire: Wire) -> None:
    """Linux finds the card by its PCI capabilities; each queue has its vector. Removed and found again, it works again."""
    device = '{"driver":"vfio-user-pci","id":"card","socket":{"type":"unix","path":"SOCKET"}}'
    with guest_of(wire, "--slot-net", "-device", device) as guest:
        works(wire, guest)
        came = interrupts(guest)
        assert came.get("input.0", 0) > 0 and "output.0" in came, guest.run("cat /proc/interrupts").output
        function = Path(guest.run("readlink -f /sys/class/net/eth0/device/..").output.strip())
        identity = guest.run(f"cat {function}/vendor {function}/device").output.split()
        assert identity == ["0x1af4", "0x1041"], function
        again = guest.run(f"ip link set eth0 down; echo 1 > {function}/remove; echo 1 > /sys/bus/pci/rescan; sleep 1; ip -o link")
        assert "eth0" in again.output, again.output
        ping = guest.run(f"ip link set eth0 up; ip address add 10.77.1.2/16 dev eth0; ping -c 3 -W 30 {PEER}", timeout=120)
        assert "3 packets received" in ping.output, ping.output
        assert wire.control("card", "stats")["counters"]["slot.violations"] == 0


def test_several_queues_by_vhost_user(wire: Wire) -> None:
    """QEMU serves the control queue itself, and enables pairs; interrupts by MSI-X."""
    card = [
        "-chardev", "socket,id=card,path=SOCKET", "-netdev", f"vhost-user,id=net,chardev=card,queues={PAIRS}",
        "-device", f"virtio-net-pci,romfile=,netdev=net,mac={MAC},mq=on,vectors={2 * PAIRS + 2}",
    ]  # fmt: skip
    # Linux uses a pair for each processor.
    with guest_of(wire, "--vhost-user", *card, processors=PAIRS) as guest:
        works(wire, guest)
        queues = guest.run("ls /sys/class/net/eth0/queues").output.split()
        assert queues == [f"{way}-{number}" for way in ("rx", "tx") for number in range(PAIRS)]
        came = interrupts(guest)
        assert sum(count for name, count in came.items() if name.startswith("input")) > 0, came
        counters = wire.control("card", "stats")["counters"]
        assert counters["vhost.requests_refused"] == counters["vhost.rings_lost"] == 0
