# SPDX-License-Identifier: Apache-2.0
"""rpc_engine: region set-up and calls, byte for byte as NAAICE has them, and every way in which a caller can misbehave."""

import random
from itertools import pairwise

import cocotb
import pytest
from cocotb.triggers import RisingEdge
from nacelle_tb.long import LONG, alternately, only, some
from nacelle_tb.svtypes import struct
from rpc_world import (
    CONN,
    CONTEXTS,
    CTRL_BASE,
    DESCRIPTION,
    DESCRIPTION_BASE,
    FUNCTIONS,
    HEAP_BASE,
    HEAP_SIZE,
    INPUT,
    INTERNAL,
    OUTPUT,
    PAGE,
    QPS,
    SHARED,
    SINGLE_SEND,
    SOCKETS,
    Region,
    World,
    aar,
    parse_advert,
    regions,
    run_engine,
)

STALLS = [0.0, 0.3]
MALFORMED, NO_MEMORY, TOO_MANY, NO_KEYS = 1, 2, 3, 4  # codes of an ERR
UNKNOWN_FUNCTION = 3
START = 0x80

# Printed by the upstream library: region 0 a single-send input, region 1 input and output, region 2 internal.
GOLDEN_AAR = bytes.fromhex(
    "01030000"
    "06a1b2c3d4e5f000 1122334455660000 01020304 00001000"
    "0c00000000001000 1122334455670000 0a0b0c0d 00000040"
    "0100000000002000 0000000000000000 00000000 00000020"
)
GOLDEN_REGIONS = [
    Region(INPUT | SINGLE_SEND, 0x1000, 0x1122334455660000, 0x01020304, 0xA1B2C3D4E5F000),
    Region(INPUT | OUTPUT, 0x40, 0x1122334455670000, 0x0A0B0C0D, 0x1000),
    Region(INTERNAL, 0x20, requested=0x2000),
]


@cocotb.test()
async def no_connection_is_accepted_before_the_description_is_published(dut) -> None:
    world = World(dut, latency=400)
    starting = cocotb.start_soon(world.start())
    await world.open(5)  # requested from reset on
    assert world.description_key is not None
    await starting


@cocotb.test()
@cocotb.parametrize(cause=["memory", "keys"])
async def a_device_that_cannot_describe_itself_works(dut, cause: str) -> None:
    world = World(dut)
    if cause == "memory":
        at = DESCRIPTION_BASE + len(DESCRIPTION) // 2
        world.memory.errors[:] = [(at, at)]
    else:
        world.description_allowed = False
    await world.start()
    assert world.description_key is None
    qp = await world.open(5)
    world.send(qp, GOLDEN_AAR)
    assert (await world.answer(qp))[0] == 2
    await world.settle()


@cocotb.test()
@cocotb.parametrize(stall=STALLS)
async def callers_can_read_how_busy_the_device_is(dut, stall: float) -> None:
    world, (first, second) = await begin(dut, stall, callers=2)
    wanted = regions(world.rng, 1, 1, internal=1, size=3 * PAGE)
    got = [await world.set_up(qp, wanted) for qp in (first, second)]
    held = 2 * sum(region.pages for region in wanted) * PAGE
    for qp in (first, second):
        world.send(qp, START | 1)
    await world.until(lambda: world.jobs)
    await world.settle()
    assert world.load() == {"connections": 2, "running": 1, "waiting": 1, "memory_held": held, "calls": 2}
    for qp, granted in zip((first, second), got, strict=True):
        await world.until(lambda: world.jobs)
        world.finish(world.jobs.popleft(), 0)
        await world.result(qp, wanted, granted)
    await world.settle()
    assert world.load() == {"connections": 2, "running": 0, "waiting": 0, "memory_held": held, "calls": 2}
    await world.close_(first)
    await world.settle()
    assert world.load() == {"connections": 1, "running": 0, "waiting": 0, "memory_held": held // 2, "calls": 2}


@cocotb.test()
@cocotb.parametrize(stall=STALLS)
async def golden_exchange(dut, stall: float) -> None:
    world = World(dut, stall)
    await world.start()
    qp = await world.open(5)
    assert aar(GOLDEN_REGIONS) == GOLDEN_AAR
    world.send(qp, GOLDEN_AAR)
    answer = await world.answer(qp)
    keys = list(qp.keys)
    assert answer == bytes.fromhex("02020000") + b"".join(
        addr.to_bytes(8, "big") + rkey.to_bytes(4, "big") + size.to_bytes(4, "big")
        for addr, rkey, size in [(HEAP_BASE, keys[0], 0x1000), (HEAP_BASE + PAGE, keys[1], 0x40)]
    )
    for code in (0, 0x12, 0x7F):
        world.send(qp, 0xCCBBAA81)
        await world.until(lambda: world.jobs)
        job = world.jobs.popleft()
        assert job.socket == 0 and job.window == (HEAP_BASE, 3 * PAGE)
        assert [(b.input_, b.output_, b.internal_, b.addr, b.size, b.last) for b in job.beats] == [
            (1, 0, 0, HEAP_BASE, 0x1000, 0),
            (1, 1, 0, HEAP_BASE + PAGE, 0x40, 0),
            (0, 0, 1, HEAP_BASE + 2 * PAGE, 0x20, 1),
        ]
        assert {(b.tag, b.function_code, b.user) for b in job.beats} == {(job.tag, 1, 0xCCBBAA)}
        world.finish(job, code)
        await world.result(qp, GOLDEN_REGIONS, parse_advert(answer), code)
        assert world.window(0) == (0, 0)
    await world.settle()
    assert not qp.sent and len(qp.receives) == 2
    assert world.events == {
        "regions_granted": 1, "regions_refused": 0, "call_started": 3, "call_finished": 1, "call_failed": 2,
        "call_cancelled": 0, "message_malformed": 0, "immediate_ignored": 0,
    }  # fmt: skip


@cocotb.test()
async def golden_message_from_a_slow_memory(dut) -> None:
    """The words of a message come with long pauses between them."""
    world = World(dut)
    world.memory.stall = 0.9
    await world.start()
    qp = await world.open(5)
    for count in (1, 3, 8):
        await world.set_up(qp, regions(world.rng, count, 1, internal=1))


async def begin(dut, stall: float = 0.0, callers: int = 1, **options: int) -> tuple[World, list]:
    """A world with open connections."""
    world = World(dut, stall, **options)
    await world.start()
    return world, [await world.open(2 + i) for i in range(callers)]


async def call(world: World, qp, wanted: list[Region], function: int = 1, code: int = 0) -> None:
    """One call from start to answer; the test acts as the kernel."""
    world.send(qp, START | function)
    await world.until(lambda: world.jobs)
    world.finish(world.jobs.popleft(), code)
    await world.result(qp, wanted, qp.granted, code)


# ---- set-up ----


@cocotb.test()
@cocotb.parametrize(stall=STALLS)
async def every_number_of_regions(dut, stall: float) -> None:
    world, (qp,) = await begin(dut, stall)
    for count in (1, 2, 15, 31, 32):
        wanted = regions(world.rng, (count + 1) // 2, count // 2, size=2 * PAGE)
        got = await world.set_up(qp, wanted)  # replaces the one before
        page = HEAP_BASE
        for (addr, _, _), region in zip(got, wanted, strict=True):
            assert addr == page
            page += region.pages * PAGE
        await call(world, qp, wanted)
    await world.settle()
    assert world.events["regions_granted"] == 5 and len(qp.receives) == 2


@cocotb.test()
async def regions_of_no_bytes(dut) -> None:
    world, (qp, other) = await begin(dut, callers=2)
    wanted = [Region(INPUT, 0, 1, 2), Region(OUTPUT, 0, 3, 4), Region(INTERNAL, 0)]
    await world.set_up(qp, wanted)
    await world.set_up(other, [Region(INPUT, 1, 5, 6)])
    assert qp.granted[0][0] == HEAP_BASE and other.granted[0][0] == HEAP_BASE + PAGE
    await call(world, qp, wanted)


@cocotb.test()
@cocotb.parametrize(stall=STALLS)
async def malformed_messages(dut, stall: float) -> None:
    """Each is refused, holds nothing, changes nothing and costs nothing: what was granted before still works."""
    world, (qp, fresh) = await begin(dut, stall, callers=2)
    wanted = regions(world.rng, 1, 1)
    await world.set_up(qp, wanted)
    keys = dict(qp.keys)
    good = aar(wanted)
    messages = [
        (good[:-1], MALFORMED),  # truncated
        (good[:-24], MALFORMED),
        (good + b"\0", MALFORMED),  # over-long
        (good + bytes(24), MALFORMED),
        (good + bytes(940), MALFORMED),
        (aar(wanted, count=1), MALFORMED),  # lying
        (aar(wanted, count=3), MALFORMED),
        (aar(wanted, count=255), MALFORMED),
        (aar([]), MALFORMED),  # no region
        (aar(wanted, count=0), MALFORMED),
        (b"\1", MALFORMED),
        (b"\1\1\0", MALFORMED),
        (good[:27], MALFORMED),
        (aar(wanted, kind=0), MALFORMED),  # an ERR, an A, unknown
        (aar(wanted, kind=2), MALFORMED),
        (aar(wanted, kind=3), MALFORMED),
        (aar(wanted, kind=0x81), MALFORMED),
        (aar(regions(world.rng, 20, 13)), TOO_MANY),  # 33
        (aar(regions(world.rng, 40, 2)), TOO_MANY),
    ]
    for message, code in messages:
        await world.refused(qp, message, code)
        assert qp.keys == keys and len(qp.receives) == 2
        await world.refused(fresh, message, code)
    await call(world, qp, wanted)
    await world.set_up(fresh, wanted)
    await call(world, fresh, wanted)
    await world.settle()
    assert world.events["message_malformed"] == 2 * len(messages) and world.events["regions_granted"] == 2


@cocotb.test()
async def regions_in_the_wrong_order(dut) -> None:
    """These replace what there was, by nothing."""
    world, (qp,) = await begin(dut)
    first, second, inner = Region(INPUT, 8, 1, 2), Region(OUTPUT, 8, 3, 4), Region(INTERNAL, 8)
    for wanted in ([inner], [inner, inner], [inner, first], [first, inner, second], [first, inner, inner, second, inner]):
        await world.refused(qp, aar(wanted), MALFORMED)
        await world.set_up(qp, [first, second, inner])
        await world.refused(qp, aar(wanted), MALFORMED)
        assert not qp.keys
    world.send(qp, START | 1)
    await world.settle()
    assert not world.jobs and not qp.sent and world.events["immediate_ignored"] == 1


@cocotb.test()
@cocotb.parametrize(stall=STALLS)
async def regions_too_large(dut, stall: float) -> None:
    world, (qp, other) = await begin(dut, stall, callers=2)
    everything = [Region(INPUT, HEAP_SIZE - PAGE, 1, 2), Region(OUTPUT, 1, 3, 4)]
    too_large = [
        [Region(INPUT, HEAP_SIZE, 1, 2), Region(OUTPUT, 1, 3, 4)],
        [Region(INPUT, HEAP_SIZE + 1, 1, 2)],
        [Region(INPUT, 1, 1, 2), Region(INTERNAL, HEAP_SIZE)],
        [Region(INPUT, 0xFFFFFFFF, 1, 2)],
        [Region(INPUT, 0xFFFFF000, 1, 2), Region(INPUT, 0x1000, 1, 2)],  # 0 modulo 2^32
        [Region(INPUT, 0xFFFFFFFF, 1, 2)] * 32,
        [Region(INPUT, 0x80000000, 1, 2)] * 32,
    ]
    for wanted in too_large:
        await world.refused(qp, aar(wanted), NO_MEMORY)
        assert not qp.keys
    # Each of these clears all memory twice: one is too large by a page, one is 0 modulo 2^32.
    beside = too_large if LONG else too_large[::4]
    for wanted in beside:
        await world.set_up(other, everything)
        await world.refused(qp, aar([Region(INPUT, 1, 1, 2)]), NO_MEMORY)
        await world.refused(other, aar(wanted), NO_MEMORY)  # and releases what it had
        await world.set_up(qp, everything)
        await world.refused(qp, aar(wanted), NO_MEMORY)
    await world.settle()
    assert world.events["regions_refused"] == len(too_large) + 3 * len(beside)


@cocotb.test()
async def no_key_left(dut) -> None:
    world, (qp, other) = await begin(dut, callers=2, keys=5)
    wanted = regions(world.rng, 2, 1)
    await world.set_up(qp, wanted)
    await world.refused(other, aar(wanted), NO_KEYS)
    assert not other.keys and world.free_keys == 2
    await world.set_up(other, wanted[:2])
    assert other.granted[0][0] == HEAP_BASE + 3 * PAGE  # the refused one holds no memory
    await call(world, qp, wanted)


@cocotb.test()
async def memory_fails(dut) -> None:
    """A message that cannot be read is refused. An answer that cannot be written costs the connection."""
    world, (qp, other) = await begin(dut, callers=2)
    wanted = regions(world.rng, 2, 1)
    world.memory.errors.append((qp.receives[0].local_addr, qp.receives[0].local_addr + 1023))
    await world.refused(qp, aar(wanted), MALFORMED)
    await world.set_up(qp, wanted)  # in the other buffer
    world.memory.errors[:] = [(CTRL_BASE + 0x800, CTRL_BASE + 0xFFF)]
    world.send(qp, aar(wanted))
    assert await world.close.recv() == qp.qpn
    world.memory.errors.clear()
    world.send(qp, 1)  # what comes after the failure has no effect: an immediate that is no start, a message
    world.send(qp, aar(wanted))
    await world.settle()
    assert not qp.sent and not qp.receives and world.events["immediate_ignored"] == 0
    await world.close_(qp)
    await world.set_up(other, wanted)
    assert other.granted[0][0] == HEAP_BASE
    await world.settle()
    assert not qp.sent and not world.close.received


@cocotb.test()
@cocotb.parametrize(stall=STALLS)
async def set_up_again(dut, stall: float) -> None:
    """A second AAR replaces the regions; during a call it waits for the call's end, and a start behind it waits with it."""
    world, (qp,) = await begin(dut, stall)
    old, new = regions(world.rng, 1, 2), regions(world.rng, 2, 1, internal=2)
    await world.set_up(qp, old)
    keys = dict(qp.keys)
    qp.impatient = True
    world.send(qp, START | 1)
    await world.until(lambda: world.jobs)
    world.send(qp, aar(new))
    world.send(qp, START | 2)
    await world.until(lambda: not world.cqe._queue, 2000)
    await world.settle()
    assert qp.keys == keys and not qp.sent
    world.finish(world.jobs.popleft(), 0)
    await world.result(qp, old, qp.granted)
    qp.granted = parse_advert(await world.answer(qp))
    assert set(qp.keys) == {rkey for _, rkey, _ in qp.granted} and not set(qp.keys) & set(keys)
    await world.until(lambda: world.jobs)
    job = world.jobs.popleft()
    assert [b.size for b in job.beats] == [r.size for r in new] and job.beats[0].function_code == 2
    world.finish(job, 0)
    await world.result(qp, new, qp.granted)
    await world.settle()
    assert world.events["immediate_ignored"] == 0 and len(qp.receives) == 2


# ---- memory is clear, and shared out fairly ----

FIRST_TURN, TURN = 4, 1  # pages that are cleared in the first turn of an extent, and in a further one


@cocotb.test()
@cocotb.parametrize(stall=STALLS)
async def granted_memory_is_clear(dut, stall: float) -> None:
    """Whole pages, internal regions too, whoever had it before and whatever it held at reset; and nothing else is cleared.

    World.set_up looks at every page, and leaves it dirty.
    """
    world, (qp, other) = await begin(dut, stall, callers=2)
    for _ in range(3):
        for it in (qp, other):  # replaces what it had
            await world.set_up(it, regions(world.rng, 2, 2, internal=2, size=3 * PAGE))
        await world.settle()
    await world.close_(qp)
    await world.set_up(other, [Region(OUTPUT, HEAP_SIZE // 2, 1, 2), Region(INTERNAL, HEAP_SIZE // 2 - PAGE)])
    await world.settle()


async def cycles_of(world: World, qp, wanted: list[Region]) -> int:
    """Cycles of a set-up, as the caller sees it."""
    begin = world.cycle
    await world.set_up(qp, wanted)
    return world.cycle - begin


@cocotb.test()
async def a_large_extent_holds_up_nobody(dut) -> None:
    """While it is cleared others set up and call; it loses what they take, and no more. `latency` has a set-up alone."""
    world, (large, other) = await begin(dut, callers=2, latency=35)
    turn = TURN * PAGE // world.memory.bytes_per_beat
    small = regions(world.rng, 2, 1)
    for _ in range(2):  # the second time it also releases what it had
        alone = await cycles_of(world, other, small)
        await world.settle()
    pages = HEAP_SIZE // PAGE - 6
    world.send(large, aar([Region(INPUT, pages * PAGE, 1, 2)]))
    started = world.cycle
    await world.later((500, 500))  # its first turn is over
    longest = 0
    for _ in range(5):
        longest = max(longest, await cycles_of(world, other, small))
        await call(world, other, small)
        await world.later((0, 60))
    dut._log.info(f"set-up alone: {alone} cycles; while a large extent is cleared: {longest}")
    assert not large.sent and longest <= alone + 5 * turn // 2 + 20
    await world.until(lambda: large.sent)
    beats = (pages + 5 * 3) * PAGE // world.memory.bytes_per_beat
    assert world.cycle - started <= 1.03 * beats + 300
    parse_advert(await world.answer(large))


@cocotb.test()
async def extents_are_cleared_in_turns(dut) -> None:
    """A small extent behind many large ones waits for one turn of theirs, and for the first turns of those that came with it."""
    world, qps = await begin(dut, callers=QPS, latency=35)
    turn = TURN * PAGE // world.memory.bytes_per_beat
    *large, other = qps
    each = HEAP_SIZE // PAGE // QPS
    for qp in large:
        world.send(qp, aar([Region(INPUT, each * PAGE, 1, 2)]))
    first_turns = QPS * (FIRST_TURN + TURN) * turn  # and as many further ones
    await world.later((first_turns, first_turns))
    assert not any(qp.sent for qp in large)
    assert await cycles_of(world, other, [Region(INPUT, 1, 1, 2)]) <= 250 + 7 * turn // 2 + 20
    for qp in large:
        await world.until(lambda: qp.sent)  # noqa: B023
        (region,) = parse_advert(await world.answer(qp))
        assert not any(world.memory.read(region[0], region[2]))
    await world.settle()
    assert world.events["regions_granted"] == QPS


@cocotb.test()
async def clears_while_others_write_without_end(dut) -> None:
    """A set-up is slow then, but it ends."""
    world, (qp,) = await begin(dut)
    dut.others_write.value = 1
    await world.set_up(qp, [Region(INPUT, 2 * PAGE, 1, 2)])


@cocotb.test()
@cocotb.parametrize(stall=STALLS)
async def memory_that_cannot_be_cleared(dut, stall: float) -> None:
    """It is not granted, whichever turn it fails in; what held it before has gone all the same, and others go on."""
    world, (qp, other) = await begin(dut, stall, callers=2)
    wanted = [Region(INPUT, 10 * PAGE, 1, 2)]
    await world.set_up(other, [Region(INPUT, 1, 1, 2)])
    for page in (1, 2, 6, 10):
        await world.set_up(qp, wanted)
        world.memory.errors[:] = [(HEAP_BASE + page * PAGE + 99, HEAP_BASE + page * PAGE + 99)]
        await world.refused(qp, aar(wanted), NO_MEMORY)
        assert not qp.keys
        world.memory.errors[:] = []
    assert world.events["regions_refused"] == 4
    await world.set_up(qp, [Region(INPUT, HEAP_SIZE - PAGE, 1, 2)])


@cocotb.test()
async def closed_while_it_is_cleared(dut) -> None:
    """The rest is not cleared, and the memory is free at once."""
    world, (qp, other) = await begin(dut, callers=2)
    turn = FIRST_TURN * PAGE // world.memory.bytes_per_beat
    everything = [Region(INPUT, HEAP_SIZE, 1, 2)]
    for wait in (0, 100, 150, 200, 1000, 2000):
        world.send(qp, aar(everything))
        await world.later((wait, wait))
        began = world.cycle
        await world.close_(qp)
        assert world.cycle - began <= 2 * turn + 250
        assert not qp.sent or qp.sent.popleft()[1] == bytes([0, NO_MEMORY, 0, 0])
        await world.set_up(other, everything)
        await world.refused(other, aar([Region(INPUT, HEAP_SIZE + 1, 1, 2)]), NO_MEMORY)  # gives it up
        qp = await world.open(qp.qpn)
    await world.settle()


@cocotb.test()
@cocotb.parametrize(stall=STALLS)
async def memory_quota(dut, stall: float) -> None:
    """All connections of one address together have no more than MEMORY_PER_CALLER, in whole pages; others are not concerned."""
    world = World(dut, stall)
    await world.start()
    mine, also_mine, its = await world.open(2, ip=7), await world.open(3, ip=7), await world.open(4, ip=8)
    dut.memory_per_caller.value = 4 * 6 + 3  # KiB: 6 pages
    one, four, seven = ([Region(INPUT, n * PAGE - PAGE + 1, 1, 2)] for n in (1, 4, 7))
    await world.refused(mine, aar(seven), NO_MEMORY)
    await world.set_up(mine, four)
    await world.refused(also_mine, aar(four), NO_MEMORY)
    await world.set_up(its, four)
    await world.set_up(mine, four)  # its own does not count twice
    await world.set_up(also_mine, [*one, Region(INTERNAL, 1)])
    stale = struct("roce_pkg::conn_event_t").pack(kind=CONN["CONN_OPENED"], qpn=mine.qpn, ip=9)  # not valid: it changes no owner
    dut.conn_event_data.value = stale
    await world.refused(also_mine, aar([*one, *one, Region(INTERNAL, 1)]), NO_MEMORY)
    await world.close_(mine)
    await world.set_up(also_mine, four)
    mine = await world.open(2, ip=8)  # another's now
    await world.refused(mine, aar(four), NO_MEMORY)
    dut.memory_per_caller.value = 0
    await world.set_up(mine, seven)
    await world.settle()
    assert world.events["regions_refused"] == 4


@cocotb.test()
async def with_all_other_connections_open(dut) -> None:
    """The longest set-ups: every other connection holds memory, and the caller's quota is counted."""
    world, qps = await begin(dut, callers=QPS, latency=35)
    dut.memory_per_caller.value = 4 * 1000
    small = regions(world.rng, 2, 1)
    first = await cycles_of(world, qps[0], small)
    for qp in qps[1:-1]:
        await world.set_up(qp, [Region(INPUT, 1, 1, 2)])
    await world.settle()
    last = await cycles_of(world, qps[-1], small)
    await world.settle()
    again = await cycles_of(world, qps[-1], small)
    dut._log.info(f"set-up as the first of {QPS}: {first} cycles, as the last: {last}, once more: {again}")
    assert last <= first + QPS + 10 and again <= first + 2 * QPS + 20


@cocotb.test()
async def a_set_up_waits_for_one_release(dut) -> None:
    """However many connections close just before it."""
    world, qps = await begin(dut, callers=QPS, latency=35)
    small = regions(world.rng, 2, 1)
    for qp in qps[2:]:
        await world.set_up(qp, [Region(INPUT, 1, 1, 2)])
    await world.settle()
    alone = await cycles_of(world, qps[0], small)
    closings = [cocotb.start_soon(world.close_(qp, 100_000)) for qp in qps[2:]]
    await world.until(lambda: not world.conn_event.busy)
    behind = await cycles_of(world, qps[1], small)
    released = sum(closing.done() for closing in closings)
    dut._log.info(
        f"{alone} cycles alone, {behind} behind {len(closings)} connections that close; {released} were released meanwhile"
    )
    assert behind <= alone + 2 * (QPS + 30), "one before it, and one before its extent is clear"
    assert QPS < 64 or released < len(closings)
    for closing in closings:
        await closing


@cocotb.test()
@cocotb.parametrize(stall=STALLS, short=["memory", "keys"])
async def a_set_up_waits_for_what_is_being_released(dut, stall: float, short: str) -> None:
    """A set-up waits for memory that closed connections are releasing; it is refused only if none is being released."""
    count = QPS - 1
    world, qps = await begin(dut, stall, callers=QPS, **({"keys": count} if short == "keys" else {}))
    each = HEAP_SIZE // PAGE // count * PAGE
    if short == "memory":
        own, wanted = [Region(INPUT, each, 1, 2)], [Region(INPUT, HEAP_SIZE - each // 2, 1, 2)]
    else:
        own, wanted = [Region(INPUT, 1, 1, 2)], [Region(INPUT, 1, 1, 2)] * count
    late = qps.pop()
    for qp in qps:
        await world.set_up(qp, own)
    await world.refused(late, aar(wanted), NO_MEMORY if short == "memory" else NO_KEYS)
    for qp in qps[1:]:
        closing = cocotb.start_soon(world.close_(qp, 100_000))
    await world.until(lambda: not world.conn_event.busy)
    await world.refused(late, aar(wanted), NO_MEMORY if short == "memory" else NO_KEYS)
    assert closing.done(), "all that closed were released first"
    for qp in qps[1:]:
        await world.set_up(await world.open(qp.qpn), own)
    closings = [cocotb.start_soon(world.close_(qp, 100_000)) for qp in world.qps.values() if qp.open and qp is not late]
    await world.until(lambda: not world.conn_event.busy)
    await world.set_up(late, wanted)
    for closing in closings:
        await closing
    await call(world, late, wanted)


# ---- calls ----


@cocotb.test()
@cocotb.parametrize(stall=STALLS)
async def outputs(dut, stall: float) -> None:
    world, (qp,) = await begin(dut, stall)
    inner = Region(INTERNAL | OUTPUT | INPUT, 64)
    for wanted in (
        regions(world.rng, 1, 0),
        regions(world.rng, 0, 1),
        regions(world.rng, 1, 30, internal=1),
        regions(world.rng, 0, 32),
        regions(world.rng, 31, 1),
        [*regions(world.rng, 1, 1), inner, inner],
        [Region(OUTPUT | SINGLE_SEND, 5000, 7, 8), Region(INPUT, 8, 9, 10), Region(INPUT | OUTPUT, 77, 11, 12), Region(0, 1, 1, 1)],
        [Region(0, 100, 7, 8)],
        [r for pair in zip(regions(world.rng, 8, 0), regions(world.rng, 0, 8), strict=True) for r in pair],
    ):
        await world.set_up(qp, wanted)
        for code in (0, 0x11, 0):
            world.send(qp, START | 3)
            await world.until(lambda: world.jobs)
            job = world.jobs.popleft()
            assert job.socket == 1
            flags = [(b.input_, b.output_, b.internal_) for b in job.beats]
            assert flags == [
                (
                    int(bool(r.flags & (INPUT | SINGLE_SEND))),
                    int(bool(r.flags & OUTPUT and not r.flags & INTERNAL)),
                    int(bool(r.flags & INTERNAL)),
                )
                for r in wanted
            ]
            assert [b.last for b in job.beats] == [0] * (len(wanted) - 1) + [1]
            assert [b.addr for b in job.beats][: len(qp.granted)] == [addr for addr, _, _ in qp.granted]
            world.finish(job, code)
            await world.result(qp, wanted, qp.granted, code)
    await world.settle()
    assert world.events["call_finished"] == 18 and world.events["call_failed"] == 9


@cocotb.test()
@cocotb.parametrize(stall=STALLS)
async def odd_immediates(dut, stall: float) -> None:
    world, (qp, fresh) = await begin(dut, stall, callers=2)
    wanted = regions(world.rng, 1, 2)
    world.send(fresh, START | 1)  # before set-up
    await world.set_up(qp, wanted)
    nothing = [0x00000001, 0x0000007F, 0xFFFFFF00, 0x00000080, 0xABCDEF80, 0x00000100]
    for imm in [0, *nothing]:
        world.send(qp, imm)
        await world.settle()
        assert len(qp.receives) == 2
    assert world.events["call_failed"] == 1  # the caller's own error
    assert world.events["immediate_ignored"] == 1 + len(nothing)
    for function in (10, 11, 127):  # no socket has these
        world.send(qp, START | function)
        await world.result(qp, wanted, qp.granted, UNKNOWN_FUNCTION)
    for function in range(1, 10):
        world.send(qp, START | function)
        await world.until(lambda: world.jobs)
        job = world.jobs.popleft()
        assert function in FUNCTIONS[job.socket] and job.beats[0].function_code == function
        world.finish(job)
        await world.result(qp, wanted, qp.granted)
    await world.settle()
    assert not world.jobs and not fresh.sent and world.events["call_failed"] == 4 and world.events["call_started"] == 9


@cocotb.test()
@cocotb.parametrize(stall=STALLS)
async def start_during_a_call(dut, stall: float) -> None:
    world, (qp,) = await begin(dut, stall)
    wanted = regions(world.rng, 1, 1)
    await world.set_up(qp, wanted)
    world.send(qp, START | 1)
    await world.until(lambda: world.jobs)
    for imm in (START | 1, START | 2, START | 127, 0):
        world.send(qp, imm)
    await world.settle()
    assert world.events["immediate_ignored"] == 3 and len(qp.receives) == 2
    world.finish(world.jobs.popleft())
    await world.result(qp, wanted, qp.granted)
    await world.settle()
    assert not world.jobs and not qp.sent
    await call(world, qp, wanted)


@cocotb.test()
async def wrong_tag(dut) -> None:
    """A result that is not of the job in its socket ends nothing."""
    world, (qp,) = await begin(dut)
    wanted = regions(world.rng, 1, 1)
    await world.set_up(qp, wanted)
    world.send(qp, START | 1)
    await world.until(lambda: world.jobs)
    job = world.jobs.popleft()
    world.done[0].send(tag=job.tag ^ 1, code=0x55)
    world.done[1].send(tag=job.tag, code=0x55)
    await world.settle()
    assert not qp.sent and world.window(0) == job.window
    world.finish(job, 0x22)
    await world.result(qp, wanted, qp.granted, 0x22)


@cocotb.test()
async def next_call_waits_for_the_acknowledgement(dut) -> None:
    """Nothing that may have to be sent again is changed, and the send queue is never overrun; others go on."""
    world, (qp, other) = await begin(dut, callers=2)
    wanted = regions(world.rng, 0, 32)
    await world.set_up(qp, wanted)
    await world.set_up(other, wanted)
    await world.settle()
    qp.acknowledge = False
    await call(world, qp, wanted)
    qp.impatient = True
    for what in (START | 1, START | 2):
        world.send(qp, what)
    await world.settle()
    assert not world.jobs and not qp.sent
    await call(world, other, wanted)
    world.acknowledge(qp)
    for function in (1, 2):
        await world.until(lambda: world.jobs)
        job = world.jobs.popleft()
        assert job.beats[0].function_code == function
        world.finish(job)
        await world.result(qp, wanted, qp.granted)
        await world.settle()
        assert not world.jobs  # the second waits for the first to be acknowledged
        world.acknowledge(qp)
    await world.settle()
    assert world.events["immediate_ignored"] == 0 and len(qp.receives) == 2


@cocotb.test()
async def calls_queue_in_order(dut) -> None:
    """All connections call one socket at once: served in the order in which they called, the other socket meanwhile."""
    world, qps = await begin(dut, callers=QPS)
    wanted = [regions(world.rng, 1, 1) for _ in qps]
    for qp, its in zip(qps, wanted, strict=True):
        await world.set_up(qp, its)
    await world.settle()
    order = list(range(QPS - 1))
    world.rng.shuffle(order)
    for i in order:
        world.send(qps[i], START | 1)
    await world.settle()
    world.send(qps[QPS - 1], START | 3)
    await world.until(lambda: len(world.jobs) == 2)
    job = world.jobs.popleft()  # the first of the queue, still running
    world.finish(world.jobs.popleft())
    await world.result(qps[QPS - 1], wanted[QPS - 1], qps[QPS - 1].granted)
    for i in order:
        await world.until(lambda: job or world.jobs)  # noqa: B023
        job = job or world.jobs.popleft()
        assert job.beats[0].addr == qps[i].granted[0][0] and job.window[0] == job.beats[0].addr
        world.finish(job)
        job = None
        await world.result(qps[i], wanted[i], qps[i].granted)


@cocotb.test()
@cocotb.parametrize(stall=STALLS)
async def calls_that_end_at_once(dut, stall: float) -> None:
    """Jobs of both sockets end in the same cycle: each caller gets its own answer, whole, one behind the other."""
    world, qps = await begin(dut, stall, callers=2)
    wanted = [regions(world.rng, 1, 5), regions(world.rng, 0, 6)]
    for qp, its in zip(qps, wanted, strict=True):
        await world.set_up(qp, its)
    for _ in range(4):
        for i, qp in enumerate(qps):
            world.send(qp, START | min(FUNCTIONS[i]))
        await world.until(lambda: len(world.jobs) == 2)
        for _ in range(2):
            world.finish(world.jobs.popleft())
        for qp, its in zip(qps, wanted, strict=True):
            await world.result(qp, its, qp.granted)
    await world.settle()


@cocotb.test()
async def sockets_share_a_function(dut) -> None:
    """A call goes to a socket that has none; when both have one, they take turns."""
    world, qps = await begin(dut, callers=6)
    wanted = regions(world.rng, 2, 1)
    for qp in qps:
        await world.set_up(qp, wanted)
    for round_ in range(3):
        served = []
        for qp in qps:
            world.send(qp, START | SHARED)
            if round_ == 2:  # the second socket is always free
                await world.until(lambda: world.jobs)
                served.append(world.jobs[0].socket)
                world.finish(world.jobs.popleft())
                await world.result(qp, wanted, qp.granted)
        if round_ == 2:
            assert served == [0] * 6
            continue
        for _ in range(3):
            await world.until(lambda: len(world.jobs) == 2)
            assert {job.socket for job in world.jobs} == {0, 1}
            for _ in range(2):
                world.finish(world.jobs.popleft())
        for qp in qps:
            await world.result(qp, wanted, qp.granted)
    await world.settle()


@cocotb.test()
async def calls_wait_for_a_paused_socket(dut) -> None:
    """Unless another socket has the function; the kernel that was there ends its job. Which functions there are
    counts when a call comes, not when a socket takes it."""
    world, qps = await begin(dut, callers=5)
    wanted = regions(world.rng, 2, 1)
    for qp in qps:
        await world.set_up(qp, wanted)
    first, second, third, fourth, fifth = qps
    world.send(first, START | 1)
    await world.until(lambda: world.jobs)
    dut.paused.value = 1
    world.send(second, START | 1)
    world.send(third, START | 2)
    await world.settle()
    world.finish(world.jobs.popleft())
    await world.result(first, wanted, first.granted)
    for qp in (fourth, first):
        world.send(qp, START | SHARED)
        await world.until(lambda: world.jobs)
        assert world.jobs[0].socket == 1
        world.finish(world.jobs.popleft())
        await world.result(qp, wanted, qp.granted)
    closing = cocotb.start_soon(world.close_(third, 100_000))
    await world.settle()
    assert not world.jobs and not closing.done()
    dut.functions.value = 0  # none is there now
    world.send(fifth, START | 1)
    await world.result(fifth, wanted, fifth.granted, UNKNOWN_FUNCTION)
    dut.paused.value = 0
    await world.until(lambda: world.jobs)
    assert world.jobs[0].socket == 0
    world.finish(world.jobs.popleft(), 1)  # as a socket answers a job that it does not know
    await world.result(second, wanted, second.granted, 1)
    await closing
    await world.settle()
    assert not world.jobs


@cocotb.test()
async def sockets_take_turns(dut) -> None:
    """A socket whose jobs end at once, with callers that wait for it, does not delay a call for another one."""
    world, qps = await begin(dut, callers=QPS)
    wanted = regions(world.rng, 6, 1)
    for qp in qps:
        await world.set_up(qp, wanted)
    tags = []
    order = []

    async def end_at_the_first_beat() -> None:
        kind = struct("compute_pkg::job_t")
        while True:
            await RisingEdge(dut.clk)
            for i in range(SOCKETS):
                if int(getattr(dut, f"job{i}_valid").value) and int(getattr(dut, f"job{i}_ready").value):
                    tag = kind.unpack(int(getattr(dut, f"job{i}_data").value)).tag
                    if (i, tag) not in tags:
                        tags.append((i, tag))
                        order.append(i)
                        if i == 0:
                            world.done[0].send(tag=tag, code=0)

    cocotb.start_soon(end_at_the_first_beat())
    for qp in qps[:-1]:
        world.send(qp, START | 1)
    world.send(qps[-1], START | 3)
    await world.until(lambda: len(order) == QPS)
    assert order.index(1) <= 2, "passed over"
    await world.until(lambda: any(job.socket == 1 for job in world.jobs))
    world.finish(next(job for job in world.jobs if job.socket == 1))
    for qp in qps:
        await world.result(qp, wanted, qp.granted)


@cocotb.test()
async def cleared_by_a_slow_memory(dut) -> None:
    """Its responses come later than all turns that may be under way: none is lost."""
    world, (qp,) = await begin(dut, latency=1500)
    await world.set_up(qp, [Region(INPUT, 24 * PAGE, 1, 2)])
    await world.settle()


# ---- connections that end ----


@cocotb.test()
@cocotb.parametrize(stall=STALLS)
async def closed_during_a_call(dut, stall: float) -> None:
    """Its memory is not given to another until the kernel has ended; nothing is sent; others are served."""
    world, (qp, other) = await begin(dut, stall, callers=2)
    wanted = regions(world.rng, 1, 1)
    await world.set_up(qp, wanted)
    world.send(qp, START | 1)
    await world.until(lambda: world.jobs)
    job = world.jobs.popleft()
    closing = cocotb.start_soon(world.close_(qp))
    await world.settle()
    assert not closing.done() and world.window(0) == job.window
    await world.set_up(other, wanted)
    assert other.granted[0][0] == HEAP_BASE + 2 * PAGE
    await call(world, other, wanted, function=3)
    world.finish(job)
    await closing
    assert not qp.sent
    qp = await world.open(qp.qpn)
    await world.set_up(qp, wanted)
    assert qp.granted[0][0] == HEAP_BASE
    await call(world, qp, wanted)


@cocotb.test()
async def closed_while_its_call_waits(dut) -> None:
    """A call of a connection that is gone does not run."""
    world, (first, qp) = await begin(dut, callers=2)
    wanted = regions(world.rng, 1, 1)
    for it in (first, qp):
        await world.set_up(it, wanted)
    await world.settle()
    world.send(first, START | 1)
    await world.until(lambda: world.jobs)
    world.send(qp, START | 1)
    await world.settle()
    closing = cocotb.start_soon(world.close_(qp))
    await world.settle()
    world.finish(world.jobs.popleft())
    await closing
    await world.result(first, wanted, first.granted)
    await world.settle()
    assert not world.jobs and not qp.sent
    assert world.events["call_failed"] == 1 and world.events["call_finished"] == 1
    await call(world, first, wanted)


@cocotb.test()
async def closed_while_its_call_runs(dut) -> None:
    """The job of a closed connection is cancelled, and no other."""
    world, (first, qp) = await begin(dut, callers=2)
    wanted = regions(world.rng, 1, 1)
    for it in (first, qp):
        await world.set_up(it, wanted)
    world.send(first, START | 1)
    world.send(qp, START | 3)
    await world.until(lambda: len(world.jobs) == 2)
    mine, its = sorted(world.jobs, key=lambda job: job.socket)
    world.jobs.clear()
    assert not int(dut.cancel.value)
    closing = cocotb.start_soon(world.close_(qp))
    await world.settle()
    assert int(dut.cancel.value) == 1 << its.socket
    world.finish(its)
    await closing
    assert not int(dut.cancel.value)
    world.finish(mine)
    await world.result(first, wanted, first.granted)
    assert not qp.sent


@cocotb.test()
@cocotb.parametrize(stall=STALLS)
async def closings_hold_up_nobody(dut, stall: float) -> None:
    """Connections close while their calls run and wait; others come, work, and go meanwhile, and take what these had only when
    it is free. Then the closed ones are answered, in the order in which they could be freed."""
    world, qps = await begin(dut, stall, callers=QPS - 1)
    wanted = regions(world.rng, 1, 1)
    for qp in qps:
        await world.set_up(qp, wanted)
    await world.settle()
    waiting = qps[:-1]
    for qp in waiting:  # the first runs, the others wait for its socket
        world.send(qp, START | 1)
        await world.settle()
    job = world.jobs.popleft()
    closings = [cocotb.start_soon(world.close_(qp)) for qp in waiting]
    await world.settle()
    assert not any(closing.done() for closing in closings) and int(dut.cancel.value) == 1
    await call(world, qps[-1], wanted, function=3)
    await world.close_(qps[-1])  # behind all of them
    for _ in range(2):
        other = await world.open(1 + QPS)
        await world.set_up(other, wanted)
        await call(world, other, wanted, function=3)
        await world.close_(other)
    assert not any(closing.done() for closing in closings)
    world.finish(job)
    for closing in closings:
        await closing
    assert not world.jobs and not any(qp.sent for qp in qps) and not int(dut.cancel.value)
    assert world.events["call_started"] == len(waiting) + 3 and world.events["call_failed"] == len(waiting)
    for qp in waiting:
        qp = await world.open(qp.qpn)
        await world.set_up(qp, wanted)
        await call(world, qp, wanted)


@cocotb.test()
@cocotb.parametrize(stall=STALLS)
async def closed_at_any_time(dut, stall: float) -> None:
    """The caller vanishes at a random moment of set-up, call or answer: everything is freed every time."""
    world, (watch,) = await begin(dut, stall)
    world.kernel = lambda job: 0
    closings: list = []
    for moment in range(60):
        qpn = 3 + moment % (QPS - 1)
        await world.until(lambda: qpn not in world.unanswered)  # noqa: B023
        qp = await world.open(qpn)
        qp.impatient = True
        world.send(qp, aar(regions(world.rng, 1, 2)))
        world.send(qp, START | world.rng.choice([1, 3, 127]))
        if world.rng.random() < 0.5:
            world.send(qp, aar(regions(world.rng, 2, 2)))
        await world.later((0, 500))
        if world.rng.random() < 0.3:
            world.break_(qp)
            await world.later((0, 30))
        closing = cocotb.start_soon(world.close_(qp))
        if world.rng.random() < 0.7:
            await closing
        else:
            await world.later((0, 10))  # the next one comes meanwhile
        closings.append(closing)
        while world.close.received:
            await world.close.recv()
    for closing in closings:
        await closing
    everything = [Region(INPUT, HEAP_SIZE, 1, 2)]
    await world.set_up(watch, everything)
    assert watch.granted[0][0] == HEAP_BASE
    await world.settle()
    assert world.free_keys == (1 << 16) - 1


@cocotb.test()
@cocotb.parametrize(stall=STALLS)
async def transport_fails(dut, stall: float) -> None:
    """An error completion requests that the connection be closed, once; then it is closed like any other."""
    world, (qp, other) = await begin(dut, stall, callers=2)
    wanted = regions(world.rng, 1, 3)
    await world.set_up(qp, wanted)
    await world.settle()
    qp.acknowledge = False
    world.send(qp, START | 1)
    await world.until(lambda: world.jobs)
    world.finish(world.jobs.popleft())
    await world.result(qp, wanted, qp.granted)
    world.break_(qp)
    assert await world.close.recv() == qp.qpn
    await world.settle()
    assert not world.close.received
    await world.set_up(other, wanted)
    await world.close_(qp)
    await call(world, other, wanted)
    # In the middle of a call.
    qp = await world.open(qp.qpn)
    await world.set_up(qp, wanted)
    world.send(qp, START | 1)
    await world.until(lambda: world.jobs)
    world.break_(qp)
    assert await world.close.recv() == qp.qpn
    world.finish(world.jobs.popleft())
    await world.settle()
    await world.close_(qp)
    assert not world.close.received


@cocotb.test()
async def completions_of_others(dut) -> None:
    """Completions of QPs that are not open, or not ours, have no effect."""
    world, (qp,) = await begin(dut)
    for qpn in (0, 1, 3, 2 + QPS, (1 << 24) - 1, 1 << 23):
        for status in (0, 5):
            for opcode in (0, 1, 4, 5):
                world.cqe.send(status=status, opcode=opcode, qpn=qpn, byte_len=28, imm_data=START | 1)
    await world.settle()
    assert not world.close.received and not world.mr_cmd.received
    await world.set_up(qp, regions(world.rng, 1, 1))


# ---- everything at once ----


@cocotb.test()
@cocotb.parametrize(stall=alternately([0.0, 0.2]))
async def many_callers(dut, stall: float) -> None:
    """Callers that come, set up, call, misbehave and go, all at once."""
    world = World(dut, stall)
    await world.start()
    expected: dict[int, int] = {}  # address of the first region -> code

    def kernel(job) -> int:
        return expected[job.beats[0].addr]

    world.kernel = kernel

    async def caller(qpn: int) -> None:
        rng = random.Random(random.getrandbits(64))
        for _ in range(2):
            qp = await world.open(qpn)
            for _ in range(2):
                wanted = regions(rng, rng.randint(0, 3), rng.randint(1, 5), rng.randint(0, 2), size=6000)
                await world.set_up(qp, wanted)
                for _ in range(rng.randint(0, 5)):
                    kind = rng.randrange(6)
                    if kind == 0:
                        await world.refused(qp, rng.randbytes(rng.randint(1, 1024))[:-1] + b"\0", MALFORMED)
                    elif kind == 1:
                        world.send(qp, START | 100)
                        await world.result(qp, wanted, qp.granted, UNKNOWN_FUNCTION)
                    elif kind == 2:
                        world.send(qp, rng.choice([0, 5, 0xFF00]))
                    else:
                        code = rng.choice([0, 0, 0, 0x33])
                        expected[qp.granted[0][0]] = code
                        world.send(qp, rng.getrandbits(24) << 8 | START | rng.randint(1, 9))
                        await world.result(qp, wanted, qp.granted, code)
            await world.close_(qp)

    tasks = [cocotb.start_soon(caller(2 + i)) for i in range(QPS)]
    for task in tasks:
        await task
    await world.settle()
    assert world.free_keys == 1 << 16 and not world.close.received
    qp = await world.open(2)
    await world.set_up(qp, [Region(INPUT, HEAP_SIZE, 1, 2)])


# ---- how fast ----


@cocotb.test()
async def latency(dut) -> None:
    """Memory answers in 35 cycles, keys are made in up to 6. Counted from clock edge to clock edge, hand-shake to hand-shake."""
    world, (qp,) = await begin(dut, latency=35)
    passed: dict[str, int] = {}  # the cycle in which each stream passed its first value

    async def watch() -> None:
        cycle = 0
        while True:
            await RisingEdge(dut.clk)
            cycle += 1
            for name in ("cqe", "wqe", "job0", "done0"):
                if name not in passed and int(getattr(dut, f"{name}_valid").value) and int(getattr(dut, f"{name}_ready").value):
                    passed[name] = cycle

    cocotb.start_soon(watch())
    for wanted, most in ((regions(world.rng, 0, 3), 6), (regions(world.rng, 2, 1), 8)):
        await world.settle()
        passed.clear()
        world.wqe_cycles.clear()
        world.send(qp, aar(wanted))
        await world.until(lambda: "wqe" in passed)
        offset = world.cycle - passed["wqe"]
        await world.answer(qp)
        cycles = world.wqe_cycles[-1] - offset - passed["cqe"]
        clearing = 3 * PAGE // world.memory.bytes_per_beat + 35  # three regions of a page each
        dut._log.info(f"message -> A handed over: {cycles} cycles, {clearing} of them for the clearing of memory")
        assert cycles <= 170 + clearing
        await world.settle()
        passed.clear()
        world.send(qp, START | 1)
        await world.until(lambda: world.jobs)
        dut._log.info(f"start -> job: {passed['job0'] - passed['cqe']} cycles")
        assert passed["job0"] - passed["cqe"] <= 7 + (CONTEXTS > 1)
        await world.settle()
        passed.clear()
        world.wqe_cycles.clear()
        world.finish(world.jobs.popleft())
        await world.until(lambda: "wqe" in passed)
        dut._log.info(f"result -> first WRITE: {passed['wqe'] - passed['done0']} cycles")
        assert passed["wqe"] - passed["done0"] <= most
        await world.settle()
        outputs = sum(bool(region.flags & OUTPUT) for region in wanted)
        assert [b - a for a, b in pairwise(world.wqe_cycles)] == [2] * (outputs - 1), "WRITEs of an answer, 2 cycles apart"
        qp.sent.clear()


# All tests at one width, with few connections and with contexts. Only messages depend on the width of memory: their tests at the
# other widths.
# With many connections the queues between the parts are in block RAM.
# With contexts the connections that have none work as without.
BUILDS = {
    (512, 8, 4): ".",
    (512, 8, 1): only("golden|malformed|calls_queue|closed_at|many_callers|latency"),
    (64, 8, 1): "golden|memory_fails|latency|clear",
    (64, 8, 2): "golden|latency",
    (128, 128, 1): "golden|malformed|calls_queue|closings",
    (128, 128, 4): "golden|malformed|calls_queue|closings",
    (256, 8, 1): "golden|every_number",
    (512, 256, 1): "with_all_other|waits_for_one",
}
# Domain of the connections, and whether callers may read their regions.
POLICIES = {(64, 8, 1): (5, False)}


@pytest.mark.parametrize(("data_w", "qps", "contexts"), some(list(BUILDS), 2))
def test_rpc_engine(data_w: int, qps: int, contexts: int) -> None:
    pd, read_back = POLICIES.get((data_w, qps, contexts), (0, True))
    run_engine(__file__, data_w, qps, contexts, BUILDS[data_w, qps, contexts], pd, read_back, (data_w, contexts) == (512, 4))
