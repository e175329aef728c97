// SPDX-License-Identifier: Apache-2.0

// Answers calls: a WRITE for every output region in index order, the last with immediate, solicited and signaled; the
// immediate is the result's code << 8 (0: success). A call that failed, or that has no output, is answered by one WRITE with
// immediate of length 0 to the first output region, or to region 0.
//
// First request 4 cycles after the result if region 0 is the first output, otherwise 6; the others 3 cycles apart at best.
// A call of a connection that is closed is answered by nothing.
module rpc_answer
  import memory_pkg::*;
  import roce_pkg::*;
  import compute_pkg::*;
  import rpc_pkg::*;
(
    input  logic         clk,
    input  logic         rst,
    output slot_t        asked,       // is this connection
    input  logic         gone,        // closed? Same cycle
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
  logic          outputs_q;        // index_q is the first output or behind it
  region_view_t  view_q;
  logic          gone_q;           // the connection is closed

  wire empty = result_q.code != RESULT_SUCCESS || !view_q.grant.has_output;
  wire last = empty || index_q == view_q.grant.last_output;

  // ---- which region next ----
  wire found = state_q == LOOKED_UP && view_valid;
  wire skip = found && (outputs_q ? !view.region.output_ : view.grant.first_output != '0);
  logic          look_up;
  region_index_t next;
  always_comb begin
    look_up = 1'b0;
    next    = index_q + 1'b1;
    unique case (state_q)
      IDLE: begin
        look_up = result.valid;
        next    = '0;
      end
      LOOK_UP: begin
        look_up = 1'b1;
        next    = index_q;
      end
      LOOKED_UP: begin
        look_up = skip && !gone_q;
        if (!outputs_q) next = view.grant.first_output;
      end
      POST: look_up = wqe.ready && !last;
      default: look_up = 1'b0;
    endcase
  end
  assign view_read.valid = look_up;
  assign view_read.data  = '{slot: state_q == IDLE ? result.data.slot : result_q.slot, index: next};
  assign result.ready    = state_q == IDLE;
  assign asked           = result_q.slot;

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
  wire over = state_q == ANSWERED && answered.ready;
  wire good = result_q.code == RESULT_SUCCESS && !gone_q;
  assign finished       = over && good;
  assign failed         = over && !good;
  assign idle           = state_q == IDLE && !result.valid;

  always_ff @(posedge clk) begin
    if (look_up) index_q <= next;
    if (found) view_q <= view;
    gone_q <= gone;
    unique case (state_q)
      IDLE: begin
        result_q  <= result.data;
        outputs_q <= 1'b0;
      end
      LOOKED_UP: begin
        if (found) outputs_q <= view.grant.has_output;
        if (found && (gone_q || !skip)) state_q <= gone_q ? ANSWERED : POST;
      end
      POST:     if (wqe.ready && last) state_q <= ANSWERED;
      ANSWERED: if (answered.ready) state_q <= IDLE;
      default:  ;
    endcase
    if (look_up) state_q <= view_read.ready ? LOOKED_UP : LOOK_UP;
    if (rst) state_q <= IDLE;
  end
endmodule
