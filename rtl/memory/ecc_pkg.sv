// SPDX-License-Identifier: Apache-2.0

// The SECDED (72,64) code of M. Y. Hsiao (IBM J. Res. Dev. 14, 1970): corrects one flipped bit of a word of 64 data and 8 check
// bits, and detects two. The columns of its parity check matrix have odd weight: the 8 of weight 1 are the check bits, the data
// bits have the 56 of weight 3 and 8 of the 56 of weight 5, chosen so that each row has 26 ones and each check bit is the parity of
// 26 data bits. So one flipped bit gives a syndrome of odd weight, two give one of even weight that is not 0. Data of zeros has
// check bits of zeros.
package ecc_pkg;
  localparam int unsigned WORD_W = 64;
  localparam int unsigned CHECK_W = 8;

  typedef logic [WORD_W-1:0]  word_t;
  typedef logic [CHECK_W-1:0] check_t;

  // A beat of memory with the check bits above its data.
  function automatic int unsigned ecc_beat_w(int unsigned data_w);
    return data_w + data_w / WORD_W * CHECK_W;
  endfunction

  function automatic logic [WORD_W-1:0][CHECK_W-1:0] columns();
    logic [WORD_W-1:0][CHECK_W-1:0] column;
    int unsigned n;
    n = 0;
    for (int unsigned value = 0; value < 1 << CHECK_W; value++) begin
      if ($countones(CHECK_W'(value)) == 3) begin
        column[n] = CHECK_W'(value);
        n++;
      end
    end
    for (int unsigned turn = 0; turn < CHECK_W; turn++) column[n+turn] = CHECK_W'(16'h1f1f >> turn);
    return column;
  endfunction

  localparam logic [WORD_W-1:0][CHECK_W-1:0] COLUMN = columns();

  function automatic logic [CHECK_W-1:0][WORD_W-1:0] rows();
    logic [CHECK_W-1:0][WORD_W-1:0] row;
    for (int unsigned i = 0; i < WORD_W; i++) for (int unsigned k = 0; k < CHECK_W; k++) row[k][i] = COLUMN[i][k];
    return row;
  endfunction

  localparam logic [CHECK_W-1:0][WORD_W-1:0] ROW = rows();

  function automatic check_t encode(word_t data);
    check_t check;
    for (int unsigned k = 0; k < CHECK_W; k++) check[k] = ^(data & ROW[k]);
    return check;
  endfunction

  // 0: no bit is known to have flipped.
  function automatic check_t syndrome(word_t data, check_t check);
    return encode(data) ^ check;
  endfunction

  typedef struct packed {
    word_t data;
    logic  corrected;       // one bit had flipped, of the data or of the check bits
    logic  uncorrectable;   // more than one: the data is as it was stored
  } decoded_t;

  function automatic decoded_t decode(word_t data, check_t wrong);
    word_t flipped;
    logic  one;
    for (int unsigned i = 0; i < WORD_W; i++) flipped[i] = wrong == COLUMN[i];
    one = |flipped || $countones(wrong) == 1;
    return '{data: data ^ flipped, corrected: one, uncorrectable: wrong != '0 && !one};
  endfunction
endpackage
