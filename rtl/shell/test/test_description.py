# SPDX-License-Identifier: Apache-2.0
"""The description for callers, and the load before it: the REP has its address, every caller can READ it, none can change it."""

from __future__ import annotations

import json
import struct

from nacelle_tb import cm
from nacelle_tb.device import LOAD_BYTES, description, standard
from nacelle_tb.peer import ACKNOWLEDGE, INPUT, OUTPUT, Peer, Region
from nacelle_tb.session import Network, SimDevice
from nacelle_tb.svtypes import constant

NAK_REMOTE_ACCESS = 0x62
INCREMENT = 1


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
    """Neither by WRITE nor by an atomic; nor is anything behind it or before the load to be read."""
    text = description(standard().with_sizes(device.info.data_w))
    attacks = ("write", "write load", "atomic", "read behind", "read before")
    peers = [
        Peer(ip=f"10.77.0.{9 + i}", mac=f"02:00:00:00:00:{9 + i:02x}", qpn=0x99 + i, comm_id=77 + i) for i in range(len(attacks))
    ]
    net = Network(device, peers)
    for attack, peer in zip(attacks, peers, strict=True):
        addr, key, length = connect(net, peer)
        if attack == "write":
            net.send(peer.write_message(addr, key, b"x" * 64))
        elif attack == "write load":
            net.send(peer.write_message(addr - LOAD_BYTES, key, b"x" * 64))
        elif attack == "atomic":
            extension = struct.pack(">QIQQ", addr, key, 1, 0)
            net.send([peer.roce(constant("roce_wire_pkg::RC_FETCH_ADD"), peer.device_qpn, peer.send_psn, extension, b"", ack=True)])
        elif attack == "read behind":
            net.send([peer.read_request(addr, key, length + 1)])
        else:
            net.send([peer.read_request((addr - LOAD_BYTES - 1) % (1 << 64), key, LOAD_BYTES)])
        nak, _ = net.wait(peer, lambda p: p.opcode == ACKNOWLEDGE, "NAK")
        assert nak.syndrome == NAK_REMOTE_ACCESS
        assert device.dram_read(addr, len(text)) == text
        assert b"x" not in device.dram_read(addr - LOAD_BYTES, LOAD_BYTES)


def test_how_busy_it_is(device: SimDevice) -> None:
    """Every caller learns of what others have: connections, memory."""
    first, second = Peer(), Peer(ip="10.77.0.10", mac="02:00:00:00:00:10", qpn=0x99, comm_id=77, tid=88)
    net = Network(device, [first, second])
    addr, key, _ = connect(net, first)

    def load(peer: Peer) -> tuple[int, ...]:
        device.step(1000)
        record = net.read(peer, addr - LOAD_BYTES, key, LOAD_BYTES)
        assert not any(record[32:])
        return struct.unpack_from(">4I2Q", record)

    assert load(first) == (1, 0, 0, 0, 0, 0)
    net.set_up(first, [Region(INPUT, bytearray(5000)), Region(OUTPUT, bytearray(100))])
    connect(net, second)
    assert load(second) == (2, 0, 0, 0, 3 * 4096, 0)
    assert net.call(first, INCREMENT) == 0
    assert load(second) == (2, 0, 0, 0, 3 * 4096, 1)
    net.disconnect(first)
    assert load(second) == (1, 0, 0, 0, 0, 1)
