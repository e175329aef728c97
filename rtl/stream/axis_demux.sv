// SPDX-License-Identifier: Apache-2.0

// One packet stream to one of N outputs, by the `select` that stands from a packet's first beat to its last: see stream_demux.
// Combinational, one beat a cycle.
module axis_demux #(
    parameter int unsigned DATA_W = 512,
    parameter int unsigned N = 2
) (
    axis_if.sink                in,
    input logic [$clog2(N)-1:0] select,
    axis_if.source              out[N]
);
  typedef logic [DATA_W+DATA_W/8+1:0] beat_t;

  stream_if #(.T(beat_t)) in_beat ();
  stream_if #(.T(beat_t)) out_beat[N] ();

  axis_to_stream from_axis (.in, .out(in_beat));
  stream_demux #(.T(beat_t), .N(N)) demux (.in(in_beat), .select, .out(out_beat));
  for (genvar i = 0; i < N; i++) begin : g_out
    stream_to_axis to_axis (.in(out_beat[i]), .out(out[i]));
  end
endmodule
