// SPDX-License-Identifier: Apache-2.0

// Types inside the receive side of the RoCEv2 plane: a decoded packet, the receive state of a QP, and the decision on a packet. Types
// shared with other planes are in roce_pkg.
package roce_rx_pkg;
  import memory_pkg::*;
  import packet_pkg::*;
  import roce_wire_pkg::*;
  import roce_pkg::*;

  localparam logic [31:0] MESSAGE_MAX = 32'h8000_0000;  // bytes (IBTA 9.7.7)
  localparam logic [31:0] ATOMIC_BYTES = 32'd8;

  // ---- a packet for the responder ----
  typedef enum logic [2:0] {
    RC_SEND,
    RC_WRITE,
    RC_READ,
    RC_ATOMIC,
    RC_UNSUPPORTED,                   // a request with an opcode that is not supported
    RC_RESPONSE,  // a response to the device's own request, forwarded to the responder only with congestion experienced (CE)
    RC_CNP
  } rc_kind_e;

  typedef struct packed {
    rc_kind_e    kind;
    logic        first;               // FIRST or ONLY
    logic        last;                // LAST or ONLY
    logic        with_imm;
    logic        with_inv;
    logic        compare_swap;        // ATOMIC: else fetch and add
    logic        ackreq;
    logic        se;
    logic        ce;                  // congestion experienced (RFC 3168)
    qpn_t        qpn;
    psn_t        psn;
    ip_addr_t    src_ip;
    logic [15:0] payload_length;
    reth_t       reth;                // first packet of a WRITE; READ; ATOMIC without dmalen
    logic [31:0] word;                // ImmDt of a request with_imm, IETH of one with_inv
    logic [63:0] swap_add;            // ATOMIC
    logic [63:0] compare;
  } rc_packet_t;

  // ---- the receive side of a QP: set by QP_SETUP ----
  typedef struct packed {
    ip_addr_t    dst_ip;              // the peer
    pd_t         pd;
    access_t     access;
    mtu_code_t   path_mtu;
    logic        selective_repeat;
    logic [4:0]  min_rnr_timer;
    logic [7:0]  max_dest_rd_atomic;
  } qp_rx_attr_t;

  // ---- and the state, updated by each packet ----
  typedef enum logic [1:0] {
    MESSAGE_NONE,
    MESSAGE_SEND,
    MESSAGE_WRITE
  } rx_message_e;

  typedef logic [7:0] rq_pointer_t;   // counts receives, modulo 256; its low bits are the place in the ring
  typedef logic [7:0] rd_count_t;     // counts READs and atomics, modulo 256

  typedef struct packed {
    qp_state_e   state;
    psn_t        epsn;                // expected PSN
    psn_t        lead;                // epsn minus MSN, see `msn_of`
    logic        nak_sent;            // a NAK for epsn was sent: later PSNs are dropped without a NAK until epsn arrives
    logic        established;         // a request was accepted since set-up
    rx_message_e message;             // in progress
    addr_t       base;                // address of the message
    target_t     target;              // in which memory
    logic [31:0] key;                 // R_Key of the WRITE, L_Key of the receive,
    logic        keyed;               // which must be valid
    logic [31:0] length;              // of the WRITE, or of the receive buffer
    logic [31:0] offset;              // bytes of the message received
    logic [15:0] wr_id;               // of the receive consumed last
    rq_pointer_t rq_head;             // next receive to consume
    logic        rd_begun;            // rd_taken is valid: a READ or atomic was accepted since set-up
    rd_count_t   rd_taken;            // READs and atomics accepted
  } qp_rx_t;

  // Messages completed before the expected PSN (IBTA 9.7.5.1.1). A packet placed ahead of a gap is a message of one PSN: when the expected
  // PSN passes it, the MSN counts it, and the lead does not change.
  function automatic logic [23:0] msn_of(qp_rx_t state);
    return state.epsn - state.lead;
  endfunction

  // Packets are accepted in RTR, RTS and SQD.
  function automatic logic receives_packets(qp_state_e state);
    return state inside {QPS_RTR, QPS_RTS, QPS_SQD};
  endfunction

  // The part of a QP's state that posting a receive needs.
  typedef struct packed {
    qp_state_e   state;
    rq_pointer_t rq_head;
  } qp_rx_view_t;

  // A receive on its way to its ring, with the result of its access check.
  typedef struct packed {
    rdma_wqe_t     wqe;
    local_access_t access;
  } rx_post_t;

  // A posted receive.
  typedef struct packed {
    addr_t       addr;
    logic [31:0] length;
    logic [15:0] wr_id;
    logic [31:0] lkey;
    local_access_t access;            // denied: only messages without data are accepted
  } receive_t;

  // A receive that could not be posted.
  typedef struct packed {
    qpn_t        qpn;
    logic [15:0] wr_id;
  } rx_reject_t;

  // ---- the access check ----
  typedef struct packed {
    logic [31:0] key;                 // R_Key of a request, L_Key of a work request
    pd_t         pd;                  // of the QP
    qpn_t        qpn;
    logic        bounded;             // an access to [va, va + length); else only the key is checked
    logic [63:0] va;
    logic [31:0] length;              // 1 or more
    access_t     access;              // all of these rights are needed
  } mr_query_t;

  // ---- through the pipeline ----
  typedef enum logic [2:0] {
    OP_PACKET,
    OP_COMMAND,                       // QP_SETUP, QP_MODIFY or QP_RESET
    OP_FAULT,  // memory reported an error for data that was accepted, or for the payload of a READ or atomic of the peer
    OP_DENIED,                        // the key of a READ or atomic that was accepted was invalidated since
    OP_FLUSH,                         // one receive of a QP in the error state
    OP_FENCE                          // a key was invalidated: passes behind everything decided before
  } rx_op_e;

  // The checks of a packet that need the QP's attributes alone.
  typedef struct packed {
    logic        peer;                // sent by the QP's peer
    logic        disabled;            // the QP does not allow this request
    logic        bad_length;          // payload against path MTU and opcode, message against the standard's limit, alignment
    logic        checked;             // subject to the access check
    logic        placeable;           // a WRITE that may be placed ahead of a gap
    psn_t        next;                // PSN after this packet and the responses to it
    logic [31:0] offset;              // of the payload in the message, if this is the first packet
  } form_t;

  typedef enum logic [4:0] {
    VERDICT_NONE,                     // no effect
    VERDICT_NO_QP,
    VERDICT_QP_STATE,
    VERDICT_WRONG_PEER,
    VERDICT_NOTICE,                   // not a request: only its congestion mark, or that it is a CNP, is used
    VERDICT_DUPLICATE,                // acknowledged again
    VERDICT_AGAIN,                    // a READ or atomic, executed again
    VERDICT_FORGOTTEN,                // a duplicate READ or atomic that cannot be executed again: dropped
    VERDICT_AHEAD,                    // NAK: PSN sequence error
    VERDICT_AHEAD_AGAIN,              // dropped: the NAK was sent already
    VERDICT_PLACED,                   // ahead of a gap, placed and marked; NAK: PSN sequence error
    VERDICT_INVALID,                  // NAK: invalid request
    VERDICT_NO_RECEIVE,               // RNR NAK
    VERDICT_MEMORY_BUSY,              // RNR NAK: the lane of the memory is full
    VERDICT_MEMORY_FULL,              // dropped without effect: there is no entry for a response either
    VERDICT_ACCESS,                   // NAK: remote access error
    VERDICT_TOO_LONG,                 // NAK: invalid request, and the receive ends with WC_LOC_LEN_ERR
    VERDICT_PROTECTION,               // NAK: remote operational error; the receive's L_Key is invalid, it ends with WC_LOC_PROT_ERR
    VERDICT_FAULT,                    // NAK: remote operational error, sent by roce_responder_complete or the response unit
    VERDICT_DENIED,                   // NAK: remote access error, sent by the response unit
    VERDICT_FLUSH,                    // a receive completes with WC_WR_FLUSH_ERR
    VERDICT_DONE,                     // a command was executed
    VERDICT_REFUSED,                  // a command that the QP's state does not allow
    VERDICT_ACCEPT
  } verdict_e;

  // The immediate action of a packet or a command.
  typedef struct packed {
    logic        payload;             // the packet has payload,
    logic        write;               // which goes to memory:
    addr_t       addr;
    target_t     target;
    mr_key_t key;
    logic [15:0] length;
    logic        event_;              // report to the QP's owner
    logic        fatal;               // QP_FATAL, else COMM_EST
    wc_status_e  status;
    qpn_t        qpn;
    logic        waits;               // there is an outcome too
    target_t     lane;                // in the lane of this memory
  } action_t;

  // The outcome, executed when memory has confirmed everything before it: a response to the peer, a completion, an answer to a command. The
  // fields of a READ or atomic and those of a completion are never needed together.
  typedef struct packed {
    logic        compare_swap;        // else fetch and add
    logic [63:0] swap_add;
    logic [63:0] compare;
  } operands_t;

  typedef struct packed {
    logic                      atomic;
    logic                      duplicate;
    mtu_code_t                 path_mtu;
    addr_t                     addr;
    target_t                   target;
    logic [31:0]               rkey;
    union packed {
      operands_t               operands;   // atomic
      struct packed {
        logic [$bits(operands_t)-33:0] none;
        logic [31:0]           length;     // READ
      } read;
    } of;
  } execution_t;

  typedef struct packed {
    logic [$bits(execution_t)-90:0] none;
    wc_status_e  status;
    logic        of_write;            // WC_RECV_RDMA_WITH_IMM
    logic        with_imm;
    logic        with_inv;
    logic        solicited;
    logic [15:0] wr_id;
    logic [31:0] byte_len;
    logic [31:0] imm_data;
  } report_t;

  typedef struct packed {
    logic        write;               // waits for memory to confirm this packet's own payload
    logic        lapsed;              // which is not written because the L_Key of its receive was invalidated: handled as a write error
    logic        last;                // the packet, with the expected PSN, completes a message
    logic        executes;            // a READ or atomic
    logic        acks;                // an acknowledgement or NAK, with syndrome and MSN; sent after that READ or atomic
    logic [6:0]  behind;              // messages placed ahead of the gap that the acknowledgement also covers
    logic        gap;                 // the acknowledgement is the NAK of selective repeat
    logic        completes;
    logic        answers;             // a command
    logic        answer;
    logic        renews;              // and clears the QP's `failed` mark
    logic        fences;              // a key was invalidated before: by a command, or by this SEND
    qpn_t        qpn;
    psn_t        psn;                 // of the packet
    psn_t        ack_psn;
    aeth_t       aeth;
    union packed {
      execution_t execution;
      report_t    report;
    } body;
  } outcome_t;

  // Whether there is an outcome.
  function automatic logic outcome_waits(outcome_t o);
    return o.write || o.lapsed || o.executes || o.acks || o.completes || o.answers || o.fences;
  endfunction

  // An outcome after memory has confirmed everything before it, at least everything of its QP.
  typedef struct packed {
    logic     error;                  // memory reported an error for the packet's own payload, or the payload has lapsed
    outcome_t outcome;
  } confirmed_t;

  // Decoded RC opcode.
  typedef struct packed {
    rc_kind_e kind;
    logic     first;
    logic     last;
    logic     with_imm;
    logic     with_inv;
  } rc_opcode_t;

  function automatic rc_opcode_t rc_opcode(logic [7:0] opcode);
    rc_opcode_t o;
    o = '0;
    unique case (opcode) inside
      RC_SEND_FIRST, RC_SEND_MIDDLE, RC_SEND_LAST, RC_SEND_LAST_WITH_IMM, RC_SEND_ONLY, RC_SEND_ONLY_WITH_IMM,
      RC_SEND_LAST_WITH_INVALIDATE, RC_SEND_ONLY_WITH_INVALIDATE:
        o.kind = RC_SEND;
      RC_RDMA_WRITE_FIRST, RC_RDMA_WRITE_MIDDLE, RC_RDMA_WRITE_LAST, RC_RDMA_WRITE_LAST_WITH_IMM, RC_RDMA_WRITE_ONLY,
      RC_RDMA_WRITE_ONLY_WITH_IMM:
        o.kind = RC_WRITE;
      RC_RDMA_READ_REQUEST: o.kind = RC_READ;
      RC_COMPARE_SWAP, RC_FETCH_ADD: o.kind = RC_ATOMIC;
      RC_RDMA_READ_RESPONSE_FIRST, RC_RDMA_READ_RESPONSE_MIDDLE, RC_RDMA_READ_RESPONSE_LAST, RC_RDMA_READ_RESPONSE_ONLY,
      RC_ACKNOWLEDGE, RC_ATOMIC_ACKNOWLEDGE:
        o.kind = RC_RESPONSE;
      CNP: o.kind = RC_CNP;
      default: o.kind = RC_UNSUPPORTED;
    endcase
    // A packet that is not part of a longer message is both first and last.
    o.first = !(opcode inside {RC_SEND_MIDDLE, RC_SEND_LAST, RC_SEND_LAST_WITH_IMM, RC_SEND_LAST_WITH_INVALIDATE,
                               RC_RDMA_WRITE_MIDDLE, RC_RDMA_WRITE_LAST, RC_RDMA_WRITE_LAST_WITH_IMM});
    o.last = !(opcode inside {RC_SEND_FIRST, RC_SEND_MIDDLE, RC_RDMA_WRITE_FIRST, RC_RDMA_WRITE_MIDDLE});
    o.with_imm = opcode inside {RC_SEND_LAST_WITH_IMM, RC_SEND_ONLY_WITH_IMM, RC_RDMA_WRITE_LAST_WITH_IMM,
                                RC_RDMA_WRITE_ONLY_WITH_IMM};
    o.with_inv = opcode inside {RC_SEND_LAST_WITH_INVALIDATE, RC_SEND_ONLY_WITH_INVALIDATE};
    return o;
  endfunction
endpackage
