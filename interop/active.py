# SPDX-License-Identifier: Apache-2.0
"""Devices that open connections themselves, to listeners of Linux: `nacelle connect` with `nacelle_verbs_server` in a guest."""

from __future__ import annotations

import ipaddress
import json
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass

from checks import PORT, Device, heading, percent
from guest import Guest
from outcome import Outcome
from wire import Wire

TABLE = "Devices call Linux"
ABOUT = "`nacelle connect` makes the device the active side: it opens the connection, sends, and takes what comes back."
CLOSED_PORT = 9  # no application listens on it
MESSAGE = "The quick brown fox jumps over the lazy dog"


@dataclass(frozen=True)
class Case:
    """What the device does, and how it must end."""

    row: str
    server: str | None
    """Options of nacelle_verbs_server; None: it does not run."""
    arguments: tuple[str, ...]
    statuses: tuple[int, ...]
    """The exit status of `nacelle connect` (docs/how-to/command-line.md) is one of these."""
    peer_sees: str = ""
    """What the server must write."""
    nowhere: bool = False
    """Not to the guest, but to an address that no host has."""
    port: int = PORT


CASES = [
    Case("SEND, and its echo; the device closes", "-e", ("--send", MESSAGE), (0,), "DISCONNECTED"),
    Case("ten messages of 2048 bytes", "-e", ("--send", "x" * 2048) * 10, (0,), "DISCONNECTED"),
    Case("private data with the request", "-e", ("--private", "good day", "--send", MESSAGE), (0,), "DISCONNECTED"),
    Case("the receive comes late: RNR NAKs", "-e -n 500", ("--send", MESSAGE), (0,), "DISCONNECTED"),
    Case("WRITE with an invalid key", "-e", ("--write", "data", "--to", "4096", "--rkey", "4660"), (6,)),
    # Whether its echo leaves before it closes is a matter of chance.
    Case("Linux closes", "-e -d 1", ("--send", MESSAGE, "--stay"), (0, 3), "disconnecting"),
    Case("Linux rejects", "-r", ("--send", MESSAGE), (4,), "rejected"),
    Case("a port without a listener", None, (), (4,), port=CLOSED_PORT),
    Case("an address that no host has", None, (), (3,), nowhere=True),
]


def verdict(case: Case, result: subprocess.CompletedProcess[str]) -> str:
    """What is wrong with how the command ended; empty if nothing is."""
    if result.returncode not in case.statuses:
        last = (result.stderr.strip().splitlines() or ["(said nothing)"])[-1]
        return f"status {result.returncode}: {last}"
    if result.returncode == 0:
        sent = [text for option, text in zip(case.arguments, case.arguments[1:], strict=False) if option == "--send"]
        told = json.loads(result.stdout)
        if case.peer_sees == "disconnecting" and told["closed_by"] != "peer":
            return "Linux did not close it"
        received = [message["text"] for message in told["received"]]
        if received != sent:
            return f"other messages came back: {received}"
    return ""


def active(wire: Wire, guest: Guest, kind: Device, loss: float) -> Iterator[Outcome]:
    """A device opens connections to a guest."""
    column = f"{kind.name}, {heading(guest, loss)}"
    arguments = [*kind.arguments, "--loss", f"{loss:g}", "--seed", "11"]
    with wire.device(kind.name, f"{kind.ip}/16", *arguments, capture=f"active-{kind.name}-mtu{guest.mtu}-loss{loss:g}"):
        yield from calls(wire, guest, kind, guest.ip, column, loss)


def calls(wire: Wire, guest: Guest, kind: Device, address: str, column: str, loss: float, option: str = "") -> Iterator[Outcome]:
    """Every case, by a device that runs, to a guest at this address; `option` is one of nacelle_verbs_server."""
    (wire.folder / "data").write_bytes(bytes(5000))
    for case in CASES:
        job = None if case.server is None else guest.start(f"nacelle_verbs_server {option} {case.server} {PORT}")
        try:
            if job:
                job.wait_for("listening")
            words = [str(wire.folder / "data") if word == "data" else word for word in case.arguments]
            to = nowhere(address) if case.nowhere else address
            result = wire.run("--json", "connect", kind.name, to, str(case.port), *words, timeout=120)
            problem = verdict(case, result)
            if job and case.peer_sees and not problem:
                job.wait_for(case.peer_sees)
        finally:
            if job:
                job.stop()
        left = wire.run("--json", "qp", "list", kind.name).stdout
        if not problem and json.loads(left or "[]"):
            problem = f"{percent(loss)}: a queue pair is left: {left}"
        yield Outcome(TABLE, case.row, column, not problem, problem)


def nowhere(address: str) -> str:
    """An address of the same network that no host has."""
    ip = ipaddress.ip_address(address)
    return str(type(ip)(int(ip) ^ 0x0808))
