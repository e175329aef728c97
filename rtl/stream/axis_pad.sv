// SPDX-License-Identifier: Apache-2.0

// Fills packets up to MINIMUM bytes with zeros; longer ones pass as they are. Bytes behind the end of a packet are zero on `out`, whatever
// they are on `in`. One beat a cycle; no latency, but a beat for each that a packet lacks. When `out` stops, `in` does.
module axis_pad #(
    parameter int unsigned DATA_W = 512,
    parameter int unsigned MINIMUM = 60
) (
    input logic    clk,
    input logic    rst,
    axis_if.sink   in,
    axis_if.source out
);
  localparam int unsigned BYTES = DATA_W / 8;
  localparam int unsigned LAST = (MINIMUM - 1) / BYTES;               // beat with the last byte that there must be
  localparam int unsigned REST = (MINIMUM - 1) % BYTES + 1;           // bytes of it
  localparam int unsigned INDEX_W = $clog2(LAST + 2);
  typedef logic [INDEX_W-1:0] index_t;

  index_t index_q;             // of the beat in its packet, at most LAST + 1
  logic   fills_q;             // the packet has ended: zeros follow
  wire    last = in.tlast || fills_q;
  wire    early = !(index_q inside {index_t'(LAST), index_t'(LAST + 1)});
  wire    fire = out.tvalid && out.tready;

  always_comb
    for (int unsigned i = 0; i < BYTES; i++) begin
      out.tdata[i*8+:8] = fills_q || !in.tkeep[i] ? '0 : in.tdata[i*8+:8];
      out.tkeep[i] = (last && early) || (last && index_q == index_t'(LAST) && i < REST) || (!fills_q && in.tkeep[i]);
    end

  assign out.tvalid = in.tvalid || fills_q;
  assign out.tlast  = last && !early;
  assign out.tuser  = !fills_q && in.tuser;
  assign in.tready  = out.tready && !fills_q;

  always_ff @(posedge clk) begin
    if (rst) begin
      index_q <= '0;
      fills_q <= 1'b0;
    end else if (fire) begin
      index_q <= out.tlast ? '0 : index_q == index_t'(LAST + 1) ? index_q : index_q + 1'b1;
      fills_q <= last && early;
    end
  end
endmodule
