# SPDX-License-Identifier: Apache-2.0
"""Which queue a frame gets to, as the driver says by VIRTIO_NET_CTRL_MQ_RSS_CONFIG and VQ_PAIRS_SET, with as many pairs as there
can be. That the hash of a packet is right is the packet plane's matter: here it comes with the frame."""

import random
import struct

import cocotb
import pytest
from nacelle_tb.bench import run
from nacelle_tb.planes import network_card
from nacelle_tb.streams import wait_cycles
from nacelle_tb.virtio import CTRL_MQ, F_CTRL_VQ, F_MQ, F_RSS, RSS_CONFIG, VQ_PAIRS_SET, rss_config
from nacelle_tb.widths import WIDTHS
from net_bench import PAIRS, NetBench, features, params

DEVICE_AT = 0x80
PAIRS_AT = 0xC0
TYPES = 0x3F
KEY = bytes(range(1, 41))


class Bench(NetBench):
    """A device with buffers in every queue."""

    async def ready(self) -> "Bench":
        await self.begin()
        await self.fill()
        return self

    async def fill(self) -> None:
        for number in range(0, 2 * PAIRS, 2):
            while len(self.queues[number].chains) < 60:
                self.post(number, [256])
            self.publish(number)
        await wait_cycles(self.dut, 1500)

    async def configure(self, config: bytes) -> int | None:
        return await self.command(bytes([CTRL_MQ, RSS_CONFIG]) + config, cuts=random.choice([0, 1, 4]))

    async def check(self, table: list[int], unclassified: int) -> None:
        """Frames of many hashes, and such without one, each in its queue."""
        for _ in range(50):
            hash = random.choice([None, random.randrange(128)])
            pair = unclassified if hash is None else table[hash % len(table)]
            frame = random.randbytes(60)
            self.rx.give(frame, 2 * random.randrange(PAIRS), hash=hash)
            assert (await self.received(2 * pair)).frame == frame
        await self.fill()


def any_table() -> list[int]:
    return [random.randrange(PAIRS) for _ in range(random.choice([1, 2, 16, 64, 128]))]


def shown(dut) -> tuple[int, int]:
    """Types and key, as packets are to be hashed."""
    value = int(dut.hash.value)
    return value >> 320, value & (1 << 320) - 1


@cocotb.test()
async def the_table_chooses(dut) -> None:
    """Tables of every size, one after another; VQ_PAIRS_SET goes back to the choice that comes with the frame."""
    bench = await Bench(dut, wanted=features(F_RSS)).ready()
    for _ in range(4):
        table, unclassified, key = any_table(), random.randrange(PAIRS), random.randbytes(40)
        types = random.getrandbits(6)
        assert await bench.configure(rss_config(types, table, key, unclassified, random.randint(1, PAIRS))) == 0
        assert shown(dut) == (types, int.from_bytes(key, "big"))
        await bench.check(table, unclassified)
    for pairs in (PAIRS, 1):
        assert await bench.use_pairs(pairs) == 0
        frame = random.randbytes(60)
        bench.rx.give(frame, 2 * PAIRS - 2, hash=5)
        assert (await bench.received(2 * pairs - 2)).frame == frame
    assert await bench.configure(rss_config(TYPES, table, KEY, unclassified)) == 0
    await bench.check(table, unclassified)


@cocotb.test()
async def a_queue_that_is_fixed_stays(dut) -> None:
    """Beside RSS: if its pair is in use, which is what the configuration says of transmit queues; else it is the first."""
    bench = await Bench(dut, wanted=features(F_RSS)).ready()
    for used in (1, PAIRS):
        assert await bench.configure(rss_config(TYPES, [1] * 8, KEY, 1, used)) == 0
        for pair in range(PAIRS):
            frame = random.randbytes(60)
            bench.rx.give(frame, 2 * pair, hash=random.choice([None, 5]), fixed=True)
            assert (await bench.received(2 * pair if pair < used else 0)).frame == frame
    await bench.check([1] * 8, 1)


@cocotb.test()
async def configurations_that_are_wrong_change_nothing(dut) -> None:
    """Types that there are not, a table of no power of two or too long, queues that there are not, another key, other lengths."""
    bench = await Bench(dut, wanted=features(F_RSS)).ready()
    table, unclassified = [random.randrange(PAIRS) for _ in range(128)], PAIRS - 1
    assert await bench.configure(rss_config(TYPES, table, KEY, unclassified)) == 0
    good = [0] * 8
    other = bytes(40)
    whole = rss_config(1, good, other)
    cases = [
        rss_config(0x40, good, other), rss_config(1 << 31, good, other), rss_config(TYPES | 0x100, good, other),
        rss_config(1, [0] * 3, other), rss_config(1, [0] * 129, other), rss_config(1, [0] * 256, other),
        rss_config(1, [0] * 7 + [PAIRS], other), rss_config(1, [0x100] + [0] * 7, other), rss_config(1, [0xFFFF] * 8, other),
        rss_config(1, good, other, unclassified=PAIRS), rss_config(1, good, other, unclassified=0x100),
        rss_config(1, good, other, transmit=0), rss_config(1, good, other, transmit=PAIRS + 1),
        rss_config(1, good, bytes(39)), rss_config(1, good, bytes(41)), rss_config(1, good, b""),
        whole[:-1], whole + b"\0", b"", whole[:4], whole[:8], whole[:6] + struct.pack("<H", 0xFFFF),
        rss_config(1, [0] * 1500, other),
    ]  # fmt: skip
    for config in cases:
        assert await bench.configure(config) == 1, (len(config), config[:12])
    assert await bench.command(bytes([CTRL_MQ, 2]) + whole) == 1  # HASH_CONFIG is not offered
    for pairs in (b"", b"\1", b"\0\0", (PAIRS + 1).to_bytes(2, "little"), b"\1\1", b"\1\0\0"):
        assert await bench.command(bytes([CTRL_MQ, VQ_PAIRS_SET]) + pairs) == 1
    assert shown(dut) == (TYPES, int.from_bytes(KEY, "big"))
    await bench.check(table, unclassified)


@cocotb.test()
async def a_register_says_how_many_pairs_are_used(dut) -> None:
    """For a transport whose control queue is not the device's: numbers that cannot be are ignored."""
    bench = await Bench(dut, wanted=features(F_RSS)).ready()
    assert await bench.configure(rss_config(TYPES, [0], KEY)) == 0
    for pairs, used in ((PAIRS, PAIRS), (0, PAIRS), (PAIRS + 1, PAIRS), (2, 2), (0x102, 2)):
        await bench.registers.write(PAIRS_AT, pairs, 3)
        for pair in range(PAIRS):
            frame = random.randbytes(60)
            bench.rx.give(frame, 2 * pair, hash=5)
            assert (await bench.received(2 * pair if pair < used else 0)).frame == frame
    assert await bench.use_pairs(PAIRS) == 0


@cocotb.test()
async def a_reset_forgets_the_table(dut) -> None:
    """Then the first pair is in use, and no packet is hashed."""
    bench = await Bench(dut, wanted=features(F_RSS)).ready()
    assert await bench.configure(rss_config(TYPES, [PAIRS - 1], KEY, PAIRS - 1)) == 0
    await bench.initialize()
    assert await bench.use_pairs(1) == 0
    await bench.fill()
    assert shown(dut)[0] == 0
    await bench.check([0], 0)


@cocotb.test()
async def it_must_be_negotiated(dut) -> None:
    """RSS without MQ has the control queue behind all pairs, too (5.1.2); without it the command is refused. The
    configuration says what there is."""
    bench = await Bench(dut, wanted=features(F_RSS, without=1 << F_MQ)).ready()
    assert await bench.configure(rss_config(TYPES, [PAIRS - 1], KEY)) == 0
    assert await bench.command(bytes([CTRL_MQ, VQ_PAIRS_SET, 1, 0])) == 1
    assert await bench.pci.load(DEVICE_AT + 17, 1) == 40 and await bench.pci.load(DEVICE_AT + 18, 2) == 128
    assert await bench.pci.load(DEVICE_AT + 20, 4) == TYPES and await bench.pci.load(DEVICE_AT + 8, 2) == PAIRS
    bench.wanted = features()
    await bench.initialize()
    assert await bench.configure(rss_config(TYPES, [PAIRS - 1], KEY)) == 1
    await bench.pci.reset()
    assert not await bench.pci.negotiate(features(F_RSS, without=1 << F_CTRL_VQ | 1 << F_MQ))


@pytest.mark.parametrize("width", WIDTHS[:1])
def test_virtio_net_steering(width: int) -> None:
    run("virtio_net", __file__, params=params(width, 4), ports=network_card(width), random_state=True, env={"NACELLE_PAIRS": "4"})
