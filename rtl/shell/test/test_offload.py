# SPDX-License-Identifier: Apache-2.0
"""Calls of the whole device: connect, set regions up, call, get results, disconnect; and every way to get it wrong."""

from __future__ import annotations

import random
import struct

import numpy as np
import pytest
from nacelle_tb import cm
from nacelle_tb.cci import address
from nacelle_tb.peer import (
    ACKNOWLEDGE,
    INPUT,
    INTERNAL,
    OUTPUT,
    SINGLE_SEND,
    UD_SEND_ONLY,
    WRITE_ONLY,
    Packet,
    Peer,
    Region,
)
from nacelle_tb.session import Network, SimDevice, outputs

INCREMENT, EMPTY, MATMUL = 1, 3, 16
INT32, FLOAT32 = 0, 1


def pattern(length: int, seed: int = 1) -> bytearray:
    """Reproducible bytes."""
    return bytearray(random.Random(seed).randbytes(length))


def plus_one(data: bytes) -> bytes:
    return bytes(b + 1 & 0xFF for b in data)


def callers(count: int, **fields: int) -> list[Peer]:
    """Peers with addresses, QP numbers and MTUs of their own."""
    return [
        Peer(
            ip=f"10.77.{i // 200}.{20 + i % 200}",
            mac=f"02:00:00:00:{1 + i // 256:02x}:{i % 256:02x}",
            qpn=0x700 + i,
            comm_id=0x5000 + i,
            tid=0x9900 + i,
            recv_psn=(0xFFFFF0 + 5 * i) & 0xFFFFFF,
            mtu=(256, 512, 1024, 2048, 4096)[i % 5],
            **fields,
        )
        for i in range(count)
    ]


def matmul_regions(a: np.ndarray, b: np.ndarray) -> list[Region]:
    """Argument block, A, B, C."""
    (m, k), n = a.shape, b.shape[1]
    arguments = struct.pack("<6I", 0x4D4D414E, INT32 if a.dtype == np.int32 else FLOAT32, m, n, k, 0).ljust(64, b"\0")
    return [
        Region(INPUT | SINGLE_SEND, bytearray(arguments)),
        Region(INPUT, bytearray(a.tobytes())),
        Region(INPUT, bytearray(b.tobytes())),
        Region(OUTPUT, bytearray(m * n * 4)),
    ]


def product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """C in the order of the device: k ascending, each product and each sum rounded."""
    c = np.zeros((a.shape[0], b.shape[1]), a.dtype)
    for k in range(a.shape[1]):
        c = c + a[:, k : k + 1] * b[k : k + 1, :]
    return c


@pytest.mark.parametrize("mtu", [256, 1024, 4096])
def test_increment(device: SimDevice, mtu: int) -> None:
    peer = Peer(mtu=mtu)
    net = Network(device, [peer])
    net.connect(peer)
    first, second = pattern(5000, 1), pattern(333, 2)
    net.set_up(
        peer,
        [Region(INPUT, bytearray(first)), Region(INPUT | OUTPUT, bytearray(second)), Region(OUTPUT, bytearray(70))],
    )
    for round_ in range(1, 3):
        assert net.call(peer, INCREMENT) == 0
        assert outputs(peer)[0] == bytes(b + round_ & 0xFF for b in second)
    net.disconnect(peer)


@pytest.mark.parametrize("dtype", [np.int32, np.float32])
def test_matmul(device: SimDevice, dtype: type) -> None:
    peer = Peer()
    net = Network(device, [peer])
    rng = np.random.default_rng(5)
    a = (rng.standard_normal((13, 21)) * 100).astype(dtype)
    b = (rng.standard_normal((21, 18)) * 100).astype(dtype)
    net.connect(peer)
    net.set_up(peer, matmul_regions(a, b))
    assert net.call(peer, MATMUL) == 0
    np.testing.assert_array_equal(np.frombuffer(outputs(peer)[0], dtype).reshape(13, 18), product(a, b))
    net.disconnect(peer)


def test_eight_callers_at_once(device512: SimDevice) -> None:
    peers = callers(8)
    net = Network(device512, peers)
    data = {}
    for peer in peers:
        net.connect(peer)
    for index, peer in enumerate(peers):
        data[peer.ip] = bytes(pattern(3000 + 77 * index, index))
        net.set_up(peer, [Region(INPUT | OUTPUT, bytearray(data[peer.ip])), Region(INTERNAL, bytearray(100))])
    frames = [peer.call(INCREMENT) for peer in peers]
    for position in range(max(map(len, frames))):  # packets of all callers interleaved
        net.send([f[position] for f in frames if position < len(f)])
    for peer in peers:
        assert net.answer(peer)[0] == 0
        assert outputs(peer)[0] == plus_one(data[peer.ip])
    for peer in peers:
        net.disconnect(peer)


def test_lost_answers_are_sent_again(device512: SimDevice) -> None:
    peer = Peer(mtu=256)
    net = Network(device512, [peer])
    net.connect(peer)
    data = bytes(pattern(4000))
    net.set_up(peer, [Region(INPUT | OUTPUT, bytearray(data))])
    rng = random.Random(3)
    net.lose = lambda frame: len(frame) > 100 and rng.random() < 0.2
    net.send(peer.call(INCREMENT))
    for _ in range(400):
        try:
            assert net.answer(peer, 20_000)[0] == 0
            break
        except AssertionError:
            device512.skip(1_000_000)  # towards the ACK timeout
    assert outputs(peer)[0] == plus_one(data)


def nak(packet: Packet) -> bool:
    return packet.opcode == ACKNOWLEDGE and packet.syndrome >> 5 == 3


def connected(device: SimDevice, size: int = 1000) -> tuple[Network, Peer]:
    peer = Peer()
    net = Network(device, [peer])
    net.connect(peer)
    net.set_up(peer, [Region(INPUT | OUTPUT, pattern(size))])
    return net, peer


@pytest.mark.parametrize("fault", ["key", "below", "above", "wrap"])
def test_writes_outside_of_the_callers_region_are_refused(device: SimDevice, fault: str) -> None:
    net, peer = connected(device)
    region = peer.regions[0]
    addr, rkey, length = region.device_addr, region.device_rkey, 64
    before = device.dram_read(max(0, addr - 4096), 16384)
    match fault:
        case "key":
            rkey ^= 0x8000_0000
        case "below":
            addr -= 1
        case "above":
            addr += len(region.data) - length + 1
        case "wrap":
            addr = 2**64 - 32
    net.send(peer.write_message(addr, rkey, b"\xee" * length))
    packet, _ = net.wait(peer, nak, "NAK")
    assert packet.syndrome == 0x62
    assert device.dram_read(max(0, region.device_addr - 4096), 16384) == before
    # The device serves others.
    other = Peer(ip="10.77.0.10", mac="02:00:00:00:00:10", qpn=0x99, comm_id=77, tid=88)
    net2 = Network(device, [other, peer])
    net2.connect(other)
    net2.set_up(other, [Region(INPUT | OUTPUT, bytearray(b"abc"))])
    assert net2.call(other, INCREMENT) == 0
    assert outputs(other) == [b"bcd"]


def test_a_frame_with_a_bad_icrc_has_no_effect(device: SimDevice) -> None:
    net, peer = connected(device)
    region = peer.regions[0]
    frame = bytearray(peer.write_message(region.device_addr, region.device_rkey, b"\xee" * 200)[0])
    peer.send_psn -= 1
    frame[100] ^= 1
    net.send([bytes(frame)])
    device.step(3000)
    assert device.pull() is None, "a damaged frame is dropped without a word"
    assert b"\xee" not in device.dram_read(region.device_addr, 200)
    assert net.call(peer, INCREMENT) == 0


def test_unknown_function(device: SimDevice) -> None:
    net, peer = connected(device)
    data = bytes(peer.regions[0].data)
    assert net.call(peer, 99) == 3
    assert bytes(peer.regions[0].data) == data, "no output is written"
    assert net.call(peer, INCREMENT) == 0


@pytest.mark.parametrize(
    "message",
    [
        b"\x01",
        b"\x01\x02\0\0" + bytes(24),
        b"\x01\x01\0\0" + bytes(48),
        b"\x01\x00\0\0",
        b"\x02\x01\0\0" + bytes(24),
        b"\x01\x21\0\0" + struct.pack("!QQII", 12 << 56, 1, 1, 8) * 33,
        b"\x01\x02\0\0" + struct.pack("!QQII", 12 << 56, 1, 1, 0xFFFFFFFF) * 2,
    ],
    ids=["truncated", "count above length", "count below length", "none", "wrong type", "too many", "too large"],
)
def test_malformed_region_requests_are_refused(device512: SimDevice, message: bytes) -> None:
    peer = Peer()
    net = Network(device512, [peer])
    net.connect(peer)
    answer, _, _ = net.exchange(peer, message)
    assert answer[0] == 0 and answer[1] != 0, f"ERR expected, got {answer.hex()}"
    net.set_up(peer, [Region(INPUT | OUTPUT, bytearray(b"ok"))])
    assert net.call(peer, INCREMENT) == 0
    assert outputs(peer) == [b"pl"]


def test_a_lost_caller_frees_what_it_held(device512: SimDevice) -> None:
    """Callers vanish with half of the memory each, many more than there are QPs; there is room for the next one."""
    for index in range(3):
        peer = Peer(ip=f"10.77.1.{index}", mac=f"02:00:00:00:02:{index:02x}", comm_id=100 + index, qpn=0x200 + index)
        net = Network(device512, [peer])
        net.connect(peer)
        net.set_up(peer, [Region(INPUT | OUTPUT, bytearray(16)), Region(INTERNAL, bytearray())])
        net.caller(peer).auto_ack = False
        net.send(peer.call(EMPTY))
        net.step(5000)
        for _ in range(2000):  # no acknowledgement: retries run out
            device512.skip(500_000_000)
            device512.step(500)
            while (sent := device512.pull()) is not None:
                last = sent
            if last.frame[42] == UD_SEND_ONLY:
                break
        else:
            pytest.fail("the device never gave the connection up")
    fresh = Peer()
    net = Network(device512, [fresh])
    net.connect(fresh)


def test_one_caller_too_many(device512: SimDevice) -> None:
    """Every QP can be taken; the next REQ is rejected with a reason; after a disconnect there is room again."""
    qps = device512.read(address("QPS"))
    peers = callers(qps + 1)
    net = Network(device512, peers)
    for peer in peers[:-1]:
        net.connect(peer)
    net.send([peers[-1].req()])
    packet, _ = net.wait(peers[-1], lambda p: p.opcode == UD_SEND_ONLY, "REJ")
    assert int.from_bytes(packet.payload[16:18], "big") == cm.REJ
    assert int.from_bytes(packet.payload[24 + 10 : 24 + 12], "big") == 1, "no QP available"
    net.disconnect(peers[0])
    device512.step(500)  # the DREP leaves before everything is freed
    net.connect(peers[-1])


def test_a_repeated_req_gets_the_same_rep(device: SimDevice) -> None:
    peer = Peer()
    net = Network(device, [peer])
    reps = []
    for _ in range(3):
        net.send([peer.req()])
        packet, _ = net.wait(peer, lambda p: p.opcode == UD_SEND_ONLY, "REP")
        reps.append(packet.payload)
    assert reps[0] == reps[1] == reps[2]


def test_the_wrong_port_is_rejected(device: SimDevice) -> None:
    peer = Peer(port=999)
    net = Network(device, [peer])
    net.send([peer.req()])
    packet, _ = net.wait(peer, lambda p: p.opcode == UD_SEND_ONLY, "REJ")
    assert int.from_bytes(packet.payload[16:18], "big") == cm.REJ
    assert int.from_bytes(packet.payload[34:36], "big") == 8, "invalid service ID"


def test_zero_length_write_is_acknowledged(device: SimDevice) -> None:
    net, peer = connected(device)
    frames = peer.write_message(0, 0, b"")
    assert frames[0][42] == WRITE_ONLY
    net.send(frames)
    packet, _ = net.wait(peer, lambda p: p.opcode == ACKNOWLEDGE, "ACK")
    assert packet.syndrome >> 5 == 0
