# SPDX-License-Identifier: Apache-2.0
"""socket and kernel_increment: bytes of all regions, one done a job, unknown functions, time-outs, registers."""

from __future__ import annotations

import random

import cocotb
import pytest
from cocotb.triggers import FallingEdge, RisingEdge
from nacelle_tb.long import alternately, some
from nacelle_tb.memory import DECERR, OKAY, SLVERR
from nacelle_tb.streams import start, wait_cycles
from nacelle_tb.svtypes import constant
from nacelle_tb.widths import WIDTHS
from socket_bench import CANCELLED, NEXT_BLOCK, REFUSED, SUCCESS, TIMEOUT, TIMEOUTS, Bench, run_socket

UNKNOWN = constant("compute_pkg::RESULT_UNKNOWN_FUNCTION")
MEMORY_ERROR = constant("compute_pkg::RESULT_MEMORY_ERROR")


def plus_one(data: bytes) -> bytes:
    return bytes((byte + 1) & 0xFF for byte in data)


@cocotb.test()
@cocotb.parametrize(stall=alternately([0.0, 0.4]))
async def every_byte_of_every_region(dut, stall: float) -> None:
    bench = Bench(dut, stall)
    await start(dut)
    expected = bytearray(bench.memory.content)
    for tag in range(8):
        regions = [
            (i * 0x4000 + random.choice([0, 0, random.randrange(4096)]), random.choice([0, 1, 64, random.randrange(5000)]))
            for i in random.sample(range(16), random.randint(1, 6))
        ]
        bench.call(1, regions, tag)
        for addr, size in regions:
            expected[addr : addr + size] = plus_one(expected[addr : addr + size])
        done = await bench.done.recv()
        assert (done.tag, done.code) == (tag, SUCCESS)
        assert bench.memory.content == expected
    await wait_cycles(dut, 2)
    assert int(dut.idle.value)


@cocotb.test()
async def streams_at_full_rate(dut) -> None:
    bench = Bench(dut, latency=40)
    await start(dut)
    bench.call(1, [(0, 32768), (65536, 32768)])
    await bench.done.recv()
    beats = 65536 // bench.memory.bytes_per_beat
    cycles = bench.memory.stats.write_beat_cycles
    assert len(cycles) == beats and cycles[-1] - cycles[0] == beats - 1


@cocotb.test()
async def empty_function_and_unknown_function(dut) -> None:
    bench = Bench(dut)
    await start(dut)
    before = bytes(bench.memory.content)
    for tag, (function, code) in enumerate([(3, SUCCESS), (2, UNKNOWN), (16, UNKNOWN), (0, UNKNOWN), (3, SUCCESS)]):
        bench.call(function, [(0, 64), (4096, 64), (8192, 100)], tag)
        await bench.job.drained()
        last = bench.done.cycle
        done = await bench.done.recv()
        assert (done.tag, done.code) == (tag, code)
        assert bench.done.cycle - last <= 10
    assert bench.memory.content == before
    assert bench.memory.stats.read_beats == 0


@cocotb.test()
async def outside_of_the_window_is_an_error(dut) -> None:
    bench = Bench(dut)
    await start(dut)
    bench.window(0x4000, 0x4000)
    before = bytes(bench.memory.content)
    bench.call(1, [(0x4000, 100), (0x8000, 100)])
    assert (await bench.done.recv()).code == MEMORY_ERROR
    first = bench.memory.read(0x4000, 100)  # the kernel was cut off: a byte is done once or not at all
    assert all(done - was & 0xFF <= 1 for done, was in zip(first, before[0x4000:], strict=False))
    bench.call(1, [(0x4000, 100)])
    assert (await bench.done.recv()).code == SUCCESS
    assert bench.memory.content[:0x4000] == before[:0x4000] and bench.memory.content[0x8000:] == before[0x8000:]
    assert bench.memory.read(0x4000, 100) == plus_one(first)
    assert (await bench.ctrl.read(REFUSED))[0] >= 2


@cocotb.test()
@cocotb.parametrize(limit=[1, 2, 3, 20, 60, 150, 300], cancelled=[False, True])
async def a_slow_or_unwanted_kernel_is_cut_off(dut, limit: int, cancelled: bool) -> None:
    bench = Bench(dut, stall=0.3, latency=(20, 60))
    await start(dut)
    if not cancelled:
        dut.kernel_timeout_cycles.value = limit
    before = bytes(bench.memory.content)
    bench.call(1, [(0x4000, 16384), (0x8000, 16384), (0xC000, 0)], tag=7)
    if cancelled:
        await wait_cycles(dut, limit)
        dut.cancel.value = 1
    done = await bench.done.recv(limit + 3000)
    dut.cancel.value = 0
    assert (done.tag, done.code) == (7, CANCELLED if cancelled else TIMEOUT)
    await wait_cycles(dut, 3)
    assert bench.memory.outstanding() == 0 and int(dut.idle.value)
    dut.kernel_timeout_cycles.value = 0
    for i in range(0x4000, 0xC000):  # a byte is done once or not at all
        assert bench.memory.content[i] - before[i] & 0xFF <= 1
    middle = bytes(bench.memory.content)
    bench.call(1, [(0x4001, 777)], tag=8)  # as good as new
    done = await bench.done.recv()
    assert (done.tag, done.code) == (8, SUCCESS)
    assert bench.memory.read(0x4001, 777) == plus_one(middle[0x4001 : 0x4001 + 777])
    assert await bench.ctrl.read(TIMEOUTS) == (int(not cancelled), 0)


@cocotb.test()
async def registers_say_what_it_is(dut) -> None:
    bench = Bench(dut)
    await start(dut)
    ctrl = bench.ctrl
    # The contract, written down here once more. The kernel has no block of its own.
    assert await ctrl.read(0x00) == (int.from_bytes(b"SOCK", "big"), OKAY)
    assert await ctrl.read(0x04) == (1 << 16 | 4, OKAY)
    assert await ctrl.read(0x08) == (NEXT_BLOCK, OKAY)
    assert await ctrl.read(0x0C) == (2, OKAY)
    name = b"".join([(await ctrl.read(0x10 + 4 * i))[0].to_bytes(4, "little") for i in range(4)])
    assert name == b"increment".ljust(16, b"\0")
    assert [(await ctrl.read(0x20 + 4 * i))[0] for i in range(3)] == [1, 3, 0]
    assert await ctrl.read(0x5C) == (1 << 16, OKAY)
    assert await ctrl.read(0x40) == (0, OKAY)
    bench.call(1, [(0, 4096)])
    await wait_cycles(dut, 20)
    assert await ctrl.read(0x40) == (1, OKAY)
    await bench.done.recv()
    await RisingEdge(dut.clk)
    assert await ctrl.read(0x44) == (1, OKAY)
    cycles, _ = await ctrl.read(0x48)
    assert 4096 // bench.memory.bytes_per_beat < cycles < 4096
    for address in range(0, 0x1000, 4):
        peers = 0xB0 <= address < 0xC4
        settings, counters = 0xA0 <= address < 0xB0, 0xD0 <= address < 0xF0  # of datagrams
        readable = address < 0x60 or address in (0x60, 0x64, 0x68, 0x70, 0xC4, 0xC8) or peers
        writable = address in (0x54, 0x58, 0x64) or 0x80 <= address < 0xA0
        expected = OKAY if readable or settings or counters else DECERR
        assert (await ctrl.read(address))[1] == expected, f"{address:#x}"
        # With one image there is no command, and there are no connections, no datagrams, and no port to registers.
        expected = SLVERR if address in (0x6C, 0xC8) or peers or settings else OKAY if writable else DECERR
        assert await ctrl.write(address, 5) == expected, f"{address:#x}"
    assert [await ctrl.read(address) for address in (0x60, 0x64, 0x68, 0x70)] == [(1, OKAY), (0, OKAY), (0, OKAY), (0x80, OKAY)]
    assert await ctrl.read(0x44) == (1, OKAY)


@cocotb.test()
async def functions_are_shown(dut) -> None:
    Bench(dut)
    await start(dut)
    await FallingEdge(dut.clk)
    assert int(dut.functions.value) == 1 << 1 | 1 << 3


@pytest.mark.parametrize("width", some(WIDTHS))
def test_socket(width: int) -> None:
    run_socket(__file__, width, "increment")
