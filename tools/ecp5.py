# SPDX-License-Identifier: Apache-2.0
"""How RTL is mapped to Lattice ECP5 by yosys."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

COMPARE = Path(__file__).with_name("ecp5_compare.v")
ADD = Path(__file__).with_name("ecp5_add.v")
MAP = "synth_ecp5 -nowidelut -top \\{top} -run {steps}"
# Memories whose output is a register, so that they can be EBR. Its distributed RAM has 16 words, at 6 LUT4 for 4 bits.
REGISTERED = "t:$mem_v2 a:ram_style=distributed %i r:RD_CLK_ENABLE=1'1 %i"


def map_ecp5(run: Callable[[str], None], top: str) -> None:
    """Runs the commands of yosys that map `top`.

    ECP5 has no UltraRAM, and few words fit a distributed RAM: deeper memories are EBR if they can be, and memories of no more words
    are distributed RAM. Comparisons with constants are LUTs, by a rule of our own: -cmp2softlogic of yosys 0.70 makes 7 <= x of
    7 < x. Wide LUTs are left out: for one the mapper takes 8 LUT4 where 2 do. `abc` needs 5 % fewer LUT4 than `abc9`, and 2 % fewer
    than with `if -a`.
    """
    # Flat: a constant may come from another module.
    for step in (f"hierarchy -check -top {top}", "proc", "flatten", "opt_expr", "opt_clean", f"techmap -map {COMPARE}"):
        run(step)
    run('setattr -set ram_style "block" a:ram_style=ultra')
    run(MAP.format(top=top, steps=":map_ram"))
    run(f"techmap -map {ADD}")
    run(f'setattr -set ram_style "block" {REGISTERED} r:SIZE>=64 %i r:WIDTH>=16 %i')
    run(f'setattr -set ram_style "block" {REGISTERED} r:SIZE>=32 %i r:WIDTH>=140 %i r:WIDTH<=512 %i')
    run('setattr -set ram_style "distributed" t:$mem_v2 a:ram_style=block %i r:SIZE<=16 %i')
    run(MAP.format(top=top, steps="map_ram:map_luts"))
    run("abc -dress -lut 4")
    run("clean")
    run(MAP.format(top=top, steps="map_cells:"))
