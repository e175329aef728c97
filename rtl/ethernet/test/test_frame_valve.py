# SPDX-License-Identifier: Apache-2.0
"""frame_valve: a MAC that cannot stall, and a FIFO that is full at any time. Each frame comes whole, or bad and cut, or not at
all, in order."""

import random

import cocotb
from cocotb.triggers import FallingEdge, RisingEdge
from nacelle_tb.bench import AxisSink as AxisSinkPort
from nacelle_tb.bench import AxisSource as AxisSourcePort
from nacelle_tb.bench import Plain, run
from nacelle_tb.streams import AxisSource, start, wait_cycles

BYTES = 8


class Fifo:
    """Takes what is offered while it is ready, as a FIFO does: an offer need not stay."""

    def __init__(self, dut) -> None:
        self.dut, self.full, self.lost = dut, 0.0, 0
        self.frames: list[tuple[bytes, bool]] = []
        dut.out_tready.value = 0
        cocotb.start_soon(self._run())

    async def _run(self) -> None:
        dut, data = self.dut, bytearray()
        while True:
            await FallingEdge(dut.clk)
            dut.out_tready.value = int(random.random() >= self.full)
            await RisingEdge(dut.clk)
            self.lost += int(dut.lost.value)
            if int(dut.out_tvalid.value) and int(dut.out_tready.value):
                kept = int(dut.out_tkeep.value).bit_length()
                data += int(dut.out_tdata.value).to_bytes(BYTES, "little")[:kept]
                if int(dut.out_tlast.value):
                    self.frames.append((bytes(data), bool(int(dut.out_tuser.value))))
                    data = bytearray()


def frame_of(number: int) -> bytes:
    """A frame that says which it is."""
    return number.to_bytes(4, "little") + random.randbytes(random.randrange(1, 80))


def check(fifo: Fifo, sent: list[tuple[bytes, bool]]) -> int:
    """Each is one that was sent, whole or cut; they come in order. Returns how many are lost."""
    last, whole = -1, 0
    for data, bad in fifo.frames:
        number = int.from_bytes(data[:4], "little")
        assert number > last
        last = number
        if (data, bad) == sent[number]:
            whole += 1
        else:
            # The byte that its end has is of no meaning.
            assert bad and sent[number][0].startswith(data[:-1])
    return len(sent) - whole


@cocotb.test()
@cocotb.parametrize(full=[0.0, 0.1, 0.7])
async def frames_are_lost_one_by_one(dut, full: float) -> None:
    dut.broken.value = 0
    source, fifo = AxisSource(dut, "in", 0.2), Fifo(dut)
    await start(dut)
    fifo.full = full
    sent = [(frame_of(i), random.random() < 0.2) for i in range(300)]
    for frame, bad in sent:
        source.send(frame, bad)
    await source.drained()
    fifo.full = 0.0
    await wait_cycles(dut, 4)
    lost = check(fifo, sent)
    assert lost == fifo.lost and bool(lost) == (full > 0)
    if full < 0.5:
        assert lost < len(sent) // 2


@cocotb.test()
async def a_reset_of_the_receiver_ends_its_frame(dut) -> None:
    dut.broken.value = 0
    source, fifo = AxisSource(dut, "in"), Fifo(dut)
    await start(dut)
    for _ in range(60):
        fifo.frames.clear()
        first, second = random.randbytes(200), random.randbytes(50)
        source.send(first)
        await wait_cycles(dut, random.randrange(4, 15))
        await FallingEdge(dut.clk)
        dut.broken.value = 1
        await source.drained()  # what comes now is nothing
        await FallingEdge(dut.clk)
        dut.broken.value = 0
        source.send(second)
        await source.drained()
        await wait_cycles(dut, 4)
        (data, bad), rest = fifo.frames[0], fifo.frames[1:]
        assert bad and first.startswith(data[:-1])
        assert rest == [(second, False)]


def test_frame_valve() -> None:
    ports = {
        "broken": Plain("input", "logic"),
        "in": AxisSinkPort(8 * BYTES),
        "out": AxisSourcePort(8 * BYTES),
        "lost": Plain("output", "logic"),
    }
    run("frame_valve", __file__, params={"DATA_W": 8 * BYTES}, ports=ports)
