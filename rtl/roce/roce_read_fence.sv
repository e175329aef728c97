// SPDX-License-Identifier: Apache-2.0

// The part of a fence (roce_response_fence) that concerns payload which is read from memory to be sent: `over` when the visit that the
// fence finds under way is over, and the payload of all packets that were handed over by then has been read. Each memory is read in an order of
// its own. `fencing` is low for a cycle at least between two fences. When nothing is under way `over` comes in the cycle behind `fencing`.
module roce_read_fence
  import memory_pkg::*;
#(
    parameter int unsigned LANES = 1   // memories
) (
    input  logic     clk,
    input  logic     rst,
    input  logic     fencing,
    input  logic     visiting,     // what found its key valid may hand packets over
    input  targets_t reads,        // pulse: payload of this memory was asked for
    input  targets_t passed,       // pulse: payload of this memory was read; in the order in which it was asked for
    output logic     over
);
  typedef logic [7:0] count_t;     // of packets: roce_tx takes 32 of them, a lane before it 64

  logic visited_q;                 // the visit is over
  logic [LANES-1:0] read;          // and so is all that it asked this memory for
  assign over = visited_q && (&read);
  always_ff @(posedge clk) visited_q <= fencing && (visited_q || !visiting);

  for (genvar l = 0; l < LANES; l++) begin : g_lane
    count_t reading_q, reading;    // of all packets handed over,
    count_t left_q;                // and of those that count
    assign reading = reading_q + count_t'(reads[l]) - count_t'(passed[l]);
    assign read[l] = left_q == '0;
    always_ff @(posedge clk) begin
      reading_q <= rst ? '0 : reading;
      // While others go on, payload that does not count passes, too.
      left_q    <= visited_q ? left_q - count_t'(passed[l] && left_q != '0) : reading;
    end
  end
endmodule
