// SPDX-License-Identifier: Apache-2.0

// axi_mux: two masters that keep its rule (data follows its address at once, R and B are always taken) see slaves that keep AXI's, each
// in its own order; memory sees a master that keeps the rule too, but for data one cycle after its address.
module axi_mux_formal
  import memory_pkg::*;
#(
    parameter bit REACH = 1'b0
) (
    input logic            clk,
    input logic            rst,
    input logic [6:0]      memory_free,
    input logic [1:0][1:0] free,
    input logic [1:0][3:0] addr,
    input logic [1:0][1:0] len,
    input logic [1:0]      id
);
  axi_if #(.ADDR_W(ADDR_W), .DATA_W(16), .ID_W(1)) in[2] ();
  axi_if #(.ADDR_W(ADDR_W), .DATA_W(16), .ID_W(2)) out ();
  logic [1:0] quiet;
  logic       memory_quiet;

  for (genvar i = 0; i < 2; i++) begin : g_master
    axi_master_rules master (
        .clk, .rst, .forget(1'b0), .free({1'b1, 1'b0, free[i][1], 1'b1, free[i][0]}), .addr(addr_t'(addr[i])),
        .len({6'd0, len[i]}), .id(id[i]), .bus(in[i]), .quiet(quiet[i])
    );
  end
  axi_mux #(.N(2), .DATA_W(16), .ID_W(1), .OUTSTANDING(2)) dut (.clk, .rst, .in, .out);
  axi_memory_rules #(.ID_W(2), .DEPTH(3), .W_LATE(1)) memory (.clk, .rst, .free(memory_free), .mem(out), .quiet(memory_quiet));

  logic started_q = 1'b0;
  always_ff @(posedge clk) begin
    started_q <= 1'b1;
    if (!started_q) assume (rst);
    else if (!rst) begin
      if (&quiet) assert (!out.rvalid && !out.bvalid);
      if (REACH) assert (!(in[0].bvalid && in[1].rvalid && in[1].rlast && out.wvalid && out.wlast));
    end
  end
endmodule
