# SPDX-License-Identifier: Apache-2.0
"""A device whose network card has a kernel on its path, through the slot: the driver behind translated addresses, checksums that
are said to be right only if they are, a kernel that is cut off and restarted while frames and RoCE go on."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
from nacelle_sim import NO_RATE_LIMIT
from nacelle_tb.cci import address, blocks
from nacelle_tb.event_log import logged
from nacelle_tb.load import Flow, Load
from nacelle_tb.nic import IOVA, SIZE, Nic, now
from nacelle_tb.session import SimDevice, configure
from nacelle_tb.svtypes import constant
from nacelle_tb.virtio import DATA_VALID
from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.l2 import ARP, Ether
from scapy.packet import Raw

OUTSIDE, HOST = "10.0.0.50", "192.168.7.2"
ENTRIES = [(6, 5000, 40000), (17, 5001, 40001)]
LATE = constant("stream_pkg::CUT_LATE")


def ip_number(ip: str) -> int:
    return int.from_bytes(bytes(map(int, ip.split("."))), "big")


def translate(device: SimDevice) -> None:
    """Sets the kernel up for the driver."""
    for at, (protocol, inside, outside) in enumerate(ENTRIES):
        device.write(address("nat.ENTRY"), at)
        device.write(address("nat.INSIDE"), ip_number(HOST))
        device.write(address("nat.PORTS"), inside << 16 | outside)
        device.write(address("nat.PROTOCOL"), protocol)
    for name, value in (("OUTSIDE", ip_number(OUTSIDE)), ("HOST", ip_number(HOST)), ("CONTROL", 1)):
        device.write(address(f"nat.{name}"), value)


def stream(device: SimDevice, name: str) -> int:
    return device.read(address(f"stream.{name}"))


@pytest.fixture
def nic() -> Iterator[Nic]:
    """A device whose driver is behind the kernel. It has broken no rule of the slot at the end."""
    random.seed(1)
    with SimDevice(64, device="nic", line_rate_mbps=NO_RATE_LIMIT) as device:
        for function in (device.slot, device.slot.card):
            function.enable()
        device.slot.card.map(IOVA, SIZE)
        translate(device)  # before the device is on the network
        configure(device)
        yield Nic(device).begin()
        device.slot.check()


def leaving(nic: Nic, size: int) -> tuple[list[bytes], list[bytes]]:
    """Frames of the driver, and as the network shall see them."""
    ether, peer = Ether(src=nic.mac, dst=nic.peer.mac), nic.peer.ip
    data = Raw(random.randbytes(size))
    pairs = [
        (IP(src=HOST, dst=peer) / TCP(sport=5000, dport=80) / data, IP(src=OUTSIDE, dst=peer) / TCP(sport=40000, dport=80) / data),
        (IP(src=HOST, dst=peer) / UDP(sport=5001, dport=9) / data, IP(src=OUTSIDE, dst=peer) / UDP(sport=40001, dport=9) / data),
        (ARP(psrc=HOST, pdst=peer, hwsrc=nic.mac), ARP(psrc=OUTSIDE, pdst=peer, hwsrc=nic.mac)),
    ]
    return [bytes(ether / a) for a, _ in pairs], [bytes(ether / b).ljust(60, b"\0") for _, b in pairs]


def arriving(nic: Nic, size: int) -> tuple[list[bytes], list[bytes]]:
    """Frames of the network, and as the driver shall see them."""
    ether, peer = nic.ether(), nic.peer.ip
    data = Raw(random.randbytes(size))
    pairs = [
        (IP(src=peer, dst=OUTSIDE) / TCP(sport=80, dport=40000) / data, IP(src=peer, dst=HOST) / TCP(sport=80, dport=5000) / data),
        (IP(src=peer, dst=OUTSIDE) / UDP(sport=9, dport=40001) / data, IP(src=peer, dst=HOST) / UDP(sport=9, dport=5001) / data),
    ]
    return [bytes(ether / a) for a, _ in pairs], [bytes(ether / b) for _, b in pairs]


def test_the_driver_is_behind_another_address(nic: Nic) -> None:
    """Both ways, beside WRITEs of RoCE. A translated frame has DATA_VALID as before, one with a wrong checksum has not."""
    device = nic.device
    flow = Flow(2, "write", 1024, 4, (0x1000_0000,))
    load = Load(device, [flow])
    for size in (20, 500, 1400):
        came, wanted = arriving(nic, size)
        for frame in came:
            load.send_other(frame)
        sent, on_line = leaving(nic, size)
        nic.send(*sent)
        load.run(4000)
        now(nic.driver.reap(1, len(sent)))
        device.step(2000)
        load.run(1)
        assert [other.frame for other in load.others] == on_line
        load.others.clear()
        for frame in wanted:
            got = nic.received()
            assert got.frame == frame and got.flags & DATA_VALID
    wrong = bytearray(arriving(nic, 100)[0][1])
    wrong[60] ^= 1
    load.send_other(bytes(wrong))
    load.run(1000)
    got = nic.received()
    assert Ether(got.frame)[IP].dst == HOST and not got.flags & DATA_VALID
    load.check()
    assert flow.done > 20
    assert stream(device, "RX_FRAMES") == 7 and stream(device, "TX_FRAMES") == 9
    assert not stream(device, "RX_ROUND") + stream(device, "TX_ROUND") + stream(device, "STATUS")
    assert device.read(address("nat.TRANSLATED_RX")) == 7 and device.read(address("nat.TRANSLATED_TX")) == 9


def test_a_kernel_that_is_cut_off_and_restarted(nic: Nic) -> None:
    """With a limit that no frame keeps it is cut off: that frame is lost and counted, the others go round it both ways, and RoCE
    knows nothing of it. A restart brings it back, without its settings."""
    device = nic.device
    flow = Flow(2, "write", 256, 2, (0x1000_0000,))
    load = Load(device, [flow])
    load.run(1000)
    device.write(address("stream.LIMIT"), 1)
    came, _ = arriving(nic, 200)
    load.send_other(came[0])
    load.run(1000)
    status = stream(device, "STATUS")
    assert status & 1 and not status & 2 and status >> 8 == LATE
    assert stream(device, "RX_LOST") == 1 and stream(device, "CUTS") == 1
    assert logged(device, "STREAM_CUT") == [(LATE, 0)]
    with pytest.raises(OSError, match="error response"):
        device.read(address("nat.CONTROL"))
    for frame in came:
        load.send_other(frame)
    sent, _ = leaving(nic, 200)
    nic.send(*sent)
    load.run(4000)
    assert [nic.received().frame for _ in came] == came
    now(nic.driver.reap(1, len(sent)))
    device.step(2000)
    load.run(1)
    assert [other.frame for other in load.others] == [frame.ljust(60, b"\0") for frame in sent]
    load.others.clear()
    assert (stream(device, "RX_ROUND"), stream(device, "TX_ROUND")) == (2, 3)

    device.write(address("stream.LIMIT"), 4096)
    device.write(address("stream.COMMAND"), 1)
    device.step(100)
    assert not stream(device, "STATUS") & 1 and device.read(address("nat.CONTROL")) == 0
    translate(device)
    came, wanted = arriving(nic, 300)
    for frame in came:
        load.send_other(frame)
    load.run(1000)
    assert [nic.received().frame for _ in came] == wanted
    load.run(1000)
    load.check()
    assert flow.done > 20 and not flow.repeated


def test_round_the_kernel_by_the_operator(nic: Nic) -> None:
    """Each direction by itself, in order with what is in the kernel."""
    device = nic.device
    came, wanted = arriving(nic, 300)
    for control, expected in ((2, came), (1, wanted), (0, came), (3, wanted)):
        device.write(address("stream.CONTROL"), control)
        for frame in came:
            nic.arrive(frame)
        assert [nic.received().frame for _ in came] == expected
    assert not stream(device, "RX_LOST") + stream(device, "CUTS")


def test_the_blocks_are_in_the_chain(nic: Nic) -> None:
    """The socket's and the kernel's, and behind them the sockets of the device."""
    device, at, found = nic.device, 0, []
    while True:
        found.append(device.read(at))
        at = device.read(at + 8)
        if not at:
            break
    kinds = {block["name"]: block["type"] for block in blocks().values() if "type" in block}
    names = [next((name for name, kind in kinds.items() if kind == word), None) for word in found]
    assert names[names.index("stream") :][:3] == ["stream", "nat", "socket"], names
    assert device.read(address("stream.NAME")).to_bytes(4, "little") == b"nat\0"
