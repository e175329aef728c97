# SPDX-License-Identifier: Apache-2.0
"""roce_receive: the L_Keys of work requests, against the table of regions that requests of peers use: who may use which memory,
what becomes of a receive whose key is wrong, and that peers are not held up."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import pairwise

import cocotb
import pytest
from cocotb.triggers import FallingEdge, RisingEdge
from nacelle_tb.long import alternately
from nacelle_tb.roce import Frame, op, reth
from nacelle_tb.streams import wait_cycles
from nacelle_tb.svtypes import constant
from receive_bench import BASE, FAR, LANES, TRUSTED, Bench, build_and_run, send

SENDS = ("WR_SEND", "WR_SEND_WITH_IMM", "WR_SEND_WITH_INV", "WR_RDMA_WRITE", "WR_RDMA_WRITE_WITH_IMM")
LANDINGS = ("WR_RDMA_READ", "WR_ATOMIC_CMP_AND_SWP", "WR_ATOMIC_FETCH_AND_ADD")
ATOMICS = LANDINGS[1:]
RESERVED = constant("roce_pkg::LOCAL_DMA_LKEY")
SIZE = 0x1000
QPN, PD, CLIENT = 2, 3, TRUSTED + 1  # of a client that is not trusted
NOTHING, WRITABLE = frozenset[str](), frozenset({"local_write"})
REMOTE_OPERATIONAL = op("SYNDROME_NAK_REM_OP")


async def untrusted(dut, stall: float = 0.0) -> Bench:
    bench = Bench(dut, stall)
    await bench.start()
    await bench.setup(QPN, 100, 1, pd=PD, client=CLIENT)
    return bench


async def denied(bench: Bench, opcode: str, lkey: int, addr: int = BASE, length: int = SIZE, qpn: int = QPN) -> bool:
    """What is said of a work request of the send queue; it passes whatever that is."""
    fields = {"opcode": op(opcode), "qpn": qpn, "local_addr": addr, "length": length, "lkey": lkey, "wr_id": random.getrandbits(16)}
    bench.post.send(**fields)
    passed = await bench.sends.recv()
    assert {name: getattr(passed, name) for name in fields} == fields
    access = await bench.access.recv()
    trusted = lkey == RESERVED and bench.clients[qpn] == TRUSTED
    assert access.keyed == (not trusted and (length > 0 or opcode in ATOMICS))
    return bool(access.denied)


@cocotb.test()
@cocotb.parametrize(stall=alternately([0.0, 0.5]))
async def a_key_serves_its_region_and_nothing_else(dut, stall: float) -> None:
    bench = await untrusted(dut, stall)
    key = await bench.register(0, BASE, SIZE, NOTHING, PD)
    for opcode in SENDS:
        for addr, length, wrong in (
            (BASE, SIZE, False), (BASE, 1, False), (BASE + SIZE - 1, 1, False), (BASE + SIZE, 1, True), (BASE - 1, 1, True),
            (BASE - 1, SIZE, True), (BASE + 1, SIZE, True), (BASE, SIZE + 1, True), (BASE, 1 << 31, True),
            (BASE + (1 << 63), 1, True), ((1 << 64) - 1, 2, True),
        ):  # fmt: skip
            assert await denied(bench, opcode, key, addr, length) == wrong, f"{opcode} {addr:x} {length}"
    for bit in range(32):
        assert await denied(bench, "WR_SEND", key ^ 1 << bit)
    await bench.deregister(key)
    assert await denied(bench, "WR_SEND", key)


@cocotb.test()
async def a_key_is_of_a_domain_or_of_one_queue_pair_in_it(dut) -> None:
    bench = await untrusted(dut)
    await bench.setup(3, 100, 1, pd=PD, client=CLIENT)
    await bench.setup(4, 100, 1, pd=PD + 1, client=CLIENT)
    for owner, pd in ((0, PD), (0, PD + 1), (3, PD), (4, PD), (4, PD + 1)):
        key = await bench.register(owner, BASE, SIZE, WRITABLE, pd)
        for qpn in (2, 3, 4):
            mine = pd == bench.model.qps[qpn].pd and owner in (0, qpn)
            for opcode in ("WR_SEND", "WR_RDMA_READ"):
                assert await denied(bench, opcode, key, qpn=qpn) != mine, f"QP {qpn}, region of {owner} in {pd}"
    # The number serves another owner then.
    await bench.setup(4, 100, 1, pd=PD, client=CLIENT)
    key = await bench.register(0, BASE, SIZE, NOTHING, PD)
    assert not await denied(bench, "WR_SEND", key, qpn=4)


@cocotb.test()
async def what_lands_in_memory_needs_the_right(dut) -> None:
    bench = await untrusted(dut)
    for rights in (NOTHING, WRITABLE, {"remote_read"}, {"remote_invalidate"}, {"remote_write"}, {"remote_atomic"}):
        key = await bench.register(0, BASE, SIZE, frozenset(rights), PD)
        may = bool(set(rights) & {"local_write", "remote_write", "remote_atomic"})
        for opcode in LANDINGS:
            assert await denied(bench, opcode, key) != may, f"{opcode} with {set(rights)}"
        assert not await denied(bench, "WR_RDMA_WRITE", key)
    # An atomic has 8 bytes whatever it says.
    for opcode in ATOMICS:
        for length in (0, 1, 1 << 31):
            assert not await denied(bench, opcode, key, BASE + SIZE - 8, length)
            assert await denied(bench, opcode, key, BASE + SIZE - 7, length)


@cocotb.test()
async def the_reserved_key_is_for_trusted_clients(dut) -> None:
    bench = await untrusted(dut)
    await bench.setup(3, 100, 1, pd=PD, client=TRUSTED)
    for opcode in (*SENDS, *LANDINGS):
        assert await denied(bench, opcode, RESERVED)
        assert not await denied(bench, opcode, RESERVED, qpn=3)
    # A key that is no region's helps nobody.
    assert await denied(bench, "WR_SEND", 1, qpn=3)
    # A work request without a byte needs none.
    for opcode in (*SENDS, "WR_RDMA_READ"):
        assert not await denied(bench, opcode, 0xDEAD, length=0)


@cocotb.test()
async def a_receive_with_a_wrong_key_ends_the_queue_pair_when_it_is_used(dut) -> None:
    """The peer gets a NAK, the receive WC_LOC_PROT_ERR; those before it have received, those behind are flushed."""
    bench = await untrusted(dut)
    key = await bench.register(0, BASE, SIZE, WRITABLE, PD)
    bare = await bench.register(0, BASE, SIZE, NOTHING, PD)
    foreign = await bench.register(0, BASE, SIZE, WRITABLE, PD + 1)
    other = await bench.register(3, BASE, SIZE, WRITABLE, PD)
    wrong = [(bare, 0), (foreign, 0), (other, 0), (RESERVED, 0), (key ^ 1 << 31, 0), (key, 1), (key, -1)]
    for size in (1, 256, 700):
        for lkey, shift in wrong:
            await bench.setup(QPN, 100, 1, pd=PD, client=CLIENT)
            for wr_id, (k, s) in enumerate(((key, 0), (lkey, shift), (key, 0))):
                await bench.receive(QPN, BASE + s, SIZE, wr_id, k)
            bench.memory.clear()
            first = list(send(QPN, 100, 256, b"a" * 100))
            second = list(send(QPN, 101, 256, b"b" * size))
            for frame in (*first, *second):
                bench.frame.send(frame.rx())
                bench.payload.send(frame.payload)
            await bench.quiet()
            got = [(c.wr_id, c.status) for c in bench.completion.received]
            statuses = ("WC_SUCCESS", "WC_LOC_PROT_ERR", "WC_WR_FLUSH_ERR")
            assert got == [(i, op(name)) for i, name in enumerate(statuses)], f"{lkey:x} {shift}: {got}"
            assert len(bench.memory) == 100 and set(bench.memory.values()) == {ord("a")}
            answers = [(r.psn, r.aeth.syndrome) for r in bench.respond.received]
            assert answers == [(100, op("SYNDROME_ACK")), (101, REMOTE_OPERATIONAL)]
            events = [(e.kind, e.status) for e in bench.qp_event.received]
            assert events == [(op("EVENT_COMM_EST"), 0), (op("EVENT_QP_FATAL"), op("WC_LOC_PROT_ERR"))]
            for sink in (bench.completion, bench.respond, bench.qp_event):
                sink.received.clear()
                sink.cycles.clear()
    assert bench.counts["resp_local_protection_errors"] == 3 * len(wrong)


@cocotb.test()
async def no_work_request_is_in_two_memories(dut) -> None:
    """No region is; nor does the reserved key, which is for all of them, allow it. The memory goes with the verdict."""
    bench = await untrusted(dut)
    await bench.setup(3, 100, 1, pd=PD, client=TRUSTED)
    for addr, length in ((FAR - SIZE, SIZE), (FAR - 1, 2), (FAR - SIZE, SIZE + 1), (FAR, SIZE), (FAR - 1, 1), (FAR - 1, 0)):
        crosses = LANES > 1 and addr < FAR < addr + length
        bench.post.send(opcode=op("WR_SEND"), qpn=3, local_addr=addr, length=length, lkey=RESERVED)
        access = await bench.access.recv()
        assert (access.denied, access.target) == (crosses, LANES > 1 and addr >= FAR)
    bench.post.send(opcode=op("WR_ATOMIC_FETCH_AND_ADD"), qpn=3, local_addr=FAR - 4, length=0, lkey=RESERVED)
    assert (await bench.access.recv()).denied == (LANES > 1)
    bench.sends.received.clear()


async def ended(bench: Bench, completions: list[tuple[int, str]], nak: int | None) -> None:
    """The queue pair has ended by its own fault, with these completions and a NAK with this PSN."""
    await bench.quiet()
    assert [(c.wr_id, c.status) for c in bench.completion.received] == [(wr_id, op(status)) for wr_id, status in completions]
    naks = [(r.psn, r.aeth.syndrome) for r in bench.respond.received if r.aeth.syndrome != op("SYNDROME_ACK")]
    assert naks == [(nak, REMOTE_OPERATIONAL)]
    assert [e.status for e in bench.qp_event.received if e.kind == op("EVENT_QP_FATAL")] == [op("WC_LOC_PROT_ERR")]
    for sink in (bench.completion, bench.respond, bench.qp_event):
        sink.received.clear()
        sink.cycles.clear()


def give(bench: Bench, frames: list[Frame]) -> None:
    for frame in frames:
        bench.frame.send(frame.rx())
        bench.payload.send(frame.payload)


@cocotb.test()
@cocotb.parametrize(size=[1, 256, 700])
async def a_receive_whose_key_has_gone_is_not_written(dut, size: int) -> None:
    """Deregistered between posting and use, in every way; by a SEND with invalidate, too."""
    bench = await untrusted(dut)
    for how in ("MR_DEREGISTER", "MR_DEREGISTER_QP", "MR_DEREGISTER_PD", "SEND"):
        await bench.setup(QPN, 100, 1, pd=PD, client=CLIENT)
        await bench.register(0, BASE, SIZE, WRITABLE, PD + 2)  # of another domain
        key = await bench.register(QPN, BASE, SIZE, frozenset({"local_write", "remote_invalidate"}), PD)
        for wr_id in range(3):
            await bench.receive(QPN, BASE, SIZE, wr_id, key)
        psn = 100
        completions = []
        if how == "SEND":
            give(bench, [Frame(op("RC_SEND_ONLY_WITH_INVALIDATE"), QPN, psn, b"last", key.to_bytes(4, "big"), ackreq=True)])
            await bench.quiet()
            del bench.model.regions[key]
            psn, completions = psn + 1, [(0, "WC_SUCCESS")]
        else:
            await bench.deregister(key, how)
        bench.memory.clear()
        frames = list(send(QPN, psn, 256, b"x" * size))
        if how == "MR_DEREGISTER" and len(frames) == 1:  # what is refused invalidates nothing
            valid = await bench.register(0, BASE, SIZE, frozenset({"remote_invalidate"}), PD)
            frames = [replace(frames[0], opcode=op("RC_SEND_ONLY_WITH_INVALIDATE"), ext=valid.to_bytes(4, "big"))]
        give(bench, frames)
        used = len(completions)
        completions += [(used, "WC_LOC_PROT_ERR"), *((i, "WC_WR_FLUSH_ERR") for i in range(used + 1, 3))]
        await ended(bench, completions, psn)
        assert not bench.memory
        await bench.deregister_all()


@cocotb.test()
async def a_send_does_not_go_on_under_a_key_that_has_gone(dut) -> None:
    """Nor is anything on its way when the deregistration is answered: on a memory that takes its time, at any time."""
    bench = await untrusted(dut)
    bench.memory_delay = 60
    ends = set()
    for delay in range(0, 120, 3):
        await bench.setup(QPN, 100, 1, pd=PD, client=CLIENT)
        await bench.setup(3, 100, 1, pd=PD, client=CLIENT)
        key = await bench.register(0, BASE, SIZE, WRITABLE, PD)
        other = await bench.register(0, BASE + SIZE, SIZE, WRITABLE, PD)
        await bench.receive(QPN, BASE, SIZE, 7, key)
        await bench.receive(3, BASE + SIZE, SIZE, 8, other)
        give(bench, list(send(QPN, 100, 256, b"x" * 2000)))
        await wait_cycles(dut, delay + 1)
        await bench.deregister(key)
        mine = [at for addr, length, at in bench.written if addr < BASE + SIZE]
        bench.memory.clear()
        give(bench, list(send(3, 100, 256, b"y" * 2000)))
        await bench.quiet()
        assert [at for addr, length, at in bench.written if addr < BASE + SIZE] == mine, "written behind the answer"
        assert set(bench.memory) == set(range(BASE + SIZE, BASE + SIZE + 2000))
        got = {c.wr_id: c.status for c in bench.completion.received}
        assert got[8] == op("WC_SUCCESS")
        ends.add(got[7])
        naks = [r.aeth.syndrome for r in bench.respond.received if r.qpn == QPN and r.aeth.syndrome != op("SYNDROME_ACK")]
        assert naks == ([] if got[7] == op("WC_SUCCESS") else [REMOTE_OPERATIONAL])
        for sink in (bench.completion, bench.respond, bench.qp_event):
            sink.received.clear()
            sink.cycles.clear()
        await bench.deregister(other)
        bench.written.clear()
    assert ends == {op("WC_SUCCESS"), op("WC_LOC_PROT_ERR")}


@cocotb.test()
async def a_receive_that_gets_no_byte_needs_no_key(dut) -> None:
    """Of a SEND without data, or of an RDMA WRITE with immediate."""
    bench = await untrusted(dut)
    await bench.setup(QPN, 100, 1, pd=PD, client=CLIENT)
    region = await bench.register(QPN, BASE, SIZE, pd=PD)
    for wr_id in range(3):
        await bench.receive(QPN, BASE, SIZE * (wr_id != 2), wr_id, 0xDEAD)
    write = reth(BASE, region, 5) + bytes(4)
    bench.send(
        *send(QPN, 100, 256, b""), Frame(op("RC_RDMA_WRITE_ONLY_WITH_IMM"), QPN, 101, b"hello", write, ackreq=True),
        *send(QPN, 102, 256, b"", 7),
    )  # fmt: skip
    await bench.compare()
    # It is longer than a receive of no byte: that counts first.
    await bench.receive(QPN, BASE, 0, 3, 0xDEAD)
    bench.send(*send(QPN, 103, 256, b"x"))
    await bench.compare()


@cocotb.test()
@cocotb.parametrize(stall=alternately([0.0, 0.5]))
async def each_work_request_gets_its_own_verdict(dut, stall: float) -> None:
    """Sends and receives mixed, of two queue pairs, while peers' requests are checked; in order, none lost."""
    bench = await untrusted(dut, stall)
    await bench.setup(3, 100, 1, pd=PD + 1, client=TRUSTED)
    await bench.setup(5, 100, 1, pd=9)
    remote = await bench.register(5, BASE + 0x8000, SIZE, pd=9)
    keys = {pd: await bench.register(0, BASE, SIZE, NOTHING, pd) for pd in (PD, PD + 1)}
    psn = 100
    expected: list[tuple[int, bool]] = []
    for i in range(300):
        qpn = random.choice((2, 3))
        lkey = random.choice((keys[PD], keys[PD + 1], RESERVED))
        opcode = random.choice((*SENDS, *LANDINGS, "WR_RECV"))
        may = (lkey == RESERVED and qpn == 3) or (lkey == keys[bench.model.qps[qpn].pd] and opcode in SENDS)
        if opcode == "WR_RECV":  # on a queue pair in RESET: each comes back at once
            qpn = 7
        else:
            expected.append((i, not may))
        bench.post.send(opcode=op(opcode), qpn=qpn, local_addr=BASE, length=SIZE, lkey=lkey, wr_id=i)
        if random.random() < 0.7:
            bench.send(Frame(op("RC_RDMA_WRITE_ONLY"), 5, psn, b"", reth(0, 0, 0)), Frame(
                op("RC_RDMA_WRITE_ONLY"), 5, psn + 1, b"x", reth(BASE + 0x8000, remote, 1), ackreq=True))  # fmt: skip
            psn += 2
    got = [((await bench.sends.recv()).wr_id, bool((await bench.access.recv()).denied)) for _ in expected]
    assert got == expected
    await bench.quiet()
    assert {c.status for c in bench.completion.received} == {op("WC_GENERAL_ERR")}
    assert len(bench.completion.received) == 300 - len(expected)
    bench.completion.received.clear()
    await bench.compare()


@cocotb.test()
async def the_cycles_it_takes(dut) -> None:
    """A verdict comes 4 cycles behind its work request, one later when a request of a peer is checked; work requests come one a
    cycle, and peers' requests, one every 2 cycles, are not held up by them."""
    bench = await untrusted(dut)
    for _ in range(3):
        bench.post.send(opcode=op("WR_SEND"), qpn=QPN, length=1)
    at = []
    for cycle in range(30):
        await RisingEdge(dut.clk)
        if int(dut.send_valid.value) and int(dut.send_ready.value):
            at.append(("send", cycle))
        if int(dut.send_access_valid.value) and int(dut.send_access_ready.value):
            at.append(("access", cycle))
    sends = [cycle for kind, cycle in at if kind == "send"]
    assert [b - a for a, b in pairwise(sends)] == [1, 1]
    assert [cycle for kind, cycle in at if kind == "access"] == [cycle + 4 for cycle in sends]
    bench.sends.received.clear()
    bench.access.received.clear()

    async def span(posts: int) -> int:
        """Cycles from the first to the last of many writes, while work requests are posted."""
        key = await bench.register(5, BASE, SIZE, pd=9)
        await bench.setup(5, 100, 1, pd=9)
        await bench.quiet()
        for _ in range(posts):
            bench.post.send(opcode=op("WR_SEND"), qpn=QPN, length=1, lkey=5)
        for i in range(100):
            frame = Frame(op("RC_RDMA_WRITE_ONLY"), 5, 100 + i, b"x", reth(BASE, key, 1))
            bench.model.packet(frame)
            bench.frame.send(frame.rx())
            bench.payload.send(frame.payload)
        first = last = count = 0
        for cycle in range(1000):
            await FallingEdge(dut.clk)
            if int(dut.write_valid.value) and int(dut.write_ready.value):
                first, last, count = first or cycle, cycle, count + 1
        assert count == 100
        await bench.compare()
        return last - first

    alone = await span(0)
    assert await span(400) == alone
    assert len(bench.access.received) == 400 and all(access.denied for access in bench.access.received)


@cocotb.test()
async def a_queue_pair_is_engaged_while_a_receive_of_it_waits(dut) -> None:
    """So its reset can wait for that."""
    bench = await untrusted(dut)
    dut.watch.value = QPN - 2
    await wait_cycles(dut, 4)
    assert not int(dut.engaged.value)
    bench.completion.stall = 1.0  # rejects wait, and what is behind them
    for i in range(60):
        bench.post.send(opcode=op("WR_RECV"), qpn=2 + 6, wr_id=i)
    bench.post.send(opcode=op("WR_RECV"), qpn=QPN, wr_id=99)
    await wait_cycles(dut, 300)
    engaged = int(dut.engaged.value)
    waits = bench.post.busy
    bench.completion.stall = 0.0
    seen = engaged
    for _ in range(1000):
        await FallingEdge(dut.clk)
        seen |= int(dut.engaged.value)
    assert waits or engaged
    assert seen and not int(dut.engaged.value)
    bench.completion.received.clear()


@pytest.mark.parametrize("lanes", [1, 2])
def test_roce_receive_local(lanes: int) -> None:
    build_and_run(__file__, lanes=lanes, testcase="no_work_request_is_in_two_memories" if lanes > 1 else None)
