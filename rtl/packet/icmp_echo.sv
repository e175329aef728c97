// SPDX-License-Identifier: Apache-2.0

// Answers ICMP echo requests (RFC 792, RFC 1122 3.2.2.6): the same frame goes back, as a reply. The payload passes through at one
// beat a cycle, of any size that can be received; both checksums are brought up to date instead of computed anew (RFC 1624).
// One request in 2 cycles; the reply's header follows 2 cycles after the request's. Stops with `tx` and `tx_payload`.
module icmp_echo
  import packet_pkg::*;
(
    input  logic        clk,
    input  logic        rst,
    input  local_addr_t local_addr,
    stream_if.sink      rx,          // frame_rx_t of CLASS_ICMP: echo requests with a right checksum
    axis_if.sink        rx_payload,
    stream_if.source    tx,          // frame_tx_t
    axis_if.source      tx_payload,
    output logic        idle
);
  localparam logic [7:0] TTL = 8'd64;

  typedef struct packed {
    eth_hdr_t       eth;
    ipv4_hdr_t      ipv4;
    icmp_echo_hdr_t icmp;
  } echo_frame_t;

  // The checksum after one word that it covers changed from `old` to `new_` (RFC 1624, equation 3).
  function automatic logic [15:0] updated(logic [15:0] checksum, logic [15:0] old, logic [15:0] new_);
    logic [17:0] sum;
    logic [16:0] folded;
    sum = 18'(16'(~checksum)) + 18'(16'(~old)) + 18'(new_);
    folded = 17'(sum[15:0]) + 17'(sum[17:16]);
    return ~(folded[15:0] + 16'(folded[16]));
  endfunction

  frame_rx_t   frame;
  echo_frame_t request, reply;
  assign frame   = rx.data;
  assign request = frame.hdr[HDR_BYTES*8-1-:$bits(echo_frame_t)];

  // Registered as it came; the reply is made on the way out.
  echo_frame_t request_q, reply_q;
  logic [15:0] length_q, reply_length_q;
  logic        valid_q, reply_valid_q;
  wire         reply_free = !reply_valid_q || tx.ready;

  always_comb begin
    reply = request_q;
    reply.eth.dst = request_q.eth.src;
    reply.eth.src = local_addr.mac;
    reply.ipv4.src = request_q.ipv4.dst;
    reply.ipv4.dst = request_q.ipv4.src;
    reply.ipv4.ttl = TTL;
    reply.ipv4.header_checksum = updated(request_q.ipv4.header_checksum, {request_q.ipv4.ttl, request_q.ipv4.protocol},
                                         {TTL, request_q.ipv4.protocol});
    reply.icmp.icmp_type = ICMP_ECHO_REPLY;
    reply.icmp.checksum = updated(request_q.icmp.checksum, {ICMP_ECHO_REQUEST, 8'd0}, {ICMP_ECHO_REPLY, 8'd0});
  end

  assign rx.ready = !valid_q || reply_free;

  always_ff @(posedge clk) begin
    if (rx.ready) begin
      request_q <= request;
      length_q  <= frame.payload_length;
    end
    if (reply_free) begin
      reply_q        <= reply;
      reply_length_q <= length_q;
    end
    if (rst) begin
      valid_q       <= 1'b0;
      reply_valid_q <= 1'b0;
    end else begin
      if (rx.ready) valid_q <= rx.valid;
      if (reply_free) reply_valid_q <= valid_q;
    end
  end

  assign tx.valid = reply_valid_q;
  always_comb begin
    tx.data = '0;
    tx.data.hdr_length = 7'($bits(echo_frame_t) / 8);
    tx.data.payload_length = reply_length_q;
    tx.data.hdr[HDR_BYTES*8-1-:$bits(echo_frame_t)] = reply_q;
  end

  assign tx_payload.tdata  = rx_payload.tdata;
  assign tx_payload.tkeep  = rx_payload.tkeep;
  assign tx_payload.tlast  = rx_payload.tlast;
  assign tx_payload.tuser  = rx_payload.tuser;
  assign tx_payload.tvalid = rx_payload.tvalid;
  assign rx_payload.tready = tx_payload.tready;

  assign idle = !valid_q && !reply_valid_q;
endmodule
