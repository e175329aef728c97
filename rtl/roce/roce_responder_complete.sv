// SPDX-License-Identifier: Apache-2.0

// Holds completions and command answers back until memory has confirmed all data before them, of any QP, in order.
//
// One entry a cycle. Latency: 1 cycle (2 with more than 64 receives in all) from `pending` or `done` to `completion`.
// There is room for a completion of every receive that can be posted, so the receive side never stops for `completion`;
// a command's answer waits until the completions before it were taken.
// Data that memory refuses: the completions of its QP from there on say WC_LOC_PROT_ERR, and the QP is named once on
// `fault`, which has room for every QP. SETUP and RESET of a QP forget that.
module roce_responder_complete
  import memory_pkg::*;
  import roce_pkg::*;
  import roce_rx_pkg::*;
#(
    parameter int unsigned QPS      = 16,
    parameter int unsigned RQ_DEPTH = 4,
    parameter int unsigned PENDING  = 64    // power of two: packets between decision and memory's confirmation
) (
    input  logic     clk,
    input  logic     rst,
    stream_if.sink   pending,               // action_t
    stream_if.sink   done,                  // dma_done_t, one for each pending action that writes
    stream_if.sink   reject,                // rdma_cqe_t of a receive that could not be posted
    stream_if.source completion,            // rdma_cqe_t
    stream_if.source answer,                // logic
    stream_if.source fault,                 // qpn_t
    output logic     idle
);
  // What of an action waits.
  typedef struct packed {
    logic      write;
    logic      completes;
    logic      answers;
    logic      answer;
    rdma_cqe_t cqe;
  } entry_t;
  typedef struct packed {
    logic      answers;
    logic      answer;
    rdma_cqe_t cqe;
  } outcome_t;

  localparam int unsigned SLOT_W = $clog2(QPS);
  typedef logic [SLOT_W-1:0] slot_t;

  action_t   incoming;
  entry_t    head;
  outcome_t  leaving;
  dma_done_t result;
  logic      queue_empty, outcomes_empty, faults_empty;

  stream_if #(.T(entry_t)) entering ();
  stream_if #(.T(entry_t)) waiting ();
  stream_if #(.T(outcome_t)) outcome ();
  stream_if #(.T(outcome_t)) ready_outcome ();
  stream_if #(.T(qpn_t)) refused ();

  assign incoming       = pending.data;
  assign entering.valid = pending.valid;
  assign entering.data  = {incoming.write, incoming.completes, incoming.answers, incoming.answer, incoming.cqe};
  assign pending.ready  = entering.ready;

  stream_fifo #(.T(entry_t), .DEPTH(PENDING)) queue (.clk, .rst, .in(entering), .out(waiting), .empty(queue_empty));

  // ---- the oldest ----
  (* ram_style = "distributed" *) logic [0:0] failed[QPS];

  assign head   = waiting.data;
  assign result = done.data;

  wire slot_t slot    = slot_t'(qp_index(head.cqe.qpn));
  wire reports        = head.completes || head.answers;
  wire confirmed      = !head.write || done.valid;
  wire may_report     = !reports || outcome.ready;
  wire own            = waiting.valid && confirmed && reports;
  wire leaves         = waiting.valid && confirmed && may_report;
  wire refused_now    = head.write && result.error;
  wire failed_before  = failed[slot];

  assign waiting.ready = confirmed && may_report;
  assign done.ready    = waiting.valid && head.write && may_report;

  always_ff @(posedge clk) begin
    if (leaves && (head.answers ? head.answer : refused_now)) failed[slot] <= !head.answers;
  end

  assign refused.valid = leaves && refused_now && !failed_before;
  assign refused.data  = head.cqe.qpn;

  stream_fifo #(.T(qpn_t), .DEPTH(2 ** SLOT_W)) faults (.clk, .rst, .in(refused), .out(fault), .empty(faults_empty));

  // ---- outcomes; a receive that was rejected takes a free cycle ----
  always_comb begin
    outcome.valid = own || reject.valid;
    outcome.data  = '{answers: head.answers, answer: head.answer, cqe: head.cqe};
    if ((refused_now || failed_before) && head.cqe.status == WC_SUCCESS) outcome.data.cqe.status = WC_LOC_PROT_ERR;
    if (!own) outcome.data = '{answers: 1'b0, answer: 1'b0, cqe: reject.data};
  end
  assign reject.ready = outcome.ready && !own;

  stream_fifo #(.T(outcome_t), .DEPTH(2 ** SLOT_W * RQ_DEPTH)) outcomes (
      .clk, .rst, .in(outcome), .out(ready_outcome), .empty(outcomes_empty)
  );

  assign leaving             = ready_outcome.data;
  assign completion.valid    = ready_outcome.valid && !leaving.answers;
  assign completion.data     = leaving.cqe;
  assign answer.valid        = ready_outcome.valid && leaving.answers;
  assign answer.data         = leaving.answer;
  assign ready_outcome.ready = leaving.answers ? answer.ready : completion.ready;

  assign idle = queue_empty && outcomes_empty && faults_empty && !reject.valid;

  always_ff @(posedge clk) if (!rst && refused.valid) assert (refused.ready);
endmodule
