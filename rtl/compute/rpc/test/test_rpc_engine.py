# SPDX-License-Identifier: Apache-2.0
"""rpc_engine: region set-up and calls, byte for byte as NAAICE has them, and every way in which a caller can misbehave."""

import random

import cocotb
import pytest
from nacelle_tb.bench import AxiMaster, Plain, Several, Sink, Source, Type, run
from nacelle_tb.svtypes import struct
from rpc_world import (
    CTRL_BASE,
    FUNCTIONS,
    HEAP_BASE,
    HEAP_SIZE,
    INPUT,
    INTERNAL,
    MAX_REGIONS,
    OUTPUT,
    PAGE,
    QPS,
    SINGLE_SEND,
    SOCKETS,
    SQ_DEPTH,
    Region,
    World,
    aar,
    parse_advert,
    regions,
)

STALLS = [0.0, 0.3]
MALFORMED, NO_MEMORY, TOO_MANY, NO_KEYS = 1, 2, 3, 4  # codes of an ERR
UNKNOWN_FUNCTION = 3
START = 0x80

# Printed by the upstream library: region 0 a single-send input, region 1 input and output, region 2 internal.
GOLDEN_AAR = bytes.fromhex(
    "01030000"
    "06a1b2c3d4e5f000 1122334455660000 01020304 00001000"
    "0c00000000001000 1122334455670000 0a0b0c0d 00000040"
    "0100000000002000 0000000000000000 00000000 00000020"
)
GOLDEN_REGIONS = [
    Region(INPUT | SINGLE_SEND, 0x1000, 0x1122334455660000, 0x01020304, 0xA1B2C3D4E5F000),
    Region(INPUT | OUTPUT, 0x40, 0x1122334455670000, 0x0A0B0C0D, 0x1000),
    Region(INTERNAL, 0x20, requested=0x2000),
]


@cocotb.test()
@cocotb.parametrize(stall=STALLS)
async def golden_exchange(dut, stall: float) -> None:
    world = World(dut, stall)
    await world.start()
    qp = await world.open(5)
    assert aar(GOLDEN_REGIONS) == GOLDEN_AAR
    world.send(qp, GOLDEN_AAR)
    answer = await world.answer(qp)
    keys = list(qp.keys)
    assert answer == bytes.fromhex("02020000") + b"".join(
        addr.to_bytes(8, "big") + rkey.to_bytes(4, "big") + size.to_bytes(4, "big")
        for addr, rkey, size in [(HEAP_BASE, keys[0], 0x1000), (HEAP_BASE + PAGE, keys[1], 0x40)]
    )
    for code in (0, 0x12, 0x7F):
        world.send(qp, 0xCCBBAA81)
        await world.until(lambda: world.jobs)
        job = world.jobs.popleft()
        assert job.socket == 0 and job.window == (HEAP_BASE, 3 * PAGE)
        assert [(b.input_, b.output_, b.internal_, b.addr, b.size, b.last) for b in job.beats] == [
            (1, 0, 0, HEAP_BASE, 0x1000, 0),
            (1, 1, 0, HEAP_BASE + PAGE, 0x40, 0),
            (0, 0, 1, HEAP_BASE + 2 * PAGE, 0x20, 1),
        ]
        assert {(b.tag, b.function_code, b.user) for b in job.beats} == {(job.tag, 1, 0xCCBBAA)}
        world.finish(job, code)
        await world.result(qp, GOLDEN_REGIONS, parse_advert(answer), code)
        assert world.window(0) == (0, 0)
    await world.settle()
    assert not qp.sent and len(qp.receives) == 2
    assert world.events == {
        "regions_granted": 1, "regions_refused": 0, "call_started": 3, "call_finished": 1, "call_failed": 2,
        "message_malformed": 0, "immediate_ignored": 0,
    }  # fmt: skip


WIDTHS = [64, 128, 256, 512]
EVERY_WIDTH = ["golden_exchange.*"]


def build(data_w: int) -> None:
    window = struct("compute_pkg::window_t").width
    table = ", ".join(f"14'd{first << 7 | last}" for first, last in reversed(FUNCTIONS))
    run(
        "rpc_engine",
        __file__,
        params={
            "DATA_W": data_w, "QPS": QPS, "SOCKETS": SOCKETS, "FUNCTIONS": Type(f"{{{table}}}"), "MAX_REGIONS": MAX_REGIONS,
            "SQ_DEPTH": SQ_DEPTH, "CTRL_BASE": CTRL_BASE, "HEAP_BASE": HEAP_BASE, "HEAP_SIZE": HEAP_SIZE,
        },
        ports={
            "conn_event": Sink("roce_pkg::conn_event_t"), "conn_done": Source("logic"),
            "wqe": Source("roce_pkg::rdma_wqe_t"), "cqe": Sink("roce_pkg::rdma_cqe_t"),
            "mr_cmd": Source("roce_pkg::mr_cmd_t"), "mr_rsp": Sink("roce_pkg::mr_rsp_t"),
            "mem": AxiMaster(data_w),
            "job": Several(Source("compute_pkg::job_t"), SOCKETS), "done": Several(Sink("compute_pkg::done_t"), SOCKETS),
            "window": Plain("output", f"logic [{SOCKETS * window - 1}:0]"),
            "close": Source("roce_pkg::qpn_t"),
            "events": Plain("output", "compute_pkg::rpc_events_t"), "idle": Plain("output", "logic"),
        },
    )  # fmt: skip


@pytest.mark.parametrize("data_w", WIDTHS)
def test_rpc_engine(data_w: int) -> None:
    build(data_w)
