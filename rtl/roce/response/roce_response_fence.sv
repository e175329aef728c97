// SPDX-License-Identifier: Apache-2.0

// Counts fences: one is through when no READ or atomic touches memory any more whose key was found valid before it was asked for. What
// begins later has found its key valid later. It waits for the visit under way and for the payload of what was handed over by its end, no more
// than 16 KiB, and for one atomic; nothing waits for it.
//
// `number` is that of the fence that covers what is asked for now: the next to begin, so that one that is on its way does for nobody
// who comes meanwhile, and the next for all of them. When nothing is on its way a fence takes 4 cycles.
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
    output logic   fencing,      // a fence is under way:
    input  logic   others_over,  // is what it found under way in the requester over?
    output logic   idle
);
  fence_t wanted_q, through_q;
  logic   busy_q;
  logic   executed_q;            // the atomic that it found under way is over
  logic   reads_over;            // and so are the READs
  wire    executed = executed_q || !executing;

  assign number  = through_q + (busy_q ? fence_t'(2) : fence_t'(1));
  assign through = through_q;
  assign fencing = busy_q;
  assign idle    = !busy_q && wanted_q == through_q;

  always_ff @(posedge clk) begin
    executed_q <= busy_q && executed;

    if (rst) begin
      busy_q    <= 1'b0;
      wanted_q  <= '0;
      through_q <= '0;
    end else begin
      if (ask) wanted_q <= number;
      if (!busy_q) busy_q <= wanted_q != through_q;
      else if (reads_over && executed && others_over) begin
        busy_q    <= 1'b0;
        through_q <= through_q + 1'b1;
      end
    end
  end

  roce_read_fence #(.LANES(LANES)) payloads (.clk, .rst, .fencing, .visiting, .reads, .passed, .over(reads_over));
endmodule
