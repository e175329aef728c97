// SPDX-License-Identifier: Apache-2.0

// One stream to N: each output gets every value once, each in its own time.
// Latency 0, one value a cycle. An output that stops holds back the next value, never the other outputs' share of this one.
module stream_fork #(
    parameter type T = logic,
    parameter int unsigned N = 2
) (
    input logic      clk,
    input logic      rst,
    stream_if.sink   in,
    stream_if.source out[N]
);
  logic [N-1:0] ready;
  logic [N-1:0] taken_q;  // outputs that have this value already

  for (genvar i = 0; i < N; i++) begin : g_out
    assign out[i].valid = in.valid && !taken_q[i];
    assign out[i].data  = T'(in.data);
    assign ready[i]     = out[i].ready;
  end

  assign in.ready = &(ready | taken_q);

  always_ff @(posedge clk) begin
    if (rst) taken_q <= '0;
    else if (in.valid) taken_q <= in.ready ? '0 : taken_q | ready;
  end
endmodule
