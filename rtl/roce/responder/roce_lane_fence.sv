// SPDX-License-Identifier: Apache-2.0

// For the outcomes that wait in a lane: has all that was in an earlier lane when they came left it? `reached` speaks of the oldest of them.
// One outcome a cycle; true 2 cycles after the last of what was ahead has left, at the latest. Up to PENDING in each lane.
module roce_lane_fence #(
    parameter int unsigned PENDING = 64     // power of two
) (
    input  logic clk,
    input  logic rst,
    input  logic push,                      // an outcome comes into the lane,
    input  logic pop,                       // and leaves it
    input  logic enters,                    // one comes into the earlier lane,
    input  logic passes,                    // and leaves it
    output logic reached
);
  typedef logic [$clog2(PENDING)+1:0] number_t;   // modulo: of PENDING that are ahead at most

  number_t entered_q, passed_q;
  logic [$clog2(PENDING):0] reached_q;      // outcomes in the lane whose fence is reached
  stream_if #(.T(number_t)) fence_in ();
  stream_if #(.T(number_t)) fence ();

  assign fence_in.valid = push;
  assign fence_in.data  = entered_q;
  stream_fifo #(.T(number_t), .DEPTH(PENDING)) fences (.clk, .rst, .in(fence_in), .out(fence), .empty());

  number_t ahead;
  assign ahead       = fence.data - passed_q;
  assign fence.ready = ahead == '0 || ahead[$bits(number_t)-1];
  assign reached     = reached_q != '0;

  always_ff @(posedge clk) begin
    if (rst) begin
      entered_q <= '0;
      passed_q  <= '0;
      reached_q <= '0;
    end else begin
      entered_q <= entered_q + number_t'(enters);
      passed_q  <= passed_q + number_t'(passes);
      reached_q <= reached_q + $bits(reached_q)'(fence.valid && fence.ready) - $bits(reached_q)'(pop);
      if (push) assert (fence_in.ready);
      if (pop) assert (reached);
    end
  end
endmodule
