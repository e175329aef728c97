// SPDX-License-Identifier: Apache-2.0

// Round robin: grants one of those that request, the first in line behind the one served last. Combinational; `take` says that the one
// granted is served now, which makes it the last in line. So one that goes on requesting is served after each other once at most.
module round_robin #(
    parameter int unsigned N = 2
) (
    input  logic         clk,
    input  logic         rst,
    input  logic [N-1:0] request,
    input  logic         take,
    output logic [N-1:0] grant    // one-hot, or 0 if none requests
);
  logic [N-1:0] later_q;          // those behind the one served last
  wire  [N-1:0] in_line = request & later_q;
  wire  [N-1:0] from = |in_line ? in_line : request;
  assign grant = from & (~from + 1'b1);

  always_ff @(posedge clk) begin
    if (rst) later_q <= '0;
    else if (take && |grant) later_q <= ~(grant | (grant - 1'b1));
  end
endmodule
