// SPDX-License-Identifier: Apache-2.0

// N masters on one memory, round robin by burst; reads and writes are independent. The ID of a burst is extended at its high end by the
// index of its master, which routes the responses back. Throughput: one burst and one beat a cycle in each direction, also for a single
// master. Latency: AR 1 cycle, AW 1, W at least 1 after its AW; R and B pass in the same cycle.
//
// Data goes to memory in the order of the addresses, and all masters share R and B. So each master must follow this rule: the data of a
// write is available before its address is issued, and R and B are accepted in the cycle in which they are valid. Then no master delays
// another by stalling. `others_write` is for a master with the lowest priority (axi_clear): 1 cycle behind the requests of the others.
module axi_mux
  import memory_pkg::*;
#(
    parameter int unsigned N           = 2,
    parameter int unsigned DATA_W      = 512,
    parameter int unsigned ID_W        = 4,                          // of the masters
    parameter int unsigned OUTSTANDING = 32,                         // write bursts whose data is not transferred yet; power of two
    parameter int unsigned BACKGROUND  = N                           // the master that works in the background; N: none
) (
    input  logic  clk,
    input  logic  rst,
    axi_if.slave  in[N],
    axi_if.master out,         // ID_W + axi_mux_index_w(N) bits of ID
    output logic  others_write // a master other than BACKGROUND requests a write, or has write data outstanding
);
  localparam int unsigned INDEX_W = axi_mux_index_w(N);

  typedef logic [INDEX_W-1:0] index_t;
  typedef struct packed {
    index_t          index;
    logic [ID_W-1:0] id;
    addr_t           addr;
    logic [7:0]      len;
  } request_t;

  // ---- write: addresses round robin, data in the order of the addresses ----
  stream_if #(.T(request_t)) aw_in[N] ();
  stream_if #(.T(request_t)) aw ();
  stream_if #(.T(request_t)) aw_fork[2] ();
  stream_if #(.T(index_t)) turn_in ();
  stream_if #(.T(index_t)) turn ();

  stream_arbiter #(.T(request_t), .N(N)) aw_arbiter (.clk, .rst, .in(aw_in), .last('1), .out(aw));
  stream_fork #(.T(request_t), .N(2)) aw_both (.clk, .rst, .in(aw), .out(aw_fork));
  stream_fifo #(.T(index_t), .DEPTH(OUTSTANDING)) turns (.clk, .rst, .in(turn_in), .out(turn), .empty());

  assign out.awvalid      = aw_fork[0].valid;
  assign out.awid         = {aw_fork[0].data.index, aw_fork[0].data.id};
  assign out.awaddr       = aw_fork[0].data.addr;
  assign out.awlen        = aw_fork[0].data.len;
  assign aw_fork[0].ready = out.awready;
  assign turn_in.valid    = aw_fork[1].valid;
  assign turn_in.data     = aw_fork[1].data.index;
  assign aw_fork[1].ready = turn_in.ready;

  typedef struct packed {
    logic                last;
    logic [DATA_W/8-1:0] strb;
    logic [DATA_W-1:0]   data;
  } write_beat_t;

  write_beat_t  w[N];
  logic [N-1:0] w_valid;
  logic         w_free, w_move;

  assign w_free     = !out.wvalid || out.wready;
  assign w_move     = turn.valid && w_free && w_valid[turn.data];
  assign turn.ready = w_move && w[turn.data].last;

  always_ff @(posedge clk) begin
    if (w_move) {out.wlast, out.wstrb, out.wdata} <= w[turn.data];
    if (rst) out.wvalid <= 1'b0;
    else if (w_free) out.wvalid <= w_move;
  end

  // ---- writes of other masters than BACKGROUND ----
  logic [N-1:0]               asks;
  logic [$clog2(OUTSTANDING):0] others_q;   // bursts whose data is not transferred yet, including the queue's output register
  wire others_in = turn_in.valid && turn_in.ready && 32'(turn_in.data) != BACKGROUND;
  wire others_out = turn.ready && 32'(turn.data) != BACKGROUND;
  always_ff @(posedge clk) begin
    others_write <= |asks || aw.valid && 32'(aw.data.index) != BACKGROUND || others_q != '0;
    if (rst) others_q <= '0;
    else others_q <= others_q + $bits(others_q)'(others_in) - $bits(others_q)'(others_out);
  end

  // ---- read ----
  stream_if #(.T(request_t)) ar_in[N] ();
  stream_if #(.T(request_t)) ar ();
  stream_arbiter #(.T(request_t), .N(N)) ar_arbiter (.clk, .rst, .in(ar_in), .last('1), .out(ar));
  assign out.arvalid = ar.valid;
  assign out.arid    = {ar.data.index, ar.data.id};
  assign out.araddr  = ar.data.addr;
  assign out.arlen   = ar.data.len;
  assign ar.ready    = out.arready;

  // ---- responses ----
  index_t       b_index, r_index;
  logic [N-1:0] b_ready, r_ready;
  assign b_index    = out.bid[ID_W+:INDEX_W];
  assign r_index    = out.rid[ID_W+:INDEX_W];
  assign out.bready = b_ready[b_index];
  assign out.rready = r_ready[r_index];

  for (genvar i = 0; i < N; i++) begin : g_master
    assign aw_in[i].valid = in[i].awvalid;
    assign aw_in[i].data  = '{index: index_t'(i), id: in[i].awid, addr: in[i].awaddr, len: in[i].awlen};
    assign in[i].awready  = aw_in[i].ready;

    assign asks[i]        = in[i].awvalid && i != BACKGROUND;

    assign w_valid[i]     = in[i].wvalid;
    assign w[i]           = '{last: in[i].wlast, strb: in[i].wstrb, data: in[i].wdata};
    assign in[i].wready   = turn.valid && w_free && turn.data == index_t'(i);

    assign ar_in[i].valid = in[i].arvalid;
    assign ar_in[i].data  = '{index: index_t'(i), id: in[i].arid, addr: in[i].araddr, len: in[i].arlen};
    assign in[i].arready  = ar_in[i].ready;

    assign in[i].bvalid   = out.bvalid && b_index == index_t'(i);
    assign in[i].bid      = out.bid[ID_W-1:0];
    assign in[i].bresp    = out.bresp;
    assign b_ready[i]     = in[i].bready;

    assign in[i].rvalid   = out.rvalid && r_index == index_t'(i);
    assign in[i].rid      = out.rid[ID_W-1:0];
    assign in[i].rdata    = out.rdata;
    assign in[i].rresp    = out.rresp;
    assign in[i].rlast    = out.rlast;
    assign r_ready[i]     = in[i].rready;
  end
endmodule
