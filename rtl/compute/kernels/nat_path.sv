// SPDX-License-Identifier: Apache-2.0

// One direction of the kernel `nat`: finds the end of a connection in a frame that shall be replaced, asks the table for the other one, and puts it
// into the frame, with the checksums of IPv4 and of TCP, UDP or ICMP mended (RFC 1624, equation 3). Sent frames have their source replaced,
// received ones their destination; ARP the address of its sender or its target.
//
// Frames wait in a FIFO until the decision about them is there: 10 cycles from the beat with byte 53, or the last one, to the first beat out.
// One beat a cycle. When `out` stops, the FIFO fills, then `in` stops.
module nat_path
  import packet_pkg::*;
  import nat_pkg::*;
#(
    parameter int unsigned DATA_W = 512,
    parameter bit          RX = 1'b0           // received frames
) (
    input  logic          clk,
    input  logic          rst,
    input  nat_settings_t settings,
    axis_if.sink          in,
    axis_if.source        out,
    output end_t          from,                // to nat_table,
    input  logic          hit,                 // 3 cycles later
    input  end_t          to,
    output logic          translated,          // pulse
    output logic          unknown              // pulse
);
  localparam int unsigned BYTES = DATA_W / 8;
  localparam int unsigned HEAD_BEATS = (HEAD_BYTES + BYTES - 1) / BYTES;
  localparam int unsigned LOOKUP = 3;
  localparam int unsigned DEPTH = 32;          // beats: HEAD_BEATS, and as many as a decision takes cycles
  typedef logic [$clog2(HEAD_BEATS+1)-1:0] beat_index_t;
  typedef logic [6:0] length_t;

  typedef struct packed {
    logic                last;
    logic [DATA_W/8-1:0] keep;
    logic [DATA_W-1:0]   data;
  } beat_t;

  // ---- frames wait ----
  stream_if #(.T(beat_t)) beat_in ();
  stream_if #(.T(beat_t)) beat ();
  stream_fifo #(.T(beat_t), .DEPTH(DEPTH)) beats (.clk, .rst, .in(beat_in), .out(beat), .empty());
  assign beat_in.valid = in.tvalid;
  assign beat_in.data  = '{last: in.tlast, keep: in.tkeep, data: in.tdata};
  assign in.tready     = beat_in.ready;
  wire taken = in.tvalid && in.tready;

  // ---- 1: the first bytes, byte 0 highest ----
  logic [HEAD_BYTES-1:0][7:0] head_q;
  beat_index_t index_q;                        // of the beat on `in`; stays at HEAD_BEATS
  logic        seen_q;                         // head_q is complete
  length_t     here, length_q;                 // bytes of the frame in head_q
  always_comb begin
    here = '0;
    for (int unsigned i = 0; i < BYTES; i++) here += length_t'(in.tkeep[i]);
  end
  always_ff @(posedge clk) begin
    seen_q <= !rst && taken && (32'(index_q) == HEAD_BEATS - 1 || (in.tlast && 32'(index_q) < HEAD_BEATS));
    if (taken) begin
      for (int unsigned lane = 0; lane < BYTES; lane++)
        for (int unsigned i = 0; i < HEAD_BEATS; i++)
          if (32'(index_q) == i && i * BYTES + lane < HEAD_BYTES) head_q[HEAD_BYTES-1-i*BYTES-lane] <= in.tdata[lane*8+:8];
      if (32'(index_q) < HEAD_BEATS) length_q <= (index_q == '0 ? '0 : length_q) + here;
      index_q <= in.tlast ? '0 : 32'(index_q) == HEAD_BEATS ? index_q : index_q + 1'b1;
    end
    if (rst) index_q <= '0;
  end

  // ---- 2: which end it has ----
  head_t     head;
  ipv4_hdr_t ip;
  arp_hdr_t  arp;
  kind_e     kind;
  end_t      found;
  assign head = head_q;
  assign ip   = head.packet.tcp.ip;
  assign arp  = head.packet.arp.arp;
  wire ipv4 = head.eth.ethertype == ETHERTYPE_IPV4 && ip.version == 4'd4 && ip.ihl == 4'd5 && !ip.flag_mf && ip.fragment_offset == '0;

  function automatic logic reaches(int unsigned bytes);
    return length_q >= length_t'(bytes) && ip.total_length >= 16'(bytes - ETH_HDR_BYTES);
  endfunction

  always_comb begin
    kind = KIND_OTHER;
    if (ipv4) begin
      if (ip.protocol == IPPROTO_TCP && reaches(TCP_BYTES)) kind = KIND_TCP;
      if (ip.protocol == IPPROTO_UDP && reaches(UDP_BYTES)) kind = KIND_UDP;
      if (ip.protocol == IPPROTO_ICMP && reaches(ICMP_BYTES) && head.packet.icmp.icmp.code == '0
          && head.packet.icmp.icmp.icmp_type inside {ICMP_ECHO_REQUEST, ICMP_ECHO_REPLY}) kind = KIND_ICMP;
    end
    if (head.eth.ethertype == ETHERTYPE_ARP && arp.htype == ARP_HTYPE_ETHERNET && arp.ptype == ETHERTYPE_IPV4 && arp.hlen == 8'd6
        && arp.plen == 8'd4 && length_q >= length_t'(ARP_BYTES)) kind = KIND_ARP;
    found = '{kind: kind, ip: RX ? ip.dst : ip.src, port: RX ? head.packet.tcp.tcp.dst_port : head.packet.tcp.tcp.src_port};
    if (kind == KIND_ICMP) found.port = head.packet.icmp.icmp.identifier;
    if (kind == KIND_ARP) {found.ip, found.port} = {RX ? arp.tpa : arp.spa, 16'd0};
  end

  typedef struct packed {
    end_t        from;
    logic [15:0] ip_checksum;
    logic [15:0] checksum;
  } old_t;
  old_t [LOOKUP:0]   old_q;                    // as the look-up goes on
  logic [LOOKUP+3:0] valid_q;
  assign from = old_q[0].from;

  always_ff @(posedge clk) begin
    valid_q <= rst ? '0 : {valid_q[LOOKUP+2:0], seen_q};
    old_q   <= {old_q[LOOKUP-1:0], old_t'('0)};
    old_q[0].from        <= found;
    old_q[0].ip_checksum <= ip.header_checksum;
    unique case (kind)
      KIND_TCP: old_q[0].checksum <= head.packet.tcp.tcp.checksum;
      KIND_UDP: old_q[0].checksum <= head.packet.udp.udp.checksum;
      default:  old_q[0].checksum <= head.packet.icmp.icmp.checksum;
    endcase
  end

  // ---- 3: HC' = ~(~HC + ~m + m'), in three steps ----
  old_t        old;
  logic        hit1_q, hit2_q, udp1_q, udp2_q, none1_q, none2_q;
  kind_e       kind1_q, kind2_q;
  end_t        to1_q, to2_q;
  logic [17:0] ip_delta_q;
  logic [16:0] port_delta_q;
  logic [15:0] ip_old_q, old1_q;
  logic [19:0] ip_sum_q, sum_q;
  assign old = old_q[LOOKUP];

  function automatic logic [15:0] folded(logic [19:0] sum);
    logic [16:0] once;
    once = {1'b0, sum[15:0]} + 17'(sum[19:16]);
    return ~(once[15:0] + 16'(once[16]));
  endfunction

  always_ff @(posedge clk) begin
    hit1_q       <= hit;
    kind1_q      <= old.from.kind;
    to1_q        <= to;
    ip_delta_q   <= 18'(16'(~old.from.ip[31:16])) + 18'(16'(~old.from.ip[15:0])) + 18'(to.ip[31:16]) + 18'(to.ip[15:0]);
    port_delta_q <= 17'(16'(~old.from.port)) + 17'(to.port);
    ip_old_q     <= ~old.ip_checksum;
    old1_q       <= ~old.checksum;
    udp1_q       <= old.from.kind == KIND_UDP;
    none1_q      <= old.from.kind == KIND_UDP && old.checksum == '0;

    hit2_q       <= hit1_q;
    kind2_q      <= kind1_q;
    to2_q        <= to1_q;
    ip_sum_q     <= 20'(ip_delta_q) + 20'(ip_old_q);
    sum_q        <= 20'(port_delta_q) + 20'(old1_q) + (kind1_q == KIND_ICMP ? '0 : 20'(ip_delta_q));
    udp2_q       <= udp1_q;
    none2_q      <= none1_q;
  end

  stream_if #(.T(decision_t)) decided ();
  stream_if #(.T(decision_t)) decision ();
  decision_t decision_q;
  logic      other;
  assign other = settings.enable && !hit2_q && kind2_q != KIND_ARP;
  always_ff @(posedge clk) begin
    decision_q.drop        <= other && (RX ? settings.drop_rx : settings.drop_tx);
    decision_q.translate   <= settings.enable && hit2_q;
    decision_q.to          <= to2_q;
    decision_q.ip_checksum <= folded(ip_sum_q);
    decision_q.checksum    <= none2_q ? '0 : udp2_q && folded(sum_q) == '0 ? '1 : folded(sum_q);
    translated             <= !rst && valid_q[LOOKUP+2] && settings.enable && hit2_q;
    unknown                <= !rst && valid_q[LOOKUP+2] && other;
  end
  assign decided.valid = valid_q[LOOKUP+3];
  assign decided.data  = decision_q;
  stream_fifo #(.T(decision_t), .DEPTH(DEPTH * 2)) decisions (.clk, .rst, .in(decided), .out(decision), .empty());

  // ---- the frame as it leaves ----
  head_t       patch, changed;                 // new bytes, and which they are
  beat_index_t out_index_q;
  always_comb begin
    patch   = '0;
    changed = '0;
    if (decision.data.translate) begin
      if (decision.data.to.kind == KIND_ARP) begin
        if (RX) begin
          patch.packet.arp.arp.tpa   = decision.data.to.ip;
          changed.packet.arp.arp.tpa = '1;
        end else begin
          patch.packet.arp.arp.spa   = decision.data.to.ip;
          changed.packet.arp.arp.spa = '1;
        end
      end else begin
        patch.packet.tcp.ip.header_checksum   = decision.data.ip_checksum;
        changed.packet.tcp.ip.header_checksum = '1;
        if (RX) begin
          patch.packet.tcp.ip.dst   = decision.data.to.ip;
          changed.packet.tcp.ip.dst = '1;
        end else begin
          patch.packet.tcp.ip.src   = decision.data.to.ip;
          changed.packet.tcp.ip.src = '1;
        end
        if (decision.data.to.kind == KIND_ICMP) begin
          patch.packet.icmp.icmp.identifier   = decision.data.to.port;
          changed.packet.icmp.icmp.identifier = '1;
          patch.packet.icmp.icmp.checksum     = decision.data.checksum;
          changed.packet.icmp.icmp.checksum   = '1;
        end else begin
          if (RX) begin
            patch.packet.tcp.tcp.dst_port   = decision.data.to.port;
            changed.packet.tcp.tcp.dst_port = '1;
          end else begin
            patch.packet.tcp.tcp.src_port   = decision.data.to.port;
            changed.packet.tcp.tcp.src_port = '1;
          end
          if (decision.data.to.kind == KIND_TCP) begin
            patch.packet.tcp.tcp.checksum   = decision.data.checksum;
            changed.packet.tcp.tcp.checksum = '1;
          end else begin
            patch.packet.udp.udp.checksum   = decision.data.checksum;
            changed.packet.udp.udp.checksum = '1;
          end
        end
      end
    end
  end

  // In the order of the beats, byte 0 lowest.
  logic [HEAD_BEATS*BYTES-1:0][7:0] patch_bytes, changed_bytes;
  logic [DATA_W-1:0] patch_now, changed_now;
  always_comb begin
    patch_bytes   = '0;
    changed_bytes = '0;
    for (int unsigned i = 0; i < HEAD_BYTES; i++) begin
      patch_bytes[i]   = patch[(HEAD_BYTES-1-i)*8+:8];
      changed_bytes[i] = changed[(HEAD_BYTES-1-i)*8+:8];
    end
    patch_now   = '0;
    changed_now = '0;
    for (int unsigned i = 0; i < HEAD_BEATS; i++)
      if (32'(out_index_q) == i) begin
        patch_now   = patch_bytes[i*BYTES+:BYTES];
        changed_now = changed_bytes[i*BYTES+:BYTES];
      end
  end

  axis_if #(.DATA_W(DATA_W)) made ();
  assign made.tvalid    = beat.valid && decision.valid;
  assign made.tdata     = (beat.data.data & ~changed_now) | (patch_now & changed_now);
  assign made.tkeep     = beat.data.keep;
  assign made.tlast     = beat.data.last;
  assign made.tuser     = decision.data.drop;
  assign beat.ready     = made.tready && decision.valid;
  assign decision.ready = made.tready && beat.valid && beat.data.last;
  axis_slice #(.DATA_W(DATA_W)) slice (.clk, .rst, .in(made), .out);

  always_ff @(posedge clk) begin
    if (rst) out_index_q <= '0;
    else if (beat.valid && beat.ready)
      out_index_q <= beat.data.last ? '0 : 32'(out_index_q) == HEAD_BEATS ? out_index_q : out_index_q + 1'b1;
  end

  always_ff @(posedge clk) if (!rst) assert (!decided.valid || decided.ready);

  logic unused_ok;
  assign unused_ok = &{1'b0, in.tuser, head, arp};
endmodule
