# SPDX-License-Identifier: Apache-2.0
"""Device memory is cleared between callers, and the clearing costs others no measurable time."""

from __future__ import annotations

import pytest
from nacelle_tb.cci import address
from nacelle_tb.peer import ACKNOWLEDGE, INPUT, INTERNAL, OUTPUT, WRITE_FIRST, Peer, Region
from nacelle_tb.session import Network, SimDevice, configure, outputs
from nacelle_tb.svtypes import constant

EMPTY = 3
NO_MEMORY, NO_KEYS = 2, 4
PAGE = 4096
HEAP = constant("shell_pkg::CTRL_BASE") + 256 * constant("device_pkg::CONTEXTS") * constant("rpc_pkg::CTRL_BYTES")
"""Where regions begin with 256 queue pairs"""


def two_callers() -> tuple[Peer, Peer]:
    """At different addresses."""
    return Peer(), Peer(ip="10.77.0.10", mac="02:00:00:00:00:10", qpn=0x99, comm_id=77, tid=88)


def test_nobody_gets_what_the_last_caller_left(device: SimDevice) -> None:
    """Neither as the output of a kernel that writes nothing, nor by READ; whole pages, the kernel's scratch memory too."""
    first, second = two_callers()
    net = Network(device, [first, second])
    secret = bytearray(b"secret" * 700)
    net.connect(first)
    net.set_up(first, [Region(INPUT | OUTPUT, bytearray(secret)) for _ in range(3)])
    assert net.call(first, EMPTY) == 0
    assert device.dram_read(first.regions[2].device_addr, len(secret)) == secret
    net.disconnect(first)
    net.connect(second)
    internal = Region(INTERNAL, bytearray(PAGE + 1))
    net.set_up(second, [Region(OUTPUT, bytearray(b"x" * 1000)), Region(INPUT, bytearray(3000)), internal])
    assert second.regions[0].device_addr == first.regions[0].device_addr
    assert device.dram_read(second.regions[0].device_addr, 4 * PAGE) == bytes(4 * PAGE)
    assert net.call(second, EMPTY) == 0
    assert outputs(second) == [bytes(1000)]
    region = second.regions[1]
    assert net.read(second, region.device_addr, region.device_rkey, 3000) == bytes(3000)


def test_nobody_gets_what_memory_held_at_power_on(device: SimDevice) -> None:
    """Nor what its own regions held before it requested others."""
    device.dram_write(HEAP, b"\xaa" * (16 * PAGE))
    peer = Peer()
    net = Network(device, [peer])
    net.connect(peer)
    for _ in range(2):
        net.set_up(peer, [Region(INPUT | OUTPUT, bytearray(5 * PAGE))])
        assert peer.regions[0].device_addr == HEAP
        assert device.dram_read(HEAP, 5 * PAGE) == bytes(5 * PAGE)
        peer.regions[0].data[:] = b"\xbb" * 5 * PAGE
        assert net.call(peer, EMPTY) == 0
        assert device.dram_read(HEAP, 5 * PAGE) == b"\xbb" * 5 * PAGE
    assert device.dram_read(HEAP + 5 * PAGE, 11 * PAGE) == b"\xaa" * (11 * PAGE), "nothing but what is granted is written"


def set_up_cycles(net: Network, peer: Peer, regions: list[Region]) -> int:
    """From the last beat of the request in to the first beat of the answer out."""
    device = net.device
    while device.rx_stamp() is not None:
        pass
    net.send(peer.send_message(peer.advertise(regions)))
    packet, sent = net.wait(peer, lambda p: p.opcode < WRITE_FIRST, "answer")
    entered = device.rx_stamp()
    assert entered is not None
    peer.take_advert(packet.payload)
    return sent.first_beat - entered.last_beat


def small_regions() -> list[Region]:
    """Three."""
    return [Region(INPUT | OUTPUT, bytearray(64)) for _ in range(3)]


def in_the_background(net: Network, peer: Peer, size: int) -> None:
    """Requests a large region, and does not wait."""
    net.connect(peer)
    net.send(peer.send_message(peer.advertise([Region(INPUT, bytearray(size))])))
    net.step(3000)


def test_a_set_up_is_fast_alone_and_beside_the_clearing_of_a_large_region(device512: SimDevice) -> None:
    """Three regions. The large one is not granted meanwhile."""
    large, small = two_callers()
    first = Peer(ip="10.77.0.11", mac="02:00:00:00:00:11", qpn=0x98, comm_id=78, tid=89)
    net = Network(device512, [first, large, small])
    net.connect(first)
    net.step(3000)
    alone = set_up_cycles(net, first, small_regions())
    assert alone <= 520
    in_the_background(net, large, 16 << 20)
    net.connect(small)
    net.step(3000)
    beside = set_up_cycles(net, small, small_regions())
    print(f"a set-up takes {alone} cycles, {beside} while a large region is cleared")
    assert beside <= alone + 180
    data = bytes(range(64))
    small.regions[0].data[:] = data
    assert net.call(small, EMPTY) == 0
    assert outputs(small)[0] == data
    caller = net.caller(large)
    assert not any(packet.opcode < WRITE_FIRST for packet, _ in caller.inbox)
    last_page = HEAP + 3 * PAGE + (16 << 20) - PAGE
    device512.dram_write(last_page, b"\xaa" * PAGE)
    message = net.wait(large, lambda p: p.opcode < WRITE_FIRST, "answer", cycles=400_000)[0].payload
    large.take_advert(message)
    assert large.regions[0].device_addr == last_page + PAGE - (16 << 20)
    assert device512.dram_read(last_page, PAGE) == bytes(PAGE)


@pytest.mark.parametrize("size", [64, 256, 1024, 4096])
def test_writes_of_others_are_as_fast_while_memory_is_cleared(size: int) -> None:
    """At 100 Gb/s, from their first packet to their last acknowledgement; and the clearing uses what they leave."""
    cycles, cleared = [], 0
    for clearing in (False, True):
        with SimDevice(512) as device:
            configure(device)
            other, peer = two_callers()
            peer.mtu = 4096
            net = Network(device, [other, peer])
            net.connect(peer)
            net.set_up(peer, [Region(INPUT, bytearray(1 << 20))])
            if clearing:
                in_the_background(net, other, 256 << 20)
            region, count = peer.regions[0], 300
            frames = [
                frame
                for i in range(count)
                for frame in peer.write_message(region.device_addr + i % 128 * size, region.device_rkey, b"\x5a" * size)
            ]
            began, before = device.stats.cycles, device.stats
            net.send(frames)
            last = peer.send_psn - 1 & 0xFFFFFF
            _, sent = net.wait(peer, lambda p, last=last: p.opcode == ACKNOWLEDGE and p.psn == last, "last acknowledgement")
            cycles.append(sent.first_beat - began)
            after = device.stats
            assert device.counter("packet_drop_overflow") == 0
            if clearing:
                cleared = after.dram_write_bytes - before.dram_write_bytes - size * count
                elapsed = after.cycles - before.cycles
    print(f"{count} WRITEs of {size} bytes: {cycles} cycles without and with clearing of {cleared / elapsed:.1f} bytes a cycle")
    assert cycles[1] <= cycles[0] + 60, cycles
    assert cleared >= 0.1 * 64 * elapsed


def test_a_caller_has_no_more_memory_than_its_quota(device512: SimDevice) -> None:
    """Counted over its connections; another address has its own."""
    first, second = two_callers()
    again = Peer(qpn=0x77, comm_id=0x7777, tid=0x7777)
    device512.write(address("MEMORY_PER_CALLER"), 5 * PAGE // 1024)
    net = Network(device512, [first, second])
    net.connect(first)
    net.set_up(first, [Region(INPUT, bytearray(3 * PAGE))])
    net = Network(device512, [again, second])
    net.connect(again)
    message, _, _ = net.exchange(again, again.advertise([Region(INPUT, bytearray(3 * PAGE))]))
    assert message == bytes([0, NO_MEMORY, 0, 0])
    net.set_up(again, [Region(INPUT, bytearray(2 * PAGE))])
    net.connect(second)
    net.set_up(second, [Region(INPUT, bytearray(5 * PAGE))])


def test_writes_just_before_the_end_reach_nobody(device512: SimDevice) -> None:
    """A caller writes its regions until it disconnects; the next caller of the memory reads zeros, and they stay."""
    first, second = two_callers()
    net = Network(device512, [first, second])
    net.connect(first)
    net.connect(second)
    net.set_up(first, [Region(INPUT, bytearray(16 * PAGE))])
    region = first.regions[0]
    writes = [f for i in range(64) for f in first.write_message(region.device_addr + i * 1024, region.device_rkey, b"\x77" * 1024)]
    reads = [first.read_request(region.device_addr, region.device_rkey, 16 * PAGE)]
    net.send([*writes, *reads, first.dreq()])
    net.set_up(second, [Region(INPUT, bytearray(16 * PAGE)) for _ in range(2)])
    begin = second.regions[0].device_addr
    for _ in range(10):
        assert device512.dram_read(begin, 32 * PAGE) == bytes(32 * PAGE)
        net.step(2000)


def test_keys_are_refused_when_there_are_none_left(device512: SimDevice) -> None:
    """Callers with as many regions as a connection may have take every key; the next one is refused, and served when one leaves."""
    each = 32
    keys = constant("device_pkg::MRS") - 1  # one is that of the description
    callers = -(-keys // each) + 1
    peers = [
        Peer(ip=f"10.77.1.{i}", mac=f"02:00:00:00:01:{i:02x}", qpn=0x100 + i, comm_id=300 + i, tid=400 + i)
        for i in range(1, callers + 1)
    ]
    net = Network(device512, peers)
    regions = [Region(INPUT, bytearray(1)) for _ in range(each)]
    for i, peer in enumerate(peers[:-1]):
        net.connect(peer)
        net.set_up(peer, regions[: keys - each * i])
    first, last = peers[0], peers[-1]
    net.connect(last)
    before = device512.counter("rpc_regions_refused")
    answer, _, _ = net.exchange(last, last.advertise([Region(INPUT, bytearray(1))]))
    assert answer[:2] == bytes([0, NO_KEYS]) and device512.counter("rpc_regions_refused") == before + 1
    net.disconnect(first)
    net.step(5000)
    net.set_up(last, [Region(INPUT | OUTPUT, bytearray(b"abc"))])
    assert net.call(last, EMPTY) == 0
    assert outputs(last) == [b"abc"]
