// SPDX-License-Identifier: Apache-2.0

// Executes the atomics queued by the QPs, one at a time: the listed QPs are served round-robin, each with its oldest atomic, and listed
// again afterwards. So a QP waits for at most one atomic of each other QP, however many are queued. The key must be valid when the atomic
// is executed; else the result is `denied`. After an atomic of a QP has failed, no further one of that QP is executed.
//
// From `list` to memory 4 cycles. While `finished` stalls, no other atomic begins. QPs out of service are skipped.
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

    output qp_index_t     index,     // the QP whose tables are read
    input  rsp_atomic_t   tail,      // atomics queued
    input  rsp_executed_t executed,
    input  logic          live,      // in service

    output logic           look,     // read the operation at the index in `executed`
    input  rsp_operation_t operation,  // valid a cycle later, until the next read
    output logic [31:0]    key,
    input  logic           key_live,   // still valid, one cycle later

    stream_if.source finished,       // rsp_result_t
    output qp_index_t     at,        // of this QP,
    output rsp_atomic_t   place,     // its index in the cache,
    output rsp_executed_t done,      // and the QP's new `executed` word
    stream_if.source again,          // qp_index_t: list this QP again

    axi_if.master mem,
    output logic executing,          // an atomic of QP `at` is in progress
    output logic idle
);
  typedef enum logic [2:0] {
    E_IDLE,
    E_LOOK,      // the operation is read
    E_CHECK,     // its key is checked
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

  // One at a time: the unit is idle when an operation starts.
  always_ff @(posedge clk) if (!rst) assert (!op.valid || atomic_idle);

  logic unused_ok;
  assign unused_ok = &{1'b0, op.ready};
endmodule
