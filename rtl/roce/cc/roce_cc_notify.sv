// SPDX-License-Identifier: Apache-2.0

// The notification point: answers packets with congestion experienced (CE) by CNPs, at most one per QP in `cnp_ticks` cycles (Zhu et al.,
// SIGCOMM 2015, figure 6; IBTA annex A17.9).
//
// One mark a cycle, its CNP 3 cycles later. While the queue of CNPs (DEPTH) is full, marks are ignored: the next mark of that QP causes a
// CNP. After reset the table is cleared, QPS cycles; marks received before that are ignored.
//
// A CNP of a QP suppresses further ones until a point in time. In cycles without a mark a walker clears the expired entries, so that none
// is kept longer than half the range of the timestamps.
module roce_cc_notify
  import roce_wire_pkg::*;
  import roce_pkg::*;
  import time_pkg::*;
#(
    parameter int unsigned QPS = 256,
    parameter int unsigned DEPTH = 16
) (
    input  logic        clk,
    input  logic        rst,
    input  time_t       now,
    input  logic        enable,
    input  logic [24:0] cnp_ticks,
    input  logic        marked,        // pulse
    input  qpn_t        marked_qpn,    // local QP number
    stream_if.source    cnp,           // ack_tx_t
    output logic        idle
);
  localparam int unsigned INDEX_W = $clog2(QPS);
  typedef logic [INDEX_W-1:0] index_t;

  typedef struct packed {
    logic  silent;
    time_t until_;                     // earliest time of the next CNP
  } entry_t;
  (* ram_style = "block" *) entry_t entries[QPS];

  logic [INDEX_W:0] cleared_q;         // entries cleared; complete when the top bit is set
  wire              clearing = !cleared_q[INDEX_W];

  index_t at, walk_q;
  logic   marked_q, walked_q, due_q, passed_q, done_q;
  index_t look_index_q, due_index_q, done_index_q;
  qpn_t   look_qpn_q, due_qpn_q;
  entry_t found_q;
  time_t  next_q;
  assign at = marked ? index_t'(qp_index(marked_qpn)) : walk_q;

  stream_if #(.T(qpn_t)) ready_cnp ();
  stream_if #(.T(qpn_t)) queued ();

  wire send = due_q && ready_cnp.ready;
  assign ready_cnp.valid = due_q;
  assign ready_cnp.data  = due_qpn_q;

  logic queue_empty;
  stream_fifo #(.T(qpn_t), .DEPTH(DEPTH)) queue (.clk, .rst, .in(ready_cnp), .out(queued), .empty(queue_empty));
  assign cnp.valid    = queued.valid;
  assign cnp.data     = '{qpn: queued.data, cnp: 1'b1, default: '0};
  assign queued.ready = cnp.ready;

  // A mark up to two cycles after one of the same QP that causes a CNP is ignored: its entry was read before the update.
  wire again = (due_q && due_index_q == look_index_q) || (done_q && done_index_q == look_index_q);
  wire over  = time_reached(now, found_q.until_);

  always_ff @(posedge clk) begin
    found_q      <= entries[at];
    look_index_q <= at;
    look_qpn_q   <= marked_qpn;
    due_index_q  <= look_index_q;
    due_qpn_q    <= look_qpn_q;
    done_q       <= due_q;
    done_index_q <= due_index_q;
    next_q       <= now + time_t'(cnp_ticks);
    if (clearing) entries[cleared_q[INDEX_W-1:0]] <= '0;
    else if (send || passed_q) entries[due_index_q] <= '{silent: send, until_: next_q};
    if (!marked) walk_q <= walk_q + 1'b1;

    if (rst) begin
      cleared_q <= '0;
      walk_q    <= '0;
      marked_q  <= 1'b0;
      walked_q  <= 1'b0;
      due_q     <= 1'b0;
      passed_q  <= 1'b0;
    end else begin
      if (clearing) cleared_q <= cleared_q + 1'b1;
      marked_q <= marked && enable && !clearing;
      walked_q <= !marked;
      due_q    <= marked_q && (!found_q.silent || over) && !again;
      passed_q <= walked_q && over && !again;
    end
  end

  assign idle = !clearing && !marked_q && queue_empty && !due_q;
endmodule
