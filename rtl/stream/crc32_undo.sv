// SPDX-License-Identifier: Apache-2.0

// Takes BYTES zero bytes back out of a CRC-32 state, or none: one matrix over GF(2) for crc32_unwind. Combinational.
//
// A module of its own that mapping leaves in one piece: mapped together with its neighbours, its sums share terms with theirs, which makes
// them deeper than two of them one after the other.
(* keep_hierarchy *)
module crc32_undo
  import crc32_pkg::*;
#(
    parameter int unsigned BYTES = 1
) (
    input  crc32_t state,
    input  logic   enable,
    output crc32_t undone
);
  typedef logic [31:0][31:0] matrix_t;

  // Row i: the bits of the state that change bit i.
  function automatic matrix_t undo_matrix();
    matrix_t m;
    for (int unsigned j = 0; j < 32; j++) begin
      crc32_t column;
      column = crc32_t'(1) << j;
      for (int unsigned b = 0; b < BYTES; b++) column = crc32_undo_zero_byte(column);
      column[j] = !column[j];
      for (int unsigned i = 0; i < 32; i++) m[i][j] = column[i];
    end
    return m;
  endfunction

  localparam matrix_t MATRIX = undo_matrix();
  for (genvar i = 0; i < 32; i++) begin : g_row
    assign undone[i] = state[i] ^ (^(MATRIX[i] & state) & enable);
  end
endmodule
