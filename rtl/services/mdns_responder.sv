// SPDX-License-Identifier: Apache-2.0

// Multicast DNS responder (RFC 6762) for one service of one host (DNS-SD, RFC 6763). While the device has an IPv4 address and `enable` is
// set, it announces its records, twice (8.3) and again whenever the address changes, and answers queries for them; when that ends it says
// goodbye (10.1). Every message holds all records: see mdns_send. Names hold the MAC address, so nobody is asked whether they are free.
//
// To the group there is a message a second at most, goodbyes excepted (6), and an answer is 62 to 125 ms late, since others may answer the
// same question. A query that asks for a unicast answer gets one at once if the group has heard the records within 30 s, a quarter of the
// shortest time to live (5.4), but one each tick of 1/16 s at most; else the group does. So what is sent is bounded whatever is received.
//
// `admitted` answers `offered_valid` in the next cycle: queries from port 5353 of a host within the own prefix (11) are taken, one at a time:
// the next one when this one has been read, or ADMIT_PAUSE cycles later if it was dropped on its way.
module mdns_responder
  import packet_pkg::*;
  import services_pkg::*;
  import mdns_pkg::*;
  import address_pkg::*;
#(
    parameter int unsigned ADMIT_PAUSE = 4096
) (
    input  logic        clk,
    input  logic        rst,
    input  logic        tick,                // 1/16 s has passed
    input  logic        enable,
    input  local_addr_t local_addr,
    input  logic        leaving,             // the address is about to go
    input  logic [15:0] port,                // of the service that is announced

    input  logic        offered_valid,       // a message that arrives, with its first 8 bytes
    input  service_rx_t offered,
    input  logic [63:0] offered_first,
    output logic        admitted,
    stream_if.sink      message,             // service_rx_t
    stream_if.sink      words,               // service_word_t
    stream_if.source    response,            // service_tx_t
    stream_if.source    response_words,      // service_word_t

    output mdns_events_t events,
    output logic        idle
);
  typedef logic [8:0] since_t;               // ticks
  localparam since_t SPACE = since_t'(TICKS + 1);          // a second at least: the first tick may come at once
  localparam since_t RECENT = since_t'(30 * TICKS);
  localparam logic [1:0] DELAY = 2'd2;
  localparam logic [1:0] ANNOUNCEMENTS = 2'd2;

  // ---- admission ----
  typedef struct packed {
    logic [15:0] id;
    logic        response;
    logic [3:0]  opcode;
    logic [10:0] flags;
    logic [15:0] questions;
    logic [15:0] answers;
  } dns_start_t;
  typedef logic [$clog2(ADMIT_PAUSE)-1:0] pause_t;
  dns_start_t first;
  ipv4_addr_t mask_q;
  logic       offered_q, query_q, receive_idle, malformed;
  pause_t     pause_q;
  assign first = offered_first;
  wire free = receive_idle && pause_q == '0;
  assign admitted = query_q && free;

  always_ff @(posedge clk) begin
    mask_q    <= ~(ipv4_addr_t'('1) >> local_addr.prefix_length);
    offered_q <= !rst && offered_valid;
    query_q   <= !rst && offered_valid && !first.response && first.opcode == '0 && first.questions != '0 && offered.port == MDNS_PORT
        && ((offered.ip ^ local_addr.ip) & mask_q) == '0;
    if (rst || (message.valid && message.ready)) pause_q <= '0;
    else if (admitted) pause_q <= pause_t'(ADMIT_PAUSE - 1);
    else if (pause_q != '0) pause_q <= pause_q - 1'b1;
  end

  // ---- queries, messages ----
  stream_if #(.T(mdns_query_t)) query ();
  stream_if #(.T(mdns_message_t)) request ();
  mdns_query_t asked;
  assign asked = query.data;
  assign query.ready = 1'b1;
  mdns_receive receive (.clk, .rst, .mac(local_addr.mac), .message, .words, .query, .malformed, .idle(receive_idle));
  mdns_send send (.clk, .rst, .mac(local_addr.mac), .port, .request, .response, .response_words);

  // ---- what is to be sent ----
  ipv4_addr_t    ip_q;               // announced
  logic          on_q, send_q, goodbye_q, unicast_due_q, group_due_q;
  logic          unicast_free_q;     // none was sent in this tick
  logic [1:0]    announce_q, delay_q;
  since_t        since_q;            // the last message to the group
  mdns_message_t message_q;
  mac_t          asker_q;
  ipv4_addr_t    asker_ip_q;
  wire on = enable && local_addr.enable && local_addr.ip != '0 && !leaving;
  wire may_group = since_q >= SPACE;
  wire to_group = may_group && (announce_q != '0 || (group_due_q && delay_q == '0));

  logic begins_q;                    // the address is new
  always_ff @(posedge clk) begin
    begins_q <= !rst && on && !begins_q && (!on_q || local_addr.ip != ip_q);
    if (tick) begin
      if (since_q != '1) since_q <= since_q + 1'b1;
      if (delay_q != '0) delay_q <= delay_q - 1'b1;
      unicast_free_q <= 1'b1;
    end

    if (query.valid && on_q) begin
      if (asked.unicast && unicast_free_q && since_q < RECENT && !unicast_due_q) begin
        unicast_due_q <= 1'b1;
        unicast_free_q    <= 1'b0;
        asker_q       <= asked.mac;
        asker_ip_q    <= asked.ip;
      end else if (!group_due_q) begin
        group_due_q <= 1'b1;
        delay_q     <= DELAY;
      end
    end

    // A message that is being sent is made from message_q.
    if (send_q) send_q <= !request.ready;
    else begin
      message_q <= '{goodbye: goodbye_q, unicast: !goodbye_q && unicast_due_q, mac: asker_q, ip: asker_ip_q, own_ip: ip_q};
      if (goodbye_q) begin
        send_q    <= 1'b1;
        goodbye_q <= 1'b0;
      end else if (unicast_due_q) begin
        send_q        <= 1'b1;
        unicast_due_q <= 1'b0;
      end else if (to_group) begin
        send_q      <= 1'b1;
        since_q     <= '0;
        group_due_q <= 1'b0;
        if (announce_q != '0) announce_q <= announce_q - 1'b1;
      end
    end

    on_q <= on;
    if (on_q && !on) begin
      goodbye_q     <= 1'b1;
      unicast_due_q <= 1'b0;
      group_due_q   <= 1'b0;
      announce_q    <= '0;
    end
    if (begins_q && on) begin
      ip_q       <= local_addr.ip;
      announce_q <= ANNOUNCEMENTS;
    end

    if (rst) begin
      on_q          <= 1'b0;
      send_q        <= 1'b0;
      goodbye_q     <= 1'b0;
      unicast_due_q <= 1'b0;
      group_due_q   <= 1'b0;
      unicast_free_q    <= 1'b1;
      announce_q    <= '0;
      delay_q       <= '0;
      since_q       <= '1;
    end
  end

  assign request.valid = send_q;
  assign request.data  = message_q;

  always_ff @(posedge clk)
    events <= rst ? '0 : '{
        mdns_query: query.valid,
        mdns_sent: request.valid && request.ready,
        mdns_other: offered_q && !query_q,
        mdns_busy: query_q && !free,
        drop_mdns: malformed
    };

  assign idle = receive_idle && !send_q && !goodbye_q && !unicast_due_q && !to_group && !begins_q && on == on_q;
endmodule
