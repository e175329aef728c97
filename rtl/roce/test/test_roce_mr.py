# SPDX-License-Identifier: Apache-2.0
"""roce_mr: registers, gives keys, checks every access within 3 cycles; against a dictionary."""

from __future__ import annotations

import os
import random
from collections import deque
from collections.abc import Callable

import cocotb
import pytest
from cocotb.triggers import FallingEdge, RisingEdge
from nacelle_tb.bench import Plain, Sink, Source, run
from nacelle_tb.long import alternately
from nacelle_tb.roce import op
from nacelle_tb.streams import StreamSink, StreamSource, stalls, start, wait_cycles
from nacelle_tb.svtypes import struct

CMD, RSP, QUERY = "roce_pkg::mr_cmd_t", "roce_pkg::mr_rsp_t", "roce_rx_pkg::mr_query_t"
MRS = 32
LANES = 4
SLOT_W = 5
TOP = 1 << 64
FAR = 1 << 40  # where a second memory begins, as large
LONGEST = (1 << int(os.environ.get("NACELLE_LENGTH_W", "32"))) - 1  # region
TARGETS = int(os.environ.get("NACELLE_TARGETS", "1"))
RIGHTS = ("remote_write", "remote_read", "remote_atomic", "remote_invalidate", "local_write")
PD = 5


class Bench:
    """Commands one by one, and a queue of queries with what each must yield."""

    def __init__(self, dut, stall: float = 0.0) -> None:
        self.dut = dut
        dut.seed.value = random.getrandbits(64)
        dut.query.value = 0
        dut.pause.value = dut.invalidate.value = dut.invalid_key.value = dut.key.value = 0
        dut.fenced.value = dut.fence_number.value = dut.fences_through.value = 0
        self.fence_delay = 0  # cycles from a fence to `fenced`, and from there to its end; at random if negative
        self.asked: list[int] = []  # keys
        self.cmd = StreamSource(dut, "cmd", CMD, stall)
        self.rsp = StreamSink(dut, "rsp", RSP, stall)
        self.queries: deque[tuple[int, bool]] = deque()
        self.regions: dict[int, tuple[int, int, int, frozenset[str], int]] = {}  # key -> qpn, addr, length, rights, domain
        self.checked = 0
        self._query_stalls = stalls(stall)

    async def start(self) -> None:
        await start(self.dut)
        cocotb.start_soon(self._ask())
        cocotb.start_soon(self._fence())

    async def _ask(self) -> None:
        pipe: deque[bool | None] = deque([None] * 3)
        layout = struct(QUERY)
        while True:
            await FallingEdge(self.dut.clk)
            want = pipe.popleft()
            if want is not None:
                assert bool(int(self.dut.granted.value)) == want
                self.checked += 1
            if self.queries and not next(self._query_stalls):
                word, verdict = self.queries.popleft()
                self.dut.query.value = word
                pipe.append(verdict)
            else:
                self.dut.query.value = layout.pack(key=random.getrandbits(32), qpn=random.getrandbits(4))
                pipe.append(None)

    async def _fence(self) -> None:
        """The responder and the response unit: a fence passes through the one, then the other."""
        dut, through = self.dut, 0
        fence = StreamSink(dut, "fence", "logic")

        async def wait() -> None:
            for _ in range(self.fence_delay if self.fence_delay >= 0 else random.randrange(30)):
                assert not int(dut.rsp_valid.value), "answered before the fence is through"
                await FallingEdge(dut.clk)

        while True:
            await fence.recv(10**9)
            await FallingEdge(dut.clk)
            await wait()
            number = through + random.randrange(1, 3)
            dut.fenced.value, dut.fence_number.value = 1, number % 256
            await FallingEdge(dut.clk)
            dut.fenced.value, dut.fence_number.value = 0, random.getrandbits(8)
            while through < number:
                await wait()
                through += 1
                dut.fences_through.value = through % 256

    # A query is for one byte or more: the responder sends none for an access of no bytes.
    def ask(
        self, rkey: int, qpn: int, va: int, length: int, rights: frozenset[str] = frozenset({"remote_write"}), pd: int = PD,
        bounded: bool = True,
    ) -> None:  # fmt: skip
        region = self.regions.get(rkey)
        verdict = bool(region and region[0] in (0, qpn) and region[4] == pd and rights <= region[3])
        if verdict and bounded:
            verdict = region[1] <= va and va + length <= region[1] + region[2]
        access = dict.fromkeys(rights, 1)
        fields = {"key": rkey, "pd": pd, "qpn": qpn, "bounded": int(bounded), "va": va, "length": length, "access": access}
        self.queries.append((struct(QUERY).pack(**fields), verdict))
        self.asked.append(rkey)

    async def answered(self) -> None:
        while self.queries:
            await RisingEdge(self.dut.clk)
        for _ in range(5):
            await RisingEdge(self.dut.clk)
        # All three readers of keys have the same result, a cycle later.
        keys: tuple[int, ...] = ()
        while self.asked or keys:
            await FallingEdge(self.dut.clk)
            assert [int(self.dut.live.value) >> i & 1 for i in range(len(keys))] == [key in self.regions for key in keys]
            keys = tuple(self.asked[:3])
            del self.asked[:3]
            self.dut.key.value = sum(key << 32 * i for i, key in enumerate(keys))

    async def command(self, name: str, rkey: int = 0, **mr: object) -> object:
        self.cmd.send(op=op(name), mr=mr, rkey=rkey)
        return await self.rsp.recv()

    async def register(
        self, qpn: int, addr: int, length: int, rights: frozenset[str] = frozenset(RIGHTS), pd: int = PD, group: int = 0
    ) -> int | None:
        access = dict.fromkeys(rights, 1)
        rsp = await self.command("MR_REGISTER", pd=pd, qpn=qpn, group=group, addr=addr, length=length, access=access)
        if not rsp.ok:
            return None
        assert rsp.rkey not in self.regions
        if rights & {"remote_write", "remote_atomic"}:  # what peers may change the device may, too
            rights |= {"local_write"}
        self.regions[rsp.rkey] = (qpn, addr, length, rights, pd)
        return rsp.rkey

    async def listed(self) -> dict[int, tuple[int, int, int, frozenset[str], int]]:
        """All regions, by MR_QUERY of every slot."""
        found = {}
        for slot in range(MRS + 1):
            rsp = await self.command("MR_QUERY", rkey=slot)
            if rsp.ok:
                assert rsp.rkey % MRS == slot
                mr = rsp.mr
                rights = frozenset(name for name in RIGHTS if getattr(mr.access, name))
                found[rsp.rkey] = (mr.qpn, mr.addr, mr.length, rights, mr.pd)
        return found

    async def withdraw(self, rkey: int) -> None:
        """The same, always after the same time."""
        await self.invalidate(rkey, 3)

    async def invalidate(self, rkey: int, delay: int | None = None) -> None:
        """As the responder does it: the key was granted, `pause` is high from the query on. Refused from the second cycle on."""
        dut = self.dut
        await FallingEdge(dut.clk)
        dut.pause.value = 1
        for _ in range(delay or random.randrange(1, 6)):
            await FallingEdge(dut.clk)
        dut.invalidate.value, dut.invalid_key.value = 1, rkey
        await FallingEdge(dut.clk)
        dut.invalidate.value = 0
        await FallingEdge(dut.clk)
        del self.regions[rkey]
        dut.pause.value = 0

    async def deregister(self, rkey: int) -> bool:
        ok = bool((await self.command("MR_DEREGISTER", rkey=rkey)).ok)
        assert ok == (rkey in self.regions)
        self.regions.pop(rkey, None)
        return ok

    async def deregister_qp(self, qpn: int) -> None:
        assert (await self.command("MR_DEREGISTER_QP", qpn=qpn)).ok
        self.regions = {key: region for key, region in self.regions.items() if region[0] != qpn or not qpn}

    async def deregister_pd(self, pd: int) -> None:
        assert (await self.command("MR_DEREGISTER_PD", pd=pd)).ok
        self.regions = {key: region for key, region in self.regions.items() if region[4] != pd}


@cocotb.test()
async def a_group_is_deregistered_alone(dut) -> None:
    """Of the regions of a QP those of this group, and no others; MR_DEREGISTER_QP takes all groups."""
    bench = Bench(dut)
    await bench.start()
    for qpn in (0, 7, 8):
        for group in (0, 1, 2, 3, 2):
            assert await bench.register(qpn, 0x1000 * group, 64, group=group) is not None

    def of(qpn: int, group: int) -> list[int]:
        return [key for key, region in bench.regions.items() if region[:2] == (qpn, 0x1000 * group)]

    for qpn, group in ((7, 2), (8, 0), (7, 2), (0, 1), (7, 3)):
        assert (await bench.command("MR_DEREGISTER_GROUP", qpn=qpn, group=group)).ok
        for key in of(qpn, group) if qpn else []:
            del bench.regions[key]
        assert await bench.listed() == bench.regions
        for key, region in bench.regions.items():
            bench.ask(key, region[0] or 5, region[1], 64)
        await bench.answered()
    await bench.deregister_qp(7)
    assert await bench.listed() == bench.regions and {region[0] for region in bench.regions.values()} == {0, 8}


@cocotb.test()
async def a_confined_command_sees_its_own_domain_only(dut) -> None:
    """It answers 0 and changes nothing for a region of another client, even with the right key."""
    bench = Bench(dut)
    await bench.start()
    mine, other = PD, PD + 1
    keys = {pd: [await bench.register(qpn, 0x1000, 64, pd=pd) for qpn in (0, 7, 7)] for pd in (mine, other)}

    async def confined(name: str, rkey: int = 0, **mr: object) -> object:
        bench.cmd.send(op=op(name), mr=mr, rkey=rkey, confined=1, domain=mine)
        return await bench.rsp.recv()

    for _ in range(MRS):  # more often than there are slots: a refusal uses none up
        assert not (await confined("MR_REGISTER", pd=other, qpn=0, addr=0, length=64)).ok
    assert not (await confined("MR_DEREGISTER_PD", pd=other)).ok
    for pd, each in keys.items():
        for key in each:
            rsp = await confined("MR_QUERY", rkey=key % MRS)
            assert (rsp.ok, rsp.rkey, rsp.mr.length) == ((1, key, 64) if pd == mine else (0, 0, 0))
    for key in keys[other]:
        assert not (await confined("MR_DEREGISTER", rkey=key)).ok
    assert await bench.listed() == bench.regions and len(bench.regions) == 6
    # Of a QP it takes the regions of its own domain.
    assert (await confined("MR_DEREGISTER_QP", qpn=7)).ok
    for key in keys[mine][1:]:
        del bench.regions[key]
    assert await bench.listed() == bench.regions and len(bench.regions) == 4
    assert (await confined("MR_DEREGISTER", rkey=keys[mine][0])).ok
    rsp = await confined("MR_REGISTER", pd=mine, qpn=0, addr=0, length=64)
    assert rsp.ok
    assert (await confined("MR_DEREGISTER_PD", pd=mine)).ok
    del bench.regions[keys[mine][0]]
    assert await bench.listed() == bench.regions and len(bench.regions) == 3


@cocotb.test()
async def bounds_owner_rights_and_key(dut) -> None:
    bench = Bench(dut)
    await bench.start()
    regions = [(0, 1), (0x1003, 1000), (TOP - 1, 1), (TOP - 4096, 4096), (5, 0xFFFFFFFF), (TOP - 0xFFFFFFFF, 0xFFFFFFFF)]
    for length in (5 << 30, (1 << 33) + 64, LONGEST):
        regions += [(0, length), (1 << 40, length), (TOP - length, length)]
    for addr, length in regions:
        if length > LONGEST:
            assert await bench.register(7, addr, length) is None
            continue
        key = await bench.register(7, addr, length, frozenset({"remote_write"}))
        assert key is not None
        far = [addr + n for n in range(1 << 32, length, 1 << 32)[:2]] + [addr + length - (1 << 31), addr + length - 0xFFFFFFFF]
        near = [addr - 1, addr, addr + 1, addr + length - 1, addr + length, addr + length + (1 << 32)]
        for va in (*near, *far, addr + TOP, addr + (1 << 40), addr + (1 << 63), (1 << 64) - 1):
            for size in (1, 2, length - 1, length, length + 1, 1 << 31, (1 << 31) + 1, 0xFFFFFFFF):
                if 0 <= va < 1 << 64 and 1 <= size < 1 << 32:
                    bench.ask(key, 7, va, size)
        for bit in range(32):
            bench.ask(key ^ (1 << bit), 7, addr, 1)
        bench.ask(key, 6, addr, 1)
        bench.ask(key, 7 | 1 << 23, addr, 1)
        bench.ask(key, 0, addr, 1)
        for bit in range(8):
            bench.ask(key, 7, addr, 1, pd=PD ^ 1 << bit)
        for right in RIGHTS:
            bench.ask(key, 7, addr, 1, frozenset({right}))
            bench.ask(key, 7, addr, 1, frozenset({right, "remote_write"}))
    await bench.answered()
    assert bench.checked > 300


@cocotb.test()
async def a_region_of_a_domain_serves_all_its_qps(dut) -> None:
    bench = Bench(dut)
    await bench.start()
    key = await bench.register(0, 0x1000, 64, frozenset({"remote_invalidate"}))
    for qpn in (2, 3, 0xFFFFFF):
        for pd in (PD, PD + 1):
            for right in RIGHTS:
                bench.ask(key, qpn, 0, 1, frozenset({right}), pd, bounded=False)
            bench.ask(key, qpn, 0x1000, 64, frozenset({"remote_invalidate"}), pd)
    await bench.answered()
    await bench.deregister_qp(0)  # names no QP: nothing goes
    assert await bench.listed() == bench.regions != {}
    others = [await bench.register(qpn, 0, 1, pd=pd) for qpn in (0, 2) for pd in (PD, PD + 1)]
    await bench.deregister_pd(PD)
    assert await bench.listed() == bench.regions and len(bench.regions) == 2
    for other in (key, *others):
        bench.ask(other, 2, 0, 1)
        bench.ask(other, 2, 0, 1, pd=PD + 1)
    await bench.answered()


@cocotb.test()
async def an_invalidated_region_is_gone_at_once(dut) -> None:
    bench = Bench(dut)
    await bench.start()
    for _ in range(60):
        keys = [await bench.register(2, 0x1000, 64) for _ in range(3)]
        name = random.choice(("MR_REGISTER", "MR_DEREGISTER", "MR_DEREGISTER_QP", "MR_QUERY", None))
        task = None
        if name == "MR_REGISTER":
            task = cocotb.start_soon(bench.command(name, pd=PD, qpn=2, addr=0, length=1))
        elif name:
            task = cocotb.start_soon(bench.command(name, rkey=keys[1] % MRS if name == "MR_QUERY" else keys[1], qpn=9))
        for _ in range(random.randrange(5)):
            await FallingEdge(dut.clk)
        await bench.invalidate(keys[0])
        bench.ask(keys[0], 2, 0x1000, 1)
        bench.ask(keys[2], 2, 0x1000, 1)
        await bench.answered()
        if task:
            rsp = await task
            assert rsp.ok
            if name == "MR_REGISTER":
                bench.regions[rsp.rkey] = (2, 0, 1, frozenset(), PD)
            elif name == "MR_DEREGISTER":
                del bench.regions[keys[1]]
        assert await bench.listed() == bench.regions
        await bench.deregister_pd(PD)
    # No slot was lost or freed twice.
    assert None not in [await bench.register(2, 0, 1) for _ in range(MRS)]
    assert await bench.register(2, 0, 1) is None
    assert len(await bench.listed()) == MRS


@cocotb.test()
async def a_full_table_and_impossible_regions_are_refused(dut) -> None:
    bench = Bench(dut)
    await bench.start()
    for addr, length in ((TOP - 1, 2), (TOP - 4095, 4096), (TOP - 1, 0xFFFFFFFF), (TOP - LONGEST + 1, LONGEST)):
        assert await bench.register(2, addr, length) is None
    keys = [await bench.register(2 + i % 3, i << 20, 4096) for i in range(MRS)]
    assert None not in keys
    assert await bench.register(2, 0, 1) is None
    assert await bench.deregister(keys[5])
    assert not await bench.deregister(keys[5])
    assert not await bench.deregister(keys[6] ^ 1 << 31)
    assert await bench.register(2, 0, 1) is not None
    assert await bench.register(2, 0, 1) is None
    for qpn in (9, 3, 3, 2, 4):
        await bench.deregister_qp(qpn)
        for key in keys:
            bench.ask(key, 2, 0, 1)
        await bench.answered()
    assert not bench.regions
    assert None not in [await bench.register(2, 0, 1) for _ in range(MRS)]


@cocotb.test()
async def a_key_is_new_each_time(dut) -> None:
    bench = Bench(dut)
    await bench.start()
    seen = set()
    for _ in range(6 * MRS):
        key = await bench.register(2, 0x1000, 64)
        assert key not in seen
        seen.add(key)
        await bench.deregister(key)
        bench.ask(key, 2, 0x1000, 1)
        await bench.answered()
    # The random bits are not a pattern: each is set in about half of the keys.
    for bit in range(5, 32):
        ones = sum(key >> bit & 1 for key in seen)
        assert 0.3 < ones / len(seen) < 0.7, f"bit {bit}: {ones} of {len(seen)}"


def steps(state: int, count: int) -> int:
    """The generator of the keys' random part, so many cycles later."""
    for _ in range(count):
        state ^= state << 13 & (1 << 64) - 1
        state ^= state >> 7
        state ^= state << 17 & (1 << 64) - 1
    return state


def seed_that_repeats(first: int, second: int) -> int:
    """A seed from which the generator says the same at both times."""
    return seed_for(lambda bit: steps(bit, first) ^ steps(bit, second))


def seed_for(zero: Callable[[int], int]) -> int:
    """A seed for which the random part of this is 0: each of its bits is a sum (modulo 2) of bits of the seed."""
    columns = [zero(1 << i) >> 32 + SLOT_W for i in range(64)]
    rows = [sum((column >> bit & 1) << i for i, column in enumerate(columns)) for bit in range(32 - SLOT_W)]
    pivots: dict[int, int] = {}
    for row in rows:
        for pivot, other in pivots.items():
            if row >> pivot & 1:
                row ^= other
        if row:
            pivot = row.bit_length() - 1
            pivots = {p: other ^ row if other >> pivot & 1 else other for p, other in pivots.items()} | {pivot: row}
    seed = 1  # the free bits; bit 0 is always set
    assert 0 not in pivots
    return seed | sum((row & seed).bit_count() % 2 << pivot for pivot, row in pivots.items())


@cocotb.test()
async def a_slot_never_gets_the_same_key_twice_in_a_row(dut) -> None:
    """Whatever the generator says: here the same."""
    bench = Bench(dut)
    await bench.start()

    async def run(seed: int, how: str) -> tuple[int, int]:
        bench.regions.clear()
        dut.seed.value = seed
        await start(dut)
        await wait_cycles(dut, MRS + 20)
        keys = [await bench.register(2, 0, 64) for _ in range(MRS)]
        await getattr(bench, how)(keys[3])
        await wait_cycles(dut, 20)
        again = await bench.register(2, 0, 64)
        assert again % MRS == 3 == keys[3] % MRS
        for key in (keys[3], again):
            bench.ask(key, 2, 0, 1)
        await bench.answered()
        return keys[3] >> SLOT_W, again >> SLOT_W

    for how in ("deregister", "withdraw"):
        secrets = await run(1, how)
        said = [steps(1, 0)]
        while len(said) < 4000:
            said.append(steps(said[-1], 1))
        times = [next(t for t, state in enumerate(said) if state >> 32 + SLOT_W == secret) for secret in secrets]
        first, second = await run(seed_that_repeats(*times), how)
        assert first ^ second == 1 << 31 - SLOT_W, "the generator has said the same: one bit is turned"


@cocotb.test()
async def no_key_is_the_reserved_one(dut) -> None:
    """Whatever the generator says: here that the random part of the first slot's key is 0."""
    bench = Bench(dut)
    await bench.start()

    async def first(seed: int) -> int:
        bench.regions.clear()
        dut.seed.value = seed
        await start(dut)
        await wait_cycles(dut, MRS + 20)
        key = await bench.register(2, 0, 64)
        assert key % MRS == 0
        bench.ask(key, 2, 0, 1)
        bench.ask(op("LOCAL_DMA_LKEY"), 2, 0, 1)
        await bench.answered()
        return key >> SLOT_W

    secret = await first(1)
    said = [steps(1, 0)]
    while len(said) < 4000:
        said.append(steps(said[-1], 1))
    when = next(t for t, state in enumerate(said) if state >> 32 + SLOT_W == secret)
    assert await first(seed_for(lambda bit: steps(bit, when))) == 1 << 31 - SLOT_W, "the generator has said 0: one bit is turned"


@cocotb.test()
@cocotb.parametrize(stall=alternately([0.0, 0.5]))
async def random_use(dut, stall: float) -> None:
    bench = Bench(dut, stall)
    bench.fence_delay = -1
    await bench.start()
    stale: list[int] = []
    for _ in range(150):
        roll = random.random()
        before = set(bench.regions)
        if roll < 0.55:
            rights = frozenset(random.sample(RIGHTS, random.randrange(4)))
            full = len(bench.regions) == MRS
            qpn = random.choice((0, 2, 3, 4, 5))
            key = await bench.register(qpn, random.getrandbits(20), random.getrandbits(12), rights, random.choice((PD, PD, 6)))
            assert (key is None) == full
        elif roll < 0.9 and bench.regions:
            await bench.deregister(random.choice([*bench.regions, *stale[-3:]]))
        elif roll < 0.95:
            await bench.deregister_qp(random.randrange(2, 6))
        elif roll < 0.97:
            await bench.deregister_pd(random.choice((PD, 6, 7)))
        stale += before - set(bench.regions)
        for _ in range(10):
            key = random.choice([*bench.regions, *stale[-10:], random.getrandbits(32)])
            qpn, addr, length, rights, pd = bench.regions.get(key, (2, 0, 1, frozenset(), PD))
            va = max(0, addr + random.choice((-1, 0, 0, 0, 1, length, random.randrange(length + 1))))
            asked = frozenset(random.sample(sorted(rights), random.randrange(len(rights) + 1)))
            size = random.choice((1, 2, length or 1, length // 2 + 1))
            bounded = random.random() < 0.9
            bench.ask(key, random.choice((qpn or 4, qpn or 5, 3)), va, size, asked, random.choice((pd, pd, pd, PD)), bounded)
        await bench.answered()


@cocotb.test()
async def commands_take_the_cycles_they_say(dut) -> None:
    bench = Bench(dut)
    await bench.start()
    while not int(dut.idle.value):
        await RisingEdge(dut.clk)

    async def cycles(**command: object) -> int:
        bench.cmd.send(**command)
        while not int(dut.cmd_valid.value):
            await RisingEdge(dut.clk)
        count = 0
        while not int(dut.rsp_valid.value):
            await RisingEdge(dut.clk)
            count += 1
        await bench.rsp.recv()
        return count

    assert await cycles(op=op("MR_REGISTER"), mr={"qpn": 2, "addr": 0, "length": 1}) <= 5
    # And a fence, which takes 2 here.
    assert await cycles(op=op("MR_DEREGISTER"), rkey=0) <= 5 + 5
    assert await cycles(op=op("MR_QUERY"), rkey=0) <= 5
    await bench.deregister_qp(2)
    # All regions of an owner: 4 each, and 1 for each row, whatever the others have.
    for count, others in ((0, 0), (0, 20), (1, 20), (MRS - 20, 20)):
        for qpn, pd in [(3, 1)] * others + [(2, 2)] * count:
            assert await bench.register(qpn, 0, 1, pd=pd) is not None
        assert await cycles(op=op("MR_DEREGISTER_QP"), mr={"qpn": 2}) <= MRS // LANES + 4 * count + 3 + 5
        for _ in range(count):
            assert await bench.register(2, 0, 1, pd=2) is not None
        assert await cycles(op=op("MR_DEREGISTER_PD"), mr={"pd": 2}) <= MRS // LANES + 4 * count + 3 + 5
        assert len(await bench.listed()) == others
        assert await cycles(op=op("MR_DEREGISTER_PD"), mr={"pd": 1}) <= MRS // LANES + 4 * others + 3 + 5


@cocotb.test()
async def a_reset_forgets_all_keys(dut) -> None:
    bench = Bench(dut)
    await bench.start()
    key = await bench.register(3, 0x1000, 100)
    bench.ask(key, 3, 0x1000, 1)
    await bench.answered()
    dut.rst.value = 1
    for _ in range(3):
        await FallingEdge(dut.clk)
    dut.rst.value = 0
    bench.regions.clear()
    assert not await bench.listed()
    bench.ask(key, 3, 0x1000, 1)
    await bench.answered()


@cocotb.test()
async def a_region_is_in_one_memory(dut) -> None:
    """With several; a region in two of them is refused, and takes no slot."""
    bench = Bench(dut)
    await bench.start()
    edges = (FAR, 2 * FAR) if TARGETS > 1 else ()
    for _ in range(4):
        for edge in (FAR, 2 * FAR):
            for first in (-4096, -4095, -1, 0, 1):
                for length in (0, 1, 4096, 0xFFFFFFFF, LONGEST):
                    addr = edge + first
                    key = await bench.register(2, addr, length)
                    assert (key is None) == any(addr < e < addr + length for e in edges), f"{addr:x} {length:x}"
                    if key is not None:
                        await bench.deregister(key)
    assert len([await bench.register(2, 0, 0xFFFFFFFF) for _ in range(MRS)]) == MRS and len(bench.regions) == MRS


@pytest.mark.parametrize(("targets", "long"), [(1, True), (2, True), (1, False)])
def test_roce_mr(targets: int, long: bool) -> None:
    only = "a_region_is_in_one_memory" if targets > 1 else ".*" if long else "bounds|refused"
    memories = f"{{256'h0, 64'h{FAR:x}, 64'h{FAR:x}, 64'h0, 64'h{FAR:x}}}"
    run(
        "roce_mr",
        __file__,
        params={"MRS": MRS, "LANES": LANES, "KEYS": 3, "LONG_REGIONS": int(long)}
        | ({"TARGETS": targets, "MAP": memories} if targets > 1 else {}),
        env={"COCOTB_TEST_FILTER": only, "NACELLE_TARGETS": str(targets), "NACELLE_LENGTH_W": "40" if long else "32"},
        ports={
            "seed": Plain("input", "logic [63:0]"), "cmd": Sink(CMD), "rsp": Source(RSP), "query": Plain("input", QUERY),
            "granted": Plain("output", "logic"), "pause": Plain("input", "logic"), "invalidate": Plain("input", "logic"),
            "invalid_key": Plain("input", "logic [31:0]"), "key": Plain("input", "logic [2:0][31:0]"),
            "live": Plain("output", "logic [2:0]"), "fence": Source("logic"), "fenced": Plain("input", "logic"),
            "fence_number": Plain("input", "roce_pkg::fence_t"), "fences_through": Plain("input", "roce_pkg::fence_t"),
            "idle": Plain("output", "logic"),
        },
        random_state=True,
    )  # fmt: skip
