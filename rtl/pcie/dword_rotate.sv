// SPDX-License-Identifier: Apache-2.0

// Rotates the dwords of a beat: dword i of `out` is dword i + amount of `in`, modulo their number. Combinational; a 4:1 multiplexer per bit for each two bits
// of `amount`.
module dword_rotate #(
    parameter int unsigned DATA_W = 512
) (
    input  logic [DATA_W-1:0]            in,
    input  logic [$clog2(DATA_W/32)-1:0] amount,
    output logic [DATA_W-1:0]            out
);
  localparam int unsigned DWORDS = DATA_W / 32;
  localparam int unsigned AMOUNT_W = $clog2(DWORDS);
  localparam int unsigned STEPS = (AMOUNT_W + 1) / 2;
  typedef logic [DWORDS-1:0][31:0] dwords_t;

  logic [2*STEPS-1:0] amounts;
  assign amounts = (2 * STEPS)'(amount);
  for (genvar k = 0; k < STEPS; k++) begin : g_step
    localparam int unsigned STEP = 4 ** k;
    dwords_t from, to;
    if (k == 0) begin : g_first
      assign from = in;
    end else begin : g_next
      assign from = g_step[k-1].to;
    end
    for (genvar i = 0; i < DWORDS; i++) begin : g_dword
      always_comb begin
        unique case (amounts[2*k+:2])
          2'd0: to[i] = from[i];
          2'd1: to[i] = from[(i+STEP)%DWORDS];
          2'd2: to[i] = from[(i+2*STEP)%DWORDS];
          2'd3: to[i] = from[(i+3*STEP)%DWORDS];
        endcase
      end
    end
  end
  assign out = g_step[STEPS-1].to;
endmodule
