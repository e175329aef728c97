# SPDX-License-Identifier: Apache-2.0
"""Where the RTL is. Modules and interfaces are found by name (file name = module name), packages are listed in order."""

from __future__ import annotations

import os
from pathlib import Path

RTL = Path(__file__).resolve().parents[2]
ROOT = RTL.parent
GENERATED = ROOT / "build" / "generated"

# Packages in the order in which they depend on each other.
_PACKAGES = [
    "stream/crc32_pkg.sv",
    "stream/time_pkg.sv",
    "memory/memory_pkg.sv",
    "packet/packet_pkg.sv",
    "packet/packet_rx_pkg.sv",
    "roce/roce_pkg.sv",
    "roce/roce_rx_pkg.sv",
    "roce/cm_pkg.sv",
    "roce/roce_requester_pkg.sv",
    "roce/roce_response_pkg.sv",
    "roce/roce_cc_pkg.sv",
    "roce/roce_counters_pkg.sv",
    "roce/roce_manager_pkg.sv",
    "compute/compute_pkg.sv",
    "compute/kernels/matmul_pkg.sv",
    "compute/rpc/rpc_pkg.sv",
    "shell/shell_pkg.sv",
]
# Made from the register map and the packages above (rtl/control/generate.py).
_GENERATED_PACKAGES = ["nacelle_regs_pkg.sv", "counters_pkg.sv"]


def overlay() -> Path | None:
    """A folder whose files take the place of those of the same name: how tools/mutate.py tests changed modules."""
    return Path(os.environ["NACELLE_OVERLAY"]) if "NACELLE_OVERLAY" in os.environ else None


def packages() -> list[Path]:
    """All packages that exist, in dependency order."""
    named = [RTL / name for name in _PACKAGES] + [GENERATED / name for name in _GENERATED_PACKAGES]
    if changed := overlay():
        named = [changed / "mutation_pkg.sv"] + [changed / path.name if (changed / path.name).exists() else path for path in named]
    return [path for path in named if path.exists()]


def module_dirs() -> list[Path]:
    """Folders to search for `<module>.sv`, in order."""
    changed = overlay()
    return [changed] * (changed is not None) + [
        path
        for path in sorted(RTL.rglob("*"))
        if path.is_dir() and path.name not in ("test", "formal", "testing", "sim_build", "__pycache__") and any(path.glob("*.sv"))
    ]
