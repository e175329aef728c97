# SPDX-License-Identifier: Apache-2.0
"""VLAN priority and DSCP of frames for the host: what comes out is what scapy makes of them, all other bits as they came."""

from __future__ import annotations

import random

import cocotb
import pytest
from nacelle_tb.bench import AxisSink, AxisSource, Sink, run
from nacelle_tb.classifier import edited
from nacelle_tb.streams import AxisSink as Out
from nacelle_tb.streams import AxisSource as In
from nacelle_tb.streams import StreamSource, start
from scapy.layers.inet import ICMP, IP, TCP, UDP, IPOption_Router_Alert
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import ARP, Dot1AD, Dot1Q, Ether
from scapy.packet import Raw

ETHER = Ether(src="02:00:00:00:00:02", dst="02:00:00:00:00:01")
TAGS = (Dot1Q, Dot1AD)


def random_frame() -> bytes:
    frame = ETHER.copy()
    for _ in range(random.choice([0, 0, 1, 1, 2, 3])):
        frame /= random.choice(TAGS)(vlan=random.randrange(4096), prio=random.randrange(8), id=random.randrange(2))
    kind = random.choice(["v4", "v4", "v4", "options", "v6", "v6", "arp", "other", "short"])
    tos = random.choice([0, 0xFF, random.randrange(256)])
    if kind in ("v4", "options"):
        options = [IPOption_Router_Alert()] if kind == "options" else []
        frame /= IP(src=f"10.0.0.{random.randrange(256)}", dst="10.9.8.7", tos=tos, id=random.randrange(1 << 16), options=options)
        frame /= random.choice([UDP(), TCP(), ICMP()])
    elif kind == "v6":
        frame /= IPv6(src="2001:db8::1", dst="fe80::2", tc=tos, fl=random.randrange(1 << 20)) / UDP()
    elif kind == "arp":
        frame /= ARP()
    data = bytes(frame / Raw(random.randbytes(random.choice([0, 1, 20, 100, 1400]))))
    return data[: random.randrange(14, 40)] if kind == "short" else data


async def pass_(dut, frames: list[bytes], edits: list[tuple[int | None, int | None]], stall: float) -> list[bytes]:
    source, sink = In(dut, "in", stall, noise=True), Out(dut, "out", stall)
    edit = StreamSource(dut, "edit", "virtio_pkg::net_edit_t", stall)
    await start(dut)
    for frame, (pcp, dscp) in zip(frames, edits, strict=True):
        source.send(frame)
        edit.send(pcp=pcp or 0, pcp_set=pcp is not None, dscp=dscp or 0, dscp_set=dscp is not None)
    return [await sink.recv() for _ in frames]


def random_edit() -> tuple[int | None, int | None]:
    return random.choice([None, random.randrange(8)]), random.choice([None, 0, 63, random.randrange(64)])


@cocotb.test()
@cocotb.parametrize(stall=[0.0, 0.4])
async def frames_are_changed_as_scapy_does(dut, stall: float) -> None:
    random.seed(cocotb.RANDOM_SEED)
    frames, edits = [random_frame() for _ in range(300)], [random_edit() for _ in range(300)]
    for frame, edit, out in zip(frames, edits, await pass_(dut, frames, edits, stall), strict=True):
        if len(frame) >= 42:
            assert out == edited(frame, *edit)
        else:  # a runt, which the host never gets
            assert len(out) == len(frame)


@cocotb.test()
async def a_wrong_checksum_stays_wrong(dut) -> None:
    random.seed(cocotb.RANDOM_SEED)
    good = [bytes(ETHER / IP(src="10.0.0.1", dst="10.0.0.2", tos=random.randrange(256)) / UDP()) for _ in range(50)]
    bad = [frame[:24] + bytes([frame[24] ^ 0x10]) + frame[25:] for frame in good]
    edits = [(None, random.randrange(64)) for _ in good]
    for frame, (_, dscp), out in zip(good, edits, await pass_(dut, bad, edits, 0.0), strict=True):
        right = edited(frame, None, dscp)
        assert out != right and out[:24] + out[26:] == right[:24] + right[26:]


@pytest.mark.parametrize("width", [64, 128, 512])
def test_virtio_net_edit(width: int) -> None:
    run(
        "virtio_net_edit",
        __file__,
        params={"DATA_W": width},
        ports={"in": AxisSink(width), "edit": Sink("virtio_pkg::net_edit_t"), "out": AxisSource(width)},
        env={"WIDTH": str(width)},
    )
