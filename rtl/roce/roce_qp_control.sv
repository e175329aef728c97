// SPDX-License-Identifier: Apache-2.0

// Sets up queue pairs, changes their state and resets them: one command at a time, applied to the units that hold state of the QP
// in an order in which no packet sees a partly configured QP, and answered when all units have finished.
//
//   SETUP to RTS   addresses and attributes, requester, response, receive (accepts packets last)
//   to RTR         response, receive
//   RTR to RTS     send attributes, requester, response, receive
//   to SQD         starts no further visit of the QP, waits for the end of the current one, then pauses the requester
//   to ERR         receive, response, requester
//   RESET          receive, response, requester; waits until its request packets have left (`flush_requests`), then its last
//                  acknowledgement, which may be a NAK (`flush_acks`); clears the peer's addresses; waits until its CNPs have left
//                  (`flush_acks`) and the last completion and event are accepted
//
// Answered with 0, without any change: no such QP, invalid transition (IBTA 10.3.1, roce_pkg::qp_op_e). The answer of a unit is
// used in a SETUP only: a 0 reverts the SETUP.
// Events of both sides leave in one stream (roce_qp_events). The first fatal event of a QP moves all its units to ERR. `qp_event`
// and completions must be accepted also while a command is in progress.
// A command takes a few tens of cycles when the device is idle; under load the time to send the packets queued for the wire (32 at
// most) and to confirm the writes of responses. Requests and acknowledgements of other QPs do not wait for that. After reset it
// first clears all QPs, one a cycle, and holds `ready` low meanwhile.
module roce_qp_control
  import roce_wire_pkg::*;
  import roce_pkg::*;
  import roce_requester_pkg::*;
#(
    parameter int unsigned QPS = 16,
    parameter int unsigned RD_DEPTH = 8
) (
    input logic clk,
    input logic rst,

    stream_if.sink   command,           // qp_cmd_t
    stream_if.source answer,            // logic
    output logic     ready,             // the tables are initialized

    stream_if.source receive_cmd,       // qp_cmd_t
    stream_if.sink   receive_answer,    // logic
    stream_if.source response_cmd,      // qp_cmd_t
    stream_if.sink   response_answer,   // logic

    stream_if.source change,            // sq_event_t, to the requester
    input  logic     commanded,         // pulse: the oldest command has completed
    output logic     init,              // initializes a QP's word in the requester's tables
    output sq_init_t start,

    output qp_index_t  attr_index,
    output logic       path_write,
    output sq_path_t   path,
    output logic       policy_write,
    output sq_policy_t policy,
    output logic       peer_write,      // to the requester and roce_tx
    output qp_index_t  peer_index,
    output sq_peer_t   peer,

    output qp_index_t watch,
    output logic      hold,             // the requester starts no visit of QP `watch`
    input  logic      sending,          // a request packet of QP `watch` may still reach roce_tx ...
    input  logic      engaged,          // ... or has another operation in progress in the requester
    output logic      flush_requests,   // of roce_tx
    output logic      flush_acks,
    input  logic      flushed,

    stream_if.sink   receive_event,     // qp_event_t
    stream_if.sink   requester_event,   // qp_event_t
    stream_if.source qp_event,          // qp_event_t

    input  qpn_t      view_qpn,
    output qp_view_t  view,             // a cycle later
    output qp_index_t view_index,
    input  psn_t      view_next,        // of `view_index`, a cycle later
    input  psn_t      view_oldest,

    output logic idle
);
  localparam int unsigned INDEX_W = $clog2(QPS);
  typedef logic [INDEX_W-1:0] index_t;

  typedef enum logic [2:0] {
    PLAN_NONE,         // no change, or an invalid transition
    PLAN_SETUP,
    PLAN_READY,        // INIT -> RTR
    PLAN_START,        // RTR -> RTS
    PLAN_PAUSE,
    PLAN_RESUME,
    PLAN_FAIL,
    PLAN_RESET
  } plan_e;

  typedef enum logic [3:0] {
    C_CLEAR,
    C_IDLE,
    C_LOOK,
    C_PLAN,
    C_WRITE,           // attributes and addresses
    C_CHANGE,          // the requester
    C_RESPONSE,
    C_RECEIVE,
    C_DATA,            // wait until its request packets have left
    C_LAST,            // wait until its last acknowledgement has left
    C_FORGET,          // clear the peer's addresses
    C_ACKS,            // wait until its CNPs, completions and events have left
    C_KEEP,            // store the new state
    C_ANSWER
  } step_e;

  qp_index_t    watch_q;
  step_e        step_q, step_d;
  plan_e        plan_q, plan;
  qp_cmd_t      command_q;
  qp_state_e    was_q;
  logic         exists_q, ours_q;      // ours: caused by a failed QP, not by a command
  logic         answer_q;
  // Registered separately instead of decoded from step_q, because all units depend on them.
  logic         ready_q, idle_q, answers_q;
  logic         offers_receive_q, offers_response_q, offers_change_q;  // the command of this step is not accepted yet
  logic         blocks_q;              // no event passes, and the mark of the QP is written:
  logic         asks_err_q;            // its fatal events are discarded
  logic         path_write_q, policy_write_q, peer_write_q;
  qp_index_t    peer_index_q;
  index_t       clear_q;
  logic [INDEX_W:0] cleared_q;

  // ---- states ----
  (* ram_style = "distributed" *) logic [2:0] states[QPS];
  (* ram_style = "distributed" *) logic [2:0] states_view[QPS];
  logic      state_write;
  index_t    state_at;
  qp_state_e state_next;
  always_ff @(posedge clk) begin
    if (state_write) states[state_at] <= state_next;
    if (state_write) states_view[state_at] <= state_next;
  end

  wire index_t at = index_t'(watch);
  assign watch    = watch_q;
  assign ready    = ready_q;

  assign state_write = step_q inside {C_CLEAR, C_KEEP};
  assign state_at    = ready ? at : clear_q;
  assign state_next  = !ready || plan_q == PLAN_RESET ? QPS_RESET : command_q.state;

  // ---- events ----
  stream_if #(.T(qp_index_t)) failed ();
  logic events_empty;
  roce_qp_events #(
      .QPS(QPS)
  ) events (
      .clk,
      .rst,
      .hold(!ready_q || blocks_q),
      .mark_index(qp_index_t'(state_at)),
      .mark(ready_q && asks_err_q),
      .receive_event,
      .requester_event,
      .qp_event,
      .failed,
      .idle(events_empty)
  );

  assign idle = idle_q && !failed.valid && events_empty;

  // ---- decode a command ----
  always_comb begin
    plan = PLAN_NONE;
    unique case (command_q.op)
      QP_SETUP: if (was_q == QPS_RESET && command_q.state inside {QPS_INIT, QPS_RTR, QPS_RTS}) plan = PLAN_SETUP;
      QP_RESET: if (was_q != QPS_RESET) plan = PLAN_RESET;
      QP_MODIFY:
      unique case (command_q.state)
        QPS_RTR: if (was_q == QPS_INIT) plan = PLAN_READY;
        QPS_RTS:
        if (was_q == QPS_RTR) plan = PLAN_START;
        else if (was_q == QPS_SQD) plan = PLAN_RESUME;
        QPS_SQD: if (was_q == QPS_RTS) plan = PLAN_PAUSE;
        QPS_ERR: if (!(was_q inside {QPS_RESET, QPS_ERR})) plan = PLAN_FAIL;
        default: ;
      endcase
      default: ;
    endcase
    if (!exists_q) plan = PLAN_NONE;
  end
  // The QP is already in the requested state: answered with 1.
  wire already = exists_q && ((command_q.op == QP_RESET && was_q == QPS_RESET)
      || (command_q.op == QP_MODIFY && command_q.state == QPS_ERR && was_q == QPS_ERR));

  // The order of the steps after C_PLAN.
  function automatic step_e after(plan_e p, step_e s, logic sends);
    unique case (p)
      PLAN_SETUP, PLAN_START:
      unique case (s)
        C_PLAN:     return C_WRITE;
        C_WRITE:    return sends ? C_CHANGE : C_RESPONSE;
        C_CHANGE:   return C_RESPONSE;
        C_RESPONSE: return C_RECEIVE;
        default:    return C_KEEP;
      endcase
      PLAN_READY:
      unique case (s)
        C_PLAN:     return C_RESPONSE;
        C_RESPONSE: return C_RECEIVE;
        default:    return C_KEEP;
      endcase
      PLAN_PAUSE:
      unique case (s)
        C_PLAN:  return C_DATA;
        C_DATA:  return C_CHANGE;
        default: return C_KEEP;
      endcase
      PLAN_RESUME: return s == C_PLAN ? C_CHANGE : C_KEEP;
      PLAN_FAIL:
      unique case (s)
        C_PLAN:     return C_RECEIVE;
        C_RECEIVE:  return C_RESPONSE;
        C_RESPONSE: return C_CHANGE;
        default:    return C_KEEP;
      endcase
      PLAN_RESET:
      unique case (s)
        C_PLAN:     return C_RECEIVE;
        C_RECEIVE:  return C_RESPONSE;
        C_RESPONSE: return C_CHANGE;
        C_CHANGE:   return C_DATA;
        C_DATA:     return C_LAST;
        C_LAST:     return C_FORGET;
        C_FORGET:   return C_ACKS;
        default:    return C_KEEP;
      endcase
      default: return C_ANSWER;
    endcase
  endfunction

  wire   sends = command_q.state == QPS_RTS;
  step_e next_step;
  assign next_step = after(plan_q, step_q, sends);

  // ---- the units ----
  qp_cmd_t passed;
  always_comb begin
    passed = command_q;
    if (plan_q == PLAN_RESET) passed.op = QP_RESET;
  end
  assign receive_cmd.valid     = offers_receive_q;
  assign receive_cmd.data      = passed;
  assign receive_answer.ready  = step_q == C_RECEIVE && !offers_receive_q;
  assign response_cmd.valid    = offers_response_q;
  assign response_cmd.data     = passed;
  assign response_answer.ready = step_q == C_RESPONSE && !offers_response_q;

  sq_event_e change_kind;
  always_comb begin
    unique case (plan_q)
      PLAN_SETUP, PLAN_START: change_kind = SQ_EV_START;
      PLAN_PAUSE:             change_kind = SQ_EV_PAUSE;
      PLAN_RESUME:            change_kind = SQ_EV_RESUME;
      PLAN_FAIL:              change_kind = SQ_EV_ERROR;
      default:                change_kind = SQ_EV_STOP;
    endcase
  end
  assign change.valid = offers_change_q;
  assign change.data  = '{
          kind: ready ? change_kind : SQ_EV_STOP,
          index: ready ? watch : qp_index_t'(clear_q),
          psn: command_q.attr.sq_psn
      };

  assign attr_index   = watch;
  assign path_write   = path_write_q;
  assign path         = '{path_mtu: command_q.attr.path_mtu, selective_repeat: command_q.attr.selective_repeat};
  assign policy_write = policy_write_q;
  assign policy = '{
          timeout: command_q.attr.timeout,
          retry_cnt: command_q.attr.retry_cnt,
          rnr_retry: command_q.attr.rnr_retry,
          max_rd_atomic: command_q.attr.max_rd_atomic > 8'(RD_DEPTH) ? rd_count_t'(RD_DEPTH) : rd_count_t'(command_q.attr.max_rd_atomic)
      };
  assign init       = policy_write;
  assign start      = '{index: watch, psn: command_q.attr.sq_psn};
  assign peer_write = peer_write_q;
  assign peer_index = peer_index_q;
  assign peer = '{
          valid: path_write,
          mac: command_q.attr.dst_mac,
          ip: command_q.attr.dst_ip,
          own: command_q.attr.own,
          dscp: command_q.attr.traffic_class[7:2],
          qpn: command_q.attr.dest_qp_num
      };

  logic hold_q, leaving_q, flush_requests_q, flush_acks_q;
  logic flushing_q;        // a flush was requested from roce_tx,
  logic flushed_q;         // and is complete
  assign hold           = hold_q;
  assign flush_requests = flush_requests_q;
  assign flush_acks     = flush_acks_q;

  // ---- steps ----
  qp_cmd_t came;
  assign came          = command.data;
  assign failed.ready  = idle_q;
  assign command.ready = idle_q && !failed.valid;
  assign answer.valid  = answers_q;
  assign answer.data   = answer_q;

  logic left_q;            // no further packet of the QP reaches roce_tx
  logic quiet_q;           // no other operation of the QP is in progress
  logic finished;          // the step is complete
  logic refused;           // its unit has answered 0
  always_comb begin
    finished = 1'b1;
    refused  = 1'b0;
    unique case (step_q)
      C_RECEIVE: begin
        finished = !offers_receive_q && receive_answer.valid;
        refused  = !receive_answer.data;
      end
      C_RESPONSE: begin
        finished = !offers_response_q && response_answer.valid;
        refused  = !response_answer.data;
      end
      C_CHANGE: finished = !offers_change_q && commanded;
      C_DATA:   finished = plan_q == PLAN_PAUSE ? left_q : flushing_q && flushed_q;
      C_LAST:   finished = flushing_q && flushed_q;
      C_ACKS:   finished = flushing_q && flushed_q && quiet_q;
      default:  ;
    endcase
  end

  wire undoes    = finished && refused && plan_q == PLAN_SETUP;
  wire fails_now = step_q == C_PLAN && plan == PLAN_FAIL;
  wire setup_now = step_q == C_PLAN && plan == PLAN_SETUP;
  wire moves     = step_q inside {C_RECEIVE, C_RESPONSE, C_CHANGE} ? finished : step_d != step_q;   // a step starts
  always_comb begin
    step_d = step_q;
    unique case (step_q)
      C_CLEAR:  if (cleared_q[INDEX_W]) step_d = C_IDLE;
      C_IDLE:   if (command.valid || failed.valid) step_d = C_LOOK;
      C_LOOK:   step_d = C_PLAN;
      C_PLAN:   step_d = after(plan, C_PLAN, sends);
      C_ANSWER: if (answer.ready || ours_q) step_d = C_IDLE;
      C_KEEP:   step_d = C_ANSWER;
      default:  if (finished) step_d = undoes ? C_RECEIVE : next_step;
    endcase
  end

  always_ff @(posedge clk) begin
    hold_q           <= plan_q == PLAN_PAUSE && step_q inside {C_DATA, C_CHANGE};
    // In a reset the requester's tables prevent further visits; else `hold` does, from the first cycle that checks `sending`.
    leaving_q        <= step_q == C_DATA;
    left_q           <= leaving_q && step_q == C_DATA && !sending;
    flush_requests_q <= step_q == C_DATA && plan_q == PLAN_RESET && left_q && !flushing_q && !rst;
    flush_acks_q     <= step_q inside {C_LAST, C_ACKS} && !flushing_q && !rst;
    flushing_q       <= (flushing_q || step_q inside {C_LAST, C_ACKS} || (step_q == C_DATA && left_q))
                     && step_q inside {C_DATA, C_LAST, C_ACKS} && !finished;
    flushed_q        <= flushing_q && flushed;
    blocks_q       <= fails_now || (step_q == C_KEEP && plan_q == PLAN_RESET);
    asks_err_q     <= fails_now;
    path_write_q   <= setup_now;
    policy_write_q <= (setup_now || (step_q == C_PLAN && plan == PLAN_START)) && sends;
    peer_write_q   <= setup_now || step_q inside {C_CLEAR, C_FORGET};
    peer_index_q   <= ready_q ? watch : qp_index_t'(clear_q);

    if (step_q == C_IDLE) begin
      command_q <= came;
      watch_q   <= failed.valid ? failed.data : sq_index(came.qpn);
      exists_q  <= qpn_exists(came.qpn, QPS);
      ours_q    <= 1'b0;
      if (failed.valid) begin
        command_q.op    <= QP_MODIFY;
        command_q.qpn   <= qp_number(failed.data);
        command_q.state <= QPS_ERR;
        exists_q        <= 1'b1;
        ours_q          <= 1'b1;
      end
    end
    was_q   <= qp_state_e'(states[at]);
    quiet_q <= !engaged && events_empty;
    if (rst) begin
      step_q            <= C_CLEAR;
      ready_q           <= 1'b0;
      idle_q            <= 1'b0;
      answers_q         <= 1'b0;
      offers_receive_q  <= 1'b0;
      offers_response_q <= 1'b0;
      offers_change_q   <= 1'b1;
      clear_q           <= '0;
      cleared_q         <= '0;
    end else begin
      step_q            <= step_d;
      ready_q           <= step_d != C_CLEAR;
      idle_q            <= step_d == C_IDLE;
      answers_q         <= step_d == C_ANSWER && !ours_q;
      offers_receive_q  <= step_d == C_RECEIVE && (moves || (offers_receive_q && !receive_cmd.ready));
      offers_response_q <= step_d == C_RESPONSE && (moves || (offers_response_q && !response_cmd.ready));
      if (step_q == C_CLEAR) begin
        if (change.valid && change.ready) begin
          clear_q <= clear_q + 1'b1;
          if (clear_q == index_t'(QPS - 1)) offers_change_q <= 1'b0;
        end
        if (commanded) cleared_q <= cleared_q + 1'b1;
      end else offers_change_q <= step_d == C_CHANGE && (moves || (offers_change_q && !change.ready));
    end
    if (step_q == C_PLAN) begin
      plan_q   <= plan;
      answer_q <= plan != PLAN_NONE || already;
    end else if (undoes) begin
      plan_q   <= PLAN_RESET;
      answer_q <= 1'b0;
    end
  end

  // ---- view ----
  (* ram_style = "block" *) logic [$bits(packet_pkg::ip_addr_t)+$bits(qpn_t)-1:0] peers[QPS];
  logic [$bits(packet_pkg::ip_addr_t)+$bits(qpn_t)-1:0] view_peer_q;
  qp_state_e view_state_q;
  assign view_index = sq_index(view_qpn);
  always_ff @(posedge clk) begin
    if (path_write) peers[at] <= {command_q.attr.dst_ip, command_q.attr.dest_qp_num};
    view_peer_q  <= peers[index_t'(view_index)];
    view_state_q <= qpn_exists(view_qpn, QPS) ? qp_state_e'(states_view[index_t'(view_index)]) : QPS_RESET;
  end
  assign view = '{
          state: view_state_q,
          ip: view_peer_q[$bits(qpn_t)+:$bits(packet_pkg::ip_addr_t)],
          dest_qp_num: view_peer_q[23:0],
          next: view_next,
          oldest: view_oldest
      };
endmodule
