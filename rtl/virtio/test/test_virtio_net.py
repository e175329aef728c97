# SPDX-License-Identifier: Apache-2.0
"""The network device as its driver and its network see it: frames both ways, whatever their buffers; bad input costs its queue."""

import random
import struct
from collections import deque

import cocotb
import pytest
from cocotb.triggers import RisingEdge
from nacelle_tb.bench import run
from nacelle_tb.classifier import edited
from nacelle_tb.long import alternately
from nacelle_tb.planes import network_card
from nacelle_tb.streams import wait_cycles
from nacelle_tb.svtypes import constant
from nacelle_tb.virtio import CTRL_MQ, DATA_VALID, F_CSUM, F_EVENT_IDX, F_MQ, F_MRG_RXBUF, F_MTU, NEEDS_CSUM, Buffer, header
from nacelle_tb.widths import WIDTHS, at_width
from net_bench import FEATURES, MAX_FRAME, NetBench, features, params
from scapy.layers.inet import IP, TCP, UDP, IPOption_NOP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Dot1Q, Ether
from scapy.packet import Raw


def lengths() -> int:
    return random.choice([14, 60, 64, 65, 128, 1500, 1514, random.randint(14, 300), random.randint(14, 2000)])


# ---- transmit ----


@cocotb.test()
@cocotb.parametrize(stall=alternately([0.0, 0.3]), scatter=[False, True])
async def frames_are_sent_as_they_are(dut, stall: float, scatter: bool) -> None:
    """In any number of buffers, cut anywhere, the header too; the queues share the network."""
    bench = NetBench(dut, stall=stall, tx_stall=stall, scatter=scatter)
    await bench.begin()
    frames: dict[int, deque] = {1: deque(), 3: deque()}
    for number in frames:
        for i in range(30):
            frame = random.randbytes(lengths())
            bench.transmit(frame, number, cuts=random.choice([0, 1, 1, 2, 8]), direct=random.choice([None, 0]))
            frames[number].append(frame)
            if i % 5 == 4:
                bench.publish(number)
                await bench.reap(number, 5)
    for _ in range(60):
        frame = await bench.tx.recv()
        number = 1 if frames[1] and frames[1][0] == frame else 3
        assert frames[number].popleft() == frame
    assert await bench.counter("TX", 0) == await bench.counter("TX", 1) == 30


@cocotb.test()
async def sent_chains_come_back_without_a_byte(dut) -> None:
    bench = NetBench(dut)
    await bench.begin()
    for _ in range(10):
        bench.transmit(random.randbytes(100))
    bench.publish(1)
    assert [length for _, length, _ in await bench.reap(1, 10)] == [0] * 10


@cocotb.test()
@cocotb.parametrize(latency=[1, 155, (1, 400)])
async def frames_have_no_gap(dut, latency) -> None:
    """However slow memory is."""
    bench = NetBench(dut, latency=latency, stall=0.5)
    await bench.begin()
    for _ in range(6):
        bench.transmit(random.randbytes(1500), cuts=3)
    bench.publish(1)
    for _ in range(6):
        await bench.tx._wait(lambda: bool(bench.tx.packets), 20_000)
        first, last = bench.tx.spans[0]
        assert last - first + 1 == -(-1500 // bench.tx.bytes_per_beat)
        await bench.tx.recv()


@cocotb.test()
async def longest_and_shortest(dut) -> None:
    bench = NetBench(dut)
    await bench.begin()
    for length in (14, MAX_FRAME):
        frame = random.randbytes(length)
        bench.transmit(frame, cuts=3)
        bench.publish(1)
        assert await bench.tx.recv() == frame
    for length in (13, 1, MAX_FRAME + 1, 3 * MAX_FRAME):
        bench.transmit(random.randbytes(length), cuts=random.randint(0, 4))
        bench.publish(1)
        await bench.reap(1)
    bench.queues[1].add([Buffer(0x60000, 5)])  # not even a header
    bench.queues[1].add([Buffer(0x60000, 12)])
    frame = random.randbytes(77)
    bench.transmit(frame)
    bench.publish(1)
    assert await bench.tx.recv() == frame
    await bench.reap(1, 5)
    assert await bench.counter("TX_SHORT") == 4 and await bench.counter("TX_LONG") == 2 and await bench.counter("TX") == 3
    assert not bench.tx.packets


@cocotb.test()
async def headers_that_ask_for_more_are_refused(dut) -> None:
    bench = NetBench(dut)
    await bench.begin()
    bench.transmit(bytes(100), head=header(flags=NEEDS_CSUM, csum_start=34, csum_offset=6))
    bench.transmit(bytes(100), head=header(gso_type=1, gso_size=1448))
    bench.transmit(b"good" * 20)
    bench.publish(1)
    await bench.reap(1, 3)
    assert await bench.tx.recv() == b"good" * 20
    assert await bench.counter("TX_HEADER") == 2


def with_checksum(ipv6: bool, udp: bool, payload: bytes, options: int = 0, vlan: bool = False) -> tuple[bytes, bytes, int, int]:
    """A frame, the same as a driver leaves it to the device, csum_start and csum_offset. scapy computes both."""
    link = Ether(src="02:00:00:00:01:02", dst="02:00:00:00:01:03")
    if vlan:
        link /= Dot1Q(vlan=5)
    net = IPv6(src="fd00::1", dst="fd00::2") if ipv6 else IP(src="10.0.0.1", dst="10.0.0.2", options=[IPOption_NOP()] * options)
    top = UDP(sport=7, dport=9) if udp else TCP(sport=7, dport=9, seq=random.getrandbits(32))
    whole = bytes(link / net / top / payload)
    start = len(bytes(link / net))
    offset = 6 if udp else 16
    words = (whole[22 + 4 * vlan : start] if ipv6 else whole[26 + 4 * vlan : 34 + 4 * vlan]) + bytes([0, 17 if udp else 6])
    words += struct.pack(">H", len(whole) - start)
    total = sum(struct.unpack(f">{len(words) // 2}H", words))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    at = start + offset
    return whole, whole[:at] + struct.pack(">H", total) + whole[at + 2 :], start, offset


@cocotb.test()
async def checksums_are_completed(dut) -> None:
    """TCP and UDP, IPv4 with options and IPv6, of any length, also one that is 0; a frame that asks for none stays as it is."""
    bench = NetBench(dut, wanted=features(F_CSUM))
    await bench.begin()
    expected = []
    for i in range(40):
        length = random.choice([0, 1, 2, 18, random.randint(0, 200), random.randint(0, 1400)])
        options = random.choice([0, 0, 4, 8])
        whole, left, start, offset = with_checksum(i % 2 == 0, i % 4 < 2, random.randbytes(length), options, i % 5 == 0)
        if i % 3 == 0:
            bench.transmit(whole)
        else:
            bench.transmit(left, head=header(flags=NEEDS_CSUM, csum_start=start, csum_offset=offset), cuts=random.choice([0, 2]))
        expected.append(whole)
        if i % 8 == 7:
            bench.publish(1)
            await bench.reap(1, 8)
    for i, whole in enumerate(expected):
        assert await bench.tx.recv() == whole, f"frame {i}"
    whole, left, start, offset = with_checksum(False, True, bytes(2))
    word = struct.unpack(">H", whole[start + offset : start + offset + 2])[0]
    _, left, start, offset = with_checksum(False, True, struct.pack(">H", word))  # makes the sum all ones
    bench.transmit(left, head=header(flags=NEEDS_CSUM, csum_start=start, csum_offset=offset))
    bench.publish(1)
    assert (await bench.tx.recv())[start + offset :][:2] == b"\xff\xff"


@cocotb.test()
async def checksums_anywhere(dut) -> None:
    """Any csum_start and csum_offset, odd ones too, against the sum in Python; outside of the frame they are refused."""
    bench = NetBench(dut, wanted=features(F_CSUM))
    await bench.begin()
    for _ in range(30):
        frame = random.randbytes(random.randint(14, 300))
        start = random.randint(0, len(frame) - 2)
        at = random.randint(start, len(frame) - 2)
        bench.transmit(frame, head=header(flags=NEEDS_CSUM, csum_start=start, csum_offset=at - start))
        bench.publish(1)
        part = frame[start:] + bytes(len(frame[start:]) % 2)
        total = sum(struct.unpack(f">{len(part) // 2}H", part))
        total = (total & 0xFFFF) + (total >> 16)
        total = (total & 0xFFFF) + (total >> 16)
        value = struct.pack(">H", (total ^ 0xFFFF) or 0xFFFF)
        assert await bench.tx.recv() == frame[:at] + value + frame[at + 2 :]
    for start, offset in ((99, 0), (0, 99), (60000, 6), (65535, 65535)):
        bench.transmit(bytes(100), head=header(flags=NEEDS_CSUM, csum_start=start, csum_offset=offset))
    bench.publish(1)
    await bench.reap(1, 34)
    assert await bench.counter("TX_HEADER") == 4 and not bench.tx.packets


@cocotb.test()
async def network_that_stops_loses_nothing(dut) -> None:
    bench = NetBench(dut)
    await bench.begin()
    bench.tx.stall = 1.0
    frames = [random.randbytes(1000) for _ in range(60)]
    for frame in frames:
        bench.transmit(frame)
    bench.publish(1)
    bench.post(0, [2000])  # receiving goes on meanwhile
    bench.publish(0)
    await wait_cycles(dut, 3000)
    bench.rx.give(bytes(500))
    assert (await bench.received(0)).frame == bytes(500)
    bench.tx.stall = 0.0
    for frame in frames:
        assert await bench.tx.recv() == frame


@cocotb.test()
async def what_a_reset_throws_away_is_not_counted_as_sent(dut) -> None:
    """Frames that wait in the device when it is reset: one has begun to leave and is finished, the others go nowhere."""
    bench = NetBench(dut)
    await bench.begin()
    frames = [random.randbytes(1000) for _ in range(5)]
    bench.transmit(frames[0])
    bench.publish(1)
    assert await bench.tx.recv() == frames[0]
    bench.tx.stall = 1.0
    for frame in frames[1:]:
        bench.transmit(frame)
    bench.publish(1)
    await bench.reap(1, len(frames))
    await wait_cycles(dut, 1000)
    reset = cocotb.start_soon(bench.function_reset())
    await wait_cycles(dut, 100)
    bench.tx.stall = 0.0
    await reset
    assert await bench.tx.recv() == frames[1]
    await wait_cycles(dut, 1000)
    assert not bench.tx.packets
    assert await bench.counter("TX", 0) == 2


# ---- receive ----


@cocotb.test()
@cocotb.parametrize(stall=alternately([0.0, 0.3]), event_idx=[False, True])
async def frames_arrive_as_they_are(dut, stall: float, event_idx: bool) -> None:
    """In one buffer or several, which have any length; both queues."""
    bench = NetBench(dut, stall=stall, scatter=True, wanted=features(*([F_EVENT_IDX] if event_idx else [])))
    await bench.begin()
    frames: dict[int, deque] = {0: deque(), 2: deque()}
    for _ in range(8):
        for number in frames:
            while len(bench.queues[number].free) > 12 and len(bench.queues[number].chains) < 40:
                count = random.choice([1, 1, 2, 3])
                bench.post(number, [random.choice([64, 100, 1536, random.randint(13, 700)]) for _ in range(count)],
                           direct=random.choice([None, 0]))  # fmt: skip
            bench.publish(number)
        await wait_cycles(dut, 800)
        for _ in range(6):
            number = random.choice([0, 2])
            frame = random.randbytes(random.choice([14, 52, 64, 500, random.randint(14, 1500)]))
            bench.rx.give(frame, number)
            frames[number].append(frame)
        for number in frames:
            while frames[number]:
                assert (await bench.received(number)).frame == frames[number].popleft()
    assert await bench.counter("RX", 0) + await bench.counter("RX", 1) == 48


@cocotb.test()
async def frames_are_changed_one_by_one(dut) -> None:
    """As the rule of each says, whatever those beside it have, are too long, or are not wanted."""
    bench = NetBench(dut, stall=0.3)
    await bench.begin()
    for _ in range(40):
        bench.post(0, [1536])
    bench.publish(0)
    await wait_cycles(dut, 800)
    wanted = deque()
    for _ in range(60):
        ether = Ether(src="02:00:00:00:00:02", dst="02:00:00:00:00:01") / random.choice([Dot1Q(vlan=5, prio=1), Dot1Q(vlan=6)])
        frame = bytes(ether / IP(src="10.0.0.1", dst="10.0.0.2", tos=3) / UDP() / Raw(random.randbytes(random.randrange(800))))
        pcp, dscp = random.choice([None, 0, 7]), random.choice([None, 0, 46])
        unwanted, bad = random.random() < 0.2, random.random() < 0.2
        bench.rx.give(frame, pcp=pcp, dscp=dscp, unwanted=unwanted, bad=bad)
        if not unwanted and not bad and len(wanted) < 40:
            wanted.append(edited(frame, pcp, dscp))
    while wanted:
        assert (await bench.received()).frame == wanted.popleft()


@cocotb.test()
async def headers_say_what_was_received(dut) -> None:
    bench = NetBench(dut)
    await bench.begin()
    for _ in range(3):
        bench.post(0, [600])
    bench.publish(0)
    await wait_cycles(dut, 600)
    bench.rx.give(bytes(588), csum_valid=True)
    bench.rx.give(bytes(589), csum_valid=False)
    first, second = await bench.received(), await bench.received()
    assert (first.flags, first.buffers, first.gso_type) == (DATA_VALID, 1, 0)
    assert (second.flags, second.buffers) == (0, 2)


@cocotb.test()
async def used_lengths_are_what_was_written(dut) -> None:
    bench = NetBench(dut)
    await bench.begin()
    for length in (100, 50, 4000):
        bench.post(0, [length])
    bench.publish(0)
    await wait_cycles(dut, 600)
    bench.rx.give(bytes(1000))
    assert [length for _, length, _ in await bench.reap(0, 3)] == [100, 50, 1012 - 150]


@cocotb.test()
async def nothing_beside_the_buffers_is_written(dut) -> None:
    bench = NetBench(dut, latency=(1, 9))
    await bench.begin()
    for _ in range(20):
        bench.post(0, [random.randint(13, 300)])
    bench.publish(0)
    await wait_cycles(dut, 300)
    before = bytes(bench.memory.content)
    spans = [(b.addr, b.length) for buffers in bench.queues[0].tokens.values() for b in buffers]
    ring = (bench.queues[0].used, 6 + 8 * bench.queues[0].size)
    for _ in range(5):
        bench.rx.give(random.randbytes(random.randint(14, 400)))
    await wait_cycles(dut, 2000)
    allowed = bytearray(len(before))
    for addr, length in [*spans, ring]:
        allowed[addr : addr + length] = b"\1" * length
    changed = [i for i, (old, new) in enumerate(zip(before, bench.memory.content, strict=True)) if old != new and not allowed[i]]
    assert not changed and bench.queues[0].pending


@cocotb.test()
async def frames_without_buffers_are_dropped_and_counted(dut) -> None:
    """And the chains that were too small for one are there for the next."""
    bench = NetBench(dut)
    await bench.begin()
    for _ in range(5):
        bench.rx.give(bytes(64), 0)
    bench.post(2, [2000])
    bench.publish(2)
    await wait_cycles(dut, 1000)
    bench.rx.give(b"2" * 64, 2)
    assert (await bench.received(2)).frame == b"2" * 64
    assert await bench.counter("RX_NO_BUFFER", 0) == 5
    bench.post(0, [100])
    bench.post(0, [100])
    bench.publish(0)
    await wait_cycles(dut, 1000)
    bench.rx.give(bytes(1000), 0)
    bench.rx.give(b"fits" * 40, 0)
    received = await bench.received(0)
    assert received.frame == b"fits" * 40 and received.buffers == 2
    assert await bench.counter("RX_NO_BUFFER", 0) == 6


@cocotb.test()
async def frames_that_are_not_wanted_leave_no_trace(dut) -> None:
    """They pass among others, also bad ones and too long ones: they take no buffer, and no counter counts them."""
    bench = NetBench(dut)
    await bench.begin()
    wanted = []
    for number in range(60):
        frame = random.randbytes(random.choice([60, 300, 1500]))
        if number % 3 == 0:
            wanted.append(frame)
            bench.post(0, [1600])
        bench.publish(0)
        await wait_cycles(dut, 300)
        bench.rx.give(frame, unwanted=number % 3 != 0, bad=number % 3 == 1)
    bench.rx.give(random.randbytes(MAX_FRAME + 100), unwanted=True)
    await bench.rx.drained()  # the rest of a frame that a reset cuts would be the begin of the next test's
    for frame in wanted:
        assert (await bench.received(0)).frame == frame
    assert not bench.queues[0].pending
    assert [await bench.counter(name) for name in ("RX", "RX_NO_BUFFER", "RX_OVERRUN", "RX_BAD")] == [len(wanted), 0, 0, 0]


@cocotb.test()
@cocotb.parametrize(asked=[False, True])
async def frames_beyond_the_mtu_are_not_for_the_driver(dut, asked: bool) -> None:
    """If it has negotiated VIRTIO_NET_F_MTU: MTU, Ethernet header and a VLAN tag."""
    bench = NetBench(dut, wanted=features(*([F_MTU] if asked else [])))
    dut.mtu.value = 1500
    await bench.begin()
    for _ in range(3):
        bench.post(0, [2000])
    bench.publish(0)
    await wait_cycles(dut, 600)
    for length in (1519, 1518):
        bench.rx.give(bytes(length))
    assert len((await bench.received()).frame) == (1518 if asked else 1519)
    assert await bench.counter("RX_BAD") == asked


@cocotb.test()
async def without_mergeable_buffers_a_frame_has_one_chain(dut) -> None:
    bench = NetBench(dut, wanted=features(without=1 << F_MRG_RXBUF))
    await bench.begin()
    bench.post(0, [12, 100, 2000])
    bench.post(0, [100])
    bench.publish(0)
    await wait_cycles(dut, 600)
    bench.rx.give(b"long" * 300)
    bench.rx.give(b"long" * 300)  # the next chain is too small
    bench.rx.give(b"fits" * 20)
    first = await bench.received()
    assert (first.frame, first.buffers) == (b"long" * 300, 1)
    assert (await bench.received()).frame == b"fits" * 20
    assert await bench.counter("RX_NO_BUFFER") == 1


@cocotb.test()
async def nothing_stops_the_network(dut) -> None:
    """No buffers, slow memory, bad frames, too many frames: rx never waits, and every frame is counted somewhere."""
    bench = NetBench(dut, latency=(100, 400))
    await bench.begin()
    for _ in range(50):
        bench.post(0, [300])
    bench.publish(0)
    stopped = 0

    async def watch() -> None:
        nonlocal stopped
        while True:
            await RisingEdge(dut.clk)
            stopped += not int(dut.rx_tready.value)

    cocotb.start_soon(watch())
    total = 200
    for i in range(total):
        bench.rx.give(random.randbytes(MAX_FRAME + 100 if i % 50 == 49 else random.randint(14, 1500)), bad=i % 10 == 0)
    await bench.rx.drained()
    await wait_cycles(dut, 20_000)
    counts = {name: await bench.counter(name) for name in ("RX", "RX_NO_BUFFER", "RX_OVERRUN", "RX_BAD", "RX_MEMORY")}
    assert not stopped
    assert sum(counts.values()) == total, counts
    assert counts["RX"] > 5 and counts["RX_BAD"] == total // 10 + total // 50
    for _ in range(counts["RX"]):
        await bench.received()


# ---- commands ----


@cocotb.test()
@cocotb.parametrize(direct=[None, 0])
async def commands_are_answered(dut, direct) -> None:
    """However they are cut; what the device does not know, or cannot do, with an error."""
    bench = NetBench(dut)
    await bench.begin()
    for command, ack in (
        (bytes([CTRL_MQ, 0, 1, 0]), 0),
        (bytes([CTRL_MQ, 0, 2, 0]), 0),
        (bytes([CTRL_MQ, 0, 0, 0]), 1),
        (bytes([CTRL_MQ, 0, 3, 0]), 1),
        (bytes([CTRL_MQ, 0, 1, 1]), 1),
        (bytes([CTRL_MQ, 1, 1, 0]), 1),
        (bytes([0, 0, 1]), 1),
        (bytes([0, 0, 1, 0]), 1),
        (bytes([CTRL_MQ]), 1),
        (b"", 1),
        (bytes([CTRL_MQ, 0, 1, 0, 0]), 1),
        (bytes([CTRL_MQ, 0, 1, 0]) + bytes(MAX_FRAME), 1),
        (bytes([CTRL_MQ, 0, 1, 0]) + bytes(65536), 1),
    ):
        assert await bench.command(command, cuts=random.randint(0, 3), direct=direct) == ack, command[:5]
        frame = random.randbytes(100)
        bench.transmit(frame)
        bench.publish(1)
        assert await bench.tx.recv() == frame
    assert await bench.command(bytes([CTRL_MQ, 0, 1, 0]), answer=False) is None
    assert await bench.use_pairs(2) == 0
    assert await bench.counter("TX") == 13 and not bench.tx.packets


@cocotb.test()
async def pairs_that_are_not_used_receive_nothing(dut) -> None:
    bench = NetBench(dut)
    await bench.begin()
    for number in (0, 2):
        for _ in range(8):
            bench.post(number, [300])
        bench.publish(number)
    await wait_cycles(dut, 800)
    for pairs, number in ((2, 2), (1, 0), (2, 2)):
        assert await bench.use_pairs(pairs) == 0
        frame = random.randbytes(100)
        bench.rx.give(frame, 2)
        assert (await bench.received(number)).frame == frame
    assert await bench.use_pairs(3) == 1  # leaves it as it is
    bench.rx.give(frame, 2)
    assert (await bench.received(2)).frame == frame


@cocotb.test()
async def without_more_pairs_the_control_queue_is_the_third(dut) -> None:
    bench = NetBench(dut, wanted=features(without=1 << F_MQ))
    await bench.begin()
    assert await bench.command(bytes([CTRL_MQ, 0, 1, 0])) == 1  # was not negotiated
    frame = random.randbytes(100)
    bench.post(0, [300])
    bench.publish(0)
    bench.transmit(frame)
    bench.publish(1)
    assert await bench.tx.recv() == frame
    await wait_cycles(dut, 800)
    bench.rx.give(frame, 2)
    assert (await bench.received(0)).frame == frame


@cocotb.test()
@cocotb.parametrize(bad=["length", "command", "answer"])
async def a_control_queue_that_stops_stops_alone(dut, bad: str) -> None:
    """A buffer without a byte, a command in no memory, an answer to no memory."""
    bench = NetBench(dut, latency=(1, 20))
    await bench.begin()
    command, ack = Buffer(0x60000, 0 if bad == "length" else 4), Buffer(0x60000, 1, True)
    if bad != "length":
        bench.memory.write(0x60000, bytes([CTRL_MQ, 0, 2, 0]))
    nowhere = 1 << 40
    bench.queues[4].add([Buffer(nowhere, 4), ack] if bad == "command" else [command, Buffer(nowhere, 1, True)])
    bench.publish(4)
    await wait_cycles(dut, 600)
    assert await bench.fault(4) == constant(f"virtio_pkg::VIRTQ_{'ZERO_LENGTH' if bad == 'length' else 'MEMORY'}")
    assert await bench.counter("STOPPED") == 1 and not bench.queues[4].pending
    await others_go_on(bench, 4)


# ---- bad input ----


async def others_go_on(bench: NetBench, broken: int) -> None:
    """All queues but one work."""
    for number in (1, 3):
        if number != broken:
            frame = random.randbytes(200)
            bench.transmit(frame, number)
            bench.publish(number)
            assert await bench.tx.recv() == frame
            await bench.reap(number)
    for number in (0, 2):
        if number != broken:
            bench.post(number, [300])
            bench.publish(number)
            await wait_cycles(bench.dut, 800)
            bench.rx.give(b"go on" * 10, number)
            assert (await bench.received(number)).frame == b"go on" * 10


@cocotb.test()
@cocotb.parametrize(number=[0, 1])
async def chains_against_the_rules_stop_their_queue(dut, number: int) -> None:
    """The engine's tests have every rule; here it is that the device says so, and goes on."""
    bench = NetBench(dut, latency=(1, 20))
    await bench.begin()
    await bench.pci.set("config_msix_vector", 7)
    bench.queues[number].add([Buffer(0x60000, 64, number == 0), Buffer(0x60000, 0, number == 0)])
    bench.publish(number)
    await wait_cycles(dut, 300)
    if number == 0:  # chains are looked at when a frame needs them
        bench.rx.give(bytes(100))
    assert await bench.interrupt.recv() == 7
    assert await bench.pci.get("device_status") & 64  # DEVICE_NEEDS_RESET
    assert await bench.fault(number) == constant("virtio_pkg::VIRTQ_ZERO_LENGTH")
    assert await bench.counter("STOPPED") == 1
    assert (await bench.registers.read(0x40))[0] == 2
    await others_go_on(bench, number)


@cocotb.test()
@cocotb.parametrize(number=[0, 1])
async def buffers_that_are_not_there_stop_their_queue(dut, number: int) -> None:
    bench = NetBench(dut, latency=(1, 20))
    await bench.begin()
    bench.queues[number].add([Buffer(1 << 40, 500, number == 0)])
    bench.publish(number)
    await wait_cycles(dut, 300)
    if number == 0:
        bench.rx.give(bytes(100))
    await wait_cycles(dut, 300)
    assert await bench.fault(number) == constant("virtio_pkg::VIRTQ_MEMORY")
    assert await bench.counter("TX_MEMORY" if number else "RX_MEMORY") == 1
    assert not bench.tx.packets and not bench.queues[number].pending
    await others_go_on(bench, number)


@cocotb.test()
async def a_frame_in_more_buffers_than_there_is_room_for_is_dropped(dut) -> None:
    bench = NetBench(dut, latency=(1, 9), size=256)
    await bench.begin()
    for _ in range(100):
        bench.post(0, [13])
    bench.publish(0)
    await wait_cycles(dut, 600)
    bench.rx.give(bytes(1000))
    bench.rx.give(b"less" * 5)
    assert (await bench.received()).frame == b"less" * 5
    assert await bench.counter("RX_NO_BUFFER") == 1


@cocotb.test()
@cocotb.parametrize(mergeable=[False, True])
async def a_driver_that_gives_no_buffers_back_starves_alone(dut, mergeable: bool) -> None:
    """Ten buffers for a queue and never another one: its frames are dropped and counted, each frame of the other queue arrives."""
    bench = NetBench(dut, latency=(100, 200), wanted=FEATURES if mergeable else features(without=1 << F_MRG_RXBUF))
    await bench.begin()
    for number, count in ((0, 10), (2, 60)):
        for _ in range(count):
            bench.post(number, [400])
        bench.publish(number)
    await wait_cycles(dut, 1500)
    frames = [random.randbytes(random.randint(60, 380)) for _ in range(40)]
    for frame in frames:
        for _ in range(3):
            bench.rx.give(bytes(300), 0)
        bench.rx.give(frame, 2)
        bench.transmit(frame, 1)  # of the pair whose receive queue has nothing
    bench.publish(1)
    for frame in frames:
        assert (await bench.received(2)).frame == frame
        assert await bench.tx.recv() == frame
    assert await bench.counter("RX", 0) == 10 and await bench.counter("RX_NO_BUFFER", 0) == 3 * len(frames) - 10
    assert await bench.counter("RX", 1) == len(frames) and await bench.counter("RX_NO_BUFFER", 1) == 0
    assert await bench.counter("STOPPED", 0) == await bench.counter("STOPPED", 1) == 0


@cocotb.test()
async def a_driver_that_never_takes_what_was_sent_stops_itself(dut) -> None:
    """Its index runs away by more than the ring: that queue stops, the others go on."""
    bench = NetBench(dut, latency=(1, 20))
    await bench.begin()
    queue = bench.queues[1]
    for _ in range(queue.size):
        bench.transmit(b"twice" * 20)
    bench.publish(1)
    for _ in range(queue.size):
        await bench.tx.recv()
    queue.avail_idx = (queue.avail_idx + queue.size + 1) & 0xFFFF
    queue.publish()
    bench.notify.send(1)
    await wait_cycles(dut, 500)
    assert await bench.fault(1) == constant("virtio_pkg::VIRTQ_AVAIL_JUMP") and await bench.counter("STOPPED") == 1
    assert not bench.tx.packets
    await others_go_on(bench, 1)


# ---- figures ----


@cocotb.test()
@cocotb.parametrize(length=[64, 1500], latency=[49, 155])
async def cycles_a_frame(dut, length: int, latency: int) -> None:
    """Both ways at once, one queue each, a buffer a frame."""
    bench = NetBench(dut, latency=latency, size=256, wanted=features(F_EVENT_IDX))
    await bench.begin()
    total = 500 if length == 64 else 250
    frame = bytes(length)
    bench.rx.give(frame)  # wakes the streams up: it has no buffer
    rx_queue, tx_queue = bench.queues[0], bench.queues[1]
    buffers = [[Buffer(0x100000 + 2048 * i, 1536 + 12, True)] for i in range(256)]
    for one in buffers:
        rx_queue.add(one, token=one)
    bench.publish(0)
    await wait_cycles(dut, 2000)
    at = bench.heap.take(12 + length)
    bench.memory.write(at, header() + frame)
    for _ in range(256):
        tx_queue.add([Buffer(at, 12 + length)])
    bench.publish(1)
    done = [0, 0]
    marks: list[tuple[int, int]] = [(0, 0)] * 2  # cycle and frames: when a used index brought the hundredth, and the last time
    last = [(0, 0)] * 2
    while min(done) < total:
        for number, queue in ((0, rx_queue), (1, tx_queue)):
            fresh = 0
            while (taken := queue.take()) is not None:
                done[number] += 1
                fresh += 1
                if number:
                    queue.add([Buffer(at, 12 + length)])
                else:
                    queue.add(taken[2], token=taken[2])
            if fresh:
                bench.publish(number)
                last[number] = bench.memory.cycle, done[number]
                if done[number] >= 100 and marks[number][1] == 0:
                    marks[number] = last[number]
        while len(bench.rx._queue) < 200:
            bench.rx.give(frame)
        await wait_cycles(dut, 16)
        assert bench.memory.cycle < 200_000
    rates = [(last[i][0] - marks[i][0]) / (last[i][1] - marks[i][1]) for i in range(2)]
    dut._log.info("FIGURE %d bits, %d bytes, latency %d: receive %.1f, transmit %.1f cycles a frame", len(dut.tx_tdata), length,
                  latency, *rates)  # fmt: skip
    beats = -(-(length + 12) // bench.tx.bytes_per_beat)
    if bench.tx.bytes_per_beat == 64:  # 100 Gbit/s at 250 MHz are 50 bytes a cycle; preamble, FCS and gap have 24
        assert max(rates) <= (8 if length == 64 else (length + 24) / 50)
    else:
        assert max(rates) <= 2.2 * beats + 12


PAIRS = [*((width, 2) for width in WIDTHS), (64, 1)]


@pytest.mark.parametrize("width, pairs", PAIRS)
def test_virtio_net(width: int, pairs: int) -> None:
    env = {"NACELLE_PAIRS": str(pairs)}
    if pairs == 1:
        env["COCOTB_TEST_FILTER"] = "come_back_without|no_gap.*0|headers_say|used_lengths|checksums_are|mtu|beside"
    else:
        env |= at_width(width, "as_they_are.*stall=0.3|changed_one|no_gap.*0|longest|checksums|used_lengths|headers_say|answered")
    run("virtio_net", __file__, params=params(width, pairs), ports=network_card(width), random_state=True, env=env)
