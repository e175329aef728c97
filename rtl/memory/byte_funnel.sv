// SPDX-License-Identifier: Apache-2.0

// Selects one beat out of two: byte i of `out` is byte i + amount of {high, low}. Combinational; DATA_W a power of two. Three steps of
// byte_select at 64 bytes, each for two bits of `amount`, the large steps first, because they pass on the fewest bytes. Where `amount` is a multiple of
// ALIGN = 4, one step less.
module byte_funnel #(
    parameter int unsigned DATA_W = 512,
    parameter int unsigned ALIGN  = 1                 // 1 or 4
) (
    input  logic [DATA_W-1:0]           low,
    input  logic [DATA_W-1:0]           high,
    input  logic [$clog2(DATA_W/8)-1:0] amount,   // bytes
    output logic [DATA_W-1:0]           out
);
  localparam int unsigned BYTES = DATA_W / 8;
  localparam int unsigned STEPS = ($clog2(BYTES) + 1) / 2;
  localparam int unsigned FIRST = $clog2(ALIGN) / 2;

  logic [2*STEPS-1:0] steps;
  assign steps = (2 * STEPS)'(amount);

  for (genvar k = STEPS - 1; k >= int'(FIRST); k--) begin : g_step
    localparam int unsigned STEP = 4 ** k;
    localparam int unsigned OUT = BYTES + STEP - ALIGN; // the smaller steps shift by up to STEP - ALIGN
    logic [OUT+3*STEP-1:0][7:0] from;
    logic [OUT-1:0][7:0]        to;
    if (k == STEPS - 1) begin : g_first
      assign from = ($bits(from))'({high, low});
    end else begin : g_next
      assign from = g_step[k+1].to;
    end
    byte_select #(.OUT_BYTES(OUT), .STEP(STEP)) select (.in(from), .amount(steps[2*k+:2]), .out(to));
  end
  assign out = g_step[FIRST].to;

  if (ALIGN > 1) begin : g_unused
    logic unused_ok;
    assign unused_ok = &{1'b0, amount[$clog2(ALIGN)-1:0]};
  end
endmodule
