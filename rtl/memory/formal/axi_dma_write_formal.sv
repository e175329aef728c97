// SPDX-License-Identifier: Apache-2.0

// axi_dma_write keeps the rule of axi_mux if the data of a command is at hand, as it demands: a response waits only for empty transfers
// before it, one cycle each. When it is idle nothing is under way. Bursts of 4 beats.
module axi_dma_write_formal
  import memory_pkg::*;
#(
    parameter bit REACH = 1'b0
) (
    input logic       clk,
    input logic       rst,
    input logic [6:0] memory_free,
    input logic       cmd_valid,
    input logic [3:0] addr,
    input logic [3:0] length,
    input logic       done_ready
);
  localparam int unsigned DEPTH = 8;
  stream_if #(.T(dma_cmd_t)) cmd ();
  stream_if #(.T(dma_done_t)) done ();
  axis_if #(.DATA_W(16)) data ();
  axi_if #(.ADDR_W(ADDR_W), .DATA_W(16), .ID_W(1)) mem ();
  logic idle, quiet;

  // The packets that the commands announce: beats of each, less one.
  logic [DEPTH-1:0][2:0] packets_q;
  logic [3:0]            count_q;
  logic [2:0]            beat_q;
  wire announce = cmd.valid && cmd.ready && length != '0;
  wire ends = data.tvalid && data.tready && data.tlast;
  assign cmd.valid   = cmd_valid && count_q < 4'(DEPTH);
  assign cmd.data    = '{addr: addr_t'(addr), length: 32'(length), default: '0};
  assign data.tvalid = count_q != '0;
  assign data.tlast  = beat_q == packets_q[0];
  assign data.tdata  = 16'(beat_q);
  assign data.tkeep  = '1;
  assign data.tuser  = 1'b0;
  assign done.ready  = done_ready;

  axi_dma_write #(.DATA_W(16), .ID_W(1), .BURST_BYTES(8), .OUTSTANDING(2)) dut (.clk, .rst, .cmd, .data, .mem, .done, .idle);
  axi_memory_rules #(.B_WAIT(2), .W_LATE(3)) memory (.clk, .rst, .free(memory_free), .mem, .quiet);

  logic started_q = 1'b0;
  always_ff @(posedge clk) begin
    started_q <= 1'b1;
    if (!started_q) assume (rst);
    if (ends) for (int unsigned i = 0; i + 1 < DEPTH; i++) packets_q[i] <= packets_q[i+1];
    if (announce) packets_q[3'(count_q-4'(ends))] <= 3'((length - 1'b1) >> 1);
    if (rst) begin
      count_q <= '0;
      beat_q  <= '0;
    end else if (started_q) begin
      count_q <= count_q + 4'(announce) - 4'(ends);
      if (data.tvalid && data.tready) beat_q <= data.tlast ? '0 : beat_q + 1'b1;
      if (idle) assert (quiet);
      assert (!mem.arvalid);
      if (REACH) assert (!(mem.bvalid && mem.wvalid && mem.wlast));
    end
  end
endmodule
