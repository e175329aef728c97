// SPDX-License-Identifier: Apache-2.0

// cdc_reset: in reset as long as `arst` is high and STAGES edges behind, and not longer; it falls on an edge only.
module cdc_reset_formal #(
    parameter bit REACH = 1'b0
) (
    input logic clk,
    input logic arst
);
  localparam int unsigned STAGES = 3;

  logic rst;
  cdc_reset #(.STAGES(STAGES)) dut (.clk, .arst, .rst);

  logic [1:0] quiet_q = '0;  // edges without arst, 3 at most

  always_ff @(posedge clk or posedge arst) begin
    if (arst) quiet_q <= '0;
    else if (quiet_q != 2'(STAGES)) quiet_q <= quiet_q + 1'b1;
  end

  always_ff @(posedge clk) begin
    if (arst) assert (rst);
    assert (rst == (arst || quiet_q != 2'(STAGES)));
    if (REACH) assert (rst);
  end
endmodule
