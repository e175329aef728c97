# SPDX-License-Identifier: Apache-2.0
"""Figures of the simulated device at 512 bits: exact, in device cycles; and how fast the simulation runs.

Here: one device and callers that cost no time. Between two devices: transport.py. With a slow memory: slow_memory.py. Several
devices on a switch: star.py, switch.py. The model of DRAM: dram.py. In a slot: copies.py, card.py; Linux over
the network card: guest_time.py.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import card
import copies
import device_time
import dram
import guest_time
import slow_memory
import star
import switch
import transport
from device_time import EMPTY, fresh
from nacelle_tb.peer import ACKNOWLEDGE, INPUT, OUTPUT, Region
from reference_speed import Reference
from result import Result

HOW = "make bench AREA=rtl"
INCREMENT = 1
SIZES = (64, 128, 192, 256, 512, 1000, 1024, 2048, 4096)
BEAT = 64
# Twice what the library of `make sim` has, by the same measurement: 1.7 on 2026-11-23.
SPEED_GOAL = 3.4


def setup_cycles() -> int:
    """Region set-up of three regions."""
    return device_time.set_up([Region(INPUT | OUTPUT, bytearray(64)) for _ in range(3)])


def call_cycles(size: int = 64) -> int:
    """RPC with an empty kernel, `size` bytes in and out: last beat in to last beat out."""
    device, net, peer = fresh()
    net.set_up(peer, [Region(INPUT | OUTPUT, bytearray(size))])
    net.step(2000)
    device_time.entered(device)
    net.send(peer.call(EMPTY))
    _, _, sent = net.answer(peer)
    entered = device.rx_stamp()
    assert entered is not None
    device.close()
    return sent.last_beat - entered.last_beat


def receive_drops(size: int) -> int:
    """Frames dropped for lack of room while 200 WRITEs of `size` bytes come back to back."""
    device, net, peer = fresh()
    net.set_up(peer, [Region(INPUT | OUTPUT, bytearray(1 << 20))])
    net.step(2000)
    before = device.counter("packet_drop_overflow")
    region = peer.regions[0]
    net.send([f for i in range(200) for f in peer.write_message(region.device_addr + i * size, region.device_rkey, bytes(size))])
    last = peer.send_psn - 1 & 0xFFFFFF
    net.wait(peer, lambda p: p.opcode == ACKNOWLEDGE and p.psn == last, "last acknowledgement")
    drops = device.counter("packet_drop_overflow") - before
    device.close()
    return drops


def transmit_bubbles(size: int) -> float:
    """Share of cycles without a beat while WRITEs of `size` bytes leave: an answer of 31 such regions, or of one region."""
    packets = 31
    device, net, peer = fresh()
    net.set_up(peer, [Region(INPUT | OUTPUT, bytearray(size)) for _ in range(packets)])
    net.send(peer.call(EMPTY))
    caller = net.caller(peer)
    writes = []
    while len(writes) < packets:
        net.step(2000)
        while caller.inbox:
            packet, sent = caller.inbox.popleft()
            if 0x06 <= packet.opcode <= 0x0B:
                writes.append(sent)
    beats = sum(-(-len(sent.frame) // BEAT) for sent in writes)
    cycles = writes[-1].last_beat - writes[0].first_beat + 1
    device.close()
    return 100 * (1 - beats / cycles)


def simulation_speed() -> float:
    """Cycles a second of processor time while frames come in and leave without a pause."""
    device, net, peer = fresh(1024)
    net.set_up(peer, [Region(INPUT | OUTPUT, bytearray(1 << 20))])
    frames = peer.call(INCREMENT)
    net.send(frames[: len(frames) // 2])
    cycles = device.stats.cycles_simulated
    begin = time.process_time()
    device.step(20_000)
    seconds = time.process_time() - begin
    simulated = device.stats.cycles_simulated - cycles
    device.close()
    return simulated / seconds


def simulation() -> Iterator[Result]:
    """The simulator's speed, and its ratio to the reference program's: both in turn, the best of five, since other work of the
    machine only ever makes a run slower."""
    reference = Reference()
    runs = [(simulation_speed(), reference.speed()) for _ in range(5)]
    speed, beside = (max(column) for column in zip(*runs, strict=True))
    yield Result("rtl.simulation.busy", speed, "cycles/s", 100_000, "higher", "goals 3", HOW)
    peer = ("reference, rounds/s", beside)
    yield Result("rtl.simulation.busy.ratio", speed / beside, "x reference", SPEED_GOAL, "higher", "goals 3", HOW, peer)


def measure() -> Iterator[Result]:
    """All of them."""
    yield Result("rtl.setup.3_regions.cycles", setup_cycles(), "cycles", 1000, "lower", "goals 1", HOW)
    yield Result("rtl.rpc.empty_64B.cycles", call_cycles(), "cycles", 300, "lower", "goals 1", HOW)
    yield from device_time.measure()
    for size in SIZES:
        yield Result(f"rtl.receive.{size}B.dropped_frames", receive_drops(size), "frames", 0, "lower", "goals 1", HOW)
    for size in SIZES:
        yield Result(f"rtl.transmit.{size}B.bubbles", transmit_bubbles(size), "% of cycles", 0, "lower", "goals 1", HOW)
    yield from transport.measure()
    yield from slow_memory.measure()
    yield from dram.measure()
    yield from star.measure()
    yield from switch.measure()
    yield from copies.measure()
    yield from card.measure()
    yield from guest_time.measure()
    yield from simulation()
