# SPDX-License-Identifier: Apache-2.0
"""The host software over loopback UDP, measured block by block: `host/nacelle-device/examples/bench_udp` at our command."""

from __future__ import annotations

import json
import selectors
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from program import build

# How long one command may take.
SECONDS = 120


class SamplerError(Exception):
    """A command failed: it is said why."""


class Sampler:
    """The caller and the software device, each on a processor of its own. Between commands both sleep. `program` is the example's
    path; without, it is built."""

    def __init__(self, program: str | None = None) -> None:
        self._process = subprocess.Popen([program or build("bench_udp")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._process.stdout, selectors.EVENT_READ)
        self.processes: list[int] = self.command("processes")["processes"]

    def command(self, line: str) -> dict[str, Any]:
        """What the program answers."""
        assert self._process.stdin and self._process.stdout
        try:
            self._process.stdin.write(f"{line}\n")
            self._process.stdin.flush()
        except OSError as error:
            raise SamplerError(f"bench_udp has ended: {error}") from error
        # An answer is one line, so that nothing of it is left in a buffer where the selector does not see it.
        if not self._selector.select(SECONDS):
            raise SamplerError(f"{line}: no answer within {SECONDS} s")
        text = self._process.stdout.readline()
        if not text:
            raise SamplerError(f"{line}: bench_udp has ended")
        answer = json.loads(text)
        if "error" in answer:
            raise SamplerError(f"{line}: {answer['error']}")
        return answer

    def seconds(self, line: str) -> list[float]:
        """The samples that a command gives."""
        return self.command(line)["seconds"]

    def cpu_seconds(self) -> float:
        """Processor time of both processes so far."""
        tasks = (task for process in self.processes for task in Path(f"/proc/{process}/task").iterdir())
        return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        assert self._process.stdin
        self._process.stdin.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
