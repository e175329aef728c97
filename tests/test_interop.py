# SPDX-License-Identifier: Apache-2.0
"""A part of `make interop`: Linux' verbs in a QEMU guest against both devices, and the command line against Linux."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import ROOT

sys.path.insert(0, str(ROOT / "interop"))
import active
import checks
import image
import verbs_link
from guest import Guest
from outcome import Outcome, markdown_failures, markdown_table
from wire import HOST, Programs, Wire

# One worker runs them, as they share a guest.
pytestmark = pytest.mark.xdist_group("guest")

NEEDED = ("qemu-system-x86_64", "gcc", "readelf", "dpkg-deb", "apt-get")
# With loss each costs Linux its time-outs.
CASES_WITH_LOSS = ["connect", "call-increment-64k", "write-64k", "write-outstanding", "read-outstanding", "atomics-outstanding"]

CASES_IN_A_VLAN = ["connect", "call-increment-64k", "write-64k", "write-outstanding", "read-64k", "read-outstanding", "fetch-add"]


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Wire, Guest]]:
    """A wire with one Linux guest on it."""
    missing = [tool for tool in NEEDED if not shutil.which(tool)]
    if missing:
        pytest.skip(f"needs {', '.join(missing)}: run `sh tools/setup.sh interop`")
    with (
        Wire(Programs(HOST), tmp_path_factory.mktemp("logs")) as wire,
        Guest(image.build(), wire.folder, "guest", "10.77.1.1/16") as guest,
    ):
        yield wire, guest


def all_passed(outcomes: list[Outcome]) -> None:
    """Fails with every reason."""
    assert outcomes
    assert all(outcome.passed for outcome in outcomes), markdown_failures(outcomes)


@pytest.mark.parametrize("kind", [checks.SOFT, checks.RTL], ids=lambda kind: kind.name)
@pytest.mark.parametrize("loss", [0, 1])
def test_linux_calls(network: tuple[Wire, Guest], kind: checks.Device, loss: float) -> None:
    wire, guest = network
    all_passed(list(checks.device(wire, guest, kind, loss, CASES_WITH_LOSS if loss else ["*"])))


@pytest.mark.parametrize("kind", [checks.SOFT, checks.RTL], ids=lambda kind: kind.name)
def test_devices_call_linux(network: tuple[Wire, Guest], kind: checks.Device) -> None:
    wire, guest = network
    all_passed(list(active.active(wire, guest, kind, 0)))


def test_linux_is_called(network: tuple[Wire, Guest]) -> None:
    wire, guest = network
    all_passed(list(checks.callers(wire, guest, 0, (1, 100_000), conformance=False)))


def test_callers_use_soft_roce(network: tuple[Wire, Guest]) -> None:
    wire, _ = network
    all_passed(list(verbs_link.verbs_link(wire, image.build(), None)))


def test_linux_in_a_vlan(network: tuple[Wire, Guest]) -> None:
    """Linux' ping and soft-RoCE, by a VLAN interface, with a device in that VLAN; it is not reached without the tag."""
    wire, guest = network
    device, vid = "10.79.0.3", 7
    commands = [
        f"ip link add link eth0 name eth0.{vid} type vlan id {vid}",
        f"ip address add 10.79.1.1/16 dev eth0.{vid}",
        f"ip link set eth0.{vid} up",
        "until grep -qs 0a4f:0101 /sys/class/infiniband/rxe0/ports/1/gids/*; do usleep 10000; done",
    ]
    library = ROOT / "build" / "sim" / "libnacelle_sim_64.so"
    with wire.device("tagged", f"{device}/16", "--library", str(library), capture="vlan"):
        configured = wire.run("config", "set", "tagged", "VLAN", hex(1 << 31 | vid))
        assert configured.returncode == 0, configured.stderr
        try:
            result = guest.run("; ".join(commands), timeout=20)
            assert result.ok, result.output
            ping = guest.run(f"ping -c 3 -W 2 -s 1000 {device}")
            assert "3 packets received" in ping.output, ping.output
            all_passed(list(checks.verbs(guest, device, "in a VLAN", 0, CASES_IN_A_VLAN)))
            assert wire.run("config", "set", "tagged", "VLAN", "0").returncode == 0
            assert "0 packets received" in guest.run(f"ping -c 2 -W 1 {device}").output
        finally:
            guest.run(f"ip link del eth0.{vid}")


def test_a_command_of_the_guest_ends_in_time(network: tuple[Wire, Guest]) -> None:
    _, guest = network
    result = guest.run("echo begun; sleep 100 & sleep 100", timeout=1)
    assert result.status == 124
    assert result.output.startswith("begun\n")
    assert guest.run("ps | grep -c '[s]leep'").output == "0\n"
    assert guest.run("exit 3").status == 3


def test_tables() -> None:
    outcomes = [Outcome("t", "a", "one", True), Outcome("t", "b", "two", False, "why"), Outcome("t", "b", "one", False, "why")]
    assert markdown_table(outcomes).splitlines() == [
        "| | one | two |",
        "| --- | --- | --- |",
        "| a | ok |  |",
        "| b | **FAIL** | **FAIL** |",
    ]
    assert markdown_failures(outcomes) == "* why: b (two; one)"


def test_image_has_the_projects_programs() -> None:
    if not image.SYSROOT.exists():
        pytest.skip("no guest has been built")
    archive = Path(image.build().initramfs).read_bytes()
    for name in image.OWN_PROGRAMS:
        assert f"usr/local/bin/{name}".encode() in archive
    assert os.path.getsize(image.build().kernel) > 1 << 20
