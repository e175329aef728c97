# SPDX-License-Identifier: Apache-2.0
# Clocks of boards/agilex_f, and what crosses them: through cdc_fifo, cdc_bit and cdc_reset alone.
create_clock -name clk_sys_100m -period 10.000 [get_ports clk_sys_100m_p]
create_clock -name refclk_156m -period 6.400 [get_ports refclk_156m_qsfpdd_p]
create_clock -name ring -period 4.000 [get_pins -compatibility_mode {*oscillator|g_ring[*].stage*|combout}]
derive_clock_uncertainty

# The pointers of a FIFO must arrive within a cycle of each other, and its memory is read long after it was written.
set_max_skew -to [get_registers {*meta_q[*]}] 2.5
set_max_delay -to [get_registers {*meta_q[*]}] 100
set_min_delay -to [get_registers {*meta_q[*]}] -100
set_max_delay -to [get_registers {*_fifo|out_q[*]}] 4.0
set_false_path -to [get_pins -compatibility_mode {*stages_q[*]|clrn}]
set_false_path -from [get_ports cpu_resetn]
