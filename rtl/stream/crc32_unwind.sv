// SPDX-License-Identifier: Apache-2.0

// Takes `in_count` times STEP zero bytes back out of a CRC-32 state: multiplies by x^(-8 * STEP * in_count), one binary digit of the
// count after the other, two a stage. One state a cycle, never stops; latency ceil(COUNT_W / 2) - 1 cycles: there is a register
// between two stages and none behind the last.
module crc32_unwind
  import crc32_pkg::*;
#(
    parameter int unsigned COUNT_W = 6,
    parameter int unsigned STEP = 1
) (
    input  logic               clk,
    input  logic               rst,
    input  logic               in_valid,
    input  crc32_t             in_state,
    input  logic [COUNT_W-1:0] in_count,
    output logic               out_valid,
    output crc32_t             out_state
);
  localparam int unsigned STAGES = (COUNT_W + 1) / 2;

  typedef logic [31:0][31:0] matrix_t;

  // Row i: the bits of the state that change bit i when `bytes` zero bytes are taken out.
  function automatic matrix_t undo_matrix(int unsigned bytes);
    matrix_t m;
    for (int unsigned j = 0; j < 32; j++) begin
      crc32_t column;
      column = crc32_t'(1) << j;
      for (int unsigned b = 0; b < bytes; b++) column = crc32_undo_zero_byte(column);
      column[j] = !column[j];
      for (int unsigned i = 0; i < 32; i++) m[i][j] = column[i];
    end
    return m;
  endfunction

  function automatic crc32_t multiply(matrix_t m, crc32_t s);
    crc32_t r;
    for (int unsigned i = 0; i < 32; i++) r[i] = ^(m[i] & s);
    return r;
  endfunction

  // Before each stage; the first is the input itself.
  logic                valid[STAGES];
  crc32_t              state[STAGES];
  logic [2*STAGES-1:0] count[STAGES];
  crc32_t              undone[STAGES];

  assign valid[0] = in_valid;
  assign state[0] = in_state;
  assign count[0] = (2 * STAGES)'(in_count);

  for (genvar s = 0; s < STAGES; s++) begin : g_stage
    localparam matrix_t UNDO1 = undo_matrix(STEP * 4 ** s);
    localparam matrix_t UNDO2 = undo_matrix(STEP * 2 * 4 ** s);
    crc32_t half;
    assign half      = state[s] ^ (multiply(UNDO1, state[s]) & {32{count[s][2*s]}});
    assign undone[s] = half ^ (multiply(UNDO2, half) & {32{count[s][2*s+1]}});
    if (s + 1 < STAGES) begin : g_register
      always_ff @(posedge clk) begin
        valid[s+1] <= valid[s] && !rst;
        state[s+1] <= undone[s];
        count[s+1] <= count[s];
      end
    end
  end

  assign out_valid = valid[STAGES-1];
  assign out_state = undone[STAGES-1];
endmodule
