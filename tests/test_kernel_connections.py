# SPDX-License-Identifier: Apache-2.0
"""A kernel connects to another host itself, and reads from its memory, only where the operator lets it."""

from __future__ import annotations

import ipaddress
import json
import subprocess
import time
from collections.abc import Iterator

import pytest
from conftest import ADDRESS, NACELLE, ROOT, Wire

NAME, PEER = "own", "10.77.0.9"
LIBRARY = ROOT / "build" / "sim" / "libnacelle_sim_64_test.so"
FETCH, SOCKET = 5, "socket3"
PORT = 12_345
TABLE, TABLE_SEED, WINDOW = 100_000, 7, 1  # of `nacelle-interop windows`
NOT_CONNECTED, NO_WINDOW = "(code 0x13)", "(code 0x14)"
SLOTS = 4


def fill(length: int, seed: int) -> bytes:
    """The bytes that follow from a seed, as `nacelle-interop` makes them."""
    mask = (1 << 64) - 1
    x = (seed * 0x9E37_79B9_7F4A_7C15 + 1) & mask
    out = bytearray()
    for _ in range(length):
        x = (x ^ x << 13) & mask
        x ^= x >> 7
        x = (x ^ x << 17) & mask
        out.append(x >> 32 & 0xFF)
    return bytes(out)


@pytest.fixture
def device(wire: Wire) -> Wire:
    wire.device("--name", NAME, "--library", str(LIBRARY))
    return wire


@pytest.fixture
def host(device: Wire) -> Iterator[subprocess.Popen[bytes]]:
    """A host with a window to read."""
    command = [str(NACELLE.with_name("nacelle-interop")), "windows", "--ip", f"{PEER}/16", "--timeout", "300", "--name", "peer"]
    child = subprocess.Popen(command, env=device.environment, cwd=device.folder)
    for _ in range(100):
        if any(entry["name"] == "peer" and entry["alive"] for entry in device.json("ls")):
            break
        time.sleep(0.1)
    yield child
    child.kill()
    child.wait()


def permit(wire: Wire, network: str) -> None:
    net = ipaddress.ip_network(network)
    words = [0, 0, 0xFFFF, int(net.network_address)]
    for i, word in enumerate(words):
        wire.json("config", "set", NAME, f"{SOCKET}.PEER_NETWORK[{i}]", str(word))
    wire.json("config", "set", NAME, f"{SOCKET}.PEERS", str(1 << 31 | 96 + net.prefixlen))


def request(wire: Wire, window: int = WINDOW, address: str = PEER) -> None:
    """Writes what the kernel is to read from."""
    peer = bytes(10) + b"\xff\xff" + ipaddress.ip_address(address).packed
    (wire.folder / "from").write_bytes(peer + PORT.to_bytes(2, "big") + bytes(2) + window.to_bytes(4, "big"))


def fetch(wire: Wire, size: int, *arguments: str) -> bytes | str:
    """What the kernel has read, or the error."""
    done = wire.run(
        *("--json", "run", "function", str(FETCH), "--device", ADDRESS, "--input", "from", "--output", str(size)),
        *("--internal", "512", "-o", "data", *arguments),
    )
    if done.returncode == 0:
        return (wire.folder / "data").read_bytes()
    return json.loads(done.stderr.splitlines()[-1])["error"]["message"]


def register(wire: Wire, name: str) -> int:
    return wire.json("config", "get", NAME, f"{SOCKET}.{name}")[0]["value"]


def test_a_kernel_reads_from_another_host(device: Wire, host: subprocess.Popen[bytes]) -> None:
    """Every size, the host's bytes. Its connections are closed with the call: none is in use, and the host may vanish."""
    permit(device, "10.77.0.0/16")
    request(device)
    table = fill(TABLE, TABLE_SEED)
    for size in (1, 100, 4096, TABLE):
        assert fetch(device, size) == table[:size]
    assert fetch(device, TABLE, "--loss", "3") == table
    assert NO_WINDOW in fetch(device, TABLE + 1)
    request(device, WINDOW + 1)
    assert NO_WINDOW in fetch(device, 8)
    assert register(device, "CONNECTIONS.used") == 0 and register(device, "REFUSED") == 0
    host.kill()
    host.wait()


def test_only_where_the_operator_lets_it(device: Wire, host: subprocess.Popen[bytes]) -> None:
    """After reset nowhere; then in the network that the registers name. No other address is even resolved."""
    assert host.poll() is None
    request(device)
    assert NOT_CONNECTED in fetch(device, 8)
    permit(device, "10.77.0.8/31")
    assert fetch(device, 8) == fill(8, TABLE_SEED)
    for other in ("10.77.0.7", "10.77.0.10", "10.77.255.255", "10.76.0.9"):
        request(device, address=other)
        assert NOT_CONNECTED in fetch(device, 8)
    permit(device, "10.77.0.8/32")
    request(device)
    assert NOT_CONNECTED in fetch(device, 8)
    assert register(device, "REFUSED") == 6 and device.counters()["cm_drop_unresolved"] == 0


def test_a_peer_that_does_not_answer(device: Wire, host: subprocess.Popen[bytes]) -> None:
    """A caller who gives up takes no slot for good: more such calls than there are slots, other kernels called between, and the
    kernel reads from a host that is there."""
    assert host.poll() is None
    permit(device, "10.77.0.0/16")
    (device.folder / "in").write_bytes(b"abc")
    request(device, address="10.77.0.77")
    for _ in range(SLOTS + 1):
        assert isinstance(fetch(device, 8, "--timeout", "0.5"), str)
        assert device.run("run", "increment", "--device", ADDRESS, "in", "-o", "out").returncode == 0
    for _ in range(60):  # the time of a simulated device runs when it has nothing to do
        if not register(device, "CONNECTIONS.used"):
            break
        time.sleep(1)
    request(device)
    assert fetch(device, 8) == fill(8, TABLE_SEED)


def test_a_host_that_vanishes(device: Wire, host: subprocess.Popen[bytes]) -> None:
    """The caller learns of it, by an error of the kernel or by its own patience, and other kernels are called."""
    permit(device, "10.77.0.0/16")
    request(device)
    assert fetch(device, 8) == fill(8, TABLE_SEED)
    host.kill()
    host.wait()
    assert isinstance(fetch(device, TABLE, "--timeout", "2"), str)
    (device.folder / "in").write_bytes(b"abc")
    assert device.run("run", "increment", "--device", ADDRESS, "in", "-o", "out").returncode == 0
