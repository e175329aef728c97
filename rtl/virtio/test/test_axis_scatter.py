# SPDX-License-Identifier: Apache-2.0
"""axis_scatter: pieces of any length, which together are the packet, at one beat a cycle."""

import random

import cocotb
import pytest
from nacelle_tb.bench import AxisSink, AxisSource, Sink, run
from nacelle_tb.long import alternately
from nacelle_tb.streams import AxisSink as Taken
from nacelle_tb.streams import AxisSource as Given
from nacelle_tb.streams import StreamSource, start
from nacelle_tb.widths import WIDTHS


class Bench:
    def __init__(self, dut, stall: float) -> None:
        self.data = Given(dut, "in", stall, noise=True)
        self.piece = StreamSource(dut, "piece", "virtio_pkg::scatter_piece_t", stall, noise=True)
        self.out = Taken(dut, "out", stall)

    def send(self, pieces: list[bytes]) -> None:
        self.data.send(b"".join(pieces))
        for i, piece in enumerate(pieces):
            self.piece.send(last_byte=len(piece) - 1, last=i == len(pieces) - 1)


@cocotb.test()
@cocotb.parametrize(stall=alternately([0.0, 0.4]))
async def a_packet_becomes_pieces(dut, stall: float) -> None:
    bench = Bench(dut, stall)
    await start(dut)
    step = bench.data.bytes_per_beat
    sent = []
    for _ in range(80):
        lengths = [
            random.choice([1, 2, step - 1, step, step + 1, random.randint(1, 4 * step)]) for _ in range(random.choice([1, 1, 2, 7]))
        ]
        pieces = [random.randbytes(length) for length in lengths]
        bench.send(pieces)
        sent += pieces
    for i, piece in enumerate(sent):
        assert await bench.out.recv() == piece, f"piece {i}"


@cocotb.test()
async def one_beat_a_cycle(dut) -> None:
    bench = Bench(dut, 0.0)
    await start(dut)
    step = bench.data.bytes_per_beat
    for _ in range(20):
        bench.send([bytes(step * 4)])
    for _ in range(20):
        await bench.out._wait(lambda: bool(bench.out.packets), 1000)
        bench.out.packets.popleft()
    assert bench.out.spans[-1][1] - bench.out.spans[0][0] == 20 * 4 - 1


@pytest.mark.parametrize("width", WIDTHS)
def test_axis_scatter(width: int) -> None:
    run(
        "axis_scatter",
        __file__,
        params={"DATA_W": width},
        ports={"in": AxisSink(width), "piece": Sink("virtio_pkg::scatter_piece_t"), "out": AxisSource(width)},
        random_state=True,
    )
