// SPDX-License-Identifier: Apache-2.0

// Limits how often something may happen: BURST times at once, and once more every CYCLES cycles of the time `now`, which may jump ahead.
// `ready` is a register: it says that there is a token; `take` in the same cycle takes it. One a cycle.
module token_bucket
  import time_pkg::*;
#(
    parameter int unsigned BURST  = 4,
    parameter int unsigned CYCLES = 4096   // 1 or more
) (
    input  logic  clk,
    input  logic  rst,
    input  time_t now,
    output logic  ready,
    input  logic  take     // only while ready
);
  localparam int unsigned COUNT_W = $clog2(BURST + 1);
  typedef logic [COUNT_W-1:0] count_t;

  count_t tokens_q, tokens_d;
  time_t  refill_q;                        // when the next token comes; renewed as it passes, so that it never grows old
  wire    refill = time_reached(now, refill_q);
  wire    full = tokens_q == count_t'(BURST);

  assign tokens_d = tokens_q + count_t'(refill && (!full || take)) - count_t'(take);

  always_ff @(posedge clk) begin
    if (rst || refill) refill_q <= now + time_t'(CYCLES);
    if (rst) begin
      tokens_q <= count_t'(BURST);
      ready    <= 1'b0;
    end else begin
      tokens_q <= tokens_d;
      ready    <= tokens_d != '0;
    end
    if (!rst) assert (!take || ready);
  end
endmodule
