// SPDX-License-Identifier: Apache-2.0

// The smallest kernel on the path of the network card: frames pass as they are, 1 cycle later, one beat a cycle. HOLD (stream_pass.rdl) stops it.
module stream_pass
  import stream_pass_pkg::*;
#(
    parameter int unsigned DATA_W = 512
) (
    input  logic        clk,
    input  logic        rst,
    input  logic [47:0] now,      // cycles; not used
    axil_if.slave       ctrl,     // 12 bits of address
    axis_if.sink        rx_in,
    axis_if.source      rx_out,
    axis_if.sink        tx_in,
    axis_if.source      tx_out
);
  logic [11:0] at;
  logic        write;
  logic [31:0] wdata;
  logic [1:0]  hold_q;
  axil_access access (
      .clk, .rst, .bus(ctrl), .at, .write, .wdata, .readable(readable(at)), .writable(writable(at)), .rdata(32'(hold_q)), .idle()
  );
  always_ff @(posedge clk) begin
    if (rst) hold_q <= '0;
    else if (write) hold_q <= wdata[1:0];
  end

  axis_if #(.DATA_W(DATA_W)) rx (), tx ();
  axis_gate rx_gate (.clk, .rst, .stop(hold_q[0]), .in(rx_in), .out(rx));
  axis_gate tx_gate (.clk, .rst, .stop(hold_q[1]), .in(tx_in), .out(tx));
  axis_slice #(.DATA_W(DATA_W)) rx_slice (.clk, .rst, .in(rx), .out(rx_out));
  axis_slice #(.DATA_W(DATA_W)) tx_slice (.clk, .rst, .in(tx), .out(tx_out));

  logic unused_ok;
  assign unused_ok = &{1'b0, now};
endmodule
