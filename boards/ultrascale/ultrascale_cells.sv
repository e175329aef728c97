// SPDX-License-Identifier: Apache-2.0

// Cells of UltraScale+ (AMD UG974), and IP that the project scripts of boards make, by their ports: for lint alone. cmac_100g is the 100G Ethernet
// subsystem (cmac_usplus, AMD PG203) with AXI4-Stream, without its AXI4-Lite registers, and with transceivers and clocks inside.
/* verilator lint_off DECLFILENAME */
/* verilator lint_off UNUSEDPARAM */
/* verilator lint_off UNUSEDSIGNAL */
/* verilator lint_off UNDRIVEN */
/* verilator lint_off PINCONNECTEMPTY */
/* verilator lint_off PINMISSING */

(* blackbox *)
module IBUFDS (
    input  I, IB,
    output O
);
endmodule

(* blackbox *)
module BUFG (
    input  I,
    output O
);
endmodule

(* blackbox *)
module MMCME4_BASE #(
    parameter real CLKIN1_PERIOD = 0.0,
    parameter real CLKFBOUT_MULT_F = 5.0,
    parameter int  DIVCLK_DIVIDE = 1,
    parameter real CLKOUT0_DIVIDE_F = 1.0,
    parameter int  CLKOUT1_DIVIDE = 1
) (
    input  CLKIN1, CLKFBIN, RST, PWRDWN,
    output CLKOUT0, CLKOUT0B, CLKOUT1, CLKOUT1B, CLKOUT2, CLKOUT2B, CLKOUT3, CLKOUT3B, CLKOUT4, CLKOUT5, CLKOUT6, CLKFBOUT, CLKFBOUTB, LOCKED
);
endmodule

(* blackbox *)
module STARTUPE3 (
    input        FCSBO, FCSBOTS, GSR, GTS, KEYCLEARB, PACK, USRCCLKO, USRCCLKTS, USRDONEO, USRDONETS,
    input  [3:0] DO, DTS,
    output       CFGCLK, CFGMCLK, EOS, PREQ,
    output [3:0] DI
);
endmodule

(* blackbox *)
module SYSMONE4 #(
    parameter logic [15:0] INIT_40 = '0, INIT_41 = '0, INIT_42 = '0, INIT_48 = '0, INIT_4B = '0
) (
    input         CONVST, CONVSTCLK, DCLK, DEN, DWE, I2C_SCLK, I2C_SDA, RESET, VN, VP,
    input  [7:0]  DADDR,
    input  [15:0] DI, VAUXN, VAUXP,
    output        BUSY, DRDY, EOC, EOS, I2C_SCLK_TS, I2C_SDA_TS, JTAGBUSY, JTAGLOCKED, JTAGMODIFIED, OT, SMBALERT_TS,
    output [4:0]  MUXADDR,
    output [5:0]  CHANNEL,
    output [15:0] ADC_DATA, ALM, DO
);
endmodule

(* blackbox *)
module cmac_100g (
    input  [3:0]   gt_rxp_in, gt_rxn_in,
    output [3:0]   gt_txp_out, gt_txn_out,
    input          gt_ref_clk_p, gt_ref_clk_n, init_clk, sys_reset,
    input  [11:0]  gt_loopback_in,
    input          gtwiz_reset_tx_datapath, gtwiz_reset_rx_datapath,
    output         gt_txusrclk2, usr_tx_reset, usr_rx_reset,

    input          rx_clk, core_rx_reset, ctl_rx_enable, ctl_rx_force_resync, ctl_rx_test_pattern,
    output         rx_axis_tvalid, rx_axis_tlast, rx_axis_tuser,
    output [511:0] rx_axis_tdata,
    output [63:0]  rx_axis_tkeep,
    output         stat_rx_aligned,

    input          core_tx_reset, ctl_tx_enable, ctl_tx_send_idle, ctl_tx_send_rfi, ctl_tx_send_lfi, ctl_tx_test_pattern,
    output         tx_axis_tready,
    input          tx_axis_tvalid, tx_axis_tlast, tx_axis_tuser,
    input  [511:0] tx_axis_tdata,
    input  [63:0]  tx_axis_tkeep,
    output         tx_ovfout, tx_unfout,
    input  [55:0]  tx_preamblein,

    input          core_drp_reset, drp_clk, drp_en, drp_we,
    input  [9:0]   drp_addr,
    input  [15:0]  drp_di,
    output [15:0]  drp_do,
    output         drp_rdy
);
endmodule

// The block design that boards/u55c/memory.tcl makes: SmartConnect and HBM.
(* blackbox *)
module hbm_memory_wrapper (
    input          clk, rst_n, hbm_clk, hbm_rst_n, ref_clk,
    output         ready,           // of ref_clk
    output         cattrip,

    input  [33:0]  S_AXI_awaddr,
    input  [7:0]   S_AXI_awid,
    input  [7:0]   S_AXI_awlen,
    input  [2:0]   S_AXI_awsize,
    input  [1:0]   S_AXI_awburst,
    input          S_AXI_awvalid,
    output         S_AXI_awready,
    input  [511:0] S_AXI_wdata,
    input  [63:0]  S_AXI_wstrb,
    input          S_AXI_wlast,
    input          S_AXI_wvalid,
    output         S_AXI_wready,
    output [7:0]   S_AXI_bid,
    output [1:0]   S_AXI_bresp,
    output         S_AXI_bvalid,
    input          S_AXI_bready,
    input  [33:0]  S_AXI_araddr,
    input  [7:0]   S_AXI_arid,
    input  [7:0]   S_AXI_arlen,
    input  [2:0]   S_AXI_arsize,
    input  [1:0]   S_AXI_arburst,
    input          S_AXI_arvalid,
    output         S_AXI_arready,
    output [511:0] S_AXI_rdata,
    output [7:0]   S_AXI_rid,
    output [1:0]   S_AXI_rresp,
    output         S_AXI_rlast,
    output         S_AXI_rvalid,
    input          S_AXI_rready
);
endmodule
