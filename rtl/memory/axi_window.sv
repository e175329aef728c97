// SPDX-License-Identifier: Apache-2.0

// Restricts a socket to the pages [base, base + size) of memory, and enforces the rule of axi_mux for it: a read is issued only when the
// buffer has space for all its beats, a write when all its data has arrived. So responses of memory are accepted in the cycle in which they
// are valid, and data follows its address at once, whatever the socket does.
//
// A burst that is not wholly inside the window of the cycle in which it is accepted never reaches memory: the data of a write is discarded
// and answered with SLVERR, a read is answered with SLVERR beats of ones. The error response waits until earlier bursts of its direction
// are answered, so that responses stay in order.
//
// Latency: AR 1 cycle, R 2; AW 2 after the last beat of its data, W at most 1 after its AW; B 1. One beat a cycle; one burst a cycle for
// writes, every 2 cycles for reads. READ_BEATS and WRITE_BEATS are the sizes of the buffers: at one beat a cycle they must cover the
// latency of memory. When memory stalls, the socket stalls. When the socket stalls, no other master is delayed.
//
// `decouple` disconnects the socket at any moment, also within a burst: nothing new is accepted, writes whose data is not complete are
// discarded, the others are issued, responses are discarded. When `idle` is high again no earlier access is outstanding; then `decouple`
// may fall. From its first cycle on, the socket's signals may have any value (it may be in reset).
module axi_window
  import memory_pkg::*;
  import compute_pkg::*;
#(
    parameter int unsigned DATA_W      = 512,
    parameter int unsigned ID_W        = 4,
    parameter int unsigned READ_BEATS  = 512,   // a power of two, at least the longest burst: that of a page, at most 256
    parameter int unsigned WRITE_BEATS = 512,   // likewise
    parameter int unsigned OUTSTANDING = 64,    // write bursts whose data is complete, until their response is accepted; power of two
    parameter int unsigned AHEAD       = 8      // addresses of writes that wait for their data; power of two
) (
    input  logic    clk,
    input  logic    rst,
    input  window_t window,            // whole pages of 4 KiB
    input  logic    decouple,
    axi_if.slave    socket,
    axi_if.master   mem,
    output logic    read_violation,    // pulse: a read was refused
    output logic    write_violation,   // pulse: a write was refused
    output logic    idle               // nothing outstanding
);
  localparam int unsigned PAGE_W = 12;
  localparam int unsigned LANE_W = $clog2(DATA_W / 8);
  localparam int unsigned READ_W = $clog2(READ_BEATS) + 1;
  localparam int unsigned WRITE_W = $clog2(OUTSTANDING) + 1;
  localparam int unsigned PAGE_BEATS = (1 << PAGE_W) / (DATA_W / 8);
  localparam int unsigned LONGEST = PAGE_BEATS < 256 ? PAGE_BEATS : 256;

  if (READ_BEATS < LONGEST || WRITE_BEATS < LONGEST) begin : g_bad_store
    $fatal(1, "READ_BEATS and WRITE_BEATS must hold the longest burst");
  end

  typedef logic [ADDR_W-PAGE_W:0] page_t;   // one bit more, for the end of memory
  typedef logic [READ_W-1:0]      beats_t;
  typedef logic [WRITE_W-1:0]     count_t;
  typedef struct packed {
    logic [ADDR_W-PAGE_W-1:0] page;
    logic [PAGE_W-LANE_W-1:0] in_page;
  } beat_t;                                 // number of a beat of memory
  typedef struct packed {
    logic            inside_;
    logic [ID_W-1:0] id;
    addr_t           addr;
    logic [7:0]      len;
  } request_t;

  page_t first_page, end_page;
  assign first_page = page_t'(window.base[ADDR_W-1:PAGE_W]);
  assign end_page   = first_page + page_t'(window.size[ADDR_W-1:PAGE_W]);

  // An AXI burst lies in one page; one that does not is rejected as well.
  function automatic logic is_inside(beat_t beat, logic [7:0] len, page_t from, page_t to);
    logic [PAGE_W:0] last_beat;
    last_beat = (PAGE_W + 1)'(beat.in_page) + (PAGE_W + 1)'(len);
    return page_t'(beat.page) >= from && page_t'(beat.page) < to && last_beat < (PAGE_W + 1)'(1 << (PAGE_W - LANE_W));
  endfunction

  // ---- read ----
  typedef struct packed {
    logic              last;
    logic [1:0]        resp;
    logic [ID_W-1:0]   id;
    logic [DATA_W-1:0] data;
  } read_beat_t;

  request_t   ar_q, ar_d;
  logic       ar_valid_q, ar_load, ar_done, ar_asked, ar_refusing, reads_none_q;
  beats_t     reads_q, reads_d, free_q, beats;    // bursts at memory; beats not reserved
  logic [7:0] refused_beat_q;

  stream_if #(.T(read_beat_t)) read_in ();
  stream_if #(.T(read_beat_t)) read_out ();
  stream_fifo #(.T(read_beat_t), .DEPTH(READ_BEATS)) reads (.clk, .rst, .in(read_in), .out(read_out), .empty());

  assign ar_d = '{
      inside_: is_inside(socket.araddr[ADDR_W-1:LANE_W], socket.arlen, first_page, end_page),
      id: socket.arid, addr: socket.araddr, len: socket.arlen
  };
  assign socket.arready = !decouple && !ar_valid_q;
  assign ar_load        = socket.arvalid && socket.arready;

  assign beats       = beats_t'(ar_q.len) + 1'b1;
  assign mem.arvalid = ar_valid_q && ar_q.inside_ && beats <= free_q;   // stable: only an issue reduces the free space
  assign mem.araddr  = ar_q.addr;
  assign mem.arid    = ar_q.id;
  assign mem.arlen   = ar_q.len;
  assign ar_asked    = mem.arvalid && mem.arready;
  assign ar_refusing = ar_valid_q && !ar_q.inside_ && reads_none_q && free_q != '0;
  assign ar_done     = ar_asked || (ar_refusing && read_in.data.last);

  assign read_in.valid = mem.rvalid || ar_refusing;
  assign read_in.data  = ar_refusing ? '{last: refused_beat_q == ar_q.len, resp: AXI_SLVERR, id: ar_q.id, data: '1}
                                     : '{last: mem.rlast, resp: mem.rresp, id: mem.rid, data: mem.rdata};
  assign mem.rready    = 1'b1;

  assign socket.rvalid = read_out.valid && !decouple;
  assign socket.rdata  = read_out.data.data;
  assign socket.rid    = read_out.data.id;
  assign socket.rresp  = read_out.data.resp;
  assign socket.rlast  = read_out.data.last;
  assign read_out.ready = decouple || socket.rready;

  assign reads_d = reads_q + beats_t'(ar_asked) - beats_t'(mem.rvalid && mem.rlast);

  always_ff @(posedge clk) begin
    if (ar_load) ar_q <= ar_d;
    if (rst) begin
      ar_valid_q     <= 1'b0;
      reads_q        <= '0;
      reads_none_q   <= 1'b1;
      refused_beat_q <= '0;
      free_q         <= beats_t'(READ_BEATS);
    end else begin
      if (ar_load || ar_done) ar_valid_q <= ar_load;
      reads_q      <= reads_d;
      reads_none_q <= reads_d == '0;
      if (ar_refusing) refused_beat_q <= ar_done ? '0 : refused_beat_q + 1'b1;
      free_q <= free_q - (ar_asked ? beats : beats_t'(ar_refusing)) + beats_t'(read_out.valid && read_out.ready);
    end
  end

  // ---- write ----
  typedef struct packed {
    logic [1:0]      resp;
    logic [ID_W-1:0] id;
  } answer_t;
  localparam int unsigned STORED_W = DATA_W + DATA_W / 8;   // data and strobes

  stream_if #(.T(request_t)) promised_in ();
  stream_if #(.T(request_t)) promised ();   // until its data is complete,
  stream_if #(.T(request_t)) whole_in ();
  stream_if #(.T(request_t)) whole ();      // then until its address is issued
  stream_if #(.T(answer_t)) answer_in ();
  stream_if #(.T(answer_t)) answer ();
  axis_if #(.DATA_W(STORED_W)) stored_in ();
  axis_if #(.DATA_W(STORED_W)) stored ();
  request_t   aw_d;
  logic       none_promised, w_open, w_take, w_last, refusing, full_q, none_at_memory_q;
  count_t     writes_q, writes_d, at_memory_q, at_memory_d;   // until their response is accepted; at memory without a response
  logic [7:0] w_beat_q;

  stream_fifo #(.T(request_t), .DEPTH(AHEAD)) promises (
      .clk, .rst(rst || decouple), .in(promised_in), .out(promised), .empty(none_promised)
  );
  stream_fifo #(.T(request_t), .DEPTH(OUTSTANDING), .BLOCK_RAM(1'b0)) wholes (.clk, .rst, .in(whole_in), .out(whole), .empty());
  stream_fifo #(.T(answer_t), .DEPTH(OUTSTANDING), .BLOCK_RAM(1'b0)) answers (.clk, .rst, .in(answer_in), .out(answer), .empty());
  axis_store #(.DATA_W(STORED_W), .DEPTH(WRITE_BEATS)) writes (
      .clk, .rst, .in(stored_in), .commit(whole_in.valid), .rollback(decouple), .out(stored), .room(), .empty()
  );

  assign aw_d = '{
      inside_: is_inside(socket.awaddr[ADDR_W-1:LANE_W], socket.awlen, first_page, end_page),
      id: socket.awid, addr: socket.awaddr, len: socket.awlen
  };
  assign promised_in.valid = socket.awvalid && !decouple;
  assign promised_in.data  = aw_d;
  assign socket.awready    = promised_in.ready && !decouple;

  // Data beats are counted by AWLEN; WLAST of the socket is ignored.
  assign w_open           = promised.valid && !full_q && !decouple;
  assign w_take           = w_open && socket.wvalid && stored_in.tready;
  assign w_last           = w_beat_q == promised.data.len;
  assign socket.wready    = w_open && stored_in.tready;
  assign stored_in.tvalid = w_open && socket.wvalid && promised.data.inside_;
  assign stored_in.tdata  = {socket.wstrb, socket.wdata};
  assign stored_in.tkeep  = '1;
  assign stored_in.tlast  = w_last;
  assign stored_in.tuser  = 1'b0;
  assign promised.ready   = w_take && w_last;
  assign whole_in.valid   = promised.ready;
  assign whole_in.data    = promised.data;

  assign mem.awvalid = whole.valid && whole.data.inside_;
  assign mem.awaddr  = whole.data.addr;
  assign mem.awid    = whole.data.id;
  assign mem.awlen   = whole.data.len;
  assign refusing    = whole.valid && !whole.data.inside_ && none_at_memory_q;
  assign whole.ready = whole.data.inside_ ? mem.awready : none_at_memory_q;

  assign mem.wvalid    = stored.tvalid;
  assign {mem.wstrb, mem.wdata} = stored.tdata;
  assign mem.wlast     = stored.tlast;
  assign stored.tready = mem.wready;

  assign answer_in.valid = mem.bvalid || refusing;
  assign answer_in.data  = refusing ? '{resp: AXI_SLVERR, id: whole.data.id} : '{resp: mem.bresp, id: mem.bid};
  assign mem.bready      = 1'b1;
  assign socket.bvalid   = answer.valid && !decouple;
  assign socket.bid      = answer.data.id;
  assign socket.bresp    = answer.data.resp;
  assign answer.ready    = decouple || socket.bready;

  assign writes_d    = writes_q + count_t'(whole_in.valid) - count_t'(answer.valid && answer.ready);
  assign at_memory_d = at_memory_q + count_t'(mem.awvalid && mem.awready) - count_t'(mem.bvalid);

  always_ff @(posedge clk) begin
    if (rst || decouple) w_beat_q <= '0;
    else if (w_take) w_beat_q <= w_last ? '0 : w_beat_q + 1'b1;
    if (rst) begin
      writes_q         <= '0;
      full_q           <= 1'b0;
      at_memory_q      <= '0;
      none_at_memory_q <= 1'b1;
    end else begin
      writes_q         <= writes_d;
      full_q           <= writes_d[WRITE_W-1];
      at_memory_q      <= at_memory_d;
      none_at_memory_q <= at_memory_d == '0;
    end
  end

  always_ff @(posedge clk) begin
    read_violation  <= !rst && ar_load && !ar_d.inside_;
    write_violation <= !rst && promised_in.valid && promised_in.ready && !aw_d.inside_;
  end

  assign idle = !ar_valid_q && free_q == beats_t'(READ_BEATS) && none_promised && writes_q == '0;

  // The buffers cannot overflow.
  always_ff @(posedge clk) begin
    if (!rst) begin
      assert (window.base[PAGE_W-1:0] == '0 && window.size[PAGE_W-1:0] == '0) else $error("the window must consist of whole pages");
      assert (!read_in.valid || read_in.ready);
      assert (!whole_in.valid || whole_in.ready);
      assert (!answer_in.valid || answer_in.ready);
      assert (!(mem.rvalid && ar_refusing) && !(mem.bvalid && refusing));
    end
  end

  logic unused_ok;
  assign unused_ok = &{1'b0, socket.wlast, stored.tkeep, stored.tuser};
endmodule
