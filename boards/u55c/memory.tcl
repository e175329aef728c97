# SPDX-License-Identifier: Apache-2.0
# The block design hbm_memory: SmartConnect takes AXI4 of 512 bits in the device's clock to one AXI3 port of 256 bits in its own, from which the switch of the
# HBM reaches all of its 16 GiB (AMD PG276). A port brings 12.8 GB/s at 400 MHz each way. Sourced by u55c.tcl; not run by anybody yet.
create_bd_design hbm_memory

create_bd_port -dir I -type clk -freq_hz 250000000 clk
create_bd_port -dir I -type rst rst_n
create_bd_port -dir I -type clk -freq_hz 400000000 hbm_clk
create_bd_port -dir I -type rst hbm_rst_n
create_bd_port -dir I -type clk -freq_hz 100000000 ref_clk
create_bd_port -dir O ready
create_bd_port -dir O cattrip

set port [create_bd_intf_port -mode Slave -vlnv xilinx.com:interface:aximm_rtl:1.0 S_AXI]
set_property -dict [list \
    CONFIG.PROTOCOL AXI4 CONFIG.DATA_WIDTH 512 CONFIG.ADDR_WIDTH 34 CONFIG.ID_WIDTH 8 CONFIG.FREQ_HZ 250000000 CONFIG.MAX_BURST_LENGTH 64 \
    CONFIG.NUM_READ_OUTSTANDING 32 CONFIG.NUM_WRITE_OUTSTANDING 32 CONFIG.SUPPORTS_NARROW_BURST 0 \
    CONFIG.HAS_BURST 1 CONFIG.HAS_LOCK 0 CONFIG.HAS_CACHE 0 CONFIG.HAS_PROT 0 CONFIG.HAS_QOS 0 CONFIG.HAS_REGION 0 \
] $port
set_property CONFIG.ASSOCIATED_BUSIF S_AXI [get_bd_ports clk]
set_property CONFIG.ASSOCIATED_RESET rst_n [get_bd_ports clk]
set_property CONFIG.ASSOCIATED_RESET hbm_rst_n [get_bd_ports hbm_clk]

set connect [create_bd_cell -type ip -vlnv xilinx.com:ip:smartconnect:1.0 connect]
set_property -dict [list CONFIG.NUM_SI 1 CONFIG.NUM_MI 1 CONFIG.NUM_CLKS 2] $connect

# Two stacks; one port, of the second stack, in the middle of the chip.
set hbm [create_bd_cell -type ip -vlnv xilinx.com:ip:hbm:1.0 hbm]
set closed [list]
for {set i 0} {$i < 32} {incr i} {
    lappend closed [format CONFIG.USER_SAXI_%02d $i] [expr {$i == 16 ? "true" : "false"}]
}
set_property -dict [list \
    CONFIG.USER_HBM_DENSITY 16GB CONFIG.USER_HBM_STACK 2 CONFIG.USER_SWITCH_ENABLE_01 TRUE CONFIG.USER_APB_EN false \
    CONFIG.USER_HBM_REF_CLK_0 100 CONFIG.USER_HBM_REF_CLK_1 100 CONFIG.USER_AXI_INPUT_CLK_FREQ 400 CONFIG.USER_AXI_INPUT_CLK1_FREQ 400 \
    CONFIG.USER_CLK_SEL_LIST1 AXI_16_ACLK \
] $hbm
set_property -dict $closed $hbm

# Of a chip with stacks of 8 GiB the ports have other names.
set saxi [get_bd_intf_pins -quiet hbm/SAXI_16_8HI]
if {$saxi eq ""} {set saxi [get_bd_intf_pins hbm/SAXI_16]}

connect_bd_intf_net $port [get_bd_intf_pins connect/S00_AXI]
connect_bd_intf_net [get_bd_intf_pins connect/M00_AXI] $saxi
connect_bd_net [get_bd_ports clk] [get_bd_pins connect/aclk]
connect_bd_net [get_bd_ports rst_n] [get_bd_pins connect/aresetn]
connect_bd_net [get_bd_ports hbm_clk] [get_bd_pins connect/aclk1] [get_bd_pins hbm/AXI_16_ACLK]
connect_bd_net [get_bd_ports hbm_rst_n] [get_bd_pins hbm/AXI_16_ARESET_N] [get_bd_pins hbm/APB_0_PRESET_N] [get_bd_pins hbm/APB_1_PRESET_N]
connect_bd_net [get_bd_ports ref_clk] [get_bd_pins hbm/HBM_REF_CLK_0] [get_bd_pins hbm/HBM_REF_CLK_1] \
    [get_bd_pins hbm/APB_0_PCLK] [get_bd_pins hbm/APB_1_PCLK]

foreach {name operation port pins} {
    both_ready and ready {apb_complete_0 apb_complete_1}
    too_hot or cattrip {DRAM_0_STAT_CATTRIP DRAM_1_STAT_CATTRIP}
} {
    set cell [create_bd_cell -type ip -vlnv xilinx.com:ip:util_vector_logic:2.0 $name]
    set_property -dict [list CONFIG.C_SIZE 1 CONFIG.C_OPERATION $operation] $cell
    connect_bd_net [get_bd_pins hbm/[lindex $pins 0]] [get_bd_pins $name/Op1]
    connect_bd_net [get_bd_pins hbm/[lindex $pins 1]] [get_bd_pins $name/Op2]
    connect_bd_net [get_bd_pins $name/Res] [get_bd_ports $port]
}

assign_bd_address
validate_bd_design
save_bd_design
