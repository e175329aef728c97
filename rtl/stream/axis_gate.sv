// SPDX-License-Identifier: Apache-2.0

// Stops a packet stream between packets: while `stop` is high no packet begins; one whose first beat was offered goes on. No latency.
module axis_gate (
    input logic    clk,
    input logic    rst,
    input logic    stop,
    axis_if.sink   in,
    axis_if.source out
);
  logic begun_q;                   // its first beat was offered
  wire  open = begun_q || !stop;

  assign out.tvalid = in.tvalid && open;
  assign out.tdata  = in.tdata;
  assign out.tkeep  = in.tkeep;
  assign out.tlast  = in.tlast;
  assign out.tuser  = in.tuser;
  assign in.tready  = out.tready && open;

  always_ff @(posedge clk) begin
    if (rst) begun_q <= 1'b0;
    else if (out.tvalid) begun_q <= !(out.tready && out.tlast);
  end
endmodule
