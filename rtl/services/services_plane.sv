// SPDX-License-Identifier: Apache-2.0

// The services plane: slow protocols over UDP. Their messages leave the packet plane by a route of their own, wait in a small store that takes
// or drops, and are worked on 32 bits at a time; answers are one user of the packet plane's transmit side.
//
//   service_receive ── service_steer ┬ ipbus ─────────── service_merge ── service_send
//          │ who may                 │   └ cci_guard ── register bus
//   ipbus_admission                  ├ address_service ┤
//                                    │     └ the device's addresses
//                                    └ mdns_responder ─┤     └─── tx
//                      dropped packets ─ unreachable ──┘ lldp_sender ─┘
//
// A further service takes a place in service_e and service_ports_t: service_steer tells messages apart by `service` in their record, and
// service_merge takes a message at a time. DHCP answers may use the whole store, as authorised clients of IPbus may: there are never more
// than a few of them (dhcp_client). mDNS queries use the half of strangers, one at a time.
//
// Latency and throughput: see the units.
module services_plane
  import packet_pkg::*;
  import services_pkg::*;
  import address_pkg::*;
  import mdns_pkg::*;
  import cci_pkg::*;
  import time_pkg::*;
#(
    parameter int unsigned DATA_W = 512,
    parameter int unsigned CLOCK_HZ = 250_000_000,
    parameter int unsigned CONTEXTS = 4,        // IPbus clients at once
    parameter int unsigned BUFFERS = 2,         // responses kept for each
    parameter bit          DISCOVERY = 1'b1,    // mDNS and LLDP; else mdns_no_responder
    parameter bit          IPV6 = 1'b1          // the device has IPv6 addresses; all services are over IPv4
) (
    input  logic            clk,
    input  logic            rst,
    input  time_t           now,
    input  logic            enable,
    input  mac_t            mac,
    output local_addr_t     local_addr,
    input  address_settings_t address_settings,
    output address_status_t address_status,
    input  discovery_settings_t discovery,
    input  logic            icmp_errors,        // are sent about
    input  logic            unwanted_valid,     // what the packet plane has dropped
    input  unwanted_t       unwanted,
    input  cci_settings_t   settings,
    output service_ports_t  ports,              // where the services listen
    stream_if.sink          frame,              // frame_rx_t of CLASS_UDP to one of these, or of CLASS_RA
    axis_if.sink            payload,
    stream_if.source        tx,                 // frame_tx_t
    axis_if.source          tx_payload,
    axil_if.master          bus,                // registers: 20 bits of address
    stream_if.source        claim,              // arp_claim_t: probes and announcements
    output arp_watch_t      watch,
    input  logic            conflict,
    output nd_watch_t       nd_watch,
    input  logic            nd_conflict,
    output withdrawal_t     withdrawal,         // of the address: what uses it is closed
    input  logic            closed,
    input  logic            abandoned,
    output service_events_t events,
    output address_events_t address_events,
    output ipv4_addr_t      client,             // of IPbus: whom an event of a login is about
    output logic            idle
);
  assign ports[SERVICE_IPBUS] = settings.port;
  assign ports[SERVICE_DHCP]  = local_addr.dhcp ? UDP_PORT_DHCP : '0;
  assign ports[SERVICE_MDNS]  = local_addr.mdns ? MDNS_PORT : '0;
  assign ports[SERVICE_ROUTER] = '0;

  logic            offered_valid, admitted, favoured, seen_authorised;
  logic            ipbus_admitted, ipbus_favoured, dhcp_admitted, mdns_admitted, router_admitted;
  logic            tick, address_idle, mdns_idle, icmp_idle;
  local_addr_t     addressed;
  service_e        judged_q;
  mdns_events_t    mdns_events;
  logic [63:0]     offered_first;
  service_rx_t     offered;
  service_events_t ipbus_events, other_events;
  logic            receive_idle, ipbus_idle, send_idle, lldp_idle;
  stream_if #(.T(service_rx_t)) message ();
  stream_if #(.T(service_word_t)) words ();
  stream_if #(.T(service_rx_t)) taken[SERVICES] ();
  stream_if #(.T(service_word_t)) taken_words[SERVICES] ();
  localparam int unsigned ANSWERS = SERVICES;
  localparam service_e UNREACHABLE = SERVICE_ROUTER;   // in its place: a router gets no answer
  stream_if #(.T(service_tx_t)) answer[ANSWERS] ();
  stream_if #(.T(service_word_t)) answer_words[ANSWERS] ();
  stream_if #(.T(service_tx_t)) response ();
  stream_if #(.T(service_word_t)) response_words ();
  stream_if #(.T(frame_tx_t)) datagram ();
  stream_if #(.T(frame_tx_t)) link ();
  stream_if #(.T(cci_ask_t)) ask ();
  stream_if #(.T(cci_told_t)) told ();

  service_receive #(.DATA_W(DATA_W)) receive (
      .clk, .rst, .ports, .frame, .payload, .offered_valid, .offered, .offered_first, .admitted, .favoured, .message, .words,
      .rx_message(other_events.rx_message), .drop_length(other_events.drop_length), .drop_room(other_events.drop_room),
      .idle(receive_idle)
  );

  always_ff @(posedge clk) judged_q <= offered.service;
  always_comb
    unique case (judged_q)
      SERVICE_DHCP: {admitted, favoured} = {dhcp_admitted, 1'b1};
      SERVICE_MDNS: {admitted, favoured} = {mdns_admitted, 1'b0};
      SERVICE_ROUTER: {admitted, favoured} = {router_admitted, 1'b0};
      default:      {admitted, favoured} = {ipbus_admitted, ipbus_favoured};
    endcase

  service_steer steer (.clk, .rst, .message, .words, .to(taken), .to_words(taken_words));
  service_merge #(.N(ANSWERS)) merge (.clk, .rst, .from(answer), .from_words(answer_words), .message(response), .words(response_words));

  logic leaving;
  address_service #(.CLOCK_HZ(CLOCK_HZ), .IPV6(IPV6)) addresses (
      .clk, .rst, .now, .enable, .mac, .settings(address_settings), .local_addr(addressed), .status(address_status), .tick,
      .offered_valid(offered_valid && offered.service == SERVICE_DHCP), .offered_first, .admitted(dhcp_admitted),
      .message(taken[SERVICE_DHCP]), .words(taken_words[SERVICE_DHCP]),
      .response(answer[SERVICE_DHCP]), .response_words(answer_words[SERVICE_DHCP]),
      .admitted_router(router_admitted), .router_message(taken[SERVICE_ROUTER]), .router_words(taken_words[SERVICE_ROUTER]),
      .claim, .watch, .conflict, .nd_watch, .nd_conflict, .withdrawal, .leaving, .closed, .abandoned, .events(address_events), .idle(address_idle)
  );

  always_comb begin
    local_addr      = addressed;
    local_addr.mdns = DISCOVERY && discovery.mdns && addressed.ip != '0;
  end

  if (DISCOVERY) begin : g_mdns
    mdns_responder responder (
        .clk, .rst, .tick, .enable(discovery.mdns), .local_addr, .leaving, .port(discovery.port),
        .offered_valid(offered_valid && offered.service == SERVICE_MDNS), .offered, .offered_first, .admitted(mdns_admitted),
        .message(taken[SERVICE_MDNS]), .words(taken_words[SERVICE_MDNS]),
        .response(answer[SERVICE_MDNS]), .response_words(answer_words[SERVICE_MDNS]), .events(mdns_events), .idle(mdns_idle)
    );
  end else begin : g_mdns
    mdns_no_responder responder (
        .admitted(mdns_admitted), .message(taken[SERVICE_MDNS]), .words(taken_words[SERVICE_MDNS]),
        .response(answer[SERVICE_MDNS]), .response_words(answer_words[SERVICE_MDNS]), .events(mdns_events), .idle(mdns_idle)
    );
    logic unused_ok;
    assign unused_ok = &{1'b0, discovery, leaving};
  end

  unreachable icmp (
      .clk, .rst, .tick, .enable(icmp_errors), .local_addr, .unwanted_valid, .unwanted, .message(answer[UNREACHABLE]),
      .words(answer_words[UNREACHABLE]), .sent(other_events.unreachable_sent), .limited(other_events.unreachable_limited), .idle(icmp_idle)
  );

  ipbus_admission admission (
      .clk, .rst, .now, .source(settings.source), .source_prefix(settings.source_prefix), .offered_valid(offered_valid && offered.service == SERVICE_IPBUS),
      .ip(offered.ip), .authorised(seen_authorised), .admitted(ipbus_admitted), .favoured(ipbus_favoured), .drop_source(other_events.drop_source), .drop_rate(other_events.drop_rate)
  );

  ipbus #(
      .CONTEXTS(CONTEXTS), .BUFFERS(BUFFERS), .IN_USE_CYCLES(longint'(CLOCK_HZ) * 2)
  ) management (
      .clk, .rst, .now, .own_ip(local_addr.ip), .port(settings.port), .session_cycles(settings.session_cycles), .seen_ip(offered.ip), .seen_port(offered.port),
      .seen_authorised, .message(taken[SERVICE_IPBUS]), .words(taken_words[SERVICE_IPBUS]),
      .response(answer[SERVICE_IPBUS]), .response_words(answer_words[SERVICE_IPBUS]), .ask, .told, .client, .events(ipbus_events), .idle(ipbus_idle)
  );

  cci_guard guard (
      .clk, .rst, .token(settings.token), .ask, .told, .bus, .refused(other_events.refused), .login_wrong(other_events.login_wrong)
  );

  service_send #(.DATA_W(DATA_W)) send (
      .clk, .rst, .mac, .message(response), .words(response_words), .tx(datagram), .tx_payload, .sent(other_events.tx_message),
      .idle(send_idle)
  );

  // ---- LLDP: a frame is a header only, so it may go between a datagram's header and its payload ----
  logic link_offered_q;
  if (DISCOVERY) begin : g_lldp
    lldp_sender neighbours (
        .clk, .rst, .tick, .enable(enable && discovery.lldp), .mac, .ip(addressed.ip), .tx(link), .sent(other_events.lldp_sent),
        .idle(lldp_idle)
    );
  end else begin : g_no_lldp
    assign link.valid             = 1'b0;
    assign link.data              = '0;
    assign other_events.lldp_sent = 1'b0;
    assign lldp_idle              = 1'b1;
    logic unused_ok;
    assign unused_ok = &{1'b0, link.ready};
  end
  wire link_first = link.valid && (link_offered_q || !datagram.valid);
  always_ff @(posedge clk) link_offered_q <= !rst && link_first && !tx.ready;
  assign tx.valid       = link.valid || datagram.valid;
  assign tx.data        = link_first ? link.data : datagram.data;
  assign link.ready     = link_first && tx.ready;
  assign datagram.ready = !link_first && tx.ready;

  // What only ipbus counts.
  assign other_events.drop_malformed  = 1'b0;
  assign other_events.drop_id         = 1'b0;
  assign other_events.drop_context    = 1'b0;
  assign other_events.resent          = 1'b0;
  assign other_events.resend_unknown  = 1'b0;
  assign other_events.bus_error       = 1'b0;
  assign other_events.login           = 1'b0;
  assign other_events.login_refused   = 1'b0;
  assign other_events.session_expired = 1'b0;
  assign other_events.mdns_query      = mdns_events.mdns_query;
  assign other_events.mdns_sent       = mdns_events.mdns_sent;
  assign other_events.mdns_other      = mdns_events.mdns_other;
  assign other_events.mdns_busy       = mdns_events.mdns_busy;
  assign other_events.drop_mdns       = mdns_events.drop_mdns;
  assign events = ipbus_events | other_events;

  assign idle = receive_idle && ipbus_idle && send_idle && address_idle && mdns_idle && lldp_idle && icmp_idle;
endmodule
