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
  typedef struct packed {
    logic                tuser;
    logic                tlast;
    logic [DATA_W/8-1:0] tkeep;
    logic [DATA_W-1:0]   tdata;
  } beat_t;

  stream_if #(.T(beat_t)) in_beat ();
  stream_if #(.T(beat_t)) out_beat ();

  assign in_beat.valid = in.tvalid;
  assign in_beat.data  = {in.tuser, in.tlast, in.tkeep, in.tdata};
  assign in.tready     = in_beat.ready;

  stream_slice #(.T(beat_t), .SKID(SKID)) slice (.clk, .rst, .in(in_beat), .out(out_beat));

  assign {out.tuser, out.tlast, out.tkeep, out.tdata} = out_beat.data;
  assign out.tvalid = out_beat.valid;
  assign out_beat.ready = out.tready;
endmodule
