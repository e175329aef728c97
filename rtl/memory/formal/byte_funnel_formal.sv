// SPDX-License-Identifier: Apache-2.0

// byte_funnel is a shift by bytes, at every amount that is a multiple of ALIGN.
module byte_funnel_formal #(
    parameter int unsigned DATA_W = 64,
    parameter int unsigned ALIGN = 1,
    parameter bit REACH = 1'b0
) (
    input logic                          clk,
    input logic [DATA_W-1:0]             low,
    input logic [DATA_W-1:0]             high,
    input logic [$clog2(DATA_W/8)-1:0]   amount
);
  logic [DATA_W-1:0] out;
  byte_funnel #(.DATA_W(DATA_W), .ALIGN(ALIGN)) dut (.low, .high, .amount, .out);

  always_ff @(posedge clk) begin
    if (32'(amount) % ALIGN == 0) assert (out == DATA_W'({high, low} >> {amount, 3'd0}));
    if (REACH) assert (!(32'(amount) == DATA_W / 8 - ALIGN && out == '1));
  end
endmodule
