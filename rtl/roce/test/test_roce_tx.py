# SPDX-License-Identifier: Apache-2.0
"""roce_tx: headers against what was asked for, payload against memory; order, fairness and counts against the packets given."""

from __future__ import annotations

import ipaddress
import os
import random
from collections import deque
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import cocotb
import pytest
from cocotb.triggers import FallingEdge
from nacelle_tb.bench import AxisSink as AxisIn
from nacelle_tb.bench import AxisSource as AxisOut
from nacelle_tb.bench import Plain, Port, Several, Sink, Source, run
from nacelle_tb.family import is_ipv6
from nacelle_tb.long import alternately, some
from nacelle_tb.record import mapped
from nacelle_tb.roce import Headers, aeth, op
from nacelle_tb.streams import AxisSink, AxisSource, StreamSink, StreamSource, start, wait_cycles
from nacelle_tb.svtypes import constant, struct
from nacelle_tb.widths import at_width

CNP_DSCP = 41
WINDOW = constant("packet_pkg::HDR_BYTES")
PSNS = 1 << 24
MEMORY = random.Random(7).randbytes(1 << 16)
OWN_IPS = ("10.0.0.1", "2001:db8::1:0:0:1", "fe80::1:2:3:4")  # by own_address_e
LOCAL = {"enable": 1, "mac": 0x020000000001, "ip": 0x0A000001, "prefix_length": 24, "gateway": 0}
LOCAL |= {"global_": int(ipaddress.IPv6Address(OWN_IPS[1])), "link_local": int(ipaddress.IPv6Address(OWN_IPS[2]))}
# Extension headers in bytes (IBTA 9.2, table 38), and whether a payload may follow.
OPCODES = {
    "RC_SEND_FIRST": (0, True), "RC_SEND_ONLY_WITH_IMM": (4, True), "RC_SEND_LAST_WITH_INVALIDATE": (4, True),
    "RC_RDMA_WRITE_ONLY": (16, True), "RC_RDMA_WRITE_ONLY_WITH_IMM": (20, True), "RC_RDMA_WRITE_MIDDLE": (0, True),
    "RC_RDMA_WRITE_LAST": (0, True), "RC_SEND_ONLY": (0, True),
    "RC_RDMA_READ_REQUEST": (16, False), "RC_COMPARE_SWAP": (28, False), "RC_FETCH_ADD": (28, False),
}  # fmt: skip
RESPONSES = {
    "RC_RDMA_READ_RESPONSE_FIRST": (4, True), "RC_RDMA_READ_RESPONSE_MIDDLE": (0, True),
    "RC_RDMA_READ_RESPONSE_LAST": (4, True), "RC_RDMA_READ_RESPONSE_ONLY": (4, True), "RC_ATOMIC_ACKNOWLEDGE": (12, False),
}  # fmt: skip
COUNTED = {
    "sent_sends": {"RC_SEND_ONLY_WITH_IMM", "RC_SEND_LAST_WITH_INVALIDATE", "RC_SEND_ONLY"},
    "sent_writes": {"RC_RDMA_WRITE_ONLY", "RC_RDMA_WRITE_ONLY_WITH_IMM", "RC_RDMA_WRITE_LAST"},
    "sent_reads": {"RC_RDMA_READ_REQUEST"},
    "sent_atomics": {"RC_COMPARE_SWAP", "RC_FETCH_ADD"},
}


def memory(address: int, length: int) -> bytes:
    """Content of device memory, which repeats every 64 KiB."""
    offset = address % len(MEMORY)
    return (MEMORY + MEMORY)[offset : offset + length]


@dataclass
class Packet:
    """What was given to build, and what became of it."""

    source: int
    qpn: int
    opcode: str
    psn: int
    ext: bytes
    addr: int
    length: int
    se: int = 0
    ackreq: int = 0
    again: int = 0
    internal_: int = 0


class Bench:
    """Everything around the module: memory with its latency, and the wire."""

    def __init__(self, dut: Any, stall: float = 0.0, latency: int = 20) -> None:
        self.dut, self.latency, self.qps = dut, latency, int(os.environ["QPS"])
        self.rng = random.Random(random.getrandbits(64))
        self.sources = [StreamSource(dut, f"packet{i}", "roce_pkg::tx_packet_t", stall) for i in range(2)]
        self.ack = StreamSource(dut, "ack", "roce_pkg::ack_tx_t", stall)
        self.read_cmd = StreamSink(dut, "read_cmd", "memory_pkg::dma_cmd_t", stall)
        self.read_data = AxisSource(dut, "read_data", stall)
        self.frame = StreamSink(dut, "frame", "packet_pkg::frame_tx_t", stall)
        self.payload = AxisSink(dut, "payload", stall)
        self.fault = [StreamSink(dut, f"fault{i}", "roce_pkg::tx_fault_t", stall) for i in range(2)]
        self.given: list[deque[Packet]] = [deque(), deque()]  # not seen on the wire yet
        self.acks: deque[tuple[int, int, int, int, int]] = deque()
        self.wire: list[tuple[int, Any]] = []  # cycle, Packet or acknowledgement
        self.spoilt: list[list[tuple[int, int]]] = [[], []]
        self.left: list[int] = []
        self.left_checked = 0
        self.events: dict[str, int] = {}
        self.peers: dict[int, dict[str, int]] = {}
        self.bad: set[int] = set()  # addresses that memory refuses
        self.ect = 0
        self.cycle = 0
        self.identification = 0
        self._heads: deque[tuple[SimpleNamespace, int]] = deque()
        self._reads: deque[tuple[int, int, int]] = deque()
        self._events = struct("roce_events_pkg::roce_tx_events_t")
        self._bth = struct("roce_wire_pkg::bth_t")
        dut.local_addr.value = struct("packet_pkg::local_addr_t").pack(LOCAL)
        for name in ("ect", "flush_requests", "flush_acks", "peer_write", "peer_write_index", "peer_write_data"):
            getattr(dut, name).value = 0
        dut.cnp_dscp.value = CNP_DSCP

    async def start(self) -> None:
        await start(self.dut)
        for index in range(self.qps):
            await self.peer(index + 2)
        cocotb.start_soon(self._tick())

    async def peer(self, qpn: int, valid: int = 1) -> None:
        """Writes one word of the peer table."""
        kind = self.rng.randrange(3)  # own_address_e
        ip = mapped(f"10.0.{1 + qpn // 256}.{qpn % 256}") if kind == 0 else 0xFE80 << 112 | self.rng.getrandbits(64)
        peer = {"valid": valid, "mac": 0x020000010000 + qpn, "ip": ip, "own": kind, "qpn": 0x10000 + 3 * qpn}
        peer["dscp"] = self.rng.randrange(64)
        self.peers[qpn] = peer
        await FallingEdge(self.dut.clk)
        self.dut.peer_write.value = 1
        self.dut.peer_write_index.value = qpn - 2
        self.dut.peer_write_data.value = struct("roce_requester_pkg::sq_peer_t").pack(peer)
        await FallingEdge(self.dut.clk)
        self.dut.peer_write.value = 0

    async def _tick(self) -> None:
        while True:
            await FallingEdge(self.dut.clk)
            self.cycle += 1
            while self.read_cmd.received:
                command = self.read_cmd.received.popleft()
                self.read_cmd.cycles.popleft()
                assert command.length > 0
                self._reads.append((self.cycle + self.latency, command.addr, command.length))
            while self._reads and self._reads[0][0] <= self.cycle:
                _, address, length = self._reads.popleft()
                self.read_data.send(memory(address, length), address in self.bad)
            if int(self.dut.left.value):
                self.left.append(int(self.dut.left_qpn.value))
            if word := int(self.dut.events.value):
                for name, bit in vars(self._events.unpack(word)).items():
                    if bit:
                        self.events[name] = self.events.get(name, 0) + 1
            while self.frame.received:
                self._heads.append((self.frame.received.popleft(), self.frame.cycles.popleft()))
            while self._heads and (not self._heads[0][0].payload_length or self.payload.packets):
                head, cycle = self._heads.popleft()
                body, bad = self.payload.packets.popleft() if head.payload_length else (b"", 0)
                if head.payload_length:
                    self.payload.spans.popleft()
                self._frame(head, body, bad, cycle)

    def bth(self, head: SimpleNamespace) -> SimpleNamespace:
        """The BTH of a frame."""
        headers = head.hdr.to_bytes(WINDOW, "big")
        at = 62 if is_ipv6(headers) else 42
        return self._bth.unpack(int.from_bytes(headers[at : at + 12], "big"))

    def _frame(self, head: SimpleNamespace, body: bytes, bad: int, cycle: int) -> None:
        """Finds whose frame it is, and rebuilds it."""
        headers = head.hdr.to_bytes(WINDOW, "big")[: head.hdr_length]
        bth = self.bth(head)
        ecn, becn, migreq, se, ackreq = 0, 0, 1, 0, 0
        if bth.opcode in (op("RC_ACKNOWLEDGE"), op("CNP")):
            qpn, cnp, psn, syndrome, msn = self.acks.popleft()
            self.wire.append((cycle, (qpn, cnp, psn, syndrome, msn)))
            opcode, ext = op("RC_ACKNOWLEDGE"), aeth(syndrome, msn)
            if cnp:
                opcode, ext, psn, becn, migreq = 0x81, bytes(16), 0, 1, 0
        else:
            source = int(bth.opcode not in map(op, RESPONSES))
            packet = self.given[source].popleft()
            self.wire.append((cycle, packet))
            qpn, psn, opcode, se, ackreq = packet.qpn, packet.psn, op(packet.opcode), packet.se, packet.ackreq
            ext, ecn = packet.ext, 2 * self.ect
            assert body == memory(packet.addr, packet.length)
            assert bad == int(packet.length > 0 and packet.addr in self.bad)
            if bad:
                self.spoilt[source].append((qpn, psn))
            if source == 0:
                assert self.left[self.left_checked] == qpn, "announced before it leaves"
                self.left_checked += 1
        peer = self.peers[qpn]
        dscp = CNP_DSCP if becn else peer["dscp"]
        assert (head.payload_length, head.pad, head.icrc) == (len(body), -len(body) % 4, 1)
        expected = Headers(
            "02:00:00:00:00:01", peer["mac"].to_bytes(6, "big").hex(":"),
            OWN_IPS[peer["own"]], str(ipaddress.IPv6Address(peer["ip"]).ipv4_mapped or ipaddress.IPv6Address(peer["ip"])),
            0xC000 | ((qpn & 0x3FFF) ^ (qpn >> 14)), opcode, peer["qpn"], psn, len(ext) + len(body) + head.pad, head.pad,
            bool(se), bool(migreq), bool(ackreq), bool(becn), tos=dscp << 2 | ecn, identification=self.identification,
        )  # fmt: skip
        assert bytes(expected) + ext == headers
        self.identification = (self.identification + 1) % (1 << 16)

    def give(self, source: int, opcode: str, length: int = 0, **more: int) -> Packet:
        """A packet of this opcode with random content."""
        rng = self.rng
        size = (OPCODES | RESPONSES)[opcode][0]
        packet = Packet(
            source, more.pop("qpn", rng.randrange(self.qps) + 2), opcode, rng.randrange(PSNS), rng.randbytes(size),
            more.pop("addr", rng.randrange(1 << 36)), length, **more,
        )  # fmt: skip
        self.given[source].append(packet)
        self.sources[source].send(
            qpn=packet.qpn, opcode=op(opcode), psn=packet.psn, se=packet.se, ackreq=packet.ackreq,
            ext=int.from_bytes(packet.ext.ljust(28, b"\xa5"), "big"), addr=packet.addr, length=length, empty=length == 0,
            again=packet.again, internal_=packet.internal_,
        )  # fmt: skip
        return packet

    def acknowledge(self, qpn: int | None = None, cnp: int = 0, kept: bool = True) -> None:
        """An acknowledgement or CNP with random content; `kept`: it will be seen on the wire."""
        rng = self.rng
        ack = (qpn or rng.randrange(self.qps) + 2, cnp, rng.randrange(PSNS), rng.randrange(256), rng.randrange(PSNS))
        if kept:
            self.acks.append(ack)
        self.ack.send(qpn=ack[0], cnp=cnp, psn=ack[2], aeth={"syndrome": ack[3], "msn": ack[4]})

    async def quiet(self, timeout: int = 20_000) -> None:
        """Waits until everything given has left and the module says that it is idle."""
        for _ in range(timeout):
            await FallingEdge(self.dut.clk)
            if not (any(self.given) or self.acks or self.ack.busy or any(s.busy for s in self.sources)) and int(
                self.dut.idle.value
            ):
                break
        else:
            raise AssertionError(f"not idle: {[len(g) for g in self.given]} packets and {len(self.acks)} acknowledgements left")
        await wait_cycles(self.dut, 40)
        assert int(self.dut.data_idle.value) and int(self.dut.flushed.value) and not self._heads and not self.payload.packets
        assert self.left_checked == len(self.left)
        for i in range(2):
            got = [(f.qpn, f.psn) for f in self.fault[i].received]
            assert got == self.spoilt[i], f"faults of source {i}: {got}, not {self.spoilt[i]}"


@cocotb.test()
@cocotb.parametrize(stall=alternately([0.0, 0.3]), seed=some([1, 2]))
async def everything_at_once(dut: Any, stall: float, seed: int) -> None:
    del seed  # another run
    bench = Bench(dut, stall, latency=random.choice([0, 10, 60]))
    rng = bench.rng
    await bench.start()
    for ect in (0, 1):
        dut.ect.value = bench.ect = ect
        expected = {"sent_pkts": 0, "packet_retransmit": 0, **dict.fromkeys(COUNTED, 0)}
        bench.events.clear()
        for _ in range(500):
            kind = rng.randrange(4)
            if kind == 0:
                bench.acknowledge(cnp=rng.randrange(2))
                continue
            source = kind & 1
            opcode = rng.choice(list(OPCODES if source else RESPONSES))
            length = rng.choice([0, 1, rng.randrange(1, 300), 64, 256, 1024, rng.randrange(4097)])
            flags = {name: rng.randrange(2) for name in ("se", "ackreq", "again", "internal_")} if source else {}
            packet = bench.give(source, opcode, length if (OPCODES | RESPONSES)[opcode][1] else 0, **flags)
            if rng.random() < 0.05 and packet.length:
                bench.bad.add(packet.addr)
            if source:
                expected["sent_pkts"] += 1
                expected["packet_retransmit"] += packet.again
                for name, opcodes in COUNTED.items():
                    expected[name] += opcode in opcodes and not packet.again and not packet.internal_
            if rng.random() < 0.02:
                await wait_cycles(dut, rng.randrange(300))
        await bench.quiet(100_000)
        assert {k: bench.events.get(k, 0) for k in expected} == expected


@cocotb.test()
async def an_acknowledgement_takes_four_cycles_and_passes_what_waits_for_memory(dut: Any) -> None:
    bench = Bench(dut, latency=300)
    await bench.start()
    bench.give(0, "RC_RDMA_READ_RESPONSE_ONLY", 1000)
    bench.give(1, "RC_SEND_ONLY", 1000)
    await wait_cycles(dut, 20)
    await FallingEdge(dut.clk)
    bench.acknowledge()
    bench.acknowledge(cnp=1)
    begin = bench.ack.sent
    while bench.ack.sent == begin:
        await FallingEdge(dut.clk)
    taken = bench.frame.cycle
    await bench.quiet()
    assert [type(what) for _, what in bench.wire] == [tuple, tuple, Packet, Packet]
    assert bench.wire[0][0] - taken <= 4 and bench.wire[1][0] == bench.wire[0][0] + 1


@cocotb.test()
@cocotb.parametrize(first=[0, 1])
async def what_has_no_payload_passes_what_waits_for_memory(dut: Any, first: int) -> None:
    bench = Bench(dut, latency=300)
    await bench.start()
    with_payload = [bench.give(first, ("RC_RDMA_READ_RESPONSE_ONLY", "RC_SEND_ONLY")[first], 100) for _ in range(5)]
    await wait_cycles(dut, 20)
    without = [bench.give(1 - first, ("RC_FETCH_ADD", "RC_ATOMIC_ACKNOWLEDGE")[first]) for _ in range(5)]
    await bench.quiet()
    assert [what for _, what in bench.wire] == without + with_payload


@cocotb.test()
async def both_sources_have_an_equal_share(dut: Any) -> None:
    bench = Bench(dut, latency=30)
    await bench.start()
    for _ in range(150):
        bench.give(1, "RC_SEND_ONLY", 256)
    await wait_cycles(dut, 100)
    before = len(bench.wire)
    for _ in range(50):
        bench.give(0, "RC_RDMA_READ_RESPONSE_ONLY", 256)
    await bench.quiet()
    order = [what.source for _, what in bench.wire]
    begin = order.index(0)
    assert begin - before < 50 and order[begin : begin + 60].count(0) in range(29, 32)


@cocotb.test()
@cocotb.parametrize(size=[64, 256, 1000, 1024, 4096])
async def so_much_waits_for_the_wire(dut: Any, size: int) -> None:
    """32 packets, or as many as leave no room for 4 KiB in 16 KiB, of each source; and not less."""
    bench = Bench(dut, latency=2000)
    await bench.start()
    for _ in range(40):
        bench.give(0, "RC_RDMA_READ_RESPONSE_MIDDLE", size)
        bench.give(1, "RC_RDMA_WRITE_MIDDLE", size)
    for _ in range(2):
        await wait_cycles(dut, 1000)
        for source in bench.sources:
            assert source.sent in ((30, 31, 32) if size <= 256 else (1 + 12 * 1024 // (-(-size // 256) * 256),))
    await bench.quiet(60_000)
    assert len(bench.wire) == 80


@cocotb.test()
async def throughput(dut: Any) -> None:
    """Without payload a frame a cycle; with it a beat a cycle, from both sources."""
    bench = Bench(dut, latency=40)
    await bench.start()
    for _ in range(150):
        bench.give(0, "RC_ATOMIC_ACKNOWLEDGE")
        bench.give(1, "RC_RDMA_READ_REQUEST")
    await bench.quiet()
    cycles = [cycle for cycle, _ in bench.wire]
    assert cycles[-1] - cycles[0] <= 300 + 20
    size = 4 * len(dut.payload_tdata) // 8
    before = bench.payload.beats
    for _ in range(60):
        bench.give(0, "RC_RDMA_READ_RESPONSE_MIDDLE", size)
        bench.give(1, "RC_RDMA_WRITE_MIDDLE", size)
    while bench.payload.beats == before:
        await FallingEdge(dut.clk)
    await wait_cycles(dut, 400)
    assert bench.payload.beats - before >= 398
    await bench.quiet()


@cocotb.test()
async def acknowledgements_of_dead_queue_pairs_are_dropped(dut: Any) -> None:
    bench = Bench(dut)
    await bench.start()
    await bench.peer(5, valid=0)
    bench.acknowledge(5, kept=False)
    bench.acknowledge(6)
    bench.acknowledge(5, cnp=1, kept=False)
    await bench.quiet()


async def flush(bench: Bench, what: str) -> None:
    """Until everything that was here has left; what comes meanwhile does not count."""
    dut = bench.dut
    getattr(dut, f"flush_{what}").value = 1
    await FallingEdge(dut.clk)
    getattr(dut, f"flush_{what}").value = 0
    for _ in range(20_000):
        if int(dut.flushed.value):
            return
        await FallingEdge(dut.clk)
    raise AssertionError("never flushed")


@cocotb.test()
@cocotb.parametrize(what=["requests", "acks"], stall=alternately([0.0, 0.3, 0.8]))
async def flushed_says_that_what_was_here_has_left(dut: Any, what: str, stall: float) -> None:
    """While packets of all kinds come."""
    bench = Bench(dut, stall, latency=60)
    await bench.start()
    bench.bad = {0x40}
    acknowledges = (op("RC_ACKNOWLEDGE"), op("CNP"))
    waited = 0
    for _ in range(20):
        for _ in range(bench.rng.randrange(12)):
            bench.give(1, *bench.rng.choice([("RC_SEND_ONLY", 900), ("RC_RDMA_READ_REQUEST",), ("RC_RDMA_WRITE_LAST", 3)]),
                       addr=bench.rng.choice([0x40, 0x80]))  # fmt: skip
            bench.give(0, "RC_RDMA_READ_RESPONSE_ONLY", 200)
            bench.acknowledge()
        await wait_cycles(dut, bench.rng.randrange(100))
        await FallingEdge(dut.clk)
        source = bench.sources[1] if what == "requests" else bench.ack
        inside = source.sent
        begin = bench.cycle

        def seen() -> int:
            if what == "requests":
                return sum(isinstance(w, Packet) and w.source == 1 for _, w in bench.wire)
            heads = [bench.bth(head) for head, _ in bench._heads]
            return sum(isinstance(w, tuple) for _, w in bench.wire) + sum(bth.opcode in acknowledges for bth in heads)

        await flush(bench, what)
        waited = max(waited, bench.cycle - begin)
        await wait_cycles(dut, 2)
        assert seen() >= inside
        if what == "requests":
            want = [(w.qpn, w.psn) for _, w in bench.wire if isinstance(w, Packet) and w.source == 1][:inside]
            bad = sum(pair in bench.spoilt[1] for pair in want)
            assert len(bench.fault[1].received) >= bad
    assert waited > (20 if what == "requests" else 5)
    await bench.quiet(100_000)


@cocotb.test()
async def acknowledgements_of_a_forgotten_peer_never_go_to_the_next_one(dut: Any) -> None:
    """They wait when the QP goes; the flush ends when they are dropped, and the number has another peer then."""
    bench = Bench(dut)
    await bench.start()
    bench.frame.stall = 1.0
    await wait_cycles(dut, 4)
    for _ in range(4):
        bench.acknowledge(6)
    for _ in range(20):
        bench.acknowledge(5, kept=False)
    await wait_cycles(dut, 40)
    await bench.peer(5, valid=0)
    waiting = cocotb.start_soon(flush(bench, "acks"))
    await wait_cycles(dut, 40)
    assert not waiting.done()
    bench.frame.stall = 0.5
    await waiting
    await bench.peer(5)
    await bench.quiet()


@cocotb.test()
async def responses_are_idle_when_their_last_payload_has_passed(dut: Any) -> None:
    bench = Bench(dut, latency=60)
    await bench.start()
    bench.give(0, "RC_RDMA_READ_RESPONSE_ONLY", 2000)
    busy = 0
    while bench.given[0] or not int(dut.data_idle.value):
        await FallingEdge(dut.clk)
        if not int(dut.data_idle.value):
            busy += 1
        elif busy:
            await FallingEdge(dut.clk)
            assert not bench.payload._partial and not bench.given[0]
    assert busy > 60
    bench.give(1, "RC_SEND_ONLY", 2000)
    while bench.given[1]:
        await FallingEdge(dut.clk)
        assert int(dut.data_idle.value)
    await bench.quiet()


def builds() -> list[tuple[dict[str, Any], dict[str, Port]]]:
    """Parameters and ports of the builds under test."""
    return [
        (
            {"QPS": qps},
            {
                "local_addr": Plain("input", "packet_pkg::local_addr_t"),
                "cnp_dscp": Plain("input", "logic [5:0]"),
                "ect": Plain("input", "logic"),
                "packet": Several(Sink("roce_pkg::tx_packet_t"), 2),
                "ack": Sink("roce_pkg::ack_tx_t"),
                "flush_requests": Plain("input", "logic"),
                "flush_acks": Plain("input", "logic"),
                "flushed": Plain("output", "logic"),
                "peer_write": Plain("input", "logic"),
                "peer_write_index": Plain("input", "roce_pkg::qp_index_t"),
                "peer_write_data": Plain("input", "roce_requester_pkg::sq_peer_t"),
                "read_cmd": Source("memory_pkg::dma_cmd_t"),
                "read_source": Plain("output", "logic"),
                "read_data": AxisIn(width),
                "frame": Source("packet_pkg::frame_tx_t"),
                "payload": AxisOut(width),
                "fault": Several(Source("roce_pkg::tx_fault_t"), 2),
                "left": Plain("output", "logic"),
                "left_qpn": Plain("output", "roce_wire_pkg::qpn_t"),
                "went": Plain("output", "roce_counters_pkg::qp_sent_t"),
                "events": Plain("output", "roce_events_pkg::roce_tx_events_t"),
                "data_idle": Plain("output", "logic"),
                "idle": Plain("output", "logic"),
            },
        )
        for qps, width in ((16, 64), (256, 512))
    ]


@pytest.mark.parametrize(("params", "ports"), builds(), ids=["64 bits", "512 bits"])
def test_roce_tx(params: dict[str, Any], ports: dict[str, Port]) -> None:
    # The narrow one takes long, and differs in beats alone.
    width = 512 if params["QPS"] == 256 else 64
    chosen = at_width(width, "everything_at_once.*seed=1|throughput|so_much_waits|latency", everything_at=512)
    run("roce_tx", __file__, params=params, ports=ports, env={"QPS": str(params["QPS"]), **chosen})
