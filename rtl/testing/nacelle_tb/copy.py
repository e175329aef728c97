# SPDX-License-Identifier: Apache-2.0
"""Descriptors and completions of the copy engine as bytes, and the places of a ring."""

from __future__ import annotations

from dataclasses import dataclass

from .svtypes import constant, struct

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
