# SPDX-License-Identifier: Apache-2.0
"""A peer's connection manager, both sides, as small as can be; and a network that loses, repeats and reorders."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import cocotb
from cm_messages import DREP, DREQ, MRA, PORT, REJ, REP, REQ, RTU, Caller, Message
from cocotb.handle import SimHandleBase
from nacelle_tb import cm
from nacelle_tb.streams import wait_cycles

CALLING, ANSWERED, OPEN, CLOSING, REFUSED, GONE = "calling", "answered", "open", "closing", "refused", "gone"


class Lossy:
    """Carries what happens at the far end there: late, twice, or not at all; when it is `good`, only late."""

    def __init__(self, dut: SimHandleBase, rng: random.Random) -> None:
        self.dut, self.rng, self.good = dut, rng, False

    def carry(self, arrival: Callable[[], None]) -> None:
        copies = 1 if self.good else self.rng.choices([0, 1, 2], [2, 7, 1])[0]
        for _ in range(copies):
            cocotb.start_soon(self._later(arrival))

    async def _later(self, arrival: Callable[[], None]) -> None:
        await wait_cycles(self.dut, self.rng.choice([1, 1, 40, self.rng.randrange(1, 2500)]))
        arrival()


@dataclass
class Link:
    """One connection of the peer. `theirs` is the device's REQ or REP."""

    caller: Caller
    active: bool
    state: str
    theirs: Message | None = None
    last: bytes = b""  # what is repeated


class PeerCm:
    """A host. Every connection has its own id, QPN, PSN and private data, never used again."""

    def __init__(self, ip: str, mac: str, first: int, rng: random.Random) -> None:
        self.ip, self.mac, self.next, self.rng = ip, mac, first, rng
        self.words = rng.randbytes(40)  # expected in the device's REQs
        self.links: dict[int, Link] = {}  # by our id
        self.heard: dict[int, Link] = {}  # by the id of the device's REQ

    def caller(self) -> Caller:
        """Builder of a new connection's messages."""
        self.next += 1
        rng = self.rng
        return Caller(
            ip=self.ip, mac=self.mac, local_id=self.next, tid=rng.getrandbits(64), qpn=self.next, psn=rng.getrandbits(24),
            port=PORT + rng.randrange(2), resources=rng.choice([0, 1, 7, 16, 255]), depth=rng.choice([0, 1, 5, 8, 128]),
            cm_timeout=10, response_timeout=11, private=rng.randbytes(rng.randrange(49)),
            extensions=rng.choice([b"", cm.extensions(1)]),
        )  # fmt: skip

    def act(self) -> Iterator[bytes]:
        """Something that a host may do at any time."""
        choice = self.rng.random()
        pending = [link for link in self.links.values() if link.state in (CALLING, ANSWERED, CLOSING)]
        living = [link for link in self.links.values() if link.state == OPEN]
        if choice < 0.25:
            caller = self.caller()
            self.links[caller.local_id] = link = Link(caller, True, CALLING, last=caller.req())
            yield link.last
        elif choice < 0.6 and pending:
            yield self.rng.choice(pending).last
        elif choice < 0.75 and living:
            yield self._close(self.rng.choice(living))
        elif choice < 0.8 and pending:
            link = self.rng.choice(pending)
            if link.state == CALLING:  # its timeout ends
                link.state = GONE
                yield link.caller.frame(REJ, cm.rej(link.caller.local_id, 0, cm.ABOUT_OTHER, 4, link.caller.guid.ljust(8, b"\0")))

    def repeat_all(self) -> list[bytes]:
        """All that waits for an answer, again."""
        return [link.last for link in self.links.values() if link.state in (CALLING, ANSWERED, CLOSING)]

    def _close(self, link: Link) -> bytes:
        link.state = CLOSING
        link.last = link.caller.dreq(link.theirs)
        return link.last

    def take(self, message: Message) -> Iterator[bytes]:
        """A message of the device; yields the answers."""
        rng = self.rng
        link = self.links.get(message.remote_id)
        ours = link is not None and link.theirs is not None and link.theirs.local_id == message.local_id
        if message.attr == REQ:
            known = self.heard.get(message.local_id)
            if known is not None:  # again
                assert known.theirs.mad == message.mad
                if known.state in (ANSWERED, OPEN, REFUSED):
                    yield known.last
                return
            assert message.private == self.words.ljust(48, b"\0")
            caller = self.caller()
            self.heard[message.local_id] = link = Link(caller, False, ANSWERED, message)
            self.links[caller.local_id] = link
            if rng.random() < 0.15:
                link.state, link.last = REFUSED, caller.rej(message, rng.choice([8, 28]), b"no")
            else:
                link.last = caller.rep(
                    message, resources=caller.resources, depth=caller.depth, private=caller.private, extensions=caller.extensions
                )
                if rng.random() < 0.2:
                    yield caller.mra(message, rng.randrange(8, 16))
            yield link.last
        elif message.attr == REP:
            if link is not None and link.active and link.state == CALLING:
                link.state, link.theirs = OPEN, message
                yield link.caller.rtu(message)
            elif ours and link.state == OPEN:
                assert link.theirs.mad == message.mad
                yield link.caller.rtu(message)
            elif link is None or link.state == GONE or not ours:
                yield self._frame(message, REJ, cm.rej(message.remote_id, message.local_id, cm.ABOUT_REP, 6))
        elif message.attr == RTU:
            if ours and link.state == ANSWERED:
                link.state = OPEN
        elif message.attr == REJ:
            if link is not None and (ours or (link.state == CALLING and message.about == cm.ABOUT_REQ)):
                link.state = GONE
        elif message.attr == DREQ:
            if ours and link.state in (ANSWERED, OPEN, CLOSING):
                assert message.qpn == link.caller.qpn
                link.state = GONE
            yield self._frame(message, DREP, cm.ids(message.remote_id, message.local_id))
        elif message.attr == DREP:
            if ours and link.state == CLOSING:
                link.state = GONE
        else:
            assert message.attr == MRA and message.about == cm.ABOUT_REQ and link is not None

    def _frame(self, to: Message, attr: int, data: bytes) -> bytes:
        return Caller(ip=self.ip, mac=self.mac).frame(attr, data, to.tid)
