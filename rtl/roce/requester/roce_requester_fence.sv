// SPDX-License-Identifier: Apache-2.0

// The requester's part of a fence (roce_response_fence): `over` when no work request touches local memory any more whose L_Key was found valid
// before the fence began. It waits for the visit that it finds under way and for the payload of all packets that were handed over by its
// end; and, for what responses bring, until the events that roce_requester_ack has looked at have left it, and memory has confirmed all that
// they had it write. Nothing waits for it. When nothing is under way it takes STEPS + 2 cycles.
module roce_requester_fence
  import memory_pkg::*;
#(
    parameter int unsigned LANES = 1,     // memories
    parameter int unsigned STEPS = 8,     // of roce_requester_ack, in which what it has looked at leaves it, and one more
    parameter int unsigned PENDING = 64   // events in roce_requester_receive
) (
    input  logic     clk,
    input  logic     rst,
    input  logic     fencing,
    // what is sent
    input  logic     visiting,            // what found its key valid may hand packets over
    input  targets_t reads,               // payload of this memory was asked for
    input  targets_t passed,              // payload of this memory was read
    // what lands
    input  logic     step,                // pulse: what is in roce_requester_ack has moved on
    input  logic [$clog2(PENDING):0] confirming,   // so many events wait in roce_requester_receive,
    input  logic     confirmed,           // pulse: for one of them, the oldest, no more
    output logic     over
);
  typedef logic [$clog2(STEPS):0] steps_t;

  logic   reads_over, moved_q;
  steps_t steps_q;
  logic [$clog2(PENDING):0] left_q;       // events that count

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
