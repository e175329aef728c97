// SPDX-License-Identifier: Apache-2.0

// One stream to one of N outputs: each value goes to the output that `select` names while the value is offered.
// Combinational: latency 0, one value a cycle. An output that stops holds back only what is for it and what comes behind that.
module stream_demux #(
    parameter type T = logic,
    parameter int unsigned N = 2
) (
    stream_if.sink               in,
    input logic [$clog2(N)-1:0]  select,  // stable while in.valid waits; a value below N
    stream_if.source             out[N]
);
  logic [N-1:0] ready;

  for (genvar i = 0; i < N; i++) begin : g_out
    assign out[i].valid = in.valid && select == $clog2(N)'(i);
    assign out[i].data  = T'(in.data);
    assign ready[i]     = out[i].ready;
  end

  assign in.ready = ready[select];
endmodule
