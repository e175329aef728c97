# SPDX-License-Identifier: Apache-2.0
"""roce_rx: frames captured from Linux come out as scapy reads them; what is not valid goes nowhere; nothing stalls inside."""

from __future__ import annotations

import ipaddress
import random
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import cocotb
import pytest
from cocotb.triggers import RisingEdge
from nacelle_tb.bench import AxisSink as AxisIn
from nacelle_tb.bench import AxisSource as AxisOut
from nacelle_tb.bench import Clock, Plain, Sink, Source, run
from nacelle_tb.family import ip_number, roce_record
from nacelle_tb.long import alternately
from nacelle_tb.record import FRAME_RX
from nacelle_tb.roce import Frame, Headers, op, reth
from nacelle_tb.streams import AxisSink, AxisSource, StreamSink, StreamSource, start, wait_cycles
from nacelle_tb.svtypes import constant, struct
from scapy.contrib.roce import BTH
from scapy.layers.inet import IP
from scapy.layers.l2 import Ether
from scapy.utils import rdpcap

PACKET = "roce_rx_pkg::rc_packet_t"
RESPONSE = "roce_pkg::rc_response_t"
EVENTS = "roce_events_pkg::roce_rx_events_t"
BTH_END = 54
RESPONSES = range(0x0D, 0x13)
# Opcode -> bytes of extension headers (IBTA table 38).
EXTENSIONS = {
    0x00: 0, 0x01: 0, 0x02: 0, 0x04: 0, 0x06: 16, 0x07: 0, 0x08: 0, 0x09: 4, 0x0A: 16, 0x0B: 20, 0x0C: 16, 0x0D: 4, 0x0E: 0,
    0x0F: 4, 0x10: 4, 0x11: 4, 0x12: 12, 0x13: 28, 0x14: 28, 0x16: 4, 0x17: 4, 0x64: 8, 0x65: 12, 0x81: 16,
}  # fmt: skip


class Bench:
    """One stream a port."""

    def __init__(self, dut, stall: float = 0.0) -> None:
        self.dut = dut
        self.frame = StreamSource(dut, "frame", FRAME_RX, stall)
        self.payload = AxisSource(dut, "payload", stall)
        self.cm = StreamSink(dut, "cm", FRAME_RX, stall)
        self.cm_payload = AxisSink(dut, "cm_payload", stall)
        self.response = StreamSink(dut, "response", RESPONSE, stall)
        self.response_payload = AxisSink(dut, "response_payload", stall)
        self.packet = StreamSink(dut, "packet", PACKET, stall)
        self.packet_payload = AxisSink(dut, "packet_payload", stall)

    def send(self, headers: bytes, payload: bytes) -> int:
        """The frame as it was handed over."""
        word = roce_record(headers, len(payload))
        self.frame.send(word)
        if payload:
            self.payload.send(payload)
        return word


def expected(raw: bytes, ext: bytes, payload: bytes) -> dict[str, object]:
    """The fields of rc_packet_t as scapy reads them from a frame."""
    frame = Ether(raw)
    bth = frame[BTH]
    fields = {
        "ackreq": bth.ackreq, "se": bth.solicited, "qpn": bth.dqpn, "psn": bth.psn, "payload_length": len(payload),
        "src_ip": ip_number(frame[IP].src),
    }  # fmt: skip
    if bth.opcode in RESPONSES:
        del fields["ackreq"], fields["se"]
        fields["opcode"] = bth.opcode
        if bth.opcode != 0x0E:
            fields["aeth"] = (ext[0], int.from_bytes(ext[1:4], "big"))
        if bth.opcode == 0x12:
            fields["original"] = int.from_bytes(ext[4:12], "big")
        return fields
    name = {
        0: "SEND", 1: "SEND", 2: "SEND", 4: "SEND", 6: "WRITE", 7: "WRITE", 8: "WRITE", 9: "WRITE", 10: "WRITE", 11: "WRITE",
        0x0C: "READ", 0x13: "ATOMIC", 0x14: "ATOMIC", 0x16: "SEND", 0x17: "SEND", 0x81: "CNP",
    }[bth.opcode]  # fmt: skip
    fields["kind"] = constant(f"roce_rx_pkg::RC_{name}")
    fields["first"] = bth.opcode not in (1, 2, 7, 8, 9, 0x16)
    fields["last"] = bth.opcode not in (0, 1, 6, 7)
    fields["with_imm"] = bth.opcode in (9, 11)
    fields["with_inv"] = bth.opcode in (0x16, 0x17)
    fields["ce"] = frame[IP].tos & 3 == 3
    if bth.opcode in (6, 10, 11, 12):
        fields["reth"] = tuple(int.from_bytes(ext[a:b], "big") for a, b in ((0, 8), (8, 12), (12, 16)))
    if name == "ATOMIC":
        fields["reth"] = (int.from_bytes(ext[:8], "big"), int.from_bytes(ext[8:12], "big"), None)
        fields["swap_add"], fields["compare"] = int.from_bytes(ext[12:20], "big"), int.from_bytes(ext[20:28], "big")
        fields["compare_swap"] = bth.opcode == 0x13
    if bth.opcode in (9, 11, 0x16, 0x17):
        fields["word"] = int.from_bytes(ext[-4:], "big")
    return fields


def agrees(got: SimpleNamespace, fields: dict[str, object]) -> bool:
    """None stands for anything."""
    for name, want in fields.items():
        value = getattr(got, name)
        parts = tuple(vars(value).values()) if isinstance(value, SimpleNamespace) else (value,)
        wanted = want if isinstance(want, tuple) else (want,)
        if any(w is not None and w != p for w, p in zip(wanted, parts, strict=True)):
            return False
    return True


@cocotb.test()
@cocotb.parametrize(stall=alternately([0.0, 0.4]))
async def frames_of_linux_are_taken_apart(dut, stall: float) -> None:
    bench = Bench(dut, stall)
    await start(dut)
    packets, responses, to_cm = [], [], []
    captured = list(rdpcap(str(Path(__file__).parent / "data" / "linux_rc.pcap")))
    # What the captures lack: atomics, SEND with invalidate, CNP, marks of congestion.
    for opcode in (0x13, 0x14, 0x16, 0x17, 0x81, 0x12, 0x10):
        for ecn in (0, 3):
            ext = random.randbytes(EXTENSIONS[opcode])
            payload = random.randbytes(random.choice((1, 64, 99))) if opcode in (0x16, 0x17, 0x10) else b""
            frame = Frame(opcode, 5, random.getrandbits(24), payload, ext, ecn=ecn)
            captured.append(frame.headers() + payload + bytes(-len(payload) % 4) + bytes(4))
    random.shuffle(captured)
    for raw in map(bytes, captured):
        opcode, pad = raw[42], raw[43] >> 4 & 3
        cut = BTH_END + EXTENSIONS[opcode]
        headers, payload = raw[:cut], raw[cut : len(raw) - 4 - pad]
        word = bench.send(headers, payload)
        if opcode in (0x64, 0x65):
            if int.from_bytes(raw[47:50], "big") == 1:  # the others are UD of a user's own QP
                to_cm.append((word, payload))
            continue
        fields = expected(raw, headers[BTH_END:], payload)
        (responses if opcode in RESPONSES else packets).append((fields, payload))
        if opcode in RESPONSES and raw[15] & 3 == 3:  # its mark is shown to the responder
            mark = {"kind": constant("roce_rx_pkg::RC_RESPONSE"), "ce": 1, "payload_length": 0}
            packets.append(({**mark, "qpn": fields["qpn"], "src_ip": fields["src_ip"]}, b""))
    assert len(packets) > 30 and len(responses) > 10 and len(to_cm) >= 2

    async def take(sink: StreamSink, payloads: AxisSink, wanted: list[tuple[dict[str, object], bytes]]) -> None:
        for fields, payload in wanted:
            got = await sink.recv()
            assert agrees(got, fields), f"{got} is not {fields}"
            assert not payload or await payloads.recv() == payload

    await take(bench.packet, bench.packet_payload, packets)
    await take(bench.response, bench.response_payload, responses)
    for word, payload in to_cm:
        assert struct(FRAME_RX).pack(await bench.cm.recv()) == word
        assert await bench.cm_payload.recv() == payload


@cocotb.test()
@cocotb.parametrize(stall=alternately([0.0, 0.5]))
async def what_is_not_valid_goes_nowhere(dut, stall: float) -> None:
    bench = Bench(dut, stall)
    await start(dut)
    drops, events, layout = 0, Counter(), struct(EVENTS)
    good = []
    for i in range(150):
        size = random.choice((0, 1, 63, 64, 65, 200))
        frame = {"opcode": op("RC_SEND_ONLY"), "qpn": 5, "psn": i, "payload": random.randbytes(size)}
        fault = random.choice((
            {}, {}, {"pkey": 0x7FFF}, {"migreq": True}, {"tver": 1}, {"tver": 8}, {"pkey": 0xFFFE}, {"pkey": 0}, {"qpn": 1},
            {"opcode": 0x64}, {"opcode": 0x24}, {"opcode": 0x80 | 4}, {"opcode": 0x81, "qpn": 1}, {"opcode": 0x11, "pkey": 3},
        ))  # fmt: skip
        frame = Frame(**{**frame, **fault})
        bench.frame.send(frame.rx())
        if size:
            bench.payload.send(frame.payload)
        if not fault or fault.keys() & {"migreq"} or fault.get("pkey") == 0x7FFF:
            good.append(frame)
        else:
            drops += 1
    for _ in range(20_000):
        await wait_cycles(dut, 1)
        events.update(vars(layout.unpack(int(dut.events.value))))
        if int(dut.idle.value) and not bench.frame.busy and not bench.payload.busy:
            break
    assert [p.psn for p in bench.packet.received] == [f.psn for f in good]
    assert [p for p, _ in bench.packet_payload.packets] == [f.payload for f in good if f.payload]
    assert not bench.cm.received and not bench.cm_payload.packets
    assert drops and +events == Counter(drop_bad_bth=drops)


@cocotb.test()
async def a_frame_a_cycle_and_a_beat_a_cycle(dut) -> None:
    bench = Bench(dut)
    await start(dut)
    size = bench.payload.bytes_per_beat
    for i in range(100):
        frame = Frame(op("RC_RDMA_WRITE_ONLY"), 2, i, random.randbytes(size), reth(i, i, size))
        bench.frame.send(frame.rx())
        bench.payload.send(frame.payload)
    await bench.payload.drained()
    await wait_cycles(dut, 5)
    assert bench.packet.cycles[-1] - bench.packet.cycles[0] == 99
    spans = list(bench.packet_payload.spans)
    assert len(spans) == 100 and spans[-1][1] - spans[0][0] == 99
    assert spans[0][0] - bench.packet.cycles[0] == 1  # payload goes as soon as its packet was taken


@cocotb.test()
async def a_flood_of_datagrams_does_not_hold_up_connections(dut) -> None:
    """Datagrams for QP1 come faster than connection management takes them (one in 25 cycles): those that are too many are dropped
    and counted; the requests of connections among them all pass, at 7/8 of the pace or more once the credit is used up."""
    bench = Bench(dut)
    await start(dut)
    bench.cm.stall = 0.96
    sent, passed, dropped = 600, [], 0
    for i in range(sent):
        for qpn, opcode in ((1, 0x64), (5, op("RC_SEND_ONLY"))):
            frame = Frame(opcode, qpn, i, random.randbytes(256 if qpn == 1 else 64), random.randbytes(EXTENSIONS[opcode]))
            bench.frame.send(frame.rx())
            bench.payload.send(frame.payload)
            passed += [frame] * (qpn == 5)
    beats, cycles = len(bench.payload._queue), 0
    while bench.payload.busy:
        await RisingEdge(dut.clk)
        cycles += 1
        dropped += struct(EVENTS).unpack(int(dut.events.value)).drop_cm_rate
    await wait_cycles(dut, 100)
    assert [p.psn for p in bench.packet.received] == [f.psn for f in passed]
    assert [p for p, _ in bench.packet_payload.packets] == [f.payload for f in passed]
    assert 10 < len(bench.cm.received) == sent - dropped < sent / 2
    assert cycles < beats * 8 / 7 + 256 + 300


@cocotb.test()
async def an_ipv6_packet_never_passes_for_one_of_ipv4(dut) -> None:
    """A mapped source in an IPv6 packet (RFC 4291, 2.5.5.2) is of nobody; what only resembles one goes on as what it is."""
    bench = Bench(dut)
    await start(dut)
    victim = "10.0.0.2"
    drops, events, layout = 0, Counter(), struct(EVENTS)
    good = []
    tops = ["::ffff:", "::", "::fffe:", "::1:ffff:", "8000::ffff:", "::ffff:0:", "::ffff:"]
    for psn, top in enumerate(tops):
        dropped = top == "::ffff:"
        for opcode, qpn in (("RC_RDMA_WRITE_ONLY", 5), ("RC_ACKNOWLEDGE", 5), ("UD_SEND_ONLY", 1)):
            ext = random.randbytes(EXTENSIONS[op(opcode)])
            headers = Headers(
                "02:00:00:00:00:02", "02:00:00:00:00:01", top + victim, "fe80::1", 49152, op(opcode), qpn, psn, len(ext)
            )
            bench.send(bytes(headers) + ext, b"")
            drops += dropped
            if not dropped:
                good.append(int(ipaddress.IPv6Address(top + victim)))
    for _ in range(400):
        await wait_cycles(dut, 1)
        events.update(vars(layout.unpack(int(dut.events.value))))
    sources = [[item.src_ip for item in sink.received] for sink in (bench.packet, bench.response)]
    sources.append([frame.headers.l3.src for frame in bench.cm.received])
    assert sources == [good[::3]] * 3
    assert ip_number(victim) not in good and events["drop_bad_bth"] == drops == 6


@pytest.mark.parametrize("family", [4, 6])
@pytest.mark.parametrize("width", [64, 512])
def test_roce_rx(width: int, family: int) -> None:
    run(
        "roce_rx",
        __file__,
        params={"DATA_W": width},
        ports={
            "now": Clock(), "frame": Sink(FRAME_RX), "payload": AxisIn(width), "cm": Source(FRAME_RX), "cm_payload": AxisOut(width),
            "response": Source(RESPONSE), "response_payload": AxisOut(width),
            "packet": Source(PACKET), "packet_payload": AxisOut(width), "events": Plain("output", EVENTS),
            "idle": Plain("output", "logic"),
        },
        env={"NACELLE_FAMILY": str(family)},
    )  # fmt: skip
