# SPDX-License-Identifier: Apache-2.0
"""A device whose sockets change their kernels, its callers, and one that works in another socket without a pause."""

from __future__ import annotations

import random
import struct

from . import cm
from .cci import address
from .device import named
from .peer import INPUT, OUTPUT, Peer, Region
from .session import Network, SimDevice, outputs
from .svtypes import constant

DEVICE = named("test").with_sizes(64)
INCREMENT, HOSTILE, EMPTY, MATMUL = 1, 2, 3, 16
UNAVAILABLE, TIMEOUT, UNKNOWN, BAD_ARGUMENTS = (
    constant(f"compute_pkg::RESULT_{name}") for name in ("SOCKET_UNAVAIL", "KERNEL_TIMEOUT", "UNKNOWN_FUNCTION", "BAD_ARGUMENTS")
)
ACTIVATE, ROLL_BACK, CUT = 1, 2, 3
ERRORS = ("OK", "BAD_COMMAND", "BAD_IMAGE", "BAD_DIGEST", "NO_FORMER", "NOT_LOADED", "NO_IDENTITY")
PRODUCT, BAD = 1, 2  # sockets: matmul or increment; hostile or mute


def callers(count: int) -> list[Peer]:
    return [
        Peer(ip=f"10.77.0.{9 + i}", mac=f"02:00:00:00:00:{9 + i:02x}", qpn=0x900 + i, comm_id=70 + i, tid=80 + i, mtu=1024)
        for i in range(count)
    ]


class Socket:
    """The registers of a socket for its images."""

    def __init__(self, device: SimDevice, number: int) -> None:
        self.device, self.number = device, number

    def read(self, name: str) -> int:
        return self.device.read(address(f"socket.{name}", self.number))

    def write(self, name: str, value: int, word: int = 0) -> None:
        self.device.write(address(f"socket.{name}", self.number) + 4 * word, value)

    def begin(self, image: int) -> None:
        digest = DEVICE.sockets[self.number].images[image].digest
        for i in range(8):
            self.write("IMAGE_DIGEST", int.from_bytes(digest[4 * i : 4 * i + 4], "little"), i)
        self.write("IMAGE_SELECT", image)
        self.write("IMAGE_COMMAND", ACTIVATE)

    @property
    def state(self) -> int:
        return self.read("IMAGE_STATE") & 15

    @property
    def active(self) -> int:
        return self.read("IMAGES") >> 8 & 255

    def finish(self, net: Network, cycles: int = 50_000) -> str:
        """Waits for the end of the command; its error."""
        end = self.device.stats.cycles + cycles
        while self.state:
            assert self.device.stats.cycles < end, "the command does not end"
            net.step(200)
        return ERRORS[self.read("IMAGE_STATE") >> 8 & 255]

    def activate(self, net: Network, image: int) -> str:
        self.begin(image)
        return self.finish(net)


def where_described(net: Network, peer: Peer) -> tuple[int, int, int]:
    """Connects; address, key and length of the description."""
    net.send([peer.req()])
    packet, _ = net.wait(peer, lambda p: int.from_bytes(p.payload[16:18], "big") == cm.REP, "REP")
    peer.take_rep(packet)
    net.send([peer.rtu()])
    return struct.unpack_from(">8xQII", cm.Message(peer.ip, peer.mac, packet.payload).private)


# What counts when a packet is lost, or has to be repeated.
LOSSES = (
    "packet_drop_overflow", "packet_drop_fcs", "packet_drop_icrc", "roce_rx_out_of_seq_request", "roce_rx_duplicate_request",
    "roce_rx_sent_nak", "roce_rx_send_rnr_err", "roce_rx_memory_busy", "roce_tx_packet_retransmit", "roce_tx_packet_seq_err",
    "roce_tx_local_ack_timeout_err",
)  # fmt: skip


class Load:
    """One caller works with `increment` in socket 0 without a pause; its calls' cycles are counted."""

    def __init__(self, device: SimDevice) -> None:
        self.device = device
        self.good, self.other = peers = callers(2)
        self.net = Network(device, peers)
        for peer, size in ((self.good, 32768), (self.other, 64)):
            self.net.connect(peer)
            self.net.set_up(peer, [Region(INPUT | OUTPUT, bytearray(random.Random(1).randbytes(size)))])

    def calls(self, count: int) -> tuple[list[int], tuple[int, ...]]:
        """Cycles of each call in socket 0, and the beats and frames of all together."""
        begin = self.device.stats
        cycles = []
        for _ in range(count):
            region = self.good.regions[0]
            want = bytes(byte + 1 & 255 for byte in region.data)
            assert self.net.call(self.good, INCREMENT) == 0 and outputs(self.good) == [want]
            cycles.append(self.device.read(address("socket.LAST_CYCLES", 0)))
        end = self.device.stats
        assert not any(self.device.counter(name) for name in LOSSES)
        names = ("rx_frames", "tx_frames", "dram_read_bytes", "dram_write_bytes")
        return cycles, tuple(getattr(end, name) - getattr(begin, name) for name in names)
