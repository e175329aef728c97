# SPDX-License-Identifier: Apache-2.0
"""Several devices on one switch: all data arrives, whatever the switch drops; queues that are marked stay short; nobody starves."""

from __future__ import annotations

import pytest
from nacelle_tb.cci import counters
from nacelle_tb.long import LONG, some
from nacelle_tb.pair import LOCAL, REMOTE, Traffic, counted, works
from nacelle_tb.star import FIRST_QPN, Star, fairness

RATE_MBPS = 10_000
SIZE = 16384
ENDLESS = 0xFFFF_FFFF
LIMIT = 5_000_000  # cycles


def star(count: int, **options: int) -> Star:
    """Of small devices."""
    return Star(count, data_w=64, mtu=1024, rate_mbps=RATE_MBPS, **options)


@pytest.mark.skipif(not LONG, reason="make test-long has the time")
def test_a_switch_with_little_room_drops_and_all_arrives() -> None:
    with star(3, queue_bytes=8192, congestion=False) as net:
        qpns = [net.join(0, other)[0] for other in (1, 2)]
        for i, device in enumerate(net.devices[1:]):
            device.dram_write(LOCAL, bytes([i + 1]) * SIZE)
        for other in (1, 2):
            net.start(other, Traffic("WR_RDMA_WRITE", SIZE, 2))
        while any(works(device) for device in net.devices[1:]):
            net.step(5000)
            assert net.now < LIMIT
        assert net.ports[0].dropped > 0
        for device in net.devices[1:]:
            assert counted(device)["completed"] == 2 and counted(device)["failed"] == 0
        assert all(size >= 2 * SIZE for size in net.received(0, qpns))
        assert net.devices[0].dram_read(REMOTE, 1)[0] in (1, 2)


@pytest.mark.parametrize("pfc", some([True, False]))
def test_a_switch_that_stops_the_senders_drops_nothing(pfc: bool) -> None:
    """Two write to one through little room: without PFC frames are lost, with it none, and both have their share."""
    room = {"pfc_bytes": 4096} if pfc else {}
    with star(3, queue_bytes=24576, congestion=False, **room) as net:
        qpns = [net.join(0, other)[0] for other in (1, 2)]
        for other in (1, 2):
            net.start(other, Traffic("WR_RDMA_WRITE", SIZE, ENDLESS))
        net.step(60_000)
        before = net.received(0, qpns)
        net.step(60_000)
        shares = [after - earlier for earlier, after in zip(before, net.received(0, qpns), strict=True)]
        counts = [{name: device.read(at) for name, at in counters().items()} for device in net.devices[1:]]
        assert (net.ports[0].dropped == 0) == pfc
        assert all((port.stops > 0) == pfc for port in net.ports[1:]) and net.ports[0].stops == 0
        assert all((count["packet_rx_pfc"] > 0) == pfc and (count["packet_stopped_roce"] > 0) == pfc for count in counts)
        assert all(count["packet_stopped_other"] == count["packet_pause_ignored"] == 0 for count in counts)
        if pfc:
            assert fairness(shares) > 0.98
            assert sum(shares) * 8 > 0.85 * RATE_MBPS * 1e6 * 60_000 / net.devices[0].info.clock_hz


@pytest.mark.skipif(not LONG, reason="make test-long has the time")
def test_marks_keep_the_queue_short() -> None:
    with star(3, queue_bytes=1 << 20, mark_bytes=1 << 14) as net:
        qpns = [net.join(0, other)[0] for other in (1, 2)]
        for other in (1, 2):
            net.start(other, Traffic("WR_RDMA_WRITE", SIZE, ENDLESS))
        net.step(400_000)
        port = net.ports[0]
        assert port.marked > 0 and port.dropped == 0
        assert all(net.managers[0].counters(qpn)["np_cnp_sent"] > 0 for qpn in qpns)
        assert all(net.managers[other].counters(FIRST_QPN)["rp_cnp_handled"] > 0 for other in (1, 2))
        port.deepest, before = 0, net.received(0, qpns)
        net.step(200_000)
        shares = [after - earlier for earlier, after in zip(before, net.received(0, qpns), strict=True)]
        assert port.deepest < 1 << 16
        assert fairness(shares) > 0.8


def test_one_device_serves_several_alike() -> None:
    with star(3) as net:
        for other in (1, 2):
            net.join(0, other)
        net.start(0, Traffic("WR_RDMA_WRITE", SIZE, ENDLESS, qps=2))
        net.step(50_000)
        shares = [net.received(other, [FIRST_QPN])[0] for other in (1, 2)]
        assert fairness(shares) > 0.98
        assert sum(shares) * 8 > 0.85 * RATE_MBPS * 1e6 * 50_000 / net.devices[0].info.clock_hz
