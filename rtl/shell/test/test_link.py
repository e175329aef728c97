# SPDX-License-Identifier: Apache-2.0
"""The link of the whole device: flow control, VLAN, ICMP errors; the other side is scapy, or a caller whose frames scapy tags."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from nacelle_tb.cci import address, counters
from nacelle_tb.peer import INPUT, OUTPUT, Peer, Region
from nacelle_tb.session import Network, SimDevice, configure, outputs
from scapy.contrib.mac_control import MACControlClassBasedFlowControl, MACControlPause
from scapy.layers.inet import ICMP, IP, TCP, UDP, UDPerror
from scapy.layers.l2 import ARP, Dot1Q, Ether
from scapy.packet import Raw

GROUP, SWITCH = "01:80:c2:00:00:01", "02:00:00:00:00:99"
VID, ROCE_PCP, OTHER_PCP = 7, 3, 1
ENABLE, UNTAGGED = 1 << 31, 1 << 16
QUANTUM = 1.28  # cycles at 100 Gb/s
INCREMENT = 1
MS = 250_000


@pytest.fixture
def device() -> Iterator[SimDevice]:
    """At 64 bits; the units have tests at each width."""
    with SimDevice(64, line_rate_mbps=0xFFFF_FFFF) as sim:
        configure(sim)
        yield sim


def control(body: Any) -> bytes:
    """A MAC control frame of the switch."""
    return bytes(Ether(dst=GROUP, src=SWITCH) / body).ljust(60, b"\0")


def pause(quanta: int) -> bytes:
    return control(MACControlPause(pause_time=quanta))


def pfc(**quanta: int) -> bytes:
    fields = {f"{name}_pause_time": value for name, value in quanta.items()} | {f"{name}_enabled": 1 for name in quanta}
    return control(MACControlClassBasedFlowControl(**fields))


def ping(peer: Peer, length: int = 56, **tag: int) -> bytes:
    ip = IP(src=peer.ip, dst=peer.device_ip) / ICMP(id=7, seq=length) / Raw(bytes(length))
    ethernet = Ether(dst=peer.device_mac, src=peer.mac)
    return bytes(ethernet / Dot1Q(**tag) / ip if tag else ethernet / ip)


def count(device: SimDevice, name: str) -> int:
    return device.read(counters()[name])


def test_a_pause_holds_back_all_frames(device: SimDevice) -> None:
    peer = Peer()
    for quanta in (1000, 10_000):
        device.wait(200_000)  # echo requests pay for their wait
        before = count(device, "packet_stopped_roce")
        device.send(pause(quanta))
        device.send(ping(peer))
        begin = device.stats.cycles
        answer = device.recv(100_000)
        assert answer is not None and Ether(answer.frame)[ICMP].type == 0
        assert 0.9 * quanta * QUANTUM < answer.first_beat - begin < quanta * QUANTUM + 300
        assert abs(count(device, "packet_stopped_roce") - before - quanta * QUANTUM) < 30
    device.wait(200_000)
    device.send(pause(0xFFFF))
    device.send(ping(peer))
    assert device.recv(5000) is None
    device.send(pause(0))
    assert device.recv(1000) is not None
    device.wait(200_000)
    device.write(address("FLOW_CONTROL"), 0)
    device.send(pause(0xFFFF))
    device.send(ping(peer))
    assert device.recv(1000) is not None
    assert count(device, "packet_rx_pause") == 5 and count(device, "packet_rx_pfc") == 0


def test_pfc_stops_roce_and_not_the_rest(device: SimDevice) -> None:
    peer = Peer()
    net = Network(device, [peer])
    net.connect(peer)
    net.set_up(peer, [Region(INPUT | OUTPUT, bytearray(random.randbytes(3000)))])
    device.step(20_000)
    while device.pull():
        pass
    device.send(pfc(c3=0xFFFF, c5=100))
    net.send(peer.call(INCREMENT))
    device.send(ping(peer))
    answer = device.recv(5000)
    assert answer is not None and Ether(answer.frame)[ICMP].type == 0
    assert device.recv(20_000) is None, "a RoCE frame although they are stopped"
    device.send(pfc(c0=0xFFFF, c3=0))
    device.send(ping(peer))
    want = bytes(byte + 1 & 0xFF for byte in peer.regions[0].data)
    assert net.answer(peer)[0] == 0 and outputs(peer) == [want]
    assert not net.other, "an echo although others are stopped"
    assert count(device, "packet_stopped_other") > 0


def test_who_is_stopped_for_ever_goes_on(device: SimDevice) -> None:
    """A neighbour that never stops to stop: it is ignored after the limit, and that is counted."""
    peer = Peer()
    device.write(address("PAUSE_LIMIT_MS"), 1)
    begin, answer = device.stats.cycles, None
    device.send(pause(0xFFFF))
    device.send(ping(peer))
    while answer is None and device.stats.cycles < begin + 4 * MS:
        device.send(pause(0xFFFF))
        answer = device.recv(50_000)
    assert answer is not None and MS <= answer.first_beat - begin <= 2 * MS + 100_000
    assert count(device, "packet_pause_ignored") == 1  # both classes at once
    device.send(pause(0))
    device.step(100)
    device.send(pause(0xFFFF))
    device.send(ping(peer))
    assert device.recv(20_000) is None, "it is obeyed again"


class Trunk:
    """A device behind a port that tags: its frames come without their tag, of which each must have the right one."""

    def __init__(self, device: SimDevice) -> None:
        self._device = device
        self.seen: set[tuple[str, int]] = set()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._device, name)

    def send(self, frame: bytes) -> None:
        plain = Ether(frame)
        self._device.send(bytes(Ether(dst=plain.dst, src=plain.src) / Dot1Q(vlan=VID, prio=ROCE_PCP, type=plain.type) / frame[14:]))

    def pull(self) -> Any:
        sent = self._device.pull()
        return sent and self._untagged(sent)

    def _untagged(self, sent: Any) -> Any:
        tagged = Ether(sent.frame)
        assert tagged[Dot1Q].vlan == VID
        kind = "roce" if UDP in tagged and tagged[UDP].dport == 4791 else "other"
        assert tagged[Dot1Q].prio == (ROCE_PCP if kind == "roce" else OTHER_PCP)
        self.seen.add((kind, tagged[Dot1Q].prio))
        return replace(sent, frame=sent.frame[:12] + sent.frame[16:])


def test_a_call_in_a_vlan(device: SimDevice) -> None:
    """Connect, set up, call, results: every frame of the device has the tag, with the priority of its kind."""
    device.write(address("VLAN"), ENABLE | VID)
    device.write(address("PRIORITY"), OTHER_PCP << 4 | ROCE_PCP)
    trunk, peer = Trunk(device), Peer()
    net = Network(trunk, [peer])
    net.connect(peer)
    for size in (1, 3000):
        net.set_up(peer, [Region(INPUT | OUTPUT, bytearray(random.randbytes(size)))])
        want = bytes(byte + 1 & 0xFF for byte in peer.regions[0].data)
        assert net.call(peer, INCREMENT) == 0 and outputs(peer) == [want]
        assert net.read(peer, peer.regions[0].device_addr, peer.regions[0].device_rkey, size)[:size] == want
    net.disconnect(peer)
    trunk.send(peer.arp_request())
    device.step(1000)
    assert trunk.pull() is not None
    assert trunk.seen == {("roce", ROCE_PCP), ("other", OTHER_PCP)}


def test_which_tags_are_taken(device: SimDevice) -> None:
    peer = Peer()
    for untagged in (0, UNTAGGED):
        device.write(address("VLAN"), ENABLE | VID | untagged)
        device.step(10)
        before = count(device, "packet_drop_vlan")
        for n in range(64):
            device.send(ping(peer, n, vlan=VID, prio=n % 8))
            answer = device.recv(2000)
            assert answer is not None
            packet = Ether(answer.frame)
            assert packet[Dot1Q].vlan == VID and packet[Dot1Q].prio == 0 and packet[ICMP].type == 0 and packet[ICMP].seq == n
            assert len(answer.frame) == max(60, 42 + n) + 4
        for frame in (ping(peer), ping(peer, vlan=0, prio=5)):
            device.send(frame)
            assert (device.recv(1500) is not None) == bool(untagged)
        service = ping(peer, vlan=VID).replace(b"\x81\0", b"\x88\xa8", 1)
        for frame in (ping(peer, vlan=VID + 1), ping(peer, vlan=VID | 0x800), service):
            device.send(frame)
            assert device.recv(1500) is None
        once = ping(peer, vlan=VID)
        device.send(once[:12] + once[12:16] + once[12:])
        assert device.recv(1500) is None
        assert count(device, "packet_drop_vlan") - before == 4 + 2 * (not untagged)
    device.write(address("VLAN"), 0)
    device.step(10)
    device.send(ping(peer))
    answer = device.recv(2000)
    assert answer is not None and Dot1Q not in Ether(answer.frame)


def quoted(answer: Any, asked: bytes, code: int) -> None:
    """It is destination unreachable, right by scapy, about this packet."""
    packet = Ether(answer.frame)
    assert (packet[ICMP].type, packet[ICMP].code) == (3, code)
    asked_ip = Ether(asked)[IP]
    assert (packet.dst, packet[IP].dst, packet[IP].src) == (Ether(asked).src, asked_ip.src, asked_ip.dst)
    length = packet[IP].len
    assert bytes(packet[ICMP])[8 : length - 20] == asked[14:42]
    fresh = packet.copy()
    del fresh[IP].chksum, fresh[ICMP].chksum
    assert bytes(fresh)[: 14 + length] == answer.frame[: 14 + length]


def test_nobody_is_at_the_port(device: SimDevice) -> None:
    peer = Peer()
    head = Ether(dst=peer.device_mac, src=peer.mac) / IP(src=peer.ip, dst=peer.device_ip, id=99, ttl=17)
    silent = bytes(head / UDP(sport=4000, dport=33434) / Raw(b"x" * 40))
    device.send(silent)
    assert device.recv(2000) is None, "not before it is switched on"
    device.write(address("ICMP_ERRORS"), 1)
    asked = [
        (bytes(head / UDP(sport=4000, dport=33434) / Raw(b"x" * 40)), 3),
        (bytes(head / UDP(sport=4000, dport=7)), 3),
        (bytes(head / TCP(sport=5, dport=80, flags="S")), 2),
        (bytes(head / TCP(sport=5, dport=80, flags="S") / Raw(bytes(1400))), 2),
    ]
    other = head.copy()
    other[IP].proto = 47
    asked.append((bytes(other / Raw(bytes(30))), 2))
    for frame, code in asked:
        device.send(frame)
        answer = device.recv(2000)
        assert answer is not None
        quoted(answer, frame, code)
        assert code != 3 or UDPerror in Ether(answer.frame)
    fragment, error, broadcast = head.copy(), head.copy(), head.copy()
    fragment[IP].frag = 5
    broadcast.dst = "ff:ff:ff:ff:ff:ff"
    unanswered = [
        fragment / UDP(sport=1, dport=9),
        broadcast / UDP(dport=9),
        error / ICMP(type=3, code=3) / Raw(bytes(28)),
        error / ICMP(type=3, code=4) / Raw(bytes(28)),
        error / ICMP(type=11) / Raw(bytes(28)),
        Ether(dst=peer.device_mac, src=peer.mac) / IP(src="224.0.0.5", dst=peer.device_ip) / UDP(dport=9),
        Ether(dst=peer.device_mac, src=peer.mac) / IP(src="10.77.255.255", dst=peer.device_ip) / UDP(dport=9),
    ]
    for frame in unanswered:
        device.send(bytes(frame))
        assert device.recv(1500) is None, frame.summary()
    assert count(device, "packet_drop_icmp_unreachable") == 1 and count(device, "packet_drop_icmp_too_big") == 1
    assert count(device, "service_unreachable_sent") == len(asked)


def test_a_flood_of_them_makes_few_answers(device: SimDevice) -> None:
    """And a caller, and who pings, notice nothing."""
    device.write(address("ICMP_ERRORS"), 1)
    peer = Peer()
    head = Ether(dst=peer.device_mac, src=peer.mac) / IP(src=peer.ip, dst=peer.device_ip)
    flood, answers = 500, 0
    for n in range(flood):
        device.send(bytes(head / UDP(sport=n, dport=9)))
        device.step(40)
        while (sent := device.pull()) is not None:
            answers += Ether(sent.frame)[ICMP].type == 3
    device.step(3000)
    while (sent := device.pull()) is not None:
        answers += Ether(sent.frame)[ICMP].type == 3
    assert answers == 16
    assert count(device, "service_unreachable_sent") + count(device, "service_unreachable_limited") == flood
    device.send(ping(peer))
    assert device.recv(2000) is not None
    second = 250_000_000
    device.skip(second // 4)
    device.step(1000)
    device.send(bytes(head / UDP(dport=9)))
    assert device.recv(3000) is not None


def test_forged_errors_end_no_connection(device: SimDevice) -> None:
    """Destination unreachable of every code about a connection's own packets (RFC 5927): it goes on, with its MTU."""
    peer = Peer()
    net = Network(device, [peer])
    net.connect(peer)
    net.set_up(peer, [Region(INPUT | OUTPUT, bytearray(random.randbytes(3000)))])
    about = IP(src=peer.device_ip, dst=peer.ip) / UDP(sport=0xC000, dport=4791)
    forged = Ether(dst=peer.device_mac, src="02:00:00:00:00:66") / IP(src=peer.ip, dst=peer.device_ip)
    for code in range(16):
        net.send([bytes(forged / ICMP(type=3, code=code, nexthopmtu=68 if code == 4 else 0) / bytes(about))])
    want = bytes(byte + 1 & 0xFF for byte in peer.regions[0].data)
    assert net.call(peer, INCREMENT) == 0 and outputs(peer) == [want]
    assert count(device, "packet_drop_icmp_too_big") == 1 and count(device, "packet_drop_icmp_unreachable") == 15


def test_the_first_word_is_tagged() -> None:
    """A device that is in its VLAN before it is enabled says its first word there."""
    with SimDevice(64, line_rate_mbps=0xFFFF_FFFF) as other:
        other.write(address("VLAN"), ENABLE | VID)
        for name, value in (("MAC_LO", 0x41434C02), ("MAC_HI", 0x024E), ("IP", 0x0A4D0002), ("PREFIX_LEN", 16), ("DISCOVERY", 0)):
            other.write(address(name), value)
        other.write(address("CTRL"), 1)
        first = other.recv(2000)
        assert first is not None
        packet = Ether(first.frame)
        assert packet[Dot1Q].vlan == VID and packet[ARP].pdst == "10.77.0.2" and len(first.frame) == 64
