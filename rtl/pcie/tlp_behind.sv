// SPDX-License-Identifier: Apache-2.0

// Lets a value go when everything that was ahead of it has gone. `inside` counts what is ahead; it is looked at once, when a value comes to the head of
// `in`, and from then on each `gone` takes one off. So what comes later is not waited for. Latency 1 cycle; a value every 2 cycles. If `in` withdraws no
// value, neither does `out`.
module tlp_behind #(
    parameter type T = logic,
    parameter int unsigned COUNT_W = 6
) (
    input  logic               clk,
    input  logic               rst,
    stream_if.sink             in,
    input  logic [COUNT_W-1:0] inside_,
    input  logic               gone,
    stream_if.source           out
);
  logic [COUNT_W-1:0] ahead_q;
  logic               known_q;       // the value at the head has its number
  assign out.valid = in.valid && known_q && ahead_q == '0;
  assign out.data  = T'(in.data);
  assign in.ready  = out.valid && out.ready;

  always_ff @(posedge clk) begin
    if (!known_q) ahead_q <= inside_ - COUNT_W'(gone);
    else if (gone && ahead_q != '0) ahead_q <= ahead_q - 1'b1;
    known_q <= !rst && in.valid && !in.ready;
  end
endmodule
