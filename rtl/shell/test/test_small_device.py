# SPDX-License-Identifier: Apache-2.0
"""The device for a small FPGA (devices/ecp5.toml): without management port, congestion control, discovery and event log."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from nacelle_tb.cci import address
from nacelle_tb.device import MESSAGES, named
from nacelle_tb.peer import INPUT, OUTPUT, Peer, Region, internet_checksum
from nacelle_tb.session import Network, SimDevice, configure, outputs
from scapy.layers.dns import DNS, DNSQR
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether

INCREMENT = 1
NO_MEMORY = 2
SECOND = 62_500_000  # cycles


@pytest.fixture
def small() -> Iterator[SimDevice]:
    with SimDevice(64, line_rate_mbps=1000, device="ecp5") as sim:
        configure(sim)
        yield sim


def peers(count: int) -> list[Peer]:
    return [
        Peer(ip=f"10.77.0.{20 + i}", mac=f"02:00:00:00:01:{i:02x}", qpn=0x700 + i, comm_id=0x5000 + i, tid=0x9900 + i)
        for i in range(count)
    ]


def test_calls_of_several_callers(small: SimDevice) -> None:
    callers = peers(4)
    net = Network(small, callers)
    for peer in callers:
        net.connect(peer)
        data = bytes(range(256)) * 8
        net.set_up(peer, [Region(INPUT | OUTPUT, bytearray(data))])
    for round_ in range(1, 4):
        for peer in callers:
            assert net.call(peer, INCREMENT) == 0
            assert outputs(peer)[0] == bytes(byte + round_ & 0xFF for byte in data)
    for peer in callers:
        net.disconnect(peer)


def test_memory_ends(small: SimDevice) -> None:
    """More than there is, is refused; all that there is can be had, by one caller after the other."""
    device = named("ecp5")
    callers = peers(3)
    net = Network(small, callers)
    heap = device.memory_bytes - device.queue_pairs * MESSAGES - 4096
    for peer, size in zip(callers, (heap + 1, heap, heap), strict=True):
        net.connect(peer)
        message, _, _ = net.exchange(peer, peer.advertise([Region(INPUT | OUTPUT, bytearray(size))]))
        if size > heap:
            assert message == bytes([0, NO_MEMORY, 0, 0])
        else:
            peer.take_advert(message)
            assert net.call(peer, INCREMENT) == 0 and set(outputs(peer)[0]) == {1}
        net.disconnect(peer)


def test_no_management_port(small: SimDevice) -> None:
    """Its page has nothing but the way to the next block; nobody can connect to it."""
    page = address("management.TYPE")
    assert small.read(8) == page and small.read(page) == 0 and small.read(page + 8) == address("admission.TYPE")
    for offset in (0xC, 0x100, 0xFFC):
        with pytest.raises(OSError):
            small.read(page + offset)
        with pytest.raises(OSError):
            small.write(page + offset, 0)
    small.write(address("LISTEN_PORT"), 4444)
    (peer,) = peers(1)
    peer.port = 4444
    with pytest.raises(AssertionError):
        Network(small, [peer]).connect(peer)


def test_no_event_log(small: SimDevice) -> None:
    """Its page has nothing but the way to the next block, the first socket: there is no trace either."""
    page = address("event_log.TYPE")
    assert small.read(address("admission.TYPE") + 8) == page and small.read(page) == 0
    assert small.read(page + 8) == 0x10000
    for offset in (0xC, 0x20, 0x800, 0xFFC):
        with pytest.raises(OSError):
            small.read(page + offset)
        with pytest.raises(OSError):
            small.write(page + offset, 0)


def test_no_histograms(small: SimDevice) -> None:
    """The page is nobody's."""
    for offset in (0, 8, 0x400):
        with pytest.raises(OSError):
            small.read(address("histograms.TYPE") + offset)


def test_no_sensors(small: SimDevice) -> None:
    """The page is nobody's."""
    for offset in (0, 8, 0x80):
        with pytest.raises(OSError):
            small.read(address("sensors.TYPE") + offset)


def test_nothing_is_announced(small: SimDevice) -> None:
    """Neither by mDNS nor by LLDP, also when the register asks for it; a question by mDNS is not taken."""
    (peer,) = peers(1)
    network = Network(small, [peer])
    small.write(address("DISCOVERY"), 3)
    question = DNS(qd=[DNSQR(qname="_nacelle._udp.local", qtype="PTR")])
    head = Ether(src=peer.mac, dst="01:00:5e:00:00:fb") / IP(src=peer.ip, dst="224.0.0.251", ttl=255) / UDP(sport=5353, dport=5353)
    small.send(bytes(head / question))
    for _ in range(4 * 16):
        small.skip(SECOND // 16)
        network.step(1000)
    assert not network.other and small.counter("service_mdns_sent") == small.counter("service_lldp_sent") == 0
    network.connect(peer)
    network.disconnect(peer)


def congested(frame: bytes) -> bytes:
    """Marked by a switch on its way (RFC 3168)."""
    head = bytearray(frame[14:34])
    head[1] |= 3
    head[10:12] = bytes(2)
    head[10:12] = internet_checksum(bytes(head)).to_bytes(2, "big")
    return frame[:14] + bytes(head) + frame[34:]


def test_congestion_is_not_controlled(small: SimDevice) -> None:
    """Marked packets are taken as any others, and answered by no CNP."""
    (peer,) = peers(1)
    net = Network(small, [peer])
    net.connect(peer)
    data = bytes(range(250)) * 20
    net.set_up(peer, [Region(INPUT | OUTPUT, bytearray(data))])
    net.send([congested(frame) for frame in peer.call(INCREMENT)])
    assert net.answer(peer)[0] == 0 and outputs(peer)[0] == bytes(byte + 1 & 0xFF for byte in data)
    assert small.counter("roce_rx_np_ecn_marked_roce_packets") > 0 and small.counter("roce_rx_np_cnp_sent") == 0
    net.disconnect(peer)
