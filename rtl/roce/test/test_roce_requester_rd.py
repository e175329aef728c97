# SPDX-License-Identifier: Apache-2.0
"""roce_requester with roce_qp_control: READ, atomics, fences, selective repeat, states, pacing, and all verbs at random."""

from __future__ import annotations

import os
from collections import Counter
from itertools import pairwise
from pathlib import Path

import cocotb
import pytest
from cocotb.triggers import FallingEdge, RisingEdge
from nacelle_tb.bench import run
from nacelle_tb.long import alternately
from nacelle_tb.roce import op, reth
from nacelle_tb.streams import wait_cycles
from requester_model import (
    ACK,
    ALL_VERBS,
    CAS,
    FADD,
    PSNS,
    READ,
    SEND,
    WRITE,
    WRITE_IMM,
    Bench,
    ports,
    remote,
)  # fmt: skip

SQ_DEPTH = 16
RD_DEPTH = 8
CLOCK_HZ = 2_000_000  # slow, so that the times of the standard pass quickly
BENCH = Path(__file__).parent / "requester_bench.sv"
READ_REQUEST = op("RC_RDMA_READ_REQUEST")
QPS = int(os.environ.get("NACELLE_QPS", "16"))


async def until(bench: Bench, condition, cycles: int = 20_000) -> None:
    """Lets time pass until something is so."""
    for _ in range(cycles):
        if condition():
            return
        await FallingEdge(bench.dut.clk)
    raise AssertionError("waited in vain")


# ---- READ and atomics ----


@cocotb.test()
@cocotb.parametrize(mtu=[1, 3, 5], stall=alternately([0.0, 0.3]))
async def reads_of_every_length(dut, mtu: int, stall: float) -> None:
    bench = Bench(dut, stall)
    await bench.start()
    size = 128 << mtu
    peer = await bench.setup(2, psn=PSNS - 9, mtu=mtu)
    lengths = [0, 1, 3, 8, 63, 64, 65, size - 1, size, size + 1, 2 * size, 3 * size - 1, 5 * size + 2]
    first = PSNS - 9
    for length in lengths:
        bench.post(2, READ, length, signaled=bench.rng.random() < 0.7)
        bench.post(2, READ, length)
        await bench.complete(sum(r.signaled for r in bench.posted[2]))
        assert {f.psn for f in peer.seen[-2:]} == {first % PSNS, (first + max(1, -(-length // size))) % PSNS}
        first += 2 * max(1, -(-length // size))
    await bench.quiet()
    assert len(peer.seen) == 2 * len(lengths), "one request each"
    assert bench.events["rcvd_read_responses"] == first - PSNS + 9
    assert not bench.placed


@cocotb.test()
@cocotb.parametrize(opcode=[CAS, FADD])
async def atomics_bring_what_was_there(dut, opcode: int) -> None:
    bench = Bench(dut, stall=0.2)
    await bench.start()
    peer = await bench.setup(3, psn=77)
    for _ in range(4):
        for _ in range(RD_DEPTH):
            bench.post(3, opcode, bench.rng.choice([0, 8, 1 << 31, (1 << 32) - 1]), compare=bench.rng.choice([8, 16, 1 << 63]))
        await bench.complete(RD_DEPTH)
    await bench.quiet()
    assert len(peer.seen) == 4 * RD_DEPTH and not bench.placed
    assert bench.events["rcvd_atomic_responses"] == 4 * RD_DEPTH


@cocotb.test()
@cocotb.parametrize(max_rd=[1, 3, 8])
async def never_more_reads_than_the_peer_takes(dut, max_rd: int) -> None:
    bench = Bench(dut)
    await bench.start()
    peer = await bench.setup(4, max_rd=max_rd, mute=True)
    posted = [bench.post(4, bench.rng.choice([READ, FADD]), 8) for _ in range(RD_DEPTH)]
    bench.post(4, WRITE, 8)
    for done in range(RD_DEPTH):
        await wait_cycles(dut, 150)
        assert len([f for f in peer.seen if f.opcode != op("RC_RDMA_WRITE_ONLY")]) == min(RD_DEPTH, done + max_rd)
        if posted[done].opcode == READ:
            peer.respond("RC_RDMA_READ_RESPONSE_ONLY", done, remote(posted[done].remote_addr, 8))
        else:
            peer.respond("RC_ATOMIC_ACKNOWLEDGE", done, original=bench.answers[id(posted[done])].original)
        await bench.complete(1)
    peer.answer(ACK, RD_DEPTH)
    await bench.complete(1)
    await bench.quiet()


@cocotb.test()
async def reads_that_cannot_be_are_refused(dut) -> None:
    bench = Bench(dut)
    await bench.start()
    await bench.setup(4, max_rd=0)
    for opcode in (READ, CAS, FADD):
        bench.post(4, opcode, 8, known=False)
        assert (await bench.cqe.recv()).status == op("WC_LOC_QP_OP_ERR")
    peer = await bench.setup(5, mute=True)
    for _ in range(RD_DEPTH):
        bench.post(5, READ, 8)
    bench.post(5, READ, 8, known=False)
    assert (await bench.cqe.recv()).status == op("WC_GENERAL_ERR")
    bench.post(5, WRITE, 8)
    bench.post(5, READ, (1 << 31) + 1, known=False)
    assert (await bench.cqe.recv()).status == op("WC_LOC_LEN_ERR")
    await until(bench, lambda: len(peer.seen) == RD_DEPTH + 1)


@cocotb.test()
async def a_fence_waits_until_reads_are_in_memory(dut) -> None:
    bench = Bench(dut, latency=5)
    bench.write_latency = 300
    await bench.start()
    peer = await bench.setup(5, mtu=1)
    bench.post(5, READ, 700)
    bench.post(5, WRITE, 64)
    bench.post(5, SEND, 64, fence=True)
    bench.post(5, WRITE, 64)
    await until(bench, lambda: len(peer.seen) >= 2)
    read = bench.posted[5][0]
    await until(bench, lambda: len(peer.seen) == 4)
    assert all(read.local_addr + i in bench.placed for i in range(700)), "all of it is in memory before the fenced request is sent"
    await bench.complete(4)
    await bench.quiet()


@cocotb.test()
@cocotb.parametrize(lost=list(range(6)), follow=[0, 1])
async def a_lost_response_is_asked_for_again_from_there(dut, lost: int, follow: int) -> None:
    bench = Bench(dut)
    await bench.start()
    peer = await bench.setup(6, psn=PSNS - 3, mtu=1, timeout=6)
    peer.drop_answer = {(PSNS - 3 + lost) % PSNS}
    bench.post(6, READ, 256 * 4 + 10)  # 5 PSNs
    bench.post(6, FADD)
    if follow:
        bench.post(6, WRITE, 10)
    await bench.complete(2 + follow)
    await bench.quiet()
    again = [f for f in peer.seen if f.again]
    assert again[0].psn == (PSNS - 3 + lost) % PSNS
    implied = lost < 5 or follow
    assert bench.events.get("implied_nak_seq_err", 0) == int(implied)
    assert bench.events.get("local_ack_timeout_err", 0) == int(not implied)
    assert [f.opcode for f in again].count(READ_REQUEST) == int(lost < 5)


@cocotb.test()
@cocotb.parametrize(kind=["short", "long", "middle", "only", "atomic", "syndrome", "read_for_atomic"])
async def a_wrong_response_ends_the_queue_pair(dut, kind: str) -> None:
    bench = Bench(dut)
    await bench.start()
    peer = await bench.setup(7, mtu=1, mute=True)
    bench.post(7, WRITE, 10)
    bench.post(7, FADD if kind == "read_for_atomic" else READ, 600)
    bench.post(7, WRITE, 10)
    await until(bench, lambda: len(peer.seen) == 3)
    name, size, more = {
        "short": ("RDMA_READ_RESPONSE_FIRST", 252, {}), "long": ("RDMA_READ_RESPONSE_FIRST", 300, {}),
        "middle": ("RDMA_READ_RESPONSE_MIDDLE", 256, {}), "only": ("RDMA_READ_RESPONSE_ONLY", 256, {}),
        "atomic": ("ATOMIC_ACKNOWLEDGE", 0, {"original": 5}), "syndrome": ("RDMA_READ_RESPONSE_FIRST", 256, {"syndrome": 0x62}),
        "read_for_atomic": ("RDMA_READ_RESPONSE_ONLY", 8, {}),
    }[kind]  # fmt: skip
    peer.respond(f"RC_{name}", 1, bytes(size), **more)
    await bench.complete(1)  # what came before is implied
    await bench.complete(1, "WC_BAD_RESP_ERR")
    await bench.complete(1, "WC_WR_FLUSH_ERR")
    event = await bench.qp_event.recv()
    assert (event.qpn, event.status, event.kind) == (7, op("WC_BAD_RESP_ERR"), op("EVENT_QP_FATAL"))
    await bench.quiet()
    assert not bench.placed and bench.events["bad_response_err"] == 1
    assert (await bench.look(7)).state == op("QPS_ERR")
    assert [n for n, c in bench.commands if c.op == op("QP_MODIFY")] == ["receive", "response"], "all of the QP fails"


@cocotb.test()
@cocotb.parametrize(stall=alternately([0.0, 0.3]))
async def stray_responses_change_nothing(dut, stall: float) -> None:
    bench = Bench(dut, stall)
    await bench.start()
    peer = await bench.setup(8, psn=100, mtu=1, mute=True)
    other = await bench.setup(9, mute=True)
    bench.post(8, READ, 600)  # 100 to 102
    await until(bench, lambda: len(peer.seen) == 1)
    data = remote(bench.posted[8][0].remote_addr, 600)

    def stray(times: int = 1) -> None:
        for _ in range(times):
            peer.respond("RC_RDMA_READ_RESPONSE_FIRST", 99, bytes(256))  # before
            peer.respond("RC_RDMA_READ_RESPONSE_LAST", 103, bytes(77))  # behind
            other.respond("RC_RDMA_READ_RESPONSE_ONLY", 0, bytes(256))  # of nothing
            for qpn, ip in ((8, other.ip), (10, peer.ip), (0, peer.ip), (1, peer.ip), (QPS + 2, peer.ip), (0xFFFFFF, peer.ip)):
                bench.respond({"qpn": qpn, "src_ip": ip, "opcode": op("RC_RDMA_READ_RESPONSE_FIRST"), "psn": 100,
                               "aeth": {"syndrome": ACK}, "payload_length": 256}, bytes(256))  # fmt: skip

    stray(20)
    peer.respond("RC_RDMA_READ_RESPONSE_FIRST", 100, data[:256])
    peer.respond("RC_RDMA_READ_RESPONSE_FIRST", 100, data[:256])
    stray()
    peer.respond("RC_RDMA_READ_RESPONSE_MIDDLE", 101, data[256:512])
    stray()
    await wait_cycles(dut, 200)
    assert not bench.cqe.received
    peer.respond("RC_RDMA_READ_RESPONSE_LAST", 102, data[512:])
    await bench.complete(1)
    peer.respond("RC_RDMA_READ_RESPONSE_LAST", 102, data[512:])
    await bench.quiet()
    assert bench.events["drop_response_no_qp"] == 22 * 6
    assert bench.events["drop_ghost_response"] == 22 * 3 + 2
    assert len(peer.seen) == 1 and not bench.placed


@cocotb.test()
async def an_acknowledgement_beyond_a_read_is_not_believed(dut) -> None:
    bench = Bench(dut)
    await bench.start()
    peer = await bench.setup(8, mtu=1, mute=True, timeout=5, retry=2)
    bench.post(8, WRITE, 10)
    bench.post(8, READ, 256)
    bench.post(8, SEND, 10)
    await until(bench, lambda: len(peer.seen) == 3)
    for _ in range(5):
        peer.answer(ACK, 2)
    await bench.complete(1)
    await until(bench, lambda: len(peer.seen) == 5)
    assert [f.psn for f in peer.seen[3:]] == [1, 2] and all(f.again for f in peer.seen[3:])
    await wait_cycles(dut, 100)
    assert bench.events["implied_nak_seq_err"] == 1, "more of them do not ask again"
    peer.read_responses(bench.posted[8][0], 1, bench.posted[8][0].remote_addr, 256)
    peer.answer(ACK, 2)
    await bench.complete(2)
    await bench.quiet()
    # A peer that never answers a READ: the retries run out.
    bench.post(8, READ, 256)
    bench.post(8, SEND, 10)
    while not bench.cqe.received:
        peer.answer(ACK, 4)
        await wait_cycles(dut, 400)
    await bench.complete(1, "WC_RETRY_EXC_ERR")
    await bench.complete(1, "WC_WR_FLUSH_ERR")


@cocotb.test()
async def completions_wait_for_memory(dut) -> None:
    bench = Bench(dut)
    bench.write_latency = 400
    await bench.start()
    await bench.setup(2)
    bench.post(2, READ, 100)
    bench.post(2, WRITE, 100)
    bench.post(2, FADD)
    await until(bench, lambda: bench.events.get("rcvd_acks"))
    await wait_cycles(dut, 50)
    assert not bench.cqe.received
    await bench.complete(3)


@cocotb.test()
async def what_memory_refuses_fails_the_queue_pair(dut) -> None:
    bench = Bench(dut)
    bench.write_latency = 200
    await bench.start()
    await bench.setup(2, mtu=1)
    await bench.setup(3)
    bench.post(2, READ, 100)
    bad = bench.post(2, READ, 600)
    bench.bad_writes = {bad.local_addr + 256}
    bench.post(2, READ, 100)
    bench.post(2, WRITE, 100)
    bench.post(3, READ, 100)
    done = []
    while len(done) < 5:
        done.append(await bench.cqe.recv())
    by_qp = {q: [c.status for c in done if c.qpn == q] for q in (2, 3)}
    assert by_qp == {3: [0], 2: [op(f"WC_{n}") for n in ("SUCCESS", "LOC_PROT_ERR", "WR_FLUSH_ERR", "WR_FLUSH_ERR")]}
    event = await bench.qp_event.recv()
    assert (event.qpn, event.status) == (2, op("WC_LOC_PROT_ERR"))
    await bench.quiet()
    assert not bench.qp_event.received and bench.events["qp_error"] == 1 and bench.events["req_cqe_flush_error"] == 2


@cocotb.test()
async def a_read_of_2_gib_takes_its_psns(dut) -> None:
    bench = Bench(dut)
    await bench.start()
    peer = await bench.setup(2, psn=5, mtu=1, mute=True)
    bench.post(2, READ, 1 << 31, remote_addr=1 << 63)
    bench.post(2, WRITE, 1)
    await until(bench, lambda: peer.seen)
    request = bench.posted[2][0]
    assert peer.seen[0].ext == reth(1 << 63, request.rkey, 1 << 31)
    await wait_cycles(dut, 200)
    assert len(peer.seen) == 1, "the window is full"
    assert (await bench.look(2)).next == 5 + (1 << 23)
    peer.respond("RC_RDMA_READ_RESPONSE_FIRST", 5, bytes(256))
    peer.respond("RC_RDMA_READ_RESPONSE_MIDDLE", 7, bytes(256))  # one is lost
    await until(bench, lambda: len(peer.seen) == 2)
    assert (peer.seen[1].psn, peer.seen[1].ext) == (6, reth((1 << 63) + 256, request.rkey, (1 << 31) - 256))
    await bench.reset(2)
    await bench.quiet()


# ---- selective repeat ----


@cocotb.test()
@cocotb.parametrize((("selective", "every"), [(False, 128), (True, 16)]))
async def how_often_an_acknowledgement_is_asked_for(dut, selective: bool, every: int) -> None:
    bench = Bench(dut)
    await bench.start()
    peer = await bench.setup(3, psn=PSNS - 100, mtu=1, selective=selective)
    bench.post(3, WRITE, 256 * 700)
    await bench.complete(1)
    asked = [(f.psn + 1) % PSNS for f in peer.seen if f.ackreq]
    assert asked[-1] == 600 and all((b - a) % PSNS == every for a, b in pairwise(asked[:-1]))


@cocotb.test()
@cocotb.parametrize(lost=[0, 1, 7, 8, 20, 39], opcode=[WRITE, WRITE_IMM])
async def only_the_lost_packet_is_sent_again(dut, lost: int, opcode: int) -> None:
    bench = Bench(dut, latency=60)
    await bench.start()
    peer = await bench.setup(2, psn=PSNS - 8, mtu=1, selective=True, timeout=8)
    peer.drop = {(PSNS - 8 + lost) % PSNS}
    bench.post(2, opcode, 256 * 40 - 3)
    bench.post(2, WRITE, 256 * 20)
    await bench.complete(2)
    await bench.quiet()
    again = [f.psn for f in peer.seen if f.again]
    # The last packet of a WRITE with immediate is taken in order only, so it is lost as well if it came before the gap was closed.
    expected = {(PSNS - 8 + lost) % PSNS, *({31} if opcode == WRITE_IMM else {})}
    assert again[0] == (PSNS - 8 + lost) % PSNS and len(again) == len(set(again)) and set(again) <= expected
    assert bench.events["selective_retransmit"] >= 1 and not bench.events.get("local_ack_timeout_err")


@cocotb.test()
async def the_repetition_may_be_lost_as_well(dut) -> None:
    bench = Bench(dut, latency=30)
    bench.packet.stall = 0.85  # so that the window does not close
    await bench.start()
    peer = await bench.setup(2, mtu=1, selective=True, timeout=12)
    bench.post(2, WRITE, 256 * 300)
    await until(bench, lambda: len(peer.seen) > 5)
    lost = peer.seen[-1].psn + 3
    for times in range(1, 4):
        peer.drop = {lost}
        await until(bench, lambda t=times: [f.psn for f in peer.seen].count(lost) == t)
    await bench.complete(1)
    assert [f.psn for f in peer.seen].count(lost) == 4 and len(peer.seen) <= 303
    assert not bench.events.get("local_ack_timeout_err")


@cocotb.test()
async def the_selective_window_is_128(dut) -> None:
    bench = Bench(dut, latency=3)
    await bench.start()
    peer = await bench.setup(2, psn=PSNS - 20, mtu=1, selective=True, mute=True)
    bench.post(2, WRITE, 256 * 400)
    acknowledged = 0
    for step in (1, 5, 16, 17, 100, 128):
        await bench.quiet()
        assert len(peer.seen) == acknowledged + 128
        acknowledged += step
        peer.answer(ACK, PSNS - 20 + acknowledged - 1)
        await wait_cycles(dut, 60)
    await bench.quiet()
    peer.answer(ACK, PSNS - 20 + len(peer.seen) - 1)
    await bench.quiet()
    peer.answer(ACK, PSNS - 20 + 399)
    await bench.complete(1)


@cocotb.test()
async def a_selective_queue_pair_goes_back_after_a_timeout(dut) -> None:
    bench = Bench(dut)
    await bench.start()
    peer = await bench.setup(2, mtu=1, selective=True, mute=True, timeout=5, retry=2)
    bench.post(2, WRITE, 256 * 5)
    await until(bench, lambda: len(peer.seen) == 10)
    assert [f.psn for f in peer.seen] == [0, 1, 2, 3, 4] * 2
    assert all(f.opcode == op("RC_RDMA_WRITE_ONLY") for f in peer.seen)
    await bench.complete(1, "WC_RETRY_EXC_ERR")


@cocotb.test()
@cocotb.parametrize(
    kinds=[[WRITE_IMM], [SEND, WRITE], [WRITE, FADD, WRITE, READ, WRITE_IMM]], between=[0, 2], stall=alternately([0.0, 0.3])
)
async def what_follows_a_lost_packet_and_was_dropped_is_sent_again(dut, kinds: list[int], between: int, stall: float) -> None:
    """A lost packet costs a round trip, whatever was close behind it."""
    bench = Bench(dut, stall, latency=60)
    await bench.start()
    peer = await bench.setup(2, psn=PSNS - 8, mtu=1, selective=True, timeout=10)
    peer.drop = {PSNS - 6, *({PSNS - 6 + between} if between else {})}
    place = 0
    bench.post(2, WRITE, 256 * 6, remote_addr=place)
    count = 1
    for opcode in (kinds * 3)[:6]:
        place += 4096
        bench.post(2, opcode, 500, remote_addr=place)
        count += 1
    await bench.complete(count)
    await bench.quiet()
    assert not bench.events.get("local_ack_timeout_err")
    # What was dropped is sent again once for each gap before it; what was placed is not.
    lost = {PSNS - 6, PSNS - 6 + between}
    for psn, again in Counter(f.psn for f in peer.seen if f.again).items():
        plain = all(f.opcode == op("RC_RDMA_WRITE_ONLY") for f in peer.seen if f.psn == psn)
        assert again == 1 if psn in lost else not plain and again <= len(lost)


@cocotb.test()
async def what_is_sent_again_with_a_lost_packet_may_be_lost_as_well(dut) -> None:
    bench = Bench(dut, latency=60)
    bench.packet.stall = 0.8  # so that the window does not close
    await bench.start()
    peer = await bench.setup(2, mtu=1, selective=True, timeout=13)
    peer.drop = {5}
    bench.post(2, WRITE_IMM, 256 * 10, remote_addr=0)  # PSN 9 has the immediate
    bench.post(2, WRITE, 256 * 300, remote_addr=1 << 20)
    await until(bench, lambda: any(f.psn == 5 and f.again for f in peer.seen))
    peer.drop = {9}
    await bench.complete(2)
    assert [f.psn for f in peer.seen].count(5) == 2 and [f.psn for f in peer.seen].count(9) == 3
    assert len(peer.seen) == 313 and not bench.events.get("local_ack_timeout_err")


@cocotb.test()
@cocotb.parametrize(first=[WRITE, WRITE_IMM, FADD], shift=[-300, -299, 0, 299, 300])
async def a_write_waits_for_what_changes_the_same_bytes(dut, first: int, shift: int) -> None:
    bench = Bench(dut)
    await bench.start()
    peer = await bench.setup(2, mtu=1, selective=True, mute=True)
    size = 8 if first == FADD else 300
    meets = -300 < shift < size
    bench.post(2, first, 300, remote_addr=1 << 20)
    bench.post(2, WRITE, 0, remote_addr=(1 << 20) + 3)  # changes nothing
    bench.post(2, READ, 100, remote_addr=1 << 20)
    bench.post(2, WRITE, 300, remote_addr=(1 << 20) + shift)
    await bench.quiet()
    before = (1 if first == FADD else 2) + 2
    assert len(peer.seen) == before + (0 if meets else 2)
    peer.mute = False
    if first == FADD:
        peer.respond("RC_ATOMIC_ACKNOWLEDGE", 0, original=peer.answered[0].original)
    peer.answer(ACK, before - 2)
    peer.read_responses(bench.posted[2][2], before - 1, 1 << 20, 100)
    await bench.complete(3)
    if not meets:
        peer.answer(ACK, before + 1)
    await bench.complete(1)


@cocotb.test()
@cocotb.parametrize(second=[-1000, 1000])
async def a_write_waits_for_any_of_those_before_it(dut, second: int) -> None:
    """Not only for the last one; and not for what is outstanding on another queue pair, nor for a
    SEND, whatever its address says."""
    bench = Bench(dut)
    await bench.start()
    peer, _ = [await bench.setup(qpn, mtu=1, selective=True, mute=True) for qpn in (2, 3)]
    base, far = 1 << 20, 1 << 24
    for qpn, opcode, address, seen in (
        (3, WRITE, far, 0), (2, WRITE, base, 1), (2, WRITE, base + second, 2), (3, WRITE, far + 100, 2), (2, SEND, far, 3),
        (2, WRITE, far + 50, 4), (2, WRITE, base + 50, 4),
    ):  # fmt: skip
        bench.post(qpn, opcode, 100, remote_addr=address)
        await bench.quiet()
        assert len(peer.seen) == seen, f"{opcode} at {address:#x}"
    peer.mute = False
    peer.answer(ACK, 3)
    await bench.complete(5)


@cocotb.test()
async def idle_ends_only_with_something_new(dut) -> None:
    """From the cycle behind that in which something comes until all that follows from it has left, there is no idle cycle."""
    bench = Bench(dut)
    await bench.start()
    peer, other = await bench.setup(2), await bench.setup(3)
    await bench.quiet()
    inputs = (
        "cmd_", "wqe_", "response_", "response_payload_t", "fault_", "receive_event_", "resume_", "write_done_", "receive_answer_",
        "response_answer_",
    )  # fmt: skip
    outputs = ("answer_", "cqe_", "qp_event_", "packet_", "write_", "write_data_t", "parked_", "receive_cmd_", "response_cmd_")
    came = [getattr(dut, f"{name}valid") for name in inputs]
    goes = [getattr(dut, f"{name}valid") for name in outputs]

    async def watch() -> None:
        was, new = False, False
        while True:
            await RisingEdge(dut.clk)
            idle, before, new = bool(int(dut.idle.value)), new, any(int(valid.value) for valid in came)
            assert idle or not was or new or before, "idle ends by itself"
            assert not idle or not any(int(valid.value) for valid in goes), "idle, and something comes"
            was = idle

    watching = cocotb.start_soon(watch())
    for opcode in (WRITE, READ, FADD, SEND):
        bench.post(2, opcode, 1000)
        await bench.complete(1)
        await bench.quiet()
        bench.post(3, opcode, 100, signaled=False)
        await bench.quiet()
    bench.post(99, known=False)  # comes back
    assert (await bench.cqe.recv()).qpn == 99
    await bench.quiet()
    await bench.modify(2, "QPS_SQD")
    await bench.quiet()
    await bench.modify(2, "QPS_RTS")
    await bench.quiet()
    other.mute = True
    bench.post(3)
    await bench.quiet()
    other.answer(0x62, other.seen[-1].psn)
    await bench.quiet()
    assert bench.cqe.received
    bench.receive_event.send(kind=op("EVENT_COMM_EST"), qpn=2)
    await bench.quiet()
    await bench.reset(2)
    await bench.quiet()
    assert peer.seen and not watching.done()


@cocotb.test()
async def idle_knows_every_clock(dut) -> None:
    """From the first idle cycle on, with an acknowledgement to come, a jump of time behind the timeout is seen at once."""
    bench = Bench(dut)
    await bench.start()
    peer = await bench.setup(2, timeout=10, mute=True)
    await bench.quiet()
    bench.post(2)
    await bench.wqe.drained()
    await wait_cycles(dut, 3)
    assert not int(dut.idle.value)
    while not int(dut.idle.value):
        await FallingEdge(dut.clk)
    bench.now += 1 << 20
    await wait_cycles(dut, 4)
    assert not int(dut.idle.value)
    await until(bench, lambda: len(peer.seen) == 2)


@cocotb.test()
@cocotb.parametrize(second=[-1000, 1000])
async def a_write_waits_for_those_that_begin_with_it(dut, second: int) -> None:
    """They were posted while the send queue was drained: all begin at one visit."""
    bench = Bench(dut)
    await bench.start()
    peer = await bench.setup(2, mtu=1, selective=True, mute=True)
    await bench.modify(2, "QPS_SQD")
    base = 1 << 20
    for address in (base, base + second, base + 2 * second, base + 50):
        bench.post(2, WRITE, 100, remote_addr=address)
    await bench.quiet()
    await bench.modify(2, "QPS_RTS")
    await bench.quiet()
    assert len(peer.seen) == 3
    peer.mute = False
    peer.answer(ACK, 2)
    await bench.complete(4)


@cocotb.test()
async def streams_of_writes_of_two_queue_pairs_do_not_wait(dut) -> None:
    """Each to ascending addresses; those of one lie behind all of the other."""
    bench = Bench(dut, latency=100)
    await bench.start()
    for qpn in (2, 3):
        await bench.setup(qpn, mtu=4, selective=True)
    for i in range(SQ_DEPTH):
        for qpn in (2, 3):
            bench.post(qpn, WRITE, 4096, remote_addr=(qpn << 32) + 4096 * i)
    begin = bench.cycle
    await bench.complete(2 * SQ_DEPTH)
    assert bench.cycle - begin <= 500, "about one round trip"


@cocotb.test()
@cocotb.parametrize(selective=[0, 1])
async def a_stream_of_writes_does_not_wait(dut, selective: int) -> None:
    bench = Bench(dut, latency=100)
    await bench.start()
    await bench.setup(2, mtu=4, selective=bool(selective))
    for i in range(SQ_DEPTH):
        bench.post(2, WRITE, 4096, remote_addr=2**64 - 4096 * (SQ_DEPTH - i))
    begin = bench.cycle
    await bench.complete(SQ_DEPTH)
    assert bench.cycle - begin <= 300, "one round trip and less than the beats of the payload"


# ---- states ----


@cocotb.test()
@cocotb.parametrize(stall=alternately([0.0, 0.4]))
async def from_init_to_ready_to_send(dut, stall: float) -> None:
    bench = Bench(dut, stall)
    await bench.start()
    peer = await bench.setup(5, state="QPS_INIT", mtu=2)
    assert (await bench.look(5)).state == op("QPS_INIT")
    bench.post(5, known=False)
    assert (await bench.cqe.recv()).status == op("WC_WR_FLUSH_ERR")
    for state in ("QPS_RTS", "QPS_SQD", "QPS_INIT", "QPS_SQE", "QPS_RESET"):
        await bench.modify(5, state, answer=0)
    await bench.modify(5, "QPS_RTR")
    bench.post(5, known=False)
    assert (await bench.cqe.recv()).status == op("WC_WR_FLUSH_ERR")
    for state in ("QPS_RTR", "QPS_SQD", "QPS_INIT"):
        await bench.modify(5, state, answer=0)
    peer.psn = 4321
    await bench.modify(5, "QPS_RTS", attr={"sq_psn": 4321, "timeout": 0, "retry_cnt": 3, "rnr_retry": 3, "max_rd_atomic": 255})
    for verb in ALL_VERBS:
        bench.post(5, verb, 1000)
    await bench.complete(len(ALL_VERBS))
    view = await bench.look(5)
    assert (view.state, view.ip, view.dest_qp_num) == (op("QPS_RTS"), peer.ip, peer.dest)
    assert view.next == view.oldest == peer.psn
    assert peer.seen[0].psn == 4321 and len(peer.seen[0].payload) == 512, "the path is that of the set-up"
    await bench.setup(5, expect=0)
    for qpn in (0, 1, QPS + 2, 0xFFFFFF):
        await bench.setup(qpn, expect=0)
        await bench.modify(qpn, "QPS_ERR", answer=0)
        await bench.reset(qpn, answer=0)
        assert (await bench.look(qpn)).state == op("QPS_RESET")
    await bench.modify(6, "QPS_ERR", answer=0)
    await bench.quiet()
    steps = [(n, c.op, c.state) for n, c in bench.commands]
    setup, modify = op("QP_SETUP"), op("QP_MODIFY")
    states = [(setup, op("QPS_INIT")), (modify, op("QPS_RTR")), (modify, op("QPS_RTS"))]
    assert steps == [(n, *s) for s in states for n in ("response", "receive")], "receive is ready last"


@cocotb.test()
async def a_setup_that_a_unit_refuses_is_undone(dut) -> None:
    bench = Bench(dut)
    await bench.start()
    bench.refuse_commands = {"receive"}
    await bench.setup(5, expect=0)
    assert (await bench.look(5)).state == op("QPS_RESET")
    assert [(n, c.op) for n, c in bench.commands][-2:] == [("receive", op("QP_RESET")), ("response", op("QP_RESET"))]
    bench.refuse_commands = set()
    await bench.setup(5)
    for verb in ALL_VERBS:
        bench.post(5, verb, 100)
    await bench.complete(len(ALL_VERBS))


@cocotb.test()
@cocotb.parametrize(stall=alternately([0.0, 0.3]))
async def a_send_queue_drains(dut, stall: float) -> None:
    bench = Bench(dut, stall)
    await bench.start()
    peer = await bench.setup(5, mtu=1, timeout=7, loss=0.05, ack_loss=0.05)
    await bench.setup(6)
    drained = op("EVENT_SQ_DRAINED")
    for round_ in range(6):
        for _ in range(6):
            bench.post(5, bench.rng.choice(ALL_VERBS), bench.rng.randrange(3000))
        await wait_cycles(dut, bench.rng.choice([0, 5, 30, 60, 100]))
        await bench.modify(5, "QPS_SQD")
        for _ in range(4):
            bench.post(5, WRITE, 100)
        bench.post(6, SEND, 10)
        event = await bench.qp_event.recv(60_000)
        assert (event.qpn, event.kind) == (5, drained)
        assert peer.offset == 0
        begun = peer.expected.copy()
        await until(bench, lambda b=begun: len(bench.posted[5]) - sum(c.qpn == 5 for c in bench.cqe.received) <= len(b) + 64)
        # All that was begun has completed, and nothing else is begun.
        done = sum(c.qpn == 5 for c in bench.cqe.received)
        assert done == len(bench.posted[5]) - len(begun), (round_, done)
        seen = len(peer.seen)
        await wait_cycles(dut, 500)
        assert len(peer.seen) == seen and not bench.qp_event.received
        assert (await bench.look(5)).state == op("QPS_SQD")
        await bench.modify(5, "QPS_RTS")
        await bench.complete(11)
    await bench.quiet()


@cocotb.test()
async def err_may_be_asked_for(dut) -> None:
    bench = Bench(dut)
    await bench.start()
    peer = await bench.setup(5, mtu=1, mute=True)
    for verb in ALL_VERBS:
        bench.post(5, verb, 300)
    await until(bench, lambda: len(peer.seen) > 3)
    await bench.modify(5, "QPS_ERR")
    await bench.complete(len(ALL_VERBS), "WC_WR_FLUSH_ERR")
    for _ in range(2):
        for _ in range(SQ_DEPTH):
            bench.post(5, READ, 10)
        await bench.complete(SQ_DEPTH, "WC_WR_FLUSH_ERR")
    await bench.modify(5, "QPS_ERR")
    await bench.modify(5, "QPS_RTS", answer=0)
    bench.receive_event.send(kind=op("EVENT_QP_FATAL"), qpn=5, status=op("WC_LOC_PROT_ERR"))
    await bench.quiet()
    assert not bench.qp_event.received, "no event for a state that was requested"
    assert (await bench.look(5)).state == op("QPS_ERR")
    await bench.reset(5)
    assert (await bench.look(5)).state == op("QPS_RESET")
    await bench.setup(5)
    bench.post(5, READ, 300)
    await bench.complete(1)


@cocotb.test()
async def a_failure_of_the_receive_side_ends_it_all(dut) -> None:
    bench = Bench(dut)
    await bench.start()
    peer = await bench.setup(5, mtu=1, mute=True)
    bench.post(5, SEND, 300)
    await until(bench, lambda: peer.seen)
    bench.receive_event.send(kind=op("EVENT_COMM_EST"), qpn=5)
    for _ in range(2):
        bench.receive_event.send(kind=op("EVENT_QP_FATAL"), qpn=5, status=op("WC_LOC_PROT_ERR"))
    await bench.complete(1, "WC_WR_FLUSH_ERR")
    kinds = [(await bench.qp_event.recv()).kind for _ in range(2)]
    assert kinds == [op("EVENT_COMM_EST"), op("EVENT_QP_FATAL")]
    await bench.quiet()
    assert not bench.qp_event.received and (await bench.look(5)).state == op("QPS_ERR")
    await bench.reset(5)
    await bench.setup(5)
    bench.post(5, SEND, 300)
    await bench.complete(1)


@cocotb.test()
@cocotb.parametrize(stall=alternately([0.0, 0.4]))
async def reset_in_the_middle_of_reads_leaves_nothing(dut, stall: float) -> None:
    bench = Bench(dut, stall, latency=40)
    bench.write_latency = 100
    await bench.start()
    await bench.setup(15, mtu=2)
    for round_ in range(8):
        peer = await bench.setup(14, psn=1000 * round_, mtu=1, timeout=6, loss=0.03, ack_loss=0.03)
        for _ in range(RD_DEPTH):
            bench.post(14, bench.rng.choice([READ, FADD, WRITE]), bench.rng.randrange(2000))
        for _ in range(3):
            bench.post(15, READ, bench.rng.randrange(2000))
        await wait_cycles(dut, 40 * round_)
        await bench.wqe.drained()
        await bench.reset(14)
        assert bench.commands[-2][0] == "receive" and bench.commands[-1][0] == "response"
        mine = [c.wr_id for c in bench.cqe.received if c.qpn == 14]
        seen, late = len(peer.seen), [address for _, address, *_ in bench._dones]
        peer.answer(ACK, peer.psn - 1)
        await wait_cycles(dut, 400)
        assert len(peer.seen) == seen and [c.wr_id for c in bench.cqe.received if c.qpn == 14] == mine
        assert not {a for a in late if any(r.local_addr <= a < r.local_addr + 4096 for r in bench.posted[14] if r.reads)}
        bench.posted[14].clear()
        for _ in range(len(bench.cqe.received)):
            c = await bench.cqe.recv()
            if c.qpn == 14:
                continue
            request = bench.posted[15].popleft()
            assert (c.wr_id, c.status) == (request.wr_id, 0)
            bench.check_result(request)
        await bench.complete(len(bench.posted[15]))
        bench.placed.clear()
    await bench.quiet()


# ---- pacing ----


@cocotb.test()
async def a_blocked_queue_pair_is_parked_until_it_is_resumed(dut) -> None:
    bench = Bench(dut)
    await bench.start()
    peer = await bench.setup(5, mtu=1)
    other = await bench.setup(6, mtu=1)
    dut.blocked.value = 1 << 3
    for _ in range(3):
        bench.post(5, WRITE, 601)
        bench.post(6, SEND, 601)
    await bench.complete(3)
    await wait_cycles(dut, 100)
    assert not peer.seen and len(other.seen) == 9 and set(bench.parked) == {3}
    dut.blocked.value = 0
    bench.resume.send(3)
    await bench.complete(3)
    await bench.quiet()
    # Preamble 8, headers 54, ICRC 4, FCS 4, gap 12; payload 256, 256 and 89, padded to 92.
    assert bench.sent_bytes == {3: 3 * (3 * 82 + 16 + 604), 4: 3 * (3 * 82 + 604)}


# ---- all at once ----


@cocotb.test()
@cocotb.parametrize(trouble=[0.0, 0.02, 0.06], stall=alternately([0.0, 0.25]), selective=[0, 1])
async def all_verbs_at_random(dut, trouble: float, stall: float, selective: int) -> None:
    bench = Bench(dut, stall, latency=40)
    await bench.start()
    qpns = list(range(2, 2 + QPS)) if QPS <= 16 else [*bench.rng.sample(range(2, 2 + QPS), 24), 2, 1 + QPS]
    qpns = sorted(set(qpns))
    for qpn in qpns:
        await bench.setup(
            qpn, psn=bench.rng.choice([0, PSNS - 5, PSNS // 2 - 3, bench.rng.randrange(PSNS)]), mtu=bench.rng.choice([1, 1, 2, 3]),
            timeout=8, loss=trouble, ack_loss=trouble, repeat=trouble, reorder=trouble, not_ready=trouble / 4,
            selective=bool(selective and qpn % 4), max_rd=bench.rng.choice([1, 2, RD_DEPTH]),
        )  # fmt: skip
    left = total = 300 if not trouble else 160
    outstanding = dict.fromkeys(qpns, 0)
    reads = dict.fromkeys(qpns, 0)
    kinds = {}
    done = 0
    while done < total:
        for qpn in qpns:
            if left and outstanding[qpn] < SQ_DEPTH and bench.rng.random() < 0.06:
                opcode = bench.rng.choice(ALL_VERBS)
                if opcode in (READ, CAS, FADD):
                    if reads[qpn] == RD_DEPTH:
                        continue
                    reads[qpn] += 1
                length = bench.rng.choice([0, 1, 64, 255, 256, 257, bench.rng.randrange(5000)])
                where = {}
                if selective and opcode in (WRITE, WRITE_IMM):  # some change the same bytes, also those of atomics
                    where["remote_addr"] = bench.rng.randrange(1 << 14)
                request = bench.post(
                    qpn, opcode, length, fence=bench.rng.random() < 0.1, solicited=bench.rng.random() < 0.5, **where
                )
                kinds[request.wr_id] = request.reads
                outstanding[qpn] += 1
                left -= 1
        await wait_cycles(dut, 3)
        while bench.cqe.received:
            cqe = (await bench.complete(1))[0]
            outstanding[cqe.qpn] -= 1
            reads[cqe.qpn] -= kinds[cqe.wr_id]
            done += 1
        assert bench.cycle < 400_000
    assert not any(p.expected for p in bench.peers.values()) and not bench.placed and not bench.qp_event.received
    await bench.quiet(60_000)


# ---- rates ----


@cocotb.test()
async def responses_are_taken_one_in_four_cycles(dut) -> None:
    bench = Bench(dut)
    await bench.start()
    peers = [await bench.setup(q, mute=True) for q in range(2, 18)]
    for i in range(16 * RD_DEPTH):
        bench.post(2 + i % 16, READ, 0)
    await until(bench, lambda: sum(len(p.seen) for p in peers) == 16 * RD_DEPTH)
    for i in range(16 * RD_DEPTH):
        peers[i % 16].respond("RC_RDMA_READ_RESPONSE_ONLY", i // 16)
    begin = bench.cycle
    await until(bench, lambda: bench.response.sent == 16 * RD_DEPTH)
    assert bench.cycle - begin <= 4 * 16 * RD_DEPTH
    await bench.complete(16 * RD_DEPTH)


@cocotb.test()
async def read_data_passes_at_line_rate(dut) -> None:
    bench = Bench(dut, latency=10)
    await bench.start()
    peer = await bench.setup(2, mtu=3, mute=True)
    bench.post(2, READ, 60 * 1024)
    await until(bench, lambda: peer.seen)
    peer.read_responses(bench.posted[2][0], 0, bench.posted[2][0].remote_addr, 60 * 1024)
    begin = bench.cycle
    await bench.complete(1)
    assert bench.cycle - begin <= 60 * 16 + 80, "16 beats a packet"


@pytest.mark.parametrize(("width", "qps"), [(512, 16), (64, 16), (512, 256)])
def test_roce_requester_rd(width: int, qps: int) -> None:
    select = {
        (512, 16): ".",
        (64, 16): "reads_of|atomics|stray|at_random.*0.02",
        (512, 256): "stray|at_random|states|ready_to_send",
    }
    run(
        "requester_bench",
        __file__,
        params={"DATA_W": width, "QPS": qps, "SQ_DEPTH": SQ_DEPTH, "RD_DEPTH": RD_DEPTH, "CLOCK_HZ": CLOCK_HZ},
        ports=ports(width, qps),
        sources=[BENCH],
        env={"COCOTB_TEST_FILTER": select[width, qps], "NACELLE_QPS": str(qps)},
        random_state=True,
    )
