// SPDX-License-Identifier: Apache-2.0

// stream_slice: order kept, never more than two inside (one without SKID), full throughput.
module stream_slice_formal #(
    parameter bit REACH = 1'b0,
    parameter bit SKID = 1'b1
) (
    input logic clk,
    input logic rst,
    input logic in_valid,
    input logic in_data,
    input logic out_ready
);
  stream_if #(.T(logic)) in ();
  stream_if #(.T(logic)) out ();
  assign in.valid  = in_valid;
  assign in.data   = in_data;
  assign out.ready = out_ready;

  stream_slice #(.T(logic), .SKID(SKID)) dut (.clk, .rst, .in, .out);

  polite_source #(.ASSUME(1'b1)) source (.clk, .rst, .valid(in.valid), .ready(in.ready), .data(in.data));
  polite_source sink (.clk, .rst, .valid(out.valid), .ready(out.ready), .data(out.data));
  one_in_line #(.CAPACITY(SKID ? 2 : 1)) line (
      .clk, .rst, .push(in.valid && in.ready), .in_colour(in.data), .pop(out.valid && out.ready), .out_colour(out.data)
  );

  // A source that always offers and a sink that always takes: a value passes each side in every cycle.
  logic started_q = 1'b0;
  logic [1:0] flowing_q;
  always_ff @(posedge clk) begin
    started_q <= 1'b1;
    flowing_q <= {flowing_q[0], in.valid && out.ready && !rst};
    if (!started_q) assume (rst);
    else if (!rst) begin
      if (flowing_q == '1 && in.valid && out.ready) assert (in.ready && out.valid);
      if (REACH) assert (!(out.valid && out.data && !in.ready));
    end
  end
endmodule
