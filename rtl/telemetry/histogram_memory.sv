// SPDX-License-Identifier: Apache-2.0

// Histograms in block RAM, and the sum of what is in each: one sample a cycle, also several of one bin in a row. Bins count modulo 2^32,
// sums modulo 2^SUM_W.
//
// A sample is there 2 cycles after it was taken. `read` looks at a bin and at a sum in place of a sample, and stops `sample` in this cycle.
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
    output sum_t    sum          // likewise
);
  typedef struct packed {
    histogram_e histogram;
    socket_t    socket;
  } sum_at_t;

  sample_t taken;
  assign taken = sample.data;
  wire takes = sample.valid && sample.ready && !clearing;
  wire bin_t bin = bin_of(taken);
  wire sum_at_t sum_at = '{histogram: taken.histogram, socket: taken.socket};
  assign sample.ready = !read;

  // ---- the memories: what is read is added to in the next cycle ----
  logic [31:0] counts_q, count_q;
  sum_t        sums_q, sum_q;
  bin_t        bin_q, clear_q;
  sum_at_t     sum_at_q;
  time_t       value_q;
  logic        add_q, same_bin_q, same_sum_q;   // what is read was added to in the cycle of reading
  wire [31:0] count_new = (same_bin_q ? count_q : counts_q) + 1'b1;
  wire sum_t sum_new = (same_sum_q ? sum_q : sums_q) + sum_t'(value_q);
  assign count = counts_q;
  assign sum   = sums_q;

  wire writes = add_q || clearing;
  wire bin_t write_bin = clearing ? clear_q : bin_q;
  wire bin_t look_bin = read ? read_bin : bin;
  wire sum_at_t write_sum = clearing ? sum_at_t'(clear_q) : sum_at_q;
  wire sum_at_t look_sum = read ? '{histogram: read_sum, socket: read_bin.socket} : sum_at;

  (* ram_style = "block" *) logic [31:0] counts[2**$bits(bin_t)];
  always_ff @(posedge clk) if (writes) counts[write_bin] <= clearing ? '0 : count_new;
  always_ff @(posedge clk) counts_q <= counts[look_bin];
  (* ram_style = "block" *) sum_t sums[2**$bits(sum_at_t)];
  always_ff @(posedge clk) if (writes) sums[write_sum] <= clearing ? '0 : sum_new;
  always_ff @(posedge clk) sums_q <= sums[look_sum];

  always_ff @(posedge clk) begin
    bin_q      <= bin;
    sum_at_q   <= sum_at;
    value_q    <= taken.value;
    count_q    <= count_new;
    sum_q      <= sum_new;
    add_q      <= takes;
    same_bin_q <= add_q && bin_q == bin;
    same_sum_q <= add_q && sum_at_q == sum_at;
    clear_q    <= clearing ? clear_q + 1'b1 : '0;
    if (clear) clearing <= 1'b1;
    else if (&clear_q) clearing <= 1'b0;
    if (rst) begin
      add_q    <= 1'b0;
      clear_q  <= '0;
      clearing <= 1'b1;
    end
  end
endmodule
