// SPDX-License-Identifier: Apache-2.0

// For proofs: a memory that does whatever AXI and the fabric allow, at times of the solver's choice, and asserts the rules of its
// master: valid stays until ready with a stable payload, no burst crosses 4 KiB, WLAST is where AWLEN says; responses are
// taken in the cycle in which they come (or at most R_WAIT and B_WAIT later), data follows its address at once (or at most W_LATE later).
// In order; up to DEPTH bursts under way in each direction. W is taken only after its AW. No burst begins in page FORBIDDEN.
module axi_memory_rules
  import memory_pkg::*;
#(
    parameter int unsigned DATA_W = 16,
    parameter int unsigned ID_W = 1,
    parameter int unsigned DEPTH = 2,
    parameter int unsigned R_WAIT = 0,
    parameter int unsigned B_WAIT = 0,
    parameter int unsigned W_LATE = 0,
    parameter logic [ADDR_W-13:0] FORBIDDEN = '1
) (
    input  logic       clk,
    input  logic       rst,
    input  logic [6:0] free,     // AR, R, AW, W, B move; errors of R and B
    axi_if.slave       mem,
    output logic       quiet     // nothing under way, nothing offered
);
  localparam int unsigned LANE_W = $clog2(DATA_W / 8);
  typedef logic [2:0] count_t;

  typedef struct packed {
    logic [ID_W-1:0] id;
    logic [7:0]      len;
  } burst_t;

  function automatic logic in_page(addr_t addr, logic [7:0] len);
    return 13'(addr[11:LANE_W]) + 13'(len) < 13'(1 << (12 - LANE_W));
  endfunction

  // ---- read ----
  burst_t [DEPTH-1:0] reads_q;
  count_t             read_count_q, r_wait_q;
  logic [7:0]         r_beat_q;
  logic               r_shown_q, r_error_q;
  wire ar = mem.arvalid && mem.arready;
  wire r = mem.rvalid && mem.rready;
  wire r_ends = r && mem.rlast;

  assign mem.arready = free[0] && read_count_q < count_t'(DEPTH);
  assign mem.rvalid  = read_count_q != '0 && (free[1] || r_shown_q);
  assign mem.rid     = reads_q[0].id;
  assign mem.rlast   = r_beat_q == reads_q[0].len;
  assign mem.rresp   = (r_shown_q ? r_error_q : free[5]) ? AXI_SLVERR : AXI_OKAY;
  assign mem.rdata   = DATA_W'(r_beat_q[0]);

  // ---- write ----
  burst_t [DEPTH-1:0] writes_q;
  count_t             write_count_q, whole_q, b_wait_q, w_late_q;   // whole: those at the front whose data is complete
  logic [7:0]         w_beat_q;
  logic               b_shown_q, b_error_q;
  wire aw = mem.awvalid && mem.awready;
  wire w = mem.wvalid && mem.wready;
  wire b = mem.bvalid && mem.bready;
  wire owed = whole_q != write_count_q;
  wire w_last = w_beat_q == writes_q[whole_q].len;
  wire late = owed && !mem.wvalid;

  assign mem.awready = free[2] && write_count_q < count_t'(DEPTH);
  assign mem.wready  = free[3] && owed;
  assign mem.bvalid  = whole_q != '0 && (free[4] || b_shown_q);
  assign mem.bid     = writes_q[0].id;
  assign mem.bresp   = (b_shown_q ? b_error_q : free[6]) ? AXI_SLVERR : AXI_OKAY;

  assign quiet = read_count_q == '0 && write_count_q == '0 && !mem.arvalid && !mem.awvalid && !mem.wvalid;

  always_ff @(posedge clk) begin
    if (r_ends) for (int unsigned i = 0; i + 1 < DEPTH; i++) reads_q[i] <= reads_q[i+1];
    if (ar) reads_q[read_count_q-count_t'(r_ends)] <= '{id: mem.arid, len: mem.arlen};
    if (b) for (int unsigned i = 0; i + 1 < DEPTH; i++) writes_q[i] <= writes_q[i+1];
    if (aw) writes_q[write_count_q-count_t'(b)] <= '{id: mem.awid, len: mem.awlen};
    r_error_q <= mem.rresp[1];
    b_error_q <= mem.bresp[1];
    if (rst) begin
      read_count_q  <= '0;
      r_beat_q      <= '0;
      r_shown_q     <= 1'b0;
      write_count_q <= '0;
      whole_q       <= '0;
      w_beat_q      <= '0;
      b_shown_q     <= 1'b0;
      r_wait_q      <= '0;
      b_wait_q      <= '0;
      w_late_q      <= '0;
    end else begin
      read_count_q <= read_count_q + count_t'(ar) - count_t'(r_ends);
      if (r) r_beat_q <= mem.rlast ? '0 : r_beat_q + 1'b1;
      r_shown_q     <= mem.rvalid && !mem.rready;
      write_count_q <= write_count_q + count_t'(aw) - count_t'(b);
      whole_q       <= whole_q + count_t'(w && w_last) - count_t'(b);
      if (w) w_beat_q <= w_last ? '0 : w_beat_q + 1'b1;
      b_shown_q <= mem.bvalid && !mem.bready;
      r_wait_q  <= mem.rvalid && !mem.rready ? r_wait_q + 1'b1 : '0;
      b_wait_q  <= mem.bvalid && !mem.bready ? b_wait_q + 1'b1 : '0;
      w_late_q  <= late ? w_late_q + 1'b1 : '0;
    end
  end

  // ---- the rules ----
  typedef struct packed {
    addr_t           addr;
    logic [ID_W-1:0] id;
    logic [7:0]      len;
  } address_t;
  typedef struct packed {
    logic last;
    logic strobe;     // one of each stands for all
    logic data;
  } data_t;
  wire address_t ar_now = '{addr: mem.araddr, id: mem.arid, len: mem.arlen};
  wire address_t aw_now = '{addr: mem.awaddr, id: mem.awid, len: mem.awlen};
  wire data_t w_now = '{last: mem.wlast, strobe: mem.wstrb[0], data: mem.wdata[0]};
  address_t ar_q, aw_q;
  data_t    w_q;
  logic     ar_waits_q, aw_waits_q, w_waits_q;

  always_ff @(posedge clk) begin
    ar_q       <= ar_now;
    aw_q       <= aw_now;
    w_q        <= w_now;
    ar_waits_q <= !rst && mem.arvalid && !mem.arready;
    aw_waits_q <= !rst && mem.awvalid && !mem.awready;
    w_waits_q  <= !rst && mem.wvalid && !mem.wready;
    if (!rst) begin
      if (ar_waits_q) assert (mem.arvalid && ar_now == ar_q);
      if (aw_waits_q) assert (mem.awvalid && aw_now == aw_q);
      if (w_waits_q) assert (mem.wvalid && w_now == w_q);
      if (mem.arvalid) assert (in_page(mem.araddr, mem.arlen) && mem.araddr[ADDR_W-1:12] != FORBIDDEN);
      if (mem.awvalid) assert (in_page(mem.awaddr, mem.awlen) && mem.awaddr[ADDR_W-1:12] != FORBIDDEN);
      if (w) assert (mem.wlast == w_last);
      if (mem.rvalid && !mem.rready) assert (r_wait_q < count_t'(R_WAIT));
      if (mem.bvalid && !mem.bready) assert (b_wait_q < count_t'(B_WAIT));
      if (late) assert (w_late_q < count_t'(W_LATE));
    end
  end
endmodule
