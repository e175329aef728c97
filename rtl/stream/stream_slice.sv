// SPDX-License-Identifier: Apache-2.0

// Register slice: latency 1 cycle, one value a cycle.
// With SKID it cuts every combinational path between its two sides and holds two values: when `out` stops it takes one more, then
// stops `in`. Without, it holds one value and takes half the room: `in.ready` follows `out.ready` in the same cycle.
module stream_slice #(
    parameter type T = logic,
    parameter bit SKID = 1'b1
) (
    input logic      clk,
    input logic      rst,
    stream_if.sink   in,
    stream_if.source out
);
  T     out_q;
  logic out_valid_q;

  assign out.valid = out_valid_q;
  assign out.data  = out_q;

  if (SKID) begin : g_skid
    T     skid_q;
    logic skid_valid_q;

    assign in.ready = !skid_valid_q;

    always_ff @(posedge clk) begin
      if (in.ready && (!out.valid || out.ready)) out_q <= in.data;
      else if (out.ready) out_q <= skid_q;
      if (in.ready) skid_q <= in.data;
      if (rst) begin
        out_valid_q  <= 1'b0;
        skid_valid_q <= 1'b0;
      end else begin
        if (!out.valid || out.ready) out_valid_q <= in.valid || skid_valid_q;
        if (in.ready) skid_valid_q <= in.valid && out.valid && !out.ready;
        else if (out.ready) skid_valid_q <= 1'b0;
      end
    end
  end else begin : g_plain
    assign in.ready = !out_valid_q || out.ready;

    always_ff @(posedge clk) begin
      if (in.ready) out_q <= in.data;
      if (rst) out_valid_q <= 1'b0;
      else if (in.ready) out_valid_q <= in.valid;
    end
  end
endmodule
