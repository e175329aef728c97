// SPDX-License-Identifier: Apache-2.0

// A Nacelle device on a ButterStick (Greg Davill; LFE5UM5G-85F-8BG381): a chip with Gigabit Ethernet by RGMII, and nothing beside it. Device memory
// is block RAM of the chip; the device starts by itself (device_start), with a seed from the jitter of the chip's oscillator.
//
//   30 MHz ─ PLL ┬ 125 MHz ─ MAC, RGMII to the PHY        the clock from the PHY ─ RGMII, MAC
//                └ 62.5 MHz ─ device, memory
module butterstick
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
    input  logic       clk30,

    output logic       eth_rst_n,
    output logic       eth_mdc,
    output logic       eth_tx_clk,
    output logic [3:0] eth_tx_data,
    output logic       eth_tx_ctl,
    input  logic       eth_rx_clk,
    input  logic [3:0] eth_rx_data,
    input  logic       eth_rx_ctl
);
  if (DATA_W != 64 || CLOCK_HZ != 62_500_000 || MEMORIES != 1 || ECC) begin : g_bad
    $fatal(1, "butterstick: the device must have 64 bits, a clock of 62.5 MHz, and one memory without ECC");
  end

  // ---- clocks and resets ----
  logic tx_clk, clk, clk_30, locked, tx_rst, rx_rst, rst, noise;

  // 750 MHz inside.
  EHXPLLL #(
      .CLKI_DIV(1), .CLKFB_DIV(1), .FEEDBK_PATH("CLKOS2"),
      .CLKOP_DIV(6), .CLKOP_CPHASE(5), .CLKOP_ENABLE("ENABLED"),
      .CLKOS_DIV(12), .CLKOS_CPHASE(11), .CLKOS_ENABLE("ENABLED"),
      .CLKOS2_DIV(25), .CLKOS2_CPHASE(24), .CLKOS2_ENABLE("ENABLED")
  ) pll (
      .CLKI(clk30), .CLKFB(clk_30), .CLKOP(tx_clk), .CLKOS(clk), .CLKOS2(clk_30), .CLKOS3(), .LOCK(locked), .INTLOCK(),
      .PHASESEL1(1'b0), .PHASESEL0(1'b0), .PHASEDIR(1'b1), .PHASESTEP(1'b1), .PHASELOADREG(1'b1), .STDBY(1'b0), .PLLWAKESYNC(1'b0), .RST(1'b0),
      .ENCLKOP(1'b0), .ENCLKOS(1'b0), .ENCLKOS2(1'b0), .ENCLKOS3(1'b0)
  );
  cdc_reset #(.STAGES(4)) tx_reset (.clk(tx_clk), .arst(!locked), .rst(tx_rst));
  cdc_reset #(.STAGES(4)) rx_reset (.clk(eth_rx_clk), .arst(!locked), .rst(rx_rst));
  cdc_reset #(.STAGES(4)) reset (.clk, .arst(!locked), .rst);

  // The PHY stays in reset for 16.8 ms; KSZ9031 asks for 10. Its set-up by pins is right; MDIO is not used.
  logic [20:0] phy_q;
  always_ff @(posedge clk) begin
    if (rst) phy_q <= '0;
    else if (!phy_q[20]) phy_q <= phy_q + 1'b1;
  end
  assign eth_rst_n = phy_q[20];
  assign eth_mdc   = 1'b0;

  // ---- network ----
  logic [7:0] gmii_txd, gmii_rxd;
  logic gmii_tx_en, gmii_tx_er, gmii_rx_dv, gmii_rx_er;
  axis_if #(.DATA_W(DATA_W)) rx ();
  axis_if #(.DATA_W(DATA_W)) tx ();

  ecp5_rgmii rgmii (
      .tx_clk, .tx_rst, .gmii_txd, .gmii_tx_en, .gmii_tx_er,
      .rx_rst, .gmii_rxd, .gmii_rx_dv, .gmii_rx_er,
      .rgmii_tx_clk(eth_tx_clk), .rgmii_tx_data(eth_tx_data), .rgmii_tx_ctl(eth_tx_ctl),
      .rgmii_rx_clk(eth_rx_clk), .rgmii_rx_data(eth_rx_data), .rgmii_rx_ctl(eth_rx_ctl)
  );
  gigabit_mac #(
      .DATA_W   (DATA_W),
      .MAX_FRAME(MAX_FRAME)
  ) mac (
      .clk, .rst, .rx, .tx,
      .gmii_rx_clk(eth_rx_clk), .gmii_rx_rst(rx_rst), .gmii_rxd, .gmii_rx_dv, .gmii_rx_er,
      .gmii_tx_clk(tx_clk), .gmii_tx_rst(tx_rst), .gmii_txd, .gmii_tx_en, .gmii_tx_er
  );

  // ---- device ----
  localparam int unsigned DRAM_ID_W = dram_id_w(MEMORIES);
  axi_if #(.ADDR_W(ADDR_W), .DATA_W(DATA_W), .ID_W(DRAM_ID_W)) dram[1] ();

  OSCG #(.DIV(128)) oscillator (.OSC(noise));
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
