// SPDX-License-Identifier: Apache-2.0

// Rotates a beat towards its high end: byte i goes to byte (i + amount) mod (DATA_W / 8). Combinational; DATA_W a power of two.
module byte_rotate #(
    parameter int unsigned DATA_W = 512
) (
    input  logic [DATA_W-1:0]            in,
    input  logic [$clog2(DATA_W/8)-1:0]  amount,   // bytes
    output logic [DATA_W-1:0]            out
);
  localparam int unsigned STEPS = $clog2(DATA_W / 8);

  always_comb begin
    out = in;
    for (int unsigned k = 0; k < STEPS; k++) begin
      if (amount[k]) out = (out << (8 << k)) | (out >> (DATA_W - (8 << k)));
    end
  end
endmodule
