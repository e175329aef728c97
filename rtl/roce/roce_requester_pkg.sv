// SPDX-License-Identifier: Apache-2.0

// Types that the transmit side of the RoCEv2 plane shares among its units: what the tables hold, and what passes between
// the requester and the frame builder.
package roce_requester_pkg;
  import roce_pkg::*;
  import memory_pkg::*;

  // Largest number of queue pairs; a build has QPS <= MAX_QPS of them, indices 0..QPS-1, QP numbers 2..QPS+1.
  localparam int unsigned MAX_QPS = 1024;
  typedef logic [$clog2(MAX_QPS)-1:0] qp_index_t;

  function automatic qp_index_t sq_index(qpn_t qpn);
    return qp_index_t'(qp_index(qpn));
  endfunction

  function automatic qpn_t qp_number(qp_index_t index);
    return qpn_t'(index) + QPN_FIRST;
  endfunction

  function automatic logic qpn_exists(qpn_t qpn, int unsigned qps);
    return qpn >= QPN_FIRST && qpn < qpn_t'(qps) + QPN_FIRST;
  endfunction

  // PSN that does not wrap: the PSN on the wire in its lower 24 bits. A full send queue may span more than 2^24 PSNs (2 GiB
  // at MTU 256 are 2^23), so that 24 bits could not tell its ends apart.
  typedef logic [31:0] xpsn_t;

  function automatic logic xpsn_before(xpsn_t a, xpsn_t b);
    xpsn_t d;
    d = a - b;
    return d[31];
  endfunction

  // Counts the work requests of a QP; its slot in the ring is the count modulo SQ_DEPTH (at most 128).
  typedef logic [7:0] sq_count_t;

  // ---- tables, one word a QP, one writer each ----

  // roce_requester_queue: what was posted. A PSN below `next` that no work request covers is a keep-alive.
  typedef struct packed {
    sq_count_t count;   // work requests so far
    xpsn_t     next;    // first PSN not given away
  } sq_tail_t;

  // roce_requester_send: what was sent.
  typedef struct packed {
    logic      epoch;   // progress_t::epoch that this position belongs to
    sq_count_t count;   // work request to send from
    xpsn_t     psn;     // next PSN to send
    xpsn_t     limit;   // first PSN never sent
  } sq_sent_t;

  typedef enum logic [1:0] {
    SQ_RESET,
    SQ_RTS,
    SQ_ERR
  } sq_state_e;

  // roce_requester_ack: what the peer said, and the state of the QP's transmit side.
  typedef struct packed {
    sq_state_e  state;
    logic       epoch;        // toggles to send again from `una`
    logic       rnr_wait;
    logic [4:0] rnr_code;
    logic [2:0] retries;      // since the last progress
    logic [2:0] rnr_retries;
    xpsn_t      una;          // oldest PSN not acknowledged
    wc_status_e status;       // SQ_ERR: why ...
    xpsn_t      failed;       // ... and at which PSN
  } sq_progress_t;

  // roce_requester_retire: what was completed.
  typedef struct packed {
    logic      reported;      // the event of the error state is out
    logic      blamed;        // the work request at fault has completed
    sq_count_t count;         // work requests completed
  } sq_retired_t;

  // roce_requester_control: attributes of a QP.
  typedef struct packed {
    mtu_code_t  path_mtu;
    logic [4:0] timeout;
    logic [2:0] retry_cnt;
    logic [2:0] rnr_retry;
  } sq_policy_t;

  typedef struct packed {
    logic                  valid;
    packet_pkg::mac_t       mac;
    packet_pkg::ipv4_addr_t ip;
    qpn_t                   qpn;
  } sq_peer_t;

  // ---- rings: what a work request leaves for its sending (as often as needed), and for its completion ----
  typedef struct packed {
    logic        write;
    logic        with_imm;
    logic        solicited;
    xpsn_t       first;
    addr_t       local_addr;
    logic [31:0] length;
    logic [63:0] remote_addr;
    logic [31:0] rkey;
    logic [31:0] imm_data;
  } sq_send_t;

  typedef struct packed {
    logic        write;
    logic        with_imm;
    logic        signaled;
    logic [15:0] wr_id;
    xpsn_t       past;        // first PSN after it
  } sq_done_t;

  // ---- between the units ----

  // Starts a QP's word in every table: it begins with this PSN.
  typedef struct packed {
    qp_index_t index;
    psn_t      psn;
  } sq_init_t;

  typedef enum logic [2:0] {
    SQ_EV_ACK,        // acknowledgement with PSN and syndrome
    SQ_EV_TIMEOUT,    // no acknowledgement in time; psn: what was oldest then
    SQ_EV_RNR_DONE,   // the peer's RNR time is over
    SQ_EV_FAULT,      // payload of the packet with this PSN could not be read
    SQ_EV_START,      // RESET -> RTS, first PSN
    SQ_EV_STOP        // any -> RESET
  } sq_event_e;

  typedef struct packed {
    sq_event_e  kind;
    qp_index_t  index;
    psn_t       psn;
    logic [7:0] syndrome;
  } sq_event_t;

  // One request packet: what its headers say, and where its payload is.
  typedef struct packed {
    qp_index_t   index;
    logic [7:0]  opcode;
    psn_t        psn;
    logic        se;
    logic        ackreq;
    reth_t       reth;        // if the opcode has it
    immdt_t      imm;
    addr_t       addr;
    logic [12:0] length;      // bytes of payload
    logic        empty;       // length is 0
    logic        again;       // was sent before
    logic        keepalive;
  } sq_packet_t;
endpackage
