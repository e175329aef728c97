// SPDX-License-Identifier: Apache-2.0

// stream_skid: order kept, never more than one inside, no latency, and `in` stops no longer than `out` did.
module stream_skid_formal #(
    parameter bit REACH = 1'b0
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

  stream_skid #(.T(logic)) dut (.clk, .rst, .in, .out);

  polite_source #(.ASSUME(1'b1)) source (.clk, .rst, .valid(in.valid), .ready(in.ready), .data(in.data));
  polite_source sink (.clk, .rst, .valid(out.valid), .ready(out.ready), .data(out.data));
  one_in_line #(.CAPACITY(1)) line (
      .clk, .rst, .push(in.valid && in.ready), .in_colour(in.data), .pop(out.valid && out.ready), .out_colour(out.data)
  );

  logic started_q = 1'b0;
  logic stopped_q;               // `out` did, in the cycle before
  always_ff @(posedge clk) begin
    started_q <= 1'b1;
    stopped_q <= out.valid && !out.ready;
    if (!started_q) assume (rst);
    else if (!rst) begin
      if (in.valid) assert (out.valid);
      if (!stopped_q) assert (in.ready);
      if (REACH) assert (!(out.valid && out.data && !in.ready));
    end
  end
endmodule
