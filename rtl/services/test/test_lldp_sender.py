# SPDX-License-Identifier: Apache-2.0
"""lldp_sender: what it says when, read by scapy."""

from __future__ import annotations

import itertools
import random

import cocotb
from cocotb.triggers import FallingEdge
from nacelle_tb.bench import Plain, Source, run
from nacelle_tb.streams import StreamSink, start, wait_cycles
from nacelle_tb.svtypes import constant
from scapy.contrib.lldp import (
    LLDPDU,
    LLDPDUChassisID,
    LLDPDUEndOfLLDPDU,
    LLDPDUManagementAddress,
    LLDPDUPortID,
    LLDPDUSystemCapabilities,
    LLDPDUSystemName,
    LLDPDUTimeToLive,
)
from scapy.layers.l2 import Ether

TX, MAC_TYPE, IP_TYPE = "packet_pkg::frame_tx_t", "packet_pkg::mac_t", "packet_pkg::ipv4_addr_t"
MAC, IP, NEXT_IP = "02:4e:41:4d:00:0f", "10.0.0.2", "10.0.0.77"
TICKS, INTERVAL = 16, 30


def number(ip: str) -> int:
    return int.from_bytes(bytes(map(int, ip.split("."))), "big")


class Bench:
    """The module, with a clock of its own, and everything that it sends."""

    def __init__(self, dut, stall: float = 0.0) -> None:
        self.dut = dut
        self.tx = StreamSink(dut, "tx", TX, stall)
        self.now = 0  # ticks

    async def start(self, ip: str = IP, enable: int = 1) -> Bench:
        self.dut.tick.value = 0
        self.dut.enable.value = enable
        self.dut.mac.value = int(MAC.replace(":", ""), 16)
        self.dut.ip.value = number(ip)
        await start(self.dut)
        await self.settled()
        return self

    async def settled(self) -> None:
        await wait_cycles(self.dut, 3)
        while not int(self.dut.idle.value):
            await wait_cycles(self.dut, 2)
        await wait_cycles(self.dut, 2)

    async def set(self, name: str, value: int) -> None:
        await FallingEdge(self.dut.clk)
        getattr(self.dut, name).value = value
        await self.settled()

    async def frames(self, ticks: int) -> list[tuple[int, Ether]]:
        """What is sent meanwhile, and in which tick."""
        found = self.sent()
        for _ in range(ticks):
            await FallingEdge(self.dut.clk)
            self.dut.tick.value = 1
            await FallingEdge(self.dut.clk)
            self.dut.tick.value = 0
            await self.settled()
            self.now += 1
            found += self.sent()
        return found

    def sent(self) -> list[tuple[int, Ether]]:
        frames = []
        while self.tx.received:
            value = self.tx.received.popleft()
            assert value.payload_length == 0 and value.pad == 0 and value.icrc == 0
            size = constant("packet_pkg::HDR_BYTES")
            frames.append((self.now, Ether(value.hdr.to_bytes(size, "big")[: value.hdr_length])))
        return frames


def check(frame: Ether, ip: str | None) -> None:
    """It is what a running device says."""
    assert frame.dst == "01:80:c2:00:00:0e" and frame.src == MAC and frame.type == 0x88CC
    assert (frame[LLDPDUChassisID].subtype, frame[LLDPDUChassisID].id) == (4, MAC)
    assert (frame[LLDPDUPortID].subtype, frame[LLDPDUPortID].id) == (3, MAC)
    assert frame[LLDPDUTimeToLive].ttl == 121
    assert frame[LLDPDUSystemName].system_name == b"nacelle-024e414d000f"
    capabilities = frame[LLDPDUSystemCapabilities]
    assert capabilities.station_only_available == capabilities.station_only_enabled == 1 and not capabilities.router_available
    if ip is None:
        assert LLDPDUManagementAddress not in frame
    else:
        address = frame[LLDPDUManagementAddress]
        assert address.management_address_subtype == 1 and number(ip).to_bytes(4, "big") == address.management_address
    assert LLDPDUEndOfLLDPDU in frame
    layers = [layer for layer in frame.layers() if issubclass(layer, LLDPDU)]
    assert layers[-1] is LLDPDUEndOfLLDPDU and sum(len(frame[layer].self_build()) for layer in layers) + 14 == len(frame)


@cocotb.test()
async def it_says_who_it_is(dut) -> None:
    """Four times a second apart, then each 30 s."""
    bench = await Bench(dut).start()
    frames = await bench.frames((4 + 3 * INTERVAL) * TICKS)
    for _, frame in frames:
        check(frame, IP)
    times = [at for at, _ in frames]
    assert times[0] == 0
    gaps = [after - before for before, after in itertools.pairwise(times)]
    assert all(TICKS <= gap <= TICKS + 1 for gap in gaps[:3])
    assert len(gaps) >= 5 and all(INTERVAL * TICKS <= gap <= INTERVAL * TICKS + 1 for gap in gaps[3:])


@cocotb.test()
async def without_an_address_it_is_seen(dut) -> None:
    """And with one as soon as it gets it, but not faster than once a second."""
    bench = await Bench(dut).start(ip="0.0.0.0")
    ((_, frame),) = await bench.frames(2)
    check(frame, None)
    await bench.set("ip", number(IP))
    assert bench.sent() == []
    frames = await bench.frames(TICKS)
    assert len(frames) == 1
    check(frames[0][1], IP)
    for i in range(100):
        await bench.set("ip", number(IP) + i)
    frames = await bench.frames(3 * TICKS)
    assert 2 <= len(frames) <= 3
    check(frames[-1][1], "10.0.0.101")


@cocotb.test()
async def it_takes_its_leave(dut) -> None:
    """A shutdown frame when it is switched off, nothing after it, and all again when it is switched on."""
    bench = await Bench(dut).start(enable=0)
    assert await bench.frames(2 * INTERVAL * TICKS) == []
    await bench.set("enable", 1)
    check(bench.sent()[0][1], IP)
    await bench.frames(5 * TICKS)
    await bench.set("enable", 0)
    ((_, frame),) = await bench.frames(2 * INTERVAL * TICKS)
    assert (frame[LLDPDUChassisID].id, frame[LLDPDUPortID].id, frame[LLDPDUTimeToLive].ttl) == (MAC, MAC, 0)
    assert len(frame) == 14 + 9 + 9 + 4 + 2 and LLDPDUEndOfLLDPDU in frame and LLDPDUSystemName not in frame
    await bench.set("enable", 1)
    check(bench.sent()[0][1], IP)


@cocotb.test()
async def a_busy_line_makes_it_late(dut) -> None:
    """What was offered does not change, and the last state is what the switch learns."""
    bench = await Bench(dut, stall=0.97).start()
    random.seed(7)
    ip, enable = IP, 1
    for _ in range(200):
        if random.random() < 0.5:
            ip = random.choice([IP, NEXT_IP, "0.0.0.0"])
            await bench.set("ip", number(ip))
        else:
            enable = random.randint(0, 1)
            await bench.set("enable", enable)
        await bench.frames(random.randint(0, 40))
    await bench.frames(2 * TICKS)
    await bench.set("enable", 1)
    await bench.set("ip", number("10.0.0.3"))
    frames = await bench.frames(2 * TICKS)
    check(frames[-1][1], "10.0.0.3")
    await bench.set("enable", 0)
    frames = await bench.frames(2 * TICKS)
    assert frames[-1][1][LLDPDUTimeToLive].ttl == 0


def test_lldp_sender() -> None:
    run(
        "lldp_sender",
        __file__,
        ports={
            "tick": Plain("input", "logic"),
            "enable": Plain("input", "logic"),
            "mac": Plain("input", MAC_TYPE),
            "ip": Plain("input", IP_TYPE),
            "tx": Source(TX),
            "sent": Plain("output", "logic"),
            "idle": Plain("output", "logic"),
        },
    )
