// SPDX-License-Identifier: Apache-2.0

// Assembles frames: header, payload, zeros for the pad and for the ICRC, and up to the 60 bytes that Ethernet requires. One beat a cycle,
// no bubble between frames, as long as header and payload are available. 1 cycle from `frame` to its first beat. Stalls with `out`.
// `icrc_here` marks the beat in which the ICRC begins, at byte `icrc_lane`; an ICRC that does not fit there continues at byte 0 of the next
// beat. If a payload ends with tuser, `out` has tuser from that beat on.
//
// The payload arrives rotated: its first byte is at the lane of its position in the frame (packet_pkg::PLACE_BYTES), so that no shifter is
// needed here. The bytes of a beat below that lane go into the next beat of the frame.
module packet_build
  import packet_pkg::*;
#(
    parameter int unsigned DATA_W = 512,
    parameter bit          IPV6 = 1'b1            // the places behind IPv6 headers are used
) (
    input  logic                      clk,
    input  logic                      rst,
    stream_if.sink                    frame,      // frame_tx_t
    axis_if.sink                      payload,    // rotated; bytes after its end are zero; tkeep is ignored
    axis_if.source                    out,
    output logic                      icrc_here,
    output logic [$clog2(DATA_W/8)-1:0] icrc_lane,
    output logic                      icrc_frame, // with each beat: its frame has an ICRC,
    output logic                      v6,         // and is of IPv6
    output packet_events_t            events      // the transmit part
);
  localparam int unsigned BYTES = DATA_W / 8;
  localparam int unsigned LANE_W = $clog2(BYTES);
  localparam int unsigned MIN_FRAME = 60;  // IEEE 802.3 without FCS

  typedef logic [LANE_W-1:0] lane_t;
  typedef logic [16-LANE_W:0] index_t;
  typedef logic [BYTES-1:0][7:0] data_t;

  // ---- plan ----
  frame_tx_t request;
  eth_hdr_t  eth;
  assign request = frame.data;
  assign eth     = request.hdr[HDR_BYTES*8-1-:$bits(eth_hdr_t)];

  typedef struct packed {
    logic   icrc;
    logic   v6;
    index_t icrc_index;
    lane_t  icrc_lane;
    index_t last_index;
    lane_t  last_lane;
    logic   has_payload;
    index_t payload_index;       // of the beat in which the payload begins
    logic [BYTES-1:0] below;     // lanes below the payload's first
  } plan_t;

  plan_t plan, plan_q;
  logic  plan_valid_q, plan_done;
  wire   plan_free = !plan_valid_q || plan_done;

  // Header, payload and pad; and the last byte of all, if that reaches the minimum of Ethernet.
  logic [8:0]  beside, beside_last;
  logic [16:0] body, last;
  wire         long_enough = last >= 17'(MIN_FRAME - 1);
  place_e      place;
  assign beside      = 9'(request.hdr_length) + 9'(request.pad);
  assign beside_last = 9'(request.hdr_length) + (9'(request.pad) + (request.icrc ? 9'(roce_wire_pkg::ICRC_BYTES - 1) : '1));
  assign body        = 17'(request.payload_length) + 17'(beside);
  assign last        = 17'(request.payload_length) + 17'(beside_last);
  assign place       = place_of_length(request.hdr_length, IPV6);

  always_comb begin
    plan = '{
        icrc: request.icrc,
        v6: IPV6 && eth.ethertype == ETHERTYPE_IPV6,
        icrc_index: body[16:LANE_W],
        icrc_lane: body[LANE_W-1:0],
        last_index: long_enough ? last[16:LANE_W] : index_t'((MIN_FRAME - 1) / BYTES),
        last_lane: long_enough ? last[LANE_W-1:0] : lane_t'((MIN_FRAME - 1) % BYTES),
        has_payload: request.payload_length != '0,
        payload_index: '0,
        below: '0
    };
    for (int unsigned p = 0; p < (IPV6 ? PLACES : IPV4_PLACES); p++)
      if (place == place_e'(p)) begin
        plan.payload_index |= index_t'(32'(PLACE_BYTES[p]) / BYTES);
        plan.below |= ~({BYTES{1'b1}} << (32'(PLACE_BYTES[p]) % BYTES));
      end
  end

  assign frame.ready = plan_free;

  always_ff @(posedge clk) begin
    if (plan_free) plan_q <= plan;
    if (rst) plan_valid_q <= 1'b0;
    else if (plan_free) plan_valid_q <= frame.valid;
  end

  // ---- build, a beat a cycle ----
  index_t index_q;          // of the beat in the frame
  logic   payload_taken_q;  // the payload's last beat has passed ...
  logic   spoiled_q;        // ... and was marked bad
  data_t  carry_q;          // bytes of the previous payload beat for this one

  // For the beat that is being built; computed a beat ahead.
  logic   wants_payload_q, is_last_q;

  wire    fire = out.tvalid && out.tready;
  wire    index_t index_next = index_q + 1'b1;
  wire    payload_ends = wants_payload_q && payload.tlast;
  wire    spoils = payload_ends && payload.tuser;

  // The header, zero after its end; shifted down by a beat with each beat that leaves.
  localparam int unsigned HEADER_BEATS = (HDR_BYTES + BYTES - 1) / BYTES;
  logic [HEADER_BEATS*BYTES-1:0][7:0] header_q, header_moved;
  assign header_moved = header_q >> DATA_W;

  // Bytes that only a new header can fill are cleared otherwise.
  always_ff @(posedge clk)
    for (int unsigned i = 0; i < HEADER_BEATS * BYTES; i++)
      if (i >= HDR_BYTES) header_q[i] <= '0;
      else if (plan_free || fire) begin
        if (plan_free ? request.hdr_length <= 7'(i) : i + BYTES >= HDR_BYTES) header_q[i] <= '0;
        else if (plan_free || i + BYTES >= HDR_BYTES) header_q[i] <= request.hdr[(HDR_BYTES-1-(i%HDR_BYTES))*8+:8];
        else header_q[i] <= header_moved[i];
      end

  // The part of a payload beat in the frame's beat of the same cycle, and the part in the next.
  data_t beat, rotated;
  assign rotated   = payload.tdata;
  assign out.tdata = beat;
  always_comb
    for (int unsigned i = 0; i < BYTES; i++) begin
      beat[i] = header_q[i] | carry_q[i] | (rotated[i] & {8{wants_payload_q && !plan_q.below[i]}});
      out.tkeep[i] = i == 0 || !is_last_q || lane_t'(i) <= plan_q.last_lane;
    end

  always_ff @(posedge clk)
    for (int unsigned i = 0; i < BYTES; i++)
      if (rst || fire) carry_q[i] <= rst || is_last_q || !wants_payload_q || !plan_q.below[i] ? '0 : rotated[i];

  assign out.tvalid = plan_valid_q && (!wants_payload_q || payload.tvalid);
  assign out.tlast  = is_last_q;
  assign out.tuser  = spoiled_q || spoils;
  assign icrc_here  = plan_q.icrc && index_q == plan_q.icrc_index;
  assign icrc_lane  = plan_q.icrc_lane;
  assign icrc_frame = plan_q.icrc;
  assign v6         = plan_q.v6;

  assign payload.tready = plan_valid_q && wants_payload_q && out.tready;
  assign plan_done = fire && is_last_q;

  always_ff @(posedge clk) begin
    if (rst || plan_done) begin
      index_q         <= '0;
      payload_taken_q <= 1'b0;
      spoiled_q       <= 1'b0;
    end else if (fire) begin
      index_q         <= index_next;
      payload_taken_q <= payload_taken_q || payload_ends;
      spoiled_q       <= spoiled_q || spoils;
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
      if (frame.valid && request.payload_length != '0) assert (8'(request.hdr_length) == PLACE_BYTES[place]);
      if (frame.valid) assert (request.hdr_length <= 7'(HDR_BYTES) && request.hdr_length != '0);
      // The payload ends in the last beat of the frame or in the one before: `payload_length` and the packet agree.
      if (plan_done) assert (!wants_payload_q || payload.tlast);
      if (plan_done) assert (!plan_q.has_payload || payload_taken_q || wants_payload_q);
    end
endmodule
