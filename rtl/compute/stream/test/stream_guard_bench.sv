// SPDX-License-Identifier: Apache-2.0

// stream_guard as the plane has it: a fault cuts the kernel off until `restart`. What goes round the kernel with a frame are its first two bytes,
// which must still be with it on `out`.
module stream_guard_bench
  import stream_pkg::*;
#(
    parameter int unsigned DATA_W = 64,
    parameter int unsigned MAX_FRAME = 300
) (
    input  logic          clk,
    input  logic          rst,
    input  logic          through,
    input  logic          restart,
    input  logic [15:0]   limit,
    axis_if.sink          in,
    axis_if.source        out,
    axis_if.source        to,
    axis_if.sink          from,
    output logic          cut,
    output cut_e          cause,
    output guard_events_t events,
    output logic          out_through,
    output logic          idle
);
  typedef logic [15:0] info_t;
  info_t in_q, out_q, out_info;
  logic  in_frame_q, out_frame_q;
  cut_e  fault;
  wire info_t in_info = in_frame_q ? in_q : in.tdata[15:0];
  wire info_t out_first = out_frame_q ? out_q : out.tdata[15:0];

  stream_guard #(.DATA_W(DATA_W), .MAX_FRAME(MAX_FRAME), .INFO(info_t)) guard (
      .clk, .rst, .through, .cut, .limit, .in, .in_info, .out, .out_info, .out_through, .to, .from, .fault, .events, .idle
  );

  always_ff @(posedge clk) begin
    in_q  <= in_info;
    out_q <= out_first;
    if (in.tvalid && in.tready) in_frame_q <= !in.tlast;
    if (out.tvalid && out.tready) out_frame_q <= !out.tlast;
    if (fault != CUT_NONE) cause <= fault;
    cut <= !rst && !restart && (cut || fault != CUT_NONE);
    if (rst) begin
      in_frame_q  <= 1'b0;
      out_frame_q <= 1'b0;
      cause       <= CUT_NONE;
    end
    if (!rst && out.tvalid && out.tready && !out.tuser) assert (out_info == out_first) else $error("not the info of this frame");
  end
endmodule
