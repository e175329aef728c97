// SPDX-License-Identifier: Apache-2.0

// roce_atomic keeps the rule of axi_mux, however slow its results are taken; when it is idle nothing is under way.
module roce_atomic_formal
  import memory_pkg::*;
  import roce_response_pkg::*;
#(
    parameter bit REACH = 1'b0
) (
    input logic       clk,
    input logic       rst,
    input logic [6:0] memory_free,
    input logic       op_valid,
    input atomic_op_t op_data,
    input logic       done_ready
);
  stream_if #(.T(atomic_op_t)) op ();
  stream_if #(.T(rsp_result_t)) done ();
  axi_if #(.ADDR_W(ADDR_W), .DATA_W(64), .ID_W(1)) mem ();
  logic idle, quiet;
  assign op.valid = op_valid;
  always_comb begin
    op.data = op_data;
    op.data.operation.addr[2:0] = '0;
    op.data.operation.addr[ADDR_W-1:12] = '0;
  end
  assign done.ready = done_ready;

  roce_atomic #(.DATA_W(64), .ID_W(1)) dut (.clk, .rst, .op, .done, .mem, .idle);
  axi_memory_rules #(.DATA_W(64)) memory (.clk, .rst, .free(memory_free), .mem, .quiet);

  logic started_q = 1'b0;
  always_ff @(posedge clk) begin
    started_q <= 1'b1;
    if (!started_q) assume (rst);
    else if (!rst) begin
      if (idle || done.valid) assert (quiet);
      if (REACH) assert (!(mem.bvalid && mem.bready && mem.bresp[1]));
    end
  end
endmodule
