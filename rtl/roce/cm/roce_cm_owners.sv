// SPDX-License-Identifier: Apache-2.0

// The events for the owners of connections. They are queued in order and delivered on `conn` one at a time: the connection manager takes
// the oldest as an OP_TELL, reads its connection, and delivers it at `commit`. A connection has at most two events in the queue; the queue
// has entries for all.
//
// A `connect` that found no free connection is answered directly, because there is no connection for which an event could be queued. It is
// decided only while `free`.
module roce_cm_owners
  import roce_pkg::*;
  import roce_cm_pkg::*;
#(
    parameter int unsigned QPS = 16
) (
    input  logic        clk,
    input  logic        rst,
    input  logic        commit,           // the current event ends: `plan` is executed
    input  cm_op_e      op,
    input  logic [$clog2(QPS)-1:0] idx,
    input  cm_plan_t    plan,
    input  cm_conn_t    work,             // its connection
    input  private_t    private_data,
    output logic        pending,          // the oldest event in the queue:
    output logic [$clog2(QPS)-1:0] pending_idx,
    output conn_event_e pending_kind,
    output logic        free,             // `conn` has no event
    stream_if.source    conn,             // conn_event_t
    output logic        idle
);
  typedef struct packed {
    logic [$clog2(QPS)-1:0] idx;
    conn_event_e  kind;
    conn_reason_t why;
  } queued_t;

  stream_if #(.T(queued_t)) in ();
  stream_if #(.T(queued_t)) oldest ();
  logic empty, valid_q;
  conn_event_t data_q;
  stream_fifo #(.T(queued_t), .DEPTH(2 * QPS)) queue (.clk, .rst, .in, .out(oldest), .empty);

  wire no_place = op == OP_CONNECT && !plan.write;
  assign in.valid     = commit && plan.tell && !no_place;
  assign in.data      = '{idx: idx, kind: plan.kind, why: plan.why};
  assign oldest.ready = commit && op == OP_TELL;
  assign pending      = oldest.valid;
  assign pending_idx  = oldest.data.idx;
  assign pending_kind = oldest.data.kind;
  assign free         = !valid_q;
  assign conn.valid   = valid_q;
  assign conn.data    = data_q;
  assign idle         = empty && !valid_q;

  always_ff @(posedge clk) begin
    if (commit && (op == OP_TELL || no_place)) begin
      data_q <= '{
          kind: no_place ? CONN_REFUSED : oldest.data.kind,
          client: work.client,
          qpn: no_place ? '0 : qp_number(qp_index_t'(idx)),
          tag: work.tag,
          reason: no_place ? plan.why : oldest.data.why,
          ip: work.ip,
          contexts: work.contexts,
          long_set_up: work.long_set_up,
          by: work.by,
          private_data: no_place ? '0 : private_data
      };
    end
    if (rst) valid_q <= 1'b0;
    else if (commit && (no_place ? plan.tell : op == OP_TELL)) valid_q <= 1'b1;
    else if (conn.ready) valid_q <= 1'b0;
    if (!rst) assert (!in.valid || in.ready);
  end
endmodule
