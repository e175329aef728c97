# SPDX-License-Identifier: Apache-2.0
# Makes the bitstream of boards/u55c with Vivado (2022.1 or later, licence for CMAC): not run by anybody yet.
#
#   python tools/board.py u55c
#   vivado -mode batch -source boards/u55c/u55c.tcl
#
# The first writes files.tcl, which lists the sources, and sets the addresses; all goes to build/boards/u55c.
set here [file normalize [file dirname [info script]]]
set out [file normalize $here/../../build/boards/u55c]
source $out/files.tcl

create_project -force u55c $out/vivado -part xcu55c-fsvh2892-2L-e
set_property target_language Verilog [current_project]
add_files -norecurse $nacelle_sources
set_property file_type SystemVerilog [get_files -of_objects [get_filesets sources_1] *.sv]
add_files -fileset constrs_1 -norecurse [list $here/u55c.xdc $here/crossings.tcl]

# The first cage; its lanes and the MAC that is near them. Without RS-FEC: for optics and cables that need none, 100GBASE-LR4 and short direct-attach.
create_ip -name cmac_usplus -vendor xilinx.com -library ip -module_name cmac_100g
set_property -dict [list \
    CONFIG.CMAC_CAUI4_MODE 1 CONFIG.NUM_LANES 4x25 CONFIG.USER_INTERFACE AXIS CONFIG.ENABLE_AXI_INTERFACE 0 \
    CONFIG.GT_REF_CLK_FREQ 161.1328125 CONFIG.GT_DRP_CLK 100 CONFIG.CMAC_CORE_SELECT CMACE4_X0Y3 CONFIG.GT_GROUP_SELECT X0Y24~X0Y27 \
    CONFIG.LANE1_GT_LOC X0Y24 CONFIG.LANE2_GT_LOC X0Y25 CONFIG.LANE3_GT_LOC X0Y26 CONFIG.LANE4_GT_LOC X0Y27 \
    CONFIG.INCLUDE_RS_FEC 0 CONFIG.TX_FLOW_CONTROL 0 CONFIG.RX_FLOW_CONTROL 0 CONFIG.ENABLE_PIPELINE_REG 1 \
    CONFIG.RX_MIN_PACKET_LEN 64 CONFIG.RX_MAX_PACKET_LEN 9600 \
] [get_ips cmac_100g]
generate_target all [get_ips cmac_100g]

source $here/memory.tcl
make_wrapper -files [get_files hbm_memory.bd] -top -import

set_property top u55c [get_filesets sources_1]
set_property generic $nacelle_parameters [get_filesets sources_1]
update_compile_order -fileset sources_1

launch_runs impl_1 -to_step write_bitstream -jobs 8
wait_on_run impl_1
if {[get_property PROGRESS [get_runs impl_1]] ne "100%"} {error "implementation failed; $out/vivado/u55c.runs says why"}
open_run impl_1
report_timing_summary -file $out/timing.txt
report_utilization -hierarchical -file $out/utilization.txt
file copy -force $out/vivado/u55c.runs/impl_1/u55c.bit $out/u55c.bit
