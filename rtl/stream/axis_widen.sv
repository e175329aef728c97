// SPDX-License-Identifier: Apache-2.0

// Packets of bytes as packets of beats: the bus becomes wider. Bytes of a beat are gathered until it is full or the packet ends.
// One byte a cycle in, never slower as long as `out` takes a beat while the next one is gathered. A beat comes 1 cycle after its last byte.
module axis_widen #(
    parameter int unsigned DATA_W = 512
) (
    input  logic   clk,
    input  logic   rst,
    axis_if.sink   in,      // 8 bits
    axis_if.source out
);
  localparam int unsigned BYTES = DATA_W / 8;
  typedef logic [$clog2(BYTES)-1:0] lane_t;

  lane_t lane_q;            // where the next byte goes
  logic [BYTES-1:0][7:0] gathered_q;
  logic [BYTES-1:0] kept_q;
  wire take = in.tvalid && in.tready;
  wire done = take && (in.tlast || lane_q == lane_t'(BYTES - 1));

  assign in.tready = !out.tvalid || out.tready;
  always_ff @(posedge clk) begin
    for (int unsigned i = 0; i < BYTES; i++)
      if (take && lane_q == lane_t'(i)) gathered_q[i] <= in.tdata;
    if (take) begin
      lane_q <= done ? '0 : lane_q + 1'b1;
      kept_q <= lane_q == '0 ? BYTES'(1) : {kept_q[BYTES-2:0], 1'b1};
      out.tlast <= in.tlast;
      out.tuser <= in.tuser;
    end
    if (in.tready) out.tvalid <= done;
    if (rst) begin
      lane_q     <= '0;
      out.tvalid <= 1'b0;
    end
  end
  assign out.tdata = gathered_q;
  assign out.tkeep = kept_q;

  logic unused_ok;
  assign unused_ok = &{1'b0, in.tkeep};
endmodule
