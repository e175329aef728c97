// SPDX-License-Identifier: Apache-2.0

// Takes QPs into and out of service, one command at a time, answered in order (0: no such QP). QP_SETUP and QP_RESET first terminate the
// QP: nothing of it is accepted any more, no visit begins until every response in roce_tx has left with its payload (responses of other QPs
// wait for that, acknowledgements do not), and none of its atomics is executed. Then its tables are initialized, and its newest
// acknowledgement, which may be the NAK of the error that ended it, is sent. QP_MODIFY has no effect here, whatever the state: a QP in error
// gets no more requests from the responder, and those before the error are answered before its NAK (IBTA 9.7.5: in the order of the requests).
//
// A few tens of cycles when the device is idle; under load the time to send the packets queued in roce_tx, to execute one atomic and to
// send one acknowledgement of each QP. After reset the unit clears the tables of all QPs, one a cycle; nothing is accepted meanwhile.
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
    output logic [2:0] live,         // each of these QPs is in service
    input  logic      fail,          // take this QP out of service
    input  qp_index_t fail_index,

    output logic      init,          // initialize the tables of QP `watch`
    output qp_index_t watch,
    output logic      hold_intake,
    input  logic      intake_idle,
    output logic      hold_send,
    input  logic      send_idle,
    input  logic      tx_idle,       // no response in roce_tx
    input  logic      executing,     // an atomic of this QP is in progress:
    input  qp_index_t executing_index,
    stream_if.source  name,          // qp_index_t: no response of this QP is pending any more
    input  logic      engaged,       // an acknowledgement of `watch` is pending

    output logic idle
);
  typedef enum logic [3:0] {
    C_CLEAR,
    C_IDLE,
    C_KILL,
    C_PAUSE,     // drain the intake
    C_ATOMICS,
    C_RESPONSES,
    C_CLOSE,     // drain the intake again, before the tables are written
    C_INIT,
    C_NAME,
    C_LAST,      // send its last acknowledgement
    C_ANSWER
  } state_e;

  state_e             state_q;
  qp_cmd_t            came, cmd_q;
  logic               exists_q;
  assign came = cmd.data;

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
          state_q  <= qpn_exists(came.qpn, QPS) && came.op != QP_MODIFY ? C_KILL : C_ANSWER;
        end
        C_KILL: state_q <= C_PAUSE;
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
