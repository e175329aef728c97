// SPDX-License-Identifier: Apache-2.0

// A reader's own copy of a table of one word a QP: of what one writer writes, the part that this reader wants.
// The word is on `read_data` a cycle after `read`, until the next read; one that is written in the cycle of `read` is seen at the
// next read. Wide words in block RAM, others in distributed RAM. Not reset: its writer sets a word before anybody looks at it.
module roce_qp_tx_copy
  import roce_pkg::*;
#(
    parameter type T = logic,
    parameter int unsigned QPS = 16,
    parameter bit BLOCK_RAM = QPS > 64 && $bits(T) > 16
) (
    input  logic      clk,
    input  logic      write,
    input  qp_index_t write_index,
    input  T          write_data,
    input  logic      read,
    input  qp_index_t read_index,
    output T          read_data
);
  localparam int unsigned INDEX_W = $clog2(QPS);

  logic [$bits(T)-1:0] read_q;
  if (BLOCK_RAM) begin : g_memory
    (* ram_style = "block" *) logic [$bits(T)-1:0] words[QPS];
    always_ff @(posedge clk) begin
      if (write) words[write_index[INDEX_W-1:0]] <= write_data;
      if (read) read_q <= words[read_index[INDEX_W-1:0]];
    end
  end else begin : g_memory
    (* ram_style = "distributed" *) logic [$bits(T)-1:0] words[QPS];
    always_ff @(posedge clk) begin
      if (write) words[write_index[INDEX_W-1:0]] <= write_data;
      if (read) read_q <= words[read_index[INDEX_W-1:0]];
    end
  end
  assign read_data = T'(read_q);
endmodule
