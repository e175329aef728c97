# SPDX-License-Identifier: Apache-2.0
"""A virtual wire of its own, and the project's programs on it."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import IO, Self

ROOT = Path(__file__).resolve().parents[1]
HOST = Path(os.environ.get("NACELLE_PROGRAMS", ROOT / "host" / "target" / "release"))


class WireError(Exception):
    """A program on the wire did not start; has what it said."""


@dataclass
class Programs:
    """The folder that the host software was built in."""

    folder: Path

    def path(self, name: str) -> Path:
        """A program. Raises WireError if it has not been built."""
        path = self.folder / name
        if not path.exists():
            raise WireError(f"{path} is missing. Try: make interop")
        return path


@dataclass
class Wire:
    """A wire in a folder with a short name, since the paths of sockets are limited. Frames are switched until it is closed."""

    programs: Programs
    logs: Path
    """Where the programs' output goes."""
    _folder: tempfile.TemporaryDirectory[str] = field(default_factory=lambda: tempfile.TemporaryDirectory(prefix="ni", dir="/tmp"))

    @property
    def folder(self) -> Path:
        """The folder of the sockets."""
        return Path(self._folder.name)

    @property
    def environment(self) -> dict[str, str]:
        """Environment of everything on the wire."""
        return {**os.environ, "NACELLE_WIRE": str(self.folder), "NO_COLOR": "1"}

    def __enter__(self) -> Self:
        self._switch = self._start("wire", self._log("wire"))
        end = time.monotonic() + 20
        while not (self.folder / "switch.sock").exists():
            if self._switch.poll() is not None or time.monotonic() > end:
                raise WireError(f"nacelle wire does not run:\n{self.said('wire')}")
            time.sleep(0.02)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        stop(self._switch)
        self._folder.cleanup()

    def _log(self, name: str) -> IO[str]:
        self.logs.mkdir(parents=True, exist_ok=True)
        return (self.logs / f"{name}.log").open("w")

    def _start(self, command: str, log: IO[str], *arguments: str, program: str = "nacelle") -> subprocess.Popen[str]:
        path = self.programs.path(program)
        with log:
            return subprocess.Popen(
                [str(path), command, *arguments], env=self.environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log, text=True
            )

    def _alive(self) -> list[str]:
        listed = json.loads(self.run("--json", "ls").stdout or "[]")
        return [entry["name"] for entry in listed if entry["alive"]]

    @contextmanager
    def device(self, name: str, ip: str, *arguments: str, capture: str) -> Iterator[subprocess.Popen[str]]:
        """Runs a device, with a capture of what it sends and receives in the folder of the logs."""
        file = self.logs / f"{capture}.pcapng"
        self.logs.mkdir(parents=True, exist_ok=True)
        child = self._start("device", self._log(name), "--name", name, "--ip", ip, "--capture", str(file), *arguments)
        try:
            end = time.monotonic() + 60
            while not any(
                entry["name"] == name and entry["alive"] for entry in json.loads(self.run("--json", "ls").stdout or "[]")
            ):
                if child.poll() is not None or time.monotonic() > end:
                    raise WireError(f"the device {name} does not run:\n{self.said(name)}")
                time.sleep(0.1)
            yield child
            # The device's counters help to find the cause of a failure.
            (self.logs / f"{capture}.counters").write_text(self.run("stats", name, timeout=20).stdout)
        finally:
            stop(child)

    def said(self, log: str) -> str:
        """What a program has said so far."""
        return (self.logs / f"{log}.log").read_text(errors="replace")

    @contextmanager
    def program(self, name: str, log: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
        """Runs another of the project's programs until the end of the block."""
        child = self._start(arguments[0], self._log(log), *arguments[1:], program=name)
        try:
            yield child
        finally:
            stop(child)

    def run(self, *arguments: str, program: str = "nacelle", timeout: float = 300) -> subprocess.CompletedProcess[str]:
        """Runs one of the project's programs to its end; status 124 if that takes longer than `timeout` seconds."""
        command = [str(self.programs.path(program)), *arguments]
        try:
            return subprocess.run(command, env=self.environment, capture_output=True, text=True, timeout=timeout)
        except subprocess.TimeoutExpired as error:
            said = error.stderr.decode(errors="replace") if isinstance(error.stderr, bytes) else str(error.stderr or "")
            return subprocess.CompletedProcess(command, 124, "", f"{said}\n(ended after {timeout:g} s)")


def stop(child: subprocess.Popen[str]) -> None:
    """Ends a program that was started."""
    child.terminate()
    try:
        child.wait(10)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()
