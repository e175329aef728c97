# SPDX-License-Identifier: Apache-2.0
"""Transfers without a call, between processes on a wire: memory of both devices, and windows of a host."""

from __future__ import annotations

import subprocess

import pytest
from conftest import ADDRESS, NACELLE, Wire

PEER = "10.77.0.9/16"


@pytest.mark.parametrize("arguments", [(), ("--soft",)], ids=["rtl", "soft"])
@pytest.mark.parametrize("loss", [0, 1])
def test_memory_of_a_device(wire: Wire, arguments: tuple[str, ...], loss: int) -> None:
    wire.device(*arguments)
    size = 300_000 if arguments else 60_000
    said = wire.tool("nacelle-interop", "memory", ADDRESS, "--ip", PEER, "-S", str(size), "--loss", str(loss))
    assert "written and read, with the right contents" in said


def test_a_host_that_nobody_writes_to_ends_in_time(wire: Wire) -> None:
    """Nothing waits for ever: the program, and whoever asks a host that has gone."""
    command = [str(NACELLE.with_name("nacelle-interop")), "windows", "--ip", PEER, "--timeout", "1"]
    host = subprocess.run(command, env=wire.environment, capture_output=True, text=True, timeout=60)
    assert host.returncode == 3, host.stderr
    assert "timeout while waiting for the peer" in host.stderr
