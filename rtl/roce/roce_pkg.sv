// SPDX-License-Identifier: Apache-2.0

// Types of the RoCEv2 plane: transport headers (IBTA 9.2, names as there), opcodes, work requests and completions (names as in
// libibverbs), and the commands by which queue pairs and memory regions are made.
package roce_pkg;
  import packet_pkg::*;
  import memory_pkg::*;

  typedef logic [23:0] qpn_t;
  typedef logic [23:0] psn_t;   // compare with psn_before(), never with <
  typedef logic [7:0]  pd_t;    // protection domain; 0 is the device's own
  typedef logic [1:0]  client_t; // a user of the engine: the owner of a QP gets its completions and events
  localparam int unsigned MAX_CLIENTS = 2 ** $bits(client_t);

  // The domain of a client: of the QPs that it opens or that peers open to it, and of its regions. The administrator may use any.
  function automatic pd_t client_pd(client_t client);
    return pd_t'(client);
  endfunction

  // ---- transport headers ----
  typedef struct packed {
    logic [7:0]  opcode;
    logic        se;
    logic        migreq;
    logic [1:0]  padcnt;
    logic [3:0]  tver;
    logic [15:0] pkey;
    logic        fecn;        // this and the next two: not covered by the ICRC
    logic        becn;        // set in a CNP (IBTA annex A17.9)
    logic [5:0]  resv6a;
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

  typedef struct packed {
    logic [63:0] va;
    logic [31:0] rkey;
    logic [63:0] swap_add;
    logic [63:0] compare;
  } atomiceth_t;

  typedef logic [31:0] immdt_t;
  typedef logic [31:0] ieth_t;          // key to invalidate
  typedef logic [63:0] atomicacketh_t;  // what was at the address before

  localparam int unsigned BTH_BYTES = $bits(bth_t) / 8;    // 12
  localparam int unsigned AETH_BYTES = $bits(aeth_t) / 8;  // 4
  localparam int unsigned ATOMICETH_BYTES = $bits(atomiceth_t) / 8;  // 28
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
    UD_SEND_ONLY_WITH_IMM    = 8'h65,
    CNP                      = 8'h81   // congestion notification: 16 reserved bytes follow the BTH
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

  // Largest number of queue pairs; a build has QPS <= MAX_QPS of them, indices 0..QPS-1, QP numbers 2..QPS+1.
  localparam int unsigned MAX_QPS = 1024;
  typedef logic [$clog2(MAX_QPS)-1:0] qp_index_t;

  // A QP's place in the tables: QPN_FIRST is the first. A number that is not ours gives a value of QPS or more.
  function automatic qpn_t qp_index(qpn_t qpn);
    return qpn - QPN_FIRST;
  endfunction

  // The number of the QP at that place.
  function automatic qpn_t qp_number(qp_index_t index);
    return qpn_t'(index) + QPN_FIRST;
  endfunction

  // a comes before b, modulo 2^24 (IBTA 9.7.2: half of the space is the past).
  function automatic logic psn_before(psn_t a, psn_t b);
    psn_t d;
    d = a - b;
    return d[23];
  endfunction

  // ---- work requests and completions ----

  // The verb asked for (ibv_wr_opcode, same values; RECV is posted by the same stream).
  typedef enum logic [3:0] {
    WR_RDMA_WRITE          = 4'd0,
    WR_RDMA_WRITE_WITH_IMM = 4'd1,
    WR_SEND                = 4'd2,
    WR_SEND_WITH_IMM       = 4'd3,
    WR_RDMA_READ           = 4'd4,
    WR_ATOMIC_CMP_AND_SWP  = 4'd5,
    WR_ATOMIC_FETCH_AND_ADD = 4'd6,
    WR_SEND_WITH_INV       = 4'd9,
    WR_RECV                = 4'd15
  } wr_opcode_e;

  // The L_Key that stands for all device memory (as Linux' local_dma_lkey). Only clients that are trusted with it may use it, and only in
  // work requests: no region has this key.
  localparam logic [31:0] LOCAL_DMA_LKEY = 32'd0;

  // One work request. Its owner keeps to the depth of the queue (SQ_DEPTH sends, of which RD_DEPTH READs and atomics, and
  // RQ_DEPTH receives outstanding a QP); one more ends at once with WC_GENERAL_ERR.
  typedef struct packed {
    wr_opcode_e  opcode;
    logic        signaled;     // completion wanted on success too; a failure always completes. Ignored for RECV
    logic        solicited;    // set SE in the last packet
    logic        fence;        // begins when all READs and atomics before it are complete
    qpn_t        qpn;
    logic [15:0] wr_id;        // returned in the completion
    addr_t       local_addr;   // device memory: source; for READ, atomics and RECV where the data goes
    logic [31:0] lkey;         // of a region that has it; LOCAL_DMA_LKEY: any. Counts if there is a byte
    logic [31:0] length;       // bytes; atomics: taken as 8
    logic [63:0] remote_addr;
    logic [31:0] rkey;
    logic [31:0] imm_data;     // WITH_INV: the peer's key to invalidate
    logic [63:0] swap_add;     // atomics
    logic [63:0] compare;      // compare and swap
  } rdma_wqe_t;

  // ibv_wc_status, same values.
  typedef enum logic [4:0] {
    WC_SUCCESS           = 5'd0,
    WC_LOC_LEN_ERR       = 5'd1,
    WC_LOC_QP_OP_ERR     = 5'd2,
    WC_LOC_PROT_ERR      = 5'd4,
    WC_WR_FLUSH_ERR      = 5'd5,
    WC_BAD_RESP_ERR      = 5'd7,
    WC_REM_INV_REQ_ERR   = 5'd9,
    WC_REM_ACCESS_ERR    = 5'd10,
    WC_REM_OP_ERR        = 5'd11,
    WC_RETRY_EXC_ERR     = 5'd12,
    WC_RNR_RETRY_EXC_ERR = 5'd13,
    WC_GENERAL_ERR       = 5'd21
  } wc_status_e;

  // ibv_wc_opcode; what is bit 7 there, the receive side, is bit 3 here.
  typedef enum logic [3:0] {
    WC_SEND               = 4'd0,
    WC_RDMA_WRITE         = 4'd1,
    WC_RDMA_READ          = 4'd2,
    WC_COMP_SWAP          = 4'd3,
    WC_FETCH_ADD          = 4'd4,
    WC_RECV               = 4'd8,
    WC_RECV_RDMA_WITH_IMM = 4'd9
  } wc_opcode_e;

  // What the completion of a work request is.
  function automatic wc_opcode_e wc_opcode_of(wr_opcode_e opcode);
    unique case (opcode)
      WR_RDMA_WRITE, WR_RDMA_WRITE_WITH_IMM: return WC_RDMA_WRITE;
      WR_RDMA_READ:                          return WC_RDMA_READ;
      WR_ATOMIC_CMP_AND_SWP:                 return WC_COMP_SWAP;
      WR_ATOMIC_FETCH_AND_ADD:               return WC_FETCH_ADD;
      WR_RECV:                               return WC_RECV;
      default:                               return WC_SEND;
    endcase
  endfunction

  // One completion. A receive completes after all its data, and that of every earlier packet of its QP, is visible in memory;
  // a READ or atomic after its result is.
  typedef struct packed {
    wc_status_e  status;
    wc_opcode_e  opcode;
    logic        with_imm;
    logic        with_inv;     // imm_data is the key that the peer has invalidated
    logic        solicited;
    qpn_t        qpn;
    logic [15:0] wr_id;
    logic [31:0] byte_len;     // received bytes; for RECV_RDMA_WITH_IMM the length of the WRITE
    logic [31:0] imm_data;
  } rdma_cqe_t;

  // What a peer may do (ibv_access_flags; remote_invalidate: the key may be invalidated by a SEND), and the device's own work requests:
  // local_write, what READs, atomics and receives bring. A region that a peer may change has it always; to be read none is needed.
  typedef struct packed {
    logic local_write;
    logic remote_invalidate;
    logic remote_atomic;
    logic remote_read;
    logic remote_write;
  } access_t;

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

  typedef enum logic [1:0] {
    QP_SETUP,     // RESET -> `state` (INIT, RTR or RTS) with these attributes; the queues are empty
    QP_MODIFY,    // to `state`: INIT -> RTR, RTR -> RTS (the attributes of sending are taken), RTS <-> SQD, any but RESET -> ERR
    QP_RESET      // any state -> RESET: everything about it is forgotten, no completion
  } qp_op_e;

  // What a QP is set up with (ibv_qp_attr names where they exist).
  typedef struct packed {
    mac_t        dst_mac;
    ipv4_addr_t  dst_ip;
    qpn_t        dest_qp_num;
    pd_t         pd;
    client_t     client;             // who uses it
    access_t     access;             // what the peer may do at all (qp_access_flags)
    mtu_code_t   path_mtu;
    logic        selective_repeat;   // agreed with the peer (docs/reference/extensions.md)
    // receiving
    psn_t        rq_psn;             // first PSN expected
    logic [4:0]  min_rnr_timer;      // code in the RNR NAKs we send
    logic [7:0]  max_dest_rd_atomic; // READs and atomics of the peer at once, RD_DEPTH at most
    // sending: taken when the QP goes to RTS
    psn_t        sq_psn;             // first PSN sent
    logic [4:0]  timeout;            // ACK timeout 4.096 us * 2^timeout; 0: none
    logic [2:0]  retry_cnt;
    logic [2:0]  rnr_retry;          // 7: without limit
    logic [7:0]  max_rd_atomic;      // our READs and atomics at once, RD_DEPTH at most; 0: they are refused
  } qp_attr_t;

  typedef struct packed {
    qp_op_e      op;
    qpn_t        qpn;
    qp_state_e   state;
    qp_attr_t    attr;           // for QP_SETUP, and QP_MODIFY to RTS
  } qp_cmd_t;
  // Commands are answered in order on a stream of `logic` (1: done, 0: no such QP, or no such transition: nothing changed). After
  // the answer to QP_RESET no packet, memory access or completion of the QP is under way. In ERR all work requests, sends and
  // receives, complete with WC_WR_FLUSH_ERR. In SQD no work request is begun; EVENT_SQ_DRAINED tells when those begun are complete.

  // Asynchronous QP event (ibv_event_type, same values).
  typedef enum logic [2:0] {
    EVENT_QP_FATAL   = 3'd1,     // the QP went to ERR
    EVENT_COMM_EST   = 3'd4,     // the first request of the peer was taken: it has our REP
    EVENT_SQ_DRAINED = 3'd5
  } event_e;

  typedef struct packed {
    event_e      kind;
    qpn_t        qpn;
    wc_status_e  status;         // QP_FATAL: why: WC_RETRY_EXC_ERR, WC_REM_ACCESS_ERR (peer's NAK), WC_LOC_PROT_ERR (we sent a fatal NAK) ...
  } qp_event_t;

  // ---- memory regions ----

  typedef enum logic [2:0] {
    MR_REGISTER,      // answered with the key
    MR_DEREGISTER,    // by key
    MR_DEREGISTER_QP, // all regions of a QP
    MR_DEREGISTER_PD, // all regions of a domain
    MR_QUERY          // by slot, in rkey: what is there
  } mr_op_e;

  // A region belongs to a domain, and its key means nothing on the QPs of another; nor, if it names a QP, on any but that.
  typedef struct packed {
    pd_t         pd;
    qpn_t        qpn;            // 0: every QP of the domain
    addr_t       addr;
    logic [31:0] length;
    access_t     access;
  } mr_t;

  typedef struct packed {
    mr_op_e      op;
    mr_t         mr;             // to register; DEREGISTER_QP: its qpn; DEREGISTER_PD: its pd
    logic [31:0] rkey;
    logic        confined;       // to regions of `domain`; roce_clients says so
    pd_t         domain;
  } mr_cmd_t;
  // After the answer to one of the MR_DEREGISTER commands no memory access that was admitted under these keys is under way, and none
  // can begin: the memory may be given to another owner.

  typedef struct packed {
    logic        ok;             // 0: table full, no such key, nothing in the slot, in two memories, or of another domain: nothing changed
    logic [31:0] rkey;
    mr_t         mr;             // MR_QUERY
  } mr_rsp_t;

  // ---- between the units of the plane ----

  // Receive -> transmit: a packet without payload that leaves before those that wait, and needs no state of the sender.
  typedef struct packed {
    qpn_t       qpn;             // ours
    logic       cnp;             // a CNP, else an acknowledgement
    psn_t       psn;
    aeth_t      aeth;
  } ack_tx_t;

  // Receive -> requester: a response that came. READ responses have their payload on the stream beside it.
  typedef struct packed {
    qpn_t          qpn;
    ipv4_addr_t    src_ip;
    logic [7:0]    opcode;       // ACKNOWLEDGE, ATOMIC_ACKNOWLEDGE, RDMA_READ_RESPONSE_*
    psn_t          psn;
    aeth_t         aeth;         // undefined in RDMA_READ_RESPONSE_MIDDLE
    atomicacketh_t original;     // ATOMIC_ACKNOWLEDGE
    logic [15:0]   payload_length;
  } rc_response_t;

  // Responder -> response: what a request is answered with. In the order of the requests of each QP, and only when memory has
  // confirmed everything that they and the requests before them wrote.
  typedef enum logic [1:0] {
    RESPOND_ACK,                 // or a NAK, by its syndrome: nothing follows until the peer has reacted
    RESPOND_READ,
    RESPOND_ATOMIC
  } respond_e;

  typedef struct packed {
    respond_e    kind;
    logic        duplicate;      // READ: carried out again; ATOMIC: answered as before, and dropped if that is forgotten
    qpn_t        qpn;
    psn_t        psn;            // ACK: newest acknowledged; NAK: expected; READ and ATOMIC: the request's
    aeth_t       aeth;
    mtu_code_t   path_mtu;
    addr_t       addr;           // READ, ATOMIC: device memory
    target_t     target;         // which
    logic [31:0] rkey;           // READ of one byte or more, ATOMIC: the key that must be valid whenever memory is touched
    logic [31:0] length;         // READ
    logic        compare_swap;   // ATOMIC: else fetch and add
    logic [63:0] swap_add;
    logic [63:0] compare;
  } respond_t;

  // Response -> responder: a READ or atomic of this QP cannot be answered, and the peer is told so.
  typedef struct packed {
    qpn_t        qpn;
    logic        denied;         // its key is not valid any more; else memory refused
  } qp_failed_t;

  // What is known of the local memory of a work request when it is posted.
  typedef struct packed {
    logic        denied;         // its L_Key does not allow it
    logic        keyed;          // that must be valid whenever memory is touched: it is not LOCAL_DMA_LKEY, and there is a byte
    target_t     target;
  } local_access_t;

  // Fences of the response unit, counted. Who asks for one, its key being invalid by then, gets its number; when as many are through
  // nothing that was begun under the key touches memory, be it a READ or atomic of a peer or a work request.
  typedef logic [7:0] fence_t;

  function automatic logic fence_reached(fence_t through, fence_t number);
    fence_t ahead;
    ahead = through - number;
    return !ahead[$bits(fence_t)-1];
  endfunction

  // A packet to build and send, from the requester or the response unit. Its payload is read from device memory.
  localparam int unsigned EXT_BYTES = ATOMICETH_BYTES;  // room for the extension headers
  typedef struct packed {
    qpn_t        qpn;            // ours
    logic [7:0]  opcode;
    psn_t        psn;
    logic        se;
    logic        ackreq;
    logic [EXT_BYTES*8-1:0] ext; // extension headers as on the wire, from the most significant byte on
    addr_t       addr;
    target_t     target;
    mr_key_t key;            // under which it is read
    logic [12:0] length;         // bytes of payload
    logic        empty;          // length is 0
    logic        again;          // was sent before
    logic        internal_;      // belongs to no work request (keep-alive)
  } tx_packet_t;

  // Its payload could not be read: the frame was spoiled.
  typedef struct packed {
    qpn_t        qpn;
    psn_t        psn;
  } tx_fault_t;

  // ---- connections, between the CM and the engine's clients ----

  localparam int unsigned PRIVATE_BYTES = 48;    // of an application, in a REQ or REP (docs/reference/extensions.md)
  typedef logic [PRIVATE_BYTES*8-1:0] private_t;

  // Why a connection was refused or ended (IBTA 12.6.7.2); 0: it was not.
  typedef logic [15:0] conn_reason_t;
  localparam conn_reason_t CONN_UNREACHABLE = 16'hffff;  // nobody answers: ARP, or the REQ and its repetitions

  // Bounds on the connections that peers may open. 0: none.
  typedef struct packed {
    logic [15:0] per_peer;           // with one address
    logic [15:0] half_open;          // their REP has not been followed by an RTU or a request yet
    logic [15:0] half_open_per_peer;
  } cm_limits_t;

  // A client opens a connection.
  typedef struct packed {
    client_t     client;
    logic [15:0] tag;            // the client's own, returned in the first event
    ipv4_addr_t  ip;
    logic [15:0] port;           // in the RDMA IP CM port space TCP
    pd_t         pd;
    access_t     access;
    mtu_code_t   path_mtu;       // at most
    logic [4:0]  timeout;        // local ACK timeout, 4.096 us * 2^timeout
    logic [2:0]  retry_cnt;
    logic [2:0]  rnr_retry;
    logic [7:0]  responder_resources;
    logic [7:0]  initiator_depth;
    private_t    private_data;
  } connect_t;

  typedef enum logic [1:0] {
    CONN_OPENED,      // a peer's REQ came, the QP is in RTS; answer when ready to receive. The REP leaves after the answer
    CONN_ESTABLISHED, // our REQ was accepted: the QP is in RTS; no answer
    CONN_REFUSED,     // our REQ was not, see `reason`: there is no QP; no answer
    CONN_CLOSED       // the QP is in RESET; answer when everything of it is freed. Then its number may be used again
  } conn_event_e;

  typedef struct packed {
    conn_event_e  kind;
    client_t      client;
    qpn_t         qpn;
    logic [15:0]  tag;           // ESTABLISHED, REFUSED: of the request
    conn_reason_t reason;        // REFUSED, CLOSED
    ipv4_addr_t   ip;            // the peer
    private_t     private_data;  // of the REQ, REP or REJ; not with CLOSED
  } conn_event_t;

  // Answers of different QPs may come in any order; a QP has at most one event that is not answered.
  typedef struct packed {
    qpn_t     qpn;
    logic     accept;            // CONN_OPENED: else refuse
    private_t private_data;      // CONN_OPENED: for the REP or REJ
  } conn_answer_t;

  // ---- events for the counters, one pulse each. Names are those of Linux hw_counters (rxe, mlx5) where there is one ----
  typedef struct packed {
    logic rcvd_pkts;               // request packets for a live QP
    logic duplicate_request;
    logic out_of_seq_request;      // PSN ahead: NAK sent, or already out
    logic out_of_buffer;           // no receive posted: RNR NAK
    logic memory_busy;             // a memory that is slow has no room for the packet: RNR NAK, or dropped as if lost
    logic rx_write_requests;       // messages
    logic rx_read_requests;
    logic rx_atomic_requests;
    logic rx_send_requests;
    logic sent_ack;
    logic sent_nak;
    logic send_rnr_err;            // RNR NAK sent
    logic resp_remote_access_errors; // key, domain, owner, bounds or rights: NAK sent
    logic resp_invalid_request;    // opcode sequence, length, alignment, too many READs and atomics: NAK sent
    logic resp_local_length_error; // SEND longer than the receive: NAK sent
    logic resp_local_protection_errors; // device memory refused: NAK sent
    logic resp_cqe_flush_error;    // receives flushed
    logic out_of_order_placed;     // selective repeat: a WRITE ahead of its turn was placed
    logic atomic_replayed;         // duplicate, answered from the response cache
    logic drop_duplicate_forgotten; // duplicate READ or atomic without room, or without a cached answer
    logic drop_no_qp;
    logic drop_wrong_peer;         // QP is connected with another address
    logic drop_bad_bth;            // TVer, P_Key, opcode of another service
    logic drop_cm_rate;            // a datagram for QP1, when those before it held up other packets for long
    logic drop_qp_state;
    logic np_ecn_marked_roce_packets; // came with congestion experienced
    logic np_cnp_sent;
  } roce_rx_events_t;

  typedef struct packed {
    logic sent_pkts;               // request packets, repetitions included
    logic sent_writes;             // messages, not counting repetitions
    logic sent_sends;
    logic sent_reads;
    logic sent_atomics;
    logic rcvd_acks;
    logic rcvd_read_responses;     // packets
    logic rcvd_atomic_responses;
    logic rnr_nak_retry_err;       // RNR NAK received
    logic packet_seq_err;          // NAK PSN sequence error received
    logic implied_nak_seq_err;     // a response skipped a READ or atomic, or part of a READ
    logic req_remote_access_errors;  // NAK received
    logic req_remote_invalid_request;
    logic req_remote_operational_errors;
    logic bad_response_err;        // a READ response of the wrong length: the QP fails
    logic local_ack_timeout_err;
    logic packet_retransmit;
    logic selective_retransmit;
    logic retry_exceeded_err;
    logic retry_rnr_exceeded_err;
    logic req_cqe_flush_error;
    logic qp_error;
    logic keepalive_sent;
    logic drop_ghost_response;     // for what was not sent, or is answered already
    logic drop_response_no_qp;     // no such QP, not its peer, or not in a state for it
    logic wqe_refused;             // for a QP of another client
    logic rp_cnp_handled;
    logic rp_cnp_ignored;          // of no QP, or congestion control is off
  } roce_tx_events_t;

  typedef struct packed {
    logic req_received;
    logic req_sent;
    logic rep_received;
    logic rep_sent;
    logic rtu_received;
    logic rtu_sent;
    logic mra_received;
    logic mra_sent;
    logic rej_received;
    logic rej_sent;
    logic dreq_received;
    logic dreq_sent;
    logic drep_received;
    logic drep_sent;
    logic duplicate_req;
    logic req_timeout;
    logic rep_timeout;
    logic dreq_timeout;
    logic connection_opened;       // the owner was told of it; opened - closed = connections that live
    logic connection_closed;
    logic drop_malformed;          // not a communication management datagram, or one that nobody may send
    logic drop_overflow;           // came faster than it could be answered; the peer repeats it
    logic drop_no_connection;      // of no connection, or not expected in its state
    logic drop_unresolved;         // nobody answers ARP for the address of a peer that a client wants: not called
    logic refused_per_peer;        // REQ: its address has as many connections as it may have
    logic refused_half_open;       // REQ: as many connections are half open as may be
    logic refused_half_open_per_peer; // REQ: as many are with its address
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
      CNP:
        return '{supported: 1'b1, bytes: 6'd16};
      default:
        return '{supported: 1'b0, bytes: 6'd0};
    endcase
  endfunction
endpackage
