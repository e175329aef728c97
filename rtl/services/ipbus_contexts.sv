// SPDX-License-Identifier: Apache-2.0

// The clients of the IPbus unit: a context for each (IPv4 address, port), authorised or not.
//
// A client whose login has succeeded keeps its context until it logs out or is silent for `session_cycles`; nothing that strangers send can
// take it away. A context without authorisation goes to whoever needs one next: the one that is free, else the one that was not used for
// the longest time. So strangers can fill all of these and still keep nobody from logging in. If there is none left, a client with the token
// gets the one of the authorised client that has been silent for the longest time, if that is IN_USE_CYCLES or more: clients that have gone
// without a logout, or have made a new socket, keep nobody out for long.
//
// The answers to lookups come 1 cycle late. What a command does is seen 3 cycles after it, what time does up to CONTEXTS + 3 cycles late.
module ipbus_contexts
  import packet_pkg::*;
  import time_pkg::*;
#(
    parameter int unsigned CONTEXTS = 4,
    parameter longint unsigned IN_USE_CYCLES = 500_000_000
) (
    input  logic        clk,
    input  logic        rst,
    input  time_t       now,
    input  logic [47:0] session_cycles,

    input  ipv4_addr_t  seen_ip,          // a packet that arrives
    input  logic [15:0] seen_port,
    output logic        seen_authorised,

    input  ipv4_addr_t  ip,               // the packet that is worked on: stable
    input  logic [15:0] port,
    output logic        found,
    output logic [(CONTEXTS > 1 ? $clog2(CONTEXTS) : 1)-1:0] at,        // its context, if found
    output logic        authorised,       // found, and authorised
    output logic        can_take,         // there is a context that it can have
    output logic [(CONTEXTS > 1 ? $clog2(CONTEXTS) : 1)-1:0] victim,    // which
    output logic        can_enter,        // the same for one that has the token
    output logic [(CONTEXTS > 1 ? $clog2(CONTEXTS) : 1)-1:0] entrance,

    input  logic [(CONTEXTS > 1 ? $clog2(CONTEXTS) : 1)-1:0] target,    // the context that these are about
    input  logic        take,             // the client gets it
    input  logic        used,             // has sent a packet
    input  logic        login,            // is authorised
    input  logic        logout,
    output logic        expired           // pulse
);
  typedef logic [(CONTEXTS > 1 ? $clog2(CONTEXTS) : 1)-1:0] index_t;
  typedef logic [CONTEXTS-1:0] set_t;

  typedef struct packed {
    ipv4_addr_t  ip;
    logic [15:0] port;
  } client_t;

  client_t [CONTEXTS-1:0] client_q;
  set_t                   taken_q, authorised_q;
  set_t    [CONTEXTS-1:0] later_q;        // [i][j]: i was used later than j

  // ---- lookups ----
  set_t match_q, seen_match_q, free, silent_q, strangers, enterable;
  assign strangers = ~authorised_q;
  assign enterable = |strangers ? strangers : silent_q;
  assign free      = ~taken_q & (taken_q + 1'b1);   // the first
  always_ff @(posedge clk)
    for (int unsigned i = 0; i < CONTEXTS; i++) begin
      match_q[i]      <= taken_q[i] && client_q[i] == {ip, port};
      seen_match_q[i] <= taken_q[i] && client_q[i] == {seen_ip, seen_port};
    end

  // The one of these that was used before all others of them.
  function automatic set_t oldest(set_t pool, set_t [CONTEXTS-1:0] later);
    set_t one;
    for (int unsigned i = 0; i < CONTEXTS; i++) one[i] = pool[i] && (later[i] & pool) == '0;
    return one;
  endfunction

  function automatic index_t number(set_t one);
    index_t n;
    n = '0;
    for (int unsigned i = 0; i < CONTEXTS; i++) if (one[i]) n |= index_t'(i);
    return n;
  endfunction

  always_ff @(posedge clk) begin
    can_take   <= |strangers;
    victim     <= number(|free ? free : oldest(strangers, later_q));
    can_enter  <= |enterable;
    entrance   <= number(|free ? free : oldest(enterable, later_q));
  end

  assign seen_authorised = |(seen_match_q & authorised_q);
  assign found      = |match_q;
  assign at         = number(match_q);
  assign authorised = |(match_q & authorised_q);

  // ---- how long each has been silent: one is looked at each cycle ----
  index_t look_q, looked_q, target_q;
  logic   take_q, used_q, login_q, logout_q;
  logic   stale_q;                        // renewed while it was read
  time_t  age_q;
  (* ram_style = "distributed" *) time_t last_used[CONTEXTS];
  wire    renew = take_q || used_q;

  always_ff @(posedge clk) if (renew) last_used[target_q] <= now;

  always_ff @(posedge clk) begin
    target_q <= target;
    take_q   <= take && !rst;
    used_q   <= used && !rst;
    login_q  <= login;
    logout_q <= logout;
    look_q   <= look_q == index_t'(CONTEXTS - 1) ? '0 : look_q + 1'b1;
    looked_q <= look_q;
    age_q    <= now - last_used[look_q];
    stale_q  <= renew && target_q == look_q;
    expired  <= 1'b0;
    // What was found stays found: so an age that wraps does no harm.
    if (!stale_q) begin
      if (age_q >= time_t'(IN_USE_CYCLES)) silent_q[looked_q] <= 1'b1;
      if (age_q >= session_cycles && authorised_q[looked_q] && !(renew && target_q == looked_q)) begin
        authorised_q[looked_q] <= 1'b0;
        expired <= 1'b1;
      end
    end
    if (renew) silent_q[target_q] <= 1'b0;
    if (take_q) begin
      client_q[target_q]     <= '{ip: ip, port: port};
      taken_q[target_q]      <= 1'b1;
      authorised_q[target_q] <= 1'b0;
    end
    if (login_q) authorised_q[target_q] <= 1'b1;
    if (logout_q) authorised_q[target_q] <= 1'b0;
    if (renew)
      for (int unsigned i = 0; i < CONTEXTS; i++) begin
        later_q[i][target_q] <= 1'b0;
        if (index_t'(i) == target_q) later_q[i] <= ~(set_t'(1) << i);
      end
    if (rst) begin
      taken_q      <= '0;
      authorised_q <= '0;
      later_q      <= '0;
      look_q       <= '0;
      expired      <= 1'b0;
    end
  end
endmodule
