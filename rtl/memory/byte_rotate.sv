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

  for (genvar k = 0; k < STEPS; k++) begin : g_step
    localparam int unsigned BITS = 8 << k;
    logic [DATA_W-1:0] from, to;
    if (k == 0) begin : g_first
      assign from = in;
    end else begin : g_next
      assign from = g_step[k-1].to;
    end
    assign to = amount[k] ? {from[DATA_W-1-BITS:0], from[DATA_W-1-:BITS]} : from;
  end
  assign out = g_step[STEPS-1].to;
endmodule
