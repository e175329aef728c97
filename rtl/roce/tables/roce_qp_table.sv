// SPDX-License-Identifier: Apache-2.0

// Table of one word per QP with combinational read (distributed RAM). A write is visible from the next cycle on. Not reset: the
// writer initializes a word before it is read.
module roce_qp_table
  import roce_pkg::*;
#(
    parameter type T = logic,
    parameter int unsigned QPS = 16
) (
    input  logic      clk,
    input  logic      write,
    input  qp_index_t write_index,
    input  T          write_data,
    input  qp_index_t read_index,
    output T          read_data
);
  localparam int unsigned INDEX_W = $clog2(QPS);

  (* ram_style = "distributed" *) logic [$bits(T)-1:0] words[QPS];
  always_ff @(posedge clk) if (write) words[write_index[INDEX_W-1:0]] <= write_data;
  assign read_data = T'(words[read_index[INDEX_W-1:0]]);
endmodule
