# SPDX-License-Identifier: Apache-2.0
"""Planes that are not in the shell, each as a top of its own with plain ports: for tests, lint and synthesis."""

from __future__ import annotations

from collections.abc import Mapping

from .bench import (
    AxilMaster,
    AxilSlave,
    AxiMaster,
    AxiSlave,
    AxisSink,
    AxisSource,
    Plain,
    Port,
    Several,
    Sink,
    Source,
    Type,
    wrapper,
)

TLP = "pcie_pkg::tlp_header_t"
SLOT: Mapping[str, Port] = {
    "settings": Plain("input", "pcie_pkg::pcie_configs_t"),
    "credits": Plain("input", "pcie_pkg::tlp_credits_t"),
    "flr_request": Plain("input", "logic [pcie_pkg::FUNCTIONS_MAX-1:0]"),
    "flr_done": Plain("output", "logic [pcie_pkg::FUNCTIONS_MAX-1:0]"),
}


def bar_map(sizes: Mapping[int, int], bases: Mapping[int, int]) -> str:
    """A `bar_map_t`: size, and base in the device, by BAR."""
    bars = (f"'{{base: 64'd{bases.get(i, 0)}, size: 64'd{sizes.get(i, 0)}}}" for i in reversed(range(6)))
    return f"'{{{', '.join(bars)}}}"


def bar_maps(sizes: Mapping[int, int], bases: Mapping[int, int], card: str = "'0") -> Type:
    """A `bar_maps_t`: that of function 0, and that of the network card, if there is one."""
    return Type(f"'{{{card}, {bar_map(sizes, bases)}}}")


def tlps(data_w: int) -> dict[str, Port]:
    """What is received and what is sent."""
    return {"rx_header": Sink(TLP), "rx_data": AxisSink(data_w), "tx_header": Source(TLP), "tx_data": AxisSource(data_w)}


def pcie(data_w: int, functions: int = 1) -> str:
    """`tb_pcie_plane`, with BARs as a device in a slot has them: registers, doorbells, memory."""
    ports = {
        **SLOT,
        **tlps(data_w),
        "registers": AxilMaster(20),
        "memory": AxiMaster(data_w),
        "host": AxiSlave(data_w),
        "msix_registers": Several(AxilSlave(12), functions),
        "interrupt": Several(Sink("pcie_pkg::msix_vector_t"), functions),
        "events": Plain("output", "pcie_pkg::pcie_events_t"),
        "idle": Plain("output", "logic"),
    }
    card = bar_map({0: 1 << 13}, {0: 1 << 19}) if functions > 1 else "'0"
    bars = bar_maps({0: 1 << 19, 2: 1 << 16, 4: 1 << 32}, {2: 1 << 40}, card)
    return wrapper("pcie_plane", {"DATA_W": data_w, "FUNCTIONS": functions, "BAR_MAP": bars}, ports)


def pcie_card(data_w: int) -> str:
    """The same with a second function."""
    return pcie(data_w, 2)


def copy(data_w: int) -> str:
    """`tb_copy_engine`, as a device in a slot has it."""
    ports = {
        "fabric_rst": Plain("input", "logic"),
        "reset": Plain("input", "logic"),
        "bus": AxilSlave(12),
        "mem": AxiMaster(data_w),
        "interrupt": Source("logic [4:0]"),
        "stops": Plain("output", "logic"),
        "state": Plain("output", "copy_pkg::copy_state_t"),
        "idle": Plain("output", "logic"),
    }
    return wrapper("copy_engine", {"DATA_W": data_w}, ports)


def network_card(data_w: int) -> dict[str, Port]:
    """The ports of `virtio_net`."""
    return {
        "bus": AxilSlave(12),
        "mac": Plain("input", "logic [47:0]"),
        "mac_free": Plain("input", "logic"),
        "mac_taken": Plain("input", "logic [47:0]"),
        "station": Plain("output", "logic [47:0]"),
        "mtu": Plain("input", "logic [15:0]"),
        "link_up": Plain("input", "logic"),
        "reset": Plain("input", "logic"),
        "reset_done": Plain("output", "logic"),
        "notify": Sink("virtio_pkg::queue_t"),
        "interrupt": Source("logic [15:0]"),
        "mem": AxiMaster(data_w, id_width=5),
        "rx": AxisSink(data_w),
        "rx_info": Plain("input", "virtio_pkg::net_rx_t"),
        "hash": Plain("output", "virtio_pkg::net_hash_t"),
        "tx": AxisSource(data_w),
        "tx_info": Plain("output", "virtio_pkg::net_tx_t"),
        "idle": Plain("output", "logic"),
    }


def virtio(data_w: int, pairs: int = 1) -> str:
    """`tb_virtio_net`."""
    return wrapper("virtio_net", {"DATA_W": data_w, "PAIRS": pairs}, network_card(data_w))


def virtio_pairs(data_w: int) -> str:
    """As many pairs of queues as there can be."""
    return virtio(data_w, 4)


# By name: source, and the instance that is measured.
ALONE = {
    "pcie": (pcie, "pcie_plane"),
    "pcie-card": (pcie_card, "pcie_plane"),
    "copy": (copy, "copy_engine"),
    "virtio": (virtio, "virtio_net"),
    "virtio-pairs": (virtio_pairs, "virtio_net"),
}
