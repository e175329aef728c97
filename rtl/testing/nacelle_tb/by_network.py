# SPDX-License-Identifier: Apache-2.0
"""A client of the registers of a simulated device, frame by frame, by IPbus."""

from __future__ import annotations

from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import Raw

from . import ipbus
from .cci import address
from .peer import Peer
from .session import SimDevice

PORT = 50001
CCI_PORT, CCI_TOKEN, LOGIN, LOGOUT = (address(name) for name in ("CCI_PORT", "CCI_TOKEN_0", "CCI_LOGIN_0", "CCI_LOGOUT"))
TOKEN = [0x01020304, 0x11121314, 0x21222324, 0x31323334]
PAUSE = 16384  # cycles until another packet without authorisation is taken


class Manager:
    """A client on the wire."""

    def __init__(self, device: SimDevice, port: int = 4000) -> None:
        self.device, self.peer, self.port = device, Peer(), port
        self.cycles = 0
        self.authorised = False

    def ask(self, packet: bytes) -> bytes | None:
        """One packet and its answer."""
        peer = self.peer
        if not self.authorised:
            self.device.wait(PAUSE)
        head = Ether(dst=peer.device_mac, src=peer.mac) / IP(src=peer.ip, dst=peer.device_ip)
        begin = self.device.stats.cycles
        self.device.send(bytes(head / UDP(sport=self.port, dport=PORT) / Raw(packet)))
        sent = self.device.recv(20_000)
        if sent is None:
            return None
        self.cycles = sent.first_beat - begin
        answer = Ether(sent.frame)
        assert (answer.dst, answer[IP].dst, answer[UDP].dport, answer[UDP].sport) == (peer.mac, peer.ip, self.port, PORT)
        return bytes(answer[UDP].payload)[: answer[UDP].len - 8]

    def run(self, *transactions: list[int], little: bool = False) -> list[ipbus.Answer]:
        """The transactions of a packet that is answered."""
        response = self.ask(ipbus.control(*transactions, little=little))
        assert response is not None
        return ipbus.answers(response, little)
