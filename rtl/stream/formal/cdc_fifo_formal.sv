// SPDX-License-Identifier: Apache-2.0

// cdc_fifo between two clocks that tick at any times: order kept, nothing lost or doubled, never more inside than it holds, and of what crosses
// at most one bit changes at a time (so that it does not matter which of its bits a metastable flip-flop has seen already).
// A value among all that go in is coloured, as in one_in_line; here the two sides have a count each, modulo more than the FIFO holds.
module cdc_fifo_formal #(
    parameter int unsigned DEPTH = 4,
    parameter bit REACH = 1'b0
) (
    input logic in_clk,
    input logic in_rst,
    input logic out_clk,
    input logic out_rst,
    input logic in_valid,
    input logic in_colour,
    input logic out_ready
);
  typedef logic [$clog2(DEPTH)+1:0] count_t;

  stream_if #(.T(logic)) in ();
  stream_if #(.T(logic)) out ();
  assign in.valid  = in_valid;
  assign in.data   = in_colour;
  assign out.ready = out_ready;

  cdc_fifo #(.T(logic), .DEPTH(DEPTH)) dut (.in_clk, .in_rst, .in, .out_clk, .out_rst, .out);

  // Both sides are in reset until each has had an edge in it and three more after the first of the other, then never again.
  logic in_began_q = 1'b0, out_began_q = 1'b0, in_runs_q = 1'b0, out_runs_q = 1'b0;
  logic [1:0] in_edges_q = '0, out_edges_q = '0;
  wire  began = &in_edges_q && &out_edges_q;

  // ---- in ----
  count_t pushed_q, colour_at_q;
  logic   coloured_q;
  logic [$clog2(DEPTH):0] crossing_in_q;
  always_ff @(posedge in_clk) begin
    in_began_q <= 1'b1;
    if (out_began_q && !(&in_edges_q)) in_edges_q <= in_edges_q + 1'b1;
    in_runs_q  <= !in_rst;
    if (!began) assume (in_rst);
    if (in_runs_q) assume (!in_rst);
    crossing_in_q <= dut.write_gray_q;
    if (in_rst) begin
      pushed_q   <= '0;
      coloured_q <= 1'b0;
    end else begin
      if (in_runs_q) assert ($onehot0(crossing_in_q ^ dut.write_gray_q));
      assume (!(in.valid && in.ready && in_colour && coloured_q));
      if (in.valid && in.ready) begin
        pushed_q <= pushed_q + 1'b1;
        if (in_colour) begin
          coloured_q  <= 1'b1;
          colour_at_q <= pushed_q;
        end
      end
    end
  end

  // ---- out ----
  count_t popped_q;
  logic   gone_q;
  logic [$clog2(DEPTH):0] crossing_out_q;
  wire    here = coloured_q && !gone_q && popped_q == colour_at_q;
  always_ff @(posedge out_clk) begin
    out_began_q <= 1'b1;
    if (in_began_q && !(&out_edges_q)) out_edges_q <= out_edges_q + 1'b1;
    out_runs_q  <= !out_rst;
    if (!began) assume (out_rst);
    if (out_runs_q) assume (!out_rst);
    crossing_out_q <= dut.read_gray_q;
    if (out_rst) begin
      popped_q <= '0;
      gone_q   <= 1'b0;
    end else begin
      if (out_runs_q) assert ($onehot0(crossing_out_q ^ dut.read_gray_q));
      if (in_runs_q && out.valid && out.ready) begin
        assert (popped_q != pushed_q);
        assert (out.data == here);
        popped_q <= popped_q + 1'b1;
        if (here) gone_q <= 1'b1;
      end
      if (in_runs_q) assert (count_t'(pushed_q - popped_q) <= count_t'(DEPTH + 1));
      if (REACH) assert (!(out.valid && here && count_t'(pushed_q - popped_q) == count_t'(DEPTH + 1)));
    end
  end

  // ---- what holds at all times: the solver needs it for its induction ----
  localparam int unsigned PTR_W = $clog2(DEPTH) + 1;
  typedef logic [PTR_W-1:0] ptr_t;

  function automatic ptr_t binary(ptr_t gray);
    ptr_t b;
    b[PTR_W-1] = gray[PTR_W-1];
    for (int i = PTR_W - 2; i >= 0; i--) b[i] = b[i+1] ^ gray[i];
    return b;
  endfunction

  // How far each copy of a pointer is ahead of the oldest.
  ptr_t oldest, read_meta, read, write_seen, write_meta, write;
  assign oldest     = binary(dut.read_seen);
  assign read_meta  = binary(dut.to_in.meta_q) - oldest;
  assign read       = dut.read_q - oldest;
  assign write_seen = binary(dut.write_seen) - oldest;
  assign write_meta = binary(dut.to_out.meta_q) - oldest;
  assign write      = dut.write_q - oldest;

  count_t first;  // number of the first value in memory
  assign first = popped_q + count_t'(dut.out_valid_q);

  always_comb begin
    if (began) begin
      assert (dut.write_q == ptr_t'(pushed_q) && dut.write_gray_q == dut.gray(dut.write_q));
      assert (dut.read_q == ptr_t'(first) && dut.read_gray_q == dut.gray(dut.read_q));
      assert (read_meta <= read && read <= write_seen && write_seen <= write_meta && write_meta <= write && write <= ptr_t'(DEPTH));
      assert (count_t'(pushed_q - first) <= count_t'(DEPTH));
      if (coloured_q && !gone_q) assert (count_t'(colour_at_q - popped_q) < count_t'(pushed_q - popped_q));
      if (!coloured_q) assert (!gone_q);
      if (dut.out_valid_q) assert (dut.out_q == here);
      for (int unsigned i = 0; i < DEPTH; i++) begin
        if (count_t'(i) < count_t'(pushed_q - first)) begin
          assert (dut.values[(PTR_W - 1)'(first + count_t'(i))] == (coloured_q && !gone_q && colour_at_q == first + count_t'(i)));
        end
      end
    end
  end
endmodule
