# SPDX-License-Identifier: Apache-2.0
"""How long a request takes through a switch: its parts when nothing else is under way, and how that spreads when six others load
the port that it goes to. Without MACs, transceivers and cables. The switch stores and forwards and takes 500 ns (see star.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from nacelle_tb.pair import CLOCK_HZ, Traffic
from nacelle_tb.peer import ACKNOWLEDGE, WRITE_ONLY, Packet, parse
from nacelle_tb.star import Passage, Star
from result import Result

HOW = "make bench AREA=rtl"
SOURCE = "through a switch"
# What the source document measured between two boards, with 100G MACs, transceivers and a switch.
SOURCE_NS = {"write": 3900, "read": 2800}
SIZE = 64
# The traffic kernel clears its tables first and then offers its request two cycles after.
CLEAR = 1024 + 2
DEVICES = 8
TARGET, PROBE, LOADS = 0, 7, range(1, 7)
PROBES = 16  # queue pairs of the probe: one request outstanding on each
LOAD_SIZE = 65536
ENDLESS = 0xFFFF_FFFF
SETTLE, WINDOW = 500_000, 400_000  # cycles: 2 ms, 1.6 ms


def ns(cycles: float) -> float:
    """Of the device's clock."""
    return cycles * 1e9 / CLOCK_HZ


def result(name: str, cycles: float, peer: tuple[str, float] | None = None) -> Result:
    """There are no goals."""
    return Result(f"rtl.switch.{name}", ns(cycles), "ns", None, "lower", SOURCE, HOW, peer)


def parts(verb: str, opcode: str) -> Iterator[Result]:
    """From the work request to the first data in memory: in the device that asks, on the way, in the other one, and for a READ on
    the way back and in the first one again."""
    passages: list[Passage] = []
    with Star(2, congestion=False, quantum=4, watch=passages.append) as star:
        star.join(0, 1)
        star.step(1000)
        passages.clear()
        star.start(0, Traffic(opcode, SIZE))
        begin = star.devices[0].stats.cycles + CLEAR
        star.step(8000)
        memory = star.devices[0 if verb == "read" else 1].stats.dram_last_write
    request_out, request_in, *answer = [p for p in passages if parse(p.frame) is not None]
    yield result(f"{verb}.requester", request_out.first - begin)
    yield result(f"{verb}.way", request_in.last - request_out.first)
    if verb == "read":
        answer_out, answer_in = answer
        yield result(f"{verb}.responder", answer_out.first - request_in.last)
        yield result(f"{verb}.way_back", answer_in.last - answer_out.first)
        yield result(f"{verb}.to_memory", memory - answer_in.last)
    else:
        yield result(f"{verb}.responder", memory - request_in.last)
    yield result(f"{verb}.total", memory - begin, ("source document, with MACs and cables", SOURCE_NS[verb]))


def round_trips(congestion: bool, loaded: bool) -> list[float]:
    """Of WRITEs of the probe, in cycles: from the request's first beat to the end of its acknowledgement, in order of size."""
    sent: dict[tuple[int, int], float] = {}
    taken: list[float] = []
    peers: dict[int, int] = {}  # queue pair of the target, by that of the probe

    def watch(passage: Passage) -> None:
        if passage.device != PROBE:
            return
        packet: Packet | None = parse(passage.frame)
        if packet is None:
            return
        if passage.leaves and packet.opcode == WRITE_ONLY:
            sent.setdefault((packet.dest_qp, packet.psn), passage.first)
        elif not passage.leaves and packet.opcode == ACKNOWLEDGE:
            begin = sent.pop((peers[packet.dest_qp], packet.psn), None)
            if begin is not None:
                taken.append(passage.last - begin)

    with Star(DEVICES, congestion=congestion, watch=watch) as star:
        for other in LOADS:
            star.join(TARGET, other)
        for _ in range(PROBES):
            at_target, at_probe = star.join(TARGET, PROBE)
            peers[at_probe] = at_target
        if loaded:
            for other in LOADS:
                star.start(other, Traffic("WR_RDMA_WRITE", LOAD_SIZE, ENDLESS))
        star.start(PROBE, Traffic("WR_RDMA_WRITE", SIZE, ENDLESS, qps=PROBES, depth=1))
        star.step(SETTLE if loaded else SETTLE // 10)
        taken.clear()
        star.step(WINDOW if loaded else WINDOW // 10)
    return sorted(taken)


def share(values: Sequence[float], thousandths: int) -> float:
    """The value that so many of a thousand do not exceed."""
    return values[min(len(values) * thousandths // 1000, len(values) - 1)]


def spread(name: str, congestion: bool, loaded: bool = True) -> Iterator[Result]:
    """How round trips of small WRITEs spread."""
    values = round_trips(congestion, loaded)
    for words, thousandths in (("p50", 500), ("p99", 990), ("p99_9", 999), ("most", 1000)):
        yield result(f"round_trip.{name}.{words}", share(values, thousandths))


def measure() -> Iterator[Result]:
    """All of them."""
    yield from parts("write", "WR_RDMA_WRITE")
    yield from parts("read", "WR_RDMA_READ")
    yield from spread("idle", congestion=True, loaded=False)
    yield from spread("loaded", congestion=True)
    yield from spread("loaded_uncontrolled", congestion=False)
