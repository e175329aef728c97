// SPDX-License-Identifier: Apache-2.0

// Keeps the memory behind it by the code of ecc_pkg: each word of 64 bits is stored with 8 check bits. A beat of `out` has DATA_W
// bits of data and, above them, a byte of check bits for each word, each byte with a strobe, as a DIMM of 72 bits has; always whole
// words are written. A controller that corrects by itself needs none of this.
//
// Read: a word with one flipped bit is corrected; one with more makes the beat SLVERR, with its data as stored. `corrected`: pulse
// for each beat with a corrected word. Latency: AR 1 cycle, R 2 cycles. One beat a cycle.
//
// Write: one beat a cycle; latency 3 cycles from W to W, and an address leaves with its first beat; B in the same cycle. A word of
// which only some bytes are written is read first, corrected, changed and written whole. A beat with such words costs a cycle more.
// Its read begins when no earlier write of the same beat is unanswered, so it gets what that one wrote; meanwhile it and those
// behind it wait in a store of BEATS beats, and reads for up to READS beats are under way. If the beat just before it went to the
// same place, as at the border of two packets, and is unanswered, the rest is taken from that one and nothing is read. If the
// stored word cannot be corrected it stays as it is, so it remains known as bad until it is written whole, and the write is
// answered with SLVERR.
//
// Before a part of a word is written, all of it must have been written once, or memory must have been set to zeros, check bits too.
// When memory stalls, the fabric stalls. `in` follows the rule of axi_mux; on `out` a partial beat can keep its burst's data
// waiting.
module axi_ecc
  import memory_pkg::*;
  import ecc_pkg::*;
#(
    parameter int unsigned DATA_W      = 512,
    parameter int unsigned ID_W        = 4,
    parameter int unsigned BEATS       = 32,   // a power of two, like the two below
    parameter int unsigned READS       = 16,
    parameter int unsigned OUTSTANDING = 32    // write bursts whose data has come, until their response
) (
    input  logic  clk,
    input  logic  rst,
    axi_if.slave  in,
    axi_if.master out,                         // ecc_beat_w(DATA_W) bits of data, ID_W + 1 of ID; all writes have ID 0
    output logic  corrected
);
  localparam int unsigned WORDS = DATA_W / WORD_W;
  localparam int unsigned STROBES = WORD_W / 8;
  localparam int unsigned LANE_W = $clog2(DATA_W / 8);
  localparam int unsigned IN_PAGE_W = 12 - LANE_W;      // beats of a page of 4 KiB, which no burst leaves
  localparam int unsigned TAG_W = 8;

  typedef logic [WORDS-1:0]         words_t;
  typedef logic [ADDR_W-LANE_W-1:0] line_t;             // number of a beat of memory
  typedef logic [IN_PAGE_W-1:0]     in_page_t;
  typedef logic [TAG_W-1:0]         tag_t;              // of a page; others can have the same

  typedef struct packed {
    logic            own;                               // a read for a partial beat
    logic [ID_W-1:0] id;
    addr_t           addr;
    logic [7:0]      len;
  } request_t;

  function automatic tag_t tag(line_t line);
    tag_t t;
    t = '0;
    for (int unsigned i = IN_PAGE_W; i < ADDR_W - LANE_W; i++) t[(i-IN_PAGE_W)%TAG_W] ^= line[i];
    return t;
  endfunction

  // ---- read: those of the fabric, and of partial beats ----
  stream_if #(.T(request_t)) asks[2] ();
  stream_if #(.T(request_t)) ask ();
  logic  own_asks, own_asked;
  line_t own_line;

  assign asks[0].valid = in.arvalid;
  assign asks[0].data  = '{own: 1'b0, id: in.arid, addr: in.araddr, len: in.arlen};
  assign in.arready    = asks[0].ready;
  assign asks[1].valid = own_asks;
  assign asks[1].data  = '{own: 1'b1, id: '0, addr: {own_line, LANE_W'(0)}, len: '0};
  assign own_asked     = own_asks && asks[1].ready;
  stream_arbiter #(.T(request_t), .N(2)) arbiter (.clk, .rst, .in(asks), .last('1), .out(ask));
  assign out.arvalid = ask.valid;
  assign out.arid    = {ask.data.own, ask.data.id};
  assign out.araddr  = ask.data.addr;
  assign out.arlen   = ask.data.len;
  assign ask.ready   = out.arready;

  // ---- read: syndromes in one cycle, corrections in the next ----
  typedef struct packed {
    logic            own;
    logic [ID_W-1:0] id;
    logic            last;
    logic [1:0]      resp;
  } beat_t;
  typedef struct packed {
    words_t            bad;                             // cannot be corrected
    logic [DATA_W-1:0] data;
  } content_t;

  beat_t              raw_q, beat_q;
  logic               raw_valid_q, beat_valid_q, beat_corrected_q, read_moves;
  logic [DATA_W-1:0]  raw_data_q;
  check_t [WORDS-1:0] syndrome_q;
  content_t           content, content_q;
  words_t             was_corrected;

  assign read_moves = !beat_valid_q || beat_q.own || in.rready;
  assign out.rready = read_moves;

  always_comb begin
    decoded_t word;
    for (int unsigned i = 0; i < WORDS; i++) begin
      word = decode(raw_data_q[i*WORD_W+:WORD_W], syndrome_q[i]);
      content.data[i*WORD_W+:WORD_W] = word.data;
      content.bad[i]   = word.uncorrectable || raw_q.resp[1];
      was_corrected[i] = word.corrected && !raw_q.resp[1];
    end
  end

  always_ff @(posedge clk) begin
    if (read_moves) begin
      raw_q      <= '{own: out.rid[ID_W], id: out.rid[ID_W-1:0], last: out.rlast, resp: out.rresp};
      raw_data_q <= out.rdata[DATA_W-1:0];
      for (int unsigned i = 0; i < WORDS; i++) begin
        syndrome_q[i] <= syndrome(out.rdata[i*WORD_W+:WORD_W], out.rdata[DATA_W+i*CHECK_W+:CHECK_W]);
      end
      beat_q           <= raw_q;
      content_q        <= content;
      beat_corrected_q <= |was_corrected;
    end
    if (rst) begin
      raw_valid_q  <= 1'b0;
      beat_valid_q <= 1'b0;
      corrected    <= 1'b0;
    end else begin
      if (read_moves) begin
        raw_valid_q  <= out.rvalid;
        beat_valid_q <= raw_valid_q;
      end
      corrected <= read_moves && beat_valid_q && beat_corrected_q;
    end
  end

  assign in.rvalid = beat_valid_q && !beat_q.own;
  assign in.rid    = beat_q.id;
  assign in.rlast  = beat_q.last;
  assign in.rdata  = content_q.data;
  assign in.rresp  = |content_q.bad && !beat_q.resp[1] ? AXI_SLVERR : beat_q.resp;

  // ---- write: each beat with its place ----
  typedef struct packed {
    logic                first;
    logic                last;
    logic                partial;   // a word of it is
    logic                full;      // every byte is written
    line_t               line;
    logic [DATA_W/8-1:0] strb;
    logic [DATA_W-1:0]   data;
  } place_t;

  stream_if #(.T(request_t)) burst_in ();
  stream_if #(.T(request_t)) burst ();
  stream_if #(.T(request_t)) address_in ();
  stream_if #(.T(request_t)) address ();
  stream_if #(.T(place_t)) place_in ();
  stream_if #(.T(place_t)) place ();
  logic  first_q, takes, partial;
  line_t line, line_q;

  assign burst_in.valid = in.awvalid;
  assign burst_in.data  = '{own: 1'b0, id: in.awid, addr: in.awaddr, len: in.awlen};
  assign in.awready     = burst_in.ready;
  assign burst.ready    = takes && in.wlast;
  stream_fifo #(.T(request_t), .DEPTH(4)) bursts (.clk, .rst, .in(burst_in), .out(burst), .empty());

  wire open = burst.valid && (!first_q || address_in.ready);
  assign place_in.valid   = open && in.wvalid;
  assign in.wready        = open && place_in.ready;
  assign takes            = place_in.valid && place_in.ready;
  assign address_in.valid = takes && first_q;
  assign address_in.data  = burst.data;
  stream_fifo #(.T(request_t), .DEPTH(BEATS), .BLOCK_RAM(1'b0)) addresses (.clk, .rst, .in(address_in), .out(address), .empty());

  assign line = first_q ? burst.data.addr[ADDR_W-1:LANE_W] : line_q;
  always_comb begin
    partial = 1'b0;
    for (int unsigned i = 0; i < WORDS; i++) partial |= |in.wstrb[i*STROBES+:STROBES] && !(&in.wstrb[i*STROBES+:STROBES]);
  end
  assign place_in.data = '{
      first: first_q, last: in.wlast, partial: partial, full: &in.wstrb, line: line, strb: in.wstrb, data: in.wdata
  };

  always_ff @(posedge clk) begin
    if (takes) line_q <= {line[ADDR_W-LANE_W-1:IN_PAGE_W], in_page_t'(line) + 1'b1};
    if (rst) first_q <= 1'b1;
    else if (takes) first_q <= in.wlast;
  end
  stream_slice #(.T(place_t), .SKID(1'b0)) placing (.clk, .rst, .in(place_in), .out(place));

  // ---- write: where the rest of partial words comes from ----
  typedef enum logic [1:0] {
    NOTHING,                        // there is none
    MEMORY,
    BEFORE                          // the beat before
  } source_e;
  typedef struct packed {
    source_e             source;
    logic                first;
    logic                last;
    logic [DATA_W/8-1:0] strb;
    logic [DATA_W-1:0]   data;
  } stored_t;
  typedef struct packed {
    tag_t     tag;
    in_page_t first;
    in_page_t last;
  } range_t;
  localparam int unsigned RANGE_W = $clog2(OUTSTANDING);
  localparam int unsigned READS_W = $clog2(READS);

  range_t [OUTSTANDING-1:0] ranges_q;            // bursts whose data has come, a ring
  logic   [OUTSTANDING-1:0] open_q, meets;       // no response yet
  logic   [RANGE_W-1:0]     newest_q, oldest_q;  // the place of the next one, the one that is answered next
  logic   [RANGE_W:0]       bursts_q;            // in the ring
  logic   [READS_W:0]       reads_q;             // from the request until what came is used
  line_t                    before_q;
  logic                     before_known_q;      // all of that beat of memory is in the beat before
  in_page_t                 begin_q;             // of the burst whose first beat has passed
  logic                     judged_q, meets_q, follows_q;
  logic                     room, passes, answered, result_used;
  source_e                  source;

  stream_if #(.T(stored_t)) stored_in ();
  stream_if #(.T(stored_t)) stored ();

  // Judged in the first cycle of a beat and in each further one. Only responses come meanwhile, so a beat can wait for one too
  // many, never for one too few. Bursts are in the ring when all their data has come: none meets its own.
  wire line_t here = place.data.line;
  wire in_page_t at = in_page_t'(here);
  wire tag_t here_tag = tag(here);
  for (genvar i = 0; i < OUTSTANDING; i++) begin : g_range
    assign meets[i] = open_q[i] && ranges_q[i].tag == here_tag && at >= ranges_q[i].first && at <= ranges_q[i].last;
  end

  assign source   = !place.data.partial ? NOTHING : follows_q ? BEFORE : MEMORY;
  assign room     = stored_in.ready && !(place.data.last && bursts_q[RANGE_W]);
  assign own_asks = place.valid && judged_q && source == MEMORY && room && !meets_q && !reads_q[READS_W];
  assign own_line = here;
  assign passes   = place.valid && room && (source == NOTHING || (judged_q && source == BEFORE) || own_asked);

  assign place.ready     = passes;
  assign stored_in.valid = passes;
  assign stored_in.data  = '{
      source: source, first: place.data.first, last: place.data.last, strb: place.data.strb, data: place.data.data
  };
  stream_fifo #(.T(stored_t), .DEPTH(BEATS), .BLOCK_RAM(1'b0)) stores (.clk, .rst, .in(stored_in), .out(stored), .empty());

  always_ff @(posedge clk) begin
    meets_q   <= |meets;
    follows_q <= before_known_q && here == before_q && bursts_q != '0;
    if (passes) begin
      before_q <= here;
      if (place.data.first) begin_q <= at;
      if (place.data.last) ranges_q[newest_q] <= '{tag: here_tag, first: place.data.first ? at : begin_q, last: at};
    end
    if (rst) begin
      judged_q       <= 1'b0;
      before_known_q <= 1'b0;
      open_q         <= '0;
      bursts_q       <= '0;
      newest_q       <= '0;
      oldest_q       <= '0;
      reads_q        <= '0;
    end else begin
      judged_q <= place.valid && !passes;
      reads_q  <= reads_q + (READS_W + 1)'(own_asked) - (READS_W + 1)'(result_used);
      bursts_q <= bursts_q + (RANGE_W + 1)'(passes && place.data.last) - (RANGE_W + 1)'(answered);
      if (passes) before_known_q <= place.data.partial || place.data.full;
      if (answered) begin
        open_q[oldest_q] <= 1'b0;
        oldest_q         <= oldest_q + 1'b1;
      end
      if (passes && place.data.last) begin
        open_q[newest_q] <= 1'b1;
        newest_q         <= newest_q + 1'b1;
      end
    end
  end

  // ---- write: whole words, with their check bits ----
  typedef struct packed {
    logic            error;
    logic [ID_W-1:0] id;
  } answer_t;

  stream_if #(.T(content_t)) result_in ();
  stream_if #(.T(content_t)) result ();
  stream_if #(.T(answer_t)) answer_in ();
  stream_if #(.T(answer_t)) answer ();
  logic            moves, failed, failed_q;
  logic [ID_W-1:0] id_q;
  content_t        rest, merged;
  words_t          written, bad_q;

  // Never full: a result has been reserved before its read, and there are no more answers than open bursts.
  assign result_in.valid = beat_valid_q && beat_q.own;
  assign result_in.data  = content_q;
  stream_fifo #(.T(content_t), .DEPTH(READS), .BLOCK_RAM(1'b0)) results (.clk, .rst, .in(result_in), .out(result), .empty());
  stream_fifo #(.T(answer_t), .DEPTH(OUTSTANDING), .BLOCK_RAM(1'b0)) answers (.clk, .rst, .in(answer_in), .out(answer), .empty());

  always_comb begin
    logic some;
    rest   = stored.data.source == BEFORE ? '{bad: bad_q, data: out.wdata[DATA_W-1:0]} : result.data;
    failed = failed_q && !stored.data.first;
    for (int unsigned i = 0; i < DATA_W / 8; i++) begin
      merged.data[i*8+:8] = stored.data.strb[i] ? stored.data.data[i*8+:8] : rest.data[i*8+:8];
    end
    for (int unsigned i = 0; i < WORDS; i++) begin
      some          = |stored.data.strb[i*STROBES+:STROBES];
      merged.bad[i] = stored.data.source != NOTHING && rest.bad[i] && !(&stored.data.strb[i*STROBES+:STROBES]);
      written[i]    = some && !merged.bad[i];
      failed       |= some && merged.bad[i];
    end
  end

  assign moves = stored.valid && (!out.wvalid || out.wready) && (!stored.data.first || !out.awvalid || out.awready)
              && (stored.data.source != MEMORY || result.valid);
  assign stored.ready  = moves;
  assign result_used   = moves && stored.data.source == MEMORY;
  assign result.ready  = result_used;
  assign address.ready = moves && stored.data.first;

  always_ff @(posedge clk) begin
    if (moves) begin
      out.wdata[DATA_W-1:0] <= merged.data;
      out.wlast             <= stored.data.last;
      bad_q                 <= merged.bad;
      failed_q              <= failed;
      for (int unsigned i = 0; i < WORDS; i++) begin
        out.wdata[DATA_W+i*CHECK_W+:CHECK_W] <= encode(merged.data[i*WORD_W+:WORD_W]);
        out.wstrb[i*STROBES+:STROBES]        <= {STROBES{written[i]}};
        out.wstrb[DATA_W/8+i]                <= written[i];
      end
    end
    if (address.ready) begin
      out.awaddr <= address.data.addr;
      out.awlen  <= address.data.len;
      id_q       <= address.data.id;
    end
    if (rst) begin
      out.wvalid  <= 1'b0;
      out.awvalid <= 1'b0;
    end else begin
      out.wvalid  <= moves || (out.wvalid && !out.wready);
      out.awvalid <= address.ready || (out.awvalid && !out.awready);
    end
  end
  assign out.awid = '0;

  assign answer_in.valid = moves && stored.data.last;
  assign answer_in.data  = '{error: failed, id: stored.data.first ? address.data.id : id_q};
  assign out.bready      = in.bready && answer.valid;
  assign answered        = out.bvalid && out.bready;
  assign answer.ready    = answered;
  assign in.bvalid       = out.bvalid && answer.valid;
  assign in.bid          = answer.data.id;
  assign in.bresp        = answer.data.error && !out.bresp[1] ? AXI_SLVERR : out.bresp;

  always_ff @(posedge clk) begin
    if (!rst) begin
      assert (!result_in.valid || result_in.ready);
      assert (!answer_in.valid || answer_in.ready);
      assert (!address.ready || address.valid);
      assert (!out.bvalid || answer.valid) else $error("a response before all data");
    end
  end

  logic unused_ok;
  assign unused_ok = &{1'b0, out.bid, address.data.own};
endmodule
