// SPDX-License-Identifier: Apache-2.0

// The part of a fence (roce_response_fence) that concerns payload read from memory to be sent: `over` is set when the visit in
// progress at the start of the fence has ended, and the payload of all packets sent by then has been read. Each memory is read in
// order, independently of the others. `fencing` is low for at least a cycle between two fences. When no read is in progress `over`
// is set in the cycle after `fencing`.
module roce_read_fence
  import memory_pkg::*;
#(
    parameter int unsigned LANES = 1   // memories
) (
    input  logic     clk,
    input  logic     rst,
    input  logic     fencing,
    input  logic     visiting,     // a visit is in progress, which may send packets under a key found valid
    input  targets_t reads,        // pulse: a read of payload from this memory was requested
    input  targets_t passed,       // pulse: payload was read from this memory, in the order of the requests
    output logic     over
);
  typedef logic [7:0] count_t;     // of packets: roce_tx holds up to 32, a lane before it 64

  logic visited_q;                 // the visit has ended
  logic [LANES-1:0] read;          // all its reads of this memory are complete
  assign over = visited_q && (&read);
  always_ff @(posedge clk) visited_q <= fencing && (visited_q || !visiting);

  for (genvar l = 0; l < LANES; l++) begin : g_lane
    count_t reading_q, reading;    // reads outstanding
    count_t left_q;                // of them, those that the fence waits for
    assign reading = reading_q + count_t'(reads[l]) - count_t'(passed[l]);
    assign read[l] = left_q == '0;
    always_ff @(posedge clk) begin
      reading_q <= rst ? '0 : reading;
      // Reads requested later complete too, after those of the fence.
      left_q    <= visited_q ? left_q - count_t'(passed[l] && left_q != '0) : reading;
    end
  end
endmodule
