# SPDX-License-Identifier: Apache-2.0
"""The classifier behind a line, for its tests: registers, verdicts, frames of few values."""

from __future__ import annotations

import random
from typing import Any

import cocotb
from cocotb.triggers import RisingEdge, with_timeout
from cocotbext.axi import AxiLiteBus, AxiLiteMaster, AxiResp
from nacelle_tb.bench import AxilSlave, AxisMonitor, Plain, run
from nacelle_tb.cci import offset
from nacelle_tb.classifier import GROUP, Rule
from nacelle_tb.streams import CLOCK_NS, AxisSource, start, wait_cycles
from nacelle_tb.svtypes import struct
from nacelle_tb.values import digits
from scapy.contrib.roce import BTH
from scapy.layers.inet import ICMP, IP, TCP, UDP, IPOption_Router_Alert
from scapy.layers.inet6 import IPv6, IPv6ExtHdrFragment
from scapy.layers.l2 import ARP, Dot1AD, Dot1Q, Ether
from scapy.packet import Raw

digits()

VERDICT = 10  # cycles from a last beat to the verdict of packet_rx
BUSY, COMMIT, CLEAR, MOST_OFFSET = 1, 1, 2, 112
MACS = ("02:00:00:00:00:01", "06:00:00:00:00:01", "ff:ff:ff:ff:ff:ff")
SOURCES = ("10.0.0.2", "10.0.1.7", "192.168.3.4")
SOURCES6 = ("2001:db8::2", "2001:db8:0:1::7", "fe80::1")
PREFIXES = ("10.0.0.0/8", "10.0.1.0/24", "192.168.3.4/32")
PREFIXES6 = ("2001:db8::/32", "2001:db8:0:1::/64", "fe80::/10")
PORTS = (4791, 80, 50001, 7000)


def at(name: str) -> int:
    return offset(f"classifier.{name}")


class Bench:
    """The classifier behind a line, with what takes its verdicts at the time at which packet_rx does."""

    def __init__(self, dut: Any) -> None:
        self.dut = dut
        self.master = AxiLiteMaster(AxiLiteBus.from_prefix(dut, "bus"), dut.clk, dut.rst)
        self.line = AxisSource(dut, "line", noise=True)
        self.table: dict[int, Rule] = {}
        self.said: list[Any] = []
        self.applies = True
        self.cycle = 0
        dut.line_tready.value = 1
        dut.next.value = dut.applied.value = 0
        dut.line_rst.value = 1

    async def start(self) -> Bench:
        await start(self.dut)
        self.dut.line_rst.value = 0
        cocotb.start_soon(self._take())
        await wait_cycles(self.dut, 140)  # counters are cleared
        return self

    async def _take(self) -> None:
        classified = struct("classify_pkg::classified_t")
        ends = 0
        while True:
            await RisingEdge(self.dut.clk)
            self.cycle += 1
            if int(self.dut.next.value):
                self.said.append(classified.unpack(int(self.dut.classified.value)))
            ends = ends << 1 | (int(self.dut.line_tvalid.value) & int(self.dut.line_tlast.value))
            taken = ends >> VERDICT - 1 & 1
            self.dut.next.value = taken
            self.dut.applied.value = int(taken and self.applies)

    async def read(self, address: int) -> int:
        answer = await with_timeout(self.master.read(address, 4), 100 * CLOCK_NS, "ns")
        assert answer.resp == AxiResp.OKAY, f"{address:#x}"
        return int.from_bytes(answer.data, "little")

    async def answer(self, address: int, value: int) -> AxiResp:
        return (await with_timeout(self.master.write(address, value.to_bytes(4, "little")), 100 * CLOCK_NS, "ns")).resp

    async def write(self, address: int, value: int) -> None:
        assert await self.answer(address, value) == AxiResp.OKAY, f"{address:#x}"

    async def ready(self) -> None:
        for _ in range(1000):
            if not await self.read(at("STATUS")) & BUSY:
                return
        raise AssertionError("it is busy for ever")

    async def put(self, position: int, rule: Rule) -> None:
        """Writes the words of an entry, of a wide one of all its positions."""
        for quarter in range(GROUP if rule.wide else 1):
            await self.write(at("ENTRY"), position + quarter)
            for number, word in enumerate(rule.words(quarter if rule.wide else position % GROUP)):
                await self.write(at("WORDS") + 4 * number, word)

    async def load(self, *units: int) -> None:
        for unit in units:
            await self.write(at("LOAD"), unit)
            await self.ready()

    async def commit(self, table: dict[int, Rule], window: int = 0) -> None:
        """Makes this the table in use. Its entries are loaded."""
        enable = sum(1 << position for position in table)
        wide = sum(1 << position // GROUP for position, rule in table.items() if rule.wide)
        for i in range(4):
            await self.write(at("ENABLE") + 4 * i, enable >> 32 * i & 0xFFFFFFFF)
        await self.write(at("WIDE"), wide)
        await self.write(at("OFFSET"), window)
        await self.write(at("COMMAND"), COMMIT)
        await self.ready()
        self.table, self.window = table, window

    async def install(self, table: dict[int, Rule], window: int = 0) -> None:
        await self.commit({})
        for position, rule in table.items():
            await self.put(position, rule)
        await self.load(*sorted({position // 32 for position in table}))
        await self.commit(table, window)

    def expected(self, frame: bytes) -> int | None:
        """The position that decides about a frame."""
        return next((position for position in sorted(self.table) if self.table[position].matches(frame, self.window)), None)

    async def pass_(self, frames: list[bytes]) -> list[Any]:
        """What is said about these."""
        self.said.clear()
        for frame in frames:
            self.line.send(frame)
        await self.line.drained()
        await wait_cycles(self.dut, VERDICT + 3)
        assert len(self.said) == len(frames)
        return list(self.said)

    async def counts(self, position: int) -> tuple[int, int]:
        await self.write(at("ENTRY"), position)
        high = await self.read(at("BYTES_HI"))
        return await self.read(at("FRAMES")), high << 32 | await self.read(at("BYTES_LO"))


def random_frame() -> bytes:
    """Of few values, so that rules meet them."""
    frame = Ether(src="02:00:00:00:00:02", dst=random.choice(MACS))
    for _ in range(random.choice([0, 0, 0, 1, 2])):
        frame /= random.choice([Dot1Q, Dot1AD])(vlan=random.choice([5, 6]), prio=random.randrange(8))
    sixth = random.random() < 0.4
    if sixth:
        frame /= IPv6(src=random.choice(SOURCES6), dst=random.choice(SOURCES6))
    else:
        options = [IPOption_Router_Alert()] if random.random() < 0.1 else []
        frame /= IP(src=random.choice(SOURCES), dst=random.choice(SOURCES), options=options)
        if random.random() < 0.1:
            frame[IP].flags, frame[IP].frag = random.choice([("MF", 0), ("MF", 3), (0, 3)])
    ports = {"sport": random.choice(PORTS), "dport": random.choice(PORTS)}
    data = Raw(random.randbytes(random.choice([0, 4, 30, 300])))
    kind = random.choice(["udp", "udp", "tcp", "roce", "roce", "other", "arp", "fragment", "icmp"])
    if kind == "udp":
        return bytes(frame / UDP(**(ports | {"dport": 80})) / data)
    if kind == "tcp":
        return bytes(frame / TCP(**ports) / data)
    if kind == "roce":
        bth = BTH(opcode=random.choice([4, 6, 10, 17]), dqpn=random.choice([2, 3, 0x123456]), psn=random.randrange(1 << 24))
        return bytes(frame / UDP(sport=ports["sport"], dport=4791) / bth / data)
    if kind == "arp":
        return bytes(Ether(src="02:00:00:00:00:02", dst=random.choice(MACS)) / ARP(pdst=random.choice(SOURCES))).ljust(60, b"\0")
    if kind == "fragment" and sixth:
        return bytes(frame / IPv6ExtHdrFragment(nh=17) / data)
    if kind == "icmp" and not sixth:
        return bytes(frame / ICMP() / data)
    return bytes(
        Ether(src="02:00:00:00:00:02", dst=random.choice(MACS), type=random.choice([0x88B5, 0x88CC])) / Raw(random.randbytes(60))
    )


async def begin(dut: Any) -> Bench:
    random.seed(cocotb.RANDOM_SEED)
    return await Bench(dut).start()


def run_plane(test: str, width: int) -> None:
    """Runs the tests of a file."""
    run(
        "classify_plane",
        test,
        params={"DATA_W": width, "PAIRS": 4, "NEXT": 0x10000},
        ports={
            "line_rst": Plain("input", "logic"),
            "line": AxisMonitor(width),
            "classified": Plain("output", "classify_pkg::classified_t"),
            "next": Plain("input", "logic"),
            "applied": Plain("input", "logic"),
            "bus": AxilSlave(12),
            "idle": Plain("output", "logic"),
        },
        env={"WIDTH": str(width)},
        random_state=True,
    )
