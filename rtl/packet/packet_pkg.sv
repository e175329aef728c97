// SPDX-License-Identifier: Apache-2.0

// Types of the packet plane: headers as packed structs in network order, fields named as in the standards, and the two streams on which
// frames pass between the packet plane and a protocol.
package packet_pkg;

  typedef logic [47:0] mac_t;
  typedef logic [31:0] ipv4_addr_t;

  // An IPv6 address, or an IPv4 address mapped into them (RFC 4291, 2.5.5.2).
  typedef logic [127:0] ip_addr_t;

  function automatic ip_addr_t ip_mapped(ipv4_addr_t ip);
    return {80'h0, 16'hffff, ip};
  endfunction

  // The IPv4 address that is mapped in it.
  function automatic ipv4_addr_t ipv4_of(ip_addr_t ip);
    return ip[31:0];
  endfunction

  function automatic logic is_mapped(ip_addr_t ip);
    return ip[127:32] == {80'h0, 16'hffff};
  endfunction

  // fe80::/64, the only part of fe80::/10 in which there are addresses (RFC 4291, 2.5.6).
  localparam logic [63:0] LINK_LOCAL_PREFIX = 64'hfe80_0000_0000_0000;

  function automatic logic is_link_local(ip_addr_t ip);
    return ip[127:64] == LINK_LOCAL_PREFIX;
  endfunction

  function automatic logic is_multicast(ip_addr_t ip);
    return ip[127:120] == 8'hff;
  endfunction

  localparam ip_addr_t ALL_NODES = 128'hff02_0000_0000_0000_0000_0000_0000_0001;    // RFC 4291, 2.7.1
  localparam ip_addr_t ALL_ROUTERS = 128'hff02_0000_0000_0000_0000_0000_0000_0002;

  localparam logic [103:0] SOLICITED_NODE_PREFIX = 104'hff02_0000_0000_0000_0000_0001_ff;

  // The group of the hosts that may have this address (RFC 4291, 2.7.1).
  function automatic ip_addr_t solicited_node(ip_addr_t ip);
    return {SOLICITED_NODE_PREFIX, ip[23:0]};
  endfunction

  localparam mac_t MAC_BROADCAST = '1;
  localparam int unsigned MAC_GROUP_BIT = 40;  // set in group addresses (IEEE 802, 8.2)
  localparam int unsigned MAC_LOCAL_BIT = 41;  // set in locally administered addresses (IEEE 802, 8.2)

  // The Ethernet address of an IPv6 group (RFC 2464, 7).
  function automatic mac_t mac_of_group(ip_addr_t ip);
    return {16'h3333, ip[31:0]};
  endfunction

  // The interface identifier that follows from a MAC address (RFC 4291, appendix A).
  function automatic logic [63:0] interface_id(mac_t mac);
    return {mac[47:24] ^ 24'h020000, 16'hfffe, mac[23:0]};
  endfunction

  // ---- Ethernet (IEEE 802.3) ----
  typedef enum logic [15:0] {
    ETHERTYPE_IPV4  = 16'h0800,
    ETHERTYPE_ARP   = 16'h0806,
    ETHERTYPE_CTAG  = 16'h8100,  // IEEE 802.1Q
    ETHERTYPE_IPV6  = 16'h86dd,
    ETHERTYPE_STAG  = 16'h88a8   // IEEE 802.1ad
  } ethertype_e;

  typedef struct packed {
    mac_t        dst;
    mac_t        src;
    logic [15:0] ethertype;
  } eth_hdr_t;
  localparam int unsigned ETH_HDR_BYTES = $bits(eth_hdr_t) / 8;  // 14

  // Follows the EtherType of a tag (IEEE 802.1Q, 9.6).
  typedef struct packed {
    logic [2:0]  pcp;
    logic        dei;
    logic [11:0] vid;
    logic [15:0] ethertype;
  } vlan_tag_t;

  // ---- ARP for IPv4 over Ethernet (RFC 826) ----
  typedef struct packed {
    logic [15:0] htype;
    logic [15:0] ptype;
    logic [7:0]  hlen;
    logic [7:0]  plen;
    logic [15:0] oper;
    mac_t        sha;
    ipv4_addr_t  spa;
    mac_t        tha;
    ipv4_addr_t  tpa;
  } arp_hdr_t;
  localparam int unsigned ARP_HDR_BYTES = $bits(arp_hdr_t) / 8;  // 28
  localparam logic [15:0] ARP_HTYPE_ETHERNET = 16'd1;
  localparam logic [15:0] ARP_REQUEST = 16'd1;
  localparam logic [15:0] ARP_REPLY = 16'd2;

  // ---- IPv4 without options (RFC 791, RFC 3168) ----
  typedef enum logic [7:0] {
    IPPROTO_HOP_BY_HOP = 8'd0,   // IPv6 extension headers (RFC 8200, 4; RFC 4302; RFC 6275; RFC 7401; RFC 5533): up to FRAGMENT,
    IPPROTO_ICMP       = 8'd1,
    IPPROTO_TCP        = 8'd6,
    IPPROTO_UDP        = 8'd17,
    IPPROTO_ROUTING    = 8'd43,
    IPPROTO_FRAGMENT   = 8'd44,
    IPPROTO_AH         = 8'd51,
    IPPROTO_ICMPV6     = 8'd58,
    IPPROTO_DST_OPTS   = 8'd60,  // these,
    IPPROTO_MOBILITY   = 8'd135,
    IPPROTO_HIP        = 8'd139,
    IPPROTO_SHIM6      = 8'd140  // and these
  } ipproto_e;

  typedef struct packed {
    logic [3:0]  version;
    logic [3:0]  ihl;
    logic [5:0]  dscp;
    logic [1:0]  ecn;
    logic [15:0] total_length;
    logic [15:0] identification;
    logic        flag_reserved;
    logic        flag_df;
    logic        flag_mf;
    logic [12:0] fragment_offset;
    logic [7:0]  ttl;
    logic [7:0]  protocol;
    logic [15:0] header_checksum;
    ipv4_addr_t  src;
    ipv4_addr_t  dst;
  } ipv4_hdr_t;
  localparam int unsigned IPV4_HDR_BYTES = $bits(ipv4_hdr_t) / 8;  // 20

  // ---- IPv6 (RFC 8200, RFC 3168) ----
  typedef struct packed {
    logic [3:0]  version;
    logic [5:0]  dscp;
    logic [1:0]  ecn;
    logic [19:0] flow_label;
    logic [15:0] payload_length;  // what follows this header
    logic [7:0]  next_header;
    logic [7:0]  hop_limit;
    ip_addr_t    src;
    ip_addr_t    dst;
  } ipv6_hdr_t;
  localparam int unsigned IPV6_HDR_BYTES = $bits(ipv6_hdr_t) / 8;  // 40
  localparam int unsigned IPV6_MORE_BYTES = IPV6_HDR_BYTES - IPV4_HDR_BYTES;  // 20: what follows is so much later in the frame
  localparam int unsigned IPV6_PREFIX_LENGTH = 64;  // of every link (RFC 4291, 2.5.4)

  // ---- ICMP echo (RFC 792), also that of ICMPv6 (RFC 4443, 4) ----
  typedef struct packed {
    logic [7:0]  icmp_type;
    logic [7:0]  code;
    logic [15:0] checksum;
    logic [15:0] identifier;
    logic [15:0] sequence_number;
  } icmp_echo_hdr_t;
  localparam int unsigned ICMP_ECHO_HDR_BYTES = $bits(icmp_echo_hdr_t) / 8;  // 8

  localparam logic [7:0] ICMP_ECHO_REPLY = 8'd0;
  localparam logic [7:0] ICMP_ECHO_REQUEST = 8'd8;

  // ---- ICMPv6 (RFC 4443) and neighbour discovery (RFC 4861, 4) ----
  localparam logic [7:0] ICMPV6_UNREACHABLE = 8'd1;
  localparam logic [7:0] ICMPV6_TOO_BIG = 8'd2;
  localparam logic [7:0] ICMPV6_ECHO_REQUEST = 8'd128;
  localparam logic [7:0] ICMPV6_ECHO_REPLY = 8'd129;
  localparam logic [7:0] ND_ROUTER_SOLICITATION = 8'd133;
  localparam logic [7:0] ND_ROUTER_ADVERTISEMENT = 8'd134;
  localparam logic [7:0] ND_NEIGHBOUR_SOLICITATION = 8'd135;
  localparam logic [7:0] ND_NEIGHBOUR_ADVERTISEMENT = 8'd136;
  localparam logic [7:0] ND_HOP_LIMIT = 8'd255;      // a router has not forwarded it

  // The option that has an Ethernet address.
  typedef struct packed {
    logic [7:0] option;
    logic [7:0] length;           // in units of 8 bytes
    mac_t       mac;
  } nd_lla_t;
  localparam logic [7:0] ND_OPTION_SOURCE_LLA = 8'd1;
  localparam logic [7:0] ND_OPTION_TARGET_LLA = 8'd2;
  localparam logic [7:0] ND_OPTION_PREFIX = 8'd3;

  // Neighbour solicitation or advertisement, with the first option.
  typedef struct packed {
    logic [7:0]  icmp_type;
    logic [7:0]  code;
    logic [15:0] checksum;
    logic        router;          // the flags are those of an advertisement
    logic        solicited;
    logic        override_;
    logic [28:0] reserved;
    ip_addr_t    target;
    nd_lla_t     lla;
  } nd_hdr_t;
  localparam int unsigned ND_HDR_BYTES = $bits(nd_hdr_t) / 8;  // 32
  localparam int unsigned RA_HDR_BYTES = 16;                   // of a router advertisement, without options

  // ---- ICMP destination unreachable (RFC 792, RFC 1191) ----
  localparam logic [7:0] ICMP_UNREACHABLE = 8'd3;
  localparam logic [7:0] ICMP_PROTOCOL_UNREACHABLE = 8'd2;  // codes
  localparam logic [7:0] ICMP_PORT_UNREACHABLE = 8'd3;
  localparam logic [7:0] ICMP_TOO_BIG = 8'd4;               // fragmentation needed

  // ---- UDP (RFC 768) ----
  typedef struct packed {
    logic [15:0] src_port;
    logic [15:0] dst_port;
    logic [15:0] length;
    logic [15:0] checksum;
  } udp_hdr_t;
  localparam int unsigned UDP_HDR_BYTES = $bits(udp_hdr_t) / 8;  // 8

  localparam logic [15:0] UDP_PORT_ROCE = 16'd4791;  // IANA, IBTA annex A17
  localparam logic [15:0] UDP_PORT_DHCP = 16'd68;    // the client's (RFC 2131, 4.1)

  // ---- mDNS (RFC 6762, 3) ----
  localparam logic [15:0] MDNS_PORT = 16'd5353;
  localparam ipv4_addr_t MDNS_IP = {8'd224, 8'd0, 8'd0, 8'd251};
  localparam mac_t MDNS_MAC = 48'h01005e_0000fb;     // RFC 1112, 6.4

  // ---- TCP without options (RFC 9293, RFC 3168) ----
  typedef struct packed {
    logic [15:0] src_port;
    logic [15:0] dst_port;
    logic [31:0] seq;
    logic [31:0] ack;
    logic [3:0]  data_offset;
    logic [3:0]  reserved;
    logic        flag_cwr;
    logic        flag_ece;
    logic        flag_urg;
    logic        flag_ack;
    logic        flag_psh;
    logic        flag_rst;
    logic        flag_syn;
    logic        flag_fin;
    logic [15:0] window;
    logic [15:0] checksum;
    logic [15:0] urgent_pointer;
  } tcp_hdr_t;

  // ---- frames between the packet plane and the protocols. Received ones are in frame_pkg ----

  // Header window: the first bytes of a frame, enough for the longest header chain that is parsed or sent
  // (Ethernet 14 + IPv6 40 + UDP 8 + BTH 12 + AtomicETH 28 = 102). First byte of the frame in the most significant byte,
  // so that the window's upper bits cast to a struct of the headers. Without IPv6 its last IPV6_MORE_BYTES are zero, and cost nothing.
  localparam int unsigned HDR_BYTES = 108;
  typedef logic [HDR_BYTES*8-1:0] hdr_window_t;

  // The positions of a payload in its frame: after UDP or the ICMP echo header, or after a BTH with extension headers. Few positions, which
  // keeps shifters small. The upper half is that of IPv6, IPV6_MORE_BYTES later each; three of them are in the lower half as well.
  localparam int unsigned IPV4_PLACES = 8;
  localparam int unsigned PLACES = 2 * IPV4_PLACES;
  typedef enum logic [3:0] {
    PLACE_42,
    PLACE_54,
    PLACE_58,
    PLACE_62,
    PLACE_66,
    PLACE_70,
    PLACE_74,
    PLACE_82,
    PLACE_V6_62,
    PLACE_V6_74,
    PLACE_78,
    PLACE_V6_82,
    PLACE_86,
    PLACE_90,
    PLACE_94,
    PLACE_102
  } place_e;
  localparam logic [PLACES-1:0][7:0] PLACE_BYTES = {
      8'd102, 8'd94, 8'd90, 8'd86, 8'd82, 8'd78, 8'd74, 8'd62, 8'd82, 8'd74, 8'd70, 8'd66, 8'd62, 8'd58, 8'd54, 8'd42
  };

  // The position after a header of this many bytes, which must be one of these; one of the lower half if it is in both.
  function automatic place_e place_of_length(logic [6:0] hdr_length, bit ipv6);
    logic [3:0] place;
    place = '0;
    for (int unsigned p = 0; p < (ipv6 ? PLACES : IPV4_PLACES); p++)
      if (8'(hdr_length) == PLACE_BYTES[p] && !(place_e'(p) inside {PLACE_V6_62, PLACE_V6_74, PLACE_V6_82})) place |= 4'(p);
    return place_e'(place);
  endfunction

  // To send: headers complete, payload following on the payload stream if payload_length > 0. The packet plane joins them, appends pad
  // zeros and the ICRC, fills up to 60 bytes, and inserts nothing else.
  typedef struct packed {
    logic [6:0]  hdr_length;      // bytes of hdr used, from the most significant byte on
    logic [15:0] payload_length;  // bytes taken from the payload stream
    logic [1:0]  pad;             // zero bytes after the payload (BTH PadCnt)
    logic        icrc;            // append the ICRC (IBTA annex A17.3)
    hdr_window_t hdr;
  } frame_tx_t;

  // This device's own addresses. `enable` and `mac` are stable while enable is high; the others may change (address_service).
  typedef struct packed {
    logic        enable;
    mac_t        mac;
    ipv4_addr_t  ip;              // 0: none: no IPv4 packet is received
    logic [5:0]  prefix_length;
    ipv4_addr_t  gateway;         // 0: none
    logic        dhcp;            // DHCP answers to all hosts are received: UDP to port 68 of 255.255.255.255
    logic        mdns;            // so is what is sent to the group of mDNS
    logic        ipv6;            // the device has IPv6: neighbour discovery is received; other packets by these addresses, each 0 if there
                                  // is none
    ip_addr_t    link_local;
    ip_addr_t    global_;         // its prefix has IPV6_PREFIX_LENGTH bits,
    logic        on_link;         // and the other addresses of it are on this link
    ip_addr_t    router;          // a link-local address
  } local_addr_t;

  // The device's addresses.
  typedef enum logic [1:0] {
    OWN_IPV4,
    OWN_GLOBAL,
    OWN_LINK_LOCAL
  } own_address_e;
  localparam int unsigned OWN_ADDRESSES = 3;
  typedef logic [OWN_ADDRESSES-1:0] own_set_t;   // some of them, by own_address_e
  localparam own_set_t ALL_IPV6 = own_set_t'(1 << OWN_GLOBAL | 1 << OWN_LINK_LOCAL);

  // The device's address for packets to `ip`: the link-local one if that is link-local, else the global one (RFC 6724, 5, rule 2); 0: none.
  function automatic ip_addr_t source_address(local_addr_t own, ip_addr_t ip);
    if (is_mapped(ip)) return own.ip == '0 ? '0 : ip_mapped(own.ip);
    return is_link_local(ip) ? own.link_local : own.global_;
  endfunction

  // An ARP request about `ip` itself (RFC 5227): a probe, without sender, or an announcement. IPv6: a solicitation for duplicate address
  // detection (RFC 4862, 5.4), or an unsolicited advertisement (RFC 4861, 7.2.6); with ALL_ROUTERS a router solicitation.
  typedef struct packed {
    logic     probe;
    ip_addr_t ip;
  } arp_claim_t;

  // The IPv6 address for which the device probes: whoever else has it or probes for it is a conflict (RFC 4862, 5.4.3).
  typedef struct packed {
    logic     valid;
    ip_addr_t ip;
  } nd_watch_t;

  // The address for which ARP frames of other hosts are a conflict (RFC 5227, 2.1.1, 2.4).
  typedef struct packed {
    logic       valid;
    logic       probing;          // the device probes for it: probes of others are conflicts, too
    ipv4_addr_t ip;
  } arp_watch_t;

  // Address resolution of `ip`. The answer is immediate. If the address is not found, an ARP request is sent, and a later query may find
  // it.
  typedef struct packed {
    logic found;
    mac_t mac;                    // of the host, or of the gateway for a host outside of the prefix
  } arp_answer_t;

  // Named drop reasons and events of the packet plane: one pulse each, counted by the control plane.
  typedef struct packed {
    logic rx_frame;
    logic rx_roce;
    logic rx_arp;
    logic rx_icmp;                // also ICMPv6
    logic rx_nd;                  // neighbour discovery
    logic rx_udp;
    logic tx_frame;
    logic tx_roce;
    logic drop_overflow;          // arrived when the receive stores were full
    logic drop_fcs;               // tuser from the MAC
    logic drop_runt;              // shorter than its headers require
    logic drop_oversize;          // longer than the frame store accepts
    logic drop_not_ours;          // Ethernet or IPv4 destination of another station
    logic drop_group;             // to a multicast or broadcast Ethernet address, and neither ARP nor an expected DHCP answer nor mDNS
    logic drop_vlan;              // with a VLAN tag; with a VLAN of the device: not of that VLAN
    logic drop_ipv6;              // the device has no IPv6
    logic drop_ipv6_header;       // version, or a source that no packet has
    logic drop_ipv6_extension;    // an extension header
    logic drop_ipv6_fragment;     // that of a fragment
    logic drop_nd;                // neighbour discovery: malformed, checksum, or from behind a router
    logic drop_ethertype;         // any other
    logic drop_ipv4_header;       // version, options, checksum, length
    logic drop_ipv4_fragment;
    logic drop_tcp;
    logic drop_ip_protocol;       // any other, also of IPv6
    logic drop_udp_length;
    logic drop_udp_checksum;      // wrong; IPv6: or none
    logic drop_udp_port;          // no protocol or service listens on the port, or the source of a packet to a service is not one host
    logic drop_icmp;              // checksum, or any other type
    logic drop_icmp_rate;         // an echo request, after earlier ones had stalled other frames for too long
    logic drop_arp;               // malformed
    logic drop_arp_overflow;      // ARP or neighbour discovery: arrived faster than it can be processed
    logic drop_icrc;
    logic drop_roce_opcode;       // unknown opcode: the length of its headers is not known
    logic drop_icmp_unreachable;  // ICMP destination unreachable: has no effect
    logic drop_icmp_too_big;      // ICMP fragmentation needed: has no effect
    logic rx_pause;               // PAUSE frames
    logic rx_pfc;                 // PFC frames
    logic stopped_roce;           // cycles in which RoCE frames were stopped by such frames
    logic stopped_other;          // cycles in which other frames were
    logic pause_ignored;          // a pause lasted too long, and was ignored from then on
    logic rx_card;                // given to the network card; not counted as dropped, and as rx_frame only if a unit takes it as well
    logic tx_card;                // sent for the network card
    logic drop_card_source;       // of the network card, from a MAC address that it may not use, or MAC control
  } packet_events_t;

  // A packet to this host for which it has no protocol, or nobody at the port: what the sender may be told about it (RFC 1122, 3.2.2.1).
  typedef struct packed {
    mac_t        mac;             // of the sender, or its router
    ipv4_hdr_t   ipv4;
    logic [63:0] first;           // bytes behind the IPv4 header
  } unwanted_t;

  // The same of IPv6, without the addresses that begin with 64 zeros: unspecified, loopback, and mapped ones, which are never in a packet
  // (RFC 4291, 2.5): a packet from one would be taken for one of IPv4.
  function automatic logic one_ipv6_host(mac_t mac, ip_addr_t ip);
    return !mac[MAC_GROUP_BIT] && !is_multicast(ip) && ip[127:64] != '0;
  endfunction

  // The frame has a unicast source: answers may be sent to it (RFC 1122, 3.2.1.3).
  function automatic logic one_host(mac_t mac, ipv4_addr_t ip);
    return !mac[MAC_GROUP_BIT] && ip[31:29] != 3'b111 && ip != '0;
  endfunction

  // One's complement sum of the ten 16-bit words of an IPv4 header; 16'hffff if its checksum is valid (RFC 1071).
  function automatic logic [15:0] ipv4_header_sum(ipv4_hdr_t h);
    logic [19:0] sum;
    sum = '0;
    for (int unsigned i = 0; i < IPV4_HDR_BYTES / 2; i++) sum += 20'(h[i*16+:16]);
    sum = 20'(sum[15:0]) + 20'(sum[19:16]);
    return sum[15:0] + 16'(sum[19:16]);
  endfunction

  // The header with its checksum filled in.
  function automatic ipv4_hdr_t ipv4_with_checksum(ipv4_hdr_t h);
    ipv4_hdr_t r;
    r = h;
    r.header_checksum = '0;
    r.header_checksum = ~ipv4_header_sum(r);
    return r;
  endfunction

  // A checksum after one of the words that it covers has changed from `old` to `new_` (RFC 1624, equation 3). One that was wrong stays so.
  function automatic logic [15:0] checksum_updated(logic [15:0] checksum, logic [15:0] old, logic [15:0] new_);
    logic [17:0] sum;
    logic [16:0] folded;
    sum = 18'(16'(~checksum)) + 18'(16'(~old)) + 18'(new_);
    folded = 17'(sum[15:0]) + 17'(sum[17:16]);
    return ~(folded[15:0] + 16'(folded[16]));
  endfunction
endpackage
