# SPDX-License-Identifier: Apache-2.0
"""The stream kernel `telemetry` against a model in a few lines: scapy names the flow of a frame, a dictionary has its counts. What
the table says of a flow is at most the truth, and at least the truth without what it calls BEFORE; a flow with more than half of
the bytes of its place is there."""

from __future__ import annotations

import ipaddress
import os
import random
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import cocotb
import pytest
from nacelle_tb.long import some
from nacelle_tb.streams import wait_cycles
from nacelle_tb.toeplitz import toeplitz
from nacelle_tb.widths import WIDTHS, at_width
from scapy.layers.inet import ICMP, IP, TCP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import ARP, Dot1Q, Ether
from scapy.packet import Raw
from stream_bench import Kernel, run_kernel

BYTES = int(os.environ.get("WIDTH", "64")) // 8
PLACES = 512
KEY = bytes.fromhex("6d5a56da255b0ec24167253d43a38fb0d0ca2bcbae7b30b477cb2da38030f20c6a42b73bbeac01fa")
Flow = tuple[bytes, bytes, int, int, int]  # source, destination, protocol, ports


def flow_of(frame: bytes) -> Flow | None:
    """As scapy reads the frame; IPv4 addresses in mapped form."""
    ether = Ether(frame)
    if IP in ether:
        ip = ether[IP]
        src, dst = (bytes(10) + b"\xff\xff" + ipaddress.ip_address(a).packed for a in (ip.src, ip.dst))
        protocol = ip.proto
    elif IPv6 in ether:
        ip = ether[IPv6]
        src, dst = (ipaddress.ip_address(a).packed for a in (ip.src, ip.dst))
        protocol = ip.nh
    else:
        return None
    l4 = ether.getlayer(TCP) or ether.getlayer(UDP)
    return src, dst, protocol, l4.sport if l4 else 0, l4.dport if l4 else 0


def place_of(flow: Flow, seed: int) -> int:
    """Where it is in the table."""
    key = bytes(a ^ b for a, b in zip(KEY, seed.to_bytes(4, "big") * 10, strict=True))
    src, dst, protocol, sport, dport = flow
    hashed = toeplitz(key, src + dst + sport.to_bytes(2, "big") + dport.to_bytes(2, "big"))
    return (hashed ^ protocol) % PLACES


@dataclass
class Shown:
    """A place of the table."""

    flow: Flow
    frames: int
    bytes: int
    before: int


async def shown(kernel: Kernel, place: int, tx: bool = False) -> Shown | None:
    await kernel.write(ENTRY=place | tx << 16)
    kind = await kernel.read("FLOW")
    if not kind & 1:
        return None
    words = {}
    for name in ("SRC", "DST"):
        first = await kernel.read(name)
        base = 0x130 if name == "SRC" else 0x140
        rest = [(await kernel.ctrl.read(base + 4 * i))[0] for i in range(1, 4)]
        words[name] = b"".join(word.to_bytes(4, "big") for word in (first, *rest))
    ports = await kernel.read("PORTS")
    flow = (words["SRC"], words["DST"], kind >> 8, ports >> 16, ports & 0xFFFF)
    assert (kind >> 1 & 1) == (words["SRC"][:12] != bytes(10) + b"\xff\xff")
    size = await kernel.read("BYTES_LO") | await kernel.read("BYTES_HI") << 32
    before = await kernel.read("BEFORE_LO") | await kernel.read("BEFORE_HI") << 32
    return Shown(flow, await kernel.read("FRAMES"), size, before)


@dataclass
class Model:
    """What is true of the frames so far."""

    seed: int
    frames: Counter[Flow] = field(default_factory=Counter)
    bytes: Counter[Flow] = field(default_factory=Counter)
    place: Counter[int] = field(default_factory=Counter)
    other: int = 0

    def add(self, frame: bytes) -> None:
        flow = flow_of(frame)
        if flow is None:
            self.other += 1
            return
        self.frames[flow] += 1
        self.bytes[flow] += len(frame)
        self.place[place_of(flow, self.seed)] += len(frame)

    async def check(self, kernel: Kernel, tx: bool = False) -> int:
        """Every place that a flow has; returns how many flows have all of their bytes there."""
        there = {}
        for place in sorted(self.place):
            entry = await shown(kernel, place, tx)
            assert entry, place
            assert place_of(entry.flow, self.seed) == place
            assert entry.bytes <= self.bytes[entry.flow] <= entry.bytes + entry.before
            assert entry.frames <= self.frames[entry.flow]
            if not entry.before:
                assert (entry.bytes, entry.frames) == (self.bytes[entry.flow], self.frames[entry.flow])
            there[place] = entry.flow
        for flow, size in self.bytes.items():
            if 2 * size > self.place[place_of(flow, self.seed)]:
                assert there[place_of(flow, self.seed)] == flow
        return sum(flow in self.bytes for flow in there.values())


def a_flow() -> Any:
    """Headers of a random one."""
    v4 = random.random() < 0.6
    src, dst = (random.randbytes(4 if v4 else 16) for _ in range(2))
    names = [str(ipaddress.ip_address(a)) for a in (src, dst)]
    l4 = random.choice([TCP, UDP, None])
    ports = l4(sport=random.randrange(1, 65536), dport=random.randrange(1, 4000)) if l4 else ICMP(type=3) if v4 else Raw(b"")
    ip = (
        IP(src=names[0], dst=names[1])
        if v4
        else IPv6(src=names[0], dst=names[1], nh=59)
        if l4 is None
        else IPv6(src=names[0], dst=names[1])
    )
    ether = Ether(src="06:00:00:00:00:01", dst="02:00:00:00:00:02")
    return (ether / Dot1Q(vlan=7) if random.random() < 0.2 else ether) / ip / ports


async def begin(dut: Any, seed: int) -> Kernel:
    kernel = await Kernel(dut, "telemetry").begin()
    await kernel.write(SEED=seed, COMMAND=1)
    return kernel


@cocotb.test()
async def flows_are_counted(dut) -> None:
    """Many flows in a table with room for them, each direction for itself."""
    seed = random.getrandbits(32)
    kernel = await begin(dut, seed)
    for tx, source, sink in ((False, kernel.rx_in, kernel.rx_out), (True, kernel.tx_in, kernel.tx_out)):
        model, flows = Model(seed), [a_flow() for _ in range(60)]
        for _ in range(400):
            frame = bytes(random.choice(flows[: random.choice([5, 60])]) / Raw(random.randbytes(random.choice([6, 40, 400]))))
            source.send(frame)
            model.add(frame)
        for frame in (bytes(Ether() / ARP()), bytes(60), bytes(14)):
            source.send(frame)
            model.add(frame)
        await sink._wait(lambda sink=sink: len(sink.packets) == 403, 100_000)
        await wait_cycles(dut, 30)
        assert await model.check(kernel, tx) >= 45
        assert await kernel.read("OTHER_TX" if tx else "OTHER_RX") == 3
        assert await kernel.read("OTHER_RX") == 3


@cocotb.test()
async def flows_that_share_a_place(dut) -> None:
    """An elephant, and many mice that a stranger has chosen so that they come to its place: the elephant keeps it, or gets it back,
    with bounds that hold. Back to back, as frames of the same place are read while they are written."""
    seed = 0x1234_5678
    kernel = await begin(dut, seed)
    by_place: dict[int, list[Any]] = {}
    crowd: list[Any] = []
    while len(crowd) < 6:
        flow = a_flow()
        crowd = by_place.setdefault(place_of(flow_of(bytes(flow / Raw(bytes(20)))), seed), [])
        crowd.append(flow)
    model = Model(seed)
    for round_ in range(8):
        for _ in range(60):
            flow = crowd[0] if random.random() < 0.6 and round_ % 3 else random.choice(crowd)
            frame = bytes(flow / Raw(random.randbytes(20)))
            kernel.rx_in.send(frame)
            model.add(frame)
        await kernel.rx_in.drained()
        await wait_cycles(dut, 40)
        await model.check(kernel)
    assert await kernel.read("REPLACED_RX") > 3


@cocotb.test()
async def gaps_and_heavy_flows(dut) -> None:
    kernel = await begin(dut, 7)
    flow, other = a_flow(), a_flow()
    frame = bytes(flow / Raw(bytes(100)))
    place = place_of(flow_of(frame), 7)
    await kernel.write(THRESHOLD=3 * len(frame))
    waits = [5, 40, 40, 300, 300, 300, 3000]
    for at, wait in enumerate([0, *waits]):
        await wait_cycles(dut, wait)
        kernel.rx_in.send(frame)
        await kernel.rx_in.drained()
        await wait_cycles(dut, 20)
        heavy = [(await kernel.ctrl.read(0x300 + 4 * word))[0] for word in range(16)]
        assert sum(heavy) == (1 << place % 32 if at >= 2 else 0) and bool(heavy[place // 32]) == (at >= 2)
    gaps = [(await kernel.ctrl.read(0x200 + 4 * word))[0] for word in range(32)]
    assert sum(gaps) == len(waits)
    # Each wait, and what the test itself takes for the registers.
    assert gaps[11] + gaps[12] == 1 and sum(gaps[:5]) == 0
    kernel.rx_in.send(bytes(other / Raw(bytes(100))))
    await kernel.rx_in.drained()
    await wait_cycles(dut, 20)
    assert sum([(await kernel.ctrl.read(0x200 + 4 * word))[0] for word in range(32)]) == len(waits), "a first frame has no gap"
    await kernel.write(COMMAND=1)
    assert not any([(await kernel.ctrl.read(0x200 + 4 * word))[0] for word in range(96)])
    assert await shown(kernel, place) is None
    for name in ("OTHER_RX", "REPLACED_RX", "OTHER_TX", "REPLACED_TX"):
        assert await kernel.read(name) == 0
    kernel.rx_in.send(frame)
    await kernel.rx_in.drained()
    await wait_cycles(dut, 20)
    again = await shown(kernel, place)
    assert again and (again.frames, again.bytes, again.before) == (1, len(frame), 0)


@cocotb.test()
async def looks_while_frames_come_without_a_gap(dut) -> None:
    """A look is one state of the flow, frames and bytes together, and holds nobody up for long."""
    kernel = await begin(dut, 9)
    flow = a_flow()
    frame = bytes(flow / Raw(bytes(14)))[: 64 if BYTES == 64 else None]
    frame = frame.ljust(64, b"\0")[: max(64, len(frame))]
    place = place_of(flow_of(frame), 9)
    number = 1500
    for _ in range(number):
        kernel.rx_in.send(frame)
    seen = []
    while kernel.rx_in.busy:
        entry = await shown(kernel, place)
        if entry:
            assert entry.bytes == entry.frames * len(frame)
            seen.append(entry.frames)
    await wait_cycles(dut, 30)
    entry = await shown(kernel, place)
    assert entry and entry.frames == number and seen == sorted(seen) and len(seen) > 2
    assert len(kernel.rx_out.packets) == number


@pytest.mark.parametrize("width", some(WIDTHS))
def test_stream_telemetry(width: int) -> None:
    run_kernel("telemetry", __file__, width, at_width(width, "share|looks"))
