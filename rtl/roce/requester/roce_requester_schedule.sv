// SPDX-License-Identifier: Apache-2.0

// Selects the QP that sends next: takes the listed QPs in order, reads the send position of each, and issues a visit (one quantum
// of sending) for each that may send. The send position is the PSN after the last one sent or, after a rewind (progress.epoch has
// toggled) or if an acknowledgement has passed it, the oldest PSN not acknowledged. With selective repeat a visit may be a
// *repair*, which retransmits the oldest packet.
//
// A QP whose `blocked` bit is set is removed from the list and output on `parked`; it is listed again when it is unblocked.
// Prefetches one visit: while one QP sends, the tables and the first work request of the next are read. The two are never the same
// QP.
//
// One visit a cycle; 3 cycles from `list` to `visit`. Stalls when `visit` or `parked` are not ready.
module roce_requester_schedule
  import roce_pkg::*;
  import roce_requester_pkg::*;
#(
    parameter int unsigned QPS = 16,
    parameter int unsigned WINDOW = 8192      // PSNs outstanding per QP
) (
    input logic clk,
    input logic rst,
    input qp_index_t watch,
    input logic      hold,           // start no visit of QP `watch`; QPs after it on the list wait
    output logic     watched,        // a visit of QP `watch` is pending here

    stream_if.sink        list,      // qp_index_t
    input logic [QPS-1:0] blocked,   // may not start a visit now
    stream_if.source      parked,    // qp_index_t
    roce_qp_read_if.reader words,    // send_words_t

    input logic      sending,        // a visit of this QP is in progress
    input qp_index_t sending_index,
    input logic      writing,        // the send position of this QP is being written
    input qp_index_t writing_index,

    input logic       ring_taken,    // roce_requester_send reads the ring
    output logic      ring_read,     // the first work request of the visit
    output qp_index_t ring_index,
    output sq_count_t ring_count,

    stream_if.source visit,          // sq_visit_t; the ring outputs its first work request, if any, with it
    output logic     idle
);
  localparam int unsigned INDEX_W = $clog2(QPS);

  // ---- look up the tables ----
  logic        look_valid_q, look_taken, blocked_q;
  qp_index_t   index, look_index_q;
  send_words_t looked;
  logic        weighed_valid_q, weighed_taken;
  qp_index_t   weighed_index_q;
  send_words_t weighed_q;
  sq_visit_t   found, ahead;
  assign index = list.data;
  assign ahead = visit.data;

  wire busy_with_it = (look_valid_q && look_index_q == index)
      || (weighed_valid_q && weighed_index_q == index)
      || (visit.valid && ahead.index == index)
      || (sending && sending_index == index)
      || (writing && writing_index == index);
  assign list.ready = !look_valid_q && !(hold && index == watch) && !busy_with_it;

  wire look = list.valid && list.ready;
  assign words.read  = look;
  assign words.index = index;
  assign looked      = words.data;

  always_ff @(posedge clk) begin
    if (look) begin
      look_index_q <= index;
      blocked_q    <= blocked[index[INDEX_W-1:0]];
    end
    if (rst) look_valid_q <= 1'b0;
    else if (look) look_valid_q <= 1'b1;
    else if (look_taken) look_valid_q <= 1'b0;
  end

  // ---- evaluate: the send position, and whether the QP may send ----
  typedef struct packed {
    logic  rewind;         // send from `una` instead of the stored position
    logic  repair;
    logic  strict;         // sent.strict is ahead of `una` ...
    xpsn_t strict_gap;     // ... by this
    logic  mark;           // sent.mark is ahead of `una`
    logic  sends;          // its state and RNR timer allow it to send
    logic  may_go_on;      // packets remain from the stored position on, and the window is open ...
    logic  may_go_back;    // ... packets remain from `una` on
    logic  may_resend;     // ... the packet `una` was sent
    logic [4:0] quantum;
    xpsn_t gap_on;         // distance to the first PSN never sent, from the stored position ...
    xpsn_t gap_back;       // ... and from `una`
  } weighed_t;

  weighed_t weight, weight_q;
  xpsn_t    outstanding, strict_ahead, mark_ahead;
  wire      pass_by = blocked_q && looked.progress.state inside {SQ_RTS, SQ_SQD};

  assign parked.valid = look_valid_q && pass_by;
  assign parked.data  = look_index_q;
  assign look_taken   = look_valid_q && (pass_by ? parked.ready : (!weighed_valid_q || weighed_taken));

  always_comb begin
    outstanding        = looked.sent.psn - looked.progress.una;
    weight.rewind      = looked.progress.epoch != looked.sent.epoch || outstanding[30];
    strict_ahead       = looked.sent.strict - looked.progress.una;
    mark_ahead         = looked.sent.mark - looked.progress.una;
    weight.strict      = !strict_ahead[30] && looked.sent.strict != looked.progress.una;
    weight.strict_gap  = strict_ahead;
    weight.mark        = !mark_ahead[30] && looked.sent.mark != looked.progress.una;
    weight.repair      = looked.progress.asked && looked.progress.single != looked.sent.single;
    weight.may_go_on   = looked.sent.psn != looked.tail.next
        && outstanding < (looked.path.selective_repeat ? xpsn_t'(SELECTIVE_WINDOW) : xpsn_t'(WINDOW))
        && !(looked.progress.state == SQ_SQD && looked.sent.psn == looked.sent.limit && !looked.sent.open);
    weight.sends       = looked.progress.state inside {SQ_RTS, SQ_SQD} && !looked.progress.rnr_wait;
    weight.may_go_back = looked.progress.una != looked.tail.next;
    weight.may_resend  = looked.progress.una != looked.sent.limit;
    // The PSNs left in the window of selective repeat (a multiple of 16), if fewer than 16.
    weight.quantum     = 5'(SQ_QUANTUM);
    if (looked.path.selective_repeat && outstanding[SELECTIVE_W-1:4] == '1 && outstanding[3:0] != '0) begin
      weight.quantum = {1'b0, -outstanding[3:0]};
    end
    weight.gap_on      = looked.sent.limit - looked.sent.psn;
    weight.gap_back    = looked.sent.limit - looked.progress.una;
  end

  always_ff @(posedge clk) begin
    if (!weighed_valid_q || weighed_taken) begin
      weighed_q       <= looked;
      weighed_index_q <= look_index_q;
      weight_q        <= weight;
    end
    if (rst) weighed_valid_q <= 1'b0;
    else if (!weighed_valid_q || weighed_taken) weighed_valid_q <= look_valid_q && !pass_by;
  end

  wire back = weight_q.rewind || weight_q.repair;
  always_comb begin
    found.index   = weighed_index_q;
    found.path    = weighed_q.path;
    found.drain   = weighed_q.progress.state == SQ_SQD;
    found.repair  = weight_q.repair && !weight_q.rewind;
    found.strict  = weight_q.strict;
    found.strict_gap = weight_q.strict_gap;
    found.covered = weight_q.mark && !weighed_q.progress.later;
    found.epoch   = weighed_q.progress.epoch;
    found.single  = weighed_q.progress.single;
    found.rd_done = weighed_q.rd_done;
    found.max_rd  = weighed_q.max_rd_atomic;
    found.quantum = back ? 5'(SQ_QUANTUM) : weight_q.quantum;
    found.count   = back ? weighed_q.retired : weighed_q.sent.count;
    found.left    = weighed_q.tail.count - found.count;
    found.none    = found.count == weighed_q.tail.count;
    found.more    = found.left > 1;
    found.psn     = back ? weighed_q.progress.una : weighed_q.sent.psn;
    found.gap     = back ? weight_q.gap_back : weight_q.gap_on;
    found.fresh   = found.gap == 0;
    found.opens   = !back && found.fresh && !weighed_q.sent.open;
    found.limit   = weighed_q.sent.limit;
    found.sent    = weighed_q.sent;
    if (weight_q.gap_back == 0) found.sent.hull = 1'b0;
    if (!weight_q.strict) found.sent.strict = weighed_q.progress.una;
    if (!weight_q.mark || weight_q.rewind) found.sent.mark = weighed_q.progress.una;
  end
  wire may_send = weight_q.sends
      && (weight_q.rewind ? weight_q.may_go_back : weight_q.repair ? weight_q.may_resend : weight_q.may_go_on);

  // ---- the prefetched visit ----
  assign weighed_taken = weighed_valid_q && (!may_send || ((!visit.valid || visit.ready) && !ring_taken));
  assign ring_read     = weighed_taken && may_send;
  assign ring_index    = found.index;
  assign ring_count    = found.count;

  always_ff @(posedge clk) begin
    if (ring_read) visit.data <= found;
    if (rst) visit.valid <= 1'b0;
    else if (ring_read) visit.valid <= 1'b1;
    else if (visit.ready) visit.valid <= 1'b0;
  end

  assign watched = (look_valid_q && look_index_q == watch) || (weighed_valid_q && weighed_index_q == watch)
      || (visit.valid && ahead.index == watch);
  assign idle = !look_valid_q && !weighed_valid_q && !visit.valid;
endmodule
