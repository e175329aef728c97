// SPDX-License-Identifier: Apache-2.0

// Lets a value go when everything that was ahead of it has gone. `inside` counts what is ahead; it is looked at once, when a value comes to
// the head of `in`, and from then on each that has `gone` takes one off. So what comes later is not waited for. Latency 1 cycle; a value
// every 2 cycles. If `in` takes no value back, neither does `out`.
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
  logic [COUNT_W-1:0] ahead_q, ahead;
  logic               known_q, clear_q;  // the value at the head has its number; it is 0
  assign out.valid = in.valid && clear_q;
  assign out.data  = T'(in.data);
  assign in.ready  = clear_q && out.ready;

  wire stays = in.valid && !in.ready;
  wire [COUNT_W-1:0] of = known_q ? ahead_q : inside_;
  assign ahead = of > COUNT_W'(gone) ? of - COUNT_W'(gone) : '0;
  always_ff @(posedge clk) begin
    ahead_q <= ahead;
    known_q <= !rst && stays;
    clear_q <= !rst && stays && ahead == '0;
  end
endmodule
