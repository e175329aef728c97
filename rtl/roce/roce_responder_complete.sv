// SPDX-License-Identifier: Apache-2.0

// Holds responses, completions and command answers back until memory has confirmed all data before them, of any QP, in order.
//
// One entry a cycle (two for a READ or atomic that closes a gap of selective repeat). Latency: 1 cycle from `pending` or `done`
// to `respond`, 2 more (3 with more than 64 receives in all) to `completion`, which never comes before the response of the same
// packet was handed over. While `respond` stops, everything behind waits. There is room for a completion of every receive that
// can be posted, so the receive side never stops for `completion`; a command's answer waits until those before it were taken.
// Data that memory refuses: the packet is answered with a NAK (remote operational error) and the QP is named once on
// `fault`, which has room for every QP. From there on nothing of it is answered any more and its completions say
// WC_LOC_PROT_ERR, until the QP is set up again or reset.
module roce_responder_complete
  import memory_pkg::*;
  import roce_pkg::*;
  import roce_rx_pkg::*;
#(
    parameter int unsigned QPS      = 16,
    parameter int unsigned RQ_DEPTH = 4,
    parameter int unsigned PENDING  = 64    // power of two: packets between decision and memory's confirmation
) (
    input  logic            clk,
    input  logic            rst,
    stream_if.sink          pending,        // action_t
    stream_if.sink          done,           // dma_done_t, one for each pending action that writes
    stream_if.sink          reject,         // rdma_cqe_t of a receive that could not be posted
    stream_if.source        respond,        // respond_t
    stream_if.source        completion,     // rdma_cqe_t
    stream_if.source        answer,         // logic
    stream_if.source        fault,          // qpn_t
    output logic            idle
);
  // What of an action waits.
  typedef struct packed {
    logic      write;
    logic      last;
    logic      executes;
    logic      acks;
    logic      gap;
    psn_t      ack_psn;
    respond_t  respond;
    logic      completes;
    logic      answers;
    logic      answer;
    logic      renews;
    rdma_cqe_t cqe;
  } entry_t;
  typedef struct packed {
    logic      completes;                   // before it answers, if it does both
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
  stream_if #(.T(outcome_t)) kept ();
  stream_if #(.T(outcome_t)) ready_outcome ();
  stream_if #(.T(qpn_t)) refused ();

  assign incoming       = pending.data;
  assign entering.valid = pending.valid;
  assign entering.data  = '{
      write: incoming.write,
      last: incoming.last,
      executes: incoming.executes,
      acks: incoming.acks,
      gap: incoming.gap,
      ack_psn: incoming.ack_psn,
      respond: incoming.respond,
      completes: incoming.completes,
      answers: incoming.answers,
      answer: incoming.answer,
      renews: incoming.renews,
      cqe: incoming.cqe
  };
  assign pending.ready = entering.ready;

  stream_fifo #(.T(entry_t), .DEPTH(PENDING), .BLOCK_RAM(1'b0)) queue (
      .clk, .rst, .in(entering), .out(waiting), .empty(queue_empty)
  );

  // ---- the oldest ----
  (* ram_style = "distributed" *) logic [0:0] failed[QPS];

  assign head   = waiting.data;
  assign result = done.data;

  logic       executed_q;                   // the READ or atomic of the oldest was handed over
  wire slot_t slot          = slot_t'(qp_index(head.cqe.qpn));
  wire        reports       = head.completes || head.answers;
  wire        confirmed     = waiting.valid && (!head.write || done.valid);
  wire        own           = confirmed && reports;
  wire        refused_now   = head.write && result.error;
  wire        failed_before = failed[slot];
  wire        silent        = refused_now || failed_before;
  wire        blames        = refused_now && !failed_before;
  wire        executes      = head.executes && !silent && !executed_q;
  wire        acks          = blames || (head.acks && !silent);
  wire        responded     = !executes && (!acks || respond.ready);
  wire        may_report    = !reports || outcome.ready;
  wire        leaves        = confirmed && may_report && responded;

  assign waiting.ready = leaves;
  assign done.ready    = leaves && head.write;

  always_ff @(posedge clk) begin
    if (leaves && (head.renews || blames)) failed[slot] <= blames;
    executed_q <= !rst && !leaves && (executed_q || (respond.valid && respond.ready && executes));
  end

  assign refused.valid = leaves && blames;
  assign refused.data  = head.cqe.qpn;

  stream_fifo #(.T(qpn_t), .DEPTH(2 ** SLOT_W)) faults (.clk, .rst, .in(refused), .out(fault), .empty(faults_empty));

  // ---- what the peer is answered ----
  respond_t reply;
  always_comb begin
    reply = head.respond;
    if (blames) begin
      reply.kind = RESPOND_ACK;
      reply.aeth = {SYNDROME_NAK_REM_OP, head.respond.aeth.msn - 24'(head.last)};
    end else if (!executes) begin
      reply.kind = RESPOND_ACK;
      reply.psn  = head.ack_psn;
      if (head.gap) reply.aeth = {SYNDROME_NAK_PSN_SEQ, head.respond.psn};
    end
    // Of no meaning in an acknowledgement.
    if (reply.kind == RESPOND_ACK) reply.duplicate = 1'b0;
  end

  assign respond.valid = confirmed && may_report && (executes || acks);
  assign respond.data  = reply;

  // ---- outcomes; a receive that was rejected takes a free cycle ----
  always_comb begin
    outcome.valid = own ? responded : reject.valid;
    outcome.data  = '{completes: head.completes, answers: head.answers, answer: head.answer, cqe: head.cqe};
    if (silent && head.cqe.status == WC_SUCCESS) outcome.data.cqe.status = WC_LOC_PROT_ERR;
    if (!own) outcome.data = '{completes: 1'b1, answers: 1'b0, answer: 1'b0, cqe: reject.data};
  end
  assign reject.ready = outcome.ready && !own;

  stream_slice #(.T(outcome_t)) slice (.clk, .rst, .in(outcome), .out(kept));
  stream_fifo #(.T(outcome_t), .DEPTH(2 ** SLOT_W * RQ_DEPTH)) outcomes (
      .clk, .rst, .in(kept), .out(ready_outcome), .empty(outcomes_empty)
  );

  logic completed_q;                          // the completion of the outcome at the end was taken
  assign leaving             = ready_outcome.data;
  assign completion.valid    = ready_outcome.valid && leaving.completes && !completed_q;
  assign completion.data     = leaving.cqe;
  assign answer.valid        = ready_outcome.valid && leaving.answers && (!leaving.completes || completed_q);
  assign answer.data         = leaving.answer;
  assign ready_outcome.ready = leaving.answers ? answer.valid && answer.ready : completion.ready;
  always_ff @(posedge clk) begin
    completed_q <= !rst && leaving.answers && (completed_q || (completion.valid && completion.ready)) && !ready_outcome.ready;
  end

  assign idle = queue_empty && !kept.valid && outcomes_empty && faults_empty && !reject.valid;

  always_ff @(posedge clk) if (!rst && refused.valid) assert (refused.ready);
endmodule
