# SPDX-License-Identifier: Apache-2.0
"""The kernel `reflect`: datagrams go back, out of memory and into it, as they came."""

from __future__ import annotations

import random
import struct

import cocotb
import pytest
from cocotb.triggers import RisingEdge
from nacelle_tb.bench import run
from nacelle_tb.cci import offset
from nacelle_tb.device import DEVICES, load
from nacelle_tb.device_rtl import generate
from nacelle_tb.kernel import kernel_ports
from nacelle_tb.long import alternately, some
from nacelle_tb.memory import DECERR, AxiMemory
from nacelle_tb.registers import AxilDriver
from nacelle_tb.streams import AxisSink, AxisSource, StreamSink, StreamSource, start, wait_cycles
from nacelle_tb.svtypes import constant

DEVICE = load(DEVICES / "test.toml")
SIZE = 1 << 17
SEND, RECEIVE = 6, 7
CONTROL, REFLECTED, IGNORED = (offset(f"reflect.{name}") for name in ("CONTROL", "REFLECTED", "IGNORED"))
LENGTHS = [0, 1, 7, 8, 9, 63, 64, 65, 1472, 4095, 4096]
RESULTS = {
    constant(f"compute_pkg::RESULT_{name}"): name for name in ("SUCCESS", "BAD_ARGUMENTS", "REGION_TOO_SMALL", "MEMORY_ERROR")
}


def datagram(length: int, peer_port: int = 9, own_port: int = 7000, kind: int = 1) -> bytes:
    return struct.pack(">BBHHH", kind, 0, length, peer_port, own_port) + random.randbytes(56 + length)


def laid_out(datagrams: list[bytes]) -> bytes:
    """Each at a multiple of 64 bytes."""
    return b"".join(each.ljust(-(-len(each) // 64) * 64, b"\xaa") for each in datagrams)


class Bench:
    def __init__(self, dut, stall: float) -> None:
        self.dut = dut
        self.job = StreamSource(dut, "job", "compute_pkg::job_t", stall)
        self.done = StreamSink(dut, "done", "compute_pkg::done_t", stall)
        self.memory = AxiMemory(dut, "mem", SIZE, latency=(1, 30), stall=stall)
        self.rx, self.tx = AxisSource(dut, "rx", stall, noise=True), AxisSink(dut, "tx", stall)
        self.ctrl = AxilDriver(dut, "ctrl")

    def call(self, function: int, *regions: tuple[int, int]) -> None:
        for i, (addr, size) in enumerate(regions):
            self.job.send(tag=9, function_code=function, addr=addr, size=size, last=i == len(regions) - 1)

    async def ended(self) -> str:
        answer = await self.done.recv()
        assert answer.tag == 9
        return RESULTS[answer.code]

    async def receive(self, wanted: int, size: int, datagrams: list[bytes]) -> tuple[str, int, bytes]:
        self.memory.write(0, wanted.to_bytes(4, "little"))
        self.memory.write(0x1000, bytes(SIZE - 0x1000))
        self.call(RECEIVE, (0, 4), (0x1000, size))
        for each in datagrams:
            self.rx.send(each)
        result = await self.ended()
        return result, int.from_bytes(self.memory.read(0, 4), "little"), self.memory.read(0x1000, size)


@cocotb.test()
@cocotb.parametrize(stall=alternately([0.0, 0.4]))
async def datagrams_go_back_while_it_is_told_to(dut, stall: float) -> None:
    bench = Bench(dut, stall)
    await start(dut)
    first = datagram(100)
    bench.rx.send(first)
    await wait_cycles(dut, 100)
    assert bench.rx.busy and not bench.tx.packets
    assert await bench.ctrl.write(CONTROL, 1) == 0 and await bench.ctrl.read(CONTROL) == (1, 0)
    assert await bench.tx.recv() == first
    for length in LENGTHS:
        data, own = datagram(length), datagram(length, 7000, 7000)
        bench.rx.send(own)
        bench.rx.send(data)
        assert await bench.tx.recv() == data
    assert await bench.ctrl.read(REFLECTED) == (len(LENGTHS) + 1, 0)
    assert await bench.ctrl.read(IGNORED) == (len(LENGTHS), 0)
    assert await bench.ctrl.write(CONTROL, 0) == 0
    bench.rx.send(first)
    await wait_cycles(dut, 100)
    assert bench.rx.busy and not bench.tx.packets
    for at in (0x11C, 0x200):
        assert (await bench.ctrl.read(at))[1] == DECERR and await bench.ctrl.write(at, 1) == DECERR
    assert await bench.ctrl.write(REFLECTED, 1) == DECERR


@cocotb.test()
async def a_datagram_is_reflected_two_cycles_later(dut) -> None:
    """From its first beat offered to its first beat sent; then a beat a cycle."""
    bench = Bench(dut, 0.0)
    await start(dut)
    assert await bench.ctrl.write(CONTROL, 1) == 0
    for length in (0, 100, 2000):
        bench.rx.send(datagram(length))
        offered, cycle = 0, 0
        sent: list[int] = []
        while bench.rx.busy or not bench.tx.packets:
            await RisingEdge(dut.clk)
            cycle += 1
            if int(dut.rx_tvalid.value):
                offered = offered or cycle
            if int(dut.tx_tvalid.value) and int(dut.tx_tready.value):
                sent.append(cycle)
            assert cycle < 1000
        assert sent == list(range(offered + 2, offered + 2 + len(sent)))
        await bench.tx.recv()


@cocotb.test()
@cocotb.parametrize(stall=alternately([0.0, 0.4]))
async def a_region_is_sent(dut, stall: float) -> None:
    bench = Bench(dut, stall)
    await start(dut)
    await bench.ctrl.write(CONTROL, 1)
    for _ in range(8):
        datagrams = [datagram(random.choice([*LENGTHS, random.randrange(4097)])) for _ in range(random.randrange(1, 8))]
        data = laid_out(datagrams)
        bench.memory.write(0x2000, data)
        end = random.choice([len(data), sum(-(-len(each) // 64) * 64 for each in datagrams[:-1]) + len(datagrams[-1])])
        bench.call(SEND, (0x2000, end))
        back = datagram(random.randrange(200))  # one is reflected at the same time
        bench.rx.send(back)
        sent = [await bench.tx.recv() for _ in range(len(datagrams) + 1)]
        sent.remove(back)
        assert sent == datagrams
        assert await bench.ended() == "SUCCESS"
    bench.call(SEND, (0, 0))
    assert await bench.ended() == "SUCCESS"


@cocotb.test()
async def a_region_that_is_not_well_formed_is_sent_up_to_there(dut) -> None:
    bench = Bench(dut, 0.0)
    await start(dut)
    good = [datagram(100), datagram(0), datagram(4096)]
    for wrong in (datagram(4, kind=0), struct.pack(">BBH", 1, 0, 4097) + bytes(4157), bytes(64)):
        data = laid_out([*good, wrong, datagram(5)])
        bench.memory.write(0, data)
        bench.call(SEND, (0, len(data)))
        assert await bench.ended() == "BAD_ARGUMENTS"
        assert [await bench.tx.recv() for _ in good] == good and not bench.tx.packets
    # It ends within one: what comes out of the kernel is too short, which the socket drops.
    bench.memory.write(0, laid_out(good))
    bench.call(SEND, (0, 128 + 64 + 64 + 64))
    assert await bench.ended() == "BAD_ARGUMENTS"
    assert [await bench.tx.recv() for _ in range(2)] == good[:2] and len(await bench.tx.recv()) < len(good[2])
    for regions in ([(0, 64), (0, 64)], [(0, 1 << 32)]):
        bench.call(SEND, *regions)
        assert await bench.ended() == "BAD_ARGUMENTS"
    bench.call(SEND, (SIZE, 64))
    assert await bench.ended() in ("MEMORY_ERROR", "BAD_ARGUMENTS")


@cocotb.test()
@cocotb.parametrize(stall=alternately([0.0, 0.4]))
async def datagrams_are_received(dut, stall: float) -> None:
    bench = Bench(dut, stall)
    await start(dut)
    for _ in range(6):
        datagrams = [datagram(random.choice([*LENGTHS, random.randrange(4097)])) for _ in range(random.randrange(1, 8))]
        expected = b"".join(each.ljust(-(-len(each) // 64) * 64, b"\0") for each in datagrams)
        result, count, data = await bench.receive(len(datagrams), 0x10000, datagrams)
        assert (result, count) == ("SUCCESS", len(datagrams)) and data[: len(expected)] == expected
        assert not any(data[len(expected) :])
        # The next one goes back.
        await bench.ctrl.write(CONTROL, 1)
        bench.rx.send(datagrams[0])
        assert await bench.tx.recv() == datagrams[0]
        await bench.ctrl.write(CONTROL, 0)
    assert (await bench.receive(0, 4160, []))[:2] == ("SUCCESS", 0)


@cocotb.test()
async def receive_ends_when_there_is_no_room(dut) -> None:
    bench = Bench(dut, 0.0)
    await start(dut)
    datagrams = [datagram(4096 - 128), datagram(0), datagram(1), datagram(2)]
    result, count, data = await bench.receive(9, 64 + 4096, datagrams)
    assert (result, count) == ("SUCCESS", 2) and data == laid_out(datagrams[:2]).ljust(4160, b"\0")
    result, count, data = await bench.receive(2, 0x8000, [])
    assert (result, count) == ("SUCCESS", 2)
    assert data[:65] == datagrams[2] and data[128 : 128 + 66] == datagrams[3]
    for regions, wrong in (
        ([(0, 4)], "BAD_ARGUMENTS"), ([(0, 4), (0, 5000), (0, 1)], "BAD_ARGUMENTS"), ([(0, 3), (0, 5000)], "REGION_TOO_SMALL"),
        ([(0, 4), (0, 4159)], "REGION_TOO_SMALL"), ([(SIZE, 4), (0, 4160)], "MEMORY_ERROR"),
    ):  # fmt: skip
        bench.call(RECEIVE, *regions)
        assert await bench.ended() == wrong
    bench.memory.write(0, (1).to_bytes(4, "little"))
    bench.call(RECEIVE, (0, 4), (SIZE, 4160))
    bench.rx.send(datagrams[1])
    assert await bench.ended() == "MEMORY_ERROR"


@pytest.mark.parametrize("width", some([64, 512]))
def test_kernel_reflect(width: int) -> None:
    run(
        "kernel_reflect",
        __file__,
        sources=[generate(DEVICE).folder / "kernel_reflect_pkg.sv"],
        params={"DATA_W": width},
        ports=kernel_ports(width),
    )
