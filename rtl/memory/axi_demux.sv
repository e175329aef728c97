// SPDX-License-Identifier: Apache-2.0

// One master on M memories, by address. An address outside of all memories is answered with DECERR here. In each direction the outstanding
// bursts of the master are at one memory: a burst for another memory waits until the earlier ones have completed. So responses keep the
// order of the addresses without buffers, and R and B of a memory never wait for those of another.
//
// Latency 0 in all channels, one burst and one beat a cycle to one memory; a change of memory costs the latency of the previous one. The
// master may present data before its address (the rule of axi_mux): the data is offered to the memory of the last accepted address, which
// has no burst to accept it for yet.
module axi_demux
  import memory_pkg::*;
#(
    parameter int unsigned M = 2,
    parameter memory_range_t [M-1:0] MAP = '0,
    parameter int unsigned DATA_W = 512,
    parameter int unsigned ID_W = 4,
    parameter int unsigned OUTSTANDING = 256   // bursts without their last response, in each direction; power of two
) (
    input  logic  clk,
    input  logic  rst,
    axi_if.slave  in,
    axi_if.master out[M]
);
  localparam int unsigned WAYS = M + 1;        // the last way: no memory
  localparam int unsigned COUNT_W = $clog2(OUTSTANDING) + 1;
  typedef logic [WAYS-1:0]    way_t;           // one-hot
  typedef logic [COUNT_W-1:0] count_t;

  function automatic way_t way_of(addr_t addr);
    way_t way;
    way = '0;
    for (int unsigned i = 0; i < M; i++) way[i] = in_range(MAP[i], addr);
    way[M] = !(|way[M-1:0]);
    return way;
  endfunction

  axi_if #(.ADDR_W(ADDR_W), .DATA_W(DATA_W), .ID_W(ID_W)) none ();
  axi_decode_error #(.ID_W(ID_W)) decode_error (.clk, .rst, .in(none));

  // ---- outstanding bursts, and their memory ----
  way_t   ar_way, r_way_q, aw_way, w_way_q;
  count_t reads_q, writes_q;
  logic   may_read, may_write;
  way_t   ar_ready, aw_ready, w_ready, r_valid, b_valid;

  assign ar_way     = way_of(in.araddr);
  assign aw_way     = way_of(in.awaddr);
  assign may_read   = reads_q == '0 || (r_way_q == ar_way && !reads_q[COUNT_W-1]);
  assign may_write  = writes_q == '0 || (w_way_q == aw_way && !writes_q[COUNT_W-1]);
  assign in.arready = may_read && |(ar_way & ar_ready);
  assign in.awready = may_write && |(aw_way & aw_ready);
  assign in.wready  = |(w_way_q & w_ready);
  assign in.rvalid  = |(r_way_q & r_valid);
  assign in.bvalid  = |(w_way_q & b_valid);

  wire read  = in.arvalid && in.arready;
  wire wrote = in.awvalid && in.awready;
  always_ff @(posedge clk) begin
    if (rst) begin
      r_way_q  <= way_t'(1);
      w_way_q  <= way_t'(1);
      reads_q  <= '0;
      writes_q <= '0;
    end else begin
      if (read) r_way_q <= ar_way;
      if (wrote) w_way_q <= aw_way;
      reads_q  <= reads_q + count_t'(read) - count_t'(in.rvalid && in.rready && in.rlast);
      writes_q <= writes_q + count_t'(wrote) - count_t'(in.bvalid && in.bready);
    end
  end

  // ---- responses ----
  typedef struct packed {
    logic [ID_W-1:0]   id;
    logic [1:0]        resp;
    logic              last;
    logic [DATA_W-1:0] data;
  } read_beat_t;
  typedef struct packed {
    logic [ID_W-1:0] id;
    logic [1:0]      resp;
  } answer_t;

  read_beat_t [WAYS-1:0] r;
  answer_t    [WAYS-1:0] b;
  read_beat_t r_now;
  answer_t    b_now;
  always_comb begin
    r_now = '0;
    b_now = '0;
    for (int unsigned i = 0; i < WAYS; i++) begin
      if (r_way_q[i]) r_now |= r[i];
      if (w_way_q[i]) b_now |= b[i];
    end
  end
  assign in.rid   = r_now.id;
  assign in.rresp = r_now.resp;
  assign in.rlast = r_now.last;
  assign in.rdata = r_now.data;
  assign in.bid   = b_now.id;
  assign in.bresp = b_now.resp;

  for (genvar i = 0; i < M; i++) begin : g_way
    assign out[i].arvalid = in.arvalid && may_read && ar_way[i];
    assign out[i].araddr  = in.araddr;
    assign out[i].arid    = in.arid;
    assign out[i].arlen   = in.arlen;
    assign ar_ready[i]    = out[i].arready;
    assign out[i].awvalid = in.awvalid && may_write && aw_way[i];
    assign out[i].awaddr  = in.awaddr;
    assign out[i].awid    = in.awid;
    assign out[i].awlen   = in.awlen;
    assign aw_ready[i]    = out[i].awready;
    assign out[i].wvalid  = in.wvalid && w_way_q[i];
    assign out[i].wdata   = in.wdata;
    assign out[i].wstrb   = in.wstrb;
    assign out[i].wlast   = in.wlast;
    assign w_ready[i]     = out[i].wready;
    assign r_valid[i]     = out[i].rvalid;
    assign r[i]           = '{id: out[i].rid, resp: out[i].rresp, last: out[i].rlast, data: out[i].rdata};
    assign out[i].rready  = in.rready && r_way_q[i];
    assign b_valid[i]     = out[i].bvalid;
    assign b[i]           = '{id: out[i].bid, resp: out[i].bresp};
    assign out[i].bready  = in.bready && w_way_q[i];
  end

  assign none.arvalid = in.arvalid && may_read && ar_way[M];
  assign none.araddr  = in.araddr;
  assign none.arid    = in.arid;
  assign none.arlen   = in.arlen;
  assign ar_ready[M]  = none.arready;
  assign none.awvalid = in.awvalid && may_write && aw_way[M];
  assign none.awaddr  = in.awaddr;
  assign none.awid    = in.awid;
  assign none.awlen   = in.awlen;
  assign aw_ready[M]  = none.awready;
  assign none.wvalid  = in.wvalid && w_way_q[M];
  assign none.wdata   = in.wdata;
  assign none.wstrb   = in.wstrb;
  assign none.wlast   = in.wlast;
  assign w_ready[M]   = none.wready;
  assign r_valid[M]   = none.rvalid;
  assign r[M]         = '{id: none.rid, resp: none.rresp, last: none.rlast, data: none.rdata};
  assign none.rready  = in.rready && r_way_q[M];
  assign b_valid[M]   = none.bvalid;
  assign b[M]         = '{id: none.bid, resp: none.bresp};
  assign none.bready  = in.bready && w_way_q[M];
endmodule
