# SPDX-License-Identifier: Apache-2.0
"""IPbus 2.0 as a client has it: packets, and a client that gets each of its packets executed exactly once over a lossy network.

Nothing here comes from the device: the tests hold it against this.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

READ, WRITE, READ_SAME, WRITE_SAME, RMW_BITS, RMW_SUM, READ_CONFIG, WRITE_CONFIG = range(8)
CONTROL, STATUS, RESEND = range(3)
SUCCESS, BAD_HEADER, READ_ERROR, WRITE_ERROR, READ_TIMEOUT, WRITE_TIMEOUT = 0, 1, 4, 5, 6, 7
REQUEST = 15
STATUS_WORDS = 16


def words_of(packet: bytes, little: bool = False) -> list[int]:
    """The 32-bit words of a packet."""
    return list(struct.unpack(f"{'<' if little else '>'}{len(packet) // 4}I", packet))


def packed(words: Sequence[int], little: bool = False) -> bytes:
    """Words as bytes on the network."""
    return struct.pack(f"{'<' if little else '>'}{len(words)}I", *words)


def packet_header(ident: int, kind: int = CONTROL) -> int:
    """The first word of a packet."""
    return 2 << 28 | ident << 8 | 0xF << 4 | kind


def transaction_header(ident: int, count: int, kind: int, info: int = REQUEST, version: int = 2) -> int:
    """The first word of a transaction."""
    return version << 28 | ident << 16 | count << 8 | kind << 4 | info


def read(address: int, count: int = 1, same: bool = False, ident: int = 0) -> list[int]:
    """A read of so many words; `address` is that of a word, in words."""
    return [transaction_header(ident, count, READ_SAME if same else READ), address]


def write(address: int, data: Sequence[int], same: bool = False, ident: int = 0) -> list[int]:
    """A write."""
    return [transaction_header(ident, len(data), WRITE_SAME if same else WRITE), address, *data]


def rmw_bits(address: int, and_: int, or_: int, ident: int = 0) -> list[int]:
    """Clears and sets bits."""
    return [transaction_header(ident, 1, RMW_BITS), address, and_, or_]


def rmw_sum(address: int, addend: int, ident: int = 0) -> list[int]:
    """Adds."""
    return [transaction_header(ident, 1, RMW_SUM), address, addend & 0xFFFFFFFF]


def read_config(address: int, count: int = 1, ident: int = 0) -> list[int]:
    """A read of the configuration space."""
    return [transaction_header(ident, count, READ_CONFIG), address]


def control(*transactions: Sequence[int], ident: int = 0, little: bool = False) -> bytes:
    """A control packet; identifier 0 is not part of a sequence."""
    return packed([packet_header(ident), *[word for transaction in transactions for word in transaction]], little)


def status() -> bytes:
    """A status request."""
    return packed([packet_header(0, STATUS), *[0] * (STATUS_WORDS - 1)])


def resend(ident: int) -> bytes:
    """A request for the response to an earlier packet."""
    return packed([packet_header(ident, RESEND)])


@dataclass
class Answer:
    """What became of one transaction."""

    ident: int
    kind: int
    info: int
    count: int
    data: list[int] = field(default_factory=list)


def answers(response: bytes, little: bool = False) -> list[Answer]:
    """The transactions of a response."""
    words = words_of(response, little)
    found, at = [], 1
    while at < len(words):
        header = words[at]
        assert header >> 28 == 2, f"{header:#x} is not a transaction header"
        answer = Answer(header >> 16 & 0xFFF, header >> 4 & 15, header & 15, header >> 8 & 255)
        at += 1
        if answer.kind not in (WRITE, WRITE_SAME, WRITE_CONFIG):
            answer.data = words[at : at + answer.count]
            assert len(answer.data) == answer.count
            at += answer.count
        found.append(answer)
    return found


class Failed(Exception):
    """A transaction that the device did not carry out, or a device that does not answer."""


class Client:
    """Reliable mode, one packet at a time. `exchange` sends a packet and returns what has come back since, perhaps nothing."""

    def __init__(self, exchange: Callable[[bytes], Sequence[bytes]], tries: int = 20) -> None:
        self.exchange = exchange
        self.tries = tries
        self.expected = 0
        self.recovered = 0  # packets for which something was lost

    def _ask(self, packet: bytes, wanted: Callable[[bytes], bool]) -> bytes:
        for _ in range(self.tries):
            for response in self.exchange(packet):
                if wanted(response):
                    return response
        raise Failed("the device does not answer")

    def status(self) -> list[int]:
        """The words of a status packet."""
        return words_of(self._ask(status(), lambda r: len(r) == 4 * STATUS_WORDS and r[3] & 15 == STATUS))

    def run(self, *transactions: Sequence[int]) -> list[Answer]:
        """Has the transactions executed, exactly once whatever the network loses."""
        if not self.expected:
            self.expected = self.status()[3] >> 8 & 0xFFFF
        ident, self.expected = self.expected, self.expected % 0xFFFF + 1
        packet = control(*transactions, ident=ident)

        def wanted(response: bytes) -> bool:
            return response[:4] == packet[:4]

        for _ in range(self.tries):
            for response in self.exchange(packet):
                if wanted(response):
                    return answers(response)
            # Lost on the way there, or on the way back?
            self.recovered += 1
            if self.status()[3] >> 8 & 0xFFFF == self.expected:
                return answers(self._ask(resend(ident), wanted))
        raise Failed("the device does not take a packet")

    def get(self, address: int, count: int = 1) -> list[int]:
        """Reads words."""
        return self._good(self.run(read(address, count)))[0].data

    def put(self, address: int, data: Sequence[int], same: bool = False) -> None:
        """Writes words."""
        self._good(self.run(write(address, data, same)))

    @staticmethod
    def _good(found: list[Answer]) -> list[Answer]:
        for answer in found:
            if answer.info != SUCCESS:
                raise Failed(f"information code {answer.info}")
        return found
