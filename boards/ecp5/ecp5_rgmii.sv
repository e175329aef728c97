// SPDX-License-Identifier: Apache-2.0

// RGMII 2.0 at a gigabit by the pins of an ECP5, and GMII inside. Each edge of a clock carries 4 bits: the low ones and EN or DV at the rising
// edge, the high ones and EN or DV exclusive-or ER at the falling one. One register between a pin and GMII in each direction, besides those in the pins.
//
// A receiver samples in the middle of the data. For what is sent, the clock leaves later than the data by TX_DELAY steps of 25 ps in its pin: 2 ns
// are half of 4. For what is received, the PHY has its clock later than the data (KSZ9031: by 1.2 ns), and RX_DELAY steps for the
// data make up for the way of the clock through the chip.
module ecp5_rgmii #(
    parameter int unsigned TX_DELAY = 80,
    parameter int unsigned RX_DELAY = 80
) (
    input  logic       tx_clk,        // 125 MHz
    input  logic       tx_rst,
    input  logic [7:0] gmii_txd,
    input  logic       gmii_tx_en,
    input  logic       gmii_tx_er,

    input  logic       rx_rst,        // of rgmii_rx_clk
    output logic [7:0] gmii_rxd,
    output logic       gmii_rx_dv,
    output logic       gmii_rx_er,

    output logic       rgmii_tx_clk,
    output logic [3:0] rgmii_tx_data,
    output logic       rgmii_tx_ctl,
    input  logic       rgmii_rx_clk,
    input  logic [3:0] rgmii_rx_data,
    input  logic       rgmii_rx_ctl
);
  // ---- transmit ----
  logic [7:0] txd_q;
  logic [1:0] tx_ctl_q;               // rising, falling
  always_ff @(posedge tx_clk) begin
    txd_q    <= gmii_txd;
    tx_ctl_q <= {gmii_tx_en ^ gmii_tx_er, gmii_tx_en};
  end

  logic clk_out;
  ODDRX1F clk_pin (.SCLK(tx_clk), .RST(tx_rst), .D0(1'b1), .D1(1'b0), .Q(clk_out));
  DELAYG #(.DEL_MODE("SCLK_ALIGNED"), .DEL_VALUE(TX_DELAY)) clk_delay (.A(clk_out), .Z(rgmii_tx_clk));
  ODDRX1F ctl_pin (.SCLK(tx_clk), .RST(tx_rst), .D0(tx_ctl_q[0]), .D1(tx_ctl_q[1]), .Q(rgmii_tx_ctl));
  for (genvar i = 0; i < 4; i++) begin : g_tx
    ODDRX1F pin (.SCLK(tx_clk), .RST(tx_rst), .D0(txd_q[i]), .D1(txd_q[4+i]), .Q(rgmii_tx_data[i]));
  end

  // ---- receive ----
  logic [7:0] rxd;
  logic [1:0] rx_ctl;
  logic ctl_late;
  DELAYG #(.DEL_MODE("SCLK_ALIGNED"), .DEL_VALUE(RX_DELAY)) ctl_delay (.A(rgmii_rx_ctl), .Z(ctl_late));
  IDDRX1F rx_ctl_pin (.D(ctl_late), .SCLK(rgmii_rx_clk), .RST(rx_rst), .Q0(rx_ctl[0]), .Q1(rx_ctl[1]));
  for (genvar i = 0; i < 4; i++) begin : g_rx
    logic late;
    DELAYG #(.DEL_MODE("SCLK_ALIGNED"), .DEL_VALUE(RX_DELAY)) delay (.A(rgmii_rx_data[i]), .Z(late));
    IDDRX1F pin (.D(late), .SCLK(rgmii_rx_clk), .RST(rx_rst), .Q0(rxd[i]), .Q1(rxd[4+i]));
  end

  always_ff @(posedge rgmii_rx_clk) begin
    gmii_rxd   <= rxd;
    gmii_rx_dv <= rx_ctl[0];
    gmii_rx_er <= ^rx_ctl;
  end
endmodule
