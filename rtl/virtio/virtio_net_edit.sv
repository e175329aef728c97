// SPDX-License-Identifier: Apache-2.0

// Changes the VLAN priority (802.1Q, of the outer tag) and the DSCP (RFC 2474) of frames on their way to the host, as the rules of a classifier
// say. Only a tag that is there is changed. The DSCP is changed behind up to two tags, in IPv4 with its header checksum (RFC 1624, eqn. 3: a
// checksum that was wrong stays so), and in IPv6; the checksums of TCP and UDP do not cover it.
//
// One frame a value of `edit`, which waits for it. One beat a cycle; latency 1 cycle.
module virtio_net_edit
  import packet_pkg::*;
  import virtio_pkg::*;
#(
    parameter int unsigned DATA_W = 512
) (
    input  logic     clk,
    input  logic     rst,
    axis_if.sink     in,
    stream_if.sink   edit,        // net_edit_t, of each frame
    axis_if.source   out
);
  localparam int unsigned BYTES = DATA_W / 8;
  localparam int unsigned TAG_BYTES = 4;
  localparam int unsigned TAGS = 2;
  localparam int unsigned SEEN = ETH_HDR_BYTES + TAGS * TAG_BYTES + 12;    // to the header checksum of IPv4 behind two tags
  localparam int unsigned BEATS = (SEEN + BYTES - 1) / BYTES;
  localparam int unsigned TCI = ETH_HDR_BYTES;
  localparam int unsigned SUM = 10;                                        // of the header checksum in the IPv4 header
  typedef logic [$clog2(BEATS+1)-1:0] beat_t;

  // ---- what has been seen of the frame, this beat included; a byte is changed for what is before it, which has been seen by then ----
  beat_t index_q;                                                          // BEATS: this and all further ones
  logic [SEEN-1:0][7:0] before_q, seen, changed;
  logic [BYTES-1:0][7:0] data;
  net_edit_t now;
  assign now = edit.data;
  always_comb
    for (int unsigned i = 0; i < SEEN; i++) seen[i] = index_q == beat_t'(i / BYTES) ? in.tdata[i%BYTES*8+:8] : before_q[i];

  function automatic logic is_tag(logic [7:0] high, logic [7:0] low);
    return {high, low} inside {ETHERTYPE_CTAG, ETHERTYPE_STAG};
  endfunction
  wire one = is_tag(seen[TCI-2], seen[TCI-1]);
  wire two = one && is_tag(seen[TCI+2], seen[TCI+3]);
  wire [TAGS:0] tags = {two, one && !two, !one};

  always_comb begin
    changed = seen;
    if (now.pcp_set && one) changed[TCI][7:5] = now.pcp;
    for (int unsigned t = 0; t <= TAGS; t++) begin
      automatic int unsigned l3 = ETH_HDR_BYTES + t * TAG_BYTES;
      automatic logic [15:0] ethertype = {seen[l3-2], seen[l3-1]};
      automatic logic [7:0] tos = {now.dscp, seen[l3+1][1:0]};
      if (now.dscp_set && tags[t] && ethertype == ETHERTYPE_IPV4 && seen[l3][7:4] == 4'd4) begin
        changed[l3+1] = tos;
        {changed[l3+SUM], changed[l3+SUM+1]} = checksum_updated({seen[l3+SUM], seen[l3+SUM+1]}, {seen[l3], seen[l3+1]}, {seen[l3], tos});
      end
      if (now.dscp_set && tags[t] && ethertype == ETHERTYPE_IPV6 && seen[l3][7:4] == 4'd6)
        {changed[l3][3:0], changed[l3+1][7:6]} = now.dscp;
    end
    data = in.tdata;
    for (int unsigned i = 0; i < SEEN; i++) if (index_q == beat_t'(i / BYTES)) data[i%BYTES] = changed[i];
  end

  axis_if #(.DATA_W(DATA_W)) edited ();
  assign edited.tvalid = in.tvalid && edit.valid;
  assign edited.tdata  = data;
  assign edited.tkeep  = in.tkeep;
  assign edited.tlast  = in.tlast;
  assign edited.tuser  = in.tuser;
  assign in.tready     = edited.tready && edit.valid;
  wire   step          = edited.tvalid && edited.tready;
  assign edit.ready    = step && in.tlast;
  axis_slice #(.DATA_W(DATA_W)) slice (.clk, .rst, .in(edited), .out);

  always_ff @(posedge clk) begin
    if (step) before_q <= seen;
    if (rst) index_q <= '0;
    else if (step) index_q <= in.tlast ? '0 : index_q == beat_t'(BEATS) ? index_q : index_q + 1'b1;
  end
endmodule
