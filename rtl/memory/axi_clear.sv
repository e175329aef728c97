// SPDX-License-Identifier: Apache-2.0

// Writes zeros to memory in the background: a burst of BURST_BEATS beats is issued when no other master writes (`others_write`, from
// axi_mux), or when it has waited for PATIENCE cycles. One `done` for each command, in order, after its last write response.
//
// Throughput: one beat a cycle while no other master writes, also across commands, if OUTSTANDING bursts cover the latency of memory; about
// BURST_BEATS beats in PATIENCE + 2 * BURST_BEATS cycles while others write continuously. An address is issued when half of the data before
// it has been transferred, so other masters wait for at most one and a half bursts. Latency: 2 cycles from `cmd` to AW and W. Write
// responses are always accepted; `done` must be accepted at once, too.
module axi_clear
  import memory_pkg::*;
#(
    parameter int unsigned DATA_W      = 512,
    parameter int unsigned ID_W        = 4,
    parameter int unsigned BURST_BEATS = 16,    // power of two, at least 4
    parameter int unsigned OUTSTANDING = 32,    // bursts; power of two
    parameter int unsigned PATIENCE    = 256    // power of two
) (
    input  logic     clk,
    input  logic     rst,
    stream_if.sink   cmd,           // dma_cmd_t: whole blocks of BURST_BEATS beats, at least one
    input  logic     others_write,
    axi_if.master    mem,           // write channels; the read channels are unused. All with ID 0
    stream_if.source done,          // dma_done_t
    output logic     idle           // no command inside
);
  localparam int unsigned BEAT_W = $clog2(BURST_BEATS);
  localparam int unsigned BLOCK_W = $clog2(DATA_W / 8) + BEAT_W;
  localparam int unsigned WAIT_W = $clog2(PATIENCE);

  if (BURST_BEATS < 4 || 2 ** BEAT_W != BURST_BEATS || 2 ** BLOCK_W > 4096) begin : g_bad_burst
    $fatal(1, "BURST_BEATS must be a power of two of at least 4, and a burst at most 4096 bytes");
  end

  // ---- next block ----
  logic                      active_q;
  logic [ADDR_W-BLOCK_W-1:0] block_q;
  logic [31-BLOCK_W:0]       left_q;       // blocks of the command, including this one
  wire                       last = left_q == 1;

  // ---- burst ----
  logic              aw_valid_q;
  logic [1:0]        owed_q;               // bursts whose data is not transferred yet: at most 2
  logic [BEAT_W-1:0] beat_q;
  logic [WAIT_W:0]   waited_q;             // cycles waited for other masters
  stream_if #(.T(logic)) end_in ();        // for each outstanding burst: it is the last of its command
  stream_if #(.T(logic)) end_out ();
  logic none_under_way;

  wire due = active_q && (owed_q == 2'd0 || owed_q == 2'd1 && beat_q[BEAT_W-1]);
  wire patient = others_write && !waited_q[WAIT_W];
  wire issue = due && !patient && !aw_valid_q && end_in.ready;

  assign cmd.ready    = !active_q || issue && last;
  assign mem.awvalid  = aw_valid_q;
  assign mem.awlen    = 8'(BURST_BEATS - 1);
  assign mem.awid     = ID_W'(0);
  assign mem.wvalid   = owed_q != 2'd0;
  assign mem.wdata    = '0;
  assign mem.wstrb    = '1;
  assign mem.wlast    = beat_q == BEAT_W'(BURST_BEATS - 1);
  wire moved = mem.wvalid && mem.wready;

  always_ff @(posedge clk) begin
    if (cmd.valid && cmd.ready) begin
      block_q <= cmd.data.addr[ADDR_W-1:BLOCK_W];
      left_q  <= cmd.data.length[31:BLOCK_W];
    end else if (issue) begin
      block_q <= block_q + 1'b1;
      left_q  <= left_q - 1'b1;
    end
    if (issue) mem.awaddr <= {block_q, BLOCK_W'(0)};
    if (rst) begin
      active_q   <= 1'b0;
      aw_valid_q <= 1'b0;
      owed_q     <= '0;
      beat_q     <= '0;
      waited_q   <= '0;
    end else begin
      if (cmd.ready) active_q <= cmd.valid;
      if (!aw_valid_q || mem.awready) aw_valid_q <= issue;
      owed_q <= owed_q + 2'(issue) - 2'(moved && mem.wlast);
      if (moved) beat_q <= beat_q + 1'b1;
      if (issue) waited_q <= '0;
      else if (due && patient) waited_q <= waited_q + 1'b1;
    end
  end

  // ---- outcomes ----
  logic error_q;   // of the command's earlier bursts
  assign end_in.valid  = issue;
  assign end_in.data   = last;
  assign end_out.ready = mem.bvalid;
  stream_fifo #(.T(logic), .DEPTH(OUTSTANDING)) ends (.clk, .rst, .in(end_in), .out(end_out), .empty(none_under_way));

  assign mem.bready = 1'b1;
  assign done.valid = mem.bvalid && end_out.data;
  assign done.data  = '{error: error_q || mem.bresp[1]};
  always_ff @(posedge clk) begin
    if (rst) error_q <= 1'b0;
    else if (mem.bvalid) error_q <= !end_out.data && (error_q || mem.bresp[1]);
  end

  assign idle = !active_q && none_under_way;

  assign mem.arvalid = 1'b0;
  assign mem.araddr  = '0;
  assign mem.arid    = ID_W'(0);
  assign mem.arlen   = '0;
  assign mem.rready  = 1'b0;

  always_ff @(posedge clk) begin
    if (!rst) begin
      assert (!mem.bvalid || end_out.valid) else $error("write response without an outstanding burst");
      assert (!done.valid || done.ready);
      if (cmd.valid) assert (cmd.data.addr[BLOCK_W-1:0] == '0 && cmd.data.length[BLOCK_W-1:0] == '0 && cmd.data.length != '0);
    end
  end

  wire unused = &{1'b0, mem.bid, mem.bresp[0], mem.arready, mem.rid, mem.rdata, mem.rresp, mem.rlast, mem.rvalid};
endmodule
