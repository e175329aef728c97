# SPDX-License-Identifier: Apache-2.0
"""axi_mux: each master sees a memory of its own speed and order; none starves; no bubble."""

import random
from collections import deque

import cocotb
import pytest
from cocotb.triggers import RisingEdge
from nacelle_tb.bench import AxiMaster, AxiSlave, Plain, Several, run
from nacelle_tb.long import alternately
from nacelle_tb.memory import AxiDriver, AxiMemory
from nacelle_tb.streams import start, wait_cycles

MASTERS = 3
BACKGROUND = 1
SIZE = 1 << 16


@cocotb.test()
@cocotb.parametrize(stall=alternately([0.0, 0.4]), reorder=[False, True])
async def each_master_gets_its_own(dut, stall: float, reorder: bool) -> None:
    memory = AxiMemory(dut, "out", SIZE, latency=(1, 40), stall=stall, reorder=reorder, noise=True)
    memory.write(0, random.randbytes(SIZE))
    masters = [AxiDriver(dut, f"in{i}", stall) for i in range(MASTERS)]
    await start(dut)
    step = memory.bytes_per_beat
    expected = bytearray(memory.content)
    reads: list[deque[bytes]] = [deque() for _ in masters]
    wrote = 0
    for _ in range(60):
        i = random.randrange(MASTERS)
        addr = random.randrange(i * 0x4000, (i + 1) * 0x4000 - 1024, step)  # a part of memory each
        beats = random.randint(1, min(8, (4096 - addr % 4096) // step))
        if random.random() < 0.5:
            data = random.randbytes(beats * step)
            expected[addr : addr + len(data)] = data
            masters[i].write(addr, data, ident=random.randrange(4))
            wrote += 1
        else:
            at = addr % 0x4000 + 0xC000  # no master writes here
            beats = min(beats, (4096 - at % 4096) // step)
            ident = random.randrange(4)
            reads[i].append((ident, memory.read(at, beats * step)))
            masters[i].read(at, beats, ident=ident)
    for master, want in zip(masters, reads, strict=True):
        got = [await master.read_result() for _ in want]
        assert sorted(got) == sorted((ident, data, 0) for ident, data in want)
        for ident in range(4):  # in order within an ID
            assert [d for i, d, _ in got if i == ident] == [d for i, d in want if i == ident]
        await master.writes_answered()
    assert sum(master.answers for master in masters) == wrote
    assert memory.content == expected


@cocotb.test()
async def no_bubble(dut) -> None:
    memory = AxiMemory(dut, "out", SIZE, latency=20, noise=True)
    masters = [AxiDriver(dut, f"in{i}") for i in range(MASTERS)]
    await start(dut)
    step = memory.bytes_per_beat
    for active in ([masters[1]], masters):
        memory.stats.write_beat_cycles.clear()
        memory.stats.read_beat_cycles.clear()
        for i in range(30):
            for master in active:
                master.write(i * step, bytes(step))
                master.read(i * step, 1)
        for master in active:
            await master.writes_answered()
            for _ in range(30):
                await master.read_result()
        for cycles in (memory.stats.write_beat_cycles, memory.stats.read_beat_cycles):
            assert len(cycles) == 30 * len(active)
            assert cycles[-1] - cycles[0] == len(cycles) - 1


@cocotb.test()
async def nobody_starves(dut) -> None:
    memory = AxiMemory(dut, "out", SIZE, latency=5, noise=True)
    masters = [AxiDriver(dut, f"in{i}") for i in range(MASTERS)]
    await start(dut)
    for master in masters[:2]:
        for _ in range(100):
            master.read(0, 1)
    await wait_cycles(dut, 20)
    masters[2].read(4096, 1)
    began = memory.cycle
    await masters[2].read_result()
    assert memory.cycle - began < 20


@cocotb.test()
async def tells_whether_others_write(dut) -> None:
    """From the request of the address to the last beat; reads do not count, nor does the master in the background."""
    memory = AxiMemory(dut, "out", SIZE, latency=5, noise=True)
    masters = [AxiDriver(dut, f"in{i}") for i in range(MASTERS)]
    await start(dut)
    step = memory.bytes_per_beat
    told = []

    async def watch() -> None:
        while True:
            await RisingEdge(dut.clk)
            if int(dut.others_write.value):
                told.append(memory.cycle)

    cocotb.start_soon(watch())
    for master in masters:
        master.read(0, 4)
    masters[BACKGROUND].write(0, bytes(8 * step))
    await masters[BACKGROUND].writes_answered()
    assert not told
    for master in (masters[0], masters[0], masters[2]):
        told.clear()
        began = memory.cycle
        master.write(0, bytes(8 * step))
        await master.writes_answered()
        assert told == list(range(told[0], told[-1] + 1)), "without a gap"
        assert told[0] - began <= 3 and memory.stats.write_beat_cycles[-1] - 1 <= told[-1] <= memory.stats.write_beat_cycles[-1] + 1


@cocotb.test()
async def more_addresses_than_there_is_room_for(dut) -> None:
    """Memory takes addresses, but data slowly: those beyond OUTSTANDING wait, and `others_write` counts what passes, no more."""
    memory = AxiMemory(dut, "out", SIZE, latency=5, noise=True)
    masters = [AxiDriver(dut, f"in{i}") for i in range(MASTERS)]
    await start(dut)
    step = memory.bytes_per_beat
    expected = bytearray(memory.content)
    for n in range(40):
        for i in range(MASTERS):
            addr, data = i * 0x4000 + n % 8 * 8 * step, random.randbytes(8 * step)
            expected[addr : addr + len(data)] = data
            masters[i].write(addr, data)
    for master in masters:
        await master.writes_answered(50_000)
    assert memory.content == expected
    await wait_cycles(dut, 4)
    assert not int(dut.others_write.value)


@pytest.mark.parametrize("width", [64, 512])
def test_axi_mux(width: int) -> None:
    run(
        "axi_mux",
        __file__,
        params={"N": MASTERS, "DATA_W": width, "BACKGROUND": BACKGROUND},
        ports={
            "in": Several(AxiSlave(width), MASTERS), "out": AxiMaster(width, id_width=6), "others_write": Plain("output", "logic"),
        },
        random_state=True,
    )  # fmt: skip
