# SPDX-License-Identifier: Apache-2.0
"""The whole device gets its address by DHCP, loses it and gets another one: what becomes of connections, calls and queue pairs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from nacelle_tb import cm
from nacelle_tb.cci import address
from nacelle_tb.management import Manager, QpAttributes, State
from nacelle_tb.peer import INPUT, OUTPUT, UD_SEND_ONLY, Packet, Peer, Region, mac_bytes
from nacelle_tb.session import Network, SimDevice
from nacelle_tb.widths import WIDTHS
from scapy.layers.dhcp import BOOTP, DHCP
from scapy.layers.inet import ICMP, IP, UDP
from scapy.layers.l2 import ARP, Ether
from scapy.packet import Packet as ScapyPacket

SERVER, SERVER_MAC = "10.77.0.1", "02:00:00:00:00:01"
MAC = "02:4e:41:43:4c:02"
BY_HAND = 9
BOUND = 5


def is_dreq(packet: Packet) -> bool:
    return packet.opcode == UD_SEND_ONLY and int.from_bytes(packet.payload[16:18], "big") == cm.DREQ


class Lan:
    """A device without an address, and a DHCP server."""

    def __init__(self, device: SimDevice, mode: int) -> None:
        self.device = device
        self.tick = device.read(address("CLOCK_HZ")) // 16
        self.lease = "10.77.1.1"
        self.kinds: list[int] = []
        self.arp: list[ScapyPacket] = []
        self.net = Network(device, [])
        number = int.from_bytes(mac_bytes(MAC), "big")
        for name, value in (
            ("MAC_LO", number & 0xFFFFFFFF), ("MAC_HI", number >> 32), ("IP", 0x0A4D0002), ("PREFIX_LEN", 16),
            ("RANDOM_SEED", 0x5EED), ("ADDRESS_MODE", mode), ("CTRL", 1),
        ):  # fmt: skip
            device.write(address(name), value)

    def settle(self) -> None:
        """Until only time can change anything; the server answers."""
        for _ in range(2000):
            self.net.step(200)
            for sent in [*self.net.other]:
                self._serve(Ether(sent.frame))
            self.net.other.clear()
            if self.device.idle:
                return
        raise AssertionError("never idle")

    def _serve(self, frame: ScapyPacket) -> None:
        if ARP in frame:
            self.arp.append(frame)
        if DHCP not in frame:
            return
        kind = dict(option for option in frame[DHCP].options if isinstance(option, tuple) and len(option) == 2)["message-type"]
        self.kinds.append(kind)
        answer = {1: "offer", 3: "ack"}.get(kind)
        if answer:
            options = [("message-type", answer), ("server_id", SERVER), ("lease_time", 3600), ("subnet_mask", "255.255.0.0"), "end"]
            reply = Ether(src=SERVER_MAC, dst="ff:ff:ff:ff:ff:ff") / IP(src=SERVER, dst="255.255.255.255") / UDP(sport=67, dport=68)
            reply /= BOOTP(op=2, xid=frame[BOOTP].xid, yiaddr=self.lease, chaddr=mac_bytes(MAC)) / DHCP(options=options)
            self.net.send([bytes(reply)])

    def sleep(self, seconds: float) -> None:
        for _ in range(round(seconds * 16)):
            self.settle()
            assert self.device.skip(self.tick)
        self.settle()

    def conflict(self, ip: str) -> None:
        """Another host says that it has the address."""
        claim = Ether(src=SERVER_MAC, dst="ff:ff:ff:ff:ff:ff") / ARP(op=1, hwsrc=SERVER_MAC, psrc=ip, pdst="10.77.9.9")
        self.net.send([bytes(claim)])
        self.settle()

    def answers_ping(self, ip: str) -> bool:
        before = self.device.counter("packet_tx_frame")
        ping = Ether(src=SERVER_MAC, dst=MAC) / IP(src=SERVER, dst=ip) / ICMP()
        self.net.send([bytes(ping)])
        self.settle()
        return self.device.counter("packet_tx_frame") == before + 1


@pytest.fixture(params=WIDTHS)
def unconfigured(request: pytest.FixtureRequest) -> Iterator[SimDevice]:
    """A device that was not switched on yet."""
    with SimDevice(request.param, line_rate_mbps=0xFFFF_FFFF) as sim:
        yield sim


def caller(device_ip: str, number: int) -> Peer:
    return Peer(ip=f"10.77.0.{number}", mac=f"02:00:00:00:00:{number:02x}", device_ip=device_ip, qpn=0x100 + number, comm_id=number)


def test_connections_end_with_the_address_and_begin_with_the_next(unconfigured: SimDevice) -> None:
    device = unconfigured
    lan = Lan(device, mode=1)
    assert not lan.answers_ping("10.77.0.2") and not lan.answers_ping("0.0.0.0")
    lan.sleep(10)
    first = lan.lease
    assert lan.kinds == [1, 3] and device.read(address("ADDRESS_STATE")) == 2 | BOUND << 8
    assert device.read(address("ADDRESS_IP")) == 0x0A4D0101 and lan.answers_ping(first)
    assert [(frame[ARP].psrc, frame[ARP].pdst) for frame in lan.arp] == [("0.0.0.0", first)] * 3 + [(first, first)] * 2
    # One connection by the connection manager, with regions, and one by software.
    peer = caller(first, 9)
    lan.net = Network(device, [peer])
    lan.net.connect(peer)
    lan.net.set_up(peer, [Region(INPUT | OUTPUT, bytearray(64))])
    manager = Manager(device)
    attributes = QpAttributes(dst_mac=0x020000000007, dst_ip=0x0A4D0007, dest_qp_num=5, timeout=0)
    manager.set_up(BY_HAND, attributes)
    lan.lease = "10.77.1.2"
    lan.conflict(first)
    assert device.counter("address_defended") == 1 and lan.answers_ping(first)
    lan.conflict(first)
    dreq = next(packet for packet, _ in lan.net.caller(peer).inbox if is_dreq(packet))
    assert dreq is not None and lan.answers_ping(first), "the peer is told while the address is there"
    lan.sleep(0.75)
    assert not lan.answers_ping(first) and device.read(address("ADDRESS_IP")) == 0
    assert device.counter("address_lost") == device.counter("cm_connection_closed") == 1
    dreqs = device.counter("cm_dreq_sent")
    assert manager.run("QP_QUERY", {0: BY_HAND}, 1) == [State.ERR]
    assert lan.kinds == [1, 3, 4]
    lan.sleep(20)
    assert lan.kinds == [1, 3, 4, 1, 3] and lan.answers_ping(lan.lease) and not lan.answers_ping(first)
    # Nothing was sent from the next address for the last one's connections; new ones work.
    assert device.counter("cm_dreq_sent") == dreqs
    again = caller(lan.lease, 10)
    lan.net = Network(device, [again])
    lan.net.connect(again)
    lan.net.set_up(again, [Region(INPUT | OUTPUT, bytearray(64))])
    lan.net.disconnect(again)


def test_a_static_address_is_there_from_the_first_frame_on(unconfigured: SimDevice) -> None:
    """As ever: announced once, and defended for ever."""
    lan = Lan(unconfigured, mode=0)
    lan.sleep(5)
    assert lan.answers_ping("10.77.0.2") and not lan.kinds and len(lan.arp) == 1
    for _ in range(5):
        lan.conflict("10.77.0.2")
    assert lan.answers_ping("10.77.0.2") and len(lan.arp) == 2
