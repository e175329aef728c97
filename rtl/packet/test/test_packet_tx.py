# SPDX-License-Identifier: Apache-2.0
"""packet_tx: frames are sent byte for byte as requested, with the ICRC that scapy computes, and without a bubble between them."""

import os
import random
from dataclasses import dataclass

import cocotb
import packet_frames as frames
import pytest
from nacelle_tb.bench import AxisSink as AxisSinkPort
from nacelle_tb.bench import AxisSource as AxisSourcePort
from nacelle_tb.bench import Plain, Several, Sink, run
from nacelle_tb.long import alternately
from nacelle_tb.streams import AxisSink, AxisSource, StreamSource, pulses, start, wait_cycles
from nacelle_tb.svtypes import constant, struct
from nacelle_tb.widths import WIDTHS, at_width

FRAME = "packet_pkg::frame_tx_t"
VLAN, PRIORITIES = "link_pkg::vlan_settings_t", "link_pkg::priorities_t"
EVENTS = "packet_pkg::packet_events_t"
WIDTH = int(os.environ.get("WIDTH", "512"))
N = 3
HEADER_LENGTHS = (42, 54, 58, 62, 66, 70, 74, 78, 82, 86, 90, 94, 102)


@dataclass
class Job:
    """A frame to send, and how it must look on the wire."""

    header: bytes
    payload: bytes
    pad: int
    icrc: bool
    wire: bytes


def roce_job(size: int, opcode: int = 0x04) -> Job:
    """The wire image is scapy's, ICRC included."""
    payload = random.randbytes(size)
    wire = frames.roce(payload, opcode)
    header = wire[: 54 + frames.EXTENSION[opcode]]
    return Job(header, payload, -size % 4, True, wire.ljust(60, b"\0"))


def roce6_job(size: int, opcode: int = 0x04) -> Job:
    payload = random.randbytes(size)
    wire = frames.roce6(payload, opcode)
    return Job(wire[: 74 + frames.EXTENSION[opcode]], payload, -size % 4, True, wire)


def plain6_job(size: int) -> Job:
    payload = random.randbytes(size)
    wire = frames.udp6(payload)
    return Job(wire[:62], payload, 0, False, wire)


def plain_job(size: int) -> Job:
    payload = random.randbytes(size)
    wire = frames.udp(payload)
    return Job(wire[:42], payload, 0, False, wire.ljust(60, b"\0"))


def random_job() -> Job:
    size = random.choice([0, 0, 1, random.randrange(100), random.randrange(1500)])
    plain, roce = (plain6_job, roce6_job) if random.random() < 0.4 else (plain_job, roce_job)
    return plain(size) if random.random() < 0.2 else roce(size, random.choice(list(frames.EXTENSION)))


class Bench:
    """The module with drivers for its N inputs."""

    def __init__(self, dut, stall_frame: float = 0.0, stall_payload: float = 0.0, stall_out: float = 0.0) -> None:
        self.dut = dut
        self.frame = [StreamSource(dut, f"frame{i}", FRAME, stall_frame) for i in range(N)]
        self.payload = [AxisSource(dut, f"payload{i}", stall_payload) for i in range(N)]
        self.tx = AxisSink(dut, "tx", stall_out)
        self.counts: dict[str, int] = {}

    async def start(self) -> None:
        self.dut.stop.value = 0
        self.dut.vlan.value = 0
        self.dut.priorities.value = struct(PRIORITIES).pack(roce=3, other=6)
        await start(self.dut)
        cocotb.start_soon(self._count())

    async def _count(self) -> None:
        events = struct(EVENTS)
        async for word in pulses(self.dut.clk, self.dut.events):
            for name, value in vars(events.unpack(word)).items():
                self.counts[name] = self.counts.get(name, 0) + value

    def send(self, job: Job, source: int = 0) -> None:
        room = constant("packet_pkg::HDR_BYTES")
        junk = random.randbytes(room - len(job.header))  # behind the header's end: must not matter
        self.frame[source].send(
            hdr_length=len(job.header),
            payload_length=len(job.payload),
            pad=job.pad,
            icrc=job.icrc,
            hdr=int.from_bytes(job.header + junk, "big"),
        )
        if job.payload:
            self.payload[source].send(job.payload)

    async def all_sent(self, jobs: list[Job]) -> None:
        for _ in range(100):
            await wait_cycles(self.dut, 1)
            if int(self.dut.idle.value):
                break
        assert int(self.dut.idle.value) == 1
        assert not self.tx.packets
        assert self.counts["tx_frame"] == len(jobs)
        assert self.counts["tx_roce"] == sum(job.icrc for job in jobs)


@cocotb.test()
@cocotb.parametrize(stalls=alternately([(0.0, 0.0, 0.0), (0.3, 0.3, 0.3), (0.6, 0.1, 0.0), (0.0, 0.0, 0.7)]))
async def frames_as_asked_for(dut, stalls: tuple[float, float, float]) -> None:
    bench = Bench(dut, *stalls)
    await bench.start()
    jobs = [[random_job() for _ in range(40)] for _ in range(N)]
    for source, mine in enumerate(jobs):
        for job in mine:
            bench.send(job, source)
    expected = [[job.wire for job in mine] for mine in jobs]
    for _ in range(40 * N):
        wire = await bench.tx.recv()
        source = next(i for i, mine in enumerate(expected) if mine and mine[0] == wire)
        expected[source].pop(0)
    await bench.all_sent([job for mine in jobs for job in mine])


@cocotb.test()
async def every_header_length_and_every_end(dut) -> None:
    """All places of header, payload end, pad and ICRC in a beat."""
    bench = Bench(dut)
    await bench.start()
    opcodes = (0x04, 0x05, 0x64, 0x65, 0x0A, 0x0B, 0x13)
    jobs = [job(size, opcode) for job in (roce_job, roce6_job) for opcode in opcodes for size in range(WIDTH // 8 + 2)]
    jobs += [job(size) for job in (plain_job, plain6_job) for size in range(WIDTH // 8 + 2)]
    assert {len(job.header) for job in jobs} == set(HEADER_LENGTHS)
    for job in jobs:
        bench.send(job)
    for job in jobs:
        assert await bench.tx.recv() == job.wire
    await bench.all_sent(jobs)


@cocotb.test()
async def payload_marked_bad_spoils_its_frame(dut) -> None:
    """And no other: tuser at the end, the ICRC inverted in every place that it can have."""
    bench = Bench(dut)
    await bench.start()
    jobs = [roce_job(size, 0x0A) for size in range(1, WIDTH // 8 + 2)]
    for job in jobs:
        bench.send(job)
        good = roce_job(9)
        bench.frame[0].send(
            hdr_length=len(job.header), payload_length=len(job.payload), pad=job.pad, icrc=1,
            hdr=int.from_bytes(job.header.ljust(constant("packet_pkg::HDR_BYTES"), b"\0"), "big"),
        )  # fmt: skip
        bench.payload[0].send(job.payload, bad=True)
        bench.send(good)
        assert await bench.tx.recv() == job.wire
        while not bench.tx.packets:
            await wait_cycles(dut, 1)
        bench.tx.spans.popleft()
        wire, user = bench.tx.packets.popleft()
        place = len(job.header) + len(job.payload) + job.pad
        spoiled = bytearray(job.wire)
        spoiled[place : place + 4] = (byte ^ 0xFF for byte in spoiled[place : place + 4])
        assert user and wire == bytes(spoiled)
        assert await bench.tx.recv() == good.wire


@cocotb.test()
async def frames_of_linux_are_rebuilt(dut) -> None:
    bench = Bench(dut)
    await bench.start()
    jobs = []
    for wire in frames.linux_frames():
        judged = frames.judge(wire, mac=wire[:6].hex(":"), ip=".".join(map(str, wire[30:34])))
        if judged.event == "rx_roce":
            jobs.append(Job(judged.header, judged.payload, wire[43] >> 4 & 3, True, wire))
    assert len(jobs) > 30
    for job in jobs:
        bench.send(job)
    for job in jobs:
        assert await bench.tx.recv() == job.wire
    await bench.all_sent(jobs)


@cocotb.test()
async def headers_of_any_length_without_payload(dut) -> None:
    bench = Bench(dut)
    await bench.start()
    jobs = []
    for length in range(1, constant("packet_pkg::HDR_BYTES") + 1):
        header = random.randbytes(length)
        jobs.append(Job(header, b"", 0, False, header.ljust(60, b"\0")))
        bench.send(jobs[-1])
    for job in jobs:
        assert await bench.tx.recv() == job.wire
    await bench.all_sent(jobs)


@cocotb.test()
async def who_is_stopped_begins_no_frame(dut) -> None:
    """The others go on; what was taken leaves; and nothing is lost when it goes on."""
    bench = Bench(dut, stall_out=0.2)
    await bench.start()
    stopped, jobs = [roce_job(40) for _ in range(150)], [plain_job(100) for _ in range(150)]
    for mine, other in zip(stopped, jobs, strict=True):
        bench.send(mine, 0)
        bench.send(other, 1)
    await wait_cycles(dut, 40)
    dut.stop.value = 1
    await wait_cycles(dut, 200)  # what was taken has left
    bench.tx.packets.clear()
    await wait_cycles(dut, 300)
    left = [packet for packet, _ in bench.tx.packets]
    assert left and all(frame in {job.wire for job in jobs} for frame in left)
    dut.stop.value = 2
    await wait_cycles(dut, 200)
    bench.tx.packets.clear()
    await wait_cycles(dut, 300)
    left = [packet for packet, _ in bench.tx.packets]
    assert left and all(frame in {job.wire for job in stopped} for frame in left)
    dut.stop.value = 7
    await wait_cycles(dut, 200)
    bench.tx.packets.clear()
    await wait_cycles(dut, 200)
    assert not bench.tx.packets
    dut.stop.value = 0
    for _ in range(12000):
        await wait_cycles(dut, 1)
        if bench.counts["tx_frame"] == 300 and int(dut.idle.value):
            break
    bench.tx.packets.clear()
    await bench.all_sent(stopped + jobs)


@cocotb.test()
@cocotb.parametrize(stall=alternately([0.0, 0.4]))
async def in_a_vlan_the_tag_says_which_are_roce(dut, stall: float) -> None:
    bench = Bench(dut, stall_out=stall)
    await bench.start()
    dut.vlan.value = struct(VLAN).pack(enable=1, untagged=0, vid=0x321)
    await wait_cycles(dut, 3)
    jobs = [random_job() for _ in range(80)]
    for job in jobs:
        bench.send(job)
    for job in jobs:
        assert await bench.tx.recv() == frames.with_tag(job.wire, 0x321, 3 if job.icrc else 6)
    await bench.all_sent(jobs)


@cocotb.test()
async def no_bubble_for_any_size(dut) -> None:
    """From the first beat to the last of them all, one leaves in every cycle."""
    bench = Bench(dut)
    await bench.start()
    jobs = [roce_job(0, 0x11)] * 100  # acknowledgements: one beat each at 512 bits
    jobs += [roce_job(size, opcode) for size in range(64, 4097, 64 if WIDTH == 512 else 512) for opcode in (0x04, 0x0A)]
    jobs += [roce_job(size, 0x0B) for size in range(1, 300, 7)]
    random.shuffle(jobs)
    for job in jobs:
        bench.send(job)
    spans = []
    for job in jobs:
        await bench.tx._wait(lambda: bool(bench.tx.packets), 1000)
        spans.append(bench.tx.spans[0])
        assert await bench.tx.recv() == job.wire
    assert spans[-1][1] - spans[0][0] + 1 == bench.tx.beats
    await bench.all_sent(jobs)


@cocotb.test()
async def latency_is_as_documented(dut) -> None:
    bench = Bench(dut)
    await bench.start()
    await wait_cycles(dut, 2)
    bench.send(roce_job(200))
    await bench.frame[0].drained()
    cycles = 0
    while not int(dut.tx_tvalid.value):
        await wait_cycles(dut, 1)
        cycles += 1
        assert cycles < 40
    assert cycles == (7 if WIDTH >= 256 else 6)


@pytest.mark.parametrize("width", WIDTHS)
def test_packet_tx(width: int) -> None:
    run(
        "packet_tx",
        __file__,
        params={"DATA_W": width, "N": N},
        ports={
            "vlan": Plain("input", VLAN),
            "priorities": Plain("input", PRIORITIES),
            "stop": Plain("input", f"logic [{N - 1}:0]"),
            "frame": Several(Sink(FRAME), N),
            "payload": Several(AxisSinkPort(width), N),
            "tx": AxisSourcePort(width),
            "events": Plain("output", EVENTS),
            "idle": Plain("output", "logic"),
        },
        env={"WIDTH": str(width), **at_width(width, "as_asked|every_end|any_length|no_bubble|latency|marked_bad")},
    )
