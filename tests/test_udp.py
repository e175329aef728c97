# SPDX-License-Identifier: Apache-2.0
"""RoCEv2 by UDP sockets, as scapy sees it on the loopback interface: the kernel's headers, and the ICRC over them.

Seeing the interface needs root (AF_PACKET); calls do not.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from conftest import ADDRESS, NACELLE, Wire
from scapy.contrib.roce import BTH
from scapy.layers.inet import IP, UDP

# Tests of this file may run side by side: each process of pytest has addresses of its own.
NETWORK = f"127.0.{os.environ.get('PYTEST_XDIST_WORKER', 'gw0').removeprefix('gw')}"
DEVICE = f"{NETWORK}.77"
ROCE_PORT = 4791


# Writes each frame that arrives by the loopback interface, behind its length.
SNIFF = """
import socket, sys
sniffer = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0800))
sniffer.setsockopt(socket.SOL_SOCKET, 33, 1 << 25)  # SO_RCVBUFFORCE
sniffer.bind(("lo", 0))
print("ready", flush=True)
while True:
    frame, address = sniffer.recvfrom(1 << 17)
    if address[2] == socket.PACKET_HOST:
        sys.stdout.buffer.write(len(frame).to_bytes(4, "big") + frame)
        sys.stdout.buffer.flush()
"""


def split(bytes_: bytes) -> list[bytes]:
    """The frames that the sniffer has written."""
    frames = []
    while bytes_:
        length = int.from_bytes(bytes_[:4], "big")
        frames.append(bytes_[4 : 4 + length])
        bytes_ = bytes_[4 + length :]
    return frames


def icrc_is_right(packet: bytes) -> bool:
    """By scapy's own ICRC."""
    parsed = IP(packet)
    data = bytes(parsed[UDP].payload)
    bth = BTH(data)
    bth.underlayer = parsed[UDP]
    return bth.compute_icrc(data[:-4]) == data[-4:]


def serve(wire: Wire, before: Sequence[str] = ()) -> str:
    """Starts a device on a UDP socket, and waits until it answers."""
    process = wire.start("device", "--soft", "--udp", DEVICE, before=before)
    deadline = time.monotonic() + 20
    while not any(entry["alive"] for entry in wire.json("ls")):
        assert process.poll() is None, process.communicate()[0]
        assert time.monotonic() < deadline, "the device does not answer"
        time.sleep(0.1)
    return DEVICE


@pytest.fixture
def device(wire: Wire) -> str:
    return serve(wire)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to see an interface")
def test_every_segment_as_scapy_sees_it(wire: Wire, namespace: list[str]) -> None:
    """Don't fragment, identification 0 or counted from 0 in a segmented send, and right ICRCs."""
    # So the kernel segments before the interface, as for one that cannot do it.
    subprocess.run([*namespace, "ip", "link", "set", "lo", "gso_max_segs", "1"], check=True)
    device = serve(wire, namespace)
    data = os.urandom(300_000)
    (wire.folder / "in").write_bytes(data)
    with subprocess.Popen([*namespace, sys.executable, "-c", SNIFF], stdout=subprocess.PIPE) as sniffer:
        assert sniffer.stdout is not None and sniffer.stdout.readline() == b"ready\n"
        caught: list[bytes] = []
        reader = threading.Thread(target=lambda: caught.append(sniffer.stdout.read()))
        reader.start()
        caller = wire.start("run", "increment", "--link", "udp", "--device", device, "in", "-o", "out", before=namespace)
        assert caller.wait(60) == 0, caller.communicate()[0]
        time.sleep(0.5)
        sniffer.terminate()
        reader.join(10)
    assert (wire.folder / "out").read_bytes() == bytes(byte + 1 & 0xFF for byte in data)
    packets = [frame[14:] for frame in split(caught[0]) if UDP in IP(frame[14:]) and IP(frame[14:])[UDP].dport == ROCE_PORT]
    packets = [packet for packet in packets if IP(packet)[UDP].len > 8]  # all but the one that asks whether the port is open
    assert len(packets) >= 2 * 74, len(packets)
    assert all(IP(packet).flags == "DF" and IP(packet)[UDP].sport == ROCE_PORT for packet in packets)
    assert all(map(icrc_is_right, packets))
    identifications = {IP(packet).id for packet in packets}
    assert identifications == set(range(max(identifications) + 1)) and len(identifications) >= 10, identifications


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root for a TAP device")
def test_a_device_behind_a_tap(wire: Wire, namespace: list[str]) -> None:
    """The simulated RTL, on Ethernet: it checks the ICRC of what the kernel makes of the caller's datagrams, and the caller that of
    frames with identifications of another count."""
    wire.device("--tap", "nacelle0", before=namespace)
    subprocess.run([*namespace, "ip", "address", "add", "10.77.0.1/16", "dev", "nacelle0"], check=True)
    subprocess.run([*namespace, "ip", "link", "set", "nacelle0", "up"], check=True)
    data = os.urandom(50_000)
    (wire.folder / "in").write_bytes(data)
    caller = wire.start("run", "increment", "--link", "udp", "--device", ADDRESS, "in", "-o", "out", before=namespace)
    assert caller.wait(120) == 0, caller.communicate()[0]
    assert (wire.folder / "out").read_bytes() == bytes(byte + 1 & 0xFF for byte in data)
    assert wire.counters()["packet_drop_icrc"] == 0


def test_without_privileges(wire: Wire, device: str) -> None:
    """A caller with the user nobody reaches the device."""
    nobody = {} if os.geteuid() else {"user": 65534, "group": 65534, "extra_groups": []}
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)  # the user nobody must reach the program
        program = shutil.copy(NACELLE, folder)
        command = [program, "--wire", f"/tmp/nacelle-nobody-{os.getpid()}", "ping", device, "-c", "2"]
        result = subprocess.run(command, capture_output=True, text=True, timeout=60, **nobody)
    assert result.returncode == 0, result.stderr
    assert result.stdout.count("bytes from") == 2


def test_a_taken_port_is_explained(wire: Wire, device: str) -> None:
    result = wire.run("device", "--soft", "--udp", device)
    assert result.returncode == 3
    assert f"UDP port 4791 of {device} is taken by nacelle (process" in result.stderr
    assert "try:" in result.stderr


def test_shared_memory_is_used_where_it_is_offered(wire: Wire) -> None:
    """Without a choice nothing of a call passes the kernel's network, unless the device offers no memory."""
    data = os.urandom(300_000)
    (wire.folder / "in").write_bytes(data)
    for address, options, expected in ((f"{NETWORK}.78", (), True), (f"{NETWORK}.79", ("--no-shm",), False)):
        name = "shared" if expected else "alone"
        process = wire.start("device", "--soft", "--udp", address, "--name", name, *options)
        deadline = time.monotonic() + 20
        while not any(entry["alive"] and entry["name"] == name for entry in wire.json("ls")):
            assert process.poll() is None and time.monotonic() < deadline, "the device does not answer"
            time.sleep(0.1)
        for link, works in (("auto", True), ("shm", expected)):
            result = wire.run("run", "increment", "--link", link, "--device", name, "in", "-o", "out")
            assert (result.returncode == 0) == works, result.stderr
            assert works or "cannot share memory with the device alone" in result.stderr
        assert (wire.folder / "out").read_bytes() == bytes(byte + 1 & 0xFF for byte in data)
        assert (wire.folder / "wire" / f"{name}.shm").exists() == expected
