// SPDX-License-Identifier: Apache-2.0

// The counters of every QP that one unit tells of: a row of COUNTERS a QP in block RAM, all of a row counted at once.
//
// Takes an event every cycle, also of one QP, and never loses one. An event is in its row 3 cycles later. A QP is cleared at
// once, by a mark beside the RAM: what is in its row does not count any more. In the QPS cycles after reset all are cleared, and
// an event is lost.
// A look takes the RAM's read port, so it waits for a cycle in which nothing is counted, and then takes 3 cycles.
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
    input  logic                           look,        // hold until looked
    input  qp_index_t                      look_index,
    output logic                           looked,      // pulse: `row` is that of look_index, until the next
    output logic [COUNTERS-1:0][31:0]      row
);
  typedef logic [$clog2(QPS)-1:0] short_t;
  typedef logic [COUNTERS-1:0][31:0] row_t;

  (* ram_style = "block" *) logic [$bits(row_t)-1:0] rows[QPS];

  // ---- 1: read ----
  logic count_1;
  short_t index_1;
  logic [COUNTERS-1:0][ADD_W-1:0] add_1;
  wire short_t at_1 = count_1 ? index_1 : short_t'(look_index);

  // ---- whether what is in the row counts: not after a clear, from the next event on ----
  logic counts;
  roce_qp_flags #(.QPS(QPS)) marks (
      .clk, .rst, .write({count_1, clear}), .write_index({qp_index_t'(index_1), clear_index}), .write_data(2'b10),
      .read_index(qp_index_t'(at_1)), .read_data(counts)
  );

  // ---- 2: add, write ----
  logic   count_2, look_2, cleared_2, again_2;   // again: the row that was written a cycle ago
  short_t at_2;
  logic [COUNTERS-1:0][ADD_W-1:0] add_2;
  row_t   read_2, last_q, was, sum;

  always_comb begin
    was = cleared_2 ? '0 : again_2 ? last_q : read_2;
    for (int unsigned i = 0; i < COUNTERS; i++) sum[i] = was[i] + 32'(add_2[i]);
  end

  always_ff @(posedge clk) begin
    index_1   <= short_t'(index);
    add_1     <= add;
    at_2      <= at_1;
    add_2     <= add_1;
    read_2    <= rows[at_1];
    cleared_2 <= !counts;
    again_2   <= count_2 && at_2 == at_1;
    if (count_2) rows[at_2] <= sum;
    last_q <= sum;
    if (look_2) row <= was;

    if (rst) begin
      count_1   <= 1'b0;
      count_2   <= 1'b0;
      look_2    <= 1'b0;
      looked    <= 1'b0;
    end else begin
      count_1 <= count;
      count_2 <= count_1;
      look_2  <= look && !count_1 && !look_2 && !looked;
      looked  <= look_2;
    end
  end
endmodule
