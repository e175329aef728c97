// SPDX-License-Identifier: Apache-2.0

// For proofs: a master that does whatever AXI allows (with POLITE 0 also what it does not: it withdraws and changes what it offers, and its
// data knows no order), at times of the solver's choice, and asserts the rules of its slave: responses stay until they are
// taken, each read gets as many beats as ARLEN says, each write one response after all its data, in order and with their IDs.
// Up to DEPTH bursts under way in each direction. Its writes' data follows the address, one beat a cycle, if POLITE.
module axi_master_rules
  import memory_pkg::*;
#(
    parameter int unsigned DATA_W = 16,
    parameter int unsigned ID_W = 1,
    parameter int unsigned DEPTH = 2,
    parameter bit POLITE = 1'b1
) (
    input  logic       clk,
    input  logic       rst,
    input  logic       forget,   // the past is over: nothing comes for what was asked
    input  logic [4:0] free,     // AR, R, AW, W, B move
    input  addr_t      addr,
    input  logic [7:0] len,
    input  logic [ID_W-1:0] id,
    axi_if.master      bus,
    output logic       quiet     // all that was asked is answered
);
  typedef logic [2:0] count_t;
  typedef struct packed {
    logic [ID_W-1:0] id;
    logic [7:0]      len;
  } burst_t;
  typedef struct packed {
    addr_t  addr;
    burst_t burst;
  } request_t;

  burst_t [DEPTH-1:0] reads_q, writes_q;
  count_t             read_count_q, write_count_q, whole_q;
  logic [7:0]         r_beat_q, w_beat_q;
  logic               ar_waits_q, aw_waits_q, w_waits_q, r_waits_q, b_waits_q;
  request_t           ar_q, aw_q, ar_now, aw_now;
  logic [ID_W+2:0]    r_q;
  logic [ID_W+1:0]    b_q;

  wire request_t fresh = '{addr: addr, burst: '{id: id, len: len}};
  assign ar_now = POLITE && ar_waits_q ? ar_q : fresh;
  assign aw_now = POLITE && aw_waits_q ? aw_q : fresh;

  wire owed = whole_q != write_count_q;
  wire w_last = w_beat_q == writes_q[whole_q].len;
  assign bus.arvalid = (free[0] || (POLITE && ar_waits_q)) && read_count_q < count_t'(DEPTH);
  assign bus.araddr  = ar_now.addr;
  assign bus.arlen   = ar_now.burst.len;
  assign bus.arid    = ar_now.burst.id;
  assign bus.rready  = free[1];
  assign bus.awvalid = (free[2] || (POLITE && aw_waits_q)) && write_count_q < count_t'(DEPTH);
  assign bus.awaddr  = aw_now.addr;
  assign bus.awlen   = aw_now.burst.len;
  assign bus.awid    = aw_now.burst.id;
  assign bus.wvalid  = POLITE ? owed : free[3];
  assign bus.wlast   = POLITE ? w_last : len[0];
  assign bus.wdata   = DATA_W'(POLITE ? w_beat_q[0] : len[1]);
  assign bus.wstrb   = POLITE ? '1 : {DATA_W / 8{len[2]}};
  assign bus.bready  = free[4];

  wire ar = bus.arvalid && bus.arready;
  wire aw = bus.awvalid && bus.awready;
  wire w = bus.wvalid && bus.wready;
  wire r = bus.rvalid && bus.rready;
  wire b = bus.bvalid && bus.bready;
  wire r_ends = r && bus.rlast;
  assign quiet = read_count_q == '0 && write_count_q == '0;

  always_ff @(posedge clk) begin
    ar_q <= ar_now;
    aw_q <= aw_now;
    if (r_ends) for (int unsigned i = 0; i + 1 < DEPTH; i++) reads_q[i] <= reads_q[i+1];
    if (ar) reads_q[read_count_q-count_t'(r_ends)] <= ar_now.burst;
    if (b) for (int unsigned i = 0; i + 1 < DEPTH; i++) writes_q[i] <= writes_q[i+1];
    if (aw) writes_q[write_count_q-count_t'(b)] <= aw_now.burst;
    r_q <= {bus.rid, bus.rresp, bus.rlast};
    b_q <= {bus.bid, bus.bresp};
    if (rst || forget) begin
      read_count_q  <= '0;
      write_count_q <= '0;
      whole_q       <= '0;
      r_beat_q      <= '0;
      w_beat_q      <= '0;
      ar_waits_q    <= 1'b0;
      aw_waits_q    <= 1'b0;
      w_waits_q     <= 1'b0;
      r_waits_q     <= 1'b0;
      b_waits_q     <= 1'b0;
    end else begin
      ar_waits_q    <= bus.arvalid && !bus.arready;
      aw_waits_q    <= bus.awvalid && !bus.awready;
      r_waits_q     <= bus.rvalid && !bus.rready;
      b_waits_q     <= bus.bvalid && !bus.bready;
      read_count_q  <= read_count_q + count_t'(ar) - count_t'(r_ends);
      write_count_q <= write_count_q + count_t'(aw) - count_t'(b);
      whole_q       <= whole_q + count_t'(w && w_last) - count_t'(b);
      if (r) r_beat_q <= bus.rlast ? '0 : r_beat_q + 1'b1;
      if (w) w_beat_q <= w_last ? '0 : w_beat_q + 1'b1;
      if (r_waits_q) assert (bus.rvalid && r_q == {bus.rid, bus.rresp, bus.rlast});
      if (b_waits_q) assert (bus.bvalid && b_q == {bus.bid, bus.bresp});
      if (bus.rvalid) begin
        assert (read_count_q != '0 && bus.rid == reads_q[0].id && bus.rlast == (r_beat_q == reads_q[0].len));
      end
      if (bus.bvalid) assert (whole_q != '0 && bus.bid == writes_q[0].id);
      if (w) assert (owed);
    end
  end
endmodule
