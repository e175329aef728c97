// SPDX-License-Identifier: Apache-2.0

// Deadlines of calls: a set-up has a limit on the time of its calls, from the arrival of the start on. A call whose time is over is
// given out on `expired`, once.
//
// One context is looked at every 3 cycles while any has a deadline, so a call is found at most 3 * QPS * CONTEXTS cycles late, and
// not before its time. An entry is that of the context's newest call, which may have ended: whoever takes `expired` compares `odd`.
// Calls may begin in every cycle. After reset it clears its table for QPS * CONTEXTS cycles, during which none may.
module rpc_deadlines
  import rpc_pkg::*;
#(
    parameter int unsigned QPS = 16,
    parameter int unsigned CONTEXTS = 1
) (
    input  logic     clk,
    input  logic     rst,
    input  ticks_t   now,
    input  logic     limits,      // pulse: the calls of context
    input  context_t limited,     // have at most
    input  ticks_t   limit,       // so much time, less than half of what there is; 0: no limit
    input  logic     starts,      // pulse: a call of context
    input  context_t starting,    // begins,
    input  logic     odd,         // see call_t,
    input  ticks_t   arrived,     // the start of which has come then
    stream_if.source expired,     // cancel_t
    output logic     idle         // nothing but time can change anything
);
  localparam int unsigned ALL = QPS * CONTEXTS;
  typedef logic [$clog2(ALL)-1:0] index_t;

  function automatic index_t index_of(context_t of);
    return index_t'(context_index(of, CONTEXTS));
  endfunction

  function automatic context_t context_of(index_t index);
    return '{
        slot: slot_t'(context_index_t'(index) / context_index_t'(CONTEXTS)),
        number: number_t'(index) & number_t'(CONTEXTS - 1)
    };
  endfunction

  typedef struct packed {
    logic   armed;
    logic   odd;
    ticks_t until_;
  } entry_t;

  typedef enum logic [2:0] {
    CLEAR,    // the table after reset
    READ,
    COMPARE,
    ACT,
    EXPIRED
  } state_e;

  (* ram_style = "block" *) logic [$bits(ticks_t)-1:0] time_limits[ALL];
  (* ram_style = "block" *) logic [$bits(entry_t)-1:0] entries[ALL];

  // ---- a call begins: its limit, then its entry ----
  logic     fetched_q, writes_q;
  context_t starting_q, writing_q;
  logic     odd_q;
  ticks_t   arrived_q, limit_q;
  entry_t   begun_q;
  always_ff @(posedge clk) begin
    if (limits) time_limits[index_of(limited)] <= limit;
    limit_q    <= time_limits[index_of(starting)];
    starting_q <= starting;
    odd_q      <= odd;
    arrived_q  <= arrived;
    writing_q  <= starting_q;
    begun_q    <= '{armed: limit_q != '0, odd: odd_q, until_: arrived_q + limit_q};
    fetched_q  <= !rst && starts;
    writes_q   <= !rst && fetched_q;
  end

  // ---- a look at each context in turn ----
  state_e state_q;
  index_t at_q;
  entry_t entry_q;
  ticks_t left_q;
  logic   armed_q;     // some context may have a deadline
  logic   seen_q;      // in this round one had
  logic   touched_q;   // the entry was written since it was read

  wire over = entry_q.armed && left_q[$bits(ticks_t)-1];
  wire touches = writes_q && index_of(writing_q) == at_q;
  wire clears = state_q == CLEAR || state_q == ACT && over && !touched_q && !writes_q;
  wire round = at_q == index_t'(ALL - 1);

  always_ff @(posedge clk) begin
    if (writes_q || clears) entries[writes_q ? index_of(writing_q) : at_q] <= writes_q ? begun_q : '0;
    if (state_q == READ) entry_q <= entries[at_q];
    left_q <= entry_q.until_ - now - 1'b1;
    unique case (state_q)
      CLEAR: begin
        at_q <= at_q + 1'b1;
        if (round) state_q <= READ;
      end
      READ: begin
        touched_q <= touches;
        if (armed_q) state_q <= COMPARE;
      end
      COMPARE: begin
        touched_q <= touched_q || touches;
        if (entry_q.armed) seen_q <= 1'b1;
        state_q <= ACT;
      end
      ACT: begin
        touched_q <= touched_q || touches;
        if (!over || touched_q || !writes_q) begin
          state_q <= over && !touched_q ? EXPIRED : READ;
          if (!over || touched_q) at_q <= at_q + 1'b1;
          if (round) begin
            seen_q  <= 1'b0;
            armed_q <= seen_q;
          end
        end
      end
      EXPIRED:
      if (expired.ready) begin
        at_q    <= at_q + 1'b1;
        state_q <= READ;
      end
      default: state_q <= READ;
    endcase
    if (fetched_q || writes_q) begin
      armed_q <= 1'b1;
      seen_q  <= 1'b1;
    end
    if (rst) begin
      state_q <= CLEAR;
      at_q    <= '0;
      armed_q <= 1'b0;
      seen_q  <= 1'b0;
    end
  end

  assign expired.valid = state_q == EXPIRED;
  assign expired.data  = '{of: context_of(at_q), odd: entry_q.odd, late: 1'b1};
  assign idle          = !starts && !fetched_q && !writes_q && state_q != EXPIRED && !(state_q == ACT && over);

  always_ff @(posedge clk) if (!rst) assert (!starts || state_q != CLEAR);
endmodule
