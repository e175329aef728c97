// SPDX-License-Identifier: Apache-2.0

// rpc_messages keeps the rule of axi_mux, however slow its words are taken and given; an answer is written when nothing of it is
// under way.
module rpc_messages_formal
  import memory_pkg::*;
  import rpc_pkg::*;
#(
    parameter bit REACH = 1'b0
) (
    input logic          clk,
    input logic          rst,
    input logic [6:0]    memory_free,
    input logic          read_valid,
    input message_read_t read_data,
    input logic          word_ready,
    input logic          write_valid,
    input word_t         write_data,
    input logic          written_ready
);
  localparam int unsigned DATA_W = 512;
  stream_if #(.T(message_read_t)) read ();
  stream_if #(.T(word_t)) word ();
  stream_if #(.T(word_t)) write ();
  stream_if #(.T(logic)) written ();
  axi_if #(.ADDR_W(ADDR_W), .DATA_W(DATA_W), .ID_W(1)) mem ();
  logic quiet, opens_q;   // the next word begins an answer
  assign read.valid = read_valid;
  always_comb begin
    read.data = read_data;
    read.data.addr = '0;
  end
  assign word.ready    = word_ready;
  assign write.valid   = write_valid;
  always_comb begin
    write.data = write_data;
    write.data.first = write_data.first || opens_q;
  end
  assign written.ready = written_ready;

  rpc_messages #(.DATA_W(DATA_W)) dut (.clk, .rst, .mem, .read, .word, .write, .write_addr('0), .written);
  axi_memory_rules #(.DATA_W(DATA_W)) memory (.clk, .rst, .free(memory_free), .mem, .quiet);

  logic started_q = 1'b0;
  always_ff @(posedge clk) begin
    started_q <= 1'b1;
    if (rst) opens_q <= 1'b1;
    else if (write.valid && write.ready) opens_q <= write.data.last;
    if (!started_q) assume (rst);
    else if (!rst) begin
      assume (read_data.length != '0 && 32'(read_data.length) <= 32'(MESSAGE_BYTES));
      if (written.valid) assert (!mem.awvalid && !mem.wvalid && memory.write_count_q == '0);
      if (REACH) assert (!(written.valid && memory.read_count_q != '0 && word.valid && !word_ready));
    end
  end
endmodule
