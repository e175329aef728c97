// SPDX-License-Identifier: Apache-2.0

// Reset of the domain of `clk` from an asynchronous one: begins at once, also while `clk` stands still, and ends synchronously, STAGES
// edges of `clk` after the last moment at which `arst` was high.
module cdc_reset #(
    parameter int unsigned STAGES = 3   // 2 or more
) (
    input  logic clk,
    input  logic arst,   // asynchronous, active high
    output logic rst     // synchronous in its end, active high
);
  if (STAGES < 2) begin : g_bad
    $fatal(1, "cdc_reset: STAGES must be 2 or more");
  end

  (* ASYNC_REG = "TRUE" *) logic [STAGES-1:0] stages_q = '1;

  always_ff @(posedge clk or posedge arst) begin
    if (arst) stages_q <= '1;
    else stages_q <= {stages_q[STAGES-2:0], 1'b0};
  end
  assign rst = stages_q[STAGES-1];
endmodule
