// SPDX-License-Identifier: Apache-2.0

// Builds the frames of a device's queue pairs: request packets (in order, their payload read from memory) and
// acknowledgements, which go first at each packet boundary.
//
// An acknowledgement is out 4 cycles after `ack`; one frame a cycle. A request's memory read is asked for in the cycle in which
// it comes, up to 32 packets ahead of the wire, so that the latency of memory costs no throughput. While no payload is on
// its way out a request waits here until the first beat of its own has come: what is ready is not held up behind it.
// When `frame` or `payload` stop everything stops, acknowledgements after 32 of them; nothing is lost.
//
// Payload that could not be read ends with tuser, which spoils the frame on its way to the wire, and is told on `fault`.
// An acknowledgement of a QP that is not set up is dropped.
module roce_tx
  import packet_pkg::*;
  import roce_pkg::*;
  import roce_requester_pkg::*;
  import memory_pkg::*;
#(
    parameter int unsigned QPS = 16,
    parameter logic [7:0] TRAFFIC_CLASS = 8'h00  // DSCP and ECN of what is sent
) (
    input logic clk,
    input logic rst,
    input local_addr_t local_addr,

    stream_if.sink   packet,      // sq_packet_t
    stream_if.sink   ack,         // ack_tx_t
    input logic      hold_acks,

    input logic      peer_write,
    input qp_index_t peer_write_index,
    input sq_peer_t  peer_write_data,

    stream_if.source read_cmd,    // dma_cmd_t
    axis_if.sink     read_data,
    stream_if.source frame,       // frame_tx_t
    axis_if.source   payload,
    stream_if.source fault,       // sq_event_t

    output roce_tx_events_t events,
    output logic            data_idle,   // no request packet inside
    output logic            acks_idle,   // no acknowledgement inside but those that wait to be chosen
    output logic            idle
);
  localparam int unsigned AHEAD = 32;    // request packets whose payload is asked for
  localparam int unsigned INDEX_W = $clog2(QPS);

  // ---- what comes: a request to three places at once ----
  // Payload on its way: whose it is. Some packets are past the queue of requests, hence the double size.
  typedef struct packed {
    qp_index_t index;
    psn_t      psn;
  } owner_t;

  stream_if #(.T(sq_packet_t)) queue_in ();
  stream_if #(.T(sq_packet_t)) queue_out ();
  stream_if #(.T(owner_t)) owner_in ();
  stream_if #(.T(owner_t)) owner_out ();
  logic queue_empty, owner_empty;

  sq_packet_t came;
  assign came = packet.data;
  wire has_payload = !came.empty;

  assign packet.ready   = queue_in.ready && (!has_payload || (owner_in.ready && read_cmd.ready));
  assign queue_in.valid = packet.valid && packet.ready;
  assign queue_in.data  = came;
  assign owner_in.valid = packet.valid && has_payload && packet.ready;
  assign owner_in.data  = '{index: came.index, psn: came.psn};
  assign read_cmd.valid = packet.valid && has_payload && queue_in.ready && owner_in.ready;
  assign read_cmd.data  = dma_cmd_t'{addr: came.addr, length: 32'(came.length)};

  stream_fifo #(
      .T(sq_packet_t),
      .DEPTH(AHEAD)
  ) queue (
      .clk,
      .rst,
      .in   (queue_in),
      .out  (queue_out),
      .empty(queue_empty)
  );
  stream_fifo #(
      .T(owner_t),
      .DEPTH(2 * AHEAD)
  ) owners (
      .clk,
      .rst,
      .in   (owner_in),
      .out  (owner_out),
      .empty(owner_empty)
  );

  stream_if #(.T(ack_tx_t)) ack_out ();
  logic ack_empty;
  stream_fifo #(
      .T(ack_tx_t),
      .DEPTH(32)
  ) acks (
      .clk,
      .rst,
      .in   (ack),
      .out  (ack_out),
      .empty(ack_empty)
  );

  // ---- payload passes through, once its frame is on its way ----
  logic [6:0] afoot_q;  // frames chosen whose payload has not ended
  logic       fault_valid_q;
  owner_t     fault_q;
  wire        payload_end = payload.tvalid && payload.tready && payload.tlast;
  wire        pass = afoot_q != 0 && !fault_valid_q;

  assign payload.tdata    = read_data.tdata;
  assign payload.tkeep    = read_data.tkeep;
  assign payload.tlast    = read_data.tlast;
  assign payload.tuser    = read_data.tuser;
  assign payload.tvalid   = read_data.tvalid && pass;
  assign read_data.tready = payload.tready && pass;
  assign owner_out.ready  = payload_end;

  assign fault.valid = fault_valid_q;
  assign fault.data  = sq_event_t'{kind: SQ_EV_FAULT, index: fault_q.index, psn: fault_q.psn, syndrome: '0};
  always_ff @(posedge clk) begin
    if (payload_end) fault_q <= owner_out.data;
    if (rst) fault_valid_q <= 1'b0;
    else if (!fault_valid_q) fault_valid_q <= payload_end && payload.tuser;
    else if (fault.ready) fault_valid_q <= 1'b0;
  end

  // ---- choose ----
  // What the headers of a frame say, apart from the addresses.
  typedef struct packed {
    qp_index_t   index;
    logic [7:0]  opcode;
    psn_t        psn;
    logic        se;
    logic        ackreq;
    reth_t       reth;
    logic [31:0] word;     // ImmDt or AETH, if the opcode has one
    logic [12:0] length;
    logic [12:0] padded;   // length, up to the next multiple of 4
  } job_t;

  sq_packet_t next_packet;
  ack_tx_t    next_ack;
  assign next_packet = queue_out.data;
  assign next_ack    = ack_out.data;

  wire        payload_near = afoot_q != 0 || read_data.tvalid || next_packet.empty;

  logic step;           // the pipeline moves
  wire  choose_ack  = ack_out.valid && !hold_acks;
  wire  choose_data = !choose_ack && queue_out.valid && payload_near;
  assign ack_out.ready   = step && choose_ack;
  assign queue_out.ready = step && choose_data;

  job_t chosen;
  always_comb begin
    if (choose_ack) begin
      chosen = '{
          index: sq_index(next_ack.qpn),
          opcode: RC_ACKNOWLEDGE,
          psn: next_ack.psn,
          word: next_ack.aeth,
          default: '0
      };
    end else begin
      chosen = '{
          index: next_packet.index,
          opcode: next_packet.opcode,
          psn: next_packet.psn,
          se: next_packet.se,
          ackreq: next_packet.ackreq,
          reth: next_packet.reth,
          word: next_packet.imm,
          length: next_packet.length,
          padded: {next_packet.length[12:2] + 11'(|next_packet.length[1:0]), 2'b00}
      };
    end
  end

  wire chosen_payload = queue_out.ready && !next_packet.empty;
  always_ff @(posedge clk) begin
    if (rst) afoot_q <= '0;
    else afoot_q <= afoot_q + 7'(chosen_payload) - 7'(payload_end);
  end

  // ---- addresses ----
  (* ram_style = "block" *) logic [$bits(sq_peer_t)-1:0] peers[QPS];
  logic [$bits(sq_peer_t)-1:0] peer_bits_q;
  sq_peer_t peer_q;
  job_t     job_q;
  logic     job_valid_q;
  assign peer_q = sq_peer_t'(peer_bits_q);
  wire job_ack = job_q.opcode == RC_ACKNOWLEDGE;

  always_ff @(posedge clk) begin
    if (peer_write) peers[peer_write_index[INDEX_W-1:0]] <= peer_write_data;
    if (step) begin
      job_q       <= chosen;
      peer_bits_q <= peers[chosen.index[INDEX_W-1:0]];
    end
  end

  // ---- headers, all but the IPv4 checksum ----
  localparam int unsigned EXT_BYTES = HDR_BYTES - ROCE_HDR_BYTES;
  typedef logic [EXT_BYTES*8-1:0] ext_t;
  typedef struct packed {
    logic [6:0]  hdr_length;
    logic [15:0] payload_length;
    logic [1:0]  pad;
    roce_hdr_t   hdr;
    ext_t        ext;
  } laid_t;

  // Spreads the flows of a device over the paths of a network (IBTA annex A17.4.5): one port a QP, as Linux chooses it.
  function automatic logic [15:0] source_port(qp_index_t index);
    qpn_t qpn;
    qpn = qp_number(index);
    return 16'hc000 | 16'(qpn[13:0] ^ 14'(qpn[23:14]));
  endfunction

  function automatic laid_t headers(job_t job, sq_peer_t peer, local_addr_t local_, logic [15:0] identification);
    laid_t       r;
    logic [5:0]  ext_bytes;
    logic [15:0] udp_length;
    ext_bytes        = ext_headers(job.opcode).bytes;
    r.pad            = 2'(-job.length[1:0]);
    r.payload_length = 16'(job.length);
    r.hdr_length     = 7'(ROCE_HDR_BYTES) + 7'(ext_bytes);
    udp_length       = 16'(UDP_HDR_BYTES + BTH_BYTES + ICRC_BYTES) + 16'(ext_bytes) + 16'(job.padded);

    r.hdr.eth  = '{dst: peer.mac, src: local_.mac, ethertype: ETHERTYPE_IPV4};
    r.hdr.ipv4 = '{
        version: 4'd4,
        ihl: 4'd5,
        dscp: TRAFFIC_CLASS[7:2],
        ecn: TRAFFIC_CLASS[1:0],
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
        migreq: 1'b1,
        padcnt: r.pad,
        pkey: PKEY_DEFAULT,
        destqp: peer.qpn,
        ackreq: job.ackreq,
        psn: job.psn,
        default: '0
    };
    // RETH and ImmDt, or only one word.
    r.ext = '0;
    if (ext_bytes >= 6'(RETH_BYTES)) r.ext[$bits(ext_t)-1-:$bits(reth_t)+32] = {job.reth, job.word};
    else r.ext[$bits(ext_t)-1-:32] = job.word;
    return r;
  endfunction

  laid_t       laid_q, summed_q;
  logic [15:0] sum_q, identification_q;
  logic        laid_valid_q, summed_valid_q;
  wire         keep = job_valid_q && (peer_q.valid || !job_ack);

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
          hdr: {hdr, summed_q.ext}
      };

  always_ff @(posedge clk) begin
    if (step) begin
      laid_q   <= headers(job_q, peer_q, local_addr, identification_q);
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

  // ---- what happened ----
  wire laid_ack   = laid_q.hdr.bth.opcode == RC_ACKNOWLEDGE;
  wire summed_ack = summed_q.hdr.bth.opcode == RC_ACKNOWLEDGE;
  wire data_inside = (job_valid_q && !job_ack) || (laid_valid_q && !laid_ack) || (summed_valid_q && !summed_ack);
  wire acks_inside = (job_valid_q && job_ack) || (laid_valid_q && laid_ack) || (summed_valid_q && summed_ack);

  assign data_idle = queue_empty && owner_empty && !data_inside && !fault_valid_q;
  assign acks_idle = !acks_inside;
  assign idle      = data_idle && acks_idle && ack_empty;

  // A message counts when its last packet is chosen for the first time.
  wire message = queue_out.ready && !next_packet.again && !next_packet.keepalive;
  always_ff @(posedge clk) begin
    events                   <= '0;
    events.sent_packet       <= queue_out.ready;
    events.packet_retransmit <= queue_out.ready && next_packet.again;
    events.sent_send <= message && next_packet.opcode inside {
        RC_SEND_LAST, RC_SEND_LAST_WITH_IMM, RC_SEND_ONLY, RC_SEND_ONLY_WITH_IMM};
    events.sent_write <= message && next_packet.opcode inside {
        RC_RDMA_WRITE_LAST, RC_RDMA_WRITE_LAST_WITH_IMM, RC_RDMA_WRITE_ONLY, RC_RDMA_WRITE_ONLY_WITH_IMM};
  end
endmodule
