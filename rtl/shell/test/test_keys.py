# SPDX-License-Identifier: Apache-2.0
"""A key that is gone protects the memory behind it: whatever a caller had begun under it does not reach the next owner.

A caller's second region message, here one that cannot be granted, gives back what it had. Requests that it sends right behind,
under its old keys, are taken while these are still valid; by the time they go on, the memory is another caller's."""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from nacelle_tb import cm
from nacelle_tb.long import some
from nacelle_tb.peer import ACKNOWLEDGE, INPUT, OUTPUT, UD_SEND_ONLY, Packet, Peer, Region, parse
from nacelle_tb.roce import atomiceth, op, reth
from nacelle_tb.session import Network, SimDevice, configure

SIZE = 1 << 16
WINDOW = 8192  # bytes on their way to a device whose memory is slow: more find no room
TOO_LARGE = b"\x01\x03\0\0" + struct.pack("!QQII", (INPUT | OUTPUT) << 56, 1, 1, 0xFFFFFFFF) * 3
NAK_REMOTE_ACCESS = 0x62


class Attack:
    """A caller that holds memory, and one that gets the same memory after it. Responses to requests of the first are kept apart."""

    def __init__(self, device: SimDevice) -> None:
        self.device = device
        self.first = Peer(depth=8)
        self.second = Peer(ip="10.77.0.10", mac="02:00:00:00:00:10", qpn=0x99, comm_id=77, tid=88)
        self.net = Network(device, [self.first, self.second])
        self.responses: list[Packet] = []
        self.net.lose = self._keep
        for peer in (self.first, self.second):
            self.net.connect(peer)
        self.net.set_up(self.first, [Region(INPUT | OUTPUT, bytearray(SIZE))])
        self.old = self.first.regions[0]

    def _keep(self, frame: bytes) -> bool:
        packet = parse(frame)
        kept = packet is not None and 0x0D <= packet.opcode <= 0x12 and packet.opcode != ACKNOWLEDGE
        if packet is not None and kept:
            self.responses.append(packet)
        return kept

    def hand_over(self) -> bytes:
        """The second caller gets that memory, and fills it."""
        self.net.set_up(self.second, [Region(INPUT | OUTPUT, bytearray(SIZE))])
        region = self.second.regions[0]
        assert region.device_addr == self.old.device_addr, "the same memory"
        data = random.Random(5).randbytes(SIZE)
        for at in range(0, SIZE, WINDOW):
            self.net.send(self.second.write_message(region.device_addr + at, region.device_rkey, data[at : at + WINDOW]))
            last = self.second.send_psn - 1 & 0xFFFFFF
            self.net.wait(self.second, lambda p, last=last: p.opcode == ACKNOWLEDGE and p.psn == last, "ACK", 2_000_000)
        return data

    def untouched(self, data: bytes) -> bool:
        return self.device.dram_read(self.old.device_addr, SIZE) == data

    def nak(self) -> Packet:
        """The first caller's NAK."""
        caller = self.net.caller(self.first)
        for _ in range(1000):
            if caller.naks:
                break
            self.net.step(2000)
        assert [p.syndrome for p in caller.naks] == [NAK_REMOTE_ACCESS]
        return caller.naks[0]

    def first_of_the_end(self) -> Packet:
        """The first caller's NAK; the DREQ comes behind it."""
        nak = self.nak()
        self.net.step(100_000)
        packets = [p for p, _ in self.net.caller(self.first).inbox]
        at = next(i for i, packet in enumerate(packets) if packet is nak)
        before, behind = (
            [int.from_bytes(p.payload[16:18], "big") for p in part if p.opcode == UD_SEND_ONLY]
            for part in (packets[:at], packets[at:])
        )
        assert cm.DREQ not in before and behind[:1] == [cm.DREQ]
        return nak

    def request(self, opcode: int, extension: bytes, responses: int = 1) -> bytes:
        """A request of the first caller without payload."""
        frame = self.first.roce(opcode, self.first.device_qpn, self.first.send_psn, extension, b"", ack=True)
        self.first.send_psn = self.first.send_psn + responses & 0xFFFFFF
        return frame


@contextmanager
def attack(width: int, **config: int) -> Iterator[Attack]:
    with SimDevice(width, **config) as device:
        configure(device)
        yield Attack(device)


widths = pytest.mark.parametrize("width", some([64, 512]))


@widths
def test_a_write_does_not_go_on_under_a_key_that_is_gone(width: int) -> None:
    with attack(width, line_rate_mbps=0xFFFF_FFFF, dram_latency_cycles=300) as a:
        message = a.first.send_message(TOO_LARGE)
        write = a.first.write_message(a.old.device_addr, a.old.device_rkey, b"\xee" * (3 * a.first.mtu))
        a.net.send([*message, write[0]])
        a.net.wait(a.first, lambda p: p.opcode == op("RC_SEND_ONLY"), "ERR")
        data = a.hand_over()
        a.net.send(write[1:])
        a.net.step(20_000)
        assert a.untouched(data)
        assert a.nak().psn == a.first.send_psn - 2 & 0xFFFFFF, "that of the MIDDLE"


@widths
def test_a_read_does_not_go_on_under_a_key_that_is_gone(width: int) -> None:
    # A slow line: the READs are on their way for long.
    with attack(width, line_rate_mbps=2000, dram_latency_cycles=300) as a:
        message = a.first.send_message(TOO_LARGE)
        packets = SIZE // a.first.mtu
        first = a.first.send_psn
        reads = [a.request(op("RC_RDMA_READ_REQUEST"), reth(a.old.device_addr, a.old.device_rkey, SIZE), packets) for _ in range(3)]
        a.net.send([*message, *reads])
        data = a.hand_over()
        for _ in range(300):
            a.net.step(2000)
        for packet in a.responses:
            assert packet.payload[-16:] not in data, f"another caller's bytes in response {(packet.psn - first) & 0xFFFFFF}"
        assert 0 < len(a.responses) < 3 * packets
        nak = a.first_of_the_end()
        assert (nak.psn - first) & 0xFFFFFF == len(a.responses), "that of the first response that does not come"


@widths
def test_a_nak_leaves_before_the_disconnection(width: int) -> None:
    """Behind WRITEs on a slow memory and READs on a slow line, though the queue pair in error is closed at once."""
    with attack(width, line_rate_mbps=2000, dram_latency_cycles=1000) as a:
        size = a.first.mtu
        packets = SIZE // size
        a.net.send([a.request(op("RC_RDMA_READ_REQUEST"), reth(a.old.device_addr, a.old.device_rkey, SIZE), packets)])
        frames = [
            *(a.first.write_message(a.old.device_addr, a.old.device_rkey, b"\xee" * size)[0] for _ in range(4)),
            a.first.write_message(a.old.device_addr, a.old.device_rkey ^ 1 << 31, b"\xee" * size)[0],
        ]
        a.net.send(frames)
        assert a.first_of_the_end().psn == a.first.send_psn - 1 & 0xFFFFFF


@widths
def test_an_atomic_is_not_carried_out_under_a_key_that_is_gone(width: int) -> None:
    # A slow memory: the atomics wait for long.
    with attack(width, line_rate_mbps=0xFFFF_FFFF, dram_latency_cycles=2000) as a:
        message = a.first.send_message(TOO_LARGE)
        atomics = [
            a.request(op("RC_FETCH_ADD"), atomiceth(a.old.device_addr + 4096 * i, a.old.device_rkey, 1 << 56, 0)) for i in range(8)
        ]
        a.net.send([*message, *atomics])
        data = a.hand_over()
        a.net.step(100_000)
        assert a.untouched(data)
        assert len(a.responses) < 8
        assert a.nak().psn == a.first.send_psn - 8 + len(a.responses) & 0xFFFFFF
