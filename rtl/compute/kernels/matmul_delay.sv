// SPDX-License-Identifier: Apache-2.0

// A value for the array's edge, CYCLES later (0: at once). Moves only with valid steps.
module matmul_delay #(
    parameter int unsigned CYCLES = 1
) (
    input  logic            clk,
    input  logic [CYCLES:0] valid,   // [0]: the step of `in` is; [i]: the one i cycles before was
    input  logic [31:0]     in,
    output logic [31:0]     out
);
  if (CYCLES == 0) begin : g_wire
    assign out = in;
    logic unused_ok;
    assign unused_ok = &{1'b0, clk, valid};
  end else begin : g_line
    logic [CYCLES-1:0][31:0] line_q;
    for (genvar i = 0; i < CYCLES; i++) begin : g_stage
      always_ff @(posedge clk) if (valid[i]) line_q[i] <= i == 0 ? in : line_q[i == 0 ? 0 : i - 1];
    end
    assign out = line_q[CYCLES-1];
    logic unused_ok;
    assign unused_ok = &{1'b0, valid[CYCLES]};
  end
endmodule
