// SPDX-License-Identifier: Apache-2.0

// Counts the events of a socket's datagrams: 32 bits each, modulo 2^32. `at` 0 is the first field of datagram_events_t; its total is in
// `value` in the same cycle. A total is a cycle late, or later: one event is counted a cycle. Those of received frames come first, of
// which there is one a cycle at most; any other waits for a cycle without, of which frames of Ethernet leave many.
module datagram_counters
  import datagrams_pkg::*;
(
    input  logic                      clk,
    input  logic                      rst,
    input  datagram_events_t          events,
    input  logic [$clog2(COUNTS)-1:0] at,
    output logic [31:0]               value
);
  typedef logic [$clog2(COUNTS)-1:0] at_t;
  localparam at_t LAST = at_t'(COUNTS - 1);

  (* ram_style = "distributed" *) logic [31:0] totals[COUNTS];
  logic [COUNTS-1:0] waiting_q, chosen;
  at_t  chosen_at, clear_q;
  logic cleared_q;                     // after reset each total is written once

  // The first of those that wait, in the order of the struct.
  always_comb begin
    chosen    = '0;
    chosen_at = '0;
    for (int unsigned i = 0; i < COUNTS; i++) begin
      if (waiting_q[COUNTS-1-i] && chosen == '0) begin
        chosen[COUNTS-1-i] = 1'b1;
        chosen_at          = at_t'(i);
      end
    end
    if (!cleared_q) chosen = '0;
  end

  wire at_t write_at = cleared_q ? chosen_at : clear_q;
  always_ff @(posedge clk) if (!cleared_q || |chosen) totals[write_at] <= cleared_q ? totals[write_at] + 1'b1 : '0;

  always_ff @(posedge clk) begin
    waiting_q <= rst ? '0 : (waiting_q & ~chosen) | events;
    clear_q   <= rst ? '0 : clear_q + 1'b1;
    cleared_q <= !rst && (cleared_q || clear_q == LAST);
  end

  assign value = totals[at];
endmodule
