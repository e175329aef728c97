// SPDX-License-Identifier: Apache-2.0

// A value for the array's edge, CYCLES later (0: at once). Moves only with valid steps.
module matmul_delay
  import matmul_pkg::*;
#(
    parameter int unsigned CYCLES = 1
) (
    input  logic             clk,
    input  step_t [CYCLES:0] step,   // the step of `in`, and those before it
    input  logic [31:0]      in,
    output logic [31:0]      out
);
  if (CYCLES == 0) begin : g_wire
    assign out = in;
  end else begin : g_line
    logic [CYCLES-1:0][31:0] line_q;
    for (genvar i = 0; i < CYCLES; i++) begin : g_stage
      always_ff @(posedge clk) if (step[i].valid) line_q[i] <= i == 0 ? in : line_q[i == 0 ? 0 : i - 1];
    end
    assign out = line_q[CYCLES-1];
  end
endmodule
