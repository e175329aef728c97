# SPDX-License-Identifier: Apache-2.0
"""Copies between host and device memory by the copy engine, in a slot of Gen3 x16: time of one, and throughput of many, by size;
and how far each memory is from a master of the device.

The host is in lock-step: it writes the doorbell, and looks at the completion in host memory each cycle.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from nacelle_sim import HOST_MEMORY, NO_RATE_LIMIT
from nacelle_tb.copy import OK, REPORT, CopyQueue
from nacelle_tb.session import SimDevice, configure
from result import Result
from sizes import size_name

SOURCE = "copies"
UNSET = "none is set"
SIZES = tuple(64 << 2 * i for i in range(9))  # to 4 MiB
IOVA = 0x12_3456_0000_0000
HOST = HOST_MEMORY | IOVA
NEAR = 0x1000_0000
ROOM = 8 << 20
"""Bytes from HOST and from NEAR on that copies use; what is behind them is for rings"""
RINGS = 1 << 18
RING_LOG = 8
LONGEST_ALONE = 64 << 10
DRAM_LATENCY = 49
"""Cycles of a read of the device's memory, 0.196 us at 250 MHz as RecoNIC's has it"""
WAYS = {"to_device": (HOST, NEAR), "to_host": (NEAR, HOST)}


@dataclass(frozen=True)
class Slot:
    """A device in a slot with its queue of copies; `how` says what a figure holds for."""

    device: SimDevice

    @property
    def how(self) -> str:
        """The command, and the parameters of the slot."""
        return f"make bench AREA=rtl; {self.device.info.data_w} bits, {self.device.slot}"

    def cycles(self, count: int, size: int, source: int, destination: int, rings: int = HOST) -> int:
        """From the doorbell to the last of so many completions. Descriptors are behind the room at `rings`."""
        queue = CopyQueue(self.device, rings + ROOM, HOST + ROOM + RINGS, RING_LOG)
        queue.begin()
        for i in range(count):
            at = (i * size + 63 & ~63) % ROOM
            queue.put(source + at, destination + at, size, REPORT, i)
        begin = self.device.stats.cycles
        queue.ring()
        for i in range(count):
            completion = queue.completed(1_000_000, pause=1 + size * (count - 1) // 16384)
            if (completion.tag, completion.status) != (i, OK):
                raise RuntimeError(f"copy {i} of {size} bytes ended with {completion}")
        passed = self.device.stats.cycles - begin
        if queue.get(source, size) != queue.get(destination, size):
            raise RuntimeError(f"a copy of {size} bytes has wrong data")
        queue.end()
        return passed

    def rate(self, size: int, source: int, destination: int) -> float:
        """GB/s: by what twice as many copies take longer than so many, since their start is not to be in it. So many copy
        512 KiB, or half of what the ring has room for."""
        count = min(120, max(2, (512 << 10) // size))
        once, twice = (self.cycles(n * count, size, source, destination) for n in (1, 2))
        return count * size / (twice - once) * self.device.info.clock_hz / 1e9


@contextmanager
def slot(data_w: int = 512) -> Iterator[Slot]:
    """One with the default parameters, full of random bytes. It has broken no rule at the end."""
    with SimDevice(data_w, device="slot", line_rate_mbps=NO_RATE_LIMIT, dram_latency_cycles=DRAM_LATENCY) as device:
        device.slot.enable()
        device.slot.map(IOVA, 2 * ROOM)
        configure(device)
        data = random.Random(1).randbytes(ROOM)
        device.slot.host_write(IOVA, data)
        device.dram_write(NEAR, data[::-1])
        yield Slot(device)
        device.slot.check()


def measure(data_w: int = 512) -> Iterator[Result]:
    """All of them."""
    with slot(data_w) as place:
        for way, (source, destination) in WAYS.items():
            for size in SIZES:
                if size <= LONGEST_ALONE:
                    cycles = place.cycles(1, size, source, destination)
                    goal = 600 if size == 64 else None
                    name = f"rtl.copy.{way}.{size_name(size)}.cycles"
                    yield Result(name, cycles, "cycles", goal, "lower", SOURCE if goal else UNSET, place.how)
                goal = 12.8 if size >= 64 << 10 else None
                rate = place.rate(size, source, destination)
                name = f"rtl.copy.{way}.{size_name(size)}.rate"
                yield Result(name, rate, "GB/s", goal, "higher", SOURCE if goal else UNSET, place.how)
            cycles = place.cycles(1, 64, source, destination, rings=NEAR)
            yield Result(f"rtl.copy.{way}.device_ring.cycles", cycles, "cycles", 600, "lower", SOURCE, place.how)
        # Where only the source differs, so does the time.
        near, far = (place.cycles(1, 64, source, NEAR + 4096, rings=NEAR) for source in (NEAR, HOST))
        read = far - near + DRAM_LATENCY
        slowest = place.device.slot.settings.read_ns * place.device.info.clock_hz // 1_000_000_000 + 10
        yield Result("rtl.master.host_memory.read_64B.cycles", read, "cycles", slowest, "lower", SOURCE, place.how)


if __name__ == "__main__":
    import sys

    for result in measure(int(sys.argv[1]) if len(sys.argv) > 1 else 512):
        print(result.line(), flush=True)
