# SPDX-License-Identifier: Apache-2.0
"""Exact flows of the classifier: a frame's flow is what scapy reads, and goes before the rules; changes are whole, counts exact."""

from __future__ import annotations

import random
from typing import Any

import cocotb
import pytest
from classify_bench import Bench, at, random_frame, run_plane
from cocotbext.axi import AxiResp
from nacelle_tb.classifier import DEVICE, DROP, HOST, MIRROR, Flow, FlowHash, Rule, pair
from nacelle_tb.long import some
from nacelle_tb.streams import wait_cycles
from nacelle_tb.svtypes import struct
from scapy.layers.inet import IP, TCP, UDP, IPOption_Router_Alert
from scapy.layers.inet6 import IPv6, IPv6ExtHdrHopByHop
from scapy.layers.l2 import Ether
from scapy.packet import Raw

ETHER = Ether(src="02:00:00:00:00:02", dst="02:00:00:00:00:01")
FLOW_BUSY, SLOTS, WHOLE = 2, 3, 1 << 13
ACTIONS = (DROP, HOST, MIRROR, DEVICE, 0, HOST | pair(2), MIRROR | pair(3))


class FlowBench(Bench):
    """With flows, in places that this chooses."""

    def __init__(self, dut: Any) -> None:
        super().__init__(dut)
        self.flows: dict[Flow, tuple[int, int]] = {}  # place, action
        self.window = 0

    async def flows_ready(self) -> None:
        for _ in range(1000):
            if not await self.read(at("STATUS")) & FLOW_BUSY:
                return
        raise AssertionError("it is busy for ever")

    async def renew(self, seed: int) -> None:
        self.hash = FlowHash(seed)
        self.flows.clear()
        await self.flows_ready()
        await self.write(at("FLOW_SEED_LO"), seed & 0xFFFFFFFF)
        await self.write(at("FLOW_SEED_HI"), seed >> 32)
        await self.flows_ready()

    def places(self, flow: Flow) -> list[int]:
        """All in which it can be, as the registers name them."""
        rows = enumerate(self.hash.rows(flow))
        if flow.v6:
            return [WHOLE | bank << 10 | row for bank, row in rows]
        return [slot << 11 | bank << 10 | row for bank, row in rows for slot in range(SLOTS)]

    def free(self, flow: Flow) -> list[int]:
        taken = set()
        for place, _ in self.flows.values():
            taken |= {place & 0x7FF | slot << 11 for slot in range(SLOTS)} if place & WHOLE else {place}
        return [p for p in self.places(flow) if not taken & ({p & 0x7FF | s << 11 for s in range(SLOTS)} if p & WHOLE else {p})]

    async def stage(self, flow: Flow, action: int) -> None:
        for word in range(10):
            await self.write(at("FLOW_KEY") + 4 * word, flow.key >> 32 * word & 0xFFFFFFFF)
        await self.write(at("FLOW_ACTION"), action)

    async def put_flow(self, flow: Flow, action: int, place: int | None = None) -> None:
        if place is None:
            place = random.choice(self.free(flow))
        await self.stage(flow, action)
        await self.write(at("FLOW_PUT"), place)
        self.flows[flow] = place, action

    async def remove_flow(self, place: int) -> None:
        await self.write(at("FLOW_DELETE"), place)

    async def get_flow(self, place: int) -> tuple[int, int, int, int]:
        """Key, action, frames, bytes."""
        await self.write(at("FLOW_GET"), place)
        await self.flows_ready()
        key = sum([await self.read(at("FLOW_KEY") + 4 * word) << 32 * word for word in range(10)])
        counted = await self.read(at("FLOW_BYTES_HI")) << 32 | await self.read(at("FLOW_BYTES_LO"))
        return key, await self.read(at("FLOW_ACTION")), await self.read(at("FLOW_FRAMES")), counted

    async def used(self) -> set[int]:
        """The places in use."""
        words = [await self.read(at("FLOW_USED") + 4 * word) for word in range(192)]
        bits = [(word, bit) for word in range(192) for bit in range(32) if words[word] >> bit & 1]
        return {word // 64 << 11 | word % 64 << 5 | bit for word, bit in bits}


async def begin(dut: Any) -> FlowBench:
    random.seed(cocotb.RANDOM_SEED)
    bench = FlowBench(dut)
    await bench.start()
    await bench.renew(random.getrandbits(64))
    return bench


def decided(verdict: Any) -> int:
    return struct("classify_pkg::decision_t").pack(vars(verdict.decision))


def check(bench: FlowBench, frames: list[bytes], said: list[Any]) -> dict[int, list[bytes]]:
    """A flow decides, else a rule. The frames of each flow's place."""
    found: dict[int, list[bytes]] = {}
    for frame, verdict in zip(frames, said, strict=True):
        flow = Flow.of(frame)
        if flow in bench.flows:
            place, action = bench.flows[flow]
            assert verdict.flow and not verdict.hit, Ether(frame).command()
            here = verdict.place.slot << 11 | verdict.place.bank << 10 | verdict.place.row
            assert here == place & ~WHOLE and decided(verdict) == action
            found.setdefault(place, []).append(frame)
            continue
        position = bench.expected(frame)
        assert not verdict.flow, Ether(frame).command()
        assert bool(verdict.hit) == (position is not None)
        assert decided(verdict) == (0 if position is None else bench.table[position].action)
    return found


@cocotb.test()
async def flows_are_what_scapy_finds(dut) -> None:
    """Flows of IPv4 and IPv6 among rules that take everything or some of it; both count what they decide."""
    bench = await begin(dut)
    await bench.install({4: Rule(MIRROR, version=4, destination_port=80), 9: Rule(DEVICE, version=6), 100: Rule(HOST, tagged=True)})
    frames = [random_frame() for _ in range(600)]
    flows = sorted({flow for frame in frames if (flow := Flow.of(frame))}, key=str)
    for flow in random.sample(flows, len(flows) // 2):
        await bench.put_flow(flow, random.choice(ACTIONS))
    found = check(bench, frames, await bench.pass_(frames))
    assert len(found) > 30 and any(place & WHOLE for place in found) and any(not place & WHOLE for place in found)
    by_flow = 0
    for flow, (place, action) in bench.flows.items():
        mine = found.get(place, [])
        assert await bench.get_flow(place) == (flow.key, action, len(mine), sum(map(len, mine)))
        by_flow += len(mine)
    by_rule = sum([(await bench.counts(position))[0] for position in bench.table])
    unruled = sum(Flow.of(frame) not in bench.flows and bench.expected(frame) is None for frame in frames)
    assert by_flow + by_rule + unruled == len(frames)
    # All but the deleted ones stay.
    gone = random.sample(sorted(bench.flows, key=str), len(bench.flows) // 2)
    for flow in gone:
        await bench.remove_flow(bench.flows.pop(flow)[0])
    check(bench, frames, await bench.pass_(frames))
    slots = {place & 0x7FF | slot << 11 if place & WHOLE else place for place, _ in bench.flows.values() for slot in range(SLOTS)}
    assert await bench.used() == slots


@cocotb.test()
async def flows_differ_in_every_bit(dut) -> None:
    """A frame that differs from a flow in one bit of its key is of another one or none; what has no ports is of none with ports."""
    bench = await begin(dut)
    for source, destination in (("10.1.2.3", "10.4.5.6"), ("2001:db8::1", "2001:db8::2")):
        for l4 in (TCP, UDP):
            flow = Flow(source, destination, 6 if l4 is TCP else 17, 0x1234, 0)
            await bench.put_flow(flow, DROP)
    frames = []
    for flow in bench.flows:
        layer, l4 = IPv6 if flow.v6 else IP, TCP if flow.protocol == 6 else UDP
        whole = bytes(ETHER / layer(src=flow.source, dst=flow.destination) / l4(sport=0x1234, dport=0) / Raw(bytes(20)))
        frames.append(whole)
        first, last = (22, 58) if flow.v6 else (26, 38)
        for bit in range(8 * first, 8 * last):
            frames.append(whole[: bit // 8] + bytes([whole[bit // 8] ^ 1 << bit % 8]) + whole[bit // 8 + 1 :])
    one = next(iter(bench.flows))
    options = ETHER / IP(src=one.source, dst=one.destination, options=[IPOption_Router_Alert()]) / TCP(sport=0x1234, dport=0)
    extension = ETHER / IPv6(src="2001:db8::1", dst="2001:db8::2") / IPv6ExtHdrHopByHop() / UDP(sport=0x1234, dport=0)
    fragments = [
        ETHER / IP(src=one.source, dst=one.destination, flags=f, frag=n, proto=6) / TCP(sport=0x1234, dport=0)
        for f, n in (("MF", 0), (0, 1))
    ]
    for frame in (options, extension, *fragments):
        assert Flow.of(bytes(frame)) not in bench.flows
        frames.append(bytes(frame))
    found = check(bench, frames, await bench.pass_(frames))
    assert sum(map(len, found.values())) == 4


@cocotb.test()
async def a_change_of_a_flow_is_whole(dut) -> None:
    """While its frames come a flow moves to its other bank and back, and changes what it says: every frame finds it, with the
    action of before or behind, and none the old one behind the first new one."""
    bench = await begin(dut)
    for flow in (Flow("2001:db8::1", "2001:db8::2", 17, 5, 6), Flow("10.0.0.1", "10.0.0.2", 6, 5, 6)):
        layer, l4 = (IPv6, UDP) if flow.v6 else (IP, TCP)
        frame = bytes(ETHER / layer(src=flow.source, dst=flow.destination) / l4(sport=5, dport=6) / Raw(bytes(10)))
        places = bench.places(flow)
        here, there = places[0], places[-1]
        await bench.put_flow(flow, DROP, here)
        running = [True]

        async def traffic(frame: bytes = frame, running: list[bool] = running) -> None:
            while running:
                for _ in range(10):
                    bench.line.send(frame)
                await bench.line.drained()
                await wait_cycles(dut, 2)  # counters are cleared in a gap

        bench.said.clear()
        load = cocotb.start_soon(traffic())
        await wait_cycles(dut, 100)
        # In place, to the other bank, back.
        await bench.put_flow(flow, HOST, here)
        await bench.put_flow(flow, MIRROR, there)
        await bench.remove_flow(here)
        await bench.put_flow(flow, DEVICE, here)
        await bench.remove_flow(there)
        await wait_cycles(dut, 100)
        running.clear()
        await load
        await wait_cycles(dut, 20)
        order = [DROP, HOST, MIRROR, DEVICE]
        if here & 1 << 10 > there & 1 << 10:
            order.remove(MIRROR)
        seen = [DROP]
        for verdict in bench.said:
            assert verdict.flow
            if decided(verdict) != seen[-1]:
                seen.append(decided(verdict))
        assert seen == order


@cocotb.test()
async def a_flow_counts_every_frame(dut) -> None:
    """Frames of one flow, and of two in turn, in a row: no count is lost, also while software reads. What is bad is not counted."""
    bench = await begin(dut)
    flows = [Flow("10.0.0.1", "10.0.0.2", 17, 5, port) for port in (6, 7)]
    frames = [
        bytes(ETHER / IP(src=f.source, dst=f.destination) / UDP(sport=5, dport=f.destination_port) / Raw(bytes(18))) for f in flows
    ]
    for flow in flows:
        await bench.put_flow(flow, HOST)
    await bench.flows_ready()
    sent = [0, 0]
    for _ in range(20):
        burst = random.choices([0, 1], weights=random.choice([(1, 0), (1, 1), (5, 1)]), k=random.randrange(1, 40))
        for which in burst:
            bench.line.send(frames[which])
            sent[which] += 1
        read = await bench.get_flow(bench.flows[flows[0]][0])
        assert read[2] <= sent[0]
    await bench.line.drained()
    await wait_cycles(dut, 20)
    for flow, frame, count in zip(flows, frames, sent, strict=True):
        assert (await bench.get_flow(bench.flows[flow][0]))[2:] == (count, count * len(frame))
    bench.applies = False
    await bench.pass_(frames)
    assert (await bench.get_flow(bench.flows[flows[1]][0]))[2] == sent[1]
    # Given again it begins at 0.
    await bench.put_flow(flows[0], DROP, bench.flows[flows[0]][0])
    await bench.flows_ready()
    assert await bench.get_flow(bench.flows[flows[0]][0]) == (flows[0].key, DROP, 0, 0)


@cocotb.test()
async def many_flows(dut) -> None:
    """Hundreds, among them neighbours in every field, and frames of all of them."""
    bench = await begin(dut)
    wanted = [Flow("10.0.0.1", f"10.0.{n >> 8}.{n & 255}", 6, 80, 5000 + n % 7) for n in range(300)]
    wanted += [Flow("2001:db8::1", f"2001:db8::{n:x}", 17, 80, n) for n in range(100)]
    for flow in wanted:
        if bench.free(flow):
            await bench.put_flow(flow, random.choice(ACTIONS))
    assert len(bench.flows) > 380
    frames = []
    for flow in wanted:
        layer, l4 = IPv6 if flow.v6 else IP, TCP if flow.protocol == 6 else UDP
        frames.append(bytes(ETHER / layer(src=flow.source, dst=flow.destination) / l4(sport=80, dport=flow.destination_port)))
    random.shuffle(frames)
    check(bench, frames, await bench.pass_(frames))


@cocotb.test()
async def a_new_seed_deletes_all(dut) -> None:
    """At once; while the table is renewed rules decide, and nothing can be written."""
    bench = await begin(dut)
    await bench.install({5: Rule(MIRROR)})
    flow = Flow("10.0.0.1", "10.0.0.2", 17, 5, 6)
    frame = bytes(ETHER / IP(src=flow.source, dst=flow.destination) / UDP(sport=5, dport=6) / Raw(bytes(18)))
    await bench.put_flow(flow, DROP)
    check(bench, [frame], await bench.pass_([frame]))
    assert await bench.used()
    seed = random.getrandbits(64)
    await bench.write(at("FLOW_SEED_LO"), seed & 0xFFFFFFFF)
    check(bench, [frame], await bench.pass_([frame]))
    await bench.write(at("FLOW_SEED_HI"), seed >> 32)
    bench.flows.clear()
    for name in ("FLOW_KEY", "FLOW_ACTION", "FLOW_PUT", "FLOW_DELETE", "FLOW_GET", "FLOW_SEED_LO", "FLOW_SEED_HI"):
        assert await bench.answer(at(name), 0) == AxiResp.DECERR
    check(bench, [frame] * 100, await bench.pass_([frame] * 100))
    await bench.flows_ready()
    assert not await bench.used()
    assert await bench.read(at("FLOW_SEED_LO")) | await bench.read(at("FLOW_SEED_HI")) << 32 == seed
    bench.hash = FlowHash(seed)
    await bench.put_flow(flow, HOST)
    check(bench, [frame], await bench.pass_([frame]))


@cocotb.test()
async def places_that_do_not_exist(dut) -> None:
    bench = await begin(dut)
    fourth, sixth = Flow("10.0.0.1", "10.0.0.2", 17, 5, 6), Flow("fe80::1", "fe80::2", 17, 5, 6)
    frames = [
        bytes(ETHER / layer(src=f.source, dst=f.destination) / UDP(sport=5, dport=6)) for f, layer in ((fourth, IP), (sixth, IPv6))
    ]
    for flow, bad in ((fourth, (3 << 11, WHOLE)), (sixth, (0, 1 << 11, WHOLE | 1 << 11, WHOLE | 3 << 11))):
        await bench.stage(flow, DROP)
        for place in bad:
            assert await bench.answer(at("FLOW_PUT"), place) == AxiResp.DECERR
    for name in ("FLOW_DELETE", "FLOW_GET"):
        for place in (3 << 11, WHOLE | 1 << 11):
            assert await bench.answer(at(name), place) == AxiResp.DECERR
    assert not await bench.used()
    # A place where the hash does not look is never found. A flow of IPv4 in the row of one of IPv6 ends that.
    await bench.stage(fourth, DROP)
    await bench.write(at("FLOW_PUT"), bench.places(fourth)[0] ^ 1)
    check(bench, frames, await bench.pass_(frames))
    await bench.remove_flow(bench.places(fourth)[0] ^ 1)
    place = bench.places(sixth)[0]
    await bench.put_flow(sixth, DROP, place)
    check(bench, frames, await bench.pass_(frames))
    await bench.stage(fourth, HOST)
    await bench.write(at("FLOW_PUT"), place & 0x7FF | 1 << 11)
    bench.flows.clear()
    check(bench, frames, await bench.pass_(frames))
    assert (await bench.get_flow(place & 0x7FF | 1 << 11))[:2] == (fourth.key, HOST)


@pytest.mark.parametrize("width", some([512, 64]))
def test_classify_flows(width: int) -> None:
    run_plane(__file__, width)
