# SPDX-License-Identifier: Apache-2.0
"""How often small messages go from device to device over one queue pair."""

from __future__ import annotations

from nacelle_tb.pair import FIRST_QPN, RQ_DEPTH, Pair, Traffic
from pytest import mark

ROUND_TRIP = 190  # cycles from a work request of 64 bytes to its completion
DEPTH = 16


@mark.parametrize("size", [64, 256])
def test_receives_are_posted_faster_than_sends_come(size: int) -> None:
    """With as many receives as SENDs outstanding no SEND finds none, and SENDs go as often as WRITEs."""
    depth, count = min(DEPTH, RQ_DEPTH), 400
    assert depth == DEPTH
    with Pair(unlimited=True) as pair:
        receive = Traffic("WR_RECV", size, count, depth=depth)
        pair.start(1, receive)
        pair.line.step(3000)
        outcome = pair.run(Traffic("WR_SEND", size, count, depth=depth))
        pair.finish(1, receive)
        assert outcome.cycles_each <= ROUND_TRIP / depth
        me, peer = (manager.counters(FIRST_QPN) for manager in pair.managers)
        assert me["rnr_nak_retry_err"] == peer["send_rnr_err"] == 0
        assert me["sent_pkts"] == count and me["packet_retransmit"] == 0


@mark.parametrize("depth", [1, 8, 32])
def test_a_queue_pair_sends_as_many_messages_in_a_round_trip_as_may_be_outstanding(depth: int) -> None:
    with Pair(unlimited=True) as pair:
        outcome = pair.run(Traffic("WR_RDMA_WRITE", 64, 100 * depth, depth=depth))
        assert outcome.cycles_each <= ROUND_TRIP / depth
