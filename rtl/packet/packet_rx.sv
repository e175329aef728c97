// SPDX-License-Identifier: Apache-2.0

// Receive side of the packet plane: checks every frame of the MAC, and outputs the fields of its headers, its class, and its payload, moved
// to byte 0, if it passes every check. A frame that fails a check has no effect but one event.
//
// One beat a cycle with no stall for every frame size, including single-beat frames back to back. Fixed latency: `frame` is valid 11 cycles
// after the frame's last beat was accepted, the first beat of `payload` 12. Received frames wait in stores for RECORDS frames and for at
// least twice MAX_FRAME. A MAC cannot stall: `rx.tready` is always high, and a frame that begins when there is no space for MAX_FRAME is
// dropped as a whole and counted. `card_verdict` says of each frame whether the network card gets it. Bytes after the IP packet (Ethernet padding) are ignored.
module packet_rx
  import packet_pkg::*;
  import frame_pkg::*;
  import packet_rx_pkg::*;
  import crc32_pkg::*;
  import card_pkg::*;
  import virtio_pkg::hash_types_t;
  import virtio_pkg::hash_index_t;
  import classify_pkg::*;
  import services_pkg::*;
#(
    parameter int unsigned DATA_W = 512,
    parameter int unsigned MAX_FRAME = 4224, // bytes without FCS; longer ones are dropped. A multiple of a beat
    parameter int unsigned LONGEST = MAX_FRAME, // bytes of the longest frame whose checksums are looked at for the card
    parameter int unsigned DATAGRAM_PORTS = 1,
    parameter bit          IPV6 = 1'b1       // else all IPv6 packets are CLASS_IPV6
) (
    input  logic           clk,
    input  logic           rst,
    input  local_addr_t    local_addr,
    input  service_ports_t service_ports,
    input  logic [DATAGRAM_PORTS-1:0][15:0] datagram_ports,
    input  card_settings_t card,
    axis_if.sink           rx,
    input  logic           foreign,  // with `rx`, from the beat with byte 15 of a frame on: it is not of the device's VLAN
    input  vlan_t          tag,      // likewise: the tag that was removed
    stream_if.source       frame,    // frame_rx_t
    axis_if.source         payload,  // of each frame that has one, in the same order
    output logic           card_verdict_valid,  // pulse, 10 cycles after each frame's last beat was accepted, also of those that were refused
    output card_verdict_t  card_verdict,
    input  decision_t      decision, // of the classifier about the frame that has its card_verdict now; 0: as its class says
    output logic           decided,  // with card_verdict_valid: the frame is one about which `decision` decides
    output packet_events_t events,   // the receive part
    output logic           idle
);
  localparam int unsigned BYTES = DATA_W / 8;
  localparam int unsigned LANE_W = $clog2(BYTES);
  localparam int unsigned MAX_BEATS = MAX_FRAME / BYTES;
  localparam int unsigned COUNTED_BEATS = LONGEST > MAX_FRAME ? (LONGEST + BYTES - 1) / BYTES : MAX_BEATS;
  localparam int unsigned INDEX_W = $clog2(COUNTED_BEATS + 1);
  localparam int unsigned DECISION = DECISION_BYTE / BYTES;
  localparam int unsigned DECISION_V6 = DECISION_BYTE_V6 / BYTES;
  localparam int unsigned RECORDS = DATA_W < 128 ? 16 : 32;   // a frame is at least 8 beats of 64 bits
  localparam int unsigned PAYLOADS = 64;   // more than the records that all following units accept before they wait for a payload
  localparam int unsigned IN_FLIGHT = 16;  // more than the beats that arrive before `room` is updated
  localparam int unsigned STORE_BEATS = 2 ** $clog2(2 * MAX_BEATS + IN_FLIGHT);
  localparam int unsigned STORE_DEPTH = STORE_BEATS < 512 ? 512 : STORE_BEATS;  // the minimum depth of a block RAM

  if (MAX_FRAME % BYTES != 0) begin : g_bad
    $fatal(1, "packet_rx: MAX_FRAME must be a multiple of a beat");
  end

  typedef logic [INDEX_W-1:0] index_t;
  typedef logic [LANE_W-1:0] lane_t;
  typedef logic [BYTES-1:0] keep_t;
  typedef logic [DATA_W-1:0] data_t;
  typedef logic [16-LANE_W:0] top_index_t;  // beat part of a byte index in parsed_t

  // Lanes 0 to `top`.
  function automatic keep_t up_to(lane_t top);
    keep_t k;
    for (int unsigned i = 0; i < BYTES; i++) k[i] = lane_t'(i) <= top;
    return k;
  endfunction

  // ---- admission, by whole frames ----
  logic room_q;               // space for a frame of MAX_FRAME, in addition to all that is in the pipeline
  logic in_frame_q = 1'b0;    // kept in reset too: the rest of a frame that began before is not taken for a frame
  logic refused_q;            // this frame
  wire  refused = in_frame_q ? refused_q : !room_q;
  wire  take = rx.tvalid && !refused;

  assign rx.tready = 1'b1;

  always_ff @(posedge clk) begin
    if (rx.tvalid) begin
      in_frame_q <= !rx.tlast;
      refused_q  <= refused;
    end
  end

  // ---- input beats: stages 1 to 3, in step with the parser ----
  // The pipeline never stalls: space for every admitted frame was reserved.
  typedef struct packed {
    logic   valid;
    logic   last;
    logic   bad;
    index_t index;  // MAX_BEATS and more: beyond the longest frame; COUNTED_BEATS: this and all further ones
    keep_t  keep;
    data_t  data;
  } beat_t;

  index_t index_q;
  beat_t  s1_q, s2_q, s3_q;

  always_ff @(posedge clk) begin
    s1_q <= '{valid: take && !rst, last: rx.tlast, bad: rx.tuser, index: index_q, keep: rx.tkeep, data: rx.tdata};
    s2_q <= s1_q;
    s3_q <= s2_q;
    s2_q.valid <= s1_q.valid && !rst;
    s3_q.valid <= s2_q.valid && !rst;
    if (rst) index_q <= '0;
    else if (take) index_q <= rx.tlast ? '0 : index_q == index_t'(COUNTED_BEATS) ? index_q : index_q + 1'b1;
  end

  headers_t headers;
  parsed_t  parsed;
  checks_t  checks;

  logic v6, s2_v6_q, s3_v6_q, s4_v6_q;  // in step with s1_q and so on
  always_ff @(posedge clk) begin
    s2_v6_q <= v6;
    s3_v6_q <= s2_v6_q;
    s4_v6_q <= s3_v6_q;
  end

  packet_parser #(.DATA_W(DATA_W), .INDEX_W(INDEX_W), .DATAGRAM_PORTS(DATAGRAM_PORTS), .IPV6(IPV6)) parser (
      .clk, .local_addr, .service_ports, .datagram_ports, .card,
      .in_valid(take), .in_index(index_q), .in_data(rx.tdata), .in_foreign(foreign), .in_tag(tag),
      .v6, .headers, .verdict(parsed), .checks
  );

  // ---- stage 4: the bytes covered by the checksums ----
  typedef struct packed {
    logic         last;
    drop_e        drop;
    frame_class_e cls;
    listener_e    listener;
    logic         sound;           // neither marked by the MAC nor too short
    logic         card;            // the card gets it; before `checks`: it can
    logic         asks_us;         // if it is a solicitation
    logic         checked;         // for the card: all that is checked so far is there and right
    flow_t        flow;
    logic         hashed;          // for the card: over addresses,
    logic         hashes_ports;    // and ports
    hash_index_t  hash;            // from stage 5 on
    logic         sum_checked;
    extent_t      extent;
    index_t       beats;
  } outcome_t;

  // Before the parser's decision every byte is covered; a frame that ends before the decision's bytes is a runt.
  logic s3_decided_q;
  always_ff @(posedge clk)
    s3_decided_q <= s2_v6_q
        ? (s2_q.index == index_t'(DECISION_V6) ? s2_q.keep[(DECISION_BYTE_V6-1)%BYTES] : s2_q.index + 1'b1 > index_t'(DECISION_V6))
        : (s2_q.index == index_t'(DECISION) ? s2_q.keep[(DECISION_BYTE-1)%BYTES] : s2_q.index + 1'b1 > index_t'(DECISION));
  wire top_index_t index = top_index_t'(s3_q.index);
  wire top_index_t ip_last = parsed.ip_top[16:LANE_W];

  data_t    s4_data_q;  // bytes not covered are zero
  keep_t    s4_keep_q, s4_counts_q;
  logic     s4_first_q, s4_counts_valid_q, s4_counts_last_q;
  lane_t    s4_top_q;
  outcome_t s4_q;

  drop_e early;
  always_comb begin
    early = DROP_NONE;
    if (s3_q.bad) early = DROP_FCS;
    else if (s3_q.index >= index_t'(MAX_BEATS)) early = DROP_OVERSIZE;
    else if (!s3_decided_q) early = DROP_RUNT;
    else if (parsed.drop != DROP_NONE) early = parsed.drop;
    else if (!parsed.headers_fit || index < ip_last) early = DROP_RUNT;
  end

  // A neighbour solicitation for an address of the device, known when its frame has ended. Where the device answers, the card does not get it.
  l4_nd_t nd;
  assign nd = headers.l4.nd;
  logic s2_asks_us_q, s3_asks_us_q;
  flow_t s2_flow_q, s3_flow_q;
  always_ff @(posedge clk) begin
    s2_flow_q <= flow_of(headers.l3.src, headers.l3.dst, {headers.l4.udp.udp.src_port, headers.l4.udp.udp.dst_port});
    s3_flow_q <= s2_flow_q;
    s2_asks_us_q <= nd.icmp_type == ND_NEIGHBOUR_SOLICITATION && nd.target != '0
                    && (nd.target == local_addr.link_local || nd.target == local_addr.global_);
    s3_asks_us_q <= s2_asks_us_q;
  end

  // What the card's driver wants a hash of, and the hash, 3 cycles behind the headers.
  hash_types_t types;
  hash_index_t address_hash, port_hash;
  wire hash_ports = parsed.flow_known && (s3_v6_q ? (parsed.tcp ? types.tcpv6 : types.udpv6) : (parsed.tcp ? types.tcpv4 : types.udpv4));
  assign types = card.hash.types;
  card_hash #(.BITS($bits(hash_index_t))) hash (
      .clk, .key(card.hash.key), .v6(headers.l3.v6), .src(headers.l3.src), .dst(headers.l3.dst),
      .ports({headers.l4.udp.udp.src_port, headers.l4.udp.udp.dst_port}), .address_hash, .port_hash
  );

  keep_t counts;
  assign counts = !s3_decided_q || index < ip_last ? '1 : index == ip_last ? up_to(parsed.ip_top[LANE_W-1:0]) : '0;

  always_ff @(posedge clk) begin
    for (int unsigned i = 0; i < BYTES; i++) s4_data_q[i*8+:8] <= counts[i] ? s3_q.data[i*8+:8] : '0;
    s4_keep_q <= s3_q.keep;
    s4_first_q <= s3_q.index == '0;
    s4_counts_valid_q <= s3_q.valid && (!s3_decided_q || index <= ip_last) && !rst;
    s4_counts_last_q <= s3_q.last || (s3_decided_q && index == ip_last);
    s4_counts_q <= counts;
    s4_top_q <= parsed.ip_top[LANE_W-1:0];
    s4_q <= '{last: s3_q.valid && s3_q.last && !rst, drop: early, cls: parsed.cls, listener: parsed.listener,
              sound: s3_decided_q && !s3_q.bad, card: s3_decided_q && !s3_q.bad, asks_us: s3_asks_us_q,
              flow: parsed.flow_known ? s3_flow_q : '0,
              hashed: hash_ports || (parsed.has_addresses && (s3_v6_q ? types.ipv6 : types.ipv4)), hashes_ports: hash_ports, hash: '0,
              checked: parsed.sum_known && parsed.headers_fit && index >= ip_last && s3_q.index != index_t'(COUNTED_BEATS),
              sum_checked: parsed.sum_checked,
              extent: '{place: parsed.place, length: parsed.payload_length},
              beats: s3_q.index >= index_t'(MAX_BEATS) ? index_t'(MAX_BEATS) : s3_q.index + 1'b1};
  end

  // The length of a whole frame: the earlier beats, and the kept bytes of this one.
  lane_t s4_last_lane;
  always_comb begin
    s4_last_lane = '0;
    for (int unsigned i = 1; i < BYTES; i++) if (s4_keep_q[i] && (i == BYTES - 1 || !s4_keep_q[(i+1)%BYTES])) s4_last_lane |= lane_t'(i);
  end
  wire [15:0] s4_frame_length = 16'({s4_q.beats, s4_last_lane}) - 16'(BYTES - 1);

  // ---- stages 4 to 9: checksums over the frame up to its end ----
  logic        crc_valid, sum_valid;
  crc32_t      crc_state;
  logic [31:0] sum;

  icrc_state #(.DATA_W(DATA_W)) icrc (
      .clk, .rst,
      .in_valid(s4_counts_valid_q), .in_first(s4_first_q), .in_last(s4_counts_last_q), .in_v6(s4_v6_q), .in_data(s4_data_q),
      .out_valid(crc_valid), .out_state(crc_state)
  );

  // The checksum of the IP payload begins in this beat at this lane: of IPv6 with the addresses, which are the end of the header.
  localparam int unsigned SUM_FIRST = (ETH_HDR_BYTES + IPV4_HDR_BYTES) / BYTES;
  localparam int unsigned SUM_LANE = (ETH_HDR_BYTES + IPV4_HDR_BYTES) % BYTES;
  localparam int unsigned SUM_AT_V6 = ETH_HDR_BYTES + IPV6_HDR_BYTES - 2 * $bits(ip_addr_t) / 8;
  localparam int unsigned SUM_FIRST_V6 = SUM_AT_V6 / BYTES;
  localparam int unsigned SUM_LANE_V6 = SUM_AT_V6 % BYTES;
  logic s4_sum_first_q, s4_sum_before_q;
  always_ff @(posedge clk) begin
    s4_sum_first_q  <= s3_q.index == (s3_v6_q ? index_t'(SUM_FIRST_V6) : index_t'(SUM_FIRST));
    s4_sum_before_q <= s3_q.index + 1'b1 <= (s3_v6_q ? index_t'(SUM_FIRST_V6) : index_t'(SUM_FIRST));
  end
  keep_t summed;
  assign summed = !s4_sum_first_q ? '1 : s4_v6_q ? '1 << SUM_LANE_V6 : '1 << SUM_LANE;

  internet_checksum #(.DATA_W(DATA_W)) checksum (
      .clk, .rst,
      .in_valid(s4_counts_valid_q && !s4_sum_before_q), .in_first(s4_sum_first_q), .in_last(s4_counts_last_q),
      .in_data(s4_data_q), .in_keep(summed),
      .out_valid(sum_valid), .out_sum(sum)
  );

  // The residue of a valid frame whose last beat is filled up with zeros after lane `top`.
  typedef crc32_t [BYTES-1:0] residues_t;
  function automatic residues_t residues();
    residues_t r;
    r[BYTES-1] = CRC32_RESIDUE;
    for (int unsigned top = BYTES - 1; top > 0; top--) r[top-1] = crc32_zero_byte(r[top]);
    return r;
  endfunction
  localparam residues_t RESIDUES = residues();

  lane_t       s5_top_q;
  crc32_t      s6_residue_q, s7_difference_q;
  logic [18:0] s5_pseudo_q, s6_pseudo_q, s7_pseudo_q;
  logic [19:0] s8_sum_q;
  logic        s7_crc_valid_q, s8_crc_ok_q, s8_sum_valid_q, s9_crc_ok_q, s9_sum_ok_q;

  always_ff @(posedge clk) begin
    s5_top_q <= s4_top_q;
    s6_residue_q <= RESIDUES[s5_top_q];
    s7_difference_q <= crc_state ^ s6_residue_q;
    s7_crc_valid_q <= crc_valid;
    if (s7_crc_valid_q) s8_crc_ok_q <= s7_difference_q == '0;
    s9_crc_ok_q <= s8_crc_ok_q;

    s5_pseudo_q <= checks.pseudo_sum;
    s6_pseudo_q <= s5_pseudo_q;
    s7_pseudo_q <= s6_pseudo_q;
    s8_sum_q <= 20'(sum[15:0]) + 20'(sum[31:16]) + 20'(s7_pseudo_q);
    s8_sum_valid_q <= sum_valid;
    if (s8_sum_valid_q) s9_sum_ok_q <= s8_sum_q[15:0] == 16'hffff - 16'(s8_sum_q[19:16]);
  end

  // ---- stages 5 to 10: the outcome ----
  outcome_t s5_q, s6_q, s7_q, s8_q, s9_q, s10_q;

  always_ff @(posedge clk) begin
    s5_q <= s4_q;
    s5_q.hash <= address_hash ^ (s4_q.hashes_ports ? port_hash : '0);
    if (s4_q.extent.place == RX_PLACE_0) s5_q.extent.length <= s4_frame_length;
    if ((s4_counts_q & ~s4_keep_q) != '0 || !checks.ipv4_ok) s5_q.checked <= 1'b0;
    if (!checks.card || (IPV6 && s4_q.cls == CLASS_ND && s4_q.drop == DROP_NONE && s4_q.asks_us && !card.answers_arp)) s5_q.card <= 1'b0;
    if (s4_q.drop == DROP_NONE) begin
      if ((s4_counts_q & ~s4_keep_q) != '0) s5_q.drop <= DROP_RUNT;
      else if (!checks.ipv4_ok) s5_q.drop <= DROP_IPV4_HEADER;
    end
    if (s4_q.card && checks.alone) s5_q.drop <= DROP_ALONE;
    s6_q <= s5_q;
    s7_q <= s6_q;
    s8_q <= s7_q;
    s9_q <= s8_q;
    s10_q <= s9_q;
    s10_q.checked <= s9_q.checked && s9_sum_ok_q;
    if (s9_q.drop == DROP_NONE) begin
      if (s9_q.sum_checked && !s9_sum_ok_q) s10_q.drop <= s9_q.cls == CLASS_ICMP ? DROP_ICMP : s9_q.cls inside {CLASS_ND, CLASS_RA} ? DROP_ND : DROP_UDP_CHECKSUM;
      else if (s9_q.cls == CLASS_ROCE && !s9_crc_ok_q) s10_q.drop <= DROP_ICRC;
    end
    if (rst) begin
      s5_q.last  <= 1'b0;
      s6_q.last  <= 1'b0;
      s7_q.last  <= 1'b0;
      s8_q.last  <= 1'b0;
      s9_q.last  <= 1'b0;
      s10_q.last <= 1'b0;
    end
  end

  wire settled = s10_q.last;
  assign decided = settled && s10_q.sound;
  wire kept_away = decided && decision.keep_away;
  wire good = s10_q.drop == DROP_NONE && !kept_away;
  logic to_card;
  always_comb begin
    unique case (decided ? decision.card : CARD_AS_CLASS)
      CARD_ALWAYS: to_card = 1'b1;
      CARD_NEVER:  to_card = 1'b0;
      default:     to_card = s10_q.card;
    endcase
  end

  // ---- store of whole frames, and their payload ----
  logic [$clog2(STORE_DEPTH):0] room;
  logic [$clog2(PAYLOADS):0] frames_room;
  logic store_empty;

  packet_store #(.DATA_W(DATA_W), .DEPTH(STORE_DEPTH), .FRAMES(PAYLOADS), .IPV6(IPV6)) store (
      .clk, .rst,
      .in_valid(s1_q.valid && s1_q.index < index_t'(MAX_BEATS)), .in_data(s1_q.data), .in_last(s1_q.valid && s1_q.last),
      .extent(s9_q.extent), .verdict(settled), .beats($bits(room)'(s10_q.beats)),
      .wanted(good), .out(payload), .room, .frames_room, .empty(store_empty)
  );

  // ---- headers wait for their outcome; both are queued for every frame, and discarded together if it is bad ----
  typedef struct packed {
    logic         good;
    frame_class_e cls;
    listener_e    listener;
    logic [15:0]  payload_length;
  } record_t;

  // The headers of a frame are stored long before its outcome is known; there are never more of them than admitted frames.
  (* ram_style = "distributed" *) logic [$bits(headers_t)-1:0] kept[RECORDS];
  logic [$clog2(RECORDS)-1:0] keep_q, take_q;

  stream_if #(.T(record_t)) record_in ();
  stream_if #(.T(record_t)) record_out ();
  logic records_empty;

  assign record_in.valid = settled;
  assign record_in.data  = '{good: good, cls: s10_q.cls, listener: s10_q.listener, payload_length: s10_q.extent.length};

  stream_fifo #(.T(record_t), .DEPTH(RECORDS)) records (
      .clk, .rst, .in(record_in), .out(record_out), .empty(records_empty)
  );

  record_t head;
  assign head = record_out.data;

  wire pop = record_out.valid && (frame.ready || !head.good);
  assign record_out.ready = pop;
  assign frame.valid = record_out.valid && head.good;
  assign frame.data  = frame_rx_t'{cls: head.cls, listener: head.listener, payload_length: head.payload_length, headers: headers_t'(kept[take_q])};

  wire keep = s1_q.valid && s1_q.last;
  always_ff @(posedge clk) if (keep) kept[keep_q] <= headers;
  always_ff @(posedge clk) begin
    if (rst) begin
      keep_q <= '0;
      take_q <= '0;
    end else begin
      keep_q <= keep_q + $bits(keep_q)'(keep);
      take_q <= take_q + $bits(take_q)'(pop);
    end
  end

  // ---- free space ----
  logic [$clog2(RECORDS):0] frames_q;  // admitted and not yet handed on or dropped, or only in the previous cycle
  logic popped_q;

  always_ff @(posedge clk) begin
    popped_q <= pop && !rst;
    if (rst) begin
      frames_q <= '0;
      room_q   <= 1'b0;
    end else begin
      frames_q <= frames_q + $bits(frames_q)'(take && rx.tlast) - $bits(frames_q)'(popped_q);
      room_q   <= room >= $bits(room)'(MAX_BEATS + IN_FLIGHT) && frames_q < $bits(frames_q)'(RECORDS - 2)
                  && frames_room > $bits(frames_room)'(4);
    end
  end

  assign idle = frames_q == '0 && index_q == '0 && store_empty;

  // ---- for the card: a frame that was refused has its verdict in its turn ----
  localparam int unsigned VERDICT = 10;
  logic [VERDICT-1:0] refused_end_q;
  always_ff @(posedge clk) refused_end_q <= rst ? '0 : {refused_end_q[VERDICT-2:0], rx.tvalid && rx.tlast && refused};
  assign card_verdict_valid = settled || refused_end_q[VERDICT-1];
  assign card_verdict       = '{
      wanted: settled && to_card,
      checked: s10_q.checked,
      pair_set: decision.pair_set,
      flow: decision.pair_set ? decision.pair : s10_q.flow,
      edit: decided ? decision.edit : '0,
      stream: decided ? decision.stream : STREAM_AS_SET,
      hashed: s10_q.hashed,
      hash: s10_q.hash
  };

  // ---- events ----
  logic overflow_q;
  always_ff @(posedge clk) overflow_q <= rx.tvalid && rx.tlast && refused && !rst;

  always_comb begin
    events = '0;
    events.drop_overflow = overflow_q;
    events.rx_card = settled && to_card;
    if (settled && !kept_away && (good || !to_card)) begin
      unique case (s10_q.drop)
        DROP_NONE: begin
          events.rx_frame = 1'b1;
          unique case (s10_q.cls)
            CLASS_ARP:  events.rx_arp = 1'b1;
            CLASS_ICMP: events.rx_icmp = 1'b1;
            CLASS_ROCE: events.rx_roce = 1'b1;
            CLASS_UDP:  events.rx_udp = 1'b1;
            CLASS_ND, CLASS_RA: events.rx_nd = 1'b1;
            default:    ;
          endcase
        end
        DROP_FCS:           events.drop_fcs = 1'b1;
        DROP_RUNT:          events.drop_runt = 1'b1;
        DROP_OVERSIZE:      events.drop_oversize = 1'b1;
        DROP_NOT_OURS:      events.drop_not_ours = 1'b1;
        DROP_IPV4_HEADER:   events.drop_ipv4_header = 1'b1;
        DROP_IPV4_FRAGMENT: events.drop_ipv4_fragment = 1'b1;
        DROP_UDP_LENGTH:    events.drop_udp_length = 1'b1;
        DROP_UDP_CHECKSUM:  events.drop_udp_checksum = 1'b1;
        DROP_ICMP:          events.drop_icmp = 1'b1;
        DROP_ARP:           events.drop_arp = 1'b1;
        DROP_ICRC:          events.drop_icrc = 1'b1;
        DROP_ROCE_OPCODE:   events.drop_roce_opcode = 1'b1;
        DROP_ICMP_UNREACHABLE: events.drop_icmp_unreachable = 1'b1;
        DROP_ICMP_TOO_BIG:  events.drop_icmp_too_big = 1'b1;
        DROP_IPV6_HEADER:   events.drop_ipv6_header = 1'b1;
        DROP_IPV6_EXTENSION: events.drop_ipv6_extension = 1'b1;
        DROP_IPV6_FRAGMENT: events.drop_ipv6_fragment = 1'b1;
        DROP_ND:            events.drop_nd = 1'b1;
        default:            ;
      endcase
    end
  end

  always_ff @(posedge clk)
    if (!rst) begin
      assert (!record_in.valid || record_in.ready);
      assert (records_empty || frames_q != '0);
    end
endmodule
