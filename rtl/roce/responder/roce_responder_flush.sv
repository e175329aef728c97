// SPDX-License-Identifier: Apache-2.0

// Flushes the receive queues of QPs in the error state. A QP that enters the error state is listed; for each listed QP, and for each
// receive that is posted later, the pipeline flushes one receive after the other until the queue is empty.
//
// One receive per round trip through the pipeline. `list` has an entry for every QP: a QP leaves the error state only by a command, and
// commands wait while `busy`.
module roce_responder_flush
  import roce_wire_pkg::*;
  import roce_pkg::*;
#(
    parameter int unsigned QPS = 16
) (
    input  logic     clk,
    input  logic     rst,
    input  logic     list,          // this QP enters the error state
    input  qpn_t     list_qpn,
    stream_if.sink   kick,          // qpn_t: a receive was posted to a QP in the error state
    input  logic     kick_allowed,
    stream_if.source flush,         // qpn_t: flush one receive
    input  logic     flushed,       // the flush was executed:
    input  logic     flushed_one,   // a receive was flushed
    output logic     busy           // one cycle late
);
  typedef enum logic [1:0] {
    IDLE,
    ASK,
    WAIT
  } state_e;

  state_e state_q, state_d;
  qpn_t   qpn_q, qpn_d;
  logic   list_empty;

  localparam int unsigned SLOT_W = $clog2(QPS);
  typedef logic [SLOT_W-1:0] slot_t;

  stream_if #(.T(slot_t)) entering ();
  stream_if #(.T(slot_t)) listed ();
  stream_fifo #(.T(slot_t), .DEPTH(2 ** SLOT_W), .BLOCK_RAM(QPS > 256)) queue (
      .clk, .rst, .in(entering), .out(listed), .empty(list_empty)
  );

  assign entering.valid = list;
  assign entering.data  = slot_t'(qp_index(list_qpn));
  assign flush.valid    = state_q == ASK;
  assign flush.data     = qpn_q;

  always_comb begin
    state_d      = state_q;
    qpn_d        = qpn_q;
    listed.ready = 1'b0;
    kick.ready   = 1'b0;
    unique case (state_q)
      IDLE: begin
        listed.ready = 1'b1;
        kick.ready   = kick_allowed && !listed.valid;
        qpn_d        = listed.valid ? qp_number(qp_index_t'(listed.data)) : kick.data;
        if (listed.valid || (kick.valid && kick_allowed)) state_d = ASK;
      end
      ASK: if (flush.ready) state_d = WAIT;
      default: if (flushed) state_d = flushed_one ? ASK : IDLE;
    endcase
  end

  always_ff @(posedge clk) begin
    qpn_q   <= qpn_d;
    state_q <= rst ? IDLE : state_d;
    busy    <= !rst && (list || !list_empty || state_d != IDLE);
  end

  always_ff @(posedge clk) if (!rst && list) assert (entering.ready);
endmodule
