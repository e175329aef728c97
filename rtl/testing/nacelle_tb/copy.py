# SPDX-License-Identifier: Apache-2.0
"""Descriptors and completions of the copy engine as bytes, and the driver of the queue of a simulated device."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from .cci import address
from .svtypes import constant, struct

if TYPE_CHECKING:
    from .session import SimDevice

DESCRIPTOR_BYTES, COMPLETION_BYTES = 32, 16
OK, SOURCE, DESTINATION, BAD = (constant(f"copy_pkg::COPY_{name}") for name in ("OK", "SOURCE", "DESTINATION", "DESCRIPTOR"))
SETTINGS, PRODUCER, FETCH, COMPLETION, DESCRIPTOR, RESET = (
    constant(f"copy_pkg::STOP_{name}") for name in ("SETTINGS", "PRODUCER", "FETCH", "COMPLETION", "DESCRIPTOR", "RESET")
)
REPORT, INTERRUPT = 1, 2


def descriptor(source: int, destination: int, length: int, flags: int = REPORT, tag: int = 0, reserved: int = 0) -> bytes:
    """A descriptor in memory."""
    words = source | destination << 64 | length << 128 | flags << 160 | tag << 192 | reserved << 224
    return words.to_bytes(DESCRIPTOR_BYTES, "little")


@dataclass(frozen=True)
class Completion:
    """A completion in memory."""

    tag: int
    status: int
    generation: int

    @staticmethod
    def of(data: bytes) -> Completion:
        """From its bytes."""
        fields = struct("copy_pkg::copy_completion_t").unpack(int.from_bytes(data, "little"))
        assert fields.zeros == fields.none == 0
        return Completion(fields.tag, fields.status, fields.generation)


def generation(index: int, log: int) -> int:
    """What says that completion number `index` of a ring of 2^log is there."""
    return 1 - (index >> log & 1)


class CopyQueue:
    """What a driver of the host does. Descriptors are in host or device memory, completions in host memory, by device addresses."""

    HOST = 1 << 63

    def __init__(self, device: SimDevice, descriptors: int, completions: int, log: int = 5, vector: int = 0) -> None:
        self.device, self.descriptors, self.completions, self.log, self.vector = device, descriptors, completions, log, vector
        self.posted = self.seen = 0

    def get(self, at: int, length: int) -> bytes:
        """Bytes at a device address, without a simulated access."""
        return self.device.slot.host_read(at - self.HOST, length) if at >= self.HOST else self.device.dram_read(at, length)

    def set(self, at: int, data: bytes) -> None:
        """The same."""
        self.device.slot.host_write(at - self.HOST, data) if at >= self.HOST else self.device.dram_write(at, data)

    def register(self, name: str) -> int:
        """A register of the block, by the local bus: the host's time does not pass."""
        return self.device.read(address(f"copy.{name}"))

    def begin(self) -> None:
        """Enables it."""
        self.set(self.completions, bytes(COMPLETION_BYTES << self.log))
        registers = {
            **{"DESCRIPTORS_LO": self.descriptors & 0xFFFF_FFFF, "DESCRIPTORS_HI": self.descriptors >> 32},
            **{"COMPLETIONS_LO": self.completions & 0xFFFF_FFFF, "COMPLETIONS_HI": self.completions >> 32},
            **{"SIZES": self.log | self.log << 8 | self.vector << 16, "CTRL": 1},
        }
        self.device.write(address("copy.CTRL"), 0)
        for name, value in registers.items():
            self.device.write(address(f"copy.{name}"), value)
        self.posted = self.seen = 0

    def end(self, cycles: int = 100_000) -> None:
        """Disables it, and waits until all has ended."""
        self.device.write(address("copy.CTRL"), 0)
        for _ in range(0, cycles, 10):
            if not self.register("STATE") & 1:
                return
            self.device.step(10)
        raise AssertionError("it never ends")

    def put(self, source: int, destination: int, length: int, flags: int = REPORT, tag: int = 0) -> None:
        """A descriptor into the ring, which has room."""
        at = self.descriptors + self.posted % (1 << self.log) * DESCRIPTOR_BYTES
        self.set(at, descriptor(source, destination, length, flags, tag))
        self.posted += 1

    def ring(self) -> None:
        """The doorbell, in the host's time."""
        self.device.slot.set_register(address("copy.PRODUCER"), self.posted % (1 << 16))

    def completion(self) -> Completion | None:
        """The next one, if it is there."""
        at = self.completions + self.seen % (1 << self.log) * COMPLETION_BYTES
        found = Completion.of(self.get(at, COMPLETION_BYTES))
        if found.generation != generation(self.seen, self.log):
            return None
        self.seen += 1
        return found

    def completed(self, cycles: int = 200_000, pause: int = 1) -> Completion:
        """The next one, in device time."""
        for _ in range(0, cycles, pause):
            if (found := self.completion()) is not None:
                return found
            self.device.step(pause)
        raise AssertionError("no completion came")
