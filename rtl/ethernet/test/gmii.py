# SPDX-License-Identifier: Apache-2.0
"""A GMII line in a test: puts bytes on it, and takes frames off it as IEEE 802.3 has them."""

import zlib
from dataclasses import dataclass
from typing import Any

import cocotb
from cocotb.triggers import FallingEdge, RisingEdge

PREAMBLE = bytes([0x55] * 7 + [0xD5])
GAP = 12
LEAST = 60


def fcs(frame: bytes) -> bytes:
    """The frame check sequence, in the order of the line."""
    return zlib.crc32(frame).to_bytes(4, "little")


def whole(frame: bytes) -> bytes:
    """What is on the line for a frame."""
    return PREAMBLE + frame + fcs(frame)


@dataclass(frozen=True)
class Sent:
    """A burst on the line."""

    data: bytes
    error: bool  # TX_ER in some cycle
    gap: int  # quiet cycles before it


class Line:
    """Both directions of `dut`; signals change at falling edges."""

    def __init__(self, dut: Any, receive: bool = True, transmit: bool = True) -> None:
        self.dut = dut
        self.sent: list[Sent] = []
        if receive:
            dut.gmii_rx_dv.value = dut.gmii_rx_er.value = dut.gmii_rxd.value = 0
        if transmit:
            cocotb.start_soon(self._watch())

    async def put(self, data: bytes, gap: int = GAP, errors: tuple[int, ...] = ()) -> None:
        """Puts these bytes on the line as they are, then `gap` quiet cycles. `errors`: cycles with RX_ER."""
        clock = getattr(self.dut, "gmii_rx_clk", self.dut.clk)
        for i, byte in enumerate(data):
            await FallingEdge(clock)
            self.dut.gmii_rx_dv.value = 1
            self.dut.gmii_rxd.value = byte
            self.dut.gmii_rx_er.value = int(i in errors)
        for _ in range(gap):
            await FallingEdge(clock)
            self.dut.gmii_rx_dv.value = self.dut.gmii_rx_er.value = 0

    async def _watch(self) -> None:
        clock = getattr(self.dut, "gmii_tx_clk", self.dut.clk)
        data, error, gap = bytearray(), False, 0
        while True:
            await RisingEdge(clock)
            if int(self.dut.gmii_tx_en.value):
                data.append(int(self.dut.gmii_txd.value))
                error |= bool(int(self.dut.gmii_tx_er.value))
                continue
            if data:
                self.sent.append(Sent(bytes(data), error, gap))
                data, error, gap = bytearray(), False, 0
            gap += 1

    async def bursts(self, count: int, cycles: int = 100_000) -> list[Sent]:
        """The first `count` of them."""
        clock = getattr(self.dut, "gmii_tx_clk", self.dut.clk)
        for _ in range(cycles):
            if len(self.sent) >= count:
                return self.sent[:count]
            await RisingEdge(clock)
        raise AssertionError(f"{len(self.sent)} of {count} frames came")
