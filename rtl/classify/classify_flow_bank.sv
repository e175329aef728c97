// SPDX-License-Identifier: Apache-2.0

// A bank of flows: rows of slots in block RAM, and which slot of a row is a frame's flow. A row is read and compared every cycle.
//
// `match` and `decision` 2 cycles after `at`, for the flow of the cycle between. `slots` is the row itself, 1 cycle after `at`. All slots that
// are written in a cycle change together; a row that is read in that cycle is the one before.
module classify_flow_bank
  import classify_pkg::*;
(
    input  logic        clk,
    input  flow_row_t   at,
    output flow_slots_t slots,
    input  logic        v6,                           // of the frame, a cycle after `at`:
    input  flow_parts_t parts,                        // what its flow is in each slot
    output logic [FLOW_SLOTS-1:0] match,              // of IPv6 all slots have to
    output decision_t [FLOW_SLOTS-1:0] decision,
    input  logic [FLOW_SLOTS-1:0] write,
    input  flow_row_t   write_at,
    input  flow_slots_t write_slots
);
  logic [FLOW_SLOTS-1:0] same;
  for (genvar s = 0; s < FLOW_SLOTS; s++) begin : g_slot
    (* ram_style = "block" *) logic [$bits(flow_slot_t)-1:0] rows[FLOW_ROWS];
    flow_slot_t slot_q;
    always_ff @(posedge clk) if (write[s]) rows[write_at] <= write_slots[s];
    always_ff @(posedge clk) slot_q <= flow_slot_t'(rows[at]);
    assign slots[s] = slot_q;
    assign same[s]  = slot_q.used && slot_q.v6 == v6 && slot_q.part == parts[s];
  end
  always_ff @(posedge clk)
    for (int unsigned s = 0; s < FLOW_SLOTS; s++) begin
      match[s]    <= same[s];
      decision[s] <= slots[s].decision;
    end
endmodule
