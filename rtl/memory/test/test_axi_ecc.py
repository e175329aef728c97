# SPDX-License-Identifier: Apache-2.0
"""axi_ecc: memory is as without it, flipped bits or not; what cannot be corrected is an error, to who reads it or writes a part."""

import random

import cocotb
import pytest
from cocotb.triggers import RisingEdge
from nacelle_tb.bench import AxiMaster, AxiSlave, Plain, run
from nacelle_tb.ecc import WORD, EccMemory
from nacelle_tb.long import alternately
from nacelle_tb.memory import DECERR, OKAY, SLVERR, AxiDriver
from nacelle_tb.streams import start, wait_cycles
from nacelle_tb.widths import at_width

SIZE = 1 << 14
BITS = 72


class Pulses:
    """Counts those of `corrected`."""

    def __init__(self, dut) -> None:
        self.count = 0
        cocotb.start_soon(self._run(dut))

    async def _run(self, dut) -> None:
        while True:
            await RisingEdge(dut.clk)
            self.count += int(dut.corrected.value) if not int(dut.rst.value) else 0


def merge(expected: bytearray, addr: int, data: bytes, strobes: int) -> None:
    for i, byte in enumerate(data):
        if strobes >> i & 1:
            expected[addr + i] = byte


async def read(master: AxiDriver, addr: int, beats: int = 1) -> tuple[bytes, int]:
    master.read(addr, beats)
    _, data, response = await master.read_result()
    return data, response


def two_flips() -> int:
    first, second = random.sample(range(BITS), 2)
    return 1 << first | 1 << second


@cocotb.test()
@cocotb.parametrize(lines=[2, 12, 200], stall=alternately([0.0, 0.3]))
async def bytes_land_where_they_belong(dut, lines: int, stall: float) -> None:
    """Writes of any bytes to few places, so that many meet; all others stay. Bits flip at rest, one of a word."""
    memory = EccMemory(dut, "out", SIZE, latency=(1, 60), stall=stall, noise=True)
    memory.write(0, random.randbytes(SIZE))
    master, pulses = AxiDriver(dut, "in", stall), Pulses(dut)
    await start(dut)
    step = memory.bytes_per_beat
    expected = bytearray(memory.content)
    for _ in range(20):
        for _ in range(20):
            line = random.randrange(lines)
            beats = random.randint(1, min(4, lines - line, 4096 // step - line % (4096 // step)))
            first, size = random.randrange(step), random.choice([1, 3, 8, step, beats * step])
            bits = (1 << size) - 1 << first if random.random() < 0.7 else random.getrandbits(beats * step)
            bits &= (1 << beats * step) - 1
            data = random.randbytes(beats * step)
            merge(expected, line * step, data, bits)
            master.write(line * step, data, ident=random.randrange(16), strobes=bits)
        if random.random() < 0.5:
            master.read(0, min(lines, 4))  # meanwhile, whatever it gives
            assert (await master.read_result())[2] == OKAY
        await master.writes_answered()
        assert memory.content == expected and memory.sound()
        for at in random.sample(range(0, lines * step, WORD), 2):
            flips = 1 << random.randrange(BITS)
            memory.flip(at, flips)
            assert await read(master, at // step * step) == (bytes(expected[at // step * step :][:step]), OKAY)
            memory.flip(at, flips)
    assert master.write_errors == 0 and 30 < pulses.count <= 40


@cocotb.test()
async def each_single_flip_is_corrected(dut) -> None:
    memory = EccMemory(dut, "out", SIZE, latency=5)
    master, pulses = AxiDriver(dut, "in"), Pulses(dut)
    await start(dut)
    step = memory.bytes_per_beat
    for bit in range(BITS):
        data = random.randbytes(2 * step)
        memory.write(0, data)
        for at in range(0, step, WORD):
            memory.flip(at, 1 << bit)  # in each word of the first beat
        assert await read(master, 0, 2) == (data, OKAY)
    await wait_cycles(dut, 2)
    assert pulses.count == BITS


@cocotb.test()
async def two_flips_are_an_error_of_their_beat(dut) -> None:
    memory = EccMemory(dut, "out", SIZE, latency=5)
    master, pulses = AxiDriver(dut, "in"), Pulses(dut)
    await start(dut)
    step = memory.bytes_per_beat
    for _ in range(200):
        data = random.randbytes(step)
        memory.write(0, data)
        flips, word = two_flips(), random.randrange(0, step, WORD)
        memory.flip(word, flips)
        assert await read(master, 0) == (bytes(memory.content[:step]), SLVERR)
        assert (await read(master, step)) == (bytes(step), OKAY)
    assert pulses.count == 0


@cocotb.test()
async def a_part_of_a_flipped_word_is_written(dut) -> None:
    """One flip: the word is whole again in memory. Two: it stays bad and the write is an error; its other words are written. A
    write of the whole word makes it good."""
    memory = EccMemory(dut, "out", SIZE, latency=(1, 20), stall=0.2)
    master = AxiDriver(dut, "in", 0.2)
    await start(dut)
    step = memory.bytes_per_beat
    before, data = random.randbytes(step), random.randbytes(step)
    for twice in (False, True) * 30:
        memory.write(0, before)
        word, byte = random.randrange(0, step, WORD), random.randrange(WORD)
        memory.flip(word, two_flips() if twice else 1 << random.randrange(BITS))
        stored = bytes(memory.content[:step])
        strobes = 0xFF << random.randrange(0, step, WORD) & ~(0xFF << word) | 1 << word + byte
        expected = bytearray(before)
        if twice:
            expected[word : word + WORD] = stored[word : word + WORD]
        merge(expected, 0, data, strobes & ~(0xFF << word) if twice else strobes)
        errors, answers = master.write_errors, master.answers
        master.write(0, data, strobes=strobes)
        if twice and random.random() < 0.5:  # another part, taken from the beat before: bad as well
            master.write(0, data, strobes=1 << word + (byte + 1) % WORD)
        await master.writes_answered()
        assert memory.content[:step] == expected
        assert (await read(master, 0))[1] == (SLVERR if twice else OKAY)
        assert master.write_errors - errors == (master.answers - answers if twice else 0)
        master.write(0, data, strobes=0xFF << word)
        await master.writes_answered()
        merge(expected, 0, data, 0xFF << word)
        assert await read(master, 0) == (bytes(expected), OKAY)


@cocotb.test()
async def an_error_is_of_one_burst(dut) -> None:
    """Of several under way the one that wrote a part of the bad word, wherever in the burst."""
    memory = EccMemory(dut, "out", SIZE, latency=(1, 40))
    master = AxiDriver(dut, "in")
    await start(dut)
    step = memory.bytes_per_beat
    memory.flip(2 * step, two_flips())
    asked = []
    for i in range(16):
        bad = random.random() < 0.5
        first = random.randrange(3) if bad else 4 + i
        strobes = ((1 << 4 * step) - 1) ^ (1 << (2 - first) * step) if bad else (1 << 4 * step) - 2
        asked.append((i, SLVERR if bad else OKAY))
        master.write(first * step, random.randbytes(4 * step), ident=i, strobes=strobes)
    got = []
    while len(got) < 16:
        await RisingEdge(dut.clk)
        if int(dut.in_bvalid.value) and int(dut.in_bready.value):
            got.append((int(dut.in_bid.value), int(dut.in_bresp.value)))
    assert got == asked


@cocotb.test()
async def errors_of_memory_pass(dut) -> None:
    memory = EccMemory(dut, "out", SIZE, latency=3)
    master, pulses = AxiDriver(dut, "in"), Pulses(dut)
    await start(dut)
    step = memory.bytes_per_beat
    assert (await read(master, SIZE))[1] == DECERR
    master.write(SIZE, bytes(step))
    master.write(SIZE, bytes(step), strobes=1)
    await master.writes_answered()
    assert master.write_errors == 2 and pulses.count == 0 and not any(memory.content)


@cocotb.test()
async def unaligned_packets_in_a_row(dut) -> None:
    """Each begins in the beat in which the one before ends: only the first beat and the last are read, and it is no slower."""
    memory = EccMemory(dut, "out", SIZE, latency=30)
    memory.write(0, random.randbytes(SIZE))
    master = AxiDriver(dut, "in")
    await start(dut)
    step = memory.bytes_per_beat
    expected = bytearray(memory.content)
    at, size = 3, 5 * step
    for _ in range(12):
        begin, end = at // step * step, -(-(at + size) // step) * step
        data, bits = random.randbytes(end - begin), (1 << size) - 1 << at - begin
        merge(expected, begin, data, bits)
        master.write(begin, data, strobes=bits)
        at += size
    await master.writes_answered()
    assert memory.content == expected and memory.sound()
    assert memory.stats.read_bursts == 1 + 12, "the first beat, and the last of each packet"
    cycles = memory.stats.write_beat_cycles
    assert cycles[-1] - cycles[0] < 12 * (6 + 2) + 45, "two beats of a packet wait a cycle, and the last one for memory"


@cocotb.test()
async def it_costs_what_it_says(dut) -> None:
    memory = EccMemory(dut, "out", SIZE, latency=20)
    master = AxiDriver(dut, "in")
    await start(dut)
    step = memory.bytes_per_beat
    seen: dict[str, list[int]] = {}

    async def watch() -> None:
        names = ("in_ar", "out_ar", "out_r", "in_r", "in_aw", "in_w", "out_aw", "out_w", "out_b", "in_b")
        cycle = 0
        while True:
            await RisingEdge(dut.clk)
            cycle += 1
            for name in names:
                if int(getattr(dut, f"{name}valid").value) and int(getattr(dut, f"{name}ready").value):
                    seen.setdefault(name, []).append(cycle)

    cocotb.start_soon(watch())
    for _ in range(4):
        master.read(0, 8)
    for _ in range(4):
        await master.read_result()
    for i in range(8):
        master.write(i % 2 * 8 * step, random.randbytes(8 * step))
    await master.writes_answered()
    assert seen["out_ar"][0] - seen["in_ar"][0] == 1
    assert [back - there for there, back in zip(seen["out_r"], seen["in_r"], strict=True)] == [2] * 32
    assert seen["out_w"][0] - seen["in_w"][0] == 3 and seen["out_w"][0] == seen["out_aw"][0]
    assert seen["in_b"] == seen["out_b"]
    for channel, beats in (("in_r", 32), ("out_w", 64)):
        assert seen[channel][-1] - seen[channel][0] == beats - 1, f"{channel} has gaps"


@pytest.mark.parametrize("width", [64, 512])
def test_axi_ecc(width: int) -> None:
    run(
        "axi_ecc",
        __file__,
        params={"DATA_W": width},
        ports={
            "in": AxiSlave(width), "out": AxiMaster(width // 8 * 9, id_width=5), "corrected": Plain("output", "logic"),
        },
        env=at_width(width, "lines=12|flip|error|unaligned|costs"),
        random_state=True,
    )  # fmt: skip
