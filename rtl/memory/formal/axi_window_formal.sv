// SPDX-License-Identifier: Apache-2.0

// axi_window: whatever the socket does, memory sees a master that keeps the rules of axi_mux, and no page outside of the window (page
// FORBIDDEN is never in it; everything else about the window is free, it may change at any time). The socket sees a slave that keeps
// AXI's, from the last decouple on. When it is idle nothing is under way at memory, and nothing is owed to the socket.
// With pages of 4 beats, of which the first 4 are reached.
module axi_window_formal
  import memory_pkg::*;
  import compute_pkg::*;
#(
    parameter int unsigned FORBIDDEN = 2,
    parameter bit REACH = 1'b0
) (
    input logic        clk,
    input logic        rst,
    input logic        decouple,
    input logic [1:0]  first,
    input logic [2:0]  pages,
    input logic [6:0]  memory_free,
    input logic [4:0]  socket_free,
    input logic [3:0]  beat,
    input logic [2:0]  len,
    input logic        id
);
  localparam int unsigned DATA_W = 8192;
  localparam int unsigned PAGE_W = ADDR_W - 12;
  axi_if #(.ADDR_W(ADDR_W), .DATA_W(DATA_W), .ID_W(1)) socket ();
  axi_if #(.ADDR_W(ADDR_W), .DATA_W(DATA_W), .ID_W(1)) mem ();
  logic idle, memory_quiet, socket_quiet;

  window_t window;
  assign window.base = {(PAGE_W - 2)'(0), first, 12'd0};
  assign window.size = {(PAGE_W - 3)'(0), pages, 12'd0};
  wire [3:0] end_page = 4'(first) + 4'(pages);

  axi_window #(.DATA_W(DATA_W), .ID_W(1), .READ_BEATS(4), .WRITE_BEATS(4), .OUTSTANDING(2), .AHEAD(2)) dut (
      .clk, .rst, .window, .decouple, .socket, .mem, .read_violation(), .write_violation(), .idle
  );
  axi_memory_rules #(.DATA_W(DATA_W), .FORBIDDEN(PAGE_W'(FORBIDDEN))) memory (
      .clk, .rst, .free(memory_free), .mem, .quiet(memory_quiet)
  );
  axi_master_rules #(.DATA_W(DATA_W), .DEPTH(4), .POLITE(1'b0)) kernel (
      .clk, .rst, .forget(decouple), .free(socket_free), .addr({(ADDR_W - 14)'(0), beat, 10'd0}), .len(8'(len)), .id, .bus(socket), .quiet(socket_quiet)
  );

  logic started_q = 1'b0;
  logic decouple_q;
  always_ff @(posedge clk) begin
    started_q  <= 1'b1;
    decouple_q <= decouple && !rst;
    if (!started_q) assume (rst);
    else if (!rst) begin
      assume (4'(first) > 4'(FORBIDDEN) || end_page <= 4'(FORBIDDEN));
      if (decouple_q && !decouple) assume (idle);
      if (idle) assert (memory_quiet);
      if (idle && !decouple) assert (socket_quiet);
      if (REACH) assert (!(mem.wvalid && mem.rvalid && mem.rready && socket.bvalid && socket.bresp == AXI_SLVERR));
    end
  end
endmodule
