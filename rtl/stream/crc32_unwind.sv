// SPDX-License-Identifier: Apache-2.0

// Takes up to 2^COUNT_W - 1 zero bytes back out of a CRC-32 state: multiplies by x^(-8 * zeros), two binary digits of `zeros`
// a stage. One state a cycle, never stops; latency ceil(COUNT_W / 2) cycles.
module crc32_unwind
  import crc32_pkg::*;
#(
    parameter int unsigned COUNT_W = 6
) (
    input  logic               clk,
    input  logic               rst,
    input  logic               in_valid,
    input  crc32_t             in_state,
    input  logic [COUNT_W-1:0] in_zeros,
    output logic               out_valid,
    output crc32_t             out_state
);
  localparam int unsigned STAGES = (COUNT_W + 1) / 2;

  typedef logic [31:0][31:0] matrix_t;

  // Row i: the bits of the state that make bit i of the state `bytes` zero bytes earlier.
  function automatic matrix_t undo_matrix(int unsigned bytes);
    matrix_t m;
    for (int unsigned j = 0; j < 32; j++) begin
      crc32_t column;
      column = crc32_t'(1) << j;
      for (int unsigned b = 0; b < bytes; b++) column = crc32_undo_zero_byte(column);
      for (int unsigned i = 0; i < 32; i++) m[i][j] = column[i];
    end
    return m;
  endfunction

  function automatic crc32_t multiply(matrix_t m, crc32_t s);
    crc32_t r;
    for (int unsigned i = 0; i < 32; i++) r[i] = ^(m[i] & s);
    return r;
  endfunction

  logic                valid[STAGES+1];
  crc32_t              state[STAGES+1];
  logic [2*STAGES-1:0] zeros[STAGES+1];

  assign valid[0] = in_valid;
  assign state[0] = in_state;
  assign zeros[0] = (2 * STAGES)'(in_zeros);

  for (genvar s = 0; s < STAGES; s++) begin : g_stage
    localparam matrix_t UNDO1 = undo_matrix(4 ** s);
    localparam matrix_t UNDO2 = undo_matrix(2 * 4 ** s);
    localparam matrix_t UNDO3 = undo_matrix(3 * 4 ** s);
    always_ff @(posedge clk) begin
      valid[s+1] <= valid[s] && !rst;
      if (valid[s]) begin
        zeros[s+1] <= zeros[s];
        unique case (zeros[s][2*s+:2])
          2'd0: state[s+1] <= state[s];
          2'd1: state[s+1] <= multiply(UNDO1, state[s]);
          2'd2: state[s+1] <= multiply(UNDO2, state[s]);
          2'd3: state[s+1] <= multiply(UNDO3, state[s]);
        endcase
      end
    end
  end

  assign out_valid = valid[STAGES];
  assign out_state = state[STAGES];
endmodule
