// SPDX-License-Identifier: Apache-2.0

// The requester's part of a fence (roce_response_fence): `over` is set when every access to local memory whose L_Key was found
// valid before the fence began is complete. Reads: the visit in progress has ended, and the payload of all packets sent by its end
// has been read. Writes of response data: the events in roce_requester_ack have left it, and memory has confirmed their writes.
// Stalls no unit. Takes STEPS + 2 cycles when no access is in progress.
module roce_requester_fence
  import memory_pkg::*;
#(
    parameter int unsigned LANES = 1,     // memories
    parameter int unsigned STEPS = 8,     // advances of roce_requester_ack until its events have left it, plus one
    parameter int unsigned PENDING = 64   // events in roce_requester_receive
) (
    input  logic     clk,
    input  logic     rst,
    input  logic     fencing,
    // payload read
    input  logic     visiting,            // a visit is in progress, which may send packets under a key found valid
    input  targets_t reads,               // pulse: a read of payload from this memory was requested
    input  targets_t passed,              // pulse: payload was read from this memory
    // response data written
    input  logic     step,                // pulse: roce_requester_ack has advanced by a stage
    input  logic [$clog2(PENDING):0] confirming,   // events pending in roce_requester_receive
    input  logic     confirmed,           // pulse: the oldest of them is confirmed
    output logic     over
);
  typedef logic [$clog2(STEPS):0] steps_t;

  logic   reads_over, moved_q;
  steps_t steps_q;
  logic [$clog2(PENDING):0] left_q;       // events that the fence still waits for

  roce_read_fence #(.LANES(LANES)) payloads (.clk, .rst, .fencing, .visiting, .reads, .passed, .over(reads_over));

  always_ff @(posedge clk) begin
    if (!fencing) begin
      steps_q <= '0;
      moved_q <= 1'b0;
    end else begin
      if (step && !moved_q) steps_q <= steps_q + 1'b1;
      moved_q <= moved_q || steps_q == steps_t'(STEPS);
    end
    left_q <= moved_q ? left_q - ($bits(left_q))'(confirmed && left_q != '0) : confirming - ($bits(left_q))'(confirmed);
  end

  assign over = reads_over && moved_q && left_q == '0;
endmodule
