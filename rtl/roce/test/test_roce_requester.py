# SPDX-License-Identifier: Apache-2.0
"""roce_requester with roce_qp_control: SEND and RDMA WRITE, acknowledgements, retries, timers.

Every packet is checked by a model of the peer, its payload against memory. What concerns READ, atomics, selective repeat, states
and pacing is in test_roce_requester_rd.py.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from itertools import pairwise
from pathlib import Path

import cocotb
import pytest
from cocotb.triggers import FallingEdge
from nacelle_tb.bench import run, wrapper
from nacelle_tb.long import alternately
from nacelle_tb.roce import op
from nacelle_tb.sources import module_dirs, packages
from nacelle_tb.streams import wait_cycles
from requester_model import (
    ACK,
    ALL_VERBS,
    CAS,
    DENIED,
    FADD,
    NAK_SEQ,
    PSNS,
    READ,
    RNR,
    SEND,
    SEND_IMM,
    SEND_INV,
    TIMES,
    WRITE,
    WRITE_IMM,
    Bench,
    Peer,
    ports,
)  # fmt: skip

QPS = 16
SQ_DEPTH = 32
WINDOW = 64
CLOCK_HZ = 2_000_000  # slow, so that the times of the standard pass quickly
ACK_UNIT = 9  # 4.096 us, rounded up
RNR_UNIT = 20  # 10 us
BENCH = Path(__file__).parent / "requester_bench.sv"


@cocotb.test()
@cocotb.parametrize(opcode=[WRITE, WRITE_IMM, SEND, SEND_IMM, SEND_INV])
async def one_packet_and_its_completion(dut, opcode: int) -> None:
    bench = Bench(dut)
    await bench.start()
    peer = await bench.setup(5, psn=0x123456)
    bench.post(5, opcode, 64)
    await bench.complete(1)
    assert [f.psn for f in peer.seen] == [0x123456]
    await bench.quiet()


async def packets(peer: Peer, count: int, limit: int) -> None:
    """Waits until the peer has seen so many."""
    for _ in range(limit):
        if len(peer.seen) >= count:
            return
        await FallingEdge(peer.bench.dut.clk)
    raise AssertionError(f"{len(peer.seen)} packets after {limit} cycles, not {count}")


def opcodes(peer: Peer) -> list[int]:
    return [f.opcode for f in peer.seen]


@cocotb.test()
@cocotb.parametrize(mtu=[1, 2, 3, 4, 5], stall=alternately([0.0, 0.3]))
async def every_length_around_a_packet(dut, mtu: int, stall: float) -> None:
    bench = Bench(dut, stall)
    await bench.start()
    peer = await bench.setup(2, psn=PSNS - 7, mtu=mtu)
    size = 128 << mtu
    lengths = [0, 1, 2, 3, 4, 63, 64, 65, size - 1, size, size + 1, 2 * size - 3, 2 * size, 2 * size + 1, 5 * size - 2]
    for opcode in (WRITE, WRITE_IMM, SEND, SEND_IMM, SEND_INV):
        for length in lengths if opcode in (WRITE, SEND_IMM) else [0, size, 3 * size + 1]:
            bench.post(2, opcode, length, signaled=bench.rng.random() < 0.7)
            if len(bench.posted[2]) == SQ_DEPTH - 1:
                bench.post(2, opcode, length)
                await bench.complete(sum(r.signaled for r in bench.posted[2]))
    bench.post(2)
    await bench.complete(sum(r.signaled for r in bench.posted[2]))
    assert not peer.expected
    psns = [f.psn for f in peer.seen]
    assert psns == [(PSNS - 7 + i) % PSNS for i in range(len(psns))], "each PSN once, in order"
    await bench.quiet()


@cocotb.test()
async def long_messages_ask_for_acknowledgements_on_the_way(dut) -> None:
    bench = Bench(dut)
    await bench.start()
    peer = await bench.setup(3, psn=100, mtu=1)
    bench.post(3, WRITE, 100 * 256 + 7)
    await bench.complete(1)
    asked = [i for i, f in enumerate(peer.seen) if f.ackreq]
    assert asked[-1] == 100
    assert all(b - a <= 16 for a, b in pairwise([-1, *asked]))


@cocotb.test()
@cocotb.parametrize(lost=list(range(9)))
async def a_nak_at_every_position(dut, lost: int) -> None:
    bench = Bench(dut, stall=0.1)
    await bench.start()
    peer = await bench.setup(4, psn=PSNS - 4, mtu=1)
    peer.drop = {(PSNS - 4 + lost) % PSNS}
    bench.post(4, SEND, 256 * 2)
    bench.post(4, WRITE_IMM, 256 * 4 + 1)
    bench.post(4, WRITE, 200)
    bench.post(4, SEND_IMM, 0)
    bench.post(4, SEND, 1)
    await bench.complete(5)
    assert not peer.expected
    await bench.quiet()
    assert bench.events["packet_seq_err"] == 1


@cocotb.test()
async def cumulative_and_ghost_acknowledgements(dut) -> None:
    bench = Bench(dut)
    await bench.start()
    peer = await bench.setup(6, psn=PSNS - 3, mtu=1, mute=True)
    for _ in range(6):
        bench.post(6, WRITE, 300)  # 2 packets each
    await wait_cycles(dut, 200)
    assert len(peer.seen) == 12
    for psn in (PSNS - 4, PSNS - 100, 9, 500, PSNS // 2):  # before, and beyond what was sent
        peer.answer(ACK, psn)
        peer.answer(NAK_SEQ, psn)
        peer.answer(0x62, psn)
    peer.answer(0x7F, PSNS - 3)  # reserved syndrome
    await wait_cycles(dut, 200)
    assert not bench.cqe.received and len(peer.seen) == 12
    assert bench.events["drop_ghost_response"] == 16
    peer.answer(ACK, PSNS - 3)  # first half of the first
    await wait_cycles(dut, 100)
    assert not bench.cqe.received
    peer.answer(0x00, 3)  # three and a half; an ACK that counts credits
    await bench.complete(3)
    await wait_cycles(dut, 100)
    assert not bench.cqe.received
    peer.answer(ACK, 8)
    await bench.complete(3)
    await bench.quiet()


@cocotb.test()
async def the_window_stops_a_queue_pair_and_an_acknowledgement_opens_it(dut) -> None:
    bench = Bench(dut)
    await bench.start()
    peer = await bench.setup(3, psn=PSNS - 30, mtu=1, mute=True)
    bench.post(3, WRITE, 256 * 200)
    acknowledged = 0
    for step in (1, 20, WINDOW, 1, 1):
        await bench.quiet()
        assert acknowledged + WINDOW <= len(peer.seen) <= acknowledged + WINDOW + 16
        acknowledged += step
        peer.answer(ACK, PSNS - 30 + acknowledged - 1)
        await wait_cycles(dut, 50)
    await bench.quiet()
    peer.answer(ACK, PSNS - 30 + len(peer.seen) - 1)
    await bench.quiet()
    peer.answer(ACK, PSNS - 30 + 199)
    await bench.complete(1)


@cocotb.test()
async def a_queue_may_span_more_than_all_psns(dut) -> None:
    bench = Bench(dut)
    await bench.start()
    peer = await bench.setup(3, psn=77, mtu=1)
    for _ in range(4):
        bench.post(3, WRITE, 1 << 31)  # 2^23 PSNs each
    while len(peer.seen) < 300:
        await wait_cycles(dut, 10)
    peer.drop = {(peer.seen[-1].psn + 20) % PSNS}
    while len(peer.seen) < 400:
        await wait_cycles(dut, 10)
    assert bench.events["packet_seq_err"] == 1
    await bench.reset(3)
    await bench.quiet()


@cocotb.test()
async def acknowledgements_are_taken_one_a_cycle(dut) -> None:
    bench = Bench(dut)
    await bench.start()
    peers = [await bench.setup(q, mute=True) for q in range(2, 2 + QPS)]
    for i in range(30 * QPS):
        bench.post(2 + i % QPS, WRITE, 0, signaled=i >= 29 * QPS)
    while sum(len(p.seen) for p in peers) < 30 * QPS:
        await wait_cycles(dut, 10)
    for i in range(30 * QPS):
        peers[i % QPS].answer(ACK, i // QPS)
    begin = bench.cycle
    while bench.response.sent < 30 * QPS:
        await FallingEdge(dut.clk)
    assert bench.cycle - begin <= 30 * QPS + 8
    await bench.complete(QPS)


@cocotb.test()
@cocotb.parametrize((("syndrome", "status"), [(0x61, "WC_REM_INV_REQ_ERR"), (0x62, "WC_REM_ACCESS_ERR"), (0x63, "WC_REM_OP_ERR")]))
async def a_fatal_nak_ends_the_queue_pair(dut, syndrome: int, status: str) -> None:
    bench = Bench(dut, stall=0.2)
    await bench.start()
    peer = await bench.setup(7, mtu=1, mute=True)
    other = await bench.setup(8)
    for i in range(5):
        bench.post(7, WRITE, 300, signaled=i == 1)
    while len(peer.seen) < 10:
        await wait_cycles(dut, 10)
    peer.answer(syndrome, 4)  # of the third; acknowledges two
    await bench.complete(1)  # only the second is signalled
    await bench.complete(1, status)
    await bench.complete(2, "WC_WR_FLUSH_ERR")
    event = await bench.qp_event.recv()
    assert (event.qpn, event.status) == (7, op(status))
    bench.post(7, SEND, 10)
    await bench.complete(1, "WC_WR_FLUSH_ERR")
    peer.answer(ACK, 9)
    bench.post(8)
    await bench.complete(1)
    await bench.quiet()
    assert len(peer.seen) == 10 and not other.expected and not bench.qp_event.received
    assert bench.events["qp_error"] == 1


@cocotb.test()
@cocotb.parametrize(code=[1, 2, 3, 5, 8])
async def rnr_nak_waits_its_time(dut, code: int) -> None:
    units = {1: 1, 2: 2, 3: 3, 5: 6, 8: 16}[code]
    bench = Bench(dut)
    await bench.start()
    peer = await bench.setup(9, rnr=2, mute=True)
    bench.post(9, SEND, 100)
    bench.post(9, SEND, 100)
    for attempt in range(1, 4):
        while len(peer.seen) < 2 * attempt:
            await wait_cycles(dut, 1)
        await wait_cycles(dut, 20)
        begin = bench.cycle
        peer.answer(RNR | code, 0)
        peer.answer(NAK_SEQ, 0)  # for the second; does not end the wait
        if attempt == 3:
            break
        while len(peer.seen) < 2 * attempt + 1:
            await wait_cycles(dut, 1)
        waited = bench.cycle - begin
        assert units * RNR_UNIT <= waited <= units * RNR_UNIT + 2 * 5 * QPS + 40, waited
    await bench.complete(1, "WC_RNR_RETRY_EXC_ERR")
    await bench.complete(1, "WC_WR_FLUSH_ERR")
    assert (await bench.qp_event.recv()).status == op("WC_RNR_RETRY_EXC_ERR")
    await bench.quiet()
    assert bench.events["rnr_nak_retry_err"] == 3 and bench.events["retry_rnr_exceeded_err"] == 1


RNR_US = [655_360, 10, 20, 30, 40, 60, 80, 120, 160, 240, 320, 480, 640, 960, 1280, 1920, 2560, 3840, 5120, 7680, 10_240, 15_360,
          20_480, 30_720, 40_960, 61_440, 81_920, 122_880, 163_840, 245_760, 327_680, 491_520]  # IBTA table 45  # fmt: skip


@cocotb.test()
async def rnr_times_are_those_of_the_standard(dut) -> None:
    bench = Bench(dut)
    await bench.start()
    peer = await bench.setup(9, rnr=7, mute=True)
    bench.post(9, SEND, 100)
    slack = 2 * 5 * QPS + 60
    for code, microseconds in enumerate(RNR_US):
        await packets(peer, code + 1, 100)
        peer.answer(RNR | code, 0)
        begin = bench.now
        length = microseconds // 10 * RNR_UNIT
        if length > 2 * slack:
            await wait_cycles(dut, slack)
            bench.now = begin + length - 20
            await wait_cycles(dut, 16)
            assert len(peer.seen) == code + 1, f"code {code}: too soon"
        await packets(peer, code + 2, length + slack if length <= 2 * slack else slack)
    peer.answer(ACK, 0)
    await bench.complete(1)


@cocotb.test()
@cocotb.parametrize(rnr=list(range(8)), progress=[False, True])
async def rnr_retries_end_after_as_many_as_allowed(dut, rnr: int, progress: bool) -> None:
    """Also if the first RNR NAK acknowledges the message before (IBTA 9.7.5.2.8); 7 is without limit (11.6.2)."""
    bench = Bench(dut)
    await bench.start()
    peer = await bench.setup(9, rnr=rnr, mute=True)
    if progress:
        bench.post(9, SEND, 100)
    bench.post(9, SEND, 100)
    psn = int(progress)
    naks = rnr + 1 if rnr < 7 else 20
    for attempt in range(naks):
        while [f.psn for f in peer.seen].count(psn) <= attempt:
            await wait_cycles(dut, 1)
        peer.answer(RNR | 1, psn)
    if progress:
        await bench.complete(1)
    if rnr < 7:
        await bench.complete(1, "WC_RNR_RETRY_EXC_ERR")
        assert (await bench.qp_event.recv()).status == op("WC_RNR_RETRY_EXC_ERR")
    else:
        while [f.psn for f in peer.seen].count(psn) <= naks:
            await wait_cycles(dut, 1)
        peer.answer(ACK, psn)
        await bench.complete(1)
    await bench.quiet()
    assert [f.psn for f in peer.seen].count(psn) == naks + (rnr == 7)
    assert bench.events["rnr_nak_retry_err"] == naks


@cocotb.test()
@cocotb.parametrize(timeout=[1, 3], retry=[0, 7])
async def timeouts_back_off_and_give_up(dut, timeout: int, retry: int) -> None:
    bench = Bench(dut)
    await bench.start()
    peer = await bench.setup(10, timeout=timeout, retry=retry, mtu=1, deaf=True)
    bench.post(10, WRITE, 700)
    bench.post(10, WRITE, 1, signaled=False)
    cqe = await bench.complete(1, "WC_RETRY_EXC_ERR", timeout=200_000)
    assert cqe[0].qpn == 10
    await bench.complete(1, "WC_WR_FLUSH_ERR")
    event = await bench.qp_event.recv()
    assert (event.qpn, event.status) == (10, op("WC_RETRY_EXC_ERR"))
    assert len(peer.seen) == 4 * (1 + retry), "all of it, each time"
    starts = [f.cycle for f in peer.seen[::4]]
    for attempt, (a, b) in enumerate(pairwise(starts)):
        time = ACK_UNIT << (timeout + min(attempt, 4))
        assert time <= b - a <= time + 2 * 5 * QPS + 60, (attempt, b - a)
    await bench.quiet()
    assert bench.events["local_ack_timeout_err"] == 1 + retry and bench.events["retry_exceeded_err"] == 1


@cocotb.test()
async def progress_restores_the_retries(dut) -> None:
    bench = Bench(dut)
    await bench.start()
    peer = await bench.setup(10, timeout=4, retry=2, mtu=1, mute=True)
    bench.post(10, WRITE, 256 * 4)
    for psn in range(4):  # two timeouts at each packet
        timeouts = bench.events.get("local_ack_timeout_err", 0)
        while bench.events.get("local_ack_timeout_err", 0) < timeouts + 2:
            await wait_cycles(dut, 1)
        await wait_cycles(dut, 60)
        assert peer.seen[-4 + psn].psn == psn, "begins again with the oldest that is not acknowledged"
        assert [f.opcode for f in peer.seen if f.psn == 1][-1] == op("RC_RDMA_WRITE_MIDDLE")
        peer.answer(ACK, psn)
    await bench.complete(1)


@cocotb.test(timeout_time=4, timeout_unit="ms")
async def rnr_naks_restore_the_retries(dut) -> None:
    """A peer without a receive answers for as long as it has none; in that time more packets are lost than there are retries."""
    bench = Bench(dut)
    await bench.start()
    peer = await bench.setup(10, timeout=4, retry=1, rnr=7, mute=True)
    bench.post(10, SEND, 100)
    for attempt in range(3):
        while len(peer.seen) < 2 * attempt + 2:  # the second one after a timeout
            await wait_cycles(dut, 1)
        assert bench.events["local_ack_timeout_err"] == attempt + 1
        peer.answer(RNR | 1, 0)
    while len(peer.seen) < 7:
        await wait_cycles(dut, 1)
    peer.answer(ACK, 0)
    await bench.complete(1)


@cocotb.test()
async def time_may_jump(dut) -> None:
    bench = Bench(dut)
    await bench.start()
    peer = await bench.setup(10, timeout=31, mute=True)
    bench.post(10)
    await bench.quiet()
    assert len(peer.seen) == 1
    bench.now += ACK_UNIT << 31
    await wait_cycles(dut, 5 * QPS + 60)
    assert len(peer.seen) == 2
    bench.now += (ACK_UNIT << 32) - 1000
    await wait_cycles(dut, 500)
    assert len(peer.seen) == 2, "the second wait is longer"


@cocotb.test()
@cocotb.parametrize(waits_for=["an acknowledgement", "a receive", "nothing"], late=[1, 4])
async def waits_end_on_time_across_the_wrap_of_the_clock(dut, waits_for: str, late: int) -> None:
    """The wrap comes after one quarter, or all, of the time."""
    length = 40 * RNR_UNIT
    bench = Bench(dut, now=TIMES - 2500)
    await bench.start()
    if waits_for == "nothing":
        dut.keepalive_cycles.value = length
    peer = await bench.setup(9, timeout=6 if waits_for == "an acknowledgement" else 0, mute=True, rnr=7)
    if waits_for == "an acknowledgement":
        length = ACK_UNIT << 6
    bench.now = TIMES - length * late // 4 - 100
    bench.post(9, SEND, 100)
    while not peer.seen:
        await wait_cycles(dut, 1)
    if waits_for == "a receive":
        peer.answer(RNR | 11, 0)  # 480 us
        length = 48 * RNR_UNIT
    elif waits_for == "nothing":
        peer.answer(ACK, 0)
    begin = bench.cycle
    await bench.quiet()
    assert bench.cycle - begin < length // 2, "idle while a clock runs, whose end is beyond the wrap"
    await packets(peer, 2, 3 * length)
    waited = bench.cycle - begin
    assert length - 60 <= waited <= length + 2 * 5 * QPS + 60, waited
    assert bench.now > TIMES - length // 4


@cocotb.test()
async def a_queue_pair_that_was_silent_for_long_waits_as_any_other(dut) -> None:
    """Nothing is due, and no clock runs: more than half of the range of the clock passes, and then all of it."""
    bench = Bench(dut, now=TIMES // 2)
    await bench.start()
    peer = await bench.setup(10, timeout=4, mute=True)
    for passes in (0, TIMES * 5 // 8, TIMES * 3 // 8):
        for _ in range(8):
            bench.now += passes // 8
            await wait_cycles(dut, 6 * QPS)
        seen = len(peer.seen)
        bench.post(10)
        await packets(peer, seen + 2, 2000)
        waited = peer.seen[-1].cycle - peer.seen[-2].cycle
        assert ACK_UNIT << 4 <= waited <= (ACK_UNIT << 4) + 2 * 5 * QPS + 60, waited
        peer.answer(ACK, peer.seen[-1].psn)
        await bench.complete(1)
        await bench.quiet()


@cocotb.test()
async def keepalive_finds_a_lost_peer(dut) -> None:
    bench = Bench(dut)
    await bench.start()
    idle_for = 600
    dut.keepalive_cycles.value = idle_for
    peer = await bench.setup(11, psn=PSNS - 2, timeout=3, retry=1)
    await bench.setup(12, mute=True, timeout=0)
    bench.post(11, SEND, 10)
    await bench.complete(1)
    begin = peer.seen[-1].cycle
    while peer.keepalives < 3:
        await wait_cycles(dut, 1)
    gaps = [b.cycle - a.cycle for a, b in pairwise(peer.seen)]
    assert all(idle_for <= gap <= idle_for + 10 * QPS + 100 for gap in gaps), (begin, gaps)
    # Traffic from the peer says that it lives.
    for _ in range(30):
        await FallingEdge(dut.clk)
        dut.active.value, dut.active_qpn.value = 1, 11
        await FallingEdge(dut.clk)
        dut.active.value = 0
        await wait_cycles(dut, 100)
    assert peer.keepalives == 3
    # Requests around a keep-alive that is lost: it comes first again.
    peer.drop = {(PSNS - 2 + 4) % PSNS}
    while len(peer.seen) < 5:
        await wait_cycles(dut, 1)
    for _ in range(SQ_DEPTH):
        bench.post(11, SEND, 10)
    await bench.complete(SQ_DEPTH)
    assert peer.keepalives == 4
    # No response: a failure without a work request.
    peer.deaf = True
    event = await bench.qp_event.recv()
    assert (event.qpn, event.status) == (11, op("WC_RETRY_EXC_ERR"))
    bench.post(11, SEND, 10)
    await bench.complete(1, "WC_WR_FLUSH_ERR")


@cocotb.test()
async def refused_work_requests_change_nothing(dut) -> None:
    bench = Bench(dut, stall=0.2)
    await bench.start()
    peer = await bench.setup(2, mute=True)

    async def refused(status: str, qpn: int, opcode: int = WRITE, length: int = 1) -> None:
        request = bench.post(qpn, opcode, length, known=False, signaled=False)
        cqe = await bench.cqe.recv()
        assert (cqe.wr_id, cqe.qpn, cqe.status) == (request.wr_id, qpn, op(status))

    for qpn in (0, 1, 3, QPS + 1, QPS + 2, 0xFFFFFF):
        await refused("WC_WR_FLUSH_ERR", qpn)
    await refused("WC_LOC_QP_OP_ERR", 2, op("WR_RECV"))
    await refused("WC_LOC_LEN_ERR", 2, WRITE, (1 << 31) + 1)
    for _ in range(SQ_DEPTH):
        bench.post(2)
    for _ in range(2):
        await refused("WC_GENERAL_ERR", 2)
    while len(peer.seen) < SQ_DEPTH:
        await wait_cycles(dut, 1)
    peer.answer(ACK, 0)
    await bench.complete(1)
    bench.post(2)
    await refused("WC_GENERAL_ERR", 2)
    while len(peer.seen) < SQ_DEPTH + 1:
        await wait_cycles(dut, 1)
    peer.answer(ACK, SQ_DEPTH)
    await bench.complete(SQ_DEPTH)
    await bench.quiet()
    bench.cmd.send(op=op("QP_SETUP"), qpn=QPS + 2, attr={})
    assert await bench.answer.recv() == 0
    await bench.reset(1, answer=0)
    await bench.reset(9, answer=1)  # was never set up: nothing to clear


@cocotb.test()
async def payload_that_cannot_be_read_never_leaves_as_good(dut) -> None:
    bench = Bench(dut, stall=0.2)
    await bench.start()
    peer = await bench.setup(13, mtu=1)
    bench.bad_from = 0x10000
    bench.post(13, WRITE, 512, local_addr=0x1000)
    bench.post(13, WRITE, 1000, local_addr=0x10000 - 600)
    bench.post(13, WRITE, 100, local_addr=0x2000)
    await bench.complete(1)
    await bench.complete(1, "WC_LOC_PROT_ERR")
    await bench.complete(1, "WC_WR_FLUSH_ERR")
    event = await bench.qp_event.recv()
    assert (event.qpn, event.status) == (13, op("WC_LOC_PROT_ERR"))
    await bench.quiet()
    assert [f.psn for f in bench.spoiled] == [4, 5]
    assert len(peer.expected) == 2


async def _wrong_key(bench: Bench, qpn: int, before: int, behind: int, status: str = "WC_LOC_PROT_ERR") -> None:
    """Completions of a queue pair with one wrong key among its work requests, and its event."""
    await bench.complete(before)
    await bench.complete(1, status)
    await bench.complete(behind, "WC_WR_FLUSH_ERR")
    if status != "WC_WR_FLUSH_ERR":
        event = await bench.qp_event.recv()
        assert (event.kind, event.qpn, event.status) == (op("EVENT_QP_FATAL"), qpn, op(status))
    await bench.quiet()
    assert not bench.cqe.received and not bench.qp_event.received


@cocotb.test()
@cocotb.parametrize(stall=alternately([0.0, 0.4]))
async def a_wrong_key_ends_the_queue_pair_in_its_turn(dut, stall: float) -> None:
    """Never sent; completes with WC_LOC_PROT_ERR when all before it have succeeded, however late they are acknowledged; what is
    behind it is flushed. Others go on."""
    bench = Bench(dut, stall, latency=40)
    await bench.start()
    for opcode in ALL_VERBS:
        for before, behind in ((0, 0), (0, 3), (3, 0), (2, 3)):
            for loss in (0.0, 0.3):
                peer = await bench.setup(13, mtu=1, timeout=2, loss=loss, dest=500)
                await bench.setup(3, mtu=1)
                for _ in range(before):
                    bench.post(13, bench.rng.choice(ALL_VERBS), bench.rng.randrange(600), signaled=True)
                bench.post(13, opcode, 300, lkey=DENIED, signaled=bench.rng.random() < 0.5)
                for _ in range(behind):
                    bench.post(13, WRITE, 100, signaled=False)
                bench.post(3, WRITE, 700)
                sent = sum(r.packets(256) for r in list(peer.expected)[:before])
                others = []
                while len(others) < 1:
                    await wait_cycles(dut, 10)
                    others = [c for c in bench.cqe.received if c.qpn == 3]
                assert others[0].status == 0
                bench.cqe.received.remove(others[0])
                bench.cqe.cycles.pop()
                await _wrong_key(bench, 13, before, behind)
                assert {f.psn for f in peer.seen} <= set(range(max(sent, 1))) and bool(peer.seen) == bool(before)
                bench.posted[3].clear()
                for qpn in (3, 13):
                    await bench.reset(qpn)


KEY = 0x1234


@cocotb.test()
@cocotb.parametrize(stall=alternately([0.0, 0.4]))
async def a_key_that_goes_before_its_turn_is_not_used(dut, stall: float) -> None:
    """Deregistered between posting and sending: nothing of it is sent, whatever is sent under other keys; the queue pair ends."""
    bench = Bench(dut, stall, latency=20)
    await bench.start()
    for opcode in (WRITE, WRITE_IMM, SEND, SEND_IMM, SEND_INV):
        peer = await bench.setup(13, mtu=1)
        await bench.modify(13, "QPS_SQD")
        await bench.qp_event.recv()
        bench.post(13, WRITE, 300, lkey=KEY + 1)
        bench.post(13, opcode, 300, lkey=KEY)
        bench.post(13, WRITE, 300, lkey=KEY + 1)
        await bench.wqe.drained()
        await bench.kill(KEY)
        await bench.modify(13, "QPS_RTS")
        # As when payload cannot be read: what is not acknowledged by then is flushed.
        first = await bench.cqe.recv()
        assert (first.wr_id, first.status) == (bench.posted[13].popleft().wr_id, first.status)
        assert first.status in (op("WC_SUCCESS"), op("WC_WR_FLUSH_ERR"))
        await _wrong_key(bench, 13, 0, 1)
        await bench.kill(0)
        assert {f.psn for f in peer.seen} <= {0, 1, 4, 5}, "two packets each"
        await bench.reset(13)


@cocotb.test()
async def a_key_that_goes_in_the_middle_stops_the_message(dut) -> None:
    """When the fence is over nothing is read under it, and nothing is any more: not what was to be sent, nor repetitions."""
    bench = Bench(dut, 0.1, latency=100)
    await bench.start()
    for i in range(24):
        peer = await bench.setup(13, mtu=1, timeout=1 + i % 3, loss=0.2 * (i % 2), selective=i % 4 == 3)
        await bench.setup(3, mtu=1, dest=i)
        request = bench.post(13, (WRITE, SEND)[i % 2], 100_000, lkey=KEY)
        other = bench.post(3, WRITE, 20_000, lkey=KEY + 1)
        while len(peer.seen) < 2 * i:
            await wait_cycles(dut, 1)
        await bench.kill(KEY)
        await bench.fence()
        assert not bench.touches(KEY)
        sent = len(peer.seen)
        for _ in range(1500):
            await FallingEdge(dut.clk)
            assert not bench.touches(KEY)
        done = [(c.wr_id, c.status) for c in bench.cqe.received]
        assert sorted(done) == sorted([(request.wr_id, op("WC_LOC_PROT_ERR")), (other.wr_id, op("WC_SUCCESS"))])
        assert len(peer.seen) <= sent
        assert (await bench.qp_event.recv()).status == op("WC_LOC_PROT_ERR")
        bench.cqe.received.clear()
        bench.cqe.cycles.clear()
        await bench.quiet()
        for qpn in (3, 13):
            bench.posted[qpn].clear()
            await bench.reset(qpn)
        await bench.kill(0)


@cocotb.test()
async def a_key_that_goes_behind_all_packets_costs_nothing(dut) -> None:
    """All of the message has left: it is acknowledged, and succeeds. If something of it must be sent again it does not."""
    bench = Bench(dut, latency=50)
    await bench.start()
    for lost in (False, True):
        peer = await bench.setup(13, mtu=1, timeout=2)
        peer.drop = {1} if lost else set()
        bench.post(13, WRITE, 700, lkey=KEY)
        bench.post(13, WRITE, 0, lkey=KEY)
        while len(peer.seen) < 4:
            await wait_cycles(dut, 1)
        await bench.kill(KEY)
        assert await bench.fence() <= 12
        if lost:
            await _wrong_key(bench, 13, 0, 1)
        else:
            await bench.complete(2)
            bench.post(13, WRITE, 0, lkey=KEY)
            await bench.complete(1)
        await bench.kill(0)
        await bench.quiet()
        await bench.reset(13)


@cocotb.test()
@cocotb.parametrize(opcode=[READ, CAS, FADD])
async def what_a_response_brings_is_not_placed_under_a_key_that_has_gone(dut, opcode: int) -> None:
    """When the fence is over, what was admitted is in memory, and no more comes; the queue pair ends there."""
    bench = Bench(dut, 0.1, latency=30)
    bench.write_latency = 200
    await bench.start()
    for i in range(20):
        await bench.setup(13, mtu=1)
        await bench.setup(3, mtu=1, dest=i)
        many = 1 if opcode == READ else 8
        requests = [bench.post(13, opcode, 6000, lkey=KEY) for _ in range(many)]
        bench.post(3, opcode, 100, lkey=KEY + 1)
        for _ in range(40 + 12 * i):
            await FallingEdge(dut.clk)
        await bench.kill(KEY)
        await bench.fence()
        assert not bench.touches(KEY)
        placed = len(bench.placed)
        others = {bench.posted[3][0].local_addr + k for k in range(100)}
        for _ in range(1500):
            await FallingEdge(dut.clk)
            assert not bench.touches(KEY)
        assert len(bench.placed.keys() - others) <= placed
        statuses = [c.status for c in bench.cqe.received if c.qpn == 13]
        assert [c.status for c in bench.cqe.received if c.qpn == 3] == [0]
        good = statuses.count(op("WC_SUCCESS"))
        assert len(statuses) == len(requests) and statuses[:good] == [0] * good
        if good < many:
            assert statuses[good] == op("WC_LOC_PROT_ERR") and set(statuses[good + 1 :]) <= {op("WC_WR_FLUSH_ERR")}
            assert (await bench.qp_event.recv()).status == op("WC_LOC_PROT_ERR")
        for qpn in (3, 13):
            bench.posted[qpn].clear()
            await bench.reset(qpn)
        bench.cqe.received.clear()
        bench.cqe.cycles.clear()
        bench.placed.clear()
        await bench.kill(0)
        await bench.quiet()


@cocotb.test()
async def a_fence_is_through_in_time_under_load(dut) -> None:
    """It waits for what is there, not for what comes: others send and receive at full rate meanwhile."""
    bench = Bench(dut, latency=20)
    await bench.start()
    await bench.quiet()
    assert await bench.fence() <= 12
    for qpn in range(2, 2 + QPS):
        await bench.setup(qpn, mtu=1)
    for _ in range(6):
        for qpn in range(2, 2 + QPS):
            bench.post(qpn, WRITE, 5000, signaled=False)
            bench.post(qpn, READ, 2000, signaled=False)
    await wait_cycles(dut, 200)
    spent, before = [], len(bench.order) + len(bench.placed)
    for _ in range(20):
        spent.append(await bench.fence())
        await wait_cycles(dut, 10)
    assert max(spent) <= 100, spent
    assert len(bench.order) + len(bench.placed) > before + 500, "under load"


@cocotb.test()
async def a_wrong_key_waits_for_its_turn_in_every_state(dut) -> None:
    bench = Bench(dut)
    await bench.start()
    # SQD: nothing is begun, so nothing fails; RTS: it fails.
    await bench.setup(13, mtu=1)
    await bench.modify(13, "QPS_SQD")
    assert (await bench.qp_event.recv()).kind == op("EVENT_SQ_DRAINED")
    bench.post(13, WRITE, 100, lkey=DENIED)
    bench.post(13, WRITE, 100)
    await wait_cycles(dut, 2000)
    assert not bench.cqe.received and not bench.qp_event.received
    await bench.modify(13, "QPS_RTS")
    await _wrong_key(bench, 13, 0, 1)
    # ERR: flushed like any other.
    bench.post(13, WRITE, 100, lkey=DENIED)
    await _wrong_key(bench, 13, 0, 0, "WC_WR_FLUSH_ERR")
    # RESET: refused like any other, and it is forgotten then.
    await bench.reset(13)
    bench.post(13, WRITE, 100, lkey=DENIED, known=False)
    assert (await bench.cqe.recv()).status == op("WC_WR_FLUSH_ERR")
    for i in range(30):
        await bench.setup(13, mtu=1)
        bench.posted[13].clear()
        bench.post(13, WRITE, 100, lkey=DENIED)
        await bench.wqe.drained()
        await wait_cycles(dut, i + 1)
        await bench.reset(13)
        bench.cqe.received.clear()
        bench.cqe.cycles.clear()
        bench.qp_event.received.clear()
        bench.qp_event.cycles.clear()
        peer = await bench.setup(13, mtu=1)
        bench.post(13, WRITE, 300)
        await bench.complete(1)
        assert len(peer.seen) == 2
        await bench.quiet()
        assert not bench.qp_event.received
        await bench.reset(13)
    # What is refused anyway is, and the queue pair lives.
    await bench.setup(13, mtu=1, max_rd=0)
    bench.post(13, READ, 100, lkey=DENIED, known=False)
    assert (await bench.cqe.recv()).status == op("WC_LOC_QP_OP_ERR")
    bench.post(13)
    await bench.complete(1)
    await bench.quiet()


@cocotb.test()
@cocotb.parametrize(stall=alternately([0.0, 0.4]))
async def reset_in_the_middle_leaves_nothing(dut, stall: float) -> None:
    bench = Bench(dut, stall, latency=60)
    await bench.start()
    for round_ in range(6):
        peer = await bench.setup(14, psn=1000 * round_, mtu=2, timeout=6, loss=0.05, dest=100 + round_)
        other = bench.peers[15] if 15 in bench.peers else await bench.setup(15, mtu=2)
        for _ in range(20):
            bench.post(14, WRITE, bench.rng.randrange(4000))
        for _ in range(5):
            bench.post(15, SEND, bench.rng.randrange(2000))
        while len(peer.seen) < 8 * round_:
            await wait_cycles(dut, 1)
        await bench.wqe.drained()
        await bench.reset(14)
        seen = len(peer.seen)
        mine = [c for c in bench.cqe.received if c.qpn == 14]
        peer.answer(ACK, peer.psn)
        await wait_cycles(dut, 600)
        assert len(peer.seen) == seen
        assert [c for c in bench.cqe.received if c.qpn == 14] == mine
        done = [c for c in bench.cqe.received if c.qpn == 15]
        while other.expected or len(done) < 5 * (round_ + 1):
            await wait_cycles(dut, 10)
            done = [c for c in bench.cqe.received if c.qpn == 15]
        assert all(c.status == 0 for c in bench.cqe.received)
    bench.posted[14].clear()
    bench.cqe.received.clear()
    bench.cqe.cycles.clear()
    bench.post(14, known=False)
    assert (await bench.cqe.recv()).status == op("WC_WR_FLUSH_ERR")
    await bench.quiet()


@cocotb.test()
async def a_reset_waits_until_completions_are_taken(dut) -> None:
    """It is answered when nothing of the queue pair is under way: no completion of it comes after the answer. It holds up
    no other's."""
    bench = Bench(dut)
    await bench.start()
    peer = await bench.setup(14)
    await bench.setup(13)
    bench.cqe.stall = 1.0
    for _ in range(3):
        bench.post(14)
    while len(peer.seen) < 3:
        await wait_cycles(dut, 1)
    await wait_cycles(dut, 400)  # acknowledged; the completions wait
    await bench.reset(13)
    bench.cmd.send(op=op("QP_RESET"), qpn=14)
    await wait_cycles(dut, 1000)
    assert not bench.answer.received and not bench.cqe.received
    bench.cqe.stall = 0.0
    assert await bench.answer.recv() == 1
    taken = len(bench.cqe.received)
    assert taken >= 1
    await wait_cycles(dut, 200)
    assert len(bench.cqe.received) == taken


@cocotb.test()
async def a_reset_holds_up_nobody_else(dut) -> None:
    """One QP sends all the time; others are set up and reset, over and over, which costs it nothing."""
    bench = Bench(dut)
    await bench.start()
    peer = await bench.setup(15, mtu=2)
    bench.post(15, WRITE, 1 << 24)
    counts = []
    for resets in (0, 20):
        begin, before = bench.cycle, len(peer.seen)
        for _ in range(resets):
            await bench.setup(14, mtu=2)
            await bench.reset(14)
        await wait_cycles(dut, 3000 - (bench.cycle - begin))
        counts.append(len(peer.seen) - before)
    assert counts[1] >= 0.99 * counts[0] > 500, counts


@cocotb.test()
@cocotb.parametrize(loss=[0.0, 0.02, 0.1], stall=alternately([0.0, 0.3]))
async def many_queue_pairs_at_random(dut, loss: float, stall: float) -> None:
    bench = Bench(dut, stall, latency=40)
    await bench.start()
    qpns = range(2, 2 + QPS)
    for qpn in qpns:
        await bench.setup(
            qpn, psn=bench.rng.choice([0, PSNS - 5, PSNS // 2 - 3, bench.rng.randrange(PSNS)]), mtu=bench.rng.choice([1, 1, 2, 3]),
            timeout=9, loss=loss, ack_loss=loss, not_ready=loss / 4,
        )  # fmt: skip
    total = left = 120 if loss else 250
    outstanding = dict.fromkeys(qpns, 0)
    done = 0
    while done < total:
        for qpn in qpns:
            if left and outstanding[qpn] < SQ_DEPTH and bench.rng.random() < 0.05:
                length = bench.rng.choice([0, 1, 64, 255, 256, 257, bench.rng.randrange(5000)])
                bench.post(qpn, bench.rng.choice([WRITE, WRITE_IMM, SEND, SEND_IMM]), length)
                outstanding[qpn] += 1
                left -= 1
        await wait_cycles(dut, 3)
        while bench.cqe.received:
            qpn = (await bench.complete(1))[0].qpn
            outstanding[qpn] -= 1
            done += 1
        assert bench.cycle < 150_000
    assert not any(p.expected for p in bench.peers.values())
    await bench.quiet()


@cocotb.test()
async def no_queue_pair_starves(dut) -> None:
    bench = Bench(dut)
    await bench.start()
    peers = [await bench.setup(q, mtu=4 if q < 6 else 1) for q in range(2, 10)]
    for peer in peers:
        for _ in range(20):
            bench.post(peer.qpn, WRITE, 50_000 if peer.qpn < 6 else 64, signaled=False)
    while len(bench.order) < 300:
        await wait_cycles(dut, 10)
    for peer in peers[:4]:
        # Between two services of a long message the other three long ones have one quantum each, and so have the short ones.
        mine = [i for i, f in enumerate(bench.order) if f.qpn == peer.qpn]
        assert max(b - a for a, b in pairwise(mine)) <= 3 * 2 + 4 * 16 + 1
    for peer in peers[4:]:
        assert len(peer.seen) == 20
        assert bench.order.index(peer.seen[-1]) < 200, "80 short messages are through while 1200 long packets wait"


# ---- rates ----


async def rate(bench: Bench, count: int) -> float:
    """Cycles a frame, from the 20th frame on."""
    while len(bench.order) < count:
        await wait_cycles(bench.dut, 1)
    return (bench.order[count - 1].cycle - bench.order[20].cycle) / (count - 21)


@cocotb.test()
@cocotb.parametrize(opcode=[WRITE, SEND])
async def one_queue_pair_sends_small_messages_at_full_rate(dut, opcode: int) -> None:
    bench = Bench(dut, latency=30)
    await bench.start()
    await bench.setup(2)
    posted = 0
    while len(bench.order) < 300:
        while posted < 300 and len(bench.posted[2]) < SQ_DEPTH:
            bench.post(2, opcode, 64)
            posted += 1
        await FallingEdge(dut.clk)
        while bench.cqe.received:
            await bench.complete(1)
    assert await rate(bench, 300) <= 3


@cocotb.test()
async def queue_pairs_in_turn_send_small_messages_at_full_rate(dut) -> None:
    bench = Bench(dut, latency=70)
    await bench.start()
    for qpn in range(2, 2 + QPS):
        await bench.setup(qpn)
    for i in range(QPS * 20):
        bench.post(2 + i % QPS, WRITE, 64)
    assert await rate(bench, QPS * 20) <= 4


@cocotb.test()
@cocotb.parametrize(qps=[1, 4])
async def large_messages_take_less_time_than_their_beats(dut, qps: int) -> None:
    bench = Bench(dut, latency=70)
    await bench.start()
    for qpn in range(2, 2 + qps):
        await bench.setup(qpn, mtu=5)
        bench.post(qpn, WRITE, 4096 * 40 // qps)
    await rate(bench, 40)
    assert (bench.order[39].cycle - bench.order[20].cycle) / 19 <= 4096 // 64, "a packet of 4096 bytes has 64 beats of 512 bits"


@cocotb.test()
async def latency(dut) -> None:
    bench = Bench(dut)
    await bench.start()
    await bench.setup(2)
    await bench.quiet()
    await FallingEdge(dut.clk)
    bench.post(2)
    begin = None
    for cycle in range(40):
        await FallingEdge(dut.clk)
        if begin is None and bench.wqe.sent:
            begin = cycle
        if int(dut.packet_valid.value):
            break
    assert cycle - begin <= 14
    dut._log.info("wqe to packet: %d cycles", cycle - begin)


# ---- building ----


def _elaborate(**params: int) -> subprocess.CompletedProcess:
    """Verilator's verdict on the modules with these parameters."""
    with tempfile.TemporaryDirectory() as folder:
        top = Path(folder) / "tb.sv"
        top.write_text(wrapper("requester_bench", params, ports(512, params.get("QPS", 16))))
        search = [arg for path in module_dirs() for arg in ("-y", str(path))]
        verilator = Path(sys.executable).parent / "verilator"
        return subprocess.run(
            [verilator, "--lint-only", "-Wno-lint", "-Wno-style", "--top-module", "tb_requester_bench", *search, *packages(),
             BENCH, top],
            capture_output=True, text=True, env={**os.environ, "PATH": f"{verilator.parent}:{os.environ['PATH']}"},
        )  # fmt: skip


@pytest.mark.parametrize(
    "params",
    [{"QPS": 8}, {"QPS": 256}, {"QPS": 1024, "SQ_DEPTH": 128, "RD_DEPTH": 16}, {"SQ_DEPTH": 4, "WINDOW": 32, "ACK_EVERY": 16}],
    ids=str,
)
def test_sizes_elaborate(params: dict[str, int]) -> None:
    result = _elaborate(**params)
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize(
    "params", [{"QPS": 12}, {"QPS": 2048}, {"SQ_DEPTH": 2}, {"RD_DEPTH": 32}, {"WINDOW": 16}, {"ACK_EVERY": 48}], ids=str
)
def test_bad_sizes_stop_elaboration(params: dict[str, int]) -> None:
    result = _elaborate(**params)
    assert result.returncode and f"roce_requester: {next(iter(params))} must be" in result.stderr


def test_roce_requester() -> None:
    run(
        "requester_bench",
        __file__,
        params={"QPS": QPS, "SQ_DEPTH": SQ_DEPTH, "CLOCK_HZ": CLOCK_HZ, "WINDOW": WINDOW, "ACK_EVERY": 16},
        ports=ports(512, QPS),
        sources=[BENCH],
        random_state=True,
    )
