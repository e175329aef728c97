// SPDX-License-Identifier: Apache-2.0

// Between a MAC that cannot stall and a FIFO that can be full: a frame that finds no room is lost, and nothing else is. If a part of it is in the FIFO, that
// part gets one more beat, with tlast and tuser, as soon as there is room; until then other frames are lost, too. The same is done to a frame in which the
// MAC's receiver is reset (`broken`): what comes behind it belongs to another one.
//
// No latency, one beat a cycle. `in` is always ready. `out` is for a FIFO, which looks at a beat and is ready in the same cycle: an offer that is not taken
// may be gone in the next.
module frame_valve #(
    parameter int unsigned DATA_W = 512
) (
    input  logic   clk,
    input  logic   rst,
    input  logic   broken,   // no beat comes, and the frame that has begun does not go on
    axis_if.sink   in,
    axis_if.source out,
    output logic   lost      // pulse: a frame is lost, in part or as a whole
);
  logic open_q;              // the last beat in the FIFO was no frame's last
  logic owed_q;              // its end is owed
  logic skip_q;              // the rest of a frame is left out
  wire  offered = in.tvalid && !broken && !skip_q && !owed_q;
  wire  taken   = offered && out.tready;
  wire  refused = in.tvalid && !broken && !skip_q && !taken;
  wire  ended   = owed_q && out.tready;

  assign in.tready  = 1'b1;
  assign out.tvalid = offered || owed_q;
  assign out.tdata  = in.tdata;
  assign out.tkeep  = owed_q ? (DATA_W / 8)'(1) : in.tkeep;
  assign out.tlast  = in.tlast || owed_q;
  assign out.tuser  = in.tuser || owed_q;

  always_ff @(posedge clk) begin
    lost <= !rst && (refused || (broken && open_q && !owed_q));
    if (taken) open_q <= !in.tlast;
    if (ended) {open_q, owed_q} <= '0;
    else if (open_q && (refused || broken)) owed_q <= 1'b1;
    if (broken) skip_q <= 1'b0;
    else if (in.tvalid) skip_q <= (skip_q || refused) && !in.tlast;
    if (rst) {open_q, owed_q, skip_q} <= '0;
  end
endmodule
