# SPDX-License-Identifier: Apache-2.0
"""roce_qp_rx_queue: rings of receives, each consumed once and in order; what cannot be posted comes back. Against deques."""

from __future__ import annotations

import random
from collections import deque

import cocotb
from cocotb.triggers import FallingEdge
from nacelle_tb.bench import Plain, Sink, Source, run
from nacelle_tb.long import alternately
from nacelle_tb.roce import op
from nacelle_tb.streams import StreamSink, StreamSource, start, wait_cycles
from nacelle_tb.svtypes import struct

POST, REJECT = "roce_rx_pkg::rx_post_t", "roce_rx_pkg::rx_reject_t"
VIEW, POINTER, RECEIVE = (f"roce_rx_pkg::{name}" for name in ("qp_rx_view_t", "rq_pointer_t", "receive_t"))
SLOT = "roce_pkg::qp_index_t"
QPS, DEPTH = 8, 4


@cocotb.test()
@cocotb.parametrize(stall=alternately([0.0, 0.5]))
async def receives_come_in_order_and_overflow_comes_back(dut, stall: float) -> None:
    post = StreamSource(dut, "post", POST, stall, noise=True)
    reject = StreamSink(dut, "reject", REJECT, stall)
    kick = StreamSink(dut, "kick", "roce_wire_pkg::qpn_t", stall)
    heads = [0] * QPS
    states = [op(f"QPS_{name}") for name in ("INIT", "RTR", "RTS", "RTS", "SQD", "RTS", "ERR", "RESET")]
    for name in ("tail_slot", "read_slot", "read_head"):
        getattr(dut, name).value = 0

    async def view() -> None:  # what the QP table would say
        while True:
            await FallingEdge(dut.clk)
            slot = int(dut.view_slot.value) % QPS
            dut.view.value = struct(VIEW).pack(state=states[slot], rq_head=heads[slot])

    async def peek(slot: int) -> tuple[int, int]:  # tail, receive at the head
        await FallingEdge(dut.clk)
        dut.tail_slot.value, dut.read_slot.value, dut.read_head.value = slot, slot, heads[slot]
        await FallingEdge(dut.clk)
        return int(dut.tail.value), int(dut.receive.value)

    dut.view.value = 0
    await start(dut)
    cocotb.start_soon(view())
    rings: list[deque[int]] = [deque() for _ in range(QPS)]
    for slot in range(QPS):  # rings begin where their tail stands, as QP_SETUP has it
        heads[slot] = (await peek(slot))[0]
    refused, kicked = deque(), deque()
    for _ in range(400):
        slot, opcode = random.randrange(QPS + 1), op(random.choice(("WR_RECV",) * 9 + ("WR_SEND",)))
        fields = {"addr": random.getrandbits(40), "length": random.getrandbits(32), "wr_id": random.getrandbits(16)}
        fields["lkey"] = random.getrandbits(32)
        access = {"denied": random.getrandbits(1), "keyed": random.getrandbits(1), "target": random.getrandbits(2)}
        wqe = {"local_addr": fields["addr"], **{name: fields[name] for name in ("length", "wr_id", "lkey")}}
        post.send(wqe={"opcode": opcode, "qpn": slot + 2, **wqe}, access=access)
        await post.drained()
        await wait_cycles(dut, 3)
        if slot < QPS - 1 and opcode == op("WR_RECV") and len(rings[slot]) < DEPTH:
            rings[slot].append(struct(RECEIVE).pack(**fields, access=access))
            if states[slot] == op("QPS_ERR"):
                kicked.append(slot + 2)
        else:
            refused.append((slot + 2, fields["wr_id"]))
        slot = random.randrange(QPS - 1)
        tail, receive = await peek(slot)
        assert (tail - heads[slot]) % 256 == len(rings[slot])
        if rings[slot]:
            assert receive == rings[slot].popleft()
            heads[slot] = (heads[slot] + 1) % 256
        while refused:
            got = await reject.recv()
            assert (got.qpn, got.wr_id) == refused.popleft()
        while kicked:
            assert await kick.recv() == kicked.popleft()
    assert not reject.received and not kick.received


@cocotb.test()
async def nothing_is_judged_without_room(dut) -> None:
    """The outputs of posts are stopped: the posts wait, and nothing is lost."""
    post = StreamSource(dut, "post", POST, noise=True)
    reject, kick = StreamSink(dut, "reject", REJECT, 1.0), StreamSink(dut, "kick", "roce_wire_pkg::qpn_t", 1.0)
    for name in ("tail_slot", "read_slot", "read_head"):
        getattr(dut, name).value = 0
    dut.view.value = struct(VIEW).pack(state=op("QPS_ERR"))
    await start(dut)
    await FallingEdge(dut.clk)
    dut.view.value = struct(VIEW).pack(state=op("QPS_ERR"), rq_head=int(dut.tail.value))
    for i in range(DEPTH):
        post.send(wqe={"opcode": op("WR_RECV"), "qpn": 2, "wr_id": i})
    for i in range(DEPTH):
        post.send(wqe={"opcode": op("WR_SEND"), "qpn": 2, "wr_id": i})
    await wait_cycles(dut, 3)
    for _ in range(40):
        await FallingEdge(dut.clk)
        assert not int(dut.idle.value)
    assert post.busy
    kick.stall = 0.0
    assert [await kick.recv() for _ in range(DEPTH)] == [2] * DEPTH
    for _ in range(40):
        await FallingEdge(dut.clk)
        assert not int(dut.idle.value)
    reject.stall = 0.0
    assert [(await reject.recv()).wr_id for _ in range(DEPTH)] == list(range(DEPTH))
    await wait_cycles(dut, 4)
    assert int(dut.idle.value) and not kick.received and not reject.received


@cocotb.test()
@cocotb.parametrize(cycles=[0, 1, 2])
async def a_reset_forgets_what_is_judged(dut, cycles: int) -> None:
    """A reset of one cycle, so many cycles after a receive was taken: the receive is neither posted nor comes back."""
    post = StreamSource(dut, "post", POST, noise=True)
    reject, kick = StreamSink(dut, "reject", REJECT), StreamSink(dut, "kick", "roce_wire_pkg::qpn_t")
    for name in ("tail_slot", "read_slot", "read_head"):
        getattr(dut, name).value = 0
    dut.view.value = struct(VIEW).pack(state=op("QPS_RESET"))
    await start(dut)
    await wait_cycles(dut, 4)
    post.send(wqe={"opcode": op("WR_RECV"), "qpn": 2, "wr_id": 1})
    await post.drained()
    await wait_cycles(dut, cycles)
    await FallingEdge(dut.clk)
    dut.rst.value = 1
    await FallingEdge(dut.clk)
    dut.rst.value = 0
    for _ in range(10):
        await FallingEdge(dut.clk)
        assert int(dut.idle.value) and not int(dut.reject_valid.value) and not int(dut.kick_valid.value)
    reject.received.clear()
    assert not kick.received


def test_roce_qp_rx_queue() -> None:
    run(
        "roce_qp_rx_queue",
        __file__,
        params={"QPS": QPS, "RQ_DEPTH": DEPTH},
        ports={
            "post": Sink(POST), "reject": Source(REJECT), "kick": Source("roce_wire_pkg::qpn_t"), "idle": Plain("output", "logic"),
            "view_slot": Plain("output", SLOT), "view": Plain("input", VIEW),
            "tail_slot": Plain("input", SLOT), "tail": Plain("output", POINTER),
            "read_slot": Plain("input", SLOT), "read_head": Plain("input", POINTER), "receive": Plain("output", RECEIVE),
        },
        random_state=True,
    )  # fmt: skip
