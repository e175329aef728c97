# SPDX-License-Identifier: Apache-2.0
"""Connections with several contexts in the whole device: calls side by side, cancel, and that others are not concerned."""

from __future__ import annotations

import json
import random

import pytest
from nacelle_tb.peer import ACKNOWLEDGE, INPUT, OUTPUT, Context, Peer, Region
from nacelle_tb.session import Network, SimDevice, configure, outputs
from nacelle_tb.svtypes import constant

INCREMENT, EMPTY, MATMUL = 1, 3, 16
CANCELLED = constant("compute_pkg::RESULT_CANCELLED")
CONTEXTS = constant("device_pkg::CONTEXTS")
NAK_REMOTE_ACCESS = 0x62
HUNG = 0  # what the hostile kernel does: nothing, for ever


def caller(number: int, contexts: int = CONTEXTS) -> Peer:
    """A caller with an address of its own."""
    return Peer(
        ip=f"10.77.0.{9 + number}", mac=f"02:00:00:00:00:{9 + number:02x}", qpn=0x900 + number, comm_id=70 + number,
        tid=80 + number, asks=contexts,
    )  # fmt: skip


def pattern(length: int, seed: int) -> bytearray:
    return bytearray(random.Random(seed).randbytes(length))


def plus_one(data: bytes) -> bytes:
    return bytes(byte + 1 & 0xFF for byte in data)


def set_up(net: Network, context: Context, regions: list[Region]) -> None:
    """Requests regions for a context that has nothing outstanding, as has no other."""
    net.send(context.set_up(regions))
    assert net.next_answer(context.peer) == (context, None)


def test_calls_side_by_side(device: SimDevice) -> None:
    """A call in each context at once, each with its own data; a caller without contexts beside them."""
    peer, plain = caller(0), caller(1, 0)
    net = Network(device, [peer, plain])
    net.connect(peer)
    net.connect(plain)
    assert len(peer.contexts) == CONTEXTS and not plain.contexts
    net.set_up(plain, [Region(INPUT | OUTPUT, pattern(500, 9))])
    data = [pattern(4000 + 333 * context.number, context.number) for context in peer.contexts]
    for context in peer.contexts:
        net.send(context.set_up([Region(INPUT | OUTPUT, bytearray(data[context.number])), Region(OUTPUT, bytearray(700))]))
    assert {net.next_answer(peer)[0].number for _ in peer.contexts} == set(range(CONTEXTS))
    for round_ in range(3):
        for context in peer.contexts:
            net.send(context.call(INCREMENT if (context.number + round_) % 2 else EMPTY))
        assert net.call(plain, INCREMENT) == 0
        answers = [net.next_answer(peer) for _ in peer.contexts]
        assert {context.number for context, _ in answers} == set(range(CONTEXTS)) and {code for _, code in answers} == {0}
        for context in peer.contexts:
            if (context.number + round_) % 2:
                data[context.number] = bytearray(plus_one(data[context.number]))
            assert context.regions[0].data == data[context.number]
    assert outputs(plain) == [bytes(byte + 3 & 0xFF for byte in pattern(500, 9))]
    net.disconnect(peer)
    net.disconnect(plain)


@pytest.mark.parametrize(("asked", "given"), [(1, 1), (2, 2), (3, 2), (4, 4), (200, 4)])
def test_as_many_as_both_have(device512: SimDevice, asked: int, given: int) -> None:
    peer = caller(0, asked)
    net = Network(device512, [peer])
    net.connect(peer)
    assert len(peer.contexts) == min(given, CONTEXTS)
    last = peer.contexts[-1]
    share = constant("device_pkg::MAX_REGIONS") // len(peer.contexts)
    set_up(net, last, [Region(INPUT | OUTPUT, pattern(100, i)) for i in range(share)])
    net.send(last.call(INCREMENT))
    assert net.next_answer(peer) == (last, 0)
    assert [region.data for region in last.regions] == [plus_one(pattern(100, i)) for i in range(share)]


def test_the_description_says_how_many(device512: SimDevice) -> None:
    device512.step(5000)  # until it is published
    base = constant("shell_pkg::DESCRIPTION_BASE") + constant("rpc_pkg::LOAD_BYTES")
    text = device512.dram_read(base, constant("description_pkg::BYTES"))
    assert json.loads(text)["max_contexts"] == CONTEXTS


def test_cancel(device: SimDevice) -> None:
    """A call that runs is ended, at once; one that waits is answered while the socket is busy; the others go on."""
    peer = caller(0)
    net = Network(device, [peer])
    net.connect(peer)
    large, small = 1 << 19, 1000
    for context in peer.contexts:
        set_up(net, context, [Region(INPUT, bytearray(8)), Region(OUTPUT, bytearray(large if context.number == 0 else small))])
    first, second, third = peer.contexts[:3]
    alone = large // (device.info.data_w // 8)  # at least, in cycles
    for context in (first, second, third):
        net.send(context.call(INCREMENT))
    device.step(alone // 4)
    begin = device.stats.cycles
    net.send(second.cancel())
    assert net.next_answer(peer) == (second, CANCELLED) and device.stats.cycles - begin < 1500
    net.send(second.cancel())  # there is nothing to cancel
    net.send(first.cancel())
    assert net.next_answer(peer) == (first, CANCELLED) and device.stats.cycles - begin < 3000
    assert net.next_answer(peer) == (third, 0)
    assert third.regions[1].data == b"\1" * small and first.regions[1].data == bytes(large)  # outputs of a cancelled call stay
    net.send(second.call(INCREMENT))
    assert net.next_answer(peer) == (second, 0)
    assert device.counter("rpc_call_cancelled") == 2
    net.disconnect(peer)


def test_a_context_that_is_released_is_closed_to_its_old_keys(device: SimDevice) -> None:
    """The memory is another caller's then. The other contexts go on until the caller breaks the rule."""
    peer, other = caller(0), caller(1)
    net = Network(device, [peer, other])
    net.connect(peer)
    net.connect(other)
    for context in peer.contexts:
        set_up(net, context, [Region(INPUT | OUTPUT, pattern(5000, context.number))])
    released = peer.contexts[1].regions[0]
    set_up(net, peer.contexts[1], [Region(INPUT, bytearray(20000))])  # does not fit where it was
    set_up(net, other.contexts[0], [Region(INPUT | OUTPUT, pattern(5000, 9))])
    assert other.contexts[0].regions[0].device_addr == released.device_addr
    for context in peer.contexts:
        if context.number != 1:
            net.send(context.call(INCREMENT))
            assert net.next_answer(peer) == (context, 0)
            assert context.regions[0].data == plus_one(pattern(5000, context.number))
    net.send(peer.write_message(released.device_addr, released.device_rkey, b"x" * 5000))
    packet, _ = net.wait(peer, lambda p: p.opcode == ACKNOWLEDGE and p.syndrome >> 5 == 3, "NAK")
    assert packet.syndrome == NAK_REMOTE_ACCESS
    net.send(other.contexts[0].call(INCREMENT))
    assert net.next_answer(other) == (other.contexts[0], 0)
    assert other.contexts[0].regions[0].data == plus_one(pattern(5000, 9))


def test_a_caller_with_all_contexts_delays_another_by_one_call(device512: SimDevice) -> None:
    """As one without contexts would."""
    peer, other = caller(0), caller(1, 0)
    net = Network(device512, [peer, other])
    net.connect(peer)
    net.connect(other)
    size = 1 << 17
    for context in peer.contexts:
        set_up(net, context, [Region(INPUT, bytearray(8)), Region(0, bytearray(size))])
    net.set_up(other, [Region(INPUT, bytearray(64))])

    def cycles() -> int:
        begin = device512.stats.cycles
        assert net.call(other, INCREMENT) == 0
        return device512.stats.cycles - begin

    cycles()
    alone = cycles()
    begin = device512.stats.cycles
    net.send(peer.contexts[0].call(INCREMENT))
    assert net.next_answer(peer) == (peer.contexts[0], 0)
    one = device512.stats.cycles - begin
    for context in peer.contexts:
        net.send(context.call(INCREMENT))
    device512.step(500)
    waited = cycles()
    print(f"alone {alone} cycles, one large call {one}, behind {CONTEXTS} of them {waited}")
    assert one / 2 < waited <= alone + one + 100
    assert {net.next_answer(peer)[0].number for _ in peer.contexts} == set(range(CONTEXTS))


@pytest.mark.parametrize("how", ["unknown context", "flood", "leaves"])
def test_what_a_caller_held_is_free_again(device512: SimDevice, how: str) -> None:
    """It breaks the rules, or leaves, with calls and set-ups on all contexts: its connection ends, and its memory is another's."""
    peer, other = caller(0), caller(1)
    net = Network(device512, [peer, other])
    net.connect(peer)
    for context in peer.contexts:
        set_up(net, context, [Region(INPUT, bytearray(8)), Region(OUTPUT, bytearray(1 << 20))])
    first = peer.contexts[0].regions[0].device_addr
    for context in peer.contexts:
        net.send(context.call(INCREMENT))
    device512.step(1000)
    net.send(peer.contexts[1].cancel())
    if how == "unknown context":
        net.send(peer.write_message(0, 0, b"", CONTEXTS << 24 | 0x80 | INCREMENT))
    elif how == "flood":
        for _ in range(4):
            net.send(peer.send_message(b"?", 1))
    else:
        net.send([peer.dreq()])
    device512.step(60_000)
    net.connect(other)
    set_up(net, other.contexts[0], [Region(INPUT | OUTPUT, pattern(100, 1))])
    assert other.contexts[0].regions[0].device_addr == first
    net.send(other.contexts[0].call(INCREMENT))
    assert net.next_answer(other) == (other.contexts[0], 0)


def test_a_kernel_that_hangs_is_cancelled() -> None:
    """Its caller calls again, and another context's call that waited for it runs."""
    with SimDevice(64, line_rate_mbps=0xFFFF_FFFF, device="test") as device:
        configure(device)
        peer = caller(0)
        net = Network(device, [peer])
        net.connect(peer)
        for context in peer.contexts:
            set_up(net, context, [Region(INPUT | OUTPUT, pattern(100, 1))])
        hostile, early = 2, 1 << 7
        one, two = peer.contexts[:2]
        net.send(one.call(hostile, HUNG))
        net.send(two.call(hostile, early))
        device.step(20_000)
        assert not net.caller(peer).inbox or all(p.opcode == ACKNOWLEDGE for p, _ in net.caller(peer).inbox)
        net.send(one.cancel())
        assert net.next_answer(peer) == (one, CANCELLED)
        assert net.next_answer(peer) == (two, 0)
        net.send(one.call(INCREMENT))
        assert net.next_answer(peer) == (one, 0) and one.regions[0].data == plus_one(pattern(100, 1))
