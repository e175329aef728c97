# SPDX-License-Identifier: Apache-2.0
"""Device memory goes from caller to caller without what was in it, and the clearing of it costs others nothing that they notice."""

from __future__ import annotations

from nacelle_tb.peer import ACKNOWLEDGE, INPUT, INTERNAL, OUTPUT, Peer, Region
from nacelle_tb.session import Network, SimDevice, configure, outputs

EMPTY = 3
PAGE = 4096
HEAP = 1 << 20
"""Where regions begin with 256 queue pairs"""


def two_callers() -> tuple[Peer, Peer]:
    """At different addresses."""
    return Peer(), Peer(ip="10.77.0.10", mac="02:00:00:00:00:10", qpn=0x99, comm_id=77, tid=88)


def test_nobody_gets_what_the_last_caller_left(device: SimDevice) -> None:
    """Neither as the output of a kernel that writes nothing, nor by READ; whole pages, the kernel's scratch memory too."""
    first, second = two_callers()
    net = Network(device, [first, second])
    secret = bytearray(b"secret" * 700)
    net.connect(first)
    net.set_up(first, [Region(INPUT | OUTPUT, bytearray(secret)) for _ in range(3)])
    assert net.call(first, EMPTY) == 0
    assert device.dram_read(first.regions[2].device_addr, len(secret)) == secret
    net.disconnect(first)
    net.connect(second)
    net.set_up(second, [Region(OUTPUT, bytearray(b"x" * 1000)), Region(INPUT, bytearray(3000)), Region(INTERNAL, bytearray(PAGE + 1))])
    assert second.regions[0].device_addr == first.regions[0].device_addr
    assert device.dram_read(second.regions[0].device_addr, 4 * PAGE) == bytes(4 * PAGE)
    assert net.call(second, EMPTY) == 0
    assert outputs(second) == [bytes(1000)]
    region = second.regions[1]
    assert net.read(second, region.device_addr, region.device_rkey, 3000) == bytes(3000)


def test_nobody_gets_what_memory_held_at_power_on(device: SimDevice) -> None:
    """Nor what its own regions held before it asked for others."""
    device.dram_write(HEAP, b"\xaa" * (16 * PAGE))
    peer = Peer()
    net = Network(device, [peer])
    net.connect(peer)
    for _ in range(2):
        net.set_up(peer, [Region(INPUT | OUTPUT, bytearray(5 * PAGE))])
        assert peer.regions[0].device_addr == HEAP
        assert device.dram_read(HEAP, 5 * PAGE) == bytes(5 * PAGE)
        peer.regions[0].data[:] = b"\xbb" * 5 * PAGE
        assert net.call(peer, EMPTY) == 0
        assert device.dram_read(HEAP, 5 * PAGE) == b"\xbb" * 5 * PAGE
    assert device.dram_read(HEAP + 5 * PAGE, 11 * PAGE) == b"\xaa" * (11 * PAGE), "nothing but what is granted is written"
