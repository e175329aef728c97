# SPDX-License-Identifier: Apache-2.0
"""Where the RTL is. Modules and interfaces are found by name (file name = module name), packages are listed in order."""

from __future__ import annotations

import functools
import os
from pathlib import Path

from .device import standard
from .device_rtl import DeviceRtl, generate

RTL = Path(__file__).resolve().parents[2]
ROOT = RTL.parent
GENERATED = ROOT / "build" / "generated"

# Packages in the order in which they depend on each other.
_PACKAGES = [
    "stream/crc32_pkg.sv",
    "stream/time_pkg.sv",
    "control/event_log_pkg.sv",
    "memory/memory_pkg.sv",
    "pcie/pcie_pkg.sv",
    "copy/copy_pkg.sv",
    "memory/ecc_pkg.sv",
    "packet/packet_pkg.sv",
    "telemetry/trace_pkg.sv",
    "telemetry/histogram_pkg.sv",
    "telemetry/sensors_pkg.sv",
    "roce/roce_wire_pkg.sv",
    "roce/roce_events_pkg.sv",
    "roce/roce_pkg.sv",
    "packet/frame_pkg.sv",
    "packet/packet_rx_pkg.sv",
    "packet/link_pkg.sv",
    "virtio/virtio_pkg.sv",
    "packet/card_pkg.sv",
    "classify/classify_pkg.sv",
    "datagrams/datagrams_pkg.sv",
    "services/services_pkg.sv",
    "services/address_pkg.sv",
    "services/dhcp_pkg.sv",
    "services/mdns_pkg.sv",
    "services/ipbus_pkg.sv",
    "control/cci_pkg.sv",
    "roce/receive/roce_rx_pkg.sv",
    "roce/cm/roce_cm_pkg.sv",
    "roce/requester/roce_requester_pkg.sv",
    "roce/requester/roce_requester_ack_pkg.sv",
    "roce/response/roce_response_pkg.sv",
    "roce/roce_tx_pkg.sv",
    "roce/cc/roce_cc_pkg.sv",
    "roce/counters/roce_counters_pkg.sv",
    "roce/clients/roce_management_pkg.sv",
    "compute/compute_pkg.sv",
    "compute/images/images_pkg.sv",
    "compute/rpc/rpc_pkg.sv",
    "compute/stream/stream_pkg.sv",
]
# Made from the description of the registers (rtl/control/generate.py): before all others, and from the packages above.
_REGISTER_PACKAGES = [
    "cci_map_pkg.sv",
    "cci_policy_pkg.sv",
    "management_regs_pkg.sv",
    "admission_regs_pkg.sv",
    "event_log_regs_pkg.sv",
    "trace_regs_pkg.sv",
    "images_regs_pkg.sv",
    "histograms_regs_pkg.sv",
    "sensors_regs_pkg.sv",
    "copy_regs_pkg.sv",
    "classifier_regs_pkg.sv",
    "stream_regs_pkg.sv",
    "socket_regs_pkg.sv",
]
_GENERATED_PACKAGES = ["nacelle_regs_pkg.sv", "counters_pkg.sv"]
# Where modules are not part of a device.
_NOT_A_PLANE = ("test", "formal", "testing", "sim_build", "__pycache__")


@functools.cache
def standard_device() -> DeviceRtl:
    """The RTL that only the standard device has."""
    return generate(standard())


def overlay() -> Path | None:
    """A folder whose files take the place of those of the same name: how tools/mutate.py tests changed modules."""
    return Path(os.environ["NACELLE_OVERLAY"]) if "NACELLE_OVERLAY" in os.environ else None


def packages(device: DeviceRtl | None = None) -> list[Path]:
    """All packages that exist, in dependency order; the standard device's unless another is named."""
    built = device or standard_device()
    named = [GENERATED / name for name in _REGISTER_PACKAGES] + [built.widths] + [RTL / name for name in _PACKAGES]
    named += [*built.packages(), RTL / "shell" / "shell_pkg.sv"]
    named += [GENERATED / name for name in _GENERATED_PACKAGES]
    if changed := overlay():
        named = [changed / "mutation_pkg.sv"] + [changed / path.name if (changed / path.name).exists() else path for path in named]
    return [path for path in named if path.exists()]


def module_dirs(device: DeviceRtl | None = None) -> list[Path]:
    """Folders to search for `<module>.sv`, in order; `device` as for packages()."""
    changed = [folder] if (folder := overlay()) else []
    planes = [path for path in sorted(RTL.rglob("*")) if path.is_dir() and path.name not in _NOT_A_PLANE and any(path.glob("*.sv"))]
    return list(dict.fromkeys([*changed, *planes, *(device or standard_device()).module_dirs()]))
