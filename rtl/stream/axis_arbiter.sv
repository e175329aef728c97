// SPDX-License-Identifier: Apache-2.0

// N packet streams into one, round robin by packet: see stream_arbiter. Latency 1 cycle, one beat a cycle, no bubble between
// packets.
module axis_arbiter #(
    parameter int unsigned DATA_W = 512,
    parameter int unsigned N = 2
) (
    input logic    clk,
    input logic    rst,
    axis_if.sink   in[N],
    axis_if.source out
);
  typedef logic [DATA_W+DATA_W/8+1:0] beat_t;

  stream_if #(.T(beat_t)) in_beat[N] ();
  stream_if #(.T(beat_t)) out_beat ();
  logic [N-1:0] last;

  for (genvar i = 0; i < N; i++) begin : g_in
    axis_to_stream from_axis (.in(in[i]), .out(in_beat[i]));
    assign last[i] = in[i].tlast;
  end

  stream_arbiter #(.T(beat_t), .N(N)) arbiter (.clk, .rst, .in(in_beat), .last, .out(out_beat));
  stream_to_axis to_axis (.in(out_beat), .out);
endmodule
