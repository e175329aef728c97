# SPDX-License-Identifier: Apache-2.0
"""rpc_engine with connections that have several contexts: calls side by side, cancel, and what a hostile caller can do with them.

test_rpc_engine holds connections without contexts against the same build.
"""

from __future__ import annotations

import random
from itertools import pairwise

import cocotb
import pytest
from nacelle_tb.long import alternately, only, some
from rpc_world import (
    CANCEL,
    CANCELLED,
    CONTEXTS,
    HEAP_BASE,
    HEAP_SIZE,
    INPUT,
    MAX_REGIONS,
    MESSAGE,
    PAGE,
    QPS,
    WR,
    Context,
    Job,
    Qp,
    Region,
    World,
    aar,
    parse_advert,
    regions,
    run_engine,
)

STALLS = [0.0, 0.3]
START = 0x80
TOO_MANY, UNKNOWN_FUNCTION = 3, 3


async def begin(dut, stall: float = 0.0, contexts: int = CONTEXTS, callers: int = 1, **options: int) -> tuple[World, list[Qp]]:
    """A world with open connections."""
    world = World(dut, stall, **options)
    await world.start()
    return world, [await world.open(2 + i, contexts=contexts) for i in range(callers)]


async def running(world: World) -> Job:
    """The next job that a socket gets."""
    await world.until(lambda: world.jobs)
    return world.jobs.popleft()


async def call(world: World, context: Context, wanted: list[Region], function: int = 1, code: int = 0) -> None:
    """One call from start to answer; the test acts as the kernel."""
    world.send(context, START | function)
    world.finish(await running(world), code)
    await world.result(context, wanted, context.granted, code)


# ---- what is on the wire ----


@cocotb.test()
@cocotb.parametrize(stall=STALLS)
async def golden_immediates(dut, stall: float) -> None:
    """Every kind, as docs/reference/calls.md has it."""
    world, (qp,) = await begin(dut, stall)
    one = qp.contexts[1]
    wanted = regions(world.rng, 1, 1)
    world.send_as_it_is(qp, (aar(wanted), 0x01000001))
    content = await world.answer(one)
    assert one.sent == world.qps[2].sent == type(one.sent)()
    got = parse_advert(content)
    world.send_as_it_is(qp, 0x01CCBB81)
    job = await running(world)
    assert {(b.function_code, b.user) for b in job.beats} == {(1, 0x00CCBB)}
    world.finish(job, 0x12)
    kind, _, wqe = await world.reply(one)
    assert (kind, wqe.opcode, wqe.imm_data, wqe.length) == ("write", WR["WR_RDMA_WRITE_WITH_IMM"], 0x01001200, 0)
    world.send_as_it_is(qp, 0x01000000)  # the caller has failed
    await world.settle()
    assert world.events["call_failed"] == 2 and world.events["immediate_ignored"] == 0
    world.send_as_it_is(qp, 0x01CCBB81)
    job = await running(world)
    world.send_as_it_is(qp, (b"", 0x01000002))
    await world.until(lambda: world.cancels(0))
    world.finish(job, CANCELLED)
    kind, _, wqe = await world.reply(one)
    assert (kind, wqe.opcode, wqe.imm_data, wqe.length) == ("write", WR["WR_RDMA_WRITE_WITH_IMM"], 0x01000500, 0)
    assert (wqe.remote_addr, wqe.rkey) == (wanted[1].host_addr, wanted[1].host_rkey)
    assert got == [(addr, rkey, size) for rkey, (addr, size) in one.keys.items()]
    await world.settle()
    assert len(qp.receives) == 2 * CONTEXTS and world.events["call_cancelled"] == 1


@cocotb.test()
@cocotb.parametrize(stall=STALLS)
async def a_message_without_immediate_is_of_context_0(dut, stall: float) -> None:
    """And is answered without one."""
    world, (qp,) = await begin(dut, stall)
    wanted = regions(world.rng, 1, 1)
    world.send_as_it_is(qp, aar(wanted))
    kind, content, wqe = await world.reply(qp.contexts[0])
    assert (kind, wqe.opcode) == ("send", WR["WR_SEND"])
    qp.contexts[0].granted = parse_advert(content)
    await call(world, qp.contexts[0], wanted)
    world.send_as_it_is(qp, b"nothing")
    kind, content, wqe = await world.reply(qp.contexts[0])
    assert (content, wqe.opcode) == (bytes([0, 1, 0, 0]), WR["WR_SEND"])
    # Memory that cannot be cleared: an ERR with or without an immediate, as the message.
    large = aar([Region(INPUT, 12 * PAGE, 1, 2)])
    world.memory.errors[:] = [(HEAP_BASE + 9 * PAGE, HEAP_BASE + 9 * PAGE)]
    world.send_as_it_is(qp, large)
    kind, content, wqe = await world.reply(qp.contexts[0])
    assert (content, wqe.opcode) == (bytes([0, 2, 0, 0]), WR["WR_SEND"])
    await world.refused(qp.contexts[0], large, 2)
    await world.settle()


@cocotb.test()
@cocotb.parametrize(contexts=[1, 2, 4])
async def each_context_has_its_share_of_the_regions(dut, contexts: int) -> None:
    """All of them at once, each with as many as it can have: no entry of a table is another's."""
    if contexts > CONTEXTS:
        return
    world, (qp, other) = await begin(dut, contexts=contexts, callers=2)
    share = MAX_REGIONS // contexts
    wanted = {context.number: regions(world.rng, share // 2, share - share // 2) for context in qp.contexts}
    for context in qp.contexts:
        await world.refused(context, aar(regions(world.rng, share, 1)), TOO_MANY)
        await world.set_up(context, wanted[context.number])
    await world.set_up(other.contexts[-1], regions(world.rng, share, 0))
    assert len(qp.keys) == share * contexts
    for _ in range(2):
        for context in qp.contexts:
            world.send(context, START | 1)
        for _ in qp.contexts:
            job = await running(world)
            context = next(c for c in qp.contexts if c.granted[0][0] == job.beats[0].addr)
            assert [b.addr for b in job.beats] == [addr for addr, _, _ in context.granted]
            world.finish(job)
            await world.result(context, wanted[context.number], context.granted)
    await world.settle()


# ---- side by side ----


@cocotb.test()
@cocotb.parametrize(stall=STALLS)
async def contexts_are_independent(dut, stall: float) -> None:
    """A set-up, calls in both sockets, an answer that is not acknowledged: each in a context of one connection."""
    world, (qp,) = await begin(dut, stall)
    first, second, *rest = qp.contexts
    wanted = [regions(world.rng, 1, 2), regions(world.rng, 2, 1)]
    for context, its in zip((first, second), wanted, strict=True):
        await world.set_up(context, its)
    world.send(first, START | 1)
    world.send(second, START | 3)
    await world.until(lambda: len(world.jobs) == 2)
    assert {job.socket for job in world.jobs} == {0, 1} and world.window(0) != world.window(1)
    for context in rest:  # while both run
        await world.set_up(context, regions(world.rng, 1, 1))
    jobs = {job.socket: job for job in world.jobs}
    world.jobs.clear()
    world.finish(jobs[1])
    await world.result(second, wanted[1], second.granted)
    await world.settle()
    qp.acknowledge = False
    await call(world, second, wanted[1], 3)
    world.finish(jobs[0], 0x11)
    await world.result(first, wanted[0], first.granted, 0x11)
    for context in rest:  # nothing of what others have outstanding holds it up
        await world.set_up(context, regions(world.rng, 1, 1))
    world.send(first, START | 2)
    await world.settle()
    assert not world.jobs
    world.acknowledge(qp)
    world.finish(await running(world))
    await world.result(first, wanted[0], first.granted)
    world.acknowledge(qp)
    await world.settle()


@cocotb.test()
@cocotb.parametrize(stall=STALLS)
async def set_ups_side_by_side(dut, stall: float) -> None:
    """All contexts of all connections at once: each gets its own answer and an extent of its own."""
    world, qps = await begin(dut, stall, callers=3)
    everyone = [context for qp in qps for context in qp.contexts]
    wanted = {id(context): regions(world.rng, 2, 1, internal=1) for context in everyone}
    for context in everyone:
        world.send(context, aar(wanted[id(context)]))
    for context in everyone:
        got = parse_advert(await world.answer(context))
        assert {rkey: (addr, size) for addr, rkey, size in got} == context.keys
    await world.settle()
    assert len({context.granted[0][0] if context.granted else min(context.keys.values()) for context in everyone}) == len(everyone)


@cocotb.test()
@cocotb.parametrize(stall=STALLS)
async def a_set_up_releases_its_own_regions_only(dut, stall: float) -> None:
    """While the other contexts go on, one of them in a call."""
    world, (qp,) = await begin(dut, stall)
    wanted = regions(world.rng, 1, 1)
    for context in qp.contexts:
        await world.set_up(context, wanted)
    first, second = qp.contexts[:2]
    world.send(first, START | 1)
    job = await running(world)
    others = {rkey for context in qp.contexts if context is not second for rkey in context.keys}
    gone = set(second.keys)
    for _ in range(3):
        await world.set_up(second, regions(world.rng, 2, 2))
        assert others <= set(qp.keys) and not gone & set(qp.keys)
    await world.refused(second, aar([Region(INPUT, HEAP_SIZE + 1, 1, 2)]), 2)  # and holds nothing now
    assert not second.keys and set(qp.keys) == others and world.window(0) == job.window
    world.finish(job)
    await world.result(first, wanted, first.granted)
    await world.settle()


@cocotb.test()
async def connections_share_a_socket_evenly(dut) -> None:
    """However many calls a connection has: another's call waits for one of them, and its contexts take turns."""
    world, (many, few) = await begin(dut, callers=2)
    wanted = regions(world.rng, 1, 1)
    contexts = [*many.contexts, few.contexts[0]]
    for context in contexts:
        await world.set_up(context, wanted)
    await world.settle()
    place = {context.granted[0][0]: n for n, context in enumerate(contexts)}
    for context in many.contexts:
        world.send(context, START | 1)
    await world.settle()
    order = []
    for turn in range(24):
        if turn == 1:
            world.send(contexts[-1], START | 1)
            await world.settle()
        job = await running(world)
        n = place[job.beats[0].addr]
        order.append(n)
        world.finish(job)
        await world.result(contexts[n], wanted, contexts[n].granted)
        await world.settle()
        world.send(contexts[n], START | 1)  # at once again
        await world.settle()
    mine = [n for n, who in enumerate(order) if who == CONTEXTS]
    assert mine[0] == 2 and all(b - a == 2 for a, b in pairwise(mine)), order
    of_many = [who for who in order if who != CONTEXTS]
    rounds = [of_many[i : i + CONTEXTS] for i in range(0, len(of_many) - CONTEXTS, CONTEXTS)]
    assert all(sorted(each) == list(range(CONTEXTS)) for each in rounds), order


# ---- requests that are not allowed ----


@cocotb.test()
@cocotb.parametrize(contexts=[1, 2, 4])
async def a_context_that_is_not_there_ends_the_connection(dut, contexts: int) -> None:
    if contexts > CONTEXTS:
        return
    world, (other,) = await begin(dut)
    wanted = regions(world.rng, 1, 1)
    for number in (contexts, CONTEXTS, 0x80, 0xFF):
        for what in ((aar(wanted), number << 24 | MESSAGE), number << 24 | START | 1, (b"", number << 24 | CANCEL), number << 24):
            if number < contexts:
                continue
            qp = await world.open(7, contexts=contexts)
            await world.set_up(qp.contexts[0], wanted)
            world.send_as_it_is(qp, what)
            assert await world.close.recv() == qp.qpn
            world.send(qp.contexts[0], START | 1)  # without effect
            await world.settle()
            assert not world.jobs and not qp.contexts[0].sent and not world.close.received
            await world.close_(qp)
    await world.set_up(other.contexts[-1], wanted)
    await call(world, other.contexts[-1], wanted)


@cocotb.test()
@cocotb.parametrize(stall=STALLS)
async def immediates_without_meaning(dut, stall: float) -> None:
    world, (qp,) = await begin(dut, stall)
    wanted = regions(world.rng, 1, 1)
    last = qp.contexts[-1]
    await world.set_up(last, wanted)
    nothing = [last.immediate(value) for value in (1, 0x7F, 0x100, 0xFFFF00)]
    sends = [(b"what", last.immediate(value)) for value in (0, 3, 0x81, 0xFF)]
    for what in [*nothing, *sends]:
        world.send_as_it_is(qp, what)
        await world.settle()
        assert len(qp.receives) == 2 * CONTEXTS and not last.sent and not world.jobs
    assert world.events["immediate_ignored"] == len(nothing) + len(sends)
    world.send(last, START)  # a chain
    await world.result(last, wanted, last.granted, UNKNOWN_FUNCTION)
    await call(world, last, wanted)


@cocotb.test()
@cocotb.parametrize(stall=STALLS)
async def a_start_during_a_call_of_its_context(dut, stall: float) -> None:
    world, (qp,) = await begin(dut, stall)
    wanted = regions(world.rng, 1, 1)
    for context in qp.contexts:
        await world.set_up(context, wanted)
    world.send(qp.contexts[0], START | 1)
    job = await running(world)
    for _ in range(5):
        world.send(qp.contexts[0], START | 2)
    await world.settle()
    assert world.events["immediate_ignored"] == 5 and len(qp.receives) == 2 * CONTEXTS
    await call(world, qp.contexts[1], wanted, 3)  # of another context it is none
    world.finish(job)
    await world.result(qp.contexts[0], wanted, qp.contexts[0].granted)
    await world.settle()
    assert not world.jobs


@cocotb.test()
@cocotb.parametrize(stall=STALLS, what=["start", "message"])
async def a_flood_of_requests_ends_the_connection(dut, stall: float, what: str) -> None:
    """More than a context has room for, while its answer is not acknowledged. Others notice nothing."""
    world, (qp, other) = await begin(dut, stall, callers=2)
    wanted = regions(world.rng, 1, 1)
    await world.set_up(qp.contexts[0], wanted)
    await world.set_up(other.contexts[1], wanted)
    await world.settle()
    qp.acknowledge = False
    await call(world, qp.contexts[0], wanted)
    for _ in range(3):
        world.send(qp.contexts[0], START | 1 if what == "start" else aar(wanted))
        await call(world, other.contexts[1], wanted)
    assert await world.close.recv() == qp.qpn
    for context in qp.contexts:
        world.send(context, START | 1)
    await world.settle()
    assert not world.jobs and not qp.contexts[0].sent
    await world.close_(qp)
    qp = await world.open(qp.qpn, contexts=CONTEXTS)
    await world.set_up(qp.contexts[0], wanted)
    await call(world, qp.contexts[0], wanted)
    await world.settle()
    assert not world.close.received


# ---- cancel ----


@cocotb.test()
@cocotb.parametrize(stall=STALLS)
async def cancel_without_a_call(dut, stall: float) -> None:
    """Before the set-up, during it, behind it, and behind a call: no effect, no answer."""
    world, (qp,) = await begin(dut, stall)
    wanted = regions(world.rng, 1, 1)
    for context in qp.contexts:
        world.cancel(context)
        await world.settle()
        world.send(context, aar(wanted))
        world.cancel(context)
        context.granted = parse_advert(await world.answer(context))
        for _ in range(5):
            world.cancel(context)
        await world.settle()
        await call(world, context, wanted)
        world.cancel(context)
        await world.settle()
        await call(world, context, wanted, 3)
    await world.settle()
    assert len(qp.receives) == 2 * CONTEXTS and world.events["call_cancelled"] == world.events["call_failed"] == 0


@cocotb.test()
@cocotb.parametrize(stall=STALLS)
async def cancel_of_a_call_that_runs(dut, stall: float) -> None:
    """The socket is told, and only this one; the answer comes when it has ended. A kernel that ended by itself has its result."""
    world, (qp,) = await begin(dut, stall)
    wanted = regions(world.rng, 1, 2)
    first, second = qp.contexts[:2]
    for context in (first, second):
        await world.set_up(context, wanted)
    for function, code in ((1, CANCELLED), (3, CANCELLED), (1, 0), (3, 0x44)):
        world.send(first, START | function)
        mine = await running(world)
        world.send(second, START | (1 if function == 3 else 3))
        its = await running(world)
        for _ in range(3):
            world.cancel(first)
        await world.settle()
        assert int(dut.cancel.value) == 1 << mine.socket and not first.sent and world.window(mine.socket) == mine.window
        world.finish(mine, code)
        await world.result(first, wanted, first.granted, code)
        assert not int(dut.cancel.value)
        world.finish(its)
        await world.result(second, wanted, second.granted)
    await world.settle()
    assert world.events["call_cancelled"] == 2 and world.events["call_failed"] == 3 and world.events["call_finished"] == 5


@cocotb.test()
@cocotb.parametrize(stall=STALLS)
async def cancel_of_a_call_that_waits_for_its_socket(dut, stall: float) -> None:
    """It is answered at once, though the socket is busy. The context can call again, for this socket or another."""
    world, (qp, other) = await begin(dut, stall, callers=2)
    wanted = regions(world.rng, 1, 1)
    for context in (*qp.contexts, other.contexts[0]):
        await world.set_up(context, wanted)
    world.send(other.contexts[0], START | 1)
    job = await running(world)
    for function in (1, 1, 3, 2):
        for context in qp.contexts:
            world.send(context, START | 1)
        await world.settle()
        for context in reversed(qp.contexts):
            world.cancel(context)
            await world.result(context, wanted, context.granted, CANCELLED)
        await world.settle()
        assert not world.jobs and not int(dut.cancel.value)
        if function == 3:
            await call(world, qp.contexts[1], wanted, 3)
    for context in qp.contexts:
        world.send(context, START | 2)
    world.finish(job)
    await world.result(other.contexts[0], wanted, other.contexts[0].granted)
    for _ in qp.contexts:
        job = await running(world)
        assert job.beats[0].function_code == 2
        context = next(c for c in qp.contexts if c.granted[0][0] == job.beats[0].addr)
        world.finish(job)
        await world.result(context, wanted, context.granted)
    await world.settle()
    assert not world.jobs and world.events["call_cancelled"] == 4 * CONTEXTS


@cocotb.test()
@cocotb.parametrize(stall=STALLS)
async def cancel_of_a_start_that_waits_for_its_context(dut, stall: float) -> None:
    """While the answer before it is not acknowledged, or behind a message. The one that is cancelled, and not the next."""
    world, (qp,) = await begin(dut, stall)
    wanted = regions(world.rng, 1, 1)
    context = qp.contexts[-1]
    await world.set_up(context, wanted)
    await world.settle()
    qp.acknowledge = False
    await call(world, context, wanted)
    world.send(context, START | 1)
    world.cancel(context)
    await world.settle()
    assert not context.sent
    qp.acknowledge = True
    world.acknowledge(qp)
    await world.result(context, wanted, context.granted, CANCELLED)
    await call(world, context, wanted)
    await world.settle()
    qp.acknowledge = False  # a message waits: a cancel is not for it, nor for what comes behind it
    await call(world, context, wanted)
    world.send(context, aar(wanted))
    world.cancel(context)
    await world.settle()
    qp.acknowledge = True
    world.acknowledge(qp)
    context.granted = parse_advert(await world.answer(context))
    await call(world, context, wanted)
    await world.settle()
    assert world.events["call_cancelled"] == 1


@cocotb.test()
async def cancel_that_comes_late(dut) -> None:
    """The call ends while the engine reads the job of another; the cancel is not for the next call of its context."""
    world, (qp,) = await begin(dut)
    world.ack_cycles = (0, 0)
    wanted, long = regions(world.rng, 1, 0), regions(world.rng, 4, 4)
    one, two = qp.contexts[:2]
    await world.set_up(one, wanted)
    await world.set_up(two, long)
    for delay in range(40):
        world.send(one, START | 1)
        job = await running(world)
        world.send(two, START | 3)
        await world.later((delay, delay))
        world.finish(job)
        world.cancel(one)
        _, _, wqe = await world.reply(one)
        assert wqe.imm_data == one.immediate(0)
        world.send(one, START | 1)
        job = await running(world)
        if job.socket == 1:
            mine, job = await running(world), job
            job, mine = mine, job
            world.finish(mine)
        else:
            world.finish(await running(world))
        assert not world.cancels(0)
        world.finish(job)
        await world.result(one, wanted, one.granted)
        await world.result(two, long, two.granted)
    await world.settle()
    assert world.events["call_cancelled"] == 0


# ---- connections that end ----


@cocotb.test()
@cocotb.parametrize(stall=STALLS)
async def closed_with_calls_on_all_contexts(dut, stall: float) -> None:
    """Running, waiting, cancelled, setting up: all is freed, each is answered once, and no other caller waits for it."""
    world, (qp, other) = await begin(dut, stall, callers=2)
    wanted = regions(world.rng, 1, 1)
    for _ in range(3):
        for context in (*qp.contexts, other.contexts[0]):
            await world.set_up(context, wanted)
        for context, function in zip(qp.contexts, (1, 1, 3, 1), strict=False):
            world.send(context, START | function)
        await world.until(lambda: len(world.jobs) == min(2, CONTEXTS - 1))
        jobs = list(world.jobs)
        world.jobs.clear()
        world.send(other.contexts[0], START | 1)
        world.cancel(qp.contexts[1])
        closing = cocotb.start_soon(world.close_(qp))
        await world.until(lambda: all(world.cancels(job.socket) for job in jobs))  # noqa: B023
        assert not closing.done()
        for job in jobs:
            world.finish(job, CANCELLED)
        job = await running(world)
        assert job.beats[0].addr == other.contexts[0].granted[0][0]
        world.finish(job)
        await world.result(other.contexts[0], wanted, other.contexts[0].granted)
        await closing
        assert not any(context.keys for context in qp.contexts)
        qp = await world.open(qp.qpn, contexts=CONTEXTS)
    await world.settle()
    assert not world.jobs
    await world.close_(qp)
    await world.set_up(other.contexts[0], [Region(INPUT, HEAP_SIZE, 1, 2)])


@cocotb.test()
@cocotb.parametrize(stall=STALLS)
async def closed_at_any_time(dut, stall: float) -> None:
    """A caller with calls and set-ups on all contexts vanishes at a random moment: everything is freed every time."""
    world, (watch,) = await begin(dut, stall)
    world.kernel = lambda job: 0
    world.kernel_cycles = (0, 200)
    closings: list = []
    for moment in range(40):
        qpn = 3 + moment % (QPS - 1)
        await world.until(lambda: qpn not in world.unanswered)  # noqa: B023
        agreed = world.rng.choice([n for n in (0, 1, 2, 4) if n <= CONTEXTS])
        qp = await world.open(qpn, contexts=agreed)
        for context in qp.contexts or [qp]:
            qp.impatient = True
            world.send(context, aar(regions(world.rng, 1, 2)))
            world.send(context, START | world.rng.choice([1, 3, 127]))
        await world.later((0, 700))
        for context in qp.contexts:
            if world.rng.random() < 0.4:
                world.cancel(context)
        await world.later((0, 60))
        if world.rng.random() < 0.3:
            world.break_(qp)
            await world.later((0, 30))
        closing = cocotb.start_soon(world.close_(qp))
        if world.rng.random() < 0.7:
            await closing
        closings.append(closing)
        while world.close.received:
            await world.close.recv()
    for closing in closings:
        await closing
    await world.set_up(watch.contexts[0], [Region(INPUT, HEAP_SIZE, 1, 2)])
    assert watch.contexts[0].granted[0][0] == HEAP_BASE
    await world.settle()
    assert world.free_keys == (1 << 16) - 1


# ---- everything at once ----


@cocotb.test()
@cocotb.parametrize(stall=alternately([0.0, 0.2]))
async def many_contexts(dut, stall: float) -> None:
    """Each start is answered once, by its kernel's code or as cancelled; only what was cancelled is."""
    world = World(dut, stall)
    await world.start()
    expected: dict[int, int] = {}  # address of the first region -> code
    world.kernel = lambda job: expected[job.beats[0].addr]
    world.kernel_cycles = (0, 150)
    world.ack_cycles = (0, 30)
    cancelled = 0

    async def caller(context: Context, rng: random.Random) -> None:
        nonlocal cancelled
        for _ in range(3):
            most = MAX_REGIONS // len(context.qp.contexts)
            wanted = regions(rng, rng.randint(0, 2), rng.randint(1, min(5, most - 3)), rng.randint(0, 1), size=PAGE)
            await world.set_up(context, wanted)
            for _ in range(8):
                code = rng.choice([0, 0, 0x33])
                expected[context.granted[0][0]] = code
                if rng.random() < 0.2:
                    world.cancel(context)  # nothing to cancel
                world.send(context, START | rng.choice([1, 2, 3, 9, 100]))
                cancels = rng.random() < 0.5
                if cancels:
                    await world.later((0, 200))
                    world.cancel(context)
                await world.until(lambda: context.sent and context.sent[-1][2].opcode == WR["WR_RDMA_WRITE_WITH_IMM"])
                got = context.sent[-1][2].imm_data >> 8 & 0xFF
                assert got in (code, UNKNOWN_FUNCTION) or (cancels and got == CANCELLED), (got, code, cancels)
                cancelled += got == CANCELLED
                await world.result(context, wanted, context.granted, got)
                assert not context.sent

    async def connection(qpn: int) -> None:
        rng = random.Random(random.getrandbits(64))
        for agreed in [n for n in (1, 2, 4) if n <= CONTEXTS]:
            qp = await world.open(qpn, contexts=agreed)
            tasks = [cocotb.start_soon(caller(context, random.Random(rng.getrandbits(64)))) for context in qp.contexts]
            for task in tasks:
                await task
            await world.close_(qp)

    tasks = [cocotb.start_soon(connection(2 + i)) for i in range(QPS // 2)]
    for task in tasks:
        await task
    await world.settle()
    assert world.events["call_cancelled"] == cancelled and cancelled > 20
    assert world.free_keys == 1 << 16 and not world.close.received
    qp = await world.open(2, contexts=CONTEXTS)
    await world.set_up(qp.contexts[0], [Region(INPUT, HEAP_SIZE, 1, 2)])


@cocotb.test()
async def how_fast(dut) -> None:
    """A cancel of a call that waits: cycles from the completion taken to the answer handed over."""
    world, (qp, other) = await begin(dut, callers=2)
    wanted = regions(world.rng, 1, 1)
    await world.set_up(qp.contexts[0], wanted)
    await world.set_up(other.contexts[0], wanted)
    world.send(other.contexts[0], START | 1)
    job = await running(world)
    world.send(qp.contexts[0], START | 1)
    await world.settle()
    begun = world.cycle
    world.cancel(qp.contexts[0])
    await world.until(lambda: qp.contexts[0].sent)
    dut._log.info(f"cancel of a call that waits -> answer: {world.cycle - begun} cycles")
    assert world.cycle - begun <= 25
    world.finish(job)


BUILDS = {
    (512, 8, 4): ".",
    (64, 8, 2): only("golden|evenly|waits|share|closed_with.*stall=0.3"),
    (128, 128, 4): "golden|evenly|waits|share",
}


@pytest.mark.parametrize(("data_w", "qps", "contexts"), some(list(BUILDS)))
def test_rpc_contexts(data_w: int, qps: int, contexts: int) -> None:
    run_engine(__file__, data_w, qps, contexts, BUILDS[data_w, qps, contexts], long=data_w == 512)
