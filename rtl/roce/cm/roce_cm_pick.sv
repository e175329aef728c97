// SPDX-License-Identifier: Apache-2.0

// Selects the next event of the connection manager. First, in this order: events of queue pairs, so that no queue pair outlives its
// connection; `close`; a connection that became stale; answers of owners; events for owners. Then, round robin: messages, timers and
// `connect`.
//
// Combinational in a cycle of `picking`. An event of a queue pair can be selected one cycle after it arrived. `qp_event` is always
// accepted, because the reset of a queue pair may wait for that: a queue pair reports once that it is in use and once on each side that it
// failed, and the queue has entries for all of these. Events of queue pairs beyond QPS, and a `close` or an answer for one, are accepted
// and ignored.
module roce_cm_pick
  import roce_wire_pkg::*;
  import roce_pkg::*;
  import roce_cm_pkg::*;
#(
    parameter int unsigned QPS = 16
) (
    input  logic       clk,
    input  logic       rst,
    input  logic       picking,

    stream_if.sink     qp_event,          // qp_event_t
    stream_if.sink     close,             // close_t
    input  logic       makes_stale,       // pulse, not while `picking`: this connection is stale
    input  logic [$clog2(QPS)-1:0] stale_idx,
    input  logic       answer_valid,      // an owner has answered
    input  qpn_t       answer_qpn,
    output logic       answer_foreign,    // this answer is ignored
    input  logic       tell_valid,        // an event for an owner can be delivered
    input  logic [$clog2(QPS)-1:0] tell_idx,
    input  logic       msg_valid,
    input  comm_id_t   msg_id,            // the local communication id in a message
    input  logic       walk_valid,        // a timer is to be checked
    input  logic [$clog2(QPS)-1:0] walk_idx,
    output logic       walk_taken,
    input  logic       connect_valid,

    output logic       valid,
    output cm_op_e     op,
    output logic       lost,              // OP_CLOSE: only if its address goes
    output logic [$clog2(QPS)-1:0] idx,   // of its connection, if known yet
    output logic       idle               // no event is stored here
);
  typedef logic [$clog2(QPS)-1:0] idx_t;

  // ---- events of queue pairs ----
  typedef struct packed {
    idx_t idx;
    logic failed;
  } news_t;

  stream_if #(.T(news_t)) news_in ();
  stream_if #(.T(news_t)) news ();
  logic news_empty;
  stream_fifo #(.T(news_t), .DEPTH(4 * QPS)) qp_news (.clk, .rst, .in(news_in), .out(news), .empty(news_empty));
  assign news_in.valid  = qp_event.valid && qp_index(qp_event.data.qpn) < qpn_t'(QPS)
      && qp_event.data.kind inside {EVENT_QP_FATAL, EVENT_COMM_EST};
  assign news_in.data   = '{idx: idx_t'(qp_index(qp_event.data.qpn)), failed: qp_event.data.kind == EVENT_QP_FATAL};
  assign qp_event.ready = news_in.ready;
  assign news.ready     = picking;

  // ---- a stale connection ----
  logic stale_q;
  idx_t stale_idx_q;
  always_ff @(posedge clk) begin
    if (makes_stale) stale_idx_q <= stale_idx;
    if (rst) stale_q <= 1'b0;
    else if (makes_stale) stale_q <= 1'b1;
    else if (valid && op == OP_STALE) stale_q <= 1'b0;
  end

  // ---- the choice ----
  wire close_ours = qp_index(close.data.qpn) < qpn_t'(QPS);
  wire answer_ours = qp_index(answer_qpn) < qpn_t'(QPS);
  wire first = news.valid || close.valid || stale_q || answer_valid || tell_valid;  // one of those with priority
  logic [2:0] turn;
  round_robin #(.N(3)) turns (
      .clk, .rst, .request({walk_valid, msg_valid, connect_valid}), .take(picking && !first), .grant(turn)
  );

  assign close.ready    = picking && !news.valid;
  assign lost           = !news.valid && close.data.lost;
  assign walk_taken     = picking && !first && turn[2];
  assign answer_foreign = picking && op == OP_ANSWER && answer_valid && !answer_ours;

  always_comb begin
    valid = picking;
    op    = OP_CLOSE;
    idx   = '0;
    if (news.valid) begin
      op  = news.data.failed ? OP_CLOSE : OP_USED;
      idx = news.data.idx;
    end else if (close.valid) begin
      valid = picking && close_ours;
      idx   = idx_t'(qp_index(close.data.qpn));
    end else if (stale_q) begin
      op  = OP_STALE;
      idx = stale_idx_q;
    end else if (answer_valid) begin
      valid = picking && answer_ours;
      op    = OP_ANSWER;
      idx   = idx_t'(qp_index(answer_qpn));
    end else if (tell_valid) begin
      op  = OP_TELL;
      idx = tell_idx;
    end else if (turn[0]) begin
      op = OP_CONNECT;
    end else if (turn[1]) begin
      op  = OP_MESSAGE;
      idx = idx_t'(msg_id);
    end else if (turn[2]) begin
      op  = OP_WALK;
      idx = walk_idx;
    end else valid = 1'b0;
  end

  assign idle = news_empty && !stale_q;
endmodule
