// SPDX-License-Identifier: Apache-2.0

// The device's addresses: address_control, which owns that of IPv4, with dhcp_client; ipv6_address, which owns those of IPv6, with
// ra_receive; and the time and the chance of them. Everything else sees the result, `local_addr`, which may change while the device lives;
// without an address nothing is received by IPv4 but DHCP answers, by IPv6 but neighbour discovery.
//
// In static mode local_addr is stable from before the end of reset on.
module address_service
  import packet_pkg::*;
  import services_pkg::*;
  import address_pkg::*;
  import time_pkg::*;
#(
    parameter int unsigned CLOCK_HZ = 250_000_000,
    parameter bit          IPV6 = 1'b1
) (
    input  logic              clk,
    input  logic              rst,
    input  time_t             now,
    input  logic              enable,
    input  mac_t              mac,
    input  address_settings_t settings,
    output local_addr_t       local_addr,
    output address_status_t   status,
    output logic              tick,               // 1/16 s has passed

    input  logic              offered_valid,      // a DHCP message that arrives: see dhcp_client
    input  logic [63:0]       offered_first,
    output logic              admitted,
    stream_if.sink            message,            // service_rx_t
    stream_if.sink            words,              // service_word_t
    stream_if.source          response,           // service_tx_t
    stream_if.source          response_words,     // service_word_t

    output logic              admitted_router,    // a router advertisement that arrives
    stream_if.sink            router_message,     // service_rx_t
    stream_if.sink            router_words,       // service_word_t

    stream_if.source          claim,              // arp_claim_t
    output arp_watch_t        watch,
    input  logic              conflict,
    output nd_watch_t         nd_watch,
    input  logic              nd_conflict,
    output withdrawal_t       withdrawal,         // of one IP version at a time
    output logic              leaving,            // the IPv4 address
    input  logic              closed,
    input  logic              abandoned,
    output address_events_t   events,
    output logic              idle
);
  logic   second, expects, in_use, lease_conflict, failing;
  logic   ticks_idle, client_idle, control_idle;
  lease_t lease;
  address_t address;
  logic     ipv6_on, on_link, ipv6_idle;
  ip_addr_t link_local, global_, router;
  withdrawal_t withdrawals[2];
  logic     ipv6_turn_q;                           // the connections of IPv6 are closed, else those of IPv4
  stream_if #(.T(arp_claim_t)) claims[2] ();

  tick_clock #(.CYCLES(longint'(CLOCK_HZ) / longint'(TICKS)), .PER_SECOND(TICKS)) ticks (
      .clk, .rst, .now, .tick, .second, .idle(ticks_idle)
  );

  // x^32 + x^22 + x^2 + x + 1, a step a cycle. Transaction ids are for everybody on the network to see: the halves of the seed are folded, so
  // that they tell little of what keys are made from.
  logic [31:0] random_q;
  always_ff @(posedge clk)
    random_q <= rst ? {settings.seed[31:16] ^ settings.seed[15:0], mac[15:1], 1'b1}
                    : {random_q[30:0], random_q[31] ^ random_q[21] ^ random_q[1] ^ random_q[0]};

  dhcp_client client (
      .clk, .rst, .tick, .second, .random(random_q), .mac, .run(settings.mode != MODE_STATIC),
      .renew(settings.renew), .give_up(settings.give_up),
      .offered_valid, .offered_first, .expects, .admitted, .message, .words, .response, .response_words,
      .lease, .in_use, .conflict(lease_conflict), .failing,
      .state(status.dhcp), .lease_left(status.lease_left), .server(status.server),
      .got_nak(events.nak), .got_lease(events.lease), .lost_lease(events.lease_lost),
      .drop_malformed(events.drop_malformed), .drop_unexpected(events.drop_unexpected), .idle(client_idle)
  );

  address_control control (
      .clk, .rst, .tick, .random(random_q), .mac, .mode(settings.mode), .fixed(settings.fixed), .lease, .failing, .in_use, .lease_conflict,
      .address, .origin(status.origin), .state(status.state), .claim(claims[0]), .watch, .conflict,
      .withdrawal(withdrawals[0]), .closed, .abandoned(abandoned && !ipv6_turn_q),
      .found_conflict(events.conflict), .defended(events.defended), .lost(events.lost), .idle(control_idle)
  );

  assign local_addr = '{
      enable: enable,
      mac: mac,
      ip: address.ip,
      prefix_length: address.prefix_length,
      gateway: address.gateway,
      dhcp: expects,
      mdns: 1'b0,
      ipv6: ipv6_on,
      link_local: link_local,
      global_: global_,
      on_link: on_link,
      router: router
  };

  // ---- IPv6 ----
  if (IPV6) begin : g_ipv6
    logic           heard, has_prefix, router_idle, control6_idle;
    logic [63:0]    prefix;
    advertisement_t advertisement;

    ra_receive receive (
        .clk, .rst, .message(router_message), .words(router_words), .has_current(has_prefix), .current(prefix), .heard, .advertisement,
        .malformed(events.drop_router), .idle(router_idle)
    );

    ipv6_address control6 (
        .clk, .rst, .tick, .random(random_q[3:0]), .mac, .settings(settings.ipv6), .heard, .advertisement, .has_prefix, .prefix,
        .on(ipv6_on), .link_local, .global_, .on_link, .router, .status(status.ipv6), .claim(claims[1]), .watch(nd_watch),
        .conflict(nd_conflict), .withdrawal(withdrawals[1]), .closed, .abandoned(abandoned && ipv6_turn_q),
        .found_conflict(events.ipv6_conflict), .lost(events.ipv6_lost), .idle(control6_idle)
    );

    stream_arbiter #(.T(arp_claim_t), .N(2)) claimed (.clk, .rst, .in(claims), .last('1), .out(claim));

    // One at a time: they are short, and there is always the next.
    assign admitted_router = settings.ipv6.autonomous && router_idle;
    assign events.router_heard = heard;
    assign ipv6_idle = router_idle && control6_idle;
  end else begin : g_no_ipv6
    assign ipv6_on              = 1'b0;
    assign link_local           = '0;
    assign global_              = '0;
    assign on_link              = 1'b0;
    assign router               = '0;
    assign nd_watch             = '0;
    assign status.ipv6          = '0;
    assign claim.valid          = claims[0].valid;
    assign claim.data           = claims[0].data;
    assign claims[0].ready      = claim.ready;
    assign claims[1].valid      = 1'b0;
    assign claims[1].data       = '0;
    assign claims[1].ready      = 1'b0;
    assign withdrawals[1]       = '0;
    assign admitted_router      = 1'b0;
    assign router_message.ready = 1'b1;
    assign router_words.ready   = 1'b1;
    assign events.ipv6_conflict = 1'b0;
    assign events.ipv6_lost     = 1'b0;
    assign events.router_heard  = 1'b0;
    assign events.drop_router   = 1'b0;
    assign ipv6_idle            = 1'b1;
    logic unused_ok;
    assign unused_ok = &{1'b0, settings.ipv6, nd_conflict, claims[1].valid, claims[1].data, claims[1].ready, router_message.valid, router_message.data,
                         router_words.valid, router_words.data};
  end

  // ---- whose connections are closed ----
  always_ff @(posedge clk)
    ipv6_turn_q <= !rst && withdrawals[1].leaving != '0 && (ipv6_turn_q || withdrawals[0].leaving == '0);
  assign withdrawal = ipv6_turn_q ? withdrawals[1] : withdrawals[0];
  assign leaving    = withdrawals[0].leaving != '0;

  assign idle = ticks_idle && client_idle && control_idle && ipv6_idle && !claim.valid;
endmodule
