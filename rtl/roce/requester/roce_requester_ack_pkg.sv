// SPDX-License-Identifier: Apache-2.0

// The types between the stages of roce_requester_ack: an event, its position in the window, and the resulting change of its QP.
package roce_requester_ack_pkg;
  import memory_pkg::*;
  import roce_wire_pkg::*;
  import roce_pkg::*;
  import roce_requester_pkg::*;

  typedef enum logic [2:0] {
    IS_ACK,
    IS_READ_FIRST,
    IS_READ_MIDDLE,
    IS_READ_LAST,
    IS_READ_ONLY,
    IS_ATOMIC
  } response_e;

  function automatic response_e response_of(logic [7:0] opcode);
    unique case (opcode)
      RC_RDMA_READ_RESPONSE_FIRST:  return IS_READ_FIRST;
      RC_RDMA_READ_RESPONSE_MIDDLE: return IS_READ_MIDDLE;
      RC_RDMA_READ_RESPONSE_LAST:   return IS_READ_LAST;
      RC_RDMA_READ_RESPONSE_ONLY:   return IS_READ_ONLY;
      RC_ATOMIC_ACKNOWLEDGE:        return IS_ATOMIC;
      default:                      return IS_ACK;
    endcase
  endfunction

  typedef struct packed {
    sq_event_e              kind;
    qp_index_t              index;
    logic                   exists;
    psn_t                   psn;
    // responses only:
    response_e              is;
    logic [7:0]             syndrome;
    psn_t                   cause;          // NAK with selective repeat: the PSN in place of the MSN
    logic [12:0]            length;
    logic                   has_payload;
    atomicacketh_t          original;
    packet_pkg::ip_addr_t   src_ip;
  } ack_event_t;

  // Commands of roce_qp_control, which waits for their completion.
  function automatic logic is_command(sq_event_e kind);
    return kind inside {SQ_EV_START, SQ_EV_PAUSE, SQ_EV_RESUME, SQ_EV_ERROR, SQ_EV_STOP};
  endfunction

  function automatic logic plain_ack(ack_event_t e);
    return e.kind == SQ_EV_RESPONSE && e.is == IS_ACK && !e.has_payload && e.syndrome[7:5] == SYNDROME_ACK[7:5];
  endfunction

  // An event and its position in the window of its QP.
  typedef struct packed {
    ack_event_t   e;
    sq_progress_t was;
    sq_path_t     path;
    logic         heard;           // a response from the QP's peer
    psn_t         ahead;           // PSN - una
    xpsn_t        span;            // limit - una
    xpsn_t        spread;          // next to send - una
    psn_t         beyond_mark;     // a selective NAK's cause - mark
    logic         sent_epoch;
    logic [1:0]   sent_single;
    logic         last_retry;
    logic         last_rnr_retry;  // no RNR retry left without progress ...
    logic         no_rnr_retry;    // ... and with it
    logic         reads;           // a READ or atomic is outstanding
  } ack_placed_t;

  // The oldest READ or atomic that is not answered, and the response expected next.
  typedef struct packed {
    sq_rd_t      rd;
    logic        beyond;           // no unanswered READ or atomic within 2^24 PSNs of una
    psn_t        expected;         // distance of its PSN from una
    logic [22:0] position;         // of the response in its READ
    logic        opens;            // it is the first response of the READ
    logic        outstanding;      // the event's PSN is outstanding
    logic        window_shut;
    logic        live;             // the L_Key of the READ or atomic is valid
  } ack_expected_t;

  // An event compared with the expected response.
  typedef struct packed {
    ack_event_t   e;
    sq_progress_t was;
    logic         live;            // the QP is in RTS or SQD
    logic         heard;
    logic         outstanding;     // its PSN is outstanding
    logic         counts;          // heard, live and outstanding ...
    logic         ghost;           // ... but a duplicate, a response to no request, or one with a reserved syndrome
    logic         is_ack;
    logic         fatal;           // a fatal NAK; the next two only if not beyond an unanswered READ or atomic
    logic         sequence_error;
    logic         not_ready;
    logic         window_shut;
    logic         ahead_some;      // its PSN is not `una`
    psn_t         ahead;
    psn_t         reached;         // number of PSNs that it acknowledges
    logic         moves;           // that is not 0
    logic         capped;          // it acknowledges a READ or atomic that was not answered
    logic         in_order;        // a READ response or atomic acknowledge: the one expected ...
    logic         skips;           // ... or a later one
    logic         fits;            // its opcode and length are correct
    logic         last;            // the last response of the READ
    logic         selective;
    logic         beyond_mark;     // a selective NAK: the retransmission of `una` was lost too
    logic         pending;         // a rewind has not started yet
    logic         sent_epoch;
    logic         single_pending;
    logic         last_retry;
    logic         last_rnr_retry;
    logic         no_rnr_retry;
    logic         lapsed;          // the L_Key is no longer valid: the response data must not be written
    addr_t        addr;
    target_t      target;
    mr_key_t  key;
    addr_t        offset;
    logic [12:0]  length;
  } ack_matched_t;

  typedef enum logic [1:0] {
    RETRIES_KEEP,
    RETRIES_CLEAR,
    RETRIES_ONE,
    RETRIES_COUNT
  } retries_e;

  // The change of the QP.
  typedef struct packed {
    logic       change;       // its word is written; else only `send_more` below is used
    logic       begins;       // initialize the word: from the event's PSN, in this state
    sq_state_e  state;
    psn_t       advance;      // of una
    retries_e   retries;
    retries_e   rnr_retries;
    logic       implied_set;
    logic       implied_clear;
    logic       asked_clear;
    logic       go_back;      // retransmit from una
    logic       resend;       // retransmit the packet `una`
    logic       rnr_set;      // start the RNR timer with the code of the RNR NAK ...
    logic       rnr_clear;    // ... end the wait
    logic       drained_set;
    logic       drained_clear;
    logic       answered;     // a READ or atomic is complete
    logic       place;        // write the payload of a READ response
    logic       original;     // write the original value of an atomic
    logic       send_more;    // list the QP for sending
    logic       fail;
    wc_status_e fail_status;
    psn_t       fail_at;      // distance of the PSN at fault from una
  } ack_ruling_t;
endpackage
