// SPDX-License-Identifier: Apache-2.0

// Answers calls: a WRITE for every output region in index order, the last with immediate, solicited and signaled; the
// immediate is the result's code << 8 (0: success). A call that failed, or that has no output, is answered by one WRITE with
// immediate of length 0 to the first output region, or to region 0.
//
// First request 3 cycles after the result if region 0 is the first output, otherwise 6; the others 4 cycles apart at best.
// A call of a connection that is being closed is answered by nothing.
module rpc_answer
  import memory_pkg::*;
  import roce_pkg::*;
  import compute_pkg::*;
  import rpc_pkg::*;
(
    input  logic         clk,
    input  logic         rst,
    input  closing_t     closing,
    stream_if.sink       result,      // result_t
    stream_if.source     view_read,   // region_key_t
    input  logic         view_valid,
    input  region_view_t view,
    stream_if.source     wqe,         // rdma_wqe_t
    stream_if.source     answered,    // result_t, after the last request was taken
    output logic         finished,    // events
    output logic         failed,
    output logic         idle
);
  typedef enum logic [2:0] {
    IDLE,
    LOOK_UP,
    LOOKED_UP,
    POST,
    ANSWERED
  } state_e;

  state_e        state_q;
  result_t       result_q;
  region_index_t index_q;
  logic          found_q;          // index_q is the first output or behind it
  region_view_t  view_q;

  wire empty = result_q.code != RESULT_SUCCESS || !view_q.grant.has_output;
  wire last = empty || index_q == view_q.grant.last_output;
  wire gone = closing.valid && closing.slot == result.data.slot;

  // The first look-up leaves with the result: it tells where the outputs begin.
  assign view_read.valid = state_q == LOOK_UP || state_q == IDLE && result.valid && !gone;
  assign view_read.data  = state_q == IDLE ? '{slot: result.data.slot, index: '0} : '{slot: result_q.slot, index: index_q};
  assign result.ready    = state_q == IDLE && (gone || view_read.ready);

  always_comb begin
    wqe.data             = '0;
    wqe.data.opcode      = last ? WR_RDMA_WRITE_WITH_IMM : WR_RDMA_WRITE;
    wqe.data.signaled    = last;
    wqe.data.solicited   = last;
    wqe.data.qpn         = slot_qpn(result_q.slot);
    wqe.data.local_addr  = view_q.addr;
    wqe.data.length      = empty ? '0 : view_q.region.size;
    wqe.data.remote_addr = view_q.region.host_addr;
    wqe.data.rkey        = view_q.region.host_rkey;
    wqe.data.imm_data    = 32'(result_q.code) << 8;
  end
  assign wqe.valid      = state_q == POST;
  assign answered.valid = state_q == ANSWERED;
  assign answered.data  = result_q;
  assign finished       = state_q == ANSWERED && answered.ready && result_q.code == RESULT_SUCCESS;
  assign failed         = state_q == ANSWERED && answered.ready && result_q.code != RESULT_SUCCESS;
  assign idle           = state_q == IDLE && !result.valid;

  always_ff @(posedge clk) begin
    unique case (state_q)
      IDLE: begin
        result_q <= result.data;
        index_q  <= '0;
        found_q  <= 1'b0;
        if (result.valid && result.ready) state_q <= gone ? ANSWERED : LOOKED_UP;
      end
      LOOK_UP: if (view_read.ready) state_q <= LOOKED_UP;
      LOOKED_UP:
      if (view_valid) begin
        view_q  <= view;
        found_q <= 1'b1;
        index_q <= found_q ? index_q : view.grant.first_output;
        if (found_q && !view.region.output_ && view.grant.has_output) begin
          index_q <= index_q + 1'b1;
          state_q <= LOOK_UP;
        end else begin
          state_q <= !found_q && view.grant.first_output != '0 ? LOOK_UP : POST;
        end
      end
      POST:
      if (wqe.ready) begin
        index_q <= index_q + 1'b1;
        state_q <= last ? ANSWERED : LOOK_UP;
      end
      ANSWERED: if (answered.ready) state_q <= IDLE;
      default: state_q <= IDLE;
    endcase
    if (rst) state_q <= IDLE;
  end
endmodule
