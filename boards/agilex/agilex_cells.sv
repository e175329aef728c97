// SPDX-License-Identifier: Apache-2.0

// Cells of Agilex, and IP that the project scripts of boards make, by their ports: for lint alone. etile_100g is the E-tile hard IP for Ethernet
// (Intel 683468) at 100 Gbit/s with MAC and PCS; pll_250 an IOPLL; reset_release the reset release IP (Intel AN 891).
/* verilator lint_off DECLFILENAME */
/* verilator lint_off UNUSEDPARAM */
/* verilator lint_off UNUSEDSIGNAL */
/* verilator lint_off UNDRIVEN */
/* verilator lint_off PINCONNECTEMPTY */
/* verilator lint_off PINMISSING */

(* blackbox *)
module lcell (
    input  in,
    output out
);
endmodule

(* blackbox *)
module reset_release (
    output ninit_done
);
endmodule

(* blackbox *)
module pll_250 (
    input  refclk, rst,
    output outclk_0, locked
);
endmodule

(* blackbox *)
module etile_100g (
    input          i_stats_snapshot,
    output         o_cdr_lock, o_tx_pll_locked,
    input  [20:0]  i_eth_reconfig_addr,
    input          i_eth_reconfig_read, i_eth_reconfig_write,
    output [31:0]  o_eth_reconfig_readdata,
    output         o_eth_reconfig_readdata_valid,
    input  [31:0]  i_eth_reconfig_writedata,
    output         o_eth_reconfig_waitrequest,
    output         o_tx_lanes_stable, o_rx_pcs_ready, o_ehip_ready, o_rx_block_lock, o_rx_am_lock, o_rx_hi_ber,
    output         o_local_fault_status, o_remote_fault_status,
    input          i_clk_ref, i_clk_tx, i_clk_rx,
    output [5:0]   o_clk_pll_div64, o_clk_pll_div66, o_clk_rec_div64, o_clk_rec_div66,
    input          i_csr_rst_n, i_tx_rst_n, i_rx_rst_n,
    output [3:0]   o_tx_serial, o_tx_serial_n,
    input  [3:0]   i_rx_serial, i_rx_serial_n,
    input          i_reconfig_clk, i_reconfig_reset,
    input  [75:0]  i_xcvr_reconfig_address,
    input  [3:0]   i_xcvr_reconfig_read, i_xcvr_reconfig_write,
    output [31:0]  o_xcvr_reconfig_readdata,
    input  [31:0]  i_xcvr_reconfig_writedata,
    output [3:0]   o_xcvr_reconfig_waitrequest,

    output         o_tx_ready,
    input          i_tx_valid, i_tx_error, i_tx_startofpacket, i_tx_endofpacket, i_tx_skip_crc,
    input  [511:0] i_tx_data,
    input  [5:0]   i_tx_empty,
    output         o_rx_valid, o_rx_startofpacket, o_rx_endofpacket,
    output [511:0] o_rx_data,
    output [5:0]   o_rx_empty, o_rx_error,
    output [39:0]  o_rxstatus_data,
    output         o_rxstatus_valid,
    input  [7:0]   i_tx_pfc,
    output [7:0]   o_rx_pfc,
    input          i_tx_pause,
    output         o_rx_pause
);
endmodule
