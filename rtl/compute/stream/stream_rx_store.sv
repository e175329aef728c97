// SPDX-License-Identifier: Apache-2.0

// Received frames in front of a streaming socket: keeps those that the network card gets until their verdict has come with the last beat, and
// gives them whole, each with its verdict from the first beat on. Never stops `in`: a frame for which there is no room, or that is longer than
// MAX_FRAME, is lost, with a pulse of `overflow`.
//
// One beat a cycle. Latency 2 cycles from the last beat of a frame to its first.
module stream_rx_store
  import card_pkg::*;
#(
    parameter int unsigned DATA_W = 512,
    parameter int unsigned MAX_FRAME = 9018     // bytes, without FCS
) (
    input  logic          clk,
    input  logic          rst,
    axis_if.sink          in,                   // tready is always high
    input  card_verdict_t in_verdict,           // with the last beat
    axis_if.source        out,
    output card_verdict_t out_verdict,          // with each beat
    output logic          overflow,
    output logic          idle
);
  localparam int unsigned BYTES = DATA_W / 8;
  localparam int unsigned MAX_BEATS = (MAX_FRAME + BYTES - 1) / BYTES;
  localparam int unsigned FRAME_BEATS = 2 ** $clog2(2 * MAX_BEATS);
  localparam int unsigned STORE_BEATS = FRAME_BEATS < 512 ? 512 : FRAME_BEATS;
  localparam int unsigned FRAMES = 128;
  typedef logic [$clog2(MAX_BEATS+1)-1:0] count_t;

  axis_if #(.DATA_W(DATA_W)) stored ();
  axis_if #(.DATA_W(DATA_W)) kept ();
  stream_if #(.T(card_verdict_t)) verdict_in ();
  stream_if #(.T(card_verdict_t)) verdict ();
  logic   lost_q, none_stored, no_verdict;
  count_t beats_q;                              // of the frame, before this one
  wire lost = lost_q || !stored.tready || 32'(beats_q) == MAX_BEATS;
  wire ends = in.tvalid && in.tlast;
  wire wanted = in_verdict.wanted && !in.tuser;
  wire keeps = ends && wanted && !lost && verdict_in.ready;

  assign in.tready     = 1'b1;
  assign stored.tvalid = in.tvalid && !lost_q && 32'(beats_q) != MAX_BEATS;
  assign stored.tdata  = in.tdata;
  assign stored.tkeep  = in.tkeep;
  assign stored.tlast  = in.tlast;
  assign stored.tuser  = 1'b0;
  axis_store #(.DATA_W(DATA_W), .DEPTH(STORE_BEATS)) store (
      .clk, .rst, .in(stored), .commit(keeps), .rollback(ends && !keeps), .out(kept), .room(), .empty(none_stored)
  );

  assign verdict_in.valid = keeps;
  assign verdict_in.data  = in_verdict;
  stream_fifo #(.T(card_verdict_t), .DEPTH(FRAMES), .BLOCK_RAM(1'b0)) verdicts (
      .clk, .rst, .in(verdict_in), .out(verdict), .empty(no_verdict)
  );

  // A verdict is there before its frame: 1 cycle against 2.
  assign out.tvalid    = kept.tvalid;
  assign out.tdata     = kept.tdata;
  assign out.tkeep     = kept.tkeep;
  assign out.tlast     = kept.tlast;
  assign out.tuser     = 1'b0;
  assign kept.tready   = out.tready;
  assign out_verdict   = verdict.data;
  assign verdict.ready = kept.tvalid && kept.tready && kept.tlast;
  assign idle          = none_stored && no_verdict;

  always_ff @(posedge clk) begin
    overflow <= ends && wanted && !keeps && !rst;
    if (in.tvalid) begin
      lost_q  <= !in.tlast && lost;
      beats_q <= in.tlast ? '0 : 32'(beats_q) == MAX_BEATS ? beats_q : beats_q + 1'b1;
    end
    if (rst) begin
      lost_q  <= 1'b0;
      beats_q <= '0;
    end
  end

  always_ff @(posedge clk) if (!rst) assert (!kept.tvalid || verdict.valid);
endmodule
