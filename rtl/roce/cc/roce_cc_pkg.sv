// SPDX-License-Identifier: Apache-2.0

// Types of congestion control (docs/reference/congestion.md): its parameters, and the state of a QP.
package roce_cc_pkg;
  import roce_pkg::*;

  // As in the registers; names, units and meaning as in Linux for mlx5, ecn/roce_rp and ecn/roce_np.
  typedef struct packed {
    logic        rp_enable;
    logic        np_enable;
    logic        clamp_tgt_rate;
    logic        clamp_tgt_rate_after_time_inc;
    logic [9:0]  dce_tcp_g;                   // 1/1024
    logic [15:0] dce_tcp_rtt;                 // us
    logic [10:0] initial_alpha_value;         // 1/1024
    logic [15:0] rate_reduce_monitor_period;  // us
    logic [19:0] rate_to_set_on_first_cnp;    // Mb/s
    logic [15:0] rpg_ai_rate;                 // Mb/s
    logic [15:0] rpg_hai_rate;                // Mb/s
    logic [23:0] rpg_byte_reset;              // bytes
    logic [15:0] rpg_time_reset;              // us
    logic [3:0]  rpg_gd;
    logic [6:0]  rpg_min_dec_fac;             // percent
    logic [19:0] rpg_min_rate;                // Mb/s
    logic [19:0] rpg_max_rate;                // Mb/s
    logic [4:0]  rpg_threshold;
    logic [15:0] min_time_between_cnps;       // us
  } cc_config_t;

  typedef logic [23:0] cc_rate_t;             // 1/16 Mb/s
  typedef logic [16:0] cc_alpha_t;            // 65536 is 1
  typedef logic [24:0] cc_ticks_t;            // a time of up to 65535 us, in cycles
  typedef logic [20:0] cc_bytes_t;            // sent by a QP, modulo 2^21
  typedef logic signed [39:0] cc_credit_t;    // rate times cycles

  localparam int unsigned RATE_UNIT = 62_500; // bit/s in a unit of cc_rate_t

  // The parameters in the units of the arithmetic.
  typedef struct packed {
    logic        rp_enable;
    logic        np_enable;
    logic        clamp;
    logic        clamp_after_time;
    logic        alpha_timed;     // the timer of alpha is enabled; likewise the two counters
    logic        time_counted;
    logic        byte_counted;
    logic        first_fixed;     // first_rate is the rate after the first CNP
    logic [3:0]  gd;
    logic [4:0]  threshold;
    logic [9:0]  keep;            // the part of alpha, of 1024, that an update keeps
    cc_alpha_t   gain;            // added to alpha by a cut
    cc_alpha_t   first_alpha;
    logic [15:0] max_factor;      // largest factor of a cut, of 65536
    cc_rate_t    max_rate;
    cc_rate_t    min_rate;
    cc_rate_t    first_rate;
    logic [19:0] ai_rate;
    logic [19:0] hai_rate;
    logic [23:0] byte_reset;
    cc_ticks_t   alpha_ticks;
    cc_ticks_t   time_ticks;
    cc_ticks_t   monitor_ticks;
    cc_ticks_t   cnp_ticks;
  } cc_scaled_t;

  // The state of a limited QP at the reaction point: eight words, for a narrow memory.
  typedef enum logic [2:0] {
    CC_SEEN,        // time of the last step
    CC_FLOW,
    CC_CREDIT,
    CC_RATES,
    CC_ALPHA,
    CC_ALPHA_AT,
    CC_TIME_AT,
    CC_CUT_AT
  } cc_word_e;
  typedef time_pkg::time_t cc_word_t;

  typedef struct packed {
    cc_bytes_t   sent;            // total at the last step
    logic [24:0] bytes;           // sent since the byte counter's last event
  } cc_flow_t;

  typedef struct packed {
    logic        cut_free;        // the time of CC_CUT_AT has passed
    cc_credit_t  credit;
  } cc_budget_t;

  typedef struct packed {
    cc_rate_t    rate;
    cc_rate_t    target;
  } cc_rates_t;

  typedef struct packed {
    cc_alpha_t   alpha;
    logic [7:0]  time_stage;
    logic [7:0]  byte_stage;
  } cc_stages_t;

  // A step of a QP.
  typedef struct packed {
    qp_index_t   index;
    logic        limited;         // was limited before
    logic        cnp;             // a CNP was received
    logic        forget;          // the QP is set up or reset: clear its state
    logic        view;            // return the QP's state
  } cc_step_t;

  // The result of a step.
  typedef struct packed {
    cc_step_t    step;
    logic        limited;
    logic        blocked;         // credit is used up
    cc_bytes_t   reach;           // total sent bytes above which the credit may be used up
    logic        cnp_done;        // the CNP has lowered the rate
    logic        busy;            // something was due: step again, more may be due
  } cc_result_t;

  // The state of a QP as read by software.
  typedef struct packed {
    logic        limited;         // else the rest is 0
    cc_rate_t    rate;
    cc_rate_t    target;
    cc_alpha_t   alpha;
  } cc_view_t;

  // Events for the counters; rp_cnp_ignored: congestion control is off.
  typedef struct packed {
    logic np_ecn_marked_roce_packets;
    logic np_cnp_sent;
    logic rp_cnp_handled;
    logic rp_cnp_ignored;
  } cc_events_t;
endpackage
