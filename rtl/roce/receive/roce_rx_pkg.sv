// SPDX-License-Identifier: Apache-2.0

// Types inside the receive side of the RoCEv2 plane: a packet as the responder sees it, the receive state of a QP, and what
// is decided about a packet. What passes to other planes is in roce_pkg.
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
    RC_UNSUPPORTED,                   // a request that nobody knows
    RC_RESPONSE,                      // answers us. The responder sees it only if it came marked with congestion
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
    logic        ce;                  // came with congestion experienced (RFC 3168)
    qpn_t        qpn;
    psn_t        psn;
    ipv4_addr_t  src_ip;
    logic [15:0] payload_length;
    reth_t       reth;                // if first of a WRITE; READ; ATOMIC without dmalen
    logic [31:0] word;                // ImmDt of a request with_imm, IETH of one with_inv
    logic [63:0] swap_add;            // ATOMIC
    logic [63:0] compare;
  } rc_packet_t;

  // ---- the receive side of a QP: what QP_SETUP says once for all ----
  typedef struct packed {
    ipv4_addr_t  dst_ip;              // the peer
    pd_t         pd;
    access_t     access;
    mtu_code_t   path_mtu;
    logic        selective_repeat;
    logic [4:0]  min_rnr_timer;
    logic [7:0]  max_dest_rd_atomic;
  } qp_rx_attr_t;

  // ---- and what changes from packet to packet ----
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
    psn_t        lead;                // by which epsn is ahead of the MSN, see `msn_of`
    logic        nak_sent;            // a NAK for epsn is out: later PSNs are dropped in silence until epsn comes
    logic        established;         // a request was taken since set-up
    rx_message_e message;             // in progress
    addr_t       base;                // where the message goes,
    target_t     target;              // in which memory
    logic [31:0] key;                 // R_Key of the WRITE, L_Key of the receive,
    logic        keyed;               // which must be valid
    logic [31:0] length;              // of the WRITE, or of the receive buffer
    logic [31:0] offset;              // bytes of the message received
    logic [15:0] wr_id;               // of the receive consumed last
    rq_pointer_t rq_head;             // next receive to consume
    logic        rd_begun;            // rd_taken counts; before, there was none since set-up
    rd_count_t   rd_taken;            // READs and atomics taken
  } qp_rx_t;

  // Messages completed before the expected PSN (IBTA 9.7.5.1.1). A packet placed ahead of its turn is a message of one PSN: when the
  // expected PSN passes it, the MSN has counted it, and the lead is as it was.
  function automatic logic [23:0] msn_of(qp_rx_t state);
    return state.epsn - state.lead;
  endfunction

  // Packets are taken: in SQD and RTS as in RTR.
  function automatic logic receives_packets(qp_state_e state);
    return state inside {QPS_RTR, QPS_RTS, QPS_SQD};
  endfunction

  // What the posting of receives needs to know of a QP.
  typedef struct packed {
    qp_state_e   state;
    rq_pointer_t rq_head;
  } qp_rx_view_t;

  // A receive on its way to its ring.
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
    local_access_t access;            // denied: nothing but messages without data may come
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
    logic        bounded;             // an access to [va, va + length); else only the key counts
    logic [63:0] va;
    logic [31:0] length;              // 1 or more
    access_t     access;              // all of these rights are needed
  } mr_query_t;

  // ---- through the pipeline ----
  typedef enum logic [2:0] {
    OP_PACKET,
    OP_COMMAND,                       // QP_SETUP, QP_MODIFY or QP_RESET
    OP_FAULT,                         // memory refused data that was accepted before, or to be read for the peer
    OP_DENIED,                        // a READ or atomic that was accepted before: its key is not valid any more
    OP_FLUSH,                         // one receive of a QP in error
    OP_FENCE                          // a key has gone: passes through behind what was judged before
  } rx_op_e;

  // What of a packet can be judged by the QP's attributes alone.
  typedef struct packed {
    logic        peer;                // comes from the QP's peer
    logic        disabled;            // the QP allows no such request
    logic        bad_length;          // payload against path MTU and form, message against the standard's limit, alignment
    logic        checked;             // the access check must allow it
    logic        placeable;           // a WRITE that may be placed ahead of its turn
    psn_t        next;                // PSN after this packet and the responses to it
    logic [31:0] offset;              // of the payload in the message, if it is the first packet
  } form_t;

  typedef enum logic [4:0] {
    VERDICT_NONE,                     // nothing to do
    VERDICT_NO_QP,
    VERDICT_QP_STATE,
    VERDICT_WRONG_PEER,
    VERDICT_NOTICE,                   // no request: only its congestion mark, or that it is a CNP, counts
    VERDICT_DUPLICATE,                // acknowledged again
    VERDICT_AGAIN,                    // a READ or atomic, answered again
    VERDICT_FORGOTTEN,                // a READ that cannot be carried out again
    VERDICT_AHEAD,                    // NAK: PSN sequence error
    VERDICT_AHEAD_AGAIN,              // the NAK is out already
    VERDICT_PLACED,                   // ahead, but placed and remembered; NAK: PSN sequence error
    VERDICT_INVALID,                  // NAK: invalid request
    VERDICT_NO_RECEIVE,               // RNR NAK
    VERDICT_MEMORY_BUSY,              // RNR NAK, the lane of its memory being full
    VERDICT_MEMORY_FULL,              // as if it had not come, there being no room for an answer either
    VERDICT_ACCESS,                   // NAK: remote access error
    VERDICT_TOO_LONG,                 // NAK: invalid request, and the receive ends with WC_LOC_LEN_ERR
    VERDICT_PROTECTION,               // NAK: remote operational error, and the receive, whose L_Key is wrong, ends with WC_LOC_PROT_ERR
    VERDICT_FAULT,                    // NAK: remote operational error, sent by roce_responder_complete or the response unit
    VERDICT_DENIED,                   // NAK: remote access error, sent by the response unit
    VERDICT_FLUSH,                    // a receive completes with WC_WR_FLUSH_ERR
    VERDICT_DONE,                     // a command
    VERDICT_REFUSED,                  // a command that the QP's state does not allow
    VERDICT_ACCEPT
  } verdict_e;

  // What follows from a packet or a command at once.
  typedef struct packed {
    logic        payload;             // the packet has payload,
    logic        write;               // which goes to memory:
    addr_t       addr;
    target_t     target;
    mr_key_t key;
    logic [15:0] length;
    logic        event_;              // tell the QP's owner
    logic        fatal;               // QP_FATAL, else COMM_EST
    wc_status_e  status;
    qpn_t        qpn;
    logic        waits;               // there is an outcome too,
    target_t     lane;                // in the lane of this memory
  } action_t;

  // What follows from it when memory has confirmed everything before it: an answer to the peer, a completion, an answer to
  // the command. What a READ or atomic needs and what a completion needs are never needed at once.
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
    logic        lapsed;              // which is not written, the L_Key of its receive being invalid by now: as if memory refused it
    logic        last;                // the packet, next in turn, that completes a message
    logic        executes;            // a READ or atomic
    logic        acks;                // an acknowledgement or NAK, with syndrome and msn; after that READ or atomic
    logic [6:0]  behind;              // it covers so many messages more, placed before, behind this packet
    logic        gap;                 // it is the NAK of selective repeat
    logic        completes;
    logic        answers;             // a command
    logic        answer;
    logic        renews;              // which forgets all about the QP's past
    logic        fences;              // a key has gone before: the fence of a command, or the SEND that has invalidated it
    qpn_t        qpn;
    psn_t        psn;                 // of the packet
    psn_t        ack_psn;
    aeth_t       aeth;
    union packed {
      execution_t execution;
      report_t    report;
    } body;
  } outcome_t;

  // Whether there is one.
  function automatic logic outcome_waits(outcome_t o);
    return o.write || o.lapsed || o.executes || o.acks || o.completes || o.answers || o.fences;
  endfunction

  // An outcome when memory has confirmed everything before it, of its QP at least.
  typedef struct packed {
    logic     error;                  // memory refused the packet's own payload, or it has lapsed
    outcome_t outcome;
  } confirmed_t;

  // What an RC opcode means.
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
    // What is not part of a longer message is both first and last.
    o.first = !(opcode inside {RC_SEND_MIDDLE, RC_SEND_LAST, RC_SEND_LAST_WITH_IMM, RC_SEND_LAST_WITH_INVALIDATE,
                               RC_RDMA_WRITE_MIDDLE, RC_RDMA_WRITE_LAST, RC_RDMA_WRITE_LAST_WITH_IMM});
    o.last = !(opcode inside {RC_SEND_FIRST, RC_SEND_MIDDLE, RC_RDMA_WRITE_FIRST, RC_RDMA_WRITE_MIDDLE});
    o.with_imm = opcode inside {RC_SEND_LAST_WITH_IMM, RC_SEND_ONLY_WITH_IMM, RC_RDMA_WRITE_LAST_WITH_IMM,
                                RC_RDMA_WRITE_ONLY_WITH_IMM};
    o.with_inv = opcode inside {RC_SEND_LAST_WITH_INVALIDATE, RC_SEND_ONLY_WITH_INVALIDATE};
    return o;
  endfunction
endpackage
