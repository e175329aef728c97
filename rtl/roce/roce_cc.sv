// SPDX-License-Identifier: Apache-2.0

// Congestion control by DCQCN (docs/reference/congestion.md): the reaction point, which keeps each QP to its rate, and the
// notification point, which tells peers of congestion on the way to us.
//
// A CNP limits its QP; what a limited QP sends is taken from its credit, which its rate fills again. Without credit the QP is
// `blocked`: the requester lets go of it (`parked`) and gets it back (`resume`) when there is credit. A QP that never got a CNP, or
// has grown back to the line rate, is not limited and never blocked; neither is any while rp_enable is 0.
//
// One walker steps through the QPs, one that is not limited in a cycle; limited ones at most 4 * QPS cycles apart, and soon after
// each packet sent. What was sent shows in `blocked` about 20 cycles later; a QP below 1/QPS of the highest rate is blocked at
// once, so that it does not begin twice on the same credit. `resume` comes at most one round after the credit. `now` may jump:
// what fell due meanwhile is made up for event by event. `idle`: nothing happens before more time passes.
module roce_cc
  import roce_pkg::*;
  import roce_requester_pkg::*;
  import roce_cc_pkg::*;
#(
    parameter int unsigned     QPS = 256,            // a power of two, 16 to 1024
    parameter longint unsigned CLOCK_HZ = 250_000_000,
    parameter int unsigned     LINE_MBPS = 100_000,
    parameter int unsigned     BURST = 4096          // bytes that a QP may be behind its rate and still catch up
) (
    input  logic           clk,
    input  logic           rst,
    input  logic [47:0]    now,
    input  cc_config_t     cfg,

    input  logic           cnp,          // pulse: a CNP of a live QP, from its peer
    input  qpn_t           cnp_qpn,
    input  logic           ecn_marked,   // pulse: a packet of a live QP came with congestion experienced
    input  qpn_t           ecn_marked_qpn,
    stream_if.source       cnp_tx,       // ack_tx_t

    input  logic           sent,         // pulse: a data packet goes out
    input  qp_index_t      sent_index,
    input  logic [13:0]    sent_bytes,   // on the wire
    output logic [QPS-1:0] blocked,      // the QP may not begin to send now
    stream_if.sink         parked,       // qp_index_t: found blocked, waits for `resume`. Always taken
    stream_if.source       resume,       // qp_index_t: once for each that is parked. May come when the QP has gone

    stream_if.sink         forget,       // qp_index_t: the QP is set up or reset
    stream_if.sink         view,         // qp_index_t: how does it stand?
    stream_if.source       viewed,       // cc_view_t, in the order asked

    output cc_events_t     events,
    output logic           idle
);
  localparam int unsigned INDEX_W = $clog2(QPS);
  typedef logic [INDEX_W-1:0] index_t;

  if (QPS < 16 || QPS > MAX_QPS || 2 ** INDEX_W != QPS) begin : g_bad
    $fatal(1, "roce_cc: QPS must be a power of two, 16 to %0d", MAX_QPS);
  end

  cc_scaled_t scaled;
  roce_cc_scale #(.CLOCK_HZ(CLOCK_HZ), .LINE_MBPS(LINE_MBPS)) scale (.clk, .in(cfg), .out(scaled));

  // ---- notification point ----
  logic notify_idle;
  roce_cc_notify #(
      .QPS(QPS)
  ) notify (
      .clk,
      .rst,
      .now,
      .enable(scaled.np_enable),
      .cnp_ticks(scaled.cnp_ticks),
      .marked(ecn_marked),
      .marked_qpn(ecn_marked_qpn),
      .cnp(cnp_tx),
      .idle(notify_idle)
  );

  // ---- what each QP has sent, counted for all ----
  (* ram_style = "distributed" *) cc_bytes_t sent_total[QPS];
  logic        sent_q;
  index_t      sent_index_q;
  logic [13:0] sent_bytes_q;
  qp_index_t   count_index;

  always_ff @(posedge clk) begin
    sent_q       <= sent && !rst;
    sent_index_q <= index_t'(sent_index);
    sent_bytes_q <= sent_bytes;
    if (sent_q) sent_total[sent_index_q] <= sent_total[sent_index_q] + cc_bytes_t'(sent_bytes_q);
  end

  // ---- a bit or two of each QP ----
  logic [QPS-1:0] limited_q, slow_q, blocked_q, cnp_q, parked_q, under_way_q;
  assign blocked = blocked_q;

  // ---- whose step is next: every third cycle a request, if there is one, else the walker ----
  stream_if #(.T(qp_index_t)) hint ();          // step soon
  stream_if #(.T(qp_index_t)) hinted ();
  logic hints_empty;
  stream_fifo #(.T(qp_index_t), .DEPTH(8)) hints (.clk, .rst, .in(hint), .out(hinted), .empty(hints_empty));

  typedef enum logic [1:0] {
    FOR_WALK,
    FOR_HINT,
    FOR_VIEW,
    FOR_FORGET
  } purpose_e;

  purpose_e purpose_d, purpose_q;
  index_t   next_d, next_q, walk_q;
  logic     next_valid_q;             // not in reset
  logic     step_valid_q, result_valid;
  cc_step_t step, step_q;
  cc_result_t result;
  cc_view_t result_view;
  index_t   result_index;
  logic     viewing_q;                // a view is asked for and not taken

  // A request is looked at in one cycle and taken in the next; only then comes another one.
  purpose_e taken_q;
  wire request_looked = purpose_q != FOR_WALK || taken_q != FOR_WALK;
  always_comb begin
    purpose_d = FOR_WALK;
    next_d    = walk_q;
    if (!request_looked) begin
      if (forget.valid) begin
        purpose_d = FOR_FORGET;
        next_d    = index_t'(forget.data);
      end else if (view.valid && !viewing_q) begin
        purpose_d = FOR_VIEW;
        next_d    = index_t'(view.data);
      end else if (hinted.valid) begin
        purpose_d = FOR_HINT;
        next_d    = index_t'(hinted.data);
      end
    end
  end

  // A QP under way waits for its result: the walker passes it by, a request is tried again.
  wire free = next_valid_q && !under_way_q[next_q] && !(step_valid_q && index_t'(step_q.index) == next_q);
  wire wanted = limited_q[next_q] || cnp_q[next_q] || parked_q[next_q];
  wire issue = free && (wanted || purpose_q inside {FOR_FORGET, FOR_VIEW});
  always_comb begin
    step = '{
        index: qp_index_t'(next_q),
        limited: limited_q[next_q],
        cnp: cnp_q[next_q],
        forget: purpose_q == FOR_FORGET,
        view: purpose_q == FOR_VIEW
    };
  end
  assign forget.ready = taken_q == FOR_FORGET;
  assign view.ready   = taken_q == FOR_VIEW;
  assign hinted.ready = taken_q == FOR_HINT;

  roce_cc_step #(
      .QPS       (QPS),
      .CLOCK_HZ  (CLOCK_HZ),
      .BURST     (BURST),
      .ROUND_LOG2(INDEX_W + 2)
  ) stepper (
      .clk,
      .rst,
      .now,
      .cfg(scaled),
      .step_valid(step_valid_q),
      .step(step_q),
      .sent_index(count_index),
      .sent(sent_total[index_t'(count_index)]),
      .result_valid,
      .result,
      .view(result_view)
  );
  assign result_index = index_t'(result.step.index);

  // ---- the result ----
  stream_if #(.T(qp_index_t)) list ();
  logic resume_empty;
  wire  release_ = result_valid && !result.blocked && parked_q[result_index];
  assign list.valid = release_;
  assign list.data  = result.step.index;
  stream_fifo #(.T(qp_index_t), .DEPTH(QPS)) resumed (.clk, .rst, .in(list), .out(resume), .empty(resume_empty));

  // Before all others comes what was sent: it may be too much.
  wire sent_limited = sent_q && limited_q[sent_index_q];
  wire again = result_valid && result.busy;
  assign hint.valid = sent_limited || again;
  assign hint.data  = sent_limited ? qp_index_t'(sent_index_q) : result.step.index;

  logic     view_valid_q;
  cc_view_t view_q;
  assign viewed.valid = view_valid_q;
  assign viewed.data  = view_q;
  assign parked.ready = 1'b1;

  wire index_t cnp_index = index_t'(qp_index(cnp_qpn));
  wire on = scaled.rp_enable;

  always_ff @(posedge clk) begin
    next_q    <= next_d;
    purpose_q <= purpose_d;
    step_q    <= step;
    taken_q   <= free ? purpose_q : FOR_WALK;
    if (purpose_d == FOR_WALK) walk_q <= walk_q + 1'b1;

    if (result_valid) begin
      limited_q[result_index]   <= result.limited;
      slow_q[result_index]      <= result.slow;
      blocked_q[result_index]   <= result.blocked;
      under_way_q[result_index] <= 1'b0;
      if (release_ && list.ready) parked_q[result_index] <= 1'b0;
      if (result.cnp_done) cnp_q[result_index] <= 1'b0;
      if (result.step.view) view_q <= result_view;
    end
    if (step_valid_q) under_way_q[index_t'(step_q.index)] <= 1'b1;
    if (step_valid_q && step_q.forget) begin
      parked_q[index_t'(step_q.index)] <= 1'b0;
      cnp_q[index_t'(step_q.index)]    <= 1'b0;
    end
    if (sent && slow_q[index_t'(sent_index)]) blocked_q[index_t'(sent_index)] <= 1'b1;
    if (cnp) cnp_q[cnp_index] <= 1'b1;
    if (parked.valid) parked_q[index_t'(parked.data)] <= 1'b1;

    if (viewed.ready && view_valid_q) begin
      view_valid_q <= 1'b0;
      viewing_q    <= 1'b0;
    end
    if (issue && purpose_q == FOR_VIEW) viewing_q <= 1'b1;
    if (result_valid && result.step.view) view_valid_q <= 1'b1;

    step_valid_q <= issue;
    next_valid_q <= 1'b1;
    if (!on) begin
      limited_q <= '0;
      slow_q    <= '0;
      blocked_q <= '0;
      cnp_q     <= '0;
    end
    if (rst) begin
      limited_q    <= '0;
      slow_q       <= '0;
      blocked_q    <= '0;
      cnp_q        <= '0;
      parked_q     <= '0;
      under_way_q  <= '0;
      step_valid_q <= 1'b0;
      next_valid_q <= 1'b0;
      view_valid_q <= 1'b0;
      viewing_q    <= 1'b0;
      purpose_q    <= FOR_WALK;
      taken_q      <= FOR_WALK;
      walk_q       <= '0;
    end
  end

  // ---- quiet: two rounds of the walker without news, or nothing to walk for ----
  logic [INDEX_W+1:0] calm_q;
  logic [47:0]        now_q;
  logic               any_q, jump_q;
  wire                news = jump_q || cnp || sent_limited || parked.valid || again || release_;

  always_ff @(posedge clk) begin
    now_q  <= now;
    jump_q <= now - now_q > 48'd1;
    any_q  <= |limited_q || |cnp_q || |parked_q || |under_way_q;
    if (rst || news) calm_q <= '0;
    else if (!calm_q[INDEX_W+1]) calm_q <= calm_q + 1'b1;
  end

  assign idle = notify_idle && !ecn_marked && !cnp && !sent && !sent_q && !parked.valid && !forget.valid && !view.valid
      && !viewing_q && hints_empty && resume_empty && (!any_q || calm_q[INDEX_W+1]);

  // ---- events ----
  always_ff @(posedge clk) begin
    events <= rst ? '0 : '{
        np_ecn_marked_roce_packets: ecn_marked,
        np_cnp_sent: cnp_tx.valid && cnp_tx.ready,
        rp_cnp_handled: cnp && on,
        rp_cnp_ignored: cnp && !on
    };
  end
endmodule
