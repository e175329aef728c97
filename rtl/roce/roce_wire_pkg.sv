// SPDX-License-Identifier: Apache-2.0

// The RoCEv2 wire format: transport headers (IBTA 9.2, names as there), opcodes, syndromes and packet sequence numbers.
package roce_wire_pkg;
  import packet_pkg::*;

  typedef logic [23:0] qpn_t;
  typedef logic [23:0] psn_t;   // compare with psn_before(), never with <

  // ---- transport headers ----
  typedef struct packed {
    logic [7:0]  opcode;
    logic        se;
    logic        migreq;
    logic [1:0]  padcnt;
    logic [3:0]  tver;
    logic [15:0] pkey;
    logic        fecn;        // this and the next two: not covered by the ICRC
    logic        becn;        // set in a CNP (IBTA annex A17.9)
    logic [5:0]  resv6a;
    qpn_t        destqp;
    logic        ackreq;
    logic [6:0]  resv7b;
    psn_t        psn;
  } bth_t;

  typedef struct packed {
    logic [63:0] va;
    logic [31:0] rkey;
    logic [31:0] dmalen;
  } reth_t;

  typedef struct packed {
    logic [7:0]  syndrome;
    logic [23:0] msn;
  } aeth_t;

  typedef struct packed {
    logic [31:0] qkey;
    logic [7:0]  resv;
    qpn_t        srcqp;
  } deth_t;

  typedef struct packed {
    logic [63:0] va;
    logic [31:0] rkey;
    logic [63:0] swap_add;
    logic [63:0] compare;
  } atomiceth_t;

  typedef logic [31:0] immdt_t;
  typedef logic [31:0] ieth_t;          // key to invalidate
  typedef logic [63:0] atomicacketh_t;  // original value at the address

  localparam int unsigned BTH_BYTES = $bits(bth_t) / 8;    // 12
  localparam int unsigned AETH_BYTES = $bits(aeth_t) / 8;  // 4
  localparam int unsigned DETH_BYTES = $bits(deth_t) / 8;  // 8
  localparam int unsigned ATOMICETH_BYTES = $bits(atomiceth_t) / 8;  // 28
  localparam int unsigned ICRC_BYTES = 4;

  // Headers of a RoCE frame up to and including the BTH, over IPv4; over IPv6 they have IPV6_MORE_BYTES more.
  typedef struct packed {
    eth_hdr_t  eth;
    ipv4_hdr_t ipv4;
    udp_hdr_t  udp;
    bth_t      bth;
  } roce_hdr_t;
  localparam int unsigned ROCE_HDR_BYTES = $bits(roce_hdr_t) / 8;  // 54

  // What is behind the BTH in a frame that the device sends: room for the longest extension headers.
  localparam int unsigned EXT_BYTES = ATOMICETH_BYTES;
  typedef logic [EXT_BYTES*8-1:0] ext_bytes_t;

  // What the headers of a RoCE frame say, whichever version its IP packet has.
  typedef struct packed {
    mac_t        dst_mac;
    mac_t        src_mac;
    logic        v6;
    ip_addr_t    dst;
    ip_addr_t    src;
    logic [5:0]  dscp;
    logic [1:0]  ecn;
    logic [15:0] identification;  // IPv4
    logic [15:0] src_port;
    logic [15:0] udp_length;
    bth_t        bth;
    ext_bytes_t  ext;             // the first byte most significant
  } roce_frame_t;

  localparam logic [7:0] ROCE_HOP_LIMIT = 8'd64;

  // The IPv4 header, without its checksum.
  function automatic ipv4_hdr_t roce_ipv4(roce_frame_t f);
    return '{
        version: 4'd4,
        ihl: 4'd5,
        dscp: f.dscp,
        ecn: f.ecn,
        total_length: 16'(IPV4_HDR_BYTES) + f.udp_length,
        identification: f.identification,
        flag_df: 1'b1,
        ttl: ROCE_HOP_LIMIT,
        protocol: IPPROTO_UDP,
        src: ipv4_of(f.src),
        dst: ipv4_of(f.dst),
        default: '0
    };
  endfunction

  // The header window of the frame. The UDP checksum is 0 in either version: the ICRC covers what it would (IBTA annex A17.3.1; over IPv6 as
  // RFC 6935 permits). The flow label of IPv6 is the UDP source port, so that routers that look no further spread the flows as well (RFC 6438).
  function automatic hdr_window_t roce_window(roce_frame_t f, ipv4_hdr_t ipv4);
    eth_hdr_t  eth;
    ipv6_hdr_t ipv6;
    udp_hdr_t  udp;
    eth  = '{dst: f.dst_mac, src: f.src_mac, ethertype: f.v6 ? ETHERTYPE_IPV6 : ETHERTYPE_IPV4};
    ipv6 = '{
        version: 4'd6,
        dscp: f.dscp,
        ecn: f.ecn,
        flow_label: 20'(f.src_port),
        payload_length: f.udp_length,
        next_header: IPPROTO_UDP,
        hop_limit: ROCE_HOP_LIMIT,
        src: f.src,
        dst: f.dst
    };
    udp  = '{src_port: f.src_port, dst_port: UDP_PORT_ROCE, length: f.udp_length, checksum: '0};
    if (f.v6) return {eth, ipv6, udp, f.bth, f.ext, ((HDR_BYTES - ROCE_HDR_BYTES - IPV6_MORE_BYTES - EXT_BYTES) * 8)'(0)};
    return {eth, ipv4, udp, f.bth, f.ext, ((HDR_BYTES - ROCE_HDR_BYTES - EXT_BYTES) * 8)'(0)};
  endfunction

  // Bytes of the headers up to the end of the BTH.
  function automatic logic [6:0] roce_hdr_bytes(logic v6);
    return 7'(ROCE_HDR_BYTES) + (v6 ? 7'(IPV6_MORE_BYTES) : '0);
  endfunction

  typedef enum logic [7:0] {
    RC_SEND_FIRST            = 8'h00,
    RC_SEND_MIDDLE           = 8'h01,
    RC_SEND_LAST             = 8'h02,
    RC_SEND_LAST_WITH_IMM    = 8'h03,
    RC_SEND_ONLY             = 8'h04,
    RC_SEND_ONLY_WITH_IMM    = 8'h05,
    RC_RDMA_WRITE_FIRST      = 8'h06,
    RC_RDMA_WRITE_MIDDLE     = 8'h07,
    RC_RDMA_WRITE_LAST       = 8'h08,
    RC_RDMA_WRITE_LAST_WITH_IMM = 8'h09,
    RC_RDMA_WRITE_ONLY       = 8'h0a,
    RC_RDMA_WRITE_ONLY_WITH_IMM = 8'h0b,
    RC_RDMA_READ_REQUEST     = 8'h0c,
    RC_RDMA_READ_RESPONSE_FIRST = 8'h0d,
    RC_RDMA_READ_RESPONSE_MIDDLE = 8'h0e,
    RC_RDMA_READ_RESPONSE_LAST = 8'h0f,
    RC_RDMA_READ_RESPONSE_ONLY = 8'h10,
    RC_ACKNOWLEDGE           = 8'h11,
    RC_ATOMIC_ACKNOWLEDGE    = 8'h12,
    RC_COMPARE_SWAP          = 8'h13,
    RC_FETCH_ADD             = 8'h14,
    RC_SEND_LAST_WITH_INVALIDATE = 8'h16,
    RC_SEND_ONLY_WITH_INVALIDATE = 8'h17,
    UD_SEND_ONLY             = 8'h64,
    UD_SEND_ONLY_WITH_IMM    = 8'h65,
    CNP                      = 8'h81   // congestion notification: 16 reserved bytes follow the BTH
  } opcode_e;

  // AETH syndromes (IBTA 9.7.5.2).
  localparam logic [7:0] SYNDROME_ACK             = 8'h1f;  // ACK, credit count invalid: no end-to-end flow control
  localparam logic [7:0] SYNDROME_RNR_NAK         = 8'h20;  // + timer code
  localparam logic [7:0] SYNDROME_NAK_PSN_SEQ     = 8'h60;
  localparam logic [7:0] SYNDROME_NAK_INVALID_REQ = 8'h61;
  localparam logic [7:0] SYNDROME_NAK_REM_ACCESS  = 8'h62;
  localparam logic [7:0] SYNDROME_NAK_REM_OP      = 8'h63;

  localparam qpn_t        QPN_GSI = 24'd1;
  localparam qpn_t        QPN_FIRST = 24'd2;   // of the connected QPs; 0 and 1 are special QPs (IBTA 3.9.1)
  localparam logic [31:0] QKEY_GSI = 32'h8001_0000;
  localparam logic [15:0] PKEY_DEFAULT = 16'hffff;

  // Path MTU as the REQ carries it (IBTA 12.7.8.1, 9.3.1): 1 = 256, 2 = 512, 3 = 1024, 4 = 2048, 5 = 4096 bytes.
  typedef logic [2:0] mtu_code_t;

  function automatic logic [12:0] mtu_bytes(mtu_code_t code);
    return 13'd128 << code;
  endfunction

  // a precedes b, modulo 2^24 (IBTA 9.7.2: half of the space is the past).
  function automatic logic psn_before(psn_t a, psn_t b);
    psn_t d;
    d = a - b;
    return d[23];
  endfunction

  // Length in bytes of the extension headers after the BTH, by opcode; `supported` is 0 for an opcode that the device does not implement.
  typedef struct packed {
    logic       supported;
    logic [5:0] bytes;
  } ext_len_t;

  function automatic ext_len_t ext_headers(logic [7:0] opcode);
    unique case (opcode) inside
      RC_SEND_FIRST, RC_SEND_MIDDLE, RC_SEND_LAST, RC_SEND_ONLY,
      RC_RDMA_WRITE_MIDDLE, RC_RDMA_WRITE_LAST, RC_RDMA_READ_RESPONSE_MIDDLE:
        return '{supported: 1'b1, bytes: 6'd0};
      RC_SEND_LAST_WITH_IMM, RC_SEND_ONLY_WITH_IMM, RC_RDMA_WRITE_LAST_WITH_IMM,
      RC_SEND_LAST_WITH_INVALIDATE, RC_SEND_ONLY_WITH_INVALIDATE,
      RC_RDMA_READ_RESPONSE_FIRST, RC_RDMA_READ_RESPONSE_LAST, RC_RDMA_READ_RESPONSE_ONLY, RC_ACKNOWLEDGE:
        return '{supported: 1'b1, bytes: 6'd4};
      RC_RDMA_WRITE_FIRST, RC_RDMA_WRITE_ONLY, RC_RDMA_READ_REQUEST:
        return '{supported: 1'b1, bytes: 6'd16};
      RC_RDMA_WRITE_ONLY_WITH_IMM:
        return '{supported: 1'b1, bytes: 6'd20};
      RC_ATOMIC_ACKNOWLEDGE:
        return '{supported: 1'b1, bytes: 6'd12};
      RC_COMPARE_SWAP, RC_FETCH_ADD:
        return '{supported: 1'b1, bytes: 6'd28};
      UD_SEND_ONLY:
        return '{supported: 1'b1, bytes: 6'd8};
      UD_SEND_ONLY_WITH_IMM:
        return '{supported: 1'b1, bytes: 6'd12};
      CNP:
        return '{supported: 1'b1, bytes: 6'd16};
      default:
        return '{supported: 1'b0, bytes: 6'd0};
    endcase
  endfunction
endpackage
