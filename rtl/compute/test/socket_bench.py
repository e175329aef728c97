# SPDX-License-Identifier: Apache-2.0
"""A socket with memory, and an engine that completes its work requests when the test lets it."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Sequence
from pathlib import Path

import cocotb
from cocotb.handle import SimHandleBase
from cocotb.triggers import FallingEdge
from nacelle_tb.bench import AxilMaster, AxilSlave, AxiMaster, AxisSink, AxisSource, Plain, Sink, Source, Type, run
from nacelle_tb.cci import offset
from nacelle_tb.device import named, standard
from nacelle_tb.device_rtl import generate
from nacelle_tb.memory import AxiMemory
from nacelle_tb.registers import AxilDriver
from nacelle_tb.streams import StreamSink, StreamSource
from nacelle_tb.svtypes import constant, struct

SIZE = 1 << 18
SUCCESS = constant("compute_pkg::RESULT_SUCCESS")
TIMEOUT = constant("compute_pkg::RESULT_KERNEL_TIMEOUT")
CANCELLED = constant("compute_pkg::RESULT_CANCELLED")
STATUS, TIMEOUTS, REFUSED, RDMA_PAGE, RDMA_PAGES, BUS = (
    offset(f"socket.{name}") for name in ("STATUS", "TIMEOUTS", "REFUSED", "RDMA_PAGE", "RDMA_PAGES", "BUS")
)
PAGE, NEXT_BLOCK = 0x12, 0x13000


class Bench:
    """A socket under test. `posted`: the work requests that reached the engine; `open`: those that it has not completed."""

    def __init__(self, dut: SimHandleBase, stall: float = 0.0, latency: int | tuple[int, int] = (1, 30)) -> None:
        self.dut = dut
        self.job = StreamSource(dut, "job", "compute_pkg::job_t", stall)
        self.done = StreamSink(dut, "done", "compute_pkg::done_t", stall)
        self.memory = AxiMemory(dut, "mem", SIZE, latency=latency, stall=stall)
        self.wqe = StreamSink(dut, "wqe", "roce_pkg::rdma_wqe_t", stall)
        self.cqe = StreamSource(dut, "cqe", "roce_pkg::rdma_cqe_t", stall)
        self.memory.write(0, random.randbytes(SIZE))
        self.ctrl = AxilDriver(dut, "ctrl")
        dut.page.value, dut.next_block.value = PAGE, NEXT_BLOCK
        dut.kernel_timeout_cycles.value = 0
        dut.cancel.value = 0
        dut.rdma_settled.value = 1
        dut.rx_tvalid.value = dut.tx_tready.value = dut.counter.value = 0
        self.window(0, SIZE)
        self.posted: list = []
        self.open: deque = deque()
        self.completing = True
        cocotb.start_soon(self._engine())

    async def _engine(self) -> None:
        """One completion at most every other cycle; an unsignaled request completes without."""
        while True:
            await FallingEdge(self.dut.clk)
            while self.wqe.received:
                self.posted.append(self.wqe.received.popleft())
                self.open.append(self.posted[-1])
            if self.open and self.completing and not self.cqe.busy:
                request = self.open.popleft()
                if request.signaled:
                    self.cqe.send(opcode=0, qpn=request.qpn, wr_id=request.wr_id)
            self.dut.rdma_settled.value = int(not self.open and not self.cqe.busy)

    def window(self, base: int, size: int) -> None:
        """Of the jobs to come."""
        self.dut.window.value = struct("compute_pkg::window_t").pack(base=base, size=size)

    def call(self, function: int, regions: list[tuple[int, int]], tag: int = 0, user: int = 0) -> None:
        """A job with regions of (address, size)."""
        for i, (addr, size) in enumerate(regions):
            last = i == len(regions) - 1
            self.job.send(tag=tag, function_code=function, user=user, addr=addr, size=size, last=last, input_=1, output_=i % 2)


def kernels_of_tests() -> list[Path]:
    """The sources that a socket needs for a kernel that the device of the tests has, and the standard device has not."""
    device = named("test")
    folder, known = generate(device).folder, standard().kernels
    packages = [f"{kernel.module}_pkg" for kernel in device.kernels if kernel not in known]
    return [folder / f"{name}.sv" for name in (*packages, "socket_kernel", "socket_record")]


def kernel_texts(kernels: Sequence[str]) -> Type:
    """Their names, as the parameter KERNELS of a socket."""
    names = [f'128\'("{kernel}")' for kernel in reversed(kernels)]
    return Type(f"compute_pkg::kernel_texts_t'({{{', '.join(names)}}})")


def run_socket(
    test_file: str,
    width: int,
    kernels: str | Sequence[str],
    sources: Sequence[Path] = (),
    rdma: bool = True,
    connections: int = 0,
    load_cycles: int = 100,
    slots: int = 0,
    datagrams: bool = False,
    registers: bool = False,
) -> None:
    """The cocotb tests of a file, with this kernel in the socket, or images of these."""
    kernels = [kernels] if isinstance(kernels, str) else kernels
    run(
        "socket",
        test_file,
        params={
            "IMAGES": len(kernels), "KERNELS": kernel_texts(kernels), "LOAD_CYCLES": load_cycles,
            "DATA_W": width, "RDMA": int(rdma), "CONNECTIONS": connections, "SLOTS": slots,
            "DATAGRAMS": int(datagrams), "REGISTERS": int(registers),
        },
        sources=sources,
        ports={
            "page": Plain("input", "logic [7:0]"),
            "next_block": Plain("input", "logic [19:0]"),
            "kernel_timeout_cycles": Plain("input", "logic [47:0]"),
            "cancel": Plain("input", "logic"),
            "job": Sink("compute_pkg::job_t"),
            "window": Plain("input", "compute_pkg::window_t"),
            "done": Source("compute_pkg::done_t"),
            "wqe": Source("roce_pkg::rdma_wqe_t"),
            "cqe": Sink("roce_pkg::rdma_cqe_t"),
            "connect": Source("roce_pkg::connect_t"),
            "conn": Sink("roce_pkg::conn_event_t"),
            "conn_answer": Source("roce_pkg::conn_answer_t"),
            "close": Source("roce_wire_pkg::qpn_t"),
            "abandon": Plain("output", "logic"),
            "rdma_settled": Plain("input", "logic"),
            "mem": AxiMaster(width),
            "rx": AxisSink(width),
            "tx": AxisSource(width),
            "streams_off": Plain("output", "logic"),
            "datagrams": Plain("output", "datagrams_pkg::datagram_settings_t"),
            "counter_at": Plain("output", "logic [2:0]"),
            "counter": Plain("input", "logic [31:0]"),
            "ctrl": AxilSlave(),
            "bus": AxilMaster(20),
            "functions": Plain("output", "compute_pkg::function_set_t"),
            "uploaded": Plain("input", "logic [images_pkg::MAX_SLOTS-1:0]"),
            "used": Plain("output", "logic [images_pkg::MAX_SLOTS-1:0]"),
            "record_slot": Plain("output", "images_pkg::image_slot_t"),
            "record_at": Plain("output", "compute_pkg::record_word_t"),
            "store_word": Plain("input", "logic [31:0]"),
            "fetch": Source("images_pkg::store_word_t"),
            "fetched": Sink("images_pkg::store_answer_t"),
            "held": Plain("output", "compute_pkg::held_t"),
            "paused": Plain("output", "logic"),
            "idle": Plain("output", "logic"),
        },
    )  # fmt: skip
