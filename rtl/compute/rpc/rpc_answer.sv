// SPDX-License-Identifier: Apache-2.0

// Answers calls: one WRITE for every output region in index order, the last with immediate, solicited and signaled; the immediate is the
// number of the context << 24 | the result's code << 8 (0: success). A call that failed, or that has no output, is answered by one WRITE with immediate of length 0 to the
// first output region, or to region 0.
//
// First request 4 cycles after the result if region 0 is the first output, otherwise 6; the others at least 2 cycles apart, faster than
// frames of the minimum size are sent: the transport never waits for the next request. For this the next region is read as soon as one is
// known. If that region's request is not accepted at once, the read is discarded and repeated: 3 cycles then. A call of a closed connection
// is not answered.
//
// An output of more than 2^LONGEST_W bytes is returned by several WRITEs (LONG_SET_UP). Each of them but the last of the region is
// signaled, and `posted` says that there is more: the answer goes on by a further `answer`, from the WRITE that the completion's wr_id
// names, so never more WRITEs of an answer are outstanding than it has outputs, and no answer waits for the transport here.
module rpc_answer
  import memory_pkg::*;
  import roce_pkg::*;
  import compute_pkg::*;
  import rpc_pkg::*;
#(
    parameter bit LONG_SET_UP = 1'b0,                      // outputs may be longer than a WRITE
    parameter int unsigned LONGEST_W = LONGEST_WRITE_W     // a WRITE has at most 2^LONGEST_W bytes
) (
    input  logic         clk,
    input  logic         rst,
    output slot_t        asked,       // this connection
    input  logic         gone,        // is closed. Same cycle
    stream_if.sink       answer,      // answer_t
    stream_if.source     view_read,   // region_key_t
    input  logic         view_valid,
    input  region_view_t view,
    stream_if.source     wqe,         // rdma_wqe_t
    stream_if.source     posted,      // posted_t, after the last request was accepted
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
    POSTED
  } state_e;

  state_e        state_q;
  result_t       result_q;
  region_index_t index_q;          // of the region read last
  logic          outputs_q;        // index_q is the first output or a later one
  region_view_t  view_q;
  logic          gone_q;           // the connection is closed
  logic          last_q;           // the request is the last of the answer,
  logic [31:0]   length_q;         // and this long
  logic          ahead_q;          // the view of the next region is valid in the next cycle

  wire empty = result_q.code != RESULT_SUCCESS || !view.grant.has_output;

  // ---- the WRITEs of a region ----
  typedef logic [SIZE_W-LONGEST_W-1:0] whole_t;  // how many of the longest WRITEs
  part_number_t  part_q;           // number of the WRITE in its region
  logic          more_q;           // the region has another one
  region_index_t posted_q;         // the region
  logic [31:0]   length;
  logic          more;
  region_size_t  offset;           // of the WRITE in its region
  if (LONG_SET_UP) begin : g_parts
    wire whole_t               whole = view.region.size[SIZE_W-1:LONGEST_W];
    wire logic [LONGEST_W-1:0] rest  = view.region.size[LONGEST_W-1:0];
    wire whole_t               part  = whole_t'(part_q);
    assign length = whole != part ? 32'd1 << LONGEST_W : 32'(rest);
    assign more   = whole > part && !(whole == part + 1'b1 && rest == '0);
    assign offset = {part, LONGEST_W'(0)};
  end else begin : g_whole
    assign length = 32'(view.region.size);
    assign more   = 1'b0;
    assign offset = '0;
  end

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
        look_up = answer.valid;
        next    = region_index_t'(answer.data.from.index);
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
        look_up = wqe.ready && !last_q && !more_q && !ahead_q;
        next    = index_q;
      end
      default: look_up = 1'b0;
    endcase
  end
  assign view_read.valid = look_up;
  assign view_read.data  = '{of: state_q == IDLE ? answer.data.result.of : result_q.of, index: next};
  assign answer.ready    = state_q == IDLE;
  assign asked           = result_q.of.slot;

  always_comb begin
    wqe.data             = '0;
    wqe.data.opcode      = last_q ? WR_RDMA_WRITE_WITH_IMM : WR_RDMA_WRITE;
    wqe.data.signaled    = last_q || more_q;
    wqe.data.solicited   = last_q;
    wqe.data.qpn         = qp_number(result_q.of.slot);
    wqe.data.wr_id       = answer_wr_id(result_q.of.number, more_q ? '{index: region_number_t'(posted_q), part: part_q + 1'b1} : '0);
    wqe.data.lkey        = LOCAL_DMA_LKEY;
    wqe.data.local_addr  = view_q.addr;
    wqe.data.length      = length_q;
    wqe.data.remote_addr = view_q.region.host_addr;
    wqe.data.rkey        = view_q.region.host_rkey;
    wqe.data.imm_data    = {8'(result_q.of.number), 24'(result_q.code) << 8};
  end
  assign wqe.valid      = state_q == POST;
  assign posted.valid   = state_q == POSTED;
  assign posted.data    = '{of: result_q.of, more: more_q};
  wire over = state_q == POSTED && posted.ready && !more_q;
  wire good = result_q.code == RESULT_SUCCESS && !gone_q;
  assign finished       = over && good;
  assign failed         = over && !good;
  assign cancelled      = over && result_q.code == RESULT_CANCELLED && !gone_q;
  assign idle           = state_q == IDLE && !answer.valid;

  always_ff @(posedge clk) begin
    if (look_up) index_q <= next;
    if (found) begin
      view_q   <= view;
      view_q.addr             <= view.addr + addr_t'(offset);
      view_q.region.host_addr <= view.region.host_addr + 64'(offset);
      length_q <= empty ? '0 : length;
      more_q   <= more && !empty;
      last_q   <= empty || index_q == view.grant.last_output && !more;
      posted_q <= index_q;
    end
    ahead_q <= found && view_read.ready;
    gone_q  <= gone;
    unique case (state_q)
      IDLE: begin
        result_q  <= answer.data.result;
        part_q    <= answer.data.from.part;
        outputs_q <= answer.data.from.part != '0;
        if (answer.valid) state_q <= view_read.ready ? LOOKED_UP : LOOK_UP;
      end
      LOOKED_UP:
      if (found) begin
        outputs_q <= view.grant.has_output;
        state_q   <= gone_q ? POSTED : !skip ? POST : view_read.ready ? LOOKED_UP : LOOK_UP;
      end
      POST:
      if (wqe.ready) begin
        part_q  <= '0;
        state_q <= last_q || more_q ? POSTED : ahead_q || view_read.ready ? LOOKED_UP : LOOK_UP;
      end
      POSTED:   if (posted.ready) state_q <= IDLE;
      default:  if (view_read.ready) state_q <= LOOKED_UP;
    endcase
    if (rst) state_q <= IDLE;
  end
endmodule
