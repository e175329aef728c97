// SPDX-License-Identifier: Apache-2.0

// An oscillator of the chip's own for jitter_seed, where the chip has none that logic can use: an odd number of inversions in a ring of cells that
// the fitter leaves as they are, and a divider behind it. With 15 cells of a tenth of a nanosecond or two the ring makes some hundred megahertz,
// DIVIDER_W bits of division some megahertz. The frequency does not matter, as long as it is below half of the clock's.
module ring_oscillator #(
    parameter int unsigned CELLS = 15,
    parameter int unsigned DIVIDER_W = 8
) (
    input  logic enable,
    output logic noise
);
  /* verilator lint_off UNOPTFLAT */
  wire [CELLS:0] ring;
  /* verilator lint_on UNOPTFLAT */
  assign ring[0] = !(ring[CELLS] && enable);
  for (genvar i = 0; i < CELLS; i++) begin : g_ring
    lcell stage (.in(ring[i]), .out(ring[i+1]));
  end

  slow_noise #(.DIVIDER_W(DIVIDER_W)) divider (.wild_clk(ring[CELLS]), .noise);
endmodule
