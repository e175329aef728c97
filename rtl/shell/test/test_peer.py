# SPDX-License-Identifier: Apache-2.0
"""The tests' own caller builds what scapy builds: its ICRC is right, so that a test of the device is not one of itself."""

from nacelle_tb.peer import Peer
from scapy.contrib.roce import BTH
from scapy.layers.l2 import Ether


def test_the_icrc_is_scapys() -> None:
    peer = Peer(device_qpn=5)
    frames = [peer.req(), peer.rtu(), peer.ack(5), *peer.write_message(0x1000, 7, b"abcde", 0x81), *peer.send_message(bytes(3000))]
    for frame in frames:
        packet = Ether(frame)
        packet[BTH].icrc = None  # scapy computes it anew
        assert bytes(packet) == frame
