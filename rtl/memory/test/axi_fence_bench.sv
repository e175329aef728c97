// SPDX-License-Identifier: Apache-2.0

// axi_fence, which has no clock, for a bench that has one.
module axi_fence_bench
  import memory_pkg::*;
#(
    parameter memory_range_t RANGE   = '0,
    parameter int unsigned   OWNER   = 0,
    parameter int unsigned   INDEX_W = 1,
    parameter int unsigned   ID_W    = 5
) (
    input  logic  clk,
    input  logic  rst,
    axi_if.slave  in,
    axi_if.master out
);
  axi_fence #(.RANGE(RANGE), .OWNER(OWNER), .INDEX_W(INDEX_W), .ID_W(ID_W)) fence (.in, .out);
  wire unused = &{1'b0, clk, rst};
endmodule
