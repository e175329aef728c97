# SPDX-License-Identifier: Apache-2.0
"""The driver of a virtio network device in a bench, of cocotb or the simulated device: rings and buffers in memory, frames out and
in."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable

from .svtypes import constant
from .virtio import (
    CTRL_MQ,
    F_CTRL_VQ,
    F_EVENT_IDX,
    F_MQ,
    F_RSS,
    VQ_PAIRS_SET,
    Buffer,
    Heap,
    Memory,
    PciTransport,
    Received,
    Registers,
    Virtqueue,
    header,
    receive,
    receive_buffer,
    scattered,
)


class NetDriver:
    """Set-up by registers, then queues: receive 0, 2 and so on, transmit 1, 3, control behind the last pair. `pairs`: what it uses
    if it wants F_MQ or F_RSS. Rings are at `base` + 0x1000, buffers behind them, up to `bytes`. `wait` lets
    cycles pass."""

    def __init__(
        self, wait: Callable[[int], Awaitable[None]], memory: Memory, registers: Registers, wanted: int, bytes: int, pairs: int = 1,
        size: int = 64, scatter: bool = False, base: int = 0, notify: Callable[[int], None] | None = None,
    ) -> None:  # fmt: skip
        self.wait, self.memory, self.registers, self.wanted, self.pairs = wait, memory, registers, wanted, pairs
        self.size, self.scatter, self._notify = size, scatter, notify
        self.pci = PciTransport(registers, constant("virtio_pkg::NOTIFY_AT"))
        self.rings = Heap(base + 0x1000, 0x40000)
        self.heap = Heap(base + 0x50000, bytes - 0x50000)
        self.queues: list[Virtqueue] = []

    async def initialize(self) -> None:
        """3.1.1."""
        await self.pci.reset()
        assert await self.pci.negotiate(self.wanted)
        await self.set_queues_up()
        await self.pci.driver_ok()
        if self.wanted >> F_MQ & 1:
            assert await self.use_pairs(self.pairs) == 0

    async def set_queues_up(self) -> None:
        """New rings for every queue."""
        event_idx = bool(self.wanted >> F_EVENT_IDX & 1)
        pairs = self.pairs if self.wanted >> F_MQ & 1 or self.wanted >> F_RSS & 1 else 1
        count = 2 * pairs + (self.wanted >> F_CTRL_VQ & 1)
        self.queues = [Virtqueue(self.memory, self.rings, self.size, event_idx, self.scatter) for _ in range(count)]
        for number, queue in enumerate(self.queues):
            await self.pci.enable(number, queue, number)
        if count % 2:
            self.queues[-1].want_interrupt(False)

    def publish(self, number: int) -> None:
        """Makes visible, and notifies by `notify` if the device wants it."""
        if self.queues[number].publish() and self._notify:
            self._notify(number)

    async def show(self, number: int) -> None:
        """The same; without `notify` by the register."""
        if self._notify:
            self.publish(number)
        elif self.queues[number].publish():
            await self.pci.notify(number)

    def transmit(self, frame: bytes, number: int = 1, cuts: int = 0, direct: int | None = None, head: bytes | None = None) -> None:
        """A chain with a frame in `cuts` + 1 buffers."""
        data = (header() if head is None else head) + frame
        at = sorted(random.sample(range(1, len(data)), min(cuts, len(data) - 1)))
        self.queues[number].add(scattered(self.memory, self.heap, data, at), token=frame, direct=direct)

    def post(self, number: int, lengths: list[int], direct: int | None = None) -> None:
        """Buffers to receive into."""
        buffers = receive_buffer(self.heap, lengths)
        self.queues[number].add(buffers, token=buffers, direct=direct)

    async def received(self, number: int = 0, cycles: int = 20_000) -> Received:
        """The next frame of a receive queue, by polling."""
        for _ in range(cycles // 10):
            if (frame := receive(self.queues[number])) is not None:
                return frame
            await self.wait(10)
        raise AssertionError(f"queue {number}: no frame")

    async def reap(self, number: int, count: int = 1, cycles: int = 40_000) -> list[tuple[int, int, object]]:
        """The next used chains of a queue, by polling."""
        taken: list[tuple[int, int, object]] = []
        for _ in range(cycles // 10):
            while len(taken) < count and (one := self.queues[number].take()) is not None:
                taken.append(one)
            if len(taken) == count:
                return taken
            await self.wait(10)
        raise AssertionError(f"queue {number}: {len(taken)} of {count} came back")

    async def command(self, command: bytes, cuts: int = 0, direct: int | None = None, answer: bool = True) -> int | None:
        """A command on the control queue, the last one: its ack, or None if it has no byte for that."""
        number = len(self.queues) - 1
        at = sorted(random.sample(range(1, len(command)), min(cuts, len(command) - 1))) if command else []
        ack = self.heap.take(1)
        self.memory.write(ack, b"\xee")
        buffers = scattered(self.memory, self.heap, command, at) + [Buffer(ack, 1, writable=True)] * answer
        self.queues[number].add(buffers, direct=direct)
        await self.show(number)
        ((_, length, _),) = await self.reap(number)
        assert length == int(answer)
        return self.memory.read(ack, 1)[0] if answer else None

    async def use_pairs(self, pairs: int) -> int | None:
        """VIRTIO_NET_CTRL_MQ_VQ_PAIRS_SET."""
        return await self.command(bytes([CTRL_MQ, VQ_PAIRS_SET]) + pairs.to_bytes(2, "little"), cuts=1)

    async def counter(self, name: str, pair: int = 0) -> int:
        """A counter of a pair of queues."""
        kind = constant(f"virtio_pkg::COUNT_{name}")
        at = constant("virtio_pkg::COUNTERS_AT") + 4 * (kind * constant("virtio_pkg::MAX_PAIRS") + pair)
        return (await self.registers.read(at))[0]

    async def fault(self, number: int) -> int:
        """Why a queue has stopped."""
        return (await self.registers.read(constant("virtio_pkg::FAULT_AT") + 4 * number))[0]
