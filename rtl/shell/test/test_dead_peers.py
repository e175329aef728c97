# SPDX-License-Identifier: Apache-2.0
"""Many callers vanish, each at an address of its own: no other waits for them, and their resources are freed."""

from __future__ import annotations

from nacelle_tb.cci import address
from nacelle_tb.long import LONG
from nacelle_tb.peer import INPUT, INTERNAL, OUTPUT, Peer, Region
from nacelle_tb.session import Network, SimDevice, configure

DEAD = 200 if LONG else 60
REP_WITHIN = 60_000  # cycles: a REQ's own time, behind the DREQs and resets of all that are detected at the same time
SET_UP_WITHIN = 20_000  # cycles: its own time, and a release or two
CLOCK_HZ = 250_000_000
STEP = 500_000_000  # cycles, of time that passes


def caller(number: int) -> Peer:
    return Peer(
        ip=f"10.77.{1 + number // 200}.{20 + number % 200}",
        mac=f"02:00:00:00:{1 + number // 256:02x}:{number % 256:02x}",
        qpn=0x700 + number,
        comm_id=0x5000 + number,
        tid=0x9900 + number,
    )


def counter(device: SimDevice, name: str) -> int:
    return device.read(address(name))


def let_pass(device: SimDevice, steps: int) -> int:
    """Time passes while the device is idle; its frames are not answered. Returns the cycles that passed so."""
    passed = 0
    for _ in range(steps):
        passed += device.skip(STEP)
        device.step(500)
        while device.pull() is not None:
            pass
    return passed


def test_many_dead_peers() -> None:
    """They do not even answer ARP. Meanwhile others connect, get memory and go, within a small number of cycles each."""
    with SimDevice(64, line_rate_mbps=0xFFFF_FFFF) as device:
        configure(device)
        dead = [caller(number) for number in range(DEAD)]
        for peer in dead:
            net = Network(device, [peer])
            net.connect(peer)
            net.set_up(peer, [Region(INPUT | OUTPUT, bytearray(64)), Region(INTERNAL, range(1 << 12))])
        fresh = iter(caller(number) for number in range(DEAD, 10_000))
        worst = worst_set_up = served = passed = 0
        while (closed := counter(device, "cm_connection_closed")) < DEAD + served:
            peer = next(fresh)
            net = Network(device, [peer])
            begin = device.stats.cycles
            net.connect(peer)
            worst = max(worst, device.stats.cycles - begin)
            begin = device.stats.cycles
            net.set_up(peer, [Region(INPUT | OUTPUT, bytearray(64))])
            worst_set_up = max(worst_set_up, device.stats.cycles - begin)
            net.disconnect(peer)
            served += 1
            passed += let_pass(device, 10)
            assert passed < 1800 * CLOCK_HZ, f"{closed} of {DEAD + served} are closed after half an hour"
        print(f"{worst} cycles to a REP, {worst_set_up} to regions")
        assert worst < REP_WITHIN, f"{worst} cycles to a REP"
        assert worst_set_up < SET_UP_WITHIN, f"{worst_set_up} cycles to regions"
        assert served > 10
        passed = 0
        while passed < 60 * CLOCK_HZ:  # the last DREQs
            passed += let_pass(device, 1)
        while not device.idle:
            device.step(1000)
        assert counter(device, "cm_connection_opened") == counter(device, "cm_connection_closed")
        # Every place and all memory are there again.
        peers = [next(fresh) for _ in range(device.read(address("QPS")))]
        net = Network(device, peers)
        for peer in peers:
            net.connect(peer)
        net.set_up(peers[0], [Region(INPUT | OUTPUT, bytearray(64)), Region(INTERNAL, range(1 << 20))])
        assert peers[0].regions[0].device_addr == dead[0].regions[0].device_addr
