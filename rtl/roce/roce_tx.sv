// SPDX-License-Identifier: Apache-2.0

// Builds the frames of a device's queue pairs: packets of two sources, each in its order, their payload read from memory; and
// what has no payload and no order: acknowledgements and CNPs, which go first at each packet boundary.
//
// `ack` to `frame`: 4 cycles; one frame a cycle. Payload is asked for in the cycle after its packet has come, up to 32 packets
// or 16 KiB of each source ahead of the wire, so that the latency of memory costs no throughput; no more, because what is sent again
// leaves behind that. The sources take turns, packet by packet, both
// in asking memory and on the wire. What is ready is not held up behind what waits for memory: a packet without payload passes
// those of the other source, and while no payload is on its way out a packet waits until the first beat of its own has come.
// When `frame` or `payload` stop everything stops, acknowledgements after 32 of them; nothing is lost.
//
// Payload that could not be read ends with tuser, which spoils the frame on its way to the wire, and is told to its source on
// `fault`; no other payload passes until that is taken. An acknowledgement of a QP that is not set up is dropped.
//
// Who wants to know when something of a QP has left gives a pulse: `flushed` is low then until all requests (`flush_requests`) or all
// acknowledgements (`flush_acks`) that were here have left, payload included. Nobody waits for that; what comes behind does not count.
module roce_tx
  import packet_pkg::*;
  import roce_pkg::*;
  import roce_requester_pkg::*;
  import roce_counters_pkg::*;
  import memory_pkg::*;
#(
    parameter int unsigned QPS = 16,
    parameter logic [5:0] DSCP = 6'd0,       // of all but CNPs
    parameter logic [5:0] CNP_DSCP = 6'd48   // network control (RFC 2474 CS6): CNPs should not wait in the queues that they are about
) (
    input logic        clk,
    input logic        rst,
    input local_addr_t local_addr,
    input logic        ect,             // mark packets of `packet` ECT(0) (RFC 3168), else not ECT

    stream_if.sink     packet[2],       // tx_packet_t: [0] responses, [1] requests
    stream_if.sink     ack,             // ack_tx_t
    input logic        flush_requests,  // pulses, when `flushed`
    input logic        flush_acks,
    output logic       flushed,

    input logic        peer_write,
    input qp_index_t   peer_write_index,
    input sq_peer_t    peer_write_data,

    stream_if.source   read_cmd,        // dma_cmd_t,
    output logic       read_source,     // of a packet of this source
    axis_if.sink       read_data,
    stream_if.source   frame,           // frame_tx_t
    axis_if.source     payload,
    stream_if.source   fault[2],        // tx_fault_t, to the source of the packet

    output logic       left,            // a response was chosen, a cycle ago: what is taken on `ack` now leaves behind it
    output qpn_t       left_qpn,
    output logic [1:0] passed,          // the payload of a packet of this source was read, and has passed

    output qp_sent_t        went,       // of the QP of this frame
    output roce_tx_events_t events,     // of packet[1]
    output logic            data_idle,  // no response inside
    output logic            idle
);
  localparam int unsigned AHEAD = 32;    // packets whose payload is asked for; those of a source that wait
  localparam int unsigned AHEAD_UNITS = 64;  // payload of a source inside, 256 bytes each: covers the latency of memory
  localparam int unsigned PACKET_UNITS = 16;
  localparam int unsigned ACKS = 32;     // acknowledgements that wait
  localparam int unsigned CHOSEN = 8;    // frames chosen before their payload has passed: acknowledgements wait behind them
  localparam int unsigned INDEX_W = $clog2(QPS);

  // ---- what comes: into its source's queue, and to memory ----
  typedef struct packed {
    qp_index_t   index;
    logic [7:0]  opcode;
    psn_t        psn;
    logic        se;
    logic        ackreq;
    logic [EXT_BYTES*8-1:0] ext;
    logic [12:0] length;
    logic        empty;
    logic        again;
    logic        internal_;
  } queued_t;

  typedef logic [$clog2(AHEAD):0] count_t;
  typedef logic [4:0] units_t;           // of a packet: PACKET_UNITS at most

  function automatic units_t units_of(logic empty, logic [12:0] length);
    return empty ? '0 : units_t'(length[12:8]) + units_t'(|length[7:0]);
  endfunction

  typedef struct packed {
    target_t     target;
    mr_key_t key;
    addr_t       addr;
    logic [12:0] length;
  } read_t;

  tx_packet_t  came[2];
  read_t       read[2];
  logic [1:0]  asks, taken;
  count_t      waits_q[2];               // packets in its queue
  logic [1:0]  room_q;                   // for one more after what comes just now
  logic [1:0]  passed_q;                 // payload of this source has passed: so much
  units_t      passed_units_q;
  logic        order_room_q;
  logic        pick;                     // the source that asks memory
  logic        turn_q, locked_q, pick_q; // a read that was offered stays
  queued_t     head[2];
  logic [1:0]  head_valid, head_taken;
  logic        chosen_payload;           // a packet with payload leaves its queue
  stream_if #(.T(logic)) order_in ();    // whose payload comes next
  stream_if #(.T(logic)) order_out ();

  wire         ask = read_cmd.valid && read_cmd.ready;

  for (genvar i = 0; i < 2; i++) begin : g_source
    stream_if #(.T(queued_t)) queue_in ();
    stream_if #(.T(queued_t)) queue_out ();

    stream_if #(.T(read_t)) read_in ();
    stream_if #(.T(read_t)) read_out ();

    assign came[i]          = packet[i].data;
    assign packet[i].ready  = room_q[i];
    assign taken[i]         = packet[i].valid && room_q[i];
    assign read_in.valid    = taken[i] && !came[i].empty;
    assign read_in.data     = '{target: came[i].target, key: came[i].key, addr: came[i].addr, length: came[i].length};
    assign read[i]          = read_out.data;
    assign asks[i]          = read_out.valid && order_room_q;
    assign read_out.ready   = ask && pick == i;
    assign queue_in.valid   = taken[i];
    assign queue_in.data    = '{
            index: sq_index(came[i].qpn),
            opcode: came[i].opcode,
            psn: came[i].psn,
            se: came[i].se,
            ackreq: came[i].ackreq,
            ext: came[i].ext,
            length: came[i].length,
            empty: came[i].empty,
            again: came[i].again,
            internal_: came[i].internal_
        };

    stream_fifo #(
        .T(queued_t),
        .DEPTH(AHEAD)
    ) queue (
        .clk,
        .rst,
        .in   (queue_in),
        .out  (queue_out),
        .empty()
    );
    stream_fifo #(
        .T(read_t),
        .DEPTH(AHEAD)
    ) reads (
        .clk,
        .rst,
        .in   (read_in),
        .out  (read_out),
        .empty()
    );
    assign head[i]         = queue_out.data;
    assign head_valid[i]   = queue_out.valid;
    assign queue_out.ready = head_taken[i];

    logic [6:0] inside_q, inside_d;      // units of payload; there is room as long as those of the largest packet fit
    assign inside_d = inside_q + (taken[i] ? 7'(units_of(came[i].empty, came[i].length)) : '0)
        - (passed_q[i] ? 7'(passed_units_q) : '0);
    always_ff @(posedge clk) begin
      if (rst) begin
        waits_q[i] <= '0;
        inside_q   <= '0;
        room_q[i]  <= 1'b0;
      end else begin
        waits_q[i] <= waits_q[i] + count_t'(taken[i]) - count_t'(head_taken[i]);
        inside_q   <= inside_d;
        room_q[i]  <= waits_q[i] <= count_t'(AHEAD - 2) && inside_d <= 7'(AHEAD_UNITS - PACKET_UNITS);
      end
    end
    always_ff @(posedge clk) if (!rst && taken[i]) assert (queue_in.ready && read_in.ready);
  end

  assign pick           = locked_q ? pick_q : &asks ? turn_q : asks[1];
  assign read_source    = pick;
  assign read_cmd.valid = |asks;
  assign read_cmd.data  = '{target: read[pick].target, key: read[pick].key, addr: read[pick].addr, length: 32'(read[pick].length)};
  assign order_in.valid = ask;
  assign order_in.data  = pick;

  always_ff @(posedge clk) begin
    pick_q <= pick;
    if (ask) turn_q <= !pick;
    if (rst) begin
      turn_q   <= 1'b0;
      locked_q <= 1'b0;
    end else locked_q <= read_cmd.valid && !read_cmd.ready;
  end

  count_t ordered_q;
  always_ff @(posedge clk) begin
    if (rst) begin
      ordered_q    <= '0;
      order_room_q <= 1'b0;
    end else begin
      ordered_q    <= ordered_q + count_t'(ask) - count_t'(chosen_payload);
      order_room_q <= ordered_q <= count_t'(AHEAD - 2);
    end
  end
  always_ff @(posedge clk) if (!rst && order_in.valid) assert (order_in.ready);

  stream_fifo #(
      .T(logic),
      .DEPTH(AHEAD)
  ) order (
      .clk,
      .rst,
      .in   (order_in),
      .out  (order_out),
      .empty()
  );

  stream_if #(.T(ack_tx_t)) ack_out ();
  logic ack_empty;
  stream_fifo #(
      .T(ack_tx_t),
      .DEPTH(ACKS)
  ) acks (
      .clk,
      .rst,
      .in   (ack),
      .out  (ack_out),
      .empty(ack_empty)
  );

  // ---- payload passes through, once its frame was chosen ----
  typedef struct packed {
    logic      source;
    units_t    units;
    qp_index_t index;
    psn_t      psn;
  } owner_t;

  stream_if #(.T(owner_t)) owner_in ();
  stream_if #(.T(owner_t)) owner_out ();
  logic   fault_valid_q;
  owner_t fault_q;
  logic [1:0] fault_ready;
  wire    payload_end = payload.tvalid && payload.tready && payload.tlast;
  wire    pass = owner_out.valid && !fault_valid_q;

  stream_fifo #(
      .T(owner_t),
      .DEPTH(CHOSEN)
  ) owners (
      .clk,
      .rst,
      .in   (owner_in),
      .out  (owner_out),
      .empty()
  );
  assign owner_out.ready = payload_end;

  assign passed           = passed_q;
  assign payload.tdata    = read_data.tdata;
  assign payload.tkeep    = read_data.tkeep;
  assign payload.tlast    = read_data.tlast;
  assign payload.tuser    = read_data.tuser;
  assign payload.tvalid   = read_data.tvalid && pass;
  assign read_data.tready = payload.tready && pass;

  for (genvar i = 0; i < 2; i++) begin : g_fault
    assign fault[i].valid = fault_valid_q && fault_q.source == i;
    assign fault[i].data  = tx_fault_t'{qpn: qp_number(fault_q.index), psn: fault_q.psn};
    assign fault_ready[i] = fault[i].ready;
  end
  always_ff @(posedge clk) begin
    passed_q       <= !rst && payload_end ? {owner_out.data.source, !owner_out.data.source} : '0;
    passed_units_q <= owner_out.data.units;
    if (payload_end) fault_q <= owner_out.data;
    if (rst) fault_valid_q <= 1'b0;
    else if (!fault_valid_q) fault_valid_q <= payload_end && payload.tuser;
    else if (fault_ready[fault_q.source]) fault_valid_q <= 1'b0;
  end

  // ---- choose ----
  // What the headers of a frame say, apart from the addresses.
  typedef enum logic [1:0] {
    FROM_RESPONSES = 2'd0,
    FROM_REQUESTS  = 2'd1,
    FROM_ACKS      = 2'd2
  } from_e;

  typedef struct packed {
    from_e       from;
    qp_index_t   index;
    logic [7:0]  opcode;
    logic        becn;
    psn_t        psn;
    logic        se;
    logic        ackreq;
    logic [EXT_BYTES*8-1:0] ext;
    logic [12:0] length;
    logic        again;
  } job_t;

  ack_tx_t next_ack;
  assign next_ack = ack_out.data;

  logic       step;        // the pipeline moves
  logic       first_q;     // the source whose turn it is
  logic [1:0] may;         // its packet can go
  logic       source;
  logic       ahead_room_q;  // one more frame may be chosen ahead of its payload
  for (genvar i = 0; i < 2; i++) begin : g_may
    assign may[i] = head_valid[i] && (head[i].empty
        || (order_out.valid && order_out.data == i && ahead_room_q && (owner_out.valid || read_data.tvalid)));
  end
  assign source = may[first_q] ? first_q : !first_q;

  wire choose_ack  = ack_out.valid;
  wire choose_data = !choose_ack && |may;
  assign head_taken = {step && choose_data && source, step && choose_data && !source};
  queued_t next_packet;
  assign next_packet   = head[source];
  assign ack_out.ready = step && choose_ack;

  assign chosen_payload = (head_taken[0] && !head[0].empty) || (head_taken[1] && !head[1].empty);
  assign order_out.ready = chosen_payload;
  assign owner_in.valid  = chosen_payload;
  assign owner_in.data   = '{
          source: source, units: units_of(1'b0, next_packet.length), index: next_packet.index, psn: next_packet.psn
      };

  job_t chosen;
  always_comb begin
    if (choose_ack) begin
      chosen = '{
          from: FROM_ACKS,
          index: sq_index(next_ack.qpn),
          opcode: next_ack.cnp ? CNP : RC_ACKNOWLEDGE,
          becn: next_ack.cnp,
          psn: next_ack.cnp ? '0 : next_ack.psn,
          ext: {next_ack.cnp ? '0 : next_ack.aeth, {(EXT_BYTES - AETH_BYTES) * 8{1'b0}}},
          default: '0
      };
    end else begin
      chosen = '{
          from: source ? FROM_REQUESTS : FROM_RESPONSES,
          index: next_packet.index,
          opcode: next_packet.opcode,
          becn: 1'b0,
          psn: next_packet.psn,
          se: next_packet.se,
          ackreq: next_packet.ackreq,
          ext: next_packet.ext,
          length: next_packet.length,
          again: next_packet.again
      };
    end
  end

  logic [$clog2(CHOSEN):0] ahead_q;
  always_ff @(posedge clk) begin
    ahead_room_q <= ahead_q <= ($clog2(CHOSEN) + 1)'(CHOSEN - 2);  // and one more may be chosen just now
    if (rst) ahead_q <= '0;
    else ahead_q <= ahead_q + ($clog2(CHOSEN) + 1)'(chosen_payload) - ($clog2(CHOSEN) + 1)'(payload_end);
  end
  always_ff @(posedge clk) if (!rst && owner_in.valid) assert (owner_in.ready);

  always_ff @(posedge clk) begin
    left_qpn <= qp_number(head[0].index);
    if (rst) begin
      left    <= 1'b0;
      first_q <= 1'b0;
    end else begin
      left <= head_taken[0];
      if (|head_taken) first_q <= !source;
    end
  end

  // ---- addresses ----
  (* ram_style = "block" *) logic [$bits(sq_peer_t)-1:0] peers[QPS];
  logic [$bits(sq_peer_t)-1:0] peer_bits_q;
  sq_peer_t peer_q;
  job_t     job_q;
  logic     job_valid_q;
  assign peer_q = sq_peer_t'(peer_bits_q);

  always_ff @(posedge clk) begin
    if (peer_write) peers[peer_write_index[INDEX_W-1:0]] <= peer_write_data;
    if (step) begin
      job_q       <= chosen;
      peer_bits_q <= peers[chosen.index[INDEX_W-1:0]];
    end
  end

  // ---- headers, all but the IPv4 checksum ----
  localparam int unsigned TAIL_BYTES = HDR_BYTES - ROCE_HDR_BYTES - EXT_BYTES;  // of the window: not used
  typedef struct packed {
    from_e       from;
    logic [6:0]  hdr_length;
    logic [15:0] payload_length;
    logic [1:0]  pad;
    roce_hdr_t   hdr;
    logic [EXT_BYTES*8-1:0] ext;
  } laid_t;

  // Spreads the flows of a device over the paths of a network (IBTA annex A17.4.5): one port a QP, as Linux chooses it.
  function automatic logic [15:0] source_port(qp_index_t index);
    qpn_t qpn;
    qpn = qp_number(index);
    return 16'hc000 | 16'(qpn[13:0] ^ 14'(qpn[23:14]));
  endfunction

  function automatic laid_t headers(job_t job, sq_peer_t peer, local_addr_t local_, logic ect_, logic [15:0] identification);
    laid_t       r;
    logic [5:0]  ext_bytes;
    logic [10:0] words;      // of payload
    logic [15:0] udp_length;
    words            = job.length[12:2] + 11'(|job.length[1:0]);
    ext_bytes        = ext_headers(job.opcode).bytes;
    r.from           = job.from;
    r.pad            = 2'(-job.length[1:0]);
    r.payload_length = 16'(job.length);
    r.hdr_length     = 7'(ROCE_HDR_BYTES) + 7'(ext_bytes);
    udp_length       = 16'(UDP_HDR_BYTES + BTH_BYTES + ICRC_BYTES) + 16'(ext_bytes) + {3'b0, words, 2'b00};

    r.hdr.eth  = '{dst: peer.mac, src: local_.mac, ethertype: ETHERTYPE_IPV4};
    r.hdr.ipv4 = '{
        version: 4'd4,
        ihl: 4'd5,
        dscp: job.becn ? CNP_DSCP : DSCP,
        ecn: {ect_ && job.from != FROM_ACKS, 1'b0},
        total_length: 16'(IPV4_HDR_BYTES) + udp_length,
        identification: identification,
        flag_df: 1'b1,
        ttl: 8'd64,
        protocol: IPPROTO_UDP,
        src: local_.ip,
        dst: peer.ip,
        default: '0
    };
    // Checksum 0: the ICRC covers it all (IBTA annex A17.3.1).
    r.hdr.udp = '{src_port: source_port(job.index), dst_port: UDP_PORT_ROCE, length: udp_length, checksum: '0};
    r.hdr.bth = '{
        opcode: job.opcode,
        se: job.se,
        migreq: !job.becn,   // 0 in a CNP (IBTA annex A17.9.3)
        padcnt: r.pad,
        pkey: PKEY_DEFAULT,
        becn: job.becn,
        destqp: peer.qpn,
        ackreq: job.ackreq,
        psn: job.psn,
        default: '0
    };
    r.ext = job.ext;
    return r;
  endfunction

  laid_t       laid_q, summed_q;
  logic [15:0] sum_q, identification_q;
  logic        laid_valid_q, summed_valid_q;
  wire         keep = job_valid_q && (peer_q.valid || job_q.from != FROM_ACKS);

  assign step = !summed_valid_q || frame.ready;

  roce_hdr_t hdr;
  always_comb begin
    hdr                      = summed_q.hdr;
    hdr.ipv4.header_checksum = ~sum_q;
  end
  assign frame.valid = summed_valid_q;
  assign frame.data  = frame_tx_t'{
          hdr_length: summed_q.hdr_length,
          payload_length: summed_q.payload_length,
          pad: summed_q.pad,
          icrc: 1'b1,
          hdr: {hdr, summed_q.ext, {TAIL_BYTES * 8{1'b0}}}
      };

  always_ff @(posedge clk) begin
    if (step) begin
      laid_q   <= headers(job_q, peer_q, local_addr, ect, identification_q);
      summed_q <= laid_q;
      sum_q    <= ipv4_header_sum(laid_q.hdr.ipv4);
    end
    if (rst) begin
      job_valid_q      <= 1'b0;
      laid_valid_q     <= 1'b0;
      summed_valid_q   <= 1'b0;
      identification_q <= '0;
    end else if (step) begin
      job_valid_q      <= choose_ack || choose_data;
      laid_valid_q     <= keep;
      summed_valid_q   <= laid_valid_q;
      identification_q <= identification_q + 16'(keep);
    end
  end

  // ---- what is inside ----
  function automatic logic inside_(from_e from);
    return (job_valid_q && job_q.from == from) || (laid_valid_q && laid_q.from == from)
        || (summed_valid_q && summed_q.from == from);
  endfunction

  logic [6:0] open_q[2];  // packets taken whose frame, or payload if they have it, was not let go
  logic [1:0] source_idle;
  for (genvar i = 0; i < 2; i++) begin : g_open
    wire closed_empty   = head_taken[i] && head[i].empty;
    wire closed_payload = payload_end && owner_out.data.source == i;
    always_ff @(posedge clk) begin
      if (rst) open_q[i] <= '0;
      else open_q[i] <= open_q[i] + 7'(taken[i]) - 7'(closed_empty) - 7'(closed_payload);
    end
    assign source_idle[i] = open_q[i] == 0 && !inside_(i == 0 ? FROM_RESPONSES : FROM_REQUESTS)
        && !(fault_valid_q && fault_q.source == i);
  end

  assign data_idle = source_idle[0];
  assign idle      = &source_idle && !inside_(FROM_ACKS) && ack_empty;

  // ---- when has what is inside now left? ----
  localparam int unsigned STAGES = 3;       // of frames, behind their choice
  typedef logic [$clog2(ACKS)+1:0] ack_count_t;

  enum logic [1:0] {
    F_LEFT,
    F_WAITS,                                // some of it is not chosen
    F_PAYLOAD,                              // some payload of what is chosen has not passed
    F_FRAMES                                // some frames of what is chosen were not let go, or a fault was not told
  } flush_q;
  ack_count_t acks_q, before_q;             // acknowledgements that wait; what waits before the end of the flush
  logic       of_acks_q;
  logic [$clog2(CHOSEN):0] passing_q;
  logic [1:0] steps_q;
  wire        gone = of_acks_q ? ack_out.valid && ack_out.ready : head_taken[1];
  assign flushed = flush_q == F_LEFT && !flush_requests && !flush_acks;

  always_ff @(posedge clk) begin
    if (rst) acks_q <= '0;
    else acks_q <= acks_q + ack_count_t'(ack.valid && ack.ready) - ack_count_t'(ack_out.valid && ack_out.ready);

    if (flush_requests || flush_acks) begin
      of_acks_q <= flush_acks;
      // An acknowledgement that finds no room comes next.
      before_q  <= flush_acks ? acks_q + ack_count_t'(ack.valid) - ack_count_t'(ack_out.valid && ack_out.ready)
          : ack_count_t'(waits_q[1]) + ack_count_t'(taken[1]) - ack_count_t'(head_taken[1]);
    end else if (gone) before_q <= before_q - 1'b1;
    if (flush_q == F_WAITS) passing_q <= ahead_q - ($clog2(CHOSEN) + 1)'(payload_end);
    else if (payload_end) passing_q <= passing_q - 1'b1;
    if (flush_q != F_FRAMES) steps_q <= 2'(STAGES);
    else if (step && steps_q != '0) steps_q <= steps_q - 1'b1;

    if (rst) flush_q <= F_LEFT;
    else begin
      unique case (flush_q)
        F_WAITS:   if (before_q == '0) flush_q <= of_acks_q ? F_FRAMES : F_PAYLOAD;
        F_PAYLOAD: if (passing_q == '0) flush_q <= F_FRAMES;
        F_FRAMES:  if (steps_q == '0 && !(fault_valid_q && fault_q.source)) flush_q <= F_LEFT;
        default:   ;
      endcase
      if (flush_requests || flush_acks) flush_q <= F_WAITS;
    end
  end

  // ---- what happened ----
  aeth_t aeth;
  assign aeth = job_q.ext[EXT_BYTES*8-1-:AETH_BYTES*8];
  wire answers = job_q.from == FROM_ACKS && !job_q.becn;
  always_ff @(posedge clk) begin
    went <= '0;
    if (!rst && keep && step) begin
      went <= '{
          index: job_q.index,
          pkts: job_q.from == FROM_REQUESTS,
          responses: job_q.from == FROM_RESPONSES || answers,
          bytes: qp_bytes_t'(job_q.length),
          packet_retransmit: job_q.from == FROM_REQUESTS && job_q.again,
          sent_nak: answers && aeth.syndrome[6:5] == SYNDROME_NAK_PSN_SEQ[6:5],
          send_rnr_err: answers && aeth.syndrome[6:5] == SYNDROME_RNR_NAK[6:5],
          np_cnp_sent: job_q.becn
      };
    end
  end

  // A message counts when its last packet is chosen for the first time.
  wire request = head_taken[1];
  wire message = request && !head[1].again && !head[1].internal_;
  always_ff @(posedge clk) begin
    events                   <= '0;
    events.sent_pkts         <= request;
    events.packet_retransmit <= request && head[1].again;
    events.sent_sends <= message && head[1].opcode inside {
        RC_SEND_LAST, RC_SEND_LAST_WITH_IMM, RC_SEND_LAST_WITH_INVALIDATE,
        RC_SEND_ONLY, RC_SEND_ONLY_WITH_IMM, RC_SEND_ONLY_WITH_INVALIDATE};
    events.sent_writes <= message && head[1].opcode inside {
        RC_RDMA_WRITE_LAST, RC_RDMA_WRITE_LAST_WITH_IMM, RC_RDMA_WRITE_ONLY, RC_RDMA_WRITE_ONLY_WITH_IMM};
    events.sent_reads   <= message && head[1].opcode == RC_RDMA_READ_REQUEST;
    events.sent_atomics <= message && head[1].opcode inside {RC_COMPARE_SWAP, RC_FETCH_ADD};
  end
endmodule
