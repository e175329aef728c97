// SPDX-License-Identifier: Apache-2.0

// Timers of all QPs: one table and one scanner, which visits each QP every 5 * QPS cycles and so detects an expiry late by at
// most that. It derives from the tables what a QP waits for:
//   an acknowledgement  4.096 us * 2^(timeout + retries so far), the back-off limited to 2^BACKOFF_MAX (IBTA 9.7.6.1.3);
//                       restarts with each progress and each rewind
//   the RNR timer       the time in the peer's RNR NAK (IBTA table 45)
//   its send queue      in SQD: until nothing is outstanding; takes no time
//   nothing             `keepalive_cycles` since anything was sent, acknowledged or received; 0: no keep-alive
// and starts the timer when the scanner first detects the wait, so a time is never too short. `now` may jump ahead, by less than
// a quarter of its range at once. The deadline of a running timer is checked in every scan; that of others has no meaning.
// Stalls when `expired` or `keepalive` are not ready. `settled`: the scanner has visited every QP since `busy` was high or a timer
// expired, and found no timer to start and none expired: no event occurs until `now` advances.
module roce_timer
  import roce_pkg::*;
  import roce_requester_pkg::*;
  import time_pkg::*;
#(
    parameter int unsigned QPS = 16,
    parameter longint unsigned CLOCK_HZ = 250_000_000,
    parameter int unsigned BACKOFF_MAX = 4
) (
    input logic        clk,
    input logic        rst,
    input logic        enable,            // the tables are initialized
    input time_t       now,               // cycles
    input time_t       keepalive_cycles,  // less than a quarter of the range
    input logic        activity,          // a packet of this QP was received
    input qp_index_t   activity_index,
    input logic        busy,

    roce_qp_read_if.reader words,         // timer_words_t

    stream_if.source expired,             // sq_event_t
    stream_if.source keepalive,           // qp_index_t
    output logic     settled
);
  // 4.096 us and 10 us in cycles, rounded up.
  localparam longint unsigned ACK_UNIT = (64'(CLOCK_HZ) * 4096 + 999_999_999) / 1_000_000_000;
  localparam longint unsigned RNR_UNIT = (64'(CLOCK_HZ) + 99_999) / 100_000;

  if (BACKOFF_MAX > 7) begin : g_bad_backoff
    $fatal(1, "roce_timer: BACKOFF_MAX must be at most 7, like retry_cnt");
  end
  if ($clog2(ACK_UNIT) + 31 + BACKOFF_MAX > TIME_W - 2) begin : g_bad_clock
    $fatal(1, "roce_timer: the longest ACK timeout must be less than a quarter of the range of now");
  end

  typedef enum logic [2:0] {
    WAIT_NOTHING,
    WAIT_ACK,
    WAIT_RNR,
    WAIT_IDLE,
    WAIT_DRAIN
  } wait_e;

  typedef struct packed {
    wait_e waits;
    logic  epoch;
    xpsn_t una;
    time_t deadline;
  } clock_t;

  // A time is base << shift.
  typedef struct packed {
    time_t      base;
    logic [5:0] shift;
  } span_t;

  function automatic span_t ack_span(logic [4:0] code, logic [2:0] retries);
    logic [2:0] backoff;
    backoff = retries < 3'(BACKOFF_MAX) ? retries : 3'(BACKOFF_MAX);
    return '{base: time_t'(ACK_UNIT), shift: 6'(code) + 6'(backoff)};
  endfunction

  // Codes in units of 10 us: 65536, 1, 2, 3, 4, 6, 8, 12, ... (IBTA table 45): from code 2 on 2 or 3 times a power of two, with
  // code 0 as code 32.
  function automatic span_t rnr_span(logic [4:0] code);
    logic [5:0] c;
    c = {code == 0, code};
    if (c == 1) return '{base: time_t'(RNR_UNIT), shift: '0};
    return '{base: c[0] ? time_t'(3 * RNR_UNIT) : time_t'(2 * RNR_UNIT), shift: 6'(c[5:1]) - 6'd1};
  endfunction

  // ---- the scan ----
  enum logic [2:0] {
    T_LOOK,
    T_COMPARE,
    T_MEASURE,
    T_COMPUTE,
    T_DECIDE
  } state_q;

  localparam int unsigned INDEX_W = $clog2(QPS);
  logic [INDEX_W-1:0] at_q;
  clock_t             clock;
  logic               outstanding_q, kept_q;
  wait_e              waits_q;
  span_t              span_q;
  time_t              length_q;
  logic               heard_q;        // a packet of this QP was received since the last scan

  // A packet received for a QP makes its two bits differ, and the scanner makes them equal. Their initial value does not matter.
  (* ram_style = "distributed" *) logic news[QPS];
  (* ram_style = "distributed" *) logic noted[QPS];
  wire [INDEX_W-1:0] active_at = activity_index[INDEX_W-1:0];

  wire look = state_q == T_LOOK;
  assign words.read  = look;
  assign words.index = qp_index_t'(at_q);

  timer_words_t    word;
  xpsn_t           posted;
  timer_sent_t     sent;
  timer_progress_t progress;
  logic [4:0]      timeout;
  assign word     = words.data;
  assign posted   = word.posted;
  assign sent     = word.sent;
  assign progress = word.progress;
  assign timeout  = word.timeout;

  wait_e waits;
  always_comb begin
    waits = WAIT_NOTHING;
    if (progress.state inside {SQ_RTS, SQ_SQD}) begin
      if (progress.rnr_wait) waits = WAIT_RNR;
      else if (outstanding_q) waits = timeout != 0 ? WAIT_ACK : WAIT_NOTHING;
      else if (progress.state == SQ_SQD) waits = sent.open || progress.drained ? WAIT_NOTHING : WAIT_DRAIN;
      else if (kept_q) waits = WAIT_IDLE;
    end
  end

  logic fresh_q, over_q;
  wire  due = waits_q != WAIT_NOTHING && !fresh_q && over_q;

  assign expired.valid   = state_q == T_DECIDE && due && waits_q != WAIT_IDLE;
  assign expired.data    = sq_event_t'{
          kind: waits_q == WAIT_RNR ? SQ_EV_RNR_DONE : waits_q == WAIT_DRAIN ? SQ_EV_DRAINED : SQ_EV_TIMEOUT,
          index: qp_index_t'(at_q),
          psn: progress.una[23:0]
      };
  assign keepalive.valid = state_q == T_DECIDE && due && waits_q == WAIT_IDLE;
  assign keepalive.data  = qp_index_t'(at_q);
  wire decided = state_q == T_DECIDE && (!expired.valid || expired.ready) && (!keepalive.valid || keepalive.ready);

  clock_t next;
  always_comb begin
    next.waits    = due ? WAIT_NOTHING : waits_q;  // a wait that continues restarts the timer
    next.epoch    = progress.epoch;
    next.una      = progress.una;
    next.deadline = fresh_q ? now + length_q : clock.deadline;
  end

  // Not reset: a word is overwritten when the scanner finds that its QP waits for something else.
  ram_1w1r #(
      .T(clock_t),
      .WORDS(QPS)
  ) clocks (
      .clk,
      .write(decided),
      .write_at(at_q),
      .write_data(next),
      .read(look),
      .read_at(at_q),
      .read_data(clock)
  );

  // A jump of `now` has no effect as long as it stays before every deadline.
  logic [INDEX_W:0] calm_q;   // consecutive QPs without a change
  logic             first_valid_q;
  time_t            first_q;  // their earliest deadline
  wire              late = first_valid_q && time_reached(now, first_q);
  wire              first_known = first_valid_q && calm_q != '0;   // first_q is a deadline of one of these QPs
  wire              runs = decided && next.waits != WAIT_NOTHING;
  assign settled = calm_q[INDEX_W] && !late;

  always_ff @(posedge clk) begin
    if (activity) news[active_at] <= !noted[active_at];
    if (look) begin
      heard_q     <= news[at_q] != noted[at_q];
      noted[at_q] <= news[at_q];
    end
    if (state_q == T_COMPARE) begin
      outstanding_q <= progress.una != sent.limit;
      kept_q        <= progress.una == posted && keepalive_cycles != 0;
    end
    if (state_q == T_MEASURE) begin
      waits_q <= waits;
      unique case (waits)
        WAIT_ACK: span_q <= ack_span(timeout, progress.retries);
        WAIT_RNR: span_q <= rnr_span(progress.rnr_code);
        WAIT_DRAIN: span_q <= '0;
        default:  span_q <= '{base: keepalive_cycles, shift: '0};
      endcase
    end
    if (state_q == T_COMPUTE) begin
      length_q <= span_q.base << span_q.shift;
      over_q   <= time_reached(now, clock.deadline);
      fresh_q  <= waits_q != clock.waits || progress.una != clock.una || progress.epoch != clock.epoch
          || (waits_q == WAIT_IDLE && heard_q);
    end
    first_valid_q <= runs || first_known;
    if (runs && !(first_known && time_before(first_q, next.deadline))) first_q <= next.deadline;

    if (rst) begin
      state_q       <= T_LOOK;
      at_q          <= '0;
      calm_q        <= '0;
      first_valid_q <= 1'b0;
    end else begin
      unique case (state_q)
        T_LOOK:    if (enable) state_q <= T_COMPARE;
        T_COMPARE: state_q <= T_MEASURE;
        T_MEASURE: state_q <= T_COMPUTE;
        T_COMPUTE: state_q <= T_DECIDE;
        T_DECIDE:
        if (decided) begin
          state_q <= T_LOOK;
          at_q    <= at_q + 1'b1;
        end
        default:   state_q <= T_LOOK;
      endcase
      if (busy || late || activity || (decided && (due || (fresh_q && waits_q != WAIT_NOTHING)))) calm_q <= '0;
      else if (decided && !settled) calm_q <= calm_q + 1'b1;
    end
  end
endmodule
