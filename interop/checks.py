# SPDX-License-Identifier: Apache-2.0
"""What is checked between Linux and Nacelle: each function runs one column of a table and returns its cells."""

from __future__ import annotations

import fnmatch
import hashlib
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from guest import Guest, Result
from outcome import Outcome
from wire import Wire

import tools

PORT = 12345
# The tables, with the sentence above each.
TABLES = {
    "Linux calls a device": "`nacelle_verbs_client` in the guest, one case a row. The last column is Linux itself, behind"
    " `nacelle_verbs_server` in a second guest: it shows that the cases use nothing unusual.",
    "Programs of the project call Linux": "`nacelle_verbs_server` in the guest takes the place of a device.",
    tools.TABLE: tools.ABOUT,
}
DEVICE_TABLE, CALLER_TABLE, _ = TABLES
# Longest waits for one event, in seconds. A lost CM message alone costs Linux 4 to 6 s.
PATIENCE, PATIENCE_WITH_LOSS = 15, 40
# With loss, Linux sends again after 4.096 us x 2^16 = 0.27 s instead of 2.1 s.
ACK_TIMEOUT_WITH_LOSS = 16
# How nacelle_verbs_server misbehaves, and the exit status of `nacelle run` for that (docs/how-to/command-line.md).
MANNERS = {
    "receives come late": ("-n 500", 0),
    "refused": ("-r", 4),
    "disconnected after the set-up": ("-d 1", 3),
    "regions may not be written": ("-g r", 6),
    "the set-up is answered with its echo": ("-e", 6),
}


@dataclass(frozen=True)
class Device:
    """A kind of device."""

    name: str
    ip: str
    arguments: tuple[str, ...]


SOFT = Device("soft", "10.77.0.2", ("--soft",))
RTL = Device("rtl", "10.77.0.3", ())


# Not tried with loss: when its acknowledgement is lost, Linux' own requester may wait behind a fence for ever. Its tasks share the
# flag of that wait without a lock (linux-rdma list, 2023-06-15, "tighten the screws in the rxe driver").
LINUX_STALLS_WITH_LOSS = ("read-fence",)


def percent(loss: float) -> str:
    """A share of lost frames for people."""
    return f"{loss:g} % loss" if loss else "no loss"


def heading(guest: Guest, loss: float) -> str:
    """Under which circumstances a column is made."""
    return f"MTU {guest.mtu}, {percent(loss)}"


def column_of(name: str, guest: Guest, loss: float) -> str:
    """The heading of a column."""
    return f"{name}, {heading(guest, loss)}"


def case_names(guest: Guest, patterns: Sequence[str]) -> list[str]:
    """The cases of nacelle_verbs_client that match one of the patterns."""
    names = guest.run("nacelle_verbs_client -l").output.split()
    return [name for name in names if any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)]


def verbs(guest: Guest, address: str, column: str, loss: float, patterns: Sequence[str]) -> Iterator[Outcome]:
    """Runs the cases of nacelle_verbs_client against what is at an address."""
    names = [name for name in case_names(guest, patterns) if not loss or name not in LINUX_STALLS_WITH_LOSS]
    patience = PATIENCE_WITH_LOSS if loss else PATIENCE
    options = f"-t {patience * 1000}" + (f" -x -a {ACK_TIMEOUT_WITH_LOSS}" if loss else "")
    command = f"nacelle_verbs_client {options} {address} {PORT} {' '.join(names)}"
    result = guest.run(command, timeout=60 + 2 * patience * len(names))
    found = {name: (word, detail) for name, word, detail in re.findall(r"^case (\S+) (\S+) ?(.*)$", result.output, re.MULTILINE)}
    for name in names:
        word, detail = found.get(name, ("FAIL", f"did not run; the program ended with {result.status}"))
        # The time it took is no reason.
        yield Outcome(DEVICE_TABLE, name, column, word == "ok", re.sub(r" \([0-9.]+ s\)$", "", detail))


def device(wire: Wire, guest: Guest, kind: Device, loss: float, patterns: Sequence[str]) -> Iterator[Outcome]:
    """Linux calls a device."""
    arguments = [*kind.arguments, "--loss", f"{loss:g}", "--seed", "7"]
    capture = f"{kind.name}-mtu{guest.mtu}-loss{loss:g}"
    with wire.device(kind.name, f"{kind.ip}/16", *arguments, capture=capture):
        yield from verbs(guest, kind.ip, column_of(kind.name, guest, loss), loss, patterns)


@contextmanager
def verbs_server(guest: Guest, *options: str) -> Iterator[None]:
    """nacelle_verbs_server, in a guest, until the end of the block."""
    job = guest.start(f"nacelle_verbs_server {' '.join(options)} {PORT}")
    job.wait_for("listening")
    try:
        yield
    finally:
        job.stop()


def linux(client: Guest, server: Guest, patterns: Sequence[str]) -> Iterator[Outcome]:
    """Linux calls Linux."""
    with verbs_server(server):
        yield from verbs(client, server.ip, column_of("Linux", client, 0), 0, patterns)


def said(result: Result) -> str:
    """The last line of a program's output, for people."""
    lines = [line for line in result.output.splitlines() if line.strip()]
    return f"status {result.status}: {lines[-1] if lines else '(said nothing)'}"


def increment(wire: Wire, guest: Guest, loss: float, size: int) -> Outcome:
    """`nacelle run increment` with Linux as the device."""
    data = hashlib.shake_128(str(size).encode()).digest(size)
    given, got = wire.folder / "in.bin", wire.folder / "out.bin"
    given.write_bytes(data)
    got.unlink(missing_ok=True)
    result = wire.run(
        "run", "increment", "--device", guest.ip, "--port", str(PORT), str(given), "-o", str(got),
        "--loss", f"{loss:g}", "--seed", "7", timeout=180,
    )  # fmt: skip
    right = got.exists() and got.read_bytes() == bytes((byte + 1) & 255 for byte in data)
    detail = said(Result("", result.returncode, result.stderr)) if result.returncode else "the result is wrong"
    return Outcome(CALLER_TABLE, f"nacelle run increment, {size} bytes", column_of("Linux", guest, loss), right, detail)


def callers(wire: Wire, guest: Guest, loss: float, sizes: Sequence[int], conformance: bool) -> Iterator[Outcome]:
    """The command line's caller, and the conformance suite (which makes its own faults), call Linux."""
    column = column_of("Linux", guest, loss)
    with verbs_server(guest):
        for size in sizes:
            yield increment(wire, guest, loss, size)
    for row, (option, status) in MANNERS.items():
        with verbs_server(guest, option):
            outcome = increment(wire, guest, loss, 1000)
        passed = outcome.passed if status == 0 else outcome.detail.startswith(f"status {status}:")
        yield Outcome(CALLER_TABLE, f"nacelle run increment, {row}", column, passed, outcome.detail)
    if conformance:
        with verbs_server(guest):
            result = wire.run(guest.ip, "--target", "linux", program="nacelle-conformance", timeout=600)
        broken = re.findall(r"^.*FAIL.*$", result.stdout, re.MULTILINE)
        detail = "; ".join(broken) or said(Result("", result.returncode, result.stderr or result.stdout))
        yield Outcome(CALLER_TABLE, "nacelle-conformance --target linux", column, result.returncode == 0, detail)


def linux_programs(wire: Wire, guest: Guest, loss: float, quick: bool) -> Iterator[Outcome]:
    """Linux' own programs, both ways."""
    yield from tools.column(wire, guest, loss, tools.QUICK if quick else tools.PROGRAMS, heading(guest, loss))
