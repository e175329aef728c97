# SPDX-License-Identifier: Apache-2.0
"""roce_response with roce_tx and a memory: frames against what was asked for, payload against memory, order against a model."""

from __future__ import annotations

import os
import random
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import cocotb
import pytest
from cocotb.triggers import FallingEdge, RisingEdge
from nacelle_tb.bench import AxiMaster, Plain, Port, Sink, Source, run
from nacelle_tb.bench import AxisSource as AxisOut
from nacelle_tb.long import LONG, alternately, some
from nacelle_tb.memory import AxiMemory
from nacelle_tb.roce import Headers, aeth, op
from nacelle_tb.streams import AxisSink, StreamSink, StreamSource, start, wait_cycles
from nacelle_tb.svtypes import constant, struct
from nacelle_tb.widths import at_width

PSNS = 1 << 24
WINDOW = constant("packet_pkg::HDR_BYTES")
MASK = (1 << 64) - 1
SIZE = 1 << 18
WORDS = 4096  # bytes for atomics at the beginning of memory
# As many beats of a READ at 64 bits as at 512, or else most of the time passes in its middle.
LONGEST_READ = 30_000 if LONG or os.environ.get("QPS") == "256" else 6_000
BAD = (SIZE - 8192, SIZE - 1)  # memory that answers with errors
RD_DEPTH = 8
ACK, RNR, NAK_SEQ, NAK_REM_ACCESS, NAK_REM_OP = 0x1F, 0x21, 0x60, 0x62, 0x63
KEY = 0xABCDE043
LOCAL = {"enable": 1, "mac": 0x020000000001, "ip": 0x0A000001, "prefix_length": 24, "gateway": 0}


def psn(value: int) -> int:
    return value % PSNS


@dataclass
class Packet:
    """A response packet that must come."""

    opcode: str
    psn: int
    ext: bytes
    payload: bytes
    bad: bool = False  # memory refuses its payload
    any_value: bool = False  # of an atomic: what it found is not known


@dataclass
class Item:
    """A READ or atomic and what is left of its answer; `optional` (a duplicate): it may be dropped as a whole."""

    packets: deque[Packet]
    optional: bool
    number: int
    begun: bool = False


@dataclass
class Peer:
    """What the far end of a QP has to expect."""

    qpn: int
    mtu: int
    items: deque[Item] = field(default_factory=deque)
    acks: deque[tuple[int, int, int, int]] = field(default_factory=deque)  # number, psn, syndrome, msn
    due: int = -1  # number of an acknowledgement that must come: no READ or atomic is behind it
    number: int = 0  # responds so far
    issued: int = 0  # READs and atomics that are no duplicates
    next_psn: int = 0
    msn: int = 0
    atomics: deque[tuple[int, bytes]] = field(default_factory=deque)  # the last ones: PSN and AtomicAckETH
    touched: set[int] = field(default_factory=set)  # words of its atomics
    originals: list[bytes] = field(default_factory=list)  # what its atomics have found
    withdrawn: bool = False  # a key of it is gone: it will end with a NAK in the middle of something
    cut: bool = False  # its first item may end in the middle
    spoilt: int | None = None  # PSN of the first packet that memory refused
    doomed: bool = False  # something given to it will fail
    overtaken: bool = False  # a request behind one that memory refuses fails first: each gets a NAK
    ending: bool = False  # a reset is under way: what waits to be answered may be dropped
    dead: bool = False
    seen: list[Any] = field(default_factory=list)


class Bench:
    """Everything around the two modules."""

    def __init__(self, dut: Any, stall: float = 0.0, latency: int | tuple[int, int] = 20) -> None:
        self.dut = dut
        self.rng = random.Random(random.getrandbits(64))
        self.qps = int(os.environ["QPS"])
        self.cmd = StreamSource(dut, "cmd", "roce_pkg::qp_cmd_t")
        self.answer = StreamSink(dut, "answer", "logic", stall)
        self.respond = StreamSource(dut, "respond", "roce_pkg::respond_t", stall)
        self.request = StreamSource(dut, "request", "roce_pkg::tx_packet_t", stall)
        self.request_fault = StreamSink(dut, "request_fault", "roce_pkg::tx_fault_t", stall)
        self.frame = StreamSink(dut, "frame", "packet_pkg::frame_tx_t", stall)
        self.payload = AxisSink(dut, "payload", stall)
        self.qp_event = StreamSink(dut, "qp_event", "roce_pkg::qp_event_t", stall)
        self.failed = StreamSink(dut, "failed", "roce_pkg::qp_failed_t", stall)
        self.memory = AxiMemory(dut, "reads", SIZE, latency=latency, stall=stall)
        self.atomics = AxiMemory(dut, "atomics", SIZE, latency=latency, stall=stall)
        self.memory.write(0, self.rng.randbytes(SIZE))
        self.atomics.content = self.memory.content
        self.memory.errors = self.atomics.errors = [BAD]
        self.image = self.memory.read(0, SIZE)
        self.words = bytearray(self.image[:WORDS])  # as the model sees them
        self.peers: dict[int, Peer] = {}  # by our QP number
        self.by_dest: dict[int, Peer] = {}
        self.events: dict[str, int] = {}
        self.skipped = 0
        self.requests = 0
        self.cycle = 0
        self.asked: list[int] = []  # cycles
        self.seen: list[tuple[int, int, int]] = []  # cycle, QP number, opcode
        self._heads: deque[tuple[SimpleNamespace, int]] = deque()
        self._events = struct("roce_events_pkg::roce_rx_events_t")
        self._bth = struct("roce_wire_pkg::bth_t")
        dut.local_addr.value = struct("packet_pkg::local_addr_t").pack(LOCAL)
        for name in ("rd_done_slot", "peer_write", "peer_write_index", "peer_write_data", "flush_acks", "key_write", "fence"):
            getattr(dut, name).value = 0

    async def start(self) -> None:
        await start(self.dut)
        cocotb.start_soon(self._tick())
        for slot in range(32):
            await self.allow(slot, slot == KEY % 32)
        await self.allow(KEY)

    # ---- keys ----

    async def allow(self, key: int, valid: bool = True) -> None:
        """The key is valid from now on, or not."""
        await FallingEdge(self.dut.clk)
        self.dut.key_write.value, self.dut.key.value, self.dut.key_valid.value = 1, key, int(valid)
        await FallingEdge(self.dut.clk)
        self.dut.key_write.value = 0

    async def ask(self) -> int:
        """Requests a fence: its number."""
        await FallingEdge(self.dut.clk)
        self.dut.fence.value = 1
        number = int(self.dut.fence_number.value)
        await FallingEdge(self.dut.clk)
        self.dut.fence.value = 0
        return number

    async def fence(self) -> int:
        """Requests a fence and waits until it is complete: the cycles it took."""
        await wait_cycles(self.dut, 3)
        begin = self.cycle
        number = await self.ask()
        while (int(self.dut.fences_through.value) - number) % 256 >= 128:
            await FallingEdge(self.dut.clk)
        return self.cycle - begin

    # ---- queue pairs ----

    async def _peer(self, peer: Peer, valid: int) -> None:
        await FallingEdge(self.dut.clk)
        self.dut.peer_write.value = 1
        self.dut.peer_write_index.value = peer.qpn - 2
        self.dut.peer_write_data.value = struct("roce_requester_pkg::sq_peer_t").pack(
            valid=valid, mac=0x020000010000 + peer.qpn, ip=0x0A000000 + peer.qpn, qpn=0x10000 + 3 * peer.qpn
        )
        await FallingEdge(self.dut.clk)
        self.dut.peer_write.value = 0

    async def setup(self, qpn: int, mtu: int = 3, first: int | None = None) -> Peer:
        """Takes a QP into service."""
        peer = Peer(qpn, mtu, next_psn=self.rng.randrange(PSNS) if first is None else first)
        await self._peer(peer, 1)
        self.cmd.send(op=op("QP_SETUP"), qpn=qpn, state=op("QPS_RTS"))
        assert await self.answer.recv(100_000) == 1
        self.peers[qpn] = self.by_dest[0x10000 + 3 * qpn] = peer
        return peer

    async def reset(self, peer: Peer) -> None:
        """Takes it out of service: its last acknowledgement leaves, though what was before it may not, and nothing after it."""
        await self.respond.drained()
        peer.ending = True
        self.cmd.send(op=op("QP_RESET"), qpn=peer.qpn)
        assert await self.answer.recv(100_000) == 1
        await FallingEdge(self.dut.clk)
        self.dut.flush_acks.value = 1
        await FallingEdge(self.dut.clk)
        self.dut.flush_acks.value = 0
        await FallingEdge(self.dut.clk)
        while not int(self.dut.flushed.value):
            await FallingEdge(self.dut.clk)
        await self._peer(peer, 0)
        while self._heads:  # a frame that has left, and the payload of one before it that has not
            await FallingEdge(self.dut.clk)
        assert peer.dead or peer.doomed or peer.due == -1, f"QP {peer.qpn}: the last acknowledgement did not come"
        self.skipped += sum(item.optional for item in peer.items)
        peer.dead = True
        self._settle(peer)

    def _settle(self, peer: Peer) -> None:
        """Its atomics that waited were not carried out, and never will be: memory is as it stays."""
        for addr in peer.touched:
            self.words[addr : addr + 8] = self.memory.read(addr, 8)

    async def done(self, peer: Peer) -> int:
        """READs and atomics of it that were answered."""
        await FallingEdge(self.dut.clk)
        self.dut.rd_done_slot.value = peer.qpn - 2
        await RisingEdge(self.dut.clk)
        return int(self.dut.rd_done.value)

    # ---- what is answered ----

    def _item(self, peer: Peer, packets: list[Packet], duplicate: bool) -> None:
        peer.items.append(Item(deque(packets), duplicate, peer.number))
        peer.number += 1
        if not duplicate:
            peer.issued += 1
            peer.due = -1

    def acknowledge(self, peer: Peer, syndrome: int = ACK, value: int | None = None) -> None:
        """An acknowledgement, or NAK."""
        peer.msn = psn(peer.msn + 1)
        value = self.rng.randrange(PSNS) if value is None else value
        peer.acks.append((peer.number, value, syndrome, peer.msn))
        peer.due = peer.number
        peer.number += 1
        self.respond.send(
            kind=op("RESPOND_ACK"), qpn=peer.qpn, psn=value, aeth={"syndrome": syndrome, "msn": peer.msn}, path_mtu=peer.mtu
        )

    def read(self, peer: Peer, addr: int, length: int, duplicate: bool = False, key: int = KEY) -> None:
        """A READ, or its duplicate under an older PSN."""
        mtu = 128 << peer.mtu
        count = max(1, -(-length // mtu))
        first = psn(peer.next_psn - self.rng.randrange(1, 1 << 20)) if duplicate else peer.next_psn
        if not duplicate:
            peer.next_psn = psn(first + count)
            peer.msn = psn(peer.msn + 1)
        packets = []
        for i in range(count):
            kind = "ONLY" if count == 1 else "FIRST" if i == 0 else "LAST" if i == count - 1 else "MIDDLE"
            begin, end = addr + i * mtu, min(addr + length, addr + (i + 1) * mtu)
            ext = b"" if kind == "MIDDLE" else aeth(ACK, peer.msn)
            bad = end > begin and end > BAD[0]
            packets.append(Packet(f"RC_RDMA_READ_RESPONSE_{kind}", psn(first + i), ext, self.memory.read(begin, end - begin), bad))
        peer.doomed |= any(p.bad for p in packets)
        self._item(peer, packets, duplicate)
        self.respond.send(
            kind=op("RESPOND_READ"), duplicate=duplicate, qpn=peer.qpn, psn=first, aeth={"syndrome": ACK, "msn": peer.msn},
            path_mtu=peer.mtu, addr=addr, length=length, rkey=key,
        )  # fmt: skip

    def atomic(self, peer: Peer, addr: int, compare_swap: bool, swap_add: int, compare: int = 0, key: int = KEY) -> None:
        """An atomic: the model does it now, the device in the same order."""
        value = peer.next_psn
        peer.next_psn = psn(value + 1)
        peer.msn = psn(peer.msn + 1)
        bad = addr >= WORDS
        before = 0 if bad else int.from_bytes(self.words[addr : addr + 8], "little")
        if not bad and (not compare_swap or before == compare):
            self.words[addr : addr + 8] = (swap_add if compare_swap else before + swap_add & MASK).to_bytes(8, "little")
        original = before.to_bytes(8, "big")  # as on the wire (IBTA 9.2.7)
        ext = aeth(ACK, peer.msn) + original
        peer.atomics.append((value, original))
        peer.touched |= set() if bad else {addr}
        peer.doomed |= bad
        self._item(peer, [Packet("RC_ATOMIC_ACKNOWLEDGE", value, ext, b"", bad)], False)
        self.respond.send(
            kind=op("RESPOND_ATOMIC"), qpn=peer.qpn, psn=value, aeth={"syndrome": ACK, "msn": peer.msn}, path_mtu=peer.mtu,
            addr=addr, compare_swap=compare_swap, swap_add=swap_add, compare=compare, rkey=key,
        )  # fmt: skip

    def replay(self, peer: Peer, value: int, original: bytes, optional: bool = True) -> None:
        """A duplicate of an atomic."""
        ext = aeth(ACK, peer.msn) + original
        self._item(peer, [Packet("RC_ATOMIC_ACKNOWLEDGE", value, ext, b"")], True)
        peer.items[-1].optional = optional
        self.respond.send(
            kind=op("RESPOND_ATOMIC"), duplicate=1, qpn=peer.qpn, psn=value, aeth={"syndrome": ACK, "msn": peer.msn},
            path_mtu=peer.mtu, addr=0, swap_add=self.rng.getrandbits(64),
        )  # fmt: skip

    # ---- what leaves ----

    async def _tick(self) -> None:
        while True:
            await FallingEdge(self.dut.clk)
            self.cycle += 1
            if word := int(self.dut.events.value):
                for name, bit in vars(self._events.unpack(word)).items():
                    if bit:
                        self.events[name] = self.events.get(name, 0) + 1
            if int(self.dut.asked.value):
                self.asked.append(self.cycle)
            while self.frame.received:
                self._heads.append((self.frame.received.popleft(), self.frame.cycles.popleft()))
            while self._heads and (not self._heads[0][0].payload_length or self.payload.packets):
                head, cycle = self._heads.popleft()
                body, bad = self.payload.packets.popleft() if head.payload_length else (b"", 0)
                if head.payload_length:
                    self.payload.spans.popleft()
                self._frame(head, body, bool(bad), cycle)

    def _frame(self, head: SimpleNamespace, body: bytes, bad: bool, cycle: int) -> None:
        """Rebuilds the frame, and gives it to its peer."""
        headers = head.hdr.to_bytes(WINDOW, "big")[: head.hdr_length]
        bth = self._bth.unpack(int.from_bytes(headers[42:54], "big"))
        peer = self.by_dest[bth.destqp]
        behind = headers[54:] + body + bytes(-len(body) % 4)
        expected = Headers(
            "02:00:00:00:00:01", (0x020000010000 + peer.qpn).to_bytes(6, "big").hex(":"),
            "10.0.0.1", ".".join(map(str, (0x0A000000 + peer.qpn).to_bytes(4, "big"))),
            0xC000 | peer.qpn, bth.opcode, bth.destqp, bth.psn, len(behind), head.pad, migreq=True,
            identification=int.from_bytes(headers[18:20], "big"),
        )  # fmt: skip
        assert bytes(expected) == headers[:54] and head.pad == -len(body) % 4
        self.seen.append((cycle, peer.qpn, bth.opcode))
        if bth.opcode == op("RC_SEND_ONLY"):
            self.requests += 1
            return
        assert not peer.dead, f"QP {peer.qpn}: {bth} after it was reset"
        if bth.opcode == op("RC_ACKNOWLEDGE"):
            self._acknowledged(peer, bth.psn, headers[54], int.from_bytes(headers[55:58], "big"))
        else:
            self._response(peer, bth, headers[54:], body, bad)

    def _acknowledged(self, peer: Peer, value: int, syndrome: int, msn: int) -> None:
        peer.seen.append((value, syndrome, msn))
        if peer.withdrawn and syndrome == NAK_REM_ACCESS:  # a READ or atomic was denied: everything before it has come
            assert peer.items and value == peer.items[0].packets[0].psn and msn == peer.msn
            peer.spoilt, peer.dead = value, True
            self._settle(peer)
            return
        if peer.spoilt is None and syndrome == NAK_REM_OP:  # an atomic: everything before it must be answered
            while peer.items[0].optional and not peer.items[0].begun:
                peer.items.popleft()
                self.skipped += 1
            assert peer.items[0].packets[0].bad and not peer.items[0].packets[0].payload
            peer.spoilt = peer.items[0].packets[0].psn
        if peer.overtaken and value == psn(peer.spoilt + 1):
            assert syndrome == NAK_REM_OP and not peer.dead
            return
        if peer.spoilt is not None:
            assert (value, syndrome, msn) == (peer.spoilt, NAK_REM_OP, peer.msn)
            peer.dead = True
            return
        while peer.acks and peer.acks[0][1:] != (value, syndrome, msn):
            peer.acks.popleft()
        assert peer.acks, f"QP {peer.qpn}: acknowledgement of {value:#x} was not given, or is older than one before"
        number = peer.acks.popleft()[0]
        if number == peer.due:
            peer.due = -1
        while peer.ending and peer.items and peer.items[0].number < number:
            self.skipped += peer.items.popleft().optional
        while peer.items and peer.items[0].number < number and peer.items[0].optional and not peer.items[0].begun:
            peer.items.popleft()
            self.skipped += 1
        assert not peer.items or peer.items[0].number > number, f"QP {peer.qpn}: acknowledgement {number} passes a response"

    def _response(self, peer: Peer, bth: SimpleNamespace, ext: bytes, body: bytes, bad: bool) -> None:
        def fits(item: Item) -> bool:
            packet = item.packets[0]
            return (op(packet.opcode), packet.psn, packet.ext) == (bth.opcode, bth.psn, ext)

        if peer.cut and not fits(peer.items[0]):
            peer.items.popleft()
            peer.cut = False
        while peer.items and peer.items[0].optional and not peer.items[0].begun and not fits(peer.items[0]):
            peer.items.popleft()
            self.skipped += 1
        while peer.items and peer.doomed and not fits(peer.items[0]):  # out of service: the rest of its READ does not come
            assert peer.spoilt is not None or peer.items[0].packets[0].opcode == "RC_ATOMIC_ACKNOWLEDGE"
            peer.items.popleft()
        assert peer.items, f"QP {peer.qpn}: unexpected {bth}"
        item = peer.items[0]
        packet = item.packets.popleft()
        if packet.any_value:
            peer.originals.append(ext[4:])
            packet.ext = packet.ext[:4] + ext[4:]
        assert (op(packet.opcode), packet.psn, packet.ext) == (bth.opcode, bth.psn, ext), f"QP {peer.qpn}: {bth}, not {packet}"
        assert bad == packet.bad
        assert bad or body == packet.payload
        item.begun = True
        if bad and peer.spoilt is None:
            peer.spoilt = packet.psn
        while peer.acks and peer.acks[0][0] < item.number and not item.optional:
            peer.acks.popleft()  # superfluous now
        if not item.packets:
            peer.items.popleft()

    async def quiet(self, timeout: int = 200_000) -> None:
        """Waits until the modules are idle; then everything that must come has come."""
        calm = 0
        for _ in range(timeout):
            await FallingEdge(self.dut.clk)
            calm = calm + 1 if int(self.dut.idle.value) and not self.respond.busy and not self._heads else 0
            if calm == 20:
                break
        else:
            raise AssertionError("not idle")
        for peer in self.peers.values():
            if peer.dead or peer.doomed:
                continue
            left = [item for item in peer.items if not item.optional]
            assert not left, f"QP {peer.qpn}: never answered: {left[0]}"
            self.skipped += len(peer.items)
            peer.items.clear()
            assert peer.due == -1, f"QP {peer.qpn}: the last acknowledgement never came"
            assert await self.done(peer) == peer.issued % 256
        assert self.memory.read(0, WORDS) == self.words


@cocotb.test()
@cocotb.parametrize(stall=alternately([0.0, 0.3]), seed=some([1, 2, 3]))
async def a_model_agrees(dut: Any, stall: float, seed: int) -> None:
    """READs, atomics, acknowledgements, duplicates, refused memory and resets of many QPs at once."""
    del seed  # another run
    bench = Bench(dut, stall, latency=random.choice([5, (10, 80)]))
    rng = bench.rng
    await bench.start()
    qpns = rng.sample(range(2, 2 + bench.qps), 8)
    for qpn in qpns:
        await bench.setup(qpn, rng.randrange(1, 6))
    failures, acks = 0, 0
    for step in range(700):
        peer = bench.peers[rng.choice(qpns)]
        kind = rng.randrange(100)
        if peer.dead or peer.doomed:
            if kind < 20:
                if peer.doomed:
                    await bench.quiet()
                    assert peer.seen and peer.seen[-1][1] == NAK_REM_OP and peer.dead
                    failures += 1
                    await bench.reset(peer)
                await bench.setup(peer.qpn, rng.randrange(1, 6))
            continue
        if kind < 35:
            acks += 1
            bench.acknowledge(peer, rng.choice([ACK, ACK, ACK, RNR, NAK_SEQ]))
        elif kind < 40:
            for _ in range(rng.randrange(20)):
                acks += 1
                bench.acknowledge(peer)
        elif kind < 45 and peer.atomics:
            value, original = rng.choice(list(peer.atomics)[-RD_DEPTH:])
            bench.replay(peer, value, original)
        elif kind < 47:
            bench.replay(peer, rng.randrange(PSNS), bytes(8))
            peer.items[-1].packets[0].psn = -1  # cannot come
        elif kind < 55:
            bench.read(
                peer, rng.randrange(WORDS, BAD[0] - LONGEST_READ), rng.choice([0, 100, rng.randrange(LONGEST_READ)]), duplicate=True
            )
        elif kind == 55 and step < 600:
            await bench.reset(peer)
        elif kind < 58:
            bench.request.send(qpn=peer.qpn, opcode=op("RC_SEND_ONLY"), addr=rng.randrange(SIZE // 2), length=200)
        elif kind < 60:
            await wait_cycles(dut, rng.randrange(2000))
        else:
            while (peer.issued - await bench.done(peer)) % 256 >= RD_DEPTH:
                await wait_cycles(dut, 20)
            if kind < 80:
                # Words of its own: those of different QPs take turns, whichever came first.
                addr, there = 8 * (16 * qpns.index(peer.qpn) + rng.randrange(16)), rng.random() < 0.03
                here = int.from_bytes(bench.words[addr : addr + 8], "little")
                bench.atomic(
                    peer,
                    BAD[0] if there else addr,
                    rng.random() < 0.5,
                    rng.getrandbits(64),
                    rng.choice([here, rng.getrandbits(64)]),
                )
            else:
                length = rng.choice([0, 1, rng.randrange(300), 4096, rng.randrange(LONGEST_READ)])
                addr = rng.randrange(WORDS, BAD[0] - length)
                if rng.random() < 0.03:
                    length = rng.randrange(1, 12_000)
                    addr = BAD[0] - rng.randrange(length)
                bench.read(peer, addr, length)
    await bench.quiet()
    assert not failures or len(bench.qp_event.received) >= failures
    for event in bench.qp_event.received:
        assert (event.kind, event.status) == (op("EVENT_QP_FATAL"), op("WC_LOC_PROT_ERR"))
    assert [(e.qpn, 0) for e in bench.qp_event.received] == [(f.qpn, f.denied) for f in bench.failed.received]
    total = sum(bench.events.get(name, 0) for name in ("sent_ack", "sent_nak", "send_rnr_err"))
    assert total == sum(opcode == op("RC_ACKNOWLEDGE") for *_, opcode in bench.seen)
    assert 0 < total <= acks + len(bench.failed.received)


@cocotb.test()
async def duplicates_are_answered_or_counted(dut: Any) -> None:
    bench = Bench(dut, 0.1)
    await bench.start()
    peers = [await bench.setup(2 + i, mtu=1) for i in range(4)]
    for _ in range(60):
        peer = bench.rng.choice(peers)
        bench.read(peer, WORDS, bench.rng.randrange(4000), duplicate=True)
        if bench.rng.random() < 0.3:
            bench.replay(peer, 5, bytes(8))
            peer.items[-1].packets[0].psn = -1
    await bench.quiet()
    assert bench.events["drop_duplicate_forgotten"] == bench.skipped > 0


@cocotb.test()
async def the_last_atomics_of_a_queue_pair_are_replayed(dut: Any) -> None:
    bench = Bench(dut)
    await bench.start()
    peer, other = await bench.setup(3), await bench.setup(4)
    for count in (1, 3, RD_DEPTH, RD_DEPTH + 3):
        for i in range(count):
            bench.atomic(peer, 8 * (i % 4), False, i + 1)
            await bench.quiet()
        bench.atomic(other, 0, True, 7, 8)
        known = list(peer.atomics)[-RD_DEPTH:]
        forgotten = list(peer.atomics)[:-RD_DEPTH]
        for value, original in random.sample(known, len(known)):
            bench.replay(peer, value, original, optional=False)
            await bench.quiet()
        before = bench.events.get("drop_duplicate_forgotten", 0)
        for value, original in forgotten:
            bench.replay(peer, value, original)
            await bench.quiet()
        assert bench.events.get("drop_duplicate_forgotten", 0) - before == len(forgotten)
    assert bench.events["atomic_replayed"] == 1 + 4 + RD_DEPTH + RD_DEPTH


@cocotb.test()
async def a_new_connection_knows_nothing_of_the_old_ones_atomics(dut: Any) -> None:
    bench = Bench(dut)
    await bench.start()
    peer = await bench.setup(3, first=100)
    for i in range(RD_DEPTH):
        bench.atomic(peer, 8 * i, False, 1)
    await bench.quiet()
    old = list(peer.atomics)
    await bench.reset(peer)
    peer = await bench.setup(3, first=200)
    for value, original in old:
        bench.replay(peer, value, original)
        peer.items[-1].packets[0].psn = -1
        await bench.quiet()
    bench.atomic(peer, 8, False, 1)
    await bench.quiet()
    for value, original in old:
        bench.replay(peer, value, original)
        peer.items[-1].packets[0].psn = -1
        await bench.quiet()
    assert bench.events["drop_duplicate_forgotten"] == 2 * RD_DEPTH


@cocotb.test()
async def a_read_sees_the_atomic_before_it(dut: Any) -> None:
    bench = Bench(dut, latency=40)
    await bench.start()
    peer = await bench.setup(3)
    for i in range(20):
        while (peer.issued - await bench.done(peer)) % 256 >= RD_DEPTH - 1:
            await wait_cycles(dut, 20)
        bench.atomic(peer, 8 * i, False, 0x1234567 + i)
        bench.read(peer, 8 * i, 8)
        peer.items[-1].packets[0].payload = bytes(bench.words[8 * i : 8 * i + 8])
    await bench.quiet()


@cocotb.test()
async def acknowledgements_coalesce_behind_a_read(dut: Any) -> None:
    bench = Bench(dut)
    await bench.start()
    peer, other = await bench.setup(3), await bench.setup(5)
    bench.read(peer, WORDS, 60_000)
    for i in range(50):
        bench.acknowledge(peer, value=i)
        bench.acknowledge(other, value=i)
    bench.acknowledge(peer, NAK_SEQ, 50)
    await bench.quiet()
    assert [s[:2] for s in peer.seen] == [(50, NAK_SEQ)], "one, the newest, after the READ"
    assert len(other.seen) == 50, "nothing is before them"
    bench.read(peer, WORDS, 60_000)
    bench.acknowledge(peer, value=60)
    bench.read(peer, WORDS, 100)
    await bench.quiet()
    assert len(peer.seen) == 1, "the second READ says it all"


@cocotb.test()
@cocotb.parametrize(qps=[1, 16])
async def acknowledgements_are_taken_one_every_two_cycles(dut: Any, qps: int) -> None:
    bench = Bench(dut)
    await bench.start()
    peers = [await bench.setup(2 + i) for i in range(qps)]
    for i in range(200):
        bench.acknowledge(peers[i % qps], value=i)
    begin = bench.cycle
    await bench.respond.drained()
    assert bench.cycle - begin <= 200 * 2 + 4
    await bench.quiet()
    assert bench.events["sent_ack"] == 200, "the wire was free"


@cocotb.test()
async def queue_pairs_share_the_wire(dut: Any) -> None:
    """A short READ is not behind the long ones of others."""
    bench = Bench(dut)
    await bench.start()
    peers = [await bench.setup(2 + i, mtu=1 + i % 5) for i in range(8)]
    for peer in peers[:-1]:
        bench.read(peer, WORDS, 40_000)
    await wait_cycles(dut, 300)
    before = len(bench.seen)
    short = peers[-1]
    bench.read(short, WORDS, 100)
    while not any(qpn == short.qpn for _, qpn, _ in bench.seen):
        await wait_cycles(dut, 5)
    sizes = {p.qpn: 128 << p.mtu for p in peers}
    waited = sum(sizes[qpn] for _, qpn, _ in bench.seen[before:])
    assert waited <= 7 * 4096 + 45 * 2048, f"{waited} bytes of others before it"
    while sum(bool(p.items) for p in peers[:-1]) == 7:
        await wait_cycles(dut, 50)
    rest = [sum(len(p.payload) for item in peer.items for p in item.packets) for peer in peers[:-1]]
    assert max(rest) <= 5 * 4096 + 45 * 4096, f"left when the first was done: {rest}"
    await bench.quiet()


@cocotb.test()
@cocotb.parametrize(stall=some([0.3, 0.0]), before=["nothing", "reads", "atomics", "reads, then error", "atomics, then error"])
async def the_last_acknowledgement_leaves_before_a_reset_is_over(dut: Any, stall: float, before: str) -> None:
    """The NAK that says why a QP ends, whatever waits before it and however busy the others are. It waits for none of these."""
    bench = Bench(dut, stall, latency=(5, 60))
    if "atomics" in before:
        bench.atomics.latency = (400, 400)
    await bench.start()
    others = [await bench.setup(5 + i, mtu=5) for i in range(4)]
    for i in range(4):
        peer = await bench.setup(3)
        for other in others:
            while len(other.items) < 2:
                bench.read(other, WORDS, 30_000)
            bench.acknowledge(other, value=i)
        if "read" in before:
            bench.read(peer, WORDS, 200_000)
        if "atomics" in before:
            for word in range(RD_DEPTH):
                bench.atomic(peer, 8 * word, False, 1)
        bench.acknowledge(peer, NAK_REM_ACCESS, 77)
        await bench.respond.drained()
        await wait_cycles(dut, 5 + bench.rng.randrange(60))
        if "error" in before:
            peer.ending = True
            bench.cmd.send(op=op("QP_MODIFY"), qpn=peer.qpn, state=op("QPS_ERR"))
            assert await bench.answer.recv() == 1
        begin = bench.cycle
        await bench.reset(peer)
        beat = len(dut.payload_tdata) // 8
        # What is in roce_tx and the visit under way, at a beat a cycle but for stalls; an atomic, which is a read and a write.
        assert (bench.cycle - begin) * (1 - stall) ** 2 < 24_000 // beat + 2 * 400 + 500, f"{bench.cycle - begin} cycles"
        assert [seen[:2] for seen in peer.seen] == [(77, NAK_REM_ACCESS)]
    bench.atomics.latency = (5, 60)
    await bench.quiet()


@cocotb.test()
async def latency(dut: Any) -> None:
    """`respond` to the read of memory 8 cycles at most, to the acknowledgement's frame too."""
    bench = Bench(dut)
    await bench.start()
    peer = await bench.setup(4)
    await bench.setup(5)

    async def taken() -> int:
        count = bench.respond.sent
        while bench.respond.sent == count:
            await RisingEdge(dut.clk)
        return bench.frame.cycle

    for _ in range(3):
        await FallingEdge(dut.clk)
        before = len(bench.seen)
        bench.acknowledge(peer)
        begin = await taken()
        await bench.quiet()
        assert bench.seen[before][0] - begin <= 8
        await FallingEdge(dut.clk)
        bench.read(peer, WORDS, 64)
        count, offset = len(bench.asked), bench.frame.cycle - bench.cycle
        begin = await taken()
        await bench.quiet()
        dut._log.info(f"acknowledgement {bench.seen[before][0]}, read {bench.asked[count] + offset - begin}")
        assert bench.asked[count] + offset - begin <= 8


@cocotb.test()
@cocotb.parametrize(qps=[1, 8], size=[512, 4096, 20_000])
async def a_beat_a_cycle(dut: Any, qps: int, size: int) -> None:
    bench = Bench(dut, latency=30)
    await bench.start()
    beat = len(dut.payload_tdata) // 8
    peers = [await bench.setup(2 + i, mtu=3) for i in range(qps)]
    rounds = (RD_DEPTH if qps == 1 else 2) if size < 20_000 else 1
    for _ in range(rounds):
        for peer in peers:
            bench.read(peer, WORDS, size)
    while bench.payload.beats == 0:
        await wait_cycles(dut, 1)
    expected = rounds * qps * -(-size // 1024 * 1024 // beat) if size % 1024 == 0 else rounds * qps * -(-size // beat)
    begin = bench.frame.cycle
    while bench.payload.beats < expected:
        await wait_cycles(dut, 1)
    spent = bench.frame.cycle - begin
    assert spent <= expected * 1.02 + 10, f"{spent} cycles for {expected} beats"
    await bench.quiet()


@cocotb.test()
async def the_longest_read_goes_on_until_memory_refuses(dut: Any) -> None:
    bench = Bench(dut, latency=10)
    await bench.start()
    peer, other = await bench.setup(2, mtu=5, first=PSNS - 20), await bench.setup(3)
    bench.read(peer, WORDS, 1 << 31)
    bench.acknowledge(peer)
    while peer.spoilt is None:
        bench.read(other, WORDS, 1000)
        bench.acknowledge(other)
        await wait_cycles(dut, 1000)
    await bench.quiet()
    assert peer.spoilt == psn(PSNS - 20 + (BAD[0] - WORDS) // 4096)
    assert [s[:2] for s in peer.seen] == [(peer.spoilt, NAK_REM_OP)]
    assert [e.qpn for e in bench.qp_event.received] == [2] == [f.qpn for f in bench.failed.received]
    count = len(bench.seen)
    bench.respond.send(kind=op("RESPOND_READ"), qpn=2, addr=WORDS, length=64, path_mtu=3)
    bench.respond.send(kind=op("RESPOND_ACK"), qpn=2)
    await bench.quiet()
    assert len(bench.seen) == count
    await bench.reset(peer)
    peer = await bench.setup(2)
    bench.read(peer, WORDS, 1000)
    await bench.quiet()


@cocotb.test()
async def failures_that_nobody_takes_are_kept(dut: Any) -> None:
    """Memory refuses what three queue pairs read, while one of the two streams that report it is stopped, then the other."""
    bench = Bench(dut)
    await bench.start()
    for waiting, taken in ((bench.qp_event, bench.failed), (bench.failed, bench.qp_event)):
        waiting.stall = 1.0
        peers = [await bench.setup(qpn) for qpn in (2, 3, 4)]
        for peer in peers:
            bench.read(peer, BAD[0], 100)
        await wait_cycles(dut, 1000)
        assert len(taken.received) == 1 and not waiting.received  # the next comes when this one was taken
        waiting.stall = 0.0
        await bench.quiet()
        await wait_cycles(dut, 10)
        assert sorted(e.qpn for e in waiting.received) == sorted(e.qpn for e in taken.received) == [2, 3, 4]
        waiting.received.clear()
        taken.received.clear()
        for peer in peers:
            assert peer.dead
            await bench.reset(peer)


@cocotb.test()
async def a_reset_waits_for_its_own_atomic_alone(dut: Any) -> None:
    """Memory takes its time with an atomic: another queue pair's reset is over long before, its own is not."""
    bench = Bench(dut, latency=1000)
    await bench.start()
    one, other = await bench.setup(2), await bench.setup(3)
    bench.atomic(one, 64, False, 1)
    await bench.respond.drained()
    await wait_cycles(dut, 50)
    begin = bench.cycle
    await bench.reset(other)
    assert bench.cycle - begin < 200
    await bench.reset(one)
    assert bench.cycle - begin > 900
    assert not bench.atomics._reads and not bench.atomics._writes and not bench.atomics._acks
    await bench.quiet()


@cocotb.test()
async def commands_for_what_is_not_there(dut: Any) -> None:
    bench = Bench(dut)
    await bench.start()
    for kind in ("QP_SETUP", "QP_MODIFY", "QP_RESET"):
        for qpn in (0, 1, 2 + bench.qps, PSNS - 1):
            bench.cmd.send(op=op(kind), qpn=qpn, state=op("QPS_ERR"))
            assert await bench.answer.recv() == 0
    peer = await bench.setup(7)
    for state in ("QPS_RTR", "QPS_RTS", "QPS_SQD"):
        bench.cmd.send(op=op("QP_MODIFY"), qpn=7, state=op(state))
        assert await bench.answer.recv() == 1
    bench.acknowledge(peer)
    bench.read(peer, WORDS, 100)
    await bench.quiet()
    # What is for a QP that was never set up, or does not exist, is dropped.
    count = len(bench.seen)
    for qpn in (8, 0, 2 + bench.qps):
        for kind in ("RESPOND_ACK", "RESPOND_READ", "RESPOND_ATOMIC"):
            bench.respond.send(kind=op(kind), qpn=qpn, addr=64, length=64, path_mtu=3)
    await bench.respond.drained()
    await bench.quiet()
    assert len(bench.seen) == count
    await bench.setup(7)
    bench.acknowledge(bench.peers[7])
    await bench.quiet()


@cocotb.test()
@cocotb.parametrize(stall=some([0.3, 0.0]))
async def an_error_leaves_what_was_before_it_to_be_answered(dut: Any, stall: float) -> None:
    """READs and atomics whose QP goes to error while they wait: the peer gets them, then the NAK of the request behind them."""
    bench = Bench(dut, stall, latency=(5, 60))
    await bench.start()
    peer = await bench.setup(7, mtu=5)
    bench.read(peer, WORDS, 60_000)
    bench.atomic(peer, 0, False, 1)
    bench.read(peer, WORDS, 5000)
    bench.acknowledge(peer, NAK_REM_ACCESS, peer.next_psn)
    await bench.respond.drained()
    bench.cmd.send(op=op("QP_MODIFY"), qpn=7, state=op("QPS_ERR"))
    assert await bench.answer.recv() == 1
    await bench.quiet()
    assert not peer.items and [s[:2] for s in peer.seen] == [(peer.next_psn, NAK_REM_ACCESS)]


@cocotb.test()
@cocotb.parametrize(slow=[400, 3000])
async def the_oldest_failure_is_told(dut: Any, slow: int) -> None:
    """Memory refuses an atomic at once, and the READ before it much later: the peer waits for the READ's answer."""
    bench = Bench(dut, latency=slow)
    bench.atomics.latency = (5, 5)
    await bench.start()
    for first, second in ((100, 1), (1, 100)):
        peer = await bench.setup(2, mtu=5)
        peer.overtaken, oldest = True, peer.next_psn
        bench.read(peer, BAD[0], first)
        bench.atomic(peer, BAD[0] + 8, False, 1)
        bench.read(peer, WORDS, second)
        await bench.quiet()
        assert peer.seen[-1][:2] == (oldest, NAK_REM_OP)
        assert [e.qpn for e in bench.qp_event.received] == [2] == [f.qpn for f in bench.failed.received]
        bench.qp_event.received.clear()
        bench.failed.received.clear()
        await bench.reset(peer)


async def nak(bench: Bench, peer: Peer, syndrome: int = NAK_REM_ACCESS) -> int:
    """Waits until all is over for this QP: the PSN of its NAK."""
    await bench.quiet()
    assert [s[1] for s in peer.seen] == [syndrome] and peer.spoilt == peer.seen[0][0]
    assert bench.failed.received.popleft() == SimpleNamespace(qpn=peer.qpn, denied=int(syndrome == NAK_REM_ACCESS))
    assert bench.qp_event.received.popleft().status == op("WC_LOC_PROT_ERR")
    return peer.spoilt


@cocotb.test()
@cocotb.parametrize(stall=some([0.3, 0.0]), mtu=[1, 5])
async def a_read_goes_on_only_under_its_key(dut: Any, stall: float, mtu: int) -> None:
    """It ends with a NAK behind what has left; and after the fence memory is not touched."""
    bench = Bench(dut, stall, latency=(5, 60))
    await bench.start()
    for i in range(12 if LONGEST_READ == 30_000 else 4):
        key = KEY + 1 + i
        await bench.allow(key)
        peer, other = await bench.setup(2, mtu), await bench.setup(3, 3)
        for _ in range(3):
            bench.read(other, WORDS, 10_000)
        before = peer.next_psn
        bench.read(peer, WORDS, 0, key=1)  # of no bytes: no key
        bench.read(peer, WORDS, 5000)
        bench.read(peer, WORDS + 100_000, 60_000, key=key)
        item = peer.items[-1]
        bench.read(peer, WORDS + 100_000, 5000)
        await bench.respond.drained()
        while i and not item.begun:
            await wait_cycles(dut, 1)
        # 60,000 bytes take 940 cycles or more, of which up to 20 KiB are on their way to the wire.
        await wait_cycles(dut, bench.rng.randrange(200))
        if i % 2:  # one that is under way does not do for a key that goes later
            await bench.ask()
            await wait_cycles(dut, bench.rng.randrange(1, 150))
        await bench.allow(key, False)
        peer.withdrawn = True
        await bench.fence()
        region = [burst for burst in bench.memory._reads if burst.addr >= WORDS + 100_000]
        assert not region, "a read is under way"
        bench.memory.write(WORDS + 100_000, bytes(60_000))  # another connection's now
        end = await nak(bench, peer)
        assert psn(end - before) >= 1 + -(-5000 // (128 << mtu)), "what was allowed came"
        bench.memory.write(0, bench.image)
        await bench.reset(peer)


@cocotb.test()
async def a_duplicate_read_whose_key_is_gone_is_dropped(dut: Any) -> None:
    bench = Bench(dut)
    await bench.start()
    peer = await bench.setup(2, mtu=1)
    await bench.allow(KEY + 1)
    bench.read(peer, WORDS, 20_000, duplicate=True, key=KEY + 1)
    bench.read(peer, WORDS, 1000)
    await bench.respond.drained()
    await wait_cycles(dut, 100)
    await bench.allow(KEY + 1, False)
    peer.items[0].optional = True
    peer.cut = True
    while bench.events.get("drop_duplicate_forgotten", 0) == 0:
        await wait_cycles(dut, 1)
    await bench.quiet()
    assert not peer.dead and bench.events["drop_duplicate_forgotten"] == 1
    bench.read(peer, WORDS, 1000)
    await bench.quiet()


@cocotb.test()
@cocotb.parametrize(stall=alternately([0.0, 0.3]))
async def an_atomic_is_carried_out_only_under_its_key(dut: Any, stall: float) -> None:
    bench = Bench(dut, stall, latency=40)
    await bench.start()
    for i, delay in enumerate((0, 3, 50, 150, 300)):
        key = KEY + 1 + i
        await bench.allow(key)
        peer, other = await bench.setup(2), await bench.setup(3)
        for word in range(RD_DEPTH):
            bench.atomic(peer, 8 * word, False, 1 << 60 | i, key=key if word else KEY)
            bench.atomic(other, 256 + 8 * word, False, 1)
        await bench.respond.drained()
        await wait_cycles(dut, delay)
        await bench.allow(key, False)
        peer.withdrawn = True
        await bench.fence()
        assert not [b for b in (*bench.atomics._reads, *bench.atomics._writes, *bench.atomics._acks) if b.addr in range(8, 64)]
        content = bench.memory.read(0, 64)
        await nak(bench, peer)
        assert bench.memory.read(8, 56) == content[8:], "carried out after the fence"
        assert psn(peer.next_psn - peer.spoilt) in range(1, RD_DEPTH)
        assert not other.items
        await bench.reset(peer)


@cocotb.test()
async def behind_an_atomic_that_failed_none_is_carried_out(dut: Any) -> None:
    """Though the QP is still in service while its turn to be answered comes, behind the READs of others."""
    bench = Bench(dut)
    await bench.start()
    peer = await bench.setup(2)
    for i in range(6):
        bench.read(await bench.setup(3 + i), WORDS, 30_000)
    before = bench.memory.read(0, WORDS)
    bench.atomic(peer, BAD[0], False, 1)
    for i in range(4):
        bench.atomic(peer, 8 * i, False, 1)
    while not peer.dead:
        await wait_cycles(dut, 10)
    assert bench.memory.read(0, WORDS) == before
    bench.words[:] = before
    await nak(bench, peer, NAK_REM_OP)


@cocotb.test()
async def a_fence_is_through_in_time_under_load(dut: Any) -> None:
    """It waits for what is under way, not for what others begin; and nothing waits for it."""
    bench = Bench(dut, latency=30)
    await bench.start()
    assert await bench.fence() <= 8
    peers = [await bench.setup(2 + i, mtu=1 + i % 5) for i in range(8)]
    spent = []

    async def load() -> None:
        while True:
            for peer in peers:
                if len(peer.items) < 3:
                    bench.read(peer, WORDS, bench.rng.randrange(1, 30_000))
                    bench.atomic(peer, 8 * peer.qpn, False, 1)
            await wait_cycles(dut, 20)

    task = cocotb.start_soon(load())
    await wait_cycles(dut, 3000)
    begin, beats = bench.cycle, bench.payload.beats
    for _ in range(25):
        spent.append(await bench.fence())
    used = (bench.payload.beats - beats) / (bench.cycle - begin)
    task.cancel()
    beat = len(dut.payload_tdata) // 8
    dut._log.info(f"{min(spent)} to {max(spent)} cycles, {used:.2f} beats a cycle")
    # A visit of 4 KiB, 16 KiB in roce_tx.
    assert max(spent) <= 20_480 // beat * 1.05 + 150 and used > 0.97
    await bench.quiet()


@cocotb.test()
async def atomics_of_all_queue_pairs_hold_nobody_up(dut: Any) -> None:
    """As many atomics as there may be wait for a slow memory: the acknowledgements and READs of others leave as without them."""
    bench = Bench(dut, latency=10)
    bench.atomics.latency = (300, 300)
    await bench.start()
    flood = [await bench.setup(3 + i) for i in range(bench.qps - 3 if bench.qps == 16 else 60)]
    innocent = await bench.setup(2)

    async def answers() -> list[int]:
        spent = []
        for _ in range(20):
            begin, seen = bench.cycle, len(innocent.seen)
            bench.acknowledge(innocent)
            while len(innocent.seen) == seen:
                await wait_cycles(dut, 1)
            spent.append(bench.cycle - begin)
            begin = bench.cycle
            bench.read(innocent, WORDS, 64)
            while innocent.items:
                await wait_cycles(dut, 1)
            spent.append(bench.cycle - begin)
        return spent

    alone = await answers()
    for _ in range(RD_DEPTH):
        for peer in flood:
            bench.atomic(peer, 8 * peer.qpn, False, 1)
    begin = bench.cycle
    await bench.respond.drained()
    assert bench.cycle - begin <= 2 * RD_DEPTH * len(flood) + 10, "all are taken at once"
    loaded = await answers()
    assert sum(len(peer.items) for peer in flood) > len(flood), "they wait"
    dut._log.info(f"{max(alone)} cycles alone, {max(loaded)} with atomics waiting")
    assert max(loaded) <= max(alone) + 4
    # Its own atomic waits for one of each other.
    begin = bench.cycle
    bench.atomic(innocent, 0, False, 1)
    while innocent.items:
        await wait_cycles(dut, 10)
    assert bench.cycle - begin <= (len(flood) + 2) * (600 + 20)
    await bench.reset(flood[0])
    bench.atomics.latency = (1, 1)
    await bench.quiet()


@cocotb.test()
async def atomics_of_many_on_one_word_are_atomic(dut: Any) -> None:
    bench = Bench(dut, 0.1, latency=(1, 20))
    await bench.start()
    peers = [await bench.setup(2 + i) for i in range(8)]
    begin = int.from_bytes(bench.words[:8], "little")
    for i in range(10 * RD_DEPTH):
        peer = peers[i % 8]
        while (peer.issued - await bench.done(peer)) % 256 >= RD_DEPTH:
            await wait_cycles(dut, 10)
        bench.atomic(peer, 0, False, 1)
        peer.items[-1].packets[0].any_value = True
    await bench.quiet()
    found = sorted(int.from_bytes(value, "big") for peer in peers for value in peer.originals)
    assert found == [begin + i & MASK for i in range(10 * RD_DEPTH)]


def builds() -> list[tuple[dict[str, Any], dict[str, Port]]]:
    """Parameters and ports of the builds under test."""
    return [
        (
            {"DATA_W": width, "QPS": qps, "RD_DEPTH": RD_DEPTH},
            {
                "local_addr": Plain("input", "packet_pkg::local_addr_t"),
                "cmd": Sink("roce_pkg::qp_cmd_t"),
                "answer": Source("logic"),
                "respond": Sink("roce_pkg::respond_t"),
                "rd_done_slot": Plain("input", "roce_pkg::qp_index_t"),
                "rd_done": Plain("output", "logic [7:0]"),
                "request": Sink("roce_pkg::tx_packet_t"),
                "request_fault": Source("roce_pkg::tx_fault_t"),
                "peer_write": Plain("input", "logic"),
                "peer_write_index": Plain("input", "roce_pkg::qp_index_t"),
                "peer_write_data": Plain("input", "roce_requester_pkg::sq_peer_t"),
                "flush_acks": Plain("input", "logic"),
                "flushed": Plain("output", "logic"),
                "reads": AxiMaster(width),
                "atomics": AxiMaster(width),
                "frame": Source("packet_pkg::frame_tx_t"),
                "payload": AxisOut(width),
                "qp_event": Source("roce_pkg::qp_event_t"),
                "failed": Source("roce_pkg::qp_failed_t"),
                "key_write": Plain("input", "logic"),
                "key": Plain("input", "logic [31:0]"),
                "key_valid": Plain("input", "logic"),
                "fence": Plain("input", "logic"),
                "fence_number": Plain("output", "roce_pkg::fence_t"),
                "fences_through": Plain("output", "roce_pkg::fence_t"),
                "asked": Plain("output", "logic"),
                "events": Plain("output", "roce_events_pkg::roce_rx_events_t"),
                "idle": Plain("output", "logic"),
            },
        )
        for qps, width in ((16, 64), (256, 512))
    ]


@pytest.mark.parametrize(("params", "ports"), builds(), ids=["64 bits", "512 bits"])
def test_roce_response(params: dict[str, Any], ports: dict[str, Port]) -> None:
    # Eight times as many beats: what depends on their width is enough there.
    names = "model_agrees.*seed=1|latency|beat_a_cycle|under_its_key/stall=0.3/mtu=1"
    chosen = at_width(params["DATA_W"], names, everything_at=512)
    run(
        "response_and_tx", __file__, params=params, ports=ports,
        env={"QPS": str(params["QPS"]), **chosen},
        sources=[Path(__file__).parent / "response_and_tx.sv"], random_state=True,
    )  # fmt: skip
