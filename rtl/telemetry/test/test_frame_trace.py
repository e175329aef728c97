# SPDX-License-Identifier: Apache-2.0
"""frame_trace: what was recorded is what passed, with its time; rings, triggers and filters; what has no room is counted."""

from __future__ import annotations

import ipaddress
import random
import struct
from collections.abc import Callable
from dataclasses import dataclass

import cocotb
import pytest
from cocotb.triggers import FallingEdge, RisingEdge, with_timeout
from cocotbext.axi import AxiLiteBus, AxiLiteMaster, AxiResp
from nacelle_tb.bench import AxilSlave, AxisMonitor, Plain, Several, run
from nacelle_tb.cci import offset
from nacelle_tb.long import some
from nacelle_tb.streams import CLOCK_NS, AxisSource, start, wait_cycles
from nacelle_tb.values import digits
from nacelle_tb.widths import at_width
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import ARP, Ether

digits()

ROWS, FRAMES = 64, 32
TICKS_HZ = 200_000_000
RX, TX = 0, 1
START, STOP = 1, 2
STOPPED, WAITS, RECORDS = range(3)
NO_TRIGGER, ON_MATCH, ON_DROP = range(3)
RING, MATCHING, OF_RX, OF_TX = 4, 8, 16, 32
ETHERTYPE, ROCE, OPCODE, PEER, QPN = 1, 2, 4, 8, 16


def at(name: str) -> int:
    """Address of a register of the block."""
    return offset(f"trace.{name}")


@dataclass(frozen=True)
class Seen:
    """A frame as it passed, or as it was recorded."""

    ticks: int
    length: int
    bad: bool
    data: bytes  # what is kept


class Bench:
    def __init__(self, dut) -> None:
        self.dut = dut
        self.bytes = len(dut.seen0_tkeep)
        self.master = AxiLiteMaster(AxiLiteBus.from_prefix(dut, "bus"), dut.clk, dut.rst)
        self.sources = [AxisSource(dut, f"seen{i}", stall=0.2, noise=True) for i in range(2)]
        self.now = 2**48 - 500  # it wraps
        self.passed: list[list[Seen]] = [[], []]
        self.ready = 0.8
        dut.drop.value = 0
        dut.now.value = self.now
        dut.seen0_tready.value = 0
        dut.seen1_tready.value = 0

    async def time(self) -> None:
        while True:
            await FallingEdge(self.dut.clk)
            self.now = (self.now + 1) % 2**48
            self.dut.now.value = self.now
            for i in range(2):
                getattr(self.dut, f"seen{i}_tready").value = random.random() < self.ready

    async def watch(self, i: int) -> None:
        """What passes one direction."""
        valid, ready, keep, data, last, user = (
            getattr(self.dut, f"seen{i}_{signal}") for signal in ("tvalid", "tready", "tkeep", "tdata", "tlast", "tuser")
        )
        frame, ticks = b"", 0
        while True:
            await RisingEdge(self.dut.clk)
            if not (int(valid.value) and int(ready.value)):
                continue
            if not frame:
                ticks = int(self.dut.now.value)
            count = bin(int(keep.value)).count("1")
            frame += int(data.value).to_bytes(self.bytes, "little")[:count]
            if int(last.value):
                self.passed[i].append(Seen(ticks, len(frame), bool(int(user.value)), frame))
                frame = b""

    async def read(self, address: int) -> int:
        answer = await with_timeout(self.master.read(address, 4), 100 * CLOCK_NS, "ns")
        assert answer.resp == AxiResp.OKAY, f"{address:#x}"
        return int.from_bytes(answer.data, "little")

    async def write(self, **registers: int) -> None:
        for name, value in registers.items():
            answer = await with_timeout(self.master.write(at(name), value.to_bytes(4, "little")), 100 * CLOCK_NS, "ns")
            assert answer.resp == AxiResp.OKAY, name

    async def words(self, first: int, count: int, **window: int) -> bytes:
        """Words behind the window, by the number of the first."""
        found = b""
        for number in range(first, first + count):
            await self.write(WINDOW=number // 512 | window.get("entries", 0) << 12 | window["tx"] << 13)
            found += (await self.read(at("WORDS") + 4 * (number % 512))).to_bytes(4, "little")
        return found

    async def recorded(self, tx: int, ring: bool, snap: int) -> list[Seen]:
        """All frames that are whole, as a program reads them."""
        frames = await self.read(at("RECORDED") + 4 * tx)
        used = await self.read(at("PLACES") + 4 * tx) & 0xFFFF
        margin = -(-snap // self.bytes) if ring else 0
        found = []
        for number in range(max(0, frames - FRAMES), frames):
            low, middle, high, zero = struct.unpack("<4I", await self.words(number % FRAMES * 4, 4, entries=1, tx=tx))
            assert zero == 0 and high >> 17 == 0
            row, length = middle >> 16, high & 0xFFFF
            if (used + margin - row) % 2**16 > ROWS:
                continue
            kept, data = min(length, snap), b""
            for i in range(-(-kept // self.bytes)):
                words = self.bytes // 4
                data += await self.words((row + i) % ROWS * words, words, tx=tx)
            found.append(Seen((middle & 0xFFFF) << 32 | low, length, bool(high >> 16 & 1), data[:kept]))
        return found

    async def missed(self, tx: int) -> int:
        return await self.read(at("PLACES") + 4 * tx) >> 16

    async def trigger(self) -> int:
        return (await self.read(at("STATE")) >> 16) << 32 | await self.read(at("TRIGGER"))

    async def drained(self) -> None:
        for source in self.sources:
            await source.drained()
        await wait_cycles(self.dut, 4)

    async def state(self) -> tuple[int, bool]:
        value = await self.read(at("STATE"))
        return value & 3, bool(value >> 2 & 1)


async def begin(dut) -> Bench:
    bench = Bench(dut)
    await start(dut)
    cocotb.start_soon(bench.time())
    for i in range(2):
        cocotb.start_soon(bench.watch(i))
    return bench


def cut(frames: list[Seen], snap: int) -> list[Seen]:
    return [Seen(frame.ticks, frame.length, frame.bad, frame.data[:snap]) for frame in frames]


def some_frame() -> bytes:
    return random.randbytes(random.choice([1, 14, 60, 64, 65, 127, 128, random.randrange(1, 400)]))


def roce(opcode: int = 4, qpn: int = 2, source: str = "10.0.0.9", destination: str = "10.0.0.2", port: int = 4791) -> bytes:
    """A RoCE frame, as far as headers go."""
    headers = Ether() / IP(src=source, dst=destination) / UDP(sport=49152, dport=port)
    return bytes(headers / (struct.pack(">BBHIIQ", opcode, 0, 0xFFFF, qpn, 0, 0) + bytes(20)))


@cocotb.test()
async def what_passes_is_recorded(dut) -> None:
    """Frames of all lengths in both directions at once, a beat in every cycle at times; the last ones are there."""
    bench = await begin(dut)
    for snap, ready in ((256, 0.7), (100, 1.0), (64, 1.0)):
        bench.ready = ready
        for source in bench.sources:
            source.stall = 1 - ready
        await bench.write(SNAP=snap, MODE=RING | OF_RX | OF_TX, COMMAND=START)
        bench.passed = [[], []]
        for _ in range(100):
            for source in bench.sources:
                source.send(some_frame(), bad=random.random() < 0.2)
        await bench.drained()
        await bench.write(COMMAND=STOP)
        for tx in range(2):
            assert await bench.read(at("RECORDED") + 4 * tx) == 100
            assert await bench.missed(tx) == 0
            found = await bench.recorded(tx, True, snap)
            assert len(found) >= min(FRAMES, ROWS // -(-snap // bench.bytes) - 1), f"{len(found)} of snap {snap}"
            assert found == cut(bench.passed[tx], snap)[-len(found) :]
    await wait_cycles(dut, 2)
    assert int(dut.idle.value)


@cocotb.test()
async def it_is_filled_once(dut) -> None:
    """What comes first stays; what has no room is counted, and smaller frames may still find room."""
    bench = await begin(dut)
    snap = 4 * bench.bytes
    await bench.write(SNAP=snap, MODE=OF_RX | OF_TX, COMMAND=START)
    for _ in range(40):
        bench.sources[RX].send(random.randbytes(5 * bench.bytes))
        bench.sources[TX].send(random.randbytes(bench.bytes))
    await bench.drained()
    assert await bench.state() == (RECORDS, False)
    await bench.write(COMMAND=STOP)
    for tx, fit in ((RX, ROWS // 4), (TX, FRAMES)):
        assert await bench.read(at("RECORDED") + 4 * tx) == fit
        assert await bench.missed(tx) == 40 - fit
        assert await bench.recorded(tx, False, snap) == cut(bench.passed[tx], snap)[:fit]
    await bench.write(COMMAND=START)
    assert [await bench.missed(tx) for tx in range(2)] == [0, 0]


@cocotb.test()
async def it_begins_and_ends_between_frames(dut) -> None:
    """A frame that began before the start is not recorded, nor is one that ends after the stop."""
    bench = await begin(dut)
    bench.ready = 1.0
    bench.sources[RX].stall = 0
    long = 40 * bench.bytes
    bench.sources[RX].send(random.randbytes(long))
    await wait_cycles(dut, 8)
    await bench.write(SNAP=bench.bytes, COMMAND=START)
    bench.sources[RX].send(random.randbytes(bench.bytes))
    await bench.drained()
    bench.sources[RX].send(random.randbytes(long))
    await wait_cycles(dut, 8)
    await bench.write(COMMAND=STOP)
    await bench.drained()
    assert [frame.length for frame in bench.passed[RX]] == [long, bench.bytes, long]
    assert await bench.recorded(RX, False, bench.bytes) == bench.passed[RX][1:2]
    bench.sources[RX].send(bytes(64))
    await bench.drained()
    assert await bench.read(at("RECORDED")) == 1 and await bench.state() == (STOPPED, False)


@cocotb.test()
async def it_stops_after_frames(dut) -> None:
    bench = await begin(dut)
    await bench.write(SNAP=64, AFTER=5, MODE=OF_TX, COMMAND=START)
    for _ in range(9):
        for source in bench.sources:
            source.send(bytes(64))
    await bench.drained()
    assert await bench.state() == (STOPPED, False)
    assert [await bench.read(at("RECORDED") + 4 * tx) for tx in range(2)] == [0, 5]


@cocotb.test()
async def a_frame_is_the_trigger(dut) -> None:
    """It is recorded, with some before it and a number after it."""
    bench = await begin(dut)
    await bench.write(SNAP=64, AFTER=3, QPN_RX=7, MATCH=ROCE | QPN, MODE=ON_MATCH | RING | OF_RX | OF_TX, COMMAND=START)
    for _ in range(5):
        bench.sources[RX].send(roce(qpn=6))
    await bench.drained()
    assert await bench.state() == (WAITS, False)
    bench.sources[RX].send(roce(qpn=7))
    for _ in range(6):
        bench.sources[RX].send(roce(qpn=6))
    await bench.drained()
    assert await bench.state() == (STOPPED, True)
    assert await bench.read(at("RECORDED")) == 9
    found = await bench.recorded(RX, True, 64)
    assert len(found) >= 6 and found == cut(bench.passed[RX], 64)[9 - len(found) : 9]
    trigger = await bench.trigger()
    assert 0 < (trigger - bench.passed[RX][5].ticks) % 2**48 <= 40


@cocotb.test()
async def a_drop_is_the_trigger(dut) -> None:
    bench = await begin(dut)
    await bench.write(SNAP=64, AFTER=1, MODE=ON_DROP | RING | OF_RX | OF_TX, COMMAND=START)
    for source in bench.sources:
        source.send(bytes(64))
    await bench.drained()
    assert await bench.state() == (WAITS, False)
    await FallingEdge(dut.clk)
    dut.drop.value = 1
    moment = bench.now
    await FallingEdge(dut.clk)
    dut.drop.value = 0
    await wait_cycles(dut, 2)
    assert await bench.state() == (RECORDS, True)
    trigger = await bench.trigger()
    assert 0 <= (trigger - moment) % 2**48 <= 3
    bench.sources[TX].send(bytes(64))
    await bench.drained()
    assert await bench.state() == (STOPPED, True)
    assert [await bench.read(at("RECORDED") + 4 * tx) for tx in range(2)] == [1, 2]
    # Without a trigger in its settings a drop is none.
    await bench.write(AFTER=0, MODE=OF_RX, COMMAND=START)
    dut.drop.value = 1
    await wait_cycles(dut, 4)
    assert await bench.state() == (RECORDS, False)


PLAIN = roce()
FILTERS: dict[str, tuple[dict[str, int], Callable[[], bytes], Callable[[], bytes]]] = {
    "ethertype": ({"MATCH": ETHERTYPE, "ETHERTYPE": 0x806}, lambda: bytes(Ether() / ARP() / bytes(18)), roce),
    "roce": ({"MATCH": ROCE}, roce, lambda: roce(port=4790)),
    "opcode": ({"MATCH": OPCODE, "OPCODE": 0x11}, lambda: roce(opcode=0x11), roce),
    "peer": (
        {"MATCH": PEER, "PEER": 0x0A000009},
        lambda: roce(source="10.0.0.9", destination="10.0.0.9"),
        lambda: roce(source="10.0.0.8", destination="10.0.0.8"),
    ),
    "qpn": ({"MATCH": QPN, "QPN_RX": 0x123456, "QPN_TX": 0x123456}, lambda: roce(qpn=0x123456), lambda: roce(qpn=0x123457)),
    "all": (
        {"MATCH": 31, "ETHERTYPE": 0x800, "OPCODE": 4, "PEER": 0x0A000009, "QPN_RX": 2, "QPN_TX": 2},
        lambda: roce(destination="10.0.0.9"),
        lambda: roce(destination="10.0.0.9", qpn=3),
    ),
    "short": ({"MATCH": QPN, "QPN_RX": 2, "QPN_TX": 2}, lambda: PLAIN[:50], lambda: PLAIN[:49]),
    "short peer": ({"MATCH": PEER, "PEER": 0x0A000002}, lambda: roce(source="10.0.0.2"), lambda: PLAIN[:29]),
}


@cocotb.test()
async def only_frames_that_match(dut) -> None:
    """Each term by itself and all together; all bits of an address count; the peer is the other side."""
    bench = await begin(dut)
    snap = bench.bytes
    for name, (settings, yes, no) in FILTERS.items():
        await bench.write(SNAP=snap, MODE=MATCHING | OF_RX | OF_TX, **settings, COMMAND=START)
        bench.passed = [[], []]
        expected: list[list[bool]] = [[], []]
        for _ in range(30):
            for i, source in enumerate(bench.sources):
                expected[i].append(random.random() < 0.5)
                source.send(yes() if expected[i][-1] else no())
        await bench.drained()
        await bench.write(COMMAND=STOP)
        for tx in range(2):
            wanted = [frame for frame, is_wanted in zip(bench.passed[tx], expected[tx], strict=True) if is_wanted]
            assert await bench.recorded(tx, False, snap) == cut(wanted, snap)[:FRAMES], name
            assert await bench.missed(tx) == 0
    for bit in range(32):
        source = str(ipaddress.IPv4Address(0x0A000009 ^ 1 << bit))
        await bench.write(MATCH=PEER, PEER=0x0A000009, COMMAND=START)
        bench.sources[RX].send(roce(source=source))
        await bench.drained()
        assert await bench.read(at("RECORDED")) == 0, source
    # Of what is received the source, of what is sent the destination.
    await bench.write(MATCH=PEER, PEER=0x0A000009, COMMAND=START)
    for source in bench.sources:
        source.send(roce(source="10.0.0.9", destination="10.0.0.2"))
        source.send(roce(source="10.0.0.2", destination="10.0.0.9"))
    await bench.drained()
    await bench.write(COMMAND=STOP)
    assert await bench.recorded(RX, False, snap) == cut(bench.passed[RX], snap)[-2:-1]
    assert await bench.recorded(TX, False, snap) == cut(bench.passed[TX], snap)[-1:]


@cocotb.test()
async def registers(dut) -> None:
    bench = await begin(dut)
    assert await bench.read(0) == int.from_bytes(b"TRAC", "big")
    assert await bench.read(at("NEXT")) == 0x10000
    facts = {"TICKS_HZ": TICKS_HZ, "ROW_BYTES": bench.bytes, "ROWS": ROWS, "FRAMES": FRAMES}
    for name, value in facts.items():
        assert await bench.read(at(name)) == value, name
    for name in ("TYPE", "STATE", "RECORDED", "PLACES", "WORDS"):
        assert (await bench.master.write(at(name), b"abcd")).resp == AxiResp.DECERR
    assert (await bench.master.write(at("SNAP"), b"a")).resp == AxiResp.SLVERR
    for address in (at("COMMAND"), at("PEER"), at("WINDOW"), 0x48, 0x78, 0x7C, 0x80, 0x7FC):
        answer = await bench.master.read(address, 4)
        assert (answer.data, answer.resp) == (bytes(4), AxiResp.DECERR), f"{address:#x}"


@pytest.mark.parametrize("width", some([64, 512]))
def test_frame_trace(width: int) -> None:
    run(
        "frame_trace",
        __file__,
        params={"DATA_W": width, "ROWS": ROWS, "FRAMES": FRAMES, "TICKS_HZ": TICKS_HZ, "NEXT": 0x10000},
        ports={
            "now": Plain("input", "logic [47:0]"),
            "seen": Several(AxisMonitor(width), 2),
            "drop": Plain("input", "logic"),
            "bus": AxilSlave(12),
            "idle": Plain("output", "logic"),
        },
        env=at_width(width, "^(?!.*(only_frames|registers))"),
        random_state=True,
    )
