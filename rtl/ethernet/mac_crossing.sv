// SPDX-License-Identifier: Apache-2.0

// Between a device and a MAC outside of it whose streams are as wide as the device's, in a clock of its own (AMD CMAC, Intel E-tile).
//
//   tx ─ cdc_fifo ─ store of whole frames ─ mac_tx        rx ─ cdc_fifo ─ frame_valve ─ mac_rx
//
// A MAC may take beats faster than the device has them, and sends a frame in one piece: so a frame waits on the MAC's side until it is whole, and a
// bad one (tuser) does not leave. What is received must go on at once; a frame for which there is no room is lost, and told in `rx_lost`. The device's clock
// times DATA_W must be more than the rate of the line: then RX_DEPTH beats are room enough.
//
// Latency: that of cdc_fifo; for what is sent also the length of the frame, and 2 cycles.
module mac_crossing #(
    parameter int unsigned DATA_W = 512,
    parameter int unsigned MAX_FRAME = 4224,  // bytes without FCS
    parameter int unsigned RX_DEPTH = 64      // a power of two
) (
    input  logic   clk,                       // of the device
    input  logic   rst,
    axis_if.source rx,
    axis_if.sink   tx,

    input  logic   mac_clk,
    input  logic   mac_rst,                   // together with `rst`
    input  logic   mac_rx_broken,             // the MAC's receiver is in reset
    axis_if.sink   mac_rx,                    // always ready
    axis_if.source mac_tx,                    // a beat in each cycle that the MAC is ready in, from a frame's first to its last
    output logic   rx_lost                    // pulse of mac_clk
);
  localparam int unsigned DEPTH = 2 ** $clog2(2 * MAX_FRAME / (DATA_W / 8));
  typedef logic [DATA_W+DATA_W/8+1:0] beat_t;

  // ---- transmit ----
  axis_if #(.DATA_W(DATA_W)) across ();
  stream_if #(.T(beat_t)) tx_beat ();
  stream_if #(.T(beat_t)) across_beat ();
  wire ends = across.tvalid && across.tready && across.tlast;

  axis_to_stream to_tx_beat (.in(tx), .out(tx_beat));
  cdc_fifo #(.T(beat_t)) tx_fifo (.in_clk(clk), .in_rst(rst), .in(tx_beat), .out_clk(mac_clk), .out_rst(mac_rst), .out(across_beat));
  stream_to_axis from_tx_beat (.in(across_beat), .out(across));
  axis_store #(.DATA_W(DATA_W), .DEPTH(DEPTH)) store (
      .clk(mac_clk), .rst(mac_rst), .in(across), .commit(ends && !across.tuser), .rollback(ends && across.tuser), .out(mac_tx), .room(), .empty()
  );

  // ---- receive ----
  axis_if #(.DATA_W(DATA_W)) let_in ();
  stream_if #(.T(beat_t)) let_in_beat ();
  stream_if #(.T(beat_t)) rx_beat ();

  frame_valve #(.DATA_W(DATA_W)) valve (.clk(mac_clk), .rst(mac_rst), .broken(mac_rx_broken), .in(mac_rx), .out(let_in), .lost(rx_lost));
  axis_to_stream to_rx_beat (.in(let_in), .out(let_in_beat));
  cdc_fifo #(.T(beat_t), .DEPTH(RX_DEPTH)) rx_fifo (
      .in_clk(mac_clk), .in_rst(mac_rst), .in(let_in_beat), .out_clk(clk), .out_rst(rst), .out(rx_beat)
  );
  stream_to_axis from_rx_beat (.in(rx_beat), .out(rx));
endmodule
