# SPDX-License-Identifier: Apache-2.0
"""The simulated RTL device and the real client over real frames: with and without loss, many clients, clients that vanish."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest
from conftest import ADDRESS, ROOT, Wire
from nacelle_tb.cci import address
from nacelle_tb.long import LONG, some

# Register of the device: milliseconds of silence after which a connection is tried.
KEEPALIVE_MS = address("KEEPALIVE_MS")
# Seconds in which a simulated device detects dead clients on a loaded machine: while others try to connect, its time passes slowly.
DETECTION_S = 240
MAX_CONNECTIONS_PER_PEER, MAX_HALF_OPEN = address("MAX_CONNECTIONS_PER_PEER"), address("MAX_HALF_OPEN")
KERNEL_TIMEOUT_MS, MEMORY_PER_CALLER = address("KERNEL_TIMEOUT_MS"), address("MEMORY_PER_CALLER")
# What the command returns when the device refuses, or does not answer in time because it still processes frames of killed clients.
NOT_NOW = (3, 4, 5)
# Without it each client takes an address of its own.
SAME_CALLER = ("--source", "10.77.0.50/16")


def matrices(folder: Path, m: int, k: int, n: int, dtype: type, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """a.npy and b.npy."""
    rng = np.random.default_rng(seed)
    a, b = ((rng.standard_normal(shape) * 100).astype(dtype) for shape in ((m, k), (k, n)))
    np.save(folder / "a.npy", a)
    np.save(folder / "b.npy", b)
    return a, b


def product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """In the order of the device: k ascending, each product and each sum rounded."""
    c = np.zeros((a.shape[0], b.shape[1]), a.dtype)
    for k in range(a.shape[1]):
        c = c + a[:, k : k + 1] * b[k : k + 1, :]
    return c


@pytest.mark.parametrize("dtype", [np.int32, np.float32])
@pytest.mark.parametrize("shape", [(1, 1, 1), (40, 50, 30), (65, 3, 17)])
def test_matmul_of_the_users_files(wire: Wire, shape: tuple[int, int, int], dtype: type) -> None:
    wire.device()
    a, b = matrices(wire.folder, *shape, dtype)
    result = wire.run("run", "matmul", "--device", ADDRESS, "a.npy", "b.npy", "-o", "c.npy", "--check")
    assert result.returncode == 0, result.stderr
    np.testing.assert_array_equal(np.load(wire.folder / "c.npy"), product(a, b))


@pytest.mark.parametrize("kind", [(), ("--soft",)], ids=["rtl", "soft"])
def test_a_device_tells_how_busy_it_is(wire: Wire, kind: tuple[str, ...]) -> None:
    wire.device(*kind)
    (wire.folder / "in").write_bytes(b"abc")
    for _ in range(2):
        assert wire.run("run", "increment", "--device", ADDRESS, "in", "-o", "out").returncode == 0

    def load() -> dict[str, int]:
        described = wire.run("describe", ADDRESS, "--json")
        assert described.returncode == 0, described.stderr
        return json.loads(described.stdout)["load"]

    # The RTL tells of a change within a few hundred cycles, in which a caller may have asked already.
    expected = {"connections": 1, "memory_bytes": 1 << 30, "memory_held": 0, "calls": 2, "running": 0, "waiting": 0}
    until = time.monotonic() + 20
    while (told := load()) != expected:
        assert time.monotonic() < until, told


@pytest.mark.parametrize("loss", [0, 1, 5])
def test_loss(wire: Wire, loss: int) -> None:
    """Every byte arrives whatever is lost, both ways."""
    wire.device("--loss", str(loss), "--dup", str(loss / 2), "--reorder", str(loss / 2), "--corrupt", str(loss / 2), "--seed", "7")
    data = os.urandom(300_000)
    (wire.folder / "in").write_bytes(data)
    result = wire.run("run", "increment", "--device", ADDRESS, "in", "-o", "out", "--ack-timeout", "200", "--mtu", "1500")
    assert result.returncode == 0, result.stderr
    assert (wire.folder / "out").read_bytes() == bytes(byte + 1 & 0xFF for byte in data)
    if loss:
        counters = wire.counters()
        assert counters["packet_drop_icrc"] > 0 or counters["roce_rx_out_of_sequence"] > 0, (
            "nothing was lost: the test tests nothing"
        )


@pytest.mark.parametrize("loss", [0, 1, 5])
def test_eight_clients_at_once(wire: Wire, loss: int) -> None:
    wire.device("--loss", str(loss), "--seed", "3")
    clients = []
    for index in range(8):
        data = os.urandom(20_000 + 100 * index)
        (wire.folder / f"in{index}").write_bytes(data)
        arguments = ("run", "increment", "--device", ADDRESS, f"in{index}", "-o", f"out{index}", "--ack-timeout", "200")
        clients.append((data, wire.start(*arguments)))
    for index, (data, client) in enumerate(clients):
        output, _ = client.communicate(timeout=120)
        assert client.returncode == 0, output
        assert (wire.folder / f"out{index}").read_bytes() == bytes(byte + 1 & 0xFF for byte in data)


def test_a_client_that_vanishes_frees_what_it_held(wire: Wire) -> None:
    """Killed in mid-transfer, again and again, more often than a caller has connections; the device serves the next one."""
    connections = 3
    wire.device("--name", "small", "--caller-connections", str(connections))
    # Silence is noticed soon: a register of the device.
    wire.control("small", "registers", accesses=[{"write": {"address": KEEPALIVE_MS, "value": 500}}])
    (wire.folder / "in").write_bytes(bytes(4_000_000))
    for _ in range(connections + 2):
        client = at_work(wire)
        client.send_signal(signal.SIGKILL)
        client.wait()
    (wire.folder / "small").write_bytes(b"abc")
    until = time.monotonic() + DETECTION_S
    small = ("run", "increment", "--device", ADDRESS, *SAME_CALLER, "small", "-o", "out")
    while (result := wire.run(*small)).returncode in NOT_NOW:
        assert time.monotonic() < until, result.stderr
        time.sleep(0.5)
    assert result.returncode == 0, result.stderr
    assert (wire.folder / "out").read_bytes() == b"bcd"


def at_work(wire: Wire) -> subprocess.Popen[str]:
    """A client with a connection, in mid-transfer. While the device has not yet detected the death of others, it tries again."""

    def opened() -> int:
        return wire.control("small", "stats")["counters"]["cm_connection_opened"]

    until = time.monotonic() + DETECTION_S
    while time.monotonic() < until:
        before = opened()
        client = wire.start("run", "increment", "--device", ADDRESS, *SAME_CALLER, "in", "-o", "out", "--ack-timeout", "20")
        while client.poll() is None:
            if opened() > before:
                return client
            time.sleep(0.3)  # a look costs a simulated device time
        assert client.returncode in NOT_NOW, client.communicate()[0]
        time.sleep(0.3)
    pytest.fail("the device takes no client any more")


def test_a_device_that_vanishes_is_an_error_within_the_deadline(wire: Wire) -> None:
    device = wire.device("--line-rate", "10")
    (wire.folder / "in").write_bytes(bytes(3_000_000))
    client = wire.start("run", "increment", "--device", ADDRESS, "in", "-o", "out", "--timeout", "5", "--ack-timeout", "100")
    time.sleep(2)
    device.kill()
    output, _ = client.communicate(timeout=60)
    assert client.returncode in (3, 5), output
    assert "try:" in output
    assert not (wire.folder / "out").exists()


def test_bad_input_is_refused_with_a_reason(wire: Wire) -> None:
    wire.device()
    matrices(wire.folder, 4, 5, 6, np.float32)
    np.save(wire.folder / "c64.npy", np.zeros((4, 5)))
    np.save(wire.folder / "int.npy", np.zeros((5, 6), np.int32))
    np.save(wire.folder / "flat.npy", np.zeros(5, np.float32))
    (wire.folder / "text.npy").write_text("not a matrix")

    def refused(code: int, *arguments: str) -> str:
        result = wire.run(*arguments)
        assert result.returncode == code, f"{arguments}: {result.returncode}: {result.stdout}{result.stderr}"
        assert "try:" in result.stderr, result.stderr
        return result.stderr

    run = ("run", "matmul", "--device", ADDRESS)
    assert "b.npy" in refused(2, *run, "b.npy", "b.npy", "-o", "c.npy")
    assert "c64.npy" in refused(2, *run, "c64.npy", "b.npy", "-o", "c.npy")
    refused(2, *run, "a.npy", "int.npy", "-o", "c.npy")
    assert "flat.npy" in refused(2, *run, "flat.npy", "b.npy", "-o", "c.npy")
    assert "text.npy" in refused(2, *run, "text.npy", "b.npy", "-o", "c.npy")
    assert "none.npy" in refused(2, *run, "none.npy", "b.npy", "-o", "c.npy")
    assert "10.77.0.77" in refused(3, "run", "matmul", "--device", "10.77.0.77", "a.npy", "b.npy", "-o", "c.npy", "--timeout", "3")
    refused(4, *run, "a.npy", "b.npy", "-o", "c.npy", "--port", "999", "--timeout", "3")
    assert not (wire.folder / "c.npy").exists()
    assert wire.run(*run, "a.npy", "b.npy", "-o", "c.npy").returncode == 0


def test_regions_too_large_for_the_device(wire: Wire) -> None:
    wire.device()
    with (wire.folder / "huge").open("wb") as file:
        file.truncate(1_200_000_000)
    result = wire.run("run", "increment", "--device", ADDRESS, "huge", "-o", "out")
    assert result.returncode in (4, 6), result.stderr
    assert "try:" in result.stderr


def test_the_report_adds_up_and_the_capture_opens(wire: Wire) -> None:
    wire.device("--capture", "wire.pcapng")
    matrices(wire.folder, 16, 16, 16, np.float32)
    report = wire.json("run", "matmul", "--device", ADDRESS, "a.npy", "b.npy", "-o", "c.npy", "--report")
    assert report, "a report"
    wire.run("stop", ADDRESS)
    time.sleep(0.5)
    if not shutil.which("tshark"):
        pytest.fail("tshark is missing: run `make setup-test`")
    listed = subprocess.run(
        ["tshark", "-r", str(wire.folder / "wire.pcapng"), "-T", "fields", "-e", "frame.protocols", "-e", "infiniband.bth.opcode"],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    opcodes = [int(line.split("\t")[1]) for line in listed.splitlines() if "infiniband" in line]
    assert opcodes.count(100) >= 5, "REQ, REP, RTU, DREQ, DREP"
    assert 11 in opcodes, "RDMA WRITE with immediate"
    assert 17 in opcodes, "acknowledgements"


@pytest.mark.skipif(os.geteuid() != 0 or not Path("/dev/net/tun").exists(), reason="needs root and /dev/net/tun")
def test_the_kernels_ping_reaches_the_device_by_tap(wire: Wire, namespace: list[str]) -> None:
    wire.device("--tap", "nacelle-tap", before=namespace)
    subprocess.run([*namespace, "ip", "address", "add", "10.77.9.9/16", "dev", "nacelle-tap"], check=True)
    subprocess.run([*namespace, "ip", "link", "set", "nacelle-tap", "up"], check=True)
    ping = [*namespace, "ping", "-c", "3", "-W", "2", "-i", "0.3", "-s", "1000", ADDRESS]
    result = subprocess.run(ping, capture_output=True, text=True)
    assert " 0% packet loss" in result.stdout, result.stdout + result.stderr


def test_an_idle_device_costs_next_to_nothing(wire: Wire) -> None:
    device = wire.device()
    time.sleep(0.5)

    def cpu_seconds() -> float:
        fields = Path(f"/proc/{device.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def used_in_a_second() -> float:
        before = cpu_seconds()
        time.sleep(1)
        return cpu_seconds() - before

    # Reading the counters is work: it stays outside of what is measured. Other work of the machine only ever makes the same cycles
    # dearer.
    cycles = wire.json("stats", ADDRESS)["cycles"]
    used = min(used_in_a_second() for _ in range(4))
    assert wire.json("stats", ADDRESS)["cycles"] - cycles > 100_000_000, "device time passes while it is idle"
    assert used < 0.1, "an idle device uses the processor"


@pytest.fixture
def large(wire: Wire) -> Wire:
    """A wire with a device of 1024 queue pairs, of which one caller may have all."""
    wire.device("--name", "large", "--library", str(ROOT / "build/sim/libnacelle_sim_64_test.so"))
    bounds = (MAX_CONNECTIONS_PER_PEER, MAX_HALF_OPEN)
    wire.control("large", "registers", accesses=[{"write": {"address": address, "value": 0}} for address in bounds])
    return wire


def test_a_device_with_1024_queue_pairs(large: Wire) -> None:
    """Its timers are as quick as those of a smaller one."""
    for rules in some(("cm.connect", "cm.queue_pair", "cm.rep_is", "cm.repeated"), 2):
        large.tool("nacelle-conformance", ADDRESS, "--only", rules)


@pytest.mark.skipif(not LONG, reason="takes over a minute")
def test_a_device_takes_1024_connections_and_takes_them_again(large: Wire) -> None:
    assert "the device takes 1024 connections, 1024 of one caller" in large.tool(
        "nacelle-soak", ADDRESS, "--seeds", "1", "--connections", "8", "--operations", "8", "--hostile", "0"
    )


# The time of the RTL is that of the device, at 16 products a cycle.
BOUNDED = {"rtl": ((), 1, 1, 256), "soft": (("--soft",), 32, 500, 1500)}


@pytest.mark.parametrize(("kind", "memory", "time_ms", "size"), BOUNDED.values(), ids=BOUNDED)
def test_the_command_line_bounds_callers_and_kernels(
    wire: Wire, kind: tuple[str, ...], memory: int, time_ms: int, size: int
) -> None:
    """Connections and memory of a caller, and the time of a kernel."""
    wire.device(*kind, "--caller-connections", "5", "--caller-memory", str(memory), "--kernel-time", str(time_ms))
    soak = wire.tool("nacelle-soak", ADDRESS, "--seeds", "1", "--connections", "4", "--operations", "4", "--hostile", "0")
    assert "the device takes 256 connections, 5 of one caller" in soak

    (wire.folder / "in").write_bytes(bytes(1000))
    increment = ("run", "increment", "--device", ADDRESS, "in", "-o", "out")
    assert wire.run(*increment).returncode == 0
    function = ("run", "function", "1", "--device", ADDRESS, "--inout", "in", "-o", "out", "--internal")
    assert wire.run(*function, str((memory << 20) - (64 << 10))).returncode == 0
    result = wire.run(*function, str(memory << 20))
    assert result.returncode == 4 and "memory" in result.stderr, result.stderr

    matrices(wire.folder, size, size, size, np.float32)
    result = wire.run("run", "matmul", "--device", ADDRESS, "a.npy", "b.npy", "-o", "c.npy")
    assert result.returncode == 6 and "time limit" in result.stderr, result.stderr
    assert wire.run(*increment).returncode == 0


def test_zero_is_no_bound(wire: Wire) -> None:
    addresses = (MAX_CONNECTIONS_PER_PEER, MEMORY_PER_CALLER, KERNEL_TIMEOUT_MS)
    reads = [{"read": {"address": address}} for address in addresses]
    device = wire.device("--name", "free", "--caller-connections", "0", "--caller-memory", "0", "--kernel-time", "0")
    assert wire.control("free", "registers", accesses=reads) == [0, 0, 0]
    matrices(wire.folder, 8, 9, 10, np.float32)
    result = wire.run("run", "matmul", "--device", ADDRESS, "a.npy", "b.npy", "-o", "c.npy", "--check")
    assert result.returncode == 0, result.stderr
    device.terminate()
    device.wait(10)
    wire.device("--name", "usual")
    assert wire.control("usual", "registers", accesses=reads) == [64, 0, 60_000], "as the registers' reference says"


def test_demo_ends_with_a_command_that_works(wire: Wire) -> None:
    result = wire.run("demo", "--dir", str(wire.folder / "demo"), "--library", str(ROOT / "build/sim/libnacelle_sim_512.so"))
    assert result.returncode == 0, result.stderr
    text = result.stdout + result.stderr
    command = next(line.strip() for line in text.splitlines() if "run matmul --device" in line)
    assert "-o" in command, text
    matrices(wire.folder, 8, 9, 10, np.float32)
    address = command.split("--device")[1].split()[0]
    again = wire.run("run", "matmul", "--device", address, "a.npy", "b.npy", "-o", "c.npy", "--check")
    assert again.returncode == 0, again.stderr
    assert wire.run("stop", address).returncode == 0


@pytest.mark.parametrize(
    ("options", "what"),
    [(["--ipv6", "link-local"], "IPv6"), (["--image-key", "KEY"], "places for images of kernels")],
    ids=["ipv6", "images"],
)
def test_a_device_is_not_asked_for_what_it_was_built_without(wire: Wire, options: list[str], what: str) -> None:
    """It does not start, and says why and what to do."""
    key = wire.folder / "key"
    key.write_text("11" * 32)
    key.chmod(0o600)
    result = wire.run(
        "device",
        "--library",
        str(ROOT / "build/sim/libnacelle_sim_64.so"),
        *(str(key) if word == "KEY" else word for word in options),
    )
    assert result.returncode != 0 and f"the simulated device was built without {what}" in result.stderr
    assert "make sim" in result.stderr
