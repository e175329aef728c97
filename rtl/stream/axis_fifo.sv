// SPDX-License-Identifier: Apache-2.0

// FIFO for packets, by beats: see stream_fifo for throughput and what it holds. Latency 2 cycles.
module axis_fifo #(
    parameter int unsigned DATA_W = 512,
    parameter int unsigned DEPTH = 32  // beats, a power of two
) (
    input  logic   clk,
    input  logic   rst,
    axis_if.sink   in,
    axis_if.source out,
    output logic   empty
);
  typedef logic [DATA_W+DATA_W/8+1:0] beat_t;

  stream_if #(.T(beat_t)) in_beat ();
  stream_if #(.T(beat_t)) out_beat ();

  axis_to_stream from_axis (.in, .out(in_beat));
  stream_fifo #(.T(beat_t), .DEPTH(DEPTH), .BYPASS(1'b0)) fifo (.clk, .rst, .in(in_beat), .out(out_beat), .empty);
  stream_to_axis to_axis (.in(out_beat), .out);
endmodule
