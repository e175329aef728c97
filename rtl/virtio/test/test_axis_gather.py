# SPDX-License-Identifier: Apache-2.0
"""axis_gather: the parts of a packet become it, from any lane on, and an incomplete one says so."""

import random

import cocotb
import pytest
from nacelle_tb.bench import AxisSink, Sink, Source, Type, run
from nacelle_tb.long import alternately
from nacelle_tb.streams import AxisSource, StreamSink, StreamSource, start
from nacelle_tb.widths import WIDTHS


class Bench:
    def __init__(self, dut, stall: float) -> None:
        self.data = AxisSource(dut, "in", stall, noise=True)
        self.note = StreamSource(dut, "note", "virtio_pkg::gather_note_t", stall)
        self.bytes = self.data.bytes_per_beat
        self.out = StreamSink(dut, "out", f"logic [{9 * self.bytes + 2}:0]", stall)
        self.offset = -12 % self.bytes

    def send(self, parts: list[bytes | None], bad: bool = False) -> None:
        """None: a part that was not read. The others lie anywhere in their beats, with anything around them."""
        for i, part in enumerate(parts):
            first = random.choice([0, random.randrange(self.bytes)])
            last = (first + len(part or b"") - 1) % self.bytes
            self.note.send(ends=i == len(parts) - 1, none=part is None, first=first, last=last)
            if part is not None:
                around = random.randbytes(first), random.randbytes(self.bytes - 1 - last)
                self.data.send(around[0] + part + around[1], bad=bad and i == 0)

    async def recv(self) -> tuple[bytes, int, int]:
        """The bytes of a packet, whether it is bad, and whether parts are missing."""
        got, first = b"", True
        while True:
            beat = await self.out.recv()
            data = (beat & (1 << 8 * self.bytes) - 1).to_bytes(self.bytes, "little")
            keep = beat >> 8 * self.bytes & (1 << self.bytes) - 1
            last, error, none = (beat >> 9 * self.bytes + i & 1 for i in range(3))
            if not none:
                assert keep == (1 << keep.bit_count()) - 1 and (last or keep.bit_count() == self.bytes)
                got += data[self.offset if first else 0 : keep.bit_count()]
            first = False
            if last:
                return got, error, none


@cocotb.test()
@cocotb.parametrize(stall=alternately([0.0, 0.4]))
async def parts_become_a_packet(dut, stall: float) -> None:
    bench = Bench(dut, stall)
    await start(dut)
    sent = []
    for i in range(80):
        parts = [random.randbytes(random.choice([1, 2, 11, 12, 13, bench.bytes, random.randint(1, 3 * bench.bytes)]))
                 for _ in range(random.choice([1, 1, 2, 3, 9]))]  # fmt: skip
        bench.send(parts, bad=i % 7 == 3)
        sent.append(b"".join(parts))
    for i, packet in enumerate(sent):
        got, error, none = await bench.recv()
        assert (got, error, none) == (packet, i % 7 == 3, 0), f"packet {i}"


@cocotb.test()
async def parts_that_are_missing_are_told(dut) -> None:
    bench = Bench(dut, 0.2)
    await start(dut)
    for parts in ([None], [b"a" * 100, None], [b"a", b"b" * 200, None], [None, None]):
        bench.send(parts)
        bench.send([b"whole" * 30])
        assert (await bench.recv())[2] == 1
        assert await bench.recv() == (b"whole" * 30, 0, 0)


@cocotb.test()
async def one_beat_a_cycle(dut) -> None:
    bench = Bench(dut, 0.0)
    await start(dut)
    for _ in range(20):
        bench.send([bytes(bench.bytes * 4)])
    for _ in range(4):
        await bench.recv()
    begun = bench.out.cycle
    for _ in range(10):
        await bench.recv()
    assert bench.out.cycle - begun <= 10 * 6 + 4  # of five beats in memory, and one of what is over


@pytest.mark.parametrize("width", WIDTHS)
def test_axis_gather(width: int) -> None:
    beat = f"logic [{width + width // 8 + 2}:0]"
    run(
        "axis_gather",
        __file__,
        params={"DATA_W": width, "OFFSET": -12 % (width // 8), "BEAT": Type(beat)},
        ports={"in": AxisSink(width), "note": Sink("virtio_pkg::gather_note_t"), "out": Source(beat)},
        random_state=True,
    )
