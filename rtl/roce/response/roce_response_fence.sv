// SPDX-License-Identifier: Apache-2.0

// Counts fences: a fence is complete when no READ or atomic whose key was checked before the request accesses memory any more. Accesses
// begun later have had their key checked later. A fence waits for the visit in progress and for the payload of the packets handed over by
// its end, at most 16 KiB, and for one atomic; nothing waits for the fence.
//
// `number` is the number of the fence that covers a request made now: the next one to begin. A fence in progress does not cover a new
// request; all requests made meanwhile share the next fence. With nothing in progress a fence takes 4 cycles.
module roce_response_fence
  import memory_pkg::*;
  import roce_pkg::*;
#(
    parameter int unsigned LANES = 1   // memories
) (
    input  logic   clk,
    input  logic   rst,
    input  logic   ask,          // pulse: a key was invalidated
    output fence_t number,
    output fence_t through,      // fences completed
    input  logic   visiting,     // a visit of a READ is in progress
    input  targets_t reads,      // a read of payload from this memory was requested
    input  targets_t passed,     // payload was read from this memory; in the order of the requests
    input  logic   executing,    // an atomic is in progress
    output logic   fencing,      // a fence is in progress:
    input  logic   others_over,  // the requester's accesses that it covers are complete
    output logic   idle
);
  fence_t wanted_q, through_q;
  logic   busy_q;
  logic   executed_q;            // the atomic in progress at its begin is complete
  logic   reads_over;            // and the READs are complete
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
