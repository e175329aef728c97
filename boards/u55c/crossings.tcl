# SPDX-License-Identifier: Apache-2.0
# Timing of what crosses clocks, for Vivado, once the clocks are there. Between the device and the MAC go the pointers of cdc_fifo, whose bits must arrive within
# a cycle of each other, and its memory, which is read long after it was written. The seed's oscillator and the ends of resets are asynchronous.
set device [get_clocks -of_objects [get_pins clk_net/O]]
set mac [get_clocks -of_objects [get_pins cmac/gt_txusrclk2]]
set_max_delay -datapath_only -from $device -to $mac 3.1
set_max_delay -datapath_only -from $mac -to $device 3.1

create_clock -name wild -period 15.000 [get_pins startup/CFGMCLK]
set_false_path -from [get_clocks wild] -to $device
set_false_path -to [get_pins -hierarchical -filter {NAME =~ */stages_q_reg[*]/PRE}]
