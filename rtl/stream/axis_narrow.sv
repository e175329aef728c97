// SPDX-License-Identifier: Apache-2.0

// Packets of beats as packets of bytes: the bus becomes narrower.
// One byte a cycle, also between two beats. The first byte of a beat comes 1 cycle after the beat was taken.
module axis_narrow #(
    parameter int unsigned DATA_W = 512
) (
    input  logic   clk,
    input  logic   rst,
    axis_if.sink   in,
    axis_if.source out      // 8 bits
);
  localparam int unsigned BYTES = DATA_W / 8;

  logic [BYTES-1:0][7:0] data_q;
  logic [BYTES-1:0] kept_q;          // of the bytes that are still to come, from the one that is shown
  logic last_q, user_q;
  wire shown = kept_q[0];
  wire ends  = !kept_q[1];           // the byte that is shown is the beat's last
  wire pass  = shown && out.tready;

  assign in.tready = !shown || (pass && ends);
  always_ff @(posedge clk) begin
    if (in.tready) begin
      data_q <= in.tdata;
      kept_q <= in.tvalid ? in.tkeep : '0;
      last_q <= in.tlast;
      user_q <= in.tuser;
    end else if (pass) begin
      data_q <= data_q >> 8;
      kept_q <= kept_q >> 1;
    end
    if (rst) kept_q <= '0;
  end
  assign out.tvalid = shown;
  assign out.tdata  = data_q[0];
  assign out.tkeep  = 1'b1;
  assign out.tlast  = last_q && ends;
  assign out.tuser  = user_q;
endmodule
