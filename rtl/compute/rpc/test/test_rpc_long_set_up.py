# SPDX-License-Identifier: Apache-2.0
"""rpc_engine with long set-ups: their format, deadlines of calls, chains.

test_rpc_contexts holds connections without them against the same build.
"""

from __future__ import annotations

import cocotb
import pytest
from nacelle_tb.long import some
from rpc_world import (
    CANCELLED,
    CONTEXTS,
    CYCLES_PER_MS,
    DEADLINE,
    HEAP_SIZE,
    INPUT,
    INTERNAL,
    PAGE,
    QPS,
    TICK_W,
    Context,
    Job,
    Qp,
    Region,
    Step,
    World,
    aar,
    long_set_up,
    parse_long_advert,
    regions,
    run_engine,
)

STALLS = [0.0, 0.3]
START = 0x80  # of a chain
MALFORMED, NO_MEMORY, TOO_MANY = 1, 2, 3
UNKNOWN = 3
NO_FUNCTION = 0x77
SHARE = 32 // CONTEXTS
LATE = 4 * QPS * CONTEXTS  # cycles within which a deadline is found
TICK = (1 << TICK_W) / CYCLES_PER_MS  # in milliseconds


async def begin(dut, stall: float = 0.0, callers: int = 1, **options: int) -> tuple[World, list[Qp]]:
    """A world with open connections."""
    world = World(dut, stall, **options)
    await world.start()
    return world, [await world.open(2 + i, contexts=CONTEXTS) for i in range(callers)]


async def running(world: World) -> Job:
    """The next job that a socket gets."""
    await world.until(lambda: world.jobs)
    return world.jobs.popleft()


async def wait(world: World, cycles: int) -> None:
    await world.later((cycles, cycles))


def is_step(job: Job, step: Step, granted: list[tuple[int, int, int]]) -> None:
    """The job is this step: its function, user, and its regions alone."""
    assert {(b.function_code, b.user) for b in job.beats} == {(step.function, step.user)}
    its = granted[step.first : step.first + step.count]
    assert [(b.addr, b.size) for b in job.beats] == [(addr, size) for addr, _, size in its]


async def chain(world: World, context: Context, wanted: list[Region], steps: list[Step], code: int = 0) -> None:
    """One run of a chain whose last step has this result."""
    world.send(context, START)
    for step in steps:
        job = await running(world)
        is_step(job, step, context.granted)
        assert not context.sent
        world.finish(job, code if step is steps[-1] else 0)
    await world.result(context, wanted, context.granted, code)


# ---- the message ----


@cocotb.test()
@cocotb.parametrize(stall=STALLS)
async def golden_message(dut, stall: float) -> None:
    """As docs/reference/calls.md has it, but for the size that no test memory has."""
    world, (qp,) = await begin(dut, stall)
    one = qp.contexts[1]
    text = (
        "11030200000005dc" "1000020000010203" "0101020000000000"
        "040000000000000011223344556600000000000000001000 01020304 00000000"
        "0c00000000000000112233445567000000000000000020 40 0a0b0c0d 00000000"
        "010000000000000000000000000000000000000000000020 00000000 00000000"
    )  # fmt: skip
    world.send(one, bytes.fromhex(text))
    got = parse_long_advert(await world.answer(one))
    assert [size for _, _, size in got] == [0x1000, 0x2040] and {rkey: (addr, size) for addr, rkey, size in got} == one.keys
    await world.settle()
    assert (world.events["regions_granted"], world.events["message_malformed"]) == (1, 0)


@cocotb.test()
@cocotb.parametrize(stall=STALLS)
async def gives_regions_like_the_short_one(dut, stall: float) -> None:
    """Every number of regions, each kind behind the other; a function is called on all of them."""
    world, (qp,) = await begin(dut, stall)
    for count in [1, 2, SHARE // 2, min(SHARE, 31)]:
        context = qp.contexts[count % CONTEXTS]
        wanted = regions(world.rng, count - count // 2, count // 2, internal=int(count > 2 and count < SHARE))
        wanted = wanted[: min(SHARE, 31)]
        for set_up in (world.set_up_long, world.set_up, world.set_up_long):
            got = await set_up(context, wanted)
            world.send(context, START | 1 | 5 << 8)
            job = await running(world)
            assert [b.size for b in job.beats] == [region.size for region in wanted] and job.beats[0].user == 5
            assert [b.addr for b in job.beats][: len(got)] == [addr for addr, _, _ in got]
            world.finish(job)
            await world.result(context, wanted, got)
    await world.settle()


@cocotb.test()
@cocotb.parametrize(stall=STALLS)
async def a_malformed_message_changes_nothing(dut, stall: float) -> None:
    """Also one whose second step alone is wrong: regions and chain of the set-up before stay."""
    world, (qp,) = await begin(dut, stall)
    context = qp.contexts[0]
    wanted = regions(world.rng, 1, 1)
    steps = [Step(1, 0, 1, 7), Step(3, 1, 1)]
    await world.set_up_long(context, wanted, steps)
    keys = dict(context.keys)
    two = regions(world.rng, 2, 0)
    right = Step(2, 0, 2)
    count_off = bytearray(long_set_up(two, [right]))
    count_off[1] = 3
    wrong = [
        long_set_up([]), long_set_up(two, [right] * 5), bytes(count_off), long_set_up(two)[:7], long_set_up(two)[:-4],
        long_set_up(two, [right])[:-32], b"\x11" + aar(two)[1:],
        *(long_set_up(two, [right, bad]) for bad in (
            Step(0, 0, 1), Step(128, 0, 1), Step(1, 0, 0), Step(1, 0, 3), Step(1, 2, 1), Step(1, 255, 2), Step(1, 1, 255),
        )),
        long_set_up(regions(world.rng, 31, 0), [right, Step(0, 0, 1)]),  # and too many regions
    ]  # fmt: skip
    for message in wrong:
        await world.refused(context, message, MALFORMED)
    if SHARE < 31:
        await world.refused(context, long_set_up(regions(world.rng, SHARE, 1), [right]), TOO_MANY)
    assert context.keys == keys
    await chain(world, context, wanted, steps)
    # Regions in the wrong order replace the set-up before.
    for bad in ([Region(INTERNAL, 9)], [Region(INTERNAL, 9), Region(INPUT, 9)]):
        await world.refused(context, long_set_up(bad, [Step(1, 0, 1)]), MALFORMED)
        assert not context.keys
    world.send(context, START)
    await world.settle()
    assert world.events["immediate_ignored"] == 1 and not world.jobs


@cocotb.test()
async def without_agreement_it_is_malformed(dut) -> None:
    world = World(dut)
    await world.start()
    for qpn, contexts in ((2, CONTEXTS), (3, 0)):
        qp = await world.open(qpn, contexts=contexts, long=False)
        caller = qp.contexts[0] if contexts else qp
        await world.refused(caller, long_set_up([Region(INPUT, 64, 1, 2)]), MALFORMED)
        await world.set_up(caller, [Region(INPUT, 64, 1, 2)])
    await world.settle()


@cocotb.test()
@cocotb.parametrize(stall=STALLS)
async def sizes_are_not_cut(dut, stall: float) -> None:
    """What the device cannot have is refused for want of memory, whatever is left of it in 32 bits, and leaves nothing."""
    world, (qp,) = await begin(dut, stall)
    context = qp.contexts[0]
    all_sizes = [[1 << 32], [(1 << 50) + 64], [64, 1 << 33], [1 << 63] * 2, [(1 << 64) - 1, 65], [HEAP_SIZE + 1], [(1 << 31) + 1]]
    for sizes in all_sizes:
        await world.set_up_long(context, [Region(INPUT, 64, 1, 2)])
        await world.refused(context, long_set_up([Region(INPUT, size, 1, 2) for size in sizes]), NO_MEMORY)
        assert not context.keys
    assert world.events["regions_refused"] == len(all_sizes)
    await world.set_up_long(context, [Region(INPUT, HEAP_SIZE, 1, 2)])


# ---- deadlines ----


@cocotb.test()
@cocotb.parametrize(stall=STALLS)
async def a_deadline_ends_a_call_that_runs(dut, stall: float) -> None:
    """Not before its time, and in a few ticks; for each call anew, and until the next set-up."""
    world, (qp,) = await begin(dut, stall)
    context = qp.contexts[-1]
    wanted = regions(world.rng, 1, 2)
    for deadline in (1, 7, (1 << 32) - 1):
        await world.set_up_long(context, wanted, deadline=deadline)
        for _ in range(2):
            world.pass_(1e6)
            world.send(context, START | 1)
            job = await running(world)
            world.pass_(deadline - TICK)
            await wait(world, LATE)
            assert not world.cancels(job.socket), "before its time"
            world.pass_(4 * TICK)
            await world.until(lambda job=job: world.cancels(job.socket), LATE)
            assert not context.sent
            world.finish(job, CANCELLED)
            await world.result(context, wanted, context.granted, DEADLINE)
            await world.settle()
    await world.set_up(context, wanted)
    world.send(context, START | 1)
    job = await running(world)
    world.pass_(1e6)
    await wait(world, LATE)
    assert not world.cancels(job.socket)
    world.finish(job)
    await world.result(context, wanted, context.granted)
    assert world.events["call_cancelled"] == 0 and world.events["call_failed"] == 6


@cocotb.test()
@cocotb.parametrize(stall=STALLS)
async def a_deadline_is_for_its_own_call(dut, stall: float) -> None:
    """A call that ended in time leaves nothing that ends the next one, of any context, or of another connection of the QP."""
    world, (qp, other) = await begin(dut, stall, callers=2)
    wanted = regions(world.rng, 1, 1)
    for caller in (qp, other):
        for context in caller.contexts[:2]:
            await world.set_up_long(context, wanted, deadline=2)
    for _ in range(3):
        for caller in (qp, other):
            for context in caller.contexts[:2]:
                world.send(context, START | 1)
                world.pass_(1.9)
                job = await running(world)
                world.finish(job)
                await world.result(context, wanted, context.granted)
                await world.settle()
    await world.close_(qp)
    qp = await world.open(qp.qpn, contexts=CONTEXTS)
    await world.set_up_long(qp.contexts[0], wanted)
    world.send(qp.contexts[0], START | 1)
    job = await running(world)
    world.pass_(100)
    await wait(world, LATE)
    assert not world.cancels(job.socket)
    world.finish(job)
    await world.result(qp.contexts[0], wanted, qp.contexts[0].granted)


@cocotb.test()
@cocotb.parametrize(stall=STALLS)
async def a_deadline_counts_from_the_arrival(dut, stall: float) -> None:
    """While the start waits for its socket, or for the answer before to be acknowledged."""
    world, (qp, other) = await begin(dut, stall, callers=2)
    wanted = regions(world.rng, 1, 1)
    context = qp.contexts[0]
    await world.set_up(other.contexts[0], wanted)
    await world.set_up_long(context, wanted, deadline=3)
    world.send(other.contexts[0], START | 1)
    job = await running(world)
    world.send(context, START | 1)
    await world.settle()
    world.pass_(3 + 4 * TICK)
    await world.result(context, wanted, context.granted, DEADLINE)
    assert not world.cancels(job.socket) and not world.jobs
    world.finish(job)
    await world.result(other.contexts[0], wanted, other.contexts[0].granted)
    await world.settle()
    # The answer of the first is not acknowledged for a while.
    qp.acknowledge = False
    world.send(context, START | 1)
    world.finish(await running(world))
    await world.result(context, wanted, context.granted)
    world.send(context, START | 2)
    await world.settle()
    world.pass_(2.9)
    world.acknowledge(qp)
    job = await running(world)
    await wait(world, LATE)
    assert not world.cancels(job.socket)
    world.pass_(0.1 + 4 * TICK)
    await world.until(lambda: world.cancels(job.socket), LATE)
    world.finish(job, 0x12)  # it was done before it was cut
    await world.result(context, wanted, context.granted, 0x12)
    world.acknowledge(qp)
    await world.settle()


@cocotb.test()
async def the_first_reason_counts(dut) -> None:
    """Of a cancel and a deadline."""
    world, (qp,) = await begin(dut)
    wanted = regions(world.rng, 1, 1)
    context = qp.contexts[0]
    await world.set_up_long(context, wanted, deadline=1)
    for first, code in (("cancel", CANCELLED), ("deadline", DEADLINE)):
        world.send(context, START | 1)
        job = await running(world)
        for what in (first, "cancel" if first == "deadline" else "deadline"):
            if what == "cancel":
                world.cancel(context)
            else:
                world.pass_(1 + 4 * TICK)
            await wait(world, LATE)
            assert world.cancels(job.socket)
        world.finish(job, CANCELLED)
        await world.result(context, wanted, context.granted, code)
        await world.settle()


# ---- chains ----


@cocotb.test()
@cocotb.parametrize(stall=STALLS)
async def a_chain_runs_its_steps(dut, stall: float) -> None:
    """1 to 4 steps in both sockets, each on its regions alone; several times, from each context at once; then another chain."""
    world, (qp,) = await begin(dut, stall)
    for round_ in range(3):
        plans = []
        for context in qp.contexts:
            count = world.rng.randint(1, 4)
            wanted = regions(world.rng, 2, 3)
            steps = []
            for _ in range(1 + (round_ + context.number) % 4):
                first = world.rng.randrange(5)
                function, last = world.rng.choice([1, 2, 3, 8, 9]), world.rng.randrange(first, 5)
                steps.append(Step(function, first, last - first + 1, world.rng.getrandbits(24)))
            await world.set_up_long(context, wanted, steps)
            plans.append((context, wanted, steps))
            for _ in range(count % 2 + 1):
                await chain(world, context, wanted, steps)
        for context, _, _ in plans:
            world.send(context, START)
        at = [0] * len(plans)
        while any(n < len(steps) for n, (_, _, steps) in zip(at, plans, strict=True)):
            job = await running(world)
            [n] = [i for i, (context, _, _) in enumerate(plans) if job.window[0] == context.granted[0][0]]
            is_step(job, plans[n][2][at[n]], plans[n][0].granted)
            at[n] += 1
            world.finish(job)
        for context, wanted, _ in plans:
            await world.result(context, wanted, context.granted)
        await world.settle()
    assert world.events["call_started"] == world.events["call_finished"] and not world.events["call_failed"]


@cocotb.test()
@cocotb.parametrize(stall=STALLS)
async def a_chain_ends_with_the_first_result_that_is_not_0(dut, stall: float) -> None:
    world, (qp,) = await begin(dut, stall)
    context = qp.contexts[1]
    wanted = regions(world.rng, 2, 1)
    steps = [Step(1, 0, 1), Step(3, 1, 2), Step(2, 0, 3)]
    await world.set_up_long(context, wanted, steps)
    for last in (1, 2, 3):
        await chain(world, context, wanted, steps[:last], 0x15)
        await world.settle()
    for unknown in range(3):
        its = [Step(NO_FUNCTION, 0, 1) if n == unknown else step for n, step in enumerate(steps)]
        await world.set_up_long(context, wanted, its)
        world.send(context, START)
        for step in its[:unknown]:
            job = await running(world)
            is_step(job, step, context.granted)
            world.finish(job)
        await world.result(context, wanted, context.granted, UNKNOWN)
        await world.settle()
    # Without steps, also by a short set-up behind a long one.
    for set_up in (world.set_up_long, world.set_up):
        await world.set_up_long(context, wanted, steps)
        await set_up(context, wanted)
        world.send(context, START)
        await world.result(context, wanted, context.granted, UNKNOWN)
    await world.settle()
    assert not world.jobs


@cocotb.test()
@cocotb.parametrize((("stall", "late"), [(0.0, False), (0.3, True)]))
async def a_chain_is_cancelled_in_any_moment(dut, stall: float, late: bool) -> None:
    """By its caller, or by its deadline: once, with the result of that, or it has ended before."""
    world, (qp, other) = await begin(dut, stall, callers=2)
    context = qp.contexts[0]
    wanted = regions(world.rng, 1, 1)
    steps = [Step(1, 0, 2), Step(3, 0, 1), Step(2, 1, 1), Step(4, 0, 2)]
    await world.set_up_long(context, wanted, steps, deadline=5 if late else 0)
    await world.set_up(other.contexts[0], wanted)
    world.kernel = lambda _: 0
    world.kernel_cycles = (0, 40)  # so that the moments are spread over all steps
    seen = set()
    for after in [*range(0, 120, 7), 300]:
        world.jobs.clear()
        world.send(context, START)
        if after % 2:
            world.send(other.contexts[0], START | world.rng.choice([1, 3]))
        await wait(world, after)
        if late:
            world.pass_(5 + 4 * TICK)
        else:
            world.cancel(context)
        kind, _, wqe = await world.reply(context)
        assert kind == "write"
        code = wqe.imm_data >> 8 & 0xFF
        assert code in (0, DEADLINE if late else CANCELLED)
        mine = sum(job.window[0] == context.granted[0][0] for job in world.jobs)
        assert mine == 4 if code == 0 else mine <= 4
        seen.add((code, mine if code else 4))
        if after % 2:
            await world.result(other.contexts[0], wanted, other.contexts[0].granted)
        await world.settle()
        assert not context.sent, "answered twice"
    assert {code for code, _ in seen} == {0, DEADLINE if late else CANCELLED}
    assert len(seen) > 2, seen


@cocotb.test()
@cocotb.parametrize(stall=STALLS)
async def a_chain_that_waits_is_cancelled(dut, stall: float) -> None:
    """Before its first step, and between two, while another has the socket; the next chain runs as if nothing had been."""
    world, (qp, other) = await begin(dut, stall, callers=2)
    context, blocking = qp.contexts[0], other.contexts[0]
    wanted = regions(world.rng, 1, 1)
    steps = [Step(3, 0, 2), Step(1, 0, 1)]
    await world.set_up_long(context, wanted, steps, deadline=9)
    await world.set_up(blocking, wanted)
    for taken, done in ((3, 0), (1, 1)):
        for late in (False, True):
            world.send(blocking, START | taken)
            job = await running(world)
            world.send(context, START)
            for _ in range(done):
                world.finish(await running(world))
            await world.settle()
            if late:
                world.pass_(9 + 4 * TICK)
            else:
                world.cancel(context)
            await world.result(context, wanted, context.granted, DEADLINE if late else CANCELLED)
            world.finish(job)
            await world.result(blocking, wanted, blocking.granted)
            await world.settle()
            assert not world.jobs
            await chain(world, context, wanted, steps)
    await world.settle()


@cocotb.test()
@cocotb.parametrize(stall=STALLS)
async def closed_during_a_chain(dut, stall: float) -> None:
    """At any moment: all memory and keys are free again, and nothing more is sent."""
    world, _ = await begin(dut, stall)
    world.kernel = lambda _: 0
    world.kernel_cycles = (0, 8)
    wanted = regions(world.rng, 1, 1)
    for _ in range(5):
        qp = world.qps[2]
        for context in qp.contexts:
            await world.set_up_long(context, wanted, [Step(1, 0, 1), Step(3, 0, 2), Step(1, 1, 1), Step(4, 0, 1)], deadline=50)
            world.send(context, START)
        await wait(world, world.rng.randrange(150))
        await world.close_(qp)
        await world.settle()
        await world.open(2, contexts=CONTEXTS)
    assert world.free_keys == 1 << 16
    await world.set_up(world.qps[2].contexts[0], [Region(INPUT, HEAP_SIZE, 1, 2)])


@cocotb.test()
async def many_chains(dut) -> None:
    """Random callers on all contexts: chains, calls, set-ups, cancels, time that passes. Each start is answered once."""
    world, qps = await begin(dut, 0.1, callers=3)
    rng = world.rng
    world.kernel = lambda _: rng.choice([0, 0, 0, 0, 0, 0x22])
    world.kernel_cycles = (0, 200)
    results = {0: 0, UNKNOWN: 0, DEADLINE: 0, CANCELLED: 0, 0x22: 0}

    async def caller(context: Context) -> None:
        for _ in range(3):
            wanted = regions(rng, rng.randint(1, 2), rng.randint(1, 2), size=2 * PAGE)
            functions = [rng.choice([1, 2, 3, 9, NO_FUNCTION]) for _ in range(rng.randrange(5))]
            steps = [Step(function, rng.randrange(2), 1, rng.getrandbits(24)) for function in functions]
            if rng.random() < 0.8:
                await world.set_up_long(context, wanted, steps, rng.choice([0, 1, 5]))
            else:
                await world.set_up(context, wanted)
            for _ in range(rng.randint(1, 4)):
                world.send(context, START | rng.choice([0, 0, 1, 3]))
                if rng.random() < 0.3:
                    await world.later((0, 400))
                    world.cancel(context)
                kind, _, wqe = await world.reply(context)
                while not wqe.signaled:
                    kind, _, wqe = await world.reply(context)
                assert kind == "write"
                results[wqe.imm_data >> 8 & 0xFF] += 1

    async def clock() -> None:
        while True:
            await world.later((0, 800))
            world.pass_(2 * rng.random())

    cocotb.start_soon(clock())
    tasks = [cocotb.start_soon(caller(context)) for qp in qps for context in qp.contexts]
    for task in tasks:
        await task
    assert all(results.values()), results
    assert world.events["call_cancelled"] == results[CANCELLED]
    for qp in qps:
        await world.close_(qp)
    assert world.free_keys == 1 << 16 and not world.close.received


@cocotb.test()
async def how_fast(dut) -> None:
    """Cycles from the result of a step to the first region of the next one."""
    world, (qp,) = await begin(dut)
    context = qp.contexts[0]
    wanted = regions(world.rng, 1, 1)
    await world.set_up_long(context, wanted, [Step(1, 0, 1), Step(1, 1, 1)])
    world.send(context, START)
    job = await running(world)
    world.done[job.socket].send(tag=job.tag, code=0)
    begun = world.cycle
    job = await running(world)
    dut._log.info(f"result of a step -> first region of the next: {job.cycle - begun} cycles")
    assert job.cycle - begun <= 20
    world.finish(job)
    await world.result(context, wanted, context.granted)


BUILDS = {(512, 8, 4): ".", (64, 8, 2): ".", (128, 128, 4): "golden|deadline|runs|waits"}


@pytest.mark.parametrize(("data_w", "qps", "contexts"), some(list(BUILDS), 1))
def test_rpc_long_set_up(data_w: int, qps: int, contexts: int) -> None:
    run_engine(__file__, data_w, qps, contexts, BUILDS[data_w, qps, contexts], long=True)
