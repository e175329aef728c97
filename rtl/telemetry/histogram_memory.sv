// SPDX-License-Identifier: Apache-2.0

// Histograms in block RAM, and the sum of what is in each: one sample a cycle; one of the same socket and histogram as that in the cycle
// before waits for a cycle, so that nothing need be forwarded. Bins count modulo 2^32, sums modulo 2^SUM_W.
//
// A sample is there 3 cycles after it was taken. `read` looks at a bin and at a sum in place of a sample, which waits for this cycle.
// After reset and after `clear` all is set to 0, which takes one cycle for each bin; samples that come meanwhile are taken and discarded.
module histogram_memory
  import histogram_pkg::*;
(
    input  logic    clk,
    input  logic    rst,
    stream_if.sink  sample,      // sample_t
    input  logic    clear,       // pulse
    output logic    clearing,
    input  logic    read,
    input  bin_t    read_bin,
    input  histogram_e read_sum, // of the socket of `read_bin`
    output logic [31:0] count,   // a cycle after `read`, for this cycle
    output sum_t    sum,         // likewise
    output logic    idle         // all that was taken is there
);
  typedef struct packed {
    histogram_e histogram;
    socket_t    socket;
  } sum_at_t;

  // A sample goes through three stages: where it belongs, what is there, what is there then. While all is cleared, what is read is 0 from the
  // second cycle on, and 0 is added to it: bin 0 is written twice.
  sample_t taken;
  assign taken = sample.data;
  logic    placed_q, added_q, cleared_q;
  bin_t    bin_q, added_bin_q, clear_q;
  sum_at_t sum_at_q, added_sum_q;
  time_t   value_q, added_value_q;
  logic [31:0] count_q;
  sum_t        sum_q;

  wire same = added_q && sum_at_q == added_sum_q;
  wire looks = placed_q && !read && !same;   // or is discarded
  assign sample.ready = !placed_q || looks || clearing;
  assign count = count_q;
  assign sum   = sum_q;
  assign idle  = !placed_q && !added_q && !clearing;

  wire bin_t write_bin = clearing ? clear_q : added_bin_q;
  wire sum_at_t write_sum = clearing ? sum_at_t'(clear_q) : added_sum_q;
  wire bin_t look_bin = read ? read_bin : bin_q;
  wire sum_at_t look_sum = read ? '{histogram: read_sum, socket: read_bin.socket} : sum_at_q;

  (* ram_style = "block" *) logic [31:0] counts[2**$bits(bin_t)];
  always_ff @(posedge clk) if (added_q || clearing) counts[write_bin] <= count_q + 32'(added_q);
  always_ff @(posedge clk) count_q <= clearing ? '0 : counts[look_bin];
  (* ram_style = "block" *) sum_t sums[2**$bits(sum_at_t)];
  always_ff @(posedge clk) if (added_q || clearing) sums[write_sum] <= sum_q + sum_t'(added_value_q);
  always_ff @(posedge clk) sum_q <= clearing ? '0 : sums[look_sum];

  always_ff @(posedge clk) begin
    if (sample.ready) begin
      placed_q <= sample.valid;
      bin_q    <= bin_of(taken);
      sum_at_q <= '{histogram: taken.histogram, socket: taken.socket};
      value_q  <= taken.value;
    end
    added_q       <= looks && !clearing;
    added_bin_q   <= bin_q;
    added_sum_q   <= sum_at_q;
    added_value_q <= looks && !clearing ? value_q : '0;
    cleared_q     <= clearing;
    clear_q       <= clearing && cleared_q ? clear_q + 1'b1 : '0;
    if (clear) clearing <= 1'b1;
    else if (&clear_q) clearing <= 1'b0;
    if (rst) begin
      placed_q <= 1'b0;
      added_q  <= 1'b0;
      clear_q  <= '0;
      cleared_q <= 1'b0;
      clearing <= 1'b1;
    end
  end
endmodule
