// SPDX-License-Identifier: Apache-2.0

// Cuts the way of `ready` alone: `in.ready` is a register. Latency 0, one value a cycle.
// When `out` stops it takes one value more, which waits here, then stops `in`.
module stream_skid #(
    parameter type T = logic
) (
    input logic      clk,
    input logic      rst,
    stream_if.sink   in,
    stream_if.source out
);
  T     kept_q;
  logic kept_valid_q;

  assign in.ready  = !kept_valid_q;
  assign out.valid = in.valid || kept_valid_q;
  assign out.data  = kept_valid_q ? kept_q : in.data;

  always_ff @(posedge clk) begin
    if (in.ready) kept_q <= in.data;
    kept_valid_q <= !rst && out.valid && !out.ready;
  end
endmodule
