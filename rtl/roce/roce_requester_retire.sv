// SPDX-License-Identifier: Apache-2.0

// Completes work requests: for each listed QP, in the order posted, those that are acknowledged; in the error state also all
// others, after the QP's event is out: the one at fault with its status, the rest with WC_WR_FLUSH_ERR.
// One work request a cycle within a QP, 4 cycles a QP that completes one. Stops when `cqe` or `qp_event` stop.
module roce_requester_retire
  import roce_pkg::*;
  import roce_requester_pkg::*;
(
    input logic clk,
    input logic rst,

    stream_if.sink list,             // qp_index_t

    output qp_index_t    index,      // whose tables are looked at
    input  sq_tail_t     tail,
    input  sq_progress_t progress,
    input  sq_retired_t  retired,

    output logic      ring_read,
    output qp_index_t ring_index,
    output sq_count_t ring_count,
    input  sq_done_t  ring_data,     // a cycle later

    input logic         init,        // starts a QP's word; takes precedence for a cycle
    input sq_init_t     start,
    input qp_index_t    watch,
    output logic        engaged,     // something of the QP `watch` is under way here
    output logic        retired_write,
    output qp_index_t   retired_write_index,
    output sq_retired_t retired_write_data,

    stream_if.source cqe,            // rdma_cqe_t
    stream_if.source qp_event,       // qp_event_t
    output logic     idle
);
  enum logic [1:0] {
    R_IDLE,
    R_EVENT,
    R_READ,
    R_WALK
  } state_q;

  qp_index_t    index_q;
  sq_count_t    posted_q;
  sq_progress_t progress_q;
  sq_retired_t  retired_q;

  logic      cqe_valid_q, event_valid_q;
  rdma_cqe_t cqe_q;
  qp_event_t event_q;

  assign cqe.valid      = cqe_valid_q;
  assign cqe.data       = cqe_q;
  assign qp_event.valid = event_valid_q;
  assign qp_event.data  = event_q;
  assign idle           = state_q == R_IDLE && !cqe_valid_q && !event_valid_q;
  assign engaged        = (state_q != R_IDLE && index_q == watch) || (cqe_valid_q && cqe_q.qpn == qp_number(watch))
      || (event_valid_q && event_q.qpn == qp_number(watch));
  wire cqe_free   = !cqe_valid_q || cqe.ready;
  wire event_free = !event_valid_q || qp_event.ready;

  assign index      = list.data;
  assign list.ready = state_q == R_IDLE;

  // ---- the oldest work request, on ring_data in R_WALK ----
  wire failing      = progress_q.state == SQ_ERR;
  wire acknowledged = !xpsn_before(progress_q.una, ring_data.past);
  wire at_fault     = failing && !acknowledged && !retired_q.blamed && xpsn_before(progress_q.failed, ring_data.past);
  wire completes    = acknowledged || failing;
  wire wants_cqe    = ring_data.signaled || !acknowledged;
  wire walk         = state_q == R_WALK && !init && completes && (!wants_cqe || cqe_free);

  sq_retired_t walked;
  always_comb begin
    walked       = retired_q;
    walked.count = retired_q.count + 1'b1;
    if (at_fault) walked.blamed = 1'b1;
  end

  assign ring_read  = state_q == R_READ || walk;
  assign ring_index = index_q;
  assign ring_count = state_q == R_READ ? retired_q.count : walked.count;

  wire report = state_q == R_EVENT && !init && event_free;
  sq_retired_t reported;
  always_comb begin
    reported          = retired_q;
    reported.reported = 1'b1;
    // Nothing was posted that could be at fault (a keep-alive was): what comes later is only flushed.
    if (posted_q == retired_q.count) reported.blamed = 1'b1;
  end

  assign retired_write       = walk || report || init;
  assign retired_write_index = init ? start.index : index_q;
  assign retired_write_data  = init ? '0 : walk ? walked : reported;

  always_ff @(posedge clk) begin
    if (list.valid && list.ready) begin
      index_q    <= index;
      posted_q   <= tail.count;
      progress_q <= progress;
      retired_q  <= retired;
    end else if (walk) begin
      retired_q <= walked;
    end else if (report) begin
      retired_q <= reported;
    end

    if (cqe_free) begin
      cqe_q <= '{
          status: acknowledged ? WC_SUCCESS : at_fault ? progress_q.status : WC_WR_FLUSH_ERR,
          opcode: ring_data.write ? WC_RDMA_WRITE : WC_SEND,
          with_imm: ring_data.with_imm,
          qpn: qp_number(index_q),
          wr_id: ring_data.wr_id,
          default: '0
      };
    end
    if (event_free) event_q <= '{qpn: qp_number(index_q), status: progress_q.status};

    if (rst) begin
      state_q       <= R_IDLE;
      cqe_valid_q   <= 1'b0;
      event_valid_q <= 1'b0;
    end else begin
      if (cqe_free) cqe_valid_q <= walk && wants_cqe;
      if (event_free) event_valid_q <= report;
      unique case (state_q)
        R_IDLE:
        if (list.valid) begin
          if (progress.state == SQ_ERR && !retired.reported) state_q <= R_EVENT;
          else if (progress.state != SQ_RESET && tail.count != retired.count) state_q <= R_READ;
        end
        R_EVENT: if (report) state_q <= posted_q != retired_q.count ? R_READ : R_IDLE;
        R_READ: state_q <= R_WALK;
        R_WALK: if (!completes || (walk && walked.count == posted_q)) state_q <= R_IDLE;
        default: state_q <= R_IDLE;
      endcase
    end
  end
endmodule
