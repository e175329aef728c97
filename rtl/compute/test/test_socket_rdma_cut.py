# SPDX-License-Identifier: Apache-2.0
"""socket_rdma while the kernel is cut off: whatever the kernel does, it gets nothing, and the engine gets nothing new from it."""

from __future__ import annotations

import cocotb
from cocotb.triggers import FallingEdge
from nacelle_tb.bench import Plain, Sink, Source, run
from nacelle_tb.streams import start
from nacelle_tb.svtypes import constant, struct

WQE, CQE = "roce_pkg::rdma_wqe_t", "roce_pkg::rdma_cqe_t"
BASE, SIZE = 0x4000, 0x2000
SEND = constant("roce_pkg::WR_SEND")


def request(addr: int, wr_id: int, lkey: int) -> int:
    """A SEND of 64 bytes of local memory."""
    return struct(WQE).pack(opcode=SEND, qpn=5, wr_id=wr_id, local_addr=addr, length=64, lkey=lkey)


async def begin(dut) -> None:
    """A window, no request, all outputs stopped."""
    for name in ("kernel_wqe_valid", "cqe_valid", "wqe_ready", "kernel_cqe_ready", "cut"):
        getattr(dut, name).value = 0
    dut.window.value = struct("compute_pkg::window_t").pack(base=BASE, size=SIZE)
    dut.cqe_data.value = struct(CQE).pack(qpn=5, wr_id=77)
    await start(dut)
    for _ in range(2):
        await FallingEdge(dut.clk)


async def ask(dut, addr: int, wr_id: int, lkey: int = 0) -> None:
    """The kernel's request is taken."""
    dut.kernel_wqe_data.value = request(addr, wr_id, lkey)
    dut.kernel_wqe_valid.value = 1
    while not int(dut.kernel_wqe_ready.value):
        await FallingEdge(dut.clk)
    await FallingEdge(dut.clk)
    dut.kernel_wqe_valid.value = 0


@cocotb.test()
async def completions_are_taken_and_not_passed_on(dut) -> None:
    await begin(dut)
    dut.cqe_valid.value = 1
    await FallingEdge(dut.clk)
    assert int(dut.kernel_cqe_valid.value) and not int(dut.cqe_ready.value), "the kernel does not take it"
    dut.cut.value = 1
    for ready in (0, 1, 0, 1):
        dut.kernel_cqe_ready.value = ready
        await FallingEdge(dut.clk)
        assert not int(dut.kernel_cqe_valid.value) and int(dut.cqe_ready.value)
        assert not int(dut.idle.value)
    dut.cqe_valid.value = 0
    await FallingEdge(dut.clk)
    assert int(dut.idle.value)


@cocotb.test()
async def a_kernel_has_no_keys(dut) -> None:
    """Its window is what confines it: whatever L_Key it gives, the engine gets the reserved one."""
    await begin(dut)
    for i, lkey in enumerate((0, 1, 0x12345678, 0xFFFFFFFF)):
        await ask(dut, BASE, i, lkey)
        for _ in range(3):
            await FallingEdge(dut.clk)
        request = struct(WQE).unpack(int(dut.wqe_data.value))
        assert int(dut.wqe_valid.value) and (request.wr_id, request.lkey) == (i, constant("roce_pkg::LOCAL_DMA_LKEY"))
        dut.wqe_ready.value = 1
        await FallingEdge(dut.clk)
        dut.wqe_ready.value = 0


@cocotb.test()
async def a_request_already_offered_stays(dut) -> None:
    """The engine may have seen it; the one behind it is dropped."""
    await begin(dut)
    await ask(dut, BASE, 1)
    await ask(dut, BASE, 2)
    for _ in range(3):
        await FallingEdge(dut.clk)
    assert int(dut.wqe_valid.value) and struct(WQE).unpack(int(dut.wqe_data.value)).wr_id == 1
    dut.cut.value = 1
    dut.kernel_wqe_valid.value = 1
    for _ in range(5):
        await FallingEdge(dut.clk)
        assert int(dut.wqe_valid.value) and not int(dut.kernel_wqe_ready.value) and not int(dut.idle.value)
    dut.wqe_ready.value = 1
    await FallingEdge(dut.clk)
    for _ in range(5):
        assert not int(dut.wqe_valid.value) and int(dut.idle.value)
        await FallingEdge(dut.clk)
    dut.kernel_wqe_valid.value = 0
    dut.cut.value = 0
    await ask(dut, BASE, 3)
    await FallingEdge(dut.clk)
    assert int(dut.wqe_valid.value) and struct(WQE).unpack(int(dut.wqe_data.value)).wr_id == 3


@cocotb.test()
async def a_refusal_nobody_took_is_dropped(dut) -> None:
    await begin(dut)
    await ask(dut, 0, 9)
    await FallingEdge(dut.clk)
    assert int(dut.kernel_cqe_valid.value) and struct(CQE).unpack(int(dut.kernel_cqe_data.value)).wr_id == 9
    dut.cut.value = 1
    for _ in range(3):
        await FallingEdge(dut.clk)
        assert not int(dut.kernel_cqe_valid.value)
    assert int(dut.idle.value)
    dut.cut.value = 0
    for _ in range(3):
        await FallingEdge(dut.clk)
        assert not int(dut.kernel_cqe_valid.value) and not int(dut.wqe_valid.value)


@cocotb.test()
async def a_refused_request_is_no_violation_once_it_is_cut(dut) -> None:
    """One that waits behind a completion when the socket is cut off is dropped, and not reported as a violation either."""
    await begin(dut)
    dut.cqe_valid.value = 1
    await ask(dut, 0, 9)
    dut.cut.value = 1
    for _ in range(4):
        assert not int(dut.violation.value)
        await FallingEdge(dut.clk)
    dut.cqe_valid.value = 0
    dut.cut.value = 0
    for _ in range(4):
        assert not int(dut.violation.value) and not int(dut.kernel_cqe_valid.value)
        await FallingEdge(dut.clk)
    assert int(dut.idle.value)


def test_socket_rdma_cut() -> None:
    run(
        "socket_rdma",
        __file__,
        ports={
            "window": Plain("input", "compute_pkg::window_t"), "cut": Plain("input", "logic"),
            "kernel_wqe": Sink(WQE), "kernel_cqe": Source(CQE), "wqe": Source(WQE), "cqe": Sink(CQE),
            "violation": Plain("output", "logic"), "idle": Plain("output", "logic"),
        },
    )  # fmt: skip
