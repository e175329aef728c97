// SPDX-License-Identifier: Apache-2.0

// CRC state of the RoCEv2 ICRC (IBTA annex A17.3.3) over a frame that starts with its first Ethernet byte.
//
// The ICRC covers eight bytes of ones, then the packet from the IPv4 header on, with every field that may change in transit replaced by
// ones. A CRC is linear, and leading zeros do not change a state of zero; so the 14 bytes of the Ethernet header are replaced by ten zeros
// and four bytes of ones and the state starts at zero: equivalent to eight bytes of ones after a start of all ones. No realignment is
// needed, at any width.
//
// The beats pass before the frame is classified, so the layout is fixed: no VLAN tag, IPv4 without options. packet_parser classifies no
// frame of another layout as RoCE, and none is sent.
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
    input  logic [DATA_W-1:0] in_data,
    output logic              out_valid,
    output crc32_t            out_state
);
  localparam int unsigned BYTES = DATA_W / 8;
  localparam int unsigned IPV4 = ETH_HDR_BYTES;
  localparam int unsigned UDP = IPV4 + IPV4_HDR_BYTES;
  localparam int unsigned BTH = UDP + UDP_HDR_BYTES;
  localparam int unsigned ONES_BEFORE = 4;            // of the eight bytes of ones; see above
  localparam int unsigned VARIANT_BYTES = BTH + 5;    // nothing is replaced after the byte of BTH.fecn, becn and resv6a
  localparam int unsigned VARIANT_BEATS = (VARIANT_BYTES + BYTES - 1) / BYTES;

  typedef enum logic [1:0] {
    TAKEN,
    ZEROS,
    ONES
  } view_e;

  // The value that the ICRC covers in place of byte `i` of the frame.
  function automatic view_e view(int unsigned i);
    case (i) inside
      [0:IPV4-ONES_BEFORE-1]:    return ZEROS;
      [IPV4-ONES_BEFORE:IPV4-1]: return ONES;
      IPV4 + 1:                  return ONES;  // DSCP and ECN
      IPV4 + 8:                  return ONES;  // TTL
      [IPV4+10:IPV4+11]:         return ONES;  // header checksum
      [UDP+6:UDP+7]:             return ONES;  // checksum
      BTH + 4:                   return ONES;  // FECN, BECN and reserved
      default:                   return TAKEN;
    endcase
  endfunction

  // Beats of this frame that have passed, up to VARIANT_BEATS.
  logic [$clog2(VARIANT_BEATS+1)-1:0] index_q;

  logic [DATA_W-1:0] seen;
  always_comb begin
    for (int unsigned lane = 0; lane < BYTES; lane++) begin
      seen[lane*8+:8] = in_data[lane*8+:8];
      for (int unsigned beat = 0; beat < VARIANT_BEATS; beat++)
        if (view(beat * BYTES + lane) != TAKEN && (beat == 0 ? in_first : !in_first && index_q == beat[$bits(index_q)-1:0]))
          seen[lane*8+:8] = {8{view(beat * BYTES + lane) == ONES}};
    end
  end

  always_ff @(posedge clk)
    if (in_valid) begin
      if (in_first) index_q <= 1;
      else if (index_q != VARIANT_BEATS[$bits(index_q)-1:0]) index_q <= index_q + 1'b1;
    end

  crc32_stream #(.DATA_W(DATA_W), .BACK(BACK)) crc (.clk, .rst, .in_valid, .in_first, .in_last, .in_data(seen), .out_valid, .out_state);
endmodule
