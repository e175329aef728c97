// SPDX-License-Identifier: Apache-2.0

// The arithmetic of the reaction point: one step of one QP (docs/reference/congestion.md, "Arithmetic"; DCQCN, Zhu et al.,
// SIGCOMM 2015, section 5 and figure 7). Only this unit writes the QPs' states.
//
// A step a cycle, result 14 cycles later, never stops. The same QP must not come again before its result. `now` of a step is that
// of the cycle after it.
module roce_cc_step
  import roce_requester_pkg::*;
  import roce_cc_pkg::*;
#(
    parameter int unsigned     QPS = 256,
    parameter longint unsigned CLOCK_HZ = 250_000_000,
    parameter int unsigned     BURST = 4096,      // bytes that a QP may be behind its rate
    parameter int unsigned     ROUND_LOG2 = 10    // of the cycles by which two steps of a QP are apart, at most
) (
    input  logic        clk,
    input  logic        rst,
    input  logic [47:0] now,
    input  cc_scaled_t  cfg,
    input  logic        step_valid,
    input  cc_step_t    step,
    output qp_index_t   sent_index,    // one cycle after the step
    input  cc_bytes_t   sent,          // bytes that this QP sent so far, in the same cycle
    output logic        result_valid,
    output cc_result_t  result,
    output cc_view_t    view           // with the result
);
  localparam int unsigned INDEX_W = $clog2(QPS);
  localparam int unsigned LAST = 12;
  localparam logic [16:0] COST = 17'(8 * CLOCK_HZ / 64'(RATE_UNIT));   // of a byte
  localparam cc_credit_t BURST_CREDIT = cc_credit_t'(64'(BURST) * 64'(COST));
  localparam logic signed [52:0] CREDIT_MIN = -(53'sd1 <<< 38);

  if (ROUND_LOG2 > 13) begin : g_bad
    $fatal(1, "roce_cc_step: ROUND_LOG2 is 13 at most");
  end

  typedef enum logic [2:0] {
    DO_NOTHING,
    DO_FIRST_CUT,
    DO_CUT,
    DO_TIME_INCREASE,
    DO_BYTE_INCREASE
  } do_e;

  // A step on its way: the state, and what the stages find out one after the other.
  typedef struct packed {
    cc_step_t           step;
    cc_state_t          s;
    logic [47:0]        now;
    cc_bytes_t          sent;          // since the last step
    logic [47:0]        elapsed;
    logic [25:0]        span;          // elapsed, at most 2^26 - 1
    logic               alpha_due, time_due, byte_due, cut_due;
    logic [26:0]        shifted;
    logic [15:0]        factor;
    do_e                act;
    logic [26:0]        kept;          // alpha * keep
    logic [39:0]        lowered;       // rate * factor
    logic [49:0]        gain;          // rate * span
    logic [37:0]        cost;          // sent * COST
    cc_credit_t         cap;
    logic signed [52:0] credit;
    logic [7:0]         lo, hi, ahead;
    logic               fast, hyper;
    logic [27:0]        hyper_rate;    // ahead * hai_rate
    logic [28:0]        target;
    cc_rate_t           cut_rate;
    logic [24:0]        sum;
    logic               slow;
    logic [47:0]        next_alpha_at, next_time_at, next_cut_at;
  } job_t;

  logic          step_valid_q;
  logic [LAST:0] valid_q;
  job_t          q[LAST + 1];
  job_t          d[LAST + 1];
  cc_step_t      step_q;
  cc_state_t     word_q;

  (* ram_style = "block" *) logic [$bits(cc_state_t)-1:0] states[QPS];

  function automatic cc_alpha_t next_alpha(job_t j, cc_alpha_t added);
    return cc_alpha_t'(j.kept >> 10) + added;
  endfunction

  function automatic logic [7:0] counted(logic [7:0] stage);
    return &stage ? stage : stage + 1'b1;
  endfunction

  assign sent_index = step_q.index;

  always_comb begin
    logic cutting, increasing;
    d[0] = '0;
    for (int unsigned i = 1; i <= LAST; i++) d[i] = q[i-1];

    // 0: the state arrives; a QP that was not limited starts from the maximum.
    d[0].step    = step_q;
    d[0].s       = word_q;
    d[0].now     = now;
    d[0].sent    = sent - word_q.sent;
    d[0].s.sent  = sent;
    d[0].elapsed = now - word_q.seen;
    d[0].s.seen  = now;
    d[0].alpha_due = cfg.alpha_timed && now >= word_q.alpha_at;
    d[0].time_due  = cfg.time_counted && now >= word_q.time_at;
    d[0].cut_due   = now >= word_q.cut_at;

    // 1
    d[1].span = |q[0].elapsed[47:26] ? '1 : q[0].elapsed[25:0];
    d[1].s.bytes = q[0].s.bytes + 25'(q[0].sent);
    if (d[1].s.bytes < q[0].s.bytes) d[1].s.bytes = '1;
    if (!q[0].step.limited) begin
      d[1].s.rate       = cfg.max_rate;
      d[1].s.target     = cfg.max_rate;
      d[1].s.alpha      = cfg.first_alpha;
      d[1].s.time_stage = '0;
      d[1].s.byte_stage = '0;
      d[1].s.bytes      = '0;
      d[1].s.credit     = '0;
      d[1].sent         = '0;
      d[1].span         = '0;
      d[1].alpha_due    = 1'b0;
      d[1].time_due     = 1'b0;
      d[1].cut_due      = 1'b1;
    end

    // 2
    d[2].shifted  = 27'(({q[1].s.alpha, 10'd0}) >> cfg.gd);
    d[2].byte_due = q[1].step.limited && cfg.byte_counted && q[1].s.bytes >= 25'(cfg.byte_reset);
    d[2].gain     = q[1].s.rate * q[1].span;
    d[2].cost     = q[1].sent * COST;
    d[2].kept     = q[1].s.alpha * cfg.keep;
    d[2].cap      = BURST_CREDIT + (cc_credit_t'(q[1].s.rate) <<< ROUND_LOG2);

    // 3
    d[3].factor = q[2].shifted > 27'(cfg.max_factor) ? cfg.max_factor : q[2].shifted[15:0];
    d[3].credit = 53'(q[2].s.credit) - $signed(53'(q[2].cost));
    d[3].act    = DO_NOTHING;
    if (q[2].time_due) d[3].act = DO_TIME_INCREASE;
    else if (q[2].byte_due) d[3].act = DO_BYTE_INCREASE;
    else if (q[2].step.cnp && q[2].cut_due && !q[2].alpha_due) d[3].act = q[2].step.limited ? DO_CUT : DO_FIRST_CUT;

    // 4: what a cut, an increase and alpha do to the counters and clocks
    cutting = q[3].act inside {DO_FIRST_CUT, DO_CUT};
    d[4].lowered = q[3].s.rate * q[3].factor;
    d[4].credit  = q[3].credit + $signed(53'(q[3].gain));
    d[4].next_alpha_at = (cutting || q[3].s.alpha == 0 ? q[3].now : q[3].s.alpha_at) + 48'(cfg.alpha_ticks);
    d[4].next_time_at  = (cutting ? q[3].now : q[3].s.time_at) + 48'(cfg.time_ticks);
    d[4].next_cut_at   = q[3].now + 48'(cfg.monitor_ticks);
    if (q[3].act == DO_TIME_INCREASE) d[4].s.time_stage = counted(q[3].s.time_stage);
    if (q[3].act == DO_BYTE_INCREASE) begin
      d[4].s.byte_stage = counted(q[3].s.byte_stage);
      d[4].s.bytes      = q[3].s.bytes - 25'(cfg.byte_reset);
    end
    if (cutting) begin
      if (cfg.clamp || q[3].s.byte_stage != 0 || (cfg.clamp_after_time && q[3].s.time_stage != 0)) d[4].s.target = q[3].s.rate;
      d[4].s.time_stage = '0;
      d[4].s.byte_stage = '0;
      d[4].s.bytes      = '0;
    end

    // 5
    if (q[4].alpha_due) d[5].s.alpha = next_alpha(q[4], '0);
    if (q[4].act inside {DO_FIRST_CUT, DO_CUT}) d[5].s.alpha = next_alpha(q[4], cfg.gain);
    if (q[4].act inside {DO_FIRST_CUT, DO_CUT} || q[4].alpha_due) d[5].s.alpha_at = q[4].next_alpha_at;
    if (q[4].act inside {DO_FIRST_CUT, DO_CUT, DO_TIME_INCREASE}) d[5].s.time_at = q[4].next_time_at;
    if (q[4].act inside {DO_FIRST_CUT, DO_CUT}) d[5].s.cut_at = q[4].next_cut_at;
    if (q[4].credit > 53'(q[4].cap)) d[5].credit = 53'(q[4].cap);
    else if (q[4].credit < CREDIT_MIN) d[5].credit = CREDIT_MIN;
    d[5].cut_rate = q[4].s.rate - q[4].lowered[39:16];
    if (!cfg.byte_counted || (cfg.time_counted && q[4].s.time_stage < q[4].s.byte_stage)) d[5].lo = q[4].s.time_stage;
    else d[5].lo = q[4].s.byte_stage;
    if (!cfg.byte_counted || (cfg.time_counted && q[4].s.time_stage > q[4].s.byte_stage)) d[5].hi = q[4].s.time_stage;
    else d[5].hi = q[4].s.byte_stage;

    // 6
    d[6].s.credit = cc_credit_t'(q[5].credit);
    d[6].fast     = q[5].hi < 8'(cfg.threshold);
    d[6].hyper    = q[5].lo > 8'(cfg.threshold);
    d[6].ahead    = q[5].lo - 8'(cfg.threshold);
    if (q[5].cut_rate < cfg.min_rate) d[6].cut_rate = cfg.min_rate;

    // 7
    d[7].hyper_rate = q[6].ahead * cfg.hai_rate;
    if (q[6].cut_rate > cfg.max_rate) d[7].cut_rate = cfg.max_rate;
    if (q[6].act == DO_FIRST_CUT && cfg.first_fixed) d[7].cut_rate = cfg.first_rate;

    // 8
    d[8].target = 29'(q[7].s.target);
    if (!q[7].fast) d[8].target = 29'(q[7].s.target) + (q[7].hyper ? 29'(q[7].hyper_rate) : 29'(cfg.ai_rate));

    // 9
    if (q[8].target > 29'(cfg.max_rate)) d[9].target = 29'(cfg.max_rate);

    // 10
    d[10].sum = 25'(q[9].target[23:0]) + 25'(q[9].s.rate) + 25'd1;

    // 11
    d[11].sum = 25'(q[10].sum[24:1] > cfg.max_rate ? cfg.max_rate : q[10].sum[24:1]);

    // 12: the new rate, and a QP without a limit again
    increasing = q[11].act inside {DO_TIME_INCREASE, DO_BYTE_INCREASE};
    if (increasing) begin
      d[12].s.rate   = q[11].sum[23:0];
      d[12].s.target = q[11].target[23:0];
    end else if (q[11].act != DO_NOTHING) begin
      d[12].s.rate   = q[11].cut_rate;
    end
    d[12].slow = q[11].s.rate < cfg.max_rate >> INDEX_W;  // before the step will do
    d[12].step.limited = q[11].step.limited || q[11].act == DO_FIRST_CUT;
    if (increasing && q[11].sum[23:0] == cfg.max_rate) d[12].step.limited = 1'b0;
    if (q[11].step.forget || !cfg.rp_enable) d[12].step.limited = 1'b0;
  end

  // ---- the result ----
  job_t last;
  assign last = q[LAST];
  assign result_valid = valid_q[LAST];
  always_comb begin
    result.step     = last.step;
    result.limited  = last.step.limited;
    result.blocked  = last.step.limited && last.s.credit < 0;
    result.slow     = last.step.limited && last.slow;
    result.cnp_done = last.act inside {DO_FIRST_CUT, DO_CUT};
    result.busy     = last.act != DO_NOTHING || last.alpha_due;
    view = '0;
    if (last.step.limited) view = '{limited: 1'b1, rate: last.s.rate, target: last.s.target, alpha: last.s.alpha};
  end

  always_ff @(posedge clk) begin
    word_q <= states[step.index[INDEX_W-1:0]];
    if (result_valid) states[last.step.index[INDEX_W-1:0]] <= last.s;
    step_q <= step;
    for (int unsigned i = 0; i <= LAST; i++) q[i] <= d[i];
    step_valid_q <= step_valid && !rst;
    valid_q      <= rst ? '0 : {valid_q[LAST-1:0], step_valid_q};
  end
endmodule
