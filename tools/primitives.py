# SPDX-License-Identifier: Apache-2.0
"""What mapped cells cost: UltraScale+ primitives in LUTs, flip-flops and block RAM, Intel's in ALMs, Lattice's in LUT4 and EBR."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

# LUTs of a SLICEM that each takes (AMD UG574, distributed RAM and shift registers).
LUT_RAM = {
    "RAM32X1S": 1, "RAM64X1S": 1, "RAM128X1S": 2, "RAM256X1S": 4, "RAM512X1S": 8,
    "RAM32X1D": 2, "RAM64X1D": 2, "RAM128X1D": 4, "RAM256X1D": 8,
    "RAM32M": 4, "RAM64M": 4, "RAM32M16": 8, "RAM64M8": 8, "RAM64X8SW": 8, "RAM32X16DR8": 8,
}  # fmt: skip
SHIFT_REGISTER = {"SRL16E": 1, "SRLC16E": 1, "SRLC32E": 1}
_LUT = re.compile(r"^(LUT[1-6]|INV)$")
_FLIP_FLOP = re.compile(r"^FD[A-Z]+$")

# An UltraRAM has the bits of 8 RAMB36, which is what it replaces at best.
URAM_BITS_IN_BRAM36 = 8
# Shapes of a RAMB18 with one port for writing and one for reading (AMD UG573); a RAMB36 is two of them side by side.
_RAMB18 = ((512, 36), (1024, 18), (2048, 9), (4096, 4), (8192, 2), (16384, 1))


def bram36_of_shape(depth: int, width: int) -> float:
    """Block RAM that a memory of `depth` words of `width` bits takes, in RAMB36; half a one is a RAMB18. Columns of one shape, and
    what is left of the width in the cheapest."""

    def rest(bits: int) -> int:
        return min((math.ceil(depth / words) for words, most in _RAMB18 if bits <= most), default=0) if bits else 0

    return min(width // bits * math.ceil(depth / words) + rest(width % bits) for words, bits in _RAMB18) / 2


def xilinx(kinds: Mapping[str, int]) -> dict[str, float]:
    """Sums of a netlist for UltraScale+, from how many it has of each cell. Raises ValueError for a RAM of unknown size."""
    sums: dict[str, float] = {"lut": 0, "lut_ram": 0, "ff": 0, "bram36": 0, "uram": 0, "dsp": 0}
    for kind, count in kinds.items():
        if kind in LUT_RAM or kind in SHIFT_REGISTER:
            luts = count * (LUT_RAM | SHIFT_REGISTER)[kind]
            sums["lut"] += luts
            sums["lut_ram"] += luts
        elif _LUT.match(kind):
            sums["lut"] += count
        elif _FLIP_FLOP.match(kind):
            sums["ff"] += count
        elif kind.startswith("RAMB36"):
            sums["bram36"] += count
        elif kind.startswith("RAMB18"):
            sums["bram36"] += count / 2
        elif kind.startswith("URAM"):
            sums["uram"] += count
        elif kind.startswith("DSP"):
            sums["dsp"] += count
        elif kind.startswith(("RAM", "SRL", "FIFO")):
            raise ValueError(f"the size of a {kind} is not known")
    return sums


def intel(kinds: Mapping[str, int]) -> dict[str, float]:
    """Sums of a netlist for Cyclone V. An ALM has two adaptive LUTs: one function of six inputs, or two of up to five if they share
    enough of these. `alm` is with all of the small ones in pairs, `alm_apart` with none; MLAB bits come 20 to ten ALMs. Four
    flip-flops fit into an ALM."""
    six = kinds.get("MISTRAL_ALUT6", 0)
    small = sum(count for kind, count in kinds.items() if re.match(r"MISTRAL_(ALUT[2-5]|NOT)$", kind))
    arithmetic = kinds.get("MISTRAL_ALUT_ARITH", 0)
    ff = sum(count for kind, count in kinds.items() if kind.startswith("MISTRAL_FF"))
    mlab = math.ceil(kinds.get("MISTRAL_MLAB", 0) / 20) * 10
    paired = six + math.ceil(small / 2) + math.ceil(arithmetic / 2) + mlab
    return {
        "alm": max(paired, math.ceil(ff / 4)),
        "alm_apart": six + small + math.ceil(arithmetic / 2) + mlab,
        "mlab_alm": mlab,
        "ff": ff,
        "m10k": kinds.get("MISTRAL_M10K", 0),
        "dsp": sum(count for kind, count in kinds.items() if kind.startswith("MISTRAL_MUL")),
    }


def ecp5(kinds: Mapping[str, int]) -> dict[str, float]:
    """Sums of a netlist for ECP5, in LUT4 as nextpnr places them: a carry cell is two, a distributed RAM of 16 x 4 four, and two
    more whose slice its write port takes (Lattice FPGA-TN-02204). An EBR has 18 Kib."""
    ram = 6 * kinds.get("TRELLIS_DPR16X4", 0)
    return {
        "lut4": kinds.get("LUT4", 0) + 2 * kinds.get("CCU2C", 0) + ram,
        "lut_ram": ram,
        "ff": kinds.get("TRELLIS_FF", 0),
        "ebr": kinds.get("DP16KD", 0),
        "dsp": sum(count for kind, count in kinds.items() if kind.startswith("MULT18")),
    }
