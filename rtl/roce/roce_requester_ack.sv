// SPDX-License-Identifier: Apache-2.0

// What happens to a QP's transmit side: acknowledgements, timeouts, faults, set-up. Owns the state of it.
// One event a cycle, of one QP one every 2 cycles; seen in the table 3 cycles later. Events come in this order of urgency: `command`, `fault`, `timer`, `ack`.
// An ACK frees everything up to its PSN, a NAK or RNR NAK everything before it (IBTA 9.7.5.2); the QP is listed on `retire` to
// complete that, and on `work` where it may send (again). An acknowledgement of what is not outstanding changes nothing.
// Stops only when `work` or `retire` stop.
//
// Retry limits (IBTA 9.9.2.1): a timeout, or a NAK without progress, costs a retry; so does an RNR NAK of its own kind.
// Progress restores both.
module roce_requester_ack
  import roce_pkg::*;
  import roce_requester_pkg::*;
#(
    parameter int unsigned QPS = 16,
    parameter int unsigned WINDOW = 8192
) (
    input logic clk,
    input logic rst,
    input logic enable,           // takes acknowledgements

    stream_if.sink command,       // sq_event_t
    stream_if.sink fault,         // sq_event_t
    stream_if.sink timer,         // sq_event_t
    stream_if.sink ack,           // ack_rx_t; of a QP that does not exist: ignored

    output qp_index_t    index,   // whose tables are looked at
    input  sq_progress_t progress,
    input  sq_sent_t     sent,
    input  sq_policy_t   policy,

    output logic         progress_write,
    output qp_index_t    progress_write_index,
    output sq_progress_t progress_write_data,

    stream_if.source work,        // qp_index_t
    stream_if.source retire,      // qp_index_t

    output roce_tx_events_t events,
    output logic            ghost,   // an acknowledgement of what was not outstanding
    output logic            idle
);
  // ---- choose ----
  sq_event_t event_q;
  logic      event_valid_q;
  logic      step;         // the pipeline moves
  logic      take;         // and has room for an event

  ack_rx_t came;
  assign came          = ack.data;
  assign command.ready = take;
  assign fault.ready   = take && !command.valid;
  assign timer.ready   = take && !command.valid && !fault.valid;
  assign ack.ready     = take && !command.valid && !fault.valid && !timer.valid && enable;

  sq_event_t chosen;
  always_comb begin
    if (command.valid) chosen = command.data;
    else if (fault.valid) chosen = fault.data;
    else if (timer.valid) chosen = timer.data;
    else chosen = '{kind: SQ_EV_ACK, index: sq_index(came.qpn), psn: came.psn, syndrome: came.aeth.syndrome};
  end

  // ---- look up; a QP whose word is just being written waits for it ----
  sq_event_t    now_q;
  sq_progress_t was_q;
  logic         sent_epoch_q;
  logic         now_valid_q;
  psn_t         ahead_q;          // PSN - una
  logic         ahead_some_q;
  logic         outstanding_q;    // una <= PSN < limit
  logic         window_shut_q;    // sending stopped, or is about to, at the end of the window
  logic         last_retry_q, last_rnr_retry_q;
  logic         is_ack_q;

  assign index = event_q.index;
  wire known = event_valid_q && !(now_valid_q && now_q.index == index);
  assign take = step && (known || !event_valid_q);

  wire psn_t  ahead = event_q.psn - progress.una[23:0];
  wire psn_t  beyond = event_q.psn - sent.limit[23:0];
  wire xpsn_t spread = sent.psn - progress.una;

  always_ff @(posedge clk) begin
    if (take) event_q <= chosen;
    if (step) begin
      now_q            <= event_q;
      was_q            <= progress;
      sent_epoch_q     <= sent.epoch;
      ahead_q          <= ahead;
      ahead_some_q     <= event_q.psn != progress.una[23:0];
      outstanding_q    <= !ahead[23] && beyond[23];
      window_shut_q    <= spread >= WINDOW - 16;
      is_ack_q         <= event_q.kind == SQ_EV_ACK && event_q.syndrome[7:5] == SYNDROME_ACK[7:5];
      last_retry_q     <= progress.retries == policy.retry_cnt;
      last_rnr_retry_q <= progress.rnr_retries == policy.rnr_retry && policy.rnr_retry != 3'd7;
    end
    if (rst) begin
      event_valid_q <= 1'b0;
      now_valid_q   <= 1'b0;
    end else begin
      if (take) begin
        event_valid_q <= command.valid || fault.valid || timer.valid || (ack.valid && enable && qpn_exists(came.qpn, QPS));
      end
      if (step) now_valid_q <= known;
    end
  end

  // ---- decide ----
  sq_progress_t    next;
  roce_tx_events_t seen;
  logic            change, send_more, complete, was_ghost;

  // The PSN of the event, or for an ACK the one after it.
  wire xpsn_t reached = was_q.una + {{8{ahead_q[23]}}, ahead_q} + 32'(is_ack_q);
  wire        pending = sent_epoch_q != was_q.epoch;       // a rewind that has not begun

  always_comb begin
    next      = was_q;
    seen      = '0;
    change    = 1'b0;
    send_more = 1'b0;
    complete  = 1'b0;
    was_ghost = 1'b0;

    unique case (now_q.kind)
      SQ_EV_START: begin
        change      = 1'b1;
        next        = '0;
        next.state  = SQ_RTS;
        next.una    = xpsn_t'(now_q.psn);
      end
      SQ_EV_STOP: begin
        change     = 1'b1;
        next       = '0;
        next.state = SQ_RESET;
      end
      default:
      if (was_q.state == SQ_RTS) begin
        unique case (now_q.kind)
          SQ_EV_TIMEOUT:
          if (!ahead_some_q && !was_q.rnr_wait) begin
            change                 = 1'b1;
            seen.local_ack_timeout = 1'b1;
            if (last_retry_q) begin
              seen.retry_exceeded = 1'b1;
              next.state          = SQ_ERR;
              next.status         = WC_RETRY_EXC_ERR;
              next.failed         = was_q.una;
            end else begin
              next.retries = was_q.retries + 1'b1;
              next.epoch   = !sent_epoch_q;
              send_more    = 1'b1;
            end
          end
          SQ_EV_RNR_DONE:
          if (was_q.rnr_wait) begin
            change        = 1'b1;
            next.rnr_wait = 1'b0;
            next.epoch    = !sent_epoch_q;
            send_more     = 1'b1;
          end
          SQ_EV_FAULT: begin
            change      = 1'b1;
            next.state  = SQ_ERR;
            next.status = WC_LOC_PROT_ERR;
            next.failed = reached;
          end
          default:  // SQ_EV_ACK
          if (!outstanding_q) was_ghost = 1'b1;
          else begin
            unique case (now_q.syndrome) inside
              8'b000?????: begin  // ACK
                change           = 1'b1;
                complete         = 1'b1;
                send_more        = window_shut_q;
                next.una         = reached;
                next.retries     = '0;
                next.rnr_retries = '0;
              end
              8'b001?????: begin  // RNR NAK
                change              = 1'b1;
                complete            = ahead_some_q;
                seen.rnr_nak_retry  = !was_q.rnr_wait;
                next.una            = reached;
                next.rnr_code       = now_q.syndrome[4:0];
                next.rnr_wait       = 1'b1;
                if (ahead_some_q) next.retries = '0;
                if (!was_q.rnr_wait || ahead_some_q) begin
                  if (last_rnr_retry_q && !ahead_some_q) begin
                    seen.rnr_nak_retry      = 1'b0;
                    seen.rnr_retry_exceeded = 1'b1;
                    next.state              = SQ_ERR;
                    next.status             = WC_RNR_RETRY_EXC_ERR;
                    next.failed             = reached;
                  end else if (ahead_some_q) next.rnr_retries = 3'd1;
                  else if (was_q.rnr_retries != 3'd7) next.rnr_retries = was_q.rnr_retries + 1'b1;
                end
              end
              SYNDROME_NAK_PSN_SEQ: begin
                change   = 1'b1;
                complete = ahead_some_q;
                next.una = reached;
                if (ahead_some_q) begin
                  next.retries     = '0;
                  next.rnr_retries = '0;
                end
                // The time of an RNR NAK is kept, whatever follows it; a rewind that has not begun covers this one.
                if (!was_q.rnr_wait && !pending) begin
                  seen.packet_seq_err = 1'b1;
                  if (!ahead_some_q && last_retry_q) begin
                    seen.retry_exceeded = 1'b1;
                    next.state          = SQ_ERR;
                    next.status         = WC_RETRY_EXC_ERR;
                    next.failed         = reached;
                  end else begin
                    if (!ahead_some_q) next.retries = was_q.retries + 1'b1;
                    next.epoch = !sent_epoch_q;
                    send_more  = 1'b1;
                  end
                end
              end
              SYNDROME_NAK_INVALID_REQ, SYNDROME_NAK_REM_ACCESS, SYNDROME_NAK_REM_OP: begin
                change      = 1'b1;
                next.una    = reached;
                next.failed = reached;
                next.state  = SQ_ERR;
                next.status = now_q.syndrome == SYNDROME_NAK_INVALID_REQ ? WC_REM_INV_REQ_ERR
                    : now_q.syndrome == SYNDROME_NAK_REM_ACCESS ? WC_REM_ACCESS_ERR : WC_REM_OP_ERR;
              end
              default: was_ghost = 1'b1;  // reserved: nobody may send it
            endcase
          end
        endcase
        if (next.state == SQ_ERR) begin
          complete      = 1'b1;
          send_more     = 1'b0;
          seen.qp_error = 1'b1;
        end
      end
    endcase
  end

  // ---- write, and tell ----
  logic      work_valid_q, retire_valid_q;
  qp_index_t told_q;

  assign step = (!work_valid_q || work.ready) && (!retire_valid_q || retire.ready);
  wire acts = now_valid_q && step;

  assign progress_write       = acts && change;
  assign progress_write_index = now_q.index;
  assign progress_write_data  = next;
  assign work.valid           = work_valid_q;
  assign work.data            = told_q;
  assign retire.valid         = retire_valid_q;
  assign retire.data          = told_q;
  assign idle                 = !event_valid_q && !now_valid_q && !work_valid_q && !retire_valid_q;

  always_ff @(posedge clk) begin
    if (step) told_q <= now_q.index;
    events <= acts ? seen : '0;
    ghost  <= acts && was_ghost;
    if (rst) begin
      work_valid_q   <= 1'b0;
      retire_valid_q <= 1'b0;
    end else begin
      if (step || work.ready) work_valid_q <= acts && send_more;
      if (step || retire.ready) retire_valid_q <= acts && complete;
    end
  end
endmodule
