# SPDX-License-Identifier: Apache-2.0
"""A memory that is slow, and at times does nothing at all, costs queue pairs that do not use it nothing.

That means: beyond their fair share of the line and of the receive path. Their throughput and latency are no worse than beside
as many other queue pairs of the fast memory, which take as much of both as they can get.
"""

from __future__ import annotations

import pytest
from nacelle_tb.load import beside
from nacelle_tb.long import some


@pytest.mark.parametrize(("kind", "size"), some([("write", 256), ("read", 3000), ("write", 1024), ("read", 256)]))
def test_a_slow_memory_costs_others_nothing(kind: str, size: int) -> None:
    fair, _ = beside(64, "test", kind, size, "near")
    for others in ("far", "both"):
        mine, slow = beside(64, "test", kind, size, others)
        print(f"{kind} of {size}: beside others of the same memory {fair}; beside those of the slow one {mine}; these {slow}")
        assert slow.done and slow.most > 5000, "the slow memory has stalled"
        assert mine.done >= 0.98 * fair.done
        assert mine.mean <= 1.02 * fair.mean + 4
        assert mine.p99 <= 1.1 * fair.p99 + 16
        assert mine.most <= 1.2 * fair.most + 32
