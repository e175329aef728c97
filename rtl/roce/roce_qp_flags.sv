// SPDX-License-Identifier: Apache-2.0

// A flag of each QP in distributed RAM, set at one place and cleared at another: it is set where the two tables, each with one
// writer, differ. Both in a cycle for the same QP: it is set. Effect in the next cycle. Not reset: clear every QP first.
module roce_qp_flags #(
    parameter int unsigned QPS = 256
) (
    input  logic                   clk,
    input  logic                   set,
    input  logic [$clog2(QPS)-1:0] set_index,
    input  logic                   clear,
    input  logic [$clog2(QPS)-1:0] clear_index,
    input  logic [$clog2(QPS)-1:0] index,
    output logic                   flag          // of index, same cycle
);
  (* ram_style = "distributed" *) logic raised[QPS];
  (* ram_style = "distributed" *) logic lowered[QPS];

  wire both = set && set_index == clear_index;
  assign flag = raised[index] != lowered[index];

  always_ff @(posedge clk) begin
    if (set) raised[set_index] <= !lowered[set_index];
    if (clear && !both) lowered[clear_index] <= raised[clear_index];
  end
endmodule
