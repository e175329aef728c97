# SPDX-License-Identifier: Apache-2.0
"""What Nacelle is measured beside: the interface of a peer, and how its two processes are run.

A peer is another program that does comparable work between two processes on this machine, over the loopback interface: never
through a part of Nacelle. One that is not installed says so; everything else is measured all the same.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

ROOT = Path(__file__).resolve().parents[2]
BUILT = ROOT / "build" / "bench"
# How long one run may take, and how long a server may take to start.
SECONDS = 60
START_SECONDS = 15
LISTENS = "0A"  # the state of a socket in /proc/net/tcp


class NotMeasured(Exception):
    """This peer gives no figure, and why."""


@dataclass(frozen=True)
class Peer(ABC):
    """A program to measure Nacelle beside. `run` gives the median round trip in seconds, or a bandwidth in bytes a second."""

    key: str  # in names of figures
    what: str  # of it is measured
    name: ClassVar[str]
    source: ClassVar[str]  # where `make setup-bench` takes it from

    @abstractmethod
    def version(self) -> str:
        """Its version. Raises NotMeasured if it is not installed."""

    @abstractmethod
    def run(self) -> float:
        """One short run. Raises NotMeasured if it does not work."""

    def title(self) -> str:
        """Name, version, source and what is measured."""
        return f"{self.name} {self.version()} ({self.source}): {self.what}"


def program(name: str) -> str:
    """The path of a program."""
    path = shutil.which(name)
    if path is None:
        raise NotMeasured(f"{name} is not installed: make setup-bench")
    return path


def output(command: list[str], environment: dict[str, str] | None = None, processor: int | None = None) -> str:
    """What a program writes to its standard output."""
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            env={**os.environ, **(environment or {})},
            preexec_fn=None if processor is None else on(processor),
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NotMeasured(f"{Path(command[0]).name}: {error}") from error
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines()
        last = said[-1] if said else "it said nothing"
        raise NotMeasured(f"{Path(command[0]).name} failed with status {done.returncode}: {last}")
    return done.stdout


def on(processor: int) -> Callable[[], None]:
    """Keeps the process that is started on one processor, as ours are, if there are two."""

    def keep() -> None:
        with contextlib.suppress(OSError):
            os.sched_setaffinity(0, {processor})

    return keep


def free_port() -> int:
    """A TCP port that no one uses."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def _listens(port: int) -> bool:
    # Without a connection to it: some servers take the first one for the only one.
    lines = (line.split() for table in ("tcp", "tcp6") for line in Path("/proc/net", table).read_text().splitlines()[1:])
    return any(int(line[1].rsplit(":", 1)[1], 16) == port and line[3] == LISTENS for line in lines)


@contextlib.contextmanager
def server(command: list[str], environment: dict[str, str] | None = None, port: int | None = None) -> Iterator[int]:
    """Runs a server, and gives the port on which it listens: `port`, or the number that it prints in its first line. It ends with
    its standard input, or is ended."""
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL if port else subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, **(environment or {})},
        preexec_fn=on(1),
    )
    try:
        if port is None:
            assert process.stdout
            line = process.stdout.readline().strip()
            if not line.isdigit():
                raise NotMeasured(f"{Path(command[0]).name}: its server does not start")
            yield int(line)
            return
        deadline = time.monotonic() + START_SECONDS
        while not _listens(port):
            if process.poll() is not None or time.monotonic() > deadline:
                raise NotMeasured(f"{Path(command[0]).name}: its server does not start")
            time.sleep(0.02)
        yield port
    finally:
        assert process.stdin
        process.stdin.close()
        process.terminate()
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
