# SPDX-License-Identifier: Apache-2.0
"""Management of a device from the host, of both kinds: what it holds, its reset, and connections that it opens itself."""

from __future__ import annotations

import json
import socket
import subprocess
import time
from typing import Any

import pytest
from conftest import ADDRESS, Wire

KINDS = {"rtl": (), "soft": ("--soft",)}
PEER = "10.77.0.9"
PORT = "12345"
# A device's service answers what is no region request with an MRSP error.
SERVICE_SAYS = "00010000"


@pytest.fixture(params=list(KINDS))
def device(request: pytest.FixtureRequest, wire: Wire) -> str:
    """A device of each kind, and a software device beside it to connect to. Its name."""
    wire.device("--name", "own", *KINDS[request.param])
    wire.start("device", "--soft", "--name", "peer", "--ip", f"{PEER}/16")
    until(lambda: any(entry["name"] == "peer" and entry["alive"] for entry in wire.json("ls")))
    return "own"


def until(done: Any) -> None:
    """Waits, for a while."""
    for _ in range(300):
        if done():
            return
        time.sleep(0.1)
    pytest.fail("it never came")


def failure(result: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    """The error that a command reported as JSON."""
    return json.loads(result.stderr.splitlines()[-1])["error"]


def stay(wire: Wire) -> subprocess.Popen[str]:
    """A connection of the device that stays, and is seen at both ends."""
    child = wire.start("--json", "connect", "own", PEER, PORT, "--stay")
    until(lambda: [pair["state"] for pair in wire.json("qp", "list", "own") + wire.json("qp", "list", "peer")] == ["RTS", "RTS"])
    return child


def result_of(child: subprocess.Popen[str]) -> dict[str, Any]:
    """What a command in the background printed, behind what it said to people."""
    text = child.communicate(timeout=60)[0]
    assert child.returncode == 0, text
    start, end = text.index("{"), text.rindex("}")
    return json.loads("".join(line for line in text[start : end + 1].splitlines() if line.startswith(("{", "}", " "))))


def test_a_device_sends_and_receives_on_its_own_connection(wire: Wire, device: str) -> None:
    regions = wire.json("region", "list", "peer")
    result = wire.json("connect", device, PEER, PORT, "--private", "good day", "--send", "hello", "--send", "x" * 500)
    assert [message["bytes"] for message in result["received"]] == [SERVICE_SAYS] * 2
    assert result["closed_by"] == "device"
    until(lambda: not wire.json("qp", "list", device) and not wire.json("qp", "list", "peer"))
    assert wire.json("region", "list", "peer") == regions, "that of its description alone"


@pytest.mark.parametrize("kind", list(KINDS))
def test_its_own_connections_use_no_memory_of_others(wire: Wire, kind: str) -> None:
    for name, address, arguments in [("own", ADDRESS, KINDS[kind]), ("peer", PEER, ("--soft",))]:
        wire.start("device", "--name", name, "--ip", f"{address}/16", *arguments)
        until(lambda name=name: wire.run("stats", name).returncode == 0)
    # Before any caller, so that it has the first queue pair: its memory is next to the description of the device.
    stay = wire.start("--json", "connect", "own", PEER, PORT, "--send", "a" * 1000, "--stay")
    until(lambda: [pair["state"] for pair in wire.json("qp", "list", "own")] == ["RTS"])

    def functions() -> list[str]:
        """What the device tells callers that it has, over the network."""
        [description] = [entry["description"] for entry in wire.json("ls") if entry["name"] == "own"]
        assert description, "callers can read it"
        return [function["name"] for function in description["functions"]]

    before = functions()
    assert "increment" in before
    data = bytes(range(256)) * 2000
    (wire.folder / "in").write_bytes(data)
    call = wire.start("run", "increment", "--device", ADDRESS, "in", "-o", "out", "--delay", "20")
    while call.poll() is None:
        result = wire.json("connect", "own", PEER, PORT, *[word for letter in "bcd" for word in ("--send", letter * 1000)])
        assert [message["bytes"] for message in result["received"]] == [SERVICE_SAYS] * 3
    assert call.returncode == 0, call.communicate()[0]
    assert (wire.folder / "out").read_bytes() == bytes((byte + 1) % 256 for byte in data)
    assert functions() == before
    wire.json("qp", "reset", "own", "--all")
    assert [message["bytes"] for message in result_of(stay)["received"]] == [SERVICE_SAYS]


def test_queue_pairs_are_listed_and_reset(wire: Wire, device: str) -> None:
    child = stay(wire)
    [own], [peer] = wire.json("qp", "list", device), wire.json("qp", "list", "peer")
    assert (own["peer"], own["peer_qpn"], own["owner"], own["unmanaged"]) == (PEER, peer["qpn"], "management", False)
    assert (peer["peer"], peer["peer_qpn"], peer["owner"], peer["unmanaged"]) == (ADDRESS, own["qpn"], "service", False)
    assert own["next_psn"] == own["oldest_psn"], "nothing is under way"
    shown = wire.run("qp", "list", device).stdout.splitlines()
    assert shown[0].split()[:3] == ["QP", "STATE", "PEER"] and shown[1].split()[:3] == [str(own["qpn"]), "RTS", PEER]
    assert wire.json("qp", "reset", device, str(own["qpn"])) == {"closing": True}
    assert result_of(child)["closed_by"] == "peer", "it was not the command that closed it"
    until(lambda: not wire.json("qp", "list", "peer"))

    child = stay(wire)
    assert wire.json("qp", "reset", device, "--all") == {"closing": True}
    result_of(child)
    until(lambda: not wire.json("qp", "list", device) and not wire.json("qp", "list", "peer"))
    assert wire.json("qp", "reset", device, "--all") == {"closing": False}
    # The device goes on.
    wire.json("connect", device, PEER, PORT, "--send", "again")


def test_an_end_hides_no_beginning(wire: Wire, device: str) -> None:
    """A first poll after the end of the connection reports that it was established."""
    with socket.socket(socket.AF_UNIX) as control:
        control.settimeout(60)
        control.connect(str(wire.folder / "wire" / f"{device}.ctl"))
        lines = control.makefile("rw")

        def ask(command: str, **fields: Any) -> Any:
            lines.write(json.dumps({"command": command, **fields}) + "\n")
            lines.flush()
            return json.loads(lines.readline())["ok"]

        number = ask("connect", peer=PEER, port=int(PORT))
        until(lambda: [pair["state"] for pair in wire.json("qp", "list", "peer")] == ["RTS"])
        [pair] = wire.json("qp", "list", device)
        wire.json("qp", "reset", device, "--all")
        until(lambda: not wire.json("qp", "list", device))
        progress = ask("poll", connection=number)
        assert (progress["state"], progress["opened"]["qpn"]) == ("closed", pair["qpn"])


def test_both_ends_of_a_connection_count_the_same(wire: Wire, device: str) -> None:
    messages = ["hello", "x" * 700, "y" * 500]
    sends = [word for message in messages for word in ("--send", message)]
    child = wire.start("--json", "connect", "own", PEER, PORT, "--stay", *sends)

    def counted(name: str) -> dict[str, int]:
        found = wire.json("qp", "counters", name)
        return found[0]["counters"] if found else {}

    def agree() -> bool:
        # Packets may still be in flight, and an idle connection gets a keep-alive of zero bytes.
        one, other = counted("own"), counted("peer")
        return one.get("rcvd_bytes") == len(messages) * len(bytes.fromhex(SERVICE_SAYS)) and all(
            sender[f"sent_{what}"] == receiver[f"rcvd_{what}"] > 0
            for sender, receiver in ((one, other), (other, one))
            for what in ("pkts", "bytes", "responses")
        )

    until(agree)
    own, peer = counted("own"), counted("peer")
    assert own["sent_pkts"] >= 3 and peer["sent_pkts"] >= 3
    assert own["sent_bytes"] == sum(map(len, messages))
    for name in ("packet_retransmit", "local_ack_timeout_err", "packet_seq_err", "sent_nak", "send_rnr_err", "rp_cnp_handled"):
        assert own[name] == peer[name] == 0

    [pair] = wire.json("qp", "list", device)
    [of_one] = wire.json("qp", "counters", device, str(pair["qpn"]))
    assert of_one["qpn"] == pair["qpn"] and of_one["counters"]["sent_bytes"] == own["sent_bytes"]
    head, *rows = (line.split() for line in wire.run("qp", "counters", device, str(pair["qpn"])).stdout.splitlines())
    assert head == ["QP", "COUNTER", "VALUE"]
    assert [row[1] for row in rows[:3]] == ["sent_pkts", "sent_bytes", "sent_responses"], "in the order of the book"
    assert rows[1] == [str(pair["qpn"]), "sent_bytes", str(own["sent_bytes"])]
    assert "0" not in [row[2] for row in rows], "what is 0 is left out"
    wire.json("qp", "reset", device, "--all")
    result_of(child)


def test_the_peer_may_close(wire: Wire, device: str) -> None:
    child = stay(wire)
    wire.json("qp", "reset", "peer", "--all")
    assert result_of(child)["closed_by"] == "peer"
    until(lambda: not wire.json("qp", "list", device))


def test_a_connection_that_cannot_be_is_told(wire: Wire, device: str) -> None:
    refused = wire.run("--json", "connect", device, PEER, "9")
    assert refused.returncode == 4 and "refused" in failure(refused)["message"]
    assert wire.json("qp", "list", device) == []


def test_an_address_that_nobody_has_is_told(wire: Wire, device: str) -> None:
    unreachable = wire.run("--json", "connect", device, "10.77.200.7", PORT, "--timeout", "20")
    assert unreachable.returncode == 3 and failure(unreachable)["code"] == "unreachable"
    assert wire.json("qp", "list", device) == []


def test_a_write_that_the_peer_does_not_allow_is_told(wire: Wire, device: str) -> None:
    (wire.folder / "data").write_bytes(bytes(5000))
    result = wire.run("--json", "connect", device, PEER, PORT, "--write", "data", "--to", "0x1000", "--rkey", "0x1234")
    assert result.returncode == 6 and "access" in failure(result)["message"]
    until(lambda: not wire.json("qp", "list", device) and not wire.json("qp", "list", "peer"))


def test_a_read_that_the_peer_does_not_allow_is_told(wire: Wire, device: str) -> None:
    result = wire.run("--json", "connect", device, PEER, PORT, "--read", "5000", "--from", "0x1000", "--rkey", "0x1234")
    assert result.returncode == 6 and "access" in failure(result)["message"]
    until(lambda: not wire.json("qp", "list", device) and not wire.json("qp", "list", "peer"))


def test_a_device_reads_on_its_own_connection(wire: Wire, device: str) -> None:
    with socket.socket(socket.AF_UNIX) as control:
        control.settimeout(60)
        control.connect(str(wire.folder / "wire" / f"{device}.ctl"))
        lines = control.makefile("rw")

        def ask(command: str, **fields: Any) -> dict[str, Any]:
            lines.write(json.dumps({"command": command, **fields}) + "\n")
            lines.flush()
            return json.loads(lines.readline())

        for mtu in (0, 1000, 8192):
            assert f"{mtu} bytes are no path MTU" in ask("connect", peer=PEER, port=int(PORT), mtu=mtu)["error"]
        number = ask("connect", peer=PEER, port=int(PORT), mtu=512)["ok"]
        until(lambda: ask("poll", connection=number)["ok"]["state"] == "established")
        # A request of zero bytes needs no key (IBTA 9.7.4.1.4).
        nothing = {"verb": "read", "address": 0, "rkey": 0, "length": 0}
        too_much = ask("post", connection=number, work={**nothing, "length": 2049})
        assert "at most 2048 bytes, not 2049" in too_much["error"]
        for _ in range(2):
            assert ask("post", connection=number, work=nothing) == {"ok": {}}
            done: list[dict[str, Any]] = []
            until(lambda done=done: done.extend(ask("poll", connection=number)["ok"]["completions"]) or done)
            assert done == [{"receive": False, "ok": True, "status": "success", "data": "", "immediate": None}]
        assert ask("close", connection=number) == {"ok": {}}
    until(lambda: not wire.json("qp", "list", device) and not wire.json("qp", "list", "peer"))


def test_a_callers_queue_pair_and_regions_are_listed(wire: Wire, device: str) -> None:
    (wire.folder / "in").write_bytes(bytes(3_000_000))
    child = wire.start("run", "increment", "--device", ADDRESS, "in", "-o", "out", "--delay", "50")
    until(lambda: any(region["length"] == 3_000_000 for region in wire.json("region", "list", device)))
    [pair], regions = wire.json("qp", "list", device), wire.json("region", "list", device)
    assert pair["owner"] == "service" and pair["state"] == "RTS"
    [region] = [region for region in regions if region["length"] == 3_000_000]
    assert region["qpn"] == pair["qpn"] and "write" in region["access"]
    wire.json("qp", "reset", device, "--all")
    assert child.wait(60) == 3, "the caller gets an error when the device is killed"


def test_registers_by_name(wire: Wire) -> None:
    """Blocks are found by their chain, registers and fields by the names of the reference."""
    wire.device("--name", "own")
    blocks = wire.json("config", "blocks", "own")
    assert [block["name"] for block in blocks] == [
        "device",
        "management",
        "admission",
        "event_log",
        "trace",
        "histograms",
        "sensors",
        "socket0",
        "socket1",
        "socket2",
        "traffic",
    ]
    assert [(block["type"], block["address"]) for block in blocks[:7]] == [
        ("NACL", 0),
        ("MGMT", 0x1000),
        ("ADMN", 0x2000),
        ("ELOG", 0x3000),
        ("TRAC", 0x4000),
        ("HIST", 0x5000),
        ("SENS", 0x7000),
    ]

    def get(*names: str) -> list[int]:
        """Their values."""
        return [row["value"] for row in wire.json("config", "get", "own", *names)]

    (wire.folder / "in").write_bytes(bytes(1000))
    assert wire.run("run", "increment", "--device", ADDRESS, "in", "-o", "out").returncode == 0
    assert get("socket0.JOBS", "traffic.STATUS", "IP", "ctrl.enable") == [1, 0, 0x0A4D0002, 1]
    wire.json("qp", "list", "own")  # by commands of the management port
    assert get("management.STATUS.finished")[0] > 0
    assert get("management.STATUS.busy", "0x1000") == [0, int.from_bytes(b"MGMT", "big")]
    [row] = wire.json("config", "get", "own", "management.LOST")
    assert row["fields"] == {"events": 0, "refused": 0}

    for name, value in (("KEEPALIVE_MS", "1234"), ("management.argument[3]", "0xabc"), ("traffic.CONTROL.stop", "1")):
        result = wire.run("config", "set", "own", name, value)
        assert result.returncode == (0 if "stop" not in name else 2), result.stderr
    assert wire.run("config", "set", "own", "traffic.CONTROL", "2").returncode == 0, "it can only be written"
    assert get("KEEPALIVE_MS", "management.ARGUMENT[3]") == [1234, 0xABC]
    listed = {row["name"]: row["value"] for row in wire.json("config", "list", "own")}
    assert listed["KEEPALIVE_MS"] == 1234 and listed["packet_rx_frame"] > 0 and listed["socket0.JOBS"] == 1
    assert "RANDOM_SEED" not in listed and "traffic.RKEY" not in listed
    assert {row["name"].partition(".")[0] for row in wire.json("config", "list", "own", "socket1")} == {"socket1"}

    for arguments, said in [
        (("get", "own", "RANDOM_SEED"), "RANDOM_SEED cannot be read"),
        (("set", "own", "QPS", "1"), "QPS cannot be written"),
        (("set", "own", "PREFIX_LEN", "64"), "64 does not fit PREFIX_LEN"),
        (("set", "own", "IP", "1"), "did not take 1 for IP"),
        (("get", "own", "NONE"), "no register NONE"),
        (("get", "own", "socket.JOBS"), "it has device, management, admission, event_log, trace, histograms, sensors, socket0"),
        (("list", "own", "socket9"), "no block socket9"),
        (("get", "own", "0x7fffc"), "0x7fffc"),
        (("set", "own", "KEEPALIVE_MS", "many"), "many"),
    ]:
        result = wire.run("config", *arguments)
        assert result.returncode != 0 and said in result.stderr and "try:" in result.stderr, result.stderr
    assert get("IP") == [0x0A4D0002]


def test_the_software_device_has_those_registers_that_mean_something_there(wire: Wire) -> None:
    wire.device("--soft", "--name", "own", "--memory", "64", "--kernel-time", "1234")
    assert [block["name"] for block in wire.json("config", "blocks", "own")] == ["device", "admission", "event_log", "histograms"]
    names = ("IP", "PREFIX_LEN", "DRAM_BYTES_LO", "KERNEL_TIMEOUT_MS", "RPG_AI_RATE", "DATA_W")
    found = [row["value"] for row in wire.json("config", "get", "own", *names)]
    assert found == [0x0A4D0002, 16, 64 << 20, 1234, 40, 0]
    # What is set is what the device works with.
    assert wire.run("config", "set", "own", "RPG_AI_RATE", "77").returncode == 0
    assert wire.json("config", "get", "own", "RPG_AI_RATE")[0]["value"] == 77
    assert wire.run("config", "set", "own", "MEMORY_PER_CALLER", "4").returncode == 0
    (wire.folder / "big").write_bytes(bytes(100_000))
    call = wire.run("run", "increment", "--device", "own", "big", "-o", "out")
    assert call.returncode == 4, call.stderr
    assert wire.run("config", "set", "own", "MEMORY_PER_CALLER", "0").returncode == 0
    call = wire.run("run", "increment", "--device", "own", "big", "-o", "out")
    assert call.returncode == 0, call.stderr
    for arguments, said in [
        (("get", "own", "MRS"), "no register at 0x0006c that can be read"),
        (("set", "own", "IP", "1"), "no register at 0x00028 that can be written"),
        (("get", "own", "0x1000"), "no register at 0x01000"),
    ]:
        result = wire.run("config", *arguments)
        assert result.returncode != 0 and said in result.stderr, result.stderr
    listed = wire.run("config", "list", "own")
    assert listed.returncode == 0 and "\nKEEPALIVE_MS " in listed.stdout and "service_login " in listed.stdout, listed.stderr
    assert "left out" in listed.stderr and " MRS " in listed.stderr and " MRS " not in listed.stdout


def test_bad_arguments_are_told(wire: Wire, device: str) -> None:
    for arguments, said in [
        (("qp", "reset", device, "99999"), "99999"),
        (("qp", "counters", device, "99999"), "99999"),
        (("qp", "reset", device), "QPN"),
        (("qp", "reset", device, "2", "--all"), "--all"),
        (("connect", device, "nowhere", PORT), "nowhere"),
        (("connect", device, PEER, PORT, "--send", "x" * 2049), "2049"),
        (("connect", device, PEER, PORT, "--write", "data"), "--to"),
        (("connect", device, PEER, PORT, "--write", "none", "--to", "0", "--rkey", "1"), "none"),
        (("connect", device, PEER, PORT, "--read", "8"), "--from"),
        (("connect", device, PEER, PORT, "--read", "8", "--from", "0"), "--rkey"),
        (("connect", device, PEER, PORT, "--read", "8", "--write", "none", "--to", "0", "--from", "0", "--rkey", "1"), "--write"),
        (("connect", device, PEER, PORT, "--rkey", "1"), "--write"),
        (("connect", device, PEER, PORT, "--write", "none", "--to", "0x", "--rkey", "1"), "0x"),
    ]:
        result = wire.run("--json", *arguments)
        assert result.returncode == 2 and said in failure(result)["message"], result.stderr
    mtu = wire.run("--json", "connect", device, PEER, PORT, "--mtu", "1000")
    assert mtu.returncode == 6 and "1000 bytes are no path MTU" in failure(mtu)["message"]
    private = wire.run("--json", "connect", device, PEER, PORT, "--private", "x" * 49)
    assert private.returncode == 6 and "48 bytes" in failure(private)["message"]
    assert wire.json("qp", "counters", device) == []
    for before, after in [(("qp", "list"), ()), (("qp", "counters"), ()), (("region", "list"), ()), (("connect",), (PEER, PORT))]:
        assert wire.run(*before, "nobody", *after).returncode == 3
