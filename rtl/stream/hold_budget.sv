// SPDX-License-Identifier: Apache-2.0

// Limits the time for which one receiver stops a stream that others share: CREDIT cycles, and one more for each PAUSE cycles of the
// time `now` (which may jump ahead), up to CREDIT. While `allowed` is low, data for it is to be dropped, so that the others go on.
// `allowed` follows `holds` by 2 cycles.
module hold_budget
  import time_pkg::*;
#(
    parameter int unsigned CREDIT = 256,
    parameter int unsigned PAUSE  = 8
) (
    input  logic  clk,
    input  logic  rst,
    input  time_t now,
    input  logic  holds,     // the receiver makes the stream wait in this cycle
    output logic  allowed
);
  time_t paid_q;             // when all is paid for; renewed when it has passed, so that it never grows old
  wire   paid = time_reached(now, paid_q);

  always_ff @(posedge clk) begin
    if (rst || (paid && !holds)) paid_q <= now;
    else if (holds) paid_q <= (paid ? now : paid_q) + time_t'(PAUSE);
    allowed <= time_reached(now + time_t'(CREDIT * PAUSE), paid_q);
  end
endmodule
