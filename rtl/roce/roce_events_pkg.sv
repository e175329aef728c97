// SPDX-License-Identifier: Apache-2.0

// Events that the counters of the device count, one pulse each. Names are those of Linux hw_counters (rxe, mlx5) where there is one.
package roce_events_pkg;
  typedef struct packed {
    logic rcvd_pkts;               // request packets for a live QP
    logic duplicate_request;
    logic out_of_seq_request;      // PSN ahead of the expected one; the NAK may have been sent before
    logic out_of_buffer;           // no receive posted: RNR NAK
    logic memory_busy;             // the queue of its memory is full: RNR NAK, or dropped as if lost
    logic rx_write_requests;       // messages
    logic rx_read_requests;
    logic rx_atomic_requests;
    logic rx_send_requests;
    logic sent_ack;
    logic sent_nak;
    logic send_rnr_err;            // RNR NAK sent
    logic resp_remote_access_errors; // key, domain, QP, bounds or rights: NAK sent
    logic resp_invalid_request;    // opcode sequence, length, alignment, too many READs and atomics: NAK sent
    logic resp_local_length_error; // SEND longer than the receive buffer: NAK sent
    logic resp_local_protection_errors; // device memory reported an error: NAK sent
    logic resp_cqe_flush_error;    // receives flushed
    logic out_of_order_placed;     // selective repeat: a WRITE packet ahead of the expected PSN was placed
    logic atomic_replayed;         // duplicate, answered from the response cache
    logic drop_duplicate_forgotten; // duplicate READ or atomic that finds the queue full, or no cached response
    logic drop_no_qp;
    logic drop_wrong_peer;         // the QP is connected to another address
    logic drop_bad_bth;            // TVer, P_Key, opcode of another service
    logic drop_cm_rate;            // datagram to QP1, while those before it delay other packets
    logic drop_qp_state;
    logic np_ecn_marked_roce_packets; // received with congestion experienced (CE)
    logic np_cnp_sent;
  } roce_rx_events_t;

  typedef struct packed {
    logic sent_pkts;               // request packets, including retransmissions
    logic sent_writes;             // messages, not counting retransmissions
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
    logic drop_ghost_response;     // for a PSN that was not sent or is already acknowledged (IBTA 9.7.5.1)
    logic drop_response_no_qp;     // no such QP, not from its peer, or not in RTS, SQD or SQE
    logic wqe_refused;             // work request for a QP of another client
    logic rp_cnp_handled;
    logic rp_cnp_ignored;          // for no QP, or congestion control is off
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
    logic connection_opened;       // reported to the client; opened - closed = live connections
    logic connection_closed;
    logic drop_malformed;          // not a valid communication management datagram
    logic drop_overflow;           // received faster than it could be answered; the peer retransmits it
    logic drop_no_connection;      // for no connection, or not expected in its state
    logic drop_unresolved;         // no ARP reply for the address that a client connects to: no REQ sent
    logic refused_per_peer;        // REQ: its address has reached its limit of connections
    logic refused_half_open;       // REQ: the limit of half-open connections is reached
    logic refused_half_open_per_peer; // REQ: the limit of half-open connections with its address is reached
    logic refused_no_token;        // REQ without a token, and no entry is for its address
    logic refused_token;           // REQ with a token that no valid entry has for its address
    logic refused_per_entry;       // REQ: its entry has all its connections
    logic admission_ended;         // a connection is closed because its entry was revoked, or its time is over
  } cm_events_t;
endpackage
