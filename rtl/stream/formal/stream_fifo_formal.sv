// SPDX-License-Identifier: Apache-2.0

// stream_fifo: order kept, never more inside than DEPTH and one, full throughput, `empty` means empty.
module stream_fifo_formal #(
    parameter int unsigned DEPTH = 4,
    parameter bit BLOCK_RAM = 1'b0,
    parameter bit BYPASS = !BLOCK_RAM,
    parameter bit REACH = 1'b0
) (
    input logic clk,
    input logic rst,
    input logic in_valid,
    input logic in_data,
    input logic out_ready
);
  stream_if #(.T(logic)) in ();
  stream_if #(.T(logic)) out ();
  logic empty;
  assign in.valid  = in_valid;
  assign in.data   = in_data;
  assign out.ready = out_ready;

  stream_fifo #(.T(logic), .DEPTH(DEPTH), .BLOCK_RAM(BLOCK_RAM), .BYPASS(BYPASS)) dut (.clk, .rst, .in, .out, .empty);

  polite_source #(.ASSUME(1'b1)) source (.clk, .rst, .valid(in.valid), .ready(in.ready), .data(in.data));
  polite_source sink (.clk, .rst, .valid(out.valid), .ready(out.ready), .data(out.data));
  one_in_line #(.CAPACITY(DEPTH + 1)) line (
      .clk, .rst, .push(in.valid && in.ready), .in_colour(in.data), .pop(out.valid && out.ready), .out_colour(out.data)
  );

  logic started_q = 1'b0;
  logic [2:0] flowing_q;
  always_ff @(posedge clk) begin
    started_q <= 1'b1;
    flowing_q <= {flowing_q[1:0], in.valid && out.ready && !rst};
    if (!started_q) assume (rst);
    else if (!rst) begin
      if (&flowing_q && in.valid && out.ready) assert (in.ready && out.valid);
      assert (empty == (line.inside_q == '0));
      if (REACH) assert (!(out.valid && out.data && !in.ready));
    end
  end
endmodule
