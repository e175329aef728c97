# SPDX-License-Identifier: Apache-2.0
"""unreachable: what it says is what scapy says, about what it may, and not more often than the bucket gives."""

from __future__ import annotations

import ipaddress
import random
from typing import Any

import cocotb
from cocotb.triggers import RisingEdge
from nacelle_tb.bench import Plain, Source, run
from nacelle_tb.long import alternately
from nacelle_tb.streams import StreamSink, start, wait_cycles
from nacelle_tb.svtypes import struct
from scapy.layers.inet import ICMP, IP, TCP, UDP
from scapy.packet import Raw

TX, WORD, LOCAL, UNWANTED = (
    "services_pkg::service_tx_t", "services_pkg::service_word_t", "packet_pkg::local_addr_t", "packet_pkg::unwanted_t",
)  # fmt: skip
MAC, DEVICE, PEER = 0x0200000000AA, "10.0.0.1", "10.0.0.2"
BURST, REFILL = 16, 4


def number(ip: str) -> int:
    return int(ipaddress.IPv4Address(ip))


class Bench:
    """The module; events are counted."""

    def __init__(self, dut: Any, stall: float = 0.0) -> None:
        self.dut = dut
        self.message = StreamSink(dut, "message", TX, stall)
        self.words = StreamSink(dut, "words", WORD, stall)
        self.counts = {"sent": 0, "limited": 0}

    async def start(self, enable: int = 1, prefix: int = 24) -> Bench:
        self.dut.enable.value, self.dut.tick.value, self.dut.unwanted_valid.value = enable, 0, 0
        self.dut.local_addr.value = struct(LOCAL).pack(enable=1, mac=1, ip=number(DEVICE), prefix_length=prefix)
        await start(self.dut)
        cocotb.start_soon(self._count())
        await wait_cycles(self.dut, 2)
        return self

    async def _count(self) -> None:
        while True:
            await RisingEdge(self.dut.clk)
            for name in self.counts:
                self.counts[name] += int(getattr(self.dut, name).value)

    async def drop(self, packet: bytes) -> None:
        """The packet plane has dropped it."""
        self.dut.unwanted.value = struct(UNWANTED).pack(
            mac=MAC, ipv4=int.from_bytes(packet[:20], "big"), first=int.from_bytes(packet[20:28].ljust(8, b"\xee"), "big")
        )
        self.dut.unwanted_valid.value = 1
        await wait_cycles(self.dut, 1)
        self.dut.unwanted_valid.value = 0
        self.dut.unwanted.value = random.getrandbits(200)

    async def tick(self) -> None:
        self.dut.tick.value = 1
        await wait_cycles(self.dut, 1)
        self.dut.tick.value = 0

    async def said(self) -> bytes | None:
        """The next message as service_send makes a packet of it; None: there is none."""
        for _ in range(100):
            await wait_cycles(self.dut, 1)
            if int(self.dut.idle.value):
                break
        assert int(self.dut.idle.value)
        if not self.message.received:
            assert not self.words.received
            return None
        record = self.message.received.popleft()
        words = [self.words.received.popleft() for _ in range(record.length // 4)]
        assert [word.last for word in words] == [0] * (len(words) - 1) + [1] and not self.words.received
        assert (record.mac, record.ttl, record.icmp) == (MAC, 64, 1)
        assert record.from_ip == number(DEVICE)
        icmp = record.from_port.to_bytes(2, "big") + record.port.to_bytes(2, "big") + bytes(4)
        icmp += b"".join(word.data.to_bytes(4, "big") for word in words)
        return bytes(IP(src=DEVICE, dst=str(ipaddress.IPv4Address(record.ip)), proto=1, flags="DF") / Raw(icmp))


def packets() -> list[bytes]:
    """Of many kinds, each to be answered."""
    made = []
    for _ in range(12):
        head = IP(
            src=f"{random.choice([10, 1, 192, 223])}.{random.randrange(256)}.7.{random.randrange(1, 250)}", dst=DEVICE,
            tos=random.randrange(256), id=random.randrange(1 << 16), ttl=random.randrange(1, 256), flags=random.choice(["", "DF"]),
        )  # fmt: skip
        data = Raw(random.randbytes(random.choice([0, 1, 7, 100, 1400])))
        made += [
            bytes(head / UDP(sport=random.randrange(1 << 16), dport=random.randrange(1 << 16)) / data),
            bytes(head / TCP(sport=random.randrange(1 << 16), dport=80, seq=random.getrandbits(32)) / data),
        ]
        head.proto = random.choice([2, 47, 50, 132])
        made.append(bytes(head / Raw(random.randbytes(random.choice([8, 9, 500])))))
    made.append(bytes(IP(src=PEER, dst=DEVICE) / UDP(sport=0xFFFF, dport=0xFFFF, chksum=0xFFFF, len=0xFFFF)))
    made.append(bytes(IP(src=PEER, dst=DEVICE, proto=99) / Raw(bytes(8))))
    return made


def expected(packet: bytes) -> bytes:
    """By scapy."""
    code = 3 if packet[9] == 17 else 2
    about = Raw(packet[:28])
    return bytes(IP(src=DEVICE, dst=IP(packet).src, flags="DF") / ICMP(type=3, code=code) / about)


@cocotb.test()
@cocotb.parametrize(stall=alternately([0.0, 0.5]))
async def messages_are_as_scapy_makes_them(dut, stall: float) -> None:
    bench = await Bench(dut, stall).start()
    asked = packets()
    for packet in asked:
        for _ in range(BURST // REFILL):
            await bench.tick()
        await bench.drop(packet)
        assert await bench.said() == expected(packet)
    assert bench.counts == {"sent": len(asked), "limited": 0}


@cocotb.test()
async def about_some_packets_nothing_is_said(dut) -> None:
    """To a broadcast or loopback address, and about what is shorter than the quotation."""
    bench = await Bench(dut).start()
    for source in ("127.0.0.1", "127.255.3.4", "10.0.0.255"):
        await bench.drop(bytes(IP(src=source, dst=DEVICE) / UDP(dport=9) / Raw(b"x" * 30)))
        assert await bench.said() is None
    for size in range(8):
        await bench.drop(bytes(IP(src=PEER, dst=DEVICE, proto=99) / Raw(bytes(size))))
        assert await bench.said() is None
    assert bench.counts == {"sent": 0, "limited": 0}
    for source in ("10.0.0.254", "10.0.1.255", "126.0.0.1", "128.0.0.1"):
        await bench.drop(packet := bytes(IP(src=source, dst=DEVICE) / UDP(dport=9)))
        assert await bench.said() == expected(packet)
    dut.enable.value = 0
    await bench.drop(packet)
    assert await bench.said() is None and bench.counts == {"sent": 4, "limited": 0}


@cocotb.test()
async def point_to_point_networks_have_no_broadcast_address(dut) -> None:
    for prefix in (31, 32, 0):
        bench = await Bench(dut).start(prefix=prefix)
        await bench.drop(packet := bytes(IP(src="10.0.0.255" if prefix == 0 else "10.0.0.3", dst=DEVICE) / UDP(dport=9)))
        assert await bench.said() == expected(packet)


@cocotb.test()
async def a_flood_gets_what_the_bucket_has(dut) -> None:
    bench = await Bench(dut).start()
    packet = bytes(IP(src=PEER, dst=DEVICE) / UDP(dport=9))
    flood = 400

    async def send() -> None:
        for _ in range(flood):
            await bench.drop(packet)
            await wait_cycles(dut, random.randrange(8))
        await wait_cycles(dut, 40)

    await send()
    assert bench.counts == {"sent": BURST, "limited": flood - BURST}
    for ticks in (1, 3, 40):
        bench.counts = {"sent": 0, "limited": 0}
        for _ in range(ticks):
            await bench.tick()
        await send()
        assert bench.counts["sent"] == min(BURST, ticks * REFILL)
        assert sum(bench.counts.values()) == flood


def test_unreachable() -> None:
    run(
        "unreachable",
        __file__,
        params={"BURST": BURST, "REFILL": REFILL},
        ports={
            "tick": Plain("input", "logic"),
            "enable": Plain("input", "logic"),
            "local_addr": Plain("input", LOCAL),
            "unwanted_valid": Plain("input", "logic"),
            "unwanted": Plain("input", UNWANTED),
            "message": Source(TX),
            "words": Source(WORD),
            "sent": Plain("output", "logic"),
            "limited": Plain("output", "logic"),
            "idle": Plain("output", "logic"),
        },
    )
