// SPDX-License-Identifier: Apache-2.0

// Carries out the atomics that wait in the QPs' queues, one at a time: the listed QPs take turns, each with its oldest; one that has been
// served is listed again. So a QP waits for one atomic of each other at most, however many these have. The key must be valid when
// its turn comes; else the result says that it is denied. After an atomic that failed none of its QP is carried out.
//
// From `list` to memory 4 cycles. When `finished` stops no other atomic begins. QPs that are not in service are passed over.
module roce_response_atomics
  import roce_pkg::*;
  import roce_response_pkg::*;
#(
    parameter int unsigned DATA_W = 512,
    parameter int unsigned ID_W   = 4
) (
    input logic clk,
    input logic rst,

    stream_if.sink list,             // qp_index_t

    output qp_index_t     index,     // whose tables are looked at
    input  rsp_atomic_t   tail,      // atomics queued
    input  rsp_executed_t executed,
    input  logic          live,      // in service

    output logic           look,     // read the operation at the place `executed` says
    input  rsp_operation_t operation,  // a cycle later, until the next
    output logic [31:0]    key,
    input  logic           key_live,   // it is valid, a cycle later

    stream_if.source finished,       // rsp_result_t of
    output qp_index_t     at,        // this QP,
    output rsp_atomic_t   place,     // in the cache,
    output rsp_executed_t done,      // and what is done of the QP then
    stream_if.source again,          // qp_index_t: to be listed again

    axi_if.master mem,
    output logic executing,          // an atomic of QP `at` is on its way
    output logic idle
);
  typedef enum logic [2:0] {
    E_IDLE,
    E_LOOK,      // the operation arrives
    E_CHECK,     // its key was looked up
    E_EXECUTE,
    E_AGAIN
  } state_e;

  state_e        state_q;
  qp_index_t     index_q;
  rsp_executed_t executed_q;
  rsp_result_t   result;
  logic          atomic_idle;

  stream_if #(.T(atomic_op_t)) op ();
  stream_if #(.T(rsp_result_t)) result_out ();

  wire waits = live && !executed.stopped && tail != executed.count;

  assign index      = list.data;
  assign list.ready = state_q == E_IDLE;
  assign look       = list.valid && list.ready;
  assign key        = operation.rkey;
  assign op.valid   = state_q == E_CHECK;
  assign op.data    = '{denied: !key_live, operation: operation};

  roce_atomic #(
      .DATA_W(DATA_W),
      .ID_W  (ID_W)
  ) unit (
      .clk,
      .rst,
      .op,
      .done(result_out),
      .mem,
      .idle(atomic_idle)
  );

  assign result           = result_out.data;
  assign finished.valid   = result_out.valid;
  assign finished.data    = result;
  assign result_out.ready = finished.ready;
  assign at               = index_q;
  assign place            = executed_q.count;
  assign done             = '{stopped: result.error || result.denied, count: executed_q.count + 1'b1};
  assign again.valid      = state_q == E_AGAIN;
  assign again.data       = index_q;
  assign executing        = state_q != E_IDLE;
  assign idle             = state_q == E_IDLE && !list.valid;

  always_ff @(posedge clk) begin
    if (look) begin
      index_q    <= index;
      executed_q <= executed;
    end
    if (rst) state_q <= E_IDLE;
    else begin
      unique case (state_q)
        E_IDLE:    if (look && waits) state_q <= E_LOOK;
        E_LOOK:    state_q <= E_CHECK;
        E_CHECK:   state_q <= E_EXECUTE;
        E_EXECUTE: if (finished.valid && finished.ready) state_q <= E_AGAIN;
        default:   if (again.ready) state_q <= E_IDLE;
      endcase
    end
  end

  // One at a time: the unit is free for it.
  always_ff @(posedge clk) if (!rst) assert (!op.valid || atomic_idle);

  logic unused_ok;
  assign unused_ok = &{1'b0, op.ready};
endmodule
