# SPDX-License-Identifier: Apache-2.0
"""Frames from strangers, mutated by a seed, into the whole device: every one of them is counted, the device never stops, a caller
is served all the while, and no byte of memory changes that is not the stranger's own.

$NACELLE_FUZZ_SEED is the first seed; `make test-long` runs ten million cycles.
"""

from __future__ import annotations

import os
import random
import struct

import pytest
from nacelle_tb import cm, ipbus
from nacelle_tb.cci import counters
from nacelle_tb.long import LONG
from nacelle_tb.mutate_frames import Mutator
from nacelle_tb.peer import INPUT, OUTPUT, Peer, Region, ip_bytes, mac_bytes
from nacelle_tb.session import Caller, Network, SimDevice, configure, outputs

INCREMENT = 1
CYCLES = 5_000_000 if LONG else 150_000  # of each run
RUNS = [(64, 0), (64, 1), (512, 2)] if LONG else [(64, 0)]
SEED = int(os.environ.get("NACELLE_FUZZ_SEED", "1"))
BATCH = 128
DRAIN_CYCLES = 2000
STAYS = 20  # batches
SEQUENCE_ERROR = 0x60  # a NAK after which the queue pair goes on
QUIET_CYCLES = 3_000_000  # in which the device comes to rest: longer than its retries
# What packet_rx drops before a frame has a class, but for drop_icmp, which has other reasons, too.
RX_DROPS = (
    *("drop_overflow", "drop_fcs", "drop_runt", "drop_oversize", "drop_not_ours", "drop_ipv4_header", "drop_ipv4_fragment"),
    *("drop_udp_length", "drop_udp_checksum", "drop_arp", "drop_icrc", "drop_roce_opcode"),
    *("drop_icmp_unreachable", "drop_icmp_too_big"),
)
CLASSES = ("rx_roce", "rx_arp", "rx_icmp", "rx_udp")
ROUTE_DROPS = ("drop_group", "drop_vlan", "drop_ipv6", "drop_ethertype", "drop_tcp", "drop_ip_protocol")
WITNESSES, WITNESS_BYTES = 64, 4096
VID = 5
CONTROL = b"\x88\x08"
GO_ON = bytes.fromhex("0180c2000001 020000000099 8808 0001 0000").ljust(60, b"\0")  # PAUSE, for no time


def peer(number: int, mtu: int = 1024) -> Peer:
    return Peer(
        ip=f"10.77.0.{number}", mac=f"02:00:00:00:00:{number:02x}", qpn=0x900 + number, comm_id=number, tid=100 + number, mtu=mtu
    )


def corpus(stranger: Peer) -> list[bytes]:
    """A good frame of each kind, from a stranger that is connected and has a region."""
    region, qpn = stranger.regions[0], stranger.device_qpn
    reth = struct.pack("!QII", region.device_addr, region.device_rkey, 64)
    atomic = struct.pack("!QIQQ", region.device_addr, region.device_rkey, 1, 2)
    request = stranger.send_psn
    roce = [
        stranger.roce(opcode, qpn, request, extension, payload, ack=True)
        for opcode, extension, payload in (
            *((opcode, b"", bytes(64)) for opcode in (0x00, 0x01, 0x02, 0x04, 0x07, 0x08)),
            *((opcode, reth, bytes(64)) for opcode in (0x06, 0x0A)),
            *((opcode, reth, b"") for opcode in (0x0A, 0x0C)),
            *((opcode, bytes(4), bytes(64)) for opcode in (0x03, 0x05, 0x09, 0x0D, 0x0F, 0x10, 0x16, 0x17)),
            (0x0B, reth + bytes(4), bytes(64)),
            (0x0E, b"", bytes(64)),
            (0x12, bytes(12), b""),
            *((opcode, atomic, b"") for opcode in (0x13, 0x14)),
            (0x81, b"", bytes(16)),  # CNP
        )
    ]
    roce += [stranger.ack(stranger.recv_psn, syndrome) for syndrome in (0x1F, 0x21, 0x60, 0x61, 0x62, 0x63)]
    others = [peer(number) for number in (20, 21, 22)]
    messages = [frame for other in others for frame in (other.req(), other.rtu(), other.dreq())]
    messages += [
        stranger.mad(cm.REJ, cm.rej(stranger.comm_id, stranger.device_comm_id, cm.ABOUT_REP, 28)),
        stranger.mad(cm.MRA, cm.mra(stranger.comm_id, stranger.device_comm_id, cm.ABOUT_REP, 3)),
        stranger.mad(cm.DREP, cm.ids(stranger.comm_id, stranger.device_comm_id)),
    ]

    def udp(port: int, data: bytes) -> bytes:
        return stranger.ethernet(0x0800, stranger.ipv4(17, struct.pack("!HHHH", 40000, port, 8 + len(data), 0) + data))

    services = [
        udp(50001, ipbus.packed([ipbus.packet_header(ident, kind), *body]))
        for ident, kind, body in (
            (0, ipbus.CONTROL, ipbus.read(0)),
            (1, ipbus.CONTROL, ipbus.write(4, [1, 2, 3])),
            (0, ipbus.CONTROL, [*ipbus.rmw_bits(4, 1, 2), *ipbus.rmw_sum(4, 1), *ipbus.read_config(0, 4)]),
            (0, ipbus.STATUS, [0] * 15),
            (1, ipbus.RESEND, []),
        )
    ]
    echo = stranger.ethernet(0x0800, stranger.ipv4(1, struct.pack("!BBHHH", 8, 0, 0, 1, 1) + bytes(56)))
    plain = [
        *(stranger.arp_request(), stranger.arp_reply(), echo, udp(68, bytes(300)), udp(9, b"discard")),
        stranger.ethernet(0x0800, stranger.ipv4(6, bytes(20))),
        stranger.ethernet(0x86DD, bytes(60)),
        stranger.ethernet(0x8100, struct.pack("!HH", 5, 0x0800) + stranger.ipv4(17, bytes(20))),
        stranger.ethernet(0x88CC, bytes(60), "01:80:c2:00:00:0e"),
        stranger.ethernet(0x8100, struct.pack("!HH", VID, 0x0800) + stranger.ipv4(17, bytes(20))),
        stranger.ethernet(0x8100, struct.pack("!HH", VID, 0x0806) + stranger.arp_request()[14:]),
        stranger.ethernet(0x0800, stranger.ipv4(1, struct.pack("!BBHHH", 3, 4, 0, 0, 576) + bytes(28))),
        stranger.ethernet(0x0800, stranger.ipv4(47, bytes(40))),
        stranger.ethernet(0x8808, struct.pack("!HH", 1, 0xFFFF).ljust(46, b"\0"), "01:80:c2:00:00:01"),
        stranger.ethernet(0x8808, struct.pack("!HH8H", 0x101, 0xFF, *[0xFFFF] * 8).ljust(46, b"\0"), "01:80:c2:00:00:01"),
    ]
    return [*roce, *messages, *services, *plain]


class Scene:
    """A caller, a stranger, and memory that belongs to nobody."""

    def __init__(self, device: SimDevice, seed: int) -> None:
        self.device, self.random = device, (rng := random.Random(seed))
        self.good = peer(9)
        self.net = Network(device, [self.good])
        self.join(self.good)
        self.strangers = self.batches = 0
        self.stranger = self.next_stranger()
        # The strangers' connections never need the upper half.
        size = device.info.dram_bytes
        self.witnesses = {at: rng.randbytes(WITNESS_BYTES) for at in range(size // 2, size, size // 2 // WITNESSES)}
        for at, data in self.witnesses.items():
            device.dram_write(at, data)
        self.rest()
        self.before, self.frames_before = self.counts(), device.stats.rx_frames

    def join(self, one: Peer) -> None:
        """It connects, and gets a region."""
        self.net.connect(one)
        self.net.set_up(one, [Region(INPUT | OUTPUT, bytearray(self.random.randbytes(3000)))])

    def next_stranger(self) -> Peer:
        """Another one: its queue pair is at the begin of its life."""
        self.strangers += 1
        one = peer(10 + self.strangers % 8)
        one.qpn, one.comm_id, one.tid = 0x1000 + self.strangers, 1000 + self.strangers, 1000 + self.strangers
        self.net.callers[one.ip] = Caller(one)
        self.join(one)
        return one

    def strange(self, mutator: Mutator) -> None:
        """Frames of the stranger, made from what it could send next. When its queue pair failed, and at times, another comes."""
        caller = self.net.caller(self.stranger)
        self.batches += 1
        if self.batches % STAYS == 0 or any(nak.syndrome != SEQUENCE_ERROR for nak in caller.naks):
            self.net.send([self.stranger.dreq()])
            self.stranger = self.next_stranger()
        elif caller.acked >= 0:
            self.stranger.send_psn = caller.acked + 1 & 0xFFFFFF
        mutator.frames = corpus(self.stranger)
        self.send([mutator.frame() for _ in range(BATCH)])

    def counts(self) -> dict[str, int]:
        return {name: self.device.read(at) for name, at in counters().items()}

    def call(self) -> None:
        """The caller's call works."""
        want = bytes(byte + 1 & 0xFF for byte in self.good.regions[0].data)
        assert self.net.call(self.good, INCREMENT) == 0
        assert outputs(self.good) == [want]

    def send(self, frames: list[bytes]) -> None:
        """Strangers do not speak for the caller: that they could, no transport without secrets can prevent."""
        mine = [mac_bytes(self.good.mac), ip_bytes(self.good.ip)]
        sent = [frame for frame in frames if not any(address in frame[:42] for address in mine)]
        # Only the switch at the port can stop the device: what looks like it is followed by the switch's own word.
        sent = [one for frame in sent for one in ((frame, GO_ON) if frame[12:14] == CONTROL else (frame,))]
        end = self.device.stats.rx_frames + len(sent)
        self.net.send(sent)
        # The caller repeats nothing: what it sends must not meet stores that are full of these.
        while self.device.stats.rx_frames < end:
            self.net.step(100)
        self.net.step(DRAIN_CYCLES)

    def rest(self) -> None:
        """Until nothing moves but timers."""
        for _ in range(QUIET_CYCLES // 1000):
            self.net.step(1000)
            if self.device.idle:
                return
        raise AssertionError("the device does not come to rest")

    def check_counts(self) -> None:
        """Every frame is counted, once."""
        now = self.counts()
        count = {name.removeprefix("packet_"): now[name] - self.before[name] & 0xFFFFFFFF for name in now}
        unnamed = self.device.stats.rx_frames - self.frames_before - count["rx_frame"] - sum(count[name] for name in RX_DROPS)
        assert 0 <= unnamed <= count["drop_icmp"], (unnamed, count)
        assert count["drop_icmp"] - unnamed <= count["rx_icmp"]  # the others have a class, and no one host as their source
        routed = count["rx_frame"] - sum(count[name] for name in CLASSES)
        assert routed == sum(count[name] for name in ROUTE_DROPS)

    def check_memory(self) -> None:
        """What belongs to others is as it was."""
        region = self.good.regions[0]
        assert self.device.dram_read(region.device_addr, len(region.data)) == bytes(region.data)
        for at, data in self.witnesses.items():
            assert self.device.dram_read(at, len(data)) == data, f"memory at {at:#x} has changed"


@pytest.mark.parametrize(("data_w", "run"), RUNS)
def test_mutated_frames_harm_nobody(data_w: int, run: int) -> None:
    with SimDevice(data_w, line_rate_mbps=0xFFFF_FFFF) as device:
        configure(device)
        seed = SEED + run
        scene = Scene(device, seed)
        mutator = Mutator(seed)
        end = device.stats.cycles_simulated + CYCLES
        while device.stats.cycles_simulated < end:
            scene.strange(mutator)
            scene.call()
        scene.rest()
        scene.call()
        scene.rest()
        assert scene.strangers > 1  # so frames came as far as to end queue pairs
        scene.check_counts()
        scene.check_memory()
