# SPDX-License-Identifier: Apache-2.0
"""The Toeplitz hash: Microsoft's vectors ("Verifying the RSS Hash Calculation"), and any key and packet against a model that goes
bit by bit."""

import random
import socket
from pathlib import Path

import cocotb
import pytest
from cocotb.triggers import FallingEdge
from nacelle_tb.bench import Plain, run
from nacelle_tb.streams import start
from nacelle_tb.toeplitz import KEY, toeplitz

# Source, destination, each with its port; hash over addresses, and over addresses and ports.
VECTORS = [
    ("66.9.149.187", 2794, "161.142.100.80", 1766, 0x323E8FC2, 0x51CCC178),
    ("199.92.111.2", 14230, "65.69.140.83", 4739, 0xD718262A, 0xC626B0EA),
    ("24.19.198.95", 12898, "12.22.207.184", 38024, 0xD2D0A5DE, 0x5C2B394A),
    ("38.27.205.30", 48228, "209.142.163.6", 2217, 0x82989176, 0xAFC7327F),
    ("153.39.163.191", 44251, "202.188.127.2", 1303, 0x5D1809C5, 0x10E828A2),
    ("3ffe:2501:200:1fff::7", 2794, "3ffe:2501:200:3::1", 1766, 0x2CC18CD5, 0x40207D3D),
    ("3ffe:501:8::260:97ff:fe40:efab", 14230, "ff02::1", 4739, 0x0F0C461C, 0xDDE51BBF),
    ("3ffe:1900:4545:3:200:f8ff:fe21:67cf", 44251, "fe80::200:f8ff:fe21:67cf", 38024, 0x4B61E985, 0x02D1FEEF),
]


def packed(address: str) -> bytes:
    return socket.inet_pton(socket.AF_INET6 if ":" in address else socket.AF_INET, address)


async def stream(dut, key: bytes, packets: list[tuple[bytes, bytes, bytes]]) -> list[tuple[int, int]]:
    """A packet each cycle: source, destination, ports. Their hashes over addresses, and over both."""
    await start(dut)
    dut.key.value = int.from_bytes(key, "big")
    hashes = []
    for packet in [*packets, None, None, None]:
        await FallingEdge(dut.clk)
        hashes.append((int(dut.address_hash.value), int(dut.address_hash.value) ^ int(dut.port_hash.value)))
        if packet:
            src, dst, ports = packet
            dut.v6.value = len(src) == 16
            dut.src.value = int.from_bytes(src, "big") | (0xFFFF << 32 if len(src) == 4 else 0)
            dut.dst.value = int.from_bytes(dst, "big") | (0xFFFF << 32 if len(dst) == 4 else 0)
            dut.ports.value = int.from_bytes(ports, "big")
    return hashes[3:]


@cocotb.test()
async def vectors(dut) -> None:
    """Those of Microsoft, which also judge the model."""
    packets = [
        (packed(src), packed(dst), src_port.to_bytes(2, "big") + dst_port.to_bytes(2, "big"))
        for src, src_port, dst, dst_port, _, _ in VECTORS
    ]
    expected = [(addresses, both) for *_, addresses, both in VECTORS]
    assert [(toeplitz(KEY, src + dst), toeplitz(KEY, src + dst + ports)) for src, dst, ports in packets] == expected
    assert await stream(dut, KEY, packets) == expected


@cocotb.test()
async def any_key_and_packet(dut) -> None:
    for _ in range(20):
        key = random.randbytes(40)
        packets = []
        for _ in range(20):
            length = random.choice([4, 16])
            packets.append((random.randbytes(length), random.randbytes(length), random.randbytes(4)))
        expected = [(toeplitz(key, src + dst), toeplitz(key, src + dst + ports)) for src, dst, ports in packets]
        assert await stream(dut, key, packets) == expected


@pytest.mark.parametrize("bits", [32])
def test_card_hash(bits: int) -> None:
    ports = {
        "key": Plain("input", "logic [319:0]"),
        "v6": Plain("input", "logic"),
        "src": Plain("input", "packet_pkg::ip_addr_t"),
        "dst": Plain("input", "packet_pkg::ip_addr_t"),
        "ports": Plain("input", "logic [31:0]"),
        "address_hash": Plain("output", f"logic [{bits - 1}:0]"),
        "port_hash": Plain("output", f"logic [{bits - 1}:0]"),
    }
    sources = [Path(__file__).parent / "card_hash_bench.sv"]
    run("card_hash_bench", __file__, params={"BITS": bits}, sources=sources, ports=ports)
