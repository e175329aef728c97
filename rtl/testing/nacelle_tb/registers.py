# SPDX-License-Identifier: Apache-2.0
"""Reads and writes the registers behind an `axil_if.slave` port."""

from __future__ import annotations

from cocotb.handle import SimHandleBase
from cocotb.triggers import FallingEdge, RisingEdge


class AxilDriver:
    """One access at a time; answers (data, response)."""

    def __init__(self, dut: SimHandleBase, name: str) -> None:
        self.clk = dut.clk
        self._port = {
            signal: getattr(dut, f"{name}_{signal}")
            for channel in (
                "awaddr awvalid awready wdata wstrb wvalid wready bresp bvalid bready",
                "araddr arvalid arready rdata rresp rvalid rready",
            )
            for signal in channel.split()
        }
        for signal in ("awvalid", "wvalid", "bready", "arvalid", "rready"):
            self._port[signal].value = 0

    async def _until_taken(self, valids: list[tuple[str, str]], timeout_cycles: int) -> None:
        await FallingEdge(self.clk)
        waiting = list(valids)
        for valid, _ in waiting:
            self._port[valid].value = 1
        for _ in range(timeout_cycles):
            await RisingEdge(self.clk)
            taken = [(valid, ready) for valid, ready in waiting if int(self._port[ready].value)]
            await FallingEdge(self.clk)
            for item in taken:
                self._port[item[0]].value = 0
                waiting.remove(item)
            if not waiting:
                return
        raise TimeoutError(f"{waiting[0][1]} did not come")

    async def _answer(self, valid: str, ready: str, values: tuple[str, ...], timeout_cycles: int) -> tuple[int, ...]:
        self._port[ready].value = 1
        for _ in range(timeout_cycles):
            await RisingEdge(self.clk)
            if int(self._port[valid].value):
                result = tuple(int(self._port[value].value) for value in values)
                await FallingEdge(self.clk)
                self._port[ready].value = 0
                return result
        raise TimeoutError(f"{valid} did not come")

    async def read(self, addr: int, timeout_cycles: int = 1000) -> tuple[int, ...]:
        """(data, response) of the register at `addr`."""
        self._port["araddr"].value = addr
        await self._until_taken([("arvalid", "arready")], timeout_cycles)
        return await self._answer("rvalid", "rready", ("rdata", "rresp"), timeout_cycles)

    async def write(self, addr: int, value: int, strobes: int = 15, timeout_cycles: int = 1000) -> int:
        """Writes, and returns the response."""
        self._port["awaddr"].value = addr
        self._port["wdata"].value = value
        self._port["wstrb"].value = strobes
        await self._until_taken([("awvalid", "awready"), ("wvalid", "wready")], timeout_cycles)
        return (await self._answer("bvalid", "bready", ("bresp",), timeout_cycles))[0]
