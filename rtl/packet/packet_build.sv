// SPDX-License-Identifier: Apache-2.0

// Puts frames together: header, payload behind it, zeros for the pad, the ICRC's place and up to the 60 bytes that Ethernet wants.
// One beat a cycle, no bubble between frames, as long as header and payload are there. 2 cycles from `frame` to its first beat.
// Stops with `out`. `icrc_here` marks the beat in which the ICRC begins, at byte `icrc_lane`; an ICRC that does not fit there
// goes on at byte 0 of the next beat. From the beat on in which a payload ends with tuser, `out` has it too.
module packet_build
  import packet_pkg::*;
#(
    parameter int unsigned DATA_W = 512
) (
    input  logic                      clk,
    input  logic                      rst,
    stream_if.sink                    frame,      // frame_tx_t
    axis_if.sink                      payload,    // bytes without tkeep are zero
    axis_if.source                    out,
    output logic                      icrc_here,
    output logic [$clog2(DATA_W/8)-1:0] icrc_lane,
    output packet_events_t            events      // the transmit part
);
  localparam int unsigned BYTES = DATA_W / 8;
  localparam int unsigned LANE_W = $clog2(BYTES);
  localparam int unsigned MIN_FRAME = 60;  // IEEE 802.3 without FCS

  typedef logic [LANE_W-1:0] lane_t;
  typedef logic [16-LANE_W:0] index_t;
  typedef logic [DATA_W-1:0] data_t;

  // A header's length, if a payload follows, is one of these, so that the shifter stays small.
  localparam int unsigned LENGTHS = 8;
  localparam logic [LENGTHS-1:0][6:0] LENGTH = {7'd82, 7'd74, 7'd70, 7'd66, 7'd62, 7'd58, 7'd54, 7'd42};
  typedef logic [$clog2(LENGTHS)-1:0] choice_t;

  function automatic choice_t choice_of(logic [6:0] hdr_length);
    choice_t c;
    c = '0;
    for (int unsigned i = 0; i < LENGTHS; i++) if (hdr_length == LENGTH[i]) c |= choice_t'(i);
    return c;
  endfunction

  // ---- plan, two stages ----
  frame_tx_t request;
  assign request = frame.data;

  typedef struct packed {
    logic        icrc;
    logic [16:0] body_length;  // header, payload, pad
    logic        has_payload;
    choice_t     choice;
    hdr_window_t hdr;          // zero behind its length
  } sized_t;

  typedef struct packed {
    logic        icrc;
    index_t      icrc_index;
    lane_t       icrc_lane;
    index_t      last_index;
    lane_t       last_lane;
    logic        has_payload;
    index_t      payload_index;  // of the beat in which the payload begins
    choice_t     choice;
    hdr_window_t hdr;
  } plan_t;

  sized_t sized_q;
  plan_t  plan, plan_q;
  logic   sized_valid_q, plan_valid_q, plan_done;
  wire    plan_free = !plan_valid_q || plan_done;
  wire    sized_free = !sized_valid_q || plan_free;

  hdr_window_t hdr;
  always_comb
    for (int unsigned i = 0; i < HDR_BYTES; i++)
      hdr[(HDR_BYTES-1-i)*8+:8] = request.hdr[(HDR_BYTES-1-i)*8+:8] & {8{7'(i) < request.hdr_length}};

  wire [16:0] length = sized_q.body_length + (sized_q.icrc ? 17'(roce_pkg::ICRC_BYTES) : '0);
  wire [16:0] last = length > 17'(MIN_FRAME) ? length - 1'b1 : 17'(MIN_FRAME - 1);

  index_t payload_index;
  always_comb begin
    payload_index = '0;
    for (int unsigned c = 0; c < LENGTHS; c++)
      if (sized_q.choice == choice_t'(c)) payload_index |= index_t'(LENGTH[c]) >> LANE_W;
  end

  assign plan = '{
      icrc: sized_q.icrc,
      icrc_index: sized_q.body_length[16:LANE_W],
      icrc_lane: sized_q.body_length[LANE_W-1:0],
      last_index: last[16:LANE_W],
      last_lane: last[LANE_W-1:0],
      has_payload: sized_q.has_payload,
      payload_index: payload_index,
      choice: sized_q.choice,
      hdr: sized_q.hdr
  };

  assign frame.ready = sized_free;

  always_ff @(posedge clk) begin
    if (frame.valid && frame.ready)
      sized_q <= '{
          icrc: request.icrc,
          body_length: 17'(request.hdr_length) + 17'(request.payload_length) + 17'(request.pad),
          has_payload: request.payload_length != '0,
          choice: choice_of(request.hdr_length),
          hdr: hdr
      };
    if (sized_valid_q && plan_free) plan_q <= plan;
    if (rst) begin
      sized_valid_q <= 1'b0;
      plan_valid_q  <= 1'b0;
    end else begin
      if (sized_free) sized_valid_q <= frame.valid;
      if (plan_free) plan_valid_q <= sized_valid_q;
    end
  end

  // ---- build, a beat a cycle ----
  index_t index_q;          // of the beat in the frame
  logic   payload_taken_q;  // the payload's last beat went by ...
  logic   spoiled_q;        // ... and marked it bad
  data_t  carry_q;          // payload beat before, of which the rest goes into this beat

  // About the beat that is being built; known a beat ahead.
  logic   wants_payload_q, is_last_q;

  wire    fire = out.tvalid && out.tready;
  wire    index_t index_next = index_q + 1'b1;
  wire    payload_ends = wants_payload_q && payload.tlast;
  wire    spoils = payload_ends && payload.tuser;
  data_t fresh;
  assign fresh = wants_payload_q ? payload.tdata : '0;

  data_t shifted[LENGTHS];
  for (genvar c = 0; c < LENGTHS; c++) begin : g_shift
    localparam int unsigned KEPT = BYTES - 32'(LENGTH[c]) % BYTES;  // bytes of a payload beat that go into the same beat
    if (KEPT == BYTES) begin : g_none
      assign shifted[c] = fresh;
    end else begin : g_some
      assign shifted[c] = {fresh[KEPT*8-1:0], carry_q[DATA_W-1:KEPT*8]};
    end
  end

  data_t header;
  always_comb begin
    header = '0;
    for (int unsigned i = 0; i < HDR_BYTES; i++)
      if (index_q == index_t'(i / BYTES)) header[(i%BYTES)*8+:8] = plan_q.hdr[(HDR_BYTES-1-i)*8+:8];
  end

  assign out.tvalid = plan_valid_q && (!wants_payload_q || payload.tvalid);
  assign out.tdata  = header | shifted[plan_q.choice];
  assign out.tlast  = is_last_q;
  assign out.tuser  = spoiled_q || spoils;
  for (genvar i = 0; i < BYTES; i++) begin : g_keep
    assign out.tkeep[i] = i == 0 || !is_last_q || lane_t'(i) <= plan_q.last_lane;
  end
  assign icrc_here = plan_q.icrc && index_q == plan_q.icrc_index;
  assign icrc_lane = plan_q.icrc_lane;

  assign payload.tready = plan_valid_q && wants_payload_q && out.tready;
  assign plan_done = fire && is_last_q;

  always_ff @(posedge clk) begin
    if (rst || plan_done) begin
      index_q         <= '0;
      payload_taken_q <= 1'b0;
      spoiled_q       <= 1'b0;
      carry_q         <= '0;
    end else if (fire) begin
      index_q         <= index_next;
      payload_taken_q <= payload_taken_q || payload_ends;
      spoiled_q       <= spoiled_q || spoils;
      carry_q         <= fresh;
    end
    if (plan_free) begin
      wants_payload_q <= plan.has_payload && plan.payload_index == '0;
      is_last_q       <= plan.last_index == '0;
    end else if (fire) begin
      wants_payload_q <= plan_q.has_payload && !payload_taken_q && !payload_ends && index_next >= plan_q.payload_index;
      is_last_q       <= index_next == plan_q.last_index;
    end
  end

  always_comb begin
    events = '0;
    events.tx_frame = plan_done;
    events.tx_roce = plan_done && plan_q.icrc;
  end

  always_ff @(posedge clk)
    if (!rst) begin
      if (frame.valid && request.payload_length != '0) assert (request.hdr_length == LENGTH[choice_of(request.hdr_length)]);
      if (frame.valid) assert (request.hdr_length <= 7'(HDR_BYTES) && request.hdr_length != '0);
      // The payload ends in its last beat but one or in its last: `payload_length` and the packet agree.
      if (plan_done) assert (!wants_payload_q || payload.tlast);
      if (plan_done) assert (!plan_q.has_payload || payload_taken_q || wants_payload_q);
    end
endmodule
