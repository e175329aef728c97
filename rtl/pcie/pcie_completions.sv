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
    input  pcie_configs_t            settings,
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
    input  function_t                look_func,
    input  logic                     look_waits,
    input  logic                     look_late,
    stream_if.sink                   expired,       // logic [$clog2(TAGS)-1:0]
    input  logic                     expired_waits, // with it
    output logic                     finish,
    output logic                     finish_error,
    output logic                     finish_given_up,
    output logic                     late_end,
    output logic [$clog2(TAGS)-1:0]  finish_tag,
    // the buffer
    output logic                     write,
    output logic [$clog2(BEATS)-1:0] write_at,
    output logic [DATA_W-1:0]        write_data,
    output fault_e                   fault,         // pulse, else FAULT_NONE
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

  // What has not come yet of a request, and where it goes.
  typedef struct packed {
    logic        poisoned;       // some of what has come
    at_t         at;             // beat of the buffer
    logic [4:0]  lane;           // dword of its address in a block of 128 bytes
    tlp_dwords_t dwords;
  } rest_t;

  // ---- tables: of requests, by those who ask; of their rest, here ----
  (* ram_style = "distributed" *) logic [$bits(rest_t)-1:0] requests[TAGS];
  (* ram_style = "distributed" *) logic [$bits(rest_t)-1:0] rests[TAGS];
  logic [TAGS-1:0] begun_q;      // its rest is in the table; else nothing has come
  rest_t asked_now;
  assign asked_now = '{poisoned: 1'b0, at: asked_at, lane: asked_addr[6:2], dwords: asked_dwords};

  // ---- the next completion, with what is known of its tag ----
  logic        valid_q, expired_q, waits_q, late_q, failed_q, ends_late_q;
  logic        mine_q;           // its requester ID is that of the function that has the tag
  logic        well_q, last_q;   // by itself it can be one of a request; it is the last one
  logic        again_q;          // of the tag of the completion before
  logic        over_q;           // which has finished the request
  lane_t       tail_q;           // the last lane of its last beat
  tlp_header_t now_q, next;
  rest_t       rest_q, rest, next_rest;   // before it, behind it, before the next one
  tag_t        tag_q, next_tag;
  logic        done;             // with the one that is here
  wire         free = !valid_q || done;
  wire         load = free && !expired.valid && header.valid;
  wire         same = valid_q && !expired_q && waits_q && mine_q && tag_q == look;   // the next one's rest is not in the table yet

  assign next          = header.data;
  assign look          = tag_t'(next.tag);
  assign next_tag      = expired.valid ? tag_t'(expired.data) : look;
  assign expired.ready = free;
  assign header.ready  = free && !expired.valid;
  assign next_rest     = same ? rest : rest_t'(begun_q[look] ? rests[look] : requests[look]);
  // The completion before this one, which is told of now, may have finished its request.
  wire finished   = finish && again_q;
  wire waits      = waits_q && mine_q && !finished && !over_q;
  wire late_there = !expired_q && (finished ? finish_given_up : late_q && mine_q && !(late_end && again_q));   // then no read waits
  wire next_well  = tlp_has_data(next.kind) && next.length != '0 && tlp_bytes_t'({next.length, 2'b00}) <= next.byte_count
                    && (tlp_bytes_t'({next.length, 2'b00}) == next.byte_count || 4'(next.lower_addr[5:2] + next.length[3:0]) == '0);
  wire [FUNCTIONS_MAX-1:0] ids = {next.requester_id == settings[1].id, next.requester_id == settings[0].id};
  wire ours       = 32'(next.tag) < TAGS;
  wire told       = finish_tag == look;   // of the next one's tag

  always_ff @(posedge clk) begin
    if (free) begin
      now_q     <= next;
      tag_q     <= next_tag;
      again_q   <= next_tag == tag_q;
      tail_q    <= lane_t'(next.length) - 1'b1;
      expired_q <= expired.valid;
      mine_q    <= expired.valid || ids[look_func];
      rest_q    <= next_rest;
      failed_q  <= next.kind == TLP_COMPLETION || next.status != CPL_SUCCESS;
      well_q    <= next_well;
      last_q    <= tlp_bytes_t'({next.length, 2'b00}) == next.byte_count;
      // The last one that a request gets.
      ends_late_q <= next.kind == TLP_COMPLETION || next.status != CPL_SUCCESS
                     || next.byte_count <= tlp_bytes_t'({next.length, 2'b00}) - tlp_bytes_t'(next.lower_addr[1:0]);
      if (expired.valid) waits_q <= expired_waits && !(finish && finish_tag == tag_t'(expired.data));
      else waits_q <= ours && look_waits && !(finish && told);   // what pcie_tags is told now
      late_q    <= ours && (finish && told ? finish_given_up : look_late && !(late_end && told));
    end else late_q <= late_there;
    if (free) over_q <= 1'b0;
    else if (finished) over_q <= 1'b1;
    if (rst) valid_q <= 1'b0;
    else if (free) valid_q <= expired.valid || load;
  end

  // ---- what it is ----
  wire has_data = tlp_has_data(now_q.kind);
  wire fits = well_q && now_q.byte_count == tlp_bytes_t'({rest_q.dwords, 2'b00}) && now_q.lower_addr == {rest_q.lane, 2'b00};
  wire wanted = !expired_q && waits;
  wire place  = wanted && !failed_q && fits;

  // ---- its payload ----
  lane_t   shift;
  logic    begun_payload_q, flush_q;
  at_t     beat_q;               // of the payload in the buffer, from rest_q.at
  dwords_t rotated, held_q;
  wire lane_t payload_lane = lane_t'(rest_q.lane);
  assign shift = lane_t'(0) - payload_lane;
  dword_rotate #(.DATA_W(DATA_W)) rotate (.in(payload.tdata), .amount(shift), .out(rotated));

  // Does the payload's end go into another beat of the buffer?
  wire wraps = ((LANE_W + 1)'(payload_lane) + (LANE_W + 1)'(tail_q)) >= (LANE_W + 1)'(DWORDS);
  wire moves = valid_q && has_data && !expired_q && !flush_q && payload.tvalid;
  wire ends  = moves && payload.tlast;

  assign payload.tready = valid_q && has_data && !expired_q && !flush_q;
  assign done  = valid_q && (expired_q || !has_data || (wraps ? flush_q : ends));
  assign write = place && valid_q && (moves || flush_q);
  assign write_at = rest_q.at + beat_q;
  wire [DWORDS-1:0] below = ~(DWORDS'('1) << payload_lane);   // lanes of the beat before
  for (genvar i = 0; i < DWORDS; i++) begin : g_lane
    assign write_data[32*i+:32] = flush_q || (begun_payload_q && below[i]) ? held_q[i] : rotated[i];
  end

  logic damaged_q;               // tuser of the payload whose end is in the flush
  wire poisoned = now_q.poisoned || (flush_q ? damaged_q : payload.tvalid && payload.tuser);
  assign rest = '{
      poisoned: rest_q.poisoned || poisoned, at: rest_q.at + at_t'((12'(payload_lane) + 12'(now_q.length)) >> LANE_W),
      lane: rest_q.lane + now_q.length[4:0], dwords: rest_q.dwords - now_q.length
  };

  always_ff @(posedge clk) begin
    if (moves) held_q <= rotated;
    if (moves) damaged_q <= payload.tuser;
    if (done && wanted) rests[tag_q] <= rest;      // of one that does not fit nobody asks for it
    if (asked) requests[asked_tag] <= asked_now;
    if (done && wanted) begun_q[tag_q] <= 1'b1;
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
  logic ends_read, ends_error, gives_up;
  always_comb begin
    ends_read  = 1'b0;
    ends_error = 1'b1;
    gives_up   = 1'b0;
    if (expired_q && waits) begin
      ends_read = 1'b1;
      gives_up  = 1'b1;
    end else if (wanted && failed_q) ends_read = 1'b1;
    else if (wanted && !fits) begin
      ends_read = 1'b1;
      gives_up  = 1'b1;
    end else if (wanted && last_q) begin
      ends_read  = 1'b1;
      ends_error = rest.poisoned;
    end
  end
  wire stray = done && !expired_q && !waits;
  always_ff @(posedge clk) begin
    finish          <= !rst && done && ends_read;
    finish_error    <= ends_error;
    finish_given_up <= gives_up;
    finish_tag      <= tag_q;
    late_end        <= !rst && done && late_there && ends_late_q;
    late            <= !rst && done && late_there;
    unexpected      <= !rst && stray && !late_there;
  end

  // Why a read ended with an error: of what `finish` tells, a cycle later.
  logic        was_expired_q, was_failed_q;
  cpl_status_e status_q;
  always_ff @(posedge clk) begin
    was_expired_q <= expired_q;
    was_failed_q  <= failed_q;
    status_q      <= now_q.status;
    if (rst || !finish || !finish_error) fault <= FAULT_NONE;
    else if (was_expired_q) fault <= FAULT_TIMEOUT;
    else if (was_failed_q) fault <= status_q == CPL_ABORT ? FAULT_ABORT : status_q == CPL_SUCCESS ? FAULT_MALFORMED : FAULT_UNSUPPORTED;
    else fault <= finish_given_up ? FAULT_MALFORMED : FAULT_POISONED;
  end
  assign idle = !valid_q && !header.valid && !finish;

  // The payload is as long as its header says.
  always_ff @(posedge clk)
    if (!rst && ends && place) assert (beat_q == at_t'((now_q.length - 1'b1) >> LANE_W));

  logic unused_ok;
  assign unused_ok = &{1'b0, payload.tkeep, now_q.bar, now_q.func, now_q.addr, now_q.last_be, now_q.first_be, now_q.completer_id, now_q.requester_id,
                       now_q.tag, now_q.tc, now_q.attr, asked_addr[1:0]};
endmodule
