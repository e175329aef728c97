// SPDX-License-Identifier: Apache-2.0

// Executes the outcomes that memory has confirmed (roce_responder_confirm): responses, completions and command answers, in order.
//
// One outcome a cycle (two for a READ or atomic that closes a gap of selective repeat, and for an outcome that changes `failed` of its QP).
// Latency: 1 cycle from `confirmed` to `respond`, 2 to `completion`, which never precedes the response to the same packet. While `respond`,
// `completion` or `answer` is stalled, all later outcomes stall. An outcome that follows the invalidation of a key requests a fence from
// the response unit and leaves; the completion of a SEND with invalidate then waits for the fence, and up to TELLING completions and answers
// wait behind it. If memory reports an error for the payload, or the payload has lapsed, the packet is answered with a NAK (remote
// operational error) and the QP is reported once on `fault`, which has an entry for every QP. From then on no request of the QP is answered
// and its completions have the status WC_LOC_PROT_ERR, until the QP is set up again or reset.
module roce_responder_complete
  import memory_pkg::*;
  import roce_wire_pkg::*;
  import roce_pkg::*;
  import roce_rx_pkg::*;
#(
    parameter int unsigned QPS = 16,
    parameter int unsigned TELLING = 32     // reports queued, and one more; a power of two
) (
    input  logic            clk,
    input  logic            rst,
    stream_if.sink          confirmed,      // confirmed_t
    stream_if.sink          reject,         // rx_reject_t: a receive that could not be posted
    stream_if.source        respond,        // respond_t
    stream_if.source        completion,     // rdma_cqe_t
    stream_if.source        answer,         // logic
    stream_if.source        fault,          // qpn_t
    output logic            fence,          // pulse: request a fence of the response unit
    input  fence_t          fence_number,   // the fence requested now
    input  fence_t          fences_through,
    output logic            fenced,         // pulse: an outcome that consists of a fence only has left
    output logic            idle
);
  // A report: a completion, an answer, or the completion followed by the answer.
  typedef struct packed {
    logic      completes;
    logic      answers;
    logic      answer;
    logic      waits;                       // for this fence
    fence_t    number;
    rdma_cqe_t cqe;
  } told_t;

  localparam int unsigned SLOT_W = $clog2(QPS);
  typedef logic [SLOT_W-1:0] slot_t;

  outcome_t   head;
  execution_t execution;
  report_t    report;
  rx_reject_t rejected;
  told_t      telling, leaving;
  confirmed_t confirmed_now, oldest_q;
  logic       faults_empty, told_empty;

  stream_if #(.T(told_t)) told ();
  stream_if #(.T(told_t)) kept ();
  stream_if #(.T(slot_t)) refused ();
  stream_if #(.T(slot_t)) blamed ();

  // ---- the oldest outcome, and whether its QP has failed: an outcome that changes this leaves before the next one is read ----
  (* ram_style = "distributed" *) logic [0:0] failed[QPS];

  logic  oldest_valid_q, failed_before_q;
  slot_t next_slot;
  assign confirmed_now = confirmed.data;
  assign next_slot     = slot_t'(qp_index(confirmed_now.outcome.qpn));
  assign head      = oldest_q.outcome;
  assign execution = head.body.execution;
  assign report    = head.body.report;
  assign rejected  = reject.data;

  logic       room_q;                       // the report queue has an entry free, also after the report of this cycle
  logic       executed_q;                   // the READ or atomic of the oldest outcome was handed over
  wire slot_t slot          = slot_t'(qp_index(head.qpn));
  wire        reports       = head.completes || head.answers;
  wire        own           = oldest_valid_q && reports;
  wire        refused_now   = oldest_q.error;
  wire        silent        = refused_now || failed_before_q;
  wire        blames        = refused_now && !failed_before_q;
  wire        changes       = head.renews || blames;
  wire        executes      = head.executes && !silent && !executed_q;
  wire        acks          = blames || (head.acks && !silent);
  wire        responded     = !executes && (!acks || respond.ready);
  wire        may_report    = !reports || room_q;
  wire        leaves        = oldest_valid_q && may_report && responded;

  assign confirmed.ready = !oldest_valid_q || (leaves && !changes);
  assign fence         = leaves && head.fences;
  assign fenced        = fence && !head.completes;

  always_ff @(posedge clk) begin
    if (confirmed.ready) begin
      oldest_q        <= confirmed_now;
      failed_before_q <= failed[next_slot];
    end
    if (leaves && changes) failed[slot] <= blames;
    if (rst) oldest_valid_q <= 1'b0;
    else oldest_valid_q <= confirmed.ready ? confirmed.valid : !leaves;
    executed_q <= !rst && !leaves && (executed_q || (respond.valid && respond.ready && executes));
  end

  assign refused.valid = leaves && blames;
  assign refused.data  = slot;

  stream_fifo #(.T(slot_t), .DEPTH(2 ** SLOT_W), .BLOCK_RAM(QPS > 256)) faults (
      .clk, .rst, .in(refused), .out(blamed), .empty(faults_empty)
  );
  assign fault.valid  = blamed.valid;
  assign fault.data   = qp_number(qp_index_t'(blamed.data));
  assign blamed.ready = fault.ready;

  // ---- responses ----
  respond_t reply;
  always_comb begin
    reply = '{
        kind: execution.atomic ? RESPOND_ATOMIC : RESPOND_READ,
        duplicate: execution.duplicate,
        qpn: head.qpn,
        psn: head.psn,
        aeth: head.aeth,
        path_mtu: execution.path_mtu,
        addr: execution.addr,
        target: execution.target,
        rkey: execution.rkey,
        length: execution.of.read.length,
        compare_swap: execution.of.operands.compare_swap,
        swap_add: execution.of.operands.swap_add,
        compare: execution.of.operands.compare
    };
    if (!executes) begin
      reply.kind      = RESPOND_ACK;
      reply.duplicate = 1'b0;
      if (blames) begin
        reply.aeth = {SYNDROME_NAK_REM_OP, head.aeth.msn - 24'(head.last)};
      end else begin
        reply.psn = head.ack_psn;
        reply.aeth.msn = head.aeth.msn + 24'(head.behind);
        if (head.gap) reply.aeth = {SYNDROME_NAK_PSN_SEQ, head.psn};
      end
    end
  end

  assign respond.valid = oldest_valid_q && may_report && (executes || acks);
  assign respond.data  = reply;

  // ---- reports; a rejected receive takes a free cycle ----
  always_comb begin
    telling = '{
        completes: head.completes,
        answers: head.answers,
        answer: head.answer,
        waits: head.fences,
        number: fence_number,
        cqe: '{
            status: silent && report.status == WC_SUCCESS ? WC_LOC_PROT_ERR : report.status,
            opcode: report.of_write ? WC_RECV_RDMA_WITH_IMM : WC_RECV,
            with_imm: report.with_imm,
            with_inv: report.with_inv,
            solicited: report.solicited,
            qpn: head.qpn,
            wr_id: report.wr_id,
            byte_len: report.byte_len,
            imm_data: report.imm_data
        }
    };
    if (!own) begin
      telling.completes     = 1'b1;
      telling.answers       = 1'b0;
      telling.waits         = 1'b0;
      telling.cqe.status    = WC_GENERAL_ERR;
      telling.cqe.opcode    = WC_RECV;
      telling.cqe.with_imm  = 1'b0;
      telling.cqe.with_inv  = 1'b0;
      telling.cqe.solicited = 1'b0;
      telling.cqe.qpn       = rejected.qpn;
      telling.cqe.wr_id     = rejected.wr_id;
      telling.cqe.byte_len  = '0;
    end
  end
  assign told.valid   = room_q && (own ? responded : reject.valid);
  assign told.data    = telling;
  assign reject.ready = room_q && !own;

  logic [$clog2(TELLING)+1:0] telling_q;      // reports in the queue
  always_ff @(posedge clk) begin
    room_q <= !rst && telling_q < $bits(telling_q)'(TELLING);
    if (rst) telling_q <= '0;
    else telling_q <= telling_q + $bits(telling_q)'(told.valid) - $bits(telling_q)'(kept.valid && kept.ready);
    if (!rst && told.valid) assert (told.ready);
  end

  stream_fifo #(.T(told_t), .DEPTH(TELLING)) telling_queue (.clk, .rst, .in(told), .out(kept), .empty(told_empty));

  logic completed_q;                          // the completion of the current report was taken
  logic reached_q;                            // the fence of the current report has completed; known one cycle after the report
  assign leaving          = kept.data;
  wire held = leaving.waits && !reached_q;
  assign completion.valid = kept.valid && leaving.completes && !completed_q && !held;
  assign completion.data  = leaving.cqe;
  assign answer.valid     = kept.valid && leaving.answers && (!leaving.completes || completed_q);
  assign answer.data      = leaving.answer;
  assign kept.ready       = leaving.answers ? answer.valid && answer.ready : completion.ready && !held;
  always_ff @(posedge clk) begin
    reached_q   <= !rst && kept.valid && !kept.ready && fence_reached(fences_through, leaving.number);
    completed_q <= !rst && leaving.answers && (completed_q || (completion.valid && completion.ready)) && !kept.ready;
  end

  assign idle = !oldest_valid_q && told_empty && faults_empty && !reject.valid;

  always_ff @(posedge clk) begin
    if (!rst && refused.valid) assert (refused.ready);
  end
endmodule
