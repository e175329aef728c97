// SPDX-License-Identifier: Apache-2.0

// The parameters of congestion control in the units of its arithmetic: rates in 1/16 Mb/s and not above the line rate, times in
// cycles. A change arrives 4 cycles later.
module roce_cc_scale
  import roce_cc_pkg::*;
#(
    parameter longint unsigned CLOCK_HZ = 250_000_000,
    parameter int unsigned     LINE_MBPS = 100_000
) (
    input  logic       clk,
    input  cc_config_t in,
    output cc_scaled_t out
);
  localparam logic [19:0] TICKS_1024 = 20'(CLOCK_HZ * 1024 / 1_000_000);  // in 1024 us
  localparam cc_rate_t LINE_RATE = cc_rate_t'(LINE_MBPS * 16);

  if (CLOCK_HZ < 1_000_000 || CLOCK_HZ > 500_000_000 || LINE_MBPS == 0 || LINE_MBPS >= 2 ** 20) begin : g_bad
    $fatal(1, "roce_cc_scale: the clock is between 1 and 500 MHz, the line at most 2^20 - 1 Mb/s");
  end

  cc_config_t   in_q, config_q;
  logic [35:0]  ticks_q[4];
  logic [22:0]  factor_q;
  cc_rate_t     max_q;
  logic [10:0]  alpha_q;

  function automatic cc_rate_t lower(cc_rate_t a, cc_rate_t b);
    return a < b ? a : b;
  endfunction

  wire [6:0] cut_percent = in_q.rpg_min_dec_fac > 7'd100 ? '0 : 7'd100 - in_q.rpg_min_dec_fac;

  always_ff @(posedge clk) begin
    in_q <= in;

    config_q   <= in_q;
    ticks_q[0] <= in_q.dce_tcp_rtt * TICKS_1024;
    ticks_q[1] <= in_q.rpg_time_reset * TICKS_1024;
    ticks_q[2] <= in_q.rate_reduce_monitor_period * TICKS_1024;
    ticks_q[3] <= in_q.min_time_between_cnps * TICKS_1024;
    factor_q   <= 23'(cut_percent) * 23'd41943;
    max_q      <= in_q.rpg_max_rate == 0 ? LINE_RATE : lower({in_q.rpg_max_rate, 4'd0}, LINE_RATE);
    alpha_q    <= in_q.initial_alpha_value > 11'd1024 ? 11'd1024 : in_q.initial_alpha_value;
  end

  cc_rate_t   min_q, first_q;
  cc_scaled_t scaled_q;

  always_ff @(posedge clk) begin
    min_q    <= lower({config_q.rpg_min_rate == 0 ? 20'd1 : config_q.rpg_min_rate, 4'd0}, max_q);  // never 0: it would be for ever
    first_q  <= lower({config_q.rate_to_set_on_first_cnp, 4'd0}, max_q);
    scaled_q <= '{
        rp_enable: config_q.rp_enable,
        np_enable: config_q.np_enable,
        clamp: config_q.clamp_tgt_rate,
        clamp_after_time: config_q.clamp_tgt_rate_after_time_inc,
        alpha_timed: config_q.dce_tcp_rtt != 0,
        time_counted: config_q.rpg_time_reset != 0,
        byte_counted: config_q.rpg_byte_reset != 0,
        first_fixed: config_q.rate_to_set_on_first_cnp != 0,
        gd: config_q.rpg_gd,
        threshold: config_q.rpg_threshold,
        keep: config_q.dce_tcp_g,
        gain: {11'd1024 - 11'(config_q.dce_tcp_g), 6'd0},
        first_alpha: {alpha_q, 6'd0},
        max_factor: 16'(factor_q >> 6),
        max_rate: max_q,
        min_rate: '0,
        first_rate: '0,
        ai_rate: {config_q.rpg_ai_rate, 4'd0},
        hai_rate: {config_q.rpg_hai_rate, 4'd0},
        byte_reset: config_q.rpg_byte_reset,
        alpha_ticks: cc_ticks_t'(ticks_q[0] >> 10),
        time_ticks: cc_ticks_t'(ticks_q[1] >> 10),
        monitor_ticks: cc_ticks_t'(ticks_q[2] >> 10),
        cnp_ticks: cc_ticks_t'(ticks_q[3] >> 10)
    };
    out            <= scaled_q;
    out.min_rate   <= min_q;
    out.first_rate <= first_q > min_q ? first_q : min_q;
  end
endmodule
