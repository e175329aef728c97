// SPDX-License-Identifier: Apache-2.0

// Host memory as a memory of the device: an AXI4 target whose bursts become memory reads and writes on PCI Express. Writes: see
// pcie_requester_writes. Reads: a burst is cut into TLPs of at most the largest read request; each takes a tag and its place in the buffer
// before it is sent, so completions are always taken, in any order; data goes back in the order of the addresses. A read passes no write or
// interrupt (Base Specification 2.4.1): it is sent when those that were inside when it came (`posted_inside`) have gone. `ORDERED` reads
// wait side by side.
//
// With two functions, the highest bit of an address says whose it is (function_of): it becomes the requester, and the function's own settings
// and its reset hold. They share tags and buffer, and the order of the data that goes back.
//
// UR, CA, a poisoned or malformed completion and a timeout are SLVERR of the beats of that TLP. While a function is `off` (bus mastering
// is off, or a function-level reset) nothing of it is sent: its bursts are answered with SLVERR, at once; in `reset` also those whose reads
// were sent. Nothing waits for ever.
//
// Latency: AR to the header 2 cycles, the last beat of its completions to R 4; writes as there. One beat a cycle each way; a read TLP a
// cycle.
module pcie_requester
  import memory_pkg::*;
  import pcie_pkg::*;
#(
    parameter int unsigned DATA_W = 512,
    parameter int unsigned ID_W = 4,
    parameter int unsigned FUNCTIONS = 1,           // 1 or 2
    parameter int unsigned TAGS = 64,               // power of two, 32 to 256
    parameter int unsigned BUFFER_BEATS = 512,      // power of two: at one beat a cycle this must cover the latency of the host
    parameter int unsigned LARGEST = 512,           // bytes of a TLP, if the settings allow more
    parameter int unsigned TIMEOUT = 250_000        // cycles
) (
    input  logic              clk,
    input  logic              rst,
    input  pcie_configs_t     settings,
    input  logic [FUNCTIONS_MAX-1:0] reset,         // a function-level reset is under way
    axi_if.slave              host,
    stream_if.source          write_header,         // tlp_header_t
    axis_if.source            write_data,
    stream_if.source          read_header,          // tlp_header_t
    stream_if.sink            completion_header,    // tlp_header_t
    axis_if.sink              completion_data,
    output logic [5:0]        writes_inside,
    output logic              write_gone,
    input  posted_count_t     posted_inside,        // of all that the device sends
    input  logic [1:0]        posted_gone,
    output requester_events_t events,
    output logic [FUNCTIONS_MAX-1:0] quiet,         // no read of this function waits for completions
    output logic              idle                  // no burst inside
);
  localparam int unsigned BYTES = DATA_W / 8;
  localparam int unsigned LANE_W = $clog2(DATA_W / 32);
  localparam int unsigned TAG_W = $clog2(TAGS);
  localparam int unsigned AT_W = $clog2(BUFFER_BEATS);
  localparam int unsigned ORDERED = 8;              // reads: as many as payloads of 256 bytes fit into the store of writes
  typedef logic [TAG_W-1:0] tag_t;
  typedef logic [AT_W:0] beats_t;

  if (BUFFER_BEATS * BYTES < LARGEST || LARGEST < 128) begin : g_bad
    $fatal(1, "the buffer must hold a read of LARGEST bytes, which are 128 or more");
  end

  // Tags of more than 5 bits are used if no function that sends is denied them: tags are taken in turn by all.
  logic [FUNCTIONS_MAX-1:0] off, short_tags;
  logic [FUNCTIONS_MAX-1:0][2:0] mrrs;
  for (genvar i = 0; i < FUNCTIONS_MAX; i++) begin : g_settings
    assign off[i]        = !settings[i].bus_master || reset[i];
    assign short_tags[i] = settings[i].bus_master && !settings[i].extended_tags;
    assign mrrs[i]       = settings[i].mrrs;
  end
  logic extended_q;
  always_ff @(posedge clk) extended_q <= short_tags == '0;
  axi_if #(.DATA_W(DATA_W), .ID_W(ID_W)) giving ();    // R
  axi_if #(.DATA_W(DATA_W), .ID_W(ID_W)) writer ();
  logic sent, dropped, writes_idle;

  // ---- writes ----
  pcie_requester_writes #(.DATA_W(DATA_W), .ID_W(ID_W), .FUNCTIONS(FUNCTIONS), .LARGEST(LARGEST)) writes (
      .clk, .rst, .settings, .off, .in(writer), .header(write_header), .payload(write_data), .inside_(writes_inside), .gone(write_gone),
      .sent, .dropped, .idle(writes_idle)
  );

  // ---- reads: parts, sent when they have a tag and a place ----
  typedef struct packed {
    read_part_t      part;
    logic [ID_W-1:0] id;
    logic [AT_W-1:0] more;                         // beats of the buffer behind the first
  } placed_t;

  stream_if #(.T(read_burst_t)) burst ();
  stream_if #(.T(read_part_t)) cut ();
  stream_if #(.T(placed_t)) placed ();
  stream_if #(.T(placed_t)) part ();
  stream_if #(.T(tag_t)) tag ();
  logic [ID_W-1:0] cut_id;
  logic            order_room, none_waits;
  beats_t          free_q, beats, freed;
  logic [AT_W-1:0] at_q;
  read_part_t      now, next;
  assign now   = part.data.part;
  assign beats = beats_t'(part.data.more) + 1'b1;

  pcie_read_parts #(.DATA_W(DATA_W), .ID_W(ID_W), .FUNCTIONS(FUNCTIONS), .LARGEST(LARGEST)) parts (
      .clk, .rst, .mrrs, .burst, .burst_id(host.arid), .part(cut), .part_id(cut_id)
  );
  assign next         = cut.data;
  assign placed.valid = cut.valid;
  assign placed.data  = '{
      part: next, id: cut_id, more: AT_W'((12'(next.addr[2+:LANE_W]) + 12'(next.dwords) - 12'd1) >> LANE_W)
  };
  assign cut.ready    = placed.ready;
  tlp_behind_fifo #(.T(placed_t), .DEPTH(ORDERED), .COUNT_W($bits(posted_count_t))) in_order (
      .clk, .rst, .in(placed), .inside_(posted_inside), .gone(posted_gone), .out(part), .empty(none_waits)
  );

  wire function_t func = function_of(now.addr, FUNCTIONS);
  wire may  = part.valid && order_room && !off[func] && tag.valid && beats <= free_q;
  wire asks = may && read_header.ready;
  wire skip = part.valid && order_room && off[func];
  assign read_header.valid = may;
  assign part.ready        = asks || skip;
  assign tag.ready         = asks;
  always_comb begin
    tlp_header_t told;
    told              = '0;
    told.kind         = TLP_MEM_READ;
    told.addr         = bus_address(now.addr, FUNCTIONS);
    told.length       = now.dwords;
    told.first_be     = '1;
    told.last_be      = now.dwords == 11'd1 ? '0 : '1;
    told.requester_id = settings[func].id;
    told.tag          = tlp_tag_t'(tag.data);
    read_header.data  = told;
  end

  // ---- their completions ----
  stream_if #(.T(tag_t)) expired ();
  tag_t look, finish_tag, oldest, drained_tag;
  function_t look_func;
  logic [FUNCTIONS_MAX-1:0] none_busy;
  logic look_waits, look_late, expired_waits, finish, finish_error, finish_given_up, late_end, oldest_done, oldest_error, drained;
  logic write, unexpected, late, completions_idle, return_idle;
  logic [AT_W-1:0]   write_at;
  logic [DATA_W-1:0] write_beat;
  fault_e            cause;

  pcie_tags #(.TAGS(TAGS), .FUNCTIONS(FUNCTIONS), .TIMEOUT(TIMEOUT)) tags (
      .clk, .rst, .extended(extended_q), .next(tag), .next_func(func), .end_all(reset), .look, .look_func, .look_waits, .look_late, .finish, .finish_error,
      .finish_given_up, .late_end, .finish_tag, .expired, .expired_waits, .oldest, .oldest_done, .oldest_error, .drained, .drained_tag, .none_busy
  );
  pcie_completions #(.DATA_W(DATA_W), .TAGS(TAGS), .BEATS(BUFFER_BEATS)) completions (
      .clk, .rst, .settings, .asked(asks), .asked_tag(tag.data), .asked_at(at_q), .asked_addr(now.addr[6:0]),
      .asked_dwords(now.dwords), .header(completion_header), .payload(completion_data), .look, .look_func, .look_waits, .look_late, .expired, .expired_waits,
      .finish, .finish_error, .finish_given_up, .late_end, .finish_tag, .write, .write_at, .write_data(write_beat), .fault(cause), .unexpected,
      .late, .idle(completions_idle)
  );
  pcie_read_return #(.DATA_W(DATA_W), .ID_W(ID_W), .TAGS(TAGS), .BEATS(BUFFER_BEATS)) back (
      .clk, .rst, .asked(part.valid && part.ready), .asked_off(skip), .asked_tag(tag.data), .asked_more(part.data.more), .asked_ends(now.ends),
      .asked_id(part.data.id), .room(order_room), .oldest, .oldest_done, .oldest_error, .drained, .drained_tag, .freed, .write, .write_at,
      .write_data(write_beat), .out(giving), .idle(return_idle)
  );

  always_ff @(posedge clk) begin
    if (rst) begin
      free_q <= beats_t'(BUFFER_BEATS);
      at_q   <= '0;
    end else begin
      free_q <= free_q - (asks ? beats : '0) + (drained ? freed : '0);
      if (asks) at_q <= at_q + AT_W'(beats);
    end
  end

  // ---- one port ----
  assign burst.valid    = host.arvalid;
  assign burst.data     = '{addr: host.araddr, len: host.arlen};
  assign host.arready   = burst.ready;
  assign host.rdata     = giving.rdata;
  assign host.rid       = giving.rid;
  assign host.rresp     = giving.rresp;
  assign host.rlast     = giving.rlast;
  assign host.rvalid    = giving.rvalid;
  assign giving.rready  = host.rready;
  assign writer.awaddr  = host.awaddr;
  assign writer.awid    = host.awid;
  assign writer.awlen   = host.awlen;
  assign writer.awvalid = host.awvalid;
  assign host.awready   = writer.awready;
  assign writer.wdata   = host.wdata;
  assign writer.wstrb   = host.wstrb;
  assign writer.wlast   = host.wlast;
  assign writer.wvalid  = host.wvalid;
  assign host.wready    = writer.wready;
  assign host.bid       = writer.bid;
  assign host.bresp     = writer.bresp;
  assign host.bvalid    = writer.bvalid;
  assign writer.bready  = host.bready;

  assign giving.awaddr = '0;
  assign giving.awid = '0;
  assign giving.awlen = '0;
  assign giving.awvalid = '0;
  assign giving.wdata = '0;
  assign giving.wstrb = '0;
  assign giving.wlast = '0;
  assign giving.wvalid = '0;
  assign giving.bready = '0;
  assign giving.araddr = '0;
  assign giving.arid = '0;
  assign giving.arlen = '0;
  assign giving.arvalid = '0;
  assign writer.araddr = '0;
  assign writer.arid = '0;
  assign writer.arlen = '0;
  assign writer.arvalid = '0;
  assign writer.rready = '0;

  assign quiet = none_busy;
  assign idle  = &none_busy && completions_idle && writes_idle && !cut.valid && none_waits && return_idle;

  always_ff @(posedge clk) begin
    events.writes      <= sent;
    events.reads       <= asks;
    events.writes_off  <= dropped;
    events.reads_off   <= skip;
    events.unsupported <= cause == FAULT_UNSUPPORTED;
    events.aborts      <= cause == FAULT_ABORT;
    events.poisoned    <= cause == FAULT_POISONED;
    events.malformed   <= cause == FAULT_MALFORMED;
    events.timeouts    <= cause == FAULT_TIMEOUT;
    events.unexpected  <= unexpected;
    events.late        <= late;
    if (rst) events <= '0;
  end
endmodule
