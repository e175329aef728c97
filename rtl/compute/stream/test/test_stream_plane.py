# SPDX-License-Identifier: Apache-2.0
"""stream_plane with the test as its kernel: which frames come to it, what the card is told of those that leave it, that a sent
frame is shown to the line only when it is whole, and the registers, also of a kernel that does not answer."""

from __future__ import annotations

import os
import random
from typing import Any

import cocotb
import pytest
from nacelle_tb.axil import Slave
from nacelle_tb.bench import AxilMaster, AxilSlave, Plain, run
from nacelle_tb.bench import AxisSink as AxisSinkPort
from nacelle_tb.bench import AxisSource as AxisSourcePort
from nacelle_tb.cci import offset
from nacelle_tb.long import some
from nacelle_tb.registers import AxilDriver
from nacelle_tb.streams import AxisSink, AxisSource, start, wait_cycles
from nacelle_tb.svtypes import constant, struct
from nacelle_tb.widths import WIDTHS, at_width

BYTES = int(os.environ.get("WIDTH", "64")) // 8
MAX_FRAME = 1518
LIMIT = 500
VERDICT = "card_pkg::card_verdict_t"
OKAY, SLVERR, DECERR = 0, 2, 3


class Bench:
    """Both sides of the plane, and the kernel's."""

    def __init__(self, dut: Any) -> None:
        self.dut = dut
        self.rx, self.rx_out = AxisSource(dut, "rx"), AxisSink(dut, "rx_out")
        self.tx, self.tx_out = AxisSource(dut, "tx"), AxisSink(dut, "tx_out")
        self.rx_in, self.rx_back = AxisSink(dut, "kernel_rx_in"), AxisSource(dut, "kernel_rx_out")
        self.tx_in, self.tx_back = AxisSink(dut, "kernel_tx_in"), AxisSource(dut, "kernel_tx_out")
        self.bus = AxilDriver(dut, "bus")
        for signal in ("awready", "wready", "bvalid", "arready", "rvalid", "bresp", "rresp", "rdata"):
            getattr(dut, f"kernel_ctrl_{signal}").value = 0
        self.line_rst(1)
        self.verdict()
        self.identity()

    def line_rst(self, value: int) -> None:
        self.dut.line_rst.value = value

    def verdict(self, **fields: int) -> None:
        self.dut.rx_verdict.value = struct(VERDICT).pack({"wanted": 1, "checked": 1, "hashed": 1, "hash": 5, "flow": 2} | fields)

    def identity(self, **fields: int) -> None:
        self.dut.identity.value = struct("stream_pkg::identity_t").pack(
            {"name": int.from_bytes(b"test", "little"), "block_type": 0x54455354, "block_version": 7, "version_major": 3} | fields
        )

    async def begin(self) -> Bench:
        await start(self.dut)
        self.line_rst(0)
        assert await self.bus.write(offset("stream.LIMIT"), LIMIT) == OKAY
        return self

    async def read(self, name: str) -> int:
        value, response = await self.bus.read(offset(f"stream.{name}"))
        assert response == OKAY
        return value

    async def receive(self, length: int, **verdict: int) -> bytes:
        """A frame of the line, with this verdict."""
        self.verdict(**verdict)
        frame = random.randbytes(length)
        self.rx.send(frame)
        await self.rx.drained()
        return frame

    def to_card(self) -> Any:
        """What goes with the last beat; to be read when that is there."""
        return struct(VERDICT).unpack(int(self.dut.rx_out_verdict.value))


async def at_last_beat(bench: Bench) -> Any:
    """The verdict of the next frame to the card."""
    while True:
        await cocotb.triggers.FallingEdge(bench.dut.clk)
        if int(bench.dut.rx_out_tvalid.value) and int(bench.dut.rx_out_tlast.value):
            return bench.to_card()


@cocotb.test()
async def the_kernel_gets_what_the_card_would_get(dut) -> None:
    bench = await Bench(dut).begin()
    await bench.bus.write(offset("stream.LIMIT"), 0)
    kept = []
    for number in range(30):
        wanted = number % 3 != 1
        frame = await bench.receive(random.choice([60, 64, 300, MAX_FRAME]), wanted=int(wanted))
        if wanted:
            kept.append(frame)
    bench.verdict()
    bench.rx.send(bytes(100), bad=True)
    await bench.rx.drained()
    for frame in kept:
        got = await bench.rx_in.recv()
        assert got == frame
        bench.rx_back.send(got[::-1])
    for frame in kept:
        assert await bench.rx_out.recv() == frame[::-1]
    await bench.receive(MAX_FRAME + 1 + BYTES)
    await wait_cycles(dut, 50)
    assert not bench.rx_in.packets
    assert await bench.read("RX_FRAMES") == len(kept) and await bench.read("RX_OVERFLOW") == 1


@cocotb.test()
@cocotb.parametrize(keeps=[0, 1])
async def what_the_card_is_told(dut, keeps: int) -> None:
    """Of a frame from the kernel what that keeps; of one that goes round it everything; a dropped one is unwanted."""
    bench = await Bench(dut).begin()
    bench.identity(keeps_checksums=keeps, keeps_flow=keeps)
    for drop in (False, True):
        await bench.receive(100)
        bench.rx_back.send(await bench.rx_in.recv(), bad=drop)
        told = await at_last_beat(bench)
        assert (told.wanted, told.checked, told.hashed, told.flow, told.hash) == (int(not drop), keeps, keeps, 2, 5)
    assert await bench.bus.write(offset("stream.CONTROL"), 0) == OKAY
    await bench.receive(100)
    told = await at_last_beat(bench)
    assert (told.wanted, told.checked, told.hashed) == (1, 1, 1)
    assert await bench.read("RX_DROPPED") == 1 and await bench.read("RX_ROUND") == 1


@cocotb.test()
async def a_rule_says_which_way_a_frame_takes(dut) -> None:
    """Before the setting, which holds for frames about which no rule says so."""
    bench = await Bench(dut).begin()
    rounds = 0
    for setting in (0, 1):
        assert await bench.bus.write(offset("stream.CONTROL"), setting) == OKAY
        for choice, through in (("AS_SET", setting), ("THROUGH", 1), ("AROUND", 0), ("THROUGH", 1)):
            frame = await bench.receive(random.randrange(60, 300), stream=constant(f"card_pkg::STREAM_{choice}"))
            if through:
                assert await bench.rx_in.recv() == frame
                bench.rx_back.send(frame)
            assert await bench.rx_out.recv() == frame and not bench.rx_in.packets
            rounds += not through
    assert await bench.read("RX_ROUND") == rounds


@cocotb.test()
async def a_full_store_loses_frames_that_are_counted(dut) -> None:
    """The kernel takes nothing, without a limit; every frame that was not lost comes when it does."""
    bench = await Bench(dut).begin()
    await bench.bus.write(offset("stream.LIMIT"), 0)
    bench.rx_in.stall = 1.0
    await wait_cycles(dut, 20)
    sent = [await bench.receive(MAX_FRAME) for _ in range(60 if BYTES == 8 else 160)]
    lost = await bench.read("RX_OVERFLOW")
    assert 0 < lost < len(sent)
    bench.rx_in.stall = 0.0
    await wait_cycles(dut, 20_000)
    assert [bytes(frame) for frame, _ in bench.rx_in.packets] == sent[: len(sent) - lost]


@cocotb.test()
async def the_line_sees_whole_frames(dut) -> None:
    """Of a sent frame that the kernel does not end, nothing; of one that comes in pieces nothing before its end."""
    bench = await Bench(dut).begin()
    frame = random.randbytes(20 * BYTES)
    bench.tx.send(frame)
    got = await bench.tx_in.recv()
    assert got == frame
    for at in range(0, len(frame), BYTES):
        assert not int(dut.tx_out_tvalid.value)
        last = at + BYTES == len(frame)
        bench.tx_back._enqueue((int.from_bytes(frame[at : at + BYTES], "little"), (1 << BYTES) - 1, int(last), 0))
        await wait_cycles(dut, 10)
    assert await bench.tx_out.recv() == frame
    bench.tx.send(frame)
    await bench.tx_in.recv()
    bench.tx_back._enqueue((int.from_bytes(frame[:BYTES], "little"), (1 << BYTES) - 1, 0, 0))
    await wait_cycles(dut, 2 * LIMIT)
    assert await bench.read("STATUS") == 1 | 2 | constant("stream_pkg::CUT_LATE") << 8
    assert await bench.read("TX_LOST") == 1 and int(dut.kernel_rst.value)
    behind = random.randbytes(200)
    bench.tx.send(behind)
    assert await bench.tx_out.recv() == behind


@cocotb.test()
async def a_fault_in_one_direction_cuts_both(dut) -> None:
    bench = await Bench(dut).begin()
    await bench.receive(200)
    bench.tx.send(bytes(60))
    await bench.tx.drained()
    await bench.rx_in.recv()
    await bench.tx_in.recv()
    bench.rx_back._enqueue((0, 0, 1, 0))
    await wait_cycles(dut, 50)
    assert await bench.read("STATUS") == 1 | constant("stream_pkg::CUT_MALFORMED") << 8
    assert await bench.read("RX_LOST") == await bench.read("TX_LOST") == await bench.read("CUTS") == 1
    assert int(dut.idle.value) and not bench.tx_out.packets
    received = await bench.receive(200)
    assert await bench.rx_out.recv() == received
    assert await bench.bus.write(offset("stream.COMMAND"), 1) == OKAY
    await wait_cycles(dut, 30)
    assert not int(dut.kernel_rst.value) and await bench.read("CUTS") == 1
    received = await bench.receive(200)
    assert await bench.rx_in.recv() == received


@cocotb.test()
async def registers(dut) -> None:
    bench = await Bench(dut).begin()
    found = [await bench.read(name) for name in ("TYPE", "NEXT", "KERNEL_VERSION", "NAME", "CONTROL", "LIMIT")]
    assert found == [0x5354524D, 0xB100, 3 << 16, int.from_bytes(b"test", "little"), 3, LIMIT]
    assert [(await bench.bus.read(0x100 + 4 * i))[0] for i in range(3)] == [0x54455354, 7, 0x10000]
    assert await bench.bus.read(0x10C) == (0, DECERR)
    # The kernel's own: no answer, then at once none, until its reset; after that they are asked for again.
    for _ in range(2):
        assert await bench.bus.read(0x110) == (0, SLVERR)
        assert await bench.bus.write(0x110, 1) == SLVERR
    assert not int(dut.kernel_ctrl_arvalid.value)
    assert await bench.read("LIMIT") == LIMIT
    await bench.bus.write(offset("stream.COMMAND"), 1)
    assert await bench.bus.read(0x110) == (0, SLVERR)  # in reset
    await wait_cycles(dut, 30)
    kernel = Slave(dut, "kernel_ctrl")
    assert await bench.bus.write(0x118, 0x1234) == OKAY
    assert await bench.bus.read(0x118) == (0x1234, OKAY)
    assert kernel.words == {0x118: 0x1234}
    bench.identity(block_type=0)
    assert await bench.read("NEXT") == 0x10000 and await bench.bus.read(0x100) == (0, DECERR)


@pytest.mark.parametrize("width", some(WIDTHS))
def test_stream_plane(width: int) -> None:
    streams: dict[str, Any] = {"rx": AxisSinkPort(width), "rx_out": AxisSourcePort(width), "tx": AxisSinkPort(width)}
    streams |= {"tx_out": AxisSourcePort(width), "kernel_rx_in": AxisSourcePort(width), "kernel_rx_out": AxisSinkPort(width)}
    streams |= {"kernel_tx_in": AxisSourcePort(width), "kernel_tx_out": AxisSinkPort(width)}
    run(
        "stream_plane",
        __file__,
        params={"DATA_W": width, "MAX_FRAME": MAX_FRAME, "PAGE": 0xB, "NEXT": 0x10000},
        ports={
            "line_rst": Plain("input", "logic"),
            "rx_verdict": Plain("input", VERDICT),
            "rx_out_verdict": Plain("output", VERDICT),
            "kernel_rst": Plain("output", "logic"),
            "kernel_ctrl": AxilMaster(12),
            "identity": Plain("input", "stream_pkg::identity_t"),
            "bus": AxilSlave(12),
            "to_log": Plain("output", "event_log_pkg::log_event_t"),
            "idle": Plain("output", "logic"),
            **streams,
        },
        random_state=True,
        env={"WIDTH": str(width), **at_width(width, "would_get|is_told|full_store|whole_frames")},
    )
