// SPDX-License-Identifier: Apache-2.0

// Owns the device's IPv6 addresses: the link-local one, which follows from the MAC address (RFC 4291, appendix A), and a global one, from
// the registers or from a router's prefix (RFC 4862); and knows the router (RFC 4861, 6.3).
//
// An address is probed once before it is used (duplicate address detection, RFC 4862, 5.4), but for the static one: whoever set it has
// decided. If somebody else has it, it is not used; after a pause of 60 s the device looks again. Once the link-local address is there the
// device asks for routers, three times at most (RFC 4861, 6.3.7).
//
// The first prefix that a router offers is the device's until its lifetime ends, which an advertisement makes no shorter than two hours
// (RFC 4862, 5.5.3, e); no other one is taken meanwhile. So with the first router, until it says that it is none or its lifetime ends.
//
// When the global address goes, or both do because IPv6 is switched off, the connections that use it are closed as address_control does it
// with those of IPv4. The address stays meanwhile.
module ipv6_address
  import packet_pkg::*;
  import address_pkg::*;
(
    input  logic           clk,
    input  logic           rst,
    input  logic           tick,           // 1/16 s
    input  logic [3:0]     random,
    input  mac_t           mac,
    input  ipv6_settings_t settings,
    input  logic           heard,          // a router has said
    input  advertisement_t advertisement,
    output logic           has_prefix,     // this one is used, or probed for
    output logic [63:0]    prefix,
    output logic           on,             // neighbour discovery is received
    output ip_addr_t       link_local,     // 0: none
    output ip_addr_t       global_,        // 0: none
    output logic           on_link,
    output ip_addr_t       router,         // 0: none
    output ipv6_status_t   status,
    stream_if.source       claim,          // arp_claim_t
    output nd_watch_t      watch,
    input  logic           conflict,       // pulse: somebody else has what is watched
    output withdrawal_t    withdrawal,
    input  logic           closed,         // no connection is left
    input  logic           abandoned,      // what `abandon` asks for is done
    output logic           found_conflict, // pulses
    output logic           lost,           // an address that was in use is gone
    output logic           idle
);
  // RFC 4861, 10, and RFC 4862, 5.1, in ticks; a tick more for the one that has begun.
  localparam logic [9:0] RETRANS = 10'(TICKS + 1);
  localparam logic [9:0] SOLICITATION_INTERVAL = 10'(4 * TICKS + 1);
  localparam logic [1:0] SOLICITATIONS = 2'd3;
  localparam logic [9:0] PAUSE = 10'(60 * TICKS);
  localparam logic [9:0] LEAVE = 10'(TICKS / 2);
  localparam seconds32_t TWO_HOURS = 32'd7200;
  localparam seconds32_t FOR_EVER = '1;

  ipv6_state_e  state_q;
  logic         local_q;              // the link-local address is in use,
  ipv6_origin_e origin_q;             // and a global one, of this origin
  logic         candidate_q;          // prefix_q waits to be probed, or is being probed
  prefix_t      prefix_q;
  ip_addr_t     fixed_q;
  logic [63:0]  router_q;
  logic [15:0]  router_left_q;
  logic [9:0]   wait_q;
  logic [1:0]   solicit_q;            // solicitations that are left
  logic         claim_q;
  arp_claim_t   claimed_q;
  logic         all_leave_q;          // in IPV6_LEAVE and IPV6_ABANDON: the link-local address goes too
  logic [3:0]   ticks_q;
  logic         second_q;

  wire [63:0]    id = interface_id(mac);
  wire ip_addr_t own_local = {LINK_LOCAL_PREFIX, id};
  wire ip_addr_t own_prefix = {prefix_q.prefix, id};
  wire ip_addr_t used = origin_q == IPV6_STATIC ? fixed_q : own_prefix;
  wire over = wait_q == '0 && !claim_q;
  wire probing = state_q inside {IPV6_WAIT, IPV6_PROBE};
  wire has_fixed = settings.fixed != '0;
  wire has = origin_q != IPV6_NONE;

  // The global address has to go.
  wire unwanted = has && (!settings.on || (origin_q == IPV6_STATIC ? settings.fixed != fixed_q
                                                                   : has_fixed || !settings.autonomous || prefix_q.valid == '0));

  always_ff @(posedge clk) begin
    found_conflict <= 1'b0;
    lost           <= 1'b0;
    second_q       <= tick && ticks_q == '1;
    if (tick) ticks_q <= ticks_q + 1'b1;
    if (tick && wait_q != '0) wait_q <= wait_q - 1'b1;
    if (claim.ready) claim_q <= 1'b0;

    if (second_q) begin
      if (router_left_q != '0) router_left_q <= router_left_q - 1'b1;
      if (prefix_q.valid != '0 && prefix_q.valid != FOR_EVER) prefix_q.valid <= prefix_q.valid - 1'b1;
      if (prefix_q.preferred != '0 && prefix_q.preferred != FOR_EVER) prefix_q.preferred <= prefix_q.preferred - 1'b1;
    end

    if (heard && settings.autonomous && local_q) begin
      if (advertisement.router == router_q || router_left_q == '0) begin
        router_q      <= advertisement.router;
        router_left_q <= advertisement.lifetime;
        if (advertisement.lifetime != '0) solicit_q <= '0;
      end
      if (advertisement.has_prefix && advertisement.current) begin
        prefix_q.preferred <= advertisement.prefix.preferred;
        prefix_q.on_link   <= advertisement.prefix.on_link;
        if (advertisement.prefix.valid > TWO_HOURS || advertisement.prefix.valid > prefix_q.valid)
          prefix_q.valid <= advertisement.prefix.valid;
        else if (prefix_q.valid > TWO_HOURS) prefix_q.valid <= TWO_HOURS;
      end else if (advertisement.has_prefix && !has_prefix && !has_fixed) begin
        prefix_q    <= advertisement.prefix;
        candidate_q <= 1'b1;
      end
    end

    unique case (state_q)
      IPV6_REST: begin
        if (unwanted || (!settings.on && local_q)) begin
          state_q     <= IPV6_LEAVE;
          wait_q      <= LEAVE;
          all_leave_q <= !settings.on;
        end else if (settings.on && has_fixed && !has && !claim_q) begin
          origin_q    <= IPV6_STATIC;
          fixed_q     <= settings.fixed;
          candidate_q <= 1'b0;
          claim_q     <= 1'b1;
          claimed_q   <= '{probe: 1'b0, ip: settings.fixed};
        end else if (settings.on && !local_q) begin
          if (over) begin
            state_q <= IPV6_WAIT;
            wait_q  <= 10'(random);
          end
        end else if (settings.on && candidate_q && !claim_q) begin
          state_q <= IPV6_WAIT;
          wait_q  <= 10'(random);
        end else if (settings.on && settings.autonomous && solicit_q != '0 && over) begin
          solicit_q <= solicit_q - 1'b1;
          claim_q   <= 1'b1;
          claimed_q <= '{probe: 1'b0, ip: ALL_ROUTERS};
          wait_q    <= SOLICITATION_INTERVAL;
        end
      end

      IPV6_WAIT, IPV6_PROBE: begin
        if (!settings.on || (local_q && !candidate_q)) state_q <= IPV6_REST;
        else if (conflict) begin
          found_conflict <= 1'b1;
          candidate_q    <= 1'b0;
          state_q        <= IPV6_PAUSE;
          wait_q         <= PAUSE;
        end else if (over && state_q == IPV6_WAIT) begin
          claim_q   <= 1'b1;
          claimed_q <= '{probe: 1'b1, ip: watch.ip};
          state_q   <= IPV6_PROBE;
          wait_q    <= RETRANS;
        end else if (over) begin
          claim_q   <= 1'b1;
          claimed_q <= '{probe: 1'b0, ip: watch.ip};
          state_q   <= IPV6_REST;
          wait_q    <= '0;
          local_q   <= 1'b1;
          if (local_q) begin
            candidate_q <= 1'b0;
            origin_q    <= IPV6_ROUTER;
          end else solicit_q <= SOLICITATIONS;
        end
      end

      IPV6_PAUSE: if (over || !settings.on) begin
        state_q <= IPV6_REST;
        wait_q  <= '0;
        if (local_q) solicit_q <= SOLICITATIONS;
      end

      IPV6_LEAVE: if (over || closed) state_q <= IPV6_ABANDON;

      default: if (abandoned) begin                  // IPV6_ABANDON
        lost        <= 1'b1;
        state_q     <= IPV6_REST;
        wait_q      <= '0;
        origin_q    <= IPV6_NONE;
        candidate_q <= 1'b0;
        solicit_q   <= SOLICITATIONS;
        if (all_leave_q) begin
          local_q       <= 1'b0;
          router_left_q <= '0;
        end
      end
    endcase

    if (rst) begin
      state_q       <= IPV6_REST;
      local_q       <= 1'b0;
      origin_q      <= IPV6_NONE;
      candidate_q   <= 1'b0;
      router_left_q <= '0;
      wait_q        <= '0;
      solicit_q     <= '0;
      claim_q       <= 1'b0;
      ticks_q       <= '0;
    end
  end

  assign claim.valid = claim_q;
  assign claim.data  = claimed_q;
  assign watch       = '{valid: probing, ip: local_q ? own_prefix : own_local};
  assign withdrawal  = '{
      leaving: state_q inside {IPV6_LEAVE, IPV6_ABANDON} ? all_leave_q ? ALL_IPV6 : own_set_t'(1 << OWN_GLOBAL) : '0,
      abandon: state_q == IPV6_ABANDON
  };

  assign has_prefix = candidate_q || origin_q == IPV6_ROUTER;
  assign prefix     = prefix_q.prefix;
  assign on         = settings.on || local_q;
  assign link_local = local_q ? own_local : '0;
  assign global_    = has ? used : '0;
  assign on_link    = has && (origin_q == IPV6_STATIC || prefix_q.on_link);
  assign router     = router_left_q != '0 ? {LINK_LOCAL_PREFIX, router_q} : '0;
  assign status = '{
      has_local: local_q,
      origin: origin_q,
      state: state_q,
      deprecated: origin_q == IPV6_ROUTER && prefix_q.preferred == '0,
      valid_left: origin_q == IPV6_ROUTER ? prefix_q.valid : '0,
      preferred_left: origin_q == IPV6_ROUTER ? prefix_q.preferred : '0,
      router_left: router_left_q
  };
  assign idle = !claim_q && !second_q && !found_conflict && !lost
      && (state_q == IPV6_REST ? !unwanted && (settings.on ? local_q && (has || !has_fixed) && !candidate_q
                                                             && !(settings.autonomous && solicit_q != '0 && over)
                                                           : !local_q)
          : state_q == IPV6_LEAVE ? !over && !closed : state_q != IPV6_ABANDON && !over && settings.on);
endmodule
