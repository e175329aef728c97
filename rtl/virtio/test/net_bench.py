# SPDX-License-Identifier: Apache-2.0
"""A virtio network device with its driver, memory and network, for the tests of this folder."""

from __future__ import annotations

import os
import random
from typing import Any

from nacelle_tb.memory import AxiMemory
from nacelle_tb.net_driver import NetDriver
from nacelle_tb.registers import AxilDriver
from nacelle_tb.streams import AxisSink as Sent
from nacelle_tb.streams import AxisSource as Network
from nacelle_tb.streams import StreamSink, StreamSource, start, wait_cycles
from nacelle_tb.svtypes import struct
from nacelle_tb.virtio import F_CTRL_VQ, F_GUEST_CSUM, F_INDIRECT_DESC, F_MQ, F_MRG_RXBUF, F_VERSION_1

PAIRS = int(os.environ.get("NACELLE_PAIRS", "2"))
MAX_FRAME = 9018
SIZE = 1 << 22
MAC = 0x0200_0000_0102
MTU = 9000
MULTI = 1 << F_CTRL_VQ | (1 << F_MQ) * (PAIRS > 1)
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

    def give(self, frame: bytes, vq: int = 0, csum_valid: bool = False, bad: bool = False, unwanted: bool = False,
             hash: int | None = None, fixed: bool = False, pcp: int | None = None, dscp: int | None = None) -> None:  # fmt: skip
        """A frame to a receive queue, the lowest bits of the packet's hash if it has one, and what is changed in it."""
        step = self.bytes_per_beat
        edit = {"pcp": pcp or 0, "pcp_set": pcp is not None, "dscp": dscp or 0, "dscp_set": dscp is not None}
        record = self._record.pack(
            vq=vq, fixed=fixed, csum_valid=csum_valid, unwanted=unwanted, hashed=hash is not None, hash=hash or 0, edit=edit
        )
        for at in range(0, len(frame), step):
            chunk = frame[at : at + step]
            last = at + step >= len(frame)
            beat = (int.from_bytes(chunk, "little"), (1 << len(chunk)) - 1, int(last), int(bad and last))
            self._enqueue((beat, record))


class NetBench(NetDriver):
    """Everything around the device. Queues of two pairs: receive 0 and 2, transmit 1 and 3, control 4."""

    def __init__(
        self, dut: Any, latency: int | tuple[int, int] = (1, 60), stall: float = 0.0, size: int = 64, wanted: int = FEATURES,
        scatter: bool = False, tx_stall: float = 0.0,
    ) -> None:  # fmt: skip
        memory = AxiMemory(dut, "mem", SIZE, latency=latency, stall=stall, reorder=True, noise=True)
        self.notify = StreamSource(dut, "notify", "virtio_pkg::queue_t")
        registers = AxilDriver(dut, "bus")
        super().__init__(
            lambda cycles: wait_cycles(dut, cycles), memory, registers, wanted, SIZE, PAIRS, size, scatter, notify=self.notify.send
        )
        self.dut = dut
        self.interrupt = StreamSink(dut, "interrupt", "logic [15:0]")
        self.rx = InfoNetwork(dut, 0.0)
        self.tx = Sent(dut, "tx", tx_stall)
        for name, value in (
            ("mac", MAC),
            ("mac_free", 0),
            ("mac_taken", 0),
            ("mtu", MTU),
            ("link_up", 1),
            ("reset", 0),
            ("rx_info", 0),
        ):
            getattr(dut, name).value = value

    async def begin(self) -> None:
        """Power-on, then the driver's initialization."""
        await start(self.dut)
        await wait_cycles(self.dut, 200)
        await self.initialize()

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
