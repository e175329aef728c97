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
  typedef struct packed {
    logic                tuser;
    logic                tlast;
    logic [DATA_W/8-1:0] tkeep;
    logic [DATA_W-1:0]   tdata;
  } beat_t;

  stream_if #(.T(beat_t)) in_beat[N] ();
  stream_if #(.T(beat_t)) out_beat ();
  logic [N-1:0] last;

  for (genvar i = 0; i < N; i++) begin : g_in
    assign in_beat[i].valid = in[i].tvalid;
    assign in_beat[i].data  = {in[i].tuser, in[i].tlast, in[i].tkeep, in[i].tdata};
    assign in[i].tready     = in_beat[i].ready;
    assign last[i]          = in[i].tlast;
  end

  stream_arbiter #(.T(beat_t), .N(N)) arbiter (.clk, .rst, .in(in_beat), .last, .out(out_beat));

  assign {out.tuser, out.tlast, out.tkeep, out.tdata} = out_beat.data;
  assign out.tvalid = out_beat.valid;
  assign out_beat.ready = out.tready;
endmodule
