// SPDX-License-Identifier: Apache-2.0

// Changes the width of a stream of packets by a power of two. Its narrower side moves one beat
// a cycle. Latency: 1 cycle to wider beats, none to narrower ones. Stops `in` when `out` stops.
module axis_resize #(
    parameter int unsigned IN_W  = 256,
    parameter int unsigned OUT_W = 512
) (
    input logic    clk,
    input logic    rst,
    axis_if.sink   in,
    axis_if.source out
);
  localparam int unsigned RATIO = OUT_W > IN_W ? OUT_W / IN_W : IN_W / OUT_W;
  localparam int unsigned PART_W = RATIO > 1 ? $clog2(RATIO) : 1;

  logic [PART_W-1:0] part_q;
  logic              last_part;

  if (IN_W == OUT_W) begin : g_same
    assign out.tvalid = in.tvalid;
    assign out.tdata  = in.tdata;
    assign out.tkeep  = in.tkeep;
    assign out.tlast  = in.tlast;
    assign out.tuser  = in.tuser;
    assign in.tready  = out.tready;
    assign last_part  = 1'b1;
  end else if (OUT_W > IN_W) begin : g_wider
    assign in.tready = !out.tvalid || out.tready;
    assign last_part = in.tlast || part_q == PART_W'(RATIO - 1);
    for (genvar i = 0; i < RATIO; i++) begin : g_part
      always_ff @(posedge clk) begin
        if (in.tvalid && in.tready && part_q == PART_W'(i)) out.tdata[i*IN_W+:IN_W] <= in.tdata;
        if (in.tvalid && in.tready && (part_q == PART_W'(i) || part_q == '0)) begin
          out.tkeep[i*IN_W/8+:IN_W/8] <= part_q == PART_W'(i) ? in.tkeep : '0;
        end
      end
    end
    always_ff @(posedge clk) begin
      if (in.tvalid && in.tready) begin
        out.tlast <= in.tlast;
        out.tuser <= in.tuser;
      end
      if (rst) out.tvalid <= 1'b0;
      else if (in.tready) out.tvalid <= in.tvalid && last_part;
    end
  end else begin : g_narrower
    logic [RATIO-1:0][OUT_W-1:0]   data;
    logic [RATIO:0][OUT_W/8-1:0]   keep;
    assign data       = in.tdata;
    assign keep       = {{(OUT_W / 8) {1'b0}}, in.tkeep};
    assign last_part  = !keep[(PART_W + 1)'(part_q)+1][0];
    assign out.tvalid = in.tvalid;
    assign out.tdata  = data[part_q];
    assign out.tkeep  = keep[(PART_W + 1)'(part_q)];
    assign out.tlast  = in.tlast && last_part;
    assign out.tuser  = in.tuser;
    assign in.tready  = out.tready && last_part;
  end

  logic moved;
  assign moved = OUT_W > IN_W ? in.tvalid && in.tready : out.tvalid && out.tready;
  always_ff @(posedge clk) begin
    if (rst) part_q <= '0;
    else if (moved) part_q <= last_part ? '0 : part_q + 1'b1;
  end
endmodule
