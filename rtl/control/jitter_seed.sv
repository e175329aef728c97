// SPDX-License-Identifier: Apache-2.0

// A random number from the jitter between two oscillators: `noise`, of a free-running one, and `clk`, of a crystal. At each rising edge of
// `noise` the low bits of a counter of `clk` are mixed into a CRC-32 (crc32_pkg), SAMPLES times; then `valid`, once after each reset. What is counted
// is the length of each period of `noise`, so a bias or a beat of the two frequencies does not matter, only that there is jitter:
// with a sixteenth of a bit in each sample, 2^14 samples have a thousand bits of entropy for the 32 that are wanted.
// It is no certified source of random numbers: it is for the seed of keys, where a board has nothing better.
module jitter_seed
  import crc32_pkg::*;
#(
    parameter int unsigned SAMPLES = 16384   // a power of two
) (
    input  logic        clk,
    input  logic        rst,
    input  logic        noise,    // asynchronous; below half of the frequency of `clk`
    output logic        valid,
    output logic [31:0] seed
);
  localparam int unsigned COUNT_W = $clog2(SAMPLES);
  logic               now, before_q;
  logic [7:0]         ticks_q;
  logic [COUNT_W:0]   left_q;
  crc32_t             state_q;
  assign valid = left_q == '0;
  assign seed  = state_q;

  cdc_bit meet (.clk, .in(noise), .out(now));

  always_ff @(posedge clk) begin
    before_q <= now;
    ticks_q  <= ticks_q + 1'b1;
    if (now && !before_q && !valid) begin
      state_q <= crc32_zero_byte(state_q ^ crc32_t'(ticks_q));
      left_q  <= left_q - 1'b1;
    end
    if (rst) begin
      ticks_q <= '0;
      left_q  <= (COUNT_W + 1)'(SAMPLES);
      state_q <= '1;
    end
  end
endmodule
