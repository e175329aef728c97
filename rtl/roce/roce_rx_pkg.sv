// SPDX-License-Identifier: Apache-2.0

// Types inside the receive side of the RoCEv2 plane: a packet as the responder sees it, the receive state of a QP, and what
// is decided about a packet. What passes to other planes is in roce_pkg.
package roce_rx_pkg;
  import memory_pkg::*;
  import packet_pkg::*;
  import roce_pkg::*;

  typedef logic [9:0] qp_slot_t;     // index of a QP in the tables, QPS <= 1024

  // ---- a packet of the RC service ----
  typedef enum logic [2:0] {
    RC_SEND,
    RC_WRITE,
    RC_UNSUPPORTED,                   // a request that we do not serve: READ, atomics, SEND with invalidate
    RC_ACK,
    RC_RESPONSE                       // to a READ or an atomic
  } rc_kind_e;

  typedef struct packed {
    rc_kind_e    kind;
    logic        first;               // FIRST or ONLY
    logic        last;                // LAST or ONLY
    logic        with_imm;
    logic        ackreq;
    logic        se;
    qpn_t        qpn;
    psn_t        psn;
    ipv4_addr_t  src_ip;
    logic [15:0] payload_length;
    reth_t       reth;                // if first of a WRITE
    logic [31:0] word;                // ImmDt of a request with_imm, AETH of an acknowledgement
  } rc_packet_t;

  // ---- the receive side of a QP ----
  typedef enum logic [1:0] {
    RX_RESET,
    RX_READY,                         // RTR or RTS: packets are taken
    RX_ERROR                          // a fatal NAK was sent: nothing is taken until QP_RESET
  } rx_state_e;

  typedef enum logic [1:0] {
    MESSAGE_NONE,
    MESSAGE_SEND,
    MESSAGE_WRITE
  } rx_message_e;

  typedef logic [7:0] rq_pointer_t;   // counts receives, modulo 256; its low bits are the place in the ring

  typedef struct packed {
    rx_state_e   state;
    ipv4_addr_t  dst_ip;              // the peer
    mtu_code_t   path_mtu;
    logic [4:0]  min_rnr_timer;
    psn_t        epsn;                // expected PSN
    logic [23:0] msn;                 // messages completed (IBTA 9.7.5.1.1)
    logic        nak_sent;            // a NAK for epsn is out: later PSNs are dropped in silence until epsn comes
    rx_message_e message;             // in progress
    addr_t       base;                // where the message goes
    logic [31:0] length;              // of the WRITE, or of the receive buffer
    logic [31:0] offset;              // bytes of the message received
    logic [15:0] wr_id;               // of the receive consumed last
    rq_pointer_t rq_head;             // next receive to consume
  } qp_rx_t;

  // What the posting of receives needs to know of a QP.
  typedef struct packed {
    rx_state_e   state;
    rq_pointer_t rq_head;
  } qp_rx_view_t;

  // A posted receive.
  typedef struct packed {
    addr_t       addr;
    logic [31:0] length;
    logic [15:0] wr_id;
  } receive_t;

  // ---- the access check ----
  typedef struct packed {
    logic [31:0] rkey;
    qpn_t        qpn;
    logic [63:0] va;
    logic [31:0] length;              // 1 or more
    access_t     access;              // all of these rights are needed
  } mr_query_t;

  // ---- through the pipeline ----
  typedef enum logic [1:0] {
    OP_PACKET,
    OP_SETUP,
    OP_RESET,
    OP_FAULT                          // memory refused data that was accepted before
  } rx_op_e;

  typedef enum logic [3:0] {
    VERDICT_NONE,                     // nothing to do
    VERDICT_NO_QP,
    VERDICT_QP_STATE,
    VERDICT_WRONG_PEER,
    VERDICT_ACK,                      // an acknowledgement, for the requester
    VERDICT_GHOST,                    // a response to what was never asked
    VERDICT_DUPLICATE,
    VERDICT_AHEAD,                    // NAK: PSN sequence error
    VERDICT_AHEAD_AGAIN,              // the NAK is out already
    VERDICT_INVALID,                  // NAK: invalid request
    VERDICT_NO_RECEIVE,               // RNR NAK
    VERDICT_ACCESS,                   // NAK: remote access error
    VERDICT_TOO_LONG,                 // NAK: invalid request, and the receive ends with WC_LOC_LEN_ERR
    VERDICT_FAULT,                    // NAK: remote operational error
    VERDICT_ACCEPT
  } verdict_e;

  // All that follows from a packet or a command. cqe.qpn is the QP of every part; cqe.status that of completion and event.
  typedef struct packed {
    logic        ack_tx;              // send an acknowledgement
    logic        ack_rx;              // hand on one that came
    psn_t        psn;
    aeth_t       aeth;
    logic        payload;             // the packet has payload,
    logic        write;               // which goes to memory:
    addr_t       addr;
    logic [15:0] length;
    logic        completes;
    rdma_cqe_t   cqe;
    logic        fails;               // the QP went to error
    logic        answers;             // a command
    logic        answer;
  } action_t;

  // What an RC opcode means. kind RC_UNSUPPORTED for requests that we do not know.
  typedef struct packed {
    rc_kind_e kind;
    logic     first;
    logic     last;
    logic     with_imm;
  } rc_opcode_t;

  function automatic rc_opcode_t rc_opcode(logic [7:0] opcode);
    unique case (opcode)
      RC_SEND_FIRST:               return '{RC_SEND, 1'b1, 1'b0, 1'b0};
      RC_SEND_MIDDLE:              return '{RC_SEND, 1'b0, 1'b0, 1'b0};
      RC_SEND_LAST:                return '{RC_SEND, 1'b0, 1'b1, 1'b0};
      RC_SEND_LAST_WITH_IMM:       return '{RC_SEND, 1'b0, 1'b1, 1'b1};
      RC_SEND_ONLY:                return '{RC_SEND, 1'b1, 1'b1, 1'b0};
      RC_SEND_ONLY_WITH_IMM:       return '{RC_SEND, 1'b1, 1'b1, 1'b1};
      RC_RDMA_WRITE_FIRST:         return '{RC_WRITE, 1'b1, 1'b0, 1'b0};
      RC_RDMA_WRITE_MIDDLE:        return '{RC_WRITE, 1'b0, 1'b0, 1'b0};
      RC_RDMA_WRITE_LAST:          return '{RC_WRITE, 1'b0, 1'b1, 1'b0};
      RC_RDMA_WRITE_LAST_WITH_IMM: return '{RC_WRITE, 1'b0, 1'b1, 1'b1};
      RC_RDMA_WRITE_ONLY:          return '{RC_WRITE, 1'b1, 1'b1, 1'b0};
      RC_RDMA_WRITE_ONLY_WITH_IMM: return '{RC_WRITE, 1'b1, 1'b1, 1'b1};
      RC_ACKNOWLEDGE:              return '{RC_ACK, 1'b1, 1'b1, 1'b0};
      RC_RDMA_READ_RESPONSE_FIRST, RC_RDMA_READ_RESPONSE_MIDDLE, RC_RDMA_READ_RESPONSE_LAST,
      RC_RDMA_READ_RESPONSE_ONLY, RC_ATOMIC_ACKNOWLEDGE:
                                   return '{RC_RESPONSE, 1'b1, 1'b1, 1'b0};
      default:                     return '{RC_UNSUPPORTED, 1'b1, 1'b1, 1'b0};
    endcase
  endfunction
endpackage
