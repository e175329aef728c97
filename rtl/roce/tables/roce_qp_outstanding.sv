// SPDX-License-Identifier: Apache-2.0

// Detects whether a QP has operations outstanding: counts begins and ends, each in its own table in distributed RAM. Fewer than
// 2^COUNT_W may be outstanding. A change is visible from the next cycle on. After reset it clears itself for QPS cycles, in which
// begins and ends are lost.
module roce_qp_outstanding
  import roce_pkg::*;
#(
    parameter int unsigned QPS = 16,
    parameter int unsigned COUNT_W = 7,
    parameter int unsigned READERS = 1
) (
    input  logic      clk,
    input  logic      rst,
    input  logic      begins,
    input  qp_index_t begins_index,
    input  logic      ends,
    input  qp_index_t ends_index,
    input  qp_index_t [READERS-1:0] index,
    output logic [READERS-1:0] outstanding   // of `index`
);
  localparam int unsigned INDEX_W = $clog2(QPS);
  typedef logic [INDEX_W-1:0] short_t;
  typedef logic [COUNT_W-1:0] count_t;

  (* ram_style = "distributed" *) logic [COUNT_W-1:0] begun[QPS];
  (* ram_style = "distributed" *) logic [COUNT_W-1:0] ended[QPS];

  logic [INDEX_W:0] cleared_q;
  wire         clearing = !cleared_q[INDEX_W];
  wire short_t clear_at = short_t'(cleared_q);
  wire short_t begins_at = clearing ? clear_at : short_t'(begins_index);
  wire short_t ends_at = clearing ? clear_at : short_t'(ends_index);

  always_ff @(posedge clk) if (clearing || begins) begun[begins_at] <= clearing ? '0 : begun[begins_at] + count_t'(1);
  always_ff @(posedge clk) if (clearing || ends) ended[ends_at] <= clearing ? '0 : ended[ends_at] + count_t'(1);
  always_ff @(posedge clk) begin
    if (rst) cleared_q <= '0;
    else if (clearing) cleared_q <= cleared_q + 1'b1;
  end

  for (genvar i = 0; i < READERS; i++) begin : g_reader
    wire short_t at = short_t'(index[i]);
    assign outstanding[i] = begun[at] != ended[at];
  end
endmodule
