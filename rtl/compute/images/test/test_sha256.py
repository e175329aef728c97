# SPDX-License-Identifier: Apache-2.0
"""sha256 and hmac_sha256, compared with the examples of the standards, and with hashlib and hmac of Python."""

from __future__ import annotations

import hashlib
import hmac
import random

import cocotb
from cocotb.triggers import FallingEdge, RisingEdge
from nacelle_tb.bench import Plain, Sink, run
from nacelle_tb.long import LONG
from nacelle_tb.streams import StreamSource, start, wait_cycles

WORD = "images_pkg::sha256_word_t"

# NIST, examples with intermediate values for FIPS 180-4.
EXAMPLES = [
    (b"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
    (b"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
    (
        b"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1",
    ),
]


class Bench:
    def __init__(self, dut, stall: float = 0.0) -> None:
        self.dut = dut
        self.message = StreamSource(dut, "message", WORD, stall=stall, noise=True)
        dut.digest_at.value = 0

    def give(self, message: bytes, whole: bool) -> None:
        """`whole`: a last word of no bytes follows a message of whole words."""
        rest = len(message) % 4
        end = len(message) - rest if rest or whole or not message else len(message) - 4
        for i in range(0, end, 4):
            self.message.send(data=int.from_bytes(message[i : i + 4], "big"), last=0, bytes=0)
        tail = message[end:]
        # What is behind the last byte does not matter.
        word = tail + random.randbytes(4 - len(tail))
        self.message.send(data=int.from_bytes(word, "big"), last=1, bytes=len(tail))

    async def digest(self, message: bytes, whole: bool = False) -> str:
        self.give(message, whole)
        for _ in range(400 * (len(message) // 64 + 8)):
            await RisingEdge(self.dut.clk)
            if int(self.dut.done.value):
                break
        else:
            raise AssertionError("it does not end")
        words = []
        for i in range(8):
            await FallingEdge(self.dut.clk)
            self.dut.digest_at.value = i
            await RisingEdge(self.dut.clk)
            words.append(int(self.dut.digest_word.value))
        return b"".join(word.to_bytes(4, "big") for word in words).hex()


@cocotb.test()
async def examples_of_the_standard(dut) -> None:
    bench = Bench(dut)
    await start(dut)
    for message, digest in EXAMPLES:
        assert await bench.digest(message) == digest


@cocotb.test()
async def every_length_of_three_blocks(dut) -> None:
    bench = Bench(dut, stall=0.2)
    await start(dut)
    for length in range(0, 193, 1 if LONG else 3):
        for size in {length, 55, 56, 63, 64, 119, 120} if length % 48 == 0 else {length}:
            message = random.randbytes(size)
            assert await bench.digest(message, random.random() < 0.5) == hashlib.sha256(message).hexdigest(), f"{size} bytes"


@cocotb.test()
async def a_block_takes_as_long_as_it_says(dut) -> None:
    bench = Bench(dut)
    await start(dut)
    bench.give(bytes(64 * 9), False)
    taken = []
    for cycle in range(9 * 300):
        await RisingEdge(dut.clk)
        if int(dut.message_valid.value) and int(dut.message_ready.value):
            taken.append(cycle)
    waits = [taken[i] - taken[i - 1] for i in range(16, 16 * 9, 16)]
    assert waits == [209] * 8, waits


@cocotb.test()
async def hmac_with_keys(dut) -> None:
    """RFC 4231 has no key of 32 bytes but by padding: its second test, then random ones; a plain hash between is none of it."""
    bench = Bench(dut, stall=0.1)
    dut.key_write.value = dut.keyed.value = 0
    await start(dut)

    async def set_key(key: bytes) -> None:
        for i in range(8):
            await FallingEdge(dut.clk)
            dut.key_write.value, dut.key_at.value = 1, i
            dut.key_word.value = int.from_bytes(key[4 * i : 4 * i + 4], "big")
        await FallingEdge(dut.clk)
        dut.key_write.value = 0

    await set_key(b"Jefe".ljust(32, b"\0"))
    dut.keyed.value = 1
    expected = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
    assert await bench.digest(b"what do ya want for nothing?") == expected
    for i in range(100 if LONG else 12):
        key, message = random.randbytes(32), random.randbytes(random.choice((0, 1, 31, 32, 33, 63, 64, 100)))
        await set_key(key)
        assert await bench.digest(message, i % 2 == 0) == hmac.new(key, message, hashlib.sha256).hexdigest()
        dut.keyed.value = 0
        assert await bench.digest(message) == hashlib.sha256(message).hexdigest()
        dut.keyed.value = 1
    await wait_cycles(dut, 10)


PORTS = {
    "message": Sink(WORD), "done": Plain("output", "logic"), "digest_at": Plain("input", "logic [2:0]"),
    "digest_word": Plain("output", "logic [31:0]"),
}  # fmt: skip
KEY = {
    "key_write": Plain("input", "logic"), "key_at": Plain("input", "logic [2:0]"), "key_word": Plain("input", "logic [31:0]"),
    "keyed": Plain("input", "logic"),
}  # fmt: skip


def test_sha256(monkeypatch) -> None:
    monkeypatch.setenv("COCOTB_TEST_FILTER", "examples|length|block")
    run("sha256", __file__, ports=PORTS)


def test_hmac_sha256(monkeypatch) -> None:
    monkeypatch.setenv("COCOTB_TEST_FILTER", "hmac")
    run("hmac_sha256", __file__, ports=KEY | PORTS)
