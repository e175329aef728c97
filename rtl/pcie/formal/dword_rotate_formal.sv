// SPDX-License-Identifier: Apache-2.0

// dword_rotate rotates, by every amount.
module dword_rotate_formal #(
    parameter int unsigned DATA_W = 64,
    parameter bit REACH = 1'b0
) (
    input logic                         clk,
    input logic [DATA_W-1:0]            in,
    input logic [$clog2(DATA_W/32)-1:0] amount
);
  logic [DATA_W-1:0] out;
  dword_rotate #(.DATA_W(DATA_W)) dut (.in, .amount, .out);

  always_ff @(posedge clk) begin
    assert (out == DATA_W'({in, in} >> {amount, 5'd0}));
    if (REACH) assert (!(amount == '1 && out == '1));
  end
endmodule
