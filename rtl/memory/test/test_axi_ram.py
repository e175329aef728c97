# SPDX-License-Identifier: Apache-2.0
"""axi_ram: what was written is read, to the byte and in the order of the bus; behind its end is nothing."""

import random

import cocotb
import pytest
from nacelle_tb.bench import AxiSlave, run
from nacelle_tb.long import alternately
from nacelle_tb.memory import DECERR, OKAY, AxiDriver
from nacelle_tb.streams import start, wait_cycles

SIZE = 1 << 13


@cocotb.test()
@cocotb.parametrize(stall=alternately([0.0, 0.4]))
async def bytes_are_as_they_were_written(dut, stall: float) -> None:
    master = AxiDriver(dut, "in", stall)
    await start(dut)
    step = master.bytes_per_beat
    content = bytearray(SIZE)
    for line in range(0, SIZE, 16 * step):
        master.write(line, bytes(16 * step))
    await master.writes_answered()
    for _ in range(60):
        beats = random.randint(1, 16)
        line = random.randrange(SIZE // step - beats)
        data, strobes = random.randbytes(beats * step), random.getrandbits(beats * step)
        # The first byte of a burst may be anywhere in its first beat.
        first = random.randrange(step)
        strobes &= -1 << first
        for i in range(beats * step):
            if strobes >> i & 1:
                content[line * step + i] = data[i]
        master.write(line * step + first, data, ident=random.randrange(16), strobes=strobes)
        if random.random() < 0.5:
            await master.writes_answered()
            beats = random.randint(1, 32)
            line = random.randrange(SIZE // step - beats)
            ident = random.randrange(16)
            master.read(line * step + random.randrange(step), beats, ident)
            assert await master.read_result() == (ident, bytes(content[line * step :][: beats * step]), OKAY)
    await master.writes_answered()
    assert master.write_errors == 0


@cocotb.test()
async def nothing_is_behind_the_end(dut) -> None:
    master = AxiDriver(dut, "in")
    await start(dut)
    step = master.bytes_per_beat
    master.write(0, bytes(step))
    for addr in (SIZE, 1 << 36, (1 << 64) - step):
        master.write(addr, b"\xff" * step)
        await master.writes_answered()
        master.read(addr, 1)
        assert (await master.read_result())[2] == DECERR
    assert master.write_errors == 3
    master.read(0, 1)
    assert await master.read_result() == (0, bytes(step), OKAY)


@cocotb.test()
async def a_beat_passes_in_each_cycle(dut) -> None:
    master = AxiDriver(dut, "in")
    await start(dut)
    data = random.randbytes(64 * master.bytes_per_beat)
    master.write(0, data)
    await master.writes_answered(80)
    master.read(0, 64)
    assert await master.read_result(80) == (0, data, OKAY)
    await wait_cycles(dut, 1)


@pytest.mark.parametrize("data_w", [64, 512])
def test_axi_ram(data_w: int) -> None:
    run("axi_ram", __file__, params={"DATA_W": data_w, "BYTES": SIZE}, ports={"in": AxiSlave(data_w)})
