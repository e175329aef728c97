# SPDX-License-Identifier: Apache-2.0
"""image_store: what is verified gets a record, anything else is refused with its reason, and nobody changes what was verified."""

from __future__ import annotations

import random

import cocotb
import pytest
from cocotb.triggers import FallingEdge
from nacelle_tb.bench import AxilSlave, AxiMaster, Plain, Several, Sink, Source, Type, run
from nacelle_tb.cci import offset
from nacelle_tb.image import BEGIN, ERRORS, FORGET, HEAD_BYTES, UPLOAD, VERIFY, VERIFYING, Image, sealed, simulated, words
from nacelle_tb.long import alternately, some
from nacelle_tb.memory import DECERR, AxiMemory
from nacelle_tb.registers import AxilDriver
from nacelle_tb.streams import StreamSink, StreamSource, start, wait_cycles
from nacelle_tb.widths import WIDTHS, at_width

SLOTS, MAX_SLOTS, SLOT_BYTES, SOCKETS = 2, 4, 4096, 3
TAKES = 0b110  # socket 0 has one image
BUILD, BASE, SIZE = 0x1122_3344_5566_7788, 0x8000, 1 << 16
KEY = bytes(range(7, 39))
AT = {name: offset(f"images.{name}") for name in ("SELECT", "COMMAND", "STATE", "PLACE", "DATA", "SLOT", "SLOTS", "SLOT_BYTES")}
AT_KEY = offset("images.KEY")
RECORD_WORDS = 27


def image(socket: int = 1, build: int = BUILD, padding: int = 40) -> Image:
    identity = tuple(random.getrandbits(32) for _ in range(16))
    return Image(build, socket, identity, simulated("increment", padding))


class Bench:
    def __init__(self, dut, stall: float = 0.0, latency: int | tuple[int, int] = (1, 40)) -> None:
        self.dut = dut
        self.bus = AxilDriver(dut, "bus")
        self.memory = AxiMemory(dut, "mem", SIZE, latency=latency, stall=stall, noise=True)
        self.memory.write(0, random.randbytes(SIZE))
        self.fetch = [StreamSource(dut, f"fetch{i}", "images_pkg::store_word_t", stall) for i in range(SOCKETS)]
        self.fetched = [StreamSink(dut, f"fetched{i}", "images_pkg::store_answer_t", stall) for i in range(SOCKETS)]
        dut.used.value = dut.record_slot.value = dut.record_at.value = 0

    async def start(self, key: bytes | None = KEY) -> None:
        await start(self.dut)
        if key is not None:
            await self.provision(key)

    async def provision(self, key: bytes) -> None:
        for i, word in enumerate(words(key)):
            assert await self.bus.write(AT_KEY + 4 * i, word) == 0

    async def read(self, name: str) -> int:
        value, answer = await self.bus.read(AT[name])
        assert answer == 0
        return value

    async def write(self, name: str, value: int) -> None:
        assert await self.bus.write(AT[name], value) == 0

    async def command(self, command: int, slot: int | None = None) -> str:
        if slot is not None:
            await self.write("SELECT", slot)
        await self.write("COMMAND", command)
        return await self.finished()

    async def finished(self, cycles: int = 200_000) -> str:
        for _ in range(cycles // 8):
            state = await self.read("STATE")
            if state & 3 != VERIFYING:
                return ERRORS[state >> 8 & 255]
        raise AssertionError("it does not end")

    async def place(self, word: int = 0, upload: int | None = None) -> int:
        number = (await self.read("STATE")) >> 16 & 255 if upload is None else upload
        return await self.bus.write(AT["PLACE"], number << 24 | word)

    async def give(self, data: bytes) -> None:
        for word in words(data):
            await self.write("DATA", word)

    async def upload(self, slot: int, data: bytes) -> str:
        if (error := await self.command(BEGIN, slot)) != "OK":
            return error
        assert await self.place() == 0
        await self.give(data)
        return await self.command(VERIFY)

    async def record(self, slot: int, socket: int) -> list[int]:
        found = []
        for word in range(RECORD_WORDS):
            await FallingEdge(self.dut.clk)
            self.dut.record_slot.value = slot << 2 * socket
            self.dut.record_at.value = word << 5 * socket
            await wait_cycles(self.dut, 2)
            found.append(int(self.dut.record_word.value) >> 32 * socket & 0xFFFFFFFF)
        return found

    def verified(self) -> set[tuple[int, int]]:
        """Sockets and slots."""
        value = int(self.dut.verified.value)
        return {(i, k) for i in range(SOCKETS) for k in range(SLOTS) if value >> (i * MAX_SLOTS + k) & 1}

    async def use(self, socket: int | None, slot: int = 0) -> None:
        await FallingEdge(self.dut.clk)
        self.dut.used.value = 0 if socket is None else 1 << socket * MAX_SLOTS + slot


@cocotb.test()
@cocotb.parametrize(stall=alternately([0.0, 0.3]))
async def what_is_right_gets_its_record(dut, stall: float) -> None:
    bench = Bench(dut, stall)
    await bench.start()
    assert (await bench.read("SLOTS"), await bench.read("SLOT_BYTES")) == (SLOTS, SLOT_BYTES)
    images = [image(1, padding=0), image(2, padding=4 * 70)]
    outside = bytes(bench.memory.content)
    for slot, one in enumerate(images):
        assert await bench.upload(slot, one.file(KEY)) == "OK"
        record = await bench.record(slot, one.socket)
        assert record[:16] == list(one.identity) and record[16:24] == words(one.digest)
        assert record[24:] == [BASE + slot * SLOT_BYTES + HEAD_BYTES, 0, len(one.payload)]
        assert await bench.read("SLOT") == 1 << 8 | one.socket
    assert bench.verified() == {(1, 0), (2, 1)}
    # Nothing was written beside the places.
    for addr in range(0, SIZE, 64):
        if not BASE <= addr < BASE + SLOTS * SLOT_BYTES:
            assert bench.memory.read(addr, 64) == outside[addr : addr + 64]
    # The sockets read it, and no other memory: the number of the word wraps.
    for slot, one in enumerate(images):
        for i, word in enumerate(words(one.payload)):
            at = (slot * SLOT_BYTES + HEAD_BYTES) // 4 + i
            bench.fetch[one.socket].send(at + random.choice((0, SLOTS * SLOT_BYTES // 4)))
            answer = await bench.fetched[one.socket].recv()
            assert (answer.error, answer.data) == (0, word)
    assert await bench.command(FORGET, 0) == "OK" and bench.verified() == {(2, 1)}
    await wait_cycles(dut, 4)
    assert int(dut.idle.value)


@cocotb.test()
async def any_flipped_bit_is_refused(dut) -> None:
    """Each byte of the file once, a random bit of it: no record, and the one that was there before the upload is gone."""
    bench = Bench(dut, latency=1)
    await bench.start()
    good = image(1, padding=4).file(KEY)
    assert await bench.upload(0, good) == "OK"
    assert await bench.command(BEGIN, 0) == "OK" and await bench.place() == 0
    await bench.give(good)
    reasons: dict[str, int] = {}
    for byte in range(len(good)):
        bad = bytearray(good)
        bad[byte] ^= 1 << random.randrange(8)
        # Only what changes is written again: the upload is verified anew each time.
        if byte:
            assert await bench.command(BEGIN, 0) == "OK"
        first = max(byte // 4 - 1, 0)
        assert await bench.place(first) == 0
        for word in words(bytes(bad))[first : byte // 4 + 1]:
            await bench.write("DATA", word)
        assert await bench.place(len(good) // 4 - 1) == 0
        await bench.write("DATA", words(bytes(bad))[-1])
        error = await bench.command(VERIFY)
        assert error != "OK" and not bench.verified(), f"byte {byte}"
        reasons[error] = reasons.get(error, 0) + 1
    assert reasons["BAD_HEADER"] == 16 and reasons["BAD_BUILD"] == 8 and reasons["BAD_SOCKET"] == 4 and reasons["BAD_LENGTH"] == 4
    assert reasons["BAD_SIGNATURE"] == 32
    assert set(reasons) == {"BAD_HEADER", "BAD_BUILD", "BAD_SOCKET", "BAD_LENGTH", "BAD_SIGNATURE", "BAD_DIGEST"}
    assert await bench.upload(0, good) == "OK", "and the right one is taken"


@cocotb.test()
async def what_is_signed_but_not_for_this_device_is_refused(dut) -> None:
    """By who has the key, or by a replay: of another build, of a socket that takes none, with another key, too short, too long."""
    bench = Bench(dut, latency=1)
    await bench.start(None)
    good = image(1)
    assert await bench.upload(0, good.file(KEY)) == "NO_KEY"
    for i in range(7):
        assert await bench.bus.write(AT_KEY + 4 * i, 5) == 0
        assert await bench.command(BEGIN, 0) == "NO_KEY"
    await bench.provision(bytes(32))
    assert await bench.command(BEGIN, 0) == "NO_KEY", "a key of zeros is none"
    await bench.provision(KEY)
    wrong = [
        (image(1, build=BUILD ^ 1 << random.randrange(64)).file(KEY), "BAD_BUILD"),
        (image(0).file(KEY), "BAD_SOCKET"),
        (image(SOCKETS).file(KEY), "BAD_SOCKET"),
        (image(257).file(KEY), "BAD_SOCKET"),
        (good.file(bytes(reversed(KEY))), "BAD_SIGNATURE"),
        (good.signed + good.digest + good.digest, "BAD_SIGNATURE"),
        (good.signed + bytes(32) + good.file(KEY)[-32:], "BAD_DIGEST"),
        (good.file(KEY)[:-4], "BAD_LENGTH"),
        (good.file(KEY) + bytes(4), "BAD_LENGTH"),
        (b"", "BAD_LENGTH"),
        (good.file(KEY)[:160], "BAD_LENGTH"),
        (sealed(good.signed[:HEAD_BYTES], KEY), "BAD_LENGTH"),
        (sealed(b"MGIN" + good.signed[4:], KEY), "BAD_HEADER"),
        (sealed(good.signed[:4] + b"\2" + good.signed[5:], KEY), "BAD_HEADER"),
    ]
    for data, error in wrong:
        assert await bench.upload(0, data) == error
        assert not bench.verified()
        assert await bench.command(VERIFY) == "NO_UPLOAD", "it is over"
    assert await bench.upload(0, good.file(KEY)) == "OK"
    # Another key: what was verified with the former one is no more. It cannot be read.
    await bench.provision(bytes(reversed(KEY)))
    assert not bench.verified()
    assert await bench.upload(0, good.file(KEY)) == "BAD_SIGNATURE"
    for i in range(8):
        assert (await bench.bus.read(AT_KEY + 4 * i))[1] == DECERR
    for command in (0, 4, 0x101):
        assert await bench.command(command) == "BAD_COMMAND"
    for slot in (SLOTS, 255):
        assert await bench.command(BEGIN, slot) == "BAD_SLOT" and await bench.command(FORGET, slot) == "BAD_SLOT"


@cocotb.test()
async def an_upload_that_stops_leaves_no_record(dut) -> None:
    """Two clients, one that goes away, and one that repeats itself."""
    bench = Bench(dut, latency=1)
    await bench.start()
    good = image(1).file(KEY)
    assert await bench.upload(0, good) == "OK"
    assert await bench.command(BEGIN, 0) == "OK"
    assert not bench.verified(), "the record goes before the first word comes"
    assert await bench.bus.write(AT["DATA"], 1) == DECERR, "no place was named"
    first = (await bench.read("STATE")) >> 16 & 255
    assert await bench.place() == 0
    await bench.give(good[:64])
    # The other client.
    assert await bench.command(BEGIN, 1) == "OK"
    assert await bench.bus.write(AT["DATA"], 1) == DECERR
    assert await bench.place(16, upload=first) == DECERR
    assert await bench.place(SLOT_BYTES // 4) == DECERR, "behind the end"
    assert await bench.place() == 0
    await bench.give(good[:40])
    assert await bench.place(5) == 0, "it did not hear an answer"
    await bench.give(good[20:])
    assert await bench.place(16, upload=first) == DECERR
    assert await bench.command(VERIFY) == "OK"
    assert bench.verified() == {(1, 1)}
    # Nothing more comes in, with whatever number.
    for number in ((await bench.read("STATE")) >> 16 & 255, first):
        assert await bench.place(0, upload=number) == DECERR
    assert await bench.bus.write(AT["DATA"], 1) == DECERR
    assert bench.memory.read(BASE + SLOT_BYTES, len(good)) == good
    # A word behind the last one.
    assert await bench.command(BEGIN, 0) == "OK" and await bench.place(SLOT_BYTES // 4 - 1) == 0
    await bench.write("DATA", 1)
    assert await bench.bus.write(AT["DATA"], 1) == DECERR
    assert await bench.command(VERIFY) == "BAD_LENGTH"
    assert bench.memory.read(BASE + SLOT_BYTES, len(good)) == good


@cocotb.test()
async def what_a_socket_uses_stays(dut) -> None:
    bench = Bench(dut, latency=1)
    await bench.start()
    good = image(1).file(KEY)
    assert await bench.upload(0, good) == "OK"
    for socket in (1, 2):
        await bench.use(socket, 0)
        assert await bench.command(BEGIN, 0) == "IN_USE" and await bench.command(FORGET, 0) == "IN_USE"
        assert bench.verified() == {(1, 0)}
        assert (await bench.read("SLOT")) >> 8 == 3
        assert await bench.bus.write(AT["DATA"], 1) == DECERR
    assert await bench.upload(1, good) == "OK", "the other place is free"
    await bench.use(None)
    assert await bench.command(BEGIN, 0) == "OK"
    assert (await bench.read("STATE")) & 3 == UPLOAD


@cocotb.test()
async def while_it_is_verified_nothing_is_taken(dut) -> None:
    bench = Bench(dut, latency=60)
    await bench.start()
    good = image(1, padding=600).file(KEY)
    assert await bench.command(BEGIN, 0) == "OK" and await bench.place() == 0
    await bench.give(good)
    await bench.write("COMMAND", VERIFY)
    tried = 0
    while (await bench.read("STATE")) & 3 == VERIFYING:
        at = random.choice([AT["COMMAND"], AT["SELECT"], AT["PLACE"], AT["DATA"], AT_KEY])
        if (await bench.read("STATE")) & 3 == VERIFYING:
            answer = await bench.bus.write(at, BEGIN)
            if (await bench.read("STATE")) & 3 == VERIFYING:
                assert answer == DECERR
                tried += 1
    assert tried > 10 and bench.verified() == {(1, 0)}


@cocotb.test()
async def memory_that_fails(dut) -> None:
    """A word that it does not take, or does not give: no record, and the next upload is as any."""
    bench = Bench(dut, latency=1)
    await bench.start()
    good = image(1).file(KEY)
    bench.memory.errors = [(BASE + 100, BASE + 103)]
    assert await bench.upload(0, good) == "MEMORY" and not bench.verified()
    for at in (0, 96, len(good) - 64, len(good) - 4):
        bench.memory.errors = []
        assert await bench.command(BEGIN, 0) == "OK" and await bench.place() == 0
        await bench.give(good)
        bench.memory.errors = [(BASE + at, BASE + at + 3)]
        assert await bench.command(VERIFY) == "MEMORY" and not bench.verified(), f"byte {at}"
    bench.memory.errors = []
    assert await bench.upload(0, good) == "OK"


@pytest.mark.parametrize("data_w", some(WIDTHS))
def test_image_store(data_w: int) -> None:
    ports = {
        "bus": AxilSlave(12),
        "used": Plain("input", f"logic [{SOCKETS * MAX_SLOTS - 1}:0]"),
        "verified": Plain("output", f"logic [{SOCKETS * MAX_SLOTS - 1}:0]"),
        "record_slot": Plain("input", f"images_pkg::image_slot_t [{SOCKETS - 1}:0]"),
        "record_at": Plain("input", f"compute_pkg::record_word_t [{SOCKETS - 1}:0]"),
        "record_word": Plain("output", f"logic [{SOCKETS - 1}:0][31:0]"),
        "fetch": Several(Sink("images_pkg::store_word_t"), SOCKETS),
        "fetched": Several(Source("images_pkg::store_answer_t"), SOCKETS),
        "mem": AxiMaster(data_w), "idle": Plain("output", "logic"),
    }  # fmt: skip
    params = {
        "SLOTS": SLOTS, "SLOT_BYTES": SLOT_BYTES, "SOCKETS": SOCKETS, "TAKES": TAKES, "BUILD": Type(f"64'h{BUILD:x}"),
        "BASE": BASE, "DATA_W": data_w,
    }  # fmt: skip
    run("image_store", __file__, params=params, ports=ports, env=at_width(data_w, "what_is_right|memory_that_fails"))
