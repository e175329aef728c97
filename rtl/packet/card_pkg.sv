// SPDX-License-Identifier: Apache-2.0

// Types of what passes through the packet plane to and from the network card of the device's host (docs/reference/network-card.md).
package card_pkg;
  import packet_pkg::*;

  // Which frames the card gets and may send.
  typedef struct packed {
    logic present;        // there is a card
    mac_t mac;
    logic shared;         // it has the MAC address of the device, and so its IP addresses, too
    logic promiscuous;    // it also gets what is for other stations
    logic answers_arp;    // shared: the host answers ARP and neighbour solicitations for the device's addresses, else the device does,
    logic answers_echo;   // and so with echo requests
    logic any_source;     // it may send from other MAC addresses than its own
  } card_settings_t;

  // About a frame that has ended.
  typedef struct packed {
    logic wanted;         // the card gets it
    logic checked;        // IPv4 header and the checksum of TCP, UDP or ICMP are right
  } card_verdict_t;
endpackage
