// SPDX-License-Identifier: Apache-2.0

// Receive side of the network card: the frames of the line as they came, with what packet_rx has found out about each of them. All frames are
// passed on: virtio_net_rx stores them, and drops those that are not wanted by the `out_verdict` with their last beat.
//
// A delay line of fixed length, behind which the verdict of a frame is there before its last beat is. Latency DELAY + 1 cycles, one beat a
// cycle. Nothing stops it, and so the card cannot hold up what passes beside it.
module card_receive
  import card_pkg::*;
#(
    parameter int unsigned DATA_W = 512,
    parameter int unsigned DELAY = 16        // cycles, a power of two; more than from a last beat to its verdict, by 3
) (
    input  logic          clk,
    input  logic          rst,
    axis_if.monitor       line,              // beats from the MAC
    input  logic          verdict_valid,     // one for each frame that ends, in order
    input  card_verdict_t verdict,
    axis_if.source        out,               // tready is not looked at
    output card_verdict_t out_verdict,       // with the last beat
    output logic          idle
);
  localparam int unsigned PTR_W = $clog2(DELAY);

  if (2 ** PTR_W != DELAY) begin : g_bad
    $fatal(1, "card_receive: DELAY must be a power of two");
  end

  // The data are kept apart: a beat stays aligned to words, which is what a simulator moves.
  typedef struct packed {
    logic                last;
    logic                bad;
    logic [DATA_W/8-1:0] keep;
    logic [DATA_W-1:0]   data;
  } beat_t;

  (* ram_style = "distributed" *) logic [$bits(beat_t)-1:0] beats[DELAY];
  beat_t            out_q;
  logic [PTR_W-1:0] at_q;
  logic [DELAY:0]   valid_q;

  always_ff @(posedge clk) if (line.tvalid) beats[at_q] <= {line.tlast, line.tuser, line.tkeep, line.tdata};
  always_ff @(posedge clk) if (valid_q[DELAY-1]) out_q <= beat_t'(beats[at_q]);

  always_ff @(posedge clk) begin
    at_q    <= rst ? '0 : at_q + 1'b1;
    valid_q <= rst ? '0 : {valid_q[DELAY-1:0], line.tvalid};
  end

  // ---- verdicts wait for their frames ----
  stream_if #(.T(card_verdict_t)) known ();
  stream_if #(.T(card_verdict_t)) current ();
  logic none_known;
  assign known.valid = verdict_valid;
  assign known.data  = verdict;
  stream_fifo #(.T(card_verdict_t), .DEPTH(DELAY)) verdicts (.clk, .rst, .in(known), .out(current), .empty(none_known));
  wire ends = valid_q[DELAY] && out_q.last;
  assign current.ready = ends;

  assign out.tvalid  = valid_q[DELAY];
  assign out.tdata   = out_q.data;
  assign out.tkeep   = out_q.keep;
  assign out.tlast   = out_q.last;
  assign out.tuser   = out_q.bad;
  assign out_verdict = current.data;
  assign idle        = valid_q == '0 && none_known;

  always_ff @(posedge clk)
    if (!rst) begin
      assert (!verdict_valid || known.ready);
      assert (!ends || current.valid);
    end

  logic unused_ok;
  assign unused_ok = &{1'b0, line.tready, out.tready};
endmodule
