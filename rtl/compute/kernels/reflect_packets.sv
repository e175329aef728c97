// SPDX-License-Identifier: Apache-2.0

// Cuts what a region holds into datagrams: a header of datagrams_pkg, whose length says where the payload ends; the next begins at the next
// multiple of 64 bytes. A kind or length that no datagram has ends it: nothing more is sent, and `bad` is high with the last beat of `in`, as
// it is if the region ends within a datagram, which the socket then drops. One beat a cycle, no latency.
module reflect_packets
  import datagrams_pkg::*;
#(
    parameter int unsigned DATA_W = 512
) (
    input logic    clk,
    input logic    rst,
    axis_if.sink   in,
    axis_if.source out,
    output logic   bad
);
  localparam int unsigned BYTES = DATA_W / 8;
  localparam int unsigned BYTE_W = $clog2(BYTES);
  localparam int unsigned HEAD_BEATS = HEADER_BYTES / BYTES;
  typedef logic [$clog2((HEADER_BYTES+DATAGRAM_BYTES)/BYTES+1)-1:0] beats_t;
  typedef logic [BYTE_W-1:0] lane_t;

  beats_t beats_q, slot_q;                  // of the datagram, behind this beat: its own, and up to the next
  lane_t  top_q, top;                       // highest byte of its last beat
  logic   bad_q;
  wire first = slot_q == '0;
  wire [15:0] length = {in.tdata[23:16], in.tdata[31:24]};
  wire known = in.tdata[7:0] == KIND_DATAGRAM && length <= 16'(DATAGRAM_BYTES);
  wire broken = bad_q || (first && !known);

  beats_t beats, slot;
  assign beats = first ? beats_t'(16'(HEAD_BEATS - 1) + ((length + 16'(BYTES - 1)) >> BYTE_W)) : beats_q;
  assign slot  = first ? beats_t'(16'(HEAD_BEATS - 1) + (((length + 16'(HEADER_BYTES - 1)) >> $clog2(HEADER_BYTES)) << $clog2(HEAD_BEATS))) : slot_q - 1'b1;
  assign top   = first ? lane_t'(length - 1'b1) : top_q;
  // Behind the first beat: `beats_q` counts those that are left with this one.
  wire shown = first || beats_q != '0;
  wire ends = first ? beats == '0 : beats_q == beats_t'(1);

  assign out.tvalid = in.tvalid && !broken && shown;
  assign in.tready  = broken || !shown || out.tready;
  assign out.tdata  = in.tdata;
  assign out.tlast  = ends || in.tlast;
  assign out.tuser  = 1'b0;
  for (genvar i = 0; i < BYTES; i++) begin : g_keep
    assign out.tkeep[i] = i == 0 || !ends || lane_t'(i) <= top;
  end
  // A region may end where the last datagram does.
  assign bad = broken || (in.tlast && shown && !ends);

  always_ff @(posedge clk) begin
    if (in.tvalid && in.tready) begin
      bad_q   <= !in.tlast && broken;
      beats_q <= in.tlast ? '0 : first ? beats : beats_q == '0 ? '0 : beats_q - 1'b1;
      slot_q  <= in.tlast ? '0 : slot;
      top_q   <= top;
    end
    if (rst) begin
      bad_q   <= 1'b0;
      beats_q <= '0;
      slot_q  <= '0;
    end
  end

  logic unused_ok;
  assign unused_ok = &{1'b0, in.tkeep, in.tuser};
endmodule
