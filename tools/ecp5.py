# SPDX-License-Identifier: Apache-2.0
"""How RTL is mapped to Lattice ECP5 by yosys."""

from __future__ import annotations

from collections.abc import Callable

MAP = "synth_ecp5 -nowidelut -top \\{top} -run {steps}"
OUTPUT_REGISTER = "r:RD_CLK_ENABLE=1"


def map_ecp5(run: Callable[[str], None], top: str) -> None:
    """Runs the commands of yosys that map `top`.

    ECP5 has no UltraRAM. Its distributed RAM has 16 words, at 6 LUT4 for 4 bits: deeper memories are EBR if their output is a
    register, and memories of no more words are distributed RAM. Wide LUTs are left out: for one the mapper takes 8 LUT4 where 2 do.
    """
    run('setattr -set ram_style "block" a:ram_style=ultra')
    run(MAP.format(top=top, steps=":map_ram"))
    deep = f"t:$mem_v2 a:ram_style=distributed %i {OUTPUT_REGISTER} %i r:SIZE>=64 %i r:WIDTH>=16 %i"
    run(f'setattr -set ram_style "block" {deep}')
    run('setattr -set ram_style "distributed" t:$mem_v2 a:ram_style=block %i r:SIZE<=16 %i')
    run(MAP.format(top=top, steps="map_ram:"))
