// SPDX-License-Identifier: Apache-2.0

// Types of the stream kernel `nat`.
package nat_pkg;
  import packet_pkg::*;

  localparam int unsigned ENTRIES = 32;

  // The first bytes of a frame without a tag.
  typedef struct packed {
    ipv4_hdr_t ip;
    tcp_hdr_t  tcp;
  } tcp_packet_t;

  typedef struct packed {
    ipv4_hdr_t ip;
    udp_hdr_t  udp;
    logic [$bits(tcp_packet_t)-$bits(ipv4_hdr_t)-$bits(udp_hdr_t)-1:0] rest;
  } udp_packet_t;

  typedef struct packed {
    ipv4_hdr_t      ip;
    icmp_echo_hdr_t icmp;
    logic [$bits(tcp_packet_t)-$bits(ipv4_hdr_t)-$bits(icmp_echo_hdr_t)-1:0] rest;
  } icmp_packet_t;

  typedef struct packed {
    arp_hdr_t arp;
    logic [$bits(tcp_packet_t)-$bits(arp_hdr_t)-1:0] rest;
  } arp_packet_t;

  typedef union packed {
    tcp_packet_t  tcp;
    udp_packet_t  udp;
    icmp_packet_t icmp;
    arp_packet_t  arp;
  } packet_t;

  typedef struct packed {
    eth_hdr_t eth;
    packet_t  packet;
  } head_t;
  localparam int unsigned HEAD_BYTES = $bits(head_t) / 8;                                    // 54
  localparam int unsigned TCP_BYTES = HEAD_BYTES;
  localparam int unsigned UDP_BYTES = ETH_HDR_BYTES + IPV4_HDR_BYTES + UDP_HDR_BYTES;        // so many are needed
  localparam int unsigned ICMP_BYTES = ETH_HDR_BYTES + IPV4_HDR_BYTES + ICMP_ECHO_HDR_BYTES;
  localparam int unsigned ARP_BYTES = ETH_HDR_BYTES + ARP_HDR_BYTES;

  typedef enum logic [2:0] {
    KIND_OTHER,       // nothing that is translated
    KIND_TCP,
    KIND_UDP,
    KIND_ICMP,        // echo request or reply
    KIND_ARP
  } kind_e;

  // One end of a connection.
  typedef struct packed {
    kind_e       kind;
    ipv4_addr_t  ip;
    logic [15:0] port;   // of ICMP the identifier; of ARP 0
  } end_t;

  typedef struct packed {
    kind_e       kind;   // KIND_OTHER: there is no entry
    ipv4_addr_t  inside_ip;
    logic [15:0] inside_port;
    logic [15:0] outside_port;
  } entry_t;

  typedef struct packed {
    logic       enable;
    logic       drop_rx;
    logic       drop_tx;
    ipv4_addr_t outside;
    ipv4_addr_t host;
  } nat_settings_t;

  // What becomes of a frame: `to` is the end that it gets.
  typedef struct packed {
    logic        drop;
    logic        translate;
    end_t        to;
    logic [15:0] ip_checksum;
    logic [15:0] checksum;   // of TCP, UDP or ICMP
  } decision_t;
endpackage
