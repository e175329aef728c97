# SPDX-License-Identifier: Apache-2.0
"""Devices and callers that are hosts of an interface's network, by packet and AF_XDP sockets: over a veth pair in a namespace."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from conftest import NACELLE, Wire

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root for network namespaces")

DEVICE = "10.99.0.2"

both = pytest.mark.parametrize("kind", ["packet", "xdp"])


@pytest.fixture
def veth(namespace: list[str]) -> list[str]:
    """The namespace, with the interfaces va and vb joined."""
    subprocess.run([*namespace, "ip", "link", "add", "va", "type", "veth", "peer", "name", "vb"], check=True)
    for end in ("va", "vb"):
        subprocess.run([*namespace, "ip", "link", "set", end, "up"], check=True)
    return namespace


def serve(wire: Wire, before: Sequence[str], kind: str) -> None:
    """Starts a device on va by a socket of this kind, and waits until it answers."""
    process = wire.start("device", "--soft", f"--{kind}", "va", "--ip", f"{DEVICE}/24", before=before)
    deadline = time.monotonic() + 20
    while not any(entry["alive"] for entry in wire.json("ls")):
        assert process.poll() is None and time.monotonic() < deadline, "the device does not answer"
        time.sleep(0.1)


def call(wire: Wire, before: Sequence[str], *options: str) -> tuple[int, str]:
    """Increments random bytes; status and what was said."""
    data = os.urandom(200_000)
    (wire.folder / "in").write_bytes(data)
    caller = wire.start("run", "increment", "--device", DEVICE, *options, "in", "-o", "out", before=before)
    said = "".join(text or "" for text in caller.communicate(timeout=60))
    if caller.returncode == 0:
        assert (wire.folder / "out").read_bytes() == bytes(byte + 1 & 0xFF for byte in data)
    return caller.returncode, said


@both
def test_a_caller_and_a_device_on_an_interface(wire: Wire, veth: list[str], kind: str) -> None:
    """Both have addresses of their own, of which the kernel knows nothing; frames fit the interface's MTU of 1500 bytes."""
    serve(wire, veth, kind)
    for source in ("10.99.0.9/24", "10.99.0.10/24"):
        status, said = call(wire, veth, "--link", f"{kind}:vb", "--source", source)
        assert status == 0, said
    ping = wire.start("ping", DEVICE, "--link", f"{kind}:vb", "--source", "10.99.0.11/24", "-c", "1", before=veth)
    assert ping.wait(60) == 0, ping.communicate()
    counters = wire.json("stats", DEVICE)["counters"]
    assert counters["roce.discard_icrc"] == counters["link.tx_dropped"] == 0


@both
def test_the_doctor_examines_an_interface(wire: Wire, veth: list[str], kind: str) -> None:
    serve(wire, veth, kind)
    examined = wire.start("doctor", DEVICE, "--link", f"{kind}:vb", "--source", "10.99.0.9/24", before=veth)
    said, _ = examined.communicate(timeout=60)
    socket = {"packet": "a packet socket", "xdp": "an AF_XDP socket"}[kind]
    assert examined.returncode == 0 and f"{socket}: " in said and f"{DEVICE} answers ARP" in said, said
    missing = wire.start("doctor", DEVICE, "--link", f"{kind}:vz", "--source", "10.99.0.9/24", before=veth)
    said, _ = missing.communicate(timeout=60)
    assert missing.returncode != 0 and "on the interface vz" in said and "ip link" in said, said


@both
def test_the_kernels_hosts_reach_a_device_on_an_interface(wire: Wire, veth: list[str], kind: str) -> None:
    """By UDP, which is chosen for a device that publishes an interface. Checksums and segmentation are left to the interface."""
    serve(wire, veth, kind)
    subprocess.run([*veth, "ip", "address", "add", "10.99.0.1/24", "dev", "vb"], check=True)
    status, said = call(wire, veth)
    assert status == 0, said
    assert wire.json("stats", DEVICE)["counters"]["roce.discard_icrc"] == 0


def test_sockets_of_both_kinds_meet(wire: Wire, veth: list[str]) -> None:
    serve(wire, veth, "xdp")
    status, said = call(wire, veth, "--link", "packet:vb", "--source", "10.99.0.9/24")
    assert status == 0, said


@both
def test_an_interface_that_is_down_for_a_while_delays_a_call(wire: Wire, veth: list[str], kind: str) -> None:
    serve(wire, veth, kind)
    subprocess.run([*veth, "ip", "link", "set", "va", "down"], check=True)
    caller = wire.start(
        *("ping", DEVICE, "--link", "udp", "-c", "1", "--timeout", "20"),
        before=[*veth, "sh", "-c", 'ip address add 10.99.0.1/24 dev vb; exec "$@"', "sh"],
    )
    time.sleep(0.5)
    assert caller.poll() is None
    subprocess.run([*veth, "ip", "link", "set", "va", "up"], check=True)
    assert caller.wait(60) == 0, caller.communicate()


def test_what_keeps_from_an_interface_is_said(wire: Wire, veth: list[str]) -> None:
    source = ("--source", "10.99.0.9/24")
    for options, said in (
        (("--link", "packet:vz", *source), "on the interface vz: No such device"),
        (("--link", "packet:lo", *source), "it is no Ethernet interface"),
        (("--link", "packet:vb"), "needs an IPv4 address of its own"),
        (("--link", "packet:", *source), "1 to 15 characters"),
        (("--link", "xdp:vz", *source), "on the interface vz: there is no such interface"),
        (("--link", "xdp:lo", *source), "it is no Ethernet interface"),
        (("--link", "xdp:vb"), "needs an IPv4 address of its own"),
        (("--link", "pigeon"), "auto, wire, udp, shm, packet:INTERFACE, xdp:INTERFACE, verbs or verbs:DEVICE"),
    ):
        status, text = call(wire, veth, *options)
        assert status != 0 and said in text, text


def test_an_interface_is_used_by_one_xdp_socket_at_a_time(wire: Wire, veth: list[str]) -> None:
    serve(wire, veth, "xdp")
    status, said = call(wire, veth, "--link", "xdp:va", "--source", "10.99.0.9/24")
    assert status != 0 and "another XDP program is attached" in said and "bpftool net" in said, said


def test_memory_that_may_not_be_locked_is_said(wire: Wire, veth: list[str]) -> None:
    bounds = ["prlimit", "--memlock=65536", "setpriv", "--bounding-set=-ipc_lock"]
    status, said = call(wire, [*veth, *bounds], "--link", "xdp:vb", "--source", "10.99.0.9/24")
    assert status != 0 and "must be locked" in said and "ulimit -l" in said, said


@both
def test_missing_privileges_are_named(kind: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)  # the user nobody must reach the program
        program = shutil.copy(NACELLE, folder)
        command = [program, "--wire", f"/tmp/nacelle-nobody-{os.getpid()}", "run", "increment", "--device", DEVICE]
        command += ["--link", f"{kind}:lo", "--source", "10.99.0.9/24", "/etc/hostname", "-o", f"{folder}/out"]
        nobody = {"user": 65534, "group": 65534, "extra_groups": []}
        result = subprocess.run(command, capture_output=True, text=True, timeout=60, **nobody)
    missing = {"packet": "it needs root or CAP_NET_RAW", "xdp": "it needs root, or CAP_NET_RAW, CAP_NET_ADMIN and CAP_BPF"}
    assert result.returncode != 0 and missing[kind] in result.stderr, result.stderr
