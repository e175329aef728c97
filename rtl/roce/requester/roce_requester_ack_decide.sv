// SPDX-License-Identifier: Apache-2.0

// Decides the change of a QP's send queue on an event: acknowledgement, retransmission after a NAK or timeout, the wait after an
// RNR NAK, failure (IBTA 9.7.5, 9.9.2.1). Combinational; roce_requester_ack applies the change.
module roce_requester_ack_decide
  import roce_wire_pkg::*;
  import roce_pkg::*;
  import roce_events_pkg::*;
  import roce_requester_pkg::*;
  import roce_requester_ack_pkg::*;
(
    input  ack_matched_t    matched,
    output ack_ruling_t     ruling,
    output roce_tx_events_t events
);
  sq_progress_t was;
  assign was = matched.was;

  // ---- local events: commands, timers, faults ----
  ack_ruling_t     own;
  roce_tx_events_t own_events;
  always_comb begin
    own             = '{state: was.state, retries: RETRIES_KEEP, rnr_retries: RETRIES_KEEP, fail_status: WC_LOC_PROT_ERR, default: '0};
    own_events      = '0;
    unique case (matched.e.kind)
      SQ_EV_START: begin
        own.change = 1'b1;
        own.begins = 1'b1;
        own.state  = SQ_RTS;
      end
      SQ_EV_STOP: begin
        own.change = 1'b1;
        own.begins = 1'b1;
        own.state  = SQ_RESET;
      end
      SQ_EV_PAUSE:
      if (was.state == SQ_RTS) begin
        own.change        = 1'b1;
        own.state         = SQ_SQD;
        own.drained_clear = 1'b1;
      end
      SQ_EV_RESUME:
      if (was.state == SQ_SQD) begin
        own.change    = 1'b1;
        own.state     = SQ_RTS;
        own.send_more = 1'b1;
      end
      SQ_EV_ERROR: begin
        own.fail        = matched.live;
        own.fail_status = WC_WR_FLUSH_ERR;
      end
      SQ_EV_TIMEOUT:
      if (matched.live && !matched.ahead_some && !was.rnr_wait) begin
        own_events.local_ack_timeout_err = 1'b1;
        own_events.retry_exceeded_err    = matched.last_retry;
        own.fail                         = matched.last_retry;
        own.fail_status                  = WC_RETRY_EXC_ERR;
        own.retries                      = RETRIES_COUNT;
        own.implied_clear                = 1'b1;
        own.go_back                      = 1'b1;
      end
      SQ_EV_RNR_DONE:
      if (matched.live && was.rnr_wait) begin
        own.rnr_clear = 1'b1;
        own.go_back   = 1'b1;
      end
      SQ_EV_DRAINED:
      if (was.state == SQ_SQD && !was.drained && !matched.ahead_some) begin
        own.change      = 1'b1;
        own.drained_set = 1'b1;
      end
      SQ_EV_FAULT: begin
        // If the PSN was acknowledged meanwhile, the packet was a retransmission and the fault is ignored.
        own.fail    = matched.live && matched.outstanding;
        own.fail_at = matched.ahead;
      end
      SQ_EV_LOCAL_FAULT: own.fail = matched.live;
      default: ;
    endcase
  end

  // ---- responses of the peer ----
  ack_ruling_t     peers, nothing;
  roce_tx_events_t peers_events;
  always_comb begin
    nothing      = '{state: was.state, retries: RETRIES_KEEP, rnr_retries: RETRIES_KEEP, fail_status: WC_RETRY_EXC_ERR, default: '0};
    peers        = nothing;
    peers_events = '0;
    // Every valid response may acknowledge PSNs.
    peers.advance   = matched.reached;
    peers.change    = matched.moves;
    peers.send_more = matched.moves && matched.window_shut;
    if (matched.moves) begin
      peers.retries       = RETRIES_CLEAR;
      peers.rnr_retries   = RETRIES_CLEAR;
      peers.implied_clear = 1'b1;
      peers.asked_clear   = 1'b1;
    end
    peers_events.rcvd_acks = matched.is_ack;

    if (!matched.counts) begin
      peers                            = nothing;
      peers_events                     = '0;
      peers_events.drop_response_no_qp = !(matched.heard && matched.live);
      peers_events.drop_ghost_response = matched.heard && matched.live;
    end else if (matched.ghost) begin
      peers                            = nothing;
      peers_events                     = '0;
      peers_events.drop_ghost_response = 1'b1;
    end else if (!matched.is_ack && matched.in_order) begin
      if (!matched.fits) begin
        peers.fail                    = 1'b1;
        peers.fail_status             = WC_BAD_RESP_ERR;
        peers.fail_at                 = matched.reached;
        peers_events.bad_response_err = 1'b1;
      end else if (matched.lapsed) begin
        peers.fail        = 1'b1;
        peers.fail_status = WC_LOC_PROT_ERR;
        peers.fail_at     = matched.reached;
      end else begin
        peers.advance                      = matched.reached + 1'b1;
        peers.retries                      = RETRIES_CLEAR;
        peers.rnr_retries                  = RETRIES_CLEAR;
        peers.implied_clear                = 1'b1;
        peers.asked_clear                  = 1'b1;
        peers.change                       = 1'b1;
        peers.send_more                    = matched.window_shut;
        peers.answered                     = matched.last;
        peers.original                     = matched.e.is == IS_ATOMIC;
        peers.place                        = matched.e.has_payload;
        peers_events.rcvd_atomic_responses = matched.e.is == IS_ATOMIC;
        peers_events.rcvd_read_responses   = matched.e.is != IS_ATOMIC;
      end
    end else if (matched.fatal) begin
      peers.fail    = 1'b1;
      peers.fail_at = matched.ahead;
      unique case (matched.e.syndrome)
        SYNDROME_NAK_INVALID_REQ: begin
          peers.fail_status                       = WC_REM_INV_REQ_ERR;
          peers_events.req_remote_invalid_request = 1'b1;
        end
        SYNDROME_NAK_REM_ACCESS: begin
          peers.fail_status                     = WC_REM_ACCESS_ERR;
          peers_events.req_remote_access_errors = 1'b1;
        end
        default: begin
          peers.fail_status                          = WC_REM_OP_ERR;
          peers_events.req_remote_operational_errors = 1'b1;
        end
      endcase
    end else if (matched.not_ready) begin
      peers.change  = 1'b1;
      peers.rnr_set = 1'b1;
      if (!was.rnr_wait || matched.moves) begin
        peers_events.rnr_nak_retry_err = 1'b1;
        // The peer answers, so what was lost before was not lost in a row: it may have no receive for long.
        peers.retries                  = RETRIES_CLEAR;
        peers.rnr_retries              = matched.moves ? RETRIES_ONE : RETRIES_COUNT;
        if (matched.moves ? matched.no_rnr_retry : matched.last_rnr_retry) begin
          peers.fail                           = 1'b1;
          peers.fail_at                        = matched.ahead;
          peers.fail_status                    = WC_RNR_RETRY_EXC_ERR;
          peers_events.retry_rnr_exceeded_err  = 1'b1;
        end
      end
    end else if (matched.sequence_error) begin
      // A NAK does not shorten the wait after an RNR NAK, and a rewind that has not started yet covers this NAK.
      if (was.rnr_wait || matched.pending) ;
      else if (!matched.selective) begin
        peers_events.packet_seq_err     = 1'b1;
        peers_events.retry_exceeded_err = matched.last_retry && !matched.moves;
        peers.fail                      = matched.last_retry && !matched.moves;
        peers.go_back                   = 1'b1;
        if (!matched.moves) peers.retries = RETRIES_COUNT;
      end else if (matched.moves || !was.asked || (!matched.single_pending && matched.beyond_mark)) begin
        peers_events.packet_seq_err     = 1'b1;
        peers_events.retry_exceeded_err = matched.last_retry && !matched.moves && was.asked;
        peers.fail                      = matched.last_retry && !matched.moves && was.asked;
        peers.resend                    = 1'b1;
        if (!matched.moves && was.asked) peers.retries = RETRIES_COUNT;
      end
    end else if (matched.capped) begin
      if (!was.rnr_wait && !matched.pending && (matched.moves || !was.implied)) begin
        peers_events.implied_nak_seq_err = 1'b1;
        peers_events.retry_exceeded_err  = matched.last_retry && !matched.moves;
        peers.fail                       = matched.last_retry && !matched.moves;
        peers.go_back                    = 1'b1;
        peers.implied_set                = 1'b1;
        if (!matched.moves) peers.retries = RETRIES_COUNT;
      end
    end
  end

  // ---- select ----
  always_comb begin
    ruling = matched.e.kind == SQ_EV_RESPONSE ? peers : own;
    events = matched.e.kind == SQ_EV_RESPONSE ? peers_events : own_events;
    if (ruling.fail || ruling.go_back || ruling.resend) ruling.change = 1'b1;
    if (ruling.go_back || ruling.resend) ruling.send_more = 1'b1;
    if (ruling.fail) ruling.send_more = 1'b0;
    events.qp_error = ruling.fail;
  end
endmodule
