// SPDX-License-Identifier: Apache-2.0

// Table of one word a QP: one writer, READERS readers that see the word in the same cycle (distributed RAM, one copy a
// reader). A write is seen from the next cycle on. Not reset: its writer sets a word before anybody looks at it.
module roce_qp_tx_table
  import roce_pkg::*;
#(
    parameter type T = logic,
    parameter int unsigned QPS = 16,
    parameter int unsigned READERS = 1
) (
    input  logic      clk,
    input  logic      write,
    input  qp_index_t write_index,
    input  T          write_data,
    input  qp_index_t read_index[READERS],
    output T          read_data[READERS]
);
  localparam int unsigned INDEX_W = $clog2(QPS);

  for (genvar i = 0; i < READERS; i++) begin : g_reader
    (* ram_style = "distributed" *) logic [$bits(T)-1:0] words[QPS];
    always_ff @(posedge clk) if (write) words[write_index[INDEX_W-1:0]] <= write_data;
    assign read_data[i] = T'(words[read_index[i][INDEX_W-1:0]]);
  end
endmodule
