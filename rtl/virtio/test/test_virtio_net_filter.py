# SPDX-License-Identifier: Apache-2.0
"""What a driver asks of the device by commands about the frames that it gets: modes, addresses, VLANs. A model from the standard
says what must arrive; a command that is not as it should be changes nothing."""

import random
from dataclasses import dataclass, field

import cocotb
import pytest
from nacelle_tb.bench import run
from nacelle_tb.long import some
from nacelle_tb.planes import network_card
from nacelle_tb.streams import wait_cycles
from nacelle_tb.virtio import (
    ALLMULTI,
    ALLUNI,
    ANNOUNCE_ACK,
    CTRL_ANNOUNCE,
    CTRL_MAC,
    CTRL_RX,
    CTRL_VLAN,
    F_CTRL_MAC_ADDR,
    F_CTRL_RX,
    F_CTRL_RX_EXTRA,
    F_CTRL_VLAN,
    F_CTRL_VQ,
    F_GUEST_ANNOUNCE,
    F_MQ,
    F_VERSION_1,
    MAC_ADDR_SET,
    MAC_TABLE_SET,
    NOBCAST,
    NOMULTI,
    NOUNI,
    PROMISC,
    VLAN_ADD,
    VLAN_DEL,
    Buffer,
    mac_table,
)
from nacelle_tb.widths import WIDTHS, at_width
from net_bench import MAC, NetBench, features, params

ENTRIES = 16
ALL = (F_CTRL_RX, F_CTRL_VLAN, F_CTRL_RX_EXTRA, F_CTRL_MAC_ADDR, F_GUEST_ANNOUNCE)
OWN = MAC.to_bytes(6, "big")
BROADCAST = b"\xff" * 6
OTHER = bytes.fromhex("020000000999")
DEVICE_AT = 0x80


def unicast(number: int) -> bytes:
    return b"\x02\x11\x22\x33" + number.to_bytes(2, "big")


def group(number: int) -> bytes:
    return b"\x33\x33\x00\x00" + number.to_bytes(2, "big")


def to(dst: bytes, vlan: int | None = None, size: int = 60) -> bytes:
    tag = b"" if vlan is None else b"\x81\x00" + (random.getrandbits(4) << 12 | vlan).to_bytes(2, "big")
    return dst + OTHER + tag + b"\x88\xb5" + random.randbytes(max(size - 14 - len(tag), 0))


@dataclass
class Model:
    """5.1.6.5.1 to 5.1.6.5.3."""

    modes: set[int] = field(default_factory=set)
    table: set[bytes] = field(default_factory=set)
    all_of: set[bool] = field(default_factory=set)  # True: groups, False: unicast addresses did not fit
    vlans: set[int] = field(default_factory=set)
    station: bytes = OWN

    def set_table(self, addresses: list[bytes], groups: list[bytes]) -> None:
        ordered = addresses + groups
        self.table = set(ordered[:ENTRIES])
        self.all_of = {bool(address[0] & 1) for address in ordered[ENTRIES:]}

    def wants(self, frame: bytes) -> bool:
        dst = frame[:6]
        if PROMISC in self.modes:
            return True
        if frame[12:14] == b"\x81\x00" and int.from_bytes(frame[14:16], "big") & 0xFFF not in self.vlans:
            return False
        if dst == BROADCAST:
            return NOBCAST not in self.modes
        if dst[0] & 1:
            return NOMULTI not in self.modes and (ALLMULTI in self.modes or True in self.all_of or dst in self.table)
        return NOUNI not in self.modes and (
            ALLUNI in self.modes or False in self.all_of or dst == self.station or dst in self.table
        )


class Bench(NetBench):
    """A device that filters, with buffers."""

    async def ready(self) -> "Bench":
        await self.begin()
        await self.fill()
        return self

    async def fill(self) -> None:
        while len(self.queues[0].chains) < 48:
            self.post(0, [256])
        self.publish(0)
        await wait_cycles(self.dut, 1000)

    async def mode(self, mode: int, on: bool) -> None:
        assert await self.command(bytes([CTRL_RX, mode, on]), cuts=random.randint(0, 2)) == 0

    async def table(self, addresses: list[bytes], groups: list[bytes]) -> None:
        command = bytes([CTRL_MAC, MAC_TABLE_SET]) + mac_table(addresses, groups)
        assert await self.command(command, cuts=random.randint(0, 4)) == 0

    async def check(self, model: Model, frames: list[bytes]) -> None:
        """What the model wants arrives, in order; nothing else does, or is counted."""
        before = await self.counter("RX")
        wanted = [frame for frame in frames if model.wants(frame)]
        for frame in frames:
            self.rx.give(frame)
        for frame in wanted:
            got = (await self.received()).frame
            assert got == frame, f"{got[:16].hex()} instead of {frame[:16].hex()}: {model}"
        await wait_cycles(self.dut, 300)
        assert not self.queues[0].pending, model
        assert await self.counter("RX") == before + len(wanted)
        assert [await self.counter(name) for name in ("RX_NO_BUFFER", "RX_OVERRUN", "RX_BAD")] == [0, 0, 0]
        await self.fill()


def some_frames() -> list[bytes]:
    """To everybody who may be meant; short and long, with and without a tag."""
    pool = [OWN, BROADCAST, OTHER, unicast(3), unicast(40), group(3), group(40), random.randbytes(6)]
    random.shuffle(pool)
    return [to(dst, random.choice([None, None, 0, 5, 4095, 37]), random.choice([18, 60, 64, 200])) for dst in pool]


@cocotb.test()
async def modes_and_tables_decide_what_arrives(dut) -> None:
    """Any commands in any order, against the model."""
    bench = await Bench(dut, wanted=features(*ALL)).ready()
    model = Model()
    await bench.check(model, some_frames())
    for _ in range(40):
        match random.randrange(4):
            case 0 | 1:
                mode, on = random.randrange(6), random.random() < 0.4
                await bench.mode(mode, on)
                (model.modes.add if on else model.modes.discard)(mode)
            case 2:
                addresses = [unicast(i) for i in range(random.choice([0, 4, 16, 17]))]
                groups = [group(i) for i in range(random.choice([0, 4, 12, 13, 41]))]
                await bench.table(addresses, groups)
                model.set_table(addresses, groups)
            case _:
                vid, add = random.choice([0, 5, 37, 4095]), random.random() < 0.6
                command = bytes([CTRL_VLAN, VLAN_ADD if add else VLAN_DEL]) + vid.to_bytes(2, "little")
                assert await bench.command(command, cuts=1) == 0
                (model.vlans.add if add else model.vlans.discard)(vid)
        await bench.check(model, some_frames())


@cocotb.test()
async def what_is_not_negotiated_filters_nothing(dut) -> None:
    """And its commands are refused."""
    bench = await Bench(dut, wanted=features()).ready()
    everything = Model(modes={PROMISC})
    for command in (
        bytes([CTRL_RX, PROMISC, 0]),
        bytes([CTRL_RX, NOBCAST, 1]),
        bytes([CTRL_MAC, MAC_TABLE_SET]) + mac_table([], []),
        bytes([CTRL_MAC, MAC_ADDR_SET]) + OWN,
        bytes([CTRL_VLAN, VLAN_ADD, 5, 0]),
        bytes([CTRL_ANNOUNCE, ANNOUNCE_ACK]),
    ):
        assert await bench.command(command) == 1, command
    await bench.check(everything, [*some_frames(), to(BROADCAST, 5)])


@cocotb.test()
async def addresses_alone_leave_vlans(dut) -> None:
    """VIRTIO_NET_F_CTRL_RX without the others."""
    bench = await Bench(dut, wanted=features(F_CTRL_RX)).ready()
    assert await bench.command(bytes([CTRL_RX, ALLUNI, 1])) == 1
    await bench.check(Model(vlans=set(range(4096))), some_frames())


@cocotb.test()
async def commands_that_are_wrong_change_nothing(dut) -> None:
    """Wrong lengths, values, classes, numbers of addresses, too long: each is answered with an error; then all is as before."""
    bench = await Bench(dut, wanted=features(*ALL)).ready()
    model = Model(modes={ALLMULTI}, table={unicast(3)}, vlans={5})
    await bench.mode(ALLMULTI, True)
    await bench.table([unicast(3)], [])
    assert await bench.command(bytes([CTRL_VLAN, VLAN_ADD, 5, 0])) == 0
    table = bytes([CTRL_MAC, MAC_TABLE_SET])
    full = mac_table([unicast(40)] * 3, [group(40)] * 2)
    for command in (
        b"", bytes([CTRL_RX]), bytes([CTRL_RX, PROMISC]), bytes([CTRL_RX, PROMISC, 2]), bytes([CTRL_RX, PROMISC, 1, 0]),
        bytes([CTRL_RX, 6, 1]), bytes([CTRL_RX, 0x80, 1]), bytes([9, 0, 1]), bytes([CTRL_MAC, 2, 0]),
        table, table + full[:-1], table + full + b"\0", table + full[:4], table + full[:22], table + bytes(4), table + bytes(9),
        table + b"\xff\xff\xff\xff" + unicast(40) * 8, table + b"\0\0\0\1" + unicast(40) * 8,
        table + mac_table([unicast(40)] * 3000, []),
        bytes([CTRL_VLAN, VLAN_ADD, 6]), bytes([CTRL_VLAN, VLAN_ADD, 5, 0x10]), bytes([CTRL_VLAN, VLAN_DEL, 5, 0, 0]),
        bytes([CTRL_VLAN, 2, 5, 0]), bytes([CTRL_VLAN, VLAN_DEL, 5, 0xF0]),
        bytes([CTRL_MAC, MAC_ADDR_SET]) + OWN[:5], bytes([CTRL_MAC, MAC_ADDR_SET]) + OWN + b"\0",
        bytes([CTRL_ANNOUNCE, ANNOUNCE_ACK, 0]), bytes([CTRL_ANNOUNCE, 1]),
    ):  # fmt: skip
        assert await bench.command(command, cuts=random.randint(0, 3)) == 1, command[:30]
    await bench.check(model, [*some_frames(), to(OWN, 5), to(OWN, 6), to(unicast(3)), to(unicast(40))])


@cocotb.test()
async def the_longest_table_is_taken(dut) -> None:
    """680 addresses, of which those that have room are kept: their kind passes as a whole."""
    bench = await Bench(dut, wanted=features(*ALL)).ready()
    model = Model()
    groups = [group(i) for i in range(679)]
    await bench.table([unicast(3)], groups)
    model.set_table([unicast(3)], groups)
    await bench.check(model, some_frames())


@cocotb.test()
async def a_table_that_changes_loses_nothing_that_both_have(dut) -> None:
    """Frames for an address of the old and the new table come meanwhile."""
    bench = await Bench(dut, wanted=features(*ALL), size=256).ready()
    while len(bench.queues[0].free) > 8:
        bench.post(0, [256])
    bench.publish(0)
    await bench.table([unicast(i) for i in range(8)], [])
    await wait_cycles(dut, 2000)
    frames = [to(unicast(7)) for _ in range(150)]
    for frame in frames:
        bench.rx.give(frame)
    for turn in range(3):
        await bench.table([unicast(i) for i in ([7, 1] if turn % 2 else [20, 21, 22, 7])], [])
    for frame in frames:
        assert (await bench.received()).frame == frame


@cocotb.test()
async def only_a_free_address_is_taken(dut) -> None:
    """Where the address is the device's to say, another one is refused; else any but that which is taken, of no group. The
    configuration shows it; it is gone when it is not free any more, and after a reset."""
    bench = await Bench(dut, wanted=features(*ALL)).ready()
    dut.mac_taken.value = int.from_bytes(OTHER, "big")

    async def sets(address: bytes) -> int | None:
        return await bench.command(bytes([CTRL_MAC, MAC_ADDR_SET]) + address, cuts=1)

    async def shown() -> bytes:
        return (await bench.pci.load(DEVICE_AT, 6)).to_bytes(6, "little")

    assert await sets(unicast(9)) == 1 and await sets(OWN) == 0 and await shown() == OWN
    dut.mac_free.value = 1
    for refused in (OTHER, group(1), BROADCAST, bytes(6)):
        assert await sets(refused) == 1, refused.hex()
    generation = await bench.pci.get("config_generation")
    assert await sets(unicast(9)) == 0 and await shown() == unicast(9)
    assert await bench.pci.get("config_generation") != generation
    assert int(dut.station.value).to_bytes(6, "big") == unicast(9)
    await bench.check(Model(station=unicast(9)), [to(OWN), to(unicast(9)), to(BROADCAST)])
    dut.mac_free.value = 0
    await wait_cycles(dut, 3)
    assert await shown() == OWN
    dut.mac_free.value = 1
    await bench.initialize()
    assert await shown() == OWN


@cocotb.test()
async def a_reset_forgets_all(dut) -> None:
    """Modes, tables and VLANs, also where it comes in the middle of a long command, which does not hold it up."""
    bench = await Bench(dut, wanted=features(*ALL)).ready()
    for _ in range(3):
        await bench.mode(ALLUNI, True)
        await bench.table([], [group(3)])
        for vid in (0, 5, 4095):
            assert await bench.command(bytes([CTRL_VLAN, VLAN_ADD]) + vid.to_bytes(2, "little")) == 0
        command = bytes([CTRL_MAC, MAC_TABLE_SET]) + mac_table([], [group(i) for i in range(679)])
        at, ack = bench.heap.take(len(command)), bench.heap.take(1)
        bench.memory.write(at, command)
        bench.queues[-1].add([Buffer(at, len(command)), Buffer(ack, 1, True)])
        bench.publish(len(bench.queues) - 1)
        await wait_cycles(dut, random.randrange(100, 3000))
        assert await bench.pci.reset(polls=400) < 400
        await bench.initialize()
        await bench.fill()
        await bench.check(Model(), [*some_frames(), to(OWN, 5), to(OWN, 0), to(group(3))])


@cocotb.test()
@cocotb.parametrize(asked=[True, False])
async def a_link_that_comes_asks_for_an_announcement(dut, asked: bool) -> None:
    """VIRTIO_NET_S_ANNOUNCE until the driver has acknowledged, with a configuration interrupt and a new generation; not without
    VIRTIO_NET_F_GUEST_ANNOUNCE."""
    bench = await Bench(dut, wanted=features(*ALL, without=0 if asked else 1 << F_GUEST_ANNOUNCE)).ready()
    await bench.pci.set("config_msix_vector", 7)
    bench.interrupt.received.clear()
    for status, up in ((0, 0), (3 if asked else 1, 1)):
        dut.link_up.value = up
        while await bench.interrupt.recv() != 7:
            pass
        assert await bench.pci.load(DEVICE_AT + 6, 2) == status
    generation = await bench.pci.get("config_generation")
    assert await bench.command(bytes([CTRL_ANNOUNCE, ANNOUNCE_ACK])) == (0 if asked else 1)
    assert await bench.pci.load(DEVICE_AT + 6, 2) == 1
    assert (await bench.pci.get("config_generation") != generation) == asked


@cocotb.test()
async def what_needs_commands_needs_a_control_queue(dut) -> None:
    bench = await Bench(dut).ready()
    offered = await bench.pci.offered()
    for bit in (*ALL, F_MQ):
        if offered >> bit & 1:
            await bench.pci.reset()
            assert not await bench.pci.negotiate(1 << F_VERSION_1 | 1 << bit), bit
            await bench.pci.reset()
            assert await bench.pci.negotiate(1 << F_VERSION_1 | 1 << bit | 1 << F_CTRL_VQ), bit


@pytest.mark.parametrize("width", some(WIDTHS))
def test_virtio_net_filter(width: int) -> None:
    env = {"NACELLE_PAIRS": "1"} | at_width(width, "decide_what|change_nothing", everything_at=64)
    run("virtio_net", __file__, params=params(width, 1), ports=network_card(width), random_state=True, env=env)
