# SPDX-License-Identifier: Apache-2.0
"""The driver's side of virtio 1.2, written from the standard: split virtqueues (2.7) and the buffers of a network device (5.1.6).

It works on any memory that has `read(addr, length)` and `write(addr, data)`, and knows nothing of the device: what it tells the
device, notifications and addresses, is handed to the caller.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

NEXT, WRITE, INDIRECT = 1, 2, 4  # VIRTQ_DESC_F_*
NO_INTERRUPT = 1  # VIRTQ_AVAIL_F_NO_INTERRUPT
NEEDS_CSUM, DATA_VALID = 1, 2  # VIRTIO_NET_HDR_F_*
GSO_TCPV4, GSO_UDP, GSO_TCPV6, GSO_ECN = 1, 3, 4, 0x80  # VIRTIO_NET_HDR_GSO_*
HEADER = struct.Struct("<BBHHHHH")  # virtio_net_hdr with num_buffers: flags, gso_type, hdr_len, gso_size, csum_start, csum_offset


class Memory(Protocol):
    """What the driver shares with the device."""

    def read(self, addr: int, length: int) -> bytes: ...

    def write(self, addr: int, data: bytes) -> None: ...


@dataclass(frozen=True)
class Buffer:
    """A piece of a chain."""

    addr: int
    length: int
    writable: bool = False


class Heap:
    """Addresses in [base, base + size), given out one after another and again from the start: for what does not live long."""

    def __init__(self, base: int, size: int) -> None:
        self.base, self.size, self._at = base, size, 0

    def take(self, length: int, align: int = 1) -> int:
        """Where `length` bytes are free."""
        at = -(-self._at // align) * align
        if at + length > self.size:
            at = 0
        self._at = at + length
        return self.base + at


def need_event(event: int, new: int, old: int) -> bool:
    """2.7.7.2, 2.7.10: `event` is among the entries from `old` up to `new`."""
    return (new - event - 1) & 0xFFFF < (new - old) & 0xFFFF


@dataclass
class Virtqueue:
    """One split virtqueue, as its driver sees it. `scatter`: descriptors are taken in random order."""

    memory: Memory
    heap: Heap
    size: int
    event_idx: bool = False
    scatter: bool = False
    rng: random.Random = field(default_factory=lambda: random.Random(random.getrandbits(64)))

    def __post_init__(self) -> None:
        self.desc = self.heap.take(16 * self.size, 16)
        self.avail = self.heap.take(6 + 2 * self.size, 2)
        self.used = self.heap.take(6 + 8 * self.size, 4)
        self.memory.write(self.desc, bytes(16 * self.size))
        self.memory.write(self.avail, bytes(6 + 2 * self.size))
        self.memory.write(self.used, bytes(6 + 8 * self.size))
        self.free = list(range(self.size))
        self.avail_idx = 0  # entries written
        self.shown_idx = 0  # entries that the device can see
        self.used_idx = 0  # entries taken
        self.chains: dict[int, list[int]] = {}  # by head: its descriptors
        self.tokens: dict[int, object] = {}

    # ---- making available ----

    def _describe(self, table: int, index: int, addr: int, length: int, flags: int, following: int) -> None:
        self.memory.write(table + 16 * index, struct.pack("<QIHH", addr, length, flags, following))

    def add(self, buffers: Sequence[Buffer], token: object = None, direct: int | None = None) -> int:
        """Writes a chain and its entry; `direct` of its buffers have descriptors of their own, the others an indirect table. The
        entry is not visible before publish(). Gives the head."""
        direct = len(buffers) if direct is None else direct
        count = direct + (direct < len(buffers))
        assert count <= len(self.free), "the driver has no free descriptor"
        picked = self.rng.sample(self.free, count) if self.scatter else self.free[:count]
        self.free = [index for index in self.free if index not in set(picked)]
        for i, buffer in enumerate(buffers[:direct]):
            more = i + 1 < count
            flags = WRITE * buffer.writable | NEXT * more
            self._describe(self.desc, picked[i], buffer.addr, buffer.length, flags, picked[i + 1] if more else 0)
        if direct < len(buffers):
            rest = buffers[direct:]
            table = self.heap.take(16 * len(rest), 16)
            for i, buffer in enumerate(rest):
                more = i + 1 < len(rest)
                self._describe(table, i, buffer.addr, buffer.length, WRITE * buffer.writable | NEXT * more, i + 1 if more else 0)
            # The device ignores the write flag of such a descriptor (2.7.5.3.2).
            self._describe(self.desc, picked[-1], table, 16 * len(rest), INDIRECT | WRITE * self.rng.getrandbits(1), 0)
        self.chains[picked[0]] = picked
        self.tokens[picked[0]] = token
        self.offer(picked[0])
        return picked[0]

    def offer(self, head: int) -> None:
        """Writes an entry of the available ring."""
        self.memory.write(self.avail + 4 + 2 * (self.avail_idx % self.size), struct.pack("<H", head))
        self.avail_idx = (self.avail_idx + 1) & 0xFFFF

    def publish(self) -> bool:
        """Shows all entries to the device; true if it is to be notified (2.7.10)."""
        old, self.shown_idx = self.shown_idx, self.avail_idx
        self.memory.write(self.avail + 2, struct.pack("<H", self.avail_idx))
        if self.event_idx:
            (event,) = struct.unpack("<H", self.memory.read(self.used + 4 + 8 * self.size, 2))
            return need_event(event, self.avail_idx, old)
        (flags,) = struct.unpack("<H", self.memory.read(self.used, 2))
        return not flags & 1

    # ---- taking back ----

    @property
    def pending(self) -> int:
        """Used entries that are not taken yet."""
        (index,) = struct.unpack("<H", self.memory.read(self.used + 2, 2))
        return (index - self.used_idx) & 0xFFFF

    def take(self) -> tuple[int, int, object] | None:
        """The next used chain: (head, bytes written, token)."""
        if not self.pending:
            return None
        head, length = struct.unpack("<II", self.memory.read(self.used + 4 + 8 * (self.used_idx % self.size), 8))
        self.used_idx = (self.used_idx + 1) & 0xFFFF
        assert head in self.chains, f"the device used {head}, which is not the head of a chain that it has"
        self.free = self.chains.pop(head) + self.free  # as in Linux: those that came back last are used first
        return head, length, self.tokens.pop(head)

    def want_interrupt(self, wanted: bool = True) -> bool:
        """Asks for a notification of the next used chain, or for none; true if there are chains already (2.7.7)."""
        if self.event_idx:
            event = self.used_idx if wanted else (self.used_idx - 1) & 0xFFFF
            self.memory.write(self.avail + 4 + 2 * self.size, struct.pack("<H", event))
        else:
            self.memory.write(self.avail, struct.pack("<H", 0 if wanted else NO_INTERRUPT))
        return self.pending > 0


# ---- a network device ----


def header(
    flags: int = 0, gso_type: int = 0, hdr_len: int = 0, gso_size: int = 0, csum_start: int = 0, csum_offset: int = 0
) -> bytes:
    """virtio_net_hdr of a frame to send."""
    return HEADER.pack(flags, gso_type, hdr_len, gso_size, csum_start, csum_offset, 0)


def scattered(memory: Memory, heap: Heap, data: bytes, cuts: Sequence[int]) -> list[Buffer]:
    """`data` in buffers that end at `cuts`."""
    buffers = []
    for first, last in zip([0, *cuts], [*cuts, len(data)], strict=True):
        if first < last:
            addr = heap.take(last - first)
            memory.write(addr, data[first:last])
            buffers.append(Buffer(addr, last - first))
    return buffers


def receive_buffer(heap: Heap, lengths: Sequence[int]) -> list[Buffer]:
    """Buffers of one chain for receiving."""
    return [Buffer(heap.take(length), length, writable=True) for length in lengths]


def mac_table(*lists: Sequence[bytes]) -> bytes:
    """What VIRTIO_NET_CTRL_MAC_TABLE_SET carries: unicast addresses, groups."""
    return b"".join(struct.pack("<I", len(addresses)) + b"".join(addresses) for addresses in lists)


def rss_config(types: int, table: Sequence[int], key: bytes, unclassified: int = 0, transmit: int = 1) -> bytes:
    """virtio_net_rss_config (5.1.6.5.7)."""
    entries = struct.pack(f"<{len(table)}H", *table)
    return struct.pack("<IHH", types, len(table) - 1, unclassified) + entries + struct.pack("<HB", transmit, len(key)) + key


@dataclass
class Received:
    """A frame as the driver finds it."""

    frame: bytes
    flags: int
    buffers: int
    gso_type: int = 0


def receive(queue: Virtqueue) -> Received | None:
    """The next frame of a receive queue whose chains have their buffers as token; a frame may have several (5.1.6.3, 5.1.6.4)."""
    taken = queue.take()
    if taken is None:
        return None
    data = _contents(queue.memory, *taken)
    flags, gso_type, _, _, _, _, buffers = HEADER.unpack(data[: HEADER.size])
    for _ in range(buffers - 1):
        taken = queue.take()
        assert taken is not None, "not all buffers of a frame became used at once"
        data += _contents(queue.memory, *taken)
    return Received(data[HEADER.size :], flags, buffers, gso_type)


def _contents(memory: Memory, head: int, length: int, buffers: object) -> bytes:
    assert isinstance(buffers, list)
    assert 0 < length <= sum(buffer.length for buffer in buffers), f"{length} bytes are not in chain {head}"
    data = b"".join(memory.read(buffer.addr, buffer.length) for buffer in buffers)
    return data[:length]


# ---- the PCI transport (4.1.4.3), by registers ----

COMMON = {  # field: (offset, bytes)
    "device_feature_select": (0x00, 4), "device_feature": (0x04, 4),
    "driver_feature_select": (0x08, 4), "driver_feature": (0x0C, 4),
    "config_msix_vector": (0x10, 2), "num_queues": (0x12, 2), "device_status": (0x14, 1), "config_generation": (0x15, 1),
    "queue_select": (0x16, 2), "queue_size": (0x18, 2), "queue_msix_vector": (0x1A, 2), "queue_enable": (0x1C, 2),
    "queue_notify_off": (0x1E, 2), "queue_desc": (0x20, 8), "queue_driver": (0x28, 8), "queue_device": (0x30, 8),
}  # fmt: skip
ACKNOWLEDGE, DRIVER, DRIVER_OK, FEATURES_OK, NEEDS_RESET, FAILED = 1, 2, 4, 8, 64, 128
F_CSUM, F_GUEST_CSUM, F_MTU, F_MAC, F_MRG_RXBUF, F_STATUS, F_CTRL_VQ, F_MQ = 0, 1, 3, 5, 15, 16, 17, 22  # VIRTIO_NET_F_*
F_HOST_TSO4, F_HOST_TSO6, F_HOST_ECN, F_HOST_UFO = 11, 12, 13, 14  # VIRTIO_NET_F_*
F_INDIRECT_DESC, F_EVENT_IDX, F_VERSION_1 = 28, 29, 32  # VIRTIO_F_*
F_CTRL_RX, F_CTRL_VLAN, F_CTRL_RX_EXTRA, F_GUEST_ANNOUNCE, F_CTRL_MAC_ADDR, F_RSS = 18, 19, 20, 21, 23, 60
# VIRTIO_NET_CTRL_*: classes, and their commands.
CTRL_RX, PROMISC, ALLMULTI, ALLUNI, NOMULTI, NOUNI, NOBCAST = 0, 0, 1, 2, 3, 4, 5
CTRL_MAC, MAC_TABLE_SET, MAC_ADDR_SET = 1, 0, 1
CTRL_VLAN, VLAN_ADD, VLAN_DEL = 2, 0, 1
CTRL_ANNOUNCE, ANNOUNCE_ACK = 3, 0
CTRL_MQ, VQ_PAIRS_SET, RSS_CONFIG = 4, 0, 1


class Registers(Protocol):
    """Words of 32 bits with a strobe for each byte."""

    async def read(self, addr: int) -> tuple[int, ...]: ...

    async def write(self, addr: int, value: int, strobes: int = 15) -> int: ...


class PciTransport:
    """What a driver does with the registers of a device; offsets are those of the common configuration and of what is behind it."""

    def __init__(self, registers: Registers, notify_at: int) -> None:
        self.registers, self.notify_at = registers, notify_at

    async def get(self, field: str) -> int:
        """A field of the common configuration."""
        at, size = COMMON[field]
        return await self.load(at, size)

    async def load(self, at: int, size: int) -> int:
        """`size` bytes at `at`, within or over words."""
        value = word = 0
        for byte in range(size):
            word = (await self.registers.read((at + byte) & ~3))[0] if byte == 0 or (at + byte) % 4 == 0 else word
            value |= (word >> 8 * ((at + byte) % 4) & 0xFF) << 8 * byte
        return value

    async def set(self, field: str, value: int) -> None:
        """Writes a field as the standard wants it: by its width, 64 bits as two words (4.1.3.1)."""
        at, size = COMMON[field]
        for half in range(0, size, 4):
            width = min(size, 4)
            part = value >> 8 * half & (1 << 8 * width) - 1
            lane = (at + half) % 4
            await self.registers.write((at + half) & ~3, part << 8 * lane, ((1 << width) - 1) << lane)

    async def reset(self, polls: int = 1000) -> int:
        """Resets, and gives the number of reads until it was done (2.4.2)."""
        await self.set("device_status", 0)
        for i in range(polls):
            if not await self.get("device_status"):
                return i + 1
        raise AssertionError("the reset does not end")

    async def offered(self) -> int:
        """The features of the device."""
        value = 0
        for select in range(2):
            await self.set("device_feature_select", select)
            value |= await self.get("device_feature") << 32 * select
        return value

    async def negotiate(self, features: int) -> bool:
        """3.1.1, up to FEATURES_OK: true if the device accepts."""
        await self.set("device_status", ACKNOWLEDGE)
        await self.set("device_status", ACKNOWLEDGE | DRIVER)
        for select in range(2):
            await self.set("driver_feature_select", select)
            await self.set("driver_feature", features >> 32 * select & 0xFFFFFFFF)
        await self.set("device_status", ACKNOWLEDGE | DRIVER | FEATURES_OK)
        return bool(await self.get("device_status") & FEATURES_OK)

    async def enable(self, number: int, queue: Virtqueue, vector: int) -> None:
        """Sets a queue up."""
        await self.set("queue_select", number)
        await self.set("queue_size", queue.size)
        await self.set("queue_msix_vector", vector)
        await self.set("queue_desc", queue.desc)
        await self.set("queue_driver", queue.avail)
        await self.set("queue_device", queue.used)
        await self.set("queue_enable", 1)

    async def driver_ok(self) -> None:
        """The device may work from here on."""
        await self.set("device_status", ACKNOWLEDGE | DRIVER | FEATURES_OK | DRIVER_OK)

    async def notify(self, number: int) -> None:
        """2.7.13.3, by 16 bits as 4.1.5.2 has it without VIRTIO_F_NOTIFICATION_DATA."""
        await self.registers.write(self.notify_at + 4 * number, number, 3)
