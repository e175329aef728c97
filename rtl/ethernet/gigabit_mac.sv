// SPDX-License-Identifier: Apache-2.0

// Gigabit Ethernet for a device: its two streams of frames, in the device's clock, and GMII in the clocks of the PHY.
//
//   tx ─ store of whole frames ─ cdc_fifo ─ axis_narrow ─ gmii_transmit ─ GMII
//   rx ───────────────────────── cdc_fifo ─ axis_widen ── gmii_receive ── GMII
//
// A frame is stored before it is sent: one that has begun cannot stall. The device's clock must carry more than a gigabit: DATA_W bits in each of
// its cycles, 16 MHz at 64 bits; then no stream waits but `tx`, for the line. Frames of MAX_FRAME bytes or fewer; their number that waits is bounded by
// the store, twice that.
//
// Latency without the store: see cdc_fifo and the units of GMII.
module gigabit_mac #(
    parameter int unsigned DATA_W = 64,
    parameter int unsigned MAX_FRAME = 2048   // bytes without FCS
) (
    input  logic       clk,                   // of the device
    input  logic       rst,
    axis_if.source     rx,                    // received
    axis_if.sink       tx,                    // to send

    input  logic       gmii_rx_clk,
    input  logic       gmii_rx_rst,
    input  logic [7:0] gmii_rxd,
    input  logic       gmii_rx_dv,
    input  logic       gmii_rx_er,

    input  logic       gmii_tx_clk,
    input  logic       gmii_tx_rst,
    output logic [7:0] gmii_txd,
    output logic       gmii_tx_en,
    output logic       gmii_tx_er
);
  localparam int unsigned DEPTH = 2 ** $clog2(2 * MAX_FRAME / (DATA_W / 8));
  typedef logic [DATA_W+DATA_W/8+1:0] beat_t;

  // ---- transmit ----
  axis_if #(.DATA_W(DATA_W)) whole ();
  axis_if #(.DATA_W(DATA_W)) across ();
  axis_if #(.DATA_W(8)) tx_bytes ();
  stream_if #(.T(beat_t)) whole_beat ();
  stream_if #(.T(beat_t)) across_beat ();
  wire ends = tx.tvalid && tx.tready && tx.tlast;

  axis_store #(.DATA_W(DATA_W), .DEPTH(DEPTH)) store (
      .clk, .rst, .in(tx), .commit(ends && !tx.tuser), .rollback(ends && tx.tuser), .out(whole), .room(), .empty()
  );
  axis_to_stream to_beat (.in(whole), .out(whole_beat));
  cdc_fifo #(.T(beat_t)) out_fifo (
      .in_clk(clk), .in_rst(rst), .in(whole_beat), .out_clk(gmii_tx_clk), .out_rst(gmii_tx_rst), .out(across_beat)
  );
  stream_to_axis from_beat (.in(across_beat), .out(across));
  axis_narrow #(.DATA_W(DATA_W)) narrow (.clk(gmii_tx_clk), .rst(gmii_tx_rst), .in(across), .out(tx_bytes));
  gmii_transmit transmit (.clk(gmii_tx_clk), .rst(gmii_tx_rst), .in(tx_bytes), .gmii_txd, .gmii_tx_en, .gmii_tx_er);

  // ---- receive ----
  axis_if #(.DATA_W(8)) rx_bytes ();
  axis_if #(.DATA_W(DATA_W)) wide ();
  stream_if #(.T(beat_t)) wide_beat ();
  stream_if #(.T(beat_t)) rx_beat ();

  gmii_receive receive (.clk(gmii_rx_clk), .rst(gmii_rx_rst), .gmii_rxd, .gmii_rx_dv, .gmii_rx_er, .out(rx_bytes));
  axis_widen #(.DATA_W(DATA_W)) widen (.clk(gmii_rx_clk), .rst(gmii_rx_rst), .in(rx_bytes), .out(wide));
  axis_to_stream to_wide_beat (.in(wide), .out(wide_beat));
  cdc_fifo #(.T(beat_t)) in_fifo (
      .in_clk(gmii_rx_clk), .in_rst(gmii_rx_rst), .in(wide_beat), .out_clk(clk), .out_rst(rst), .out(rx_beat)
  );
  stream_to_axis from_rx_beat (.in(rx_beat), .out(rx));
endmodule
