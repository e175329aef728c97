# SPDX-License-Identifier: Apache-2.0
"""The description for callers: the REP has its address, every caller can READ it, none can change it."""

from __future__ import annotations

import json
import struct

from nacelle_tb import cm
from nacelle_tb.device import description, standard
from nacelle_tb.peer import ACKNOWLEDGE, Peer
from nacelle_tb.session import Network, SimDevice
from nacelle_tb.svtypes import constant

NAK_REMOTE_ACCESS = 0x62


def connect(net: Network, peer: Peer) -> tuple[int, int, int]:
    """Connects; returns address, key and length of the description as the REP has them."""
    net.send([peer.req()])
    packet, _ = net.wait(peer, lambda p: int.from_bytes(p.payload[16:18], "big") == cm.REP, "REP")
    peer.take_rep(packet)
    net.send([peer.rtu()])
    private = cm.Message(peer.ip, peer.mac, packet.payload).private
    magic, version, reserved, addr, key, length = struct.unpack_from(">4sB3sQII", private)
    assert (magic, version, reserved) == (b"NACD", 1, bytes(3)) and not any(private[24:48])
    return addr, key, length


def test_what_the_device_says_of_itself(device: SimDevice) -> None:
    first, second = Peer(), Peer(ip="10.77.0.10", mac="02:00:00:00:00:10", qpn=0x99, comm_id=77, tid=88)
    net = Network(device, [first, second])
    text = description(standard().with_sizes(device.info.data_w))
    where = connect(net, first)
    assert net.read(first, *where) == text
    said = json.loads(text)
    assert {f["code"]: f["name"] for f in said["functions"]} == {1: "increment", 2: "traffic", 3: "empty", 16: "matmul"}
    net.disconnect(first)
    assert connect(net, second) == where, "one region for all"
    assert net.read(second, *where) == text


def test_nobody_changes_it(device: SimDevice) -> None:
    """Neither by WRITE nor by an atomic; nor is anything behind it to be read."""
    text = description(standard().with_sizes(device.info.data_w))
    attacks = ("write", "atomic", "read behind")
    peers = [Peer(ip=f"10.77.0.{9 + i}", mac=f"02:00:00:00:00:{9 + i:02x}", qpn=0x99 + i, comm_id=77 + i) for i in range(3)]
    net = Network(device, peers)
    for attack, peer in zip(attacks, peers, strict=True):
        addr, key, length = connect(net, peer)
        if attack == "write":
            net.send(peer.write_message(addr, key, b"x" * 64))
        elif attack == "atomic":
            extension = struct.pack(">QIQQ", addr, key, 1, 0)
            net.send([peer.roce(constant("roce_wire_pkg::RC_FETCH_ADD"), peer.device_qpn, peer.send_psn, extension, b"", ack=True)])
        else:
            net.send([peer.read_request(addr, key, length + 1)])
        nak, _ = net.wait(peer, lambda p: p.opcode == ACKNOWLEDGE, "NAK")
        assert nak.syndrome == NAK_REMOTE_ACCESS
        assert device.dram_read(addr, len(text)) == text
