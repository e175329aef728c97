// SPDX-License-Identifier: Apache-2.0

// Divides an oscillator of the chip's own, which nothing resets, by 2^DIVIDER_W: for jitter_seed, which wants less than half of the frequency of its clock.
module slow_noise #(
    parameter int unsigned DIVIDER_W = 4
) (
    input  logic wild_clk,
    output logic noise
);
  logic [DIVIDER_W-1:0] divider_q = '0;
  always_ff @(posedge wild_clk) divider_q <= divider_q + 1'b1;
  assign noise = divider_q[DIVIDER_W-1];
endmodule
