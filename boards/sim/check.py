# SPDX-License-Identifier: Apache-2.0
"""What a board's netlist must do: answer a ping, and carry out a remote procedure call by RDMA."""

from __future__ import annotations

import random
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "rtl" / "testing"), str(ROOT / "sim")]
from board_sim import BoardDevice  # noqa: E402
from nacelle_tb.peer import INPUT, OUTPUT, Peer, Region  # noqa: E402
from nacelle_tb.session import Network, outputs  # noqa: E402
from scapy.layers.inet import ICMP, IP  # noqa: E402
from scapy.layers.l2 import ARP, Ether  # noqa: E402
from scapy.packet import Raw  # noqa: E402

INCREMENT = 1
START = 400_000  # cycles until it has its seed and its address


def ping(device: BoardDevice, peer: Peer, ip: str, mac: str) -> None:
    """ARP, then an echo request with data; the answer must have them, and right checksums."""
    while device.recv(START if not device.cycles else 20_000) is not None:
        pass  # its announcements
    device.send(peer.arp_request())
    answer = device.recv(20_000)
    assert answer is not None, "no answer to ARP"
    assert (Ether(answer.frame)[ARP].psrc, Ether(answer.frame)[ARP].hwsrc) == (ip, mac), answer.frame.hex()
    data = random.randbytes(100)
    device.send(bytes(Ether(src=peer.mac, dst=mac) / IP(src=peer.ip, dst=ip) / ICMP(id=7, seq=1) / Raw(data)))
    answer = device.recv(20_000)
    assert answer is not None, "no answer to a ping"
    packet = Ether(answer.frame)
    assert (packet[ICMP].type, packet[ICMP].id, packet[ICMP].seq, bytes(packet[ICMP].payload)[:100]) == (0, 7, 1, data)


def call(device: BoardDevice, peer: Peer) -> None:
    """Connects, sets two regions up, calls a function, and compares the results."""
    network = Network(device, [peer])
    network.connect(peer)
    first, second = random.randbytes(3000), random.randbytes(333)
    regions = [Region(INPUT, bytearray(first)), Region(INPUT | OUTPUT, bytearray(second)), Region(OUTPUT, bytearray(70))]
    network.set_up(peer, regions)
    assert network.call(peer, INCREMENT) == 0, "the call failed"
    assert outputs(peer)[0] == bytes(byte + 1 & 0xFF for byte in second), "wrong results"
    network.disconnect(peer)


def check(library: Path, ip: str, mac: str) -> str:
    """Runs both; says how long it took."""
    random.seed(1)
    device = BoardDevice(library)
    peer = Peer(device_ip=ip, device_mac=mac)
    ping(device, peer, ip, mac)
    pinged = device.cycles
    call(device, peer)
    assert device.bad_frames == 0, f"{device.bad_frames} frames of the device were no frames"
    return f"a ping was answered after {pinged:,} cycles, and a call carried out in {device.cycles - pinged:,}"


if __name__ == "__main__":
    print(check(Path(sys.argv[1]), sys.argv[2], sys.argv[3]))
