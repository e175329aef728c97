// SPDX-License-Identifier: Apache-2.0

// Comparisons of times, for all times: as those of a clock that does not wrap, as long as the two are less than half of the
// range apart; and what follows beyond that.
module time_formal
  import time_pkg::*;
#(
    parameter bit REACH = 1'b0
) (
    input logic              clk,
    input logic [TIME_W+7:0] wide_a,    // of clocks that do not wrap
    input logic [TIME_W+7:0] wide_b,
    input time_t             a,
    input time_t             span,
    input time_t             length
);
  localparam time_t HALF = time_t'(1) << (TIME_W - 1);
  typedef logic [TIME_W+8:0] wide_t;

  wire wide_t ahead = wide_t'(wide_a) + wide_t'(HALF);
  wire wide_t behind = wide_t'(wide_b) + wide_t'(HALF);
  wire near = ahead > wide_t'(wide_b) && behind > wide_t'(wide_a);   // less than half of the range apart

  time_t b, c;
  assign b = a + span;
  assign c = b + length;

  always_ff @(posedge clk) begin
    if (near) begin
      assert (time_before(time_t'(wide_a), time_t'(wide_b)) == (wide_a < wide_b));
      assert (time_reached(time_t'(wide_a), time_t'(wide_b)) == (wide_a >= wide_b));
    end
    // An order within half of the range.
    assert (!time_before(a, a) && time_reached(a, a));
    if (span != HALF) assert (!(time_before(a, b) && time_before(b, a)));
    if (span != HALF && span != '0) assert (time_before(a, b) != time_before(b, a));
    if (time_before(a, b) && time_before(b, c) && {1'b0, span} + {1'b0, length} < {1'b0, HALF}) assert (time_before(a, c));
    // A deadline that was set stays ahead until it is there, and is passed for as long again.
    if (span != '0 && span < HALF) assert (!time_reached(a, b));
    if (span < HALF) assert (time_reached(b, a));
    if (REACH) assert (!(near && wide_a < wide_b && time_t'(wide_a) > time_t'(wide_b)));
  end
endmodule
