# SPDX-License-Identifier: Apache-2.0
"""What an IPbus device with access control must answer, in a few lines: the tests compare each response with it."""

from __future__ import annotations

import functools
from dataclasses import dataclass, field

from nacelle_tb import ipbus
from nacelle_tb.cci import address, blocks

MESSAGE_WORDS = 368
VERSION, ID = 1, 0x4E41434C
PUBLIC, AUTHORISED, LOCAL = range(3)
LOGIN, LOGOUT = address("CCI_LOGIN_0"), address("CCI_LOGOUT")
BUS_BYTES = 1 << 20
RESENDS = 3
IN_USE = 2_000_000  # cycles

Address = tuple[str, int]


@functools.cache
def levels() -> dict[int, dict[str, int]]:
    """Of each register: who may read and write it, by the description of the registers."""
    found: dict[int, dict[str, int]] = {}
    named = {"public": PUBLIC, "authorised": AUTHORISED, "local": LOCAL}
    for block in blocks().values():
        # What is behind the first words of a kernel's block depends on the device.
        for register in block["registers"][: 3 if block["base"] & 0xFFF else None]:
            for number in range(block["count"]):
                for i in range(register["count"] or 1):
                    at = block["base"] + number * block["stride"] + register["offset"] + 4 * i
                    found[at] = {name: named[register[name]] for name in ("read", "write") if name[0] in register["access"]}
    return found


def access(address: int, write: bool) -> int:
    """The level that it takes."""
    return levels().get(address, {}).get("write" if write else "read", AUTHORISED)


@dataclass
class Context:
    """A client."""

    authorised: bool = False
    expected: int = 1
    kept: list[tuple[int, bytes, int]] = field(default_factory=list)  # identifier, response, how often it may be sent again
    last: int = 0


class Refused(Exception):
    """An access fails: with what the information code begins for a read."""


class Model:
    """The device."""

    def __init__(self, registers: dict[int, int], nobody: set[int], silent: set[int], token: list[int],
                 contexts: int = 4, buffers: int = 2) -> None:  # fmt: skip
        self.registers, self.nobody, self.silent, self.token = registers, nobody, silent, token
        self.places, self.buffers = contexts, buffers
        self.contexts: dict[Address, Context] = {}  # the one used last is the last
        self.now = 0
        self.writes: list[tuple[int, int]] = []

    def authorised(self, client: Address) -> bool:
        return client in self.contexts and self.contexts[client].authorised

    def _use(self, client: Address) -> None:
        if client in self.contexts:
            self.contexts[client] = self.contexts.pop(client)
            self.contexts[client].last = self.now

    def _take(self, client: Address, token: bool = False) -> bool:
        """A context for a client that has none."""
        if len(self.contexts) == self.places:
            oldest = next((other for other, context in self.contexts.items() if not context.authorised), None)
            if oldest is None and token:
                oldest = next((other for other, context in self.contexts.items() if self.now - context.last >= IN_USE), None)
            if oldest is None:
                return False
            del self.contexts[oldest]
        self.contexts[client] = Context(last=self.now)
        return True

    # ---- packets ----

    def receive(self, client: Address, packet: bytes) -> bytes | None:
        """The answer to a packet, if there is one."""
        if len(packet) % 4 or not packet:
            return None
        little = not (packet[0] >> 4 == 2 and packet[3] >> 4 == 15)
        words = ipbus.words_of(packet, little)
        header = words[0]
        if header >> 24 != 0x20 or header >> 4 & 15 != 15:
            return None
        ident, kind = header >> 8 & 0xFFFF, header & 15
        if kind == ipbus.STATUS:
            return self._status(client, little) if ident == 0 and len(words) == ipbus.STATUS_WORDS else None
        if kind == ipbus.RESEND:
            return self._resend(client, ident) if ident and len(words) == 1 else None
        if kind != ipbus.CONTROL:
            return None
        if ident:
            context = self.contexts.get(client)
            if ident != (context.expected if context else 1):
                return None
            if not context and not self._take(client):
                return None
            self.contexts[client].expected = ident % 0xFFFF + 1
        self._use(client)
        response = ipbus.packed([header, *self._execute(client, words[1:])], little)
        if ident:
            context = self.contexts[client]
            context.kept = [*context.kept, (ident, response, RESENDS)][-self.buffers :]
        return response

    def _status(self, client: Address, little: bool) -> bytes:
        self._use(client)
        expected = self.contexts[client].expected if client in self.contexts else 1
        words = [ipbus.packet_header(0, ipbus.STATUS), 4 * MESSAGE_WORDS, self.buffers, ipbus.packet_header(expected)]
        return ipbus.packed([*words, *[0] * 12], little)

    def _resend(self, client: Address, ident: int) -> bytes | None:
        context = self.contexts.get(client, Context())
        for i, (kept, response, left) in enumerate(context.kept):
            if kept == ident and (left or context.authorised):
                context.kept[i] = (kept, response, left - (not context.authorised))
                self._use(client)
                return response
        return None

    # ---- transactions ----

    def _execute(self, client: Address, words: list[int]) -> list[int]:
        response: list[int] = []
        while words and len(response) < MESSAGE_WORDS - 1:
            header = words.pop(0)
            kind, count = header >> 4 & 15, header >> 8 & 255
            info, done, data = ipbus.BAD_HEADER, 0, []
            if header >> 28 == 2 and header & 15 == 15 and kind < 8 and words:
                address = words.pop(0)
                needs = {ipbus.RMW_BITS: 2, ipbus.RMW_SUM: 1, ipbus.WRITE: count, ipbus.WRITE_SAME: count,
                         ipbus.WRITE_CONFIG: count}.get(kind, 0)  # fmt: skip
                gives = 0 if kind in (ipbus.WRITE, ipbus.WRITE_SAME, ipbus.WRITE_CONFIG) else count
                rmw = kind in (ipbus.RMW_BITS, ipbus.RMW_SUM)
                if len(words) >= needs and 2 + len(response) + gives <= MESSAGE_WORDS and (not rmw or count == 1):
                    operands, words = words[:needs], words[needs:]
                    info, done, data = self._transaction(client, kind, count, address, operands)
            response += [ipbus.transaction_header(header >> 16 & 0xFFF, done, kind, info), *data]
            if info:
                break
        return response

    def _transaction(self, client: Address, kind: int, count: int, address: int, operands: list[int]) -> tuple[int, int, list[int]]:
        reads = kind in (ipbus.READ, ipbus.READ_SAME, ipbus.READ_CONFIG)
        data: list[int] = []
        if reads and count > 1 and not self.authorised(client):
            return ipbus.READ_ERROR, 0, []
        done = 0
        try:
            for i in range(count):
                at = 4 * (address + (i if kind in (ipbus.READ, ipbus.WRITE) else 0))
                if kind in (ipbus.READ, ipbus.READ_SAME):
                    data.append(self._read(client, at))
                elif kind in (ipbus.WRITE, ipbus.WRITE_SAME):
                    self._write(client, at, operands[i], i, count)
                elif kind == ipbus.READ_CONFIG:
                    config = [ID, VERSION, self.places << 24 | self.buffers << 16 | 4 * MESSAGE_WORDS, int(self.authorised(client))]
                    if address + i >= len(config):
                        raise Refused(ipbus.READ_ERROR)
                    data.append(config[address + i])
                elif kind == ipbus.WRITE_CONFIG:
                    raise Refused(ipbus.WRITE_ERROR)
                else:
                    old = self._read(client, at)
                    new = (old & operands[0]) | operands[1] if kind == ipbus.RMW_BITS else old + operands[0]
                    self._write(client, at, new & 0xFFFFFFFF, 0, 1)
                    data.append(old)
                done += 1
        except Refused as refusal:
            return refusal.args[0], done, data
        return ipbus.SUCCESS, done, data

    def _read(self, client: Address, address: int) -> int:
        if address >= BUS_BYTES:
            raise Refused(ipbus.READ_ERROR)
        level = access(address, False)
        if level == LOCAL or (level == AUTHORISED and not self.authorised(client)) or address in self.nobody:
            raise Refused(ipbus.READ_ERROR)
        if address in self.silent:
            raise Refused(ipbus.READ_TIMEOUT)
        return self.registers.get(address, 0)

    def _write(self, client: Address, address: int, value: int, index: int, count: int) -> None:
        if address >= BUS_BYTES:
            raise Refused(ipbus.WRITE_ERROR)
        if LOGIN <= address < LOGIN + 16:
            return self._login(client, address, value, index, count)
        level = access(address, True)
        if level == LOCAL or (level == AUTHORISED and not self.authorised(client)):
            raise Refused(ipbus.WRITE_ERROR)
        if address == LOGOUT:
            self.contexts[client].authorised = False
        elif address in self.nobody:
            raise Refused(ipbus.WRITE_ERROR)
        elif address in self.silent:
            raise Refused(ipbus.WRITE_TIMEOUT)
        else:
            self.registers[address] = value
            self.writes.append((address, value))
        return None

    def _login(self, client: Address, address: int, value: int, index: int, count: int) -> None:
        if index == 0:
            self._offered: list[int] = []
            if address != LOGIN or count != 4:
                raise Refused(ipbus.WRITE_ERROR)
        self._offered.append(value)
        if index != 3:
            return
        if self._offered != self.token or not any(self.token):
            raise Refused(ipbus.WRITE_ERROR)
        if client not in self.contexts and not self._take(client, token=True):
            raise Refused(ipbus.WRITE_ERROR)
        self.contexts[client].authorised = True
