# SPDX-License-Identifier: Apache-2.0
"""The control bus of a running device: the chain of blocks, and every address of it against the descriptions of the registers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from nacelle_tb.cci import address, blocks
from nacelle_tb.device import named
from nacelle_tb.long import LONG
from nacelle_tb.session import SimDevice, configure

SEED = 0xC0FFEE42
BUS_END = 1 << 20
BLOCK, ELSEWHERE = 0x1000, 0x7C
DATA_W = 64
KERNEL_AT = 0x100
DATAGRAM_SETTINGS = ("PORT", "NETWORK", "MASK", "PACE")


@pytest.fixture
def running() -> Iterator[SimDevice]:
    """The standard device, enabled."""
    with SimDevice(DATA_W, line_rate_mbps=0xFFFF_FFFF) as device:
        configure(device, seed=SEED)
        yield device


def answered(device: SimDevice, at: int) -> int | None:
    """What is read there; None: an error."""
    try:
        return device.read(at)
    except OSError:
        return None


def written(device: SimDevice, at: int, value: int) -> bool:
    """Whether a write was taken."""
    try:
        device.write(at, value)
    except OSError:
        return False
    return True


def chain(device: SimDevice) -> list[tuple[int, str, int]]:
    """Address, type and version of each block, as a program finds them that knows no build."""
    found, at = [], 0
    while True:
        kind, version, following = (device.read(at + offset) for offset in (0, 4, 8))
        found.append((at, kind.to_bytes(4, "big").decode("ascii"), version))
        if following == 0:
            return found
        assert at < following < BUS_END and following % 4 == 0
        at = following


def described(device: SimDevice) -> dict[int, dict[str, Any]]:
    """Each word that the blocks of the device have, by its address."""
    known = {block["type"].to_bytes(4, "big").decode("ascii"): block for block in blocks().values()}
    return {
        at + register["offset"] + 4 * i: register
        for at, kind, _ in chain(device)
        for register in known[kind]["registers"]
        for i in range(register["count"] or 1)
    }


@pytest.mark.parametrize("name", ["standard", "test", "nic"])
def test_the_chain_leads_to_every_block(name: str) -> None:
    """Also past a kernel whose type no program knows."""
    with SimDevice(DATA_W, device=name) as device:
        assert answered(device, 0) == int.from_bytes(b"NACL", "big") and device.read(8) == address("management.TYPE")
        assert answered(device, address("management.TYPE")) is None, "it lives from when the device is enabled"
        configure(device)
        expected = [(0, "NACL"), (0x1000, "MGMT"), (0x2000, "ADMN"), (0x3000, "ELOG"), (0x4000, "TRAC"), (0x5000, "HIST")]
        if named(name).image_slots:
            expected.append((0x6000, "IMGS"))
        expected.append((0x7000, "SENS"))
        if named(name).pcie:
            expected.append((0x8000, "COPY"))
        if named(name).classifier:
            expected.append((0x9000, "CLAS"))
        if named(name).stream:
            expected += [(address("stream.TYPE"), "STRM"), (address("nat.TYPE"), "NAPT")]
        for i, socket in enumerate(named(name).sockets):
            expected.append((address("socket.TYPE", i), "SOCK"))
            kind = {"traffic": "TRAF", "hostile": "HOST", "reflect": "REFL"}.get(socket.kernel.name)
            if kind:
                expected.append((address("socket.TYPE", i) + KERNEL_AT, kind))
        found = chain(device)
        assert [(at, kind) for at, kind, _ in found] == expected
        versions = {block["type"].to_bytes(4, "big").decode("ascii"): block["version"] for block in blocks().values()}
        assert all(version == versions[kind] for _, kind, version in found if kind in versions)


def test_every_address_answers_as_described(running: SimDevice) -> None:
    """All 2^18 words are read and written (few of no block in a short test): those of a register, and only those, are answered
    without an error."""
    words = described(running)
    pages = {at // BLOCK for at in words}
    tried = [at for at in range(0, BUS_END, 4) if LONG or at // BLOCK in pages or at % ELSEWHERE == 0]
    read = {at: value for at in tried if (value := answered(running, at)) is not None}
    assert sorted(read) == sorted(at for at, register in words.items() if "r" in register["access"])
    assert SEED not in read.values()
    for at, register in words.items():
        mask = sum(((1 << field["width"]) - 1) << field["low"] for field in register["fields"])
        assert read.get(at, 0) & ~mask == 0, f"{at:#x}: {register['name']} has bits that are not described"

    # What can be written is written as it is: nothing may change.
    writable = {at for at, register in words.items() if "w" in register["access"]}
    control = {name: address(name, 2) for name in ("traffic.CONTROL", "management.COMMAND", "RANDOM_SEED")}
    # A socket with one image takes no command, one without connections, datagrams and a port to registers no settings for them.
    settings = [("PEER_NETWORK", 4), ("PEERS", 1), ("BUS", 1), *((f"DATAGRAM_{setting}", 1) for setting in DATAGRAM_SETTINGS)]
    refused = {
        address(f"socket.{name}", i) + 4 * word
        for i in range(len(named("standard").sockets))
        for name, words in (("IMAGE_COMMAND", 1), *settings)
        for word in range(words)
    }
    taken = {
        at
        for at in tried
        if at not in refused | set(control.values()) and written(running, at, read.get(at, 0) if at in writable else 0xFFFF_FFFF)
    }
    assert taken == writable - refused - set(control.values())
    assert written(running, control["traffic.CONTROL"], 2) and written(running, control["management.COMMAND"], 0)
    assert refused < writable and not any(written(running, at, 1) for at in refused)
    changing = {
        address("management.STATUS"),
        address("management.COMMAND"),
        address("event_log.NOW_LO"),
        address("histograms.NOW_LO"),
        address("sensors.NOW"),
        *(address("sensors.STATE") + 4 * i for i in range(len(named("standard").sensors))),
    }
    for at, value in read.items():
        if at not in changing and not words[at]["group"]:
            assert running.read(at) == value, f"{at:#x}: {words[at]['name']}"


def test_the_seed_cannot_be_read(running: SimDevice) -> None:
    """By whoever has the bus; it can be written."""
    assert answered(running, address("RANDOM_SEED")) is None
    assert written(running, address("RANDOM_SEED"), SEED + 1)
    assert answered(running, address("RANDOM_SEED")) is None
