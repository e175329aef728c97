# SPDX-License-Identifier: Apache-2.0
"""A socket whose kernel has a port to the registers of the device: what it may do is set in the socket's own registers, and
whatever it does there it is ended as any kernel, with nothing left on the bus."""

from __future__ import annotations

from pathlib import Path

import cocotb
import pytest
from cocotb.triggers import RisingEdge
from nacelle_tb.axil import OKAY, Monitor, Slave
from nacelle_tb.cci import address
from nacelle_tb.streams import start, wait_cycles
from socket_bench import BUS, REFUSED, SUCCESS, TIMEOUT, Bench, kernels_of_tests, run_socket

HERE = Path(__file__).parent
FUNCTION, EARLY, DEAF = 2, 1 << 7, 1 << 4
ASKS, SETS, COUNTER = 1 << 20, 1 << 21, 1 << 22
READ, WRITE = 1, 2
REACHED = address("socket.TYPE") + 0x118 & 0xFFF  # kernel_hostile.rdl
LIMIT = 1500
MODES = {"reads": ASKS, "writes": SETS, "both": ASKS | SETS, "reads a counter": ASKS | COUNTER}
CONGESTION = range(address("RP_ENABLE"), address("MIN_TIME_BETWEEN_CNPS") + 4, 4)


class Scene(Bench):
    """The socket with the hostile kernel, and the bus."""

    def __init__(self, dut, delay: int = 0) -> None:
        super().__init__(dut)
        self.bus, self.port = Slave(dut, "bus", lambda channel: delay), Monitor(dut, "bus")

    async def attack(self, mode: int) -> None:
        """A job that only its limit ends, and one after it that finds the socket as good as new."""
        self.dut.kernel_timeout_cycles.value = LIMIT
        self.call(FUNCTION, [(0x4000, 0x1000)], tag=3, user=mode)
        done = await self.done.recv(LIMIT + 500)
        assert (done.tag, done.code) == (3, TIMEOUT)
        assert self.port.taken["ar"] == self.port.taken["r"] and self.port.taken["aw"] == self.port.taken["b"]
        self.dut.kernel_timeout_cycles.value = 0
        self.call(FUNCTION, [(0x4000, 0x1000)], tag=4, user=EARLY)
        done = await self.done.recv(100)
        assert (done.tag, done.code) == (4, SUCCESS)
        await wait_cycles(self.dut, 10)
        assert int(self.dut.idle.value)


@cocotb.test()
async def permission_is_a_register_that_is_0_after_reset(dut) -> None:
    scene = Scene(dut)
    await start(dut)
    assert await scene.ctrl.read(BUS) == (0, OKAY)
    for value in (READ, WRITE, READ | WRITE):
        assert await scene.ctrl.write(BUS, 0xFFFF_FFFC | value) == OKAY
        assert await scene.ctrl.read(BUS) == (value, OKAY)


@cocotb.test()
@cocotb.parametrize(what=list(MODES), deaf=[False, True], delay=[0, 20], permitted=[0, READ | WRITE])
async def a_flood_of_accesses_ends_at_the_limit(dut, what: str, deaf: bool, delay: int, permitted: int) -> None:
    """A kernel that does not take its answer has one access, whatever it wants."""
    scene = Scene(dut, delay)
    await start(dut)
    assert await scene.ctrl.write(BUS, permitted) == OKAY
    await scene.attack(MODES[what] | DEAF * deaf)
    assert set(scene.bus.words) <= (set(CONGESTION) if permitted & WRITE else set())
    refused = (await scene.ctrl.read(REFUSED))[0]
    if deaf:
        assert scene.port.taken["ar"] + scene.port.taken["aw"] + refused <= 1
    elif what == "reads a counter":
        assert refused == 0 and scene.port.taken["ar"] > 10
    else:
        assert refused > 100


@cocotb.test()
async def a_job_ends_when_its_access_has_ended(dut) -> None:
    """It is cut off in the middle of one: the bus answers when it likes, and only then the job ends; the answer is nobody's."""
    scene = Scene(dut)
    await start(dut)
    scene.bus.held.add("r")
    dut.kernel_timeout_cycles.value = 100
    scene.call(FUNCTION, [(0x4000, 0x1000)], tag=5, user=ASKS | COUNTER)
    for _ in range(1000):
        await RisingEdge(dut.clk)
        assert not int(dut.done_valid.value)
    assert not int(dut.idle.value) and scene.port.taken["ar"] == 1
    scene.bus.held.clear()
    assert (await scene.done.recv(30)).code == TIMEOUT
    dut.kernel_timeout_cycles.value = 0
    await scene.attack(ASKS)


@cocotb.test()
async def a_kernel_that_goes_on_with_accesses_after_its_answer_does_not_keep_its_job(dut) -> None:
    """It accesses registers while no job runs, too, as datagrams may come to it then."""
    scene = Scene(dut)
    await start(dut)
    scene.call(FUNCTION, [(0x4000, 0x1000)], tag=6, user=EARLY | ASKS | COUNTER)
    assert (await scene.done.recv(100)).code == SUCCESS
    taken = scene.port.taken["ar"]
    await wait_cycles(dut, 300)
    assert scene.port.taken["ar"] > taken + 20
    reached = await scene.ctrl.read(REACHED)
    assert reached[1] == OKAY and reached[0] > 20


@pytest.mark.parametrize("width", [64])
def test_socket_registers(width: int) -> None:
    run_socket(__file__, width, "hostile", [*kernels_of_tests(), HERE / "kernel_hostile.sv"], registers=True)
