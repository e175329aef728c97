// SPDX-License-Identifier: Apache-2.0

// CRC-32 over packets of whole beats. `state` starts at zero; a start of all ones equals four bytes of ones put before the
// message's first four. Bytes behind a packet's end come as zeros and count as such: crc32_unwind takes them back out, or a
// check compares with the residue that is as many zero bytes further. BACK bytes are taken back out for nothing.
// One beat a cycle, never stops. `out_state` follows the packet's last beat by 2 cycles.
//
// The beat's matrix is built by the method of the four Russians (Arlazarov, Dinic, Kronrod, Faradzev 1970): its 32 rows in groups of
// five or six; within a group every bit of the beat enters one sum, that of the bits which the same rows take, and each row is made of
// the sums that it takes. This needs less than half of what 32 separate rows need.
module crc32_stream
  import crc32_pkg::*;
#(
    parameter int unsigned DATA_W = 512,
    parameter int unsigned BACK = 0      // zero bytes behind each packet's end that do not count
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
  localparam int unsigned GROUPS = 6;

  typedef logic [DATA_W-1:0][31:0] matrix_t;  // column j: what bit j of a beat adds to the state behind it

  function automatic matrix_t beat_matrix();
    matrix_t m;
    for (int unsigned bit_ = 0; bit_ < 8; bit_++) begin
      crc32_t column;
      column = crc32_t'(1) << bit_;
      for (int unsigned b = BACK; b > 0; b--) column = crc32_undo_zero_byte(column);
      for (int unsigned lane = BYTES; lane > 0; lane--) begin
        column = crc32_zero_byte(column);
        m[(lane-1)*8+bit_] = column;
      end
    end
    return m;
  endfunction

  // Row i: the bits of a state that make bit i of the state one beat later.
  function automatic logic [31:0][31:0] state_matrix();
    logic [31:0][31:0] m;
    for (int unsigned j = 0; j < 32; j++) begin
      crc32_t column;
      column = crc32_t'(1) << j;
      for (int unsigned b = 0; b < BYTES; b++) column = crc32_zero_byte(column);
      for (int unsigned i = 0; i < 32; i++) m[i][j] = column[i];
    end
    return m;
  endfunction

  localparam matrix_t BEAT = beat_matrix();
  localparam logic [31:0][31:0] STATE = state_matrix();

  // The first row of group g: 32 rows in groups of five or six.
  function automatic int unsigned first_row(int unsigned g);
    return g * 32 / GROUPS;
  endfunction

  // Which bits of a beat are in which sum of a group: by the rows of the group that take it.
  typedef logic [63:0][DATA_W-1:0] members_t;
  function automatic members_t members(int unsigned row, int unsigned rows);
    members_t m;
    for (int unsigned s = 0; s < 64; s++) m[s] = '0;
    for (int unsigned j = 0; j < DATA_W; j++) m[6'((32'(BEAT[j]) >> row) & ((1 << rows) - 1))][j] = 1'b1;
    return m;
  endfunction

  logic   valid_q, first_q, last_q, out_valid_q;
  crc32_t state_q, beat;

  for (genvar g = 0; g < GROUPS; g++) begin : g_group
    localparam int unsigned ROW = first_row(g);
    localparam int unsigned ROWS = first_row(g + 1) - ROW;

    localparam members_t MEMBERS = members(ROW, ROWS);

    logic [2**ROWS-1:1] sum_q;  // by the rows that take it
    always_ff @(posedge clk)
      if (in_valid) for (int unsigned s = 1; s < 2 ** ROWS; s++) sum_q[s] <= ^(in_data & MEMBERS[s]);

    always_comb
      for (int unsigned i = 0; i < ROWS; i++) begin
        beat[ROW+i] = 1'b0;
        for (int unsigned s = 1; s < 2 ** ROWS; s++) if (s[i]) beat[ROW+i] ^= sum_q[s];
      end
  end

  crc32_t carried;
  always_comb for (int unsigned i = 0; i < 32; i++) carried[i] = ^(state_q & STATE[i]) && !first_q;

  always_ff @(posedge clk) begin
    valid_q     <= in_valid && !rst;
    out_valid_q <= valid_q && last_q && !rst;
    if (in_valid) begin
      first_q <= in_first;
      last_q  <= in_last;
    end
    if (valid_q) state_q <= beat ^ carried;
  end

  assign out_valid = out_valid_q;
  assign out_state = state_q;
endmodule
