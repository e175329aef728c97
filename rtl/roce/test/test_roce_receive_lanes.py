# SPDX-License-Identifier: Apache-2.0
"""The receive side with two memories: a slow one delays the queue pairs that use it, and no others."""

from __future__ import annotations

import random
from collections import Counter

import cocotb
from nacelle_tb.long import some
from nacelle_tb.roce import Frame, atomiceth, op, reth
from nacelle_tb.streams import wait_cycles
from receive_bench import BASE, FAR, Bench, build_and_run, respond, write

NEAR_QP, FAR_QP, MIXED_QP = 2, 3, 4
SIZE = 0x10000
FAR_PENDING = 256


class Lanes(Bench):
    """Three queue pairs: one uses the near memory, one the far one, one both."""

    async def start(self) -> None:
        await super().start()
        self.psn = {}
        self.keys = {}
        for qpn in (NEAR_QP, FAR_QP, MIXED_QP):
            self.psn[qpn] = random.getrandbits(24)
            await self.setup(qpn, self.psn[qpn], 1)
            for base in (BASE, FAR):
                self.keys[qpn, base] = await self.register(qpn, base + qpn * SIZE, SIZE)

    def frames(self, qpn: int, base: int, size: int, offset: int = 0, data: bytes | None = None) -> list[Frame]:
        """One WRITE, not sent."""
        data = random.randbytes(size) if data is None else data
        frames = list(write(qpn, self.psn[qpn], 256, base + qpn * SIZE + offset, self.keys[qpn, base], data))
        self.psn[qpn] = (self.psn[qpn] + len(frames)) % (1 << 24)
        return frames

    def place(self, qpn: int, base: int, size: int, offset: int = 0) -> None:
        """One WRITE."""
        self.send(*self.frames(qpn, base, size, offset))

    def acked(self, qpn: int) -> list[int]:
        """PSNs of the acknowledgements of a queue pair so far."""
        return [r[2] for r in map(respond, self.respond.received) if r[0] == "ACK" and r[1] == qpn]


async def lanes(dut, stall: float = 0.0) -> Lanes:
    bench = Lanes(dut, stall)
    await bench.start()
    return bench


@cocotb.test()
async def a_stopped_memory_holds_up_nobody_else(dut) -> None:
    """The queue pair of both memories waits where it has used the far one, its WRITEs to the near one behind that too."""
    bench = await lanes(dut)
    bench.far_stopped = True
    first = bench.psn.copy()
    bench.place(MIXED_QP, BASE, 100)
    for i in range(20):
        bench.place(FAR_QP, FAR, 300, i * 512)
        bench.place(MIXED_QP, FAR if i % 3 == 0 else BASE, 40, 0x1000 + i * 64)
        bench.place(NEAR_QP, BASE, 256, i * 256)
    await wait_cycles(dut, 2500)
    assert len(bench.acked(NEAR_QP)) == 20
    assert bench.acked(FAR_QP) == []
    assert bench.acked(MIXED_QP) == [first[MIXED_QP]]
    bench.far_stopped = False
    await bench.compare()


@cocotb.test()
@cocotb.parametrize(stall=some([0.3, 0.0]))
async def each_queue_pair_keeps_its_order(dut, stall: float) -> None:
    """WRITEs, READs, atomics and duplicates at random, to either memory at its pace."""
    bench = await lanes(dut, stall)
    bench.memory_delay = -1
    for _ in range(30):
        bench.far_delay = random.choice((0, 5, 60, 400))
        reads = Counter()
        for _ in range(12):
            qpn = random.choice((NEAR_QP, FAR_QP, MIXED_QP))
            base = {NEAR_QP: BASE, FAR_QP: FAR}.get(qpn, random.choice((BASE, FAR)))
            kind = random.random()
            reads[qpn] += 0.6 <= kind < 0.8
            if reads[qpn] > 6:
                kind = 0.0
            where, rkey, psn = base + qpn * SIZE, bench.keys[qpn, base], bench.psn[qpn]
            if kind < 0.6:
                bench.place(qpn, base, random.randint(0, 700), random.randrange(0x1000))
            elif kind < 0.7:
                bench.send(Frame(op("RC_RDMA_READ_REQUEST"), qpn, psn, b"", reth(where, rkey, 64)))
                bench.psn[qpn] = (psn + 1) % (1 << 24)
            elif kind < 0.8:
                bench.send(Frame(op("RC_FETCH_ADD"), qpn, psn, b"", atomiceth(where, rkey, 1, 0)))
                bench.psn[qpn] = (psn + 1) % (1 << 24)
            else:
                old = (psn - random.randint(1, 9)) % (1 << 24)
                bench.send(Frame(op("RC_RDMA_WRITE_ONLY"), qpn, old, b"x", reth(where, rkey, 1), ackreq=True))
        await bench.compare()
        for qpn in reads:
            bench.answer_reads(qpn)


@cocotb.test()
async def what_has_no_room_is_asked_for_again(dut) -> None:
    """RNR NAKs while there is room for answers, then nothing; the near memory's queue pair is served as ever, each in its time."""
    bench = await lanes(dut)
    bench.far_stopped = True
    bench.far_room = 64  # units
    begin = bench.psn[FAR_QP]
    sent = bench.frames(FAR_QP, FAR, 100 * 256)
    taken = 33  # there is room for one more while 32 units are free
    # The model has no busy memory: the test gives it the packets that were taken.
    bench.send(*sent[:taken])
    for frame in sent[taken:]:
        bench.frame.send(frame.rx())
        bench.payload.send(frame.payload)
    for i in range(10):
        bench.place(NEAR_QP, BASE, 256, i * 256)
    await wait_cycles(dut, 5000)
    assert len(bench.acked(NEAR_QP)) == 10
    assert bench.acked(FAR_QP) == []
    expected = (begin + taken) % (1 << 24)
    # The same packet again, more often than there is room for answers: the peer's RNR time is not the device's to keep.
    for _ in range(FAR_PENDING + 20):
        bench.frame.send(sent[taken].rx())
        bench.payload.send(sent[taken].payload)
    for i in range(10, 40):
        bench.place(NEAR_QP, BASE, 256, i * 256)
    await wait_cycles(dut, 50 * FAR_PENDING)
    assert len(bench.acked(NEAR_QP)) == 40
    assert bench.counts["memory_busy"] == FAR_PENDING + 21
    bench.far_stopped = False
    bench.far_room += 1 << 20
    await bench.quiet()
    naks = [r for r in map(respond, bench.respond.received) if r[1] == FAR_QP]
    assert naks and all(r[:3] == ("ACK", FAR_QP, expected) and r[3] == op("SYNDROME_RNR_NAK") | 12 for r in naks), naks
    assert FAR_PENDING // 2 < len(naks) < FAR_PENDING
    for r in list(bench.respond.received):
        if r.qpn == FAR_QP:
            bench.respond.received.remove(r)
    del bench.counts["memory_busy"]
    assert bench.counts.pop("out_of_seq_request") == 100 - taken - 1, "those behind the first that was refused"
    bench.model.counts["rcvd_pkts"] = bench.counts["rcvd_pkts"]
    bench.model.pulses["active"] = bench.pulses["active"]
    bench.send(*sent[taken:])
    await bench.compare()


@cocotb.test()
async def what_memory_refuses_is_told_to_the_right_peer(dut) -> None:
    """A WRITE of the queue pair of both memories to the near one fails, while it waits for the far one."""
    bench = await lanes(dut)
    bench.far_stopped = True
    bench.place(MIXED_QP, FAR, 10)
    bad = BASE + MIXED_QP * SIZE + 0x100
    bench.refuse.add(bad)
    psn = bench.psn[MIXED_QP]
    frame = bench.frames(MIXED_QP, BASE, 10, 0x100)[0]
    bench.frame.send(frame.rx())
    bench.payload.send(frame.payload)
    bench.place(NEAR_QP, BASE, 10)
    await wait_cycles(dut, 300)
    assert len(bench.acked(NEAR_QP)) == 1 and not bench.acked(MIXED_QP)
    bench.far_stopped = False
    await bench.quiet()
    got = [respond(r) for r in bench.respond.received if r.qpn == MIXED_QP]
    assert [r[3] for r in got] == [op("SYNDROME_ACK"), op("SYNDROME_NAK_REM_OP")] and got[1][2] == psn
    assert [(e.kind, e.qpn) for e in bench.qp_event.received][-1] == (op("EVENT_QP_FATAL"), MIXED_QP)
    assert len([e for e in bench.qp_event.received if e.kind == op("EVENT_QP_FATAL")]) == 1


@cocotb.test()
async def a_key_and_a_queue_pair_end_when_the_far_memory_has_confirmed(dut) -> None:
    bench = await lanes(dut)
    bench.far_stopped = True
    bench.place(FAR_QP, FAR, 300)
    await wait_cycles(dut, 200)
    for end in (bench.deregister(bench.keys[FAR_QP, FAR]), bench.reset(MIXED_QP)):
        task = cocotb.start_soon(end)
        await wait_cycles(dut, 500)
        assert not task.done()
        bench.place(NEAR_QP, BASE, 256)
        await wait_cycles(dut, 300)
        assert len(bench.acked(NEAR_QP)) > 0
        bench.far_stopped = False
        await task
        assert not bench.far
        bench.far_stopped = True
        bench.place(MIXED_QP, FAR, 30)
        await wait_cycles(dut, 100)
    bench.far_stopped = False
    await bench.quiet()


def test_roce_receive_lanes() -> None:
    build_and_run(__file__, lanes=2)
