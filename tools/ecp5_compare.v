// SPDX-License-Identifier: Apache-2.0

// A rule for yosys' techmap: comparisons of unsigned numbers with a constant become LUTs. A carry chain takes one for each bit, whatever the constant
// is, and more to begin and to end; a LUT4 takes three bits and what came of the lower ones. (-cmp2softlogic of yosys 0.70 is to do this, but makes
// 7 <= x of 7 < x.)
(* techmap_celltype = "$lt $le $gt $ge" *)
module compare_with_constant (A, B, Y);
  parameter A_WIDTH = 0;
  parameter B_WIDTH = 0;
  parameter Y_WIDTH = 0;
  parameter A_SIGNED = 0;
  parameter B_SIGNED = 0;
  parameter _TECHMAP_CELLTYPE_ = "";
  parameter _TECHMAP_CONSTMSK_A_ = 0;
  parameter _TECHMAP_CONSTVAL_A_ = 0;
  parameter _TECHMAP_CONSTMSK_B_ = 0;
  parameter _TECHMAP_CONSTVAL_B_ = 0;

  (* force_downto *)
  input [A_WIDTH-1:0] A;
  (* force_downto *)
  input [B_WIDTH-1:0] B;
  (* force_downto *)
  output [Y_WIDTH-1:0] Y;

  localparam WIDTH = A_WIDTH > B_WIDTH ? A_WIDTH : B_WIDTH;
  localparam A_CONSTANT = &_TECHMAP_CONSTMSK_A_;
  localparam B_CONSTANT = &_TECHMAP_CONSTMSK_B_;
  wire _TECHMAP_FAIL_ = A_SIGNED || B_SIGNED || Y_WIDTH != 1 || A_CONSTANT == B_CONSTANT;
  wire [1023:0] _TECHMAP_DO_ = "opt -fast";

  // Is x greater than the constant, or equal to it, judged by the bits so far, from the lowest one on?
  localparam TURNED = A_CONSTANT;    // c < x is x > c
  localparam LESS = _TECHMAP_CELLTYPE_ == "$lt" || _TECHMAP_CELLTYPE_ == "$le";
  localparam STRICT = _TECHMAP_CELLTYPE_ == "$lt" || _TECHMAP_CELLTYPE_ == "$gt";
  localparam GREATER = LESS == TURNED;               // x > c or x >= c is asked; else x < c or x <= c, which are the inverse of x >= c and x > c
  localparam OR_EQUAL = STRICT != GREATER;
  wire [WIDTH-1:0] a = A;
  wire [WIDTH-1:0] b = B;
  wire [WIDTH-1:0] x = A_CONSTANT ? b : a;
  wire [WIDTH-1:0] c = A_CONSTANT ? a : b;
  wire [WIDTH:0] greater;
  assign greater[0] = OR_EQUAL;
  genvar i;
  generate
    for (i = 0; i < WIDTH; i = i + 1) begin : g_bit
      assign greater[i+1] = c[i] ? x[i] && greater[i] : x[i] || greater[i];
    end
  endgenerate
  assign Y = greater[WIDTH] == GREATER;
endmodule
