# SPDX-License-Identifier: Apache-2.0
"""Copies between this machine and the memory of the simulated device in a slot: `nacelle copy`, and the C library."""

from __future__ import annotations

import json
import random
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
from c_tree import CRATE, WARNINGS, Tree, run
from conftest import ADDRESS, NACELLE, ROOT, Wire

LIBRARY = ROOT / "build" / "sim" / "libnacelle_sim_64_nic.so"
BASE = 768 << 20
"""Where the host's part of the device's memory begins"""
SIZE = 256 << 20
SANITIZE = ("-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")


@pytest.fixture
def card(wire: Wire) -> Wire:
    """A device in a slot."""
    if not LIBRARY.exists():
        pytest.skip(f"needs {LIBRARY.name}: make sim SIM_ARGS='--data-w 64 --device nic'")
    wire.device("--name", "card", "--slot", "card.sock", "--library", str(LIBRARY))
    return wire


def copy(wire: Wire, *arguments: str, data: bytes = b"", expect: int = 0) -> subprocess.CompletedProcess[bytes]:
    """Runs `nacelle copy`."""
    command = [str(NACELLE), "copy", "--slot", "card.sock", *arguments]
    result = subprocess.run(command, env=wire.environment, cwd=wire.folder, input=data, capture_output=True, timeout=120)
    assert result.returncode == expect, result.stderr.decode()
    return result


def refused(wire: Wire, said: str, *arguments: str, code: int = 2, data: bytes = b"") -> None:
    """It fails with this in its message, and says what to try."""
    error = copy(wire, *arguments, data=data, expect=code).stderr.decode()
    assert said in error and "\ntry: " in error, error


def busy(wire: Wire) -> subprocess.Popen[bytes]:
    """A `nacelle copy` that copies, and waits for more of its input."""
    command = [str(NACELLE), "copy", "--slot", "card.sock", "-", "device:0"]
    child = subprocess.Popen(command, env=wire.environment, cwd=wire.folder, stdin=subprocess.PIPE, stderr=subprocess.PIPE)
    feed(child)
    return child


def feed(child: subprocess.Popen[bytes]) -> None:
    """Gives it more to copy; some of that is under way when this returns."""
    assert child.stdin
    # It takes the second 256 KiB when the first are on their way, and more than a pipe holds behind these when they are there.
    child.stdin.write(bytes(512 << 10))
    child.stdin.flush()


def stops(wire: Wire) -> list[dict[str, Any]]:
    """What the event log says of the copy engine. A machine with much to do answers late."""
    for _ in range(10):
        result = wire.run("--json", "log", "card")
        if result.returncode == 0:
            return [entry for entry in json.loads(result.stdout)["entries"] if entry["kind"] == "copy-stopped"]
    pytest.fail(result.stderr)


def test_files_and_the_device(card: Wire) -> None:
    """Into the device, within it, and out of it: any length and place."""
    data = random.Random(1).randbytes((256 << 10) + 12_345)
    (card.folder / "in").write_bytes(data)
    said = copy(card, "in", "device:0x1001", "--verify").stderr.decode()
    assert said == f"{len(data)} bytes from in to device:0x1001, device address {BASE + 0x1001:#x}, compared\n"
    copy(card, "device:0x1001", "out", "--length", str(len(data)), "--verify")
    assert (card.folder / "out").read_bytes() == data
    copy(card, "device:4098", "device:0x800003", "--length", "9000", "--verify")
    assert copy(card, "device:0x800003", "-", "--length", "9000").stdout == data[1:9001]
    # A part of a file, and standard input, whose length nobody knows.
    copy(card, "in", "device:0", "--skip", "77", "--length", "1")
    assert copy(card, "device:0", "-", "--length", "1").stdout == data[77:78]
    copy(card, "-", f"device:{SIZE - 5}", data=b"12345")
    assert copy(card, "device:0xffffffb", "-", "--length", "5").stdout == b"12345"
    copy(card, "-", "device:3", "--skip", "2", data=b"12345")
    assert copy(card, "device:3", "-", "--length", "3").stdout == b"345"
    # Nothing.
    copy(card, "-", "device:3")
    (card.folder / "empty").touch()
    copy(card, "empty", f"device:{SIZE}", "--verify")
    copy(card, "device:7", "out", "--length", "0")
    assert (card.folder / "out").read_bytes() == b""
    found = card.json("copy", "--slot", "card.sock", "in", "device:16", "--length", "100", "--verify")
    assert found == {"bytes": 100, "device_address": BASE + 16, "verified": True}


def test_what_is_wrong_is_named_and_changes_nothing(card: Wire) -> None:
    (card.folder / "in").write_bytes(b"x" * 1000)
    copy(card, "-", f"device:{SIZE - 500}", data=b"y" * 500)
    refused(card, "has no free 1000 bytes at 0xffffe0c", "in", f"device:{SIZE - 500}", code=4)
    assert copy(card, f"device:{SIZE - 500}", "-", "--length", "500").stdout == b"y" * 500
    refused(card, "more than the 500 bytes that there are", "-", f"device:{SIZE - 500}", data=b"z" * 501)
    refused(card, "there are no 901", "in", "device:0", "--skip", "100", "--length", "901")
    refused(card, "there are no", "in", "device:0", "--skip", "1001")
    refused(card, "after 3 bytes", "-", "device:0", "--length", "4", data=b"123")
    refused(card, "after 3 bytes", "-", "device:0", "--skip", "4", data=b"123")
    refused(card, "cannot read missing", "missing", "device:0")
    refused(card, "cannot write no/where", "device:0", "no/where", "--length", "1")
    refused(card, "the number of bytes is missing", "device:0", "out")
    refused(card, "--skip is for a file", "device:0", "out", "--length", "1", "--skip", "1")
    refused(card, "neither place is in the device", "in", "out")
    refused(card, "overlap", "device:0", "device:9", "--length", "10")
    refused(card, "no number", "in", "device:x")
    refused(card, "has no free 1 bytes at 0x10000000", "device:0x10000000", "-", "--length", "1", code=4)
    refused(card, "has no free", "device:0xffffffffffffffff", "-", "--length", "2", code=4)
    assert not (card.folder / "out").exists()
    error = subprocess.run(
        [str(NACELLE), "--json", "copy", "--slot", "other.sock", "in", "device:0"],
        env=card.environment, cwd=card.folder, capture_output=True, text=True,
    )  # fmt: skip
    assert error.returncode == 3 and '"code":"slot"' in error.stderr and "no device is in the slot other.sock" in error.stderr


def test_a_slot_has_one_program_and_the_log_says_how_it_ended(card: Wire) -> None:
    """Another one is turned away. When the first is killed with copies under way, the engine stops, and the next one works."""
    (card.folder / "in").write_bytes(bytes(range(256)))
    first = busy(card)
    refused(card, "the device has gone", "in", "device:0", code=3)
    feed(first)  # a busy machine may have done the rest meanwhile
    first.send_signal(signal.SIGKILL)
    first.wait()
    copy(card, "in", "device:1", "--verify")
    [stopped] = stops(card)
    assert stopped["ring"] == 1 and stopped["reason"] == "the function was reset" and stopped["count"] >= 1
    # One that ends by itself leaves no entry.
    copy(card, "device:1", "-", "--length", "256")
    assert stops(card) == [stopped]


def test_a_device_that_ends_ends_the_copy(card: Wire) -> None:
    child = busy(card)
    assert card.run("stop", ADDRESS).returncode == 0
    error = child.communicate(timeout=30)[1].decode()
    assert child.returncode == 3 and "the device has gone" in error and "try: " in error, error


@pytest.mark.parametrize("sanitize", [False, True], ids=["plain", "sanitized"])
def test_the_c_library(card: Wire, c_tree: Tree, tmp_path: Path, sanitize: bool) -> None:
    options = SANITIZE if sanitize else ("-O2",)
    source = str(CRATE / "tests" / "copies.c")
    program = c_tree.compile(tmp_path / "copies", "gcc", "-std=c11", *WARNINGS, *options, "-pthread", source)
    # What the library keeps for the process is no leak.
    variables = {"ASAN_OPTIONS": "detect_leaks=0"}
    assert run(card, program, "card.sock", **variables).stdout == "0 failures\n"
    for way in ("exit",) if sanitize else ("exit", "fork"):
        assert run(card, program, "card.sock", way, **variables).stdout == "0 failures\n"
    assert run(card, program, "card.sock", **variables).stdout == "0 failures\n"


def test_the_c_program_of_the_how_to(card: Wire, c_tree: Tree, tmp_path: Path) -> None:
    page = (ROOT / "docs" / "how-to" / "copy-memory.md").read_text()
    source = tmp_path / "main.c"
    source.write_text(page.split("```c\n")[1].split("```")[0])
    program = c_tree.compile(tmp_path / "main", "gcc", "-std=c11", *WARNINGS, str(source))
    assert run(card, program).stdout == "some bytes\n"
