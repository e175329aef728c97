// SPDX-License-Identifier: Apache-2.0

// CRC-32 (IEEE 802.3, 3.2.9), bit-reflected as it goes over the wire: bit 0 of a byte first. Everything here is linear over
// GF(2) and meant for constants: matrices come from these functions at elaboration.
package crc32_pkg;
  typedef logic [31:0] crc32_t;

  localparam crc32_t CRC32_POLY = 32'hedb8_8320;

  // State (started at all ones) after a message and its own CRC: the same for every message.
  localparam crc32_t CRC32_RESIDUE = 32'hdebb_20e3;

  // The state after one more byte, which is zero.
  function automatic crc32_t crc32_zero_byte(crc32_t state);
    crc32_t s;
    s = state;
    for (int unsigned i = 0; i < 8; i++) s = s[0] ? (s >> 1) ^ CRC32_POLY : s >> 1;
    return s;
  endfunction

  // The state before the last byte, which was zero: undoes crc32_zero_byte.
  function automatic crc32_t crc32_undo_zero_byte(crc32_t state);
    crc32_t s;
    s = state;
    for (int unsigned i = 0; i < 8; i++) s = s[31] ? ((s ^ CRC32_POLY) << 1) | 32'd1 : s << 1;
    return s;
  endfunction
endpackage
