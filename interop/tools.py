# SPDX-License-Identifier: Apache-2.0
"""Linux' own programs in a guest against the project's side of them, the program nacelle-interop."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from guest import Guest, Result
from outcome import Outcome
from wire import Wire, WireError

TABLE = "Linux' own programs"
ABOUT = (
    "`nacelle-interop` is the other side of each program and checks what it receives. "
    "Where Linux is the client, the client runs in the guest."
)
PORT = 12345
IP = "10.77.0.9"
TIMEOUT = 60
READY_TIMEOUT = 20


@dataclass(frozen=True)
class Program:
    """A program of Linux and the other side of it; `{peer}` stands for the other side's address."""

    row: str
    server: str | None
    """In the guest; None if Linux is only tested as the client."""
    client: str | None
    """In the guest; None if Nacelle is only tested as the client."""
    host_server: str = ""
    host_client: str = ""
    ready: str = ""
    """What the guest's server writes when it listens; empty if nacelle-interop retries until then, and both end by themselves."""
    loss: bool = True
    """Whether it is tried with loss too."""
    ip: str = IP
    """Of the project's side: another one for a program with another Ethernet address, as Linux remembers whose an address is."""


def symmetric(row: str, guest_server: str, guest_client: str, host: str) -> Program:
    """A program whose other side takes the peer as its first argument when it is the client."""
    name, *options = host.split()
    if name == "perftest":
        name, *options = f"{name} {options[0]}", *options[1:]
    rest = " ".join(options)
    return Program(row, guest_server, guest_client, f"{name} {rest}", f"{name} {{peer}} {rest}")


def rping(count: int, size: int) -> Program:
    """Pings by SEND, READ and WRITE."""
    own = f"-C {count} -S {size}"
    return symmetric(f"rping {own} -V", f"rping -s -V {own}", f"rping -c -V -a {{peer}} {own}", f"rping {own}")


def ucmatose(count: int, size: int) -> Program:
    """Messages both ways."""
    own = f"-C {count} -S {size}"
    return symmetric(f"ucmatose {own}", f"ucmatose {own}", f"ucmatose -s {{peer}} {own}", f"ucmatose {own}")


def perftest(name: str, count: int, size: int) -> Program:
    """Bandwidth or latency of one operation."""
    own = f"-n {count}" + ("" if "atomic" in name else f" -s {size}")
    return symmetric(f"{name} -R {own}", f"{name} -R -F {own}", f"{name} -R -F {own} {{peer}}", f"perftest {name} {own}")


def pingpong(count: int, size: int) -> Program:
    """SENDs and their echo, on queue pairs connected without connection management."""
    own = f"-n {count} -s {size}"
    return symmetric(
        f"ibv_rc_pingpong {own}", f"ibv_rc_pingpong -g 1 {own}", f"ibv_rc_pingpong -g 1 {own} {{peer}}", f"pingpong {own}"
    )


CONNECT = f"nacelle_verbs_client -t 20000 {{peer}} {PORT} connect"
SERVER, LISTENS = "nacelle_verbs_server", "listening"
MANNERS = [
    Program("connect, Linux disconnects", None, CONNECT, f"hang-up -p {PORT} -C 3 --wait"),
    Program("connect, Nacelle disconnects", None, CONNECT, f"hang-up -p {PORT} -C 3"),
    Program("connect, the answer comes late (MRA)", None, CONNECT, f"hang-up -p {PORT} -C 3 --wait --late 1.5"),
    Program("rejected by the application", None, f"! {CONNECT}", f"reject -p {PORT}"),
    Program("rejected by the application", f"{SERVER} -r {PORT}", None, "", f"refused {{peer}} -p {PORT} --reason 28", LISTENS),
    Program("connect, Nacelle disconnects", f"{SERVER} {PORT}", None, "", f"connect {{peer}} -p {PORT} -C 3", LISTENS),
    Program("no listener", f"{SERVER} {PORT}", None, "", "refused {peer} -p 4444", LISTENS),
]  # fmt: skip
TRANSFERS = [
    Program(
        "windows of a host, written and read", None, f"nacelle_window_client {{peer}} {PORT}", "windows", loss=False, ip="10.77.0.8"
    ),
    Program(
        "memory of the peer, written and read", f"{SERVER} {PORT}", None, "", f"memory {{peer}} -p {PORT}", LISTENS, ip="10.77.0.7"
    ),
]
PROGRAMS = [
    rping(10, 100), rping(4, 65535), ucmatose(10, 100), ucmatose(10, 9000),
    *(perftest(f"ib_{name}_bw", 50, 65536) for name in ("write", "read", "send")),
    *(perftest(f"ib_{name}_lat", 50, 64) for name in ("write", "read", "send")),
    perftest("ib_atomic_bw", 50, 8), perftest("ib_atomic_lat", 50, 8), pingpong(100, 4096), *MANNERS, *TRANSFERS,
]  # fmt: skip
QUICK = [
    rping(10, 100), ucmatose(10, 100), perftest("ib_read_bw", 20, 8192), perftest("ib_atomic_bw", 20, 8), *MANNERS[:1], *TRANSFERS,
]  # fmt: skip


def reasons(guest: Result, host_status: int, host_output: str) -> str:
    """What went wrong, on which side; empty if nothing did."""
    found = []
    if not guest.ok:
        found.append(f"Linux: status {guest.status}, {last_line(guest.output)}")
    if host_status != 0:
        found.append(f"Nacelle: status {host_status}, {last_line(host_output)}")
    return "; ".join(found)


def last_line(text: str) -> str:
    """The last line that is not empty."""
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "said nothing")


def options(guest: Guest, loss: float, program: Program, name: str = "tool") -> list[str]:
    """Options of nacelle-interop for a run beside a guest."""
    return [
        "--ip",
        f"{program.ip}/16",
        "--name",
        name,
        "--mtu",
        str(guest.mtu),
        "--loss",
        f"{loss:g}",
        "--seed",
        "11",
        "--timeout",
        str(TIMEOUT),
    ]


def linux_asks(wire: Wire, guest: Guest, loss: float, program: Program) -> str:
    """Runs the guest's client against the project's server. Returns what went wrong."""
    arguments = [*program.host_server.split(), *options(guest, loss, program)]
    with wire.program("nacelle-interop", "tool", *arguments) as server:
        end = time.monotonic() + READY_TIMEOUT
        while not (wire.folder / "tool.sock").exists():
            if server.poll() is not None or time.monotonic() > end:
                raise WireError(f"nacelle-interop does not run:\n{wire.said('tool')}")
            time.sleep(0.02)
        result = guest.run(str(program.client).format(peer=program.ip), timeout=TIMEOUT)
        try:
            status = server.wait(10 if result.ok else 1)
        except subprocess.TimeoutExpired:
            status = 124
    return reasons(result, status, wire.said("tool"))


def nacelle_asks(wire: Wire, guest: Guest, loss: float, program: Program) -> str:
    """Runs the project's client against the guest's server. Returns what went wrong."""
    job = guest.start(str(program.server))
    if program.ready:
        job.wait_for(program.ready)
    arguments = [*program.host_client.format(peer=guest.ip).split(), *options(guest, loss, program)]
    host = wire.run(*arguments, program="nacelle-interop", timeout=TIMEOUT + 10)
    if program.ready:
        job.stop()
        return reasons(Result(job.command, 0, ""), host.returncode, host.stderr)
    return reasons(job.wait(10), host.returncode, host.stderr)


def column(wire: Wire, guest: Guest, loss: float, programs: Sequence[Program], heading: str) -> Iterator[Outcome]:
    """Every program in both directions, one column for each."""
    for program in programs:
        if loss and not program.loss:
            continue
        if program.client:
            detail = linux_asks(wire, guest, loss, program)
            yield Outcome(TABLE, program.row, f"Linux is the client, {heading}", not detail, detail)
        if program.server:
            detail = nacelle_asks(wire, guest, loss, program)
            yield Outcome(TABLE, program.row, f"Nacelle is the client, {heading}", not detail, detail)
