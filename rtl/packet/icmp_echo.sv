// SPDX-License-Identifier: Apache-2.0

// Answers echo requests of ICMP (RFC 792, RFC 1122 3.2.2.6) and ICMPv6 (RFC 4443, 4.2): the request is sent back as a reply. The payload passes at one beat a cycle, of
// any size that can be received; both checksums are updated instead of recomputed (RFC 1624). One request in 2 cycles; the reply's header
// follows 2 cycles after the request's. Holds two requests, then stalls with `tx`; the payload stalls with `tx_payload`.
module icmp_echo
  import packet_pkg::*;
  import frame_pkg::*;
#(
    parameter bit IPV6 = 1'b1
) (
    input  logic        clk,
    input  logic        rst,
    input  local_addr_t local_addr,
    stream_if.sink      rx,          // frame_rx_t of CLASS_ICMP: echo requests with a valid checksum
    axis_if.sink        rx_payload,
    stream_if.source    tx,          // frame_tx_t
    axis_if.source      tx_payload,
    output logic        idle
);
  localparam logic [7:0] TTL = 8'd64;

  typedef struct packed {
    eth_hdr_t       eth;
    ipv4_hdr_t      ipv4;
    icmp_echo_hdr_t icmp;
  } echo_frame_t;
  typedef struct packed {
    eth_hdr_t       eth;
    ipv6_hdr_t      ipv6;
    icmp_echo_hdr_t icmp;
  } echo_v6_frame_t;

  // The fields of a reply that are taken from its request; the checksums are those of the reply.
  typedef struct packed {
    mac_t        mac;
    logic        v6;
    logic        global_;      // IPv6: to the global address, else to the link-local one
    ip_addr_t    ip;
    logic [5:0]  dscp;
    logic [1:0]  ecn;
    logic [15:0] identification;
    logic        reserved;
    logic        df;
    logic [15:0] header_checksum;
    logic [15:0] icmp_checksum;
    logic [15:0] identifier;
    logic [15:0] sequence_number;
    logic [15:0] payload_length;
  } taken_t;

  frame_rx_t      frame;
  l3_t            ip;
  icmp_echo_hdr_t icmp;
  taken_t         taken_q, reply_of;
  logic           valid_q;
  stream_if #(.T(taken_t)) taken ();
  stream_if #(.T(taken_t)) answered ();
  assign frame = rx.data;
  assign ip    = frame.headers.l3;
  assign icmp  = frame.headers.l4.icmp.echo;
  wire v6 = IPV6 && ip.v6;

  // No combinational path from `tx.ready`, which passes through the transmit side, to the receive side.
  assign rx.ready = !valid_q;

  always_ff @(posedge clk) begin
    if (rx.ready)
      taken_q <= '{
          mac: frame.headers.l2.src,
          v6: v6,
          global_: v6 && !is_link_local(ip.dst),
          ip: v6 ? ip.src : ip_mapped(ipv4_of(ip.src)),
          dscp: ip.dscp,
          ecn: ip.ecn,
          identification: ip.fragment.identification,
          reserved: ip.fragment.reserved,
          df: ip.fragment.df,
          header_checksum: checksum_updated(ip.header_checksum, {ip.hop_limit, IPPROTO_ICMP}, {TTL, IPPROTO_ICMP}),
          icmp_checksum: v6 ? checksum_updated(icmp.checksum, {ICMPV6_ECHO_REQUEST, 8'd0}, {ICMPV6_ECHO_REPLY, 8'd0})
                            : checksum_updated(icmp.checksum, {ICMP_ECHO_REQUEST, 8'd0}, {ICMP_ECHO_REPLY, 8'd0}),
          identifier: icmp.identifier,
          sequence_number: icmp.sequence_number,
          payload_length: frame.payload_length
      };
    if (rst) valid_q <= 1'b0;
    else valid_q <= rx.ready ? rx.valid : !taken.ready;
  end

  assign taken.valid = valid_q;
  assign taken.data  = taken_q;
  stream_slice #(.T(taken_t), .SKID(1'b0)) waiting (.clk, .rst, .in(taken), .out(answered));
  assign reply_of = answered.data;

  echo_frame_t reply;
  assign reply.eth = '{dst: reply_of.mac, src: local_addr.mac, ethertype: ETHERTYPE_IPV4};
  assign reply.ipv4 = '{
      version: 4'd4,
      ihl: 4'd5,
      dscp: reply_of.dscp,
      ecn: reply_of.ecn,
      total_length: reply_of.payload_length + 16'(IPV4_HDR_BYTES + ICMP_ECHO_HDR_BYTES),
      identification: reply_of.identification,
      flag_reserved: reply_of.reserved,
      flag_df: reply_of.df,
      flag_mf: 1'b0,
      fragment_offset: '0,
      ttl: TTL,
      protocol: IPPROTO_ICMP,
      header_checksum: reply_of.header_checksum,
      src: local_addr.ip,
      dst: ipv4_of(reply_of.ip)
  };
  assign reply.icmp = '{
      icmp_type: reply_of.v6 ? ICMPV6_ECHO_REPLY : ICMP_ECHO_REPLY,
      code: '0,
      checksum: reply_of.icmp_checksum,
      identifier: reply_of.identifier,
      sequence_number: reply_of.sequence_number
  };

  echo_v6_frame_t reply_v6;
  assign reply_v6 = '{
      eth: '{dst: reply_of.mac, src: local_addr.mac, ethertype: ETHERTYPE_IPV6},
      ipv6: '{
          version: 4'd6,
          dscp: reply_of.dscp,
          ecn: reply_of.ecn,
          flow_label: '0,
          payload_length: reply_of.payload_length + 16'(ICMP_ECHO_HDR_BYTES),
          next_header: IPPROTO_ICMPV6,
          hop_limit: TTL,
          src: reply_of.global_ ? local_addr.global_ : local_addr.link_local,
          dst: reply_of.ip
      },
      icmp: reply.icmp
  };

  assign answered.ready = tx.ready;
  assign tx.valid = answered.valid;
  always_comb begin
    tx.data = '0;
    tx.data.hdr_length = reply_of.v6 ? 7'($bits(echo_v6_frame_t) / 8) : 7'($bits(echo_frame_t) / 8);
    tx.data.payload_length = reply_of.payload_length;
    tx.data.hdr[HDR_BYTES*8-1-:$bits(echo_frame_t)] = reply;
    if (reply_of.v6) tx.data.hdr[HDR_BYTES*8-1-:$bits(echo_v6_frame_t)] = reply_v6;
  end

  assign tx_payload.tdata  = rx_payload.tdata;
  assign tx_payload.tkeep  = rx_payload.tkeep;
  assign tx_payload.tlast  = rx_payload.tlast;
  assign tx_payload.tuser  = rx_payload.tuser;
  assign tx_payload.tvalid = rx_payload.tvalid;
  assign rx_payload.tready = tx_payload.tready;

  assign idle = !valid_q && !answered.valid;
endmodule
