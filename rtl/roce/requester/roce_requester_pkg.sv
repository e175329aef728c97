// SPDX-License-Identifier: Apache-2.0

// Types shared by the units of the requester: the words of its tables, the entries of its rings, and the messages between units.
package roce_requester_pkg;
  import packet_pkg::*;
  import roce_wire_pkg::*;
  import roce_pkg::*;
  import memory_pkg::*;

  function automatic qp_index_t sq_index(qpn_t qpn);
    return qp_index_t'(qp_index(qpn));
  endfunction

  function automatic logic qpn_exists(qpn_t qpn, int unsigned qps);
    return qpn >= QPN_FIRST && qpn < qpn_t'(qps) + QPN_FIRST;
  endfunction

  // PSN that does not wrap: the PSN on the wire in its lower 24 bits. A full send queue may span more than 2^24 PSNs (2 GiB
  // at MTU 256 are 2^23), for which 24-bit comparison would be ambiguous.
  typedef logic [30:0] xpsn_t;

  function automatic logic xpsn_before(xpsn_t a, xpsn_t b);
    xpsn_t d;
    d = a - b;
    return d[30];
  endfunction

  // Counts the work requests of a QP; its slot in the ring is the count modulo SQ_DEPTH (at most 128).
  typedef logic [7:0] sq_count_t;
  // Counts its READs and atomics; the slot is the count modulo RD_DEPTH (at most 16). A difference is -16 to 16.
  typedef logic [5:0] rd_count_t;

  // Quantum of a visit: at most this many packets, and this many units of 256 bytes.
  localparam int unsigned SQ_QUANTUM = 16;
  // Packets outstanding at most with selective repeat (docs/reference/extensions.md): a power of two, and a multiple of SQ_QUANTUM.
  localparam int unsigned SELECTIVE_WINDOW = 128;
  localparam int unsigned SELECTIVE_W = $clog2(SELECTIVE_WINDOW);
  // Packets between AckReq bits of a message with selective repeat, so that the window opens in time; a power of two.
  localparam int unsigned SELECTIVE_ACK_EVERY = 16;

  // ---- tables: one word per QP, one writer each ----

  // roce_requester_queue: the posted work requests. A PSN below `next` that belongs to no work request is a keep-alive.
  typedef struct packed {
    sq_count_t count;   // work requests so far
    rd_count_t rd;      // READs and atomics among them
    logic      probe;   // the PSN before `next` is a keep-alive
    xpsn_t     next;    // first PSN not assigned
  } sq_tail_t;

  // roce_requester_send: the send position.
  typedef struct packed {
    logic       epoch;  // sq_progress_t::epoch that this position belongs to
    logic [1:0] single; // the last sq_progress_t::single that was served
    logic       open;   // `limit` is inside a work request
    sq_count_t  count;  // work request to send from
    xpsn_t      psn;    // next PSN to send
    xpsn_t      limit;  // first PSN never sent
    // Selective repeat; a PSN here that is not ahead of `una` has no meaning:
    logic       hull;   // WRITEs or atomics are outstanding; roce_requester_overlap holds their address range
    xpsn_t      strict; // first PSN after the last packet sent that the peer accepts in order only
    xpsn_t      mark;   // `limit` when the oldest packet was last retransmitted
  } sq_sent_t;

  typedef enum logic [1:0] {
    SQ_RESET,           // of a QP in RESET, INIT or RTR
    SQ_RTS,
    SQ_SQD,
    SQ_ERR
  } sq_state_e;

  // roce_requester_ack: what the peer has acknowledged, and the state of the send queue.
  typedef struct packed {
    sq_state_e  state;
    logic       epoch;        // toggles to retransmit from `una`
    logic       asked;        // selective repeat: a retransmission of packet `una` was requested since it became the oldest ...
    logic       later;        // ... by a NAK for a packet that was sent after the last retransmission
    logic [1:0] single;       // increments at each such request
    logic       implied;      // retransmitted because of an implied NAK; no progress since
    logic       drained;      // SQD: reported as drained
    logic       rnr_wait;
    logic [4:0] rnr_code;
    logic [2:0] retries;      // since una last advanced
    logic [2:0] rnr_retries;
    rd_count_t  rd;           // READs and atomics answered
    xpsn_t      una;          // oldest PSN not acknowledged
  } sq_progress_t;

  // roce_requester_receive: the same, up to the last response whose write memory has confirmed; completions are based on it. Two
  // more words go with it: an xpsn_t, the oldest PSN not confirmed, and, for a QP in SQ_ERR, an sq_failure_t.
  typedef struct packed {
    sq_state_e state;
    logic      refused;       // memory reported an error before the QP failed: the oldest PSN not confirmed stays, and is at fault
    logic      drains;        // toggles when the send queue is drained
    rd_count_t rd_done;       // READs and atomics complete
  } sq_confirmed_t;

  typedef struct packed {
    wc_status_e status;       // WC_WR_FLUSH_ERR: the error state was commanded
    xpsn_t      psn;          // at fault, unless memory reported an error
  } sq_failure_t;

  // roce_requester_retire: the completed work requests.
  typedef struct packed {
    logic      reported;      // the error state was reported, or was commanded
    logic      blamed;        // the work request at fault has completed
    logic      drains;        // sq_confirmed_t::drains that was reported
    sq_count_t count;         // work requests completed
  } sq_retired_t;

  // roce_qp_control: attributes of a QP, constant from set-up to RESET ...
  typedef struct packed {
    mtu_code_t  path_mtu;
    logic       selective_repeat;
  } sq_path_t;

  // ... its send attributes ...
  typedef struct packed {
    logic [4:0] timeout;
    logic [2:0] retry_cnt;
    logic [2:0] rnr_retry;
    rd_count_t  max_rd_atomic;  // RD_DEPTH at most
  } sq_policy_t;

  // ... and its peer.
  typedef struct packed {
    logic                  valid;
    packet_pkg::mac_t       mac;
    packet_pkg::ip_addr_t   ip;
    own_address_e           own;
    logic [5:0]             dscp;
    qpn_t                   qpn;
  } sq_peer_t;

  // ---- the fields of these words that each reader gets (roce_requester_tables) ----
  typedef struct packed {
    sq_count_t count;
    xpsn_t     next;
  } send_tail_t;

  typedef struct packed {
    sq_state_e  state;
    logic       epoch;
    logic       asked;
    logic       later;
    logic [1:0] single;
    logic       rnr_wait;
    xpsn_t      una;
  } send_progress_t;

  typedef struct packed {
    send_tail_t     tail;
    sq_sent_t       sent;
    send_progress_t progress;
    sq_count_t      retired;        // work requests completed
    rd_count_t      rd_done;        // READs and atomics complete
    sq_path_t       path;
    rd_count_t      max_rd_atomic;
  } send_words_t;

  typedef struct packed {
    logic       epoch;
    logic [1:0] single;
    xpsn_t      psn;
    xpsn_t      limit;
    psn_t       mark;
  } ack_sent_t;

  typedef struct packed {
    logic [2:0] retry_cnt;
    logic [2:0] rnr_retry;
  } ack_policy_t;

  typedef struct packed {
    sq_progress_t           progress;
    ack_sent_t              sent;
    sq_path_t               path;
    ack_policy_t            policy;
    rd_count_t              rd_posted;
    packet_pkg::ip_addr_t   peer_ip;
  } ack_words_t;

  typedef struct packed {
    sq_count_t     posted;          // work requests so far
    sq_confirmed_t confirmed;
    xpsn_t         una;             // oldest PSN not confirmed
    sq_failure_t   failure;
    sq_retired_t   retired;
  } retire_words_t;

  typedef struct packed {
    logic  open;
    xpsn_t limit;
  } timer_sent_t;

  typedef struct packed {
    sq_state_e  state;
    logic       epoch;
    logic       drained;
    logic       rnr_wait;
    logic [4:0] rnr_code;
    logic [2:0] retries;
    xpsn_t      una;
  } timer_progress_t;

  typedef struct packed {
    xpsn_t           posted;        // first PSN not assigned
    timer_sent_t     sent;
    timer_progress_t progress;
    logic [4:0]      timeout;
  } timer_words_t;

  typedef struct packed {
    sq_state_e state;
    xpsn_t     una;
  } queue_progress_t;

  typedef struct packed {
    sq_path_t  path;
    rd_count_t max_rd_atomic;
  } queue_policy_t;

  typedef struct packed {
    sq_tail_t        tail;
    queue_progress_t progress;
    sq_count_t       retired;       // work requests completed
    rd_count_t       rd_done;       // READs and atomics complete
  } queue_words_t;

  typedef struct packed {
    psn_t next;                     // first PSN never sent
    psn_t oldest;                   // not acknowledged
  } view_words_t;

  // State of a QP as returned by a query.
  typedef struct packed {
    qp_state_e              state;   // QPS_RESET also for a QP number that does not exist
    packet_pkg::ip_addr_t   ip;      // of the peer; `ip` and the fields after it are undefined in RESET
    qpn_t                   dest_qp_num;
    psn_t                   next;    // first PSN never sent; `next` and `oldest` are undefined before RTS
    psn_t                   oldest;  // oldest PSN not acknowledged
  } qp_view_t;

  // ---- rings: the fields of a work request needed to send and retransmit it, to complete it, and to process its responses ----
  typedef enum logic [2:0] {
    SQ_SEND,
    SQ_SEND_IMM,
    SQ_SEND_INV,
    SQ_WRITE,
    SQ_WRITE_IMM,
    SQ_READ,
    SQ_CMP_SWAP,
    SQ_FETCH_ADD
  } sq_kind_e;

  function automatic logic is_write(sq_kind_e kind);
    return kind inside {SQ_WRITE, SQ_WRITE_IMM};
  endfunction

  function automatic logic is_atomic(sq_kind_e kind);
    return kind inside {SQ_CMP_SWAP, SQ_FETCH_ADD};
  endfunction

  // Its response carries data: READ response or atomic acknowledge.
  // What a kind is in a device that starts no READs and atomics: one of the others.
  function automatic sq_kind_e without_rd(sq_kind_e kind);
    return sq_kind_e'(kind[2] ? SQ_WRITE_IMM : kind);
  endfunction

  function automatic logic is_rd(sq_kind_e kind);
    return kind inside {SQ_READ, SQ_CMP_SWAP, SQ_FETCH_ADD};
  endfunction

  // The opcode in its completion.
  function automatic wc_opcode_e completion_of(sq_kind_e kind);
    unique case (kind)
      SQ_WRITE, SQ_WRITE_IMM: return WC_RDMA_WRITE;
      SQ_READ:                return WC_RDMA_READ;
      SQ_CMP_SWAP:            return WC_COMP_SWAP;
      SQ_FETCH_ADD:           return WC_FETCH_ADD;
      default:                return WC_SEND;
    endcase
  endfunction

  typedef struct packed {
    sq_kind_e    kind;
    logic        solicited;
    logic        fence;
    logic        gap;         // a keep-alive precedes it
    rd_count_t   rd;          // READs and atomics before it
    xpsn_t       first;
    addr_t       local_addr;
    logic [31:0] lkey;
    local_access_t access;    // denied: it is never sent
    logic [31:0] length;      // atomics: upper half of swap_add
    logic [63:0] remote_addr;
    logic [31:0] rkey;
    logic [31:0] word;        // ImmDt or IETH; READ: number of its PSNs; atomics: lower half of swap_add
    logic [22:0] last;        // its PSNs - 1
    logic [12:0] tail;        // bytes in its last packet
  } sq_send_t;

  typedef struct packed {
    sq_kind_e    kind;
    logic        signaled;
    logic        denied;      // its L_Key does not grant the access
    logic [15:0] wr_id;
    xpsn_t       past;        // first PSN after it
  } sq_done_t;

  typedef struct packed {
    logic        atomic;
    xpsn_t       first;
    addr_t       addr;        // destination of the response data
    logic [31:0] lkey;
    local_access_t access;
    logic [22:0] last;        // its PSNs - 1
    logic [12:0] tail;        // bytes in its last packet
  } sq_rd_t;

  // ---- between the units ----

  // roce_requester_schedule -> roce_requester_send: a visit: a QP and its send position.
  typedef struct packed {
    qp_index_t  index;
    sq_path_t   path;
    logic       drain;     // SQD: start no work request
    logic       repair;    // selective repeat: retransmit the oldest packet
    logic       strict;    // packets that the peer accepts in order only are outstanding ...
    xpsn_t      strict_gap;  // ... and end at this distance from psn
    logic       covered;   // if the oldest packet is one of those: its retransmission is already outstanding
    logic       epoch;
    logic [1:0] single;
    rd_count_t  rd_done;
    rd_count_t  max_rd;
    logic [4:0] quantum;
    sq_count_t  count;     // work request to send from
    sq_count_t  left;      // work requests queued from there on:
    logic       none;      // none
    logic       more;      // 2 or more
    xpsn_t      psn;
    xpsn_t      gap;       // distance from psn to the first PSN never sent ...
    logic       fresh;     // ... is 0
    logic       opens;     // psn is the first of a work request, or that of a keep-alive before it
    xpsn_t      limit;
    // The table's word, kept if this visit is a repair or sends nothing new.
    sq_sent_t   sent;
  } sq_visit_t;

  // roce_requester_send -> roce_requester_headers: a packet and its work request.
  typedef struct packed {
    qp_index_t   index;
    psn_t        psn;
    sq_send_t    request;
    logic        keepalive;   // the packet belongs to no work request
    logic        piece;       // each packet of the work request is a WRITE ONLY
    logic        first;
    logic        last;
    addr_t       addr;        // of its payload
    logic [63:0] va;          // remote address of the payload
    logic [31:0] left;        // READ: bytes requested
    logic [12:0] length;      // of its payload
    logic        lapsed;      // the L_Key is no longer valid: reported instead of sent
    logic        again;       // retransmission
    logic        asks;        // AckReq in the middle of a message
  } sq_cut_t;

  // Initializes a QP's word in every table; `psn` is its first PSN.
  typedef struct packed {
    qp_index_t index;
    psn_t      psn;
  } sq_init_t;

  typedef enum logic [3:0] {
    SQ_EV_RESPONSE,     // packet of the peer
    SQ_EV_TIMEOUT,      // ACK timeout; psn: the oldest PSN outstanding then
    SQ_EV_RNR_DONE,     // the RNR timer has expired
    SQ_EV_DRAINED,      // SQD: every work request that was started is acknowledged
    SQ_EV_FAULT,        // payload of the packet with this PSN could not be read
    SQ_EV_LOCAL_FAULT,  // response data could not be written, or the L_Key of the work request at `una` is invalid
    SQ_EV_START,        // RESET -> RTS, first PSN
    SQ_EV_PAUSE,        // RTS -> SQD
    SQ_EV_RESUME,       // SQD -> RTS
    SQ_EV_ERROR,        // any but RESET -> ERR, commanded
    SQ_EV_STOP          // any -> RESET
  } sq_event_e;

  typedef struct packed {
    sq_event_e  kind;
    qp_index_t  index;
    psn_t       psn;
  } sq_event_t;

  // roce_requester_ack -> roce_requester_receive: what to do with a response's payload, and what to confirm after that.
  typedef enum logic [1:0] {
    PAYLOAD_NONE,
    PAYLOAD_DROP,
    PAYLOAD_PLACE,
    PAYLOAD_ORIGINAL    // no payload: write the 8 bytes of `original`
  } sq_payload_e;

  typedef struct packed {
    qp_index_t     index;
    sq_payload_e   payload;
    addr_t         addr;
    target_t       target;
    mr_key_t   key;
    logic [12:0]   length;    // of the write
    atomicacketh_t original;
    logic          confirms;  // else only drops the payload
    logic          command;   // of roce_qp_control, which waits for its completion
    logic          fresh;     // initializes the QP's word
    logic          answered;  // a READ or atomic is complete
    logic          drained;
    sq_state_e     state;
    xpsn_t         una;
    wc_status_e    status;
    xpsn_t         failed;
  } sq_verdict_t;
endpackage
