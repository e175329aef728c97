// SPDX-License-Identifier: Apache-2.0

// A Nacelle device on an AMD Alveo U55C (XCU55C-FSVH2892-2L-E): 100 Gigabit Ethernet at the first QSFP28 cage by the chip's hard MAC, and 16 GiB of HBM in
// the chip. No software is beside it. Not built with AMD's tools, and not run: Verilator and slang have read it.
//
//   100 MHz ─ MMCM ┬ 250 MHz ─ device                   161.1 MHz ─ CMAC ─ 322 MHz ─ its streams
//                  └ 400 MHz ─ AXI of the HBM           the chip's configuration oscillator ─ seed
//
//   QSFP28 ─ cmac_100g ─ mac_crossing ─ standalone_device ─ hbm_memory (SmartConnect, HBM)
//
// The device is in reset until the clocks, the MAC's transmitter and the HBM are ready. A link that fails later resets nothing: what was being received ends
// as a bad frame.
module u55c
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
    input  logic       clk_100mhz_p,
    input  logic       clk_100mhz_n,

    input  logic       qsfp0_refclk_p,               // 161.1328125 MHz
    input  logic       qsfp0_refclk_n,
    input  logic [3:0] qsfp0_rx_p,
    input  logic [3:0] qsfp0_rx_n,
    output logic [3:0] qsfp0_tx_p,
    output logic [3:0] qsfp0_tx_n,

    output logic       hbm_cattrip                   // to the board's controller: the HBM is too hot
);
  if (DATA_W != 512 || CLOCK_HZ != 250_000_000 || MEMORIES != 1 || ECC) begin : g_bad
    $fatal(1, "u55c: the device must have 512 bits, a clock of 250 MHz, and one memory without ECC");
  end
  if (SENSORS != 4 || SENSOR_KINDS[3:0] != {8'd2, 8'd2, 8'd2, 8'd1}) begin : g_bad_sensors
    $fatal(1, "u55c: the sensors must be a temperature and three voltages: those of the chip, VCCINT, VCCAUX and VCCBRAM");
  end

  // ---- clocks and resets ----
  logic clk_in, clk_100, clk_250, clk_400, clk, hbm_clk, feedback, locked;
  logic rst, slow_rst, hbm_rst, mac_rst;

  // 1000 MHz inside.
  IBUFDS clk_pin (.I(clk_100mhz_p), .IB(clk_100mhz_n), .O(clk_in));
  BUFG clk_100_net (.I(clk_in), .O(clk_100));
  MMCME4_BASE #(
      .CLKIN1_PERIOD(10.0), .CLKFBOUT_MULT_F(10.0), .DIVCLK_DIVIDE(1), .CLKOUT0_DIVIDE_F(2.5), .CLKOUT1_DIVIDE(4)
  ) mmcm (
      .CLKIN1(clk_100), .CLKFBIN(feedback), .RST(1'b0), .PWRDWN(1'b0), .CLKFBOUT(feedback), .CLKFBOUTB(), .LOCKED(locked),
      .CLKOUT0(clk_400), .CLKOUT0B(), .CLKOUT1(clk_250), .CLKOUT1B(), .CLKOUT2(), .CLKOUT2B(), .CLKOUT3(), .CLKOUT3B(),
      .CLKOUT4(), .CLKOUT5(), .CLKOUT6()
  );
  BUFG clk_net (.I(clk_250), .O(clk));
  BUFG hbm_clk_net (.I(clk_400), .O(hbm_clk));

  logic mac_clk, mac_tx_in_reset, mac_rx_in_reset, hbm_ready;
  wire starts = !locked || mac_tx_in_reset;
  cdc_reset #(.STAGES(4)) slow_reset (.clk(clk_100), .arst(!locked), .rst(slow_rst));
  cdc_reset #(.STAGES(4)) hbm_reset (.clk(hbm_clk), .arst(!locked), .rst(hbm_rst));
  cdc_reset #(.STAGES(4)) mac_reset (.clk(mac_clk), .arst(starts || !hbm_ready), .rst(mac_rst));
  cdc_reset #(.STAGES(4)) reset (.clk, .arst(starts || !hbm_ready), .rst);

  // ---- network ----
  axis_if #(.DATA_W(DATA_W)) rx ();
  axis_if #(.DATA_W(DATA_W)) tx ();
  axis_if #(.DATA_W(DATA_W)) mac_rx ();
  axis_if #(.DATA_W(DATA_W)) mac_tx ();
  logic aligned, aligned_here, mac_ready;

  // Until the receiver is aligned, the other side is told so, and nothing is sent (PG203, core bring up sequence).
  cdc_bit alignment (.clk(mac_clk), .in(aligned), .out(aligned_here));
  assign mac_tx.tready = mac_ready && aligned_here;

  cmac_100g cmac (
      .gt_rxp_in(qsfp0_rx_p), .gt_rxn_in(qsfp0_rx_n), .gt_txp_out(qsfp0_tx_p), .gt_txn_out(qsfp0_tx_n),
      .gt_ref_clk_p(qsfp0_refclk_p), .gt_ref_clk_n(qsfp0_refclk_n), .init_clk(clk_100), .sys_reset(slow_rst),
      .gt_loopback_in('0), .gtwiz_reset_tx_datapath(1'b0), .gtwiz_reset_rx_datapath(1'b0),
      .gt_txusrclk2(mac_clk), .usr_tx_reset(mac_tx_in_reset), .usr_rx_reset(mac_rx_in_reset),
      .rx_clk(mac_clk), .core_rx_reset(1'b0), .ctl_rx_enable(1'b1), .ctl_rx_force_resync(1'b0), .ctl_rx_test_pattern(1'b0),
      .rx_axis_tvalid(mac_rx.tvalid), .rx_axis_tlast(mac_rx.tlast), .rx_axis_tuser(mac_rx.tuser), .rx_axis_tdata(mac_rx.tdata),
      .rx_axis_tkeep(mac_rx.tkeep), .stat_rx_aligned(aligned),
      .core_tx_reset(1'b0), .ctl_tx_enable(aligned_here), .ctl_tx_send_idle(1'b0), .ctl_tx_send_rfi(!aligned_here), .ctl_tx_send_lfi(1'b0),
      .ctl_tx_test_pattern(1'b0), .tx_axis_tready(mac_ready), .tx_axis_tvalid(mac_tx.tvalid && aligned_here), .tx_axis_tlast(mac_tx.tlast),
      .tx_axis_tuser(mac_tx.tuser), .tx_axis_tdata(mac_tx.tdata), .tx_axis_tkeep(mac_tx.tkeep), .tx_ovfout(), .tx_unfout(), .tx_preamblein('0),
      .core_drp_reset(1'b0), .drp_clk(clk_100), .drp_en(1'b0), .drp_we(1'b0), .drp_addr('0), .drp_di('0), .drp_do(), .drp_rdy()
  );
  mac_crossing #(
      .DATA_W   (DATA_W),
      .MAX_FRAME(MAX_FRAME)
  ) crossing (
      .clk, .rst, .rx, .tx, .mac_clk, .mac_rst, .mac_rx_broken(mac_rx_in_reset), .mac_rx, .mac_tx, .rx_lost()
  );

  // ---- device ----
  localparam int unsigned DRAM_ID_W = dram_id_w(MEMORIES);
  axi_if #(.ADDR_W(ADDR_W), .DATA_W(DATA_W), .ID_W(DRAM_ID_W)) dram[1] ();

  // The configuration oscillator, 50 MHz and not exact, divided to 3.
  logic wild_clk, noise;
  STARTUPE3 startup (
      .CFGMCLK(wild_clk), .CFGCLK(), .EOS(), .PREQ(), .DI(), .DO('0), .DTS('1), .FCSBO(1'b1), .FCSBOTS(1'b1), .GSR(1'b0), .GTS(1'b0),
      .KEYCLEARB(1'b1), .PACK(1'b0), .USRCCLKO(1'b0), .USRCCLKTS(1'b1), .USRDONEO(1'b1), .USRDONETS(1'b1)
  );
  slow_noise #(.DIVIDER_W(4)) divider (.wild_clk, .noise);

  stream_if #(.T(sensors_pkg::sensor_reading_t)) sensor_reading ();
  sysmon_sensors #(.CLOCK_HZ(CLOCK_HZ)) sensors (.clk, .rst, .reading(sensor_reading));

  standalone_device #(
      .MAC         (MAC),
      .IP          (IP),
      .PREFIX_LEN  (PREFIX_LEN),
      .GATEWAY     (GATEWAY),
      .ADDRESS_MODE(ADDRESS_MODE)
  ) device (
      .clk, .rst, .noise, .rx, .tx, .sensor_reading, .dram
  );

  // ---- memory ----
  localparam logic [2:0] FULL_BEATS = 3'($clog2(DATA_W / 8));
  localparam logic [1:0] INCREMENTING = 2'b01;
  logic [7:0] bid, rid;
  assign dram[0].bid = DRAM_ID_W'(bid);
  assign dram[0].rid = DRAM_ID_W'(rid);

  hbm_memory_wrapper memory (
      .clk, .rst_n(!rst), .hbm_clk, .hbm_rst_n(!hbm_rst), .ref_clk(clk_100), .ready(hbm_ready), .cattrip(hbm_cattrip),
      .S_AXI_awaddr(34'(dram[0].awaddr)), .S_AXI_awid(8'(dram[0].awid)), .S_AXI_awlen(dram[0].awlen), .S_AXI_awsize(FULL_BEATS),
      .S_AXI_awburst(INCREMENTING), .S_AXI_awvalid(dram[0].awvalid), .S_AXI_awready(dram[0].awready),
      .S_AXI_wdata(dram[0].wdata), .S_AXI_wstrb(dram[0].wstrb), .S_AXI_wlast(dram[0].wlast), .S_AXI_wvalid(dram[0].wvalid),
      .S_AXI_wready(dram[0].wready), .S_AXI_bid(bid), .S_AXI_bresp(dram[0].bresp), .S_AXI_bvalid(dram[0].bvalid), .S_AXI_bready(dram[0].bready),
      .S_AXI_araddr(34'(dram[0].araddr)), .S_AXI_arid(8'(dram[0].arid)), .S_AXI_arlen(dram[0].arlen), .S_AXI_arsize(FULL_BEATS),
      .S_AXI_arburst(INCREMENTING), .S_AXI_arvalid(dram[0].arvalid), .S_AXI_arready(dram[0].arready),
      .S_AXI_rdata(dram[0].rdata), .S_AXI_rid(rid), .S_AXI_rresp(dram[0].rresp), .S_AXI_rlast(dram[0].rlast), .S_AXI_rvalid(dram[0].rvalid),
      .S_AXI_rready(dram[0].rready)
  );
endmodule
