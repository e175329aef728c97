# SPDX-License-Identifier: Apache-2.0
"""The device for a small FPGA (devices/ecp5.toml): without what it leaves out (docs/how-to/build-for-a-board.md)."""

from __future__ import annotations

import struct
from collections.abc import Iterator

import pytest
from nacelle_tb import cm
from nacelle_tb.cci import address, counters
from nacelle_tb.device import MESSAGES, named
from nacelle_tb.peer import (
    ACKNOWLEDGE,
    INPUT,
    OUTPUT,
    READ_FIRST,
    READ_ONLY,
    UD_SEND_ONLY,
    WRITE_FIRST,
    WRITE_ONLY,
    WRITE_ONLY_IMM,
    Peer,
    Region,
    internet_checksum,
)
from nacelle_tb.session import Network, SimDevice, configure, outputs
from scapy.contrib.mac_control import MACControlPause
from scapy.layers.dns import DNS, DNSQR
from scapy.layers.inet import ICMP, IP, UDP
from scapy.layers.l2 import Dot1Q, Ether

INCREMENT = 1
NO_MEMORY = 2
SECOND = 62_500_000  # cycles
UDP_PROTOCOL = 17
CNP = 0x81  # the opcode
NAK_REMOTE_ACCESS = 0x62


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
    assert not network.other
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
    heard: list[bytes] = []
    net.lose = lambda frame: heard.append(frame) or False
    net.send([congested(frame) for frame in peer.call(INCREMENT)])
    assert net.answer(peer)[0] == 0 and outputs(peer)[0] == bytes(byte + 1 & 0xFF for byte in data)
    net.disconnect(peer)
    opcodes = {frame[42] for frame in heard if frame[23] == UDP_PROTOCOL}
    assert opcodes and CNP not in opcodes


def test_selective_repeat_is_not_agreed(small: SimDevice) -> None:
    """Who offers it gets a REP without it, and a lost packet is sent again with all behind it."""
    (peer,) = peers(1)
    net = Network(small, [peer])
    request = cm.Request(
        local_id=peer.comm_id, qpn=peer.qpn, psn=peer.recv_psn, ip=peer.ip, called=peer.device_ip, port=peer.port,
        mtu=peer.mtu.bit_length() - 8, guid=cm.guid(peer.mac), resources=peer.depth, depth=peer.depth, extensions=cm.extensions(1),
    )  # fmt: skip
    net.send([peer.mad(cm.REQ, request.data())])
    packet, _ = net.wait(peer, lambda packet: packet.opcode == UD_SEND_ONLY, "REP")
    assert cm.Message(peer.ip, peer.mac, packet.payload).extensions == bytes(8)
    peer.take_rep(packet)
    net.send([peer.rtu()])
    data = bytes(range(251)) * 40
    net.set_up(peer, [Region(INPUT | OUTPUT, bytearray(data))])
    lost, sent = [], []

    def loses_the_second(frame: bytes) -> bool:
        is_write = frame[23] == UDP_PROTOCOL and WRITE_FIRST <= frame[42] <= WRITE_ONLY_IMM
        if is_write:
            sent.append(frame[51:54])
        if is_write and len(sent) == 2:
            lost.append(frame[51:54])
        return is_write and len(sent) == 2

    net.lose = loses_the_second
    assert net.call(peer, INCREMENT, cycles=20_000_000) == 0
    assert outputs(peer)[0] == bytes(byte + 1 & 0xFF for byte in data)
    assert len(lost) == 1 and sent.count(lost[0]) == 2 and len(sent) > len(set(sent)) + 1
    net.disconnect(peer)


@pytest.mark.parametrize("bit", [17, 18, 19, 31, 32, 63])
@pytest.mark.parametrize("writes", [False, True], ids=["read", "write"])
def test_no_address_stands_for_another(small: SimDevice, bit: int, writes: bool) -> None:
    """The device keeps 18 bits of its addresses. One of a peer that differs above these is not the region's."""
    (peer,) = peers(1)
    net = Network(small, [peer])
    net.connect(peer)
    data = bytes(range(200))
    net.set_up(peer, [Region(INPUT | OUTPUT, bytearray(data))])
    region = peer.regions[0]
    assert net.call(peer, INCREMENT) == 0
    at = region.device_addr ^ 1 << bit
    if writes:
        extension = struct.pack("!QII", at, region.device_rkey, len(data))
        net.send([peer.roce(WRITE_ONLY, peer.device_qpn, peer.send_psn, extension, data, ack=True)])
    else:
        net.send([peer.read_request(at, region.device_rkey, len(data))])
    packet, _ = net.wait(peer, lambda packet: packet.opcode == ACKNOWLEDGE or READ_FIRST <= packet.opcode <= READ_ONLY, "answer")
    assert packet.opcode == ACKNOWLEDGE and packet.syndrome == NAK_REMOTE_ACCESS


def test_no_counters(small: SimDevice) -> None:
    """Each is there, and 0, whatever happens."""
    (peer,) = peers(1)
    net = Network(small, [peer])
    net.connect(peer)
    net.disconnect(peer)
    small.send(peer.arp_request()[:20])
    small.step(1000)
    found = {name: small.read(at) for name, at in counters().items()}
    assert len(found) > 100 and set(found.values()) == {0}


def test_no_link_control(small: SimDevice) -> None:
    """A VLAN and flow control can be set, and nothing follows: frames stay without a tag, and a pause stops none."""
    (peer,) = peers(1)
    small.write(address("VLAN"), 1 << 31 | 7)
    small.write(address("FLOW_CONTROL"), 3)
    ping = IP(src=peer.ip, dst=peer.device_ip) / ICMP(id=7, seq=1)
    ethernet = Ether(dst=peer.device_mac, src=peer.mac)
    pause = bytes(Ether(dst="01:80:c2:00:00:01", src="02:00:00:00:00:99") / MACControlPause(pause_time=0xFFFF)).ljust(60, b"\0")
    small.send(pause)
    small.send(bytes(ethernet / Dot1Q(vlan=7) / ping))
    small.send(bytes(ethernet / ping))
    answer = small.recv(5000)
    assert answer is not None and Ether(answer.frame)[ICMP].type == 0 and Dot1Q not in Ether(answer.frame)
    assert small.recv(20_000) is None
