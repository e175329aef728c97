// SPDX-License-Identifier: Apache-2.0

// Transmit side of the services: takes a message, a record and its 32-bit words, and sends it as a UDP datagram (RFC 768), or ICMP
// message (RFC 792), in an IPv4 packet (RFC 791) on Ethernet, through the transmit side of the packet plane.
//
// A message is stored before its frame is offered, so that a slow service never holds up other senders: one word a cycle in, then one beat a
// cycle out. The frame is offered 3 cycles after the last word, and not before 7 cycles after the record. The next message is taken when the
// last beat of this one has left. The packets are never fragmented (DF) and so have identification 0 (RFC 6864, 4.1). They have no UDP
// checksum, which IPv4 permits.
module service_send
  import packet_pkg::*;
  import services_pkg::*;
#(
    parameter int unsigned DATA_W = 512
) (
    input  logic        clk,
    input  logic        rst,
    input  mac_t        mac,
    stream_if.sink      message,     // service_tx_t
    stream_if.sink      words,       // service_word_t, after the record
    stream_if.source    tx,          // frame_tx_t
    axis_if.source      tx_payload,
    output logic        sent,        // pulse: a message has left
    output logic        idle
);
  localparam int unsigned BYTES = DATA_W / 8;
  localparam int unsigned LANES = DATA_W / 32;
  localparam int unsigned DEPTH = 2048 / BYTES;   // a message
  localparam int unsigned BYTE_W = $clog2(BYTES);
  typedef logic [$clog2(LANES)-1:0] lane_t;
  typedef logic [$clog2(DEPTH)-1:0] beat_count_t;

  typedef struct packed {
    eth_hdr_t  eth;
    ipv4_hdr_t ipv4;
    udp_hdr_t  udp;
  } udp_frame_t;

  typedef enum logic [2:0] {
    S_IDLE,
    S_FILL,    // take the words
    S_STORED,  // the last beat goes into the store
    S_OFFER,
    S_SEND
  } state_e;
  state_e state_q;

  // ---- the words, side by side ----
  service_word_t word;
  lane_t         lane_q;
  logic          push_q;
  logic [LANES-1:0][31:0] gathered_q;
  assign word = words.data;
  assign words.ready = state_q == S_FILL;
  wire take = words.valid && words.ready;

  always_ff @(posedge clk) begin
    for (int unsigned i = 0; i < LANES; i++) if (take && lane_q == lane_t'(i)) gathered_q[i] <= byte_swapped(word.data);
    push_q <= !rst && take && (word.last || lane_q == lane_t'(LANES - 1));
    if (state_q == S_IDLE) lane_q <= '0;
    else if (take) lane_q <= lane_q + 1'b1;
  end

  // ---- the store: all beats are there before the first is read ----
  beat_count_t       write_at_q, read_at_q;
  logic [DATA_W-1:0] beat;
  logic              fetch, beat_valid_q;
  ram_1w1r #(.T(logic [DATA_W-1:0]), .WORDS(DEPTH)) beats (
      .clk, .write(push_q), .write_at(write_at_q), .write_data(gathered_q), .read(fetch), .read_at(read_at_q), .read_data(beat)
  );

  // ---- the header; its checksum takes a word a cycle (RFC 1071) ----
  service_tx_t  message_q;
  logic [15:0]  total_length_q, udp_length_q;
  logic [2:0]   step_q;
  logic [16:0]  sum_q;
  ipv4_hdr_t    ipv4;
  localparam logic [2:0] STEPS = 3'd6;
  // The words that are the same in every packet.
  localparam logic [16:0] CONSTANT_SUM = 17'h04500 + 17'h04000;
  function automatic logic [7:0] protocol_of(logic icmp);
    return icmp ? IPPROTO_ICMP : IPPROTO_UDP;
  endfunction
  wire [16:0] ttl_sum = {1'b0, message.data.ttl, protocol_of(message.data.icmp)};

  logic [15:0] added;
  always_comb
    unique case (step_q)
      3'd0: added = total_length_q;
      3'd1: added = message_q.from_ip[31:16];
      3'd2: added = message_q.from_ip[15:0];
      3'd3: added = message_q.ip[31:16];
      3'd4: added = message_q.ip[15:0];
      default: added = '0;   // the last carry
    endcase

  assign ipv4 = '{
      version: 4'd4,
      ihl: 4'd5,
      dscp: '0,
      ecn: '0,
      total_length: total_length_q,
      identification: '0,
      flag_reserved: 1'b0,
      flag_df: 1'b1,
      flag_mf: 1'b0,
      fragment_offset: '0,
      ttl: message_q.ttl,
      protocol: protocol_of(message_q.icmp),
      header_checksum: ~sum_q[15:0],
      src: message_q.from_ip,
      dst: message_q.ip
  };
  udp_frame_t header;
  assign header = '{
      eth: '{dst: message_q.mac, src: mac, ethertype: ETHERTYPE_IPV4},
      ipv4: ipv4,
      udp: '{src_port: message_q.from_port, dst_port: message_q.port, length: message_q.icmp ? '0 : udp_length_q, checksum: '0}
  };
  always_comb begin
    tx.data = '0;
    tx.data.hdr_length = 7'($bits(udp_frame_t) / 8);
    tx.data.payload_length = 16'(message_q.length);
    tx.data.hdr[HDR_BYTES*8-1-:$bits(udp_frame_t)] = header;
  end

  // ---- one after another ----
  beat_count_t last_at_q;                       // where the last beat is
  logic        last_q;                          // it is shown
  wire passes = beat_valid_q && tx_payload.tready;
  wire left = passes && last_q;
  assign fetch = state_q == S_SEND && (!beat_valid_q || (tx_payload.tready && !last_q));

  assign message.ready = state_q == S_IDLE;
  assign tx.valid = state_q == S_OFFER && step_q == STEPS;

  always_ff @(posedge clk) begin
    total_length_q <= 16'(message_q.length) + 16'(IPV4_HDR_BYTES + UDP_HDR_BYTES);
    udp_length_q   <= 16'(message_q.length) + 16'(UDP_HDR_BYTES);
    if (state_q == S_IDLE) begin
      message_q <= message.data;
      step_q    <= '1;               // a cycle for the length
      sum_q     <= CONSTANT_SUM + ttl_sum;
    end else if (step_q != STEPS) begin
      step_q <= step_q + 1'b1;
      if (step_q != '1) sum_q <= 17'(sum_q[15:0]) + 17'(added) + 17'(sum_q[16]);
    end
    sent <= !rst && left;
    if (state_q == S_IDLE) begin
      write_at_q <= '0;
      read_at_q  <= '0;
    end else begin
      if (push_q) write_at_q <= write_at_q + 1'b1;
      if (fetch) read_at_q <= read_at_q + 1'b1;
    end
    if (fetch) last_q <= read_at_q == last_at_q;
    if (rst || left || state_q != S_SEND) beat_valid_q <= 1'b0;
    else if (fetch) beat_valid_q <= 1'b1;
    unique case (state_q)
      S_IDLE: if (message.valid) state_q <= S_FILL;
      S_FILL: begin
        last_at_q <= beat_count_t'((message_q.length - 1'b1) >> BYTE_W);
        if (take && word.last) state_q <= S_STORED;
      end
      S_STORED: state_q <= S_OFFER;
      S_OFFER: if (tx.valid && tx.ready) state_q <= S_SEND;
      default: if (left) state_q <= S_IDLE;
    endcase
    if (rst) state_q <= S_IDLE;
  end

  assign tx_payload.tvalid = beat_valid_q;
  assign tx_payload.tdata  = beat;
  assign tx_payload.tlast  = last_q;
  assign tx_payload.tuser  = 1'b0;
  logic [BYTE_W-1:0] top;                       // highest byte that is kept
  assign top = BYTE_W'(message_q.length - 1'b1);
  for (genvar i = 0; i < BYTES; i++) begin : g_keep
    assign tx_payload.tkeep[i] = i == 0 || !last_q || BYTE_W'(i) <= top;
  end

  assign idle = state_q == S_IDLE;
endmodule
