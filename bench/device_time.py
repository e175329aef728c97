# SPDX-License-Identifier: Apache-2.0
"""Time in the simulated device, by the size of a region: set-up, and calls of an empty kernel.

A caller costs no time here, and neither does the way to it: what is counted is the device's part alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from nacelle_tb.peer import INPUT, Peer, Region
from nacelle_tb.session import Network, SimDevice, configure
from result import Result
from sizes import size_name

HOW = "make bench AREA=rtl"
UNSET = "none is set"
EMPTY = 3
UNLIMITED = 0xFFFF_FFFF
ETHERNET_100G = 100_000
SET_UPS = (1, 4096, 1 << 20, 64 << 20)
CALLS = (1, 4096, 1 << 20)
# Memory is zeroed before it is granted: a beat a cycle, and more than that for what is around it.
SET_UP_CYCLES = 4_000_000


def fresh(mtu: int = 4096, line_rate_mbps: int = UNLIMITED) -> tuple[SimDevice, Network, Peer]:
    """A device, without a line rate limit if none is given, and one caller, connected."""
    device = SimDevice(512, line_rate_mbps=line_rate_mbps)
    configure(device)
    peer = Peer(mtu=mtu)
    net = Network(device, [peer])
    net.connect(peer)
    return device, net, peer


def entered(device: SimDevice) -> tuple[int, int]:
    """When the first beat of what was sent in entered since the last time, and the last one."""
    stamps = []
    while (stamp := device.rx_stamp()) is not None:
        stamps.append(stamp)
    return stamps[0].first_beat, stamps[-1].last_beat


def set_up(regions: Sequence[Region]) -> int:
    """Last beat of the request, which is one frame, in to first beat of the answer out."""
    device, net, peer = fresh()
    entered(device)
    net.send(peer.send_message(peer.advertise(regions)))
    packet, sent = net.wait(peer, lambda p: p.opcode < 0x06, "answer", SET_UP_CYCLES)
    _, asked = entered(device)
    peer.take_advert(packet.payload)
    device.close()
    return sent.first_beat - asked


def call(size: int) -> int:
    """A call with an input of `size` bytes over 100G Ethernet: first beat of the input in to last beat of the answer out."""
    device, net, peer = fresh(line_rate_mbps=ETHERNET_100G)
    net.set_up(peer, [Region(INPUT, bytearray(size))])
    net.step(2000)
    entered(device)
    net.send(peer.call(EMPTY))
    _, _, sent = net.answer(peer)
    began, _ = entered(device)
    device.close()
    return sent.last_beat - began


def measure() -> Iterator[Result]:
    """All of them."""
    for size in SET_UPS:
        cycles = set_up([Region(INPUT, bytearray(size))])
        yield Result(f"rtl.setup.{size_name(size)}.cycles", cycles, "cycles", None, "lower", UNSET, HOW)
    for size in CALLS:
        yield Result(f"rtl.call.{size_name(size)}.cycles", call(size), "cycles", None, "lower", UNSET, HOW)
