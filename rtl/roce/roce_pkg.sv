// SPDX-License-Identifier: Apache-2.0

// Types of the RoCEv2 plane: work requests, completions, queue pairs and memory regions (names as in libibverbs), connections, and the
// streams between the units of the plane. Headers and opcodes are in roce_wire_pkg, counted events in roce_events_pkg.
package roce_pkg;
  import packet_pkg::*;
  import memory_pkg::*;
  import roce_wire_pkg::*;

  typedef logic [7:0] pd_t;     // protection domain; 0 is the device's own
  typedef logic [1:0] client_t; // a client of the engine (roce_clients): the client of a QP receives its completions and events
  localparam int unsigned MAX_CLIENTS = 2 ** $bits(client_t);

  // The protection domain of a client: of the QPs that it opens, of those that peers open to it, and of its regions. The administrator may
  // use every domain.
  function automatic pd_t client_pd(client_t client);
    return pd_t'(client);
  endfunction

  // Largest number of queue pairs; a build has QPS <= MAX_QPS of them, indices 0..QPS-1, QP numbers 2..QPS+1.
  localparam int unsigned MAX_QPS = 1024;
  typedef logic [$clog2(MAX_QPS)-1:0] qp_index_t;

  // A QP's index in the tables; QPN_FIRST has index 0. For a number that is not a QP of the device the result is QPS or more.
  function automatic qpn_t qp_index(qpn_t qpn);
    return qpn - QPN_FIRST;
  endfunction

  // The number of the QP with that index.
  function automatic qpn_t qp_number(qp_index_t index);
    return qpn_t'(index) + QPN_FIRST;
  endfunction

  // ---- addresses ----

  // The address of a peer in a device with or without IPv6. Without it all but 32 bits are constant, so synthesis keeps none of them.
  function automatic ip_addr_t peer_address(logic ipv6, ip_addr_t ip);
    return ipv6 ? ip : ip_mapped(ipv4_of(ip));
  endfunction

  // The address of the device that a connection uses: the one that the peer called, or that of the peer's scope.
  function automatic own_address_e own_towards(ip_addr_t peer);
    return is_mapped(peer) ? OWN_IPV4 : is_link_local(peer) ? OWN_LINK_LOCAL : OWN_GLOBAL;
  endfunction

  function automatic ip_addr_t own_address(local_addr_t local_, own_address_e own);
    unique case (own)
      OWN_GLOBAL:     return local_.global_;
      OWN_LINK_LOCAL: return local_.link_local;
      default:        return ip_mapped(local_.ip);
    endcase
  endfunction

  // ---- work requests and completions ----

  // Operation of a work request (ibv_wr_opcode, same values; receives are posted on the same stream).
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

  // The L_Key of all device memory (local_dma_lkey of Linux). Only TRUSTED clients may use it, and only in work requests: no region has
  // this key.
  localparam logic [31:0] LOCAL_DMA_LKEY = 32'd0;

  // One work request. A QP has at most SQ_DEPTH send requests outstanding, of which RD_DEPTH may be READs and atomics, and RQ_DEPTH
  // receives. A request above these limits completes at once with WC_GENERAL_ERR.
  typedef struct packed {
    wr_opcode_e  opcode;
    logic        signaled;     // completes on success as well; a failed request always completes. Ignored for RECV
    logic        solicited;    // set SE in the last packet
    logic        fence;        // starts after all earlier READs and atomics have completed
    qpn_t        qpn;
    logic [15:0] wr_id;        // returned in the completion
    addr_t       local_addr;   // device memory: source; READ, atomics, RECV: destination
    logic [31:0] lkey;         // of a region that contains the data, or LOCAL_DMA_LKEY. Ignored if there is no data
    logic [31:0] length;       // bytes; atomics: ignored, 8
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

  // ibv_wc_opcode; the receive bit, bit 7 there, is bit 3 here.
  typedef enum logic [3:0] {
    WC_SEND               = 4'd0,
    WC_RDMA_WRITE         = 4'd1,
    WC_RDMA_READ          = 4'd2,
    WC_COMP_SWAP          = 4'd3,
    WC_FETCH_ADD          = 4'd4,
    WC_RECV               = 4'd8,
    WC_RECV_RDMA_WITH_IMM = 4'd9
  } wc_opcode_e;

  // Opcode of the completion of a work request.
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

  // One completion. A receive completes after its data, and the data of every earlier packet of its QP, is visible in memory; a READ or
  // atomic after its result is.
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

  // Rights of peers (ibv_access_flags; remote_invalidate: a SEND may invalidate the key) and of the device's own work requests:
  // local_write allows the results of READs and atomics, and receives. A region with remote_write or remote_atomic always has it.
  // Local reads need no right.
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
    QP_MODIFY,    // to `state`: INIT -> RTR, RTR -> RTS (applies the send attributes), RTS <-> SQD, any but RESET -> ERR
    QP_RESET      // any state -> RESET: outstanding work requests are dropped without completions
  } qp_op_e;

  // DSCPs of packets (RFC 2474), by which a network tells traffic classes apart.
  typedef struct packed {
    logic [5:0] roce;            // of connection management, and of the connections that it makes
    logic [5:0] cnp;
    logic       of_caller;       // of a connection that a peer opens: as its REQ says
  } dscp_settings_t;

  // Attributes of a QP (names of ibv_qp_attr where there is one).
  typedef struct packed {
    mac_t        dst_mac;
    ip_addr_t    dst_ip;
    own_address_e own;               // the source of its packets
    logic [7:0]  traffic_class;      // of its packets: the upper 6 bits are the DSCP, the others are not used
    qpn_t        dest_qp_num;
    pd_t         pd;
    client_t     client;             // receives its completions and events
    access_t     access;             // rights of the peer on any region (qp_access_flags)
    mtu_code_t   path_mtu;
    logic        selective_repeat;   // agreed with the peer (docs/reference/extensions.md)
    // receive side
    psn_t        rq_psn;             // first PSN expected
    logic [4:0]  min_rnr_timer;      // code in RNR NAKs that the device sends
    logic [7:0]  max_dest_rd_atomic; // outstanding READs and atomics of the peer, RD_DEPTH at most
    // send side: applied when the QP goes to RTS
    psn_t        sq_psn;             // first PSN sent
    logic [4:0]  timeout;            // ACK timeout 4.096 us * 2^timeout; 0: none
    logic [2:0]  retry_cnt;
    logic [2:0]  rnr_retry;          // 7: without limit
    logic [7:0]  max_rd_atomic;      // outstanding READs and atomics of this side, RD_DEPTH at most; 0: they are refused
  } qp_attr_t;

  typedef struct packed {
    qp_op_e      op;
    qpn_t        qpn;
    qp_state_e   state;
    qp_attr_t    attr;           // for QP_SETUP, and QP_MODIFY to RTS
  } qp_cmd_t;
  // Commands are answered in order on a stream of `logic` (1: done; 0: no such QP or no such transition, nothing changed). After the
  // answer to QP_RESET no packet, memory access or completion of the QP is in flight. In ERR all work requests, sends and receives,
  // complete with WC_WR_FLUSH_ERR. In SQD no work request begins; EVENT_SQ_DRAINED follows when those already begun have completed.

  // Asynchronous QP event (ibv_event_type, same values).
  typedef enum logic [2:0] {
    EVENT_QP_FATAL   = 3'd1,     // the QP went to ERR
    EVENT_COMM_EST   = 3'd4,     // first request accepted in RTR or RTS: the peer has received the REP
    EVENT_SQ_DRAINED = 3'd5
  } event_e;

  typedef struct packed {
    event_e      kind;
    qpn_t        qpn;
    wc_status_e  status;         // QP_FATAL: the cause: WC_RETRY_EXC_ERR, WC_REM_ACCESS_ERR (peer's NAK), WC_LOC_PROT_ERR (fatal NAK sent) ...
  } qp_event_t;

  // ---- memory regions ----

  typedef enum logic [2:0] {
    MR_REGISTER,      // answered with the key
    MR_DEREGISTER,    // by key
    MR_DEREGISTER_QP, // all regions of a QP
    MR_DEREGISTER_PD, // all regions of a domain
    MR_QUERY,         // the region in a slot; its number is in rkey
    MR_DEREGISTER_GROUP // the regions of a QP that have this group
  } mr_op_e;

  typedef logic [1:0] mr_group_t;

  // A region belongs to a protection domain: its key is valid on the QPs of that domain only and, if the region names a QP, on that QP
  // only.
  typedef struct packed {
    pd_t         pd;
    qpn_t        qpn;            // 0: every QP of the domain
    mr_group_t   group;          // chosen by the owner, for MR_DEREGISTER_GROUP
    addr_t       addr;
    region_size_t length;
    access_t     access;
  } mr_t;

  typedef struct packed {
    mr_op_e      op;
    mr_t         mr;             // REGISTER: the region; DEREGISTER_QP: its qpn; DEREGISTER_GROUP: qpn and group; DEREGISTER_PD: its pd
    logic [31:0] rkey;
    logic        confined;       // only regions of `domain` match; set by roce_clients
    pd_t         domain;
  } mr_cmd_t;
  // After the answer to an MR_DEREGISTER command no memory access admitted under these keys is in flight, and none can begin: the memory
  // may be assigned to another owner.

  typedef struct packed {
    logic        ok;             // 0: table full, no such key, slot empty, region too long or in two memories, or of another domain: nothing changed
    logic [31:0] rkey;
    mr_t         mr;             // MR_QUERY
  } mr_rsp_t;

  // ---- between the units of the plane ----

  // Responder -> transmit: a packet without payload. It is sent ahead of queued packets and uses no state of the send side.
  typedef struct packed {
    qpn_t       qpn;             // the device's
    logic       cnp;             // a CNP, else an acknowledgement
    psn_t       psn;
    aeth_t      aeth;
  } ack_tx_t;

  // Receive -> requester: a response packet. The payload of READ responses is on a stream beside it.
  typedef struct packed {
    qpn_t          qpn;
    ip_addr_t      src_ip;
    logic [7:0]    opcode;       // ACKNOWLEDGE, ATOMIC_ACKNOWLEDGE, RDMA_READ_RESPONSE_*
    psn_t          psn;
    aeth_t         aeth;         // undefined in RDMA_READ_RESPONSE_MIDDLE
    atomicacketh_t original;     // ATOMIC_ACKNOWLEDGE
    logic [15:0]   payload_length;
  } rc_response_t;

  // Responder -> response unit: the response to a request. In the order of the requests of each QP, and only after memory has confirmed
  // all writes of the request and of those before it.
  typedef enum logic [1:0] {
    RESPOND_ACK,                 // or a NAK, by its syndrome: no response follows it until the peer retransmits
    RESPOND_READ,
    RESPOND_ATOMIC
  } respond_e;

  typedef struct packed {
    respond_e    kind;
    logic        duplicate;      // READ: executed again; ATOMIC: answered from the response cache, dropped if the cache has no entry
    qpn_t        qpn;
    psn_t        psn;            // ACK: newest acknowledged; NAK: expected; READ and ATOMIC: the request's
    aeth_t       aeth;
    mtu_code_t   path_mtu;
    addr_t       addr;           // READ, ATOMIC: device memory
    target_t     target;         // the memory
    logic [31:0] rkey;           // READ of one byte or more, ATOMIC: must be valid at each access to memory
    logic [31:0] length;         // READ
    logic        compare_swap;   // ATOMIC: else fetch and add
    logic [63:0] swap_add;
    logic [63:0] compare;
  } respond_t;

  // Response unit -> responder: a READ or atomic of this QP failed; the responder sends the NAK.
  typedef struct packed {
    qpn_t        qpn;
    logic        denied;         // its key was invalidated; else memory reported an error
  } qp_failed_t;

  // Result of the check of a work request's local memory, made when it is posted.
  typedef struct packed {
    logic        denied;         // the L_Key does not allow it
    logic        keyed;          // has data and a key other than LOCAL_DMA_LKEY: the key must be valid at each access
    target_t     target;
  } local_access_t;

  // Number of a fence of the response unit. A unit that has invalidated a key requests a fence and receives its number; when the number of
  // completed fences reaches it, no READ or atomic of a peer and no work request that began under the key accesses memory any more.
  typedef logic [7:0] fence_t;

  function automatic logic fence_reached(fence_t through, fence_t number);
    fence_t ahead;
    ahead = through - number;
    return !ahead[$bits(fence_t)-1];
  endfunction

  // A packet to build and send, from the requester or the response unit; roce_tx reads its payload from device memory.
  typedef struct packed {
    qpn_t        qpn;            // the device's
    logic [7:0]  opcode;
    psn_t        psn;
    logic        se;
    logic        ackreq;
    ext_bytes_t  ext;            // extension headers in wire order, the first byte most significant
    addr_t       addr;
    target_t     target;
    mr_key_t     key;            // for the read
    logic [12:0] length;         // bytes of payload
    logic        empty;          // length is 0
    logic        again;          // retransmission
    logic        internal_;      // keep-alive: belongs to no work request
  } tx_packet_t;

  // Reading the payload of a packet failed; its frame leaves with a wrong ICRC.
  typedef struct packed {
    qpn_t        qpn;
    psn_t        psn;
  } tx_fault_t;

  // ---- connections: between the connection manager and the engine's clients ----

  localparam int unsigned PRIVATE_BYTES = 48;    // private data of the application in a REQ or REP (docs/reference/extensions.md)
  typedef logic [PRIVATE_BYTES*8-1:0] private_t;

  // Reason of a rejected or ended connection (IBTA 12.6.7.2); 0: none.
  typedef logic [15:0] conn_reason_t;
  localparam conn_reason_t CONN_UNREACHABLE = 16'hffff;  // no reply to ARP, or to the REQ and its retransmissions
  localparam conn_reason_t CONN_ADDRESS_LOST = 16'hfffe; // the device no longer has the address that the connection used

  // Contexts of a connection (docs/reference/calls.md): 0 (not agreed), 1, 2 or 4.
  localparam int unsigned MAX_CONTEXTS = 4;
  typedef logic [$clog2(MAX_CONTEXTS+1)-1:0] contexts_t;

  // Limits on connections that peers open. 0: no limit.
  typedef struct packed {
    logic [15:0] per_peer;           // with one IP address
    logic [15:0] half_open;          // REP sent, neither an RTU nor a request received yet
    logic [15:0] half_open_per_peer;
  } cm_limits_t;

  // Admission of callers (docs/reference/admission.md): the entry by which one was admitted.
  localparam int unsigned ADMISSION_ENTRIES = 16;
  typedef logic [$clog2(ADMISSION_ENTRIES)-1:0] admission_entry_t;
  typedef struct packed {
    logic             valid;         // else admission is off, or it is no caller's connection
    admission_entry_t entry;
  } admitted_t;

  localparam int unsigned TOKEN_WORDS = 4;
  typedef logic [TOKEN_WORDS-1:0][31:0] token_t;  // the first word highest

  // What a caller is judged by.
  typedef struct packed {
    logic       has_token;
    token_t     token;
    ip_addr_t   ip;
  } admission_ask_t;

  // Why a caller is not admitted, or its connection is closed. The numbers are those of the note in a REJ or DREQ.
  typedef enum logic [2:0] {
    ADM_NONE        = 3'd0,
    ADM_REVOKED     = 3'd1,
    ADM_TIME_OVER   = 3'd2,
    ADM_NO_TOKEN    = 3'd3,          // it sends none, and no entry is for its address
    ADM_UNKNOWN     = 3'd4,          // no entry is for its token and address
    ADM_CONNECTIONS = 3'd5           // its entry has all its connections
  } admission_why_e;

  typedef struct packed {
    admission_why_e why;             // ADM_NONE: admitted,
    admitted_t      by;              // by this entry
  } admission_verdict_t;

  // Entries whose connections are to be closed.
  typedef struct packed {
    logic [ADMISSION_ENTRIES-1:0] revoked;
    logic [ADMISSION_ENTRIES-1:0] time_over;
  } admission_ended_t;

  // A client opens a connection.
  typedef struct packed {
    client_t     client;
    logic [15:0] tag;            // chosen by the client, returned in the first event
    ip_addr_t    ip;
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
    CONN_OPENED,      // REQ received, the QP is in RTS; answered when the owner is ready to receive: the REP is sent after the answer
    CONN_ESTABLISHED, // the peer accepted the REQ, the QP is in RTS; no answer
    CONN_REFUSED,     // the REQ was rejected or timed out, see `reason`: there is no QP; no answer
    CONN_CLOSED       // the QP is in RESET; answered when all its resources are freed: then its number may be reused
  } conn_event_e;

  typedef struct packed {
    conn_event_e  kind;
    client_t      client;
    qpn_t         qpn;
    logic [15:0]  tag;           // ESTABLISHED, REFUSED: of the request
    conn_reason_t reason;        // REFUSED, CLOSED
    ip_addr_t     ip;            // the peer
    contexts_t    contexts;      // OPENED: agreed with the peer
    logic         long_set_up;   // OPENED: agreed with the peer (docs/reference/calls.md)
    admitted_t    by;            // OPENED: the entry by which the peer was admitted
    private_t     private_data;  // of the REQ, REP or REJ; not with CLOSED
  } conn_event_t;

  // A connection is to be closed.
  typedef struct packed {
    qpn_t     qpn;
    logic     lost;              // only if it uses an address of the device that goes: that is the reason
  } close_t;

  // Answers for different QPs may come in any order; a QP has at most one unanswered event.
  typedef struct packed {
    qpn_t     qpn;
    logic     accept;            // CONN_OPENED: else refuse
    private_t private_data;      // CONN_OPENED: for the REP or REJ
  } conn_answer_t;

  // ---- connections of a kernel: between it and its socket (socket_connections) ----

  localparam int unsigned MAX_KERNEL_CONNECTIONS = 4;
  typedef logic [$clog2(MAX_KERNEL_CONNECTIONS)-1:0] kernel_slot_t;   // names a connection; the kernel chooses it

  localparam conn_reason_t CONN_NOT_PERMITTED = 16'hfffd; // the operator lets the kernel not connect to that address
  localparam conn_reason_t CONN_SLOT_IN_USE = 16'hfffc;   // the slot has a connection, or one that has not ended yet, or it does not exist

  typedef struct packed {
    logic         close;         // the slot's connection, else open one
    kernel_slot_t slot;
    ip_addr_t     ip;            // open: the peer,
    logic [15:0]  port;          // its port in the RDMA IP CM port space TCP,
    private_t     private_data;  // for the REQ
  } kernel_connect_t;

  typedef enum logic [1:0] {
    KERNEL_ESTABLISHED,          // work requests may be posted on `qpn`
    KERNEL_REFUSED,              // there is no connection, see `reason`
    KERNEL_CLOSED                // it has ended, see `reason`: `qpn` is no longer the kernel's
  } kernel_conn_e;

  typedef struct packed {
    kernel_conn_e kind;
    kernel_slot_t slot;
    qpn_t         qpn;           // ESTABLISHED
    conn_reason_t reason;        // REFUSED, CLOSED
    private_t     private_data;  // ESTABLISHED, REFUSED by the peer: of the REP or REJ
  } kernel_conn_t;

  // The peers that the operator lets a kernel connect to: those whose address begins with `prefix` bits of `network`.
  typedef struct packed {
    logic       enable;
    logic [7:0] prefix;          // 0 to 128; of an IPv4 network 96 more than its own
    ip_addr_t   network;
  } kernel_peers_t;

  function automatic logic peer_permitted(kernel_peers_t peers, ip_addr_t ip);
    logic same;
    same = 1'b1;
    for (int unsigned i = 0; i < 128; i++) if (8'(i) < peers.prefix && ip[127-i] != peers.network[127-i]) same = 1'b0;
    return peers.enable && same;
  endfunction
endpackage
