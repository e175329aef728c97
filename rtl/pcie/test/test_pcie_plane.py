# SPDX-License-Identifier: Apache-2.0
"""pcie_plane in the slot of cocotbext-pcie's root complex, directly and behind a switch: everything at once, in the order that PCI
Express asks for; interrupts behind their data, with masks, pending bits and intervals; a function-level reset under load."""

import random
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import cocotb
import pytest
from cocotb.triggers import with_timeout
from nacelle_tb.axil import Slave
from nacelle_tb.bench import AxilMaster, AxiMaster, AxiSlave, Plain, Sink, run
from nacelle_tb.long import alternately, some
from nacelle_tb.memory import OKAY, SLVERR, AxiDriver, AxiMemory
from nacelle_tb.pcie import Counts, CplStatus, Host, Slot, TlpType
from nacelle_tb.planes import SLOT, bar_maps, tlps
from nacelle_tb.streams import CLOCK_NS, StreamSource, start, wait_cycles
from nacelle_tb.widths import WIDTHS

REGISTERS, MEMORY = 0, 4
SIZES = {REGISTERS: 1 << 16, MEMORY: 1 << 16}
PAGE, MSIX, PBA, INTERVAL = 0x1000, 0x4000, 0x4800, 0x4C00
HOST_SIZE = 1 << 16
TIMEOUT, VECTORS = 4096, 32


class Bench:
    def __init__(self, dut, stall: float = 0.0, mps: int = 256, switch: bool = False, credits=None, latency=(1, 100)) -> None:
        self.dut = dut
        self.slot = Slot(dut, SIZES, stall=stall, mps=mps, switch=switch, credits=credits, vectors=VECTORS, msix_at=(MSIX, PBA))
        self.memory = AxiMemory(dut, "memory", SIZES[MEMORY], latency=(1, 20), stall=stall, noise=True)
        self.slave = Slave(dut, "registers")
        self.host_memory = Host(self.slot, HOST_SIZE, latency=latency, seed=random.getrandbits(30))
        self.base = self.host_memory.base
        self.axi = AxiDriver(dut, "host", stall)
        self.step = self.axi.bytes_per_beat
        self.interrupt = StreamSource(dut, "interrupt", "pcie_pkg::msix_vector_t")
        self.counts = Counts(dut, "events", "pcie_pkg::pcie_events_t")
        self.vectors: list[int] = []

    async def start(self, vectors: bool = False) -> Any:
        await start(self.dut)
        host = await self.slot.enumerate()
        if vectors:
            assert await host.alloc_irq_vectors(VECTORS, VECTORS) == VECTORS
            for i in range(VECTORS):
                host.request_irq(i, self._taker(i))
        return host

    def _taker(self, number: int) -> Callable[[], Awaitable[None]]:
        async def taken() -> None:
            self.vectors.append(number)
            self.on_vector(number)

        return taken

    def on_vector(self, number: int) -> None:
        pass

    async def read(self, address: int) -> int:
        return await with_timeout(self.slot.host.bar_window[REGISTERS].read_dword(address), 4_000 * CLOCK_NS, "ns")

    async def write(self, address: int, value: int) -> None:
        """With a read behind it, so that it is there."""
        await self.slot.host.bar_window[REGISTERS].write_dword(address, value)
        await self.read(MSIX)

    async def idle(self) -> None:
        for _ in range(4000):
            await wait_cycles(self.dut, 4)
            if int(self.dut.idle.value):
                return
        raise AssertionError("it does not become idle")


@cocotb.test()
@cocotb.parametrize(switch=[False, True], stall=alternately([0.0, 0.2]))
async def all_at_once(dut, switch: bool, stall: float) -> None:
    """The host at registers and memory, the device at host memory, interrupts: each sees what was written."""
    bench = Bench(dut, stall, switch=switch, mps=random.choice([128, 256, 512]))
    host = await bench.start(vectors=True)
    host_content = bytearray(random.randbytes(HOST_SIZE))
    bench.host_memory.write(0, bytes(host_content))
    bench.memory.write(0, bytes(SIZES[MEMORY]))

    async def by_host() -> None:
        content = bytearray(SIZES[MEMORY])
        for i in range(12):
            length = random.randint(1, 600)
            offset = random.randrange(len(content) - length)
            data = random.randbytes(length)
            await host.bar_window[MEMORY].write(offset, data)
            content[offset : offset + length] = data
            await host.bar_window[REGISTERS].write_dword(PAGE + 4 * i, i)
            assert await host.bar_window[REGISTERS].read_dword(PAGE + 4 * i) == i
            at, length = random.randrange(len(content) - 600), random.randint(1, 600)
            assert await host.bar_window[MEMORY].read(at, length) == content[at : at + length]

    async def by_device() -> None:
        for i in range(15):
            beats = random.randint(1, 512 // bench.step)
            offset = 4096 * random.randrange(HOST_SIZE // 4096)
            data = random.randbytes(beats * bench.step)
            bench.axi.write(bench.base + offset, data)
            host_content[offset : offset + len(data)] = data
            await bench.axi.writes_answered()
            bench.interrupt.send(i)
            offset = 4096 * random.randrange(HOST_SIZE // 4096)
            bench.axi.read(bench.base + offset, beats)
            _, data, resp = await bench.axi.read_result()
            assert resp == OKAY and data == host_content[offset : offset + len(data)]

    tasks = [cocotb.start_soon(by_host()), cocotb.start_soon(by_device())]
    for task in tasks:
        await with_timeout(task, 400_000, "ns")
    await bench.idle()
    await wait_cycles(dut, 300)
    assert bytes(bench.host_memory.read(0, HOST_SIZE)) == host_content
    assert bench.vectors == list(range(15))


@cocotb.test()
async def an_interrupt_is_behind_the_data_that_it_announces(dut) -> None:
    """When it arrives, the data of every write that was answered before it was asked for is in host memory;
    also with few credits."""
    bench = Bench(dut, credits={"posted": (4, 64)}, mps=128)
    await bench.start(vectors=True)
    wrong = []
    expected: dict[int, tuple[int, bytes]] = {}

    def check(number: int) -> None:
        at, data = expected[number]
        if bytes(bench.host_memory.read(at, len(data))) != data:
            wrong.append(number)

    bench.on_vector = check

    async def granting() -> None:
        while True:
            bench.slot.grant(posted=(random.randint(0, 2), random.randint(0, 16)))
            await wait_cycles(dut, random.randint(1, 20))

    cocotb.start_soon(granting())
    for number in range(20):
        data = random.randbytes(bench.step * random.randint(1, 1024 // bench.step))
        expected[number] = (2048 * number, data)
        bench.axi.write(bench.base + 2048 * number, data)
        await bench.axi.writes_answered()
        for _ in range(random.randint(0, 2)):  # what is behind the interrupt does not matter
            bench.axi.write(bench.base + HOST_SIZE - 1024, bytes(512))
        bench.interrupt.send(number)
        await bench.axi.writes_answered()
    for _ in range(200):
        await wait_cycles(dut, 20)
        if len(bench.vectors) == 20:
            break
    assert bench.vectors == list(range(20)) and not wrong


@cocotb.test()
async def the_table_is_read_as_written(dut) -> None:
    bench = Bench(dut)
    host = await bench.start()
    table = {}
    for vector in range(VECTORS):
        assert await bench.read(MSIX + 16 * vector + 12) == 1, "a vector is masked after reset"
        for word in range(4):
            value = random.getrandbits(32)
            await host.bar_window[REGISTERS].write_dword(MSIX + 16 * vector + 4 * word, value)
            table[MSIX + 16 * vector + 4 * word] = value & (0xFFFFFFFC, 0xFFFFFFFF, 0xFFFFFFFF, 1)[word]
    for address, value in table.items():
        assert await bench.read(address) == value
    assert await host.bar_window[REGISTERS].read_qword(PBA) == 0
    await host.bar_window[REGISTERS].write_qword(MSIX + 8, 0x1_0000_0042)
    assert await host.bar_window[REGISTERS].read_qword(MSIX + 8) == 0x1_0000_0042


@cocotb.test()
async def masked_vectors_are_pending(dut) -> None:
    """By vector and by function; each is sent once when the mask goes, however often it was asked for."""
    bench = Bench(dut)
    host = await bench.start(vectors=True)
    await bench.write(MSIX + 16 * 5 + 12, 1)
    for vector in (5, 6, 5, 5, 7):
        bench.interrupt.send(vector)
    await wait_cycles(dut, 100)
    assert sorted(bench.vectors) == [6, 7]
    assert await bench.read(PBA) == 1 << 5
    assert bench.counts.msix_merged == 2
    await bench.write(MSIX + 16 * 5 + 12, 0)
    await wait_cycles(dut, 100)
    assert bench.vectors[-1] == 5 and await bench.read(PBA) == 0
    bench.vectors.clear()
    bench.slot.function.msix_cap.msix_function_mask = True
    bench.slot.configured()
    for vector in range(VECTORS):
        bench.interrupt.send(vector)
    await wait_cycles(dut, 200)
    assert not bench.vectors and await bench.read(PBA) == 0xFFFFFFFF
    bench.slot.function.msix_cap.msix_function_mask = False
    bench.slot.configured()
    await wait_cycles(dut, 400)
    assert sorted(bench.vectors) == list(range(VECTORS)) and await bench.read(PBA) == 0
    bench.vectors.clear()
    await host.set_master(False)
    await wait_cycles(dut, 50)
    bench.interrupt.send(3)
    await wait_cycles(dut, 100)
    assert not bench.vectors
    await host.set_master()
    await wait_cycles(dut, 100)
    assert bench.vectors == [3]


@cocotb.test()
async def intervals_moderate(dut) -> None:
    """Of a vector that has one: no sooner, and not much later; requests meanwhile are one interrupt. Others are not delayed."""
    bench = Bench(dut)
    await bench.start(vectors=True)
    await bench.write(INTERVAL + 4 * 2, 1000)
    assert await bench.read(INTERVAL + 4 * 2) == 1000 and await bench.read(INTERVAL + 4 * 3) == 0
    times: dict[int, list[int]] = {2: [], 3: []}
    bench.on_vector = lambda number: times[number].append(bench.slot.tx_header.cycle)
    for _ in range(100):
        bench.interrupt.send(2)
        bench.interrupt.send(3)
        await wait_cycles(dut, 50)
    await wait_cycles(dut, 1500)
    gaps = [after - before for before, after in zip(times[2], times[2][1:], strict=False)]
    assert len(times[2]) == 6 and all(1000 <= gap <= 1000 + VECTORS + 20 for gap in gaps), gaps
    assert len(times[3]) == 100


@cocotb.test()
async def nothing_passes_a_write(dut) -> None:
    """Neither a completion nor a read nor an interrupt that came after it, while it waits for credits."""
    bench = Bench(dut, credits={"posted": (0, 0)})
    host = await bench.start(vectors=True)
    bench.axi.write(bench.base, bytes(bench.step))
    await wait_cycles(dut, 60)
    before = len(bench.slot.sent)
    bench.axi.read(bench.base, 1)
    answer = cocotb.start_soon(host.bar_window[REGISTERS].read_dword(MSIX))
    await wait_cycles(dut, 200)
    bench.interrupt.send(0)
    await wait_cycles(dut, 100)
    assert len(bench.slot.sent) == before and not answer.done()
    bench.slot.grant(posted=(1, 4))
    await wait_cycles(dut, 200)
    first, *others = bench.slot.sent[before:]
    assert first.fmt_type == TlpType.MEM_WRITE and first.address == bench.base
    assert sorted(tlp.fmt_type.name for tlp in others) == ["CPL_DATA", "MEM_READ"]
    assert (await bench.axi.read_result())[2] == OKAY and answer.done() and not bench.vectors
    bench.slot.grant(posted=(1, 1))
    await wait_cycles(dut, 100)
    assert bench.vectors == [0]


@cocotb.test()
async def completions_and_writes_pass_reads(dut) -> None:
    """Reads without credits hold up neither the host's reads nor the device's writes."""
    bench = Bench(dut, credits={"non_posted": (0, 0)})
    await bench.start()
    for i in range(8):
        bench.axi.read(bench.base + 64 * i, 1)
    await wait_cycles(dut, 50)
    assert await bench.read(PAGE) == 0
    for i in range(8):
        bench.axi.write(bench.base + 4096 * i, bytes(bench.step))
    await bench.axi.writes_answered(500)
    assert not bench.axi.results
    bench.slot.grant(non_posted=(8, 0))
    for _ in range(8):
        assert (await bench.axi.read_result())[2] == OKAY


@cocotb.test()
async def completions_without_credits_wait(dut) -> None:
    bench = Bench(dut, credits={"completion": (0, 0)})
    await bench.start()
    answer = cocotb.start_soon(bench.read(PAGE))
    await wait_cycles(dut, 100)
    assert not answer.done()
    bench.axi.write(bench.base, bytes(bench.step))
    await bench.axi.writes_answered(100)
    bench.slot.grant(completion=(1, 0))
    await wait_cycles(dut, 100)
    assert not answer.done()
    bench.slot.grant(completion=(0, 1))
    assert await answer == 0


@cocotb.test()
async def a_reset_ends_all_and_leaves_it_usable(dut) -> None:
    """Function-level reset while everything is under way: it is done, and what comes late does no harm."""
    bench = Bench(dut, latency=(300, 500), credits={"posted": (6, 200)}, mps=128)
    host = await bench.start(vectors=True)
    most = 512 // bench.step
    for round_ in range(2):
        for i in range(6):
            bench.axi.read(bench.base + 4096 * i, most)
            bench.axi.write(bench.base + 4096 * i, bytes(512))
        bench.slot.grant(posted=(3, 24))
        reads = [cocotb.start_soon(bench.slot.rc.mem_read(host.bar_addr[MEMORY] + 512 * i, 512)) for i in range(3)]
        bench.interrupt.send(1)
        await wait_cycles(dut, 60 + 40 * round_)
        dut.flr_request.value = 1
        for _ in range(100):
            await wait_cycles(dut, 10)
            if int(dut.flr_done.value):
                break
        assert int(dut.flr_done.value), "the reset is not done"
        for read in reads:
            await with_timeout(read, 8_000, "ns")
        await bench.axi.writes_answered(500)
        results = [await bench.axi.read_result(500) for _ in range(6)]
        assert any(resp == SLVERR for _, _, resp in results)
        sent = len(bench.slot.sent)
        with pytest.raises(Exception, match="Unsuccessful"):
            await with_timeout(host.bar_window[REGISTERS].read_dword(PAGE), 8_000, "ns")
        assert len(bench.slot.sent) == sent + 1 and bench.slot.sent[-1].status == CplStatus.UR
        dut.flr_request.value = 0
        await wait_cycles(dut, 4)
        assert not int(dut.flr_done.value)
        bench.slot.rules.sent.clear()
        assert await bench.read(MSIX + 12) == 1 and await bench.read(PBA) == 0
        bench.slot.grant(posted=(100, 1000))
        data = random.randbytes(512)
        bench.axi.write(bench.base + 2048, data)
        await bench.axi.writes_answered()
        bench.axi.read(bench.base + 2048, most)
        assert await bench.axi.read_result() == (0, data, OKAY)
    assert bench.counts.resets == 2
    await wait_cycles(dut, 600)
    await bench.idle()


@pytest.mark.parametrize("width", some(WIDTHS))
def test_pcie_plane(width: int) -> None:
    run(
        "pcie_plane_bench",
        __file__,
        params={"DATA_W": width, "TIMEOUT": TIMEOUT, "VECTORS": VECTORS, "BAR_MAP": bar_maps(SIZES, {})},
        ports={
            **SLOT,
            **tlps(width),
            "registers": AxilMaster(12),
            "memory": AxiMaster(width),
            "host": AxiSlave(width),
            "interrupt": Sink("pcie_pkg::msix_vector_t"),
            "events": Plain("output", "pcie_pkg::pcie_events_t"),
            "idle": Plain("output", "logic"),
        },
        sources=[Path(__file__).with_name("pcie_plane_bench.sv")],
        random_state=True,
    )
