# SPDX-License-Identifier: Apache-2.0
"""address_service with IPv6: duplicate address detection, solicitations, advertisements of routers (built by scapy), and how
addresses go.

Only the test lets time pass."""

from __future__ import annotations

import ipaddress
import itertools
import random
from typing import Any

import cocotb
from cocotb.triggers import FallingEdge
from nacelle_tb.bench import run
from nacelle_tb.streams import wait_cycles
from nacelle_tb.svtypes import constant, struct
from scapy.layers.inet6 import ICMPv6ND_RA, ICMPv6NDOptMTU, ICMPv6NDOptPrefixInfo, ICMPv6NDOptSrcLLAddr
from scapy.packet import Raw
from test_address_service import CLOCK_HZ, ND_WATCH, PORTS, STATIC, WITHDRAWAL, Bench

FIXED6 = "2001:db8:1::9"
PREFIX, OTHER = "2001:db8:2::", "2001:db8:3::"
ROUTER, SECOND = "fe80::1:2:3:4", "fe80::99"
FOR_EVER = (1 << 32) - 1
OWN_GLOBAL, OWN_LINK_LOCAL = 1, 2  # own_address_e
NONE, BY_STATIC, BY_ROUTER = range(3)
TWO_HOURS = 7200


def number6(address: str) -> int:
    return int(ipaddress.IPv6Address(address))


def eui64(mac: int) -> int:
    """RFC 4291, appendix A."""
    return (mac >> 24 ^ 0x020000) << 40 | 0xFFFE << 24 | (mac & 0xFFFFFF)


class Bench6(Bench):
    """With IPv6, and with an IPv4 address that is simply there."""

    async def start6(self, on: int = 1, autonomous: int = 0, fixed: str = "::") -> Bench6:
        await self.start(mode=STATIC, ipv6={"on": on, "autonomous": autonomous, "fixed": number6(fixed)})
        self.mac = int(self.dut.mac.value)
        self.claims.clear()
        return self

    async def set6(self, **settings: int) -> None:
        self.set(ipv6=self.settings["ipv6"] | settings)
        await self.settle()

    @property
    def link_local(self) -> str:
        return str(ipaddress.IPv6Address(0xFE80 << 112 | eui64(self.mac)))

    def of(self, prefix: str) -> str:
        """The address that follows from a prefix."""
        return str(ipaddress.IPv6Address(number6(prefix) | eui64(self.mac)))

    @property
    def addresses(self) -> tuple[str, str, str]:
        """Link-local, global, router."""
        local = self.local
        return tuple(str(ipaddress.IPv6Address(value)) for value in (local.link_local, local.global_, local.router))

    @property
    def watched6(self) -> str | None:
        watch = struct(ND_WATCH).unpack(int(self.dut.nd_watch.value))
        return str(ipaddress.IPv6Address(watch.ip)) if watch.valid else None

    async def up(self) -> Bench6:
        """The link-local address is there, and what comes of it has been sent."""
        await self.sleep(2.5)
        assert self.addresses[0] == self.link_local
        return self

    async def collide(self) -> None:
        await FallingEdge(self.dut.clk)
        self.dut.nd_conflict.value = 1
        await FallingEdge(self.dut.clk)
        self.dut.nd_conflict.value = 0
        await self.settle()

    async def router_says(self, message: bytes, router: str = ROUTER) -> bool:
        """An ICMPv6 message of a router, from its first byte on. Whether it was admitted."""
        if not int(self.dut.admitted_router.value):
            return False
        body, identifier = message[8:], number6(router) & (1 << 64) - 1
        self.router_message.send(
            service=constant("services_pkg::SERVICE_ROUTER"), mac=identifier >> 32, ip=identifier & 0xFFFFFFFF,
            port=int.from_bytes(message[6:8], "big"), length=len(body),
        )  # fmt: skip
        words = [body[i : i + 4].ljust(4, b"\xa5") for i in range(0, len(body), 4)]
        for n, word in enumerate(words):
            self.router_words.send(last=n == len(words) - 1, data=int.from_bytes(word, "big"))
        await self.settle()
        return True

    async def offer6(self, *prefixes: Any, lifetime: int = 1800, router: str = ROUTER) -> None:
        assert await self.router_says(advertisement(*prefixes, lifetime=lifetime), router)


def advertisement(*prefixes: Any, lifetime: int = 1800, options: bytes = b"") -> bytes:
    """Of prefixes: (address, valid, preferred), with other fields in a dictionary behind."""
    message = ICMPv6ND_RA(routerlifetime=lifetime) / ICMPv6NDOptSrcLLAddr(lladdr="02:00:00:00:00:07")
    for address, valid, preferred, *more in prefixes:
        fields = {"prefixlen": 64, "L": 1, "A": 1} | (more[0] if more else {})
        message = message / ICMPv6NDOptMTU() / ICMPv6NDOptPrefixInfo(
            prefix=address, validlifetime=valid, preferredlifetime=preferred, **fields
        )  # fmt: skip
    return bytes(message / Raw(options))


@cocotb.test()
async def the_link_local_address_is_probed_then_used(dut) -> None:
    bench = await Bench6(dut).start6()
    assert bench.addresses == ("::", "::", "::") and bench.local.ipv6 == 1
    await bench.sleep(3)
    assert bench.addresses == (bench.link_local, "::", "::") and bench.watched6 is None
    (probed, first), (used, second) = [(time, (probe, ip)) for time, probe, ip in bench.claims]
    assert (first, second) == ((True, bench.link_local), (False, bench.link_local))
    assert probed <= 1.1 and 1 <= used - probed <= 1.2
    await bench.sleep(30)
    assert len(bench.claims) == 2 and bench.status.ipv6.has_local == 1, "without `autonomous` nobody is asked for a router"


@cocotb.test()
async def without_ipv6_nothing_is_sent(dut) -> None:
    bench = await Bench6(dut).start6(on=0, autonomous=1, fixed=FIXED6)
    await bench.sleep(20)
    assert bench.addresses == ("::", "::", "::") and not bench.claims and bench.local.ipv6 == 0
    await bench.router_says(advertisement((PREFIX, 1000, 1000)))
    await bench.sleep(5)
    assert bench.addresses == ("::", "::", "::") and not bench.claims


@cocotb.test()
async def a_duplicate_is_not_used(dut) -> None:
    """While somebody denies every address, one is probed for each minute; then it is there."""
    bench = await Bench6(dut).start6()
    for n in range(3):
        for _ in range(62 * 16):
            if bench.watched6:
                break
            await bench.tick()
        assert bench.watched6 == bench.link_local
        await bench.sleep(random.choice([0, 0.5]))
        await bench.collide()
        assert bench.watched6 is None and bench.addresses[0] == "::" and bench.counts["ipv6_conflict"] == n + 1
    assert len([claim for claim in bench.claims if claim[1]]) <= 3 and all(claim[1] for claim in bench.claims)
    await bench.sleep(59)
    assert bench.watched6 is None and bench.addresses[0] == "::"
    await bench.sleep(4)
    assert bench.addresses[0] == bench.link_local
    await bench.collide()
    assert bench.addresses[0] == bench.link_local, "nothing is watched"


@cocotb.test()
async def a_static_address_is_there_at_once(dut) -> None:
    bench = await Bench6(dut).start6(fixed=FIXED6)
    assert bench.addresses[1] == FIXED6 and bench.local.on_link == 1 and bench.status.ipv6.origin == BY_STATIC
    await bench.sleep(3)
    assert [claim[1:] for claim in bench.claims if claim[2] == FIXED6] in ([], [(False, FIXED6)])
    # A router is taken, its prefix is not.
    await bench.set6(autonomous=1)
    await bench.offer6((PREFIX, 3600, 1800))
    await bench.sleep(3)
    assert bench.addresses == (bench.link_local, FIXED6, ROUTER)
    # Switched off: connections are closed while the addresses are there.
    await bench.set6(on=0)
    withdrawal = struct(WITHDRAWAL).unpack(int(dut.withdrawal.value))
    assert (
        withdrawal.leaving == 1 << OWN_GLOBAL | 1 << OWN_LINK_LOCAL and bench.addresses[1] == FIXED6 and not int(dut.leaving.value)
    )
    await bench.sleep(1)
    assert bench.addresses == ("::", "::", "::") and bench.counts["ipv6_lost"] == 1 and bench.counts.get("lost", 0) == 0
    assert bench.ip is not None, "IPv4 is another matter"
    await bench.set6(on=1)
    await bench.sleep(3)
    assert bench.addresses[:2] == (bench.link_local, FIXED6)


@cocotb.test()
async def routers_are_asked_for_three_times(dut) -> None:
    """RFC 4861, 6.3.7: 4 s apart, and not after one has answered."""
    bench = await Bench6(dut).start6(autonomous=1)
    await bench.sleep(30)
    times = [time for time, _, ip in bench.claims if ip == "ff02::2"]
    assert len(times) == 3 and all(4 <= b - a <= 4.2 for a, b in itertools.pairwise(times))
    bench = await Bench6(dut).start6(autonomous=1)
    await bench.up()
    await bench.offer6(lifetime=0)  # of one that is no router
    assert bench.addresses[2] == "::"
    await bench.offer6()
    await bench.sleep(20)
    assert len([1 for _, _, ip in bench.claims if ip == "ff02::2"]) == 1 and bench.addresses == (bench.link_local, "::", ROUTER)


@cocotb.test()
async def an_address_of_a_prefix(dut) -> None:
    bench = await (await Bench6(dut).start6(autonomous=1)).up()
    await bench.offer6((OTHER, 3600, 1800, {"A": 0}), (PREFIX, 3600, 1800), (OTHER, 3600, 1800))
    await bench.sleep(3)
    address = bench.of(PREFIX)
    assert bench.addresses == (bench.link_local, address, ROUTER) and bench.status.ipv6.origin == BY_ROUTER
    assert [claim[1] for claim in bench.claims if claim[2] == address] == [True, False] and bench.local.on_link == 1
    # Another prefix, another router: not while these are there.
    await bench.offer6((OTHER, 3600, 1800), router=SECOND)
    await bench.sleep(3)
    assert bench.addresses[1:] == (address, ROUTER)
    # The router says that it is none any longer; then the other one is taken.
    await bench.offer6((PREFIX, 9000, 5, {"L": 0}), lifetime=0)
    assert bench.addresses[2] == "::" and bench.local.on_link == 0
    await bench.offer6(router=SECOND)
    assert bench.addresses[2] == SECOND
    assert bench.status.ipv6.deprecated == 0
    await bench.leap(8)
    assert bench.status.ipv6.deprecated == 1 and bench.addresses[1] == address and bench.withdrawals == 0
    assert 8985 <= bench.status.ipv6.valid_left <= 8993
    # Lifetimes end: of the router first.
    await bench.leap(1800)
    assert bench.addresses[2] == "::" and bench.addresses[1] == address
    await bench.leap(7184 - 2)
    assert bench.addresses[1] == address and bench.withdrawals == 0
    await bench.sleep(14)
    assert bench.addresses == (bench.link_local, "::", "::") and bench.withdrawals == 1 and bench.counts["ipv6_lost"] == 1
    assert bench.left == 1 << OWN_GLOBAL, "the link-local address stays, and so do its connections"
    # Then it looks for the next one.
    assert [claim[2] for claim in bench.claims][-1] == "ff02::2"
    await bench.offer6((OTHER, FOR_EVER, FOR_EVER))
    await bench.leap(9_000)
    assert bench.addresses[1] == bench.of(OTHER) and bench.status.ipv6.valid_left == FOR_EVER


@cocotb.test()
async def nobody_ends_an_address_at_once(dut) -> None:
    """RFC 4862, 5.5.3, e: an advertisement may be forged."""
    bench = await (await Bench6(dut).start6(autonomous=1)).up()
    await bench.offer6((PREFIX, 100_000, 100_000))
    await bench.sleep(3)
    offers = [(0, TWO_HOURS), (1, TWO_HOURS), (7199, TWO_HOURS), (7300, 7300), (7200, 7200), (50_000, 50_000), (7201, 7201)]
    for valid, left in [*offers, (FOR_EVER, FOR_EVER), (10, TWO_HOURS)]:
        await bench.offer6((PREFIX, valid, 0))
        assert left - 4 <= bench.status.ipv6.valid_left <= left, (valid, bench.status.ipv6.valid_left)
        assert bench.status.ipv6.deprecated == 1
    # Within the last two hours it is only made longer.
    await bench.leap(4000)
    before = bench.status.ipv6.valid_left
    await bench.offer6((PREFIX, before - 100, 0))
    assert before - 2 <= bench.status.ipv6.valid_left <= before
    await bench.offer6((PREFIX, before + 100, 7))
    assert bench.status.ipv6.valid_left == before + 100 and bench.status.ipv6.preferred_left == 7
    assert bench.withdrawals == 0


@cocotb.test()
async def a_prefix_whose_address_somebody_has(dut) -> None:
    bench = await (await Bench6(dut).start6(autonomous=1)).up()
    await bench.offer6((PREFIX, 3600, 3600))
    for _ in range(3 * 16):
        if bench.watched6:
            break
        await bench.tick()
    assert bench.watched6 == bench.of(PREFIX)
    await bench.collide()
    assert bench.addresses[:2] == (bench.link_local, "::") and bench.counts["ipv6_conflict"] == 1
    await bench.offer6((OTHER, 3600, 3600))
    await bench.sleep(58)
    assert bench.addresses[1] == "::"
    await bench.sleep(6)
    assert bench.addresses[1] == bench.of(OTHER)


@cocotb.test()
async def prefixes_of_which_no_address_is_made(dut) -> None:
    bench = await (await Bench6(dut).start6(autonomous=1)).up()
    for wrong in (
        (PREFIX, 3600, 1800, {"prefixlen": 63}), (PREFIX, 3600, 1800, {"prefixlen": 65}), (PREFIX, 3600, 1800, {"A": 0}),
        (PREFIX, 3600, 3601), (PREFIX, 59, 10), (PREFIX, 0, 0), ("fe80::", 3600, 1800), ("ff02::", 3600, 1800), ("::", 3600, 1800),
        ("febf:1::", 3600, 1800),
    ):  # fmt: skip
        await bench.offer6(wrong)
        await bench.sleep(1)
        assert bench.watched6 is None and bench.addresses[1] == "::", wrong
    await bench.set6(autonomous=0)
    assert not await bench.router_says(advertisement((PREFIX, 3600, 1800))), "not wanted: it takes no room"


def model(message: bytes) -> bool:
    """Whether the options of an advertisement are well formed to its end (RFC 4861, 6.1.2)."""
    at = 16
    while at < len(message):
        length = message[at + 1] * 8 if at + 1 < len(message) else 0
        if length == 0 or at + length > len(message):
            return False
        at += length
    return True


@cocotb.test()
async def random_advertisements_and_mangled_ones(dut) -> None:
    """Each is heard, or is malformed, as the model says; those that are malformed have no effect."""
    bench = await (await Bench6(dut).start6(autonomous=1)).up()
    heard = malformed = 0
    for _ in range(250):
        count = random.randrange(4)
        message = bytearray(advertisement(*[(PREFIX, 100_000, 1) for _ in range(count)], lifetime=0))
        for _ in range(random.choice([0, 1, 1, 2])):
            message[random.randrange(16, len(message))] = random.choice([0, 1, 2, 3, 4, 5, 255, random.getrandbits(8)])
        if random.random() < 0.3:
            del message[random.randrange(9, len(message)) :]
        if random.random() < 0.2:
            message += random.randbytes(random.choice([1, 4, 8, 16]))
        good = model(message) and len(message) >= 16
        before = bench.addresses, bench.watched6, bench.status.ipv6
        assert await bench.router_says(bytes(message))
        heard, malformed = heard + good, malformed + (not good)
        assert (bench.counts.get("router_heard", 0), bench.counts.get("drop_router", 0)) == (heard, malformed), message.hex()
        if not good:
            assert (bench.addresses, bench.watched6, bench.status.ipv6) == before
    assert heard > 30 and malformed > 30
    await wait_cycles(dut, 1)


def test_ipv6_address() -> None:
    run("address_service", __file__, params={"CLOCK_HZ": CLOCK_HZ}, ports=PORTS)
