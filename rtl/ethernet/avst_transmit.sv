// SPDX-License-Identifier: Apache-2.0

// Frames to a MAC that has an Avalon-ST sink (Avalon Interface Specifications, 5: first symbol in the high-order bits, ready latency 0), as
// Intel's hard MACs do. The MAC adds preamble and FCS. A frame that ends with tuser ends with the error, which makes the MAC spoil it on the line.
//
// Wires, and one flip-flop for the start of a frame: no latency, one beat a cycle, and `in` stalls when the MAC does. A MAC wants a frame in one piece: it
// must be whole before it begins (mac_crossing).
module avst_transmit #(
    parameter int unsigned DATA_W = 512
) (
    input  logic                          clk,
    input  logic                          rst,
    axis_if.sink                          in,
    input  logic                          out_ready,
    output logic                          out_valid,
    output logic                          out_startofpacket,
    output logic                          out_endofpacket,
    output logic [DATA_W-1:0]             out_data,
    output logic [$clog2(DATA_W/8)-1:0]   out_empty,
    output logic                          out_error
);
  localparam int unsigned BYTES = DATA_W / 8;
  localparam int unsigned EMPTY_W = $clog2(BYTES);

  logic middle_q;                       // a frame has begun
  always_ff @(posedge clk) begin
    if (rst) middle_q <= 1'b0;
    else if (in.tvalid && in.tready) middle_q <= !in.tlast;
  end

  assign in.tready         = out_ready;
  assign out_valid         = in.tvalid;
  assign out_startofpacket = !middle_q;
  assign out_endofpacket   = in.tlast;
  assign out_error         = in.tlast && in.tuser;
  always_comb begin
    for (int unsigned i = 0; i < BYTES; i++) out_data[8*i+:8] = in.tdata[8*(BYTES-1-i)+:8];
    // The highest byte that is kept.
    out_empty = '0;
    for (int unsigned i = 0; i < BYTES - 1; i++) if (in.tkeep[i] && !in.tkeep[i+1]) out_empty |= EMPTY_W'(BYTES - 1 - i);
  end
endmodule
