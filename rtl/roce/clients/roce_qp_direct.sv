// SPDX-License-Identifier: Apache-2.0

// Commands for queue pairs set up manually: forwards them to roce_qp_control, and keeps their QP numbers separate from those of the
// connection manager. A command for a number that the connection manager uses (`taken`) is answered 0 and not forwarded.
//
// One command at a time; 2 cycles to `passed`, none from `done` to `answer`. Stalls when `passed` or `answer` is not ready.
module roce_qp_direct
  import roce_wire_pkg::*;
  import roce_pkg::*;
#(
    parameter int unsigned QPS = 16
) (
    input  logic           clk,
    input  logic           rst,
    stream_if.sink         command,   // qp_cmd_t
    stream_if.source       answer,    // logic
    input  logic [QPS-1:0] taken,
    output logic [QPS-1:0] by_hand,   // set up manually: from before the set-up until RESET
    stream_if.source       passed,    // qp_cmd_t
    stream_if.sink         done,      // logic
    output logic           idle
);
  typedef enum logic [1:0] {
    H_IDLE,
    H_PASS,
    H_WAIT,
    H_REFUSE
  } state_e;

  typedef logic [$clog2(QPS)-1:0] index_t;

  state_e  state_q;
  qp_cmd_t came, command_q;
  logic    claimed_q;                 // the number was free
  assign came = command.data;

  wire index_t at = index_t'(qp_index(came.qpn));
  wire exists = qp_index(came.qpn) < qpn_t'(QPS);
  wire finished = done.valid && done.ready;
  wire ends = done.data ? command_q.op == QP_RESET : claimed_q;

  assign command.ready = state_q == H_IDLE;
  assign passed.valid  = state_q == H_PASS;
  assign passed.data   = command_q;
  assign answer.valid  = state_q == H_REFUSE || (state_q == H_WAIT && done.valid);
  assign answer.data   = state_q == H_WAIT && done.data;
  assign done.ready    = state_q == H_WAIT && answer.ready;
  assign idle          = state_q == H_IDLE && !command.valid;

  always_ff @(posedge clk) begin
    unique case (state_q)
      H_IDLE: begin
        command_q <= came;
        claimed_q <= 1'b0;
        if (command.valid) begin
          state_q <= exists && taken[at] ? H_REFUSE : H_PASS;
          if (exists && !taken[at] && came.op == QP_SETUP) begin
            claimed_q   <= !by_hand[at];
            by_hand[at] <= 1'b1;
          end
        end
      end
      H_PASS: if (passed.ready) state_q <= H_WAIT;
      H_WAIT:
      if (finished) begin
        state_q <= H_IDLE;
        if (ends && qp_index(command_q.qpn) < qpn_t'(QPS)) by_hand[index_t'(qp_index(command_q.qpn))] <= 1'b0;
      end
      default: if (answer.ready) state_q <= H_IDLE;
    endcase
    if (rst) begin
      state_q <= H_IDLE;
      by_hand <= '0;
    end
  end
endmodule
