// SPDX-License-Identifier: Apache-2.0

// What is counted of all memories together: a pulse a cycle at most for each event, none lost while fewer than 2^16 wait. Latency 2 cycles.
module memory_events
  import memory_pkg::*;
#(
    parameter int unsigned MEMORIES = 1
) (
    input  logic                clk,
    input  logic                rst,
    input  logic [MEMORIES-1:0] corrected,       // pulses
    input  logic [MEMORIES-1:0] read_failed,
    input  logic [MEMORIES-1:0] write_failed,
    output memory_events_t      events
);
  logic [1:0][15:0]           waiting_q;         // uncorrectable, corrected
  logic [1:0][2*MEMORIES-1:0] pulses_q;

  always_ff @(posedge clk) begin
    pulses_q <= rst ? '0 : {read_failed, write_failed, MEMORIES'(0), corrected};
    for (int unsigned i = 0; i < 2; i++) begin
      if (rst) waiting_q[i] <= '0;
      else waiting_q[i] <= waiting_q[i] + 16'($countones(pulses_q[i])) - 16'(waiting_q[i] != '0);
    end
  end

  assign events = '{corrected: waiting_q[0] != '0, uncorrectable: waiting_q[1] != '0};
endmodule
