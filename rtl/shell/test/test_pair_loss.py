# SPDX-License-Identifier: Apache-2.0
"""What the loss of one packet costs: a stream of WRITEs between two devices at 100 Gb/s, 10 us apart and back, MTU 4096, and
the packets in the middle of it that are lost."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise

from nacelle_tb.long import some
from nacelle_tb.pair import FIRST_QPN, Pair, Traffic
from nacelle_tb.peer import Packet
from nacelle_tb.tap import Passed, Tap
from pytest import mark

ONE_WAY = 1250  # cycles
PACKET = 84  # cycles of a full packet at 100 Gb/s and 250 MHz
ROUND_TRIP = 2 * ONE_WAY + 5 * PACKET  # with the packet behind the lost one, which the peer answers, and both devices' time
QUEUED = 8 * PACKET  # what is sent again leaves behind: 16 KiB in roce_tx, and what is in the units around it
LOST = 300  # which packet of the stream


@contextmanager
def stream(selective: bool, lose: Callable[[int, Packet], bool], cycles: int = 60_000) -> Iterator[tuple[Pair, list[Passed]]]:
    """An endless stream with losses, and what passed in `cycles`."""
    with Pair(delay_cycles=ONE_WAY, selective_repeat=selective, timeout=5, make_line=Tap) as pair:
        pair.line.lose = lose
        pair.start(0, Traffic("WR_RDMA_WRITE", 65536, count=0xFFFF_FFFF))
        pair.line.step(cycles)
        yield pair, pair.line.passed


def nth(sender: int, *numbers: int, nak: bool = False) -> Callable[[int, Packet], bool]:
    """Loses these packets of a sender, counted from 1: of the requests, or of the NAKs."""
    seen = 0

    def lose(who: int, packet: Packet) -> bool:
        nonlocal seen
        is_nak = packet.opcode == 0x11 and packet.syndrome >> 5 == 3
        seen += who == sender and is_nak == nak
        return who == sender and is_nak == nak and seen in numbers

    return lose


def copies(passed: Sequence[Passed], psn: int) -> list[Passed]:
    """All times that a request was sent."""
    return [p for p in passed if p.sender == 0 and p.packet.psn == psn]


def idle(passed: Sequence[Passed]) -> int:
    """Cycles in which the line carried no request and might have, once the stream ran."""
    begins = [p.first_beat for p in passed if p.sender == 0][LOST // 2 :]
    return sum(max(0, later - earlier - PACKET - 2) for earlier, later in pairwise(begins))


@mark.parametrize("selective", [True, False])
@mark.parametrize("lost", some([LOST + 7, LOST, LOST + 15]))
def test_a_single_loss_costs_a_round_trip_and_what_is_queued(selective: bool, lost: int) -> None:
    with stream(selective, nth(0, lost)) as (pair, passed):
        gone = next(p for p in passed if p.lost)
        nak = next(p for p in passed if p.nak)
        first, *again = copies(passed, gone.packet.psn)
        assert first == gone and len(again) == 1, "sent again once"
        assert nak.arrives - gone.first_beat <= ROUND_TRIP
        assert again[0].first_beat - nak.arrives <= QUEUED
        assert idle(passed) <= 2 * PACKET
        counters = pair.managers[0].counters(FIRST_QPN)
        assert counters["local_ack_timeout_err"] == 0 and counters["packet_seq_err"] == 1
        assert counters["packet_retransmit"] <= (1 if selective else (ROUND_TRIP + QUEUED) // PACKET)


@mark.parametrize("gap", [1, 2, 5])
def test_selective_repeat_repairs_two_losses_one_after_the_other(gap: int) -> None:
    with stream(True, nth(0, LOST, LOST + gap)) as (pair, passed):
        gone = [p for p in passed if p.lost]
        again = [copies(passed, p.packet.psn)[1:] for p in gone]
        assert len(gone) == 2 and [len(a) for a in again] == [1, 1]
        assert again[1][0].first_beat - again[0][0].first_beat <= ROUND_TRIP + QUEUED
        assert idle(passed) <= 2 * PACKET
        counters = pair.managers[0].counters(FIRST_QPN)
        assert counters["local_ack_timeout_err"] == 0 and counters["packet_retransmit"] == 2


def test_selective_repeat_sends_a_lost_repetition_again_without_a_timeout() -> None:
    lost: dict[int, int] = {}

    def lose(sender: int, packet: Packet) -> bool:
        """A packet and its first repetition."""
        if sender == 0:
            lost[packet.psn] = lost.get(packet.psn, 0) + 1
        return sender == 0 and packet.psn == 100 and lost[packet.psn] <= 2

    with stream(True, lose) as (pair, passed):
        _, second, third = copies(passed, 100)
        assert third.first_beat - second.first_beat <= ROUND_TRIP + QUEUED
        assert idle(passed) <= 2 * PACKET
        assert pair.managers[0].counters(FIRST_QPN)["local_ack_timeout_err"] == 0


def test_selective_repeat_does_without_a_nak() -> None:
    data, naks = nth(0, LOST), nth(1, 1, 2, nak=True)
    with stream(True, lambda sender, packet: data(sender, packet) or naks(sender, packet)) as (pair, passed):
        gone = next(p for p in passed if p.lost and p.sender == 0)
        _, again = copies(passed, gone.packet.psn)
        assert again.first_beat - gone.first_beat <= ROUND_TRIP + 2 * PACKET + QUEUED, "the third says the same"
        assert pair.managers[0].counters(FIRST_QPN)["local_ack_timeout_err"] == 0


@mark.parametrize("what", some(["nak", "repetition"]))
def test_go_back_n_needs_the_timeout_only_if_a_repetition_or_nak_is_lost(what: str) -> None:
    """The peer sends one NAK (IBTA 9.7.5.2.8); only the timeout detects its loss."""
    seen: dict[int, int] = {}
    nak = nth(1, 1, nak=True)

    def lose(sender: int, packet: Packet) -> bool:
        if what == "nak" and nak(sender, packet):
            return True
        if sender == 0:
            seen[packet.psn] = seen.get(packet.psn, 0) + 1
        return sender == 0 and packet.psn == 100 and seen[packet.psn] <= (2 if what == "repetition" else 1)

    with stream(False, lose, 90_000) as (pair, passed):
        assert len(copies(passed, 100)) == (3 if what == "repetition" else 2)
        assert pair.managers[0].counters(FIRST_QPN)["local_ack_timeout_err"] == 1
