# SPDX-License-Identifier: Apache-2.0
"""How often small messages go from device to device over one queue pair, and what others' queue pairs cost a stream."""

from __future__ import annotations

from nacelle_tb.long import some
from nacelle_tb.management import QpAttributes
from nacelle_tb.pair import FIRST_QPN, RQ_DEPTH, Pair, Traffic
from pytest import mark

ROUND_TRIP = 190  # cycles from a work request of 64 bytes to its completion
DEPTH = 16
SIDES = SENDER, RECEIVER = 0, 1


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


@mark.parametrize(
    ("opcode", "size", "qps"), some([("WR_RDMA_WRITE", 64, 8), ("WR_RDMA_READ", 65536, 1), ("WR_RDMA_WRITE", 65536, 1)])
)
def test_a_queue_pair_made_and_reset_over_and_over_costs_a_stream_nothing(opcode: str, size: int, qps: int) -> None:
    """As fast as the registers allow, which is faster than connections come and go: at most 1 %.

    Only a device that answers READs may lose more, 3 %: it lets its responses leave before it takes a queue pair down.
    """
    rates = []
    attributes = QpAttributes(dst_mac=1, dst_ip=2, dest_qp_num=3)
    for disturbed in (None, *SIDES):
        with Pair(qps=8) as pair:
            pair.start(0, Traffic(opcode, size, 0xFFFF_FFFF, qps=qps))
            pair.line.step(20_000)
            before, begin, resets = pair.arrived(), pair.devices[0].stats.cycles, 0
            while (passed := pair.devices[0].stats.cycles - begin) < 60_000:
                if disturbed is not None:
                    pair.managers[disturbed].set_up(200, attributes)
                    pair.managers[disturbed].reset(200)
                    resets += 1
                else:
                    pair.line.step(1000)
            rates.append((pair.arrived() - before) / passed)
            assert resets > 40 or disturbed is None
    assert rates[1 + SENDER] >= 0.99 * rates[0], rates
    assert rates[1 + RECEIVER] >= (0.97 if opcode == "WR_RDMA_READ" else 0.99) * rates[0], rates
