// SPDX-License-Identifier: Apache-2.0

// Counts the pulses of every event: 32 bits each, modulo 2^32, no pulse lost.
//
// A few bits for each event accumulate pulses; a walker visits one event a cycle and adds them to the total in a RAM. So a
// total is at most COUNTERS * SPACING / (SPACING - 1) cycles late. An event that is to be read is visited out of turn, once in SPACING
// cycles: a read takes up to SPACING + 2 cycles, and in the first round after reset up to COUNTERS + 2.
//
// Of some events the log is told when the total gets one more binary digit: at the first, second, fourth and so on. So it learns what
// happens, and how much, but nobody fills it by causing more.
module event_counters
  import counters_pkg::*;
  import event_log_pkg::*;
#(
    parameter int unsigned ABSENT = 0    // the last fields of events_t, of a plane that the device does not have: these counters are 0
) (
    input  logic        clk,
    input  logic        rst,         // all counters to 0
    input  events_t     events,
    input  logic        read,        // pulse; the next one after `read_done`
    input  logic [7:0]  read_index,  // first field of events_t is 0; of what is not counted 0 is read
    output logic        read_done,   // pulse, with read_data
    output logic [31:0] read_data,
    output log_event_t  to_log         // of those in DROPS and MEMORY_ERRORS
);
  localparam int unsigned COUNTED = COUNTERS - ABSENT;
  localparam int unsigned SPACING = 8;            // a power of two
  // An event pulses at most once a cycle, so this often between two visits.
  localparam int unsigned ROUND = (COUNTED * SPACING + SPACING - 2) / (SPACING - 1);
  localparam int unsigned GATHER_W = $clog2(ROUND + 1);
  localparam int unsigned IDX_W = $clog2(COUNTED);
  typedef logic [IDX_W-1:0] idx_t;
  typedef logic [COUNTED-1:0] plane_t;
  localparam plane_t DROPS_COUNTED = DROPS[COUNTERS-1:ABSENT];
  localparam plane_t MEMORY_ERRORS_COUNTED = MEMORY_ERRORS[COUNTERS-1:ABSENT];

  if (COUNTERS > 255 || COUNTERS < 3) begin : g_check
    $fatal(1, "event_counters: %0d events, at most 255 can be counted", COUNTERS);
  end
  if ($bits(events_t) != COUNTERS) begin : g_check_package
    $fatal(1, "event_counters: counters_pkg is older than the event structs: run rtl/control/generate.py");
  end

  // ---- gathering: bit k of every event's small counter is plane k, so that all count at once ----
  // An event has the place that it has in events_t, whose first field is the highest: reversed bits are slow to simulate.
  localparam idx_t FIRST = idx_t'(COUNTED - 1);

  plane_t [GATHER_W-1:0] gather_q, gather_d;
  idx_t visit_q;
  logic [GATHER_W-1:0] found;

  always_comb begin
    plane_t carry;
    gather_d = gather_q;
    carry = events[COUNTERS-1:ABSENT];
    for (int unsigned k = 0; k < GATHER_W; k++) begin
      found[k] = gather_q[k][visit_q];
      gather_d[k][visit_q] = 1'b0;
      {carry, gather_d[k]} = {carry & gather_d[k], carry ^ gather_d[k]};
    end
  end

  // ---- the walker: reads a total in the cycle of its visit, writes it in the next ----
  (* ram_style = "distributed" *) logic [31:0] totals[2**IDX_W];
  logic [31:0] total_q;
  logic [GATHER_W-1:0] found_q;
  idx_t index_q;
  logic first_q, fresh_q;    // first round after reset: totals are not yet there
  wire [31:0] sum = (fresh_q ? '0 : total_q) + 32'(found_q);

  logic wanted_q, none_q;
  idx_t wanted_index_q;

  // A total is written one cycle after it is read: an event that is visited, or the next one, is not visited out of turn.
  idx_t turn_q;    // next visit in turn
  logic [$clog2(SPACING)-1:0] spacing_q;    // cycles until one out of turn is allowed
  wire out_of_turn = wanted_q && spacing_q == '0 && !first_q && wanted_index_q != visit_q && wanted_index_q != turn_q;
  wire idx_t visit_d = out_of_turn ? wanted_index_q : turn_q;

  always_ff @(posedge clk) begin
    total_q  <= totals[visit_q];
    found_q  <= found;
    index_q  <= visit_q;
    fresh_q  <= first_q;
    gather_q <= gather_d;
    visit_q  <= visit_d;
    if (!out_of_turn) turn_q <= (turn_q == '0) ? FIRST : turn_q - 1'b1;
    if (visit_q == '0) first_q <= 1'b0;
    if (out_of_turn) spacing_q <= '1;
    else if (spacing_q != '0) spacing_q <= spacing_q - 1'b1;
    if (rst) begin
      gather_q  <= '0;
      found_q   <= '0;
      fresh_q   <= 1'b0;
      visit_q   <= FIRST;
      turn_q    <= FIRST - 1'b1;
      first_q   <= 1'b1;
      spacing_q <= '0;
    end
  end
  // ---- event log: a value is less than its exclusive or with a smaller one only if that has fewer digits ----
  wire more_digits = (sum ^ total_q) > total_q || fresh_q;
  always_ff @(posedge clk) begin
    to_log.valid     <= !rst && found_q != '0 && more_digits && (DROPS_COUNTED[index_q] || MEMORY_ERRORS_COUNTED[index_q]);
    to_log.item.kind <= DROPS_COUNTED[index_q] ? LOG_DROPPED : LOG_MEMORY_ERROR;
    to_log.item.a    <= COUNTERS_AT + 32'(FIRST - index_q) * 4;
    to_log.item.b    <= sum;
  end
  always_ff @(posedge clk) if (fresh_q || found_q != 0) totals[index_q] <= sum;

  always_ff @(posedge clk) begin
    read_done <= 1'b0;
    read_data <= none_q ? '0 : sum;
    if (read) begin
      wanted_q       <= 1'b1;
      wanted_index_q <= (read_index < 8'(COUNTED)) ? FIRST - idx_t'(read_index) : FIRST;
      none_q         <= read_index >= 8'(COUNTED);
    end else if (wanted_q && index_q == wanted_index_q) begin
      wanted_q  <= 1'b0;
      read_done <= 1'b1;
    end
    if (rst) begin
      wanted_q  <= 1'b0;
      read_done <= 1'b0;
    end
  end
endmodule
