// SPDX-License-Identifier: Apache-2.0

// Completes work requests: for each listed QP, in the order posted, those that are acknowledged and confirmed by memory. In the
// error state it first reports the QP's event (none if the state was commanded), then completes all others: the one at fault with
// its status, the rest with WC_WR_FLUSH_ERR. Reports a drained send queue after the completions before that.
// A work request with an invalid L_Key is never sent; when all before it are complete and the QP is in RTS, the QP is output on
// `fault`, which leads to the error state.
// One work request every 2 cycles within a QP, 5 cycles for a QP that completes one. Stalls when `cqe`, `qp_event` or `fault` are
// not ready.
module roce_requester_retire
  import roce_pkg::*;
  import roce_requester_pkg::*;
(
    input logic clk,
    input logic rst,

    stream_if.sink list,              // qp_index_t

    roce_qp_read_if.reader words,     // retire_words_t

    output logic      ring_read,
    output qp_index_t ring_index,
    output sq_count_t ring_count,
    input  sq_done_t  ring_data,      // a cycle later, until the next read

    input logic         init,         // initializes a QP's word; has priority for a cycle
    input sq_init_t     start,
    input qp_index_t    watch,
    output logic        engaged,      // this unit holds an operation of QP `watch`
    roce_qp_write_if.writer retired_next,  // sq_retired_t

    stream_if.source cqe,             // rdma_cqe_t
    stream_if.source qp_event,        // qp_event_t
    stream_if.source fault,           // qp_index_t: the oldest work request has an invalid L_Key
    output logic     flushed,         // pulse: a work request completed with WC_WR_FLUSH_ERR
    output logic     unsignaled,      // pulse: an unsignaled work request of this QP has completed with success
    output qp_index_t unsignaled_index,
    output logic     idle
);
  enum logic [2:0] {
    R_IDLE,
    R_LOOK,
    R_EVENT,
    R_READ,
    R_COMPARE,
    R_WALK,
    R_FAULT,
    R_DRAINED
  } state_q;

  qp_index_t     index_q;
  sq_retired_t   retired_q;

  logic      cqe_valid_q, event_valid_q;
  rdma_cqe_t cqe_q;
  qp_event_t event_q;

  assign cqe.valid      = cqe_valid_q;
  assign cqe.data       = cqe_q;
  assign qp_event.valid = event_valid_q;
  assign qp_event.data  = event_q;
  assign fault.valid    = state_q == R_FAULT;
  assign fault.data     = index_q;
  assign idle           = state_q == R_IDLE && !cqe_valid_q && !event_valid_q;
  assign engaged        = (state_q != R_IDLE && index_q == watch) || (cqe_valid_q && cqe_q.qpn == qp_number(watch))
      || (event_valid_q && event_q.qpn == qp_number(watch));
  wire cqe_free   = !cqe_valid_q || cqe.ready;
  wire event_free = !event_valid_q || qp_event.ready;

  wire look = list.valid && list.ready;
  assign words.read  = look;
  assign words.index = list.data;
  assign list.ready  = state_q == R_IDLE;

  retire_words_t read;
  sq_count_t     posted;
  sq_confirmed_t confirmed;
  sq_retired_t   retired;
  assign read      = words.data;
  assign posted    = read.posted;
  assign confirmed = read.confirmed;
  assign retired   = read.retired;

  // ---- the oldest work request: on ring_data in R_COMPARE, completed in R_WALK ----
  sq_done_t oldest_q;
  logic     acknowledged_q, reached_fault_q;

  wire failing   = confirmed.state == SQ_ERR;
  // Work requests after the one at fault are flushed, even if they are acknowledged.
  wire good      = acknowledged_q && !(failing && retired_q.blamed);
  wire at_fault  = failing && !acknowledged_q && !retired_q.blamed && reached_fault_q;
  wire completes = good || failing;
  wire wrong_key = oldest_q.denied && confirmed.state == SQ_RTS;
  wire wants_cqe = oldest_q.signaled || !good;
  wire walk      = state_q == R_WALK && !init && completes && (!wants_cqe || cqe_free);
  wire drain     = confirmed.drains != retired_q.drains;

  sq_retired_t walked;
  always_comb begin
    walked       = retired_q;
    walked.count = retired_q.count + 1'b1;
    if (at_fault) walked.blamed = 1'b1;
  end
  logic last_q;    // the oldest is also the last one posted

  assign ring_read  = state_q inside {R_LOOK, R_READ, R_COMPARE};
  assign unsignaled       = walk && !wants_cqe;
  assign unsignaled_index = index_q;

  assign ring_index = index_q;
  assign ring_count = state_q == R_LOOK ? retired.count : state_q == R_READ ? retired_q.count : retired_q.count + 1'b1;

  wire asked_for = read.failure.status == WC_WR_FLUSH_ERR;
  wire report    = state_q == R_EVENT && !init && (event_free || asked_for);
  wire tell      = state_q == R_DRAINED && !init && event_free;
  sq_retired_t reported, told;
  always_comb begin
    reported          = retired_q;
    reported.reported = 1'b1;
    // No posted work request is at fault (a keep-alive is): those posted later are only flushed.
    if (posted == retired_q.count) reported.blamed = 1'b1;
    told        = retired_q;
    told.drains = confirmed.drains;
  end

  assign retired_next.valid = walk || report || tell || init;
  assign retired_next.index = init ? start.index : index_q;
  assign retired_next.data  = init ? '0 : walk ? walked : report ? reported : told;

  always_ff @(posedge clk) begin
    if (look) index_q <= list.data;
    if (state_q == R_LOOK) begin
      retired_q <= retired;
    end else if (walk) begin
      retired_q <= walked;
    end else if (report) begin
      retired_q <= reported;
    end else if (tell) begin
      retired_q <= told;
    end

    if (state_q == R_COMPARE) begin
      oldest_q        <= ring_data;
      acknowledged_q  <= !xpsn_before(read.una, ring_data.past);
      reached_fault_q <= xpsn_before(confirmed.refused ? read.una : read.failure.psn, ring_data.past);
      last_q          <= retired_q.count + 1'b1 == posted;
    end

    if (cqe_free) begin
      cqe_q <= '{
          status: good ? WC_SUCCESS : at_fault ? read.failure.status : WC_WR_FLUSH_ERR,
          opcode: completion_of(oldest_q.kind),
          with_imm: oldest_q.kind inside {SQ_SEND_IMM, SQ_WRITE_IMM},
          qpn: qp_number(index_q),
          wr_id: oldest_q.wr_id,
          default: '0
      };
    end
    flushed <= walk && !good && !at_fault;
    if (event_free) begin
      event_q <= tell ? '{kind: EVENT_SQ_DRAINED, qpn: qp_number(index_q), status: WC_SUCCESS}
          : '{kind: EVENT_QP_FATAL, qpn: qp_number(index_q), status: read.failure.status};
    end

    if (rst) begin
      state_q       <= R_IDLE;
      cqe_valid_q   <= 1'b0;
      event_valid_q <= 1'b0;
    end else begin
      if (cqe_free) cqe_valid_q <= walk && wants_cqe;
      if (event_free) event_valid_q <= (report && !asked_for) || tell;
      unique case (state_q)
        R_IDLE: if (list.valid) state_q <= R_LOOK;
        R_LOOK: begin
          if (confirmed.state == SQ_RESET) state_q <= R_IDLE;
          else if (failing && !retired.reported) state_q <= R_EVENT;
          else if (posted != retired.count) state_q <= R_COMPARE;
          else state_q <= confirmed.drains != retired.drains ? R_DRAINED : R_IDLE;
        end
        R_EVENT:   if (report) state_q <= posted != retired_q.count ? R_READ : R_IDLE;
        R_READ:    state_q <= R_COMPARE;
        R_COMPARE: state_q <= R_WALK;
        R_WALK: begin
          if (!completes && wrong_key) state_q <= R_FAULT;
          else if (!completes || (walk && last_q)) state_q <= drain ? R_DRAINED : R_IDLE;
          else if (walk) state_q <= R_COMPARE;
        end
        R_FAULT:   if (fault.ready) state_q <= R_IDLE;
        R_DRAINED: if (tell) state_q <= R_IDLE;
        default: state_q <= R_IDLE;
      endcase
    end
  end
endmodule
