// SPDX-License-Identifier: Apache-2.0

// One bit per QP with two writers, in distributed RAM instead of a register and a decoder for each bit: each writer has its own
// table, and the bit is the exclusive or of both. Of two writes to one QP in a cycle, the first writer has priority.
// Reads are combinational; a write is visible from the next cycle on. After reset it clears itself for QPS cycles, in which writes
// are lost.
module roce_qp_flags
  import roce_pkg::*;
#(
    parameter int unsigned QPS = 16,
    parameter int unsigned READERS = 1
) (
    input  logic                    clk,
    input  logic                    rst,
    input  logic [1:0]              write,
    input  qp_index_t [1:0]         write_index,
    input  logic [1:0]              write_data,
    input  qp_index_t [READERS-1:0] read_index,
    output logic [READERS-1:0]      read_data
);
  localparam int unsigned INDEX_W = $clog2(QPS);
  typedef logic [INDEX_W-1:0] index_t;

  (* ram_style = "distributed" *) logic first[QPS];
  (* ram_style = "distributed" *) logic second[QPS];
  logic [INDEX_W:0] cleared_q;

  wire         clearing = !cleared_q[INDEX_W];
  wire index_t clear_at = index_t'(cleared_q);
  index_t      at[2];
  assign at[0] = index_t'(write_index[0]);
  assign at[1] = index_t'(write_index[1]);
  wire gives_way = write[0] && at[0] == at[1];

  always_ff @(posedge clk) begin
    if (clearing || write[0]) first[clearing ? clear_at : at[0]] <= !clearing && (second[at[0]] ^ write_data[0]);
  end
  always_ff @(posedge clk) begin
    if (clearing || (write[1] && !gives_way)) second[clearing ? clear_at : at[1]] <= !clearing && (first[at[1]] ^ write_data[1]);
  end
  always_ff @(posedge clk) begin
    if (rst) cleared_q <= '0;
    else if (clearing) cleared_q <= cleared_q + 1'b1;
  end

  for (genvar i = 0; i < READERS; i++) begin : g_reader
    wire index_t place = index_t'(read_index[i]);
    assign read_data[i] = first[place] ^ second[place];
  end
endmodule
