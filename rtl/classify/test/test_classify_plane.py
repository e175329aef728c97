# SPDX-License-Identifier: Apache-2.0
"""The classifier: what its rules say of a frame is what scapy finds in it; changes are whole; entries count; nothing that is
written or received in any order makes an entry take effect in parts."""

from __future__ import annotations

import random
from typing import Any

import cocotb
import pytest
from classify_bench import (
    BUSY,
    CLEAR,
    MACS,
    MOST_OFFSET,
    PORTS,
    SOURCES,
    SOURCES6,
    Bench,
    at,
    begin,
    random_frame,
    run_plane,
)
from cocotbext.axi import AxiResp
from nacelle_tb.classifier import ACTION_WORD, AROUND, DEVICE, DROP, GROUP, HOST, MIRROR, THROUGH, Rule, pair
from nacelle_tb.long import rounds
from nacelle_tb.streams import wait_cycles
from nacelle_tb.svtypes import struct
from scapy.contrib.roce import BTH
from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Dot1Q, Ether
from scapy.packet import Raw


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
    action = random.choice([DROP, HOST, MIRROR, DEVICE, 0, HOST | pair(2), MIRROR | pair(3), HOST | THROUGH, AROUND])
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
    for address in (0x3C, 0x54, 0x4FC, 0x900):
        assert (await bench.master.read(address, 4)).resp == AxiResp.DECERR
    for name in ("TYPE", "POSITIONS", "STATUS", "FRAMES"):
        assert await bench.answer(at(name), 1) == AxiResp.DECERR
    frame = random.randbytes(200)
    for window, found in ((MOST_OFFSET, True), (MOST_OFFSET + 1, False), (127, False)):
        await bench.install({0: Rule(window=frame[window : window + 16], window_mask=b"\xff" * 16)}, window)
        assert [bool(verdict.hit) for verdict in await bench.pass_([frame])] == [found]


@pytest.mark.parametrize("width", [64, 512])
def test_classify_plane(width: int) -> None:
    run_plane(__file__, width)
