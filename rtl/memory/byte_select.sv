// SPDX-License-Identifier: Apache-2.0

// One step of a byte shifter: byte i of `out` is byte i + amount * STEP of `in`. Combinational; `in` has OUT_BYTES + 3 * STEP bytes. One
// 4:1 multiplexer per bit, one LUT with six inputs. The hierarchy is kept in synthesis: mapped as a whole, a shifter takes more LUTs.
(* keep_hierarchy *)
module byte_select #(
    parameter int unsigned OUT_BYTES = 64,
    parameter int unsigned STEP      = 1
) (
    input  logic [OUT_BYTES+3*STEP-1:0][7:0] in,
    input  logic [1:0]                       amount,
    output logic [OUT_BYTES-1:0][7:0]        out
);
  always_comb begin
    unique case (amount)
      2'd0: out = in[0*STEP+:OUT_BYTES];
      2'd1: out = in[1*STEP+:OUT_BYTES];
      2'd2: out = in[2*STEP+:OUT_BYTES];
      2'd3: out = in[3*STEP+:OUT_BYTES];
    endcase
  end
endmodule
