// SPDX-License-Identifier: Apache-2.0

// Types of what passes through the packet plane to and from the network card of the device's host (docs/reference/network-card.md).
package card_pkg;
  import packet_pkg::*;
  import virtio_pkg::*;

  // The bit in which the MAC address of the card differs from that of the device.
  localparam mac_t CARD_MAC_BIT = 48'h0400_0000_0000;

  // Which frames the card gets and may send.
  typedef struct packed {
    logic present;        // there is a card
    mac_t mac;
    logic shared;         // it has the MAC address of the device, and so its IP addresses, too
    logic promiscuous;    // it also gets what is for other stations
    logic answers_arp;    // shared: the host answers ARP and neighbour solicitations for the device's addresses, else the device does,
    logic answers_echo;   // and so with echo requests
    logic any_source;     // it may send from other MAC addresses than its own
    net_hash_t hash;      // of what packets its driver wants hashes
  } card_settings_t;

  // Selects the pair of queues.
  typedef logic [1:0] flow_t;

  // Of TCP and UDP: each bit is the sum of some bits of addresses and ports.
  function automatic flow_t flow_of(ip_addr_t src, ip_addr_t dst, logic [31:0] ports);
    logic [15:0] mixed;
    flow_t       flow;
    mixed = src[15:0] ^ dst[15:0] ^ ports[31:16] ^ ports[15:0];
    flow  = '0;
    for (int unsigned i = 0; i < 8; i++) flow ^= mixed[2*i+:2];
    return flow;
  endfunction

  // Whether a frame passes through the kernel of the streaming socket.
  typedef enum logic [1:0] {
    STREAM_AS_SET,        // as the socket's settings say
    STREAM_THROUGH,
    STREAM_AROUND
  } stream_choice_e;

  // About a frame that has ended.
  typedef struct packed {
    logic wanted;         // the card gets it
    logic checked;        // IPv4 header and the checksum of TCP, UDP or ICMP are right
    logic  pair_set;      // a rule has chosen the pair of queues:
    flow_t flow;          // this one; else a number that frames of a connection have in common
    net_edit_t edit;      // what a rule changes in it
    stream_choice_e stream;
    logic  hashed;        // the packet has what the driver wants a hash of,
    hash_index_t hash;    // the lowest bits of which are these
  } card_verdict_t;
endpackage
