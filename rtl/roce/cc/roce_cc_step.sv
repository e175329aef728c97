// SPDX-License-Identifier: Apache-2.0

// The arithmetic of the reaction point: one step of one QP (docs/reference/congestion.md, "Arithmetic"; DCQCN, Zhu et al.,
// SIGCOMM 2015, section 5 and figure 7). Only this unit writes the QPs' states.
//
// One step at a time, with one multiplier: the state is read a word a cycle, processed as it arrives, and written back a word a cycle. A
// step is accepted when `ready`; the result follows 2 cycles later if the QP is not limited and stays so, else 11, and 21 if anything was
// due. The time of a step is `now` in the cycle after it is accepted (or in the first later one in which `sent_valid` is high; all later
// cycles shift as well).
//
// No timestamp is kept longer than half of the range of timestamps: the last step of a limited QP is recent; a timer that is disabled has
// the time of the last step; of the time of the next cut only a bit is kept once it has passed.
module roce_cc_step
  import roce_pkg::*;
  import roce_cc_pkg::*;
  import time_pkg::*;
#(
    parameter int unsigned     QPS = 256,
    parameter longint unsigned CLOCK_HZ = 250_000_000,
    parameter int unsigned     BURST = 4096,      // bytes that a QP may send above its rate after a pause
    parameter int unsigned     ROUND_LOG2 = 12    // log2 of the largest distance of two steps of a QP, in cycles
) (
    input  logic        clk,
    input  logic        rst,
    input  time_t       now,
    input  cc_scaled_t  cfg,
    input  logic        step_valid,
    output logic        ready,
    input  cc_step_t    step,
    output qp_index_t   sent_index,    // one cycle after the step
    input  logic        sent_valid,    // `sent` is valid: the step waits for it
    input  cc_bytes_t   sent,          // bytes sent by this QP so far, same cycle
    output logic        result_valid,  // pulse
    output cc_result_t  result,        // held until the next step is accepted; likewise `view`
    output cc_view_t    view
);
  localparam int unsigned INDEX_W = $clog2(QPS);
  localparam logic [16:0] COST = 17'(8 * CLOCK_HZ / 64'(RATE_UNIT));   // credit per byte
  localparam cc_credit_t BURST_CREDIT = cc_credit_t'(64'(BURST) * 64'(COST));
  localparam int unsigned COST_LOG2 = $clog2(COST);                    // rounded up
  localparam logic signed [52:0] CREDIT_MIN = -(53'sd1 <<< 38);

  if (ROUND_LOG2 > 15) begin : g_bad
    $fatal(1, "roce_cc_step: ROUND_LOG2 must be at most 15");
  end

  typedef enum logic [2:0] {
    DO_NOTHING,
    DO_FIRST_CUT,
    DO_CUT,
    DO_TIME_INCREASE,
    DO_BYTE_INCREASE
  } do_e;

  // The cycles of a step.
  typedef enum logic [4:0] {
    P_WAIT,
    P_BEGIN,
    P_SEEN,          // the words of the state are read, one a cycle
    P_FLOW,
    P_CREDIT,
    P_RATES,
    P_ALPHA,
    P_ALPHA_AT,
    P_TIME_AT,
    P_CUT_AT,
    P_CHOOSE,        // select what is due
    P_ACT,
    P_STAGES,        // the deadlines are read again and moved
    P_AHEAD,
    P_MOVE,
    P_TARGET,
    P_TARGET_MAX,
    P_SUM,
    P_SUM_MAX,
    P_RATE,
    P_KEEP
  } phase_e;

  phase_e     phase_q;
  cc_step_t   step_q;
  logic       limited_q;                          // after this step
  do_e        act_q;
  logic       alpha_due_q, time_due_q, byte_due_q, cut_due_q;
  logic       cut_free_q;                         // the time of the next cut had passed before this step
  time_t       now_q, elapsed_q, deadline_q;
  logic [25:0] span_q;                            // elapsed, at most 2^26 - 1
  cc_bytes_t   sent_q, more_q;                    // so far, and since the last step
  logic [24:0] bytes_q;
  logic signed [52:0] credit_q;
  cc_credit_t  cap_q;
  cc_rates_t   rates_q;
  cc_stages_t  stages_q;
  cc_alpha_t   kept_q;                            // alpha * keep
  logic        alpha_was_0_q, fast_q, hyper_q;
  logic [26:0] shifted_q;
  logic [15:0] factor_q;
  cc_rate_t    cut_rate_q;
  logic [7:0]  lo_q, hi_q;
  logic [28:0] target_q;
  logic [24:0] sum_q;

  // The bytes that the credit allows: the cost of a byte is rounded up to a power of two.
  cc_bytes_t   reach_q;
  wire [52-COST_LOG2:0] allowed = credit_q[52:COST_LOG2];
  wire cc_bytes_t allowance = |allowed[52-COST_LOG2:$bits(cc_bytes_t)-2] ? cc_bytes_t'(1) << ($bits(cc_bytes_t) - 2)
      : cc_bytes_t'(allowed);

  wire fresh = !step_q.limited;                   // was not limited: starts from the maximum rate
  wire stays = step_q.forget || !cfg.rp_enable || (fresh && !step_q.cnp);
  wire cutting = act_q inside {DO_FIRST_CUT, DO_CUT};
  wire increasing = act_q inside {DO_TIME_INCREASE, DO_BYTE_INCREASE};
  wire due = act_q != DO_NOTHING || alpha_due_q;
  wire cuts = step_q.cnp && cut_due_q && !(time_due_q || byte_due_q || alpha_due_q);

  // ---- the multiplier: result two cycles after its operands ----
  logic [25:0] x_q;
  logic [23:0] y_q;
  logic [49:0] product_q;
  always_ff @(posedge clk) product_q <= x_q * y_q;

  // ---- the states ----
  (* ram_style = "block" *) cc_word_t words[QPS*8];
  cc_word_t word_q, keep_word;
  cc_word_e read_at, keep_at;
  logic     keep;
  wire [INDEX_W-1:0] index = step_q.index[INDEX_W-1:0];

  always_comb begin
    unique case (phase_q)
      P_SEEN:   read_at = CC_FLOW;
      P_FLOW:   read_at = CC_CREDIT;
      P_CREDIT: read_at = CC_RATES;
      P_RATES:  read_at = CC_ALPHA;
      P_ALPHA, P_ACT: read_at = CC_ALPHA_AT;
      P_ALPHA_AT, P_STAGES: read_at = CC_TIME_AT;
      P_TIME_AT: read_at = CC_CUT_AT;
      default:  read_at = CC_SEEN;
    endcase

    keep      = 1'b1;
    keep_at   = CC_SEEN;
    keep_word = now_q;
    unique case (phase_q)
      P_SEEN: keep_at = CC_SEEN;
      P_RATES, P_STAGES: begin                    // the second time with the result of the action
        keep_at   = CC_FLOW;
        keep_word = cc_word_t'({sent_q, bytes_q});
      end
      P_TIME_AT: begin
        keep      = !cfg.alpha_timed;
        keep_at   = CC_ALPHA_AT;
      end
      P_CUT_AT: begin
        keep      = !cfg.time_counted;
        keep_at   = CC_TIME_AT;
      end
      P_CHOOSE: begin
        keep_at   = CC_CREDIT;
        keep_word = cc_word_t'(cc_budget_t'{cut_free: cut_due_q && !cuts, credit: cc_credit_t'(credit_q)});
      end
      P_AHEAD: begin
        keep      = cutting || alpha_due_q;
        keep_at   = CC_ALPHA_AT;
        keep_word = deadline_q;
      end
      P_MOVE: begin
        keep      = cutting || act_q == DO_TIME_INCREASE;
        keep_at   = CC_TIME_AT;
        keep_word = deadline_q;
      end
      P_TARGET: begin
        keep      = cutting;
        keep_at   = CC_CUT_AT;
        keep_word = deadline_q;
      end
      P_RATE: begin
        keep_at   = CC_ALPHA;
        keep_word = cc_word_t'(stages_q);
      end
      P_KEEP: begin
        keep_at   = CC_RATES;
        keep_word = rates_q;
      end
      default: keep = 1'b0;
    endcase
  end

  always_ff @(posedge clk) begin
    word_q <= words[{index, read_at}];
    if (keep) words[{index, keep_at}] <= keep_word;
  end

  cc_flow_t   flow;
  cc_budget_t budget;
  assign flow   = cc_flow_t'(word_q[$bits(cc_flow_t)-1:0]);
  assign budget = cc_budget_t'(word_q[$bits(cc_budget_t)-1:0]);

  function automatic logic [7:0] counted(logic [7:0] stage);
    return &stage ? stage : stage + 1'b1;
  endfunction

  // ---- a step ----
  wire [25:0] bytes_sum = 26'(bytes_q) + 26'(more_q);
  wire by_time = !cfg.byte_counted || (cfg.time_counted && stages_q.time_stage < stages_q.byte_stage);  // the lower stage
  wire of_time = !cfg.byte_counted || (cfg.time_counted && stages_q.time_stage > stages_q.byte_stage);  // the higher stage

  assign ready      = phase_q == P_WAIT;
  assign sent_index = step_q.index;

  always_ff @(posedge clk) begin
    result_valid <= 1'b0;
    phase_q      <= phase_e'(phase_q + 1'b1);

    unique case (phase_q)
      P_WAIT: begin
        step_q <= step;
        if (!step_valid) phase_q <= P_WAIT;
      end

      P_BEGIN: begin
        now_q       <= now;
        sent_q      <= sent;
        act_q       <= DO_NOTHING;
        alpha_due_q <= 1'b0;
        limited_q   <= !stays;
        if (stays) begin
          result_valid <= sent_valid;
          phase_q      <= P_WAIT;
        end
        if (!sent_valid) phase_q <= P_BEGIN;
      end

      P_SEEN: elapsed_q <= now_q - word_q;

      P_FLOW: begin
        span_q  <= fresh ? '0 : |elapsed_q[47:26] ? '1 : elapsed_q[25:0];
        more_q  <= fresh ? '0 : sent_q - flow.sent;
        bytes_q <= fresh ? '0 : flow.bytes;
      end

      P_CREDIT: begin
        credit_q   <= fresh ? '0 : 53'(budget.credit);
        cut_free_q <= budget.cut_free;
        bytes_q    <= bytes_sum[25] ? '1 : bytes_sum[24:0];
        x_q        <= 26'(more_q);
        y_q        <= 24'(COST);
      end

      P_RATES: begin
        rates_q <= cc_rates_t'(fresh ? {cfg.max_rate, cfg.max_rate} : word_q);
        x_q     <= span_q;
        y_q     <= word_q[47:24];
      end

      P_ALPHA: begin
        stages_q   <= cc_stages_t'(fresh ? {cfg.first_alpha, 16'd0} : word_q[$bits(cc_stages_t)-1:0]);
        credit_q   <= credit_q - $signed(53'(product_q));
        byte_due_q <= !fresh && cfg.byte_counted && bytes_q >= 25'(cfg.byte_reset);
        x_q        <= 26'(fresh ? cfg.first_alpha : word_q[$bits(cc_stages_t)-1-:$bits(cc_alpha_t)]);
        y_q        <= 24'(cfg.keep);
      end

      P_ALPHA_AT: begin
        alpha_due_q <= !fresh && cfg.alpha_timed && time_reached(now_q, word_q);
        credit_q    <= credit_q + $signed(53'(product_q));
        shifted_q   <= 27'({stages_q.alpha, 10'd0} >> cfg.gd);
      end

      P_TIME_AT: begin
        time_due_q <= !fresh && cfg.time_counted && time_reached(now_q, word_q);
        kept_q     <= cc_alpha_t'(product_q >> 10);
        factor_q   <= shifted_q > 27'(cfg.max_factor) ? cfg.max_factor : shifted_q[15:0];
        cap_q      <= BURST_CREDIT + (cc_credit_t'(rates_q.rate) <<< ROUND_LOG2);
      end

      P_CUT_AT: begin
        cut_due_q <= fresh || cut_free_q || time_reached(now_q, word_q);
        if (credit_q > 53'(cap_q)) credit_q <= 53'(cap_q);
        else if (credit_q < CREDIT_MIN) credit_q <= CREDIT_MIN;
        x_q    <= 26'(factor_q);
        y_q    <= rates_q.rate;
      end

      P_CHOOSE: begin
        reach_q <= sent_q + (credit_q < 0 ? '1 : allowance);
        if (!(time_due_q || byte_due_q || alpha_due_q || cuts)) begin
          result_valid <= 1'b1;
          phase_q      <= P_WAIT;
        end
        if (time_due_q) act_q <= DO_TIME_INCREASE;
        else if (byte_due_q) act_q <= DO_BYTE_INCREASE;
        else if (cuts) act_q <= fresh ? DO_FIRST_CUT : DO_CUT;
      end

      P_ACT: begin
        cut_rate_q    <= rates_q.rate - product_q[39:16];
        alpha_was_0_q <= stages_q.alpha == '0;
        if (act_q == DO_TIME_INCREASE) stages_q.time_stage <= counted(stages_q.time_stage);
        if (act_q == DO_BYTE_INCREASE) begin
          stages_q.byte_stage <= counted(stages_q.byte_stage);
          bytes_q             <= bytes_q - 25'(cfg.byte_reset);
        end
        if (cutting) begin
          if (cfg.clamp || stages_q.byte_stage != 0 || (cfg.clamp_after_time && stages_q.time_stage != 0)) begin
            rates_q.target <= rates_q.rate;
          end
          stages_q.time_stage <= '0;
          stages_q.byte_stage <= '0;
          bytes_q             <= '0;
        end
        if (cutting || alpha_due_q) stages_q.alpha <= kept_q + (cutting ? cfg.gain : '0);
      end

      P_STAGES: begin
        deadline_q <= (cutting || alpha_was_0_q ? now_q : word_q) + time_t'(cfg.alpha_ticks);
        lo_q       <= by_time ? stages_q.time_stage : stages_q.byte_stage;
        hi_q       <= of_time ? stages_q.time_stage : stages_q.byte_stage;
        if (cut_rate_q < cfg.min_rate) cut_rate_q <= cfg.min_rate;
      end

      P_AHEAD: begin
        deadline_q <= (cutting ? now_q : word_q) + time_t'(cfg.time_ticks);
        fast_q     <= hi_q < 8'(cfg.threshold);
        hyper_q    <= lo_q > 8'(cfg.threshold);
        x_q        <= 26'(8'(lo_q - 8'(cfg.threshold)));
        y_q        <= 24'(cfg.hai_rate);
        if (act_q == DO_FIRST_CUT && cfg.first_fixed) cut_rate_q <= cfg.first_rate;
        else if (cut_rate_q > cfg.max_rate) cut_rate_q <= cfg.max_rate;
      end

      P_MOVE: deadline_q <= now_q + time_t'(cfg.monitor_ticks);

      P_TARGET: target_q <= 29'(rates_q.target) + (fast_q ? '0 : hyper_q ? 29'(product_q) : 29'(cfg.ai_rate));
      P_TARGET_MAX: if (target_q > 29'(cfg.max_rate)) target_q <= 29'(cfg.max_rate);
      P_SUM: sum_q <= 25'(target_q[23:0]) + 25'(rates_q.rate) + 25'd1;
      P_SUM_MAX: sum_q <= 25'(sum_q[24:1] > cfg.max_rate ? cfg.max_rate : sum_q[24:1]);

      P_RATE: begin
        if (increasing) begin
          rates_q <= '{rate: sum_q[23:0], target: target_q[23:0]};
          if (sum_q[23:0] == cfg.max_rate) limited_q <= 1'b0;
        end else if (cutting) begin
          rates_q.rate <= cut_rate_q;
        end
      end

      default: begin               // P_KEEP
        result_valid <= 1'b1;
        phase_q      <= P_WAIT;
      end
    endcase

    if (rst) begin
      phase_q      <= P_WAIT;
      result_valid <= 1'b0;
    end
  end

  // ---- the result ----
  always_comb begin
    result.step     = step_q;
    result.limited  = limited_q;
    result.blocked  = limited_q && credit_q < 0;
    result.reach    = reach_q;
    result.cnp_done = cutting;
    result.busy     = due;
    view = '0;
    if (limited_q) view = '{limited: 1'b1, rate: rates_q.rate, target: rates_q.target, alpha: stages_q.alpha};
  end
endmodule
