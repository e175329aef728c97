# SPDX-License-Identifier: Apache-2.0
"""axis_strip: every packet less its first bytes, whatever was stripped from its neighbours; one beat a cycle."""

import random

import cocotb
from nacelle_tb.bench import AxisSink as AxisSinkPort
from nacelle_tb.bench import AxisSource as AxisSourcePort
from nacelle_tb.bench import Plain, Type, run
from nacelle_tb.streams import AxisSink, AxisSource, start

SHIFTS = (0, 1, 5, 7)


class ChoosingSource(AxisSource):
    """Drives `choice` along with each beat."""

    def send_with(self, choice: int, packet: bytes) -> None:
        before = len(self._queue)
        self.send(packet)
        for i in range(before, len(self._queue)):
            self._queue[i] = (*self._queue[i], choice)

    def _present(self, item: tuple[int, ...]) -> None:
        *beat, choice = item
        super()._present(tuple(beat))
        self._dut.choice.value = choice


async def make(dut, stall_in: float, stall_out: float) -> tuple[ChoosingSource, AxisSink]:
    source = ChoosingSource(dut, "in", stall_in)
    source._dut = dut
    sink = AxisSink(dut, "out", stall_out)
    await start(dut)
    return source, sink


@cocotb.test()
@cocotb.parametrize(stall_in=[0.0, 0.4], stall_out=[0.0, 0.6])
async def the_rest_of_every_packet(dut, stall_in: float, stall_out: float) -> None:
    source, sink = await make(dut, stall_in, stall_out)
    packets = []
    for _ in range(300):
        choice = random.randrange(len(SHIFTS))
        packets.append((choice, random.randbytes(SHIFTS[choice] + random.randrange(1, 40))))
        source.send_with(*packets[-1])
    for choice, packet in packets:
        assert await sink.recv() == packet[SHIFTS[choice] :]


@cocotb.test()
async def one_beat_a_cycle(dut) -> None:
    source, sink = await make(dut, 0.0, 0.0)
    packets = [random.randbytes(8 * random.randrange(1, 6)) for _ in range(100)]
    for packet in packets:
        source.send_with(random.randrange(len(SHIFTS)), packet)
    await sink._wait(lambda: len(sink.packets) == 100, 1000)
    beats = sum(len(packet) // 8 for packet in packets)
    assert sink.spans[-1][1] - sink.spans[0][0] + 1 <= beats


def test_axis_strip() -> None:
    run(
        "axis_strip",
        __file__,
        params={"DATA_W": 64, "CHOICES": len(SHIFTS), "SHIFTS": Type("{8'd7, 8'd5, 8'd1, 8'd0}")},
        ports={"in": AxisSinkPort(64), "choice": Plain("input", "logic [1:0]"), "out": AxisSourcePort(64)},
    )
