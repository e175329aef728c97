// SPDX-License-Identifier: Apache-2.0

// tlp_behind: a value does not go before what was there when it was offered. One of the things ahead, of the solver's choice, is followed:
// it enters, and goes when those before it have gone. A value that is offered from then on must not go before it. And a value does go when
// all is gone that was ahead of it, whatever came since.
module tlp_behind_formal #(
    parameter bit REACH = 1'b0
) (
    input logic       clk,
    input logic       rst,
    input logic       in_valid,
    input logic       out_ready,
    input logic       enter,        // something that later values are behind
    input logic [1:0] go,           // how much of it goes
    input logic       follow        // that which enters now
);
  stream_if #(.T(logic)) in ();
  stream_if #(.T(logic)) out ();
  logic [2:0] inside_q;
  assign in.valid  = in_valid;
  assign in.data   = 1'b0;
  assign out.ready = out_ready;
  wire [1:0] gone = 3'(go) > inside_q || go == 2'd3 ? 2'd0 : go;
  wire enters = enter && inside_q < 3'd6;
  tlp_behind #(.T(logic), .COUNT_W(3)) dut (.clk, .rst, .in, .inside_(inside_q), .gone, .out);

  logic       started_q = 1'b0;
  logic       followed_q;           // it is inside, behind
  logic [2:0] before_q;             // so many others,
  logic       offered_q, behind_q;  // a value is offered; since after that
  logic [2:0] left_q;               // what was there when the value was offered, and is
  wire leaves = followed_q && before_q < 3'(gone);
  always_ff @(posedge clk) begin
    started_q <= 1'b1;
    offered_q <= !rst && in.valid && !in.ready;
    if (!(offered_q)) begin
      behind_q <= followed_q && !leaves;
      left_q   <= inside_q - 3'(gone);
    end else left_q <= left_q > 3'(gone) ? left_q - 3'(gone) : '0;
    if (leaves) behind_q <= 1'b0;
    if (rst) begin
      inside_q   <= '0;
      followed_q <= 1'b0;
      behind_q   <= 1'b0;
    end else begin
      inside_q <= inside_q + 3'(enters) - 3'(gone);
      if (enters && follow && !followed_q) begin
        followed_q <= 1'b1;
        before_q   <= inside_q - 3'(gone);
      end else if (leaves) followed_q <= 1'b0;
      else before_q <= before_q - 3'(gone);
    end
    if (!started_q) assume (rst);
    else if (!rst) begin
      if (out.valid && offered_q) assert (!behind_q);
      if (out.valid) assert (offered_q && in.valid);
      if (offered_q && in.valid && left_q == '0) assert (out.valid);
      if (REACH) assert (!(out.valid && followed_q && inside_q == 3'd6));
    end
  end
endmodule
