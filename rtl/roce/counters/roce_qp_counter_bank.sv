// SPDX-License-Identifier: Apache-2.0

// The counters of every QP for the events of one unit: one row of COUNTERS per QP in block RAM; a row is updated at once.
//
// Accepts an event every cycle, also of the same QP, and never loses one. An event is in its row 3 cycles later. A clear of a QP is
// effective from the next cycle on; the row is written in the next cycle without an event, or at the QP's own next event, and reads
// as zeros until then. The next `clear` must come after that. In the QPS cycles after reset all rows are cleared and events are
// lost. `look` uses the RAM's read port, so it waits for a cycle without an event, and then takes 3 cycles.
module roce_qp_counter_bank
  import roce_pkg::*;
#(
    parameter int unsigned QPS = 16,
    parameter int unsigned COUNTERS = 2,
    parameter int unsigned ADD_W = 16
) (
    input  logic                           clk,
    input  logic                           rst,
    input  logic                           clear,
    input  qp_index_t                      clear_index,
    input  logic                           count,
    input  qp_index_t                      index,
    input  logic [COUNTERS-1:0][ADD_W-1:0] add,
    input  logic                           look,        // hold until `looked`
    input  qp_index_t                      look_index,
    output logic                           looked,      // pulse: `row` is that of look_index, until the next
    output logic [COUNTERS-1:0][31:0]      row
);
  localparam int unsigned INDEX_W = $clog2(QPS);
  typedef logic [INDEX_W-1:0] index_t;
  typedef logic [COUNTERS-1:0][31:0] row_t;

  (* ram_style = "block" *) logic [$bits(row_t)-1:0] rows[QPS];

  // ---- pending clear: written in a cycle without an event ----
  logic [INDEX_W:0] swept_q;                     // rows cleared since reset
  logic             pending_q;
  index_t           pending_index_q;
  wire              sweeping = !swept_q[INDEX_W];

  // ---- 1: read ----
  logic   count_1;
  index_t index_1;
  logic [COUNTERS-1:0][ADD_W-1:0] add_1;
  wire         clear_1 = sweeping || (pending_q && !count_1);
  wire index_t at_1 = sweeping ? index_t'(swept_q) : count_1 ? index_1 : pending_q ? pending_index_q : index_t'(look_index);
  wire         fresh_1 = sweeping || (pending_q && at_1 == pending_index_q);

  // ---- 2: add, write ----
  logic   write_2, look_2, fresh_2, again_2;     // again: same row as the write a cycle ago
  index_t at_2;
  logic [COUNTERS-1:0][ADD_W-1:0] add_2;
  row_t   read_2, last_q, was, sum;

  always_comb begin
    was = fresh_2 ? '0 : again_2 ? last_q : read_2;
    for (int unsigned i = 0; i < COUNTERS; i++) sum[i] = was[i] + 32'(add_2[i]);
  end

  always_ff @(posedge clk) begin
    index_1   <= index_t'(index);
    add_1     <= add;
    at_2      <= at_1;
    add_2     <= clear_1 ? '0 : add_1;
    read_2    <= rows[at_1];
    fresh_2   <= fresh_1;
    again_2   <= write_2 && at_2 == at_1;
    if (write_2) rows[at_2] <= sum;
    if (clear) pending_index_q <= index_t'(clear_index);
    last_q <= sum;
    if (look_2) row <= was;

    if (rst) begin
      count_1   <= 1'b0;
      write_2   <= 1'b0;
      look_2    <= 1'b0;
      looked    <= 1'b0;
      pending_q <= 1'b0;
      swept_q   <= '0;
    end else begin
      pending_q <= clear || (pending_q && !fresh_1);
      if (sweeping) swept_q <= swept_q + 1'b1;
      count_1 <= count;
      write_2 <= count_1 || clear_1;
      look_2  <= look && !count_1 && (sweeping || !pending_q) && !look_2 && !looked;   // all zeros while sweeping
      looked  <= look_2;
    end
  end

  always_ff @(posedge clk) if (!rst && clear) assert (!pending_q);
endmodule
