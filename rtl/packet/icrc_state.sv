// SPDX-License-Identifier: Apache-2.0

// CRC state of the RoCEv2 ICRC (IBTA annex A17.3.3) over a frame given from its first Ethernet byte.
//
// The ICRC covers eight bytes of ones, then the packet from the IPv4 header on, with every field that may change on the way
// taken as ones. A CRC is linear, and leading zeros leave a state of zero as it is; so the 14 bytes of the Ethernet header
// are replaced by ten zeros and four bytes of ones and the state starts at zero: the same as eight bytes of ones after a start
// of all ones. Nothing has to be realigned, at any width.
//
// One beat a cycle, never stops. Bytes behind the frame's end come as zeros. `out_state` follows the beat marked last by 2 cycles;
// BACK of the bytes behind the end are taken back out (see crc32_stream).
module icrc_state
  import crc32_pkg::*;
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
  localparam int unsigned VARIANT_BYTES = 47;  // nothing is replaced behind the byte of BTH.fecn, becn and resv6a
  localparam int unsigned VARIANT_BEATS = (VARIANT_BYTES + BYTES - 1) / BYTES;

  typedef enum logic [1:0] {
    TAKEN,
    ZEROS,
    ONES
  } view_e;

  // What the ICRC sees in place of byte `i` of the frame.
  function automatic view_e view(int unsigned i);
    case (i) inside
      [0:9]:   return ZEROS;
      [10:13]: return ONES;
      15:      return ONES;  // IPv4 DSCP and ECN
      22:      return ONES;  // IPv4 TTL
      [24:25]: return ONES;  // IPv4 header checksum
      [40:41]: return ONES;  // UDP checksum
      46:      return ONES;  // BTH FECN, BECN and reserved
      default: return TAKEN;
    endcase
  endfunction

  // Beats of this frame that went by, up to VARIANT_BEATS.
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
