// SPDX-License-Identifier: Apache-2.0

// A Nacelle device on Intel's Agilex F-series development kit DK-DEV-AGF014EA (AGFB014R24B2E2V): 100 Gigabit Ethernet at four lanes of the first QSFP-DD cage
// by the E-tile's hard MAC, and block RAM of the chip as memory. No software is beside it. Not built with Intel's tools, and not run: Verilator and slang have
// read it.
//
//   100 MHz ─ IOPLL ─ 250 MHz ─ device, memory          156.25 MHz ─ E-tile ─ 403 MHz ─ its streams          a ring of cells ─ seed
//
//   QSFP-DD ─ etile_100g ─ avst_receive, avst_transmit ─ mac_crossing ─ standalone_device ─ axi_ram
//
// The device is in reset until the clocks and the MAC's transmitter are ready. A link that fails later resets nothing: what was being received ends as
// a bad frame.
module agilex_f
  import device_pkg::*;
  import shell_pkg::*;
  import memory_pkg::ADDR_W;
#(
    parameter logic [47:0] MAC = 48'h02_4e_41_43_4c_02,
    parameter logic [31:0] IP = 32'h0a_4d_00_02,     // 10.77.0.2
    parameter logic [5:0]  PREFIX_LEN = 6'd16,
    parameter logic [31:0] GATEWAY = 32'd0,          // 0: none
    parameter logic [1:0]  ADDRESS_MODE = 2'd0       // static; as the register of this name
) (
    input  logic       clk_sys_100m_p,               // differential pins: the other one follows
    input  logic       cpu_resetn,

    input  logic       refclk_156m_qsfpdd_p,
    input  logic [3:0] qsfpdd0_rx_p,
    input  logic [3:0] qsfpdd0_rx_n,
    output logic [3:0] qsfpdd0_tx_p,
    output logic [3:0] qsfpdd0_tx_n,
    output logic       qsfpdd0_reset_l,
    output logic       qsfpdd0_lpmode,
    output logic       qsfpdd0_modsel_l
);
  if (DATA_W != 512 || CLOCK_HZ != 250_000_000 || MEMORIES != 1 || ECC) begin : g_bad
    $fatal(1, "agilex_f: the device must have 512 bits, a clock of 250 MHz, and one memory without ECC");
  end

  assign qsfpdd0_reset_l  = 1'b1;
  assign qsfpdd0_lpmode   = 1'b0;
  assign qsfpdd0_modsel_l = 1'b1;

  // ---- clocks and resets ----
  logic clk, locked, not_configured, slow_rst, mac_rst, rst;
  logic mac_clk, mac_locked, lanes_stable, ehip_ready, pcs_ready;
  logic [5:0] mac_clks;
  assign mac_clk = mac_clks[4];
  wire off = not_configured || !cpu_resetn;
  wire starts = off || !locked || !lanes_stable || !ehip_ready;

  reset_release configuration (.ninit_done(not_configured));
  pll_250 pll (.refclk(clk_sys_100m_p), .rst(off), .outclk_0(clk), .locked);
  cdc_reset #(.STAGES(4)) slow_reset (.clk(clk_sys_100m_p), .arst(off), .rst(slow_rst));
  cdc_reset #(.STAGES(4)) mac_reset (.clk(mac_clk), .arst(starts), .rst(mac_rst));
  cdc_reset #(.STAGES(4)) reset (.clk, .arst(starts), .rst);

  // ---- network ----
  axis_if #(.DATA_W(DATA_W)) rx ();
  axis_if #(.DATA_W(DATA_W)) tx ();
  axis_if #(.DATA_W(DATA_W)) mac_rx ();
  axis_if #(.DATA_W(DATA_W)) mac_tx ();
  logic tx_ready, tx_valid, tx_error, tx_start, tx_end, rx_valid, rx_start, rx_end, receives;
  logic [DATA_W-1:0] tx_data, rx_data;
  logic [5:0] tx_empty, rx_empty, rx_error;

  cdc_bit receiver (.clk(mac_clk), .in(pcs_ready), .out(receives));

  etile_100g etile (
      .i_stats_snapshot(1'b0), .o_cdr_lock(), .o_tx_pll_locked(mac_locked),
      .i_eth_reconfig_addr('0), .i_eth_reconfig_read(1'b0), .i_eth_reconfig_write(1'b0), .o_eth_reconfig_readdata(),
      .o_eth_reconfig_readdata_valid(), .i_eth_reconfig_writedata('0), .o_eth_reconfig_waitrequest(),
      .o_tx_lanes_stable(lanes_stable), .o_rx_pcs_ready(pcs_ready), .o_ehip_ready(ehip_ready), .o_rx_block_lock(), .o_rx_am_lock(), .o_rx_hi_ber(),
      .o_local_fault_status(), .o_remote_fault_status(),
      .i_clk_ref(refclk_156m_qsfpdd_p), .i_clk_tx(mac_clk), .i_clk_rx(mac_clk),
      .o_clk_pll_div64(mac_clks), .o_clk_pll_div66(), .o_clk_rec_div64(), .o_clk_rec_div66(),
      .i_csr_rst_n(!slow_rst), .i_tx_rst_n(mac_locked), .i_rx_rst_n(mac_locked),
      .o_tx_serial(qsfpdd0_tx_p), .o_tx_serial_n(qsfpdd0_tx_n), .i_rx_serial(qsfpdd0_rx_p), .i_rx_serial_n(qsfpdd0_rx_n),
      .i_reconfig_clk(clk_sys_100m_p), .i_reconfig_reset(slow_rst),
      .i_xcvr_reconfig_address('0), .i_xcvr_reconfig_read('0), .i_xcvr_reconfig_write('0), .o_xcvr_reconfig_readdata(),
      .i_xcvr_reconfig_writedata('0), .o_xcvr_reconfig_waitrequest(),
      .o_tx_ready(tx_ready), .i_tx_valid(tx_valid), .i_tx_error(tx_error), .i_tx_startofpacket(tx_start), .i_tx_endofpacket(tx_end),
      .i_tx_skip_crc(1'b0), .i_tx_data(tx_data), .i_tx_empty(tx_empty),
      .o_rx_valid(rx_valid), .o_rx_startofpacket(rx_start), .o_rx_endofpacket(rx_end), .o_rx_data(rx_data), .o_rx_empty(rx_empty),
      .o_rx_error(rx_error), .o_rxstatus_data(), .o_rxstatus_valid(),
      .i_tx_pfc('0), .o_rx_pfc(), .i_tx_pause(1'b0), .o_rx_pause()
  );
  // Errors of the E-tile: malformed, FCS, too short, too long, length field; the last bit is not used.
  avst_receive #(
      .DATA_W (DATA_W),
      .ERROR_W(6),
      .FATAL  (6'b01_1111)
  ) receive (
      .clk(mac_clk), .rst(mac_rst || !receives), .in_valid(rx_valid), .in_startofpacket(rx_start), .in_endofpacket(rx_end), .in_data(rx_data),
      .in_empty(rx_empty), .in_error(rx_error), .out(mac_rx)
  );
  avst_transmit #(.DATA_W(DATA_W)) transmit (
      .clk(mac_clk), .rst(mac_rst), .in(mac_tx), .out_ready(tx_ready), .out_valid(tx_valid), .out_startofpacket(tx_start),
      .out_endofpacket(tx_end), .out_data(tx_data), .out_empty(tx_empty), .out_error(tx_error)
  );
  mac_crossing #(
      .DATA_W   (DATA_W),
      .MAX_FRAME(MAX_FRAME)
  ) crossing (
      .clk, .rst, .rx, .tx, .mac_clk, .mac_rst, .mac_rx_broken(!receives), .mac_rx, .mac_tx, .rx_lost()
  );

  // ---- device ----
  localparam int unsigned DRAM_ID_W = dram_id_w(MEMORIES);
  axi_if #(.ADDR_W(ADDR_W), .DATA_W(DATA_W), .ID_W(DRAM_ID_W)) dram[1] ();
  logic noise;

  ring_oscillator oscillator (.enable(!off), .noise);
  stream_if #(.T(sensors_pkg::sensor_reading_t)) sensor_reading ();
  no_sensors nothing_measured (.reading(sensor_reading));
  standalone_device #(
      .MAC         (MAC),
      .IP          (IP),
      .PREFIX_LEN  (PREFIX_LEN),
      .GATEWAY     (GATEWAY),
      .ADDRESS_MODE(ADDRESS_MODE)
  ) device (
      .clk, .rst, .noise, .rx, .tx, .sensor_reading, .dram
  );
  axi_ram #(
      .DATA_W(DATA_W),
      .BYTES (DRAM_BYTES),
      .ID_W  (DRAM_ID_W)
  ) memory (
      .clk, .rst, .in(dram[0])
  );
endmodule
