// SPDX-License-Identifier: Apache-2.0

// The services plane: slow protocols over UDP. Their messages leave the packet plane by a route of their own, wait in a small store that takes
// or drops, and are worked on 32 bits at a time; answers are one user of the packet plane's transmit side.
//
//   service_receive ── messages ── ipbus ── messages ── service_send
//          │ who may              │ accesses
//   ipbus_admission            cci_guard ── register bus
//
// A further service takes a place in service_e and service_ports_t: its messages are told apart by `service` in their record, behind
// service_receive, and its answers join those of the others in front of service_send, a message at a time.
//
// Latency and throughput: see the units.
module services_plane
  import packet_pkg::*;
  import services_pkg::*;
  import cci_pkg::*;
  import time_pkg::*;
#(
    parameter int unsigned DATA_W = 512,
    parameter int unsigned CLOCK_HZ = 250_000_000,
    parameter int unsigned CONTEXTS = 4,        // IPbus clients at once
    parameter int unsigned BUFFERS = 2          // responses kept for each
) (
    input  logic            clk,
    input  logic            rst,
    input  time_t           now,
    input  local_addr_t     local_addr,
    input  cci_settings_t   settings,
    output service_ports_t  ports,              // where the services listen
    stream_if.sink          frame,              // frame_rx_t of CLASS_UDP to one of these
    axis_if.sink            payload,
    stream_if.source        tx,                 // frame_tx_t
    axis_if.source          tx_payload,
    axil_if.master          bus,                // registers: 20 bits of address
    output service_events_t events,
    output logic            idle
);
  assign ports[SERVICE_IPBUS] = settings.port;

  logic            offered_valid, admitted, favoured, seen_authorised;
  service_rx_t     offered;
  service_events_t ipbus_events, other_events;
  logic            receive_idle, ipbus_idle, send_idle;
  stream_if #(.T(service_rx_t)) message ();
  stream_if #(.T(service_word_t)) words ();
  stream_if #(.T(service_tx_t)) response ();
  stream_if #(.T(service_word_t)) response_words ();
  stream_if #(.T(cci_ask_t)) ask ();
  stream_if #(.T(cci_told_t)) told ();

  service_receive #(.DATA_W(DATA_W)) receive (
      .clk, .rst, .ports, .frame, .payload, .offered_valid, .offered, .admitted, .favoured, .message, .words,
      .rx_message(other_events.rx_message), .drop_length(other_events.drop_length), .drop_room(other_events.drop_room),
      .idle(receive_idle)
  );

  ipbus_admission admission (
      .clk, .rst, .now, .source(settings.source), .source_prefix(settings.source_prefix), .offered_valid, .ip(offered.ip),
      .authorised(seen_authorised), .admitted, .favoured, .drop_source(other_events.drop_source), .drop_rate(other_events.drop_rate)
  );

  ipbus #(
      .CONTEXTS(CONTEXTS), .BUFFERS(BUFFERS), .IN_USE_CYCLES(longint'(CLOCK_HZ) * 2)
  ) management (
      .clk, .rst, .now, .port(settings.port), .session_cycles(settings.session_cycles), .seen_ip(offered.ip), .seen_port(offered.port),
      .seen_authorised, .message, .words, .response, .response_words, .ask, .told, .events(ipbus_events), .idle(ipbus_idle)
  );

  cci_guard guard (
      .clk, .rst, .token(settings.token), .ask, .told, .bus, .refused(other_events.refused), .login_wrong(other_events.login_wrong)
  );

  service_send #(.DATA_W(DATA_W)) send (
      .clk, .rst, .local_addr, .message(response), .words(response_words), .tx, .tx_payload, .sent(other_events.tx_message),
      .idle(send_idle)
  );

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
  assign events = ipbus_events | other_events;

  assign idle = receive_idle && ipbus_idle && send_idle;
endmodule
