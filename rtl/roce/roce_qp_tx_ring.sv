// SPDX-License-Identifier: Apache-2.0

// Rings of all QPs in one memory: DEPTH words a QP, found by QP and count of the work request. Block RAM; a large one is UltraRAM,
// which has 4096 words of 72 bits.
// One write and one read a cycle; a word read is on `read_data` one cycle after `read`, until the next read.
module roce_qp_tx_ring
  import roce_pkg::*;
  import roce_requester_pkg::*;
#(
    parameter type T = logic,
    parameter int unsigned QPS = 16,
    parameter int unsigned DEPTH = 16
) (
    input  logic      clk,
    input  logic      write,
    input  qp_index_t write_index,
    input  sq_count_t write_count,
    input  T          write_data,
    input  logic      read,
    input  qp_index_t read_index,
    input  sq_count_t read_count,
    output T          read_data
);
  localparam int unsigned INDEX_W = $clog2(QPS);
  localparam int unsigned SLOT_W = $clog2(DEPTH);

  localparam bit LARGE = QPS * DEPTH >= 4096;

  logic [$bits(T)-1:0] read_q;
  if (LARGE) begin : g_memory
    (* ram_style = "ultra" *) logic [$bits(T)-1:0] words[QPS*DEPTH];
    always_ff @(posedge clk) begin
      if (write) words[{write_index[INDEX_W-1:0], write_count[SLOT_W-1:0]}] <= write_data;
      if (read) read_q <= words[{read_index[INDEX_W-1:0], read_count[SLOT_W-1:0]}];
    end
  end else begin : g_memory
    (* ram_style = "block" *) logic [$bits(T)-1:0] words[QPS*DEPTH];
    always_ff @(posedge clk) begin
      if (write) words[{write_index[INDEX_W-1:0], write_count[SLOT_W-1:0]}] <= write_data;
      if (read) read_q <= words[{read_index[INDEX_W-1:0], read_count[SLOT_W-1:0]}];
    end
  end
  assign read_data = T'(read_q);
endmodule
