// SPDX-License-Identifier: Apache-2.0

// Makes the key of each frame of the line, as it came, with its tags. packet_parser has other needs: it reads frames of the device's VLAN
// without their tag, and classes need checks that a key does not.
//
// Headers are read in the first 128 bytes: behind up to two tags (802.1Q, 802.1ad), IPv4 and IPv6; behind IPv4 without options and IPv6
// without extension headers, at the first byte of a packet, TCP and UDP, and behind UDP to port 4791 the BTH. What the frame or its IP packet
// is too short for is 0, and its flag is not set.
//
// One beat a cycle, never stalls. The key is valid 3 cycles after the last beat of its frame.
module classify_headers
  import packet_pkg::*;
  import roce_wire_pkg::*;
  import classify_pkg::*;
#(
    parameter int unsigned DATA_W = 512
) (
    input  logic        clk,
    input  logic        rst,
    axis_if.monitor     line,
    input  logic [6:0]  offset,      // of the window; a change is for frames whose last beat comes in this cycle or later
    output logic        valid,
    output key_t        key,
    output logic [15:0] length,      // bytes of the frame, at most 65535
    output logic        sound        // the MAC has not marked it, and it is not too short
);
  localparam int unsigned BYTES = DATA_W / 8;
  localparam int unsigned SEEN = 128;                          // bytes of a frame
  localparam int unsigned BEATS = SEEN / BYTES;
  localparam int unsigned WINDOW = 16;
  localparam int unsigned TAG_BYTES = 4;
  localparam int unsigned PORTS_BYTES = 8;                     // of TCP or UDP, so that its ports are taken
  localparam int unsigned BEHIND_BYTES = UDP_HDR_BYTES + BTH_BYTES;
  localparam int unsigned L3_BYTES = IPV6_HDR_BYTES + BEHIND_BYTES;
  localparam int unsigned LEAST_BYTES = 42;                    // shorter frames are runts, whatever they are
  typedef logic [15:0] length_t;

  // ---- 1: the first bytes, byte 0 highest, and the length ----
  logic [SEEN-1:0][7:0] seen_q;
  logic                 ended_q, bad1_q, bad2_q;
  length_t              before_q, length1_q, here;
  logic [6:0]           offset1_q;

  always_comb begin
    here = '0;
    for (int unsigned i = 0; i < BYTES; i++)
      if (line.tkeep[i] && (i == BYTES - 1 || !line.tkeep[(i+1)%BYTES])) here |= length_t'(i + 1);
  end
  wire [16:0] sum = {1'b0, before_q} + {1'b0, here};
  wire length_t so_far = sum[16] ? '1 : sum[15:0];

  always_ff @(posedge clk) begin
    ended_q   <= !rst && line.tvalid && line.tlast;
    offset1_q <= offset;
    if (line.tvalid) begin
      bad1_q    <= line.tuser;
      length1_q <= so_far;
      before_q  <= line.tlast ? '0 : so_far;
      for (int unsigned beat = 0; beat < BEATS; beat++)
        if (before_q == length_t'(beat * BYTES))
          for (int unsigned lane = 0; lane < BYTES; lane++) seen_q[SEEN-1-beat*BYTES-lane] <= line.tdata[lane*8+:8];
    end
    if (rst) before_q <= '0;
  end

  // ---- 2: tags; what is behind them begins at byte 0 ----
  typedef struct packed {
    eth_hdr_t  eth;
    vlan_tag_t outer;
    vlan_tag_t inner;
  } l2_hdrs_t;
  localparam int unsigned L2_MOST = $bits(l2_hdrs_t) / 8;

  l2_hdrs_t l2;
  assign l2 = seen_q[SEEN-1-:L2_MOST];
  wire one = l2.eth.ethertype inside {ETHERTYPE_CTAG, ETHERTYPE_STAG} && length1_q >= length_t'(ETH_HDR_BYTES + TAG_BYTES);
  wire two = one && l2.outer.ethertype inside {ETHERTYPE_CTAG, ETHERTYPE_STAG} && length1_q >= length_t'(ETH_HDR_BYTES + 2 * TAG_BYTES);

  logic                     ended2_q, one_q, two_q, window_q, is_v4_q, is_v6_q;
  mac_t                     dst_q;
  logic [15:0]              type_q;
  logic [11:0]              outer_q, inner_q;
  logic [L3_BYTES-1:0][7:0] l3_q;
  length_t                  length2_q, l3_length_q;
  logic [2*WINDOW-1:0][7:0] coarse_q;
  logic [3:0]               fine_q;

  always_ff @(posedge clk) begin
    ended2_q <= ended_q && !rst;
    if (ended_q) begin
      one_q       <= one;
      two_q       <= two;
      dst_q       <= l2.eth.dst;
      type_q      <= two ? l2.inner.ethertype : one ? l2.outer.ethertype : l2.eth.ethertype;
      is_v4_q     <= two ? l2.inner.ethertype == ETHERTYPE_IPV4
                         : one ? l2.outer.ethertype == ETHERTYPE_IPV4 : l2.eth.ethertype == ETHERTYPE_IPV4;
      is_v6_q     <= two ? l2.inner.ethertype == ETHERTYPE_IPV6
                         : one ? l2.outer.ethertype == ETHERTYPE_IPV6 : l2.eth.ethertype == ETHERTYPE_IPV6;
      outer_q     <= one ? l2.outer.vid : '0;
      inner_q     <= two ? l2.inner.vid : '0;
      l3_q        <= two ? seen_q[SEEN-1-ETH_HDR_BYTES-2*TAG_BYTES-:L3_BYTES]
                         : one ? seen_q[SEEN-1-ETH_HDR_BYTES-TAG_BYTES-:L3_BYTES] : seen_q[SEEN-1-ETH_HDR_BYTES-:L3_BYTES];
      bad2_q      <= bad1_q;
      length2_q   <= length1_q;
      l3_length_q <= length1_q < length_t'(ETH_HDR_BYTES) ? '0
                     : length1_q - (two ? length_t'(L2_MOST) : one ? length_t'(ETH_HDR_BYTES + TAG_BYTES) : length_t'(ETH_HDR_BYTES));
      window_q    <= offset1_q <= 7'(SEEN - WINDOW) && length1_q >= length_t'(offset1_q) + length_t'(WINDOW);
      fine_q      <= offset1_q[3:0];
      for (int unsigned i = 0; i < 2 * WINDOW; i++)
        coarse_q[2*WINDOW-1-i] <= seen_q[SEEN-1-(32'(offset1_q[6:4])*WINDOW+i)%SEEN];
    end
  end

  // ---- 3: IP, and what is behind it ----
  typedef struct packed {
    udp_hdr_t udp;               // TCP has its ports there, too
    bth_t     bth;
  } behind_t;

  ipv4_hdr_t ipv4;
  ipv6_hdr_t ipv6;
  behind_t   behind;
  assign ipv4 = l3_q[L3_BYTES-1-:IPV4_HDR_BYTES];
  assign ipv6 = l3_q[L3_BYTES-1-:IPV6_HDR_BYTES];

  wire v4 = is_v4_q && l3_length_q >= length_t'(IPV4_HDR_BYTES) && ipv4.version == 4'd4 && ipv4.ihl >= 4'd5;
  wire v6 = is_v6_q && l3_length_q >= length_t'(IPV6_HDR_BYTES) && ipv6.version == 4'd6;
  assign behind = v6 ? l3_q[L3_BYTES-1-IPV6_HDR_BYTES-:BEHIND_BYTES] : l3_q[L3_BYTES-1-IPV4_HDR_BYTES-:BEHIND_BYTES];
  wire [7:0] protocol = v4 ? ipv4.protocol : v6 ? ipv6.next_header : '0;
  wire fragment = v4 ? ipv4.flag_mf || ipv4.fragment_offset != '0 : v6 && ipv6.next_header == IPPROTO_FRAGMENT;
  wire transport = v6 || (v4 && ipv4.ihl == 4'd5 && ipv4.fragment_offset == '0);

  // Whether frame and IP packet have so many bytes behind the IP header.
  function automatic logic reaches(length_t bytes);
    return v6 ? l3_length_q >= length_t'(IPV6_HDR_BYTES) + bytes && ipv6.payload_length >= bytes
              : l3_length_q >= length_t'(IPV4_HDR_BYTES) + bytes && ipv4.total_length >= length_t'(IPV4_HDR_BYTES) + bytes;
  endfunction
  wire ports = transport && protocol inside {IPPROTO_TCP, IPPROTO_UDP} && reaches(length_t'(PORTS_BYTES));
  wire roce = ports && protocol == IPPROTO_UDP && behind.udp.dst_port == UDP_PORT_ROCE && reaches(length_t'(BEHIND_BYTES));

  logic [WINDOW-1:0][7:0] window;
  always_comb
    for (int unsigned i = 0; i < WINDOW; i++) window[WINDOW-1-i] = coarse_q[2*WINDOW-1-i-32'(fine_q)];

  always_ff @(posedge clk) begin
    valid <= ended2_q && !rst;
    if (ended2_q) begin
      length        <= length2_q;
      sound         <= !bad2_q && length2_q >= length_t'(LEAST_BYTES);
      key.addresses <= v6 ? {ipv6.src, ipv6.dst} : {QUARTERS{v4 ? {ipv4.src, ipv4.dst} : {type_q, dst_q}}};
      key.window    <= window_q ? window : '0;
      key.common    <= '{
          zero: '0,
          one_tag: one_q,
          two_tags: two_q,
          v4: v4,
          v6: v6,
          ports: ports,
          roce: roce,
          fragment: fragment,
          window: window_q,
          outer_vid: outer_q,
          inner_vid: inner_q,
          protocol: protocol,
          src_port: ports ? behind.udp.src_port : '0,
          dst_port: ports ? behind.udp.dst_port : '0,
          opcode: roce ? behind.bth.opcode : '0,
          qpn: roce ? behind.bth.destqp : '0
      };
    end
  end

  logic unused_ok;
  assign unused_ok = &{1'b0, line.tready};
endmodule
