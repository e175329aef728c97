# SPDX-License-Identifier: Apache-2.0
"""The ports of a kernel (docs/how-to/add-a-kernel.md), for a test that runs one alone."""

from __future__ import annotations

from .bench import AxilMaster, AxilSlave, AxiMaster, AxisSink, AxisSource, Plain, Port, Sink, Source


def kernel_ports(width: int) -> dict[str, Port]:
    """Those of every kernel, by name: `width` is `DATA_W` in bits."""
    return {
        "identity": Plain("output", "compute_pkg::kernel_identity_t"),
        "ctrl": AxilSlave(),
        "job": Sink("compute_pkg::job_t"),
        "done": Source("compute_pkg::done_t"),
        "mem": AxiMaster(width),
        "rx": AxisSink(width),
        "tx": AxisSource(width),
        "wqe": Source("roce_pkg::rdma_wqe_t"),
        "cqe": Sink("roce_pkg::rdma_cqe_t"),
        "connect": Source("roce_pkg::kernel_connect_t"),
        "conn": Sink("roce_pkg::kernel_conn_t"),
        "bus": AxilMaster(20),
        "msg_tx": AxisSource(width),
        "msg_rx": AxisSink(width),
    }
