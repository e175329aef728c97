// SPDX-License-Identifier: Apache-2.0

// Counts fences: one is through when no READ or atomic touches memory any more whose key was found valid before it was asked for. What
// begins later has found its key valid later. It waits for the visit under way and for the payload of what was handed over by its end, no more
// than 16 KiB, and for one atomic; nothing waits for it.
//
// `number` is that of the fence that covers what is asked for now: the next to begin, so that one that is on its way does for nobody
// who comes meanwhile, and the next for all of them. When nothing is on its way a fence takes 4 cycles.
module roce_response_fence
  import roce_pkg::*;
(
    input  logic   clk,
    input  logic   rst,
    input  logic   ask,          // pulse: a key has become invalid
    output fence_t number,
    output fence_t through,      // fences
    input  logic   visiting,     // a READ is being visited
    input  logic   reads,        // payload was asked for
    input  logic   passed,       // payload was read; in the order in which it was asked for
    input  logic   executing,    // an atomic
    output logic   idle
);
  typedef logic [6:0] count_t;   // of packets: roce_tx takes 32 of them

  fence_t wanted_q, through_q;
  logic   busy_q;
  logic   visited_q, executed_q; // the visit and the atomic that it found under way are over
  count_t reading_q, reading;    // of all packets handed over,
  count_t left_q;                // and of those that count
  wire    executed = executed_q || !executing;

  assign reading = reading_q + count_t'(reads) - count_t'(passed);
  assign number  = through_q + (busy_q ? fence_t'(2) : fence_t'(1));
  assign through = through_q;
  assign idle    = !busy_q && wanted_q == through_q;

  always_ff @(posedge clk) begin
    reading_q  <= rst ? '0 : reading;
    visited_q  <= busy_q && (visited_q || !visiting);
    executed_q <= busy_q && executed;
    // While the atomic goes on, payload that does not count passes, too.
    left_q     <= visited_q ? left_q - count_t'(passed && left_q != '0) : reading;

    if (rst) begin
      busy_q    <= 1'b0;
      wanted_q  <= '0;
      through_q <= '0;
    end else begin
      if (ask) wanted_q <= number;
      if (!busy_q) busy_q <= wanted_q != through_q;
      else if (visited_q && left_q == '0 && executed) begin
        busy_q    <= 1'b0;
        through_q <= through_q + 1'b1;
      end
    end
  end
endmodule
