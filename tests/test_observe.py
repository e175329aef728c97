# SPDX-License-Identifier: Apache-2.0
"""A kernel reads registers of its device: those that anybody may read, and more where the operator permits it; the values are those
that `nacelle` reads."""

from __future__ import annotations

import struct

import pytest
from conftest import ADDRESS, ROOT, Wire
from nacelle_tb.cci import address

NAME = "own"
LIBRARY = ROOT / "build" / "sim" / "libnacelle_sim_64_test.so"
OBSERVE, SOCKET = 8, 5  # of devices/test.toml
READ, REFUSED, NONE = 0, 2, 3  # responses of AXI
FACTS = ("TYPE", "CLOCK_HZ", "QPS", "SOCKETS", "DRAM_BYTES_LO", "DRAM_BYTES_HI", "MAC_LO", "ADDRESS_IP", "BUILD_DIGEST_LO")
COUNTERS = ("packet_rx_frame", "packet_tx_frame", "packet_drop_icrc", "rpc_regions_granted", "rpc_call_started")
SETTINGS = ("KERNEL_TIMEOUT_MS", "RPC_PORT", "RPG_AI_RATE", "socket.JOBS")
SECRETS = ("RANDOM_SEED", "CCI_PORT", "CCI_TOKEN_0", "admission.STATE", "management.STATUS", "trace.STATE", "event_log.NOW_LO")


@pytest.fixture
def device(wire: Wire) -> Wire:
    wire.device("--name", NAME, "--library", str(LIBRARY))
    return wire


def observe(wire: Wire, addresses: list[int]) -> list[tuple[int, int]]:
    """Value and response of each, as the kernel has them."""
    (wire.folder / "addresses").write_bytes(struct.pack(f"<{len(addresses)}I", *addresses))
    size = str(8 * len(addresses))
    done = wire.run("run", "function", str(OBSERVE), "--device", ADDRESS, "--input", "addresses", "--output", size, "-o", "answers")
    assert done.returncode == 0, done.stderr
    return list(struct.iter_unpack("<II", (wire.folder / "answers").read_bytes()))


def read(wire: Wire, at: int) -> int:
    """As the operator has it."""
    return wire.json("config", "get", NAME, hex(at))[0]["value"]


def test_a_kernel_reads_what_nacelle_reads(device: Wire) -> None:
    """Facts and counters without a permission; settings with one; secrets and what admits callers never."""
    names = [*FACTS, *COUNTERS]
    before = {name: read(device, address(name)) for name in names}
    answers = dict(zip(names, observe(device, [address(name) for name in names]), strict=True))
    after = {name: read(device, address(name)) for name in names}
    for name, (value, response) in answers.items():
        assert response == READ and before[name] <= value <= after[name], name
    assert answers["packet_rx_frame"][0] > 0 and all(before[name] == after[name] for name in FACTS)

    never = [address(name) for name in SECRETS]
    assert observe(device, [*map(address, SETTINGS), *never]) == [(0, REFUSED)] * (len(SETTINGS) + len(never))
    assert read(device, address("socket.REFUSED", SOCKET)) == len(SETTINGS) + len(never)

    device.json("config", "set", NAME, hex(address("socket.BUS", SOCKET)), "1")
    answers = observe(device, [*map(address, SETTINGS), *never, address("socket.TYPE", SOCKET + 1), 1 << 20])
    assert answers[: len(SETTINGS)] == [(read(device, address(name)), READ) for name in SETTINGS]
    assert answers[len(SETTINGS) : -2] == [(0, REFUSED)] * len(never)
    assert answers[-2:] == [(0, NONE)] * 2  # it has no such socket, and no such address

    device.json("config", "set", NAME, hex(address("socket.BUS", SOCKET)), "0")
    assert observe(device, [address("KERNEL_TIMEOUT_MS")]) == [(0, REFUSED)]
