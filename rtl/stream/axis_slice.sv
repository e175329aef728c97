// SPDX-License-Identifier: Apache-2.0

// Register slice for packets: see stream_slice. Latency 1 cycle, one beat a cycle.
module axis_slice #(
    parameter int unsigned DATA_W = 512,
    parameter bit SKID = 1'b1
) (
    input logic    clk,
    input logic    rst,
    axis_if.sink   in,
    axis_if.source out
);
  typedef logic [DATA_W+DATA_W/8+1:0] beat_t;

  stream_if #(.T(beat_t)) in_beat ();
  stream_if #(.T(beat_t)) out_beat ();

  axis_to_stream from_axis (.in, .out(in_beat));
  stream_slice #(.T(beat_t), .SKID(SKID)) slice (.clk, .rst, .in(in_beat), .out(out_beat));
  stream_to_axis to_axis (.in(out_beat), .out);
endmodule
