// SPDX-License-Identifier: Apache-2.0

// Rotates the dwords of a beat: dword i of `out` is dword i + amount of `in`, modulo their number. Combinational: a step of byte_select for
// each two bits of `amount`.
module dword_rotate #(
    parameter int unsigned DATA_W = 512
) (
    input  logic [DATA_W-1:0]            in,
    input  logic [$clog2(DATA_W/32)-1:0] amount,
    output logic [DATA_W-1:0]            out
);
  localparam int unsigned BYTES = DATA_W / 8;
  localparam int unsigned STEPS = ($clog2(DATA_W / 32) + 1) / 2;

  logic [2*STEPS-1:0] amounts;
  assign amounts = (2 * STEPS)'(amount);
  for (genvar k = 0; k < STEPS; k++) begin : g_step
    localparam int unsigned STEP = 4 * 4 ** k;
    logic [3*DATA_W-1:0] around;           // more than once, so that its end meets its beginning
    logic [DATA_W-1:0]   from, to;
    if (k == 0) begin : g_first
      assign from = in;
    end else begin : g_next
      assign from = g_step[k-1].to;
    end
    assign around = {3{from}};
    byte_select #(.OUT_BYTES(BYTES), .STEP(STEP)) select (.in(around[8*(BYTES+3*STEP)-1:0]), .amount(amounts[2*k+:2]), .out(to));
  end
  assign out = g_step[STEPS-1].to;
endmodule
