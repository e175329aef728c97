// SPDX-License-Identifier: Apache-2.0

// Ticks for times of seconds and days: a pulse each CYCLES of device time, and another with every PER_SECOND-th. After a jump of `now` the
// ticks that have been left out come one each cycle, so that whoever counts them loses none; `idle` is low meanwhile.
module tick_clock
  import time_pkg::*;
#(
    parameter longint unsigned CYCLES = 15_625_000,
    parameter int unsigned     PER_SECOND = 16        // a power of two
) (
    input  logic  clk,
    input  logic  rst,
    input  time_t now,
    output logic  tick,
    output logic  second,
    output logic  idle
);
  time_t next_q;
  logic [$clog2(PER_SECOND)-1:0] count_q;
  wire due = time_reached(now, next_q);

  always_ff @(posedge clk) begin
    tick   <= !rst && due;
    second <= !rst && due && count_q == '1;
    if (rst) begin
      next_q  <= now + time_t'(CYCLES);
      count_q <= '0;
    end else if (due) begin
      next_q  <= next_q + time_t'(CYCLES);
      count_q <= count_q + 1'b1;
    end
  end
  assign idle = !due && !tick;
endmodule
