# SPDX-License-Identifier: Apache-2.0
"""The DSCP of what the device sends: as its register says, and as the caller asks only where the register lets it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from nacelle_tb.cci import address
from nacelle_tb.peer import INPUT, OUTPUT, Peer, Region, parse
from nacelle_tb.session import Network, SimDevice, configure

INCREMENT = 1
OF_CALLER = 1 << 16
CNP = 48 << 8
ASKED = 46  # by the caller


@pytest.fixture
def device() -> Iterator[SimDevice]:
    """A device that is switched on."""
    with SimDevice(64, line_rate_mbps=0xFFFF_FFFF, device="test") as sim:
        configure(sim)
        yield sim


@pytest.mark.parametrize(
    ("setting", "dscp"), [(None, 0), (CNP | 26, 26), (CNP | OF_CALLER | 26, ASKED)], ids=["default", "own", "the caller's"]
)
def test_all_packets_of_a_connection_have_its_class(device: SimDevice, setting: int | None, dscp: int) -> None:
    if setting is not None:
        device.write(address("DSCP"), setting)
    peer = Peer(ip="10.77.0.9", mac="02:00:00:00:00:09", qpn=0x900, comm_id=70, tid=80, traffic_class=ASKED << 2)
    net, seen = Network(device, [peer]), []

    def note(frame: bytes) -> bool:
        if parse(frame) is not None:
            seen.append((frame[42], frame[15] >> 2))
        return False

    net.lose = note
    net.connect(peer)
    device.write(address("DSCP"), CNP | 7)  # a connection keeps what it was made with
    net.set_up(peer, [Region(INPUT | OUTPUT, bytearray(b"\x01" * 3000))])
    assert net.call(peer, INCREMENT) == 0
    assert bytes(peer.regions[0].data) == b"\x02" * 3000
    region = peer.regions[0]
    assert len(net.read(peer, region.device_addr, region.device_rkey, 100)) == 100
    net.disconnect(peer)
    assert {opcode for opcode, _ in seen} >= {0x64, 0x11, 0x10, 0x06}  # connection management, ACK, READ response, WRITE
    assert {class_ for _, class_ in seen} == {dscp}
