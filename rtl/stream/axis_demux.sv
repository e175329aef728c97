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
  typedef struct packed {
    logic                tuser;
    logic                tlast;
    logic [DATA_W/8-1:0] tkeep;
    logic [DATA_W-1:0]   tdata;
  } beat_t;

  stream_if #(.T(beat_t)) in_beat ();
  stream_if #(.T(beat_t)) out_beat[N] ();

  assign in_beat.valid = in.tvalid;
  assign in_beat.data  = {in.tuser, in.tlast, in.tkeep, in.tdata};
  assign in.tready     = in_beat.ready;

  stream_demux #(.T(beat_t), .N(N)) demux (.in(in_beat), .select, .out(out_beat));

  for (genvar i = 0; i < N; i++) begin : g_out
    assign {out[i].tuser, out[i].tlast, out[i].tkeep, out[i].tdata} = out_beat[i].data;
    assign out[i].tvalid = out_beat[i].valid;
    assign out_beat[i].ready = out[i].tready;
  end
endmodule
