# SPDX-License-Identifier: Apache-2.0
"""pcie_requester with pcie_transmit, judged by the root complex of cocotbext-pcie and by the rules that it does not check: host
memory is a memory of the device, whatever the settings and the order of completions; what the host does wrong costs an error, and
nothing hangs."""

import random
from pathlib import Path
from typing import Any

import cocotb
import pytest
from nacelle_tb.bench import AxiSlave, Plain, run
from nacelle_tb.long import some
from nacelle_tb.memory import OKAY, SLVERR, AxiDriver
from nacelle_tb.pcie import READS, Counts, Host, PcieId, Slot, Tlp
from nacelle_tb.planes import tlps
from nacelle_tb.streams import cycles, start, wait_cycles
from nacelle_tb.widths import WIDTHS

SIZE = 1 << 16
TIMEOUT = 4096


class Bench:
    """`host`: options of Host; without any, host memory is the root complex's own."""

    def __init__(self, dut, stall: float = 0.0, mps: int = 256, switch: bool = False, credits: Any = None, **host: Any) -> None:
        self.dut = dut
        dut.reset.value = 0
        self.slot = Slot(dut, {0: 1 << 16}, stall=stall, mps=mps, switch=switch, credits=credits)
        self.host = Host(self.slot, SIZE, **host) if host else None
        self.memory = self.host.memory if self.host else self.slot.rc.mem_pool.alloc_region(SIZE)
        self.base = self.memory.get_absolute_address(0)
        self.axi = AxiDriver(dut, "host", stall)
        self.step = self.axi.bytes_per_beat
        self.counts = Counts(dut, "events", "pcie_pkg::requester_events_t")

    async def start(self, mrrs: int = 512, extended: bool = True) -> None:
        await start(self.dut)
        await self.slot.enumerate()
        self.set(mrrs=mrrs, extended=extended)

    def set(self, mrrs: int | None = None, extended: bool | None = None, master: bool | None = None) -> None:
        cap = self.slot.function.pcie_cap
        if mrrs is not None:
            cap.max_read_request_size = (mrrs // 128).bit_length() - 1
        if extended is not None:
            cap.extended_tag_field_enable = extended
        if master is not None:
            self.slot.function.bus_master_enable = master
        self.slot.configured()

    def fill(self) -> bytes:
        content = random.randbytes(SIZE)
        self.memory[0:SIZE] = content
        return content

    def burst(self) -> tuple[int, int]:
        """Where a burst within 4 KiB begins, and its beats."""
        most = min(4096 // self.step, 256)
        beats = random.choice([1, 1, 2, 3, 4, 5, most, random.randint(1, most)])
        page = random.randrange(SIZE // 4096) * 4096
        return page + self.step * random.randint(0, 4096 // self.step - beats), beats

    async def reads(self, bursts: list[tuple[int, int]], timeout: int = 60_000) -> list[tuple[bytes, int]]:
        for addr, beats in bursts:
            self.axi.read(self.base + addr, beats, random.randrange(4))
        return [(await self.axi.read_result(timeout))[1:] for _ in bursts]

    async def idle(self) -> None:
        for _ in range(4000):
            await wait_cycles(self.dut, 4)
            if int(self.dut.idle.value):
                return
        raise AssertionError("it does not become idle")


def random_strobes(count: int) -> int:
    """Strobes of a burst: all, a run, or anything."""
    whole = (1 << count) - 1
    how = random.choice(["all", "run", "few", "any", "dwords", "none"])
    if how == "run":
        first, end = sorted(random.sample(range(count + 1), 2))
        return (1 << end) - (1 << first)
    if how == "few":
        return sum(1 << random.randrange(count) for _ in range(3)) & whole
    if how == "any":
        return random.getrandbits(count)
    if how == "dwords":
        return sum(0xF << 4 * i for i in range(count // 4) if random.random() < 0.7)
    return whole if how == "all" else 0


async def exchange(bench: Bench, rounds: int) -> None:
    """Writes and reads anything; all of it must be there."""
    content = bytearray(bench.fill())
    for _ in range(rounds):
        for _ in range(random.randint(1, 3)):
            addr, beats = bench.burst()
            data = random.randbytes(beats * bench.step)
            strobes = random_strobes(len(data))
            skew = random.randrange(bench.step) if strobes & 1 == 0 else 0
            strobes &= -1 << skew
            bench.axi.write(bench.base + addr + skew, data, random.randrange(4), strobes)
            for i, byte in enumerate(data):
                if strobes >> i & 1:
                    content[addr + i] = byte
        await bench.axi.writes_answered()
        bursts = [bench.burst() for _ in range(random.randint(1, 4))]
        for (addr, beats), (data, resp) in zip(bursts, await bench.reads(bursts), strict=True):
            assert resp == OKAY and data == content[addr : addr + beats * bench.step]
    await bench.idle()
    await wait_cycles(bench.dut, 200)
    assert bytes(bench.memory[0:SIZE]) == content
    assert bench.axi.write_errors == 0


@cocotb.test()
@cocotb.parametrize(split=[False, True], switch=[False, True])
async def host_memory_is_a_memory(dut, split: bool, switch: bool) -> None:
    bench = Bench(dut, random.choice([0.0, 0.2]), switch=switch)
    bench.slot.rc.split_on_all_rcb = split
    await bench.start()
    await exchange(bench, 12)


@cocotb.test()
@cocotb.parametrize(
    sizes=some([(128, 128), (512, 4096), (256, 256), (128, 4096), (512, 128), (256, 512), (512, 512), (4096, 4096)], 2)
)
async def no_tlp_is_over_the_limits(dut, sizes: tuple[int, int]) -> None:
    """And each is as large as these, 512 bytes, and 4 KiB allow."""
    mps, mrrs = sizes
    bench = Bench(dut, mps=mps)
    await bench.start(mrrs)
    content = bench.fill()
    largest = min(4096, 256 * bench.step)
    data = random.randbytes(largest)
    bench.axi.write(bench.base + 8192, data)
    await bench.axi.writes_answered()
    (read,) = await bench.reads([(4096, largest // bench.step)])
    assert read == (content[4096 : 4096 + largest], OKAY)
    await wait_cycles(dut, 200)
    assert bytes(bench.memory[8192 : 8192 + largest]) == data
    sizes_seen = bench.slot.rules.sizes
    assert set(sizes_seen["write"]) == {min(mps, 512)} and set(sizes_seen["read"]) == {min(mrrs, 512)}
    await exchange(bench, 3)


@cocotb.test()
@cocotb.parametrize(rcb=[64, 128], mps=[128, 512])
async def completions_come_in_any_order(dut, rcb: int, mps: int) -> None:
    bench = Bench(dut, random.choice([0.0, 0.2]), mps=mps, latency=(1, 300), seed=random.getrandbits(30), rcb=rcb)
    await bench.start()
    content = bench.fill()
    bursts = [bench.burst() for _ in range(40)]
    for (addr, beats), (data, resp) in zip(bursts, await bench.reads(bursts), strict=True):
        assert resp == OKAY and data == content[addr : addr + beats * bench.step]
    assert bench.slot.rules.most_reads > 4
    await bench.idle()


@cocotb.test()
@cocotb.parametrize(extended=[False, True])
async def as_many_tags_as_allowed(dut, extended: bool) -> None:
    bench = Bench(dut, latency=(1000, 1000))
    await bench.start(mrrs=128, extended=extended)
    content = bench.fill()
    bursts = [(128 * random.randrange(SIZE // 128), max(1, 64 // bench.step)) for _ in range(150)]
    for (addr, beats), (data, resp) in zip(bursts, await bench.reads(bursts), strict=True):
        assert resp == OKAY and data == content[addr : addr + beats * bench.step]
    assert bench.slot.rules.most_reads == (64 if extended else 32)


@cocotb.test()
@cocotb.parametrize(fate=["ur", "ca", "crs", "poisoned", "damaged", "lost", "cut"])
async def a_failed_read_fails_alone(dut, fate: str) -> None:
    """Its beats are zeros with SLVERR; the reads around it are as they should be, and the tag is usable again."""
    bad: set[int] = set()
    bench = Bench(dut, latency=(1, 60), seed=random.getrandbits(30), fate=lambda tlp: fate if tlp.address in bad else "good")
    await bench.start(mrrs=256)
    content = bench.fill()
    bursts = [(4096 * random.randrange(15) + 256 * i, 256 // bench.step) for i in range(16)]
    for i in (3, 4, 9):
        bad.add(bench.base + bursts[i][0])
    faults = 0
    for round_ in range(2):
        got = await bench.reads(bursts)
        for (addr, _), (data, resp) in zip(bursts, got, strict=True):
            failed = bench.base + addr in bad
            faults += failed
            assert resp == (SLVERR if failed else OKAY), (round_, hex(addr))
            assert data == (bytes(256) if failed else content[addr : addr + 256])
    names = {"ur": "unsupported", "crs": "unsupported", "ca": "aborts", "poisoned": "poisoned", "damaged": "poisoned"}
    assert getattr(bench.counts, names.get(fate, "timeouts")) == faults > 0
    assert bench.counts.unexpected == bench.counts.late == 0
    await bench.idle()


@cocotb.test()
async def a_read_of_no_memory_fails(dut) -> None:
    """The root complex itself says UR."""
    bench = Bench(dut)
    await bench.start()
    bench.axi.read(1 << 40, 1)
    assert (await bench.axi.read_result())[2] == SLVERR
    assert bench.counts.unsupported == 1


@cocotb.test()
async def a_late_completion_meets_no_other_read(dut) -> None:
    """Its tag rests until it has come, or for four times the time."""
    lost = True
    bench = Bench(dut, latency=(1, 5), fate=lambda tlp: "lost" if lost else "good")
    await bench.start(mrrs=128, extended=False)
    content = bench.fill()
    beats = 128 // bench.step
    got = await bench.reads([(128 * i, beats) for i in range(10)])
    assert all(resp == SLVERR for _, resp in got)
    lost = False
    late = {piece.tag for piece in bench.host.lost}
    assert len(late) == 10
    for round_ in range(3):
        bench.slot.sent.clear()
        bursts = [(128 * i, beats) for i in range(100, 180)]
        reads = cocotb.start_soon(bench.reads(bursts))
        await wait_cycles(dut, 20)
        for piece in bench.host.lost if round_ == 1 else ():
            bench.slot.give(piece)
        for (addr, _), (data, resp) in zip(bursts, await reads, strict=True):
            assert resp == OKAY and data == content[addr : addr + 128]
        used = {tlp.tag for tlp in bench.slot.sent}
        assert round_ != 0 or not late & used, "a tag that rests was used"
    assert late <= used, "the tags were not used again"
    await bench.idle()
    assert (bench.counts.late, bench.counts.unexpected) == (len(bench.host.lost), 0)


@cocotb.test()
async def at_the_edge_of_time_a_read_is_right_or_failed(dut) -> None:
    """Completions at about the time at which their read is given up: never data of another read, and no tag is lost."""
    bench = Bench(dut, latency=(TIMEOUT - 20, TIMEOUT * 5 // 4 + 20), seed=random.getrandbits(30))
    await bench.start(mrrs=128, extended=False)
    bench.slot.rules.to_device = lambda tlp: bench.slot.rules.sent.pop(tlp.tag, None)  # it cannot know which came too late
    bench.slot.rules.sent = Forgetful()
    content = bench.fill()
    beats = 128 // bench.step
    failed = 0
    for _ in range(4):
        bursts = [(128 * random.randrange(SIZE // 128), beats) for _ in range(32)]
        for (addr, _), (data, resp) in zip(bursts, await bench.reads(bursts), strict=True):
            assert data == (content[addr : addr + 128] if resp == OKAY else bytes(128))
            failed += resp != OKAY
    await bench.idle()
    await wait_cycles(dut, 4)
    assert 0 < failed < 128 and bench.counts.timeouts == failed
    assert bench.counts.malformed == bench.counts.unexpected == 0


class Forgetful(dict):
    """Requests that nobody remembers: their tags may be used again at any time."""

    def __contains__(self, tag: object) -> bool:
        return False


@cocotb.test()
async def rest_ends_by_itself(dut) -> None:
    lost = True
    bench = Bench(dut, latency=(1, 5), fate=lambda tlp: "lost" if lost else "good")
    await bench.start(mrrs=128, extended=False)
    content = bench.fill()
    beats = 128 // bench.step
    got = await bench.reads([(128 * i, beats) for i in range(32)])
    assert all(resp == SLVERR for _, resp in got)
    lost = False
    bench.axi.read(bench.base, beats)
    await wait_cycles(dut, 500)
    assert not bench.axi.results, "a tag that rests was used"
    bench.slot.rules.sent.clear()
    _, data, resp = await bench.axi.read_result(5 * TIMEOUT)
    assert resp == OKAY and data == content[:128]


@cocotb.test()
async def a_completion_that_does_not_fit_ends_its_read(dut) -> None:
    bench = Bench(dut, latency=(1, 5), fate=lambda tlp: "lost")
    await bench.start(mrrs=256)
    content = bench.fill()
    wrongs = ("byte_count", "lower_address", "long", "short", "empty", "foreign", "tag")
    for wrong in wrongs:
        before = len(bench.host.lost)
        bench.axi.read(bench.base + 256, 256 // bench.step)
        while len(bench.host.lost) == before:
            await wait_cycles(dut, 4)
        whole = Tlp(bench.host.lost[before])
        whole.byte_count, whole.lower_address = 256, 0
        whole.set_data(content[256:512])
        if wrong == "byte_count":
            whole.byte_count = 260
        if wrong == "lower_address":
            whole.lower_address = 4
        if wrong == "long":
            whole.set_data(content[256:516])
            whole.byte_count = 260
        if wrong == "short":
            whole.set_data(content[256:296])
        if wrong == "empty":
            whole = Tlp.create_completion_for_tlp(whole, PcieId(0, 0, 0))
        if wrong == "foreign":
            whole.requester_id = PcieId(7, 0, 0)
        if wrong == "tag":
            whole.tag = 0x3FF
        bench.slot.give(whole)
        _, data, resp = await bench.axi.read_result(3 * TIMEOUT)
        assert (data, resp) == (bytes(256), SLVERR), wrong
    await wait_cycles(dut, 4)
    assert (bench.counts.malformed, bench.counts.unexpected, bench.counts.timeouts) == (5, 2, 2)
    bench.host.fate = lambda tlp: "good"
    assert await bench.reads([(256, 256 // bench.step)]) == [(content[256:512], OKAY)]


@cocotb.test()
async def unexpected_completions_are_dropped(dut) -> None:
    bench = Bench(dut, 0.2)
    await bench.start()
    for _ in range(50):
        stray = Tlp.create_completion_for_tlp(Tlp(), PcieId(0, 0, 0), random.random() < 0.5)
        stray.tag, stray.requester_id = random.randrange(1024), bench.slot.function.pcie_id
        if stray.has_data():
            stray.set_data(random.randbytes(4 * random.randint(1, 32)))
            stray.byte_count = len(stray.data)
        bench.slot.give(stray)
    await bench.slot.taken()  # else one may meet a read
    await exchange(bench, 3)
    assert (bench.counts.unexpected, bench.counts.malformed) == (50, 0)


@cocotb.test()
@cocotb.parametrize(how=["master", "reset"])
async def switched_off_in_the_middle_all_ends(dut, how: str) -> None:
    """Bus mastering off: no more requests, all bursts end, completions that are under way are taken. Reset: no read is waited for
    either. Then on again."""
    bench = Bench(dut, latency=(400, 600), seed=3)
    await bench.start(mrrs=128)
    content = bytearray(bench.fill())
    most = min(4096 // bench.step, 64)
    bursts = [(4096 * i, most) for i in range(8)]
    for addr, beats in bursts:
        bench.axi.read(bench.base + addr, beats)
        bench.axi.write(bench.base + addr, content[addr : addr + beats * bench.step])
    await wait_cycles(dut, 30)
    sent = len(bench.slot.sent)
    if how == "master":
        bench.set(master=False)
    else:
        dut.reset.value = 1
    await wait_cycles(dut, 60)
    assert len(bench.slot.sent) <= sent + 16  # headers run ahead of their payloads
    sent = len(bench.slot.sent)
    await bench.axi.writes_answered(3 * TIMEOUT)
    limit = 3 * TIMEOUT if how == "master" else 200
    results = [await bench.axi.read_result(limit) for _ in bursts]
    assert any(resp == SLVERR for _, _, resp in results) and bench.axi.write_errors > 0
    assert len(bench.slot.sent) == sent
    for _ in range(3):
        bench.axi.read(bench.base, 1)
        assert (await bench.axi.read_result(100))[2] == SLVERR
    await wait_cycles(dut, 10)
    assert int(dut.quiet.value)
    assert bench.counts.writes_off > 0 and bench.counts.reads_off > 0
    if how == "reset":
        assert bench.counts.timeouts > 0
        await wait_cycles(dut, 800)  # the host answers what it got before
        assert bench.counts.late > 0
        dut.reset.value = 0
    else:
        bench.set(master=True)
    await wait_cycles(dut, 4)
    bench.axi.write_errors = 0
    bench.slot.rules.sent.clear()
    await exchange(bench, 2)


@cocotb.test()
async def without_credits_it_waits(dut) -> None:
    """Never one more than was granted (Slot checks that), and no read passes a write that waits."""
    bench = Bench(dut, credits={"posted": (2, 32), "non_posted": (3, 0)})
    await bench.start(mrrs=128)
    content = bytearray(bench.fill())
    largest = min(1024, 256 * bench.step)
    data = random.randbytes(largest)
    for at in range(0, 8 * largest, largest):
        bench.axi.write(bench.base + at, data)
        content[at : at + largest] = data
    await wait_cycles(dut, 300)
    assert bench.slot.used["posted"] == [2, 32]
    bench.axi.read(bench.base, 1)
    await wait_cycles(dut, 300)
    assert bench.slot.used["non_posted"] == [0, 0], "a read passed a write"
    while bench.slot.used["posted"][0] < 8 * largest // 256:
        bench.slot.grant(posted=(random.randint(0, 2), random.randint(0, 40)))
        await wait_cycles(dut, random.randint(1, 30))
    await bench.axi.writes_answered()
    assert (await bench.axi.read_result())[1] == content[: bench.step]
    for _ in range(6):
        bench.axi.read(bench.base + 4096, 1)
    await wait_cycles(dut, 300)
    assert bench.slot.used["non_posted"] == [3, 0]
    bench.axi.write(bench.base + 512, bytes(bench.step))
    bench.slot.grant(posted=(64, 4096))
    await bench.axi.writes_answered()
    bench.slot.grant(non_posted=(64, 0))
    for _ in range(6):
        assert (await bench.axi.read_result())[2] == OKAY


@cocotb.test()
async def a_response_says_that_the_write_has_left(dut) -> None:
    bench = Bench(dut, credits={"posted": (0, 0)})
    await bench.start()
    bench.axi.write(bench.base, bytes(bench.step))
    await wait_cycles(dut, 200)
    assert bench.axi.answers == 0
    bench.slot.grant(posted=(1, 4))
    await bench.axi.writes_answered(20)


@cocotb.test()
async def latency_in_cycles(dut) -> None:
    """Of a 64-byte write from its last beat to the TLP, of a read from AR to its TLP, and from the last beat of its completion
    to R."""
    bench = Bench(dut, latency=(40, 40))
    await bench.start()
    beats = max(1, 64 // bench.step)
    bench.axi.write(bench.base, bytes(64))
    assert await cycles(dut, ("host_wvalid", "host_wready", "host_wlast"), "tx_header_valid") == 5
    await bench.axi.writes_answered()
    bench.axi.write(bench.base, bytes(64))
    assert await cycles(dut, ("host_wvalid", "host_wready", "host_wlast"), "tx_data_tvalid") == 6
    await bench.axi.writes_answered()
    bench.axi.read(bench.base, beats)
    assert await cycles(dut, ("host_arvalid", "host_arready"), "tx_header_valid") == 3
    assert await cycles(dut, ("rx_data_tvalid", "rx_data_tready", "rx_data_tlast"), "host_rvalid") == 4
    await bench.idle()


@cocotb.test()
async def one_beat_a_cycle(dut) -> None:
    """Long bursts both ways, and aligned single beats."""
    bench = Bench(dut, mps=512, latency=(60, 60), fate=lambda tlp: "good")
    await bench.start()
    bench.slot.rc.split_on_all_rcb = False
    largest = min(4096, 256 * bench.step)
    for i in range(4):
        bench.axi.write(bench.base + 4096 * i, bytes(largest))
    begin = bench.slot.tx_data.cycle
    await bench.axi.writes_answered()
    took = bench.slot.tx_data.cycle - begin
    assert took <= (4 * largest + 512) // bench.step + 24, took
    begin = bench.slot.tx_data.cycle
    for i in range(64):
        bench.axi.write(bench.base + bench.step * i, bytes(bench.step))
    await bench.axi.writes_answered()
    took = bench.slot.tx_data.cycle - begin
    assert took <= 64 + 24, took


@cocotb.test()
async def completions_pass_at_one_beat_a_cycle(dut) -> None:
    """Those of long reads, in pieces of the largest payload, one behind the other."""
    bench = Bench(dut, latency=(1, 1), rcb=256)
    await bench.start()
    content = bench.fill()

    async def unanswered(tlp: Tlp) -> None:
        pass

    for kind in READS:
        bench.slot.rc.register_rx_tlp_handler(kind, unanswered)
    count, beats = 8, 512 // bench.step
    for i in range(count):
        bench.axi.read(bench.base + 4096 * i, beats)
    while len(bench.slot.sent) < count:
        await wait_cycles(dut, 4)
    begin = bench.slot.tx_header.cycle
    for tlp in bench.slot.sent:
        for piece in bench.host.answers(tlp):
            bench.slot.give(piece)
    for i in range(count):
        assert await bench.axi.read_result() == (0, content[4096 * i : 4096 * i + 512], OKAY)
    took = bench.slot.tx_header.cycle - begin
    assert took <= (count + 1) * beats + 16, took


@pytest.mark.parametrize("width", WIDTHS)
def test_pcie_requester(width: int) -> None:
    run(
        "pcie_requester_bench",
        __file__,
        params={"DATA_W": width, "TAGS": 64, "TIMEOUT": TIMEOUT},
        ports={
            "settings": Plain("input", "pcie_pkg::pcie_configs_t"),
            "credits": Plain("input", "pcie_pkg::tlp_credits_t"),
            "reset": Plain("input", "logic [1:0]"),
            "host": AxiSlave(width),
            **tlps(width),
            "events": Plain("output", "pcie_pkg::requester_events_t"),
            "quiet": Plain("output", "logic [1:0]"),
            "idle": Plain("output", "logic"),
        },
        sources=[Path(__file__).with_name("pcie_requester_bench.sv")],
        random_state=True,
    )
