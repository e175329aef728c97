// SPDX-License-Identifier: Apache-2.0

// axi_dma_read keeps the rule of axi_mux, however slow its data is taken; when it is idle nothing is under way. Bursts of 4 beats.
module axi_dma_read_formal
  import memory_pkg::*;
#(
    parameter bit REACH = 1'b0
) (
    input logic       clk,
    input logic       rst,
    input logic [6:0] memory_free,
    input logic       cmd_valid,
    input logic [4:0] addr,
    input logic [4:0] length,
    input logic       data_ready
);
  stream_if #(.T(dma_cmd_t)) cmd ();
  axis_if #(.DATA_W(16)) data ();
  axi_if #(.ADDR_W(ADDR_W), .DATA_W(16), .ID_W(1)) mem ();
  logic idle, quiet;
  assign cmd.valid   = cmd_valid;
  assign cmd.data    = '{addr: addr_t'(addr), length: 32'(length), default: '0};
  assign data.tready = data_ready;

  axi_dma_read #(.DATA_W(16), .ID_W(1), .BURST_BYTES(8), .BUFFER_BEATS(4)) dut (.clk, .rst, .cmd, .mem, .data, .idle);
  axi_memory_rules memory (.clk, .rst, .free(memory_free), .mem, .quiet);

  logic started_q = 1'b0;
  always_ff @(posedge clk) begin
    started_q <= 1'b1;
    if (!started_q) assume (rst);
    else if (!rst) begin
      if (idle) assert (quiet);
      assert (!mem.awvalid && !mem.wvalid);
      if (REACH) assert (!(mem.rvalid && mem.rlast && mem.arvalid && !data_ready && data.tvalid && data.tlast));
    end
  end
endmodule
