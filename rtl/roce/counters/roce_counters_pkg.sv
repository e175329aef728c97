// SPDX-License-Identifier: Apache-2.0

// Counters of each queue pair, in the order in which software reads them, and the events that they count. Names are those of the
// device's counters (roce_pkg), which are those of Linux hw_counters where one exists.
package roce_counters_pkg;
  import roce_pkg::*;

  typedef enum logic [4:0] {
    QPC_SENT_PKTS,             // request packets, retransmissions included
    QPC_SENT_BYTES,            // their payload, without padding
    QPC_SENT_RESPONSES,        // acknowledgements, NAKs, READ responses, atomic acknowledgements
    QPC_SENT_RESPONSE_BYTES,
    QPC_RCVD_PKTS,             // request packets of the QP's peer, in a state that accepts them; duplicates included
    QPC_RCVD_BYTES,
    QPC_RCVD_RESPONSES,        // response packets addressed to the QP, before any check of peer and state
    QPC_RCVD_RESPONSE_BYTES,
    QPC_PACKET_RETRANSMIT,
    QPC_LOCAL_ACK_TIMEOUT_ERR,
    QPC_RNR_NAK_RETRY_ERR,     // RNR NAK received
    QPC_PACKET_SEQ_ERR,        // NAK PSN sequence error received
    QPC_DUPLICATE_REQUEST,
    QPC_OUT_OF_SEQ_REQUEST,
    QPC_SENT_NAK,              // other than RNR NAKs
    QPC_SEND_RNR_ERR,          // RNR NAK sent
    QPC_NP_CNP_SENT,
    QPC_RP_CNP_HANDLED
  } qp_counter_e;

  localparam int unsigned QP_COUNTERS = 18;
  typedef logic [QP_COUNTERS-1:0][31:0] qp_counters_t;   // each modulo 2^32
  typedef logic [15:0] qp_bytes_t;

  // The events of one cycle, by unit; each struct concerns one QP. Bytes are those of the packet.
  typedef struct packed {
    qp_index_t index;
    logic      pkts;
    logic      responses;
    qp_bytes_t bytes;
    logic      packet_retransmit;
    logic      sent_nak;
    logic      send_rnr_err;
    logic      np_cnp_sent;
  } qp_sent_t;

  typedef struct packed {
    qp_index_t index;
    logic      pkts;
    qp_bytes_t bytes;
    logic      duplicate_request;
    logic      out_of_seq_request;
    logic      rp_cnp_handled;
  } qp_requested_t;

  typedef struct packed {
    qp_index_t index;
    logic      responses;
    qp_bytes_t bytes;
  } qp_responded_t;

  typedef struct packed {
    qp_index_t index;
    logic      local_ack_timeout_err;
    logic      rnr_nak_retry_err;
    logic      packet_seq_err;
  } qp_retried_t;
endpackage
