# SPDX-License-Identifier: Apache-2.0
"""The classifier: what its rules say of a frame is what scapy finds in it; changes are whole; entries count; nothing that is
written or received in any order makes an entry take effect in parts."""

from __future__ import annotations

import random
from typing import Any

import cocotb
import pytest
from cocotb.triggers import RisingEdge, with_timeout
from cocotbext.axi import AxiLiteBus, AxiLiteMaster, AxiResp
from nacelle_tb.bench import AxilSlave, AxisMonitor, Plain, run
from nacelle_tb.cci import offset
from nacelle_tb.classifier import ACTION_WORD, DEVICE, DROP, GROUP, HOST, MIRROR, Rule, pair
from nacelle_tb.long import rounds
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


def random_rule(window: int) -> Rule:
    """Of the same values, with one to three conditions."""
    version = random.choice([None, 4, 4, 6, 0])
    some: dict[str, Any] = {
        "tagged": random.random() < 0.5,
        "outer": random.choice([5, 6]),
        "inner": random.choice([5, 6]),
        "protocol": random.choice([6, 17, 1, 44]),
        "source_port": random.choice(PORTS),
        "destination_port": random.choice(PORTS),
        "opcode": random.choice([4, 6, 10, 17]),
        "qpn": random.choice([2, 3, 0x123456]),
        "fragment": random.random() < 0.5,
    }
    if version == 4:
        some |= {
            "source": f"{random.choice(SOURCES)}/32",
            "destination": random.choice(["10.0.0.0/8", "10.0.1.0/24", "192.168.3.4/32"]),
        }
    if version == 6:
        some |= {
            "source": f"{random.choice(SOURCES6)}/128",
            "destination": random.choice(["2001:db8::/32", "2001:db8:0:1::/64", "fe80::/10"]),
        }
    if version == 0:
        some |= {"ethertype": random.choice([0x806, 0x88B5]), "station": random.choice(MACS)}
    chosen = {name: some[name] for name in random.sample(sorted(some), random.randrange(0, 4))}
    if "outer" in chosen:
        chosen.pop("tagged", None)
    if random.random() < 0.2:
        frame = random_frame()
        part = frame[window : window + 16].ljust(16, b"\0")
        mask = bytes(random.choice([0, 0, 0xFF, 0xF0]) for _ in range(16))
        chosen |= {"window": part, "window_mask": mask}
    action = random.choice([DROP, HOST, MIRROR, DEVICE, 0, HOST | pair(2), MIRROR | pair(3)])
    return Rule(action=action, version=version, **chosen)


def random_table(window: int, entries: int) -> dict[int, Rule]:
    table: dict[int, Rule] = {}
    taken: set[int] = set()
    for _ in range(entries):
        rule = random_rule(window)
        first = 0 if rule.conditions > 1 else 24  # what takes much is behind what takes little
        if rule.wide:
            position = random.randrange(first, 32) * GROUP
            here = set(range(position, position + GROUP))
        else:
            position = random.randrange(first * GROUP, 128)
            here = {position}
        if not taken & here:
            table[position] = rule
            taken |= here
    return table


async def begin(dut: Any) -> Bench:
    random.seed(cocotb.RANDOM_SEED)
    return await Bench(dut).start()


def check(bench: Bench, frames: list[bytes], said: list[Any]) -> dict[int, list[bytes]]:
    """Every verdict is that of the first rule that matches. What each entry has decided."""
    decided: dict[int, list[bytes]] = {}
    for frame, verdict in zip(frames, said, strict=True):
        position = bench.expected(frame)
        assert bool(verdict.hit) == (position is not None), Ether(frame).command()
        assert verdict.length == len(frame)
        decision = struct("classify_pkg::decision_t").pack(vars(verdict.decision))
        if position is None:
            assert decision == 0
            continue
        assert verdict.position == position, f"{bench.table[position]} {bench.table[verdict.position]} {Ether(frame).command()}"
        assert decision == bench.table[position].action
        decided.setdefault(position, []).append(frame)
    return decided


@cocotb.test()
async def rules_are_what_scapy_finds(dut) -> None:
    bench = await begin(dut)
    for window in (14, 0):
        await bench.install(random_table(window, 60), window)
        frames = [random_frame() for _ in range(rounds(400))]
        decided = check(bench, frames, await bench.pass_(frames))
        assert len(decided) > 5
        for position in bench.table:
            mine = decided.get(position, [])
            assert await bench.counts(position) == (len(mine), sum(map(len, mine)))
            await bench.write(at("COMMAND"), CLEAR)
            await bench.ready()
            assert await bench.counts(position) == (0, 0)


@cocotb.test()
async def without_entries_all_is_as_without_a_classifier(dut) -> None:
    bench = await begin(dut)
    bench.window = 0
    frames = [random_frame() for _ in range(50)]
    assert check(bench, frames, await bench.pass_(frames)) == {}


@cocotb.test()
async def an_entry_without_conditions_takes_all(dut) -> None:
    bench = await begin(dut)
    await bench.install({127: Rule(DROP)})
    frames = [random_frame() for _ in range(50)] + [random.randbytes(n) for n in (1, 2, 13, 14, 15, 17, 59)]
    said = await bench.pass_(frames)
    assert all(verdict.hit and verdict.position == 127 and verdict.decision.keep_away for verdict in said)
    # A lower position goes first; what is bad is not counted.
    bench.applies = False
    before = await bench.counts(127)
    await bench.pass_(frames)
    assert await bench.counts(127) == before


@cocotb.test()
async def what_a_frame_is_too_short_for_is_not_taken_from_another(dut) -> None:
    """Behind a frame that matches come all of its beginnings."""
    bench = await begin(dut)
    for whole, rule, least in (
        (Ether() / IP(src="10.0.0.2") / UDP(dport=80) / Raw(bytes(60)), Rule(version=4, destination_port=80), 42),
        (Ether() / IP(src="10.0.0.2") / UDP(dport=80) / Raw(bytes(60)), Rule(version=4, source="10.0.0.2/32"), 34),
        (Ether() / IPv6(src="fe80::1") / TCP(dport=80) / Raw(bytes(60)), Rule(version=6, destination_port=80), 62),
        (Ether() / IPv6(src="fe80::1") / TCP(dport=80) / Raw(bytes(60)), Rule(version=6, source="fe80::/64"), 54),
        (Ether() / IP() / UDP(dport=4791) / BTH(dqpn=3) / Raw(bytes(60)), Rule(qpn=3), 54),
        (Ether() / Dot1Q(vlan=5) / Dot1Q(vlan=6) / IP() / UDP(dport=4791) / BTH(dqpn=3) / Raw(bytes(30)), Rule(inner=6, qpn=3), 62),
        (Ether() / Dot1Q(vlan=5) / Raw(bytes(60)), Rule(outer=5), 18),
        (Ether() / Raw(bytes(60)), Rule(window=bytes(16), window_mask=bytes(16)), 36),
    ):  # fmt: skip
        await bench.install({8: rule}, 20)
        frame = bytes(whole)
        frames = [part for length in range(1, 80) for part in (frame, frame[:length])]
        said = await bench.pass_(frames)
        for part, verdict in zip(frames, said, strict=True):
            assert bool(verdict.hit) == (len(part) >= least), (len(part), least, rule)


@cocotb.test()
async def an_ip_packet_that_ends_early_has_no_ports(dut) -> None:
    """What follows it is padding, whatever it looks like."""
    bench = await begin(dut)
    await bench.install({0: Rule(destination_port=80)})
    good = bytes(Ether() / IP() / UDP(dport=80) / Raw(bytes(40)))
    cut = good[:16] + (27).to_bytes(2, "big") + good[18:]
    sixth = bytes(Ether() / IPv6() / UDP(dport=80) / Raw(bytes(40)))
    cut6 = sixth[:18] + (7).to_bytes(2, "big") + sixth[20:]
    assert [verdict.hit for verdict in await bench.pass_([good, cut, sixth, cut6])] == [1, 0, 1, 0]


@cocotb.test()
async def a_change_is_whole(dut) -> None:
    """Two tables take turns while frames come without a gap: every frame has its decision from one of them, and behind the first
    that has it from the new one none has it from the old one. Both have an entry for each frame. The window moves with them."""
    bench = await begin(dut)
    frame = bytes(Ether(src=MACS[0], dst=MACS[1]) / IPv6(src="2001:db8::1", dst="2001:db8::2") / UDP(dport=9) / Raw(b"ab" * 30))
    old = {4: Rule(HOST, window=frame[14:30], window_mask=b"\xff" * 16), 64: Rule(DROP)}
    new = {8: Rule(DEVICE, window=frame[62:78], window_mask=b"\xff" * 16)}
    await bench.install({})
    for position, rule in (old | new).items():
        await bench.put(position, rule)
    await bench.load(0, 2)
    running = True

    async def traffic() -> None:
        while running:
            for _ in range(20):
                bench.line.send(frame)
            await bench.line.drained()

    await bench.commit(old, 14)
    load = cocotb.start_soon(traffic())
    await wait_cycles(dut, 50)
    bench.said.clear()
    order = []
    for table, window in ((new, 62), (old, 14), (new, 62), (old, 14)):
        await bench.commit(table, window)
        order.append(next(iter(table)))
        await wait_cycles(dut, random.randrange(5, 60))
    running = False
    await load
    await wait_cycles(dut, 20)
    changes = [bench.said[0].position]
    for verdict in bench.said:
        assert verdict.hit
        if verdict.position != changes[-1]:
            changes.append(verdict.position)
    assert changes == [4, *order]


@cocotb.test()
async def loads_leave_what_is_in_use(dut) -> None:
    """Entries beside those in use are written and loaded while frames come without a gap."""
    bench = await begin(dut)
    await bench.install({1: Rule(HOST, version=4, destination_port=80)})
    frame = bytes(Ether() / IP(src="10.0.0.2") / UDP(dport=80) / Raw(bytes(60)))
    bench.said.clear()
    done = cocotb.start_soon(bench.put(0, Rule(DROP)))
    for _ in range(30):
        bench.line.send(frame)
    await bench.line.drained()
    await done
    await bench.write(at("LOAD"), 0)
    for address in (at("COMMAND"), at("LOAD"), at("WORDS"), at("ENABLE"), at("WIDE"), at("OFFSET")):
        assert await bench.answer(address, 1) == AxiResp.DECERR, "it is busy"
    while await bench.read(at("STATUS")) & BUSY:
        for _ in range(100):
            bench.line.send(frame)
        await bench.line.drained()
    await wait_cycles(dut, 20)
    assert len(bench.said) > 100
    assert all(verdict.hit and verdict.position == 1 for verdict in bench.said)
    await bench.commit({0: Rule(DROP), 1: bench.table[1]})
    assert [verdict.position for verdict in await bench.pass_([frame])] == [0]


@cocotb.test()
async def entries_in_use_cannot_be_written(dut) -> None:
    bench = await begin(dut)
    wide = Rule(DROP, window=bytes(16))
    await bench.install({1: Rule(HOST), 4: wide})
    for position in (1, 4, 5, 6, 7):
        await bench.write(at("ENTRY"), position)
        word = await bench.read(at("WORDS") + 4 * ACTION_WORD)
        assert await bench.answer(at("WORDS") + 4 * ACTION_WORD, word ^ 1) == AxiResp.DECERR
        assert await bench.read(at("WORDS") + 4 * ACTION_WORD) == word
    for position in (0, 2, 8):
        await bench.write(at("ENTRY"), position)
        await bench.write(at("WORDS") + 4 * ACTION_WORD, 5)
        assert await bench.read(at("WORDS") + 4 * ACTION_WORD) == 5


@cocotb.test()
async def what_is_not_loaded_does_not_count(dut) -> None:
    """An entry that was written after its load, and a wide one of which a quarter was, cannot be in use: else the next load would
    change it row by row."""
    bench = await begin(dut)
    frame = bytes(Ether() / IP(src="10.0.0.2") / UDP(dport=80) / Raw(bytes(60)))
    narrow, wide = Rule(HOST, version=4), Rule(DROP, window=frame[:16], window_mask=b"\xff" * 16)
    await bench.install({1: narrow, 4: wide})
    await bench.commit({})
    for position in (1, 6):
        await bench.write(at("ENTRY"), position)
        await bench.write(at("WORDS"), await bench.read(at("WORDS")))
    await bench.commit({1: narrow, 4: wide})
    assert await bench.read(at("ENABLE")) == 0
    assert [verdict.hit for verdict in await bench.pass_([frame])] == [0]
    await bench.load(0)
    await bench.commit({1: narrow, 4: wide})
    assert await bench.read(at("ENABLE")) == 1 << 1 | 1 << 4
    assert [verdict.position for verdict in await bench.pass_([frame])] == [1]


@cocotb.test()
async def registers_out_of_range(dut) -> None:
    """Values beyond what there is are cut, other addresses are refused, a window beyond the headers matches nothing."""
    bench = await begin(dut)
    assert await bench.read(0) == int.from_bytes(b"CLAS", "big")
    assert await bench.read(at("NEXT")) == 0x10000
    assert await bench.read(at("POSITIONS")) == 128
    assert await bench.read(at("PAIRS")) == 4
    await bench.write(at("ENTRY"), 0xFFFF_FFFF)
    assert await bench.read(at("ENTRY")) == 127
    await bench.write(at("WORDS"), 0xFFFF_FFFF)
    assert await bench.read(at("WORDS")) == 0xFFF
    for address in (0x38, 0x54, 0x7FC, 0x900):
        assert (await bench.master.read(address, 4)).resp == AxiResp.DECERR
    for name in ("TYPE", "POSITIONS", "STATUS", "FRAMES"):
        assert await bench.answer(at(name), 1) == AxiResp.DECERR
    frame = random.randbytes(200)
    for window, found in ((MOST_OFFSET, True), (MOST_OFFSET + 1, False), (127, False)):
        await bench.install({0: Rule(window=frame[window : window + 16], window_mask=b"\xff" * 16)}, window)
        assert [bool(verdict.hit) for verdict in await bench.pass_([frame])] == [found]


@pytest.mark.parametrize("width", [64, 512])
def test_classify_plane(width: int) -> None:
    run(
        "classify_plane",
        __file__,
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
