// SPDX-License-Identifier: Apache-2.0

// The device's VLAN (IEEE 802.1Q), transmit side, behind all that makes frames: inserts its tag into every frame, but for those to the next
// station (LLDP). 1 cycle: `out` is registered. One beat a cycle; a frame whose last beat has no room for four more bytes takes one more, for which `in`
// waits. When `out` stops, `in` does. A change of `enable` takes effect between frames.
module vlan_insert
  import packet_pkg::*;
  import link_pkg::*;
#(
    parameter int unsigned DATA_W = 512
) (
    input  logic           clk,
    input  logic           rst,
    input  vlan_settings_t settings,
    input  priorities_t    priorities,
    input  logic           roce,        // with each beat of `in`: its frame is RoCE
    axis_if.sink           in,
    axis_if.source         out
);
  localparam int unsigned BYTES = DATA_W / 8;
  localparam int unsigned TAG_BYTES = 4;
  localparam int unsigned TAG_AT = 12;
  localparam int unsigned TAG_BEAT = TAG_AT / BYTES;
  localparam int unsigned TAG_LANE = TAG_AT % BYTES;
  typedef logic [1:0] index_t;
  typedef logic [BYTES-1:0][7:0] data_t;
  localparam logic [15:0] TAG_TYPE = ETHERTYPE_CTAG;
  typedef logic [TAG_BYTES-1:0][7:0] part_t;

  typedef struct packed {
    logic              valid;
    logic              last;
    logic              bad;
    logic [BYTES-1:0]  keep;
    data_t             data;
  } beat_t;

  beat_t  out_q, beat;
  logic   active_q, tags_q;
  index_t index_q;                                            // of the beat in its frame; those behind the tag have the same
  part_t  carry_q;                                            // the end of the beat before
  logic [TAG_BYTES-1:0] carry_keep_q;
  logic   rest_q, bad_q;                                      // the carry is all that is left of the frame

  data_t data;
  assign data = in.tdata;
  wire   first = index_q == '0;
  wire   at_tag = index_q == index_t'(TAG_BEAT);
  wire   behind = index_q > index_t'(TAG_BEAT);
  wire   to_next_station = {data[0], data[1], data[2], data[3], data[4], data[5][7:4]} == MAC_NEXT_STATION;
  wire   tags = first ? active_q && !to_next_station : tags_q;
  wire   moves = tags && (at_tag || behind);
  wire   moves_first = tags && behind;
  wire   too_long = moves && in.tlast && in.tkeep[BYTES-TAG_BYTES];
  wire   free = !out_q.valid || out.tready;
  wire   step = free && (rest_q || in.tvalid);

  part_t tag;
  logic [2:0] pcp;
  assign pcp = roce ? priorities.roce : priorities.other;
  assign tag = {settings.vid[7:0], {pcp, 1'b0, settings.vid[11:8]}, TAG_TYPE[7:0], TAG_TYPE[15:8]};

  assign beat.valid = rest_q || in.tvalid;
  assign beat.last  = rest_q || (in.tlast && !too_long);
  assign beat.bad   = rest_q ? bad_q : in.tuser;
  assign in.tready  = free && !rest_q;

  assign out.tvalid = out_q.valid;
  assign out.tlast  = out_q.last;
  assign out.tuser  = out_q.bad;
  assign out.tkeep  = out_q.keep;
  assign out.tdata  = out_q.data;

  // The bytes behind the tag, moved.
  data_t            moved;
  logic [BYTES-1:0] moved_keep;
  assign moved      = {data[BYTES-TAG_BYTES-1:0], carry_q};
  assign moved_keep = rest_q ? BYTES'(carry_keep_q) : {in.tkeep[BYTES-TAG_BYTES-1:0], {TAG_BYTES{1'b1}}};

  for (genvar i = 0; i < BYTES; i++) begin : g_lane
    localparam bit IN_TAG = i >= TAG_LANE && i < TAG_LANE + TAG_BYTES;
    wire from_moved = rest_q || (i < TAG_LANE ? moves_first : moves);
    assign beat.data[i] = !from_moved ? data[i] : IN_TAG && at_tag ? tag[(i+BYTES-TAG_LANE)%TAG_BYTES] : moved[i];
    assign beat.keep[i] = from_moved ? moved_keep[i] : in.tkeep[i];
  end

  always_ff @(posedge clk) begin
    if (free) out_q <= beat;
    if (step) begin
      tags_q       <= tags;
      carry_q      <= data[BYTES-1-:TAG_BYTES];
      carry_keep_q <= in.tkeep[BYTES-1-:TAG_BYTES];
      bad_q        <= in.tuser;
      index_q      <= beat.last ? '0 : behind ? index_q : index_q + 1'b1;
      rest_q       <= !rest_q && too_long;
    end
    if (first && !in.tvalid && !rest_q) active_q <= settings.enable;
    if (rst) begin
      out_q.valid <= 1'b0;
      index_q  <= '0;
      rest_q   <= 1'b0;
      active_q <= 1'b0;
    end
  end
endmodule
