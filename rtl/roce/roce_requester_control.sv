// SPDX-License-Identifier: Apache-2.0

// Sets queue pairs up and takes them down, one command at a time, answered in order (1: done, 0: no such QP).
// Owns the attributes of the QPs. A command that needs a live QP to end first (QP_RESET, or QP_SETUP of a QP in use):
//   1. its state becomes RESET: nothing new is begun for it;
//   2. no visit begins (`hold_data`) until every packet on its way has left with its payload, so no memory read is open;
//   3. its acknowledgements are dropped, those on their way leave (`hold_acks`), its last completion is taken.
// A few tens of cycles when the device is quiet; under load the time to send what is queued for the wire (32 packets at most).
// After reset it clears all QPs first, one a cycle, and holds `ready` low meanwhile.
module roce_requester_control
  import roce_pkg::*;
  import roce_requester_pkg::*;
#(
    parameter int unsigned QPS = 16
) (
    input logic clk,
    input logic rst,

    stream_if.sink   command,     // qp_cmd_t
    stream_if.source answer,      // logic
    output logic     ready,       // the tables are in order

    stream_if.source change,      // sq_event_t: SQ_EV_START, SQ_EV_STOP
    output logic      init,       // starts a QP's word in the tables
    output sq_init_t  start,

    output logic       policy_write,
    output qp_index_t  policy_write_index,
    output sq_policy_t policy_write_data,
    output logic       peer_write,
    output qp_index_t  peer_write_index,
    output sq_peer_t   peer_write_data,

    output logic      hold_data,
    input  logic      data_idle,  // no visit, no request packet on its way
    output logic      hold_acks,
    input  logic      acks_idle,  // no acknowledgement between its choice and the wire
    output qp_index_t watch,
    input  logic      engaged,    // something else of QP `watch` is under way

    output logic idle
);
  localparam int unsigned INDEX_W = $clog2(QPS);

  typedef enum logic [3:0] {
    C_CLEAR,
    C_IDLE,
    C_STOP,
    C_SETTLE,
    C_DATA,
    C_FORGET,
    C_ACKS,
    C_INIT,
    C_START,
    C_SHOW,
    C_ANSWER
  } state_e;

  // Longest way of a change to where it is seen, and of what was begun before it to a place that is watched.
  localparam logic [3:0] SETTLE = 4'd12;

  state_e             state_q;
  logic [INDEX_W-1:0] clear_q;
  qp_cmd_t            command_q;
  logic               answer_q;
  logic [3:0]         wait_q;
  logic [QPS-1:0]     live_q;
  logic               init_q, hold_data_q, hold_acks_q;

  qp_cmd_t came;
  assign came = command.data;
  wire [INDEX_W-1:0] came_index = INDEX_W'(sq_index(came.qpn));
  wire [INDEX_W-1:0] at = INDEX_W'(watch);

  assign watch         = sq_index(command_q.qpn);
  assign ready         = state_q != C_CLEAR;
  assign command.ready = state_q == C_IDLE;
  assign answer.valid  = state_q == C_ANSWER;
  assign answer.data   = answer_q;
  assign idle          = state_q == C_IDLE;
  assign hold_data     = hold_data_q;
  assign hold_acks     = hold_acks_q;

  assign change.valid = state_q inside {C_CLEAR, C_STOP, C_START};
  assign change.data  = sq_event_t'{
          kind: state_q == C_START ? SQ_EV_START : SQ_EV_STOP,
          index: state_q == C_CLEAR ? qp_index_t'(clear_q) : watch,
          psn: command_q.attr.sq_psn,
          syndrome: '0
      };

  assign init               = init_q;
  assign start              = '{index: watch, psn: command_q.attr.sq_psn};
  assign policy_write       = init;
  assign policy_write_index = watch;
  assign policy_write_data  = '{
          path_mtu: command_q.attr.path_mtu,
          timeout: command_q.attr.timeout,
          retry_cnt: command_q.attr.retry_cnt,
          rnr_retry: command_q.attr.rnr_retry
      };
  assign peer_write       = init_q || state_q inside {C_CLEAR, C_FORGET};
  assign peer_write_index = ready ? watch : qp_index_t'(clear_q);
  assign peer_write_data  = '{
          valid: init,
          mac: command_q.attr.dst_mac,
          ip: command_q.attr.dst_ip,
          qpn: command_q.attr.dest_qp_num
      };

  always_ff @(posedge clk) begin
    init_q      <= state_q == C_INIT;
    hold_data_q <= state_q inside {C_SETTLE, C_DATA, C_FORGET, C_ACKS};
    hold_acks_q <= state_q == C_ACKS;
    wait_q <= state_q inside {C_SETTLE, C_ACKS, C_SHOW} ? wait_q - 1'b1 : SETTLE;
    if (rst) begin
      state_q <= C_CLEAR;
      clear_q <= '0;
      live_q  <= '0;
    end else begin
      unique case (state_q)
        C_CLEAR:
        if (change.ready) begin
          clear_q <= clear_q + 1'b1;
          if (clear_q == INDEX_W'(QPS - 1)) state_q <= C_IDLE;
        end
        C_IDLE:
        if (command.valid) begin
          command_q <= came;
          answer_q  <= qpn_exists(came.qpn, QPS);
          if (!qpn_exists(came.qpn, QPS)) state_q <= C_ANSWER;
          else if (live_q[came_index]) state_q <= C_STOP;
          else state_q <= came.op == QP_SETUP ? C_INIT : C_ANSWER;
        end
        C_STOP: if (change.ready) state_q <= C_SETTLE;
        C_SETTLE: if (wait_q == 0) state_q <= C_DATA;
        C_DATA: if (data_idle) state_q <= C_FORGET;
        C_FORGET: begin
          live_q[at] <= 1'b0;
          state_q    <= C_ACKS;
        end
        C_ACKS: begin
          if (wait_q == 0) wait_q <= '0;
          if (wait_q == 0 && acks_idle && !engaged) state_q <= command_q.op == QP_SETUP ? C_INIT : C_ANSWER;
        end
        C_INIT: begin
          live_q[at] <= 1'b1;
          state_q    <= C_START;
        end
        C_START: if (change.ready) state_q <= C_SHOW;
        C_SHOW: if (wait_q == 0) state_q <= C_ANSWER;
        C_ANSWER: if (answer.ready) state_q <= C_IDLE;
        default: state_q <= C_IDLE;
      endcase
    end
  end
endmodule
