# SPDX-License-Identifier: Apache-2.0
"""roce_qp_counters: no event is lost, whatever comes; a view is exact; a set-up clears one queue pair and no other."""

from __future__ import annotations

import os
import random
from collections import Counter, defaultdict

import cocotb
import pytest
from cocotb.triggers import FallingEdge
from nacelle_tb.bench import Plain, Sink, Source, run
from nacelle_tb.management import QP_COUNTERS
from nacelle_tb.streams import StreamSink, StreamSource, start, wait_cycles
from nacelle_tb.svtypes import constant, struct

QPS = int(os.environ.get("QPS", 16))
PKG = "roce_counters_pkg::"
INDEX = "roce_pkg::qp_index_t"
PORTS = {
    "clear": Plain("input", "logic"),
    "clear_index": Plain("input", INDEX),
    "sent": Plain("input", PKG + "qp_sent_t"),
    "requested": Plain("input", PKG + "qp_requested_t"),
    "responded": Plain("input", PKG + "qp_responded_t"),
    "retried": Plain("input", PKG + "qp_retried_t"),
    "view": Sink(INDEX),
    "viewed": Source(PKG + "qp_counters_t"),
}


def draw(rng: random.Random, index: int) -> tuple[dict[str, dict[str, int]], Counter[str]]:
    """One cycle's events, and what they are to count, by queue pair of each unit."""
    length = rng.choice((0, 1, 4096, rng.randrange(1 << 16)))
    flag = lambda: rng.randrange(2)  # noqa: E731
    counts: Counter[str] = Counter()
    kind = rng.randrange(3)
    sent = {"index": index, "bytes": length}
    if kind == 0:
        sent |= {"pkts": 1, "packet_retransmit": flag()}
        counts.update(sent_pkts=1, sent_bytes=length, packet_retransmit=sent["packet_retransmit"])
    elif kind == 1:
        sent |= {"responses": 1, "sent_nak": flag(), "send_rnr_err": flag()}
        counts.update(sent_responses=1, sent_response_bytes=length, sent_nak=sent["sent_nak"], send_rnr_err=sent["send_rnr_err"])
    else:
        sent |= {"np_cnp_sent": 1}
        counts.update(np_cnp_sent=1)
    requested = {"index": index, "bytes": length}
    if rng.randrange(4):
        requested |= {"pkts": 1, "duplicate_request": flag(), "out_of_seq_request": flag()}
        counts.update(
            rcvd_pkts=1, rcvd_bytes=length, duplicate_request=requested["duplicate_request"],
            out_of_seq_request=requested["out_of_seq_request"],
        )  # fmt: skip
    else:
        requested |= {"rp_cnp_handled": 1}
        counts.update(rp_cnp_handled=1)
    responded = {"index": index, "responses": 1, "bytes": length}
    counts.update(rcvd_responses=1, rcvd_response_bytes=length)
    retried = {"index": index, "local_ack_timeout_err": flag(), "rnr_nak_retry_err": flag(), "packet_seq_err": flag()}
    counts.update({name: retried[name] for name in retried if name != "index"})
    return {"sent": sent, "requested": requested, "responded": responded, "retried": retried}, counts


class Bench:
    """Drives events and clears, and keeps what should be counted."""

    def __init__(self, dut, seed: int) -> None:
        self.dut, self.rng = dut, random.Random(seed)
        self.layouts = {name: struct(PORTS[name].type) for name in ("sent", "requested", "responded", "retried")}
        self.expected: defaultdict[int, Counter[str]] = defaultdict(Counter)
        self.view = StreamSource(dut, "view", INDEX, noise=True)
        self.viewed = StreamSink(dut, "viewed", PKG + "qp_counters_t")
        self.quiet()

    def quiet(self) -> None:
        for name in (*self.layouts, "clear", "clear_index"):
            getattr(self.dut, name).value = 0

    async def cycle(self, index: int | None, clear: int | None = None) -> None:
        """One cycle with events of all units about one queue pair, or none."""
        await FallingEdge(self.dut.clk)
        self.quiet()
        if index is not None:
            events, counts = draw(self.rng, index)
            for name, fields in events.items():
                getattr(self.dut, name).value = self.layouts[name].pack(fields)
            self.expected[index].update(counts)
        if clear is not None:
            self.dut.clear.value, self.dut.clear_index.value = 1, clear
            self.expected[clear].clear()

    async def look(self, index: int) -> dict[str, int]:
        self.view.send(index)
        word = await self.viewed.recv(100)
        return {name: word >> 32 * i & 0xFFFF_FFFF for i, name in enumerate(QP_COUNTERS)}

    async def check(self, index: int) -> None:
        await FallingEdge(self.dut.clk)
        self.quiet()
        await wait_cycles(self.dut, 3)
        wanted = {name: self.expected[index][name] % 2**32 for name in QP_COUNTERS}
        assert await self.look(index) == wanted, f"queue pair {index}"


@cocotb.test()
@cocotb.parametrize(choose=["one", "two", "all"])
async def every_cycle_counts(dut, choose: str) -> None:
    """An event of every unit in every cycle: of one queue pair, of two in turn, of any."""
    bench = Bench(dut, 1)
    await start(dut)
    await wait_cycles(dut, QPS + 2)  # clears itself
    for i in range(1000):
        await bench.cycle({"one": 5, "two": 5 + i % 2, "all": bench.rng.randrange(QPS)}[choose])
    for index in range(QPS):
        await bench.check(index)
    assert sum(bench.expected[5].values()) > 0


@cocotb.test()
async def gaps_of_any_length(dut) -> None:
    bench = Bench(dut, 2)
    await start(dut)
    await wait_cycles(dut, QPS + 2)  # clears itself
    for _ in range(3000):
        await bench.cycle(bench.rng.choice((None, None, 1, 2, 3)))
    for index in range(4):
        await bench.check(index)


@cocotb.test()
async def set_up_clears_one(dut) -> None:
    """While others count in every cycle; its own events begin two cycles later at the earliest, and end four before."""
    bench = Bench(dut, 3)
    await start(dut)
    await wait_cycles(dut, QPS + 2)  # clears itself
    for _ in range(60):
        index = bench.rng.randrange(QPS)
        others = [i for i in range(QPS) if i != index]
        for _ in range(bench.rng.randrange(20)):
            await bench.cycle(bench.rng.randrange(QPS))
        for i in range(6):
            await bench.cycle(bench.rng.choice(others), clear=index if i == 4 else None)
        for _ in range(bench.rng.randrange(3)):
            await bench.cycle(index)
        await bench.check(index)
        await bench.check(bench.rng.choice(others))


@cocotb.test()
async def looked_at_while_it_counts(dut) -> None:
    """A view waits for a cycle without events of each unit and no longer, and is what was counted at some cycle in between."""
    bench = Bench(dut, 4)
    await start(dut)
    await wait_cycles(dut, QPS + 2)  # clears itself
    for _ in range(100):
        first = dict(bench.expected[7])
        bench.view.send(7)
        for _ in range(20):
            await bench.cycle(7)
        assert not bench.viewed.received
        await bench.cycle(None)
        for _ in range(20):
            await bench.cycle(bench.rng.choice((7, 8)))
        word = await bench.viewed.recv(5)
        for i, name in enumerate(QP_COUNTERS):
            assert first.get(name, 0) <= word >> 32 * i & 0xFFFF_FFFF <= bench.expected[7][name]
    await bench.check(7)
    await bench.check(8)


@cocotb.test()
async def a_reset_takes_back_a_view(dut) -> None:
    """A reset of one cycle while a view is under way: the next view does not end with what the old one has read."""
    bench = Bench(dut, 6)
    await start(dut)
    for delay in range(4):
        await wait_cycles(dut, QPS + 2)  # clears itself
        for _ in range(10):
            await bench.cycle(1)
        await bench.check(1)
        bench.view.send(1)
        await bench.view.drained()
        await wait_cycles(dut, delay)
        await FallingEdge(dut.clk)
        dut.rst.value = 1
        await FallingEdge(dut.clk)
        bench.viewed.received.clear()
        dut.rst.value, dut.view_valid.value, dut.view_data.value = 0, 1, 2
        await FallingEdge(dut.clk)
        dut.view_valid.value = 0
        assert await bench.viewed.recv(100) == 0, f"{delay} cycles later"
        bench.expected.clear()


@cocotb.test()
async def they_wrap(dut) -> None:
    bench = Bench(dut, 5)
    await start(dut)
    await wait_cycles(dut, QPS + 2)  # clears itself
    for _ in range(66_000):
        await FallingEdge(dut.clk)
        dut.responded.value = bench.layouts["responded"].pack(index=0, responses=1, bytes=65_535)
    bench.expected[0].update(rcvd_responses=66_000, rcvd_response_bytes=66_000 * 65_535)
    assert bench.expected[0]["rcvd_response_bytes"] >= 2**32
    await bench.check(0)


@cocotb.test()
async def software_reads_them_in_this_order(dut) -> None:
    await start(dut)
    await wait_cycles(dut, QPS + 2)  # clears itself
    assert [constant(f"{PKG}QPC_{name.upper()}") for name in QP_COUNTERS] == list(range(constant(PKG + "QP_COUNTERS")))


@pytest.mark.parametrize("qps", [16, 256])
def test_roce_qp_counters(qps: int) -> None:
    run("roce_qp_counters", __file__, params={"QPS": qps}, ports=PORTS, env={"QPS": str(qps)}, random_state=True)
