// SPDX-License-Identifier: Apache-2.0

// Orders the outcomes of a lane behind those of an earlier lane: `reached` is high when every outcome that was in the earlier lane when the
// oldest outcome of this lane was pushed has left it. One outcome a cycle; `reached` rises at the latest 2 cycles after the last of those
// outcomes has left. Up to PENDING outcomes in each lane.
module roce_lane_fence #(
    parameter int unsigned PENDING = 64     // power of two
) (
    input  logic clk,
    input  logic rst,
    input  logic push,                      // an outcome enters the lane
    input  logic pop,                       // an outcome leaves the lane
    input  logic enters,                    // an outcome enters the earlier lane
    input  logic passes,                    // an outcome leaves the earlier lane
    output logic reached
);
  typedef logic [$clog2(PENDING)+1:0] number_t;   // modulo: at most PENDING are ahead

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
