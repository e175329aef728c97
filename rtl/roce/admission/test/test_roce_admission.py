# SPDX-License-Identifier: Apache-2.0
"""roce_admission: who is admitted, by which entry, in the same time whatever was guessed; states, counts and deadlines of
entries; what cannot be read or changed."""

from __future__ import annotations

import os
import random
from collections.abc import Awaitable
from dataclasses import dataclass, field
from typing import Any

import cocotb
import pytest
from cocotb.triggers import RisingEdge, with_timeout
from cocotbext.axi import AxiLiteBus, AxiLiteMaster, AxiResp
from nacelle_tb.bench import AxilSlave, Plain, run
from nacelle_tb.cci import offset
from nacelle_tb.long import LONG, rounds
from nacelle_tb.streams import CLOCK_NS, start, wait_cycles
from nacelle_tb.svtypes import struct
from nacelle_tb.values import digits

digits()

ENTRIES = 16
CLOCK_HZ = 2000  # cycles of a second
FREE, VALID, REVOKED, TIME_OVER = range(4)
NONE, WHY_REVOKED, WHY_TIME_OVER, NO_TOKEN, UNKNOWN, CONNECTIONS = range(6)
IPV6 = os.environ.get("NACELLE_IPV6", "1") == "1"
JUDGED_IN = 165 if IPV6 else 117  # cycles

PORTS = {
    "now": Plain("input", "time_pkg::time_t"),
    "bus": AxilSlave(12),
    "asks": Plain("input", "logic"),
    "ask": Plain("input", "roce_pkg::admission_ask_t"),
    "judged": Plain("output", "logic"),
    "verdict": Plain("output", "roce_pkg::admission_verdict_t"),
    "opens": Plain("input", "logic"),
    "leaves": Plain("input", "logic"),
    "changed": Plain("input", "roce_pkg::admission_entry_t"),
    "ended": Plain("output", "roce_pkg::admission_ended_t"),
    "sweep": Plain("output", "logic"),
    "quota_of": Plain("input", "roce_pkg::admission_entry_t"),
    "quota": Plain("output", "logic [29:0]"),
    "to_log": Plain("output", "event_log_pkg::log_event_t [1:0]"),
    "idle": Plain("output", "logic"),
}


def ipv4(text: str) -> int:
    return int.from_bytes(bytes(map(int, text.split("."))), "big")


def caller(ip: int) -> int:
    """The address of a caller as ip_addr_t; 32 bits are one of IPv4."""
    return ip if ip >> 32 else 0xFFFF << 32 | ip


@dataclass
class Entry:
    """What software writes."""

    token: bytes = bytes(16)
    address: int = 0
    prefix: int = 0
    connections: int = 0
    memory: int = 0
    deadline: int = 0
    handle: int = 0
    state: int = FREE
    used: int = field(default=0)
    v6: bool = False

    def inside(self, ip: int) -> bool:
        """Whether this address is in its network."""
        if self.prefix == 0:
            return True
        if self.v6:
            return IPV6 and (ip ^ self.address) >> 128 - min(self.prefix, 128) == 0
        return (ip ^ (0xFFFF << 32 | self.address)) >> 32 - min(self.prefix, 32) == 0

    def is_for(self, token: bytes | None, ip: int) -> bool:
        """Whether a caller with this token, at this address, is this entry's."""
        if not self.inside(caller(ip)):
            return False
        return self.token == bytes(16) and self.prefix != 0 if token is None else token == self.token != bytes(16)


class Bench:
    def __init__(self, dut) -> None:
        self.dut = dut
        self.master = AxiLiteMaster(AxiLiteBus.from_prefix(dut, "bus"), dut.clk, dut.rst)
        self.now = 2**48 - 5000  # it wraps
        self.entries = [Entry() for _ in range(ENTRIES)]
        self.sweeps = 0
        for name in ("asks", "ask", "opens", "leaves", "changed", "quota_of"):
            getattr(dut, name).value = 0
        dut.now.value = self.now

    async def start(self, enable: int = 1) -> None:
        cocotb.start_soon(self._clock())
        await start(self.dut)
        await self.write("CTRL", enable)

    async def _clock(self) -> None:
        while True:
            await RisingEdge(self.dut.clk)
            self.now = (self.now + 1) % 2**48
            self.dut.now.value = self.now
            self.sweeps += int(self.dut.sweep.value) if self.dut.sweep.value.is_resolvable else 0

    async def _within(self, access: Awaitable[Any]) -> Any:
        return await with_timeout(access, 400 * CLOCK_NS, "ns")

    async def try_read(self, name: str, entry: int = 0) -> tuple[int, AxiResp]:
        answer = await self._within(self.master.read(offset(f"admission.{name}") + 4 * entry, 4))
        return int.from_bytes(answer.data, "little"), answer.resp

    async def read(self, name: str, entry: int = 0) -> int:
        value, resp = await self.try_read(name, entry)
        assert resp == AxiResp.OKAY
        return value

    async def write(self, name: str, value: int, entry: int = 0) -> None:
        answer = await self._within(self.master.write(offset(f"admission.{name}") + 4 * entry, value.to_bytes(4, "little")))
        assert answer.resp == AxiResp.OKAY

    async def fill(self, at: int, entry: Entry) -> None:
        """Writes every word of an entry, in any order."""
        token = [int.from_bytes(entry.token[i : i + 4], "big") for i in range(0, 16, 4)]
        words = {"ADDRESS": entry.address & 0xFFFFFFFF, "PREFIX": entry.prefix | entry.v6 << 8, "CONNECTIONS": entry.connections}
        for i in range(1, 4):  # says nothing for a network of IPv4
            words[f"ADDRESS_{i}"] = entry.address >> 32 * i & 0xFFFFFFFF if entry.v6 else random.getrandbits(32)
        words |= {"MEMORY": entry.memory, "DEADLINE": entry.deadline, "HANDLE": entry.handle}
        words |= {f"TOKEN_{i}": word for i, word in enumerate(token)}
        for name, value in random.sample(list(words.items()), len(words)):
            await self.write(name, value, at)
        if self.entries[at].state == FREE:
            self.entries[at] = entry

    async def admit(self, at: int, entry: Entry) -> None:
        """A valid entry."""
        await self.fill(at, entry)
        await self.write("STATE", VALID, at)
        self.entries[at].state = VALID

    async def judge(self, token: bytes | None, ip: int) -> tuple[int, int | None, int]:
        """Why not, by which entry, after how many cycles."""
        words = int.from_bytes(token or random.randbytes(16), "big")
        self.dut.ask.value = struct("roce_pkg::admission_ask_t").pack(has_token=int(token is not None), token=words, ip=caller(ip))
        self.dut.asks.value = 1
        cycles = 0
        await RisingEdge(self.dut.clk)
        while not int(self.dut.judged.value):
            cycles += 1
            assert cycles < 200
            await RisingEdge(self.dut.clk)
        verdict = struct("roce_pkg::admission_verdict_t").unpack(int(self.dut.verdict.value))
        by = struct("roce_pkg::admitted_t").unpack(verdict.by) if isinstance(verdict.by, int) else verdict.by
        return verdict.why, by.entry if by.valid else None, cycles

    async def done(self, opened: int | None = None) -> None:
        """The REQ has been processed."""
        if opened is not None:
            await self.count("opens", opened)
            self.entries[opened].used += 1
        self.dut.asks.value = 0
        await wait_cycles(self.dut, 3)

    async def count(self, signal: str, entry: int) -> None:
        self.dut.changed.value = entry
        getattr(self.dut, signal).value = 1
        await RisingEdge(self.dut.clk)
        getattr(self.dut, signal).value = 0

    async def leave(self, entry: int) -> None:
        await self.count("leaves", entry)
        self.entries[entry].used -= 1

    def expected(self, token: bytes | None, ip: int) -> tuple[int, set[int] | None]:
        mine = [i for i, entry in enumerate(self.entries) if entry.state != FREE and entry.is_for(token, ip)]
        valid = [i for i in mine if self.entries[i].state == VALID]
        if valid:
            first = self.entries[valid[0]]
            return (CONNECTIONS if 0 < first.connections <= first.used else NONE), {valid[0]}
        if mine:
            return (WHY_REVOKED if self.entries[mine[-1]].state == REVOKED else WHY_TIME_OVER), None
        return (NO_TOKEN if token is None else UNKNOWN), None

    async def check(self, token: bytes | None, ip: int, opens: bool = False) -> int:
        """Asks, compares with the model, and returns why not. A device without IPv6 has no caller of it."""
        if caller(ip) >> 32 != 0xFFFF and not IPV6:
            return NO_TOKEN
        why, by, _ = await self.judge(token, ip)
        expected, entry = self.expected(token, ip)
        assert why == expected, (why, expected, token, hex(ip))
        if entry is not None:
            assert by in entry
        await self.done(by if opens and why == NONE else None)
        return why


A, B = random.Random(1).randbytes(16), random.Random(2).randbytes(16)
NEAR, FAR = ipv4("10.1.2.3"), ipv4("192.168.7.9")
HOST = 0x20010DB8_00010002_00030004_0A090203


@cocotb.test()
async def everybody_while_it_is_off(dut) -> None:
    """Also those that an entry would refuse; and no connection counts for one."""
    bench = Bench(dut)
    await bench.start(enable=0)
    await bench.admit(0, Entry(token=A, connections=1))
    for token in (None, A, B, bytes(16)):
        why, by, cycles = await bench.judge(token, NEAR)
        assert (why, by) == (NONE, None) and cycles < 5
        await bench.done()
    await bench.write("CTRL", 1)
    assert await bench.check(None, NEAR) == NO_TOKEN
    assert await bench.check(A, NEAR) == NONE


@cocotb.test()
async def tokens_and_addresses(dut) -> None:
    bench = Bench(dut)
    await bench.start()
    assert await bench.check(A, NEAR) == UNKNOWN and await bench.check(None, NEAR) == NO_TOKEN, "nobody without entries"
    await bench.admit(3, Entry(token=A))
    await bench.admit(7, Entry(token=B, address=NEAR & ~0xFF, prefix=24))
    await bench.admit(15, Entry(address=FAR, prefix=32))
    assert await bench.check(A, FAR) == NONE and await bench.check(B, NEAR) == NONE and await bench.check(None, FAR) == NONE
    assert await bench.check(B, FAR) == UNKNOWN, "the right token from elsewhere is no better than a wrong one"
    assert await bench.check(None, FAR ^ 1) == NO_TOKEN
    assert await bench.check(A[::-1], FAR) == UNKNOWN, "who sends a token is judged by it, whatever its address"
    assert await bench.check(bytes(16), FAR) == UNKNOWN, "no token is not a token of zeros"
    for bit in range(128):  # each bit counts
        assert await bench.check((int.from_bytes(A, "big") ^ 1 << bit).to_bytes(16, "big"), FAR) == UNKNOWN
    mixed = [A[:i] + B[i:] for i in range(1, 16)] + [B[:i] + A[i:] for i in range(1, 16)]
    for token in mixed:
        assert await bench.check(token, NEAR) == UNKNOWN
    await bench.admit(0, Entry())
    assert await bench.check(None, NEAR) == NO_TOKEN, "an entry of zeros is for nobody"


@cocotb.test()
async def every_prefix(dut) -> None:
    bench = Bench(dut)
    await bench.start()
    for prefix in [*(range(1, 33) if LONG else (1, 7, 8, 9, 24, 31, 32)), 40, 63]:
        ip = random.getrandbits(32)
        await bench.admit(5, Entry(address=ip, prefix=prefix))
        for bit in range(32):
            await bench.check(None, ip ^ 1 << bit)
        assert await bench.check(None, ip) == NONE
        await bench.write("STATE", REVOKED, 5)
        await bench.write("STATE", FREE, 5)
        bench.entries[5].state = FREE


@cocotb.test()
async def every_prefix_of_ipv6(dut) -> None:
    """The bits at its end, and some others."""
    bench = Bench(dut)
    await bench.start()
    at_words = [1, 31, 32, 33, 63, 64, 65, 95, 96, 97, 127, 128]
    for prefix in [*(range(1, 129) if LONG else at_words), 0, 129, 255]:
        ip = random.getrandbits(128) | 1 << 127
        await bench.admit(5, Entry(address=ip, prefix=prefix, v6=True))
        bits = {128 - prefix - 1, 128 - prefix, *random.sample(range(127), 3), 31, 32, 95, 96} & set(range(127))
        for bit in bits:
            await bench.check(None, ip ^ 1 << bit)
        await bench.check(None, ip)
        await bench.write("STATE", REVOKED, 5)
        await bench.write("STATE", FREE, 5)
        bench.entries[5].state = FREE


@cocotb.test()
async def networks_of_one_version_are_not_for_callers_of_the_other(dut) -> None:
    bench = Bench(dut)
    await bench.start()
    await bench.admit(1, Entry(address=NEAR, prefix=24))
    for top in (0, 1, 0xFFFE, 0x1FFFF, 0xFFFF << 16, 1 << 95 | 0xFFFF, 0x20010DB8 << 64):
        assert await bench.check(None, top << 32 | NEAR | (1 << 127 if top == 0 else 0)) == NO_TOKEN
    assert await bench.check(None, NEAR) == NONE
    await bench.admit(2, Entry(address=HOST, prefix=64, v6=True))
    assert await bench.check(None, HOST) == (NONE if IPV6 else NO_TOKEN)
    assert await bench.check(None, FAR) == NO_TOKEN and await bench.check(None, HOST & 0xFFFFFFFF) == NO_TOKEN
    # Of all mapped addresses: of IPv4 from everywhere.
    await bench.admit(3, Entry(address=caller(0), prefix=96, v6=True))
    assert await bench.check(None, FAR) == (NONE if IPV6 else NO_TOKEN) and await bench.check(None, HOST ^ 1 << 100) == NO_TOKEN
    # With a token, length 0 is from everywhere.
    await bench.admit(4, Entry(token=A, address=HOST, v6=True))
    assert await bench.check(A, NEAR) == NONE and (not IPV6 or await bench.check(A, HOST ^ 1 << 100) == NONE)


@cocotb.test()
async def the_time_tells_nothing(dut) -> None:
    """A verdict takes as long for any token: of a valid entry, nearly right, wrong, none."""
    bench = Bench(dut)
    await bench.start()
    await bench.admit(0, Entry(token=A))
    await bench.admit(9, Entry(token=B, address=NEAR, prefix=32))
    await bench.admit(10, Entry(address=NEAR, prefix=8))
    times = set()
    for token in (A, A[:15] + b"?", A[:4] + B[4:], B, random.randbytes(16), None):
        for ip in (NEAR, FAR):
            while bench.now % CLOCK_HZ > CLOCK_HZ - 300 or not int(dut.idle.value):
                await RisingEdge(dut.clk)  # a second's work is not to come between
            times.add((await bench.judge(token, ip))[2])
            await bench.done()
    assert len(times) == 1 and times.pop() <= JUDGED_IN


@cocotb.test()
async def connections_are_counted(dut) -> None:
    bench = Bench(dut)
    await bench.start()
    await bench.admit(1, Entry(token=A, connections=2))
    await bench.admit(2, Entry(token=B))
    for _ in range(5):
        assert await bench.check(B, NEAR, opens=True) == NONE
    assert [await bench.check(A, NEAR, opens=True) for _ in range(3)] == [NONE, NONE, CONNECTIONS]
    assert (await bench.read("USED", 1), await bench.read("USED", 2), await bench.read("USED", 3)) == (2, 5, 0)
    await bench.leave(1)
    assert [await bench.check(A, NEAR, opens=True) for _ in range(2)] == [NONE, CONNECTIONS]


@cocotb.test()
async def an_entry_ends_once(dut) -> None:
    """Revoked, it admits nobody, is free only when its connections are gone and no REQ is judged, and says so until then."""
    bench = Bench(dut)
    await bench.start()
    await bench.admit(4, Entry(token=A))
    assert await bench.check(A, NEAR, opens=True) == NONE
    ended = struct("roce_pkg::admission_ended_t")
    assert int(dut.ended.value) == 0 and bench.sweeps == 0
    for state in (FREE, 3, 5, 0x100, VALID):
        await bench.write("STATE", state, 4)
        assert await bench.read("STATE", 4) == VALID, "only a revocation ends it"
    await bench.write("STATE", REVOKED, 4)
    bench.entries[4].state = REVOKED
    assert ended.unpack(int(dut.ended.value)).revoked == 1 << 4
    assert await bench.check(A, NEAR) == WHY_REVOKED and bench.sweeps == 1
    for state in (VALID, REVOKED, FREE, TIME_OVER):
        await bench.write("STATE", state, 4)
        assert await bench.read("STATE", 4) == REVOKED
    assert bench.sweeps == 1
    # While a REQ is judged it could still become a connection of this entry.
    await bench.leave(4)
    assert (await bench.judge(A, NEAR))[0] == WHY_REVOKED
    await bench.write("STATE", FREE, 4)
    assert await bench.read("STATE", 4) == REVOKED
    await bench.done()
    await bench.write("STATE", FREE, 4)
    bench.entries[4].state = FREE
    assert await bench.read("STATE", 4) == FREE and int(dut.ended.value) == 0
    assert await bench.check(A, NEAR) == UNKNOWN


@cocotb.test()
async def deadlines(dut) -> None:
    """Not before its second, and at most a second later; the time may jump."""
    bench = Bench(dut)
    await bench.start()
    at = await bench.read("SECONDS")
    await bench.admit(0, Entry(token=A, deadline=at + 3))
    await bench.admit(1, Entry(token=B))
    await bench.admit(2, Entry(address=NEAR, prefix=32, deadline=at + 1000))
    while (seconds := await bench.read("SECONDS")) < at + 3:
        assert await bench.read("STATE", 0) == VALID or await bench.read("SECONDS") == at + 3
    assert seconds == at + 3
    await wait_cycles(dut, 40)
    bench.entries[0].state = TIME_OVER
    assert [await bench.read("STATE", i) for i in range(3)] == [TIME_OVER, VALID, VALID] and bench.sweeps == 1
    assert struct("roce_pkg::admission_ended_t").unpack(int(dut.ended.value)).time_over == 1
    assert await bench.check(A, NEAR) == WHY_TIME_OVER and await bench.check(B, NEAR) == NONE
    bench.now = (bench.now + 1200 * CLOCK_HZ) % 2**48
    await wait_cycles(dut, 1300)
    assert await bench.read("SECONDS") >= at + 1200
    bench.entries[2].state = TIME_OVER
    assert await bench.check(None, NEAR) == WHY_TIME_OVER and bench.sweeps == 2
    await bench.write("STATE", FREE, 2)
    assert await bench.read("STATE", 2) == FREE


@cocotb.test()
async def what_is_valid_does_not_change(dut) -> None:
    bench = Bench(dut)
    await bench.start()
    entry = Entry(token=A, address=NEAR, prefix=24, connections=0xFFFF, memory=0x3FFFFFFF, handle=77)
    await bench.admit(6, entry)
    names = ("ADDRESS", "PREFIX", "CONNECTIONS", "MEMORY", "DEADLINE", "HANDLE")
    words = [NEAR, 24, 0xFFFF, 0x3FFFFFFF, 0, 77]
    for state in (VALID, REVOKED):
        await bench.write("STATE", state, 6)
        for name in (*names, "TOKEN_0", "TOKEN_3"):
            await bench.write(name, random.getrandbits(32), 6)
        assert [await bench.read(name, 6) for name in names] == words
        bench.entries[6].state = state
        assert await bench.check(A, NEAR) == (NONE if state == VALID else WHY_REVOKED)
    for other in (5, 7):
        assert [await bench.read(name, other) for name in names] == [0] * len(names)
    dut.quota_of.value = 6
    await RisingEdge(dut.clk)
    assert int(dut.quota.value) == 0x3FFFFFFF
    await bench.write("CONNECTIONS", 0xFFFFFFFF, 0)
    assert await bench.read("CONNECTIONS", 0) == 0xFFFF, "a register has the bits that are described"


@cocotb.test()
async def tokens_cannot_be_read(dut) -> None:
    bench = Bench(dut)
    await bench.start()
    await bench.admit(2, Entry(token=A))
    for word in range(4):
        for entry in range(ENTRIES):
            assert await bench.try_read(f"TOKEN_{word}", entry) == (0, AxiResp.DECERR)
    for at in range(0, 0x1000, 4):
        answer = await bench._within(bench.master.read(at, 4))
        assert answer.data not in {A[i : i + 4][::-1] for i in range(0, 16, 4)}


@cocotb.test()
async def a_reset_clears_the_table(dut) -> None:
    """Nothing of a token is left for an entry that is made valid with it."""
    bench = Bench(dut)
    await bench.start()
    await bench.admit(2, Entry(token=A, connections=9, handle=8))
    await bench.done(2)
    dut.rst.value = 1
    await wait_cycles(dut, 5)
    dut.rst.value = 0
    bench.entries = [Entry() for _ in range(ENTRIES)]
    assert await bench.read("CTRL") == 0
    await bench.write("CTRL", 1)
    assert [await bench.read(name, 2) for name in ("STATE", "USED", "CONNECTIONS", "HANDLE")] == [0, 0, 0, 0]
    await bench.write("STATE", VALID, 2)
    bench.entries[2].state = VALID
    assert await bench.check(A, NEAR) == UNKNOWN and await bench.check(bytes(16), NEAR) == UNKNOWN


@cocotb.test()
async def random_entries(dut) -> None:
    """Against the model: few tokens and networks, so that many entries are for the same caller."""
    bench = Bench(dut)
    await bench.start()
    tokens = [None, A, B, A[:8] + B[8:], random.randbytes(16)]
    networks = [(0, 0), (NEAR, 8), (NEAR, 24), (NEAR, 32), (FAR, 16), (FAR, 31), (HOST, 128), (HOST, 64), (HOST, 33), (HOST, 0)]
    hosts = [NEAR, NEAR ^ 1, NEAR ^ 0x100, FAR, FAR ^ 1, FAR ^ 2, HOST, HOST ^ 1, HOST ^ 1 << 64, HOST ^ 1 << 95]
    for _ in range(rounds(600)):
        at = random.randrange(ENTRIES)
        entry = bench.entries[at]
        action = random.random()
        if action < 0.25 and entry.state == FREE:
            address, prefix = random.choice(networks)
            token = random.choice(tokens)
            entry = Entry(token or bytes(16), address, prefix, connections=random.randrange(4), v6=address >> 32 > 0)
            await bench.admit(at, entry)
        elif action < 0.35 and entry.state == VALID:
            await bench.write("STATE", REVOKED, at)
            entry.state = REVOKED
        elif action < 0.5 and entry.used:
            await bench.leave(at)
        elif action < 0.6 and entry.state == REVOKED:
            await bench.write("STATE", FREE, at)
            entry.state = REVOKED if entry.used else FREE
        else:
            await bench.check(random.choice(tokens), random.choice(hosts), opens=random.random() < 0.8)
    assert [await bench.read("STATE", i) for i in range(ENTRIES)] == [entry.state for entry in bench.entries]
    assert [await bench.read("USED", i) for i in range(ENTRIES)] == [entry.used for entry in bench.entries]


@pytest.mark.parametrize("ipv6", [1, 0])
def test_roce_admission(ipv6: int) -> None:
    params = {"CLOCK_HZ": CLOCK_HZ, "IPV6": ipv6}
    run("roce_admission", __file__, params=params, ports=PORTS, random_state=True, env={"NACELLE_IPV6": str(ipv6)})
