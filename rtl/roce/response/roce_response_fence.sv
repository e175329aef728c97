// SPDX-License-Identifier: Apache-2.0

// Counts fences: one is through when no READ or atomic touches memory any more whose key was found valid before it was asked for. What
// begins later has found its key valid later. It waits for the visit under way and for the payload of what was handed over by its end, no more
// than 16 KiB, and for one atomic; nothing waits for it.
//
// `number` is that of the fence that covers what is asked for now: the next to begin, so that one that is on its way does for nobody
// who comes meanwhile, and the next for all of them. When nothing is on its way a fence takes 4 cycles. Each memory is read in an order of
// its own.
module roce_response_fence
  import memory_pkg::*;
  import roce_pkg::*;
#(
    parameter int unsigned LANES = 1   // memories
) (
    input  logic   clk,
    input  logic   rst,
    input  logic   ask,          // pulse: a key has become invalid
    output fence_t number,
    output fence_t through,      // fences
    input  logic   visiting,     // a READ is being visited
    input  targets_t reads,      // payload of this memory was asked for
    input  targets_t passed,     // payload of this memory was read; in the order in which it was asked for
    input  logic   executing,    // an atomic
    output logic   idle
);
  typedef logic [7:0] count_t;   // of packets: roce_tx takes 32 of them, a lane before it 64

  fence_t wanted_q, through_q;
  logic   busy_q;
  logic   visited_q, executed_q; // the visit and the atomic that it found under way are over
  logic [LANES-1:0] read_q;      // and so is all that it asked this memory for
  wire    executed = executed_q || !executing;

  assign number  = through_q + (busy_q ? fence_t'(2) : fence_t'(1));
  assign through = through_q;
  assign idle    = !busy_q && wanted_q == through_q;

  always_ff @(posedge clk) begin
    visited_q  <= busy_q && (visited_q || !visiting);
    executed_q <= busy_q && executed;

    if (rst) begin
      busy_q    <= 1'b0;
      wanted_q  <= '0;
      through_q <= '0;
    end else begin
      if (ask) wanted_q <= number;
      if (!busy_q) busy_q <= wanted_q != through_q;
      else if (visited_q && (&read_q) && executed) begin
        busy_q    <= 1'b0;
        through_q <= through_q + 1'b1;
      end
    end
  end

  for (genvar l = 0; l < LANES; l++) begin : g_lane
    count_t reading_q, reading;  // of all packets handed over,
    count_t left_q;              // and of those that count
    assign reading   = reading_q + count_t'(reads[l]) - count_t'(passed[l]);
    assign read_q[l] = left_q == '0;
    always_ff @(posedge clk) begin
      reading_q <= rst ? '0 : reading;
      // While others go on, payload that does not count passes, too.
      left_q    <= visited_q ? left_q - count_t'(passed[l] && left_q != '0) : reading;
    end
  end
endmodule
