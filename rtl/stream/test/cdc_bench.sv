// SPDX-License-Identifier: Apache-2.0

// A FIFO between two clocks as a board has it: both resets come from one asynchronous one.
module cdc_bench #(
    parameter int unsigned DEPTH = 16
) (
    input  logic     clk,
    input  logic     rst,        // asynchronous
    input  logic     out_clk,
    output logic     in_rst,
    output logic     out_rst,
    stream_if.sink   in,
    stream_if.source out
);
  cdc_reset in_reset (.clk, .arst(rst), .rst(in_rst));
  cdc_reset out_reset (.clk(out_clk), .arst(rst), .rst(out_rst));
  cdc_fifo #(.T(logic [31:0]), .DEPTH(DEPTH)) fifo (.in_clk(clk), .in_rst, .in, .out_clk, .out_rst, .out);
endmodule
