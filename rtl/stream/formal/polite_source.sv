// SPDX-License-Identifier: Apache-2.0

// For proofs: assumes that a stream's source keeps the rules (valid stays, and data with it, until ready answers), or asserts it.
module polite_source #(
    parameter bit ASSUME = 1'b0,
    parameter int unsigned WIDTH = 1
) (
    input logic             clk,
    input logic             rst,
    input logic             valid,
    input logic             ready,
    input logic [WIDTH-1:0] data
);
  logic waiting_q;
  logic [WIDTH-1:0] data_q;

  always_ff @(posedge clk) begin
    waiting_q <= valid && !ready && !rst;
    data_q    <= data;
    if (!rst && waiting_q) begin
      if (ASSUME) assume (valid && data == data_q);
      else assert (valid && data == data_q);
    end
  end
endmodule
