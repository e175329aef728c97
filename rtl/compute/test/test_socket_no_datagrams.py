# SPDX-License-Identifier: Apache-2.0
"""A socket without a port for datagrams."""

from __future__ import annotations

import cocotb
from nacelle_tb.cci import blocks
from nacelle_tb.memory import OKAY, SLVERR
from nacelle_tb.streams import start
from socket_bench import Bench, run_socket

REGISTERS = [register["offset"] for register in blocks()["socket"]["registers"] if register["name"].startswith("DATAGRAM")]


@cocotb.test()
async def a_socket_without_a_port_takes_no_settings_for_one(dut) -> None:
    """What is read is 0."""
    bench = Bench(dut)
    await start(dut)
    for at in REGISTERS:
        assert await bench.ctrl.read(at) == (0, OKAY)
    for at in REGISTERS[:4]:
        assert await bench.ctrl.write(at, 0xFFFFFFFF) == SLVERR
    assert int(dut.datagrams.value) == 0


def test_socket_no_datagrams() -> None:
    run_socket(__file__, 64, "increment")
