// SPDX-License-Identifier: Apache-2.0

// Takes completions, in any order of tags, and puts their data into the buffer of pcie_read_return. A completion must fit its request, byte
// for byte, else the request is given up (`malformed`): those of one request are in order, and each but the last ends at a multiple of 64
// bytes (Base Specification 2.3.1.1). One for no request is dropped. Requests that were given up by time are finished here too, so that one
// place alone finishes them, between two completions.
//
// Latency: header to its first beat in the buffer 1 cycle, last beat to `finish` 1. One completion and one beat a cycle, and one cycle more
// for a completion that begins within a beat and touches one beat more than its payload has. Nothing stops it but a payload that is late:
// each request has its place.
module pcie_completions
  import memory_pkg::*;
  import pcie_pkg::*;
#(
    parameter int unsigned DATA_W = 512,
    parameter int unsigned TAGS = 64,
    parameter int unsigned BEATS = 512              // of the buffer
) (
    input  logic                     clk,
    input  logic                     rst,
    input  pcie_id_t                 id,
    // requests, when they are sent
    input  logic                     asked,
    input  logic [$clog2(TAGS)-1:0]  asked_tag,
    input  logic [$clog2(BEATS)-1:0] asked_at,      // first beat in the buffer
    input  logic [6:0]               asked_addr,    // low bits
    input  tlp_dwords_t              asked_dwords,
    // completions
    stream_if.sink                   header,        // tlp_header_t
    axis_if.sink                     payload,
    // pcie_tags
    output logic [$clog2(TAGS)-1:0]  look,
    input  logic                     look_waits,
    input  logic                     look_late,
    stream_if.sink                   expired,       // logic [$clog2(TAGS)-1:0]
    output logic                     finish,
    output logic                     finish_error,
    output logic                     finish_given_up,
    output logic                     late_end,
    output logic [$clog2(TAGS)-1:0]  finish_tag,
    // the buffer
    output logic                     write,
    output logic [$clog2(BEATS)-1:0] write_at,
    output logic [DATA_W-1:0]        write_data,
    output fault_e                   fault,         // pulse, else FAULT_NONE: of finish_tag
    output logic                     unexpected,    // pulses
    output logic                     late,
    output logic                     idle
);
  localparam int unsigned DWORDS = DATA_W / 32;
  localparam int unsigned LANE_W = $clog2(DWORDS);
  localparam int unsigned TAG_W = $clog2(TAGS);
  typedef logic [TAG_W-1:0] tag_t;
  typedef logic [$clog2(BEATS)-1:0] at_t;
  typedef logic [LANE_W-1:0] lane_t;
  typedef logic [DWORDS-1:0][31:0] dwords_t;

  typedef struct packed {
    at_t         at;
    logic [4:0]  lane;           // dword of its address in a block of 128 bytes
    tlp_dwords_t dwords;
  } request_t;
  typedef struct packed {
    logic        poisoned;
    tlp_dwords_t dwords;         // those that have come
  } progress_t;

  // ---- tables: of requests, by those who ask; of their progress, here ----
  (* ram_style = "distributed" *) logic [$bits(request_t)-1:0]  requests[TAGS];
  (* ram_style = "distributed" *) logic [$bits(progress_t)-1:0] progresses[TAGS];
  logic [TAGS-1:0] begun_q;      // its progress is in the table; else nothing has come
  request_t asked_now;
  assign asked_now = '{at: asked_at, lane: asked_addr[6:2], dwords: asked_dwords};

  // ---- the next completion, with what is known of its tag ----
  logic        valid_q, expired_q, waits_q, late_q;
  tlp_header_t now_q, next;
  request_t    request_q;
  progress_t   progress_q, progress, next_progress;
  tag_t        tag_q;
  logic        done;             // with the one that is here
  wire         free = !valid_q || done;
  wire         load = free && !expired.valid && header.valid;
  wire         same = valid_q && done && tag_q == look;   // its progress is not in the table yet

  assign next          = header.data;
  assign look          = expired.valid ? tag_t'(expired.data) : tag_t'(next.tag);
  assign expired.ready = free;
  assign header.ready  = free && !expired.valid;
  always_comb begin
    next_progress = begun_q[look] ? progress_t'(progresses[look]) : '0;
    if (same) next_progress = progress;
  end
  // The completion before this one, which is told of now, may have finished its request.
  wire finished   = finish && finish_tag == tag_q;
  wire waits      = waits_q && !finished;
  wire late_there = finished ? finish_given_up : late_q && !(late_end && finish_tag == tag_q);
  wire ours = 32'(next.tag) < TAGS && next.requester_id == id;

  always_ff @(posedge clk) begin
    if (free) begin
      now_q      <= next;
      tag_q      <= look;
      expired_q  <= expired.valid;
      request_q  <= request_t'(requests[look]);
      progress_q <= next_progress;
      waits_q    <= (expired.valid || ours) && look_waits;
      late_q     <= ours && look_late;
      if (finish && finish_tag == look) begin   // what pcie_tags is told now
        waits_q <= 1'b0;
        late_q  <= ours && finish_given_up;
      end
      if (late_end && finish_tag == look) late_q <= 1'b0;
    end else begin
      waits_q <= waits;
      late_q  <= late_there;
    end
    if (rst) valid_q <= 1'b0;
    else if (free) valid_q <= expired.valid || load;
  end

  // ---- what it is ----
  wire has_data = tlp_has_data(now_q.kind);
  wire failed   = now_q.kind == TLP_COMPLETION || now_q.status != CPL_SUCCESS;
  wire tlp_dwords_t left = request_q.dwords - progress_q.dwords;
  wire [4:0] lane = request_q.lane + progress_q.dwords[4:0];
  wire [3:0] end_dword = lane[3:0] + now_q.length[3:0];
  wire last = now_q.length == left;
  wire fits = has_data && now_q.byte_count == tlp_bytes_t'({left, 2'b00}) && now_q.lower_addr == {lane, 2'b00}
              && now_q.length <= left && now_q.length != '0 && (last || end_dword == '0);
  wire wanted     = !expired_q && waits;
  wire place  = wanted && !failed && fits;
  // The last one that a request gets.
  wire ends_late = failed || now_q.byte_count <= (tlp_bytes_t'({now_q.length, 2'b00}) - tlp_bytes_t'(now_q.lower_addr[1:0]));

  // ---- its payload ----
  lane_t   shift;
  logic    begun_payload_q, flush_q;
  at_t     beat_q;               // of the payload in the buffer, from request_q.at
  dwords_t rotated, held_q;
  wire lane_t payload_lane = lane_t'(lane);
  assign shift = lane_t'(0) - payload_lane;
  dword_rotate #(.DATA_W(DATA_W)) rotate (.in(payload.tdata), .amount(shift), .out(rotated));

  // Lanes of the payload's last beat: does its end go into another beat of the buffer?
  wire lane_t tail = lane_t'(now_q.length) - 1'b1;
  wire wraps = ((LANE_W + 1)'(payload_lane) + (LANE_W + 1)'(tail)) >= (LANE_W + 1)'(DWORDS);
  wire moves = valid_q && has_data && !expired_q && !flush_q && payload.tvalid;
  wire ends  = moves && payload.tlast;

  assign payload.tready = valid_q && has_data && !expired_q && !flush_q;
  assign done  = valid_q && (expired_q || !has_data || (wraps ? flush_q : ends));
  assign write = place && valid_q && (moves || flush_q);
  assign write_at = request_q.at + at_t'((12'(request_q.lane[LANE_W-1:0]) + 12'(progress_q.dwords)) >> LANE_W) + beat_q;
  wire [DWORDS-1:0] below = ~(DWORDS'('1) << payload_lane);   // lanes of the beat before
  for (genvar i = 0; i < DWORDS; i++) begin : g_lane
    assign write_data[32*i+:32] = flush_q || (begun_payload_q && below[i]) ? held_q[i] : rotated[i];
  end

  logic damaged_q;               // tuser of the payload whose end is in the flush
  wire poisoned = now_q.poisoned || (flush_q ? damaged_q : payload.tvalid && payload.tuser);
  assign progress = '{poisoned: progress_q.poisoned || poisoned, dwords: progress_q.dwords + now_q.length};

  always_ff @(posedge clk) begin
    if (moves) held_q <= rotated;
    if (moves) damaged_q <= payload.tuser;
    if (done && place) progresses[tag_q] <= progress;
    if (asked) requests[asked_tag] <= asked_now;
    if (done && place) begun_q[tag_q] <= 1'b1;
    if (asked) begun_q[asked_tag] <= 1'b0;
    if (rst || done) begin
      beat_q          <= '0;
      begun_payload_q <= 1'b0;
      flush_q         <= 1'b0;
    end else if (moves) begin
      beat_q          <= beat_q + 1'b1;
      begun_payload_q <= 1'b1;
      flush_q         <= ends && wraps;
    end
  end

  // ---- what follows, told in the next cycle ----
  logic   ends_read, ends_error, gives_up;
  fault_e cause;
  always_comb begin
    ends_read  = 1'b0;
    ends_error = 1'b1;
    gives_up   = 1'b0;
    cause      = FAULT_NONE;
    if (expired_q && waits) begin
      ends_read = 1'b1;
      gives_up  = 1'b1;
      cause     = FAULT_TIMEOUT;
    end else if (wanted && failed) begin
      ends_read = 1'b1;
      cause     = now_q.status == CPL_ABORT ? FAULT_ABORT : now_q.status == CPL_SUCCESS ? FAULT_MALFORMED : FAULT_UNSUPPORTED;
    end else if (wanted && !fits) begin
      ends_read = 1'b1;
      gives_up  = 1'b1;
      cause     = FAULT_MALFORMED;
    end else if (wanted && last) begin
      ends_read  = 1'b1;
      ends_error = progress.poisoned;
      if (progress.poisoned) cause = FAULT_POISONED;
    end
  end
  wire stray = done && !expired_q && !waits;
  always_ff @(posedge clk) begin
    finish          <= !rst && done && ends_read;
    finish_error    <= ends_error;
    finish_given_up <= gives_up;
    finish_tag      <= tag_q;
    fault           <= done && !rst ? cause : FAULT_NONE;
    late_end        <= !rst && stray && late_there && ends_late;
    late            <= !rst && stray && late_there;
    unexpected      <= !rst && stray && !late_there;
  end
  assign idle = !valid_q && !header.valid && !finish;

  // The payload is as long as its header says.
  always_ff @(posedge clk)
    if (!rst && ends && place) assert (beat_q == at_t'((now_q.length - 1'b1) >> LANE_W));

  logic unused_ok;
  assign unused_ok = &{1'b0, payload.tkeep, now_q.bar, now_q.func, now_q.addr, now_q.last_be, now_q.first_be, now_q.completer_id, now_q.requester_id,
                       now_q.tag, now_q.tc, now_q.attr, asked_addr[1:0]};
endmodule
