# SPDX-License-Identifier: Apache-2.0
"""What the event log of a simulated device holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .cci import address
from .svtypes import constant

if TYPE_CHECKING:
    from .session import SimDevice

RING_ENTRIES = constant("event_log_pkg::LOG_RING_ENTRIES")


def logged(device: SimDevice, kind: str) -> list[tuple[int, int]]:
    """The two words of each entry of this kind, `event_log_pkg::LOG_` before it, the oldest first."""
    code = constant(f"event_log_pkg::LOG_{kind}")
    ring = code >> 6
    head = device.read(address("event_log.HEAD") + 4 * ring)
    words = address("event_log.WORDS") + 16 * RING_ENTRIES * ring
    entries = [
        [device.read(words + 16 * (i % RING_ENTRIES) + 4 * word) for word in (1, 2, 3)]
        for i in range(max(0, head - RING_ENTRIES), head)
    ]
    return [(a, b) for found, a, b in entries if found >> 24 == code]
