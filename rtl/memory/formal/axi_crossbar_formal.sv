// SPDX-License-Identifier: Apache-2.0

// axi_crossbar with two memories: a master that uses both, by address, and what neither has; one that is wired to the second. Both
// keep the rule of axi_mux and see slaves that keep AXI's, in the order of their addresses; each memory sees a master that keeps the rule,
// and no address that is not its own.
module axi_crossbar_formal
  import memory_pkg::*;
#(
    parameter bit REACH = 1'b0
) (
    input logic            clk,
    input logic            rst,
    input logic [1:0][6:0] memory_free,
    input logic [1:0][1:0] free,
    input logic [1:0][1:0] page,
    input logic [1:0][1:0] len,
    input logic [1:0]      id
);
  localparam memory_range_t [1:0] MAP = '{'{base: 64'h1000, size: 64'h1000}, '{base: 64'h0, size: 64'h1000}};

  axi_if #(.ADDR_W(ADDR_W), .DATA_W(16), .ID_W(1)) in[2] ();
  axi_if #(.ADDR_W(ADDR_W), .DATA_W(16), .ID_W(2)) out[2] ();
  logic [1:0] quiet, memory_quiet, others_write;

  for (genvar i = 0; i < 2; i++) begin : g_master
    axi_master_rules master (
        .clk, .rst, .forget(1'b0), .free({1'b1, 1'b0, free[i][1], 1'b1, free[i][0]}),
        .addr({50'd0, i == 1 ? 2'd1 : page[i], 12'd0}), .len({6'd0, len[i]}), .id(id[i]), .bus(in[i]), .quiet(quiet[i])
    );
  end
  axi_crossbar #(.N(2), .M(2), .MAP(MAP), .REACH({2'b10, 2'b11}), .DATA_W(16), .ID_W(1), .OUTSTANDING(2)) dut (
      .clk, .rst, .in, .out, .others_write
  );
  axi_memory_rules #(.ID_W(2), .DEPTH(3), .W_LATE(1)) first (
      .clk, .rst, .free(memory_free[0]), .mem(out[0]), .quiet(memory_quiet[0])
  );
  axi_memory_rules #(.ID_W(2), .DEPTH(3), .W_LATE(1)) second (
      .clk, .rst, .free(memory_free[1]), .mem(out[1]), .quiet(memory_quiet[1])
  );

  logic started_q = 1'b0;
  always_ff @(posedge clk) begin
    started_q <= 1'b1;
    if (!started_q) assume (rst);
    else if (!rst) begin
      if (out[0].arvalid) assert (out[0].araddr[63:12] == '0);
      if (out[1].arvalid) assert (out[1].araddr[63:12] == 52'd1);
      if (out[0].awvalid) assert (out[0].awaddr[63:12] == '0);
      if (out[1].awvalid) assert (out[1].awaddr[63:12] == 52'd1);
      if (&quiet) assert (!out[0].rvalid && !out[0].bvalid && !out[1].rvalid && !out[1].bvalid);
      if (REACH) assert (!(in[0].rvalid && in[0].rresp == AXI_DECERR && in[1].bvalid));
    end
  end
endmodule
