# SPDX-License-Identifier: Apache-2.0
"""The trace of frames, as `nacelle trace` makes it: what the simulated RTL recorded is what passed, and tshark reads it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import struct
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from conftest import ADDRESS, Wire
from ipbus_programs import TOKEN
from test_ipbus import Managed

PEER, PORT = "10.77.0.9", "12345"
TRACE = 0x4000
STATE = TRACE + 0x70


@pytest.fixture
def device(wire: Wire) -> Wire:
    """The RTL, and a device beside it that connects to it."""
    wire.device("--name", "own")
    wire.start("device", "--soft", "--name", "peer", "--ip", f"{PEER}/16")
    for _ in range(200):
        if wire.run("stats", "peer").returncode == 0:
            return wire
        time.sleep(0.1)
    pytest.fail("the other device does not answer")


def records(wire: Wire) -> int:
    """Whether the device records: 1 it waits for the trigger, 2 it records."""
    values = wire.control("own", "registers", accesses=[{"read": {"address": STATE}}])
    return int(values[0]) & 3


def begin(wire: Wire, *arguments: str) -> subprocess.Popen[str]:
    """Starts a trace, and waits until the device records."""
    child = wire.start("--json", "trace", "own", *arguments)
    for _ in range(300):
        if records(wire):
            return child
        if child.poll() is not None:
            pytest.fail(f"the trace ended: {child.communicate()[0]}")
        time.sleep(0.05)
    pytest.fail("the device does not record")


def result(child: subprocess.Popen[str]) -> dict[str, Any]:
    """What it prints: messages first."""
    text = child.communicate(timeout=60)[0]
    assert child.returncode == 0, text
    return json.loads(text[text.index("{") :])


def connect(wire: Wire, *more: str) -> int:
    """Opens a connection to the device and closes it; returns the exit code."""
    return wire.run("connect", "peer", ADDRESS, PORT, *more).returncode


def tshark(file: Path, *fields: str) -> list[list[str]]:
    """Fields of the frames of a file."""
    if not shutil.which("tshark"):
        pytest.fail("tshark is missing: run `make setup-test`")
    names = [argument for field in fields for argument in ("-e", field)]
    command = ["tshark", "-n", "-r", str(file), "-T", "fields", "-E", "separator=|", *names]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return [line.split("|") for line in text.splitlines()]


def statistics(file: Path) -> dict[int, tuple[int, int]]:
    """What the file says of each interface by an Interface Statistics Block: frames received, and of these dropped by the capture
    (draft-ietf-opsawg-pcapng, 4.6)."""
    data, at, found = file.read_bytes(), 0, {}
    while at < len(data):
        kind, length = struct.unpack_from("<II", data, at)
        if kind == 5:
            (interface,) = struct.unpack_from("<I", data, at + 8)
            options, option = {}, at + 20
            while option < at + length - 4:
                code, size = struct.unpack_from("<HH", data, option)
                options[code] = int.from_bytes(data[option + 4 : option + 4 + size], "little")
                option += 4 + size + -size % 4
            assert interface not in found, "one for each interface"
            found[interface] = (options[4], options[5])
        assert struct.unpack_from("<I", data, at + length - 4) == (length,)
        at += length
    return found


def test_a_connection_is_recorded(device: Wire) -> None:
    """The frames of the device's own capture, in the same order, whole; in the file of the trace they are named rx and tx."""
    capture = device.start("capture", "--device", "own", "-o", "wire.pcapng")
    trace = begin(device, "--snap", "512", "--peer", PEER, "--roce", "-o", "trace.pcapng")
    time.sleep(1)
    assert connect(device) == 0
    time.sleep(1)
    capture.send_signal(signal.SIGINT)
    capture.wait(30)
    trace.send_signal(signal.SIGINT)
    told = result(trace)
    assert told["missed"] == [0, 0] and not told["triggered"]
    fields = ("frame.len", "ip.src", "ip.dst", "infiniband.bth.opcode", "infiniband.bth.destqp", "infiniband.invariant.crc")
    seen = [row for row in tshark(device.folder / "wire.pcapng", *fields) if PEER in row[1:3] and row[3]]
    found = tshark(device.folder / "trace.pcapng", *fields)
    assert len(found) >= 5 and found == seen
    assert len(told["frames"]) == sum(told["recorded"]) == len(found)
    times = tshark(device.folder / "trace.pcapng", "frame.time_epoch", "frame.interface_name", "ip.src", "frame.cap_len")
    assert [float(row[0]) for row in times] == sorted(float(row[0]) for row in times)
    assert all((row[1] == "tx") == (row[2] == ADDRESS) for row in times)
    comments = subprocess.run(["capinfos", str(device.folder / "trace.pcapng")], capture_output=True, text=True).stdout
    assert "recorded by the Nacelle device own" in comments and "drops meanwhile: none" in comments


def test_a_drop_ends_a_trace(device: Wire) -> None:
    """The frames before a drop are there, and which counter it was."""
    trace = begin(device, "--trigger", "drop", "--frames", "2")
    assert records(device) == 1
    assert connect(device) == 0
    assert records(device) == 1
    # One that damages every frame that it sends.
    device.start("device", "--soft", "--name", "bad", "--ip", "10.77.0.8/16", "--corrupt", "100")
    for _ in range(200):
        if device.run("stats", "bad").returncode == 0:
            break
        time.sleep(0.1)
    device.run("connect", "bad", ADDRESS, PORT)
    for _ in range(4):
        device.run("ping", "own")
    told = result(trace)
    assert told["triggered"] and told["drops"], told
    assert records(device) == 0


def test_a_frame_ends_a_trace(device: Wire) -> None:
    """All frames around the one that matches are recorded, a number after it."""
    trace = begin(device, "--trigger", "match", "--peer", PEER, "--frames", "3")
    assert device.run("ping", "own").returncode == 0
    assert records(device) == 1
    assert connect(device) == 0
    told = result(trace)
    assert told["triggered"]
    texts = [frame["text"] for frame in told["frames"]]
    assert any("echo" in text.lower() for text in texts), texts
    first = next(i for i, text in enumerate(texts) if text.startswith("CM"))
    assert len(texts) - first - 1 in (3, 4), texts


def test_there_is_only_so_much_room(device: Wire) -> None:
    """What has no room is counted; a ring keeps the newest; nothing is held up."""
    before = device.counters()
    for ring in ([], ["--ring"]):
        trace = begin(device, "--snap", "2000", "-o", "room.pcapng", *ring)
        assert device.run("ping", "own", "--count", "40", "--size", "1400", "--interval", "0.01").returncode == 0
        trace.send_signal(signal.SIGINT)
        told = result(trace)
        assert told["missed"][0] > 0 if not ring else told["missed"] == [0, 0], told
        numbers = [frame["number"] for frame in told["frames"] if frame["direction"] == "rx"]
        assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
        assert (numbers[0] == 0) == (not ring)
        there = [sum(frame["direction"] == name for frame in told["frames"]) for name in ("rx", "tx")]
        passed = [recorded + missed for recorded, missed in zip(told["recorded"], told["missed"], strict=True)]
        counted = statistics(device.folder / "room.pcapng")
        assert counted == {i: (passed[i], passed[i] - there[i]) for i in range(2)}
        assert counted[0][1] > 0, "frames that are not in the file"
    drops = {name: count for name, count in device.counters().items() if "_drop_" in name and count != before[name]}
    assert not drops


def test_what_cannot_be_done_is_said(device: Wire) -> None:
    trace = begin(device, "--seconds", "3")
    busy = device.run("trace", "own", "--seconds", "1")
    assert busy.returncode == 4 and "records frames already" in busy.stderr
    result(trace)
    for arguments, code, message in (
        (("own", "--snap", "20000"), 2, "20000"),
        (("own", "--trigger", "match"), 2, "nothing to match"),
        (("own", "--qpn", "0x1000000"), 2, "24 bits"),
        (("own", "--ethertype", "arp", "--roce"), 2, "EtherType"),
        (("own", "--qpn", "2", "--direction", "tx"), 2, "--peer-qpn"),
        (("peer",), 4, "nacelle capture --device peer"),
        (("none",), 3, "none"),
    ):
        told = device.run("trace", *arguments)
        assert told.returncode == code and message in told.stderr, told.stderr
    assert records(device) == 0


@pytest.mark.skipif(os.geteuid() != 0 or not Path("/dev/net/tun").exists(), reason="needs root and /dev/net/tun")
@pytest.mark.xdist_group("ipbus")
def test_frames_are_not_for_strangers(wire: Wire, namespace: list[str]) -> None:
    """Over the network nobody starts a trace or reads one without the token: frames have the data and keys of callers."""
    managed = Managed(wire, namespace, "rtl")
    for token in ({}, {"NACELLE_TOKEN": 8 * "0123"}):
        refused = managed.command("trace", ADDRESS, "--seconds", "1", environment=token)
        assert refused.returncode == 4, refused.stderr
    for address in range(TRACE, TRACE + 0x1000, 4):
        if address > TRACE + 8 and (address < TRACE + 0x80 or address % 0x100 == 0):
            assert managed.config("get", ADDRESS, f"{address:#x}").returncode == 4, hex(address)
            assert managed.config("set", ADDRESS, f"{address:#x}", "1").returncode == 4, hex(address)
    assert wire.control("managed", "registers", accesses=[{"read": {"address": STATE}}])[0] & 3 == 0
    token = "".join(f"{word:08x}" for word in TOKEN)
    good = managed.command("--json", "trace", ADDRESS, "--frames", "4", environment={"NACELLE_TOKEN": token})
    assert good.returncode == 0, good.stderr
    told = json.loads(good.stdout)
    assert len(told["frames"]) in (4, 5)
