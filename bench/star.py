# SPDX-License-Identifier: Apache-2.0
"""Eight devices on a 100G switch: what seven get that write to one, and what one gives that writes to seven."""

from __future__ import annotations

import time
from collections.abc import Iterator

from nacelle_tb.pair import CLOCK_HZ, Traffic
from nacelle_tb.star import FIRST_QPN, Star, fairness
from result import Result

HOW = "make bench AREA=rtl"
DEVICES = 8
OTHERS = range(1, DEVICES)
SIZE = 65536
ENDLESS = 0xFFFF_FFFF
SMALL, STOP = 256 << 10, 16 << 10  # bytes: room of a port of a small switch, and when it stops a device (PFC)
SETTLE, WINDOW = 500_000, 250_000  # cycles: 2 ms for the rates to settle, 1 ms


def result(name: str, value: float, unit: str, better: str = "higher") -> Result:
    """There are no goals."""
    return Result(f"rtl.star{DEVICES}.{name}", value, unit, None, better, "eight devices on a switch", HOW)


def gbps(size: float) -> float:
    """Of bytes in the window."""
    return size * 8 / WINDOW * CLOCK_HZ / 1e9


def many_to_one(name: str, congestion: bool, settle: int = SETTLE, **switch: int) -> Iterator[Result]:
    """All write to the first: goodput together, fairness, how deep the queue was, and what it dropped."""
    with Star(DEVICES, congestion=congestion, **switch) as star:
        qpns = [star.join(0, other)[0] for other in OTHERS]
        for other in OTHERS:
            star.start(other, Traffic("WR_RDMA_WRITE", SIZE, ENDLESS))
        star.step(settle)
        port = star.ports[0]
        dropped, port.deepest, before = port.dropped, 0, star.received(0, qpns)
        star.step(WINDOW)
        shares = [after - earlier for earlier, after in zip(before, star.received(0, qpns), strict=True)]
    yield result(f"{name}.goodput", gbps(sum(shares)), "Gb/s")
    yield result(f"{name}.fairness", fairness(shares), "Jain's index")
    yield result(f"{name}.queue", port.deepest / 1024, "KiB at most", "lower")
    yield result(f"{name}.dropped", port.dropped - dropped, "frames in 1 ms", "lower")


def one_to_many() -> Iterator[Result]:
    """The first writes to all others: goodput together, fairness, and how fast eight devices are simulated."""
    with Star(DEVICES) as star:
        for other in OTHERS:
            star.join(0, other)
        star.start(0, Traffic("WR_RDMA_WRITE", SIZE, ENDLESS, qps=len(OTHERS)))
        star.step(SETTLE // 10)
        before, begin = [star.received(other, [FIRST_QPN])[0] for other in OTHERS], time.monotonic()
        star.step(WINDOW)
        seconds = time.monotonic() - begin
        shares = [star.received(other, [FIRST_QPN])[0] - earlier for earlier, other in zip(before, OTHERS, strict=True)]
    yield result("1_to_7.goodput", gbps(sum(shares)), "Gb/s")
    yield result("1_to_7.fairness", fairness(shares), "Jain's index")
    yield result("simulation", WINDOW / seconds / 1000, "kHz")


def measure() -> Iterator[Result]:
    """All of them."""
    yield from many_to_one("7_to_1", congestion=True)
    yield from many_to_one("7_to_1.uncontrolled", congestion=False)
    yield from many_to_one("7_to_1.small", congestion=False, settle=SETTLE // 5, queue_bytes=SMALL)
    yield from many_to_one("7_to_1.pfc", congestion=False, settle=SETTLE // 5, queue_bytes=SMALL, pfc_bytes=STOP)
    yield from one_to_many()
