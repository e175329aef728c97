// SPDX-License-Identifier: Apache-2.0

// ecc_pkg, for any data and any two bits of the 72: none flipped, or one, gives the data back, and `corrected` says which; two are
// detected, and leave the data as it is.
module ecc_formal
  import ecc_pkg::*;
#(
    parameter bit REACH = 1'b0
) (
    input logic       clk,
    input word_t      data,
    input logic [6:0] first,
    input logic [6:0] second,
    input logic [1:0] flips
);
  typedef logic [WORD_W+CHECK_W-1:0] stored_t;

  stored_t  error, stored;
  decoded_t found;
  assign error  = (flips >= 2'd1 ? stored_t'(1) << first : '0) ^ (flips >= 2'd2 ? stored_t'(1) << second : '0);
  assign stored = {encode(data), data} ^ error;
  assign found  = decode(stored[WORD_W-1:0], syndrome(stored[WORD_W-1:0], stored[WORD_W+:CHECK_W]));

  always_ff @(posedge clk) begin
    assume (first < 7'(WORD_W + CHECK_W) && second < 7'(WORD_W + CHECK_W) && first != second);
    if (flips <= 2'd1) assert (found.data == data && !found.uncorrectable && found.corrected == (flips == 2'd1));
    else assert (found.uncorrectable && !found.corrected && found.data == stored[WORD_W-1:0]);
    if (REACH) assert (!(found.uncorrectable && data == '1));
  end
endmodule
