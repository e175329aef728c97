# SPDX-License-Identifier: Apache-2.0
"""NAAICE's own programs, unmodified: its server in a guest called by Nacelle, and its clients against devices and that server.

The folder that NACELLE_NAAICE_SOURCES names has their sources; without it these steps are left out.
"""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path

import naaice_upstream as upstream
from checks import RTL, SOFT, heading, percent, said
from guest import Guest, Result
from image import BUILD, ROOT
from outcome import Outcome
from wire import Wire, WireError

TABLE = "NAAICE's own programs"
ABOUT = (
    "From its sources, unmodified. `naaice_server` runs in a guest and is called by `nacelle run function` and by NAAICE's client"
    " on top of `libnacelle`; both of its clients, on top of NAAICE's own library, run in a guest and call the devices."
    " A row of sizes or numbers of regions is one call for each, whose every byte is compared. Each client makes 100 calls, or one."
)
# The most that a lost frame costs: Linux repeats CM messages after 4 s.
TIMEOUT = 240
MIB = 1 << 20
EVERY_SIZE = sorted({size for power in range(21) for size in (2**power - 1, 2**power, 2**power + 1) if 0 < size <= MIB})
SIZES = {0: EVERY_SIZE, 5: [1, 1000, 4097, 65536, MIB]}
REGIONS = {0: range(1, 32), 5: (1, 2, 7, 16, 31)}
INCREMENT = "1"
# What NAAICE's middleware client says of its four regions after a hundred calls that add 1 to all that come back.
CLIENT_SIZES = ((64, 128, 256, 512), (1, 10_000, 4096, 65_537))
CLIENT_CALLS, CLIENT_FINDS = 100, [100, 101, 2, 103]


def missing() -> str:
    """Why these steps cannot run; empty if they can."""
    return "" if upstream.sources() else f"{upstream.ENVIRONMENT} names no folder with NAAICE's sources"


@contextmanager
def server(guest: Guest) -> Iterator[str]:
    """NAAICE's server in a guest, until the end of the block. Gives its address."""
    job = guest.start(upstream.SERVER)
    try:
        # It says nothing; it is there when its port is.
        end = time.monotonic() + 20
        while "12345" not in guest.run("rdma resource show cm_id").output:
            if time.monotonic() > end:
                raise WireError(f"{upstream.SERVER} does not listen")
            time.sleep(0.1)
        yield guest.ip
    finally:
        job.stop()


def increment(wire: Wire, guest: Guest, sizes: Sequence[int], loss: float) -> str:
    """Calls the server on regions of these sizes, all of which come back. Returns what went wrong."""
    arguments = ["run", "function", INCREMENT, "--device", guest.ip, "--loss", f"{loss:g}", "--seed", "7"]
    given = [hashlib.shake_128(f"{index} {size}".encode()).digest(size) for index, size in enumerate(sizes)]
    results = []
    for index, data in enumerate(given):
        region, result = wire.folder / f"in{index}.bin", wire.folder / f"out{index}.bin"
        region.write_bytes(data)
        result.unlink(missing_ok=True)
        results.append(result)
        arguments += ["--inout", str(region), "-o", str(result)]
    ended = wire.run(*arguments, timeout=TIMEOUT)
    if ended.returncode != 0:
        return said(Result("", ended.returncode, ended.stderr))
    expected = [bytes((byte + 1) & 255 for byte in data) for data in given]
    right = all(result.exists() and result.read_bytes() == wanted for result, wanted in zip(results, expected, strict=True))
    return "" if right else "the result is wrong"


def each(wire: Wire, guest: Guest, cases: dict[int, Sequence[int]], loss: float) -> str:
    """Makes one call for each case: its name, and the sizes of its regions. Returns which failed, and why."""
    problems = {name: increment(wire, guest, sizes, loss) for name, sizes in cases.items()}
    return "; ".join(f"{name}: {problem}" for name, problem in problems.items() if problem)


def calls(wire: Wire, guest: Guest, loss: float) -> Iterator[Outcome]:
    """Nacelle calls NAAICE's server."""
    column = f"the server, {heading(guest, loss)}"
    sizes, counts = SIZES[int(loss)], REGIONS[int(loss)]
    with server(guest):
        problem = each(wire, guest, {size: [size] for size in sizes}, loss)
        yield Outcome(TABLE, f"nacelle run function, {len(sizes)} sizes from 1 byte to 1 MiB", column, not problem, problem)
        problem = each(wire, guest, {count: [1 + 331 * index for index in range(count)] for count in counts}, loss)
        row = f"nacelle run function, {'each number' if not loss else f'{len(counts)} numbers'} of regions from 1 to 31"
        yield Outcome(TABLE, row, column, not problem, problem)


def client_of_the_library() -> Path:
    """NAAICE's middleware client on top of the installed libnacelle."""
    sys.path.insert(0, str(ROOT / "tools"))
    import install_c

    tree, headers, program = BUILD / "naaice" / "tree", BUILD / "naaice", BUILD / "naaice" / "client"
    install_c.install(tree)
    upstream.write_headers(headers)
    folder = upstream.sources()
    assert folder, missing()
    source = folder / upstream.PROGRAMS[upstream.MIDDLEWARE_CLIENT][0]
    command = ["gcc", *upstream.CFLAGS.split(), f"-I{tree}/include/nacelle-naaice", f"-I{headers}", str(source), "-o", str(program)]
    result = subprocess.run([*command, f"-L{tree}/lib", "-lnacelle", f"-Wl,-rpath,{tree}/lib"], capture_output=True, text=True)
    if result.returncode != 0:
        raise WireError(f"NAAICE's client does not compile with libnacelle:\n{result.stderr}")
    return program


def finds(result: Result, sizes: Sequence[int]) -> str:
    """What is wrong with what NAAICE's middleware client says; empty if nothing is."""
    if not result.ok:
        return said(result)
    # The server's answer without an error; upstream's library counts the bytes of the last output, libnacelle those of all.
    answers = re.findall(r"Bytes received: (\d+), RPC Return code: 0$", result.output, re.MULTILINE)
    last, total = sizes[3], sizes[0] + sizes[1] + sizes[3]
    if len(answers) != CLIENT_CALLS or {int(answer) for answer in answers} - {last, total}:
        return f"{len(answers)} of {CLIENT_CALLS} calls were answered right"
    first = [int(found) for found in re.findall(r"first element: (\d+)", result.output)]
    return "" if first == CLIENT_FINDS else f"the regions begin with {first}"


def library_client(wire: Wire, program: Path, address: str, sizes: Sequence[int]) -> str:
    """NAAICE's client on top of libnacelle calls what is at an address. Returns what went wrong."""
    environment = {**wire.environment, "NAA_SPEC": f"{address}::{INCREMENT}:4"}
    command = [str(program), "4", " ".join(map(str, sizes))]
    try:
        ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=TIMEOUT)
    except subprocess.TimeoutExpired:
        return f"did not end within {TIMEOUT} s"
    return finds(Result("", ended.returncode, ended.stdout + ended.stderr), sizes)


def guest_client(guest: Guest, address: str, sizes: Sequence[int]) -> str:
    """NAAICE's middleware client in a guest calls what is at an address. Returns what went wrong."""
    text = " ".join(map(str, sizes))
    command = f"NAA_SPEC={address}::{INCREMENT}:4 {upstream.MIDDLEWARE_CLIENT} 4 '{text}'"
    return finds(guest.run(command, timeout=TIMEOUT), sizes)


def low_level_client(guest: Guest, address: str) -> str:
    """NAAICE's low-level client in a guest calls what is at an address. Returns what went wrong."""
    result = guest.run(f"{upstream.CLIENT} {address} 3 '64 128 256'", timeout=60)
    return "" if result.ok else said(result)


def clients(wire: Wire, guest: Guest, other: Guest) -> Iterator[Outcome]:
    """NAAICE's clients against both devices, and the one on top of libnacelle against NAAICE's server, where it must find the same.

    NAAICE's own library is not held against its own server: on a busy machine they lose calls without any part of Nacelle's.
    """
    program = client_of_the_library()
    targets = [
        *((kind.name, kind.ip, wire.device(kind.name, f"{kind.ip}/16", *kind.arguments, capture=f"naaice-{kind.name}"))
          for kind in (SOFT, RTL)),
        ("the server", other.ip, nullcontext()),
    ]  # fmt: skip
    for name, address, running in targets:
        with running, server(other) if name == "the server" else nullcontext():
            column = f"{name}, MTU {other.mtu if name == 'the server' else guest.mtu}, {percent(0)}"
            for sizes in CLIENT_SIZES:
                regions = ", ".join(map(str, sizes))
                problem = library_client(wire, program, address, sizes)
                yield Outcome(TABLE, f"naaice_client_ap2 on libnacelle, regions of {regions} bytes", column, not problem, problem)
                if name != "the server":
                    problem = guest_client(guest, address, sizes)
                    yield Outcome(TABLE, f"naaice_client_ap2, regions of {regions} bytes", column, not problem, problem)
            if name != "the server":
                problem = low_level_client(guest, address)
                yield Outcome(TABLE, "naaice_client, 3 regions", column, not problem, problem)
