# SPDX-License-Identifier: Apache-2.0
"""Two devices on a line, queue pairs made by software: the counters of each queue pair agree with those of the other side, with
the work requests, and with the counts of the line and of the devices."""

from __future__ import annotations

from nacelle_tb.cci import address
from nacelle_tb.long import some
from nacelle_tb.management import QP_COUNTERS, ManagerError
from nacelle_tb.pair import FIRST_QPN, MTU_CODE, Pair, Traffic
from nacelle_tb.svtypes import constant
from pytest import mark, raises

QPS, RD_DEPTH = constant("device_pkg::QPS"), constant("device_pkg::RD_DEPTH")
NO_TROUBLE = (
    "packet_retransmit local_ack_timeout_err rnr_nak_retry_err packet_seq_err duplicate_request out_of_seq_request sent_nak "
    "send_rnr_err np_cnp_sent rp_cnp_handled"
).split()


def settled(pair: Pair) -> None:
    """Nothing is on its way any more."""
    pair.line.step(20_000, skip=True)


def both(pair: Pair, qpn: int = FIRST_QPN) -> tuple[dict[str, int], dict[str, int]]:
    """The counters of a queue pair at the device that works, and at the one that serves it."""
    return pair.managers[0].counters(qpn), pair.managers[1].counters(qpn)


def agree(me: dict[str, int], peer: dict[str, int]) -> None:
    """Everything that left arrived."""
    assert me["sent_pkts"] == peer["rcvd_pkts"] and me["sent_bytes"] == peer["rcvd_bytes"]
    assert me["rcvd_responses"] == peer["sent_responses"] and me["rcvd_response_bytes"] == peer["sent_response_bytes"]


@mark.parametrize("mtu", sorted(MTU_CODE))
def test_without_loss_both_sides_agree(mtu: int) -> None:
    length, count = 3 * mtu + 5, 20
    with Pair(mtu=mtu) as pair:
        assert both(pair) == (dict.fromkeys(QP_COUNTERS, 0),) * 2
        pair.run(Traffic("WR_RDMA_WRITE", length, count))
        settled(pair)
        me, peer = both(pair)
        agree(me, peer)
        assert (me["sent_pkts"], me["sent_bytes"]) == (4 * count, length * count)
        assert 0 < me["rcvd_responses"] <= me["sent_pkts"] and me["rcvd_response_bytes"] == 0
        pair.run(Traffic("WR_RDMA_READ", length, count, depth=RD_DEPTH))
        settled(pair)
        me_read, peer_read = both(pair)
        agree(me_read, peer_read)
        assert me_read["sent_pkts"] - me["sent_pkts"] == count and me_read["sent_bytes"] == me["sent_bytes"]
        assert me_read["rcvd_responses"] - me["rcvd_responses"] == 4 * count
        assert me_read["rcvd_response_bytes"] == length * count
        for side in (me_read, peer_read):
            assert not any(side[name] for name in NO_TROUBLE), side
        assert pair.line.stats(0).sent >= me_read["sent_pkts"]


def test_each_queue_pair_has_its_own() -> None:
    qps, count, length = 8, 80, 1000
    with Pair(qps) as pair:
        pair.run(Traffic("WR_RDMA_WRITE", length, count, qps=qps))
        settled(pair)
        for qpn in range(FIRST_QPN, FIRST_QPN + qps):
            me, peer = both(pair, qpn)
            agree(me, peer)
            assert (me["sent_pkts"], me["sent_bytes"]) == (count // qps, length * count // qps)


@mark.parametrize("selective_repeat", [False, True])
@mark.parametrize("seed", some([1, 2]))
def test_with_loss_every_difference_is_explained(selective_repeat: bool, seed: int) -> None:
    length, count, mtu = 40_000, 60, 1024
    with Pair(mtu=mtu, selective_repeat=selective_repeat, loss_ppm=20_000, random_seed=seed) as pair:
        pair.run(Traffic("WR_RDMA_WRITE", length, count), skip=True)
        settled(pair)
        me, peer = both(pair)
        to, back = pair.line.stats(0), pair.line.stats(1)
        packets = count * -(-length // mtu)
        assert me["packet_retransmit"] == me["sent_pkts"] - packets > 0
        # Nothing but this queue pair's packets is on the line, apart from the devices' announcements.
        assert 0 <= me["sent_pkts"] - peer["rcvd_pkts"] <= to.lost
        assert 0 <= peer["sent_responses"] - me["rcvd_responses"] <= back.lost
        assert to.lost > 0 and me["sent_pkts"] - peer["rcvd_pkts"] >= to.lost - 2
        assert me["sent_bytes"] >= length * count and peer["rcvd_bytes"] >= length * count
        assert 0 < me["packet_seq_err"] <= peer["sent_nak"]
        # Every packet was taken once; the others came again, or too early.
        if not selective_repeat:
            assert peer["out_of_seq_request"] >= peer["sent_nak"]
            assert peer["rcvd_pkts"] == packets + peer["duplicate_request"] + peer["out_of_seq_request"]
        assert me["rnr_nak_retry_err"] == peer["send_rnr_err"] == 0
        assert me["duplicate_request"] == me["rcvd_pkts"] == peer["sent_pkts"] == peer["rcvd_responses"] == 0


def test_a_silent_peer_is_counted_as_timeouts() -> None:
    with Pair(timeout=4) as pair:
        pair.managers[1].reset(FIRST_QPN)
        traffic = Traffic("WR_RDMA_WRITE", 100)
        pair.start(0, traffic)
        with raises(RuntimeError, match="failed"):
            pair.finish(0, traffic, skip=True)
        me, peer = both(pair)
        assert me["local_ack_timeout_err"] == 8 and me["packet_retransmit"] == 7 and me["sent_pkts"] == 8
        assert me["rcvd_responses"] == 0 and peer["rcvd_pkts"] == 0


def test_a_receiver_that_is_not_ready_is_counted_on_both_sides() -> None:
    with Pair() as pair:
        send, receive = Traffic("WR_SEND", 500), Traffic("WR_RECV", 500, depth=1)
        pair.start(0, send)
        pair.line.step(10_000)
        pair.start(1, receive)
        pair.finish(0, send)
        pair.finish(1, receive)
        settled(pair)
        me, peer = both(pair)
        agree(me, peer)
        assert me["rnr_nak_retry_err"] == peer["send_rnr_err"] > 0
        assert me["packet_retransmit"] == me["sent_pkts"] - 1 == peer["send_rnr_err"]
        assert peer["sent_nak"] == 0


def test_congestion_is_told_and_heeded() -> None:
    with Pair(rate_mbps=20_000, queue_bytes=1 << 20, mark_bytes=20_000) as pair:
        for device in pair.devices:
            device.write(address("RP_ENABLE"), 1)
            device.write(address("NP_ENABLE"), 1)
        pair.run(Traffic("WR_RDMA_WRITE", 1 << 18, 2))
        settled(pair)
        me, peer = both(pair)
        agree(me, peer)
        assert me["rp_cnp_handled"] == peer["np_cnp_sent"] > 0
        assert me["np_cnp_sent"] == peer["rp_cnp_handled"] == 0


def test_a_set_up_clears() -> None:
    with Pair(2) as pair:
        pair.run(Traffic("WR_RDMA_WRITE", 5000, 10, qps=2))
        settled(pair)
        first, other = both(pair), both(pair, FIRST_QPN + 1)
        for manager in pair.managers:
            manager.reset(FIRST_QPN)
        assert both(pair) == first, "kept until the next set-up"
        pair.make(FIRST_QPN)
        assert both(pair) == (dict.fromkeys(QP_COUNTERS, 0),) * 2
        assert both(pair, FIRST_QPN + 1) == other
        with raises(ManagerError):
            pair.make(FIRST_QPN)  # it is set up: refused, nothing cleared
        pair.run(Traffic("WR_RDMA_WRITE", 5000, 10))
        with raises(ManagerError):
            pair.make(FIRST_QPN)
        settled(pair)
        me, peer = both(pair)
        agree(me, peer)
        assert me["sent_bytes"] == 50_000


def test_of_no_queue_pair() -> None:
    with Pair() as pair:
        for qpn in (0, 1, FIRST_QPN + QPS):
            with raises(ManagerError, match="error 2"):
                pair.managers[0].counters(qpn)
        assert pair.managers[0].counters(FIRST_QPN + QPS - 1) == dict.fromkeys(QP_COUNTERS, 0)
