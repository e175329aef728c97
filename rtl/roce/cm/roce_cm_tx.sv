// SPDX-License-Identifier: Apache-2.0

// Builds a message of the connection manager and sends it as a frame of QP1, over IPv4 or IPv6: headers to `frame`, the 256 bytes of its MAD to
// `payload`.
// One beat a cycle from the cycle in which `msg` is valid; takes `msg` with the last of header and beats. Either output may stall.
module roce_cm_tx
  import packet_pkg::*;
  import roce_wire_pkg::*;
  import roce_pkg::*;
  import roce_cm_pkg::*;
#(
    parameter int unsigned DATA_W = 512,
    parameter bit          ACTIVE = 1'b1,   // else no REQ is sent
    parameter cm_timeout_t CM_TIMEOUT = 20,
    parameter logic [3:0]  REQ_RETRIES = 15,
    parameter logic [4:0]  MRA_TIMEOUT = 22,
    parameter logic [2:0]  RNR_RETRIES = 6,
    parameter logic [4:0]  TARGET_ACK_DELAY = 15
) (
    input  logic        clk,
    input  logic        rst,
    input  local_addr_t local_addr,
    input  logic [63:0] guid,      // the device's
    input  mtu_code_t   max_mtu,
    stream_if.sink      msg,       // cm_send_t
    stream_if.source    frame,     // frame_tx_t
    axis_if.source      payload
);
  localparam int unsigned BYTES = DATA_W / 8;
  localparam int unsigned BEATS = MAD_BYTES / BYTES;
  localparam int unsigned BEAT_W = $clog2(BEATS);
  // UDP source port of the device's QP1: any of the dynamic range (IBTA A17.3.1 leaves it to the sender).
  localparam logic [15:0] UDP_SRC_PORT = 16'hc001;

  psn_t psn_q;
  logic frame_done_q, payload_done_q;
  logic [BEAT_W-1:0] beat_q;

  cm_conn_t conn;
  assign conn = msg.data.conn;

  // ---- headers ----
  ip_addr_t    own;          // the device's address of the connection
  deth_t       deth;
  roce_frame_t says;
  ipv4_hdr_t   ipv4;
  assign own = own_address(local_addr, conn.own);
  always_comb begin
    deth       = '0;
    deth.qkey  = QKEY_GSI;
    deth.srcqp = QPN_GSI;
    says = '0;
    says.dst_mac = conn.mac;
    says.src_mac = local_addr.mac;
    says.v6 = conn.own != OWN_IPV4;
    says.dst = conn.ip;
    says.src = own;
    says.dscp = conn.dscp;
    says.src_port = UDP_SRC_PORT;
    says.udp_length = 16'(UDP_HDR_BYTES + BTH_BYTES + DETH_BYTES + MAD_BYTES + ICRC_BYTES);
    says.bth.opcode = UD_SEND_ONLY;
    says.bth.pkey = PKEY_DEFAULT;
    says.bth.destqp = QPN_GSI;
    says.bth.psn = psn_q;
    says.ext = {deth, ((EXT_BYTES - DETH_BYTES) * 8)'(0)};
  end
  assign ipv4 = ipv4_with_checksum(roce_ipv4(says));

  assign frame.valid = msg.valid && !frame_done_q;
  assign frame.data.hdr_length = roce_hdr_bytes(says.v6) + 7'(DETH_BYTES);
  assign frame.data.payload_length = 16'(MAD_BYTES);
  assign frame.data.pad = '0;
  assign frame.data.icrc = 1'b1;
  assign frame.data.hdr = roce_window(says, ipv4);

  // ---- the datagram ----
  cm_mad_t mad;
  cm_req_t req;
  cm_rep_t rep;
  cm_rej_t rej;
  cm_mra_t mra;
  cm_dreq_t dreq;
  extensions_t extensions;
  always_comb begin
    extensions = '0;
    if (conn.selective_repeat || conn.contexts != '0) begin
      extensions.magic = EXTENSIONS_MAGIC;
      extensions.version = EXTENSIONS_VERSION;
      extensions.selective_repeat = conn.selective_repeat;
      extensions.contexts = conn.contexts != '0;
      extensions.long_set_up = conn.long_set_up;
      extensions.context_count = 8'(conn.contexts);
    end

    req = '0;
    req.local_comm_id = conn.ids.local_comm_id;
    req.service_id.port_space = RDMA_PS_TCP;
    req.service_id.port = conn.port;
    req.local_ca_guid = guid;
    req.local_qpn = msg.data.qpn;
    req.responder_resources = 8'(conn.responder_resources);
    req.initiator_depth = 8'(conn.initiator_depth);
    req.remote_cm_response_timeout = CM_TIMEOUT;
    req.transport_service_type = TRANSPORT_RC;
    req.starting_psn = conn.starting_psn;
    req.local_cm_response_timeout = CM_TIMEOUT;
    req.retry_count = conn.retry_count;
    req.partition_key = PKEY_DEFAULT;
    req.path_packet_payload_mtu = 4'(conn.path_mtu);
    req.rnr_retry_count = conn.rnr_retry_count;
    req.max_cm_retries = REQ_RETRIES;
    req.primary_local_port_lid = '1;
    req.primary_remote_port_lid = '1;
    req.primary_local_port_gid = own;
    req.primary_remote_port_gid = conn.ip;
    req.primary_traffic_class = {conn.dscp, 2'b00};
    req.primary_hop_limit = ROCE_HOP_LIMIT;
    req.primary_local_ack_timeout = conn.ack_timeout;
    req.cma.ip_version = cma_version_of(conn.own);
    req.cma.port = {2'b11, conn.ids.local_comm_id[13:0]};   // in the dynamic range; different for each connection
    req.cma.src_addr = cma_address(conn.own, own);
    req.cma.dst_addr = cma_address(conn.own, conn.ip);
    req.private_data = msg.data.private_data;
    req.extensions = extensions;

    rep = '0;
    rep.ids = conn.ids;
    rep.local_qpn = msg.data.qpn;
    rep.starting_psn = conn.starting_psn;
    rep.responder_resources = 8'(conn.responder_resources);
    rep.initiator_depth = 8'(conn.initiator_depth);
    rep.target_ack_delay = TARGET_ACK_DELAY;
    rep.rnr_retry_count = RNR_RETRIES;
    rep.local_ca_guid = guid;
    rep.private_data = msg.data.private_data;
    rep.extensions = extensions;

    rej = '0;
    rej.ids = conn.ids;
    rej.message_rejected = msg.data.about;
    rej.reason = conn_reason_t'(msg.data.reason);
    if (msg.data.reason == REJ_INVALID_MTU) begin
      rej.reject_info_length = 7'd1;
      rej.info[63:56] = 8'(max_mtu);
    end
    if (msg.data.reason == REJ_TIMEOUT && conn.active) begin
      rej.reject_info_length = 7'd8;
      rej.info = guid;
    end
    if (conn.why != ADM_NONE) rej.private_data = {admission_note(conn.why), ($bits(private_t) - $bits(admission_note_t))'(0)};
    else if (msg.data.reason == REJ_CONSUMER_DEFINED) rej.private_data = msg.data.private_data;
    // The peer does not know the local id, unless it was sent in an MRA.
    if (msg.data.about == CM_MSG_REQ && conn.mras == '0) rej.ids.local_comm_id = '0;

    mra = '0;
    mra.ids = conn.ids;
    mra.message_mraed = msg.data.about;
    mra.service_timeout = MRA_TIMEOUT;

    dreq = '0;
    dreq.ids = conn.ids;
    if (msg.data.attr == CM_DREQ) begin
      dreq.remote_qpn = conn.remote_qpn;
      if (conn.why != ADM_NONE) dreq.note = admission_note(conn.why);
    end

    mad.hdr = '0;
    mad.hdr.base_version = MAD_BASE_VERSION;
    mad.hdr.mgmt_class = MAD_CLASS_CM;
    mad.hdr.class_version = CM_CLASS_VERSION;
    mad.hdr.method = MAD_METHOD_SEND;
    mad.hdr.tid = conn.tid;
    mad.hdr.attr_id = {CM_ATTR_PREFIX, msg.data.attr};
    unique case (msg.data.attr)
      CM_REQ:  mad.data = ACTIVE ? req : '0;
      CM_REP:  mad.data = rep;
      CM_REJ:  mad.data = {rej, (MAD_DATA_BYTES*8 - $bits(cm_rej_t))'(0)};
      CM_MRA:  mad.data = {mra, (MAD_DATA_BYTES*8 - $bits(cm_mra_t))'(0)};
      default: mad.data = {dreq, (MAD_DATA_BYTES*8 - $bits(cm_dreq_t))'(0)};
    endcase
  end

  // ---- its beats: the first is the highest of `mad`, with its first byte highest ----
  // Only the bytes of the current beat are reversed: reversing the whole message in every cycle slows the simulation.
  logic [BEATS-1:0][DATA_W-1:0] beats;
  logic [DATA_W-1:0] beat;
  assign beats = mad;
  assign beat  = beats[~beat_q];
  always_comb begin
    for (int unsigned i = 0; i < BYTES; i++) payload.tdata[i*8+:8] = beat[(BYTES-1-i)*8+:8];
  end

  assign payload.tvalid = msg.valid && !payload_done_q;
  assign payload.tkeep = '1;
  assign payload.tlast = beat_q == BEAT_W'(BEATS - 1);
  assign payload.tuser = 1'b0;

  wire frame_done = frame_done_q || frame.ready;
  wire payload_done = payload_done_q || (payload.tready && payload.tlast);
  assign msg.ready = frame_done && payload_done;

  always_ff @(posedge clk) begin
    if (payload.tvalid && payload.tready) beat_q <= beat_q + 1'b1;
    if (rst || (msg.valid && msg.ready)) begin
      frame_done_q   <= 1'b0;
      payload_done_q <= 1'b0;
      beat_q         <= '0;
    end else if (msg.valid) begin
      frame_done_q   <= frame_done;
      payload_done_q <= payload_done;
    end
    if (rst) psn_q <= '0;
    else if (msg.valid && msg.ready) psn_q <= psn_q + 1'b1;
  end
endmodule
