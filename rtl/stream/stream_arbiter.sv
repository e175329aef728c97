// SPDX-License-Identifier: Apache-2.0

// N streams into one, round robin: the input that was served becomes the last in line, so a waiting input is served after
// at most one packet of each other. An input keeps the grant until its value with `last` has passed.
// Latency 1 cycle (output register), one value a cycle. When `out` stops all inputs stop.
module stream_arbiter #(
    parameter type T = logic,
    parameter int unsigned N = 2
) (
    input logic         clk,
    input logic         rst,
    stream_if.sink      in[N],
    input logic [N-1:0] last,  // with in[i].data: end of a packet; '1 where each value stands alone
    stream_if.source    out
);
  logic [N-1:0] valid, grant, first;
  T             data[N];
  logic [N-1:0] held_q;   // the input in the middle of a packet, one-hot
  T             out_q;
  logic         out_valid_q;
  wire          advance = !out_valid_q || out.ready;

  for (genvar i = 0; i < N; i++) begin : g_in
    assign valid[i]    = in[i].valid;
    assign data[i]     = in[i].data;
    assign in[i].ready = grant[i] && advance;
  end

  round_robin #(.N(N)) turns (.clk, .rst, .request(valid), .take(advance && held_q == '0), .grant(first));
  assign grant = held_q != '0 ? held_q & valid : first;

  // One of few by AND and OR, one of more by number: whichever takes one LUT a bit.
  logic [$bits(T)-1:0] selected;
  if (N < 4) begin : g_select
    always_comb begin
      selected = '0;
      for (int unsigned i = 0; i < N; i++) if (grant[i]) selected |= data[i];
    end
  end else begin : g_select
    logic [$clog2(N)-1:0] number;
    always_comb begin
      number = '0;
      for (int unsigned i = 0; i < N; i++) if (grant[i]) number |= $clog2(N)'(i);
    end
    assign selected = data[number];
  end

  assign out.valid = out_valid_q;
  assign out.data  = out_q;

  always_ff @(posedge clk) begin
    if (advance && |grant) out_q <= T'(selected);
    if (rst) begin
      out_valid_q <= 1'b0;
      held_q      <= '0;
    end else if (advance) begin
      out_valid_q <= |grant;
      if (|grant) held_q <= |(grant & last) ? '0 : grant;
    end
  end

  always_ff @(posedge clk) if (!rst) assert ($onehot0(grant));
endmodule
