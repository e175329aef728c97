# SPDX-License-Identifier: Apache-2.0
"""axi_crossbar: each master reaches each memory; addresses of no memory are refused; a slow memory delays no other."""

import random
from collections import deque

import cocotb
import pytest
from nacelle_tb.bench import AxiMaster, AxiSlave, Plain, Several, run
from nacelle_tb.long import alternately
from nacelle_tb.memory import AxiDriver, AxiMemory
from nacelle_tb.streams import start, wait_cycles

MASTERS, MEMORIES = 4, 3
WIRED = 3
"""The master that reaches memory 1 alone"""
REACH = [(0, 1, 2), (0, 1), (1, 0), (1,)]
"""The memories of each master; the first one has all, and memory 2 for itself"""
SIZE = 1 << 16
BASES = [0, 1 << 40, 1 << 41]
NOWHERE = [1 << 16, (1 << 40) - 4096, (1 << 40) + SIZE, 1 << 63]
DECERR = 3


def memories(dut, **of_the_second: object) -> list[AxiMemory]:
    return [
        AxiMemory(dut, "out0", SIZE, BASES[0], noise=True, **({"latency": 5} | of_the_second.pop("first", {}))),
        AxiMemory(dut, "out1", SIZE, BASES[1], noise=True, **({"latency": 5} | of_the_second)),
        AxiMemory(dut, "out2", SIZE, BASES[2], noise=True, latency=5),
    ]


@cocotb.test()
@cocotb.parametrize(stall=alternately([0.0, 0.4]), reorder=[False, True])
async def every_master_finds_every_memory(dut, stall: float, reorder: bool) -> None:
    """Each has a part of each memory; results come in the order of its addresses, whichever memory they are of."""
    memory = memories(dut, latency=(1, 60), stall=stall, reorder=reorder, first={"latency": (1, 9), "stall": stall})
    for one in memory:
        one.write(one.base, random.randbytes(SIZE))
    masters = [AxiDriver(dut, f"in{i}", stall) for i in range(MASTERS)]
    await start(dut)
    step = memory[0].bytes_per_beat
    expected = [bytearray(one.content) for one in memory]
    reads: list[deque[tuple[int, bytes, int]]] = [deque() for _ in masters]
    refused = [0] * MASTERS
    for _ in range(120):
        i = random.randrange(MASTERS)
        k = random.choice(REACH[i])
        offset = random.randrange(i * 0x2000, (i + 1) * 0x2000 - 1024, step)
        beats = random.randint(1, min(8, (4096 - offset % 4096) // step))
        if i != WIRED and random.random() < 0.2:
            where = random.choice(NOWHERE + [BASES[k] for k in range(MEMORIES) if k not in REACH[i]])
            if random.random() < 0.5:
                masters[i].write(where, random.randbytes(beats * step))
                refused[i] += 1
            else:
                reads[i].append((0, b"\xff" * beats * step, DECERR))
                masters[i].read(where, beats)
        elif random.random() < 0.5:
            data = random.randbytes(beats * step)
            expected[k][offset : offset + len(data)] = data
            masters[i].write(BASES[k] + offset, data)
        else:
            offset = offset % 0x8000 + 0x8000  # no master writes there
            beats = min(beats, (4096 - offset % 4096) // step)
            reads[i].append((0, memory[k].read(BASES[k] + offset, beats * step), 0))
            masters[i].read(BASES[k] + offset, beats)
    for master, want, errors in zip(masters, reads, refused, strict=True):
        assert [await master.read_result() for _ in want] == list(want)
        await master.writes_answered()
        assert master.write_errors == errors
    assert [one.content for one in memory] == expected


@cocotb.test()
async def a_slow_memory_slows_nobody_else(dut) -> None:
    """One beat a cycle at the fast memory in each direction while the other one does next to nothing."""
    memory = memories(dut, latency=400, stall=0.9)
    masters = [AxiDriver(dut, f"in{i}") for i in range(MASTERS)]
    await start(dut)
    step = memory[0].bytes_per_beat
    for i in range(10):
        for master in masters[2:]:
            master.write(BASES[1] + i * 8 * step, bytes(8 * step))
            master.read(BASES[1] + i * 8 * step, 8)
    await wait_cycles(dut, 600)
    for i in range(60):
        for master in masters[:2]:
            master.write(i * step, bytes(step))
            master.read(i * step, 1)
    for master in masters[:2]:
        await master.writes_answered()
        for _ in range(60):
            await master.read_result()
    for cycles in (memory[0].stats.write_beat_cycles, memory[0].stats.read_beat_cycles):
        assert len(cycles) == 120
        assert cycles[-1] - cycles[0] == 119
    assert len(memory[1].stats.read_beat_cycles) < 160, "the slow memory was slow"
    for master in masters[2:]:
        await master.writes_answered()
        for _ in range(10):
            await master.read_result()


@cocotb.test()
async def one_memory_at_a_time_without_a_bubble(dut) -> None:
    """A master alone: one beat a cycle at each memory."""
    memory = memories(dut, latency=20)
    master = AxiDriver(dut, "in0")
    await start(dut)
    step = memory[0].bytes_per_beat
    for base in BASES:
        for i in range(40):
            master.write(base + i * step, bytes(step))
            master.read(base + i * step, 1)
    await master.writes_answered()
    for _ in range(80):
        await master.read_result()
    for one in memory:
        for cycles in (one.stats.write_beat_cycles, one.stats.read_beat_cycles):
            assert len(cycles) == 40 and cycles[-1] - cycles[0] == 39


@cocotb.test()
async def tells_where_others_write(dut) -> None:
    memory = memories(dut, latency=50)
    masters = [AxiDriver(dut, f"in{i}") for i in range(MASTERS)]
    await start(dut)
    step = memory[0].bytes_per_beat
    masters[WIRED].write(BASES[1], bytes(16 * step))
    await wait_cycles(dut, 8)
    assert int(dut.others_write.value) == 2
    await masters[WIRED].writes_answered()
    assert int(dut.others_write.value) == 0


@pytest.mark.parametrize("width", [64, 512])
def test_axi_crossbar(width: int) -> None:
    ranges = ", ".join(f"64'h{base:x}, 64'h{SIZE:x}" for base in reversed(BASES))
    reach = "{" + ", ".join(f"3'd{sum(1 << k for k in memories)}" for memories in reversed(REACH)) + "}"
    run(
        "axi_crossbar",
        __file__,
        params={"N": MASTERS, "M": MEMORIES, "DATA_W": width, "MAP": f"{{{ranges}}}", "REACH": reach},
        ports={
            "in": Several(AxiSlave(width), MASTERS),
            "out": Several(AxiMaster(width, id_width=6), MEMORIES),
            "others_write": Plain("output", "logic [2:0]"),
        },
        random_state=True,
    )
