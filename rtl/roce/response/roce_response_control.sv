// SPDX-License-Identifier: Apache-2.0

// Takes QPs into and out of service, one command at a time, answered in order (0: no such QP). QP_SETUP and QP_RESET first
// end all of the QP: nothing of it is taken any more, no visit begins until every response on its way has left with its payload
// (responses of other QPs wait for that, acknowledgements do not), and none of its atomics is carried out; then its tables start anew,
// and its newest acknowledgement, which may be the NAK that says why it ends, is handed over.
// QP_MODIFY to QPS_ERR puts the QP out of service; acknowledgements that are due still leave. To any other state: nothing to do.
//
// A few tens of cycles when the device is quiet; under load the time to send what is queued for the wire, to carry out one atomic
// and to hand over one acknowledgement of each QP.
// After reset it clears the tables of all QPs, one a cycle, and nothing is taken meanwhile.
module roce_response_control
  import roce_pkg::*;
  import roce_requester_pkg::*;
#(
    parameter int unsigned QPS = 16
) (
    input logic clk,
    input logic rst,

    stream_if.sink   cmd,            // qp_cmd_t
    stream_if.source answer,         // logic

    input  qp_index_t [2:0] at,
    output logic [2:0] live,         // this QP is in service
    input  logic      fail,          // this one not any more
    input  qp_index_t fail_index,

    output logic      init,          // starts the tables of QP `watch`
    output qp_index_t watch,
    output logic      hold_intake,
    input  logic      intake_idle,
    output logic      hold_send,
    input  logic      send_idle,
    input  logic      tx_idle,       // no response on its way
    input  logic      executing,     // an atomic of this QP is carried out:
    input  qp_index_t executing_index,
    stream_if.source  name,          // qp_index_t: its acknowledgement waits for nothing now
    input  logic      engaged,       // an acknowledgement of `watch` was not handed over yet

    output logic idle
);
  typedef enum logic [3:0] {
    C_CLEAR,
    C_IDLE,
    C_KILL,
    C_PAUSE,     // what was taken before goes its way
    C_ATOMICS,
    C_RESPONSES,
    C_CLOSE,     // as C_PAUSE, for the tables' sake
    C_INIT,
    C_NAME,
    C_LAST,      // its last acknowledgement
    C_ANSWER
  } state_e;

  state_e             state_q;
  qp_cmd_t            came, cmd_q;
  logic               exists_q;
  assign came = cmd.data;
  wire stops = cmd_q.op != QP_MODIFY;

  roce_qp_flags #(
      .QPS(QPS),
      .READERS(3)
  ) live_flags (
      .clk,
      .rst,
      .write({fail, state_q inside {C_KILL, C_INIT}}),
      .write_index({fail_index, watch}),
      .write_data({1'b0, state_q == C_INIT && cmd_q.op == QP_SETUP}),
      .read_index(at),
      .read_data(live)
  );

  assign cmd.ready    = state_q == C_IDLE;
  assign answer.valid = state_q == C_ANSWER;
  assign answer.data  = exists_q;
  assign init         = state_q inside {C_CLEAR, C_INIT};
  assign hold_intake  = state_q inside {C_CLEAR, C_PAUSE, C_CLOSE, C_INIT};
  assign hold_send    = state_q inside {C_CLEAR, C_RESPONSES, C_CLOSE, C_INIT};
  assign name.valid   = state_q == C_NAME;
  assign name.data    = watch;
  assign idle         = state_q == C_IDLE;

  always_ff @(posedge clk) begin
    if (rst) begin
      state_q <= C_CLEAR;
      watch   <= '0;
    end else begin
      unique case (state_q)
        C_CLEAR: begin
          watch <= watch + 1'b1;
          if (watch == qp_index_t'(QPS - 1)) state_q <= C_IDLE;
        end
        C_IDLE:
        if (cmd.valid) begin
          cmd_q    <= came;
          watch    <= sq_index(came.qpn);
          exists_q <= qpn_exists(came.qpn, QPS);
          state_q  <= qpn_exists(came.qpn, QPS) && (came.op != QP_MODIFY || came.state == QPS_ERR) ? C_KILL : C_ANSWER;
        end
        C_KILL: state_q <= stops ? C_PAUSE : C_ANSWER;
        C_PAUSE: if (intake_idle) state_q <= C_ATOMICS;
        C_ATOMICS: if (!executing || executing_index != watch) state_q <= C_RESPONSES;
        C_RESPONSES: if (send_idle && tx_idle) state_q <= C_CLOSE;
        C_CLOSE: if (intake_idle) state_q <= C_INIT;
        C_INIT: state_q <= C_NAME;
        C_NAME: if (name.ready) state_q <= C_LAST;
        C_LAST: if (!engaged) state_q <= C_ANSWER;
        C_ANSWER: if (answer.ready) state_q <= C_IDLE;
        default: state_q <= C_IDLE;
      endcase
    end
  end
endmodule
