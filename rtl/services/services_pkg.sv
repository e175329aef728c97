// SPDX-License-Identifier: Apache-2.0

// Types of the services plane: messages of slow protocols over UDP, as records and streams of 32-bit words.
package services_pkg;
  import packet_pkg::*;

  // A message is the payload of one UDP datagram in one IPv4 packet on Ethernet (MTU 1500).
  localparam int unsigned MESSAGE_BYTES = 1500 - IPV4_HDR_BYTES - UDP_HDR_BYTES;  // 1472
  localparam int unsigned MESSAGE_WORDS = MESSAGE_BYTES / 4;
  typedef logic [10:0] message_length_t;  // bytes
  typedef logic [8:0] message_words_t;

  // Who takes a message: the place of its port in the list of the plane.
  typedef enum logic [1:0] {
    SERVICE_IPBUS,
    SERVICE_DHCP,
    SERVICE_MDNS,
    SERVICE_ROUTER                // router advertisements: not over UDP
  } service_e;
  localparam int unsigned SERVICES = 4;
  typedef logic [SERVICES-1:0][15:0] service_ports_t;  // 0: this service does not listen

  // Received. The words of the message follow on the stream of words, in the same order.
  typedef struct packed {
    service_e        service;
    mac_t            mac;        // answers go back to it: nothing is resolved
    ipv4_addr_t      ip;
    logic [15:0]     port;       // of the sender
    message_length_t length;     // 1 to MESSAGE_BYTES
  } service_rx_t;

  // A router advertisement has the interface identifier of its sender in place of `mac` and `ip`, for nobody answers, and the router lifetime
  // in place of `port`.
  function automatic service_rx_t router_record(logic [63:0] id, logic [15:0] lifetime, message_length_t length);
    return '{service: SERVICE_ROUTER, mac: 48'(id[63:32]), ip: id[31:0], port: lifetime, length: length};
  endfunction

  function automatic logic [63:0] router_of(service_rx_t message);
    return {message.mac[31:0], message.ip};
  endfunction

  // Of the packets that are sent: may pass routers, or must not, as mDNS wants it (RFC 6762, 11).
  localparam logic [7:0] TTL_ROUTED = 8'd64;
  localparam logic [7:0] TTL_LINK = 8'd255;

  // To send: the words follow.
  typedef struct packed {
    mac_t            mac;
    ipv4_addr_t      ip;
    ipv4_addr_t      from_ip;
    logic [15:0]     port;
    logic [15:0]     from_port;
    logic [7:0]      ttl;
    logic            icmp;       // an ICMP message: type and code in place of `from_port`, its checksum in that of `port`
    message_length_t length;
  } service_tx_t;

  // The first byte of a message is the most significant of its first word. Bytes behind the end are undefined.
  typedef struct packed {
    logic        last;
    logic [31:0] data;
  } service_word_t;

  function automatic logic [31:0] byte_swapped(logic [31:0] word);
    return {word[7:0], word[15:8], word[23:16], word[31:24]};
  endfunction

  // How the device makes itself known.
  typedef struct packed {
    logic        mdns;            // by multicast DNS
    logic        lldp;            // by LLDP, to the switch
    logic [15:0] port;            // at which it says that callers connect
  } discovery_settings_t;

  // Events of the services: one pulse each, counted by the control plane.
  typedef struct packed {
    logic rx_message;             // taken into the store
    logic tx_message;
    logic drop_length;            // empty, or longer than a message can be
    logic drop_room;              // the store was full
    logic drop_source;            // IPbus: from an address outside of the source filter
    logic drop_rate;              // IPbus: without authorisation, faster than such packets are taken
    logic drop_malformed;         // IPbus: no IPbus 2.0 packet
    logic drop_id;                // IPbus: a control packet that is not the next one: executed before, or one before it is missing
    logic drop_context;           // IPbus: every context belongs to an authorised client
    logic resent;                 // IPbus: a response was sent once more
    logic resend_unknown;         // IPbus: there is no such response, or it was resent too often without authorisation
    logic refused;                // IPbus: an access that is not public, without authorisation; or to what only the local bus may access
    logic bus_error;              // IPbus: there is no such register, or its owner did not answer
    logic login;
    logic login_wrong;            // with a wrong token
    logic login_refused;          // with the token, but every context belongs to an authorised client that is in use
    logic session_expired;        // an authorised client was silent for too long
    logic mdns_query;             // mDNS: a query for a record of this device that it does not know yet
    logic mdns_sent;              // mDNS: an announcement, an answer or a goodbye was sent
    logic mdns_other;             // mDNS: ignored: no query, or not from port 5353 of a host of this network
    logic mdns_busy;              // mDNS: a query was dropped because another one was being read
    logic drop_mdns;              // mDNS: a query that is not well formed
    logic lldp_sent;              // LLDP: a frame was sent
    logic unreachable_sent;       // ICMP: destination unreachable
    logic unreachable_limited;    // ICMP: was not sent: too many in a short time
  } service_events_t;
endpackage
