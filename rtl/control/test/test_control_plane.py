# SPDX-License-Identifier: Apache-2.0
"""control_plane: the register map as programs rely on it, counters that lose nothing, a bus that no unit can block."""

from __future__ import annotations

import itertools
import random

import cocotb
from cocotb.triggers import FallingEdge, RisingEdge, with_timeout
from cocotbext.axi import AxiLiteBus, AxiLiteMaster, AxiLiteRam, AxiResp
from nacelle_tb.bench import AxilMaster, AxilSlave, Plain, Several, Sink, Type, run
from nacelle_tb.cci import counters
from nacelle_tb.streams import CLOCK_NS, start, wait_cycles
from nacelle_tb.svtypes import struct
from nacelle_tb.values import digits

digits()

SOCKETS = 3
PARAMS = {
    "DATA_W": 256,
    "CLOCK_HZ": 200_000_000,
    "QPS": 64,
    "MRS": 512,
    "SOCKETS": SOCKETS,
    "BUSES": 2,
    "PCIE": 1,
    "CARD": 1,
    "DRAM_BYTES": Type("64'h3_4000_0000"),
    "BUILD_REVISION": Type("32'h1234_abcd"),
    "BUILD_DIGEST": Type("64'h0123_4567_89ab_cdef"),
    "MESSAGES": Type("64'h5_0000_3000"),
    "MESSAGES_BYTES": 0x4000,
}
EVENTS = {
    "packet": "packet_pkg::packet_events_t",
    "roce_rx": "roce_events_pkg::roce_rx_events_t",
    "roce_tx": "roce_events_pkg::roce_tx_events_t",
    "cm": "roce_events_pkg::cm_events_t",
    "rpc": "compute_pkg::rpc_events_t",
    "memory": "memory_pkg::memory_events_t",
    "service": "services_pkg::service_events_t",
    "address": "address_pkg::address_events_t",
    "pcie": "pcie_pkg::pcie_events_t",
}
COUNTERS = counters()
# Written down here once more: host software relies on these.
SETTINGS = {  # address: (writable bits, reset)
    0x20: (0xFFFFFFFF, 0), 0x24: (0xFFFF, 0), 0x28: (0xFFFFFFFF, 0), 0x2C: (0x3F, 0), 0x30: (0xFFFFFFFF, 0),
    0x38: (1, 0), 0x3C: (0xFFFF, 12345), 0x40: (0xFFFFFF, 30000), 0x44: (0xFFFFFF, 60000),
    0x48: (0x1, 1), 0x4C: (0xFFFF, 0), 0x50: (0xFFFF, 64 // 4), 0x54: (0xFFFF, 64 // 2), 0x58: (0xFFFF, 0),
    0x5C: (0x3FFFFFFF, 0),
    0x80: (0x1, 1), 0x84: (0x1, 1), 0x88: (0x1, 1),
    0x8C: (0x1, 1), 0x90: (0x3FF, 1019), 0x94: (0xFFFF, 55), 0x98: (0x7FF, 1024), 0x9C: (0xFFFF, 50),
    0xA0: (0xFFFFF, 0), 0xA4: (0xFFFF, 40), 0xA8: (0xFFFF, 400), 0xAC: (0xFFFFFF, 10000000), 0xB0: (0xFFFF, 55),
    0xB4: (0xF, 11), 0xB8: (0x7F, 50), 0xBC: (0xFFFFF, 1), 0xC0: (0xFFFFF, 0), 0xC4: (0x1F, 5),
    0xC8: (0xFFFF, 50),
    0x110: (0x3, 0),
    0xD0: (0xFFFF, 50001), 0xD4: (0xFFFFFFFF, 0), 0xD8: (0x3F, 0), 0xDC: (0xFFFF, 60),
}  # fmt: skip
SECRETS = (0xE0, 0xE4, 0xE8, 0xEC)  # cannot be read
NETWORK_ONLY = (0xF0, 0xF4, 0xF8, 0xFC, 0x100)
COMMANDS = 0x114  # renew, give up
DISCOVERY = 0x130
NETWORK_CARD = 0x158
MAC_LO, MAC_HI = 0x20, 0x24
CARD = 1
FACTS = {
    0x00: 0x4E41434C, 0x04: 0x00000001, 0x08: 0x1000, 0x0C: 200_000_000, 0x10: 64, 0x14: SOCKETS, 0x18: 0x40000000, 0x1C: 3,
    0x60: 0x3000, 0x64: 5, 0x68: 0x4000, 0x6C: 512, 0x70: 256,
    0x3E8: 0x1234ABCD, 0x3EC: 0x89ABCDEF, 0x3F0: 0x01234567,
}  # fmt: skip


class Bus:
    """The bus's master and what hangs on it."""

    def __init__(self, dut, sockets: int = SOCKETS) -> None:
        self.dut = dut
        self.masters = [AxiLiteMaster(AxiLiteBus.from_prefix(dut, f"bus{i}"), dut.clk, dut.rst) for i in range(2)]
        self.master = self.masters[0]
        self.rams = [AxiLiteRam(AxiLiteBus.from_prefix(dut, f"socket{i}"), dut.clk, dut.rst, size=4096) for i in range(sockets)]
        self.management = AxiLiteRam(AxiLiteBus.from_prefix(dut, "management"), dut.clk, dut.rst, size=4096)
        self.admission = AxiLiteRam(AxiLiteBus.from_prefix(dut, "admission"), dut.clk, dut.rst, size=4096)
        self.trace = AxiLiteRam(AxiLiteBus.from_prefix(dut, "trace"), dut.clk, dut.rst, size=4096)
        for i in range(sockets, SOCKETS):
            for name in ("awready", "wready", "bvalid", "arready", "rvalid"):
                getattr(dut, f"socket{i}_{name}").value = 0
        for name in EVENTS:
            getattr(dut, f"{name}_events").value = 0
        dut.chip_id.value = 0
        dut.to_log.value = 0
        dut.now.value = 0

    async def read(self, address: int) -> tuple[int, AxiResp]:
        answer = await with_timeout(self.master.read(address, 4), 3000 * CLOCK_NS, "ns")
        return int.from_bytes(answer.data, "little"), answer.resp

    async def write(self, address: int, value: int) -> AxiResp:
        answer = await with_timeout(self.master.write(address, value.to_bytes(4, "little")), 3000 * CLOCK_NS, "ns")
        return answer.resp

    async def get(self, address: int) -> int:
        value, resp = await self.read(address)
        assert resp == AxiResp.OKAY, f"{address:#x}: {resp!r}"
        return value


async def begin(dut, sockets: int = SOCKETS) -> Bus:
    bus = Bus(dut, sockets)
    dut.link_up.value = 0
    await start(dut)
    return bus


@cocotb.test()
async def facts_and_reset_values(dut) -> None:
    bus = await begin(dut)
    for address, value in FACTS.items():
        assert await bus.get(address) == value, f"{address:#x}"
        assert await bus.write(address, 0x55555555) == AxiResp.DECERR
        assert await bus.get(address) == value, f"{address:#x} changed by a write"
    for address, (_, reset) in SETTINGS.items():
        assert await bus.get(address) == reset, f"{address:#x}"


@cocotb.test()
async def every_device_has_an_id(dut) -> None:
    """That of its chip; without one the EUI-64 of its MAC address."""
    bus = await begin(dut)
    await bus.write(0x20, 0x00630001)  # 52:54:00:63:00:01
    await bus.write(0x24, 0x5254)
    assert int(dut.device_id.value) == 0x5054_00FF_FE63_0001
    assert (await bus.get(0x3E0), await bus.get(0x3E4)) == (0xFE630001, 0x505400FF)
    dut.chip_id.value = 0xFEED_0123_4567_89AB
    assert (await bus.get(0x3E0), await bus.get(0x3E4)) == (0x456789AB, 0xFEED0123)
    assert int(dut.device_id.value) == 0xFEED_0123_4567_89AB


@cocotb.test()
async def settings_reach_the_device(dut) -> None:
    bus = await begin(dut)
    values = {address: random.getrandbits(32) & mask for address, (mask, _) in SETTINGS.items()}
    values[0x38] = 0
    for address, value in values.items():
        assert await bus.write(address, value | (0 if address == 0x38 else 0xFFFFFFFF & ~SETTINGS[address][0])) == AxiResp.OKAY
    assert await bus.write(0x38, 1) == AxiResp.OKAY
    values[0x38] = 1
    for address, value in values.items():
        assert await bus.get(address) == value, f"{address:#x}"
    assert int(dut.enable.value) == 1 and int(dut.mac.value) == values[0x24] << 32 | values[0x20]
    address = struct("address_pkg::address_settings_t").unpack(int(dut.address_settings.value))
    assert (address.fixed.ip, address.fixed.prefix_length, address.fixed.gateway) == (values[0x28], values[0x2C], values[0x30])
    assert (address.mode, address.seed) == (values[0x110], int(dut.seed.value))
    assert int(dut.rpc_port.value) == values[0x3C]
    assert (int(dut.extensions.value), int(dut.listen_port.value)) == (values[0x48], values[0x4C])
    limits = vars(struct("roce_pkg::cm_limits_t").unpack(int(dut.connection_limits.value)))
    assert list(limits.values()) == [values[address] for address in (0x50, 0x54, 0x58)]
    assert int(dut.memory_per_caller.value) == values[0x5C]
    congestion = vars(struct("roce_cc_pkg::cc_config_t").unpack(int(dut.congestion.value)))
    assert list(congestion.values()) == [values[address] for address in range(0x80, 0xCC, 4)]
    token = [random.getrandbits(32) for _ in SECRETS]
    for address, value in zip((*SECRETS, *NETWORK_ONLY), [*token, 1, 2, 3, 4, 5], strict=True):
        assert await bus.write(address, value) == AxiResp.OKAY
        assert await bus.read(address) == (0, AxiResp.DECERR)
    access = struct("cci_pkg::cci_settings_t").unpack(int(dut.cci_settings.value))
    assert (access.port, access.source, access.source_prefix) == (values[0xD0], values[0xD4], values[0xD8])
    assert access.session_cycles == values[0xDC] * 200_000_000
    assert access.token == sum(word << 32 * i for i, word in enumerate(token))
    assert int(dut.keepalive_cycles.value) == values[0x40] * 200_000
    assert int(dut.kernel_timeout_cycles.value) == values[0x44] * 200_000

    # The addresses stay while the device is enabled; the rest may change.
    for address in (0x20, 0x24, 0x28, 0x2C, 0x30):
        await bus.write(address, ~values[address] & 0xFFFFFFFF)
        assert await bus.get(address) == values[address], f"{address:#x}"
    await bus.write(0x40, 7)
    assert await bus.get(0x40) == 7
    await bus.write(0x38, 0)
    await bus.write(0x28, 0x0A000001)
    assert await bus.get(0x28) == 0x0A000001


@cocotb.test()
async def the_address_in_use_is_read(dut) -> None:
    bus = await begin(dut)
    local = dict(ip=random.getrandbits(32), prefix_length=random.randrange(33), gateway=random.getrandbits(32))
    status = dict(origin=2, state=4, dhcp=6, lease_left=random.getrandbits(24), server=random.getrandbits(32))
    dut.local_addr.value = struct("packet_pkg::local_addr_t").pack(local)
    dut.address_status.value = struct("address_pkg::address_status_t").pack(status)
    values = [local["ip"], local["prefix_length"], local["gateway"], 2 | 4 << 4 | 6 << 8, status["lease_left"], status["server"]]
    for address, value in zip(range(0x118, 0x130, 4), values, strict=True):
        assert await bus.get(address) == value, f"{address:#x}"
        assert await bus.write(address, 0) == AxiResp.DECERR


@cocotb.test()
async def discovery_is_on_until_it_is_switched_off(dut) -> None:
    bus = await begin(dut)
    settings = struct("services_pkg::discovery_settings_t")
    port = await bus.get(0x3C)
    for value, then in ((3, 2), (2, 1), (1, 3), (3, 0), (0, 3)):
        assert vars(settings.unpack(int(dut.discovery.value))) == {"mdns": value & 1, "lldp": value >> 1, "port": port}
        assert await bus.get(DISCOVERY) == value
        await bus.write(DISCOVERY, then)


@cocotb.test()
async def the_link_is_as_its_registers_say(dut) -> None:
    """Flow control on, for 100 Gb/s; no VLAN, no ICMP errors; and each field where it belongs."""
    bus = await begin(dut)
    link = struct("link_pkg::link_settings_t")
    flow = {"pause": 1, "pfc": 1, "quanta_per_cycle": round(100e9 / 512 / PARAMS["CLOCK_HZ"] * 65536), "limit_ms": 200}
    settings = {"flow": flow, "priorities": {"roce": 3, "other": 0}, "vlan": {"enable": 0, "untagged": 0, "vid": 1}}
    assert await bus.get(0x140) == 3
    assert int(dut.link.value) == link.pack(settings) and int(dut.icmp_errors.value) == 0
    for address, value, part in (
        (0x140, 2, {"flow": flow | {"pause": 0}}),
        (0x140, 1, {"flow": flow | {"pfc": 0}}),
        (0x140, 3, {}),
        (0x144, 0x2ABCD, {"flow": flow | {"quanta_per_cycle": 0x2ABCD}}),
        (0x144, flow["quanta_per_cycle"], {}),
        (0x148, 0x3FE, {"flow": flow | {"limit_ms": 0x3FE}}),
        (0x148, 200, {}),
        (0x14C, 0x56, {"priorities": {"roce": 6, "other": 5}}),
        (0x14C, 3, {}),
        (0x150, 0x80010ABC, {"vlan": {"enable": 1, "untagged": 1, "vid": 0xABC}}),
    ):
        assert await bus.write(address, value) == AxiResp.OKAY
        assert await bus.get(address) == value
        assert int(dut.link.value) == link.pack(settings | part), hex(address)
    await bus.write(0x154, 1)
    assert int(dut.icmp_errors.value) == 1


@cocotb.test()
async def the_network_card_is_as_its_register_says(dut) -> None:
    """It has an address of its own, which no manufacturer has given, or the device's; and each field where it belongs."""
    bus = await begin(dut)
    card = struct("card_pkg::card_settings_t")
    addresses = {0x024E41000102: 0x064E41000102, 0x001B21AABBCC: 0x061B21AABBCC, 0x060000000001: 0x020000000001}
    for mac, own in addresses.items():
        await bus.write(MAC_LO, mac & 0xFFFF_FFFF)
        await bus.write(MAC_HI, mac >> 32)
        fields = {"present": CARD, "mac": own}
        for value, part in (
            (0, {}), (1, {"shared": 1, "mac": mac}), (2, {"promiscuous": 1}), (4, {"answers_arp": 1}), (8, {"answers_echo": 1}),
            (16, {"any_source": 1}),
        ):  # fmt: skip
            assert await bus.write(NETWORK_CARD, value | 0xC000_0000) == AxiResp.OKAY
            assert await bus.get(NETWORK_CARD) == value | CARD << 31
            assert int(dut.card.value) == card.pack(fields | part)
    await bus.write(NETWORK_CARD, 0)
    dut.link_up.value = 1
    assert await bus.get(NETWORK_CARD) == 1 << 30 | CARD << 31


@cocotb.test()
async def a_command_is_a_pulse(dut) -> None:
    bus = await begin(dut)
    settings = struct("address_pkg::address_settings_t")
    seen = {"renew": 0, "give_up": 0}

    async def watch() -> None:
        while True:
            await RisingEdge(dut.clk)
            now = settings.unpack(int(dut.address_settings.value))
            for name in seen:
                seen[name] += getattr(now, name)

    cocotb.start_soon(watch())
    for value, expected in ((1, (1, 0)), (2, (1, 1)), (0, (1, 1)), (3, (2, 2))):
        assert await bus.write(COMMANDS, value) == AxiResp.OKAY
        assert tuple(seen.values()) == expected
    assert await bus.read(COMMANDS) == (0, AxiResp.DECERR)


@cocotb.test()
async def addresses_that_nobody_owns(dut) -> None:
    """DECERR for reads and writes, and the bus goes on."""
    bus = await begin(dut)
    end = 0x400 + 4 * len(COUNTERS)
    for address in (0x74, 0x7C, 0xCC, 0x3FC, end, 0xFFC, 0x301C, 0x7000, 0xF000, 0x10000 + SOCKETS * 0x1000, 0x80000, 0xFFFFC):
        assert (await bus.read(address)) == (0, AxiResp.DECERR), f"{address:#x}"
        assert await bus.write(address, 1) == AxiResp.DECERR, f"{address:#x}"
    assert await bus.get(0) == FACTS[0]


@cocotb.test()
async def the_seed_cannot_be_read(dut) -> None:
    """Keys follow from it: it is written, and nothing on the bus shows it."""
    bus = await begin(dut)
    seed = 0xC0FFEE42
    assert await bus.write(0x34, seed) == AxiResp.OKAY
    assert int(dut.seed.value) == seed
    for address in range(0, 0x1000, 4):
        assert (await bus.read(address))[0] != seed, f"{address:#x}"
    assert await bus.read(0x34) == (0, AxiResp.DECERR)


@cocotb.test()
@cocotb.parametrize(pause=[False, True])
async def sockets_see_their_own_page(dut, pause: bool) -> None:
    bus = await begin(dut)
    if pause:
        rng = random.Random(3)
        coin = lambda: iter(lambda: rng.random() < 0.5, None)  # noqa: E731
        for channel in (bus.master.write_if.aw_channel, bus.master.write_if.w_channel, bus.master.write_if.b_channel,
                        bus.master.read_if.ar_channel, bus.master.read_if.r_channel):  # fmt: skip
            channel.set_pause_generator(coin())
        for ram in bus.rams:
            for channel in (ram.write_if.aw_channel, ram.write_if.w_channel, ram.write_if.b_channel,
                            ram.read_if.ar_channel, ram.read_if.r_channel):  # fmt: skip
                channel.set_pause_generator(coin())
    await bus.write(0x1104, 0x2468)
    assert await bus.write(0x2108, 0x1357) == AxiResp.OKAY
    assert await bus.get(0x2108) == 0x1357 == int.from_bytes(bus.admission.read(0x108, 4), "little")
    assert await bus.write(0x4804, 0x9BDF) == AxiResp.OKAY
    assert await bus.get(0x4804) == 0x9BDF == int.from_bytes(bus.trace.read(0x804, 4), "little")
    assert await bus.get(0x1104) == 0x2468 == int.from_bytes(bus.management.read(0x104, 4), "little")
    model: dict[int, int] = {}
    for _ in range(60):
        address = 0x10000 + random.randrange(SOCKETS) * 0x1000 + 4 * random.randrange(1024)
        model[address] = random.getrandbits(32)
        assert await bus.write(address, model[address]) == AxiResp.OKAY
    # Reads and writes at once.
    other = [cocotb.start_soon(bus.write(0x40, n)) for n in range(10)]
    for address, value in model.items():
        assert await bus.get(address) == value
        i, offset = (address - 0x10000) >> 12, address & 0xFFF
        assert int.from_bytes(bus.rams[i].read(offset, 4), "little") == value
    for task in other:
        assert await task == AxiResp.OKAY


@cocotb.test()
async def every_event_has_its_counter(dut) -> None:
    """Names, addresses and fields belong together: each event pulses a different number of times."""
    bus = await begin(dut)
    bits = {name: struct(kind).leaves() for name, kind in EVENTS.items()}
    named = [(name, field) for name, fields in bits.items() for field in fields]
    assert len(named) == len(COUNTERS)
    times = {pair: random.randrange(1, 200) for pair in named}
    for step in range(200):
        await FallingEdge(dut.clk)
        for name, fields in bits.items():
            getattr(dut, f"{name}_events").value = sum((times[name, f] > step) << bit for f, bit in fields.items())
    await FallingEdge(dut.clk)
    for name in EVENTS:
        getattr(dut, f"{name}_events").value = 0
    await wait_cycles(dut, len(COUNTERS) + 4)
    assert sorted(COUNTERS.values()) == [0x400 + 4 * i for i in range(len(COUNTERS))]
    for (name, field), count in times.items():
        assert await bus.get(COUNTERS[f"{name}_{field}"]) == count, f"{name}_{field}"


@cocotb.test()
async def drops_are_told(dut) -> None:
    """Each event whose counter is one of drops, and no other, in its cycle."""
    await begin(dut)
    for name, kind in EVENTS.items():
        for field, bit in struct(kind).leaves().items():
            await FallingEdge(dut.clk)
            getattr(dut, f"{name}_events").value = 1 << bit
            await RisingEdge(dut.clk)
            assert int(dut.dropped.value) == ("_drop_" in f"{name}_{field}"), f"{name}_{field}"
        await FallingEdge(dut.clk)
        getattr(dut, f"{name}_events").value = 0


@cocotb.test()
async def no_pulse_is_lost(dut) -> None:
    """Every event in every cycle, or at random, while the counters are read back to back; writes do nothing; reset clears."""
    bus = await begin(dut)
    layout = struct(EVENTS["packet"])
    full = {name: (1 << struct(kind).width) - 1 for name, kind in EVENTS.items()}
    expected = dict.fromkeys(range(layout.width), 0)
    names = list(COUNTERS)
    bits = [layout.fields[name.removeprefix("packet_")][0] for name in names[: layout.width]]
    stop = False

    async def pulses() -> None:
        for cycle in itertools.count():
            await FallingEdge(dut.clk)
            word = 0 if stop else full["packet"] if cycle < 1000 else random.getrandbits(layout.width)
            dut.packet_events.value = word
            for name in EVENTS:
                if name != "packet":
                    getattr(dut, f"{name}_events").value = 0 if stop else full[name]
            for i, bit in enumerate(bits):
                expected[i] += word >> bit & 1

    cocotb.start_soon(pulses())
    last = [0] * layout.width
    for _ in range(3):
        assert await bus.write(0x400, 0x1234) == AxiResp.DECERR
        for i in range(layout.width):
            seen = await bus.get(0x400 + 4 * i)
            assert last[i] <= seen <= expected[i]
            last[i] = seen
    stop = True
    await wait_cycles(dut, len(COUNTERS) + 4)
    for i in range(layout.width):
        assert await bus.get(0x400 + 4 * i) == expected[i], names[i]
    assert len({await bus.get(0x400 + 4 * i) for i in range(layout.width, len(COUNTERS))}) == 1

    dut.rst.value = 1
    await wait_cycles(dut, 4)
    await FallingEdge(dut.clk)
    dut.rst.value = 0
    for i in (0, 1, len(COUNTERS) - 1):
        assert await bus.get(0x400 + 4 * i) == 0


@cocotb.test()
async def a_counter_is_read_out_of_turn(dut) -> None:
    """In a short time, whichever it is, and also if it is read again."""
    bus = await begin(dut)
    await wait_cycles(dut, len(COUNTERS))
    for address in (0x400, 0x404, 0x400 + 4 * (len(COUNTERS) - 1), 0x480, 0x480):
        before = cocotb.utils.get_sim_time("ns")
        await bus.get(address)
        assert cocotb.utils.get_sim_time("ns") - before <= 24 * CLOCK_NS


@cocotb.test()
async def two_masters_share_the_registers(dut) -> None:
    bus = await begin(dut)

    async def work(i: int) -> None:
        for n in range(30):
            value = (i << 16 | n).to_bytes(4, "little")
            assert (await bus.masters[i].write((0x40, 0xD4)[i], value)).resp == AxiResp.OKAY
            answer = await bus.masters[i].read((0x40, 0xD4)[i], 4)
            assert (answer.data, answer.resp) == (value, AxiResp.OKAY)

    tasks = [cocotb.start_soon(work(i)) for i in range(2)]
    for task in tasks:
        await with_timeout(task, 10_000 * CLOCK_NS, "ns")


@cocotb.test()
async def a_dead_socket_costs_its_own_page(dut) -> None:
    """A socket that takes nothing, one that takes but is late: SLVERR in bounded time, all others are served, and the late
    answer is dropped."""
    bus = await begin(dut, sockets=1)
    assert await bus.read(0x11000) == (0, AxiResp.SLVERR)  # the request was not taken: the next one is tried again
    assert await bus.write(0x11000, 1) == AxiResp.SLVERR
    assert await bus.get(0) == FACTS[0]

    dut.socket2_arready.value = 1
    dut.socket2_awready.value = 1
    dut.socket2_wready.value = 1
    assert await bus.read(0x12000) == (0, AxiResp.SLVERR)
    assert await bus.write(0x12000, 1) == AxiResp.SLVERR
    before = cocotb.utils.get_sim_time("ns")
    assert await bus.read(0x12000) == (0, AxiResp.SLVERR)  # its response is outstanding: no new request
    assert await bus.write(0x12000, 1) == AxiResp.SLVERR
    assert cocotb.utils.get_sim_time("ns") - before < 100 * CLOCK_NS
    assert await bus.write(0x10004, 77) == AxiResp.OKAY
    assert await bus.get(0x10004) == 77

    # The answers come after all, and the socket is itself again.
    dut.socket2_rdata.value = 0xBAD
    dut.socket2_rresp.value = 0
    dut.socket2_bresp.value = 0
    for valid, ready in ((dut.socket2_rvalid, dut.socket2_rready), (dut.socket2_bvalid, dut.socket2_bready)):
        await FallingEdge(dut.clk)
        valid.value = 1
        await RisingEdge(dut.clk)
        assert int(ready.value)
        await FallingEdge(dut.clk)
        valid.value = 0
    task = cocotb.start_soon(bus.read(0x12000))
    while not int(dut.socket2_arvalid.value):
        await RisingEdge(dut.clk)
    await wait_cycles(dut, 2)
    await FallingEdge(dut.clk)
    dut.socket2_rdata.value = 0x600D
    dut.socket2_rvalid.value = 1
    while not int(dut.socket2_rready.value):
        await RisingEdge(dut.clk)
    await FallingEdge(dut.clk)
    dut.socket2_rvalid.value = 0
    assert await task == (0x600D, AxiResp.OKAY)


def test_control_plane() -> None:
    run(
        "control_plane",
        __file__,
        params=PARAMS,
        ports={
            "bus": Several(AxilSlave(20), 2),
            "socket": Several(AxilMaster(12), SOCKETS),
            "chip_id": Plain("input", "logic [63:0]"),
            "device_id": Plain("output", "logic [63:0]"),
            "enable": Plain("output", "logic"),
            "mac": Plain("output", "packet_pkg::mac_t"),
            "address_settings": Plain("output", "address_pkg::address_settings_t"),
            "address_status": Plain("input", "address_pkg::address_status_t"),
            "discovery": Plain("output", "services_pkg::discovery_settings_t"),
            "link": Plain("output", "link_pkg::link_settings_t"),
            "icmp_errors": Plain("output", "logic"),
            "link_up": Plain("input", "logic"),
            "card": Plain("output", "card_pkg::card_settings_t"),
            "local_addr": Plain("input", "packet_pkg::local_addr_t"),
            "management": AxilMaster(12),
            "admission": AxilMaster(12),
            "trace": AxilMaster(12),
            "images": AxilMaster(12),
            "histograms": AxilMaster(12),
            "copy": AxilMaster(12),
            "classifier": AxilMaster(12),
            "stream": AxilMaster(12),
            "sensor_reading": Sink("sensors_pkg::sensor_reading_t"),
            "rpc_port": Plain("output", "logic [15:0]"),
            "listen_port": Plain("output", "logic [15:0]"),
            "memory_per_caller": Plain("output", "logic [29:0]"),
            "extensions": Plain("output", "logic"),
            "connection_limits": Plain("output", "roce_pkg::cm_limits_t"),
            "congestion": Plain("output", "roce_cc_pkg::cc_config_t"),
            "cci_settings": Plain("output", "cci_pkg::cci_settings_t"),
            "seed": Plain("output", "logic [31:0]"),
            "keepalive_cycles": Plain("output", "logic [47:0]"),
            "kernel_timeout_cycles": Plain("output", "logic [47:0]"),
            **{f"{name}_events": Plain("input", kind) for name, kind in EVENTS.items()},
            "now": Plain("input", "logic [47:0]"),
            "to_log": Plain("input", "event_log_pkg::log_event_t [1:0]"),
            "dropped": Plain("output", "logic"),
            "idle": Plain("output", "logic"),
        },
    )
