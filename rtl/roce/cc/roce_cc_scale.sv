// SPDX-License-Identifier: Apache-2.0

// Converts the parameters of congestion control to the units of the arithmetic: rates in 1/16 Mb/s, at most the line rate; times in cycles.
// The parameters change rarely: one multiplier computes them in turn. A changed parameter is valid 8 cycles later; switches change at once.
module roce_cc_scale
  import roce_cc_pkg::*;
#(
    parameter longint unsigned CLOCK_HZ = 250_000_000,
    parameter int unsigned     LINE_MBPS = 100_000
) (
    input  logic       clk,
    input  logic       rst,
    input  cc_config_t in,      // registers
    output cc_scaled_t out
);
  localparam logic [19:0] TICKS_1024 = 20'(CLOCK_HZ * 1024 / 1_000_000);  // in 1024 us
  localparam logic [19:0] PERCENT = 20'(2 ** 22 / 100);                   // in 1/2^22; a factor is in 1/2^16
  localparam cc_rate_t LINE_RATE = cc_rate_t'(LINE_MBPS * 16);

  if (CLOCK_HZ < 1_000_000 || CLOCK_HZ > 500_000_000 || LINE_MBPS == 0 || LINE_MBPS >= 2 ** 20) begin : g_bad
    $fatal(1, "roce_cc_scale: the clock must be between 1 and 500 MHz, the line rate at most 2^20 - 1 Mb/s");
  end

  function automatic cc_rate_t lower(cc_rate_t a, cc_rate_t b);
    return a < b ? a : b;
  endfunction

  // ---- products: four times and the largest factor of a cut, two cycles after their operands ----
  typedef enum logic [2:0] {
    W_ALPHA,
    W_TIME,
    W_MONITOR,
    W_CNP,
    W_FACTOR
  } what_e;

  wire [6:0]   cut_percent = in.rpg_min_dec_fac > 7'd100 ? '0 : 7'd100 - in.rpg_min_dec_fac;
  what_e       what_q, what_2q, what_3q;
  logic [15:0] x_q;
  logic [19:0] y_q;
  logic [35:0] product_q;
  cc_ticks_t   alpha_ticks_q, time_ticks_q, monitor_ticks_q, cnp_ticks_q;
  logic [15:0] max_factor_q;

  always_ff @(posedge clk) begin
    what_q <= rst || what_q == W_FACTOR ? W_ALPHA : what_e'(what_q + 1'b1);

    what_2q <= what_q;
    y_q     <= what_q == W_FACTOR ? PERCENT : TICKS_1024;
    unique case (what_q)
      W_ALPHA:   x_q <= in.dce_tcp_rtt;
      W_TIME:    x_q <= in.rpg_time_reset;
      W_MONITOR: x_q <= in.rate_reduce_monitor_period;
      W_CNP:     x_q <= in.min_time_between_cnps;
      default:   x_q <= 16'(cut_percent);
    endcase

    what_3q   <= what_2q;
    product_q <= x_q * y_q;

    unique case (what_3q)
      W_ALPHA:   alpha_ticks_q   <= cc_ticks_t'(product_q >> 10);
      W_TIME:    time_ticks_q    <= cc_ticks_t'(product_q >> 10);
      W_MONITOR: monitor_ticks_q <= cc_ticks_t'(product_q >> 10);
      W_CNP:     cnp_ticks_q     <= cc_ticks_t'(product_q >> 10);
      default:   max_factor_q    <= 16'(product_q >> 6);
    endcase
  end

  // ---- rates ----
  cc_rate_t max_q, min_q, first_q, first_rate_q;
  always_ff @(posedge clk) begin
    max_q        <= in.rpg_max_rate == 0 ? LINE_RATE : lower({in.rpg_max_rate, 4'd0}, LINE_RATE);
    min_q        <= lower({in.rpg_min_rate == 0 ? 20'd1 : in.rpg_min_rate, 4'd0}, max_q);  // never 0: the QP could not recover from it
    first_q      <= lower({in.rate_to_set_on_first_cnp, 4'd0}, max_q);
    first_rate_q <= first_q > min_q ? first_q : min_q;
  end

  assign out = '{
      rp_enable: in.rp_enable,
      np_enable: in.np_enable,
      clamp: in.clamp_tgt_rate,
      clamp_after_time: in.clamp_tgt_rate_after_time_inc,
      alpha_timed: in.dce_tcp_rtt != 0,
      time_counted: in.rpg_time_reset != 0,
      byte_counted: in.rpg_byte_reset != 0,
      first_fixed: in.rate_to_set_on_first_cnp != 0,
      gd: in.rpg_gd,
      threshold: in.rpg_threshold,
      keep: in.dce_tcp_g,
      gain: {11'd1024 - 11'(in.dce_tcp_g), 6'd0},
      first_alpha: {in.initial_alpha_value > 11'd1024 ? 11'd1024 : in.initial_alpha_value, 6'd0},
      max_factor: max_factor_q,
      max_rate: max_q,
      min_rate: min_q,
      first_rate: first_rate_q,
      ai_rate: {in.rpg_ai_rate, 4'd0},
      hai_rate: {in.rpg_hai_rate, 4'd0},
      byte_reset: in.rpg_byte_reset,
      alpha_ticks: alpha_ticks_q,
      time_ticks: time_ticks_q,
      monitor_ticks: monitor_ticks_q,
      cnp_ticks: cnp_ticks_q
  };
endmodule
