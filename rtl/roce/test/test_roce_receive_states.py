# SPDX-License-Identifier: Apache-2.0
"""roce_receive: the states of a queue pair, its events, and its receives when it goes to error."""

from __future__ import annotations

import random

import cocotb
from nacelle_tb.long import alternately
from nacelle_tb.roce import Frame, op, reth
from nacelle_tb.streams import wait_cycles
from receive_bench import BASE, QPS, RQ_DEPTH, Bench, build_and_run, one_qp, send, write
from receive_model import Qp

STATES = ("RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR")


@cocotb.test()
async def every_transition_is_done_or_refused(dut) -> None:
    bench = Bench(dut)
    await bench.start()
    ways = {"INIT": ("INIT",), "RTR": ("RTR",), "RTS": ("RTS",), "SQD": ("RTS", "SQD"), "ERR": ("RTR", "ERR")}
    for start, (first, *rest) in ways.items():
        for target in STATES:
            await bench.setup(2, 100, 1, state=first)
            for state in rest:
                await bench.modify(2, state)
            assert bench.model.qps[2].state == start
            await bench.modify(2, target)
            # Where it is now: what a SETUP says, and what a packet becomes of.
            assert await bench.command("QP_SETUP", 2, "RTS") == 0
            bench.send(Frame(op("RC_RDMA_WRITE_ONLY"), 2, 100, b"", reth(0, 0, 0), ackreq=True))
            await bench.compare()
    await bench.reset(2)
    for target in STATES:
        await bench.modify(2, target)
    for target in ("RESET", "SQD", "SQE", "ERR"):
        assert await bench.command("QP_SETUP", 2, target) == 0
    assert await bench.command("QP_RESET", 2) == 1
    await bench.compare()


@cocotb.test()
async def receives_posted_in_init_are_used_in_rtr(dut) -> None:
    bench = Bench(dut)
    await bench.start()
    await bench.setup(2, 100, 1, state="INIT")
    for i in range(RQ_DEPTH):
        await bench.receive(2, BASE + 64 * i, 64, i)
    bench.send(*send(2, 100, 256, b"too early"))
    await bench.compare()
    for i, state in enumerate(("RTR", "RTS", "SQD", "RTS")):
        await bench.modify(2, state)
        bench.send(*send(2, 100 + i, 256, b"data"))
        await bench.compare()


@cocotb.test()
async def the_first_request_taken_is_told_once(dut) -> None:
    bench = Bench(dut)
    await bench.start()
    for _ in range(3):
        await bench.setup(2, 100, 1, state=random.choice(("RTR", "RTS")))
        bench.send(*send(2, 100, 256, b"no receive"), Frame(op("RC_RDMA_WRITE_ONLY"), 2, 99, b"", reth(0, 0, 0)))
        bench.send(Frame(op("RC_RDMA_WRITE_ONLY"), 2, 101, b"", reth(0, 0, 0)), Frame(op("CNP"), 2, 0, b"", bytes(16)))
        assert not bench.model.events
        await bench.compare()
        for psn in (100, 101, 101, 102):
            bench.send(Frame(op("RC_RDMA_WRITE_ONLY"), 2, psn, b"", reth(0, 0, 0)))
        assert bench.model.events == [(op("EVENT_COMM_EST"), 2, 0)]
        await bench.compare()


@cocotb.test()
@cocotb.parametrize(stall=alternately([0.0, 0.5]))
async def in_error_every_receive_completes_once_and_in_order(dut, stall: float) -> None:
    bench = Bench(dut, stall)
    bench.memory_delay = -1 if stall else 0
    await bench.start()
    for round_ in range(16):
        for qpn in (2, 3, 4):
            await bench.setup(qpn, 100, 1)
            for i in range(random.randrange(RQ_DEPTH + 1)):
                await bench.receive(qpn, BASE + 0x1000 * qpn + 0x100 * i, 1024, 16 * round_ + i)
        for qpn in (2, 3, 4):
            qp: Qp = bench.model.qps[qpn]
            if random.random() < 0.6 and qp.receives:  # a message in progress
                bench.send(Frame(op("RC_SEND_FIRST"), qpn, 100, random.randbytes(256)))
            how = random.choice(("command", "sequence", "key", "length", "response"))
            if how == "command":
                await bench.quiet()
                await bench.modify(qpn, "ERR")
            elif how == "response":
                await bench.quiet()
                bench.model.fail(qpn)
                bench.failed.send(qpn=qpn)
                bench.failed.send(qpn=random.choice((qpn, 5, 1 + QPS)))  # once more, and of one that is not up: nothing
                await bench.quiet()
            elif how == "sequence":
                bench.send(Frame(op(random.choice(("RC_RDMA_WRITE_LAST", "RC_SEND_ONLY"))), qpn, qp.epsn, b"x"))
                if not qp.error:
                    bench.send(Frame(op("RC_RDMA_WRITE_LAST"), qpn, qp.epsn, b"x"))
            elif how == "key":
                bench.send(Frame(op("RC_RDMA_WRITE_ONLY_WITH_IMM"), qpn, qp.epsn, b"x", reth(BASE, 1, 1) + bytes(4)))
            else:
                bench.send(Frame(op("RC_SEND_MIDDLE" if qp.message else "RC_SEND_FIRST"), qpn, qp.epsn, b"x"))
        await bench.compare()
        for _ in range(RQ_DEPTH + 2):  # more than there is room for: each is flushed at once
            for qpn in (2, 3, 4):
                if bench.model.qps[qpn].error:
                    await bench.receive(qpn, BASE, 64, random.getrandbits(16))
                    await wait_cycles(dut, random.choice((0, 100)))
                    await bench.quiet()
        await bench.compare()


@cocotb.test()
async def receives_posted_while_the_queue_is_flushed_keep_their_order(dut) -> None:
    bench = Bench(dut)
    await bench.start()
    for delay in range(24):
        await bench.setup(2, 100, 1)
        for i in range(RQ_DEPTH - 2):
            await bench.receive(2, BASE, 64, i)
        bench.frame.send(Frame(op("RC_SEND_LAST"), 2, 100, b"").rx())  # ends the queue pair
        await wait_cycles(dut, delay)
        for i in range(RQ_DEPTH - 2, RQ_DEPTH):
            bench.post.send(opcode=op("WR_RECV"), qpn=2, wr_id=i)
        await bench.quiet()
        got = [(c.wr_id, c.status) for c in bench.completion.received]
        assert got == [(i, op("WC_WR_FLUSH_ERR")) for i in range(RQ_DEPTH)], f"{delay} cycles later: {got}"
        bench.completion.received.clear()


@cocotb.test()
async def a_receive_posted_while_another_queue_pair_fails_is_flushed(dut) -> None:
    """Its queue pair is in error already; the other goes to error so many cycles before."""
    bench = Bench(dut)
    await bench.start()
    await bench.setup(3, 100, 1)
    await bench.modify(3, "ERR")
    for delay in range(24):
        await bench.setup(2, 100, 1)
        bench.frame.send(Frame(op("RC_SEND_LAST"), 2, 100, b"").rx())
        await wait_cycles(dut, delay)
        bench.post.send(opcode=op("WR_RECV"), qpn=3, wr_id=delay)
        await bench.quiet()
        got = [(c.qpn, c.wr_id, c.status) for c in bench.completion.received]
        assert got == [(3, delay, op("WC_WR_FLUSH_ERR"))], f"{delay} cycles later: {got}"
        bench.completion.received.clear()


@cocotb.test()
async def all_queue_pairs_may_fail_at_once(dut) -> None:
    bench = Bench(dut)
    await bench.start()
    for qpn in range(2, 2 + QPS):
        await bench.setup(qpn, 100, 1)
        for i in range(RQ_DEPTH):
            await bench.receive(qpn, BASE, 64, i)
    bench.send(*(Frame(op("RC_SEND_LAST"), qpn, 100, b"x") for qpn in range(2, 2 + QPS)))
    # A command waits until they are flushed, and passes then.
    await bench.compare()
    assert bench.counts["resp_cqe_flush_error"] == QPS * RQ_DEPTH
    bench.send(*(next(write(qpn, 100, 256, 0, 0, b"")) for qpn in range(2, 2 + QPS)))
    await bench.compare()


@cocotb.test()
async def a_reset_in_the_middle_of_an_error_leaves_nothing(dut) -> None:
    bench, _ = await one_qp(dut, 0.2)
    for _ in range(12):
        for i in range(RQ_DEPTH):
            await bench.receive(2, BASE, 64, i)
        bench.frame.send(Frame(op("RC_SEND_LAST"), 2, 100, b"").rx())
        await wait_cycles(dut, random.randrange(40))
        assert await bench.command("QP_RESET", 2) == 1
        await bench.quiet()
        seen = len(bench.completion.received)
        assert seen in (0, RQ_DEPTH) and all(c.status == op("WC_WR_FLUSH_ERR") for c in bench.completion.received)
        bench.completion.received.clear()
        await bench.setup(2, 100, 1)
        await bench.quiet()
        assert not bench.completion.received
        bench.respond.received.clear()
        bench.frame.send(next(send(2, 100, 256, b"")).rx())
        await bench.quiet()
        assert [r.aeth.syndrome for r in bench.respond.received] == [op("SYNDROME_RNR_NAK") + 12]


def test_roce_receive_states() -> None:
    build_and_run(__file__)
