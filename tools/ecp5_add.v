// SPDX-License-Identifier: Apache-2.0

// A rule for yosys' techmap: short adders and counters become LUTs. A carry chain takes a cell for each two bits and one more at each end, and what is
// behind it, a multiplexer or a reset, takes LUTs of its own; in LUTs both are one. Longer ones are left to the chain, which is smaller and faster then.
(* techmap_celltype = "$alu" *)
module short_adder (A, B, CI, BI, X, Y, CO);
  parameter A_SIGNED = 0;
  parameter B_SIGNED = 0;
  parameter A_WIDTH = 1;
  parameter B_WIDTH = 1;
  parameter Y_WIDTH = 1;
  parameter _TECHMAP_CONSTMSK_A_ = 0;
  parameter _TECHMAP_CONSTMSK_B_ = 0;

  (* force_downto *)
  input [A_WIDTH-1:0] A;
  (* force_downto *)
  input [B_WIDTH-1:0] B;
  (* force_downto *)
  output [Y_WIDTH-1:0] X, Y;
  input CI, BI;
  (* force_downto *)
  output [Y_WIDTH-1:0] CO;

  localparam COUNTS = &_TECHMAP_CONSTMSK_A_ || &_TECHMAP_CONSTMSK_B_ || A_WIDTH == 1 || B_WIDTH == 1;
  wire _TECHMAP_FAIL_ = Y_WIDTH > (COUNTS ? 10 : 6);

  (* force_downto *)
  wire [Y_WIDTH-1:0] a, given;
  \$pos #(.A_SIGNED(A_SIGNED), .A_WIDTH(A_WIDTH), .Y_WIDTH(Y_WIDTH)) widen_a (.A(A), .Y(a));
  \$pos #(.A_SIGNED(B_SIGNED), .A_WIDTH(B_WIDTH), .Y_WIDTH(Y_WIDTH)) widen_b (.A(B), .Y(given));
  wire [Y_WIDTH-1:0] b = BI ? ~given : given;
  wire [Y_WIDTH:0] carry;
  assign carry[0] = CI;
  genvar i;
  generate
    for (i = 0; i < Y_WIDTH; i = i + 1) begin : g_bit
      assign carry[i+1] = (a[i] && b[i]) || (carry[i] && (a[i] || b[i]));
    end
  endgenerate
  assign CO = carry[Y_WIDTH:1];
  assign X  = a ^ b;
  assign Y  = a ^ b ^ carry[Y_WIDTH-1:0];
endmodule
