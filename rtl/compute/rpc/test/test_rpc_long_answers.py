# SPDX-License-Identifier: Apache-2.0
"""rpc_engine with outputs that are longer than a WRITE: here one has at most 2^LONGEST_W bytes.

The world checks that no WRITE of a context follows one that is to be acknowledged before. test_rpc_sizes has the sizes that no
test memory has.
"""

from __future__ import annotations

import cocotb
import pytest
from nacelle_tb.long import LONG, some
from rpc_world import (
    CONTEXTS,
    CYCLES_PER_MS,
    HEAP_SIZE,
    INPUT,
    INTERNAL,
    LONGEST_W,
    OUTPUT,
    TICK_W,
    Context,
    Job,
    Qp,
    Region,
    World,
    run_engine,
    writes_of,
)

STALLS = [0.0, 0.3]
START = 0x80
LONGEST = 1 << LONGEST_W
SHARE = 32 // CONTEXTS
TICK = (1 << TICK_W) / CYCLES_PER_MS  # in milliseconds


async def begin(dut, stall: float = 0.0, callers: int = 1) -> tuple[World, list[Qp]]:
    """A world with open connections."""
    world = World(dut, stall)
    await world.start()
    return world, [await world.open(2 + i, contexts=CONTEXTS) for i in range(callers)]


def outputs(world: World, sizes: list[int], flags: int = OUTPUT) -> list[Region]:
    return [Region(flags, size, world.rng.getrandbits(64), world.rng.getrandbits(32)) for size in sizes]


async def running(world: World) -> Job:
    await world.until(lambda: world.jobs)
    return world.jobs.popleft()


async def call(world: World, context: Context, wanted: list[Region], code: int = 0) -> None:
    """One call, and its answer."""
    world.send(context, START | 1)
    world.finish(await running(world), code)
    await world.result(context, wanted, context.granted, code)


async def held_back(world: World, qp: Qp, context: Context, wanted: list[Region]) -> None:
    """A call whose answer has come as far as it goes without an acknowledgement."""
    qp.acknowledge = False
    world.send(context, START | 1)
    world.finish(await running(world))
    await world.settle()
    assert len(context.sent) < sum(len(writes_of(region, 0)) for region in wanted)
    assert context.sent[-1][2].signaled and not any(wqe.signaled for _, _, wqe in list(context.sent)[:-1])


@cocotb.test()
@cocotb.parametrize(stall=STALLS)
async def every_byte_once(dut, stall: float) -> None:
    """Sizes around those of one, two and more WRITEs, first, last and between others; also of a short set-up; failed calls."""
    world, (qp,) = await begin(dut, stall)
    context = qp.contexts[-1]
    around = [LONGEST * n + d for n in (1, 2, 5) for d in (-1, 0, 1)] + [0, 1]
    for size in around:
        for sizes in ([size], [size, 9], [0, size], [size] * 3):
            wanted = [*outputs(world, sizes, INPUT), *outputs(world, sizes), *outputs(world, [3 * LONGEST], OUTPUT | INTERNAL)]
            wanted[-1].host_addr = wanted[-1].host_rkey = 0
            await (world.set_up if size % 2 else world.set_up_long)(context, wanted)
            await call(world, context, wanted)
        await call(world, context, wanted, 0x15)
        await world.settle()
    assert world.events["call_finished"] == 4 * len(around) and world.events["call_failed"] == len(around)


@cocotb.test()
@cocotb.parametrize(stall=STALLS)
async def as_many_sends_as_outputs(dut, stall: float) -> None:
    """Whatever the sizes are, an answer has no more WRITEs outstanding: the world knows how many the queue pair has room for."""
    world, (qp,) = await begin(dut, stall)
    wanted = outputs(world, [3 * LONGEST + 1] * SHARE)
    for context in qp.contexts:
        await world.set_up_long(context, wanted)
    for context in qp.contexts:
        world.send(context, START | 1)
    for _ in qp.contexts:
        world.finish(await running(world))
    for context in qp.contexts:
        await world.result(context, wanted, context.granted)
    await world.settle()
    assert world.events["call_finished"] == CONTEXTS


@cocotb.test()
async def others_do_not_wait(dut) -> None:
    """While an answer waits for its caller, those of other contexts and connections leave; then it is continued."""
    world, (qp, other) = await begin(dut, callers=2)
    context = qp.contexts[0]
    wanted, small = outputs(world, [7, 3 * LONGEST, 5]), outputs(world, [2 * LONGEST])
    await world.set_up_long(context, wanted)
    await world.set_up_long(other.contexts[1], small)
    await held_back(world, qp, context, wanted)
    for _ in range(3):
        await call(world, other.contexts[1], small)
    assert len(context.sent) == 2
    for count in (3, 5):
        world.acknowledge(qp)
        await world.settle()
        assert len(context.sent) == count
    await world.result(context, wanted, context.granted)
    world.acknowledge(qp)
    qp.acknowledge = True
    await world.settle()
    await call(world, context, wanted)


@cocotb.test()
@cocotb.parametrize(stall=STALLS)
async def the_call_has_ended(dut, stall: float) -> None:
    """What comes between two parts of an answer: a cancel and a deadline do nothing, the next request waits for its turn."""
    world, (qp,) = await begin(dut, stall)
    context = qp.contexts[0]
    wanted = outputs(world, [3 * LONGEST])
    await world.set_up_long(context, wanted, deadline=2)
    for cancelled in (False, True):
        await held_back(world, qp, context, wanted)
        world.cancel(context)
        world.pass_(2 + 4 * TICK)
        await world.settle()
        world.send(context, START | 2)  # too early, but there is room for it
        await world.settle()
        if cancelled:  # that start
            world.cancel(context)
            await world.settle()
        assert not world.jobs and len(context.sent) == 1
        for count in (2, 3):
            world.acknowledge(qp)
            await world.settle()
            assert len(context.sent) == count
        await world.result(context, wanted, context.granted)
        assert not world.jobs
        world.acknowledge(qp)
        qp.acknowledge = True
        if not cancelled:
            world.finish(await running(world))
        await world.result(context, wanted, context.granted, 5 if cancelled else 0)
        await world.settle()
    assert world.events["call_cancelled"] == 1 and world.events["call_finished"] == 3


@cocotb.test()
async def a_cancel_at_any_moment(dut) -> None:
    """Of an answer: it goes on, and the next call is not cancelled."""
    world, (qp,) = await begin(dut)
    world.ack_cycles = (5, 5)
    context = qp.contexts[0]
    wanted = outputs(world, [3 * LONGEST])
    await world.set_up_long(context, wanted)
    for after in range(0, 90, 2 if LONG else 6):
        world.send(context, START | 1)
        world.finish(await running(world))
        await world.later((after, after))
        world.cancel(context)
        await world.until(lambda: context.sent)
        early = context.sent[0][2].imm_data >> 8 & 0xFF if context.sent[0][2].length == 0 else 0
        assert early in (0, 5) and (after < 20 or not early)
        await world.result(context, wanted, context.granted, early)
        await world.settle()
        await call(world, context, wanted)
        await world.settle()


@cocotb.test()
@cocotb.parametrize(how=["close", "break", "any moment"])
async def closed_in_the_middle(dut, how: str) -> None:
    """All memory and keys are free again, nothing more is sent, and the call counts as failed, once."""
    world, _ = await begin(dut)
    wanted = outputs(world, [2 * LONGEST + 1] * 2)
    for round_ in range(0, 40, 1 if LONG else 3) if how == "any moment" else range(3):
        qp = world.qps[2]
        context = qp.contexts[round_ % CONTEXTS]
        await world.set_up_long(context, wanted)
        failed = world.events["call_failed"] + world.events["call_finished"]
        if how == "any moment":
            world.send(context, START | 1)
            world.finish(await running(world))
            await world.later((round_ // 2, round_ // 2 if round_ % 2 else 250))
        else:
            await held_back(world, qp, context, wanted)
        if how == "break":
            world.break_(qp)
            await world.until(lambda: world.close.received)
            world.close.received.clear()
            await world.settle()
        await world.close_(qp)
        await world.settle()
        assert world.events["call_failed"] + world.events["call_finished"] == failed + 1
        await world.open(2, contexts=CONTEXTS)
    assert how == "any moment" or world.events["call_finished"] == 0
    assert world.free_keys == 1 << 16
    context = world.qps[2].contexts[0]
    whole = [Region(INPUT, HEAP_SIZE, 1, 2)]
    await world.set_up(context, whole)
    await call(world, context, whole)


BUILDS = {(512, 8, 4): ".", (64, 8, 2): "."}


@pytest.mark.parametrize(("data_w", "qps", "contexts"), some(list(BUILDS), 1))
def test_rpc_long_answers(data_w: int, qps: int, contexts: int) -> None:
    run_engine(__file__, data_w, qps, contexts, BUILDS[data_w, qps, contexts], long=True, longest_w=8)
