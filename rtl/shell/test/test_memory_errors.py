# SPDX-License-Identifier: Apache-2.0
"""Bits of memory that flip: one of a word costs nothing; more end what reads them, so that its owner is told, and nothing else.

With ECC of the device, and with a memory whose controller corrects by itself."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
from nacelle_tb import cm
from nacelle_tb.management import State
from nacelle_tb.peer import ACKNOWLEDGE, INPUT, OUTPUT, UD_SEND_ONLY, Packet, Peer, Region, parse
from nacelle_tb.programs import LOCAL, OTHER, QPN, REMOTE, SIZE, Programs
from nacelle_tb.roce import atomiceth, op
from nacelle_tb.session import Network, SimDevice, configure, outputs

INCREMENT, EMPTY = 1, 3
MEMORY_ERROR = 0x12
NAK_REMOTE_OPERATIONAL = 0x63
WRITE, SEND, READ, RECV = (op(f"WR_{n}") for n in ("RDMA_WRITE", "SEND", "RDMA_READ", "RECV"))
SUCCESS, PROTECTION, FLUSHED, REMOTE_OPERATIONAL = (
    op(f"WC_{n}") for n in ("SUCCESS", "LOC_PROT_ERR", "WR_FLUSH_ERR", "REM_OP_ERR")
)
WIDTH = 64
ONE, CHECK, TWO, BOTH = 1 << 17, 1 << 70, 1 << 3 | 1 << 44, 1 << 63 | 1 << 64
KINDS = ("ecc", "controller")


def corrects(device: SimDevice, kind: str) -> SimDevice:
    """The memory of a device corrects what it can."""
    if kind == "controller":
        device.set_faults(0, controller_ecc=1)
    return device


class World:
    """A device, a caller with a region that it has filled, and another caller."""

    def __init__(self, kind: str, flags: int = INPUT | OUTPUT) -> None:
        self.kind = kind
        device = "ecc" if kind == "ecc" else "standard"
        self.device = corrects(SimDevice(WIDTH, line_rate_mbps=0xFFFF_FFFF, device=device), kind)
        configure(self.device)
        self.peer = Peer(depth=8)
        self.other = Peer(ip="10.77.0.10", mac="02:00:00:00:00:10", qpn=0x99, comm_id=77, tid=88)
        self.net = Network(self.device, [self.peer, self.other])
        for peer in (self.peer, self.other):
            self.net.connect(peer)
            self.net.set_up(peer, [Region(flags, bytearray(1000))])
        self.region = self.peer.regions[0]
        self.data = random.Random(7).randbytes(1000)
        self.write(0, self.data)

    def write(self, at: int, data: bytes, acknowledged: bool = True) -> None:
        self.net.send(self.peer.write_message(self.region.device_addr + at, self.region.device_rkey, data))
        last = self.peer.send_psn - 1 & 0xFFFFFF
        if acknowledged:
            packet, _ = self.net.wait(self.peer, lambda p: p.opcode == ACKNOWLEDGE and p.psn == last, "ACK")
            assert packet.syndrome >> 5 == 0

    def read(self) -> bytes:
        return self.net.read(self.peer, self.region.device_addr, self.region.device_rkey, 1000)

    def flip(self, at: int, bits: int) -> None:
        self.device.flip(self.region.device_addr + at, bits)

    def counted(self) -> tuple[int, int]:
        self.device.step(300)
        return self.device.counter("memory_corrected"), self.device.counter("memory_uncorrectable")

    def refused(self) -> None:
        """The caller's request ends in the NAK, then the device ends the connection; the other caller goes on."""
        self.net.let_pass(400_000)
        assert [p.syndrome for p in self.net.caller(self.peer).naks] == [NAK_REMOTE_OPERATIONAL]
        self.ended()

    def ended(self) -> None:
        packets = [p for p, _ in self.net.caller(self.peer).inbox]
        assert cm.DREQ in [int.from_bytes(p.payload[16:18], "big") for p in packets if p.opcode == UD_SEND_ONLY]
        self.other.regions[0].data[:] = self.data
        assert self.net.call(self.other, INCREMENT) == 0
        assert outputs(self.other) == [bytes(byte + 1 & 0xFF for byte in self.data)]


@pytest.fixture(params=KINDS)
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    made = World(request.param)
    yield made
    made.device.close()


@pytest.mark.parametrize("bits", [ONE, CHECK])
def test_one_flipped_bit_is_corrected(world: World, bits: int) -> None:
    for at in range(0, 1000, 200):
        world.flip(at, bits)
    before = world.counted()
    assert world.read() == world.data
    assert world.counted() == (before[0] + (5 if world.kind == "ecc" else 0), before[1])
    world.region.data[:] = world.data
    assert world.net.call(world.peer, INCREMENT) == 0
    assert outputs(world.peer) == [bytes(byte + 1 & 0xFF for byte in world.data)]


def test_each_read_counts_what_it_corrects() -> None:
    """By three ways: a READ, a kernel, and what is read to write a part of the word."""
    world = World("ecc")
    world.flip(8, ONE)
    for n in range(1, 4):
        assert world.read() == world.data
        assert world.counted() == (n, 0)
    world.write(9, b"x")  # and the word is good again
    assert world.counted() == (4, 0)
    assert world.read() == world.data[:9] + b"x" + world.data[10:]
    assert world.counted() == (4, 0)
    world.device.close()


@pytest.mark.parametrize("bits", [TWO, BOTH])
def test_a_read_of_two_flipped_bits_is_refused(world: World, bits: int) -> None:
    """No byte of the bad word leaves the device in a frame that anyone takes."""
    leaked: list[Packet] = []

    def watch(frame: bytes) -> bool:
        packet = parse(frame)  # None for a wrong ICRC
        if packet is not None and 0x0D <= packet.opcode <= 0x10:
            leaked.append(packet)
        return False

    world.flip(504, bits)
    world.net.lose = watch
    world.net.send([world.peer.read_request(world.region.device_addr, world.region.device_rkey, 1000)])
    world.refused()
    assert not leaked
    assert world.counted()[1] >= 1


def test_a_part_of_a_bad_word_is_not_written(world: World) -> None:
    world.flip(504, TWO)
    before = world.counted()
    world.write(507, b"xyz", acknowledged=False)
    world.refused()
    assert world.counted() == (before[0], before[1] + 1)


def test_a_write_of_the_whole_word_makes_it_good(world: World) -> None:
    world.flip(504, TWO)
    world.write(504, world.data[504:512])
    assert world.read() == world.data
    assert world.counted()[1] == 0


def test_an_atomic_on_a_bad_word_is_refused(world: World) -> None:
    world.flip(504, TWO)
    addr, rkey = world.region.device_addr + 504, world.region.device_rkey
    peer = world.peer
    world.net.send([peer.roce(op("RC_FETCH_ADD"), peer.device_qpn, peer.send_psn, atomiceth(addr, rkey, 1, 0), b"", ack=True)])
    world.refused()


def start(world: World, function: int) -> None:
    """The call, with inputs that were written before."""
    region = world.region
    world.net.send(world.peer.write_message(region.device_addr, region.device_rkey, b"", 0x80 | function))


def test_a_call_with_a_bad_input_says_so(world: World) -> None:
    """By the result of the kernel. The connection stays, and the next call, with inputs written anew, is as any."""
    world.flip(504, TWO)
    start(world, INCREMENT)
    assert world.net.answer(world.peer)[0] == MEMORY_ERROR
    assert world.counted()[1] == 1
    world.region.data[:] = world.data
    assert world.net.call(world.peer, INCREMENT) == 0
    assert outputs(world.peer) == [bytes(byte + 1 & 0xFF for byte in world.data)]


def test_an_output_that_cannot_be_read_ends_the_connection(world: World) -> None:
    """Its WRITE fails in the middle, and a queue pair with a failed request ends."""
    world.flip(504, TWO)
    before = bytes(world.region.data)
    start(world, EMPTY)
    world.net.let_pass(400_000)
    packets = [p for p, _ in world.net.caller(world.peer).inbox]
    assert not any(packet.opcode in (0x08, 0x09, 0x0A, 0x0B) for packet in packets), "no end of a WRITE"
    assert bytes(world.region.data) == before
    world.ended()


def test_bits_that_flip_by_chance(world: World) -> None:
    """In a twentieth of the beats that are read: one in a word costs nothing."""
    world.device.set_faults(0, one_ppm=50_000, controller_ecc=int(world.kind == "controller"))
    for n in range(5):
        world.region.data[:] = random.Random(n).randbytes(1000)
        expected = bytes(byte + 1 & 0xFF for byte in world.region.data)
        assert world.net.call(world.peer, INCREMENT) == 0
        assert outputs(world.peer) == [expected]
    assert world.device.stats.dram_flips > 20 and world.counted()[1] == 0


def test_without_a_code_they_are_read() -> None:
    with SimDevice(WIDTH, line_rate_mbps=0xFFFF_FFFF) as device:
        configure(device)
        peer = Peer()
        net = Network(device, [peer])
        net.connect(peer)
        net.set_up(peer, [Region(INPUT | OUTPUT, bytearray(64))])
        region = peer.regions[0]
        device.flip(region.device_addr, TWO)
        assert net.read(peer, region.device_addr, region.device_rkey, 64) == TWO.to_bytes(8, "little") + bytes(56)
        with pytest.raises(ValueError):
            device.flip(region.device_addr, CHECK)
        with pytest.raises(ValueError):
            device.flip(1 << 30, ONE)


@pytest.fixture(params=KINDS)
def programs(request: pytest.FixtureRequest) -> Iterator[Programs]:
    with Programs(WIDTH, "ecc" if request.param == "ecc" else "standard") as pair:
        for device in pair.devices:
            corrects(device, request.param)
        yield pair


@pytest.mark.parametrize("opcode", [WRITE, SEND])
def test_bad_local_memory_fails_what_sends_it(programs: Programs, opcode: int) -> None:
    """The work request completes with LOC_PROT_ERR; nothing of its frame is taken at the other side; others go on."""
    p = programs
    p.remote(b"\xcc" * 3 * SIZE)
    p.devices[0].flip(LOCAL + 200, TWO)
    p.post(0, opcode, 0, length=512, wr_id=1)
    p.post(0, WRITE, 0, wr_id=2)
    assert p.completion(0) == (1, PROTECTION) and p.completion(0) == (2, FLUSHED)
    assert p.state(0) == State.ERR and p.state(0, OTHER) == State.RTS
    assert p.remote() == b"\xcc" * 3 * SIZE
    p.post(0, WRITE, 0, length=128, qpn=OTHER)
    assert p.completion(0) == (0, SUCCESS)


def test_bad_local_memory_fails_a_read_into_a_part_of_it(programs: Programs) -> None:
    p = programs
    p.devices[0].flip(LOCAL, TWO)
    p.post(0, READ, 0, addr=LOCAL + 3, length=100, wr_id=1)
    assert p.completion(0) == (1, PROTECTION)
    p.again()
    p.post(0, READ, 0, length=104, wr_id=2)  # whole words
    assert p.completion(0) == (2, SUCCESS)


@pytest.mark.parametrize("opcode", [WRITE, READ])
def test_bad_remote_memory_is_a_remote_error(programs: Programs, opcode: int) -> None:
    p = programs
    before = p.local()
    p.devices[1].flip(REMOTE + 200, TWO)
    p.post(0, opcode, 0, length=204, wr_id=1)
    assert p.completion(0) == (1, REMOTE_OPERATIONAL)
    assert p.local()[: SIZE + 200] == before[: SIZE + 200] and p.state(0, OTHER) == State.RTS


def test_a_receive_into_a_part_of_a_bad_word_fails(programs: Programs) -> None:
    p = programs
    p.devices[1].flip(REMOTE, TWO)
    words = {0: QPN, 1: RECV, 2: 9, 3: REMOTE, 4: 0, 5: SIZE, 14: 0}
    p.managers[1].run("POST", words)
    p.post(0, SEND, 0, length=4, wr_id=1)
    assert p.completion(0) == (1, REMOTE_OPERATIONAL)
    assert p.completion(1) == (9, PROTECTION)
