# SPDX-License-Identifier: Apache-2.0
"""The kernel of docs/how-to/write-a-stream-kernel.md does what the page says."""

from __future__ import annotations

import random

import cocotb
import pytest
from nacelle_tb.device import load
from nacelle_tb.long import some
from nacelle_tb.sources import ROOT
from nacelle_tb.streams import wait_cycles
from scapy.layers.inet import IP, TCP, UDP, IPOption_NOP
from scapy.layers.l2 import Dot1Q, Ether
from scapy.packet import Raw
from stream_bench import Kernel, run_kernel

EXAMPLE = ROOT / "examples" / "stream_quiet"
PORT, DROPPED = 0x110, 0x114


@cocotb.test()
@cocotb.parametrize(stall=[0.0, 0.4])
async def datagrams_to_a_port_are_dropped(dut, stall: float) -> None:
    kernel = await Kernel(dut, "quiet", stall).begin()
    ether, ip = Ether(src="02:00:00:00:00:01", dst="06:00:00:00:00:02"), IP(src="10.0.0.1", dst="10.0.0.2")
    quiet = [ether / ip / UDP(dport=9), ether / IP(src="10.0.0.1", dst="10.0.0.2", flags="MF") / UDP(dport=9)]
    others = [
        ether / ip / UDP(dport=10),
        ether / ip / TCP(dport=9),
        ether / Dot1Q(vlan=1) / ip / UDP(dport=9),
        ether / IP(src="10.0.0.1", dst="10.0.0.2", options=[IPOption_NOP()] * 4) / UDP(dport=9),
        ether / IP(src="10.0.0.1", dst="10.0.0.2", frag=1) / UDP(dport=9),
    ]
    cut_short = bytes(quiet[0])[:41]  # behind a frame whose port would be taken for its own

    async def passes(port: int) -> int:
        assert await kernel.ctrl.write(PORT, port) == 0
        sent = []
        for _ in range(100):
            frame = random.choice([*quiet, *others, None])
            data = cut_short if frame is None else bytes(frame / Raw(random.randbytes(random.choice([0, 1, 18, 100, 900]))))
            kernel.rx_in.send(data)
            kernel.tx_in.send(data)
            sent.append((data, port == 9 and frame in quiet))
        await kernel.rx_in.drained()
        await kernel.tx_in.drained()
        await wait_cycles(dut, 1000)
        assert [(bytes(frame), bool(user)) for frame, user in kernel.rx_out.packets] == sent
        assert [(bytes(frame), bool(user)) for frame, user in kernel.tx_out.packets] == [(frame, False) for frame, _ in sent]
        kernel.rx_out.packets.clear()
        kernel.tx_out.packets.clear()
        return sum(drop for _, drop in sent)

    assert await passes(0) == 0
    dropped = await passes(9)
    assert dropped > 10 and (await kernel.ctrl.read(DROPPED))[0] == dropped


@pytest.mark.parametrize("width", some([64, 512]))
def test_stream_example(width: int) -> None:
    run_kernel("quiet", __file__, width, device=load(EXAMPLE / "device.toml"))
