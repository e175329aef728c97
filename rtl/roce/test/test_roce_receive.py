# SPDX-License-Identifier: Apache-2.0
"""roce_receive (roce_rx, roce_responder, roce_mr): frames in; memory, acknowledgements and completions out, against a model."""

from __future__ import annotations

import random

import cocotb
import pytest
from cocotb.triggers import RisingEdge
from nacelle_tb.long import LONG, alternately, some
from nacelle_tb.roce import Frame, atomiceth, op, reth
from nacelle_tb.streams import wait_cycles
from receive_bench import BASE, QPS, RQ_DEPTH, Bench, build_and_run, one_qp, refused, respond, send, write
from receive_model import ALL, RIGHTS, Qp, acknowledgement


@cocotb.test()
@cocotb.parametrize(code=[1, 2, 3, 4, 5])
async def every_form_at_every_mtu(dut, code: int) -> None:
    bench, rkey = await one_qp(dut, 0.1, 0xFFFFFA, code)
    mtu = 128 << code
    psn = 0xFFFFFA  # the numbers wrap on the way
    for message in (write, send):
        for size in (0, 1, mtu - 1, mtu, mtu + 1, 2 * mtu, 2 * mtu + 5):
            for imm in (None, 0x80C0FFEE):
                await bench.receive(2, BASE + 0x8000 + random.randrange(64), 3 * mtu, random.getrandbits(16))
                where = (BASE + random.randrange(64), rkey) if message is write else ()
                frames = list(message(2, psn, mtu, *where, random.randbytes(size), imm, solicited=random.random() < 0.5))
                psn += len(frames)
                bench.send(*frames)
                await bench.quiet()
                if message is write and imm is None:  # took no receive: take it with a zero-length WRITE
                    bench.send(*write(2, psn, mtu, 0, 0, b"", 1))
                    psn += 1
        await bench.compare()
    assert bench.counts["rx_write_requests"] == 21 and bench.counts["rx_send_requests"] == 14


@cocotb.test()
async def a_duplicate_is_acknowledged_and_not_executed(dut) -> None:
    bench, rkey = await one_qp(dut)
    bench.send(*write(2, 100, 256, BASE, rkey, bytes(256)), *write(2, 101, 256, BASE + 256, rkey, bytes(256)))
    for psn, ackreq in ((100, True), (101, False), (101 - (1 << 23) + 1, True)):
        bench.send(Frame(op("RC_RDMA_WRITE_ONLY"), 2, psn % (1 << 24), b"x" * 256, reth(BASE, rkey, 256), ackreq=ackreq))
    assert bench.model.responds[2:] == [acknowledgement(2, 101, 2)] * 3
    await bench.compare()
    assert bench.content(BASE, 512) == bytes(512)


@cocotb.test()
async def a_gap_is_reported_once(dut) -> None:
    bench, rkey = await one_qp(dut, psn=0xFFFFFF)
    packets = [next(write(2, 0xFFFFFF + i, 256, BASE + i, rkey, bytes([i]))) for i in range(5)]
    bench.send(packets[0], *packets[2:], packets[2])
    assert bench.model.responds[1:] == [acknowledgement(2, 0, 1, op("SYNDROME_NAK_PSN_SEQ"))]
    await bench.compare()
    bench.send(packets[1], packets[4], packets[3], packets[2], packets[3], packets[4])
    await bench.compare()
    assert bench.content(BASE, 5) == bytes(range(5))


WRONG_AFTER = {
    None: ["SEND_MIDDLE", "SEND_LAST", "SEND_LAST_WITH_IMM", "RDMA_WRITE_MIDDLE", "RDMA_WRITE_LAST", "RDMA_WRITE_LAST_WITH_IMM"],
    "RC_SEND_FIRST": ["SEND_FIRST", "SEND_ONLY", "SEND_ONLY_WITH_IMM", "RDMA_WRITE_FIRST", "RDMA_WRITE_MIDDLE", "RDMA_WRITE_LAST",
                      "RDMA_WRITE_LAST_WITH_IMM", "RDMA_WRITE_ONLY", "RDMA_WRITE_ONLY_WITH_IMM"],
    "RC_RDMA_WRITE_FIRST": ["RDMA_WRITE_FIRST", "RDMA_WRITE_ONLY", "RDMA_WRITE_ONLY_WITH_IMM", "SEND_FIRST", "SEND_MIDDLE",
                            "SEND_LAST", "SEND_LAST_WITH_IMM", "SEND_ONLY", "SEND_ONLY_WITH_IMM"],
}  # fmt: skip


@cocotb.test()
async def opcodes_out_of_sequence_are_refused(dut) -> None:
    bench, rkey = await one_qp(dut)
    for start, wrong in WRONG_AFTER.items():
        for name in wrong:
            await bench.receive(2, BASE, 4096, 1)
            await bench.receive(2, BASE, 4096, 2)
            begin = [Frame(op(start), 2, 100, bytes(256), reth(BASE, rkey, 512) if "WRITE" in start else b"")] if start else []
            ext = reth(BASE, rkey, 256) if "WRITE" in name else b""
            frames = [*begin, Frame(op("RC_" + name), 2, 100 + len(begin), bytes(256), ext)]
            await refused(bench, frames, "SYNDROME_NAK_INVALID_REQ")
    for opcode in (0x15, 0x18, 0x1F):  # of no service
        await refused(bench, [Frame(opcode, 2, 100, b"", reth(BASE, rkey, 8))], "SYNDROME_NAK_INVALID_REQ")


@cocotb.test()
async def wrong_lengths_are_refused(dut) -> None:
    bench, rkey = await one_qp(dut)
    first = Frame(op("RC_RDMA_WRITE_FIRST"), 2, 100, bytes(256), reth(BASE, rkey, 600))

    def then(name: str, size: int, psn: int = 101) -> Frame:
        return Frame(op("RC_RDMA_WRITE_" + name), 2, psn, bytes(size))

    middle = then("MIDDLE", 256)
    for frames in (
        [first, then("MIDDLE", 255)], [first, then("MIDDLE", 257)], [first, then("MIDDLE", 0)],
        [first, middle, then("LAST", 0, 102)], [first, middle, then("LAST", 257, 102)],
        [first, middle, then("LAST", 87, 102)], [first, middle, then("LAST", 89, 102)],         # the sum: 600
        [first, middle, then("MIDDLE", 256, 102)], [first, then("LAST", 256)],
        [Frame(op("RC_RDMA_WRITE_FIRST"), 2, 100, bytes(256), reth(BASE, rkey, 256))],          # nothing left for LAST
        [Frame(op("RC_RDMA_WRITE_FIRST"), 2, 100, bytes(255), reth(BASE, rkey, 512))],
        [Frame(op("RC_RDMA_WRITE_ONLY"), 2, 100, bytes(257), reth(BASE, rkey, 257))],
        [Frame(op("RC_RDMA_WRITE_ONLY"), 2, 100, bytes(9), reth(BASE, rkey, 8))],
        [Frame(op("RC_RDMA_WRITE_ONLY"), 2, 100, bytes(9), reth(BASE, rkey, 10))],
        [Frame(op("RC_RDMA_WRITE_ONLY"), 2, 100, bytes(9), reth(BASE, rkey, 0))],
        [Frame(op("RC_RDMA_WRITE_FIRST"), 2, 100, bytes(256), reth(BASE, rkey, (1 << 31) + 1))],
    ):  # fmt: skip
        await refused(bench, frames, "SYNDROME_NAK_INVALID_REQ")


@cocotb.test()
async def a_send_longer_than_its_receive_is_refused(dut) -> None:
    bench, _ = await one_qp(dut)
    for room, size in ((0, 1), (99, 100), (255, 256), (256, 257), (511, 512), (512, 513), (700, 1000)):
        await bench.receive(2, BASE, room, room)
        frames = list(send(2, 100, 256, random.randbytes(size)))
        count = next(n for n in range(1, 9) if sum(len(f.payload) for f in frames[:n]) > room)
        await refused(bench, frames[:count], "SYNDROME_NAK_INVALID_REQ")
    for size in (0, 99, 256, 512):
        await bench.receive(2, BASE, size, size)
        bench.send(*send(2, bench.model.qps[2].epsn, 256, random.randbytes(size)))
        await bench.compare()


@cocotb.test()
async def keys_and_bounds_are_enforced(dut) -> None:
    bench, _ = await one_qp(dut)
    await bench.setup(3, 0)
    start, size = 0x20_0003, 1000
    rkey = await bench.register(2, start, size)
    readable = await bench.register(2, start, size, ALL - {"remote_write"})
    foreign = await bench.register(3, start, size)
    stale = await bench.register(2, start, size)
    await bench.deregister(stale)
    top = await bench.register(2, (1 << 40) - 4096, 4096)
    for bit in range(32):
        await refused(bench, list(write(2, 100, 256, start, rkey ^ (1 << bit), b"x")), "SYNDROME_NAK_REM_ACCESS")
    for va, length, key in (
        (start - 1, 1, rkey), (start - 1, 2, rkey), (start + size, 1, rkey), (start + size - 1, 2, rkey), (start, size + 1, rkey),
        (start + (1 << 40), 1, rkey), (start + (1 << 63), 1, rkey), ((1 << 64) - 1, 1, rkey), ((1 << 64) - 1, start + 5, rkey),
        (start, (1 << 31), rkey), (start + 500, (1 << 31) - 1, rkey),
        ((1 << 40) - 1, 2, top), (0, 1, top), ((1 << 40) - 4097, 1, top), (1 << 40, 1, top),
        (start, 1, readable), (start, 1, foreign), (start, 1, stale), (0, 1, 0),
    ):  # fmt: skip
        only = length <= 256
        name, payload = ("RC_RDMA_WRITE_ONLY", bytes(length)) if only else ("RC_RDMA_WRITE_FIRST", bytes(256))
        await refused(bench, [Frame(op(name), 2, 100, payload, reth(va, key, length))], "SYNDROME_NAK_REM_ACCESS")
    assert not bench.memory
    for va, data, key in (
        (start, b"first", rkey), (start + size - 1, b"l", rkey), (start, bytes(size), rkey), ((1 << 40) - 4096, bytes(4096), top),
        (0xDEAD << 48, b"", 0),  # zero length: no check
    ):  # fmt: skip
        bench.send(*write(2, bench.model.qps[2].epsn, 256, va, key, data))
    await bench.compare()


@cocotb.test()
async def without_a_receive_the_sender_must_wait(dut) -> None:
    bench, rkey = await one_qp(dut)
    rnr = op("SYNDROME_RNR_NAK") + 12
    data = random.randbytes(300)
    for frames in (list(send(2, 100, 256, data)), list(write(2, 102, 256, BASE, rkey, data, 7))):
        bench.send(*frames, *frames)
        assert [r[3] for r in bench.model.responds].count(rnr) == 2
        await bench.compare()
        await bench.receive(2, BASE + 0x1000, 300, frames[0].psn)
        bench.send(*frames)
        await bench.compare()
    assert bench.content(BASE, 300) == bench.content(BASE + 0x1000, 300) == data


@cocotb.test()
async def what_is_not_for_a_live_qp_is_dropped(dut) -> None:
    bench, rkey = await one_qp(dut, 0.2)
    good = Frame(op("RC_RDMA_WRITE_ONLY"), 2, 100, b"x", reth(BASE, rkey, 1), ackreq=True)
    for change in (
        {"qpn": 0}, {"qpn": 3}, {"qpn": 2 + QPS}, {"qpn": 2 + 1024}, {"qpn": 0xFFFFFF}, {"src": "10.0.0.3"}, {"src": "11.0.0.2"},
        {"tver": 1}, {"pkey": 0x1234}, {"opcode": 0x24}, {"opcode": op("UD_SEND_ONLY")}, {"qpn": 1}, {"opcode": 0xC0},
    ):  # fmt: skip
        bench.send(Frame(**{**vars(good), **change}))
    assert not bench.model.responds
    await bench.compare()
    bench.send(Frame(**{**vars(good), "pkey": 0x7FFF, "migreq": True}))
    await bench.compare()


@cocotb.test()
@cocotb.parametrize(stall=alternately([0.0, 0.4]))
async def responses_go_to_the_requester(dut, stall: float) -> None:
    bench, rkey = await one_qp(dut, stall)
    names = [f"RDMA_READ_RESPONSE_{form}" for form in ("FIRST", "MIDDLE", "LAST", "ONLY")] + ["ACKNOWLEDGE", "ATOMIC_ACKNOWLEDGE"]
    psn = 100
    for _ in range(60):
        src, qpn = random.choice((*[("10.0.0.2", 2)] * 4, ("10.0.0.9", 2), ("10.0.0.2", 4), ("10.0.0.2", 2 + QPS)))
        name = random.choice(names)
        payload = random.randbytes(random.choice((0, 1, 64, 300))) if "READ" in name else b""
        ext = b"" if "MIDDLE" in name else random.randbytes(12)
        ecn = random.randrange(4)
        bench.send(Frame(op(f"RC_{name}"), qpn, random.getrandbits(24), payload, ext, src=src, ecn=ecn))
        if random.random() < 0.5:  # between requests
            bench.send(*write(2, psn, 256, BASE, rkey, b"between"))
            psn += 1
    assert len(bench.model.responses) == 60 and bench.model.pulses["ecn_marked"] > 3
    await bench.compare()


@cocotb.test()
async def marks_and_cnps_of_the_peer_are_noted(dut) -> None:
    bench, rkey = await one_qp(dut)
    good = Frame(op("RC_RDMA_WRITE_ONLY"), 2, 100, b"x", reth(BASE, rkey, 1))
    bench.send(*(Frame(**{**vars(good), "ecn": ecn, "psn": 100 + ecn}) for ecn in range(4)))
    cnp = Frame(op("CNP"), 2, 0, b"", bytes(16))
    for change in ({}, {"src": "10.0.0.3"}, {"qpn": 3}, {"qpn": 2 + QPS}, {"ecn": 3}, {"pkey": 5}):
        bench.send(Frame(**{**vars(cnp), **change}))
    bench.send(Frame(**{**vars(good), "src": "10.0.0.3", "ecn": 3}))
    assert bench.model.pulses == {"active": 6, "ecn_marked": 2, "cnp": 2}
    await bench.compare()
    await bench.modify(2, "ERR")
    bench.send(cnp)
    await bench.compare()


@cocotb.test()
async def an_acknowledgement_says_that_the_data_is_visible(dut) -> None:
    bench, rkey = await one_qp(dut)
    await bench.receive(2, BASE, 64, 1)
    bench.memory_delay = 150
    bench.send(*write(2, 100, 256, BASE, rkey, b"first"), *write(2, 101, 256, 0, 0, b"", 5))
    bench.send(Frame(op("RC_RDMA_READ_REQUEST"), 2, 102, b"", reth(BASE, rkey, 5)))
    await wait_cycles(dut, 140)
    assert not bench.respond.received and not bench.completion.received
    await bench.compare()


@cocotb.test()
async def an_acknowledgement_is_handed_over_before_its_completion(dut) -> None:
    bench, _ = await one_qp(dut)
    await bench.receive(2, BASE, 64, 1)
    bench.respond.stall = 1.0
    bench.send(*send(2, 100, 256, b"order"))
    await wait_cycles(dut, 200)
    assert bench.content(BASE, 5) == b"order" and not bench.completion.received
    bench.respond.stall = 0.0
    await bench.compare()


@cocotb.test()
async def memory_that_refuses_costs_the_qp(dut) -> None:
    bench, rkey = await one_qp(dut)
    for qpn in (2, 3):
        if qpn == 3:
            await bench.setup(3, 100, 1)
        await bench.receive(qpn, BASE + 0x4000 * qpn, 1024, qpn)
    await bench.receive(2, BASE, 64, 77)
    bench.refuse.add(BASE + 0x8100)
    bench.memory_delay = 400  # all of it is decided before memory refuses
    data = random.randbytes(700)
    bench.send(*write(2, 100, 256, BASE, rkey, b"kept"))
    bench.send(*send(2, 101, 256, data), *send(3, 100, 256, data))
    bench.send(*write(2, 104, 256, BASE + 8, rkey, b"late"))
    await bench.quiet()
    answers = [respond(r) for r in bench.respond.received]
    # The refused packet, the second of three, is named; nothing of the QP is answered behind it.
    nak = acknowledgement(2, 102, 1, op("SYNDROME_NAK_REM_OP"))
    assert answers == [acknowledgement(2, 100, 1), nak, acknowledgement(3, 102, 1)]
    flushed = (2, 77, op("WC_WR_FLUSH_ERR"))
    done = [(c.qpn, c.wr_id, c.status) for c in bench.completion.received]
    assert [c for c in done if c[0] == 2] == [(2, 2, op("WC_LOC_PROT_ERR")), flushed]
    assert [c for c in done if c[0] == 3] == [(3, 3, op("WC_SUCCESS"))]
    fatal = (op("EVENT_QP_FATAL"), 2, op("WC_LOC_PROT_ERR"))
    assert [(e.kind, e.qpn, e.status) for e in bench.qp_event.received if e.kind != op("EVENT_COMM_EST")] == [fatal]
    assert bench.counts["resp_local_protection_errors"] == 1
    assert bench.content(BASE + 0xC000, 700) == data
    bench.send(*write(2, 105, 256, BASE, rkey, b"lost"))
    await bench.quiet()
    assert bench.content(BASE, 4) == b"kept" and bench.counts["drop_qp_state"] == 1
    # A reset clears it.
    await bench.setup(2, 7, 1)
    bench.respond.received.clear()
    bench.completion.received.clear()
    await bench.receive(2, BASE, 64, 9)
    bench.send(*send(2, 7, 256, b"fine"))
    await bench.quiet()
    assert [c.status for c in bench.completion.received] == [op("WC_SUCCESS")]
    assert [respond(r) for r in bench.respond.received] == [acknowledgement(2, 7, 1)]


@cocotb.test()
async def a_message_whose_memory_refuses_ends_its_receive_once(dut) -> None:
    bench, _ = await one_qp(dut)
    await bench.receive(2, BASE, 1024, 5)
    await bench.receive(2, BASE, 1024, 6)
    bench.refuse.add(BASE)
    bench.send(*list(send(2, 100, 256, bytes(700)))[:2])
    await bench.quiet()
    done = [(c.wr_id, c.status) for c in bench.completion.received]
    assert done == [(5, op("WC_LOC_PROT_ERR")), (6, op("WC_WR_FLUSH_ERR"))]
    assert [respond(r) for r in bench.respond.received] == [acknowledgement(2, 100, 0, op("SYNDROME_NAK_REM_OP"))]


@cocotb.test()
async def nothing_of_a_qp_is_under_way_after_its_reset(dut) -> None:
    bench, rkey = await one_qp(dut, 0.3)
    bench.memory_delay = -1
    for round_ in range(12):
        await bench.receive(2, BASE + 0x8000, 1024, round_)
        message = send(2, 100, 256, random.randbytes(900)) if round_ % 2 else write(2, 100, 256, BASE, rkey, random.randbytes(900))
        frames = list(message)
        bench.send(*frames[: random.randrange(1, 5)])
        await wait_cycles(dut, random.randrange(60))
        assert await bench.command("QP_RESET", 2) == 1
        before = dict(bench.memory)
        responds, completions = len(bench.respond.received), len(bench.completion.received)
        await bench.quiet()
        assert bench.memory == before
        assert (len(bench.respond.received), len(bench.completion.received)) == (responds, completions)
        # Set up again: the message in progress and the receive are discarded.
        await bench.setup(2, 100, 1)
        seen = len(bench.respond.received)
        bench.frame.send(next(send(2, 100, 256, b"")).rx())
        await bench.quiet()
        assert bench.respond.received[seen].aeth.syndrome == op("SYNDROME_RNR_NAK") + 12


@cocotb.test()
async def idle_ends_only_with_something_new(dut) -> None:
    """From the cycle in which something comes until all that follows from it has left, there is no idle cycle."""
    bench, rkey = await one_qp(dut)
    bench.memory_delay = 20
    bench.refuse = {BASE + 64}
    inputs = [getattr(dut, f"{name}valid") for name in ("frame_", "payload_t", "done0_", "wqe_", "qp_cmd_", "failed_", "mr_cmd_")]
    outputs = [getattr(dut, f"{name}valid") for name in ("respond_", "write_", "completion_", "qp_answer_", "qp_event_", "mr_rsp_")]

    async def watch() -> None:
        was = True
        while True:
            await RisingEdge(dut.clk)
            idle = bool(int(dut.idle.value))
            assert idle or not was or any(int(valid.value) for valid in inputs), "idle ends by itself"
            assert not idle or not any(int(valid.value) for valid in outputs), "idle, and something comes"
            was = idle

    watching = cocotb.start_soon(watch())
    for frame in (
        Frame(op("RC_RDMA_WRITE_ONLY"), 2, 100, b"x", reth(BASE, rkey, 1), ackreq=True),
        Frame(op("RC_RDMA_WRITE_ONLY"), 2, 101, b"x", reth(BASE, rkey, 1)),
        Frame(op("RC_SEND_ONLY"), 2, 102, b"no receive"),
        Frame(op("RC_RDMA_WRITE_ONLY"), 2, 100, b"again", reth(BASE, rkey, 5), ackreq=True),
        Frame(op("RC_RDMA_WRITE_ONLY"), 2, 100, b"of nobody", reth(BASE, rkey, 9), src="10.9.9.9"),
        Frame(op("RC_RDMA_WRITE_ONLY"), 77, 100, b"to nobody", reth(BASE, rkey, 9)),
        Frame(op("RC_RDMA_READ_REQUEST"), 2, 102, b"", reth(BASE, rkey, 8)),
    ):
        bench.send(frame)
        await bench.compare()
    await bench.receive(2, BASE, 64, 1)
    await bench.receive(2, BASE, 64, 2)
    bench.send(Frame(op("RC_SEND_ONLY"), 2, 103, b"with a receive", ackreq=True))
    await bench.compare()
    await bench.register(2, BASE, 1)
    await bench.modify(2, "SQD")
    await bench.deregister(rkey)
    await bench.quiet()
    rkey = await bench.register(2, BASE, 0x1000)
    bench.frame.send(Frame(op("RC_RDMA_WRITE_ONLY"), 2, 104, b"x", reth(BASE + 64, rkey, 1)).rx())  # memory refuses
    bench.payload.send(b"x")
    await bench.quiet()
    assert [c.wr_id for c in bench.completion.received] == [2]  # flushed
    bench.failed.send(qpn=2)
    await bench.quiet()
    assert not watching.done()


@cocotb.test()
async def commands_for_unknown_qps_fail(dut) -> None:
    bench, _ = await one_qp(dut)
    for qpn in (0, 1, 2 + QPS, 0xFFFFFF):
        for name in ("QP_SETUP", "QP_MODIFY", "QP_RESET"):
            assert await bench.command(name, qpn, "RTS") == 0
    await bench.compare()


@cocotb.test()
async def a_receive_that_cannot_be_posted_comes_back(dut) -> None:
    bench, _ = await one_qp(dut)
    for i in range(RQ_DEPTH):
        await bench.receive(2, BASE, 64, i)
    bad = (2, 3, 1, 2 + QPS)
    for i, qpn in enumerate(bad):
        bench.post.send(opcode=op("WR_RECV"), qpn=qpn, wr_id=100 + i)
    got = [await bench.completion.recv() for _ in bad]
    assert [(c.qpn, c.wr_id, c.status) for c in got] == [(qpn, 100 + i, op("WC_GENERAL_ERR")) for i, qpn in enumerate(bad)]
    for i in range(RQ_DEPTH):
        bench.send(*send(2, 100 + i, 256, b"x"))
    bench.send(*send(2, 100 + RQ_DEPTH, 256, b"x"))
    await bench.compare()


@cocotb.test()
async def a_packet_every_two_cycles(dut) -> None:
    bench = Bench(dut)
    await bench.start()
    for qpn in range(2, 2 + QPS):
        await bench.setup(qpn, 0, 3)
        for i in range(RQ_DEPTH):
            await bench.receive(qpn, BASE + 0x1000 * qpn + 64 * i, 64, i)
    rkey = await bench.register(2, BASE, 0x8000)
    size = min(64, bench.payload.bytes_per_beat * 2)
    many = [next(send(2 + i % QPS, i // QPS, 1024, random.randbytes(size))) for i in range(QPS * RQ_DEPTH)]
    same = [next(write(2, RQ_DEPTH + i, 1024, BASE + 64 * i, rkey, random.randbytes(size))) for i in range(64)]
    for frames in (many, same):
        bench.send(*frames)
        await bench.quiet()
        cycles = list(bench.respond.cycles)
        assert len(cycles) == 64
        assert cycles[-1] - cycles[0] <= 2 * 63 + 2, f"{cycles[-1] - cycles[0]} cycles for 64 packets"
        await bench.compare()


@cocotb.test()
async def payload_flows_without_bubbles(dut) -> None:
    bench, rkey = await one_qp(dut, mtu=5)
    frames = list(write(2, 100, 4096, BASE, rkey, random.randbytes(8 * 4096)))
    bench.send(*frames)
    while not int(dut.data_tvalid.value):
        await RisingEdge(dut.clk)
    beats = 8 * 4096 // bench.data.bytes_per_beat
    for beat in range(1, beats):
        await RisingEdge(dut.clk)
        assert int(dut.data_tvalid.value), f"a bubble before beat {beat}"
    await bench.compare()
    assert bench.data.beats == beats


async def cycles_until(dut, signal: str) -> int:
    """Cycles from this one until `signal` is high."""
    cycles = 0
    while not int(getattr(dut, signal).value):
        await RisingEdge(dut.clk)
        cycles += 1
    return cycles


@cocotb.test()
async def latency(dut) -> None:
    bench, _ = await one_qp(dut)
    await bench.receive(2, BASE, 64, 1)
    bench.send(*send(2, 100, 256, b"fast"))
    await cycles_until(dut, "frame_valid")
    assert await cycles_until(dut, "write_valid") == 10
    await cycles_until(dut, "done0_valid")
    assert await cycles_until(dut, "respond_valid") == 1
    assert await cycles_until(dut, "completion_valid") == 1
    await bench.compare()


@cocotb.test()
async def completions_that_nobody_takes_are_kept(dut) -> None:
    bench = Bench(dut)
    await bench.start()
    bench.completion.stall = 1.0
    for qpn in range(2, 2 + QPS):
        await bench.setup(qpn, 0, 1)
        for i in range(RQ_DEPTH):
            await bench.receive(qpn, BASE + 0x1000 * qpn + 64 * i, 64, i)
    rkey = await bench.register(3, BASE, 64)
    bench.send(*(next(send(2 + i % QPS, i // QPS, 256, b"full")) for i in range(QPS * RQ_DEPTH)))
    bench.send(*write(3, RQ_DEPTH, 256, BASE, rkey, b"still here"))
    await wait_cycles(dut, 1000)
    # No answer passes a completion before it; none is lost, and all follow when completions are taken again.
    assert 0 < len(bench.respond.received) < QPS * RQ_DEPTH and not bench.completion.received
    bench.completion.stall = 0.0
    await bench.compare()
    assert bench.content(BASE, 10) == b"still here"


def traffic(bench: Bench, keys: dict[int, int]) -> Frame:
    """The next frame of some QP: mostly right, sometimes wrong in some way."""
    model = bench.model
    qpn = random.choice(list(model.qps))
    qp = model.qps[qpn]
    area = BASE + qpn * 0x10000
    kind = qp.message or random.choice(("SEND", "SEND", "WRITE", "WRITE", "READ", "ATOMIC"))
    if kind in ("READ", "ATOMIC"):
        return spoiled(bench, read_or_atomic(qp, qpn, kind, area, keys[qpn]))
    name = "RC_SEND" if kind == "SEND" else "RC_RDMA_WRITE"
    if qp.message is None:
        sizes = (0, 1, random.randrange(64), qp.mtu - 1, qp.mtu, qp.mtu + 1, random.randrange(3 * qp.mtu), 2 * qp.mtu)
        total, offset = random.choice(sizes), 0
        bench.totals[qpn] = total
    else:
        total, offset = bench.totals[qpn], qp.offset
    left = total - offset
    last = left <= qp.mtu
    imm = last and random.random() < 0.3
    form = ("ONLY" if last else "FIRST") if qp.message is None else ("LAST" if last else "MIDDLE")
    ext = reth(area + random.randrange(0x1000), keys[qpn], total) if kind == "WRITE" and qp.message is None else b""
    if imm:
        form += "_WITH_IMM"
        ext += random.randbytes(4)
    elif last and kind == "SEND" and random.random() < 0.2:
        form += "_WITH_INVALIDATE"
        ext = random.choice([*bench.model.regions]).to_bytes(4, "big")
    frame = {
        "opcode": op(f"{name}_{form}"), "qpn": qpn, "psn": qp.epsn, "payload": random.randbytes(min(left, qp.mtu)), "ext": ext,
        "ackreq": random.random() < 0.5, "solicited": random.random() < 0.3, "src": qp.peer, "ecn": random.randrange(4),
    }  # fmt: skip
    return spoiled(bench, frame)


def read_or_atomic(qp: Qp, qpn: int, kind: str, area: int, key: int) -> dict[str, object]:
    """A READ or an atomic."""
    frame = {"qpn": qpn, "psn": qp.epsn, "payload": b"", "src": qp.peer}
    va = area + random.randrange(0x1000)
    if kind == "READ":
        return {**frame, "opcode": op("RC_RDMA_READ_REQUEST"), "ext": reth(va, key, random.choice((0, 1, 0x1000, 0x3000)))}
    name = random.choice(("RC_COMPARE_SWAP", "RC_FETCH_ADD"))
    operands = (random.getrandbits(64), random.getrandbits(64))
    return {**frame, "opcode": op(name), "ext": atomiceth(va & ~7 if random.random() < 0.95 else va, key, *operands)}


def spoiled(bench: Bench, frame: dict[str, object]) -> Frame:
    """Sometimes the frame is wrong, or another."""
    psn = frame["psn"]
    roll = random.random()
    if roll < 0.06:
        frame["psn"] = (psn - random.randrange(1, 20)) % (1 << 24)
    elif roll < 0.12:
        frame["psn"] = (psn + random.choice((random.randrange(1, 5), random.randrange(1, 200)))) % (1 << 24)
    elif roll < 0.15:
        frame["src"] = "10.9.9.9"
    elif roll < 0.18:
        frame["qpn"] = random.choice((0, 1, 2 + QPS, 0x800002))
    elif roll < 0.21:
        frame.update(opcode=op("RC_ACKNOWLEDGE"), ext=random.randbytes(4), payload=b"", psn=random.getrandbits(24))
    elif roll < 0.23:
        frame.update(opcode=op("CNP"), ext=bytes(16), payload=b"")
    elif roll < 0.235:
        frame.update(opcode=random.randrange(256), ext=random.randbytes(28))
    elif roll < 0.24:
        frame["payload"] += b"!"
    elif roll < 0.245 and frame["ext"]:
        frame["ext"] = random.randbytes(len(frame["ext"]))
    return Frame(**frame)


@cocotb.test()
@cocotb.parametrize(stall=alternately([0.0, 0.3, 0.7]))
async def random_traffic(dut, stall: float) -> None:
    bench = Bench(dut, stall)
    bench.memory_delay = -1 if stall else 0
    bench.totals = {}
    await bench.start()
    qpns = random.sample(range(2, 2 + QPS), 6)
    keys: dict[int, int] = {}

    async def renew(qpn: int) -> None:
        """The queue pair begins anew, with other attributes."""
        pd = random.randrange(3)
        rights = ALL if random.random() < 0.8 else frozenset(random.sample(RIGHTS, 3))
        await bench.setup(
            qpn, random.choice((random.getrandbits(24), 0xFFFFFE)), random.choice((1, 1, 2, 3, 5)), f"10.0.0.{qpn % 250}",
            random.getrandbits(5), random.choice(("INIT", "RTR", "RTS", "RTS", "RTS")), pd, rights,
            selective=random.random() < 0.5, max_rd=random.choice((1, 4, 8)),
        )  # fmt: skip
        owner = random.choice((0, qpn))
        keys[qpn] = await bench.register(owner, BASE + qpn * 0x10000, 0x4000, ALL - {"remote_invalidate"}, pd)
        for _ in range(3):
            await bench.register(owner, BASE, 1, pd=pd)  # to be invalidated

    for qpn in qpns:
        await renew(qpn)
    for _ in range(8):
        for qpn in qpns:
            qp = bench.model.qps[qpn]
            if random.random() < (0.7 if qp.error else 0.1):
                await bench.deregister(keys[qpn])
                await renew(qpn)
            elif random.random() < 0.3:
                await bench.modify(qpn, random.choice(("RTR", "RTS", "RTS", "SQD", "RTS", "ERR")))
            bench.answer_reads(qpn)
            while len(bench.model.qps[qpn].receives) < random.randrange(RQ_DEPTH + 1):
                area = BASE + qpn * 0x10000 + 0x8000 + random.randrange(0x1000)
                await bench.receive(qpn, area, random.choice((100, *[0x3000] * 6)), random.getrandbits(16))
                if bench.model.qps[qpn].error:
                    break
        for _ in range(80):
            bench.send(traffic(bench, keys))
        await bench.compare()


# Nothing but payload beats depends on the width: all tests on the extremes, one on the widths between.
BETWEEN = "random_traffic/stall=0.3"
OF_PEERS = "random_traffic/stall=0.3|what_is_not|responses_go|marks_and|idle_ends"
BUILDS = [(64, None), (512, None), (128, BETWEEN), (256, BETWEEN)]


@pytest.mark.parametrize(("width", "testcase"), some(BUILDS, 2))
def test_roce_receive(width: int, testcase: str | None) -> None:
    build_and_run(__file__, width, testcase)


def test_roce_receive_over_ipv6() -> None:
    build_and_run(__file__, 64, family=6, chosen=OF_PEERS)


@pytest.mark.skipif(not LONG, reason="make test-long has the time; whole devices have 256 queue pairs, too")
def test_roce_receive_of_256_qps() -> None:
    build_and_run(__file__, 64, "random_traffic/stall=0.3", qps=256)
