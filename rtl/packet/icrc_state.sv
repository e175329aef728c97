// SPDX-License-Identifier: Apache-2.0

// CRC state of the RoCEv2 ICRC (IBTA annex A17.3.3) over a frame that starts with its first Ethernet byte.
//
// The ICRC covers eight bytes of ones, then the packet from the IP header on, with every field that may change in transit replaced by
// ones. A CRC is linear, and leading zeros do not change a state of zero; so the 14 bytes of the Ethernet header are replaced by ten zeros
// and four bytes of ones and the state starts at zero: equivalent to eight bytes of ones after a start of all ones. No realignment is
// needed, at any width.
//
// The beats pass before the frame is classified, so there are two layouts: no VLAN tag, and IPv4 without options or IPv6 without extension
// headers. packet_parser classifies no frame of another layout as RoCE, and none is sent.
//
// One beat a cycle, never stalls. Bytes after the frame's end must be zeros. `out_state` follows the beat marked last by 2 cycles; BACK of
// the bytes after the end are removed from the state (see crc32_stream).
module icrc_state
  import crc32_pkg::*;
  import packet_pkg::*;
#(
    parameter int unsigned DATA_W = 512,
    parameter int unsigned BACK = 0
) (
    input  logic              clk,
    input  logic              rst,
    input  logic              in_valid,
    input  logic              in_first,
    input  logic              in_last,
    input  logic              in_v6,    // from the beat with the EtherType on: IPv6
    input  logic [DATA_W-1:0] in_data,
    output logic              out_valid,
    output crc32_t            out_state
);
  localparam int unsigned BYTES = DATA_W / 8;
  localparam int unsigned IP = ETH_HDR_BYTES;
  localparam int unsigned ONES_BEFORE = 4;            // of the eight bytes of ones; see above
  localparam int unsigned BTH_VARIANT = 4;            // the byte of FECN, BECN and resv6a: nothing is replaced after it
  localparam int unsigned VARIANT_BYTES = IP + IPV6_HDR_BYTES + UDP_HDR_BYTES + BTH_VARIANT + 1;
  localparam int unsigned VARIANT_BEATS = (VARIANT_BYTES + BYTES - 1) / BYTES;

  // The bits of byte `i` of the frame that the ICRC covers as ones.
  function automatic logic [7:0] ones(int unsigned i, logic v6);
    int unsigned udp = IP + (v6 ? IPV6_HDR_BYTES : IPV4_HDR_BYTES);
    if (i inside {[IP - ONES_BEFORE : IP - 1]}) return '1;
    if (v6 ? i inside {[IP + 1 : IP + 3], IP + 7} : i inside {IP + 1, IP + 8, IP + 10, IP + 11}) return '1;
    if (v6 && i == IP) return 8'h0f;                // IPv6: traffic class, flow label, hop limit. IPv4: DSCP and ECN, TTL, checksum
    return i == udp + 6 || i == udp + 7 || i == udp + UDP_HDR_BYTES + BTH_VARIANT ? '1 : '0;  // UDP checksum; BTH
  endfunction

  // Beats of this frame that have passed, up to VARIANT_BEATS.
  logic [$clog2(VARIANT_BEATS+1)-1:0] index_q;

  logic [DATA_W-1:0] seen;
  always_comb begin
    for (int unsigned lane = 0; lane < BYTES; lane++) begin
      seen[lane*8+:8] = in_data[lane*8+:8];
      for (int unsigned beat = 0; beat < VARIANT_BEATS; beat++)
        if (beat == 0 ? in_first : !in_first && index_q == beat[$bits(index_q)-1:0]) begin
          if (beat * BYTES + lane < IP - ONES_BEFORE) seen[lane*8+:8] = '0;
          seen[lane*8+:8] |= in_v6 ? ones(beat * BYTES + lane, 1'b1) : ones(beat * BYTES + lane, 1'b0);
        end
    end
  end

  always_ff @(posedge clk)
    if (in_valid) begin
      if (in_first) index_q <= 1;
      else if (index_q != VARIANT_BEATS[$bits(index_q)-1:0]) index_q <= index_q + 1'b1;
    end

  crc32_stream #(.DATA_W(DATA_W), .BACK(BACK)) crc (.clk, .rst, .in_valid, .in_first, .in_last, .in_data(seen), .out_valid, .out_state);
endmodule
