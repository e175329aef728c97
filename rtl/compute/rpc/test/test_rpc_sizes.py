# SPDX-License-Identifier: Apache-2.0
"""Units of the RPC engine with regions that no test memory has room for: sizes up to those of the largest device.

Nothing of a region is read or written here, so its memory need not be there: only messages are.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import cocotb
import pytest
from cocotb.triggers import FallingEdge, RisingEdge
from nacelle_tb.bench import AxiMaster, Plain, Several, Sink, Source, Type, run
from nacelle_tb.long import alternately
from nacelle_tb.memory import AxiMemory
from nacelle_tb.streams import StreamSink, StreamSource, start, wait_cycles
from nacelle_tb.svtypes import constant, struct
from rpc_world import INPUT, INTERNAL, MR, OUTPUT, PAGE, WR, Region, long_set_up, parse_long_advert

QPS, CONTEXTS, DATA_W = 4, 2, 64
GIB = 1 << 30
CTRL_BYTES = constant("rpc_pkg::CTRL_BYTES")
DESCRIPTION_BASE = QPS * CONTEXTS * CTRL_BYTES
HEAP_BASE, HEAP_SIZE = 1 << 36, 1 << 39
LONGEST = 1 << 31
NO_MEMORY = 2
SIZES = [0, 1, LONGEST - 1, LONGEST, LONGEST + 1, 2 * LONGEST - 1, 2 * LONGEST, 2 * LONGEST + 1, 5 * GIB, 3 * LONGEST, HEAP_SIZE]


class Tables:
    """In the place of rpc_regions: each read is answered 2 cycles after it was taken."""

    def __init__(self, dut) -> None:
        self.dut = dut
        self.regions: dict[int, dict[str, Any]] = {}
        self.grant: dict[str, Any] = {}
        self.read = StreamSink(dut, "view_read", "rpc_pkg::region_key_t")
        dut.view_valid.value = 0

    def view(self, index: int) -> int:
        region = self.regions.get(index, self.regions[0])  # rpc_answer reads ahead, also behind the last one
        addr = (self.grant["base"] + region["offset"]) * PAGE
        return struct("rpc_pkg::region_view_t").pack(grant=self.grant, region=region, addr=addr)

    async def serve(self) -> None:
        while True:
            key = await self.read.recv(10**9)
            await FallingEdge(self.dut.clk)
            self.dut.view.value, self.dut.view_valid.value = self.view(key.index), 1
            await FallingEdge(self.dut.clk)
            self.dut.view.value, self.dut.view_valid.value = random.getrandbits(struct("rpc_pkg::region_view_t").width), 0


async def ended(dut, condition: Callable[[], Any], cycles: int = 5000) -> None:
    for _ in range(cycles):
        if condition():
            return
        await RisingEdge(dut.clk)
    raise AssertionError(f"nothing for {cycles} cycles")


# ---- set-up ----


class SetUps:
    """rpc_setup, the allocator in it, and what surrounds it. All set-ups are of one context."""

    def __init__(self, dut) -> None:
        self.dut = dut
        self.memory = AxiMemory(dut, "mem", DESCRIPTION_BASE + 0x8000, latency=3)
        self.tables = Tables(dut)
        self.job = StreamSource(dut, "job", "rpc_pkg::setup_job_t")
        self.release = StreamSource(dut, "release_", "rpc_pkg::release_job_t")
        self.done = StreamSink(dut, "done", "rpc_pkg::setup_done_t")
        self.extent = StreamSink(dut, "extent", "rpc_pkg::extent_t")
        self.cleared = StreamSource(dut, "cleared", "rpc_pkg::cleared_t")
        self.mr_cmd = StreamSink(dut, "mr_cmd", "roce_pkg::mr_cmd_t")
        self.mr_rsp = StreamSource(dut, "mr_rsp", "roce_pkg::mr_rsp_t")
        self.wqe = StreamSink(dut, "wqe", "roce_pkg::rdma_wqe_t")
        dut.load.value, dut.clear_idle.value = 0, 1
        dut.held.value = dut.paused.value = 0
        dut.opened.value = dut.opened_slot.value = dut.opened_ip.value = dut.memory_per_caller.value = 0
        dut.opened_by.value = dut.quota.value = 0
        self.held = 0
        self.keys: list[tuple[int, int, int]] = []  # (addr, rkey, length)
        self.extents: list[Any] = []

    async def start(self) -> None:
        await start(self.dut)
        for task in (self.tables.serve(), self._record(), self._protect(), self._clear()):
            cocotb.start_soon(task)
        await ended(self.dut, lambda: int(self.dut.published.value))

    async def _record(self) -> None:
        """What is written to the tables."""
        dut, tables = self.dut, self.tables
        while True:
            await RisingEdge(dut.clk)
            if int(dut.region_write.value):
                index = struct("rpc_pkg::region_key_t").unpack(int(dut.write_key.value)).index
                tables.regions[index] = vars(struct("rpc_pkg::region_t").unpack(int(dut.region.value)))
            if int(dut.grant_write.value):
                tables.grant = vars(struct("rpc_pkg::grant_t").unpack(int(dut.grant.value)))

    async def _protect(self) -> None:
        while True:
            command = await self.mr_cmd.recv(10**9)
            rkey = random.getrandbits(32)
            if command.op == MR["MR_REGISTER"] and command.mr.qpn:
                self.keys.append((command.mr.addr, rkey, command.mr.length))
            elif command.op == MR["MR_DEREGISTER_GROUP"]:
                self.keys.clear()
            self.mr_rsp.send(ok=1, rkey=rkey)

    async def _clear(self) -> None:
        """Memory is clear at once."""
        while True:
            extent = await self.extent.recv(10**9)
            self.extents.append(extent)
            self.cleared.send(of=vars(extent.of), form=vars(extent.form), ok=1)

    async def set_up(self, regions: list[Region]) -> bytes:
        """The answer to a request for these regions."""
        message = long_set_up(regions)
        self.memory.write(0, message)
        self.job.send(of={}, contexts=CONTEXTS, long_=1, held=self.held, message={"with_imm": 1, "length": len(message)})
        assert (await self.wqe.recv()).opcode == WR["WR_RECV"]
        sent = await self.wqe.recv()
        self.held = (await self.done.recv()).held
        return self.memory.read(sent.local_addr, sent.length)

    async def granted(self, regions: list[Region]) -> None:
        """They are, one behind the other in an extent of the heap, and with the whole size."""
        got = parse_long_advert(await self.set_up(regions))
        assert got == self.keys
        extent = self.extents.pop()
        pages = [-(-region.size // PAGE) for region in regions]
        assert extent.pages == max(1, sum(pages)) and extent.base * PAGE == HEAP_BASE
        starts = [HEAP_BASE + sum(pages[:i]) * PAGE for i in range(len(pages))]
        own = [i for i, region in enumerate(regions) if not region.flags & INTERNAL]
        assert [(addr, size) for addr, _, size in got] == [(starts[i], regions[i].size) for i in own]
        assert [self.tables.regions[i]["size"] for i in range(len(regions))] == [region.size for region in regions]

    async def refused(self, regions: list[Region], code: int = NO_MEMORY) -> None:
        assert await self.set_up(regions) == bytes([0, code, 0, 0])
        assert not self.keys and not self.held and not self.extents


def parameters(*sizes: int) -> list[Region]:
    return [Region(INPUT | OUTPUT, size, random.getrandbits(64), random.getrandbits(32)) for size in sizes]


@cocotb.test()
async def up_to_all_of_the_memory(dut) -> None:
    bench = SetUps(dut)
    await bench.start()
    for size in SIZES:
        await bench.granted(parameters(size))
    quarter = HEAP_SIZE // 4
    await bench.granted([*parameters(quarter, 1, quarter - PAGE), Region(INTERNAL, 2 * quarter)])
    await bench.granted(parameters(*[HEAP_SIZE // 16] * 16))
    for _ in range(10):
        await bench.granted(parameters(*(random.randrange(HEAP_SIZE // 8) for _ in range(random.randint(1, 7)))))


@cocotb.test()
async def more_is_refused(dut) -> None:
    """Whatever is left of a size, or of the sum, in the bits that the device has for it."""
    bench = SetUps(dut)
    await bench.start()
    top = 1 << constant("memory_pkg::SIZE_W")
    for sizes in (
        [HEAP_SIZE + 1], [HEAP_SIZE, 1], [1, HEAP_SIZE], [HEAP_SIZE // 2] * 2 + [1], [top], [top + 64], [64, top], [top - 1],
        [top - 1, 1], [top - PAGE, PAGE], [top // 2] * 2, [top // 2] * 16, [top // 16] * 16, [top - 1] * 16, [(1 << 64) - 1],
        [1 << 63] * 2, [(1 << 64) - 1, 65],
    ):  # fmt: skip
        await bench.granted(parameters(64))
        await bench.refused(parameters(*sizes))
        await bench.refused([*parameters(*sizes[:-1]), *parameters(*([] if sizes[1:] else [1])), Region(INTERNAL, sizes[-1])])
    await bench.granted(parameters(HEAP_SIZE))


@cocotb.test()
async def the_quota_counts_all_of_it(dut) -> None:
    bench = SetUps(dut)
    await bench.start()
    dut.memory_per_caller.value = 5 * GIB >> 10
    for sizes in ([5 * GIB], [LONGEST + 1, LONGEST], [4 * GIB, GIB]):
        await bench.granted(parameters(*sizes))
    for sizes in ([5 * GIB + 1], [5 * GIB, 1], [6 * GIB], [HEAP_SIZE]):
        await bench.refused(parameters(*sizes))


# ---- jobs ----


@cocotb.test()
async def a_kernel_gets_the_whole_size(dut) -> None:
    tables = Tables(dut)
    call = StreamSource(dut, "call", "rpc_pkg::call_t")
    StreamSource(dut, "cancel", "rpc_pkg::cancel_t")
    StreamSource(dut, "refusal", "rpc_pkg::result_t")
    job = StreamSink(dut, "job0", "compute_pkg::job_t", 0.5)
    done = StreamSource(dut, "done0", "compute_pkg::done_t")
    result = StreamSink(dut, "result", "rpc_pkg::outcome_t")
    dut.closing.value = dut.gone.value = dut.paused.value = 0
    await start(dut)
    await wait_cycles(dut, 2 * QPS)  # the tables are cleared
    cocotb.start_soon(tables.serve())
    for _ in range(20):
        sizes = random.sample(SIZES, random.randint(1, 6))
        tables.grant = {"base": HEAP_BASE // PAGE, "pages": 1 << 26, "last": len(sizes) - 1}
        tables.regions = {i: {"offset": random.getrandbits(20), "size": size} for i, size in enumerate(sizes)}
        call.send(of={"slot": 1, "number": 1}, function_code=9)
        beats = [await job.recv() for _ in sizes]
        assert [(beat.size, beat.addr) for beat in beats] == [
            (size, HEAP_BASE + tables.regions[i]["offset"] * PAGE) for i, size in enumerate(sizes)
        ]
        assert [beat.last for beat in beats] == [0] * (len(sizes) - 1) + [1]
        done.send(tag=beats[0].tag)
        await result.recv()


# ---- answers ----


@cocotb.test()
@cocotb.parametrize(stall=alternately([0.0, 0.4]))
async def every_byte_once(dut, stall: float) -> None:
    """Each region from its first to its last byte, by WRITEs of at most 2^31 bytes; the last has the immediate."""
    tables = Tables(dut)
    answer = StreamSource(dut, "answer", "rpc_pkg::answer_t", stall)
    wqe = StreamSink(dut, "wqe", "roce_pkg::rdma_wqe_t", stall)
    posted = StreamSink(dut, "posted", "rpc_pkg::posted_t", stall)
    dut.gone.value = 0
    await start(dut)
    cocotb.start_soon(tables.serve())
    context = {"slot": 2, "number": 1}

    async def check(sizes: list[int]) -> None:
        """A call with these outputs."""
        last_output = {"has_output": 1, "first_output": 1, "last_output": len(sizes)}
        tables.grant = {"base": HEAP_BASE // PAGE, "pages": 1, "last": len(sizes), **last_output}
        tables.regions = {0: {"size": 64, "input_": 1, "offset": 0}}
        for i, size in enumerate(sizes):
            host = {"host_addr": random.getrandbits(64), "host_rkey": random.getrandbits(32)}
            tables.regions[i + 1] = {"size": size, "output_": 1, "offset": random.getrandbits(20), **host}
        origin: dict[str, int] = {}
        for index, size in enumerate(sizes, 1):
            region, at = tables.regions[index], 0
            while True:
                if origin or (at == 0 and index == 1):
                    answer.send(result={"of": context}, **{"from": origin})
                    origin = {}
                request = await wqe.recv()
                length = min(LONGEST, size - at)
                assert request.length == length and request.rkey == region["host_rkey"]
                assert request.local_addr == HEAP_BASE + region["offset"] * PAGE + at
                assert request.remote_addr == (region["host_addr"] + at) % (1 << 64)
                at += length
                last, more = at == size and index == len(sizes), at < size
                assert request.opcode == WR["WR_RDMA_WRITE_WITH_IMM" if last else "WR_RDMA_WRITE"]
                assert (request.signaled, request.solicited, request.wr_id % 4) == (last or more, last, context["number"])
                if last or more:
                    done = await posted.recv()
                    assert (vars(done.of), done.more) == (context, more)
                if not more:
                    assert request.wr_id >> 2 == 0
                    break
                origin = vars(struct("rpc_pkg::progress_t").unpack(request.wr_id >> 2))
                assert origin["index"] == index

    for size in SIZES[:-1]:
        for sizes in ([size], [size, 7], [7, size], [size, size, 0]):
            await check(sizes)
    await check([7] * 29 + [5 * GIB, LONGEST + 1])  # the last region that a context may have
    if not stall:
        await check([(1 << constant("memory_pkg::SIZE_W")) - 1])


SETUP_PORTS = {
    "job": Sink("rpc_pkg::setup_job_t"), "release_": Sink("rpc_pkg::release_job_t"),
    "load": Plain("input", "rpc_pkg::load_t"), "clear_idle": Plain("input", "logic"),
    "held": Plain("input", "compute_pkg::held_t"), "paused": Plain("input", "logic"),
    "description": Plain("output", "rpc_pkg::description_t"), "published": Plain("output", "logic"),
    "done": Source("rpc_pkg::setup_done_t"), "extent": Source("rpc_pkg::extent_t"), "cleared": Sink("rpc_pkg::cleared_t"),
    "opened": Plain("input", "logic"), "opened_slot": Plain("input", "rpc_pkg::slot_t"),
    "opened_ip": Plain("input", "packet_pkg::ip_addr_t"), "opened_by": Plain("input", "roce_pkg::admitted_t"),
    "quota_of": Plain("output", "roce_pkg::admission_entry_t"), "quota": Plain("input", "logic [29:0]"),
    "memory_per_caller": Plain("input", "logic [29:0]"),
    "mem": AxiMaster(DATA_W), "mr_cmd": Source("roce_pkg::mr_cmd_t"), "mr_rsp": Sink("roce_pkg::mr_rsp_t"),
    "wqe": Source("roce_pkg::rdma_wqe_t"), "region_write": Plain("output", "logic"), "grant_write": Plain("output", "logic"),
    "write_key": Plain("output", "rpc_pkg::region_key_t"), "region": Plain("output", "rpc_pkg::region_t"),
    "grant": Plain("output", "rpc_pkg::grant_t"), "step_write": Plain("output", "logic"),
    "step": Plain("output", "rpc_pkg::step_write_t"), "limit": Plain("output", "rpc_pkg::ticks_t"),
    "granted": Plain("output", "logic"), "refused": Plain("output", "logic"), "malformed": Plain("output", "logic"),
}  # fmt: skip
DISPATCH_PORTS = {
    "closing": Plain("input", "rpc_pkg::closing_t"), "asked": Plain("output", "rpc_pkg::slot_t"), "gone": Plain("input", "logic"),
    "call": Sink("rpc_pkg::call_t"), "cancel": Sink("rpc_pkg::cancel_t"), "refusal": Sink("rpc_pkg::result_t"),
    "job": Several(Source("compute_pkg::job_t"), 1), "window": Plain("output", "compute_pkg::window_t"),
    "paused": Plain("input", "logic"),
    "abort": Plain("output", "logic"), "busy": Plain("output", "logic"), "running": Plain("output", "logic"),
    "waiting": Plain("output", "rpc_pkg::waiting_count_t"), "progress": Plain("output", "rpc_pkg::call_progress_t"),
    "done": Several(Sink("compute_pkg::done_t"), 1),
    "result": Source("rpc_pkg::outcome_t"),
}  # fmt: skip
ANSWER_PORTS = {
    "asked": Plain("output", "rpc_pkg::slot_t"), "gone": Plain("input", "logic"), "answer": Sink("rpc_pkg::answer_t"),
    "wqe": Source("roce_pkg::rdma_wqe_t"), "posted": Source("rpc_pkg::posted_t"), "finished": Plain("output", "logic"),
    "failed": Plain("output", "logic"), "cancelled": Plain("output", "logic"),
}  # fmt: skip
VIEW_PORTS = {
    "view_read": Source("rpc_pkg::region_key_t"), "view_valid": Plain("input", "logic"),
    "view": Plain("input", "rpc_pkg::region_view_t"), "idle": Plain("output", "logic"),
}  # fmt: skip
SHAPE = {"QPS": QPS, "CONTEXTS": CONTEXTS, "MAX_REGIONS": 32, "LONG_SET_UP": 1}
HEAP = {"HEAP_BASE": Type(f"64'd{HEAP_BASE}"), "HEAP_SIZE": Type(f"64'd{HEAP_SIZE}")}
LAYOUT = {"DATA_W": DATA_W, "DESCRIPTION_BASE": DESCRIPTION_BASE, **HEAP}


@pytest.mark.parametrize(
    ("unit", "params", "ports", "only"),
    [
        ("rpc_setup", {**SHAPE, **LAYOUT}, SETUP_PORTS, "memory|refused|quota"),
        ("rpc_dispatch", {**SHAPE, "SOCKETS": 1}, DISPATCH_PORTS, "kernel"),
        ("rpc_answer", {"LONG_SET_UP": 1}, ANSWER_PORTS, "byte"),
    ],
    ids=lambda value: value if isinstance(value, str) and value.startswith("rpc") else "",
)
def test_rpc_sizes(unit: str, params: dict[str, int], ports: dict[str, Any], only: str) -> None:
    run(unit, __file__, params=params, ports={**ports, **VIEW_PORTS}, env={"COCOTB_TEST_FILTER": only}, random_state=True)
