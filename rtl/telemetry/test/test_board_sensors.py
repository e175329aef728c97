# SPDX-License-Identifier: Apache-2.0
"""board_sensors: each sensor has the value that came last, and when; one that is no longer renewed has none."""

from __future__ import annotations

import random

import cocotb
from cocotb.triggers import FallingEdge, with_timeout
from cocotbext.axi import AxiLiteBus, AxiLiteMaster, AxiResp
from nacelle_tb.bench import AxilSlave, Clock, Sink, Type, run
from nacelle_tb.cci import offset
from nacelle_tb.streams import CLOCK_NS, StreamSource, start, wait_cycles
from nacelle_tb.values import digits

digits()

NAMES = ["fpga", "vccint", "vccint", "0123456789abcdef", "~!"]
KINDS = [1, 2, 3, 4, 5]
PLACES = 16
CLOCK_HZ, NEXT = 200_000_000, 0x10000
READING = "sensors_pkg::sensor_reading_t"
TICK = 1 << 16  # cycles
EPOCH = 1 << 32
VISIT = 80  # cycles in which all are visited, and a reading is taken
KNOWN, SIMULATED = 1 << 24, 1 << 25


def at(name: str, sensor: int = 0) -> int:
    """Address of a register of the block."""
    return offset(f"sensors.{name}") + 4 * sensor


class Bench:
    """A monitor of a board, and what the registers should say."""

    def __init__(self, dut) -> None:
        self.dut = dut
        self.master = AxiLiteMaster(AxiLiteBus.from_prefix(dut, "bus"), dut.clk, dut.rst)
        self.readings = StreamSource(dut, "reading", READING, stall=0.3, noise=True)
        self.cycles = 0
        self.jumped = (1 << 48) - 3000  # the time wraps
        self.kept: dict[int, tuple[int, bool, int]] = {}  # value, simulated, when
        dut.now.value = self.jumped

    async def clock(self) -> None:
        while True:
            await FallingEdge(self.dut.clk)
            self.cycles += 1

    @property
    def now(self) -> int:
        return self.cycles + self.jumped

    async def jump(self, cycles: int) -> None:
        """Time passes in one cycle, after all that was told, and what follows from it is done."""
        await self.readings.drained()
        self.jumped += cycles
        self.dut.now.value = self.jumped % 2**48
        await wait_cycles(self.dut, VISIT)

    def tell(self, sensor: int, value: int, known: bool = True, simulated: bool = False) -> None:
        self.readings.send({"sensor": sensor, "known": known, "simulated": simulated, "value": value % 2**32})
        if sensor < len(NAMES):
            self.kept.pop(sensor, None)
            if known:
                self.kept[sensor] = (value, simulated, self.now)

    async def read(self, address: int) -> int:
        answer = await with_timeout(self.master.read(address, 4), 100 * CLOCK_NS, "ns")
        assert answer.resp == AxiResp.OKAY, f"{address:#x}"
        return int.from_bytes(answer.data, "little")

    async def compare(self) -> None:
        """All that was told is there, and nothing else."""
        await self.readings.drained()
        await wait_cycles(self.dut, 4)
        for sensor in range(PLACES):
            value, state, now = [await self.read(address) for address in (at("VALUE", sensor), at("STATE", sensor), at("NOW"))]
            if sensor >= len(NAMES):
                assert (value, state) == (0, 0), sensor
            elif sensor not in self.kept:
                assert not state & KNOWN, sensor
            else:
                expected, simulated, when = self.kept[sensor]
                flags = KNOWN | SIMULATED * simulated
                assert (value, state & ~(KNOWN - 1)) == (expected % 2**32, flags), sensor
                age = (now - state) % KNOWN
                # It may have waited for others, and units begin at any cycle.
                assert age - 1 <= (self.now - when) / TICK <= age + 2, sensor


async def begin(dut) -> Bench:
    bench = Bench(dut)
    await start(dut)
    cocotb.start_soon(bench.clock())
    await FallingEdge(dut.clk)
    return bench


@cocotb.test()
async def facts(dut) -> None:
    bench = await begin(dut)
    await bench.compare()  # nothing is known
    for name, value in {"TYPE": 0x53454E53, "NEXT": NEXT, "CLOCK_HZ": CLOCK_HZ, "SENSORS": len(NAMES)}.items():
        assert await bench.read(at(name)) == value, name
    for sensor in range(PLACES):
        text = b"".join([(await bench.read(at("NAME", 4 * sensor + word))).to_bytes(4, "little") for word in range(4)])
        name, kind = (NAMES[sensor], KINDS[sensor]) if sensor < len(NAMES) else ("", 0)
        assert (text.rstrip(b"\0").decode(), await bench.read(at("KIND", sensor))) == (name, kind)
    for address in (0x18, 0x3C, 0x200, 0xFFC):
        answer = await with_timeout(bench.master.read(address, 4), 100 * CLOCK_NS, "ns")
        assert answer.resp == AxiResp.DECERR
    for name in ("SENSORS", "NOW", "KIND", "VALUE", "STATE", "NAME"):
        written = await with_timeout(bench.master.write(at(name), b"abcd"), 100 * CLOCK_NS, "ns")
        assert written.resp == AxiResp.DECERR


@cocotb.test()
async def the_last_value_counts(dut) -> None:
    """Of each sensor, whatever comes for the others, also of numbers that no sensor has, and while registers are read."""
    bench = await begin(dut)

    async def reads() -> None:
        while True:
            await bench.read(at(random.choice(("VALUE", "STATE", "NAME")), random.randrange(PLACES)))

    for _ in range(30):
        reader = cocotb.start_soon(reads())
        for _ in range(random.randrange(1, 30)):
            value = random.choice((0, 1, -1, 2**31 - 1, -(2**31), random.randrange(-(2**31), 2**31)))
            bench.tell(random.randrange(PLACES), value, random.random() < 0.8, random.random() < 0.5)
            await wait_cycles(dut, random.choice((0, 0, 3, 30)))
        await bench.readings.drained()
        reader.cancel()
        await wait_cycles(dut, 20)
        await bench.compare()
        await bench.jump(random.choice((0, 1000, TICK - 1, 5 * TICK, 1 << 26)))
        await bench.compare()


@cocotb.test()
async def a_value_that_is_not_renewed_is_none(dut) -> None:
    """Not before 2^32 cycles and not after 2^33, and it does not come back when its time wraps. The others keep theirs."""
    bench = await begin(dut)
    for phase in (0, EPOCH // 2, EPOCH - 10 * TICK):
        await bench.jump(phase)
        for sensor in range(len(NAMES)):
            bench.tell(sensor, 1000 + sensor, simulated=True)
        for _ in range(2):
            await bench.jump(EPOCH // 2 - 2 * TICK)
            bench.tell(1, 7)
            await bench.compare()
        for _ in range(2):
            await bench.jump(EPOCH // 2 + 2 * TICK)
            bench.tell(1, 8)
        bench.kept = {1: bench.kept[1]}
        await bench.compare()
    for _ in range(2 * 2**40 // EPOCH):
        await bench.jump(EPOCH // 2)
        bench.tell(1, -9)
        assert not await bench.read(at("STATE", 0)) & KNOWN
    bench.tell(0, 3)
    await bench.compare()


def test_board_sensors() -> None:
    def packed(values: list[int], bits: int) -> Type:
        """The first value lowest."""
        return Type(f"{PLACES * bits}'h{sum(value << bits * i for i, value in enumerate(values)):x}")

    run(
        "board_sensors",
        __file__,
        params={
            "SENSORS": len(NAMES),
            "NAMES": packed([int.from_bytes(name.encode(), "little") for name in NAMES], 128),
            "KINDS": packed(KINDS, 8),
            "CLOCK_HZ": CLOCK_HZ,
            "NEXT": NEXT,
        },
        ports={"now": Clock(), "reading": Sink(READING), "bus": AxilSlave(12)},
        random_state=True,
    )
