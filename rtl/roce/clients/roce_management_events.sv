// SPDX-License-Identifier: Apache-2.0

// Queues the events of the management port's connections, and of the QPs set up manually, until software polls them. The engine
// never waits for software:
//   CONN_ESTABLISHED, CONN_REFUSED   an entry is reserved when software connects (`connecting`, only if `may_connect`)
//   CONN_OPENED                      software answers; if the queue is full, the connection is refused
//   CONN_CLOSED                      answered here after the QP's regions are deregistered; if the queue is full, the event is lost
//   QP events                        if the queue is full, the event is lost
// `lost` and `refused` pulse for each such event.
// An event takes 2 cycles, CONN_CLOSED also the time of MR_DEREGISTER_QP.
module roce_management_events
  import roce_pkg::*;
  import roce_management_pkg::*;
#(
    parameter int unsigned DEPTH = 32
) (
    input logic      clk,
    input logic      rst,
    stream_if.sink   conn,          // conn_event_t
    stream_if.sink   qp_event,      // qp_event_t; always accepted
    input logic      qp_by_hand,    // the QP of qp_event was set up manually; others are discarded
    stream_if.source answer,        // conn_answer_t
    stream_if.source mr_cmd,        // mr_cmd_t
    stream_if.sink   mr_rsp,        // mr_rsp_t
    input logic      connecting,    // pulse
    output logic     may_connect,
    stream_if.source event_,        // man_event_t
    output logic     lost,          // pulse
    output logic     refused,       // pulse
    output logic     idle           // queued events do not count
);
  typedef logic [$clog2(DEPTH):0] count_t;

  typedef enum logic [1:0] {
    E_IDLE,
    E_FREE,      // deregister the regions of a closed QP
    E_FREED,
    E_ANSWER
  } state_e;

  state_e state_q, state_d;
  count_t held_q, reserved_q;
  conn_event_t conn_q;
  logic        accept_room, push_conn, push_async, take_reserve;
  man_event_t  entry;

  stream_if #(.T(man_event_t)) in ();
  stream_fifo #(.T(man_event_t), .DEPTH(DEPTH)) queue (.clk, .rst, .in, .out(event_), .empty());

  assign accept_room = held_q + reserved_q < count_t'(DEPTH);
  assign may_connect = held_q + reserved_q < count_t'(DEPTH - 1);
  wire outcome = conn.data.kind inside {CONN_ESTABLISHED, CONN_REFUSED};

  always_comb begin
    state_d      = state_q;
    conn.ready   = 1'b0;
    push_conn    = 1'b0;
    push_async   = 1'b0;
    take_reserve = 1'b0;
    lost         = 1'b0;
    refused      = 1'b0;
    qp_event.ready = 1'b1;

    unique case (state_q)
      E_IDLE:
      if (qp_event.valid) begin
        // A QP event has priority over a connection event.
        push_async = qp_by_hand && accept_room;
        lost       = qp_by_hand && !accept_room;
      end else if (conn.valid) begin
        conn.ready   = 1'b1;
        push_conn    = outcome || accept_room;
        take_reserve = outcome;
        if (conn.data.kind == CONN_CLOSED) begin
          lost    = !accept_room;
          state_d = E_FREE;
        end else if (conn.data.kind == CONN_OPENED && !accept_room) begin
          refused = 1'b1;
          state_d = E_ANSWER;
        end
      end
      E_FREE:  if (mr_cmd.ready) state_d = E_FREED;
      E_FREED: if (mr_rsp.valid) state_d = E_ANSWER;
      default: if (answer.ready) state_d = E_IDLE;
    endcase
    if (state_q != E_IDLE && qp_event.valid) begin
      push_async = qp_by_hand && accept_room;
      lost       = qp_by_hand && !accept_room;
    end

    entry = '{
        asynchronous: 1'b0,
        kind: 3'(conn.data.kind),
        qpn: conn.data.qpn,
        tag: conn.data.tag,
        reason: conn.data.reason,
        ip: conn.data.ip,
        private_data: conn.data.private_data
    };
    if (push_async) begin
      entry              = '0;
      entry.ip           = packet_pkg::ip_mapped('0);   // none
      entry.asynchronous = 1'b1;
      entry.kind         = qp_event.data.kind;
      entry.qpn          = qp_event.data.qpn;
      entry.tag          = 16'(qp_event.data.status);
    end
  end

  assign in.valid      = push_conn || push_async;
  assign in.data       = entry;
  assign mr_cmd.valid  = state_q == E_FREE;
  always_comb begin
    mr_cmd.data        = '0;
    mr_cmd.data.op     = MR_DEREGISTER_QP;
    mr_cmd.data.mr.qpn = conn_q.qpn;
  end
  assign mr_rsp.ready  = state_q == E_FREED;
  assign answer.valid  = state_q == E_ANSWER;
  assign answer.data   = '{qpn: conn_q.qpn, accept: 1'b0, private_data: '0};

  wire popped = event_.valid && event_.ready;
  wire pushed = in.valid;
  assign idle = state_q == E_IDLE && !conn.valid && !qp_event.valid;

  always_ff @(posedge clk) begin
    if (conn.valid && conn.ready) conn_q <= conn.data;
    if (rst) begin
      state_q    <= E_IDLE;
      held_q     <= '0;
      reserved_q <= '0;
    end else begin
      state_q    <= state_d;
      held_q     <= held_q + count_t'(pushed) - count_t'(popped);
      reserved_q <= reserved_q + count_t'(connecting) - count_t'(take_reserve);
    end
  end

  always_ff @(posedge clk) if (!rst && pushed) assert (in.ready);
endmodule
