// SPDX-License-Identifier: Apache-2.0

// Answers calls: a WRITE for every output region in index order, the last with immediate, solicited and signaled; the
// immediate is the result's code << 8 (0: success). A call that failed, or that has no output, is answered by one WRITE with
// immediate of length 0 to the first output region, or to region 0.
//
// First request 4 cycles after the result if region 0 is the first output, otherwise 6; the others 2 cycles apart at best, faster
// than frames of the least size leave: the transport must never wait for work once it has begun. So the next region is looked up as
// soon as one is known. If that region's request is not taken at once the look-up is discarded and repeated behind it: 3 cycles
// then. A call of a connection that is closed is answered by nothing.
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
  region_index_t index_q;          // of the region looked up last
  logic          outputs_q;        // index_q is the first output or behind it
  region_view_t  view_q;
  logic          gone_q;           // the connection is closed
  logic          empty_q, last_q;  // the request has length 0; is the answer's last
  logic          ahead_q;          // the next region's view comes in the next cycle

  wire empty = result_q.code != RESULT_SUCCESS || !view.grant.has_output;

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
  assign view_read.data  = '{slot: state_q == IDLE ? result.data.slot : result_q.slot, index: next};
  assign result.ready    = state_q == IDLE;
  assign asked           = result_q.slot;

  always_comb begin
    wqe.data             = '0;
    wqe.data.opcode      = last_q ? WR_RDMA_WRITE_WITH_IMM : WR_RDMA_WRITE;
    wqe.data.signaled    = last_q;
    wqe.data.solicited   = last_q;
    wqe.data.qpn         = qp_number(result_q.slot);
    wqe.data.lkey        = LOCAL_DMA_LKEY;
    wqe.data.local_addr  = view_q.addr;
    wqe.data.length      = empty_q ? '0 : view_q.region.size;
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
