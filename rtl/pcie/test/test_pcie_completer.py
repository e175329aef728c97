# SPDX-License-Identifier: Apache-2.0
"""pcie_completer, judged by the root complex of cocotbext-pcie: registers and memory of the device are what the host wrote, by any
size, alignment and byte enables; what is wrong costs an answer that says so, and nothing hangs."""

import random
from typing import Any

import cocotb
import pytest
from cocotb.triggers import with_timeout
from nacelle_tb.axil import DECERR, Slave
from nacelle_tb.bench import AxilMaster, AxiMaster, Plain, run
from nacelle_tb.long import alternately
from nacelle_tb.memory import AxiMemory
from nacelle_tb.pcie import NO_BAR, Counts, CplStatus, PcieId, Slot, Tlp, TlpType, byte_count
from nacelle_tb.planes import bar_maps, tlps
from nacelle_tb.streams import CLOCK_NS, cycles, start, wait_cycles
from nacelle_tb.widths import WIDTHS

REGISTERS, DOORBELLS, MEMORY = 0, 2, 4
SIZES = {REGISTERS: 1 << 16, DOORBELLS: 1 << 14, MEMORY: 1 << 16}
BASES = {REGISTERS: 0, DOORBELLS: 1 << 16, MEMORY: 0}
HOST = PcieId(0, 0, 0)


class Bench:
    def __init__(
        self, dut, stall: float = 0.0, latency: int | tuple[int, int] = (1, 20), switch: bool = False, mps: int = 256
    ) -> None:
        self.dut = dut
        dut.refuse.value = 0
        self.slot = Slot(dut, SIZES, stall=stall, switch=switch, mps=mps)
        self.memory = AxiMemory(dut, "memory", 1 << 17, latency=latency, stall=stall, noise=True)
        self.slave = Slave(dut, "registers", lambda channel: random.randint(0, 3) if stall else 0)
        self.counts = Counts(dut, "events", "pcie_pkg::completer_events_t")

    async def start(self) -> Any:
        await start(self.dut)
        return await self.slot.enumerate()

    def at(self, bar: int, offset: int) -> int:
        return self.slot.host.bar_addr[bar] + offset

    def tlp(self, bar: int, offset: int, dwords: int, first_be: int, last_be: int = 0, data: bytes | None = None) -> Tlp:
        tlp = Tlp()
        addr = self.at(bar, offset)
        far = addr >> 32 != 0
        if data is None:
            tlp.fmt_type = TlpType.MEM_READ_64 if far else TlpType.MEM_READ
        else:
            tlp.fmt_type = TlpType.MEM_WRITE_64 if far else TlpType.MEM_WRITE
            tlp.data = bytearray(data)
        tlp.address, tlp.length, tlp.first_be, tlp.last_be = addr, dwords, first_be, last_be
        tlp.requester_id = HOST
        return tlp

    async def ask(self, tlp: Tlp) -> tuple[int, bytes]:
        """Status and data of a read."""
        completions = await with_timeout(self.slot.rc.perform_nonposted_operation(tlp), 4_000 * CLOCK_NS, "ns")
        return completions[-1].status, b"".join(bytes(completion.data) for completion in completions)

    async def idle(self) -> None:
        for _ in range(1000):
            await wait_cycles(self.dut, 4)
            if int(self.dut.idle.value) and not self.slot._arrived and not self.slot.rx_header.busy:
                break
        assert int(self.dut.idle.value)


def merged(old: bytes, new: bytes, first_be: int, last_be: int) -> bytes:
    """What a write with these byte enables leaves."""
    enables = [1] * len(new)
    for i in range(4):
        enables[i] = first_be >> i & 1
        if len(new) > 4:
            enables[len(new) - 4 + i] = last_be >> i & 1
    return bytes(n if e else o for o, n, e in zip(old, new, enables, strict=True))


@cocotb.test()
@cocotb.parametrize(stall=alternately([0.0, 0.3]), switch=[False, True])
async def memory_is_what_the_host_wrote(dut, stall: float, switch: bool) -> None:
    bench = Bench(dut, stall, switch=switch, mps=random.choice([128, 256, 512]))
    host = await bench.start()
    content = bytearray(SIZES[MEMORY])
    bench.memory.write(0, bytes(content))
    window = host.bar_window[MEMORY]
    for _ in range(25):
        length = random.choice([1, 2, 3, 4, 7, 8, 63, 64, 65, random.randint(1, 200), random.randint(1, 1500)])
        offset = random.randrange(len(content) - length)
        data = random.randbytes(length)
        await window.write(offset, data)
        content[offset : offset + length] = data
        if random.random() < 0.6:
            length = random.choice([1, 4, 8, 64, random.randint(1, 1500)])
            at = max(0, min(len(content) - length, offset - random.randrange(64)))
            assert await with_timeout(window.read(at, length), 10_000 * CLOCK_NS, "ns") == content[at : at + length]
    await bench.idle()
    assert bench.memory.read(0, len(content)) == content


@cocotb.test()
@cocotb.parametrize(bar=[REGISTERS, MEMORY])
async def byte_enables_hold_to_the_byte(dut, bar: int) -> None:
    """Any byte enables of the first and last dword, also with holes, also none."""
    bench = Bench(dut, random.choice([0.0, 0.3]))
    await bench.start()
    size = 1 << 10
    content = bytearray(size)
    bench.memory.write(0, bytes(SIZES[MEMORY]))
    for _ in range(60):
        dwords = random.choice([1, 1, 2, 3, 5, 16, 17, 33])
        offset = 4 * random.randrange((size - 4 * dwords) // 4)
        first, last = random.randrange(16), random.randrange(16) if dwords > 1 else 0
        data = random.randbytes(4 * dwords)
        if random.random() < 0.6:
            await bench.slot.rc.send(bench.tlp(bar, offset, dwords, first, last, data))
            content[offset : offset + 4 * dwords] = merged(content[offset : offset + 4 * dwords], data, first, last)
            continue
        status, data = await bench.ask(bench.tlp(bar, offset, dwords, first, last))
        assert status == CplStatus.SC and len(data) == 4 * dwords
        expected = bytes(content[offset : offset + 4 * dwords])
        assert merged(bytes(4 * dwords), data, first, last) == merged(bytes(4 * dwords), expected, first, last)
    await bench.idle()
    if bar == MEMORY:
        assert bench.memory.read(0, size) == content
    else:
        words = b"".join(bench.slave.words.get(at, 0).to_bytes(4, "little") for at in range(0, size, 4))
        assert words == content


@cocotb.test()
@cocotb.parametrize(switch=[False, True])
async def registers_are_read_and_written(dut, switch: bool) -> None:
    bench = Bench(dut, switch=switch)
    host = await bench.start()
    window = host.bar_window[REGISTERS]
    await window.write_dword(0x1000, 0x12345678)
    await window.write_qword(0xFFF0, 0x1122334455667788)
    assert await window.read_dword(0x1000) == 0x12345678
    assert await window.read_qword(0xFFF0) == 0x1122334455667788
    assert await window.read(0x1001, 2) == b"\x56\x34"
    block = random.randbytes(300)
    await window.write(0x2004, block)
    assert await window.read(0x2004, 300) == block


@cocotb.test()
async def a_read_is_behind_every_write_before_it(dut) -> None:
    """Into whichever BAR: the read's access begins when their last response has come."""
    bench = Bench(dut, latency=(60, 100))
    host = await bench.start()
    for i in range(6):
        data = random.randbytes(100)
        await host.bar_window[MEMORY].write(1024 * i + 3, data)
        await host.bar_window[DOORBELLS].write(8 * i, i.to_bytes(4, "little"))
        bench.slave.held.add("b")
        await host.bar_window[REGISTERS].write_dword(4 * i, i)
        read = cocotb.start_soon(bench.ask(bench.tlp(MEMORY, 1024 * i, 32, 0xF, 0xF)))
        other = cocotb.start_soon(bench.ask(bench.tlp(REGISTERS, 4 * i, 1, 0xF)))
        await wait_cycles(dut, 400)
        assert not read.done() and not other.done()
        bench.slave.held.clear()
        _, got = await read
        assert got[3:103] == data
        assert (await other)[1] == i.to_bytes(4, "little")


@cocotb.test()
async def a_doorbell_is_behind_its_data(dut) -> None:
    """No write of another BAR begins before those ahead of it are answered."""
    bench = Bench(dut, latency=(30, 60))
    host = await bench.start()
    order = []
    bench.memory.on_write = lambda addr, data: order.append(addr)
    for i in range(8):
        await host.bar_window[MEMORY].write(4096 * i, bytes([i + 1]) * 512)
        await host.bar_window[DOORBELLS].write(64 * i, bytes([i + 1]) * 64)
    answered = bench.memory.stats
    seen = 0
    while answered.write_bursts < 24 or bench.memory.outstanding():
        await wait_cycles(dut, 1)
        waiting = {burst.addr >> 16 for burst in [*bench.memory._writes, *bench.memory._acks]}
        assert len(waiting) <= 1, "writes to two BARs are under way"
        seen += 1
        assert seen < 20_000


@cocotb.test()
async def writes_pass_reads_that_wait(dut) -> None:
    """Reads that cannot be answered never stop writes, as many as the credits allow."""
    bench = Bench(dut)
    await bench.start()
    bench.slave.held.add("r")
    reads = [bench.tlp(REGISTERS, 4 * i, 1, 0xF) for i in range(32)]
    tasks = [cocotb.start_soon(bench.ask(read)) for read in reads]
    await wait_cycles(dut, 300)
    data = random.randbytes(2000)
    await bench.slot.host.bar_window[MEMORY].write(100, data)
    await wait_cycles(dut, 600)
    assert bench.memory.read(100, 2000) == data
    assert not any(task.done() for task in tasks)
    bench.slave.held.clear()
    for task in tasks:
        assert (await task)[0] == CplStatus.SC


@cocotb.test()
async def what_is_not_there_is_refused(dut) -> None:
    bench = Bench(dut)
    host = await bench.start()
    slot = bench.slot
    refused = 0
    for change in ("bar", "func", "page", "io", "atomic", "locked", "space"):
        read = bench.tlp(MEMORY, 4096 - 64, 16, 0xC, 0x3)
        read.tag = 77
        if change == "page":
            read.length = 17
        if change == "func":
            read.give_func = 1
        if change == "io":
            read.fmt_type, read.address, read.length, read.last_be = TlpType.IO_READ, 0x100, 1, 0
        if change == "locked":
            read.fmt_type = TlpType.MEM_READ_LOCKED_64
        if change == "atomic":
            read.fmt_type, read.length, read.data = TlpType.FETCH_ADD_64, 2, bytearray(8)
        if change == "space":
            await host.set_master(False)
            await host.config_write_word(4, 0)
        before = len(slot.sent)
        slot.give(read, NO_BAR if change == "bar" else None)
        for _ in range(100):
            await wait_cycles(dut, 1)
            if len(slot.sent) > before:
                break
        answer = slot.sent[-1]
        assert len(slot.sent) == before + 1 and answer.status == CplStatus.UR and answer.tag == 77, change
        await slot.rc.recv_cpl(77)
        refused += 1
        if change in ("bar", "func", "page", "space"):
            dwords = 17 if change == "page" else 16
            write = bench.tlp(MEMORY, 4096 - 64, dwords, 0xF, 0xF, bytes([1]) * 4 * dwords)
            write.give_func = int(change == "func")
            slot.give(write, NO_BAR if change == "bar" else None)
    message = Tlp()
    message.fmt_type = TlpType.MSG_DATA_LOCAL
    message.length, message.data = 3, bytearray(12)
    slot.give(message)
    await bench.idle()
    assert (bench.counts.refused_reads, bench.counts.refused_writes, bench.counts.messages) == (refused, 4, 1)
    assert bench.memory.stats.write_bursts == bench.memory.stats.read_bursts == 0
    await host.config_write_word(4, 6)
    await host.bar_window[MEMORY].write(0, b"alive")
    assert await host.bar_window[MEMORY].read(0, 5) == b"alive"


@cocotb.test()
async def poisoned_and_damaged_writes_have_no_effect(dut) -> None:
    bench = Bench(dut, 0.2)
    host = await bench.start()
    before = random.randbytes(SIZES[MEMORY])
    bench.memory.write(0, before)
    content = bytearray(before)
    bad = 0
    for i in range(40):
        offset, dwords = 4 * random.randrange(4000), random.randint(1, 20)
        offset -= max(0, offset % 4096 + 4 * dwords - 4096)
        data = random.randbytes(4 * dwords)
        write = bench.tlp(MEMORY, offset, dwords, 0xF, 0xF if dwords > 1 else 0, data)
        how = random.choice(["good", "poisoned", "damaged"])
        write.ep = how == "poisoned"
        if how == "damaged":
            bench.slot.damage.add(i + 1)
        if how == "good":
            content[offset : offset + 4 * dwords] = data
        else:
            bad += 1
        bench.slot.give(write)
    assert await host.bar_window[MEMORY].read(0, 64) == content[:64]
    await bench.idle()
    assert bench.memory.read(0, len(content)) == content
    assert bench.counts.poisoned_writes + bench.counts.damaged_writes == bad and bench.counts.writes + bad >= 40


@cocotb.test()
@cocotb.parametrize(bar=[REGISTERS, MEMORY])
async def an_error_of_the_device_is_an_abort(dut, bar: int) -> None:
    """A read that has it ends there with CA; those around it are answered."""
    bench = Bench(dut, 0.2)
    host = await bench.start()
    bench.memory.errors.append((0x1000, 0x103F))
    await host.bar_window[bar].write(0x800, bytes(16))
    for offset, dwords in ((0x800, 4), (0x1000 - 512, 128), (0x1000, 1), (0x1000, 128), (0x1200, 64), (0x1000 - 4, 1)):
        bad = 0x1000 - 4 * dwords < offset < 0x1040
        if bar == REGISTERS:
            bench.slave.resp = DECERR if bad else 0
        status, data = await bench.ask(bench.tlp(bar, offset, dwords, 0xF, 0xF if dwords > 1 else 0))
        assert status == (CplStatus.CA if bad else CplStatus.SC), hex(offset)
        assert len(data) <= 4 * dwords and (bad or len(data) == 4 * dwords)
    bench.slave.resp = DECERR if bar == REGISTERS else 0
    await host.bar_window[bar].write(0x1000, bytes(8))
    await bench.idle()
    assert (bench.counts.read_errors, bench.counts.write_errors) == (2, 1)


@cocotb.test()
async def a_read_may_fail_in_the_middle(dut) -> None:
    bench = Bench(dut, mps=128)
    await bench.start()
    bench.memory.errors.append((0x1100, 0x113F))
    reads = [cocotb.start_soon(bench.ask(bench.tlp(MEMORY, 0x1000 + skew, 256, 0xF, 0xF))) for skew in (0, 0x1000, 0, 0x2000)]
    results = [await read for read in reads]
    assert [status for status, _ in results] == [CplStatus.CA, CplStatus.SC, CplStatus.CA, CplStatus.SC]
    assert [len(data) for _, data in results] == [256, 1024, 256, 1024]


@cocotb.test()
async def a_read_of_nothing_waits_for_writes_only(dut) -> None:
    """The flush of a host: one dword of any value, byte count 1, no access to registers."""
    bench = Bench(dut)
    host = await bench.start()
    for bar in (REGISTERS, MEMORY):
        await host.bar_window[bar].write(64, b"abcd")
        status, data = await bench.ask(bench.tlp(bar, 64, 1, 0))
        assert status == CplStatus.SC and len(data) == 4
        assert bench.slot.sent[-1].byte_count == byte_count(1, 0, 0) == 1
    assert not bench.slave.queues["ar"] and bench.slot.sent[-1].lower_address == 64


@cocotb.test()
async def refuse_refuses_all(dut) -> None:
    bench = Bench(dut)
    host = await bench.start()
    dut.refuse.value = 1
    await wait_cycles(dut, 2)
    await host.bar_window[REGISTERS].write_dword(0, 1)
    assert (await bench.ask(bench.tlp(REGISTERS, 0, 1, 0xF)))[0] == CplStatus.UR
    dut.refuse.value = 0
    await wait_cycles(dut, 2)
    assert await host.bar_window[REGISTERS].read_dword(0) == 0


@cocotb.test()
async def latency_in_cycles(dut) -> None:
    """Of a read, from its header to AR; of a write of one beat, from its header to AW, and of a long one from its last beat."""
    bench = Bench(dut, mps=512)
    await bench.start()
    step = bench.memory.bytes_per_beat
    read = bench.tlp(MEMORY, 0, 1, 0xF)
    bench.slot.give(read)
    assert await cycles(dut, ("rx_header_valid", "rx_header_ready"), "memory_arvalid") == 6
    await bench.idle()
    bench.slot.give(bench.tlp(MEMORY, 0, 2, 0xF, 0xF, bytes(8)))
    assert await cycles(dut, ("rx_header_valid", "rx_header_ready"), "memory_awvalid") == 5
    await bench.idle()
    bench.slot.give(bench.tlp(MEMORY, 0, step, 0xF, 0xF, bytes(4 * step)))
    assert await cycles(dut, ("rx_data_tvalid", "rx_data_tready", "rx_data_tlast"), "memory_awvalid") == 3


@cocotb.test()
async def one_beat_a_cycle(dut) -> None:
    """Writes of a payload each, and reads of a page, at the rate of the data path."""
    bench = Bench(dut, latency=40, mps=512)
    await bench.start()
    step = bench.memory.bytes_per_beat
    for i in range(16):
        bench.slot.give(bench.tlp(MEMORY, 512 * i, 128, 0xF, 0xF, random.randbytes(512)))
    await bench.idle()
    seen = bench.memory.stats.write_beat_cycles
    assert seen[-1] - seen[0] + 1 <= 16 * 512 // step + 16 * 3
    for i in range(4):
        read = bench.tlp(MEMORY, 4096 * i, 1024, 0xF, 0xF)
        read.tag = 40 + i
        bench.slot.give(read)
    await bench.idle()
    seen = bench.memory.stats.read_beat_cycles
    assert seen[-1] - seen[0] + 1 <= 4 * 4096 // step + 8


@pytest.mark.parametrize("width", WIDTHS)
def test_pcie_completer(width: int) -> None:
    run(
        "pcie_completer",
        __file__,
        params={"DATA_W": width, "BAR_MAP": bar_maps(SIZES, BASES)},
        ports={
            "settings": Plain("input", "pcie_pkg::pcie_configs_t"),
            "refuse": Plain("input", "logic [1:0]"),
            **tlps(width),
            "registers": AxilMaster(20),
            "memory": AxiMaster(width),
            "events": Plain("output", "pcie_pkg::completer_events_t"),
            "quiet": Plain("output", "logic [1:0]"),
            "idle": Plain("output", "logic"),
        },
        random_state=True,
    )
