# SPDX-License-Identifier: Apache-2.0
"""The ports of a kernel on the path of the network card (docs/how-to/write-a-stream-kernel.md), for a test that runs one alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from nacelle_tb.bench import AxilSlave, Clock, Port, run
from nacelle_tb.bench import AxisSink as AxisSinkPort
from nacelle_tb.bench import AxisSource as AxisSourcePort
from nacelle_tb.cci import offset
from nacelle_tb.device import Device, load_stream, named
from nacelle_tb.device_rtl import generate
from nacelle_tb.registers import AxilDriver
from nacelle_tb.streams import AxisSink, AxisSource, start


class Kernel:
    """The frames on both sides of a kernel, and its registers, by their names in the block `block`."""

    def __init__(self, dut: Any, block: str, stall: float = 0.0) -> None:
        self.dut, self.block = dut, block
        self.rx_in, self.tx_in = AxisSource(dut, "rx_in", stall), AxisSource(dut, "tx_in", stall)
        self.rx_out, self.tx_out = AxisSink(dut, "rx_out", stall), AxisSink(dut, "tx_out", stall)
        self.ctrl = AxilDriver(dut, "ctrl")
        dut.now.value = 0

    async def begin(self) -> Kernel:
        await start(self.dut)
        return self

    async def read(self, name: str) -> int:
        data, response = await self.ctrl.read(offset(f"{self.block}.{name}"))
        assert response == 0, name
        return data

    async def write(self, **values: int) -> None:
        for name, value in values.items():
            assert await self.ctrl.write(offset(f"{self.block}.{name}"), value) == 0, name


def run_kernel(name: str, test_file: str, width: int, env: Mapping[str, str] | None = None, device: Device | None = None) -> None:
    """Runs the tests of a file on the kernel of this name: one of the project's, or of the folders of `device`."""
    folders = (device or named("nic")).kernel_folders
    generated = generate(replace(named("nic"), name=f"stream_{name}", stream=load_stream(name, folders)))
    stream: dict[str, Port] = {}
    for way in ("rx", "tx"):
        stream |= {f"{way}_in": AxisSinkPort(width), f"{way}_out": AxisSourcePort(width)}
    run(
        f"stream_{name}",
        test_file,
        sources=[generated.folder / f"stream_{name}_pkg.sv", *(folder / f"stream_{name}.sv" for folder in folders[1:])],
        params={"DATA_W": width},
        ports={"now": Clock(), "ctrl": AxilSlave(12), **stream},
        env={"WIDTH": str(width), **(env or {})},
    )
