// SPDX-License-Identifier: Apache-2.0

// Transmit side of the packet plane: takes frames from N protocols round robin, joins header and payload, pads, adds the ICRC where
// requested, tags them if the device is in a VLAN, and sends them to the MAC.
//
// One beat a cycle on `tx` with no bubble between frames while the inputs keep up. 7 cycles from `frame` to the first beat, 6 below 256
// bits. `tx` is registered. A protocol that stalls within a payload stalls the others; one that has nothing to send does not. When `tx`
// stalls, the inputs stall. Payload that ends with tuser invalidates its frame: `tx` ends with tuser, and an ICRC is inverted, so no peer
// accepts it.
module packet_tx
  import packet_pkg::*;
  import link_pkg::*;
#(
    parameter int unsigned DATA_W = 512,
    parameter int unsigned N = 2,
    parameter bit          IPV6 = 1'b1   // the places behind IPv6 headers are used
) (
    input  logic           clk,
    input  logic           rst,
    input  vlan_settings_t vlan,
    input  priorities_t    priorities,  // RoCE: frames with an ICRC
    input  logic [N-1:0]   stop,        // no frame of this protocol is taken; what was taken leaves
    stream_if.sink         frame[N],    // frame_tx_t
    axis_if.sink           payload[N],  // of each frame that has one, in the same order
    axis_if.source         tx,
    output packet_events_t events,      // the transmit part
    output logic           idle
);
  localparam int unsigned BYTES = DATA_W / 8;
  typedef logic [(N > 1 ? $clog2(N) : 1)-1:0] source_t;

  // ---- arbitration, round robin: the frame to the builder, its source and position to the payload selector ----
  // The position of the payload (packet_pkg::PLACE_BYTES) in two steps with few inputs each: the coarse one, plus zero to three times four
  // bytes.
  localparam int unsigned COARSES = IPV6 ? 4 : 3;
  localparam logic [3:0][7:0] COARSE_BYTES = IPV6 ? {8'd90, 8'd74, 8'd58, 8'd42} : {8'd0, 8'd70, 8'd54, 8'd42};
  typedef struct packed {
    source_t    source;
    logic [1:0] coarse;
    logic [1:0] fine;
  } turn_t;

  function automatic turn_t turn_of(source_t source, place_e place);
    turn_t t;
    t = '{source: source, default: '0};
    for (int unsigned p = 0; p < (IPV6 ? PLACES : IPV4_PLACES); p++)
      for (int unsigned c = 0; c < COARSES; c++)
        if (PLACE_BYTES[p] inside {[COARSE_BYTES[c] : COARSE_BYTES[c] + 8'd12]} && place == place_e'(p)) begin
          t.coarse = 2'(c);
          t.fine   = 2'((PLACE_BYTES[p] - COARSE_BYTES[c]) / 8'd4);
        end
    return t;
  endfunction

  stream_if #(.T(frame_tx_t)) request[N] ();
  stream_if #(.T(frame_tx_t)) job ();
  stream_if #(.T(turn_t)) turn_in ();
  stream_if #(.T(turn_t)) turn ();
  logic [N-1:0] taken, taken_payload;
  turn_t        asked[N];
  logic         turns_empty;

  for (genvar i = 0; i < N; i++) begin : g_request
    frame_tx_t offered;
    assign offered          = frame[i].data;
    assign request[i].valid = frame[i].valid && !stop[i];
    assign request[i].data  = offered;
    assign frame[i].ready   = request[i].ready;
    assign taken[i]         = frame[i].valid && frame[i].ready;
    assign taken_payload[i] = taken[i] && offered.payload_length != '0;
    assign asked[i]         = turn_of(source_t'(i), place_of_length(offered.hdr_length, IPV6));
  end

  stream_arbiter #(.T(frame_tx_t), .N(N)) arbiter (.clk, .rst, .in(request), .last('1), .out(job));
  // Never full: at most two frames, in the arbiter and in the builder, can have payload that was not taken yet.
  stream_fifo #(.T(turn_t), .DEPTH(2)) turns (.clk, .rst, .in(turn_in), .out(turn), .empty(turns_empty));

  assign turn_in.valid = |taken_payload;
  always_comb begin
    turn_in.data = '0;
    for (int unsigned i = 0; i < N; i++) if (taken[i]) turn_in.data |= asked[i];
  end

  // ---- payloads in the order of their frames, bytes after the end set to zero, rotated to their position in the frame ----
  logic [N-1:0]          payload_valid, payload_last, payload_user;
  logic [BYTES-1:0][7:0] payload_data[N];
  logic [BYTES-1:0]      payload_keep[N];

  axis_if #(.DATA_W(DATA_W)) rotated ();
  logic rotated_valid_q, rotated_last_q, rotated_user_q;
  logic [BYTES-1:0][7:0] rotated_q;
  turn_t now;
  assign now = turn.data;
  wire rotated_free = !rotated_valid_q || rotated.tready;
  wire take = turn.valid && payload_valid[now.source] && rotated_free;

  for (genvar i = 0; i < N; i++) begin : g_payload
    assign payload_valid[i]  = payload[i].tvalid;
    assign payload_last[i]   = payload[i].tlast;
    assign payload_user[i]   = payload[i].tuser;
    assign payload_data[i]   = payload[i].tdata;
    assign payload_keep[i]   = payload[i].tkeep;
    assign payload[i].tready = turn.valid && now.source == source_t'(i) && rotated_free;
  end

  // Kept apart: the data of a beat stays aligned to words, which is what a simulator moves.
  typedef struct packed {
    logic [BYTES-1:0]      keep;
    logic [BYTES-1:0][7:0] data;
  } lanes_t;

  function automatic lanes_t rotate(lanes_t from, int unsigned lanes);
    int unsigned down = BYTES - lanes % BYTES;
    return '{keep: BYTES'({from.keep, from.keep} >> down), data: DATA_W'({from.data, from.data} >> (8 * down))};
  endfunction

  lanes_t chosen, turned, placed;
  always_comb begin
    chosen = '{keep: payload_keep[now.source], data: payload_data[now.source]};
    unique case (now.coarse)
      2'd0: turned = rotate(chosen, 32'(COARSE_BYTES[0]));
      2'd1: turned = rotate(chosen, 32'(COARSE_BYTES[1]));
      2'd2: turned = rotate(chosen, 32'(COARSE_BYTES[2]));
      2'd3: turned = IPV6 ? rotate(chosen, 32'(COARSE_BYTES[3])) : 'x;
    endcase
    unique case (now.fine)
      2'd0: placed = turned;
      2'd1: placed = rotate(turned, 4);
      2'd2: placed = rotate(turned, 8);
      2'd3: placed = rotate(turned, 12);
    endcase
  end

  always_ff @(posedge clk)
    for (int unsigned i = 0; i < BYTES; i++) if (take) rotated_q[i] <= placed.keep[i] ? placed.data[i] : '0;

  always_ff @(posedge clk) begin
    if (take) begin
      rotated_last_q <= payload_last[now.source];
      rotated_user_q <= payload_user[now.source];
    end
    if (rst) rotated_valid_q <= 1'b0;
    else if (rotated_free) rotated_valid_q <= take;
  end

  assign turn.ready     = take && payload_last[now.source];
  assign rotated.tvalid = rotated_valid_q;
  assign rotated.tdata  = rotated_q;
  assign rotated.tkeep  = '1;
  assign rotated.tlast  = rotated_last_q;
  assign rotated.tuser  = rotated_user_q;

  // ---- build, then the ICRC, then the tag of a VLAN ----
  axis_if #(.DATA_W(DATA_W)) built ();
  axis_if #(.DATA_W(DATA_W)) complete ();
  logic icrc_here, icrc_frame, v6, complete_roce;
  logic [$clog2(BYTES)-1:0] icrc_lane;

  packet_build #(.DATA_W(DATA_W), .IPV6(IPV6)) build (
      .clk, .rst, .frame(job), .payload(rotated), .out(built), .icrc_here, .icrc_lane, .icrc_frame, .v6, .events
  );
  icrc_insert #(.DATA_W(DATA_W)) insert (
      .clk, .rst, .in(built), .icrc_here, .icrc_lane, .icrc_frame, .v6, .out(complete), .out_icrc_frame(complete_roce)
  );
  vlan_insert #(.DATA_W(DATA_W)) insert_tag (
      .clk, .rst, .settings(vlan), .priorities, .roce(complete_roce), .in(complete), .out(tx)
  );

  // ---- idle: every frame that was taken has left ----
  logic [7:0] frames_q;
  always_ff @(posedge clk) begin
    if (rst) frames_q <= '0;
    else frames_q <= frames_q + 8'(|taken) - 8'(tx.tvalid && tx.tready && tx.tlast);
  end
  assign idle = frames_q == '0;

  always_ff @(posedge clk)
    if (!rst) begin
      if (idle) assert (turns_empty);
      if (turn_in.valid) assert (turn_in.ready);
    end
endmodule
