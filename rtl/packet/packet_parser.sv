// SPDX-License-Identifier: Apache-2.0

// Parses the headers of received frames: the class of a frame, the position of its payload, the fields of its headers, and the checks that
// need only headers. No other unit of the receive side uses offsets in a frame. The headers are collected from the first beats as they pass
// and read together, as structs.
//
// Limits, all decided here: headers are read in frames without a tag, or whose tag vlan_remove took, and behind IPv4 headers without
// options only. icrc_state, which processes the beats before the frame is classified, relies on that: CLASS_ROCE has no other layout.
//
// One beat a cycle, never stalls, gaps between beats are allowed. `headers` is valid in the cycle after the frame's last beat. `verdict`
// belongs to the frame of the beat received 3 cycles ago, if that beat is the one that contains byte 42 or a later one; it is undefined for
// frames that end before. `checks` follow one cycle later.
module packet_parser
  import packet_pkg::*;
  import roce_wire_pkg::*;
  import frame_pkg::*;
  import packet_rx_pkg::*;
#(
    parameter int unsigned DATA_W = 512,
    parameter int unsigned INDEX_W = 8
) (
    input  logic               clk,
    input  local_addr_t        local_addr,
    input  logic               in_valid,
    input  logic [INDEX_W-1:0] in_index,     // of the beat in its frame
    input  logic [DATA_W-1:0]  in_data,
    input  logic               in_foreign,   // from the beat with byte 15 on: not of the device's VLAN
    input  vlan_t              in_tag,       // likewise: the tag that was removed
    output headers_t           headers,
    output parsed_t            verdict,
    output checks_t            checks        // one cycle behind `verdict`
);
  localparam int unsigned BYTES = DATA_W / 8;
  localparam int unsigned WINDOW_BEATS = (HDR_BYTES + BYTES - 1) / BYTES;
  localparam int unsigned DECISION = DECISION_BYTE / BYTES;

  // ---- collect: byte 0 of the frame in the most significant byte ----
  logic [WINDOW_BEATS*BYTES-1:0][7:0] gathered_q;
  logic decide_q, foreign_q;
  vlan_t removed_q;

  always_ff @(posedge clk) begin
    decide_q <= in_valid && in_index == INDEX_W'(DECISION);
    if (in_valid && in_index == INDEX_W'(DECISION)) begin
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
    eth_hdr_t       eth;
    ipv4_hdr_t      ipv4;
    icmp_echo_hdr_t echo;
  } icmp_frame_t;
  typedef struct packed {
    eth_hdr_t  eth;
    ipv4_hdr_t ipv4;
    tcp_hdr_t  tcp;
  } tcp_frame_t;
  typedef struct packed {
    roce_hdr_t roce;
    ext_t      ext;
  } roce_frame_t;
  typedef struct packed {
    roce_hdr_t roce;
    reth_t     reth;
    immdt_t    immdt;
  } roce_reth_frame_t;
  typedef struct packed {
    roce_hdr_t roce;
    deth_t     deth;
    immdt_t    immdt;
  } roce_deth_frame_t;
  typedef struct packed {
    roce_hdr_t   roce;
    logic [31:0] word;             // ImmDt or IETH
  } roce_word_frame_t;

  tagged_frame_t    tag;
  arp_frame_t       arp;
  icmp_frame_t      icmp;
  tcp_frame_t       tcp;
  roce_frame_t      with_ext;
  roce_reth_frame_t with_reth;
  roce_deth_frame_t with_deth;
  roce_word_frame_t with_word;
  roce_hdr_t        roce;
  assign tag       = window[HDR_BYTES*8-1-:$bits(tagged_frame_t)];
  assign arp       = window[HDR_BYTES*8-1-:$bits(arp_frame_t)];
  assign icmp      = window[HDR_BYTES*8-1-:$bits(icmp_frame_t)];
  assign tcp       = window[HDR_BYTES*8-1-:$bits(tcp_frame_t)];
  assign with_ext  = window[HDR_BYTES*8-1-:$bits(roce_frame_t)];
  assign with_reth = window[HDR_BYTES*8-1-:$bits(roce_reth_frame_t)];
  assign with_deth = window[HDR_BYTES*8-1-:$bits(roce_deth_frame_t)];
  assign with_word = window[HDR_BYTES*8-1-:$bits(roce_word_frame_t)];
  assign roce      = with_ext.roce;

  wire is_arp = roce.eth.ethertype == ETHERTYPE_ARP;
  wire has_tag = roce.eth.ethertype inside {ETHERTYPE_CTAG, ETHERTYPE_STAG};

  // ---- the record. Fields of different layouts that share its bits share bits of the frame as well, as far as possible ----
  always_comb begin
    headers.one_host = one_host(roce.eth.src, roce.ipv4.src);
    headers.l2 = '{
        src: roce.eth.src,
        group: roce.eth.dst[MAC_GROUP_BIT],
        broadcast: roce.eth.dst == MAC_BROADCAST,
        vlan: removed_q.present && !has_tag ? removed_q
            : '{present: has_tag, service: roce.eth.ethertype == ETHERTYPE_STAG, pcp: tag.tag.pcp, dei: tag.tag.dei,
                vid: tag.tag.vid}
    };
    headers.l3 = '{
        v6: 1'b0,
        src: ip_mapped(roce.ipv4.src),
        dst: ip_mapped(roce.ipv4.dst),
        dscp: roce.ipv4.dscp,
        ecn: roce.ipv4.ecn,
        total_length: roce.ipv4.total_length,
        hop_limit: roce.ipv4.ttl,
        protocol: roce.ipv4.protocol,
        fragment: '{identification: roce.ipv4.identification, reserved: roce.ipv4.flag_reserved, df: roce.ipv4.flag_df,
                    mf: roce.ipv4.flag_mf, offset: roce.ipv4.fragment_offset},
        header_checksum: roce.ipv4.header_checksum
    };
    headers.l4.roce = '{
        udp: roce.udp,
        bth: roce.bth,
        ext: with_ext.ext,
        word: roce.bth.opcode == RC_RDMA_WRITE_ONLY_WITH_IMM ? with_reth.immdt
            : roce.bth.opcode == UD_SEND_ONLY_WITH_IMM ? with_deth.immdt : with_word.word
    };
    if (roce.ipv4.protocol == IPPROTO_TCP) headers.l4.tcp.tcp = tcp.tcp;
    if (roce.ipv4.protocol == IPPROTO_ICMP) headers.l4.icmp.echo = icmp.echo;
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
    logic        to_mdns;        // to the group of mDNS
    logic        has_tag;        // or should have one
    logic        ipv4;
    logic        ipv6;
    logic        arp;
    logic        arp_ok;
    logic        form_ok;        // IPv4 without options, long enough for the following headers
    logic        fragment;
    logic        ip_to_us;
    logic        ip_to_all;
    logic        ip_to_mdns;
    logic        dhcp;           // to the port of the DHCP client, which expects an answer
    logic        mdns;           // to the port of the mDNS responder, which works
    logic        icmp;
    logic        icmp_echo;
    logic        icmp_unreachable;
    logic        icmp_too_big;
    logic        tcp;
    logic        udp;
    logic        udp_length_ok;
    logic        udp_checked;
    logic        roce_port;
    logic        opcode_known;
    logic [5:0]  ext_bytes;
    logic [6:0]  overhead;       // bytes of the IPv4 packet that are not RoCE payload
    logic [15:0] total_length;
  } looked_t;
  looked_t looked_q;
  logic    looked_valid_q;

  // Sums of pairs of words, for the IPv4 header and for the UDP pseudo-header.
  logic [9:0][15:0] ipv4_words;
  logic [5:0][15:0] pseudo_words;
  logic [16:0] ipv4_pair_q[5];
  logic [16:0] pseudo_pair_q[3];
  assign ipv4_words   = roce.ipv4;
  assign pseudo_words = {roce.ipv4.src, roce.ipv4.dst, 8'd0, roce.ipv4.protocol, roce.udp.length};

  always_ff @(posedge clk) begin
    looked_valid_q <= decide_q;
    if (decide_q) begin
      looked_q <= '{
          to_us: local_addr.enable && roce.eth.dst == local_addr.mac,
          to_group: local_addr.enable && roce.eth.dst[MAC_GROUP_BIT],
          to_all: roce.eth.dst == MAC_BROADCAST,
          to_mdns: roce.eth.dst == MDNS_MAC,
          has_tag: has_tag || foreign_q,
          ipv4: roce.eth.ethertype == ETHERTYPE_IPV4 && !foreign_q,   // the checks of IPv4 are for what is read
          ipv6: roce.eth.ethertype == ETHERTYPE_IPV6,
          arp: is_arp,
          arp_ok: arp.arp.htype == ARP_HTYPE_ETHERNET && arp.arp.ptype == ETHERTYPE_IPV4 && arp.arp.hlen == 8'd6
                  && arp.arp.plen == 8'd4 && (arp.arp.oper == ARP_REQUEST || arp.arp.oper == ARP_REPLY)
                  && !arp.arp.sha[MAC_GROUP_BIT],
          form_ok: roce.ipv4.version == 4'd4 && roce.ipv4.ihl == 4'd5
                   && roce.ipv4.total_length >= 16'(IPV4_HDR_BYTES),
          fragment: roce.ipv4.flag_mf || roce.ipv4.fragment_offset != '0,
          ip_to_us: roce.ipv4.dst == local_addr.ip && local_addr.ip != '0,
          ip_to_all: roce.ipv4.dst == '1,
          ip_to_mdns: roce.ipv4.dst == MDNS_IP,
          dhcp: local_addr.dhcp && roce.udp.dst_port == UDP_PORT_DHCP,
          mdns: local_addr.mdns && roce.udp.dst_port == MDNS_PORT,
          icmp: roce.ipv4.protocol == IPPROTO_ICMP,
          icmp_echo: icmp.echo.icmp_type == ICMP_ECHO_REQUEST && icmp.echo.code == '0,
          icmp_unreachable: icmp.echo.icmp_type == ICMP_UNREACHABLE,
          icmp_too_big: icmp.echo.code == ICMP_TOO_BIG,
          tcp: roce.ipv4.protocol == IPPROTO_TCP,
          udp: roce.ipv4.protocol == IPPROTO_UDP,
          udp_length_ok: roce.ipv4.total_length == roce.udp.length + 16'(IPV4_HDR_BYTES)
                         && roce.udp.length >= 16'(UDP_HDR_BYTES),
          udp_checked: roce.udp.checksum != '0,
          roce_port: roce.udp.dst_port == UDP_PORT_ROCE,
          opcode_known: ext.supported,
          ext_bytes: ext.bytes,
          overhead: 7'(IPV4_HDR_BYTES + UDP_HDR_BYTES + BTH_BYTES + ICRC_BYTES) + 7'(ext.bytes) + 7'(roce.bth.padcnt),
          total_length: roce.ipv4.total_length
      };
      for (int unsigned i = 0; i < 5; i++) ipv4_pair_q[i] <= 17'(ipv4_words[2*i]) + 17'(ipv4_words[2*i+1]);
      for (int unsigned i = 0; i < 3; i++) pseudo_pair_q[i] <= 17'(pseudo_words[2*i]) + 17'(pseudo_words[2*i+1]);
    end
  end

  // The only packets to several hosts that are accepted: they may be for this one while it has no address (RFC 2131, 4.1), or are
  // questions to all who know an answer (RFC 6762).
  wire to_dhcp = looked_q.to_all && looked_q.ip_to_all && looked_q.dhcp;
  wire to_mdns = looked_q.to_mdns && looked_q.ip_to_mdns && looked_q.mdns;
  wire to_several = looked_q.ipv4 && looked_q.udp && (to_dhcp || to_mdns);

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
    else if (looked_q.ipv6) cls = CLASS_IPV6;
    else if (!looked_q.ipv4) cls = CLASS_OTHER;
    else if (!looked_q.form_ok) drop = DROP_IPV4_HEADER;
    else if (!looked_q.ip_to_us && !to_several) drop = DROP_NOT_OURS;
    else if (looked_q.fragment) drop = DROP_IPV4_FRAGMENT;
    else if (looked_q.icmp) begin
      cls = CLASS_ICMP;
      // Nothing depends on what such a message says, so it is not checked any further (RFC 5927).
      if (looked_q.icmp_unreachable) drop = looked_q.icmp_too_big ? DROP_ICMP_TOO_BIG : DROP_ICMP_UNREACHABLE;
      else if (!looked_q.icmp_echo) drop = DROP_ICMP;
    end
    else if (looked_q.tcp) cls = CLASS_TCP;
    else if (!looked_q.udp) cls = CLASS_IP;
    else if (!looked_q.udp_length_ok) drop = DROP_UDP_LENGTH;
    else if (looked_q.roce_port) begin
      cls = CLASS_ROCE;
      if (!looked_q.opcode_known) drop = DROP_ROCE_OPCODE;
    end
    else cls = CLASS_UDP;
  end

  // The checks and the headers to remove, if no error was found so far.
  wire ipv4_class = looked_q.ipv4 && (!looked_q.to_group || to_several);
  wire udp_class  = ipv4_class && looked_q.udp;
  wire icmp_class = ipv4_class && looked_q.icmp;
  wire roce_class = udp_class && looked_q.roce_port;

  wire [16:0] rest = 17'(looked_q.total_length)
                     - (roce_class ? 17'(looked_q.overhead) : 17'(IPV4_HDR_BYTES + UDP_HDR_BYTES));

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
          ipv4: ipv4_class,
          sum_checked: icmp_class || (udp_class && looked_q.udp_checked),
          headers_fit: !(icmp_class || udp_class) || !rest[16],
          place: whole_frame(cls) ? RX_PLACE_0 : roce_class ? rx_place_t'(place_of_ext(looked_q.ext_bytes)) : rx_place_t'(PLACE_42),
          payload_length: cls == CLASS_ARP ? '0 : rest[15:0],
          ip_top: ipv4_class ? 17'(looked_q.total_length) + 17'(ETH_HDR_BYTES - 1) : 17'(ETH_HDR_BYTES + ARP_HDR_BYTES - 1)
      };
      ipv4_sum_q <= 20'(ipv4_pair_q[0]) + 20'(ipv4_pair_q[1]) + 20'(ipv4_pair_q[2]) + 20'(ipv4_pair_q[3])
                    + 20'(ipv4_pair_q[4]);
      pseudo_sum_q <= 19'(pseudo_pair_q[0]) + 19'(pseudo_pair_q[1]) + 19'(pseudo_pair_q[2]);
    end
  end
  assign verdict = verdict_q;

  // ---- check the IPv4 header ----
  checks_t checks_q;
  always_ff @(posedge clk) begin
    if (verdict_valid_q) begin
      checks_q <= '{
          ipv4_ok: !verdict_q.ipv4 || ipv4_sum_q[15:0] == 16'hffff - 16'(ipv4_sum_q[19:16]),
          pseudo_sum: verdict_q.cls == CLASS_ICMP ? '0 : pseudo_sum_q
      };
    end
  end
  assign checks = checks_q;
endmodule
