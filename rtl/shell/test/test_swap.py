# SPDX-License-Identifier: Apache-2.0
"""A device whose sockets change their kernels while others use it: callers find the new functions, nothing is lost, and no other
socket waits."""

from __future__ import annotations

import json
import random
import struct
from collections.abc import Iterator

import pytest
from nacelle_tb.cci import address
from nacelle_tb.device import LOAD_BYTES, description
from nacelle_tb.long import some
from nacelle_tb.peer import INPUT, OUTPUT, Region
from nacelle_tb.session import Network, SimDevice, configure
from nacelle_tb.swap import (
    ACTIVATE,
    BAD,
    BAD_ARGUMENTS,
    CUT,
    DEVICE,
    EMPTY,
    HOSTILE,
    INCREMENT,
    MATMUL,
    PRODUCT,
    ROLL_BACK,
    TIMEOUT,
    UNAVAILABLE,
    UNKNOWN,
    Load,
    Socket,
    callers,
    where_described,
)

READS, WRITES, LONG, WITHHOLDS, DEAF, POSTS, OUTSIDE, EARLY = (1 << i for i in range(8))
LIMIT_MS_REGISTER = address("KERNEL_TIMEOUT_MS")
LOAD_CYCLES = 2500  # socket_images: the model of a bitstream's time
FIRST = [0] * len(DEVICE.sockets)  # the image that each socket holds after reset
CHANGED = [int(i == PRODUCT) for i in range(len(DEVICE.sockets))]


@pytest.fixture
def device() -> Iterator[SimDevice]:
    with SimDevice(64, line_rate_mbps=0xFFFF_FFFF, device="test") as sim:
        configure(sim)
        yield sim


def functions(text: bytes) -> set[tuple[int, str, int]]:
    return {(f["code"], f["kernel"], f["sockets"]) for f in json.loads(text)["functions"]}


def test_a_caller_finds_the_new_functions(device: SimDevice) -> None:
    """In the function table and in the description, on a connection that was there before; and the old ones again."""
    (peer,) = peers = callers(1)
    net = Network(device, peers)
    socket = Socket(device, BAD)
    where = where_described(net, peer)
    net.set_up(peer, [Region(INPUT | OUTPUT, bytearray(b"xyz"))])

    def check(held: list[int | None], changes: int) -> None:
        net.step(6000)
        text = net.read(peer, *where)
        assert text == description(DEVICE, held)
        record = net.read(peer, where[0] - LOAD_BYTES, where[1], LOAD_BYTES)
        assert struct.unpack_from(">I", record, 12)[0] == changes
        there = {code for code, _, _ in functions(text)}
        for code in (INCREMENT, HOSTILE, EMPTY, MATMUL, 100):
            user = EARLY if code == HOSTILE else 0
            assert net.call(peer, code, user) == (UNKNOWN if code not in there else BAD_ARGUMENTS if code == MATMUL else 0)

    check(FIRST, 0)
    product = Socket(device, PRODUCT)
    assert product.activate(net, 1) == "OK"
    assert product.read("NAME") == int.from_bytes(b"incr", "little")
    check(CHANGED, 2)
    assert socket.activate(net, 1) == "NO_IDENTITY"
    check(CHANGED, 2)
    product.write("IMAGE_COMMAND", ROLL_BACK)
    assert product.finish(net) == "OK"
    check(FIRST, 4)


def test_a_reader_notices_that_the_description_changes(device: SimDevice) -> None:
    """It is never half of one and half of another without an odd count, or another count behind it."""
    (peer,) = peers = callers(1)
    net = Network(device, peers)
    addr, key, length = where_described(net, peer)
    product = Socket(device, PRODUCT)
    texts = [description(DEVICE, held) for held in (FIRST, CHANGED)]
    seen, odd = set(), 0

    def count() -> int:
        return struct.unpack_from(">I", net.read(peer, addr - LOAD_BYTES, key, LOAD_BYTES), 12)[0]

    for image in (1, 0, 1, 0):
        product.begin(image)
        for _ in range(40):
            before = count()
            text = net.read(peer, addr, key, length)
            if before % 2 or count() != before:
                odd += 1
                continue
            seen.add(texts.index(text))
    assert seen == {0, 1}
    print(f"{odd} readings were of a text that changed")


def test_no_other_socket_waits_for_it(device: SimDevice) -> None:
    """The beats of a socket under load are counted with and without a swap beside it: the same, but for the memory beats that the
    description takes when it is written again."""
    load = Load(device)
    bad = Socket(device, BAD)
    load.calls(2)
    alone, moved = load.calls(4)
    # A swap that changes no function, so that nothing is written to memory.
    bad.begin(1)
    beside, moved_beside = load.calls(4)
    assert bad.finish(load.net) == "NO_IDENTITY"
    print(f"cycles of a job in socket 0: {alone} alone, {beside} beside a swap; frames and bytes {moved}, {moved_beside}")
    assert moved_beside == moved
    assert beside == alone


def test_calls_beside_a_swap_that_changes_functions(device: SimDevice) -> None:
    load = Load(device)
    product = Socket(device, PRODUCT)
    load.calls(2)
    alone, moved = load.calls(4)
    for image in (1, 0):
        product.begin(image)
        beside, moved_beside = load.calls(4)
        assert product.finish(load.net) == "OK"
        print(f"cycles of a job in socket 0: {alone} alone, {beside} while the description changes; {moved}, {moved_beside}")
        assert moved_beside[:3] == moved[:3], "no frame and no read more"
        text = len(description(DEVICE)) + 3 * LOAD_BYTES + 8 * LOAD_BYTES
        assert sum(beside) - sum(alone) <= text // 8 + 32, "at most a beat for each beat of the description"


def test_calls_during_a_swap_wait(device: SimDevice) -> None:
    """One for a function that both kernels have is done by the new one; one for a function that is gone is to be called again."""
    first, second, third = peers = callers(3)
    net = Network(device, peers)
    for peer in peers:
        net.connect(peer)
        net.set_up(peer, [Region(INPUT | OUTPUT, bytearray(random.Random(2).randbytes(64)))])
    product = Socket(device, PRODUCT)
    product.begin(1)
    while not product.state == 6:
        device.step(20)
    begin = device.stats.cycles
    net.send(first.call(MATMUL))  # it has only socket 1
    net.send(second.call(INCREMENT))  # it has socket 0, too
    assert net.answer(second)[0] == 0
    assert product.state and device.stats.cycles - begin < LOAD_CYCLES, "it did not wait"
    assert net.answer(first)[0] == UNAVAILABLE
    assert product.finish(net) == "OK"
    assert net.call(first, MATMUL) == UNKNOWN
    # Reloading: what waits is done, by the kernel that comes.
    bad = Socket(device, BAD)
    bad.begin(0)
    while not bad.state == 6:
        device.step(20)
    net.send(third.call(HOSTILE, EARLY))
    assert net.answer(third)[0] == 0
    assert not bad.state


@pytest.mark.parametrize("mode", some([0, POSTS | DEAF, READS | WRITES | LONG, WRITES | DEAF], 2))
@pytest.mark.parametrize("how", ["limit", "cut", "leaving"])
def test_a_swap_waits_for_a_kernel_that_hangs(device: SimDevice, mode: int, how: str) -> None:
    """It ends at its limit, or when it is cut off by who changes the kernel, or when its caller leaves."""
    bad_caller, good = peers = callers(2)
    net = Network(device, peers)
    for peer in peers:
        net.connect(peer)
        net.set_up(peer, [Region(INPUT | OUTPUT, bytearray(8192))])
    bad = Socket(device, BAD)
    if how == "limit":
        device.write(LIMIT_MS_REGISTER, 1)
    net.send(bad_caller.call(HOSTILE, 7 << 8 | mode))
    while not bad.read("STATUS") & 1:
        device.step(100)
    bad.begin(0)
    device.step(2000)
    assert bad.state == 2, "it waits"
    net.send(good.call(HOSTILE, EARLY))
    if how == "cut":
        bad.write("IMAGE_COMMAND", CUT)
    if how == "leaving":
        net.disconnect(bad_caller)
    else:
        assert net.answer(bad_caller)[0] == (TIMEOUT if how == "limit" else UNAVAILABLE)
    assert bad.finish(net) == "OK"
    assert net.answer(good)[0] == 0
    assert net.call(good, INCREMENT) == 0


def test_what_is_wrong_is_refused(device: SimDevice) -> None:
    net = Network(device, callers(1))
    product = Socket(device, PRODUCT)
    product.write("IMAGE_COMMAND", ROLL_BACK)
    assert product.finish(net) == "NO_FORMER"
    product.write("IMAGE_SELECT", 1)
    product.write("IMAGE_COMMAND", ACTIVATE)
    assert product.finish(net) == "BAD_DIGEST"
    product.write("IMAGE_SELECT", 2)
    product.write("IMAGE_COMMAND", ACTIVATE)
    assert product.finish(net) == "BAD_IMAGE"
    assert product.active == 0
    product.begin(1)
    with pytest.raises(OSError):
        product.write("IMAGE_COMMAND", ROLL_BACK)
    assert product.finish(net) == "OK" and product.active == 1
    one = Socket(device, 0)
    assert (one.read("IMAGES"), one.read("IMAGE_STATE")) == (1, 1 << 7)
    for command in (ACTIVATE, ROLL_BACK, CUT):
        with pytest.raises(OSError):
            one.write("IMAGE_COMMAND", command)
