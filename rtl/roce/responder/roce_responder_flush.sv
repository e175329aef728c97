// SPDX-License-Identifier: Apache-2.0

// Empties the receive queues of QPs in error. A QP that goes to error is listed; for each, and for each receive that was
// posted after that, the pipeline is asked to flush one receive after the other until it finds none.
//
// One receive a round trip through the pipeline. `list` has room for all QPs: a QP leaves the error state by a command, and
// commands wait while `busy`.
module roce_responder_flush
  import roce_wire_pkg::*;
  import roce_pkg::*;
#(
    parameter int unsigned QPS = 16
) (
    input  logic     clk,
    input  logic     rst,
    input  logic     list,          // this QP went to error
    input  qpn_t     list_qpn,
    stream_if.sink   kick,          // qpn_t: a receive was posted to a QP in error
    input  logic     kick_allowed,
    stream_if.source flush,         // qpn_t: one receive
    input  logic     flushed,       // what became of it:
    input  logic     flushed_one,   // there was one
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
