// SPDX-License-Identifier: Apache-2.0

// Lets a socket reach the pages [base, base + size) of memory and nothing else (architecture: nobody reaches what is not
// theirs). A burst that is not wholly inside never reaches memory: a write's data is drained and answered with SLVERR, a
// read gets SLVERR beats of ones. The refusal waits until earlier bursts of its direction are answered, so that responses
// keep their order.
//
// Latency: AW, AR and W 1 cycle (W after its AW), R and B none; one beat a cycle. A burst every 2 cycles in each direction: so the
// kernel does not hear of memory's `ready` in the same cycle. When memory stops, the socket stops.
//
// `decouple` cuts the socket off at any moment, in the middle of a burst too: nothing new is taken, write data that is
// still owed goes out with no byte enabled, responses are swallowed. When `idle` is high again nothing of the past is under
// way; then `decouple` may fall. From its first cycle on, the socket's signals may do anything (it may be in reset).
module axi_window
  import memory_pkg::*;
  import compute_pkg::*;
#(
    parameter int unsigned DATA_W      = 512,
    parameter int unsigned ID_W        = 4,
    parameter int unsigned OUTSTANDING = 64    // bursts under way in each direction; power of two
) (
    input  logic    clk,
    input  logic    rst,
    input  window_t window,            // whole pages of 4 KiB; changes only while idle
    input  logic    decouple,
    axi_if.slave    socket,
    axi_if.master   mem,
    output logic    read_violation,    // pulse: a read was refused
    output logic    write_violation,   // pulse: a write was refused
    output logic    idle               // nothing under way
);
  localparam int unsigned PAGE_W = 12;
  localparam int unsigned LANE_W = $clog2(DATA_W / 8);
  localparam int unsigned COUNT_W = $clog2(OUTSTANDING) + 1;

  typedef logic [ADDR_W-PAGE_W:0] page_t;   // one bit more: the end of memory has a number too
  typedef logic [COUNT_W-1:0]     count_t;
  typedef struct packed {
    logic [ADDR_W-PAGE_W-1:0] page;
    logic [PAGE_W-LANE_W-1:0] in_page;
  } beat_t;                                 // which beat of memory
  typedef struct packed {
    logic            inside_;
    logic [ID_W-1:0] id;
    addr_t           addr;
    logic [7:0]      len;
  } request_t;

  page_t first_page, end_page;
  assign first_page = page_t'(window.base[ADDR_W-1:PAGE_W]);
  assign end_page   = first_page + page_t'(window.size[ADDR_W-1:PAGE_W]);

  // An AXI burst lies in one page; one that does not is refused too.
  function automatic logic is_inside(beat_t beat, logic [7:0] len, page_t from, page_t to);
    logic [PAGE_W:0] last_beat;
    last_beat = (PAGE_W + 1)'(beat.in_page) + (PAGE_W + 1)'(len);
    return page_t'(beat.page) >= from && page_t'(beat.page) < to && last_beat < (PAGE_W + 1)'(1 << (PAGE_W - LANE_W));
  endfunction

  // ---- read ----
  request_t   ar_q, ar_d;
  logic       ar_valid_q, ar_load, ar_done, ar_refusing, reads_full, reads_none_q;
  count_t     reads_q, reads_d;
  logic [7:0] refused_beat_q;

  assign reads_full  = reads_q[COUNT_W-1];
  assign ar_refusing = ar_valid_q && !ar_q.inside_ && reads_none_q;
  assign ar_done     = (mem.arvalid && mem.arready) || (ar_refusing && (decouple || (socket.rready && socket.rlast)));
  assign socket.arready = !decouple && !ar_valid_q;
  assign ar_load        = socket.arvalid && socket.arready;

  assign mem.arvalid = ar_valid_q && ar_q.inside_ && !reads_full;
  assign mem.araddr  = ar_q.addr;
  assign mem.arid    = ar_q.id;
  assign mem.arlen   = ar_q.len;

  assign socket.rvalid = !decouple && (mem.rvalid || ar_refusing);
  assign socket.rdata  = ar_refusing ? '1 : mem.rdata;
  assign socket.rid    = ar_refusing ? ar_q.id : mem.rid;
  assign socket.rresp  = ar_refusing ? AXI_SLVERR : mem.rresp;
  assign socket.rlast  = ar_refusing ? refused_beat_q == ar_q.len : mem.rlast;
  assign mem.rready    = decouple || socket.rready;

  assign ar_d = '{
      inside_: is_inside(socket.araddr[ADDR_W-1:LANE_W], socket.arlen, first_page, end_page),
      id: socket.arid, addr: socket.araddr, len: socket.arlen
  };

  assign reads_d = reads_q + count_t'(mem.arvalid && mem.arready) - count_t'(mem.rvalid && mem.rready && mem.rlast);

  always_ff @(posedge clk) begin
    if (ar_load) ar_q <= ar_d;
    if (rst) begin
      ar_valid_q     <= 1'b0;
      reads_q        <= '0;
      reads_none_q   <= 1'b1;
      refused_beat_q <= '0;
    end else begin
      if (ar_load || ar_done) ar_valid_q <= ar_load;
      reads_q      <= reads_d;
      reads_none_q <= reads_d == '0;
      if (ar_done) refused_beat_q <= '0;
      else if (ar_refusing && socket.rready) refused_beat_q <= refused_beat_q + 1'b1;
    end
  end

  // ---- write ----
  // A burst counts from the moment it is taken; its data may go as soon as its address is shown.
  request_t   aw_q, aw_d;
  logic       aw_valid_q, aw_load, aw_done, aw_refusing, drained_q, writes_full, writes_none_q;
  count_t     writes_q, writes_d;
  logic [7:0] w_beat_q;
  logic       w_free, w_move, w_last;

  stream_if #(.T(logic [7:0])) owed_in ();
  stream_if #(.T(logic [7:0])) owed ();      // length of each burst whose data is not through yet
  stream_fifo #(.T(logic [7:0]), .DEPTH(OUTSTANDING)) owed_data (.clk, .rst, .in(owed_in), .out(owed), .empty());

  assign aw_d = '{
      inside_: is_inside(socket.awaddr[ADDR_W-1:LANE_W], socket.awlen, first_page, end_page),
      id: socket.awid, addr: socket.awaddr, len: socket.awlen
  };

  assign writes_full = writes_q[COUNT_W-1];
  assign aw_refusing = aw_valid_q && !aw_q.inside_ && writes_none_q;
  assign aw_done     = (mem.awvalid && mem.awready) || (aw_refusing && (decouple || (drained_q && socket.bready)));
  assign socket.awready = !decouple && !aw_valid_q && !writes_full;
  assign aw_load        = socket.awvalid && socket.awready;
  assign owed_in.valid  = aw_load && aw_d.inside_;
  assign owed_in.data   = socket.awlen;

  assign mem.awvalid = aw_valid_q && aw_q.inside_;
  assign mem.awaddr  = aw_q.addr;
  assign mem.awid    = aw_q.id;
  assign mem.awlen   = aw_q.len;

  assign w_free        = !mem.wvalid || mem.wready;
  assign w_move        = owed.valid && w_free && (socket.wvalid || decouple);
  assign w_last        = w_beat_q == owed.data;
  assign owed.ready    = w_move && w_last;
  assign socket.wready = (owed.valid && w_free && !decouple) || (aw_refusing && !drained_q);

  assign socket.bvalid = !decouple && (mem.bvalid || (aw_refusing && drained_q));
  assign socket.bid    = aw_refusing ? aw_q.id : mem.bid;
  assign socket.bresp  = aw_refusing ? AXI_SLVERR : mem.bresp;
  assign mem.bready    = decouple || socket.bready;

  assign writes_d = writes_q + count_t'(aw_load && aw_d.inside_) - count_t'(mem.bvalid && mem.bready);

  always_ff @(posedge clk) begin
    if (aw_load) aw_q <= aw_d;
    if (w_move) begin
      mem.wdata <= socket.wdata;
      mem.wstrb <= decouple ? '0 : socket.wstrb;
      mem.wlast <= w_last;
    end
    if (rst) begin
      aw_valid_q    <= 1'b0;
      writes_q      <= '0;
      writes_none_q <= 1'b1;
      drained_q     <= 1'b0;
      w_beat_q      <= '0;
      mem.wvalid    <= 1'b0;
    end else begin
      if (aw_load || aw_done) aw_valid_q <= aw_load;
      writes_q      <= writes_d;
      writes_none_q <= writes_d == '0;
      if (aw_done) drained_q <= 1'b0;
      else if (aw_refusing && socket.wvalid && socket.wlast) drained_q <= 1'b1;
      if (w_move) w_beat_q <= w_last ? '0 : w_beat_q + 1'b1;
      if (w_free) mem.wvalid <= w_move;
    end
  end

  always_ff @(posedge clk) begin
    read_violation  <= !rst && ar_load && !ar_d.inside_;
    write_violation <= !rst && aw_load && !aw_d.inside_;
  end

  assign idle = !ar_valid_q && reads_none_q && !aw_valid_q && writes_none_q;

  always_ff @(posedge clk) begin
    if (!rst) begin
      assert (window.base[PAGE_W-1:0] == '0 && window.size[PAGE_W-1:0] == '0) else $error("a window is whole pages");
      assert (!owed_in.valid || owed_in.ready);
      if (w_move && !decouple) assert (socket.wlast == w_last) else $error("WLAST is not where AWLEN says");
    end
  end
endmodule
