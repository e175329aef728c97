# SPDX-License-Identifier: Apache-2.0
"""device_in_slot with a network card, in the slot of cocotbext-pcie's root complex: two functions that share a link and nothing
else. Each has its settings, registers, interrupts, resets and an IO virtual address space of its own; what one does costs the other
nothing but its share of the link. The card is a stand-in: its registers a memory, its accesses to host memory those of the test."""

import random
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import cocotb
import pytest
from cocotb.triggers import with_timeout
from nacelle_tb.axil import Slave
from nacelle_tb.bench import AxilMaster, AxiMaster, AxiSlave, Plain, Sink, Type, run
from nacelle_tb.long import alternately, some
from nacelle_tb.memory import DECERR, OKAY, SLVERR, AxiDriver, AxiMemory
from nacelle_tb.pcie import Card, Counts, CplStatus, Iommu, PcieId, Slot, Tlp, TlpType
from nacelle_tb.planes import SLOT, tlps
from nacelle_tb.streams import CLOCK_NS, StreamSource, start, wait_cycles
from nacelle_tb.widths import WIDTHS

MEMORY_SIZE = 1 << 16
SIZES = {0: 2 << 20, 4: MEMORY_SIZE}
MSIX = 0x10_0000
CARD = Card({0: 8 << 10}, 9, (0x1000, 0x1800))
CARD_MSIX, CARD_PBA, CARD_INTERVAL = 0x1000, 0x1800, 0x1C00
HOST_SIZE = 1 << 16
HOST = 1 << 63
"""The device's address of host memory"""
TIMEOUT, VECTORS = 4096, 32
DEVICE, NETWORK = 0, 1


class Bench:
    def __init__(self, dut, stall: float = 0.0, mps: int = 256, switch: bool = False, credits: Any = None, **host: Any) -> None:
        self.dut = dut
        dut.net_reset_done.value = 0
        self.slot = Slot(
            dut,
            SIZES,
            stall=stall,
            mps=mps,
            switch=switch,
            credits=credits,
            vectors=VECTORS,
            msix_at=(MSIX, MSIX + 0x800),
            card=CARD,
        )
        self.memory = AxiMemory(dut, "memory", MEMORY_SIZE, latency=(1, 20), stall=stall, noise=True)
        self.slave = Slave(dut, "registers")
        self.card_slave = Slave(dut, "net_registers")
        self.iommu = Iommu(self.slot, HOST_SIZE, **{"latency": (1, 100), "seed": random.getrandbits(30), **host})
        self.axi = [AxiDriver(dut, "host", stall), AxiDriver(dut, "net_host", stall)]
        self.base = [HOST | self.iommu.base, self.iommu.base]
        self.step = self.axi[0].bytes_per_beat
        self.interrupts = [StreamSource(dut, "interrupt", "logic [4:0]"), StreamSource(dut, "net_interrupt", "logic [15:0]")]
        self.counts = Counts(dut, "events", "pcie_pkg::pcie_events_t")
        self.vectors: list[list[int]] = [[], []]
        self.on_vector: Callable[[int, int], None] = lambda function, number: None

    async def start(self) -> None:
        await start(self.dut)
        await self.slot.enumerate()
        for function, (host, count) in enumerate(zip(self.slot.hosts, (VECTORS, CARD.vectors), strict=True)):
            assert await host.alloc_irq_vectors(count, count) == count
            for number in range(count):
                host.request_irq(number, self._taker(function, number))

    def _taker(self, function: int, number: int) -> Callable[[], Awaitable[None]]:
        async def taken() -> None:
            self.vectors[function].append(number)
            self.on_vector(function, number)

        return taken

    async def read(self, function: int, offset: int) -> int:
        return await with_timeout(self.slot.hosts[function].bar_window[0].read_dword(offset), 4_000 * CLOCK_NS, "ns")

    async def write(self, function: int, offset: int, value: int) -> None:
        await self.slot.hosts[function].bar_window[0].write_dword(offset, value)

    def fill(self) -> list[bytearray]:
        """Content of the memory of each function; what the test writes is to be written there too."""
        for space in self.iommu.spaces:
            space[:] = random.randbytes(HOST_SIZE)
        return [bytearray(space) for space in self.iommu.spaces]

    async def load(self, function: int, content: bytearray, rounds: int) -> list[int]:
        """Writes and reads of a function in its half of the pages; the responses. `content` is what is there."""
        axi, base, seen = self.axi[function], self.base[function], []
        for _ in range(rounds):
            beats, offset = random.randint(1, 512 // self.step), 4096 * random.randrange(HOST_SIZE // 4096)
            data = random.randbytes(beats * self.step)
            axi.write(base + offset, data)
            await axi.writes_answered(20_000)
            axi.read(base + offset, beats)
            _, got, resp = await axi.read_result(20_000)
            seen.append(resp)
            if resp == OKAY:
                content[offset : offset + len(data)] = data
                assert got == data, f"function {function} reads what it has not written"
            else:
                assert got == bytes(len(data))
        return seen

    async def accesses(self, function: int) -> None:
        """Of the host to registers of a function, and interrupts of that."""
        for i in range(20):
            value = random.getrandbits(32)
            await self.write(function, 4 * i, value)
            assert await self.read(function, 4 * i) == value
            self.interrupts[function].send(i % 9)

    async def reset(self, function: int, cycles: int = 4000) -> None:
        """A function-level reset: as a shim tells it, with the configuration space as the standard wants it."""
        self.dut.flr_request.value = 1 << function
        self.slot.functions[function].bus_master_enable = False
        self.slot.configured()
        done = 0
        for _ in range(cycles):
            await wait_cycles(self.dut, 1)
            self.dut.net_reset_done.value = (int(self.dut.net_reset.value) and random.random() < 0.05) or done
            done = int(self.dut.net_reset_done.value)
            if int(self.dut.flr_done.value) >> function & 1:
                break
        assert int(self.dut.flr_done.value) == 1 << function, "the reset is not done"
        assert function == NETWORK or not int(self.dut.net_reset.value)

    async def end_reset(self) -> None:
        self.dut.flr_request.value = 0
        self.dut.net_reset_done.value = 0
        await wait_cycles(self.dut, 4)
        assert int(self.dut.flr_done.value) == 0

    async def idle(self) -> None:
        for _ in range(4000):
            await wait_cycles(self.dut, 4)
            if int(self.dut.idle.value):
                return
        raise AssertionError("it does not become idle")

    def tlp(self, function: int, offset: int, data: bytes | None = None) -> Tlp:
        """A request of the host for one dword of BAR 0."""
        tlp = Tlp()
        tlp.address, tlp.length, tlp.first_be = self.slot.hosts[function].bar_addr[0] + offset, 1, 0xF
        far = tlp.address >> 32 != 0
        tlp.fmt_type = (TlpType.MEM_READ_64 if far else TlpType.MEM_READ) if data is None else (
            TlpType.MEM_WRITE_64 if far else TlpType.MEM_WRITE
        )  # fmt: skip
        tlp.data = bytearray(data or b"")
        tlp.requester_id = PcieId(0, 0, 0)
        return tlp

    async def ask(self, tlp: Tlp) -> CplStatus:
        completions = await with_timeout(self.slot.rc.perform_nonposted_operation(tlp), 4_000 * CLOCK_NS, "ns")
        return completions[-1].status


@cocotb.test()
@cocotb.parametrize(switch=[False, True])
async def the_card_is_a_function_of_its_own(dut, switch: bool) -> None:
    """Its registers and its table are there, behind its own BAR and by its own Memory Space Enable."""
    bench = Bench(dut, switch=switch)
    await bench.start()
    assert [host.pcie_id.function for host in bench.slot.hosts] == [0, 1]
    for offset in (0, 4, 0x100, 0xFFC):
        await bench.write(NETWORK, offset, 0x1000 + offset)
        await bench.write(DEVICE, offset, 0x2000 + offset)
    for offset in (0, 4, 0x100, 0xFFC):
        assert await bench.read(NETWORK, offset) == 0x1000 + offset == bench.card_slave.words[offset]
        assert await bench.read(DEVICE, offset) == 0x2000 + offset == bench.slave.words[offset]
    await bench.slot.hosts[NETWORK].bar_window[0].write(0x24, b"ab")
    assert (await bench.read(NETWORK, 0x24)).to_bytes(4, "little") == b"ab\0\0", "bytes of a word"
    assert await bench.read(NETWORK, CARD_MSIX + 16 * 8 + 12) == await bench.read(DEVICE, MSIX + 16 * 31 + 12) == 0
    assert await bench.ask(bench.tlp(NETWORK, CARD_MSIX + 16 * 9)) == CplStatus.CA, "a vector that there is not"
    for off in (NETWORK, DEVICE):
        bench.slot.functions[off].memory_space_enable = False
        bench.slot.configured()
        await wait_cycles(dut, 4)
        asked = bench.tlp(off, 0)
        asked.tag = 77
        bench.slot.give(asked, 0)
        await wait_cycles(dut, 60)
        assert bench.slot.sent[-1].status == CplStatus.UR
        await bench.slot.rc.recv_cpl(77)
        await bench.read(1 - off, 0)
        bench.slot.functions[off].memory_space_enable = True
        bench.slot.configured()
    await bench.idle()


@cocotb.test()
async def functions_that_are_not_there_are_refused(dut) -> None:
    bench = Bench(dut)
    await bench.start()
    for number in (2, 3, 7, 8, 255):
        read, write = bench.tlp(DEVICE, 0), bench.tlp(DEVICE, 0, b"evil")
        read.give_func = write.give_func = number
        read.tag = 77
        bench.slot.give(write)
        before = len(bench.slot.sent)
        bench.slot.give(read)
        await wait_cycles(dut, 60)
        assert len(bench.slot.sent) == before + 1 and bench.slot.sent[-1].status == CplStatus.UR, number
        await bench.slot.rc.recv_cpl(77)
    assert bench.counts.completer_refused_writes == bench.counts.completer_refused_reads == 5
    # A BAR that the other function has, and this one has not.
    read = bench.tlp(DEVICE, 0)
    read.tag, read.give_func = 77, NETWORK
    bench.slot.give(read, 4)
    await wait_cycles(dut, 60)
    assert bench.slot.sent[-1].status == CplStatus.UR
    assert not bench.slave.words and not bench.card_slave.words


@cocotb.test()
@cocotb.parametrize(stall=alternately([0.0, 0.2]), switch=[False, True])
async def both_at_once(dut, stall: float, switch: bool) -> None:
    """Both functions in their memory, the host at the registers of both, interrupts of both: each sees its own."""
    bench = Bench(dut, stall, switch=switch, mps=random.choice([128, 256, 512]))
    await bench.start()
    contents = bench.fill()
    tasks = [cocotb.start_soon(bench.load(function, contents[function], 15)) for function in (DEVICE, NETWORK)]
    hosts = [cocotb.start_soon(bench.accesses(function)) for function in (DEVICE, NETWORK)]
    for task in tasks:
        assert set(await with_timeout(task, 400_000, "ns")) == {OKAY}
    for host in hosts:
        await with_timeout(host, 400_000, "ns")
    await bench.idle()
    await wait_cycles(dut, 300)
    assert bench.iommu.spaces == contents and not bench.iommu.faults
    assert set(bench.vectors[DEVICE]) == set(bench.vectors[NETWORK]) == set(range(9))


@cocotb.test()
async def neither_reaches_the_memory_of_the_other(dut) -> None:
    """Whatever addresses a function names, as its driver can: each is an IO virtual address of its own, or an error at once."""
    bench = Bench(dut)
    await bench.start()
    contents = bench.fill()
    evil = random.randbytes(bench.step)
    base = bench.iommu.base
    for function in (DEVICE, NETWORK):
        for high in (1 << 63, 1 << 62, 3 << 62, 0xFFFF << 47, (1 << 64) - HOST_SIZE - base):
            address = (high + base) % (1 << 64)
            lost = function == NETWORK and address >> 63
            own = (address & ~HOST if function == DEVICE else address) == base
            bench.axi[function].write(address, evil)
            bench.axi[function].read(address, 1)
            _, data, resp = await bench.axi[function].read_result(4000)
            await bench.axi[function].writes_answered(4000)
            assert resp == (DECERR if lost else OKAY if own else SLVERR), hex(address)
            if own:
                contents[function][0 : bench.step] = evil
                assert data == evil
            await wait_cycles(dut, 100)
            assert bench.iommu.spaces == contents, f"function {function} by {address:#x}"
    assert all(tlp.address >> 63 == 0 for tlp in bench.iommu.faults)
    assert {tlp.requester_id.function for tlp in bench.iommu.faults} == {DEVICE, NETWORK}


@cocotb.test()
@cocotb.parametrize(off=[DEVICE, NETWORK])
async def bus_mastering_is_of_one_function(dut, off: int) -> None:
    """That of one off, under load of both: what it sends ends with errors, interrupts wait; the other goes on."""
    bench = Bench(dut)
    await bench.start()
    contents = bench.fill()
    other = cocotb.start_soon(bench.load(1 - off, contents[1 - off], 30))
    mine = cocotb.start_soon(bench.load(off, contents[off], 5))
    await mine
    await bench.slot.hosts[off].set_master(False)
    await wait_cycles(dut, 10)
    sent = len(bench.slot.sent)
    for function in (DEVICE, NETWORK):
        bench.interrupts[function].send(3)
    assert set(await bench.load(off, contents[off], 5)) == {SLVERR}
    assert set(await with_timeout(other, 400_000, "ns")) == {OKAY}
    requests = [tlp for tlp in bench.slot.sent[sent:] if not tlp.is_completion()]
    assert all(tlp.requester_id.function == 1 - off for tlp in requests)
    assert bench.vectors[1 - off] == [3] and not bench.vectors[off]
    await bench.slot.hosts[off].set_master()
    await wait_cycles(dut, 200)
    assert bench.vectors[off] == [3]
    assert set(await bench.load(off, contents[off], 5)) == {OKAY}
    await wait_cycles(dut, 200)
    assert bench.iommu.spaces == contents


@cocotb.test()
@cocotb.parametrize(function=[DEVICE, NETWORK])
async def a_reset_of_one_costs_the_other_nothing(dut, function: int) -> None:
    """Under load of both, with reads that wait for the host: it is done, all that is the function's is as after power-on, and the
    other one has lost neither data nor an access nor an interrupt."""
    bench = Bench(dut, latency=(200, 400))
    await bench.start()
    contents = bench.fill()
    mine, other = bench.axi[function], 1 - function
    table, vectors = (MSIX, VECTORS) if function == DEVICE else (CARD_MSIX, CARD.vectors)
    interval = MSIX + 0xC00 if function == DEVICE else CARD_INTERVAL
    for round_ in range(2):
        await bench.write(function, interval + 4, 1000)
        running = cocotb.start_soon(bench.load(other, contents[other], 12))
        host = cocotb.start_soon(bench.accesses(other))
        for i in range(6):
            mine.read(bench.base[function] + 4096 * i, 512 // bench.step)
        bench.interrupts[function].send(1)
        for i in range(10):
            await bench.write(function, 0x40, i)
        reads = [cocotb.start_soon(bench.slot.rc.mem_read(bench.slot.hosts[function].bar_addr[0] + 4 * i, 4)) for i in range(3)]
        await wait_cycles(dut, 60 + 60 * round_)
        await bench.reset(function)
        for read in reads:
            await with_timeout(read, 8_000, "ns")
        results = [(await mine.read_result(500))[2] for _ in range(6)]
        assert SLVERR in results
        sent = len(bench.slot.sent)
        assert await bench.ask(bench.tlp(function, 0)) == CplStatus.UR
        assert set(await bench.load(function, contents[function], 3)) == {SLVERR}
        own = [tlp for tlp in bench.slot.sent[sent:] if not tlp.is_completion() and tlp.requester_id.function == function]
        assert not own, "a function in reset has sent a request"
        await bench.end_reset()
        assert set(await with_timeout(running, 800_000, "ns")) == {OKAY}
        await with_timeout(host, 800_000, "ns")
        assert set(bench.vectors[other]) == set(range(9))
        for vector in range(vectors):
            assert await bench.read(function, table + 16 * vector + 12) == 1
        assert await bench.read(function, table + 0x800) == 0 and await bench.read(function, interval + 4) == 0
        bench.slot.functions[function].bus_master_enable = True
        bench.slot.configured()
        for number in range(vectors):
            await bench.write(function, table + 16 * number + 12, 0)
        for seen in bench.vectors:
            seen.clear()
        assert set(await bench.load(function, contents[function], 3)) == {OKAY}
        bench.interrupts[function].send(2)
        await wait_cycles(dut, 300)
        assert bench.vectors[function] == [2]
        assert bench.iommu.spaces == contents
        bench.vectors[function].clear()
    resets = bench.counts.resets, bench.counts.network_resets
    assert resets == ((2, 0) if function == DEVICE else (0, 2))
    await wait_cycles(dut, 600)
    await bench.idle()


@cocotb.test()
async def no_write_of_before_reaches_a_card_that_is_as_new(dut) -> None:
    """Writes that were on their way when its reset began arrive before the card is reset, or not at all."""
    bench = Bench(dut)
    await bench.start()
    for _ in range(5):
        for i in range(20):
            bench.slot.give(bench.tlp(NETWORK, 0x80, i.to_bytes(4, "little")), 0)
        await wait_cycles(dut, random.randint(0, 60))
        dut.flr_request.value = 1 << NETWORK
        for _ in range(2000):
            await wait_cycles(dut, 1)
            if int(dut.net_reset.value):
                break
        assert int(dut.net_reset.value)
        words = dict(bench.card_slave.words)
        await wait_cycles(dut, 200)
        assert bench.card_slave.words == words, "a write behind the reset of the card"
        dut.net_reset_done.value = 1
        await wait_cycles(dut, 4)
        assert int(dut.flr_done.value) == 1 << NETWORK
        await bench.end_reset()
    assert bench.counts.network_resets == 5


@cocotb.test()
async def interrupts_are_of_their_function(dut) -> None:
    """Vectors, masks, pending bits and the function mask of each; behind the data of its function, in any order of the vectors that
    wait; none that there is not."""
    bench = Bench(dut, credits={"posted": (8, 128)})
    await bench.start()
    wrong: list[tuple[int, int]] = []
    expected: dict[tuple[int, int], tuple[int, bytes]] = {}

    def check(function: int, number: int) -> None:
        at, data = expected[function, number]
        if bench.iommu.spaces[function][at : at + len(data)] != data:
            wrong.append((function, number))

    bench.on_vector = check
    total = 2 * 9

    async def granting() -> None:
        while sum(map(len, bench.vectors)) < total:
            bench.slot.grant(posted=(random.randint(0, 2), random.randint(0, 16)))
            await wait_cycles(dut, random.randint(1, 20))

    async def sends(function: int) -> None:
        for number in range(9):
            data = random.randbytes(bench.step * random.randint(1, 512 // bench.step))
            expected[function, number] = (2048 * number, data)
            bench.axi[function].write(bench.base[function] + 2048 * number, data)
            await bench.axi[function].writes_answered(4000)
            bench.interrupts[function].send(number)

    cocotb.start_soon(granting())
    tasks = [cocotb.start_soon(sends(function)) for function in (DEVICE, NETWORK)]
    for task in tasks:
        await task
    for _ in range(200):
        await wait_cycles(dut, 20)
        if sum(map(len, bench.vectors)) == total:
            break
    assert [sorted(seen) for seen in bench.vectors] == [list(range(9))] * 2 and not wrong
    bench.slot.grant(posted=(200, 1000))
    bench.on_vector = lambda function, number: None

    for seen in bench.vectors:
        seen.clear()
    await bench.write(NETWORK, CARD_MSIX + 16 * 5 + 12, 1)
    assert await bench.read(NETWORK, CARD_MSIX + 16 * 5 + 12) == 1
    for number in (5, 6, 9, 40, 0xFFFF):
        bench.interrupts[NETWORK].send(number)
    bench.interrupts[DEVICE].send(5)
    await wait_cycles(dut, 200)
    assert bench.vectors == [[5], [6]]
    assert await bench.read(NETWORK, CARD_PBA) == 1 << 5 and await bench.read(DEVICE, MSIX + 0x800) == 0
    bench.slot.functions[NETWORK].msix_cap.msix_function_mask = True
    bench.slot.configured()
    await bench.write(NETWORK, CARD_MSIX + 16 * 5 + 12, 0)
    assert await bench.read(NETWORK, CARD_MSIX + 16 * 5 + 12) == 0
    bench.interrupts[NETWORK].send(7)
    bench.interrupts[DEVICE].send(7)
    await wait_cycles(dut, 200)
    assert bench.vectors == [[5, 7], [6]]
    bench.slot.functions[NETWORK].msix_cap.msix_function_mask = False
    bench.slot.configured()
    await wait_cycles(dut, 200)
    assert bench.vectors[DEVICE] == [5, 7] and sorted(bench.vectors[NETWORK]) == [5, 6, 7]


@cocotb.test()
async def settings_hold_for_their_function(dut) -> None:
    """Payloads, read requests and tags by the settings of each, however different: Rules looks at every TLP."""
    bench = Bench(dut, mps=512)
    await bench.start()
    for function, mps, mrrs, extended in (
        (DEVICE, 2, 2, True),
        (NETWORK, 0, 0, False),
        (DEVICE, 0, 5, False),
        (NETWORK, 2, 5, True),
    ):
        cap = bench.slot.functions[function].pcie_cap
        cap.max_payload_size, cap.max_read_request_size, cap.extended_tag_field_enable = mps, mrrs, extended
        bench.slot.configured()
        await wait_cycles(dut, 4)
        contents = [bytearray(space) for space in bench.iommu.spaces]
        tasks = [cocotb.start_soon(bench.load(f, contents[f], 10)) for f in (DEVICE, NETWORK)]
        for task in tasks:
            assert set(await with_timeout(task, 400_000, "ns")) == {OKAY}
        await wait_cycles(dut, 200)
        assert bench.iommu.spaces == contents


@cocotb.test()
async def what_the_host_does_wrong_costs_its_function(dut) -> None:
    """Reads of one function that are refused, aborted or never answered are errors of that one; of the other's none is."""
    fates = {DEVICE: "good", NETWORK: "good"}
    bench = Bench(dut, fate=lambda tlp: fates[tlp.requester_id.function])
    await bench.start()
    contents = bench.fill()
    for bad in (NETWORK, DEVICE):
        for fate in ("ur", "ca", "poisoned", "lost"):
            fates[bad] = fate
            tasks = [cocotb.start_soon(bench.load(function, contents[function], 3)) for function in (DEVICE, NETWORK)]
            results = [set(await with_timeout(task, 800_000, "ns")) for task in tasks]
            assert results[1 - bad] == {OKAY} and results[bad] == {SLVERR}, fate
            await wait_cycles(dut, 100)
            bench.slot.rules.sent.clear()  # those that were never answered
            for function in (DEVICE, NETWORK):
                contents[function][:] = bench.iommu.spaces[function]
        fates[bad] = "good"


@cocotb.test()
async def a_card_that_does_not_answer_costs_its_own_registers(dut) -> None:
    """An access that it never answers ends in an abort; those of the device go on meanwhile, and behind it at once."""
    bench = Bench(dut)
    await bench.start()
    bench.card_slave.held |= {"r", "b"}
    dead = cocotb.start_soon(bench.ask(bench.tlp(NETWORK, 0)))
    await bench.slot.hosts[NETWORK].bar_window[0].write_dword(4, 1)
    await wait_cycles(dut, 1200)
    assert await with_timeout(dead, 4_000 * CLOCK_NS, "ns") == CplStatus.CA
    for i in range(5):
        assert await bench.ask(bench.tlp(NETWORK, 0)) == CplStatus.CA
        await bench.write(DEVICE, 4 * i, i)
        assert await bench.read(DEVICE, 4 * i) == i


async def rate(bench: Bench, functions: tuple[int, ...], kind: str, beats: int) -> float:
    """Cycles a beat of bursts of 512 bytes, of these functions together."""
    count = 512 // bench.step
    for function in functions:
        for i in range(beats // count // len(functions)):
            at = bench.base[function] + 4096 * (i % (HOST_SIZE // 4096))
            if kind == "write":
                bench.axi[function].write(at, bytes(512))
            else:
                bench.axi[function].read(at, count)
    begin = bench.slot.tx_header.cycle
    for function in functions:
        if kind == "write":
            await bench.axi[function].writes_answered(40_000)
        else:
            for _ in range(beats // count // len(functions)):
                await bench.axi[function].read_result(40_000)
    return (bench.slot.tx_header.cycle - begin) / beats


@cocotb.test()
async def two_functions_share_one_beat_a_cycle(dut) -> None:
    """As much together as one alone."""
    bench = Bench(dut, mps=512, latency=(20, 20))
    await bench.start()
    for host in bench.slot.functions:
        host.pcie_cap.max_read_request_size = 2
    bench.slot.configured()
    beats = 64 * 512 // bench.step
    for kind, most in (("write", 1.3), ("read", 2.2)):
        alone = [await rate(bench, (function,), kind, beats) for function in (DEVICE, NETWORK)]
        both = await rate(bench, (DEVICE, NETWORK), kind, beats)
        dut._log.info(f"cycles a beat, {kind}: device {alone[0]:.2f}, card {alone[1]:.2f}, both {both:.2f}")
        assert both <= max(alone) + 0.1 and both <= most


@pytest.mark.parametrize("width", some(WIDTHS))
def test_device_in_slot(width: int) -> None:
    run(
        "device_in_slot_bench",
        __file__,
        params={
            "DATA_W": width,
            "TIMEOUT": TIMEOUT,
            "VECTORS": VECTORS,
            "NETWORK_VECTORS": CARD.vectors,
            "MEMORY": Type(f"'{{base: '0, size: 64'd{MEMORY_SIZE}}}"),
        },
        ports={
            **SLOT,
            **tlps(width),
            "registers": AxilMaster(20),
            "memory": AxiMaster(width),
            "host": AxiSlave(width, id_width=8),
            "interrupt": Sink("logic [4:0]"),
            "net_registers": AxilMaster(12),
            "net_host": AxiSlave(width, id_width=5),
            "net_interrupt": Sink("logic [15:0]"),
            "net_reset": Plain("output", "logic"),
            "net_reset_done": Plain("input", "logic"),
            "events": Plain("output", "pcie_pkg::pcie_events_t"),
            "idle": Plain("output", "logic"),
        },
        sources=[Path(__file__).with_name("device_in_slot_bench.sv")],
        random_state=True,
    )
