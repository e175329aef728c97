# SPDX-License-Identifier: Apache-2.0
"""The streams and registers of a socket that has a port for datagrams: open without a job, closed while the kernel is cut off."""

from __future__ import annotations

from typing import Any

import cocotb
import pytest
from cocotb.triggers import RisingEdge
from nacelle_tb.cci import blocks, offset
from nacelle_tb.long import some
from nacelle_tb.memory import DECERR
from nacelle_tb.streams import AxisSink, AxisSource, start, wait_cycles
from nacelle_tb.svtypes import constant, struct
from socket_bench import SUCCESS, TIMEOUT, Bench, kernels_of_tests, run_socket

SEND, RECEIVE = 6, 7
PORT, NETWORK, MASK, PACE = (offset(f"socket.DATAGRAM_{name}") for name in ("PORT", "NETWORK", "MASK", "PACE"))
COUNTERS = [register["offset"] for register in blocks()["socket"]["registers"] if register["name"].startswith("DATAGRAMS_")]
CONTROL = offset("reflect.CONTROL")
PACKET = bytes([1, 0, 0, 4, 0, 9, 0, 7]) + bytes(56) + b"data"


class Scene(Bench):
    """The socket with `reflect` in it, and what its streams go to."""

    def __init__(self, dut) -> None:
        super().__init__(dut)
        self.rx, self.tx = AxisSource(dut, "rx"), AxisSink(dut, "tx")


@cocotb.test()
async def registers_are_there_and_set_what_they_say(dut) -> None:
    bench = Scene(dut)
    await start(dut)

    def settings() -> Any:
        return struct("datagrams_pkg::datagram_settings_t").unpack(int(dut.datagrams.value))

    assert (settings().enable, settings().to, settings().port, settings().mask) == (0, 0, 0, 0xFFFFFFFF)
    reset = constant("datagrams_pkg::PACE_RESET")
    assert settings().pace == reset and await bench.ctrl.read(PACE) == (reset, 0)
    for at, value in ((PORT, 0x02011B58), (NETWORK, 0x0A000400), (MASK, 0xFFFFFF00), (PACE, 0xABCDEF)):
        assert await bench.ctrl.write(at, value) == 0 and await bench.ctrl.read(at) == (value, 0)
    now = settings()
    assert (now.enable, now.to, now.port, now.network, now.mask, now.pace) == (1, 2, 7000, 0x0A000400, 0xFFFFFF00, 0xABCDEF)
    assert len(COUNTERS) == 8
    for i, at in enumerate(COUNTERS):
        dut.counter.value = 1000 + i
        value, answer = await bench.ctrl.read(at)
        assert (value, answer) == (1000 + i, 0) and await bench.ctrl.write(at, 0) == DECERR


@cocotb.test()
async def which_counter_is_read(dut) -> None:
    """The number that the plane is asked for is that of the register."""
    bench = Scene(dut)
    await start(dut)
    asked: list[int] = []

    async def watch() -> None:
        while True:
            await RisingEdge(dut.clk)
            if int(dut.ctrl_arvalid.value) and int(dut.ctrl_arready.value):
                asked.append(int(dut.counter_at.value))

    cocotb.start_soon(watch())
    for at in COUNTERS:
        await bench.ctrl.read(at)
    assert asked == list(range(8))


@cocotb.test()
async def streams_live_without_a_job_and_beside_one(dut) -> None:
    bench = Scene(dut)
    await start(dut)
    dut.kernel_timeout_cycles.value = 400  # which is for jobs
    await bench.ctrl.write(CONTROL, 1)
    for _ in range(3):
        bench.rx.send(PACKET)
        assert await bench.tx.recv() == PACKET
        await wait_cycles(dut, 500)
    assert not int(dut.streams_off.value)
    bench.memory.write(0, PACKET)
    bench.call(SEND, [(0, len(PACKET))], 5)
    assert await bench.tx.recv() == PACKET
    assert (await bench.done.recv()).code == SUCCESS


@cocotb.test()
async def streams_close_with_the_kernel(dut) -> None:
    """`receive` waits for too long: the kernel is cut off, and comes back as after its reset."""
    bench = Scene(dut)
    await start(dut)
    closed = 0

    async def watch() -> None:
        nonlocal closed
        while True:
            await RisingEdge(dut.clk)
            closed += int(dut.streams_off.value)

    cocotb.start_soon(watch())
    await bench.ctrl.write(CONTROL, 1)
    dut.kernel_timeout_cycles.value = 400
    bench.memory.write(0, (9).to_bytes(4, "little"))
    bench.call(RECEIVE, [(0, 4), (0x1000, 0x2000)], 6)
    assert (await bench.done.recv()).code == TIMEOUT and closed > 0
    assert not int(dut.streams_off.value)
    assert await bench.ctrl.read(CONTROL) == (0, 0)


@pytest.mark.parametrize("width", some([64, 512]))
def test_socket_datagrams(width: int) -> None:
    run_socket(__file__, width, "reflect", sources=kernels_of_tests(), datagrams=True)
