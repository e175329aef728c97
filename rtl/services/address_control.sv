// SPDX-License-Identifier: Apache-2.0

// Owns the device's IPv4 address: takes it from the registers, from the DHCP client, or chooses a link-local one (RFC 3927), makes sure
// that nobody else has it (RFC 5227), and gives it up again.
//
// A new address is probed three times (RFC 5227, 2.1.1) and announced twice: once by arp, which announces every change, once by a claim 2 s
// later. Meanwhile the old one stays in use, if there is one. When an address is lost or replaced, all connections are closed while it is
// still there, so that peers learn of it: they get LEAVE ticks, or less if all have gone, then what is left is dropped.
//
// A static address that is set before the device is enabled is in use from the first cycle, without probes: whoever set it has decided, and
// the device starts at once. It is defended for ever, once each 10 s (2.4, c). Any other address is defended once; a second conflict within
// 10 s takes it away (2.4, b). After 10 conflicts there is a pause of 60 s before the next address (2.1.1).
//
// Random times have the resolution of a tick, 1/16 s.
module address_control
  import packet_pkg::*;
  import address_pkg::*;
(
    input  logic            clk,
    input  logic            rst,
    input  logic            tick,
    input  logic [31:0]     random,
    input  mac_t            mac,
    input  address_mode_e   mode,
    input  address_t        fixed,
    input  lease_t          lease,
    input  logic            failing,        // no DHCP server answers
    output logic            in_use,         // the lease is, or was and is being left
    output logic            lease_conflict, // until the lease has gone

    output address_t        address,        // ip 0: none
    output address_origin_e origin,
    output address_state_e  state,
    stream_if.source        claim,          // arp_claim_t
    output arp_watch_t      watch,
    input  logic            conflict,       // pulse: another host has what is watched
    output withdrawal_t     withdrawal,
    input  logic            closed,         // no connection is left
    input  logic            abandoned,      // what `abandon` asks for is done
    output logic            found_conflict, // pulses
    output logic            defended,
    output logic            lost,           // an address that was in use is gone
    output logic            idle
);
  // RFC 5227, 1.1, in ticks.
  localparam int unsigned PROBES = 3;
  localparam logic [9:0] PROBE_MIN = 10'(TICKS);
  localparam logic [9:0] ANNOUNCE_WAIT = 10'(2 * TICKS);
  localparam logic [9:0] ANNOUNCE_INTERVAL = 10'(2 * TICKS);
  localparam logic [7:0] DEFEND_INTERVAL = 8'(10 * TICKS);
  localparam logic [9:0] RATE_LIMIT_INTERVAL = 10'(60 * TICKS);
  localparam logic [3:0] MAX_CONFLICTS = 4'd10;
  localparam logic [9:0] LEAVE = 10'(TICKS / 2);

  address_state_e  state_q;
  address_origin_e origin_q, wanted_origin;
  address_t        address_q, wanted;
  ipv4_addr_t      candidate_q;     // probed, or being probed
  logic            probed_q;        // nobody else has it
  logic [9:0]      wait_q;
  logic [1:0]      probes_q;
  logic [3:0]      conflicts_q;     // since an address was last taken into use
  logic [7:0]      defence_q;       // ticks until a conflict may be answered again
  logic            announce_q;      // the second announcement is due when wait_q is over
  logic            claim_q, claim_probe_q;
  logic            lease_conflict_q;

  // ---- link-local: first an address that follows from the MAC address, so that it stays the same (RFC 3927, 2.1); 169.254.1.0 to .254.255 ----
  logic [15:0] local_q;
  ipv4_addr_t local_ip_q;
  always_ff @(posedge clk) local_ip_q <= {16'ha9fe, local_q[15:8] inside {8'd0, 8'd255} ? 8'd128 : local_q[15:8], local_q[7:0]};

  // ---- what is wanted ----
  always_comb begin
    wanted        = fixed;
    wanted_origin = ORIGIN_NONE;
    if (mode == MODE_STATIC) wanted_origin = ORIGIN_STATIC;
    else if (lease.valid && !lease_conflict_q) begin
      wanted_origin = ORIGIN_DHCP;
      wanted        = lease.address;
    end else if (failing && mode == MODE_DHCP_OR_STATIC) wanted_origin = ORIGIN_STATIC;
    else if (failing && mode == MODE_DHCP_OR_LINK_LOCAL) begin
      wanted_origin = ORIGIN_LINK_LOCAL;
      wanted        = '{ip: local_ip_q, prefix_length: 6'd16, gateway: '0};
    end
    if (wanted.ip == '0) wanted_origin = ORIGIN_NONE;
  end

  address_t        wanted_q;
  address_origin_e wanted_origin_q;
  logic            fits_q, same_q;  // what is wanted is in use; has been probed
  always_ff @(posedge clk) begin
    wanted_q        <= wanted;
    wanted_origin_q <= wanted_origin;
    fits_q <= wanted_origin != ORIGIN_NONE && origin_q != ORIGIN_NONE && wanted.ip == address_q.ip;
    same_q <= wanted_origin != ORIGIN_NONE && wanted.ip == candidate_q;
  end
  wire wants = wanted_origin_q != ORIGIN_NONE;
  wire has = origin_q != ORIGIN_NONE;
  wire over = wait_q == '0 && !claim_q;
  logic settled_q;                  // fits_q and same_q belong to this state

  wire probing = state_q inside {ADDRESS_WAIT, ADDRESS_PROBE};
  wire contested = conflict && !probing && has;
  wire keeps = origin_q == ORIGIN_STATIC;

  always_ff @(posedge clk) begin
    settled_q      <= 1'b1;
    found_conflict <= 1'b0;
    defended       <= 1'b0;
    lost           <= 1'b0;
    if (tick && wait_q != '0) wait_q <= wait_q - 1'b1;
    if (tick && defence_q != '0) defence_q <= defence_q - 1'b1;
    if (claim.ready) claim_q <= 1'b0;
    if (!lease.valid) lease_conflict_q <= 1'b0;

    if (settled_q)
      unique case (state_q)
        ADDRESS_REST: begin
          if (wants && fits_q) begin
            // A renewed lease may have another mask or router.
            address_q.prefix_length <= wanted_q.prefix_length;
            address_q.gateway       <= wanted_q.gateway;
            origin_q                <= wanted_origin_q;
            if (announce_q && over) begin
              announce_q    <= 1'b0;
              claim_q       <= 1'b1;
              claim_probe_q <= 1'b0;
            end
          end else if (wants && !claim_q) begin
            state_q     <= ADDRESS_WAIT;
            settled_q   <= 1'b0;
            candidate_q <= wanted_q.ip;
            probed_q    <= 1'b0;
            probes_q    <= 2'(PROBES);
            wait_q      <= 10'(random[3:0]);
          end else if (!wants && has) begin
            state_q   <= ADDRESS_LEAVE;
            settled_q <= 1'b0;
            wait_q    <= LEAVE;
          end
          if (contested) begin
            found_conflict <= 1'b1;
            if (defence_q == '0) begin
              defended      <= 1'b1;
              defence_q     <= DEFEND_INTERVAL;
              claim_q       <= 1'b1;
              claim_probe_q <= 1'b0;
            end else if (!keeps) begin
              if (origin_q == ORIGIN_DHCP) lease_conflict_q <= 1'b1;
              else local_q <= local_q + random[15:0];
              state_q   <= ADDRESS_LEAVE;
              settled_q <= 1'b0;
              wait_q    <= LEAVE;
            end
          end
        end

        ADDRESS_WAIT, ADDRESS_PROBE: begin
          if (conflict) begin
            found_conflict <= 1'b1;
            state_q   <= ADDRESS_PAUSE;
            settled_q <= 1'b0;
            wait_q    <= wanted_origin_q == ORIGIN_STATIC || conflicts_q == MAX_CONFLICTS ? RATE_LIMIT_INTERVAL : '0;
            if (conflicts_q != MAX_CONFLICTS) conflicts_q <= conflicts_q + 1'b1;
            if (wanted_origin_q == ORIGIN_DHCP) lease_conflict_q <= 1'b1;
            else local_q <= local_q + random[15:0];
          end else if (!same_q) begin
            state_q   <= ADDRESS_REST;
            settled_q <= 1'b0;
          end else if (over) begin
            state_q <= ADDRESS_PROBE;
            if (probes_q != '0) begin
              claim_q       <= 1'b1;
              claim_probe_q <= 1'b1;
              probes_q      <= probes_q - 1'b1;
              wait_q        <= probes_q == 2'd1 ? ANNOUNCE_WAIT : PROBE_MIN + 10'(random[3:0]);
            end else begin
              probed_q  <= 1'b1;
              settled_q <= 1'b0;
              wait_q    <= LEAVE;
              state_q   <= ADDRESS_LEAVE;
            end
          end
        end

        ADDRESS_PAUSE: if (over || (wanted_origin_q == ORIGIN_DHCP && conflicts_q != MAX_CONFLICTS)) begin
          state_q   <= ADDRESS_REST;
          settled_q <= 1'b0;
        end

        ADDRESS_LEAVE: if (!has || over || closed) state_q <= ADDRESS_ABANDON;

        default: if (!has || abandoned) begin          // ADDRESS_ABANDON
          lost      <= has;
          state_q   <= ADDRESS_REST;
          settled_q <= 1'b0;
          origin_q  <= ORIGIN_NONE;
          address_q <= '0;
          defence_q <= '0;
          probed_q  <= 1'b0;
          if (probed_q && wants && same_q) begin
            address_q   <= wanted_q;
            origin_q    <= wanted_origin_q;
            conflicts_q <= '0;
            announce_q  <= 1'b1;
            wait_q      <= ANNOUNCE_INTERVAL;
          end
        end
      endcase

    if (rst) begin
      state_q          <= ADDRESS_REST;
      settled_q        <= 1'b0;
      address_q        <= mode == MODE_STATIC ? fixed : '0;
      origin_q         <= mode == MODE_STATIC && fixed.ip != '0 ? ORIGIN_STATIC : ORIGIN_NONE;
      local_q          <= mac[15:0] ^ mac[31:16];
      wait_q           <= '0;
      conflicts_q      <= '0;
      defence_q        <= '0;
      announce_q       <= 1'b0;
      claim_q          <= 1'b0;
      probed_q         <= 1'b0;
      lease_conflict_q <= 1'b0;
    end
  end

  assign claim.valid = claim_q;
  assign claim.data  = '{probe: claim_probe_q, ip: ip_mapped(watch.ip)};
  assign watch       = '{valid: probing || has, probing: probing, ip: probing ? candidate_q : address_q.ip};
  assign withdrawal = '{
      leaving: has && state_q inside {ADDRESS_LEAVE, ADDRESS_ABANDON} ? own_set_t'(1 << OWN_IPV4) : '0,
      abandon: has && state_q == ADDRESS_ABANDON
  };

  assign address        = address_q;
  assign origin         = origin_q;
  assign state          = state_q;
  assign in_use         = origin_q == ORIGIN_DHCP;
  assign lease_conflict = lease_conflict_q;
  assign idle = settled_q && !claim_q && !withdrawal.abandon
      && (state_q == ADDRESS_REST ? (wants ? fits_q && !(announce_q && over) : !has) : !over);
endmodule
