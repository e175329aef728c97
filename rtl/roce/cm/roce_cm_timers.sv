// SPDX-License-Identifier: Apache-2.0

// Schedules the checks of the connections' timers: in rounds through all connections, one at a time. A round is due when the first timer
// may have expired, or when `sweep` asks for one that begins later. The deadlines are stored with the connections.
module roce_cm_timers
  import time_pkg::*;
#(
    parameter int unsigned QPS = 16,
    parameter int unsigned DELAY_BITS = 32           // no timer runs longer than 2^DELAY_BITS cycles
) (
    input  logic                   clk,
    input  logic                   rst,
    input  time_t                  now,
    input  logic                   sweep,            // pulse: look at all connections
    input  logic                   look,             // the connection `idx` is checked now
    output logic [$clog2(QPS)-1:0] idx,
    output logic                   due,              // a connection is to be checked
    output logic                   due_next,         // or will be in the next cycle
    input  logic                   timed,            // this timer runs: just set, or found running in this round
    input  time_t                  deadline
);
  typedef logic [$clog2(QPS)-1:0] idx_t;

  time_t first_q;            // no timer expires before,
  logic  first_valid_q;      // if any runs
  logic  in_round_q, round_due_q, sweep_q;

  assign due_next = sweep_q || first_valid_q && !time_ahead(now, first_q, DELAY_BITS);
  assign due      = in_round_q || round_due_q;

  always_ff @(posedge clk) begin
    round_due_q <= !rst && due_next;
    if (timed && (!first_valid_q || time_before(deadline, first_q))) begin
      first_valid_q <= 1'b1;
      first_q       <= deadline;
    end
    if (look) begin
      idx        <= idx + 1'b1;
      in_round_q <= idx != idx_t'(QPS - 1);
      if (!in_round_q) first_valid_q <= 1'b0;
      if (!in_round_q) sweep_q <= 1'b0;
    end
    if (sweep) sweep_q <= 1'b1;
    if (rst) begin
      idx           <= '0;
      in_round_q    <= 1'b0;
      first_valid_q <= 1'b0;
      sweep_q       <= 1'b0;
    end
  end
endmodule
