// SPDX-License-Identifier: Apache-2.0

// FIFO between two clocks of any phase and frequency: what goes in comes out, in order. The pointers cross in Gray code, one bit of
// which changes at a time, through cdc_bit (C. Cummings, "Simulation and Synthesis Techniques for Asynchronous FIFO Design", 2002).
//
// One value a cycle on each side. Latency: 1 cycle of `in_clk`, then 3 to 4 of `out_clk`. Holds DEPTH values; when `out` stops it fills
// up, then stops `in`. A DEPTH of 8 or more keeps the rate of the slower clock.
// Reset both sides together, for 4 cycles of the slower clock or more (each with cdc_reset from one source): what is inside is lost.
module cdc_fifo #(
    parameter type T = logic,
    parameter int unsigned DEPTH = 16   // a power of two, 4 or more
) (
    input  logic     in_clk,
    input  logic     in_rst,
    stream_if.sink   in,
    input  logic     out_clk,
    input  logic     out_rst,
    stream_if.source out
);
  localparam int unsigned PTR_W = $clog2(DEPTH);
  typedef logic [PTR_W:0] ptr_t;        // one bit more than the address tells full from empty

  if (DEPTH < 4 || 2 ** PTR_W != DEPTH) begin : g_bad
    $fatal(1, "cdc_fifo: DEPTH must be a power of two, 4 or more");
  end

  function automatic ptr_t gray(ptr_t count);
    return count ^ (count >> 1);
  endfunction

  (* ram_style = "distributed" *) logic [$bits(T)-1:0] values[DEPTH];

  // ---- in ----
  ptr_t write_q, write_gray_q, read_seen;
  ptr_t write_next;
  wire  push = in.valid && in.ready;
  // In Gray code two counts are DEPTH apart if just their two highest bits differ.
  assign in.ready   = write_gray_q != (read_seen ^ {2'b11, {PTR_W - 1{1'b0}}});
  assign write_next = write_q + ptr_t'(push);

  always_ff @(posedge in_clk) begin
    if (push) values[write_q[PTR_W-1:0]] <= in.data;
    if (in_rst) begin
      write_q      <= '0;
      write_gray_q <= '0;
    end else begin
      write_q      <= write_next;
      write_gray_q <= gray(write_next);
    end
  end

  // ---- out ----
  ptr_t read_q, read_gray_q, write_seen;
  ptr_t read_next;
  logic out_valid_q;
  logic [$bits(T)-1:0] out_q;
  wire  pop = (!out_valid_q || out.ready) && read_gray_q != write_seen;
  assign read_next = read_q + ptr_t'(pop);
  assign out.valid = out_valid_q;
  assign out.data  = T'(out_q);

  always_ff @(posedge out_clk) begin
    if (pop) out_q <= values[read_q[PTR_W-1:0]];
    if (out_rst) begin
      read_q      <= '0;
      read_gray_q <= '0;
      out_valid_q <= 1'b0;
    end else begin
      read_q      <= read_next;
      read_gray_q <= gray(read_next);
      if (!out_valid_q || out.ready) out_valid_q <= pop;
    end
  end

  // ---- across ----
  cdc_bit #(.WIDTH(PTR_W + 1)) to_in (.clk(in_clk), .in(read_gray_q), .out(read_seen));
  cdc_bit #(.WIDTH(PTR_W + 1)) to_out (.clk(out_clk), .in(write_gray_q), .out(write_seen));
endmodule
