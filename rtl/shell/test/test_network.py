# SPDX-License-Identifier: Apache-2.0
"""ARP and ping of the whole device, with scapy on the other side."""

from nacelle_tb.peer import Peer
from nacelle_tb.session import SimDevice
from scapy.layers.inet import ICMP, IP
from scapy.layers.l2 import ARP, Ether
from scapy.packet import Raw


def test_arp_is_answered(device: SimDevice) -> None:
    peer = Peer()
    device.send(peer.arp_request())
    answer = device.recv()
    assert answer is not None
    arp = Ether(answer.frame)[ARP]
    assert (arp.op, arp.psrc, arp.hwsrc, arp.pdst, arp.hwdst) == (2, peer.device_ip, peer.device_mac, peer.ip, peer.mac)
    assert len(answer.frame) == 60


def test_ping_is_answered_at_every_length(device: SimDevice) -> None:
    peer = Peer()
    head = Ether(dst=peer.device_mac, src=peer.mac) / IP(src=peer.ip, dst=peer.device_ip, ttl=3)
    for length in [0, 1, 17, 18, 19, 56, 63, 64, 65, 500, 1472, 4000]:
        data = bytes(i * 7 & 0xFF for i in range(length))
        device.send(bytes(head / ICMP(id=7, seq=length) / Raw(data)))
        answer = device.recv()
        assert answer is not None, f"no answer to a ping of {length} bytes"
        packet = Ether(answer.frame)
        checksums = packet[IP].chksum, packet[ICMP].chksum
        del packet[IP].chksum, packet[ICMP].chksum
        again = Ether(bytes(packet))
        assert checksums == (again[IP].chksum, again[ICMP].chksum)
        assert (packet[ICMP].type, packet[ICMP].id, packet[ICMP].seq) == (0, 7, length)
        assert bytes(packet[ICMP].payload)[:length] == data
        assert (packet[IP].src, packet[IP].dst) == (peer.device_ip, peer.ip)


def test_what_is_not_for_us_is_ignored(device: SimDevice) -> None:
    peer = Peer()
    ping = Ether(dst=peer.device_mac, src=peer.mac) / IP(src=peer.ip, dst="10.77.0.3") / ICMP()
    wrong_mac = Ether(dst="02:00:00:00:00:77", src=peer.mac) / IP(src=peer.ip, dst=peer.device_ip) / ICMP()
    bad_checksum = Ether(dst=peer.device_mac, src=peer.mac) / IP(src=peer.ip, dst=peer.device_ip, chksum=1) / ICMP()
    for frame in (ping, wrong_mac, bad_checksum):
        device.send(bytes(frame))
        assert device.recv(2000) is None
    device.send(peer.arp_request())
    assert device.recv() is not None
