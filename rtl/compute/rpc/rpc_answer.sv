// SPDX-License-Identifier: Apache-2.0

// Answers calls: one WRITE for every output region in index order, the last with immediate, solicited and signaled; the immediate is the
// number of the context << 24 | the result's code << 8 (0: success). A call that failed, or that has no output, is answered by one WRITE with immediate of length 0 to the
// first output region, or to region 0.
//
// First request 4 cycles after the result if region 0 is the first output, otherwise 6; the others at least 2 cycles apart, faster than
// frames of the minimum size are sent: the transport never waits for the next request. For this the next region is read as soon as one is
// known. If that region's request is not accepted at once, the read is discarded and repeated: 3 cycles then. A call of a closed connection
// is not answered.
module rpc_answer
  import memory_pkg::*;
  import roce_pkg::*;
  import compute_pkg::*;
  import rpc_pkg::*;
(
    input  logic         clk,
    input  logic         rst,
    output slot_t        asked,       // this connection
    input  logic         gone,        // is closed. Same cycle
    stream_if.sink       result,      // result_t
    stream_if.source     view_read,   // region_key_t
    input  logic         view_valid,
    input  region_view_t view,
    stream_if.source     wqe,         // rdma_wqe_t
    stream_if.source     answered,    // result_t, after the last request was accepted
    output logic         finished,    // events
    output logic         failed,
    output logic         cancelled,   // one of `failed`
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
  region_index_t index_q;          // of the region read last
  logic          outputs_q;        // index_q is the first output or a later one
  region_view_t  view_q;
  logic          gone_q;           // the connection is closed
  logic          empty_q, last_q;  // the request has length 0; is the last of the answer
  logic          ahead_q;          // the view of the next region is valid in the next cycle

  wire empty = result_q.code != RESULT_SUCCESS || !view.grant.has_output;

  // ---- next region ----
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
        look_up = found && !gone_q;
        if (!outputs_q && skip) next = view.grant.first_output;
      end
      POST: begin
        look_up = wqe.ready && !last_q && !ahead_q;
        next    = index_q;
      end
      default: look_up = 1'b0;
    endcase
  end
  assign view_read.valid = look_up;
  assign view_read.data  = '{of: state_q == IDLE ? result.data.of : result_q.of, index: next};
  assign result.ready    = state_q == IDLE;
  assign asked           = result_q.of.slot;

  always_comb begin
    wqe.data             = '0;
    wqe.data.opcode      = last_q ? WR_RDMA_WRITE_WITH_IMM : WR_RDMA_WRITE;
    wqe.data.signaled    = last_q;
    wqe.data.solicited   = last_q;
    wqe.data.qpn         = qp_number(result_q.of.slot);
    wqe.data.wr_id       = 16'(result_q.of.number);
    wqe.data.lkey        = LOCAL_DMA_LKEY;
    wqe.data.local_addr  = view_q.addr;
    wqe.data.length      = empty_q ? '0 : view_q.region.size;
    wqe.data.remote_addr = view_q.region.host_addr;
    wqe.data.rkey        = view_q.region.host_rkey;
    wqe.data.imm_data    = {8'(result_q.of.number), 24'(result_q.code) << 8};
  end
  assign wqe.valid      = state_q == POST;
  assign answered.valid = state_q == ANSWERED;
  assign answered.data  = result_q;
  wire over = state_q == ANSWERED && answered.ready;
  wire good = result_q.code == RESULT_SUCCESS && !gone_q;
  assign finished       = over && good;
  assign failed         = over && !good;
  assign cancelled      = over && result_q.code == RESULT_CANCELLED && !gone_q;
  assign idle           = state_q == IDLE && !result.valid;

  always_ff @(posedge clk) begin
    if (look_up) index_q <= next;
    if (found) begin
      view_q  <= view;
      empty_q <= empty;
      last_q  <= empty || index_q == view.grant.last_output;
    end
    ahead_q <= found && view_read.ready;
    gone_q  <= gone;
    unique case (state_q)
      IDLE: begin
        result_q  <= result.data;
        outputs_q <= 1'b0;
        if (result.valid) state_q <= view_read.ready ? LOOKED_UP : LOOK_UP;
      end
      LOOKED_UP:
      if (found) begin
        outputs_q <= view.grant.has_output;
        state_q   <= gone_q ? ANSWERED : !skip ? POST : view_read.ready ? LOOKED_UP : LOOK_UP;
      end
      POST:     if (wqe.ready) state_q <= last_q ? ANSWERED : ahead_q || view_read.ready ? LOOKED_UP : LOOK_UP;
      ANSWERED: if (answered.ready) state_q <= IDLE;
      default:  if (view_read.ready) state_q <= LOOKED_UP;
    endcase
    if (rst) state_q <= IDLE;
  end
endmodule
