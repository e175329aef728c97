# SPDX-License-Identifier: Apache-2.0
"""A socket without a port to the registers of the device."""

from __future__ import annotations

import cocotb
from nacelle_tb.cci import address
from nacelle_tb.memory import OKAY, SLVERR
from nacelle_tb.streams import start
from socket_bench import BUS, SUCCESS, Bench, kernels_of_tests, run_socket

OBSERVE = 8


@cocotb.test()
async def a_kernel_without_a_port_is_refused_and_cannot_be_permitted(dut) -> None:
    """Also what anybody may read; it waits for nothing."""
    bench = Bench(dut)
    await start(dut)
    assert await bench.ctrl.write(BUS, 3) == SLVERR and await bench.ctrl.read(BUS) == (0, OKAY)
    addresses = [address("QPS"), address("KERNEL_TIMEOUT_MS"), 0xFFFFC]
    bench.memory.write(0x1000, b"".join(at.to_bytes(4, "little") for at in addresses))
    bench.call(OBSERVE, [(0x1000, 4 * len(addresses)), (0x2000, 8 * len(addresses))])
    assert (await bench.done.recv(500)).code == SUCCESS
    assert bench.memory.read(0x2000, 8 * len(addresses)) == (bytes(4) + SLVERR.to_bytes(4, "little")) * len(addresses)
    assert not int(dut.bus_arvalid.value)


def test_socket_no_registers() -> None:
    run_socket(__file__, 64, "observe", kernels_of_tests())
