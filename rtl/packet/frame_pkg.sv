// SPDX-License-Identifier: Apache-2.0

// The receive record: the fields of a received frame. Only packet_parser fills it and uses offsets in a frame; every unit behind it reads
// fields by name. The class of the frame (frame_class_e) determines which fields are defined.
package frame_pkg;
  import packet_pkg::*;
  import roce_wire_pkg::*;

  // The protocol of a frame. docs/how-to/add-a-frame-class.md describes how to add one.
  typedef enum logic [3:0] {
    CLASS_ARP,        // IPv4 over Ethernet, well formed
    CLASS_ICMP,       // echo request to this device
    CLASS_ROCE,       // UDP to port 4791 of this device, ICRC verified
    CLASS_UDP,        // any other UDP to this device, an expected DHCP answer to all, or mDNS to its group
    CLASS_TCP,        // to this device; the header is in the record and not checked
    CLASS_IP,         // IPv4 or IPv6 to this device with any other protocol
    CLASS_IPV6,       // to this device's Ethernet address, while it has no IPv6
    CLASS_VLAN,       // with a tag (IEEE 802.1Q, 802.1ad), or not of the device's VLAN, to this device or to a group
    CLASS_GROUP,      // to a multicast or broadcast Ethernet address, ARP, DHCP and mDNS excepted
    CLASS_OTHER,      // any other EtherType, to this device's Ethernet address
    CLASS_ND,         // neighbour solicitation or advertisement to this device or a group of it, options not checked
    CLASS_RA          // router advertisement, likewise; its payload begins with the reachable time
  } frame_class_e;
  localparam int unsigned CLASSES = 12;

  // Who listens at the port of a datagram.
  typedef enum logic [1:0] {
    LISTENS_NOBODY,
    LISTENS_SERVICE,  // of IPv4 datagrams from one host
    LISTENS_KERNEL    // likewise, and to this device alone
  } listener_e;

  // The payload of the other classes is the whole frame, from its Ethernet header on: no header is removed.
  function automatic logic whole_frame(frame_class_e cls);
    return !(cls inside {CLASS_ARP, CLASS_ICMP, CLASS_ROCE, CLASS_UDP, CLASS_ND, CLASS_RA});
  endfunction

  // ---- layer 2 ----

  // The outer tag, if there is one, or the one that was removed from a frame of the device's VLAN.
  typedef struct packed {
    logic        present;
    logic        service;          // an 802.1ad service tag, else an 802.1Q tag
    logic [2:0]  pcp;
    logic        dei;
    logic [11:0] vid;              // 0: a priority tag
  } vlan_t;

  typedef struct packed {
    mac_t  src;
    logic  group;                  // to a multicast or broadcast address,
    logic  broadcast;              // to the latter
    vlan_t vlan;
  } l2_t;

  // ---- layer 3: IPv4 or IPv6 ----
  typedef struct packed {
    logic [15:0] identification;
    logic        reserved;
    logic        df;
    logic        mf;
    logic [12:0] offset;
  } fragment_t;

  typedef struct packed {
    logic        v6;
    ip_addr_t    src;
    ip_addr_t    dst;
    logic [5:0]  dscp;
    logic [1:0]  ecn;
    logic [15:0] total_length;     // IPv6: of what follows its header
    logic [7:0]  hop_limit;        // IPv4: TTL
    logic [7:0]  protocol;
    fragment_t   fragment;         // IPv4
    logic [15:0] header_checksum;  // IPv4
  } l3_t;

  // ---- layer 4, by class ----

  // The extension headers of a RoCE packet (IBTA 9.2), each in its own fields for every opcode. A packet has the immediate data or the key
  // to invalidate, and at most one of the others; those that it does not have are undefined.
  typedef struct packed {
    reth_t       reth;
    logic [95:0] unused;
  } ext_reth_t;
  typedef struct packed {
    aeth_t         aeth;
    atomicacketh_t atomicacketh;
    logic [127:0]  unused;
  } ext_aeth_t;
  typedef struct packed {
    deth_t        deth;
    logic [159:0] unused;
  } ext_deth_t;
  typedef union packed {
    ext_reth_t  request;
    atomiceth_t atomiceth;         // its va and rkey are those of a RETH
    ext_aeth_t  response;
    ext_deth_t  datagram;
  } ext_t;

  typedef struct packed {
    udp_hdr_t    udp;
    bth_t        bth;
    ext_t        ext;
    logic [31:0] word;             // ImmDt or IETH
  } l4_roce_t;

  typedef struct packed {
    udp_hdr_t    udp;
    logic [63:0] first;            // 8 bytes of the payload, if it has as many
    logic [$bits(l4_roce_t)-$bits(udp_hdr_t)-65:0] unused;
  } l4_udp_t;

  typedef struct packed {
    tcp_hdr_t tcp;                 // without options
    logic [$bits(l4_roce_t)-$bits(tcp_hdr_t)-1:0] unused;
  } l4_tcp_t;

  typedef struct packed {
    icmp_echo_hdr_t echo;
    logic [$bits(l4_roce_t)-$bits(icmp_echo_hdr_t)-1:0] unused;
  } l4_icmp_t;

  typedef struct packed {
    logic       request;           // else a reply
    mac_t       sha;
    ipv4_addr_t spa;
    ipv4_addr_t tpa;
    logic [$bits(l4_roce_t)-2*$bits(ipv4_addr_t)-$bits(mac_t)-2:0] unused;
  } l4_arp_t;

  // Neighbour solicitation or advertisement, as nd_hdr_t, with what may be three options of 8 bytes: l3.total_length tells which are there.
  localparam int unsigned ND_OPTIONS = 3;
  typedef struct packed {
    logic [7:0]  icmp_type;
    logic [7:0]  code;
    logic [15:0] checksum;
    logic        router;
    logic        solicited;
    logic        override_;
    logic [28:0] reserved;
    ip_addr_t    target;
    nd_lla_t [ND_OPTIONS-1:0] options;   // the first one highest
    logic [$bits(l4_roce_t)-64-$bits(ip_addr_t)-ND_OPTIONS*$bits(nd_lla_t)-1:0] unused;
  } l4_nd_t;

  typedef union packed {
    l4_roce_t roce;
    l4_udp_t  udp;
    l4_tcp_t  tcp;
    l4_icmp_t icmp;
    l4_arp_t  arp;
    l4_nd_t   nd;
  } l4_t;

  // The fields of the headers.
  typedef struct packed {
    logic one_host;                // IP, from a unicast source: answers may be sent to it
    l2_t  l2;
    l3_t  l3;                      // of IP packets
    l4_t  l4;                      // also of ARP
  } headers_t;

  // Received: one for each frame that passed every check of its class (Ethernet destination; IP header and checksum; lengths;
  // UDP or ICMP checksum; ICRC). Its payload, if payload_length > 0, is the next packet of the payload stream.
  typedef struct packed {
    frame_class_e cls;
    listener_e    listener;        // of CLASS_UDP
    logic [15:0]  payload_length;  // bytes after the last header of the class, without pad, ICRC and Ethernet padding; or the whole frame
    headers_t     headers;
  } frame_rx_t;
endpackage
