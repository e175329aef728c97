// SPDX-License-Identifier: Apache-2.0

// Builds a message of the connection manager and sends it as a frame of QP1: headers to `frame`, the 256 bytes of its MAD to
// `payload`.
// One beat a cycle from the cycle in which `msg` is valid; takes `msg` with the last of header and beats. Stops with either side.
module roce_cm_tx
  import packet_pkg::*;
  import roce_pkg::*;
  import cm_pkg::*;
#(
    parameter int unsigned DATA_W = 512,
    parameter logic [2:0]  RNR_RETRIES = 6,
    parameter logic [4:0]  TARGET_ACK_DELAY = 15
) (
    input  logic        clk,
    input  logic        rst,
    input  local_addr_t local_addr,
    input  mtu_code_t   max_mtu,
    stream_if.sink      msg,       // cm_send_t
    stream_if.source    frame,     // frame_tx_t
    axis_if.source      payload
);
  localparam int unsigned BEATS = MAD_BYTES * 8 / DATA_W;
  localparam int unsigned BEAT_W = $clog2(BEATS);
  // UDP source port of the device's QP1: any of the dynamic range (IBTA A17.3.1 leaves it to the sender).
  localparam logic [15:0] UDP_SRC_PORT = 16'hc001;

  psn_t psn_q;
  logic frame_done_q, payload_done_q;
  logic [BEAT_W-1:0] beat_q;

  cm_conn_t conn;
  assign conn = msg.data.conn;

  // ---- headers ----
  gsi_hdr_t hdr;
  always_comb begin
    hdr = '0;
    hdr.roce.eth = '{dst: msg.data.mac, src: local_addr.mac, ethertype: ETHERTYPE_IPV4};
    hdr.roce.ipv4.version = 4'd4;
    hdr.roce.ipv4.ihl = 4'd5;
    hdr.roce.ipv4.total_length = 16'(GSI_HDR_BYTES - ETH_HDR_BYTES + MAD_BYTES + ICRC_BYTES);
    hdr.roce.ipv4.flag_df = 1'b1;
    hdr.roce.ipv4.ttl = 8'd64;
    hdr.roce.ipv4.protocol = IPPROTO_UDP;
    hdr.roce.ipv4.src = local_addr.ip;
    hdr.roce.ipv4.dst = conn.ip;
    hdr.roce.ipv4 = ipv4_with_checksum(hdr.roce.ipv4);
    hdr.roce.udp.src_port = UDP_SRC_PORT;
    hdr.roce.udp.dst_port = UDP_PORT_ROCE;
    hdr.roce.udp.length = 16'(GSI_HDR_BYTES - ETH_HDR_BYTES - IPV4_HDR_BYTES + MAD_BYTES + ICRC_BYTES);
    hdr.roce.bth.opcode = UD_SEND_ONLY;
    hdr.roce.bth.pkey = PKEY_DEFAULT;
    hdr.roce.bth.destqp = QPN_GSI;
    hdr.roce.bth.psn = psn_q;
    hdr.deth.qkey = QKEY_GSI;
    hdr.deth.srcqp = QPN_GSI;
  end

  assign frame.valid = msg.valid && !frame_done_q;
  assign frame.data.hdr_length = 7'(GSI_HDR_BYTES);
  assign frame.data.payload_length = 16'(MAD_BYTES);
  assign frame.data.pad = '0;
  assign frame.data.icrc = 1'b1;
  assign frame.data.hdr = {hdr, (HDR_BYTES*8 - $bits(gsi_hdr_t))'(0)};

  // ---- the datagram ----
  cm_mad_tx_t mad;
  cm_rep_t rep;
  cm_rej_t rej;
  cm_dreq_t dreq;
  always_comb begin
    rep = '0;
    rep.ids = conn.ids;
    rep.local_qpn = msg.data.qpn;
    rep.starting_psn = conn.starting_psn;
    rep.responder_resources = 8'(conn.responder_resources);
    rep.initiator_depth = 8'(conn.initiator_depth);
    rep.target_ack_delay = TARGET_ACK_DELAY;
    rep.rnr_retry_count = RNR_RETRIES;
    // EUI-64 of the MAC address (RFC 4291 appendix A), as RoCE devices have it.
    rep.local_ca_guid = {local_addr.mac[47:24] ^ 24'h02_0000, 16'hfffe, local_addr.mac[23:0]};

    rej = '0;
    rej.ids = conn.ids;
    rej.message_rejected = msg.data.about;
    rej.reason = msg.data.reason;
    if (msg.data.reason == REJ_INVALID_MTU) begin
      rej.reject_info_length = 7'd1;
      rej.info = 8'(max_mtu);
    end
    if (msg.data.about == CM_MSG_REQ) rej.ids.local_comm_id = '0;   // the peer has not seen it

    dreq = '0;
    dreq.ids = conn.ids;
    if (msg.data.attr == CM_DREQ) dreq.remote_qpn = conn.remote_qpn;

    mad.hdr = '0;
    mad.hdr.base_version = MAD_BASE_VERSION;
    mad.hdr.mgmt_class = MAD_CLASS_CM;
    mad.hdr.class_version = CM_CLASS_VERSION;
    mad.hdr.method = MAD_METHOD_SEND;
    mad.hdr.tid = conn.tid;
    mad.hdr.attr_id = {CM_ATTR_PREFIX, msg.data.attr};
    unique case (msg.data.attr)
      CM_REP:  mad.data = rep;
      CM_REJ:  mad.data = {rej, (TX_DATA_BYTES*8 - $bits(cm_rej_t))'(0)};
      default: mad.data = {dreq, (TX_DATA_BYTES*8 - $bits(cm_dreq_t))'(0)};
    endcase
  end

  // ---- its beats ----
  logic [BEATS-1:0][DATA_W-1:0] words;
  always_comb begin
    words = '0;
    for (int unsigned i = 0; i < $bits(cm_mad_tx_t) / 8; i++)
      words[i*8/DATA_W][i*8%DATA_W+:8] = mad[$bits(cm_mad_tx_t)-8-i*8+:8];
  end

  assign payload.tvalid = msg.valid && !payload_done_q;
  assign payload.tdata = words[beat_q];
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
