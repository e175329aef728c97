// SPDX-License-Identifier: Apache-2.0

// Reads the headers of received frames: which class a frame has, where its payload lies, and what is wrong with it as far as
// the headers tell. The headers are gathered from the first beats as they pass and looked at together, as structs.
//
// One beat a cycle, never stops, gaps between beats do not matter. `window` holds the gathered headers in the cycle after
// the frame's last beat came in. `verdict` is that of the frame whose beat came in 3 cycles ago, as soon as that beat is the one
// that holds byte 42 or a later one; it says nothing about frames that end before. `checks` follow one cycle behind it.
module packet_parser
  import packet_pkg::*;
  import roce_pkg::*;
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
    output hdr_window_t        window,
    output parsed_t            verdict,
    output checks_t            checks        // one cycle behind `verdict`
);
  localparam int unsigned BYTES = DATA_W / 8;
  localparam int unsigned WINDOW_BEATS = (HDR_BYTES + BYTES - 1) / BYTES;
  localparam int unsigned DECISION = DECISION_BYTE / BYTES;

  // ---- gather: byte 0 of the frame in the most significant byte ----
  logic [WINDOW_BEATS*BYTES-1:0][7:0] gathered_q;
  logic decide_q;

  always_ff @(posedge clk) begin
    decide_q <= in_valid && in_index == INDEX_W'(DECISION);
    for (int unsigned beat = 0; beat < WINDOW_BEATS; beat++)
      if (in_valid && in_index == INDEX_W'(beat))
        for (int unsigned lane = 0; lane < BYTES; lane++)
          gathered_q[WINDOW_BEATS*BYTES-1-beat*BYTES-lane] <= in_data[lane*8+:8];
  end

  assign window = gathered_q[WINDOW_BEATS*BYTES-1-:HDR_BYTES];

  // ---- look ----
  typedef struct packed {
    eth_hdr_t eth;
    arp_hdr_t arp;
  } arp_frame_t;
  typedef struct packed {
    eth_hdr_t       eth;
    ipv4_hdr_t      ipv4;
    icmp_echo_hdr_t icmp;
  } icmp_frame_t;

  arp_frame_t  arp;
  icmp_frame_t icmp;
  roce_hdr_t   roce;
  ext_len_t    ext;
  assign arp  = window[HDR_BYTES*8-1-:$bits(arp_frame_t)];
  assign icmp = window[HDR_BYTES*8-1-:$bits(icmp_frame_t)];
  assign roce = window[HDR_BYTES*8-1-:$bits(roce_hdr_t)];
  assign ext  = ext_headers(roce.bth.opcode);

  typedef struct packed {
    logic        to_us;          // to this station,
    logic        to_all;         // to every one
    logic        ipv4;
    logic        arp;
    logic        arp_ok;
    logic        form_ok;        // IPv4 without options, long enough for what follows
    logic        fragment;
    logic        ip_to_us;
    logic        icmp;
    logic        icmp_echo;
    logic        udp;
    logic        udp_length_ok;
    logic        udp_checked;
    logic        roce_port;
    logic        opcode_known;
    logic [5:0]  ext_bytes;
    logic [6:0]  overhead;       // bytes of the IPv4 packet that are not RoCE payload
    logic [1:0]  padcnt;
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
          to_all: local_addr.enable && roce.eth.dst == MAC_BROADCAST,
          ipv4: roce.eth.ethertype == ETHERTYPE_IPV4,
          arp: roce.eth.ethertype == ETHERTYPE_ARP,
          arp_ok: arp.arp.htype == ARP_HTYPE_ETHERNET && arp.arp.ptype == ETHERTYPE_IPV4 && arp.arp.hlen == 8'd6
                  && arp.arp.plen == 8'd4 && (arp.arp.oper == ARP_REQUEST || arp.arp.oper == ARP_REPLY)
                  && !arp.arp.sha[MAC_GROUP_BIT],
          form_ok: roce.ipv4.version == 4'd4 && roce.ipv4.ihl == 4'd5
                   && roce.ipv4.total_length >= 16'(IPV4_HDR_BYTES),
          fragment: roce.ipv4.flag_mf || roce.ipv4.fragment_offset != '0,
          ip_to_us: roce.ipv4.dst == local_addr.ip,
          icmp: roce.ipv4.protocol == IPPROTO_ICMP,
          icmp_echo: icmp.icmp.icmp_type == ICMP_ECHO_REQUEST && icmp.icmp.code == '0,
          udp: roce.ipv4.protocol == IPPROTO_UDP,
          udp_length_ok: roce.ipv4.total_length == roce.udp.length + 16'(IPV4_HDR_BYTES)
                         && roce.udp.length >= 16'(UDP_HDR_BYTES),
          udp_checked: roce.udp.checksum != '0,
          roce_port: roce.udp.dst_port == UDP_PORT_ROCE,
          opcode_known: ext.supported,
          ext_bytes: ext.bytes,
          overhead: 7'(IPV4_HDR_BYTES + UDP_HDR_BYTES + BTH_BYTES + ICRC_BYTES) + 7'(ext.bytes) + 7'(roce.bth.padcnt),
          padcnt: roce.bth.padcnt,
          total_length: roce.ipv4.total_length
      };
      for (int unsigned i = 0; i < 5; i++) ipv4_pair_q[i] <= 17'(ipv4_words[2*i]) + 17'(ipv4_words[2*i+1]);
      for (int unsigned i = 0; i < 3; i++) pseudo_pair_q[i] <= 17'(pseudo_words[2*i]) + 17'(pseudo_words[2*i+1]);
    end
  end

  // ---- decide ----
  wire roce_class = looked_q.udp && looked_q.roce_port;

  drop_e drop;
  always_comb begin
    drop = DROP_NONE;
    if (!looked_q.to_us && !looked_q.to_all) drop = DROP_NOT_OURS;
    else if (looked_q.arp) begin
      if (!looked_q.arp_ok) drop = DROP_ARP;
    end else if (!looked_q.ipv4) drop = DROP_ETHERTYPE;
    else if (!looked_q.form_ok) drop = DROP_IPV4_HEADER;
    // A packet for one host does not come in a frame for all (RFC 1122, 3.3.6).
    else if (!looked_q.ip_to_us || looked_q.to_all) drop = DROP_NOT_OURS;
    else if (looked_q.fragment) drop = DROP_IPV4_FRAGMENT;
    else if (looked_q.icmp) begin
      if (!looked_q.icmp_echo) drop = DROP_ICMP;
    end else if (!looked_q.udp) drop = DROP_IP_PROTOCOL;
    else if (!looked_q.udp_length_ok) drop = DROP_UDP_LENGTH;
    else if (looked_q.roce_port && !looked_q.opcode_known) drop = DROP_ROCE_OPCODE;
  end

  wire [16:0] rest = 17'(looked_q.total_length)
                     - (roce_class ? 17'(looked_q.overhead) : 17'(IPV4_HDR_BYTES + UDP_HDR_BYTES));
  wire [2:0] behind = roce_class ? 3'(ICRC_BYTES) + 3'(looked_q.padcnt) : '0;  // bytes between payload and IPv4 end

  parsed_t verdict_q;
  logic [18:0] pseudo_sum_q;
  logic [19:0] ipv4_sum_q;
  logic verdict_valid_q;

  always_ff @(posedge clk) begin
    verdict_valid_q <= looked_valid_q;
    if (looked_valid_q) begin
      verdict_q <= '{
          drop: drop,
          cls: looked_q.arp ? CLASS_ARP : looked_q.icmp ? CLASS_ICMP : looked_q.roce_port ? CLASS_ROCE : CLASS_UDP,
          udp_checked: looked_q.udp && looked_q.udp_checked,
          headers_fit: looked_q.arp || !rest[16],
          payload_length: looked_q.arp ? '0 : rest[15:0],
          ip_top: looked_q.arp ? 17'(ETH_HDR_BYTES + ARP_HDR_BYTES - 1) : 17'(looked_q.total_length) + 17'(ETH_HDR_BYTES - 1),
          payload_top: 17'(looked_q.total_length) + 17'(ETH_HDR_BYTES - 1) - 17'(behind),
          place: roce_class ? place_of_ext(looked_q.ext_bytes) : PLACE_42
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
          ipv4_ok: verdict_q.cls == CLASS_ARP || ipv4_sum_q[15:0] == 16'hffff - 16'(ipv4_sum_q[19:16]),
          pseudo_sum: verdict_q.cls == CLASS_ICMP ? '0 : pseudo_sum_q
      };
    end
  end
  assign checks = checks_q;
endmodule
