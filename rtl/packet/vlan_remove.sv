// SPDX-License-Identifier: Apache-2.0

// The device's VLAN (IEEE 802.1Q), receive side, in front of all that reads frames: removes the tag of frames that belong to it, so that
// nothing behind knows of tags, and says which frames do not. `in` is never stopped, and `out` must not be.
//
// A frame belongs if it has a C-tag with the VID of the device; with `untagged` also if it has none, or VID 0. The others pass as they came,
// with `foreign`. Without `enable` all pass as they came, with no latency; with it 1 cycle, or as long as the next beat takes, since
// the bytes behind a tag move up by four. A change of `enable` takes effect between frames.
module vlan_remove
  import packet_pkg::*;
  import frame_pkg::*;
  import link_pkg::*;
#(
    parameter int unsigned DATA_W = 512
) (
    input  logic           clk,
    input  logic           rst,
    input  vlan_settings_t settings,
    axis_if.sink           in,
    axis_if.source         out,
    output logic           foreign,     // from the beat with byte 15 of the frame on: it does not belong to the device's VLAN
    output vlan_t          tag,         // likewise: the tag that was removed
    output logic           idle
);
  localparam int unsigned BYTES = DATA_W / 8;
  localparam int unsigned TAG_BYTES = 4;
  localparam int unsigned TAG_AT = 12;                        // EtherType of the tag, and the two bytes behind it
  localparam int unsigned TAG_BEAT = TAG_AT / BYTES;
  localparam int unsigned TAG_LANE = TAG_AT % BYTES;
  localparam int unsigned INDEX_W = 2;
  typedef logic [INDEX_W-1:0] index_t;
  typedef logic [BYTES-1:0][7:0] data_t;
  typedef logic [BYTES-1:0] keep_t;

  typedef struct packed {
    logic [15:0] ethertype;
    logic [2:0]  pcp;
    logic        dei;
    logic [11:0] vid;
  } c_tag_t;

  // ---- a beat waits for the next one ----
  logic   in_frame_q = 1'b0;                                  // kept in reset too, as in packet_rx
  logic   active_q, held_q, last_q, bad_q;
  data_t  data_q, data;
  keep_t  keep_q;
  index_t index_q;                                            // of the beat that is held; those behind the tag have the same
  assign data = in.tdata;

  // ---- whose frame it is ----
  typedef struct packed {
    logic  foreign;
    vlan_t tag;
  } verdict_t;

  function automatic verdict_t judge(c_tag_t found, vlan_settings_t own);
    verdict_t v;
    logic     has_tag, mine;
    has_tag = found.ethertype == ETHERTYPE_CTAG;
    mine = has_tag ? found.vid == own.vid || (found.vid == '0 && own.untagged) : found.ethertype != ETHERTYPE_STAG && own.untagged;
    v.foreign = !mine;
    v.tag = '{present: has_tag && mine, service: 1'b0, pcp: found.pcp, dei: found.dei, vid: found.vid};
    return v;
  endfunction

  c_tag_t   found;
  verdict_t verdict_q;                                        // on the beat that is held, if it has the tag or is behind it
  wire      at_tag = index_q == index_t'(TAG_BEAT);
  wire      behind = index_q > index_t'(TAG_BEAT);
  wire      index_t index = !in_frame_q ? '0 : behind ? index_q : index_q + 1'b1;   // of the next beat
  assign found = {data[TAG_LANE], data[TAG_LANE+1], data[TAG_LANE+2], data[TAG_LANE+3]};
  wire   moves = verdict_q.tag.present && (at_tag || behind); // the end of the beat comes from the next one
  wire   moves_first = verdict_q.tag.present && behind;       // and so does what is before the place of the tag

  wire   used_up = held_q && !last_q && moves && in.tlast && !in.tkeep[TAG_BYTES];   // all of the next beat is in this one
  wire   passes = held_q && (last_q || in.tvalid);

  assign in.tready   = 1'b1;
  assign out.tvalid  = active_q ? passes : in.tvalid;
  assign out.tlast   = active_q ? last_q || used_up : in.tlast;
  assign out.tuser   = active_q ? (used_up ? in.tuser : bad_q) : in.tuser;
  assign foreign     = active_q && verdict_q.foreign;
  assign tag         = active_q ? verdict_q.tag : '0;
  assign idle        = !held_q;

  data_t moved;
  keep_t moved_keep;
  assign moved      = {data[TAG_BYTES-1:0], data_q[BYTES-1:TAG_BYTES]};
  assign moved_keep = {last_q ? '0 : in.tkeep[TAG_BYTES-1:0], keep_q[BYTES-1:TAG_BYTES]};

  for (genvar i = 0; i < BYTES; i++) begin : g_lane
    wire from_moved = i < TAG_LANE ? moves_first : moves;
    assign out.tdata[i*8+:8] = !active_q ? data[i] : from_moved ? moved[i] : data_q[i];
    assign out.tkeep[i]      = !active_q ? in.tkeep[i] : from_moved ? moved_keep[i] : keep_q[i];
  end

  always_ff @(posedge clk) begin
    if (in.tvalid) begin
      if (index == index_t'(TAG_BEAT)) verdict_q <= judge(found, settings);
      in_frame_q <= !in.tlast;
      data_q     <= data;
      keep_q     <= in.tkeep;
      last_q     <= in.tlast;
      bad_q      <= in.tuser;
      index_q    <= index;
    end
    if (in.tvalid) held_q <= active_q && !used_up;
    else if (passes) held_q <= 1'b0;
    if (!in_frame_q && !in.tvalid && !held_q) active_q <= settings.enable;
    if (rst) begin
      active_q <= 1'b0;
      held_q   <= 1'b0;
    end
  end
endmodule
