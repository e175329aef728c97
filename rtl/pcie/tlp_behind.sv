// SPDX-License-Identifier: Apache-2.0

// Lets a value go when everything that was ahead of it has gone. `inside` counts what is ahead; it is looked at once, when a value comes to the head of
// `in`, and from then on each that has `gone` takes one off. So what comes later is not waited for. Latency 1 cycle; a value every 2 cycles. If `in` takes no
// value back, neither does `out`.
module tlp_behind #(
    parameter type T = logic,
    parameter int unsigned COUNT_W = 6
) (
    input  logic               clk,
    input  logic               rst,
    stream_if.sink             in,
    input  logic [COUNT_W-1:0] inside_,
    input  logic [1:0]         gone,      // how many go in this cycle
    stream_if.source           out
);
  logic [COUNT_W-1:0] ahead_q;
  logic               known_q;       // the value at the head has its number
  assign out.valid = in.valid && known_q && ahead_q == '0;
  assign out.data  = T'(in.data);
  assign in.ready  = out.valid && out.ready;

  always_ff @(posedge clk) begin
    if (!known_q) ahead_q <= inside_ - COUNT_W'(gone);
    else ahead_q <= ahead_q > COUNT_W'(gone) ? ahead_q - COUNT_W'(gone) : '0;
    known_q <= !rst && in.valid && !in.ready;
  end
endmodule
