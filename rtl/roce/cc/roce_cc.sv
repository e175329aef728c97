// SPDX-License-Identifier: Apache-2.0

// Congestion control by DCQCN (docs/reference/congestion.md): the reaction point, which limits the rate of each QP, and the notification
// point, which sends CNPs to the senders of CE-marked packets.
//
// A CNP limits its QP. Packets of a limited QP are charged to its credit, which is replenished at its rate. Without credit the QP is
// `blocked`: the requester parks it (`parked`) and continues it (`resume`) when there is credit again. A QP that has received no CNP, or
// whose rate has recovered to the line rate, is not limited and never blocked; no QP is blocked while rp_enable is 0.
//
// QPs are stepped one after the other (roce_cc_step) by a walker, which skips a QP that needs no step in one cycle; requests are inserted
// between two of its reads, as is the next step of a QP that received a CNP or has more due. A limited QP is stepped at least every 22 *
// QPS cycles. A step computes how far the QP may send until the next step; `blocked` rises 3 cycles after the `sent` that reaches this
// limit. `resume` follows at most one round after the credit. `now` may jump: events that fell due meanwhile are executed one by one.
// `idle`: no change until more time passes. After reset the tables are cleared, QPS cycles; CNPs received before that are ignored.
module roce_cc
  import roce_wire_pkg::*;
  import roce_pkg::*;
  import roce_cc_pkg::*;
#(
    parameter int unsigned     QPS = 256,            // a power of two, 16 to 1024
    parameter longint unsigned CLOCK_HZ = 250_000_000,
    parameter int unsigned     LINE_MBPS = 100_000,
    parameter int unsigned     BURST = 4096          // bytes that a QP may send above its rate after a pause
) (
    input  logic           clk,
    input  logic           rst,
    input  time_pkg::time_t now,
    input  cc_config_t     cfg,

    input  logic           cnp,          // pulse: a CNP of a live QP, from its peer
    input  qpn_t           cnp_qpn,
    input  logic           ecn_marked,   // pulse: a packet of a live QP arrived with congestion experienced (CE)
    input  qpn_t           ecn_marked_qpn,
    stream_if.source       cnp_tx,       // ack_tx_t

    input  logic           sent,         // pulse: a data packet is sent
    input  qp_index_t      sent_index,
    input  logic [13:0]    sent_bytes,   // on the wire
    output logic [QPS-1:0] blocked,      // the QP must not begin to send now
    stream_if.sink         parked,       // qp_index_t: found blocked, waits for `resume`. Always accepted
    stream_if.source       resume,       // qp_index_t: once for each parked QP. May follow after the QP was reset

    stream_if.sink         forget,       // qp_index_t: the QP is set up or reset
    stream_if.sink         view,         // qp_index_t: read this QP's state
    stream_if.source       viewed,       // cc_view_t, in the order of the requests

    output cc_events_t     events,
    output logic           idle
);
  localparam int unsigned INDEX_W = $clog2(QPS);
  typedef logic [INDEX_W-1:0] index_t;

  if (QPS < 16 || QPS > MAX_QPS || 2 ** INDEX_W != QPS) begin : g_bad
    $fatal(1, "roce_cc: QPS must be a power of two, 16 to %0d", MAX_QPS);
  end

  cc_scaled_t scaled;
  roce_cc_scale #(.CLOCK_HZ(CLOCK_HZ), .LINE_MBPS(LINE_MBPS)) scale (.clk, .rst, .in(cfg), .out(scaled));

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

  logic [INDEX_W:0] cleared_q;        // entries cleared; complete when the top bit is set
  wire              clearing = !cleared_q[INDEX_W];
  wire index_t      clear_index = cleared_q[INDEX_W-1:0];

  // ---- bytes sent by each QP, and the limit of the limited QPs: one table access a cycle, for a packet sent, for a result to be written,
  // or for a step that begins ----
  typedef struct packed {
    logic      limited;
    cc_bytes_t reach;
  } reach_t;

  (* ram_style = "distributed" *) cc_bytes_t sent_total[QPS];
  (* ram_style = "distributed" *) reach_t    reaches[QPS];
  logic        sent_q, write_q;
  index_t      sent_index_q, write_index_q;
  logic [13:0] sent_bytes_q;
  reach_t      write_reach_q, reach;
  qp_index_t   count_index;
  cc_bytes_t   so_far, total;
  index_t      at;
  logic        looked_q, looked_result_q, over_q, limited_sent_q;
  index_t      looked_index_q;

  always_comb begin
    at = index_t'(count_index);
    if (write_q) at = write_index_q;
    if (sent_q) at = sent_index_q;
    so_far = sent_total[at];
    total  = so_far + (sent_q ? cc_bytes_t'(sent_bytes_q) : '0);
    reach  = sent_q ? reaches[at] : write_reach_q;
  end

  always_ff @(posedge clk) begin
    sent_q       <= sent && !rst;
    sent_index_q <= index_t'(sent_index);
    sent_bytes_q <= sent_bytes;
    if (sent_q) sent_total[at] <= total;
    if (write_q && !sent_q) reaches[at] <= write_reach_q;

    looked_q        <= (sent_q || write_q) && !rst;
    looked_result_q <= !sent_q;
    looked_index_q  <= at;
    limited_sent_q  <= sent_q && reach.limited && !rst;
    over_q          <= reach.limited && $signed(reach.reach - total) < 0;
  end

  // ---- a bit of each QP ----
  logic [QPS-1:0] blocked_q;
  assign blocked = blocked_q;

  (* ram_style = "distributed" *) logic limits[QPS];
  logic       cnp_flag, parked_flag;
  index_t     next_q;
  logic       cnp_clear_q, parked_clear_q;      // of write_index_q
  wire        on = scaled.rp_enable;

  // A flag set and cleared in the same cycle stays set.
  roce_qp_flags #(.QPS(QPS)) cnps (
      .clk, .rst, .write({cnp_clear_q, cnp && on}), .write_index({qp_index_t'(write_index_q), qp_index_t'(qp_index(cnp_qpn))}),
      .write_data(2'b01), .read_index(qp_index_t'(next_q)), .read_data(cnp_flag)
  );
  roce_qp_flags #(.QPS(QPS)) parks (
      .clk, .rst, .write({parked_clear_q, parked.valid}), .write_index({qp_index_t'(write_index_q), parked.data}),
      .write_data(2'b01), .read_index(qp_index_t'(next_q)), .read_data(parked_flag)
  );

  // ---- selection of the next step: requests and the walker in turn ----
  stream_if #(.T(qp_index_t)) hint ();          // request an early step
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
  index_t   next_d, walk_q;
  logic     next_valid_q;
  logic     step_ready, result_valid;
  index_t   result_index;
  cc_step_t step;
  cc_result_t result;
  cc_view_t result_view;
  logic     viewing_q;                // a view was requested and not taken yet

  always_comb begin
    purpose_d = FOR_WALK;
    next_d    = walk_q;
    if (!next_valid_q || purpose_q == FOR_WALK) begin
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

  // A result is written in the next cycles; until then a step of the same QP waits, and so does a `forget`, which also writes.
  wire free = next_valid_q && step_ready && !(result_valid && (purpose_q == FOR_FORGET || next_q == result_index))
      && !(write_q && next_q == write_index_q);
  wire wanted = limits[next_q] || cnp_flag || parked_flag || purpose_q inside {FOR_FORGET, FOR_VIEW};
  wire issue = free && wanted;
  wire load = !clearing && (!next_valid_q || free);
  always_comb begin
    step = '{
        index: qp_index_t'(next_q),
        limited: limits[next_q],
        cnp: cnp_flag,
        forget: purpose_q == FOR_FORGET,
        view: purpose_q == FOR_VIEW
    };
  end
  wire   forgets = issue && purpose_q == FOR_FORGET;   // taken here, so that a later CNP is counted
  assign forget.ready = forgets;
  assign view.ready   = load && purpose_d == FOR_VIEW;
  assign hinted.ready = load && purpose_d == FOR_HINT;

  roce_cc_step #(
      .QPS       (QPS),
      .CLOCK_HZ  (CLOCK_HZ),
      .BURST     (BURST),
      .ROUND_LOG2(INDEX_W + 4)
  ) stepper (
      .clk,
      .rst,
      .now,
      .cfg(scaled),
      .step_valid(issue),
      .ready(step_ready),
      .step,
      .sent_index(count_index),
      .sent_valid(!sent_q && !write_q),
      .sent(so_far),
      .result_valid,
      .result,
      .view(result_view)
  );
  assign result_index = index_t'(result.step.index);

  // ---- the result ----
  stream_if #(.T(qp_index_t)) list ();
  logic resume_empty, parked_q;
  wire  release_ = result_valid && !result.blocked && parked_q && !result.step.forget;
  assign list.valid = release_;
  assign list.data  = result.step.index;
  stream_fifo #(.T(qp_index_t), .DEPTH(16)) resumed (.clk, .rst, .in(list), .out(resume), .empty(resume_empty));

  // If the queue is full the QP stays parked and is resumed a round later.
  always_ff @(posedge clk) begin
    write_q <= clearing || result_valid || (write_q && sent_q && !rst);
    if (clearing) write_reach_q <= '0;
    else if (result_valid) write_reach_q <= '{limited: result.limited, reach: result.reach};
    if (!write_q || !sent_q) write_index_q <= clearing ? clear_index : result_valid ? result_index : next_q;
    parked_clear_q <= clearing || forgets || (release_ && list.ready);
    cnp_clear_q    <= clearing || forgets || (result_valid && (result.cnp_done || !on));
    if (write_q && !sent_q) limits[write_index_q] <= write_reach_q.limited;
  end

  // The hint for a CNP is held until the queue takes it.
  logic   cnp_q;
  index_t cnp_index_q;
  wire    again = result_valid && result.busy;
  assign hint.valid = again || cnp_q;
  assign hint.data  = again ? result.step.index : qp_index_t'(cnp_index_q);

  logic     view_valid_q;
  cc_view_t view_q;
  logic [INDEX_W:0] limited_q;        // number of limited QPs
  assign viewed.valid = view_valid_q;
  assign viewed.data  = view_q;
  assign parked.ready = 1'b1;

  always_ff @(posedge clk) begin
    if (load) begin
      next_q    <= next_d;
      purpose_q <= purpose_d;
      if (purpose_d == FOR_WALK) walk_q <= walk_q + 1'b1;
    end
    if (issue) parked_q <= parked_flag;
    if (cnp) cnp_index_q <= index_t'(qp_index(cnp_qpn));
    cnp_q <= !rst && ((cnp && on) || (cnp_q && (again || !hint.ready)));

    if (result_valid) begin
      limited_q <= limited_q + (INDEX_W + 1)'(result.limited) - (INDEX_W + 1)'(result.step.limited);
      if (result.step.view) view_q <= result_view;
    end
    if (looked_q && (looked_result_q || over_q)) blocked_q[looked_index_q] <= over_q;

    if (viewed.ready && view_valid_q) begin
      view_valid_q <= 1'b0;
      viewing_q    <= 1'b0;
    end
    if (view.valid && view.ready) viewing_q <= 1'b1;
    if (result_valid && result.step.view) view_valid_q <= 1'b1;

    next_valid_q <= load || (next_valid_q && !free);
    if (clearing) cleared_q <= cleared_q + 1'b1;
    if (!on) blocked_q <= '0;
    if (rst) begin
      cleared_q    <= '0;
      blocked_q    <= '0;
      limited_q    <= '0;
      next_valid_q <= 1'b0;
      view_valid_q <= 1'b0;
      viewing_q    <= 1'b0;
      walk_q       <= '0;
    end
  end

  // ---- idle: the walker has completed two rounds without an event ----
  logic [INDEX_W+1:0] calm_q;         // QPs that the walker has passed
  time_pkg::time_t    now_q;
  logic               jump_q, news_q;

  always_ff @(posedge clk) begin
    now_q  <= now;
    jump_q <= now - now_q > 1 && limited_q != '0;
    news_q <= jump_q || cnp || limited_sent_q || cnp_q || parked.valid || again || release_;
    if (rst) calm_q <= {1'b1, (INDEX_W + 1)'(0)};   // no QP is limited
    else if (news_q) calm_q <= '0;
    else if (load && purpose_d == FOR_WALK && !calm_q[INDEX_W+1]) calm_q <= calm_q + 1'b1;
  end

  assign idle = notify_idle && !clearing && !ecn_marked && !cnp && !sent && !sent_q && !limited_sent_q && !parked.valid
      && !forget.valid && !view.valid && !viewing_q && hints_empty && resume_empty && calm_q[INDEX_W+1] && !news_q && !jump_q;

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
