# SPDX-License-Identifier: Apache-2.0
"""A virtio network device with its driver, memory and network, for the tests of this folder."""

from __future__ import annotations

import os
import random
from typing import Any

from nacelle_tb.memory import AxiMemory
from nacelle_tb.registers import AxilDriver
from nacelle_tb.streams import AxisSink as Sent
from nacelle_tb.streams import AxisSource as Network
from nacelle_tb.streams import StreamSink, StreamSource, start, wait_cycles
from nacelle_tb.svtypes import constant, struct
from nacelle_tb.virtio import (
    CTRL_MQ,
    F_CTRL_VQ,
    F_EVENT_IDX,
    F_GUEST_CSUM,
    F_INDIRECT_DESC,
    F_MQ,
    F_MRG_RXBUF,
    F_VERSION_1,
    VQ_PAIRS_SET,
    Buffer,
    Heap,
    PciTransport,
    Received,
    Virtqueue,
    header,
    receive,
    receive_buffer,
    scattered,
)

PAIRS = int(os.environ.get("NACELLE_PAIRS", "2"))  # with one pair there is no control queue
MAX_FRAME = 9018
SIZE = 1 << 22
MAC = 0x0200_0000_0102
MTU = 9000
MULTI = (1 << F_MQ | 1 << F_CTRL_VQ) * (PAIRS > 1)
FEATURES = 1 << F_VERSION_1 | 1 << F_MRG_RXBUF | 1 << F_INDIRECT_DESC | 1 << F_GUEST_CSUM | MULTI


def features(*bits: int, without: int = 0) -> int:
    return (FEATURES | sum(1 << bit for bit in bits)) & ~without


def params(width: int, pairs: int = 2) -> dict[str, int]:
    return {"DATA_W": width, "PAIRS": pairs, "MAX_FRAME": MAX_FRAME}


class InfoNetwork(Network):
    """Frames to the device, each with its record."""

    def __init__(self, dut: Any, stall: float) -> None:
        self._info = dut.rx_info
        self._record = struct("virtio_pkg::net_rx_t")
        super().__init__(dut, "rx", stall)

    def _present(self, item: Any) -> None:
        super()._present(item[0])
        self._info.value = item[1]

    def give(self, frame: bytes, vq: int = 0, csum_valid: bool = False, bad: bool = False, unwanted: bool = False) -> None:
        """A frame to a receive queue."""
        step = self.bytes_per_beat
        record = self._record.pack(vq=vq, csum_valid=csum_valid, unwanted=unwanted)
        for at in range(0, len(frame), step):
            chunk = frame[at : at + step]
            last = at + step >= len(frame)
            beat = (int.from_bytes(chunk, "little"), (1 << len(chunk)) - 1, int(last), int(bad and last))
            self._enqueue((beat, record))


class NetBench:
    """Everything around the device. Queues of two pairs: receive 0 and 2, transmit 1 and 3, control 4."""

    def __init__(
        self, dut: Any, latency: int | tuple[int, int] = (1, 60), stall: float = 0.0, size: int = 64, wanted: int = FEATURES,
        scatter: bool = False, tx_stall: float = 0.0,
    ) -> None:  # fmt: skip
        self.dut = dut
        self.wanted = wanted
        self.memory = AxiMemory(dut, "mem", SIZE, latency=latency, stall=stall, reorder=True, noise=True)
        self.registers = AxilDriver(dut, "bus")
        self.pci = PciTransport(self.registers, constant("virtio_pkg::NOTIFY_AT"))
        self.notify = StreamSource(dut, "notify", "virtio_pkg::queue_t")
        self.interrupt = StreamSink(dut, "interrupt", "logic [15:0]")
        self.rx = InfoNetwork(dut, 0.0)
        self.tx = Sent(dut, "tx", tx_stall)
        self.size, self.scatter = size, scatter
        for name, value in (("mac", MAC), ("mtu", MTU), ("link_up", 1), ("reset", 0), ("rx_info", 0)):
            getattr(dut, name).value = value
        self.rings = Heap(0x1000, 0x40000)
        self.heap = Heap(0x50000, SIZE - 0x50000)
        self.queues: list[Virtqueue] = []

    async def begin(self) -> None:
        """Power-on, then the driver's initialization."""
        await start(self.dut)
        await wait_cycles(self.dut, 200)
        await self.initialize()

    async def initialize(self) -> None:
        """3.1.1."""
        await self.pci.reset()
        assert await self.pci.negotiate(self.wanted)
        await self.set_queues_up()
        await self.pci.driver_ok()
        if self.wanted >> F_MQ & 1:
            assert await self.use_pairs(PAIRS) == 0

    async def function_reset(self, cycles: int = 5000) -> None:
        """That of the PCI function: when it is done nothing is under way, and the device is as new."""
        self.dut.reset.value = 1
        for _ in range(cycles):
            await wait_cycles(self.dut, 1)
            if int(self.dut.reset_done.value):
                break
        assert int(self.dut.reset_done.value) and int(self.dut.idle.value)
        await wait_cycles(self.dut, random.randrange(1, 50))
        assert int(self.dut.reset_done.value)
        self.dut.reset.value = 0
        await wait_cycles(self.dut, 3)
        assert not int(self.dut.reset_done.value)

    async def set_queues_up(self) -> None:
        """New rings for every queue."""
        event_idx = bool(self.wanted >> F_EVENT_IDX & 1)
        pairs = PAIRS if self.wanted >> F_MQ & 1 else 1
        count = 2 * pairs + (self.wanted >> F_CTRL_VQ & 1)
        self.queues = [Virtqueue(self.memory, self.rings, self.size, event_idx, self.scatter) for _ in range(count)]
        for number, queue in enumerate(self.queues):
            await self.pci.enable(number, queue, number)
        if count % 2:
            self.queues[-1].want_interrupt(False)

    def publish(self, number: int) -> None:
        """Makes visible, and notifies if the device wants it."""
        if self.queues[number].publish():
            self.notify.send(number)

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
            await wait_cycles(self.dut, 10)
        raise AssertionError(f"queue {number}: no frame")

    async def reap(self, number: int, count: int = 1, cycles: int = 40_000) -> list[tuple[int, int, object]]:
        """The next used chains of a queue, by polling."""
        taken: list[tuple[int, int, object]] = []
        for _ in range(cycles // 10):
            while len(taken) < count and (one := self.queues[number].take()) is not None:
                taken.append(one)
            if len(taken) == count:
                return taken
            await wait_cycles(self.dut, 10)
        raise AssertionError(f"queue {number}: {len(taken)} of {count} came back")

    async def command(self, command: bytes, cuts: int = 0, direct: int | None = None, answer: bool = True) -> int | None:
        """A command on the control queue, the last one: its ack, or None if it has no byte for that."""
        number = len(self.queues) - 1
        at = sorted(random.sample(range(1, len(command)), min(cuts, len(command) - 1))) if command else []
        ack = self.heap.take(1)
        self.memory.write(ack, b"\xee")
        buffers = scattered(self.memory, self.heap, command, at) + [Buffer(ack, 1, writable=True)] * answer
        self.queues[number].add(buffers, direct=direct)
        self.publish(number)
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
