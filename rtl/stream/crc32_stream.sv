// SPDX-License-Identifier: Apache-2.0

// CRC-32 over packets of whole beats. `state` starts at zero; a start of all ones equals four bytes of ones put before the
// message's first four. Bytes behind a packet's end come as zeros and count as such: crc32_unwind takes them back out, or a
// check compares with the residue that is as many zero bytes further.
// One beat a cycle, never stops. `out_state` follows the packet's last beat by 2 cycles.
module crc32_stream
  import crc32_pkg::*;
#(
    parameter int unsigned DATA_W = 512  // a multiple of 64
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
  localparam int unsigned CHUNK_W = 64;
  localparam int unsigned CHUNKS = DATA_W / CHUNK_W;

  typedef logic [31:0][DATA_W-1:0] matrix_t;

  // Row i: the bits of a beat that make bit i of the state behind it.
  function automatic matrix_t beat_matrix();
    matrix_t m;
    for (int unsigned bit_ = 0; bit_ < 8; bit_++) begin
      crc32_t column;
      column = crc32_t'(1) << bit_;
      for (int unsigned lane = BYTES; lane > 0; lane--) begin
        column = crc32_zero_byte(column);
        for (int unsigned i = 0; i < 32; i++) m[i][(lane-1)*8+bit_] = column[i];
      end
    end
    return m;
  endfunction

  localparam matrix_t BEAT = beat_matrix();

  logic   valid_q, first_q, last_q, out_valid_q;
  crc32_t partial_q[CHUNKS];
  crc32_t state_q;

  // First the beat alone, in chunks; then the chunks together with the state, which enters like the beat's first 32 bits.
  crc32_t next;
  always_comb begin
    next = '0;
    for (int unsigned c = 0; c < CHUNKS; c++) next ^= partial_q[c];
    if (!first_q) for (int unsigned i = 0; i < 32; i++) next[i] ^= ^(state_q & BEAT[i][31:0]);
  end

  always_ff @(posedge clk) begin
    valid_q     <= in_valid && !rst;
    out_valid_q <= valid_q && last_q && !rst;
    if (in_valid) begin
      first_q <= in_first;
      last_q  <= in_last;
      for (int unsigned c = 0; c < CHUNKS; c++)
        for (int unsigned i = 0; i < 32; i++)
          partial_q[c][i] <= ^(in_data[c*CHUNK_W+:CHUNK_W] & BEAT[i][c*CHUNK_W+:CHUNK_W]);
    end
    if (valid_q) state_q <= next;
  end

  assign out_valid = out_valid_q;
  assign out_state = state_q;
endmodule
