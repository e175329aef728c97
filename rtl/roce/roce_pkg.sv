// SPDX-License-Identifier: Apache-2.0

// Types of the RoCEv2 plane: transport headers (IBTA 9.2, names as there), opcodes, work requests and completions (names as in
// libibverbs), and the commands by which queue pairs and memory regions are made.
package roce_pkg;
  import packet_pkg::*;
  import memory_pkg::*;

  typedef logic [23:0] qpn_t;
  typedef logic [23:0] psn_t;   // compare with psn_before(), never with <

  // ---- transport headers ----
  typedef struct packed {
    logic [7:0]  opcode;
    logic        se;
    logic        migreq;
    logic [1:0]  padcnt;
    logic [3:0]  tver;
    logic [15:0] pkey;
    logic [7:0]  resv8a;      // FECN, BECN, reserved: not covered by the ICRC
    qpn_t        destqp;
    logic        ackreq;
    logic [6:0]  resv7b;
    psn_t        psn;
  } bth_t;

  typedef struct packed {
    logic [63:0] va;
    logic [31:0] rkey;
    logic [31:0] dmalen;
  } reth_t;

  typedef struct packed {
    logic [7:0]  syndrome;
    logic [23:0] msn;
  } aeth_t;

  typedef struct packed {
    logic [31:0] qkey;
    logic [7:0]  resv;
    qpn_t        srcqp;
  } deth_t;

  typedef logic [31:0] immdt_t;

  localparam int unsigned BTH_BYTES = $bits(bth_t) / 8;    // 12
  localparam int unsigned RETH_BYTES = $bits(reth_t) / 8;  // 16
  localparam int unsigned AETH_BYTES = $bits(aeth_t) / 8;  // 4
  localparam int unsigned DETH_BYTES = $bits(deth_t) / 8;  // 8
  localparam int unsigned IMMDT_BYTES = 4;
  localparam int unsigned ICRC_BYTES = 4;

  // Everything up to and including the BTH: starts the header window of every RoCE frame.
  typedef struct packed {
    eth_hdr_t  eth;
    ipv4_hdr_t ipv4;
    udp_hdr_t  udp;
    bth_t      bth;
  } roce_hdr_t;
  localparam int unsigned ROCE_HDR_BYTES = $bits(roce_hdr_t) / 8;  // 54

  typedef enum logic [7:0] {
    RC_SEND_FIRST            = 8'h00,
    RC_SEND_MIDDLE           = 8'h01,
    RC_SEND_LAST             = 8'h02,
    RC_SEND_LAST_WITH_IMM    = 8'h03,
    RC_SEND_ONLY             = 8'h04,
    RC_SEND_ONLY_WITH_IMM    = 8'h05,
    RC_RDMA_WRITE_FIRST      = 8'h06,
    RC_RDMA_WRITE_MIDDLE     = 8'h07,
    RC_RDMA_WRITE_LAST       = 8'h08,
    RC_RDMA_WRITE_LAST_WITH_IMM = 8'h09,
    RC_RDMA_WRITE_ONLY       = 8'h0a,
    RC_RDMA_WRITE_ONLY_WITH_IMM = 8'h0b,
    RC_RDMA_READ_REQUEST     = 8'h0c,
    RC_RDMA_READ_RESPONSE_FIRST = 8'h0d,
    RC_RDMA_READ_RESPONSE_MIDDLE = 8'h0e,
    RC_RDMA_READ_RESPONSE_LAST = 8'h0f,
    RC_RDMA_READ_RESPONSE_ONLY = 8'h10,
    RC_ACKNOWLEDGE           = 8'h11,
    RC_ATOMIC_ACKNOWLEDGE    = 8'h12,
    RC_COMPARE_SWAP          = 8'h13,
    RC_FETCH_ADD             = 8'h14,
    RC_SEND_LAST_WITH_INVALIDATE = 8'h16,
    RC_SEND_ONLY_WITH_INVALIDATE = 8'h17,
    UD_SEND_ONLY             = 8'h64,
    UD_SEND_ONLY_WITH_IMM    = 8'h65
  } opcode_e;

  // AETH syndromes (IBTA 9.7.5.2).
  localparam logic [7:0] SYNDROME_ACK             = 8'h1f;  // ACK, credit count invalid: no end-to-end flow control
  localparam logic [7:0] SYNDROME_RNR_NAK         = 8'h20;  // + timer code
  localparam logic [7:0] SYNDROME_NAK_PSN_SEQ     = 8'h60;
  localparam logic [7:0] SYNDROME_NAK_INVALID_REQ = 8'h61;
  localparam logic [7:0] SYNDROME_NAK_REM_ACCESS  = 8'h62;
  localparam logic [7:0] SYNDROME_NAK_REM_OP      = 8'h63;

  localparam qpn_t        QPN_GSI = 24'd1;
  localparam qpn_t        QPN_FIRST = 24'd2;   // of our own QPs; 0 and 1 are the standard's (IBTA 3.9.1)
  localparam logic [31:0] QKEY_GSI = 32'h8001_0000;
  localparam logic [15:0] PKEY_DEFAULT = 16'hffff;

  // Path MTU as the REQ carries it (IBTA 12.7.8.1, 9.3.1): 1 = 256, 2 = 512, 3 = 1024, 4 = 2048, 5 = 4096 bytes.
  typedef logic [2:0] mtu_code_t;

  function automatic logic [12:0] mtu_bytes(mtu_code_t code);
    return 13'd128 << code;
  endfunction

  // A QP's place in the tables: QPN_FIRST is the first. A number that is not ours gives a value of QPS or more.
  function automatic qpn_t qp_index(qpn_t qpn);
    return qpn - QPN_FIRST;
  endfunction

  // a comes before b, modulo 2^24 (IBTA 9.7.2: half of the space is the past).
  function automatic logic psn_before(psn_t a, psn_t b);
    psn_t d;
    d = a - b;
    return d[23];
  endfunction

  // ---- work requests and completions ----

  // The verb asked for (ibv_wr_opcode; RECV is posted by the same stream).
  typedef enum logic [3:0] {
    WR_RDMA_WRITE          = 4'd0,
    WR_RDMA_WRITE_WITH_IMM = 4'd1,
    WR_SEND                = 4'd2,
    WR_SEND_WITH_IMM       = 4'd3,
    WR_RDMA_READ           = 4'd4,
    WR_ATOMIC_CMP_AND_SWP  = 4'd5,
    WR_ATOMIC_FETCH_AND_ADD = 4'd6,
    WR_RECV                = 4'd15
  } wr_opcode_e;

  // One work request. Its owner keeps to the depth of the queue (SQ_DEPTH sends, RQ_DEPTH receives outstanding a QP); one
  // more ends at once with WC_GENERAL_ERR.
  typedef struct packed {
    wr_opcode_e  opcode;
    logic        signaled;     // completion wanted on success too; a failure always completes. Ignored for RECV
    logic        solicited;    // set SE in the last packet
    qpn_t        qpn;
    logic [15:0] wr_id;        // returned in the completion
    addr_t       local_addr;   // device memory: source, or receive buffer
    logic [31:0] length;       // bytes
    logic [63:0] remote_addr;
    logic [31:0] rkey;
    logic [31:0] imm_data;
  } rdma_wqe_t;

  // ibv_wc_status, same values.
  typedef enum logic [4:0] {
    WC_SUCCESS           = 5'd0,
    WC_LOC_LEN_ERR       = 5'd1,
    WC_LOC_QP_OP_ERR     = 5'd2,
    WC_LOC_PROT_ERR      = 5'd4,
    WC_WR_FLUSH_ERR      = 5'd5,
    WC_REM_INV_REQ_ERR   = 5'd9,
    WC_REM_ACCESS_ERR    = 5'd10,
    WC_REM_OP_ERR        = 5'd11,
    WC_RETRY_EXC_ERR     = 5'd12,
    WC_RNR_RETRY_EXC_ERR = 5'd13,
    WC_GENERAL_ERR       = 5'd21
  } wc_status_e;

  // ibv_wc_opcode.
  typedef enum logic [2:0] {
    WC_SEND               = 3'd0,
    WC_RDMA_WRITE         = 3'd1,
    WC_RDMA_READ          = 3'd2,
    WC_RECV               = 3'd4,
    WC_RECV_RDMA_WITH_IMM = 3'd5
  } wc_opcode_e;

  // One completion. A receive completes after all its data, and that of every earlier packet of its QP, is visible in memory.
  typedef struct packed {
    wc_status_e  status;
    wc_opcode_e  opcode;
    logic        with_imm;
    logic        solicited;
    qpn_t        qpn;
    logic [15:0] wr_id;
    logic [31:0] byte_len;     // received bytes; for RECV_RDMA_WITH_IMM the length of the WRITE
    logic [31:0] imm_data;
  } rdma_cqe_t;

  // ---- queue pairs ----

  typedef enum logic [2:0] {
    QPS_RESET,
    QPS_INIT,
    QPS_RTR,
    QPS_RTS,
    QPS_SQD,
    QPS_SQE,
    QPS_ERR
  } qp_state_e;

  typedef enum logic {
    QP_SETUP,     // RESET -> RTS with these attributes; the queues are empty
    QP_RESET      // any state -> RESET: everything about it is forgotten, no completion
  } qp_op_e;

  // What a QP is set up with (ibv_qp_attr names where they exist).
  typedef struct packed {
    mac_t        dst_mac;
    ipv4_addr_t  dst_ip;
    qpn_t        dest_qp_num;
    psn_t        rq_psn;         // first PSN expected
    psn_t        sq_psn;         // first PSN sent
    mtu_code_t   path_mtu;
    logic [4:0]  timeout;        // ACK timeout 4.096 us * 2^timeout; 0: none
    logic [2:0]  retry_cnt;
    logic [2:0]  rnr_retry;      // 7: without limit
    logic [4:0]  min_rnr_timer;  // code in the RNR NAKs we send
  } qp_attr_t;

  typedef struct packed {
    qp_op_e      op;
    qpn_t        qpn;
    qp_attr_t    attr;           // for QP_SETUP
  } qp_cmd_t;
  // Commands are answered in order on a stream of `logic` (1: done, 0: no such QP). After the answer to QP_RESET no packet,
  // memory access or completion of the QP is under way.

  // Asynchronous QP event (ibv_event_type): the QP went to the error state.
  typedef struct packed {
    qpn_t        qpn;
    wc_status_e  status;         // why: WC_RETRY_EXC_ERR, WC_REM_ACCESS_ERR (peer's NAK), WC_LOC_PROT_ERR (we sent a fatal NAK) ...
  } qp_event_t;

  // ---- memory regions ----

  // Access of the peer (ibv_access_flags).
  typedef struct packed {
    logic remote_atomic;
    logic remote_read;
    logic remote_write;
  } access_t;

  typedef enum logic [1:0] {
    MR_REGISTER,     // answered with the key
    MR_DEREGISTER,   // by key
    MR_DEREGISTER_QP // all regions of a QP
  } mr_op_e;

  // A region belongs to one QP: its key means nothing on another.
  typedef struct packed {
    mr_op_e      op;
    qpn_t        qpn;
    addr_t       addr;
    logic [31:0] length;
    access_t     access;
    logic [31:0] rkey;           // for MR_DEREGISTER
  } mr_cmd_t;

  typedef struct packed {
    logic        ok;             // 0: table full, or no such key
    logic [31:0] rkey;
  } mr_rsp_t;

  // Receive and transmit sides of a QP, connected by these two.
  typedef struct packed {         // responder -> transmit: an acknowledgement to send
    qpn_t       qpn;
    psn_t       psn;
    aeth_t      aeth;
  } ack_tx_t;

  typedef struct packed {         // receive -> requester: an acknowledgement that came
    qpn_t       qpn;
    psn_t       psn;
    aeth_t      aeth;
  } ack_rx_t;

  // ---- connections, between the CM and whoever owns them (the RPC engine) ----
  typedef enum logic [1:0] {
    CONN_OPENED,   // CM -> owner: the QP is in RTS; answer when ready to receive. The REP leaves after the answer
    CONN_CLOSED    // CM -> owner: the QP is in RESET; answer when everything of it is freed. Then its number may be used again
  } conn_event_e;

  typedef struct packed {
    conn_event_e event_;
    qpn_t        qpn;
  } conn_event_t;

  // ---- events for the counters, one pulse each. Names follow Linux hw_counters where there is one ----
  typedef struct packed {
    logic rx_packet;               // RC packets for a live QP
    logic duplicate_request;
    logic out_of_sequence;         // PSN ahead: NAK sent or already out
    logic rcv_write;
    logic rcv_send;
    logic rcv_ack;
    logic rcv_nak;
    logic rcv_rnr_nak;
    logic sent_ack;
    logic sent_nak;
    logic sent_rnr_nak;
    logic rx_write_access_err;     // key, owner, bounds or rights
    logic rx_invalid_request;      // opcode sequence, length, unsupported
    logic drop_no_qp;
    logic drop_wrong_peer;         // QP is connected with another address
    logic drop_bad_bth;            // TVer, P_Key
    logic drop_qp_state;
    logic drop_ghost_ack;          // ACK for what was not sent
  } roce_rx_events_t;

  typedef struct packed {
    logic sent_packet;
    logic sent_write;
    logic sent_send;
    logic local_ack_timeout;
    logic packet_retransmit;
    logic packet_seq_err;          // NAK PSN sequence received
    logic rnr_nak_retry;
    logic retry_exceeded;
    logic rnr_retry_exceeded;
    logic qp_error;
    logic keepalive_sent;
  } roce_tx_events_t;

  typedef struct packed {
    logic req_received;
    logic rep_sent;
    logic rtu_received;
    logic mra_received;
    logic rej_received;
    logic rej_sent;
    logic dreq_received;
    logic dreq_sent;
    logic drep_sent;
    logic duplicate_req;
    logic rep_timeout;
    logic connection_opened;       // the owner was told of it; opened - closed = connections that live
    logic connection_closed;
    logic drop_malformed;          // not a communication management datagram, or one that nobody may send
    logic drop_overflow;           // came faster than it could be answered; the peer repeats it
    logic drop_no_connection;      // of no connection, or not expected in its state
    logic drop_unresolved;         // nobody answers ARP for the peer's address: message not sent
  } cm_events_t;

  // Length in bytes of the extension headers after the BTH, by opcode; supported is 0 for an opcode that we do not know.
  typedef struct packed {
    logic       supported;
    logic [5:0] bytes;
  } ext_len_t;

  function automatic ext_len_t ext_headers(logic [7:0] opcode);
    unique case (opcode) inside
      RC_SEND_FIRST, RC_SEND_MIDDLE, RC_SEND_LAST, RC_SEND_ONLY,
      RC_RDMA_WRITE_MIDDLE, RC_RDMA_WRITE_LAST, RC_RDMA_READ_RESPONSE_MIDDLE:
        return '{supported: 1'b1, bytes: 6'd0};
      RC_SEND_LAST_WITH_IMM, RC_SEND_ONLY_WITH_IMM, RC_RDMA_WRITE_LAST_WITH_IMM,
      RC_SEND_LAST_WITH_INVALIDATE, RC_SEND_ONLY_WITH_INVALIDATE,
      RC_RDMA_READ_RESPONSE_FIRST, RC_RDMA_READ_RESPONSE_LAST, RC_RDMA_READ_RESPONSE_ONLY, RC_ACKNOWLEDGE:
        return '{supported: 1'b1, bytes: 6'd4};
      RC_RDMA_WRITE_FIRST, RC_RDMA_WRITE_ONLY, RC_RDMA_READ_REQUEST:
        return '{supported: 1'b1, bytes: 6'd16};
      RC_RDMA_WRITE_ONLY_WITH_IMM:
        return '{supported: 1'b1, bytes: 6'd20};
      RC_ATOMIC_ACKNOWLEDGE:
        return '{supported: 1'b1, bytes: 6'd12};
      RC_COMPARE_SWAP, RC_FETCH_ADD:
        return '{supported: 1'b1, bytes: 6'd28};
      UD_SEND_ONLY:
        return '{supported: 1'b1, bytes: 6'd8};
      UD_SEND_ONLY_WITH_IMM:
        return '{supported: 1'b1, bytes: 6'd12};
      default:
        return '{supported: 1'b0, bytes: 6'd0};
    endcase
  endfunction
endpackage
