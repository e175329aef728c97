// SPDX-License-Identifier: Apache-2.0

// Holds outcomes until memory has confirmed all writes before them, and releases them one by one; the outcomes of a QP stay in order.
//
// Each memory has a *lane*, a queue of outcomes. An outcome enters the lane of the memory it writes, or a later lane in which its QP
// already has an outcome; so the outcomes of a QP that uses several memories wait in the last of their lanes, and none passes another.
// There an outcome also waits until everything that was in the earlier lanes when it entered has left. A lane waits for earlier lanes only:
// memories are numbered from the fastest to the slowest, and no QP waits for a memory later than its own.
//
// Latency with one lane: 2 cycles from `outcome`, 1 from `done` or `dispatched`, to `confirmed`; with several lanes 2 cycles more. One
// outcome a cycle. When `confirmed` is stalled, outcomes are held; the sender must not exceed the depth of a lane.
module roce_responder_confirm
  import memory_pkg::*;
  import roce_pkg::*;
  import roce_rx_pkg::*;
#(
    parameter int unsigned LANES   = 1,
    parameter int unsigned PENDING = 64,    // outcomes in the first lane,
    parameter int unsigned FAR_PENDING = 256 // and in each of the others; powers of two, PENDING <= FAR_PENDING
) (
    input  logic             clk,
    input  logic             rst,
    stream_if.sink           outcome,        // outcome_t
    input  target_t          target,         // the memory that it writes
    input  target_t          lane,           // the lane that it waits in
    input  logic             dispatched,     // pulse, one for each outcome: its immediate action was dispatched
    input  target_t          dispatched_lane,
    stream_if.sink           done[LANES],    // dma_done_t of each memory, one for each outcome that writes
    stream_if.source         confirmed,      // confirmed_t
    output logic [LANES-1:0] left,           // pulse: an outcome has left this lane
    output qp_index_t        left_index[LANES],  // its QP
    output logic             idle
);
  typedef logic [$clog2(FAR_PENDING):0] pending_t;

  if (LANES == 1) begin : g_one
    stream_if #(.T(outcome_t)) waiting ();
    outcome_t  head;
    dma_done_t result;
    pending_t  dispatched_q;                 // outcomes held here that were dispatched
    stream_fifo #(.T(outcome_t), .DEPTH(PENDING), .BLOCK_RAM(1'b1)) queue (.clk, .rst, .in(outcome), .out(waiting), .empty(idle));

    assign head            = waiting.data;
    assign result          = done[0].data;
    assign confirmed.valid = waiting.valid && dispatched_q != '0 && (!head.write || done[0].valid);
    assign confirmed.data  = '{error: head.lapsed || (head.write && result.error), outcome: head};
    assign left[0]         = confirmed.valid && confirmed.ready;
    assign left_index[0]   = qp_index_t'(qp_index(head.qpn));
    assign waiting.ready   = left[0];
    assign done[0].ready   = left[0] && head.write;
    always_ff @(posedge clk) dispatched_q <= rst ? '0 : dispatched_q + pending_t'(dispatched) - pending_t'(left[0]);

    logic unused_ok;
    assign unused_ok = &{1'b0, target, lane, dispatched_lane};
  end else begin : g_several
    stream_if #(.T(confirmed_t)) leaving[LANES] ();
    logic [LANES-1:0] none_waiting, outcome_ready, owner_ready, leaves, head_writes;
    target_t          head_target[LANES];
    // By lane and memory; the outcomes of a lane write only its own memory and those of earlier lanes.
    targets_t [MAX_TARGETS-1:0] result_ready, result_valid, result_error;
    for (genvar l = LANES; l < MAX_TARGETS; l++) begin : g_no_lane
      assign result_ready[l] = '0;
      assign result_valid[l] = '0;
      assign result_error[l] = '0;
    end
    for (genvar l = 0; l < LANES; l++) begin : g_no_memory
      for (genvar t = l + 1; t < MAX_TARGETS; t++) begin : g_never
        assign result_ready[l][t] = 1'b0;
        assign result_valid[l][t] = 1'b0;
        assign result_error[l][t] = 1'b0;
      end
    end

    stream_arbiter #(.T(confirmed_t), .N(LANES)) merge (.clk, .rst, .in(leaving), .last('1), .out(confirmed));
    wire push = outcome.valid && outcome.ready;
    assign outcome.ready = (&outcome_ready) && (&owner_ready);
    assign idle          = (&none_waiting) && !confirmed.valid;
    assign left          = leaves;

    // ---- each memory: the lanes of its writes in progress ----
    for (genvar t = 0; t < LANES; t++) begin : g_memory
      stream_if #(.T(target_t)) owner_in ();
      stream_if #(.T(target_t)) owner ();
      assign owner_in.valid = push && outcome.data.write && target == target_t'(t);
      assign owner_in.data  = lane;
      assign owner_ready[t] = owner_in.ready;
      stream_fifo #(.T(target_t), .DEPTH(2 ** $clog2(LANES * FAR_PENDING))) owners (.clk, .rst, .in(owner_in), .out(owner), .empty());
      assign owner.ready    = done[t].valid && result_ready[owner.data][t];
      assign done[t].ready  = owner.valid && result_ready[owner.data][t];

      for (genvar l = t; l < LANES; l++) begin : g_results
        stream_if #(.T(logic)) result_in ();
        stream_if #(.T(logic)) result ();
        assign result_in.valid    = owner.valid && done[t].valid && owner.data == target_t'(l);
        assign result_in.data     = done[t].data.error;
        assign result_ready[l][t] = result_in.ready;
        stream_fifo #(.T(logic), .DEPTH(l == 0 ? PENDING : FAR_PENDING)) results (.clk, .rst, .in(result_in), .out(result), .empty());
        assign result_valid[l][t] = result.valid;
        assign result_error[l][t] = result.data;
        assign result.ready       = leaves[l] && head_writes[l] && head_target[l] == target_t'(t);
      end
    end

    // ---- each lane: its outcomes ----
    for (genvar l = 0; l < LANES; l++) begin : g_lane
      typedef struct packed {
        target_t  target;
        outcome_t outcome;
      } waiting_t;
      stream_if #(.T(waiting_t)) waiting_in ();
      stream_if #(.T(waiting_t)) waiting ();
      waiting_t   head;
      confirmed_t now;
      pending_t   dispatched_q;              // outcomes held here that were dispatched
      logic       fenced;                    // everything ahead of it in the earlier lanes has left
      assign waiting_in.valid = push && lane == target_t'(l);
      assign waiting_in.data  = '{target: target, outcome: outcome.data};
      assign outcome_ready[l] = waiting_in.ready;
      stream_fifo #(.T(waiting_t), .DEPTH(l == 0 ? PENDING : FAR_PENDING), .BLOCK_RAM(1'b1)) queue (
          .clk, .rst, .in(waiting_in), .out(waiting), .empty(none_waiting[l])
      );

      assign head             = waiting.data;
      assign head_writes[l]   = head.outcome.write;
      assign head_target[l]   = head.target;
      assign now              = '{error: head.outcome.lapsed || (head.outcome.write && result_error[l][head.target]), outcome: head.outcome};
      assign leaving[l].valid = waiting.valid && dispatched_q != '0 && fenced && (!head.outcome.write || result_valid[l][head.target]);
      assign leaving[l].data  = now;
      assign leaves[l]        = leaving[l].valid && leaving[l].ready;
      assign waiting.ready    = leaves[l];
      assign left_index[l]    = qp_index_t'(qp_index(head.outcome.qpn));
      always_ff @(posedge clk) begin
        if (rst) dispatched_q <= '0;
        else dispatched_q <= dispatched_q + pending_t'(dispatched && dispatched_lane == target_t'(l)) - pending_t'(leaves[l]);
      end

      if (l == 0) begin : g_first
        assign fenced = 1'b1;
      end else begin : g_behind
        logic [l-1:0] reached;
        for (genvar k = 0; k < l; k++) begin : g_before
          roce_lane_fence #(.PENDING(FAR_PENDING)) fence (
              .clk, .rst, .push(waiting_in.valid), .pop(leaves[l]), .enters(push && lane == target_t'(k)), .passes(leaves[k]),
              .reached(reached[k])
          );
        end
        assign fenced = &reached;
      end
    end
  end
endmodule
