# SPDX-License-Identifier: Apache-2.0
"""A device that runs as a user runs it, on a wire of its own, and the `nacelle` command."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
# A shell that starts the tests in the background lets them, and all that they start, ignore Ctrl-C.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

NACELLE = Path(os.environ.get("NACELLE_PROGRAMS", ROOT / "host" / "target" / "release")) / "nacelle"
ADDRESS = "10.77.0.2"


class Wire:
    """A virtual wire in a folder with a short name (socket paths are limited), and what runs on it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environment = {**os.environ, "NACELLE_WIRE": str(folder / "wire"), "NO_COLOR": "1"}
        self.children: list[subprocess.Popen[str]] = []

    def start(
        self, *arguments: str, before: Sequence[str] = (), stderr: int | IO[str] = subprocess.STDOUT
    ) -> subprocess.Popen[str]:
        """Starts a `nacelle` command in the background, behind another command if need be."""
        child = subprocess.Popen(
            [*before, str(NACELLE), *arguments],
            env=self.environment,
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
        )
        self.children.append(child)
        return child

    def run(self, *arguments: str, timeout: float = 120) -> subprocess.CompletedProcess[str]:
        """Runs a `nacelle` command."""
        return subprocess.run(
            [str(NACELLE), *arguments],
            env=self.environment,
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=timeout,
        )

    def tool(self, name: str, *arguments: str, timeout: float = 240) -> str:
        """What another program beside `nacelle` prints; it must succeed."""
        command = [str(NACELLE.with_name(name)), *arguments]
        result = subprocess.run(command, env=self.environment, cwd=self.folder, capture_output=True, text=True, timeout=timeout)
        assert result.returncode == 0, result.stdout + result.stderr
        return result.stdout

    def json(self, *arguments: str) -> Any:
        """What a command prints with --json."""
        result = self.run("--json", *arguments)
        assert result.returncode == 0, result.stderr
        return json.loads(result.stdout)

    def device(self, *arguments: str, before: Sequence[str] = ()) -> subprocess.Popen[str]:
        """Starts a device and waits until it answers."""
        child = self.start("device", "--ip", f"{ADDRESS}/16", *arguments, before=before)
        for _ in range(200):
            if child.poll() is not None:
                pytest.fail(f"the device ended: {child.communicate()[0]}")
            if any(entry["alive"] for entry in self.json("ls")):
                return child
            time.sleep(0.1)
        pytest.fail("the device does not answer")

    def control(self, device: str, command: str, **fields: Any) -> Any:
        """What a device answers to a request on its management socket."""
        with socket.socket(socket.AF_UNIX) as control:
            control.settimeout(60)
            control.connect(str(self.folder / "wire" / f"{device}.ctl"))
            lines = control.makefile("rw")
            lines.write(json.dumps({"command": command, **fields}) + "\n")
            lines.flush()
            return json.loads(lines.readline())["ok"]

    def counters(self) -> dict[str, int]:
        """The device's counters."""
        return self.json("stats", ADDRESS)["counters"]

    def close(self) -> None:
        """Ends everything on the wire."""
        for child in self.children:
            child.terminate()
        for child in self.children:
            try:
                child.wait(10)
            except subprocess.TimeoutExpired:
                child.kill()


def tshark(capture: Path, which: str, *fields: str, options: Sequence[str] = ()) -> list[list[str]]:
    """Fields of the frames in a capture that pass a display filter."""
    names = [word for field in fields for word in ("-e", field)]
    command = ["tshark", "-n", "-r", str(capture), *options, "-Y", which, "-T", "fields", *names]
    text = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout
    return [line.split("\t") for line in text.splitlines()]


@pytest.fixture
def namespace() -> Iterator[list[str]]:
    """A network namespace of its own: what to put before a command that is to run in it. Needs root."""
    name = f"nacelle-{os.getpid()}"
    subprocess.run(["ip", "netns", "add", name], check=True)
    subprocess.run(["ip", "-n", name, "link", "set", "lo", "up"], check=True)
    yield ["ip", "netns", "exec", name]
    subprocess.run(["ip", "netns", "del", name], check=True)


@pytest.fixture(scope="session")
def c_tree(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The C library, installed."""
    from c_tree import Tree

    return Tree.build(tmp_path_factory.mktemp("c") / "tree")


@pytest.fixture(scope="session")
def package(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The Python package, built."""
    from python_package import Package

    return Package(tmp_path_factory.mktemp("python"))


@pytest.fixture(scope="module")
def served(package: Any) -> Iterator[Any]:
    """A device with kernels in Python, in another process."""
    from python_package import Served

    served = Served(package)
    yield served
    served.close()


@pytest.fixture
def wire() -> Iterator[Wire]:
    """An empty wire."""
    with tempfile.TemporaryDirectory(prefix="nw", dir="/tmp") as folder:
        wire = Wire(Path(folder))
        yield wire
        wire.close()
