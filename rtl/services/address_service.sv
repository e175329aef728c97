// SPDX-License-Identifier: Apache-2.0

// The device's IPv4 address: address_control, which owns it, with dhcp_client, and the time and the chance of both. Everything else sees
// the result, `local_addr`, which may change while the device lives; address 0.0.0.0: none, and then nothing but DHCP answers is received.
//
// In static mode local_addr is stable from before the end of reset on.
module address_service
  import packet_pkg::*;
  import services_pkg::*;
  import address_pkg::*;
  import time_pkg::*;
#(
    parameter int unsigned CLOCK_HZ = 250_000_000
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

    stream_if.source          claim,              // arp_claim_t
    output arp_watch_t        watch,
    input  logic              conflict,
    output withdrawal_t       withdrawal,
    input  logic              closed,
    input  logic              abandoned,
    output address_events_t   events,
    output logic              idle
);
  logic   second, expects, in_use, lease_conflict, failing;
  logic   ticks_idle, client_idle, control_idle;
  lease_t lease;
  address_t address;

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
      .address, .origin(status.origin), .state(status.state), .claim, .watch, .conflict, .withdrawal, .closed, .abandoned,
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
      default: '0
  };

  assign idle = ticks_idle && client_idle && control_idle;
endmodule
