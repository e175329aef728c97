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
  // Late enough for the longest jump of `now`, 2^32 cycles, and early enough for a tick.
  localparam int unsigned LATE_W = 34;
  typedef logic [LATE_W-1:0] late_t;
  if (CYCLES >= 64'd1 << 32) begin : g_bad
    $fatal(1, "tick_clock: CYCLES must be below 2^32");
  end
  late_t next_q, late;
  logic [$clog2(PER_SECOND)-1:0] count_q;
  assign late = late_t'(now) - next_q;
  wire due = !late[LATE_W-1];

  always_ff @(posedge clk) begin
    tick   <= !rst && due;
    second <= !rst && due && count_q == '1;
    if (rst) begin
      next_q  <= late_t'(now) + late_t'(CYCLES);
      count_q <= '0;
    end else if (due) begin
      next_q  <= next_q + late_t'(CYCLES);
      count_q <= count_q + 1'b1;
    end
  end
  assign idle = !due && !tick;
endmodule
