# SPDX-License-Identifier: Apache-2.0
"""A simulated device with a network card, and the driver of its host: by the slot, in lock-step. The driver's processor costs no
time, its accesses what the slot says."""

from __future__ import annotations

import random
from collections.abc import Coroutine
from typing import Any, TypeVar

from scapy.layers.l2 import Ether

from .cci import address
from .net_driver import NetDriver
from .peer import Peer
from .session import SimDevice
from .virtio import F_EVENT_IDX, F_GUEST_CSUM, F_MRG_RXBUF, F_STATUS, F_VERSION_1, Received

T = TypeVar("T")
IOVA = 0x4_0000_0000
SIZE = 1 << 21
"""Host memory of the card's function, from IOVA on"""
FEATURES = 1 << F_VERSION_1 | 1 << F_MRG_RXBUF | 1 << F_GUEST_CSUM | 1 << F_STATUS | 1 << F_EVENT_IDX


class CardRegisters:
    """The first page of BAR 0 of the card's function."""

    def __init__(self, device: SimDevice) -> None:
        self.card = device.slot.card

    async def read(self, addr: int) -> tuple[int, ...]:
        return (self.card.register(addr),)

    async def write(self, addr: int, value: int, strobes: int = 15) -> int:
        first = (strobes & -strobes).bit_length() - 1
        length = strobes.bit_count()
        self.card.write(0, addr + first, (value >> 8 * first & (1 << 8 * length) - 1).to_bytes(length, "little"))
        return 0


class HostMemory:
    """What the card's function reaches."""

    def __init__(self, device: SimDevice) -> None:
        self.card = device.slot.card

    def read(self, addr: int, length: int) -> bytes:
        return self.card.host_read(addr, length)

    def write(self, addr: int, data: bytes) -> None:
        self.card.host_write(addr, data)


def now(work: Coroutine[Any, Any, T]) -> T:
    """Runs what waits for nothing but the device, which is stepped meanwhile."""
    try:
        work.send(None)
    except StopIteration as result:
        return result.value
    raise AssertionError("it waits for something else")


class Nic:
    """The device and the driver of its card, with queues of `size` entries."""

    def __init__(self, device: SimDevice, size: int = 128) -> None:
        self.device, self.peer = device, Peer()

        async def wait(cycles: int) -> None:
            device.step(cycles)

        self.driver = NetDriver(wait, HostMemory(device), CardRegisters(device), FEATURES, SIZE, base=IOVA, size=size)
        self.device_mac = self.peer.device_mac
        self.mac = f"{int(self.device_mac[:2], 16) ^ 4 | 2:02x}{self.device_mac[2:]}"

    def begin(self, buffers: int = 100) -> Nic:
        """The driver initializes its card and posts buffers."""
        now(self.driver.initialize())
        self.post(buffers)
        return self

    def post(self, buffers: int) -> None:
        """Buffers of 2048 bytes, and waits until the card has seen them."""
        for _ in range(buffers):
            self.driver.post(0, [2048])
        now(self.driver.show(0))
        self.device.step(4000)

    def settings(self, value: int) -> None:
        """Writes the register NETWORK_CARD."""
        self.device.write(address("NETWORK_CARD"), value)

    def send(self, *frames: bytes) -> None:
        """Of the driver, in one buffer or three."""
        for frame in frames:
            self.driver.transmit(frame, 1, cuts=random.choice([0, 2]))
        now(self.driver.show(1))

    def arrive(self, frame: bytes) -> None:
        """A frame of the line, outside of a load."""
        self.device.send(frame)
        self.device.step(500)
        assert self.device.rx_stamp() is not None

    def received(self, cycles: int = 40_000) -> Received:
        """The next frame that the driver gets."""
        return now(self.driver.received(0, cycles))

    def counter(self, name: str) -> int:
        """A counter of the first pair of queues."""
        return now(self.driver.counter(name))

    def ether(self, to: str | None = None) -> Ether:
        """A header from the peer to the card, or to another station."""
        return Ether(src=self.peer.mac, dst=to or self.mac)
