// SPDX-License-Identifier: Apache-2.0

// Scoreboard for proofs: nothing is lost, doubled or reordered between a stream's way in and its way out.
// One value among all that go in, at a time of the solver's choice, is coloured: its data is 1, that of all others 0. It must come
// out with exactly as many values before it as were inside when it went in. The colour stands for any data, since the cells
// never look at it.
module one_in_line #(
    parameter int unsigned CAPACITY = 4  // values that can be inside at once
) (
    input logic clk,
    input logic rst,
    input logic push,
    input logic in_colour,
    input logic pop,
    input logic out_colour
);
  logic [$clog2(CAPACITY+1):0] inside_q;  // values inside, without what passes combinationally
  logic [$clog2(CAPACITY+1):0] ahead_q;   // values before the coloured one
  logic coloured_q, gone_q;

  wire here = pop && coloured_q && !gone_q && ahead_q == '0;
  wire passes = pop && push && in_colour && inside_q == '0;

  always_ff @(posedge clk) begin
    if (rst) begin
      inside_q   <= '0;
      coloured_q <= 1'b0;
      gone_q     <= 1'b0;
    end else begin
      assume (!(push && in_colour && coloured_q));
      assert (inside_q <= $bits(inside_q)'(CAPACITY));
      if (pop) assert (inside_q != '0 || push);
      if (pop) assert (out_colour == (here || passes));
      inside_q <= inside_q + $bits(inside_q)'(push) - $bits(inside_q)'(pop);
      if (push && in_colour) begin
        coloured_q <= 1'b1;
        ahead_q <= inside_q - $bits(inside_q)'(pop);
        gone_q <= passes;
      end else begin
        if (pop && coloured_q && ahead_q != '0) ahead_q <= ahead_q - 1'b1;
        if (here) gone_q <= 1'b1;
      end
    end
  end
endmodule
