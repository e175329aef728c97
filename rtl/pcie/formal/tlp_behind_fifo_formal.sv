// SPDX-License-Identifier: Apache-2.0

// tlp_behind_fifo: a value, of the solver's choice, does not go before what was ahead of it when it came; and when that has gone and the
// values before it have, it is offered, whatever came since.
module tlp_behind_fifo_formal #(
    parameter bit REACH = 1'b0
) (
    input logic       clk,
    input logic       rst,
    input logic       in_valid,
    input logic       out_ready,
    input logic       enter,        // something that later values are behind
    input logic [1:0] go,           // how much of it goes
    input logic       follow        // the value that comes now
);
  stream_if #(.T(logic)) in ();
  stream_if #(.T(logic)) out ();
  logic [2:0] inside_q;
  logic       empty;
  wire [1:0] gone = 3'(go) > inside_q || go == 2'd3 ? 2'd0 : go;
  wire enters = enter && inside_q < 3'd6;
  tlp_behind_fifo #(.T(logic), .DEPTH(2), .COUNT_W(3)) dut (.clk, .rst, .in, .inside_(inside_q), .gone, .out, .empty);

  logic       started_q = 1'b0;
  logic       followed_q, since_q;  // it is inside; for a cycle
  logic [2:0] values_q, before_q;   // values inside; those before it
  logic [2:0] left_q;               // what was ahead when it came, and is
  assign in.valid  = in_valid;
  assign in.data   = follow && !followed_q;
  assign out.ready = out_ready;
  wire comes = in.valid && in.ready;
  wire goes = out.valid && out.ready;
  always_ff @(posedge clk) begin
    started_q <= 1'b1;
    since_q   <= followed_q;
    if (comes && in.data) begin
      followed_q <= 1'b1;
      before_q   <= values_q - 3'(goes);
      left_q     <= inside_q - 3'(gone);
    end else begin
      if (goes && out.data) followed_q <= 1'b0;
      if (goes) before_q <= before_q - 3'd1;
      left_q <= left_q > 3'(gone) ? left_q - 3'(gone) : '0;
    end
    values_q <= values_q + 3'(comes) - 3'(goes);
    inside_q <= inside_q + 3'(enters) - 3'(gone);
    if (rst) begin
      followed_q <= 1'b0;
      since_q    <= 1'b0;
      values_q   <= '0;
      inside_q   <= '0;
    end
    if (!started_q) assume (rst);
    else if (!rst) begin
      if (out.valid && out.data) assert (followed_q && before_q == '0 && left_q == '0);
      if (followed_q && since_q && before_q == '0 && left_q == '0) assert (out.valid && out.data);
      assert (empty == (values_q == '0));
      if (REACH) assert (!(out.valid && out.data && inside_q == 3'd6 && values_q == 3'd3));
    end
  end
endmodule
