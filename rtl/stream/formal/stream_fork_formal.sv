// SPDX-License-Identifier: Apache-2.0

// stream_fork with two outputs: each gets every value once and in order, and neither waits for the other within a value.
module stream_fork_formal #(
    parameter bit REACH = 1'b0
) (
    input logic       clk,
    input logic       rst,
    input logic       in_valid,
    input logic       in_data,
    input logic [1:0] out_ready
);
  stream_if #(.T(logic)) in ();
  stream_if #(.T(logic)) out[2] ();
  logic [1:0] out_valid;
  assign in.valid = in_valid;
  assign in.data  = in_data;

  stream_fork #(.T(logic), .N(2)) dut (.clk, .rst, .in, .out);

  polite_source #(.ASSUME(1'b1)) source (.clk, .rst, .valid(in.valid), .ready(in.ready), .data(in.data));

  // A value counts as gone in when it is first offered: the outputs may take it before `in` sees ready.
  logic offered_q;
  wire push = in.valid && !offered_q;
  always_ff @(posedge clk) offered_q <= in.valid && !in.ready && !rst;

  for (genvar i = 0; i < 2; i++) begin : g_out
    assign out[i].ready = out_ready[i];
    assign out_valid[i] = out[i].valid;
    polite_source sink (.clk, .rst, .valid(out[i].valid), .ready(out[i].ready), .data(out[i].data));
    one_in_line #(.CAPACITY(1)) line (
        .clk, .rst, .push, .in_colour(in.data), .pop(out[i].valid && out[i].ready), .out_colour(out[i].data)
    );
  end

  logic started_q = 1'b0;
  always_ff @(posedge clk) begin
    started_q <= 1'b1;
    if (!started_q) assume (rst);
    else if (!rst) begin
      if (push) assert (out_valid == 2'b11);
      if (in.valid && out_ready == 2'b11) assert (in.ready);
      if (REACH) assert (!(offered_q && in.data && out_valid == 2'b10));
    end
  end
endmodule
