// SPDX-License-Identifier: Apache-2.0

// Drops received datagrams to one port: UDP over IPv4 without options and tags. Other frames pass as they are. 1 cycle, one beat a cycle.
module stream_quiet
  import packet_pkg::*;
  import stream_quiet_pkg::*;               // made from stream_quiet.toml and stream_quiet.rdl
#(
    parameter int unsigned DATA_W = 512     // 64, 128, 256 or 512
) (
    input  logic        clk,
    input  logic        rst,                // synchronous, active high; also after the kernel was cut off
    input  logic [47:0] now,                // cycles; may jump ahead
    axil_if.slave       ctrl,               // its registers, offsets 0x110 to 0xfff
    axis_if.sink        rx_in,              // frames that the card receives
    axis_if.source      rx_out,
    axis_if.sink        tx_in,              // frames that the card sends
    axis_if.source      tx_out
);
  // ---- registers ----
  logic [11:0] at;
  logic        write;
  logic [31:0] wdata, dropped_q;
  logic [15:0] port_q;
  axil_access access (
      .clk, .rst, .bus(ctrl), .at, .write, .wdata, .readable(readable(at)), .writable(writable(at)),
      .rdata(at == AT_PORT ? 32'(port_q) : dropped_q), .idle()
  );

  // ---- the headers: what has come of the frame, byte 0 highest; the beat on `rx_in` is a part of it ----
  typedef struct packed {
    eth_hdr_t  eth;
    ipv4_hdr_t ip;
    udp_hdr_t  udp;
  } headers_t;
  localparam int unsigned BYTES = DATA_W / 8;
  localparam int unsigned HEAD = $bits(headers_t) / 8;
  localparam int unsigned BEATS = (HEAD + BYTES - 1) / BYTES;

  logic [HEAD-1:0][7:0] seen_q, seen;
  logic [$clog2(BEATS+1)-1:0] beat_q;       // of the frame; stays at BEATS
  headers_t headers;
  always_comb begin
    seen = seen_q;
    for (int unsigned i = 0; i < BEATS; i++)
      for (int unsigned lane = 0; lane < BYTES; lane++)
        if (32'(beat_q) == i && i * BYTES + lane < HEAD) seen[HEAD-1-i*BYTES-lane] = rx_in.tdata[lane*8+:8];
  end
  assign headers = seen;

  // A frame that is too short for these headers has none of them.
  wire whole = 32'(beat_q) == BEATS || (32'(beat_q) == BEATS - 1 && rx_in.tkeep[(HEAD-1)%BYTES]);
  wire drops = whole && port_q != '0 && headers.eth.ethertype == ETHERTYPE_IPV4 && headers.ip.version == 4'd4 && headers.ip.ihl == 4'd5
               && headers.ip.fragment_offset == '0 && headers.ip.protocol == IPPROTO_UDP && headers.udp.dst_port == port_q;

  // ---- frames pass; the last beat says whether one is dropped ----
  axis_if #(.DATA_W(DATA_W)) judged ();
  assign judged.tvalid = rx_in.tvalid;
  assign judged.tdata  = rx_in.tdata;
  assign judged.tkeep  = rx_in.tkeep;
  assign judged.tlast  = rx_in.tlast;
  assign judged.tuser  = drops;
  assign rx_in.tready  = judged.tready;
  axis_slice #(.DATA_W(DATA_W)) rx (.clk, .rst, .in(judged), .out(rx_out));
  axis_slice #(.DATA_W(DATA_W)) tx (.clk, .rst, .in(tx_in), .out(tx_out));

  wire moves = rx_in.tvalid && rx_in.tready;
  always_ff @(posedge clk) begin
    if (moves) begin
      seen_q <= seen;
      beat_q <= rx_in.tlast ? '0 : 32'(beat_q) == BEATS ? beat_q : beat_q + 1'b1;
      if (rx_in.tlast && drops) dropped_q <= dropped_q + 1'b1;
    end
    if (write && at == AT_PORT) port_q <= wdata[15:0];
    if (rst) begin
      beat_q    <= '0;
      port_q    <= '0;
      dropped_q <= '0;
    end
  end

  logic unused_ok;
  assign unused_ok = &{1'b0, now, headers};
endmodule
