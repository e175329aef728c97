// SPDX-License-Identifier: Apache-2.0

// Parses the headers of received frames: the class of a frame, the position of its payload, the fields of its headers, and the checks that
// need only headers. No other unit of the receive side uses offsets in a frame. The headers are collected from the first beats as they pass
// and read together, as structs.
//
// Limits, all decided here: headers are read in frames without a tag, or whose tag vlan_remove took, and behind IPv4 headers without
// options and IPv6 headers without extension headers only. icrc_state, which processes the beats before the frame is classified, relies on
// that: CLASS_ROCE has no other layout.
//
// Whether the network card of the host gets a frame, beside a unit of the device or alone, is in `checks`.
//
// What is behind the IP header is read by the same logic for both versions, from a window that begins there.
//
// One beat a cycle, never stalls, gaps between beats are allowed. `headers` is valid in the cycle after the frame's last beat. `v6` belongs
// to the beat of the cycle before, from the one with the EtherType on. `verdict` belongs to the frame of the beat received 3 cycles ago, if
// that beat is the one that contains byte 42, of IPv6 byte 62, or a later one; it is undefined for frames that end before. `checks` follow
// one cycle later.
module packet_parser
  import packet_pkg::*;
  import roce_wire_pkg::*;
  import frame_pkg::*;
  import packet_rx_pkg::*;
  import link_pkg::MAC_CONTROL;
  import card_pkg::*;
  import services_pkg::*;
#(
    parameter int unsigned DATA_W = 512,
    parameter int unsigned INDEX_W = 8,
    parameter int unsigned DATAGRAM_PORTS = 1,
    parameter bit          IPV6 = 1'b1
) (
    input  logic               clk,
    input  local_addr_t        local_addr,
    input  service_ports_t     service_ports,
    input  logic [DATAGRAM_PORTS-1:0][15:0] datagram_ports,
    input  card_settings_t     card,
    input  logic               in_valid,
    input  logic [INDEX_W-1:0] in_index,     // of the beat in its frame
    input  logic [DATA_W-1:0]  in_data,
    input  logic               in_foreign,   // from the beat with byte 15 on: not of the device's VLAN
    input  vlan_t              in_tag,       // likewise: the tag that was removed
    output logic               v6,           // with IPV6: an IPv6 packet
    output headers_t           headers,
    output parsed_t            verdict,
    output checks_t            checks        // one cycle behind `verdict`
);
  localparam int unsigned BYTES = DATA_W / 8;
  localparam int unsigned WINDOW_BEATS = (HDR_BYTES + BYTES - 1) / BYTES;
  localparam int unsigned DECISION = DECISION_BYTE / BYTES;
  localparam int unsigned DECISION_V6 = DECISION_BYTE_V6 / BYTES;
  localparam int unsigned TYPE_BEAT = (ETH_HDR_BYTES - 1) / BYTES;
  localparam int unsigned TYPE_LANE = (ETH_HDR_BYTES - 2) % BYTES;

  function automatic logic [15:0] byte_swapped_type(logic [15:0] lanes);
    return {lanes[7:0], lanes[15:8]};
  endfunction

  // ---- collect: byte 0 of the frame in the most significant byte ----
  logic [WINDOW_BEATS*BYTES-1:0][7:0] gathered_q;
  logic decide_q, foreign_q, v6_q;
  vlan_t removed_q;
  // Of a layout whose decision is later than the other's the EtherType has come in an earlier beat.
  wire decides = in_valid && in_index == (v6_q ? INDEX_W'(DECISION_V6) : INDEX_W'(DECISION));
  assign v6 = v6_q;

  always_ff @(posedge clk) begin
    if (!IPV6) v6_q <= 1'b0;
    else if (in_valid && in_index == INDEX_W'(TYPE_BEAT)) v6_q <= byte_swapped_type(in_data[TYPE_LANE*8+:16]) == ETHERTYPE_IPV6;
    decide_q <= decides;
    if (decides) begin
      foreign_q <= in_foreign;
      removed_q <= in_tag;
    end
    for (int unsigned beat = 0; beat < WINDOW_BEATS; beat++)
      if (in_valid && in_index == INDEX_W'(beat))
        for (int unsigned lane = 0; lane < BYTES; lane++)
          gathered_q[WINDOW_BEATS*BYTES-1-beat*BYTES-lane] <= in_data[lane*8+:8];
  end

  hdr_window_t window;
  assign window = gathered_q[WINDOW_BEATS*BYTES-1-:HDR_BYTES];

  // ---- the layouts ----
  typedef struct packed {
    eth_hdr_t  eth;
    vlan_tag_t tag;
  } tagged_frame_t;
  typedef struct packed {
    eth_hdr_t eth;
    arp_hdr_t arp;
  } arp_frame_t;
  typedef struct packed {
    eth_hdr_t  eth;
    ipv4_hdr_t ipv4;
  } ipv4_frame_t;
  typedef struct packed {
    eth_hdr_t  eth;
    ipv6_hdr_t ipv6;
  } ipv6_frame_t;

  // Behind the IP header.
  localparam int unsigned BEHIND_W = (HDR_BYTES - ETH_HDR_BYTES - IPV6_HDR_BYTES) * 8;
  typedef struct packed {
    udp_hdr_t udp;
    bth_t     bth;
    ext_t     ext;
  } roce_packet_t;
  typedef struct packed {
    udp_hdr_t udp;
    bth_t     bth;
    reth_t    reth;
    immdt_t   immdt;
  } roce_reth_packet_t;
  typedef struct packed {
    udp_hdr_t udp;
    bth_t     bth;
    deth_t    deth;
    immdt_t   immdt;
  } roce_deth_packet_t;
  typedef struct packed {
    udp_hdr_t    udp;
    bth_t        bth;
    logic [31:0] word;             // ImmDt or IETH
  } roce_word_packet_t;

  tagged_frame_t     tag;
  arp_frame_t        arp;
  ipv6_frame_t       with_ipv6;
  eth_hdr_t          eth;
  ipv4_hdr_t         ipv4;
  ipv6_hdr_t         ipv6;
  logic [BEHIND_W-1:0] behind;
  icmp_echo_hdr_t    icmp;
  tcp_hdr_t          tcp;
  nd_hdr_t           nd;
  roce_packet_t      roce;
  roce_reth_packet_t with_reth;
  roce_deth_packet_t with_deth;
  roce_word_packet_t with_word;
  assign tag         = window[HDR_BYTES*8-1-:$bits(tagged_frame_t)];
  assign arp         = window[HDR_BYTES*8-1-:$bits(arp_frame_t)];
  assign {eth, ipv4} = window[HDR_BYTES*8-1-:$bits(ipv4_frame_t)];
  assign with_ipv6   = window[HDR_BYTES*8-1-:$bits(ipv6_frame_t)];
  assign ipv6        = with_ipv6.ipv6;
  assign behind      = v6_q ? window[BEHIND_W-1:0] : window[BEHIND_W-1+IPV6_MORE_BYTES*8-:BEHIND_W];
  assign icmp        = behind[BEHIND_W-1-:$bits(icmp_echo_hdr_t)];
  assign tcp         = behind[BEHIND_W-1-:$bits(tcp_hdr_t)];
  assign nd          = behind[BEHIND_W-1-:$bits(nd_hdr_t)];
  assign roce        = behind[BEHIND_W-1-:$bits(roce_packet_t)];
  assign with_reth   = behind[BEHIND_W-1-:$bits(roce_reth_packet_t)];
  assign with_deth   = behind[BEHIND_W-1-:$bits(roce_deth_packet_t)];
  assign with_word   = behind[BEHIND_W-1-:$bits(roce_word_packet_t)];

  wire is_arp = eth.ethertype == ETHERTYPE_ARP;
  wire has_tag = eth.ethertype inside {ETHERTYPE_CTAG, ETHERTYPE_STAG};
  wire [7:0] protocol = v6_q ? ipv6.next_header : ipv4.protocol;

  // ---- the record. Fields of different layouts that share its bits share bits of the frame as well, as far as possible ----
  always_comb begin
    headers.one_host = v6_q ? one_ipv6_host(eth.src, ipv6.src) : one_host(eth.src, ipv4.src);
    headers.l2 = '{
        src: eth.src,
        group: eth.dst[MAC_GROUP_BIT],
        broadcast: eth.dst == MAC_BROADCAST,
        vlan: removed_q.present && !has_tag ? removed_q
            : '{present: has_tag, service: eth.ethertype == ETHERTYPE_STAG, pcp: tag.tag.pcp, dei: tag.tag.dei, vid: tag.tag.vid}
    };
    headers.l3 = '{
        v6: v6_q,
        src: v6_q ? ipv6.src : ip_mapped(ipv4.src),
        dst: v6_q ? ipv6.dst : ip_mapped(ipv4.dst),
        dscp: v6_q ? ipv6.dscp : ipv4.dscp,
        ecn: v6_q ? ipv6.ecn : ipv4.ecn,
        total_length: v6_q ? ipv6.payload_length : ipv4.total_length,
        hop_limit: v6_q ? ipv6.hop_limit : ipv4.ttl,
        protocol: protocol,
        fragment: '{identification: ipv4.identification, reserved: ipv4.flag_reserved, df: ipv4.flag_df,
                    mf: ipv4.flag_mf, offset: ipv4.fragment_offset},
        header_checksum: ipv4.header_checksum
    };
    headers.l4.roce = '{
        udp: roce.udp,
        bth: roce.bth,
        ext: roce.ext,
        word: roce.bth.opcode == RC_RDMA_WRITE_ONLY_WITH_IMM ? with_reth.immdt
            : roce.bth.opcode == UD_SEND_ONLY_WITH_IMM ? with_deth.immdt : with_word.word
    };
    if (protocol == IPPROTO_TCP) headers.l4.tcp.tcp = tcp;
    if (is_arp) begin
      headers.l4.arp.request = arp.arp.oper == ARP_REQUEST;
      headers.l4.arp.sha = arp.arp.sha;
      headers.l4.arp.spa = arp.arp.spa;
      headers.l4.arp.tpa = arp.arp.tpa;
    end
  end

  // ---- read the fields ----
  ext_len_t ext;
  assign ext = ext_headers(roce.bth.opcode);

  typedef struct packed {
    logic        to_us;          // to this station,
    logic        to_group;       // to a group,
    logic        to_all;         // to all stations
    logic        to_card;        // to the station that the card is,
    logic        to_bridge;      // to the next station: MAC control
    logic        to_mdns;        // to the group of mDNS
    logic        has_tag;        // or should have one
    logic        ipv4;
    logic        ipv6;
    logic        arp;
    logic        arp_ok;
    logic        asks_us;        // ARP: who has the address of the device
    logic        form_ok;        // IPv4 without options, long enough for the following headers; IPv6 of one host or of none
    logic        fragment;
    logic        extension;      // IPv6
    logic        ip_to_us;
    logic        ip_to_all;
    logic        ip_to_mdns;
    logic        ip_to_nodes;    // IPv6: to a group of this device, in a frame to the same
    logic        dhcp;           // to the port of the DHCP client, which expects an answer
    logic        mdns;           // to the port of the mDNS responder, which works
    logic        icmp;
    logic        icmp_echo;
    logic        icmp_unreachable;
    logic        icmp_too_big;
    logic        nd;             // neighbour solicitation or advertisement,
    logic        ra;             // router advertisement:
    logic        nd_ok;          // from this link, and long enough
    logic        of_host;        // IPv6: not from the unspecified address
    logic        tcp;
    logic        udp;
    logic        udp_length_ok;
    logic        udp_checked;
    logic        roce_port;
    listener_e   listener;
    logic        opcode_known;
    logic [5:0]  ext_bytes;
    logic [6:0]  overhead;       // bytes of total_length that are not RoCE payload
    logic [15:0] total_length;
  } looked_t;
  looked_t looked_q;
  logic    looked_valid_q;

  // Sums of pairs of words, for the IPv4 header and for the pseudo-header: of TCP and UDP, or of IPv6 (RFC 8200, 8.1) without the addresses, which
  // packet_rx sums with what follows them.
  localparam logic [15:0] NOT_IPV4_HEADER = ~16'(IPV4_HDR_BYTES);   // minus its length
  logic [9:0][15:0] ipv4_words;
  logic [5:0][15:0] pseudo_words;
  logic [16:0] ipv4_pair_q[5];
  logic [16:0] pseudo_pair_q[3];
  assign ipv4_words   = ipv4;
  assign pseudo_words = v6_q ? {64'd0, 8'd0, protocol, ipv6.payload_length} : {ipv4.src, ipv4.dst, 8'd0, protocol, ipv4.total_length};

  // Services and kernels know IPv4 only, and answer: to one host. A kernel takes what was sent to the device alone.
  listener_e listener;
  always_comb begin
    listener = LISTENS_NOBODY;
    if (headers.one_host && !v6_q) begin
      for (int unsigned i = 0; i < DATAGRAM_PORTS; i++)
        if (datagram_ports[i] != '0 && datagram_ports[i] == roce.udp.dst_port && !eth.dst[MAC_GROUP_BIT]) listener = LISTENS_KERNEL;
      for (int unsigned i = 0; i < SERVICES; i++)
        if (service_ports[i] != '0 && service_ports[i] == roce.udp.dst_port) listener = LISTENS_SERVICE;
    end
  end

  // A packet is to a group that the device is in: all nodes, or those that may have one of its addresses (RFC 4291, 2.8).
  wire to_solicited = ipv6.dst[127:24] == SOLICITED_NODE_PREFIX
                      && (ipv6.dst[23:0] == local_addr.mac[23:0] || ipv6.dst[23:0] == local_addr.global_[23:0]);
  wire nd_type = icmp.icmp_type inside {ND_NEIGHBOUR_SOLICITATION, ND_NEIGHBOUR_ADVERTISEMENT};
  wire [6:0] behind_ip = 7'(UDP_HDR_BYTES + BTH_BYTES + ICRC_BYTES) + 7'(ext.bytes) + 7'(roce.bth.padcnt);

  always_ff @(posedge clk) begin
    looked_valid_q <= decide_q;
    if (decide_q) begin
      looked_q <= '{
          to_us: local_addr.enable && eth.dst == local_addr.mac,
          to_group: local_addr.enable && eth.dst[MAC_GROUP_BIT],
          to_all: eth.dst == MAC_BROADCAST,
          to_card: card.present && (eth.dst[MAC_GROUP_BIT] || eth.dst == card.mac || card.promiscuous),
          to_bridge: eth.dst == MAC_CONTROL,
          to_mdns: eth.dst == MDNS_MAC,
          has_tag: has_tag || foreign_q,
          ipv4: eth.ethertype == ETHERTYPE_IPV4 && !foreign_q,   // the checks of IPv4 are for what is read
          ipv6: (IPV6 ? v6_q : eth.ethertype == ETHERTYPE_IPV6) && !foreign_q,
          arp: is_arp,
          arp_ok: arp.arp.htype == ARP_HTYPE_ETHERNET && arp.arp.ptype == ETHERTYPE_IPV4 && arp.arp.hlen == 8'd6
                  && arp.arp.plen == 8'd4 && (arp.arp.oper == ARP_REQUEST || arp.arp.oper == ARP_REPLY)
                  && !arp.arp.sha[MAC_GROUP_BIT],
          asks_us: arp.arp.oper == ARP_REQUEST && arp.arp.tpa == local_addr.ip && local_addr.ip != '0,
          form_ok: v6_q ? ipv6.version == 4'd6 && !is_multicast(ipv6.src) && (ipv6.src[127:64] != '0 || ipv6.src[63:0] == '0)
                        : ipv4.version == 4'd4 && ipv4.ihl == 4'd5 && ipv4.total_length >= 16'(IPV4_HDR_BYTES),
          fragment: v6_q ? protocol == IPPROTO_FRAGMENT : ipv4.flag_mf || ipv4.fragment_offset != '0,
          extension: v6_q && protocol inside {IPPROTO_HOP_BY_HOP, IPPROTO_ROUTING, IPPROTO_AH, IPPROTO_DST_OPTS, IPPROTO_MOBILITY,
                                              IPPROTO_HIP, IPPROTO_SHIM6},
          ip_to_us: v6_q ? (ipv6.dst == local_addr.link_local || ipv6.dst == local_addr.global_) && ipv6.dst != '0
                         : ipv4.dst == local_addr.ip && local_addr.ip != '0,
          ip_to_all: ipv4.dst == '1,
          ip_to_mdns: ipv4.dst == MDNS_IP,
          ip_to_nodes: v6_q && eth.dst == mac_of_group(ipv6.dst) && (to_solicited || ipv6.dst == ALL_NODES),
          dhcp: local_addr.dhcp && roce.udp.dst_port == UDP_PORT_DHCP,
          mdns: local_addr.mdns && roce.udp.dst_port == MDNS_PORT,
          icmp: protocol == (v6_q ? IPPROTO_ICMPV6 : IPPROTO_ICMP),
          icmp_echo: icmp.icmp_type == (v6_q ? ICMPV6_ECHO_REQUEST : ICMP_ECHO_REQUEST) && icmp.code == '0,
          icmp_unreachable: icmp.icmp_type == (v6_q ? ICMPV6_UNREACHABLE : ICMP_UNREACHABLE)
                            || (v6_q && icmp.icmp_type == ICMPV6_TOO_BIG),
          icmp_too_big: v6_q ? icmp.icmp_type == ICMPV6_TOO_BIG : icmp.code == ICMP_TOO_BIG,
          nd: v6_q && nd_type,
          ra: v6_q && icmp.icmp_type == ND_ROUTER_ADVERTISEMENT,
          nd_ok: ipv6.hop_limit == ND_HOP_LIMIT && icmp.code == '0
                 && (nd_type ? ipv6.payload_length >= 16'(ND_HDR_BYTES - $bits(nd_lla_t) / 8) && !is_multicast(nd.target)
                             : ipv6.payload_length >= 16'(RA_HDR_BYTES) && is_link_local(ipv6.src)),
          of_host: ipv6.src[127:64] != '0,
          tcp: protocol == IPPROTO_TCP,
          udp: protocol == IPPROTO_UDP,
          udp_length_ok: (v6_q ? ipv6.payload_length == roce.udp.length
                               : ipv4.total_length == roce.udp.length + 16'(IPV4_HDR_BYTES))
                         && roce.udp.length >= 16'(UDP_HDR_BYTES),
          udp_checked: roce.udp.checksum != '0,
          roce_port: roce.udp.dst_port == UDP_PORT_ROCE,
          listener: listener,
          opcode_known: ext.supported,
          ext_bytes: ext.bytes,
          overhead: behind_ip + (v6_q ? '0 : 7'(IPV4_HDR_BYTES)),
          total_length: v6_q ? ipv6.payload_length : ipv4.total_length
      };
      for (int unsigned i = 0; i < 5; i++) ipv4_pair_q[i] <= 17'(ipv4_words[2*i]) + 17'(ipv4_words[2*i+1]);
      for (int unsigned i = 0; i < 3; i++) pseudo_pair_q[i] <= 17'(pseudo_words[2*i]) + 17'(pseudo_words[2*i+1]);
    end
  end

  // The only packets to several hosts that are accepted: they may be for this one while it has no address (RFC 2131, 4.1), or are
  // questions to all who know an answer (RFC 6762), or neighbour discovery.
  wire v6_here = IPV6 && looked_q.ipv6 && local_addr.ipv6;
  wire to_dhcp = looked_q.to_all && looked_q.ip_to_all && looked_q.dhcp;
  wire to_mdns = looked_q.to_mdns && looked_q.ip_to_mdns && looked_q.mdns;
  wire discovery = looked_q.icmp && (looked_q.nd || looked_q.ra);
  wire to_nodes = v6_here && looked_q.ip_to_nodes && discovery;
  wire to_several = looked_q.ipv4 && looked_q.udp && (to_dhcp || to_mdns) || to_nodes;

  // ---- decide: the class, or the reason of a drop. The first condition that holds ----
  frame_class_e cls;
  drop_e        drop;
  always_comb begin
    cls  = CLASS_OTHER;
    drop = DROP_NONE;
    if (!looked_q.to_us && !looked_q.to_group) drop = DROP_NOT_OURS;
    else if (looked_q.has_tag) cls = CLASS_VLAN;
    else if (looked_q.arp && (looked_q.to_us || looked_q.to_all)) begin
      cls = CLASS_ARP;
      if (!looked_q.arp_ok) drop = DROP_ARP;
    end
    // A packet for one host is not accepted in a group frame (RFC 1122, 3.3.6).
    else if (looked_q.to_group && !to_several) cls = CLASS_GROUP;
    else if (looked_q.ipv6 && !v6_here) cls = CLASS_IPV6;
    else if (!looked_q.ipv4 && !looked_q.ipv6) cls = CLASS_OTHER;
    else if (!looked_q.form_ok) drop = looked_q.ipv6 ? DROP_IPV6_HEADER : DROP_IPV4_HEADER;
    else if (!looked_q.ip_to_us && !to_several) drop = DROP_NOT_OURS;
    else if (looked_q.fragment) drop = looked_q.ipv6 ? DROP_IPV6_FRAGMENT : DROP_IPV4_FRAGMENT;
    else if (looked_q.extension) drop = DROP_IPV6_EXTENSION;
    else if (discovery) begin
      cls = looked_q.ra ? CLASS_RA : CLASS_ND;
      if (!looked_q.nd_ok) drop = DROP_ND;
    end
    // Only a host that looks for its address has none.
    else if (looked_q.ipv6 && !looked_q.of_host) drop = DROP_IPV6_HEADER;
    else if (looked_q.icmp) begin
      cls = CLASS_ICMP;
      // Nothing depends on what such a message says, so it is not checked any further (RFC 5927).
      if (looked_q.icmp_unreachable) drop = looked_q.icmp_too_big ? DROP_ICMP_TOO_BIG : DROP_ICMP_UNREACHABLE;
      else if (!looked_q.icmp_echo) drop = DROP_ICMP;
    end
    else if (looked_q.tcp) cls = CLASS_TCP;
    else if (!looked_q.udp) cls = CLASS_IP;
    else begin
      cls = looked_q.roce_port ? CLASS_ROCE : CLASS_UDP;
      if (!looked_q.udp_length_ok) drop = DROP_UDP_LENGTH;
      // RoCE has no checksum over IPv6 either: its ICRC covers what that would (RFC 6935; Linux and NICs send it so).
      else if (looked_q.ipv6 && !looked_q.udp_checked && !looked_q.roce_port) drop = DROP_UDP_CHECKSUM;
      else if (looked_q.roce_port && !looked_q.opcode_known) drop = DROP_ROCE_OPCODE;
    end
  end

  // The checks and the headers to remove, if no error was found so far.
  wire for_card   = looked_q.to_card && !looked_q.to_bridge;
  wire read_class = !looked_q.to_group || to_several || for_card;
  wire ipv4_class = looked_q.ipv4 && read_class;
  wire ip_class   = ipv4_class || ((v6_here || (IPV6 && looked_q.ipv6 && for_card)) && read_class);
  wire udp_class  = ip_class && looked_q.udp;
  wire icmp_class = ip_class && looked_q.icmp;
  wire roce_class = udp_class && looked_q.roce_port;

  wire [16:0] rest = 17'(looked_q.total_length)
                     - (roce_class ? 17'(looked_q.overhead) : looked_q.ipv6 ? 17'(UDP_HDR_BYTES) : 17'(IPV4_HDR_BYTES + UDP_HDR_BYTES));

  parsed_t verdict_q;
  logic [18:0] pseudo_sum_q;
  logic [19:0] ipv4_sum_q;
  logic verdict_valid_q;

  always_ff @(posedge clk) begin
    verdict_valid_q <= looked_valid_q;
    if (looked_valid_q) begin
      verdict_q <= '{
          drop: drop,
          cls: cls,
          listener: looked_q.listener,
          for_card: for_card,
          group: looked_q.to_group,
          asks_us: looked_q.asks_us,
          has_addresses: ip_class,
          tcp: looked_q.tcp,
          flow_known: ip_class && looked_q.form_ok && !looked_q.fragment && (looked_q.tcp || looked_q.udp),
          sum_known: ip_class && looked_q.form_ok && !looked_q.fragment
                     && (looked_q.tcp || looked_q.icmp || (looked_q.udp && looked_q.udp_checked)),
          ipv4: ipv4_class,
          sum_checked: icmp_class || (udp_class && looked_q.udp_checked),
          headers_fit: !(icmp_class || udp_class) || !rest[16],
          place: whole_frame(cls) ? RX_PLACE_0 : {1'b0, v6_here, 3'(roce_class ? place_of_ext(looked_q.ext_bytes) : PLACE_42)},
          payload_length: cls inside {CLASS_ARP, CLASS_ND} ? '0 : rest[15:0],
          ip_top: ip_class ? 17'(looked_q.total_length) + (looked_q.ipv6 ? 17'(ETH_HDR_BYTES + IPV6_HDR_BYTES - 1) : 17'(ETH_HDR_BYTES - 1))
                           : 17'(ETH_HDR_BYTES + ARP_HDR_BYTES - 1)
      };
      ipv4_sum_q <= 20'(ipv4_pair_q[0]) + 20'(ipv4_pair_q[1]) + 20'(ipv4_pair_q[2]) + 20'(ipv4_pair_q[3])
                    + 20'(ipv4_pair_q[4]);
      // ICMP has no pseudo-header, ICMPv6 has one (RFC 4443, 2.3). That of IPv4 has the length without the IP header.
      pseudo_sum_q <= looked_q.icmp && !looked_q.ipv6 ? '0
          : 19'(pseudo_pair_q[0]) + 19'(pseudo_pair_q[1]) + 19'(pseudo_pair_q[2]) + (looked_q.ipv6 ? '0 : 19'(NOT_IPV4_HEADER));
    end
  end
  assign verdict = verdict_q;

  // ---- the network card gets what is for its station, but for what the device keeps to itself: the same table as route_of in packet_plane,
  // from the other side. What is for several stations goes to both, good or bad: each judges for itself. (The target of a solicitation is
  // behind the decision: packet_rx looks at it.) ----
  logic kept, to_both;
  always_comb begin
    unique case (verdict_q.cls)
      CLASS_ROCE: kept = 1'b1;
      CLASS_UDP:  kept = verdict_q.listener != LISTENS_NOBODY && !verdict_q.group;
      CLASS_ICMP: kept = verdict_q.drop == DROP_NONE && !card.answers_echo;
      CLASS_ARP:  kept = verdict_q.asks_us && !card.answers_arp;
      default:    kept = 1'b0;
    endcase
    unique case (verdict_q.cls)
      CLASS_ARP, CLASS_ND, CLASS_RA: to_both = 1'b1;
      CLASS_UDP:                     to_both = verdict_q.listener != LISTENS_NOBODY;
      default:                       to_both = 1'b0;
    endcase
  end
  wire to_card = verdict_q.for_card && !kept;

  // ---- check the IPv4 header ----
  checks_t checks_q;
  always_ff @(posedge clk) begin
    if (verdict_valid_q) begin
      checks_q <= '{
          card: to_card,
          alone: to_card && (verdict_q.drop != DROP_NONE || !to_both),
          ipv4_ok: !verdict_q.ipv4 || ipv4_sum_q[15:0] == 16'hffff - 16'(ipv4_sum_q[19:16]),
          pseudo_sum: pseudo_sum_q
      };
    end
  end
  assign checks = checks_q;
endmodule
