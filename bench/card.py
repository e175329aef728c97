# SPDX-License-Identifier: Apache-2.0
"""The network card in a device in a slot of Gen3 x16: cycles a frame, one way and both, and time from the line to the driver's ring
and from the driver's notification to the line. No rate of the line is kept, so the card and the slot are what is measured. Short
frames come as fast as the receive stores take them, long ones a little faster than a line has them, and some are dropped if the
card is slower; both ways at once they are measured in a slot of Gen4 x16, too.

The driver is in lock-step: its processor costs no time, its accesses what the slot says. One pair of queues, a buffer a frame.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from nacelle_sim import NO_RATE_LIMIT
from nacelle_tb.nic import IOVA, SIZE, Nic, now
from nacelle_tb.session import SimDevice, configure
from nacelle_tb.virtio import Buffer, Virtqueue, header
from result import Result

SOURCE = "network card"
UNSET = "none is set"
QUEUE = 256
SHORT, LONG = LENGTHS = (64, 1514)
"""Bytes of a frame, without FCS"""
LINE_BYTES = 50
"""100 Gbit/s at 250 MHz, a cycle"""
FASTER = 1.02
"""than the line long frames come"""
ON_THE_LINE = 24
"""Preamble, FCS and gap"""
ROOM = 12 << 10
"""Bytes of short frames that are under way to the driver: the receive stores have room for them"""
PATIENCE = 20_000
"""Cycles"""
FRAMES, FIRST = 1600, 800
"""Frames of a run, and how many of them pass before it is measured: by then the driver is in step"""
WAYS = {"receive": (True, False), "transmit": (False, True), "both": (True, True)}


def line_cycles(length: int) -> float:
    """Of a frame on the line."""
    return (length + ON_THE_LINE) / LINE_BYTES


@contextmanager
def nic(data_w: int, generation: int = 3) -> Iterator[Nic]:
    """A device with its card set up, which has no buffers yet. It has broken no rule of the slot at the end."""
    with SimDevice(data_w, device="nic", line_rate_mbps=NO_RATE_LIMIT) as device:
        device.slot.set(generation=generation)
        for function in (device.slot, device.slot.card):
            function.enable()
        device.slot.card.map(IOVA, SIZE)
        configure(device)
        yield Nic(device, QUEUE).begin(0)
        device.slot.check()


def frame_of(card: Nic, length: int, leaves: bool = False) -> bytes:
    """One that no unit of the device takes, to the card or from it."""
    addresses = bytes(card.ether())[:12]
    return ((addresses[6:] + addresses[:6] if leaves else addresses) + b"\x88\xb5").ljust(length, b"\0")


class Way:
    """A queue of the card that is kept full, and when its frames were done."""

    def __init__(self, card: Nic, number: int, buffers: list[Buffer]) -> None:
        self.card, self.number = card, number
        self.queue: Virtqueue = card.driver.queues[number]
        self.done = 0
        self.first = self.last = (0, 0)
        """Cycle and frames that were done by then: when FIRST were, and at the end"""
        for buffer in buffers:
            self.queue.add([buffer], token=buffer)
        now(card.driver.show(number))

    def step(self) -> None:
        """Gives each buffer that came back once more."""
        fresh = 0
        while (taken := self.queue.take()) is not None:
            buffer = taken[2]
            self.queue.add([buffer], token=buffer)
            fresh += 1
        if fresh:
            now(self.card.driver.show(self.number))
            self.done += fresh
            self.last = (self.card.device.stats.cycles, self.done)
            if not self.first[1] and self.done >= FIRST:
                self.first = self.last

    def cycles(self) -> float:
        """A frame."""
        return (self.last[0] - self.first[0]) / (self.last[1] - self.first[1])


def cycles_a_frame(data_w: int, length: int, receives: bool, transmits: bool, generation: int = 3) -> float:
    """Of the slower way."""
    with nic(data_w, generation) as card:
        device, heap = card.device, card.driver.heap
        frame, room = frame_of(card, length), len(header()) + length
        ways = []
        if receives:
            ways.append(Way(card, 0, [Buffer(heap.take(2048), 2048, True) for _ in range(QUEUE)]))
        if transmits:
            at = heap.take(room)
            card.driver.memory.write(at, header() + frame_of(card, length, leaves=True))
            ways.append(Way(card, 1, [Buffer(at, room)] * QUEUE))
        device.step(4000)
        arriving, begin = 0, device.stats.cycles
        while min(way.done for way in ways) < FRAMES:
            if length == SHORT:
                due = ways[0].done + min(3 * QUEUE // 4, ROOM // length)
            else:
                due = int((device.stats.cycles - begin) / line_cycles(length) * FASTER)
            while receives and arriving < due:
                device.send(frame)
                arriving += 1
            device.step(20)
            while device.pull() is not None or device.rx_stamp() is not None:
                pass
            for way in ways:
                way.step()
            if device.stats.cycles > 200_000:
                raise RuntimeError(f"frames of {length} bytes do not pass")
        if length == SHORT and (lost := card.counter("RX_NO_BUFFER") + device.counter("packet_drop_overflow")):
            raise RuntimeError(f"{lost} frames were dropped")
        return max(way.cycles() for way in ways)


def latencies(data_w: int, length: int) -> tuple[int, int]:
    """Last beat of a frame in to its entry in the used ring; notification to first beat of a frame out. Cycles, alone."""
    with nic(data_w) as card:
        device, driver = card.device, card.driver
        frame = frame_of(card, length)
        card.post(8)
        device.send(frame)
        for _ in range(PATIENCE):
            if driver.queues[0].take() is not None:
                break
            device.step(1)
        seen = device.stats.cycles
        stamp = device.rx_stamp()
        if stamp is None:
            raise RuntimeError("the frame has not entered")
        frame = frame_of(card, length, leaves=True)
        while device.pull() is not None:
            pass
        driver.transmit(frame)
        begin = device.stats.cycles
        now(driver.show(1))
        sent = device.recv(PATIENCE)
        if sent is None or sent.frame != frame:
            raise RuntimeError("the frame has not left")
        return seen - stamp.last_beat, sent.first_beat - begin


def measure(data_w: int = 512) -> Iterator[Result]:
    """All of them."""

    def conditions(generation: int) -> str:
        with nic(data_w, generation) as card:
            return f"make bench AREA=rtl; {data_w} bits, queues of {QUEUE}, {card.device.slot}"

    how = conditions(3)
    for length in LENGTHS:
        for way, (receives, transmits) in WAYS.items():
            goal = 8 if length == SHORT else line_cycles(length)
            cycles = cycles_a_frame(data_w, length, receives, transmits)
            yield Result(f"rtl.card.{way}.{length}B.cycles", cycles, "cycles", goal, "lower", SOURCE, how)
        arrived, left = latencies(data_w, length)
        yield Result(f"rtl.card.arrival.{length}B.cycles", arrived, "cycles", None, "lower", UNSET, how)
        yield Result(f"rtl.card.departure.{length}B.cycles", left, "cycles", None, "lower", UNSET, how)

    cycles = cycles_a_frame(data_w, LONG, receives=True, transmits=True, generation=4)
    yield Result(f"rtl.card.both_gen4.{LONG}B.cycles", cycles, "cycles", line_cycles(LONG), "lower", SOURCE, conditions(4))


if __name__ == "__main__":
    import sys

    for result in measure(int(sys.argv[1]) if len(sys.argv) > 1 else 512):
        print(result.line(), flush=True)
