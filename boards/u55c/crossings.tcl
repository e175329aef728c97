# SPDX-License-Identifier: Apache-2.0
# Timing of what crosses clocks, for Vivado: cdc_bit's first register, whose pointers of cdc_fifo must arrive within a cycle of each other; the memory of cdc_fifo,
# which is read only what was written long before; and the start of cdc_reset.
foreach cell [get_cells -hierarchical -regexp {.*/meta_q_reg\[\d+\]}] {
    set_max_delay -datapath_only -to [get_pins $cell/D] 3.1
}
foreach cell [get_cells -hierarchical -regexp {.*_fifo/out_q_reg\[\d+\]}] {
    set_max_delay -datapath_only -from [get_cells -quiet -of_objects [get_pins -leaf -filter {DIRECTION == OUT} -of_objects [get_nets -of_objects [get_pins $cell/D]]]] -to [get_pins $cell/D] 4.0
}
set_false_path -to [get_pins -hierarchical -regexp {.*/stages_q_reg\[\d+\]/PRE}]
