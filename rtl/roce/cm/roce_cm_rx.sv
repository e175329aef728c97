// SPDX-License-Identifier: Apache-2.0

// Receives the datagrams for QP1, checks them, and extracts the fields that the connection manager needs. One beat a cycle and 14 free
// cycles between datagrams; a message is at `msg` about 25 cycles after its last beat. The stream never stalls: while DEPTH messages are
// queued, the next one is dropped (the peer retransmits it) and counted. There are two queues, served in turn: one for messages that name a
// connection, by the local id and the peer's address, and one for all others, so that messages without a connection do not delay the
// others.
//
// A datagram is accepted if it is a UD SEND_ONLY with the Q_Key and partition of the general service interface, from a QP1, of 256 bytes,
// from a unicast source, and its MAD header is one of communication management with a known attribute (IBTA 9.2, 13.4.3, 16.7).
module roce_cm_rx
  import packet_pkg::*;
  import frame_pkg::*;
  import roce_wire_pkg::*;
  import roce_pkg::*;
  import roce_cm_pkg::*;
#(
    parameter int unsigned DATA_W = 512,
    parameter int unsigned CLIENTS = 2,
    parameter bit          IPV6 = 1'b1,          // else every packet is one of IPv4
    parameter bit          ACTIVE = 1'b1,        // else the device sends no REQ, and what is in the answers to one is not needed
    parameter int unsigned DEPTH = 32            // of each queue
) (
    input  logic        clk,
    input  logic        rst,
    input  logic [CLIENTS-1:0][15:0] port,  // RDMA IP CM port on which each client listens; 0: it does not
    input  own_set_t    leaving,    // addresses that go: nobody listens on them
    input  mtu_code_t   max_mtu,
    stream_if.sink      frame,      // frame_rx_t
    axis_if.sink        payload,
    output comm_id_t    names_id,   // the connection that the current message names, if any
    output ip_addr_t    names_ip,
    input  logic        named,      // a cycle later: it exists
    stream_if.source    msg,        // cm_msg_t
    output logic        drop_malformed,
    output logic        drop_overflow,
    output logic        idle        // no activity; messages may wait at `msg`
);
  localparam int unsigned BEATS = MAD_BYTES * 8 / DATA_W;
  localparam int unsigned BEAT_W = $clog2(BEATS);
  localparam logic [6:0] PKEY_MEMBER_BIT = 7'd15;

  stream_if #(.T(cm_msg_t)) decoded ();
  stream_if #(.T(cm_msg_t)) stored ();
  logic full, store_idle, named_q;

  // ---- the frame's headers, then its beats ----
  frame_rx_t head;
  bth_t      bth;
  deth_t     deth;
  assign head = frame.data;
  assign bth  = head.headers.l4.roce.bth;
  assign deth = head.headers.l4.roce.ext.datagram.deth;

  wire hdr_good = bth.opcode == UD_SEND_ONLY && deth.qkey == QKEY_GSI && deth.srcqp == QPN_GSI
      && bth.pkey[PKEY_MEMBER_BIT-1:0] == PKEY_DEFAULT[PKEY_MEMBER_BIT-1:0]
      && head.payload_length == 16'(MAD_BYTES) && head.headers.one_host;

  typedef enum logic [1:0] {
    S_FRAME,    // waits for the headers
    S_PAYLOAD,  // receives the beats
    S_CHECK,    // the datagram is complete
    S_KEEP      // store it, or drop it
  } state_e;

  state_e            state_q;
  logic              good_q;
  mac_t              mac_q;
  ip_addr_t          ip_q, called_q;   // source and destination
  own_address_e      own_q;
  logic [BEAT_W-1:0] beat_q;
  logic [BEATS-1:0][DATA_W-1:0] words_q;

  // ---- decode ----
  cm_mad_t mad;
  cm_req_t req;
  cm_rep_t rep;
  cm_mra_t mra;
  cm_rej_t rej;
  cm_dreq_t dreq;
  for (genvar i = 0; i < MAD_BYTES; i++) begin : g_network_order
    assign mad[(MAD_BYTES-1-i)*8+:8] = words_q[i*8/DATA_W][i*8%DATA_W+:8];
  end
  assign req  = cm_req_t'(mad.data);
  assign rep  = cm_rep_t'(mad.data);
  assign rej  = mad.data[$bits(mad.data)-1 -: $bits(cm_rej_t)];
  assign mra  = mad.data[$bits(mad.data)-1 -: $bits(cm_mra_t)];
  assign dreq = mad.data[$bits(mad.data)-1 -: $bits(cm_dreq_t)];

  wire mad_good = mad.hdr.base_version == MAD_BASE_VERSION && mad.hdr.mgmt_class == MAD_CLASS_CM
      && mad.hdr.class_version == CM_CLASS_VERSION && mad.hdr.method == MAD_METHOD_SEND
      && mad.hdr.attr_id inside {{CM_ATTR_PREFIX, CM_REQ}, {CM_ATTR_PREFIX, CM_MRA}, {CM_ATTR_PREFIX, CM_REJ},
          {CM_ATTR_PREFIX, CM_REP}, {CM_ATTR_PREFIX, CM_RTU}, {CM_ATTR_PREFIX, CM_DREQ}, {CM_ATTR_PREFIX, CM_DREP}};
  wire cm_attr_e attr = cm_attr_e'(mad.hdr.attr_id[2:0]);

  // The client that listens on the port; if several do, the first.
  client_t client, client_q;
  logic    heard;
  always_comb begin
    client = '0;
    heard  = 1'b0;
    for (int unsigned i = CLIENTS; i > 0; i--)
      if (port[i-1] == req.service_id.port && port[i-1] != '0) begin
        client = client_t'(i - 1);
        heard  = 1'b1;
      end
  end

  rej_reason_e refusal, refusal_q;
  always_comb begin
    if (!heard || leaving[own_q] || req.service_id.prefix != '0 || req.service_id.port_space != RDMA_PS_TCP) refusal = REJ_INVALID_SERVICE_ID;
    else if (req.transport_service_type != TRANSPORT_RC) refusal = REJ_INVALID_TRANSPORT_TYPE;
    else if (req.cma.cma_version != 0 || req.cma.ip_version != cma_version_of(own_q)) refusal = REJ_UNSUPPORTED;
    else if (req.cma.dst_addr != cma_address(own_q, called_q)) refusal = REJ_INVALID_GID;
    else if (req.path_packet_payload_mtu == 0 || req.path_packet_payload_mtu > 4'(max_mtu)) refusal = REJ_INVALID_MTU;
    else refusal = REJ_NONE;
  end

  // At the same offset in a REQ and a REP.
  extensions_t extensions;
  logic        known_q;
  assign extensions = rep.extensions;
  wire known = extensions.magic == EXTENSIONS_MAGIC && extensions.version == EXTENSIONS_VERSION;

  // The beat with this field, the fourth at the latest, arrives at least two cycles before the check.
  assign names_id = dreq.ids.remote_comm_id;
  assign names_ip = ip_q;

  // ---- sequence of a datagram ----
  assign frame.ready    = state_q == S_FRAME;
  assign payload.tready = state_q == S_PAYLOAD;

  wire beat_taken = payload.tvalid && payload.tready;

  // Apart from the states: a simulator copies all of what a process with other registers writes, in every cycle.
  always_ff @(posedge clk) if (state_q == S_PAYLOAD && beat_taken && good_q) words_q[beat_q] <= payload.tdata;

  always_ff @(posedge clk) begin
    unique case (state_q)
      S_FRAME: begin
        good_q <= hdr_good;
        mac_q  <= head.headers.l2.src;
        ip_q     <= peer_address(IPV6, head.headers.l3.src);
        called_q <= peer_address(IPV6, head.headers.l3.dst);
        own_q    <= own_towards(peer_address(IPV6, head.headers.l3.dst));
        beat_q <= '0;
        if (frame.valid) state_q <= (head.payload_length == 0) ? S_CHECK : S_PAYLOAD;
      end
      S_PAYLOAD:
      if (beat_taken) begin
        beat_q <= beat_q + 1'b1;
        if (payload.tlast) begin
          good_q  <= good_q && !payload.tuser;
          state_q <= S_CHECK;
        end
      end
      S_CHECK: begin
        good_q    <= good_q && mad_good;
        refusal_q <= refusal;
        client_q  <= client;
        known_q   <= known;
        named_q   <= named && attr != CM_REQ;
        state_q   <= S_KEEP;
      end
      default: if (!good_q || full || decoded.ready) state_q <= S_FRAME;
    endcase
    if (rst) state_q <= S_FRAME;
  end

  wire is_req = attr == CM_REQ;
  wire of_req = !ACTIVE || is_req;
  always_comb begin
    decoded.data.attr                = attr;
    decoded.data.mac                 = mac_q;
    decoded.data.ip                  = ip_q;
    decoded.data.own                 = own_q;
    decoded.data.tid                 = mad.hdr.tid;
    decoded.data.ids                 = dreq.ids;
    decoded.data.qpn                 = (attr == CM_DREQ) ? dreq.remote_qpn : of_req ? req.local_qpn : rep.local_qpn;
    decoded.data.timeout             = cm_timeout((attr == CM_MRA) ? mra.service_timeout : req.local_cm_response_timeout);
    decoded.data.about               = mra.message_mraed;
    decoded.data.reason              = is_req ? conn_reason_t'(refusal_q) : rej.reason;
    decoded.data.starting_psn        = of_req ? req.starting_psn : rep.starting_psn;
    decoded.data.rnr_retry_count     = of_req ? req.rnr_retry_count : rep.rnr_retry_count;
    decoded.data.responder_resources = of_req ? req.responder_resources : rep.responder_resources;
    decoded.data.initiator_depth     = of_req ? req.initiator_depth : rep.initiator_depth;
    decoded.data.selective_repeat    = known_q && extensions.selective_repeat;
    decoded.data.contexts            = known_q && extensions.contexts ? cm_contexts(extensions.context_count) : '0;
    decoded.data.long_set_up         = known_q && extensions.contexts && extensions.long_set_up;
    decoded.data.private_data        = of_req ? req.private_data : (attr == CM_REP) ? rep.private_data : rej.private_data;
    decoded.data.has_token           = is_req && known_q && extensions.token;
    decoded.data.client              = client_q;
    decoded.data.response_timeout    = cm_timeout(req.remote_cm_response_timeout);
    decoded.data.path_mtu            = mtu_code_t'(req.path_packet_payload_mtu);
    decoded.data.local_ack_timeout   = req.primary_local_ack_timeout;
    decoded.data.retry_count         = req.retry_count;
    decoded.data.max_cm_retries      = req.max_cm_retries;
    decoded.data.dscp                = req.primary_traffic_class[7:2];
  end
  assign decoded.valid = state_q == S_KEEP && good_q;

  roce_cm_store #(.T(cm_msg_t), .DEPTH(DEPTH)) store (
      .clk, .rst, .in(decoded), .queue(named_q), .full, .out(stored), .idle(store_idle)
  );
  assign msg.valid    = stored.valid;
  assign stored.ready = msg.ready;
  always_comb begin
    msg.data    = stored.data;
    msg.data.ip = peer_address(IPV6, stored.data.ip);
    if (!IPV6) msg.data.own = OWN_IPV4;
  end

  always_ff @(posedge clk) begin
    drop_malformed <= !rst && state_q == S_KEEP && !good_q;
    drop_overflow  <= !rst && decoded.valid && full;
  end

  assign idle = store_idle && state_q == S_FRAME && !frame.valid;
endmodule
